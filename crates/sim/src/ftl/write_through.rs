//! No log at all: the erase block is rewritten at once, at the end of each write command (C13) or whenever the write
//! reaches a boundary of a small buffer (C14). A zone at the start may be programmed without that (C18).
//!
//! Where the rewrite comes at the end of the command, the card knows which units of a block are still erased, and programs
//! those in place: erased flash needs no rewrite (F10).

use super::WriteCost;
use super::bits::{any, ones, words};
use crate::account::Event;
use crate::counters::Counters;
use crate::model::{Model, State};
use crate::nand::{Grid, SHIFT};
use crate::units::Divider;
use crate::wear::Wear;
use std::ops::Range;

#[derive(Clone, Debug)]
pub(crate) struct WriteThrough {
    /// Sectors of the buffer; None = the whole command.
    buffer: Option<Divider>,
    /// Write units of an erase block.
    units: u64,
    fat: u64,
    /// Where the part in the buffer ends; 0 = the buffer is empty.
    pending: u64,
    /// One bit a write unit: it was programmed since its block was erased; and: it holds data.
    programmed: Vec<u64>,
    valid: Vec<u64>,
    pub wear: Option<Box<Wear>>,
    /// The blocks of the next writes are announced: each is a rewrite of the erase blocks it touches, the buffer is passed by.
    pub ahead: bool,
}

impl WriteThrough {
    pub fn new(m: &Model, grid: &Grid, seed: u64) -> WriteThrough {
        let t = &m.ftl.through;
        let units = if t.buffer > 0 { 0 } else { grid.blocks * (m.nand.erase_block / m.nand.write_unit) };
        let fill = if m.card.state == State::Written { u64::MAX } else { 0 };
        let words = vec![fill; units.div_ceil(64) as usize];
        WriteThrough {
            programmed: words.clone(),
            valid: words,
            buffer: (t.buffer > 0).then(|| Divider::new(t.buffer >> SHIFT)),
            units: m.nand.erase_block / m.nand.write_unit,
            fat: if t.fat_zone == 0 { 0 } else { grid.place(t.fat_zone >> SHIFT) },
            pending: 0,
            wear: Wear::new(m, grid.blocks, None, seed),
            ahead: false,
        }
    }

    /// The boundaries at which a full buffer is written; None where the end of the command rules.
    pub fn boundary(&self) -> Option<&Divider> {
        self.buffer.as_ref()
    }

    pub fn write(&mut self, grid: &Grid, cost: &WriteCost, counters: &mut Counters, a: u64, b: u64) -> u64 {
        let a = a.max(self.fat);
        if a >= b {
            return 0;
        }
        let (first, last) = (grid.unit.of(a), grid.unit.of(b - 1));
        let mut moved = 0;
        let (rewrites, copies) = match self.buffer {
            None => (grid.block.of(a)..=grid.block.of(b - 1)).fold((0, 0), |(rewrites, copies), block| {
                let all = block * self.units..(block + 1) * self.units;
                let new = first.max(all.start)..(last + 1).min(all.end);
                let (r, c) = self.block(all, new);
                moved += if r > 0 { self.renew(block) } else { 0 };
                (rewrites + r, copies + c)
            }),
            // What stays within the buffer waits there, announced or not.
            Some(d) if self.ahead && d.of(b) > d.of(a) => {
                let out = u64::from(self.pending != 0 && self.pending != a);
                self.pending = 0;
                let blocks = grid.block.of(a)..=grid.block.of(b - 1);
                if self.wear.is_some() {
                    moved += blocks.clone().map(|k| self.renew(k)).sum::<u64>();
                }
                let rewrites = out + blocks.count() as u64;
                (rewrites, (rewrites * self.units).saturating_sub(last - first + 1))
            }
            Some(d) => {
                // What does not follow on turns out the buffer first; then each boundary reached is a rewrite.
                let out = u64::from(self.pending != 0 && self.pending != a);
                if self.wear.is_some() {
                    moved += if out > 0 { self.renew(grid.block.of(self.pending - 1)) } else { 0 };
                    moved += (d.of(a) + 1..=d.of(b)).map(|k| self.renew(grid.block.of(k * d.by() - 1))).sum::<u64>();
                }
                self.pending = if d.of(b) * d.by() == b { 0 } else { b };
                let rewrites = out + d.of(b) - d.of(a);
                (rewrites, (rewrites * self.units).saturating_sub(last - first + 1))
            }
        };
        let copies = copies + moved * self.units;
        counters.merges_full += rewrites;
        counters.erases += rewrites + moved;
        counters.units_copied += copies;
        counters.note(Event::Copy, copies);
        counters.note(Event::Erase, rewrites + moved);
        copies * cost.copy + (rewrites + moved) * cost.erase
    }

    /// The block wears; returns how many blocks had to be moved for levelling.
    fn renew(&mut self, block: u64) -> u64 {
        self.wear.as_mut().map_or(0, |w| w.renew(block as u32))
    }

    /// The units `new` of the block `all` are written; whether it had to be rewritten, and how many units were copied.
    fn block(&mut self, all: Range<u64>, new: Range<u64>) -> (u64, u64) {
        let rewrite = any(&self.programmed, new.clone());
        let mut copies = 0;
        if rewrite {
            copies = ones(&self.valid, all.clone()) - ones(&self.valid, new.clone());
            words(all).for_each(|(i, mask)| self.programmed[i] = self.programmed[i] & !mask | self.valid[i] & mask);
        }
        for (i, mask) in words(new) {
            self.programmed[i] |= mask;
            self.valid[i] |= mask;
        }
        (u64::from(rewrite), copies)
    }

    /// The places `a..b` hold nothing any more; blocks that then hold nothing at all are erased.
    pub fn discard(&mut self, grid: &Grid, a: u64, b: u64) {
        if self.buffer.is_some() {
            return;
        }
        let by = grid.unit.by();
        let units = a.div_ceil(by)..b / by;
        if units.is_empty() {
            return;
        }
        words(units.clone()).for_each(|(i, mask)| self.valid[i] &= !mask);
        for block in units.start / self.units..=(units.end - 1) / self.units {
            let all = block * self.units..(block + 1) * self.units;
            if !any(&self.valid, all.clone()) {
                words(all).for_each(|(i, mask)| self.programmed[i] &= !mask);
            }
        }
    }
}
