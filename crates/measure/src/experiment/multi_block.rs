//! What does a write gain when several blocks go in one transaction, and does announcing their number help? (C22 to C24)
//!
//! A card that gets single blocks (CMD24) pays for each what it pays for a transaction: command, busy time, and often the
//! rewriting of a page. A transaction of many blocks pays once. It can be open (CMD25 ... CMD12), its length announced (CMD23),
//! or, on SD, the blocks announced for erasing ahead (ACMD23). The same data are written in each of these forms, and by way of
//! the kernel, in linear order over equal stretches of an AU; the first write of a trial opens the AU and is left out. A rate is all
//! the bytes of the stretches by all their time: a card that rewrites now and then has writes of two kinds, whose median means nothing.
//!
//! The largest request that reaches the medium (C23) is looked for with paired writes: one of some length against its two
//! halves. While the request goes in one piece the halves cost one command more; once it is cut, they cost the same.
//!
//! What fools it: kernels that cannot send a form (said, with the reason), cards that combine small linear writes (then the
//! gain is smaller, and true), a split in a USB reader, which looks the same as one in the kernel.
//!
//! Sources: the page on write performance by ChaN (figure f6), SD Physical Layer 4.3.4 and 4.13.

use super::{About, Bench, Experiment, Setup};
use crate::device::DeviceError;
use crate::device::mmc::Multi;
use crate::finding::Quantity;
use crate::infer::beliefs::Case;
use crate::infer::multi_block::{HALF, KERNEL, OPENING, WHOLE, WRITE, name, reason};
use crate::samples::Cell;
use crate::units::{Bytes, KIB, MIB, SECTOR};

pub struct MultiBlock;

pub(super) const EXPERIMENTS: &[&dyn Experiment] = &[&MultiBlock];

static ABOUT: About = About {
    name: "multi-block",
    turn: 100,
    question: "What does a write gain when several blocks go in one transaction?",
    method: "the same sequential data as single blocks, open-ended, pre-defined, pre-erased, and by way of the kernel; whole writes against their halves",
    writes: true,
    answers: &[
        Quantity::MultiBlockGain,
        Quantity::MultiBlockKnee,
        Quantity::PreDefinedGain,
        Quantity::PreEraseGain,
        Quantity::LargestRequest,
    ],
    roles: &["opening", "write", "whole", "half"],
    covers: "C22, C23, C24",
};

/// Most blocks written one by one: their cost does not depend on how many follow.
const MOST_SINGLE: u64 = 64;

/// Most blocks of a transaction.
const MOST: u64 = 1024;

/// Every length is written over a stretch of so many bytes, so that what a card does now and then is in all of them alike: the
/// longest transaction, or less where writes are slow.
const STRETCH: [u64; 2] = [32 * KIB, MOST * SECTOR];

/// Seconds that one stretch of the slowest writes may take.
const SECONDS: f64 = 8.0;

/// Rounds of all lengths that the time of a run must do for: less than these give no interval worth reading.
const ROUNDS: f64 = 3.0;

/// Share of the time that the stretches may plan with; the rest is for writes in halves and for opening AUs.
const PLANNED: f64 = 0.7;

/// Trials of a stretch.
const TRIALS: u32 = 6;

fn form(cell: &Cell) -> Option<Multi> {
    Multi::ALL.get(usize::try_from(cell.get("how")).ok()?).copied()
}

fn transactions(how: i64, blocks: u64) -> Cell {
    Cell::new(format!("{}, {}", name(how), Bytes(blocks * SECTOR)), &[("how", how), ("blocks", blocks as i64)])
}

impl Experiment for MultiBlock {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn on_request(&self) -> bool {
        true
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        // The slowest writes there are find out what can be sent at all, and how long it takes.
        let least = (setup.geometry.sector / SECTOR).max(1);
        (0..=KERNEL)
            .map(|how| {
                let mut cell = transactions(how, least);
                cell.set.insert("ask".into(), 1);
                cell.set.insert("max_request".into(), setup.geometry.max_request.unwrap_or(0) as i64);
                cell
            })
            .collect()
    }

    fn more(&self, run: &Case) -> Vec<Cell> {
        // One further round, for the forms that could be sent.
        if run.cells.len() > ABOUT_CELLS {
            return vec![];
        }
        let (sector, start, end) = (run.setting("sector").unwrap_or(SECTOR), run.setting("start"), run.setting("end"));
        let room = end.unwrap_or(0).saturating_sub(start.unwrap_or(0)) / 4;
        let declared = run.cells.first().map_or(0, |c| c.bytes("max_request"));
        let stretch = stretch(run, room);
        let mut out = vec![];
        for cell in run.cells.iter().filter(|c| run.of(c.id).next().is_some()) {
            let how = cell.get("how");
            let most = if form(cell) == Some(Multi::SingleBlocks) { MOST_SINGLE } else { MOST };
            for blocks in (0..=10).map(|k| 1 << k).filter(|&n| n <= most && n * SECTOR <= stretch) {
                if (blocks * SECTOR).is_multiple_of(sector) {
                    let mut cell = transactions(how, blocks);
                    cell.set.insert("stretch".into(), stretch as i64);
                    out.push(cell);
                }
            }
        }
        let top = if declared == 0 { MIB } else { (2 * declared.next_power_of_two()).min(2 * MIB) };
        let mut size = 64 * KIB.max(sector / 32);
        while size <= top.min(room / 3) {
            out.push(Cell::new(format!("{} whole and in halves", Bytes(size)), &[("how", KERNEL), ("size", size as i64)]));
            size *= 2;
        }
        out
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        let refused = form(cell).is_some_and(|m| reason(run, m).is_some());
        let trials = match () {
            _ if cell.get("size") > 0 => 8,
            _ if cell.get("ask") > 0 => 1,
            _ => TRIALS,
        };
        !refused && run.of(cell.id).map(|s| s.trial).max().is_none_or(|t| t + 1 < trials)
    }

