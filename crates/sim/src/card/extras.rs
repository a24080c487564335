//! Caches, heat, the map's memory, read disturb and rest: what only some cards have.

use super::*;
use crate::buffer::{Behind, Heat, SlcCache, Streams, WriteCache};
use crate::ftl::MapCache;
use crate::model::{GcWhen, Shortcut};
use crate::request::Data;

/// What only some cards have; the usual card does not pay for asking.
#[derive(Clone, Debug)]
pub(super) struct Extras {
    slc: Option<SlcCache>,
    pub(super) cache: Option<WriteCache>,
    /// The host has switched it off.
    cache_off: bool,
    /// ns that a read waits for it at most.
    read_waits: u64,
    pub(super) heat: Option<Heat>,
    map: Option<MapCache>,
    behind: Option<Behind>,
    streams: Option<Streams>,
    shortcut: Shortcut,
    /// ns to rewrite an erase block that was read too often; 0 = reads are not counted.
    refresh: u64,
}

/// Work of a write that was hidden while its data came in, which a flush may yet have to wait for.
#[derive(Clone, Debug, Default)]
pub(super) struct Hidden {
    events: Set,
    ns: u64,
    /// Some commands of the write had to wait for theirs.
    not_all: bool,
}

impl Extras {
    pub(super) fn new(m: &Model) -> Option<Box<Extras>> {
        let n = &m.nand;
        let refresh = if m.wear.read_disturb > 0 { n.erase_block / n.write_unit * n.copy + n.erase } else { 0 };
        let e = Extras {
            slc: SlcCache::new(m),
            cache: WriteCache::new(m),
            cache_off: false,
            read_waits: m.card.read_waits,
            heat: Heat::new(m),
            map: MapCache::new(m),
            behind: Behind::new(m),
            streams: Streams::new(m),
            shortcut: m.card.shortcut,
            refresh,
        };
        let any = e.slc.is_some() || e.cache.is_some() || e.heat.is_some() || e.map.is_some() || e.behind.is_some() || e.streams.is_some();
        let rests = m.ftl.page.when != GcWhen::Foreground;
        (any || rests || e.refresh > 0 || e.shortcut != Shortcut::None || m.wear != Default::default()).then(|| Box::new(e))
    }
}

impl Card {
    /// What the card did by itself since it was last busy; ns by which that overruns. A worn out card takes no more writes.
    pub(super) fn rest(&mut self, start: u64, op: Op) -> Result<u64, Fault> {
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
        let left = extras.behind.as_mut().map_or(0, |b| b.rest(start, op != Op::Write));
        self.keep();
        Ok(left + self.ftl.rest(&self.write, &mut self.counters, ns))
    }

    /// Switches the volatile write cache on or off, as a host does; what is in it goes to the flash first. Returns whether it was on,
    /// and the ns this takes; nothing where the card has none.
    pub fn switch_cache(&mut self, on: bool) -> Option<(bool, u64)> {
        self.extras.as_ref()?.cache.as_ref()?;
        let ns = if on { 0 } else { self.drain() };
        let extras = self.extras.as_mut()?;
        Some((!std::mem::replace(&mut extras.cache_off, !on), ns))
    }

    /// ns to bring everything acknowledged to the flash.
    pub(super) fn drain(&mut self) -> u64 {
        let cached = self.extras.as_mut().and_then(|e| e.cache.as_mut()).map_or(0, |c| c.flush());
        self.counters.note(Event::Late, cached);
        let ns = cached + self.write.settle(&mut self.counters);
        self.keep();
        ns
    }

    /// ns of the flush that a host sends after a write that began at `start` and took `ns`. What is collected from its start on stays in its buffer, as it does for reads.
    pub(super) fn flushed(&mut self, start: u64, ns: u64) -> u64 {
        let mut pending = 0;
        if let Some(extras) = self.extras.as_mut().filter(|_| !self.flush_defers) {
            let left = extras.behind.as_mut().map_or(0, |b| b.rest(start + ns, true));
            let cached = extras.cache.as_mut().map_or(0, |c| c.flush());
            pending = left + cached;
            let hidden = &self.hidden;
            self.counters.book(|l| {
                let mut late = pending as i64;
                if left > 0 && hidden.events != Set::default() {
                    // Work that was hidden takes the time now: all of the write's, where the host waited for nothing before.
                    late -= hidden.ns as i64;
                    if !hidden.not_all {
                        late += ns as i64;
                        l.now = Set::default();
                    }
                    l.now.0.iter_mut().zip(hidden.events.0).for_each(|(n, h)| *n += h);
                }
                l.now.0[Event::Late as usize] += late;
            });
        }
        self.counters.note(Event::Flush, 1);
        pending += self.write.read(&mut self.counters);
        self.keep();
        self.flush + pending
    }

