//! Translation layers: what a write sets off inside the card.

mod bits;
mod block_map;
mod log_block;
mod map_cache;
mod page_map;
mod protect;
mod write_through;

use crate::account::{Event, Events, Ledger};
use crate::counters::Counters;
use crate::model::{FtlKind, Model, State};
use crate::nand::{Grid, SHIFT};
use crate::units::ps_per_byte;
use crate::wear::Wear;
use block_map::BlockMap;
use log_block::LogBlockMap;
pub use log_block::{LogBlocks, Shape, Work};
pub(crate) use map_cache::MapCache;
use page_map::PageMap;
use write_through::WriteThrough;

/// The kind a card has.
#[derive(Clone, Debug)]
pub(crate) enum Ftl {
    None(Written),
    Block(Box<BlockMap>),
    Log(Box<LogBlockMap>, Written),
    Page(Box<PageMap>),
    Through(WriteThrough, Written),
}

impl Ftl {
    pub fn new(m: &Model, grid: &Grid, seed: u64) -> Ftl {
        match m.ftl.kind {
            FtlKind::None => Ftl::None(Written::new(m, grid)),
            FtlKind::BlockMap => Ftl::Block(Box::new(BlockMap::new(m, grid, seed))),
            FtlKind::LogBlock => Ftl::Log(Box::new(LogBlockMap::new(m, grid, seed)), Written::new(m, grid)),
            FtlKind::PageMap => Ftl::Page(Box::new(PageMap::new(m, seed))),
            FtlKind::WriteThrough => Ftl::Through(WriteThrough::new(m, grid, seed), Written::new(m, grid)),
        }
    }

    /// ns for programming the places `a..b` and for all that follows from it, without the wire.
    #[inline]
    pub fn write(&mut self, grid: &Grid, cost: &mut WriteCost, counters: &mut Counters, a: u64, b: u64) -> u64 {
        let ns = cost.of(grid, counters, a, b);
        ns + match self {
            Ftl::Block(map) => map.write(grid, cost, counters, a, b),
            Ftl::Log(map, written) => {
                written.set(grid, a, b);
                map.write(grid, cost, counters, a, b)
            }
            Ftl::Page(map) => map.write(cost, counters, a, b),
            Ftl::Through(map, written) => {
                written.set(grid, a, b);
                map.write(grid, cost, counters, a, b)
            }
            Ftl::None(written) => {
                written.set(grid, a, b);
                0
            }
        }
    }

    /// Lets the card work by itself for `ns` of rest; returns ns by which it overruns.
    pub fn rest(&mut self, cost: &WriteCost, counters: &mut Counters, ns: u64) -> u64 {
        match self {
            Ftl::Page(map) => map.rest(cost, counters, ns),
            _ => 0,
        }
    }

    /// How many parts of the card hold data, of how many.
    pub fn share(&self) -> (u64, u64) {
        match self {
            Ftl::Page(map) => map.share(),
            Ftl::Block(map) => map.share(),
            Ftl::None(w) | Ftl::Log(_, w) | Ftl::Through(_, w) => (w.count(), w.len()),
        }
    }

    /// The wear, where it is followed.
    pub fn wear(&self) -> Option<&Wear> {
        match self {
            Ftl::Page(map) => map.wear.as_deref(),
            Ftl::Block(map) => map.wear.as_deref(),
            Ftl::Log(map, _) => map.wear.as_deref(),
            Ftl::Through(map, _) => map.wear.as_deref(),
            Ftl::None(_) => None,
        }
    }

    /// Counts a read of each erase block in `a..b`; returns how many have to be rewritten for it.
    pub fn disturb(&mut self, grid: &Grid, a: u64, b: u64) -> u64 {
        let wear = match self {
            Ftl::Page(map) => &mut map.wear,
            Ftl::Block(map) => &mut map.wear,
            Ftl::Log(map, _) => &mut map.wear,
            Ftl::Through(map, _) => &mut map.wear,
            Ftl::None(_) => return 0,
        };
        let Some(wear) = wear else { return 0 };
        (grid.block.of(a)..=grid.block.of(b - 1)).map(|k| u64::from(wear.read(k))).sum()
    }

    /// Whether anything in `a..b` was ever written.
    pub fn written(&self, grid: &Grid, a: u64, b: u64) -> bool {
        match self {
            Ftl::None(w) | Ftl::Log(_, w) | Ftl::Through(_, w) => w.any(grid, a, b),
            Ftl::Block(map) => map.written.any(grid, a, b),
            Ftl::Page(map) => map.any(a, b),
        }
    }

    pub fn discard(&mut self, grid: &Grid, a: u64, b: u64) {
        match self {
            Ftl::None(w) | Ftl::Log(_, w) => w.clear(grid, a, b),
            Ftl::Through(map, w) => {
                w.clear(grid, a, b);
                map.discard(grid, a, b);
            }
            Ftl::Block(map) => map.discard(grid, a, b),
            Ftl::Page(map) => map.discard(a, b),
        }
    }
}

