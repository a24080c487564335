//! How fragmented a volume is (P3), and a map of it over the grid of AUs.

use crate::volume::{Extent, Result, Volume, VolumeError};
use nandscope_fat::{Mark, Tree, runs};
use serde::{Deserialize, Serialize};

/// What the report of a defragmenter says, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fragmentation {
    /// Files with content.
    pub files: u32,
    /// Of those, in more than one piece.
    pub fragmented: u32,
    /// Pieces of all files.
    pub extents: u64,
    /// Most pieces of one file.
    pub most: u32,
    /// Bytes in files.
    pub bytes: u64,
    /// The free space, where the filesystem says where it lies.
    pub free: Option<Free>,
}

/// Free space, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Free {
    pub bytes: u64,
    pub extents: u64,
    pub largest: u64,
}

impl Fragmentation {
    /// Share of the files that are in more than one piece.
    pub fn fragmented_share(&self) -> f64 {
        f64::from(self.fragmented) / f64::from(self.files.max(1))
    }

    pub fn extents_per_file(&self) -> f64 {
        self.extents as f64 / f64::from(self.files.max(1))
    }

    fn add(&mut self, extents: usize, bytes: u64) {
        if extents == 0 {
            return;
        }
        self.files += 1;
        self.fragmented += u32::from(extents > 1);
        self.extents += extents as u64;
        self.most = self.most.max(extents as u32);
        self.bytes += bytes;
    }
}

/// From the tables of a FAT volume.
pub fn of_tree(tree: &Tree) -> Fragmentation {
    let mut out = Fragmentation::default();
    for node in tree.nodes.iter().filter(|n| !n.directory) {
        out.add(runs(&node.chain).len(), node.size);
    }
    let cluster = tree.volume.cluster;
    let free = tree.free_runs();
    out.free = Some(Free {
        bytes: free.iter().map(|r| u64::from(r.1) * cluster).sum(),
        extents: free.len() as u64,
        largest: free.iter().map(|r| u64::from(r.1) * cluster).max().unwrap_or(0),
    });
    out
}

/// From the extents of all files below a directory, and the free space of the whole filesystem where it says where that lies;
/// with a map of it. `tell` hears what is under way and what share of it is done.
///
/// # Errors
/// Reading failed, or the filesystem does not say where files lie.
pub fn of_files(volume: &mut dyn Volume, au: u64, tell: &mut dyn FnMut(&str, f64)) -> Result<(Fragmentation, Map)> {
    // All names first, which takes a fraction of the time and says how much there is to do.
    let files = files(volume, &mut |n| tell(&format!("looking for files, {n} so far"), 0.0))?;
    let of = files.iter().map(|d| d.1.len()).sum::<usize>().max(1) as f64;
    let (mut out, mut all, mut done) = (Fragmentation::default(), vec![], 0usize);
    for (dir, entries) in &files {
        for (name, len) in entries {
            match volume.extents(&below(dir, name)) {
                Ok(extents) => {
                    out.add(extents.len(), *len);
                    all.extend(extents);
                }
                // A link that leads nowhere, or a file of somebody else.
                Err(VolumeError::NotFound(_) | VolumeError::Io { .. }) => {}
                Err(e) => return Err(e),
            }
            done += 1;
            if done.is_multiple_of(64) {
                tell("looking where files lie", done as f64 / of);
            }
        }
    }
    let end = all.iter().map(|e| e.at + e.len).max().unwrap_or(0).max(volume.space()?.size);
    let free = volume.free_runs()?;
    out.free = free.as_ref().map(|runs| Free {
        bytes: runs.iter().map(|r| r.1).sum(),
        extents: runs.len() as u64,
        largest: runs.iter().map(|r| r.1).max().unwrap_or(0),
    });
    Ok((out, Map::of_extents(&all, free.as_deref(), end, au)))
}

/// A directory, and name and length of each file in it.
type Listed = (String, Vec<(String, u64)>);

/// All files below the root of `volume`; `tell` hears how many there are so far.
fn files(volume: &mut dyn Volume, tell: &mut dyn FnMut(usize)) -> Result<Vec<Listed>> {
    let (mut out, mut found, mut next) = (vec![], 0, vec![String::new()]);
    while let Some(dir) = next.pop() {
        let entries = match volume.list(&dir) {
            // A directory of somebody else below the one asked for.
            Err(VolumeError::Io { .. }) if !dir.is_empty() => continue,
            other => other?,
        };
        let (inner, files): (Vec<_>, Vec<_>) = entries.into_iter().partition(|e| e.directory);
        next.extend(inner.into_iter().map(|e| below(&dir, &e.name)));
        found += files.len();
        tell(found);
        out.push((dir, files.into_iter().map(|e| (e.name, e.len)).collect()));
    }
    Ok(out)
}

