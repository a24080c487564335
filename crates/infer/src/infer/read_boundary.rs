//! Which boundaries cost time when a small read crosses them: rows, a sweep, and the same period far away.

mod estimate;
mod grid;
mod kinds;
mod levels;
mod pieces;
mod place;
pub(super) mod tables;
mod view;
mod written;

use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::pipeline::Analysis;
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{Estimate, location, mad, median};
use crate::infer::steps;
use crate::infer::write_unit::{LARGEST_SMALL, SMALLEST_OF_SMALL, TOGETHER};
use crate::samples::{Cell, Run, Sample};
use crate::units::{Bytes, KIB, MIB};
pub use estimate::*;
pub use grid::*;
pub use pieces::*;
use std::collections::BTreeMap;
pub use view::{View, answers_at_ticks};
pub use written::{COMPARED, FROM, UNTIL, reads_slower};

/// Judges runs of `read-boundary`.
pub struct ReadBoundary;

pub(super) const ANALYSES: &[&dyn Analysis] = &[&ReadBoundary];

/// Roles of the samples.
pub const PRE: u8 = 0;
pub const ON: u8 = 1;
pub const POST: u8 = 2;

/// A boundary the found period predicts, and a place where it predicts none.
pub const PREDICTED: u8 = 3;

pub const CONTROL: u8 = 4;

/// Lengths of reads that are tried where the first two show nothing.
pub const OTHER_LENGTHS: [u64; 2] = [4 * KIB, 64 * KIB];

/// A smaller step may be this part of one that shows, and be missed, before the one that shows is no longer told as the smallest.
const HIDDEN: f64 = 0.3;

/// Nor where it may cost so many microseconds: 8 KiB come out of the registers in 20 us at 400 MB/s (ONFI 4).
const PAGE_OUT: f64 = 15.0;

/// The score of a multi-plane page that a part of the card shows, at most: of 21 (tenth program, docs/confidence-programs.md) 19 were right.
const IN_PART: f64 = 0.7;

/// Smaller boundaries that cost more by so many sigma are no step yet, but the next larger one is not the smallest any more.
const HINT: f64 = 2.0;

/// Steps of so many sigma are no chance.
pub const CLEAR: f64 = 6.0;

/// Below this, the largest step may as well be planes that are read together.
const SMALL_ERASE_BLOCK: u64 = 128 * KIB;