/// What programming costs.
#[derive(Clone, Debug)]
pub(crate) struct WriteCost {
    program: u64,
    /// ps a byte for filling up a partly written unit.
    rest_ps: u64,
    /// ps a byte for data that go into the registers of the flash, and sectors that went there or filled up a unit with the last write.
    load_ps: u64,
    pub moved: u64,
    commit: u64,
    pub copy: u64,
    pub erase: u64,
    combine: bool,
    /// A unit is collected from its start on only, its old content read as a whole, and stays in its buffer while others are read.
    starts: bool,
    /// Writes that go on where the last one ended before one is collected; how many did so far, and where the last one ended.
    after: u64,
    run: u64,
    end: u64,
    /// End of the part of a unit that sits in the collecting buffer; 0 = empty. Where it began, and with which write.
    pending: u64,
    from: u64,
    write: u64,
    /// ns to bring that unit to the flash if nothing more comes.
    pending_cost: u64,
    /// Units that are collected side by side, and the others of them, oldest first.
    streams: usize,
    others: Vec<Collected>,
}

/// A unit in the collecting buffer, as in [`WriteCost`].
#[derive(Clone, Debug)]
struct Collected {
    end: u64,
    from: u64,
    write: u64,
    cost: u64,
    events: Events,
}

impl WriteCost {
    pub fn new(m: &Model) -> WriteCost {
        let n = &m.nand;
        WriteCost {
            program: n.program,
            rest_ps: ps_per_byte(n.rest_rate),
            load_ps: ps_per_byte(n.load_rate),
            moved: 0,
            commit: n.commit,
            copy: n.copy,
            erase: n.erase,
            combine: m.card.combine,
            starts: m.card.combine_starts,
            after: m.card.combine_after,
            run: 0,
            end: u64::MAX,
            pending: 0,
            from: 0,
            write: 0,
            pending_cost: 0,
            streams: m.card.combine_streams as usize,
            others: Vec::new(),
        }
    }

    fn rest(&self, sectors: u64) -> u64 {
        (sectors << SHIFT).saturating_mul(self.rest_ps) / 1000
    }

    #[inline]
    fn of(&mut self, grid: &Grid, counters: &mut Counters, a: u64, b: u64) -> u64 {
        let unit = grid.unit.by();
        let (first, last) = (grid.unit.of(a), grid.unit.of(b - 1));
        let units = last - first + 1;
        let rest = units * unit - (b - a);
        let (ps, bytes) = (self.load_ps, (b - a) << SHIFT);
        counters.book(|l| l.bytes(Event::Load, bytes, ps));
        self.moved = b - a;
        let load = if ps > 0 { bytes.saturating_mul(ps) / 1000 } else { 0 };
        load + self.put_down(grid, counters, a, b, units, rest)
    }

    /// ns to program `units` units that hold the places `a..b` and `rest` other sectors, now or once they are full.
    #[inline]
    fn put_down(&mut self, grid: &Grid, counters: &mut Counters, a: u64, b: u64, units: u64, rest: u64) -> u64 {
        let unit = grid.unit.by();
        let (first, last) = (grid.unit.of(a), grid.unit.of(b - 1));
        if self.combine {
            self.run = if self.end == a { self.run + 1 } else { 0 };
            self.end = b;
            if self.run >= self.after {
                return self.combined(counters, a, b, first * unit, last * unit, unit);
            }
            // Out of the blue: the rest of each unit is read and programmed with it, now.
            let before = self.settle(counters);
            return before + self.at_once(counters, units, rest);
        }
        self.at_once(counters, units, rest)
    }

    fn book(&self, to: &mut Events, units: u64, rest: u64) {
        to.add(Event::Program, units);
        to.add(Event::Commit, 1);
        Ledger::count(to, Event::Rest, rest << SHIFT, self.rest_ps);
    }

    /// ns to program whole units, of which `rest` sectors are filled up from what the card holds.
    #[inline]
    fn at_once(&mut self, counters: &mut Counters, units: u64, rest: u64) -> u64 {
        counters.units_programmed += units;
        counters.book(|l| self.book(&mut l.now, units, rest));
        if rest > 0 {
            counters.filled_up += 1;
            self.moved += rest;
            return units * self.program + self.rest(rest) + self.commit;
        }
        units * self.program + self.commit
    }

