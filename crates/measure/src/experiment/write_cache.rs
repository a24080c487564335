//! Does a cache in front of the flash take the first writes faster than the flash can?
//!
//! Cards put new data into flash used with one bit a cell, or into memory, and move it later. Short tests never get past such a
//! cache: writes in turn look as if any number of AUs stayed open. Long linear writes over one stretch, again and again,
//! fill it: a cache takes every write anew, wherever it goes. Where they become slower and stay so, it was full. Experiments
//! that saw no limit are then run once more.
//!
//! What fools it: a card that slows down when it is hot (said), a bus slower than the flash (then a full cache does not show,
//! but what lies behind it does), caches larger than what is written, a card that empties its cache as fast as it is filled.

use super::{About, Bench, Experiment, Figure, Series, Setup};
use crate::device::DeviceError;
use crate::finding::{Finding, Quantity};
use crate::infer::stats::median;
use crate::samples::{Cell, Run};
use crate::units::{Bytes, KIB, MIB, rate};

pub struct WriteCache;

static ABOUT: About = About {
    name: "write-cache",
    question: "Does a cache in front of the flash take the first writes faster?",
    method: "linear writes over one stretch, again and again, until they become slower; only where interleaved writes found no limit",
    writes: true,
    answers: &[Quantity::WriteCache],
    roles: &["write"],
    covers: "",
};

/// No cache is a third of its card, even where all flash is used with one bit of three a cell.
const PART: u64 = 3;
/// The stretch: only so much has to be put back for each `PASSES` of it.
const STRETCH: u64 = 64 * MIB;
/// So often it is written; then the next one, to spare flash that is not levelled.
const PASSES: u64 = 16;
/// Writes of one trial.
const WRITES: usize = 16;
/// Trials that go on after the writes have become slower.
const AFTER: usize = 3;
/// By how much they must.
const SLOWER: f64 = 1.25;

impl Experiment for WriteCache {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn share(&self) -> f64 {
        0.5
    }

    /// The searches that come after it need the time.
    fn goes_on(&self) -> bool {
        false
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let orders = [Quantity::OpenAusLinear, Quantity::OpenAusRandom].map(|q| setup.known.get(q));
        // A limit that was seen was not hidden, nor one whose cost was.
        let cost = setup.known.value(Quantity::CloseCostMs, 0.5).is_some();
        if cost || orders.iter().any(|f| f.is_some_and(|f| f.value.is_some())) {
            return vec![];
        }
        // Asked for alone, nothing is known; after a search that failed for other reasons a full cache would not help it.
        if orders.iter().any(Option::is_some) && !orders.iter().any(|f| f.is_some_and(|f| f.at_least.is_some())) {
            return vec![];
        }
        let room = setup.region.end - setup.region.start;
        let chunk = (512 * KIB).min(room / 256).max(setup.geometry.sector.max(512));
        let chunk = 1u64 << chunk.ilog2();
        let stretch = STRETCH.min(room / 8) / chunk * chunk;
        let grid = setup.known.value(Quantity::EraseBlock, super::SURE).map_or(4 * MIB, |e| e as u64).max(chunk);
        // Past tables and FATs, yet near the front: a counterfeit card throws away what lies further behind.
        let from = (setup.region.start + (room / 64).clamp((16 * MIB).min(room / 8), 1024 * MIB)).next_multiple_of(grid);
        // A quarter of what may be written is for the searches that come after it.
        let most = (setup.writes / 4 * 3).min(room / PART) / chunk * chunk;
        if stretch < 16 * chunk || from + most.div_ceil(PASSES * stretch) * stretch > setup.region.end {
            return vec![];
        }
        vec![Cell::new("fill", &[("from", from as i64), ("stretch", stretch as i64), ("chunk", chunk as i64), ("most", most as i64)])]
    }

    fn wants(&self, cell: &Cell, run: &Run) -> bool {
        let times = times(run, cell);
        let written = times.len() as u64 * cell.bytes("chunk");
        written < cell.bytes("most") && step(&times).is_none_or(|i| times.len() < i + AFTER * WRITES)
    }

    fn trial(&self, cell: &Cell, n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let (from, stretch, chunk) = (cell.bytes("from"), cell.bytes("stretch"), cell.bytes("chunk"));
        for i in 0..WRITES as u64 {
            let written = (n as u64 * WRITES as u64 + i) * chunk;
            let place = written / (PASSES * stretch) * stretch + written % stretch;
            b.write(0, from + place, chunk)?;
        }
        Ok(())
    }

    fn infer(&self, run: &Run) -> Vec<Finding> {
        const Q: Quantity = Quantity::WriteCache;
        // Not asked, because the search for open AUs saw a limit or failed for other reasons: nothing to say.
        let Some(cell) = run.cells.first() else { return vec![] };
        let (times, chunk) = (times(run, cell), cell.bytes("chunk"));
        let written = times.len() as u64 * chunk;
        let filled = |f: Finding| Finding { interval: Some([0.0, written as f64]), ..f };
        let speed = |t: &[f64]| rate(chunk as f64 / (median(t) / 1e6));
        let Some(i) = step(&times) else {
            let why = format!(
                "linear writes kept their rate over {}: a cache is larger (more --time and --writes tell), or there is none",
                Bytes(written)
            );
            return vec![filled(Finding::undecided(Q, why))];
        };
        let (fast, slow) = times.split_at(i);
        let contrast = (median(slow) / median(fast)).ln();
        let why = "what was written before took part of it";
        let text = format!("linear writes: {} for {}, {} from then on", speed(fast), Bytes(i as u64 * chunk), speed(slow));
        let f = Finding::at_least(Q, (i as u64 * chunk) as f64, (0.6 + 0.3 * contrast).min(0.85), why);
        vec![filled(f.evidence(text).caveat("a card that slows down when it is hot would look the same"))]
    }

    fn figures(&self, run: &Run) -> Vec<Figure> {
        let Some(cell) = run.cells.first() else { return vec![] };
        let chunk = cell.bytes("chunk") as f64;
        let points = times(run, cell).iter().enumerate().map(|(i, t)| ((i + 1) as f64 * chunk / MIB as f64, t / 1e3)).collect();
        vec![Figure {
            title: "linear writes until a cache is full".into(),
            x: "MiB written".into(),
            y: "ms".into(),
            log_x: false,
            log_y: true,
            series: vec![Series { name: format!("write of {}", Bytes(cell.bytes("chunk"))), points }],
        }]
    }
}

/// Microseconds of the writes, in order.
fn times(run: &Run, cell: &Cell) -> Vec<f64> {
    run.of(cell.id).map(|s| s.took.micros()).collect()
}

/// The first of the writes that are slower than those before and stay so, told by blocks of a trial's writes, whose median no
/// stall moves.
fn step(times: &[f64]) -> Option<usize> {
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
fn ratios(blocks: &[f64]) -> Vec<f64> {
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
