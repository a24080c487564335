//! A FAT12, FAT16 or FAT32 volume on any device, by the crate `fatfs` in this process.
//!
//! `fatfs` gives a file the next free cluster behind the last one given (next fit), keeps both tables alike, and writes the
//! directory entry of a file when it is closed. When any of it reaches the card is ruled by [`super::Cache`].

use super::store::{Disk, Runs, Store};
use super::{Entry, Extent, FileId, Host, Label, Result, Space, Volume, VolumeError};
use crate::device::{Access, Device, DeviceError, Geometry, Op, Timed};
use crate::units::{Bytes, MIB, Nanos};
use fatfs::{FileSystem, FsOptions};
use nandscope_fat::{Convention, FatType, Layout, Options, Tree, TreeError, plan, recognise, sd_units};
use self_cell::self_cell;
use std::cell::RefCell;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::rc::Rc;

/// An open file, and where its next byte lies.
struct Open<'a> {
    file: fatfs::File<'a, Disk>,
    path: String,
}

type Files<'a> = Vec<Option<Open<'a>>>;

self_cell!(
    /// The filesystem and the files open on it.
    struct Mounted {
        owner: FileSystem<Disk>,
        #[covariant]
        dependent: Files,
    }
);

/// How to format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Format {
    /// Bytes of a cluster; by the SD convention for the capacity of the target where not given.
    pub cluster: Option<u32>,
    /// The type; by the number of clusters where not given.
    pub kind: Option<FatType>,
}

impl Format {
    /// The volume in the bytes `range` of a target.
    fn layout(&self, target: &Geometry, range: &Range<u64>) -> Result<Layout> {
        let capacity = range.end - range.start;
        let (cluster, unit) = sd_units(target.size);
        // A boundary that would cost an eighth of a small volume is that of a card of its size.
        let unit = if unit > capacity / 8 { sd_units(capacity).1 } else { unit };
        let plan_as = |kind| {
            plan(&Options {
                capacity,
                sector: target.sector.max(512),
                offset: target.offset + range.start,
                convention: Convention::Grid { unit, first: 0 },
                kind: Some(kind),
                // More than 32 KiB not every reader of FAT takes.
                cluster: Some(self.cluster.map_or(cluster.min(32 << 10), u64::from)),
                table: false,
                label: None,
                serial: SERIAL,
            })
        };
        // The type that leaves most of the room in use, the simplest first.
        let kinds = self.kind.map_or(vec![FatType::Fat12, FatType::Fat16, FatType::Fat32], |k| vec![k]);
        let mut all: Vec<_> = kinds.into_iter().map(plan_as).collect();
        let best = (0..all.len()).rev().max_by_key(|&i| all[i].as_ref().map_or(0, |l| l.volume.clusters)).unwrap_or(0);
        all.swap_remove(best).map_err(|why| VolumeError::Unsupported(why.to_string()))
    }
}

/// Serial number of the volumes made here.
const SERIAL: u32 = 0x4e53_4652;

/// A mounted FAT volume. What is changed is on the medium after `flush`, or when the volume is dropped.
pub struct FatVolume {
    mounted: Option<Mounted>,
    store: Rc<RefCell<Store>>,
    base: u64,
    volume: nandscope_fat::Volume,
}

/// All that is on the volume at byte `base` of a device.
///
/// # Errors
/// `Damaged` where it contradicts itself.
pub fn tree(device: &mut dyn Device, base: u64, volume: &nandscope_fat::Volume) -> Result<Tree> {
    Tree::read(volume, |at, into| device.load(base + at, into)).map_err(|e| match e {
        TreeError::Read(e) => VolumeError::Device(e),
        TreeError::Damaged(why) => VolumeError::Damaged(why),
    })
}

