//! Which boundaries cost time when a small read crosses them? (F1-F12)
//!
//! A card reads pages, pages of several planes together, and looks up erase blocks one by one: a read that crosses such
//! a boundary does the work twice. Each trial reads just before, across and just after one boundary; the extra time of
//! the crossing read is the signal. Three rounds: rows of alignments (2^k and 3*2^k, each at odd multiples coprime to 6,
//! so that a row never tests a larger boundary than its own); where the rows name no erase block, a sweep over every
//! boundary of a stretch, which finds odd sizes (4128 KiB) and blocks that do not begin at 0; then a test of the period
//! at positions far away.
//!
//! What fools it: read-ahead and caches (no position is read twice, the order is random), readers that split requests
//! (reads stay small), cards never written (flat: read once more where the probe wrote), periodic stalls (medians, far positions).

mod grid;
mod next;
mod pieces;
mod place;
mod written;

use super::{About, Bench, Experiment, Setup};
use crate::device::DeviceError;
use crate::finding::{Findings, Quantity};
use crate::infer::beliefs::{Case, SURE};
use crate::infer::lattice;
use crate::infer::read_boundary::{
    BACK, BEGINS, CLEAR, COMPARED, CONTROL, FAR, FROM, Kind, LEAST_PLAIN, ON, OTHER_LENGTHS, POST, PRE, PREDICTED, UNTIL, View, Ways,
    answers_at_ticks, confirm_estimate, confirmed, keeps_last, kind, off_multiples, part_instead, place as begin, reads_slower, tells,
};
use crate::infer::stats::{mad, median};
use crate::infer::steps::alignments;
use crate::samples::{Cell, Run};
use crate::units::{Bytes, KIB, MIB, Nanos, gcd};
use next::*;
use std::collections::BTreeSet;
use std::ops::Range;

pub struct ReadBoundary;

pub(super) const EXPERIMENTS: &[&dyn Experiment] = &[&ReadBoundary];

/// Sweeps look for periods up to a third of the last of these.
const WINDOWS: [u64; 3] = [16 * MIB, 48 * MIB, 208 * MIB];

static ABOUT: About = About {
    name: "read-boundary",
    turn: 20,
    question: "Which boundaries cost time when a small read crosses them?",
    method: "reads before, across and after boundaries of every size; a sweep where the sizes are odd; a check far away",
    writes: false,
    answers: &[Quantity::EraseBlock, Quantity::EraseBlockOffset, Quantity::Page, Quantity::AccessUnit],
    roles: &["pre", "on", "post", "predicted", "control", "far", "back"],
    covers: "F1-F12, Q5, Q7",
};

/// Is what crossing this row costs known to no better than this part of a read that crosses nothing, nor to a twelfth of itself?
fn wide(ways: &Ways, cell: &Cell, part: impl Fn() -> f64) -> bool {
    let e = ways.row(cell);
    e.error > (0.08 * e.value.abs()).max(0.0) && e.error > (part() * ways.base_time(cell.bytes("block"))).max(0.0)
}

/// Does this cell want another trial?
fn wants(cell: &Cell, run: &Run, ways: &Ways) -> bool {
    let trials = run.of(cell.id).map(|s| s.trial).max().map_or(0, |t| t + 1);
    match kind(cell) {
        Kind::Row => trials < 8 || trials < 36 && wide(ways, cell, || 0.02),
        // A card fast enough to look ahead takes a page out of its registers in a hundredth of its time.
        Kind::Fine => trials < 72 && wide(ways, cell, || if ways.reads_ahead() { 0.003 } else { 0.006 }),
        Kind::Sweep => trials < cell.get("trials") as u32,
        Kind::Verify => trials < 7,
        Kind::Pairs => trials < 24,
        Kind::Place => trials < 7,
        Kind::Written => written::wants(cell, run, trials),
        Kind::Confirm => {
            if trials < 16 {
                return true;
            }
            let e = confirm_estimate(run, cell);
            trials < 64 && e.error > 0.2 * e.value.abs()
        }
    }
}

impl Experiment for ReadBoundary {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    /// Behind a slow bus thousands of reads would leave nothing for the writes, which say more there.
    fn share(&self) -> f64 {
        0.2
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let room = setup.region.end - setup.region.start;
        let smallest = 2 * setup.geometry.sector.max(512);
        let mut cells = vec![];
        for block in [smallest, (16 * KIB).max(smallest)] {
            // The largest row still has five multiples coprime to 6 in the region.
            for align in alignments(2 * block, (room / 14).min(512 * MIB)) {
                cells.push(row_cell(align, block));
            }
        }
        cells
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        wants(cell, run, &Ways::of(run))
    }

