//! What is read once everything else was written, and once the card was taken out: what was kept at first may have stood in a cache only.

use super::{AFTER, Check, Later, MIB, SMALL};
use crate::device::fill::read_stamp;
use crate::device::{Device, DeviceError, Fill, Result};
use std::ops::Range;

impl Check<'_> {
    /// What was written all over the card before: a cache in front has forgotten it by now.
    pub(super) fn later(&mut self, reinserted: bool) -> Result<()> {
        let Range { start, end } = self.window;
        let inside = |at: &&u64| self.task.region.contains(*at) && !(start..end).contains(*at);
        let places: Vec<u64> = self.task.placed.iter().filter(inside).copied().collect();
        let (mut later, mut bytes) = (Later { after: self.out.written, reinserted, ..Later::default() }, vec![0; SMALL as usize]);
        // Each place in the order of the writes, and the stamp it shows.
        let mut seen: Vec<(u64, Option<(u64, u64)>)> = vec![];
        for at in places {
            self.out.reads += 1;
            let failed = match self.device.get(at, &mut bytes) {
                Ok(_) => {
                    seen.push((at, read_stamp(&bytes)));
                    None
                }
                Err(e @ DeviceError::Io { .. }) => {
                    self.out.unreadable.push(at);
                    Some(e)
                }
                Err(e) => return Err(e),
            };
            self.carry_on(failed)?;
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
    pub(super) fn reinserted(&mut self, ask: &dyn Fn() -> Result<()>) -> Result<()> {
        // What is asked of people is not left undone for want of some seconds.
        self.deadline = self.deadline.max(self.device.now() + AFTER);
        let at = self.window.start;
        self.write(self.large, vec![at], 4, 1.0)?;
        self.flush();
        let loose = at + MIB;
        let mut bytes = vec![0; SMALL as usize];
        for at in (loose..loose + 16 * SMALL).step_by(SMALL as usize) {
            if self.device.now() >= self.deadline {
                break;
            }
            let pass = 5;
            Fill::Stamp(self.stamp(pass)).render(at, &mut bytes);
            self.device.put(at, &bytes)?;
            (self.out.writes, self.out.written) = (self.out.writes + 1, self.out.written + SMALL);
            self.last.insert(at, pass);
        }
        // A card that declares its cache may lose what was not flushed.
        if self.device.geometry().write_cache {
            self.flush();
        }
        // What a card collects to program it together, it programs before it does something else.
        self.device.get(self.window.end - SMALL, &mut bytes)?;
        let left = self.deadline - self.device.now();
        ask()?;
        self.device.reinsert()?;
        self.deadline = self.device.now() + left.max(AFTER);
        self.out.reinserted = Some([self.fates(at, self.large)?, self.fates(loose, 16 * SMALL)?]);
        self.later(true)
    }
}
