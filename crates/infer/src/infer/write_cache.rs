//! Where linear writes became slower and stayed so, a cache was full.

use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::pipeline::Analysis;
use crate::finding::{Finding, Quantity};
use crate::infer::stats::median;
use crate::samples::{Cell, Run};
use crate::units::{Bytes, MIB, rate};

/// Judges runs of `write-cache`.
pub struct WriteCache;

pub(super) const ANALYSES: &[&dyn Analysis] = &[&WriteCache];

/// Writes of one trial.
pub const WRITES: usize = 16;

/// By how much they must.
const SLOWER: f64 = 1.25;

impl Analysis for WriteCache {
    fn name(&self) -> &'static str {
        "write-cache"
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        const Q: Quantity = Quantity::WriteCache;
        // Not asked, because the search for open AUs saw a limit or failed for other reasons: nothing to say.
        let Some(cell) = run.cells.first() else { return vec![] };
        let (times, chunk) = (times(run, cell), cell.bytes("chunk"));
        let written = times.len() as u64 * chunk;
        let filled = |f: Finding| Finding { interval: Some([0.0, written as f64]), ..f };
        if times.is_empty() {
            return vec![filled(Finding::undecided(Q, "no write was timed (more --time and --writes would decide)"))];
        }
        let speed = |t: &[f64]| rate(chunk as f64 / (median(t) / 1e6));
        let Some(i) = step(&times) else {
            let why = format!(
                "no slower writes over {} of sequential writes: there is no cache, or a larger one (more --time and --writes would decide)",
                Bytes(written)
            );
            return vec![filled(Finding::undecided(Q, why))];
        };
        let (fast, slow) = times.split_at(i);
        let contrast = (median(slow) / median(fast)).ln();
        if let Some(slower) = reads(run, cell).filter(|r| r.ln() > contrast / 2.0) {
            let why = format!(
                "sequential writes: {} for {}, {} from then on, and reads of other places take {slower:.1} times as long: the whole card is slower, as a hot one is",
                speed(fast),
                Bytes(i as u64 * chunk),
                speed(slow)
            );
            return vec![filled(Finding::undecided(Q, why))];
        }
        let why = "what was written before took part of it";
        let text = format!("sequential writes: {} for {}, {} from then on", speed(fast), Bytes(i as u64 * chunk), speed(slow));
        let f = Finding::at_least(Q, (i as u64 * chunk) as f64, (0.6 + 0.3 * contrast).min(0.85), why);
        vec![filled(f.evidence(text).caveat("a card that slows down when it is hot would look the same"))]
    }

    fn figures(&self, run: &Case) -> Vec<Figure> {
        let Some(cell) = run.cells.first() else { return vec![] };
        let chunk = cell.bytes("chunk") as f64;
        let points = times(run, cell).iter().enumerate().map(|(i, t)| ((i + 1) as f64 * chunk / MIB as f64, t / 1e3)).collect();
        vec![Figure {
            title: "sequential writes until a cache is full".into(),
            x: "MiB written".into(),
            y: "ms".into(),
            log_x: false,
            log_y: true,
            series: vec![Series { name: format!("write of {}", Bytes(cell.bytes("chunk"))), points }],
        }]
    }
}

/// Microseconds of the writes, in order.
pub fn times(run: &Run, cell: &Cell) -> Vec<f64> {
    run.of(cell.id).filter(|s| s.is_write()).map(|s| s.took.micros()).collect()
}

/// How many times as long reads of places that were not written take once writes are slower: a full cache leaves them as they were, and heat
/// slows all that the card does. `None` where too few were read.
fn reads(run: &Run, cell: &Cell) -> Option<f64> {
    let all: Vec<f64> = run.of(cell.id).filter(|s| !s.is_write()).map(|s| s.took.micros()).collect();
    let (before, after) = all.split_at_checked(WRITES)?;
    (after.len() >= WRITES).then(|| median(after) / median(before))
}

/// The first of the writes that are slower than those before and stay so, told by blocks of a trial's writes, whose median no
/// stall moves.
pub fn step(times: &[f64]) -> Option<usize> {
    step_after(times, 3)
}

