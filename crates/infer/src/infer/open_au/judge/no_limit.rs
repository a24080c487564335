//! No number of AUs was slow.

use super::*;
use crate::finding::{BY_PAGE, SAID};
use crate::infer::stats::{deviation, mean};
use crate::infer::write_unit::{ERASES, LARGEST_SMALL, SMALLEST_BLOCK, TOGETHER, merges};

/// Share of the cards without a limit that are mapped by page; the others hide it behind a cache, or keep more AUs open than
/// were tried. Both orders say so together: two thirds in all.
const NO_LIMIT_BY_PAGE: f64 = 0.6;

/// What is left of the chance that a cache hides the limit, once half a gigabyte was written and none showed.
const NO_CACHE_FOUND: f64 = 0.7;

/// How sure it is that a cache does not hide a limit, where reads show erase blocks and where they do not. A card with erase blocks has AUs to
/// close, and no more are open than anybody has reported: what took the writes of dozens is a cache.
const HIDDEN: f64 = 0.3;

const UNSEEN: f64 = 0.78;

/// MB/s of writes behind which a limit is hidden as often as those two say. A cache is there to be faster than what it hides. Assumed, as
/// the sizes of caches are; METHODS.md has how often it was so.
const DIRECT: f64 = 8.0;

/// By how much faster and slower writes change that, at most.
const TWICE: [f64; 2] = [0.5, 2.0];

/// MB/s below which it is the bus that takes the time, and no cache looks fast.
const BUS: f64 = 2.0;

/// So many slow writes that would be met with few AUs, if the number did not matter, are enough to compare; so many times fewer show that it does.
const MET: f64 = 4.0;

/// Slow writes of a whole search that may be those of a large buffer.
const RAREST: f64 = 8.0;

/// Visits to two AUs, at least, that are compared with those to many; these take so many times as long. Assumed: less is what a
/// map of pages costs that holds more places.
const FEW: usize = 6;
const DEARER: f64 = 1.2;

/// Bytes between which sizes of caches are taken to be spread evenly by logarithm. Assumed: they put scores in order, and the maps of
/// `confidence.tsv` make shares of them.
const CACHES: [f64; 2] = [(1u64 << 24) as f64, (1u64 << 33) as f64];

/// Most open AUs that anybody has reported, about.
const LIMITS: f64 = 64.0;

/// The share of what could hide a limit that is left where so many bytes were written and `n` AUs settled: caches that large, and limits
/// that low. The more was written, the fewer caches would have taken it all; a bound of two is true of nearly all cards, hidden or not.
fn hiding(written: u64, n: u32) -> f64 {
    let lower = f64::from(n).max(1.0).ln() / LIMITS.ln();
    larger(written) * lower.clamp(0.0, 1.0)
}

/// So few writes fill an erase block before another is opened for one more: hardly any is closed in part.
pub(super) const FEW_WRITES: u64 = 4;

/// The share of caches that are larger than so many bytes.
fn larger(written: u64) -> f64 {
    let [least, most] = CACHES;
    (1.0 - (written as f64 / least).max(1.0).ln() / (most / least).ln()).clamp(0.0, 1.0)
}

/// How many times as often a limit is hidden behind writes of so many MB/s.
fn cached(rate: f64) -> f64 {
    if rate < BUS { 1.0 } else { (rate / DIRECT).sqrt().clamp(TWICE[0], TWICE[1]) }
}

