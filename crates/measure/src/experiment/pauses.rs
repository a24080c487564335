//! Does a pause between bursts of writes help, and how long a pause?
//!
//! Once the SLC cache is full (sequential writes until they are slower and stay so), bursts of 2 MiB in writes of 64 KiB follow rests
//! of 0 to 3.2 s, in random order; before each rest the cache is filled again. The rate of a burst over the rest before it says what rest
//! brings back, and after how long.
//!
//! What fools it: a cache so large that it was not filled (said), a host that sleeps while nothing is written.

use super::{About, Bench, Experiment, Setup};
use crate::device::DeviceError;
use crate::finding::Quantity;
use crate::infer::beliefs::Case;
use crate::infer::pauses::{BURST, FILL, TRIALS, levels};
use crate::infer::slc_cache::full;
use crate::infer::write_cache::step;
use crate::samples::Cell;
use crate::units::{GIB, KIB, MIB, Nanos};

pub struct Pauses;

pub(super) const EXPERIMENTS: &[&dyn Experiment] = &[&Pauses];

static ABOUT: About = About {
    name: "pauses",
    turn: 270,
    question: "Does a pause between bursts of writes help, and how long a pause?",
    method: "bursts of 2 MiB after rests of 0 to 3.2 s, with the SLC cache filled before each rest",
    writes: true,
    answers: &[Quantity::PauseGain, Quantity::PauseMs],
    roles: &["fill", "burst"],
    covers: "",
};

/// Where all writes go: only so much has to be put back.
const STRETCH: u64 = 64 * MIB;
const CHUNK: u64 = 256 * KIB;
const SIZE: u64 = 64 * KIB;
const WRITES: u64 = 32;
/// Rests, µs.
const RESTS: [u64; 9] = [0, 25_000, 50_000, 100_000, 200_000, 400_000, 800_000, 1_600_000, 3_200_000];
/// The first fill goes up to this.
const MOST: u64 = 4 * GIB;
/// The first fill ends where so many writes follow the step.
const AFTER: usize = 48;
const LOOKS: usize = 16;

impl Experiment for Pauses {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn on_request(&self) -> bool {
        true
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let chunk = CHUNK.max(setup.geometry.sector);
        let room = setup.region.end - setup.region.start;
        let from = (setup.region.start + room / 8).next_multiple_of(MIB);
        let bursts = WRITES * SIZE * RESTS.len() as u64 * TRIALS as u64;
        if from + STRETCH > setup.region.end || setup.writes < 4 * bursts {
            return vec![];
        }
        let most = MOST.min(setup.writes / 2) / chunk * chunk;
        let one = |us: &u64| {
            let set = [("rest_us", *us), ("from", from), ("chunk", chunk), ("most", most), ("burst", WRITES * SIZE)];
            Cell::new(format!("{} ms", us / 1000), &set.map(|(k, v)| (k, v as i64)))
        };
        RESTS.iter().map(one).collect()
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        run.trials(cell.id).len() < TRIALS
    }

    fn trial(&self, cell: &Cell, _n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let (from, chunk, most) = (cell.bytes("from"), cell.bytes("chunk"), cell.bytes("most"));
        let known = levels(b.run);
        let mut took: Vec<f64> = vec![];
        let first = b.run.samples.is_empty();
        let enough = |took: &[f64]| match known {
            Some(l) => full(took, l),
            // Where the first fill showed no cache, none is filled again.
            None => !first || took.len().is_multiple_of(LOOKS) && step(took).is_some_and(|i| took.len() >= i + AFTER),
        };
        let late = b.halfway();
        while (took.len() as u64) * chunk < most && !enough(&took) && b.now() < late {
            took.push(b.write(FILL, from + took.len() as u64 * chunk % STRETCH, chunk)?.micros());
        }
        b.rest(Nanos(cell.bytes("rest_us") * 1000));
        // In sequence: small random writes would leave the card another one after each burst.
        let at = from + b.below(STRETCH / (WRITES * SIZE)) * WRITES * SIZE;
        for i in 0..WRITES {
            b.write(BURST, at + i * SIZE, SIZE)?;
        }
        Ok(())
    }
}
