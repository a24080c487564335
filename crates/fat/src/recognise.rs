//! Reads the parameters of a volume from its boot sector, by the rules of Microsoft's FAT specification (version 1.03, the
//! type follows from the number of clusters alone) and exFAT specification (section 3.1).

use std::fmt;

/// The members of the family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FatType {
    /// Up to 4084 clusters.
    Fat12,
    /// 4085 to 65524 clusters.
    Fat16,
    /// 65525 clusters and more.
    Fat32,
    /// The 64-bit successor on SDXC cards.
    ExFat,
}

impl fmt::Display for FatType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            FatType::Fat12 => "FAT12",
            FatType::Fat16 => "FAT16",
            FatType::Fat32 => "FAT32",
            FatType::ExFat => "exFAT",
        })
    }
}

/// Where the parts of a volume lie; positions and lengths in bytes from the start of the volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Which of the four it is.
    pub kind: FatType,
    /// Logical sector in bytes.
    pub sector: u64,
    /// Cluster in bytes.
    pub cluster: u64,
    /// Start of the first file allocation table.
    pub fat_start: u64,
    /// Length of one file allocation table.
    pub fat_length: u64,
    /// Number of file allocation tables, 1 or 2.
    pub fats: u8,
    /// Start of the fixed root directory of FAT12 and FAT16; none where the root directory is a cluster chain.
    pub root_start: Option<u64>,
    /// First cluster of the root directory of FAT32 and exFAT.
    pub root_cluster: Option<u32>,
    /// Start of cluster 2, the first one.
    pub data_start: u64,
    /// Number of clusters.
    pub clusters: u32,
    /// Length of the volume.
    pub size: u64,
    /// Label in the boot sector. exFAT keeps its label in the root directory, so there it is none.
    pub label: Option<String>,
    /// Volume serial number.
    pub serial: u32,
    /// True where the tables have FAT32 form for fewer than 65525 clusters: readers disagree about such a volume.
    pub too_few_clusters: bool,
}

impl Volume {
    /// Where a cluster begins, in bytes from the start of the volume. Clusters are counted from 2.
    pub fn place(&self, cluster: u32) -> u64 {
        self.data_start.saturating_add(u64::from(cluster.saturating_sub(2)).saturating_mul(self.cluster))
    }

    /// The cluster that holds this byte of the volume; none before the first.
    pub fn cluster_at(&self, at: u64) -> Option<u32> {
        at.checked_sub(self.data_start).map(|d| (d / self.cluster) as u32 + 2)
    }
}

/// Why a sector is not the boot sector of such a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFat {
    /// Fewer than 512 bytes were given.
    #[error("a boot sector has at least 512 bytes")]
    Short,
    /// The last two bytes are not 55 AA, or the first is no jump.
    #[error("no boot sector signature")]
    Signature,
    /// The named field has a value the specification forbids.
    #[error("field {0} has a value the specification forbids")]
    Field(&'static str),
}

/// Reads the boot sector of a volume: the first 512 bytes (or more) of it.
///
/// # Errors
/// It is none of the four, with the first rule it breaks.
pub fn recognise(boot: &[u8]) -> Result<Volume, NotFat> {
    let boot = boot.get(..512).ok_or(NotFat::Short)?;
    if boot[510..512] != [0x55, 0xaa] {
        return Err(NotFat::Signature);
    }
    if &boot[3..11] == b"EXFAT   " { exfat(boot) } else { fat(boot) }
}

fn u16_at(b: &[u8], at: usize) -> u64 {
    u64::from(b[at]) | u64::from(b[at + 1]) << 8
}

fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

fn u64_at(b: &[u8], at: usize) -> u64 {
    u64::from(u32_at(b, at)) | u64::from(u32_at(b, at + 4)) << 32
}

fn demand(ok: bool, field: &'static str) -> Result<(), NotFat> {
    if ok { Ok(()) } else { Err(NotFat::Field(field)) }
}

