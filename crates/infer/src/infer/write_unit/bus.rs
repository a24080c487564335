//! Writes that the bus holds up: the card programs a unit in less time than the bus takes to bring it. Then no step shows from some size on,
//! and below it only writes that touch one unit more than others of their size say how large units are.

use super::model::{Count, Fill, PRICES, Write, misfit, priced, prices};
use crate::infer::stats::median;
use crate::units::KIB;
use nandscope_stats::line;
use std::collections::BTreeMap;

/// Sizes that the line of the bus goes through, at least, and how many deviations above it a write is not held up.
const SIZES: usize = 5;
const NEAR: f64 = 3.0;

/// Writes that are not held up, at least.
const LEFT: usize = 16;

/// How often writes are told apart: those that the bus holds up, and those that the flash does.
const ROUNDS: usize = 3;

/// Chi squared that a bus has to be worth: its two prices, and the size from which on it holds writes up.
const PRICE: f64 = 16.0;

/// How well a bus and units explain the times.
pub(super) struct Bus {
    /// Chi squared of units of each size, in the order they were asked for.
    pub units: Vec<f64>,
    /// Chi squared where writes that the bus does not hold up take the same time, whatever units they touch.
    pub none: f64,
}

/// `noise` is a part of a time; `None` where there is no such line.
pub(super) fn bus(writes: &[Write], sizes: &BTreeMap<u64, Vec<f64>>, noise: f64, units: &[u64]) -> Option<Bus> {
    let rows: Vec<(f64, f64)> = sizes.iter().rev().map(|(s, t)| (*s as f64 / KIB as f64, median(t))).collect();
    // Through the longest, and as many more as explain the times best.
    let through = |n: usize| line(rows[..n].iter().map(|r| (r.0, r.1, r.1.powi(-2)))).filter(|l| l.0 >= 0.0 && l.1 > 0.0);
    let of = |(base, slope): (f64, f64), features: &dyn Fn(&Write) -> [f64; PRICES]| -> f64 {
        let held_up = |w: &Write| base + slope * w.len as f64 / KIB as f64;
        let mut free: Vec<&Write> = writes.iter().filter(|w| w.us > held_up(w) * (1.0 + NEAR * noise)).collect();
        let mut x = [0.0; PRICES];
        for _ in 0..ROUNDS {
            if free.len() < LEFT {
                return f64::INFINITY;
            }
            x = prices(&free.iter().map(|w| (features(w), w.us, noise * w.us)).collect::<Vec<_>>());
            free = writes.iter().filter(|w| priced(&features(w), &x) > held_up(w)).collect();
        }
        writes.iter().map(|w| misfit(w.us, priced(&features(w), &x).max(held_up(w)), noise * w.us)).sum::<f64>() + PRICE
    };
    // All touch one unit.
    let one = |w: &Write| Write { at: 0, ..*w }.features(u64::MAX, u64::MAX, Count::Length, Fill::Nothing);
    let lines = (SIZES..rows.len()).filter_map(through).map(|l| (l, of(l, &one)));
    let (line, none) = lines.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let best = |u: &u64| {
        let ways = Count::PLAIN.into_iter().flat_map(|count| Fill::PLAIN.map(|fill| (count, fill)));
        ways.map(|(count, fill)| of(line, &|w| w.features(*u, u64::MAX, count, fill)) + fill.price()).fold(f64::INFINITY, f64::min)
    };
    Some(Bus { units: units.iter().map(best).collect(), none })
}
