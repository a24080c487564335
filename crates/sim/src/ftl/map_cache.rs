//! A map of pages that does not fit in memory: pieces of it are fetched and kept, least recently used out first.

use crate::model::{FtlKind, Model};
use crate::nand::SHIFT;
use crate::units::Divider;

const NONE: u32 = u32::MAX;

/// Which pieces of the map are in memory.
#[derive(Clone, Debug)]
pub(crate) struct MapCache {
    span: Divider,
    miss: u64,
    room: usize,
    held: usize,
    /// Neighbours in order of use, for each piece; a piece outside has `older[p] == p`.
    older: Vec<u32>,
    newer: Vec<u32>,
    oldest: u32,
    newest: u32,
}

impl MapCache {
    pub fn new(m: &Model) -> Option<MapCache> {
        let p = &m.ftl.page;
        if m.ftl.kind != FtlKind::PageMap || p.map_cache == 0 || p.map_miss == 0 {
            return None;
        }
        let pieces = m.card.capacity.div_ceil(p.map_span) + 1;
        Some(MapCache {
            span: Divider::new(p.map_span >> SHIFT),
            miss: p.map_miss,
            room: (p.map_cache / p.map_span) as usize,
            held: 0,
            older: (0..pieces as u32).collect(),
            newer: vec![NONE; pieces as usize],
            oldest: NONE,
            newest: NONE,
        })
    }

    /// Pieces fetched to have the map of `a..b` (sectors) in memory, and ns.
    pub fn fetch(&mut self, a: u64, b: u64) -> (u64, u64) {
        let fetched = (self.span.of(a)..=self.span.of(b - 1)).filter(|&p| !self.touch(p as u32)).count() as u64;
        (fetched, fetched * self.miss)
    }

    fn touch(&mut self, p: u32) -> bool {
        let hit = self.older[p as usize] != p;
        if hit {
            if self.newest == p {
                return true;
            }
            self.unlink(p);
        } else if self.held == self.room {
            let out = self.oldest;
            self.unlink(out);
            self.older[out as usize] = out;
        } else {
            self.held += 1;
        }
        (self.older[p as usize], self.newer[p as usize]) = (self.newest, NONE);
        match self.newest {
            NONE => self.oldest = p,
            n => self.newer[n as usize] = p,
        }
        self.newest = p;
        hit
    }

    fn unlink(&mut self, p: u32) {
        let (older, newer) = (self.older[p as usize], self.newer[p as usize]);
        match older {
            NONE => self.oldest = newer,
            o => self.newer[o as usize] = newer,
        }
        match newer {
            NONE => self.newest = older,
            n => self.older[n as usize] = older,
        }
    }
}
