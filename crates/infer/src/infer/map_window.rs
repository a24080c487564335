//! A map that does not fit in the card's memory: reads outside a window cost a fetch of a piece of it.
//!
//! With places drawn evenly over a window of W bytes and room for C bytes of map, a share of 1 - C / W of the reads misses, whether the
//! card throws out the oldest, the least used or any piece. So each window that is too large says C.

use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::map_window_write::{Point, possible, tried};
use super::pipeline::{Analysis, Fit};
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{mad, mean, median};
use crate::samples::{Cell, Run};
use crate::units::{Bytes, MIB};

/// Judges runs of `map-window`.
pub struct MapWindow;

pub(super) const ANALYSES: &[&dyn Analysis] = &[&MapWindow];

/// Roles: the first read of a pair, the second, reads that load the map, those that are judged, those before all that let the card save
/// what was written to its map, and one in the piece of each that is judged, whose map is at hand (not in older runs).
pub const FIRST: u8 = 0;
pub const SECOND: u8 = 1;
pub const LOAD: u8 = 2;
pub const JUDGED: u8 = 3;
pub const BEFORE: u8 = 4;
pub const NEAR: u8 = 5;

/// Kinds of cells.
pub const PAIR: i64 = 0;
pub const WINDOW: i64 = 1;

/// A miss costs at least this share of a read that has none, and so many µs, or it does not show.
const SHOWS: f64 = 0.02;
const LEAST: f64 = 5.0;
/// Standard errors of a difference of medians that is no chance.
const SURE: f64 = 4.0;

/// A share of misses is not known better than this: pieces that were not loaded yet miss as well.
const BLUR: f64 = 0.03;
/// Chi squared for each window, above which the shape is another.
const FITS: f64 = 4.0;
/// Bounds that lie further apart than this factor name no window.
const APART: f64 = 2.2;

/// What the pairs say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pairs {
    /// µs of a read whose map is at hand, and of one whose map is not.
    pub hit: f64,
    pub miss: f64,
    /// Standard error of the difference, µs.
    pub error: f64,
    /// Bytes of a piece.
    pub piece: f64,
    /// All distances of pairs fit one piece of 2^k bytes.
    pub clear: bool,
    /// Even the nearest pairs missed: the piece is this or smaller.
    pub or_less: bool,
}

impl Pairs {
    fn cost(self) -> f64 {
        self.miss - self.hit
    }

    /// 0 for a read with its map at hand, 1 for one without.
    fn miss(self, t: f64) -> f64 {
        (t - self.hit) / self.cost()
    }
}

/// Standard error of a median, from deviations that tails do not move.
fn of_median(t: &[f64]) -> f64 {
    1.25 * mad(t) / (t.len().max(1) as f64).sqrt()
}

/// `None` where no read of a pair shows a fetch.
pub fn pairs(run: &Run) -> Option<Pairs> {
    let mut cells: Vec<&Cell> = run.cells.iter().filter(|c| c.get("kind") == PAIR).collect();
    nandscope_stats::sort_by_key(&mut cells, |c| c.bytes("apart"));
    let first: Vec<f64> = cells.iter().flat_map(|c| run.micros(c, FIRST)).collect();
    let second: Vec<(f64, Vec<f64>)> = cells.iter().map(|c| (c.bytes("apart") as f64, run.micros(c, SECOND))).collect();
    let second: Vec<(f64, Vec<f64>)> = second.into_iter().filter(|s| s.1.len() >= 4).collect();
    let near = &second.first()?.1;
    let (hit, miss) = (median(near), median(&first));
    let error = of_median(near).hypot(of_median(&first));
    if miss - hit < (SHOWS * hit).max(LEAST).max(SURE * error) {
        return None;
    }
    let mut p = Pairs { hit, miss, error, piece: second[0].0, clear: false, or_less: false };
    let shares: Vec<(f64, f64)> = second.iter().map(|(d, t)| (*d, p.miss(median(t)))).collect();
    let at = shares.iter().position(|s| s.1 > 0.5).unwrap_or(shares.len() - 1);
    p.clear = shares[..at].iter().all(|s| s.1 < 0.3) && shares[at..].iter().all(|s| s.1 > 0.7);
    (p.piece, p.or_less) = (shares[at].0, at == 0);
    Some(p)
}

/// What reads of a window took longer than one whose map is at hand, by size of the window: each against one beside it, for what was
/// written takes longer to read than what never was, and windows hold more or less of it. Tails count as two misses and a half at most.
fn windows(run: &Run, p: Pairs) -> Vec<Point> {
    let one = |c: &Cell| {
        let (t, near) = (run.micros(c, JUDGED), run.micros(c, NEAR));
        let hit = |i: usize| near.get(i).copied().unwrap_or(p.hit);
        // Of a pair that was cut the first is left over.
        let n = if near.is_empty() { t.len() } else { near.len() };
        let t: Vec<f64> = t.iter().take(n).enumerate().map(|(i, t)| (t - hit(i)).clamp(-1.5 * p.cost(), 2.5 * p.cost())).collect();
        let longer = mean(&t);
        let scatter = t.iter().map(|x| (x - longer).powi(2)).sum::<f64>() / t.len() as f64;
        let error = (scatter / t.len() as f64).sqrt().hypot(BLUR * p.cost());
        (t.len() >= 50).then(|| Point { window: c.bytes("window") as f64, longer, error })
    };
    let mut out: Vec<Point> = run.cells.iter().filter(|c| c.get("kind") == WINDOW).filter_map(one).collect();
    nandscope_stats::ascending(&mut out, |a| a.window);
    out
}

