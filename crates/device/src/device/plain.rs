//! A device of constant speed that keeps what it was asked: for tests of what sends accesses.

use super::{Access, Device, DeviceError, Geometry, Result, Timed};
use crate::units::Nanos;

/// Nothing is stored: reads give back what was in the buffer.
#[derive(Clone, Debug)]
pub struct Plain<F = fn(usize, Access) -> u64> {
    pub geometry: Geometry,
    /// Time of an access, in ns, and of each KiB of it.
    pub call: u64,
    pub kib: u64,
    /// Extra ns of an access, by its number, from 0.
    pub extra: F,
    /// The number of the first access that fails.
    pub fail_from: usize,
    /// What was asked, in its order.
    pub seen: Vec<Access>,
    /// Its clock.
    pub now: Nanos,
}

impl Plain {
    /// Sectors of 512 bytes; 100 µs an access and 1 µs a KiB.
    pub fn new(size: u64) -> Plain {
        let geometry = Geometry { size, sector: 512, max_request: None, offset: 0, write_cache: false };
        Plain { geometry, call: 100_000, kib: 1000, extra: |_, _| 0, fail_from: usize::MAX, seen: vec![], now: Nanos(0) }
    }

    /// The same with other extra times.
    pub fn with<F: Fn(usize, Access) -> u64>(self, extra: F) -> Plain<F> {
        let Plain { geometry, call, kib, fail_from, seen, now, .. } = self;
        Plain { geometry, call, kib, extra, fail_from, seen, now }
    }
}

impl<F: Fn(usize, Access) -> u64> Device for Plain<F> {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn access(&mut self, a: Access) -> Result<Timed> {
        a.check(&self.geometry)?;
        if self.seen.len() >= self.fail_from {
            return Err(DeviceError::Io { op: a.op.name(), at: a.at, len: a.len, source: std::io::Error::from_raw_os_error(5) });
        }
        let took = Nanos(self.call + a.len * self.kib / 1024 + (self.extra)(self.seen.len(), a));
        self.seen.push(a);
        let start = self.now;
        self.now = self.now + took;
        Ok(Timed { start, took })
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn idle(&mut self, d: Nanos) {
        self.now = self.now + d;
    }

    fn load(&mut self, _: u64, _: &mut [u8]) -> Result<()> {
        Ok(())
    }

    fn store(&mut self, _: u64, _: &[u8]) -> Result<()> {
        Ok(())
    }
}
