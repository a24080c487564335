//! Where fast sequential writes end, a cache of flash used with one bit a cell is full; what comes back at rest says how it is emptied.

mod at_rest;

use self::at_rest::{at_rest, emptying};
use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::pipeline::{Analysis, Fit};
use super::write_cache::step_after;
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{mean, median, quantile};
use crate::samples::{Cell, Run, Sample};
use crate::units::{Bytes, MIB, Nanos, about};

/// Judges runs of `slc-cache`.
pub struct SlcCache;

pub(super) const ANALYSES: &[&dyn Analysis] = &[&SlcCache];

/// Roles: writes in sequence, reads of places that are not written, and writes after those until it is full again.
pub const SEQUENTIAL: u8 = 0;
pub const ELSEWHERE: u8 = 1;
pub const AGAIN: u8 = 2;

/// Rests before a fill, in ms: after the first fill one for each of them. Fills after that follow rests as long as emptying takes.
pub const RESTS_MS: [u64; 8] = [25, 50, 100, 200, 400, 800, 1600, 3200];

/// Fills after long rests, the first one among them.
const LONG: usize = 4;

/// A rest is this much longer than emptying should take, and that much longer than one before it that was not enough.
const AMPLE: f64 = 1.15;
const LONGER: f64 = 1.3;
/// ms of a rest where short ones do not say how fast it is emptied.
const UNKNOWN: f64 = 60_000.0;

/// A cache that is emptied at rest has room after so many ms.
const NEVER: f64 = 10_000.0;

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

/// Blocks of writes that a cache takes at least. What is smaller cannot be told from memory for a few writes.
const LEAST: usize = 2;

/// The first write of a fill that found the cache full.
pub fn step(times: &[f64]) -> Option<usize> {
    step_after(times, LEAST)
}

/// What the first fill showed; `None` where its writes never became slower.
pub fn levels(run: &Run, cell: &Cell) -> Option<Levels> {
    levels_of(&times(run, cell, 0, SEQUENTIAL))
}

/// The same of µs of its writes.
pub fn levels_of(t: &[f64]) -> Option<Levels> {
    let i = step(t)?;
    Some(Levels { fast: median(&t[..i]), slow: median(t.get(i + 2..)?) })
}

/// How many times as long the later reads take, by their lower quartiles: what is still being written makes some wait, heat all of them.
pub fn longer(before: &[f64], after: &[f64]) -> f64 {
    quantile(after, 0.25) / quantile(before, 0.25).max(1e-9)
}

/// How many times as long reads of other places take once the first fill is slow, where that explains half of what writes take longer: a full
/// cache leaves them as they were. `None` where it does not, or they were not read.
pub fn hot(run: &Run, cell: &Cell, l: Levels) -> Option<f64> {
    let first: Vec<_> = run.of(cell.id).filter(|s| s.trial == 0).collect();
    let fill = first.iter().position(|s| s.role == SEQUENTIAL)?;
    let (before, after) = first.split_at(fill);
    let reads = |s: &[&Sample]| -> Vec<f64> { s.iter().filter(|s| s.role == ELSEWHERE).map(|s| s.took.micros()).collect() };
    let (before, after) = (reads(before), reads(after));
    let last = after.get(after.len().checked_sub(before.len())?..).filter(|t| !t.is_empty())?;
    let times = longer(&before, last);
    (times.ln() > (l.slow / l.fast).ln() / 2.0).then_some(times)
}

/// Are the last of these writes slow?
pub fn full(times: &[f64], l: Levels) -> bool {
    times.len() >= LAST && times[times.len() - LAST..].iter().filter(|&&t| t > l.line()).count() >= SLOW
}

/// Writes that found room, those of which a part did counted in part; `None` where the trial ended before the cache was full.
pub(super) fn taken(times: &[f64], l: Levels) -> Option<f64> {
    if !full(times, l) {
        return None;
    }
    let end = (0..=times.len() - 8).find(|&i| times[i..i + 8].iter().filter(|&&t| t > l.line()).count() >= 6)?;
    let part = |t: f64| ((l.slow - t) / (l.slow - l.fast)).clamp(0.0, 1.0);
    let edge = times[end..(end + 2).min(times.len())].iter().map(|&t| part(t)).filter(|&p| p > 0.3).sum::<f64>();
    Some(end as f64 + edge)
}

/// The short rest before a trial, ms; `None` before a long one. Older runs began with two long ones.
fn short_rest(cell: &Cell, trial: u32) -> Option<u64> {
    let first = if cell.get("short_first") == 1 { 1 } else { 2 };
    RESTS_MS.get(trial.checked_sub(first)? as usize).copied()
}

/// Of one fill: ms of the rest before it, and writes that found room.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fill {
    rest: f64,
    room: f64,
}

