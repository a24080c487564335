//! Where the parts of a new volume go, before a byte is written.
//!
//! The SD convention (SD Part 2, File System; the figures are public in the manual of exfatprogs and in SdFat's formatter):
//! clusters and boundary unit follow from the capacity. FAT12 and FAT16 put the data area on the boundary and everything before
//! it packed in front, so the partition itself begins at an odd sector; FAT32 begins at one boundary unit and pads the reserved
//! sectors so that the data area falls on the next; exFAT puts the partition, the FAT (half a unit in) and the cluster heap on it.

use crate::{FatType, Volume};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Most clusters of FAT12 and FAT16 (Microsoft's FAT specification, section 3.5), and of FAT32 by its 28-bit entries.
const MOST: [u64; 3] = [4084, 65524, 0x0fff_fff5];
/// Root directory entries of FAT12 and FAT16.
const ROOT_ENTRIES: u64 = 512;
/// Reserved sectors of FAT32 by the SD convention: boot sectors, their copies, and no more.
const RESERVED32: u64 = 9;
/// Positions in an MBR, in FAT and in `BPB_TotSec32` have 32 bits.
const MOST_SECTORS: u64 = u32::MAX as u64;

/// Which rules a layout follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Convention {
    /// The SD Association's: clusters and boundary unit by capacity.
    Sd,
    /// The same shape on another grid: data on the multiples of `unit` bytes that begin at `first` bytes on the disk.
    Grid {
        /// Distance of the boundaries in bytes, a multiple of the sector: the erase block.
        unit: u64,
        /// Where a boundary lies on the disk, in bytes; 0 where the first erase block begins with the disk.
        first: u64,
    },
    /// As a PC of old formats without looking: partition at sector 63, FAT32 whatever the size, no padding.
    Careless,
}

/// What to lay out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes of the target.
    pub capacity: u64,
    /// Logical sector in bytes, 512 to 4096.
    pub sector: u64,
    /// Where the target begins on the disk, in bytes: boundaries are those of the disk.
    pub offset: u64,
    /// The rules.
    pub convention: Convention,
    /// The type; by capacity where none is given.
    pub kind: Option<FatType>,
    /// Bytes of a cluster; by capacity where none are given.
    pub cluster: Option<u64>,
    /// With a partition table, as cards have; without one the volume fills the target.
    pub table: bool,
    /// Label, at most 11 characters.
    pub label: Option<String>,
    /// Volume serial number.
    pub serial: u32,
}

impl Options {
    /// A whole card by the SD convention.
    pub fn card(capacity: u64) -> Options {
        Options {
            capacity,
            sector: 512,
            offset: 0,
            convention: Convention::Sd,
            kind: None,
            cluster: None,
            table: true,
            label: None,
            serial: 0,
        }
    }
}

/// The one partition of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// First byte on the target.
    pub start: u64,
    /// Length in bytes.
    pub size: u64,
    /// Type byte of the MBR.
    pub kind: u8,
}

/// A volume that could be written; see [`Layout::steps`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// What was asked for.
    pub options: Options,
    /// The partition, where there is a table.
    pub partition: Option<Partition>,
    /// The volume; positions from its own start.
    pub volume: Volume,
    /// Boundary the data area lies on, in bytes; the sector for a careless layout.
    pub boundary: u64,
}

/// Why there is no such layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A number is not one that the formats allow.
    #[error("{0}")]
    Wrong(String),
    /// The volume does not fit, or has too many or too few clusters for its type.
    #[error("{0}")]
    NoRoom(String),
}

fn wrong<T>(text: impl Into<String>) -> Result<T, PlanError> {
    Err(PlanError::Wrong(text.into()))
}

/// Cluster and boundary unit of the SD convention, in bytes, for a card of this capacity in bytes.
pub fn sd_units(capacity: u64) -> (u64, u64) {
    match capacity {
        0..=0x80_0000 => (8 * KIB, 8 * KIB),
        n if n <= 64 * MIB => (16 * KIB, 16 * KIB),
        n if n <= 256 * MIB => (16 * KIB, 32 * KIB),
        n if n <= GIB => (16 * KIB, 64 * KIB),
        n if n <= 2 * GIB => (32 * KIB, 64 * KIB),
        n if n <= 32 * GIB => (32 * KIB, 4 * MIB),
        n if n <= 128 * GIB => (128 * KIB, 16 * MIB),
        n if n <= 512 * GIB => (256 * KIB, 32 * MIB),
        _ => (512 * KIB, 64 * MIB),
    }
}

/// The type the SD convention gives a card of this capacity; FAT12 or FAT16 follows from the clusters.
fn sd_kinds(capacity: u64) -> &'static [FatType] {
    match capacity {
        n if n <= 2 * GIB => &[FatType::Fat12, FatType::Fat16],
        n if n <= 32 * GIB => &[FatType::Fat32, FatType::Fat16],
        _ => &[FatType::ExFat],
    }
}

