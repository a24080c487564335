//! A card model held against what was measured: the same accesses, one by one.

use super::data::TwinError;
use nandscope_sim::trace::Io;
use nandscope_sim::{Card, Model, Op, Request, random};
use serde::Serialize;

/// How well a model predicts a workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checked {
    pub accesses: usize,
    pub bytes: u64,
    /// Sums of the times, s.
    pub measured_s: f64,
    pub predicted_s: f64,
    /// Predicted throughput over measured throughput, less 1.
    pub throughput_error: f64,
    /// Share of the accesses predicted within 10 %.
    pub within_tenth: f64,
    /// Of measured and predicted times (Pearson); none where either is constant.
    pub correlation: Option<f64>,
    /// Accesses that took more than three times the median of their kind (read or write).
    pub slow: usize,
    /// Accesses predicted to be slow.
    pub said_slow: usize,
    /// Of those predicted to be slow how many were, and of those that were how many were predicted; none where there were none.
    pub precision: Option<f64>,
    pub recall: Option<f64>,
    /// By kind and length, where most time is missing first.
    pub worst: Vec<Kind>,
}

/// Accesses of one kind and length.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Kind {
    pub op: String,
    pub len: u64,
    pub accesses: usize,
    /// Means, ns.
    pub measured_ns: f64,
    pub predicted_ns: f64,
}

/// An access is slow that takes more than so many times the median of its kind.
pub const SLOW: f64 = 3.0;

/// The times in ns that a model predicts for these accesses, with the rests between them as they were measured. Chance is left out: what
/// comes by chance cannot be predicted for one access; its mean is the second value, in ns an access.
///
/// # Errors
/// An access that the card refuses.
pub fn predict(model: &Model, before: &[Io], ios: &[Io], seed: u64) -> Result<(Vec<f64>, f64), TwinError> {
    let quiet = random::quiet(model.clone());
    let mut card = Card::new(&quiet, seed);
    let (mut now, mut end, mut out) = (0, None, vec![]);
    for (k, io) in before.iter().chain(ios).enumerate() {
        if k == before.len() {
            end = None;
        }
        // What came after the access before was done, as measured; where the times are not known, at once.
        let gap = end.map_or(0, |e: u64| io.time.saturating_sub(e));
        let request = Request { op: io.op, at: io.at, len: io.len, data: nandscope_sim::Data::Other };
        let c = card.submit(now + gap, request).map_err(|e| {
            let which = if k < before.len() { "report" } else { "workload" };
            TwinError::Unusable(format!("access {} of the {which} cannot be done on {}: {e}", k + 1, model.name))
        })?;
        now = c.done;
        end = (io.took > 0).then(|| io.time + io.took);
        if k >= before.len() {
            out.push((c.done - c.start) as f64);
        }
    }
    let h = &model.host;
    // A Pareto with exponent 2 from m to c has the mean 2 m (1 - m / 2c), cut at c.
    let tail = match h.tail_every {
        0 => 0.0,
        n => 2.0 * h.tail as f64 * (1.0 - h.tail as f64 / (2.0 * h.tail_cap.max(h.tail).max(1) as f64)) / n as f64,
    };
    let written: u64 = ios.iter().filter(|io| io.op == Op::Write).map(|io| io.len).sum();
    let stalls: f64 = model
        .stall
        .iter()
        .map(|s| {
            s.time as f64
                * if s.every_bytes > 0 { written as f64 / s.every_bytes as f64 } else { ios.len() as f64 / s.every_commands.max(1) as f64 }
        })
        .sum();
    Ok((out, tail + stalls / ios.len().max(1) as f64))
}

fn median(of: impl Iterator<Item = f64>) -> f64 {
    nandscope_stats::median(&of.collect::<Vec<_>>())
}

