//! Robust statistics under their textbook names.

use crate::student_975;

/// Linear-interpolated quantile (type 7) of an unsorted slice; NaN when empty.
pub fn quantile(x: &[f64], q: f64) -> f64 {
    let mut v: Vec<f64> = x.iter().copied().filter(|a| a.is_finite()).collect();
    if v.is_empty() {
        return f64::NAN;
    }
    let h = (v.len() - 1) as f64 * q.clamp(0.0, 1.0);
    let lo = h.floor() as usize;
    // The rest of them need no order: a probe asks for medians of thousands after each trial.
    let (_, &mut at, above) = v.select_nth_unstable_by(lo, f64::total_cmp);
    let next = above.iter().copied().min_by(f64::total_cmp).unwrap_or(at);
    at + (next - at) * (h - lo as f64)
}

/// The middle value, or the mean of the two in the middle; NaN when empty.
pub fn median(x: &[f64]) -> f64 {
    quantile(x, 0.5)
}

/// The arithmetic mean; NaN when empty.
pub fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

/// The standard deviation of all there are, not of a sample; NaN when empty.
pub fn deviation(x: &[f64]) -> f64 {
    let m = mean(x);
    (x.iter().map(|a| (a - m).powi(2)).sum::<f64>() / x.len() as f64).sqrt()
}

