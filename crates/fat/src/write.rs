//! The bytes of a new volume, in an order that leaves a recognisable state wherever it is interrupted.
//!
//! First the old table and every old boot sector go, and sector 0 says that a format is under way. Then tables, bitmap and
//! root directory, then the copies of the boot sector, then the boot sector, and last the partition table. Until that last
//! sector no system mounts anything, and [`is_unfinished`] tells what happened.

use crate::plan::{Layout, Partition};
use crate::{FatType, upcase};

/// One step of a format; positions in bytes on the target, multiples of the sector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Zeros.
    Zero {
        /// First byte.
        at: u64,
        /// Length in bytes.
        len: u64,
    },
    /// These bytes.
    Put {
        /// First byte.
        at: u64,
        /// Whole sectors.
        bytes: Vec<u8>,
    },
    /// All before this reaches the medium before anything after it.
    Flush,
}

const MARK: &[u8] = b"nandscope: a format of this card was interrupted; there is no file system on it. Format it again.\n";
/// What an old table, an old file system on the whole disk and their labels may occupy in front of the partition.
const OLD: u64 = 1 << 20;
/// Sectors of a backup GPT at the end of a disk.
const OLD_GPT: u64 = 33;

/// True where sector 0 says that a format was interrupted.
pub fn is_unfinished(sector0: &[u8]) -> bool {
    sector0.starts_with(MARK)
}

/// Bytes to be filled in at fixed places.
struct Sector(Vec<u8>);

impl Sector {
    fn new(len: u64) -> Sector {
        Sector(vec![0; len as usize])
    }
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }
    fn u16(&mut self, at: usize, v: u64) {
        self.put(at, &(v as u16).to_le_bytes());
    }
    fn u32(&mut self, at: usize, v: u64) {
        self.put(at, &(v as u32).to_le_bytes());
    }
    fn u64(&mut self, at: usize, v: u64) {
        self.put(at, &v.to_le_bytes());
    }
    fn signed(mut self) -> Sector {
        self.put(510, &[0x55, 0xaa]);
        self
    }
}

/// Heads and sectors a track that the SD convention declares for a capacity in bytes.
fn geometry(capacity: u64) -> (u64, u64) {
    const MIB: u64 = 1 << 20;
    let heads = match capacity.div_ceil(MIB) {
        0..=16 => 2,
        17..=32 => 4,
        33..=128 => 8,
        129..=504 => 16,
        505..=1008 => 32,
        1009..=2016 => 64,
        2017..=4032 => 128,
        _ => 255,
    };
    (heads, if capacity <= 256 * MIB { 32 } else { 63 })
}

/// Label as the FAT directory has it: upper case, padded, what it cannot hold as underscore.
pub(crate) fn short_label(label: Option<&str>) -> [u8; 11] {
    let mut out = *b"NO NAME    ";
    if let Some(l) = label {
        out.fill(b' ');
        for (slot, c) in out.iter_mut().zip(l.chars()) {
            let c = c.to_ascii_uppercase();
            let ok = c.is_ascii_alphanumeric() || " !#$%&'()-@^_`{}~".contains(c);
            *slot = if ok { c as u8 } else { b'_' };
        }
    }
    out
}

impl Layout {
    /// The label as it stands on the volume: FAT has capitals, digits and some signs only.
    pub fn label(&self) -> Option<String> {
        let asked = self.options.label.as_deref()?;
        let exfat = self.volume.kind == FatType::ExFat;
        Some(if exfat { asked.into() } else { String::from_utf8_lossy(&short_label(Some(asked))).trim_end().into() })
    }

    /// The steps of the format, in order. Nothing outside the target is named; memory is a few sectors, not the tables.
    pub fn steps(&self) -> Vec<Step> {
        let (o, start) = (&self.options, self.start());
        let sector = o.sector;
        let target_end = o.capacity / sector * sector;
        let mut steps = vec![];
        let mut mark = Sector::new(sector);
        mark.put(0, MARK);
        steps.extend([Step::Put { at: 0, bytes: mark.0 }, Step::Flush]);
        let body = match self.volume.kind {
            FatType::ExFat => self.exfat_body(),
            _ => self.fat_body(),
        };
        if let Some(p) = self.partition {
            let front = p.start.min(OLD.next_multiple_of(sector));
            steps.push(Step::Zero { at: sector, len: front - sector });
            let tail = target_end.saturating_sub(OLD_GPT * sector).max(start + self.volume.data_start);
            steps.push(Step::Zero { at: tail, len: target_end - tail });
        }
        steps.extend(body.system);
        steps.push(Step::Flush);
        steps.extend(body.copies);
        steps.push(Step::Flush);
        steps.push(body.boot);
        steps.push(Step::Flush);
        if let Some(p) = self.partition {
            steps.extend([Step::Put { at: 0, bytes: self.mbr(p) }, Step::Flush]);
        }
        steps.retain(|s| !matches!(s, Step::Zero { len: 0, .. }));
        steps
    }

