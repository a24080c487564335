//! Page mapping: a map of every unit, one write stream, and garbage collection by one of several rules. Both maps hold differences, so that a card filled once from start to end is all zeros and costs no time to make.

mod collect;

use super::WriteCost;
use crate::account::Event;
use crate::card::AHEAD;
use crate::counters::Counters;
use crate::model::{Gc, GcWhen, Model, State};
use crate::nand::SHIFT;
use crate::rng::Rng;
use crate::units::Divider;
use crate::wear::Wear;
use std::collections::VecDeque;

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
    /// Erased blocks, the longest erased first: that alone levels the wear of busy blocks.
    free: VecDeque<u32>,
    reserve: usize,
    gc: Gc,
    choices: u64,
    when: GcWhen,
    idle: u64,
    goal: usize,
    /// ns of rest saved up for a collection that can be put off.
    credit: u64,
    /// When each full block was filled, in units written; 0 = it is not full.
    filled: Vec<u64>,
    /// Full blocks by age, for `fifo`; stale entries have another time.
    queue: VecDeque<(u32, u64)>,
    clock: u64,
    rng: Rng,
    pub wear: Option<Box<Wear>>,
    /// Logical units that hold data.
    pub mapped: u64,
    block_units: u32,
    /// The block being filled, and how far.
    active: u32,
    fill: u32,
    /// Map units in a write unit, for costs: (map units, write units).
    scale: (u64, u64),
}

