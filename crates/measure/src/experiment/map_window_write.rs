//! Up to which window are random writes cheap?
//!
//! A write changes the map, so that a piece of it has to be at hand, and has to be written when it makes room for another. In windows of
//! several sizes a write at a random place is followed by the same once more, whose piece has just been fetched: the two meet the same state
//! of every cache, and what the first take longer is the map's part. All lie alike in the units that a card programs, and were written before:
//! what never was is not read again for the rest of its unit. On a slow bus, where the map is fetched meanwhile, the writes are small. It grows with the
//! window once that is larger than what the card keeps, towards the cost of a miss. A few sizes far from each other come first, then those
//! between which it begins to grow.
//!
//! What fools it: a card that maps by erase block (its merges grow without end: undecided), collection of garbage that begins meanwhile.

use super::{About, Bench, Experiment, Setup};
use crate::device::DeviceError;
use crate::finding::Quantity;
use crate::infer::beliefs::{Beliefs, Case};
use crate::infer::map_window_write::{FAR, LOAD, NEAR, SLOW_BUS, SMALLEST, grows_from};
use crate::infer::stats::median;
use crate::samples::Cell;
use crate::units::{GIB, KIB, MIB};

pub struct MapWindowWrite;

pub(super) const EXPERIMENTS: &[&dyn Experiment] = &[&MapWindowWrite];

static ABOUT: About = About {
    name: "map-window-write",
    turn: 190,
    question: "Up to which window are random writes cheap?",
    method: "writes of 16 KiB (2 KiB on a slow bus) at random places in windows of several sizes, each followed by the same once more",
    writes: true,
    answers: &[Quantity::MapWindowWrite, Quantity::MapMissWriteUs],
    roles: &["load", "first", "again"],
    covers: "",
};

/// Bytes of a write, and where a few of them show a slow bus.
const SIZE: u64 = 16 * KIB;
const SMALL: u64 = 2 * KIB;
const SHOW: u64 = 8;
/// Pairs that are judged, of each window.
const PAIRS: u64 = 256;
/// The largest window.
const LARGEST: u64 = 8 * GIB;
/// Bytes that one piece of the map covers, where that is not known.
const PIECE: u64 = MIB;
/// Writes of a load for each of them, spread evenly: none is left out, also where they are half as large.
const PER_PIECE: u64 = 2;
/// Writes of one load at most.
const LOADS: u64 = 8192;
/// Places are multiples of this: whatever unit of 2^k or 3 * 2^k bytes a card programs, all lie alike in it.
const APART: u64 = 384 * KIB;
/// A load touches as many pieces as random reads found at hand, times this.
const TURNS: u64 = 3;
/// Octaves between the windows that come first.
const COARSE: usize = 3;
/// Windows begin at multiples of their size up to this, where pieces begin as well.
const GRID: u64 = 64 * MIB;

/// Where so many windows were written no more are added.
const MOST: usize = 12;

/// With bytes of a piece and the longest load, by which others are made of it.
fn cell(window: u64, load: u64, of: [u64; 2]) -> Cell {
    let set = [("window", window), ("load", load), ("piece", of[0]), ("most", of[1])].map(|(k, v)| (k, v as i64));
    Cell::new(crate::units::Bytes(window).to_string(), &set)
}

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
        // More than the card keeps need not be loaded: what is there then has been turned over.
        let kept = setup.believed.whole(Quantity::MapWindowRead).map_or(LOADS, |c| (c / piece * TURNS).max(64));
        let load = |w: u64| (w / piece * PER_PIECE).min(LOADS).min(kept);
        let most = LOADS.min(kept);
        let mut left = setup.writes / 2;
        let room = (end - start) / MIB * MIB;
        let mut sizes: Vec<u64> = (0..32).map(|k| SMALLEST << k).take_while(|w| *w <= LARGEST && *w <= room).collect();
        // All of it, where that is more than the last of them.
        if room <= LARGEST && sizes.last().is_some_and(|w| room / 5 * 4 > *w) {
            sizes.push(room);
        }
        // The first and each third one from the largest on; what the others need is left for those that follow.
        let first: Vec<u64> = sizes.iter().rev().step_by(COARSE).copied().collect();
        let windows: Vec<u64> = sizes.iter().copied().filter(|w| first.contains(w) || *w == SMALLEST).collect();
        let windows: Vec<u64> = windows
            .into_iter()
            .take_while(|&w| {
                let bytes = (load(w) + 3 * PAIRS) * SIZE;
                left = left.saturating_sub(bytes);
                left > 0
            })
            .collect();
        if windows.len() < 3 || !SIZE.is_multiple_of(setup.geometry.sector) {
            return vec![];
        }
        windows.iter().map(|&w| cell(w, load(w), [piece, most])).collect()
    }

    fn more(&self, run: &Case) -> Vec<Cell> {
        let windows: Vec<u64> = run.cells.iter().map(|c| c.bytes("window")).collect();
        let Some(first) = run.cells.first().filter(|_| windows.len() < MOST) else { return vec![] };
        let (piece, most) = (first.bytes("piece").max(1), first.bytes("most"));
        let load = |w: u64| (w / piece * PER_PIECE).min(most);
        let Some((below, above)) = grows_from(run) else { return vec![] };
        let largest = windows.iter().copied().max().unwrap_or(0);
        let between = (0..32).map(|k| SMALLEST << k).filter(|w| *w > below && *w <= (above * 4).min(largest) && !windows.contains(w));
        between.map(|w| cell(w, load(w), [piece, most])).collect()
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        run.of(cell.id).next().is_none()
    }

    fn trial(&self, cell: &Cell, _n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let window = cell.bytes("window");
        let offset = b.geometry().offset;
        let grid = window.min(GRID);
        let first = (b.region.start + offset).next_multiple_of(grid) - offset;
        let aligned = (b.region.end - first).saturating_sub(window) / grid;
        let from = (first + b.below(aligned + 1) * grid).min(b.region.end - window).max(b.region.start);
        let slots = (window / APART).max(1);
        let load = cell.bytes("load");
        let mut loads: Vec<u64> = (0..load).map(|i| (i * slots / load + b.below(slots / load)).min(slots - 1)).collect();
        b.shuffle(&mut loads);
        let loads: Vec<u64> = loads.into_iter().map(|i| from + i * APART).collect();
        let places: Vec<u64> = (0..PAIRS).map(|_| from + b.below(slots) * APART).collect();
        let all: Vec<(u64, u64)> = loads.iter().chain(&places).map(|&at| (at, SIZE)).collect();
        b.keep_old(&all)?;
        let size = self.size(from, b)?;
        for &at in places.iter().chain(&loads) {
            b.write(LOAD, at, size)?;
        }
        for at in places {
            b.write(FAR, at, size)?;
            b.write(NEAR, at, size)?;
        }
        Ok(())
    }
}

impl MapWindowWrite {
    /// Bytes of a write here: those of the windows before, else by how long a few take.
    fn size(&self, at: u64, b: &mut Bench) -> Result<u64, DeviceError> {
        if let Some(s) = b.run.samples.iter().find(|s| s.role == FAR) {
            return Ok(s.len);
        }
        let took: Vec<f64> = (0..SHOW).map(|_| Ok(b.write(LOAD, at, SIZE)?.micros())).collect::<Result<_, DeviceError>>()?;
        Ok(if median(&took) > SLOW_BUS { SMALL.max(b.geometry().sector) } else { SIZE })
    }
}
