//! Recording: streams that come in at a rate, whatever the card does. How far the card falls behind is the buffer that a device needs.

use super::measure::Tables;
use crate::device::{Access, Device, DeviceError, Fill, Op, Result};
use crate::host::class::FAT_PIECE;
use crate::infer::stalls::poisson;
use crate::units::{KIB, MIB, Nanos};
use crate::workload::purpose::{Purpose, Writes};
use serde::Serialize;
use std::ops::Range;

/// Seconds of recording between two updates of the tables, by each stream.
const TABLES_EVERY_S: f64 = 1.0;

/// What is recorded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// All streams together.
    pub bytes_per_second: f64,
    pub streams: u32,
    /// Bytes of one request.
    pub piece: u64,
    /// Most seconds of recording.
    pub seconds: f64,
    /// The card is read at that rate instead.
    pub reads: bool,
}

impl Plan {
    /// The recording of a purpose; none where it has no rate.
    pub fn of(p: &Purpose, seconds: f64) -> Option<Plan> {
        let (rate, reads) = if p.sequential_write > 0.0 { (p.sequential_write, false) } else { (p.sequential_read, true) };
        // What scatters its writes is judged by random accesses.
        if rate <= 0.0 || p.writes == Writes::Scattered {
            return None;
        }
        // A tenth of a second of one stream, in requests as hosts send them.
        let each = rate / f64::from(p.streams) / 10.0;
        let piece = (each.max(1.0).log2().round().exp2() as u64).clamp(4 * KIB, 512 * KIB);
        Some(Plan { bytes_per_second: rate, streams: p.streams, piece, seconds, reads })
    }
}

/// What a recording was like.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Recording {
    /// Bytes of one request.
    pub piece: u64,
    pub bytes: u64,
    /// Seconds of the recording that these bytes are.
    pub seconds: f64,
    /// Seconds of the card's work.
    pub busy: f64,
    /// Written without pauses, faster than it comes in.
    pub hurried: bool,
    /// The longest request, or update of the tables, in ms.
    pub longest_ms: f64,
    /// Bytes that were ready and not yet on the card, at the most.
    pub buffer: u64,
    /// For each time the card fell behind: the largest backlog until it had caught up.
    #[serde(skip)]
    pub backlogs: Vec<f64>,
    /// Rates over tenths of the recording, in bytes a second of the card's work.
    pub rates: Vec<f64>,
}

/// How often a buffer overflows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Drops {
    /// Bytes of the buffer.
    pub buffer: u64,
    /// Overflows seen.
    pub seen: u64,
    /// Hours that were recorded.
    pub hours: f64,
    /// Chance that an hour has one or more: lower and upper bound at 95 %.
    pub chance_per_hour: [f64; 2],
}

impl Recording {
    /// With a buffer of so many bytes. Overflows are taken to come at random times.
    pub fn drops(&self, buffer: u64) -> Drops {
        let seen = self.backlogs.iter().filter(|b| **b > buffer as f64).count() as u64;
        let hours = self.seconds / 3600.0;
        let chance = |events: f64| if hours > 0.0 { 1.0 - (-events / hours).exp() } else { 1.0 };
        Drops { buffer, seen, hours, chance_per_hour: poisson(seen).map(chance) }
    }
}

/// The queue of what comes in: takes service times one by one.
struct Queue {
    rate: f64,
    /// When the card is done with what it has, in seconds of the recording.
    done: f64,
    written: f64,
    worst: f64,
    /// The largest backlog since it was last caught up.
    episode: f64,
    backlogs: Vec<f64>,
}

impl Queue {
    /// `bytes` are written in `service` seconds; 0 bytes are an update of the tables.
    fn take(&mut self, bytes: f64, service: f64) {
        // A piece is sent once it is whole.
        let ready = (self.written + bytes) / self.rate;
        if self.done <= ready && self.episode > 0.0 {
            self.backlogs.push(self.episode);
            self.episode = 0.0;
        }
        self.done = self.done.max(ready) + service;
        let backlog = self.done * self.rate - self.written;
        self.worst = self.worst.max(backlog);
        self.episode = self.episode.max(backlog);
        self.written += bytes;
    }
}

