//! What is read once something else happened: what the test of the capacity wrote, what lies beside small discards, what was written all
//! over the card once everything else was written, and once the card was taken out. What was kept at first may have stood in a cache only.

use super::{AFTER, AROUND, Check, Fates, LARGE, Later, MIB, Nanos, SMALL, STRETCH};
use crate::device::fill::read_stamp;
use crate::device::{Access, Device, DeviceError, Fill, Op, Result};
use crate::units::SECTOR;
use std::collections::BTreeMap;
use std::ops::Range;

/// Writes that are not flushed before the card is taken out.
const LOOSE: u64 = 16;

/// The number that most sectors carry beside their own address.
fn number(at: u64, bytes: &[u8]) -> Option<u64> {
    let sectors = bytes.chunks_exact(SECTOR as usize).enumerate();
    let own = sectors.filter_map(|(i, s)| read_stamp(s).filter(|s| s.0 == at + i as u64 * SECTOR));
    let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
    own.for_each(|s| *counts.entry(s.1).or_default() += 1);
    counts.into_iter().max_by_key(|c| c.1).map(|c| c.0)
}

/// What was not tried where Enter was pressed and the card stayed where it was.
pub const STAYED: &str = "what is left after it was taken out, for the device was there all the while";

impl Check<'_> {
    /// The stretch that the test of the capacity wrote: pieces that need no further write, which counts on a card that is slow to write.
    pub(super) fn stretch(&mut self) -> Result<()> {
        let Some((from, len)) = self.task.placed.stretch else { return Ok(()) };
        let (until, mut bytes) = (self.until(STRETCH), vec![0; LARGE as usize]);
        let mut stamp = None;
        for at in (from..from + len).step_by(LARGE as usize) {
            if self.device.now() >= until || self.out.no_content {
                break;
            }
            let bytes = &mut bytes[..LARGE.min(from + len - at) as usize];
            self.look_at(at, bytes, &mut |check, bytes| {
                stamp = stamp.or_else(|| number(at, bytes));
                let Some(stamp) = stamp else { return };
                check.last.extend((at..at + bytes.len() as u64).step_by(SMALL as usize).map(|p| (p, stamp)));
                let mut fates = std::mem::take(&mut check.out.fates);
                check.judge_all(at, bytes, &mut fates);
                check.out.fates = fates;
            })?;
        }
        Ok(())
    }

    /// What two small discards do to what lies beside them, amid pieces that were written and read back before.
    pub(super) fn beside(&mut self) -> Result<()> {
        let Some((at, whole)) = AROUND.into_iter().find_map(|len| Some((self.known(len)?, len))) else {
            self.out.untried = Some("what a small discard does to what lies beside it");
            return Ok(());
        };
        self.flush();
        self.once_more(at, whole);
        for (at, len) in [(at + whole / 4, SMALL), (at + whole / 8 * 5, whole / 16)] {
            match self.device.access(Access { op: Op::Discard, at, len }) {
                Ok(_) => {
                    self.last.retain(|p, _| !(at..at + len).contains(p));
                    self.kept.retain(|p, _| !(at..at + len).contains(p));
                }
                Err(DeviceError::Unsupported(_) | DeviceError::Io { .. }) => return Ok(()),
                Err(e) => return Err(e),
            }
        }
        self.flush();
        let mut fates = Fates::default();
        let done = self.fates(at, whole, &mut fates);
        // What was not read to the end shows no more than what it found.
        self.out.beside_discards = Some(fates).filter(|f| done.is_ok() || f.lost() > 0);
        done
    }

    /// What was written all over the card before: a cache in front has forgotten it by now.
    pub(super) fn later(&mut self, reinserted: bool) -> Result<()> {
        let Range { start, end } = self.window;
        let inside = |at: &&u64| self.task.region.contains(*at) && !(start..end).contains(*at);
        let places: Vec<u64> = self.task.placed.places.iter().filter(inside).copied().collect();
        let (mut later, mut bytes) = (Later { after: self.out.written, reinserted, ..Later::default() }, vec![0; SMALL as usize]);
        // Each place in the order of the writes, and the stamp it shows.
        let mut seen: Vec<(u64, Option<(u64, u64)>)> = vec![];
        for at in places {
            self.look_at(at, &mut bytes, &mut |_, bytes| seen.push((at, read_stamp(bytes))))?;
        }
        let own = |(at, stamp): &(u64, Option<(u64, u64)>)| stamp.is_some_and(|s| s.0 == *at);
        later.lost = seen.iter().filter(|p| !own(p)).map(|p| p.0).collect();
        let (first, last) = (later.lost.iter().min().copied(), seen.iter().rposition(|p| !own(p)));
        // What was written after all that is lost may still be in the cache that hid the loss.
        let recent = |i: usize, at: u64| first.is_some_and(|f| at > f) && last.is_some_and(|l| i > l);
        for (i, &(at, _)) in seen.iter().enumerate().filter(|(_, p)| own(p)) {
            if recent(i, at) { &mut later.recent } else { &mut later.kept }.push(at);
        }
        // Of this check, not of an earlier one: those that are kept carry the same number.
        let numbers: Vec<u64> = seen.iter().filter(|p| own(p)).filter_map(|p| p.1).map(|s| s.1).collect();
        let strange = seen.iter().filter_map(|&(at, stamp)| Some((at, stamp?))).filter(|(at, s)| s.0 != *at && numbers.contains(&s.1));
        later.shown = strange.map(|(at, s)| (at, s.0)).collect();
        self.out.later = later;
        Ok(())
    }

    /// Writes that were flushed and some that were not, and what is left of them after the card was out.
    pub(super) fn reinserted(&mut self, ask: &dyn Fn() -> Result<bool>) -> Result<()> {
        let before = AROUND.into_iter().find_map(|len| Some((self.known(len)?, len)));
        let (at, loose) = (self.window.start, self.window.start + MIB);
        // What is asked of people is not left undone for want of some seconds, unless there is enough without and the writes take long.
        if before.is_none() || self.about(at).0 * LOOSE <= AFTER.0 {
            self.deadline = self.deadline.max(self.device.now() + AFTER);
        }
        let fresh = self.device.now() + self.about(at) <= self.deadline;
        if fresh {
            self.write(self.large, vec![at], 4, 1.0)?;
        }
        self.flush();
        let mut bytes = vec![0; SMALL as usize];
        for at in (loose..loose + LOOSE * SMALL).step_by(SMALL as usize) {
            if !fresh || self.device.now() + self.about(at) > self.deadline {
                break;
            }
            let number = self.stamp(5);
            Fill::Stamp(number).render(at, &mut bytes);
            self.device.put(at, &bytes)?;
            (self.out.writes, self.out.written) = (self.out.writes + 1, self.out.written + SMALL);
            self.last.insert(at, number);
            self.kept.remove(&at);
        }
        // A card that declares its cache may lose what was not flushed.
        if self.device.geometry().write_cache {
            self.flush();
        }
        // What a card collects to program it together, it programs before it does something else.
        self.device.get(self.window.end - SMALL, &mut bytes)?;
        let left: Nanos = self.deadline - self.device.now();
        if !ask()? {
            self.out.untried = Some(STAYED);
            return Ok(());
        }
        self.device.reinsert()?;
        self.deadline = self.device.now() + left.max(AFTER);
        let mut after = [Fates::default(), Fates::default()];
        if let Some((at, len)) = before {
            self.once_more(at, len);
            self.fates(at, len, &mut after[0])?;
        }
        self.fates(at, self.large, &mut after[0])?;
        self.fates(loose, LOOSE * SMALL, &mut after[1])?;
        let loose = after[1].read > 0;
        self.out.reinserted = Some(after);
        self.later(true)?;
        if !loose {
            self.out.untried = Some("what becomes of the last writes when it is taken out");
        }
        Ok(())
    }
}
