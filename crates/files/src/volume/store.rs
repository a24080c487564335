//! What `fatfs` sees as its disk: one volume on a device, through caches whose size is known.
//!
//! While a file is read or written, `fatfs` moves one cluster at a time. An operating system joins neighbouring clusters into
//! one request; so the places of the data are only noted, and moved in as few requests as their runs allow.

use super::cache::Sectors;
use super::{Cache, Host};
use crate::device::{Access, Device, Op, Result};
use crate::units::{MIB, Nanos};
use std::cell::RefCell;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::rc::Rc;

/// Pieces of the volume: position and length in bytes.
pub type Runs = Vec<(u64, u64)>;

/// The device, counted in sectors of the volume.
pub struct Medium {
    pub device: Box<dyn Device>,
    base: u64,
    size: u64,
    sector: u64,
    request: u64,
}

impl Medium {
    pub fn get(&mut self, sector: u64, into: &mut [u8]) -> Result<()> {
        for (i, part) in into.chunks_mut(self.request as usize).enumerate() {
            self.device.get(self.base + sector * self.sector + i as u64 * self.request, part)?;
        }
        Ok(())
    }

    pub fn put(&mut self, sector: u64, from: &[u8]) -> Result<()> {
        for (i, part) in from.chunks(self.request as usize).enumerate() {
            self.device.put(self.base + sector * self.sector + i as u64 * self.request, part)?;
        }
        Ok(())
    }

    pub fn most_sectors(&self) -> usize {
        (self.request / self.sector).max(1) as usize
    }
}

pub struct Store {
    pub medium: Medium,
    meta: Sectors,
    data: Sectors,
    pub host: Host,
    /// First byte of the clusters.
    data_start: u64,
    /// While a file is read or written: where its data lies, neighbours joined, in bytes of the volume.
    noted: Option<Runs>,
}

impl Store {
    /// The bytes `range` of the device as a volume.
    pub fn new(device: Box<dyn Device>, range: Range<u64>, host: Host) -> Store {
        let (sector, request) = (device.geometry().sector, request(&*device, host));
        let Cache { meta, data, .. } = host.cache;
        Store {
            medium: Medium { device, base: range.start, size: range.end - range.start, sector, request },
            meta: Sectors::new(meta, sector),
            data: Sectors::new(data, sector),
            host,
            data_start: 0,
            noted: None,
        }
    }

    /// Another host: what is cached is written and forgotten.
    pub fn set_host(&mut self, host: Host) -> Result<()> {
        self.flush()?;
        self.medium.request = request(&*self.medium.device, host);
        self.meta = Sectors::new(host.cache.meta, self.medium.sector);
        self.data = Sectors::new(host.cache.data, self.medium.sector);
        self.host = host;
        Ok(())
    }

    pub fn now(&self) -> Nanos {
        self.medium.device.now()
    }

    /// Where the clusters begin, once that is known.
    pub fn set_data_start(&mut self, at: u64) {
        self.data_start = at;
    }

    /// Time the host itself needs for an operation on `bytes` bytes, or with a name where that is none; see [`Host`].
    pub fn cost(&mut self, bytes: Option<u64>) {
        let (name, bytes) = bytes.map_or((self.host.name.0, 0), |b| (0, b));
        let copy = bytes.saturating_mul(1_000_000_000).checked_div(self.host.copy).unwrap_or(0);
        let ns = self.host.call.0 + name + copy;
        if ns > 0 {
            self.medium.device.idle(Nanos(ns));
        }
    }

    /// From now on data is noted instead of moved.
    pub fn begin_noting(&mut self) {
        self.noted = Some(vec![]);
    }

    /// The data noted since, as runs (position, length).
    pub fn end_noting(&mut self) -> Runs {
        self.noted.take().unwrap_or_default()
    }

    fn note(&mut self, at: u64, len: usize) -> bool {
        let Some(noted) = self.noted.as_mut().filter(|_| at >= self.data_start) else { return false };
        match noted.last_mut() {
            Some((start, n)) if *start + *n == at => *n += len as u64,
            _ => noted.push((at, len as u64)),
        }
        true
    }