    fn wanting(&self, cells: &[&Cell], run: &Case) -> Vec<u32> {
        let ways = Ways::of(run);
        // What comes later comes alone: the rest of a run that the time cut had its time.
        let later = |c: &Cell| kind(c) == Kind::Written || c.set.contains_key(BEGINS);
        let alone = run.cells.iter().any(|c| kind(c) == Kind::Written);
        cells.iter().filter(|c| (!alone || later(c)) && wants(c, run, &ways)).map(|c| c.id).collect()
    }

    fn trial(&self, cell: &Cell, n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let block = cell.bytes("block");
        match kind(cell) {
            Kind::Row | Kind::Fine => {
                let (align, from) = (cell.bytes("align"), cell.bytes(BEGINS));
                // Where the page that was read last is at hand, each is read at a place of its own.
                let apart = align <= LEAST_PLAIN && keeps_last(b.run, block);
                let region = b.region.clone();
                let Some(three) = three(b, &region, (align, from, block), apart) else { return Ok(()) };
                // What costs less than a tick shows in reads that begin anywhere between two; what costs more stands out without that noise.
                let tick = answers_at_ticks(b.run).map(|us| (us * 1e3) as u64);
                for (role, at) in three {
                    if let Some(tick) = tick {
                        let part = Nanos(b.below(tick));
                        b.rest(part);
                    }
                    b.read(role, at, block)?;
                }
            }
            Kind::Sweep => {
                // Visits every boundary once, in an order that never walks forwards.
                let count = cell.bytes("count");
                let per = count.div_ceil(cell.bytes("trials"));
                let stride = (0..).map(|i| (count as f64 * 0.618) as u64 + i).find(|&s| gcd(s, count) == 1).unwrap_or(1).max(1);
                for i in n as u64 * per..(n as u64 + 1) * per {
                    if i < count {
                        let p = cell.bytes("from") + (i as u128 * stride as u128 % count as u128) as u64 * cell.bytes("step");
                        b.read(ON, p - block / 2, block)?;
                    }
                }
            }
            Kind::Verify => {
                let (at, step) = (cell.bytes("at"), cell.bytes("step"));
                let mut all = [(ON, at), (PRE, at - step), (POST, at + step)];
                b.shuffle(&mut all);
                for (role, p) in all {
                    b.read(role, p - block / 2, block)?;
                }
            }
            Kind::Pairs => pieces::trial(cell, b)?,
            Kind::Place => place::trial(cell, b)?,
            Kind::Written => written::trial(cell, n, b)?,
            Kind::Confirm => {
                let (period, phase, step) = (cell.bytes("period"), cell.bytes("phase"), cell.bytes("step"));
                let (Some(p), Some(near)) = (random_point(b, period, phase, 0, block), random_point(b, period, phase, period, block))
                else {
                    return Ok(());
                };
                // A control sits on a boundary of the access unit, at a fraction of the period that a shorter one would hit.
                let fraction = [2, 3, 4, 5, 2, 0][b.below(6) as usize];
                let units = period / step;
                let shift = units.checked_div(fraction).unwrap_or_else(|| 1 + b.below(units.saturating_sub(1)));
                let c = near + shift.clamp(1, units.saturating_sub(1).max(1)) * step;
                let mut two = [(PREDICTED, p), (CONTROL, c)];
                b.shuffle(&mut two);
                for (role, at) in two {
                    b.read(role, at - block / 2, block)?;
                }
            }
        }
        Ok(())
    }

    /// Rows that count from where writes found erase blocks to begin, or where this probe wrote on flash that reads nothing.
    fn later(&self, run: &Run, others: &[Run], known: &Findings) -> Vec<Cell> {
        let view = View::of(run);
        let told = |q: Quantity| known.get(q).is_some_and(|f| f.value.is_some());
        let quiet = view.fit.noise <= 0.1 * view.base;
        let mut out = vec![];
        if quiet && !told(Quantity::Page) && !told(Quantity::AccessUnit) {
            out = written::cells(run, others);
        }
        let sure = |q: Quantity| known.get(q).filter(|f| f.confidence >= SURE && f.interval.is_none()).and_then(|f| f.number());
        if let Some(begin) = sure(Quantity::EraseBlockOffset).zip(sure(Quantity::EraseBlock)) {
            let cells = grid::cells(&view, run, (begin.0 as u64, begin.1 as u64));
            let seconds = cells.len() as f64 * grid::READS * view.base / 1e6;
            out.extend(cells.into_iter().filter(|_| seconds <= grid::MOST_SECONDS));
        }
        out
    }

