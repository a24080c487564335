//! Moves clusters of files and directories on a FAT volume so that everything is whole at any moment.
//!
//! A move has four phases, each on the medium before the next begins:
//!
//! 1. the data is copied to free clusters;
//! 2. the table links the copies: to each other where their neighbours move, too, else into the old chain. Nothing leads to
//!    them yet;
//! 3. what leads to the first old cluster of each piece (a table entry or a directory entry, one sector each) leads to its copy;
//! 4. the old clusters become free.
//!
//! Each phase writes the first table, then its copies. After a cut the first table is right: every file has its content, old or
//! new place, and at worst some clusters belong to nothing and a copy of the table lags behind; `fsck` mends both without
//! touching a file.
//!
//! A directory moves alone, a cluster at a time. With its first cluster its own entry "." is copied changed, and the entries
//! ".." of the directories in it follow between phases 3 and 4; after a cut there one of them may name the old place, which
//! `fsck` mends, too, and which nobody follows to find a file.
//!
//! An entry of FAT12 may lie across two sectors (two of 1024 do), and a cut may leave a half of it. So such an entry is only
//! written while nothing leads to its cluster. Where it would have to change in phase 3, its cluster first moves out of the
//! way, and back afterwards. Where no other cluster is free for that, a cluster of something else changes places with it for a
//! while.

use crate::device::{Access, Device, Op};
use crate::units::MIB;
use crate::volume::{Result, VolumeError};
use nandscope_fat::{FatType, Mark, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// No owner.
pub const NONE: u32 = u32::MAX;

/// What moves: a file or a directory.
pub struct Item {
    /// Its clusters in order.
    pub chain: Vec<u32>,
    /// Where its directory entry lies, from the start of the volume; none for the root directory.
    pub entry: Option<u64>,
    pub directory: bool,
}

/// A volume whose clusters can be moved.
pub struct Mover<'a> {
    device: &'a mut dyn Device,
    base: u64,
    pub tree: Tree,
    pub items: Vec<Item>,
    /// Item and position in it of each cluster; [`NONE`] for free and bad clusters.
    pub owner: Vec<(u32, u32)>,
    pub free: BTreeSet<u32>,
    /// Bytes copied.
    pub moved: u64,
}

