//! Log blocks: groups of N data blocks share at most K log blocks, out of a pool. Writes go to the log in the order they
//! come; a log block that has to make room is merged with the data blocks it has pages of. N = 1 and K = 1 is BAST
//! (Kim et al. 2002), one group over everything with a sequential log is FAST (Lee et al. 2007), something between is a
//! superblock or set-associative scheme (Kang et al. 2006). Logs in order that hold one run of one data block each are the
//! plain table of open AUs. Pages here are write units.

use crate::account::Event;
use crate::counters::Counters;
use crate::ftl::WriteCost;
use crate::model::{Evict, LogOrder, Model};
use crate::nand::Grid;
use crate::rng::Rng;
use crate::wear::Wear;

const NONE: u32 = u32::MAX;

/// Work set off by a write: write units copied, erase blocks erased, merges by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Write units copied.
    pub copies: u64,
    /// Erase blocks erased.
    pub erases: u64,
    /// Log blocks that became data blocks.
    pub switches: u64,
    /// Log blocks filled up from the old data.
    pub partials: u64,
    /// Data blocks put together anew.
    pub fulls: u64,
}

/// The shape of a log-block layer.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Data blocks.
    pub blocks: u32,
    /// Pages a block.
    pub pages: u32,
    /// Data blocks that share log blocks (N).
    pub group: u32,
    /// Log blocks a group may have (K).
    pub per_group: u32,
    /// Log blocks in all, the sequential one not counted.
    pub pool: u32,
    /// Whether one more log block takes writes that start a block.
    pub sequential: bool,
    /// Whether a log block holds one run of pages of one data block, in order. Otherwise pages lie in it as they come.
    pub in_order: bool,
    /// Which log block is merged when there is none left.
    pub evict: Evict,
}

#[derive(Clone, Copy, Debug)]
struct Log {
    group: u32,
    fill: u32,
    live: u32,
    /// Every page so far is page `start + pos` of data block `first` at position `pos`.
    ordered: bool,
    first: u32,
    /// 0, except where logs are in order.
    start: u32,
    /// Next younger log block of the same group.
    younger: u32,
    older_all: u32,
    newer_all: u32,
}

/// A log-block layer: which pages are where, and what each write sets off. [`Work`] is counted, time is not known here.
#[derive(Clone, Debug)]
pub struct LogBlocks {
    s: Shape,
    logs: Vec<Log>,
    /// Logical page at each position of each log block.
    entries: Vec<u32>,
    /// 1 + position in `entries` of the newest copy of a page; 0 = it is in its data block.
    newest: Vec<u32>,
    /// Pages of each data block whose newest copy is in a log.
    away: Vec<u32>,
    /// Oldest log block of a group, and how many it has. Only for groups that have some.
    oldest: Vec<u32>,
    youngest: Vec<u32>,
    held: Vec<u32>,
    free: Vec<u32>,
    first_all: u32,
    last_all: u32,
    /// Number of the sequential log block, behind the pool.
    seq_open: bool,
    /// Log block of each data block, where logs are in order.
    own: Vec<u32>,
    /// What became of blocks, for the wear; only where somebody asks.
    renewed: Option<Vec<Renewed>>,
    rng: Rng,
    stamps: Option<Stamps>,
}

/// A flash block that was erased by a merge.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Renewed {
    /// The log block became the data block, whose old flash was erased.
    Swap { data: u32, log: u32 },
    /// The data block was put together in a fresh block.
    Data(u32),
    /// The log block was emptied.
    Log(u32),
}

/// Contents, for checking: one number a page.
#[derive(Clone, Debug)]
struct Stamps {
    data: Vec<u64>,
    log: Vec<u64>,
}

