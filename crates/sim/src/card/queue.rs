//! A queue of commands inside the card (A2, CMDQ): what can be done side by side.

use super::Card;
use crate::request::{Completion, Fault, Op, Request};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is under way in a card's queue: the host hands over the next request as soon as a place is free, commands and wire
/// are shared, and the dies work side by side.
#[derive(Clone, Debug)]
pub struct Queue {
    depth: usize,
    /// ns at which each die, the host's command path and the wire are free.
    dies: Vec<u64>,
    command: u64,
    wire: u64,
    /// Ends of the requests in the queue.
    places: BinaryHeap<Reverse<u64>>,
}

impl Queue {
    /// An empty queue of `depth` places from `now` (ns) on, of those that the card has. A card without a queue takes one
    /// request at a time.
    pub fn new(card: &Card, now: u64, depth: u64) -> Queue {
        let depth = depth.min(card.model.card.queue).max(1) as usize;
        let free = now.max(card.busy_until);
        Queue { depth, dies: vec![card.busy_until; card.model.nand.dies as usize], command: free, wire: 0, places: BinaryHeap::new() }
    }

    /// Places of the queue; 1 = one request at a time.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Serves a request that the host has ready at `now` (ns). The completion begins when a place was free for it.
    ///
    /// # Errors
    /// As [`Card::submit`].
    pub fn submit(&mut self, card: &mut Card, now: u64, r: Request) -> Result<Completion, Fault> {
        let free = if self.places.len() < self.depth { now } else { self.places.pop().map_or(now, |Reverse(t)| t.max(now)) };
        if self.depth <= 1 {
            let c = card.submit(free, r)?;
            self.places.push(Reverse(c.done));
            return Ok(c);
        }
        let begin = free.max(self.command);
        // The books are kept as for a single request; only its time is made up from its parts.
        card.check(r.at, r.len)?;
        let alone = matches!(r.op, Op::Flush | Op::Discard)
            || r.len > card.host.max_request
            || r.len == 0
            || card.events.as_ref().is_some_and(|e| e.faults());
        let end = if alone || r.at + r.len > card.plain {
            let last = self.dies.iter().copied().max().unwrap_or(0).max(self.wire).max(begin);
            card.busy_until = card.busy_until.max(last);
            let c = card.submit(last, r)?;
            self.dies.fill(c.done);
            (self.command, self.wire) = (c.done, c.done);
            c.done
        } else {
            self.beside(card, begin, &r)?
        };
        self.places.push(Reverse(end));
        Ok(Completion { start: free, done: end })
    }

    /// Does a read or write beside the others; its end.
    fn beside(&mut self, card: &mut Card, begin: u64, r: &Request) -> Result<u64, Fault> {
        let rest = if card.extras.is_some() { card.rest(begin, r.op)? } else { 0 };
        if r.op == Op::Write {
            card.last.clear();
        }
        let mut p = card.parts(r, r.at, r.len);
        // A stall holds up the die of its request; the others go on.
        p.flash += card.stall(r);
        if let Some(heat) = card.extras.as_mut().and_then(|e| e.heat.as_mut()) {
            p.flash = heat.slow(begin, r.len, p.flash);
        }
        let noise = if card.host.noisy { card.host.waver(p.command) } else { p.command };
        self.command = begin + noise;
        let (a, _) = card.places(r.at, r.len);
        let n = self.dies.len() as u64;
        let die = &mut self.dies[(card.grid.access.of(a) % n) as usize];
        let end = if r.op == Op::Read {
            let sent = card.read.wire(r.len);
            *die = (*die).max(self.command + rest) + p.flash.saturating_sub(sent);
            self.wire = self.wire.max(*die) + sent;
            self.wire
        } else {
            self.wire = self.wire.max(self.command) + p.wire;
            *die = (*die).max(self.wire + rest) + p.flash;
            *die
        };
        card.count(r);
        if card.content.is_some() {
            card.keep();
        }
        card.busy_until = card.busy_until.max(end);
        Ok(end)
    }
}

impl Card {
    /// Serves requests that are all ready at `now`, with up to `depth` of them in the card's queue (see [`Queue`]).
    ///
    /// # Errors
    /// As [`Card::submit`]; what came before the failed request has been served.
    pub fn batch(&mut self, now: u64, all: &[Request], depth: u64) -> Result<Vec<Completion>, Fault> {
        let mut queue = Queue::new(self, now, depth);
        all.iter().map(|r| queue.submit(self, now, *r)).collect()
    }
}
