//! How long discards of what was just written take, over their length, and what was read there afterwards.

use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::pipeline::{Analysis, Fit};
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{bootstrap_median, median};
use crate::samples::{Cell, Run};
use crate::units::{Bytes, KIB, MIB};

/// Judges runs of `discard`.
pub struct Discard;

pub(super) const ANALYSES: &[&dyn Analysis] = &[&Discard];

/// Roles: writes; discards; a read before the discard that shows what was written, or does not; reads after it.
pub const WRITE: u8 = 0;
pub const DISCARD: u8 = 1;
pub const KEPT: u8 = 2;
pub const LOST: u8 = 3;
pub const ZEROS: u8 = 4;
pub const ONES: u8 = 5;
pub const OLD: u8 = 6;
pub const OTHER: u8 = 7;
/// The target has no discard.
pub const FAILED: u8 = 8;

/// Lengths that are discarded, and how often each.
pub const LENGTHS: [u64; 3] = [64 * KIB, MIB, 8 * MIB];
pub const TRIALS: usize = 8;

/// The length whose time is the answer.
const TOLD: u64 = MIB;

/// Reads after a discard that must agree.
const LEAST: usize = 6;

/// The code of what was read.
const READS: [(u8, f64, &str); 4] = [(ZEROS, 0.0, "zeros"), (ONES, 1.0, "ones"), (OLD, 2.0, "as before"), (OTHER, 3.0, "other data")];

/// ms of the discards of a length.
fn times(run: &Run, cell: &Cell) -> Vec<f64> {
    run.of(cell.id).filter(|s| s.role == DISCARD).map(|s| s.took.micros() / 1e3).collect()
}

/// What was read after each discard of what was there before it.
fn reads(run: &Run) -> Vec<u8> {
    let one = |t: &Vec<&crate::samples::Sample>| {
        let kept = t.iter().any(|s| s.role == KEPT);
        t.last().map(|s| s.role).filter(|r| kept && (ZEROS..=OTHER).contains(r))
    };
    run.cells.iter().flat_map(|c| run.trials(c.id).iter().filter_map(one).collect::<Vec<_>>()).collect()
}

impl Analysis for Discard {
    fn name(&self) -> &'static str {
        "discard"
    }

    fn fit(&self) -> Fit {
        Fit::Today
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        let (cost, content) = (Quantity::DiscardMs, Quantity::DiscardReads);
        let Some(first) = run.cells.first() else {
            return vec![Finding::undecided(cost, format!("{} or --writes is too small for a discard", run.stretch()))];
        };
        if run.samples.iter().any(|s| s.role == FAILED) {
            return vec![Finding::undecided(cost, "this target takes no discard (a reader may not pass it on)")];
        }
        let told = run.cells.iter().map(|c| (c.bytes("length"), times(run, c))).filter(|(_, t)| !t.is_empty());
        let told: Vec<String> = told.map(|(l, t)| format!("{} {:.3} ms", Bytes(l), median(&t))).collect();
        let text = format!("discards of what was just written took: {}", told.join(", "));
        let cell = run.cells.iter().find(|c| c.bytes("length") == TOLD).unwrap_or(first);
        let t = times(run, cell);
        let few = "too few discards (more --time and --writes would decide)";
        let when = match bootstrap_median(&t).filter(|_| t.len() >= LEAST && cell.bytes("length") == TOLD) {
            Some(interval) => Finding { interval: Some(interval), ..Finding::decided(cost, median(&t), 0.9).evidence(text) },
            None => Finding::undecided(cost, few).evidence(text),
        };
        vec![when, what(content, &reads(run))]
    }

    fn figures(&self, run: &Case) -> Vec<Figure> {
        let all = run.cells.iter().map(|c| (c.bytes("length") as f64 / MIB as f64, times(run, c))).filter(|(_, t)| !t.is_empty());
        let mut points: Vec<(f64, f64)> = all.map(|(x, t)| (x, median(&t))).collect();
        nandscope_stats::ascending(&mut points, |a| a.0);
        if points.len() < 2 {
            return vec![];
        }
        let series = vec![Series { name: "discard".into(), points }];
        vec![Figure { title: "discard over its length".into(), x: "MiB".into(), y: "ms".into(), log_x: true, log_y: true, series }]
    }
}

/// What a discarded place reads as, where all reads agree.
fn what(q: Quantity, seen: &[u8]) -> Finding {
    let counts = READS.map(|(role, code, name)| (seen.iter().filter(|r| **r == role).count(), code, name));
    let text = counts.iter().filter(|c| c.0 > 0).map(|(n, _, name)| format!("{n} of {} {name}", seen.len())).collect::<Vec<_>>().join(", ");
    let text = format!("sectors read right after their discard: {text}");
    if seen.is_empty() {
        return Finding::undecided(q, "nothing was read back: this target keeps no content, or the run ended before");
    }
    let (n, code, _) = counts.into_iter().max_by_key(|c| c.0).expect("four");
    if n < seen.len() || n < LEAST {
        let why = if n < seen.len() { "discarded places do not all read the same" } else { "too few were read back" };
        return Finding::undecided(q, why).evidence(text);
    }
    let f = Finding::decided(q, code, 0.93).evidence(text);
    if code == 2.0 { f.caveat("a card may erase later, at rest") } else { f }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_reads_must_agree() {
        let q = Quantity::DiscardReads;
        for (role, code) in [(ZEROS, 0.0), (ONES, 1.0), (OLD, 2.0), (OTHER, 3.0)] {
            assert_eq!(what(q, &[role; 8]).number(), Some(code));
            assert_eq!(what(q, &[role; 3]).number(), None, "too few");
            let mut mixed = [role; 8];
            mixed[5] = if role == OLD { ZEROS } else { OLD };
            assert_eq!(what(q, &mixed).number(), None);
        }
        assert_eq!(what(q, &[]).number(), None);
    }
}
