//! What lies on a target before it is overwritten: partition tables, filesystems, RAID, LVM, encryption, swap.

use super::partitions::{Read, Scheme, table};
use crate::device::{Device, Result};
use crate::units::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One thing found. Displays as "partition 1: FAT32, 32 KiB clusters, data area at 4 MiB, label CAMERA".
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// Where it begins, in bytes from the start of the target.
    pub at: u64,
    /// Number of the partition it fills; none where it belongs to the target as a whole.
    pub partition: Option<u32>,
    /// Its name, such as "FAT32", "GPT", "ext4".
    pub what: String,
    /// What more is known of it; may be empty.
    pub detail: String,
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(n) = self.partition {
            write!(f, "partition {n} at {}: ", Bytes(self.at))?;
        }
        f.write_str(&self.what)?;
        if self.detail.is_empty() { Ok(()) } else { write!(f, ", {}", self.detail) }
    }
}

/// More partitions than this are not looked into; their number is still told.
const PARTITIONS: usize = 32;

/// Lists what is recognised on a target and in its partitions. A place that cannot be read is listed as "unreadable".
///
/// # Errors
/// The first sector cannot be read: then nothing can be said.
pub fn signatures(dev: &mut dyn Device) -> Result<Vec<Signature>> {
    let (size, sector) = (dev.geometry().size, dev.geometry().sector);
    dev.load(0, &mut vec![0; sector.min(size) as usize])?;
    let mut unreadable = Vec::new();
    let mut read = |at: u64, len: usize| {
        let len = len.min(usize::try_from(size.checked_sub(at)?).ok()?);
        let mut bytes = vec![0; len];
        match dev.load(at, &mut bytes) {
            Ok(()) => Some(bytes),
            Err(_) => {
                unreadable.push(at);
                None
            }
        }
    };
    let mut found = Vec::new();
    let fs = filesystem(&mut read, 0, size);
    // The boot sector of a filesystem on the whole target may look like a partition table.
    let parts = if fs.iter().any(|s| s.0.contains("FAT") || s.0 == "NTFS") { None } else { table(&mut read, sector) };
    if let Some((scheme, parts)) = parts {
        let what = if scheme == Scheme::Gpt { "GPT" } else { "MBR" };
        let detail = if parts.len() == 1 { "1 partition".into() } else { format!("{} partitions", parts.len()) };
        found.push(Signature { at: 0, partition: None, what: what.into(), detail });
        for p in parts.iter().take(PARTITIONS).filter(|p| p.start < size) {
            let length = p.size.min(size - p.start);
            let inside = filesystem(&mut read, p.start, length);
            let named = |(what, detail): (String, String)| Signature { at: p.start, partition: Some(p.number), what, detail };
            if inside.is_empty() {
                found.push(named((format!("{} of unknown content", Bytes(p.size)), String::new())));
            }
            found.extend(inside.into_iter().map(named));
        }
    }
    found.extend(fs.into_iter().map(|(what, detail)| Signature { at: 0, partition: None, what, detail }));
    found.extend(unreadable.into_iter().map(|at| Signature {
        at,
        partition: None,
        what: "unreadable".into(),
        detail: format!("at byte {at}"),
    }));
    Ok(found)
}

fn le(b: &[u8], at: usize, n: usize) -> u64 {
    b.get(at..at + n).map_or(0, |x| x.iter().rev().fold(0, |v, &d| v << 8 | u64::from(d)))
}

fn label(b: &[u8], at: usize, n: usize) -> String {
    let raw = b.get(at..at + n).unwrap_or(&[]);
    let raw = &raw[..raw.iter().position(|&c| c == 0).unwrap_or(raw.len())];
    let text: String = String::from_utf8_lossy(raw).trim().chars().filter(|c| !c.is_control()).collect();
    if text.is_empty() { text } else { format!("label {text}") }
}