/// The window, from what reads took longer in windows of doubled size, and what a miss costs by the pairs: as much as in a window without end.
fn window(all: &[Point], p: Pairs) -> Finding {
    const Q: Quantity = Quantity::MapWindowRead;
    let (Some(first), Some(last)) = (all.first(), all.last()) else {
        return Finding::undecided(Q, "the run ended before windows were read (more --time would decide)");
    };
    let share = |a: &Point| (a.longer - first.longer) / p.cost();
    if all.iter().all(|a| share(a) < 0.15) {
        // Reads miss in windows of every size, or in none.
        return match p.miss(p.hit + first.longer) < 0.5 {
            true => Finding::at_least(
                Q,
                last.window,
                0.85,
                format!("no window that was read was too large, up to {}", Bytes(last.window as u64)),
            ),
            false => Finding::undecided(Q, "reads missed in windows of every size: what they wait for may be something else than a map"),
        };
    }
    let far = Point { window: f64::MAX, longer: first.longer + p.cost(), error: p.error.hypot(first.error) };
    let all: Vec<Point> = all.iter().copied().chain([far]).collect();
    let tried = tried(&all, first.window / 2.0, last.window);
    let Some(&(at, (chi, ..))) = tried.iter().min_by(|a, b| a.1.0.total_cmp(&b.1.0)) else {
        return Finding::undecided(Q, "what reads take longer does not grow with the window");
    };
    let slack = (chi / all.len() as f64).max(1.0);
    let [low, high] = possible(&tried, at, chi, slack);
    if high / low > APART || slack > 10.0 * FITS {
        return Finding::undecided(Q, "the windows that were read fit maps of very different size, or none");
    }
    if at < 1.05 * first.window / 2.0 {
        return Finding::undecided(Q, "reads missed in windows of every size: what they wait for may be something else than a map");
    }
    let score = match slack < FITS {
        true if p.clear => 0.93,
        true => 0.85,
        false => 0.7,
    };
    Finding { interval: Some([low, high]), ..Finding::decided(Q, at.round(), score) }
}

/// A frame of high-speed USB, µs: readers that answer once in each know times no better.
const FRAME: f64 = 125.0;
/// How near to whole frames such times lie, µs, and how many of a hundred do.
const IN_FRAME: f64 = 8.0;
const OF_FRAMES: usize = 90;
/// What a miss costs counts as known from this relative error on.
const KNOWN: f64 = 0.3;

/// Do times differ from this one by whole frames?
fn in_frames(all: &[f64], from: f64) -> bool {
    let off = |t: f64| ((t - from) / FRAME - ((t - from) / FRAME).round()).abs() * FRAME;
    all.iter().filter(|&&t| off(t) < IN_FRAME).count() * 100 >= OF_FRAMES * all.len()
}

/// What a miss costs.
fn miss(run: &Run, p: Pairs) -> Finding {
    const Q: Quantity = Quantity::MapMissUs;
    let cost = p.cost();
    let pairs = run.cells.iter().filter(|c| c.get("kind") == PAIR);
    let all: Vec<f64> = pairs.flat_map(|c| [FIRST, SECOND].map(|r| run.micros(c, r))).flatten().collect();
    let frames = in_frames(&all, p.hit);
    let half = (0.1 * cost).max(2.0 * p.error).max(if frames { FRAME } else { 0.0 });
    if half > KNOWN * cost {
        let why = if frames { format!(", and this host knows times to {FRAME:.0} µs only") } else { String::new() };
        return Finding::undecided(
            Q,
            format!("between {:.0} and {:.0} µs{why} (more --time may decide)", (cost - half).max(0.0), cost + half),
        );
    }
    Finding { interval: Some([cost - half, cost + half]), ..Finding::decided(Q, cost, 0.9) }
}

