//! Log blocks: one for each open erase block, or a pool that all share.

use crate::card::{Card, Gather, Mapping};
use std::collections::{BTreeSet, HashSet, VecDeque};

/// An open erase block and its log.
struct Log {
    block: u64,
    /// Next byte in sequence, from the start of the block.
    next: u64,
    /// Units of the block that are in the log (or were copied to it).
    there: HashSet<u64>,
    /// Units of the log in use.
    used: u64,
    /// Written out of order.
    random: bool,
    /// A unit is filled up in memory.
    partial: bool,
}

impl Log {
    fn new(block: u64) -> Self {
        Log { block, next: 0, there: HashSet::new(), used: 0, random: false, partial: false }
    }
}

/// The state of a card mapped by erase block.
pub struct Logs {
    /// Oldest or least recently used first.
    open: VecDeque<Log>,
    /// Erase blocks that hold data.
    data: HashSet<u64>,
    /// None were ever erased: all of the card holds data.
    all: bool,
    last: u64,
    /// Merges so far, full and partial.
    pub merges: u64,
    /// A pool's blocks, oldest first: which erase blocks have units in them, and units in use.
    pool: VecDeque<(BTreeSet<u64>, u64)>,
    erased: HashSet<u64>,
    /// A pool's log for writes in sequence.
    run: Option<(u64, u64)>,
}

impl Logs {
    /// The state after the card was filled, or never written.
    pub fn new(card: &Card) -> Self {
        Logs {
            open: VecDeque::new(),
            data: HashSet::new(),
            all: card.filled,
            last: u64::MAX,
            merges: 0,
            pool: VecDeque::new(),
            erased: HashSet::new(),
            run: None,
        }
    }

    /// Whether there is something to copy from.
    pub fn holds(&self, block: u64) -> bool {
        self.data.contains(&block) || self.all && !self.erased.contains(&block)
    }

    /// All of these blocks were erased.
    pub fn erase(&mut self, block: u64) {
        self.data.remove(&block);
        self.erased.insert(block);
        self.open.retain(|l| l.block != block);
    }

    fn close(&mut self, log: Log, card: &Card) -> f64 {
        let units = card.block / card.unit;
        let held = self.holds(log.block);
        self.data.insert(log.block);
        self.erased.remove(&log.block);
        let full = log.there.len() as u64 == units;
        if full && (!log.random || card.mapped_inside) {
            // The log takes the place of the block.
            return if held { card.erase } else { 0.0 };
        }
        self.merges += 1;
        let moved = if self.levels(card) { card.full_merge() } else { 0.0 };
        let copied = match (log.random, held) {
            (true, true) => units,
            (true, false) => log.there.len() as u64,
            (false, true) => units - log.there.len() as u64,
            (false, false) => 0,
        };
        copied as f64 * card.copy_unit() + card.erase + moved
    }

    fn levels(&self, card: &Card) -> bool {
        card.level_every > 0 && self.merges.is_multiple_of(card.level_every)
    }

    /// Writes over any number of erase blocks; what it takes beside the command, in ns.
    pub fn write_all(&mut self, at: u64, len: u64, card: &Card) -> f64 {
        let (mut t, mut now, end) = (0.0, at, at + len);
        while now < end {
            let block = card.block_of(now);
            let stop = card.start_of(block + 1).min(end);
            t += self.write(block, now - card.start_of(block), stop - now, card);
            now = stop;
        }
        t
    }

    /// Writes inside one erase block; what it takes beside the command, in ns.
    fn write(&mut self, block: u64, from: u64, len: u64, card: &Card) -> f64 {
        let mut t = 0.0;
        if block != self.last {
            t += if self.last == u64::MAX { 0.0 } else { card.switch };
            if card.gather == Gather::Last
                && let Some(l) = self.open.iter_mut().find(|l| l.block == self.last && l.partial)
            {
                // The unit in memory goes down half filled.
                l.partial = false;
                t += card.program;
            }
            self.last = block;
        }
        if block < card.fat {
            return t + len.div_ceil(card.page) as f64 * card.write_unit(card.page.min(len));
        }
        match card.mapping {
            Mapping::Pool => t + self.write_pool(block, from, len, card),
            _ => t + self.write_log(block, from, len, card),
        }
    }

