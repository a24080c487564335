//! A bus that several served cards share, as readers on one USB hub do: what one of them moves delays the others.
//!
//! The servers are processes of their own, so a file says until when the bus is busy, under a lock.

use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// No queue on a bus is this long: the file is of a time before the machine was started anew.
const STALE: u64 = 60_000_000_000;

/// Which bus, and how fast it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shared {
    /// All cards that name this file share the bus; it is made where it is missing.
    pub path: PathBuf,
    /// Bytes a second, of all cards together.
    pub rate: u64,
}

/// A place on the bus.
#[derive(Debug)]
pub struct Bus {
    file: File,
    rate: u64,
}

/// When a transfer has the bus to itself, ns of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    pub begins: u64,
    pub ends: u64,
}

impl Bus {
    /// # Errors
    /// The file cannot be made.
    pub fn open(shared: &Shared) -> io::Result<Bus> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&shared.path)?;
        Ok(Bus { file, rate: shared.rate.max(1) })
    }

    /// The next time at which the bus is free for so many bytes, taken from now on.
    pub fn take(&self, now: u64, len: u64) -> Slot {
        let own = || Slot { begins: now, ends: now + self.time(len) };
        // A bus that cannot be asked delays nobody.
        self.ask(now, len).unwrap_or_else(|_| own())
    }

    fn ask(&self, now: u64, len: u64) -> io::Result<Slot> {
        flock(&self.file, FlockOperation::LockExclusive)?;
        let mut free = [0; 8];
        let busy_until = self.file.read_exact_at(&mut free, 0).map_or(0, |()| u64::from_le_bytes(free));
        let begins = if busy_until > now + STALE { now } else { busy_until.max(now) };
        let slot = Slot { begins, ends: begins + self.time(len) };
        let kept = self.file.write_all_at(&slot.ends.to_le_bytes(), 0);
        flock(&self.file, FlockOperation::Unlock)?;
        kept.map(|()| slot)
    }

    /// When a request is answered that the card alone would have answered at `done`: data that is written comes over the bus first, data that
    /// is read last.
    pub fn answered(&self, arrived: u64, done: u64, write: bool, len: u64) -> u64 {
        let slot = self.take(arrived, len);
        let waited = if write { slot.begins - arrived } else { 0 };
        (done + waited).max(slot.ends)
    }

    fn time(&self, len: u64) -> u64 {
        (u128::from(len) * 1_000_000_000 / u128::from(self.rate)) as u64
    }
}

impl Shared {
    /// # Errors
    /// The file cannot be made.
    pub(super) fn begin(&self) -> super::Result<Bus> {
        Bus::open(self).map_err(|e| super::ServeError::system(format!("cannot use {} as a bus", self.path.display()), e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_places_on_one_bus_wait_for_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let shared = Shared { path: dir.path().join("hub"), rate: 1_000_000 };
        let (a, b) = (Bus::open(&shared).unwrap(), Bus::open(&shared).unwrap());
        // A millisecond for 1000 bytes.
        assert_eq!(a.take(5_000_000, 1000), Slot { begins: 5_000_000, ends: 6_000_000 });
        assert_eq!(b.take(5_500_000, 2000), Slot { begins: 6_000_000, ends: 8_000_000 });
        // A card that is slower than the bus hides it; a write waits before the card begins.
        assert_eq!(a.answered(9_000_000, 12_000_000, false, 1000), 12_000_000);
        assert_eq!(b.answered(9_000_000, 12_000_000, true, 1000), 13_000_000);
        assert_eq!(a.answered(20_000_000, 20_100_000, false, 1000), 21_000_000);
        // What another start of the machine left is no queue.
        assert_eq!(a.take(1_000, 1000).begins, 21_000_000);
        std::fs::write(&shared.path, (STALE * 3).to_le_bytes()).unwrap();
        assert_eq!(a.take(1_000, 1000).begins, 1_000);
        // Another bus is another file.
        let other = Bus::open(&Shared { path: dir.path().join("other"), rate: 1_000_000 }).unwrap();
        assert_eq!(other.take(1_500, 1000).begins, 1_500);
    }
}
