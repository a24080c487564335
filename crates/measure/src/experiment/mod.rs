//! Experiments: each one file that says what to access. What the times mean is concluded elsewhere (`infer`).
//!
//! An experiment names its conditions (`cells`), one trial of a condition, and when it has enough. It never chooses the order of the cells, counts repetitions or looks at the clock: the runner does (`run.rs`).

pub mod run;

pub use capacity::readable;

use crate::device::mmc::Multi;
use crate::device::{Access, Device, DeviceError, Fill, Geometry, Op, Timed};
use crate::finding::{Findings, Quantity};
use crate::infer::beliefs::{Belief, Beliefs, Case, SURE};
use crate::infer::slots::{Ground, Slots};
use crate::samples::{Cell, Grid, Run, Sample};
use crate::units::{GIB, KIB, Nanos};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// What an experiment is, for the command line, the documentation and the plan.
pub struct About {
    pub name: &'static str,
    /// Its place among all: what has a smaller number is asked first, and shown first. Steps of ten leave room between two.
    pub turn: u32,
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

/// What an experiment may know before it starts.
pub struct Setup<'a> {
    pub geometry: &'a Geometry,
    /// Where accesses may go, in bytes.
    pub region: Range<u64>,
    /// What earlier experiments left to believe of the card.
    pub believed: &'a Beliefs,
    /// Bytes that may still be written.
    pub writes: u64,
}

/// What shows the merge cost, and what that is measured on.
pub const MERGES: &[&str] = &["read-boundary", "write-unit", "open-au-linear", "open-au-random"];

impl Setup<'_> {
    /// The erase blocks to go by.
    pub fn grid(&self) -> Grid {
        let about = self.believed.about();
        let phase = self.believed.whole(Quantity::EraseBlockOffset);
        Grid { unit: self.believed.erase_block(), phase, about: about.map(|a| a.0), slack: about.map(|a| a.1) }
    }

    fn ground(&self) -> Ground {
        let (region, g) = (&self.region, self.geometry);
        Ground { start: region.start, end: region.end, sector: g.sector, offset: g.offset }
    }

    /// Where AUs that are written in turn may lie; `None` where there is no room for two.
    pub fn slots(&self) -> Option<Slots> {
        Slots::plan(&self.ground(), &self.grid(), self.believed)
    }

    /// What is kept with a run: what is done, not what is believed.
    pub fn setting(&self) -> BTreeMap<String, i64> {
        let (g, grid) = (self.geometry, self.grid());
        let place = [("size", g.size), ("sector", g.sector), ("offset", g.offset), ("start", self.region.start), ("end", self.region.end)];
        let went_by = [("unit", grid.unit), ("phase", grid.phase), ("phase_about", grid.about), ("phase_slack", grid.slack)];
        let went_by = went_by.into_iter().filter_map(|(k, v)| Some((k, v?)));
        let flushes = g.write_cache.then_some(("flushes", 1));
        place.into_iter().chain(went_by).chain(flushes).map(|(k, v)| (k.to_string(), v as i64)).collect()
    }
}

pub trait Experiment: Sync {
    fn about(&self) -> &'static About;

    /// Left out of `probe`: it says how a host had better use a card rather than what is inside, or costs more than all the others.
    fn on_request(&self) -> bool {
        false
    }

    /// Left out of `probe` where nothing that is written is put back: it says how to do without.
    fn to_put_back(&self) -> bool {
        false
    }

    /// What `probe` runs in its place, where all questions together must not take long.
    fn among_others(&self) -> Option<&'static dyn Experiment> {
        None
    }

    /// Names of the experiments whose findings it builds on, in the order in which they run: without those it has nothing to ask.
    fn needs(&self) -> &'static [&'static str] {
        &[]
    }

    /// Has it something to ask of a card of which this is believed? Where not, `probe` leaves it out.
    fn asks(&self, _believed: &Beliefs) -> bool {
        true
    }

    /// The conditions to compare first.
    fn cells(&self, setup: &Setup) -> Vec<Cell>;

    /// What else a run says it did, beside its setup: where its AUs lie.
    fn places(&self, _setup: &Setup) -> Option<Slots> {
        None
    }

    /// One trial of one cell.
    fn trial(&self, cell: &Cell, n: u32, bench: &mut Bench) -> Result<(), DeviceError>;

    /// Stop rule of a cell: does it want a further trial?
    fn wants(&self, cell: &Cell, run: &Case) -> bool;

    /// Which of these cells want a further trial, by their numbers. Where each would ask the same of the run, it is asked once here.
    fn wanting(&self, cells: &[&Cell], run: &Case) -> Vec<u32> {
        cells.iter().filter(|c| self.wants(c, run)).map(|c| c.id).collect()
    }

    /// A further round of cells, once all have enough.
    fn more(&self, _run: &Case) -> Vec<Cell> {
        vec![]
    }

    /// Would a second run say more, now that other experiments told what this one had to guess?
    fn again(&self, _run: &Case, _known: &Beliefs) -> bool {
        false
    }

    /// What of a run that is complete, or that the time cut, to look at once more when all had their turn, and `others` wrote, too; `known`: what all of them say.
    fn later(&self, _run: &Run, _others: &[Run], _known: &Findings) -> Vec<Cell> {
        vec![]
    }

    /// Is a run that its share of the time cut worth going on with, when all had their turn?
    fn goes_on(&self) -> bool {
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
}