impl PageMap {
    pub fn new(m: &Model, seed: u64) -> PageMap {
        let (n, p) = (&m.nand, &m.ftl.page);
        let logical = m.card.capacity.div_ceil(p.unit) as u32;
        let block_units = (n.erase_block / p.unit) as u32;
        let spare = (m.card.capacity as f64 * p.over_provisioning) as u64 / n.erase_block;
        let data_blocks = logical.div_ceil(block_units);
        let blocks = data_blocks + spare as u32;
        let bad = m.wear.bad as u32;
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
            free: (if full { data_blocks } else { 0 }..blocks - bad).collect(),
            reserve: p.reserve as usize,
            gc: p.gc,
            choices: p.choices,
            when: p.when,
            idle: p.idle,
            goal: p.goal as usize,
            credit: 0,
            filled: vec![0; blocks as usize],
            queue: VecDeque::new(),
            clock: 1,
            rng: Rng::new(seed, 7),
            wear: Wear::new(m, m.card.capacity.div_ceil(n.erase_block), Some((u64::from(blocks), spare)), seed),
            mapped: if full { u64::from(logical) } else { 0 },
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
                map.close(b);
            }
        }
        map.active = map.free.pop_front().unwrap_or(0);
        map
    }

    /// How many units hold data, of how many.
    pub fn share(&self) -> (u64, u64) {
        (self.mapped, self.physical.len() as u64)
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

    /// Looks up what writes at these sectors will look up, all at once.
    #[inline]
    pub fn foresee(&self, sectors: impl Iterator<Item = u64>) {
        let mut at = [0; AHEAD];
        for (at, sector) in at.iter_mut().zip(sectors) {
            let u = self.unit.of(sector) as u32;
            *at = self.physical.get(u as usize).map_or(0, |d| d.wrapping_add(u));
        }
        let sum = at.iter().fold(0, |sum, &p| sum ^ self.valid.get(p as usize / 64).unwrap_or(&0));
        std::hint::black_box(sum);
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
                    let (c, e) = self.collect();
                    copies += c;
                    erases += e;
                    if self.wear.as_ref().is_some_and(|w| w.worn_out()) {
                        break;
                    }
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
        counters.book(|l| {
            // A map unit may be a part of a write unit: what is no whole one comes as time.
            let (whole, part) = (copies * self.scale.0 / self.scale.1, copies * self.scale.0 % self.scale.1);
            l.now.add(Event::Copy, whole);
            l.now.add(Event::Late, (u128::from(part) * u128::from(cost.copy) / u128::from(self.scale.1)) as u64);
            l.now.add(Event::Erase, erases);
        });
        self.bill(cost, counters, copies, erases)
    }

    /// ns to copy map units.
    fn copying(&self, cost: &WriteCost, units: u64) -> u64 {
        (u128::from(units * cost.copy) * u128::from(self.scale.0) / u128::from(self.scale.1)) as u64
    }

    fn bill(&self, cost: &WriteCost, counters: &mut Counters, copies: u64, erases: u64) -> u64 {
        counters.collections += erases;
        counters.erases += erases;
        counters.units_copied += (copies * self.scale.0).div_ceil(self.scale.1);
        self.copying(cost, copies) + erases * cost.erase
    }

    #[inline]
    fn drop_unit(&mut self, u: u32) {
        let d = self.physical[u as usize];
        if d == HOLE {
            return;
        }
        self.physical[u as usize] = HOLE;
        self.mapped -= 1;
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
        self.mapped += 1;
        self.count[self.active as usize] += 1;
        self.physical[u as usize] = p.wrapping_sub(u);
        self.logical[p as usize] = u.wrapping_sub(p);
        self.valid[p as usize / 64] |= 1 << (p % 64);
    }

    /// A block is full: it becomes a candidate for collection.
    fn close(&mut self, b: u32) {
        self.link(b);
        self.clock += 1;
        self.filled[b as usize] = self.clock;
        if self.gc == Gc::Fifo {
            self.queue.push_back((b, self.clock));
        }
    }

    /// The active block is full: the next free one takes its place.
    fn take(&mut self) {
        self.close(self.active);
        let Some(b) = self.free.pop_front() else { unreachable!("collection keeps a reserve") };
        self.active = b;
        self.fill = 0;
    }

    /// The units `start..end` of the active block now hold data.
    fn seal(&mut self, start: u32, end: u32) {
        self.fill += end - start;
        self.count[self.active as usize] += end - start;
        let mut at = start;
        while at < end {
            let n = (64 - at % 64).min(end - at);
            self.valid[at as usize / 64] |= u64::MAX >> (64 - n) << (at % 64);
            at += n;
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nand::Grid;

    /// Both maps, the valid bits, the counts and the lists agree: the reverse map is what flash keeps beside each unit, so that
    /// every unit reads as last written.
    fn check(m: &PageMap, held: &[bool], what: &str) {
        let units = m.block_units;
        let mut count = vec![0; m.count.len()];
        for (u, held) in held.iter().enumerate() {
            let d = m.physical[u];
            assert_eq!(d != HOLE, *held, "{what}: unit {u}");
            if d != HOLE {
                let p = d.wrapping_add(u as u32);
                assert_eq!(m.logical[p as usize].wrapping_add(p), u as u32, "{what}: unit {u} lies elsewhere");
                assert!(m.valid[p as usize / 64] >> (p % 64) & 1 != 0, "{what}: unit {u} is not valid");
                count[(p / units) as usize] += 1;
            }
        }
        assert_eq!(m.valid.iter().map(|w| w.count_ones()).sum::<u32>(), count.iter().sum::<u32>(), "{what}: no other unit is valid");
        assert_eq!(m.count, count, "{what}");
        assert_eq!(m.mapped, u64::from(count.iter().sum::<u32>()), "{what}");
        let mut listed: Vec<u32> = m.free.iter().copied().chain([m.active]).collect();
        for (k, &head) in m.head.iter().enumerate() {
            let mut b = head;
            while b != NONE {
                assert_eq!(m.count[b as usize], k as u32, "{what}: block {b} is in the wrong list");
                listed.push(b);
                b = m.next[b as usize];
            }
        }
        listed.sort_unstable();
        assert!(listed.windows(2).all(|w| w[0] < w[1]), "{what}: a block is free and full at once");
        let dead = m.wear.as_ref().map_or(0, |w| w.dead) as usize;
        assert_eq!(listed.len() + dead, m.count.len(), "{what}: a block is lost");
        assert!(m.free.iter().all(|&b| m.count[b as usize] == 0), "{what}");
    }

    #[test]
    fn the_maps_agree_after_anything() {
        let mut rng = Rng::new(6, 6);
        let more =
            ["", "gc = \"fifo\"", "gc = \"d-choice\"\nchoices = 3", "gc = \"cost-benefit\"", "when = \"background\"\nidle = 0\ngoal = 5"];
        let wear = ["", "[wear]\nstatic_every = 3", "[wear]\nendurance = 60\nspread = 20\nbad = 1"];
        for case in 0..60usize {
            // Blocks of a number of units that is no multiple of 64, and capacities that end inside a block.
            let (units, blocks) = (1 + rng.below(150), 8 + rng.below(12));
            let capacity = (units * blocks - rng.below(units)).max(16) * 4096;
            let state = if case % 2 == 0 { "written" } else { "empty" };
            let text = format!(
                "name = \"t\"\n[card]\nstate = \"{state}\"\ncapacity = {capacity}\n[nand]\npage = \"4 KiB\"\nerase_block = {}\ncopy = 1000\nerase = 1000\n[ftl]\n\
                 kind = \"page-map\"\nover_provisioning = {}\n{}\n{}\n",
                units * 4096,
                0.9 + rng.below(100) as f64 / 100.0,
                more[case % 5],
                wear[case % 3]
            );
            let model = match Model::parse(&text, "t") {
                Ok(m) => m,
                Err(e) if e.to_string().contains("erase_block") => continue,
                Err(e) => panic!("{e}\n{text}"),
            };
            let (mut m, cost, mut k) = (PageMap::new(&model, 1), WriteCost::new(&model), Counters::default());
            let all = m.physical.len() as u64;
            let mut held = vec![state == "written"; all as usize];
            assert_eq!(Grid::new(&model).unit.by(), 8);
            for step in 0..800 {
                let a = rng.below(all);
                let most = if rng.below(8) == 0 { 40 } else { 3 };
                let b = (a + 1 + rng.below(most)).min(all);
                match rng.below(8) {
                    0 => {
                        m.discard(a * 8, b * 8);
                        held[a as usize..b as usize].fill(false);
                    }
                    1 => {
                        m.rest(&cost, &mut k, 50_000);
                    }
                    _ if m.wear.as_ref().is_some_and(|w| w.worn_out()) => {}
                    _ => {
                        m.write(&cost, &mut k, a * 8, b * 8);
                        held[a as usize..b as usize].fill(true);
                    }
                }
                if step % 16 == 0 || step > 780 {
                    check(&m, &held, &format!("case {case}, step {step}\n{text}"));
                }
            }
        }
    }
}
