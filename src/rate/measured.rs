//! What was measured, as it is judged and saved.

use super::record::Recording;
use serde::Serialize;

/// One AU or sub-unit, written from its start to its end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unit {
    pub at: u64,
    /// Seconds of its writes.
    pub seconds: f64,
    /// Seconds of the faster of two repetitions, where it was one of the slowest.
    pub again: Option<f64>,
    /// Spread of its writes, in seconds: what the host adds or takes.
    pub spread: f64,
    /// The longest write, in ms.
    pub longest_ms: f64,
    /// Bytes that were written, where time ran out before its end; `seconds` is then scaled to the whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<u64>,
}

/// Sequential writes of recording units over whole units.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stretch {
    /// Bytes of a recording unit (RU).
    pub ru: u64,
    /// Bytes of a unit.
    pub unit: u64,
    pub units: Vec<Unit>,
    /// Units that the region holds.
    pub of: u64,
    /// Units were discarded before they were written.
    pub erased: bool,
    /// Seconds of random reads of one RU each.
    pub reads: Vec<f64>,
    /// Rates of AUs half of which was in use, in bytes a second, for Pm.
    pub half_used: Vec<f64>,
}

/// FAT cycles between writes of recording units.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FatCycles {
    /// Each cycle, in ms.
    pub cycles_ms: Vec<f64>,
    /// Reads of 4 KiB of the FAT, in ms.
    pub reads_ms: Vec<f64>,
}

/// A part of a random test: requests, and seconds they took together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Part {
    pub requests: u64,
    pub seconds: f64,
}

/// The random test of the application classes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Random {
    /// Commands in flight.
    pub depth: u32,
    /// Bytes of the window.
    pub window: u64,
    /// Bytes written sequentially before, outside the window.
    pub filled: u64,
    pub writes: Vec<Part>,
    pub reads: Vec<Part>,
}

/// Writes of 4 MiB to one contiguous stretch.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Contiguous {
    /// Bytes written to the whole card before.
    pub filled: u64,
    /// Seconds of each write.
    pub seconds: Vec<f64>,
    pub len: u64,
}

/// What ended a measurement before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The bytes that may be written were used up.
    Budget,
    /// The card, or what keeps its old content.
    Failed,
    Interrupted,
}

/// Everything measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Measured {
    /// Seconds of reads of 512 KiB each, spread over the region: what the reader carries.
    pub long_reads: Vec<f64>,
    pub stretches: Vec<Stretch>,
    pub fat: FatCycles,
    pub random: Vec<Random>,
    pub contiguous: Contiguous,
    pub recording: Option<Recording>,
    /// Ctrl-C, out of budget, or the card failed.
    pub ended: Option<String>,
    #[serde(skip)]
    pub cut: Option<Cut>,
}
