//! The walk: where it goes, which of its writes closed an AU, and the row of boundaries they make.

use super::WALK;
use crate::finding::Quantity;
use crate::infer::beliefs::Case;
use crate::infer::edges::{Between, Edges};
use crate::infer::lattice;
use crate::infer::stats::{mad, median};
use crate::samples::{Cell, Sample};
use crate::units::{KIB, MIB, Nanos};
use std::collections::BTreeMap;

/// What tells a write that closed an AU from the others.
pub struct Line {
    /// µs of most writes of the walk, and bytes of them.
    pub usual: f64,
    chunk: u64,
    /// µs of closing an AU.
    cost: f64,
}

impl Line {
    pub fn new(run: &Case, cell: &Cell) -> Line {
        // The shortest are the usual ones.
        let chunk = run.samples.iter().filter(|s| s.role == WALK).map(|s| s.len).min().unwrap_or(cell.bytes("chunk"));
        let walk: Vec<f64> = run.samples.iter().filter(|s| s.role == WALK && s.len == chunk).map(|s| s.took.micros()).collect();
        let usual = if walk.len() < 12 { walk.into_iter().fold(f64::INFINITY, f64::min) } else { median(&walk) };
        Line { usual, chunk, cost: cell.get("cost") as f64 }
    }

    /// Whether a write of `len` bytes that took so long closed an AU: an AU of which most was written costs less to close than
    /// an empty one, but stands out of what most writes take.
    pub fn slow(&self, len: u64, took: Nanos) -> bool {
        let usual = self.usual * (len as f64 / self.chunk as f64).max(1.0);
        took.micros() > (usual * self.cost).sqrt().max(2.5 * usual).min(usual + 0.4 * self.cost)
    }

    /// How many times as long a write may be so that closing an AU still stands out of it, and if most of it was written.
    pub fn longer(&self) -> u64 {
        ((self.cost / (32.0 * self.usual)) as u64).min(MIB / self.chunk).max(1)
    }
}

pub fn walk_start(run: &Case, cell: &Cell) -> u64 {
    if cell.get("from") > 0 {
        return cell.bytes("from");
    }
    let (start, end) = (run.setting("start").unwrap_or(0), run.setting("end").unwrap_or(0));
    let room = end - start;
    // Behind a FAT zone, and in the first quarter: the rest of a fake is not there.
    (start + room / 8).next_multiple_of(MIB).min(end.saturating_sub(cell.bytes("walk"))) / MIB * MIB
}

pub fn walked(run: &Case, cell: &Cell) -> u64 {
    run.of(cell.id).map(|s| s.at + s.len).max().map_or(0, |m| m.saturating_sub(walk_start(run, cell)))
}

/// Without gaps the first write of a leg opens an AU anew, boundary or not.
pub(super) fn skip(cell: &Cell) -> usize {
    (cell.bytes("stride") <= cell.bytes("chunk")) as usize
}

/// Slow writes of the walk and all of them.
pub fn slow_and_all(run: &Case, cell: &Cell) -> (usize, usize) {
    let (line, trials) = (Line::new(run, cell), run.trials(cell.id));
    let later = || trials.iter().flat_map(|t| t.iter().skip(skip(cell)));
    (later().filter(|s| line.slow(s.len, s.took)).count(), later().count())
}

/// So many equal distances in a row between writes that take longer than the others are no stalls of a host.
const REGULAR: usize = 5;

/// What such a write takes longer, at least, as a part of the time of the others, and in deviations of theirs.
const LONGER: f64 = 0.1;
const DEVIATIONS: f64 = 8.0;

/// Distances between them differ by that part at most: one step of the walk and where it began.
const APART: f64 = 0.2;

