//! Do reads take longer, or shorter, in some stretch of the card? (F13, and flashbench's --scatter)
//!
//! Places spread evenly over the region are read in several passes, each in a new random order. The least time of a place
//! counts, so that stalls of the host do not show. A region is odd where several neighbours in a row differ from the usual
//! time by more than the scatter of neighbours, one way or the other, and do so in the first half of the passes and in the
//! second.
//!
//! What fools it: a card whose reads fall into two kinds everywhere (then neighbours scatter, and nothing is odd), stretches
//! smaller than a few places, a card of which half was never written (then either half may be called the odd one).

use super::{About, Bench, Experiment, Figure, Series, Setup};
use crate::device::DeviceError;
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{mad, median};
use crate::samples::{Cell, Run};
use crate::units::{Bytes, KIB, MIB, about, three};
use std::collections::BTreeMap;

pub struct Scatter;

static ABOUT: About = About {
    name: "scatter",
    question: "Do reads take longer, or shorter, in some stretch of the card?",
    method: "reads at 512 places over the region, four passes in random order",
    writes: false,
    answers: &[Quantity::OddRegions],
    roles: &["read"],
    covers: "F13",
};

/// 2^9 places, as flashbench has by default.
const PLACES: u64 = 512;
const PASSES: usize = 4;
/// Neighbours that are smoothed together, and the least that make a region.
const WINDOW: usize = 5;
/// Share of the usual time below which nobody would call a difference odd.
const LEAST: f64 = 0.08;

impl Experiment for Scatter {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let sector = setup.geometry.sector;
        let size = setup.region.end - setup.region.start;
        let len = (16 * KIB).max(sector);
        let places = PLACES.min(size / len);
        let apart = size / places.max(1);
        if places < 8 * WINDOW as u64 || apart < len {
            return vec![];
        }
        // Places lie alike in their surroundings: each is rounded to a grid as coarse as the room allows. The distance is not, or the
        // places would end before the region does.
        let grid = [MIB, 64 * KIB].into_iter().find(|g| apart >= *g).unwrap_or(len);
        let set = [("len", len), ("apart", apart), ("places", places), ("span", size), ("grid", grid)];
        vec![Cell::new("places", &set.map(|(k, v)| (k, v as i64)))]
    }

    fn wants(&self, cell: &Cell, run: &Run) -> bool {
        run.trials(cell.id).len() < PASSES
    }

    fn trial(&self, cell: &Cell, _n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let len = cell.bytes("len");
        let mut order: Vec<u64> = (0..cell.bytes("places")).collect();
        b.shuffle(&mut order);
        for i in order {
            b.read(0, b.region.start + place(cell, i), len)?;
        }
        Ok(())
    }

    fn infer(&self, run: &Run) -> Vec<Finding> {
        let q = Quantity::OddRegions;
        let Some(cell) = run.cells.first() else {
            return vec![Finding::undecided(q, "the region is too small for places that lie apart")];
        };
        let passes = run.trials(cell.id).len() as u32;
        if passes < 2 {
            return vec![Finding::undecided(q, "the run ended before two passes were made")];
        }
        let all = least(run, 0..passes);
        let usual = median(&all.values().copied().collect::<Vec<_>>());
        if usual <= 0.0 {
            return vec![Finding::undecided(q, "reads take no time")];
        }
        let (found, line) = regions(&all);
        let halves = [least(run, 0..passes / 2), least(run, passes / 2..passes)].map(|h| regions(&h).0);
        let apart = cell.bytes("apart");
        // What only one half of the passes shows was an event in time, not a place.
        let lasting: Vec<&Region> = found.iter().filter(|r| halves.iter().all(|h| h.iter().any(|o| o.meets(r)))).collect();
        // A stretch ends where the next place begins.
        let end = run.setting("end").unwrap_or(0).max(all.keys().last().map_or(0, |l| l + cell.bytes("len")));
        let ends = |at: u64| all.range(at + 1..).next().map_or(end, |next| *next.0);
        let name = |r: &&Region| format!("{} to {}: {} ms", Bytes(r.from), Bytes(ends(r.to)), three(r.us / 1e3));
        let text = format!("reads of {} usually take {} ms", Bytes(cell.bytes("len")), three(usual / 1e3));
        if line > 0.5 * usual {
            return vec![Finding::undecided(q, "reads differ from place to place by more than half of their time").evidence(text)];
        }
        let mut f = if lasting.is_empty() {
            let fleeting = found.len();
            let mut f = Finding::decided(q, 0.0, if fleeting > 0 { 0.7 } else { 0.85 });
            if fleeting > 0 {
                f = f.caveat(format!("{fleeting} stretches differed in some of the passes only"));
            }
            f
        } else {
            let strength = lasting.iter().map(|r| (r.us - usual).abs() / line).fold(f64::INFINITY, f64::min);
            Finding::decided(q, lasting.len() as f64, (0.7 + 0.1 * (strength - 1.0)).clamp(0.7, 0.93))
        };
        f = f.evidence(text);
        for r in lasting.iter().take(8) {
            f = f.evidence(name(r));
        }
        let least = WINDOW as u64 / 2 + 1;
        vec![f.caveat(format!("a stretch below {} or a a difference below {} ms would not show", about(least * apart), three(line / 1e3)))]
    }

    fn figures(&self, run: &Run) -> Vec<Figure> {
        let points = least(run, 0..u32::MAX).iter().map(|(&at, us)| (at as f64 / MIB as f64, us / 1e3)).collect();
        vec![Figure {
            title: "time of a read by its place".into(),
            x: "MiB".into(),
            y: "ms".into(),
            log_x: false,
            log_y: false,
            series: vec![Series { name: "least of the passes".into(), points }],
        }]
    }
}

