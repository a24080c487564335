//! The 34 experiments as parameters: what is varied, over which values, with how many accesses.
//!
//! Facts of the plan of flashio 2.2.99.2 (github.com/blusjune/.bsrc, benchmark/src.gpgizeme/uflip) and the defaults of FlashIO 2.3
//! (github.com/ClydeProjects/FlashIO); counts as they were meant, not as coded, where those of RR and SW are exchanged.

use crate::units::{KIB, MIB, SECTOR};
use serde::Serialize;

/// Bytes of an access, unless that is what varies.
pub const SIZE: u64 = 32 * KIB;
/// Areas begin at a multiple of this.
pub const ALIGN: u64 = 128 * KIB;
/// Each value is repeated at least this often.
pub const RUNS: u32 = 3;
/// Pause between experiments, in ms, at least.
pub const PAUSE_MS: f64 = 100.0;
/// Pause after each burst, in µs.
pub const BURST_PAUSE_US: u64 = 100_000;

/// One of the four baselines: sequential or random, reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Base {
    #[serde(rename = "SR")]
    Sr,
    #[serde(rename = "RR")]
    Rr,
    #[serde(rename = "SW")]
    Sw,
    #[serde(rename = "RW")]
    Rw,
}

impl Base {
    pub const ALL: [Base; 4] = [Base::Sr, Base::Rr, Base::Sw, Base::Rw];

    pub fn name(self) -> &'static str {
        ["SR", "RR", "SW", "RW"][self as usize]
    }

    pub fn writes(self) -> bool {
        matches!(self, Base::Sw | Base::Rw)
    }

    pub fn random(self) -> bool {
        matches!(self, Base::Rr | Base::Rw)
    }

    /// Accesses of a run.
    pub fn count(self) -> u64 {
        [128, 256, 1024, 5116][self as usize]
    }

    /// Accesses at the start that do not count, unless a longer start-up was found.
    pub fn ignore(self) -> u64 {
        if self == Base::Rw { 50 } else { 0 }
    }
}

/// What varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Vary {
    Granularity,
    Alignment,
    Locality,
    Partitioning,
    Order,
    Parallelism,
    Mix,
    Pause,
    Bursts,
}

impl Vary {
    /// The name of the micro-benchmark.
    pub fn name(self) -> &'static str {
        ["granularity", "alignment", "locality", "partitioning", "order", "parallelism", "mix", "pause", "bursts"][self as usize]
    }

    /// The parameter with its unit, for an axis.
    pub fn axis(self) -> &'static str {
        [
            "bytes of an access",
            "shift, bytes",
            "target size, bytes",
            "partitions",
            "increment, accesses",
            "streams at the same time",
            "ratio: above 0 the first base more often",
            "pause after each access, µs",
            "accesses in a burst",
        ][self as usize]
    }
}

/// One experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Experiment {
    /// Number of the micro-benchmark from 1, and of the experiment in it.
    pub bench: u32,
    pub exp: u32,
    /// As the result files name it: "GRA.SR".
    pub code: String,
    pub vary: Vary,
    pub base: Base,
    /// The second base of a mix.
    pub second: Option<Base>,
    /// In sectors of 512 B, accesses, µs or numbers, as the parameter has it.
    pub values: Vec<i64>,
}

fn powers(from: u32, to: u32) -> Vec<i64> {
    (from..=to).map(|k| 1i64 << k).collect()
}

