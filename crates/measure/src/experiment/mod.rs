//! Experiments: each one file that says what to access and what the times mean.
//!
//! An experiment names its conditions (`cells`), one trial of a condition, and what follows from the samples. It never
//! chooses the order of the cells, counts repetitions or looks at the clock: the runner does (`run.rs`).

mod access_kinds;
mod au_grid;
mod capacity;
mod fat_zone;
mod interval;
mod multi_block;
mod open_au;
mod read_boundary;
pub mod run;
mod scatter;
mod slots;
mod small_writes;
mod write_boundary;
mod write_cache;
mod write_trace;
mod write_unit;

pub use capacity::readable;

use crate::device::mmc::Multi;
use crate::device::{Access, Device, DeviceError, Fill, Geometry, Op, Timed};
use crate::finding::{Finding, Findings, Quantity};
use crate::samples::{Cell, Run, Sample};
use crate::units::Nanos;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// What an experiment is, for the command line, the documentation and the plan.
pub struct About {
    pub name: &'static str,
    pub question: &'static str,
    pub method: &'static str,
    /// Writes to the region; needs consent.
    pub writes: bool,
    pub answers: &'static [Quantity],
    /// Names of the sample roles.
    pub roles: &'static [&'static str],
    /// Identifiers of the requirements it covers.
    pub covers: &'static str,
}

/// Confidence at which an erase block is taken for known.
pub const SURE: f64 = 0.7;

/// What an experiment may know before it starts.
pub struct Setup<'a> {
    pub geometry: &'a Geometry,
    /// Where accesses may go, in bytes.
    pub region: Range<u64>,
    /// What earlier experiments found.
    pub known: &'a Findings,
    /// What they measured.
    pub runs: &'a [Run],
    /// Bytes that may still be written.
    pub writes: u64,
}

/// What a longer write adds, in ns a KiB, through this host: from the fastest writes of the smallest and the largest size of which
/// there are four and more.
fn write_ns_per_kib(runs: &[Run]) -> Option<u64> {
    let mut fastest: BTreeMap<u64, (u32, u64)> = BTreeMap::new();
    for s in runs.iter().flat_map(|r| &r.samples).filter(|s| matches!(s.op, Op::Write(_))) {
        let f = fastest.entry(s.len).or_insert((0, u64::MAX));
        *f = (f.0 + 1, f.1.min(s.took.0));
    }
    let mut known = fastest.into_iter().filter(|f| f.1.0 >= 4);
    let (small, large) = (known.next()?, known.next_back()?);
    Some(large.1.1.saturating_sub(small.1.1) * 1024 / (large.0 - small.0))
}

/// What shows the merge cost, and what that is measured on.
pub const MERGES: &[&str] = &["read-boundary", "write-unit", "open-au-linear", "open-au-random"];

/// Why boundaries between AUs cannot be seen in the times of writes.
fn unmerged(run: &Run) -> &'static str {
    let limit = ["open_aus_linear", "open_aus_random", LINEAR_LEAST].iter().any(|k| run.setting(k).is_some());
    match limit {
        true => "writes to many erase blocks showed no merge cost, so boundaries between those cannot be seen",
        false => "the merge cost is not known, and without it boundaries between erase blocks cannot be seen",
    }
}

/// The setting of AUs in linear order that stayed open, where more may.
const LINEAR_LEAST: &str = "open_aus_linear_least";

/// The setting of AUs in linear order whose rounds came to rest in an earlier run, whatever it said in the end.
const LINEAR_RESTED: &str = "open_aus_linear_rested";

impl Setup<'_> {
    /// The numbers that later inference needs, kept with the run.
    pub fn setting(&self) -> BTreeMap<String, i64> {
        let mut s = BTreeMap::from([
            ("size".to_string(), self.geometry.size as i64),
            ("sector".to_string(), self.geometry.sector as i64),
            ("offset".to_string(), self.geometry.offset as i64),
            ("start".to_string(), self.region.start as i64),
            ("end".to_string(), self.region.end as i64),
        ]);
        if let Some(ns) = write_ns_per_kib(self.runs) {
            s.insert("write_ns_per_kib".to_string(), ns as i64);
        }
        let linear = self.runs.iter().filter(|r| r.experiment == "open-au-linear");
        if let Some(n) = linear.map(|r| open_au::rested(r, false)).max().filter(|&n| n > 0) {
            s.insert(LINEAR_RESTED.to_string(), i64::from(n));
        }
        for f in &self.known.0 {
            // Known to lie between two places only.
            if let (Quantity::EraseBlockOffset, Some([lo, hi])) = (f.quantity, f.interval) {
                s.insert("erase_block_about".to_string(), ((lo + hi) / 2.0) as i64);
                s.insert("erase_block_slack".to_string(), ((hi - lo) / 2.0) as i64);
            }
            // Bytes written in one go, and what a cache took of them at once: a limit behind it is no longer hidden.
            if let (Quantity::WriteCache, Some([_, written])) = (f.quantity, f.interval) {
                s.insert("filled".to_string(), written as i64);
                s.insert("cache_from".to_string(), f.at_least.map_or(0, |b| b.0 as i64));
            }
            if let (Quantity::OpenAusLinear, Some(least)) = (f.quantity, &f.at_least) {
                s.insert(LINEAR_LEAST.to_string(), least.0 as i64);
            }
            // Every test that counts in erase blocks drifts off with a wrong one; writes below the true unit look like another AU.
            let least = if matches!(f.quantity, Quantity::EraseBlock | Quantity::WriteUnit) { SURE } else { 0.0 };
            if let Some(v) = f.number().filter(|_| f.confidence >= least) {
                // Settings are whole numbers: the cost is kept in microseconds.
                let (key, v) = if f.quantity == Quantity::CloseCostMs { ("close_cost_us", v * 1e3) } else { (f.quantity.key(), v) };
                s.insert(key.to_string(), v as i64);
            }
        }
        s
    }
}

