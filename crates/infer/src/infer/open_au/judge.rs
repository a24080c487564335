//! What the visits of AUs say: a limit, none, a cache that was full, or nothing.

mod doubts;
mod limit;
mod no_limit;

use super::*;
use crate::finding::Number;
use crate::infer::stats::ln_choose;
use crate::samples::Ended;
use std::collections::BTreeMap;

/// What the visits in one order show.
struct Seen<'a> {
    run: &'a Case<'a>,
    random: bool,
    q: Quantity,
    slots: Slots,
    /// µs of a write that closes nothing: where more than one AU is in turn, one that goes to another AU than the last.
    base: f64,
    /// It is that change that costs, whatever the number of AUs.
    changes: bool,
    /// µs above which a write is slow; `None` when none was.
    line: Option<f64>,
    /// The most AUs that were in turn in this order.
    largest: i64,
    /// The most that any cell asks for: "no limit" in the belief.
    most: u32,
    belief: Belief,
    /// The likeliest count of AUs that stay open, and its chance.
    k: u32,
    top: f64,
}

/// ln of the ways to choose the AUs that were never slow, of all cells, from which on it is no chance that they lie at the front.
const BY_PLACE: f64 = 5.0;

/// Is it no chance (e^-12) that none of so many visits was slow, where of others this share was?
fn no_chance(visits: f64, slow: f64) -> bool {
    visits * -(1.0 - slow).max(0.05).ln() > 12.0
}

/// µs to copy so many bytes, at 100 MB/s at best.
fn copied_in(bytes: u64) -> f64 {
    bytes as f64 / 100.0
}

/// The findings of one order.
pub fn judge(run: &Case, random: bool) -> Vec<Finding> {
    let q = if random { Quantity::OpenAusRandom } else { Quantity::OpenAusLinear };
    let seen = match Seen::of(run, q) {
        Ok(seen) => seen,
        Err(why) => return vec![Finding::undecided(q, why)],
    };
    let unlimited = seen.k == seen.most;
    let other = seen.not_closings();
    other.or_else(|| unlimited.then(|| seen.no_limit())).or_else(|| seen.hidden()).unwrap_or_else(|| seen.limit())
}

