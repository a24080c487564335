//! Block mapping with a table of open AUs. A write opens its AU: it goes to a log, and the old data stay where they are
//! until the AU is closed. Closing copies what the log lacks. An AU written from its first to its last unit closes by
//! itself, for the log simply takes the place of the old AU.

mod held;
mod merge;
mod small;

use super::protect::Protect;
use super::{WriteCost, Written, bits};
use crate::account::Event;
use crate::counters::Counters;
use crate::model::{Evict, MergeRandom, Model};
use crate::nand::{Grid, SHIFT};
use crate::rng::Rng;
use crate::told::Told;
use crate::wear::Wear;
use held::Held;
use small::SmallLog;

const NONE: u16 = u16::MAX;

#[derive(Clone, Debug)]
pub(crate) struct BlockMap {
    /// Slot of each AU; `NONE` = closed.
    slot_of: Vec<u16>,
    slots: Vec<Slot>,
    /// Slots not in use.
    free: Vec<u16>,
    /// Ends of the list of open AUs, oldest first.
    oldest: u16,
    newest: u16,
    randoms: u64,
    /// One bit a unit for each slot.
    bits: Vec<u64>,
    words: usize,
    units: u32,
    span: u32,
    limit_random: u64,
    evict: Evict,
    whole: bool,
    skips: bool,
    fills: bool,
    begins_full: bool,
    full_closes: bool,
    restarts: bool,
    close: u64,
    close_random: u64,
    fat: u64,
    hand: u64,
    groups: u64,
    rng: Rng,
    pub told: Option<Box<Told>>,
    pub written: Written,
    pub wear: Option<Box<Wear>>,
    small: Option<SmallLog>,
    held: Option<Box<Held>>,
    protect: Option<Protect>,
    run: Run,
}

/// Where the last write ended, if the AU is written in order: most writes go on there.
#[derive(Clone, Debug)]
struct Run {
    slot: u16,
    /// Units on the grid: the one expected next (`u64::MAX` = no run), and the end of the AU.
    next: u64,
    end: u64,
}

impl Run {
    const NONE: Run = Run { slot: NONE, next: u64::MAX, end: 0 };
}

#[derive(Clone, Debug, Default)]
struct Slot {
    au: u32,
    /// First unit of the run in the log, and the one expected next.
    start: u32,
    next: u32,
    /// Units of log used and units that differ, in random order.
    used: u32,
    distinct: u32,
    random: bool,
    /// The unit before `next` is not full yet.
    tail: bool,
    older: u16,
    newer: u16,
}

impl BlockMap {
    pub fn new(m: &Model, grid: &Grid, seed: u64) -> BlockMap {
        let (b, n) = (&m.ftl.block, &m.nand);
        let units = (n.erase_block / n.write_unit) as u32;
        let words = (units as usize).div_ceil(64);
        let slots = b.open_linear as usize;
        BlockMap {
            slot_of: vec![NONE; grid.blocks as usize],
            slots: vec![Slot::default(); slots],
            free: (0..slots as u16).rev().collect(),
            oldest: NONE,
            newest: NONE,
            randoms: 0,
            bits: if b.open_random > 0 || b.skips { vec![0; words * slots] } else { Vec::new() },
            words,
            units,
            span: if b.merge_span == 0 { units } else { (b.merge_span / n.write_unit) as u32 },
            limit_random: b.open_random,
            evict: b.evict,
            whole: b.merge_random == MergeRandom::Whole,
            skips: b.skips,
            fills: b.fills,
            begins_full: b.fills || b.begins_full,
            full_closes: b.full_closes,
            restarts: b.restarts,
            close: b.close,
            close_random: if b.close_random == 0 { b.close } else { b.close_random },
            fat: if b.fat_zone == 0 { 0 } else { grid.place(b.fat_zone >> SHIFT) },
            run: Run::NONE,
            hand: 0,
            groups: b.groups,
            rng: Rng::new(seed, 3),
            told: None,
            written: Written::new(m, grid),
            wear: Wear::new(m, grid.blocks, None, seed),
            protect: Protect::new(b, grid.blocks),
            small: SmallLog::new(m),
            held: Held::new(m).map(Box::new),
        }
    }

    #[inline]
    pub fn write(&mut self, grid: &Grid, cost: &WriteCost, counters: &mut Counters, a: u64, b: u64) -> u64 {
        self.hand = self.hand.wrapping_add(1);
        let (first, last) = (grid.unit.of(a), grid.unit.of(b - 1) + 1);
        // In the same AU, and not up to its end: nothing else changes.
        if first == self.run.next && last < self.run.end && last * grid.unit.by() == b {
            self.run.next = last;
            self.slots[self.run.slot as usize].next += (last - first) as u32;
            return 0;
        }
        self.anywhere(grid, cost, counters, a, b)
    }

