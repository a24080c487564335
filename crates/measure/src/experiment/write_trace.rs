//! When does the card rewrite, and how large is its write buffer? (C10 to C18, G12)
//!
//! Rows of small writes, one behind the other: of one sector, of 2 KiB and of 8 KiB, somewhere in the upper three quarters of the
//! region, and of 2 KiB at the start of the card. A card that rewrites its erase block at the end of each transaction takes the
//! same long time for every write of every size; one with a small buffer takes it at the multiples of that buffer; one that
//! collects pages shows the page, for a few ms at most. Reads of the same sizes tell what the host costs.
//!
//! What fools it: a reader or kernel that merges or splits writes (the row of another size then contradicts), stalls (a lattice
//! must hold, a few outliers do not make one), a card with a volatile cache (a timed write includes its flush).
//! Where the card can be sent raw commands, 2 KiB are also written as open-ended transactions, whose stop it then pays for.

use super::{About, Bench, Experiment, Figure, Series, Setup};
use crate::device::DeviceError;
use crate::device::mmc::Multi;
use crate::finding::{Finding, Quantity};
use crate::infer::rewrite::{Look, fast_start, infer, shows};
use crate::infer::stats::{median, quantile};
use crate::samples::{Cell, Run, Sample};
use crate::units::{Bytes, KIB, MIB};

pub struct WriteTrace;

static ABOUT: About = About {
    name: "write-trace",
    question: "When does the card rewrite, and how large is its write buffer?",
    method: "rows of small writes of three sizes, each timed, and at the start of the card; reads tell what the host costs",
    writes: true,
    answers: &[Quantity::RewritePolicy, Quantity::WriteBuffer, Quantity::RewriteMs, Quantity::ChipClass, Quantity::FatZone],
    roles: &["read", "opening", "write", "start"],
    covers: "C10, C12, C13, C14, C15, C16, C17, C18, C20",
};

const READ: u8 = 0;
const OPENING: u8 = 1;
const WRITE: u8 = 2;
const START: u8 = 3;

/// Bytes at the start of the card that are looked at, in writes of 2 KiB.
const FIRST: u64 = MIB;
/// Bytes of one bar of the start.
const BAR: u64 = 64 * KIB;

impl Experiment for WriteTrace {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let sector = setup.geometry.sector;
        if setup.region.end - setup.region.start < 16 * MIB {
            return vec![];
        }
        let row = |len: u64, writes: i64| Cell::new(format!("row of {}", Bytes(len)), &[("len", len as i64), ("writes", writes)]);
        // Rows of one sector are 128 KiB long at most, so that a buffer of 24 KiB fills five times.
        let mut out = vec![row(sector, 192), row(4 * sector, 96), row(16 * sector, 24)];
        let mut raw = row(4 * sector, 32);
        raw.label = "row of 2 KiB, open-ended by raw commands".into();
        raw.set.insert("raw".into(), 1);
        out.push(raw);
        if setup.region.start + setup.geometry.offset == 0 {
            out.push(Cell::new("start of the card", &[("len", 4 * sector as i64), ("start", 1)]));
        }
        out
    }

    fn wants(&self, cell: &Cell, run: &Run) -> bool {
        let refused = cell.get("raw") > 0 && run.faults.iter().any(|f| f.contains("not supported"));
        let trials = if cell.get("start") > 0 { 1 } else { 2 };
        !refused && run.trials(cell.id).len() < trials
    }

    fn trial(&self, cell: &Cell, _n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let len = cell.bytes("len");
        if cell.get("start") > 0 {
            let first = b.region.start;
            let end = (first + FIRST).min(b.region.end);
            // Every other write of a bar is enough to see what it costs, and the rest would only wear.
            for bar in (first..end).step_by(BAR as usize) {
                for at in (bar..(bar + BAR / 2).min(end)).step_by(len as usize) {
                    b.write(START, at, len)?;
                }
            }
            return Ok(());
        }
        let writes = cell.bytes("writes");
        let unit = b.run.setting("erase_block").filter(|&e| e >= 64 * KIB).unwrap_or(MIB);
        let phase = b.run.setting("erase_block_offset").unwrap_or(0) % unit;
        let (start, end, need) = (b.region.start, b.region.end, (writes + 1) * len);
        let first = start.saturating_sub(phase).next_multiple_of(unit) + phase;
        let room = end.saturating_sub(first).saturating_sub(need) / unit;
        let at = first + (room / 4 + b.below((room - room / 4).max(1))) * unit;
        let at = if at + need <= end { at } else { start };
        if cell.get("raw") > 0 {
            b.write_as(Some(Multi::OpenEnded))?;
        } else {
            for k in 0..12 {
                b.read(READ, at + k * len, len)?;
            }
        }
        let done = (0..=writes).try_for_each(|k| b.write(if k == 0 { OPENING } else { WRITE }, at + k * len, len).map(|_| ()));
        b.write_as(None)?;
        done
    }

    fn infer(&self, run: &Run) -> Vec<Finding> {
        if run.cells.is_empty() {
            let q = [Quantity::RewritePolicy, Quantity::WriteBuffer, Quantity::RewriteMs, Quantity::ChipClass];
            return q.map(|q| Finding::undecided(q, "the region is smaller than 16 MiB")).to_vec();
        }
        let rows = rows(run);
        let Some(first) = rows.first() else { return infer(&[], None, None, None, "") };
        // What every transaction costs beyond the host, if rows of all sizes agree on it.
        let fixed: Vec<f64> = rows.iter().map(|r| median(&r.looks.iter().map(|l| l.ms).collect::<Vec<_>>())).collect();
        let (lo, hi) = fixed.iter().fold((f64::INFINITY, 0.0f64), |(lo, hi), &x| (lo.min(x), hi.max(x)));
        let same = fixed.len() >= 2 && hi < 1.35 * lo;
        // One write in thirty may be a stall.
        let long = rows.last().map(|r| quantile(&r.looks.iter().map(|l| l.ms).collect::<Vec<_>>(), 0.96));
        let mut out =
            infer(&first.looks, same.then_some((lo + hi) / 2.0), long, run.setting("size"), &format!("writes of {}", Bytes(first.len)));
        // A second row must see the same buffer, where it is larger than that row's writes.
        let buffer = out.iter().find(|f| f.quantity == Quantity::WriteBuffer).and_then(Finding::number);
        if let (Some(size), Some(second)) = (buffer, rows.get(1).filter(|r| r.len * 2 <= buffer.unwrap_or(0.0) as u64)) {
            let seen = shows(&second.looks, size as u64);
            for f in out.iter_mut().filter(|f| f.value.is_some()) {
                match seen {
                    true => f.evidence.push(format!("writes of {} show the same buffer", Bytes(second.len))),
                    false => {
                        f.confidence *= 0.7;
                        f.caveats.push(format!("writes of {} do not show it", Bytes(second.len)));
                    }
                }
            }
        }
        raw_beside(run, &mut out);
        let len = 4 * first.len;
        let elsewhere: Vec<Look> = run.samples.iter().filter(|s| s.role == WRITE && s.len == len).map(look).collect();
        let usual: Vec<f64> = bars(&elsewhere, BAR).iter().map(|b| b.1).collect();
        out.extend(fast_start(&bars(&start(run), BAR), &usual, &format!("writes of {}", Bytes(len))));
        out
    }

    fn figures(&self, run: &Run) -> Vec<Figure> {
        let series = |l: &[Look]| l.iter().enumerate().map(|(i, l)| (i as f64, l.ms)).collect::<Vec<_>>();
        let figure = |title: String, x: &str, points| Figure {
            title,
            x: x.into(),
            y: "ms".into(),
            log_x: false,
            log_y: false,
            series: vec![Series { name: "write".into(), points }],
        };
        let mut out: Vec<Figure> = rows(run)
            .iter()
            .take(2)
            .map(|r| {
                figure(
                    format!("time of writes of {}, one behind the other, without the host", Bytes(r.len)),
                    "number of the write",
                    series(&r.looks),
                )
            })
            .collect();
        let start: Vec<(f64, f64)> = start(run).iter().map(|l| (l.from as f64 / KIB as f64, l.ms)).collect();
        if !start.is_empty() {
            out.push(figure("time of writes of 2 KiB at the start of the card".into(), "KiB", start));
        }
        out
    }
}

