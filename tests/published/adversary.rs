//! Logs made to mislead: a small card that opens, closes and copies erase blocks write by write, run with flashbench's own
//! loops, under everything that users do to a log. Nothing here knows how logs are read.
//!
//! The kinds are those that published logs show: clean cards, cards whose reads show nothing, largest rows that wrap, slow
//! decline without a cliff, cliffs of a factor of two, recoveries at 16 KiB and below, and noise; with erase sizes that are not
//! the true one, sweeps with gaps, tables cut by ^C, outlier rows, runs that disagree, and block sizes of all kinds.

use super::cards::Dice;
use nandscope::flashbench::format::{rate, size, time};
use std::collections::VecDeque;
use std::fmt::Write;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// What a card does when more erase blocks are written than it keeps open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Above {
    /// Copies the rest of the one it throws out.
    Copies,
    /// Writes everything twice.
    Twice,
    /// Nothing: there is no limit.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Evict {
    Lru,
    Fifo,
    Random,
}

/// A card that maps by erase block.
#[derive(Debug)]
pub struct Card {
    pub erase_block: u64,
    pub limit: usize,
    pub above: Above,
    /// Out of order means close and open again.
    pub ordered: bool,
    evict: Evict,
    /// ms a write, and bytes a ms.
    fixed: f64,
    speed: f64,
    copy: f64,
    erase: f64,
    unit: u64,
    /// Writes shorter than this go to a log.
    log: u64,
    decline: f64,
    noise: f64,
    stall: f64,
    /// Erase block, next byte in order, bytes written.
    open: VecDeque<(u64, u64, u64)>,
}

impl Card {
    pub fn new(d: &mut Dice) -> Card {
        let above = d.pick(&[Above::Copies, Above::Copies, Above::Copies, Above::Twice, Above::Nothing]);
        let evict = d.pick(&[Evict::Lru, Evict::Lru, Evict::Fifo, Evict::Random]);
        let speed = d.scale(2_000.0, 40_000.0);
        Card {
            erase_block: d.pick(&[2 * MIB, 4 * MIB, 4 * MIB, 4 * MIB, 8 * MIB]),
            limit: if above == Above::Nothing { 1000 } else { 1 + d.below(9) },
            above,
            // Closing costs something where it copies.
            ordered: d.chance(0.15) && above == Above::Copies,
            // Writing some things twice now and then is no cliff that anybody could see.
            evict: if above == Above::Twice && evict == Evict::Random { Evict::Lru } else { evict },
            fixed: d.scale(0.1, 2.0),
            speed,
            copy: speed * d.from(0.8, 2.5),
            erase: d.from(1.0, 10.0),
            unit: d.pick(&[4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB]),
            log: if d.chance(0.2) { d.pick(&[8 * KIB, 16 * KIB, 32 * KIB]) } else { 0 },
            decline: if d.chance(0.4) { d.from(0.01, 0.06) } else { 0.0 },
            noise: d.scale(0.003, 0.05),
            stall: if d.chance(0.3) { d.from(0.0, 0.002) } else { 0.0 },
            open: VecDeque::new(),
        }
    }

    fn close(&mut self, i: usize) -> f64 {
        let (_, _, written) = self.open.remove(i).unwrap();
        match self.above {
            Above::Copies => self.erase + (self.erase_block - written.min(self.erase_block)) as f64 / self.copy,
            _ => 0.0,
        }
    }

    /// ms of one write; `n`: AUs in turn.
    fn write(&mut self, at: u64, len: u64, n: usize, d: &mut Dice) -> f64 {
        let plain = self.fixed + len.next_multiple_of(self.unit) as f64 / self.speed;
        let mut ms = plain * (1.0 + self.decline * (n as f64 - 1.0));
        if d.chance(self.stall) {
            ms += d.from(50.0, 400.0);
        }
        if len < self.log && n > 1 {
            return ms * 1.3;
        }
        let (mut at, end) = (at, at + len);
        while at < end {
            let (block, off) = (at / self.erase_block, at % self.erase_block);
            let part = (end - at).min(self.erase_block - off);
            at += part;
            if part == self.erase_block {
                // A whole block needs none of the open ones.
                self.open.retain(|o| o.0 != block);
                continue;
            }
            let found = self.open.iter().position(|o| o.0 == block);
            let entry = match found {
                Some(i) if self.ordered && self.open[i].1 != off => {
                    ms += self.close(i);
                    (block, off, 0)
                }
                Some(i) if self.evict == Evict::Lru => self.open.remove(i).unwrap(),
                Some(i) => {
                    self.open[i].1 = off + part;
                    self.open[i].2 += part;
                    if self.open[i].2 >= self.erase_block {
                        self.open.remove(i);
                    }
                    continue;
                }
                None => {
                    if self.open.len() >= self.limit {
                        ms += if self.above == Above::Twice { plain } else { 0.0 };
                        let i = if self.evict == Evict::Random { d.below(self.open.len()) } else { 0 };
                        ms += self.close(i);
                    }
                    (block, off, 0)
                }
            };
            let entry = (entry.0, off + part, entry.2 + part);
            if entry.2 < self.erase_block {
                self.open.push_back(entry);
            }
        }
        ms
    }
}

