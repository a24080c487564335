//! The record benchmark as text and as JSON: SdFat's form, populations, stalls, buffers, plots.

mod stalls;
mod summary;

pub use crate::advise::bench::{Bench, advice};
pub use stalls::answer_text;
pub use summary::{aligned, prices, summary};

use super::plot::braille;
use crate::advise::price::Price;
use crate::host::requests::path;
use crate::infer::buffer::{Answer, long};
use crate::infer::figure::{Figure, Series};
use crate::infer::stalls::{BUSY_MS, Population, buffered, populations, slow, stalls as find};
use crate::samples::busy::Trace;
use crate::samples::records::{Pass, consistent, loop_time};
use crate::saved::Tool;
use crate::units::{Nanos, between, three};
use serde_json::{Value, json};
use stalls::stall_text;
use std::fmt::Write;

/// How a pass is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Characters of a line.
    pub width: usize,
    pub plots: bool,
    /// In the form of 2012, too.
    pub sdfat: bool,
}

/// Seconds of a day: what a logger should last.
const DAY: f64 = 86_400.0;

/// A rate as `--log` takes it.
fn spelled(rate: f64) -> String {
    let bytes = rate.round() as u64;
    if bytes.is_multiple_of(1000) { format!("{}kB", bytes / 1000) } else { format!("{bytes}B") }
}

