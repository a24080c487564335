//! The walk: where it goes, which of its writes closed an AU, and the row of boundaries they make.

use super::MOST_OPEN;
use crate::finding::Quantity;
use crate::infer::au_grid::slow_and_all;
use crate::infer::beliefs::{Beliefs, Case};
use crate::infer::edges::Edges;
use crate::samples::Cell;
use crate::units::Bytes;
use std::ops::Range;

pub fn walk(window: u64, chunk: u64, stride: u64, cost_us: u64) -> Cell {
    let set = [("walk", window as i64), ("chunk", chunk as i64), ("cost", cost_us as i64), ("stride", stride as i64)];
    Cell::new(format!("walk in steps of {}", Bytes(stride)), &set)
}

/// What is written in order pays for an AU only when as many are open as may be. So many are opened beforehand, elsewhere.
pub fn fill(region: &Range<u64>, believed: &Beliefs, walk: &Cell) -> Option<Cell> {
    let (start, end, chunk) = (region.start, region.end, walk.bytes("chunk"));
    let n = believed.whole(Quantity::OpenAusLinear).unwrap_or(MOST_OPEN) + 1;
    let apart = (end - start) / 4 / n / chunk * chunk;
    let from = (start + (end - start) / 8 * 5).next_multiple_of(chunk);
    let mut set = vec![("fill", n as i64), ("from", from as i64), ("apart", apart as i64), ("then", walk.get("walk"))];
    set.extend(["chunk", "stride", "cost"].map(|k| (k, walk.get(k))));
    (apart > 0).then(|| Cell::new(format!("{n} AUs elsewhere"), &set))
}

/// The steps of a second walk and the length of its writes, where AUs are fewer than ten steps of the first: a boundary known to two of
/// them is not known well enough to be looked for elsewhere. Still with gaps, for an AU that was written whole costs little to close.
pub fn finer(run: &Case, cell: &Cell) -> Option<(u64, u64)> {
    let (chunk, stride, (slow, all)) = (cell.bytes("chunk"), cell.bytes("stride"), slow_and_all(run, cell));
    if run.cells.len() > 1 || stride <= chunk {
        None
    } else if all > 8 && slow * 3 > all {
        // Two or three steps an AU: a quarter of one is known well enough, and shorter writes leave room for that many.
        Some((stride / 4, chunk.min(stride / 8)))
    } else {
        (all > 48 && slow * 10 > all).then_some((2 * chunk, chunk))
    }
}

/// To what part of itself the distance must be known before boundaries elsewhere can be predicted: the coarser the steps, the finer.
pub fn narrow(e: &Edges, cell: &Cell) -> f64 {
    if e.period[0] < 12.0 * cell.get("stride") as f64 { 32.0 } else { 16.0 }
}
