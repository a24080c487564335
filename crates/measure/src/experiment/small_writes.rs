//! Which writes are worth their time, and does the card combine small linear ones? (Q14, Q16)
//!
//! Writes of one size, many in one AU: in linear order, in random order, and in linear order in two AUs in turn. Below some size
//! a write costs the same whatever it carries (Q14: 4.4 to 4.9 ms below 32 KiB). A card that combines linear writes makes
//! them cheaper than random ones below the size of what it combines into; when a second stream breaks that, the buffer
//! serves one AU at a time (Q16). The mean of a trial is compared, because one of many combined writes pays for all.
//!
//! What fools it: cards that pay for random order in every write (then nothing is said of combining), stalls (a median over
//! trials), the first write of a trial, which opens the AU (left out).

use super::{About, Bench, Experiment, Setup};
use crate::device::DeviceError;
use crate::finding::Quantity;
use crate::infer::beliefs::Case;
use crate::infer::small_writes::{LINEAR, ORDERS, RANDOM, TURNS, trials};
use crate::infer::stats::{mad, median};
use crate::samples::Cell;
use crate::units::{Bytes, KIB, MIB};

pub struct SmallWrites;

pub(super) const EXPERIMENTS: &[&dyn Experiment] = &[&SmallWrites];

static ABOUT: About = About {
    name: "small-writes",
    turn: 150,
    question: "Which is the smallest write that is worth its time, and are small sequential ones coalesced?",
    method: "many writes of one size in one AU: sequential, random, and sequential in two AUs interleaved",
    writes: true,
    answers: &[Quantity::EfficientWrite, Quantity::CombinesBelow],
    roles: &["open", "write"],
    covers: "Q14, Q16",
};

/// Largest linear write.
const LARGEST: u64 = 256 * KIB;

/// Nobody has seen larger writes combined.
const LARGEST_COMBINED: u64 = 64 * KIB;

impl Experiment for SmallWrites {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn on_request(&self) -> bool {
        true
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let sector = setup.geometry.sector.max(512);
        let room = (setup.region.end - setup.region.start) / 32;
        let sizes: Vec<u64> = (9..=18).map(|k| 1 << k).filter(|&s| s >= sector && s <= LARGEST && s * 12 <= room).collect();
        let mut out = vec![];
        for (order, name) in ORDERS.iter().enumerate() {
            for &size in sizes.iter().filter(|&&s| order as i64 == LINEAR || s <= LARGEST_COMBINED) {
                out.push(Cell::new(format!("{name}, {}", Bytes(size)), &[("order", order as i64), ("size", size as i64)]));
            }
        }
        out
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        let t = trials(run, cell, 0);
        t.len() < 3 || (t.len() < 6 && mad(&t) > 0.08 * median(&t))
    }

    fn trial(&self, cell: &Cell, _n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let (order, size) = (cell.get("order"), cell.bytes("size"));
        let au = b.run.grid().unit.filter(|&e| e >= 2 * size).unwrap_or(4 * MIB);
        let phase = b.run.grid().phase.unwrap_or(0);
        // Two buffers of 64 KiB full, so that writes that pay for others are among them.
        let count = (128 * KIB / size).clamp(12, 128).min(au / size - 1).max(2);
        let first = b.region.start.saturating_sub(phase).next_multiple_of(au) + phase;
        let aus = b.region.end.saturating_sub(first) / au;
        // Spread over the upper three quarters: the start may be a FAT zone.
        let pick = |b: &mut Bench| first + (aus / 4 + b.below((aus - aus / 4).max(1))).min(aus.saturating_sub(1)) * au;
        let one = pick(b);
        let mut two = pick(b);
        if two == one {
            two = if one > first { first } else { first + au.min(b.region.end - first - au) };
        }
        let mut slots: Vec<u64> = (1..au / size).collect();
        if order == RANDOM {
            b.shuffle(&mut slots);
        }
        for at in if order == TURNS { vec![one, two] } else { vec![one] } {
            b.write(0, at, size)?;
        }
        for i in 0..count {
            match order {
                // The same number of writes in each of the two.
                TURNS => b.write(1, if i % 2 == 0 { one } else { two } + slots[(i / 2) as usize] * size, size)?,
                _ => b.write(1, one + slots[i as usize] * size, size)?,
            };
        }
        Ok(())
    }
}
