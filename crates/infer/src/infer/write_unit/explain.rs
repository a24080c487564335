//! How well units of each size explain the times of writes: what is plain first, and where that does not, what is less usual.

use super::begins::{Begin, Fits};
use super::model::*;
use super::{bus, speeds};
use crate::infer::steps::alignments;
use std::collections::BTreeMap;

/// The plain way explains the times where it leaves no more than this chi squared of a write, on average: nothing else is asked then.
const PLAINLY: f64 = 0.5;

/// Chi squared of a write at most, on average, by what explains the times in an unusual way.
const WELL: f64 = 2.0;

/// The same, by pages of several speeds, or where the fit is taken for small writes that are gathered.
pub(super) const EXPLAINED: f64 = 6.0;

/// Chi squared that units behind a bus have to be worth.
const HIDDEN: f64 = 10.0;

/// So many units are looked at between the places of [`phases`]: erase blocks may begin at any sector where the card is behind a reader.
const BEGIN_BETWEEN: usize = 4;

/// What explains the times best.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Way {
    /// Units that cost the same.
    Units,
    /// Pages of several speeds, by how much writes of one size differ.
    Speeds,
    /// Pages of several speeds, by their places.
    Places,
    /// Units, and a bus that holds up long writes.
    Bus,
}

/// How well each size explains the times.
pub(super) struct Explained {
    /// Bytes of a unit, and chi squared.
    pub candidates: Vec<(u64, f64)>,
    /// Chi squared of the best plain way: units that begin where erase blocks do.
    pub plainly: f64,
    pub way: Way,
    /// The bus explains them as well without units.
    pub hidden: bool,
    /// Units that begin elsewhere.
    off_grid: Vec<u64>,
    /// For each size that hosts may cut at: chi squared of each unit.
    cut: Vec<(u64, Vec<(u64, f64)>)>,
}

/// The lowest chi squared.
pub(super) fn least(candidates: &[(u64, f64)]) -> f64 {
    candidates.iter().map(|c| c.1).fold(f64::INFINITY, f64::min)
}

impl Explained {
    /// `sizes`: microseconds by length; `noise` is a part of a time; `placed`: it is known where erase blocks begin, and positions count from there;
    /// `block`: bytes of an erase block, if known.
    pub(super) fn of(writes: &[Write], sizes: &BTreeMap<u64, Vec<f64>>, noise: f64, placed: bool, block: Option<u64>) -> Explained {
        let fits = Fits { writes, noise };
        let units = units(sizes);
        let cut = cuts(&fits, &units);
        // A host that cuts at a size looks like a unit of that size.
        let any = |i: usize| (units[i], cut.iter().map(|c| c.1[i].1).fold(f64::INFINITY, f64::min));
        let candidates: Vec<(u64, f64)> = (0..units.len()).map(any).collect();
        let plainly = least(&candidates);
        let mut e = Explained { candidates, plainly, way: Way::Units, hidden: false, off_grid: vec![], cut };
        let by_speed = speeds::by_speed(writes, sizes);
        let badly = plainly > PLAINLY * writes.len() as f64;
        if let Some(found) = by_speed {
            (e.candidates, e.way) = (found, Way::Speeds);
        } else if badly {
            e.elsewhere(&fits, placed);
        }
        if badly {
            e.behind_bus(bus::bus(writes, sizes, noise, &units), &units, writes.len());
            e.by_place(speeds::by_place(writes, noise, &units, block), writes.len());
        }
        e
    }

    /// Units that begin where erase blocks are not known to.
    fn elsewhere(&mut self, fits: &Fits, placed: bool) {
        let piece = self.cut.iter().min_by(|a, b| least(&a.1).total_cmp(&least(&b.1))).map_or(u64::MAX, |c| c.0);
        // What looks like a cut may be the second unit that a write touches.
        let pieces = if piece == u64::MAX { vec![piece] } else { vec![piece, u64::MAX] };
        // A host that cuts where a unit seems to end, and larger units that begin elsewhere.
        let unusual: Vec<u64> = self.cut.iter().map(|c| c.0).filter(|c| *c != piece && !PIECES.contains(c)).collect();
        let mut begins: Vec<Begin> = vec![];
        for u in self.candidates.iter().map(|c| c.0).collect::<Vec<u64>>() {
            let places = phases(u, placed);
            for &piece in &pieces {
                let b = fits.best(u, piece, &places, &Count::ALL, &Fill::PLAIN);
                self.lower(&b, 0.0);
                begins.push(b);
            }
            for &cut in unusual.iter().filter(|c| **c < u) {
                self.lower(&fits.best(u, cut, &places, &Count::PLAIN, &Fill::PLAIN), UNUSUAL_CUT);
            }
        }
        if !placed {
            begins.sort_by(|a, b| a.chi2.total_cmp(&b.chi2));
            begins.into_iter().take(BEGIN_BETWEEN).for_each(|b| self.lower(&fits.between(b), 0.0));
        }
    }