impl FatVolume {
    /// Mounts the volume in the bytes `range` of a device. Nothing is written until a file is.
    ///
    /// # Errors
    /// `Foreign` where there is no FAT volume (with what is there instead), `Damaged` where it contradicts itself.
    pub fn mount(mut device: Box<dyn Device>, range: Range<u64>, host: Host) -> Result<FatVolume> {
        let mut boot = [0; 512];
        device.load(range.start, &mut boot)?;
        let found = recognise(&boot).map_err(|why| {
            VolumeError::Foreign(format!(
                "no FAT volume at byte {}: {why}. Format it first, or mount it and name the directory",
                range.start
            ))
        })?;
        if found.kind == FatType::ExFat {
            let why = "an exFAT volume, which cannot be used in-process; mount it and name the directory";
            return Err(VolumeError::Foreign(why.into()));
        }
        if found.size > range.end - range.start {
            let why = format!("the boot sector says {} and the target has {}", Bytes(found.size), Bytes(range.end - range.start));
            return Err(VolumeError::Damaged(why));
        }
        if found.too_few_clusters {
            let why = format!("a FAT32 volume of {} clusters, about which readers disagree; format it again", found.clusters);
            return Err(VolumeError::Foreign(why));
        }
        if device.geometry().sector > found.sector {
            let why = format!("a volume of {} byte sectors on a device of {} byte sectors", found.sector, device.geometry().sector);
            return Err(VolumeError::Foreign(why));
        }
        // `fatfs` trusts what it reads: a chain that runs in a circle would never end.
        tree(&mut *device, range.start, &found)?;
        let store = Rc::new(RefCell::new(Store::new(device, range.clone(), host)));
        store.borrow_mut().set_data_start(found.data_start);
        let disk = Disk::new(Rc::clone(&store));
        let fs = FileSystem::new(disk, FsOptions::new()).map_err(|e| failed("mount", "", e))?;
        Ok(FatVolume { mounted: Some(Mounted::new(fs, |_| vec![])), store, base: range.start, volume: found })
    }

    /// Formats the bytes `range` of a device as its maker would have: data area and clusters by the SD convention for a card of
    /// this capacity; reads it back, and mounts it.
    ///
    /// # Errors
    /// The device failed or does not hold what was written, or no volume of that kind fits.
    pub fn format(mut device: Box<dyn Device>, range: Range<u64>, how: &Format, host: Host) -> Result<FatVolume> {
        let layout = how.layout(device.geometry(), &range)?;
        let cached = device.geometry().write_cache;
        let most = device.geometry().max_request.filter(|&m| m > 0).unwrap_or(MIB).min(MIB) as usize;
        let cell = RefCell::new(&mut *device);
        let flush = || match cached {
            true => cell.borrow_mut().access(Access { op: Op::Flush, at: 0, len: 0 }).map(drop),
            false => Ok(()),
        };
        // As any other write: the card must know what it holds.
        let put = |at: u64, bytes: &[u8]| {
            let mut parts = bytes.chunks(most).enumerate();
            parts.try_for_each(|(i, part)| cell.borrow_mut().put(range.start + at + (i * most) as u64, part).map(drop))
        };
        layout.write(put, flush)?;
        if let Some(at) = layout.verify(|at, into| device.load(range.start + at, into))? {
            let source = std::io::Error::other("what reads back is not what was written");
            return Err(DeviceError::Io { op: "write", at: range.start + at, len: layout.volume.sector, source }.into());
        }
        FatVolume::mount(device, range, host)
    }

    /// Brings everything to the medium, ends the use of the volume and gives the device back.
    ///
    /// # Errors
    /// The device failed; the volume may then need fsck.
    pub fn finish(mut self) -> Result<()> {
        self.mounted = None;
        let done = self.store.borrow_mut().flush();
        Ok(done?)
    }

    /// Where the parts of the volume lie.
    pub fn volume(&self) -> &nandscope_fat::Volume {
        &self.volume
    }

    /// All that is on the volume: what is changed is written, and everything read from the medium, without being timed.
    ///
    /// # Errors
    /// The device failed, or the volume contradicts itself.
    pub fn tree(&mut self) -> Result<Tree> {
        self.flush()?;
        tree(&mut *self.store.borrow_mut().medium.device, self.base, &self.volume)
    }

