//! How well units explain the times of writes, and where they begin: at the start of the disk, or elsewhere where erase blocks are not known to.

use super::model::{Count, Fill, SECTOR, Write, fit, step};

/// Chi squared that each halving of the step has to be worth: one of two places is one more bit.
const HALVING: f64 = 2.0;

/// The writes to be explained, and their noise as a part of their time.
pub(super) struct Fits<'a> {
    pub writes: &'a [Write],
    pub noise: f64,
}

/// Units of one size, as they fit best.
#[derive(Clone, Copy)]
pub(super) struct Begin {
    pub unit: u64,
    /// Bytes that the host cuts at.
    piece: u64,
    count: Count,
    /// Bytes from the start of the disk.
    pub phase: u64,
    /// With the price of what is supposed.
    pub chi2: f64,
}

impl Fits<'_> {
    /// Each way to count, and each other place to begin, is one more chance to fit by luck.
    fn one(&self, unit: u64, piece: u64, phase: u64, count: Count, fill: Fill) -> f64 {
        let price = fill.price() + 4.0 * (!Count::PLAIN.contains(&count) as u32 + 2 * (phase != 0) as u32) as f64;
        let row = |w: &Write| (w.behind(unit, phase).features(unit, piece, count, fill), w.us, self.noise * w.us);
        fit(&self.writes.iter().map(row).collect::<Vec<_>>()) + price
    }

    /// The best of these places, counts and fills.
    pub(super) fn best(&self, unit: u64, piece: u64, phases: &[u64], counts: &[Count], fills: &[Fill]) -> Begin {
        let mut best = Begin { unit, piece, count: Count::Touched, phase: 0, chi2: f64::INFINITY };
        for &phase in phases {
            for &count in counts {
                for &fill in fills.iter().filter(|f| f.below(unit)) {
                    let chi2 = self.one(unit, piece, phase, count, fill);
                    if chi2 < best.chi2 {
                        best = Begin { count, phase, chi2, ..best };
                    }
                }
            }
        }
        best
    }

    /// Between the places of [`super::model::phases`], too: halves their step down to a sector.
    pub(super) fn between(&self, begin: Begin) -> Begin {
        let Begin { unit, piece, count, .. } = begin;
        let (mut best, mut price, mut step) = (begin, 0.0, step(unit).min(unit) / 2);
        while step >= SECTOR {
            price += HALVING;
            for phase in [(best.phase + unit - step) % unit, (best.phase + step) % unit] {
                let chi2 = Fill::PLAIN.iter().map(|&f| self.one(unit, piece, phase, count, f) + price).fold(f64::INFINITY, f64::min);
                if chi2 < best.chi2 {
                    best = Begin { phase, chi2, ..best };
                }
            }
            step /= 2;
        }
        best
    }
}
