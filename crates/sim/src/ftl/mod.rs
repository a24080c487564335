//! Translation layers: what a write sets off inside the card.

mod block_map;
mod page_map;

use crate::counters::Counters;
use crate::model::{FtlKind, Model, State};
use crate::nand::{Grid, SHIFT};
use crate::units::ps_per_byte;
use block_map::BlockMap;
use page_map::PageMap;

/// The kind a card has.
#[derive(Clone, Debug)]
pub(crate) enum Ftl {
    None(Written),
    Block(Box<BlockMap>),
    Page(Box<PageMap>),
}

impl Ftl {
    pub fn new(m: &Model, grid: &Grid, seed: u64) -> Ftl {
        match m.ftl.kind {
            FtlKind::None => Ftl::None(Written::new(m, grid)),
            FtlKind::BlockMap => Ftl::Block(Box::new(BlockMap::new(m, grid, seed))),
            FtlKind::PageMap => Ftl::Page(Box::new(PageMap::new(m))),
        }
    }

    /// ns for programming the places `a..b` and for all that follows from it, without the wire.
    #[inline]
    pub fn write(&mut self, grid: &Grid, cost: &mut WriteCost, counters: &mut Counters, a: u64, b: u64) -> u64 {
        let ns = cost.of(grid, counters, a, b);
        ns + match self {
            Ftl::Block(map) => map.write(grid, cost, counters, a, b),
            Ftl::Page(map) => map.write(cost, counters, a, b),
            Ftl::None(written) => {
                written.set(grid, a, b);
                0
            }
        }
    }

    /// Whether anything in `a..b` was ever written.
    pub fn written(&self, grid: &Grid, a: u64, b: u64) -> bool {
        match self {
            Ftl::None(w) => w.any(grid, a, b),
            Ftl::Block(map) => map.written.any(grid, a, b),
            Ftl::Page(map) => map.any(a, b),
        }
    }

    pub fn discard(&mut self, grid: &Grid, a: u64, b: u64) {
        match self {
            Ftl::None(w) => w.clear(grid, a, b),
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
    commit: u64,
    pub copy: u64,
    pub erase: u64,
    combine: bool,
    /// End of the part of a unit that sits in the collecting buffer; 0 = empty.
    pending: u64,
    /// ns to bring that unit to the flash if nothing more comes.
    pending_cost: u64,
}

impl WriteCost {
    pub fn new(m: &Model) -> WriteCost {
        let n = &m.nand;
        WriteCost {
            program: n.program,
            rest_ps: ps_per_byte(n.rest_rate),
            commit: n.commit,
            copy: n.copy,
            erase: n.erase,
            combine: m.card.combine,
            pending: 0,
            pending_cost: 0,
        }
    }

    fn rest(&self, sectors: u64) -> u64 {
        (sectors << SHIFT) * self.rest_ps / 1000
    }

    #[inline]
    fn of(&mut self, grid: &Grid, counters: &mut Counters, a: u64, b: u64) -> u64 {
        let unit = grid.unit.by();
        let (first, last) = (grid.unit.of(a), grid.unit.of(b - 1));
        let units = last - first + 1;
        let rest = units * unit - (b - a);
        if self.combine {
            return self.combined(counters, a, b, first * unit, last * unit, unit);
        }
        counters.units_programmed += units;
        if rest > 0 {
            counters.filled_up += 1;
            return units * self.program + self.rest(rest) + self.commit;
        }
        units * self.program + self.commit
    }

    /// With a collecting buffer for one unit: what follows the last write directly waits for its unit to fill.
    fn combined(&mut self, counters: &mut Counters, a: u64, b: u64, first: u64, last: u64, unit: u64) -> u64 {
        let follows = self.pending != 0 && self.pending == a;
        let mut ns = if follows { 0 } else { self.settle(counters) };
        let head = if follows { 0 } else { a - first };
        let tail_open = b < last + unit;
        let whole = (last - first) / unit + u64::from(!tail_open);
        self.pending = 0;
        if whole > 0 {
            counters.units_programmed += whole;
            counters.filled_up += u64::from(head > 0);
            ns += whole * self.program + self.rest(head) + self.commit;
        }
        if tail_open {
            let missing = last + unit - b + if whole == 0 && !follows { head } else { 0 };
            self.pending = b;
            self.pending_cost = self.program + self.rest(missing) + self.commit;
        }
        ns
    }

    /// ns to empty the collecting buffer.
    #[inline]
    pub fn settle(&mut self, counters: &mut Counters) -> u64 {
        if self.pending == 0 {
            return 0;
        }
        self.pending = 0;
        counters.units_programmed += 1;
        counters.filled_up += 1;
        self.pending_cost
    }
}

/// One bit an erase block: was it ever written?
#[derive(Clone, Debug)]
pub(crate) struct Written(Vec<u64>);

impl Written {
    pub fn new(m: &Model, grid: &Grid) -> Written {
        let fill = if m.card.state == State::Written { u64::MAX } else { 0 };
        Written(vec![fill; grid.blocks.div_ceil(64) as usize])
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
