//! Bursts of writes after rests of different length, the SLC cache full: whether a rest helps, and how long it has to be.

use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::pipeline::{Analysis, Fit};
use super::slc_cache::Levels;
use super::write_cache::step;
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{mean, median};
use crate::samples::{Cell, Run};
use crate::units::Bytes;

/// Judges runs of `pauses`.
pub struct Pauses;

pub(super) const ANALYSES: &[&dyn Analysis] = &[&Pauses];

/// Roles: writes that fill a cache, and those of a burst.
pub const FILL: u8 = 0;
pub const BURST: u8 = 1;

/// Bursts after each rest.
pub const TRIALS: usize = 4;
/// Fewer, or fewer rests than this, say nothing.
const FEWEST: usize = 3;
const RESTS: usize = 5;
/// A rest that gains less gains nothing.
const GAINS: f64 = 1.1;
/// Bursts after longer rests are at least this part of half of the gain.
const LOSES: f64 = 0.9;
/// What all bursts waver by at most, where something is concluded from them.
const WAVERS: f64 = 0.25;

/// µs of a write of the first fill while there was room and while there was none.
pub fn levels(run: &Run) -> Option<Levels> {
    let first = run.samples.first()?;
    let fill = run.samples.iter().take_while(|s| (s.cell, s.trial, s.role) == (first.cell, first.trial, FILL));
    let t: Vec<f64> = fill.map(|s| s.took.micros()).collect();
    let i = step(&t)?;
    Some(Levels { fast: median(&t[..i]), slow: median(t.get(i + 2..)?) })
}

/// MB/s of each burst.
fn rates(run: &Run, cell: &Cell) -> Vec<f64> {
    let one = |t: &Vec<&crate::samples::Sample>| {
        let (n, bytes, ns) = t.iter().filter(|s| s.role == BURST).fold((0, 0, 0), |a, s| (a.0 + 1, a.1 + s.len, a.2 + s.took.0));
        (n > 1 && ns > 0).then(|| bytes as f64 * 1e3 / ns as f64)
    };
    run.trials(cell.id).iter().filter_map(one).collect()
}

/// Rests in ms, and the rates after each.
fn by_rest(run: &Run) -> Vec<(f64, Vec<f64>)> {
    let mut all: Vec<_> =
        run.cells.iter().map(|c| (c.get("rest_us") as f64 / 1e3, rates(run, c))).filter(|r| r.1.len() >= FEWEST).collect();
    nandscope_stats::ascending(&mut all, |a| a.0);
    all
}

/// Where the gain crosses half of what the longest rest gains, between which two rests: ms, from, to.
fn half(gains: &[(f64, f64)]) -> Option<[f64; 3]> {
    let (_, most) = *gains.last()?;
    let line = 1.0 + (most - 1.0) / 2.0;
    let i = gains.iter().position(|g| g.1 >= line)?;
    // What a longer rest loses again was not gained by rest.
    if gains[i..].iter().any(|g| g.1 < LOSES * line) {
        return None;
    }
    let (before, at) = (gains.get(i.checked_sub(1)?)?, gains[i]);
    let part = ((line - before.1) / (at.1 - before.1)).clamp(0.0, 1.0);
    Some([before.0 + part * (at.0 - before.0), before.0, at.0])
}