    /// The memory and times of the host from now on; what is cached is written first.
    ///
    /// # Errors
    /// The device failed.
    pub fn set_host(&mut self, host: Host) -> Result<()> {
        self.store.borrow_mut().set_host(host)?;
        Ok(())
    }

    fn root<T>(&mut self, op: &'static str, path: &str, f: impl FnOnce(&FileSystem<Disk>) -> std::io::Result<T>) -> Result<T> {
        f(self.fs()?).map_err(|e| failed(op, path, e))
    }

    fn fs(&self) -> Result<&FileSystem<Disk>> {
        Ok(self.mounted.as_ref().ok_or_else(closed)?.borrow_owner())
    }

    fn file<T>(&mut self, file: FileId, f: impl FnOnce(&mut Open) -> Result<T>) -> Result<T> {
        let mounted = self.mounted.as_mut().ok_or_else(closed)?;
        mounted.with_dependent_mut(|_, files| f(files.get_mut(file.0 as usize).and_then(Option::as_mut).ok_or_else(closed)?))
    }

    /// Does something and says how long it took, the host's own time included: for moving `bytes`, or for a name.
    fn timed<T>(&mut self, bytes: Option<u64>, f: impl FnOnce(&mut FatVolume) -> Result<T>) -> Result<(T, Timed)> {
        let start = self.now();
        self.store.borrow_mut().cost(bytes);
        let value = f(self)?;
        Ok((value, Timed { start, took: self.now() - start }))
    }

    fn add(&mut self, path: &str, create: bool) -> Result<FileId> {
        let mounted = self.mounted.as_mut().ok_or_else(closed)?;
        mounted.with_dependent_mut(|fs, files| {
            let root = fs.root_dir();
            let open = || {
                if !create {
                    return root.open_file(path);
                }
                let mut file = root.create_file(path)?;
                // An old file is emptied.
                if file.seek(SeekFrom::End(0))? > 0 {
                    file.seek(SeekFrom::Start(0))?;
                    file.truncate()?;
                }
                Ok(file)
            };
            let file = open().map_err(|e| failed(if create { "create" } else { "open" }, path, e))?;
            let open = Some(Open { file, path: path.to_string() });
            let free = files.iter().position(Option::is_none);
            let i = free.unwrap_or(files.len());
            match free {
                Some(i) => files[i] = open,
                None => files.push(open),
            }
            Ok(FileId(i as u32))
        })
    }

    /// `fatfs` 0.3.6 gives the entries "." and ".." of a new directory long names, and the root directory of FAT32 its cluster
    /// number in ".."; fsck rejects both.
    fn mend_dots(&mut self, path: &str) -> Result<()> {
        let tree = self.tree()?;
        let Some(node) = tree.nodes.iter().find(|n| n.directory && n.path.eq_ignore_ascii_case(path)) else { return Ok(()) };
        let at = tree.place(node.chain[0]);
        let mut store = self.store.borrow_mut();
        let mut slots = [0; 128];
        store.meta_read(at, &mut slots)?;
        if slots[11] != 0x0f {
            return Ok(());
        }
        slots.copy_within(32..64, 0);
        slots.copy_within(96..128, 32);
        // The two slots that are left are those of removed files.
        slots[64..].fill(0);
        (slots[64], slots[96]) = (0xe5, 0xe5);
        if !path.contains('/') {
            slots[32 + 20..32 + 22].fill(0);
            slots[32 + 26..32 + 28].fill(0);
        }
        store.meta_write(at, &slots)?;
        Ok(())
    }

