//! A log of its own for small writes.

use super::*;

#[derive(Clone, Debug)]
pub(super) struct SmallLog {
    /// Sectors up to which a write is small.
    pub(super) limit: u64,
    /// Units it holds, and how many are used.
    room: u64,
    used: u64,
    /// AUs with data in it.
    aus: Vec<u32>,
}

impl SmallLog {
    pub fn new(m: &Model) -> Option<SmallLog> {
        let b = &m.ftl.block;
        let room = b.small_log / m.nand.write_unit;
        (b.small_log > 0).then(|| SmallLog { limit: b.small_write >> SHIFT, room, used: 0, aus: Vec::new() })
    }
}

impl BlockMap {
    /// A small write goes to its own log; when that is full, every AU with data in it is merged.
    pub(super) fn small(&mut self, grid: &Grid, cost: &WriteCost, counters: &mut Counters, a: u64, b: u64) -> u64 {
        self.written.set(grid, a, b);
        let Some(small) = &mut self.small else { return 0 };
        let units = grid.unit.of(b - 1) - grid.unit.of(a) + 1;
        let mut ns = 0;
        if small.used + units > small.room {
            small.used = 0;
            for au in std::mem::take(&mut small.aus) {
                counters.merges_full += 1;
                counters.units_copied += u64::from(self.units);
                counters.note(Event::Copy, u64::from(self.units));
                counters.note(Event::Close, 1);
                ns += u64::from(self.units) * cost.copy + self.close + self.erase(cost, counters, au);
            }
        }
        if let Some(small) = &mut self.small {
            small.used += units;
            let au = grid.block.of(a) as u32;
            if !small.aus.contains(&au) {
                small.aus.push(au);
            }
        }
        ns
    }
}
