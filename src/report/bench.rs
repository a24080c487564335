//! The record benchmark as text and as JSON: SdFat's two forms, populations, stalls, buffers, plots.

use super::plot::braille;
use crate::device::CardState;
use crate::experiment::{Figure, Series};
use crate::infer::buffer::{Answer, gigabytes};
use crate::infer::stalls::{LIMITS, Population, Stalls, populations, stalls};
use crate::samples::busy::Trace;
use crate::samples::records::{Pass, consistent, loop_time};
use crate::units::{Bytes, Nanos, three};
use serde_json::{Value, json};
use std::fmt::Write;

/// One target's passes at one record size.
#[derive(Debug)]
pub struct Bench {
    /// The target, and what stands between it and the files.
    pub target: String,
    pub host: String,
    /// What the flash went through before.
    pub state: CardState,
    pub record: u64,
    pub file: u64,
    /// "synced at the end" and the like.
    pub sync: String,
    pub passes: Vec<Pass>,
    pub answers: Vec<Answer>,
    pub notes: Vec<String>,
    /// A price and its currency, for comparisons (G13).
    pub price: Option<f64>,
}

/// Name and version of the JSON form.
pub const SCHEMA: &str = "nandscope-bench/1";

const PERCENTILES: [f64; 6] = [50.0, 90.0, 99.0, 99.9, 99.99, 100.0];

fn us(x: f64) -> String {
    Nanos((x * 1e3) as u64).to_string()
}

/// The line of SdFat's table, and the form of 2012.
pub fn sdfat(p: &Pass) -> [String; 2] {
    let (max, min) = p.max_min();
    let (word, speed, mean) = (if p.write { "Write" } else { "Read" }, p.speed(), p.mean());
    [
        format!("{speed:.2},{max:.0},{min:.0},{mean:.0}"),
        format!("{word} {speed:.2} KB/sec\nMaximum latency: {max:.0} usec, Minimum Latency: {min:.0} usec, Avg Latency: {mean:.0} usec"),
    ]
}

impl Bench {
    /// The first line: what was done to what.
    fn title(&self) -> String {
        format!("{}, {}: {:.2} MB in records of {} B, {}", self.target, self.host, self.file as f64 / 1e6, self.record, self.sync)
    }

    pub fn text(&self, width: usize, plots: bool) -> String {
        let mut out = format!("{}\n", self.title());
        for write in [true, false] {
            let passes: Vec<&Pass> = self.passes.iter().filter(|p| p.write == write).collect();
            let Some(first) = passes.first() else { continue };
            let _ = writeln!(out, "\n{} speed and latency\nspeed,max,min,avg\nKB/Sec,usec,usec,usec", if write { "write" } else { "read" });
            passes.iter().for_each(|p| {
                let _ = writeln!(out, "{}", sdfat(p)[0]);
            });
            let _ = writeln!(out, "\n{}", sdfat(first)[1]);
            self.pass(&mut out, first);
            if plots {
                for f in [histogram(first), timeline(first)] {
                    let lines = braille(&f, width.min(100), 6);
                    if !lines.is_empty() {
                        let _ = writeln!(out, "\n{}", lines.join("\n"));
                    }
                }
            }
        }
        if !self.answers.is_empty() {
            let _ = writeln!(out, "\nBuffer for a logger");
        }
        for a in &self.answers {
            let _ = writeln!(out, "  - {}", answer(a));
        }
        for n in &self.notes {
            let _ = writeln!(out, "  note: {n}");
        }
        out
    }

    fn pass(&self, out: &mut String, p: &Pass) {
        let cells: Vec<String> = PERCENTILES.iter().map(|&q| format!("{q} % {}", us(p.percentile(q)))).collect();
        let _ = writeln!(out, "  calls up to: {}", cells.join(", "));
        let groups = populations(p);
        let whole = p.record.is_multiple_of(512);
        let shown: Vec<String> = groups.iter().map(|g| group(g, &groups, whole)).collect();
        if shown.len() > 1 {
            let _ = writeln!(out, "  populations: {}", shown.join("; "));
        }
        let _ = writeln!(out, "  open {}, last sync and close {}", p.opened, p.closed);
        if !consistent(p.record, p.speed(), p.mean()) {
            let x = loop_time(p.record, p.speed(), p.mean());
            let _ = writeln!(out, "  speed and mean contradict each other by {} µs a record (G7)", three(-x));
        }
        if p.unordered {
            let tail: Vec<String> = stalls(p).tail.iter().filter(|t| t.1 > 0).map(|(ms, n)| format!("{n} above {ms} ms")).collect();
            let tail = if tail.is_empty() { "no call above 1 ms".into() } else { tail.join(", ") };
            let _ = writeln!(
                out,
                "  tail: {tail}\n  stalls: how regular they are is not known, because the calls came as a histogram, without their order"
            );
            return;
        }
        stall_text(out, &stalls(p), p);
    }

