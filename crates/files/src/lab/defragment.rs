//! Defragments a FAT volume on any device: every file and directory in one piece, one behind the other, free space behind them.
//!
//! Here is what goes where; `moves.rs` moves it so that a cut at any moment loses nothing. The first cluster of the root
//! directory of FAT32 stays where it is: the boot sector and its copy lead to it, and cannot be changed in one write.

use super::moves::{Item, Mover, NONE};
use crate::device::Device;
use crate::units::MIB;
use crate::volume::{Result, VolumeError, tree};
use nandscope_fat::{FatType, recognise, runs};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Defragmented {
    pub files: u32,
    /// Files in more than one piece before and after.
    pub fragmented_before: u32,
    pub fragmented_after: u32,
    /// Directories in more than one piece before and after.
    #[serde(default)]
    pub directories_before: u32,
    #[serde(default)]
    pub directories_after: u32,
    /// Bytes of files and directories that were copied.
    pub bytes_moved: u64,
    /// It was stopped; the volume is whole, and the same call goes on.
    pub stopped: bool,
}

/// Defragments the volume in the bytes from `base` on. `progress` is told the share that is done.
///
/// # Errors
/// No FAT volume, a damaged one, one that `fsck` should mend first, one without a free cluster; or the device failed, after
/// which the volume is as after a cut.
pub fn defragment(device: &mut dyn Device, base: u64, stop: &AtomicBool, progress: &mut dyn FnMut(f64)) -> Result<Defragmented> {
    let mut boot = [0; 512];
    device.load(base, &mut boot)?;
    let volume = recognise(&boot).map_err(|why| VolumeError::Foreign(format!("no FAT volume at byte {base}: {why}")))?;
    if volume.kind == FatType::ExFat {
        return Err(VolumeError::Unsupported(format!("defragmenting {}; mount it and name the directory", volume.kind)));
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
    let items = tree.nodes.iter().filter(|n| !n.chain.is_empty());
    let items = items.map(|n| Item { chain: n.chain.clone(), entry: n.entry, directory: n.directory }).collect();
    let mut work = Work(Mover::new(device, base, tree, items));
    let broken =
        |w: &Work, directories: bool| w.0.items.iter().filter(|i| i.directory == directories && runs(&i.chain).len() > 1).count() as u32;
    let mut done = Defragmented {
        files: work.0.items.iter().filter(|i| !i.directory).count() as u32,
        fragmented_before: broken(&work, false),
        directories_before: broken(&work, true),
        ..Defragmented::default()
    };
    done.stopped = !work.all(stop, progress)?;
    done.fragmented_after = broken(&work, false);
    done.directories_after = broken(&work, true);
    done.bytes_moved = work.0.moved;
    Ok(done)
}

struct Work<'a>(Mover<'a>);

