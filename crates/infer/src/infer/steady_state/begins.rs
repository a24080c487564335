//! When garbage collection begins: from then on some writes wait until a block has been emptied.
//!
//! Blocks of a few writes: by how much their mean exceeds their median. A cache that is full makes all writes slower, and leaves this as it is; what is
//! copied for one of many writes does not. Where it changes, the two means say that explain the blocks best (least squares).
//!
//! What fools it: a cache that hides what is copied until it is full (undecided where writes get slower there for another reason), a card that
//! copies a little with each write, what was written before the run.

use super::WRITE;
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{mean, median};
use crate::samples::{Cell, Run};
use crate::units::Bytes;

/// Writes of a block: of fewer the median says little, and more hide an early change.
const BLOCK: usize = 16;
/// Blocks on either side of a change.
const LEAST: usize = 4;
/// What the excess becomes by this factor at least, ...
const MORE: f64 = 1.3;
/// ... by this share of a write, ...
const MATTERS: f64 = 0.05;
/// ... and what two means explain more than one, in variances of a block.
const CLEAR: f64 = 25.0;
/// Changes that explain less by up to so many variances are possible.
const POSSIBLE: f64 = 4.0;
/// Where usual writes become slower by this factor at the same place, something other has changed.
const LEVEL: f64 = 1.1;
/// Blocks before and after that are compared for it.
const BESIDE: usize = 32;
/// What is known no better than this factor is not known.
const APART: f64 = 2.0;
const SCORE: f64 = 0.75;

pub(super) fn judged(run: &Run, cell: &Cell, text: &str) -> Option<Finding> {
    const Q: Quantity = Quantity::CollectionOnset;
    let t: Vec<f64> = run.of(cell.id).filter(|s| s.role == WRITE).map(|s| s.took.micros()).collect();
    let blocks: Vec<&[f64]> = t.chunks_exact(BLOCK).collect();
    if blocks.len() < 8 * LEAST {
        return None;
    }
    let usual: Vec<f64> = blocks.iter().map(|b| median(b)).collect();
    let excess: Vec<f64> = blocks.iter().zip(&usual).map(|(b, m)| mean(b) - m).collect();
    let undecided = |why: &str| Some(Finding::undecided(Q, why).evidence(text));
    let Some(Change { at, low, high }) = change(&excess, median(&usual)) else {
        return undecided("writes waited alike from first to last: the card collected already, not yet, or a little with each write");
    };
    if change(&excess[..at], median(&usual)).is_some() {
        return undecided("what writes wait for grows little by little: no place where it begins");
    }
    let (before, after) = (median(&usual[at.saturating_sub(BESIDE)..at]), median(&usual[at..(at + BESIDE).min(usual.len())]));
    if after > LEVEL * before {
        return undecided("all writes became slower at the same place: a cache that was full may have hidden when it began");
    }
    let bytes = |i: usize| i as f64 * BLOCK as f64 * cell.bytes("size") as f64;
    if high as f64 > APART * low.max(1) as f64 {
        return undecided("too few writes waited for it to say when it began");
    }
    let f = Finding::decided(Q, bytes(at), SCORE).evidence(text).evidence(format!(
        "after {} a write took {:.2} ms longer on average than a usual one, before it {:.2} ms",
        Bytes(bytes(at) as u64),
        mean(&excess[at..]) / 1e3,
        // No "-0.00".
        (mean(&excess[..at]) / 10.0).round() / 100.0 + 0.0
    ));
    let f = f.caveat("what was written before this run took part of it");
    Some(Finding { interval: Some([bytes(low.saturating_sub(1)), bytes(high + 1)]), ..f })
}

/// A place where a series rises, and the first and the last where it may.
#[derive(Debug, PartialEq)]
struct Change {
    at: usize,
    low: usize,
    high: usize,
}

fn change(excess: &[f64], write: f64) -> Option<Change> {
    let n = excess.len();
    if n < 4 * LEAST {
        return None;
    }
    let all: f64 = excess.iter().sum();
    let whole = excess.iter().map(|e| e * e).sum::<f64>() - all * all / n as f64;
    let mut before = 0.0;
    let explained: Vec<f64> = (0..n)
        .map(|c| {
            let by = if c < LEAST || c + LEAST > n {
                0.0
            } else {
                let (a, b) = (before / c as f64, (all - before) / (n - c) as f64);
                // Only what rises.
                (b - a).max(0.0).powi(2) * c as f64 * (n - c) as f64 / n as f64
            };
            before += excess[c];
            by
        })
        .collect();
    let at = (0..n).max_by(|&a, &b| explained[a].total_cmp(&explained[b]))?;
    let best = explained[at];
    let variance = ((whole - best) / n as f64).max(1e-9);
    if best < CLEAR * variance || at < LEAST {
        return None;
    }
    let (first, then) = (mean(&excess[..at]), mean(&excess[at..]));
    let possible = |c: &usize| explained[*c] > best - POSSIBLE * variance;
    let clear = then > MORE * first && then - first > MATTERS * write;
    clear.then_some(Change { at, low: (0..=at).find(possible)?, high: (at..n).rev().find(possible)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_that_begin_are_seen_and_a_level_that_rises_is_none() {
        let stalls = |from: usize| -> Vec<f64> {
            (0..400).map(|i| 3.0 + ((i * 7919) % 13) as f64 + if i >= from && i % 3 == 0 { 900.0 } else { 0.0 }).collect()
        };
        let c = change(&stalls(90), 300.0).unwrap();
        assert!((88..=92).contains(&c.at) && c.low <= 90 && c.high >= 90, "{c:?}");
        assert_eq!(change(&stalls(400), 300.0), None);
        assert_eq!(change(&stalls(0), 300.0), None);
    }
}
