//! What tables of different N say of the limit: each N weighed against the smaller ones, over the middle sizes.

use std::collections::BTreeMap;

use crate::infer::stats::{ln_sum_exp, mad, median, normal_density, quantile, t3_density};
use crate::samples::import::{OpenTest, Tables};
use crate::units::KIB;

/// Smaller writes may be gathered in a log, and tell of that instead.
pub(super) const SMALLEST: u64 = 32 * KIB;
/// Sizes of one table share their history: they count for this much of their number.
const INDEPENDENT: f64 = 0.7;
/// No single N counts for more than this (natural logarithm): what fooled one size may have fooled all.
pub(super) const MOST: f64 = 6.0;
/// ln of a drift from one N to one four larger that is still none of a cliff.
pub(super) const DRIFT: f64 = 0.3;
/// Share of table rows that a stall or a clean-up of the card slows (published tables: about one in twenty).
const STALLS: f64 = 0.06;

/// Nobody tries more numbers of AUs in one log, nor prints more sizes.
const MOST_COUNTS: usize = 64;
const MOST_SIZES: usize = 24;

/// The tables of one file and one AU size.
pub(super) struct Series {
    /// ln of milliseconds a write, by N, by size; repeats averaged.
    pub ms: BTreeMap<u32, BTreeMap<u64, f64>>,
    /// The sizes that tell, largest first.
    middle: Vec<u64>,
    pub place: String,
    /// Index of its file.
    pub file_index: usize,
    /// Line of the first row of each N and size.
    lines: BTreeMap<(u32, u64), usize>,
    /// Bytes of an AU.
    pub au: u64,
    file: String,
}

impl Series {
    /// ln times of one N at the middle sizes it has.
    pub fn at(&self, n: u32) -> Vec<(u64, f64)> {
        self.middle.iter().filter_map(|s| Some((*s, *self.ms.get(&n)?.get(s)?))).collect()
    }

    /// "log.txt:62, 69": where rows stand, given by N and size.
    pub fn rows(&self, of: &[(u32, u64)]) -> String {
        let lines: Vec<String> = of.iter().filter_map(|key| self.lines.get(key)).map(usize::to_string).collect();
        if lines.is_empty() { self.place.clone() } else { format!("{}:{}", self.file, lines.join(", ")) }
    }

    /// The N that have at least two middle sizes, ascending.
    pub fn counts(&self) -> Vec<u32> {
        self.ms.keys().copied().filter(|&n| self.at(n).len() >= 2).take(MOST_COUNTS).collect()
    }

    /// Median over some N, by size.
    pub fn reference(&self, of: &[u32]) -> BTreeMap<u64, f64> {
        let at = |s: u64| of.iter().filter_map(|n| self.ms.get(n)?.get(&s).copied()).collect::<Vec<f64>>();
        self.middle.iter().map(|&s| (s, median(&at(s)))).filter(|x| x.1.is_finite()).collect()
    }

    /// ln ratios of one N to a reference.
    pub fn ratios(&self, n: u32, reference: &BTreeMap<u64, f64>) -> Vec<f64> {
        self.at(n).iter().filter_map(|(s, y)| Some(y - reference.get(s)?)).collect()
    }
}

/// The tables in this order that say how many AUs were written.
pub(super) fn in_order(tables: &Tables, random: bool) -> impl Iterator<Item = &OpenTest> {
    tables.open.iter().filter(move |t| t.n.is_some() && t.random.unwrap_or(false) == random)
}