impl Work<'_> {
    /// Puts everything one behind the other. False where it was stopped.
    fn all(&mut self, stop: &AtomicBool, progress: &mut dyn FnMut(f64)) -> Result<bool> {
        let total: usize = self.0.items.iter().map(|i| i.chain.len()).sum();
        let mut placed = 0;
        let places = self.places();
        // Moves keep the number of free clusters: a volume that is full is known before anything is written.
        if self.0.free.is_empty() && places.iter().any(|&(f, start)| !self.right(f, start)) {
            return Err(full());
        }
        for (f, start) in places {
            placed += self.0.items[f as usize].chain.len();
            if !self.right(f, start) && !self.place(f, start, stop)? {
                return Ok(false);
            }
            progress(placed as f64 / total.max(1) as f64);
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// An item is in its place.
    fn right(&self, f: u32, start: u32) -> bool {
        (start..).zip(&self.0.items[f as usize].chain).all(|(c, &is)| c == is)
    }

    /// Where each item goes: into the runs between what cannot move, the largest first, each to the first run with room
    /// (first fit decreasing), so that the free space is left at the end; inside a run in the order of now. What fits nowhere
    /// stays as it is.
    fn places(&self) -> Vec<(u32, u32)> {
        let m = &self.0;
        let root = m.items.iter().position(|i| i.entry.is_none());
        let pinned = root.map(|r| m.items[r].chain[0]);
        // Runs: first cluster, clusters, clusters given out, items.
        let mut rooms: Vec<(u32, u32, u32, Vec<u32>)> = vec![];
        for c in 2..m.owner.len() as u32 {
            if Some(c) == pinned || m.owner[c as usize].0 == NONE && !m.free.contains(&c) {
                continue;
            }
            match rooms.last_mut() {
                Some((start, n, ..)) if *start + *n == c => *n += 1,
                _ => rooms.push((c, 1, 0, vec![])),
            }
        }
        let mut out = vec![];
        // The rest of the root directory goes behind its first cluster.
        if let (Some(root), Some(first)) = (root, pinned) {
            let rest = m.items[root].chain.len() as u32 - 1;
            if let Some(room) = rooms.iter_mut().find(|r| r.0 == first + 1 && r.1 >= rest) {
                *room = (room.0 + rest, room.1 - rest, 0, vec![]);
                out.push((root as u32, first));
            }
        }
        let mut order: Vec<u32> = (0..m.items.len() as u32).filter(|&i| Some(i as usize) != root).collect();
        nandscope_stats::sort_by_key(&mut order, |&f| (std::cmp::Reverse(m.items[f as usize].chain.len()), m.items[f as usize].chain[0]));
        for f in order {
            let n = m.items[f as usize].chain.len() as u32;
            if let Some((_, _, used, items)) = rooms.iter_mut().find(|(_, room, used, _)| room - used >= n) {
                *used += n;
                items.push(f);
            }
        }
        for (start, _, _, mut items) in rooms {
            nandscope_stats::sort_by_key(&mut items, |&f| m.items[f as usize].chain[0]);
            let mut at = start;
            for f in items {
                out.push((f, at));
                at += m.items[f as usize].chain.len() as u32;
            }
        }
        out
    }

    /// Moves an item to the clusters from `start` on, a slice at a time: what is in the way goes to free clusters first. What a
    /// slice has put in its place stays there, so it ends even where one cluster is free.
    fn place(&mut self, f: u32, start: u32, stop: &AtomicBool) -> Result<bool> {
        let end = start + self.0.items[f as usize].chain.len() as u32;
        let mut from = start;
        while from < end {
            let (to, away) = self.slice(f, start, from);
            if to == from {
                return Err(full());
            }
            let places = self.aside(start..end, from..to, away.len());
            let m = &mut self.0;
            let moves: Vec<(u32, u32)> = away.into_iter().zip(places).collect();
            m.all(&moves)?;
            let chain = &m.items[f as usize].chain;
            let moves: Vec<(u32, u32)> = (from..to).map(|c| (chain[(c - start) as usize], c)).filter(|(old, new)| old != new).collect();
            m.all(&moves)?;
            from = to;
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// How far from `from` on an item can be put in its place at once, and the clusters that are in the way until there. They
    /// need free clusters outside the slice, so a free one inside it is one less for them.
    fn slice(&self, f: u32, start: u32, from: u32) -> (u32, Vec<u32>) {
        let m = &self.0;
        let chain = &m.items[f as usize].chain;
        let most = (32 * MIB / m.tree.volume.cluster).max(1) as u32;
        let end = (start + chain.len() as u32).min(from + most);
        let room = |spare: usize| spare.saturating_sub(m.reserve() as usize).max(spare.min(1));
        let (mut spare, mut away) = (m.free.len(), vec![]);
        for c in from..end {
            if chain[(c - start) as usize] == c {
                continue;
            }
            let free = m.free.contains(&c);
            let (left, need) = if free { (spare - 1, away.len()) } else { (spare, away.len() + 1) };
            if need > room(left) {
                return (c, away);
            }
            spare = left;
            if !free {
                away.push(c);
            }
        }
        (end, away)
    }

    /// The last free clusters, for what is in the way of a slice: outside the place of its file as long as there are some, then
    /// behind the slice, from where they move once more.
    fn aside(&self, place: Range<u32>, slice: Range<u32>, n: usize) -> BTreeSet<u32> {
        let free = || self.0.free.iter().rev().copied();
        let behind = free().filter(|c| place.contains(c) && !slice.contains(c));
        free().filter(|c| !place.contains(c)).chain(behind).take(n).collect()
    }
}

fn full() -> VolumeError {
    VolumeError::Full("defragmenting needs at least one free cluster; remove a file first".into())
}

#[cfg(test)]
#[path = "defragment_tests.rs"]
mod tests;