    fn more(&self, run: &Case) -> Vec<Cell> {
        let last = run.cells.last().map(kind);
        let view = View::of(run);
        let next = match last {
            Some(Kind::Row) if run.cells.last().is_some_and(|c| c.set.contains_key(BEGINS)) => vec![],
            Some(Kind::Row) => match view.candidate() {
                Some(period) => vec![confirm_cell(&view, run, period, 0)],
                None => {
                    // Some cards show the pattern to reads of certain lengths only.
                    let others = if view.fit.steps.iter().all(|s| s.z < CLEAR) { other_lengths(run) } else { vec![] };
                    if others.is_empty() { sweep_cell(&view, run, 0).into_iter().collect() } else { others }
                }
            },
            Some(Kind::Sweep) => {
                let cells = verify_cells(run);
                if cells.is_empty() { next_window(&view, run) } else { cells }
            }
            Some(Kind::Verify) => match sweep_lattice(run) {
                Some(l) => {
                    // Noise may have hidden all but every tenth boundary: look at the places shorter periods would have.
                    let parts = part_cells(run, &l);
                    let confirm = || {
                        let mut cell = confirm_cell(&view, run, shortest(run, &l), l.phase);
                        // Known to half a read only: shorter ones would miss it.
                        if let Some(sweep) = run.cells.iter().rev().find(|c| kind(c) == Kind::Sweep).filter(|_| in_pairs(run)) {
                            cell.set.insert("block".into(), sweep.get("block"));
                        }
                        cell
                    };
                    if parts.is_empty() { vec![confirm()] } else { parts }
                }
                None => next_window(&view, run),
            },
            Some(Kind::Confirm) => {
                let good = run.cells.last().is_some_and(|c| confirmed(run, c) > 0.5);
                let swept = run.cells.iter().any(|c| kind(c) == Kind::Sweep);
                let tried = |period: u64| run.cells.iter().any(|c| kind(c) == Kind::Confirm && c.bytes("period") == period);
                let instead = run.cells.last().and_then(|c| Some((part_instead(run, c)?, c.bytes("phase")))).filter(|p| !tried(p.0));
                match instead {
                    _ if good => {
                        let last = run.cells.last();
                        let places = last.filter(|_| !Ways::of(run).reads_ahead()).map(|c| place::cells(run, c)).unwrap_or_default();
                        last.map(pieces::cell).into_iter().chain(places).collect()
                    }
                    // Every second boundary stood out of the rows, or every third.
                    Some((period, phase)) => vec![confirm_cell(&view, run, period, phase % period.max(1))],
                    None if swept => vec![],
                    None => sweep_cell(&view, run, 0).into_iter().collect(),
                }
            }
            Some(Kind::Pairs | Kind::Place) => vec![],
            Some(Kind::Fine | Kind::Written) | None => return vec![],
        };
        let next = if next.is_empty() { begin(run).map_or(vec![], |at| grid::cells(&view, run, at)) } else { next };
        // Small boundaries cost least, and there a missed one is a wrong page: last, so that time is left for the rest.
        let fine = run.cells.iter().any(|c| kind(c) == Kind::Fine);
        if next.is_empty() && !fine { fine_cells(&view, run) } else { next }
    }
}

/// Rows of further lengths, once, where the usual ones show nothing.
fn other_lengths(run: &Case) -> Vec<Cell> {
    let rows = || run.cells.iter().filter(|c| kind(c) == Kind::Row);
    let used: BTreeSet<u64> = rows().map(|c| c.bytes("block")).collect();
    if used.len() > 2 {
        return vec![];
    }
    let smallest = used.first().copied().unwrap_or(0);
    let most = rows().map(|c| c.bytes("align")).max().unwrap_or(0);
    let new = OTHER_LENGTHS.into_iter().filter(|b| !used.contains(b) && *b >= smallest);
    new.flat_map(|block| alignments(2 * block, most).into_iter().map(move |align| row_cell(align, block))).collect()
}

fn row_cell(align: u64, block: u64) -> Cell {
    Cell::new(format!("{} / {}", Bytes(align), Bytes(block)), &[("align", align as i64), ("block", block as i64)])
}