    fn write_log(&mut self, block: u64, from: u64, len: u64, card: &Card) -> f64 {
        let mut t = 0.0;
        let place = self.open.iter().position(|l| l.block == block);
        let mut log = match place {
            Some(i) => self.open.remove(i).expect("just found"),
            None => {
                if self.open.len() >= card.open {
                    let victim = self.open.pop_front().expect("a card has at least one");
                    t += self.close(victim, card);
                }
                Log::new(block)
            }
        };
        if from == 0 && log.used > 0 && !log.random {
            // Begun anew: the old log is merged, a new one taken.
            t += self.close(log, card);
            log = Log::new(block);
        }
        let ahead = from > log.next;
        let may_copy = ahead && (!card.starts_anywhere || log.used > 0);
        if from != log.next && !log.random {
            if !ahead || card.random > 0 && log.used > 0 {
                t += self.turn_random(&mut log, card);
            } else if may_copy && self.holds(block) {
                // The part before is copied, so that the log stays in order.
                let first = log.next / card.unit;
                let units = from / card.unit - first;
                t += units as f64 * card.copy_unit();
                log.there.extend(first..first + units);
                log.used += units;
            }
        }
        let continues = from == log.next && log.partial;
        t += self.program(&mut log, from, len, continues, card);
        log.next = from + len;
        log.partial = card.gather != Gather::None && !log.next.is_multiple_of(card.unit);
        let units = card.block / card.unit;
        if log.used >= units && (log.random || log.next >= card.block || log.used > units) {
            return t + self.close(log, card);
        }
        match place {
            // Another may have given way meanwhile.
            Some(i) if card.oldest => self.open.insert(i.min(self.open.len()), log),
            _ => self.open.push_back(log),
        }
        t
    }

    /// A log becomes one of those in random order; another of them may have to give way.
    fn turn_random(&mut self, log: &mut Log, card: &Card) -> f64 {
        let mut t = 0.0;
        if card.random == 0 {
            let done =
                Log { block: log.block, next: 0, there: std::mem::take(&mut log.there), used: log.used, random: false, partial: false };
            t += self.close(done, card);
            log.used = 0;
            return t;
        }
        if self.open.iter().filter(|l| l.random).count() >= card.random {
            let i = self.open.iter().position(|l| l.random).expect("counted");
            let victim = self.open.remove(i).expect("just found");
            t += self.close(victim, card);
        }
        log.random = true;
        t
    }

    fn program(&mut self, log: &mut Log, from: u64, len: u64, continues: bool, card: &Card) -> f64 {
        let mut t = 0.0;
        let end = from + len;
        for unit in from / card.unit..end.div_ceil(card.unit) {
            let low = (unit * card.unit).max(from);
            let high = ((unit + 1) * card.unit).min(end);
            let whole = high - low == card.unit;
            let first = log.there.insert(unit);
            if !whole && continues && unit == from / card.unit {
                // Filled up in memory: programmed once, when it is full.
                t += (high - low) as f64 * card.bus;
                if high == (unit + 1) * card.unit {
                    t += card.program_of(log.used);
                }
                continue;
            }
            if !whole && low == unit * card.unit && card.gather != Gather::None {
                t += (high - low) as f64 * card.bus;
                log.used += 1;
                continue;
            }
            if !whole && (!first || self.holds(log.block)) {
                t += card.sense + card.unit as f64 * card.bus;
            }
            t += card.program_of(log.used) + (high - low) as f64 * card.bus;
            if first || card.wasteful || log.random {
                log.used += 1;
            }
        }
        t
    }

    fn write_pool(&mut self, block: u64, from: u64, len: u64, card: &Card) -> f64 {
        let units = card.block / card.unit;
        let touched = len.div_ceil(card.unit).max(1);
        let mut t = touched as f64 * card.write_unit(card.unit.min(len));
        if !len.is_multiple_of(card.unit) && self.holds(block) {
            t += card.sense;
        }
        match self.run {
            Some((b, next)) if b == block && next == from => {
                self.run = Some((b, from + len));
                if from + len >= card.block {
                    self.run = None;
                    self.data.insert(block);
                    t += card.erase;
                }
                return t;
            }
            _ if from == 0 => {
                if let Some((b, next)) = self.run.replace((block, len)) {
                    self.merges += 1;
                    let rest = if self.holds(b) { units - next / card.unit } else { 0 };
                    self.data.insert(b);
                    t += rest as f64 * card.copy_unit() + card.erase;
                }
                return t;
            }
            _ => {}
        }
        if self.pool.back().is_none_or(|l| l.1 + touched > units) {
            if self.pool.len() >= card.open {
                let (owners, _) = self.pool.pop_front().expect("a pool has blocks");
                for b in owners {
                    self.merges += 1;
                    t += if self.holds(b) { card.full_merge() } else { card.erase };
                    self.data.insert(b);
                    self.pool.iter_mut().for_each(|l| {
                        l.0.remove(&b);
                    });
                }
                t += card.erase;
            }
            self.pool.push_back((BTreeSet::new(), 0));
        }
        let log = self.pool.back_mut().expect("just made");
        log.0.insert(block);
        log.1 += touched;
        t
    }
}