    fn trial(&self, cell: &Cell, _n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let size = cell.bytes("size");
        if size > 0 {
            return halves(size, b);
        }
        let len = cell.bytes("blocks") * SECTOR;
        let ask = cell.get("ask") > 0;
        let stretch = if ask { STRETCH[0] } else { cell.bytes("stretch") };
        // All begin at the same place of an AU, which the first write opens.
        let opening = (stretch / 8).next_multiple_of(b.geometry().sector);
        let at = place(b, opening + stretch);
        b.write(OPENING, at, opening)?;
        b.write_as(form(cell))?;
        let (mut next, end) = (at + opening, at + opening + stretch);
        let done = loop {
            if next >= end {
                break Ok(());
            }
            let n = len.min(end - next);
            if let Err(e) = b.write(WRITE, next, n) {
                break Err(e);
            }
            next += n;
        };
        // Whatever happened, the next trial writes its own way.
        b.write_as(None)?;
        done
    }
}

/// Cells of the first round: one for each form and one for the kernel.
const ABOUT_CELLS: usize = Multi::ALL.len() + 1;

/// Bytes that every length is written over: what the slowest form writes in [`SECONDS`] and all forms and lengths together in the time
/// of the run, in whole erase blocks where they are small enough.
fn stretch(run: &Case, room: u64) -> u64 {
    // µs a byte of the shortest writes of each form that could be sent.
    let shortest = |c: &Cell| {
        let (mut len, mut us) = (0, 0.0);
        run.of(c.id).filter(|s| s.role == WRITE).for_each(|s| (len, us) = (len + s.len, us + s.took.micros()));
        (len > 0).then(|| (form(c), us / len as f64))
    };
    let all: Vec<_> = run.cells.iter().filter_map(shortest).collect();
    let slowest = all.iter().map(|f| f.1).fold(0.0, f64::max);
    let fits = if slowest > 0.0 { (SECONDS * 1e6 / slowest) as u64 } else { u64::MAX };
    // Single blocks cost the same in each of their lengths; of transactions each length takes about half the time of the one before.
    let lengths = f64::from(MOST_SINGLE.ilog2() + 1);
    let round: f64 = all.iter().map(|(how, us)| us * if *how == Some(Multi::SingleBlocks) { lengths } else { 2.0 }).sum();
    let spent: f64 = run.samples.iter().map(|s| s.took.micros()).sum();
    let left = run.setting("time_ms").map_or(f64::INFINITY, |ms| ms as f64 * 1e3 - spent).max(0.0);
    let fits = if round > 0.0 { fits.min((PLANNED * left / (ROUNDS * round)) as u64) } else { fits };
    let most = fits.clamp(STRETCH[0], STRETCH[1]).min(room / 2).max(SECTOR);
    let most = 1 << most.ilog2();
    match run.grid().unit {
        Some(e) if e > 0 && e <= most => most / e * e,
        _ => most,
    }
}

/// A place for `need` bytes at the start of an AU in the upper three quarters of the region: the start may be a FAT zone.
fn place(b: &mut Bench, need: u64) -> u64 {
    let unit = b.run.grid().unit.filter(|&e| e >= 64 * KIB).unwrap_or(4 * MIB);
    let phase = b.run.grid().phase.unwrap_or(0) % unit;
    let (start, end) = (b.region.start, b.region.end);
    let first = start.saturating_sub(phase).next_multiple_of(unit) + phase;
    let room = end.saturating_sub(first).saturating_sub(need) / unit;
    let at = first + (room / 4 + b.below(room - room / 4)) * unit;
    if at + need <= end { at } else { start }
}

fn halves(size: u64, b: &mut Bench) -> Result<(), DeviceError> {
    let at = place(b, 3 * size);
    b.write(OPENING, at, size)?;
    // One after the other in linear order; which goes first is drawn.
    let whole_first = b.below(2) == 0;
    let (whole, half) = if whole_first { (at + size, at + 2 * size) } else { (at + 2 * size, at + size) };
    for whole_now in [whole_first, !whole_first] {
        if whole_now {
            b.write(WHOLE, whole, size)?;
        } else {
            b.write(HALF, half, size / 2)?;
            b.write(HALF, half + size / 2, size / 2)?;
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "multi_block_tests.rs"]
mod tests;