fn below(dir: &str, name: &str) -> String {
    if dir.is_empty() { name.into() } else { format!("{dir}/{name}") }
}

/// One AU of a map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Share in use, 0 to 1.
    pub used: f64,
    /// Pieces of files and of free space that lie in it.
    pub pieces: u32,
    /// Those of them that do not come from the AU before.
    #[serde(default)]
    pub begins: u32,
}

/// A volume over the AUs of its medium.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Map {
    /// Bytes of an AU.
    pub au: u64,
    pub cells: Vec<Cell>,
}

impl Map {
    /// From the tables of a FAT volume that begins at byte `base` of the medium.
    pub fn of_tree(tree: &Tree, base: u64, au: u64) -> Map {
        let v = &tree.volume;
        let mut map = Map { au, cells: vec![Cell::default(); (base + v.size).div_ceil(au) as usize] };
        let mut kind = vec![0u32; tree.table.len()];
        for (i, node) in tree.nodes.iter().enumerate() {
            node.chain.iter().for_each(|&c| kind[c as usize] = i as u32 + 1);
        }
        // Tables and reserved sectors are in use.
        map.add(base, v.data_start, true, true);
        let mut before = None;
        for c in 2..tree.table.len() as u32 {
            let used = tree.mark(c) != Mark::Free;
            // A piece ends where the file does, or where its chain goes elsewhere.
            let here = (used, kind[c as usize]);
            let follows = before == Some(here) && (!used || tree.mark(c - 1) == Mark::Next(c));
            map.add(base + tree.place(c), v.cluster, used, !follows);
            before = Some(here);
        }
        map
    }

    /// From pieces of files on a medium of `size` bytes; where the free pieces are known, what is neither is in use, too.
    pub fn of_extents(extents: &[Extent], free: Option<&[(u64, u64)]>, size: u64, au: u64) -> Map {
        let mut map = Map { au, cells: vec![Cell::default(); size.div_ceil(au) as usize] };
        for e in extents {
            map.add(e.at, e.len, true, true);
        }
        if let Some(free) = free {
            let mut rest = Map { au, cells: vec![Cell::default(); map.cells.len()] };
            for &(at, len) in free {
                map.add(at, len, false, true);
                rest.add(at, len, true, true);
            }
            for (i, (cell, free)) in map.cells.iter_mut().zip(rest.cells).enumerate() {
                let there = au.min(size - i as u64 * au) as f64 / au as f64;
                cell.used = (there - free.used).max(0.0);
            }
        }
        map
    }

    fn add(&mut self, at: u64, len: u64, used: bool, first: bool) {
        let (mut here, end) = (at, at + len);
        while here < end {
            let i = (here / self.au) as usize;
            let stop = ((i as u64 + 1) * self.au).min(end);
            if let Some(cell) = self.cells.get_mut(i) {
                // A piece counts in every AU it lies in, and begins in one.
                let begins = first && here == at;
                cell.begins += u32::from(begins);
                cell.pieces += u32::from(begins || here % self.au == 0);
                cell.used += if used { (stop - here) as f64 / self.au as f64 } else { 0.0 };
            }
            here = stop;
        }
    }

    /// At most `most` cells: neighbours joined.
    pub fn joined(&self, most: usize) -> Map {
        let n = self.cells.len().div_ceil(most.max(1)).max(1);
        // What an earlier version wrote does not say which pieces begin.
        let known = self.cells.iter().any(|c| c.begins > 0);
        let one = |c: &[Cell]| {
            let begins = |c: &[Cell]| c.iter().map(|x| if known { x.begins } else { x.pieces }).sum::<u32>();
            let used = c.iter().map(|x| x.used).sum::<f64>() / c.len() as f64;
            Cell { used, pieces: c[0].pieces + begins(&c[1..]), begins: begins(c) }
        };
        let cells = self.cells.chunks(n).map(one).collect();
        Map { au: self.au * n as u64, cells }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A free piece over eight AUs is one piece, however many of them are joined.
    #[test]
    fn a_piece_over_many_aus_counts_once() {
        let map = Map::of_extents(&[], Some(&[(0, 8 << 20)]), 8 << 20, 1 << 20);
        let pieces = |m: &Map| m.cells.iter().map(|c| c.pieces).collect::<Vec<u32>>();
        assert_eq!((pieces(&map), pieces(&map.joined(2))), (vec![1; 8], vec![1; 2]));
        let halves = Map::of_extents(&[], Some(&[(0, 5 << 20), (5 << 20, 3 << 20)]), 8 << 20, 1 << 20);
        assert_eq!(pieces(&halves.joined(2)), [1, 2]);
    }
}
