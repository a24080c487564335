//! Does the card map by page? Asked with whatever cache it has full, so that nothing hides merges.
//!
//! Sequential writes over one stretch go on until they have become slower (the SLC cache is full), or for as many bytes as may be written.
//! Then writes of 64 KiB at random places of the whole region, beside sequential ones of the same size. A card that maps by erase block has to
//! merge for nearly each of them, once its log blocks are used up; one that maps by page programs them like any other and pays at most for
//! a translation page. The same places are written again and again, each time in another order, and what was overwritten leaves garbage that
//! costs little to collect, so that collection does not look like merges. A card that was never written has nothing to copy, so that merges cost nothing: reads before and after say
//! whether the places held data. Where they did not, a span is filled first, and the writes are scattered over that.
//!
//! What fools it: merges that take less than 2 ms (said as undecided where other experiments see them), a pool of log blocks larger than all
//! that was scattered (said), a cache larger than all that was written (said), a card that rewrites an erase block for every write
//! (its small writes cost what large ones do: undecided).

use super::{About, Bench, Experiment, Setup};
use crate::device::DeviceError;
use crate::finding::Quantity;
use crate::infer::beliefs::{Beliefs, Case};
use crate::infer::page_mapping::{AFTER, BEFORE, BLOCK, CONTROL, FILL, PLACES, SCATTERED, SIZE, empty, full};
use crate::infer::stats::median;
use crate::infer::write_cache::{WRITES, step};
use crate::samples::Cell;
use crate::units::{GIB, KIB, MIB, Nanos};

pub struct PageMapping;

pub(super) const EXPERIMENTS: &[&dyn Experiment] = &[&PageMapping];

static ABOUT: About = About {
    name: "page-mapping",
    turn: 170,
    question: "Does the card map by page, and not by erase block?",
    method: "sequential writes until a cache is full, then writes of 64 KiB at random places, beside sequential ones of that size",
    writes: true,
    answers: &[Quantity::Mapping],
    roles: &["fill", "sequential", "scattered", "before", "after"],
    covers: "",
};

/// The stretch that is filled: only so much has to be put back.
const STRETCH: u64 = 64 * MIB;
/// Bytes of a write while filling.
const CHUNK: u64 = 256 * KIB;
/// Bytes after which no further cache is looked for.
const MOST: u64 = 4 * GIB;
/// Of the bytes that may be written, what the fill may take: one of so many parts.
const PART: u64 = 2;
/// Writes that go on after they became slower.
const ON: usize = 64;
/// Sequential writes beside the scattered ones, and where the time is short.
const SEQUENTIAL: u64 = 1024;
const FEW: u64 = BLOCK as u64;
/// Trials of scattered writes, and places of each where the time is short: two blocks in all.
const TRIALS: u32 = 4;
const SCATTER: u64 = 2 * FEW / TRIALS as u64;
/// Writes of the fill's size that take as long as the sequential and scattered ones, then; fewer than the least fill.
const KEPT: u64 = 600;
const FILLS: usize = 64;
/// Reads before and after: a card reads faster where it was never written.
const READS: usize = 48;
const READ: u64 = 4 * KIB;
/// A span that is filled, where the card was never written.
const SPAN: u64 = 3 * GIB / 2;
/// Smaller regions have too few erase blocks.
const LEAST: u64 = GIB;

