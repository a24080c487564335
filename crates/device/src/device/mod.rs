//! Things that can be probed. A device reads its own clock, so a simulated card in virtual time is just another device.

mod aliases;
mod block;
#[allow(unsafe_code)]
mod buffer;
mod consent;
#[cfg(test)]
mod fake;
pub mod fill;
mod gone;
mod guard;
mod image;
#[allow(unsafe_code)]
mod ioctl;
pub mod mmc;
#[allow(unsafe_code)]
mod mmc_ioctl;
mod open;
pub mod plain;
mod program;
pub mod ranges;
mod realtime;
mod recover;
mod sim;
mod state;
mod target;
pub mod trace;
pub mod undo;

pub use block::MAX_ACCESS;
pub use consent::{Consent, TargetId, consent_id};
pub use gone::Failures;
pub use guard::{Counters, Guard, Limits};
pub use open::{OpenOptions, Opened, is_simulated, open, open_model, read_table_again};
pub use program::is_name as is_program;
pub use realtime::{Realtime, realtime};
pub use recover::{Discarded, RecoverOptions, Recovered, discard, recover, would_recover};
pub use sim::{Machine, SimDevice, errno, request};
pub use state::CardState;
pub use target::{SimCard, Target, missing, model_text, nearest, target_name, with_content};

use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// What a write puts on the medium: named, never a buffer, so that a sample says all there is to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fill {
    Zeros,
    Ones,
    /// One byte, repeated.
    Byte(u8),
    /// Incompressible bytes made from the seed and the position.
    Random(u64),
    /// Every sector carries its own address and the seed, so that it can be checked later.
    Stamp(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    Read,
    Write(Fill),
    Discard,
    Flush,
}

/// One access: `at` and `len` in bytes, multiples of the logical sector, inside the device. Flush has length 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    pub op: Op,
    pub at: u64,
    pub len: u64,
}

impl Access {
    /// Checks the access against the grid and the end of the device, before anything is sent.
    ///
    /// # Errors
    /// `OutOfBounds`, naming the rule that is broken.
    pub fn check(&self, g: &Geometry) -> Result<()> {
        let Access { op, at, len } = *self;
        let wrong = |why: String| Err(DeviceError::OutOfBounds(format!("{} of {len} bytes at {at}: {why}", op.name())));
        if op == Op::Flush {
            return if len == 0 { Ok(()) } else { wrong("a flush has no length".into()) };
        }
        if len == 0 {
            return wrong("an access has at least one sector".into());
        }
        // Sectors are powers of two; a mask costs less than two divisions in front of every access.
        if (at | len) & (g.sector - 1) != 0 {
            return wrong(format!("position and length must be multiples of the {} byte sector", g.sector));
        }
        match at.checked_add(len) {
            Some(end) if end <= g.size => Ok(()),
            _ => wrong(format!("the target ends at {}", g.size)),
        }
    }
}

impl Op {
    /// The word for messages and traces.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Read => "read",
            Op::Write(_) => "write",
            Op::Discard => "discard",
            Op::Flush => "flush",
        }
    }
}

/// When an access began on the device's clock, and how long it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timed {
    pub start: Nanos,
    pub took: Nanos,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Geometry {
    /// Bytes that can be addressed.
    pub size: u64,
    /// Logical sector in bytes: the grain of every access.
    pub sector: u64,
    /// Largest request in bytes that reaches the medium in one piece, where known.
    pub max_request: Option<u64>,
    /// Where this target begins on the whole disk, in bytes; 0 for a whole disk (Q3).
    pub offset: u64,
    /// True where a completed write may still sit in a volatile cache, so that a timed write is followed by a flush.
    pub write_cache: bool,
}

