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
//! (reads stay small), cards never written (flat: said), periodic stalls (medians, far positions).

mod estimate;
mod pieces;
mod place;
mod view;

use super::{About, Bench, Experiment, Figure, Series, Setup, alignments};
use crate::device::DeviceError;
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{Estimate, location, mad, median};
use crate::infer::{lattice, steps};
use crate::samples::{Cell, Run, Sample};
use crate::units::{Bytes, KIB, MIB, gcd};
use estimate::{base_time, confirm_estimate, confirmed, reads_ahead, row_estimate};
use std::collections::{BTreeMap, BTreeSet};
use view::View;

pub struct ReadBoundary;

const PRE: u8 = 0;
const ON: u8 = 1;
const POST: u8 = 2;
/// A boundary the found period predicts, and a place where it predicts none.
const PREDICTED: u8 = 3;
const CONTROL: u8 = 4;

/// Lengths of reads that are tried where the first two show nothing.
const OTHER_LENGTHS: [u64; 2] = [4 * KIB, 64 * KIB];
/// Sweeps look for periods up to a third of the last of these.
const WINDOWS: [u64; 3] = [16 * MIB, 48 * MIB, 208 * MIB];
/// A smaller step may be this part of one that shows, and be missed, before the one that shows is no longer told as the smallest.
const HIDDEN: f64 = 0.3;
/// Nor where it may cost so many microseconds: 8 KiB come out of the registers in 20 us at 400 MB/s (ONFI 4).
const PAGE_OUT: f64 = 15.0;
/// Steps of so many sigma are no chance.
const CLEAR: f64 = 6.0;
/// Below this, the largest step may as well be planes that are read together.
const SMALL_ERASE_BLOCK: u64 = 128 * KIB;

