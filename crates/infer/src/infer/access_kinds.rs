//! What order and content do to writes and reads inside one AU: the times of one stretch, written with each content in turn.

pub(super) mod tables;

use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::pipeline::Analysis;
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{mad, median};
use crate::samples::Cell;
use crate::units::{Bytes, KIB, three};
use std::collections::BTreeMap;

/// Judges runs of `access-kinds`.
pub struct AccessKinds;

pub(super) const ANALYSES: &[&dyn Analysis] = &[&AccessKinds];

/// Bytes of an access.
pub const SIZES: [u64; 2] = [16 * KIB, 128 * KIB];
/// What a cell does, by the number in it.
pub const KINDS: [&str; 5] = ["zeros", "ones", "byte", "random data", "read"];
/// Trials of a cell.
pub const ROUNDS: usize = 4;

/// Differences below this share nobody would call one.
const LEAST: f64 = 0.05;

impl Analysis for AccessKinds {
    fn name(&self) -> &'static str {
        "access-kinds"
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        let q = Quantity::ContentGain;
        if run.cells.is_empty() {
            return vec![Finding::undecided(q, format!("{} is too small", run.stretch()))];
        }
        // ln of the time against the four contents of the same size, order and round.
        let mut each: [Vec<f64>; 4] = Default::default();
        let mut groups: BTreeMap<(i64, i64, u32), [f64; 4]> = BTreeMap::new();
        for c in run.cells.iter().filter(|c| c.get("kind") < 4) {
            for t in run.trials(c.id) {
                if let Some(us) = time(&t) {
                    groups.entry((c.get("len"), c.get("shuffled"), t[0].trial)).or_insert([f64::NAN; 4])[c.get("kind") as usize] = us.ln();
                }
            }
        }
        for g in groups.values().filter(|g| g.iter().all(|x| x.is_finite())) {
            let mean = g.iter().sum::<f64>() / 4.0;
            (0..4).for_each(|k| each[k].push(g[k] - mean));
        }
        let n = each[0].len();
        if n < 2 * ROUNDS {
            return vec![Finding::undecided(q, "too few writes to compare contents, or writes take no time")];
        }
        let middle = each.each_ref().map(|x| median(x));
        let rest: Vec<f64> = (0..4).flat_map(|k| each[k].iter().map(move |x| x - middle[k])).collect();
        let (fast, slow) = (best(&middle, |a, b| a < b), best(&middle, |a, b| a > b));
        let gain = middle[slow] - middle[fast];
        // 1.25: a median wavers more than a mean.
        let doubt = 1.25 * 2f64.sqrt() * mad(&rest) / (n as f64).sqrt();
        let text = format!("{} is written {:.2} times as fast as {}", KINDS[fast], gain.exp(), KINDS[slow]);
        let f = if gain > LEAST && gain > 4.0 * doubt {
            told(gain, doubt)
        } else if 4.0 * doubt < 2.0 * LEAST {
            Finding::decided(q, 1.0, 0.88)
        } else {
            Finding::undecided(q, "writes of one content differ more among themselves than contents do")
        };
        let rate = |kind: i64, shuffled: i64, len: u64| {
            let here = |c: &&Cell| c.get("kind") == kind && c.get("shuffled") == shuffled && c.bytes("len") == len;
            let t: Vec<f64> = run.cells.iter().filter(here).flat_map(|c| run.trials(c.id)).filter_map(|t| time(&t)).collect();
            format!("{} MB/s", three(len as f64 / median(&t)))
        };
        let mut f = f.evidence(text);
        for len in SIZES {
            f = f.evidence(format!(
                "{}: written {} in sequence, {} in random order; read {} and {}",
                Bytes(len),
                rate(3, 0, len),
                rate(3, 1, len),
                rate(4, 0, len),
                rate(4, 1, len)
            ));
        }
        vec![f]
    }

    fn figures(&self, run: &Case) -> Vec<Figure> {
        let series = [(0, "sequential"), (1, "random order")].map(|(shuffled, name)| {
            let cells = run.cells.iter().filter(|c| c.get("shuffled") == shuffled && c.bytes("len") == SIZES[0]);
            let points = cells.filter_map(|c| {
                let t: Vec<f64> = run.trials(c.id).iter().filter_map(|t| time(t)).collect();
                (!t.is_empty()).then(|| (c.get("kind") as f64, median(&t) / 1e3))
            });
            Series { name: name.into(), points: points.collect() }
        });
        vec![Figure {
            title: format!("time of an access of {} inside one AU", Bytes(SIZES[0])),
            x: "zeros, ones, byte, random data, read".into(),
            y: "ms".into(),
            log_x: false,
            log_y: false,
            series: series.to_vec(),
        }]
    }
}

/// A gain (ln of how many times faster) with its standard error, as a finding.
pub(super) fn told(gain: f64, doubt: f64) -> Finding {
    let hundredths = |x: f64| (x.exp() * 100.0).round() / 100.0;
    let f = Finding::decided(Quantity::ContentGain, hundredths(gain), (0.75 + 0.03 * gain / doubt.max(1e-6)).min(0.92));
    Finding { interval: Some([gain - 2.0 * doubt, gain + 2.0 * doubt].map(hundredths)), ..f }
}

/// Mean time of an access of one trial in µs, without the first one, which opens the AU.
fn time(trial: &[&crate::samples::Sample]) -> Option<f64> {
    let t: Vec<f64> = trial.iter().filter(|s| s.role == 1).map(|s| s.took.micros()).collect();
    let mean = t.iter().sum::<f64>() / t.len().max(1) as f64;
    (mean > 0.0).then_some(mean)
}

fn best(x: &[f64; 4], better: fn(f64, f64) -> bool) -> usize {
    (1..4).fold(0, |b, i| if better(x[i], x[b]) { i } else { b })
}
