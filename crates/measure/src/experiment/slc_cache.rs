//! How large is the SLC cache, how fast is the card in front of and after it, and how does rest bring it back?
//!
//! Cards of several bits a cell use part of their flash with one bit, fast, and fold it to its place later. After a rest, sequential
//! writes over one stretch go on until they have become slower and stay so. Then short rests, doubled each time, each followed by writes
//! until it is full again: what comes back over the length of the rest is a line; where it begins is the trigger, and its slope says how
//! long emptying the whole takes. After a rest as long as that it is filled once more: what was taken fast both times is the size.
//!
//! A card that is hot slows down as well, but reads with it: places that are not written are read before the first fill, and once it was slow.
//!
//! What fools it: heat that slows writes only, where rest helps within the time; a bus slower than the flash, where nothing becomes slower;
//! a card that empties its cache as fast as it is filled.

use super::{About, Bench, Experiment, Setup};
use crate::device::DeviceError;
use crate::finding::Quantity;
use crate::infer::beliefs::{Beliefs, Case};
use crate::infer::slc_cache::{AGAIN, ELSEWHERE, RESTS_MS, SEQUENTIAL, full, hot, levels, levels_of, longer, next_rest, step};
use crate::infer::write_cache::WRITES;
use crate::samples::Cell;
use crate::units::{KIB, MIB, Nanos};

pub struct SlcCache;

pub(super) const EXPERIMENTS: &[&dyn Experiment] = &[&SlcCache];

static ABOUT: About = About {
    name: "slc-cache",
    turn: 160,
    question: "How large is the SLC cache, how fast is the card in front of it and after it, and does rest bring it back?",
    method: "sequential writes over one stretch until they become slower, after rests from 25 ms on and one that empties the cache",
    writes: true,
    answers: &[
        Quantity::SlcCache,
        Quantity::RateCachedMbS,
        Quantity::RateSustainedMbS,
        Quantity::IdleTriggerMs,
        Quantity::IdleEmptyMbS,
        Quantity::SlcWhenFull,
    ],
    roles: &["sequential", "read of another place", "until it is full again"],
    covers: "",
};

/// The stretch: only so much has to be put back for each `PASSES` of it.
const STRETCH: u64 = 64 * MIB;
const PASSES: u64 = 16;

/// No cache is a third of its card, even where all flash is used with one bit of three a cell.
const PART: u64 = 3;

/// Writes of the first fill that go on after they have become slower: the rate after it is their mean.
const AFTER: usize = 128;

/// Reads of other places before the first fill and after it, and bytes of each. What is still being written makes some of them wait: they go
/// on until so many are usual, or as many times as that.
const READS: usize = 32;
const READ: u64 = 16 * KIB;
const PATIENCE: usize = 16;

/// Reads that take no longer than so many times as long as before are usual.
const USUAL: f64 = 1.05;

/// The first rest, and its share of the time.
const REST: u64 = 30_000;
const REST_SHARE: u64 = 16;

impl Experiment for SlcCache {
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
        let chunk = (256 * KIB).max(setup.geometry.sector);
        let stretch = STRETCH.min(room / 8) / chunk * chunk;
        let from = (setup.region.start + (room / 64).clamp((16 * MIB).min(room / 8), 1024 * MIB)).next_multiple_of(4 * MIB);
        let most = (setup.writes / 3).min(room / PART) / chunk * chunk;
        if stretch < 16 * chunk || from + most.div_ceil(PASSES * stretch) * stretch > setup.region.end {
            return vec![];
        }
        vec![Cell::new(
            "fill",
            &[
                ("from", from as i64),
                ("stretch", stretch as i64),
                ("chunk", chunk as i64),
                ("most", most as i64),
                ("rest_ms", REST as i64),
                ("short_first", 1),
            ],
        )]
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        let done = run.of(cell.id).map(|s| s.trial + 1).max().unwrap_or(0);
        done == 0
            || (levels(run, cell).is_some_and(|l| hot(run, cell, l).is_none())
                && (done <= RESTS_MS.len() as u32 || next_rest(run, cell).is_some()))
    }

    fn trial(&self, cell: &Cell, n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let (from, stretch, chunk, most) = (cell.bytes("from"), cell.bytes("stretch"), cell.bytes("chunk"), cell.bytes("most"));
        let known = levels(b.run, cell);
        let allowed = b.run.setting.get("time_ms").copied().unwrap_or(0).max(0) as u64;
        let ms = match n.checked_sub(1).map(|k| RESTS_MS.get(k as usize)) {
            None => REST.min(allowed / REST_SHARE),
            Some(Some(&short)) => short,
            Some(None) => {
                let (rest, fill) = next_rest(b.run, cell).unwrap_or_default();
                // Others may leave it the time for that.
                if rest + fill > b.left().0 as f64 / 1e6 {
                    return Err(DeviceError::Late);
                }
                rest as u64
            }
        };
        b.rest(Nanos(ms * 1_000_000));
        let usual = if n == 0 { elsewhere(cell, b, &[])? } else { vec![] };
        let mut written = b.run.of(cell.id).filter(|s| s.is_write()).count() as u64 * chunk;
        let mut fill = |role: u8, b: &mut Bench, enough: &dyn Fn(&[f64]) -> bool| -> Result<Vec<f64>, DeviceError> {
            let mut took = vec![];
            while (took.len() as u64) * chunk < most && !enough(&took) {
                // Round and round: no place but these is written.
                let place = (written / (PASSES * stretch) * stretch) % (most / PASSES).max(stretch) / stretch * stretch + written % stretch;
                took.push(b.write(role, from + place, chunk)?.micros());
                written += chunk;
            }
            Ok(took)
        };
        let took = fill(SEQUENTIAL, b, &|took| match known {
            Some(l) => full(took, l),
            None => took.len().is_multiple_of(WRITES) && step(took).is_some_and(|i| took.len() >= i + AFTER),
        })?;
        if let Some(l) = levels_of(&took).filter(|_| n == 0) {
            elsewhere(cell, b, &usual)?;
            // The reads may have been a rest.
            fill(AGAIN, b, &|took| full(took, l))?;
        }
        Ok(())
    }
}

/// Reads of places right before the stretch, none of them twice in a fill; beside earlier ones, until they take as long as those. µs of each.
fn elsewhere(cell: &Cell, b: &mut Bench, before: &[f64]) -> Result<Vec<f64>, DeviceError> {
    let size = READ.max(b.geometry().sector);
    let places = ((cell.bytes("from") - b.region.start) / size / 2).max(1);
    let odd = u64::from(!before.is_empty());
    let mut took = vec![];
    let most = if before.is_empty() { READS } else { READS * PATIENCE };
    while took.len() < most && (took.len() < READS || longer(before, &took[took.len() - READS..]) > USUAL) {
        let at = cell.bytes("from") - (1 + 2 * (took.len() as u64 % places) + odd) * size;
        took.push(b.read(ELSEWHERE, at, size)?.micros());
    }
    Ok(took)
}