impl LogBlocks {
    /// A layer over written data blocks. `group`, `per_group` and `pool` must be at least 1.
    pub fn new(s: Shape, seed: u64) -> LogBlocks {
        assert!(s.group > 0 && s.per_group > 0 && s.pool > 0 && s.pages > 0, "a shape without room");
        let groups = s.blocks.div_ceil(s.group) as usize;
        let all = s.pool as usize + 1;
        let blank =
            Log { group: NONE, fill: 0, live: 0, ordered: true, first: NONE, start: 0, younger: NONE, older_all: NONE, newer_all: NONE };
        LogBlocks {
            s,
            logs: vec![blank; all],
            entries: vec![0; all * s.pages as usize],
            newest: vec![0; s.blocks as usize * s.pages as usize],
            away: vec![0; s.blocks as usize],
            oldest: vec![NONE; groups],
            youngest: vec![NONE; groups],
            held: vec![0; groups],
            free: (0..s.pool).rev().collect(),
            first_all: NONE,
            last_all: NONE,
            seq_open: false,
            own: if s.in_order { vec![NONE; s.blocks as usize] } else { Vec::new() },
            renewed: None,
            rng: Rng::new(seed, 5),
            stamps: None,
        }
    }

    /// The same, keeping a stamp for each page so that [`LogBlocks::read`] can answer.
    pub fn with_stamps(mut self) -> LogBlocks {
        self.stamps = Some(Stamps { data: vec![0; self.newest.len()], log: vec![0; self.entries.len()] });
        self
    }

    /// The stamp a page was last written with; 0 = never, or no stamps are kept.
    pub fn read(&self, page: u32) -> u64 {
        self.stamps.as_ref().map_or(0, |st| match self.newest[page as usize] {
            0 => st.data[page as usize],
            at => st.log[at as usize - 1],
        })
    }

    /// Writes one page.
    pub fn write(&mut self, page: u32, stamp: u64) -> Work {
        let mut work = Work::default();
        let (block, place) = (page / self.s.pages, page % self.s.pages);
        if self.s.in_order {
            self.in_order(page, block, place, stamp, &mut work);
            return work;
        }
        if self.s.sequential && self.sequential(page, block, place, stamp, &mut work) {
            return work;
        }
        let group = block / self.s.group;
        let mut log = self.youngest[group as usize];
        if log == NONE || self.logs[log as usize].fill == self.s.pages {
            log = self.room(group, &mut work);
        }
        self.append(log, page, block, place, stamp);
        if self.s.evict == Evict::Lru {
            self.unlink_all(log);
            self.link_all(log);
        }
        work
    }

    /// The log of a data block takes the next page of its run; any other page closes it and begins a new one.
    fn in_order(&mut self, page: u32, block: u32, place: u32, stamp: u64, work: &mut Work) {
        let mut log = self.own[block as usize];
        if log == NONE || self.logs[log as usize].start + self.logs[log as usize].fill != place {
            if log != NONE {
                self.merge(log, work);
            }
            log = self.room(block / self.s.group, work);
            self.logs[log as usize].start = place;
            self.own[block as usize] = log;
        }
        self.append(log, page, block, place, stamp);
        if self.logs[log as usize].fill == self.s.pages {
            self.merge(log, work);
        } else if self.s.evict == Evict::Lru {
            self.unlink_all(log);
            self.link_all(log);
        }
    }

    /// Tries the sequential log: it takes the first page of any block, and what follows on.
    fn sequential(&mut self, page: u32, block: u32, place: u32, stamp: u64, work: &mut Work) -> bool {
        let seq = self.s.pool;
        let log = self.logs[seq as usize];
        let follows = self.seq_open && log.first == block && log.fill == place;
        if place != 0 && !follows {
            return false;
        }
        if place == 0 && self.seq_open {
            self.merge(seq, work);
        }
        self.seq_open = true;
        self.append(seq, page, block, place, stamp);
        if self.logs[seq as usize].fill == self.s.pages {
            self.merge(seq, work);
        }
        true
    }

    /// An empty log block for a group, making room where there is none.
    fn room(&mut self, group: u32, work: &mut Work) -> u32 {
        let g = group as usize;
        if self.held[g] >= self.s.per_group {
            self.merge(self.oldest[g], work);
        } else if self.free.is_empty() {
            let victim = match self.s.evict {
                Evict::Random => self.rng.below(u64::from(self.s.pool)) as u32,
                _ => self.first_all,
            };
            self.merge(victim, work);
        }
        let Some(log) = self.free.pop() else { unreachable!("a merge frees its log block") };
        let young = self.youngest[g];
        if young == NONE {
            self.oldest[g] = log;
        } else {
            self.logs[young as usize].younger = log;
        }
        self.youngest[g] = log;
        self.held[g] += 1;
        let blank = &mut self.logs[log as usize];
        (blank.group, blank.younger) = (group, NONE);
        self.link_all(log);
        log
    }

