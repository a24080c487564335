//! How much larger is the SLC cache while the card holds less?
//!
//! Where the size of the cache and how rest empties it are known, it is filled three times, each after a rest that empties it: as it is, after
//! half of the region was discarded, and after all of it was. Part of the flash of a card without data can be used with one bit a cell.
//!
//! What fools it: a card that does nothing on a discard (said), or puts it off.

use super::{About, Bench, Experiment, Setup};
use crate::device::DeviceError;
use crate::finding::Quantity;
use crate::infer::beliefs::{Beliefs, Case};
use crate::infer::slc_cache::full;
use crate::infer::slc_fill::{DISCARD, FAILED, FILL, HELD, levels, sizes};
use crate::samples::Cell;
use crate::units::{KIB, MIB, Nanos};

pub struct SlcFill;

pub(super) const EXPERIMENTS: &[&dyn Experiment] = &[&SlcFill];

static ABOUT: About = About {
    name: "slc-fill",
    turn: 250,
    question: "How much larger is the SLC cache while the card holds less?",
    method: "the region is discarded, first half of it and then all; sequential writes until they become slower before and after each",
    writes: true,
    answers: &[Quantity::SlcCacheEmpty],
    roles: &["fill", "discard", "refused"],
    covers: "",
};

const STRETCH: u64 = 64 * MIB;
const CHUNK: u64 = 256 * KIB;
/// Writes in one fill go up to so many times what the cache took last.
const LARGER: u64 = 16;
/// A rest is this much longer than emptying should take.
const AMPLE: f64 = 1.5;

impl Experiment for SlcFill {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn on_request(&self) -> bool {
        true
    }

    fn needs(&self) -> &'static [&'static str] {
        &["slc-cache"]
    }

    fn asks(&self, believed: &Beliefs) -> bool {
        super::may_map_by_page(believed)
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let known = |q: Quantity| setup.believed.number(q).filter(|v| *v > 0.0);
        let all = [Quantity::SlcCache, Quantity::RateCachedMbS, Quantity::RateSustainedMbS, Quantity::IdleEmptyMbS].map(known);
        let [Some(size), Some(fast), Some(slow), Some(empties)] = all else { return vec![] };
        let trigger = known(Quantity::IdleTriggerMs).unwrap_or(0.0);
        let room = setup.region.end - setup.region.start;
        let chunk = CHUNK.max(setup.geometry.sector);
        let from = (setup.region.start + room / 64).next_multiple_of(4 * MIB);
        if from + STRETCH > setup.region.end || setup.writes / 3 < size as u64 {
            return vec![];
        }
        let ns = |rate: f64| (chunk as f64 / rate * 1e3) as u64;
        let set = [
            ("from", from),
            ("stretch", STRETCH / chunk * chunk),
            ("chunk", chunk),
            ("most", (setup.writes / 3).min(LARGER * size as u64) / chunk * chunk),
            ("size", size as u64),
            ("fast_ns", ns(fast)),
            ("slow_ns", ns(slow)),
            ("trigger_us", (trigger * 1e3) as u64),
            ("empties_kb_s", (empties * 1e3) as u64),
            ("start", setup.region.start),
            ("end", setup.region.end),
        ];
        vec![Cell::new("levels", &set.map(|(k, v)| (k, v as i64)))]
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        let done = run.of(cell.id).map(|s| s.trial + 1).max().unwrap_or(0) as usize;
        done < HELD.len() && sizes(run, cell).len() == done && run.samples.iter().all(|s| s.role != FAILED)
    }

    fn trial(&self, cell: &Cell, n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let (start, end) = (cell.bytes("start"), cell.bytes("end"));
        let held = |n: u32| start + (end - start) / 100 * HELD[n as usize];
        if n > 0 {
            let edge = |n: u32| held(n).next_multiple_of(4 * MIB);
            if !b.discard(DISCARD, FAILED, edge(n)..if n == 1 { end } else { edge(n - 1) })? {
                return Ok(());
            }
        }
        let before = sizes(b.run, cell).last().map_or(cell.bytes("size") as f64, |s| s.1);
        let ms = cell.get("trigger_us") as f64 / 1e3 + AMPLE * before / cell.get("empties_kb_s").max(1) as f64;
        b.rest(Nanos((ms * 1e6) as u64));
        let (from, stretch, chunk) = (cell.bytes("from"), cell.bytes("stretch"), cell.bytes("chunk"));
        let mut took: Vec<f64> = vec![];
        while (took.len() as u64) * chunk < cell.bytes("most") && !full(&took, levels(cell)) {
            took.push(b.write(FILL, from + took.len() as u64 * chunk % stretch, chunk)?.micros());
        }
        Ok(())
    }
}
