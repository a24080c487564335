//! What the errors of a target say of it: places of it fail, or it has gone. Decided here for all that goes through a guard.

use super::ranges::RangeSet;
use super::{Access, Device, DeviceError, Geometry, Op, Result, Timed};
use crate::units::Nanos;
use rustix::io::Errno;

impl DeviceError {
    /// Is it the target that went away, and no place of it that failed?
    pub fn is_gone(&self) -> bool {
        let missing = [Errno::NODEV, Errno::NXIO, Errno::NOMEDIUM];
        match self {
            DeviceError::Gone { .. } => true,
            DeviceError::Io { source, .. } => missing.iter().any(|e| source.raw_os_error() == Some(e.raw_os_error())),
            _ => false,
        }
    }
}

/// Places that were read well, and are read again after an error: where all of them and others fail, too, it is no place that fails.
const PLACES: usize = 3;

/// Between them: a reader may reset itself after an error.
const PAUSE: Nanos = Nanos(500_000_000);

/// What failed so far.
#[derive(Clone, Debug, Default)]
pub struct Failures {
    gone: Option<String>,
    garbled: bool,
    unreadable: RangeSet,
    /// Those places, the latest last.
    well: Vec<u64>,
}

impl Failures {
    /// Why the target is of no use any more, if so: what was asked for then is not known, whatever was found before.
    pub fn gone(&self) -> Option<&str> {
        self.gone.as_deref()
    }

    /// Whether it is of no use because it says what is no answer, and not because it left.
    pub fn garbled(&self) -> bool {
        self.garbled
    }

    /// Where reads failed while the target was there.
    pub fn unreadable(&self) -> &RangeSet {
        &self.unreadable
    }

    /// It was taken out and is in again.
    pub(super) fn is_back(&mut self) {
        (self.gone, self.garbled) = (None, false);
    }

    /// This was read.
    pub(super) fn read_well(&mut self, at: u64) {
        if self.well.last() != Some(&at) {
            self.well.retain(|w| *w != at);
            self.well.push(at);
            let old = self.well.len().saturating_sub(PLACES);
            self.well.drain(..old);
        }
    }

    /// A card that has hung, or a reader that lost it, is still there for the kernel, and fails everywhere: does it no longer read what it
    /// read before, nor its start, its middle or its end?
    pub(super) fn hangs(&mut self, target: &mut dyn Device) -> bool {
        let Geometry { size, sector: len, .. } = *target.geometry();
        let others = [0, size / 2 / len * len, size.saturating_sub(len)];
        let places: Vec<u64> = self.well.iter().rev().copied().chain(others).collect();
        for (i, at) in places.into_iter().enumerate() {
            if i > 0 {
                target.idle(PAUSE);
            }
            match target.access(Access { op: Op::Read, at, len }) {
                Err(DeviceError::Io { .. }) => {}
                Err(_) => return false,
                // Read first after the next error.
                Ok(_) => {
                    self.read_well(at);
                    return false;
                }
            }
        }
        true
    }

    /// Everything that comes back from the target passes here: an error of one that went away is named so, whatever the kernel calls it.
    pub(super) fn weigh<T>(&mut self, done: Result<T>, target: &mut dyn Device, path: &str) -> Result<T> {
        let (e, why) = match done {
            Err(e) if e.is_gone() || matches!(e, DeviceError::Io { .. }) && (self.gone.is_some() || !target.is_there()) => {
                (e, "it has gone")
            }
            Err(e) if matches!(e, DeviceError::Io { .. }) && self.hangs(target) => (e, "it does not answer, here or elsewhere"),
            Err(e) => {
                if let DeviceError::Io { op: "read", at, len, .. } = &e {
                    self.unreadable.insert(*at..at.saturating_add(*len));
                }
                return Err(e);
            }
            done => return done,
        };
        let gone = match e {
            DeviceError::Gone { .. } => e,
            e => DeviceError::Gone { target: path.into(), why: format!("{why}: {e}; try another reader or port"), garbled: false },
        };
        if self.gone.is_none() {
            (self.gone, self.garbled) = (Some(gone.to_string()), matches!(gone, DeviceError::Gone { garbled: true, .. }));
        }
        Err(gone)
    }
}

/// Stands where a card was taken out.
pub(super) struct Absent(pub(super) Geometry, pub(super) Nanos);

impl Device for Absent {
    fn geometry(&self) -> &Geometry {
        &self.0
    }
    fn access(&mut self, a: Access) -> Result<Timed> {
        Err(DeviceError::Io { op: a.op.name(), at: a.at, len: a.len, source: Errno::NODEV.into() })
    }
    fn now(&self) -> Nanos {
        self.1
    }
    fn idle(&mut self, _: Nanos) {}
    fn load(&mut self, at: u64, into: &mut [u8]) -> Result<()> {
        Err(DeviceError::Io { op: "read", at, len: into.len() as u64, source: Errno::NODEV.into() })
    }
    fn store(&mut self, at: u64, from: &[u8]) -> Result<()> {
        Err(DeviceError::Io { op: "write", at, len: from.len() as u64, source: Errno::NODEV.into() })
    }
}