    pub fn json(&self) -> Value {
        let passes: Vec<Value> = self.passes.iter().map(pass_json).collect();
        json!({
            "schema": SCHEMA,
            "tool": { "name": "nandscope", "version": env!("CARGO_PKG_VERSION") },
            "target": self.target,
            "state": self.state,
            "host": self.host,
            "record": self.record,
            "file": self.file,
            "sync": self.sync,
            "price": self.price,
            "passes": passes,
            "buffers": self.answers,
            "notes": self.notes,
        })
    }
}

fn pass_json(p: &Pass) -> Value {
    let (max, min) = p.max_min();
    let counts: Vec<(u64, u64)> = p.histogram.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value())).collect();
    let percentiles: Vec<(f64, f64)> = PERCENTILES.iter().map(|&q| (q, p.percentile(q))).collect();
    json!({
        "write": p.write,
        "records": p.records,
        "speed_kb_s": p.speed(),
        "max_us": max,
        "min_us": min,
        "avg_us": p.mean(),
        "open_us": p.opened.micros(),
        "close_us": p.closed.micros(),
        "elapsed_ns": p.elapsed.0,
        "consistent": consistent(p.record, p.speed(), p.mean()),
        "percentiles_us": percentiles,
        "populations": populations(p),
        "stalls": (!p.unordered).then(|| stalls(p)),
        "unordered": p.unordered,
        "histogram_ns": counts,
        "timeline": { "stretch_ns": p.stretch, "records": p.timeline.iter().map(|s| s.records).collect::<Vec<_>>(),
            "worst_ns": p.timeline.iter().map(|s| s.worst_ns).collect::<Vec<_>>() },
        "position": p.position,
        "calls": { "before": p.calls.iter().map(|c| c.before).collect::<Vec<_>>(), "before_ns": p.calls.iter().map(|c| c.before_ns).collect::<Vec<_>>(),
            "took_ns": p.calls.iter().map(|c| c.took_ns).collect::<Vec<_>>(), "after": p.after },
    })
}

fn group(g: &Population, all: &[Population], whole_sectors: bool) -> String {
    // G3: a record that stays in a buffer against one that reaches the card.
    let what = match all {
        [hit, rest @ ..] if !whole_sectors && !rest.is_empty() && std::ptr::eq(g, hit) && rest[0].median > 3.0 * hit.median => {
            " (in a buffer)"
        }
        _ => "",
    };
    format!("{} % in {} to {}, median {}{what}", three(g.share * 100.0), us(g.shortest), us(g.longest), us(g.median))
}

fn stall_text(out: &mut String, s: &Stalls, p: &Pass) {
    if s.count == 0 {
        let _ = writeln!(
            out,
            "  stalls: no call above {} in {:.4} GB; fewer than {} a GB at 95 %",
            us(s.threshold),
            p.bytes() as f64 / 1e9,
            three(s.interval[1])
        );
    } else {
        let _ = writeln!(
            out,
            "  stalls: {} calls above {}, median {}, longest {}; {} a GB ({} to {}); {} % of the time",
            s.count,
            us(s.threshold),
            us(s.median),
            us(s.longest),
            three(s.per_gb),
            three(s.interval[0]),
            three(s.interval[1]),
            three(s.cost * 100.0)
        );
        let show = |x: f64| three(x * 100.0);
        if let Some(b) = s.in_bytes {
            let whole = Bytes((b.length / 512.0).round() as u64 * 512);
            let _ = writeln!(out, "    every {whole} ({} % of them lie on that, {} % of its places have one)", show(b.on), show(b.filled));
        }
        if let Some(t) = s.in_time {
            let _ = writeln!(out, "    every {} of writing ({} % of them)", Nanos(t.length as u64), show(t.on));
        }
        match (s.in_bytes, s.in_time) {
            (Some(b), Some(t)) if (b.on - t.on).abs() < 0.1 => {
                let _ = writeln!(out, "    bytes or time: the rate was too even to tell which of the two the card counts");
            }
            (None, None) if s.count >= 4 => {
                let _ = writeln!(out, "    at no regular distance, in bytes or in time");
            }
            _ => {}
        }
    }
    let tail: Vec<String> = s.tail.iter().filter(|t| t.1 > 0 && t.0 >= 10.0).map(|t| format!("{} above {} ms", t.1, t.0)).collect();
    if !tail.is_empty() {
        let _ = writeln!(out, "    tail: {}", tail.join(", "));
    }
    for (ms, what) in LIMITS {
        if p.write && p.longest.millis() > ms {
            let _ = writeln!(out, "    the longest call is above {ms} ms, the limit of: {what}");
        }
    }
}

