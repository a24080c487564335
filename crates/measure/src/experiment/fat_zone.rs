//! Do the first blocks take random writes better than the rest? (C18, and flashbench's --find-fat)
//!
//! Many cards treat the region where the FAT lies with more care: random writes there do not close an AU. The test makes
//! a few random writes at places further and further from the start, next to the same at the middle of the card.
//! It touches the region where the partition table lies; what it overwrites is put back.

use super::{About, Bench, Experiment, Setup};
use crate::device::DeviceError;
use crate::finding::Quantity;
use crate::infer::beliefs::Case;
use crate::infer::fat_zone::{LOOK, PLACES, bracket, untried};
use crate::samples::Cell;
use crate::units::{Bytes, KIB, MIB};

pub struct FatZone;

pub(super) const EXPERIMENTS: &[&dyn Experiment] = &[&FatZone];

static ABOUT: About = About {
    name: "fat-zone",
    turn: 80,
    question: "Do the first blocks take random writes better than the rest?",
    method: "random writes at places further and further from the start, compared with the middle",
    writes: true,
    answers: &[Quantity::FatZone],
    roles: &["open", "random write"],
    covers: "C18, U18",
};

impl Experiment for FatZone {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn needs(&self) -> &'static [&'static str] {
        super::MERGES
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        // Only a card that pays for random writes can have a zone where it does not.
        let pays = setup.believed.value(Quantity::OpenAusRandom, 0.6).is_some_and(|n| n == 0.0);
        let room = setup.region.end >= 4 * LOOK;
        if !pays || !room || setup.region.start > 0 || setup.geometry.offset > 0 {
            return vec![];
        }
        let unit = setup.believed.value(Quantity::WriteUnit, 0.5).unwrap_or(0.0) as u64;
        // Behind a slow bus the way there would hide what the card does: as much as goes in 10 ms.
        let slow = setup.believed.write_ns_per_kib.filter(|ns| ns * 16 > 10_000_000);
        let chunk = slow.map_or(unit.clamp(16 * KIB, 64 * KIB), |ns| 1 << (10_000_000 * KIB / ns).max(1).ilog2());
        let chunk = chunk.max(setup.geometry.sector) as i64;
        vec![cell(0, chunk), cell(-1, chunk)]
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        run.trials(cell.id).len() < if cell.get("at") <= 0 { 2 } else { 1 }
    }

    fn trial(&self, cell: &Cell, _n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let chunk = cell.bytes("chunk");
        let at = match cell.get("at") {
            // In the middle of the card, each time elsewhere.
            -1 => (b.region.end / 2 + b.below(b.region.end / 4 / MIB) * MIB) / MIB * MIB,
            at => at as u64,
        };
        // Falling positions: no card takes them for a stream.
        for i in (0..PLACES - 2).rev() {
            let place = if i % 2 == 0 { i } else { i + 1 };
            b.write((i < PLACES - 3) as u8, at + place * chunk, chunk)?;
        }
        Ok(())
    }

    /// Doubles the distance until a place is not in the zone, then bisects.
    fn more(&self, run: &Case) -> Vec<Cell> {
        let Some(chunk) = run.cells.first().map(|c| c.bytes("chunk")) else { return vec![] };
        let window = PLACES * chunk;
        let next = match bracket(run) {
            (None, _) => None,
            (Some(inside), None) => Some((2 * inside).max(window)).filter(|&n| n <= LOOK),
            (Some(inside), Some(outside)) if outside - inside > window => Some((inside + outside) / 2 / window * window),
            // Once more, half a window aside, so that every place near the end is written.
            (Some(inside), Some(outside)) if outside - inside > window / 2 => Some((inside + outside) / 2),
            // And the places that all of these left out.
            _ => untried(run, chunk),
        };
        next.map(|at| cell(at as i64, chunk as i64)).into_iter().collect()
    }
}

fn cell(at: i64, chunk: i64) -> Cell {
    let label = if at < 0 { "middle".to_string() } else { format!("at {}", Bytes(at as u64)) };
    Cell::new(label, &[("at", at), ("chunk", chunk)])
}
