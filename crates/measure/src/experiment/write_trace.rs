//! When does the card rewrite, and how large is its write buffer? (C10 to C18, G12)
//!
//! Rows of small writes, one behind the other: of one sector, of 2 KiB and of 8 KiB, somewhere in the upper three quarters of the
//! region, and of 2 KiB at the start of the card. A card that rewrites its erase block at the end of each transaction takes the
//! same long time for every write of every size; one with a small buffer takes it at the multiples of that buffer; one that
//! collects pages shows the page, for a few ms at most. Reads of the same sizes tell what the host costs.
//!
//! What fools it: a reader or kernel that merges or splits writes (the row of another size then contradicts), stalls (a lattice
//! must hold, a few outliers do not make one), a card with a volatile cache (a timed write includes its flush).
//! Where the card can be sent raw commands, 2 KiB are also written as open-ended transactions, whose stop it then pays for.

use super::{About, Bench, Experiment, Setup};
use crate::device::DeviceError;
use crate::device::mmc::Multi;
use crate::finding::Quantity;
use crate::infer::beliefs::Case;
use crate::infer::write_trace::{BAR, OPENING, READ, START, WRITE};
use crate::samples::Cell;
use crate::units::{Bytes, KIB, MIB};

pub struct WriteTrace;

pub(super) const EXPERIMENTS: &[&dyn Experiment] = &[&WriteTrace];

static ABOUT: About = About {
    name: "write-trace",
    turn: 110,
    question: "When does the card rewrite, and how large is its write buffer?",
    method: "rows of small writes of three sizes, each timed, and at the start of the card; reads show what the host costs",
    writes: true,
    answers: &[Quantity::RewritePolicy, Quantity::WriteBuffer, Quantity::RewriteMs, Quantity::ChipClass, Quantity::FatZone],
    roles: &["read", "opening", "write", "start"],
    covers: "C10, C12, C13, C14, C15, C16, C17, C18, C20",
};

/// Bytes at the start of the card that are looked at, in writes of 2 KiB.
const FIRST: u64 = MIB;

impl Experiment for WriteTrace {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn on_request(&self) -> bool {
        true
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let sector = setup.geometry.sector;
        if setup.region.end - setup.region.start < 16 * MIB {
            return vec![];
        }
        let row = |len: u64, writes: i64| Cell::new(format!("row of {}", Bytes(len)), &[("len", len as i64), ("writes", writes)]);
        // Rows of one sector are 128 KiB long at most, so that a buffer of 24 KiB fills five times.
        let mut out = vec![row(sector, 192), row(4 * sector, 96), row(16 * sector, 24)];
        let mut raw = row(4 * sector, 32);
        raw.label = "row of 2 KiB, open-ended by raw commands".into();
        raw.set.insert("raw".into(), 1);
        out.push(raw);
        if setup.region.start + setup.geometry.offset == 0 {
            out.push(Cell::new("start of the card", &[("len", 4 * sector as i64), ("start", 1)]));
        }
        out
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        let refused = cell.get("raw") > 0 && run.faults.iter().any(|f| f.contains("not supported"));
        let trials = if cell.get("start") > 0 { 1 } else { 2 };
        !refused && run.trials(cell.id).len() < trials
    }

    fn trial(&self, cell: &Cell, _n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let len = cell.bytes("len");
        if cell.get("start") > 0 {
            let first = b.region.start;
            let end = (first + FIRST).min(b.region.end);
            // Every other write of a bar is enough to see what it costs, and the rest would only wear.
            for bar in (first..end).step_by(BAR as usize) {
                for at in (bar..(bar + BAR / 2).min(end)).step_by(len as usize) {
                    b.write(START, at, len)?;
                }
            }
            return Ok(());
        }
        let writes = cell.bytes("writes");
        let unit = b.run.grid().unit.filter(|&e| e >= 64 * KIB).unwrap_or(MIB);
        let phase = b.run.grid().phase.unwrap_or(0) % unit;
        let (start, end, need) = (b.region.start, b.region.end, (writes + 1) * len);
        let first = start.saturating_sub(phase).next_multiple_of(unit) + phase;
        let room = end.saturating_sub(first).saturating_sub(need) / unit;
        let at = first + (room / 4 + b.below((room - room / 4).max(1))) * unit;
        let at = if at + need <= end { at } else { start };
        if cell.get("raw") > 0 {
            b.write_as(Some(Multi::OpenEnded))?;
        } else {
            for k in 0..12 {
                b.read(READ, at + k * len, len)?;
            }
        }
        let done = (0..=writes).try_for_each(|k| b.write(if k == 0 { OPENING } else { WRITE }, at + k * len, len).map(|_| ()));
        b.write_as(None)?;
        done
    }
}
