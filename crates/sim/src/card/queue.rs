//! A queue of commands inside the card (A2, CMDQ): what can be done side by side.

use super::Card;
use crate::request::{Completion, Fault, Op, Request};

impl Card {
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
                    wire
                } else {
                    wire = wire.max(command) + p.wire;
                    *die = (*die).max(wire + rest) + p.flash;
                    *die
                };
                self.count(r);
                self.busy_until = self.busy_until.max(end);
                end
            };
            places.push(std::cmp::Reverse(end));
            done.push(Completion { start: free, done: end });
        }
        Ok(done)
    }
}
