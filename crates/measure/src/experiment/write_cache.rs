//! Does a cache in front of the flash take the first writes faster than the flash can?
//!
//! Cards put new data into flash used with one bit a cell, or into memory, and move it later. Short tests never get past such a
//! cache: writes in turn look as if any number of AUs stayed open. Long sequential writes over one stretch, again and again,
//! fill it: a cache takes every write anew, wherever it goes. Where they become slower and stay so, it was full. Experiments
//! that saw no limit are then run once more.
//!
//! A card that is hot slows down as well, but reads with it: places that are not written are read at first, and once writes are slower.
//!
//! What fools it: heat that slows writes only (said), a bus slower than the flash (then a full cache does not show,
//! but what lies behind it does), caches larger than what is written, a card that empties its cache as fast as it is filled.

use super::{About, Bench, Experiment, Setup};
use crate::device::DeviceError;
use crate::finding::Quantity;
use crate::infer::beliefs::{Beliefs, Case};
use crate::infer::write_cache::{WRITES, step, times};
use crate::samples::Cell;
use crate::units::{KIB, MIB};

pub struct WriteCache;

pub(super) const EXPERIMENTS: &[&dyn Experiment] = &[&WriteCache];

static ABOUT: About = About {
    name: "write-cache",
    turn: 90,
    question: "Does a cache in front of the flash take the first writes faster?",
    method: "sequential writes over one stretch, again and again, until they become slower; only where interleaved writes found no limit",
    writes: true,
    answers: &[Quantity::WriteCache],
    roles: &["write", "read of another place"],
    covers: "",
};

/// No cache is a third of its card, even where all flash is used with one bit of three a cell.
const PART: u64 = 3;

/// The stretch: only so much has to be put back for each `PASSES` of it.
const STRETCH: u64 = 64 * MIB;

/// So often it is written; then the next one, to spare flash that is not levelled.
const PASSES: u64 = 16;

/// Trials that go on after the writes have become slower: three show it, and reads come after the fourth.
const AFTER: usize = 4;

impl Experiment for WriteCache {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn share(&self) -> f64 {
        0.5
    }

    /// The searches that come after it need the time.
    fn goes_on(&self) -> bool {
        false
    }

    /// What `slc-cache` found, or did not find, says more.
    fn asks(&self, believed: &Beliefs) -> bool {
        believed.get(Quantity::SlcCache).is_none()
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let orders = [Quantity::OpenAusLinear, Quantity::OpenAusRandom].map(|q| setup.believed.get(q));
        // A limit that was seen was not hidden, nor one whose cost was.
        let cost = setup.believed.value(Quantity::CloseCostMs, 0.5).is_some();
        if cost || orders.iter().any(|f| f.is_some_and(|b| b.decided)) {
            return vec![];
        }
        // Asked for alone, nothing is known; after a search that failed for other reasons a full cache would not help it.
        if orders.iter().any(Option::is_some) && !orders.iter().any(|f| f.is_some_and(|b| b.at_least.is_some())) {
            return vec![];
        }
        let room = setup.region.end - setup.region.start;
        let chunk = (512 * KIB).min(room / 256).max(setup.geometry.sector.max(512));
        let chunk = 1u64 << chunk.ilog2();
        let stretch = STRETCH.min(room / 8) / chunk * chunk;
        let grid = setup.believed.erase_block().unwrap_or(4 * MIB).max(chunk);
        // Past tables and FATs, yet near the front: a counterfeit card throws away what lies further behind.
        let from = (setup.region.start + (room / 64).clamp((16 * MIB).min(room / 8), 1024 * MIB)).next_multiple_of(grid);
        // A quarter of what may be written is for the searches that come after it.
        let most = (setup.writes / 4 * 3).min(room / PART) / chunk * chunk;
        if stretch < 16 * chunk || from + most.div_ceil(PASSES * stretch) * stretch > setup.region.end {
            return vec![];
        }
        vec![Cell::new("fill", &[("from", from as i64), ("stretch", stretch as i64), ("chunk", chunk as i64), ("most", most as i64)])]
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        let times = times(run, cell);
        let written = times.len() as u64 * cell.bytes("chunk");
        written < cell.bytes("most") && step(&times).is_none_or(|i| times.len() < i + AFTER * WRITES)
    }

    fn trial(&self, cell: &Cell, n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let (from, stretch, chunk) = (cell.bytes("from"), cell.bytes("stretch"), cell.bytes("chunk"));
        for i in 0..WRITES as u64 {
            let written = (n as u64 * WRITES as u64 + i) * chunk;
            let place = written / (PASSES * stretch) * stretch + written % stretch;
            b.write(0, from + place, chunk)?;
        }
        if n == 0 || step(&times(b.run, cell)).is_some() {
            for i in 1..=WRITES as u64 {
                b.read(1, from - i * chunk, chunk)?;
            }
        }
        Ok(())
    }
}
