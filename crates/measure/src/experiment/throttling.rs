//! Does the card slow down under load, when, and does rest bring it back?
//!
//! Sequential reads over one stretch again and again, in rounds of equal time, until they have become slower and stay so, or the time is
//! over. Reads of one place: neither a full cache nor where data lie can change their rate. Then a rest as long as the load lasted and one
//! more round: what was heat is gone or less.
//!
//! What fools it: a host that is busy with something else meanwhile; a card that takes longer than the time to get hot (then the answer is
//! how long it did not).

use super::{About, Bench, Experiment, Setup};
use crate::device::DeviceError;
use crate::finding::Quantity;
use crate::infer::beliefs::Case;
use crate::infer::throttling::{LOAD, RESTED, after, rounds};
use crate::samples::Cell;
use crate::units::{KIB, MIB, Nanos};

pub struct Throttling;

pub(super) const EXPERIMENTS: &[&dyn Experiment] = &[&Throttling];

static ABOUT: About = About {
    name: "throttling",
    turn: 220,
    question: "Does the card slow down under load, and when?",
    method: "sequential reads over one stretch until they stay slower or the time is over, then a rest and one more round",
    writes: false,
    answers: &[Quantity::ThrottledAfterS, Quantity::RateThrottledMbS],
    roles: &["read under load", "read after a rest"],
    covers: "",
};

const STRETCH: u64 = 64 * MIB;
const SIZE: u64 = 512 * KIB;
/// A round is this part of the time allowed,
const ROUNDS: u64 = 120;
/// and so many reads at least.
const READS: usize = 8;
/// and so many at most: on the null card no time passes.
const MOST: usize = 4096;

impl Experiment for Throttling {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn on_request(&self) -> bool {
        true
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let size = SIZE.next_multiple_of(setup.geometry.sector);
        let room = (setup.region.end - setup.region.start) / size * size;
        if room < 2 * size {
            return vec![];
        }
        vec![Cell::new("load", &[("from", setup.region.start as i64), ("stretch", STRETCH.min(room) as i64), ("size", size as i64)])]
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        run.of(cell.id).all(|s| s.role != RESTED) && run.trials(cell.id).len() < 2 * ROUNDS as usize
    }

    fn trial(&self, cell: &Cell, _n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let role = match after(&rounds(b.run, cell, LOAD)) {
            Some(_) => {
                let first = b.run.of(cell.id).next().map_or(b.now(), |s| s.start);
                // The round after it needs time, too.
                let rest = (b.now() - first).min(b.halfway() - b.now());
                b.rest(rest);
                RESTED
            }
            None => LOAD,
        };
        let (from, size) = (cell.bytes("from"), cell.bytes("size"));
        let places = cell.bytes("stretch") / size;
        let allowed = b.run.setting.get("time_ms").copied().unwrap_or(0).max(0) as u64;
        let end = b.now() + Nanos(allowed * 1_000_000 / ROUNDS);
        let first = b.run.of(cell.id).count() as u64;
        while b.taken.len() < READS || b.taken.len() < MOST && b.now() < end {
            let i = first + b.taken.len() as u64;
            b.read(role, from + i % places * size, size)?;
        }
        Ok(())
    }
}