/// A time for `--for`, rounded up, with a little to spare.
fn hours(seconds: f64) -> String {
    let s = seconds * 1.02;
    if s < 7200.0 { format!("{:.0}m", (s / 60.0).ceil().max(1.0)) } else { format!("{:.0}h", (s / 3600.0).ceil()) }
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

/// The first line: what was done to what.
pub fn title(b: &Bench) -> String {
    let (mut written, mut begun) = (b.file as f64, 1);
    if let Some(p) = b.passes.first() {
        (written, begun) = (p.bytes() as f64, p.rounds.len().max(1));
    }
    let mut out = format!("{}, {}: {:.2} MB in records of {} B, {}", b.target, b.host, written / 1e6, b.record, b.sync);
    if begun > 1 {
        let _ = write!(out, ", a file of {:.2} MB begun {begun} times", b.file as f64 / 1e6);
    }
    out
}

/// The longest call of the writes beside what the standard allows. The wire takes its part of a long record.
fn worst(b: &Bench) -> Option<String> {
    let p = b.passes.iter().filter(|p| p.write && p.records > 1).max_by_key(|p| p.longest)?;
    let beyond = find(p).beyond;
    let more = if beyond < 0.9 * p.longest.micros() {
        format!(", {} more than the shortest that reaches the card", us(beyond))
    } else {
        String::new()
    };
    let [most, sdxc] = BUSY_MS;
    let verdict = match beyond / 1e3 {
        ms if ms > sdxc => ": EXCEEDED",
        ms if ms > most => ": EXCEEDED unless it is SDXC",
        _ => "",
    };
    Some(format!(
        "longest write {}{more}; the SD standard allows a card to be busy for {most:.0} ms (SDXC: {sdxc:.0} ms){verdict}",
        p.longest
    ))
}

pub fn text(b: &Bench, style: Style) -> String {
    let mut out = format!("{}\n", title(b));
    if b.cached {
        let _ = writeln!(
            out,
            "  The kernel's page cache took these records: the figures are of the memory, not of the card. --sync 1 times the card."
        );
    } else if let Some(worst) = worst(b) {
        let _ = writeln!(out, "  {worst}");
    }
    for line in path(b.record, &b.layers) {
        let _ = writeln!(out, "  {line}");
    }
    let lines = buffers(b);
    if !lines.is_empty() {
        let _ = writeln!(out, "\nBuffer for a logger");
    }
    for line in lines {
        let _ = writeln!(out, "  - {line}");
    }
    for write in [true, false] {
        let passes: Vec<&Pass> = b.passes.iter().filter(|p| p.write == write).collect();
        let Some(first) = passes.first() else { continue };
        let _ = writeln!(out, "\n{} speed and latency\nspeed,max,min,avg\nKB/Sec,usec,usec,usec", if write { "write" } else { "read" });
        passes.iter().for_each(|p| {
            let _ = writeln!(out, "{}", sdfat(p)[0]);
        });
        if b.kernel && !write {
            let _ = writeln!(out, "  The kernel reads ahead into its page cache: most of these calls are of the memory, not of the card.");
        }
        if style.sdfat {
            let _ = writeln!(out, "\n{}\n", sdfat(first)[1]);
        }
        pass(&mut out, first);
        if style.plots && first.missing() == 0 {
            for f in [histogram(first), timeline(first)] {
                let lines = braille(&f, style.width.min(100), 6);
                if !lines.is_empty() {
                    let _ = writeln!(out, "\n{}", lines.join("\n"));
                }
            }
        }
    }
    for n in &b.notes {
        let _ = writeln!(out, "  note: {n}");
    }
    out
}

/// What a logger needs, in words: first what would decide a question of a day.
pub fn buffers(b: &Bench) -> Vec<String> {
    let short = b.answers.iter().filter(|a| a.bytes.is_some() && a.seconds() < DAY).map(Answer::seconds).reduce(f64::min);
    let most = b.passes.iter().find(|p| p.write).map_or(0.0, |p| p.bytes() as f64 * 1e9 / p.total.0.max(1) as f64);
    let rate = b.answers.iter().map(|a| a.rate).fold(0.0, f64::max);
    let mut out = vec![];
    if let Some(short) = short.filter(|_| most > 0.0) {
        let wanted = 3.0 * DAY * rate;
        let run = b.again(&format!("--no-read --log {}/s --loss-time 24h --for {}", spelled(rate), hours(wanted / most)));
        out.push(format!(
            "this run carries no more than one loss in {} of logging; one in a day takes {} of writing{}",
            long(short),
            long(wanted / most),
            run.map_or(String::new(), |r| format!(": {r}"))
        ));
    }
    for a in &b.answers {
        out.push(answer_text(a));
        if let Some(run) = a.wants.filter(|_| a.bytes.is_none()).and_then(|w| {
            let gb = (a.gb * 1e6).ceil() / 1e6;
            b.again(&format!("--no-read --log {}/s --loss-gb {gb} --for {}", spelled(a.rate), hours(w)))
        }) {
            out.push(format!("what decides it: {run}"));
        }
    }
    out
}

fn pass(out: &mut String, p: &Pass) {
    let share = 100.0 * p.lost().0 as f64 / p.total.0.max(1) as f64;
    let what = if p.record < 512 { ", most of it the writing of sectors" } else { "" };
    let what = if p.write { what } else { "" };
    let _ = writeln!(
        out,
        "  {} records; time lost to longer calls: {} of {} ({} %{what}), that is (avg - min) times the records",
        p.records,
        p.lost(),
        p.total,
        three(share)
    );
    if p.left_out() {
        let _ = writeln!(
            out,
            "  the first call took {}: it counts in avg and in what follows, and not in max and min, as in SdFat's bench (--count-first counts it)",
            p.first
        );
    }
    if p.missing() > 0 {
        let _ =
            writeln!(out, "  percentiles and tail are not known: {} of {} calls are missing from the histogram", p.missing(), p.records);
    } else {
        let cells: Vec<String> = PERCENTILES.iter().map(|&q| format!("{q} % {}", us(p.percentile(q)))).collect();
        let _ = writeln!(out, "  calls up to: {}", cells.join(", "));
        let groups = populations(p);
        let held = buffered(p, &groups);
        let shown: Vec<String> = groups.iter().enumerate().map(|(i, g)| group(g, held && i == 0)).collect();
        if shown.len() > 1 {
            let _ = writeln!(out, "  populations: {}", shown.join("; "));
        }
    }
    let _ = writeln!(out, "  open {}, last sync and close {}", p.opened, p.closed);
    if !consistent(p.record, p.speed(), p.mean()) {
        let x = loop_time(p.record, p.speed(), p.mean());
        let _ = writeln!(out, "  speed and mean contradict each other by {} µs a record", three(-x));
    }
    if p.missing() > 0 {
        return;
    }
    if p.unordered {
        let tail: Vec<String> = find(p).tail.iter().filter(|t| t.1 > 0).map(|(ms, n)| format!("{n} above {ms} ms")).collect();
        let tail = if tail.is_empty() { "no call above 1 ms".into() } else { tail.join(", ") };
        let _ = writeln!(
            out,
            "  tail: {tail}\n  stalls: how regular they are is not known, because the calls came as a histogram, without their order"
        );
        return;
    }
    stall_text(out, &find(p), p);
}

pub fn json(b: &Bench) -> Value {
    let passes: Vec<Value> = b.passes.iter().map(pass_json).collect();
    json!({
        "schema": SCHEMA,
        "tool": Tool::this(),
        "target": b.target,
        "capacity": b.capacity,
        "state": b.state,
        "host": b.host,
        "record": b.record,
        "file": b.file,
        "sync": b.sync,
        "price": b.price.as_ref().map(Price::to_string),
        "cluster": b.cluster,
        "kernel": b.kernel,
        "cached": b.cached,
        "title": title(b),
        "worst": worst(b),
        "requests": b.layers,
        "request_text": path(b.record, &b.layers),
        "passes": passes,
        "buffers": b.answers,
        "buffer_text": buffers(b),
        "notes": b.notes,
    })
}

/// Stalls whose places go into the JSON.
const MOST_PLACES: usize = 4096;

fn pass_json(p: &Pass) -> Value {
    let (max, min) = p.max_min();
    let counts: Vec<(u64, u64)> = p.histogram.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value())).collect();
    let found = find(p);
    let mut text = String::new();
    if !p.unordered {
        stall_text(&mut text, &found, p);
    }
    let places: Vec<(u64, u64, u64)> =
        slow(p, found.threshold).iter().take(MOST_PLACES).map(|s| (p.began(s.round).unwrap_or(0) + s.offset, s.took, s.at)).collect();
    let known: &[f64] = if p.missing() == 0 { &PERCENTILES } else { &[] };
    let percentiles: Vec<(f64, f64)> = known.iter().map(|&q| (q, p.percentile(q))).collect();
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
        "populations": if p.missing() == 0 { populations(p) } else { vec![] },
        "stalls": (!p.unordered).then_some(found),
        "unordered": p.unordered,
        "stall_text": text.lines().map(str::trim_start).collect::<Vec<_>>(),
        "stall_places": places,
        "lost_ns": p.lost().0,
        "first_us": p.first.micros(),
        "left_out": p.left_out(),
        "rounds": p.rounds,
        "histogram_ns": counts,
        "timeline": { "stretch_ns": p.stretch, "records": p.timeline.iter().map(|s| s.records).collect::<Vec<_>>(),
            "worst_ns": p.timeline.iter().map(|s| s.worst_ns).collect::<Vec<_>>() },
        "position": p.position,
        "calls": { "before": p.calls.iter().map(|c| c.before).collect::<Vec<_>>(), "before_ns": p.calls.iter().map(|c| c.before_ns).collect::<Vec<_>>(),
            "took_ns": p.calls.iter().map(|c| c.took_ns).collect::<Vec<_>>(), "after": p.after },
    })
}

fn group(g: &Population, held: bool) -> String {
    let what = if held { " (in a buffer)" } else { "" };
    format!("{} % in {}, median {}{what}", three(g.share * 100.0), between(&us(g.shortest), &us(g.longest)), us(g.median))
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
