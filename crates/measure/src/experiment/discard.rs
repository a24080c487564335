//! What does a discard cost, and what does a discarded place read as?
//!
//! A stretch is written with sectors that carry their address, one is read back, the stretch is discarded, and one is read again, at
//! places in random order and three lengths.
//!
//! What fools it: a place that did not keep what was written (not counted), a kernel that answers reads of discarded places by itself,
//! a card that erases later, at rest (said).

use super::{About, Bench, Experiment, Setup};
use crate::device::fill::read_stamp;
use crate::device::{DeviceError, Fill};
use crate::finding::Quantity;
use crate::infer::beliefs::Case;
use crate::infer::discard::{DISCARD, FAILED, KEPT, LENGTHS, LOST, OLD, ONES, OTHER, TRIALS, WRITE, ZEROS};
use crate::samples::Cell;
use crate::units::{Bytes, MIB};

pub struct Discard;

pub(super) const EXPERIMENTS: &[&dyn Experiment] = &[&Discard];

static ABOUT: About = About {
    name: "discard",
    turn: 230,
    question: "What does a discard cost, and what does a discarded place read as?",
    method: "stretches of 64 KiB to 8 MiB are written, read back, discarded and read again",
    writes: true,
    answers: &[Quantity::DiscardMs, Quantity::DiscardReads],
    roles: &[
        "write",
        "discard",
        "read: as written",
        "read: not as written",
        "read: zeros",
        "read: ones",
        "read: as before",
        "read: other data",
        "refused",
    ],
    covers: "",
};

/// One write.
const SIZE: u64 = MIB / 4;

impl Experiment for Discard {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn on_request(&self) -> bool {
        true
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let (room, mut left) = (setup.region.end - setup.region.start, setup.writes);
        let fits = LENGTHS.into_iter().filter(|l| l * 2 <= room && l.is_multiple_of(setup.geometry.sector));
        let fits = fits.filter(|l| {
            let bytes = l * TRIALS as u64;
            let some = bytes <= left;
            left -= if some { bytes } else { 0 };
            some
        });
        fits.map(|l| Cell::new(Bytes(l).to_string(), &[("length", l as i64)])).collect()
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        run.trials(cell.id).len() < TRIALS && run.samples.iter().all(|s| s.role != FAILED)
    }

    fn trial(&self, cell: &Cell, n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let len = cell.bytes("length");
        // A mark that no other trial of this run has, nor one of another run.
        let seed = b.below(u64::MAX) << 8 | u64::from(n);
        let places = (b.region.end - b.region.start) / len;
        let at = b.region.start + b.below(places) * len;
        let sector = b.geometry().sector;
        let (look, mut place) = (at + b.below(len / sector) * sector, at);
        while place < at + len {
            let part = SIZE.min(at + len - place);
            b.write_of(WRITE, Fill::Stamp(seed), place, part)?;
            place += part;
        }
        let mine = |bytes: &[u8]| read_stamp(bytes).is_some_and(|s| s == (look, seed));
        let content = match b.read_back(look, sector, |bytes| if mine(bytes) { KEPT } else { LOST }) {
            Err(DeviceError::Unsupported(_)) => false,
            done => done.map(|()| true)?,
        };
        if b.discard(DISCARD, FAILED, at..at + len)? && content {
            b.read_back(look, sector, |bytes| match bytes {
                _ if bytes.iter().all(|&x| x == 0) => ZEROS,
                _ if bytes.iter().all(|&x| x == 0xff) => ONES,
                _ if mine(bytes) => OLD,
                _ => OTHER,
            })?;
        }
        Ok(())
    }
}
