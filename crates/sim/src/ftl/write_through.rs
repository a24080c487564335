//! No log at all: the erase block is rewritten at once, at the end of each write command (C13) or whenever the write
//! reaches a boundary of a small buffer (C14). A zone at the start may be programmed without that (C18).

use super::WriteCost;
use crate::counters::Counters;
use crate::model::Model;
use crate::nand::{Grid, SHIFT};
use crate::units::Divider;
use crate::wear::Wear;

#[derive(Clone, Debug)]
pub(crate) struct WriteThrough {
    /// Sectors of the buffer; None = the whole command.
    buffer: Option<Divider>,
    /// Write units of an erase block.
    units: u64,
    fat: u64,
    /// Where the part in the buffer ends; 0 = the buffer is empty.
    pending: u64,
    pub wear: Option<Box<Wear>>,
}

impl WriteThrough {
    pub fn new(m: &Model, grid: &Grid, seed: u64) -> WriteThrough {
        let t = &m.ftl.through;
        WriteThrough {
            buffer: (t.buffer > 0).then(|| Divider::new(t.buffer >> SHIFT)),
            units: m.nand.erase_block / m.nand.write_unit,
            fat: if t.fat_zone == 0 { 0 } else { grid.place(t.fat_zone >> SHIFT) },
            pending: 0,
            wear: Wear::new(m, grid.blocks, None, seed),
        }
    }

    pub fn write(&mut self, grid: &Grid, cost: &WriteCost, counters: &mut Counters, a: u64, b: u64) -> u64 {
        let a = a.max(self.fat);
        if a >= b {
            return 0;
        }
        let (first, last) = (grid.block.of(a), grid.block.of(b - 1));
        let mut moved = 0;
        let rewrites = match self.buffer {
            None => {
                moved += (first..=last).map(|k| self.renew(k)).sum::<u64>();
                last - first + 1
            }
            Some(d) => {
                // What does not follow on turns out the buffer first; then each boundary reached is a rewrite.
                let out = u64::from(self.pending != 0 && self.pending != a);
                if self.wear.is_some() {
                    moved += if out > 0 { self.renew(grid.block.of(self.pending - 1)) } else { 0 };
                    moved += (d.of(a) + 1..=d.of(b)).map(|k| self.renew(grid.block.of(k * d.by() - 1))).sum::<u64>();
                }
                self.pending = if d.of(b) * d.by() == b { 0 } else { b };
                out + d.of(b) - d.of(a)
            }
        };
        let copies = (rewrites * self.units).saturating_sub(grid.unit.of(b - 1) - grid.unit.of(a) + 1);
        let copies = copies + moved * self.units;
        counters.merges_full += rewrites;
        counters.erases += rewrites + moved;
        counters.units_copied += copies;
        copies * cost.copy + (rewrites + moved) * cost.erase
    }

    /// The block wears; returns how many blocks had to be moved for levelling.
    fn renew(&mut self, block: u64) -> u64 {
        self.wear.as_mut().map_or(0, |w| w.renew(block as u32))
    }
}
