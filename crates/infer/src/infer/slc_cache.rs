//! Where fast sequential writes end, a cache of flash used with one bit a cell is full; what comes back at rest says how it is emptied.

use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::pipeline::Analysis;
use super::write_cache::step;
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{line, mean, median};
use crate::samples::{Cell, Run};
use crate::units::{Bytes, MIB};

/// Judges runs of `slc-cache`.
pub struct SlcCache;

/// The role of writes in sequence.
pub const SEQUENTIAL: u8 = 0;

/// Fills after a long rest; then one after each of `RESTS_MS`.
pub const LONG: u32 = 2;

/// Rests before a fill, in ms.
pub const RESTS_MS: [u64; 8] = [25, 50, 100, 200, 400, 800, 1600, 3200];

/// So many of the last `LAST` writes are slow where a cache is full.
pub const LAST: usize = 24;
const SLOW: usize = 20;

/// Two fills after rests of different length are the same where they differ by less.
const SAME: f64 = 0.04;

/// µs of a write while there is room, and while there is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Levels {
    pub fast: f64,
    pub slow: f64,
}

impl Levels {
    /// Between the two.
    pub fn line(self) -> f64 {
        (self.fast * self.slow).sqrt()
    }
}

/// µs of the writes of a trial in one of the roles, in order.
pub fn times(run: &Run, cell: &Cell, trial: u32, role: u8) -> Vec<f64> {
    run.of(cell.id).filter(|s| s.trial == trial && s.role == role).map(|s| s.took.micros()).collect()
}

/// What the first fill showed; `None` where its writes never became slower.
pub fn levels(run: &Run, cell: &Cell) -> Option<Levels> {
    let t = times(run, cell, 0, SEQUENTIAL);
    let i = step(&t)?;
    Some(Levels { fast: median(&t[..i]), slow: median(t.get(i + 2..)?) })
}

/// Are the last of these writes slow?
pub fn full(times: &[f64], l: Levels) -> bool {
    times.len() >= LAST && times[times.len() - LAST..].iter().filter(|&&t| t > l.line()).count() >= SLOW
}

/// Writes that found room, those of which a part did counted in part; `None` where the trial ended before the cache was full.
fn taken(times: &[f64], l: Levels) -> Option<f64> {
    if !full(times, l) {
        return None;
    }
    let end = (0..=times.len() - 8).find(|&i| times[i..i + 8].iter().filter(|&&t| t > l.line()).count() >= 6)?;
    let part = |t: f64| ((l.slow - t) / (l.slow - l.fast)).clamp(0.0, 1.0);
    let edge = times[end..(end + 2).min(times.len())].iter().map(|&t| part(t)).filter(|&p| p > 0.3).sum::<f64>();
    Some(end as f64 + edge)
}

impl Analysis for SlcCache {
    fn name(&self) -> &'static str {
        "slc-cache"
    }

    fn fitted(&self) -> bool {
        false
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        let Some(cell) = run.cells.first() else {
            return vec![Finding::undecided(Quantity::SlcCache, "the region is too small to fill a cache")];
        };
        let chunk = cell.bytes("chunk") as f64;
        let first = times(run, cell, 0, SEQUENTIAL);
        let Some(l) = levels(run, cell) else {
            let why = format!(
                "no slower writes over {} of sequential writes after a rest of {} s: there is no such cache, or a larger one (more --time \
                 and --writes would decide)",
                Bytes((first.len() as f64 * chunk) as u64),
                cell.get("rest_ms") / 1000
            );
            return vec![Finding::undecided(Quantity::SlcCache, why)];
        };
        let mut out = vec![size(run, cell, l, chunk)];
        out.extend(rates(run, cell, l, chunk));
        out.extend(at_rest(run, cell, l, chunk));
        out
    }

    fn figures(&self, run: &Case) -> Vec<Figure> {
        let Some(cell) = run.cells.first() else { return vec![] };
        let chunk = cell.bytes("chunk") as f64;
        // The rate over 16 writes, which no single stall moves far.
        let points = |trial: u32| {
            let t = times(run, cell, trial, SEQUENTIAL);
            let one = |(i, c): (usize, &[f64])| (((i * 16) as f64 * chunk) / MIB as f64, chunk / mean(c));
            t.chunks_exact(16).enumerate().map(one).collect::<Vec<_>>()
        };
        let names = ["first fill", "after a longer rest"];
        let series = names.iter().enumerate().map(|(i, n)| Series { name: n.to_string(), points: points(i as u32) });
        vec![Figure {
            title: "rate over bytes written".into(),
            x: "MiB written".into(),
            y: "MB/s".into(),
            log_x: false,
            log_y: false,
            series: series.filter(|s| !s.points.is_empty()).collect(),
        }]
    }
}

