//! Linux block devices and image files: direct I/O, one system call in the timed window, the raw monotonic clock.
//!
//! A timed read is one `pread`. A timed write is one `pwrite`, and where the target may keep completed writes in a volatile
//! cache (sysfs `queue/write_cache` says "write back", and always for image files) one `fdatasync` after it: both together
//! are the one timed access, because without the flush the write has not reached the medium. [`FileDevice::flush_writes`]
//! turns that off. What is written is prepared before the window opens.
//!
//! A short transfer is an error: its time would be that of another access than the one asked for. `EINTR` starts the access
//! and its window again.

use super::buffer::Buffer;
use super::{Access, Device, DeviceError, Fill, Geometry, Op, Result, Timed, ioctl};
use crate::units::{Bytes, MIB, Nanos};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, fdatasync};
use rustix::io::{Errno, pread, pwrite};
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Largest read or write in bytes: four times the largest allocation unit of the SD world.
pub const MAX_ACCESS: u64 = 256 * MIB;
/// Untimed transfers go in pieces of this size.
const PIECE: usize = MIB as usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Block { discard: bool },
    Image,
}

/// An open block device or image file. Only `device::open` makes one; only a Guard writes through one opened for writing.
pub(super) struct FileDevice {
    file: OwnedFd,
    name: String,
    kind: Kind,
    writable: bool,
    /// A timed write includes the flush that brings it to the medium.
    pub flush_writes: bool,
    geometry: Geometry,
    read: Buffer,
    zeros: Buffer,
    ones: Buffer,
    varied: Buffer,
    bounce: Buffer,
    origin: u64,
    /// The file behind a loop device, locked as long as this is open.
    behind: Option<OwnedFd>,
}

/// CLOCK_MONOTONIC_RAW in ns: never stepped, never slewed.
fn clock() -> u64 {
    let t = clock_gettime(ClockId::MonotonicRaw);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

impl FileDevice {
    /// When its clock began.
    pub fn origin(&self) -> u64 {
        self.origin
    }

    /// Keeps the file behind a loop device open, and with it the lock on it.
    pub fn keeps(&mut self, behind: OwnedFd) {
        self.behind = Some(behind);
    }

    /// Goes on with the clock of a device that was opened before.
    pub fn since(&mut self, origin: u64) {
        self.origin = origin;
    }

    pub fn new(file: OwnedFd, name: String, kind: Kind, writable: bool, geometry: Geometry) -> Result<FileDevice> {
        let memory =
            |len| Buffer::new(len).map_err(|e| DeviceError::Open { target: name.clone(), why: format!("no memory for buffers: {e}") });
        let (read, zeros, varied, bounce) = (memory(PIECE)?, memory(4096)?, memory(4096)?, memory(PIECE)?);
        let mut ones = memory(4096)?;
        ones.fill(0xff);
        let flush_writes = geometry.write_cache;
        Ok(FileDevice {
            file,
            kind,
            writable,
            flush_writes,
            geometry,
            read,
            zeros,
            ones,
            varied,
            bounce,
            origin: clock(),
            name,
            behind: None,
        })
    }

    /// Lowers the largest request to what the queue takes of this program's memory: `segments` pieces of it, each at most
    /// `segment` bytes.
    pub fn limit_segments(&mut self, segments: u64, segment: u64) {
        let fits = segments.saturating_mul(segment.min(self.read.piece()));
        if let Some(most) = &mut self.geometry.max_request {
            *most = fits.clamp(self.geometry.sector, *most);
        }
    }

    /// A second descriptor of the same open file.
    pub fn descriptor(&self) -> std::io::Result<OwnedFd> {
        self.file.try_clone()
    }

    fn io(op: &'static str, at: u64, len: u64, e: Errno) -> DeviceError {
        DeviceError::Io { op, at, len, source: e.into() }
    }

    fn short(op: &'static str, at: u64, len: u64, got: usize) -> DeviceError {
        let source = std::io::Error::other(format!("only {got} bytes were transferred"));
        DeviceError::Io { op, at, len, source }
    }

    fn changes(&self) -> Result<()> {
        if self.writable { Ok(()) } else { Err(DeviceError::ReadOnly(self.name.clone())) }
    }

    /// One transfer with nothing else in the window. `EINTR` came before any byte moved, so the access starts again.
    fn timed(origin: u64, op: &'static str, a: Access, mut call: impl FnMut() -> rustix::io::Result<usize>) -> Result<Timed> {
        loop {
            let start = clock();
            let done = call();
            let end = clock();
            match done {
                Ok(n) if n as u64 == a.len => {
                    return Ok(Timed { start: Nanos(start - origin), took: Nanos(end - start) });
                }
                Ok(n) => return Err(FileDevice::short(op, a.at, a.len, n)),
                Err(Errno::INTR) => {}
                Err(e) => return Err(FileDevice::io(op, a.at, a.len, e)),
            }
        }
    }

    fn write(&mut self, fill: Fill, a: Access) -> Result<Timed> {
        let len = a.len as usize;
        let no_memory = |e| DeviceError::Io { op: "write", at: a.at, len: a.len, source: e };
        let buffer = match fill {
            Fill::Zeros => {
                self.zeros.grow(len).map_err(no_memory)?;
                &self.zeros
            }
            Fill::Ones => {
                if self.ones.grow(len).map_err(no_memory)? {
                    self.ones.fill(0xff);
                }
                &self.ones
            }
            Fill::Byte(_) | Fill::Random(_) | Fill::Stamp(_) => {
                self.varied.grow(len).map_err(no_memory)?;
                fill.render(a.at, &mut self.varied[..len]);
                &self.varied
            }
        };
        self.send(&buffer[..len], a)
    }

    /// Copies what a timed write will send to where it is sent from.
    fn prepare(&mut self, a: Access, bytes: &[u8]) -> Result<()> {
        self.changes()?;
        a.check(&self.geometry)?;
        within_buffers(a)?;
        self.varied.grow(bytes.len()).map_err(|e| DeviceError::Io { op: "write", at: a.at, len: a.len, source: e })?;
        self.varied[..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn send(&self, data: &[u8], a: Access) -> Result<Timed> {
        let fd = self.file.as_fd();
        if self.flush_writes {
            FileDevice::timed(self.origin, "write", a, || {
                let n = pwrite(fd, data, a.at)?;
                fdatasync(fd).map(|()| n)
            })
        } else {
            FileDevice::timed(self.origin, "write", a, || pwrite(fd, data, a.at))
        }
    }

    fn discard(&self, a: Access) -> Result<Timed> {
        let fd = self.file.as_fd();
        match self.kind {
            Kind::Block { discard: false } => Err(DeviceError::Unsupported(format!("{} has no discard", self.name))),
            Kind::Block { .. } => FileDevice::timed(self.origin, "discard", a, || {
                ioctl::discard(fd, a.at, a.len, false).map(|()| a.len as usize).map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))
            }),
            Kind::Image => {
                let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                match FileDevice::timed(self.origin, "discard", a, || fallocate(fd, hole, a.at, a.len).map(|()| a.len as usize)) {
                    Err(DeviceError::Io { source, .. }) if source.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error()) => {
                        Err(DeviceError::Unsupported(format!("the filesystem of {} cannot punch holes", self.name)))
                    }
                    other => other,
                }
            }
        }
    }
}