/// The same after so many blocks at least; three and more follow.
pub fn step_after(times: &[f64], least: usize) -> Option<usize> {
    let blocks: Vec<f64> = times.chunks_exact(WRITES).map(median).collect();
    let ratios = ratios(&blocks);
    let cut = (least..blocks.len().checked_sub(2)?).max_by(|&a, &b| ratios[a].total_cmp(&ratios[b]))?;
    if ratios[cut] < SLOWER {
        return None;
    }
    // To the write: those of the block in which it happened.
    let line = (median(&blocks[..cut]) * median(&blocks[cut..])).sqrt();
    let from = (cut - 1) * WRITES;
    let slow = times[from..].windows(4).position(|w| w.iter().filter(|&&t| t > line).count() >= 3);
    Some(from + slow.unwrap_or(WRITES))
}

/// For every cut: the least of the later blocks against the upper ones of those before.
pub fn ratios(blocks: &[f64]) -> Vec<f64> {
    let mut most = running(blocks.iter(), 0.9);
    let mut least = running(blocks.iter().rev(), 0.1);
    most.insert(0, f64::NAN);
    least.reverse();
    least.push(f64::NAN);
    least.iter().zip(&most).map(|(l, m)| l / m.max(1e-9)).collect()
}

/// The quantile `q` of the first value, of the first two, and so on, to the nearest rank.
fn running<'a>(values: impl Iterator<Item = &'a f64>, q: f64) -> Vec<f64> {
    let mut sorted: Vec<f64> = vec![];
    let next = |v: &f64| {
        sorted.insert(sorted.partition_point(|x| x < v), *v);
        sorted[((sorted.len() - 1) as f64 * q).round() as usize]
    };
    values.map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noisy(i: usize, us: f64) -> f64 {
        us * (1.0 + 0.02 * ((i * 7919) % 13) as f64 / 13.0) + if i % 41 == 17 { 90_000.0 } else { 0.0 }
    }

    #[test]
    fn a_full_cache_is_a_step_and_stalls_are_none() {
        let t: Vec<f64> = (0..400).map(|i| noisy(i, if i < 211 { 9_000.0 } else { 26_000.0 })).collect();
        let at = step(&t).unwrap();
        assert!((207..=213).contains(&at), "{at}");
        assert_eq!(step(&(0..400).map(|i| noisy(i, 9_000.0)).collect::<Vec<_>>()), None);
        // A pause of a hundred writes is no full cache.
        let pause: Vec<f64> = (0..400).map(|i| noisy(i, if (150..250).contains(&i) { 26_000.0 } else { 9_000.0 })).collect();
        assert_eq!(step(&pause), None);
        assert_eq!(step(&t[..64]), None);
    }

    /// Heat slows reads with the writes, a full cache does not.
    #[test]
    fn a_hot_card_has_no_cache_for_that() {
        use crate::device::{Fill, Op};
        use crate::infer::beliefs::Beliefs;
        use crate::samples::Sample;
        use crate::units::Nanos;
        let cell = Cell::new("fill", &[("chunk", 524_288)]);
        let told = |reads: Option<[u64; 2]>| {
            let mut run = Run::new("write-cache");
            run.cells.push(cell.clone());
            let mut sample = |trial: u32, role: u8, write: bool, us: u64| {
                let op = if write { Op::Write(Fill::Zeros) } else { Op::Read };
                run.samples.push(Sample { cell: 0, trial, role, op, at: 0, len: 524_288, start: Nanos(0), took: Nanos(us * 1000) });
            };
            for trial in 0..20u32 {
                (0..WRITES).for_each(|_| sample(trial, 0, true, if trial < 12 { 9_000 } else { 26_000 }));
                if let Some(us) = reads.and_then(|[before, after]| [(0, before), (19, after)].into_iter().find(|r| r.0 == trial)) {
                    (0..WRITES).for_each(|_| sample(trial, 1, false, us.1));
                }
            }
            run.index();
            let found = WriteCache.infer(&Case { run: &run, believed: &Beliefs::default() });
            found[0].at_least.map(|b| b.0)
        };
        let cache = Some(12.0 * WRITES as f64 * 524_288.0);
        assert_eq!(told(None), cache);
        assert_eq!(told(Some([5_000, 5_300])), cache);
        assert_eq!(told(Some([5_000, 14_000])), None);
    }
}
