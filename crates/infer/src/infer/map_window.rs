//! A map that does not fit in the card's memory: reads outside a window cost a fetch of a piece of it.
//!
//! With places drawn evenly over a window of W bytes and room for C bytes of map, a share of 1 - C / W of the reads misses, whether the
//! card throws out the oldest, the least used or any piece. So each window that is too large says C.

use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::pipeline::Analysis;
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{mad, median};
use crate::samples::{Cell, Run};
use crate::units::{Bytes, MIB};

/// Judges runs of `map-window`.
pub struct MapWindow;

/// Roles: the first read of a pair, the second, reads that load the map, and those that are judged.
pub const FIRST: u8 = 0;
pub const SECOND: u8 = 1;
pub const LOAD: u8 = 2;
pub const JUDGED: u8 = 3;

/// Kinds of cells.
pub const PAIR: i64 = 0;
pub const WINDOW: i64 = 1;

/// A miss costs at least this share of a read that has none, or it does not show.
const SHOWS: f64 = 0.12;

/// Shares of misses by which a window says how large the cache is.
const TOLD: std::ops::Range<f64> = 0.2..0.85;

fn micros(run: &Run, cell: &Cell, role: u8) -> Vec<f64> {
    run.of(cell.id).filter(|s| s.role == role).map(|s| s.took.micros()).collect()
}

/// What the pairs say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pairs {
    /// µs of a read whose map is at hand, and of one whose map is not.
    pub hit: f64,
    pub miss: f64,
    /// Bytes of a piece.
    pub piece: f64,
    /// All distances of pairs fit one piece of 2^k bytes.
    pub clear: bool,
    /// Share of reads far from the last one that took as long as a miss: less than 1 where noise is as large as its cost.
    pub far: f64,
    /// Even the nearest pairs missed: the piece is this or smaller.
    pub or_less: bool,
}

impl Pairs {
    fn line(self) -> f64 {
        (self.hit + self.miss) / 2.0
    }
}

/// `None` where no read of a pair shows a fetch.
pub fn pairs(run: &Run) -> Option<Pairs> {
    let mut cells: Vec<&Cell> = run.cells.iter().filter(|c| c.get("kind") == PAIR).collect();
    cells.sort_by_key(|c| c.bytes("apart"));
    let first: Vec<f64> = cells.iter().flat_map(|c| micros(run, c, FIRST)).collect();
    let second: Vec<(f64, Vec<f64>)> = cells.iter().map(|c| (c.bytes("apart") as f64, micros(run, c, SECOND))).collect();
    let second: Vec<(f64, Vec<f64>)> = second.into_iter().filter(|s| s.1.len() >= 4).collect();
    let near = &second.first()?.1;
    let (hit, miss) = (median(near), median(&first));
    if miss - hit < (SHOWS * hit).max(4.0 * mad(near) / (near.len() as f64).sqrt()) {
        return None;
    }
    let line = (hit + miss) / 2.0;
    let shares: Vec<(f64, f64)> =
        second.iter().map(|(d, t)| (*d, t.iter().filter(|&&t| t > line).count() as f64 / t.len() as f64)).collect();
    let at = shares.iter().position(|s| s.1 > 0.5).unwrap_or(shares.len() - 1);
    let clear = shares[..at].iter().all(|s| s.1 < 0.25) && shares[at..].iter().all(|s| s.1 > 0.75);
    let far = first.iter().filter(|&&t| t > line).count() as f64 / first.len().max(1) as f64;
    Some(Pairs { hit, miss, piece: shares[at].0, clear, far, or_less: at == 0 })
}

/// Share of misses over the window in bytes.
fn misses(run: &Run, p: Pairs) -> Vec<(f64, f64, usize)> {
    let mut out: Vec<(f64, f64, usize)> = run
        .cells
        .iter()
        .filter(|c| c.get("kind") == WINDOW)
        .filter_map(|c| {
            let t = micros(run, c, JUDGED);
            let slow = t.iter().filter(|&&t| t > p.line()).count();
            (t.len() >= 50).then(|| (c.bytes("window") as f64, slow as f64 / t.len() as f64, t.len()))
        })
        .collect();
    out.sort_by(|a, b| a.0.total_cmp(&b.0));
    out
}