/// All, in the order in which they run: reads, then random writes, then sequential writes, on areas that no other one used.
pub fn all() -> Vec<Experiment> {
    use Base::{Rr, Rw, Sr, Sw};
    use Vary::{Alignment, Bursts, Granularity, Locality, Mix, Order, Parallelism, Partitioning, Pause};
    let order: [(Vary, Base, Option<Base>, u32); 34] = [
        (Granularity, Sr, None, 1),
        (Granularity, Rr, None, 2),
        (Alignment, Sr, None, 1),
        (Alignment, Rr, None, 2),
        (Locality, Sr, None, 1),
        (Locality, Rr, None, 2),
        (Partitioning, Sr, None, 1),
        (Order, Sr, None, 1),
        (Parallelism, Sr, None, 1),
        (Parallelism, Rr, None, 2),
        (Mix, Sr, Some(Rr), 1),
        (Pause, Sr, None, 1),
        (Pause, Rr, None, 2),
        (Bursts, Sr, None, 1),
        (Bursts, Rr, None, 2),
        (Granularity, Rw, None, 4),
        (Alignment, Rw, None, 4),
        (Parallelism, Rw, None, 4),
        (Mix, Sr, Some(Rw), 2),
        (Mix, Rr, Some(Rw), 5),
        (Pause, Rw, None, 4),
        (Bursts, Rw, None, 4),
        (Mix, Rr, Some(Sw), 4),
        (Mix, Sw, Some(Rw), 6),
        (Mix, Sr, Some(Sw), 3),
        (Granularity, Sw, None, 3),
        (Alignment, Sw, None, 3),
        (Locality, Sw, None, 3),
        (Pause, Sw, None, 3),
        (Bursts, Sw, None, 3),
        (Locality, Rw, None, 4),
        (Partitioning, Sw, None, 2),
        (Parallelism, Sw, None, 3),
        (Order, Sw, None, 2),
    ];
    order.into_iter().map(|(vary, base, second, exp)| one(vary, base, second, exp)).collect()
}

fn one(vary: Vary, base: Base, second: Option<Base>, exp: u32) -> Experiment {
    let values = match vary {
        Vary::Granularity => [powers(0, 9), vec![3, 7, 15, 31, 63]].concat(),
        Vary::Alignment => powers(0, 6),
        Vary::Locality if base.random() => powers(0, 16),
        Vary::Locality | Vary::Partitioning => powers(0, 8),
        Vary::Order => [vec![-1, 0], powers(0, 8)].concat(),
        Vary::Parallelism => powers(0, 4),
        Vary::Mix => [powers(0, 6).iter().rev().map(|v| -v).collect(), vec![0], powers(0, 6)].concat(),
        Vary::Pause => std::iter::once(0).chain((0..9).map(|k| 100 << k)).collect(),
        Vary::Bursts => (0..7).map(|k| 10 << k).collect(),
    };
    let short = ["GRA", "ALI", "LOC", "PAT", "ORD", "PAR", "M", "PIO", "PBU"][vary as usize];
    let of = match (vary, second) {
        (_, Some(b)) => format!("{}.{}", base.name(), b.name()),
        (Vary::Partitioning | Vary::Order, None) => base.name()[1..].to_string(),
        _ => base.name().to_string(),
    };
    Experiment { bench: vary as u32 + 1, exp, code: format!("{short}.{of}"), vary, base, second, values }
}

/// What a pattern does: everything that an access of it depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pattern {
    pub base: Base,
    pub second: Option<Base>,
    pub ratio: i64,
    pub size: u64,
    pub shift: u64,
    /// Bytes of the area; the whole region for random accesses where none is given.
    pub target: Option<u64>,
    pub partitions: u64,
    pub increment: i64,
    pub streams: u64,
    pub pause_us: u64,
    pub burst: u64,
    pub count: u64,
    pub ignore: u64,
}

impl Experiment {
    /// The pattern for one value. `start_up`: accesses that each base needs before it is steady, where that was found.
    pub fn pattern(&self, value: i64, start_up: &dyn Fn(Base) -> u64) -> Pattern {
        let v = value.unsigned_abs();
        let ignore = |b: Base| b.ignore().max(start_up(b));
        // A longer start-up does not shorten what is counted.
        let count = |b: Base| b.count() - b.ignore() + ignore(b);
        let mut p = Pattern {
            base: self.base,
            second: None,
            ratio: 0,
            size: SIZE,
            shift: 0,
            target: None,
            partitions: 1,
            increment: 1,
            streams: 1,
            pause_us: 0,
            burst: 0,
            count: count(self.base),
            ignore: ignore(self.base),
        };
        match self.vary {
            Vary::Granularity => p.size = v * SECTOR,
            Vary::Alignment => p.shift = v * SECTOR,
            Vary::Locality => p.target = Some(v * SIZE),
            Vary::Partitioning => p.partitions = v,
            Vary::Order => p.increment = value,
            Vary::Parallelism => p.streams = v,
            Vary::Pause => p.pause_us = v,
            Vary::Bursts => p.burst = v,
            Vary::Mix => {
                let (one, two) = (self.base, self.second.unwrap_or(self.base));
                (p.second, p.ratio) = (Some(two), value);
                let (a, b, r) = if value >= 0 { (one, two, v) } else { (two, one, v) };
                if value == 0 {
                    (p.count, p.ignore) = (count(two), ignore(two));
                } else {
                    // For r > 0 one access of the second base, then r of the first; both must be past their start.
                    let (i1, i2) = (ignore(a), ignore(b));
                    p.ignore = (i2 + i2.saturating_sub(1) * r + u64::from(i2 > 0)).max(if i1 > 0 { i1 * (r + 1) / r + 1 } else { 0 });
                    p.count = (count(a) - i1).max(count(b) - i2) + p.ignore;
                }
            }
        }
        p
    }

