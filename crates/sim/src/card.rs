//! The card: one command at a time on a virtual clock. [`Card::submit`] is the only door through which time passes.

use crate::buffer::{Heat, Lost, SlcCache, WriteCache};
use crate::content::{Content, real};
use crate::counters::Counters;
use crate::events::Events;
use crate::ftl::{Ftl, MapCache, WriteCost};
use crate::host::HostCost;
use crate::model::{Beyond, GcWhen, Model, Shortcut, Transfer, Unwritten};
use crate::nand::{Grid, ReadCache, ReadCost, SHIFT};
use crate::request::{Completion, Data, Fault, Op, Request};

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
    /// ns after the stop command of an open-ended write.
    stop: u64,
    extras: Option<Box<Extras>>,
    model: Box<Model>,
}

/// What only some cards have; the usual card does not pay for asking.
#[derive(Clone, Debug)]
struct Extras {
    slc: Option<SlcCache>,
    cache: Option<WriteCache>,
    heat: Option<Heat>,
    map: Option<MapCache>,
    shortcut: Shortcut,
    /// ns to rewrite an erase block that was read too often; 0 = reads are not counted.
    refresh: u64,
}

impl Extras {
    fn new(m: &Model) -> Option<Box<Extras>> {
        let n = &m.nand;
        let refresh = if m.wear.read_disturb > 0 { n.erase_block / n.write_unit * n.copy + n.erase } else { 0 };
        let e = Extras {
            slc: SlcCache::new(m),
            cache: WriteCache::new(m),
            heat: Heat::new(m),
            map: MapCache::new(m),
            shortcut: m.card.shortcut,
            refresh,
        };
        let any = e.slc.is_some() || e.cache.is_some() || e.heat.is_some() || e.map.is_some();
        let rests = m.ftl.page.when != GcWhen::Foreground;
        (any || rests || e.refresh > 0 || e.shortcut != Shortcut::None || m.wear != Default::default()).then(|| Box::new(e))
    }
}

