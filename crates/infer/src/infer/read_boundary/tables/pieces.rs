//! Do reads that lie on one side of a boundary take as much longer at times as those across it? Then it is no crossing that is paid for.
//!
//! Reads of large rows lie far apart. A card that loads its map piece by piece loads one for each of them, and two where a read crosses from
//! piece to piece: the rows from the size of a piece on look like those of an erase block, but single reads take longer as well. What the
//! order of the three reads does (read-ahead, a cache) shows on one side only.

use super::{Row, median};
use std::ops::RangeInclusive;

/// The share of what crossing adds that such a read takes longer, at least and at most: twice, where a read across finds one piece loaded, and
/// so does one of the others. More is a stall.
const AS_MUCH: RangeInclusive<f64> = 0.75..=2.2;

/// Are there such reads before the boundaries of the rows `above` and behind them? `lower`: smaller rows; `extra`: µs that crossing adds above.
pub(super) fn loaded(above: &[&Row], lower: &[&Row], extra: f64) -> bool {
    let base = median(&lower.iter().flat_map(|r| [r.pre, r.post]).collect::<Vec<_>>());
    let as_much = |t: f64| AS_MUCH.contains(&((t - base) / extra));
    above.iter().any(|r| as_much(r.pre)) && above.iter().any(|r| as_much(r.post))
}
