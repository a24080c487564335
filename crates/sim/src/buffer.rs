//! What lies before the flash: the SLC cache, the volatile write cache, work left undone, streams of writes, and the heat of the card.

use crate::model::{Model, SlcFull, Throttle};
use crate::units::ps_per_byte;
use std::collections::VecDeque;

/// What the SLC cache did with a write: ns waited for room, and units programmed in so many ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub waited: u64,
    pub units: u64,
    pub programmed: u64,
}

/// Flash used with one bit a cell: fast to write, folded to its place later.
#[derive(Clone, Debug)]
pub(crate) struct SlcCache {
    size: u64,
    /// What is left of it on a full card, where it shrinks.
    least: Option<u64>,
    unit: u64,
    program: u64,
    fold: u64,
    direct: bool,
    background: bool,
    idle: u64,
    /// Bytes in it, and ns that folding them will take.
    bytes: u64,
    debt: u64,
}

impl SlcCache {
    pub fn new(m: &Model) -> Option<SlcCache> {
        let s = &m.slc;
        (s.size > 0).then(|| SlcCache {
            size: s.size,
            least: s.dynamic.then_some(s.least),
            unit: m.nand.write_unit,
            program: s.program,
            fold: s.fold,
            direct: s.full == SlcFull::Direct,
            background: s.background,
            idle: s.idle,
            bytes: 0,
            debt: 0,
        })
    }

    /// A write of `len` bytes that would take `flash` ns at its place; `written` of `all` blocks hold data. None where it goes there.
    pub fn take(&mut self, len: u64, flash: u64, written: u64, all: u64) -> Option<Taken> {
        let size = self.least.map_or(self.size, |least| {
            least + (u128::from(self.size - least) * u128::from(all - written.min(all)) / u128::from(all.max(1))) as u64
        });
        let units = len.div_ceil(self.unit);
        let mut waited = 0;
        if self.bytes + len > size {
            if self.direct || len > size {
                return None;
            }
            let part = (u128::from(self.debt) * u128::from(self.bytes + len - size) / u128::from(self.bytes.max(1))) as u64;
            waited = part.min(self.debt);
            self.debt -= waited;
            self.bytes = size - len;
        }
        self.bytes += len;
        self.debt += flash + units * self.fold;
        Some(Taken { waited, units, programmed: units * self.program })
    }

    /// Folds for `ns` of rest.
    pub fn rest(&mut self, ns: u64) {
        if !self.background || ns <= self.idle || self.debt == 0 {
            return;
        }
        let done = (ns - self.idle).min(self.debt);
        self.bytes -= (u128::from(self.bytes) * u128::from(done) / u128::from(self.debt)) as u64;
        self.debt -= done;
        if self.debt == 0 {
            self.bytes = 0;
        }
    }
}

/// A write that was acknowledged and never reached the flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Lost {
    /// Number of the write, counted from 1 as [`crate::Counters::writes`] does.
    pub write: u64,
    /// First byte lost.
    pub at: u64,
    /// Bytes lost.
    pub len: u64,
}

/// A cache in the controller's memory that acknowledges writes before they are on the flash.
#[derive(Clone, Debug)]
pub(crate) struct WriteCache {
    size: u64,
    bytes: u64,
    /// Oldest first: the write, and ns it still takes.
    queue: VecDeque<(Lost, u64)>,
}

impl WriteCache {
    pub fn new(m: &Model) -> Option<WriteCache> {
        (m.card.cache > 0).then(|| WriteCache { size: m.card.cache, bytes: 0, queue: VecDeque::new() })
    }

    /// Takes a write whose flash work is `flash` ns; returns ns the host has to wait for earlier ones, and whether it was taken: one
    /// that is larger than the cache is done at once.
    pub fn take(&mut self, write: Lost, flash: u64) -> (u64, bool) {
        let mut ns = 0;
        while self.bytes + write.len > self.size {
            let Some((old, left)) = self.queue.pop_front() else { return (ns, false) };
            self.bytes -= old.len;
            ns += left;
        }
        self.bytes += write.len;
        self.queue.push_back((write, flash));
        (ns, true)
    }

    /// Works for `ns` of rest.
    pub fn rest(&mut self, mut ns: u64) {
        while let Some((write, left)) = self.queue.front_mut() {
            if *left > ns {
                *left -= ns;
                return;
            }
            ns -= *left;
            self.bytes -= write.len;
            self.queue.pop_front();
        }
    }