    /// Runs of the data of `len` bytes from `at` on, without moving any. Where the volume fills up before the end, the runs
    /// there are, and the error.
    fn runs(&mut self, file: FileId, at: u64, len: u64, write: bool) -> Result<(Runs, Result<()>)> {
        let store = Rc::clone(&self.store);
        self.file(file, |open| {
            let op = if write { "write" } else { "read" };
            let there = open.file.seek(SeekFrom::Start(at)).map_err(|e| failed(op, &open.path, e))?;
            if there != at {
                return Err(VolumeError::Unsupported(format!("{op} at {at} of {}, which ends at {there}", open.path)));
            }
            // What `fatfs` is handed as data is neither read nor written while places are noted.
            let mut scratch = vec![0; (len as usize).min(1 << 20)];
            store.borrow_mut().begin_noting();
            let (mut left, mut done) = (len, Ok(()));
            while left > 0 {
                let n = (left as usize).min(scratch.len());
                let moved = if write { open.file.write(&scratch[..n]) } else { open.file.read(&mut scratch[..n]) };
                match moved {
                    Ok(0) => {
                        let why = format!("{op} of {len} bytes at {at} of {}: it ends {left} bytes early", open.path);
                        done = Err(VolumeError::Unsupported(why));
                        break;
                    }
                    Ok(n) => left -= n as u64,
                    Err(e) => {
                        done = Err(failed(op, &open.path, e));
                        break;
                    }
                }
            }
            Ok((store.borrow_mut().end_noting(), done))
        })
    }
}

fn closed() -> VolumeError {
    VolumeError::Unsupported("the file or the volume is closed".into())
}

/// An error of `fatfs` as ours. It tells a full volume and foreign names apart by text only.
fn failed(op: &'static str, path: &str, e: std::io::Error) -> VolumeError {
    let text = e.to_string();
    let inner = match e.downcast::<DeviceError>() {
        Ok(device) => return VolumeError::Device(device),
        Err(e) => e,
    };
    match (inner.kind(), text.as_str()) {
        (ErrorKind::NotFound, _) => VolumeError::NotFound(path.into()),
        (_, "No space left on device") => VolumeError::Full(format!("{op} {path}")),
        // The fixed root directory of FAT12 and FAT16 cannot grow.
        (ErrorKind::WriteZero, _) => VolumeError::Full(format!("{op} {path}: the root directory takes no more names")),
        (ErrorKind::UnexpectedEof, _) => VolumeError::Damaged(format!("{op} {path}: a chain of clusters ends too early")),
        _ => VolumeError::Io { op, path: path.into(), source: inner },
    }
}

impl Drop for FatVolume {
    fn drop(&mut self) {
        self.mounted = None;
        // Whoever must know whether this went well calls `finish` or `flush`.
        let _ = self.store.borrow_mut().flush();
    }
}

impl Volume for FatVolume {
    fn label(&self) -> Label {
        Label::InProcess
    }

    fn filesystem(&self) -> String {
        self.volume.kind.to_string()
    }

    fn now(&self) -> Nanos {
        self.store.borrow().now()
    }

    fn idle(&mut self, d: Nanos) {
        self.store.borrow_mut().medium.device.idle(d);
    }

    fn create(&mut self, path: &str) -> Result<(FileId, Timed)> {
        self.timed(None, |v| v.add(path, true))
    }

    fn open(&mut self, path: &str) -> Result<(FileId, Timed)> {
        self.timed(None, |v| v.add(path, false))
    }

    fn write(&mut self, file: FileId, at: u64, data: &[u8]) -> Result<Timed> {
        let write = |v: &mut FatVolume| {
            let (runs, done) = v.runs(file, at, data.len() as u64, true)?;
            v.store.borrow_mut().write_runs(&runs, data)?;
            done
        };
        Ok(self.timed(Some(data.len() as u64), write)?.1)
    }

    fn read(&mut self, file: FileId, at: u64, into: &mut [u8]) -> Result<Timed> {
        let len = into.len() as u64;
        let read = |v: &mut FatVolume| {
            let (runs, done) = v.runs(file, at, len, false)?;
            done?;
            Ok(v.store.borrow_mut().read_runs(&runs, into)?)
        };
        Ok(self.timed(Some(len), read)?.1)
    }

