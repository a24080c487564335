//! `flashbench -a` and `-A`: reads (writes) before, across and after boundaries of falling alignment.
//!
//! As in flashbench a row is the least of several passes at seven places. Unlike there, places are multiples of the row's own
//! alignment and of no larger one, never beyond the end of the target; all reads of a pass are made in random order, so that
//! read-ahead and drift favour no column, and no write goes on where the last one ended; the median over the places stands for their mean, so that one odd place does not
//! show; and rows 3*2^n are looked at too, and printed where they show a boundary that powers of two have not (12 MiB).

use super::{Failure, Watch, attempt, format, generator, shuffle};
use crate::device::{Access, Device, DeviceError, Fill, Geometry, Op};
use crate::units::{Bytes, MIB};
use nandscope_stats::median;
use std::io::Write;

/// Places a row.
const PLACES: u64 = 7;

/// Rows 3*2^n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threes {
    /// Where they show what the powers of two do not.
    Auto,
    Always,
    Never,
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Align {
    /// Bytes of one read.
    pub block: u64,
    pub passes: u32,
    /// Writes instead of reads (`-A`).
    pub write: bool,
    pub threes: Threes,
    pub seed: u64,
}

/// One row, times in ns.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub align: u64,
    pub pre: f64,
    pub on: f64,
    pub post: f64,
    /// Median distance of the places from the row's difference.
    pub scatter: f64,
    pub places: usize,
    /// A row 3*2^n between the powers of two.
    pub three: bool,
}

impl Row {
    /// on - (pre + post) / 2, in ns.
    pub fn diff(&self) -> f64 {
        self.on - (self.pre + self.post) / 2.0
    }
}

/// Alignments, largest first, and whether each is a 3*2^n between.
type Rows = Vec<(u64, bool)>;

/// A boundary to measure at.
#[derive(Clone, Debug)]
struct Spot {
    row: usize,
    boundary: u64,
    /// Least time of pre, on, post.
    best: [f64; 3],
    /// All times of pre, on, post.
    times: [Vec<f64>; 3],
}

/// An access that takes so many times the figure of its row and column is counted as slow.
const SLOW: f64 = 4.0;

/// What was measured.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub rows: Vec<Row>,
    /// Remarks on it.
    pub notes: Vec<String>,
}

impl Align {
    fn rows(&self, g: &Geometry) -> Result<Rows, Failure> {
        let grain = 2 * g.sector;
        if self.block == 0 || !self.block.is_multiple_of(grain) {
            return Err(Failure::Usage(format!(
                "--blocksize={}: the read across a boundary has half a block on each side, so a block must be a multiple of {grain} \
                 bytes, two sectors; the smallest is -b {grain}",
                self.block
            )));
        }
        let mut top = self.block;
        while top < g.size.div_ceil(PLACES) {
            top *= 2;
        }
        let mut out = vec![];
        let threes = self.threes != Threes::Never && !self.block.is_multiple_of(3);
        while top >= 2 * self.block {
            out.push((top, false));
            if threes && top / 2 >= 2 * self.block {
                out.push((top / 4 * 3, true));
            }
            top /= 2;
        }
        if out.is_empty() {
            return Err(Failure::Usage(format!("{} is too small for blocks of {}; take a smaller -b", Bytes(g.size), Bytes(self.block))));
        }
        Ok(out)
    }

    /// Boundaries of `align` and of no larger alignment, spread over the target. The grid is that of the whole disk.
    fn places(&self, g: &Geometry, align: u64, jitter: &[f64]) -> Vec<u64> {
        let mut out = vec![];
        let fits = |m: u64| {
            let b = m.checked_mul(align)?.checked_sub(g.offset)?;
            let inside = b >= self.block && b.checked_add(self.block)? <= g.size;
            (inside && !m.is_multiple_of(2) && !m.is_multiple_of(3) && b.is_multiple_of(g.sector)).then_some(b)
        };
        for (i, j) in jitter.iter().enumerate() {
            let aim = g.size as f64 / PLACES as f64 * (i as f64 + 0.5 + j) + g.offset as f64;
            let m = (aim / align as f64).round() as u64;
            // Two of any six neighbours are coprime to 6.
            let near = (0..7).flat_map(|d| [m.saturating_sub(d), m + d]).find_map(fits);
            if let Some(b) = near.filter(|b| !out.contains(b)) {
                out.push(b);
            }
        }
        out
    }