    /// A read comes while it is being emptied: ns, `most` at most, until the flash has a moment for it; so much more is written then.
    pub fn make_way(&mut self, most: u64) -> u64 {
        let ns = self.queue.front().map_or(0, |(_, left)| (*left).min(most));
        self.rest(ns);
        ns
    }

    /// ns to empty it.
    pub fn flush(&mut self) -> u64 {
        self.bytes = 0;
        self.queue.drain(..).map(|(_, left)| left).sum()
    }

    /// The number of the oldest write still in it.
    pub fn oldest(&self) -> Option<u64> {
        self.queue.front().map(|(w, _)| w.write)
    }

    /// The power is gone: what was in it is lost.
    pub fn lose(&mut self) -> Vec<Lost> {
        self.bytes = 0;
        self.queue.drain(..).map(|(w, _)| w).collect()
    }
}

/// Work left undone when writes were acknowledged: a card may not be busy for long after one (250 ms by the SD standard, 500 ms for SDXC), and
/// does what takes longer by and by.
#[derive(Clone, Debug)]
pub(crate) struct Behind {
    most: u64,
    left: u64,
    at: u64,
}

impl Behind {
    pub fn new(m: &Model) -> Option<Behind> {
        (m.card.behind > 0).then_some(Behind { most: m.card.behind, left: 0, at: 0 })
    }

    /// Goes on with it until `start`; ns until it is done, where the host waits for all of it.
    pub fn rest(&mut self, start: u64, all: bool) -> u64 {
        self.left = self.left.saturating_sub(start - self.at.min(start));
        self.at = start;
        if all { std::mem::take(&mut self.left) } else { 0 }
    }

    /// Work for a write, in ns; returns what the host has to wait for.
    pub fn take(&mut self, ns: u64) -> u64 {
        self.left += ns;
        let wait = self.left.saturating_sub(self.most);
        self.left -= wait;
        wait
    }
}

/// Streams of writes, each going on where its last one ended.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    free: u64,
    cost: u64,
    /// ps a byte.
    byte: u64,
    memory: u64,
    table: usize,
    writes: u64,
    /// Where each ended, and by which write; the oldest first.
    ends: VecDeque<(u64, u64)>,
}

impl Streams {
    pub fn new(m: &Model) -> Option<Streams> {
        let c = &m.card;
        let memory = if c.stream_memory == 0 { 64 } else { c.stream_memory };
        let table = if c.stream_table == 0 { usize::MAX } else { c.stream_table as usize };
        (c.streams > 0).then(|| Streams {
            free: c.streams,
            cost: c.stream_cost,
            byte: ps_per_byte(c.stream_rate),
            memory,
            table,
            writes: 0,
            ends: VecDeque::new(),
        })
    }

    /// A write of so many units, which moves so many bytes inside the card: streams beyond those that are free, ns, and ps of a byte.
    pub fn take(&mut self, at: u64, len: u64, units: u64, bytes: u64) -> (u64, u64, u64) {
        self.writes += 1;
        if let Some(k) = self.ends.iter().rposition(|e| e.0 == at) {
            self.ends.remove(k);
        }
        self.ends.push_back((at + len, self.writes));
        while self.ends.len() > self.table || self.ends.front().is_some_and(|e| e.1 + self.memory <= self.writes) {
            self.ends.pop_front();
        }
        let n = (self.ends.len() as u64).saturating_sub(self.free);
        (n, n * units * self.cost + (n * bytes).saturating_mul(self.byte) / 1000, self.byte)
    }
}

/// How hot a card is, in bytes moved that have not cooled off.
#[derive(Clone, Debug)]
pub(crate) struct Heat {
    steps: Vec<Throttle>,
    /// For each step.
    heat: Vec<u64>,
    last: u64,
}

impl Heat {
    pub fn new(m: &Model) -> Option<Heat> {
        (!m.throttle.is_empty()).then(|| Heat { steps: m.throttle.clone(), heat: vec![0; m.throttle.len()], last: 0 })
    }

    /// ns that a command of `ns` takes when it begins at `now` and moves `len` bytes.
    pub fn slow(&mut self, now: u64, len: u64, ns: u64) -> u64 {
        let mut percent = 100;
        for (step, heat) in self.steps.iter().zip(&mut self.heat) {
            let cooled = u128::from(now.saturating_sub(self.last)) * u128::from(step.cool) / 1_000_000_000;
            *heat = heat.saturating_sub(cooled.min(u128::from(u64::MAX)) as u64);
            if *heat > step.heat {
                percent = percent.max(step.percent);
            }
            *heat += len;
        }
        self.last = now;
        (u128::from(ns) * u128::from(percent) / 100) as u64
    }
}
