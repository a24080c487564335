//! Up to which window are random writes cheap?
//!
//! A write changes the map, so that a piece of it has to be at hand, and has to be written when it makes room for another. In windows of
//! doubled size a write at a random place is followed by one beside it, whose piece has just been fetched: the two meet the same state of
//! every cache, and what the first take longer is the map's part. It grows with the window once that is larger than what the card keeps,
//! towards the cost of a miss.
//!
//! What fools it: a card that maps by erase block (its merges grow without end: undecided), collection of garbage that begins meanwhile.

use super::{About, Bench, Experiment, Setup};
use crate::device::DeviceError;
use crate::finding::Quantity;
use crate::infer::beliefs::{Beliefs, Case};
use crate::infer::map_window_write::{FAR, LOAD, NEAR, SMALLEST};
use crate::samples::Cell;
use crate::units::{GIB, KIB, MIB};

pub struct MapWindowWrite;

static ABOUT: About = About {
    name: "map-window-write",
    question: "Up to which window are random writes cheap?",
    method: "writes of 16 KiB at random places in windows of doubled size, each followed by one beside it",
    writes: true,
    answers: &[Quantity::MapWindowWrite, Quantity::MapMissWriteUs],
    roles: &["load", "far", "near"],
    covers: "",
};

/// Bytes of a write.
const SIZE: u64 = 16 * KIB;
/// Pairs that are judged, of each window.
const PAIRS: u64 = 256;
/// The largest window.
const LARGEST: u64 = 8 * GIB;
/// Bytes that one piece of the map covers, where that is not known.
const PIECE: u64 = MIB;
/// Writes of one load at most.
const LOADS: u64 = 8192;
/// How far before a write the one beside it lies: no continuation, and in the same piece but for a few.
const BESIDE: u64 = 2 * SIZE;
/// Windows begin at multiples of their size up to this, where pieces begin as well.
const GRID: u64 = 64 * MIB;

impl Experiment for MapWindowWrite {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn on_request(&self) -> bool {
        true
    }

    fn asks(&self, believed: &Beliefs) -> bool {
        super::may_map_by_page(believed)
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let (start, end) = (setup.region.start, setup.region.end);
        let piece = setup.believed.whole(Quantity::MapPiece).unwrap_or(PIECE).max(64 * KIB);
        let load = |w: u64| (w / piece * 3 / 2).min(LOADS);
        let mut left = setup.writes / 2;
        let sizes = (0..32).map(|k| SMALLEST << k).take_while(|w| *w <= LARGEST && *w <= (end - start) / 2);
        let sizes: Vec<u64> = sizes
            .take_while(|&w| {
                let bytes = (load(w) + 2 * PAIRS) * SIZE;
                left = left.saturating_sub(bytes);
                left > 0
            })
            .collect();
        if sizes.len() < 4 || !SIZE.is_multiple_of(setup.geometry.sector) {
            return vec![];
        }
        let one = |&w: &u64| Cell::new(crate::units::Bytes(w).to_string(), &[("window", w as i64), ("load", load(w) as i64)]);
        sizes.iter().map(one).collect()
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        run.of(cell.id).next().is_none()
    }

    fn trial(&self, cell: &Cell, _n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let window = cell.bytes("window");
        let offset = b.geometry().offset;
        let grid = window.min(GRID);
        let first = (b.region.start + offset).next_multiple_of(grid) - offset;
        let slots = (b.region.end - first).saturating_sub(window) / grid;
        let from = (first + b.below(slots + 1) * grid).min(b.region.end - window).max(b.region.start);
        let loads: Vec<u64> = (0..cell.bytes("load")).map(|_| from + b.below(window / SIZE) * SIZE).collect();
        let pairs: Vec<[u64; 2]> =
            (0..PAIRS).map(|_| from + BESIDE + b.below((window - BESIDE) / SIZE) * SIZE).map(|at| [at, at - BESIDE]).collect();
        let all: Vec<(u64, u64)> = loads.iter().chain(pairs.iter().flatten()).map(|&at| (at, SIZE)).collect();
        b.keep_old(&all)?;
        for at in loads {
            b.write(LOAD, at, SIZE)?;
        }
        for [far, near] in pairs {
            b.write(FAR, far, SIZE)?;
            b.write(NEAR, near, SIZE)?;
        }
        Ok(())
    }
}
