//! What a series of writes shows by itself: where a cache of fast flash was full.

use super::data::Data;
use nandscope_sim::Op;
use std::collections::BTreeMap;

/// Writes of one length that a series needs on either side of a step.
const SIDE: usize = 3;

/// Bytes written, up to which writes of a length were faster than all that came later: between the last of the fast and the first of the slow ones, and both ends.
pub fn fast_bytes(data: &Data) -> Vec<u64> {
    let mut steps: Vec<(f64, u64, u64)> = vec![];
    for rows in data.rows.chunk_by(|_, next| !next.first) {
        let mut of: BTreeMap<u64, Vec<(u64, f64)>> = BTreeMap::new();
        let mut written = 0;
        for r in rows.iter().filter(|r| r.op == Op::Write) {
            of.entry(r.len).or_default().push((written, (r.took as f64).ln()));
            written += r.len;
        }
        steps.extend(of.values().filter_map(|x| step(x)));
    }
    nandscope_stats::descending(&mut steps, |s| s.0);
    let Some(&(_, mut low, mut high)) = steps.first() else { return vec![] };
    // Writes of other lengths that show the same step say more closely where it was.
    for &(_, from, to) in &steps[1..] {
        if from.max(low) < to.min(high) {
            (low, high) = (from.max(low), to.min(high));
        }
    }
    let mut all: Vec<u64> = [high, low, low.midpoint(high)].map(|b| b / data.sector * data.sector).into_iter().filter(|&b| b > 0).collect();
    all.dedup();
    all
}

/// The step of a series that explains most of its variance, in standard errors, with the bytes before its last fast and its first slow write; none where the slow
/// ones are no slower than the others scatter.
fn step(x: &[(u64, f64)]) -> Option<(f64, u64, u64)> {
    let n = x.len();
    let sum: f64 = x.iter().map(|x| x.1).sum();
    let mut before = 0.0;
    let mut best: Option<(f64, usize)> = None;
    for k in 1..n {
        before += x[k - 1].1;
        let (a, b) = (k as f64, (n - k) as f64);
        let rise = ((sum - before) / b - before / a) * (a * b / n as f64).sqrt();
        if k >= SIDE && n - k >= SIDE && best.is_none_or(|(r, _)| rise > r) {
            best = Some((rise, k));
        }
    }
    let (rise, k) = best.filter(|b| b.0 > 0.0)?;
    let mean = |x: &[(u64, f64)]| x.iter().map(|x| x.1).sum::<f64>() / x.len() as f64;
    let (a, b) = (mean(&x[..k]), mean(&x[k..]));
    let left: f64 = x.iter().enumerate().map(|(i, x)| (x.1 - if i < k { a } else { b }).powi(2)).sum();
    let scatter = (left / n as f64).sqrt().max(1e-6);
    (b - a > scatter).then(|| (rise / scatter, x[k - 1].0, x[k].0))
}

#[cfg(test)]
mod tests {
    use super::super::data::Row;
    use super::*;

    fn data(writes: &[(u64, u64)]) -> Data {
        let row =
            |(i, &(len, took)): (usize, &(u64, u64))| Row { op: Op::Write, at: 0, len, took, gap: 0, condition: 0, part: 0, first: i == 0 };
        Data { rows: writes.iter().enumerate().map(row).collect(), sector: 512, size: 1 << 30, ..Data::default() }
    }

    #[test]
    fn a_full_cache_is_a_step() {
        let all: Vec<(u64, u64)> =
            (0..300).map(|i| ([65_536, 4096][i % 2], [1000, 200][i % 2] * if i < 200 { 1 } else { 3 } + (i as u64 * 7) % 13)).collect();
        let found = fast_bytes(&data(&all));
        assert!(found.iter().any(|&b| b.abs_diff(100 * (65_536 + 4096)) <= 65_536), "{found:?}");
        let even: Vec<(u64, u64)> = (0..300).map(|i| (4096, 1000 + (i * 7) % 13)).collect();
        assert!(fast_bytes(&data(&even)).is_empty());
    }
}
