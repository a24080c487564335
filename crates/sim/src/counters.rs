//! What a card did, counted.

use crate::account::{Event, Events, Ledger};
use serde::Serialize;

/// Totals since the card was made. Pages are write units: what is programmed in one go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Read requests served.
    pub reads: u64,
    /// Write requests served.
    pub writes: u64,
    /// Discard requests served.
    pub discards: u64,
    /// Flush requests served.
    pub flushes: u64,
    /// Bytes read by the host.
    pub bytes_read: u64,
    /// Bytes written by the host.
    pub bytes_written: u64,
    /// Access units sensed for the host.
    pub units_sensed: u64,
    /// Write units programmed for the host's data.
    pub units_programmed: u64,
    /// Write units copied inside the card.
    pub units_copied: u64,
    /// Writes that had to fill up a partly written unit.
    pub filled_up: u64,
    /// AUs closed whose log simply became the new AU.
    pub merges_switch: u64,
    /// AUs closed by copying what the log lacked.
    pub merges_partial: u64,
    /// AUs closed by copying all of them.
    pub merges_full: u64,
    /// Erase blocks erased.
    pub erases: u64,
    /// Blocks collected by garbage collection.
    pub collections: u64,
    /// Erase blocks rewritten because they were read too often.
    pub refreshes: u64,
    /// Stalls served.
    pub stalls: u64,
    /// Bytes of one write unit, so that the amplification can be formed.
    pub unit_bytes: u64,
    /// Bytes of the card, so that drive writes can be formed.
    pub capacity: u64,
    /// Events of single accesses, where somebody asks.
    #[serde(skip)]
    pub(crate) ledger: Option<Box<Ledger>>,
}

impl Counters {
    /// Books events of the access under way.
    #[inline(always)]
    pub(crate) fn book(&mut self, events: impl FnOnce(&mut Ledger)) {
        if let Some(l) = &mut self.ledger {
            events(l);
        }
    }

    /// Books `n` events of a kind.
    #[inline(always)]
    pub(crate) fn note(&mut self, e: Event, n: u64) {
        self.book(|l| l.now.add(e, n));
    }

    /// What is booked of the access so far; nothing where nobody asks.
    #[inline(always)]
    pub(crate) fn noted(&self) -> Option<Events> {
        self.ledger.as_ref().map(|l| l.now)
    }

    /// Takes back what was booked since.
    #[inline(always)]
    pub(crate) fn unnote(&mut self, then: Option<Events>) {
        if let (Some(l), Some(then)) = (&mut self.ledger, then) {
            l.now = then;
        }
    }

    /// Bytes programmed for each byte the host wrote; 0 before the first write.
    pub fn write_amplification(&self) -> f64 {
        let programmed = (self.units_programmed + self.units_copied) as f64 * self.unit_bytes as f64;
        if self.bytes_written == 0 { 0.0 } else { programmed / self.bytes_written as f64 }
    }

    /// How often the host wrote the whole card.
    pub fn drive_writes(&self) -> f64 {
        if self.capacity == 0 { 0.0 } else { self.bytes_written as f64 / self.capacity as f64 }
    }
}
