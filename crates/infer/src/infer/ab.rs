//! Two settings compared: what a change does, with its interval, and whether there is a difference at all. (Q15)
//!
//! Pairs of trials, one with each setting, in random order: drift and stalls hit both alike. Of a pair only the ratio of the
//! times counts. The test is Wilcoxon's signed ranks, exact and two-sided, so that of comparisons of equal settings a share of
//! at most `alpha` is called different; the effect is the Hodges-Lehmann estimate with the interval that belongs to the test.

use super::stats::{mad, median};
use serde::{Deserialize, Serialize};

/// Fewer pairs can never be significant at 5 %.
pub const LEAST_PAIRS: usize = 8;

/// What follows from the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// B takes less time.
    Faster,
    /// B takes more time.
    Slower,
    /// The whole interval lies inside the margin: any difference is too small to matter.
    NoDifference,
    /// Neither is shown.
    Undecided,
}

/// B against A, as a ratio of times: below 1 where B is faster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    pub pairs: usize,
    pub ratio: f64,
    /// At the level 1 - alpha.
    pub interval: [f64; 2],
    /// Probability of a difference at least as clear where there is none.
    pub p: f64,
    pub alpha: f64,
    /// Differences below this share do not matter.
    pub margin: f64,
    /// Scatter of one trial of A and of B, relative.
    pub noise: [f64; 2],
    pub verdict: Verdict,
}

/// Counts of the sums of ranks under all signs, for ranks in half steps.
fn null(ranks: &[u64]) -> Vec<f64> {
    let mut count = vec![1.0];
    for &r in ranks {
        let mut next = vec![0.0; count.len() + r as usize];
        for (i, c) in count.iter().enumerate() {
            next[i] += c * 0.5;
            next[i + r as usize] += c * 0.5;
        }
        count = next;
    }
    count
}

/// Ranks of the absolute values, doubled so that shared ones stay whole. Zeros have none.
fn ranks(d: &[f64]) -> Vec<(u64, bool)> {
    let mut v: Vec<f64> = d.iter().copied().filter(|x| *x != 0.0).collect();
    nandscope_stats::ascending(&mut v, |a| a.abs());
    let mut out = vec![];
    let mut i = 0;
    while i < v.len() {
        let j = v[i..].iter().take_while(|x| x.abs() == v[i].abs()).count() + i;
        // Mean of the ranks i+1 to j, doubled.
        out.extend(v[i..j].iter().map(|x| ((i + 1 + j) as u64, *x > 0.0)));
        i = j;
    }
    out
}

/// Two-sided probability of Wilcoxon's signed ranks, exact for any ties.
pub fn signed_rank(d: &[f64]) -> f64 {
    let r = ranks(d);
    if r.is_empty() {
        return 1.0;
    }
    let up: u64 = r.iter().filter(|x| x.1).map(|x| x.0).sum();
    let all: u64 = r.iter().map(|x| x.0).sum();
    let low = up.min(all - up) as usize;
    let p: f64 = null(&r.iter().map(|x| x.0).collect::<Vec<_>>()).iter().take(low + 1).sum();
    (2.0 * p).min(1.0)
}

/// Hodges-Lehmann estimate of the middle of the differences, and its interval at 1 - alpha.
fn middle(d: &[f64], alpha: f64) -> (f64, [f64; 2]) {
    let mut walsh: Vec<f64> = (0..d.len()).flat_map(|i| (i..d.len()).map(move |j| (d[i] + d[j]) / 2.0)).collect();
    walsh.sort_by(f64::total_cmp);
    let count = null(&(1..=d.len() as u64).collect::<Vec<_>>());
    let mut below = 0.0;
    // How many of the lowest sums together stay within half of alpha.
    let k = count.iter().take_while(|c| {
        below += **c;
        below <= alpha / 2.0
    });
    let k = k.count().min(walsh.len() / 2);
    // None of them: with so few pairs the interval is the whole range.
    let at = k.saturating_sub(usize::from(k > 0));
    (median(&walsh), [walsh[at], walsh[walsh.len() - 1 - at]])
}