    /// Of a mix, which base access `k` has.
    pub fn base_of(p: &Pattern, k: u64) -> Base {
        let Some(second) = p.second else { return p.base };
        let round = p.ratio.unsigned_abs() + 1;
        match p.ratio {
            0 => second,
            r if r > 0 => {
                if k.is_multiple_of(round) {
                    second
                } else {
                    p.base
                }
            }
            _ => {
                if k.is_multiple_of(round) {
                    p.base
                } else {
                    second
                }
            }
        }
    }

    /// Bytes that one run of a value writes.
    pub fn written(&self, p: &Pattern) -> u64 {
        match p.second {
            None if p.base.writes() => p.count * p.size,
            None => 0,
            Some(_) => (0..p.count).filter(|&k| Experiment::base_of(p, k).writes()).count() as u64 * p.size,
        }
    }

    pub fn writes(&self) -> bool {
        self.base.writes() || self.second.is_some_and(Base::writes)
    }

    /// What the values mean on an axis.
    pub fn x(&self, value: i64) -> f64 {
        let v = value as f64;
        match self.vary {
            Vary::Granularity | Vary::Alignment => v * SECTOR as f64,
            Vary::Locality => v * SIZE as f64,
            _ => v,
        }
    }
}

/// A region smaller than this holds none of the experiments.
pub const LEAST: u64 = 8 * MIB;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_is_the_published_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/published/uflip-plan.tsv");
        let all = all();
        assert_eq!(all.len(), 34);
        // 9 micro-benchmarks, each experiment once.
        let mut codes: Vec<&str> = all.iter().map(|e| e.code.as_str()).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), 34);
        let Ok(text) = std::fs::read_to_string(path) else { return };
        let rows: Vec<Vec<&str>> = text.lines().filter(|l| !l.starts_with('#')).skip(1).map(|l| l.split('\t').collect()).collect();
        for (e, r) in all.iter().zip(&rows) {
            let values: Vec<i64> = r[9].split(' ').map(|v| v.parse().unwrap()).collect();
            assert_eq!((e.bench.to_string().as_str(), e.vary.name(), e.exp.to_string().as_str()), (r[1], r[2], r[3]));
            assert_eq!((e.code.as_str(), e.base.name(), e.second.map_or("-", Base::name)), (r[4], r[5], r[6]));
            assert_eq!(e.values, values, "{}", e.code);
            let counts: Vec<String> = std::iter::once(e.base).chain(e.second).map(|b| b.count().to_string()).collect();
            assert_eq!(counts.join(","), r[12], "{}", e.code);
        }
    }

    #[test]
    fn mixes_have_the_counts_of_the_formula() {
        let e = all().into_iter().find(|e| e.code == "M.SR.RW").unwrap();
        let none = |_: Base| 0;
        // ignore = max(I2 + (I2 - 1) r + 1, I1 (r + 1) / r + 1), count = max(C1 - I1, C2 - I2) + ignore.
        let p = e.pattern(4, &none);
        assert_eq!((p.ignore, p.count), (50 + 49 * 4 + 1, 5066 + 50 + 49 * 4 + 1));
        let bases: Vec<Base> = (0..6).map(|k| Experiment::base_of(&p, k)).collect();
        assert_eq!(bases, [Base::Rw, Base::Sr, Base::Sr, Base::Sr, Base::Sr, Base::Rw]);
        let p = e.pattern(-2, &none);
        assert_eq!((Experiment::base_of(&p, 0), Experiment::base_of(&p, 1), Experiment::base_of(&p, 3)), (Base::Sr, Base::Rw, Base::Sr));
        let p = e.pattern(0, &none);
        assert_eq!((p.count, p.ignore, Experiment::base_of(&p, 7)), (5116, 50, Base::Rw));
    }
}
