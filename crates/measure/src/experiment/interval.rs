//! What does a read cost before its first byte, and what does each further byte cost? (flashbench's --interval)
//!
//! Reads of doubling size at random places, all sizes in turn. A line through the times says both: time = access + size /
//! rate. Relative errors are minimised, so that small reads count as much as large ones; the interval comes from leaving out
//! each size in turn, so that it holds what the line cannot explain as well as the noise.
//!
//! What fools it: reads below a page that cost a page (the smallest three sizes are left out, as flashbench does), requests
//! that the host splits, caches that read ahead. Where sizes stray from the line it is undecided.

use super::{About, Bench, Experiment, Setup};
use crate::device::DeviceError;
use crate::finding::Quantity;
use crate::infer::beliefs::Case;
use crate::samples::Cell;
use crate::units::{Bytes, MIB};

pub struct Interval;

pub(super) const EXPERIMENTS: &[&dyn Experiment] = &[&Interval];

static ABOUT: About = About {
    name: "interval",
    turn: 130,
    question: "What does a read cost before its first byte, and what each further byte?",
    method: "reads of doubling size at random places, and the line through their times",
    writes: false,
    answers: &[Quantity::AccessTimeUs, Quantity::ReadRate],
    roles: &["read"],
    covers: "U9",
};

const LARGEST: u64 = MIB;

impl Experiment for Interval {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn on_request(&self) -> bool {
        true
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let room = (setup.region.end - setup.region.start) / 16;
        let sizes = std::iter::successors(Some(setup.geometry.sector.max(512)), |s| Some(s * 2));
        sizes.take_while(|&s| s <= LARGEST.min(room)).map(|s| Cell::new(Bytes(s).to_string(), &[("len", s as i64)])).collect()
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        run.of(cell.id).count() < 12
    }

    fn trial(&self, cell: &Cell, _n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let len = cell.bytes("len");
        let first = b.region.start.next_multiple_of(len);
        let at = first + b.below((b.region.end - first) / len) * len;
        b.read(0, at, len)?;
        Ok(())
    }
}
