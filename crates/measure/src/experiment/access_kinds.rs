//! What do order and content do to writes and reads inside one AU? (flashbench's -p)
//!
//! One stretch of an AU is written whole with zeros, ones, one byte repeated (0x5a, flashbench's "random"), and bytes that
//! nothing can compress, and read; in linear and in random order; at two sizes. Every round of trials takes another AU, the
//! same for all kinds, so that the kinds of a round can be compared.
//!
//! What fools it: a round in which the card cleans up (contents are compared by the median over rounds), caches that take
//! zeros for nothing only when the whole page is zero (both sizes are looked at).

use super::{About, Bench, Experiment, Setup};
use crate::device::{DeviceError, Fill};
use crate::finding::Quantity;
use crate::infer::access_kinds::{KINDS, ROUNDS, SIZES};
use crate::infer::beliefs::Case;
use crate::samples::Cell;
use crate::units::{Bytes, KIB, MIB};

pub struct AccessKinds;

pub(super) const EXPERIMENTS: &[&dyn Experiment] = &[&AccessKinds];

static ABOUT: About = About {
    name: "access-kinds",
    turn: 140,
    question: "What do order and content do to writes and reads inside one AU?",
    method: "sequential and random writes of zeros, ones, one byte and random data, and reads, in one stretch",
    writes: true,
    answers: &[Quantity::ContentGain],
    roles: &["first access of a stretch", "access"],
    covers: "Q9, Q16",
};

const STRETCH: u64 = 512 * KIB;

impl Experiment for AccessKinds {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn on_request(&self) -> bool {
        true
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        if setup.region.end - setup.region.start < 16 * STRETCH {
            return vec![];
        }
        let mut out = vec![];
        for len in SIZES.map(|s| s.max(setup.geometry.sector)) {
            for shuffled in 0..2 {
                for (kind, name) in KINDS.iter().enumerate() {
                    let order = if shuffled == 0 { "linear" } else { "random order" };
                    let set = [("len", len as i64), ("shuffled", shuffled), ("kind", kind as i64)];
                    out.push(Cell::new(format!("{name}, {order}, {}", Bytes(len)), &set));
                }
            }
        }
        out
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        run.trials(cell.id).len() < ROUNDS
    }

    fn trial(&self, cell: &Cell, n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let len = cell.bytes("len");
        let unit = b.run.grid().unit.filter(|&e| e >= STRETCH).unwrap_or(4 * MIB);
        let phase = b.run.grid().phase.unwrap_or(0);
        let aus = (b.region.end - b.region.start).saturating_sub(phase + STRETCH) / unit;
        // The same AU for all kinds of a round; away from the start, which may be a FAT zone.
        let au = aus / 4 + (u64::from(n) * 7919) % (aus - aus / 4).max(1);
        let start = (b.region.start + phase + au * unit).min(b.region.end - STRETCH) / len * len;
        let mut places: Vec<u64> = (0..STRETCH / len).collect();
        if cell.get("shuffled") == 1 {
            b.shuffle(&mut places);
        }
        let fill = match cell.get("kind") {
            0 => Some(Fill::Zeros),
            1 => Some(Fill::Ones),
            2 => Some(Fill::Byte(0x5a)),
            3 => Some(Fill::Random(u64::from(n) + 1)),
            _ => None,
        };
        for (i, p) in places.into_iter().enumerate() {
            let (role, at) = ((i > 0) as u8, start + p * len);
            match fill {
                Some(f) => b.write_of(role, f, at, len)?,
                None => b.read(role, at, len)?,
            };
        }
        Ok(())
    }
}
