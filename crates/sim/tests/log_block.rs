//! The log-block layer against a slow and obvious one: the same merges, and what is read is what was written.

use nandscope_sim::ftl::{LogBlocks, Shape, Work};
use nandscope_sim::{Card, Model, Request, Rng, model::Evict};

/// Logical page, stamp, sequence number.
type Cell = (u32, u64, u64);

/// Every flash page is a cell, every search a walk through all of them.
struct Slow {
    s: Shape,
    /// Data block contents: stamp of each page.
    data: Vec<Vec<u64>>,
    /// Log blocks in order of age (or last use): group and pages (logical page, stamp, sequence number).
    logs: Vec<(u32, Vec<Cell>)>,
    /// The sequential log block.
    seq: Option<Vec<Cell>>,
    seq_block: Option<u32>,
    clock: u64,
}

impl Slow {
    fn new(s: Shape) -> Slow {
        Slow { s, data: vec![vec![0; s.pages as usize]; s.blocks as usize], logs: vec![], seq: None, seq_block: None, clock: 0 }
    }

    /// The newest copy of a page in any log: (sequence number, stamp).
    fn newest(&self, page: u32) -> Option<(u64, u64)> {
        let all = self.logs.iter().map(|l| &l.1).chain(&self.seq);
        all.flatten().filter(|e| e.0 == page).map(|e| (e.2, e.1)).max()
    }

    fn read(&self, page: u32) -> u64 {
        self.newest(page).map_or(self.data[(page / self.s.pages) as usize][(page % self.s.pages) as usize], |(_, stamp)| stamp)
    }

    /// Whether a page of a log block is the newest copy; `merged` names blocks put together since.
    fn live(&self, e: &Cell) -> bool {
        self.newest(e.0).is_some_and(|(seq, _)| seq == e.2)
    }

    /// Puts a data block together and forgets its pages in all logs (they stay as dead cells with page number NONE).
    fn settle(&mut self, block: u32) {
        for i in 0..self.s.pages {
            self.data[block as usize][i as usize] = self.read(block * self.s.pages + i);
        }
        let pages = self.s.pages;
        let all = self.logs.iter_mut().map(|l| &mut l.1).chain(&mut self.seq);
        all.flatten().filter(|e| e.0 != u32::MAX && e.0 / pages == block).for_each(|e| e.0 = u32::MAX);
    }

    /// Merges the cells of a log block, which the caller takes out afterwards.
    fn merge(&mut self, cells: &[Cell], work: &mut Work) {
        let first = if cells[0].0 == u32::MAX { 0 } else { cells[0].0 / self.s.pages };
        let in_order = cells.iter().enumerate().all(|(i, e)| e.0 != u32::MAX && e.0 == first * self.s.pages + i as u32 && self.live(e));
        if cells[0].0 != u32::MAX && in_order {
            work.copies += u64::from(self.s.pages) - cells.len() as u64;
            work.erases += 1;
            *if cells.len() == self.s.pages as usize { &mut work.switches } else { &mut work.partials } += 1;
            self.settle(first);
            return;
        }
        let mut blocks: Vec<u32> = vec![];
        for e in cells.iter().filter(|e| e.0 != u32::MAX) {
            if self.live(e) && !blocks.contains(&(e.0 / self.s.pages)) {
                blocks.push(e.0 / self.s.pages);
            }
        }
        for block in blocks {
            work.copies += u64::from(self.s.pages);
            work.erases += 1;
            work.fulls += 1;
            self.settle(block);
        }
        work.erases += 1;
    }

    fn write(&mut self, page: u32, stamp: u64) -> Work {
        let mut work = Work::default();
        self.clock += 1;
        let cell = (page, stamp, self.clock);
        let (block, place) = (page / self.s.pages, page % self.s.pages);
        if self.s.sequential {
            // A page settled elsewhere in the meantime still holds its place in the run.
            let follows = self.seq.as_ref().is_some_and(|s| s.len() == place as usize && self.seq_block == Some(block));
            if place == 0 || follows {
                if place == 0
                    && let Some(old) = self.seq.clone()
                {
                    self.merge(&old, &mut work);
                    self.seq = None;
                }
                self.seq.get_or_insert_default().push(cell);
                self.seq_block = Some(block);
                if self.seq.as_ref().is_some_and(|s| s.len() == self.s.pages as usize) {
                    let all = self.seq.clone().unwrap();
                    self.merge(&all, &mut work);
                    self.seq = None;
                }
                return work;
            }
        }
        let group = block / self.s.group;
        let own = |l: &(u32, Vec<Cell>)| l.0 == group;
        let last = self.logs.iter().enumerate().filter(|(_, l)| own(l)).max_by_key(|(_, l)| l.1[0].2).map(|(i, _)| i);
        let i = match last {
            Some(i) if self.logs[i].1.len() < self.s.pages as usize => i,
            _ => {
                let mine = self.logs.iter().filter(|l| own(l)).count();
                let victim = if mine >= self.s.per_group as usize {
                    self.logs.iter().enumerate().filter(|(_, l)| own(l)).min_by_key(|(_, l)| l.1[0].2).map(|(i, _)| i)
                } else if self.logs.len() == self.s.pool as usize {
                    Some(0)
                } else {
                    None
                };
                if let Some(v) = victim {
                    let cells = self.logs[v].1.clone();
                    self.merge(&cells, &mut work);
                    self.logs.remove(v);
                }
                self.logs.push((group, vec![]));
                self.logs.len() - 1
            }
        };
        self.logs[i].1.push(cell);
        if self.s.evict == Evict::Lru {
            let used = self.logs.remove(i);
            self.logs.push(used);
        }
        work
    }
}

