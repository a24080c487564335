//! An exFAT volume on any device, as far as new files need it: names in the root directory, written from the front. What the
//! system keeps of a file follows Microsoft's exFAT specification, sections 6 and 7; when any of it reaches the card is ruled by
//! [`super::Cache`], as for FAT.
//!
//! A file in one piece has no chain in the FAT: only the bitmap, the directory and the data are written, which is what makes
//! exFAT gentler to a card than FAT. A file in pieces gets its chain when the second piece begins.

use super::store::Store;
use super::{FileId, Host, Result, VolumeError};
use crate::device::{Device, Timed};
use crate::units::{Bytes, MIB, Nanos};
use nandscope_fat::{FatType, recognise};
use std::ops::Range;

/// Characters in one name entry.
const PART: usize = 15;
const ENTRY: u64 = 32;
/// Clusters of a root directory; longer ones are not worked with.
const MOST_ROOT: usize = 256;

struct Open {
    name: Vec<u16>,
    /// Number of its first entry in the root directory.
    entry: u64,
    len: u64,
    clusters: Vec<u32>,
    /// It lies in pieces, and its chain is in the FAT.
    chained: bool,
}

/// A mounted exFAT volume. What is changed is on the medium after `close`, or `finish`.
pub struct ExFatVolume {
    store: Store,
    volume: nandscope_fat::Volume,
    /// First byte of the bitmap.
    bitmap: u64,
    /// Clusters of the root directory.
    root: Vec<u32>,
    /// Cluster (from 0) the search for a free one goes on at.
    next: u32,
    files: Vec<Option<Open>>,
}

impl ExFatVolume {
    /// Mounts the volume in the bytes `range` of a device. Nothing is written until a file is.
    ///
    /// # Errors
    /// `Foreign` where there is no exFAT volume, `Damaged` where it contradicts itself.
    pub fn mount(mut device: Box<dyn Device>, range: Range<u64>, host: Host) -> Result<ExFatVolume> {
        let mut boot = [0; 512];
        device.load(range.start, &mut boot)?;
        let none = |why: String| VolumeError::Foreign(format!("no exFAT volume at byte {}: {why}", range.start));
        let volume = recognise(&boot).map_err(|e| none(e.to_string()))?;
        let root = volume.root_cluster.filter(|_| volume.kind == FatType::ExFat).ok_or_else(|| none(format!("it is {}", volume.kind)))?;
        if volume.size > range.end - range.start {
            let why = format!("the boot sector says {} and the target has {}", Bytes(volume.size), Bytes(range.end - range.start));
            return Err(VolumeError::Damaged(why));
        }
        let sector = device.geometry().sector;
        if sector > volume.sector {
            let why = format!("a volume of {} byte sectors on a device of {sector} byte sectors", volume.sector);
            return Err(VolumeError::Foreign(why));
        }
        let place = |cluster: u32| volume.place(cluster);
        let mut dir = vec![0; volume.cluster.min(MIB) as usize];
        device.load(range.start + place(root), &mut dir)?;
        let entry = dir.chunks_exact(ENTRY as usize).take_while(|e| e[0] != 0).find(|e| e[0] == 0x81);
        let first = entry.map_or(0, |e| u32::from_le_bytes([e[20], e[21], e[22], e[23]]));
        let length = u64::from(volume.clusters).div_ceil(8);
        if first < 2 || u64::from(first - 2) * volume.cluster + length > u64::from(volume.clusters) * volume.cluster {
            return Err(VolumeError::Damaged("its root directory names no allocation bitmap".into()));
        }
        let bitmap = place(first);
        let mut chain = vec![root];
        loop {
            let mut next = [0; 4];
            device.load(range.start + volume.fat_start + u64::from(chain[chain.len() - 1]) * 4, &mut next)?;
            match u32::from_le_bytes(next) {
                0xffff_fff8.. => break,
                n if n < 2 || n - 2 >= volume.clusters || chain.len() > MOST_ROOT => {
                    return Err(VolumeError::Damaged("the chain of its root directory does not end".into()));
                }
                n => chain.push(n),
            }
        }
        let mut store = Store::new(device, range, host);
        store.set_data_start(volume.data_start);
        Ok(ExFatVolume { store, volume, bitmap, root: chain, next: 0, files: vec![] })
    }

    /// Where the parts of the volume lie.
    pub fn volume(&self) -> &nandscope_fat::Volume {
        &self.volume
    }

    /// The clock of the device.
    pub fn now(&self) -> Nanos {
        self.store.now()
    }