/// All quantities here are products of at most a 32-bit count and a 16-bit size, so nothing overflows 64 bits.
fn fat(b: &[u8]) -> Result<Volume, NotFat> {
    if b[0] != 0xe9 && !(b[0] == 0xeb && b[2] == 0x90) {
        return Err(NotFat::Signature);
    }
    let sector = u16_at(b, 11);
    demand(matches!(sector, 512 | 1024 | 2048 | 4096), "BPB_BytsPerSec")?;
    let per_cluster = u64::from(b[13]);
    demand(per_cluster.is_power_of_two(), "BPB_SecPerClus")?;
    let reserved = u16_at(b, 14);
    demand(reserved != 0, "BPB_RsvdSecCnt")?;
    let fats = b[16];
    demand((1..=2).contains(&fats), "BPB_NumFATs")?;
    demand(b[21] == 0xf0 || b[21] >= 0xf8, "BPB_Media")?;
    let root_entries = u16_at(b, 17);
    let (short, long) = (u16_at(b, 22), u64::from(u32_at(b, 36)));
    let fat_sectors = if short != 0 { short } else { long };
    demand(fat_sectors != 0, "BPB_FATSz32")?;
    let total = match u16_at(b, 19) {
        0 => u64::from(u32_at(b, 32)),
        n => n,
    };
    let root_sectors = (root_entries * 32).div_ceil(sector);
    let root = reserved + u64::from(fats) * fat_sectors;
    let data = root + root_sectors;
    let clusters = total.checked_sub(data).ok_or(NotFat::Field("BPB_TotSec32"))? / per_cluster;
    demand(clusters != 0, "BPB_TotSec32")?;
    let by_count = match clusters {
        0..4085 => FatType::Fat12,
        4085..65525 => FatType::Fat16,
        _ => FatType::Fat32,
    };
    // The short length field is zero in the FAT32 form of the boot sector only.
    let form32 = short == 0;
    demand(form32 || by_count != FatType::Fat32, "BPB_FATSz16")?;
    demand((root_entries == 0) == form32, "BPB_RootEntCnt")?;
    let kind = if form32 { FatType::Fat32 } else { by_count };
    let bits = match kind {
        FatType::Fat12 => 12,
        FatType::Fat16 => 16,
        _ => 32,
    };
    demand(fat_sectors * sector * 8 >= (clusters + 2) * bits, "BPB_FATSz32")?;
    let root_cluster = u32_at(b, 44);
    demand(!form32 || (2..clusters + 2).contains(&u64::from(root_cluster)), "BPB_RootClus")?;
    // The extended fields follow the form: signature 29 means that serial number and label are there.
    let ext = if form32 { 66 } else { 38 };
    let there = b[ext] == 0x29;
    Ok(Volume {
        kind,
        sector,
        cluster: sector * per_cluster,
        fat_start: reserved * sector,
        fat_length: fat_sectors * sector,
        fats,
        root_start: (!form32).then_some(root * sector),
        root_cluster: form32.then_some(root_cluster),
        data_start: data * sector,
        // Bounded by the 32-bit number of sectors.
        clusters: clusters as u32,
        size: total * sector,
        label: there.then(|| label(&b[ext + 5..ext + 16])).flatten(),
        serial: if there { u32_at(b, ext + 1) } else { 0 },
        too_few_clusters: form32 && by_count != FatType::Fat32,
    })
}

fn label(raw: &[u8]) -> Option<String> {
    let text: String = raw.iter().map(|&c| if c.is_ascii_graphic() || c == b' ' { c as char } else { '_' }).collect();
    let text = text.trim();
    (!text.is_empty() && text != "NO NAME").then(|| text.to_string())
}

fn exfat(b: &[u8]) -> Result<Volume, NotFat> {
    if b[..3] != [0xeb, 0x76, 0x90] {
        return Err(NotFat::Signature);
    }
    demand(b[11..64].iter().all(|&x| x == 0), "MustBeZero")?;
    let shift = b[108];
    demand((9..=12).contains(&shift), "BytesPerSectorShift")?;
    let sector = 1u64 << shift;
    demand(b[109] <= 25 - shift, "SectorsPerClusterShift")?;
    let per_cluster = 1u64 << b[109];
    let fats = b[110];
    demand((1..=2).contains(&fats), "NumberOfFats")?;
    let total = u64_at(b, 72);
    demand(total >= (1 << 20) >> shift && total <= u64::MAX >> shift, "VolumeLength")?;
    let (fat_offset, fat_length) = (u64::from(u32_at(b, 80)), u64::from(u32_at(b, 84)));
    let (heap, clusters) = (u64::from(u32_at(b, 88)), u32_at(b, 92));
    demand(fat_offset >= 24, "FatOffset")?;
    demand(fat_length * sector >= (u64::from(clusters) + 2) * 4, "FatLength")?;
    demand(heap >= fat_offset + u64::from(fats) * fat_length, "ClusterHeapOffset")?;
    let end = heap + u64::from(clusters) * per_cluster;
    demand(clusters != 0 && clusters < 0xffff_fff6 && end <= total, "ClusterCount")?;
    let root = u32_at(b, 96);
    demand((2..u64::from(clusters) + 2).contains(&u64::from(root)), "FirstClusterOfRootDirectory")?;
    Ok(Volume {
        kind: FatType::ExFat,
        sector,
        cluster: sector * per_cluster,
        fat_start: fat_offset * sector,
        fat_length: fat_length * sector,
        fats,
        root_start: None,
        root_cluster: Some(root),
        data_start: heap * sector,
        clusters,
        size: total * sector,
        label: None,
        serial: u32_at(b, 100),
        too_few_clusters: false,
    })
}

#[cfg(test)]
#[path = "recognise_tests.rs"]
mod tests;