impl Analysis for Pauses {
    fn name(&self) -> &'static str {
        "pauses"
    }

    fn fit(&self) -> Fit {
        Fit::Today
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        let (q, pause) = (Quantity::PauseGain, Quantity::PauseMs);
        if run.cells.is_empty() {
            return vec![Finding::undecided(q, format!("{} or --writes is too small for bursts", run.stretch()))];
        }
        let all = by_rest(run);
        let (Some(none), Some(long)) = (all.first().filter(|r| r.0 == 0.0), all.last().filter(|_| all.len() >= RESTS)) else {
            return vec![Finding::undecided(q, "too few bursts were written (more --time and --writes would decide)")];
        };
        let filled = levels(run).is_some();
        let base = median(&none.1);
        let gains: Vec<(f64, f64)> = all.iter().map(|(r, v)| (*r, median(v) / base)).collect();
        let text = all.iter().map(|(r, v)| format!("{r} ms {:.2} MB/s", median(v))).collect::<Vec<_>>().join(", ");
        let size = run.cells.first().map_or(0, |c| c.bytes("burst"));
        let text = format!("bursts of {} after a rest of: {text}", Bytes(size));
        let spread = |v: &[f64]| v.iter().map(|x| (x / mean(v) - 1.0).abs()).fold(0.0, f64::max);
        let error = spread(&none.1).hypot(spread(&long.1)).max(0.01);
        if error > WAVERS {
            return vec![Finding::undecided(q, "bursts after the same rest differ too much (more --time would decide)").evidence(text)];
        }
        let gain = median(&long.1) / base;
        let interval = [gain / (1.0 + error), gain * (1.0 + error)];
        if interval[1] < 1.0 + 2.0 * (GAINS - 1.0) && gain < GAINS {
            let first = run.samples.iter().take_while(|s| s.role == FILL).map(|s| s.len).sum::<u64>();
            // Flash used with one bit a cell holds half of what it holds with two.
            if !filled && first < run.setting.get("size").copied().unwrap_or(0).max(0) as u64 / 2 {
                let why = format!(
                    "no cache became full in {} of sequential writes, and one that is not full needs no rest (more --time and --writes would decide)",
                    Bytes(first)
                );
                return vec![Finding::undecided(q, why).evidence(text)];
            }
            let f = Finding::decided(q, 1.0, SCORE).evidence(text).caveat(format!("of rests up to {} ms", long.0));
            let f = if filled { f } else { f.caveat("no cache became full before, in half of the card's size") };
            return vec![Finding { interval: Some([interval[0].min(1.0), interval[1].max(1.0)]), ..f }];
        }
        if interval[0] < GAINS {
            return vec![
                Finding::undecided(q, "what a rest gains is no more than bursts waver by (more --time would decide)").evidence(text),
            ];
        }
        let f = Finding::decided(q, gain, SCORE).evidence(text.clone()).caveat(format!("after {} ms; a longer rest may gain more", long.0));
        let f = Finding { interval: Some(interval), ..f };
        let Some([value, from, to]) = half(&gains) else {
            return vec![f, Finding::undecided(pause, "bursts do not get faster with the rest before them, step by step").evidence(text)];
        };
        let when = Finding::decided(pause, value, SCORE)
            .evidence(text)
            .caveat(format!("for bursts of {}; longer ones need longer rests", Bytes(size)));
        vec![f, Finding { interval: Some([from, to]), ..when }]
    }

    fn figures(&self, run: &Case) -> Vec<Figure> {
        let points: Vec<(f64, f64)> = by_rest(run).iter().map(|(r, v)| (*r, median(v))).collect();
        if points.len() < 2 {
            return vec![];
        }
        vec![Figure {
            title: "rate of a burst over the rest before it".into(),
            x: "ms of rest".into(),
            y: "MB/s".into(),
            log_x: false,
            log_y: false,
            series: vec![Series { name: "bursts of 2 MiB".into(), points }],
        }]
    }
}

/// Of what was decided on the cards of docs/todays-cards.md 98 % and more were right; as these are of one family, no more than this.
const SCORE: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_gain_lies_between_two_rests() {
        let gains = [(0.0, 1.0), (50.0, 1.0), (100.0, 1.2), (200.0, 2.0), (400.0, 2.0)];
        assert_eq!(half(&gains), Some([137.5, 100.0, 200.0]));
        assert_eq!(half(&[(0.0, 2.0), (50.0, 2.0)]), None, "no rest is needed");
    }
}
