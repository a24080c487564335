//! A FAT volume as mkfs.fat makes it, and the one whose tables lie in the zone at the start of a card that takes random writes well.

use crate::units::{GIB, KIB, MIB, SECTOR};
use nandscope_fat::{Convention, FatType, Layout, Options, plan};

/// What mkfs.fat is given, and where things come to lie by it. Positions and lengths in sectors of 512 bytes, from the start of the
/// volume.
#[derive(Clone, Debug)]
pub struct Made {
    pub layout: Layout,
    pub bits: u32,
    pub per_cluster: u64,
    pub reserved: u64,
    /// First sector of the data area.
    pub data: u64,
}

impl Made {
    /// The volume that mkfs.fat makes of these options: reserved sectors push the data area to the next boundary of `unit` bytes.
    /// mkfs.fat rounds tables up to whole clusters.
    ///
    /// # Errors
    /// No such volume fits.
    pub fn of(o: &Options, unit: u64) -> Result<Made, String> {
        let layout = plan(o).map_err(|e| e.to_string())?;
        let v = &layout.volume;
        let per_cluster = v.cluster / v.sector;
        let root = v.root_start.map_or(0, |r| (v.data_start - r) / v.sector).next_multiple_of(per_cluster);
        let table = (v.fat_length / v.sector).next_multiple_of(per_cluster);
        let mut data = v.data_start / v.sector;
        while data < 2 * table + root + per_cluster.max(if o.kind == Some(FatType::Fat32) { 32 } else { 1 }) {
            data += unit / v.sector;
        }
        let bits = match v.kind {
            FatType::Fat12 => 12,
            FatType::Fat16 => 16,
            _ => 32,
        };
        Ok(Made { bits, per_cluster, reserved: data - 2 * table - root, data, layout })
    }

    /// End of what every new file changes, from the start of the volume: the tables and the root directory, which is the first
    /// cluster on FAT32. In bytes.
    pub fn end_of_tables(&self) -> u64 {
        let root = if self.bits == 32 { self.layout.volume.cluster } else { 0 };
        self.data * SECTOR + root
    }
}

/// A volume whose tables and root directory lie in the zone.
#[derive(Clone, Debug)]
pub struct InZone {
    /// Where the partition begins, in bytes.
    pub start: u64,
    /// Boundary of partition and data area, in bytes.
    pub unit: u64,
    pub options: Options,
}

/// Puts tables and root directory of one FAT volume into the first `zone` bytes of a card of `size` bytes. The data area lies on the
/// boundary of erase blocks (`unit` bytes, the first at `first`) where the zone reaches so far, else on the largest boundary in the
/// zone that no cluster and no write unit crosses; the erase block that it begins in is shared with the tables only. `None` where
/// the zone is too small for the tables.
pub fn in_zone(zone: u64, size: u64, unit: u64, first: u64, write_unit: u64, cluster: Option<u64>) -> Option<InZone> {
    let mut units: Vec<u64> = vec![unit];
    units.extend((3..=12).rev().map(|k| KIB << k).filter(|u| *u < unit && unit.is_multiple_of(*u) && first.is_multiple_of(*u)));
    // As a card of this size is made, then with tables that take less room.
    let usual = (size >= 512 * MIB).then_some(FatType::Fat32);
    let mut kinds = vec![(usual, cluster)];
    if size <= 2 * GIB {
        kinds.push((Some(FatType::Fat16), Some(32 * KIB)));
    }
    kinds.push((usual, Some(64 * KIB)));
    for unit in units {
        for &(kind, cluster) in &kinds {
            // A cluster must not cross a boundary of erase blocks, nor begin inside a write unit.
            if !unit.is_multiple_of(write_unit.max(1)) || cluster.is_some_and(|c| !unit.is_multiple_of(c)) {
                continue;
            }
            let start = first % unit + unit;
            if size <= start {
                continue;
            }
            let end = (size - first % unit) / unit * unit + first % unit;
            let convention = Convention::Grid { unit, first };
            let options = Options { convention, offset: start, table: false, cluster, kind, ..Options::card(end - start) };
            let fits = |m: &Made| m.reserved <= 0xffff && start + m.end_of_tables() <= zone;
            if Made::of(&options, unit).is_ok_and(|m| fits(&m)) {
                return Some(InZone { start, unit, options });
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_directory_lie_in_zones_of_all_sizes() {
        let mut fits = 0;
        for size in [60 * MIB, 120 * MIB, 488 * MIB, 960 * MIB, 1900 * MIB, 3800 * MIB, 7600 * MIB] {
            for zone in [384 * KIB, 512 * KIB, MIB, 3 * MIB, 4 * MIB] {
                for (unit, first, write) in [(64 * KIB, 0, 0), (128 * KIB, 0, 16 * KIB), (4 * MIB, 0, 64 * KIB), (3 * MIB, MIB, 4096)] {
                    let Some(z) = in_zone(zone, size, unit, first, write, None) else {
                        assert!(size > 2 * GIB, "{size} {zone} {unit}: tables of such a card fit");
                        continue;
                    };
                    fits += 1;
                    let m = Made::of(&z.options, z.unit).unwrap();
                    let v = &m.layout.volume;
                    let data = z.start + m.data * SECTOR;
                    assert!(z.start + m.end_of_tables() <= zone, "{size} {zone} {unit}: {z:?}");
                    assert!(data.is_multiple_of(v.cluster) || first > 0, "{size} {zone} {unit}: clusters cross boundaries");
                    assert!(data.abs_diff(first).is_multiple_of(z.unit) && z.unit.is_multiple_of(v.cluster), "{size} {zone} {unit}: {z:?}");
                }
            }
        }
        assert!(fits > 100, "{fits}");
    }

    #[test]
    fn a_zone_too_small_for_the_tables_gets_none() {
        assert!(in_zone(64 * KIB, 1900 * MIB, 4 * MIB, 0, 0, None).is_none());
        assert!(in_zone(512 * KIB, 30 * GIB, 4 * MIB, 0, 0, None).is_none());
    }
}
