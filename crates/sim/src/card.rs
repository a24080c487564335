//! The card: one command at a time on a virtual clock. [`Card::submit`] is the only door through which time passes.

use crate::content::{Content, real};
use crate::counters::Counters;
use crate::events::Events;
use crate::ftl::{Ftl, WriteCost};
use crate::host::HostCost;
use crate::model::{Beyond, Model, Unwritten};
use crate::nand::{Grid, ReadCache, ReadCost, SHIFT};

/// What a host can ask of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Read bytes.
    Read,
    /// Write bytes.
    Write,
    /// Say that bytes are no longer needed.
    Discard,
    /// Make everything acknowledged so far durable.
    Flush,
}

/// As much of the data as a shortcut inside a card may look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// All 0x00.
    Zeros,
    /// All 0xff.
    Ones,
    /// Anything else.
    Other,
}

/// One command of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What to do.
    pub op: Op,
    /// First byte; a multiple of the sector.
    pub at: u64,
    /// Bytes; a multiple of the sector, 0 only for a flush.
    pub len: u64,
    /// What is written.
    pub data: Data,
}

impl Request {
    /// Reads `len` bytes at `at`.
    pub fn read(at: u64, len: u64) -> Request {
        Request { op: Op::Read, at, len, data: Data::Other }
    }

    /// Writes `len` bytes of no special kind at `at`.
    pub fn write(at: u64, len: u64) -> Request {
        Request { op: Op::Write, at, len, data: Data::Other }
    }
}

/// When the card began with a request and when it was done, in ns of the host's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// ns; at or after the time of submission.
    pub start: u64,
    /// ns; the host sees `done - start`.
    pub done: u64,
}

/// Why a request was not served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The medium has a bad place.
    #[error("{op:?} failed at byte {at} ({len} bytes)")]
    Io {
        /// What was asked.
        op: Op,
        /// First bad byte.
        at: u64,
        /// Bad bytes.
        len: u64,
        /// ns at which the error came back.
        done: u64,
    },
    /// The card no longer answers.
    #[error("the card has disappeared")]
    Gone,
    /// The card takes no more writes.
    #[error("the card has turned read-only")]
    ReadOnlyMedium,
    /// The request leaves the card; nothing was done.
    #[error("{len} bytes at {at} leave the card of {capacity} bytes")]
    OutOfRange {
        /// First byte asked for.
        at: u64,
        /// Bytes asked for.
        len: u64,
        /// Bytes of the card.
        capacity: u64,
    },
    /// Position or length is off the sector grid, or the length is 0; nothing was done.
    #[error("{len} bytes at {at} are not whole sectors of {sector} bytes")]
    Misaligned {
        /// First byte asked for.
        at: u64,
        /// Bytes asked for.
        len: u64,
        /// Bytes of a sector.
        sector: u64,
    },
    /// Bytes were asked of a card that keeps none.
    #[error("this card keeps no content")]
    NoContent,
}

/// A flash card in virtual time.
#[derive(Clone, Debug)]
pub struct Card {
    busy_until: u64,
    host: HostCost,
    grid: Grid,
    read: ReadCost,
    write: WriteCost,
    cache: Option<ReadCache>,
    ftl: Ftl,
    events: Option<Box<Events>>,
    counters: Counters,
    content: Option<Content>,
    flat_unwritten: Option<u64>,
    discard: u64,
    flush: u64,
    capacity: u64,
    sector: u64,
    model: Box<Model>,
}

impl Card {
    /// A card of this model; `seed` rules everything that is left to chance.
    pub fn new(model: &Model, seed: u64) -> Card {
        let grid = Grid::new(model);
        Card {
            busy_until: 0,
            host: HostCost::new(model, seed),
            read: ReadCost::new(model),
            write: WriteCost::new(model),
            cache: ReadCache::new(model),
            ftl: Ftl::new(model, &grid, seed),
            events: Events::new(model, seed),
            counters: Counters { unit_bytes: model.nand.write_unit, capacity: model.card.capacity, ..Counters::default() },
            content: None,
            flat_unwritten: (model.nand.unwritten == Unwritten::Flat).then_some(model.nand.unwritten_read),
            discard: model.card.discard,
            flush: model.card.flush,
            capacity: model.card.capacity,
            sector: model.card.sector,
            grid,
            model: Box::new(model.clone()),
        }
    }

    /// The same card, keeping bytes.
    pub fn with_content(mut self) -> Card {
        self.content = Some(Content::default());
        self
    }

    /// Bytes the host may address.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Bytes of the smallest access.
    pub fn sector(&self) -> u64 {
        self.sector
    }

    /// What the card did so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The model the card was made from.
    pub fn model(&self) -> &Model {
        &self.model
    }

    fn check(&self, at: u64, len: u64) -> Result<(), Fault> {
        if (at | len) & (self.sector - 1) != 0 {
            return Err(Fault::Misaligned { at, len, sector: self.sector });
        }
        if at > self.capacity || len > self.capacity - at {
            return Err(Fault::OutOfRange { at, len, capacity: self.capacity });
        }
        Ok(())
    }