impl Seen<'_> {
    /// All that were tried stay open, or a cache hides what does not.
    pub(super) fn no_limit(&self) -> Vec<Finding> {
        let Seen { run, k, top, largest, base, .. } = *self;
        if largest == 1 {
            return vec![Finding::undecided(self.q, "the run ended before two AUs were tried")];
        }
        if let Some(why) = self.fills_a_block() {
            return self.neither(format!("{why}, which incurs no merge with any number of AUs; shorter writes would decide it"));
        }
        if let Some((few, many)) = self.rising() {
            let (few, many) = (three(few / 1e3), three(many / 1e3));
            let why = format!("a write takes {few} ms with few AUs interleaved and {many} ms with many, and is never slower");
            return self.neither(format!("{why}: merges of a small erase block, or pieces of a map that are moved"));
        }
        if let Some((one, more)) = self.small_blocks() {
            let (one, more) = (three(one / 1e3), three(more / 1e3));
            return self.neither(format!(
                "a write of {} takes {one} ms with one AU and {more} ms with more: a change of AU, or merges of erase blocks hardly larger; \
                 shorter writes would decide it",
                Bytes(self.slots.chunk)
            ));
        }
        if self.may_merge_each() {
            return self.neither(format!(
                "each write of {} takes {} ms, with any number of AUs: on a card this small it may be an erase block, or half of one, and incur a merge \
                 each time; shorter writes would decide it",
                Bytes(self.slots.chunk),
                three(base / 1e3)
            ));
        }
        let agree = top >= 0.5;
        if let Some((few, many)) = self.shared().filter(|_| agree) {
            let why = format!(
                "no single AU incurs a merge, but with many interleaved a write takes {} ms on average, with few {} ms: they share a log",
                three(many / 1e3),
                three(few / 1e3)
            );
            return vec![Finding::undecided(self.q, why.clone()), Finding::decided(Quantity::Mapping, 1.0, 0.7).evidence(why)];
        }
        if let Some((few, many)) = self.may_share().filter(|_| agree) {
            return self.neither(format!(
                "most writes take {} ms, and with many AUs interleaved {} ms on average, with few {} ms: a log that all share may be emptied",
                three(base / 1e3),
                three(many / 1e3),
                three(few / 1e3)
            ));
        }
        if let Some(mean) = self.emptied().filter(|_| agree && self.random || self.at_any_number()) {
            let (mean, most) = (three(mean / 1e3), three(base / 1e3));
            return self.neither(format!(
                "most writes take {most} ms, and {mean} ms on average, however many AUs are interleaved: a log or a buffer is emptied"
            ));
        }
        if !agree {
            let why = "slow writes came and went: the times do not agree";
            let ended = "the run ended before the slow writes could be distinguished from stalls";
            let why = if run.ended == Ended::Complete { why } else { ended };
            return vec![self.at_rest(why, self.sure(self.belief.proved)).unwrap_or_else(|| Finding::undecided(self.q, why))];
        }
        // A fast cache in front (SLC, or a small-write log) takes all that such a test writes and hides what lies beyond it.
        if let Some(cache) = run.believed.filled().map(|f| f.1).filter(|&c| c > 0) {
            let why = format!("a write cache took {} and hides what lies beyond it even when it is full", Bytes(cache));
            return self.neither(why);
        }
        let trust = top * self.sure(k);
        let why = if self.slots.count as i64 <= largest {
            format!("no cost up to {k} AUs; {} has room for no more", self.run.stretch())
        } else if largest < MOST {
            format!("no cost up to {k} AUs; the run ended there")
        } else {
            format!("no cost up to {k} AUs: more than anybody needs, or the card has no such limit")
        };
        // Too little for all that were tried: what came to rest is more surely open.
        if trust < SAID
            && let Some(bound) = self.at_rest(&why, self.sure(self.belief.proved))
        {
            return vec![Finding { never_slow: true, ..bound }, Finding::undecided(Quantity::Mapping, why)];
        }
        let each = format!("{} ms a write of {}", three(base / 1e3), Bytes(self.slots.chunk));
        let as_with = if self.changes { "as with two: changing AU costs that" } else { "as with one AU" };
        let text = format!("{k} AUs interleaved, {}: {each}, {as_with}", self.order());
        let written = self.written();
        let caveat = format!("a write cache of more than {} MiB would hide a limit beyond it", written / MIB);
        let mapping = if run.believed.erase_block().is_some() {
            Finding::undecided(
                Quantity::Mapping,
                format!("the card has erase blocks, yet no cost up to {k} AUs: a cache hides it, or it maps pages"),
            )
        } else if k as i64 >= MOST {
            // Places close together may lie in few AUs.
            let odds = larger(written) * cached(self.rate()) * self.no_cache() * (1.0 - NO_LIMIT_BY_PAGE) / NO_LIMIT_BY_PAGE;
            let other = (odds / (1.0 + odds)).max(if self.slots.spacing < 48 * MIB { 0.2 } else { 0.0 });
            Finding::decided(Quantity::Mapping, BY_PAGE, top * (1.0 - other)).rivals([(1.0, other)]).evidence(text.clone())
        } else {
            Finding::undecided(Quantity::Mapping, why.clone())
        };
        let bound = Finding::at_least(self.q, k as f64, trust, why).evidence(text).caveat(caveat.clone());
        vec![Finding { never_slow: true, ..bound }, mapping.caveat(caveat)]
    }

    /// How sure it is that no cache hides a limit below `n`.
    pub(super) fn sure(&self, n: u32) -> f64 {
        let hidden = if self.run.believed.erase_block().is_some() { 1.0 - HIDDEN } else { (1.0 - UNSEEN) * self.no_cache() };
        1.0 - (hidden * cached(self.rate())).min(1.0) * hiding(self.written(), n)
    }

    /// What is left of the chance of a cache once one was looked for.
    fn no_cache(&self) -> f64 {
        if self.run.believed.filled().is_some_and(|f| f.0 > 0) { NO_CACHE_FOUND } else { 1.0 }
    }

    /// Bytes that the search wrote, and those that were to fill a cache before.
    fn written(&self) -> u64 {
        writes(self.run).map(|s| s.len).sum::<u64>() + self.run.believed.filled().map_or(0, |f| f.0)
    }

    /// MB/s of its writes.
    fn rate(&self) -> f64 {
        self.slots.chunk as f64 / self.base
    }

    /// Do few writes fill an erase block of so many bytes?
    pub(super) fn few_fill(&self, block: u64) -> bool {
        block < FEW_WRITES * self.slots.chunk
    }

    /// Do few writes fill the smallest erase block, where it is not known?
    fn may_fill(&self) -> bool {
        self.run.believed.erase_block().is_none() && self.few_fill(SMALLEST_BLOCK)
    }

    /// Why each write may fill an erase block: it is known, or reads show a boundary above as many pages as are read together.
    fn fills_a_block(&self) -> Option<String> {
        let (believed, chunk) = (self.run.believed, self.slots.chunk);
        if let Some(block) = believed.whole(Quantity::EraseBlock) {
            return self.few_fill(block).then(|| format!("writes of {} fill erase blocks of {}", Bytes(chunk), Bytes(block)));
        }
        let boundary = believed.whole(Quantity::AccessUnit)?;
        let least = believed.whole(Quantity::Page).or(believed.write_unit())?;
        (boundary <= chunk && boundary > TOGETHER * least).then(|| {
            format!(
                "reads show a boundary every {}, more than pages that are read together: an erase block, maybe, and writes of {} fill it",
                Bytes(boundary),
                Bytes(chunk)
            )
        })
    }

    /// Median time in µs of a write with two AUs in turn, and with dozens, where most of these take longer than most of those: a
    /// merge that costs less than the write itself shows so. Two pay for any change of AU already.
    fn rising(&self) -> Option<(f64, f64)> {
        let [few, many] = [2..=2, 16..=MOST].map(|of| self.visits(of, 1));
        let apart = few.len() >= FEW && many.len() >= FEW && quantile(&many, 0.25) > quantile(&few, 0.75);
        let [less, more] = [median(&few), median(&many)];
        (apart && more > DEARER * less).then_some((less, more))
    }

    /// Mean time in µs of a write with one AU in linear order, and with more, where these take as much longer as an erase takes, erase blocks are not known
    /// and the smallest of them hold few such writes: what a merge copies there is less than the write itself. Stalls, a tenth of them, are left out.
    fn small_blocks(&self) -> Option<(f64, f64)> {
        let (one, more) = (fast(self.run), self.visits(2..=MOST, 1));
        let mean_and_error = |t: &[f64]| {
            let most = quantile(t, 0.9);
            let t: Vec<f64> = t.iter().copied().filter(|t| *t <= most).collect();
            (mean(&t), deviation(&t) / (t.len() as f64).sqrt())
        };
        let ((less, error), (most, other)) = (mean_and_error(&one), mean_and_error(&more));
        let apart = one.len() >= FEW - 1 && more.len() >= FEW && most - less > 3.0 * error.hypot(other);
        (self.may_fill() && apart && most > DEARER * less && most - less > ERASES).then_some((less, most))
    }

    /// May each write be as long as half the smallest erase block of a small card, and take as long as merging one does?
    fn may_merge_each(&self) -> bool {
        let small = self.run.setting("size").is_some_and(|size| size <= LARGEST_SMALL);
        // Older cards have erase blocks of 16 KiB and more: what takes so long for one unit is no page that is programmed.
        let units = self.run.believed.write_unit().map_or(1, |u| (self.slots.chunk / u).max(1));
        small && (self.may_fill() && merges(self.base) || self.run.believed.erase_block().is_none() && merges(self.base / units as f64))
    }

    /// Mean time in µs of a write with few AUs in turn and with many, where rare slow ones make many dear and few not. Emptying a log that
    /// all AUs share costs the more, the more of them lie in it; collecting garbage in a map of pages costs the same. Where the slow ones
    /// come with new AUs only, those are compared with each other.
    fn shared(&self) -> Option<(f64, f64)> {
        let (few, many, seldom) = self.few_and_many();
        let extra = |t: &[f64]| mean(t) - self.base;
        let [less, more] = [1..=8, 24..=MOST].map(|of| self.visits(of, 0).into_iter().filter(|t| self.slow(*t)).collect::<Vec<f64>>());
        let longer = less.len().min(more.len()) >= 4 && extra(&more) > 3.0 * extra(&less);
        (many > 3.0 * self.base && (seldom || longer)).then_some((few, many))
    }

    /// The same, where what they add is less than that, and still too long for pages that are moved one by one.
    fn may_share(&self) -> Option<(f64, f64)> {
        let (few, many, seldom) = self.few_and_many();
        (seldom && many - self.base > (0.3 * self.base).max(ERASES)).then_some((few, many))
    }

    /// Mean time in µs of a write with few AUs in turn and with many; whether slow ones come so much more often with many that it is no chance.
    fn few_and_many(&self) -> (f64, f64, bool) {
        let (few, many) = (self.visits(1..=8, 1), self.visits(24..=MOST, 1));
        let often = self.expected(&few, &many) >= MET;
        let (few, many) = (mean(&few), mean(&many));
        (few, many, often && many - self.base > 3.0 * (few - self.base))
    }

    /// µs of the visits in this order from a round on (0: those that open an AU, too), with so many AUs in turn.
    fn visits(&self, of: std::ops::RangeInclusive<i64>, from: u8) -> Vec<f64> {
        let cells = self.run.cells.iter().filter(|c| c.get("random") == self.random as i64 && of.contains(&c.get("n")));
        cells.flat_map(|c| self.run.of(c.id)).filter(|s| s.is_write() && s.role >= from).map(|s| s.took.micros()).collect()
    }

    /// Do slow writes come whatever the number of AUs? Where too few were made to few AUs to say, only the rarest pauses pass for that: a table
    /// that evicts at random has more slow ones, once there are too many AUs.
    fn at_any_number(&self) -> bool {
        let (few, all) = (self.visits(1..=self.largest / 3, 1), self.visits(1..=MOST, 1));
        let expected = self.expected(&few, &all);
        if expected >= MET { self.slow_ones(&few) >= expected / MET } else { self.slow_ones(&all) <= RAREST }
    }

    fn slow(&self, us: f64) -> bool {
        us > 3.0 * self.base
    }

    fn slow_ones(&self, of: &[f64]) -> f64 {
        of.iter().filter(|t| self.slow(**t)).count() as f64
    }

    /// Slow visits that would be met among the few, if they came there as they do among the many.
    fn expected(&self, few: &[f64], many: &[f64]) -> f64 {
        self.slow_ones(many) * few.len() as f64 / many.len().max(1) as f64
    }

    /// Mean time in µs of a write in this order, where the slow ones take more time in all than the others, whatever the number of AUs. A
    /// log or a buffer that all AUs share is emptied so, and so is a map of pages short of room: what merges cost lies in such pauses, so that
    /// neither a limit shows, nor that there is none.
    fn emptied(&self) -> Option<f64> {
        let all = self.visits(1..=MOST, 1);
        (!all.is_empty()).then(|| mean(&all)).filter(|m| *m > 2.0 * self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_likelier_behind_fast_writes_and_a_slow_bus_says_nothing() {
        assert!(cached(3.0) < cached(8.0) && cached(8.0) < cached(30.0));
        assert_eq!((cached(1.5), cached(DIRECT), cached(1000.0)), (1.0, 1.0, TWICE[1]));
    }

    #[test]
    fn the_more_was_written_and_the_lower_the_bound_the_less_is_hidden() {
        let gib = 1u64 << 30;
        for n in [2, 5, 17, 64, 96] {
            assert!(hiding(gib / 64, n) > hiding(gib, n) && hiding(gib, n) > hiding(4 * gib, n), "{n}");
        }
        for written in [0, gib / 64, gib, 4 * gib] {
            assert!(hiding(written, 96) >= hiding(written, 17) && hiding(written, 17) > hiding(written, 2), "{written}");
        }
        assert!((hiding(0, 96) - 1.0).abs() < 1e-9 && hiding(64 * gib, 96) == 0.0 && hiding(0, 1) == 0.0);
    }
}
