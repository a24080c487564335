//! ext2/3/4, F2FS, btrfs and swap: where their parts lie. Offsets are those of the kernel's own structures (fs/ext4/ext4.h,
//! include/linux/f2fs_fs.h, fs/btrfs/ctree.h, include/linux/swap.h).

use super::disk::{Repeat, Volume, Zone};
use crate::host::partitions::Read;

fn le(b: &[u8], at: usize, n: usize) -> Option<u64> {
    Some(b.get(at..at.checked_add(n)?)?.iter().rev().fold(0, |v, &d| v << 8 | u64::from(d)))
}

fn zone(name: impl Into<String>, mark: char, at: u64, len: u64) -> Zone {
    Zone { name: name.into(), mark, at, len }
}

/// The volume whose first bytes are `head`; `read` takes positions in the volume.
pub fn recognise(head: &[u8], read: &mut Read<'_>) -> Option<Volume> {
    ext(head, read).or_else(|| f2fs(head)).or_else(|| btrfs(head, read)).or_else(|| swap(head))
}

/// Groups whose descriptors are looked at; a TB card has eight thousand of 128 MiB.
const MOST_GROUPS: u64 = 16384;

fn ext(head: &[u8], read: &mut Read<'_>) -> Option<Volume> {
    let s = head.get(1024..2048)?;
    if s.get(56..58)? != [0x53, 0xef] {
        return None;
    }
    let f = |at, n| le(s, at, n);
    let (compat, incompat) = (f(0x5c, 4)?, f(0x60, 4)?);
    let block = 1024u64.checked_shl(u32::try_from(f(0x18, 4)?).ok().filter(|&x| x <= 6)?)?;
    let wide = incompat & 0x80 != 0;
    let blocks = f(4, 4)? | if wide { f(0x150, 4)? << 32 } else { 0 };
    let (first, per_group) = (f(0x14, 4)?, f(0x20, 4)?);
    let (inodes, inode_size) = (f(0x28, 4)?, if f(0x4c, 4)? == 0 { 128 } else { f(0x58, 2)? });
    let size = blocks.checked_mul(block)?;
    let desc = if wide { f(0xfe, 2)?.max(32) } else { 32 };
    if per_group == 0 || first > 1 || blocks <= first || desc > 1024 {
        return None;
    }
    let groups = (blocks - first).div_ceil(per_group);
    let mut zones = vec![zone("superblock", 'r', first * block, block)];
    let gdt_blocks = groups.checked_mul(desc)?.div_ceil(block);
    zones.push(zone("group descriptors", 'g', (first + 1) * block, gdt_blocks.checked_mul(block)?));
    // Bitmaps and inode tables lie where the descriptors say; with flex_bg those of sixteen groups lie together.
    let table = read((first + 1) * block, (groups.min(MOST_GROUPS) * desc) as usize).unwrap_or_default();
    let inode_blocks = inodes.checked_mul(inode_size)?.div_ceil(block);
    let mut spots: Vec<(u64, u64, char)> = vec![];
    for d in table.chunks_exact(desc as usize) {
        let wide = desc >= 64;
        let high = |at: usize| if wide { le(d, at, 4).unwrap_or(0) << 32 } else { 0 };
        for (low, hi, n, mark) in [(0, 0x20, 1, 'b'), (4, 0x24, 1, 'b'), (8, 0x28, inode_blocks, 'i')] {
            let at = le(d, low, 4)? | high(hi);
            if at > 0 && at < blocks {
                spots.push((at.saturating_mul(block), n.saturating_mul(block), mark));
            }
        }
    }
    spots.sort_unstable();
    let mut merged: Vec<(u64, u64, char)> = vec![];
    for (at, n, mark) in spots {
        match merged.last_mut() {
            Some(last) if last.2 == mark && last.0.saturating_add(last.1) == at => last.1 = last.1.saturating_add(n),
            _ => merged.push((at, n, mark)),
        }
    }
    let name = |m| if m == 'b' { "block and inode bitmaps" } else { "inode tables" };
    zones.extend(merged.into_iter().map(|(at, n, m)| zone(name(m), m, at, n)));
    // The superblock keeps a copy of the journal's inode: with extents, the first of them.
    let has_journal = compat & 4 != 0;
    if has_journal && f(0xfd, 1)? == 1 {
        let j = s.get(0x10c..0x10c + 68)?;
        let length = le(j, 64, 4)?;
        if le(j, 0, 2)? == 0xf30a && le(j, 6, 2)? == 0 && le(j, 2, 2)? >= 1 {
            let at = le(j, 20, 4)? | le(j, 18, 2)? << 32;
            let n = (le(j, 16, 2)? & 0x7fff).saturating_mul(block).max(length);
            zones.push(zone("journal", 'j', at.saturating_mul(block), n));
        } else {
            zones.push(zone("journal", 'j', le(j, 0, 4)?.saturating_mul(block), length));
        }
    }
    let (stride, stripe) = (f(0x164, 2)?, f(0x170, 4)?);
    let mut told = vec![];
    if stride > 0 {
        told.push(format!("stride {} KiB", stride * block / 1024));
    }
    if stripe > 0 {
        told.push(format!("stripe width {} KiB", stripe * block / 1024));
    }
    let what = match () {
        () if incompat & 0x2c0 != 0 => "ext4",
        () if has_journal => "ext3",
        () => "ext2",
    };
    let step = per_group.checked_mul(block)?;
    let repeats = vec![Repeat { name: "block groups".into(), at: first * block, step, count: groups }];
    Some(Volume { what: what.into(), at: 0, len: size, cut: None, unit: block, data: first * block, zones, repeats, told })
}