/// Name and detail of everything recognised in a volume. Positions are those of the formats' own documents.
fn filesystem(read: &mut Read<'_>, start: u64, size: u64) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let head = read(start, size.min(68 * 1024) as usize).unwrap_or_default();
    let is = |at: usize, magic: &[u8]| head.get(at..at + magic.len()) == Some(magic);
    let mut add = |what: &str, detail: String| found.push((what.to_string(), detail));
    if let Ok(v) = nandscope_fat::recognise(&head) {
        add(&v.kind.to_string(), describe(&v, start));
    }
    if is(3, b"NTFS    ") {
        add("NTFS", String::new());
    }
    if is(1024 + 56, &[0x53, 0xef]) {
        let journal = le(&head, 1024 + 0x5c, 4) & 4 != 0;
        let ext4 = le(&head, 1024 + 0x60, 4) & 0x2c0 != 0;
        let block = 1024u64.checked_shl(le(&head, 1024 + 24, 4).min(20) as u32).unwrap_or(0);
        let mut detail = format!("{} blocks", Bytes(block));
        let name = label(&head, 1024 + 0x78, 16);
        if !name.is_empty() {
            detail = format!("{detail}, {name}");
        }
        add(
            if ext4 {
                "ext4"
            } else if journal {
                "ext3"
            } else {
                "ext2"
            },
            detail,
        );
    }
    if is(1024, &0xf2f5_2010u32.to_le_bytes()) {
        add("F2FS", String::new());
    }
    if is(0x10040, b"_BHRfS_M") {
        add("btrfs", label(&head, 0x1012b, 256));
    }
    if is(0, b"XFSB") {
        add("XFS", label(&head, 108, 12));
    }
    if is(0x8001, b"CD001") {
        add("ISO 9660", label(&head, 0x8028, 32));
    }
    if is(0, b"hsqs") {
        add("squashfs", String::new());
    }
    // The swap header ends the first page, whose size is that of the machine which made it.
    for page in [4096usize, 8192, 16384, 65536] {
        if is(page - 10, b"SWAPSPACE2") || is(page - 10, b"SWAP-SPACE") {
            add("swap", String::new());
            break;
        }
    }
    if is(0, b"LUKS\xba\xbe") {
        add("LUKS", format!("version {}", le(&head, 7, 1) | le(&head, 6, 1) << 8));
    }
    if (0..4).any(|s| is(512 * s, b"LABELONE") && is(512 * s + 24, b"LVM2 001")) {
        add("LVM2 physical volume", String::new());
    }
    let md = 0xa92b_4efcu32.to_le_bytes();
    // Version 1.1 at the start, 1.2 at 4 KiB, 1.0 at 8 KiB before the end on a 4 KiB grid, 0.90 in the last whole 64 KiB.
    let tail = [("1.0", size.checked_sub(8192).map(|x| x & !4095)), ("0.90", (size & !65535).checked_sub(65536))];
    for (version, at) in [("1.1", 0), ("1.2", 4096)] {
        if is(at, &md) {
            add("Linux RAID member", format!("version {version}"));
        }
    }
    for (version, at) in tail {
        if let Some(at) = at.filter(|&a| a > 4096)
            && read(start + at, 4).as_deref() == Some(&md)
        {
            add("Linux RAID member", format!("version {version}"));
        }
    }
    found
}

