//! Which alignments cost more than others: a sum of steps, each felt by every multiple of its size.
//!
//! A row holds the extra time of a read across a boundary of one alignment. When the card does extra work at every
//! multiple of `s`, every row whose alignment is a multiple of `s` is higher by the same amount, and no other row is.

use super::stats::Estimate;

/// Alignments that real cards use: powers of two and three times those (TLC: field-notes 3.7), ascending.
pub fn alignments(from: u64, to: u64) -> Vec<u64> {
    let mut all: Vec<u64> = (0..50).flat_map(|k| [1u64 << k, 3 << k]).filter(|a| (from..=to).contains(a)).collect();
    all.sort_unstable();
    all
}

/// One alignment and its extra time, in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub align: u64,
    pub extra: Estimate,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub size: u64,
    /// Microseconds added at every multiple of `size`.
    pub height: f64,
    /// Height in units of its noise.
    pub z: f64,
    /// Sizes the rows allow for this step, best first, with their probability.
    pub posterior: Vec<(u64, f64)>,
}

#[derive(Clone, Debug)]
pub struct Fit {
    /// Ascending by size.
    pub steps: Vec<Step>,
    /// Root mean square of what is left, in units of the rows' own noise; about 1 when the steps explain the rows.
    pub misfit: f64,
    /// Noise of a row in microseconds, the median over rows.
    pub noise: f64,
}

/// More than this many levels (page, planes, erase block, and one to spare) nobody has seen on a card.
const MOST: usize = 4;

/// Fits steps to rows by forward selection with the Bayesian information criterion.
///
/// `base` is the time of an access in microseconds: a row is never trusted to better than 0.4 % of it, nor to better than
/// 3 % of its own extra, because published cards wander that much between alignments that must be alike (F4).
pub fn fit(rows: &[Row], base: f64) -> Fit {
    let rows: Vec<Row> = rows.iter().copied().filter(|r| r.extra.value.is_finite() && r.extra.error.is_finite()).collect();
    let floor = |r: &Row| (0.004 * base).max(0.03 * r.extra.value.abs()).max(1e-3);
    let noise: Vec<f64> = rows.iter().map(|r| r.extra.error.hypot(floor(r))).collect();
    let mut chosen: Vec<usize> = vec![];
    let of = |i: usize| rows.iter().map(|r| r.align.is_multiple_of(rows[i].align)).collect();
    let feels: Vec<Vec<bool>> = (0..rows.len()).map(of).collect();
    let solve = |set: &[usize]| solve(&rows, &noise, &feels, set);
    let penalty = 2.0 * (rows.len().max(2) as f64).ln();
    let mut best = solve(&chosen);
    while chosen.len() < MOST {
        let candidate = (0..rows.len())
            .filter(|i| !chosen.contains(i))
            .map(|i| {
                let mut set = chosen.clone();
                set.push(i);
                (i, solve(&set))
            })
            .min_by(|a, b| a.1.chi2.total_cmp(&b.1.chi2));
        let Some((i, with)) = candidate else { break };
        let height = *with.heights.last().unwrap_or(&0.0);
        // A step must pay for itself and stand out of what the base time wanders.
        if best.chi2 - with.chi2 < penalty.max(9.0) || height < 2.5 * floor(&rows[i]) {
            break;
        }
        chosen.push(i);
        best = with;
    }
    let dof = rows.len().saturating_sub(chosen.len()).max(1) as f64;
    let misfit = (best.chi2 / dof).sqrt();
    // Where the model explains badly, all doubts grow with the misfit.
    let temper = misfit.max(1.0).powi(2) * 2.0;
    let mut steps: Vec<Step> = chosen
        .iter()
        .enumerate()
        .map(|(k, &i)| {
            let without: Vec<usize> = chosen.iter().copied().filter(|&j| j != i).collect();
            let mut all: Vec<(u64, f64)> = (0..rows.len())
                .filter(|j| !without.contains(j))
                .map(|j| {
                    let mut set = without.clone();
                    set.push(j);
                    (rows[j].align, (-(solve(&set).chi2 - best.chi2).max(0.0) / temper).exp())
                })
                .collect();
            let sum: f64 = all.iter().map(|a| a.1).sum();
            all.iter_mut().for_each(|a| a.1 /= sum);
            nandscope_stats::descending(&mut all, |a| a.1);
            all.truncate(4);
            let z = ((solve(&without).chi2 - best.chi2).max(0.0) / temper * 2.0).sqrt();
            Step { size: rows[i].align, height: best.heights[k], z, posterior: all }
        })
        .collect();
    nandscope_stats::sort_by_key(&mut steps, |s| s.size);
    Fit { steps, misfit, noise: super::stats::median(&noise) }
}

