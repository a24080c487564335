//! Scattered writes that cost no merge: the card maps by page.
//!
//! A merge erases a block and copies what else it holds: half a MiB at least on any card of a GiB and more, at the rate that the
//! card itself keeps. What scattered writes take longer than sequential ones is held against that, and against 2 ms, less than any erase
//! with copying behind it takes.

use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::pipeline::{Analysis, Fit};
use super::write_cache::step;
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{mad, mean, median};
use crate::samples::{Cell, Run};
use crate::units::{Bytes, GIB, KIB, MIB};
use std::collections::HashSet;

/// Judges runs of `page-mapping`.
pub struct PageMapping;

pub(super) const ANALYSES: &[&dyn Analysis] = &[&PageMapping];

/// Roles: sequential writes until a cache is full, sequential ones of the size of the scattered ones, the scattered ones, and reads at some
/// of their places before and after.
pub const FILL: u8 = 0;
pub const CONTROL: u8 = 1;
pub const SCATTERED: u8 = 2;
pub const BEFORE: u8 = 3;
pub const AFTER: u8 = 4;

/// Bytes of a scattered write: at least what any card programs as one.
pub const SIZE: u64 = 64 * KIB;

/// Places that scattered writes go to at most, each as often as there are trials.
pub const PLACES: u64 = 2048;

/// The least that a merge copies, bytes.
const MERGED: f64 = (512 * KIB) as f64;
/// What scattered writes may take longer, as a part of the time for that.
const PART: f64 = 0.35;
/// And in µs: less than any merge; where programming itself takes long, a translation page takes as long again.
const LEAST: f64 = 2000.0;
const MOST: f64 = 4000.0;
const PROGRAMS: f64 = 1.2;
/// Stalls of the host may add this many times as much to the mean of all.
const STALLS: f64 = 3.0;
/// Collecting the garbage of scattered writes may cost this part of a merge, on average: there are none then for each of them.
const COLLECTING: f64 = 0.8;
/// Where it does so from the start, this part.
const AT_ONCE: f64 = 0.25;
/// And in µs no more than this.
const TWICE: f64 = 8000.0;
/// Reads of flash without data are faster by this part of their time.
pub(super) const SHOWS: f64 = 0.02;
/// A sequential write of 64 KiB takes this part of one of 256 KiB, or each of them has a cost of its own.
const OWN: f64 = 0.45;
/// µs that programming 64 KiB takes at most; what takes longer so may rewrite an erase block.
const REWRITES: f64 = 12_000.0;
/// Bytes of a region whose erase blocks may all be open at once: 64 of 64 MiB, as large and as many as have been reported.
const ALL_OPEN: f64 = 4.0 * GIB as f64;
/// Writes that are looked at together, and the least that say something.
pub const BLOCK: usize = 512;

/// The fill, in its first trial.
fn filled(run: &Run, cell: &Cell) -> Vec<f64> {
    run.of(cell.id).filter(|s| s.role == FILL && s.trial == 0).map(|s| s.took.micros()).collect()
}

/// What the fill showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Full {
    /// µs of a write from then on.
    pub slow: f64,
    /// Writes that fill again what a short rest brought back.
    pub again: u64,
}

/// `None` where nothing became slower.
pub fn full(run: &Run, cell: &Cell) -> Option<Full> {
    let t = filled(run, cell);
    let i = step(&t)?;
    Some(Full { slow: median(&t[i..]), again: (i as u64 / 4).clamp(16, 256) })
}

/// Were the places never written before? Flash without data reads faster. Those that were filled and those that were scattered are asked
/// apart.
pub fn empty(run: &Run, cell: &Cell) -> bool {
    [0, 2].into_iter().any(|trial| {
        let of =
            |role: u8| -> Vec<f64> { run.of(cell.id).filter(|s| s.role == role && s.trial == trial).map(|s| s.took.micros()).collect() };
        let (before, after) = (of(BEFORE), of(AFTER));
        if before.len() < 8 || after.len() < 8 {
            return false;
        }
        let (a, b) = (median(&before), median(&after));
        let noise = mad(&before).max(mad(&after)) / (before.len() as f64).sqrt();
        b - a > (SHOWS * a).max(5.0 * noise)
    })
}

/// The mean of all but the longest hundredth, which stalls of the host make.
fn trimmed(t: &[f64]) -> f64 {
    let mut sorted = t.to_vec();
    sorted.sort_by(f64::total_cmp);
    mean(&sorted[..sorted.len() - sorted.len() / 100])
}

/// What the writes were like.
struct Seen {
    /// µs of a sequential write of the size of the scattered ones.
    sequential: f64,
    /// µs that half a MiB takes at the rate of the fill.
    merge: f64,
    /// µs that a scattered write may take longer.
    line: f64,
    /// By blocks in order: what they took longer, without the longest and with them.
    longer: Vec<(f64, f64)>,
    count: usize,
    /// Where they went.
    places: u64,
    /// As above, over all.
    all: (f64, f64),
    /// Small writes cost what large ones do.
    own: bool,
}

