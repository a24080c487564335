//! Bringing a log and the old data of its AU together: at the end, or at once where a card fills.

use super::*;

impl BlockMap {
    /// ns to bring the log of an AU and its old data together.
    pub(super) fn merge(&mut self, cost: &WriteCost, counters: &mut Counters, s: u16) -> u64 {
        if self.held.is_some() {
            return self.merge_held(cost, counters, s);
        }
        let slot = &self.slots[s as usize];
        let copies = if !slot.random {
            counters.merges_partial += 1;
            // Most cards: no division.
            if self.skips {
                if self.span == self.units { self.units - slot.distinct } else { self.missing(s) }
            } else if self.span == self.units {
                slot.start + (self.units - slot.next)
            } else {
                slot.start % self.span + slot.next.next_multiple_of(self.span) - slot.next
            }
        } else if self.whole {
            counters.merges_full += 1;
            self.units
        } else {
            counters.merges_partial += 1;
            if self.span == self.units { self.units - slot.distinct } else { self.missing(s) }
        };
        counters.units_copied += u64::from(copies);
        counters.note(Event::Copy, u64::from(copies));
        counters.note(if slot.random { Event::CloseRandom } else { Event::Close }, 1);
        let fixed = if slot.random { self.close_random } else { self.close };
        let au = slot.au;
        u64::from(copies) * cost.copy + fixed + self.erase(cost, counters, au)
    }

    /// The same where only what the AU holds is copied.
    fn merge_held(&mut self, cost: &WriteCost, counters: &mut Counters, s: u16) -> u64 {
        let (slot, mut log) = (&self.slots[s as usize], vec![0; self.words]);
        if slot.random || self.skips {
            log.copy_from_slice(&self.bits[s as usize * self.words..][..self.words]);
        } else {
            set_bits(&mut log, slot.start, slot.next);
        }
        let (au, random) = (slot.au, slot.random);
        let whole = self.whole && random;
        let (copies, old) = self.held.as_mut().map_or((0, true), |h| h.merge(au, &log, self.span, whole));
        *if whole { &mut counters.merges_full } else { &mut counters.merges_partial } += 1;
        counters.units_copied += u64::from(copies);
        counters.note(Event::Copy, u64::from(copies));
        counters.note(if random { Event::CloseRandom } else { Event::Close }, 1);
        let erase = if old { self.erase(cost, counters, au) } else { 0 };
        u64::from(copies) * cost.copy + if random { self.close_random } else { self.close } + erase
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
        let fresh = set_bits(&mut self.bits[s as usize * self.words..][..self.words], u0, u1);
        self.slots[s as usize].distinct += fresh;
        self.slots[s as usize].distinct
    }
}