/// The size, where two rests of different length brought back the same.
fn size(run: &Run, cell: &Cell, l: Levels, chunk: f64) -> Finding {
    let q = Quantity::SlcCache;
    let fills: Vec<f64> = (0..LONG).filter_map(|n| taken(&times(run, cell, n, SEQUENTIAL), l)).map(|n| n * chunk).collect();
    let most = fills.iter().copied().fold(0.0, f64::max);
    let contrast = l.slow / l.fast;
    let text = format!(
        "sequential writes took {:.2} ms each for {}, {:.2} ms from then on",
        l.fast / 1e3,
        fills.iter().map(|f| Bytes(*f as u64).to_string()).collect::<Vec<_>>().join(" and "),
        l.slow / 1e3
    );
    let hot = "a card that slows down when it is hot would look the same; so would one whose spare flash is used up";
    let [a, b] = fills[..] else {
        let why = "it was filled once: what was written before may have taken part of it (more --time would decide)";
        return Finding::at_least(q, most, 0.8, why).evidence(text);
    };
    if (a - b).abs() > SAME * most + 2.0 * chunk {
        let why = format!("after a longer rest it took {} instead of {}: rest brings it back slowly", Bytes(b as u64), Bytes(a as u64));
        return Finding::at_least(q, most, 0.85, why).evidence(text).caveat(hot);
    }
    let value = (a + b) / 2.0;
    let error = (2.0 * chunk).max((a - b).abs());
    let score = if contrast > 1.5 { 0.93 } else { 0.85 };
    let f = Finding::decided(q, value.round(), score).evidence(text).caveat(hot);
    Finding { interval: Some([(value - error).max(0.0), value + error]), ..f }.caveat("as full as the card is now")
}

/// MB/s before and after it is full.
fn rates(run: &Run, cell: &Cell, l: Levels, chunk: f64) -> Vec<Finding> {
    let (mut fast, mut slow) = (vec![], vec![]);
    for n in 0..LONG + RESTS_MS.len() as u32 {
        let t = times(run, cell, n, SEQUENTIAL);
        let Some(end) = taken(&t, l).map(|e| e as usize) else { continue };
        // The first write after a rest may wake the card.
        if n < LONG {
            fast.extend_from_slice(t.get(1..end.saturating_sub(1)).unwrap_or(&[]));
        }
        slow.extend_from_slice(t.get(end + 3..).unwrap_or(&[]));
    }
    let one = |q: Quantity, t: &[f64], what: &str| {
        if t.len() < 16 {
            return Finding::undecided(q, format!("too few writes {what}"));
        }
        let value = chunk / mean(t);
        // Means of blocks scatter as their mean does, by the root of their number.
        let blocks: Vec<f64> = t.chunks(t.len().div_ceil(8)).map(mean).collect();
        let m = mean(&blocks);
        let scatter = (blocks.iter().map(|b| (b - m).powi(2)).sum::<f64>() / (blocks.len() as f64 - 1.0).max(1.0)).sqrt();
        let half = (2.4 * scatter / (blocks.len() as f64).sqrt() / m).max(0.01);
        let f = Finding::decided(q, value, if half < 0.05 { 0.92 } else { 0.8 });
        let text = format!("{} sequential writes of {} {what}", t.len(), Bytes(chunk as u64));
        Finding { interval: Some([value * (1.0 - half), value * (1.0 + half)]), ..f }.evidence(text)
    };
    vec![one(Quantity::RateCachedMbS, &fast, "while the cache had room"), one(Quantity::RateSustainedMbS, &slow, "after it was full")]
}

