//! Runs requests through a card and says how it went.

use crate::card::{AHEAD, Card, Queue};
use crate::histogram::{Histogram, Latencies};
use crate::request::{Fault, Op, Request};
use crate::rng::Rng;
use crate::trace::Io;
use crate::units::{parse_size, show_size};
use serde::Serialize;
use std::ops::Range;

/// What is done with the places of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Fit {
    /// They are taken as they are; a request that leaves the region ends the run.
    #[default]
    Reject,
    /// A request that leaves the region is folded back into it, modulo its size.
    Fold,
    /// All places are shrunk or stretched so that this many bytes fill the region; lengths stay.
    Scale(u64),
}

/// How requests follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Pace {
    /// Each when the one before is done, or a place in the queue is free.
    #[default]
    Closed,
    /// At the times of the trace; the latency then includes waiting for the card.
    AsRecorded,
}

/// How a run is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct How {
    /// How requests follow each other.
    pub pace: Pace,
    /// What is done with places that leave the region.
    pub fit: Fit,
    /// The part of the card that is used: byte 0 of a request is its first byte. None = the whole card.
    pub region: Option<Range<u64>>,
    /// Requests that the host keeps under way, as far as the card has a queue; 1 = one at a time.
    pub depth: u64,
}

impl Default for How {
    fn default() -> How {
        How { pace: Pace::default(), fit: Fit::default(), region: None, depth: 1 }
    }
}

/// A request that was not served, and ended the run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("request {number} ({:?} of {} bytes at {}): {fault}", io.op, io.len, io.at)]
pub struct Stopped {
    /// Its number, from 1. All before it were served.
    pub number: u64,
    /// The request as it was asked for.
    pub io: Io,
    /// Why.
    pub fault: Fault,
}

/// A stretch of the time line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stretch {
    /// Requests done in it.
    pub requests: u64,
    /// Bytes read and written in it.
    pub bytes: u64,
    /// Longest latency, ns.
    pub worst: u64,
}

/// How a run went. Requests served are requests submitted; a request that is not served ends the run with its fault.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Requests served.
    pub served: u64,
    /// Of these, how many were folded back into the card.
    pub folded: u64,
    /// ns from the first submission to the last completion.
    pub took: u64,
    /// Latencies of reads.
    pub reads: Latencies,
    /// Latencies of writes.
    pub writes: Latencies,
    /// Latencies of discards and flushes.
    pub others: Latencies,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Bytes programmed for each byte written, over this run.
    pub write_amplification: f64,
    /// Erase blocks erased in this run.
    pub erases: u64,
    /// Drive writes of this run.
    pub drive_writes: f64,
    /// Log blocks or logs that simply took the place of their AU.
    pub merges_switch: u64,
    /// Log blocks or logs that were filled up from old data.
    pub merges_partial: u64,
    /// AUs put together anew.
    pub merges_full: u64,
    /// Blocks collected by garbage collection.
    pub collections: u64,
    /// Erase blocks rewritten because they were read too often.
    pub refreshes: u64,
    /// Stalls.
    pub stalls: u64,
    /// Access units sensed for reads.
    pub units_sensed: u64,
    /// Write units programmed for the host's data.
    pub units_programmed: u64,
    /// Write units copied inside the card.
    pub units_copied: u64,
    /// Writes that had to fill up a partly written unit.
    pub filled_up: u64,
    /// ns of one stretch of the time line.
    pub stretch: u64,
    /// The time line, at most 256 stretches.
    pub timeline: Vec<Stretch>,
}

impl Outcome {
    /// Requests a second.
    pub fn iops(&self) -> f64 {
        self.served as f64 * 1e9 / self.took.max(1) as f64
    }

    /// Bytes a second, read and written.
    pub fn rate(&self) -> f64 {
        (self.bytes_read + self.bytes_written) as f64 * 1e9 / self.took.max(1) as f64
    }
}

/// A time line that halves its resolution whenever it gets too long.
struct Timeline {
    width: u64,
    all: Vec<Stretch>,
    /// The stretch of the request before, and where it begins and ends: the next one most often falls in it, too.
    at: usize,
    from: u64,
    to: u64,
}

impl Timeline {
    fn new() -> Timeline {
        Timeline { width: 1_000_000, all: vec![Stretch::default()], at: 0, from: 0, to: 1_000_000 }
    }

