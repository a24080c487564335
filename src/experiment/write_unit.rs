//! Below which size does a write cost as much as one of that size? (Q14, Q16, C3)
//!
//! A card programs pages, or pages of several planes, as one: writing less than that unit costs the whole, and a write that
//! touches two units costs two. Each pass writes one stretch in linear order with falling sizes (2^k and 3*2^k), every
//! write aligned to its own size. For each candidate the times are explained by the units touched, the bytes moved and the
//! part of a unit that must be filled up from old data; the candidate that explains them best is the unit.
//!
//! What fools it: cards that combine small linear writes (then most cost little and some pay for all: undecided, said),
//! stalls (outliers are left out), a fixed cost so large that no unit shows (undecided).

use super::{About, Bench, Experiment, Figure, Series, Setup, alignments};
use crate::device::DeviceError;
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{bootstrap_median, mad, median};
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

impl Experiment for WriteUnit {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let sector = setup.geometry.sector.max(512);
        let largest = (256 * KIB).min((setup.region.end - setup.region.start) / 64).max(2 * sector);
        let largest = 1 << largest.ilog2();
        vec![Cell::new("ladder", &[("largest", largest as i64), ("smallest", sector as i64)])]
    }

    fn wants(&self, cell: &Cell, run: &Run) -> bool {
        let passes = run.trials(cell.id).len();
        // A third pass where the sizes scatter.
        let scatter = || by_size(run).values().filter(|t| mad(t) > 0.05 * median(t)).count();
        passes < 2 || (passes < 4 && scatter() > 5)
    }

    fn trial(&self, cell: &Cell, _n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let (largest, smallest) = (cell.bytes("largest"), cell.bytes("smallest"));
        let sizes: Vec<u64> = alignments(smallest, largest).into_iter().rev().filter(|s| s.is_multiple_of(smallest)).collect();
        let need: u64 = sizes.iter().map(|&s| s * writes_of(s)).sum();
        let unit = b.run.setting("erase_block").filter(|&e| e >= 64 * KIB).unwrap_or(3 * MIB).max(largest);
        let phase = b.run.setting("erase_block_offset").unwrap_or(0);
        let room = (b.region.end - b.region.start).saturating_sub(need + 2 * unit) / unit;
        // Spread over the upper three quarters: the start may be a FAT zone.
        let k = room / 4 + b.below((room - room / 4).max(1));
        let mut at = b.region.start.saturating_sub(phase).next_multiple_of(unit) + phase + k * unit;
        if at + need > b.region.end {
            at = b.region.start.next_multiple_of(3 * largest);
        }
        for s in sizes {
            for _ in 0..writes_of(s) {
                if at + s <= b.region.end {
                    b.write(0, at, s)?;
                    at += s;
                }
            }
        }
        Ok(())
    }

    fn infer(&self, run: &Run) -> Vec<Finding> {
        let phase = run.setting("erase_block_offset").unwrap_or(0);
        let writes: Vec<Write> = run
            .cells
            .iter()
            .flat_map(|c| run.trials(c.id))
            // The first write of a pass opens the AU.
            .flat_map(|t| {
                t.iter().skip(1).map(|s| Write { at: s.at.wrapping_sub(phase), len: s.len, us: s.took.micros() }).collect::<Vec<_>>()
            })
            .collect();
        vec![judge(&writes)]
    }

    fn figures(&self, run: &Run) -> Vec<Figure> {
        let points: Vec<(f64, f64, f64, f64)> = by_size(run)
            .iter()
            .map(|(&s, t)| {
                let [low, high] = bootstrap_median(t).unwrap_or([f64::NAN; 2]);
                (s as f64, median(t) / 1e3, low / 1e3, high / 1e3)
            })
            .collect();
        vec![Figure {
            title: "time of one linear write".into(),
            x: "size of the write".into(),
            y: "ms".into(),
            log_x: true,
            log_y: true,
            series: Series::with_bounds("median", &points),
        }]
    }
}