impl Analysis for MapWindow {
    fn name(&self) -> &'static str {
        "map-window"
    }

    fn fit(&self) -> Fit {
        Fit::Today
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        const Q: Quantity = Quantity::MapWindowRead;
        if run.cells.is_empty() {
            return vec![Finding::undecided(Q, format!("{} is too small to leave a window", run.stretch()))];
        }
        let Some(p) = pairs(run) else {
            let why = "reads far from the last one cost no more than reads near it: the whole map is at hand, or fetching it takes too little time to be seen";
            return vec![Finding::undecided(Q, why), Finding::undecided(Quantity::MapPiece, why)];
        };
        let all = windows(run, p);
        let base = all.first().map_or(0.0, |a| a.longer);
        let text =
            all.iter().map(|a| format!("{} {:.0} %", Bytes(a.window as u64), 100.0 * ((a.longer - base) / p.cost()).clamp(0.0, 1.0)));
        let text = format!("reads that had to fetch a translation page, in windows of {}", text.collect::<Vec<_>>().join(", "));
        let mut out = vec![window(&all, p).evidence(text)];
        let text = format!("a read next to the last one takes {:.0} µs, one far from it {:.0} µs", p.hit, p.miss);
        let piece = match (p.clear, p.or_less) {
            (true, false) => Finding::decided(Quantity::MapPiece, p.piece, 0.92).rivals([(2.0 * p.piece, 0.03), (p.piece / 2.0, 0.03)]),
            (_, true) => Finding::undecided(Quantity::MapPiece, format!("it is {} or smaller", Bytes(p.piece as u64))),
            _ => Finding::undecided(Quantity::MapPiece, "pairs of reads missed at some distances now and then: no size of 2^k bytes fits"),
        };
        out.push(piece.evidence(text.clone()));
        out.push(miss(run, p).evidence(text));
        out
    }

    fn figures(&self, run: &Case) -> Vec<Figure> {
        let mut cells: Vec<&Cell> = run.cells.iter().filter(|c| c.get("kind") == WINDOW).collect();
        nandscope_stats::sort_by_key(&mut cells, |c| c.bytes("window"));
        let iops = |c: &&Cell| {
            let t = run.micros(c, JUDGED);
            (!t.is_empty()).then(|| (c.bytes("window") as f64 / MIB as f64, 1e6 * t.len() as f64 / t.iter().sum::<f64>()))
        };
        let points: Vec<(f64, f64)> = cells.iter().filter_map(iops).collect();
        if points.is_empty() {
            return vec![];
        }
        vec![Figure {
            title: "random reads over the window they fall in".into(),
            x: "MiB".into(),
            y: "IOPS".into(),
            log_x: true,
            log_y: false,
            series: vec![Series { name: "random reads".into(), points }],
        }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Op;
    use crate::infer::beliefs::Beliefs;
    use crate::samples::Sample;
    use crate::units::Nanos;

    #[test]
    fn a_reader_that_answers_in_frames_is_seen() {
        let t =
            |step: f64, wavers: f64| (0..50).map(|i| 500.0 + step * f64::from(i % 3) + wavers * f64::from(i % 7 - 3)).collect::<Vec<_>>();
        assert!(in_frames(&t(125.0, 1.0), 500.0));
        assert!(!in_frames(&t(80.0, 1.0), 500.0), "times apart by something else");
        assert!(!in_frames(&t(125.0, 10.0), 500.0), "the host wavers by itself");
    }

    /// Room for 8 MiB in pieces of 1 MiB, a miss of 100 µs; windows of 4 and 32 MiB lie where the card was written, which takes 80 µs longer to read.
    #[test]
    fn a_window_over_what_was_written_is_no_smaller_map() {
        let mut run = Run::new("map-window");
        let mut add = |cell: Cell, of: &[(u8, f64)]| {
            let (n, cell) = (run.cells.len() as u32, Cell { id: run.cells.len() as u32, ..cell });
            run.cells.push(cell);
            let one = |&(role, us): &(u8, f64)| {
                let took = Nanos((us * 1e3) as u64);
                Sample { cell: n, trial: 0, role, op: Op::Read, at: 0, len: 4096, start: Nanos(0), took }
            };
            run.extend(of.iter().map(one));
        };
        let noise = |i: i64| (i * 7919 % 13) as f64;
        for k in 0..6 {
            let of: Vec<(u8, f64)> =
                (0..24).flat_map(|i| [(FIRST, 400.0 + noise(i)), (SECOND, if k < 2 { 300.0 } else { 400.0 } + noise(i + 5))]).collect();
            add(Cell::new("apart", &[("kind", PAIR), ("apart", (256 << 10) << k)]), &of);
        }
        for k in 0..10 {
            let window = (256 << 10) << k;
            let written = if [4 << 20, 32 << 20].contains(&window) { 80.0 } else { 0.0 };
            let misses = 400 - 400 * (8 << 20).min(window) / window;
            let judged = |i: i64| if i * 7 % 400 < misses { 400.0 } else { 300.0 };
            let of: Vec<(u8, f64)> =
                (0..400).flat_map(|i| [(JUDGED, judged(i) + written + noise(i)), (NEAR, 300.0 + written + noise(i + 3))]).collect();
            add(Cell::new("window", &[("kind", WINDOW), ("window", window), ("piece", 1 << 20)]), &of);
        }
        let found = MapWindow.infer(&Case { run: &run, believed: &Beliefs::default() });
        let at = found[0].number().unwrap();
        assert!((7.5e6..9.5e6).contains(&at), "{found:?}");
        // Judged by themselves, as in runs without a read beside them, they fit no map.
        let mut alone = Run::new("map-window");
        alone.cells = run.cells.clone();
        alone.extend(run.samples.iter().filter(|s| s.role != NEAR).cloned());
        assert_eq!(MapWindow.infer(&Case { run: &alone, believed: &Beliefs::default() })[0].number(), None);
    }
}