impl Seen {
    fn of(run: &Run, cell: &Cell) -> Option<Seen> {
        let (control, scattered) = (run.micros(cell, CONTROL), run.micros(cell, SCATTERED));
        let fill = filled(run, cell);
        if scattered.len() < 2 * BLOCK || control.len() < BLOCK || fill.len() < 32 {
            return None;
        }
        let rate = full(run, cell).map_or_else(|| median(&fill[fill.len() / 2..]), |f| f.slow) / CHUNK;
        let (usual, whole) = (trimmed(&control), mean(&control));
        let merge = MERGED * rate;
        let own = usual > OWN * CHUNK * rate && usual > LEAST;
        let line = (PROGRAMS * usual).clamp(LEAST, MOST).min(PART * merge);
        let over = |t: &[f64]| (trimmed(t) - usual, mean(t) - whole);
        let longer = scattered.chunks_exact(BLOCK).map(over).collect();
        let places = run.of(cell.id).filter(|s| s.role == SCATTERED).map(|s| s.at).collect::<HashSet<_>>().len() as u64;
        Some(Seen { sequential: usual, merge, line, longer, count: scattered.len(), places, all: over(&scattered), own })
    }

    fn text(&self) -> String {
        format!(
            "{} writes of 64 KiB at random places took {:.2} ms longer than sequential ones ({:.2} ms); a merge copies 512 KiB or more, which \
             takes {:.1} ms at the rate this card keeps",
            self.count,
            self.all.0 / 1e3,
            self.sequential / 1e3,
            self.merge / 1e3
        )
    }

    /// How clearly there were no merges; `None` where there may have been.
    fn score(&self) -> Option<f64> {
        let quiet = self.longer.iter().take_while(|l| self.quiet(**l)).count();
        let later = &self.longer[quiet..];
        let means: Vec<f64> = later.iter().map(|l| l.1).collect();
        if quiet < 2 {
            let usual = mean(&means);
            return (usual < AT_ONCE * self.merge && usual < TWICE).then_some(0.75);
        }
        if !later.is_empty() {
            // Garbage of scattered writes costs something to collect, yet no merge for each of them.
            return (mean(&means) < COLLECTING * self.merge).then_some(0.82);
        }
        Some(match quiet * BLOCK * SIZE as usize {
            n if n >= 400 * MIB as usize => 0.92,
            n if n >= 100 * MIB as usize => 0.88,
            _ => 0.8,
        })
    }

    fn quiet(&self, l: (f64, f64)) -> bool {
        l.0 <= self.line && l.1 <= STALLS * self.line
    }
}

/// Bytes of a write of the fill.
const CHUNK: f64 = (256 * KIB) as f64;

impl Analysis for PageMapping {
    fn name(&self) -> &'static str {
        "page-mapping"
    }

    fn fit(&self) -> Fit {
        Fit::Today
    }

    fn past_cache(&self) -> bool {
        true
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        const Q: Quantity = Quantity::Mapping;
        let Some(cell) = run.cells.last() else {
            return vec![Finding::undecided(
                Q,
                format!("{}, or what may be written, is too small to scatter writes over many erase blocks", run.stretch()),
            )];
        };
        let blank = cell.get("known_empty") == 0 && empty(run, cell);
        if blank {
            return vec![Finding::undecided(
                Q,
                "the card was never written there, and merges have nothing to copy then (--prepare would decide)",
            )];
        }
        let Some(s) = Seen::of(run, cell) else {
            return vec![Finding::undecided(
                Q,
                "the run ended before enough writes were scattered (more --time and --writes would decide)",
            )];
        };
        let text = s.text();
        if s.own && s.sequential > REWRITES {
            let why = "a sequential write of 64 KiB takes nearly as long as one of 256 KiB: the card may rewrite an erase block for each";
            return vec![Finding::undecided(Q, why).evidence(text)];
        }
        let Some(score) = s.score() else {
            let why = "scattered writes take long enough for merges, or for collecting garbage";
            return vec![Finding::undecided(Q, why).evidence(text)];
        };
        let pool = format!("a pool of log blocks larger than {} would look the same", Bytes(s.places * SIZE));
        let (cached, known) = (full(run, cell).is_some(), cell.get("known") == 1);
        let written = filled(run, cell).len() as f64 * CHUNK;
        let most: f64 = match cached || known {
            true => 1.0,
            false if written >= GIB as f64 => 0.85,
            false if written >= 256.0 * MIB as f64 => 0.8,
            false => 0.7,
        };
        let room = cell.bytes("high") - cell.bytes("low");
        let score = score.min(most).min(if (room as f64) < ALL_OPEN || s.own { 0.8 } else { 1.0 });
        let f = Finding::decided(Q, 2.0, score).rivals([(1.0, 1.0 - score)]).evidence(text).caveat(pool);
        vec![match cached || known {
            true => f,
            false => f.caveat(format!("so would a cache larger than the {} written before, which nothing showed", Bytes(written as u64))),
        }]
    }

    fn figures(&self, run: &Case) -> Vec<Figure> {
        let Some(cell) = run.cells.last() else { return vec![] };
        let points = |role: u8| {
            let t = run.micros(cell, role);
            let one = |(i, c): (usize, &[f64])| ((i * 64) as f64 * SIZE as f64 / MIB as f64, mean(c) / 1e3);
            t.chunks_exact(64).enumerate().map(one).collect::<Vec<_>>()
        };
        let names = [(CONTROL, "sequential"), (SCATTERED, "at random places")];
        let series = names.map(|(role, name)| Series { name: name.into(), points: points(role) });
        vec![Figure {
            title: "writes of 64 KiB".into(),
            x: "MiB written".into(),
            y: "ms".into(),
            log_x: false,
            log_y: true,
            series: series.into_iter().filter(|s| !s.points.is_empty()).collect(),
        }]
    }
}