    /// Reads one piece of a sector of tables or directories; returns its bytes.
    pub fn meta_read(&mut self, at: u64, into: &mut [u8]) -> Result<usize> {
        let size = self.medium.sector;
        let (sector, inside) = (at / size, (at % size) as usize);
        let n = into.len().min(size as usize - inside);
        if self.meta.has_room() {
            into[..n].copy_from_slice(&self.meta.get(sector, false, &mut self.medium)?[inside..inside + n]);
        } else {
            let mut whole = vec![0; size as usize];
            self.medium.get(sector, &mut whole)?;
            into[..n].copy_from_slice(&whole[inside..inside + n]);
        }
        Ok(n)
    }

    /// Changes one piece of a sector of tables or directories; returns the bytes that were.
    pub fn meta_write(&mut self, at: u64, from: &[u8]) -> Result<usize> {
        let size = self.medium.sector;
        let (sector, inside) = (at / size, (at % size) as usize);
        let n = from.len().min(size as usize - inside);
        change(&mut self.meta, &mut self.medium, sector, inside, &from[..n], self.host.cache.write_back)?;
        Ok(n)
    }

    /// Reads runs of file data into `into`, one after the other.
    pub fn read_runs(&mut self, runs: &[(u64, u64)], into: &mut [u8]) -> Result<()> {
        let mut done = 0;
        for &(at, len) in runs {
            self.read_run(at, &mut into[done..done + len as usize])?;
            done += len as usize;
        }
        Ok(())
    }

    fn read_run(&mut self, at: u64, into: &mut [u8]) -> Result<()> {
        let size = self.medium.sector;
        let (mut done, all) = (0, into.len());
        while done < all {
            let here = at + done as u64;
            let (sector, inside) = (here / size, (here % size) as usize);
            let n = (all - done).min(size as usize - inside);
            if let Some(kept) = self.data.peek(sector) {
                into[done..done + n].copy_from_slice(&kept[inside..inside + n]);
                done += n;
                continue;
            }
            let whole = inside == 0 && n == size as usize;
            if !whole && self.data.has_room() {
                into[done..done + n].copy_from_slice(&self.data.get(sector, false, &mut self.medium)?[inside..inside + n]);
                done += n;
                continue;
            }
            if !whole {
                let mut scratch = vec![0; size as usize];
                self.medium.get(sector, &mut scratch)?;
                into[done..done + n].copy_from_slice(&scratch[inside..inside + n]);
                done += n;
                continue;
            }
            // As many whole sectors as are not in the cache, in one go.
            let mut count = 1;
            while done + (count + 1) * size as usize <= all && self.data.peek(sector + count as u64).is_none() {
                count += 1;
            }
            let part = &mut into[done..done + count * size as usize];
            self.medium.get(sector, part)?;
            if self.data.has_room() && !self.host.cache.direct {
                for (i, one) in part.chunks(size as usize).enumerate() {
                    self.data.get(sector + i as u64, true, &mut self.medium)?.copy_from_slice(one);
                }
            }
            done += part.len();
        }
        Ok(())
    }

    /// Writes `from` to runs of file data, one after the other.
    pub fn write_runs(&mut self, runs: &[(u64, u64)], from: &[u8]) -> Result<()> {
        let mut done = 0;
        for &(at, len) in runs {
            self.write_run(at, &from[done..done + len as usize])?;
            done += len as usize;
        }
        Ok(())
    }

