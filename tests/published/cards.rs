//! Random cards, and the logs flashbench would print of them: its own places, its own order, its own number formats.
//!
//! The card is simulated read by read (seven places a row, modulo the size of the device) and write by write of the mean
//! over a table row; nothing here knows how the logs are read.

use nandscope::flashbench::format::{rate, size, time};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use std::fmt::Write;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

pub struct Dice(Pcg64Mcg);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        let mut rng = Pcg64Mcg::new((seed as u128) << 64 | 0x9e37_79b9_7f4a_7c15);
        (0..8).for_each(|_| _ = rng.next_u64());
        Dice(rng)
    }
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
    pub fn from(&mut self, lo: f64, hi: f64) -> f64 {
        lo + (hi - lo) * self.unit()
    }
    /// Evenly spread in the logarithm.
    pub fn scale(&mut self, lo: f64, hi: f64) -> f64 {
        self.from(lo.ln(), hi.ln()).exp()
    }
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }
    pub fn below(&mut self, n: usize) -> usize {
        (self.unit() * n as f64) as usize
    }
    pub fn pick<T: Copy>(&mut self, x: &[T]) -> T {
        x[self.below(x.len())]
    }
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

/// What a read costs, in µs.
pub struct Reads {
    pub capacity: u64,
    pub erase_block: Option<u64>,
    pub page: Option<u64>,
    pub access_unit: Option<u64>,
    base: f64,
    cost: [f64; 3],
    /// Scatter of one printed time, as a share of the base.
    noise: f64,
    /// What is peculiar to a row, the same in every run, as a share of its level.
    rows: Vec<f64>,
    lean: f64,
    /// The first block after the start is treated differently.
    first: bool,
    odd_rows: bool,
    runs: usize,
}

impl Reads {
    pub fn new(d: &mut Dice) -> Reads {
        let grain = if d.chance(0.5) { 4 * MIB } else { 512 * KIB };
        let capacity = d.scale(0.9e9, 64e9) as u64 / grain * grain;
        let blocks = [512 * KIB, MIB, 2 * MIB, 2 * MIB, 4 * MIB, 4 * MIB, 4 * MIB, 4 * MIB, 8 * MIB, 8 * MIB, 16 * MIB];
        let odd_rows = d.chance(0.15);
        let erase_block = match () {
            _ if d.chance(0.2) => None,
            _ if d.chance(if odd_rows { 0.35 } else { 0.03 }) => Some(d.pick(&[3 * MIB / 2, 3 * MIB, 6 * MIB, 12 * MIB])),
            _ => Some(d.pick(&blocks)),
        };
        let page = if d.chance(0.2) { None } else { Some(d.pick(&[4 * KIB, 8 * KIB, 8 * KIB, 16 * KIB, 16 * KIB, 32 * KIB])) };
        let planes = d.chance(0.35);
        let access_unit = page.map(|p| if planes { p * d.pick(&[2, 2, 4]) } else { p });
        let wild = d.chance(0.1);
        let peculiar = d.pick(&[0.0, 0.01, 0.03, 0.06, 0.12]);
        Reads {
            capacity,
            erase_block,
            page,
            access_unit,
            base: d.scale(250.0, 4000.0),
            cost: [d.scale(0.03, 0.35), d.scale(0.03, 0.3), d.scale(0.03, 0.5)],
            noise: if wild { d.scale(0.08, 0.5) } else { d.scale(0.001, 0.03) },
            rows: (0..80).map(|_| 1.0 + peculiar * d.normal()).collect(),
            lean: d.from(-0.15, 0.3) * d.unit(),
            first: d.chance(0.1),
            odd_rows,
            runs: d.pick(&[1, 1, 2, 3]),
        }
    }

    /// The largest row, and the distance of its places. The form with rows of 3 x 2^n begins with one of these, inside a
    /// seventh of the device.
    fn top(&self) -> u64 {
        match self.odd_rows {
            true => (9..40).map(|k| 3u64 << k).filter(|t| 7 * t <= self.capacity).max().unwrap(),
            false => (10..).map(|k| 1u64 << k).find(|t| 7 * t >= self.capacity).unwrap(),
        }
    }

    fn rows(&self) -> Vec<u64> {
        let powers = (11..40).flat_map(|k| [1u64 << k, 3 << (k - 1)]);
        let mut out: Vec<u64> = powers.filter(|a| *a <= self.top() && (self.odd_rows || a.is_power_of_two())).collect();
        out.sort_by_key(|a| std::cmp::Reverse(*a));
        out
    }

