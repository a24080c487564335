//! What random writes take longer than the same once more, over the window they fall in: `c * (1 - C / W)` beyond the `C` bytes whose map
//! is kept, whichever piece makes room, and nothing below.

use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::pipeline::{Analysis, Fit};
use crate::finding::{Finding, Quantity};
use crate::infer::stats::mean;
use crate::samples::{Cell, Run};
use crate::units::{Bytes, MIB};

/// Judges runs of `map-window-write`.
pub struct MapWindowWrite;

pub(super) const ANALYSES: &[&dyn Analysis] = &[&MapWindowWrite];

/// Roles: writes that load the map, at random places of the window, and there once more (beside them in older runs).
pub const LOAD: u8 = 0;
pub const FAR: u8 = 1;
pub const NEAR: u8 = 2;

/// The smallest window.
pub const SMALLEST: u64 = MIB / 2;

/// One in so many, the longest, counts as a stall.
const STALLS: usize = 25;
/// Where there are no stalls those are misses: half of them are, give or take as many.
const MISSES: f64 = 0.5 / STALLS as f64;
/// A miss that costs less does not show, µs.
const SHOWS: f64 = 15.0;
/// And no more than this, µs: what costs more is a merge.
const MOST: f64 = 6000.0;
/// A write that takes longer, µs, is so long on the bus that the card may fetch and save its map meanwhile.
pub const SLOW_BUS: f64 = 5000.0;
/// How far chi squared may lie above its least for a window to be possible.
const WITHIN: f64 = 6.0;
/// Bounds that lie further apart than this factor name no window.
const APART: f64 = 2.2;
/// Chi squared for each window, above which the shape is another.
const FITS: f64 = 4.0;

/// A window about as large as the map in memory misses for long what a card that evicts any piece keeps of the windows before: with a share x of those left, a
/// miss removes one with the chance x, so that after n passes 1 / (2 + n) is left. One that evicts the oldest has none of it. So such a window, within
/// this factor, counts with an error of so much of the largest cost.
const LIKE_THE_MAP: f64 = 4.0 / 3.0;
const LEFT: f64 = 0.125;

/// It grows where it is this part of the most above the smallest window.
const BEGUN: f64 = 0.2;

/// Of one window: bytes, µs that accesses took longer, and its standard error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub window: f64,
    pub longer: f64,
    pub error: f64,
}

/// Mean and squared standard error of all but the longest.
fn usual(mut t: Vec<f64>) -> Option<(f64, f64)> {
    t.sort_by(f64::total_cmp);
    t.truncate(t.len() - t.len() / STALLS);
    if t.len() < 64 {
        return None;
    }
    let m = mean(&t);
    let variance = t.iter().map(|x| (x - m).powi(2)).sum::<f64>() / t.len() as f64;
    Some((m, variance / t.len() as f64))
}

/// What this many standard errors lie below 0 is no chance.
const CLEAR: f64 = 6.0;

/// By size of the window, and µs of a write whose map is at hand. A reader that hands on a write when the next one comes shows the cost of the first in
/// the time of the second: the two change places then.
fn points(run: &Run) -> (Vec<Point>, f64) {
    let mut near = vec![];
    let mut one = |c: &Cell| {
        let (far, there) = (usual(run.micros(c, FAR))?, usual(run.micros(c, NEAR))?);
        near.push(there.0);
        // Pairs of equal writes are not alike to less than a few µs.
        Some(Point { window: c.bytes("window") as f64, longer: far.0 - there.0, error: (far.1 + there.1 + 4.0).sqrt() })
    };
    let mut out: Vec<Point> = run.cells.iter().filter_map(&mut one).collect();
    nandscope_stats::ascending(&mut out, |a| a.window);
    let usual = mean(&near);
    let least = out.iter().min_by(|a, b| a.longer.total_cmp(&b.longer));
    let most = out.iter().map(|p| p.longer).fold(0.0, f64::max);
    if least.is_some_and(|p| p.longer < -SHOWS.max(CLEAR * p.error) && -p.longer > 4.0 * most) {
        out.iter_mut().for_each(|p| p.longer = -p.longer);
    }
    with_misses(&mut out);
    (out, usual)
}

/// Counts the misses among what was left out as stalls. Where hardly anything took longer there were none.
fn with_misses(all: &mut [Point]) {
    let most = all.iter().map(|p| p.longer).fold(0.0, f64::max);
    for p in all {
        p.error = p.error.hypot(MISSES * most);
        if p.longer > 2.0 * MISSES * most {
            p.longer += MISSES * (most - p.longer);
        }
    }
}