pub(super) fn series(tables: &Tables, random: bool) -> Vec<Series> {
    let mut groups: BTreeMap<(usize, u64), Vec<&OpenTest>> = BTreeMap::new();
    for t in in_order(tables, random) {
        // The first row is one whole AU.
        let au = t.erase_size.or(t.rows.first().map(|r| r.size)).unwrap_or(0);
        groups.entry((t.place.file, au)).or_default().push(t);
    }
    let one = |((_, au), tests): ((usize, u64), Vec<&OpenTest>)| {
        let mut all: BTreeMap<u32, BTreeMap<u64, Vec<f64>>> = BTreeMap::new();
        let mut lines = BTreeMap::new();
        for t in &tests {
            for r in &t.rows {
                lines.entry((t.n.unwrap_or(0), r.size)).or_insert(r.line);
                all.entry(t.n.unwrap_or(0)).or_default().entry(r.size).or_default().push(r.ms().ln());
            }
        }
        let mut sizes: Vec<u64> = all.values().flat_map(|m| m.keys().copied()).filter(|&s| s <= au / 4).collect();
        sizes.sort_unstable_by_key(|&s| std::cmp::Reverse(s));
        sizes.dedup();
        sizes.truncate(MOST_SIZES);
        let middle: Vec<u64> = sizes.iter().copied().filter(|&s| s >= SMALLEST).collect();
        let ms = all.into_iter().map(|(n, m)| (n, m.into_iter().map(|(s, v)| (s, median(&v))).collect())).collect();
        let place = tests[0].place;
        let file = tables.files.get(place.file).cloned().unwrap_or_else(|| "?".into());
        Series {
            ms,
            middle: if middle.len() >= 2 { middle } else { sizes },
            place: tables.at(place),
            lines,
            au,
            file,
            file_index: place.file,
        }
    };
    groups.into_iter().map(one).filter(|s| !s.counts().is_empty()).collect()
}

/// ln density of ratios when N fits. The common drift is a few per cent for each N on published tables. A stall or a
/// clean-up slows one row, or some rows in turn: they are written one after the other.
///
/// `gap`: how many AUs more than those that it is compared with. A drift grows with that; half of the rate from one N to the next
/// is none.
fn ln_fits(r: &[f64], noise: f64, gap: f64) -> f64 {
    let drifts: Vec<f64> = (-4..=14).map(|i| i as f64 * 0.05).collect();
    let knee = DRIFT * (gap / 4.0).max(1.0);
    let likely = |d: f64| -d.abs() / 0.12 - (d.abs() - knee).max(0.0) / 0.06;
    let stalled = |x: f64| if (0.0..2.0).contains(&x) { 0.5 } else { 0.01 };
    // From row a up to row b is a clean-up; none where they are equal. Never more than half of the rows.
    let mut windows = vec![(0, 0, 0.85f64.ln())];
    let bursts: Vec<(usize, usize)> = (0..r.len()).flat_map(|a| (a + 1..=(a + r.len() / 2).min(r.len())).map(move |b| (a, b))).collect();
    windows.extend(bursts.iter().map(|&(a, b)| (a, b, (0.15 / bursts.len() as f64).ln())));
    let mut all = vec![];
    for &drift in &drifts {
        for &(a, b, prior) in &windows {
            let row = |(i, x): (usize, &f64)| {
                let calm = (1.0 - STALLS) * t3_density(x - drift, noise) + STALLS * stalled(*x);
                if (a..b).contains(&i) { stalled(*x).ln() } else { calm.ln() }
            };
            all.push(prior + INDEPENDENT * r.iter().enumerate().map(row).sum::<f64>() + likely(drift));
        }
    }
    ln_sum_exp(&all) - ln_sum_exp(&drifts.iter().map(|&d| likely(d)).collect::<Vec<_>>())
}