    /// Extra time of a read across a place.
    fn crossing(&self, at: u64) -> f64 {
        let part = |unit: Option<u64>, cost: f64| unit.filter(|u| at.is_multiple_of(*u)).map_or(0.0, |_| cost);
        let mut extra = part(self.page, self.cost[0]) + part(self.erase_block, self.cost[2]);
        if self.access_unit != self.page {
            extra += part(self.access_unit, self.cost[1]);
        }
        if self.first && self.erase_block == Some(at) {
            extra -= self.cost[2];
        }
        self.base * extra
    }

    /// Mean extra of a row over its seven places.
    fn level(&self, align: u64) -> f64 {
        let of = |i: u64| {
            let at = align + i * self.top();
            // A read across the very end is two requests.
            self.crossing(at % self.capacity) + if at == self.capacity { self.base } else { 0.0 }
        };
        (0..7).map(of).sum::<f64>() / 7.0
    }

    /// Whether a careful reader can see the step of the erase block: it stands out of the noise of the rows.
    pub fn shows_block(&self) -> bool {
        let Some(e) = self.erase_block else { return false };
        let rows: Vec<u64> = self.rows().into_iter().filter(|a| a * 4 <= self.top()).collect();
        let above: Vec<u64> = rows.iter().copied().filter(|a| a.is_multiple_of(e)).collect();
        let Some(below) = rows.iter().find(|a| **a < e && **a * 4 > e) else { return false };
        let level = |a: &u64| self.level(*a) * self.rows[a.trailing_zeros() as usize];
        above.len() >= 3 && self.clear(above.iter().map(level).fold(f64::INFINITY, f64::min) - level(below))
    }

    pub fn shows_page(&self) -> bool {
        self.page.is_some_and(|p| self.clear(self.level(p) * self.rows[p.trailing_zeros() as usize] - self.level(p / 2)))
    }

    pub fn shows_planes(&self) -> bool {
        let row = |a: u64| self.level(a) * self.rows[a.trailing_zeros() as usize];
        self.access_unit.is_some_and(|u| self.clear(row(u) - row(u / 2)))
    }

    fn clear(&self, height: f64) -> bool {
        height > (4.5 * self.noise / (self.runs as f64).sqrt()).max(0.03) * self.base
    }

    pub fn log(&self, d: &mut Dice) -> String {
        let mut out = String::new();
        if d.chance(0.3) {
            let _ = writeln!(out, "Disk /dev/sdb: {} MB, {} bytes", self.capacity / 1_000_000, self.capacity);
        }
        for run in 1..=self.runs {
            let _ = writeln!(out, "======= Align test: {run} =======");
            for a in self.rows() {
                let near = |d: &mut Dice, x: f64| (x + self.base * self.noise * d.normal()).max(1.0) * 1e3;
                let level = self.level(a) * self.rows[(a.trailing_zeros() + if a.is_power_of_two() { 0 } else { 40 }) as usize];
                let (pre, post) = (near(d, self.base * (1.0 - self.lean)), near(d, self.base * (1.0 + self.lean)));
                let on = near(d, self.base + level);
                let diff = on - (pre + post) / 2.0;
                let t = |ns: f64| time(ns as i64);
                let _ = writeln!(out, "align {a}\tpre {}\ton {}\tpost {}\tdiff {}", t(pre), t(on), t(post), t(diff));
            }
        }
        out
    }
}

/// What writes cost, in ms, and how many AUs stay open.
pub struct Writes {
    pub limit: u32,
    pub kind: Kind,
    pub random: bool,
    rate: f64,
    fixed: f64,
    close: f64,
    /// Throughput lost with each further AU.
    decline: f64,
    noise: f64,
    stalls: f64,
    burst: f64,
    /// Below this size writes go to a log.
    log: u64,
    pub tested: Vec<u32>,
    pub cut: bool,
    erase: u64,
    smallest: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Every write above the limit closes an AU.
    Flat,
    /// With one AU more than fit, about half of them do.
    Half,
    /// The rate falls by a factor: a cache gathers writes.
    Factor(f64),
    /// Random writes always pay.
    Never,
}