    fn mbr(&self, p: Partition) -> Vec<u8> {
        let o = &self.options;
        let (heads, track) = geometry(o.capacity);
        let chs = |sector: u64| {
            let (c, rest) = (sector / (heads * track), sector % (heads * track));
            if c > 1023 {
                return [0xfe, 0xff, 0xff];
            }
            [(rest / track) as u8, (rest % track + 1) as u8 | (c >> 8 << 6) as u8, c as u8]
        };
        let (first, count) = (p.start / o.sector, p.size / o.sector);
        let mut s = Sector::new(o.sector).signed();
        s.u32(440, u64::from(o.serial));
        s.put(447, &chs(first));
        s.put(450, &[p.kind]);
        s.put(451, &chs(first + count - 1));
        s.u32(454, first);
        s.u32(458, count);
        s.0
    }

    fn fat_body(&self) -> Body {
        let (v, o, start) = (&self.volume, &self.options, self.start());
        let sector = v.sector;
        let put = |at: u64, s: Sector| Step::Put { at: start + at, bytes: s.0 };
        let wide = v.kind == FatType::Fat32;
        let label = short_label(o.label.as_deref());
        let mut b = Sector::new(sector).signed();
        b.put(0, if wide { &[0xeb, 0x58, 0x90] } else { &[0xeb, 0x3c, 0x90] });
        b.put(3, b"MSWIN4.1"); // what the specification recommends for the sake of old readers
        b.u16(11, sector);
        b.0[13] = (v.cluster / sector) as u8;
        b.u16(14, v.fat_start / sector);
        b.0[16] = v.fats;
        let root_sectors = v.root_start.map_or(0, |r| v.data_start - r);
        b.u16(17, root_sectors / 32);
        let total = v.size / sector;
        let short = !wide && total < 0x1_0000;
        b.u16(19, if short { total } else { 0 });
        b.0[21] = 0xf8;
        let (heads, track) = geometry(o.capacity);
        b.u16(24, track);
        b.u16(26, heads);
        b.u32(28, (o.offset + start) / sector);
        b.u32(32, if short { 0 } else { total });
        let table = v.fat_length / sector;
        let ext = if wide {
            b.u32(36, table);
            b.u32(44, 2);
            b.u16(48, 1);
            b.u16(50, 6);
            64
        } else {
            b.u16(22, table);
            36
        };
        b.0[ext] = 0x80;
        b.0[ext + 2] = 0x29;
        b.u32(ext + 3, u64::from(v.serial));
        b.put(ext + 7, &label);
        b.put(ext + 18, format!("{:<8}", v.kind).as_bytes());
        // For whoever boots from it: ask the BIOS for the next device, then halt.
        b.put(ext + 26, &[0xcd, 0x18, 0xf4, 0xeb, 0xfd]);
        let mut system = vec![Step::Zero { at: start + sector, len: v.data_start - sector }];
        let head: &[u8] = match v.kind {
            FatType::Fat12 => &[0xf8, 0xff, 0xff],
            FatType::Fat16 => &[0xf8, 0xff, 0xff, 0xff],
            _ => &[0xf8, 0xff, 0xff, 0x0f, 0xff, 0xff, 0xff, 0x0f, 0xff, 0xff, 0xff, 0x0f],
        };
        for copy in 0..u64::from(v.fats) {
            let mut s = Sector::new(sector);
            s.put(0, head);
            system.push(put(v.fat_start + copy * v.fat_length, s));
        }
        if wide {
            system.push(Step::Zero { at: start + v.data_start, len: v.cluster });
        }
        if o.label.is_some() {
            let mut s = Sector::new(sector);
            s.put(0, &label);
            s.0[11] = 8;
            // A date is wanted: 1 January 1980, the first there is.
            s.u16(24, 0x21);
            system.push(put(v.root_start.unwrap_or(v.data_start), s));
        }
        let mut copies = vec![];
        if wide {
            let mut info = Sector::new(sector).signed();
            info.u32(0, 0x4161_5252);
            info.u32(484, 0x6141_7272);
            info.u32(488, u64::from(v.clusters) - 1);
            info.u32(492, 3);
            let third = || Sector::new(sector).signed();
            copies.extend([put(sector, Sector(info.0.clone())), put(2 * sector, third())]);
            copies.extend([put(6 * sector, Sector(b.0.clone())), put(7 * sector, info), put(8 * sector, third())]);
        }
        Body { system, copies, boot: put(0, b) }
    }