impl Geometry {
    /// Bytes of a small access: what file systems mostly ask for, or a sector where that is more.
    pub fn small(&self) -> u64 {
        self.sector.max(4096)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The access leaves the device, the region or the sector grid; nothing was sent.
    #[error("{0}")]
    OutOfBounds(String),
    /// The write budget is used up; nothing was sent.
    #[error("write budget used up: {0}")]
    Budget(String),
    /// The time allowed is over, or the run was asked to stop; nothing was sent.
    #[error("the time allowed is over")]
    Late,
    /// The target was not opened for writing.
    #[error("{0} is open for reading only")]
    ReadOnly(String),
    /// The operation does not exist here (discard on a device without it).
    #[error("not supported by this target: {0}")]
    Unsupported(String),
    /// The medium failed.
    #[error("{op} of {len} bytes at {at} failed: {source}")]
    Io { op: &'static str, at: u64, len: u64, source: std::io::Error },
    /// The target is of no use any more: a program or a board that ended, hung or talks nonsense, a card that was taken out. The text says
    /// why. Nothing that is asked of it after this can be answered.
    #[error("{target}: {why}")]
    Gone {
        target: String,
        why: String,
        /// It is still there: what it said last is no answer.
        garbled: bool,
    },
    /// Refused for safety; the text names what is in the way and what to do.
    #[error("{0}")]
    Refused(String),
    /// The target cannot be opened; `why` ends with what to do about it.
    #[error("cannot open {target}: {why}")]
    Open { target: String, why: String },
    /// The undo journal cannot be written or read; nothing was sent to the device.
    #[error("undo journal {path}: {why}")]
    Journal { path: String, why: String },
}

pub type Result<T> = std::result::Result<T, DeviceError>;

/// How long a card was busy in one write command of the bus, in ns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Busy {
    /// First byte that the command wrote.
    pub at: u64,
    /// After each data block of one sector.
    pub data: Vec<u64>,
    /// After the stop command, where one was sent.
    pub stop: Option<u64>,
}

/// Something that can be probed.
pub trait Device {
    fn geometry(&self) -> &Geometry;

    /// One timed access. Nothing but the access lies inside the timed window.
    fn access(&mut self, a: Access) -> Result<Timed>;

    /// All accesses in order, at most `depth` in flight. The default keeps one in flight.
    fn batch(&mut self, all: &[Access], depth: u32) -> Result<Vec<Timed>> {
        let _ = depth;
        all.iter().map(|&a| self.access(a)).collect()
    }

    /// True where accesses of a batch are sent before the answers to earlier ones came, although one is served at a time.
    fn sends_ahead(&self) -> bool {
        false
    }

    /// Asked after an access failed: is it still there? The kernel tells of a card that was taken out by the same error as of a bad sector.
    fn is_there(&self) -> bool {
        true
    }

    /// The device's own clock.
    fn now(&self) -> Nanos;

    /// Lets time pass: sleeps, or advances the virtual clock.
    fn idle(&mut self, d: Nanos);

    /// Reads bytes, untimed (undo, verification, on-disk structures).
    fn load(&mut self, at: u64, into: &mut [u8]) -> Result<()>;

    /// Writes bytes, untimed (undo).
    fn store(&mut self, at: u64, from: &[u8]) -> Result<()>;

    /// How long the card was busy after each block of the last write, and after the stop command where one was sent: one entry a
    /// command of the bus, where the target knows (C10).
    fn busy(&mut self) -> Option<Vec<Busy>> {
        None
    }

    /// Discards so that the old content cannot be read any more, untimed.
    ///
    /// # Errors
    /// `Unsupported` where the target has no such command.
    fn discard_securely(&mut self, at: u64, len: u64) -> Result<()> {
        Err(DeviceError::Unsupported(format!("secure discard of {len} bytes at {at}; overwrite instead")))
    }

    /// One timed read that keeps what it read, for what needs the bytes (filesystems). `at` and the length as in [`Access`].
    ///
    /// # Errors
    /// As `access`; `Unsupported` where a simulated card keeps no content.
    fn get(&mut self, at: u64, into: &mut [u8]) -> Result<Timed> {
        let timed = self.access(Access { op: Op::Read, at, len: into.len() as u64 })?;
        self.load(at, into)?;
        Ok(timed)
    }

    /// One timed write of these very bytes. `at` and the length as in [`Access`]. Unlike a write by `access` it includes no
    /// flush, even where there is a write cache: when data must be on the medium is for a filesystem to say.
    ///
    /// # Errors
    /// As `access`; `Unsupported` while writes are raw transactions (`write_as`).
    fn put(&mut self, at: u64, from: &[u8]) -> Result<Timed> {
        let start = self.now();
        self.store(at, from)?;
        Ok(Timed { start, took: self.now() - start })
    }

    /// Saves what these ranges (first byte, length) hold ahead of writing there, where what is written is to be put back.
    ///
    /// # Errors
    /// The old content cannot be read or saved.
    fn keep_old(&mut self, ranges: &[(u64, u64)]) -> Result<()> {
        let _ = ranges;
        Ok(())
    }

    /// Is what is written kept and put back in the end?
    fn puts_back(&self) -> bool {
        false
    }

