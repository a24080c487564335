//! What lies on a card: partition table, volumes and their parts, positions in bytes from the beginning of the disk.
//!
//! Everything here comes from a disk that may hold anything: every number is checked against the size of the target before it is
//! used, counts are bounded, and no more than a few MiB are read.

use super::linux;
use crate::device::{Device, Result};
use crate::host::partitions::{Read, Scheme, table};
use crate::units::{Bytes, SECTOR};
use nandscope_fat::{FatType, is_unfinished, recognise};
use serde::Serialize;

/// A part of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Zone {
    pub name: String,
    /// The letter that draws it.
    pub mark: char,
    pub at: u64,
    pub len: u64,
}

/// Things of one kind at equal distances: block groups, segments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Repeat {
    pub name: String,
    pub at: u64,
    pub step: u64,
    pub count: u64,
}

/// A volume as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Volume {
    /// "FAT32", "ext4", ...
    pub what: String,
    pub at: u64,
    pub len: u64,
    /// Bytes it says it has, where it has fewer: it is cut off.
    pub cut: Option<u64>,
    /// Smallest piece it writes of a file: cluster or block.
    pub unit: u64,
    /// Where file content begins.
    pub data: u64,
    pub zones: Vec<Zone>,
    pub repeats: Vec<Repeat>,
    /// What was told to mkfs about the flash, in words; empty where nothing was.
    pub told: Vec<String>,
}

/// A partition, or the whole target where it has no table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    pub number: Option<u32>,
    pub start: u64,
    pub size: u64,
    /// Reaches beyond the end of the target.
    pub beyond: bool,
    pub volume: Option<Volume>,
}

/// A target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Disk {
    /// Where the target begins on its disk.
    pub offset: u64,
    pub size: u64,
    /// "MBR" or "GPT".
    pub table: Option<&'static str>,
    pub parts: Vec<Part>,
    /// A format by this program was interrupted.
    pub unfinished: bool,
}

/// Partitions looked into.
const MOST: usize = 64;

/// Reads what lies on a target.
///
/// # Errors
/// The first sector cannot be read.
pub fn read(dev: &mut dyn Device) -> Result<Disk> {
    let g = dev.geometry().clone();
    let mut first = vec![0; SECTOR.min(g.size) as usize];
    dev.load(0, &mut first)?;
    let mut read = |at: u64, len: usize| {
        // No structure here needs more at once.
        let len = len.min(usize::try_from(g.size.checked_sub(at)?).ok()?).min(8 << 20);
        let mut bytes = vec![0; len];
        dev.load(at, &mut bytes).ok().map(|()| bytes)
    };
    Ok(parse(&mut read, g.offset, g.size, g.sector, is_unfinished(&first)))
}

/// The same on anything that can be read; `sector` is the logical sector of the device.
pub fn parse(read: &mut Read<'_>, offset: u64, size: u64, sector: u64, unfinished: bool) -> Disk {
    let whole = volume(read, 0, size, offset);
    let mut disk = Disk { offset, size, table: None, parts: vec![], unfinished };
    // A filesystem on the whole target may look like a table.
    let found = if whole.is_some() { None } else { table(read, sector).or_else(|| table(read, SECTOR)) };
    match found {
        Some((scheme, parts)) => {
            disk.table = Some(if scheme == Scheme::Gpt { "GPT" } else { "MBR" });
            // An extended partition is only the box of the logical ones.
            let boxed = |kind: u32| scheme == Scheme::Mbr && matches!(kind, 0x05 | 0x0f | 0x85);
            for p in parts.iter().filter(|p| !boxed(p.kind)).take(MOST) {
                let beyond = p.start.checked_add(p.size).is_none_or(|end| end > size);
                let len = p.size.min(size.saturating_sub(p.start));
                let volume = if len > 0 { volume(read, p.start, len, offset) } else { None };
                disk.parts.push(Part { number: Some(p.number), start: offset.saturating_add(p.start), size: p.size, beyond, volume });
            }
        }
        None => disk.parts.push(Part { number: None, start: offset, size, beyond: false, volume: whole }),
    }
    disk
}