    /// A new file in the root directory.
    ///
    /// # Errors
    /// The name is taken or no name, the directory is full, the device failed.
    pub fn create(&mut self, name: &str) -> Result<(FileId, Timed)> {
        let start = self.now();
        self.store.cost(None);
        if !(1..=255).contains(&name.len()) || name.chars().any(|c| !(' '..='~').contains(&c) || "\"*/:<>?\\|".contains(c)) {
            return Err(VolumeError::Unsupported("here a name has 1 to 255 ASCII characters, none of them \" * / : < > ? \\ |".into()));
        }
        let name: Vec<u16> = name.encode_utf16().collect();
        let entry = self.room(&name)?;
        let open = Open { name, entry, len: 0, clusters: vec![], chained: false };
        self.describe(&open)?;
        self.files.push(Some(open));
        Ok((FileId(self.files.len() as u32 - 1), Timed { start, took: self.now() - start }))
    }

    /// Appends to a file: `at` is its end.
    ///
    /// # Errors
    /// `at` is not its end, the volume is full, the device failed.
    pub fn write(&mut self, file: FileId, at: u64, data: &[u8]) -> Result<Timed> {
        let start = self.now();
        self.store.cost(Some(data.len() as u64));
        let mut open = self.take(file)?;
        if at != open.len {
            let why = format!("a write at {at} of a file that ends at {}; here files are written from the front", open.len);
            self.files[file.0 as usize] = Some(open);
            return Err(VolumeError::Unsupported(why));
        }
        let done = self.append(&mut open, data);
        self.files[file.0 as usize] = Some(open);
        done?;
        Ok(Timed { start, took: self.now() - start })
    }

    /// Ends the use of a file and brings it to the medium.
    ///
    /// # Errors
    /// The device failed.
    pub fn close(&mut self, file: FileId) -> Result<Timed> {
        let start = self.now();
        self.store.cost(None);
        let open = self.take(file)?;
        self.describe(&open)?;
        self.store.flush()?;
        Ok(Timed { start, took: self.now() - start })
    }

    /// Brings everything to the medium and ends the use of the volume.
    ///
    /// # Errors
    /// The device failed; the volume may then need fsck.
    pub fn finish(mut self) -> Result<()> {
        Ok(self.store.flush()?)
    }

    fn take(&mut self, file: FileId) -> Result<Open> {
        let open = self.files.get_mut(file.0 as usize).and_then(Option::take);
        open.ok_or_else(|| VolumeError::Unsupported("the file is closed".into()))
    }

    fn place(&self, cluster: u32) -> u64 {
        self.volume.place(cluster)
    }

    fn append(&mut self, open: &mut Open, data: &[u8]) -> Result<()> {
        let unit = self.volume.cluster;
        let end = open.len + data.len() as u64;
        while (open.clusters.len() as u64) * unit < end {
            let new = self.allocate()?;
            let next_to = open.clusters.last().is_none_or(|&last| last + 1 == new);
            open.clusters.push(new);
            if open.chained || !next_to {
                // The first break writes the chain so far, later ones their own link.
                let from = if open.chained { open.clusters.len() - 2 } else { 0 };
                open.chained = true;
                for i in from..open.clusters.len() {
                    self.link(open.clusters[i], open.clusters.get(i + 1).copied())?;
                }
            }
        }
        let mut runs: Vec<(u64, u64)> = vec![];
        let mut at = open.len;
        while at < end {
            let n = (unit - at % unit).min(end - at);
            let here = self.place(open.clusters[(at / unit) as usize]) + at % unit;
            match runs.last_mut() {
                Some((from, len)) if *from + *len == here => *len += n,
                _ => runs.push((here, n)),
            }
            at += n;
        }
        self.store.write_runs(&runs, data)?;
        open.len = end;
        Ok(())
    }

    /// What comes behind a cluster in a chain.
    fn link(&mut self, cluster: u32, next: Option<u32>) -> Result<()> {
        self.put(self.volume.fat_start + u64::from(cluster) * 4, &next.unwrap_or(u32::MAX).to_le_bytes())
    }

    /// The next free cluster, from now on used.
    fn allocate(&mut self) -> Result<u32> {
        while self.next < self.volume.clusters {
            let (i, at) = (self.next, self.bitmap + u64::from(self.next) / 8);
            self.next += 1;
            let mut bits = [0];
            self.store.meta_read(at, &mut bits)?;
            if bits[0] >> (i % 8) & 1 == 0 {
                bits[0] |= 1 << (i % 8);
                self.put(at, &bits)?;
                return Ok(i + 2);
            }
        }
        Err(VolumeError::Full("no free cluster".into()))
    }

