//! How much longer does a read take right after writes, and for how long after they ended?
//!
//! A card may acknowledge a write before it is on the flash, and go on with it: a read that comes meanwhile waits. Bursts of 4 MiB of writes
//! that are not flushed are each followed at once by random reads of 4 KiB elsewhere, one after the other, for two seconds at most; bursts and
//! rests without writes come in random order, and the reads after them are compared.
//!
//! What fools it: a host that is busy just after it wrote; writes that throw the map of the places that are read out of memory (they are
//! slower for a card's reason then, and that is what is asked).

use super::{About, Bench, Experiment, Setup};
use crate::device::DeviceError;
use crate::finding::Quantity;
use crate::infer::beliefs::Case;
use crate::infer::mixed_reads::{AFTER, LOAD, RESTED, TRIALS, WRITE};
use crate::samples::Cell;
use crate::units::{KIB, MIB, Nanos};

pub struct MixedReads;

pub(super) const EXPERIMENTS: &[&dyn Experiment] = &[&MixedReads];

static ABOUT: About = About {
    name: "mixed-reads",
    turn: 260,
    question: "How much longer does a read take right after writes, and until when?",
    method: "bursts of 4 MiB of writes, each followed at once by random reads of 4 KiB, against the same reads after a rest",
    writes: true,
    answers: &[Quantity::ReadAfterWriteUs, Quantity::ReadSettlesMs],
    roles: &["write", "load", "read after a rest", "read after writes"],
    covers: "",
};

/// Bytes of a burst and of a write of it.
const BURST: u64 = 4 * MIB;
const CHUNK: u64 = 64 * KIB;
/// Reads fall into a window within one translation page, or into so few that any card keeps them in memory. In a larger one single reads of
/// small maps are slow at any time.
const WINDOW: u64 = MIB;
/// A multiple of usual translation pages, and what is smaller than one.
const GRID: u64 = 16 * MIB;
const PIECE: u64 = 256 * KIB;
const READS: usize = 64;
const MOST: usize = 1024;
/// For how long after a burst reads are looked at, and the rest before each trial, in ns.
const LOOKS: u64 = 2_000_000_000;
const REST: u64 = 1_000_000_000;

impl Experiment for MixedReads {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn on_request(&self) -> bool {
        true
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let size = setup.geometry.small();
        let room = setup.region.end - setup.region.start;
        let from = (setup.region.start + room / 8).next_multiple_of(MIB);
        let window = (setup.region.start + room / 2).next_multiple_of(GRID);
        if window + WINDOW > setup.region.end || from + BURST > window || setup.writes < TRIALS as u64 * BURST {
            return vec![];
        }
        let set = |writes: u64| [("size", size), ("from", from), ("window", window), ("burst", writes)].map(|(k, v)| (k, v as i64));
        vec![Cell::new("after a rest", &set(0)), Cell::new("after writes", &set(BURST))]
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        run.trials(cell.id).len() < TRIALS
    }

    fn trial(&self, cell: &Cell, n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let (size, from, window) = (cell.bytes("size"), cell.bytes("from"), cell.bytes("window"));
        let burst = cell.bytes("burst");
        if burst > 0 && n == 0 {
            b.keep_old(&[(from, burst)])?;
        }
        let place = |b: &mut Bench| window + b.below(WINDOW / size) * size;
        for i in 0..WINDOW / PIECE {
            b.read(LOAD, window + i * PIECE, size)?;
        }
        b.rest(Nanos(REST));
        for i in 0..burst / CHUNK {
            b.write_behind(WRITE, from + i * CHUNK, CHUNK)?;
        }
        if burst == 0 {
            for _ in 0..READS {
                let at = place(b);
                b.read(RESTED, at, size)?;
            }
            return Ok(());
        }
        let end = b.now() + Nanos(LOOKS);
        let mut reads = 0;
        while reads < READS || reads < MOST && b.now() < end {
            let at = place(b);
            b.read(AFTER, at, size)?;
            reads += 1;
        }
        Ok(())
    }
}
