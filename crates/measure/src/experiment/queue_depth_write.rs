//! What do several writes in flight gain?
//!
//! Random writes of 4 KiB, 256 in a round, with 1 to 32 in flight, over one stretch that the map has in memory. No write is flushed for itself, since a flush
//! waits for all; each round ends in a flush that counts, at every depth. Depths take turns, so that a cache that fills up and garbage that is
//! collected hit all alike.
//!
//! What fools it: a host that hands on one request at a time; a card that collects garbage in bursts longer than a round (then rounds of one
//! depth differ, and the interval is as wide).

use super::queue_depth::{DEPTHS, depths};
use super::{About, Bench, Experiment, Setup};
use crate::device::{Access, DeviceError, Fill, Op};
use crate::finding::Quantity;
use crate::infer::beliefs::Case;
use crate::infer::queue_depth_write::{FLUSH, ROUNDS, WRITE};
use crate::samples::Cell;
use crate::units::MIB;

pub struct QueueDepthWrite;

pub(super) const EXPERIMENTS: &[&dyn Experiment] = &[&QueueDepthWrite];

static ABOUT: About = About {
    name: "queue-depth-write",
    turn: 280,
    question: "What do several writes in flight gain over one at a time?",
    method: "random writes of 4 KiB with 1 to 32 in flight, each round ending in a flush, depths in random order",
    writes: true,
    answers: &[Quantity::QueueGainWrite],
    roles: &["write", "flush"],
    covers: "",
};

/// Writes of a round, and bytes of the stretch that they fall into.
const WRITES: u64 = 256;
const STRETCH: u64 = 16 * MIB;

impl Experiment for QueueDepthWrite {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn on_request(&self) -> bool {
        true
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let size = setup.geometry.small();
        let stretch = STRETCH.min((setup.region.end - setup.region.start) / size * size);
        if stretch < WRITES * size || setup.writes < DEPTHS * ROUNDS as u64 * WRITES * size {
            return vec![];
        }
        depths(&[("size", size), ("from", setup.region.start), ("stretch", stretch)])
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        run.trials(cell.id).len() < ROUNDS
    }

    fn trial(&self, cell: &Cell, n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let (size, from, stretch) = (cell.bytes("size"), cell.bytes("from"), cell.bytes("stretch"));
        if n == 0 {
            b.keep_old(&[(from, stretch)])?;
        }
        let fill = Fill::Random(u64::from(cell.id) << 32 | u64::from(n));
        let all: Vec<Access> =
            (0..WRITES).map(|_| Access { op: Op::Write(fill), at: from + b.below(stretch / size) * size, len: size }).collect();
        let depth = cell.get("depth") as u32;
        if depth > 1 {
            b.batch(WRITE, &all, depth)?;
        } else {
            // One by one, a write would be flushed where there is a write cache.
            for a in &all {
                b.write_behind(WRITE, a.at, a.len)?;
            }
        }
        b.flush(FLUSH).map(|_| ())
    }
}
