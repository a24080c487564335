//! A host, a card and its clock: requests go in, times come out.

use crate::card::{Card, Mapping};
use crate::chance::Chance;
use crate::front::Front;
use crate::host::Host;
use crate::logs::Logs;
use crate::pages::Pages;
use crate::store::Store;

enum State {
    Blocks(Box<Logs>, Front),
    Pages(Box<Pages>),
}

/// A device under test.
pub struct Device {
    /// Its parameters.
    pub card: Card,
    /// What it sits in.
    pub host: Host,
    chance: Chance,
    state: State,
    store: Store,
    now: f64,
    /// Work that was acknowledged and is not done.
    debt: f64,
    debt_at: f64,
    read_end: u64,
    /// Joined by the reader: place, bytes.
    joined: Option<(u64, u64)>,
    /// Temperature, and whether it works more slowly because of it.
    warm: f64,
    hot: bool,
}

/// What a request did: start and duration on the device's clock, in ns.
pub type Times = (u64, u64);

impl Device {
    /// Puts a card into a host.
    pub fn new(card: Card, host: Host, chance: Chance) -> Self {
        let state = match card.mapping {
            Mapping::Page => State::Pages(Box::new(Pages::new(&card))),
            _ => State::Blocks(Box::new(Logs::new(&card)), Front::default()),
        };
        Device {
            card,
            host,
            chance,
            state,
            store: Store::default(),
            now: 1e6,
            debt: 0.0,
            debt_at: 0.0,
            read_end: u64::MAX,
            joined: None,
            warm: 0.0,
            hot: false,
        }
    }

    /// What a request of so many ns takes as hot as the card is, which gets warmer by it.
    fn heated(&mut self, took: f64) -> f64 {
        let Some(h) = self.card.heat else { return took };
        let slower = if self.hot { h.slower } else { 1.0 };
        self.settle(1.0 / slower, took * slower);
        took * slower
    }

    /// The temperature after so many ns that would lead to `toward` in the long run.
    fn settle(&mut self, toward: f64, ns: f64) {
        let Some(h) = self.card.heat else { return };
        self.warm = toward + (self.warm - toward) * (-ns / 1e9 / h.tau).exp();
        self.hot = self.warm > if self.hot { h.off } else { h.on };
    }

    fn pass(&mut self, took: f64) -> Times {
        let start = self.now;
        let took = self.heated(took);
        let took = self.host.seen(start, took, &mut self.chance).round();
        // The program needs a little before its next request.
        self.now = (start + took).round() + 4000.0 + (2000.0 * self.chance.unit()).round();
        (start as u64, took as u64)
    }

    /// Work the card does now or keeps for later.
    fn work(&mut self, t: f64) -> f64 {
        if self.card.buffer == 0.0 {
            return t;
        }
        self.debt = (self.debt - (self.now - self.debt_at)).max(0.0) + t;
        self.debt_at = self.now;
        let wait = (self.debt - self.card.buffer).max(0.0);
        self.debt -= wait;
        wait
    }

    fn drain(&mut self) -> f64 {
        let left = (self.debt - (self.now - self.debt_at)).max(0.0);
        self.debt = 0.0;
        left
    }

    /// Reads; the time only.
    pub fn read(&mut self, at: u64, len: u64) -> Times {
        let mut t = self.pass_on() + self.drain();
        let mut done = 0;
        while done < len {
            let part = self.host.cut.min(len - done);
            t += self.host.command + self.read_command(at + done, part);
            done += part;
        }
        self.pass(t)
    }

    fn read_command(&mut self, at: u64, len: u64) -> f64 {
        let card = &self.card;
        let (end, mut t) = (at + len, 0.0);
        let rate = self.host.byte.max(card.bus);
        let mut waiting = 0.0;
        let follows = at == self.read_end;
        self.read_end = end;
        for unit in at / card.unit..end.div_ceil(card.unit) {
            let low = (unit * card.unit).max(at);
            let high = ((unit + 1) * card.unit).min(end);
            let (holds, look) = match &mut self.state {
                State::Blocks(l, front) => {
                    let block = card.block_of(low);
                    (l.holds(block) || front.holds(unit), if low > at && block != card.block_of(low - 1) { card.lookup } else { 0.0 })
                }
                State::Pages(p) => (p.holds(unit), p.look(low, false, card, &mut self.chance)),
            };
            let hidden = follows && low - at < card.ahead;
            let whole = card.sense_of((low - card.start_of(card.block_of(low))) / card.unit);
            let sense = if !holds {
                2000.0
            } else if hidden {
                0.1 * whole
            } else {
                whole
            };
            // A page is sensed while the one before goes over the wire.
            t += f64::max(sense, waiting) + look;
            waiting = (high - low) as f64 * rate;
        }
        t + waiting
    }