/// The largest window in which writes took no longer than in the smaller ones, and the next one, in which they did; between those the map
/// is too large. `None` where they never did.
pub fn grows_from(run: &Run) -> Option<(u64, u64)> {
    let (all, _) = points(run);
    let base = all.first()?;
    let most = all.iter().max_by(|a, b| a.longer.total_cmp(&b.longer))?;
    let rise = most.longer - base.longer;
    if rise < (4.0 * most.error.hypot(base.error)).max(SHOWS) {
        return None;
    }
    let i = (1..all.len()).find(|&i| all[i].longer > base.longer + BEGUN * rise)?;
    Some((all[i - 1].window as u64, all[i].window as u64))
}

/// Chi squared of a window `at`, and the cost of a miss and what every far write takes longer that fit best.
pub(super) fn fit(all: &[Point], at: f64) -> (f64, f64, f64) {
    let share = |p: &Point| (1.0 - at / p.window).max(0.0);
    let most = all.iter().map(|p| p.longer).fold(0.0, f64::max);
    let error = |p: &Point| {
        let alike = (at / LIKE_THE_MAP..at * LIKE_THE_MAP).contains(&p.window);
        if alike { p.error.hypot(LEFT * most) } else { p.error }
    };
    let [mut w, mut x, mut y, mut xx, mut xy] = [0.0; 5];
    for p in all {
        let (k, s) = (error(p).powi(-2), share(p));
        w += k;
        x += k * s;
        y += k * p.longer;
        xx += k * s * s;
        xy += k * s * p.longer;
    }
    let down = w * xx - x * x;
    let cost = if down > 0.0 { (w * xy - x * y) / down } else { 0.0 };
    let base = (y - cost * x) / w;
    let chi = all.iter().map(|p| ((p.longer - base - cost * share(p)) / error(p)).powi(2)).sum();
    (chi, cost, base)
}

/// The least and the largest that fit nearly as well as the best.
pub(super) fn possible(tried: &[(f64, (f64, f64, f64))], at: f64, chi: f64, slack: f64) -> [f64; 2] {
    let fits = tried.iter().filter(|t| t.1.0 - chi < WITHIN * slack).map(|t| t.0);
    fits.fold([at, at], |b, p| [b[0].min(p), b[1].max(p)])
}

/// What fits, of windows from one to another: 24 steps an octave.
pub(super) fn tried(all: &[Point], from: f64, to: f64) -> Vec<(f64, (f64, f64, f64))> {
    let steps = (to / from).log2() * 24.0;
    let at = (0..steps as i32).map(|i| from * (f64::from(i) / 24.0).exp2());
    at.map(|at| (at, fit(all, at))).filter(|t| t.1.1 > 0.0).collect()
}

