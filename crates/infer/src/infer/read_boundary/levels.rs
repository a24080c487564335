//! Which levels a column of rows shows: every set of up to four steps weighed against the rows, the noise unknown.
//!
//! The noise has a part that is the same for all rows and a part that grows with the level, as rows of published cards
//! show, and heavy tails; neighbouring rows share some of it. Heights come from weighted least squares, their number and
//! width are paid for. The answer for one level is the sum over all sets that contain it.

use crate::infer::stats::{ln_sum_exp, mad};

use super::tables::SMALL;

/// Steps beyond these (page, planes, erase block, one to spare) nobody has seen on a card.
const MOST: usize = 4;
/// Prior of a number of steps below `SMALL`: none, a page, page and planes, one more.
const FEW: [f64; MOST + 1] = [0.25, 0.45, 0.24, 0.05, 0.01];
/// Prior of a number of steps from `SMALL` on: none, an erase block, and something else besides.
const LARGE: [f64; MOST + 1] = [0.3, 0.66, 0.038, 0.001, 0.001];
/// Neighbouring rows share part of their noise (the same region of the card): they count for this much of their number.
const INDEPENDENT: f64 = 0.85;

/// Steps to weigh, and which rows feel them.
pub(super) struct Design {
    pub sizes: Vec<u64>,
    /// By row: of the kind 3 * 2^n. Between such a row and its neighbour 2^n lies no noise but a step.
    pub threes: Vec<bool>,
    /// By row, by step: 1 where the row's alignment is a multiple of the step.
    pub feels: Vec<Vec<f64>>,
    pub y: Vec<f64>,
    pub base: f64,
}

/// A set of steps with its weight.
pub(super) struct Fit {
    pub set: Vec<usize>,
    pub heights: Vec<f64>,
    pub ln: f64,
}

/// ln of the probability of the rows under a set of steps, up to a constant, for one size of the noise: `sigma` µs for all
/// rows and `tau` of the level.
fn evidence(d: &Design, set: &[usize], sigma: f64, tau: f64, rounds: usize) -> Option<(f64, Vec<f64>)> {
    const NU: f64 = 7.0;
    let k = set.len();
    let mut h = vec![];
    let mut level = d.y.clone();
    let mut ln_det = 0.0;
    for round in 0..=rounds {
        let (mut normal, mut right) = (vec![vec![0.0; k]; k], vec![0.0; k]);
        for ((y, m), feels) in d.y.iter().zip(&level).zip(&d.feels) {
            let s2 = sigma * sigma + (tau * m.max(0.0)).powi(2);
            let z2 = if round == 0 { 0.0 } else { (y - m).powi(2) / s2 };
            let w = (NU + 1.0) / (NU + z2) / s2;
            for (a, &i) in set.iter().enumerate() {
                right[a] += w * feels[i] * y;
                for (b, &j) in set.iter().enumerate() {
                    normal[a][b] += w * feels[i] * feels[j];
                }
            }
        }
        (h, ln_det) = solve(&normal, &right)?;
        level = d.feels.iter().map(|feels| set.iter().zip(&h).map(|(&i, h)| h * feels[i]).sum()).collect();
    }
    // A step that costs nothing, or saves time, is none.
    if h.iter().any(|&h| h <= 0.002 * d.base) {
        return None;
    }
    let mut ln = 0.0;
    for (y, m) in d.y.iter().zip(&level) {
        let s2 = sigma * sigma + (tau * m.max(0.0)).powi(2);
        ln += -0.5 * s2.ln() - (NU + 1.0) / 2.0 * (1.0 + (y - m).powi(2) / s2 / NU).ln();
    }
    // Each height is uniform up to the largest one the rows could have: the share of that range the rows leave it.
    let range = d.y.iter().copied().fold(0.3 * d.base, f64::max);
    let occam = 0.5 * (k as f64 * (2.0 * std::f64::consts::PI).ln() - ln_det) - k as f64 * range.ln();
    Some((INDEPENDENT * ln + occam.min(0.0), h))
}

/// Solves the normal equations by elimination; also ln of the determinant. `None` when they are singular.
fn solve(a: &[Vec<f64>], b: &[f64]) -> Option<(Vec<f64>, f64)> {
    let n = b.len();
    let mut m: Vec<Vec<f64>> = a.iter().zip(b).map(|(r, &y)| r.iter().copied().chain([y]).collect()).collect();
    let mut ln_det = 0.0;
    for c in 0..n {
        // Positive definite: no pivoting.
        if m[c][c].is_nan() || m[c][c] <= 1e-12 * a[c][c] {
            return None;
        }
        ln_det += m[c][c].ln();
        let pivot = m[c].clone();
        for r in (0..n).filter(|&r| r != c) {
            let f = m[r][c] / pivot[c];
            m[r].iter_mut().zip(&pivot).for_each(|(x, p)| *x -= f * p);
        }
    }
    Some((m.iter().enumerate().map(|(i, r)| r[n] / r[i]).collect(), ln_det))
}

