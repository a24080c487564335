//! Is a boundary that reads show one of erase blocks, or the end of a piece of the card's map?
//!
//! A card that maps by page has no room for its map, and loads it piece by piece: a read across the end of a piece loads two. Then the
//! second read in one piece is cheaper, wherever it lies. The second always lies before the first here, so that no read-ahead makes
//! it cheaper. A card that looks up erase blocks and keeps what it found looks the same to reads; writes tell it apart.

use super::*;

pub const FAR: u8 = 5;
pub const BACK: u8 = 6;

/// Pairs that say no.
const ENOUGH: usize = 12;

/// Is the second read cheaper by so much that crossing, `extra` µs, may be the loading of a second piece? `None` where too few pairs
/// were read.
pub(super) fn told(run: &Run, extra: f64) -> Option<bool> {
    let cell = run.cells.iter().find(|c| kind(c) == Kind::Pairs)?;
    let pair = |t: &Vec<&Sample>| Some(estimate::of_trial(t, FAR)? - estimate::of_trial(t, BACK)?);
    let saved = location(&run.trials(cell.id).iter().filter_map(pair).collect::<Vec<f64>>());
    let in_pieces = saved.value > 0.4 * extra && saved.value > 3.0 * saved.error;
    (in_pieces || saved.n >= ENOUGH).then_some(in_pieces)
}

/// Bytes of a piece of the map, where reads show boundaries of such.
pub fn in_pieces(run: &Run) -> Option<u64> {
    let confirm = confirming(run)?;
    (told(run, confirm_estimate(run, confirm).value) == Some(true)).then(|| confirm.bytes("period"))
}
