//! Defragments a FAT16 or FAT32 volume on any device: every file in one piece, one behind the other, free space behind them.
//!
//! The order of writes keeps every file whole at any moment. Clusters move in batches, and a batch has four phases, each on the
//! medium before the next begins:
//!
//! 1. the data is copied to free clusters;
//! 2. the table links the copies: to each other where their neighbours move, too, else into the old chain. Nothing leads to
//!    them yet;
//! 3. what leads to the first old cluster of each piece (a table entry or a directory entry, one sector each) leads to its copy;
//! 4. the old clusters become free.
//!
//! Each phase writes the first table, then its copies. After a cut the first table is right: every file has its content, old or
//! new place, and at worst some clusters belong to nothing and a copy of the table lags behind; `fsck` mends both without
//! touching a file. Directories stay where they are.

use crate::device::{Access, Device, DeviceError, Op};
use crate::units::MIB;
use crate::volume::{Result, VolumeError, tree};
use nandscope_fat::{FatType, Mark, Tree, Volume, recognise, runs};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Defragmented {
    pub files: u32,
    /// Files in more than one piece before and after.
    pub fragmented_before: u32,
    pub fragmented_after: u32,
    /// Bytes of file data that were copied.
    pub bytes_moved: u64,
    /// It was stopped; the volume is whole, and the same call goes on.
    pub stopped: bool,
}

const NONE: u32 = u32::MAX;

struct Work<'a> {
    device: &'a mut dyn Device,
    base: u64,
    volume: Volume,
    tree: Tree,
    /// File and position in it of each cluster; NONE for free, lost, bad clusters and directories.
    owner: Vec<(u32, u32)>,
    /// Clusters of files that may move, by file.
    chains: Vec<Vec<u32>>,
    entries: Vec<u64>,
    free: BTreeSet<u32>,
    moved: u64,
}

/// Defragments the volume in the bytes from `base` on. `progress` is told the share that is done.
///
/// # Errors
/// No FAT16 or FAT32 volume, a damaged one, one that `fsck` should mend first, one without a free cluster; or the device failed,
/// after which the volume is as after a cut.
pub fn defragment(device: &mut dyn Device, base: u64, stop: &AtomicBool, progress: &mut dyn FnMut(f64)) -> Result<Defragmented> {
    let mut boot = [0; 512];
    device.load(base, &mut boot)?;
    let volume = recognise(&boot).map_err(|why| VolumeError::Foreign(format!("no FAT volume at byte {base}: {why}")))?;
    if !matches!(volume.kind, FatType::Fat16 | FatType::Fat32) {
        return Err(VolumeError::Unsupported(format!("defragmenting {}; copy the files off, format, and copy them back", volume.kind)));
    }
    let tree = tree(device, base, &volume)?;
    if tree.copies_differ || tree.lost > 0 {
        let why = format!(
            "{} clusters belong to nothing, and the copies of the table {}",
            tree.lost,
            if tree.copies_differ { "differ" } else { "agree" }
        );
        return Err(VolumeError::Damaged(why));
    }
    let files: Vec<_> = tree.nodes.iter().filter(|n| !n.directory && !n.chain.is_empty()).collect();
    let mut owner = vec![(NONE, 0); tree.table.len()];
    for (f, node) in files.iter().enumerate() {
        for (i, &c) in node.chain.iter().enumerate() {
            owner[c as usize] = (f as u32, i as u32);
        }
    }
    let mut work = Work {
        base,
        owner,
        chains: files.iter().map(|n| n.chain.clone()).collect(),
        entries: files.iter().map(|n| n.entry.unwrap_or(0)).collect(),
        free: tree.free_runs().iter().flat_map(|&(c, n)| c..c + n).collect(),
        moved: 0,
        volume,
        tree,
        device,
    };
    let broken = |w: &Work| w.chains.iter().filter(|c| runs(c).len() > 1).count() as u32;
    let mut done = Defragmented { files: work.chains.len() as u32, fragmented_before: broken(&work), ..Defragmented::default() };
    done.stopped = !work.all(stop, progress)?;
    done.fragmented_after = broken(&work);
    done.bytes_moved = work.moved;
    Ok(done)
}