static ABOUT: About = About {
    name: "read-boundary",
    question: "Which boundaries cost time when a small read crosses them?",
    method: "reads before, across and after boundaries of every size; a sweep where the sizes are odd; a check far away",
    writes: false,
    answers: &[Quantity::EraseBlock, Quantity::EraseBlockOffset, Quantity::Page, Quantity::AccessUnit],
    roles: &["pre", "on", "post", "predicted", "control", "far", "back"],
    covers: "F1-F12, Q5, Q7",
};

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

    fn wants(&self, cell: &Cell, run: &Run) -> bool {
        let trials = run.of(cell.id).map(|s| s.trial).max().map_or(0, |t| t + 1);
        match kind(cell) {
            Kind::Row => {
                if trials < 8 {
                    return true;
                }
                let e = row_estimate(run, cell);
                let base = base_time(run, cell.bytes("block"));
                trials < 36 && e.error > (0.02 * base).max(0.08 * e.value.abs())
            }
            Kind::Fine => {
                let e = row_estimate(run, cell);
                trials < 72 && e.error > (0.006 * base_time(run, cell.bytes("block"))).max(0.08 * e.value.abs())
            }
            Kind::Sweep => trials < cell.get("trials") as u32,
            Kind::Verify => trials < 7,
            Kind::Pairs => trials < 24,
            Kind::Place => trials < 7,
            Kind::Confirm => {
                if trials < 16 {
                    return true;
                }
                let e = confirm_estimate(run, cell);
                trials < 64 && e.error > 0.2 * e.value.abs()
            }
        }
    }

    fn trial(&self, cell: &Cell, n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let block = cell.bytes("block");
        match kind(cell) {
            Kind::Row | Kind::Fine => {
                let align = cell.bytes("align");
                let Some(p) = random_multiple(b, align, block) else { return Ok(()) };
                let mut three = [(PRE, p - block), (ON, p - block / 2), (POST, p)];
                b.shuffle(&mut three);
                for (role, at) in three {
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

    fn more(&self, run: &Run) -> Vec<Cell> {
        let last = run.cells.last().map(kind);
        let view = View::of(run);
        let next = match last {
            Some(Kind::Row) => match view.candidate() {
                Some(period) => vec![view.confirm_cell(run, period, 0)],
                None => {
                    // Some cards show the pattern to reads of certain lengths only.
                    let others = if view.fit.steps.iter().all(|s| s.z < CLEAR) { other_lengths(run) } else { vec![] };
                    if others.is_empty() { view.sweep_cell(run, 0).into_iter().collect() } else { others }
                }
            },
            Some(Kind::Sweep) => {
                let cells = view.verify_cells(run);
                if cells.is_empty() { view.next_window(run) } else { cells }
            }
            Some(Kind::Verify) => match sweep_lattice(run) {
                Some(l) => {
                    // Noise may have hidden all but every tenth boundary: look at the places shorter periods would have.
                    let parts = view.part_cells(run, &l);
                    let confirm = || {
                        let mut cell = view.confirm_cell(run, shortest(run, &l), l.phase);
                        // Known to half a read only: shorter ones would miss it.
                        if let Some(sweep) = run.cells.iter().rev().find(|c| kind(c) == Kind::Sweep).filter(|_| in_pairs(run)) {
                            cell.set.insert("block".into(), sweep.get("block"));
                        }
                        cell
                    };
                    if parts.is_empty() { vec![confirm()] } else { parts }
                }
                None => view.next_window(run),
            },
            Some(Kind::Confirm) => {
                let good = run.cells.last().is_some_and(|c| confirmed(run, c) > 0.5);
                let swept = run.cells.iter().any(|c| kind(c) == Kind::Sweep);
                match () {
                    _ if good && reads_ahead(run) => run.cells.last().map(pieces::cell).into_iter().collect(),
                    _ if good => run.cells.last().map(|c| place::cells(run, c)).unwrap_or_default(),
                    _ if swept => vec![],
                    _ => view.sweep_cell(run, 0).into_iter().collect(),
                }
            }
            Some(Kind::Pairs | Kind::Place) => vec![],
            Some(Kind::Fine) | None => return vec![],
        };
        // Small boundaries cost least, and there a missed one is a wrong page: last, so that time is left for the rest.
        if next.is_empty() { view.fine_cells(run) } else { next }
    }

    fn infer(&self, run: &Run) -> Vec<Finding> {
        let view = View::of(run);
        let mut out = vec![];
        let confirm = run.cells.iter().rev().find(|c| kind(c) == Kind::Confirm && confirmed(run, c) > 0.5);
        let flat = view.flat_reason(run);
        // Levels below the erase block, from the rows.
        let below = |limit: u64| -> Vec<&steps::Step> { view.fit.steps.iter().filter(|s| s.size < limit).collect() };
        match confirm {
            Some(c) => {
                let period = c.bytes("period");
                let e = confirm_estimate(run, c);
                let lower = below(period);
                let trust = confirmed(run, c) * view.block_prior(period, lower.first().map(|s| s.size));
                // First reads are dear also where a card keeps its map in pieces, whose ends look like erase blocks.
                let in_pieces = pieces::told(run, e.value);
                let trust = match in_pieces {
                    Some(true) => 0.0,
                    None if reads_ahead(run) => trust.min(0.88),
                    _ => trust,
                };
                let by = if run.cells.iter().any(|c| kind(c) == Kind::Sweep) { "sweep" } else { "rows" };
                let text = format!(
                    "a read of {} across a multiple of {} takes {:.0} µs longer than across other boundaries (± {:.0}), at {} places ({by})",
                    Bytes(c.bytes("block")),
                    Bytes(period),
                    e.value,
                    2.0 * e.error,
                    e.n
                );
                if trust >= 0.5 {
                    let rest = 1.0 - trust;
                    let rivals: Vec<(f64, f64)> =
                        [(period * 2, 0.5), (period / 2, 0.3)].iter().map(|&(v, p)| (v as f64, p * rest)).collect();
                    out.push(Finding::decided(Quantity::EraseBlock, period as f64, trust).rivals(rivals).evidence(text));
                    out.push(offset(run, c, trust));
                    push_small(&mut out, &view, &lower, true);
                } else {
                    let size = Bytes(period);
                    let why = match in_pieces {
                        Some(true) => format!("the card keeps what it looked up for {size}: its map may be in pieces of that size"),
                        _ => format!("the largest regular boundary, {size}, may be planes read together rather than an erase block"),
                    };
                    out.push(Finding { rivals: vec![], ..Finding::undecided(Quantity::EraseBlock, why) }.evidence(text));
                    // Planes read together are a few pages: a boundary of megabytes is none of theirs.
                    push_small(&mut out, &view, &below(if period >= MIB { period } else { u64::MAX }), period >= MIB);
                }
            }
            None => {
                let reason = match view.fit.steps.last() {
                    Some(s) if s.size < SMALL_ERASE_BLOCK => {
                        format!("reads show no boundary above {}: this card hides the erase block from reads", Bytes(s.size))
                    }
                    Some(s) => format!("the step at {} was not confirmed at other places", Bytes(s.size)),
                    None => flat.clone(),
                };
                out.push(Finding::undecided(Quantity::EraseBlock, reason));
                // What is too small for an erase block of this card are planes.
                let page = view.fit.steps.first().map(|s| s.size);
                let may_be = |s: &&steps::Step| s.size >= SMALL_ERASE_BLOCK && view.block_prior(s.size, page) >= 0.5;
                push_small(&mut out, &view, &below(view.fit.steps.iter().find(may_be).map_or(MIB, |s| s.size)), false);
            }
        }
        if !out.iter().any(|f| f.quantity == Quantity::Page) {
            let at = out.iter().find(|f| f.quantity == Quantity::EraseBlockOffset).and_then(|f| Some(f.number()? as u64));
            let on_disk = run.setting("offset").unwrap_or(0);
            out.push(match at.filter(|a| !(a + on_disk).is_multiple_of(4096)) {
                Some(at) => {
                    let why = "so pages begin off the grid on which reads crossed boundaries";
                    Finding::undecided(Quantity::Page, format!("the first erase block begins at {}, {why}", Bytes(at)))
                }
                None => Finding::undecided(Quantity::Page, flat),
            });
        }
        if !run.faults.is_empty() {
            for f in &mut out {
                f.caveats.push(format!("{} reads failed and were left out", run.faults.len()));
            }
        }
        out
    }

    fn figures(&self, run: &Run) -> Vec<Figure> {
        let mut by_block: BTreeMap<u64, Vec<(f64, f64, f64, f64)>> = BTreeMap::new();
        for c in run.cells.iter().filter(|c| kind(c) == Kind::Row) {
            let e = row_estimate(run, c);
            if e.n > 0 {
                let point = (c.bytes("align") as f64, e.value, e.value - 2.0 * e.error, e.value + 2.0 * e.error);
                by_block.entry(c.bytes("block")).or_default().push(point);
            }
        }
        vec![Figure {
            title: "extra time of a read across a boundary".into(),
            x: "alignment of the boundary".into(),
            y: "µs".into(),
            log_x: true,
            log_y: false,
            series: by_block.into_iter().flat_map(|(b, points)| Series::with_bounds(&format!("{} reads", Bytes(b)), &points)).collect(),
        }]
    }
}

/// Where the boundaries of a period that was confirmed begin.
fn offset(run: &Run, confirm: &Cell, trust: f64) -> Finding {
    let q = Quantity::EraseBlockOffset;
    let (period, phase, block) = (confirm.bytes("period"), confirm.bytes("phase") % confirm.bytes("period").max(1), confirm.bytes("block"));
    let text = |at: u64, to: String| format!("the boundaries lie at {} + k x {}{to}", Bytes(at), Bytes(period));
    // A longer read feels a boundary anywhere inside it.
    if block <= 2 * run.setting("sector").unwrap_or(512).max(512) {
        return Finding::decided(q, phase as f64, (trust * 0.99).min(0.98)).evidence(text(phase, String::new()));
    }
    let shortest = run.cells.iter().find(|c| kind(c) == Kind::Place).map(|c| c.bytes("block"));
    if let Some(at) = place::found(run) {
        let by = format!(", by reads of {}", Bytes(shortest.unwrap_or(0)));
        return Finding::decided(q, at as f64, (trust * 0.99).min(0.95)).evidence(text(at, by));
    }
    let mut f = Finding::decided(q, phase as f64, (trust * 0.99).min(0.88));
    f.interval = Some([-1.0, 1.0].map(|side| phase as f64 + side * (block / 2) as f64));
    f.evidence(text(phase, format!(", give or take {}", Bytes(block / 2))))
}

/// Does no boundary show, without noise that would hide one? `None` where too little was read to say.
pub(super) fn flat(run: &Run) -> Option<bool> {
    let view = View::of(run);
    let confirmed = run.cells.iter().any(|c| kind(c) == Kind::Confirm && confirmed(run, c) > 0.5);
    (!view.rows.is_empty()).then_some(view.fit.steps.is_empty() && !confirmed && view.fit.noise <= 0.1 * view.base)
}

/// Rows of further lengths, once, where the usual ones show nothing.
fn other_lengths(run: &Run) -> Vec<Cell> {
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

/// Page and access unit; `bounded`: the erase block is known to be larger.
fn push_small(out: &mut Vec<Finding>, view: &View, lower: &[&steps::Step], bounded: bool) {
    let say = |q: Quantity, s: &steps::Step, exclude: f64| {
        let p = s.posterior.first().map_or(0.0, |p| p.1) * strength(s.z) * exclude;
        let half = view.rows.iter().any(|r| 2 * r.align == s.size);
        let f = if p < 0.5 {
            Finding::undecided(q, format!("a step near {} is too weak to place", Bytes(s.size)))
        } else if view.rows.iter().all(|r| r.align >= s.size) || q == Quantity::Page && !half {
            Finding::undecided(q, format!("{} or less: no smaller boundary was read across", Bytes(s.size)))
        } else {
            Finding::decided(q, s.size as f64, p.min(0.97))
                .rivals(s.posterior.iter().skip(1).map(|&(v, p)| (v as f64, p)).filter(|r| r.1 > 0.005))
        };
        let text = format!("crossing a multiple of {} costs a read of {} {:.0} µs more", Bytes(s.size), Bytes(view.block), s.height);
        f.evidence(format!("{text} ({:.0} sigma)", s.z))
    };
    if let Some(s) = lower.first() {
        // A page taken out of the same registers may cost a hundredth of what planes cost, which is less than the rows below can show.
        let lone = lower.iter().filter(|s| s.z >= CLEAR).count() < 2;
        let hidden = if lone { view.hidden_below(s) } else { 0.0 };
        out.push(if hidden > HIDDEN || hidden * s.height > PAGE_OUT {
            let why = format!("{} or less: what a smaller page costs would not stand out of the noise", Bytes(s.size));
            Finding::undecided(Quantity::Page, why)
        } else {
            say(Quantity::Page, s, view.nothing_below(s).min(if hidden > 0.012 { 0.88 } else { 1.0 }))
        });
    }
    // Planes are read together in whole pages: what no page divides is another kind of boundary.
    let whole = |s: &&&steps::Step| lower.first().is_none_or(|page| s.size.is_multiple_of(page.size));
    let lower: Vec<&steps::Step> = lower.iter().filter(whole).copied().collect();
    if let Some(s) = lower.last() {
        // One step alone may be the page, with planes that are read together at no extra cost.
        let block = if s.size >= SMALL_ERASE_BLOCK && !bounded { view.block_prior(s.size, lower.first().map(|p| p.size)) } else { 0.0 };
        // Where no erase block is known, the largest step may be a small one; a large step may be the end of a piece of the map.
        let at_most: f64 = if s.size >= 256 * KIB || !bounded { 0.88 } else { 1.0 };
        let mut f = say(Quantity::AccessUnit, s, if lower.len() > 1 { at_most.min(1.0 - block) } else { 0.8 });
        if lower.len() == 1 && f.value.is_some() {
            f.caveats.push("only one small boundary shows; planes read together at no extra cost would not".into());
        }
        // Sixty-four pages of 16 KiB: more were never seen to be read together.
        if s.size >= MIB {
            f = f.withdrawn(format!("a step at {} is too large for planes that are read together", Bytes(s.size)));
        }
        out.push(f);
    }
}

/// How much a step of this many sigma is worth.
fn strength(z: f64) -> f64 {
    1.0 - (-(z * z) / 12.0).exp()
}

/// A NAND block has at least 32 pages (C2: 16 KiB / 512 B) and on anything recent 64 or more; planes read together are at
/// most a few pages. A period between the two may be either; on a card of a gigabyte or more, small ones are planes.
pub(super) fn erase_block_prior(period: u64, page: Option<u64>, size: u64) -> f64 {
    let large = size >= 1 << 30;
    let by_size: f64 = match period {
        // The largest AU of the SD standard has 64 MiB; a period beyond it is rather a multiple of one.
        p if p > 64 * MIB => 0.65,
        p if p >= MIB => 0.98,
        p if p >= 512 * KIB => {
            if large {
                0.8
            } else {
                0.93
            }
        }
        p if p >= 256 * KIB => {
            if large {
                0.5
            } else {
                0.8
            }
        }
        p if p >= 128 * KIB => {
            if large {
                0.3
            } else {
                0.7
            }
        }
        p if p >= 64 * KIB => {
            if large {
                0.1
            } else {
                0.4
            }
        }
        _ => {
            if large {
                0.0
            } else {
                0.2
            }
        }
    };
    let by_pages: f64 = match page.map(|p| period / p.max(1)) {
        None => 0.0,
        _ if period > 64 * MIB => 0.0,
        Some(n) if n >= 128 => 0.99,
        Some(n) if n >= 64 => 0.9,
        Some(n) if n >= 32 => 0.75,
        _ => 0.0,
    };
    by_size.max(by_pages)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Row,
    /// A row of the first kind once more.
    Fine,
    Sweep,
    Verify,
    Confirm,
    Pairs,
    Place,
}

fn kind(cell: &Cell) -> Kind {
    match () {
        _ if cell.set.contains_key("fine") => Kind::Fine,
        _ if cell.set.contains_key("pairs") => Kind::Pairs,
        _ if cell.set.contains_key("place") => Kind::Place,
        _ if cell.set.contains_key("align") => Kind::Row,
        _ if cell.set.contains_key("count") => Kind::Sweep,
        _ if cell.set.contains_key("period") => Kind::Confirm,
        _ => Kind::Verify,
    }
}

fn row_cell(align: u64, block: u64) -> Cell {
    Cell::new(format!("{} / {}", Bytes(align), Bytes(block)), &[("align", align as i64), ("block", block as i64)])
}

/// A multiple of `align` by a number coprime to 6, with room for a block on both sides. The grid is that of the whole disk (Q3).
fn random_multiple(b: &mut Bench, align: u64, block: u64) -> Option<u64> {
    let offset = b.geometry().offset;
    let (lo, hi) = (b.region.start + offset + block, b.region.end + offset - block);
    let (first, last) = (lo.div_ceil(align), hi / align);
    if last < first {
        return None;
    }
    let mut m = first + b.below(last - first + 1);
    for _ in 0..8 {
        if !m.is_multiple_of(2) && !m.is_multiple_of(3) {
            return Some(m * align - offset);
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
fn shortest(run: &Run, l: &lattice::Lattice) -> u64 {
    let parts = run.cells.iter().filter(|c| kind(c) == Kind::Verify && c.bytes("of") == l.period && stands_out(run, c));
    parts.map(|c| l.period / c.bytes("part").max(1)).min().unwrap_or(l.period)
}

/// Is a place that was slow once slower than its neighbours again and again?
fn stands_out(run: &Run, cell: &Cell) -> bool {
    let e = row_estimate(run, cell);
    e.value > 4.0 * e.error && e.value > 0.015 * base_time(run, cell.bytes("block")).max(0.0)
}

/// Do slow places come in pairs of neighbours? A boundary off the sweep's grid lies inside two reads, which overlap.
fn in_pairs(run: &Run) -> bool {
    let Some(sweep) = run.cells.iter().find(|c| kind(c) == Kind::Sweep) else { return false };
    let slow = run.cells.iter().filter(|c| kind(c) == Kind::Verify && stands_out(run, c));
    let mut at: Vec<u64> = slow.map(|c| c.bytes("at")).collect();
    at.sort_unstable();
    let groups: Vec<usize> = at.chunk_by(|a, b| b - a <= sweep.bytes("step")).map(<[u64]>::len).collect();
    groups.len() >= 2 && groups.iter().filter(|n| **n == 2).count() * 2 > groups.len()
}

/// Confirmed hits of the sweeps so far, as a lattice that deserves a check far away.
fn sweep_lattice(run: &Run) -> Option<lattice::Lattice> {
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
