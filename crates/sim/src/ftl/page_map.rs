//! Page mapping: a map of every unit, one write stream, and greedy garbage collection of the block with the fewest valid
//! units. Both maps hold differences, so that a card filled once from start to end is all zeros and costs no time to make.

use super::WriteCost;
use crate::counters::Counters;
use crate::model::{Model, State};
use crate::nand::SHIFT;
use crate::units::Divider;

const NONE: u32 = u32::MAX;
/// In the map: nothing there. A difference that no card of at most 2^31 units can have.
const HOLE: u32 = 1 << 31;

#[derive(Clone, Debug)]
pub(crate) struct PageMap {
    unit: Divider,
    /// Physical minus logical unit.
    physical: Vec<u32>,
    /// Logical minus physical unit; only meaningful where `valid` says so.
    logical: Vec<u32>,
    /// One bit a physical unit.
    valid: Vec<u64>,
    /// Valid units of each block.
    count: Vec<u32>,
    /// Lists of full blocks by their number of valid units.
    head: Vec<u32>,
    prev: Vec<u32>,
    next: Vec<u32>,
    lowest: u32,
    free: Vec<u32>,
    reserve: usize,
    block_units: u32,
    /// The block being filled, and how far.
    active: u32,
    fill: u32,
    /// Map units in a write unit, for costs: (map units, write units).
    scale: (u64, u64),
}

impl PageMap {
    pub fn new(m: &Model) -> PageMap {
        let (n, p) = (&m.nand, &m.ftl.page);
        let logical = m.card.capacity.div_ceil(p.unit) as u32;
        let block_units = (n.erase_block / p.unit) as u32;
        let spare = (m.card.capacity as f64 * p.over_provisioning) as u64 / n.erase_block;
        let data_blocks = logical.div_ceil(block_units);
        let blocks = data_blocks + spare as u32;
        let full = m.card.state == State::Written;
        let units = blocks as usize * block_units as usize;
        let mut map = PageMap {
            unit: Divider::new(p.unit >> SHIFT),
            physical: vec![if full { 0 } else { HOLE }; logical as usize],
            logical: vec![0; units],
            valid: vec![0; units.div_ceil(64)],
            count: vec![0; blocks as usize],
            head: vec![NONE; block_units as usize + 1],
            prev: vec![NONE; blocks as usize],
            next: vec![NONE; blocks as usize],
            lowest: block_units,
            free: (if full { data_blocks } else { 0 }..blocks).rev().collect(),
            reserve: p.reserve as usize,
            block_units,
            active: 0,
            fill: 0,
            scale: (p.unit, n.write_unit),
        };
        if full {
            let (words, rest) = (logical as usize / 64, logical % 64);
            map.valid[..words].fill(u64::MAX);
            if rest > 0 {
                map.valid[words] = (1 << rest) - 1;
            }
            for b in 0..data_blocks {
                map.count[b as usize] = block_units.min(logical - b * block_units);
                map.link(b);
            }
        }
        map.active = map.free.pop().unwrap_or(0);
        map
    }

    pub fn any(&self, a: u64, b: u64) -> bool {
        (self.unit.of(a)..=self.unit.of(b - 1)).any(|u| self.physical.get(u as usize).is_some_and(|&p| p != HOLE))
    }

    pub fn discard(&mut self, a: u64, b: u64) {
        let size = self.unit.by();
        for u in a.div_ceil(size)..(b / size).min(self.physical.len() as u64) {
            self.drop_unit(u as u32);
        }
    }

    /// ns of the collections this write sets off.
    #[inline]
    pub fn write(&mut self, cost: &WriteCost, counters: &mut Counters, a: u64, b: u64) -> u64 {
        let (mut copies, mut erases) = (0u64, 0u64);
        let end = self.physical.len() as u64;
        for u in self.unit.of(a)..(self.unit.of(b - 1) + 1).min(end) {
            self.drop_unit(u as u32);
            if self.fill == self.block_units {
                while self.free.len() <= self.reserve {
                    copies += self.collect();
                    erases += 1;
                }
                if self.fill == self.block_units {
                    self.take();
                }
            }
            self.put(u as u32);
        }
        if erases == 0 {
            return 0;
        }
        counters.collections += erases;
        counters.erases += erases;
        let copied = (copies * self.scale.0).div_ceil(self.scale.1);
        counters.units_copied += copied;
        copies * cost.copy * self.scale.0 / self.scale.1 + erases * cost.erase
    }

    #[inline]
    fn drop_unit(&mut self, u: u32) {
        let d = self.physical[u as usize];
        if d == HOLE {
            return;
        }
        self.physical[u as usize] = HOLE;
        let p = d.wrapping_add(u);
        self.valid[p as usize / 64] &= !(1 << (p % 64));
        let b = p / self.block_units;
        if b == self.active {
            self.count[b as usize] -= 1;
        } else {
            self.unlink(b);
            self.count[b as usize] -= 1;
            self.link(b);
        }
    }

    #[inline]
    fn put(&mut self, u: u32) {
        let p = self.active * self.block_units + self.fill;
        self.fill += 1;
        self.count[self.active as usize] += 1;
        self.physical[u as usize] = p.wrapping_sub(u);
        self.logical[p as usize] = u.wrapping_sub(p);
        self.valid[p as usize / 64] |= 1 << (p % 64);
    }

    /// The active block is full: the next free one takes its place.
    fn take(&mut self) {
        self.link(self.active);
        let Some(b) = self.free.pop() else { unreachable!("collection keeps a reserve") };
        self.active = b;
        self.fill = 0;
    }

    /// Empties the block with the fewest valid units; returns how many had to be copied.
    fn collect(&mut self) -> u64 {
        while self.head[self.lowest as usize] == NONE {
            self.lowest += 1;
        }
        let victim = self.head[self.lowest as usize];
        self.unlink(victim);
        let copied = u64::from(self.count[victim as usize]);
        let (from, to) = (victim * self.block_units, (victim + 1) * self.block_units);
        for p in from..to {
            if self.valid[p as usize / 64] >> (p % 64) & 1 != 0 {
                self.valid[p as usize / 64] &= !(1 << (p % 64));
                if self.fill == self.block_units {
                    self.take();
                }
                self.put(self.logical[p as usize].wrapping_add(p));
            }
        }
        self.count[victim as usize] = 0;
        self.free.push(victim);
        copied
    }

    #[inline]
    fn link(&mut self, b: u32) {
        let k = self.count[b as usize];
        let old = self.head[k as usize];
        self.next[b as usize] = old;
        self.prev[b as usize] = NONE;
        if old != NONE {
            self.prev[old as usize] = b;
        }
        self.head[k as usize] = b;
        self.lowest = self.lowest.min(k);
    }

    #[inline]
    fn unlink(&mut self, b: u32) {
        let (prev, next) = (self.prev[b as usize], self.next[b as usize]);
        if prev == NONE {
            self.head[self.count[b as usize] as usize] = next;
        } else {
            self.next[prev as usize] = next;
        }
        if next != NONE {
            self.prev[next as usize] = prev;
        }
    }
}
