//! The one way to a target: counts everything, lets reads pass, and lets a write pass only inside the region and the budget
//! that a consent opened.

use super::consent::{Consent, TargetId};
use super::gone::{Absent, Failures};
use super::ranges::RangeSet;
use super::undo::{Journal, Restored, Saved};
use super::{Access, Busy, Device, DeviceError, Geometry, Op, Result, Timed};
use crate::units::{Bytes, Nanos, about};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::PathBuf;

/// What a run has cost. Failed accesses count: the medium may have seen them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    pub reads: u64,
    pub writes: u64,
    pub discards: u64,
    pub flushes: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub bytes_discarded: u64,
    /// Accesses that ended in an error.
    pub failures: u64,
    /// Time spent inside accesses.
    pub busy: Nanos,
}

impl Counters {
    /// Accesses of all kinds.
    pub fn accesses(&self) -> u64 {
        self.reads + self.writes + self.discards + self.flushes
    }

    pub fn add(&mut self, op: Op, len: u64) {
        match op {
            Op::Read => (self.reads, self.bytes_read) = (self.reads + 1, self.bytes_read + len),
            Op::Write(_) => (self.writes, self.bytes_written) = (self.writes + 1, self.bytes_written + len),
            Op::Discard => (self.discards, self.bytes_discarded) = (self.discards + 1, self.bytes_discarded + len),
            Op::Flush => self.flushes += 1,
        }
    }
}

/// Where and how much may be written.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Bytes of the target in which writes and discards may lie; the whole target where none is given.
    pub region: Option<Range<u64>>,
    /// Most bytes that may be written. Discards do not count, nor does putting back what the undo journal holds: that is at
    /// most as much again.
    pub budget: u64,
    /// Directory for an undo journal; none to overwrite for good.
    pub undo: Option<PathBuf>,
}

struct Right {
    region: Range<u64>,
    budget: u64,
    spent: u64,
    journal: Option<Journal>,
    /// The byte that may be written again where it is all that is there.
    same: Option<u8>,
    /// The journal that could not be written, and why.
    unkept: Option<(String, String)>,
}

/// Opens a target anew after it was taken out.
pub(super) type Again = Box<dyn FnMut() -> Result<Box<dyn Device + Send>> + Send>;

/// A target behind its limits. Reads may go anywhere on the target; writes and discards need the right to.
pub struct Guard {
    inner: Box<dyn Device + Send>,
    id: TargetId,
    right: Option<Right>,
    counters: Counters,
    again: Option<Again>,
    failures: Failures,
}

impl Guard {
    /// A guard that counts and lets nothing but reads and flushes pass.
    pub fn read_only(inner: Box<dyn Device + Send>, id: TargetId) -> Guard {
        Guard { inner, id, right: None, counters: Counters::default(), again: None, failures: Failures::default() }
    }

    /// A guard with the right to write. Begins the undo journal where one is wanted.
    pub(super) fn writing(inner: Box<dyn Device + Send>, id: TargetId, consent: &Consent, limits: &Limits) -> Result<Guard> {
        if !consent.covers(&id) {
            return Err(DeviceError::Refused(format!("the consent was given for another target than {}; give it again", id.path)));
        }
        let g = inner.geometry();
        let region = limits.region.clone().unwrap_or(0..g.size);
        if region.start >= region.end
            || region.end > g.size
            || !region.start.is_multiple_of(g.sector)
            || !region.end.is_multiple_of(g.sector)
        {
            return Err(DeviceError::OutOfBounds(format!(
                "the region {} to {} is not a part of {} ({} bytes) on its {} byte grid",
                region.start, region.end, id.path, g.size, g.sector
            )));
        }
        let mut guard = Guard::read_only(inner, id);
        let journal = match &limits.undo {
            None => None,
            Some(dir) => Some(Journal::begin(dir, &guard.id.clone(), &mut guard)?),
        };
        guard.right = Some(Right { region, budget: limits.budget, spent: 0, journal, same: None, unkept: None });
        Ok(guard)
    }

    pub fn id(&self) -> &TargetId {
        &self.id
    }

    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// What the errors of the target say of it.
    pub fn failures(&self) -> &Failures {
        &self.failures
    }

    fn weigh<T>(&mut self, done: Result<T>) -> Result<T> {
        self.failures.weigh(done, &mut *self.inner, &self.id.path)
    }