/// How many sets are kept at each size of the search, and for the whole integral.
const KEEP: usize = 40;

/// The likely sets of at most `MOST` steps, best first, weights summing to 1.
pub(super) fn posterior(d: &Design) -> Vec<Fit> {
    let n = d.sizes.len();
    let few = d.sizes.iter().filter(|&&s| s < SMALL).count();
    let prior = |set: &[usize]| {
        let k = set.iter().filter(|&&i| d.sizes[i] < SMALL).count();
        let ways = |n: usize, k: usize| (0..k).map(|i| (n - i) as f64 / (i + 1) as f64).product::<f64>();
        (FEW[k] / ways(few, k) * LARGE[set.len() - k] / ways(n - few, set.len() - k)).ln()
    };
    // A first look with two sizes of noise tells which sets deserve more steps, and the whole integral.
    let jumps: Vec<f64> = [false, true]
        .into_iter()
        .flat_map(|three| {
            let y: Vec<f64> = d.y.iter().zip(&d.threes).filter(|x| *x.1 == three).map(|x| *x.0).collect();
            y.windows(2).map(|w| w[1] - w[0]).collect::<Vec<_>>()
        })
        .collect();
    let guess = (mad(&jumps) / 1.5).max(0.005 * d.base);
    let look = |set: Vec<usize>| {
        let ln = [(guess, 0.05), (4.0 * guess, 0.15)].map(|(a, b)| evidence(d, &set, a, b, 2).map_or(f64::NEG_INFINITY, |e| e.0));
        (ln[0].max(ln[1]) + prior(&set), set)
    };
    let mut beam = vec![look(vec![])];
    let mut seen = beam.clone();
    for _ in 0..MOST {
        let mut next: Vec<Vec<usize>> = vec![];
        for (_, set) in &beam {
            for i in (0..n).filter(|i| !set.contains(i)) {
                let mut more = set.clone();
                more.push(i);
                more.sort_unstable();
                next.push(more);
            }
        }
        next.sort_unstable();
        next.dedup();
        beam = next.into_iter().map(look).filter(|l| l.0.is_finite()).collect();
        nandscope_stats::descending(&mut beam, |a| a.0);
        beam.truncate(KEEP);
        seen.extend(beam.iter().cloned());
    }
    nandscope_stats::descending(&mut seen, |a| a.0);
    seen.truncate(KEEP);
    let sigmas: Vec<f64> = (0..9).map(|i| d.base * 0.002 * 2f64.powi(i)).collect();
    let mut fits: Vec<Fit> = seen
        .into_iter()
        .filter_map(|(_, set)| {
            let mut best: Option<(f64, Vec<f64>)> = None;
            let mut all = vec![];
            for &sigma in &sigmas {
                for tau in [0.02, 0.06, 0.18] {
                    if let Some((ln, h)) = evidence(d, &set, sigma, tau, 4) {
                        all.push(ln);
                        if best.as_ref().is_none_or(|b| ln > b.0) {
                            best = Some((ln, h));
                        }
                    }
                }
            }
            Some(Fit { ln: ln_sum_exp(&all) + prior(&set), heights: best?.1, set })
        })
        .collect();
    let sum = ln_sum_exp(&fits.iter().map(|f| f.ln).collect::<Vec<_>>());
    fits.iter_mut().for_each(|f| f.ln = (f.ln - sum).exp());
    nandscope_stats::descending(&mut fits, |a| a.ln);
    fits
}

/// Robust scatter of the rows around the best set of steps, in µs.
pub(super) fn residual(d: &Design, fits: &[Fit]) -> f64 {
    let r: Vec<f64> =
        d.y.iter()
            .enumerate()
            .map(|(i, y)| y - fits.first().map_or(0.0, |f| f.set.iter().zip(&f.heights).map(|(&k, h)| h * d.feels[i][k]).sum()))
            .collect();
    mad(&r)
}

/// Height of a step in the likeliest set that has it, in µs.
pub(super) fn height(d: &Design, fits: &[Fit], size: u64) -> f64 {
    fits.iter().find_map(|f| f.set.iter().zip(&f.heights).find(|x| d.sizes[*x.0] == size)).map_or(0.0, |x| *x.1)
}