/// ln density of ratios when N exceeds the limit: the extra time is the same for all sizes, or a smooth power of the size
/// where a cache gathers writes. `rows`: size, ln time, ln ratio; `most`: the largest mean ratio (ln). A mean factor of 1.5 is the least: closing an AU copies
/// part of it, and less than a quarter of an AU is written meanwhile.
fn ln_exceeds(rows: &[(u64, f64, f64)], noise: f64, most: f64) -> f64 {
    let factors: Vec<f64> = (0..24).map(|i| 0.4 + 0.2 * i as f64).filter(|f| *f <= most).collect();
    let powers = [-0.4, 0.0, 0.4, 0.8, 1.1];
    let mut all = vec![];
    for &factor in &factors {
        for &power in &powers {
            // Extra time over fast time, by size, up to the scale that gives the mean factor.
            let shape: Vec<f64> = rows.iter().map(|&(z, y, r)| (z as f64 / 65536.0).powf(power) / (y - r).exp()).collect();
            let mean = |scale: f64| shape.iter().map(|x| (scale * x).ln_1p()).sum::<f64>() / shape.len() as f64;
            let (mut lo, mut hi) = (1e-6f64, 1e9f64);
            for _ in 0..26 {
                let mid = (lo * hi).sqrt();
                if mean(mid) < factor { lo = mid } else { hi = mid }
            }
            // Some cards keep to the law, others roughly.
            for loose in [0.2, 0.04] {
                let row = |(x, s): (&(u64, f64, f64), &f64)| {
                    let want = (lo * s).ln_1p();
                    (0.95 * t3_density(x.2 - want, loose * want + noise) + 0.05 * if (0.0..5.0).contains(&x.2) { 0.2 } else { 0.01 }).ln()
                };
                all.push(INDEPENDENT * rows.iter().zip(&shape).map(row).sum::<f64>() - factor / 1.5);
            }
        }
    }
    let norm = ln_sum_exp(&factors.iter().map(|f| -f / 1.5).collect::<Vec<_>>()) + (2.0 * powers.len() as f64).ln();
    ln_sum_exp(&all) - norm
}

/// Scatter of ratios over the sizes where nothing else happens: the calmer N of the series.
fn noise(s: &Series, counts: &[u32]) -> f64 {
    let each: Vec<f64> =
        (1..counts.len()).map(|i| mad(&s.ratios(counts[i], &s.reference(&counts[..i])))).filter(|x| x.is_finite()).collect();
    let calm = quantile(&each, 0.3);
    if calm.is_finite() { calm.clamp(0.05, 0.15) } else { 0.07 }
}

/// How the time of a write grows with its size: 1 where writes cost what they carry, 0 where each pays for a closed AU.
pub(super) fn slope(points: &[(u64, f64)]) -> f64 {
    let mut all = vec![];
    for (i, a) in points.iter().enumerate() {
        for b in &points[i + 1..] {
            all.push((a.1 - b.1) / ((a.0 as f64).ln() - (b.0 as f64).ln()));
        }
    }
    median(&all)
}

/// ln odds that a table on its own shows every write paying, from its slope alone. Linear writes above the limit may
/// still be gathered by a cache and grow with the size, so a slope of 1 says less than a slope of 0.
pub(super) fn ln_pays(slope: f64) -> f64 {
    // Small writes that are the faster ones say no less than even ones.
    let slope = slope.min(0.9);
    let pays = 0.7 * normal_density(slope, 0.1, 0.2) + 0.3 * normal_density(slope, 0.9, 0.2) + 0.002;
    let fits = 0.95 * normal_density(slope, 0.9, 0.14) + 0.05 * normal_density(slope, 0.6, 0.4) + 0.002;
    (pays / fits).ln().clamp(-MOST, MOST)
}

/// One series weighed: what each N says of each limit.
pub(super) struct Weighed {
    counts: Vec<u32>,
    /// ln odds that no N fits: that of the smallest, from its own table, and of the others against slow ones.
    none: f64,
    /// By number of counts that fit (one at least), by count: ln odds that it exceeds.
    odds: Vec<Vec<f64>>,
    /// The same against the counts that fit alone, whatever lies between.
    plain: Vec<Vec<f64>>,
}