/// Records. `hurried`: without pauses, so that a short time shows much of it. `late` is asked with the share that is recorded. Returns
/// what ended it early, too.
pub fn record(
    device: &mut dyn Device,
    plan: &Plan,
    area: &Range<u64>,
    tables: Tables,
    hurried: bool,
    seed: u64,
    late: &mut dyn FnMut(Nanos, f64) -> bool,
) -> (Recording, Result<()>) {
    let mut out = Recording { piece: plan.piece, hurried, ..Recording::default() };
    let mut queue = Queue { rate: plan.bytes_per_second, done: 0.0, written: 0.0, worst: 0.0, episode: 0.0, backlogs: vec![] };
    let streams = u64::from(plan.streams.max(1));
    // Each stream has an area of its own, on boundaries that suit cards.
    let each = (area.end - area.start) / streams / (4 * MIB) * (4 * MIB);
    let each = if each == 0 { (area.end - area.start) / streams / plan.piece * plan.piece } else { each };
    let mut work: Vec<(f64, f64)> = vec![];
    let mut go = || -> Result<()> {
        if each < plan.piece {
            return Ok(());
        }
        let began = device.now();
        let (mut n, mut updated) = (0u64, 0.0);
        let total = (plan.bytes_per_second * plan.seconds) as u64;
        while n * plan.piece < total && !late(device.now(), (n * plan.piece) as f64 / total as f64) {
            let at = area.start + n % streams * each + n / streams * plan.piece % each;
            if at + plan.piece > area.end {
                break;
            }
            if !hurried {
                let due = began + Nanos::from_secs_f64((n + 1) as f64 * plan.piece as f64 / plan.bytes_per_second);
                let now = device.now();
                if due > now {
                    device.idle(due - now);
                }
            }
            let op = if plan.reads { Op::Read } else { Op::Write(Fill::Random(seed.wrapping_add(n))) };
            if !plan.reads {
                device.keep_old(&[(at, plan.piece)])?;
            }
            let took = device.access(Access { op, at, len: plan.piece })?.took.secs();
            queue.take(plan.piece as f64, took);
            work.push((plan.piece as f64, took));
            n += 1;
            let seconds = queue.written / plan.bytes_per_second;
            if !plan.reads && seconds - updated >= TABLES_EVERY_S {
                updated = seconds;
                for _ in 0..streams {
                    let sector = device.geometry().sector.max(512);
                    for (at, len) in [(tables.fat, FAT_PIECE), (tables.copy, FAT_PIECE), (tables.directory, sector)] {
                        device.keep_old(&[(at, len)])?;
                        let took = device.access(Access { op: Op::Write(Fill::Random(n)), at, len })?.took.secs();
                        queue.take(0.0, took);
                        work.push((0.0, took));
                    }
                }
            }
        }
        Ok(())
    };
    let ended = go();
    if queue.episode > 0.0 {
        queue.backlogs.push(queue.episode);
    }
    out.bytes = queue.written as u64;
    out.seconds = queue.written / plan.bytes_per_second;
    out.busy = work.iter().map(|w| w.1).sum();
    out.longest_ms = work.iter().map(|w| w.1).fold(0.0, f64::max) * 1e3;
    out.buffer = queue.worst.ceil() as u64;
    out.rates = work
        .chunks(work.len().div_ceil(10).max(1))
        .map(|c| c.iter().map(|w| w.0).sum::<f64>() / c.iter().map(|w| w.1).sum::<f64>().max(1e-12))
        .collect();
    out.backlogs = queue.backlogs;
    let ended = match ended {
        Err(DeviceError::Late) => Ok(()),
        other => other,
    };
    (out, ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(rate: f64) -> Queue {
        Queue { rate, done: 0.0, written: 0.0, worst: 0.0, episode: 0.0, backlogs: vec![] }
    }

    #[test]
    fn a_planted_stall_needs_the_buffer_that_arithmetic_says() {
        // 1 MB/s in pieces of 10 kB: one each 10 ms. The card takes 2 ms, and once 200 ms.
        for at in [5, 50, 99] {
            let mut q = queue(1e6);
            (0..200).for_each(|i| q.take(1e4, if i == at { 0.2 } else { 0.002 }));
            // What comes in during the stall, and the piece itself.
            assert!((q.worst - (0.2 * 1e6 + 1e4)).abs() < 1.0, "{}", q.worst);
            let r = Recording { seconds: 2.0, backlogs: q.backlogs.clone(), ..Recording::default() };
            assert_eq!((r.drops(209_000).seen, r.drops(211_000).seen), (1, 0));
        }
    }

    #[test]
    fn a_card_slower_than_the_stream_falls_behind_for_good() {
        let mut q = queue(1e6);
        (0..1000).for_each(|_| q.take(1e4, 0.011));
        // 1 ms a piece, 1000 pieces: 1 s behind, and the piece under way.
        assert!((q.worst - 1.01e6).abs() < 2e4, "{}", q.worst);
        assert!(q.backlogs.is_empty());
    }

    #[test]
    fn chances_have_the_bounds_of_poisson() {
        let r = |seconds: f64, n: usize| Recording { seconds, backlogs: vec![10.0; n], ..Recording::default() };
        let none = r(3600.0, 0).drops(5);
        assert!(none.chance_per_hour[0] == 0.0 && (none.chance_per_hour[1] - 0.975).abs() < 0.003, "{none:?}");
        let ten = r(36_000.0, 1).drops(5);
        assert!(ten.chance_per_hour[0] < 0.05 && (0.35..0.5).contains(&ten.chance_per_hour[1]), "{ten:?}");
    }
}
