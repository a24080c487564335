//! Runs requests through a card and says how it went.

use crate::card::Card;
use crate::histogram::{Histogram, Latencies};
use crate::request::{Fault, Op, Request};
use crate::rng::Rng;
use crate::trace::Io;
use crate::units::{parse_size, show_size};
use serde::Serialize;

/// What is done with a request that leaves the card, as traces of larger disks have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Fit {
    /// It ends the run with an error.
    #[default]
    Reject,
    /// Its place is taken modulo the capacity.
    Fold,
}

/// How requests follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Pace {
    /// Each when the one before is done.
    #[default]
    Closed,
    /// At the times of the trace; the latency then includes waiting for the card.
    AsRecorded,
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
}

impl Timeline {
    fn add(&mut self, at: u64, bytes: u64, latency: u64) {
        while at / self.width >= 256 {
            self.width *= 2;
            let pairs = self.all.chunks(2).map(|c| {
                let b = c.get(1).copied().unwrap_or_default();
                Stretch { requests: c[0].requests + b.requests, bytes: c[0].bytes + b.bytes, worst: c[0].worst.max(b.worst) }
            });
            self.all = pairs.collect();
        }
        let i = (at / self.width) as usize;
        if self.all.len() <= i {
            self.all.resize(i + 1, Stretch::default());
        }
        let s = &mut self.all[i];
        (s.requests, s.bytes, s.worst) = (s.requests + 1, s.bytes + bytes, s.worst.max(latency));
    }
}

/// Runs requests through a card, beginning at `now` (ns). Places and lengths are widened to whole sectors.
pub fn run(card: &mut Card, now: u64, ios: impl IntoIterator<Item = Io>, pace: Pace, fit: Fit) -> Result<Outcome, Fault> {
    let before = card.counters().clone();
    let (capacity, sector) = (card.capacity(), card.sector());
    let mut histograms = [Histogram::default(), Histogram::default(), Histogram::default()];
    let mut timeline = Timeline { width: 1_000_000, all: Vec::new() };
    let (mut served, mut folded, mut last) = (0, 0, now);
    for io in ios {
        let mut at = io.at / sector * sector;
        let mut len = (io.at - at).saturating_add(io.len).div_ceil(sector).saturating_mul(sector);
        if fit == Fit::Fold && at.checked_add(len).is_none_or(|end| end > capacity) {
            len = len.min(capacity);
            at = at % capacity / sector * sector;
            at = at.min(capacity - len);
            folded += 1;
        }
        let arrival = if pace == Pace::AsRecorded { now + io.time } else { last };
        let c = card.submit(arrival, Request { op: io.op, at, len, data: crate::Data::Other })?;
        let latency = c.done - arrival;
        let class = match io.op {
            Op::Read => 0,
            Op::Write => 1,
            _ => 2,
        };
        histograms[class].add(latency);
        timeline.add(c.done - now, if class < 2 { len } else { 0 }, latency);
        last = c.done;
        served += 1;
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
                        return Err(format!("'{w}' in '{text}' is neither random, sequential, mixed, read, write nor a size in sectors"));
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
