//! Stalls of a record benchmark: how long, how often, how regular, and what buffer rides over them (G9, G10).

use crate::samples::records::Pass;
use serde::Serialize;

/// Calls of about the same length: a cache hit, a sector write (G3).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Population {
    /// Share of all calls.
    pub share: f64,
    /// µs.
    pub shortest: f64,
    pub median: f64,
    pub longest: f64,
}

/// Bins an octave of the histogram that populations are looked for in.
const BINS: f64 = 4.0;

/// The populations of a pass, shortest first; each holds at least 1 % of the calls. What lies above the last is its tail.
pub fn populations(pass: &Pass) -> Vec<Population> {
    let values: Vec<(f64, u64)> = pass.histogram.iter_recorded().map(|v| (v.value_iterated_to() as f64, v.count_at_value())).collect();
    let bin = |ns: f64| (ns.max(1.0).log2() * BINS) as usize;
    let mut counts = vec![0u64; values.last().map_or(0, |v| bin(v.0) + 1)];
    for (ns, n) in &values {
        counts[bin(*ns)] += n;
    }
    let least = (pass.records / 100).max(3);
    // Cuts: the lowest bin between two peaks, where it is below a fifth of the lower peak.
    let mut cuts = vec![];
    let (mut peak, mut low, mut low_at) = (0u64, u64::MAX, 0);
    for (i, &c) in counts.iter().enumerate() {
        if c < low {
            (low, low_at) = (c, i);
        }
        if c >= least && peak > 0 && low < peak.min(c) / 5 {
            cuts.push(low_at);
            (peak, low) = (c, u64::MAX);
        } else if c > peak {
            // Still going up: the valley is yet to come.
            (peak, low) = (c, u64::MAX);
        }
    }
    let total = pass.records.max(1) as f64;
    let mut out = vec![];
    for (i, from) in std::iter::once(0).chain(cuts.iter().copied()).enumerate() {
        let to = cuts.get(i).copied().unwrap_or(usize::MAX);
        let inside: Vec<&(f64, u64)> = values.iter().filter(|v| (from..to).contains(&bin(v.0))).collect();
        let n: u64 = inside.iter().map(|v| v.1).sum();
        let mut below = 0;
        let median = inside.iter().find(|v| {
            below += v.1;
            2 * below >= n
        });
        let (Some(first), Some(median)) = (inside.first(), median) else { continue };
        // The last population ends where a thousandth of it is left: the rest is its tail.
        let mut seen = 0;
        let last = inside.iter().find(|v| {
            seen += v.1;
            seen as f64 >= 0.999 * n as f64
        });
        out.push(Population {
            share: n as f64 / total,
            shortest: first.0 / 1e3,
            median: median.0 / 1e3,
            longest: last.map_or(median.0, |v| v.0) / 1e3,
        });
    }
    out
}

/// A regular distance between stalls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Period {
    /// Bytes, or ns.
    pub length: f64,
    /// Where in the period the stalls lie.
    pub phase: f64,
    /// Share of the stalls that lie on it, and share of its places that have one.
    pub on: f64,
    pub filled: f64,
    /// Probability that it is no accident.
    pub confidence: f64,
}

/// What is known of the stalls of a pass.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stalls {
    /// A call longer than this counts as a stall, in µs: five times the median of the slowest population of 5 % or more,
    /// and a millisecond at least.
    pub threshold: f64,
    pub count: u64,
    /// A GB (10^9 B), with the interval of 95 % that counting gives.
    pub per_gb: f64,
    pub interval: [f64; 2],
    /// µs: median and longest.
    pub median: f64,
    pub longest: f64,
    /// Share of the time of all calls above the median call of that population.
    pub cost: f64,
    pub in_bytes: Option<Period>,
    pub in_time: Option<Period>,
    /// Longer than so many ms: how many calls.
    pub tail: Vec<(f64, u64)>,
}

/// Limits of the SD specification, in ms: busy of SDSC and SDHC, busy of SDXC, an update of the FAT (speed class).
pub const LIMITS: [(f64, &str); 3] =
    [(250.0, "busy time of a write, SD and SDHC"), (500.0, "busy time of a write, SDXC"), (750.0, "update of the FAT, speed class cards")];

