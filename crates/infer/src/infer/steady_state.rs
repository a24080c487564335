//! Random writes until their rate stays: SNIA's rule, over rounds of equal bytes.
//!
//! Solid State Storage Performance Test Specification: over five rounds the largest and the smallest lie within 20 % of the mean, and the
//! line fitted to them rises or falls by no more than 10 % of it.

mod amplification;
mod begins;

use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::pipeline::{Analysis, Fit};
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{mean, quantile};
use crate::samples::{Cell, Run};
use crate::units::{Bytes, KIB, MIB, about};

/// Judges runs of `steady-state`.
pub struct SteadyState;

pub(super) const ANALYSES: &[&dyn Analysis] = &[&SteadyState];

/// Rounds of the rule, and after how many it is given up.
const WINDOW: usize = 5;
pub const LONG: usize = 100;
/// Rounds after a discard of everything.
pub const FRESH: usize = 2;

/// Roles: writes of the rounds; discards, and one that the target refused.
pub const WRITE: u8 = 0;
pub const DISCARD: u8 = 1;
pub const FAILED: u8 = 2;
const RANGE: f64 = 0.2;
const SLOPE: f64 = 0.1;

/// A rate that falls by more over the five rounds goes on falling where the region was not yet written so many times.
const SETTLED: f64 = 0.03;
const TWICE: f64 = 2.0;
/// What five rounds fell by may come so many times more.
const FURTHER: f64 = 3.0;
const STILL_CHANGES: f64 = 0.65;

/// What the rule lets pass in five rounds may come in those after them: more where writes of another size went before, whose layout gives way
/// slowly, than where the same writes did.
const DRIFT: f64 = SLOPE / 5.0;

/// Garbage collection has begun where a round is slower than this share of the first ones.
const FALLEN: f64 = 0.8;

/// Writes a second of each round.
pub fn rounds(run: &Run, cell: &Cell) -> Vec<f64> {
    let one = |t: &Vec<&crate::samples::Sample>| {
        let t: Vec<u64> = t.iter().filter(|s| s.role == WRITE).map(|s| s.took.0).collect();
        (t.len() > 1).then(|| t.len() as f64 * 1e9 / t.iter().sum::<u64>().max(1) as f64)
    };
    run.trials(cell.id).iter().filter_map(one).collect()
}

/// So many times the region is written before rounds of another size, or fill, are looked at.
const SETTLES: f64 = 1.5;

/// Do these last rounds keep the rule?
fn keeps_rule(last: &[f64]) -> bool {
    let range = quantile(last, 1.0) - quantile(last, 0.0);
    range <= RANGE * mean(last) && rise(last).abs() <= SLOPE
}

/// What the line fitted to these rounds rises by from the first to the last, as a share of their mean.
fn rise(last: &[f64]) -> f64 {
    let m = mean(last);
    let middle = (last.len() as f64 - 1.0) / 2.0;
    let (top, bottom) = last.iter().enumerate().fold((0.0, 0.0), |s, (i, y)| {
        let x = i as f64 - middle;
        (s.0 + x * (y - m), s.1 + x * x)
    });
    top / bottom * (last.len() as f64 - 1.0) / m
}

/// What the last five rounds, which keep the rule, fell by, where they may go on: the rule lets pass what falls by 10 % in a fifth of the region.
fn falls(all: &[f64], round: f64, region: f64) -> Option<f64> {
    let fall = -rise(&all[all.len() - WINDOW..]);
    (fall > SETTLED && (all.len() as f64) * round < TWICE * region).then_some(fall)
}

/// The first round whose rate had fallen.
fn onset(all: &[f64]) -> Option<usize> {
    let first = quantile(all.get(..3)?, 0.5);
    (3..all.len()).find(|&i| all[i] < FALLEN * first)
}

/// The mean of the five rounds that keep the rule, where garbage collection had begun before them or the whole region was written once:
/// what was steady before that is the spare flash of a card that was not busy.
pub fn steady(all: &[f64], round: f64, region: f64) -> Option<f64> {
    let last = all.get(all.len().checked_sub(WINDOW)?..)?;
    let begun = onset(all).is_some_and(|i| i + 2 <= all.len() - WINDOW) || all.len() as f64 * round >= 2.0 * region;
    (begun && keeps_rule(last)).then(|| mean(last))
}

/// The steady rate of a cell. In those after the first one garbage is collected already; but what was written in the size before, or freed
/// by a discard, has to be written over first.
pub fn found(run: &Run, cell: &Cell) -> Option<f64> {
    let all = rounds(run, cell);
    let (round, window) = (cell.bytes("round") as f64, cell.bytes("window") as f64);
    if cell.id == 0 {
        return steady(&all, round, window).filter(|_| falls(&all, round, window).is_none());
    }
    let last = all.get(all.len().checked_sub(WINDOW)?..)?;
    (all.len() as f64 * round >= SETTLES * window && keeps_rule(last)).then(|| mean(last))
}

