//! What do several reads in flight gain?
//!
//! Random reads of 4 KiB, 256 in a round, with 1 to 32 in flight. Depths take turns, so that drift hits all alike.
//!
//! What fools it: a host that hands on one request at a time (then nothing is gained whatever the card can do). Writes are asked by
//! `queue-depth-write`.

use super::{About, Bench, Experiment, Setup};
use crate::device::{Access, DeviceError, Op};
use crate::finding::Quantity;
use crate::infer::beliefs::Case;
use crate::infer::queue_depth::ROUNDS;
use crate::samples::Cell;
use crate::units::KIB;

pub struct QueueDepth;

pub(super) const EXPERIMENTS: &[&dyn Experiment] = &[&QueueDepth];

static ABOUT: About = About {
    name: "queue-depth",
    turn: 210,
    question: "What do several reads in flight gain over one at a time?",
    method: "random reads of 4 KiB with 1 to 32 in flight, depths in random order",
    writes: false,
    answers: &[Quantity::QueueGain],
    roles: &["read"],
    covers: "",
};

/// Reads of a round.
const READS: u64 = 256;

/// Depths 1 to 32.
pub(super) const DEPTHS: u64 = 6;

/// A cell for each depth, with what else all of them hold.
pub(super) fn depths(more: &[(&str, u64)]) -> Vec<Cell> {
    let set = |k: u64| -> Vec<(&str, i64)> { [("depth", 1 << k)].iter().chain(more).map(|&(key, v)| (key, v as i64)).collect() };
    (0..DEPTHS).map(|k| Cell::new(format!("{} in flight", 1 << k), &set(k))).collect()
}

impl Experiment for QueueDepth {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn on_request(&self) -> bool {
        true
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        if setup.region.end - setup.region.start < READS * 4 * KIB {
            return vec![];
        }
        depths(&[])
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        run.trials(cell.id).len() < ROUNDS
    }

    fn trial(&self, cell: &Cell, _n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let size = b.geometry().small();
        let (start, places) = (b.region.start, (b.region.end - b.region.start) / size);
        let all: Vec<Access> = (0..READS).map(|_| Access { op: Op::Read, at: start + b.below(places) * size, len: size }).collect();
        b.batch(0, &all, cell.get("depth") as u32)
    }
}