    fn spots(&self, g: &Geometry) -> Result<(Rows, Vec<Spot>), Failure> {
        let rows = self.rows(g)?;
        let mut rng = generator(self.seed);
        let jitter: Vec<f64> = (0..PLACES).map(|_| below_one(&mut rng) * 0.6 - 0.3).collect();
        let mut spots = vec![];
        for (row, (align, _)) in rows.iter().enumerate() {
            spots.extend(self.places(g, *align, &jitter).into_iter().map(|boundary| Spot {
                row,
                boundary,
                best: [f64::INFINITY; 3],
                times: Default::default(),
            }));
        }
        if spots.is_empty() {
            return Err(DeviceError::Refused(format!(
                "no boundary has room for a block of {} on each side: the target has {}; a test may not wrap over its end. Take a smaller -b",
                Bytes(self.block),
                Bytes(g.size)
            ))
            .into());
        }
        Ok((rows, spots))
    }

    /// Accesses a run makes, and what they change.
    ///
    /// # Errors
    /// `Usage` where the block cannot be read across a boundary; `Refused` where nothing has room.
    pub fn cost(&self, g: &Geometry) -> Result<super::pattern::Cost, Failure> {
        let (_, spots) = self.spots(g)?;
        let n = spots.len() as u64 * 3 * u64::from(self.passes);
        let mut cost = super::pattern::Cost::default();
        if self.write {
            (cost.writes, cost.bytes_written) = (n, n * self.block);
            cost.changed = super::pattern::merged(spots.iter().map(|s| (s.boundary - self.block, 2 * self.block)).collect());
        } else {
            (cost.reads, cost.bytes_read) = (n, n * self.block);
        }
        Ok(cost)
    }

    /// Measures.
    ///
    /// # Errors
    /// As `cost`; the device's where it fails again and again; `Interrupted`.
    pub fn run(&self, device: &mut dyn Device, watch: &mut Watch) -> Result<Table, Failure> {
        let (rows, mut spots) = self.spots(device.geometry())?;
        let small = device.geometry().size < PLACES * 4 * MIB;
        let mut rng = generator(self.seed ^ 0xa11);
        let mut faults = vec![];
        let at = |s: &Spot, kind: usize| s.boundary - [self.block, self.block / 2, 0][kind];
        let mut order: Vec<(usize, usize)> = (0..spots.len()).flat_map(|s| (0..3).map(move |k| (s, k))).collect();
        // Reads: every pass goes over all places in a new order. Writes: a card that has few AUs open would close one for every
        // write, so all passes of a place come in a row, only the kinds change places.
        let rounds = if self.write { 1 } else { self.passes };
        for _ in 0..rounds {
            shuffle(&mut rng, &mut order);
            for &(s, kind) in order.iter().filter(|o| !self.write || o.1 == 0) {
                let (mut here, mut last) = (vec![kind], None);
                for pass in 0..if self.write { self.passes } else { 1 } {
                    if self.write {
                        here = vec![0, 1, 2];
                        shuffle(&mut rng, &mut here);
                        while goes_on(last, &here) {
                            shuffle(&mut rng, &mut here);
                        }
                        last = here.last().copied();
                    }
                    for &kind in &here {
                        if spots[s].best[kind].is_nan() {
                            continue;
                        }
                        let op = if self.write { Op::Write(Fill::Random(u64::from(pass) + 1)) } else { Op::Read };
                        let a = Access { op, at: at(&spots[s], kind), len: self.block };
                        let took = attempt(device, a, watch, &mut faults)?.map(|t| t.0 as f64);
                        spots[s].times[kind].extend(took);
                        let best = &mut spots[s].best[kind];
                        // A place that failed once is left out: a failed access has no time.
                        *best = took.map_or(f64::NAN, |t| best.min(t));
                    }
                }
            }
        }
        let mut table = Table { rows: self.reduce(&rows, &spots), notes: faults };
        let outliers = self.outliers(&rows, &spots, &table.rows);
        if self.threes == Threes::Auto && !worthwhile(&table.rows) {
            table.rows.retain(|r| !r.three);
        }
        let missing = rows.iter().filter(|r| (self.threes == Threes::Always || !r.1) && table.rows.iter().all(|t| t.align != r.0)).count();
        if missing > 0 {
            table.notes.push(format!("{missing} of the largest rows have no place on this target and are left out"));
        }
        if small {
            table.notes.push("the target is small: its places lie less than 4 MiB apart, perhaps in one erase block".into());
        }
        if self.write {
            table.notes.push("writes across boundaries are unreliable as soon as the card has to merge an erase block".into());
        }
        let scatter: Vec<f64> = table.rows.iter().filter(|r| r.places >= 3).map(|r| r.scatter).collect();
        if !scatter.is_empty() {
            table.notes.push(format!(
                "each figure: least of {} {} at up to {PLACES} places, median of the places; diff differs by {} from place to place",
                self.passes,
                if self.write { "writes" } else { "reads" },
                format::neat_time(median(&scatter).round() as i64)
            ));
        }
        table.notes.extend(outliers);
        table.notes.extend(self.columns());
        Ok(table)
    }

