//! Do the first blocks take random writes better than the rest? (C18, and flashbench's --find-fat)
//!
//! Many cards treat the region where the FAT lies with more care: random writes there do not close an AU. The test makes
//! a few random writes at places further and further from the start, next to the same at the middle of the card.
//! It touches the region where the partition table lies; what it overwrites is put back.

use super::open_au::Slots;
use super::{About, Bench, Experiment, Figure, Series, Setup};
use crate::device::DeviceError;
use crate::finding::{Finding, Quantity};
use crate::infer::stats::median;
use crate::samples::{Cell, Run};
use crate::units::{Bytes, three};

pub struct FatZone;

static ABOUT: About = About {
    name: "fat-zone",
    question: "Do the first blocks take random writes better than the rest?",
    method: "random writes in the first AUs, compared with AUs in the middle",
    writes: true,
    answers: &[Quantity::FatZone],
    roles: &["open", "random write"],
    covers: "C18, U18",
};

/// AUs looked at from the start; a zone that reaches further is told as "at least".
const LOOK: i64 = 16;

impl Experiment for FatZone {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        // Only a card that pays for random writes can have a zone where it does not.
        let pays = setup.known.value(Quantity::OpenAusRandom, 0.6).is_some_and(|n| n == 0.0);
        let known = setup.known.value(Quantity::EraseBlock, 0.6).is_some() && setup.known.value(Quantity::CloseCostMs, 0.5).is_some();
        if !pays || !known || setup.region.start > 0 || setup.geometry.offset > 0 {
            return vec![];
        }
        [0, 1, 2, 4, 8, LOOK - 1, -1].into_iter().map(cell).collect()
    }

    fn wants(&self, cell: &Cell, run: &Run) -> bool {
        let done = run.trials(cell.id).len();
        done < if cell.get("au") < 2 { 2 } else { 1 }
    }

    fn trial(&self, cell: &Cell, n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let Some(slots) = Slots::of(b.run) else { return Ok(()) };
        let erase = b.run.setting("erase_block").unwrap_or(slots.span);
        let phase = b.run.setting("erase_block_offset").unwrap_or(0);
        let au = match cell.get("au") {
            -1 => slots.at(slots.count / 2 + n as u64),
            0 => 0,
            i => phase + (i as u64 - (phase > 0) as u64) * erase,
        };
        let span = if au == 0 && phase > 0 { phase } else { slots.span };
        let mut path: Vec<u64> = (0..(span / slots.chunk).max(1)).collect();
        b.shuffle(&mut path);
        for (i, p) in path.iter().take(5).enumerate() {
            let at = au + p * slots.chunk;
            if at + slots.chunk <= b.region.end {
                b.write((i > 0) as u8, at, slots.chunk)?;
            }
        }
        Ok(())
    }

    /// Bisects between the last AU that is fast and the first that is not.
    fn more(&self, run: &Run) -> Vec<Cell> {
        let (inside, outside) = bracket(run);
        match outside {
            Some(o) if o - inside > 1 => vec![cell((inside + o) / 2)],
            _ => vec![],
        }
    }

    fn infer(&self, run: &Run) -> Vec<Finding> {
        let q = Quantity::FatZone;
        let Some(middle) = run.cells.iter().find(|c| c.get("au") == -1).and_then(|c| time(run, c)) else {
            return vec![Finding::undecided(q, "random writes cost no more than linear ones anywhere, so a zone cannot stand out")];
        };
        let Some(first) = run.cells.iter().find(|c| c.get("au") == 0).and_then(|c| time(run, c)) else {
            return vec![Finding::undecided(q, "the run ended before the start of the card was tried")];
        };
        let erase = run.setting("erase_block").unwrap_or(0);
        let phase = run.setting("erase_block_offset").unwrap_or(0);
        let text = format!("a random write takes {} ms in the first AU, {} ms in the middle", three(first / 1e3), three(middle / 1e3));
        let (inside, outside) = bracket(run);
        let contrast = (middle / first.max(1.0)).log2();
        let trust = (0.6 + 0.12 * contrast.abs()).min(0.93);
        let f = match (inside, outside) {
            (-1, _) => Finding::decided(q, 0.0, trust),
            (_, None) => Finding::at_least(q, (LOOK as u64 * erase) as f64, trust, "every AU looked at is in the zone"),
            (i, Some(o)) if o - i == 1 => {
                Finding::decided(q, (if phase > 0 { phase + i as u64 * erase } else { o as u64 * erase }) as f64, trust)
            }
            _ => Finding::undecided(q, "the run ended before the end of the zone was found"),
        };
        vec![f.evidence(text)]
    }

    fn figures(&self, run: &Run) -> Vec<Figure> {
        let mut points: Vec<(f64, f64)> =
            run.cells.iter().filter(|c| c.get("au") >= 0).filter_map(|c| Some((c.get("au") as f64, time(run, c)? / 1e3))).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        vec![Figure {
            title: "time of a random write in the first AUs".into(),
            x: format!("AU of {}", Bytes(run.setting("erase_block").unwrap_or(0))),
            y: "ms".into(),
            log_x: false,
            log_y: true,
            series: vec![Series { name: "median".into(), points }],
        }]
    }
}

fn cell(au: i64) -> Cell {
    Cell::new(if au < 0 { "middle".to_string() } else { format!("AU {au}") }, &[("au", au)])
}

/// Median time of the random writes, in microseconds.
fn time(run: &Run, cell: &Cell) -> Option<f64> {
    let t: Vec<f64> = run.of(cell.id).filter(|s| s.role == 1).map(|s| s.took.micros()).collect();
    (t.len() >= 3).then(|| median(&t))
}

/// The last AU that is fast (-1: none) and the first that is not.
fn bracket(run: &Run) -> (i64, Option<i64>) {
    let Some(middle) = run.cells.iter().find(|c| c.get("au") == -1).and_then(|c| time(run, c)) else { return (-1, None) };
    let mut seen: Vec<(i64, bool)> =
        run.cells.iter().filter(|c| c.get("au") >= 0).filter_map(|c| Some((c.get("au"), time(run, c)? < 0.4 * middle))).collect();
    seen.sort_unstable();
    let outside = seen.iter().find(|s| !s.1).map(|s| s.0);
    let inside = seen.iter().filter(|s| s.1 && outside.is_none_or(|o| s.0 < o)).map(|s| s.0).max().unwrap_or(-1);
    (inside, outside)
}
