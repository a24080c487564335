//! Wear: erasures of each physical block, blocks that give out, moving of blocks that hardly wear, reads that disturb.

use crate::model::{FtlKind, Model};
use crate::rng::Rng;
use std::collections::VecDeque;

/// The physical blocks of a card and where the logical ones lie.
#[derive(Clone, Debug)]
pub(crate) struct Wear {
    /// Erasures of each physical block.
    pub erases: Vec<u32>,
    /// Physical block of each logical one (not page-mapped).
    place: Vec<u32>,
    spare: VecDeque<u32>,
    reads: Vec<u32>,
    endurance: u64,
    spread: u64,
    salt: u64,
    static_every: u64,
    since: u64,
    read_disturb: u64,
    /// Blocks given out.
    pub dead: u64,
    /// Blocks that may still give out before the card takes no more writes.
    pub left: i64,
}

impl Wear {
    /// None where the model says nothing about wear. `physical` counts the blocks of a page-mapped card.
    pub fn new(m: &Model, logical: u64, physical: Option<(u64, u64)>, seed: u64) -> Option<Box<Wear>> {
        let w = &m.wear;
        if *w == Default::default() {
            return None;
        }
        let (blocks, left) = match physical {
            Some((blocks, spare)) => (blocks, spare as i64 - w.bad as i64 - m.ftl.page.reserve as i64 - 1),
            None => (logical + w.spare.max(1), w.spare as i64 - w.bad as i64),
        };
        let mapped = m.ftl.kind != FtlKind::PageMap;
        Some(Box::new(Wear {
            erases: vec![0; blocks as usize],
            place: if mapped { (0..logical as u32).collect() } else { Vec::new() },
            spare: if mapped { (logical as u32..(blocks - w.bad.min(w.spare)) as u32).collect() } else { VecDeque::new() },
            reads: if w.read_disturb > 0 { vec![0; logical as usize] } else { Vec::new() },
            endurance: w.endurance,
            spread: w.spread,
            salt: Rng::new(seed, 6).next(),
            static_every: w.static_every,
            since: 0,
            read_disturb: w.read_disturb,
            dead: w.bad,
            left,
        }))
    }

    /// Erases a physical block; true if it stands it.
    pub fn erase(&mut self, physical: u32) -> bool {
        let n = &mut self.erases[physical as usize];
        *n += 1;
        self.since += 1;
        if self.endurance == 0 {
            return true;
        }
        // Each block has its own limit, known from its number alone.
        let wide = 2 * self.spread * self.endurance / 100;
        let limit = self.endurance - wide / 2 + Rng::new(self.salt, u64::from(physical)).below(wide + 1);
        let stands = u64::from(*n) < limit;
        if !stands {
            self.dead += 1;
            self.left -= 1;
        }
        stands
    }

    /// Whether it is time to move a block that hardly wears.
    pub fn move_due(&mut self) -> bool {
        let due = self.static_every > 0 && self.since >= self.static_every;
        if due {
            self.since = 0;
        }
        due
    }

    /// A logical block is written anew: it gets a spare block, and its old one is erased. Returns how many blocks had to
    /// be moved for levelling.
    pub fn renew(&mut self, logical: u32) -> u64 {
        self.exchange(logical);
        if !self.move_due() {
            return 0;
        }
        let least = (0..self.place.len()).min_by_key(|&l| self.erases[self.place[l] as usize]).unwrap_or(0);
        // The least worn block takes the place of the most worn spare one.
        let most = (0..self.spare.len()).max_by_key(|&i| self.erases[self.spare[i] as usize]).unwrap_or(0);
        if most < self.spare.len() {
            self.spare.swap(0, most);
        }
        self.exchange(least as u32);
        // Its own erasure is no reason for the next move.
        self.since = 0;
        1
    }

    /// Two logical blocks change places; nothing is erased.
    pub fn swap(&mut self, a: u32, b: u32) {
        self.place.swap(a as usize, b as usize);
    }

    fn exchange(&mut self, logical: u32) {
        let Some(fresh) = self.spare.pop_front() else { return };
        let old = std::mem::replace(&mut self.place[logical as usize], fresh);
        if self.erase(old) {
            self.spare.push_back(old);
        }
        if let Some(reads) = self.reads.get_mut(logical as usize) {
            *reads = 0;
        }
    }

    /// Counts a read of a logical block; true if it has to be rewritten now.
    pub fn read(&mut self, logical: u64) -> bool {
        let Some(n) = self.reads.get_mut(logical as usize) else { return false };
        *n += 1;
        let due = u64::from(*n) >= self.read_disturb;
        if due {
            *n = 0;
        }
        due
    }

    /// Whether the card can take no more writes.
    pub fn worn_out(&self) -> bool {
        self.left < 0 || (!self.place.is_empty() && self.spare.is_empty())
    }
}
