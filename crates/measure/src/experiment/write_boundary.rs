//! Where do writes cross from one AU into the next, and which small boundaries do they feel? (Q1, Q5-Q7)
//!
//! Two kinds of trial. *Cross*: where an erase block is known, a short linear stream over a predicted boundary and one over a
//! place between two: entering another AU closes an older one, staying does not. *Small*: one-kilobyte writes before, across
//! and after small boundaries inside one AU.
//!
//! WARNING: write timing becomes unreliable as soon as the card thrashes: every finding here rests on repeats, and is
//! undecided where most writes are slow.

use super::{About, Bench, Experiment, Setup};
use crate::device::DeviceError;
use crate::finding::Quantity;
use crate::infer::beliefs::{Beliefs, Case};
use crate::infer::slots::Slots;
use crate::infer::steps::alignments;
use crate::infer::write_boundary::{Kind, ON, POST, PRE, SMALL_MOST, crosses_clearly, kind};
use crate::samples::Cell;
use crate::units::{Bytes, KIB};

pub struct WriteBoundary;

pub(super) const EXPERIMENTS: &[&dyn Experiment] = &[&WriteBoundary];

static ABOUT: About = About {
    name: "write-boundary",
    turn: 70,
    question: "Where do writes cross from one AU into the next, and which small boundaries do they feel?",
    method: "sequential streams over predicted boundaries; small writes across small boundaries. Unreliable once a card thrashes",
    writes: true,
    answers: &[Quantity::EraseBlock, Quantity::WriteUnit],
    roles: &["pre", "on", "post"],
    covers: "Q1, Q5-Q7",
};

impl Experiment for WriteBoundary {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn needs(&self) -> &'static [&'static str] {
        &["read-boundary", "write-unit", "open-au-linear", "open-au-random", "au-grid"]
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let known = |q: Quantity| setup.believed.value(q, 0.5);
        let Some(cost) = known(Quantity::CloseCostMs) else { return small_cells(setup) };
        let cost = (cost * 1e3) as i64;
        let chunk = chunk(setup);
        match (known(Quantity::EraseBlock), known(Quantity::EraseBlockOffset)) {
            (Some(e), Some(o)) if e as u64 >= 8 * chunk => {
                let (e, o) = (e as i64, o as i64);
                let cell = |(label, part)| {
                    Cell::new(label, &[("cross", e), ("phase", o), ("between", part), ("chunk", chunk as i64), ("cost", cost)])
                };
                [("over a boundary", 0), ("between two", 1)].map(cell).to_vec()
            }
            _ => small_cells(setup),
        }
    }

    /// Small writes come when the streams are done: between them each would open its AU anew.
    fn more(&self, run: &Case) -> Vec<Cell> {
        if run.cells.iter().any(|c| kind(c) == Kind::Small) { vec![] } else { small(run.believed, run.setting("sector").unwrap_or(512)) }
    }

    fn places(&self, setup: &Setup) -> Option<Slots> {
        setup.slots()
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        let done = run.of(cell.id).map(|s| s.trial).max().map_or(0, |t| t + 1);
        match kind(cell) {
            // Each costs a merge or two.
            Kind::Cross => done < 6 && !crosses_clearly(run),
            // Beside a unit that is known they only say whether small writes feel it, too.
            Kind::Small => done < if run.believed.write_unit().is_some() { 3 } else { 6 },
        }
    }

    fn trial(&self, cell: &Cell, n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let chunk = cell.bytes("chunk");
        match kind(cell) {
            Kind::Cross => {
                let (period, phase) = (cell.bytes("cross"), cell.bytes("phase"));
                let first = (b.region.start + b.region.end / 16).saturating_sub(phase) / period + 1;
                let last = (b.region.end - phase).saturating_sub(period) / period;
                if last <= first {
                    return Ok(());
                }
                // Trials in a row use boundaries whose numbers count on: of an AU of several periods they meet one in so many.
                let k = (first + b.below(last - first)) / 12 * 12 + u64::from(n) % 12;
                let k = if k < first { k + 12 } else { k };
                let k = if k > last { k.saturating_sub(12) } else { k }.clamp(first, last);
                let (share, of) = PARTS[n as usize % PARTS.len()];
                let part = if cell.get("between") == 1 { period / of * share } else { 0 };
                let p = phase + k * period + part / chunk * chunk;
                let before = before(period / chunk, n.into());
                for i in 0..before + 2 {
                    let role = if i < before { PRE } else { [ON, POST][(i - before) as usize] };
                    b.write(role, p + i * chunk - before * chunk, chunk)?;
                }
            }
            Kind::Small => {
                let (align, block) = (cell.bytes("align"), cell.bytes("block"));
                let Some(slots) = Slots::of(b.run) else { return Ok(()) };
                // Three different boundaries of this size: rewriting one place is another story.
                let places = (slots.span / align).max(2) - 1;
                let mut odd = || {
                    let m = 1 + b.below(places);
                    slots.at(slots.count / 2) + if m > 1 && m.is_multiple_of(2) { m - 1 } else { m } * align
                };
                let mut three = [(PRE, odd() - block), (ON, odd() - block / 2), (POST, odd())];
                b.shuffle(&mut three);
                for (role, at) in three {
                    b.write(role, at, block)?;
                }
            }
        }
        Ok(())
    }
}

/// Where controls lie, as shares of the way to the next boundary: each is one of an erase block that is a half, a third or a fifth as large. One of
/// a quarter has a boundary at the half as well.
const PARTS: [(u64, u64); 6] = [(1, 2), (1, 5), (1, 3), (1, 2), (2, 5), (2, 3)];

/// Writes before the boundary in trial `n`, with erase blocks of so many writes. As few at times and more at others: what comes with the
/// count of writes, and not with the place, then shows elsewhere. A stream begins past the control before it.
fn before(writes: u64, n: u64) -> u64 {
    if writes < 16 {
        return 2;
    }
    3 + (n + n / 3) % 3 * ((writes / 4 - 4) / 2).min(2)
}

fn chunk(setup: &Setup) -> u64 {
    let unit = setup.believed.value(Quantity::WriteUnit, 0.5).unwrap_or(0.0) as u64;
    unit.clamp(16 * KIB, 64 * KIB).max(setup.geometry.sector)
}

/// Rows of small writes, only where one AU takes random writes: elsewhere each would close it (Q1).
fn small_cells(setup: &Setup) -> Vec<Cell> {
    small(setup.believed, setup.geometry.sector)
}

fn small(believed: &Beliefs, sector: u64) -> Vec<Cell> {
    if !believed.takes_random() {
        return vec![];
    }
    let block = 2 * sector.max(512);
    alignments(2 * block, SMALL_MOST)
        .into_iter()
        .filter(|a| a.is_power_of_two())
        .map(|a| Cell::new(format!("{} / {}", Bytes(a), Bytes(block)), &[("align", a as i64), ("block", block as i64)]))
        .collect()
}
