//! Where exactly a boundary lies that longer reads know to some KiB only: the shortest reads across every sector near it.
//!
//! Pages begin there, too, so several places cost time; that of the erase block costs most. Where two cost the same, or none stands
//! out, nothing is said.

use super::*;

/// The place whose reads take longest, in bytes from the start of the target, below the period.
pub(super) fn found(run: &Run) -> Option<u64> {
    let cells: Vec<&Cell> = run.cells.iter().filter(|c| kind(c) == Kind::Place).collect();
    let first = cells.first()?;
    let time = |c: &Cell| location(&run.of(c.id).map(|s| s.took.micros()).collect::<Vec<_>>());
    let mut all: Vec<(i64, Estimate)> = cells.iter().map(|c| (c.get("shift"), time(c))).filter(|t| t.1.n >= 5).collect();
    if all.len() < cells.len() {
        return None;
    }
    nandscope_stats::descending(&mut all, |a| a.1.value);
    let ((shift, top), (_, next)) = (all[0], all[1]);
    let usual = median(&all.iter().map(|t| t.1.value).collect::<Vec<_>>());
    // The scatter of the places themselves: their errors are those of a few reads each.
    let error = mad(&all.iter().map(|t| t.1.value).collect::<Vec<_>>()).max(top.error).max(next.error).max(0.004 * usual);
    (top.value - next.value > CLEAR * error).then(|| (first.get("phase") + shift).rem_euclid(first.get("period")) as u64)
}