    /// With a collecting buffer for one unit: what follows the last write directly waits for its unit to fill.
    fn combined(&mut self, counters: &mut Counters, a: u64, b: u64, first: u64, last: u64, unit: u64) -> u64 {
        let mut ns = if self.streams > 1 && self.pending != a { self.turn(counters, a) } else { 0 };
        let follows = self.pending != 0 && self.pending == a;
        ns += if follows { 0 } else { self.settle_one(counters) };
        let head = if follows { 0 } else { a - first };
        let tail_open = b < last + unit;
        let whole = (last - first) / unit + u64::from(!tail_open);
        self.pending = 0;
        if self.starts && head > 0 && whole == 0 {
            return ns + self.at_once(counters, 1, unit);
        }
        if whole > 0 {
            let rest = if self.starts && head > 0 { unit } else { head };
            counters.units_programmed += whole;
            counters.filled_up += u64::from(head > 0);
            self.moved += rest;
            counters.book(|l| self.book(&mut l.now, whole, rest));
            ns += whole * self.program + self.rest(rest) + self.commit;
        }
        if tail_open {
            let begins = !follows || whole > 0;
            if begins {
                (self.from, self.write) = (a.max(last), counters.writes + 1);
            }
            let mut missing = last + unit - b + if whole == 0 && !follows { head } else { 0 };
            if self.starts {
                if begins {
                    counters.book(|l| Ledger::count(&mut l.now, Event::Rest, unit << SHIFT, self.rest_ps));
                    self.moved += unit;
                    ns += self.rest(unit);
                }
                missing = 0;
            }
            self.pending = b;
            self.pending_cost = self.program + self.rest(missing) + self.commit;
            counters.book(|l| {
                l.pending = Events::default();
                self.book(&mut l.pending, 1, missing);
            });
        }
        ns
    }

    /// Takes the unit that ends at `a` out of those collected side by side, or room for a new one: ns.
    fn turn(&mut self, counters: &mut Counters, a: u64) -> u64 {
        if self.pending != 0 {
            let events = counters.ledger.as_ref().map_or(Events::default(), |l| l.pending);
            self.others.push(Collected { end: self.pending, from: self.from, write: self.write, cost: self.pending_cost, events });
            self.pending = 0;
        }
        if let Some(k) = self.others.iter().position(|c| c.end == a) {
            let c = self.others.remove(k);
            self.put(counters, c);
            return 0;
        }
        if self.others.len() < self.streams {
            return 0;
        }
        let c = self.others.remove(0);
        self.put(counters, c);
        self.settle_one(counters)
    }

    fn put(&mut self, counters: &mut Counters, c: Collected) {
        (self.pending, self.from, self.write, self.pending_cost) = (c.end, c.from, c.write, c.cost);
        counters.book(|l| l.pending = c.events);
    }

    /// The number of the oldest write with data in the collecting buffer.
    pub fn oldest(&self) -> Option<u64> {
        self.others.iter().map(|c| c.write).chain((self.pending != 0).then_some(self.write)).min()
    }

    /// The power is gone: the writes and the places that were in the collecting buffer.
    pub fn lose(&mut self) -> Vec<(u64, u64, u64)> {
        let mut lost: Vec<(u64, u64, u64)> = self.others.drain(..).map(|c| (c.write, c.from, c.end)).collect();
        lost.extend((self.pending != 0).then_some((self.write, self.from, self.pending)));
        self.pending = 0;
        lost
    }

    /// ns that a read waits for the collecting buffer to be emptied.
    #[inline]
    pub fn read(&mut self, counters: &mut Counters) -> u64 {
        if self.starts { 0 } else { self.settle(counters) }
    }

    /// ns to empty the collecting buffer.
    #[inline]
    pub fn settle(&mut self, counters: &mut Counters) -> u64 {
        let mut ns = self.settle_one(counters);
        while let Some(c) = self.others.pop() {
            self.put(counters, c);
            ns += self.settle_one(counters);
        }
        ns
    }

    #[inline]
    fn settle_one(&mut self, counters: &mut Counters) -> u64 {
        if self.pending == 0 {
            return 0;
        }
        self.pending = 0;
        counters.units_programmed += 1;
        counters.filled_up += 1;
        counters.book(|l| l.now.0.iter_mut().zip(l.pending.0).for_each(|(n, p)| *n += p));
        self.pending_cost
    }
}

/// One bit an erase block: was it ever written?
#[derive(Clone, Debug)]
pub(crate) struct Written(Vec<u64>, u64);

impl Written {
    pub fn new(m: &Model, grid: &Grid) -> Written {
        let fill = if m.card.state == State::Written { u64::MAX } else { 0 };
        Written(vec![fill; grid.blocks.div_ceil(64) as usize], grid.blocks)
    }

    pub fn len(&self) -> u64 {
        self.1
    }

    pub fn count(&self) -> u64 {
        self.0.iter().map(|w| u64::from(w.count_ones())).sum::<u64>().min(self.1)
    }

    fn each(grid: &Grid, a: u64, b: u64) -> std::ops::RangeInclusive<u64> {
        grid.block.of(a)..=grid.block.of(b - 1)
    }

    #[inline]
    pub fn one(&mut self, block: u64) {
        self.0[(block / 64) as usize] |= 1 << (block % 64);
    }

    pub fn set(&mut self, grid: &Grid, a: u64, b: u64) {
        Self::each(grid, a, b).for_each(|k| self.one(k));
    }

    pub fn any(&self, grid: &Grid, a: u64, b: u64) -> bool {
        Self::each(grid, a, b).any(|k| self.0[(k / 64) as usize] >> (k % 64) & 1 != 0)
    }

    /// Only erase blocks that lie wholly inside are erased.
    pub fn clear(&mut self, grid: &Grid, a: u64, b: u64) {
        let size = grid.block.by();
        for k in a.div_ceil(size)..b / size {
            self.0[(k / 64) as usize] &= !(1 << (k % 64));
        }
    }
}