impl<'a> Seen<'a> {
    /// The error says why nothing can be told, where too little was measured.
    fn of(run: &'a Case<'a>, q: Quantity) -> Result<Seen<'a>, String> {
        let random = q == Quantity::OpenAusRandom;
        let slots = Slots::of(run).ok_or_else(|| format!("{} has no room for two AUs", run.stretch()))?;
        let fast = fast(run);
        if fast.len() < 3 {
            return Err("the run ended before one AU was measured".into());
        }
        if median(&fast) <= 0.0 {
            return Err("writes take no time".into());
        }
        let tried = run.cells.iter().filter(|c| c.get("random") == random as i64 && run.of(c.id).next().is_some());
        let largest = tried.map(|c| c.get("n")).max().ok_or("the run ended before this order was tried")?;
        let most = most(run).max(largest) as u32;
        let none_slow = || Belief {
            by: ByPolicy { p: vec![(most, 0.97)], rules: 0.0, foretells: 0.0, free: None },
            proved: 0,
            last: vec![],
            taken_back: false,
        };
        let belief = Belief::of(run, random).unwrap_or_else(none_slow);
        let (k, top) = belief.by.p.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0));
        let moves = moves(run).filter(|_| k > 1);
        let (base, changes) = (median(moves.as_ref().unwrap_or(&fast)), moves.is_some());
        Ok(Seen { run, random, q, slots, base, changes, line: slow_line(run), largest, most, belief, k, top })
    }

    fn order(&self) -> &'static str {
        if self.random { "random" } else { "sequential" }
    }

    /// Where slow writes belong to no number: what came to rest is a bound all the same, `at_most` as sure.
    fn at_rest(&self, why: &str, at_most: f64) -> Option<Finding> {
        let Seen { run, q, base, ref belief, .. } = *self;
        let n = belief.proved;
        if n < 2 {
            return None;
        }
        let sure = belief.by.p.iter().filter(|p| p.0 >= n).map(|p| p.1).sum::<f64>().min(at_most);
        let why = if run.ended == Ended::Complete { why } else { "the run ended before it was clear how many more are kept open" };
        let each = format!("{} ms a write of {}", three(base / 1e3), Bytes(self.slots.chunk));
        let text = format!("{n} AUs interleaved, {}, settled: {each}", self.order());
        Some(Finding::at_least(q, f64::from(n), sure, why).evidence(text))
    }

    /// A count with what settled once beside it.
    fn once(&self, f: Finding, n: u32) -> Finding {
        Finding { settled_once: (f.quantity == self.q).then_some(Number(f64::from(n))), ..f }
    }

    /// The writes in µs that are slow where more AUs are in turn than stay open.
    fn over(&self) -> Vec<f64> {
        let line = self.line.unwrap_or(f64::INFINITY);
        let mut over = later(self.run, |c| c.get("random") == self.random as i64 && c.get("n") > self.k as i64);
        over.retain(|&t| t > line);
        over
    }

    /// Neither the count nor the mapping is told.
    fn neither(&self, why: String) -> Vec<Finding> {
        vec![Finding::undecided(self.q, why.clone()), Finding::undecided(Quantity::Mapping, why)]
    }

    /// No AU stays open at all. Both orders see the same: the first one says what it means.
    fn rewritten(&self, why: String) -> Vec<Finding> {
        let known = self.run.believed.whole(Quantity::Mapping) == Some(3) && self.random;
        let mapping = Finding::decided(Quantity::Mapping, 3.0, 0.85).evidence(why.clone());
        [Finding::decided(self.q, 0.0, 0.85).evidence(why)].into_iter().chain((!known).then_some(mapping)).collect()
    }

    /// Writes that cost the same whatever the order and the number either keep no AU open or need none, and what is slow now and
    /// then need not be a closing.
    fn not_closings(&self) -> Option<Vec<Finding>> {
        let Seen { run, base, largest, .. } = *self;
        let unlimited = self.k == self.most;
        // What is gathered in front of the flash may look like a unit as large: then a write takes less than copying the erase block.
        if run.believed.write_unit().zip(run.believed.erase_block()).is_some_and(|(w, e)| w >= e && base >= copied_in(e)) {
            return Some(self.rewritten("a write takes as long as one of a whole erase block, so every write incurs a merge".into()));
        }
        if let Some((write, read)) = rewrites(run).filter(|_| unlimited && largest >= 4) {
            return Some(self.rewritten(format!(
                "each write of {} takes {} ms, reading it {} ms: more is rewritten than was sent",
                Bytes(self.slots.chunk),
                three(write),
                three(read)
            )));
        }
        // Pauses that take less time than the writes are those of any map of pages that collects garbage, where no limit was seen.
        let paused = self.line.and_then(|l| regular(run, l)).filter(|(every, pause)| !unlimited || *pause > *every as f64 * base);
        if let Some((every, _)) = paused {
            return Some(
                self.neither(format!("one write of every {every} is slow, however many AUs are interleaved: a log or a buffer is emptied")),
            );
        }
        // Closing copies most of an AU: would that have stood out of a write through this host?
        let closing = copied_in(run.believed.erase_block().unwrap_or(4 * MIB));
        if let Some((write, read)) = may_rewrite(run).filter(|_| unlimited) {
            return Some(self.neither(format!(
                "each write of {} takes {} ms, reading it {} ms: it may be rewriting an erase block, and what a write programs at once is not known",
                Bytes(self.slots.chunk),
                three(write),
                three(read)
            )));
        }
        if unlimited && base > 0.7 * closing {
            return Some(self.neither(format!(
                "a write of {} takes {} ms through this host; a merge would hardly show",
                Bytes(self.slots.chunk),
                three(base / 1e3)
            )));
        }
        None
    }

    /// Closings were seen, but not because of the number of AUs.
    fn hidden(&self) -> Option<Vec<Finding>> {
        let run = self.run;
        let line = self.line.unwrap_or(f64::INFINITY);
        if let Some(end) = became_slow(run, line) {
            return Some(self.filled_up(line, end));
        }
        if self.belief.taken_back {
            let n = self.belief.proved;
            let found = self.neither(format!(
                "{n} AUs settled at first, and did not later: a cache was full, or what was written before takes room in the card's table"
            ));
            return Some(found.into_iter().map(|f| self.once(f, n)).collect());
        }
        if let Some(at) = self.silent_above(line).filter(|_| !self.belief.foretold() || self.belief.by.free.is_some()) {
            let why = format!(
                "writes past {} are never slow, while those before are: another kind of memory, or none (the capacity test would decide)",
                Bytes(at)
            );
            return Some(vec![Finding::undecided(self.q, why)]);
        }
        if let Some((quiet, at)) = self.silent_below(line).filter(|_| self.belief.by.free.is_none()) {
            let why = format!(
                "writes before {} are never slow, while those beyond are: AUs there need no room in the table, and {quiet} of those that were \
                 interleaved lie there",
                Bytes(at)
            );
            return Some(vec![Finding::undecided(self.q, why)]);
        }
        let buffer = pays_every(run, line, median(&self.over())).filter(|_| self.k == 1)?;
        Some(self.rewritten(format!("one AU alone stalls after every {}: it is rewritten when a buffer is full", Bytes(buffer))))
    }

    /// Where the AUs begin that are never slow, though with more of them than fit those before are: it cannot be chance. A counterfeit
    /// card throws away what is written behind its flash.
    fn silent_above(&self, line: f64) -> Option<u64> {
        let run = self.run;
        // The capacity test found flash up to the end: AUs that came last in each row may have stayed open.
        let ends = run.setting("offset").unwrap_or(0) + run.setting("size").unwrap_or(u64::MAX);
        if run.believed.whole(Quantity::Capacity).is_some_and(|holds| holds >= ends) {
            return None;
        }
        let cells = run.cells.iter().filter(|c| c.get("random") == self.random as i64 && c.get("n") > self.k as i64);
        let visits = cells.flat_map(|c| run.of(c.id)).filter(|s| s.role > 0);
        let visits: Vec<(u64, bool)> = visits.map(|s| (slot_of(&self.slots, s), s.took.micros() > line)).collect();
        let edge = visits.iter().filter(|v| v.1).map(|v| v.0).max()?;
        let before = visits.iter().filter(|v| v.0 <= edge).count();
        let slow = visits.iter().filter(|v| v.1).count() as f64 / before as f64;
        no_chance((visits.len() - before) as f64, slow).then(|| self.slots.at(edge + 1))
    }

    /// How many AUs at the front are never slow, though with more of them than fit those beyond are, and where these begin: a FAT zone, or a part
    /// that is mapped by page. A table that evicts what came last leaves all but two of those that fit alone; fewer are none of its. Where any AU
    /// may be evicted, those that never were lie at the front by chance once in as many times as there are ways to choose them.
    fn silent_below(&self, line: f64) -> Option<(usize, u64)> {
        let run = self.run;
        let cells = run.cells.iter().filter(|c| c.get("random") == self.random as i64 && c.get("n") > self.k as i64);
        let (mut by_place, mut visits, mut slow, mut before) = (0.0, 0.0, 0.0, 0.0);
        let (mut most, mut edge) = (0, u64::MAX);
        for cell in cells {
            // By AU: visits, and slow ones.
            let mut aus: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
            for s in run.of(cell.id).filter(|s| s.role > 0) {
                let (all, late) = aus.entry(slot_of(&self.slots, s)).or_default();
                *all += 1.0;
                *late += f64::from(s.took.micros() > line);
            }
            let quiet = aus.values().take_while(|v| v.1 == 0.0).count();
            if quiet == aus.len() {
                continue;
            }
            if aus.values().skip(quiet).any(|v| v.1 == 0.0) {
                return None;
            }
            by_place += ln_choose(aus.len() as f64, quiet as f64);
            before += aus.values().take(quiet).map(|v| v.0).sum::<f64>();
            visits += aus.values().skip(quiet).map(|v| v.0).sum::<f64>();
            slow += aus.values().map(|v| v.1).sum::<f64>();
            (most, edge) = (most.max(quiet), edge.min(aus.keys().nth(quiet).copied().unwrap_or(edge)));
        }
        let told = by_place > BY_PLACE && no_chance(before, slow / visits);
        (told && most + 1 < self.k as usize).then(|| (most, self.slots.at(edge)))
    }

    /// One AU alone was slow in the end, `end` microseconds a write: a cache was full.
    fn filled_up(&self, line: f64, end: f64) -> Vec<Finding> {
        let run = self.run;
        let first = run.samples.iter().position(|s| s.role > 0 && s.took.micros() > line).unwrap_or(run.samples.len());
        let taken = run.samples[..first].iter().map(|s| s.len).sum::<u64>();
        let why = "writes to one AU alone became as slow: a cache was full, whatever the number of AUs".to_string();
        let text = format!(
            "one AU, sequential: {} ms a write of {} at first, {} ms in the end",
            three(self.base / 1e3),
            Bytes(self.slots.chunk),
            three(end / 1e3)
        );
        let all = run.samples.iter().map(|s| s.len).sum::<u64>() as f64;
        let mut cache = Finding::at_least(Quantity::WriteCache, taken as f64, 0.7, "what was written before took part of it");
        cache.interval = Some([0.0, all]);
        let [count, mapping] = [self.q, Quantity::Mapping].map(|q| Finding::undecided(q, why.clone()));
        vec![count.evidence(text.clone()), mapping, cache.evidence(text)]
    }
}

#[cfg(test)]
mod tests;
