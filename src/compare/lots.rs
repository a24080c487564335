//! Groups of cards: what can be said of the lots they come from.

use super::Subject;
use crate::finding::Quantity;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use serde::Serialize;

/// Two groups of cards: what can be said of the lots they come from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lots {
    pub what: String,
    pub a: Vec<f64>,
    pub b: Vec<f64>,
    /// Exact permutation test of the difference of the mean ranks, two-sided.
    pub p: f64,
    /// The smallest p that groups of these sizes could give.
    pub least: f64,
}

pub fn lots(a: &[Subject], b: &[Subject]) -> Vec<Lots> {
    let mut out = vec![];
    for q in Quantity::ALL {
        let of = |all: &[Subject]| -> Vec<f64> { all.iter().filter_map(|s| s.findings.value(q, 0.75)).collect() };
        let (x, y) = (of(a), of(b));
        if x.len() >= 2 && y.len() >= 2 {
            let (p, least) = permutation(&x, &y);
            out.push(Lots { what: q.title().into(), a: x, b: y, p, least });
        }
    }
    out
}

/// Two-sided p of the difference of mean ranks over all (or, of very many, 20 000 drawn) ways to part the values; and the smallest
/// p possible.
pub fn permutation(a: &[f64], b: &[f64]) -> (f64, f64) {
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    let rank = |v: f64| all.iter().filter(|x| **x < v).count() as f64 + all.iter().filter(|x| **x == v).count() as f64 / 2.0;
    let ranks: Vec<f64> = all.iter().map(|&v| rank(v)).collect();
    let (m, total) = (a.len(), all.len());
    let expected = ranks.iter().sum::<f64>() * m as f64 / total as f64;
    let seen = (ranks[..m].iter().sum::<f64>() - expected).abs() - 1e-9;
    let ways: f64 = (0..m).map(|i| (total - i) as f64 / (i + 1) as f64).product();
    let least = if a.len() == b.len() { 2.0 / ways } else { 1.0 / ways };
    if total <= 18 {
        let mut hits = 0.0;
        let mut count = 0.0;
        for mask in 0u32..1 << total {
            if mask.count_ones() as usize == m {
                count += 1.0;
                let sum: f64 = (0..total).filter(|i| mask >> i & 1 == 1).map(|i| ranks[i]).sum();
                hits += f64::from((sum - expected).abs() >= seen);
            }
        }
        return (hits / count, least);
    }
    let mut rng = Pcg64Mcg::new(7);
    let mut order: Vec<f64> = ranks.clone();
    let rounds = 20_000;
    let hits = (0..rounds)
        .filter(|_| {
            for i in 0..m {
                order.swap(i, i + (rng.next_u64() % (total - i) as u64) as usize);
            }
            (order[..m].iter().sum::<f64>() - expected).abs() >= seen
        })
        .count();
    ((hits + 1) as f64 / (rounds + 1) as f64, least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_permutations() {
        // Four against four, completely apart: 2 of 70 ways.
        assert_eq!(permutation(&[5.0, 5.0, 5.0, 5.0], &[1.0, 1.0, 1.0, 1.0]), (2.0 / 70.0, 2.0 / 70.0));
        assert!(permutation(&[5.0, 4.0, 6.0], &[5.0, 4.0, 6.0]).0 > 0.9);
    }
}