impl<'a> Mover<'a> {
    /// `items`: everything on the volume that has clusters.
    pub fn new(device: &'a mut dyn Device, base: u64, tree: Tree, items: Vec<Item>) -> Mover<'a> {
        let mut owner = vec![(NONE, 0); tree.table.len()];
        for (f, item) in items.iter().enumerate() {
            for (i, &c) in item.chain.iter().enumerate() {
                owner[c as usize] = (f as u32, i as u32);
            }
        }
        let free = tree.free_runs().iter().flat_map(|&(c, n)| c..c + n).collect();
        Mover { device, base, tree, items, owner, free, moved: 0 }
    }

    /// Free clusters that moves take besides the places they go to. With fewer they need more steps.
    pub fn reserve(&self) -> u32 {
        if self.tree.volume.kind == FatType::Fat12 { 2 } else { 0 }
    }

    /// Moves clusters to free ones: (old, new). Each file as a whole or not at all visible to a cut, directories first.
    ///
    /// # Errors
    /// The device failed, or (FAT12) there are hardly any clusters in use, so that none can make way for another.
    pub fn all(&mut self, moves: &[(u32, u32)]) -> Result<()> {
        let (directories, files): (Vec<_>, Vec<_>) =
            moves.iter().copied().partition(|m| self.items[self.owner[m.0 as usize].0 as usize].directory);
        for one in directories {
            self.shift(&[one])?;
        }
        if files.is_empty() { Ok(()) } else { self.shift(&files) }
    }

    /// The entry of this cluster lies in two sectors.
    fn across(&self, cluster: u32) -> bool {
        self.tree.volume.kind == FatType::Fat12 && u64::from(cluster + cluster / 2) % self.sector() == self.sector() - 1
    }

    fn sector(&self) -> u64 {
        self.device.geometry().sector.max(self.tree.volume.sector)
    }

    /// The cluster before this one in its file.
    fn before(&self, cluster: u32) -> Option<u32> {
        let (f, i) = self.owner[cluster as usize];
        i.checked_sub(1).map(|i| self.items[f as usize].chain[i as usize])
    }

    /// Moves clusters; those in front of them whose entry cannot be changed in one write go out of the way and come back.
    fn shift(&mut self, moves: &[(u32, u32)]) -> Result<()> {
        let olds: BTreeSet<u32> = moves.iter().map(|m| m.0).collect();
        let mut detours: Vec<u32> = vec![];
        for &(old, _) in moves {
            let mut at = self.before(old).filter(|b| !olds.contains(b));
            while let Some(b) = at.filter(|&b| self.across(b) && !detours.contains(&b)) {
                detours.push(b);
                at = self.before(b);
            }
        }
        if detours.is_empty() {
            return self.relink(moves);
        }
        let news: BTreeSet<u32> = moves.iter().map(|m| m.1).collect();
        let spare: Vec<u32> = self.free.iter().rev().copied().filter(|&c| !news.contains(&c) && !self.across(c)).collect();
        if spare.len() < detours.len() {
            return match moves {
                &[one] => self.squeeze(one),
                _ => moves.iter().try_for_each(|&one| self.shift(&[one])),
            };
        }
        // The one in front first: then nothing in front of it is across two sectors.
        nandscope_stats::sort_by_key(&mut detours, |&c| self.owner[c as usize]);
        let taken: BTreeMap<u32, u32> = detours.iter().copied().zip(spare).collect();
        for &d in &detours {
            self.relink(&[(d, taken[&d])])?;
        }
        let moves: Vec<(u32, u32)> = moves.iter().map(|&(old, new)| (taken.get(&old).copied().unwrap_or(old), new)).collect();
        self.relink(&moves)?;
        for &d in detours.iter().rev().filter(|d| !olds.contains(d)) {
            self.shift(&[(taken[&d], d)])?;
        }
        Ok(())
    }

    /// Moves one cluster, without a free one for the cluster in front of it, whose entry cannot be changed in one write: a guest
    /// gives up its place to that one, waits in the places that are free meanwhile, and returns.
    fn squeeze(&mut self, (old, new): (u32, u32)) -> Result<()> {
        let Some((front, guest)) = self.before(old).and_then(|front| Some((front, self.guest(old, front)?))) else {
            return Err(VolumeError::Full("defragmenting FAT12 needs a few free clusters here; remove a file first".into()));
        };
        let steps = [(guest, new), (front, guest), (new, front), (old, new), (front, old), (guest, front), (old, guest)];
        steps.into_iter().try_for_each(|step| self.shift(&[step]))
    }

    /// A cluster that can move in one step wherever the other two are; of a file rather than a directory, which takes longer.
    fn guest(&self, old: u32, front: u32) -> Option<u32> {
        let apart = [Some(old), Some(front), self.before(front)];
        let fits = |&c: &u32| {
            let before = self.before(c);
            self.owner[c as usize].0 != NONE
                && !self.across(c)
                && !apart.contains(&Some(c))
                && before.is_none_or(|b| b != old && b != front && !self.across(b))
        };
        (2..self.owner.len() as u32).filter(fits).min_by_key(|&c| self.items[self.owner[c as usize].0 as usize].directory)
    }

    /// The four phases. Directories come alone.
    fn relink(&mut self, moves: &[(u32, u32)]) -> Result<()> {
        self.copy(moves)?;
        let new_of: BTreeMap<u32, u32> = moves.iter().copied().collect();
        // Phase 2: the copies are linked.
        let mut set = BTreeMap::new();
        for &(old, new) in moves {
            let next = match self.tree.mark(old) {
                Mark::Next(next) => new_of.get(&next).copied().unwrap_or(next),
                _ => self.end(),
            };
            set.insert(new, next);
        }
        self.set(&set)?;
        // Phase 3: what leads to a piece leads to its copy.
        let mut set = BTreeMap::new();
        let mut firsts = vec![];
        for &(old, new) in moves {
            match self.before(old) {
                None => {
                    let entry = self.items[self.owner[old as usize].0 as usize].entry;
                    firsts.push((entry.ok_or_else(|| VolumeError::Unsupported("moving the root directory".into()))?, new));
                }
                Some(before) if !new_of.contains_key(&before) => drop(set.insert(before, new)),
                Some(_) => {}
            }
        }
        self.set(&set)?;
        self.lead(&firsts)?;
        for &(old, new) in moves {
            let (f, i) = std::mem::replace(&mut self.owner[old as usize], (NONE, 0));
            self.owner[new as usize] = (f, i);
            self.items[f as usize].chain[i as usize] = new;
            if self.items[f as usize].directory {
                self.follow(old, new, i == 0)?;
            }
        }
        // Phase 4.
        self.set(&moves.iter().map(|&(old, _)| (old, 0)).collect())?;
        for &(old, new) in moves {
            self.free.remove(&new);
            self.free.insert(old);
        }
        Ok(())
    }

    /// A cluster of a directory has moved: so have the entries in it, and the directories in it have another parent.
    fn follow(&mut self, old: u32, new: u32, first: bool) -> Result<()> {
        let (from, to, len) = (self.tree.place(old), self.tree.place(new), self.tree.volume.cluster);
        for entry in self.items.iter_mut().filter_map(|i| i.entry.as_mut()) {
            if (from..from + len).contains(entry) {
                *entry = *entry - from + to;
            }
        }
        if !first {
            return Ok(());
        }
        let (of, _) = self.owner[new as usize];
        let inside = |i: &&Item| i.directory && i.entry.is_some_and(|e| self.cluster_of(e).is_some_and(|c| self.owner[c as usize].0 == of));
        let children: Vec<u32> = self.items.iter().filter(inside).map(|i| i.chain[0]).collect();
        let mut parents = vec![];
        for child in children {
            let mut head = vec![0; 512.min(len as usize)];
            self.device.load(self.base + self.tree.place(child), &mut head)?;
            parents.extend(dots(&head, b"..         ").map(|at| (self.tree.place(child) + at as u64, new)));
        }
        self.lead(&parents)
    }

    fn cluster_of(&self, at: u64) -> Option<u32> {
        self.tree.volume.cluster_at(at)
    }

    fn end(&self) -> u32 {
        match self.tree.volume.kind {
            FatType::Fat12 => 0xfff,
            FatType::Fat16 => 0xffff,
            _ => 0x0fff_ffff,
        }
    }

    fn flush(&mut self) -> Result<()> {
        if self.device.geometry().write_cache {
            self.device.access(Access { op: Op::Flush, at: 0, len: 0 })?;
        }
        Ok(())
    }

    fn copy(&mut self, moves: &[(u32, u32)]) -> Result<()> {
        let cluster = self.tree.volume.cluster;
        let most = self.device.geometry().max_request.unwrap_or(MIB).clamp(cluster, MIB.max(cluster)) / cluster;
        let mut bytes = vec![];
        let mut i = 0;
        while i < moves.len() {
            let (old, new) = moves[i];
            let mut n = 1;
            while (n as u64) < most && moves.get(i + n).is_some_and(|&m| m == (old + n as u32, new + n as u32)) {
                n += 1;
            }
            bytes.resize(n * cluster as usize, 0);
            let (from, to) = (self.tree.place(old), self.tree.place(new));
            self.device.get(self.base + from, &mut bytes)?;
            let (f, at) = self.owner[old as usize];
            if at == 0 && self.items[f as usize].directory {
                let own = dots(&bytes[..512.min(cluster as usize)], b".          ");
                own.into_iter().for_each(|at| name_cluster(&mut bytes[at..at + 32], new, self.tree.volume.kind));
            }
            self.device.put(self.base + to, &bytes)?;
            self.moved += bytes.len() as u64;
            i += n;
        }
        self.flush()
    }

    /// Changes entries of the table, a sector in one write; the first table, then its copies.
    fn set(&mut self, set: &BTreeMap<u32, u32>) -> Result<()> {
        if set.is_empty() {
            return Ok(());
        }
        let sector = self.sector();
        // Of each sector the bytes that change, with the bits of them that do.
        let mut touched: BTreeMap<u64, Vec<(usize, u8, u8)>> = BTreeMap::new();
        for (&c, &n) in set {
            self.tree.table[c as usize] = n;
            let (at, value, mask) = bits(self.tree.volume.kind, c, n);
            for (k, (v, m)) in value.to_le_bytes().into_iter().zip(mask.to_le_bytes()).enumerate().filter(|(_, (_, m))| *m != 0) {
                let at = at + k as u64;
                touched.entry(at / sector).or_default().push(((at % sector) as usize, v, m));
            }
        }
        let mut bytes = vec![0; sector as usize];
        for copy in 0..u64::from(self.tree.volume.fats) {
            for (s, changes) in &touched {
                let at = self.base + self.tree.volume.fat_start + copy * self.tree.volume.fat_length + s * sector;
                self.device.load(at, &mut bytes)?;
                for &(i, value, mask) in changes {
                    bytes[i] = bytes[i] & !mask | value & mask;
                }
                self.device.put(at, &bytes)?;
            }
            self.flush()?;
        }
        Ok(())
    }

    /// Directory entries lead to these clusters: (place of the entry, cluster).
    fn lead(&mut self, firsts: &[(u64, u32)]) -> Result<()> {
        if firsts.is_empty() {
            return Ok(());
        }
        let sector = self.sector();
        let mut by_sector: BTreeMap<u64, Vec<(u64, u32)>> = BTreeMap::new();
        for &(entry, first) in firsts {
            by_sector.entry(entry / sector * sector).or_default().push((entry, first));
        }
        let mut bytes = vec![0; sector as usize];
        for (at, all) in by_sector {
            self.device.load(self.base + at, &mut bytes)?;
            for (entry, first) in all {
                let i = (entry - at) as usize;
                name_cluster(&mut bytes[i..i + 32], first, self.tree.volume.kind);
            }
            self.device.put(self.base + at, &bytes)?;
        }
        self.flush()
    }
}

/// Where the number of a cluster stands in the table: the byte, and four bytes from there on with a mask of those that count.
fn bits(kind: FatType, cluster: u32, value: u32) -> (u64, u32, u32) {
    let c = u64::from(cluster);
    match kind {
        FatType::Fat12 if cluster.is_multiple_of(2) => (c + c / 2, value, 0xfff),
        FatType::Fat12 => (c + c / 2, value << 4, 0xfff0),
        FatType::Fat16 => (2 * c, value, 0xffff),
        // The upper four bits are kept.
        _ => (4 * c, value, 0x0fff_ffff),
    }
}

/// Writes the number of a first cluster into a directory entry.
fn name_cluster(entry: &mut [u8], first: u32, kind: FatType) {
    entry[26..28].copy_from_slice(&(first as u16).to_le_bytes());
    if kind == FatType::Fat32 {
        entry[20..22].copy_from_slice(&((first >> 16) as u16).to_le_bytes());
    }
}

/// Where the entry of a directory of this name, "." or "..", begins among the first entries.
fn dots(head: &[u8], name: &[u8; 11]) -> Option<usize> {
    head.chunks_exact(32).take_while(|e| e[0] != 0).position(|e| e[..11] == *name && e[11] != 0x0f && e[11] & 0x10 != 0).map(|i| 32 * i)
}
