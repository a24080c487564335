//! Whether the first blocks take random writes better than the rest, and where that ends.

pub(super) mod tables;

use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::pipeline::Analysis;
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{median, quantile};
use crate::samples::Cell;
use crate::units::{Bytes, KIB, MIB, three};

/// Judges runs of `fat-zone`.
pub struct FatZone;

pub(super) const ANALYSES: &[&dyn Analysis] = &[&FatZone];

/// Bytes looked at from the start; a zone that reaches further is told as "at least".
pub const LOOK: u64 = 64 * MIB;

/// A write in a zone takes less than this share of one elsewhere; where the start takes more than `LIKE` of it, there is none.
const CLEARLY: f64 = 0.6;

const LIKE: f64 = 0.8;

/// Writes of one place lie this close together.
pub const PLACES: u64 = 8;

impl Analysis for FatZone {
    fn name(&self) -> &'static str {
        "fat-zone"
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        let q = Quantity::FatZone;
        let Some(middle) = middle(run) else {
            return vec![Finding::undecided(q, unasked(run))];
        };
        let Some(first) = run.cells.iter().find(|c| c.get("at") == 0).and_then(|c| time(run, c)) else {
            return vec![Finding::undecided(q, "the run ended before the start of the card was tried")];
        };
        let window = PLACES * run.cells[0].bytes("chunk");
        let text = format!("a random write takes {} ms at the start, {} ms in the middle", three(first / 1e3), three(middle / 1e3));
        let contrast = (middle / first.max(1.0)).log2();
        let trust = (0.6 + 0.1 * contrast.abs()).min(0.92);
        let f = match bracket(run) {
            (None, _) if first > LIKE * middle => match fast_start(run) {
                Some(end) => Finding::undecided(
                    q,
                    format!("the first {} may be one: a zone smaller than {} would not show", Bytes(end), Bytes(window)),
                ),
                None => Finding::decided(q, 0.0, 0.85),
            },
            (None, _) => Finding::undecided(q, "random writes at the start take less time than in the middle, but not clearly so"),
            (Some(0), None) => Finding::undecided(q, "the run ended before the end of the zone was found"),
            (Some(i), None) => Finding::at_least(q, i as f64, trust.min(0.85), "every place looked at is in the zone"),
            (Some(i), Some(o)) if o - i <= window => match end(run, i, o) {
                Some(e) => Finding::decided(q, e as f64, trust),
                None => Finding::undecided(
                    q,
                    format!("it ends between {} and {}, where writes are neither fast nor slow", Bytes(i), Bytes(o + window)),
                ),
            },
            _ => Finding::undecided(q, "the run ended before the end of the zone was found"),
        };
        vec![f.evidence(text)]
    }

    fn figures(&self, run: &Case) -> Vec<Figure> {
        let mut points: Vec<(f64, f64)> = run
            .cells
            .iter()
            .filter(|c| c.get("at") >= 0)
            .filter_map(|c| Some((c.get("at") as f64 / MIB as f64, time(run, c)? / 1e3)))
            .collect();
        nandscope_stats::ascending(&mut points, |a| a.0);
        vec![Figure {
            title: "time of a random write near the start".into(),
            x: "offset on the card, MiB".into(),
            y: "ms".into(),
            log_x: false,
            log_y: true,
            series: vec![Series { name: "median".into(), points }],
        }]
    }
}

/// Why nothing was tried, or not enough.
fn unasked(run: &Case) -> String {
    let set = |k: &str| run.setting(k).unwrap_or(0);
    match run.believed.whole(Quantity::OpenAusRandom) {
        _ if set("offset") > 0 => "a zone lies at the start of the whole disk, and this is a partition: name the disk".into(),
        _ if set("start") > 0 && run.is_part() => format!("the start of the card is not in {}", run.stretch()),
        _ if set("start") > 0 => format!("the start of the card is not in {}: --region 0.. includes it", run.stretch()),
        _ if set("end") < 4 * LOOK => format!("it needs a region of {} or more", Bytes(4 * LOOK)),
        _ if !run.samples.is_empty() => "the run ended before the middle of the card was tried".into(),
        Some(n) if n > 0 => "random writes are as fast as sequential ones here, so a zone would not show".into(),
        Some(_) => "whether random writes incur merges is too uncertain; --time 10m or more measures it longer".into(),
        None => "whether random writes incur merges is not known, and only then can a zone stand out".into(),
    }
}

/// A random write: its place, and its time in µs. Where a place was written twice in a row the longer time counts, for some cards put a
/// rewrite of the last place into a log of its own.
struct Write {
    cell: u32,
    at: u64,
    len: u64,
    took: f64,
}

