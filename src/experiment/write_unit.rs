//! Below which size does a write cost as much as one of that size? (Q14, Q16, C3)
//!
//! A card programs pages, or pages of several planes, as one: writing less than that unit costs the whole. The time of
//! one write is then flat up to the unit and rises above it. Each pass writes one stretch in linear order with falling
//! sizes, so that every write is aligned to its own size and the AU is opened once.
//!
//! What fools it: cards that combine small linear writes (then the mean falls with the size and the unit stays open,
//! said), stalls (medians), a stretch that crosses into the next AU (medians).

use super::{About, Bench, Experiment, Figure, Series, Setup};
use crate::device::DeviceError;
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{location, median};
use crate::samples::{Cell, Run};
use crate::units::{Bytes, KIB, MIB, three};
use std::collections::BTreeMap;

pub struct WriteUnit;

static ABOUT: About = About {
    name: "write-unit",
    question: "Below which size does a write cost as much as one of that size?",
    method: "linear writes of falling size inside one AU, several passes in different AUs",
    writes: true,
    answers: &[Quantity::WriteUnit],
    roles: &["write"],
    covers: "C3, Q14, Q16",
};

/// Writes a pass makes of each size.
const EACH: u64 = 8;

impl Experiment for WriteUnit {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let sector = setup.geometry.sector.max(512);
        let largest = (256 * KIB).min((setup.region.end - setup.region.start) / 64).max(2 * sector);
        vec![Cell::new("ladder", &[("largest", largest as i64), ("smallest", sector as i64)])]
    }

    fn wants(&self, cell: &Cell, run: &Run) -> bool {
        run.of(cell.id).map(|s| s.trial).max().is_none_or(|t| t < 2)
    }

    fn trial(&self, cell: &Cell, n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let (largest, smallest) = (cell.bytes("largest"), cell.bytes("smallest"));
        let sizes: Vec<u64> = std::iter::successors(Some(largest), |s| Some(s / 2)).take_while(|&s| s >= smallest).collect();
        let need: u64 = sizes.iter().map(|s| s * writes_of(*s, largest)).sum::<u64>().next_multiple_of(largest);
        let unit = b.run.setting("erase_block").filter(|&e| e >= 64 * KIB).unwrap_or(MIB).max(largest);
        let phase = b.run.setting("erase_block_offset").unwrap_or(0);
        let room = (b.region.end - b.region.start).saturating_sub(need + 2 * unit) / unit;
        // Spread over the upper three quarters: the start may be a FAT zone.
        let k = room / 4 + b.below((room - room / 4).max(1));
        let mut at = (b.region.start.saturating_sub(phase)).next_multiple_of(unit) + phase + k * unit;
        if at + need > b.region.end {
            at = b.region.start.next_multiple_of(largest);
        }
        let _ = n;
        for s in sizes {
            for _ in 0..writes_of(s, largest) {
                if at + s <= b.region.end {
                    b.write(0, at, s)?;
                    at += s;
                }
            }
        }
        Ok(())
    }

    fn infer(&self, run: &Run) -> Vec<Finding> {
        vec![judge(&by_size(run))]
    }

    fn figures(&self, run: &Run) -> Vec<Figure> {
        let points = by_size(run).iter().map(|(&s, t)| (s as f64, median(t) / 1e3)).collect();
        vec![Figure {
            title: "time of one linear write".into(),
            x: "size of the write".into(),
            y: "ms".into(),
            log_x: true,
            log_y: true,
            series: vec![Series { name: "median".into(), points }],
        }]
    }
}

fn writes_of(size: u64, largest: u64) -> u64 {
    if size * 4 > largest { 3 } else { EACH }
}

/// Times in microseconds by size; the first write of a pass, which opens the AU, is left out.
fn by_size(run: &Run) -> BTreeMap<u64, Vec<f64>> {
    let mut out: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for cell in &run.cells {
        for t in run.trials(cell.id) {
            for s in t.iter().skip(1) {
                out.entry(s.len).or_default().push(s.took.micros());
            }
        }
    }
    out
}

