//! Sectors in memory, the least recently used one gives way.

use super::store::Medium;
use crate::device::Result;
use std::collections::HashMap;

const NONE: u32 = u32::MAX;

struct Slot {
    sector: u64,
    dirty: bool,
    newer: u32,
    older: u32,
}

/// A cache of sectors. With room for none it holds nothing; its user then goes to the medium.
pub struct Sectors {
    room: usize,
    size: usize,
    slots: Vec<Slot>,
    bytes: Vec<u8>,
    place: HashMap<u64, u32>,
    newest: u32,
    oldest: u32,
    dirty: usize,
}

impl Sectors {
    /// Room for `room` sectors of `size` bytes.
    pub fn new(room: usize, size: u64) -> Sectors {
        let place = HashMap::new();
        Sectors { room, size: size as usize, slots: vec![], bytes: vec![], place, newest: NONE, oldest: NONE, dirty: 0 }
    }

    pub fn has_room(&self) -> bool {
        self.room > 0
    }

    fn unlink(&mut self, i: u32) {
        let Slot { newer, older, .. } = self.slots[i as usize];
        match newer {
            NONE => self.newest = older,
            n => self.slots[n as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            o => self.slots[o as usize].newer = newer,
        }
    }

    fn link(&mut self, i: u32) {
        let old = self.newest;
        let slot = &mut self.slots[i as usize];
        (slot.newer, slot.older) = (NONE, old);
        match old {
            NONE => self.oldest = i,
            o => self.slots[o as usize].newer = i,
        }
        self.newest = i;
    }

    fn find(&mut self, sector: u64) -> Option<u32> {
        // Tables are read four bytes at a time: the last sector is nearly always the next.
        if self.newest != NONE && self.slots[self.newest as usize].sector == sector {
            return Some(self.newest);
        }
        let i = *self.place.get(&sector)?;
        self.unlink(i);
        self.link(i);
        Some(i)
    }

    fn of(&mut self, i: u32) -> &mut [u8] {
        let at = i as usize * self.size;
        &mut self.bytes[at..at + self.size]
    }

    /// The bytes of a sector where it is here.
    pub fn peek(&mut self, sector: u64) -> Option<&[u8]> {
        let i = self.find(sector)?;
        Some(self.of(i))
    }

    /// The bytes of a sector, brought from the medium unless `blank` says that all of them will be replaced.
    pub fn get(&mut self, sector: u64, blank: bool, medium: &mut Medium) -> Result<&mut [u8]> {
        if let Some(i) = self.find(sector) {
            return Ok(self.of(i));
        }
        let i = if self.slots.len() < self.room {
            let i = self.slots.len() as u32;
            self.slots.push(Slot { sector: u64::MAX, dirty: false, newer: NONE, older: NONE });
            self.bytes.resize(self.bytes.len() + self.size, 0);
            i
        } else {
            let i = self.oldest;
            if self.slots[i as usize].dirty {
                let (at, s) = (i as usize * self.size, self.slots[i as usize].sector);
                medium.put(s, &self.bytes[at..at + self.size])?;
                self.slots[i as usize].dirty = false;
                self.dirty -= 1;
            }
            self.unlink(i);
            self.place.remove(&self.slots[i as usize].sector);
            i
        };
        self.slots[i as usize].sector = u64::MAX;
        // A slot whose sector could not be read stays in the list as the first to give way.
        let done = if blank { Ok(()) } else { medium.get(sector, self.of(i)) };
        if let Err(e) = done {
            self.link(i);
            return Err(e);
        }
        self.slots[i as usize].sector = sector;
        self.place.insert(sector, i);
        self.link(i);
        Ok(self.of(i))
    }

    /// The sector used last has been changed.
    pub fn mark(&mut self) {
        let slot = &mut self.slots[self.newest as usize];
        self.dirty += usize::from(!slot.dirty);
        slot.dirty = true;
    }

    /// A sector has been written past the cache: its copy here takes these bytes.
    pub fn update(&mut self, sector: u64, bytes: &[u8]) {
        if let Some(i) = self.place.get(&sector).copied() {
            self.of(i).copy_from_slice(bytes);
            let slot = &mut self.slots[i as usize];
            self.dirty -= usize::from(slot.dirty);
            slot.dirty = false;
        }
    }

    /// Writes all changed sectors in ascending order, neighbours in one request.
    pub fn flush(&mut self, medium: &mut Medium) -> Result<()> {
        if self.dirty == 0 {
            return Ok(());
        }
        let mut all: Vec<(u64, u32)> = self.slots.iter().enumerate().filter(|(_, s)| s.dirty).map(|(i, s)| (s.sector, i as u32)).collect();
        all.sort_unstable();
        let most = medium.most_sectors();
        let mut from = 0;
        let mut joined = vec![];
        while from < all.len() {
            let to = (from + 1..all.len().min(from + most)).find(|&k| all[k].0 != all[k - 1].0 + 1).unwrap_or(all.len().min(from + most));
            joined.clear();
            for &(_, i) in &all[from..to] {
                joined.extend_from_slice(&self.bytes[i as usize * self.size..(i as usize + 1) * self.size]);
            }
            medium.put(all[from].0, &joined)?;
            for &(_, i) in &all[from..to] {
                self.slots[i as usize].dirty = false;
                self.dirty -= 1;
            }
            from = to;
        }
        Ok(())
    }

    /// Forgets everything; what is changed must have been flushed.
    pub fn clear(&mut self) {
        *self = Sectors::new(self.room, self.size as u64);
    }
}