/// One sweep over numbers of AUs, as a user would paste it.
pub struct Sweep {
    pub card: Card,
    pub random: bool,
    pub tested: Vec<usize>,
    erase_size: u64,
    smallest: u64,
    cut: bool,
    named: bool,
}

impl Sweep {
    pub fn new(d: &mut Dice) -> Sweep {
        let card = Card::new(d);
        let k = card.limit.min(12);
        let tested = match () {
            _ if d.chance(0.5) => (1..=d.pick(&[5, 7, 7, 8, 10])).collect(),
            _ if d.chance(0.3) => vec![1, 2, 4, 8, 16],
            _ if d.chance(0.4) => vec![k.max(2) - 1, k, k + 1],
            _ if d.chance(0.3) => vec![k, k + 1],
            _ if d.chance(0.5) => vec![1, k, k + 2, k + 4],
            _ => vec![2, 3, 5, 6, 9],
        };
        // Most use the default, whatever the card is.
        let erase_size = if d.chance(0.65) { card.erase_block } else { d.pick(&[4 * MIB, 4 * MIB, 2 * MIB, 8 * MIB]) };
        let smallest = d.pick(&[512, 4 * KIB, 4 * KIB, 16 * KIB, 16 * KIB, 32 * KIB]);
        let mut tested: Vec<usize> = tested.into_iter().filter(|&n| n > 0).collect();
        tested.dedup();
        Sweep { random: d.chance(0.4), tested, erase_size, smallest, cut: d.chance(0.4), named: d.chance(0.7), card }
    }

    /// One row: mean time of a write in ms, as flashbench takes it.
    fn row(&mut self, n: usize, block: u64, d: &mut Dice) -> f64 {
        let count = self.erase_size / block;
        let base = (16 * MIB).next_multiple_of(self.erase_size);
        let mut order: Vec<u64> = (0..count).collect();
        if self.random {
            for i in (1..order.len()).rev() {
                order.swap(i, d.below(i + 1));
            }
        }
        // Small rows have thousands of writes that are alike: a part of them has the same mean.
        let take = order.len().min(512);
        let mut sum = 0.0;
        for &o in &order[..take] {
            for au in 0..n as u64 {
                sum += self.card.write(base + au * 12 * self.erase_size + o * block, block, n, d);
            }
        }
        sum / (take * n) as f64 * (1.0 + self.card.noise * d.normal())
    }

    pub fn log(&mut self, d: &mut Dice) -> String {
        let mut out = String::new();
        let outlier = d.chance(0.25);
        for n in self.tested.clone() {
            let random = if self.random { " --random" } else { "" };
            if self.named {
                let _ = writeln!(
                    out,
                    "pi@raspberrypi ~/flashbench $ sudo ./flashbench -O -e {} -b {}{random} --open-au-nr {n} /dev/sda",
                    self.erase_size, self.smallest
                );
            } else {
                let _ = writeln!(out, "=== {n} AUs, {} ===", if self.random { "random access" } else { "linear access" });
            }
            let mut sizes: Vec<u64> = (0..).map(|k| self.erase_size >> k).take_while(|&s| s >= self.smallest).collect();
            let slow = n > self.shown_limit();
            if self.cut && slow {
                sizes.truncate(4 + d.below(4));
            }
            let odd = if outlier && d.chance(0.4) { d.below(sizes.len()) } else { 99 };
            for (i, s) in sizes.into_iter().enumerate() {
                let mut ms = self.row(n, s, d);
                if i == odd {
                    ms *= d.from(1.3, 4.0);
                }
                let _ = writeln!(out, "{:<7} {:<7} ", size(s), rate(s as f64 / ms * 1e3));
            }
            if self.cut && slow {
                let _ = writeln!(out, "^C");
            }
        }
        out
    }

