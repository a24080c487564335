//! Reading: how many access units, pages and erase blocks a request touches, and what that costs.

use crate::account::{Event, Ledger};
use crate::model::Model;
use crate::units::{Divider, ps_per_byte};

/// Bytes to sectors of 512, the grain of all positions inside the crate.
pub(crate) const SHIFT: u32 = 9;

/// Positions counted in 512-byte sectors on the grid that starts at the first erase block boundary.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    /// Added to a sector number to reach the grid: a whole erase block minus the offset.
    shift: u64,
    pub page: Divider,
    pub access: Divider,
    pub unit: Divider,
    pub block: Divider,
    /// Erase blocks that cover the card.
    pub blocks: u64,
}

impl Grid {
    pub fn new(m: &Model) -> Grid {
        let n = &m.nand;
        let block = n.erase_block >> SHIFT;
        let shift = (block - (n.erase_block_offset >> SHIFT)) % block;
        let blocks = ((m.card.capacity >> SHIFT) + shift).div_ceil(block);
        let by = |bytes: u64| Divider::new((bytes >> SHIFT).max(1));
        Grid { shift, page: by(n.page), access: by(n.access_unit), unit: by(n.write_unit), block: by(n.erase_block), blocks }
    }

    /// The sector at a place of the grid.
    pub fn sector(&self, place: u64) -> u64 {
        place - self.shift
    }

    /// The sector's place on the grid.
    #[inline]
    pub fn place(&self, sector: u64) -> u64 {
        sector + self.shift
    }
}

/// What reading costs.
#[derive(Clone, Debug)]
pub(crate) struct ReadCost {
    pub sense: u64,
    pub next_page: u64,
    pub lookup: u64,
    pub pipelined: bool,
    pub one_ahead: bool,
    /// ps a byte on the slower of bus and controller.
    pub ps: u64,
}

impl ReadCost {
    pub fn new(m: &Model) -> ReadCost {
        let rate = [m.host.rate, m.card.rate].into_iter().filter(|&r| r > 0).min().unwrap_or(0);
        ReadCost {
            sense: m.nand.sense,
            next_page: m.nand.next_page,
            lookup: m.nand.lookup,
            pipelined: m.nand.pipelined,
            one_ahead: m.nand.one_ahead,
            ps: ps_per_byte(rate),
        }
    }

    /// ns on the wire.
    #[inline]
    pub fn wire(&self, bytes: u64) -> u64 {
        bytes.saturating_mul(self.ps) / 1000
    }

    /// ns to read the places `a..b` (sectors on the grid), with the number of access units sensed.
    #[inline]
    pub fn of(&self, grid: &Grid, a: u64, b: u64) -> (u64, u64) {
        let units = grid.access.of(b - 1) - grid.access.of(a) + 1;
        let pages = grid.page.of(b - 1) - grid.page.of(a) + 1;
        let blocks = grid.block.of(b - 1) - grid.block.of(a) + 1;
        let flash = units * self.sense + (pages - units) * self.next_page + blocks * self.lookup;
        let wire = self.wire((b - a) << SHIFT);
        if self.pipelined {
            if self.one_ahead {
                return (self.one_by_one(grid, a, b), units);
            }
            let first = self.sense + self.lookup;
            (first + (flash - first).max(wire), units)
        } else {
            (flash + wire, units)
        }
    }

    #[cold]
    fn one_by_one(&self, grid: &Grid, a: u64, b: u64) -> u64 {
        let mut ns = 0;
        self.ahead(grid, a, b, |step| ns += self.ns(step));
        ns
    }

