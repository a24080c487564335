//! Where exactly a boundary lies that longer reads know to some KiB only: the shortest reads across every sector near it.
//!
//! Pages begin there, too, so several places cost time; that of the erase block costs most. Where two cost the same, or none stands
//! out, nothing is said.

use super::*;

/// The shortest reads, across every place where a boundary may lie by a longer one.
pub fn cells(run: &Case, confirm: &Cell) -> Vec<Cell> {
    let sector = run.setting("sector").unwrap_or(512).max(512);
    let (block, period) = (confirm.bytes("block"), confirm.bytes("period"));
    let room = run.setting("end").unwrap_or(0).saturating_sub(run.setting("start").unwrap_or(0));
    if block <= 2 * sector || room < 16 * period {
        return vec![];
    }
    let half = (block / 2 / sector) as i64;
    (-half..=half)
        .map(|i| {
            let shift = i * sector as i64;
            let set =
                [("place", 1), ("shift", shift), ("period", period as i64), ("phase", confirm.get("phase")), ("block", 2 * sector as i64)];
            Cell::new(format!("{shift:+} B"), &set)
        })
        .collect()
}

/// One read across this place beside a boundary anywhere.
pub fn trial(cell: &Cell, b: &mut Bench) -> Result<(), DeviceError> {
    let (block, period, shift) = (cell.bytes("block"), cell.bytes("period"), cell.get("shift"));
    let phase = (cell.get("phase") + shift).rem_euclid(period as i64) as u64;
    if let Some(p) = random_point(b, period, phase, 0, block) {
        b.read(ON, p - block / 2, block)?;
    }
    Ok(())
}
