//! How much an SLC cache takes while the region holds data, after half of it was discarded, and after all of it was.

use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::pipeline::{Analysis, Fit};
use super::slc_cache::{Levels, taken};
use crate::finding::{Finding, Quantity};
use crate::samples::{Cell, Run};
use crate::units::{Bytes, MIB};

/// Judges runs of `slc-fill`.
pub struct SlcFill;

pub(super) const ANALYSES: &[&dyn Analysis] = &[&SlcFill];

/// Roles: writes until it is full; discards; a discard that the target refused.
pub const FILL: u8 = 0;
pub const DISCARD: u8 = 1;
pub const FAILED: u8 = 2;

/// Percent of the region that hold data, in the order in which they are tried.
pub const HELD: [u64; 3] = [100, 50, 0];

/// Of what was decided on the cards of docs/todays-cards.md all was right; as these are of one family, no more than this.
const SCORE: f64 = 0.95;

/// Sizes that differ by less are the same.
const SAME: f64 = 0.06;

/// µs of a write while there is room and while there is none, from the rates that were believed.
pub fn levels(cell: &Cell) -> Levels {
    Levels { fast: cell.get("fast_ns") as f64 / 1e3, slow: cell.get("slow_ns") as f64 / 1e3 }
}

/// Bytes that were taken at each level, where the cache became full.
pub fn sizes(run: &Run, cell: &Cell) -> Vec<(u64, f64)> {
    let one = |t: &Vec<&crate::samples::Sample>| {
        let micros: Vec<f64> = t.iter().filter(|s| s.role == FILL).map(|s| s.took.micros()).collect();
        let held = HELD.get(t.first()?.trial as usize)?;
        Some((*held, taken(&micros, levels(cell))? * cell.bytes("chunk") as f64))
    };
    run.trials(cell.id).iter().filter_map(one).collect()
}

impl Analysis for SlcFill {
    fn name(&self) -> &'static str {
        "slc-fill"
    }

    fn fit(&self) -> Fit {
        Fit::Today
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        let q = Quantity::SlcCacheEmpty;
        let Some(cell) = run.cells.first() else {
            return vec![Finding::undecided(
                q,
                "the size of the SLC cache, its rates and how rest empties it are not known; the experiment slc-cache measures them",
            )];
        };
        if run.samples.iter().any(|s| s.role == FAILED) {
            return vec![Finding::undecided(q, "this target takes no discard, without which a card cannot be made empty")];
        }
        let all = sizes(run, cell);
        let text = all.iter().map(|(held, b)| format!("{} with data in {held} % of the region", Bytes(*b as u64)));
        let text = format!("the cache took {}", text.collect::<Vec<_>>().join(", "));
        let [(_, full), .., (0, empty)] = all[..] else {
            return vec![
                Finding::undecided(q, format!("the run ended before {} was empty (more --time and --writes would decide)", run.stretch()))
                    .evidence(text),
            ];
        };
        let known = cell.bytes("size") as f64;
        if (full - known).abs() > SAME * known + 2.0 * cell.bytes("chunk") as f64 {
            let why = format!(
                "before the discards it took {} and not the {} it had: rest did not empty it",
                Bytes(full as u64),
                Bytes(known as u64)
            );
            return vec![Finding::undecided(q, why).evidence(text)];
        }
        if all.windows(2).any(|w| w[1].1 < (1.0 - SAME) * w[0].1) {
            return vec![Finding::undecided(q, "it took less after a discard than before: rest did not empty it").evidence(text)];
        }
        let error = 2.0 * cell.bytes("chunk") as f64 + 0.02 * empty;
        let f = Finding::decided(q, empty.round(), SCORE).evidence(text);
        let same = (empty - full).abs() < SAME * full;
        let f = f.caveat(if same {
            "a card that does nothing on a discard would look the same"
        } else {
            "the region only was made empty; the rest of the card holds what it held"
        });
        vec![Finding { interval: Some([empty - error, empty + error]), ..f }]
    }

    fn figures(&self, run: &Case) -> Vec<Figure> {
        let Some(cell) = run.cells.first() else { return vec![] };
        let mut points: Vec<(f64, f64)> = sizes(run, cell).iter().map(|(held, b)| (*held as f64, b / MIB as f64)).collect();
        nandscope_stats::ascending(&mut points, |a| a.0);
        if points.len() < 2 {
            return vec![];
        }
        vec![Figure {
            title: "SLC cache over fill".into(),
            x: "percent of the region with data".into(),
            y: "MiB".into(),
            log_x: false,
            log_y: false,
            series: vec![Series { name: "SLC cache".into(), points }],
        }]
    }
}