/// The arithmetic mean, and half of its interval at 95 % by Student's t; NaN of fewer than two values.
pub fn mean_within(x: &[f64]) -> (f64, f64) {
    let (n, m) = (x.len() as f64, mean(x));
    let spread = (x.iter().map(|a| (a - m).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    (m, spread / n.sqrt() * student_975(x.len()))
}

/// Median absolute deviation, scaled to the standard deviation of a normal distribution.
pub fn mad(x: &[f64]) -> f64 {
    let m = median(x);
    let d: Vec<f64> = x.iter().map(|a| (a - m).abs()).collect();
    1.4826 * median(&d)
}

/// Quartiles further apart than this are of two kinds.
const APART: f64 = 1.5;

/// The quartiles of values that no one figure describes, and not because one of a few stands out; those below `least` are alike.
pub fn two_kinds(x: &[f64], least: f64) -> Option<[f64; 2]> {
    let quartiles = [0.25, 0.75].map(|q| quantile(x, q));
    (quartiles[1] > APART * quartiles[0].max(least)).then_some(quartiles)
}

/// A location and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The location, or how far two lie apart.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
    /// How many samples it rests on.
    pub n: usize,
}

/// Median with the standard error that a normal core would give it, or that the samples near it in rank give it where that is larger:
/// of times of two values, most of them the same, the normal core has no width, and the median is far from certain. Small samples get
/// a wider one.
pub fn location(x: &[f64]) -> Estimate {
    let n = x.len();
    if n == 0 {
        return Estimate { value: f64::NAN, error: f64::INFINITY, n };
    }
    // The MAD of a handful of samples is itself uncertain: widen by Student's factor, roughly 1 + 2/(n-1).
    let widen = if n > 1 { 1.0 + 2.0 / (n as f64 - 1.0) } else { f64::INFINITY };
    let core = 1.2533 * mad(x) / (n as f64).sqrt() * widen;
    Estimate { value: median(x), error: core.max(rank_error(x, 0.5)), n }
}

/// The standard error of the quantile `q` by its 95 % interval from ranks: half of it, by 1.96. The ranks are those of a binomial with
/// p = q (Conover, Practical Nonparametric Statistics, 3.2). Infinite without samples.
fn rank_error(x: &[f64], q: f64) -> f64 {
    if x.is_empty() {
        return f64::INFINITY;
    }
    let by = 1.96 * (q * (1.0 - q) / x.len() as f64).sqrt();
    (quantile(x, q + by) - quantile(x, q - by)) / 2.0 / 1.96
}

/// How much later `slow` is than `fast`, by the fifth part of each that came first, with its standard error. For noise that only
/// delays: there the early ones lie close together.
pub fn low_difference(slow: &[f64], fast: &[f64]) -> Estimate {
    const LOW: f64 = 0.2;
    let n = slow.len();
    if n < 6 || fast.len() < 6 {
        return Estimate { value: f64::NAN, error: f64::INFINITY, n };
    }
    // As of a median: half the 95 % interval from ranks, by 1.96, so that times of two values are not taken for certain.
    let error = |x: &[f64]| rank_error(x, LOW) * (1.0 + 2.0 / (x.len() as f64 - 1.0));
    Estimate { value: quantile(slow, LOW) - quantile(fast, LOW), error: error(slow).hypot(error(fast)), n }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_mean_is_students() {
        // 1 to 5: mean 3, s = 1.5811, s / sqrt(5) times t with four degrees of freedom, 2.776: 1.963.
        let (m, half) = mean_within(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!(m == 3.0 && (half - 1.963).abs() < 0.01, "{half}");
        assert!(mean_within(&[7.0]).1.is_nan() && mean_within(&[]).0.is_nan());
    }

    #[test]
    fn values_of_two_kinds_have_no_one_figure() {
        assert_eq!(two_kinds(&[0.7, 0.71, 0.7, 0.72, 3.4, 0.7, 0.71, 0.7], 0.0), None, "one of them stands out");
        let both = [0.7, 3.4, 0.7, 3.5, 0.71, 3.4, 0.7, 3.4];
        assert!(two_kinds(&both, 0.0).is_some_and(|k| k[0] < 0.8 && k[1] > 3.0));
        assert_eq!(two_kinds(&both, 4.0), None, "so little is nothing");
    }

    #[test]
    fn textbook_values() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0], 0.25), 1.75);
        // R: quantile(c(1, 3, 4, 8, 15), c(0.1, 0.9), type = 7)
        assert!((quantile(&[15.0, 4.0, 1.0, 8.0, 3.0], 0.1) - 1.8).abs() < 1e-12);
        assert!((quantile(&[15.0, 4.0, 1.0, 8.0, 3.0], 0.9) - 12.2).abs() < 1e-12);
        // R: mad(c(1, 2, 3, 4, 100)) is 1.4826
        assert!((mad(&[1.0, 2.0, 3.0, 4.0, 100.0]) - 1.4826).abs() < 1e-12);
        assert!(median(&[]).is_nan() && mean(&[]).is_nan() && mean(&[1.0, 2.0]) == 1.5);
        assert!(deviation(&[]).is_nan() && deviation(&[3.0]) == 0.0 && deviation(&[1.0, 3.0]) == 1.0);
    }

    #[test]
    fn early_ones_tell_a_difference_that_delays_hide() {
        // Exponential delays: the quantile function is known.
        let late = |from: f64, n: usize| (0..n).map(|i| from - 200.0 * (1.0 - (i as f64 + 0.5) / n as f64).ln()).collect::<Vec<_>>();
        let e = low_difference(&late(500.0, 40), &late(400.0, 80));
        assert!((e.value - 100.0).abs() < 5.0 && e.error < 30.0, "{e:?}");
        assert!(location(&late(500.0, 40)).error > e.error);
        assert_eq!(low_difference(&[1.0; 3], &[1.0; 9]).error, f64::INFINITY);
    }

    #[test]
    fn a_median_of_two_values_is_not_certain() {
        // 17 reads of 30 find the code word in the buffer, the others do not.
        let x: Vec<f64> = (0..30).map(|i| if i < 17 { 100.0 } else { 116.0 }).collect();
        assert_eq!(mad(&x), 0.0);
        assert!(location(&x).error > 2.0, "{:?}", location(&x));
        // The same of the early fifth of them.
        let y: Vec<f64> = (0..15).map(|i| if i < 5 { 100.0 } else { 370.0 }).collect();
        assert!(low_difference(&y, &[100.0; 15]).error > 20.0, "{:?}", low_difference(&y, &[100.0; 15]));
        // With normal times both agree about.
        let mut state = 7u64;
        let mut uniform = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let y: Vec<f64> = (0..400).map(|_| (0..12).map(|_| uniform()).sum::<f64>()).collect();
        let e = location(&y).error;
        assert!((0.045..0.09).contains(&e), "1.2533 / 20 is 0.063: {e}");
    }

    #[test]
    fn one_outlier_in_nine_does_not_move_the_location() {
        let x = [10.0, 10.1, 9.9, 10.0, 10.2, 9.8, 10.0, 10.1, 115_000.0];
        let e = location(&x);
        assert!((e.value - 10.0).abs() < 0.2 && e.error < 0.2, "{e:?}");
    }
}