/// µs that a walk in order pays about as often as erase blocks come, where little in it took as long as a merge: a card that fills
/// AUs in order may have none left to close, and pay for no more than erasing one.
pub fn steady(run: &Case, cell: &Cell) -> Option<f64> {
    let (stride, chunk) = (cell.bytes("stride"), cell.bytes("chunk"));
    // Steps no longer than a unit leave no unit out, and are in order for the card.
    let in_order = stride <= chunk || run.believed.write_unit().is_none_or(|u| u >= stride);
    if !in_order || cell.get("again") == 1 {
        return None;
    }
    let (line, trials) = (Line::new(run, cell), run.trials(cell.id));
    let mut of: BTreeMap<u64, Vec<&Sample>> = BTreeMap::new();
    // The first write of a leg is out of order.
    for s in trials.iter().flat_map(|t| t.iter().skip(1)) {
        of.entry(s.len).or_default().push(s);
    }
    let mut dear: Vec<(&Sample, f64)> = vec![];
    for alike in of.values() {
        let took: Vec<f64> = alike.iter().map(|s| s.took.micros()).collect();
        let usual = median(&took);
        let least = (LONGER * usual).max(DEVIATIONS * mad(&took));
        dear.extend(alike.iter().map(|s| (*s, s.took.micros() - usual)).filter(|d| d.1 > least));
    }
    dear.sort_unstable_by_key(|d| d.0.at);
    // The write that fills an AU may pay, and the next one for the AU that it opens.
    dear.dedup_by(|next, before| next.0.at <= before.0.at + before.0.len);
    let merges = dear.iter().filter(|d| line.slow(d.0.len, d.0.took)).count();
    if 2 * merges > dear.len() {
        return None;
    }
    let usual = |of: &[(&Sample, f64)]| median(&of.iter().map(|d| d.1).collect::<Vec<f64>>());
    let row = |of: &[&Sample]| {
        let gaps: Vec<f64> = of.windows(2).map(|w| (w[1].at - w[0].at) as f64).collect();
        let typical = median(&gaps);
        // One that fell on the first write of a leg is missed.
        let off = |g: &f64| (g / typical - (g / typical).round().max(1.0)).abs();
        gaps.len() >= REGULAR && gaps.iter().all(|g| off(g) < APART) && gaps.iter().sum::<f64>() < 1.5 * typical * gaps.len() as f64
    };
    let all: Vec<&Sample> = dear.iter().map(|d| d.0).collect();
    if row(&all) {
        return Some(usual(&dear));
    }
    // An erase costs the same each time, a pause of the host does not; so many at one distance are no chance.
    let mut by_cost = dear.clone();
    by_cost.sort_unstable_by(|a, b| a.1.total_cmp(&b.1));
    let alike = |i: usize| &by_cost[i..i + by_cost[i..].partition_point(|d| d.1 < SAME_COST * by_cost[i].1)];
    let alike = (0..by_cost.len()).map(alike).max_by_key(|of| of.len())?;
    let mut at: Vec<u64> = alike.iter().map(|d| d.0.at).collect();
    at.sort_unstable();
    let fits = |l: lattice::Lattice| l.on > 2 * REGULAR && l.score() > CLEAR;
    lattice::fit(&at, *at.first()?..at.last()? + 1, stride.max(chunk)).is_some_and(fits).then(|| usual(alike))
}

/// Erases differ by less.
const SAME_COST: f64 = 1.15;

/// The score of a row in which such writes are, with a few between.
const CLEAR: f64 = 0.85;

/// The slow places of a walk as a row of boundaries.
pub fn edges_of(run: &Case, cell: &Cell) -> Option<Edges> {
    let (mut hits, mut took): (Vec<Between>, Vec<f64>) = (vec![], vec![]);
    // With gaps the second write into an AU may be the one that pays: it makes it one in random order.
    let mut before: Option<u64> = None;
    let mut earlier: Option<u64> = None;
    let line = Line::new(run, cell);
    for t in run.trials(cell.id) {
        for (i, s) in t.iter().enumerate() {
            // The first write of all opens an AU, boundary or not; with gaps the second one may pay for that.
            let from = if skip(cell) == 0 { earlier } else { before };
            if let Some(from) = from.filter(|_| i >= skip(cell) && line.slow(s.len, s.took)) {
                hits.push((from, s.at + s.len));
                took.push(s.took.micros());
            }
            (earlier, before) = (before, Some(s.at + s.len));
        }
    }
    let (start, end) = (run.of(cell.id).map(|s| s.at).min()?, before?);
    let steps = if skip(cell) == 0 { 2 } else { 1 };
    let widest = hits.iter().map(|h| (h.1 - h.0) / steps).max()?;
    Edges::walked(&hits, &took, start..end, widest.max(cell.bytes("stride")))
}

/// The unit that sizes are multiples of.
pub fn unit(run: &Case) -> u64 {
    run.believed.write_unit().or(run.believed.whole(Quantity::Page)).unwrap_or(4 * KIB).max(run.setting("sector").unwrap_or(512))
}