    /// Where an entry of the root directory lies.
    fn slot(&self, i: u64) -> u64 {
        let in_cluster = self.volume.cluster / ENTRY;
        self.place(self.root[(i / in_cluster) as usize]) + i % in_cluster * ENTRY
    }

    /// Where the entries of a new name go: behind the last one of the root directory, which grows for them.
    fn room(&mut self, name: &[u16]) -> Result<u64> {
        let (count, hash) = (2 + name.len().div_ceil(PART) as u64, name_hash(name));
        let in_cluster = self.volume.cluster / ENTRY;
        let mut i = 0;
        while i < in_cluster * self.root.len() as u64 {
            let mut e = [0; ENTRY as usize];
            self.get(self.slot(i), &mut e)?;
            match e[0] {
                0 => break,
                0xc0 if usize::from(e[3]) == name.len() && u16::from_le_bytes([e[4], e[5]]) == hash => {
                    return Err(VolumeError::Unsupported(format!("{} is there already", String::from_utf16_lossy(name))));
                }
                _ => i += 1,
            }
        }
        while i + count > in_cluster * self.root.len() as u64 {
            if self.root.len() > MOST_ROOT {
                return Err(VolumeError::Full("the root directory takes no more names".into()));
            }
            let new = self.allocate()?;
            self.put(self.place(new), &vec![0; self.volume.cluster as usize])?;
            self.link(new, None)?;
            self.link(self.root[self.root.len() - 1], Some(new))?;
            self.root.push(new);
        }
        Ok(i)
    }

    /// Writes the entries of a file: the file, its stream, its name.
    fn describe(&mut self, open: &Open) -> Result<()> {
        let parts = open.name.len().div_ceil(PART);
        let mut set = vec![0; (2 + parts) * ENTRY as usize];
        // An archive, of 1 January 1980: a clock is not needed for any of this.
        (set[0], set[1], set[4]) = (0x85, 1 + parts as u8, 0x20);
        for at in [8, 12, 16] {
            set[at..at + 4].copy_from_slice(&(1u32 << 21 | 1 << 16).to_le_bytes());
        }
        let stream = &mut set[32..64];
        (stream[0], stream[3]) = (0xc0, open.name.len() as u8);
        stream[1] = if open.clusters.is_empty() || open.chained { 1 } else { 3 };
        stream[4..6].copy_from_slice(&name_hash(&open.name).to_le_bytes());
        stream[8..16].copy_from_slice(&open.len.to_le_bytes());
        stream[20..24].copy_from_slice(&open.clusters.first().copied().unwrap_or(0).to_le_bytes());
        stream[24..32].copy_from_slice(&open.len.to_le_bytes());
        for (i, part) in open.name.chunks(PART).enumerate() {
            let e = &mut set[64 + 32 * i..96 + 32 * i];
            e[0] = 0xc1;
            part.iter().enumerate().for_each(|(k, c)| e[2 + 2 * k..4 + 2 * k].copy_from_slice(&c.to_le_bytes()));
        }
        let sum = set.iter().enumerate().filter(|(i, _)| !matches!(i, 2 | 3)).fold(0u16, |s, (_, &b)| rolled(s, b));
        set[2..4].copy_from_slice(&sum.to_le_bytes());
        for (i, entry) in (open.entry..).zip(set.chunks_exact(ENTRY as usize)) {
            self.put(self.slot(i), entry)?;
        }
        Ok(())
    }

    fn put(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            done += self.store.meta_write(at + done as u64, &bytes[done..])?;
        }
        Ok(())
    }

    fn get(&mut self, at: u64, into: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < into.len() {
            done += self.store.meta_read(at + done as u64, &mut into[done..])?;
        }
        Ok(())
    }
}

/// One byte more in the checksums of names and entries (sections 6.3.3 and 7.6.4).
fn rolled(sum: u16, byte: u8) -> u16 {
    sum.rotate_right(1).wrapping_add(byte.into())
}

/// The hash of a name in capital letters; names are ASCII here.
fn name_hash(name: &[u16]) -> u16 {
    let upper = |c: u16| if (0x61..=0x7a).contains(&c) { c - 32 } else { c };
    name.iter().flat_map(|&c| upper(c).to_le_bytes()).fold(0, rolled)
}

#[cfg(test)]
#[path = "exfat_tests.rs"]
mod tests;