    #[inline]
    fn add(&mut self, at: u64, bytes: u64, latency: u64) {
        if at < self.from || at >= self.to {
            self.turn(at);
        }
        let s = &mut self.all[self.at];
        (s.requests, s.bytes, s.worst) = (s.requests + 1, s.bytes + bytes, s.worst.max(latency));
    }

    fn turn(&mut self, at: u64) {
        while at / self.width >= 256 {
            self.width *= 2;
            let pairs = self.all.chunks(2).map(|c| {
                let b = c.get(1).copied().unwrap_or_default();
                Stretch { requests: c[0].requests + b.requests, bytes: c[0].bytes + b.bytes, worst: c[0].worst.max(b.worst) }
            });
            self.all = pairs.collect();
        }
        self.at = (at / self.width) as usize;
        (self.from, self.to) = (self.at as u64 * self.width, (self.at as u64 + 1) * self.width);
        if self.all.len() <= self.at {
            self.all.resize(self.at + 1, Stretch::default());
        }
    }
}

/// Where a request goes, in whole sectors, and whether it had to be folded back.
#[inline]
pub fn place(io: &Io, region: &Range<u64>, fit: Fit, sector: u64) -> (u64, u64, bool) {
    let size = region.end - region.start;
    let mask = sector - 1;
    let mut at = io.at & !mask;
    let head = io.at - at;
    if let Fit::Scale(span) = fit {
        at = ((u128::from(at) * u128::from(size) / u128::from(span.max(1))) as u64) & !mask;
    }
    let mut len = head.saturating_add(io.len).saturating_add(mask) & !mask;
    let mut folded = false;
    if fit != Fit::Reject && at.checked_add(len).is_none_or(|end| end > size) {
        len = len.min(size & !mask);
        // What hangs over the end after stretching moves back; what lies outside is taken modulo the size.
        at = if fit == Fit::Fold { (at % size) & !mask } else { at };
        at = at.min((size - len) & !mask);
        folded = fit == Fit::Fold;
    }
    (region.start.saturating_add(at), len, folded)
}

/// Runs requests through a card, beginning at `now` (ns). Places and lengths are widened to whole sectors.
///
/// # Errors
/// [`Stopped`]: the first request that was not served.
pub fn run(card: &mut Card, now: u64, ios: impl IntoIterator<Item = Io>, how: &How) -> Result<Outcome, Stopped> {
    run_told(card, now, ios, how, |_| {})
}

