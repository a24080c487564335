//! Garbage collection: which block is emptied, when, and what that costs.

use super::*;

impl PageMap {
    /// Collects while the card rests for `ns`; returns ns by which it overruns.
    pub fn rest(&mut self, cost: &WriteCost, counters: &mut Counters, ns: u64) -> u64 {
        if self.when == GcWhen::Foreground || ns <= self.idle {
            return 0;
        }
        let mut left = ns - self.idle + self.credit;
        self.credit = 0;
        while self.free.len() < self.goal && left > 0 && self.worth() {
            if self.when == GcWhen::Preemptible {
                // What a collection will take is known beforehand only by its victim; unfinished work is saved up.
                let victim = self.victim() as usize;
                let need = self.copying(cost, u64::from(self.count[victim])) + cost.erase;
                if need > left {
                    self.credit = left;
                    return 0;
                }
            }
            let (copies, erases) = self.collect();
            let used = self.bill(cost, counters, copies, erases);
            if used > left {
                return used - left;
            }
            left -= used;
        }
        0
    }

    /// Whether a collection now would gain at least an eighth of a block.
    pub(super) fn worth(&mut self) -> bool {
        let lowest = (self.lowest..self.block_units).find(|&k| self.head[k as usize] != NONE);
        lowest.is_some_and(|k| k <= self.block_units / 8 * 7) && self.victim() != NONE
    }

    /// The block to be emptied next. It stays a candidate.
    pub(super) fn victim(&mut self) -> u32 {
        while self.lowest < self.block_units && self.head[self.lowest as usize] == NONE {
            self.lowest += 1;
        }
        let greedy = self.head[self.lowest as usize];
        match self.gc {
            Gc::Greedy => greedy,
            Gc::Fifo => {
                while let Some(&(b, at)) = self.queue.front() {
                    if self.filled[b as usize] == at {
                        return b;
                    }
                    self.queue.pop_front();
                }
                greedy
            }
            Gc::DChoice => {
                let mut best = NONE;
                let mut tries = 0;
                let mut found = 0;
                while found < self.choices && tries < 8 * self.choices {
                    tries += 1;
                    let b = self.rng.below(self.filled.len() as u64) as u32;
                    if self.filled[b as usize] == 0 {
                        continue;
                    }
                    found += 1;
                    if best == NONE || self.count[b as usize] < self.count[best as usize] {
                        best = b;
                    }
                }
                if best == NONE || self.count[best as usize] == self.block_units { greedy } else { best }
            }
            Gc::CostBenefit => {
                // Rosenblum and Ousterhout: free share times age, over the cost of reading and writing what is valid.
                let score = |b: usize| {
                    let valid = u128::from(self.count[b]);
                    u128::from(self.block_units) * u128::from(self.clock - self.filled[b] + 1)
                        - valid * u128::from(self.clock - self.filled[b] + 1)
                };
                let better = |a: usize, b: usize| score(a) * u128::from(self.count[b] + 1) > score(b) * u128::from(self.count[a] + 1);
                let full = (0..self.filled.len()).filter(|&b| self.filled[b] != 0);
                full.reduce(|a, b| if better(b, a) { b } else { a }).map_or(greedy, |b| b as u32)
            }
        }
    }

    /// Empties a block; returns how many units had to be copied and how many blocks were erased.
    pub(super) fn collect(&mut self) -> (u64, u64) {
        let victim = self.victim();
        let mut copied = self.empty(victim);
        let mut erases = 1;
        if self.wear.as_mut().is_some_and(|w| w.move_due()) {
            let wear = self.wear.as_ref().map(|w| &w.erases);
            let least = (0..self.filled.len()).filter(|&b| self.filled[b] != 0).min_by_key(|&b| wear.map_or(0, |e| e[b]));
            if let Some(b) = least {
                copied += self.empty(b as u32);
                erases += 1;
            }
        }
        (copied, erases)
    }

    pub(super) fn empty(&mut self, victim: u32) -> u64 {
        self.unlink(victim);
        self.filled[victim as usize] = 0;
        let copied = u64::from(self.count[victim as usize]);
        let (from, to) = (victim * self.block_units, (victim + 1) * self.block_units);
        let mut start = self.active * self.block_units + self.fill;
        let (mut dest, mut room) = (start, self.block_units - self.fill);
        for word in from / 64..to.div_ceil(64) {
            // Blocks need not begin and end at a word.
            let low = from.saturating_sub(word * 64);
            let high = (word * 64 + 64).saturating_sub(to);
            let mask = u64::MAX << low & u64::MAX >> high;
            let mut bits = self.valid[word as usize] & mask;
            self.valid[word as usize] &= !mask;
            while bits != 0 {
                let p = word * 64 + bits.trailing_zeros();
                bits &= bits - 1;
                if room == 0 {
                    self.seal(start, dest);
                    self.take();
                    start = self.active * self.block_units;
                    (dest, room) = (start, self.block_units);
                }
                let u = self.logical[p as usize].wrapping_add(p);
                self.physical[u as usize] = dest.wrapping_sub(u);
                self.logical[dest as usize] = u.wrapping_sub(dest);
                dest += 1;
                room -= 1;
            }
        }
        self.seal(start, dest);
        self.count[victim as usize] = 0;
        // A block that has given out is used on where there is no other one.
        if self.wear.as_mut().is_none_or(|w| w.erase(victim)) || self.free.is_empty() {
            self.free.push_back(victim);
        }
        copied
    }
}