/// Compares pairs of times (A, B), in any unit. `None` where there are too few pairs or a time is none.
///
/// `alpha`: share of equal settings that may be called different. `margin`: a relative difference that does not matter.
pub fn compare(pairs: &[(f64, f64)], alpha: f64, margin: f64) -> Option<Effect> {
    if pairs.len() < LEAST_PAIRS || pairs.iter().any(|p| !(p.0 > 0.0 && p.1 > 0.0 && (p.0 * p.1).is_finite())) {
        return None;
    }
    let d: Vec<f64> = pairs.iter().map(|p| (p.1 / p.0).ln()).collect();
    let p = signed_rank(&d);
    let (m, interval) = middle(&d, alpha);
    let inside = interval[0] >= -margin.ln_1p() && interval[1] <= margin.ln_1p();
    let verdict = match () {
        _ if inside => Verdict::NoDifference,
        _ if p <= alpha && m < 0.0 => Verdict::Faster,
        _ if p <= alpha && m > 0.0 => Verdict::Slower,
        _ => Verdict::Undecided,
    };
    let noise = [pairs.iter().map(|p| p.0.ln()).collect::<Vec<_>>(), pairs.iter().map(|p| p.1.ln()).collect()].map(|x| mad(&x));
    Some(Effect { pairs: pairs.len(), ratio: m.exp(), interval: interval.map(f64::exp), p, alpha, margin, noise, verdict })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_pcg::Pcg64Mcg;
    use rand_pcg::rand_core::Rng;

    fn unit(r: &mut Pcg64Mcg) -> f64 {
        ((r.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Times with the noise of cards: a spread, a drift, and now and then a stall a hundred times as long.
    fn pairs(r: &mut Pcg64Mcg, n: usize, effect: f64) -> Vec<(f64, f64)> {
        let mut one = |i: usize, f: f64| {
            let stall = if unit(r) < 0.05 { 100.0 * unit(r) } else { 1.0 };
            let spread: f64 = (0..6).map(|_| unit(r)).sum::<f64>() / 3.0 - 1.0;
            f * (1.0 + 0.02 * i as f64) * stall.max(1.0) * (1.0 + 0.1 * spread)
        };
        (0..n).map(|i| (one(i, 1.0), one(i, effect))).collect()
    }

    #[test]
    fn textbook_values() {
        // Eight differences of one sign: 2 / 2^8.
        assert!((signed_rank(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]) - 2.0 / 256.0).abs() < 1e-12);
        // Tables: n = 10, W = 8 has a two-sided probability of 0.0488.
        let d = [-1.0, -7.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 9.0, 10.0];
        assert!((signed_rank(&d) - 0.0488).abs() < 0.0002, "{}", signed_rank(&d));
        assert_eq!(signed_rank(&[0.0, 0.0]), 1.0);
        // All alike in size: a sign test.
        assert!((signed_rank(&[1.0, 1.0, 1.0, 1.0, -1.0]) - 0.375).abs() < 1e-12);
    }

    /// The promise of `alpha`: equal settings are called different in no more than that share, and not in far less.
    #[test]
    fn equal_settings_are_called_different_as_often_as_alpha_says() {
        for (n, alpha) in [(10, 0.05), (24, 0.05), (16, 0.1)] {
            let (mut wrong, mut covered) = (0, 0);
            let all = 1500;
            for seed in 0..all {
                let mut r = Pcg64Mcg::new((seed as u128) << 64 | 0x2545_f491);
                (0..4).for_each(|_| _ = r.next_u64());
                let e = compare(&pairs(&mut r, n, 1.0), alpha, 0.0001).unwrap();
                wrong += (e.p <= alpha) as u32;
                covered += (e.interval[0] <= 1.0 && e.interval[1] >= 1.0) as u32;
                assert!(!matches!(e.verdict, Verdict::Faster | Verdict::Slower) || e.p <= alpha);
            }
            let share = wrong as f64 / all as f64;
            // Four standard errors of a share of that size.
            let error = 4.0 * (alpha * (1.0 - alpha) / all as f64).sqrt();
            assert!(share < alpha + error && share > 0.5 * alpha, "n {n}: {share} at {alpha}");
            assert!(covered as f64 / all as f64 > 1.0 - alpha - error, "n {n}: {covered}");
        }
    }

    #[test]
    fn effects_are_found_with_their_size_and_none_is_an_answer() {
        let mut r = Pcg64Mcg::new(0x1234_5678_9abc_def1);
        let e = compare(&pairs(&mut r, 24, 1.3), 0.05, 0.03).unwrap();
        assert!(e.verdict == Verdict::Slower && e.interval[0] < 1.3 && e.interval[1] > 1.3 && e.interval[0] > 1.1, "{e:?}");
        let calm: Vec<(f64, f64)> = (0..24).map(|i| (1.0 + 0.001 * (i % 5) as f64, 1.001 + 0.001 * (i % 3) as f64)).collect();
        assert_eq!(compare(&calm, 0.05, 0.03).unwrap().verdict, Verdict::NoDifference);
        assert!(compare(&calm[..7], 0.05, 0.03).is_none());
        let wild: Vec<(f64, f64)> = (0..12).map(|i| (1.0 + (i * 7 % 12) as f64, 1.0 + (i * 5 % 12) as f64)).collect();
        assert_eq!(compare(&wild, 0.05, 0.03).unwrap().verdict, Verdict::Undecided);
        let same = compare(&[(2.0, 2.0); 10], 0.05, 0.03).unwrap();
        assert!(same.p == 1.0 && same.verdict == Verdict::NoDifference, "{same:?}");
    }
}