    fn anywhere(&mut self, grid: &Grid, cost: &WriteCost, counters: &mut Counters, a: u64, b: u64) -> u64 {
        self.run = Run::NONE;
        let mut at = a;
        if at < self.fat {
            self.written.set(grid, a, b.min(self.fat));
            at = self.fat;
        }
        let (mut ns, size, unit) = (0, grid.block.by(), grid.unit.by());
        let units = u64::from(self.units);
        if self.small.as_ref().is_some_and(|s| at < b && b - at <= s.limit) {
            return self.small(grid, cost, counters, at, b);
        }
        while at < b {
            let au = grid.block.of(at);
            let end = b.min((au + 1) * size);
            let (first, last) = (grid.unit.of(at), grid.unit.of(end - 1) + 1);
            let (u0, u1, tail) = ((first - au * units) as u32, (last - au * units) as u32, last * unit != end);
            if self.restarts && at == au * size {
                ns += self.restart(cost, counters, au as u32);
            }
            ns += self.touch(cost, counters, au as u32, u0, u1, tail);
            let slot = self.slot_of[au as usize];
            let in_order = slot != NONE && !tail && !self.skips && !self.slots[slot as usize].random && self.small.is_none();
            self.run = if in_order { Run { slot, next: last, end: (au + 1) * units } } else { Run::NONE };
            at = end;
        }
        ns
    }

    /// ns to erase the block an AU leaves, with what levelling the wear adds.
    #[inline]
    fn erase(&mut self, cost: &WriteCost, counters: &mut Counters, au: u32) -> u64 {
        counters.erases += 1;
        counters.note(Event::Erase, 1);
        let Some(wear) = &mut self.wear else { return cost.erase };
        let moved = wear.renew(au);
        counters.erases += moved;
        counters.units_copied += moved * u64::from(self.units);
        counters.note(Event::Copy, moved * u64::from(self.units));
        counters.note(Event::Erase, moved);
        cost.erase + moved * (cost.erase + u64::from(self.units) * cost.copy)
    }

    /// How many erase blocks hold data, of how many.
    pub fn share(&self) -> (u64, u64) {
        (self.written.count(), self.slot_of.len() as u64)
    }

    #[inline]
    fn touch(&mut self, cost: &WriteCost, counters: &mut Counters, au: u32, u0: u32, u1: u32, tail: bool) -> u64 {
        let s = self.slot_of[au as usize];
        if s == NONE {
            return self.open(cost, counters, au, u0, u1, tail);
        }
        let slot = &mut self.slots[s as usize];
        if !slot.random {
            if u0 == slot.next || (slot.tail && u0 + 1 == slot.next) || (self.skips || self.fills) && u0 > slot.next {
                let from = std::mem::replace(&mut slot.next, u1);
                slot.tail = tail;
                let begun = slot.start == 0;
                let ns = if self.fills && u0 > from { self.fill(cost, counters, s, from, u0) } else { 0 };
                let whole = if self.skips { self.mark(s, u0, u1) == self.units } else { begun };
                if u1 == self.units && whole && !tail {
                    return ns + self.switch(cost, counters, s);
                }
                self.used(s);
                return ns;
            }
            if self.limit_random == 0 {
                let ns = self.shut(cost, counters, s);
                return ns + self.open(cost, counters, au, u0, u1, tail);
            }
            let ns = self.scatter(cost, counters, s);
            let ns = ns + self.add(cost, counters, s, u0, u1, tail);
            return ns + self.full(cost, counters, s);
        }
        // The unit that was left half full is still at hand: the rest of it takes no further room in the log.
        let again = u32::from(slot.tail && u0 + 1 == slot.next);
        self.used(s);
        let ns = self.add(cost, counters, s, u0 + again, u1, tail);
        ns + self.full(cost, counters, s)
    }

    /// Opens an AU that is closed, closing another one where the table is full.
    fn open(&mut self, cost: &WriteCost, counters: &mut Counters, au: u32, u0: u32, u1: u32, tail: bool) -> u64 {
        self.written.one(u64::from(au));
        let mut ns = 0;
        if u0 == 0 && u1 == self.units && !tail && !self.free.is_empty() {
            counters.merges_switch += 1;
            return self.filled(cost, counters, au);
        }
        if let Some(protect) = &mut self.protect {
            protect.opened(au);
        }
        if self.free.is_empty() {
            let victim = self.victim(counters.writes);
            if let Some(protect) = &mut self.protect {
                protect.closed(self.slots[victim as usize].au);
            }
            ns = self.shut(cost, counters, victim);
        }
        let Some(s) = self.free.pop() else { unreachable!("a slot was just freed") };
        self.slot_of[au as usize] = s;
        self.slots[s as usize] = Slot { au, start: u0, next: u1, tail, ..Slot::default() };
        self.push(s);
        if self.skips {
            self.bits[s as usize * self.words..][..self.words].fill(0);
            self.mark(s, u0, u1);
        }
        if self.begins_full && u0 > 0 {
            self.slots[s as usize].start = 0;
            ns += self.fill(cost, counters, s, 0, u0);
        }
        if u0 == 0 && u1 == self.units && !tail {
            ns += self.switch(cost, counters, s);
        }
        ns
    }

