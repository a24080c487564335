//! Do reads that lie on one side of a boundary take as much longer at times as those across it? Then it is no crossing that is paid for.
//!
//! Reads of large rows lie far apart. A card that loads its map piece by piece loads one for each of them, and two where a read crosses from
//! piece to piece: the rows from the size of a piece on look like those of an erase block, but single reads take longer as well. What the
//! order of the three reads does (read-ahead, a cache) shows on one side only.

use super::{Row, median};

/// The share of what crossing adds that such a read takes longer, at least and at most: twice, where a read across finds one piece loaded, and
/// so does one of the others. More is a stall.
const AS_MUCH: [f64; 2] = [0.75, 2.2];

/// Do rows of multiples of `size`, those that do not wrap, have such reads before the boundary and behind it? `lower`: rows below it.
pub(super) fn loaded(rows: &[&Row], lower: &[&Row], size: u64) -> bool {
    let above: Vec<&&Row> = rows.iter().filter(|r| r.align.is_multiple_of(size)).collect();
    let extra = median(&above.iter().map(|r| r.diff).collect::<Vec<_>>());
    let base = median(&lower.iter().flat_map(|r| [r.pre, r.post]).collect::<Vec<_>>());
    let as_much = |t: f64| ((t - base) / extra >= AS_MUCH[0]) && ((t - base) / extra <= AS_MUCH[1]);
    above.iter().any(|r| as_much(r.pre)) && above.iter().any(|r| as_much(r.post))
}