impl Analysis for MapWindowWrite {
    fn name(&self) -> &'static str {
        "map-window-write"
    }

    fn fit(&self) -> Fit {
        Fit::Today
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        let (q, miss) = (Quantity::MapWindowWrite, Quantity::MapMissWriteUs);
        let (all, near) = points(run);
        if all.len() < 3 {
            let why = "too few windows were written (a larger region, more --time or --writes would decide)";
            return vec![Finding::undecided(q, why)];
        }
        let text = all.iter().map(|p| format!("{} {:.0} µs", Bytes(p.window as u64), p.longer)).collect::<Vec<_>>().join(", ");
        let text = format!("writes at random places of a window took longer than the same once more by: {text}");
        let largest = all[all.len() - 1].window;
        let tried = tried(&all, SMALLEST as f64 / 2.0, largest);
        // What every window scatters by must be less than a miss.
        let blur = all.iter().map(|p| 3.0 * p.error).fold(0.0, f64::max);
        let none = || {
            if blur > SHOWS {
                let why = format!("what writes scatter by ({blur:.0} µs) may hide what the map costs");
                return vec![Finding::undecided(q, why).evidence(text.clone())];
            }
            if near > SLOW_BUS {
                let why = format!("a write takes {:.1} ms here: what the map costs may be done meanwhile", near / 1e3);
                return vec![Finding::undecided(q, why).evidence(text.clone())];
            }
            if let Some(reads) = run.believed.number(Quantity::MapWindowRead).filter(|c| 2.0 * c <= largest) {
                let why = format!("reads miss their map beyond {}, and writes do not show it", Bytes(reads as u64));
                return vec![Finding::undecided(q, why).evidence(text.clone())];
            }
            let why = format!("no window that was written was too large, up to {}", Bytes(largest as u64));
            vec![Finding::at_least(q, largest, 0.8, why).evidence(text.clone())]
        };
        let Some(best) = tried.iter().min_by(|a, b| a.1.0.total_cmp(&b.1.0)) else { return none() };
        let (at, (chi, cost, _)) = *best;
        let flat = fit(&all, 2.0 * largest).0;
        if flat - chi < 25.0 || cost * (1.0 - at / largest).max(0.0) < SHOWS {
            return none();
        }
        let grows = |why: &str| vec![Finding::undecided(q, why).evidence(text.clone())];
        if cost > MOST {
            return grows(
                "random writes take longer the wider they are spread, by more than fetching a translation page would: merges, or collected garbage",
            );
        }
        let slack = (chi / all.len() as f64).max(1.0);
        if slack > 10.0 * FITS {
            return grows("what random writes take longer does not grow with the window as misses of a map would");
        }
        let [low, high] = possible(&tried, at, chi, slack);
        if high / low > APART {
            return grows("the windows that were written fit maps of very different size");
        }
        if at < 1.05 * SMALLEST as f64 / 2.0 {
            return grows("even the smallest window that was written was too large");
        }
        let score = if slack < FITS { 0.9 } else { 0.75 };
        let f = Finding { interval: Some([low, high]), ..Finding::decided(q, at.round(), score).evidence(text.clone()) };
        let cost = Finding { interval: Some([cost * 0.85, cost * 1.15]), ..Finding::decided(miss, cost, score.min(0.85)).evidence(text) };
        vec![f, cost]
    }

    fn figures(&self, run: &Case) -> Vec<Figure> {
        let (all, near) = points(run);
        if all.is_empty() {
            return vec![];
        }
        vec![Figure {
            title: "random writes over the window they fall in".into(),
            x: "MiB".into(),
            y: "IOPS".into(),
            log_x: true,
            log_y: false,
            series: vec![Series {
                name: "random writes".into(),
                points: all.iter().map(|p| (p.window / MIB as f64, 1e6 / (near + p.longer).max(1.0))).collect(),
            }],
        }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 200 writes 50 miss, and eight are left out: without stalls these are misses, with eight stalls none is.
    #[test]
    fn misses_left_out_as_stalls_are_counted_within_the_error() {
        for stalls in [0, 4, 8] {
            let t = [vec![9e4; stalls], vec![400.0; 50], vec![0.0; 150]].concat();
            let (longer, square) = usual(t).unwrap();
            let mut all = [(1e6, 0.0), (2e6, longer), (1e9, 400.0)].map(|(window, longer)| Point { window, longer, error: square.sqrt() });
            with_misses(&mut all);
            assert!((all[1].longer - 100.0).abs() < 1.1 * MISSES * 400.0, "{stalls}: {}", all[1].longer);
            assert_eq!((all[0].longer, all[2].longer), (0.0, 400.0));
        }
    }

    #[test]
    fn the_window_and_the_cost_come_back() {
        let all: Vec<Point> = (0..12)
            .map(|k| SMALLEST as f64 * f64::from(1 << k))
            .map(|w| Point { window: w, longer: 12.0 + 150.0 * (1.0 - 96e6 / w).max(0.0), error: 3.0 })
            .collect();
        let best = (0..400).map(|i| 1e6 * (f64::from(i) / 40.0).exp2()).min_by(|a, b| fit(&all, *a).0.total_cmp(&fit(&all, *b).0)).unwrap();
        assert!((best / 96e6 - 1.0).abs() < 0.03, "{best}");
        assert!((fit(&all, best).1 - 150.0).abs() < 6.0);
    }

    /// A window as large as the map still misses what was kept of those before it, on a card that evicts any piece; on one that evicts the oldest it does not.
    #[test]
    fn what_is_left_of_other_windows_does_not_count() {
        for left in [0.0, 0.1, 0.2] {
            let share = |k: i32| if k == 0 { left } else { (1.0 - (-f64::from(k)).exp2()).max(0.0) };
            let all: Vec<Point> = (-4..5)
                .map(|k| Point { window: 256e6 * f64::from(k).exp2(), longer: 800.0 * if k < 0 { 0.0 } else { share(k) }, error: 8.0 })
                .collect();
            let tried = tried(&all, 1e6, 4e9);
            let (at, (chi, ..)) = *tried.iter().min_by(|a, b| a.1.0.total_cmp(&b.1.0)).unwrap();
            let [low, high] = possible(&tried, at, chi, 1.0);
            assert!(low <= 256e6 && 256e6 <= high && high < 1.6 * low, "{left}: {at} {low} {high}");
        }
    }
}
