//! Mapping by page: an SLC cache, a map of which only a part is in memory, garbage collection, streams.

use crate::card::{Card, Gather, REST};
use crate::chance::Chance;
use std::collections::VecDeque;

const NOWHERE: u32 = u32::MAX;

/// The state of a page-mapped card.
pub struct Pages {
    /// Place of each logical unit.
    place: Vec<u32>,
    /// Logical unit of each place.
    owner: Vec<u32>,
    valid: Vec<u32>,
    free: Vec<u32>,
    now: u32,
    fill: u32,
    per: u32,
    /// Bytes in the SLC cache.
    slc: f64,
    /// Pieces of the map in memory, and whether they were changed.
    map: VecDeque<(u64, bool)>,
    /// Where streams go on, the newest first.
    streams: VecDeque<(u64, u64)>,
    writes: u64,
    /// A unit is filled up in memory up to this byte.
    partial: Option<u64>,
    /// Units moved by garbage collection.
    pub moved: u64,
}

impl Pages {
    /// The state after the card was filled in order, or never written.
    pub fn new(card: &Card) -> Self {
        let per = (card.block / card.unit) as u32;
        let units = card.size.div_ceil(card.unit) as u32;
        let blocks = (f64::from(units) * (1.0 + card.spare) / f64::from(per)) as u32 + 4;
        let mut place = vec![NOWHERE; units as usize];
        let mut owner = vec![NOWHERE; (blocks * per) as usize];
        let mut valid = vec![0; blocks as usize];
        let mut first = 0;
        if card.filled {
            for u in 0..units {
                place[u as usize] = u;
                owner[u as usize] = u;
                valid[(u / per) as usize] += 1;
            }
            first = units.div_ceil(per);
        }
        let free: Vec<u32> = (first + 1..blocks).rev().collect();
        Pages {
            place,
            owner,
            valid,
            free,
            now: first,
            fill: 0,
            per,
            slc: 0.0,
            map: VecDeque::new(),
            streams: VecDeque::new(),
            writes: 0,
            partial: None,
            moved: 0,
        }
    }

    /// Whether there is data in this unit.
    pub fn holds(&self, unit: u64) -> bool {
        self.place.get(unit as usize).is_some_and(|&p| p != NOWHERE)
    }

    /// What it costs to find a place in the map.
    pub fn look(&mut self, at: u64, changes: bool, card: &Card, c: &mut Chance) -> f64 {
        if card.reach == 0 {
            return 0.0;
        }
        let piece = at / card.segment;
        if let Some(p) = self.map.iter_mut().find(|p| p.0 == piece) {
            p.1 |= changes;
            return 0.0;
        }
        let mut t = card.fetch();
        if self.map.len() as u64 >= (card.reach / card.segment).max(1) {
            let i = c.below(self.map.len() as u64) as usize;
            if self.map.swap_remove_back(i).is_some_and(|p| p.1) {
                t += card.program;
            }
        }
        self.map.push_back((piece, changes));
        t
    }

    fn put(&mut self, unit: u64) {
        let (u, at) = (unit as usize, self.now * self.per + self.fill);
        self.drop_unit(unit);
        self.place[u] = at;
        self.owner[at as usize] = u as u32;
        self.valid[self.now as usize] += 1;
        self.fill += 1;
    }

    /// Forgets a unit.
    pub fn drop_unit(&mut self, unit: u64) {
        let old = std::mem::replace(&mut self.place[unit as usize], NOWHERE);
        if old != NOWHERE {
            self.owner[old as usize] = NOWHERE;
            self.valid[(old / self.per) as usize] -= 1;
        }
    }