    fn append(&mut self, log: u32, page: u32, block: u32, place: u32, stamp: u64) {
        let old = self.newest[page as usize];
        if old == 0 {
            self.away[block as usize] += 1;
        } else {
            self.logs[((old - 1) / self.s.pages) as usize].live -= 1;
        }
        let l = &mut self.logs[log as usize];
        let at = log * self.s.pages + l.fill;
        if l.fill == 0 {
            (l.first, l.ordered) = (block, true);
        }
        l.ordered &= l.first == block && l.start + l.fill == place;
        l.fill += 1;
        l.live += 1;
        self.entries[at as usize] = page;
        self.newest[page as usize] = at + 1;
        if let Some(st) = &mut self.stamps {
            st.log[at as usize] = stamp;
        }
    }

    /// Merges a log block and frees it.
    fn merge(&mut self, log: u32, work: &mut Work) {
        let l = self.logs[log as usize];
        if l.ordered && l.live == l.fill && l.fill > 0 {
            // The log block, filled up, takes the place of the data block.
            let rest = self.s.pages - l.fill;
            work.copies += u64::from(rest);
            work.erases += 1;
            *if rest == 0 { &mut work.switches } else { &mut work.partials } += 1;
            self.settle(l.first, self.entries[(log * self.s.pages) as usize]);
            self.note(Renewed::Swap { data: l.first, log });
        } else {
            let from = (log * self.s.pages) as usize;
            for at in from..from + l.fill as usize {
                if self.logs[log as usize].live == 0 {
                    break;
                }
                let page = self.entries[at];
                if self.newest[page as usize] == at as u32 + 1 {
                    work.copies += u64::from(self.s.pages);
                    work.erases += 1;
                    work.fulls += 1;
                    self.settle(page / self.s.pages, page);
                    self.note(Renewed::Data(page / self.s.pages));
                }
            }
            work.erases += 1;
            self.note(Renewed::Log(log));
        }
        if log == self.s.pool {
            self.seq_open = false;
        } else {
            self.unchain(log);
            self.unlink_all(log);
            self.free.push(log);
        }
        if let Some(own) = self.own.get_mut(l.first as usize) {
            *own = NONE;
        }
        let blank = &mut self.logs[log as usize];
        (blank.fill, blank.live, blank.group, blank.first, blank.start, blank.ordered) = (0, 0, NONE, NONE, 0, true);
    }

    fn note(&mut self, what: Renewed) {
        if let Some(all) = &mut self.renewed {
            all.push(what);
        }
    }

    /// All newest pages of a data block now lie in one block; `page` is one of those in a log.
    fn settle(&mut self, block: u32, page: u32) {
        self.bring_home(block, page);
        let from = block * self.s.pages;
        for page in from..from + self.s.pages {
            if self.away[block as usize] == 0 {
                break;
            }
            if self.newest[page as usize] != 0 {
                self.bring_home(block, page);
            }
        }
    }

    /// The newest copy of a page is in its data block from now on.
    #[inline]
    fn bring_home(&mut self, block: u32, page: u32) {
        let at = self.newest[page as usize] - 1;
        if let Some(st) = &mut self.stamps {
            st.data[page as usize] = st.log[at as usize];
        }
        self.logs[(at / self.s.pages) as usize].live -= 1;
        self.newest[page as usize] = 0;
        self.away[block as usize] -= 1;
    }

    fn unchain(&mut self, log: u32) {
        let l = self.logs[log as usize];
        let g = l.group as usize;
        self.held[g] -= 1;
        if self.oldest[g] == log {
            self.oldest[g] = l.younger;
            if l.younger == NONE {
                self.youngest[g] = NONE;
            }
            return;
        }
        let mut before = self.oldest[g];
        while self.logs[before as usize].younger != log {
            before = self.logs[before as usize].younger;
        }
        self.logs[before as usize].younger = l.younger;
        if self.youngest[g] == log {
            self.youngest[g] = before;
        }
    }