/// What the last five rounds rose by over the five before, where they may go on.
fn rises(all: &[f64]) -> Option<f64> {
    let before = all.get(all.len().checked_sub(2 * WINDOW)?..)?;
    let rise = mean(&before[WINDOW..]) / mean(&before[..WINDOW]) - 1.0;
    (rise > SETTLED).then_some(rise)
}

/// The bounds of these rounds, and what may come after them: below, and above.
fn bounds(rounds: &[f64], below: f64, above: f64) -> [f64; 2] {
    [quantile(rounds, 0.0) * (1.0 - below), quantile(rounds, 1.0) * (1.0 + above)]
}

/// The cells after the first one.
fn others(run: &Run) -> Vec<Finding> {
    let mut out = vec![];
    for cell in run.cells.iter().skip(1) {
        let held = cell.get("held");
        let all = rounds(run, cell);
        let text = format!("random writes of {} a second, in rounds: {}", Bytes(cell.bytes("size")), told(&all));
        let q = match (cell.bytes("size") / KIB, held) {
            (16, 100) => Quantity::Steady16kIops,
            (64, 100) => Quantity::Steady64kIops,
            (_, 75) => Quantity::Steady75Iops,
            (_, 50) => Quantity::Steady50Iops,
            _ => Quantity::DiscardRestores,
        };
        if held < 100 && run.samples.iter().any(|s| s.cell == cell.id && s.role == FAILED) {
            out.push(Finding::undecided(q, "this target takes no discard"));
            continue;
        }
        if held == 0 {
            if let (Some(last), Some(steady)) = (all.last(), found(run, &run.cells[0])) {
                let before = rounds(run, &run.cells[0]);
                let window = &before[before.len() - WINDOW..];
                let f = Finding::decided(q, last / steady, 0.85).evidence(text);
                let f = f.evidence(format!("before it, in the steady state: {steady:.0}"));
                let [low, high] = bounds(window, DRIFT, DRIFT);
                out.push(Finding { interval: Some([last / high, last / low]), ..f });
            }
            continue;
        }
        out.push(match found(run, cell) {
            Some(rate) => {
                let last = &all[all.len() - WINDOW..];
                let mut f = Finding::decided(q, rate, 0.85).evidence(text);
                if held == 100 {
                    f.interval = Some(bounds(last, SLOPE / 2.0, SLOPE));
                    if let Some(rise) = rises(&all) {
                        f.confidence = STILL_CHANGES;
                        f = f.caveat(format!(
                            "steady by SNIA's rule, and still rising, by {:.0} % in the last {WINDOW} rounds",
                            100.0 * rise
                        ));
                    }
                } else {
                    f.interval = Some(bounds(last, DRIFT, DRIFT));
                }
                f
            }
            None => Finding::undecided(q, format!("not steady after {} rounds (more --time and --writes would decide)", all.len()))
                .evidence(text),
        });
    }
    out
}

