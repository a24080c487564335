//! Does one figure go with another over many cards? Rank correlation with an exact test.

use crate::infer::stats::mean_ranks;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use serde::Serialize;

/// Spearman's rank correlation of pairs, and the two-sided p of it by permutation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Trend {
    pub rho: f64,
    pub p: f64,
    /// Pairs.
    pub n: usize,
}

/// `None` for fewer than four pairs, or where one of the two is the same for all: nothing can be said then.
/// All orders are tried of up to eight pairs, 20 000 drawn of more.
pub fn trend(pairs: &[(f64, f64)]) -> Option<Trend> {
    let n = pairs.len();
    if n < 4 {
        return None;
    }
    let x = mean_ranks(pairs.iter().map(|p| p.0));
    let mut y = mean_ranks(pairs.iter().map(|p| p.1));
    let spread = |v: &[f64]| v.iter().map(|r| (r - middle(n)).powi(2)).sum::<f64>();
    let scale = (spread(&x) * spread(&y)).sqrt();
    if scale == 0.0 {
        return None;
    }
    let of = |y: &[f64]| x.iter().zip(y).map(|(a, b)| (a - middle(n)) * (b - middle(n))).sum::<f64>() / scale;
    let rho = of(&y);
    let seen = |y: &[f64]| of(y).abs() >= rho.abs() - 1e-12;
    let p = if n <= 8 {
        let (mut hits, mut all) = (0u32, 0u32);
        permutations(&mut y, 0, &mut |y| {
            all += 1;
            hits += u32::from(seen(y));
        });
        f64::from(hits) / f64::from(all)
    } else {
        const ROUNDS: usize = 20_000;
        let mut rng = Pcg64Mcg::new(0x0074_7265_6e64);
        let hits = (0..ROUNDS)
            .filter(|_| {
                for i in 0..n - 1 {
                    y.swap(i, i + (rng.next_u64() % (n - i) as u64) as usize);
                }
                seen(&y)
            })
            .count();
        (hits + 1) as f64 / (ROUNDS + 1) as f64
    };
    Some(Trend { rho, p, n })
}

fn middle(n: usize) -> f64 {
    (n as f64 + 1.0) / 2.0
}

fn permutations(v: &mut Vec<f64>, from: usize, tell: &mut dyn FnMut(&[f64])) {
    if from + 1 >= v.len() {
        return tell(v);
    }
    for i in from..v.len() {
        v.swap(from, i);
        permutations(v, from + 1, tell);
        v.swap(from, i);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn textbook_values() {
        let up: Vec<(f64, f64)> = (0..5).map(|i| (f64::from(i), f64::from(i * i))).collect();
        let t = trend(&up).unwrap();
        // Of 120 orders the one that rises and the one that falls.
        assert!((t.rho - 1.0).abs() < 1e-12 && (t.p - 2.0 / 120.0).abs() < 1e-12, "{t:?}");
        let t = trend(&[(1.0, 2.0), (2.0, 1.0), (3.0, 4.0), (4.0, 3.0), (5.0, 5.0)]).unwrap();
        assert!((t.rho - 0.8).abs() < 1e-12 && (t.p - 16.0 / 120.0).abs() < 1e-12, "{t:?}");
        let many: Vec<(f64, f64)> = (0..30).map(|i| (f64::from(i), -f64::from(i))).collect();
        let t = trend(&many).unwrap();
        assert!(t.rho < -0.999 && t.p < 1e-3, "{t:?}");
    }

    #[test]
    fn nothing_to_say() {
        assert_eq!(trend(&[(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]), None);
        assert_eq!(trend(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0), (1.0, 4.0)]), None);
    }
}