/// The fills after long rests, the first one among them, and those after short ones.
fn fills(run: &Run, cell: &Cell, l: Levels) -> (Vec<Fill>, Vec<Fill>) {
    let (mut long, mut short) = (vec![], vec![]);
    let mut before = None;
    for t in run.trials(cell.id) {
        let (Some(first), Some(last)) = (t.first(), t.last()) else { continue };
        let paused = before.map_or(cell.get("rest_ms") as f64, |end: Nanos| (first.start - end).0 as f64 / 1e6);
        before = Some(last.start + last.took);
        let micros: Vec<f64> = t.iter().filter(|s| s.role == SEQUENTIAL).map(|s| s.took.micros()).collect();
        let Some(room) = taken(&micros, l) else { continue };
        match short_rest(cell, first.trial) {
            // What is journaled before the first write is no longer rest than was asked for.
            Some(ms) => short.push(Fill { rest: ms as f64, room }),
            // A run that went on later paused for the experiments in between as well.
            None => long.push(Fill { rest: needed(&long, &short).map_or(paused, |ms| paused.min(ms)), room }),
        }
    }
    (long, short)
}

/// The last fill found as much room as the most that any did before it: both.
fn settled(long: &[Fill]) -> Option<[f64; 2]> {
    let (last, before) = long.split_last()?;
    let most = before.iter().map(|f| f.room).fold(None, |m: Option<f64>, r| Some(m.map_or(r, |m| m.max(r))))?;
    ((last.room - most).abs() <= SAME * most.max(last.room) + 2.0).then_some([most, last.room])
}

/// ms of the next long rest, where it would tell how large the cache is, and of the fill after it.
pub fn next_rest(run: &Run, cell: &Cell) -> Option<(f64, f64)> {
    let l = levels(run, cell)?;
    let (long, short) = fills(run, cell, l);
    let need = needed(&long, &short)?;
    Some((need, (most(&long) * l.fast + 2.0 * LAST as f64 * l.slow) / 1e3))
}

/// Writes of the largest fill.
fn most(long: &[Fill]) -> f64 {
    long.iter().map(|f| f.room).fold(0.0, f64::max)
}

/// ms of rest that would tell how large the cache is.
fn needed(long: &[Fill], short: &[Fill]) -> Option<f64> {
    if long.is_empty() || settled(long).is_some() || long.len() >= LONG {
        return None;
    }
    let most = most(long);
    let mut need = emptying(short, most).map_or(UNKNOWN, |e| e.begins + AMPLE * most / e.rate);
    if let [_, .., last] = long[..] {
        need = need.max(last.rest * (AMPLE * most / last.room.max(1.0)).clamp(LONGER, 4.0));
    }
    Some(need)
}