/// Clusters as a PC chooses them: of FAT32 by DskTableFAT32 of Microsoft's FAT specification, of exFAT as Windows and mkfs.exfat do.
fn pc_cluster(capacity: u64, kind: FatType) -> u64 {
    if kind == FatType::ExFat {
        return match capacity {
            n if n <= 256 * MIB => 4 * KIB,
            n if n <= 32 * GIB => 32 * KIB,
            _ => 128 * KIB,
        };
    }
    match capacity {
        n if n < 260 * MIB => 512,
        n if n <= 8 * GIB => 4 * KIB,
        n if n <= 16 * GIB => 8 * KIB,
        n if n <= 32 * GIB => 16 * KIB,
        _ => 32 * KIB,
    }
}

/// Boundaries, in sectors of the target: every `unit` from `phase` on.
#[derive(Clone, Copy)]
struct Grid {
    unit: u64,
    phase: u64,
}

impl Grid {
    fn up(self, at: u64) -> u64 {
        self.phase + at.saturating_sub(self.phase).next_multiple_of(self.unit)
    }
}

/// What every type needs to know, in sectors.
struct Room {
    total: u64,
    sector: u64,
    per_cluster: u64,
    grid: Grid,
    table: bool,
    careless: bool,
}

/// Lays out a volume.
///
/// # Errors
/// A number no format allows, or a volume that does not fit; the text says which and what would.
pub fn plan(o: &Options) -> Result<Layout, PlanError> {
    match (lay_out(o), o.convention) {
        (Err(PlanError::NoRoom(why)), Convention::Grid { unit, first }) => {
            // Where less space between boundaries helps, neither the type nor the cluster is to blame.
            let mut halves = std::iter::successors(Some(unit / 2), |u| Some(u / 2)).take_while(|&u| u >= o.sector);
            let fits = halves.find(|&unit| lay_out(&Options { convention: Convention::Grid { unit, first }, ..o.clone() }).is_ok());
            Err(PlanError::NoRoom(fits.map_or(why, |less| {
                let (unit, less) = (shown(unit), shown(less));
                let names = names(&kinds(o));
                format!("no {names} volume fits {} bytes with boundaries every {unit}; a smaller --align helps, such as {less}", o.capacity)
            })))
        }
        (done, _) => done,
    }
}

/// A size as options take it.
fn shown(bytes: u64) -> String {
    match bytes {
        n if n.is_multiple_of(MIB) => format!("{}MiB", n / MIB),
        n if n.is_multiple_of(KIB) => format!("{}KiB", n / KIB),
        n => n.to_string(),
    }
}

fn names(kinds: &[FatType]) -> String {
    kinds.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")
}

/// The types that come into question.
fn kinds(o: &Options) -> Vec<FatType> {
    match (o.kind, o.convention) {
        (Some(k), _) => vec![k],
        (None, Convention::Careless) => vec![FatType::Fat32],
        (None, _) => sd_kinds(o.capacity).to_vec(),
    }
}