    /// How many AUs of the size that was given fit: a larger one holds several of the card's blocks, which random order keeps
    /// open at the same time.
    pub fn shown_limit(&self) -> usize {
        if self.card.ordered && self.random {
            return 0;
        }
        let blocks = if self.random { (self.erase_size / self.card.erase_block).max(1) as usize } else { 1 };
        self.card.limit / blocks
    }

    /// The answer that the log holds: the limit where two neighbours of it were tried and it shows, else a bound.
    pub fn truth(&self) -> (usize, Shows) {
        let k = self.shown_limit();
        let fits = self.tested.iter().copied().filter(|&n| n <= k).max();
        let over = self.tested.iter().copied().find(|&n| n > k);
        // Thrown out at random, an AU is missed now and then only: one more than fit shows little, and for a factor of two
        // anything else less.
        let faint = self.card.evict == Evict::Random || self.card.above == Above::Twice && self.card.noise > 0.03;
        match (fits, over) {
            (Some(a), Some(b)) if b == a + 1 && !faint => (k, Shows::Limit),
            (None, Some(1)) if k == 0 => (0, Shows::Limit),
            (Some(a), _) => (k, Shows::AtLeast(a)),
            _ => (k, Shows::Nothing),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shows {
    Limit,
    AtLeast(usize),
    Nothing,
}

/// A read test of a card, place by place.
#[derive(Debug)]
pub struct Reads {
    pub erase_block: u64,
    pub page: u64,
    pub unit: u64,
    capacity: u64,
    block: u64,
    base: f64,
    /// µs of crossing a page, a unit, an erase block.
    step: [f64; 3],
    noise: f64,
    /// Places of the card differ: the same in every run.
    place: f64,
    wrap: f64,
    runs: usize,
    wild: usize,
    outliers: usize,
    cut: bool,
    pub kind: &'static str,
}

impl Reads {
    pub fn new(d: &mut Dice) -> Reads {
        let kind = d.pick(&["two steps", "two steps", "no step", "wrap", "noise", "odd size", "page only"]);
        let base = d.scale(200.0, 3000.0);
        let page = d.pick(&[4 * KIB, 8 * KIB, 8 * KIB, 16 * KIB]);
        let grain = d.pick(&[512 * KIB, 4 * MIB]);
        let odd = d.pick(&[3 * MIB / 2, 3 * MIB, 6 * MIB, 12 * MIB]);
        let even = d.pick(&[512 * KIB, MIB, 2 * MIB, 4 * MIB, 4 * MIB, 4 * MIB, 8 * MIB, 8 * MIB, 16 * MIB]);
        let steps = !matches!(kind, "no step" | "page only");
        let flat = kind == "no step" || kind == "noise" && d.chance(0.5);
        Reads {
            erase_block: if steps && !flat { if kind == "odd size" { odd } else { even } } else { 0 },
            page: if flat { 0 } else { page },
            unit: if flat { 0 } else { page * d.pick(&[1, 1, 2, 4]) },
            capacity: d.scale(0.9e9, 128e9) as u64 / grain * grain + if kind == "wrap" { d.below(8) as u64 * 64 * KIB } else { 0 },
            block: d.pick(&[512, 1024, 1024, 1024, 4 * KIB, 16 * KIB, 16 * KIB, 32 * KIB]),
            base,
            step: [d.scale(0.03, 0.25), d.scale(0.03, 0.25), d.scale(0.05, 0.5)].map(|s| s * base),
            noise: base * if kind == "noise" { d.from(0.1, 0.5) } else { d.scale(0.001, 0.025) },
            place: base * d.pick(&[0.0, 0.005, 0.01, 0.02]),
            wrap: base * d.from(0.3, 1.5),
            runs: d.pick(&[1, 1, 2, 2, 3]),
            wild: if d.chance(0.15) { 1 } else { 0 },
            outliers: if d.chance(0.25) { 1 + d.below(2) } else { 0 },
            cut: d.chance(0.15),
            kind,
        }
    }

    fn top(&self) -> u64 {
        (9..).map(|k| self.block << (k - 9)).find(|t| 7 * t >= self.capacity).unwrap()
    }

    pub fn rows(&self) -> Vec<u64> {
        (0..).map(|k| self.top() >> k).take_while(|&a| a >= 2 * self.block).collect()
    }

    fn crossing(&self, at: u64) -> f64 {
        let is = |unit: u64| unit > 0 && at.is_multiple_of(unit);
        let half = self.block / 2;
        // A long read crosses pages wherever it lies; only what lies in its middle is its own.
        let seen = |unit: u64| is(unit) && unit > half;
        let mut t = 0.0;
        t += if seen(self.page) { self.step[0] } else { 0.0 };
        t += if self.unit > self.page && seen(self.unit) { self.step[1] } else { 0.0 };
        t + if seen(self.erase_block) { self.step[2] } else { 0.0 }
    }

    fn level(&self, align: u64) -> f64 {
        let one = |i: u64| {
            let at = align + i * self.top();
            let wraps = if at % self.capacity < self.block || at % self.capacity > self.capacity - self.block { self.wrap } else { 0.0 };
            self.crossing(at % self.capacity) + if at >= self.capacity { wraps } else { 0.0 }
        };
        (0..7).map(one).sum::<f64>() / 7.0
    }

    /// Whether a careful reader sees the step: above what rows that must be alike differ by.
    fn clear(&self, height: f64) -> bool {
        let noise = (self.noise.powi(2) / self.runs as f64 + self.place.powi(2)).sqrt();
        height > (5.0 * noise).max(0.04 * self.base) && self.wild < self.runs && self.outliers == 0
    }

    pub fn shows_block(&self) -> bool {
        let rows = self.rows();
        let use_rows: Vec<u64> = rows[2..].to_vec();
        let above = use_rows.iter().filter(|a| self.erase_block > 0 && a.is_multiple_of(self.erase_block)).count();
        self.erase_block.is_power_of_two() && above >= 3 && self.clear(self.step[2]) && !self.cut
            // A row that a wrapped place lowers is no clean step.
            && (self.level(self.erase_block) - self.level(2 * self.erase_block)).abs() < 0.25 * self.step[2]
    }

    /// What the rows show of the erase block: rows of powers of two cannot tell three times a size from the size.
    pub fn apparent_block(&self) -> Option<u64> {
        (self.erase_block > 0).then(|| 1 << self.erase_block.trailing_zeros())
    }

    /// What the rows show of the page: one that drowns, or that is no longer than the reads, leaves the planes.
    pub fn apparent_page(&self) -> Option<u64> {
        let drowned = !self.clear(self.step[0]) || self.page < 4 * self.block;
        (self.page > 0).then_some(if drowned { self.unit } else { self.page })
    }

    pub fn shows_page(&self) -> bool {
        self.page > 0 && self.page >= 4 * self.block && self.clear(self.step[0]) && !self.cut
    }

    pub fn log(&self, d: &mut Dice) -> String {
        let mut out = format!("root@host:~/flashbench# ./flashbench -a -b {} /dev/mmcblk0\n", self.block);
        let rows = self.rows();
        let places: Vec<f64> = rows.iter().map(|_| self.place * d.normal()).collect();
        let stop = if self.cut { rows.len() / 2 + d.below(rows.len() / 2) } else { rows.len() };
        for run in 0..self.runs {
            let odd: Vec<usize> = (0..self.outliers).map(|_| d.below(rows.len())).collect();
            let noise = if run < self.wild { 8.0 * self.noise } else { self.noise };
            for (i, &a) in rows.iter().enumerate().take(stop) {
                let mut near = |x: f64| (x + noise * d.normal()).max(5.0) * 1e3;
                let (pre, post) = (near(self.base), near(self.base));
                let mut on = near(self.base + self.level(a) + places[i]);
                if odd.contains(&i) {
                    on += 1e3 * self.base * d.from(0.2, 3.0);
                }
                let diff = on - (pre + post) / 2.0;
                let t = |ns: f64| time(ns as i64);
                let _ = writeln!(out, "align {a}\tpre {}\ton {}\tpost {}\tdiff {}", t(pre), t(on), t(post), t(diff));
            }
            if self.cut {
                let _ = writeln!(out, "^C");
            }
        }
        out
    }
}

/// The other tests: a line of times, a plot with odd stretches, contents.
pub struct Others {
    pub access: f64,
    pub rate: f64,
    pub odd: Vec<(f64, f64)>,
    pub gain: f64,
    /// AUs from the start that take small writes better.
    pub zone: usize,
    zone_gain: f64,
    noise: f64,
    page: u64,
}

impl Others {
    pub fn new(d: &mut Dice) -> Others {
        let mut odd: Vec<(f64, f64)> = vec![];
        for _ in 0..d.pick(&[0, 0, 1, 1, 2]) {
            let from = d.from(0.0, 0.9);
            if odd.iter().all(|o: &(f64, f64)| (o.0 - from).abs() > 0.12) {
                odd.push((from, from + d.from(0.02, 0.08)));
            }
        }
        Others {
            access: d.scale(80.0, 1500.0),
            rate: d.scale(3e6, 90e6),
            odd,
            gain: if d.chance(0.4) { d.from(1.15, 3.0) } else { 1.0 },
            zone: d.pick(&[0, 0, 1, 2]),
            zone_gain: d.from(2.0, 8.0),
            noise: d.scale(0.002, 0.04),
            page: d.pick(&[512, 4 * KIB, 8 * KIB, 16 * KIB]),
        }
    }

    pub fn interval(&self, d: &mut Dice) -> String {
        let mut out = String::from("$ sudo ./flashbench -i --interval-order=12 /dev/sdc\n");
        for k in 0..12 {
            let s = 512u64 << k;
            let us = self.access + s.max(self.page) as f64 / self.rate * 1e6;
            let min = us * (1.0 + self.noise * d.unit());
            let (avg, max) = (min * (1.0 + 4.0 * self.noise), min * (1.1 + 10.0 * self.noise));
            let t = |us: f64| time((us * 1e3) as i64);
            let _ = writeln!(out, "{s} bytes: min {} avg {} max {}: {:.6} MB/s", t(min), t(avg), t(max), s as f64 / min);
        }
        out + "25.2 MB/s, 311µs access time\n"
    }

    pub fn scatter(&self, d: &mut Dice) -> String {
        let mut out = String::from("$ sudo ./flashbench -s --scatter-order=9 /dev/sdc\n");
        for i in 0..512 {
            let x = i as f64 / 512.0;
            let odd = self.odd.iter().any(|o| x >= o.0 && x < o.1);
            let mut ms = self.access / 1e3 * if odd { 1.5 } else { 1.0 } * (1.0 + self.noise * d.normal());
            if d.chance(0.02) {
                ms *= d.from(1.5, 20.0);
            }
            let _ = writeln!(out, "{:.6}\t{ms:.6}", x * 7500.0);
        }
        out
    }

    pub fn program(&self, d: &mut Dice) -> String {
        let mut out = String::from("$ sudo ./flashbench -p /dev/sdc\n");
        for k in (9..=21).rev() {
            let s = 1u64 << k;
            let cells: Vec<String> = (0..8)
                .map(|i| {
                    let us = self.access * 3.0 + s as f64 / self.rate * 3e6;
                    let faster = if i % 4 == 0 { self.gain } else { 1.0 };
                    rate(s as f64 / us * 1e6 * faster * (1.0 + self.noise * d.normal()))
                })
                .collect();
            let _ = writeln!(out, "{:<7} {}", size(s), cells.join("  "));
        }
        out
    }

    pub fn find_fat(&self, d: &mut Dice) -> String {
        let mut out = String::new();
        for _ in 0..d.pick(&[1, 3]) {
            out += "$ sudo ./flashbench -f --fat-nr=8 -b 2048 /dev/sdc\n";
            for k in (11..=22).rev() {
                let s = 1u64 << k;
                let cell = |i: usize, d: &mut Dice| {
                    let us = self.access * 3.0 + s as f64 / self.rate * 3e6;
                    // The first row pays for what was there before.
                    let before = if k == 22 { d.from(0.2, 1.0) } else { 1.0 };
                    let zone = if i < self.zone && s <= 512 * KIB { self.zone_gain } else { 1.0 };
                    let stall = if d.chance(0.02) { d.from(0.3, 0.9) } else { 1.0 };
                    rate(s as f64 / us * 1e6 * before * zone * stall * (1.0 + self.noise * d.normal()))
                };
                let cells: Vec<String> = (0..8).map(|i| cell(i, d)).collect();
                let _ = writeln!(out, "{:<7} {}", size(s), cells.join("  "));
            }
        }
        out
    }
}