    fn preallocate(&mut self, file: FileId, len: u64) -> Result<Timed> {
        let allocate = |v: &mut FatVolume| {
            let (_, done) = v.runs(file, 0, len, true)?;
            done
        };
        Ok(self.timed(Some(0), allocate)?.1)
    }

    fn sync(&mut self, file: FileId) -> Result<Timed> {
        let sync = |v: &mut FatVolume| {
            v.file(file, |open| open.file.flush().map_err(|e| failed("sync", &open.path, e)))?;
            Ok(v.store.borrow_mut().flush()?)
        };
        Ok(self.timed(Some(0), sync)?.1)
    }

    fn close(&mut self, file: FileId) -> Result<Timed> {
        let close = |v: &mut FatVolume| {
            // Dropping a file of `fatfs` flushes it and loses the error.
            v.file(file, |open| open.file.flush().map_err(|e| failed("close", &open.path, e)))?;
            v.mounted.as_mut().ok_or_else(closed)?.with_dependent_mut(|_, files| files[file.0 as usize] = None);
            Ok(v.store.borrow_mut().flush()?)
        };
        Ok(self.timed(None, close)?.1)
    }

    fn delete(&mut self, path: &str) -> Result<Timed> {
        let open = |files: &Files| files.iter().flatten().any(|o| o.path.eq_ignore_ascii_case(path));
        if self.mounted.as_ref().is_some_and(|m| open(m.borrow_dependent())) {
            return Err(VolumeError::Unsupported(format!("{path} is open and cannot be removed")));
        }
        Ok(self.timed(None, |v| v.root("delete", path, |fs| fs.root_dir().remove(path)))?.1)
    }

    fn make_dir(&mut self, path: &str) -> Result<Timed> {
        let make = |v: &mut FatVolume| {
            v.root("make directory", path, |fs| fs.root_dir().create_dir(path).map(|_| ()))?;
            v.mend_dots(path)
        };
        Ok(self.timed(None, make)?.1)
    }

    fn list(&mut self, path: &str) -> Result<Vec<Entry>> {
        self.root("list", path, |fs| {
            let dir = if path.is_empty() { fs.root_dir() } else { fs.root_dir().open_dir(path)? };
            let mut all = vec![];
            for e in dir.iter() {
                let e = e?;
                let name = e.file_name();
                if name != "." && name != ".." {
                    all.push(Entry { name, len: e.len(), directory: e.is_dir() });
                }
            }
            Ok(all)
        })
    }

    fn extents(&mut self, path: &str) -> Result<Vec<Extent>> {
        let file = self.add(path, false)?;
        let len = self.file(file, |o| o.file.seek(SeekFrom::End(0)).map_err(|e| failed("extents", path, e)))?;
        let runs = self.runs(file, 0, len, false);
        self.mounted.as_mut().ok_or_else(closed)?.with_dependent_mut(|_, files| files[file.0 as usize] = None);
        let (runs, done) = runs?;
        done?;
        let mut at_file = 0;
        let each = runs.into_iter().map(|(at, len)| {
            let e = Extent { file: at_file, at, len };
            at_file += len;
            e
        });
        Ok(each.collect())
    }

    fn space(&mut self) -> Result<Space> {
        let size = self.volume.size;
        self.root("free space", "", |fs| {
            let s = fs.stats()?;
            let cluster = u64::from(s.cluster_size());
            Ok(Space { size, free: u64::from(s.free_clusters()) * cluster, cluster })
        })
    }

    fn flush(&mut self) -> Result<Timed> {
        let flush = |v: &mut FatVolume| Ok(v.store.borrow_mut().flush()?);
        Ok(self.timed(Some(0), flush)?.1)
    }

    fn forget(&mut self) -> Result<()> {
        Ok(self.store.borrow_mut().forget()?)
    }
}

#[cfg(test)]
#[path = "fat_tests.rs"]
mod tests;
