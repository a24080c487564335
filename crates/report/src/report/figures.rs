//! The figures of a report: what the experiments draw, and for every run where and when its accesses took how long.

use super::Report;
use crate::device::Op;
use crate::infer::figure::{Figure, HIGH, LOW, Series};
use crate::infer::pipeline;
use crate::samples::{Run, Sample};
use crate::units::{Bytes, three};
use std::collections::BTreeMap;

/// How much of a figure a page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detail {
    /// Points of a series for the script, and in the drawing.
    pub script: usize,
    pub drawn: usize,
    /// Rows of its table of numbers.
    pub rows: usize,
}

impl Default for Detail {
    fn default() -> Detail {
        Detail { script: 3000, drawn: 500, rows: 100 }
    }
}

/// A figure and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// One word, for files and `--figure`.
    pub name: String,
    pub experiment: String,
    /// Drawn from the accesses as they are, not by the experiment.
    pub raw: bool,
    pub figure: Figure,
    /// What a page shows of it.
    pub detail: Detail,
}

/// All figures with at least two points, in the order of the runs.
pub fn plots(r: &Report) -> Vec<Plot> {
    let mut out: Vec<Plot> = vec![];
    for run in &r.runs {
        let own = pipeline::figures(run);
        let raw = raw(run);
        for (figure, raw) in own.into_iter().map(|f| (f, false)).chain(raw.into_iter().map(|f| (f, true))) {
            if points(&figure).count() < 2 {
                continue;
            }
            let base = if raw { figure.title.clone() } else { format!("{} {}", run.experiment, figure.title) };
            let mut name = slug(&base);
            let twins = out.iter().filter(|p| p.name.starts_with(&name)).count();
            if twins > 0 {
                name = format!("{name}-{}", twins + 1);
            }
            out.push(Plot { name, experiment: run.experiment.clone(), raw, figure, detail: Detail::default() });
        }
    }
    out
}

/// A title as one word for names of files and anchors.
pub fn slug(text: &str) -> String {
    let words: Vec<String> = text
        .to_lowercase()
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|w| !w.is_empty() && !["of", "a", "an", "the", "in", "one", "its"].contains(w))
        .map(str::to_string)
        .collect();
    words.join("-")
}

pub fn op_name(op: &Op) -> &'static str {
    op.name()
}

/// Place, time and distribution of every access of a run.
fn raw(run: &Run) -> Vec<Figure> {
    let mut by_op: BTreeMap<&'static str, Vec<&Sample>> = BTreeMap::new();
    run.samples.iter().for_each(|s| by_op.entry(op_name(&s.op)).or_default().push(s));
    let first = run.samples.iter().map(|s| s.start).min().unwrap_or_default();
    let scatter = |x: &dyn Fn(&Sample) -> f64| -> Vec<Series> {
        by_op
            .iter()
            .map(|(op, all)| {
                let mut points: Vec<(f64, f64)> = all.iter().map(|s| (x(s), s.took.millis())).collect();
                nandscope_stats::ascending(&mut points, |a| a.0);
                Series { name: (*op).into(), points }
            })
            .collect()
    };
    let figure =
        |title: String, x: &str, y: &str, log_x: bool, series| Figure { title, x: x.into(), y: y.into(), log_x, log_y: true, series };
    let name = &run.experiment;
    vec![
        figure(format!("{name}: latency by offset"), "offset on the card, MiB", "ms", false, scatter(&|s| s.at as f64 / (1 << 20) as f64)),
        figure(format!("{name}: latency over time"), "seconds since the start", "ms", false, scatter(&|s| (s.start - first).secs())),
        figure(format!("{name}: latency histogram"), "ms", "accesses", true, by_op.iter().map(|(op, all)| histogram(op, all)).collect()),
    ]
}

/// Eight bins an octave.
fn histogram(op: &str, all: &[&Sample]) -> Series {
    let mut bins: BTreeMap<i32, u64> = BTreeMap::new();
    for s in all {
        *bins.entry((s.took.millis().max(1e-6).log2() * 8.0).floor() as i32).or_default() += 1;
    }
    Series { name: op.into(), points: bins.iter().map(|(b, n)| (((f64::from(*b) + 0.5) / 8.0).exp2(), *n as f64)).collect() }
}

/// What is counted in classes is drawn as bars, from below a count of one.
pub fn is_histogram(f: &Figure) -> bool {
    matches!(f.y.as_str(), "accesses" | "calls")
}

