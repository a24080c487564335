//! No number of AUs was slow.

use super::*;
use crate::finding::SAID;

/// Share of the cards without a limit that are mapped by page; the others hide it behind a cache, or keep more AUs open than
/// were tried. Both orders say so together: two thirds in all.
const NO_LIMIT_BY_PAGE: f64 = 0.6;

/// What is left of the chance that a cache hides the limit, once half a gigabyte was written and none showed.
const NO_CACHE_FOUND: f64 = 0.7;

/// How sure it is that a cache does not hide a limit, where reads show erase blocks and where they do not.
const HIDDEN: f64 = 0.65;

const UNSEEN: f64 = 0.78;

impl Seen<'_> {
    /// All that were tried stay open, or a cache hides what does not.
    pub(super) fn no_limit(&self) -> Vec<Finding> {
        let Seen { run, k, top, largest, base, .. } = *self;
        if largest == 1 {
            return vec![Finding::undecided(self.q, "the run ended before two AUs were tried")];
        }
        let in_aus = run.believed.erase_block().is_some();
        if top < 0.5 {
            let why = "slow writes came and went: the times do not agree";
            let ended = "the run ended before the slow writes could be distinguished from stalls";
            let why = if run.ended == Ended::Complete { why } else { ended };
            return vec![self.at_rest(why, if in_aus { HIDDEN } else { UNSEEN }).unwrap_or_else(|| Finding::undecided(self.q, why))];
        }
        if let Some((few, many)) = self.shared() {
            let why = format!(
                "no single AU incurs a merge, but with many interleaved a write takes {} ms on average, with few {} ms: they share a log",
                three(many / 1e3),
                three(few / 1e3)
            );
            return vec![Finding::undecided(self.q, why.clone()), Finding::decided(Quantity::Mapping, 1.0, 0.7).evidence(why)];
        }
        // A fast cache in front (SLC, or a small-write log) takes all that such a test writes and hides what lies beyond it.
        let (filled, from) = run.believed.filled().unwrap_or((0, 0));
        if let Some(cache) = Some(from).filter(|&c| c > 0) {
            let why = format!("a write cache took {} and hides what lies beyond it even when it is full", Bytes(cache));
            return self.neither(why);
        }
        let no_cache = if filled > 0 { NO_CACHE_FOUND } else { 1.0 };
        // Where reads show erase blocks the card has AUs to close: the more likely, then, that a cache hides it.
        let trust = top * if in_aus { HIDDEN } else { 1.0 - (1.0 - UNSEEN) * no_cache };
        let why = if self.slots.count as i64 <= largest {
            format!("no cost up to {k} AUs; the region has room for no more")
        } else if largest < MOST {
            format!("no cost up to {k} AUs; the run ended there")
        } else {
            format!("no cost up to {k} AUs: more than anybody needs, or the card has no such limit")
        };
        // Too little for all that were tried: what came to rest is more surely open.
        if trust < SAID
            && let Some(bound) = self.at_rest(&why, if in_aus { HIDDEN } else { UNSEEN })
        {
            return vec![bound, Finding::undecided(Quantity::Mapping, why)];
        }
        let each = format!("{} ms a write of {}", three(base / 1e3), Bytes(self.slots.chunk));
        let text = format!("{k} AUs interleaved, {}: {each}, as with one AU", self.order());
        let written = writes(run).map(|s| s.len).sum::<u64>() + filled;
        let caveat = format!("a write cache of more than {} MiB would hide a limit beyond it", written / MIB);
        let mapping = if in_aus {
            Finding::undecided(
                Quantity::Mapping,
                format!("the card has erase blocks, yet no cost up to {k} AUs: a cache hides it, or it maps pages"),
            )
        } else if k as i64 >= MOST {
            // Places close together may lie in few AUs.
            let other = ((1.0 - NO_LIMIT_BY_PAGE) * no_cache).max(if self.slots.spacing < 48 * MIB { 0.2 } else { 0.0 });
            Finding::decided(Quantity::Mapping, 2.0, top * (1.0 - other)).rivals([(1.0, other)]).evidence(text.clone())
        } else {
            Finding::undecided(Quantity::Mapping, why.clone())
        };
        vec![Finding::at_least(self.q, k as f64, trust, why).evidence(text).caveat(caveat.clone()), mapping.caveat(caveat)]
    }

    /// Mean time in µs of a write with few AUs in turn and with many, where rare slow ones make many dear and few not. Emptying a log that
    /// all AUs share costs the more, the more of them lie in it; collecting garbage in a map of pages costs the same.
    fn shared(&self) -> Option<(f64, f64)> {
        let visits =
            |of: std::ops::RangeInclusive<i64>| later(self.run, |c| c.get("random") == self.random as i64 && of.contains(&c.get("n")));
        let (few, many, base) = (visits(1..=8), visits(24..=MOST), self.base);
        let mean = |t: &[f64]| t.iter().sum::<f64>() / t.len() as f64;
        let (less, more) = (mean(&few), mean(&many));
        // Four of the slow ones, at least, would have been met among the few.
        let slow = many.iter().filter(|&&t| t > 3.0 * base).count();
        let met = slow * few.len() >= 4 * many.len().max(1);
        (met && more > 3.0 * base && more - base > 3.0 * (less - base)).then_some((less, more))
    }
}