/// Where its data begin counts from the start of the target, as everything that is listed.
fn describe(v: &nandscope_fat::Volume, start: u64) -> String {
    let mut text = format!("{} clusters, data area at {}", Bytes(v.cluster), Bytes(start + v.data_start));
    if let Some(name) = &v.label {
        text.push_str(&format!(", label {name}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{KIB, MIB};
    use proptest::prelude::*;

    /// What is found in 4 MiB of zeros with these bytes in them.
    fn found(parts: &[(u64, &[u8])]) -> Vec<String> {
        let mut disk = vec![0; 4 * MIB as usize];
        for (at, bytes) in parts {
            disk[*at as usize..][..bytes.len()].copy_from_slice(bytes);
        }
        let mut read = |at: u64, len: usize| disk.get(at as usize..at as usize + len).map(<[u8]>::to_vec);
        filesystem(&mut read, 0, 4 * MIB).into_iter().map(|(a, b)| if b.is_empty() { a } else { format!("{a}, {b}") }).collect()
    }

    #[test]
    fn each_format_is_known_by_its_own_mark() {
        let md = 0xa92b_4efcu32.to_le_bytes();
        type Part<'a> = (u64, &'a [u8]);
        let all: [(&[Part], &str); 17] = [
            (&[(3, b"NTFS    ")], "NTFS"),
            (&[(1080, &[0x53, 0xef])], "ext2, 1 KiB blocks"),
            (&[(1080, &[0x53, 0xef]), (1024 + 24, &[2]), (1024 + 0x5c, &[4])], "ext3, 4 KiB blocks"),
            (&[(1080, &[0x53, 0xef]), (1024 + 0x60, &[0x40]), (1024 + 0x78, b"boot")], "ext4, 1 KiB blocks, label boot"),
            (&[(1024, &[0x10, 0x20, 0xf5, 0xf2])], "F2FS"),
            (&[(0x10040, b"_BHRfS_M"), (0x1012b, b"pool")], "btrfs, label pool"),
            (&[(0, b"XFSB"), (108, b"data")], "XFS, label data"),
            (&[(0x8001, b"CD001"), (0x8028, b"DISC            ")], "ISO 9660, label DISC"),
            (&[(0, b"hsqs")], "squashfs"),
            (&[(4086, b"SWAPSPACE2")], "swap"),
            (&[(65526, b"SWAPSPACE2")], "swap"),
            (&[(0, b"LUKS\xba\xbe\x00\x02")], "LUKS, version 2"),
            (&[(512, b"LABELONE"), (512 + 24, b"LVM2 001")], "LVM2 physical volume"),
            (&[(0, &md)], "Linux RAID member, version 1.1"),
            (&[(4096, &md)], "Linux RAID member, version 1.2"),
            (&[(4 * MIB - 8 * KIB, &md)], "Linux RAID member, version 1.0"),
            (&[(4 * MIB - 64 * KIB, &md)], "Linux RAID member, version 0.90"),
        ];
        for (parts, want) in all {
            assert_eq!(found(parts), [want]);
        }
        assert_eq!(found(&[]), Vec::<String>::new());
    }

    #[test]
    fn a_place_that_cannot_be_read_is_listed_and_the_rest_is_still_found() {
        use crate::device::{Access, Device, DeviceError, Geometry, Timed};
        /// Swap with a bad last sector.
        struct Bad(Geometry);
        impl Device for Bad {
            fn geometry(&self) -> &Geometry {
                &self.0
            }
            fn access(&mut self, _: Access) -> Result<Timed> {
                Err(DeviceError::Unsupported("access".into()))
            }
            fn now(&self) -> crate::units::Nanos {
                crate::units::Nanos(0)
            }
            fn idle(&mut self, _: crate::units::Nanos) {}
            fn load(&mut self, at: u64, into: &mut [u8]) -> Result<()> {
                if at > MIB {
                    return Err(DeviceError::Io { op: "read", at, len: into.len() as u64, source: std::io::Error::other("bad") });
                }
                if at == 0 && into.len() > 4096 {
                    into[4086..4096].copy_from_slice(b"SWAPSPACE2");
                }
                Ok(())
            }
            fn store(&mut self, _: u64, _: &[u8]) -> Result<()> {
                Err(DeviceError::Unsupported("store".into()))
            }
        }
        let mut bad = Bad(Geometry { size: 2 * MIB, sector: 512, max_request: None, offset: 0, write_cache: false });
        let found: Vec<String> = signatures(&mut bad).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(found, ["swap", "unreadable, at byte 2088960", "unreadable, at byte 2031616"]);
    }

    proptest! {
        #[test]
        fn arbitrary_content_never_panics(noise in proptest::collection::vec(any::<u8>(), 0..9000), size in 0u64..9000) {
            let mut read = |at: u64, len: usize| {
                let at = at as usize;
                noise.get(at..at.checked_add(len)?).map(<[u8]>::to_vec)
            };
            let _ = filesystem(&mut read, 0, size);
            let mut text = noise.clone();
            for (at, magic) in [(0usize, &b"LUKS\xba\xbe"[..]), (1080, &[0x53, 0xef]), (0, b"XFSB")] {
                if let Some(place) = text.get_mut(at..at + magic.len()) {
                    place.copy_from_slice(magic);
                }
                let mut read = |at: u64, len: usize| text.get(at as usize..at as usize + len.min(text.len())).map(<[u8]>::to_vec);
                let _ = filesystem(&mut read, 0, size);
            }
        }
    }
}