fn writes(run: &Case) -> Vec<Write> {
    let mut out: Vec<Write> = vec![];
    let mut last = None;
    for s in run.samples.iter().filter(|s| s.role == 1) {
        let (here, took) = ((s.cell, s.trial, s.at), s.took.micros());
        match out.last_mut().filter(|_| last == Some(here)) {
            Some(w) => w.took = w.took.max(took),
            None => out.push(Write { cell: s.cell, at: s.at, len: s.len, took }),
        }
        last = Some(here);
    }
    out
}

/// Where a few of the writes at the start, those nearest to it, are all clearly faster than the others: the end of the last of them.
fn fast_start(run: &Case) -> Option<u64> {
    let at_start = |id: u32| run.cells.iter().any(|c| c.id == id && c.get("at") == 0);
    let mut all: Vec<(u64, u64, f64)> = writes(run).iter().filter(|w| at_start(w.cell)).map(|w| (w.at, w.at + w.len, w.took)).collect();
    nandscope_stats::ascending(&mut all, |s| s.0 as f64);
    (2..all.len().saturating_sub(1)).rev().find_map(|k| {
        let (near, far) = all.split_at(k);
        let slowest = near.iter().map(|s| s.2).fold(0.0, f64::max);
        let fastest = far.iter().map(|s| s.2).fold(f64::INFINITY, f64::min);
        (near[k - 1].0 < far[0].0 && slowest < CLEARLY * fastest).then(|| near[k - 1].1)
    })
}

/// Median time of the random writes, in microseconds.
fn time(run: &Case, cell: &Cell) -> Option<f64> {
    let t: Vec<f64> = writes(run).iter().filter(|w| w.cell == cell.id).map(|w| w.took).collect();
    (t.len() >= 3).then(|| median(&t))
}

fn middle(run: &Case) -> Option<f64> {
    run.cells.iter().find(|c| c.get("at") == -1).and_then(|c| time(run, c))
}

/// Microseconds below which a random write is that of a zone: between the start and the middle, where these two are clearly different.
fn line(run: &Case) -> Option<f64> {
    let all = writes(run);
    let of = |at: i64| -> Vec<f64> {
        let asked = |id: u32| run.cells.iter().any(|c| c.id == id && c.get("at") == at);
        all.iter().filter(|w| asked(w.cell)).map(|w| w.took).collect()
    };
    let (start, middle) = (of(0), of(-1));
    if start.len().min(middle.len()) < 3 {
        return None;
    }
    let apart = quantile(&start, 0.75) < quantile(&middle, 0.25) && median(&start) < CLEARLY * median(&middle);
    apart.then(|| (median(&start) * median(&middle)).sqrt())
}

/// The last place that is fast, and the first that is not.
pub fn bracket(run: &Case) -> (Option<u64>, Option<u64>) {
    let Some(line) = line(run) else { return (None, None) };
    let mut seen: Vec<(u64, bool)> =
        run.cells.iter().filter(|c| c.get("at") >= 0).filter_map(|c| Some((c.bytes("at"), time(run, c)? < line))).collect();
    seen.sort_unstable();
    let outside = seen.iter().find(|s| !s.1).map(|s| s.0);
    let inside = seen.iter().filter(|s| s.1 && outside.is_none_or(|o| s.0 < o)).map(|s| s.0).max();
    (inside, outside)
}

/// Where the fast writes end, if the first slow one is so far behind them that one of `chunk` fits between.
pub fn untried(run: &Case, chunk: u64) -> Option<u64> {
    let line = line(run)?;
    let all = writes(run);
    let near = || all.iter().filter(|w| w.at <= LOOK);
    let first = near().filter(|w| w.took >= line).map(|w| w.at).min()?;
    let last = near().filter(|w| w.took < line).map(|w| w.at + w.len).max()?;
    (last > 0 && last + chunk <= first).then_some(last)
}

/// Where the zone ends: of the places written near it, the fast ones lie in it and the slow ones do not. The roundest number
/// that says so; `None` where a place contradicts all of them.
fn end(run: &Case, inside: u64, outside: u64) -> Option<u64> {
    let (chunk, line) = (run.cells.first()?.bytes("chunk"), line(run)?);
    let upto = outside + PLACES * chunk;
    let near: Vec<(u64, bool)> = writes(run).iter().filter(|w| (inside..upto).contains(&w.at)).map(|w| (w.at, w.took < line)).collect();
    let wrong = |e: u64| near.iter().filter(|(at, fast)| *fast != (at + chunk <= e)).count();
    let step = 16 * KIB;
    let ends: Vec<u64> = (inside / step..=upto / step).map(|k| k * step).collect();
    let least = ends.iter().map(|&e| wrong(e)).min()?;
    let best = ends.into_iter().filter(|&e| wrong(e) == least).max_by_key(|e| e.trailing_zeros())?;
    (least * 8 <= near.len()).then_some(best)
}