    fn exfat_body(&self) -> Body {
        let (v, o, start) = (&self.volume, &self.options, self.start());
        let sector = v.sector;
        let root = u64::from(v.root_cluster.unwrap_or(2));
        let at = |cluster: u64| start + v.data_start + (cluster - 2) * v.cluster;
        let upcase = upcase::table();
        let bitmap = u64::from(v.clusters).div_ceil(8);
        let bitmap_clusters = bitmap.div_ceil(v.cluster);
        let upcase_first = 2 + bitmap_clusters;
        let used = root - 1;

        let mut b = Sector::new(sector).signed();
        b.put(0, &[0xeb, 0x76, 0x90]);
        b.put(3, b"EXFAT   ");
        b.u64(64, (o.offset + start) / sector);
        b.u64(72, v.size / sector);
        b.u32(80, v.fat_start / sector);
        b.u32(84, v.fat_length / sector);
        b.u32(88, v.data_start / sector);
        b.u32(92, u64::from(v.clusters));
        b.u32(96, root);
        b.u32(100, u64::from(v.serial));
        b.u16(104, 0x100);
        b.0[108] = sector.trailing_zeros() as u8;
        b.0[109] = (v.cluster / sector).trailing_zeros() as u8;
        b.0[110] = 1;
        b.0[111] = 0x80;
        b.0[112] = (used * 100 / u64::from(v.clusters)) as u8;
        b.put(120, &[0xcd, 0x18, 0xf4, 0xeb, 0xfd]);

        // Boot sector, eight extended ones, OEM parameters, reserved, checksum.
        let mut region = b.0.clone();
        for _ in 0..8 {
            let mut s = Sector::new(sector);
            s.put(sector as usize - 4, &[0, 0, 0x55, 0xaa]);
            region.extend(s.0);
        }
        region.resize(11 * sector as usize, 0);
        let sum = boot_checksum(&region);
        region.extend(sum.to_le_bytes().repeat(sector as usize / 4));

        let mut system = vec![
            Step::Zero { at: start + sector, len: v.fat_start + v.fat_length - sector },
            Step::Zero { at: at(2), len: (used) * v.cluster },
        ];
        // Each of the three is one chain of neighbours.
        let mut chain: Vec<u32> = vec![0xffff_fff8, 0xffff_ffff];
        for (first, end) in [(2, upcase_first), (upcase_first, root), (root, root + 1)] {
            chain.extend((first..end).map(|c| if c + 1 == end { u32::MAX } else { c as u32 + 1 }));
        }
        let whole = |mut bytes: Vec<u8>| {
            bytes.resize(bytes.len().next_multiple_of(sector as usize), 0);
            bytes
        };
        system.push(Step::Put { at: start + v.fat_start, bytes: whole(chain.iter().flat_map(|c| c.to_le_bytes()).collect()) });
        let bits: Vec<u8> = (0..used.div_ceil(8)).map(|i| (0..8).map(|n| u8::from(8 * i + n < used) << n).sum()).collect();
        system.push(Step::Put { at: at(2), bytes: whole(bits) });
        let sum = upcase::checksum(&upcase);
        let upcase_len = upcase.len() as u64;
        system.push(Step::Put { at: at(upcase_first), bytes: whole(upcase) });
        let mut dir = Sector::new(sector);
        let label: Vec<u16> = o.label.iter().flat_map(|l| l.encode_utf16()).take(11).collect();
        dir.put(0, &[if label.is_empty() { 0x03 } else { 0x83 }, label.len() as u8]);
        for (i, c) in label.iter().enumerate() {
            dir.put(2 + 2 * i, &c.to_le_bytes());
        }
        dir.0[32] = 0x81;
        dir.u32(52, 2);
        dir.u64(56, bitmap);
        dir.0[64] = 0x82;
        dir.u32(68, u64::from(sum));
        dir.u32(84, upcase_first);
        dir.u64(88, upcase_len);
        system.push(Step::Put { at: at(root), bytes: dir.0 });

        let rest = region.split_off(sector as usize);
        let copies = vec![
            Step::Put { at: start + sector, bytes: rest.clone() },
            Step::Put { at: start + 12 * sector, bytes: [b.0.clone(), rest].concat() },
        ];
        Body { system, copies, boot: Step::Put { at: start, bytes: b.0 } }
    }

