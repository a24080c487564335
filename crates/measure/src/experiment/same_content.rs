//! Does a write that repeats what is there take as long as any other?
//!
//! A probe whose writes are put back in the end writes what is there already: then nothing has to be put back. Where the place holds data
//! that is as good as random bytes; where it holds one byte repeated, as a card that was never used does, a controller that does not
//! scramble data may program less (flashbench's -p compares contents for that reason). So the two are interleaved in one
//! stretch, in sequence, and only where they take the same time may such a place be written with what it holds.
//!
//! What fools it: a cache that takes all of it. What is written later is then not known to take the same time.

use super::{About, Bench, Experiment, Setup};
use crate::device::{DeviceError, Fill};
use crate::finding::Quantity;
use crate::infer::beliefs::Case;
use crate::infer::same_content::{OPENS, OTHER, PAIRS, SAME, as_long};
use crate::samples::Cell;
use crate::units::{KIB, MIB};

pub struct SameContent;

pub(super) const EXPERIMENTS: &[&dyn Experiment] = &[&SameContent];

static ABOUT: About = About {
    name: "same-content",
    turn: 25,
    question: "Does a write that repeats what is there take as long as any other?",
    method: "random bytes and the byte that is there, interleaved, in sequence inside one stretch",
    writes: true,
    answers: &[Quantity::ContentGain],
    roles: &["first write of a stretch", "random bytes", "what was there"],
    covers: "Q9",
};

const WRITE: u64 = 64 * KIB;
const STRETCH: u64 = (1 + 2 * PAIRS as u64) * WRITE;

impl Experiment for SameContent {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn to_put_back(&self) -> bool {
        true
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let room = setup.region.end - setup.region.start >= 64 * STRETCH;
        if room { vec![Cell::new("one stretch", &[("len", WRITE as i64)])] } else { vec![] }
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        run.trials(cell.id).is_empty()
    }

    /// One place; where it does not repeat a byte nothing is written, and the runner tries a few more.
    fn trial(&self, _: &Cell, _: u32, b: &mut Bench) -> Result<(), DeviceError> {
        // The start may be a FAT zone.
        let (from, room) = (b.region.start, b.region.end - b.region.start - STRETCH);
        let at = (from + room / 4 + b.below(room - room / 4)) / MIB * MIB;
        let Some(byte) = (if at < from { None } else { b.repeats(at, STRETCH)? }) else { return Ok(()) };
        b.keep_old(&[(at, STRETCH)])?;
        b.write_of(OPENS, Fill::Random(0), at, WRITE)?;
        let mut times = [vec![], vec![]];
        for i in 0..2 * PAIRS as u64 {
            // One, the other, the other, one: what drifts hits both.
            let same = matches!(i % 4, 1 | 2);
            let (role, fill) = if same { (SAME, Fill::Byte(byte)) } else { (OTHER, Fill::Random(1)) };
            times[usize::from(same)].push(b.write_of(role, fill, at + (1 + i) * WRITE, WRITE)?.micros());
        }
        if as_long(&times[0], &times[1]) {
            b.write_same(byte);
        }
        Ok(())
    }
}
