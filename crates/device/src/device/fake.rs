//! A memory device for unit tests: every access takes 100 µs, chosen positions fail.

use super::{Access, Device, DeviceError, Fill, Geometry, Op, Result, Timed};
use crate::units::Nanos;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

pub struct Fake {
    geometry: Geometry,
    pub bytes: Arc<Mutex<Vec<u8>>>,
    /// Reads and writes that touch this byte fail.
    pub bad: Option<u64>,
    /// A counterfeit: addresses so many bytes apart are one place. Accesses do not cross such a border.
    pub wraps: u64,
    /// Accesses from here on fail.
    pub ends: u64,
    /// Writes are acknowledged and forgotten.
    pub deaf: bool,
    /// What is read has wrong bytes in it.
    pub lies: bool,
    /// It was taken out.
    pub out: bool,
    /// It is there, and fails everywhere.
    pub hung: Arc<AtomicBool>,
    now: u64,
}

impl Fake {
    pub fn new(size: u64) -> Fake {
        let geometry = Geometry { size, sector: 512, max_request: None, offset: 0, write_cache: false };
        let mut bytes = vec![0; size as usize];
        Fill::Random(1).render(0, &mut bytes);
        Fake {
            geometry,
            bytes: Arc::new(Mutex::new(bytes)),
            bad: None,
            wraps: size,
            ends: size,
            deaf: false,
            lies: false,
            out: false,
            hung: Arc::default(),
            now: 0,
        }
    }

    fn touch(&self, op: &'static str, at: u64, len: u64) -> Result<std::ops::Range<usize>> {
        let hung = self.hung.load(Ordering::Relaxed);
        if self.out || hung || at + len > self.ends || self.bad.is_some_and(|b| (at..at + len).contains(&b)) {
            return Err(DeviceError::Io { op, at, len, source: std::io::Error::other("bad sector") });
        }
        let at = at % self.wraps;
        Ok(at as usize..(at + len) as usize)
    }
}

impl Device for Fake {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn access(&mut self, a: Access) -> Result<Timed> {
        a.check(&self.geometry)?;
        let range = self.touch(a.op.name(), a.at, a.len)?;
        let part = &mut self.bytes.lock().unwrap()[range];
        match a.op {
            Op::Write(fill) => fill.render(a.at, part),
            Op::Discard => part.fill(0),
            Op::Read | Op::Flush => {}
        }
        let start = Nanos(self.now);
        self.now += 100_000;
        Ok(Timed { start, took: Nanos(100_000) })
    }

    fn is_there(&self) -> bool {
        !self.out
    }

    fn now(&self) -> Nanos {
        Nanos(self.now)
    }

    fn idle(&mut self, d: Nanos) {
        self.now += d.0;
    }

    fn load(&mut self, at: u64, into: &mut [u8]) -> Result<()> {
        let range = self.touch("read", at, into.len() as u64)?;
        into.copy_from_slice(&self.bytes.lock().unwrap()[range]);
        if self.lies {
            into.iter_mut().step_by(700).for_each(|b| *b ^= 1);
        }
        Ok(())
    }

    fn access_of(&mut self, a: Access, bytes: &[u8]) -> Result<Option<Timed>> {
        let timed = self.access(a)?;
        self.store(a.at, bytes)?;
        Ok(Some(timed))
    }

    fn store(&mut self, at: u64, from: &[u8]) -> Result<()> {
        let range = self.touch("write", at, from.len() as u64)?;
        if !self.deaf {
            self.bytes.lock().unwrap()[range].copy_from_slice(from);
        }
        Ok(())
    }
}