impl Analysis for SlcCache {
    fn name(&self) -> &'static str {
        "slc-cache"
    }

    fn fit(&self) -> Fit {
        Fit::Today
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        let Some(cell) = run.cells.first() else {
            return vec![Finding::undecided(Quantity::SlcCache, format!("{} is too small to fill a cache", run.stretch()))];
        };
        let chunk = cell.bytes("chunk") as f64;
        let first = times(run, cell, 0, SEQUENTIAL);
        if first.is_empty() {
            return vec![Finding::undecided(Quantity::SlcCache, "no write was timed (more --time and --writes would decide)")];
        }
        let Some(l) = levels(run, cell) else {
            let why = format!(
                "no slower writes over {} of sequential writes after a rest of {} s: there is no such cache, or a larger one (more --time \
                 and --writes would decide)",
                about((first.len() as f64 * chunk) as u64),
                cell.get("rest_ms") / 1000
            );
            return vec![Finding::undecided(Quantity::SlcCache, why)];
        };
        if let Some(why) = no_cache(run, cell, l) {
            let (fast, slow) = (l.fast / 1e3, l.slow / 1e3);
            let text = format!(
                "sequential writes took {fast:.2} ms each, {slow:.2} ms from {} on",
                Bytes((step(&first).unwrap_or(0) as f64 * chunk) as u64)
            );
            return vec![Finding::undecided(Quantity::SlcCache, why).evidence(text)];
        }
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
        let again = (1..run.trials(cell.id).len() as u32).rfind(|&n| short_rest(cell, n).is_none());
        let shown = [("first fill", Some(0)), ("after a long rest", again)];
        let series = shown.iter().filter_map(|(n, t)| Some(Series { name: n.to_string(), points: points((*t)?) }));
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

/// Why what made writes slower need not be a cache that became full.
fn no_cache(run: &Run, cell: &Cell, l: Levels) -> Option<String> {
    if let Some(times) = hot(run, cell, l) {
        return Some(format!(
            "writes became {:.1} times as slow, and reads of other places {times:.1} times: the whole card is slower, as a hot one is",
            l.slow / l.fast
        ));
    }
    let (long, short) = fills(run, cell, l);
    let last = long.split_first()?.1.last()?;
    let nothing = last.rest >= NEVER && short.iter().chain([last]).all(|f| f.room < 1.0);
    nothing.then(|| {
        format!(
            "no rest up to {:.0} s brought anything back: a cache that is emptied only when it has to be, heat that slows writes only, or spare \
             flash that is used up",
            last.rest / 1e3
        )
    })
}

/// The size, where a rest that empties it brought back as much as there was before.
fn size(run: &Run, cell: &Cell, l: Levels, chunk: f64) -> Finding {
    let q = Quantity::SlcCache;
    let (long, short) = fills(run, cell, l);
    let most = most(&long) * chunk;
    let contrast = l.slow / l.fast;
    let bytes = |f: &Fill| Bytes((f.room * chunk) as u64);
    let text = format!(
        "sequential writes took {:.2} ms each for {}, {:.2} ms from then on",
        l.fast / 1e3,
        long.iter().map(|f| bytes(f).to_string()).collect::<Vec<_>>().join(" and "),
        l.slow / 1e3
    );
    let hot = "a card that slows down when it is hot would look the same; so would one whose spare flash is used up";
    if let Some([a, b]) = settled(&long).map(|f| f.map(|n| n * chunk)) {
        let value = (a + b) / 2.0;
        let error = (2.0 * chunk).max((a - b).abs());
        let score = if contrast > 1.5 { 0.93 } else { 0.85 };
        let f = Finding::decided(q, value.round(), score).evidence(text).caveat(hot);
        return Finding { interval: Some([(value - error).max(0.0), value + error]), ..f }.caveat("as full as the card is now");
    }
    if let [_, .., last] = &long[..] {
        let why = format!(
            "after a rest of {:.0} s it took {} instead of {}: rest brings it back slowly (more --time would decide)",
            last.rest / 1e3,
            bytes(last),
            Bytes(most as u64)
        );
        return Finding::at_least(q, most, 0.85, why).evidence(text).caveat(hot);
    }
    let why = match needed(&long, &short) {
        Some(need) if short.len() == RESTS_MS.len() => format!(
            "it was filled once, and what was written before may have taken part of it; emptying it takes {:.0} s of rest (more --time would \
             decide)",
            need / 1e3
        ),
        _ => "it was filled once: what was written before may have taken part of it (more --time would decide)".into(),
    };
    Finding::at_least(q, most, 0.8, why).evidence(text)
}

/// Stalls that are rarer than what was written is long change a rate by no more than this part of it, on 95 of 100 simulated cards.
const RARE: f64 = 0.015;

/// MB/s before and after it is full.
fn rates(run: &Run, cell: &Cell, l: Levels, chunk: f64) -> Vec<Finding> {
    let (mut fast, mut slow) = (vec![], vec![]);
    for t in run.trials(cell.id) {
        let long = t.first().is_some_and(|s| short_rest(cell, s.trial).is_none());
        let t: Vec<f64> = t.iter().filter(|s| s.role == SEQUENTIAL).map(|s| s.took.micros()).collect();
        let Some(end) = taken(&t, l).map(|e| e as usize) else { continue };
        // The first write after a rest may wake the card.
        if long {
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
        let half = (2.4 * scatter / (blocks.len() as f64).sqrt() / m).max(RARE);
        let f = Finding::decided(q, value, if half < 0.05 { 0.92 } else { 0.8 });
        let text = format!("{} sequential writes of {} {what}", t.len(), Bytes(chunk as u64));
        Finding { interval: Some([value * (1.0 - half), value * (1.0 + half)]), ..f }.evidence(text)
    };
    vec![one(Quantity::RateCachedMbS, &fast, "while the cache had room"), one(Quantity::RateSustainedMbS, &slow, "after it was full")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_settled_by_a_rest_that_brings_back_as_much() {
        let f = |room: f64| Fill { rest: 1e4, room };
        assert_eq!(settled(&[f(800.0)]), None);
        assert_eq!(settled(&[f(800.0), f(300.0)]), None, "it was not empty yet");
        assert_eq!(settled(&[f(300.0), f(800.0)]), None, "the first one was not empty");
        assert_eq!(settled(&[f(300.0), f(800.0), f(805.0)]), Some([800.0, 805.0]));
        assert_eq!(settled(&[f(800.0), f(300.0), f(790.0)]), Some([800.0, 790.0]));
    }

    /// 8 MiB are two blocks of writes; what is in memory for fewer is no cache. The edge is the first of four of which three are slow.
    #[test]
    fn a_small_cache_is_seen() {
        let t = |fast: usize| (0..160).map(|i| if i < fast { 2000.0 } else { 6000.0 }).collect::<Vec<f64>>();
        assert_eq!([8, 16, 28, 32, 60].map(|n| step(&t(n))), [None, None, Some(27), Some(31), Some(59)]);
    }

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