    /// What the columns are.
    fn columns(&self) -> [String; 3] {
        let (verb, block) = (if self.write { "write" } else { "read" }, format::neat_size(self.block));
        [
            format!(
                "pre: a {verb} of {block} that ends at the boundary; on: one across it, half on each side; post: one that begins at it"
            ),
            "diff = on - (pre + post) / 2: what crossing the boundary costs".into(),
            "where diff jumps from a row to the next larger one, a unit of that size ends: a page, pages used together, an erase block"
                .into(),
        ]
    }

    /// What the least of several passes hides: how many accesses were slow, and how slow. Rows as they are printed.
    fn outliers(&self, rows: &Rows, spots: &[Spot], table: &[Row]) -> Vec<String> {
        let verb = if self.write { "write" } else { "read" };
        let (mut all, mut slow, mut longest, mut worst) = (0usize, 0usize, 0.0f64, 0.0f64);
        let mut by_row = vec![];
        for row in table {
            let Some(i) = rows.iter().position(|r| r.0 == row.align) else { continue };
            let figures = [row.pre, row.on, row.post];
            let mut most = 0.0f64;
            for s in spots.iter().filter(|s| s.row == i) {
                for (kind, t) in s.times.iter().enumerate().flat_map(|(k, all)| all.iter().map(move |t| (k, *t))) {
                    let times = t / figures[kind].max(1.0);
                    all += 1;
                    slow += usize::from(times > SLOW);
                    longest = longest.max(t);
                    most = most.max(times);
                }
            }
            worst = worst.max(most);
            if !row.three {
                by_row.push(format!("{} {most:.1}", format::neat_size(row.align)));
            }
        }
        if all == 0 {
            return vec![];
        }
        let took = format::neat_time(longest.round() as i64);
        let mut out = vec![match slow {
            0 => format!("no {verb} took more than {SLOW:.0} times the figure of its row and column; the longest took {took}"),
            n => format!(
                "{n} of {all} {verb}s ({:.1} %) took more than {SLOW:.0} times the figure of their row and column, which is the least of {}; \
                 the longest took {took}, {worst:.0} times its figure",
                100.0 * n as f64 / all as f64,
                self.passes
            ),
        }];
        out.push(format!("slowest {verb} / figure: {}", by_row.join(", ")));
        out
    }

    fn reduce(&self, rows: &[(u64, bool)], spots: &[Spot]) -> Vec<Row> {
        let mut out = vec![];
        for (i, &(align, three)) in rows.iter().enumerate() {
            let here: Vec<&Spot> = spots.iter().filter(|s| s.row == i && s.best.iter().all(|b| b.is_finite())).collect();
            let of = |k: usize| median(&here.iter().map(|s| s.best[k]).collect::<Vec<_>>());
            let mut row = Row { align, pre: of(0), on: of(1), post: of(2), scatter: 0.0, places: here.len(), three };
            if here.is_empty() {
                continue;
            }
            let diff = |s: &Spot| s.best[1] - (s.best[0] + s.best[2]) / 2.0;
            let middle = row.diff();
            row.scatter = median(&here.iter().map(|s| (diff(s) - middle).abs()).collect::<Vec<_>>());
            out.push(row);
        }
        out
    }
}

/// Whether rows 3*2^n rise above the rows 2^n that they are multiples of: on at least two of them, by six times their scatter.
fn worthwhile(rows: &[Row]) -> bool {
    let high = |r: &&Row| {
        let third = rows.iter().find(|t| t.align * 3 == r.align);
        third.is_some_and(|t| {
            let error = |r: &Row| 1.8 * r.scatter / (r.places as f64).sqrt();
            let doubt = (error(r).powi(2) + error(t).powi(2)).sqrt();
            r.places >= 3 && t.places >= 3 && r.diff() - t.diff() > 6.0 * doubt + 0.02 * r.pre
        })
    };
    rows.iter().filter(|r| r.three).filter(high).count() >= 2
}

/// Does one of these kinds begin where the one before it ended, that is, post where pre did? A card that coalesces writes which follow each
/// other takes such a one into its buffer, and a later write pays for it.
fn goes_on(last: Option<usize>, kinds: &[usize]) -> bool {
    let all: Vec<usize> = last.into_iter().chain(kinds.iter().copied()).collect();
    all.windows(2).any(|w| w == [0, 2])
}

/// 0 to 1.
fn below_one(rng: &mut rand_pcg::Pcg64Mcg) -> f64 {
    use rand_pcg::rand_core::Rng;
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// flashbench's lines.
///
/// # Errors
/// `Output`.
pub fn print(rows: &[Row], out: &mut dyn Write) -> Result<(), Failure> {
    for r in rows {
        let [pre, on, post, diff] = [r.pre, r.on, r.post, r.diff()].map(|t| format::neat_time(t.round() as i64));
        writeln!(out, "align {}\tpre {pre}\ton {on}\tpost {post}\tdiff {diff}", r.align).map_err(Failure::Output)?;
    }
    Ok(())
}
