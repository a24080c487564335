//! Whether writes that repeat the byte that is there take as long as writes of random bytes.

use super::access_kinds::told;
use super::beliefs::Case;
use super::pipeline::Analysis;
use crate::finding::Finding;
use crate::infer::stats::{mad, median};

/// Judges runs of `same-content`.
pub struct SameContent;

pub(super) const ANALYSES: &[&dyn Analysis] = &[&SameContent];

/// Roles: the write that opens the stretch; random bytes; what was there.
pub const OPENS: u8 = 0;
pub const OTHER: u8 = 1;
pub const SAME: u8 = 2;

/// Writes of each content.
pub const PAIRS: usize = 6;

/// Medians that differ by less count as one.
const ALIKE: f64 = 0.1;

/// Do writes of the one content take as long as those of the other? Both in µs. Where they scatter more than that, nobody knows: no.
pub fn as_long(random: &[f64], same: &[f64]) -> bool {
    gain(random, same).is_some_and(|(gain, _)| gain.abs() < ALIKE)
}

/// ln of how many times longer random bytes take, with its standard error.
fn gain(random: &[f64], same: &[f64]) -> Option<(f64, f64)> {
    let ln = |x: &[f64]| -> Vec<f64> { x.iter().filter(|t| **t > 0.0).map(|t| t.ln()).collect() };
    let (a, b) = (ln(random), ln(same));
    if a.len() < PAIRS || b.len() < PAIRS {
        return None;
    }
    // 1.25: a median wavers more than a mean.
    let error = 1.25 * ((mad(&a).powi(2) + mad(&b).powi(2)) / a.len() as f64).sqrt();
    Some((median(&a) - median(&b), error))
}

impl Analysis for SameContent {
    fn name(&self) -> &'static str {
        "same-content"
    }

    /// That one byte takes as long as random bytes says nothing of other contents: only a gain is told.
    fn infer(&self, run: &Case) -> Vec<Finding> {
        let of = |role: u8| -> Vec<f64> { run.samples.iter().filter(|s| s.role == role).map(|s| s.took.micros()).collect() };
        let Some((gain, error)) = gain(&of(OTHER), &of(SAME)).filter(|(g, e)| *g >= ALIKE && *g > 4.0 * e) else { return vec![] };
        vec![
            told(gain, error)
                .evidence(format!("writes that repeat the byte that is there are {:.2} times as fast as random bytes", gain.exp())),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_times_that_agree_count_as_one() {
        let around = |us: f64, scatter: f64| -> Vec<f64> { (0..PAIRS).map(|i| us * (1.0 + scatter * (i as f64 - 2.5) / 2.5)).collect() };
        assert!(as_long(&around(4000.0, 0.2), &around(4100.0, 0.2)));
        assert!(!as_long(&around(4000.0, 0.01), &around(3400.0, 0.01)));
        assert!(!as_long(&around(3400.0, 0.01), &around(4000.0, 0.01)), "slower is not alike either");
        assert!(!as_long(&around(4000.0, 0.01)[1..], &around(4000.0, 0.01)), "too few");
    }
}
