//! No log at all: the erase block is rewritten at once, at the end of each write command (C13) or whenever the write
//! reaches a boundary of a small buffer (C14). A zone at the start may be programmed without that (C18).

use super::WriteCost;
use crate::counters::Counters;
use crate::model::Model;
use crate::nand::{Grid, SHIFT};
use crate::units::Divider;

#[derive(Clone, Debug)]
pub(crate) struct WriteThrough {
    /// Sectors of the buffer; None = the whole command.
    buffer: Option<Divider>,
    /// Write units of an erase block.
    units: u64,
    fat: u64,
}

impl WriteThrough {
    pub fn new(m: &Model, grid: &Grid) -> WriteThrough {
        let t = &m.ftl.through;
        WriteThrough {
            buffer: (t.buffer > 0).then(|| Divider::new(t.buffer >> SHIFT)),
            units: m.nand.erase_block / m.nand.write_unit,
            fat: if t.fat_zone == 0 { 0 } else { grid.place(t.fat_zone >> SHIFT) },
        }
    }

    pub fn write(&mut self, grid: &Grid, cost: &WriteCost, counters: &mut Counters, a: u64, b: u64) -> u64 {
        let a = a.max(self.fat);
        if a >= b {
            return 0;
        }
        let blocks = grid.block.of(b - 1) - grid.block.of(a) + 1;
        // A buffer that ends inside a block rewrites the block of its own accord: as many rewrites as buffers, and one
        // more for each block boundary that is not a buffer boundary too.
        let rewrites = match self.buffer {
            None => blocks,
            Some(d) => (d.of(b - 1) - d.of(a) + 1).max(blocks),
        };
        let copies = rewrites * self.units - (grid.unit.of(b - 1) - grid.unit.of(a) + 1).min(rewrites * self.units);
        counters.merges_full += rewrites;
        counters.erases += rewrites;
        counters.units_copied += copies;
        copies * cost.copy + rewrites * cost.erase
    }
}
