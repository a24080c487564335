//! A row of boundaries at equal distances, each known to lie between two places: what the distance may be, and where the next
//! look says most. Positions and distances in bytes.

use super::lattice;
use std::ops::Range;

/// Between the end of the last access before a boundary and the end of the one that crossed or reached it.
pub type Between = (u64, u64);

/// Of two slow writes beside one boundary, of which one took so many times as long as the other, the other may be a pause of the host, or the
/// first one is: nothing says where between them the boundary lies.
const FAR_LESS: f64 = 2.0;

/// What is known of the row.
#[derive(Clone, Debug, PartialEq)]
pub struct Edges {
    /// Boundaries seen: their number in the row, and where.
    pub seen: Vec<(i64, Between)>,
    /// Least and largest distance that all boundaries seen allow.
    pub period: [f64; 2],
    /// Looks that found no boundary where the row has one.
    pub missed: Vec<i64>,
    /// Other boundaries that were written near to.
    pub visited: Vec<i64>,
    /// The walk that began it: boundaries on the row, expected there, and slow places off it.
    pub walk: lattice::Lattice,
    /// Where it went.
    pub window: Range<u64>,
}

impl Edges {
    /// Do boundaries `size` bytes apart lie where every `spacing` bytes from `from` on something was left open? `step`: how well the walk knows a place.
    pub fn at_left(&self, spacing: u64, from: u64, size: u64, step: u64) -> bool {
        let near = |at: u64| {
            let r = (at as i64 - from as i64).rem_euclid(spacing as i64) as u64;
            r.min(spacing - r) <= 2 * step
        };
        spacing > 0 && size.is_multiple_of(spacing) && self.seen.iter().all(|s| near(s.1.0) || near(s.1.1))
    }

    /// From the slow places of a walk over `window` in steps of `step`, and how long each took.
    pub fn walked(hits: &[Between], took: &[f64], window: Range<u64>, step: u64) -> Option<Edges> {
        let at: Vec<u64> = hits.iter().map(|h| h.1).collect();
        let walk = lattice::fit(&at, window.clone(), step)?;
        let place = |h: &Between| ((h.1 + walk.period - walk.phase) as f64 / walk.period as f64).round() as i64;
        let off = |h: &Between| {
            let r = (h.1 % walk.period + walk.period - walk.phase) % walk.period;
            r.min(walk.period - r)
        };
        let mut on: Vec<(i64, Between)> = vec![];
        let mut cost = 0.0;
        for (hit, took) in hits.iter().zip(took).filter(|(h, _)| off(h) <= step) {
            let here = on.last_mut().filter(|last| last.0 == place(hit));
            match here.filter(|_| took.max(cost) > FAR_LESS * took.min(cost)) {
                Some((_, near)) => (*near, cost) = ((near.0.min(hit.0), near.1.max(hit.1)), took.max(cost)),
                None => {
                    on.push((place(hit), *hit));
                    cost = *took;
                }
            }
        }
        let (first, anchor) = *on.first()?;
        let slack = 2.0 * step as f64;
        let period = [walk.period as f64 - slack, walk.period as f64 + slack];
        let mut edges = Edges { seen: vec![(0, anchor)], period, missed: vec![], visited: vec![], walk, window };
        for (k, between) in &on[1..] {
            // What does not fit the others was a pause beside the boundary.
            edges.look(k - first, Some(*between));
        }
        edges.missed.clear();
        Some(edges)
    }

    /// Between which places boundary `k` must lie.
    pub fn expect(&self, k: i64) -> [f64; 2] {
        let reach = |n: i64| [n as f64 * self.period[0], n as f64 * self.period[1]];
        self.seen.iter().fold([f64::NEG_INFINITY, f64::INFINITY], |a, (i, b)| {
            let r = reach(k - i);
            [a[0].max(b.0 as f64 + r[0].min(r[1])), a[1].min(b.1 as f64 + r[0].max(r[1]))]
        })
    }

    fn used(&self, k: i64) -> bool {
        self.seen.iter().map(|s| s.0).chain(self.missed.iter().chain(&self.visited).copied()).any(|m| (m - k).abs() < 3)
    }

    /// The farthest boundary inside `room`, on either side, that is known to within `width` and lies beside none seen before: AUs
    /// written lately may still be open.
    pub fn farthest(&self, width: f64, room: &Range<u64>) -> Option<i64> {
        let fits = |k: &i64| {
            let [lo, hi] = self.expect(*k);
            hi - lo <= width.min(0.4 * self.period[0]) && lo > room.start as f64 && hi < room.end as f64
        };
        let walked = |k: &i64| {
            let ([lo, hi], p) = (self.expect(*k), self.period[1]);
            hi > self.window.start as f64 - p && lo < self.window.end as f64 + p
        };
        let reach = (room.end as f64 / self.period[0].max(1.0)) as i64 + 1;
        let far = |sign: i64| {
            // Doubt grows with the distance: the last that fits, by halves.
            let (mut good, mut bad) = (0, reach + 1);
            while bad - good > 1 {
                let k = (good + bad) / 2;
                if fits(&(sign * k)) { good = k } else { bad = k }
            }
            (0..40).map(|i| sign * (good - i)).find(|k| k * sign > 0 && fits(k) && !walked(k) && !self.used(*k))
        };
        [far(1), far(-1)].into_iter().flatten().max_by_key(|k| k.abs())
    }

