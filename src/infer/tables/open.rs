//! Open AUs and the cost of closing one, from `flashbench --open-au` tables with different N.
//!
//! Below the limit a write takes as long with N AUs as with one; above it every round closes some, and the time of a
//! write stops depending on its size. Each N is weighed against the smaller ones, over the middle sizes: up to a quarter
//! of an AU (larger writes hide the cost, Q12) and from 32 KiB on (smaller ones may go to a log of their own). Under
//! "fits" the times of all sizes are alike but for one common drift (slow decline with N is not a cliff), noise and single
//! stalls; under "exceeds" they are longer by a factor that is free, but common in kind. No monotony above the limit is
//! assumed (Q11). All runs add up to one posterior over the limit.

use std::collections::BTreeMap;

use crate::finding::{Finding, Quantity};
use crate::infer::stats::{ln_sum_exp, mad, median, quantile};
use crate::samples::import::{OpenTest, Tables};
use crate::units::{Bytes, KIB, three};

/// Smaller writes may be gathered in a log, and tell of that instead.
const SMALLEST: u64 = 32 * KIB;
/// Sizes of one table share their history: they count for this much of their number.
const INDEPENDENT: f64 = 0.6;
/// No single N counts for more than this (natural logarithm): what fooled one size may have fooled all.
const MOST: f64 = 6.0;
/// Share of table rows that a stall or a clean-up of the card slows (published tables: about one in twenty).
const STALLS: f64 = 0.06;

/// The tables of one file and one AU size.
struct Series {
    /// ln of milliseconds a write, by N, by size; repeats averaged.
    ms: BTreeMap<u32, BTreeMap<u64, f64>>,
    /// The sizes that tell, largest first.
    middle: Vec<u64>,
    place: String,
}

impl Series {
    /// ln times of one N at the middle sizes it has.
    fn at(&self, n: u32) -> Vec<(u64, f64)> {
        self.middle.iter().filter_map(|s| Some((*s, *self.ms.get(&n)?.get(s)?))).collect()
    }

    /// The N that have at least two middle sizes, ascending.
    fn counts(&self) -> Vec<u32> {
        self.ms.keys().copied().filter(|&n| self.at(n).len() >= 2).collect()
    }

    /// Median over some N, by size.
    fn reference(&self, of: &[u32]) -> BTreeMap<u64, f64> {
        let at = |s: u64| of.iter().filter_map(|n| self.ms.get(n)?.get(&s).copied()).collect::<Vec<f64>>();
        self.middle.iter().map(|&s| (s, median(&at(s)))).filter(|x| x.1.is_finite()).collect()
    }

    /// ln ratios of one N to a reference.
    fn ratios(&self, n: u32, reference: &BTreeMap<u64, f64>) -> Vec<f64> {
        self.at(n).iter().filter_map(|(s, y)| Some(y - reference.get(s)?)).collect()
    }
}

fn series(tables: &Tables, random: bool) -> Vec<Series> {
    let mut groups: BTreeMap<(usize, u64), Vec<&OpenTest>> = BTreeMap::new();
    for t in tables.open.iter().filter(|t| t.n.is_some() && t.random.unwrap_or(false) == random) {
        // The first row is one whole AU.
        let au = t.erase_size.or(t.rows.first().map(|r| r.size)).unwrap_or(0);
        groups.entry((t.place.file, au)).or_default().push(t);
    }
    let one = |((_, au), tests): ((usize, u64), Vec<&OpenTest>)| {
        let mut all: BTreeMap<u32, BTreeMap<u64, Vec<f64>>> = BTreeMap::new();
        for t in &tests {
            for r in &t.rows {
                all.entry(t.n.unwrap_or(0)).or_default().entry(r.size).or_default().push(r.ms().ln());
            }
        }
        let mut sizes: Vec<u64> = all.values().flat_map(|m| m.keys().copied()).filter(|&s| s <= au / 4).collect();
        sizes.sort_unstable_by_key(|&s| std::cmp::Reverse(s));
        sizes.dedup();
        let middle: Vec<u64> = sizes.iter().copied().filter(|&s| s >= SMALLEST).collect();
        let ms = all.into_iter().map(|(n, m)| (n, m.into_iter().map(|(s, v)| (s, median(&v))).collect())).collect();
        Series { ms, middle: if middle.len() >= 2 { middle } else { sizes }, place: tables.at(tests[0].place) }
    };
    groups.into_iter().map(one).filter(|s| !s.counts().is_empty()).collect()
}