impl Weighed {
    pub fn of(s: &Series) -> Weighed {
        let counts = s.counts();
        let noise = noise(s, &counts);
        let gap = |j: usize, before: &[u32]| {
            let b: Vec<f64> = before.iter().map(|&n| n as f64).collect();
            (counts[j] as f64 - median(&b)).abs()
        };
        let as_fit: Vec<f64> =
            (0..counts.len()).map(|j| ln_fits(&s.ratios(counts[j], &s.reference(&counts[..j])), noise, gap(j, &counts[..j]))).collect();
        let (mut odds, mut plain) = (vec![], vec![]);
        for fit in 1..=counts.len() {
            let fast = s.reference(&counts[..fit]);
            let extra = |n: u32| {
                let e: Vec<f64> = s.at(n).iter().filter_map(|(z, y)| Some(y.exp() - fast.get(z)?.exp())).collect();
                median(&e)
            };
            let worst = counts[fit..].iter().map(|&n| extra(n)).fold(0.0, f64::max);
            let (mut all, mut bare) = (vec![0.0; fit], vec![0.0; fit]);
            for j in fit..counts.len() {
                let n = counts[j];
                let rows: Vec<(u64, f64, f64)> = s.at(n).iter().filter_map(|(z, y)| Some((*z, *y, y - fast.get(z)?))).collect();
                let mut over = ln_exceeds(&rows, noise, f64::INFINITY);
                bare.push(over - ln_fits(&s.ratios(n, &fast), noise, gap(j, &counts[..fit])));
                if j > fit {
                    // Slow as those before it are slow: the cost of one AU is much the same for every N.
                    let like = ln_fits(&s.ratios(n, &s.reference(&counts[fit..j])), noise, gap(j, &counts[fit..j]));
                    over = ln_sum_exp(&[over, like]) - 2f64.ln();
                }
                let ln = (over - as_fit[j]).clamp(-MOST, MOST);
                // Of a round over N AUs at least as many are closed as exceed the limit, whatever the card throws out.
                let closed = (n + 1 - counts[fit]) as f64 / n as f64;
                all.push(if extra(n) < 0.5 * worst * closed { ln - MOST } else { ln });
            }
            odds.push(all);
            plain.push(bare);
        }
        // Where all are slow, one may still be slower than those before, by a factor of two or so: half of the writes
        // closed an AU, now all do.
        let slower = (1..counts.len()).map(|j| {
            let before = s.reference(&counts[..j]);
            let rows: Vec<(u64, f64, f64)> = s.at(counts[j]).iter().filter_map(|(z, y)| Some((*z, *y, y - before.get(z)?))).collect();
            // Where every write pays already, nothing makes it pay four times as much.
            if median(&rows.iter().map(|r| r.2).collect::<Vec<_>>()) > 1.4 {
                return -MOST;
            }
            (ln_sum_exp(&[as_fit[j], ln_exceeds(&rows, noise, 0.9)]) - 2f64.ln() - as_fit[j]).clamp(-MOST, MOST)
        });
        // The limits below the smallest N tried are many, and whoever began there had a reason: together they weigh as three.
        let many = (counts[0] as f64 / 3.0).max(1.0).ln();
        let none = ln_pays(slope(&s.at(counts[0]))) + slower.sum::<f64>() - many;
        Weighed { none, odds, plain, counts }
    }

    fn fitting(&self, limit: u32) -> usize {
        self.counts.iter().filter(|&&n| n <= limit).count()
    }

    /// ln probability of a limit, up to a constant. That one AU pays by itself is asked elsewhere.
    pub fn ln_limit(&self, limit: u32) -> f64 {
        match self.fitting(limit) {
            0 if self.counts[0] == 1 => f64::NEG_INFINITY,
            0 => self.none,
            fit => self.odds[fit - 1].iter().sum(),
        }
    }

    /// An N that says the opposite of a limit by itself.
    pub fn against(&self, limit: u32) -> Option<u32> {
        let fit = self.fitting(limit);
        let slow = (1..fit).find(|&j| self.odds[j - 1][j] > MOST / 2.0);
        let fast = (fit.max(1)..self.counts.len()).find(|&j| fit > 0 && self.plain[fit - 1][j] < -MOST / 2.0);
        slow.or(fast).map(|j| self.counts[j])
    }
}