impl Analysis for ReadBoundary {
    fn name(&self) -> &'static str {
        "read-boundary"
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        let plain = written::without(run);
        let whole = judge(&Case { run: plain.as_ref().unwrap_or(run), believed: run.believed });
        if let Some(anew) = written::anew(run).filter(|_| !whole.iter().any(|f| is_small(f.quantity) && f.value.is_some())) {
            return in_written(whole, judge(&Case { run: &anew, believed: run.believed }));
        }
        let part = if whole.iter().all(|f| f.value.is_none()) { written::of(plain.as_ref().unwrap_or(run)) } else { None };
        let Some(part) = part else { return whole };
        let mut out = judge(&Case { run: &part, believed: run.believed });
        let paged = out.iter().any(|f| f.quantity == Quantity::Page && f.value.is_some());
        for f in out.iter_mut().filter(|f| f.value.is_some()) {
            let share = 100 * part.samples.len() / run.samples.len().max(1);
            f.caveats.push(format!("by {share} % of the reads, where the card was written; elsewhere it reads nothing"));
            // With fewer reads a row, those of one that is no boundary of planes stand out by chance.
            match f.quantity {
                Quantity::AccessUnit if !paged => *f = f.clone().withdrawn("the written part of the card shows no page"),
                Quantity::AccessUnit => f.confidence = f.confidence.min(IN_PART),
                _ => {}
            }
        }
        out
    }

    fn figures(&self, run: &Case) -> Vec<Figure> {
        let mut by_block: BTreeMap<u64, Vec<(f64, f64, f64, f64)>> = BTreeMap::new();
        // What shows boundaries is drawn, where one of the two does.
        let anew = written::anew(run);
        let run = anew.as_ref().unwrap_or(run);
        let (ways, counted) = (Ways::of(run), counted_from(run));
        for c in run.cells.iter().filter(|c| kind(c) == Kind::Row && tells(c, counted)) {
            let e = ways.row(c);
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

fn is_small(q: Quantity) -> bool {
    matches!(q, Quantity::Page | Quantity::AccessUnit)
}

/// What reads of flash that was never written say of a card, with the pages that reads show where the probe had written.
fn in_written(whole: Vec<Finding>, anew: Vec<Finding>) -> Vec<Finding> {
    let mut out: Vec<Finding> = whole.into_iter().filter(|f| !is_small(f.quantity)).collect();
    out.extend(anew.into_iter().filter(|f| is_small(f.quantity)).map(|mut f| {
        if f.value.is_some() {
            f.caveats.push("by reads where this run had written; elsewhere the card reads nothing".into());
        }
        f
    }));
    out
}

/// What the reads of a run say, of all of them or of those in a part of the card.
fn judge(run: &Case) -> Vec<Finding> {
    let view = View::of(run);
    let mut out = vec![];
    let confirm = confirming(run);
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
                None if Ways::of(run).reads_ahead() => trust.min(0.88),
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
                let rivals = beside(&view.fit, period, 1.0 - trust);
                out.push(Finding::decided(Quantity::EraseBlock, period as f64, trust).rivals(rivals).evidence(text));
                out.push(offset(run, c, trust));
                push_small(&mut out, run, &view, &lower, true);
            } else {
                let size = Bytes(period);
                let why = match in_pieces {
                    Some(true) => format!("the card keeps what it looked up for {size}: its map may be in pieces of that size"),
                    _ => format!("the largest regular boundary, {size}, may be planes read together rather than an erase block"),
                };
                out.push(Finding { rivals: vec![], ..Finding::undecided(Quantity::EraseBlock, why) }.evidence(text));
                // Planes read together are a few pages: a boundary of megabytes is none of theirs.
                push_small(&mut out, run, &view, &below(if period >= MIB { period } else { u64::MAX }), period >= MIB);
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
            push_small(&mut out, run, &view, &below(view.fit.steps.iter().find(may_be).map_or(MIB, |s| s.size)), false);
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

/// The cell that confirmed a period last.
fn confirming(run: &Run) -> Option<&Cell> {
    run.cells.iter().rev().find(|c| kind(c) == Kind::Confirm && confirmed(run, c) > 0.5)
}

/// What else the rows allow for the step that was confirmed, in no more than what is left. A period that a sweep found has no step.
fn beside(fit: &steps::Fit, period: u64, left: f64) -> Vec<(f64, f64)> {
    let Some(step) = fit.steps.iter().find(|s| s.size == period) else { return vec![] };
    let others: Vec<(u64, f64)> = step.posterior.iter().copied().filter(|p| p.0 != period && p.1 > 0.001).collect();
    let scale = (left / others.iter().map(|o| o.1).sum::<f64>().max(1e-9)).min(1.0);
    others.into_iter().map(|(v, p)| (v as f64, p * scale)).collect()
}

/// Where the boundaries of a period that was confirmed begin.
fn offset(run: &Run, confirm: &Cell, trust: f64) -> Finding {
    let q = Quantity::EraseBlockOffset;
    let (period, phase, block) = (confirm.bytes("period"), confirm.bytes("phase") % confirm.bytes("period").max(1), confirm.bytes("block"));
    let text = |at: u64, to: String| format!("boundaries are at {} + k x {}{to}", Bytes(at), Bytes(period));
    if let Some(at) = exactly(run, confirm) {
        let reads = run.cells.iter().find(|c| kind(c) == Kind::Place).map(|c| Bytes(c.bytes("block")));
        let (most, by) = reads.map_or((0.98, String::new()), |reads| (0.95, format!(", by reads of {reads}")));
        return Finding::decided(q, at as f64, (trust * 0.99).min(most)).evidence(text(at, by));
    }
    let mut f = Finding::decided(q, phase as f64, (trust * 0.99).min(0.88));
    f.interval = Some([-1.0, 1.0].map(|side| phase as f64 + side * (block / 2) as f64));
    f.evidence(text(phase, format!(", give or take {}", Bytes(block / 2))))
}

/// Does no boundary show, without noise that would hide one? `None` where too little was read to say.
pub(super) fn flat(run: &Run) -> Option<bool> {
    let plain = written::without(run);
    let run = plain.as_ref().unwrap_or(run);
    let view = View::of(run);
    (!view.rows.is_empty()).then_some(view.fit.steps.is_empty() && confirming(run).is_none() && view.fit.noise <= 0.1 * view.base)
}

/// The largest step that may be a multi-plane page of which no page shows: eight pages of 16 KiB. A larger one is rather the end of a
/// translation page, or where the reader splits requests.
const LARGEST_ALONE: u64 = 128 * KIB;

/// The rows below a step may cost this part of it, and it is no longer plain that it begins there.
const ALIKE: f64 = 0.5;

/// The largest page of one plane in data sheets.
const NAND_PAGE: u64 = 16 * KIB;

/// The largest page of one plane. Data sheets have 16 KiB at most; four times as much leaves room for chips to come.
const LARGEST_PAGE: u64 = 64 * KIB;

/// Microseconds that flash needs for another page at most: 200 for one of four bits a cell, and its transfer.
const LONGEST_PAGE: f64 = 300.0;

/// A step of more than this part of a whole read is no page: where a read takes that long, most of it goes to its command and its way to the host.
const ANOTHER: f64 = 0.5;

/// Page and access unit; `bounded`: the erase block is known to be larger.
fn push_small(out: &mut Vec<Finding>, run: &Run, view: &View, lower: &[&steps::Step], bounded: bool) {
    let say = |q: Quantity, s: &steps::Step, exclude: f64| {
        let p = s.posterior.first().map_or(0.0, |p| p.1) * strength(s.z) * exclude;
        let half = view.rows.iter().any(|r| 2 * r.align == s.size);
        let f = if p < 0.5 {
            Finding::undecided(q, format!("a step near {} is too weak to place", Bytes(s.size)))
        } else if view.rows.iter().all(|r| r.align >= s.size) || (q == Quantity::Page || lower.len() == 1) && !half {
            Finding::undecided(q, format!("{} or less: no smaller boundary was read across", Bytes(s.size)))
        } else {
            Finding::decided(q, s.size as f64, p.min(0.97))
                .rivals(s.posterior.iter().skip(1).map(|&(v, p)| (v as f64, p)).filter(|r| r.1 > 0.005))
        };
        let text = format!("crossing a multiple of {} costs a read of {} {:.0} µs more", Bytes(s.size), Bytes(view.block), s.height);
        f.evidence(format!("{text} ({:.0} sigma)", s.z))
    };
    // A reader that reads ahead fetches a whole piece beyond its end, and that takes longer than the flash needs for a page.
    let fetched = |s: &steps::Step| {
        let long = s.height > LONGEST_PAGE;
        let what = if long && s.size > NAND_PAGE && Ways::of(run).reads_ahead() {
            "may be a piece that is read ahead"
        } else if long && s.height > ANOTHER * view.base {
            "takes as long as another read: what the card or its reader fetches at once may be larger than a page"
        } else {
            return None;
        };
        Some(format!("a step of {:.0} µs at {} {what}", s.height, Bytes(s.size)))
    };
    // On a card of the standard capacity a step may as well be an erase block.
    let or_block = |size: u64| !bounded && view.size <= LARGEST_SMALL && size >= SMALLEST_OF_SMALL;
    if let Some(s) = lower.first() {
        // A page taken out of the same registers may cost a hundredth of what planes cost, which is less than the rows below can show.
        let lone = lower.iter().filter(|s| s.z >= CLEAR).count() < 2;
        let hidden = if lone { view.hidden_below(s) } else { 0.0 };
        // Whatever else shows: a page that costs less than a tick takes no read over one.
        out.push(if let Some(tick) = view.host_tick.filter(|t| *t > PAGE_OUT && (lone || view.tick.is_some())) {
            let why =
                format!("{} or less: this host answers every {tick:.0} µs, and a smaller page may cost less than that", Bytes(s.size));
            Finding::undecided(Quantity::Page, why)
        } else if hidden > HIDDEN || hidden * s.height > PAGE_OUT {
            let why = format!("{} or less: what a smaller page costs would not stand out of the noise", Bytes(s.size));
            Finding::undecided(Quantity::Page, why)
        } else if lone && view.left_out_below(s) > HINT {
            let why = format!("{} or less: some smaller boundaries seem to cost a little, too", Bytes(s.size));
            Finding::undecided(Quantity::Page, why)
        } else {
            let mut f = say(Quantity::Page, s, view.nothing_below(s).min(if hidden > 0.012 { 0.88 } else { 1.0 }));
            f.or_block = lower.len() == 1 && or_block(s.size);
            if lone && f.value.is_some() && s.size > NAND_PAGE {
                f.caveats.push(
                    "only one small boundary shows; of planes that are always read together it would be theirs, and a page a part of it"
                        .into(),
                );
            }
            f
        });
        let too_large = (s.size > LARGEST_PAGE).then(|| format!("a step at {} is too large for a page", Bytes(s.size)));
        if let (Some(why), Some(f)) = (fetched(s).or(too_large), out.last_mut()) {
            *f = f.clone().withdrawn(why);
        }
    }
    // Planes are read together in whole pages: what no page divides is another kind of boundary.
    let whole = |s: &&&steps::Step| lower.first().is_none_or(|page| s.size.is_multiple_of(page.size));
    // Nor do pages of several bits a cell all take as long: rows that meet other kinds differ by that much.
    let whole: Vec<&steps::Step> = lower.iter().filter(whole).copied().collect();
    let differ = if whole.is_empty() { 0.0 } else { kinds::differ(run, view.block) };
    let lower: Vec<&steps::Step> = whole.iter().filter(|s| s.height > differ).copied().collect();
    if let Some(s) = lower.last() {
        // One step alone may be the page, with planes that are read together at no extra cost.
        let block = if s.size >= SMALL_ERASE_BLOCK && !bounded { view.block_prior(s.size, lower.first().map(|p| p.size)) } else { 0.0 };
        // Where no erase block is known, the largest step may be a small one; a large step may be the end of a piece of the map.
        let at_most: f64 = if s.size >= 256 * KIB || !bounded { 0.88 } else { 1.0 };
        let mut f = say(Quantity::AccessUnit, s, if lower.len() > 1 { at_most.min(1.0 - block) } else { 0.8 });
        f.counted_from = on_multiples(run);
        f.or_block = or_block(s.size) && (lower.len() == 1 || s.size > TOGETHER * lower[0].size);
        if lower.len() == 1 && f.value.is_some() {
            f.caveats.push("only one small boundary shows; planes read together at no extra cost would not".into());
        }
        if let Some(why) = fetched(s) {
            f = f.withdrawn(why);
        }
        // Where polls round the times, rows below may cost as much, and the fit placed the step by chance.
        if lower.len() == 1 && view.hidden_below(s) > ALIKE {
            f = f.withdrawn(format!("{} or less: smaller boundaries may cost as much", Bytes(s.size)));
        }
        // Reads that begin anywhere between two ticks differ by as much as planes cost more than pages: of two steps one may show.
        let one = view.host_tick.filter(|_| lower.len() == 1 && view.more_above(s) > PAGE_OUT);
        if let Some(tick) = view.tick.or(one).filter(|t| *t > PAGE_OUT) {
            let why = format!("this host answers every {tick:.0} µs, and larger boundaries than {} may cost less than that", Bytes(s.size));
            f = f.withdrawn(why);
        }
        if view.shifted {
            f = f.withdrawn(format!("{} or more: larger boundaries lie off the multiples that were read across", Bytes(s.size)));
        }
        if lower.len() == 1 && !bounded && s.size >= SMALL_ERASE_BLOCK {
            f = f.withdrawn(format!("the only step, at {}, may be that of a small erase block", Bytes(s.size)));
        }
        // Sixty-four pages of 16 KiB: more were never seen to be read together. Nor more than eight, where no page shows.
        if s.size >= MIB || lower.len() == 1 && s.size > LARGEST_ALONE {
            f = f.withdrawn(format!("a step at {} is too large for planes that are read together", Bytes(s.size)));
        }
        out.push(f);
    } else if let Some(s) = whole.last() {
        let why =
            format!("reads inside pages differ by {differ:.0} µs with where they are, more than a boundary of {} costs", Bytes(s.size));
        out.push(Finding::undecided(Quantity::AccessUnit, why));
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
pub enum Kind {
    Row,
    /// A row of the first kind once more.
    Fine,
    Sweep,
    Verify,
    Confirm,
    Pairs,
    Place,
    /// A row where the probe had written, or the reads that say whether that reads slower than the rest.
    Written,
}

/// What a cell is for.
pub fn kind(cell: &Cell) -> Kind {
    match () {
        _ if cell.set.contains_key(UNTIL) => Kind::Written,
        _ if cell.set.contains_key("fine") => Kind::Fine,
        _ if cell.set.contains_key("pairs") => Kind::Pairs,
        _ if cell.set.contains_key("place") => Kind::Place,
        _ if cell.set.contains_key("align") => Kind::Row,
        _ if cell.set.contains_key("count") => Kind::Sweep,
        _ if cell.set.contains_key("period") => Kind::Confirm,
        _ => Kind::Verify,
    }
}
