//! Is there a volatile write cache, and does a flush wait for what it holds?
//!
//! Writes are sent without the flush that follows every other timed write: a burst until writes become slower, which says how much a cache
//! takes. Then, each time after a rest, as much as fits, a flush, and further writes at once. A flush that waits takes the time that the cache
//! had saved, and there is room after it. Flushes with nothing to write, and after a single write of 4 KiB, say what one costs.
//!
//! What fools it: an SLC cache, which a flush need not empty (then it is undecided, unless the writes were faster than a read), a kernel or a
//! reader that keeps flushes back, a cache that the host has switched off.

use super::{About, Bench, Experiment, Setup};
use crate::device::DeviceError;
use crate::finding::Quantity;
use crate::infer::beliefs::Case;
use crate::infer::flush::{AFTER_BURST, AFTER_FITS, AFTER_SINGLE, AGAIN, BURST, EMPTY, FITS, READ, SINGLE, TAIL, TRIALS, burst, cached};
use crate::samples::Cell;
use crate::units::{KIB, MIB, Nanos};

pub struct Flush;

pub(super) const EXPERIMENTS: &[&dyn Experiment] = &[&Flush];

static ABOUT: About = About {
    name: "flush",
    turn: 240,
    question: "Is there a volatile write cache, what does a flush cost, and does it wait for what was written?",
    method: "writes that are not flushed, until they become slower; then as much as fits, a flush and further writes, each after a rest",
    writes: true,
    answers: &[Quantity::FlushMs, Quantity::VolatileCache, Quantity::FlushWaits],
    roles: &["empty flush", "single", "flush after it", "read", "burst", "flush after it", "as much as fits", "flush after it", "again"],
    covers: "",
};

/// Where the bursts go: only so much has to be put back.
const STRETCH: u64 = 32 * MIB;
/// Bytes of a write of a burst.
const CHUNK: u64 = 16 * KIB;
/// Bytes of a burst after which no cache is looked for: none in a card's memory is larger.
const MOST: u64 = 48 * MIB;
/// Flushes of each kind, and reads.
const SINGLES: u64 = 16;
/// Rest before a burst, ms: a cache in memory is empty then, or after this many times what it had saved, up to a minute.
const REST: f64 = 2_000.0;
const AMPLE: f64 = 1.3;
const LONGEST: f64 = 60_000.0;

fn rest(b: &mut Bench, saved_us: f64) {
    b.rest(Nanos(((AMPLE * saved_us / 1e3).clamp(REST, LONGEST) * 1e6) as u64));
}

impl Experiment for Flush {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn on_request(&self) -> bool {
        true
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let chunk = CHUNK.max(setup.geometry.sector);
        let room = setup.region.end - setup.region.start;
        let stretch = STRETCH.min(room / 2) / chunk * chunk;
        let from = (setup.region.start + room / 8).next_multiple_of(MIB.min(stretch).max(chunk));
        let most = MOST.min(setup.writes / 4) / chunk * chunk;
        if stretch < 64 * chunk || from + stretch > setup.region.end || most < 4 * TAIL as u64 * chunk {
            return vec![];
        }
        let set = [("from", from), ("stretch", stretch), ("chunk", chunk), ("most", most)];
        vec![Cell::new("bursts", &set.map(|(k, v)| (k, v as i64)))]
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        let done = run.of(cell.id).map(|s| s.trial + 1).max().unwrap_or(0);
        done < 2 || done < 2 + TRIALS && cached(&burst(run, cell)).is_some()
    }

    fn trial(&self, cell: &Cell, n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let (from, stretch, chunk, most) = (cell.bytes("from"), cell.bytes("stretch"), cell.bytes("chunk"), cell.bytes("most"));
        let place = |i: u64| from + i * chunk % stretch;
        match n {
            0 => {
                b.keep_old(&[(from, stretch)])?;
                let small = b.geometry().small();
                for i in 0..SINGLES {
                    b.read(READ, place(i * 7), chunk)?;
                    b.flush(EMPTY)?;
                }
                for i in 0..SINGLES {
                    b.rest(Nanos(50_000_000));
                    b.write_behind(SINGLE, place(i * 5), small)?;
                    b.flush(AFTER_SINGLE)?;
                }
            }
            1 => {
                b.flush(EMPTY)?;
                rest(b, 0.0);
                let mut took: Vec<f64> = vec![];
                let over = |took: &[f64]| took.len().is_multiple_of(TAIL) && cached(took).is_some();
                while (took.len() as u64) * chunk < most && !over(&took) {
                    took.push(b.write_behind(BURST, place(took.len() as u64), chunk)?.micros());
                }
                b.flush(AFTER_BURST)?;
            }
            _ => {
                let Some(c) = cached(&burst(b.run, cell)) else { return Ok(()) };
                b.flush(EMPTY)?;
                rest(b, c.saved());
                let room = c.room as u64;
                for i in 0..room {
                    b.write_behind(FITS, place(i), chunk)?;
                }
                b.flush(AFTER_FITS)?;
                for i in 0..room + TAIL as u64 {
                    b.write_behind(AGAIN, place(room + i), chunk)?;
                }
            }
        }
        Ok(())
    }
}
