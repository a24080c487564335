//! The card: one command at a time on a virtual clock. [`Card::submit`] is the only door through which time passes.

mod busy;
mod bytes;
mod extras;
mod queue;

pub use busy::Busy;
pub use queue::Queue;

use extras::{Extras, Hidden};

use crate::account::{Event, Events as Set};
use crate::buffer::Lost;
use crate::content::{Content, PIECE};
use crate::counters::Counters;
use crate::events::Events;
use crate::ftl::{Ftl, WriteCost};
use crate::host::HostCost;
use crate::model::{Model, Transfer, Unwritten};
use crate::nand::{Grid, ReadCache, ReadCost, SHIFT};
use crate::places::{Front, Goes, runs};
use crate::request::{Completion, Fault, Op, Request};
use crate::told::Told;

/// Writes that [`Card::foresee`] looks at.
pub const AHEAD: usize = 16;

/// What a host says before the data of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Announced {
    /// Nothing, or the length alone (CMD23).
    #[default]
    No,
    /// The blocks to come, so that they are erased ahead (ACMD23).
    Erase,
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
    front: Option<Front>,
    flat_unwritten: Option<u64>,
    discard: u64,
    flush: u64,
    /// ns of a change of erase block, and the erase block written last.
    change: u64,
    block: u64,
    flush_defers: bool,
    /// The host sends a flush after every write.
    flushes: bool,
    hidden: Hidden,
    overlap: bool,
    capacity: u64,
    /// Up to here an address is the place on the flash.
    plain: u64,
    sector: u64,
    /// ns after the data of every write command, whatever the flash does.
    after: u64,
    /// Commands of the last write.
    last: Vec<busy::Written>,
    announced: Announced,
    extras: Option<Box<Extras>>,
    lost: Vec<Lost>,
    model: Box<Model>,
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
            front: None,
            flat_unwritten: (model.nand.unwritten == Unwritten::Flat).then_some(model.nand.unwritten_read),
            discard: model.card.discard,
            flush: model.card.flush,
            change: model.nand.change,
            block: 0,
            flush_defers: model.card.flush_defers,
            flushes: model.host.flushes,
            hidden: Hidden::default(),
            overlap: model.card.overlap,
            capacity: model.card.capacity,
            plain: if model.area.is_empty() { model.card.real_capacity } else { 0 },
            sector: model.card.sector,
            after: model.card.accept + model.host.status + if model.host.transfer == Transfer::OpenEnded { model.card.stop } else { 0 },
            last: Vec::new(),
            announced: Announced::No,
            extras: Extras::new(model),
            lost: Vec::new(),
            grid,
            model: Box::new(model.clone()),
        }
    }

    /// The same card, keeping bytes.
    pub fn with_content(mut self) -> Card {
        self.content = Some(Content::default());
        self.front = Front::new(&self.model, PIECE);
        self
    }

    /// The same card, counting from now on what each access sets off ([`Card::last_events`]). Only requests served one at a time are
    /// counted, not those of a [`Queue`].
    pub fn account(mut self) -> Card {
        self.counters.ledger = Some(Box::default());
        self
    }

    /// The same card, which draws its lots as they are known to have been drawn. Only a table of open AUs that closes one at random draws any.
    pub fn told(mut self, lots: Told) -> Card {
        if let Ftl::Block(map) = &mut self.ftl {
            map.told = Some(Box::new(lots));
        }
        self
    }

    /// How unlikely the lots were that a card was told: the sum of the logarithms of how many AUs each was drawn among.
    pub fn lots(&self) -> f64 {
        match &self.ftl {
            Ftl::Block(map) => map.told.as_ref().map_or(0.0, |t| t.nats),
            _ => 0.0,
        }
    }

    /// Erase block of a place.
    pub fn block_of(&self, at: u64) -> u64 {
        self.grid.block.of(self.grid.place(at >> SHIFT))
    }

    /// What the last request served set off; nothing where the card was not asked to count ([`Card::account`]).
    pub fn last_events(&self) -> Option<&Set> {
        self.counters.ledger.as_ref().map(|l| &l.now)
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

    /// Writes that were acknowledged and lost when a fault of the model cut the power, in order.
    pub fn lost(&self) -> &[Lost] {
        &self.lost
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

    /// The writes that come next begin at these bytes; [`AHEAD`] of them are looked at. No virtual time passes and nothing
    /// changes but the speed of the simulation: the map of a card is larger than the processor's caches, and so it waits for
    /// memory once instead of once a write.
    #[inline]
    pub fn foresee(&self, writes: impl IntoIterator<Item = u64>) {
        if let Ftl::Page(map) = &self.ftl {
            map.foresee(writes.into_iter().map(|at| at >> SHIFT));
        }
    }

    /// What the host says of the writes from now on before it sends their data, where it has commands for that.
    ///
    /// A card that keeps to blocks announced for erasing ahead (`card.pre_erase`) need not keep what they hold: a write-through
    /// buffer rewrites an erase block once for all of them, and the erasing is done while the data are on the wire.
    pub fn announce(&mut self, what: Announced) {
        self.announced = what;
        if let Ftl::Through(t, _) = &mut self.ftl {
            t.ahead = what == Announced::Erase && self.model.card.pre_erase;
        }
    }

    /// The time the flash takes for a write whose blocks were announced for erasing: what was erased since `before` costs
    /// only what the `wire` does not hide.
    fn ahead(&mut self, flash: u64, before: u64, wire: u64) -> u64 {
        if !self.model.card.pre_erase {
            return flash;
        }
        let erasing = (self.counters.erases - before) * self.model.nand.erase;
        let hidden = erasing.min(wire).min(flash);
        self.counters.book(|l| l.now.0[Event::Late as usize] -= hidden as i64);
        flash - hidden
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
        self.counters.book(|l| l.now = Set::default());
        if req.op == Op::Write {
            self.last.clear();
            if self.flushes {
                self.hidden = Hidden::default();
            }
        }
        if let Some(events) = &mut self.events {
            let done = start + self.host.command;
            if let Err(fault) = events.fault(req.op, req.at, req.len, done) {
                self.busy_until = done;
                if fault == Fault::PowerCut {
                    let lost = self.power_cut();
                    self.lost.extend(lost);
                }
                return Err(fault);
            }
        }
        let mut ns = 0;
        if req.at + req.len > self.plain && req.op != Op::Flush {
            let all = runs(req.at, req.len, &self.model);
            if all[..] != [(Goes::To(req.at), req.len)] {
                return self.elsewhere(start, req, &all);
            }
        }
        if self.extras.is_some() {
            let over = self.rest(start, req.op)?;
            self.counters.note(Event::Late, over);
            ns += over;
        }
        ns += match req.op {
            Op::Read | Op::Write if req.len <= self.host.max_request => self.command(&req, req.at, req.len),
            Op::Read | Op::Write => self.split(req),
            Op::Discard => {
                let (a, b) = self.places(req.at, req.len);
                self.ftl.discard(&self.grid, a, b);
                let pending = self.drain();
                self.forget(req.at, req.len);
                self.counters.note(Event::Command, 1);
                self.counters.note(Event::Discard, 1);
                self.host.command + self.discard + pending
            }
            Op::Flush => {
                self.counters.note(Event::Command, 1);
                self.counters.note(Event::Flush, 1);
                let pending = if self.flush_defers { 0 } else { self.drain() };
                self.host.command + self.flush + pending
            }
        };
        if self.flushes && req.op == Op::Write {
            ns += self.flushed(start, ns);
        }
        self.count(&req);
        ns += self.stall(&req);
        if let Some(heat) = self.extras.as_mut().and_then(|e| e.heat.as_mut()) {
            let hot = heat.slow(start, req.len, ns);
            self.counters.note(Event::Heat, hot - ns);
            ns = hot;
        }
        if self.content.is_some() {
            self.keep();
        }
        self.busy_until = start + ns;
        Ok(Completion { start, done: start + ns })
    }

    /// ns of the stalls this request runs into.
    #[inline]
    fn stall(&mut self, req: &Request) -> u64 {
        let Some(events) = &mut self.events else { return 0 };
        let (pause, n) = events.stall(req.op, req.len);
        // A host that polls sees a pause as busy time, too.
        if let (Op::Write, Some(w)) = (req.op, self.last.last_mut()) {
            w.flash += pause;
        }
        self.counters.stalls += n;
        self.counters.note(Event::Stall, pause);
        pause
    }

    #[inline]
    fn count(&mut self, req: &Request) {
        let k = &mut self.counters;
        match req.op {
            Op::Read => (k.reads, k.bytes_read) = (k.reads + 1, k.bytes_read + req.len),
            Op::Write => (k.writes, k.bytes_written) = (k.writes + 1, k.bytes_written + req.len),
            Op::Discard => k.discards += 1,
            Op::Flush => k.flushes += 1,
        }
    }

    /// A card that has no flash of its own at an address takes the place of another one, drops the data, or fails.
    fn elsewhere(&mut self, start: u64, req: Request, all: &[(Goes, u64)]) -> Result<Completion, Fault> {
        let alone = self.host.command + self.read.wire(if req.op == Op::Discard { 0 } else { req.len });
        if req.op == Op::Discard {
            self.forget(req.at, req.len);
        } else if let Some(i) = all.iter().position(|r| r.0 == Goes::Fails) {
            let before: u64 = all[..i].iter().map(|r| r.1).sum();
            self.busy_until = start + alone;
            return Err(Fault::Io { op: req.op, at: req.at + before, len: req.len - before, done: start + alone });
        }
        let mut ns = 0;
        for &(goes, len) in all.iter().filter(|_| req.op != Op::Discard) {
            ns += if let Goes::To(at) = goes { self.command(&req, at, len) } else { 0 };
        }
        if ns == 0 {
            self.counters.note(Event::Command, 1);
            let ps = self.read.ps;
            self.counters.book(|l| l.bytes(Event::Wire, if req.op == Op::Discard { 0 } else { req.len }, ps));
        }
        let mut ns = if ns > 0 { ns } else { alone };
        if self.flushes && req.op == Op::Write {
            ns += self.flushed(start, ns);
        }
        self.count(&req);
        if self.content.is_some() {
            self.keep();
        }
        self.busy_until = start + ns;
        Ok(Completion { start, done: start + ns })
    }

    /// A reader with a limit cuts a request in several commands, each of which costs what a command costs.
    fn split(&mut self, req: Request) -> u64 {
        let (mut at, end, mut ns) = (req.at, req.at + req.len, 0);
        while at < end {
            let n = self.host.max_request.min(end - at);
            ns += self.command(&req, at, n);
            if at > req.at {
                self.counters.note(Event::Split, 1);
                ns += self.host.split;
            }
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
    #[inline(always)]
    fn command(&mut self, req: &Request, at: u64, len: u64) -> u64 {
        let p = self.parts(req, at, len);
        let ns = p.command + p.wire + p.flash;
        self.counters.note(Event::Command, 1);
        if !self.host.noisy {
            return ns;
        }
        let seen = self.host.waver(ns);
        self.counters.book(|l| l.now.0[Event::Noise as usize] += seen as i64 - ns as i64);
        seen
    }

    #[inline(always)]
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
        let wire = self.read.wire(len) + self.after;
        let ps = self.read.ps;
        self.counters.book(|l| {
            l.bytes(Event::Wire, len, ps);
            l.now.add(Event::After, 1);
        });
        let (erased, before) = (self.counters.erases, if self.overlap { self.counters.noted() } else { None });
        let flash = if self.extras.is_some() {
            self.write_extras(req, at, len, a, b)
        } else {
            let change = self.change(a, b);
            change + self.ftl.write(&self.grid, &mut self.write, &mut self.counters, a, b)
        };
        let flash = if self.announced == Announced::Erase { self.ahead(flash, erased, wire) } else { flash };
        let flash = if self.overlap { self.meanwhile(len, flash, before) } else { flash };
        self.last.push(busy::Written { at, len, flash });
        Parts { command: self.host.command, wire, flash }
    }

    #[inline]
    fn read(&mut self, a: u64, b: u64) -> u64 {
        let settle = self.write.read(&mut self.counters);
        let ps = self.read.ps;
        let all = (b - a) << SHIFT;
        if let Some(flat) = self.flat_unwritten
            && !self.ftl.written(&self.grid, a, b)
        {
            self.counters.book(|l| {
                l.bytes(Event::Wire, all, ps);
                l.now.add(Event::Flat, 1);
            });
            return settle + flat + self.read.wire(all);
        }
        let (from, to) = match &mut self.cache {
            None => (a, b),
            Some(cache) => match cache.miss(&self.grid, a, b) {
                None => {
                    self.counters.book(|l| l.bytes(Event::Wire, all, ps));
                    return settle + self.read.wire(all);
                }
                Some(part) => part,
            },
        };
        let (ns, units) = self.read.of(&self.grid, from, to);
        self.counters.units_sensed += units;
        if let Some(l) = &mut self.counters.ledger {
            self.read.book(&self.grid, from, to, l);
            l.bytes(Event::Wire, (from - a) << SHIFT, ps);
        }
        settle + ns + self.read.wire((from - a) << SHIFT)
    }
}