/// Student's t density with three degrees of freedom.
fn t3(x: f64, scale: f64) -> f64 {
    0.3675 / scale / (1.0 + (x / scale).powi(2) / 3.0).powi(2)
}

fn normal(x: f64, m: f64, s: f64) -> f64 {
    (-0.5 * ((x - m) / s).powi(2)).exp() / s / 2.5066
}

/// ln density of ratios when N fits. The common drift is a few per cent for each N on published tables. A stall or a
/// clean-up slows one row, or some rows in turn: they are written one after the other.
fn ln_fits(r: &[f64], noise: f64) -> f64 {
    let drifts: Vec<f64> = (-4..=14).map(|i| i as f64 * 0.05).collect();
    let stalled = |x: f64| if (0.0..2.0).contains(&x) { 0.5 } else { 0.01 };
    // From row a up to row b is a clean-up; none where they are equal. Never more than half of the rows.
    let mut windows = vec![(0, 0, 0.85f64.ln())];
    let bursts: Vec<(usize, usize)> = (0..r.len()).flat_map(|a| (a + 1..=(a + r.len() / 2).min(r.len())).map(move |b| (a, b))).collect();
    windows.extend(bursts.iter().map(|&(a, b)| (a, b, (0.15 / bursts.len() as f64).ln())));
    let mut all = vec![];
    for &drift in &drifts {
        for &(a, b, prior) in &windows {
            let row = |(i, x): (usize, &f64)| {
                let calm = (1.0 - STALLS) * t3(x - drift, noise) + STALLS * stalled(*x);
                if (a..b).contains(&i) { stalled(*x).ln() } else { calm.ln() }
            };
            all.push(prior + INDEPENDENT * r.iter().enumerate().map(row).sum::<f64>() - drift.abs() / 0.12);
        }
    }
    ln_sum_exp(&all) - ln_sum_exp(&drifts.iter().map(|d| -d.abs() / 0.12).collect::<Vec<_>>())
}