fn f2fs(head: &[u8]) -> Option<Volume> {
    let s = head.get(1024..1024 + 128)?;
    if le(s, 0, 4)? != 0xf2f5_2010 {
        return None;
    }
    let f = |at| le(s, at, 4);
    let block = 1u64.checked_shl(u32::try_from(f(16)?).ok().filter(|&x| (9..=16).contains(&x))?)?;
    let segment = block.checked_shl(u32::try_from(f(20)?).ok().filter(|&x| x <= 16)?)?;
    let (sec, zon) = (f(24)?, f(28)?);
    if sec == 0 || zon == 0 {
        return None;
    }
    let size = le(s, 36, 8)?.checked_mul(block)?;
    let part =
        |name: &str, mark, at: usize, count: usize| Some(zone(name, mark, f(at)?.saturating_mul(block), f(count)?.saturating_mul(segment)));
    let zones = vec![
        zone("superblocks", 'r', 0, 2 * block.max(4096)),
        part("checkpoint", 'c', 76, 52)?,
        part("segment table", 's', 80, 56)?,
        part("node table", 'n', 84, 60)?,
        part("segment summaries", 'a', 88, 64)?,
    ];
    let main = f(92)?.saturating_mul(block);
    let step = segment.checked_mul(sec)?;
    let repeats = vec![Repeat { name: "sections".into(), at: main, step, count: f(44)? }];
    let mut told = vec![];
    if sec > 1 {
        told.push(format!("{sec} segments a section"));
    }
    if zon > 1 {
        told.push(format!("{zon} sections a zone"));
    }
    Some(Volume { what: "F2FS".into(), at: 0, len: size, cut: None, unit: block, data: main, zones, repeats, told })
}

/// Chunks read from the chunk tree.
const MOST_CHUNKS: usize = 4096;

