//! Writes that are not flushed, and flushes: whether a cache that a power cut empties takes the first of them, how much it takes, and whether
//! a flush waits until that is on the flash.
//!
//! What a cache takes faster than the flash can, a flush has to make up for: an honest one takes that much longer, and the cache has room
//! afterwards. Where neither is so, the cache is of flash itself and keeps what it holds, or the flush returns too early.

use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::pipeline::{Analysis, Fit};
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{bootstrap_median, median, two_kinds};
use crate::samples::{Cell, Run, Sample};
use crate::units::{Bytes, MIB};

/// Judges runs of `flush`.
pub struct Flush;

pub(super) const ANALYSES: &[&dyn Analysis] = &[&Flush];

/// Roles: a flush with nothing to do; a single write and the flush after it; reads of the same length as the writes of a burst; a burst until
/// it becomes slower, and the flush after it; bursts of as much as fits, the flush after each, and writes right after that.
pub const EMPTY: u8 = 0;
pub const SINGLE: u8 = 1;
pub const AFTER_SINGLE: u8 = 2;
pub const READ: u8 = 3;
pub const BURST: u8 = 4;
pub const AFTER_BURST: u8 = 5;
pub const FITS: u8 = 6;
pub const AFTER_FITS: u8 = 7;
pub const AGAIN: u8 = 8;

/// Writes that are looked at together, without the longest: some may wait in a unit until it is full, and one may stall.
const BLOCK: usize = 16;
/// A full cache makes writes slower by this factor.
const SLOWER: f64 = 1.25;
/// Writes at the end of a burst that are all slow.
pub const TAIL: usize = 64;
/// Bursts that are followed by a flush and a further burst.
pub const TRIALS: u32 = 4;
/// Room after a flush, as a part of all, that says that it waited; less than that, that it did not.
const EMPTIED: f64 = 0.85;
const LEFT: f64 = 0.4;
/// A flush that writes what the cache took lasts at least this part of the time which that saved, and one that does not less than that.
const WAITED: f64 = 0.4;
const AT_ONCE: f64 = 0.1;
/// Of what was decided on the cards of docs/todays-cards.md all was right; as these are of one family, no more than this.
const SCORE: f64 = 0.95;
/// The same where a flush does not wait, less for what these cards have not and what would look the same: caches that keep their data.
const ACCUSED: f64 = 0.75;
/// Bytes of a cache in a card's memory, where a larger one may be of flash: a block of it on each plane holds more with one bit a cell.
const MEMORY: f64 = (4 * MIB) as f64;
/// A cache that is emptied while it takes writes holds less than found room, by this ratio of fast writes to slow ones.
const EMPTIES: f64 = 0.2;

/// What a burst showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cached {
    /// µs of a write while there is room, and while there is none.
    pub fast: f64,
    pub slow: f64,
    /// Writes that found room.
    pub room: usize,
}

impl Cached {
    fn line(self) -> f64 {
        (self.fast * self.slow).sqrt()
    }

    /// µs that the writes which found room would have taken longer without.
    pub fn saved(self) -> f64 {
        self.room as f64 * (self.slow - self.fast)
    }

    /// Writes that found room, of those after something else.
    fn found(self, times: &[f64]) -> usize {
        match times.windows(BLOCK).position(|w| usual(w) > self.line()) {
            None => times.len(),
            Some(0) => 0,
            // Where the line is crossed, so many of the block are slow.
            Some(i) => i + (BLOCK as f64 * (1.0 - (self.line() - self.fast) / (self.slow - self.fast))).round() as usize,
        }
    }
}

/// The mean of all but the longest.
fn usual(block: &[f64]) -> f64 {
    let most = block.iter().copied().fold(0.0, f64::max);
    (block.iter().sum::<f64>() - most) / (block.len() as f64 - 1.0).max(1.0)
}