pub trait Experiment: Sync {
    fn about(&self) -> &'static About;

    /// Names of the experiments whose findings it builds on, in the order in which they run: without those it has nothing to ask.
    fn needs(&self) -> &'static [&'static str] {
        &[]
    }

    /// The conditions to compare first.
    fn cells(&self, setup: &Setup) -> Vec<Cell>;

    /// One trial of one cell.
    fn trial(&self, cell: &Cell, n: u32, bench: &mut Bench) -> Result<(), DeviceError>;

    /// Stop rule of a cell: does it want a further trial?
    fn wants(&self, cell: &Cell, run: &Run) -> bool;

    /// A further round of cells, once all have enough.
    fn more(&self, _run: &Run) -> Vec<Cell> {
        vec![]
    }

    /// Would a second run say more, now that other experiments told what this one had to guess?
    fn again(&self, _run: &Run, _known: &Findings) -> bool {
        false
    }

    /// Is a run that its share of the time cut worth going on with, when all had their turn?
    fn goes_on(&self) -> bool {
        true
    }

    /// Does a complete later run say more than an earlier one, as it knew more? Not where what was written in between spoilt it.
    fn replaces(&self, _later: (&Run, &[Finding]), _earlier: (&Run, &[Finding])) -> bool {
        true
    }

    /// Share of the time left that it may use.
    fn share(&self) -> f64 {
        0.6
    }

    /// Time that `probe` allows it beside the time for all experiments: for one whose answer the others need.
    fn own_time(&self) -> Nanos {
        Nanos(0)
    }

    /// What the samples say. Pure.
    fn infer(&self, run: &Run) -> Vec<Finding>;

    /// What people would rather look at. Pure.
    fn figures(&self, run: &Run) -> Vec<Figure>;
}

/// The order of the command line, the documentation, the report and the tests.
pub const ALL: &[&dyn Experiment] = &[
    // First: what fails or lies behind a counterfeit's flash would spoil the others.
    &capacity::Capacity,
    &read_boundary::ReadBoundary,
    &write_unit::WriteUnit,
    &open_au::OpenAu::<false>,
    &open_au::OpenAu::<true>,
    &au_grid::AuGrid,
    &write_boundary::WriteBoundary,
    &fat_zone::FatZone,
    &write_cache::WriteCache,
    &multi_block::MultiBlock,
    &write_trace::WriteTrace,
    &scatter::Scatter,
    &interval::Interval,
    &access_kinds::AccessKinds,
    &small_writes::SmallWrites,
];

/// Experiments that say how a host had better use a card rather than what is inside, or cost more than all the others.
const ON_REQUEST: [&str; 6] = ["multi-block", "write-trace", "scatter", "interval", "access-kinds", "small-writes"];

/// What `probe` runs: all that says what is inside a card.
pub fn probing() -> Vec<&'static dyn Experiment> {
    ALL.iter().copied().filter(|e| !ON_REQUEST.contains(&e.about().name)).collect()
}

/// An experiment, and before it those whose findings it needs.
pub fn with_needs(asked: &'static dyn Experiment) -> Vec<&'static dyn Experiment> {
    let needed = asked.needs();
    ALL.iter().copied().filter(|e| needed.contains(&e.about().name)).chain([asked]).collect()
}

/// Did reads of this run take the same time across all boundaries, although enough of them were made? `None` for a run that read across
/// none.
pub fn reads_flat(run: &Run) -> Option<bool> {
    (run.experiment == "read-boundary").then(|| read_boundary::flat(run)).flatten()
}

pub fn by_name(name: &str) -> Option<&'static dyn Experiment> {
    ALL.iter().copied().find(|e| e.about().name == name)
}

