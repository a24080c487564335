//! Random cards: models drawn from the whole family, common and unusual ones, for calibration. The draw is the same on
//! every machine; a model says its own truth, so a thousand of them judge a method.

use crate::model::*;
use crate::rng::Rng;
use crate::units::{GIB, KIB, MIB};

const US: u64 = 1000;
const MS: u64 = 1_000_000;

/// A card drawn from the whole family, with the noise of its host.
pub fn card(seed: u64) -> Model {
    let mut d = Draw(Rng::new(seed, 4));
    let mut m = Model::blank();
    m.name = format!("random-{seed}");
    m.about = "drawn at random".to_string();
    d.geometry(&mut m);
    d.timing(&mut m);
    d.ftl(&mut m);
    d.habits(&mut m);
    d.noise(&mut m);
    m.settle();
    m
}

/// The same card without anything left to chance outside its flash: no jitter, no tail, no stalls.
pub fn quiet(mut m: Model) -> Model {
    (m.host.jitter, m.host.tail, m.host.tail_every, m.host.tail_cap) = (0, 0, 0, 0);
    m.stall.clear();
    m
}

pub(crate) struct Draw(pub(crate) Rng);

impl Draw {
    pub(crate) fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.0.below(all.len() as u64) as usize]
    }

    /// True in `percent` of the draws.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.0.below(100) < percent
    }

    /// Evenly spread over the orders of magnitude from `low` to `high`, by halving and doubling.
    pub(crate) fn spread(&mut self, low: u64, high: u64) -> u64 {
        let octaves = (high / low.max(1)).ilog2() as u64;
        let base = low << self.0.below(octaves + 1);
        (base + self.0.below(base.max(1))).min(high)
    }

    fn geometry(&mut self, m: &mut Model) {
        let n = &mut m.nand;
        n.page = self.of(&[4, 8, 8, 16, 16, 32]) * KIB;
        let shape = self.0.below(100);
        let planes = if (60..80).contains(&shape) { self.of(&[1, 2, 3, 3]) } else { self.of(&[1, 2, 2, 4]) };
        n.access_unit = n.page * planes;
        n.erase_block = match shape {
            // 2^k, most often 4 MiB, as declared by most cards.
            0..60 => self.of(&[MIB, 2 * MIB, 4 * MIB, 4 * MIB, 4 * MIB, 8 * MIB, 8 * MIB, 16 * MIB, 32 * MIB, 64 * MIB]),
            // 3 * 2^k: TLC.
            60..80 => 3 * self.of(&[512 * KIB, MIB, 2 * MIB, 4 * MIB, 4 * MIB, 8 * MIB, 16 * MIB]),
            // Odd, like the stick with 4128 KiB: a power of two and some spare units.
            _ => {
                let units = self.of(&[MIB, 2 * MIB, 4 * MIB, 8 * MIB]) / n.access_unit;
                (units + 1 + self.0.below((units / 16).max(1))) * n.access_unit
            }
        };
        n.write_unit = match self.0.below(10) {
            0..6 => n.access_unit,
            6..8 => n.page,
            _ if n.erase_block.is_multiple_of(2 * n.access_unit) => 2 * n.access_unit,
            _ => n.access_unit,
        };
        if self.chance(30) {
            n.erase_block_offset = self.0.below(n.erase_block / n.access_unit) * n.access_unit;
        }
        m.card.capacity = (self.spread(GIB, 128 * GIB) / MIB) * MIB;
        if self.chance(3) {
            m.card.sector = 4096;
        }
    }

    fn timing(&mut self, m: &mut Model) {
        let n = &mut m.nand;
        m.host.command = self.spread(20 * US, 400 * US);
        m.card.command = self.spread(30 * US, 300 * US);
        m.host.rate = self.spread(5_000_000, 160_000_000);
        if self.chance(85) {
            n.sense = self.spread(30 * US, 300 * US);
            n.next_page = if self.chance(70) { self.spread(8 * US, 80 * US).min(n.sense) } else { 0 };
            n.lookup = if self.chance(80) { self.spread(20 * US, 300 * US) } else { 0 };
        } else {
            // Reads that show nothing.
            m.card.command += 200 * US;
        }
        n.pipelined = self.chance(25);
        // Programming runs at 4 to 64 MB/s.
        n.program = n.write_unit * 1_000_000_000 / self.spread(4_000_000, 64_000_000);
        n.commit = self.spread(50 * US, 8 * MS);
        n.rest_rate = self.spread(5_000_000, 200_000_000);
        n.copy = n.program * (50 + self.0.below(100)) / 100;
        n.erase = self.spread(MS, 12 * MS);
    }

    fn ftl(&mut self, m: &mut Model) {
        match self.0.below(100) {
            0..70 => {
                m.ftl.kind = FtlKind::BlockMap;
                let b = &mut m.ftl.block;
                b.open_linear = match self.0.below(10) {
                    0..5 => 1 + self.0.below(8),
                    5..8 => 4 + self.0.below(12),
                    _ => self.spread(8, 64),
                };
                b.open_random = match self.0.below(10) {
                    0..3 => 0,
                    3..7 => b.open_linear,
                    _ => 1 + self.0.below(b.open_linear),
                };
                b.evict = self.of(&[Evict::Lru, Evict::Lru, Evict::Lru, Evict::Fifo, Evict::Random, Evict::Counter]);
                if b.evict == Evict::Counter {
                    b.groups = (1..=b.open_linear).rev().find(|g| b.open_linear.is_multiple_of(*g) && *g <= 5).unwrap_or(1);
                }
                if b.evict == Evict::Lru && self.chance(10) {
                    b.protect = self.spread(8, 128);
                    b.protected = self.of(&[0, b.open_linear / 2]);
                }
                b.close = self.spread(2 * MS, 60 * MS);
                if self.chance(15) {
                    b.close_random = b.close * 2;
                }
                if self.chance(15) && (m.nand.erase_block / m.nand.write_unit).is_multiple_of(4) {
                    b.merge_span = m.nand.erase_block / 4;
                }
                b.merge_random = self.of(&[MergeRandom::Rest, MergeRandom::Rest, MergeRandom::Whole]);
                if self.chance(25) {
                    b.fat_zone = self.of(&[512 * KIB, MIB, 4 * MIB, 8 * MIB, 16 * MIB]);
                }
                if self.chance(10) {
                    b.small_write = self.of(&[4, 8, 16]) * KIB;
                    b.small_log = self.of(&[2, 4, 16]) * m.nand.erase_block;
                }
            }
            84..93 => {
                m.ftl.kind = FtlKind::LogBlock;
                let l = &mut m.ftl.log;
                l.pool = self.spread(2, 32);
                // Mostly log blocks of one data block each; some cards share them, and have no number of open AUs.
                if self.chance(70) {
                    (l.group, l.per_group) = (1, 1);
                } else {
                    l.group = self.of(&[0, 4, 16]);
                    l.per_group = self.of(&[0, 2]).min(l.pool);
                    l.sequential = self.chance(70);
                }
                l.evict = self.of(&[Evict::Lru, Evict::Fifo]);
                l.close = self.spread(MS, 30 * MS);
                m.card.capacity = m.card.capacity.min(m.nand.write_unit << 22) / MIB * MIB;
                m.card.capacity = m.card.capacity.max(64 * m.nand.erase_block).div_ceil(MIB) * MIB;
            }
            93..96 => {
                m.ftl.kind = FtlKind::WriteThrough;
                m.ftl.through.buffer = self.of(&[0, 4 * KIB, 16 * KIB]);
                m.ftl.through.fat_zone = self.of(&[0, 0, 512 * KIB]);
            }
            70..84 => {
                m.ftl.kind = FtlKind::PageMap;
                m.nand.lookup = 0;
                m.ftl.page.over_provisioning = self.of(&[0.07, 0.07, 0.15, 0.28]);
                // A map of at most a few million entries keeps a thousand cards quick.
                m.ftl.page.unit = m.nand.write_unit;
                m.card.capacity = m.card.capacity.min(m.ftl.page.unit << 20) / MIB * MIB;
                m.card.capacity = m.card.capacity.max(64 * m.nand.erase_block).div_ceil(MIB) * MIB;
            }
            _ => m.ftl.kind = FtlKind::None,
        }
    }

    fn habits(&mut self, m: &mut Model) {
        if self.chance(30) {
            m.host.max_request = self.of(&[64, 120, 120, 128, 240, 512, 1024]) * KIB;
            m.host.split = self.of(&[0, 0, 50 * US]);
        }
        if self.chance(20) {
            m.card.read_ahead = self.of(&[16, 32, 64, 128]) * KIB;
        }
        m.card.combine = self.chance(20);
        if self.chance(15) {
            m.nand.unwritten = Unwritten::Flat;
            m.nand.unwritten_read = self.spread(10 * US, 200 * US);
            m.card.state = self.of(&[State::Written, State::Empty]);
        }
        if self.chance(10) && matches!(m.ftl.kind, FtlKind::BlockMap | FtlKind::PageMap) {
            let s = &mut m.slc;
            s.size = (self.spread(64 * MIB, 4 * GIB) / MIB * MIB).min(m.card.capacity / 4 / MIB * MIB);
            s.dynamic = self.chance(50);
            s.program = m.nand.program / 4;
            s.fold = m.nand.program / 8;
            s.full = self.of(&[SlcFull::Fold, SlcFull::Direct]);
            s.background = self.chance(80);
            s.idle = self.spread(50 * MS, 1000 * MS);
        }
        if self.chance(4) {
            m.card.cache = self.of(&[512 * KIB, MIB, 4 * MIB]);
            m.card.flush = self.spread(100 * US, 5 * MS);
        }
        if self.chance(4) {
            m.card.shortcut = self.of(&[Shortcut::Zeros, Shortcut::Ones, Shortcut::Both]);
        }
        if self.chance(3) {
            m.card.real_capacity = (m.card.capacity / 4).max(m.nand.erase_block) / MIB * MIB;
            m.card.beyond = self.of(&[Beyond::Wrap, Beyond::Drop]);
        }
    }

    fn noise(&mut self, m: &mut Model) {
        m.host.jitter = self.spread(US, 32 * US);
        if self.chance(70) {
            m.host.tail = self.spread(50 * US, 800 * US);
            m.host.tail_every = self.spread(50, 2000);
            m.host.tail_cap = m.host.tail * 100;
        }
        if self.chance(20) {
            let every = self.spread(8 * MIB, 256 * MIB);
            let time = self.spread(20 * MS, 250 * MS);
            m.stall.push(Stall { on: On::Write, time, every_bytes: every, every_commands: 0, random: self.chance(50) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_draw_is_a_valid_model() {
        let mut seen = BTreeSet::new();
        for seed in 0..3000 {
            let m = card(seed);
            let text = m.to_toml();
            let again = Model::parse(&text, &m.name).unwrap_or_else(|e| panic!("{e}\n{text}"));
            assert_eq!(again, m, "seed {seed}\n{text}");
            let t = m.truth();
            seen.insert(format!("{:?}", t.mapping));
            let odd = m.nand.erase_block >> m.nand.erase_block.trailing_zeros();
            seen.insert(match odd {
                1 => "2^k".to_string(),
                3 => "3*2^k".to_string(),
                _ => "odd".to_string(),
            });
            for (what, is) in [
                ("offset", t.erase_block_offset > 0),
                ("random 0", t.open_aus_random == Some(0)),
                ("fat", t.fat_zone > 0),
                ("split", m.host.max_request > 0),
                ("cache", m.card.read_ahead > 0),
                ("empty", m.card.state == State::Empty),
                ("fake", t.real_capacity < m.card.capacity),
                ("invisible", !t.read_boundary_visible),
                ("stall", !m.stall.is_empty()),
                ("64 open", t.open_aus_linear >= Some(48)),
                ("slc", t.slc_cache > 0),
                ("write cache", t.write_cache > 0),
                ("small log", m.ftl.block.small_log > 0),
            ] {
                if is {
                    seen.insert(what.to_string());
                }
            }
            assert!(quiet(m).stall.is_empty());
        }
        assert!(seen.len() >= 21, "the family is wide: {seen:?}");
    }

    #[test]
    fn a_seed_is_a_card() {
        assert_eq!(card(7), card(7));
        assert_ne!(card(7).to_toml(), card(8).to_toml().replace("random-8", "random-7"));
    }
}
