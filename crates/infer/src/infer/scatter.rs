//! Stretches whose reads take longer or shorter than those elsewhere, from samples and from tables.

pub(super) mod tables;

use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::pipeline::Analysis;
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{mad, median};
use crate::samples::Run;
use crate::units::{Bytes, MIB, about, three};
use std::collections::BTreeMap;

/// Judges runs of `scatter`.
pub struct Scatter;

pub(super) const ANALYSES: &[&dyn Analysis] = &[&Scatter];

/// Neighbours that are smoothed together, and the least that make a region.
pub const WINDOW: usize = 5;

/// Share of the usual time below which nobody would call a difference odd.
const LEAST: f64 = 0.08;

impl Analysis for Scatter {
    fn name(&self) -> &'static str {
        "scatter"
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        let q = Quantity::OddRegions;
        let Some(cell) = run.cells.first() else {
            return vec![Finding::undecided(q, format!("{} is too small for places that lie apart", run.stretch()))];
        };
        let passes = run.trials(cell.id).len() as u32;
        if passes < 2 {
            return vec![Finding::undecided(q, "the run ended before two passes were made")];
        }
        let all = least(run, 0..passes);
        let usual = median(&all.values().copied().collect::<Vec<_>>());
        if usual <= 0.0 {
            return vec![Finding::undecided(q, "reads take no time")];
        }
        let (found, line) = regions(&all);
        let halves = [least(run, 0..passes / 2), least(run, passes / 2..passes)].map(|h| regions(&h).0);
        let apart = cell.bytes("apart");
        // What only one half of the passes shows was an event in time, not a place.
        let lasting: Vec<&Region> = found.iter().filter(|r| halves.iter().all(|h| h.iter().any(|o| o.meets(r)))).collect();
        // A stretch ends where the next place begins.
        let end = run.setting("end").unwrap_or(0).max(all.keys().last().map_or(0, |l| l + cell.bytes("len")));
        let ends = |at: u64| all.range(at + 1..).next().map_or(end, |next| *next.0);
        let name = |r: &&Region| format!("{} to {}: {} ms", Bytes(r.from), Bytes(ends(r.to)), three(r.us / 1e3));
        let text = format!("reads of {} usually take {} ms", Bytes(cell.bytes("len")), three(usual / 1e3));
        if line > 0.5 * usual {
            return vec![Finding::undecided(q, "reads differ from place to place by more than half of their time").evidence(text)];
        }
        let mut f = if lasting.is_empty() {
            let fleeting = found.len();
            let mut f = Finding::decided(q, 0.0, if fleeting > 0 { 0.7 } else { 0.85 });
            if fleeting > 0 {
                f = f.caveat(format!("{fleeting} stretches differed in some of the passes only"));
            }
            f
        } else {
            let strength = lasting.iter().map(|r| (r.us - usual).abs() / line).fold(f64::INFINITY, f64::min);
            Finding::decided(q, lasting.len() as f64, (0.7 + 0.1 * (strength - 1.0)).clamp(0.7, 0.93))
        };
        f = f.evidence(text);
        for r in lasting.iter().take(8) {
            f = f.evidence(name(r));
        }
        let least = WINDOW as u64 / 2 + 1;
        vec![f.caveat(format!("a stretch below {} or a difference below {} ms would not show", about(least * apart), three(line / 1e3)))]
    }

    fn figures(&self, run: &Case) -> Vec<Figure> {
        let points = least(run, 0..u32::MAX).iter().map(|(&at, us)| (at as f64 / MIB as f64, us / 1e3)).collect();
        vec![Figure {
            title: "time of a read by its place".into(),
            x: "offset on the card, MiB".into(),
            y: "ms".into(),
            log_x: false,
            log_y: false,
            series: vec![Series { name: "least of the passes".into(), points }],
        }]
    }
}

/// Least time of each place over some passes, in µs.
fn least(run: &Run, passes: std::ops::Range<u32>) -> BTreeMap<u64, f64> {
    let mut out: BTreeMap<u64, f64> = BTreeMap::new();
    for s in run.samples.iter().filter(|s| passes.contains(&s.trial)) {
        let t = out.entry(s.at).or_insert(f64::INFINITY);
        *t = t.min(s.took.micros());
    }
    out
}

#[derive(Clone, Debug, PartialEq)]
struct Region {
    /// First and last place.
    from: u64,
    to: u64,
    us: f64,
}

impl Region {
    fn meets(&self, o: &Region) -> bool {
        self.from <= o.to && o.from <= self.to
    }
}

/// Stretches whose running median lies beyond the line, and the line: the least difference that counts, in µs.
fn regions(all: &BTreeMap<u64, f64>) -> (Vec<Region>, f64) {
    let (places, us): (Vec<u64>, Vec<f64>) = all.iter().map(|(a, t)| (*a, *t)).unzip();
    let usual = median(&us);
    let n = us.len();
    if n < WINDOW {
        return (vec![], f64::INFINITY);
    }
    let window = |i: usize| i.saturating_sub(WINDOW / 2).min(n - WINDOW);
    let smooth: Vec<f64> = (0..n).map(|i| median(&us[window(i)..window(i) + WINDOW])).collect();
    // Scatter of neighbours: a region must not widen its own yardstick.
    let near: Vec<f64> = us.iter().zip(&smooth).map(|(t, s)| t - s).collect();
    let line = (6.0 * mad(&near)).max(LEAST * usual);
    let side = |i: usize| if (smooth[i] - usual).abs() > line { (smooth[i] - usual).signum() } else { 0.0 };
    let mut out = vec![];
    let mut i = 0;
    while i < n {
        let mut j = i + 1;
        while j < n && side(j) == side(i) {
            j += 1;
        }
        // The running median of five needs three; of the places themselves nearly all must lie on that side, so that two kinds of
        // place side by side are no region.
        let there = us[i..j].iter().filter(|t| (**t - usual) * side(i) > 0.5 * line).count();
        if side(i) != 0.0 && j - i > WINDOW / 2 && there * 5 >= (j - i) * 4 {
            out.push(Region { from: places[i], to: places[j - 1], us: median(&us[i..j]) });
        }
        i = j;
    }
    (out, line)
}