    /// One timed write for its time alone: where what is there was saved, it is written again, so that nothing has to be put back. What
    /// repeats one byte counts as such only after [`Device::write_same`]. Else the write that was asked for.
    ///
    /// # Errors
    /// As `access`.
    fn rewrite(&mut self, a: Access) -> Result<Timed> {
        self.access(a)
    }

    /// The timed write `a` with these bytes in place of its fill. `None` where the target cannot: nothing was sent.
    ///
    /// # Errors
    /// As `access`.
    fn access_of(&mut self, a: Access, bytes: &[u8]) -> Result<Option<Timed>> {
        let _ = (a, bytes);
        Ok(None)
    }

    /// From now on writes for their time alone may repeat this byte where it is there already: it takes as long as any other content.
    fn write_same(&mut self, byte: u8) {
        let _ = byte;
    }

    /// Goes on after the card was taken out and put in again: opens it anew, and checks that it is the same one. A simulated card loses
    /// its power here.
    ///
    /// # Errors
    /// `Unsupported` where that cannot be done; another card, or none, is there now.
    fn reinsert(&mut self) -> Result<()> {
        Err(DeviceError::Unsupported("this target cannot be taken out".into()))
    }

    /// Chooses how the writes from now on are put on the bus of an SD or MMC card; `None`, the state at the start, leaves that
    /// to the kernel. A wrapper passes it on: a raw write is an access like any other.
    ///
    /// # Errors
    /// `Unsupported` with the reason; nothing changes then.
    fn write_as(&mut self, how: Option<mmc::Multi>) -> Result<()> {
        how.map_or(Ok(()), |how| Err(how.unsupported("this target takes no raw MMC commands")))
    }

    /// Switches the volatile write cache of the card on or off, untimed; what is in it reaches the medium first. Returns whether it
    /// was on.
    ///
    /// # Errors
    /// `Unsupported` where there is none, or no way to switch it; `Io` where the card failed.
    fn switch_cache(&mut self, on: bool) -> Result<bool> {
        let _ = on;
        Err(DeviceError::Unsupported("a write cache that can be switched".into()))
    }
}

/// Lets a wrapper hold what it wraps by reference or in a box.
macro_rules! forward {
    ($($kind:ty),*) => {$(
        impl<D: Device + ?Sized> Device for $kind {
            fn geometry(&self) -> &Geometry {
                (**self).geometry()
            }
            fn access(&mut self, a: Access) -> Result<Timed> {
                (**self).access(a)
            }
            fn batch(&mut self, all: &[Access], depth: u32) -> Result<Vec<Timed>> {
                (**self).batch(all, depth)
            }
            fn sends_ahead(&self) -> bool {
                (**self).sends_ahead()
            }
            fn is_there(&self) -> bool {
                (**self).is_there()
            }
            fn now(&self) -> Nanos {
                (**self).now()
            }
            fn idle(&mut self, d: Nanos) {
                (**self).idle(d);
            }
            fn load(&mut self, at: u64, into: &mut [u8]) -> Result<()> {
                (**self).load(at, into)
            }
            fn store(&mut self, at: u64, from: &[u8]) -> Result<()> {
                (**self).store(at, from)
            }
            fn busy(&mut self) -> Option<Vec<Busy>> {
                (**self).busy()
            }
            fn discard_securely(&mut self, at: u64, len: u64) -> Result<()> {
                (**self).discard_securely(at, len)
            }
            fn get(&mut self, at: u64, into: &mut [u8]) -> Result<Timed> {
                (**self).get(at, into)
            }
            fn put(&mut self, at: u64, from: &[u8]) -> Result<Timed> {
                (**self).put(at, from)
            }
            fn keep_old(&mut self, ranges: &[(u64, u64)]) -> Result<()> {
                (**self).keep_old(ranges)
            }
            fn puts_back(&self) -> bool {
                (**self).puts_back()
            }
            fn rewrite(&mut self, a: Access) -> Result<Timed> {
                (**self).rewrite(a)
            }
            fn access_of(&mut self, a: Access, bytes: &[u8]) -> Result<Option<Timed>> {
                (**self).access_of(a, bytes)
            }
            fn write_same(&mut self, byte: u8) {
                (**self).write_same(byte);
            }
            fn reinsert(&mut self) -> Result<()> {
                (**self).reinsert()
            }
            fn write_as(&mut self, how: Option<mmc::Multi>) -> Result<()> {
                (**self).write_as(how)
            }
            fn switch_cache(&mut self, on: bool) -> Result<bool> {
                (**self).switch_cache(on)
            }
        }
    )*};
}
forward!(&mut D, Box<D>);