/// ln density of ratios when N exceeds the limit: the extra time is the same for all sizes, or a smooth power of the size
/// where a cache gathers writes. `rows`: size, ln time, ln ratio. A mean factor of 1.5 is the least: closing an AU copies
/// part of it, and less than a quarter of an AU is written meanwhile.
fn ln_exceeds(rows: &[(u64, f64, f64)], noise: f64) -> f64 {
    let factors: Vec<f64> = (0..24).map(|i| 0.4 + 0.2 * i as f64).collect();
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
            let row = |(x, s): (&(u64, f64, f64), &f64)| {
                let want = (lo * s).ln_1p();
                (0.95 * t3(x.2 - want, 0.2 * want + noise) + 0.05 * if (0.0..5.0).contains(&x.2) { 0.2 } else { 0.01 }).ln()
            };
            all.push(INDEPENDENT * rows.iter().zip(&shape).map(row).sum::<f64>() - factor / 1.5);
        }
    }
    let norm = ln_sum_exp(&factors.iter().map(|f| -f / 1.5).collect::<Vec<_>>()) + (powers.len() as f64).ln();
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
fn slope(points: &[(u64, f64)]) -> f64 {
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
fn ln_pays(slope: f64) -> f64 {
    let pays = 0.8 * normal(slope, 0.1, 0.2) + 0.2 * normal(slope, 0.9, 0.2) + 0.01;
    let fits = 0.97 * normal(slope, 0.9, 0.14) + 0.03;
    (pays / fits).ln().clamp(-MOST, MOST)
}

/// One series weighed: what each N says of each limit.
struct Weighed {
    counts: Vec<u32>,
    /// ln odds "pays" of the smallest N, from its own table.
    first: f64,
    /// By number of counts that fit (one at least), by count: ln odds that it exceeds.
    odds: Vec<Vec<f64>>,
}

impl Weighed {
    fn of(s: &Series) -> Weighed {
        let counts = s.counts();
        let noise = noise(s, &counts);
        let as_fit: Vec<f64> = (0..counts.len()).map(|j| ln_fits(&s.ratios(counts[j], &s.reference(&counts[..j])), noise)).collect();
        let odds = (1..=counts.len()).map(|fit| {
            let fast = s.reference(&counts[..fit]);
            let extra = |n: u32| {
                let e: Vec<f64> = s.at(n).iter().filter_map(|(z, y)| Some(y.exp() - fast.get(z)?.exp())).collect();
                median(&e)
            };
            let worst = counts[fit..].iter().map(|&n| extra(n)).fold(0.0, f64::max);
            let one = |j: usize| {
                let n = counts[j];
                let rows: Vec<(u64, f64, f64)> = s.at(n).iter().filter_map(|(z, y)| Some((*z, *y, y - fast.get(z)?))).collect();
                let mut over = ln_exceeds(&rows, noise);
                if j > fit {
                    // Slow as those before it are slow: the cost of one AU is much the same for every N.
                    let like = ln_fits(&s.ratios(n, &s.reference(&counts[fit..j])), noise);
                    over = ln_sum_exp(&[over, like]) - 2f64.ln();
                }
                let ln = (over - as_fit[j]).clamp(-MOST, MOST);
                // Of a round over N AUs at least as many are closed as exceed the limit, whatever the card throws out.
                let closed = (n + 1 - counts[fit]) as f64 / n as f64;
                if extra(n) < 0.5 * worst * closed { ln - MOST / 2.0 } else { ln }
            };
            (0..counts.len()).map(|j| if j < fit { 0.0 } else { one(j) }).collect()
        });
        let odds = odds.collect();
        Weighed { first: ln_pays(slope(&s.at(counts[0]))), odds, counts }
    }

    fn fitting(&self, limit: u32) -> usize {
        self.counts.iter().filter(|&&n| n <= limit).count()
    }

    /// ln probability of a limit, up to a constant. That one AU pays by itself is asked elsewhere.
    fn ln_limit(&self, limit: u32) -> f64 {
        match self.fitting(limit) {
            0 if self.counts[0] == 1 => f64::NEG_INFINITY,
            0 => self.first,
            fit => self.odds[fit - 1].iter().sum(),
        }
    }

    /// An N that says the opposite of a limit by itself.
    fn against(&self, limit: u32) -> Option<u32> {
        let fit = self.fitting(limit);
        let slow = (1..fit).find(|&j| self.odds[j - 1][j] > MOST / 2.0);
        let fast = (fit.max(1)..self.counts.len()).find(|&j| fit > 0 && self.odds[fit - 1][j] < -MOST / 2.0);
        slow.or(fast).map(|j| self.counts[j])
    }
}

/// Both orders, and the cost of closing an AU from whatever exceeds the limits.
pub fn infer(tables: &Tables) -> Vec<Finding> {
    let mut closings = Closings::default();
    let mut out = order(tables, false, &mut closings);
    out.extend(order(tables, true, &mut closings));
    out.extend(closings.judge());
    out
}

fn order(tables: &Tables, random: bool, closings: &mut Closings) -> Vec<Finding> {
    let q = if random { Quantity::OpenAusRandom } else { Quantity::OpenAusLinear };
    let order = if random { "random" } else { "linear" };
    let all = series(tables, random);
    let most = all.iter().flat_map(|s| s.counts()).max().unwrap_or(0);
    if most == 0 {
        let here = tables.open.iter().filter(|t| t.random.unwrap_or(false) == random).count();
        let nameless = tables.open.iter().filter(|t| t.n.is_none()).count();
        let why = match () {
            _ if here > nameless => format!("no {order} table has two rows of a quarter AU or less"),
            _ if nameless > 0 && !random => "the tables do not say how many AUs were written".into(),
            _ => return vec![],
        };
        return vec![Finding::undecided(q, why)];
    }
    // No series may rule a limit out for good.
    let mut ln = vec![0.0; most as usize + 1];
    let weighed: Vec<Weighed> = all.iter().map(Weighed::of).collect();
    for w in &weighed {
        let one: Vec<f64> = (0..=most).map(|k| w.ln_limit(k)).collect();
        let top = one.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        ln.iter_mut().zip(&one).for_each(|(l, o)| *l += (o - top).max(-2.0 * MOST));
    }
    ln[0] += if all.iter().any(|s| s.counts()[0] == 1) { -2.0 * MOST } else { 0.0 };
    // "That many or more" stands for several limits.
    ln[most as usize] += f64::ln(4.0);
    let sum = ln_sum_exp(&ln);
    let p: Vec<f64> = ln.iter().map(|l| (l - sum).exp()).collect();
    let mut f = decide(q, order, &all, &p, alone(&all, random));
    let said = f.number().or(f.at_least.map(|b| b.0)).filter(|&k| k > 0.0);
    if let Some((k, n)) = said.and_then(|k| Some((k, weighed.iter().find_map(|w| w.against(k as u32))?))) {
        let side = if n as f64 > k { "fast" } else { "slow" };
        let why = format!("the tables contradict each other: {n} AUs are {side}, the others say {k}; two cards, or a card that was busy");
        f = Finding { evidence: f.evidence, ..Finding::undecided(q, why) };
    }
    if let Some(k) = f.number().filter(|&k| k > 0.0) {
        closings.add(&all, k as u32, f.confidence);
    }
    let place: Vec<String> = all.iter().map(|s| s.place.clone()).collect();
    f.from = vec![format!("open-AU tables, {order} ({})", place.join(", "))];
    vec![f]
}

/// Probability that even one AU pays for every write, from the tables of one AU.
fn alone(all: &[Series], random: bool) -> f64 {
    let ones: Vec<f64> = all.iter().filter(|s| s.counts()[0] == 1).map(|s| ln_pays(slope(&s.at(1)))).collect();
    if ones.is_empty() {
        return 0.0;
    }
    // Linear order in one AU is what every card is made for.
    let prior: f64 = if random { 0.25 } else { 0.03 };
    let ln = (prior / (1.0 - prior)).ln() + ones.iter().sum::<f64>().clamp(-MOST, MOST);
    1.0 / (1.0 + (-ln).exp())
}

fn decide(q: Quantity, order: &str, all: &[Series], p: &[f64], alone: f64) -> Finding {
    let most = p.len() - 1;
    let (k, top) = p.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0));
    let rivals = |skip: usize| {
        let mut r: Vec<(f64, f64)> = p.iter().enumerate().filter(|x| x.0 != skip && *x.1 > 0.01).map(|(k, &p)| (k as f64, p)).collect();
        r.sort_by(|a, b| b.1.total_cmp(&a.1));
        r.truncate(3);
        r
    };
    let quoted = all.iter().filter_map(|s| quote(s, k as u32)).take(3);
    let tell = |mut f: Finding| {
        f.evidence.extend(quoted.clone());
        f.caveats.extend(remarks(all, k as u32, most as u32));
        f
    };
    if alone > 0.5 {
        let each = all.iter().filter(|s| s.counts()[0] == 1).map(|s| median(&s.at(1).iter().map(|x| x.1.exp()).collect::<Vec<_>>()));
        let text =
            format!("with one AU already a {order} write takes about {} ms, whatever its size", three(median(&each.collect::<Vec<_>>())));
        let cliff = k < most && k > 1 && top > 0.8;
        if !cliff {
            return tell(Finding::decided(q, 0.0, (0.92 * alone).min(0.9)).rivals([(1.0, 1.0 - alone)]).evidence(text));
        }
        // Both are true: every write pays something, and from one N on much more. Which of them is meant is not certain.
        let f =
            Finding::decided(q, k as f64, (0.75 * top).min(0.75)).rivals([(0.0, 0.2)]).caveat(format!("{text}: counted so, none is open"));
        return tell(f);
    }
    // Untried N between two that were: the limit is any of them.
    let tested: Vec<u32> = all.iter().flat_map(|s| s.counts()).collect();
    if k < most && top >= 0.65 {
        let over = all.iter().map(|s| s.counts().iter().filter(|&&n| n > k as u32).count()).sum::<usize>();
        let trust = top * if over > 1 { 0.97 } else { 0.93 };
        return tell(Finding::decided(q, k as f64, trust.min(0.96)).rivals(rivals(k)));
    }
    // The largest bound that is nearly sure.
    let tail = |j: usize| p[j..].iter().sum::<f64>();
    let bound = (1..=most).rev().filter(|&j| tested.contains(&(j as u32))).find(|&j| tail(j) >= 0.8);
    let next = tested.iter().copied().filter(|&n| bound.is_some_and(|b| n as usize > b)).min();
    match bound {
        Some(b) if b == most => {
            let why = format!("no cliff up to {b} AUs, and more were not tried");
            tell(Finding::at_least(q, b as f64, (0.97 * tail(b)).min(0.95), why))
        }
        Some(b) if b > 1 || next.is_some_and(|n| n > 2) => {
            let why = match next {
                Some(n) if tail(n as usize) < 0.15 => format!("{n} AUs are slow; between {b} and {n} nothing was tried"),
                Some(n) => format!("{b} AUs are fast; at {n} some sizes are slower and others are not"),
                None => format!("{b} AUs are fast"),
            };
            let mut f = Finding::at_least(q, b as f64, (0.97 * tail(b)).min(0.95), why);
            f.rivals = Finding::decided(q, -1.0, 0.0).rivals(rivals(usize::MAX)).rivals;
            tell(f)
        }
        _ => {
            let first = tested.iter().min().copied().unwrap_or(0);
            let why = if first > 1 && p[first as usize..].iter().sum::<f64>() < 0.5 {
                format!("the smallest number tried, {first}, is slow already")
            } else {
                "the tables contradict each other: fast and slow counts are mixed".into()
            };
            tell(Finding::undecided(q, why))
        }
    }
}