/// After how long a rest something comes back, and how fast.
fn at_rest(run: &Run, cell: &Cell, l: Levels, chunk: f64) -> Vec<Finding> {
    let (trigger, rate) = (Quantity::IdleTriggerMs, Quantity::IdleEmptyMbS);
    let whole = taken(&times(run, cell, 0, SEQUENTIAL), l).unwrap_or(0.0);
    let all = RESTS_MS.iter().enumerate();
    let seen: Vec<(f64, f64)> =
        all.filter_map(|(k, &ms)| Some((ms as f64, taken(&times(run, cell, LONG + k as u32, SEQUENTIAL), l)?))).collect();
    if seen.len() < 4 {
        return vec![];
    }
    let text = seen.iter().map(|(ms, n)| format!("{ms} ms {}", Bytes((n * chunk) as u64))).collect::<Vec<_>>().join(", ");
    let text = format!("room after a rest of {text}");
    // Less than three writes may be the edge of one; a cache that is all empty says no more.
    let some: Vec<(f64, f64)> = seen.iter().copied().filter(|p| p.1 >= 3.0 && p.1 < 0.9 * whole).collect();
    let longest_none = seen.iter().filter(|p| p.1 < 1.0).map(|p| p.0).fold(0.0, f64::max);
    if some.is_empty() && seen.iter().all(|p| p.1 < 3.0) {
        let last = seen.last().map_or(0.0, |p| p.0);
        let why = format!("rests up to {last} ms brought back nothing");
        return vec![Finding::at_least(trigger, last, 0.85, why.clone()).evidence(text), Finding::undecided(rate, why)];
    }
    let Some((a, b)) = line(some.iter().map(|&(ms, n)| (ms, n, 1.0))).filter(|_| some.len() >= 2) else {
        let why = "too few rests of those tried brought back a part of the cache";
        return vec![Finding::undecided(trigger, why).evidence(text.clone()), Finding::undecided(rate, why).evidence(text)];
    };
    // Which of the two is the slope depends on neither: two points of the line say it.
    let at = |x: f64| a + b * x;
    let slope = at(1.0) - at(0.0);
    if slope <= 0.0 {
        let why = "longer rests brought back no more than shorter ones";
        return vec![Finding::undecided(trigger, why).evidence(text.clone()), Finding::undecided(rate, why).evidence(text)];
    }
    let begins = (-at(0.0) / slope).max(0.0);
    let off = 1.5 / slope;
    let first = some[0].0;
    let score = if some.len() >= 3 && off < 0.3 * begins.max(20.0) { 0.88 } else { 0.75 };
    let bounds = [longest_none.min(begins).max(begins - off).max(0.0), first.max(begins).min(begins + off)];
    let per_second = slope * chunk / 1e3;
    vec![
        Finding { interval: Some(bounds), ..Finding::decided(trigger, begins, score).evidence(text.clone()) },
        Finding {
            interval: Some([per_second * 0.9, per_second * 1.1]),
            ..Finding::decided(rate, per_second, if some.len() >= 3 { 0.85 } else { 0.75 }).evidence(text)
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_found_room_is_counted_to_a_part_of_a_write() {
        let l = Levels { fast: 2000.0, slow: 6000.0 };
        let mut t: Vec<f64> = (0..40).map(|i| if i == 17 { 90_000.0 } else { 2000.0 }).collect();
        t.push(4000.0);
        assert_eq!(taken(&t, l), None, "not full yet");
        t.extend([6000.0; 30]);
        let n = taken(&t, l).unwrap();
        assert!((39.5..=41.0).contains(&n), "{n}");
        assert_eq!(taken(&[6000.0; 30], l), Some(0.0));
    }
}