    fn write_run(&mut self, at: u64, from: &[u8]) -> Result<()> {
        let size = self.medium.sector;
        let (mut done, all) = (0, from.len());
        while done < all {
            let here = at + done as u64;
            let (sector, inside) = (here / size, (here % size) as usize);
            let n = (all - done).min(size as usize - inside);
            let whole = inside == 0 && n == size as usize;
            if whole {
                let count = (all - done) / size as usize;
                let part = &from[done..done + count * size as usize];
                self.medium.put(sector, part)?;
                for (i, one) in part.chunks(size as usize).enumerate() {
                    if self.data.has_room() && !self.host.cache.direct {
                        self.data.get(sector + i as u64, true, &mut self.medium)?.copy_from_slice(one);
                    } else {
                        self.data.update(sector + i as u64, one);
                    }
                }
                done += part.len();
                continue;
            }
            change(&mut self.data, &mut self.medium, sector, inside, &from[done..done + n], self.host.cache.write_back)?;
            done += n;
        }
        Ok(())
    }

    /// Brings everything to the medium: data first, then what leads to it. Ends with a flush where the device has a cache.
    pub fn flush(&mut self) -> Result<()> {
        self.data.flush(&mut self.medium)?;
        self.meta.flush(&mut self.medium)?;
        if self.medium.device.geometry().write_cache {
            self.medium.device.access(Access { op: Op::Flush, at: 0, len: 0 })?;
        }
        Ok(())
    }

    /// Flushes and forgets.
    pub fn forget(&mut self) -> Result<()> {
        self.flush()?;
        self.data.clear();
        self.meta.clear();
        Ok(())
    }
}

/// The longest request in bytes.
fn request(device: &dyn Device, host: Host) -> u64 {
    let g = device.geometry();
    let most = g.max_request.filter(|&m| m > 0).unwrap_or(MIB).min(crate::device::MAX_ACCESS);
    let asked = if host.request == 0 { most } else { host.request.min(most) };
    (asked / g.sector * g.sector).max(g.sector)
}

/// Changes a part of a sector in a cache, or on the medium where the cache has no room.
fn change(cache: &mut Sectors, medium: &mut Medium, sector: u64, inside: usize, from: &[u8], back: bool) -> Result<()> {
    let size = medium.sector as usize;
    let whole = from.len() == size;
    if cache.has_room() {
        let bytes = cache.get(sector, whole, medium)?;
        bytes[inside..inside + from.len()].copy_from_slice(from);
        if !back {
            // Written at once, but kept for the next look.
            return medium.put(sector, bytes);
        }
        cache.mark();
        return Ok(());
    }
    if whole {
        return medium.put(sector, from);
    }
    let mut scratch = vec![0; size];
    medium.get(sector, &mut scratch)?;
    scratch[inside..inside + from.len()].copy_from_slice(from);
    medium.put(sector, &scratch)
}

/// The store with a position, as `fatfs` wants it. Errors of the device pass through `fatfs` inside an `io::Error`.
#[derive(Clone)]
pub struct Disk {
    pub store: Rc<RefCell<Store>>,
    at: u64,
}

impl Disk {
    pub fn new(store: Rc<RefCell<Store>>) -> Disk {
        Disk { store, at: 0 }
    }
}

impl Read for Disk {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut s = self.store.borrow_mut();
        let n = (into.len() as u64).min(s.medium.size.saturating_sub(self.at)) as usize;
        let n = if n == 0 || s.note(self.at, n) { n } else { s.meta_read(self.at, &mut into[..n]).map_err(io::Error::other)? };
        self.at += n as u64;
        Ok(n)
    }
}

impl Write for Disk {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        let mut s = self.store.borrow_mut();
        let n = (from.len() as u64).min(s.medium.size.saturating_sub(self.at)) as usize;
        let n = if n == 0 || s.note(self.at, n) { n } else { s.meta_write(self.at, &from[..n]).map_err(io::Error::other)? };
        self.at += n as u64;
        Ok(n)
    }

    /// When changes go to the medium is for the volume to say.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Disk {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let size = self.store.borrow().medium.size;
        let at = match to {
            SeekFrom::Start(n) => Some(n),
            SeekFrom::Current(d) => self.at.checked_add_signed(d),
            SeekFrom::End(d) => size.checked_add_signed(d),
        };
        self.at = at.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}