    /// What a read takes its time for where each access unit is sensed while the one before is on the wire: of either what takes longer.
    fn ahead(&self, grid: &Grid, a: u64, b: u64, mut tell: impl FnMut(Step)) {
        let (mut at, mut block, mut before) = (a, None, Step::Bytes(0));
        while at < b {
            let end = ((grid.access.of(at) + 1) * grid.access.by()).min(b);
            let last = grid.block.of(end - 1);
            let lookups = block.map_or(last - grid.block.of(at) + 1, |seen| last - seen);
            let sensed = Step::Sense(lookups);
            tell(if self.ns(sensed) >= self.ns(before) { sensed } else { before });
            let (wire, pages) = (Step::Bytes((end - at) << SHIFT), Step::Pages(grid.page.of(end - 1) - grid.page.of(at)));
            before = if self.ns(wire) >= self.ns(pages) { wire } else { pages };
            (at, block) = (end, Some(last));
        }
        tell(before);
    }

    fn ns(&self, step: Step) -> u64 {
        match step {
            Step::Sense(blocks) => self.sense + blocks * self.lookup,
            Step::Pages(n) => n * self.next_page,
            Step::Bytes(n) => self.wire(n),
        }
    }

    /// Books what [`ReadCost::of`] charges.
    pub fn book(&self, grid: &Grid, a: u64, b: u64, l: &mut Ledger) {
        if self.pipelined && self.one_ahead {
            return self.ahead(grid, a, b, |step| match step {
                Step::Sense(blocks) => {
                    l.now.add(Event::Sense, 1);
                    l.now.add(Event::Lookup, blocks);
                }
                Step::Pages(n) => l.now.add(Event::NextPage, n),
                Step::Bytes(n) => l.bytes(Event::Wire, n, self.ps),
            });
        }
        let pages = grid.page.of(b - 1) - grid.page.of(a) + 1;
        let units = grid.access.of(b - 1) - grid.access.of(a) + 1;
        let blocks = grid.block.of(b - 1) - grid.block.of(a) + 1;
        let bytes = (b - a) << SHIFT;
        let more = (units - 1) * self.sense + (pages - units) * self.next_page + (blocks - 1) * self.lookup;
        // What is sensed while the wire is busy costs nothing, and neither does the wire while more is sensed.
        let (hidden, idle) = (self.pipelined && more <= self.wire(bytes), self.pipelined && more > self.wire(bytes));
        l.now.add(Event::Sense, if hidden { 1 } else { units });
        l.now.add(Event::NextPage, if hidden { 0 } else { pages - units });
        l.now.add(Event::Lookup, if hidden { 1 } else { blocks });
        if !idle {
            l.bytes(Event::Wire, bytes, self.ps);
        }
    }
}

/// A part of a read.
#[derive(Clone, Copy)]
enum Step {
    /// An access unit sensed, with erase blocks looked up for it.
    Sense(u64),
    /// Further pages taken out of the registers.
    Pages(u64),
    /// Bytes on the wire.
    Bytes(u64),
}

/// The last stretch read, kept in the controller's memory.
#[derive(Clone, Debug)]
pub(crate) struct ReadCache {
    span: u64,
    from: u64,
    to: u64,
}

impl ReadCache {
    pub fn new(m: &Model) -> Option<ReadCache> {
        (m.card.read_ahead > 0).then(|| ReadCache { span: (m.card.read_ahead >> SHIFT).max(1), from: 0, to: 0 })
    }

    /// The part of `a..b` that has to come from the flash; it is in the cache afterwards, with what lies behind it.
    pub fn miss(&mut self, grid: &Grid, a: u64, b: u64) -> Option<(u64, u64)> {
        if a >= self.from && b <= self.to {
            return None;
        }
        let start = if a >= self.from && a < self.to { self.to } else { a };
        let unit = grid.access.by();
        self.from = grid.access.of(start) * unit;
        self.to = (grid.access.of(self.from.max(b - 1).max(start + self.span - 1)) + 1) * unit;
        // Only whole units that the request itself touches stay for certain; what lies ahead is limited by the span.
        self.to = self.to.min((grid.access.of(b - 1) + 1) * unit + self.span);
        Some((start, b))
    }

    pub fn forget(&mut self, a: u64, b: u64) {
        if a < self.to && b > self.from {
            (self.from, self.to) = (0, 0);
        }
    }
}
