//! What a queue of reads gains over one read at a time.

use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::pipeline::{Analysis, Fit};
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{mean, median};
use crate::samples::{Cell, Run, Sample};

/// Judges runs of `queue-depth`.
pub struct QueueDepth;

pub(super) const ANALYSES: &[&dyn Analysis] = &[&QueueDepth];

/// Rounds of reads at each depth.
pub const ROUNDS: usize = 5;

/// A queue that gains less than this is none.
const GAINS: f64 = 1.05;
/// Nothing is gained where no more than this is possible.
const NOTHING: f64 = 1.25;

/// Requests a second of each round: those that count, over all the time of the round.
fn rounds(run: &Run, cell: &Cell, counts: impl Fn(&Sample) -> bool) -> Vec<f64> {
    let one = |t: &Vec<&Sample>| {
        let begin = t.iter().map(|s| s.start.0).min()?;
        let end = t.iter().map(|s| s.start.0 + s.took.0).max()?;
        let n = t.iter().filter(|s| counts(s)).count();
        (n > 1 && end > begin).then(|| n as f64 * 1e9 / (end - begin) as f64)
    };
    run.trials(cell.id).iter().filter_map(one).collect()
}

/// Reads a second of each round while the queue was full: between the end of the first reads, as many as are in flight, and that of the last but
/// as many. Before, threads of the host begin one by one; after, fewer are in flight, and one that the host delays makes the round longer.
fn full(run: &Run, cell: &Cell) -> Vec<f64> {
    let depth = cell.bytes("depth").max(1) as usize;
    let one = |t: &Vec<&Sample>| {
        let mut ends: Vec<u64> = t.iter().map(|s| s.start.0 + s.took.0).collect();
        ends.sort_unstable();
        let (first, last) = (depth - 1, ends.len().checked_sub(depth + 1)?);
        (last > first + depth && ends[last] > ends[first]).then(|| (last - first) as f64 * 1e9 / (ends[last] - ends[first]) as f64)
    };
    run.trials(cell.id).iter().filter_map(one).collect()
}

/// Depth, and requests a second of its rounds.
fn by_depth(run: &Run, rates: impl Fn(&Cell) -> Vec<f64>) -> Vec<(u64, Vec<f64>)> {
    let mut all: Vec<_> = run.cells.iter().map(|c| (c.bytes("depth"), rates(c))).filter(|r| r.1.len() >= 3).collect();
    nandscope_stats::sort_by_key(&mut all, |r| r.0);
    all
}

/// Of whole rounds, where what ends them counts as well.
pub fn of_rounds(run: &Run, counts: impl Fn(&Sample) -> bool) -> Vec<(u64, Vec<f64>)> {
    by_depth(run, |c| rounds(run, c, &counts))
}

/// What the best depth gains over one at a time. `what` are "reads" or "writes".
pub fn gained(q: Quantity, all: &[(u64, Vec<f64>)], what: &str) -> Finding {
    let Some((1, alone)) = all.first() else { return Finding::undecided(q, format!("too few {what} were made one at a time")) };
    if all.len() < 3 {
        return Finding::undecided(q, "too few depths were tried");
    }
    let one = median(alone);
    let best = all.iter().max_by(|a, b| median(&a.1).total_cmp(&median(&b.1))).unwrap_or(&all[0]);
    let text = all.iter().map(|(d, r)| format!("{d}: {:.0}", median(r))).collect::<Vec<_>>().join(", ");
    let text = format!("random {what} a second at depth {text}");
    let gain = median(&best.1) / one;
    // Two standard errors of a median, from what rounds scatter by.
    let error = |r: &[f64]| {
        let m = mean(r);
        let variance = r.iter().map(|x| (x / m - 1.0).powi(2)).sum::<f64>() / (r.len() as f64 - 1.0).max(1.0);
        2.5 * (variance / r.len() as f64).sqrt()
    };
    let error = (error(alone).hypot(error(&best.1))).max(0.01);
    let bounds = [gain / (1.0 + error), gain * (1.0 + error)];
    // The best of several depths is above the others by chance alone, so that a gain has to be clearer than one of a single depth.
    let gains = gain >= GAINS && gain > 1.0 + 1.5 * error;
    if !gains && bounds[1] > NOTHING {
        let why =
            "rounds at one depth differ by as much as those at several do: the host or the card is busy with something else now and then";
        return Finding::undecided(q, why).evidence(text);
    }
    // What a deeper queue loses again was not gained by depth.
    if gains && all.iter().any(|r| r.0 > best.0 && median(&r.1) < (one + median(&best.1)) / 2.0) {
        let why = "more in flight lose again what fewer gained: the card is in another state now and then";
        return Finding::undecided(q, why).evidence(text);
    }
    let value = if gains { gain } else { 1.0 };
    let score = if error < 0.1 {
        0.93
    } else if error < 0.25 {
        0.8
    } else {
        0.65
    };
    let mut f = Finding::decided(q, value, score).evidence(text);
    f.interval = Some([bounds[0].min(value), bounds[1].max(value)]);
    if gains {
        let knee = all.iter().find(|r| median(&r.1) >= 0.9 * median(&best.1)).map_or(best.0, |r| r.0);
        f = f.evidence(format!("nine tenths of it with {knee} in flight"));
    }
    f.caveat("in flight by threads of this program: whether the system passes them on as a queue is for the host to say")
}

/// Requests a second over the depth.
pub fn drawn(all: &[(u64, Vec<f64>)], what: &str) -> Vec<Figure> {
    let points: Vec<(f64, f64)> = all.iter().map(|(d, r)| (*d as f64, median(r))).collect();
    if points.is_empty() {
        return vec![];
    }
    vec![Figure {
        title: format!("random {what} over the depth of the queue"),
        x: "in flight".into(),
        y: "IOPS".into(),
        log_x: true,
        log_y: false,
        series: vec![Series { name: format!("random {what}"), points }],
    }]
}

impl Analysis for QueueDepth {
    fn name(&self) -> &'static str {
        "queue-depth"
    }

    fn fit(&self) -> Fit {
        Fit::Today
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        vec![gained(Quantity::QueueGain, &by_depth(run, |c| full(run, c)), "reads")]
    }

    fn figures(&self, run: &Case) -> Vec<Figure> {
        drawn(&by_depth(run, |c| full(run, c)), "reads")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A card whose SLC cache had room while one depth was tried has no queue.
    #[test]
    fn what_deeper_queues_lose_again_is_no_gain() {
        let of = |rates: [f64; 4]| {
            let all: Vec<(u64, Vec<f64>)> = rates.iter().enumerate().map(|(k, r)| (1 << k, vec![*r, 1.01 * r, 0.99 * r, *r])).collect();
            gained(Quantity::QueueGain, &all, "reads").number()
        };
        assert_eq!(of([100.0, 190.0, 300.0, 310.0]), Some(3.1));
        assert_eq!(of([100.0, 190.0, 300.0, 260.0]), Some(3.0), "a little is lost to deep queues");
        assert_eq!(of([100.0, 100.0, 1400.0, 100.0]), None);
        assert_eq!(of([100.0, 101.0, 100.0, 99.0]), Some(1.0));
    }
}
