//! What is believed of a card when a run is judged: the findings of the runs before it, whole, with their weights.
//!
//! A run saves what was done, never what was believed: whoever judges it again folds over the runs in their order, and what an earlier
//! one says now is what a later one is judged by.

use super::open_au::Neighbours;
use crate::finding::{Finding, Findings, Quantity};
use crate::samples::Run;
use std::collections::BTreeMap;
use std::ops::Deref;

/// Confidence at which an erase block or a write unit is gone by: every test that counts in erase blocks drifts off with a wrong one, and
/// writes below the true unit look like another AU.
pub const SURE: f64 = 0.7;

/// What is believed of one quantity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Belief {
    /// Values with their weights, the likeliest first where one was decided. What is missing of 1 is on values that nobody named.
    pub candidates: Vec<(f64, f64)>,
    pub decided: bool,
    /// Of the value, or of the bound.
    pub confidence: f64,
    pub interval: Option<[f64; 2]>,
    pub at_least: Option<f64>,
    /// Of a write unit: units begin elsewhere than at the start of the disk.
    pub off_grid: bool,
}

impl Belief {
    fn of(f: &Finding) -> Belief {
        let named = f.number().map(|v| (v, f.confidence));
        let rivals = f.rivals.iter().map(|r| (r.value.0, r.probability));
        let candidates = named.into_iter().chain(rivals.filter(|r| Some(r.0) != f.number())).collect();
        let (decided, at_least) = (named.is_some(), f.at_least.map(|b| b.0));
        Belief { candidates, decided, confidence: f.confidence, interval: f.interval, at_least, off_grid: f.off_grid }
    }

    /// The likeliest value, however sure.
    pub fn number(&self) -> Option<f64> {
        self.candidates.first().filter(|_| self.decided).map(|c| c.0)
    }
}

/// What is believed of a card, and what earlier runs measured of this host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Beliefs {
    of: BTreeMap<Quantity, Belief>,
    /// What a longer write adds, in ns a KiB.
    pub write_ns_per_kib: Option<u64>,
    /// The fastest writes of earlier runs.
    pub fastest: Fastest,
    /// AUs in linear order whose rounds came to rest in an earlier run, whatever it said in the end.
    pub rested: Option<u64>,
    /// What AUs side by side showed in linear order, that those all over the card do not.
    pub neighbours: Option<Neighbours>,
    /// Bytes of a piece of the card's map, as reads show them: the second read in one is cheaper. A card that looks up erase blocks and keeps what it
    /// found looks the same to reads.
    pub pieces: Option<u64>,
}

impl Beliefs {
    pub fn of(findings: &Findings) -> Beliefs {
        Beliefs { of: findings.0.iter().map(|f| (f.quantity, Belief::of(f))).collect(), ..Beliefs::default() }
    }

    /// From the settings of a run that an earlier version saved, which hold the likeliest values of then as whole numbers. How sure they
    /// were is not kept: sure enough to be gone by.
    pub fn frozen(setting: &BTreeMap<String, i64>) -> Beliefs {
        let get = |key: &str| setting.get(key).map(|&v| v.max(0) as f64);
        let decided = |v: f64| Belief { candidates: vec![(v, SURE)], decided: true, confidence: SURE, ..Belief::default() };
        let unknown = Belief::default();
        let number = |q: Quantity| if q == Quantity::CloseCostMs { get("close_cost_us").map(|us| us / 1e3) } else { get(q.key()) };
        let mut of: BTreeMap<Quantity, Belief> = Quantity::ALL.into_iter().filter_map(|q| Some((q, decided(number(q)?)))).collect();
        if let Some((about, slack)) = get("erase_block_about").zip(get("erase_block_slack")) {
            of.entry(Quantity::EraseBlockOffset).or_insert(unknown.clone()).interval = Some([about - slack, about + slack]);
        }
        if let Some(filled) = get("filled") {
            let cache = of.entry(Quantity::WriteCache).or_insert(unknown.clone());
            (cache.interval, cache.at_least) = (Some([0.0, filled]), get("cache_from").filter(|&c| c > 0.0));
        }
        if let Some(least) = get("open_aus_linear_least") {
            of.entry(Quantity::OpenAusLinear).or_insert(unknown).at_least = Some(least);
        }
        let whole = |key: &str| get(key).map(|v| v as u64);
        Beliefs { of, write_ns_per_kib: whole("write_ns_per_kib"), rested: whole("open_aus_linear_rested"), ..Beliefs::default() }
    }

    pub fn get(&self, q: Quantity) -> Option<&Belief> {
        self.of.get(&q)
    }

