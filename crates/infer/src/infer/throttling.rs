//! A card that is hot slows itself down: reads of one place get slower together and stay so, and rest brings the rate back.

use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::pipeline::{Analysis, Fit};
use super::write_cache::ratios;
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{mean, mean_within, median, quantile};
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
/// Rounds of which a rate is known: the first slower one is another, as some of its reads may have been fast.
const LEAST: usize = 3;
/// Rounds that are slower by that factor, and after which a bound is none: it may have been hot for a while.
const SOME: usize = 2;
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

/// The first round from which on reads are slower and stay so, as far as is known when that shows. Whether they do, tails tell, which feel no
/// single round.
pub fn after(rounds: &[f64]) -> Option<usize> {
    let all = ratios(rounds);
    let cut = explains(rounds, BEFORE..rounds.len().checked_sub(AFTER)? + 1)?;
    (all[cut] >= SLOWER && rounds.len() - cut >= cut / AFTER_SHARE).then_some(cut)
}

/// Of these places the one before and after which two means explain the rounds best.
fn explains(rounds: &[f64], cuts: std::ops::Range<usize>) -> Option<usize> {
    let explained = |c: usize| (mean(&rounds[c..]) - mean(&rounds[..c])).powi(2) * c as f64 * (rounds.len() - c) as f64;
    cuts.max_by(|&a, &b| explained(a).total_cmp(&explained(b)))
}

/// Rounds slower than the fast ones.
fn slower(rounds: &[f64]) -> usize {
    let fast = quantile(rounds, 0.25);
    rounds.iter().filter(|&&r| r > SLOWER * fast).count()
}

/// Seconds after which reads became slower: of those of the rounds beside the change, the place which leaves the fewest slow ones before it and
/// fast ones after it.
fn seconds_until(reads: &[(f64, f64)], line: f64) -> Option<f64> {
    let mut best = (reads.iter().filter(|r| r.1 <= line).count(), reads.first()?.0);
    let mut wrong = best.0 as isize;
    for (i, r) in reads.iter().enumerate() {
        wrong += if r.1 > line { 1 } else { -1 };
        if (wrong as usize) < best.0 {
            best = (wrong as usize, reads.get(i + 1).map_or(r.0, |n| n.0));
        }
    }
    Some(best.1)
}

impl Analysis for Throttling {
    fn name(&self) -> &'static str {
        "throttling"
    }

    fn fit(&self) -> Fit {
        Fit::Today
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        const Q: Quantity = Quantity::ThrottledAfterS;
        let Some(cell) = run.cells.first() else {
            return vec![Finding::undecided(Q, format!("{} is too small for two reads", run.stretch()))];
        };
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
            let some = slower(&all);
            if some >= SOME {
                let why = format!(
                    "reads were slower in {some} of {} rounds, and did not stay so: heat that comes and goes, or a host that was busy (more --time would decide)",
                    all.len()
                );
                return vec![Finding::undecided(Q, why).evidence(reads)];
            }
            let why = format!(
                "no slower reads in {under:.0} s of load, {:.1} MB/s: it did not get hot, or was so from the start (more --time looks further)",
                rate(&all)
            );
            return vec![Finding::at_least(Q, under.floor(), 0.85, why).evidence(reads)];
        };
        // That they are slower showed as soon as it could; where they became so, the rounds since then say, too.
        let cut = explains(&all, BEFORE..all.len() - LEAST).unwrap_or(cut);
        let (fast, slow) = all.split_at(cut);
        let rested = rounds(run, cell, RESTED);
        let slow = &slow[1..];
        let (was, hot) = (median(fast), mean(slow));
        let beside = run.trials(cell.id);
        let beside = beside[cut - 1..beside.len().min(cut + 2)].iter().flatten().filter(|s| s.role == LOAD);
        let origin = run.of(cell.id).next().map_or(0, |s| s.start.0);
        let beside: Vec<(f64, f64)> = beside.map(|s| ((s.start.0 - origin) as f64 / 1e9, s.took.micros())).collect();
        let until = seconds_until(&beside, (was * hot).sqrt()).unwrap_or(seconds[cut]);
        let text = format!("{reads}: {:.1} MB/s for {until:.0} s, {:.1} MB/s from then on", rate(fast), size / hot);
        let Some(&back) = rested.first() else {
            return vec![Finding::undecided(Q, "reads became slower; whether rest brings the rate back was not tried").evidence(text)];
        };
        let gone = (hot - back) / (hot - was);
        let text = format!("{text}; after a rest {:.1} MB/s", size / back);
        if gone < BACK {
            let why = "reads became slower and a rest did not bring the rate back: something other than heat";
            return vec![Finding::undecided(Q, why).evidence(text)];
        }
        let busy = "a host that was busy with something else just as long would look the same";
        let interval = [seconds[cut - 1], seconds.get(cut + 1).copied().unwrap_or(under)];
        let when = Finding { interval: Some(interval), ..Finding::decided(Q, until, 0.85).evidence(text.clone()).caveat(busy) };
        let (most, least) = (quantile(slow, 1.0), quantile(slow, 0.0));
        if most > SLOWER * least {
            let why = format!("it goes on changing: {:.1} to {:.1} MB/s in the rounds that followed", size / most, size / least);
            return vec![when, Finding::undecided(Quantity::RateThrottledMbS, why).evidence(text)];
        }
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
        assert_eq!((slower(&busy), slower(&hot[..61])), (20, 0), "neither is it a card that stays cool");
        let reads: Vec<(f64, f64)> = (0..40).map(|i| (f64::from(i), if i < 17 && i != 5 { 9.0 } else { 14.0 })).collect();
        assert_eq!(seconds_until(&reads, 11.0), Some(17.0), "one read that was late is no change");
    }
}