    fn lower(&mut self, b: &Begin, price: f64) {
        let Some(c) = self.candidates.iter_mut().find(|c| c.0 == b.unit && b.chi2 + price < c.1) else { return };
        c.1 = b.chi2 + price;
        self.off_grid.retain(|u| *u != b.unit);
        if b.phase != 0 {
            self.off_grid.push(b.unit);
        }
    }

    /// A bus that takes longer than the flash does.
    fn behind_bus(&mut self, bus: Option<bus::Bus>, units: &[u64], writes: usize) {
        let most = least(&self.candidates).min(WELL * writes as f64);
        let Some(b) = bus.filter(|b| b.units.iter().copied().fold(b.none, f64::min) < most) else { return };
        self.candidates = units.iter().copied().zip(b.units).collect();
        (self.way, self.hidden) = (Way::Bus, b.none < least(&self.candidates) + HIDDEN);
        self.off_grid.clear();
    }

    fn by_place(&mut self, found: Vec<(u64, f64)>, writes: usize) {
        if least(&found) >= least(&self.candidates).min(EXPLAINED * writes as f64) {
            return;
        }
        for (page, chi2) in found {
            match self.candidates.iter_mut().find(|c| c.0 == page) {
                Some(c) => c.1 = c.1.min(chi2),
                None => self.candidates.push((page, chi2)),
            }
        }
        (self.way, self.hidden) = (Way::Places, false);
        self.off_grid.clear();
    }

    pub(super) fn off_grid(&self, unit: u64) -> bool {
        self.off_grid.contains(&unit)
    }

    /// Would a host that cuts requests to that length look the same?
    pub(super) fn cuts(&self, unit: u64) -> bool {
        let best = least(&self.candidates);
        self.cut.iter().filter(|c| c.0 == unit && !PIECES.contains(&unit)).any(|c| least(&c.1) - UNUSUAL_CUT < best + 4.0)
    }
}

/// Bytes that a unit may have; the last three are more than was written at once.
fn units(sizes: &BTreeMap<u64, Vec<f64>>) -> Vec<u64> {
    let smallest = *sizes.keys().next().unwrap_or(&512);
    let largest = *sizes.keys().last().unwrap_or(&512);
    let units = alignments(smallest, largest).into_iter().filter(|u| *u < largest && is_unit(*u));
    units.chain([largest, largest / 2 * 3, largest * 2]).collect()
}

/// For each size that the host may cut at, and each thing that a write may read first: chi squared of each unit.
fn cuts(fits: &Fits, units: &[u64]) -> Vec<(u64, Vec<(u64, f64)>)> {
    let largest = units[units.len() - 3];
    let with = |piece: u64, fills: &[Fill]| -> (u64, Vec<(u64, f64)>) {
        let price = match piece {
            u64::MAX => 0.0,
            _ if PIECES.contains(&piece) => 12.0,
            _ => UNUSUAL_CUT,
        };
        // Where both explain the times alike, powers of two are more usual than three planes.
        let of = |u: u64| fits.best(u, piece, &[0], &Count::PLAIN, fills).chi2 + price + if u.is_power_of_two() { 0.0 } else { 4.0 };
        (piece, units.iter().map(|&u| (u, of(u))).collect())
    };
    let plain = |&piece: &u64| with(piece, &Fill::PLAIN);
    let mut cut: Vec<(u64, Vec<(u64, f64)>)> = PIECES.iter().filter(|&&p| p < largest || p == u64::MAX).map(plain).collect();
    // Any host may cut at what looks like a unit, whatever its size.
    for _ in 0..3 {
        let looks = cut.iter().flat_map(|c| &c.1).min_by(|a, b| a.1.total_cmp(&b.1)).map_or(largest, |c| c.0);
        if looks >= largest || cut.iter().any(|c| c.0 == looks) {
            break;
        }
        cut.push(plain(&looks));
    }
    let n = fits.writes.len() as f64;
    if cut.iter().map(|c| least(&c.1)).fold(f64::INFINITY, f64::min) > PLAINLY * n {
        let pieces: Vec<u64> = cut.iter().map(|c| c.0).collect();
        cut.extend(pieces.iter().map(|&piece| with(piece, &Fill::MAPPED)));
        let fresh = pieces.iter().map(|&piece| with(piece, &Fill::FRESH));
        cut.extend(fresh.filter(|c| least(&c.1) < WELL * n));
    }
    cut
}
