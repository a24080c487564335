//! The file library of a microcontroller: a FAT volume through one sector of memory (C5, C6, G3).
//!
//! Records that do not fill sectors are collected in the buffer; whole sectors go straight to the card. SdFat as it was in 2012
//! has one buffer for data and FAT, so that every new cluster turns the data out of it: one FAT sector is read, both copies of
//! the FAT are written. FatFs keeps a sector of FAT apart. What the library costs in time passes on the device's own clock.
//!
//! Only accesses are made, no content: the volume is where the SD formatters put one, and the file lies in one piece.

use super::{BenchFile, Result, WorkloadError};
use crate::device::{Access, Device, Fill, Machine, Op};
use crate::units::{Bytes, KIB, MIB, Nanos, SECTOR};

/// Where the parts of a volume lie, in bytes: SdFormatter's sizes, and data on a boundary of 128 KiB (FAT16) or 4 MiB (FAT32).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub cluster: u64,
    /// Bytes of an entry of the FAT.
    pub entry: u64,
    pub fat: u64,
    /// Bytes of one copy of the FAT.
    pub fat_len: u64,
    pub directory: u64,
    pub data: u64,
}

impl Layout {
    pub fn of(capacity: u64) -> Layout {
        let mb = capacity.div_ceil(MIB);
        let sectors = [(16, 2), (32, 4), (64, 8), (128, 16), (1024, 32), (32768, 64)].iter().find(|l| mb <= l.0).map_or(128, |l| l.1);
        let cluster = sectors * SECTOR;
        let entry = if mb <= 2048 { 2 } else { 4 };
        let fat_len = (capacity / cluster * entry).next_multiple_of(SECTOR);
        if entry == 2 {
            let data = (65 * SECTOR + 2 * fat_len + 32 * SECTOR).next_multiple_of(128 * KIB);
            let directory = data - 32 * SECTOR;
            return Layout { cluster, entry, fat: directory - 2 * fat_len, fat_len, directory, data };
        }
        Layout::fat32(cluster, fat_len)
    }

    fn fat32(cluster: u64, fat_len: u64) -> Layout {
        let fat = 4 * MIB + 32 * SECTOR;
        let data = (fat + 2 * fat_len).next_multiple_of(4 * MIB);
        Layout { cluster, entry: 4, fat, fat_len, directory: data, data: data + cluster }
    }

    /// The same with clusters of another size: FAT16 or FAT32, as their number asks for.
    ///
    /// # Errors
    /// No FAT has such clusters on a card of this capacity.
    pub fn with_clusters(capacity: u64, cluster: u64) -> Result<Layout> {
        let count = capacity / cluster.max(1);
        let refuse = |why: &str| Err(WorkloadError::Refused(format!("clusters of {} cannot be: {why}", Bytes(cluster))));
        if !cluster.is_power_of_two() || !(SECTOR..=64 * KIB).contains(&cluster) {
            return refuse("a cluster of FAT is a power of two from 512 B to 64 KiB");
        }
        match count {
            0..4_085 => refuse("so few of them make a FAT12 volume, which is not simulated; take smaller ones"),
            4_085..65_525 => {
                let fat_len = (count * 2).next_multiple_of(SECTOR);
                let data = (65 * SECTOR + 2 * fat_len + 32 * SECTOR).next_multiple_of(128 * KIB);
                let directory = data - 32 * SECTOR;
                Ok(Layout { cluster, entry: 2, fat: directory - 2 * fat_len, fat_len, directory, data })
            }
            _ => Ok(Layout::fat32(cluster, (count * 4).next_multiple_of(SECTOR))),
        }
    }
}

/// A sector in memory.
#[derive(Clone, Copy, Debug)]
struct Held {
    at: u64,
    dirty: bool,
    /// A second copy goes this much further on.
    mirror: u64,
}

/// One file on the volume of a card.
pub struct Library<'a> {
    device: &'a mut dyn Device,
    machine: Machine,
    layout: Layout,
    /// Position of the file on the card, its length, and where the next call goes on.
    at: u64,
    size: u64,
    pos: u64,
    data: Option<Held>,
    fat: Option<Held>,
    /// The directory entry is out of date.
    changed: bool,
}