impl Work<'_> {
    /// Puts the files one behind the other. False where it was stopped.
    fn all(&mut self, stop: &AtomicBool, progress: &mut dyn FnMut(f64)) -> Result<bool> {
        let total: usize = self.chains.iter().map(Vec::len).sum();
        let mut placed = 0;
        for (f, start) in self.places() {
            let n = self.chains[f as usize].len();
            let right = self.chains[f as usize].iter().enumerate().all(|(i, &c)| c == start + i as u32);
            if !right && !self.place_file(f, start, stop)? {
                return Ok(false);
            }
            placed += n;
            progress(placed as f64 / total.max(1) as f64);
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Where each file goes: into the runs between what cannot move, the largest files first, each to the first run with room
    /// (first fit decreasing), so that the free space is left at the end; inside a run in the order of now. A file that fits
    /// nowhere stays as it is.
    fn places(&self) -> Vec<(u32, u32)> {
        // Runs: first cluster, clusters, clusters given out, files.
        let mut rooms: Vec<(u32, u32, u32, Vec<u32>)> = vec![];
        for c in 2..self.owner.len() as u32 {
            if self.owner[c as usize].0 == NONE && !self.free.contains(&c) {
                continue;
            }
            match rooms.last_mut() {
                Some((start, n, ..)) if *start + *n == c => *n += 1,
                _ => rooms.push((c, 1, 0, vec![])),
            }
        }
        let mut order: Vec<u32> = (0..self.chains.len() as u32).collect();
        order.sort_by_key(|&f| (std::cmp::Reverse(self.chains[f as usize].len()), self.chains[f as usize][0]));
        for f in order {
            let n = self.chains[f as usize].len() as u32;
            if let Some((_, _, used, files)) = rooms.iter_mut().find(|(_, room, used, _)| room - used >= n) {
                *used += n;
                files.push(f);
            }
        }
        let mut out = vec![];
        for (start, _, _, mut files) in rooms {
            files.sort_by_key(|&f| self.chains[f as usize][0]);
            let mut at = start;
            for f in files {
                out.push((f, at));
                at += self.chains[f as usize].len() as u32;
            }
        }
        out
    }

    /// Moves a file to the clusters from `start` on, a slice at a time: what is in the way goes to the last free clusters.
    fn place_file(&mut self, f: u32, start: u32, stop: &AtomicBool) -> Result<bool> {
        let n = self.chains[f as usize].len() as u32;
        let end = start + n;
        let most = (32 * MIB / self.volume.cluster).max(1) as u32;
        let mut from = start;
        while from < end {
            let outside = self.free.len() as u32 - self.free.range(start..end).count() as u32;
            let room = outside.min(most);
            let mut to = from;
            let mut away = vec![];
            // As much as can be cleared at once.
            while to < end && to - from < most {
                let right = self.chains[f as usize][(to - start) as usize] == to;
                if !right && !self.free.contains(&to) {
                    if away.len() as u32 == room {
                        break;
                    }
                    away.push(to);
                }
                to += 1;
            }
            if to == from {
                return Err(VolumeError::Full("defragmenting needs at least one free cluster outside the place of a file".into()));
            }
            if !away.is_empty() {
                let places: Vec<u32> = self.free.iter().rev().copied().filter(|c| !(start..end).contains(c)).take(away.len()).collect();
                let moves = away.iter().copied().zip(places.into_iter().rev()).collect();
                self.batch(moves)?;
            }
            let chain = &self.chains[f as usize];
            let moves: Vec<(u32, u32)> = (from..to).map(|c| (chain[(c - start) as usize], c)).filter(|(old, new)| old != new).collect();
            self.batch(moves)?;
            from = to;
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Moves clusters of files to free ones: (old, new).
    fn batch(&mut self, moves: Vec<(u32, u32)>) -> Result<()> {
        if moves.is_empty() {
            return Ok(());
        }
        self.copy(&moves)?;
        let new_of: BTreeMap<u32, u32> = moves.iter().copied().collect();
        // Phase 2: the copies are linked.
        let mut set = BTreeMap::new();
        for &(old, new) in &moves {
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
        for &(old, new) in &moves {
            let (f, i) = self.owner[old as usize];
            match i {
                0 => firsts.push((self.entries[f as usize], new)),
                _ => {
                    let before = self.chains[f as usize][i as usize - 1];
                    if !new_of.contains_key(&before) {
                        set.insert(before, new);
                    }
                }
            }
        }
        self.set(&set)?;
        self.lead(&firsts)?;
        // Phase 4.
        self.set(&moves.iter().map(|&(old, _)| (old, 0)).collect())?;
        for &(old, new) in &moves {
            let (f, i) = std::mem::replace(&mut self.owner[old as usize], (NONE, 0));
            self.owner[new as usize] = (f, i);
            self.chains[f as usize][i as usize] = new;
            self.free.remove(&new);
            self.free.insert(old);
        }
        Ok(())
    }

    fn end(&self) -> u32 {
        if self.volume.kind == FatType::Fat16 { 0xffff } else { 0x0fff_ffff }
    }

    fn flush(&mut self) -> Result<()> {
        if self.device.geometry().write_cache {
            self.device.access(Access { op: Op::Flush, at: 0, len: 0 })?;
        }
        Ok(())
    }

    fn copy(&mut self, moves: &[(u32, u32)]) -> Result<()> {
        let cluster = self.volume.cluster;
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
        for (&c, &n) in set {
            self.tree.table[c as usize] = n;
        }
        let width = if self.volume.kind == FatType::Fat16 { 2 } else { 4 };
        let sector = self.device.geometry().sector.max(self.volume.sector);
        let touched: BTreeSet<u64> = set.keys().map(|&c| u64::from(c) * width / sector).collect();
        let mut bytes = vec![0; sector as usize];
        for copy in 0..u64::from(self.volume.fats) {
            for &s in &touched {
                let at = self.volume.fat_start + copy * self.volume.fat_length + s * sector;
                self.load(at, &mut bytes)?;
                for (&c, &n) in set.range((s * sector / width) as u32..((s + 1) * sector / width) as u32) {
                    let i = (u64::from(c) * width - s * sector) as usize;
                    if width == 2 {
                        bytes[i..i + 2].copy_from_slice(&(n as u16).to_le_bytes());
                    } else {
                        // The upper four bits are kept.
                        let kept = u32::from(bytes[i + 3] & 0xf0) << 24;
                        bytes[i..i + 4].copy_from_slice(&(n | kept).to_le_bytes());
                    }
                }
                self.device.put(self.base + at, &bytes)?;
            }
            self.flush()?;
        }
        Ok(())
    }

    /// Directory entries lead to these first clusters.
    fn lead(&mut self, firsts: &[(u64, u32)]) -> Result<()> {
        let sector = self.device.geometry().sector.max(self.volume.sector);
        let mut by_sector: BTreeMap<u64, Vec<(u64, u32)>> = BTreeMap::new();
        for &(entry, first) in firsts {
            by_sector.entry(entry / sector * sector).or_default().push((entry, first));
        }
        let mut bytes = vec![0; sector as usize];
        for (at, all) in by_sector {
            self.load(at, &mut bytes)?;
            for (entry, first) in all {
                let i = (entry - at) as usize;
                bytes[i + 26..i + 28].copy_from_slice(&(first as u16).to_le_bytes());
                if self.volume.kind == FatType::Fat32 {
                    bytes[i + 20..i + 22].copy_from_slice(&((first >> 16) as u16).to_le_bytes());
                }
            }
            self.device.put(self.base + at, &bytes)?;
        }
        self.flush()
    }

    fn load(&mut self, at: u64, into: &mut [u8]) -> std::result::Result<(), DeviceError> {
        self.device.load(self.base + at, into)
    }
}

#[cfg(test)]
#[path = "defragment_tests.rs"]
mod tests;
