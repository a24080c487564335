//! The machine around the card: what a command costs outside of it, and how much that wavers.

use crate::model::{Model, Transfer};
use crate::rng::Rng;

/// ns a command costs outside the flash.
#[derive(Clone, Debug)]
pub(crate) struct HostCost {
    /// Fixed part of each command: host and controller.
    pub command: u64,
    /// Bytes of the longest command; `u64::MAX` when there is no limit.
    pub max_request: u64,
    pub split: u64,
    jitter: f64,
    tail: f64,
    tail_one_in: u64,
    tail_cap: f64,
    tick: u64,
    pub noisy: bool,
    rng: Rng,
}

impl HostCost {
    pub fn new(m: &Model, seed: u64) -> HostCost {
        let h = &m.host;
        HostCost {
            command: h.command + m.card.command,
            max_request: match (h.transfer, h.max_request) {
                (Transfer::Single, _) => m.card.sector,
                (_, 0) => u64::MAX,
                (_, n) => n,
            },
            split: h.split,
            jitter: h.jitter as f64,
            tail: h.tail as f64,
            tail_one_in: h.tail_every,
            tail_cap: if h.tail == 0 { 1.0 } else { h.tail_cap as f64 / h.tail as f64 },
            tick: h.tick,
            noisy: h.jitter > 0 || h.tail_every > 0 || h.tick > 0,
            rng: Rng::new(seed, 1),
        }
    }

    /// `ns` with the noise of one command. The normal part never takes away more than a quarter of the fixed cost.
    pub fn waver(&mut self, ns: u64) -> u64 {
        let mut extra = (self.rng.normal() * self.jitter).max(-0.25 * self.command as f64);
        if self.tail_one_in > 0 && self.rng.below(self.tail_one_in) == 0 {
            extra += self.tail * self.rng.tail(self.tail_cap);
        }
        let seen = if extra < 0.0 { ns - ((-extra) as u64).min(ns) } else { ns + extra as u64 };
        if self.tick > 0 { seen.next_multiple_of(self.tick) } else { seen }
    }
}