/// Byte of the region where place `i` begins: the first at its start, the last within a distance of its end.
fn place(cell: &Cell, i: u64) -> u64 {
    let exact = u128::from(i) * u128::from(cell.bytes("span")) / u128::from(cell.bytes("places").max(1));
    let grid = cell.bytes("grid").max(1);
    exact as u64 / grid * grid
}

/// Least time of each place over some passes, in µs.
fn least(run: &Run, passes: std::ops::Range<u32>) -> BTreeMap<u64, f64> {
    let mut out: BTreeMap<u64, f64> = BTreeMap::new();
    for s in run.samples.iter().filter(|s| passes.contains(&s.trial)) {
        let t = out.entry(s.at).or_insert(f64::INFINITY);
        *t = t.min(s.took.micros());
    }
    out
}

#[derive(Clone, Debug, PartialEq)]
struct Region {
    /// First and last place.
    from: u64,
    to: u64,
    us: f64,
}

impl Region {
    fn meets(&self, o: &Region) -> bool {
        self.from <= o.to && o.from <= self.to
    }
}

/// Stretches whose running median lies beyond the line, and the line: the least difference that counts, in µs.
fn regions(all: &BTreeMap<u64, f64>) -> (Vec<Region>, f64) {
    let (places, us): (Vec<u64>, Vec<f64>) = all.iter().map(|(a, t)| (*a, *t)).unzip();
    let usual = median(&us);
    let n = us.len();
    if n < WINDOW {
        return (vec![], f64::INFINITY);
    }
    let window = |i: usize| i.saturating_sub(WINDOW / 2).min(n - WINDOW);
    let smooth: Vec<f64> = (0..n).map(|i| median(&us[window(i)..window(i) + WINDOW])).collect();
    // Scatter of neighbours: a region must not widen its own yardstick.
    let near: Vec<f64> = us.iter().zip(&smooth).map(|(t, s)| t - s).collect();
    let line = (6.0 * mad(&near)).max(LEAST * usual);
    let side = |i: usize| if (smooth[i] - usual).abs() > line { (smooth[i] - usual).signum() } else { 0.0 };
    let mut out = vec![];
    let mut i = 0;
    while i < n {
        let mut j = i + 1;
        while j < n && side(j) == side(i) {
            j += 1;
        }
        // The running median of five needs three; of the places themselves nearly all must lie on that side, so that two kinds of
        // place side by side are no region.
        let there = us[i..j].iter().filter(|t| (**t - usual) * side(i) > 0.5 * line).count();
        if side(i) != 0.0 && j - i > WINDOW / 2 && there * 5 >= (j - i) * 4 {
            out.push(Region { from: places[i], to: places[j - 1], us: median(&us[i..j]) });
        }
        i = j;
    }
    (out, line)
}