/// Compares "flat below u, rising above" with "fixed cost plus rate" over the medians.
fn judge(times: &BTreeMap<u64, Vec<f64>>) -> Finding {
    const Q: Quantity = Quantity::WriteUnit;
    let points: Vec<(u64, f64, f64)> = times
        .iter()
        .filter(|t| t.1.len() >= 3)
        .map(|(&s, t)| {
            let e = location(t);
            (s, e.value, e.error.hypot(0.02 * e.value))
        })
        .collect();
    if points.len() < 5 {
        return Finding::undecided(Q, "too few sizes were written");
    }
    let smallest = points[0].0;
    // Small linear writes that are combined: most cost next to nothing and some pay for all.
    let combined = |s: u64| {
        let t = &times[&s];
        let (m, mean) = (median(t), t.iter().sum::<f64>() / t.len() as f64);
        mean > 2.0 * m
    };
    // A staircase T(s) = c + ceil(s/u) x p + s x r with the unknown c, p, r >= 0; u = smallest is the plain line.
    let chi2 = |u: u64| -> f64 {
        let mut best = f64::INFINITY;
        // Below the unit the rest of it is read back: an extra that falls with the share written (Q14: 4.89 to 4.45 ms).
        for with_fill in [false, true] {
            let rows: Vec<([f64; 4], f64, f64)> = points
                .iter()
                .map(|&(s, t, e)| {
                    let fill = if with_fill && s < u { 1.0 - s as f64 / u as f64 } else { 0.0 };
                    ([1.0, s.div_ceil(u) as f64, s as f64 / KIB as f64, fill], t, e)
                })
                .collect();
            best = best.min(nnls(&rows) + if with_fill { 3.0 } else { 0.0 });
        }
        best
    };
    let candidates: Vec<(u64, f64)> = points.iter().take(points.len() - 1).map(|&(s, _, _)| (s, chi2(s))).collect();
    let best = candidates.iter().map(|c| c.1).fold(f64::INFINITY, f64::min);
    // The medians have small errors but the model is crude: temper the likelihood by how badly the best one fits.
    let temper = (best / (points.len() as f64 - 3.0)).max(1.0) * 2.0;
    let mut weights: Vec<(u64, f64)> = candidates.iter().map(|&(s, c)| (s, (-(c - best) / temper).exp())).collect();
    let sum: f64 = weights.iter().map(|w| w.1).sum();
    weights.iter_mut().for_each(|w| w.1 /= sum);
    weights.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (unit, p) = weights[0];
    let at = |s: u64| points.iter().find(|x| x.0 == s).map_or(f64::NAN, |x| x.1 / 1e3);
    let text = format!(
        "one write takes {} ms at {}, {} ms at {}, {} ms at {}",
        three(at(smallest)),
        Bytes(smallest),
        three(at(unit)),
        Bytes(unit),
        three(at(unit * 2)),
        Bytes(unit * 2)
    );
    if let Some(s) = points.iter().map(|p| p.0).filter(|&s| s <= unit).find(|&s| combined(s)) {
        return Finding::undecided(Q, format!("linear writes of {} are combined: most cost little and some pay for all", Bytes(s)))
            .evidence(text);
    }
    if unit == smallest {
        // The plain line: the cost rises from the first size on, or never.
        return Finding::undecided(Q, "the time of a write rises evenly with its size: no unit shows").evidence(text);
    }
    if p < 0.5 {
        return Finding::undecided(Q, format!("the knee may lie at {} or {}", Bytes(unit), Bytes(weights[1].0))).evidence(text);
    }
    Finding::decided(Q, unit as f64, p.min(0.97))
        .rivals(weights.iter().skip(1).take(3).map(|&(s, p)| (s as f64, p)).filter(|r| r.1 > 0.005))
        .evidence(text)
}

/// Weighted least squares with coefficients that are not negative; returns chi squared. Four unknowns, coordinate descent.
fn nnls(rows: &[([f64; 4], f64, f64)]) -> f64 {
    let mut x = [0.0f64; 4];
    let scale: Vec<f64> = (0..4).map(|k| rows.iter().map(|r| (r.0[k] / r.2).powi(2)).sum::<f64>()).collect();
    for _ in 0..3000 {
        let before = x;
        for k in 0..4 {
            if scale[k] > 0.0 {
                let g: f64 = rows
                    .iter()
                    .map(|(a, t, e)| {
                        let left = t - (0..4).filter(|&j| j != k).map(|j| a[j] * x[j]).sum::<f64>();
                        a[k] * left / (e * e)
                    })
                    .sum();
                x[k] = (g / scale[k]).max(0.0);
            }
        }
        if (0..4).all(|k| (x[k] - before[k]).abs() <= 1e-9 * x[k].abs()) {
            break;
        }
    }
    rows.iter().map(|(a, t, e)| ((t - (0..4).map(|j| a[j] * x[j]).sum::<f64>()) / e).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(f: impl Fn(u64) -> f64) -> BTreeMap<u64, Vec<f64>> {
        (9..=18).map(|k| (1u64 << k, (0..8).map(|i| f(1 << k) * (1.0 + 0.004 * (i % 3) as f64)).collect())).collect()
    }

    /// Q14: the Toshiba eMMC, milliseconds per write.
    #[test]
    fn toshiba_writes_32_kib_as_one() {
        let ms = [(18, 25.5), (17, 12.9), (16, 6.7), (15, 3.85), (14, 4.45), (13, 4.76), (12, 4.89), (11, 4.91), (10, 4.92), (9, 4.93)];
        let f = judge(&table(|s| ms.iter().find(|m| 1u64 << m.0 == s).unwrap().1 * 1e3));
        assert_eq!(f.number(), Some(32768.0), "{f:?}");
    }

    #[test]
    fn a_staircase_shows_its_unit_and_a_line_does_not() {
        let f = judge(&table(|s| 300.0 + s.div_ceil(16384) as f64 * 900.0 + s as f64 / 20.0));
        assert_eq!(f.number(), Some(16384.0), "{f:?}");
        let f = judge(&table(|s| 1500.0 + s as f64 / 20.0));
        assert!(f.value.is_none(), "{f:?}");
    }

    #[test]
    fn combined_small_writes_leave_it_open() {
        let mut t = table(|s| 300.0 + s as f64 / 10.0);
        for s in [512u64, 1024, 2048, 4096] {
            let n = 8 * 16384 / s as usize;
            t.insert(s, (0..n).map(|i| if (i + 1) % (16384 / s as usize) == 0 { 2500.0 } else { 60.0 }).collect());
        }
        assert!(judge(&t).value.is_none());
    }
}
