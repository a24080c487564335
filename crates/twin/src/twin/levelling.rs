//! Blocks that a card moves to level its wear: every so many erasures a merge takes as long as two.

use super::costs::{Fitted, P, place, residual};
use super::data::Row;
use super::replay::{Groups, groups};
use super::search::{Scored, priced};
use nandscope_sim::model::FtlKind;
use nandscope_sim::{Event, Model};

/// ns that merges are of the time of an access with these events.
fn merging(counts: &[f64; P], f: &Fitted) -> f64 {
    [Event::Close, Event::CloseRandom, Event::Copy, Event::Erase].iter().map(|e| counts[place(*e)] * f.costs[place(*e)]).sum()
}

/// Whether a delay is as long as the longest merge that these costs know, or as moving a whole erase block: within a tenth.
pub fn as_long(ns: f64, m: &Model, g: &Groups, f: &Fitted) -> bool {
    let whole = (m.nand.erase_block / m.nand.write_unit) as f64 * f.costs[place(Event::Copy)] + f.costs[place(Event::Erase)];
    [whole, longest(g, f)].iter().any(|merge| (merge - ns).abs() < 0.1 * ns)
}

/// ns of the longest merge that these costs know; 0 where there is none.
fn longest(g: &Groups, f: &Fitted) -> f64 {
    g.counts.iter().map(|c| merging(c, f)).fold(0.0, f64::max)
}

/// Fewer long merges are chance.
const FEWEST: usize = 3;

/// The best structure, with a block moved after so many erasures: as many as lie between the merges that took as long as one more.
pub fn proposed(rows: &[Row], best: &Scored, grain: f64, seed: u64) -> Vec<Model> {
    if !matches!(best.model.ftl.kind, FtlKind::BlockMap | FtlKind::LogBlock) || best.model.wear != Default::default() {
        return vec![];
    }
    let g = groups(&priced(&best.model, &best.fitted.costs), rows, seed);
    let whole = longest(&g, &best.fitted);
    if whole <= 10.0 * grain {
        return vec![];
    }
    let (mut erased, mut begun, mut gaps) = (0.0, 0.0, vec![]);
    for (i, r) in rows.iter().enumerate() {
        if r.first {
            (erased, begun) = (0.0, 0.0);
        }
        let Some(counts) = g.counts.get(g.of[i] as usize) else { continue };
        erased += counts[place(Event::Erase)];
        let late = residual(r, i, &g, &best.fitted).map_or(0.0, |(_, e)| e);
        // One more by half: a block is moved whole, and a merge may copy less.
        if merging(counts, &best.fitted) > 0.0 && late > 0.5 * whole && late < 2.0 * whole {
            gaps.push((erased - begun) as u64);
            begun = erased;
        }
    }
    if gaps.len() < FEWEST {
        return vec![];
    }
    gaps.sort_unstable();
    let middle = gaps[gaps.len() / 2];
    // An erasure that is missed or one too many shifts all that follow: the neighbours, too.
    let mut all: Vec<u64> =
        gaps.iter().copied().take(1).chain([middle]).flat_map(|n| n.saturating_sub(2)..=n + 2).filter(|n| *n > 1).collect();
    all.sort_unstable();
    all.dedup();
    let one = |n: u64| {
        let mut m = best.model.clone();
        m.wear.static_every = n;
        m.checked().ok()
    };
    all.into_iter().filter_map(one).collect()
}