/// ns of one command, by where they are spent.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    command: u64,
    wire: u64,
    flash: u64,
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
            stop: if model.host.transfer == Transfer::OpenEnded { model.card.stop } else { 0 },
            extras: Extras::new(model),
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

    /// Erasures of each physical block, where the model says something about wear.
    pub fn erasures(&self) -> Option<&[u32]> {
        self.ftl.wear().map(|w| &w.erases[..])
    }

    /// Blocks that have given out, where the model says something about wear.
    pub fn dead_blocks(&self) -> u64 {
        self.ftl.wear().map_or(0, |w| w.dead)
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
        let mut ns = 0;
        if self.extras.is_some() {
            ns += self.rest(start, req.op)?;
        }
        ns += match req.op {
            Op::Read | Op::Write if req.len <= self.host.max_request => self.command(&req, req.at, req.len),
            Op::Read | Op::Write => self.split(req),
            Op::Discard => {
                self.counters.discards += 1;
                let (a, b) = self.places(req.at, req.len);
                self.ftl.discard(&self.grid, a, b);
                let pending = self.drain();
                self.forget(req.at, req.len);
                self.host.command + self.discard + pending
            }
            Op::Flush => {
                self.counters.flushes += 1;
                self.host.command + self.flush + self.drain()
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
        if let Some(heat) = self.extras.as_mut().and_then(|e| e.heat.as_mut()) {
            ns = heat.slow(start, req.len, ns);
        }
        if self.content.is_some() {
            self.keep();
        }
        self.busy_until = start + ns;
        Ok(Completion { start, done: start + ns })
    }

    /// What the card did by itself since it was last busy; ns by which that overruns. A worn out card takes no more writes.
    fn rest(&mut self, start: u64, op: Op) -> Result<u64, Fault> {
        if op == Op::Write && self.ftl.wear().is_some_and(|w| w.worn_out()) {
            return Err(Fault::ReadOnlyMedium);
        }
        let ns = start - self.busy_until.min(start);
        let Some(extras) = &mut self.extras else { return Ok(0) };
        if let Some(cache) = &mut extras.cache {
            cache.rest(ns);
        }
        if let Some(slc) = &mut extras.slc {
            slc.rest(ns);
        }
        self.keep();
        Ok(self.ftl.rest(&self.write, &mut self.counters, ns))
    }

    /// ns to bring everything acknowledged to the flash.
    fn drain(&mut self) -> u64 {
        let cached = self.extras.as_mut().and_then(|e| e.cache.as_mut()).map_or(0, |c| c.flush());
        let ns = cached + self.write.settle(&mut self.counters);
        self.keep();
        ns
    }

    /// Old bytes are kept only as long as a power cut could bring them back.
    fn keep(&mut self) {
        let Some(content) = &mut self.content else { return };
        let cached = self.extras.as_ref().and_then(|e| e.cache.as_ref()).and_then(|c| c.oldest());
        content.keep_from(cached.unwrap_or(u64::MAX).min(self.write.oldest().unwrap_or(u64::MAX)));
    }

    /// The power goes: what was acknowledged and is not on the flash is lost. The card is as if switched on again.
    pub fn power_cut(&mut self) -> Vec<Lost> {
        let mut lost = self.extras.as_mut().and_then(|e| e.cache.as_mut()).map_or(Vec::new(), |c| c.lose());
        lost.extend(self.write.lose().map(|(write, a, b)| {
            let at = (self.grid.sector(a)) << SHIFT;
            Lost { write, at, len: (b - a) << SHIFT }
        }));
        if let Some(content) = &mut self.content {
            content.revert(&lost, &self.model.card);
        }
        if let Some(cache) = &mut self.cache {
            cache.forget(0, u64::MAX);
        }
        lost
    }

    /// A reader with a limit cuts a request in several commands, each of which costs what a command costs.
    fn split(&mut self, req: Request) -> u64 {
        let (mut at, end, mut ns) = (req.at, req.at + req.len, 0);
        while at < end {
            let n = self.host.max_request.min(end - at);
            ns += self.command(&req, at, n) + if at > req.at { self.host.split } else { 0 };
            at += n;
        }
        ns
    }

    #[inline]
    fn places(&self, at: u64, len: u64) -> (u64, u64) {
        let a = self.grid.place(at >> SHIFT);
        (a, a + (len >> SHIFT))
    }

    /// ns of one command of the bus, on its own.
    #[inline]
    fn command(&mut self, req: &Request, at: u64, len: u64) -> u64 {
        let p = self.parts(req, at, len);
        let ns = p.command + p.wire + p.flash;
        if self.host.noisy { self.host.waver(ns) } else { ns }
    }

    #[inline]
    fn parts(&mut self, req: &Request, at: u64, len: u64) -> Parts {
        let (a, b) = self.places(at, len);
        if req.op == Op::Read {
            let mut flash = self.read(a, b);
            if self.extras.is_some() {
                flash += self.read_extras(at, len, a, b);
            }
            return Parts { command: self.host.command, wire: 0, flash };
        }
        if let Some(cache) = &mut self.cache {
            cache.forget(a, b);
        }
        let wire = self.read.wire(len) + self.stop;
        let flash = if self.extras.is_some() {
            self.write_extras(req, at, len, a, b)
        } else {
            self.ftl.write(&self.grid, &mut self.write, &mut self.counters, a, b)
        };
        Parts { command: self.host.command, wire, flash }
    }

    fn read_extras(&mut self, at: u64, len: u64, a: u64, b: u64) -> u64 {
        let Some(extras) = &mut self.extras else { return 0 };
        let mut ns = 0;
        if let Some(map) = &mut extras.map {
            ns += map.fetch(at >> SHIFT, (at + len) >> SHIFT);
        }
        if extras.refresh > 0 {
            let n = self.ftl.disturb(&self.grid, a, b);
            self.counters.refreshes += n;
            ns += n * extras.refresh;
        }
        ns
    }

    fn write_extras(&mut self, req: &Request, at: u64, len: u64, a: u64, b: u64) -> u64 {
        let short = self.extras.as_ref().map_or(Shortcut::None, |e| e.shortcut);
        let flat = match req.data {
            Data::Zeros => matches!(short, Shortcut::Zeros | Shortcut::Both),
            Data::Ones => matches!(short, Shortcut::Ones | Shortcut::Both),
            Data::Other => false,
        };
        if flat {
            // Whole units of one value are only noted in the map.
            self.ftl.discard(&self.grid, a, b);
            return 0;
        }
        let mut flash = self.ftl.write(&self.grid, &mut self.write, &mut self.counters, a, b);
        let Some(extras) = &mut self.extras else { return flash };
        let fetch = extras.map.as_mut().map_or(0, |m| m.fetch(at >> SHIFT, (at + len) >> SHIFT));
        if let Some(slc) = &mut extras.slc {
            let (written, all) = self.ftl.share();
            flash = slc.take(len, flash, written, all);
        }
        if let Some(cache) = &mut extras.cache {
            flash = cache.take(Lost { write: self.counters.writes + 1, at, len }, flash);
        }
        flash + fetch
    }

    /// Serves requests with up to `depth` of them in the card's queue: the host hands over the next one as soon as a place
    /// is free, commands and wire are shared, and the dies work side by side. A card without a queue takes one at a time.
    pub fn batch(&mut self, now: u64, all: &[Request], depth: u64) -> Result<Vec<Completion>, Fault> {
        let depth = depth.min(self.model.card.queue) as usize;
        let mut done = Vec::with_capacity(all.len());
        if depth <= 1 {
            let mut at = now;
            for r in all {
                let c = self.submit(at, *r)?;
                at = c.done;
                done.push(c);
            }
            return Ok(done);
        }
        let mut dies = vec![self.busy_until; self.model.nand.dies as usize];
        let (mut command, mut wire) = (now.max(self.busy_until), 0);
        let mut places = std::collections::BinaryHeap::new();
        for r in all {
            let free = if places.len() < depth { now } else { places.pop().map_or(now, |std::cmp::Reverse(t)| t) };
            let begin = free.max(command);
            // The books are kept as for a single request; only its time is made up from its parts.
            self.check(r.at, r.len)?;
            let single = r.op == Op::Flush || r.op == Op::Discard || r.len > self.host.max_request || r.len == 0 || self.events.is_some();
            let end = if single {
                let last = dies.iter().copied().max().unwrap_or(0).max(wire).max(begin);
                self.busy_until = self.busy_until.max(last);
                let c = self.submit(last, *r)?;
                dies.fill(c.done);
                (command, wire) = (c.done, c.done);
                c.done
            } else {
                let rest = if self.extras.is_some() { self.rest(begin, r.op)? } else { 0 };
                let p = self.parts(r, r.at, r.len);
                let noise = if self.host.noisy { self.host.waver(p.command) } else { p.command };
                command = begin + noise;
                let (a, _) = self.places(r.at, r.len);
                let n = dies.len() as u64;
                let die = &mut dies[(self.grid.access.of(a) % n) as usize];
                let end = if r.op == Op::Read {
                    let sent = self.read.wire(r.len);
                    *die = (*die).max(command + rest) + p.flash.saturating_sub(sent);
                    wire = wire.max(*die) + sent;
                    self.counters.reads += 1;
                    self.counters.bytes_read += r.len;
                    wire
                } else {
                    wire = wire.max(command) + p.wire;
                    *die = (*die).max(wire + rest) + p.flash;
                    self.counters.writes += 1;
                    self.counters.bytes_written += r.len;
                    *die
                };
                self.busy_until = self.busy_until.max(end);
                end
            };
            places.push(std::cmp::Reverse(end));
            done.push(Completion { start: free, done: end });
        }
        Ok(done)
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

    /// Puts bytes at `at`, without any time passing and without changing what later requests cost. A power cut undoes them
    /// where the write submitted last is one of those lost.
    pub fn store(&mut self, at: u64, from: &[u8]) -> Result<(), Fault> {
        self.range(at, from.len() as u64)?;
        let (real_capacity, beyond) = (self.model.card.real_capacity, self.model.card.beyond);
        let content = self.content.as_mut().ok_or(Fault::NoContent)?;
        let mut done = 0;
        for (place, n) in real(at, from.len() as u64, real_capacity, beyond) {
            match place {
                Some(place) => content.store(self.counters.writes, place, &from[done..done + n as usize]),
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