#[test]
fn merges_equal_the_slow_layer() {
    let mut rng = Rng::new(2026, 1);
    let mut total = Work::default();
    for trace in 0..100_000u32 {
        let pages = 1 + rng.below(5) as u32;
        let blocks = 1 + rng.below(6) as u32;
        let pool = 1 + rng.below(3) as u32;
        let s = Shape {
            blocks,
            pages,
            group: 1 + rng.below(u64::from(blocks)) as u32,
            per_group: 1 + rng.below(u64::from(pool)) as u32,
            pool,
            sequential: rng.below(2) == 0,
            in_order: false,
            evict: if rng.below(2) == 0 { Evict::Lru } else { Evict::Fifo },
        };
        let (mut fast, mut slow) = (LogBlocks::new(s, 1).with_stamps(), Slow::new(s));
        let mut at = 0;
        for k in 0..8 + rng.below(40) {
            // Half of the writes follow the last one, so that runs and switches happen.
            at = if rng.below(2) == 0 { (at + 1) % (blocks * pages) } else { rng.below(u64::from(blocks * pages)) as u32 };
            let (a, b) = (fast.write(at, k + 1), slow.write(at, k + 1));
            assert_eq!(a, b, "trace {trace}, write {k} of page {at}, {s:?}");
            total.switches += a.switches;
            total.partials += a.partials;
            total.fulls += a.fulls;
            for page in 0..blocks * pages {
                assert_eq!(fast.read(page), slow.read(page), "trace {trace}, after write {k}: page {page}, {s:?}");
            }
        }
    }
    assert!(total.switches > 10_000 && total.partials > 10_000 && total.fulls > 10_000, "every kind is exercised: {total:?}");
}

/// Log blocks in order, one for each data block, are the plain table of open AUs: the same times, request by request, as the
/// other implementation of it.
#[test]
fn logs_in_order_are_the_table_of_open_aus() {
    let text = |ftl: &str| {
        format!(
            "name = \"t\"\n[card]\ncapacity = \"8 MiB\"\n[nand]\npage = \"4 KiB\"\nerase_block = \"64 KiB\"\nprogram = \"1 ms\"\ncopy = \"700 us\"\n\
             erase = \"5 ms\"\n[ftl]\n{ftl}\n"
        )
    };
    let card = |ftl: &str| Card::new(&Model::parse(&text(ftl), "t").unwrap_or_else(|e| panic!("{e}")), 1);
    let mut rng = Rng::new(5, 5);
    let mut closed = 0;
    for n in 1..=5u64 {
        for evict in ["lru", "fifo"] {
            let mut table = card(&format!("kind = \"block-map\"\nopen_linear = {n}\nevict = \"{evict}\"\nclose = \"3 ms\""));
            let log = format!("group = 1\nper_group = 1\npool = {n}\norder = \"in-order\"\nevict = \"{evict}\"\nclose = \"3 ms\"");
            let mut logs = card(&format!("kind = \"log-block\"\n{log}"));
            let mut at = 0;
            for k in 0..4000 {
                // Mostly runs in a few erase blocks, so that logs fill up, are closed, and are switched.
                at = if rng.below(4) > 0 { at } else { rng.below(8) * 16 + if rng.below(2) == 0 { 0 } else { rng.below(16) } };
                let len = (1 + rng.below(4)).min(2048 - at);
                let r = Request::write(at * 4096, len * 4096);
                assert_eq!(table.submit(0, r), logs.submit(0, r), "{n} {evict}: write {k}, {len} units at {at}");
                at = (at + len) % 128;
            }
            let (a, b) = (table.counters(), logs.counters());
            assert_eq!((a.merges_switch, a.merges_partial, a.merges_full), (b.merges_switch, b.merges_partial, b.merges_full));
            assert_eq!((a.units_copied, a.erases), (b.units_copied, b.erases));
            closed += a.merges_switch.min(a.merges_partial);
        }
    }
    assert!(closed > 500, "both kinds of closing happen: {closed}");
}

/// Random eviction has no slow twin: what is read must be what was written, and no block is lost.
#[test]
fn random_eviction_keeps_the_data() {
    let mut rng = Rng::new(9, 9);
    for trace in 0..2000 {
        let (blocks, pages) = (2 + rng.below(6) as u32, 1 + rng.below(5) as u32);
        let pool = 1 + rng.below(4) as u32;
        let s = Shape {
            blocks,
            pages,
            group: 1 + rng.below(u64::from(blocks)) as u32,
            per_group: 1 + rng.below(u64::from(pool)) as u32,
            pool,
            sequential: false,
            in_order: trace % 3 == 0,
            evict: Evict::Random,
        };
        let mut layer = LogBlocks::new(s, trace).with_stamps();
        let mut mirror = vec![0; (blocks * pages) as usize];
        for k in 1..100 {
            let page = rng.below(u64::from(blocks * pages)) as u32;
            layer.write(page, k);
            mirror[page as usize] = k;
            assert!((0..blocks * pages).all(|p| layer.read(p) == mirror[p as usize]), "trace {trace}, write {k}, {s:?}");
        }
    }
}
