//! Partition tables: MBR with logical partitions, and GPT. Reading only.

/// Reads `len` bytes at a position; none where that fails.
pub type Read<'a> = dyn FnMut(u64, usize) -> Option<Vec<u8>> + 'a;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Mbr,
    Gpt,
}

/// One partition as the table has it: not checked against the size of the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Number as the kernel counts.
    pub number: u32,
    /// First byte on the disk.
    pub start: u64,
    /// Length in bytes.
    pub size: u64,
    /// MBR type byte, or the first field of the GPT type.
    pub kind: u32,
}

/// The partition table of a disk with this logical sector; none where there is none. A GPT wins over its protective MBR.
pub fn table(read: &mut Read<'_>, sector: u64) -> Option<(Scheme, Vec<Partition>)> {
    if let Some(found) = gpt(read, sector) {
        return Some((Scheme::Gpt, found));
    }
    mbr(read, sector).map(|found| (Scheme::Mbr, found))
}

fn u32_at(b: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(b.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(b: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(b.get(at..at + 8)?.try_into().ok()?))
}

/// Type, first sector and number of sectors of the four entries; none where this is no table at all.
fn entries(boot: &[u8]) -> Option<[(u8, u64, u64); 4]> {
    if boot.get(510..512)? != [0x55, 0xaa] {
        return None;
    }
    let mut out = [(0, 0, 0); 4];
    for (i, slot) in out.iter_mut().enumerate() {
        let e = boot.get(446 + 16 * i..462 + 16 * i)?;
        // A boot sector of a filesystem has code here; a table has 00 or 80.
        if e[0] & 0x7f != 0 {
            return None;
        }
        *slot = (e[4], u64::from(u32_at(e, 8)?), u64::from(u32_at(e, 12)?));
    }
    Some(out)
}

fn extended(kind: u8) -> bool {
    matches!(kind, 0x05 | 0x0f | 0x85)
}

fn mbr(read: &mut Read<'_>, sector: u64) -> Option<Vec<Partition>> {
    let first = entries(&read(0, 512)?)?;
    let mut found = Vec::new();
    let mut chain = None;
    for (i, &(kind, start, count)) in first.iter().enumerate() {
        if kind == 0 || count == 0 || start == 0 {
            continue;
        }
        if extended(kind) {
            chain = chain.or(Some(start));
        }
        found.push(Partition { number: i as u32 + 1, start: start * sector, size: count * sector, kind: kind.into() });
    }
    // Logical partitions: a chain of tables, each relative to itself for its partition, to the first for its successor.
    let (mut at, mut number) = (chain, 5);
    while let (Some(here), Some(base), 5..=64) = (at, chain, number) {
        let Some(table) = read(here * sector, 512).and_then(|b| entries(&b)) else { break };
        let (kind, start, count) = table[0];
        if kind != 0 && count != 0 {
            found.push(Partition { number, start: (here + start) * sector, size: count * sector, kind: kind.into() });
        }
        number += 1;
        at = (extended(table[1].0) && table[1].1 != 0).then(|| base + table[1].1);
    }
    (!found.is_empty()).then_some(found)
}

fn gpt(read: &mut Read<'_>, sector: u64) -> Option<Vec<Partition>> {
    let header = read(sector, 512)?;
    if !header.starts_with(b"EFI PART") {
        return None;
    }
    let size = u32_at(&header, 12)? as usize;
    let mut summed = header.get(..size.clamp(92, 512))?.to_vec();
    summed[16..20].fill(0);
    if crc32fast::hash(&summed) != u32_at(&header, 16)? {
        return None;
    }
    let (at, count, each) = (u64_at(&header, 72)?, u32_at(&header, 80)?, u32_at(&header, 84)? as usize);
    if !(128..=4096).contains(&each) || count > 1024 {
        return None;
    }
    let list = read(at.checked_mul(sector)?, each * count as usize)?;
    let mut found = Vec::new();
    for (i, e) in list.chunks_exact(each).enumerate() {
        let (kind, first, last) = (u32_at(e, 0)?, u64_at(e, 32)?, u64_at(e, 40)?);
        let size = last.checked_sub(first).and_then(|n| n.checked_add(1)?.checked_mul(sector));
        if let (true, Some(size), Some(start)) = (e[..16].iter().any(|&b| b != 0), size, first.checked_mul(sector)) {
            found.push(Partition { number: i as u32 + 1, start, size, kind });
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn on(disk: &[u8]) -> impl FnMut(u64, usize) -> Option<Vec<u8>> + '_ {
        |at, len| disk.get(usize::try_from(at).ok()?..usize::try_from(at).ok()?.checked_add(len)?).map(<[u8]>::to_vec)
    }

    fn entry(disk: &mut [u8], table: usize, slot: usize, kind: u8, start: u32, count: u32) {
        let e = table * 512 + 446 + 16 * slot;
        disk[e + 4] = kind;
        disk[e + 8..e + 12].copy_from_slice(&start.to_le_bytes());
        disk[e + 12..e + 16].copy_from_slice(&count.to_le_bytes());
        disk[table * 512 + 510..table * 512 + 512].copy_from_slice(&[0x55, 0xaa]);
    }

    #[test]
    fn primary_and_logical_partitions() {
        let mut disk = vec![0; 512 * 400];
        entry(&mut disk, 0, 0, 0x0c, 8, 90);
        entry(&mut disk, 0, 2, 0x05, 100, 300);
        entry(&mut disk, 100, 0, 0x83, 2, 50);
        entry(&mut disk, 100, 1, 0x05, 100, 100);
        entry(&mut disk, 200, 0, 0x83, 2, 60);
        let (scheme, found) = table(&mut on(&disk), 512).unwrap();
        assert_eq!(scheme, Scheme::Mbr);
        let seen: Vec<_> = found.iter().map(|p| (p.number, p.start / 512, p.size / 512)).collect();
        assert_eq!(seen, [(1, 8, 90), (3, 100, 300), (5, 102, 50), (6, 202, 60)]);
    }

    #[test]
    fn a_chain_that_bites_its_tail_ends() {
        let mut disk = vec![0; 512 * 20];
        entry(&mut disk, 0, 0, 0x05, 10, 10);
        entry(&mut disk, 10, 0, 0x83, 1, 1);
        disk[10 * 512 + 446 + 16 + 4] = 5;
        disk[10 * 512 + 446 + 16 + 8] = 1;
        entry(&mut disk, 11, 0, 0x83, 1, 1);
        entry(&mut disk, 11, 1, 0x05, 1, 1);
        assert!(table(&mut on(&disk), 512).unwrap().1.len() <= 64);
    }

    #[test]
    fn code_or_an_empty_table_is_no_table() {
        let mut disk = vec![0; 1024];
        disk[510..512].copy_from_slice(&[0x55, 0xaa]);
        assert_eq!(table(&mut on(&disk), 512), None);
        entry(&mut disk, 0, 0, 0x0c, 1, 1);
        assert!(table(&mut on(&disk), 512).is_some());
        disk[446] = 0x12;
        assert_eq!(table(&mut on(&disk), 512), None);
    }

    fn gpt_disk() -> Vec<u8> {
        let mut disk = vec![0; 512 * 40];
        let e = 1024 + 128;
        disk[e..e + 4].copy_from_slice(&0x0fc6_3dafu32.to_le_bytes());
        disk[e + 32..e + 40].copy_from_slice(&8192u64.to_le_bytes());
        disk[e + 40..e + 48].copy_from_slice(&16383u64.to_le_bytes());
        let h = 512;
        disk[h..h + 8].copy_from_slice(b"EFI PART");
        disk[h + 12..h + 16].copy_from_slice(&92u32.to_le_bytes());
        disk[h + 72..h + 80].copy_from_slice(&2u64.to_le_bytes());
        disk[h + 80..h + 84].copy_from_slice(&128u32.to_le_bytes());
        disk[h + 84..h + 88].copy_from_slice(&128u32.to_le_bytes());
        let sum = crc32fast::hash(&disk[h..h + 92]);
        disk[h + 16..h + 20].copy_from_slice(&sum.to_le_bytes());
        disk
    }

    #[test]
    fn gpt_with_a_gap_keeps_its_numbers() {
        let disk = gpt_disk();
        let (scheme, found) = table(&mut on(&disk), 512).unwrap();
        assert_eq!(scheme, Scheme::Gpt);
        assert_eq!(found, [Partition { number: 2, start: 4 << 20, size: 4 << 20, kind: 0x0fc6_3daf }]);
        let mut broken = disk.clone();
        broken[512 + 80] ^= 1;
        assert_eq!(table(&mut on(&broken), 512), None);
    }

    proptest! {
        #[test]
        fn arbitrary_disks_never_panic(mut disk in proptest::collection::vec(any::<u8>(), 0..4096), tweak: bool) {
            if tweak && disk.len() >= 1024 {
                disk[510..512].copy_from_slice(&[0x55, 0xaa]);
                for i in 0..4 { disk[446 + 16 * i] &= 0x80; }
                disk[450] = 5;
                disk[512..520].copy_from_slice(b"EFI PART");
            }
            let _ = table(&mut on(&disk), 512);
        }

        #[test]
        fn arbitrary_entries_of_a_valid_gpt_never_panic(noise in proptest::collection::vec(any::<u8>(), 256)) {
            let mut disk = gpt_disk();
            disk[1024..1280].copy_from_slice(&noise);
            let _ = table(&mut on(&disk), 512);
        }
    }
}
