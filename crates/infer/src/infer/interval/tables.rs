//! Fixed access time and rate of reads from `flashbench -i`: time = access + size / rate, over sizes 512 B x 2^k.
//!
//! What fools it: the smallest sizes cost a page each whatever they are, so they lie above the line for a reason of their
//! own; large ones are split by the host; one slow size. So relative errors are minimised, single sizes bounded, and the
//! interval comes from leaving out each size in turn.

use crate::finding::{Finding, Quantity};
use crate::infer::stats;
use crate::infer::stats::{mad, median, quantile};
use crate::samples::import::{IntervalTest, Tables};
use crate::units::{Bytes, KIB, rate, three};

/// Sizes that a line can be judged by.
const LEAST: usize = 4;
const LARGEST_PAGE: u64 = 64 * KIB;

pub fn infer(tables: &Tables) -> Vec<Finding> {
    let rows = |t: &IntervalTest| t.rows.iter().map(|r| (r.size, r.min)).collect::<Vec<_>>();
    let points: Vec<(u64, f64)> = tables.interval.iter().flat_map(rows).collect();
    let Some(first) = tables.interval.first() else { return vec![] };
    let runs = tables.interval.len();
    let mut out = judge(&points);
    for f in &mut out {
        f.from = vec![format!("interval table ({}, {runs} {})", tables.at(first.place), if runs == 1 { "run" } else { "runs" })];
    }
    out
}

/// A line through times: µs, and µs a byte.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    pub access: f64,
    pub per_byte: f64,
}

impl Line {
    pub fn at(&self, size: u64) -> f64 {
        self.access + self.per_byte * size as f64
    }
}

/// The line of least relative error, with single points bounded; `None` where the points allow none.
pub fn fit(points: &[(u64, f64)]) -> Option<Line> {
    let mut line: Option<Line> = None;
    for _ in 0..12 {
        // Huber's weight at three per cent, relative to the time itself.
        let weight = |size: u64, t: f64| {
            let off = line.map_or(0.0, |l| ((t - l.at(size)) / t).abs());
            0.03 / off.max(0.03) / (t * t)
        };
        let (access, per_byte) = stats::line(points.iter().map(|&(size, t)| (size as f64, t, weight(size, t))))?;
        line = Some(Line { access, per_byte });
    }
    line
}