    /// A look at boundary `k`: it was seen between two places, or not. What contradicts the row counts as missed.
    pub fn look(&mut self, k: i64, found: Option<Between>) -> bool {
        let mut period = self.period;
        for (i, b) in found.iter().flat_map(|_| &self.seen).filter(|s| s.0 != k) {
            let (n, f) = ((k - i) as f64, found.unwrap_or_default());
            let (x, y) = ((f.0 as f64 - b.1 as f64) / n, (f.1 as f64 - b.0 as f64) / n);
            period = [period[0].max(x.min(y)), period[1].min(x.max(y))];
        }
        match found {
            Some(f) if period[0] < period[1] => {
                self.period = period;
                self.seen.push((k, f));
                true
            }
            _ => {
                self.missed.push(k);
                false
            }
        }
    }

    /// The row has `n` times as many boundaries.
    pub fn divide(&mut self, n: i64) {
        self.period = self.period.map(|p| p / n as f64);
        self.seen.iter_mut().for_each(|s| s.0 *= n);
        self.missed.iter_mut().chain(&mut self.visited).for_each(|m| *m *= n);
    }

    /// Boundaries between the two seen farthest apart.
    pub fn reach(&self) -> u64 {
        let ks = || self.seen.iter().map(|s| s.0);
        ks().max().unwrap_or(0).abs_diff(ks().min().unwrap_or(0))
    }

    /// The distance as a multiple of `unit` where only one fits; else the roundest, and `false`.
    pub fn size(&self, unit: u64) -> (u64, bool) {
        let (lo, hi) = (self.period[0].max(0.0), self.period[1]);
        let (first, last) = ((lo / unit as f64).floor() as u64 + 1, (hi / unit as f64).ceil() as u64 - 1);
        if first == last {
            return (first * unit, true);
        }
        (roundest(lo.ceil() as u64, hi.floor() as u64), false)
    }

    /// Between which two places, below the distance, boundaries begin; the first may be negative. `None`: the distance does not
    /// fit what was seen.
    pub fn phase(&self, size: u64) -> Option<(i64, i64)> {
        let size = size as i64;
        let (lo, hi) =
            self.seen.iter().fold((i64::MIN, i64::MAX), |a, (k, b)| (a.0.max(b.0 as i64 - k * size), a.1.min(b.1 as i64 - k * size)));
        let turns = (hi - 1).div_euclid(size) * size;
        (lo < hi).then_some((lo - turns, hi - turns))
    }
}

/// The multiple of the largest power of two between two sizes.
pub fn roundest(lo: u64, hi: u64) -> u64 {
    (0..50).rev().map(|k| hi >> k << k).find(|&v| v >= lo && v > 0).unwrap_or(hi)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roundest_prefers_few_bits() {
        assert_eq!(roundest(4_100_000, 4_300_000), 4 << 20);
        assert_eq!(roundest(12_500_000, 12_600_000), 12 << 20);
        assert_eq!(roundest(4_226_000, 4_228_000), 4128 << 10);
    }

    /// Boundaries at phase + k * period, seen by writes of `step` at multiples of it.
    fn seen(phase: u64, period: u64, k: u64, step: u64) -> Between {
        let at = (phase + k * period) / step * step;
        (at, at + step)
    }

    #[test]
    fn far_looks_name_an_odd_size_and_its_phase() {
        for (phase, period) in [(0u64, 4128u64 << 10), (96 << 10, 5 << 20), (63 * 512, 12 << 20), (1 << 20, 4 << 20)] {
            let step = 256u64 << 10;
            let hits: Vec<Between> = (10..15).map(|k| seen(phase, period, k, step)).collect();
            let mut e = Edges::walked(&hits, &[9.0; 5], hits[0].0..hits[4].1, step).unwrap();
            for step in [65536, 65536, 65536, 65536, 16384, 512, 512] {
                let Some(k) = e.farthest(20.0 * step as f64, &(0..4 << 30)).or(e.farthest(1e6, &(0..4 << 30))) else { panic!("{e:?}") };
                let [lo, hi] = e.expect(k);
                let truth = seen(phase, period, (10 + k) as u64, step);
                assert!(lo <= truth.1 as f64 && hi >= truth.0 as f64, "{lo} {hi} {truth:?}");
                assert!(e.look(k, Some(truth)), "{k} {truth:?} {e:?}");
            }
            assert_eq!(e.size(16 << 10), (period, true), "{e:?}");
            let (lo, hi) = e.phase(period).unwrap();
            assert!(lo <= phase as i64 && (phase as i64) < hi && hi - lo <= 512, "{lo} {hi} {phase}");
        }
    }

    #[test]
    fn a_pause_beside_a_boundary_does_not_move_the_row() {
        let (period, step) = (4u64 << 20, 64u64 << 10);
        // A merge shows two writes later at the latest; a pause in front of the twentieth boundary.
        let hit = |at: u64| (at - 2 * step, at + step / 4);
        let mut hits: Vec<Between> = (4..100).map(|k| hit(k * period)).collect();
        let mut took = vec![60.0; 97];
        hits.insert(20, hit(24 * period - step));
        took[20] = 6.0;
        let mut e = Edges::walked(&hits, &took, hits[0].0..hits[96].1, step).unwrap();
        for k in [240, 250, 260] {
            let at = (4 + k) * period;
            assert!(e.look(k as i64, Some((at - step / 4, at))), "{k} {e:?}");
        }
        assert_eq!(e.size(16 << 10), (period, true), "{e:?}");
    }

    #[test]
    fn what_contradicts_the_row_is_missed() {
        let hits: Vec<Between> = (0..5).map(|k| seen(0, 4 << 20, k, 65536)).collect();
        let mut e = Edges::walked(&hits, &[9.0; 5], 0..20 << 20, 65536).unwrap();
        let before = e.clone();
        assert!(!e.look(20, Some((81 << 20, (81 << 20) + 512))) && !e.look(23, None));
        assert_eq!((e.missed.len(), e.period), (2, before.period));
        e.divide(2);
        assert_eq!(e.size(65536), (2 << 20, true));
    }
}
