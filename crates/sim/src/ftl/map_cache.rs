//! A map of pages that does not fit in memory: pieces of it are fetched and kept, least recently used out first; those that writes changed are saved
//! before they give way (DFTL, Gupta et al. 2009).

use crate::model::{FtlKind, Model};
use crate::nand::SHIFT;
use crate::units::Divider;

const NONE: u32 = u32::MAX;

/// Which pieces of the map are in memory.
#[derive(Clone, Debug)]
pub(crate) struct MapCache {
    span: Divider,
    miss: u64,
    save: u64,
    room: usize,
    held: usize,
    /// Neighbours in order of use, for each piece; a piece outside has `older[p] == p`.
    older: Vec<u32>,
    newer: Vec<u32>,
    /// Whether writes changed a piece that is held.
    changed: Vec<bool>,
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
            save: p.map_save,
            room: (p.map_cache / p.map_span) as usize,
            held: 0,
            older: (0..pieces as u32).collect(),
            newer: vec![NONE; pieces as usize],
            changed: vec![false; pieces as usize],
            oldest: NONE,
            newest: NONE,
        })
    }

    /// Pieces fetched to have the map of `a..b` (sectors) in memory, those saved to make room, and ns. A write changes them.
    pub fn fetch(&mut self, a: u64, b: u64, write: bool) -> (u64, u64, u64) {
        let (mut fetched, mut saved) = (0, 0);
        for p in self.span.of(a)..=self.span.of(b - 1) {
            let (hit, out) = self.touch(p as u32);
            self.changed[p as usize] |= write;
            fetched += u64::from(!hit);
            saved += u64::from(out.is_some_and(|out| std::mem::take(&mut self.changed[out as usize])));
        }
        (fetched, saved, fetched * self.miss + saved * self.save)
    }

    /// Whether a piece was in memory, and the one that gave way to it.
    fn touch(&mut self, p: u32) -> (bool, Option<u32>) {
        let (hit, mut gave_way) = (self.older[p as usize] != p, None);
        if hit {
            if self.newest == p {
                return (true, None);
            }
            self.unlink(p);
        } else if self.held == self.room {
            let out = self.oldest;
            self.unlink(out);
            self.older[out as usize] = out;
            gave_way = Some(out);
        } else {
            self.held += 1;
        }
        (self.older[p as usize], self.newer[p as usize]) = (self.newest, NONE);
        match self.newest {
            NONE => self.oldest = p,
            n => self.newer[n as usize] = p,
        }
        self.newest = p;
        (hit, gave_way)
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