/// The two rows that show the limit best, in the log's own figures.
fn quote(s: &Series, k: u32) -> Option<String> {
    let counts = s.counts();
    let fits = counts.iter().rev().find(|&&n| n <= k)?;
    let rate = |n: u32, z: u64| s.ms.get(&n)?.get(&z).map(|ms| crate::flashbench::format::rate(z as f64 / ms.exp() * 1e3));
    match counts.iter().find(|&&n| n > k) {
        Some(over) => {
            let worst = s.at(*over).iter().filter_map(|(z, y)| Some((*z, y - s.ms[fits].get(z)?))).max_by(|a, b| a.1.total_cmp(&b.1))?;
            Some(format!(
                "{}: {} with {fits} AUs, {} with {over} ({})",
                Bytes(worst.0),
                rate(*fits, worst.0)?,
                rate(*over, worst.0)?,
                s.place
            ))
        }
        None => {
            let z = s.at(*fits).get(s.at(*fits).len() / 2)?.0;
            Some(format!("{}: {} with {} AUs, {} with {fits} ({})", Bytes(z), rate(counts[0], z)?, counts[0], rate(*fits, z)?, s.place))
        }
    }
}

/// Things about the tables that a reader would remark on.
fn remarks(all: &[Series], k: u32, most: u32) -> Vec<String> {
    let mut out: Vec<String> = vec![];
    for s in all {
        let counts = s.counts();
        let fit: Vec<u32> = counts.iter().copied().filter(|&n| n <= k).collect();
        let over: Vec<u32> = counts.iter().copied().filter(|&n| n > k).collect();
        if let ([first, .., last], true) = (&fit[..], k >= most) {
            let fall = median(&s.ratios(*last, &s.reference(&[*first])));
            if fall > 0.1 {
                out.push(format!(
                    "slow decline without a cliff: {:.0} % of the rate of {first} AUs is left at {last}",
                    100.0 * (-fall).exp()
                ));
            }
        }
        if let (Some(a), Some(b)) = (fit.last(), over.first()) {
            let small: Vec<f64> = s.ms[b].iter().filter(|x| *x.0 < SMALLEST).filter_map(|(z, y)| Some(y - s.ms[a].get(z)?)).collect();
            let jump = s.ratios(*b, &s.reference(&fit));
            if !small.is_empty() && median(&small) < 0.3 * median(&jump) {
                out.push(format!("writes below {} do not pay: they go to a log or a cache", Bytes(SMALLEST)));
            }
            if median(&jump) < 1.1 {
                out.push(format!("the cut is a factor of {:.1} only", median(&jump).exp()));
            }
        }
    }
    out.sort();
    out.dedup();
    out
}