impl Experiment for PageMapping {
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
        let room = setup.region.end - setup.region.start;
        if room < LEAST || !SIZE.is_multiple_of(setup.geometry.sector) {
            return vec![];
        }
        let from = (setup.region.start + room / 64).next_multiple_of(4 * MIB);
        let cache = setup.believed.get(Quantity::SlcCache).and_then(|b| b.number());
        // A cache that was measured needs no more than it holds.
        let enough = cache.map_or(MOST, |c| c as u64 * 5 / 4 + 32 * MIB);
        // Nor does one that is full already.
        let rate = |q: Quantity| setup.believed.number(q).filter(|r| *r > 0.0).map(|r| CHUNK as f64 / r);
        let line = rate(Quantity::RateCachedMbS).zip(rate(Quantity::RateSustainedMbS)).map_or(0.0, |(f, s)| (f * s).sqrt());
        let most = (setup.writes / PART).min(enough) / CHUNK * CHUNK;
        if setup.writes < STRETCH * 2 {
            return vec![];
        }
        let (low, high) = (setup.region.start, setup.region.end);
        let set = [
            ("from", from),
            ("stretch", STRETCH),
            ("most", most),
            ("known", u64::from(cache.is_some())),
            ("low", low),
            ("high", high),
            ("known_empty", 0),
            ("full_ns", (line * 1e3) as u64),
        ];
        vec![Cell::new("scattered over the region", &set.map(|(k, v)| (k, v as i64)))]
    }

    fn more(&self, run: &Case) -> Vec<Cell> {
        let [cell] = &run.cells[..] else { return vec![] };
        let (low, high) = (cell.bytes("low"), cell.bytes("high"));
        let span = SPAN.min((high - low) / 4 * 3) / STRETCH * STRETCH;
        if !empty(run, cell) || span < LEAST / 2 {
            return vec![];
        }
        let from = (low + (high - low - span) / 2).next_multiple_of(4 * MIB);
        let set =
            [("from", from), ("stretch", span), ("most", span), ("known", 1), ("low", from), ("high", from + span), ("known_empty", 1)];
        vec![Cell::new("scattered over what was filled", &set.map(|(k, v)| (k, v as i64)))]
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        let done = run.of(cell.id).map(|s| s.trial + 1).max().unwrap_or(0);
        // What was never written decides nothing: the second round does.
        let nothing = cell.get("known_empty") == 0 && empty(run, cell);
        done < 2 + TRIALS && !nothing
    }

    fn share(&self) -> f64 {
        0.4
    }

    fn trial(&self, cell: &Cell, n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let (from, stretch, most) = (cell.bytes("from"), cell.bytes("stretch"), cell.bytes("most"));
        match n {
            0 => {
                let until = b.halfway();
                b.keep_old(&[(from, stretch)])?;
                let read = READ.max(b.geometry().sector);
                let apart = STRETCH / READS as u64 / SIZE * SIZE;
                for i in 0..READS as u64 {
                    b.read(BEFORE, from + i * apart, read)?;
                }
                let mut took: Vec<f64> = vec![];
                let line = cell.bytes("full_ns") as f64 / 1e3;
                let over = |took: &[f64]| {
                    let slow = || took.iter().rev().take(ON).filter(|t| **t > line).count() > ON / 8 * 7;
                    took.len().is_multiple_of(WRITES)
                        && match cell.get("known") {
                            0 => step(took).is_some_and(|i| took.len() >= i + ON),
                            _ => line > 0.0 && took.len() >= 2 * ON && slow(),
                        }
                };
                // A slow bus leaves the fill what the others do not need.
                let began = b.now();
                let room = |done: usize, b: &Bench| done < FILLS || b.left().0 > (b.now() - began).0 / done as u64 * KEPT;
                while (took.len() as u64) * CHUNK < most && b.now() < until && room(took.len(), b) && !over(&took) {
                    let at = from + (took.len() as u64 * CHUNK) % stretch;
                    took.push(b.write(FILL, at, CHUNK)?.micros());
                }
                for i in 0..READS as u64 {
                    b.read(AFTER, from + i * apart, read)?;
                }
            }
            1 => {
                let (began, short) = (b.now(), Nanos(b.left().0 / 8));
                for i in 0..SEQUENTIAL {
                    if i >= FEW && b.now() - began > short {
                        break;
                    }
                    b.write(CONTROL, from + i * SIZE % stretch, SIZE)?;
                }
            }
            _ => {
                let (low, high) = (cell.bytes("low").next_multiple_of(b.geometry().sector), cell.bytes("high"));
                // Only what the time allowed was filled.
                let filled = b.run.of(cell.id).filter(|s| s.role == FILL && s.trial == 0).map(|s| s.at + s.len).max().unwrap_or(high);
                let high = if cell.get("known_empty") == 1 { high.min(filled) } else { high };
                let places = ((high - low) / SIZE).max(1);
                let mut all: Vec<(u64, u64)> =
                    b.run.of(cell.id).filter(|s| s.role == SCATTERED && s.trial == 2).map(|s| (s.at, s.len)).collect();
                if all.is_empty() {
                    // Each is read once, written in every trial, and some time is kept back.
                    let once = median(&b.run.of(cell.id).filter(|s| s.role == CONTROL).map(|s| s.took.secs()).collect::<Vec<_>>());
                    let fit = b.left().secs() / (once * f64::from(TRIALS + 2)).max(1e-9);
                    all = (0..(fit as u64).clamp(SCATTER, PLACES)).map(|_| (low + b.below(places) * SIZE, SIZE)).collect();
                    b.keep_old(&all)?;
                }
                b.shuffle(&mut all);
                let read = READ.max(b.geometry().sector);
                let reads: Vec<u64> = all.iter().take(if n == 2 { READS } else { 0 }).map(|p| p.0).collect();
                for &at in &reads {
                    b.read(BEFORE, at, read)?;
                }
                // Reading what was there gave the card a rest; a few writes fill again what it made room for.
                let again = full(b.run, cell).map_or(0, |l| l.again);
                for i in 0..again {
                    b.write(FILL, from + i * CHUNK % stretch, CHUNK)?;
                }
                for (at, len) in all {
                    b.write(SCATTERED, at, len)?;
                }
                for &at in &reads {
                    b.read(AFTER, at, read)?;
                }
            }
        }
        Ok(())
    }
}
