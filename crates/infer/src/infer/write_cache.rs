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
    run.of(cell.id).map(|s| s.took.micros()).collect()
}

/// The first of the writes that are slower than those before and stay so, told by blocks of a trial's writes, whose median no
/// stall moves.
pub fn step(times: &[f64]) -> Option<usize> {
    let blocks: Vec<f64> = times.chunks_exact(WRITES).map(median).collect();
    // Three blocks and more on both sides.
    let ratios = ratios(&blocks);
    let cut = (3..blocks.len().checked_sub(2)?).max_by(|&a, &b| ratios[a].total_cmp(&ratios[b]))?;
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
}