fn lay_out(o: &Options) -> Result<Layout, PlanError> {
    if !matches!(o.sector, 512 | 1024 | 2048 | 4096) {
        return wrong(format!("a sector of {} bytes; FAT and exFAT know 512 to 4096", o.sector));
    }
    if !o.offset.is_multiple_of(o.sector) {
        return wrong(format!("the target begins at byte {}, inside a sector", o.offset));
    }
    if o.label.as_ref().is_some_and(|l| l.is_empty() || l.chars().count() > 11 || l.chars().any(char::is_control)) {
        return wrong("a label has 1 to 11 characters, none of them a control character");
    }
    let (sd_cluster, sd_unit) = sd_units(o.capacity);
    let (unit, first) = match o.convention {
        Convention::Sd => (sd_unit, 0),
        Convention::Grid { unit, first } => (unit, first),
        Convention::Careless => (o.sector, 0),
    };
    if unit == 0 || !unit.is_multiple_of(o.sector) || !first.is_multiple_of(o.sector) {
        return wrong(format!("boundaries every {unit} B from byte {first} on: both must be multiples of the sector of {} B", o.sector));
    }
    let kinds = kinds(o);
    let cluster = match (o.cluster, o.convention) {
        (Some(c), _) => c,
        (None, Convention::Careless) => pc_cluster(o.capacity, kinds[0]).max(o.sector),
        // A cluster that does not divide the unit would lie across a boundary somewhere.
        (None, _) => {
            let most = if kinds[0] == FatType::ExFat { sd_cluster } else { sd_cluster.min(64 * KIB) };
            most.min(1 << unit.trailing_zeros()).max(o.sector)
        }
    };
    let most = if kinds[0] == FatType::ExFat { 32 * MIB } else { 128 * o.sector };
    if !cluster.is_power_of_two() || cluster < o.sector || cluster > most {
        return wrong(format!("a cluster of {cluster} B; it takes a power of two from {} B to {} KiB", o.sector, most / KIB));
    }
    let unit = unit / o.sector;
    let (offset, first) = (o.offset / o.sector % unit, first / o.sector % unit);
    if o.table && o.capacity / o.sector > MOST_SECTORS + 1 {
        return Err(PlanError::NoRoom("an MBR reaches 2 TiB, and this target is larger".into()));
    }
    let room = |cluster: u64| Room {
        // Start and length have 32 bits each, and behind a table the start is not 0.
        total: (o.capacity / o.sector).min(MOST_SECTORS + u64::from(o.table)),
        sector: o.sector,
        per_cluster: cluster / o.sector,
        grid: Grid { unit, phase: (first + unit - offset) % unit },
        table: o.table,
        careless: o.convention == Convention::Careless,
    };
    // The type whose limit leaves most of the card in use.
    let best = |cluster: u64| {
        let room = room(cluster);
        let parts = kinds.iter().filter_map(|&k| if k == FatType::ExFat { exfat(&room) } else { fat(&room, k) });
        parts.max_by_key(|(_, v)| u64::from(v.clusters))
    };
    // A type forced on a card of another size takes the next smaller cluster, or the next larger one, that works.
    let smaller = std::iter::successors(Some(cluster), |c| Some(c / 2)).take_while(|&c| c >= o.sector);
    let larger = std::iter::successors(Some(cluster * 2), |c| Some(c * 2)).take_while(|&c| c <= most);
    let mut tries = smaller.chain(larger).take(if o.cluster.is_some() { 1 } else { usize::MAX });
    let Some((start, volume)) = tries.find_map(best) else {
        let with = o.cluster.map(|c| format!(" with clusters of {c} bytes")).unwrap_or_default();
        let text = format!("no {} volume{with} fits {} bytes; choose another type or cluster", names(&kinds), o.capacity);
        return Err(PlanError::NoRoom(text));
    };
    let partition = o.table.then(|| Partition { start: start * o.sector, size: volume.size, kind: mbr_kind(&volume, start, o.sector) });
    let label = o.label.as_deref().filter(|_| volume.kind != FatType::ExFat);
    let label = label.map(|l| String::from_utf8_lossy(&crate::write::short_label(Some(l))).trim().to_string());
    let volume = Volume { serial: o.serial, label: label.filter(|l| !l.is_empty()), ..volume };
    let layout = Layout { options: o.clone(), partition, volume, boundary: unit * o.sector };
    Ok(layout)
}

/// Last sector that cylinder, head and sector of an MBR can name.
const CHS_END: u64 = 1024 * 255 * 63;

fn mbr_kind(v: &Volume, start: u64, sector: u64) -> u8 {
    let size = v.size / sector;
    match v.kind {
        FatType::Fat12 => 0x01,
        FatType::Fat16 if size < 65536 => 0x04,
        FatType::Fat16 => 0x06,
        FatType::Fat32 if start + size <= CHS_END => 0x0b,
        FatType::Fat32 => 0x0c,
        FatType::ExFat => 0x07,
    }
}

/// First sector of the volume and the volume; none where it does not fit.
fn fat(r: &Room, kind: FatType) -> Option<(u64, Volume)> {
    let (class, bits) = match kind {
        FatType::Fat12 => (0, 12),
        FatType::Fat16 => (1, 16),
        _ => (2, 32),
    };
    let least = if class == 0 { 1 } else { MOST[class - 1] + 1 };
    let root = if class == 2 { 0 } else { (ROOT_ENTRIES * 32).div_ceil(r.sector) };
    let reserved_least = if class < 2 { 1 } else { RESERVED32.max(if r.careless { 32 } else { 0 }) };
    // FAT32 begins on a boundary; the others begin where their data area wants it, at least one boundary unit in.
    let begin = match (r.table, r.careless) {
        (false, _) => 0,
        (true, true) => 63,
        (true, false) => r.grid.up(r.grid.unit.max(1)),
    };
    let mut data = r.grid.up(begin + reserved_least + root + 2);
    while data < r.total {
        let clusters = ((r.total - data) / r.per_cluster).min(MOST[class]);
        if clusters < least {
            return None;
        }
        let mut table = ((clusters + 2) * bits).div_ceil(8 * r.sector);
        let want = begin + reserved_least + 2 * table + root;
        if data < want {
            data = r.grid.up(want);
            continue;
        }
        let slack = data - want;
        let (start, reserved) = if class < 2 && r.table { (begin + slack, 1) } else { (begin, reserved_least + slack) };
        // The field has 16 bits; what is left over goes into longer tables.
        let reserved = if reserved > 0xffff {
            let over = (reserved - 0xffff).div_ceil(2);
            table += over;
            reserved - 2 * over
        } else {
            reserved
        };
        let system = reserved + 2 * table + root;
        let volume = Volume {
            kind,
            sector: r.sector,
            cluster: r.per_cluster * r.sector,
            fat_start: reserved * r.sector,
            fat_length: table * r.sector,
            fats: 2,
            root_start: (class < 2).then_some((reserved + 2 * table) * r.sector),
            root_cluster: (class == 2).then_some(2),
            data_start: system * r.sector,
            clusters: clusters as u32,
            size: (system + clusters * r.per_cluster) * r.sector,
            label: None,
            serial: 0,
            too_few_clusters: false,
        };
        // The short form counts tables in 16 bits.
        return (class == 2 || table <= 0xffff).then_some((start, volume));
    }
    None
}