fn judge(points: &[(u64, f64)]) -> Vec<Finding> {
    let both = [Quantity::AccessTimeUs, Quantity::ReadRate];
    let undecided = |why: String| both.map(|q| Finding::undecided(q, why.clone())).to_vec();
    let points: Vec<(u64, f64)> = points.iter().copied().filter(|p| p.1 > 0.0).collect();
    let mut sizes: Vec<u64> = points.iter().map(|p| p.0).collect();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() < LEAST {
        return undecided(format!("an interval needs {LEAST} sizes, there are {}", sizes.len()));
    }
    // By size: the quickest of all runs, as the tool itself takes the quickest of its passes.
    let quickest: Vec<(u64, f64)> =
        sizes.iter().map(|&s| (s, points.iter().filter(|p| p.0 == s).map(|p| p.1).fold(f64::INFINITY, f64::min))).collect();
    let Some(all) = fit(&quickest) else { return undecided("the sizes do not differ enough for a line".into()) };
    // Sizes below a page cost a page: they count as one of that size where that explains them far better.
    let raised = |floor: u64| quickest.iter().map(|&(s, t)| (s.max(floor), t)).collect::<Vec<_>>();
    let miss = |floor: u64| {
        let p = raised(floor);
        fit(&p).map_or(f64::INFINITY, |l| p.iter().map(|&(s, t)| ((t - l.at(s)) / t).abs().min(0.3)).sum::<f64>())
    };
    let floors = sizes.iter().copied().filter(|&s| s <= LARGEST_PAGE && sizes.iter().filter(|&&o| o > s).count() >= LEAST);
    let best = floors.map(|s| (s, miss(s))).min_by(|a, b| a.1.total_cmp(&b.1)).filter(|b| b.1 < 0.6 * miss(0)).map_or(0, |b| b.0);
    let all = if best > 0 { fit(&raised(best)).unwrap_or(all) } else { all };
    // Leave each size out in turn.
    let others: Vec<Line> = (0..quickest.len())
        .filter_map(|i| fit(&raised(best).into_iter().enumerate().filter(|x| x.0 != i).map(|x| x.1).collect::<Vec<_>>()))
        .collect();
    let off: Vec<f64> = raised(best).iter().map(|&(s, t)| (t - all.at(s)) / t).collect();
    let scatter = mad(&off).max(off.iter().map(|x| x.abs().min(0.5)).sum::<f64>() / off.len() as f64 / 1.5);
    let text = format!(
        "{} sizes from {} ({} µs) to {} ({} µs) lie within ± {:.0} % of one line",
        quickest.len(),
        Bytes(quickest[0].0),
        three(quickest[0].1),
        Bytes(quickest[quickest.len() - 1].0),
        three(quickest[quickest.len() - 1].1),
        (100.0 * scatter).max(1.0)
    );
    if all.per_byte <= 0.0 || scatter > 0.25 {
        return undecided("the times do not grow with the size along a line".into())
            .into_iter()
            .map(|f| f.evidence(text.clone()))
            .collect();
    }
    let span = |x: &dyn Fn(&Line) -> f64| {
        let v: Vec<f64> = others.iter().map(x).chain([x(&all)]).filter(|x| x.is_finite()).collect();
        [quantile(&v, 0.0), quantile(&v, 1.0)]
    };
    let trust = |lo: f64, hi: f64, v: f64| {
        let wide = (hi - lo).abs() / v;
        0.93 - 0.5 * wide.min(0.8) - 1.2 * (scatter - 0.04).clamp(0.0, 0.2)
    };
    let digits = |x: f64| {
        let f = 10f64.powi(2 - x.abs().max(1e-12).log10().floor() as i32);
        (x * f).round() / f
    };
    let one = |q: Quantity, v: f64, [lo, hi]: [f64; 2]| {
        let p = trust(lo, hi, v);
        if v <= 0.0 || p < 0.5 {
            return Finding::undecided(q, format!("leaving out one size moves it from {} to {}", q.show(lo.max(0.0)), q.show(hi)))
                .evidence(text.clone());
        }
        let mut f = Finding::decided(q, digits(v), p).evidence(text.clone());
        f.interval = Some([digits(lo.max(0.0)).min(0.97 * v), digits(hi).max(1.03 * v)]);
        f
    };
    let per = span(&|l: &Line| 1e6 / l.per_byte);
    let mut out = vec![one(both[0], all.access, span(&|l: &Line| l.access)), one(both[1], 1e6 / all.per_byte, per)];
    let worst = quickest.iter().zip(&off).filter(|x| *x.1 > (6.0 * median(&off.iter().map(|o| o.abs()).collect::<Vec<_>>())).max(0.15));
    let odd: Vec<String> = worst.map(|((s, _), o)| format!("{} takes {:.0} % longer than the line says", Bytes(*s), 100.0 * o)).collect();
    if !odd.is_empty() {
        out[1].caveats.push(odd.join(", "));
    }
    out[1].evidence.push(format!("a long read reaches {}", rate(quickest.iter().map(|&(s, t)| s as f64 / t * 1e6).fold(0.0, f64::max))));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::import::read;

    fn log(us: impl Fn(u64) -> f64, order: u32) -> Vec<Finding> {
        let row = |k: u32| {
            let (s, ns) = (512u64 << k, (us(512 << k) * 1e3) as i64);
            let t = crate::flashbench::format::time;
            format!("{s} bytes: min {} avg {} max {}: 1 MB/s\n", t(ns), t(ns + ns / 20), t(ns + ns / 7))
        };
        infer(&read(&[("t", (0..order).map(row).collect::<String>())]).unwrap())
    }

    #[test]
    fn a_line_has_an_access_time_and_a_rate() {
        let f = log(|s| 310.0 + s as f64 / 18.0, 11);
        assert!((f[0].number().unwrap() / 310.0 - 1.0).abs() < 0.02 && f[0].confidence > 0.85, "{f:?}");
        assert!((f[1].number().unwrap() / 18e6 - 1.0).abs() < 0.02 && f[1].confidence > 0.85, "{f:?}");
        // Sizes below a page cost a page; one size stalls.
        let f = log(|s| (310.0 + s.max(8192) as f64 / 18.0) * if s == 65536 { 1.5 } else { 1.0 }, 12);
        assert!((f[1].number().unwrap() / 18e6 - 1.0).abs() < 0.12, "{f:?}");
        assert!(f[1].caveats.iter().any(|c| c.contains("64 KiB")), "{f:?}");
    }

    #[test]
    fn noise_and_too_few_sizes_have_none() {
        let f = log(|s| [900.0, 350.0, 2200.0, 500.0][s.trailing_zeros() as usize % 4], 11);
        assert!(f.iter().all(|f| f.value.is_none() || f.confidence < 0.7), "{f:?}");
        assert!(log(|s| 300.0 + s as f64 / 18.0, 3).iter().all(|f| f.value.is_none()));
        // All time goes into the rate: no access time shows.
        assert!(log(|s| s as f64 / 18.0, 11)[0].confidence < 0.8);
    }
}
