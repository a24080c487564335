//! What a queue of reads gains over one read at a time.

use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::pipeline::Analysis;
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{mean, median};
use crate::samples::{Cell, Run};

/// Judges runs of `queue-depth`.
pub struct QueueDepth;

/// Rounds of reads at each depth.
pub const ROUNDS: usize = 5;

/// A queue that gains less than this is none.
const GAINS: f64 = 1.05;

/// Reads a second of each round.
fn rounds(run: &Run, cell: &Cell) -> Vec<f64> {
    let one = |t: &Vec<&crate::samples::Sample>| {
        let begin = t.iter().map(|s| s.start.0).min()?;
        let end = t.iter().map(|s| s.start.0 + s.took.0).max()?;
        (t.len() > 1 && end > begin).then(|| t.len() as f64 * 1e9 / (end - begin) as f64)
    };
    run.trials(cell.id).iter().filter_map(one).collect()
}

/// Depth, and reads a second of its rounds.
fn rates(run: &Run) -> Vec<(u64, Vec<f64>)> {
    let mut all: Vec<_> = run.cells.iter().map(|c| (c.bytes("depth"), rounds(run, c))).filter(|r| r.1.len() >= 3).collect();
    all.sort_by_key(|r| r.0);
    all
}

impl Analysis for QueueDepth {
    fn name(&self) -> &'static str {
        "queue-depth"
    }

    fn fitted(&self) -> bool {
        false
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        const Q: Quantity = Quantity::QueueGain;
        let all = rates(run);
        let Some((1, alone)) = all.first() else { return vec![Finding::undecided(Q, "too few reads were made one at a time")] };
        if all.len() < 3 {
            return vec![Finding::undecided(Q, "too few depths were tried")];
        }
        let one = median(alone);
        let best = all.iter().max_by(|a, b| median(&a.1).total_cmp(&median(&b.1))).unwrap_or(&all[0]);
        let text = all.iter().map(|(d, r)| format!("{d}: {:.0}", median(r))).collect::<Vec<_>>().join(", ");
        let text = format!("random reads a second at depth {text}");
        let gain = median(&best.1) / one;
        let spread = |r: &[f64]| r.iter().map(|x| (x / mean(r) - 1.0).abs()).fold(0.0, f64::max);
        let error = (spread(alone).hypot(spread(&best.1))).max(0.01);
        let value = if gain < GAINS { 1.0 } else { gain };
        let score = if error < 0.1 {
            0.93
        } else if error < 0.25 {
            0.8
        } else {
            0.65
        };
        let mut f = Finding::decided(Q, value, score).evidence(text);
        f.interval = Some([(gain / (1.0 + error)).min(value), (gain * (1.0 + error)).max(value)]);
        if gain >= GAINS {
            let knee = all.iter().find(|r| median(&r.1) >= 0.9 * median(&best.1)).map_or(best.0, |r| r.0);
            f = f.evidence(format!("nine tenths of it with {knee} in flight"));
        }
        vec![f.caveat("in flight by threads of this program: whether the system passes them on as a queue is for the host to say")]
    }

    fn figures(&self, run: &Case) -> Vec<Figure> {
        let points: Vec<(f64, f64)> = rates(run).iter().map(|(d, r)| (*d as f64, median(r))).collect();
        if points.is_empty() {
            return vec![];
        }
        vec![Figure {
            title: "random reads over the depth of the queue".into(),
            x: "in flight".into(),
            y: "IOPS".into(),
            log_x: true,
            log_y: false,
            series: vec![Series { name: "random reads".into(), points }],
        }]
    }
}
