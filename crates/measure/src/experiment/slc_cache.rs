//! How large is the SLC cache, how fast is the card in front of and after it, and how does rest bring it back?
//!
//! Cards of several bits a cell use part of their flash with one bit, fast, and fold it to its place later. After a rest, sequential
//! writes over one stretch go on until they have become slower and stay so. Then short rests, doubled each time, each followed by writes
//! until it is full again: what comes back over the length of the rest is a line; where it begins is the trigger, and its slope says how
//! long emptying the whole takes. After a rest as long as that it is filled once more: what was taken fast both times is the size.
//!
//! What fools it: a card that slows down when it is hot; a bus slower than the flash, where nothing becomes slower; a card that empties
//! its cache as fast as it is filled.

use super::{About, Bench, Experiment, Setup};
use crate::device::DeviceError;
use crate::finding::Quantity;
use crate::infer::beliefs::{Beliefs, Case};
use crate::infer::slc_cache::{RESTS_MS, SEQUENTIAL, full, levels, next_rest, step, times};
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
    roles: &["sequential"],
    covers: "",
};

/// The stretch: only so much has to be put back for each `PASSES` of it.
const STRETCH: u64 = 64 * MIB;
const PASSES: u64 = 16;

/// No cache is a third of its card, even where all flash is used with one bit of three a cell.
const PART: u64 = 3;

/// Writes of the first fill that go on after they have become slower: the rate after it is their mean.
const AFTER: usize = 128;

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
        done == 0 || (levels(run, cell).is_some() && (done <= RESTS_MS.len() as u32 || next_rest(run, cell).is_some()))
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
        let before = (0..n).map(|k| times(b.run, cell, k, SEQUENTIAL).len() as u64).sum::<u64>();
        let mut took = vec![];
        let enough = |took: &[f64]| match known {
            Some(l) => full(took, l),
            None => took.len().is_multiple_of(WRITES) && step(took).is_some_and(|i| took.len() >= i + AFTER),
        };
        while (took.len() as u64) * chunk < most && !enough(&took) {
            let written = (before + took.len() as u64) * chunk;
            // Round and round: no place but these is written.
            let place = (written / (PASSES * stretch) * stretch) % (most / PASSES).max(stretch) / stretch * stretch + written % stretch;
            took.push(b.write(SEQUENTIAL, from + place, chunk)?.micros());
        }
        Ok(())
    }
}
