//! Files in a directory of a mounted filesystem, by the kernel.
//!
//! Writes go to the kernel's page cache; [`Volume::sync`] brings a file to the medium (fdatasync), and is what must be timed
//! with a write. [`Volume::forget`] writes everything and drops the file pages of this directory from the page cache, so that
//! the next read comes from the medium.

use super::{Entry, Extent, FileId, Label, Result, Space, Volume, VolumeError};
use super::{fiemap_ioctl, fsmap_ioctl};
use crate::device::Timed;
use crate::host::mounts::{Mount, mounts};
use crate::host::sysfs::Sys;
use crate::units::Nanos;
use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate, fdatasync, fsync, statvfs, syncfs};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

/// A directory of a mounted filesystem. Nothing outside it is touched.
pub struct Directory {
    root: PathBuf,
    mount: Option<Mount>,
    files: Vec<Option<(File, String)>>,
    origin: u64,
}

fn clock() -> u64 {
    let t = clock_gettime(ClockId::MonotonicRaw);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

impl Directory {
    /// Uses the directory `root`, which must be there.
    ///
    /// # Errors
    /// It is no directory, or may not be entered.
    pub fn open(root: &Path) -> Result<Directory> {
        let name = root.display().to_string();
        let root = fs::canonicalize(root).map_err(|e| failed("open", &name, e))?;
        if !root.is_dir() {
            return Err(VolumeError::Foreign(format!("{name} is not a directory")));
        }
        let dev = fs::metadata(&root).map_err(|e| failed("open", &name, e))?.dev();
        let dev = crate::host::safety::numbers(dev);
        let all = mounts(&Sys::default());
        // The longest mount point above the directory; anonymous device numbers differ inside one filesystem.
        let mount = all.into_iter().filter(|m| root.starts_with(&m.at)).max_by_key(|m| (m.at.as_os_str().len(), m.dev == dev));
        Ok(Directory { root, mount, files: vec![], origin: clock() })
    }

    /// The filesystem under the directory, where it is known.
    pub fn mount(&self) -> Option<&Mount> {
        self.mount.as_ref()
    }

    /// The directory, with links resolved.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn place(&self, path: &str) -> Result<PathBuf> {
        // Nothing outside: no absolute paths, no "..".
        if !path.is_empty() && Path::new(path).components().all(|c| matches!(c, Component::Normal(_))) {
            return Ok(self.root.join(path));
        }
        Err(VolumeError::Unsupported(format!("'{path}' is not a plain path below the directory")))
    }

    fn file(&self, file: FileId) -> Result<(&File, &str)> {
        let open = self.files.get(file.0 as usize).and_then(Option::as_ref);
        open.map(|(f, p)| (f, p.as_str())).ok_or_else(|| VolumeError::Unsupported("the file is closed".into()))
    }

    fn add(&mut self, file: File, path: &str) -> FileId {
        let free = self.files.iter().position(Option::is_none).unwrap_or(self.files.len());
        if free == self.files.len() {
            self.files.push(None);
        }
        self.files[free] = Some((file, path.to_string()));
        FileId(free as u32)
    }

    fn timed<T>(&self, call: impl FnOnce() -> Result<T>) -> Result<(T, Timed)> {
        let start = self.now();
        let value = call()?;
        Ok((value, Timed { start, took: self.now() - start }))
    }
}

fn failed(op: &'static str, path: &str, e: io::Error) -> VolumeError {
    match Errno::from_io_error(&e) {
        Some(Errno::NOENT) => VolumeError::NotFound(path.into()),
        Some(Errno::NOSPC | Errno::DQUOT) => VolumeError::Full(format!("{op} {path}")),
        _ => VolumeError::Io { op, path: path.into(), source: e },
    }
}

impl Volume for Directory {
    fn label(&self) -> Label {
        Label::Kernel
    }

    fn filesystem(&self) -> String {
        self.mount.as_ref().map_or("unknown".into(), |m| m.kind.clone())
    }

    fn now(&self) -> Nanos {
        Nanos(clock() - self.origin)
    }

    fn idle(&mut self, d: Nanos) {
        std::thread::sleep(std::time::Duration::from_nanos(d.0));
    }