    /// The slot that has to make room; `write`: number of the write that needs it.
    fn victim(&mut self, write: u64) -> u16 {
        match self.evict {
            Evict::Lru | Evict::Fifo => {
                let mut s = self.oldest;
                if let Some(protect) = &self.protect {
                    while s != NONE && protect.keeps(self.slots[s as usize].au) {
                        s = self.slots[s as usize].newer;
                    }
                }
                if s == NONE { self.oldest } else { s }
            }
            Evict::Random => {
                let all = self.slots.iter().enumerate().map(|(s, slot)| (s as u16, slot.au));
                let told = self.told.as_mut().and_then(|t| t.draw(all, write));
                told.unwrap_or_else(|| self.rng.below(self.slots.len() as u64) as u16)
            }
            Evict::Counter => {
                let group = self.hand % self.groups;
                let mut s = self.oldest;
                while u64::from(s) % self.groups != group {
                    s = self.slots[s as usize].newer;
                }
                s
            }
        }
    }

    /// The log of an AU becomes one in random order, closing another such AU where there are too many.
    fn scatter(&mut self, cost: &WriteCost, counters: &mut Counters, s: u16) -> u64 {
        let mut ns = 0;
        if self.randoms >= self.limit_random {
            let v = self.random_victim(counters.writes);
            ns = self.shut(cost, counters, v);
        }
        self.randoms += 1;
        let slot = &mut self.slots[s as usize];
        slot.random = true;
        if self.skips {
            slot.used = slot.distinct;
        } else {
            slot.used = slot.next - slot.start;
            slot.distinct = slot.used;
            let (from, to) = (slot.start, slot.next);
            let bits = &mut self.bits[s as usize * self.words..][..self.words];
            bits.fill(0);
            bits::set(bits, from..to);
        }
        self.used(s);
        ns
    }

    /// The slot in random order that has to make room for another one.
    fn random_victim(&mut self, write: u64) -> u16 {
        let at_random = self.evict == Evict::Random;
        if let (true, Some(told)) = (at_random, &mut self.told) {
            let open = |(s, slot): &(usize, &Slot)| slot.random && self.slot_of[slot.au as usize] == *s as u16;
            let all = self.slots.iter().enumerate().filter(open);
            if let Some(s) = told.draw(all.map(|(s, slot)| (s as u16, slot.au)), write) {
                return s;
            }
        }
        let mut left = if at_random { self.rng.below(self.randoms) } else { 0 };
        let mut v = self.oldest;
        while v != NONE && (!self.slots[v as usize].random || left > 0) {
            left -= u64::from(self.slots[v as usize].random);
            v = self.slots[v as usize].newer;
        }
        v
    }

    /// Appends units to the log of an AU in random order; a full log is merged.
    fn add(&mut self, cost: &WriteCost, counters: &mut Counters, s: u16, u0: u32, u1: u32, tail: bool) -> u64 {
        let mut ns = 0;
        if self.slots[s as usize].used + (u1 - u0) > self.units {
            ns = self.merge(cost, counters, s);
            let slot = &mut self.slots[s as usize];
            (slot.used, slot.distinct) = (0, 0);
            self.bits[s as usize * self.words..][..self.words].fill(0);
        }
        let slot = &mut self.slots[s as usize];
        (slot.next, slot.tail) = (u1, tail);
        slot.used += u1 - u0;
        slot.distinct += bits::set(&mut self.bits[s as usize * self.words..][..self.words], u0..u1);
        ns
    }

    /// ns to close an AU in random order whose log is used up, where that is done.
    fn full(&mut self, cost: &WriteCost, counters: &mut Counters, s: u16) -> u64 {
        let slot = &self.slots[s as usize];
        if self.full_closes && slot.used >= self.units { self.shut(cost, counters, s) } else { 0 }
    }

    /// The log takes the place of the AU.
    fn switch(&mut self, cost: &WriteCost, counters: &mut Counters, s: u16) -> u64 {
        counters.merges_switch += 1;
        let au = self.slots[s as usize].au;
        self.release(s);
        self.filled(cost, counters, au)
    }