impl<'a> Library<'a> {
    /// A file that begins 1 MiB behind the start of the data: the card is not empty.
    pub fn new(device: &'a mut dyn Device, machine: Machine) -> Library<'a> {
        let layout = Layout::of(device.geometry().size);
        Library::on(device, machine, layout)
    }

    /// The same on a volume that is laid out otherwise.
    pub fn on(device: &'a mut dyn Device, machine: Machine, layout: Layout) -> Library<'a> {
        let at = layout.data + MIB.next_multiple_of(layout.cluster);
        Library { device, machine, layout, at, size: 0, pos: 0, data: None, fat: None, changed: false }
    }

    pub fn layout(&self) -> Layout {
        self.layout
    }

    fn io(&mut self, write: bool, at: u64, len: u64) -> Result<()> {
        let op = if write { Op::Write(Fill::Random(at)) } else { Op::Read };
        self.device.access(Access { op, at, len })?;
        Ok(())
    }

    fn flush(&mut self, held: Option<Held>) -> Result<()> {
        if let Some(h) = held.filter(|h| h.dirty) {
            self.io(true, h.at, SECTOR)?;
            if h.mirror > 0 {
                self.io(true, h.at + h.mirror, SECTOR)?;
            }
        }
        Ok(())
    }

    /// Brings a sector into the buffer for data, or into that for the FAT, turning out what is there.
    fn hold(&mut self, at: u64, mirror: u64, read: bool, of_fat: bool) -> Result<()> {
        let apart = of_fat && self.machine.fat_buffer;
        let there = if apart { self.fat } else { self.data };
        if there.is_some_and(|h| h.at == at) {
            return Ok(());
        }
        self.flush(there)?;
        if read {
            self.io(false, at, SECTOR)?;
        }
        let held = Some(Held { at, dirty: false, mirror });
        if apart {
            self.fat = held
        } else {
            self.data = held
        }
        Ok(())
    }

    fn soil(&mut self, of_fat: bool) {
        let held = if of_fat && self.machine.fat_buffer { &mut self.fat } else { &mut self.data };
        if let Some(h) = held {
            h.dirty = true;
        }
    }

    /// Looks up or links the cluster at a position of the file.
    fn cluster(&mut self, pos: u64, link: bool) -> Result<()> {
        let number = (self.at + pos - self.layout.data) / self.layout.cluster + 2;
        let sector = self.layout.fat + number * self.layout.entry / SECTOR * SECTOR;
        self.hold(sector, self.layout.fat_len, true, true)?;
        if link {
            self.soil(true);
        }
        Ok(())
    }

    fn copied(&mut self, bytes: u64) {
        self.device.idle(Nanos(bytes * self.machine.copy / 1000));
    }

    /// One call: `len` bytes from the current position on.
    fn call(&mut self, len: u64, write: bool) -> Result<Nanos> {
        let begun = self.device.now();
        self.device.idle(self.machine.call);
        let mut left = if write { len } else { len.min(self.size.saturating_sub(self.pos)) };
        while left > 0 {
            let fresh = write && self.pos >= self.size;
            if self.pos.is_multiple_of(self.layout.cluster) {
                self.cluster(self.pos, fresh)?;
            }
            let at = self.at + self.pos;
            let off = at % SECTOR;
            let n = if off == 0 && left >= SECTOR {
                let n = (left / SECTOR * SECTOR).min(self.layout.cluster - self.pos % self.layout.cluster);
                self.io(write, at, n)?;
                n
            } else {
                let n = left.min(SECTOR - off);
                self.hold(at - off, 0, !fresh || off > 0, false)?;
                if write {
                    self.soil(false);
                }
                self.copied(n);
                n
            };
            self.pos += n;
            left -= n;
        }
        if write && self.pos > self.size {
            self.size = self.pos;
            self.changed = true;
        }
        Ok(self.device.now() - begun)
    }
}

impl BenchFile for Library<'_> {
    fn create(&mut self, _reserve: Option<u64>) -> Result<Nanos> {
        let begun = self.device.now();
        self.device.idle(self.machine.call);
        self.hold(self.layout.directory, 0, true, true)?;
        self.soil(true);
        (self.pos, self.size, self.changed) = (0, 0, true);
        Ok(self.device.now() - begun)
    }

    fn open(&mut self) -> Result<Nanos> {
        let begun = self.device.now();
        self.device.idle(self.machine.call);
        self.hold(self.layout.directory, 0, true, true)?;
        self.pos = 0;
        Ok(self.device.now() - begun)
    }

    fn write(&mut self, len: u64) -> Result<Nanos> {
        self.call(len, true)
    }

    fn read(&mut self, len: u64) -> Result<Nanos> {
        self.call(len, false)
    }

    fn sync(&mut self) -> Result<Nanos> {
        let begun = self.device.now();
        self.device.idle(self.machine.call);
        let data = self.data;
        self.flush(data)?;
        if self.machine.fat_buffer {
            if let Some(h) = &mut self.data {
                h.dirty = false;
            }
        } else {
            self.data = None;
        }
        if self.changed {
            self.hold(self.layout.directory, 0, true, true)?;
            self.soil(true);
            self.changed = false;
        }
        for of_fat in [true, false] {
            let held = if of_fat { &mut self.fat } else { &mut self.data };
            let dirty = *held;
            if let Some(h) = held {
                h.dirty = false;
            }
            self.flush(dirty)?;
        }
        Ok(self.device.now() - begun)
    }

    fn close(&mut self) -> Result<Nanos> {
        self.sync()
    }

    fn position(&self) -> Option<u64> {
        Some(self.at)
    }

    fn now(&self) -> Nanos {
        self.device.now()
    }

    fn pause(&mut self) {
        self.device.idle(self.machine.pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::plain::Plain;

    fn machine(fat_buffer: bool) -> Machine {
        Machine { name: "test", call: Nanos(32_000), copy: 500_000, pause: Nanos(6_000), poll: Nanos(1_500), fat_buffer }
    }

    #[test]
    fn the_layout_is_that_of_the_formatters() {
        let l = Layout::of(968 * MIB);
        assert_eq!((l.cluster, l.entry, l.data % (128 * KIB)), (16 * KIB, 2, 0));
        assert!(l.fat >= 65 * SECTOR && l.fat + 2 * l.fat_len == l.directory);
        let l = Layout::of(60906 * MIB);
        assert_eq!((l.cluster, l.entry, l.directory % (4 * MIB)), (64 * KIB, 4, 0));
    }

    #[test]
    fn clusters_of_another_size() {
        for mb in [120u64, 488, 968, 3800] {
            for cluster in [512, 4 * KIB, 16 * KIB, 64 * KIB] {
                let Ok(l) = Layout::with_clusters(mb * MIB, cluster) else {
                    assert!(mb * MIB / cluster < 4085, "{mb} MiB, {cluster}");
                    continue;
                };
                assert_eq!(l.entry, if mb * MIB / cluster < 65_525 { 2 } else { 4 }, "{mb} MiB, {cluster}");
                assert!(l.fat + 2 * l.fat_len <= l.directory && l.directory < l.data && l.fat_len >= mb * MIB / cluster * l.entry, "{l:?}");
            }
            assert_eq!(Layout::with_clusters(mb * MIB, Layout::of(mb * MIB).cluster).unwrap().entry, Layout::of(mb * MIB).entry);
        }
        assert!(Layout::with_clusters(968 * MIB, 3000).is_err() && Layout::with_clusters(968 * MIB, 256).is_err());
    }

    #[test]
    fn small_records_turn_out_the_fat_and_whole_sectors_do_not() {
        for (record, fat_buffer, fat_reads) in [(100, false, 8), (512, false, 1), (100, true, 1)] {
            let mut d = Plain { call: 1_000_000, kib: 0, ..Plain::new(968 * MIB) };
            let mut f = Library::new(&mut d, machine(fat_buffer));
            f.create(None).unwrap();
            for _ in 0..128 * KIB / record {
                f.write(record).unwrap();
            }
            let l = f.layout();
            let of_fat = |a: &&Access| a.at >= l.fat && a.at < l.directory;
            assert_eq!(d.seen.iter().filter(of_fat).filter(|a| a.op == Op::Read).count(), fat_reads, "{record}");
            let data: u64 = d.seen.iter().filter(|a| a.at >= l.data && a.op != Op::Read).map(|a| a.len).sum();
            assert!(data <= 128 * KIB && data + SECTOR >= 128 * KIB / record * record / SECTOR * SECTOR, "{record}: {data}");
        }
    }
}