    /// Writes the volume through `write` (position, bytes; every call whole sectors, at most 1 MiB) and `flush`.
    ///
    /// # Errors
    /// The first error of either; what then lies on the target is recognisable (see [`is_unfinished`]).
    pub fn write<E>(&self, mut write: impl FnMut(u64, &[u8]) -> Result<(), E>, mut flush: impl FnMut() -> Result<(), E>) -> Result<(), E> {
        let zeros = vec![0; PIECE as usize];
        for step in self.steps() {
            match step {
                Step::Zero { at, len } => {
                    for from in (at..at + len).step_by(PIECE as usize) {
                        write(from, &zeros[..PIECE.min(at + len - from) as usize])?;
                    }
                }
                Step::Put { at, bytes } => {
                    for (i, piece) in bytes.chunks(PIECE as usize).enumerate() {
                        write(at + i as u64 * PIECE, piece)?;
                    }
                }
                Step::Flush => flush()?,
            }
        }
        Ok(())
    }

    /// Bytes that [`Layout::write`] writes.
    pub fn bytes_written(&self) -> u64 {
        self.steps()
            .iter()
            .map(|s| match s {
                Step::Zero { len, .. } => *len,
                Step::Put { bytes, .. } => bytes.len() as u64,
                Step::Flush => 0,
            })
            .sum()
    }

    /// Reads everything back through `read` (position, buffer) and compares it with what was to be written. Gives the position
    /// of the first sector that differs, or none.
    ///
    /// # Errors
    /// The first error of `read`.
    pub fn verify<E>(&self, mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>) -> Result<Option<u64>, E> {
        let steps = self.steps();
        let mut buffer = vec![0; PIECE as usize];
        let mut want = vec![0; PIECE as usize];
        for (i, step) in steps.iter().enumerate() {
            let (at, len) = match step {
                Step::Zero { at, len } => (*at, *len),
                Step::Put { at, bytes } => (*at, bytes.len() as u64),
                Step::Flush => continue,
            };
            for from in (at..at + len).step_by(PIECE as usize) {
                let n = PIECE.min(at + len - from) as usize;
                read(from, &mut buffer[..n])?;
                want[..n].fill(0);
                // What comes later lies on top of what came before.
                for later in &steps[i..] {
                    overlay(later, from, &mut want[..n]);
                }
                if buffer[..n] != want[..n] {
                    let bad = (0..n).find(|&k| buffer[k] != want[k]).unwrap_or(0);
                    return Ok(Some((from + bad as u64) / self.options.sector * self.options.sector));
                }
            }
        }
        Ok(None)
    }
}

/// Bytes of one call.
const PIECE: u64 = 1 << 20;

fn overlay(step: &Step, from: u64, window: &mut [u8]) {
    let end = from + window.len() as u64;
    let (at, len) = match step {
        Step::Zero { at, len } => (*at, *len),
        Step::Put { at, bytes } => (*at, bytes.len() as u64),
        Step::Flush => return,
    };
    let (a, b) = (at.max(from), (at + len).min(end));
    if a >= b {
        return;
    }
    let part = &mut window[(a - from) as usize..(b - from) as usize];
    match step {
        Step::Put { bytes, .. } => part.copy_from_slice(&bytes[(a - at) as usize..(b - at) as usize]),
        _ => part.fill(0),
    }
}

struct Body {
    system: Vec<Step>,
    copies: Vec<Step>,
    boot: Step,
}

/// Checksum over the boot region but for the volume flags and the percentage in use (exFAT specification, section 3.4).
fn boot_checksum(region: &[u8]) -> u32 {
    let skip = |i: usize| matches!(i, 106 | 107 | 112);
    region.iter().enumerate().filter(|(i, _)| !skip(*i)).fold(0, |sum: u32, (_, &b)| sum.rotate_right(1).wrapping_add(u32::from(b)))
}