    fn create(&mut self, path: &str) -> Result<(FileId, Timed)> {
        let place = self.place(path)?;
        let open = || OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&place);
        let (file, timed) = self.timed(|| open().map_err(|e| failed("create", path, e)))?;
        Ok((self.add(file, path), timed))
    }

    fn open(&mut self, path: &str) -> Result<(FileId, Timed)> {
        let place = self.place(path)?;
        let open = || OpenOptions::new().read(true).write(true).open(&place);
        let (file, timed) = self.timed(|| open().map_err(|e| failed("open", path, e)))?;
        Ok((self.add(file, path), timed))
    }

    fn write(&mut self, file: FileId, at: u64, data: &[u8]) -> Result<Timed> {
        let (f, path) = self.file(file)?;
        Ok(self.timed(|| f.write_all_at(data, at).map_err(|e| failed("write", path, e)))?.1)
    }

    fn settle(&mut self, file: FileId, at: u64, len: u64) -> Result<()> {
        let (f, path) = self.file(file)?;
        match fallocate(f, FallocateFlags::KEEP_SIZE, at, len) {
            // Those that cannot (exFAT) do not wait either.
            Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
            Err(e) => Err(failed("write", path, e.into())),
        }
    }

    fn read(&mut self, file: FileId, at: u64, into: &mut [u8]) -> Result<Timed> {
        let (f, path) = self.file(file)?;
        Ok(self.timed(|| f.read_exact_at(into, at).map_err(|e| failed("read", path, e)))?.1)
    }

    fn preallocate(&mut self, file: FileId, len: u64) -> Result<Timed> {
        let (f, path) = self.file(file)?;
        let allocate = || match fallocate(f, FallocateFlags::empty(), 0, len) {
            Err(Errno::OPNOTSUPP) => Err(VolumeError::Unsupported(format!("this filesystem cannot give {path} room ahead"))),
            other => other.map_err(|e| failed("preallocate", path, e.into())),
        };
        Ok(self.timed(allocate)?.1)
    }

    fn sync(&mut self, file: FileId) -> Result<Timed> {
        let (f, path) = self.file(file)?;
        Ok(self.timed(|| fdatasync(f).map_err(|e| failed("sync", path, e.into())))?.1)
    }

    fn close(&mut self, file: FileId) -> Result<Timed> {
        self.file(file)?;
        let open = self.files[file.0 as usize].take();
        let close = || {
            drop(open);
            Ok(())
        };
        Ok(self.timed(close)?.1)
    }

    fn delete(&mut self, path: &str) -> Result<Timed> {
        let place = self.place(path)?;
        let remove = || match fs::symlink_metadata(&place)?.is_dir() {
            true => fs::remove_dir(&place),
            false => fs::remove_file(&place),
        };
        Ok(self.timed(|| remove().map_err(|e| failed("delete", path, e)))?.1)
    }

    fn make_dir(&mut self, path: &str) -> Result<Timed> {
        let place = self.place(path)?;
        let make = || match fs::create_dir(&place) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && place.is_dir() => Ok(()),
            other => other,
        };
        Ok(self.timed(|| make().map_err(|e| failed("make directory", path, e)))?.1)
    }

    fn list(&mut self, path: &str) -> Result<Vec<Entry>> {
        let place = if path.is_empty() { self.root.clone() } else { self.place(path)? };
        let read = || -> io::Result<Vec<Entry>> {
            let mut all = vec![];
            for e in fs::read_dir(&place)? {
                let e = e?;
                let meta = e.metadata()?;
                let len = if meta.is_file() { meta.len() } else { 0 };
                all.push(Entry { name: e.file_name().to_string_lossy().into_owned(), len, directory: meta.is_dir() });
            }
            Ok(all)
        };
        read().map_err(|e| failed("list", path, e))
    }

    fn extents(&mut self, path: &str) -> Result<Vec<Extent>> {
        let file = File::open(self.place(path)?).map_err(|e| failed("extents", path, e))?;
        // Room that is not yet on the medium has no place.
        fsync(&file).map_err(|e| failed("extents", path, e.into()))?;
        let unknown = |e: &io::Error| matches!(Errno::from_io_error(e), Some(Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL));
        let all = match fiemap_ioctl::extents(file.as_fd()) {
            // FAT and exFAT know FIBMAP only.
            Err(e) if unknown(&e) => {
                let len = file.metadata().map_err(|e| failed("extents", path, e))?.len();
                let cluster = self.space()?.cluster;
                fsmap_ioctl::blocks(file.as_fd(), len, cluster).map_err(|e| match Errno::from_io_error(&e) {
                    Some(Errno::PERM) => {
                        VolumeError::Unsupported(format!("only root may ask {} where files lie (FIBMAP)", self.filesystem()))
                    }
                    _ if unknown(&e) => VolumeError::Unsupported(format!("{} does not say where files lie", self.filesystem())),
                    _ => failed("extents", path, e),
                })?
            }
            other => other.map_err(|e| failed("extents", path, e))?,
        };
        let mut out: Vec<Extent> = vec![];
        for (file, at, len) in all {
            match out.last_mut() {
                Some(e) if e.at + e.len == at && e.file + e.len == file => e.len += len,
                _ => out.push(Extent { file, at, len }),
            }
        }
        Ok(out)
    }

    fn space(&mut self) -> Result<Space> {
        let s = statvfs(&self.root).map_err(|e| failed("free space", "", e.into()))?;
        Ok(Space { size: s.f_blocks * s.f_frsize, free: s.f_bavail * s.f_frsize, cluster: s.f_frsize })
    }

    fn free_runs(&mut self) -> Result<Option<Vec<(u64, u64)>>> {
        self.flush()?;
        let root = File::open(&self.root).map_err(|e| failed("free space", "", e))?;
        if let Ok(all) = fsmap_ioctl::free(root.as_fd()) {
            return Ok(Some(all));
        }
        // FAT and exFAT: their tables, through the kernel's cache; whoever may not read the device does not learn it.
        let source = self.mount.as_ref().filter(|m| matches!(m.kind.as_str(), "vfat" | "msdos" | "exfat")).map(|m| m.source.clone());
        let Some(device) = source.and_then(|s| File::open(s).ok()) else { return Ok(None) };
        let mut boot = [0; 512];
        let volume = device.read_exact_at(&mut boot, 0).ok().and_then(|()| nandscope_fat::recognise(&boot).ok());
        let Some(volume) = volume else { return Ok(None) };
        let Ok(tree) = nandscope_fat::Tree::read(&volume, |at, into| device.read_exact_at(into, at)) else { return Ok(None) };
        Ok(Some(tree.free_runs().into_iter().map(|(c, n)| (tree.place(c), u64::from(n) * volume.cluster)).collect()))
    }

    fn flush(&mut self) -> Result<Timed> {
        let root = File::open(&self.root).map_err(|e| failed("flush", "", e))?;
        Ok(self.timed(|| syncfs(&root).map_err(|e| failed("flush", "", e.into())))?.1)
    }

    fn forget(&mut self) -> Result<()> {
        self.flush()?;
        let mut next = vec![self.root.clone()];
        while let Some(dir) = next.pop() {
            let Ok(all) = fs::read_dir(&dir) else { continue };
            for e in all.flatten() {
                match e.file_type() {
                    Ok(t) if t.is_dir() => next.push(e.path()),
                    Ok(t) if t.is_file() => {
                        // A file of somebody else that may not be opened stays cached.
                        let Ok(f) = File::open(e.path()) else { continue };
                        fadvise(&f, 0, None, Advice::DontNeed).map_err(|e| failed("forget", "", e.into()))?;
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_a_directory_and_nothing_outside_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut v = Directory::open(dir.path()).unwrap();
        v.make_dir("a").unwrap();
        let (f, _) = v.create("a/b").unwrap();
        v.write(f, 0, &[7; 10_000]).unwrap();
        v.sync(f).unwrap();
        let mut back = vec![0; 10_000];
        let t = v.read(f, 0, &mut back).unwrap();
        assert!(back == [7; 10_000] && t.start <= v.now());
        assert!(v.read(f, 5_000, &mut back).is_err(), "the file ends there");
        v.close(f).unwrap();
        assert_eq!(v.list("a").unwrap(), [Entry { name: "b".into(), len: 10_000, directory: false }]);
        match v.extents("a/b") {
            Ok(all) => assert!(all.iter().map(|e| e.len).sum::<u64>() >= 10_000, "{all:?}"),
            Err(e) => assert!(matches!(e, VolumeError::Unsupported(_)), "{e}"),
        }
        for bad in ["../x", "/etc/passwd", "a/../../x", ""] {
            assert!(matches!(v.create(bad), Err(VolumeError::Unsupported(_))), "{bad}");
        }
        assert!(matches!(v.open("none"), Err(VolumeError::NotFound(_))));
        v.forget().unwrap();
        v.delete("a/b").unwrap();
        v.delete("a").unwrap();
        assert_eq!(v.list("").unwrap(), []);
        let s = v.space().unwrap();
        assert!(s.free <= s.size && s.cluster > 0);
    }

    #[test]
    fn a_file_is_no_directory() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(matches!(Directory::open(file.path()), Err(VolumeError::Foreign(_))));
        assert!(matches!(Directory::open(Path::new("/no/such")), Err(VolumeError::NotFound(_))));
    }
}