/// 95 % interval of a count (Wilson and Hilferty's approximation of the exact one).
pub fn poisson(n: u64) -> [f64; 2] {
    let cube = |n: f64, z: f64| n * (1.0 - 1.0 / (9.0 * n) + z / (3.0 * n.sqrt())).powi(3);
    [if n == 0 { 0.0 } else { cube(n as f64, -1.96) }, cube(n as f64 + 1.0, 1.96)]
}

/// The stalls of a pass.
pub fn stalls(pass: &Pass) -> Stalls {
    let groups = populations(pass);
    let usual = groups.iter().rfind(|p| p.share >= 0.05).map_or(pass.percentile(50.0), |p| p.median);
    // What is over in a millisecond stalls nobody.
    let threshold = (5.0 * usual).max(1000.0);
    let slow: Vec<(u64, u64, u64)> = pass.timed().filter(|c| c.2 as f64 / 1e3 > threshold).collect();
    let count = slow.len() as u64;
    let gb = pass.bytes() as f64 / 1e9;
    let mut lengths: Vec<f64> = slow.iter().map(|c| c.2 as f64 / 1e3).collect();
    lengths.sort_by(f64::total_cmp);
    let start = pass.position.unwrap_or(0);
    let bytes: Vec<f64> = slow.iter().map(|c| (start + c.0 * pass.record) as f64).collect();
    let times: Vec<f64> = slow.iter().map(|c| c.1 as f64).collect();
    let lost: f64 = lengths.iter().map(|l| l - usual).sum();
    let over =
        |ms: f64| pass.histogram.iter_recorded().filter(|v| v.value_iterated_to() as f64 > ms * 1e6).map(|v| v.count_at_value()).sum();
    Stalls {
        threshold,
        count,
        per_gb: count as f64 / gb,
        interval: poisson(count).map(|x| x / gb),
        median: lengths.get(lengths.len() / 2).copied().unwrap_or(0.0),
        longest: lengths.last().copied().unwrap_or(0.0),
        cost: lost * 1e3 / pass.total.0.max(1) as f64,
        in_bytes: period(&bytes, 1.5 * pass.record as f64),
        in_time: period(&times, 1e3 * usual),
        tail: [1.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 750.0].map(|ms| (ms, over(ms))).to_vec(),
    }
}

/// The period that the places keep to best, if they do. `grain` is how exactly a place is known.
pub fn period(places: &[f64], grain: f64) -> Option<Period> {
    let n = places.len();
    if n < 4 {
        return None;
    }
    let mut gaps: Vec<f64> = places.windows(2).map(|w| w[1] - w[0]).filter(|g| *g > 4.0 * grain).collect();
    gaps.sort_by(f64::total_cmp);
    let span = places[n - 1] - places[0];
    let mut candidates: Vec<f64> =
        (0..40).filter_map(|i| gaps.get(i * gaps.len() / 40).copied()).flat_map(|g| [g, g / 2.0, g / 3.0]).collect();
    candidates.retain(|p| *p > 4.0 * grain && *p <= span / 2.5);
    candidates.sort_by(f64::total_cmp);
    candidates.dedup_by(|a, b| (*a / *b - 1.0).abs() < 1e-6);
    let tried = candidates.len() as f64;
    let judged = candidates.into_iter().filter_map(|p| keep(places, p, grain)).filter(|(p, _)| p.on >= 0.6 && p.filled >= 0.4);
    // A half of the period explains the same places; the longer one says more.
    let (best, ln_p) = judged.min_by(|a, b| a.1.round().total_cmp(&b.1.round()).then(b.0.length.total_cmp(&a.0.length)))?;
    // Each candidate was a chance to be fooled.
    let confidence = 1.0 - (ln_p + tried.ln()).exp().min(1.0);
    (confidence >= 0.95).then_some(Period { confidence: confidence.min(0.99), ..best })
}

