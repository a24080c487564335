//! An SLC cache in front of log blocks: what comes in is put down in order, and moves on oldest first, as it came.

use crate::card::{Card, Gather, REST};
use crate::logs::Logs;
use std::collections::{HashMap, VecDeque};

/// A stretch of one write.
struct Part {
    at: u64,
    len: u64,
    /// Bytes of the cache that it takes.
    takes: u64,
}

/// What lies in the cache.
#[derive(Default)]
pub struct Front {
    parts: VecDeque<Part>,
    bytes: u64,
    /// Units of the card that have data here, and how many parts do.
    units: HashMap<u64, u32>,
    /// The last part is gathered in memory up to this place.
    partial: Option<u64>,
}

impl Front {
    /// Whether a unit of the card has data here.
    pub fn holds(&self, unit: u64) -> bool {
        self.units.contains_key(&unit)
    }

    fn count(&mut self, part: &Part, card: &Card, by: i32) {
        for unit in part.at / card.unit..(part.at + part.len).div_ceil(card.unit) {
            let n = self.units.entry(unit).or_default();
            *n = n.saturating_add_signed(by);
            if *n == 0 {
                self.units.remove(&unit);
            }
        }
    }

    /// Takes a write; what it takes beside the command, in ns.
    pub fn write(&mut self, at: u64, len: u64, card: &Card, logs: &mut Logs) -> f64 {
        let (mut t, mut from, end) = (len as f64 * card.bus, at, at + len);
        // What goes on where the last one ended fills up its unit.
        if self.partial.take_if(|p| *p == at).is_some()
            && let Some(last) = self.parts.back_mut()
        {
            let n = (card.unit - at % card.unit).min(len);
            last.len += n;
            from += n;
            if from.is_multiple_of(card.unit) {
                t += card.program_slc();
            } else {
                self.partial = Some(from);
            }
        } else if self.partial.take().is_some() {
            t += card.program_slc();
        }
        if from == end {
            return t;
        }
        let takes = (end.div_ceil(card.unit) - from / card.unit) * card.unit;
        while self.bytes + takes > card.slc {
            let Some(spent) = self.moves(card, logs) else { break };
            t += spent;
        }
        let part = Part { at: from, len: end - from, takes };
        self.count(&part, card, 1);
        self.bytes += takes;
        self.parts.push_back(part);
        let waits = card.gather != Gather::None && !end.is_multiple_of(card.unit);
        self.partial = waits.then_some(end);
        t + (takes / card.unit - u64::from(waits)) as f64 * card.program_slc()
    }

    /// Moves the oldest part on; what that takes, in ns.
    fn moves(&mut self, card: &Card, logs: &mut Logs) -> Option<f64> {
        let part = self.parts.pop_front()?;
        self.count(&part, card, -1);
        self.bytes -= part.takes;
        let sensed = (part.takes / card.unit) as f64 * (card.sense_slc() + card.unit as f64 * card.bus);
        Some(sensed + logs.write_all(part.at, part.len, card))
    }

    /// Uses idle time.
    pub fn rest(&mut self, ns: f64, card: &Card, logs: &mut Logs) {
        let mut left = if ns > REST { ns } else { 0.0 };
        while left > 0.0 {
            let Some(spent) = self.moves(card, logs) else { break };
            left -= spent;
        }
    }

    /// Forgets what lies between two places.
    pub fn forget(&mut self, at: u64, end: u64, card: &Card) {
        let (gone, kept): (Vec<Part>, Vec<Part>) = self.parts.drain(..).partition(|p| p.at >= at && p.at + p.len <= end);
        self.parts = kept.into();
        for p in &gone {
            self.count(p, card, -1);
            self.bytes -= p.takes;
        }
        self.partial = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;

    /// What is in the cache costs no merge until it moves on: as long as there is room any number of AUs is fast, then none is.
    #[test]
    fn a_full_cache_pays_for_what_it_took() {
        let mut card = Card::draw("cached", &mut Chance::new(7)).unwrap();
        (card.open, card.random, card.slc, card.filled) = (2, 2, 64 * card.unit, true);
        let (mut front, mut logs) = (Front::default(), Logs::new(&card));
        let mut write = |i: u64| front.write(i % 8 * card.block, card.unit, &card, &mut logs);
        let fast: Vec<f64> = (0..64).map(&mut write).collect();
        let slow: Vec<f64> = (64..128).map(&mut write).collect();
        assert!(fast.iter().all(|t| *t < card.program), "{fast:?}");
        // The first two that move on find a log block, the others a full table: most merge an AU that was there before, and now and then one with all of it.
        assert!(slow.iter().filter(|t| **t > 0.5 * card.full_merge()).count() > 48, "{slow:?}");
        front.rest(1e15, &card, &mut logs);
        assert!(!front.holds(0) && front.write(0, card.unit, &card, &mut logs) < card.program, "empty after a rest");
        assert!(front.holds(0));
        front.forget(0, card.block, &card);
        assert!(!front.holds(0));
    }
}
