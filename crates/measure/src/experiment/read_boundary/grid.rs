//! Rows again where erase blocks begin off the multiples of their size, counted from there.

use super::*;

/// Reads of such a row, about.
pub const READS: f64 = 36.0;
/// Longer than this they shall not take when all else is done.
pub const MOST_SECONDS: f64 = 1.2;

/// Rows that count from `at`, in bytes from the start of the target, where boundaries `period` apart begin; none where all multiples are the same
/// from there.
pub fn cells(view: &View, run: &Run, (at, period): (u64, u64)) -> Vec<Cell> {
    let from = at + run.setting("offset").unwrap_or(0);
    let rows = || run.cells.iter().filter(|c| kind(c) == Kind::Row);
    if rows().any(|c| c.set.contains_key(BEGINS)) {
        return vec![];
    }
    let smallest = rows().map(|c| c.bytes("block")).min().unwrap_or(view.block);
    let lengths = BTreeSet::from([smallest, view.block]);
    let row = |align: u64, block: u64| {
        let plain = row_cell(align, block);
        let set = plain.set.into_iter().chain([(BEGINS.into(), from as i64)]).collect();
        Cell { label: format!("{} from {}", plain.label, Bytes(at)), set, ..plain }
    };
    lengths.into_iter().flat_map(|block| off_multiples(from, period, 2 * block).map(move |align| row(align, block))).collect()
}
