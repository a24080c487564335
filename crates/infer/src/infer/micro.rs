//! What follows from what a microcontroller printed: the line protocol of `firmware/`, or a busy trace in ChaN's form.

use super::combine::combine;
use super::stats::median;
use super::trace::infer_trace;
use crate::finding::{Finding, Findings, Quantity};
use crate::samples::busy::Trace;
use crate::samples::firmware::Log;

/// What the busy polls say: rewrites, and what announcing the blocks gains (C24).
pub fn findings(log: &Log) -> Findings {
    let mut all: Vec<Finding> = vec![];
    for (mode, trace) in &log.busy {
        let mut part = infer_trace(trace);
        part.iter_mut().for_each(|f| f.from.push(if mode == "none" { "busy trace".into() } else { format!("busy trace with {mode}") }));
        all.extend(part);
    }
    for (mode, q) in [("cmd23", Quantity::PreDefinedGain), ("acmd23", Quantity::PreEraseGain)] {
        all.extend(gain(log, mode, q));
    }
    combine(&all)
}

/// Busy polls a transaction of the same size with and without an announcement.
fn gain(log: &Log, mode: &str, q: Quantity) -> Option<Finding> {
    let of = |mode: &str| log.busy.iter().find(|b| b.0 == mode).map(|b| &b.1);
    let (with, none) = (of(mode)?, of("none"));
    let sums = |t: &Trace, blocks: usize| -> Vec<f64> {
        let all = t.transactions.iter().filter(|t| t.data.len() == blocks);
        all.map(|t| t.data.iter().chain(&t.stop).sum::<u64>() as f64).collect()
    };
    let both = |blocks: usize| (none.map_or(vec![], |t| sums(t, blocks)), sums(with, blocks));
    // The size that both have most of: a block of the FAT may come first.
    let mut sizes: Vec<usize> = with.transactions.iter().map(|t| t.data.len()).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let blocks = sizes.into_iter().max_by_key(|&n| {
        let (none, with) = both(n);
        (none.len().min(with.len()), with.len())
    })?;
    let (none, with) = both(blocks);
    if none.len() < 16 || with.len() < 16 {
        return Some(Finding::undecided(
            q,
            format!("{} transactions of {blocks} blocks with {mode} and {} without; 16 of each are needed", with.len(), none.len()),
        ));
    }
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    let error = |x: &[f64]| {
        (x.iter().map(|v| (v - mean(x)).powi(2)).sum::<f64>() / x.len() as f64 / (x.len() - 1) as f64).sqrt() / mean(x).max(1e-9)
    };
    let (ratio, off) = (mean(&none) / mean(&with).max(1.0), (error(&none).powi(2) + error(&with).powi(2)).sqrt());
    let text = format!(
        "{blocks} blocks: {:.0} polls a transaction without {mode} (median {:.0}), {:.0} with it (median {:.0})",
        mean(&none),
        median(&none),
        mean(&with),
        median(&with)
    );
    if off > 0.3 {
        return Some(Finding::undecided(q, "the busy times of alike transactions differ too much").evidence(text));
    }
    let mut f = Finding::decided(q, ratio, 0.85).evidence(text).caveat("busy time alone; the wire takes the same both times");
    f.interval = Some([ratio * (1.0 - 1.96 * off), ratio * (1.0 + 1.96 * off)]);
    f.from.push("busy trace".into());
    Some(f)
}
