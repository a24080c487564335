//! What may make a count too high or too low though its visits agree.

use super::no_limit::FEW_WRITES;
use super::*;
use crate::infer::write_unit::SMALLEST_BLOCK;
use std::ops::RangeInclusive;

/// A write takes so many times as long as nearly all with fewer AUs, and such writes are this share of all: more than chance leaves, and not
/// all, as where the card became slower.
const LONGER: f64 = 1.04;
const SOME: f64 = 0.15;
const MOST_OF_THEM: f64 = 0.9;

/// So many times as many evictions as are usual leave no doubt.
const SURELY_TOO_MANY: f64 = 1.5;

impl Seen<'_> {
    /// Where what was seen fits a table that evicts at random: were writes with more AUs slow no more often than they are with as many as stay
    /// open, until all of these have come in? That takes n (1 + 1/2 + ... + 1/n) evictions, as any collection by chance.
    pub(super) fn rests_late(&self) -> bool {
        // A queue that foretells the visits needs no chance.
        let queued = self.belief.foretold();
        if !self.random || self.k < 2 || queued || !Belief::of(self.run, false).is_some_and(|b| at_random(&b)) {
            return false;
        }
        let more: Vec<&Visits> = self.belief.last.iter().filter(|v| v.n > self.k).collect();
        let slow = |n: u32| more.iter().filter(|v| v.n == n).map(|v| f64::from(v.sum().1 + v.before.1)).sum::<f64>();
        let usual = |n: u32| f64::from(n) * (1..=n).map(|i| 1.0 / f64::from(i)).sum::<f64>();
        more.iter().all(|v| slow(v.n) < SURELY_TOO_MANY * usual(v.n))
    }

    /// Do few writes fill an erase block, or, where it is not known, may they fill the smallest, and take as long as merging it does?
    pub(super) fn fills_soon(&self, slow: f64) -> bool {
        let alone = median(&fast(self.run));
        let as_long = || self.few_fill(SMALLEST_BLOCK) && slow - alone < FEW_WRITES as f64 * alone;
        self.run.believed.erase_block().map_or_else(as_long, |block| self.few_fill(block))
    }

    /// The share of writes with as many AUs as were counted that took longer than nearly all with fewer, and were not slow: AUs that were never
    /// written are merged for nearly nothing, and one more than stays open seems to settle. `None` where few did, or all.
    pub(super) fn settled_at_a_cost(&self) -> Option<f64> {
        let (k, line) = (i64::from(self.k), self.line.unwrap_or(f64::INFINITY));
        if self.random || k < 3 {
            return None;
        }
        let of = |counts: RangeInclusive<i64>| {
            let mut all = later(self.run, |c| c.get("random") == 0 && counts.contains(&c.get("n")));
            all.retain(|&t| t <= line);
            all
        };
        let (these, fewer) = (of(k..=k), of(2..=k - 1));
        if these.len() < 8 || fewer.len() < 20 {
            return None;
        }
        let usual = LONGER * quantile(&fewer, 0.95);
        let share = these.iter().filter(|&&t| t > usual).count() as f64 / these.len() as f64;
        (SOME..=MOST_OF_THEM).contains(&share).then_some(share)
    }
}