/// Compares. `ios` must hold the times they took; those without are left out.
///
/// # Errors
/// No times, or an access that the card refuses.
pub fn check(model: &Model, before: &[Io], ios: &[Io], seed: u64) -> Result<Checked, TwinError> {
    if !ios.iter().any(|io| io.took > 0) {
        return Err(TwinError::Unusable("the workload holds no times to check against: took_ns is 0 throughout".into()));
    }
    let (times, chance) = predict(model, before, ios, seed)?;
    Ok(compare(ios, &times, chance))
}

/// Compares what was measured with predicted times in ns, one an access; `chance`: ns an access that come by chance, in the mean.
pub fn compare(ios: &[Io], times: &[f64], chance: f64) -> Checked {
    let pairs: Vec<(&Io, f64, f64)> = ios.iter().zip(times).filter(|(io, _)| io.took > 0).map(|(io, &p)| (io, io.took as f64, p)).collect();
    let n = pairs.len() as f64;
    let (measured, predicted): (f64, f64) = (pairs.iter().map(|p| p.1).sum(), pairs.iter().map(|p| p.2).sum::<f64>() + chance * n);
    let line = |op: Op| SLOW * median(pairs.iter().filter(|p| p.0.op == op).map(|p| p.1));
    let lines = [Op::Read, Op::Write, Op::Discard, Op::Flush].map(line);
    let slow = |p: &(&Io, f64, f64), t: f64| t > lines[p.0.op as usize];
    let was = pairs.iter().filter(|p| slow(p, p.1)).count();
    let said = pairs.iter().filter(|p| slow(p, p.2)).count();
    let both = pairs.iter().filter(|p| slow(p, p.1) && slow(p, p.2)).count();
    let share = |a: usize, of: usize| (of > 0).then(|| a as f64 / of as f64);
    let mut worst: Vec<Kind> = vec![];
    for p in &pairs {
        let op = ["read", "write", "discard", "flush"][p.0.op as usize];
        let i = worst.iter().position(|k| k.op == op && k.len == p.0.len).unwrap_or_else(|| {
            worst.push(Kind { op: op.into(), len: p.0.len, accesses: 0, measured_ns: 0.0, predicted_ns: 0.0 });
            worst.len() - 1
        });
        let k = &mut worst[i];
        (k.accesses, k.measured_ns, k.predicted_ns) = (k.accesses + 1, k.measured_ns + p.1, k.predicted_ns + p.2);
    }
    nandscope_stats::descending(&mut worst, |a| (a.measured_ns - a.predicted_ns).abs());
    worst.truncate(8);
    for k in &mut worst {
        (k.measured_ns, k.predicted_ns) = (k.measured_ns / k.accesses as f64, k.predicted_ns / k.accesses as f64);
    }
    Checked {
        accesses: pairs.len(),
        bytes: pairs.iter().filter(|p| matches!(p.0.op, Op::Read | Op::Write)).map(|p| p.0.len).sum(),
        measured_s: measured / 1e9,
        predicted_s: predicted / 1e9,
        throughput_error: measured / predicted.max(1.0) - 1.0,
        within_tenth: pairs.iter().filter(|p| (p.1 - p.2).abs() <= 0.1 * p.1).count() as f64 / n,
        correlation: correlation(&pairs),
        slow: was,
        said_slow: said,
        precision: share(both, said),
        recall: share(both, was),
        worst,
    }
}

fn correlation(pairs: &[(&Io, f64, f64)]) -> Option<f64> {
    let n = pairs.len() as f64;
    let mean = |f: &dyn Fn(&(&Io, f64, f64)) -> f64| pairs.iter().map(f).sum::<f64>() / n;
    let (a, b) = (mean(&|p| p.1), mean(&|p| p.2));
    let (ab, aa, bb) = (mean(&|p| (p.1 - a) * (p.2 - b)), mean(&|p| (p.1 - a).powi(2)), mean(&|p| (p.2 - b).powi(2)));
    (aa > 0.0 && bb > 0.0).then(|| ab / (aa * bb).sqrt())
}