impl Analysis for MapWindow {
    fn name(&self) -> &'static str {
        "map-window"
    }

    fn fitted(&self) -> bool {
        false
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        const Q: Quantity = Quantity::MapWindowRead;
        if run.cells.is_empty() {
            return vec![Finding::undecided(Q, "the region is too small to leave a window")];
        }
        let Some(p) = pairs(run) else {
            let why = "reads far from the last one cost no more than reads near it: the whole map is at hand, or fetching it takes too little time to be seen";
            return vec![Finding::undecided(Q, why), Finding::undecided(Quantity::MapPiece, why)];
        };
        let shares = misses(run, p);
        let text = shares.iter().map(|s| format!("{} {:.0} %", Bytes(s.0 as u64), 100.0 * s.1)).collect::<Vec<_>>().join(", ");
        let text = format!("reads that had to fetch a translation page, in windows of {text}");
        // What misses in the smallest window for other reasons: tails of the host.
        let base = shares.first().map_or(0.0, |s| s.1).min(0.1);
        let told: Vec<(f64, f64, usize)> = shares
            .iter()
            .map(|&(w, s, n)| (w, ((s - base) / (p.far.max(0.6) - base)).clamp(0.0, 1.0), n))
            .filter(|s| TOLD.contains(&s.1))
            .collect();
        let sizes: Vec<f64> = told.iter().map(|&(w, s, _)| w * (1.0 - s)).collect();
        let window = if sizes.is_empty() {
            match shares.iter().rfind(|s| s.1 < 0.15) {
                Some(s) => Finding::at_least(Q, s.0, 0.85, format!("no window that was read was too large, up to {}", Bytes(s.0 as u64))),
                None => Finding::undecided(Q, "reads missed in windows of every size: what they wait for may be something else than a map"),
            }
        } else {
            let value = median(&sizes);
            // A share of misses is known to its binomial error.
            let error = told.iter().map(|&(w, s, n)| 2.0 * w * (s * (1.0 - s) / n as f64).sqrt()).fold(f64::INFINITY, f64::min);
            let (low, high) = sizes.iter().fold((f64::INFINITY, 0.0f64), |b, &s| (b.0.min(s), b.1.max(s)));
            // A card that keeps one place has no map in pieces, but looks something up for each.
            let agree = high / low < 1.6;
            let score = if agree && p.clear {
                0.93
            } else if agree {
                0.85
            } else {
                0.7
            };
            let f = Finding::decided(Q, value.round(), score);
            Finding { interval: Some([low.min(value - error).max(0.0), high.max(value + error)]), ..f }
        };
        let mut out = vec![window.evidence(text)];
        let text = format!("a read next to the last one takes {:.0} µs, one far from it {:.0} µs", p.hit, p.miss);
        let piece = match (p.clear, p.or_less) {
            (true, false) => Finding::decided(Quantity::MapPiece, p.piece, 0.92).rivals([(2.0 * p.piece, 0.03), (p.piece / 2.0, 0.03)]),
            (_, true) => Finding::undecided(Quantity::MapPiece, format!("it is {} or smaller", Bytes(p.piece as u64))),
            _ => Finding::undecided(Quantity::MapPiece, "pairs of reads missed at some distances now and then: no size of 2^k bytes fits"),
        };
        out.push(piece.evidence(text.clone()));
        let cost = p.miss - p.hit;
        let f = Finding::decided(Quantity::MapMissUs, cost, 0.9).evidence(text);
        out.push(Finding { interval: Some([cost * 0.9, cost * 1.1]), ..f });
        out
    }

    fn figures(&self, run: &Case) -> Vec<Figure> {
        let mut cells: Vec<&Cell> = run.cells.iter().filter(|c| c.get("kind") == WINDOW).collect();
        cells.sort_by_key(|c| c.bytes("window"));
        let iops = |c: &&Cell| {
            let t = micros(run, c, JUDGED);
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