    /// Serves one request that arrives at `now` (ns). The card serves one at a time: a request that comes while it is
    /// busy begins when it is free. A refused request (range, grid) changes nothing.
    #[inline]
    pub fn submit(&mut self, now: u64, req: Request) -> Result<Completion, Fault> {
        self.check(req.at, req.len)?;
        if req.len == 0 && req.op != Op::Flush {
            return Err(Fault::Misaligned { at: req.at, len: 0, sector: self.sector });
        }
        let start = now.max(self.busy_until);
        if let Some(events) = &mut self.events {
            let done = start + self.host.command;
            events.fault(req.op, req.at, req.len, done).inspect_err(|_| self.busy_until = done)?;
        }
        let mut ns = match req.op {
            Op::Read | Op::Write if req.len <= self.host.max_request => self.command(req.op, req.at, req.len),
            Op::Read | Op::Write => self.split(req),
            Op::Discard => {
                self.counters.discards += 1;
                let (a, b) = self.places(req.at, req.len);
                self.ftl.discard(&self.grid, a, b);
                self.forget(req.at, req.len);
                self.host.command + self.discard
            }
            Op::Flush => {
                self.counters.flushes += 1;
                self.host.command + self.flush + self.write.settle(&mut self.counters)
            }
        };
        match req.op {
            Op::Read => {
                self.counters.reads += 1;
                self.counters.bytes_read += req.len;
            }
            Op::Write => {
                self.counters.writes += 1;
                self.counters.bytes_written += req.len;
            }
            _ => {}
        }
        if let Some(events) = &mut self.events {
            let (pause, n) = events.stall(req.op, req.len);
            ns += pause;
            self.counters.stalls += n;
        }
        self.busy_until = start + ns;
        Ok(Completion { start, done: start + ns })
    }

    /// A reader with a limit cuts a request in several commands, each of which costs what a command costs.
    fn split(&mut self, req: Request) -> u64 {
        let (mut at, end, mut ns) = (req.at, req.at + req.len, 0);
        while at < end {
            let n = self.host.max_request.min(end - at);
            ns += self.command(req.op, at, n) + if at > req.at { self.host.split } else { 0 };
            at += n;
        }
        ns
    }

    #[inline]
    fn places(&self, at: u64, len: u64) -> (u64, u64) {
        let a = self.grid.place(at >> SHIFT);
        (a, a + (len >> SHIFT))
    }

    /// ns of one command of the bus.
    #[inline]
    fn command(&mut self, op: Op, at: u64, len: u64) -> u64 {
        let (a, b) = self.places(at, len);
        let ns = self.host.command
            + match op {
                Op::Read => self.read(a, b),
                _ => {
                    if let Some(cache) = &mut self.cache {
                        cache.forget(a, b);
                    }
                    self.ftl.write(&self.grid, &mut self.write, &mut self.counters, a, b) + self.read.wire(len)
                }
            };
        if self.host.noisy { self.host.waver(ns) } else { ns }
    }

    #[inline]
    fn read(&mut self, a: u64, b: u64) -> u64 {
        let settle = self.write.settle(&mut self.counters);
        if let Some(flat) = self.flat_unwritten
            && !self.ftl.written(&self.grid, a, b)
        {
            return settle + flat + self.read.wire((b - a) << SHIFT);
        }
        let (from, to) = match &mut self.cache {
            None => (a, b),
            Some(cache) => match cache.miss(&self.grid, a, b) {
                None => return settle + self.read.wire((b - a) << SHIFT),
                Some(part) => part,
            },
        };
        let (ns, units) = self.read.of(&self.grid, from, to);
        self.counters.units_sensed += units;
        settle + ns + self.read.wire((from - a) << SHIFT)
    }

    fn forget(&mut self, at: u64, len: u64) {
        let (real_capacity, beyond) = (self.model.card.real_capacity, self.model.card.beyond);
        if let Some(content) = &mut self.content {
            for (place, n) in real(at, len, real_capacity, beyond) {
                if let Some(place) = place {
                    content.clear(place, n);
                }
            }
        }
    }

    /// The bytes at `at`, without any time passing. What a counterfeit card does not have reads as zeros.
    pub fn load(&mut self, at: u64, into: &mut [u8]) -> Result<(), Fault> {
        self.range(at, into.len() as u64)?;
        let (real_capacity, beyond) = (self.model.card.real_capacity, self.model.card.beyond);
        let content = self.content.as_ref().ok_or(Fault::NoContent)?;
        let mut done = 0;
        for (place, n) in real(at, into.len() as u64, real_capacity, beyond) {
            let part = &mut into[done..done + n as usize];
            match place {
                Some(place) => content.load(place, part),
                None if beyond == Beyond::Error => return Err(Fault::Io { op: Op::Read, at: at + done as u64, len: n, done: 0 }),
                None => part.fill(0),
            }
            done += n as usize;
        }
        Ok(())
    }

    /// Puts bytes at `at`, without any time passing and without changing what later requests cost.
    pub fn store(&mut self, at: u64, from: &[u8]) -> Result<(), Fault> {
        self.range(at, from.len() as u64)?;
        let (real_capacity, beyond) = (self.model.card.real_capacity, self.model.card.beyond);
        let content = self.content.as_mut().ok_or(Fault::NoContent)?;
        let mut done = 0;
        for (place, n) in real(at, from.len() as u64, real_capacity, beyond) {
            match place {
                Some(place) => content.store(place, &from[done..done + n as usize]),
                None if beyond == Beyond::Error => return Err(Fault::Io { op: Op::Write, at: at + done as u64, len: n, done: 0 }),
                None => {}
            }
            done += n as usize;
        }
        Ok(())
    }

    fn range(&self, at: u64, len: u64) -> Result<(), Fault> {
        if at > self.capacity || len > self.capacity - at {
            return Err(Fault::OutOfRange { at, len, capacity: self.capacity });
        }
        Ok(())
    }
}