    /// Makes room for a unit; returns the units copied and the blocks erased.
    fn room(&mut self) -> (u64, u64) {
        let (mut copied, mut erased) = (0, 0);
        while self.fill == self.per {
            if self.free.len() > 2 {
                self.now = self.free.pop().expect("counted");
                self.fill = 0;
                break;
            }
            // The block with the fewest valid units goes first.
            let full = |b: &u32| *b != self.now && !self.free.contains(b);
            let victim = (0..self.valid.len() as u32).filter(full).min_by_key(|&b| self.valid[b as usize]).expect("blocks");
            self.now = self.free.pop().expect("two are kept");
            self.fill = 0;
            for at in victim * self.per..(victim + 1) * self.per {
                if self.owner[at as usize] != NOWHERE {
                    let unit = self.owner[at as usize];
                    self.put(u64::from(unit));
                    copied += 1;
                }
            }
            self.free.insert(0, victim);
            erased += 1;
        }
        self.moved += copied;
        (copied, erased)
    }

    /// Units written for each that a host writes at random over the whole card, long after the spare flash is used up.
    pub fn amplification(card: &Card, c: &mut Chance) -> f64 {
        let mut p = Pages::new(card);
        let units = card.size.div_ceil(card.unit);
        let mut write = |n: u64| {
            let before = p.moved;
            for _ in 0..n {
                p.room();
                p.put(c.below(units));
            }
            p.moved - before
        };
        write(4 * units);
        1.0 + write(2 * units) as f64 / (2 * units) as f64
    }

    /// Streams written to of late, this one included.
    fn streams(&mut self, at: u64, len: u64) -> (usize, bool) {
        self.writes += 1;
        let known = self.streams.iter().position(|s| s.0 == at);
        let newest = known == Some(0);
        if let Some(i) = known {
            self.streams.remove(i);
        }
        self.streams.push_front((at + len, self.writes));
        self.streams.retain(|s| s.1 + 64 > self.writes);
        self.streams.truncate(32);
        (self.streams.len(), newest)
    }

    /// Writes; what it takes beside the command, in ns.
    pub fn write(&mut self, at: u64, len: u64, card: &Card, c: &mut Chance) -> f64 {
        let mut t = self.look(at, true, card, c);
        let (streams, newest) = self.streams(at, len);
        let mut data = 0.0;
        let end = at + len;
        for unit in at / card.unit..end.div_ceil(card.unit) {
            let low = (unit * card.unit).max(at);
            let high = ((unit + 1) * card.unit).min(end);
            let whole = high - low == card.unit;
            let goes_on = !whole && card.gather != Gather::None && newest && self.partial == Some(low);
            if goes_on {
                data += (high - low) as f64 * card.bus;
                if high < (unit + 1) * card.unit {
                    self.partial = Some(high);
                    continue;
                }
                self.partial = None;
                data += card.program;
                continue;
            }
            if self.partial.take().is_some() {
                data += card.program;
            }
            if !whole && self.holds(unit) {
                data += card.sense + card.unit as f64 * card.bus;
            }
            let (copied, erased) = self.room();
            t += copied as f64 * card.copy_unit() + erased as f64 * card.erase;
            self.put(unit);
            if !whole && low == unit * card.unit && card.gather != Gather::None {
                data += (high - low) as f64 * card.bus;
                self.partial = Some(high);
                continue;
            }
            data += if self.slc + card.unit as f64 <= card.slc as f64 {
                self.slc += card.unit as f64;
                card.program_slc() + (high - low) as f64 * card.bus
            } else if card.slc > 0 {
                // One unit is folded for each that comes in.
                card.copy_unit() * 0.6 + card.write_unit(high - low) * 0.6
            } else {
                card.write_unit(high - low)
            };
        }
        let beyond = streams.saturating_sub(card.free_streams.max(1)) as f64;
        t + data * (1.0 + card.slope * beyond)
    }

    /// Uses idle time.
    pub fn rest(&mut self, ns: f64, card: &Card) {
        if card.slc > 0 && ns > REST {
            self.slc = (self.slc - ns / card.copy_unit() * card.unit as f64).max(0.0);
        }
    }
}