macro_rules! experiments {
    ($($file:ident)+) => {
        $(mod $file;)+

        const FOUND: &[&[&dyn Experiment]] = &[$($file::EXPERIMENTS),+];
    };
}

crate::every_experiment!(experiments);

/// All there are, each in its turn: the order of the command line, the documentation, the report and the tests.
pub fn all() -> &'static [&'static dyn Experiment] {
    static ALL: LazyLock<Vec<&dyn Experiment>> = LazyLock::new(|| {
        let mut all = FOUND.concat();
        all.sort_by_key(|e| e.about().turn);
        all
    });
    &ALL
}

/// What today's cards are asked, where there is time: what decides how good a card is that maps by page.
const TODAY: [&str; 5] = ["slc-cache", "page-mapping", "map-window", "map-window-write", "queue-depth"];

/// May the card map by page? What decides how it is asked goes by what is believed.
pub(crate) fn may_map_by_page(believed: &Beliefs) -> bool {
    let by_block = |b: &Belief| b.number().is_some_and(|m| m != 2.0) && b.confidence >= SURE;
    !believed.get(Quantity::Mapping).is_some_and(by_block)
}

/// From so much time on, asked for, today's cards are asked more.
const LONGER: Nanos = Nanos(300_000_000_000);

/// What `probe` runs in the time that was asked for, if any: where there is enough, today's questions come before the search for a write
/// cache, which they answer as well.
pub fn probing_within(asked: Option<Nanos>) -> Vec<&'static dyn Experiment> {
    let mut all = probing();
    if asked.is_none_or(|t| t < LONGER) {
        return all;
    }
    let at = all.iter().position(|e| e.about().name == "write-cache").unwrap_or(all.len());
    all.splice(at..at, self::all().iter().copied().filter(|e| TODAY.contains(&e.about().name)));
    all
}

/// What `probe` runs: all that says what is inside a card.
pub fn probing() -> Vec<&'static dyn Experiment> {
    all().iter().copied().filter(|e| !e.on_request()).map(|e| e.among_others().unwrap_or(e)).collect()
}

/// An experiment, and before it those whose findings it needs.
pub fn with_needs(asked: &'static dyn Experiment) -> Vec<&'static dyn Experiment> {
    let needed = asked.needs();
    all().iter().copied().filter(|e| needed.contains(&e.about().name)).chain([asked]).collect()
}

pub fn by_name(name: &str) -> Option<&'static dyn Experiment> {
    all().iter().copied().find(|e| e.about().name == name)
}

/// Bytes that are looked at together.
const PIECE: u64 = 64 * KIB;