/// The volume in `len` bytes at `at` of the target. What it says of itself is believed only as far as it fits.
fn volume(read: &mut Read<'_>, at: u64, len: u64, offset: u64) -> Option<Volume> {
    let head = read(at, len.min(128 * 1024) as usize)?;
    let mut v = match recognise(&head) {
        Ok(v) => fat(&v),
        Err(_) => linux::recognise(&head, &mut |from, n| read(at.checked_add(from)?, n))?,
    };
    v.cut = Some(v.len).filter(|&l| l > len);
    v.len = v.len.min(len);
    // Everything was relative to the volume.
    let base = offset.checked_add(at)?;
    v.at = base;
    v.data = v.data.min(len) + base;
    v.zones.retain(|z| z.len > 0 && z.at < len);
    for z in &mut v.zones {
        z.len = z.len.min(len - z.at);
        z.at += base;
    }
    v.repeats.retain(|r| r.step > 0 && r.count > 0 && r.at < len);
    for r in &mut v.repeats {
        r.count = r.count.min((len - r.at).div_ceil(r.step));
        r.at += base;
    }
    Some(v)
}

fn fat(v: &nandscope_fat::Volume) -> Volume {
    let zone = |name: &str, mark, at, len| Zone { name: name.into(), mark, at, len };
    let mut zones = vec![zone("boot sectors", 'r', 0, v.fat_start)];
    for i in 0..u64::from(v.fats) {
        zones.push(zone(
            if v.fats == 1 {
                "FAT"
            } else if i == 0 {
                "FAT 1"
            } else {
                "FAT 2"
            },
            'F',
            v.fat_start + i * v.fat_length,
            v.fat_length,
        ));
    }
    match (v.root_start, v.root_cluster) {
        (Some(root), _) => zones.push(zone("root directory", 'R', root, v.data_start.saturating_sub(root))),
        (None, Some(c)) => {
            let root = v.place(c);
            if v.kind == FatType::ExFat {
                // The bitmap is the first thing in the heap wherever it was made by the convention.
                zones.push(zone("allocation bitmap", 'B', v.data_start, u64::from(v.clusters).div_ceil(8).next_multiple_of(v.sector)));
            }
            zones.push(zone("root directory", 'R', root, v.cluster));
        }
        _ => {}
    }
    let told = vec![];
    Volume { what: v.kind.to_string(), at: 0, len: v.size, cut: None, unit: v.cluster, data: v.data_start, zones, repeats: vec![], told }
}

impl Disk {
    /// One line a partition.
    pub fn lines(&self) -> Vec<String> {
        let mut out = vec![];
        if self.unfinished {
            out.push("a format of this card was interrupted: run `nandscope format` again".into());
        }
        if let Some(t) = self.table {
            out.push(format!("{t} with {} partition{}", self.parts.len(), if self.parts.len() == 1 { "" } else { "s" }));
        }
        for p in &self.parts {
            let name = p.number.map_or("no partition table".to_string(), |n| format!("partition {n} at {}", Bytes(p.start)));
            let beyond = if p.beyond { ", which reaches beyond the end of the target" } else { "" };
            let what = match &p.volume {
                Some(Volume { cut: Some(claims), what, .. }) => {
                    format!("{what} that says it has {}: cut off, or the target is smaller than it was", crate::units::about(*claims))
                }
                Some(v) => format!("{} with {} of {}, data at {}", v.what, unit_word(v), Bytes(v.unit), Bytes(v.data)),
                None => "nothing known".into(),
            };
            out.push(format!("{name}, {}{beyond}: {what}", crate::units::about(p.size)));
        }
        out
    }
}

/// What a volume calls its smallest piece.
pub fn unit_word(v: &Volume) -> &'static str {
    match v.what.as_str() {
        "FAT12" | "FAT16" | "FAT32" | "exFAT" => "clusters",
        "swap" => "pages",
        _ => "blocks",
    }
}