    fn link_all(&mut self, log: u32) {
        let last = self.last_all;
        let l = &mut self.logs[log as usize];
        (l.older_all, l.newer_all) = (last, NONE);
        if last == NONE {
            self.first_all = log;
        } else {
            self.logs[last as usize].newer_all = log;
        }
        self.last_all = log;
    }

    fn unlink_all(&mut self, log: u32) {
        let Log { older_all, newer_all, .. } = self.logs[log as usize];
        if older_all == NONE {
            self.first_all = newer_all;
        } else {
            self.logs[older_all as usize].newer_all = newer_all;
        }
        if newer_all == NONE {
            self.last_all = older_all;
        } else {
            self.logs[newer_all as usize].older_all = older_all;
        }
    }
}

/// A log-block layer inside a card.
#[derive(Clone, Debug)]
pub(crate) struct LogBlockMap {
    map: LogBlocks,
    close: u64,
    /// Where the last write ended inside a unit, which is then still at hand; 0 = at a boundary.
    end: u64,
    pub wear: Option<Box<Wear>>,
    /// Data blocks, and write units in one.
    blocks: u32,
    units: u64,
}

impl LogBlockMap {
    pub fn new(m: &Model, grid: &Grid, seed: u64) -> LogBlockMap {
        let f = &m.ftl.log;
        let shape = Shape {
            blocks: grid.blocks as u32,
            pages: (m.nand.erase_block / m.nand.write_unit) as u32,
            group: if f.group == 0 { grid.blocks as u32 } else { f.group as u32 },
            per_group: if f.per_group == 0 { f.pool as u32 } else { f.per_group as u32 },
            pool: f.pool as u32,
            sequential: f.sequential,
            in_order: f.order == LogOrder::InOrder,
            evict: f.evict,
        };
        // Log blocks wear, too: they come behind the data blocks.
        let wear = Wear::new(m, grid.blocks + f.pool + 1, None, seed);
        let mut map = LogBlocks::new(shape, seed);
        map.renewed = wear.is_some().then(Vec::new);
        LogBlockMap { map, close: f.close, end: 0, wear, blocks: shape.blocks, units: u64::from(shape.pages) }
    }

    pub fn write(&mut self, grid: &Grid, cost: &WriteCost, counters: &mut Counters, a: u64, b: u64) -> u64 {
        let mut work = Work::default();
        let again = u64::from(self.end == a && a != 0);
        self.end = if grid.unit.of(b) * grid.unit.by() == b { 0 } else { b };
        for unit in grid.unit.of(a) + again..=grid.unit.of(b - 1) {
            let w = self.map.write(unit as u32, 0);
            work.copies += w.copies;
            work.erases += w.erases;
            work.switches += w.switches;
            work.partials += w.partials;
            work.fulls += w.fulls;
        }
        counters.units_copied += work.copies;
        counters.erases += work.erases;
        counters.merges_switch += work.switches;
        counters.merges_partial += work.partials;
        counters.merges_full += work.fulls;
        if self.wear.is_some() {
            let (copies, erases) = self.wear_out();
            counters.units_copied += copies;
            counters.erases += erases;
            work.copies += copies;
            work.erases += erases;
        }
        counters.note(Event::Copy, work.copies);
        counters.note(Event::Erase, work.erases);
        counters.note(Event::Close, work.partials + work.fulls);
        work.copies * cost.copy + work.erases * cost.erase + (work.partials + work.fulls) * self.close
    }

    /// Books the erasures of this write; returns the units copied and blocks erased to level the wear.
    fn wear_out(&mut self) -> (u64, u64) {
        let (Some(wear), Some(renewed)) = (&mut self.wear, &mut self.map.renewed) else { return (0, 0) };
        let mut moved = 0;
        for what in renewed.drain(..) {
            moved += match what {
                Renewed::Data(data) => wear.renew(data),
                Renewed::Log(log) => wear.renew(self.blocks + log),
                Renewed::Swap { data, log } => {
                    wear.swap(data, self.blocks + log);
                    wear.renew(self.blocks + log)
                }
            };
        }
        (moved * self.units, moved)
    }
}