    /// Closes an AU: ns.
    fn shut(&mut self, cost: &WriteCost, counters: &mut Counters, s: u16) -> u64 {
        let ns = self.merge(cost, counters, s);
        if self.slots[s as usize].random {
            self.randoms -= 1;
        }
        self.release(s);
        ns
    }

    /// An AU that lies wholly in the range is forgotten; its log with it.
    pub fn discard(&mut self, grid: &Grid, a: u64, b: u64) {
        self.run = Run::NONE;
        self.written.clear(grid, a, b);
        let size = grid.block.by();
        for au in a.div_ceil(size)..b / size {
            if let Some(h) = &mut self.held {
                h.clear(au as u32);
            }
            let s = self.slot_of[au as usize];
            if s != NONE {
                self.randoms -= u64::from(self.slots[s as usize].random);
                self.release(s);
            }
        }
    }

    #[inline]
    fn used(&mut self, s: u16) {
        if self.newest != s && matches!(self.evict, Evict::Lru | Evict::Counter) {
            self.unlink(s);
            self.push(s);
        }
    }

    fn release(&mut self, s: u16) {
        self.unlink(s);
        self.slot_of[self.slots[s as usize].au as usize] = NONE;
        self.free.push(s);
    }

    #[inline]
    fn push(&mut self, s: u16) {
        let newest = self.newest;
        let slot = &mut self.slots[s as usize];
        (slot.older, slot.newer) = (newest, NONE);
        if newest == NONE {
            self.oldest = s;
        } else {
            self.slots[newest as usize].newer = s;
        }
        self.newest = s;
    }

    #[inline]
    fn unlink(&mut self, s: u16) {
        let (older, newer) = (self.slots[s as usize].older, self.slots[s as usize].newer);
        if older == NONE {
            self.oldest = newer;
        } else {
            self.slots[older as usize].newer = newer;
        }
        if newer == NONE {
            self.newest = older;
        } else {
            self.slots[newer as usize].older = older;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Going on with a run is a short cut: without it the same comes out.
    #[test]
    fn a_run_changes_nothing() {
        let mut rng = Rng::new(9, 9);
        let more = [
            "",
            "open_random = 2",
            "evict = \"fifo\"",
            "evict = \"random\"",
            "fat_zone = \"72 KiB\"",
            "small_log = \"64 KiB\"\nsmall_write = \"4 KiB\"",
            "open_random = 2\nrestarts = true",
        ];
        let mut gone_on = 0;
        for case in 0..120usize {
            let text = format!(
                "name = \"t\"\n[card]\ncapacity = \"4 MiB\"\n[nand]\npage = \"4 KiB\"\nwrite_unit = \"8 KiB\"\nerase_block = \"256 KiB\"\n\
                 erase_block_offset = \"{}\"\nprogram = 10\ncopy = 7\nerase = 100\n[ftl]\nkind = \"block-map\"\nopen_linear = {}\nclose = 1000\n{}\n",
                ["0 B", "24 KiB"][case % 2],
                3 + case % 3,
                more[case % more.len()]
            );
            let model = Model::parse(&text, "t").unwrap_or_else(|e| panic!("{e}\n{text}"));
            let grid = Grid::new(&model);
            let (mut fast, mut slow) = (BlockMap::new(&model, &grid, 1), BlockMap::new(&model, &grid, 1));
            let (cost, mut k, mut l) = (WriteCost::new(&model), Counters::default(), Counters::default());
            let (sectors, mut at) = (8192, 0);
            for step in 0..600 {
                if rng.below(8) == 0 {
                    at = rng.below(sectors / 16) * 16;
                }
                let b = (at + [16, 16, 32, 48, 1 + rng.below(700)][rng.below(5) as usize]).min(sectors);
                let (a, b) = (grid.place(at), grid.place(b));
                if rng.below(40) == 0 {
                    let (a, b) = (a.saturating_sub(512), (a + 512).min(grid.place(sectors)));
                    fast.discard(&grid, a, b);
                    slow.discard(&grid, a, b);
                    continue;
                }
                gone_on += u64::from(grid.unit.of(a) == fast.run.next);
                slow.run = Run::NONE;
                let (x, y) = (fast.write(&grid, &cost, &mut k, a, b), slow.write(&grid, &cost, &mut l, a, b));
                assert_eq!((x, &k), (y, &l), "case {case}, step {step}\n{text}");
                at = grid.sector(b) % (sectors - 1);
            }
        }
        assert!(gone_on > 10_000, "{gone_on} of 72 000 writes went on");
    }
}
