//! Below which size does a write cost as much as one of that size? (Q14, Q16, C3)
//!
//! A card programs pages, or pages of several planes, as one: writing less than that unit costs the whole, and a write that
//! touches two units costs two. Each pass writes one stretch in linear order with falling sizes (2^k and 3*2^k), every
//! write aligned to its own size. For each candidate the times are explained by the units touched, the bytes moved and the
//! part of a unit that must be filled up from old data; the candidate that explains them best is the unit.
//!
//! What fools it: cards that combine small linear writes (then most cost little and some pay for all: undecided, said),
//! stalls (outliers are left out), a fixed cost so large that no unit shows (undecided).

use super::{About, Bench, Experiment, Setup};
use crate::device::DeviceError;
use crate::finding::Quantity;
use crate::infer::beliefs::Case;
use crate::infer::stats::{mad, median};
use crate::infer::steps::alignments;
use crate::infer::write_unit::{SCOUT, by_size, shown, writes_of};
use crate::samples::Cell;
use crate::units::{KIB, MIB};

pub struct WriteUnit;

pub(super) const EXPERIMENTS: &[&dyn Experiment] = &[&WriteUnit];

static ABOUT: About = About {
    name: "write-unit",
    turn: 30,
    question: "Below which size does a write cost as much as one of that size?",
    method: "sequential writes of falling size inside one AU, several passes in different AUs",
    writes: true,
    answers: &[Quantity::WriteUnit],
    roles: &["write", "scout"],
    covers: "C3, Q14, Q16",
};

impl Experiment for WriteUnit {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    /// The search for open AUs needs the most.
    fn share(&self) -> f64 {
        0.3
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let sector = setup.geometry.sector.max(512);
        let largest = (512 * KIB).min((setup.region.end - setup.region.start) / 64).max(2 * sector);
        let largest = 1 << largest.ilog2();
        vec![Cell::new("ladder", &[("largest", largest as i64), ("smallest", sector as i64)])]
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        let passes = run.trials(cell.id).len();
        // A third pass where the sizes scatter, or where what they show is to be told from a cut.
        let scatter = || by_size(run).values().filter(|t| mad(t) > 0.05 * median(t)).count();
        let untold = || between(run).is_some_and(|size| !by_size(run).contains_key(&size));
        passes < 2 || (passes < 4 && (scatter() > 5 || untold()))
    }

    fn trial(&self, cell: &Cell, _n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let smallest = cell.bytes("smallest");
        let largest = largest(cell, b.run);
        let between = between(b.run).filter(|s| *s < largest);
        let sizes = alignments(smallest, largest).into_iter().chain(between).filter(|s| s.is_multiple_of(smallest));
        let mut sizes: Vec<u64> = sizes.collect();
        sizes.sort_unstable_by_key(|s| std::cmp::Reverse(*s));
        let need: u64 = sizes.iter().map(|&s| s * writes_of(s)).sum::<u64>() + 3 * largest;
        let unit = b.run.grid().unit.filter(|&e| e >= 64 * KIB).unwrap_or(3 * MIB).max(largest);
        let phase = b.run.grid().phase.unwrap_or(0);
        let room = (b.region.end - b.region.start).saturating_sub(need + 2 * unit) / unit;
        // Spread over the upper three quarters: the start may be a FAT zone.
        let k = room / 4 + b.below((room - room / 4).max(1));
        let mut at = b.region.start.saturating_sub(phase).next_multiple_of(unit) + phase + k * unit;
        if at + need > b.region.end {
            at = b.region.start.next_multiple_of(3 * largest);
        }
        // Some cards take seconds for the largest size: short writes first, of which the first one opens the AU.
        let short = (16 * KIB).min(largest);
        b.write(SCOUT, at, short)?;
        at += short;
        let took = b.write(SCOUT, at, short)?.secs();
        // Without nine sizes no unit can be told.
        let within = |len: u64, took: f64| ((len as f64 * SLOW / took) as u64).max(16 * smallest);
        let mut most = if took * 8.0 > SLOW { within(short, took) } else { u64::MAX };
        at = (at + short).next_multiple_of(3 * largest);
        // What opens the AU, or breaks the order in it, says nothing of the size.
        let mut first = true;
        for s in sizes {
            for _ in 0..writes_of(s) {
                if s > most || at + s > b.region.end {
                    break;
                }
                let took = b.write(0, at, s)?.secs();
                at += s;
                // Behind a slow bus long writes take the time that many short ones need.
                if took > SLOW && !first && s > within(s, took) {
                    most = within(s, took);
                    at = at.next_multiple_of(3 * largest);
                    first = true;
                } else {
                    first = false;
                }
            }
        }
        Ok(())
    }
}

/// Longer writes than these, in units, tell of no smaller one.
const LONG: u64 = 8;

/// The longest writes of a pass: where the passes before show a unit, far longer ones would cost most of the bytes and say nothing new.
fn largest(cell: &Cell, run: &Case) -> u64 {
    let long = shown(run).map_or(u64::MAX, |unit| unit.saturating_mul(LONG).next_power_of_two());
    long.min(cell.bytes("largest"))
}

/// Shorter units than this are below the cut of any host.
const LEAST_CUT: u64 = 48 * KIB;

/// Where the passes before show a unit of three planes, a size between it and the next: it takes a unit more there, while a host that cuts requests
/// between the two sizes, as USB readers do at 120 KiB, sends a piece more at the next only.
fn between(run: &Case) -> Option<u64> {
    shown(run).filter(|unit| *unit >= LEAST_CUT && !unit.is_power_of_two()).map(|unit| unit / 6 * 7)
}

/// Seconds that one write may take; longer sizes are left out from then on.
const SLOW: f64 = 0.15;
