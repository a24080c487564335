//! What goes in and out of the one door of a card.

/// What a host can ask of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Read bytes.
    Read,
    /// Write bytes.
    Write,
    /// Say that bytes are no longer needed.
    Discard,
    /// Make everything acknowledged so far durable.
    Flush,
}

/// As much of the data as a shortcut inside a card may look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// All 0x00.
    Zeros,
    /// All 0xff.
    Ones,
    /// Anything else.
    Other,
}

/// One command of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What to do.
    pub op: Op,
    /// First byte; a multiple of the sector.
    pub at: u64,
    /// Bytes; a multiple of the sector, 0 only for a flush.
    pub len: u64,
    /// What is written.
    pub data: Data,
}

impl Request {
    /// Reads `len` bytes at `at`.
    pub fn read(at: u64, len: u64) -> Request {
        Request { op: Op::Read, at, len, data: Data::Other }
    }

    /// Writes `len` bytes of no special kind at `at`.
    pub fn write(at: u64, len: u64) -> Request {
        Request { op: Op::Write, at, len, data: Data::Other }
    }
}

/// When the card began with a request and when it was done, in ns of the host's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// ns; at or after the time of submission.
    pub start: u64,
    /// ns; the host sees `done - start`.
    pub done: u64,
}

/// Why a request was not served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The medium has a bad place.
    #[error("{op:?} failed at byte {at} ({len} bytes)")]
    Io {
        /// What was asked.
        op: Op,
        /// First bad byte.
        at: u64,
        /// Bad bytes.
        len: u64,
        /// ns at which the error came back.
        done: u64,
    },
    /// The card no longer answers.
    #[error("the card has disappeared")]
    Gone,
    /// The card takes no more writes.
    #[error("the card has turned read-only")]
    ReadOnlyMedium,
    /// The power went when the request came, and is back: [`crate::Card::lost`] says what was acknowledged and is gone.
    #[error("the power was cut")]
    PowerCut,
    /// The request leaves the card; nothing was done.
    #[error("{len} bytes at {at} leave the card of {capacity} bytes")]
    OutOfRange {
        /// First byte asked for.
        at: u64,
        /// Bytes asked for.
        len: u64,
        /// Bytes of the card.
        capacity: u64,
    },
    /// Position or length is off the sector grid, or the length is 0; nothing was done.
    #[error("{len} bytes at {at} are not whole sectors of {sector} bytes")]
    Misaligned {
        /// First byte asked for.
        at: u64,
        /// Bytes asked for.
        len: u64,
        /// Bytes of a sector.
        sector: u64,
    },
    /// Bytes were asked of a card that keeps none.
    #[error("this card keeps no content")]
    NoContent,
}