/// Where a trial makes its accesses. Every access becomes a sample.
pub struct Bench<'a> {
    pub(crate) device: &'a mut dyn Device,
    pub region: Range<u64>,
    /// So far, with what was believed when it began.
    pub run: &'a Case<'a>,
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

    /// Time that is left.
    pub fn left(&self) -> Nanos {
        self.deadline - self.now()
    }

    /// When half of the time that is left will be gone.
    pub fn halfway(&self) -> Nanos {
        self.now() + Nanos(self.left().0 / 2)
    }

    fn in_time(&self) -> Result<(), DeviceError> {
        let over = self.device.now() >= self.deadline || self.stop.load(Ordering::Relaxed);
        if over { Err(DeviceError::Late) } else { Ok(()) }
    }

    fn access(&mut self, role: u8, op: Op, at: u64, len: u64) -> Result<Nanos, DeviceError> {
        self.in_time()?;
        let timed = self.device.access(Access { op, at, len })?;
        self.keep(role, op, at, len, timed);
        Ok(timed.took)
    }

    pub fn read(&mut self, role: u8, at: u64, len: u64) -> Result<Nanos, DeviceError> {
        self.access(role, Op::Read, at, len)
    }

    /// Random bytes that were not written before: a card may skip what is there already, or keep one copy of what it got twice.
    fn bytes(&self) -> Fill {
        Fill::Random(self.now().0)
    }

    /// A write for its time: of what is there already where that was saved, else of random bytes.
    pub fn write(&mut self, role: u8, at: u64, len: u64) -> Result<Nanos, DeviceError> {
        self.in_time()?;
        let op = Op::Write(self.bytes());
        let timed = self.device.rewrite(Access { op, at, len })?;
        self.keep(role, op, at, len, timed);
        Ok(timed.took)
    }

    /// Saves what these ranges hold where it is put back, so that no read comes between the writes there.
    pub fn keep_old(&mut self, ranges: &[(u64, u64)]) -> Result<(), DeviceError> {
        self.device.keep_old(ranges)
    }

    /// The one byte that a range holds, if it is one. Of one that holds more only the first piece that shows it is read.
    pub fn repeats(&mut self, at: u64, len: u64) -> Result<Option<u8>, DeviceError> {
        let (mut old, mut first) = (vec![0; PIECE.min(len) as usize], None);
        for from in (0..len).step_by(PIECE as usize) {
            let piece = &mut old[..PIECE.min(len - from) as usize];
            self.device.load(at + from, piece)?;
            let byte = *first.get_or_insert(piece[0]);
            if piece.iter().any(|b| *b != byte) {
                return Ok(None);
            }
        }
        Ok(first)
    }

    /// See [`Device::write_same`].
    pub fn write_same(&mut self, byte: u8) {
        self.device.write_same(byte);
    }

    /// Lets the card rest.
    pub fn rest(&mut self, time: Nanos) {
        self.device.idle(time.min(self.deadline - self.device.now()));
    }

    /// Accesses with several in flight; none begins after the time is over.
    pub fn batch(&mut self, role: u8, all: &[Access], depth: u32) -> Result<(), DeviceError> {
        self.in_time()?;
        let timed = self.device.batch(all, depth)?;
        for (a, t) in all.iter().zip(timed) {
            self.keep(role, a.op, a.at, a.len, t);
        }
        Ok(())
    }

    /// A write of chosen content.
    pub fn write_of(&mut self, role: u8, fill: Fill, at: u64, len: u64) -> Result<Nanos, DeviceError> {
        self.access(role, Op::Write(fill), at, len)
    }

    /// A write without the flush that follows every other one where there is a write cache.
    pub fn write_behind(&mut self, role: u8, at: u64, len: u64) -> Result<Nanos, DeviceError> {
        self.in_time()?;
        let fill = self.bytes();
        let mut bytes = vec![0; len as usize];
        fill.render(at, &mut bytes);
        let timed = self.device.put(at, &bytes)?;
        self.keep(role, Op::Write(fill), at, len, timed);
        Ok(timed.took)
    }

    /// Waits until everything acknowledged is on the medium.
    pub fn flush(&mut self, role: u8) -> Result<Nanos, DeviceError> {
        self.access(role, Op::Flush, 0, 0)
    }

    /// A read whose role follows from the bytes that were read.
    pub fn read_back(&mut self, at: u64, len: u64, role: impl FnOnce(&[u8]) -> u8) -> Result<(), DeviceError> {
        self.in_time()?;
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

    /// Discards `range` in pieces of a GiB; `false` where the target takes no discard, which leaves a sample of the role `refused`.
    ///
    /// # Errors
    /// The device failed, or a budget is spent.
    pub fn discard(&mut self, role: u8, refused: u8, range: std::ops::Range<u64>) -> Result<bool, DeviceError> {
        let mut at = range.start;
        while at < range.end {
            let len = GIB.min(range.end - at);
            match self.access(role, Op::Discard, at, len) {
                Err(DeviceError::Unsupported(_)) => {
                    self.failed(refused, at, len);
                    return Ok(false);
                }
                done => done?,
            };
            at += len;
        }
        Ok(true)
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

#[cfg(test)]
mod tests {
    /// What is measured is concluded from, and nothing else is.
    #[test]
    fn every_experiment_has_its_analysis() {
        let mut measured: Vec<&str> = super::all().iter().map(|e| e.about().name).collect();
        let mut concluded: Vec<&str> = crate::infer::all().map(|a| a.name()).collect();
        measured.sort_unstable();
        concluded.sort_unstable();
        assert_eq!(measured, concluded);
    }

    /// The order is that of the numbers alone, and what an experiment needs comes before it.
    #[test]
    fn every_experiment_has_a_turn_of_its_own() {
        let all = super::all();
        assert_eq!(all[0].about().name, "capacity", "what fails or is not there would spoil the others");
        assert!(all.is_sorted_by(|a, b| a.about().turn < b.about().turn));
        let place = |name: &str| all.iter().position(|e| e.about().name == name).unwrap();
        for e in all {
            assert!(e.needs().iter().all(|n| place(n) < place(e.about().name)), "{}", e.about().name);
        }
    }
}