    /// How the target is opened anew after it was taken out.
    pub(super) fn opened_by(&mut self, again: Again) {
        self.again = Some(again);
    }

    /// Adds what was read before this guard existed, such as the search for signatures.
    pub(super) fn count_before(&mut self, before: Counters) {
        let c = &mut self.counters;
        (c.reads, c.bytes_read, c.failures) = (c.reads + before.reads, c.bytes_read + before.bytes_read, c.failures + before.failures);
        c.busy = c.busy + before.busy;
    }

    /// Puts back what a journal of an earlier run holds: counted, but outside region and budget, which were for that run.
    pub(super) fn undo(&mut self, saved: &Saved) -> Result<super::undo::PutBack> {
        saved.try_back(&mut Unlimited(self))
    }

    /// Where writes may go; none for a guard without the right to write.
    pub fn region(&self) -> Option<Range<u64>> {
        self.right.as_ref().map(|r| r.region.clone())
    }

    /// Bytes that may still be written; 0 without the right to write.
    pub fn budget_left(&self) -> u64 {
        self.right.as_ref().map_or(0, |r| r.budget - r.spent)
    }

    /// Where the undo journal lies, while there is one.
    pub fn journal(&self) -> Option<PathBuf> {
        Some(self.right.as_ref()?.journal.as_ref()?.path().to_path_buf())
    }

    /// Saves ranges (start, length) to the undo journal ahead of time, so that no journal work falls between two accesses of a
    /// series. Without a journal this does nothing.
    ///
    /// # Errors
    /// Reading the old content or writing the journal failed.
    pub fn protect(&mut self, ranges: &[(u64, u64)]) -> Result<()> {
        let Some(mut journal) = self.right.as_mut().and_then(|r| r.journal.take()) else { return Ok(()) };
        let done = journal.save(ranges, self);
        if let Some(r) = &mut self.right {
            r.journal = Some(journal);
            if let Err(DeviceError::Journal { path, why }) = &done {
                r.unkept.get_or_insert((path.clone(), why.clone()));
            }
        }
        done
    }

    /// Why old content could not be kept, where that ended a write: no fault of the target.
    pub fn unkept(&self) -> Option<DeviceError> {
        let (path, why) = self.right.as_ref()?.unkept.clone()?;
        Some(DeviceError::Journal { path, why })
    }

    /// Puts back everything the undo journal holds, verifies it, and deletes the journal. Without a journal: nothing to do.
    ///
    /// # Errors
    /// The medium failed or does not hold what was written back; the journal is then kept.
    pub fn restore(&mut self) -> Result<Option<Restored>> {
        self.restoring(|journal, dev| Ok((journal.put_back(dev)?, true)))
    }

    /// The same; goes on where a range fails, and says which did. The journal is then kept.
    ///
    /// # Errors
    /// The journal cannot be read, or the medium refuses everything.
    pub fn try_restore(&mut self) -> Result<Option<super::undo::PutBack>> {
        self.restoring(|journal, dev| {
            let done = journal.try_back(dev)?;
            let whole = done.lost.is_empty();
            Ok((done, whole))
        })
    }

    /// Putting back is outside budget and region by design: it returns what was there. The journal goes where that says so.
    fn restoring<T>(&mut self, back: impl FnOnce(&mut Journal, &mut dyn Device) -> Result<(T, bool)>) -> Result<Option<T>> {
        let Some(mut journal) = self.right.as_mut().and_then(|r| r.journal.take()) else { return Ok(None) };
        let done = back(&mut journal, &mut Unlimited(self));
        if let Ok((_, true)) = done {
            journal.delete()?;
        } else if let Some(r) = &mut self.right {
            r.journal = Some(journal);
        }
        done.map(|d| Some(d.0))
    }

    /// Checks everything about an access but the journal. `ahead` is what earlier accesses of the same batch will write.
    fn permit(&self, a: Access, ahead: u64) -> Result<()> {
        a.check(self.inner.geometry())?;
        if !matches!(a.op, Op::Write(_) | Op::Discard) {
            return Ok(());
        }
        let Some(right) = &self.right else { return Err(DeviceError::ReadOnly(self.id.path.clone())) };
        if a.at < right.region.start || a.at + a.len > right.region.end {
            let Range { start, end } = right.region;
            let text = format!("{} of {} bytes at {} leaves the region {start} to {end}", a.op.name(), a.len, a.at);
            return Err(DeviceError::OutOfBounds(text));
        }
        if matches!(a.op, Op::Write(_)) && a.len > (right.budget - right.spent).saturating_sub(ahead) {
            let text =
                format!("{} of {} are written and the next write has {}", about(right.spent + ahead), Bytes(right.budget), Bytes(a.len));
            return Err(DeviceError::Budget(text));
        }
        Ok(())
    }

