//! Write amplification and spare flash, from the steady rates with 100, 75 and 50 % of the region full.
//!
//! A random write takes a + b (A - 1): a without collection, b for each unit that is copied, A the amplification. Of three rates and a law
//! by which A follows from the spare flash, all three unknowns follow. Which law, depends on what block a card empties, which nobody can see; two of
//! them lie at the ends of what controllers do. In the order of filling (Desnoyers, Analytic modeling of SSD write performance, 2012): a block holds a
//! share v = exp(-alpha (1 - v)) that is still valid, alpha flash over data; A = 1 / (1 - v). The emptiest one (greedy; Desnoyers, Analytic models of SSD
//! write performance, 2014; Bux and Iliadis 2010): blocks of N units lose their units one by one, i of them at a rate in proportion to i, and are taken at
//! j = N (1 - 1 / A), so that alpha = A (1 / (j + 1) + ... + 1 / N). For many units that is the first law; for few it needs less flash. Choosing the
//! emptiest of a few and weighing age against what is free lie between them (Van Houdt 2013).
//!
//! A map larger than the memory misses less with less data; where collections are seen apart, the other writes say by how much, and it is taken off.
//!
//! What fools it: such a map behind a cache that hides collections, writes that are not uniform inside the card (hot and cold data kept apart),
//! a region that is a part of the card, collection at rest (nothing rests here).

use super::{DISCARD, WINDOW, WRITE, found, onset, rounds};
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{mean, median};
use crate::samples::Run;

/// Spare flash that is looked for, as a share of the data.
const LEAST: f64 = 0.01;
const MOST: f64 = 1.0;
/// Means of five rounds are known no better than this, whatever they scatter by.
const FLOOR: f64 = 0.002;
/// The factor by which rates are off the law where the emptiest block is taken, and not the one that was filled first.
const OFF: f64 = 1.1;
/// Bounds further apart than this say nothing.
const APART: f64 = 3.0;
/// A write that waits for a collection takes this many times as long as a usual one.
const NO_STALL: f64 = 3.0;
/// Collections are seen apart where the others take less than this share of the time of all.
const VISIBLE: f64 = 0.9;
/// The first writes may not take longer than writes without any collection, but for this.
const LONGER: f64 = 1.1;

/// Units of a block where the emptiest is taken: half of the 64 pages of the smallest blocks that data sheets name.
const UNITS: f64 = 32.0;
/// Amplification with so much flash for each unit of data: where blocks are emptied in the order of filling, and where the emptiest is.
const LAWS: [fn(f64) -> f64; 2] = [in_order, emptiest];

fn in_order(alpha: f64) -> f64 {
    let mut v: f64 = 0.9;
    // The map contracts: alpha exp(-alpha (1 - v)) is below 1 at its lower fixed point, alpha = 1.01 in some hundred steps.
    for _ in 0..2000 {
        v = (-alpha * (1.0 - v)).exp();
    }
    1.0 / (1.0 - v).max(1e-6)
}

fn emptiest(alpha: f64) -> f64 {
    // Sums of 1 / i are logarithms but for half a step. Less flash goes with a larger amplification.
    let flash = |a: f64| a * ((UNITS + 0.5) / (UNITS * (1.0 - 1.0 / a) + 0.5)).ln();
    let (mut low, mut high) = (1.0 + 1e-9, 1e6);
    for _ in 0..60 {
        let middle = f64::sqrt(low * high);
        if flash(middle) > alpha { low = middle } else { high = middle }
    }
    f64::sqrt(low * high)
}

/// Amplification with 100, 75 and 50 % full, where the spare flash is this share of the region.
fn at_fills(law: fn(f64) -> f64, spare: f64) -> [f64; 3] {
    [1.0, 0.75, 0.5].map(|held| law((1.0 + spare) / held))
}

/// What the last quarter adds over what the one before adds: falls with the spare flash.
fn ratio(law: fn(f64) -> f64, spare: f64) -> f64 {
    let [full, more, half] = at_fills(law, spare);
    (full - more) / (more - half)
}

/// The spare flash that has this ratio; beyond the ends the nearer one.
fn spare(law: fn(f64) -> f64, of: f64) -> f64 {
    let (mut low, mut high) = (LEAST, MOST);
    for _ in 0..40 {
        let middle = (low * high).sqrt();
        if ratio(law, middle) > of { low = middle } else { high = middle }
    }
    (low * high).sqrt()
}