fn answer(a: &Answer) -> String {
    let rate = three(a.rate / 1e3);
    let Some(bytes) = a.bytes else {
        return format!("to log {rate} kB/s with less than one loss in {}: undecided, because {}", gigabytes(a.gb), a.because);
    };
    let replayed = a.replayed.map_or(String::new(), |[with, less]| format!("; replayed: {with} losses, with one record less {less}"));
    let halves =
        a.halves.map_or(String::new(), |(b, lost)| format!("; {b} B from the first half of the calls loses {lost} times in the second"));
    format!(
        "to log {rate} kB/s with less than one loss in {} you need {bytes} B of buffer: {}{replayed}{halves}",
        gigabytes(a.gb),
        a.because
    )
}

/// Calls over their length, both on logarithmic axes.
pub fn histogram(p: &Pass) -> Figure {
    let mut bins: std::collections::BTreeMap<i64, u64> = std::collections::BTreeMap::new();
    for v in p.histogram.iter_recorded() {
        *bins.entry(((v.value_iterated_to() as f64).log2() * 8.0).floor() as i64).or_default() += v.count_at_value();
    }
    let points = bins.iter().map(|(b, n)| (((*b as f64 + 0.5) / 8.0).exp2() / 1e6, *n as f64)).collect();
    figure(if p.write { "write calls over their length" } else { "read calls over their length" }, "ms", "calls", true, points)
}

/// The longest call of each stretch of the run.
pub fn timeline(p: &Pass) -> Figure {
    let points = p.timeline.iter().enumerate().map(|(i, s)| (i as f64 * p.stretch as f64 / 1e9, s.worst_ns as f64 / 1e6)).collect();
    figure(if p.write { "longest write call over time" } else { "longest read call over time" }, "s", "ms", false, points)
}

/// Busy polls behind each data block and behind Stop Tran, over the number of the block (C11), counted in the order of writing:
/// by their place on the card the file table would lie far from the file, and the pattern of the file in a corner.
pub fn busy(trace: &Trace) -> Figure {
    let (mut data, mut stop, mut next) = (vec![], vec![], 0);
    for t in &trace.transactions {
        data.extend(t.data.iter().enumerate().map(|(k, n)| ((next + k as u64) as f64, *n as f64)));
        next += t.data.len() as u64;
        stop.extend(t.stop.map(|n| (next as f64, n as f64)));
    }
    let series =
        [("after a data block", data), ("after Stop Tran", stop)].map(|(name, points)| Series { name: name.into(), points }).to_vec();
    Figure {
        title: "busy after data blocks and Stop Tran".into(),
        x: "block of 512 B, in the order of writing".into(),
        y: "polls".into(),
        log_x: false,
        log_y: false,
        series,
    }
}

fn figure(title: &str, x: &str, y: &str, log: bool, points: Vec<(f64, f64)>) -> Figure {
    let series = vec![Series { name: "calls".into(), points }];
    Figure { title: title.into(), x: x.into(), y: y.into(), log_x: log, log_y: log, series }
}

/// Several targets beside each other, with ratios to the first (G4, G6), and speed per price where prices are given (G13).
pub fn summary(all: &[Bench]) -> String {
    let mut out = String::from(
        "| target | record | write KB/s | x | max us | avg us | read KB/s | x | max us | avg us |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for b in all {
        let first = all.iter().find(|f| f.record == b.record);
        let of = |b: &Bench, write: bool| b.passes.iter().find(|p| p.write == write).map(|p| (p.speed(), p.max_min().0, p.mean()));
        let cells = |write: bool| match (of(b, write), first.and_then(|f| of(f, write))) {
            (Some(x), Some(f)) => format!("{:.2} | {:.2} | {:.0} | {:.0}", x.0, x.0 / f.0, x.1, x.2),
            _ => "- | - | - | -".into(),
        };
        let _ = writeln!(out, "| {} | {} | {} | {} |", b.target, b.record, cells(true), cells(false));
    }
    for b in all {
        if let (Some(price), Some(p)) = (b.price.filter(|p| *p > 0.0), b.passes.iter().find(|p| p.write)) {
            let _ = writeln!(out, "{} in records of {} B: {:.1} kB/s written for 1 of the price", b.target, b.record, p.speed() / price);
        }
    }
    out
}