/// `None` where a burst never became slower, or was slow from the start.
pub fn cached(times: &[f64]) -> Option<Cached> {
    let end = times.len().checked_sub(TAIL).filter(|&e| e >= BLOCK)?;
    let last: Vec<f64> = times[end..].chunks_exact(BLOCK).map(usual).collect();
    let all = Cached { fast: usual(&times[..BLOCK]), slow: median(&last), room: 0 };
    let steady = last.iter().filter(|&&t| t > all.line()).count() + 1 >= last.len();
    if all.slow < SLOWER * all.fast || !steady {
        return None;
    }
    Some(Cached { room: all.found(times), ..all }).filter(|c| c.room >= BLOCK / 2)
}

/// The burst in its order.
pub fn burst(run: &Run, cell: &Cell) -> Vec<f64> {
    run.micros(cell, BURST)
}

impl Analysis for Flush {
    fn name(&self) -> &'static str {
        "flush"
    }

    fn fit(&self) -> Fit {
        Fit::Today
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        let (cost, size, waits) = (Quantity::FlushMs, Quantity::VolatileCache, Quantity::FlushWaits);
        let Some(cell) = run.cells.first() else {
            return vec![Finding::undecided(cost, format!("{} or --writes is too small for bursts", run.stretch()))];
        };
        let (empty, single) = (run.micros(cell, EMPTY), run.micros(cell, AFTER_SINGLE));
        let mut out = vec![];
        let ms = |t: &[f64]| median(t) / 1e3;
        out.push(match bootstrap_median(&single) {
            Some(i) if single.len() >= 6 => {
                let text =
                    format!("a flush with nothing to write took {:.3} ms, one after a write of 4 KiB {:.3} ms", ms(&empty), ms(&single));
                if let Some([low, high]) = two_kinds(&single, 0.0).map(|k| k.map(|us| us / 1e3)) {
                    let why = format!("after a write of 4 KiB it takes {low:.3} ms at one time and {high:.3} ms at another");
                    Finding::undecided(cost, why).evidence(text)
                } else {
                    Finding { interval: Some(i.map(|v| v / 1e3)), ..Finding::decided(cost, ms(&single), SCORE).evidence(text) }
                }
            }
            _ => Finding::undecided(cost, "too few flushes were timed"),
        });
        let times = burst(run, cell);
        let chunk = cell.bytes("chunk");
        if times.iter().all(|&t| t == 0.0) {
            let why = "this target does not time writes that are not flushed";
            return [cost, size, waits].map(|q| Finding::undecided(q, why)).into();
        }
        let Some(c) = cached(&times) else {
            let why = format!("no slower writes over {} without a flush", Bytes(times.len() as u64 * chunk));
            out.push(Finding::undecided(size, format!("{why}: there is no such cache, or a larger one")));
            out.push(Finding::undecided(waits, format!("{why}: nothing that a flush would have to wait for was seen")));
            return out;
        };
        out.extend(judged(run, cell, c, chunk as f64));
        out
    }

    fn figures(&self, run: &Case) -> Vec<Figure> {
        let Some(cell) = run.cells.first() else { return vec![] };
        let chunk = cell.bytes("chunk") as f64;
        let points: Vec<(f64, f64)> =
            burst(run, cell).iter().enumerate().map(|(i, t)| ((i + 1) as f64 * chunk / MIB as f64, t / 1e3)).collect();
        if points.is_empty() {
            return vec![];
        }
        vec![Figure {
            title: "writes without a flush until a cache is full".into(),
            x: "MiB written".into(),
            y: "ms".into(),
            log_x: false,
            log_y: true,
            series: vec![Series { name: format!("write of {}", Bytes(cell.bytes("chunk"))), points }],
        }]
    }
}