/// The foot of the bars.
pub const FOOT: f64 = 0.7;

/// Points that can be drawn.
pub fn points(f: &Figure) -> impl Iterator<Item = (f64, f64)> + '_ {
    f.series.iter().flat_map(|s| s.points.iter().copied()).filter(|p| p.0.is_finite() && p.1.is_finite())
}

/// The bounds of a series, where the figure has them as series of their own.
pub fn bounds<'a>(f: &'a Figure, name: &str) -> Option<(&'a Series, &'a Series)> {
    let find = |suffix: &str| f.series.iter().find(|s| s.name.strip_suffix(suffix) == Some(name));
    Some((find(LOW)?, find(HIGH)?))
}

pub fn is_bound(s: &Series) -> bool {
    s.name.ends_with(LOW) || s.name.ends_with(HIGH)
}

/// Series drawn as lines: few points, one for each x. All others are clouds.
pub fn is_line(s: &Series) -> bool {
    s.points.len() <= 200 && s.points.windows(2).all(|w| w[0].0 < w[1].0)
}

/// At most about `most` points: of each stretch along x the lowest and the highest, so that no outlier is lost.
pub fn thin(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    if points.len() <= most {
        return points.to_vec();
    }
    let mut sorted = points.to_vec();
    nandscope_stats::ascending(&mut sorted, |a| a.0);
    let size = sorted.len().div_ceil((most / 2).max(1));
    let mut out = vec![];
    for chunk in sorted.chunks(size) {
        let low = chunk.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1));
        let high = chunk.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
        let mut two: Vec<(f64, f64)> = low.into_iter().chain(high).collect();
        nandscope_stats::ascending(&mut two, |a| a.0);
        two.dedup();
        out.extend(two);
    }
    out
}

/// Is x a number of bytes?
pub fn x_in_bytes(f: &Figure) -> bool {
    let x = f.x.to_lowercase();
    f.log_x && ["size", "alignment", "bytes", "chunk"].iter().any(|w| x.contains(w))
}

/// A value of an axis as people write it.
pub fn show(v: f64, bytes: bool) -> String {
    if bytes && v >= 1.0 {
        return Bytes(v.round() as u64).to_string();
    }
    match v.abs() {
        a if a >= 1e9 => format!("{:.1e}", v),
        a if a >= 1000.0 || (v.fract() == 0.0 && a < 1e9) => format!("{v:.0}"),
        a if a < 0.01 && a > 0.0 => format!("{v:.1e}"),
        _ => {
            let t = three(v);
            if t.contains('.') { t.trim_end_matches('0').trim_end_matches('.').to_string() } else { t }
        }
    }
}

/// What a figure shows, for those who do not see it.
pub fn summary(f: &Figure) -> String {
    let bytes = x_in_bytes(f);
    let of = |s: &Series| -> Option<String> {
        let all: Vec<(f64, f64)> = s.points.iter().copied().filter(|p| p.0.is_finite() && p.1.is_finite()).collect();
        let low = all.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let high = all.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let at = |p: &(f64, f64)| format!("{} {} at {}", show(p.1, false), f.y, show(p.0, bytes));
        Some(format!("{}: {} points, lowest {}, highest {}", s.name, all.len(), at(low), at(high)))
    };
    let series: Vec<String> = f.series.iter().filter(|s| !is_bound(s)).filter_map(of).collect();
    format!("{}, {} against {}. {}.", f.title, f.y, f.x, series.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_slowest() {
        let mut all: Vec<(f64, f64)> = (0..10_000).map(|i| (i as f64, 1.0)).collect();
        all[7777].1 = 250.0;
        let thinned = thin(&all, 400);
        assert!(thinned.len() <= 420 && thinned.contains(&(7777.0, 250.0)));
        assert!(thinned.windows(2).all(|w| w[0].0 <= w[1].0));
    }

    #[test]
    fn names_are_words() {
        assert_eq!(slug("write-unit time of one sequential write"), "write-unit-time-sequential-write");
        assert_eq!(slug("read-boundary: latency by its offset"), "read-boundary-latency-by-offset");
    }

    #[test]
    fn numbers_on_axes() {
        assert_eq!(show(4194304.0, true), "4 MiB");
        assert_eq!(show(0.5, false), "0.5");
        assert_eq!(show(100.0, false), "100");
        assert_eq!(show(13.4, false), "13.4");
        assert_eq!(show(2000.0, false), "2000");
    }
}