impl Writes {
    pub fn new(d: &mut Dice) -> Writes {
        let random = d.chance(0.4);
        let limit = if d.chance(0.2) { 99 } else { 1 + d.below(10) as u32 };
        let kind = match () {
            _ if random && d.chance(0.15) => Kind::Never,
            _ if d.chance(0.25) => Kind::Factor(d.from(1.9, 3.5)),
            _ if d.chance(0.25) => Kind::Half,
            _ => Kind::Flat,
        };
        let rate = d.scale(1.2e6, 40e6);
        let erase = d.pick(&[4 * MIB, 4 * MIB, 4 * MIB, 8 * MIB, 2 * MIB]);
        let tested: Vec<u32> = match () {
            _ if d.chance(0.6) => (1..=7).collect(),
            _ if d.chance(0.3) => vec![1, 2, 4, 8, 16],
            _ if limit < 99 && limit > 1 => vec![limit - 1, limit, limit + 1],
            _ => (1..=1 + d.below(9) as u32).collect(),
        };
        Writes {
            limit: if kind == Kind::Never { 0 } else { limit },
            kind,
            random,
            rate,
            fixed: d.scale(0.05, 2.0),
            close: erase as f64 / rate * 1e3 * d.from(0.25, 1.1),
            decline: d.from(0.0, 0.04) * d.unit(),
            noise: d.scale(0.003, 0.05),
            stalls: d.from(0.0, 0.05),
            burst: 0.08,
            log: if d.chance(0.5) { d.pick(&[8 * KIB, 16 * KIB, 32 * KIB]) } else { 0 },
            tested,
            cut: d.chance(0.25),
            erase,
            smallest: d.pick(&[4 * KIB, 4 * KIB, 16 * KIB]),
        }
    }

    fn ms(&self, n: u32, block: u64) -> f64 {
        let plain = self.fixed + block as f64 / self.rate * 1e3;
        if self.kind == Kind::Never {
            return plain + if block >= self.erase / 2 { 0.0 } else { self.close };
        }
        let mut t = plain * (1.0 + self.decline * (n - 1) as f64);
        if self.random {
            t *= 1.0 + 0.5 * (1.0 - (block as f64 / self.erase as f64).powf(0.2));
        }
        if block < self.log {
            return t * if n > 1 { 3.0 } else { 1.0 };
        }
        if n > self.limit && block <= self.erase / 4 {
            t = match self.kind {
                Kind::Factor(f) => t * f * (1.0 + 0.15 * (n - self.limit).min(4) as f64),
                Kind::Half if n == self.limit + 1 => t + 0.5 * self.close,
                _ => t + self.close * (1.0 - block as f64 / self.erase as f64),
            };
        }
        t
    }

    pub fn log(&self, d: &mut Dice) -> String {
        let mut out = String::new();
        for &n in &self.tested {
            let random = if self.random { " --random" } else { "" };
            let _ = writeln!(
                out,
                "$ sudo ./flashbench --open-au --open-au-nr={n}{random} --erasesize={} --blocksize={} /dev/sdb",
                self.erase, self.smallest
            );
            let mut sizes: Vec<u64> = (0..).map(|k| self.erase >> k).take_while(|&s| s >= self.smallest).collect();
            // The user loses patience where it is slow.
            if self.cut && n > self.limit {
                sizes.truncate(5 + d.below(3));
            }
            let from = d.below(sizes.len());
            let burst = if d.chance(self.burst) { from..from + 1 + d.below(3) } else { 0..0 };
            let slower = d.from(1.3, 2.2);
            for (i, &s) in sizes.iter().enumerate() {
                let mut t = self.ms(n, s) * (1.0 + self.noise * d.normal());
                if burst.contains(&i) {
                    t *= slower;
                }
                if d.chance(self.stalls) {
                    t *= d.from(1.2, 3.0);
                }
                let _ = writeln!(out, "{:<7} {:<8}", size(s), rate(s as f64 / t.max(1e-3) * 1e3));
            }
            if self.cut && n > self.limit {
                let _ = writeln!(out, "^C");
            }
        }
        out
    }

    /// What the tests can show: the limit itself, or only that it is not below a number.
    pub fn shows(&self) -> Shown {
        let fits = self.tested.iter().copied().filter(|&n| n <= self.limit).max();
        let over = self.tested.iter().copied().find(|&n| n > self.limit);
        match (fits, over) {
            (_, Some(1)) if self.kind == Kind::Never => Shown::Limit(0),
            (Some(a), Some(b)) if b == a + 1 => Shown::Limit(a),
            (Some(a), _) => Shown::AtLeast(a),
            _ => Shown::Nothing,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shown {
    Limit(u32),
    AtLeast(u32),
    Nothing,
}