    /// What is there, where it was saved and may be written again in place of other content.
    fn own(&self, a: Access) -> Result<Option<Vec<u8>>> {
        let Some(right) = &self.right else { return Ok(None) };
        let old = right.journal.as_ref().map(|j| j.old(a.at, a.len)).transpose()?.flatten();
        Ok(old.filter(|o| o.iter().any(|&b| b != o[0]) || right.same == o.first().copied()))
    }

    fn has_journal(&self) -> bool {
        self.right.as_ref().is_some_and(|r| r.journal.is_some())
    }

    fn spend(&mut self, a: Access) {
        self.counters.add(a.op, a.len);
        if let (Op::Write(_), Some(r)) = (a.op, &mut self.right) {
            r.spent += a.len;
        }
    }

    /// What was there is gone, or may be.
    fn changes(&mut self, all: &[Access]) {
        if let Some(j) = self.right.as_mut().and_then(|r| r.journal.as_mut()) {
            all.iter().filter_map(changed).for_each(|(at, len)| j.changes(at..at + len));
        }
    }

    /// Bytes that hold something else now, as far as is known, of those that the undo journal holds.
    pub fn changed(&self) -> RangeSet {
        self.right.as_ref().and_then(|r| r.journal.as_ref()).map_or_else(RangeSet::default, |j| j.changed().clone())
    }

    fn send(&mut self, a: Access) -> Result<Timed> {
        self.changes(&[a]);
        self.spend(a);
        let done = self.inner.access(a);
        let done = self.done(done);
        if a.op == Op::Read && done.is_ok() {
            self.failures.read_well(a.at);
        }
        done
    }

    fn done(&mut self, done: Result<Timed>) -> Result<Timed> {
        let done = self.weigh(done);
        match &done {
            Ok(t) => self.counters.busy = self.counters.busy + t.took,
            Err(_) => self.counters.failures += 1,
        }
        done
    }

    fn untimed<T>(&mut self, op: Op, len: u64, call: impl FnOnce(&mut dyn Device) -> Result<T>) -> Result<T> {
        self.counters.add(op, len);
        let start = self.inner.now();
        let done = call(&mut *self.inner);
        let done = self.weigh(done);
        self.counters.busy = self.counters.busy + (self.inner.now() - start);
        self.counters.failures += u64::from(done.is_err());
        done
    }
}

fn changed(a: &Access) -> Option<(u64, u64)> {
    matches!(a.op, Op::Write(_) | Op::Discard).then_some((a.at, a.len))
}

