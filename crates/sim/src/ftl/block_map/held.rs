//! What erase blocks hold, where a merge copies that only.

use crate::ftl::bits;
use crate::model::{Copies, Model, State};
use std::collections::HashMap;

/// One bit a unit for each erase block that changed; the others hold all or nothing.
#[derive(Clone, Debug)]
pub(super) struct Held {
    changed: HashMap<u32, Box<[u64]>>,
    full: bool,
    units: u32,
    /// What was merged counts as held whole.
    blocks: bool,
}

impl Held {
    pub fn new(m: &Model) -> Option<Held> {
        let units = (m.nand.erase_block / m.nand.write_unit) as u32;
        let (full, blocks) = (m.card.state == State::Written, m.ftl.block.copies == Copies::Blocks);
        (m.ftl.block.copies != Copies::All).then(|| Held { changed: HashMap::new(), full, units, blocks })
    }

    fn of(&mut self, au: u32) -> &mut [u64] {
        let (units, full) = (self.units, self.full);
        self.changed.entry(au).or_insert_with(|| {
            let mut bits = vec![0; (units as usize).div_ceil(64)].into_boxed_slice();
            if full {
                bits::set(&mut bits, 0..units);
            }
            bits
        })
    }

    /// Units that a merge copies: those held that `log` (one bit a unit) lacks, of the spans that it touches, or all of both; and whether
    /// there is a block to erase. All of them are held from then on.
    pub fn merge(&mut self, au: u32, log: &[u64], span: u32, whole: bool) -> (u32, bool) {
        let (units, blocks) = (self.units, self.blocks);
        let held = self.of(au);
        let has = |bits: &[u64], u: u32| bits[u as usize / 64] >> (u % 64) & 1 != 0;
        let old = held.iter().any(|w| *w != 0);
        let mut copies = 0;
        for from in (0..units).step_by(span as usize) {
            let part = from..(from + span).min(units);
            if whole || part.clone().any(|u| has(log, u)) {
                copies += part.filter(|&u| if whole { has(held, u) || has(log, u) } else { has(held, u) && !has(log, u) }).count() as u32;
            }
        }
        if blocks {
            bits::set(held, 0..units);
        } else {
            held.iter_mut().zip(log).for_each(|(h, l)| *h |= l);
        }
        (copies, old)
    }

    /// Units held of these.
    pub fn count(&mut self, au: u32, from: u32, to: u32) -> u32 {
        let held = self.of(au);
        (from..to).filter(|&u| held[u as usize / 64] >> (u % 64) & 1 != 0).count() as u32
    }

    /// All of it is written; whether there was anything before.
    pub fn fill(&mut self, au: u32) -> bool {
        let units = self.units;
        let held = self.of(au);
        let old = held.iter().any(|w| *w != 0);
        bits::set(held, 0..units);
        old
    }

    /// Nothing is held any more.
    pub fn clear(&mut self, au: u32) {
        self.of(au).fill(0);
    }
}
