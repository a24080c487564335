//! Resampling, always with the same generator: the same samples give the same interval (percentile method of Efron and Tibshirani).

use crate::{median, normal, quantile, student_975};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;

/// 95 % percentile bootstrap interval of the median, with a fixed generator: the same samples give the same interval.
pub fn bootstrap_median(x: &[f64]) -> Option<[f64; 2]> {
    if x.len() < 3 {
        return None;
    }
    let mut rng = Pcg64Mcg::new(0x6e61_6e64_7363_6f70);
    let medians: Vec<f64> = (0..400)
        .map(|_| {
            let draw: Vec<f64> = (0..x.len()).map(|_| x[(rng.next_u64() % x.len() as u64) as usize]).collect();
            median(&draw)
        })
        .collect();
    Some([quantile(&medians, 0.025), quantile(&medians, 0.975)])
}

/// Draws of the medians of several groups, each drawn anew from its own samples: a thousand of them, with a fixed generator.
pub fn bootstrap_medians(groups: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut rng = Pcg64Mcg::new(0x6e61_6e64_7363_6f70);
    let mut drawn = |x: &Vec<f64>| median(&x.iter().map(|_| x[(rng.next_u64() % x.len() as u64) as usize]).collect::<Vec<_>>());
    (0..1000).map(|_| groups.iter().map(&mut drawn).collect()).collect()
}

/// The 95 % interval that draws from groups of `n` samples give. Such draws scatter too little for few samples, as normal quantiles do beside
/// Student's: the quantiles are those of t sqrt(n / (n - 1)) (Hesterberg, What Teachers Should Know About the Bootstrap, 2015).
pub fn expanded(draws: &[f64], n: usize) -> [f64; 2] {
    let tail = 1.0 - normal(student_975(n) * (n as f64 / (n as f64 - 1.0)).sqrt());
    [tail, 1.0 - tail].map(|q| quantile(draws, q))
}

/// Ratio of the medians with its 95 % percentile interval; the same samples give the same interval.
pub fn bootstrap_ratio(a: &[f64], b: &[f64]) -> [f64; 3] {
    let mut rng = Pcg64Mcg::new(0x6e61_6e64_7363_6f70);
    // Two thousand samples say as much about a median as fifty thousand.
    let cut = |x: &[f64]| -> Vec<f64> { x.iter().step_by(x.len().div_ceil(2000)).copied().collect() };
    let (a, b) = (cut(a), cut(b));
    let draws = if a.len().max(b.len()) > 300 { 100 } else { 300 };
    let mut draw = |x: &[f64]| median(&(0..x.len()).map(|_| x[(rng.next_u64() % x.len() as u64) as usize]).collect::<Vec<f64>>());
    let ratios: Vec<f64> = (0..draws).map(|_| draw(&b) / draw(&a)).collect();
    [median(&b) / median(&a), quantile(&ratios, 0.025), quantile(&ratios, 0.975)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_hold_what_they_are_of_and_shrink_with_the_samples() {
        let mut state = 7u64;
        let mut normal = move || {
            let mut one = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 11) as f64 / (1u64 << 53) as f64
            };
            (0..12).map(|_| one()).sum::<f64>() - 6.0
        };
        let mut widths = vec![];
        for n in [30usize, 300] {
            let a: Vec<f64> = (0..n).map(|_| 100.0 + normal()).collect();
            let b: Vec<f64> = (0..n).map(|_| 200.0 + normal()).collect();
            let [lo, hi] = bootstrap_median(&a).unwrap();
            assert!(lo <= median(&a) && median(&a) <= hi && bootstrap_median(&a) == Some([lo, hi]));
            // The median of n normal values scatters by 1.2533 / sqrt n; the interval is about four of those.
            let expected = 2.0 * 1.96 * 1.2533 / (n as f64).sqrt();
            assert!((0.5..2.0).contains(&((hi - lo) / expected)), "{n}: {}", hi - lo);
            let medians: Vec<f64> = bootstrap_medians(&[a.clone(), b.clone()]).iter().map(|m| m[1] - m[0]).collect();
            let (lo, hi) = (quantile(&medians, 0.025), quantile(&medians, 0.975));
            assert!(lo < 100.0 + 0.8 && hi > 100.0 - 0.8 && hi - lo < 2.0 * 2f64.sqrt() * expected, "{n}: {lo} to {hi}");
            let [middle, low, high] = bootstrap_ratio(&a, &b);
            assert!(low <= middle && middle <= high && (middle - 2.0).abs() < 0.05);
            widths.push(high - low);
        }
        assert!(widths[1] < widths[0]);
        assert!(bootstrap_median(&[1.0, 2.0]).is_none());
    }
}
