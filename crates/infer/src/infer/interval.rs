//! What a read costs before its first byte and what each further byte: a line through the times, from samples and from tables.

pub(super) mod tables;

use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::pipeline::Analysis;
use crate::finding::{Finding, Quantity};
use crate::infer::stats;
use crate::infer::stats::{bootstrap_medians, expanded, median};
use crate::samples::{Cell, Run};
use crate::units::{Bytes, three};

/// Judges runs of `interval`.
pub struct Interval;

pub(super) const ANALYSES: &[&dyn Analysis] = &[&Interval];

/// Smallest sizes that the line leaves out.
const LEFT_OUT: usize = 3;

/// Beyond this share of its own time a size is off the line.
const OFF: f64 = 0.2;

impl Analysis for Interval {
    fn name(&self) -> &'static str {
        "interval"
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        let both = [Quantity::AccessTimeUs, Quantity::ReadRate];
        let undecided = |why: &str| both.map(|q| Finding::undecided(q, why)).to_vec();
        let (sizes, times): (Vec<f64>, Vec<Vec<f64>>) = reads(run).into_iter().skip(LEFT_OUT).unzip();
        let used: &[(f64, f64)] = &sizes.iter().copied().zip(times.iter().map(|t| median(t))).collect::<Vec<_>>();
        if used.len() < 4 || used.iter().any(|p| p.1 <= 0.0) {
            return undecided(if used.len() < 4 { "too few sizes were read" } else { "reads take no time" });
        }
        let Some(best) = line(used) else { return undecided("reads of all sizes take as long") };
        let off = used.iter().map(|&(x, t)| ((best.0 + best.1 * x) / t - 1.0).abs()).fold(0.0, f64::max);
        let without = |i: usize| line(&used.iter().enumerate().filter(|p| p.0 != i).map(|p| *p.1).collect::<Vec<_>>());
        let all: Vec<(f64, f64)> = (0..used.len()).filter_map(without).chain([best]).collect();
        let span =
            |f: fn(&(f64, f64)) -> f64| all.iter().map(f).fold([f64::INFINITY, f64::NEG_INFINITY], |[lo, hi], v| [lo.min(v), hi.max(v)]);
        let fewest = times.iter().map(Vec::len).min().unwrap_or(0);
        // What another draw of the reads would have given.
        let again = |medians: Vec<f64>| line(&sizes.iter().copied().zip(medians).collect::<Vec<_>>());
        let again: Vec<(f64, f64)> = bootstrap_medians(&times).into_iter().filter_map(again).collect();
        let within = |f: fn(&(f64, f64)) -> f64| {
            let all: Vec<f64> = again.iter().map(f).collect();
            expanded(&all, fewest)
        };
        let text = format!(
            "reads take {} µs at {} and {} µs at {}; no size lies more than {:.0} % off the line",
            three(used[0].1),
            Bytes(used[0].0 as u64),
            three(used[used.len() - 1].1),
            Bytes(used[used.len() - 1].0 as u64),
            (off * 100.0).ceil()
        );
        let one = |q: Quantity, v: f64, [lo, hi]: [f64; 2], interval: [f64; 2]| {
            let wide = (hi - lo) / v.abs().max(1e-12);
            if off > OFF || v <= 0.0 || lo <= 0.0 || wide > 0.5 {
                return Finding::undecided(q, "the times do not lie on one line").evidence(text.clone());
            }
            let mut f = Finding::decided(q, v, 0.92 - 0.4 * wide - off).evidence(text.clone());
            f.interval = Some(interval);
            f
        };
        // µs a byte to bytes a second.
        let rate = |x: f64| (1e6 / x).round();
        let turned = |[slow, fast]: [f64; 2]| [rate(fast), rate(slow)];
        let hundredth = |x: f64| (x * 100.0).round() / 100.0;
        vec![
            one(both[0], hundredth(best.0), span(|l| l.0), within(|l| l.0).map(hundredth)),
            one(both[1], rate(best.1), turned(span(|l| l.1)), turned(within(|l| l.1))),
        ]
    }

    fn figures(&self, run: &Case) -> Vec<Figure> {
        vec![Figure {
            title: "time of a read".into(),
            x: "size of the read".into(),
            y: "ms".into(),
            log_x: true,
            log_y: true,
            series: vec![Series { name: "median".into(), points: reads(run).iter().map(|p| (p.0, median(&p.1) / 1e3)).collect() }],
        }]
    }
}

/// Size and times in µs, sizes ascending.
fn reads(run: &Run) -> Vec<(f64, Vec<f64>)> {
    let one = |c: &Cell| {
        let t: Vec<f64> = run.of(c.id).map(|s| s.took.micros()).collect();
        (t.len() >= 4).then(|| (c.bytes("len") as f64, t))
    };
    run.cells.iter().filter_map(one).collect()
}

/// The line of least relative error: µs at size 0, µs a byte. `None` where the times do not grow.
fn line(p: &[(f64, f64)]) -> Option<(f64, f64)> {
    stats::line(p.iter().map(|&(x, t)| (x, t, 1.0 / (t * t)))).filter(|l| l.1 > 0.0)
}
