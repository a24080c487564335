//! Do reads take longer, or shorter, in some stretch of the card? (F13, and flashbench's --scatter)
//!
//! Places spread evenly over the region are read in several passes, each in a new random order. The least time of a place
//! counts, so that stalls of the host do not show. A region is odd where several neighbours in a row differ from the usual
//! time by more than the scatter of neighbours, one way or the other, and do so in the first half of the passes and in the
//! second.
//!
//! What fools it: a card whose reads fall into two kinds everywhere (then neighbours scatter, and nothing is odd), stretches
//! smaller than a few places, a card of which half was never written (then either half may be called the odd one).

use super::{About, Bench, Experiment, Setup};
use crate::device::DeviceError;
use crate::finding::Quantity;
use crate::infer::beliefs::Case;
use crate::infer::scatter::WINDOW;
use crate::samples::Cell;
use crate::units::{KIB, MIB};

pub struct Scatter;

pub(super) const EXPERIMENTS: &[&dyn Experiment] = &[&Scatter];

static ABOUT: About = About {
    name: "scatter",
    turn: 120,
    question: "Do reads take longer, or shorter, in some stretch of the card?",
    method: "reads at 512 places over the region, four passes in random order",
    writes: false,
    answers: &[Quantity::OddRegions],
    roles: &["read"],
    covers: "F13",
};

/// 2^9 places, as flashbench has by default.
const PLACES: u64 = 512;

const PASSES: usize = 4;

impl Experiment for Scatter {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn on_request(&self) -> bool {
        true
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let sector = setup.geometry.sector;
        let size = setup.region.end - setup.region.start;
        let len = (16 * KIB).max(sector);
        let places = PLACES.min(size / len);
        let apart = size / places.max(1);
        if places < 8 * WINDOW as u64 || apart < len {
            return vec![];
        }
        // Places lie alike in their surroundings: each is rounded to a grid as coarse as the room allows. The distance is not, or the
        // places would end before the region does.
        let grid = [MIB, 64 * KIB].into_iter().find(|g| apart >= *g).unwrap_or(len);
        let set = [("len", len), ("apart", apart), ("places", places), ("span", size), ("grid", grid)];
        vec![Cell::new("places", &set.map(|(k, v)| (k, v as i64)))]
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        run.trials(cell.id).len() < PASSES
    }

    fn trial(&self, cell: &Cell, _n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let len = cell.bytes("len");
        let mut order: Vec<u64> = (0..cell.bytes("places")).collect();
        b.shuffle(&mut order);
        for i in order {
            b.read(0, b.region.start + place(cell, i), len)?;
        }
        Ok(())
    }
}

/// Byte of the region where place `i` begins: the first at its start, the last within a distance of its end.
fn place(cell: &Cell, i: u64) -> u64 {
    let exact = u128::from(i) * u128::from(cell.bytes("span")) / u128::from(cell.bytes("places").max(1));
    let grid = cell.bytes("grid").max(1);
    exact as u64 / grid * grid
}