impl Device for Guard {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }

    fn access(&mut self, a: Access) -> Result<Timed> {
        self.permit(a, 0)?;
        if let (true, Some(range)) = (self.has_journal(), changed(&a)) {
            self.protect(&[range])?;
        }
        self.send(a)
    }

    /// Checks all before sending any: a batch that breaks a rule sends nothing.
    fn batch(&mut self, all: &[Access], depth: u32) -> Result<Vec<Timed>> {
        let mut ahead = 0;
        for &a in all {
            self.permit(a, ahead)?;
            ahead += if matches!(a.op, Op::Write(_)) { a.len } else { 0 };
        }
        if self.has_journal() {
            let ranges: Vec<(u64, u64)> = all.iter().filter_map(changed).collect();
            self.protect(&ranges)?;
        }
        if depth <= 1 && !self.inner.sends_ahead() {
            return all.iter().map(|&a| self.send(a)).collect();
        }
        // When a deep batch fails nobody knows which of it was sent: all of it counts.
        self.changes(all);
        all.iter().for_each(|&a| self.spend(a));
        let start = self.inner.now();
        let done = self.inner.batch(all, depth);
        let done = self.weigh(done);
        let one_by_one = done.as_ref().ok().filter(|_| depth <= 1).map(|all| all.iter().fold(Nanos(0), |sum, t| sum + t.took));
        self.counters.busy = self.counters.busy + one_by_one.unwrap_or(self.inner.now() - start);
        self.counters.failures += u64::from(done.is_err());
        done
    }

    fn sends_ahead(&self) -> bool {
        self.inner.sends_ahead()
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn idle(&mut self, d: Nanos) {
        self.inner.idle(d);
    }

    fn load(&mut self, at: u64, into: &mut [u8]) -> Result<()> {
        self.untimed(Op::Read, into.len() as u64, |d| d.load(at, into))
    }

    fn store(&mut self, at: u64, from: &[u8]) -> Result<()> {
        let a = Access { op: Op::Write(super::Fill::Zeros), at, len: from.len() as u64 };
        self.permit(a, 0)?;
        self.protect(&[(a.at, a.len)])?;
        self.changes(&[a]);
        if let Some(r) = &mut self.right {
            r.spent += a.len;
        }
        self.untimed(a.op, a.len, |d| d.store(at, from))
    }

    fn busy(&mut self) -> Option<Vec<Busy>> {
        self.inner.busy()
    }

    fn discard_securely(&mut self, at: u64, len: u64) -> Result<()> {
        let a = Access { op: Op::Discard, at, len };
        self.permit(a, 0)?;
        if self.has_journal() {
            return Err(DeviceError::Unsupported("what is discarded securely cannot be put back; do it without undo".into()));
        }
        self.untimed(a.op, len, |d| d.discard_securely(at, len))
    }

    fn get(&mut self, at: u64, into: &mut [u8]) -> Result<Timed> {
        let a = Access { op: Op::Read, at, len: into.len() as u64 };
        self.permit(a, 0)?;
        self.spend(a);
        let done = self.inner.get(at, into);
        self.done(done)
    }

    fn put(&mut self, at: u64, from: &[u8]) -> Result<Timed> {
        let a = Access { op: Op::Write(super::Fill::Zeros), at, len: from.len() as u64 };
        self.permit(a, 0)?;
        self.protect(&[(a.at, a.len)])?;
        self.changes(&[a]);
        self.spend(a);
        let done = self.inner.put(at, from);
        self.done(done)
    }

    fn keep_old(&mut self, ranges: &[(u64, u64)]) -> Result<()> {
        self.protect(ranges)
    }

    fn puts_back(&self) -> bool {
        self.has_journal()
    }

    fn rewrite(&mut self, a: Access) -> Result<Timed> {
        self.permit(a, 0)?;
        self.protect(&[(a.at, a.len)])?;
        let Some(own) = self.own(a)? else { return self.send(a) };
        let done = match self.inner.access_of(a, &own) {
            Ok(None) => return self.send(a),
            Ok(Some(timed)) => Ok(timed),
            // Nobody knows what a failed write left.
            Err(e) => {
                self.changes(&[a]);
                Err(e)
            }
        };
        self.spend(a);
        self.done(done)
    }

    fn write_same(&mut self, byte: u8) {
        if let Some(r) = &mut self.right {
            r.same = Some(byte);
        }
    }

    /// The first descriptor goes before the second comes: each claims the target for itself.
    fn reinsert(&mut self) -> Result<()> {
        let Some(again) = &mut self.again else { return self.inner.reinsert() };
        self.inner = Box::new(Absent(self.inner.geometry().clone(), self.inner.now()));
        self.inner = again()?;
        self.failures.is_back();
        Ok(())
    }

    fn write_as(&mut self, how: Option<super::mmc::Multi>) -> Result<()> {
        self.inner.write_as(how)
    }

    fn switch_cache(&mut self, on: bool) -> Result<bool> {
        self.inner.switch_cache(on)
    }
}

/// The inside of a guard for putting back: counted, but not limited.
struct Unlimited<'a>(&'a mut Guard);

impl Device for Unlimited<'_> {
    fn geometry(&self) -> &Geometry {
        self.0.geometry()
    }
    fn access(&mut self, a: Access) -> Result<Timed> {
        self.0.counters.add(a.op, a.len);
        let done = self.0.inner.access(a);
        self.0.weigh(done)
    }
    fn now(&self) -> Nanos {
        self.0.now()
    }
    fn idle(&mut self, d: Nanos) {
        self.0.idle(d);
    }
    fn load(&mut self, at: u64, into: &mut [u8]) -> Result<()> {
        self.0.load(at, into)
    }
    fn store(&mut self, at: u64, from: &[u8]) -> Result<()> {
        let len = from.len() as u64;
        self.0.untimed(Op::Write(super::Fill::Zeros), len, |d| d.store(at, from))
    }
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