impl Analysis for SteadyState {
    fn name(&self) -> &'static str {
        "steady-state"
    }

    fn fit(&self) -> Fit {
        Fit::Today
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        const Q: Quantity = Quantity::RandomWriteSteadyIops;
        let Some(cell) = run.cells.first() else { return vec![Finding::undecided(Q, format!("{} is too small", run.stretch()))] };
        let mut all = rounds(run, cell);
        let (round, region) = (cell.bytes("round") as f64, cell.bytes("window") as f64);
        // What the time cut is no whole round.
        let whole =
            |t: &Vec<&crate::samples::Sample>| t.iter().filter(|s| s.role == WRITE).map(|s| s.len).sum::<u64>() as f64 >= 0.99 * round;
        if run.trials(cell.id).last().is_some_and(|t| !whole(t)) {
            all.pop();
        }
        let written = about((all.len() as f64 * round) as u64);
        let text = format!("random writes of {} a second, in rounds of {}: {}", Bytes(cell.bytes("size")), about(round as u64), told(&all));
        let mut out = vec![];
        out.extend(begins::judged(run, cell, &text));
        out.push(match steady(&all, round, region) {
            Some(rate) => {
                let last = &all[all.len() - WINDOW..];
                let f = Finding::decided(Q, rate, 0.85).evidence(text);
                let mut f = f.caveat(format!("within {} of the card, as full as it is now", Bytes(region as u64)));
                // What the rule lets pass in five rounds may come in those after them.
                let [mut low, high] = bounds(last, SLOPE, DRIFT);
                if let Some(fall) = falls(&all, round, region) {
                    f = f.caveat(format!("steady by SNIA's rule, and still falling, by {:.0} % in the last {WINDOW} rounds", 100.0 * fall));
                    (f.confidence, low) = (STILL_CHANGES, low.min(rate * (1.0 - FURTHER * fall)));
                }
                Finding { interval: Some([low, high]), ..f }
            }
            None => {
                let fell = onset(&all).is_some();
                let rest = if fell { "the rate still changes" } else { "the rate has not fallen yet: the spare flash may not be used up" };
                let rounds = if all.len() == 1 { "1 round".to_string() } else { format!("{} rounds", all.len()) };
                let why = format!("not steady after {rounds}, {written} in all; {rest} (more --time and --writes would decide)");
                Finding::undecided(Q, why).evidence(text)
            }
        });
        out.extend(others(run));
        out.extend(amplification::judged(run));
        out
    }

    fn figures(&self, run: &Case) -> Vec<Figure> {
        let Some(cell) = run.cells.first() else { return vec![] };
        // Every size and fill from its own beginning.
        let one = |c: &Cell| {
            let round = c.bytes("round") as f64 / MIB as f64;
            let points: Vec<(f64, f64)> = rounds(run, c).iter().enumerate().map(|(i, r)| ((i + 1) as f64 * round, *r)).collect();
            let size = Bytes(c.bytes("size"));
            let name = match c.get("held") {
                100 => format!("{size}"),
                0 => format!("{size}, after a discard"),
                held => format!("{size}, {held} % full"),
            };
            (!points.is_empty()).then_some(Series { name, points })
        };
        let over_bytes: Vec<Series> = run.cells.iter().filter_map(one).collect();
        if over_bytes.is_empty() {
            return vec![];
        }
        let small = |c: &&Cell| c.bytes("size") == cell.bytes("size") && c.get("held") > 0;
        let held = |c: &Cell| Some((c.get("held") as f64, found(run, c)?));
        let mut over_fill: Vec<(f64, f64)> = run.cells.iter().filter(small).filter_map(held).collect();
        nandscope_stats::ascending(&mut over_fill, |a| a.0);
        let fill = Figure {
            title: "steady random writes over fill".into(),
            x: "percent of the region with data".into(),
            y: "IOPS".into(),
            log_x: false,
            log_y: false,
            series: vec![Series { name: format!("writes of {}", Bytes(cell.bytes("size"))), points: over_fill }],
        };
        let fill = Some(fill).filter(|f| f.series[0].points.len() > 1);
        let rate = Figure {
            title: "random writes over bytes written".into(),
            x: "MiB written".into(),
            y: "IOPS".into(),
            log_x: false,
            log_y: false,
            series: over_bytes,
        };
        [Some(rate), fill].into_iter().flatten().collect()
    }
}

/// Some of the rounds, the last ones all.
fn told(all: &[f64]) -> String {
    let step = all.len().div_ceil(10).max(1);
    let some = all.iter().enumerate().filter(|(i, _)| i % step == 0 || i + WINDOW >= all.len());
    some.map(|(_, r)| format!("{r:.0}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_is_what_stays_after_the_fall() {
        let fresh = [2000.0, 2010.0, 1990.0, 2000.0, 2005.0, 1995.0];
        assert_eq!(steady(&fresh, 1.0, 100.0), None, "the spare flash is not used up");
        let falling: Vec<f64> = fresh.iter().copied().chain([1500.0, 1200.0, 1000.0, 880.0, 790.0]).collect();
        assert_eq!(steady(&falling, 1.0, 100.0), None);
        let stays: Vec<f64> = falling.iter().copied().chain([500.0, 505.0, 495.0, 502.0, 498.0]).collect();
        assert_eq!(steady(&stays, 1.0, 100.0), Some(500.0));
        // Steady by the rule, and yet falling: more rounds say where it ends.
        let slowly: Vec<f64> = falling.iter().copied().chain([520.0, 510.0, 500.0, 490.0, 480.0]).collect();
        assert!(steady(&slowly, 1.0, 100.0).is_some() && falls(&slowly, 1.0, 100.0).is_some_and(|f| (f - 0.08).abs() < 1e-9));
        assert!(falls(&slowly, 1.0, 8.0).is_none(), "the region was written twice");
        assert!(falls(&stays, 1.0, 100.0).is_none());
        let wide: Vec<f64> = falling.iter().copied().chain([500.0, 560.0, 440.0, 560.0, 440.0]).collect();
        assert_eq!(steady(&wide, 1.0, 100.0), None, "a range of a quarter");
    }
}