/// Where the root directory of a new exFAT volume begins: behind the bitmap and the table of capital letters.
fn exfat_root(clusters: u64, cluster: u64) -> u32 {
    2 + (clusters.div_ceil(8).div_ceil(cluster) + (crate::upcase::table().len() as u64).div_ceil(cluster)) as u32
}

fn exfat(r: &Room) -> Option<(u64, Volume)> {
    let start = match (r.table, r.careless) {
        (false, _) => 0,
        (true, true) => 63,
        (true, false) => r.grid.up(r.grid.unit),
    };
    // Both copies of the boot region come first.
    let fat_offset = (r.grid.unit / 2).max(24);
    let mut heap = r.grid.up(start + fat_offset + 1) - start;
    loop {
        let clusters = (r.total.checked_sub(start + heap)? / r.per_cluster).min(0xffff_fff5);
        let need = ((clusters + 2) * 4).div_ceil(r.sector);
        // Three clusters at least: bitmap, up-case table, root directory; and one for a file. Volumes begin at 1 MiB.
        if clusters < 4 || (heap + clusters * r.per_cluster) * r.sector < MIB {
            return None;
        }
        if fat_offset + need > heap {
            heap = r.grid.up(start + fat_offset + need) - start;
            continue;
        }
        let cluster = r.per_cluster * r.sector;
        let root = exfat_root(clusters, cluster);
        if clusters < u64::from(root) {
            return None;
        }
        let volume = Volume {
            kind: FatType::ExFat,
            sector: r.sector,
            cluster,
            fat_start: fat_offset * r.sector,
            fat_length: (heap - fat_offset) * r.sector,
            fats: 1,
            root_start: None,
            root_cluster: Some(root),
            data_start: heap * r.sector,
            clusters: clusters as u32,
            size: (heap + clusters * r.per_cluster) * r.sector,
            label: None,
            serial: 0,
            too_few_clusters: false,
        };
        return Some((start, volume));
    }
}

impl Layout {
    /// The layout of a volume that is there already, at byte `start` of the target, so that an empty one can be put in its place;
    /// with a partition table where `options.table` says so. None where that would not be the same volume again: it reaches
    /// beyond the target, or is FAT32 without room for the copies of its boot sector.
    pub fn found(options: Options, start: u64, volume: Volume) -> Option<Layout> {
        let o = &options;
        let fits = volume.sector == o.sector && start.is_multiple_of(o.sector) && start.checked_add(volume.size)? <= o.capacity;
        let copies = volume.kind != FatType::Fat32 || volume.fat_start >= RESERVED32 * volume.sector;
        if !fits || !copies || volume.too_few_clusters || (o.table && start == 0) || (!o.table && start > 0) {
            return None;
        }
        // The bitmap, the table of capital letters and the root directory come first and in this order, wherever they were.
        let root_cluster = match volume.kind {
            FatType::ExFat => Some(exfat_root(volume.clusters.into(), volume.cluster)),
            FatType::Fat32 => Some(2),
            _ => None,
        };
        if root_cluster.is_some_and(|r| r >= volume.clusters) {
            return None;
        }
        let volume = Volume { root_cluster, fats: if volume.kind == FatType::ExFat { 1 } else { volume.fats }, ..volume };
        let kind = mbr_kind(&volume, start / o.sector, o.sector);
        let partition = o.table.then_some(Partition { start, size: volume.size, kind });
        Some(Layout { partition, boundary: volume.sector, volume, options })
    }

    /// Where the volume begins on the target, in bytes.
    pub fn start(&self) -> u64 {
        self.partition.map_or(0, |p| p.start)
    }

    /// Where cluster 2 begins on the disk, in bytes.
    pub fn data_on_disk(&self) -> u64 {
        self.options.offset + self.start() + self.volume.data_start
    }
}