/// What open-ended transactions by raw commands say to the same question, where they could be sent.
fn raw_beside(run: &Run, out: &mut [Finding]) {
    let raw: Vec<Look> =
        run.cells.iter().filter(|c| c.get("raw") > 0).flat_map(|c| run.of(c.id).filter(|s| s.role == WRITE).map(look)).collect();
    let seen = infer(&raw, None, None, run.setting("size"), "raw");
    for f in out.iter_mut().filter(|f| f.value.is_some()) {
        let other = seen.iter().find(|o| o.quantity == f.quantity).and_then(Finding::number);
        let (Some(a), Some(b)) = (f.number(), other) else { continue };
        if (a / b.max(1e-9) - 1.0).abs() < 0.2 || a == b {
            f.evidence.push("open-ended transactions by raw commands show the same".into());
        } else {
            f.confidence *= 0.7;
            f.caveats.push(format!("open-ended transactions by raw commands say {}", f.quantity.show(b)));
        }
    }
}

/// Writes of one size, both trials, without what the host costs.
struct Row {
    len: u64,
    looks: Vec<Look>,
}

fn rows(run: &Run) -> Vec<Row> {
    run.cells
        .iter()
        .filter(|c| c.get("start") == 0 && c.get("raw") == 0)
        .map(|c| {
            let reads: Vec<f64> = run.of(c.id).filter(|s| s.role == READ).map(|s| s.took.millis()).collect();
            let host = if reads.is_empty() { 0.0 } else { median(&reads) };
            let writes = run.of(c.id).filter(|s| s.role == WRITE);
            let looks = writes.map(|s| Look { ms: (s.took.millis() - host).max(0.0), ..look(s) }).collect();
            Row { len: c.bytes("len"), looks }
        })
        .filter(|r: &Row| !r.looks.is_empty())
        .collect()
}

fn look(s: &Sample) -> Look {
    Look { from: s.at, to: s.at + s.len, ms: s.took.millis(), stop: false }
}

fn start(run: &Run) -> Vec<Look> {
    run.samples.iter().filter(|s| s.role == START).map(look).collect()
}

/// Mean time of the writes of each stretch of `len` bytes, with its end. A mean, since some writes pay for others.
fn bars(looks: &[Look], len: u64) -> Vec<(u64, f64)> {
    let mut sums: std::collections::BTreeMap<u64, (f64, u32)> = std::collections::BTreeMap::new();
    for l in looks {
        let s = sums.entry(l.from / len).or_default();
        *s = (s.0 + l.ms, s.1 + 1);
    }
    sums.into_iter().map(|(k, (sum, n))| ((k + 1) * len, sum / f64::from(n))).collect()
}
