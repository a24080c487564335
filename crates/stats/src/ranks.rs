//! Ranks, and tests that rest on them.

use crate::{mean, median, quantile, two_sided};

/// Two-sided p of the Mann-Whitney U test: normal approximation with correction for ties and continuity.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> f64 {
    two_sided(mann_whitney_z(a, b))
}

/// The U of Mann and Whitney: pairs of one of `a` and one of `b` of which the first is larger, ties by half. Beside it the sum of t^3 - t over
/// the groups of t values that are alike.
fn u(a: &[f64], b: &[f64]) -> (f64, f64) {
    let mut all: Vec<(f64, bool)> = a.iter().map(|&v| (v, true)).chain(b.iter().map(|&v| (v, false))).collect();
    all.sort_by(|x, y| x.0.total_cmp(&y.0));
    let (mut ranks, mut ties, mut i) = (0.0, 0.0, 0);
    while i < all.len() {
        let j = i + all[i..].iter().take_while(|x| x.0 == all[i].0).count();
        let t = (j - i) as f64;
        ranks += (i + j + 1) as f64 / 2.0 * all[i..j].iter().filter(|x| x.1).count() as f64;
        ties += t * t * t - t;
        i = j;
    }
    let m = a.len() as f64;
    (ranks - m * (m + 1.0) / 2.0, ties)
}

/// How often one of `a` is larger than one of `b`, ties by half: a part of all pairs, 0.5 where both are of one population; NaN where one is
/// empty.
pub fn larger(a: &[f64], b: &[f64]) -> f64 {
    u(a, b).0 / (a.len() * b.len()) as f64
}

/// Standard deviations by which the U of Mann and Whitney differs from what two samples of one population would give, either way.
pub fn mann_whitney_z(a: &[f64], b: &[f64]) -> f64 {
    let (m, n) = (a.len() as f64, b.len() as f64);
    let (u, ties) = u(a, b);
    let total = m + n;
    let variance = m * n / 12.0 * (total + 1.0 - ties / (total * (total - 1.0)));
    if variance <= 0.0 {
        return 0.0;
    }
    ((u - m * n / 2.0).abs() - 0.5).max(0.0) / variance.sqrt()
}

/// By how much `a` lies above `b` where both scatter alike: the median of all differences (Hodges and Lehmann) with the interval of 95 % that
/// the test of Mann and Whitney leaves (Conover, Practical Nonparametric Statistics, 5.4). `None` where a handful of values rules nothing out.
pub fn shift(a: &[f64], b: &[f64]) -> Option<(f64, [f64; 2])> {
    let (m, n) = (a.len() as f64, b.len() as f64);
    // So many differences from either end, by the normal approximation with its correction for continuity; between two of them by line.
    let k = m * n / 2.0 - 1.96 * (m * n * (m + n + 1.0) / 12.0).sqrt() + 0.5;
    if k < 1.0 {
        return None;
    }
    let mut all: Vec<f64> = a.iter().flat_map(|x| b.iter().map(move |y| x - y)).collect();
    all.sort_by(f64::total_cmp);
    let tail = (k - 1.0) / (m * n - 1.0);
    Some((median(&all), [tail, 1.0 - tail].map(|q| quantile(&all, q))))
}

/// Lag-1 autocorrelation; 0 where nothing varies.
pub fn correlation_with_next(x: &[f64]) -> f64 {
    let m = mean(x);
    let variance: f64 = x.iter().map(|v| (v - m).powi(2)).sum();
    let with_next: f64 = x.windows(2).map(|w| (w[0] - m) * (w[1] - m)).sum();
    if variance > 0.0 { with_next / variance } else { 0.0 }
}

/// Ranks from 1; equal values share their mean rank.
pub fn mean_ranks(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let v: Vec<f64> = values.collect();
    let below = |x: f64| v.iter().filter(|y| **y < x).count() as f64;
    let equal = |x: f64| v.iter().filter(|y| **y == x).count() as f64;
    v.iter().map(|&x| below(x) + (equal(x) + 1.0) / 2.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn textbook_values() {
        assert_eq!(mean_ranks([10.0, 20.0, 20.0, 5.0].into_iter()), [2.0, 3.5, 3.5, 1.0]);
        // R: wilcox.test(1:10, 11:20, exact = FALSE, correct = TRUE): W = 0, p = 0.0001827
        let (a, b): (Vec<f64>, Vec<f64>) = ((1..=10).map(f64::from).collect(), (11..=20).map(f64::from).collect());
        assert!((mann_whitney(&a, &b) - 1.827e-4).abs() < 2e-6, "{}", mann_whitney(&a, &b));
        assert!((mann_whitney(&a, &b) - mann_whitney(&b, &a)).abs() < 1e-15 && mann_whitney(&a, &a) > 0.99);
        assert_eq!(mann_whitney(&[1.0; 4], &[1.0; 4]), 1.0);
        // Of twelve and twelve values the 38.6th difference from either end; of three and three all of it is too little.
        let twelve: Vec<f64> = (0..12).map(|i| f64::from(i * i)).collect();
        let later: Vec<f64> = twelve.iter().map(|x| x + 500.0).collect();
        let (value, [lo, hi]) = shift(&later, &twelve).unwrap();
        assert!(value == 500.0 && lo + hi == 1000.0 && (460.0..500.0).contains(&lo), "{value} {lo} {hi}");
        assert_eq!(shift(&twelve[..3], &later[..3]), None);
        let turns: Vec<f64> = (0..100).map(|i| f64::from(i % 2)).collect();
        assert!(correlation_with_next(&turns) < -0.95 && correlation_with_next(&[3.0; 9]) == 0.0);
    }
}
