//! Is a boundary that reads show one of erase blocks, or the end of a piece of the card's map?
//!
//! A card that maps by page has no room for its map, and loads it piece by piece: a read across the end of a piece loads two. Then the
//! second read in one piece is cheaper, wherever it lies. The second always lies before the first here, so that no read-ahead makes
//! it cheaper. A card that looks up erase blocks and keeps what it found looks the same to reads; writes tell it apart.

use super::*;

/// Pairs of reads inside one supposed erase block, like the cell that confirmed it.
pub fn cell(confirm: &Cell) -> Cell {
    let set = confirm.set.clone().into_iter().chain([("pairs".into(), 1)]).collect();
    Cell { label: format!("two reads inside, {}", confirm.label), set, ..confirm.clone() }
}

/// One pair: three quarters into a block, then one quarter.
pub fn trial(cell: &Cell, b: &mut Bench) -> Result<(), DeviceError> {
    let (period, step, block) = (cell.bytes("period"), cell.bytes("step"), cell.bytes("block"));
    let Some(start) = random_point(b, period, cell.bytes("phase"), period, block) else { return Ok(()) };
    for (role, quarters) in [(FAR, 3), (BACK, 1)] {
        b.read(role, start + period / 4 * quarters / step * step, block)?;
    }
    Ok(())
}