    /// Writes a pattern.
    pub fn write(&mut self, at: u64, len: u64, fill: &str) -> Times {
        self.keep(at, len, fill);
        let mut t = 0.0;
        if self.host.join > 0 && len < self.host.join {
            t += self.host.command * 0.5 + len as f64 * self.host.byte;
            self.joined = match self.joined.take() {
                Some((first, n)) if first + n == at => Some((first, n + len)),
                before => {
                    t += self.flush_joined(before);
                    Some((at, len))
                }
            };
            if self.joined.is_some_and(|j| j.1 >= self.host.join) {
                t += self.pass_on();
            }
        } else {
            t += self.pass_on() + self.commands(at, len);
        }
        self.pass(t)
    }

    fn pass_on(&mut self) -> f64 {
        let joined = self.joined.take();
        self.flush_joined(joined)
    }

    fn flush_joined(&mut self, joined: Option<(u64, u64)>) -> f64 {
        joined.map_or(0.0, |(at, len)| self.commands(at, len))
    }

    fn commands(&mut self, at: u64, len: u64) -> f64 {
        let (mut t, mut done) = (0.0, 0);
        self.read_end = u64::MAX;
        while done < len {
            let part = self.host.cut.min(len - done);
            let wire = part as f64 * self.host.byte;
            let inside = self.inside(at + done, part);
            // Data comes in while the card programs, except the last unit.
            let flash = self.work(inside);
            let tail = part.min(self.card.unit) as f64 * self.host.byte;
            t += self.host.command + f64::max(wire, flash + tail);
            done += part;
        }
        t
    }

    fn inside(&mut self, at: u64, len: u64) -> f64 {
        let card = &self.card;
        match &mut self.state {
            State::Pages(p) => p.write(at, len, card, &mut self.chance),
            State::Blocks(l, front) if card.slc > 0 => front.write(at, len, card, l),
            State::Blocks(l, _) => l.write_all(at, len, card),
        }
    }

    fn keep(&mut self, at: u64, len: u64, fill: &str) {
        let real = self.card.real;
        let (mut now, end) = (at, at + len);
        while now < end {
            let base = now / real * real;
            let n = (base + real).min(end) - now;
            if base == 0 || self.card.wraps {
                self.store.put(now - base, n, fill, base as i64);
            }
            now += n;
        }
    }

    /// What a read finds, as the protocol writes it.
    pub fn found(&self, at: u64, len: u64, out: &mut String) {
        use std::fmt::Write;
        let real = self.card.real;
        let (mut now, end) = (at, at + len);
        while now < end {
            let base = now / real * real;
            let n = (base + real).min(end) - now;
            if base > 0 && !self.card.wraps {
                let _ = write!(out, " {n} zeros");
            } else {
                let mut place = now;
                for p in self.store.get(now - base, n) {
                    let _ = write!(out, " {} {}", p.len, p.fill);
                    if p.moved != base as i64 && (p.fill.starts_with("stamp") || p.fill.starts_with("random")) {
                        let _ = write!(out, "@{}", place as i64 - base as i64 + p.moved);
                    }
                    place += p.len;
                }
            }
            now += n;
        }
    }

    /// Discards.
    pub fn discard(&mut self, at: u64, len: u64) -> Times {
        let mut t = self.pass_on() + self.drain() + self.host.command;
        let card = &self.card;
        let end = at + len;
        match &mut self.state {
            State::Pages(p) => {
                (at.div_ceil(card.unit)..end / card.unit).for_each(|u| p.drop_unit(u));
                t += 2e4 + (len / card.block) as f64 * 1e4;
            }
            State::Blocks(l, front) => {
                front.forget(at, end, card);
                for b in card.block_of(at)..=card.block_of(end - 1) {
                    if card.start_of(b) >= at && card.start_of(b + 1) <= end {
                        l.erase(b);
                        t += card.erase * 0.2;
                    }
                }
            }
        }
        if end <= card.real {
            self.store.clear(at, len);
        }
        self.pass(t)
    }

    /// Flushes.
    pub fn flush(&mut self) -> Times {
        let left = if self.card.defers { 0.0 } else { self.drain() };
        let t = self.pass_on() + left + 0.5 * self.host.command;
        self.pass(t)
    }

    /// Waits.
    pub fn idle(&mut self, ns: u64) -> Times {
        let start = self.now;
        match &mut self.state {
            State::Pages(p) => p.rest(ns as f64, &self.card),
            State::Blocks(l, front) => front.rest(ns as f64, &self.card, l),
        }
        self.settle(0.0, ns as f64);
        self.now += ns as f64;
        (start as u64, ns)
    }
}