/// How well the places keep to a period near `p`: it, and ln of the probability that places at random do as well.
fn keep(places: &[f64], p: f64, grain: f64) -> Option<(Period, f64)> {
    let n = places.len() as f64;
    let mut p = p;
    let mut hits: Vec<(f64, f64)> = vec![];
    let mut phase = 0.0;
    for round in 0..3 {
        // A wide net first, while the period is a rough one.
        let near = grain.max(p * [0.1, 0.05, 0.02][round]).min(p / 4.0);
        let turn = places.iter().map(|x| x / p * std::f64::consts::TAU);
        let (s, c) = turn.fold((0.0, 0.0), |(s, c), a| (s + a.sin(), c + a.cos()));
        phase = (s.atan2(c) / std::f64::consts::TAU * p).rem_euclid(p);
        hits = places.iter().map(|x| (((x - phase) / p).round(), *x)).filter(|(k, x)| (x - phase - k * p).abs() <= near).collect();
        if hits.len() < 3 {
            return None;
        }
        // Least squares over the places that keep to it.
        let m = hits.len() as f64;
        let (mk, mx) = (hits.iter().map(|h| h.0).sum::<f64>() / m, hits.iter().map(|h| h.1).sum::<f64>() / m);
        let skk: f64 = hits.iter().map(|h| (h.0 - mk).powi(2)).sum();
        if skk > 0.0 {
            p = hits.iter().map(|h| (h.0 - mk) * (h.1 - mx)).sum::<f64>() / skk;
            phase = (mx - mk * p).rem_euclid(p);
        }
    }
    let near = grain.max(p * 0.02).min(p / 4.0);
    let mut filled: Vec<i64> = hits.iter().map(|h| h.0 as i64).collect();
    filled.dedup();
    let turns = (places[places.len() - 1] - places[0]) / p + 1.0;
    // Two of the places set period and phase.
    let (k, m) = (hits.len() as f64 - 2.0, n - 2.0);
    let chance = (2.0 * near / p).min(0.999);
    let rate = k / m;
    if rate <= chance {
        return None;
    }
    // Chernoff's bound of the binomial tail.
    let divergence = rate * (rate / chance).ln() + if rate < 1.0 { (1.0 - rate) * ((1.0 - rate) / (1.0 - chance)).ln() } else { 0.0 };
    let found = Period { length: p, phase, on: hits.len() as f64 / n, filled: filled.len() as f64 / turns, confidence: 0.0 };
    Some((found, -m * divergence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Nanos;

    fn pass(record: u64, ns: impl IntoIterator<Item = u64>) -> Pass {
        let mut p = Pass::new(true, record, false);
        let mut at = 0;
        for t in ns {
            at += t;
            p.add(Nanos(t), at);
        }
        p.elapsed = Nanos(at);
        p
    }

    #[test]
    fn hits_and_sector_writes_are_two_populations() {
        let p = pass(100, (0..50_000u64).map(|i| if i % 5 == 4 { 1_300_000 + i % 900 * 100 } else { 84_000 + i % 7 * 1000 }));
        let g = populations(&p);
        assert_eq!(g.len(), 2, "{g:?}");
        assert!((g[0].share - 0.8).abs() < 0.01 && g[0].median < 95.0 && g[1].shortest > 1200.0, "{g:?}");
        assert_eq!(populations(&pass(512, (0..9000u64).map(|i| 1_000_000 + i * 20))).len(), 1);
    }

    #[test]
    fn a_period_in_bytes_is_found_and_none_in_noise() {
        let every = |n: u64| pass(512, (0..20_000u64).map(|i| if i % n == n - 1 { 84_000_000 } else { 1_150_000 }));
        let s = stalls(&every(1024));
        let p = s.in_bytes.unwrap();
        assert!((p.length / 524_288.0 - 1.0).abs() < 0.01 && p.on > 0.9 && p.filled > 0.9, "{p:?}");
        assert_eq!(s.count, 19);
        // Drawn by chance.
        let mut x = 1u64;
        let p = pass(
            512,
            (0..20_000).map(|_| {
                x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                if x >> 33 < (1 << 31) / 700 { 84_000_000 } else { 1_150_000 }
            }),
        );
        let s = stalls(&p);
        assert!(s.count > 10 && s.in_bytes.is_none() && s.in_time.is_none(), "{s:?}");
    }

    #[test]
    fn intervals_of_counts_are_those_of_the_tables() {
        for (n, lo, hi) in [(0, 0.0, 3.69), (1, 0.03, 5.57), (10, 4.80, 18.39), (100, 81.36, 121.63)] {
            let [a, b] = poisson(n);
            assert!((a - lo).abs() < 0.03 && (b - hi).abs() < 0.15, "{n}: {a} {b}");
        }
    }
}