    /// ns that remain of `flash` where the data come in meanwhile, but for those of the last write unit: programming begins when one is complete, and
    /// is not over before the last one came (the program cache of data sheets). Booked is what the host waits for: the data, or the flash with the data
    /// of one unit. `before` is what was booked before the flash began.
    pub(super) fn meanwhile(&mut self, len: u64, flash: u64, before: Option<Set>) -> u64 {
        let (end, ps) = (len.min(self.grid.unit.by() << SHIFT), self.read.ps);
        let (all, last) = (self.read.wire(len), self.read.wire(end));
        if flash + last < all {
            // All of it is hidden.
            if let (true, Some(now), Some(before)) = (self.flushes, self.counters.noted(), before) {
                self.hidden.ns += flash;
                self.hidden.events.0.iter_mut().zip(now.0).zip(before.0).for_each(|((h, n), b)| *h += n - b);
            }
            self.counters.unnote(before);
            return 0;
        }
        self.hidden.not_all = true;
        self.counters.book(|l| {
            l.now.0[Event::Wire as usize] -= len as i64;
            l.now.0[Event::Rounding as usize] -= (u128::from(len) * u128::from(ps) % 1000) as i64;
            l.bytes(Event::Wire, end, ps);
        });
        flash + last - all
    }

    /// ns to go to other erase blocks for a write of these places.
    #[inline]
    pub(super) fn change(&mut self, a: u64, b: u64) -> u64 {
        if self.change == 0 && self.counters.ledger.is_none() {
            return 0;
        }
        let (first, last) = (self.grid.block.of(a), self.grid.block.of(b - 1));
        let n = u64::from(first != std::mem::replace(&mut self.block, last)) + last - first;
        self.counters.note(Event::Change, n);
        n * self.change
    }

    pub(super) fn read_extras(&mut self, at: u64, len: u64, a: u64, b: u64) -> u64 {
        let Some(extras) = &mut self.extras else { return 0 };
        let mut ns = 0;
        if let Some(cache) = extras.cache.as_mut().filter(|_| extras.read_waits > 0) {
            ns += cache.make_way(extras.read_waits);
            self.counters.note(Event::Late, ns);
        }
        if let Some(map) = &mut extras.map {
            let (fetched, saved, took) = map.fetch(at >> SHIFT, (at + len) >> SHIFT, false);
            self.counters.note(Event::MapMiss, fetched);
            self.counters.note(Event::MapSave, saved);
            ns += took;
        }
        if extras.refresh > 0 {
            let n = self.ftl.disturb(&self.grid, a, b);
            self.counters.refreshes += n;
            self.counters.note(Event::Copy, n * (self.model.nand.erase_block / self.model.nand.write_unit));
            self.counters.note(Event::Erase, n);
            ns += n * extras.refresh;
        }
        ns
    }

    pub(super) fn write_extras(&mut self, req: &Request, at: u64, len: u64, a: u64, b: u64) -> u64 {
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
        let (before, programmed) = (self.counters.noted(), self.counters.units_programmed);
        let mut flash = self.ftl.write(&self.grid, &mut self.write, &mut self.counters, a, b);
        let Some(extras) = &mut self.extras else { return flash };
        if let Some(slc) = &mut extras.slc {
            let (written, all) = self.ftl.share();
            if let Some(taken) = slc.take(len, flash, written, all) {
                flash = if self.model.card.combine_starts {
                    // What was collected is put there once it is programmed; collecting takes what it takes.
                    let units = self.counters.units_programmed - programmed;
                    self.counters.book(|l| l.now.0[Event::Program as usize] -= units as i64);
                    self.counters.note(Event::SlcProgram, units);
                    (flash + units * self.model.slc.program).saturating_sub(units * self.model.nand.program) + taken.waited
                } else {
                    self.counters.unnote(before);
                    self.counters.note(Event::SlcProgram, taken.units);
                    taken.waited + taken.programmed
                };
                self.counters.note(Event::Late, taken.waited);
            }
        }
        if let Some(cache) = extras.cache.as_mut().filter(|_| !extras.cache_off) {
            let (waited, taken) = cache.take(Lost { write: self.counters.writes + 1, at, len }, flash);
            if taken {
                self.counters.unnote(before);
                flash = 0;
            }
            self.counters.note(Event::Late, waited);
            flash += waited;
        }
        let (fetched, saved, fetch) = extras.map.as_mut().map_or((0, 0, 0), |m| m.fetch(at >> SHIFT, (at + len) >> SHIFT, true));
        self.counters.note(Event::MapMiss, fetched);
        self.counters.note(Event::MapSave, saved);
        // A small write that is collected programs nothing yet.
        let units = self.counters.units_programmed - programmed;
        let moved = self.write.moved << SHIFT;
        let (more, cost, ps) = extras.streams.as_mut().map_or((0, 0, 0), |s| s.take(at, len, units, moved));
        self.counters.note(Event::Stream, more * units);
        self.counters.book(|l| l.bytes(Event::StreamByte, more * moved, ps));
        let work = flash + fetch + cost + self.change(a, b);
        let Some(extras) = &mut self.extras else { return work };
        let waited = extras.behind.as_mut().map_or(work, |b| b.take(work));
        self.counters.book(|l| l.now.0[Event::Late as usize] += waited as i64 - work as i64);
        waited
    }
}