/// µs of a write at 100, 75 and 50 %, and the standard error of each.
fn times(run: &Run) -> Option<[(f64, f64); 3]> {
    let one = |held: i64| {
        let first = run.cells.first()?.get("size");
        let cell = run.cells.iter().find(|c| c.get("held") == held && c.get("size") == first)?;
        found(run, cell)?;
        let all = rounds(run, cell);
        let last: Vec<f64> = all.get(all.len().checked_sub(WINDOW)?..)?.iter().map(|r| 1e6 / r).collect();
        let m = mean(&last);
        let scatter = (last.iter().map(|t| (t - m).powi(2)).sum::<f64>() / (WINDOW as f64 - 1.0)).sqrt();
        Some((m, (scatter / (WINDOW as f64).sqrt()).max(FLOOR * m)))
    };
    Some([one(100)?, one(75)?, one(50)?])
}

/// µs of the writes of the last rounds that waited for no collection: none of them takes much longer than the middle one.
fn usual(run: &Run, held: i64) -> Option<f64> {
    let first = run.cells.first()?.get("size");
    let cell = run.cells.iter().find(|c| c.get("held") == held && c.get("size") == first)?;
    let trials = run.trials(cell.id);
    let last = &trials[trials.len().checked_sub(WINDOW)?..];
    let all: Vec<f64> = last.iter().flatten().filter(|s| s.role == WRITE).map(|s| s.took.micros()).collect();
    let line = NO_STALL * median(&all);
    Some(mean(&all.into_iter().filter(|&t| t <= line).collect::<Vec<_>>()))
}