fn btrfs(head: &[u8], read: &mut Read<'_>) -> Option<Volume> {
    let s = head.get(0x10000..0x10000 + 4096)?;
    if s.get(64..72)? != b"_BHRfS_M" {
        return None;
    }
    let (size, sector, node) = (le(s, 112, 8)?, le(s, 144, 4)?, le(s, 148, 4)?);
    let fine = |n: u64| n.is_power_of_two() && (512..=65536).contains(&n);
    if !fine(sector) || !fine(node) {
        return None;
    }
    // Logical start, length, type, physical start on this device.
    let mut chunks: Vec<(u64, u64, u64, u64)> = vec![];
    let device = le(s, 201, 8)?;
    let array = s.get(811..811 + (le(s, 160, 4)? as usize).min(2048))?;
    let mut at = 0;
    while let Some(item) = array.get(at..) {
        let (Some(key), Some(body)) = (le(item, 9, 8), item.get(17..)) else { break };
        let Some(used) = chunk(key, body, device, &mut chunks) else { break };
        at += 17 + used;
    }
    // The rest of the chunks are in the chunk tree, which itself lies in the system chunks just read.
    let mut todo = vec![le(s, 88, 8)?];
    let mut seen = 0;
    while let Some(logical) = todo.pop() {
        seen += 1;
        let place = chunks.iter().find(|c| logical >= c.0 && logical - c.0 < c.1).and_then(|c| c.3.checked_add(logical - c.0));
        let Some(leaf) = place.and_then(|p| read(p, node as usize)) else { continue };
        let (Some(n), Some(level)) = (le(&leaf, 96, 4), le(&leaf, 100, 1)) else { continue };
        for i in 0..(n as usize).min(node as usize / 25) {
            if level == 0 {
                let k = 101 + 25 * i;
                if let (Some(228), Some(key), Some(off)) = (le(&leaf, k + 8, 1), le(&leaf, k + 9, 8), le(&leaf, k + 17, 4))
                    && let Some(body) = leaf.get((101 + off as usize).min(leaf.len())..)
                    && chunks.len() < MOST_CHUNKS
                {
                    chunk(key, body, device, &mut chunks);
                }
            } else if let Some(child) = le(&leaf, 101 + 33 * i + 17, 8).filter(|_| level < 8 && seen + todo.len() < 256) {
                todo.push(child);
            }
        }
    }
    chunks.sort_unstable_by_key(|c| c.3);
    chunks.dedup();
    let zones: Vec<Zone> = std::iter::once(zone("superblock", 'r', 0x10000, 4096))
        .chain(chunks.iter().map(|&(_, len, kind, at)| match kind & 7 {
            1 => zone("data chunk", '#', at, len),
            2 => zone("system chunk", 'c', at, len),
            _ => zone("metadata chunk", 'm', at, len),
        }))
        .collect();
    let data = chunks.iter().filter(|c| c.2 & 1 != 0).map(|c| c.3).min().unwrap_or(1 << 20);
    Some(Volume { what: "btrfs".into(), at: 0, len: size, cut: None, unit: sector, data, zones, repeats: vec![], told: vec![] })
}

/// One chunk item: takes the stripes on this device; gives the bytes of the item.
fn chunk(logical: u64, b: &[u8], device: u64, out: &mut Vec<(u64, u64, u64, u64)>) -> Option<usize> {
    let (length, kind, stripes) = (le(b, 0, 8)?, le(b, 24, 8)?, le(b, 44, 2)? as usize);
    if stripes == 0 || stripes > 64 {
        return None;
    }
    for i in 0..stripes {
        let s = 48 + 32 * i;
        if le(b, s, 8)? == device {
            out.push((logical, length, kind, le(b, s + 8, 8)?));
        }
    }
    Some(48 + 32 * stripes)
}

fn swap(head: &[u8]) -> Option<Volume> {
    // The header ends the first page, whose size is that of the machine which made it.
    let page = [4096usize, 8192, 16384, 65536]
        .into_iter()
        .find(|p| head.get(p - 10..*p).is_some_and(|m| m == b"SWAPSPACE2" || m == b"SWAP-SPACE"))?;
    let last = le(head, 1028, 4)?;
    let page = page as u64;
    let size = last.saturating_add(1).saturating_mul(page);
    let zones = vec![zone("header", 'r', 0, page)];
    Some(Volume { what: "swap".into(), at: 0, len: size, cut: None, unit: page, data: page, zones, repeats: vec![], told: vec![] })
}
