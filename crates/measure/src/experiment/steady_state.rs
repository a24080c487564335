//! What rate do random writes keep, once the card collects garbage?
//!
//! Rounds of random writes of 4 KiB over the whole region, until five rounds keep SNIA's rule (range within 20 %, slope within 10 %) after
//! the rate had fallen, or until the region was written twice. Rounds are of equal bytes, a twenty-fifth of the region, so that five of
//! them are long enough for a slope to show.
//!
//! What fools it: a card so large that its spare flash is not used up in the time (said), stalls of the host.

use super::{About, Bench, Experiment, Setup};
use crate::device::DeviceError;
use crate::finding::Quantity;
use crate::infer::beliefs::Case;
use crate::infer::steady_state::{ROUNDS, rounds, steady};
use crate::samples::Cell;
use crate::units::KIB;

pub struct SteadyState;

static ABOUT: About = About {
    name: "steady-state",
    question: "What rate do random writes keep, once the card collects garbage?",
    method: "rounds of random writes of 4 KiB over the region, until five rounds keep SNIA's rule for a steady state",
    writes: true,
    answers: &[Quantity::RandomWriteSteadyIops, Quantity::CollectionOnset],
    roles: &["write"],
    covers: "",
};

/// A round is this part of the region.
const PART: u64 = 25;

impl Experiment for SteadyState {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn on_request(&self) -> bool {
        true
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let size = (4 * KIB).max(setup.geometry.sector);
        let window = setup.region.end - setup.region.start;
        let round = window / PART / size * size;
        if round < 64 * size || setup.writes < round {
            return vec![];
        }
        vec![Cell::new("rounds", &[("size", size as i64), ("round", round as i64), ("window", window as i64)])]
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        let all = rounds(run, cell);
        all.len() < ROUNDS && steady(&all, cell.bytes("round") as f64, cell.bytes("window") as f64).is_none()
    }

    fn trial(&self, cell: &Cell, _n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let (size, window, start) = (cell.bytes("size"), cell.bytes("window"), b.region.start);
        for _ in 0..cell.bytes("round") / size {
            let at = start + b.below(window / size) * size;
            b.write(0, at, size)?;
        }
        Ok(())
    }
}