/// Writes a pass makes of a size. Threes of 2^k and an even number of 3*2^k keep every write aligned to its own size.
fn writes_of(size: u64) -> u64 {
    match (size.is_power_of_two(), size > 64 * KIB) {
        (true, true) => 3,
        (false, true) => 2,
        (true, false) => 6,
        (false, false) => 4,
    }
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

#[derive(Clone, Copy, Debug)]
struct Write {
    /// Position from the first erase block.
    at: u64,
    len: u64,
    us: f64,
}

impl Write {
    fn units(&self, u: u64) -> u64 {
        (self.at + self.len - 1) / u - self.at / u + 1
    }

    /// Fixed, per unit touched, per KiB moved, per unit's worth of old data read back (Q14: 4.89 falls to 4.45 ms).
    fn features(&self, u: u64, fill: bool) -> [f64; 4] {
        let n = self.units(u) as f64;
        [1.0, n, self.len as f64 / KIB as f64, if fill { n - self.len as f64 / u as f64 } else { 0.0 }]
    }
}

fn judge(writes: &[Write]) -> Finding {
    const Q: Quantity = Quantity::WriteUnit;
    let mut sizes: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for w in writes {
        sizes.entry(w.len).or_default().push(w.us);
    }
    if sizes.len() < 6 || sizes.values().any(|t| median(t) <= 0.0) {
        return Finding::undecided(Q, if sizes.len() < 6 { "too few sizes were written" } else { "writes take no time" });
    }
    let smallest = *sizes.keys().next().unwrap_or(&512);
    let largest = *sizes.keys().last().unwrap_or(&512);
    // Noise of one write, relative: what sizes scatter by, at least 1.5 %.
    let scatter: Vec<f64> = sizes.values().map(|t| mad(t) / median(t)).collect();
    let noise = median(&scatter).max(0.015);
    let chi2 = |u: u64| -> f64 {
        [false, true]
            .map(|fill| {
                let rows: Vec<([f64; 4], f64, f64)> = writes.iter().map(|w| (w.features(u, fill), w.us, noise * w.us)).collect();
                fit(&rows) + if fill { 4.0 } else { 0.0 }
            })
            .into_iter()
            .fold(f64::INFINITY, f64::min)
    };
    // Three planes of 4 KiB are the smallest unit with a three in it.
    let units = sizes.keys().filter(|u| **u < largest && (u.is_power_of_two() || **u >= 12 * KIB));
    let candidates: Vec<(u64, f64)> = units.map(|&u| (u, chi2(u))).collect();
    let best = candidates.iter().map(|c| c.1).fold(f64::INFINITY, f64::min);
    // The model is crude and writes are alike: temper the likelihood by how badly the best one fits.
    let temper = (best / writes.len() as f64).max(1.0) * 2.0 * (writes.len() as f64 / 40.0).max(1.0);
    let mut weights: Vec<(u64, f64)> = candidates.iter().map(|&(s, c)| (s, (-(c - best) / temper).exp())).collect();
    let sum: f64 = weights.iter().map(|w| w.1).sum();
    weights.iter_mut().for_each(|w| w.1 /= sum);
    weights.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (unit, p) = weights[0];
    let at = |s: u64| sizes.get(&s).map_or(f64::NAN, |t| median(t) / 1e3);
    let mut shown = vec![smallest, unit, unit * 2];
    shown.dedup();
    let times: Vec<String> =
        shown.iter().filter(|s| sizes.contains_key(s)).map(|&s| format!("{} ms at {}", three(at(s)), Bytes(s))).collect();
    let text = format!("one write takes {}", times.join(", "));
    // Small linear writes that are combined: most cost next to nothing and some pay for all.
    let combined = sizes.iter().filter(|s| *s.0 <= unit.max(16 * KIB)).find(|(_, t)| {
        // A stall is one in many; here one in every few pays, and each about the same.
        let slow: Vec<f64> = t.iter().copied().filter(|x| *x > 3.0 * median(t)).collect();
        t.len() >= 8 && slow.len() >= 2 && slow.len() * 12 >= t.len() && mad(&slow) < 0.3 * median(&slow)
    });
    if let Some((s, _)) = combined {
        return Finding::undecided(Q, format!("linear writes of {} are combined: most cost little and some pay for all", Bytes(*s)))
            .evidence(text);
    }
    if unit == smallest || best > 12.0 * writes.len() as f64 {
        let why = if unit == smallest {
            "the time of a write rises evenly with its size: no unit shows"
        } else {
            "the times of writes follow no unit"
        };
        return Finding::undecided(Q, why).evidence(text);
    }
    if p < 0.5 {
        return Finding::undecided(Q, format!("the knee may lie at {} or {}", Bytes(unit), Bytes(weights[1].0))).evidence(text);
    }
    Finding::decided(Q, unit as f64, p.min(0.97))
        .rivals(weights.iter().skip(1).take(3).map(|&(s, p)| (s as f64, p)).filter(|r| r.1 > 0.005))
        .evidence(text)
}

/// Chi squared of weighted least squares with coefficients that are not negative, capped at 16 a write, so that a stall or
/// an AU that opens in the middle of a pass weighs no more than that.
fn fit(rows: &[([f64; 4], f64, f64)]) -> f64 {
    let mut keep: Vec<bool> = vec![true; rows.len()];
    let mut x = [0.0f64; 4];
    for _ in 0..3 {
        let (mut aa, mut at) = ([[0.0f64; 4]; 4], [0.0f64; 4]);
        for (r, _) in rows.iter().zip(&keep).filter(|r| *r.1) {
            for (i, row) in aa.iter_mut().enumerate() {
                at[i] += r.0[i] * r.1 / (r.2 * r.2);
                row.iter_mut().zip(r.0).for_each(|(a, x)| *a += r.0[i] * x / (r.2 * r.2));
            }
        }
        x = [0.0; 4];
        for _ in 0..2000 {
            let before = x;
            for k in 0..4 {
                if aa[k][k] > 0.0 {
                    let rest: f64 = (0..4).filter(|&j| j != k).map(|j| aa[k][j] * x[j]).sum();
                    x[k] = ((at[k] - rest) / aa[k][k]).max(0.0);
                }
            }
            if (0..4).all(|k| (x[k] - before[k]).abs() <= 1e-10 * x[k].abs()) {
                break;
            }
        }
        let left = |r: &([f64; 4], f64, f64)| (r.1 - (0..4).map(|j| r.0[j] * x[j]).sum::<f64>()) / r.2;
        // Outliers above only: nothing makes a write faster than the card is.
        keep = rows.iter().map(|r| left(r) < 6.0).collect();
    }
    rows.iter().map(|(a, t, e)| ((t - (0..4).map(|j| a[j] * x[j]).sum::<f64>()) / e).powi(2).min(16.0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two passes of the ladder over a card whose write takes `f(position, length)` microseconds.
    fn ladder(f: impl Fn(u64, u64) -> f64) -> Vec<Write> {
        let mut out = vec![];
        for pass in 0..2u64 {
            let mut at = pass * (48 << 20);
            for s in alignments(512, 256 * KIB).into_iter().rev().filter(|s| s.is_multiple_of(512)) {
                for i in 0..writes_of(s) {
                    assert!(at.is_multiple_of(s), "{s} at {at}");
                    out.push(Write { at, len: s, us: f(at, s) * (1.0 + 0.003 * (i % 3) as f64) });
                    at += s;
                }
            }
        }
        out
    }

    /// Q14: the Toshiba eMMC, milliseconds per write.
    #[test]
    fn toshiba_writes_32_kib_as_one() {
        let ms = [(18, 25.5), (17, 12.9), (16, 6.7), (15, 3.85), (14, 4.45), (13, 4.76), (12, 4.89), (11, 4.91), (10, 4.92), (9, 4.93)];
        let at =
            |s: u64| 1e3 * ms.iter().find(|m| m.0 == s.next_power_of_two().ilog2()).unwrap().1 * s as f64 / s.next_power_of_two() as f64;
        let all: Vec<Write> = ladder(|_, s| at(s)).into_iter().filter(|w| w.len.is_power_of_two()).collect();
        let f = judge(&all);
        assert_eq!(f.number(), Some(32768.0), "{f:?}");
    }

    #[test]
    fn a_staircase_shows_its_unit_and_a_line_does_not() {
        for unit in [4 * KIB, 16 * KIB, 24 * KIB, 48 * KIB, 64 * KIB] {
            let f = judge(&ladder(|at, s| 300.0 + ((at + s - 1) / unit - at / unit + 1) as f64 * 900.0 + s as f64 / 20.0));
            assert_eq!(f.number(), Some(unit as f64), "{f:?}");
        }
        let f = judge(&ladder(|_, s| 1500.0 + s as f64 / 20.0));
        assert!(f.value.is_none(), "{f:?}");
    }

    #[test]
    fn stalls_do_not_move_the_unit() {
        let mut w = ladder(|at, s| 300.0 + ((at + s - 1) / 16384 - at / 16384 + 1) as f64 * 900.0 + s as f64 / 20.0);
        for i in (7..w.len()).step_by(29) {
            w[i].us += 190_000.0;
        }
        assert_eq!(judge(&w).number(), Some(16384.0));
    }

    #[test]
    fn combined_small_writes_leave_it_open() {
        let w = ladder(|at, s| if s < 16384 && !(at + s).is_multiple_of(16384) { 60.0 } else { 2500.0 + s as f64 / 10.0 });
        assert!(judge(&w).value.is_none());
    }
}
