//! Up to which window are random reads cheap, and how large is a piece of the card's map?
//!
//! The map of a page-mapped card takes a thousandth of its size, more than its memory: pieces of it are fetched when they are needed.
//! Pairs of reads, each pair in a place of its own, show how far a piece reaches: the second is cheap while it lies in the same. Then
//! reads at random places in windows of doubled size, each followed by one in the same piece: those that are too large miss a share that says how much of the map is kept.
//!
//! Pieces that were written to before have to be saved when they make room, which takes many times as long as a fetch. So reads all over the
//! region come first, until what is in memory was only read. Windows begin below one piece: a card that keeps a single one misses in all others.
//!
//! What fools it: a card that reads ahead (pairs lie further apart than any card reads), one that looks up erase blocks one by one (the
//! windows then disagree, or every one misses), a map whose pieces are no power of two (said).

use super::{About, Bench, Experiment, Setup};
use crate::device::DeviceError;
use crate::finding::Quantity;
use crate::infer::beliefs::{Beliefs, Case};
use crate::infer::map_window::{BEFORE, FIRST, JUDGED, LOAD, NEAR, PAIR, SECOND, WINDOW, pairs};
use crate::samples::Cell;
use crate::units::{Bytes, KIB, MIB, Nanos};

pub struct MapWindow;

pub(super) const EXPERIMENTS: &[&dyn Experiment] = &[&MapWindow];

static ABOUT: About = About {
    name: "map-window",
    turn: 180,
    question: "Up to which window are random reads cheap, and how large is a translation page?",
    method: "pairs of reads from 256 KiB to 8 MiB apart, each pair elsewhere; then random reads in windows of doubled size, each with one near it",
    writes: false,
    answers: &[Quantity::MapWindowRead, Quantity::MapPiece, Quantity::MapMissUs],
    roles: &["first", "second", "load", "judged", "before", "near"],
    covers: "",
};

/// Places of pairs begin at multiples of this.
const PLACE: u64 = 32 * MIB;
/// Distances: 256 KiB times 2^k.
const NEAREST: u64 = 256 * KIB;
const DISTANCES: u64 = 6;
/// Pairs of a distance.
const PAIRS: u64 = 24;
/// Reads that are judged, of each window.
const READS: u64 = 400;
/// Pieces in the largest window.
const PIECES: u64 = 8192;
/// Reads before the first pair, and the part of the time that they may take: three times the pieces that a card keeps, for it throws out any.
const TURNS: u64 = 8192;
const TURNING: u64 = 16;
/// Of each piece that a window holds so many are read to load it.
const PASSES: u64 = 2;
/// The smallest window is this part of a piece.
const BELOW: u64 = 4;
/// Bytes of a read.
const SIZE: u64 = 4 * KIB;

impl Experiment for MapWindow {
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
        if (setup.region.end - setup.region.start) / PLACE < DISTANCES * 5 {
            return vec![];
        }
        let one = |k: u64| {
            let apart = NEAREST << k;
            let set = [("kind", PAIR), ("apart", apart as i64), ("row", k as i64), ("grid", setup.geometry.offset as i64)];
            Cell::new(format!("{} apart", Bytes(apart)), &set)
        };
        (0..DISTANCES).map(one).collect()
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        run.of(cell.id).next().is_none()
    }

    fn more(&self, run: &Case) -> Vec<Cell> {
        let Some(p) = pairs(run).filter(|_| run.cells.iter().all(|c| c.get("kind") == PAIR)) else { return vec![] };
        let set = |key: &str| run.setting.get(key).copied().unwrap_or(0).max(0) as u64;
        let room = set("end").saturating_sub(set("start"));
        let piece = p.piece as u64;
        let mut sizes: Vec<u64> = (0..32u32).map(|k| (piece / BELOW) << k).take_while(|w| *w <= room && *w / piece <= PIECES).collect();
        // All of it, where that is more than the last of them.
        let whole = room / piece * piece;
        if whole / piece <= PIECES && sizes.last().is_some_and(|w| whole / 5 * 4 > *w) {
            sizes.push(whole);
        }
        let one = |w: u64| Cell::new(Bytes(w).to_string(), &[("kind", WINDOW), ("window", w as i64), ("piece", piece as i64)]);
        sizes.into_iter().map(one).collect()
    }

    fn trial(&self, cell: &Cell, _n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let size = SIZE.max(b.geometry().sector);
        let (start, end) = (b.region.start, b.region.end);
        if b.run.samples.is_empty() {
            let until = b.now() + Nanos((b.deadline - b.now()).0 / TURNING);
            for _ in 0..TURNS {
                let at = start + b.below((end - start) / size) * size;
                b.read(BEFORE, at, size)?;
                if b.now() >= until {
                    break;
                }
            }
        }
        if cell.get("kind") == PAIR {
            // Places go by the start of the card, where the map begins; every one is used once.
            let offset = cell.bytes("grid") % PLACE;
            let first = (start + offset).next_multiple_of(PLACE) - offset;
            let places = end.saturating_sub(first) / PLACE;
            let mut mine: Vec<u64> = (0..places).filter(|i| i % DISTANCES == cell.bytes("row")).collect();
            b.shuffle(&mut mine);
            for i in mine.into_iter().take(PAIRS as usize) {
                let at = first + i * PLACE;
                b.read(FIRST, at, size)?;
                b.read(SECOND, at + cell.bytes("apart"), size)?;
            }
            return Ok(());
        }
        let (window, piece) = (cell.bytes("window"), cell.bytes("piece"));
        let slack = (end - start - window) / piece;
        let from = (start.next_multiple_of(piece) + b.below(slack.max(1)) * piece).min(end - window);
        // Each piece of it, so that none is fetched for the first time while reads are judged.
        let mut pieces: Vec<u64> = (0..(window / piece).max(1)).collect();
        let part = piece.min(window);
        for _ in 0..PASSES {
            b.shuffle(&mut pieces);
            for i in &pieces {
                let at = from + i * part + b.below(part / size) * size;
                b.read(LOAD, at, size)?;
            }
        }
        for _ in 0..READS {
            let at = from + b.below(window / size) * size;
            b.read(JUDGED, at, size)?;
            // Elsewhere in the same piece, as its page may still be at hand.
            let near = from + (at - from) / part * part + b.below(part / size) * size;
            b.read(NEAR, near, size)?;
        }
        Ok(())
    }
}
