//! Rows that count from where erase blocks begin: pages and planes begin there as well, and where that is off the multiples of their size,
//! reads across multiples that count from the start of the disk cross none of them.

use super::*;
use crate::infer::steps::alignments;

/// Of a row: where its multiples count from, in bytes from the start of the disk.
pub const BEGINS: &str = "begins";

/// Looks at each row before it tells.
const LOOKS: u32 = 8;

/// Where the boundaries of a period that was confirmed begin, in bytes from the start of the target, and the period. `None` where that is known to some KiB only.
pub fn place(run: &Run) -> Option<(u64, u64)> {
    let confirm = confirming(run)?;
    let period = confirm.bytes("period");
    Some((exactly(run, confirm)?, period))
}

/// The first of the boundaries that this cell confirmed, where it is known to the sector.
pub(super) fn exactly(run: &Run, confirm: &Cell) -> Option<u64> {
    // A longer read feels a boundary anywhere inside it.
    let short = confirm.bytes("block") <= 2 * run.setting("sector").unwrap_or(512).max(512);
    if short { Some(confirm.bytes("phase") % confirm.bytes("period").max(1)) } else { place::found(run) }
}

/// Where the rows count from that were read across on purpose, once each was read often enough.
pub fn counted_from(run: &Run) -> Option<u64> {
    let rows = || run.cells.iter().filter(|c| kind(c) == Kind::Row && c.set.contains_key(BEGINS));
    let looks = |c: &Cell| run.of(c.id).map(|s| s.trial + 1).max().unwrap_or(0);
    rows().next().filter(|_| rows().all(|c| looks(c) >= LOOKS)).map(|c| c.bytes(BEGINS))
}

/// Multiples of these sizes may be those of pages that are read together.
pub fn off_multiples(from: u64, period: u64, least: u64) -> impl Iterator<Item = u64> {
    alignments(least, MIB - 1).into_iter().filter(move |a| period.is_multiple_of(*a) && !from.is_multiple_of(*a))
}

/// A place of the target from which the multiples count that rows crossed: those of the whole disk are the same where erase blocks begin at
/// a multiple of all sizes that pages may have.
pub(super) fn on_multiples(run: &Run) -> Option<u64> {
    let offset = run.setting("offset").unwrap_or(0);
    let on_disk = || place(run).filter(|&(at, period)| off_multiples(at + offset, period, 1).next().is_none()).map(|p| p.0);
    counted_from(run).map(|from| from - offset.min(from)).or_else(on_disk)
}

/// Does this row cross boundaries that begin at `from`? Its multiples may be the same as if they were counted from there.
pub fn tells(cell: &Cell, from: Option<u64>) -> bool {
    match (from, cell.set.contains_key(BEGINS)) {
        (Some(from), of_its_own) => of_its_own || from.is_multiple_of(cell.bytes("align").max(1)),
        (None, of_its_own) => !of_its_own,
    }
}
