//! Bringing a log and the old data of its AU together: at the end, or at once where a card fills.

use super::*;

impl BlockMap {
    /// ns to bring the log of an AU and its old data together.
    pub(super) fn merge(&mut self, cost: &WriteCost, counters: &mut Counters, s: u16) -> u64 {
        let Slot { au, start, next, distinct, random, .. } = self.slots[s as usize];
        let whole = self.whole && random;
        let (copies, old) = if self.held.is_some() {
            self.lacking(s, whole)
        } else if whole {
            (self.units, true)
        } else if random || self.skips {
            (if self.span == self.units { self.units - distinct } else { self.missing(s) }, true)
        } else if self.span == self.units {
            // Most cards: no division.
            (start + (self.units - next), true)
        } else {
            (start % self.span + next.next_multiple_of(self.span) - next, true)
        };
        *if whole { &mut counters.merges_full } else { &mut counters.merges_partial } += 1;
        counters.units_copied += u64::from(copies);
        counters.note(Event::Copy, u64::from(copies));
        counters.note(if random { Event::CloseRandom } else { Event::Close }, 1);
        let fixed = if random { self.close_random } else { self.close };
        let erase = if old { self.erase(cost, counters, au) } else { 0 };
        u64::from(copies) * cost.copy + fixed + erase
    }

    /// ns to merge an AU that is written from its start again, if it is open in order.
    pub(super) fn restart(&mut self, cost: &WriteCost, counters: &mut Counters, au: u32) -> u64 {
        let s = self.slot_of[au as usize];
        if s == NONE || self.slots[s as usize].random { 0 } else { self.shut(cost, counters, s) }
    }

    /// What a merge copies where only what the AU holds is copied, and whether it has a block to erase.
    fn lacking(&mut self, s: u16, whole: bool) -> (u32, bool) {
        let (slot, mut log) = (&self.slots[s as usize], vec![0; self.words]);
        if slot.random || self.skips {
            log.copy_from_slice(&self.bits[s as usize * self.words..][..self.words]);
        } else {
            bits::set(&mut log, slot.start..slot.next);
        }
        let au = slot.au;
        self.held.as_mut().map_or((0, true), |h| h.merge(au, &log, self.span, whole))
    }

    /// Units missing from the spans that were touched.
    fn missing(&self, s: u16) -> u32 {
        let bits = &self.bits[s as usize * self.words..][..self.words];
        let mut missing = 0;
        for from in (0..self.units).step_by(self.span as usize) {
            let have = (from..from + self.span).filter(|&u| bits[u as usize / 64] >> (u % 64) & 1 != 0).count() as u32;
            missing += if have == 0 { 0 } else { self.span - have };
        }
        missing
    }

    /// ns to erase the block of an AU that was written whole, if it held anything.
    pub(super) fn filled(&mut self, cost: &WriteCost, counters: &mut Counters, au: u32) -> u64 {
        let old = self.held.as_mut().is_none_or(|h| h.fill(au));
        if old { self.erase(cost, counters, au) } else { 0 }
    }

    /// ns to copy units of the old data to a log.
    pub(super) fn fill(&mut self, cost: &WriteCost, counters: &mut Counters, s: u16, from: u32, to: u32) -> u64 {
        let au = self.slots[s as usize].au;
        let n = u64::from(self.held.as_mut().map_or(to - from, |h| h.count(au, from, to)));
        if self.skips {
            self.mark(s, from, to);
        }
        counters.units_copied += n;
        counters.note(Event::Copy, n);
        n * cost.copy
    }

    /// Units of a log in order that are written, where some may be left out; these are from now on.
    pub(super) fn mark(&mut self, s: u16, u0: u32, u1: u32) -> u32 {
        let fresh = bits::set(&mut self.bits[s as usize * self.words..][..self.words], u0..u1);
        self.slots[s as usize].distinct += fresh;
        self.slots[s as usize].distinct
    }
}