/// What closing an AU costs: the extra time above the limit, where it does not depend on the size.
#[derive(Default)]
struct Closings {
    /// Milliseconds, one for each N above the limit.
    each: Vec<f64>,
    /// N whose extra time grows with the size.
    uneven: usize,
    trust: f64,
    places: Vec<String>,
}

impl Closings {
    fn add(&mut self, all: &[Series], k: u32, trust: f64) {
        self.trust = self.trust.max(trust);
        for s in all {
            let counts = s.counts();
            let fit: Vec<u32> = counts.iter().copied().filter(|&n| n <= k).collect();
            let fast = s.reference(&fit);
            for n in counts.iter().filter(|&&n| n > k) {
                // The smaller half of the sizes: there the write itself is short.
                let at = s.at(*n);
                let e: Vec<f64> = at[at.len() / 2..].iter().filter_map(|(z, y)| Some(y.exp() - fast.get(z)?.exp())).collect();
                let (lo, hi) = (quantile(&e, 0.0), quantile(&e, 1.0));
                if e.len() >= 2 && lo > 0.0 && hi <= 1.6 * lo { self.each.push(median(&e)) } else { self.uneven += 1 }
            }
            self.places.push(s.place.clone());
        }
    }

    fn judge(&self) -> Option<Finding> {
        let q = Quantity::CloseCostMs;
        if self.each.len() + self.uneven == 0 {
            return None;
        }
        let from = |mut f: Finding| {
            f.from = vec![format!("open-AU tables ({})", self.places.join(", "))];
            f
        };
        if self.each.len() < self.uneven {
            let why = "above the limit the extra time of a write grows with its size: no single cost";
            return Some(from(Finding::undecided(q, why)));
        }
        let (lo, hi) = (quantile(&self.each, 0.0), quantile(&self.each, 1.0));
        let text = format!("extra time of a write of less than 1/16 AU above the limit: {} ms", super::span(self.each.iter().copied()));
        // With one AU more than fit, some cards close one only now and then: half the cost is common.
        if hi > 2.5 * lo {
            return Some(from(
                Finding::undecided(q, format!("the extra time above the limit ranges from {} to {} ms", three(lo), three(hi)))
                    .evidence(text),
            ));
        }
        let steady = hi <= 1.35 * lo;
        let round = |x: f64| (x * 100.0).round() / 100.0;
        let mut f = Finding::decided(q, round(median(&self.each)), self.trust * if steady { 0.9 } else { 0.7 });
        f.interval = Some(if self.each.len() > 1 { [lo, hi] } else { [0.8 * lo, 1.2 * hi] }.map(round));
        Some(from(f.evidence(text)))
    }
}
