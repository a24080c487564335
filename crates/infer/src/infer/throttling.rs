//! A card that is hot slows itself down: reads of one place get slower together and stay so, and rest brings the rate back.

use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::pipeline::{Analysis, Fit};
use super::write_cache::ratios;
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{mean, mean_within, median};
use crate::samples::{Cell, Run};
use crate::units::Bytes;

/// Judges runs of `throttling`.
pub struct Throttling;

pub(super) const ANALYSES: &[&dyn Analysis] = &[&Throttling];

/// Roles: reads under load, and those after a rest.
pub const LOAD: u8 = 0;
pub const RESTED: u8 = 1;

/// The slower rounds take longer than those before by this factor: the least of them against the upper ones of those.
const SLOWER: f64 = 1.08;
/// Rounds before a change.
const BEFORE: usize = 2;
/// Rounds after it, and the share of those before that they last: what is over sooner is a host that was busy.
const AFTER: usize = 6;
const AFTER_SHARE: usize = 8;
/// So much of the change must be gone after a rest for it to be heat.
const BACK: f64 = 0.3;
/// The share of a round's longest reads that count as stalls.
const STALLS: usize = 8;

/// µs of a read in each round, without the longest.
pub fn rounds(run: &Run, cell: &Cell, role: u8) -> Vec<f64> {
    let one = |t: &Vec<&crate::samples::Sample>| {
        let mut t: Vec<f64> = t.iter().filter(|s| s.role == role).map(|s| s.took.micros()).collect();
        t.sort_by(f64::total_cmp);
        t.truncate(t.len() - t.len().div_ceil(STALLS));
        (t.len() >= 6).then(|| mean(&t))
    };
    run.trials(cell.id).iter().filter_map(one).collect()
}

/// The first round from which on reads are slower and stay so. Whether they do, tails tell, which feel no single round; where, the two means
/// that explain the rounds best.
pub fn after(rounds: &[f64]) -> Option<usize> {
    let all = ratios(rounds);
    let cuts = BEFORE..rounds.len().checked_sub(AFTER)? + 1;
    let explained = |c: usize| (mean(&rounds[c..]) - mean(&rounds[..c])).powi(2) * c as f64 * (rounds.len() - c) as f64;
    let cut = cuts.max_by(|&a, &b| explained(a).total_cmp(&explained(b)))?;
    (all[cut] >= SLOWER && rounds.len() - cut >= cut / AFTER_SHARE).then_some(cut)
}

impl Analysis for Throttling {
    fn name(&self) -> &'static str {
        "throttling"
    }

    fn fit(&self) -> Fit {
        Fit::None
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        const Q: Quantity = Quantity::ThrottledAfterS;
        let Some(cell) = run.cells.first() else { return vec![Finding::undecided(Q, "the region is too small for two reads")] };
        let all = rounds(run, cell, LOAD);
        let size = cell.bytes("size") as f64;
        let seconds: Vec<f64> = {
            let first = run.of(cell.id).next().map_or(0, |s| s.start.0);
            run.trials(cell.id).iter().filter_map(|t| t.first()).map(|s| (s.start.0 - first) as f64 / 1e9).collect()
        };
        let under: f64 = run.of(cell.id).filter(|s| s.role == LOAD).map(|s| (s.start.0 + s.took.0) as f64 / 1e9).fold(0.0, f64::max)
            - run.of(cell.id).next().map_or(0.0, |s| s.start.0 as f64 / 1e9);
        let rate = |us: &[f64]| size / median(us);
        if all.len() < BEFORE + AFTER || under < 1.0 {
            return vec![Finding::undecided(Q, "too few reads under load (more --time would decide)")];
        }
        let reads = format!("sequential reads of {} over {}", Bytes(size as u64), Bytes(cell.bytes("stretch")));
        let Some(cut) = after(&all) else {
            let why = format!(
                "no slower reads in {under:.0} s of load, {:.1} MB/s: it did not get hot, or was so from the start (more --time looks further)",
                rate(&all)
            );
            return vec![Finding::at_least(Q, under.floor(), 0.85, why).evidence(reads)];
        };
        let (fast, slow) = all.split_at(cut);
        let rested = rounds(run, cell, RESTED);
        let text = format!("{reads}: {:.1} MB/s for {:.0} s, {:.1} MB/s from then on", rate(fast), seconds[cut], size / mean(slow));
        let Some(&back) = rested.first() else {
            return vec![Finding::undecided(Q, "reads became slower; whether rest brings the rate back was not tried").evidence(text)];
        };
        let (was, hot) = (median(fast), mean(slow));
        let gone = (hot - back) / (hot - was);
        let text = format!("{text}; after a rest {:.1} MB/s", size / back);
        if gone < BACK {
            let why = "reads became slower and a rest did not bring the rate back: something other than heat";
            return vec![Finding::undecided(Q, why).evidence(text)];
        }
        let busy = "a host that was busy with something else just as long would look the same";
        let interval = [seconds[cut - 1], seconds.get(cut + 1).copied().unwrap_or(under)];
        let when = Finding { interval: Some(interval), ..Finding::decided(Q, seconds[cut], 0.85).evidence(text.clone()).caveat(busy) };
        let (m, half) = mean_within(slow);
        let hot = Finding::decided(Quantity::RateThrottledMbS, size / m, 0.85).evidence(text);
        vec![when, Finding { interval: Some([size / (m + half), size / (m - half).max(m / 2.0)]), ..hot }]
    }

    fn figures(&self, run: &Case) -> Vec<Figure> {
        let Some(cell) = run.cells.first() else { return vec![] };
        let size = cell.bytes("size") as f64;
        let first = run.of(cell.id).next().map_or(0, |s| s.start.0);
        let series = |role: u8, name: &str| {
            let one = |t: &Vec<&crate::samples::Sample>| {
                let t: Vec<_> = t.iter().filter(|s| s.role == role).collect();
                let took: Vec<f64> = t.iter().map(|s| s.took.micros()).collect();
                Some(((t.first()?.start.0 - first) as f64 / 1e9, size / mean(&took)))
            };
            Series { name: name.into(), points: run.trials(cell.id).iter().filter_map(one).collect() }
        };
        let all = [series(LOAD, "under load"), series(RESTED, "after a rest")];
        vec![Figure {
            title: "read rate under load".into(),
            x: "s".into(),
            y: "MB/s".into(),
            log_x: false,
            log_y: false,
            series: all.into_iter().filter(|s| !s.points.is_empty()).collect(),
        }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noisy(i: usize, us: f64) -> f64 {
        us * (1.0 + 0.02 * ((i * 7919) % 13) as f64 / 13.0)
    }

    #[test]
    fn slower_rounds_that_stay_are_a_change_and_a_busy_host_is_none() {
        let hot: Vec<f64> = (0..90).map(|i| noisy(i, if i < 61 { 9_000.0 } else { 14_000.0 })).collect();
        assert_eq!(after(&hot), Some(61));
        assert_eq!(after(&hot[..64]), None, "too soon to say");
        assert_eq!(after(&(0..90).map(|i| noisy(i, 9_000.0)).collect::<Vec<_>>()), None);
        let busy: Vec<f64> = (0..90).map(|i| noisy(i, if (40..60).contains(&i) { 14_000.0 } else { 9_000.0 })).collect();
        assert_eq!(after(&busy), None);
    }
}
