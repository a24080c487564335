//! What rate do random writes keep, once the card collects garbage?
//!
//! Rounds of random writes of 4 KiB over the whole region, until five rounds keep SNIA's rule (range within 20 %, slope within 10 %) after
//! the rate had fallen, or until the region was written twice. Rounds are of equal bytes, a twenty-fifth of the region, so that five of
//! them are long enough for a slope to show. Then the same with 16 and 64 KiB, with a quarter and with half of the region discarded, and the
//! first rounds after a discard of all of it.
//!
//! What fools it: a card so large that its spare flash is not used up in the time (said), stalls of the host, a card that does nothing on a
//! discard (nothing changes then).

use super::{About, Bench, Experiment, Setup};
use crate::device::DeviceError;
use crate::finding::Quantity;
use crate::infer::beliefs::Case;
use crate::infer::steady_state::{DISCARD, FAILED, FRESH, LONG, WRITE, found, rounds};
use crate::samples::Cell;
use crate::units::{KIB, MIB};

pub struct SteadyState;

pub(super) const EXPERIMENTS: &[&dyn Experiment] = &[&SteadyState];

static ABOUT: About = About {
    name: "steady-state",
    turn: 200,
    question: "What rate do random writes keep, once the card collects garbage?",
    method: "rounds of random writes of 4 KiB over the region, until five rounds keep SNIA's rule for a steady state; then with 16 and 64 KiB, and with parts of the region discarded",
    writes: true,
    answers: &[
        Quantity::RandomWriteSteadyIops,
        Quantity::CollectionOnset,
        Quantity::Steady16kIops,
        Quantity::Steady64kIops,
        Quantity::Steady75Iops,
        Quantity::Steady50Iops,
        Quantity::WriteAmplification,
        Quantity::OverProvisioning,
        Quantity::DiscardRestores,
    ],
    roles: &["write", "discard", "refused"],
    covers: "",
};

/// A round is this part of the region.
const PART: u64 = 25;
/// What follows the first cell: bytes of a write, and percent of the region that hold data; none = all of it was discarded just before.
const NEXT: [(u64, u64); 5] = [(16 * KIB, 100), (64 * KIB, 100), (4 * KIB, 75), (4 * KIB, 50), (4 * KIB, 0)];

fn cell(size: u64, held: u64, round: u64, region: u64) -> Cell {
    // After the discard of all the writes go where the first ones went.
    let window = if held == 0 { region } else { region / 100 * held };
    let set = [("size", size), ("round", round / size * size), ("window", window / size * size), ("held", held), ("region", region)];
    let label = if held == 0 { "after a discard".into() } else { format!("{} KiB, {held} % full", size / KIB) };
    Cell::new(label, &set.map(|(k, v)| (k, v as i64)))
}

impl Experiment for SteadyState {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn on_request(&self) -> bool {
        true
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let size = setup.geometry.small();
        let window = setup.region.end - setup.region.start;
        let round = window / PART / size * size;
        if round < 64 * size || setup.writes < round {
            return vec![];
        }
        vec![cell(size, 100, round, window)]
    }

    fn more(&self, run: &Case) -> Vec<Cell> {
        let (Some(first), Some(last)) = (run.cells.first(), run.cells.last()) else { return vec![] };
        // What is not steady says nothing of what would come after it.
        let Some(&(size, held)) = NEXT.get(run.cells.len() - 1).filter(|_| found(run, last).is_some()) else { return vec![] };
        if !size.is_multiple_of(first.bytes("size")) {
            return vec![];
        }
        vec![cell(size, held, first.bytes("round"), first.bytes("region"))]
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        let most = if cell.get("held") == 0 { FRESH } else { LONG };
        rounds(run, cell).len() < most && found(run, cell).is_none() && run.samples.iter().all(|s| s.role != FAILED)
    }

    fn trial(&self, cell: &Cell, n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let (size, window, start) = (cell.bytes("size"), cell.bytes("window"), b.region.start);
        let held = cell.bytes("held");
        if n == 0 && held < 100 {
            let (from, end) = ((start + cell.bytes("region") / 100 * held).next_multiple_of(4 * MIB), start + cell.bytes("region"));
            if !b.discard(DISCARD, FAILED, from..end)? {
                return Ok(());
            }
        }
        for _ in 0..cell.bytes("round") / size {
            let at = start + b.below(window / size) * size;
            b.write(WRITE, at, size)?;
        }
        Ok(())
    }
}