/// The same, telling each request that was served as it was: where it went on the card, when it began after `now`, and what it took.
///
/// # Errors
/// [`Stopped`]: the first request that was not served.
pub fn run_told(
    card: &mut Card,
    now: u64,
    ios: impl IntoIterator<Item = Io>,
    how: &How,
    mut told: impl FnMut(Io),
) -> Result<Outcome, Stopped> {
    let before = card.counters().clone();
    let capacity = card.capacity();
    let region = how.region.clone().unwrap_or(0..capacity);
    let mut queue = Queue::new(card, now, how.depth);
    let queued = queue.depth() > 1;
    let mut histograms = [Histogram::default(), Histogram::default(), Histogram::default()];
    let mut timeline = Timeline::new();
    let (mut served, mut folded, mut last) = (0, 0, now);
    let mut ios = ios.into_iter();
    let mut ahead = Vec::with_capacity(AHEAD);
    loop {
        ahead.extend(ios.by_ref().take(AHEAD).map(|io| (place(&io, &region, how.fit, card.sector()), io)));
        if ahead.is_empty() {
            break;
        }
        card.foresee(ahead.iter().filter(|(_, io)| io.op == Op::Write).map(|((at, ..), _)| *at));
        for ((at, len, fit), io) in ahead.drain(..) {
            folded += u64::from(fit);
            let arrival = if how.pace == Pace::AsRecorded { now + io.time } else { last };
            let request = Request { op: io.op, at, len, data: crate::Data::Other };
            let inside = at >= region.start && at.checked_add(len).is_some_and(|end| end <= region.end);
            let done = match (inside, queued) {
                (false, _) => Err(Fault::OutOfRange { at: io.at, len: io.len, capacity: region.end - region.start }),
                (_, true) => queue.submit(card, if how.pace == Pace::Closed { now } else { arrival }, request),
                _ => card.submit(arrival, request),
            };
            let c = done.map_err(|fault| Stopped { number: served + 1, io, fault })?;
            // With a queue and no times of its own, a request begins to wait when its place in the queue is free.
            let latency = c.done - if queued && how.pace == Pace::Closed { c.start } else { arrival };
            let class = match io.op {
                Op::Read => 0,
                Op::Write => 1,
                _ => 2,
            };
            histograms[class].add(latency);
            timeline.add(c.done - now, if class < 2 { len } else { 0 }, latency);
            told(Io { time: c.done - latency - now, op: io.op, at, len, took: latency });
            last = last.max(c.done);
            served += 1;
        }
    }
    let k = card.counters();
    let written = k.bytes_written - before.bytes_written;
    let programmed = k.units_programmed + k.units_copied - before.units_programmed - before.units_copied;
    let [reads, writes, others] = histograms.map(|h| h.latencies());
    Ok(Outcome {
        served,
        folded,
        took: last - now,
        reads,
        writes,
        others,
        bytes_read: k.bytes_read - before.bytes_read,
        bytes_written: written,
        write_amplification: if written == 0 { 0.0 } else { programmed as f64 * k.unit_bytes as f64 / written as f64 },
        erases: k.erases - before.erases,
        drive_writes: written as f64 / capacity as f64,
        merges_switch: k.merges_switch - before.merges_switch,
        merges_partial: k.merges_partial - before.merges_partial,
        merges_full: k.merges_full - before.merges_full,
        collections: k.collections - before.collections,
        refreshes: k.refreshes - before.refreshes,
        stalls: k.stalls - before.stalls,
        units_sensed: k.units_sensed - before.units_sensed,
        units_programmed: k.units_programmed - before.units_programmed,
        units_copied: k.units_copied - before.units_copied,
        filled_up: k.filled_up - before.filled_up,
        stretch: timeline.width,
        timeline: timeline.all,
    })
}

/// A made-up pattern of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Places drawn at random instead of in order.
    pub random: bool,
    /// Share of reads in percent.
    pub reads: u64,
    /// Bytes of a request.
    pub size: u64,
}

impl Pattern {
    /// Reads `random-4k`, `sequential`, `sequential-read-1m`, `mixed-4k` (half reads) and the like; writes unless said
    /// otherwise, 4 KiB at random and 128 KiB in order.
    pub fn parse(text: &str) -> Result<Pattern, String> {
        let mut p = Pattern { random: false, reads: 0, size: 0 };
        let mut order = false;
        for word in text.split('-') {
            match word {
                "random" | "mixed" => (p.random, order) = (true, true),
                "sequential" => order = true,
                "read" => p.reads = 100,
                "write" => p.reads = 0,
                w => {
                    let suffix = if w.ends_with(|c: char| c.is_ascii_digit()) { " B" } else { "iB" };
                    p.size = parse_size(&format!("{w}{suffix}")).or_else(|| parse_size(w)).unwrap_or(0);
                    if p.size == 0 || !p.size.is_multiple_of(512) {
                        let inside = if w == text { String::new() } else { format!(" in '{text}'") };
                        return Err(format!(
                            "'{w}'{inside} is neither random, sequential, mixed, read, write nor a size such as 4k (a multiple of 512 B)"
                        ));
                    }
                }
            }
            if word == "mixed" {
                p.reads = 50;
            }
        }
        if !order {
            return Err(format!("'{text}' says neither random, sequential nor mixed"));
        }
        if p.size == 0 {
            p.size = if p.random { 4096 } else { 128 << 10 };
        }
        Ok(p)
    }

    /// `n` requests of the pattern on a card of `capacity` bytes.
    pub fn ios(&self, capacity: u64, n: u64, seed: u64) -> impl Iterator<Item = Io> + use<> {
        let (p, mut rng) = (self.clone(), Rng::new(seed, 8));
        let places = (capacity / p.size).max(1);
        (0..n).map(move |k| {
            let place = if p.random { rng.below(places) } else { k % places };
            let op = if p.reads > 0 && rng.below(100) < p.reads { Op::Read } else { Op::Write };
            Io { time: k, op, at: place * p.size, len: p.size, took: 0 }
        })
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let order = if self.random { "random" } else { "sequential" };
        write!(f, "{order}, {} % reads, {}", self.reads, show_size(self.size))
    }
}