/// Reads before, across and after one boundary in this part of the target, in random order; where they shall lie `apart`, before and after
/// two others. `row`: what the boundary is a multiple of, where these count from on the disk, and the length of a read, all in bytes.
fn three(b: &mut Bench, part: &Range<u64>, row: (u64, u64, u64), apart: bool) -> Option<[(u8, u64); 3]> {
    let (align, from, block) = row;
    let p = random_multiple(b, part, align, from, block)?;
    let mut three = [(PRE, p - block), (ON, p - block / 2), (POST, p)];
    for (_, at) in three.iter_mut().filter(|read| apart && read.0 != ON) {
        let away = random_multiple(b, part, align, from, block).unwrap_or(p);
        *at = away - (p - *at);
    }
    b.shuffle(&mut three);
    Some(three)
}

/// A multiple of `align` by a number coprime to 6, with room for a block on both sides in this part of the target. The grid is that of the whole
/// disk (Q3), or counts from `from` on it.
fn random_multiple(b: &mut Bench, part: &Range<u64>, align: u64, from: u64, block: u64) -> Option<u64> {
    let offset = b.geometry().offset;
    let (lo, hi) = (part.start + offset + block, part.end + offset - block);
    let from = from % (6 * align);
    let (first, last) = (lo.saturating_sub(from).div_ceil(align), hi.checked_sub(from)? / align);
    if last < first {
        return None;
    }
    let mut m = first + b.below(last - first + 1);
    for _ in 0..8 {
        if !m.is_multiple_of(2) && !m.is_multiple_of(3) {
            return Some(from + m * align - offset);
        }
        m = if m < last { m + 1 } else { first };
    }
    None
}

/// A random point of the lattice phase + k x period in the region, with `room` after it; positions are those of the target.
fn random_point(b: &mut Bench, period: u64, phase: u64, room: u64, block: u64) -> Option<u64> {
    let (lo, hi) = (b.region.start + block, b.region.end.saturating_sub(room + block));
    let first = lo.saturating_sub(phase).div_ceil(period);
    let last = hi.checked_sub(phase)? / period;
    if last < first {
        return None;
    }
    Some(phase + (first + b.below(last - first + 1)) * period)
}

/// The shortest period whose first place stands out, or the lattice's own.
fn shortest(run: &Case, l: &lattice::Lattice) -> u64 {
    let parts = run.cells.iter().filter(|c| kind(c) == Kind::Verify && c.bytes("of") == l.period && stands_out(run, c));
    parts.map(|c| l.period / c.bytes("part").max(1)).min().unwrap_or(l.period)
}

/// Is a place that was slow once slower than its neighbours again and again?
fn stands_out(run: &Case, cell: &Cell) -> bool {
    let ways = Ways::of(run);
    let e = ways.row(cell);
    e.value > 4.0 * e.error && e.value > 0.015 * ways.base_time(cell.bytes("block")).max(0.0)
}

/// Do slow places come in pairs of neighbours? A boundary off the sweep's grid lies inside two reads, which overlap.
fn in_pairs(run: &Case) -> bool {
    let Some(sweep) = run.cells.iter().find(|c| kind(c) == Kind::Sweep) else { return false };
    let slow = run.cells.iter().filter(|c| kind(c) == Kind::Verify && stands_out(run, c));
    let mut at: Vec<u64> = slow.map(|c| c.bytes("at")).collect();
    at.sort_unstable();
    let groups: Vec<usize> = at.chunk_by(|a, b| b - a <= sweep.bytes("step")).map(<[u64]>::len).collect();
    groups.len() >= 2 && groups.iter().filter(|n| **n == 2).count() * 2 > groups.len()
}

/// Confirmed hits of the sweeps so far, as a lattice that deserves a check far away.
fn sweep_lattice(run: &Case) -> Option<lattice::Lattice> {
    let sweeps: Vec<&Cell> = run.cells.iter().filter(|c| kind(c) == Kind::Sweep).collect();
    let (first, last) = (sweeps.first()?, sweeps.last()?);
    let window = first.bytes("from")..last.bytes("from") + last.bytes("count") * last.bytes("step");
    let mut hits: Vec<u64> =
        run.cells.iter().filter(|c| kind(c) == Kind::Verify).filter(|c| stands_out(run, c)).map(|c| c.bytes("at")).collect();
    hits.sort_unstable();
    if in_pairs(run) {
        // Halfway between the two reads that hold it.
        let near = last.bytes("step");
        hits = hits.chunk_by(|a, b| b - a <= near).map(|pair| (pair[0] + pair[pair.len() - 1]) / 2).collect();
    }
    let l = lattice::fit(&hits, window, 0)?;
    (l.score() > 0.75 && (l.on >= 3 || sweeps.len() == WINDOWS.len())).then_some(l)
}