/// Findings, where the steady rate of a full region is known.
pub(super) fn judged(run: &Run) -> Vec<Finding> {
    let both = |why: &str| [Quantity::WriteAmplification, Quantity::OverProvisioning].map(|q| Finding::undecided(q, why)).into();
    if run.cells.first().and_then(|c| found(run, c)).is_none() {
        return vec![];
    }
    let set = |key: &str| run.setting.get(key).copied().unwrap_or(0);
    if set("end") - set("start") < set("size") / 100 * 98 {
        return both(&format!("{} is a part of the card: how much data the rest holds is not known", run.stretch()));
    }
    if !run.samples.iter().any(|s| s.role == DISCARD) {
        return both(
            "it needs the steady rates with a quarter and with half of the card discarded (more --time and --writes would decide)",
        );
    }
    let Some([full, more, half]) = times(run) else {
        return both("it needs steady rates with 75 and 50 % of the card full (more --time and --writes would decide)");
    };
    let alone = [100, 75, 50].map(|held| usual(run, held).unwrap_or(f64::NAN));
    let text = format!(
        "in the steady state a random write takes {:.0} µs on a full card, {:.0} µs with a quarter discarded and {:.0} µs with half of it",
        full.0, more.0, half.0
    );
    // Where collections can be seen apart, writes that wait for none say what a map costs that is larger than the memory.
    let apart = alone[0] < VISIBLE * full.0;
    let by_map = if apart { [alone[0] - alone[2], alone[1] - alone[2]] } else { [0.0; 2] };
    let text = match apart && by_map[0] > 0.01 * (full.0 - half.0) {
        true => {
            format!("{text}; of this {:.0} and {:.0} µs are no collection, for other writes are slower by as much", by_map[0], by_map[1])
        }
        false => text,
    };
    let (full, more) = ((full.0 - by_map[0], full.1), (more.0 - by_map[1], more.1));
    let (upper, lower) = (full.0 - more.0, more.0 - half.0);
    let (upper_error, lower_error) = (full.1.hypot(more.1), more.1.hypot(half.1));
    let told = |why: &str| {
        let all: Vec<Finding> = both(why);
        all.into_iter().map(|f| f.evidence(text.clone())).collect()
    };
    if upper < 3.0 * upper_error || lower < 3.0 * lower_error {
        return told(
            "a discard does not make random writes faster by more than they waver: the card may do nothing on it, or not copy what is valid",
        );
    }
    let r = upper / lower;
    let error = 2.0 * (upper_error / upper).hypot(lower_error / lower);
    let (most, least) = (ratio(in_order, LEAST), ratio(in_order, MOST));
    if r > most || r < least {
        return told("the rates with more and with less data do not go together as those of a card that takes all data alike");
    }
    // By each law: the spare flash, its bounds, and the amplification that goes with them.
    let by_law = LAWS.map(|law| {
        let at = [r, r * (1.0 + error), r / (1.0 + error)].map(|r| spare(law, r));
        let [value, low, high] = [at[0], at[1] / OFF, at[2] * OFF];
        ([value, low, high], [value, high, low].map(|s| law(1.0 + s)))
    });
    let [in_order, emptiest] = by_law;
    let between = |a: [f64; 3], b: [f64; 3]| ((a[0] * b[0]).sqrt(), [a[1].min(b[1]), a[2].max(b[2])]);
    let (flash, flash_bounds) = between(in_order.0, emptiest.0);
    let (amplified, amplified_bounds) = between(in_order.1, emptiest.1);
    let all = at_fills(LAWS[0], in_order.0[0]);
    let b = upper / (all[0] - all[1]);
    let a = full.0 - b * (all[0] - 1.0);
    if a <= 0.0 {
        return told("the rates with more and with less data do not go together: a write would take no time without collection");
    }
    let all_rounds = rounds(run, &run.cells[0]);
    // Before collection began nothing was copied.
    let first = all_rounds.first().filter(|_| onset(&all_rounds).is_some()).map_or(0.0, |r| 1e6 / r);
    if first > LONGER * half.0 {
        return told("writes took longer before collection began than with half of the data discarded: not what the model says");
    }
    if in_order.0[2] / in_order.0[1] > APART {
        return told("the rates are known too roughly (more --time would decide)");
    }
    let assumes = "holds where the card treats all data alike";
    let amplified = Finding::decided(Quantity::WriteAmplification, amplified, SCORE).evidence(text.clone()).caveat(assumes);
    let amplified = amplified.evidence(format!("{a:.0} µs of it would remain without collection, each unit copied adds {b:.0} µs"));
    let laws = format!(
        "{:.1} % where blocks are emptied in the order of filling, {:.1} % where the emptiest of blocks of {UNITS} units is",
        100.0 * in_order.0[0],
        100.0 * emptiest.0[0]
    );
    let flash = Finding::decided(Quantity::OverProvisioning, 100.0 * flash, SCORE).evidence(text).evidence(laws).caveat(assumes);
    let flash = flash.caveat("which blocks a card empties cannot be seen: the interval holds both ends of what controllers do");
    let amplified_bounds = [amplified_bounds[0], amplified_bounds[1] * (1.0 + MORE_WORK)];
    vec![Finding { interval: Some(amplified_bounds), ..amplified }, Finding { interval: Some(flash_bounds.map(|s| 100.0 * s)), ..flash }]
}

/// What a card writes for its own map while it collects is work, too, and no time of a write shows it alone.
const MORE_WORK: f64 = 0.1;

/// docs/todays-cards.md says on what it was measured.
const SCORE: f64 = 0.88;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_laws_and_their_inverse() {
        // The other way round: alpha = -A ln(1 - 1 / A).
        for a in [1.25, 2.0, 5.0, 12.0_f64] {
            let alpha = -a * (-1.0 / a).ln_1p();
            assert!((in_order(alpha) / a - 1.0).abs() < 0.001, "{a}: {}", in_order(alpha));
        }
        for s in [0.05, 0.07, 0.15, 0.28, 0.6] {
            for law in LAWS {
                assert!((spare(law, ratio(law, s)) / s - 1.0).abs() < 0.01, "{s}: {}", spare(law, ratio(law, s)));
            }
            // Taking the emptiest never copies more, and with little spare flash clearly less.
            assert!(emptiest(1.0 + s) < in_order(1.0 + s), "{s}");
        }
        // 32 units of which 24 are valid: 4 (1 / 25 + ... + 1 / 32).
        let alpha: f64 = (25..=32).map(|i| 4.0 / f64::from(i)).sum();
        assert!((emptiest(alpha) - 4.0).abs() < 0.02, "{}", emptiest(alpha));
    }
}
