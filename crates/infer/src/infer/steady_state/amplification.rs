//! Write amplification and spare flash, from the steady rates with 100, 75 and 50 % of the region full.
//!
//! A random write takes a + b (A - 1): a without collection, b for each unit that is copied, A the amplification. Of three rates and the law
//! by which A follows from the spare flash, all three unknowns follow. The law (Robinson, Menon, Desnoyers, Analytic modeling of SSD write
//! performance, 2012): a block that is collected `T` units after it was filled holds a share v = exp(-alpha (1 - v)) that is still valid, alpha
//! flash over data; A = 1 / (1 - v). It is that of collection in the order of filling; where the emptiest block is taken, a few percent less is
//! copied while a block has hundreds of units.
//!
//! What fools it: writes that are not uniform inside the card (hot and cold data kept apart), a region that is a part of the card, collection
//! at rest (nothing rests here).

use super::{DISCARD, WINDOW, found, onset, rounds};
use crate::finding::{Finding, Quantity};
use crate::infer::stats::mean;
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
/// The first writes may not take longer than writes without any collection, but for this.
const LONGER: f64 = 1.1;

/// Amplification with so much flash for each unit of data.
fn amplification(alpha: f64) -> f64 {
    let mut v: f64 = 0.9;
    // The map contracts: alpha exp(-alpha (1 - v)) is below 1 at its lower fixed point, alpha = 1.01 in some hundred steps.
    for _ in 0..2000 {
        v = (-alpha * (1.0 - v)).exp();
    }
    1.0 / (1.0 - v).max(1e-6)
}

/// Amplification with 100, 75 and 50 % full, where the spare flash is this share of the region.
fn at_fills(spare: f64) -> [f64; 3] {
    [1.0, 0.75, 0.5].map(|held| amplification((1.0 + spare) / held))
}

/// What the last quarter adds over what the one before adds: falls with the spare flash.
fn ratio(spare: f64) -> f64 {
    let [full, more, half] = at_fills(spare);
    (full - more) / (more - half)
}

/// The spare flash that has this ratio; beyond the ends the nearer one.
fn spare(of: f64) -> f64 {
    let (mut low, mut high) = (LEAST, MOST);
    for _ in 0..40 {
        let middle = (low * high).sqrt();
        if ratio(middle) > of { low = middle } else { high = middle }
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

/// Findings, where the steady rate of a full region is known.
pub(super) fn judged(run: &Run) -> Vec<Finding> {
    let both = |why: &str| [Quantity::WriteAmplification, Quantity::OverProvisioning].map(|q| Finding::undecided(q, why)).into();
    if run.cells.first().and_then(|c| found(run, c)).is_none() {
        return vec![];
    }
    let set = |key: &str| run.setting.get(key).copied().unwrap_or(0);
    if set("end") - set("start") < set("size") / 100 * 98 {
        return both("the region is a part of the card: how much data the rest holds is not known");
    }
    if !run.samples.iter().any(|s| s.role == DISCARD) {
        return both(
            "it needs the steady rates with a quarter and with half of the card discarded (more --time and --writes would decide)",
        );
    }
    let Some([full, more, half]) = times(run) else {
        return both("it needs steady rates with 75 and 50 % of the card full (more --time and --writes would decide)");
    };
    let text = format!(
        "in the steady state a random write takes {:.0} µs on a full card, {:.0} µs with a quarter discarded and {:.0} µs with half of it",
        full.0, more.0, half.0
    );
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
    let (most, least) = (ratio(LEAST), ratio(MOST));
    if r > most || r < least {
        return told("the rates with more and with less data do not go together as those of a card that takes all data alike");
    }
    let value = spare(r);
    let bounds = [spare(r * (1.0 + error)) / OFF, spare(r / (1.0 + error)) * OFF];
    let all = at_fills(value);
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
    if bounds[1] / bounds[0] > APART {
        return told("the rates are known too roughly (more --time would decide)");
    }
    let assumes =
        "holds where the card treats all data alike and copies what is valid of the block that was filled first, or of the emptiest";
    let amplified = Finding::decided(Quantity::WriteAmplification, all[0], SCORE).evidence(text.clone()).caveat(assumes);
    let amplified = amplified.evidence(format!("{a:.0} µs of it would remain without collection, each unit copied adds {b:.0} µs"));
    let flash = Finding::decided(Quantity::OverProvisioning, 100.0 * value, SCORE).evidence(text).caveat(assumes);
    let flash = flash.caveat(
        "as much as a card needs that collects in the order of filling; one that takes the emptiest block has down to half of that",
    );
    let of = |spare: f64| amplification(1.0 + spare);
    vec![
        Finding { interval: Some([of(bounds[1]), of(bounds[0])]), ..amplified },
        Finding { interval: Some(bounds.map(|s| 100.0 * s)), ..flash },
    ]
}

/// METHODS.md says on what it was measured.
const SCORE: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_law_and_its_inverse() {
        // The other way round: alpha = -A ln(1 - 1 / A).
        for a in [1.25, 2.0, 5.0, 12.0_f64] {
            let alpha = -a * (-1.0 / a).ln_1p();
            assert!((amplification(alpha) / a - 1.0).abs() < 0.001, "{a}: {}", amplification(alpha));
        }
        for s in [0.05, 0.07, 0.15, 0.28, 0.6] {
            assert!((spare(ratio(s)) / s - 1.0).abs() < 0.01, "{s}: {}", spare(ratio(s)));
        }
    }
}