/// A plot: one or several series over one x axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    pub title: String,
    pub x: String,
    pub y: String,
    pub log_x: bool,
    pub log_y: bool,
    pub series: Vec<Series>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// What the names of the series end in that hold the 95 % bounds of another one.
pub const LOW: &str = " (95 % low)";
pub const HIGH: &str = " (95 % high)";

/// x, value, lower and upper bound.
pub type Bounded = (f64, f64, f64, f64);

impl Series {
    /// A series and its bounds. Points without a finite interval get none.
    pub fn with_bounds(name: &str, points: &[Bounded]) -> Vec<Series> {
        let series = |name: String, y: &dyn Fn(&Bounded) -> f64| Series {
            name,
            points: points.iter().map(|p| (p.0, if y(p).is_finite() { y(p) } else { p.1 })).collect(),
        };
        vec![series(name.into(), &|p| p.1), series(format!("{name}{LOW}"), &|p| p.2), series(format!("{name}{HIGH}"), &|p| p.3)]
    }
}

/// Where a trial makes its accesses. Every access becomes a sample.
pub struct Bench<'a> {
    pub(crate) device: &'a mut dyn Device,
    pub region: Range<u64>,
    pub run: &'a Run,
    pub(crate) cell: u32,
    pub(crate) trial: u32,
    pub(crate) rng: Pcg64Mcg,
    pub(crate) taken: Vec<Sample>,
    /// A trial on a slow bus may take longer than all the time allowed: it ends in the middle.
    pub(crate) deadline: Nanos,
    pub(crate) stop: &'a AtomicBool,
}

impl Bench<'_> {
    pub fn geometry(&self) -> &Geometry {
        self.device.geometry()
    }

    /// On the device's own clock.
    pub fn now(&self) -> Nanos {
        self.device.now()
    }

    /// When half of the time that is left will be gone.
    pub fn halfway(&self) -> Nanos {
        let now = self.now();
        now + Nanos((self.deadline - now).0 / 2)
    }

    fn access(&mut self, role: u8, op: Op, at: u64, len: u64) -> Result<Nanos, DeviceError> {
        if self.device.now() >= self.deadline || self.stop.load(Ordering::Relaxed) {
            return Err(DeviceError::Late);
        }
        let timed = self.device.access(Access { op, at, len })?;
        self.keep(role, op, at, len, timed);
        Ok(timed.took)
    }

    pub fn read(&mut self, role: u8, at: u64, len: u64) -> Result<Nanos, DeviceError> {
        self.access(role, Op::Read, at, len)
    }

    pub fn write(&mut self, role: u8, at: u64, len: u64) -> Result<Nanos, DeviceError> {
        let seed = (self.cell as u64) << 32 | self.trial as u64;
        self.write_of(role, Fill::Random(seed), at, len)
    }

    /// A write of chosen content.
    pub fn write_of(&mut self, role: u8, fill: Fill, at: u64, len: u64) -> Result<Nanos, DeviceError> {
        self.access(role, Op::Write(fill), at, len)
    }

    /// A read whose role follows from the bytes that were read.
    pub fn read_back(&mut self, at: u64, len: u64, role: impl FnOnce(&[u8]) -> u8) -> Result<(), DeviceError> {
        if self.device.now() >= self.deadline || self.stop.load(Ordering::Relaxed) {
            return Err(DeviceError::Late);
        }
        let mut bytes = vec![0; len as usize];
        let timed = self.device.get(at, &mut bytes)?;
        self.keep(role(&bytes), Op::Read, at, len, timed);
        Ok(())
    }

    /// An access that failed, where that is an answer.
    pub fn failed(&mut self, role: u8, at: u64, len: u64) {
        let timed = Timed { start: self.device.now(), took: Nanos(0) };
        self.keep(role, Op::Read, at, len, timed);
    }

    fn keep(&mut self, role: u8, op: Op, at: u64, len: u64, timed: Timed) {
        self.taken.push(Sample { cell: self.cell, trial: self.trial, role, op, at, len, start: timed.start, took: timed.took });
    }

    /// How the writes from now on are put on the bus of a card; see [`Device::write_as`].
    pub fn write_as(&mut self, how: Option<Multi>) -> Result<(), DeviceError> {
        self.device.write_as(how)
    }

    /// A whole number below `n`, from the run's seed.
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { ((self.rng.next_u64() as u128 * n as u128) >> 64) as u64 }
    }

    /// Fisher-Yates.
    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for i in (1..all.len()).rev() {
            let j = self.below(i as u64 + 1) as usize;
            all.swap(i, j);
        }
    }
}

/// Alignments that real cards use: powers of two and three times those (TLC: field-notes 3.7), ascending.
pub fn alignments(from: u64, to: u64) -> Vec<u64> {
    let mut all: Vec<u64> = (0..50).flat_map(|k| [1u64 << k, 3 << k]).filter(|a| (from..=to).contains(a)).collect();
    all.sort_unstable();
    all
}