    /// The likeliest value, however sure.
    pub fn number(&self, q: Quantity) -> Option<f64> {
        self.get(q).and_then(Belief::number)
    }

    /// The same as a whole number of bytes, or a count.
    pub fn whole(&self, q: Quantity) -> Option<u64> {
        self.number(q).map(|v| v as u64)
    }

    /// The likeliest value, where it is decided with at least this confidence.
    pub fn value(&self, q: Quantity, confidence: f64) -> Option<f64> {
        self.get(q).filter(|b| b.confidence >= confidence).and_then(Belief::number)
    }

    /// Bytes of an erase block that is sure enough to count in.
    pub fn erase_block(&self) -> Option<u64> {
        self.value(Quantity::EraseBlock, SURE).map(|v| v as u64)
    }

    /// Bytes of a write unit that is sure enough to write in.
    pub fn write_unit(&self) -> Option<u64> {
        self.value(Quantity::WriteUnit, SURE).map(|v| v as u64)
    }

    /// Do units begin elsewhere than at the start of the disk, as far as writes have shown?
    pub fn units_off_grid(&self) -> bool {
        self.get(Quantity::WriteUnit).is_some_and(|b| b.off_grid)
    }

    /// Where erase blocks begin, when that is known to lie between two places only: the middle of them and half the way.
    pub fn about(&self) -> Option<(u64, u64)> {
        let [lo, hi] = self.get(Quantity::EraseBlockOffset)?.interval?;
        Some((((lo + hi) / 2.0).max(0.0) as u64, ((hi - lo) / 2.0).max(0.0) as u64))
    }

    /// AUs in linear order that stayed open, where more may.
    pub fn linear_least(&self) -> Option<u64> {
        self.get(Quantity::OpenAusLinear).and_then(|b| b.at_least).map(|n| n as u64)
    }

    /// Bytes written in one go, and what a cache took of them at once: a limit behind it is no longer hidden.
    pub fn filled(&self) -> Option<(u64, u64)> {
        let cache = self.get(Quantity::WriteCache)?;
        cache.interval.map(|[_, written]| (written as u64, cache.at_least.map_or(0, |b| b as u64)))
    }

    /// The mean of `f` over what a quantity may be, by weight; with `None` for what nobody named.
    pub fn mean(&self, q: Quantity, f: impl Fn(Option<f64>) -> f64) -> f64 {
        let all = self.get(q).filter(|b| b.decided).map_or(&[][..], |b| &b.candidates);
        let named: f64 = all.iter().map(|c| c.1).sum();
        // Rounded weights may come to a little more than 1.
        let rest = (1.0 - named).max(0.0);
        (all.iter().map(|&(v, w)| w * f(Some(v))).sum::<f64>() + rest * f(None)) / (named + rest)
    }

    /// Does one AU take random writes without being closed?
    pub fn takes_random(&self) -> bool {
        let random = self.get(Quantity::OpenAusRandom);
        random.is_some_and(|b| b.number().or(b.at_least).is_some_and(|n| n >= 1.0) && b.confidence >= 0.5)
    }

    /// Why boundaries between AUs cannot be seen in the times of writes.
    pub(super) fn unmerged(&self) -> &'static str {
        let counted = [Quantity::OpenAusLinear, Quantity::OpenAusRandom].iter().any(|q| self.number(*q).is_some());
        match counted || self.linear_least().is_some() {
            true => "writes to many erase blocks showed no merge cost, so boundaries between those cannot be seen",
            false => "the merge cost is not known, and without it boundaries between erase blocks cannot be seen",
        }
    }
}

/// A run to be judged, and what was believed of the card when it began.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    pub run: &'a Run,
    pub believed: &'a Beliefs,
}

impl Deref for Case<'_> {
    type Target = Run;

    fn deref(&self) -> &Run {
        self.run
    }
}

/// The fastest writes of each size, in ns, and how many there were.
pub type Fastest = BTreeMap<u64, (u32, u64)>;

/// Adds those of a run.
pub fn fastest(run: &Run, to: &mut Fastest) {
    for s in run.samples.iter().filter(|s| s.is_write()) {
        let f = to.entry(s.len).or_insert((0, u64::MAX));
        *f = (f.0 + 1, f.1.min(s.took.0));
    }
}

/// What a longer write adds, in ns a KiB, through this host: from the fastest writes of the smallest and the largest size of which
/// there are four and more.
pub fn write_ns_per_kib(fastest: &Fastest) -> Option<u64> {
    let mut known = fastest.iter().filter(|f| f.1.0 >= 4);
    let (small, large) = (known.next()?, known.next_back()?);
    Some(large.1.1.saturating_sub(small.1.1) * 1024 / (large.0 - small.0))
}
