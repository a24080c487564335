//! When a card rewrites and how large its write buffer is: rows of small writes, less what the host costs.

use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::pipeline::Analysis;
use crate::finding::{Finding, Quantity};
use crate::infer::rewrite::{Look, fast_start, infer, shows};
use crate::infer::stats::{median, quantile};
use crate::samples::{Run, Sample};
use crate::units::{Bytes, KIB, MIB, as_sold};

/// Judges runs of `write-trace`.
pub struct WriteTrace;

pub(super) const ANALYSES: &[&dyn Analysis] = &[&WriteTrace];

/// Roles of the samples.
pub const READ: u8 = 0;
pub const OPENING: u8 = 1;
pub const WRITE: u8 = 2;
pub const START: u8 = 3;

/// Bytes of the largest cards with chips of small blocks, sold as 128 MB.
const LARGEST_SMALL: u64 = 128 * MIB;

/// Bytes of one bar of the start.
pub const BAR: u64 = 64 * KIB;

impl Analysis for WriteTrace {
    fn name(&self) -> &'static str {
        "write-trace"
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        if run.cells.is_empty() {
            let q = [Quantity::RewritePolicy, Quantity::WriteBuffer, Quantity::RewriteMs, Quantity::ChipClass];
            return q.map(|q| Finding::undecided(q, format!("{} is smaller than 16 MiB", run.stretch()))).to_vec();
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
        if let (Some(chip), Some(size)) = (out.iter_mut().find(|f| f.quantity == Quantity::ChipClass), run.setting("size")) {
            chip.evidence.push(rule(chip.number(), size));
        }
        let len = 4 * first.len;
        let elsewhere: Vec<Look> = run.samples.iter().filter(|s| s.role == WRITE && s.len == len).map(look).collect();
        let usual: Vec<f64> = bars(&elsewhere, BAR).iter().map(|b| b.1).collect();
        out.extend(fast_start(&bars(&start(run), BAR), &usual, &format!("writes of {}", Bytes(len))));
        out
    }

    fn figures(&self, run: &Case) -> Vec<Figure> {
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
                    format!("time of writes of {}, one after the other, without the host", Bytes(r.len)),
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

/// Cards sold as more than 128 MB have chips of large blocks (C2): what that says of this one.
fn rule(chip: Option<f64>, size: u64) -> String {
    let sold = as_sold(size);
    let large = size > LARGEST_SMALL;
    match (large, chip) {
        (true, Some(1.0)) => format!("unusual: cards above 128 MB have chips of large blocks as a rule, and this one has {sold}"),
        (true, _) => format!("cards above 128 MB have chips of large blocks as a rule; this one has {sold}"),
        (false, _) => format!("cards up to 128 MB have chips of either kind; this one has {sold}"),
    }
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