impl Device for FileDevice {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The kernel sets the size of a disk that went away to 0.
    fn is_there(&self) -> bool {
        let size = || rustix::fs::seek(self.file.as_fd(), SeekFrom::End(0));
        !matches!(self.kind, Kind::Block { .. }) || size().is_ok_and(|s| s > 0)
    }

    fn access(&mut self, a: Access) -> Result<Timed> {
        a.check(&self.geometry)?;
        match a.op {
            Op::Read => {
                let no_memory = |e| DeviceError::Io { op: "read", at: a.at, len: a.len, source: e };
                within_buffers(a)?;
                self.read.grow(a.len as usize).map_err(no_memory)?;
                let (fd, buffer) = (self.file.as_fd(), &mut self.read[..a.len as usize]);
                FileDevice::timed(self.origin, "read", a, || pread(fd, &mut *buffer, a.at))
            }
            Op::Write(fill) => {
                self.changes()?;
                within_buffers(a)?;
                self.write(fill, a)
            }
            Op::Discard => {
                self.changes()?;
                self.discard(a)
            }
            Op::Flush => FileDevice::timed(self.origin, "flush", a, || fdatasync(&self.file).map(|()| 0)),
        }
    }

    /// As many threads as may be in flight, each with one access after the other. Reads and writes only, and no write is flushed:
    /// what waits for a flush after each write has nothing in flight beside it.
    fn batch(&mut self, all: &[Access], depth: u32) -> Result<Vec<Timed>> {
        let simple = all.iter().all(|a| matches!(a.op, Op::Read | Op::Write(_)));
        if depth <= 1 || all.len() < 2 || !simple {
            return all.iter().map(|&a| self.access(a)).collect();
        }
        for a in all {
            a.check(&self.geometry)?;
            within_buffers(*a)?;
            if a.op != Op::Read {
                self.changes()?;
            }
        }
        let next = AtomicUsize::new(0);
        let (file, origin) = (&self.file, self.origin);
        let worker = || -> Result<Vec<(usize, Timed)>> {
            let (mut done, mut buffer) = (vec![], Buffer::new(4096).map_err(|e| DeviceError::Io { op: "read", at: 0, len: 0, source: e })?);
            while let Some((i, &a)) = Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, all.get(i)?))) {
                let len = a.len as usize;
                buffer.grow(len).map_err(|e| DeviceError::Io { op: a.op.name(), at: a.at, len: a.len, source: e })?;
                let bytes = &mut buffer[..len];
                let timed = match a.op {
                    Op::Write(fill) => {
                        fill.render(a.at, bytes);
                        FileDevice::timed(origin, "write", a, || pwrite(file, &*bytes, a.at))
                    }
                    _ => FileDevice::timed(origin, "read", a, || pread(file, &mut *bytes, a.at)),
                };
                done.push((i, timed?));
            }
            Ok(done)
        };
        let workers = (depth as usize).min(all.len());
        let mut out = vec![Timed { start: Nanos(0), took: Nanos(0) }; all.len()];
        let parts: Vec<Result<Vec<(usize, Timed)>>> = std::thread::scope(|scope| {
            let running: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
            let gone = || DeviceError::Unsupported("several accesses at a time: a thread ended".into());
            running.into_iter().map(|w| w.join().unwrap_or_else(|_| Err(gone()))).collect()
        });
        for part in parts {
            part?.into_iter().for_each(|(i, t)| out[i] = t);
        }
        Ok(out)
    }

    fn discard_securely(&mut self, at: u64, len: u64) -> Result<()> {
        self.changes()?;
        Access { op: Op::Discard, at, len }.check(&self.geometry)?;
        let unsupported = || DeviceError::Unsupported(format!("{} has no secure discard; overwrite instead", self.name));
        if self.kind == Kind::Image {
            return Err(unsupported());
        }
        ioctl::discard(self.file.as_fd(), at, len, true).map_err(|e| match e.raw_os_error() {
            Some(code) if code == Errno::OPNOTSUPP.raw_os_error() => unsupported(),
            _ => DeviceError::Io { op: "secure discard", at, len, source: e },
        })
    }

    fn now(&self) -> Nanos {
        Nanos(clock() - self.origin)
    }

    fn idle(&mut self, d: Nanos) {
        std::thread::sleep(std::time::Duration::from_nanos(d.0));
    }

    fn load(&mut self, at: u64, into: &mut [u8]) -> Result<()> {
        let size = self.geometry.size;
        let end = at.checked_add(into.len() as u64).filter(|&e| e <= size).ok_or_else(|| outside(at, into.len() as u64, size))?;
        // Direct I/O wants whole sectors: read a little more and keep the part asked for.
        let (sector, mut here, mut kept) = (self.geometry.sector, at, 0);
        while here < end {
            let from = here - here % sector;
            let to = (from + PIECE as u64).min(end.next_multiple_of(sector));
            let whole = (to - from) as usize;
            let got = loop {
                match pread(&self.file, &mut self.bounce[..whole], from) {
                    Err(Errno::INTR) => {}
                    Err(e) => return Err(FileDevice::io("read", from, whole as u64, e)),
                    Ok(n) => break n,
                }
            };
            if got != whole {
                return Err(FileDevice::short("read", from, whole as u64, got));
            }
            let take = (to.min(end) - here) as usize;
            let skip = (here - from) as usize;
            into[kept..kept + take].copy_from_slice(&self.bounce[skip..skip + take]);
            kept += take;
            here += take as u64;
        }
        Ok(())
    }

    fn get(&mut self, at: u64, into: &mut [u8]) -> Result<Timed> {
        let timed = self.access(Access { op: Op::Read, at, len: into.len() as u64 })?;
        into.copy_from_slice(&self.read[..into.len()]);
        Ok(timed)
    }

    fn access_of(&mut self, a: Access, bytes: &[u8]) -> Result<Option<Timed>> {
        self.prepare(a, bytes)?;
        self.send(&self.varied[..bytes.len()], a).map(Some)
    }

    fn put(&mut self, at: u64, from: &[u8]) -> Result<Timed> {
        let a = Access { op: Op::Write(Fill::Random(0)), at, len: from.len() as u64 };
        self.prepare(a, from)?;
        let (fd, data) = (self.file.as_fd(), &self.varied[..from.len()]);
        FileDevice::timed(self.origin, "write", a, || pwrite(fd, data, at))
    }

    fn store(&mut self, at: u64, from: &[u8]) -> Result<()> {
        self.changes()?;
        Access { op: Op::Write(Fill::Zeros), at, len: from.len() as u64 }.check(&self.geometry)?;
        let mut here = at;
        for piece in from.chunks(PIECE) {
            self.bounce[..piece.len()].copy_from_slice(piece);
            let put = loop {
                match pwrite(&self.file, &self.bounce[..piece.len()], here) {
                    Err(Errno::INTR) => {}
                    Err(e) => return Err(FileDevice::io("write", here, piece.len() as u64, e)),
                    Ok(n) => break n,
                }
            };
            if put != piece.len() {
                return Err(FileDevice::short("write", here, piece.len() as u64, put));
            }
            here += put as u64;
        }
        Ok(())
    }
}

fn within_buffers(a: Access) -> Result<()> {
    if a.len <= MAX_ACCESS {
        return Ok(());
    }
    Err(DeviceError::OutOfBounds(format!("one access of {} is larger than the {} a request may have", Bytes(a.len), Bytes(MAX_ACCESS))))
}

fn outside(at: u64, len: u64, size: u64) -> DeviceError {
    DeviceError::OutOfBounds(format!("{len} bytes at {at} do not lie inside the target of {size} bytes"))
}