struct Solved {
    heights: Vec<f64>,
    chi2: f64,
}

/// Weighted least squares with heights that are not negative, by coordinate descent: at most four unknowns. `felt`: of each step which
/// rows feel it.
fn solve(rows: &[Row], noise: &[f64], felt: &[Vec<bool>], set: &[usize]) -> Solved {
    let mut h = vec![0.0; set.len()];
    let feels = |row: usize, k: usize| felt[set[k]][row];
    let left = |h: &[f64], row: usize| rows[row].extra.value - (0..set.len()).filter(|&k| feels(row, k)).map(|k| h[k]).sum::<f64>();
    for _ in 0..60 {
        let before = h.clone();
        for k in 0..set.len() {
            let (mut top, mut bottom) = (0.0, 0.0);
            for row in (0..rows.len()).filter(|&r| feels(r, k)) {
                let w = 1.0 / (noise[row] * noise[row]);
                top += w * (left(&h, row) + h[k]);
                bottom += w;
            }
            if bottom > 0.0 {
                h[k] = f64::max(0.0, top / bottom);
            }
        }
        if h == before {
            break;
        }
    }
    // Huber's loss: one wild row must not invent a step.
    let chi2 = (0..rows.len())
        .map(|row| {
            let z = (left(&h, row) / noise[row]).abs();
            if z < 4.0 { z * z } else { 8.0 * z - 16.0 }
        })
        .sum();
    Solved { heights: h, chi2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(table: &[(u64, f64)]) -> Vec<Row> {
        table.iter().map(|&(align, value)| Row { align, extra: Estimate { value, error: 4.0, n: 8 } }).collect()
    }

    /// F4 to F6: the README's own table.
    #[test]
    fn readme_card_has_4_mib_16_kib_and_8_kib() {
        let diffs = [324.0, 300.0, 294.0, 302.0, 299.0, 317.0, 171.0, 169.0, 165.0, 171.0, 165.0, 159.0, 157.0, 148.0, 53.3, 5.85, 4.65];
        let table: Vec<(u64, f64)> = diffs.iter().enumerate().map(|(i, &d)| (134_217_728 >> i, d)).collect();
        let f = fit(&rows(&table), 740.0);
        assert_eq!(f.steps.iter().map(|s| s.size).collect::<Vec<_>>(), [8 << 10, 16 << 10, 4 << 20], "{f:?}");
        assert!(f.steps.iter().all(|s| s.posterior[0].1 > 0.95), "{f:?}");
    }

    /// The Patriot stick: 24 MiB high and 12 MiB low is what rules out 12 and 4.
    #[test]
    fn three_times_powers_of_two_rule_each_other_out() {
        let mut table = vec![];
        for k in 17..31u32 {
            for a in [1u64 << k, 3 << k] {
                table.push((a, if a.is_multiple_of(8 << 20) { 215.0 } else { 32.0 }));
            }
        }
        let f = fit(&rows(&table), 600.0);
        assert_eq!(f.steps.last().unwrap().size, 8 << 20, "{f:?}");
    }

    #[test]
    fn noise_has_no_steps() {
        let wild = [-412.0, 335.0, -49.0, 32.7, -173.0, -18.7, 114.0, 263.0, 187.0, 549.0, 43.4, 299.0, 199.0, 641.0, -93.7];
        let table: Vec<Row> = wild
            .iter()
            .enumerate()
            .map(|(i, &value)| Row { align: (1 << 35) >> i, extra: Estimate { value, error: 200.0, n: 8 } })
            .collect();
        assert!(fit(&table, 1000.0).steps.is_empty());
    }
}