/// Size of the cache, and whether a flush waits for it.
fn judged(run: &Run, cell: &Cell, c: Cached, chunk: f64) -> Vec<Finding> {
    let (size, waits) = (Quantity::VolatileCache, Quantity::FlushWaits);
    let saved = c.saved();
    let nothing = median(&run.micros(cell, EMPTY));
    let trials = run.trials(cell.id);
    let of = |t: &[&Sample], role: u8| -> Vec<f64> { t.iter().filter(|s| s.role == role).map(|s| s.took.micros()).collect() };
    let mut kept = 0;
    let each: Vec<(f64, f64)> = trials
        .iter()
        .filter_map(|t| {
            let (flush, again, fits) = (of(t, AFTER_FITS), of(t, AGAIN), of(t, FITS));
            // What did not fit left nothing to compare with.
            let whole = !fits.is_empty() && c.found(&fits) + BLOCK / 2 + fits.len() / 16 >= fits.len();
            kept += usize::from(!fits.is_empty() && !whole);
            let found = c.found(&again) as f64 / fits.len().max(1) as f64;
            (whole && !again.is_empty()).then(|| Some(((*flush.first()? - nothing).max(0.0), found.min(1.0))))?
        })
        .collect();
    let read = median(&run.micros(cell, READ));
    let bytes = Bytes((c.room as f64 * chunk) as u64);
    let (flush, room) = (median(&each.iter().map(|e| e.0).collect::<Vec<_>>()), median(&each.iter().map(|e| e.1).collect::<Vec<_>>()));
    let text = format!(
        "writes of {} took {:.3} ms each for {bytes} and {:.3} ms from then on (a read of that length {:.3} ms); a flush after as many took \
         {:.2} ms longer than one with nothing to write, where the cache had saved {:.2} ms, and {:.0} % of the room was there afterwards",
        Bytes(chunk as u64),
        c.fast / 1e3,
        c.slow / 1e3,
        read / 1e3,
        flush / 1e3,
        saved / 1e3,
        100.0 * room
    );
    let neither = |why: &str| [size, waits].map(|q| Finding::undecided(q, why).evidence(text.clone())).into();
    if each.len() < 3 && kept >= 3 {
        let why = "neither rest nor a flush made room for as much again: an SLC cache, rather than one that a power cut empties";
        return neither(why);
    }
    if each.len() < 3 {
        let why = "too few bursts were followed by a flush (more --time and --writes would decide)";
        return neither(why);
    }
    let value = c.room as f64 * chunk;
    // While it takes writes a card may empty it already.
    let least = value * (1.0 - c.fast / c.slow);
    let sized = |score: f64| {
        if c.fast > EMPTIES * c.slow {
            let why = "it may be emptied while it takes writes, and hold less than found room";
            return Finding::at_least(size, least, score, why).evidence(text.clone());
        }
        let f = Finding::decided(size, value, score).evidence(text.clone());
        Finding { interval: Some([least - chunk, value + chunk]), ..f }
    };
    let emptied = flush > WAITED * saved && room > EMPTIED;
    if emptied {
        return vec![sized(SCORE), Finding::decided(waits, 1.0, SCORE).evidence(text)];
    }
    if flush < AT_ONCE * saved && room < LEFT {
        // No flash is programmed in the time in which it is read, and no SLC cache is that small: these were in memory.
        if c.fast < read && value <= MEMORY + BLOCK as f64 * chunk {
            let caveat = "a cache that survives a power cut, by a capacitor or because it is flash, would look the same";
            return vec![sized(ACCUSED).caveat(caveat), Finding::decided(waits, 2.0, ACCUSED).evidence(text).caveat(caveat)];
        }
        let why = "a flush leaves what the cache took where it is: an SLC cache, which a power cut does not empty, or a flush that returns too early \
                   (a power cut would decide)";
        return neither(why);
    }
    let why = "a flush made up for a part only of what the cache took";
    neither(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_shows_what_fits() {
        let t: Vec<f64> = (0..300).map(|i| if i < 32 { 300.0 } else { 2000.0 } + if i % 37 == 5 { 40_000.0 } else { 0.0 }).collect();
        let room = cached(&t).unwrap().room;
        assert!((30..=34).contains(&room), "{room}: a stall is no full cache");
        // Units of four writes, of which the last one pays for all.
        let t: Vec<f64> = (0..300).map(|i| if i < 64 { 300.0 } else { 300.0 + if i % 4 == 3 { 3000.0 } else { 0.0 } }).collect();
        let room = cached(&t).unwrap().room;
        assert!((58..=70).contains(&room), "{room}");
        assert_eq!(cached(&[500.0; 300]), None);
        assert_eq!(cached(&t[..80]), None, "the end is not slow throughout");
    }
}
