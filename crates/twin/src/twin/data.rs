//! What a report measured, as one sequence of accesses.

use crate::device::Op as Did;
use crate::finding::{Findings, Quantity};
use crate::saved::{Report, one_card};
use nandscope_sim::Op;
use nandscope_sim::trace::Io;
use std::collections::BTreeMap;

/// Why there is no twin.
#[derive(Debug, thiserror::Error)]
pub enum TwinError {
    /// The reports cannot be used: what is wrong, and with which.
    #[error("{0}")]
    Unusable(String),
    /// What was measured is no card of a kind that is known here.
    #[error("no twin: {0}")]
    NoCard(String),
}

/// One access that was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// What was done.
    pub op: Op,
    /// First byte.
    pub at: u64,
    /// Bytes.
    pub len: u64,
    /// ns it took.
    pub took: u64,
    /// ns since the access before it was done.
    pub gap: u64,
    /// Number of its condition.
    pub condition: u32,
    /// Number of its experiment.
    pub part: u16,
    /// The first of a report: what the card did before is not known.
    pub first: bool,
}

/// Everything that was measured of a card.
#[derive(Clone, Debug, Default)]
pub struct Data {
    /// In the order in which they were made, report by report.
    pub rows: Vec<Row>,
    /// Names of the experiments.
    pub parts: Vec<String>,
    /// Of each condition its experiment and what it was: the same cell, part in the trial, kind and length.
    pub conditions: Vec<(u16, String)>,
    /// Bytes of the target.
    pub size: u64,
    /// Bytes of a sector.
    pub sector: u64,
    /// Bytes that are there, where they are fewer than reported.
    pub real: Option<u64>,
    /// What the detectors say of all runs, which says where to look.
    pub findings: Findings,
    /// ns at whose multiples the host gives answers; 0 = at any time.
    pub tick: u64,
    /// The host sent a flush after every write, which is part of it.
    pub flushes: bool,
    /// Bytes written up to which writes were faster than later, as single series show them.
    pub fast: Vec<u64>,
    /// What was measured, in the reports' own words.
    pub name: String,
}

/// The longest time that an access can have taken, in ns: an hour.
const LONGEST: u64 = 3_600_000_000_000;

/// ns of a small access: sensing a page takes 25 us and more in data sheets, and the bus of a card moves a sector and its command in 5 us at best (SD
/// Physical Layer, UHS-I).
const FASTEST: f64 = 10_000.0;

/// Fewer accesses say nothing of a structure: a condition needs several repetitions, and a structure several conditions.
const FEWEST: usize = 60;

/// Experiments whose accesses are no plain reads and writes, one after the other: raw transactions with other commands, several
/// requests in flight, and writes that are not flushed.
const RAW: [&str; 5] = ["multi-block", "queue-depth", "queue-depth-write", "flush", "mixed-reads"];

impl Data {
    /// All reports together. `names` are those of the files, for errors.
    ///
    /// # Errors
    /// A report without samples, with numbers that cannot be, or of another card than the first.
    pub fn of(reports: &[(String, Report)]) -> Result<Data, TwinError> {
        let mut data = Data::default();
        let mut at_once = 0;
        let mut conditions: BTreeMap<(u16, u32, u8, u8, u64), u32> = BTreeMap::new();
        one_card(reports.iter().map(|(name, r)| (name.as_str(), r))).map_err(TwinError::Unusable)?;
        for (name, r) in reports {
            let wrong = |why: String| TwinError::Unusable(format!("{name}: {why}"));
            let (size, sector) = r.geometry();
            if size == 0 || !matches!(sector, 512 | 4096) || size % sector != 0 {
                return Err(wrong(format!("its target has {size} bytes in sectors of {sector}, which cannot be")));
            }
            (data.size, data.sector) = (size, sector);
            data.real = data.real.or(r.real_bytes.filter(|_| r.counterfeit == Some(true)));
            let mut all: Vec<(u16, u32, &str, crate::samples::Sample)> = vec![];
            for (i, run) in r.runs.iter().enumerate().filter(|(_, run)| !RAW.contains(&run.experiment.as_str())) {
                let part = data.part(&run.experiment);
                for s in &run.samples {
                    let label = run.cell(s.cell).map_or("", |c| c.label.as_str());
                    all.push((part, i as u32, label, *s));
                }
            }
            // Runs that went on later are told together: time says what came first.
            all.sort_by_key(|x| (x.3.start, x.3.took));
            // A run that was copied into the report again was measured once: no card serves two requests in the same time, one after the
            // other.
            let what = |s: &crate::samples::Sample| (s.start, s.took, s.at, s.len, s.op);
            all.dedup_by(|a, b| a.3.took.0 > 0 && what(&a.3) == what(&b.3));
            let (mut end, mut first) = (0, true);
            for (part, run, label, s) in all {
                let op = match s.op {
                    Did::Read => Op::Read,
                    Did::Write(_) => Op::Write,
                    Did::Discard => Op::Discard,
                    Did::Flush => Op::Flush,
                };
                let last = s.at.checked_add(s.len).filter(|&l| l <= size);
                if last.is_none() || (s.at | s.len) % sector != 0 || s.len == 0 && op != Op::Flush {
                    return Err(wrong(format!("an access of {} bytes at {} is not part of a card of {size} bytes", s.len, s.at)));
                }
                if s.took.0 > LONGEST || s.start.0 > u64::MAX / 2 {
                    return Err(wrong(format!("an access is said to have taken {} s, which it cannot have", s.took.0 / 1_000_000_000)));
                }
                // A read that failed has no time, nor has what a card that keeps no time serves.
                if s.took.0 == 0 {
                    at_once += 1;
                    continue;
                }
                let key = (part, run << 16 | s.cell, s.role, op as u8, s.len);
                let next = data.conditions.len() as u32;
                let condition = *conditions.entry(key).or_insert(next);
                if condition == next {
                    let what = ["read", "write", "discard", "flush"][op as usize];
                    data.conditions.push((part, format!("{label}: {what} {}", crate::units::Bytes(s.len))));
                }
                let gap = if first { 0 } else { s.start.0.saturating_sub(end) };
                end = s.start.0 + s.took.0;
                data.rows.push(Row { op, at: s.at, len: s.len, took: s.took.0, gap, condition, part, first });
                first = false;
            }
        }
        if data.rows.len() < FEWEST && at_once >= FEWEST {
            return Err(TwinError::NoCard(format!("{at_once} accesses took no time at all: what answers at once is no flash card")));
        }
        if data.rows.len() < FEWEST {
            let what = if data.rows.is_empty() {
                "no accesses were saved".into()
            } else {
                format!("only {} accesses were saved", data.rows.len())
            };
            return Err(TwinError::Unusable(format!(
                "{}: {what}, at least {FEWEST} are needed; `nandscope probe TARGET --json REPORT.json` saves them",
                reports.first().map_or("", |r| r.0.as_str())
            )));
        }
        let mut small: Vec<f64> = data.rows.iter().filter(|r| r.len <= 4096).map(|r| r.took as f64).collect();
        let usual = super::costs::median(&mut small);
        if usual < FASTEST {
            let why = format!("a small access takes {:.1} us, and no flash card answers so soon (a RAM disk, a cache)", usual / 1e3);
            return Err(TwinError::NoCard(why));
        }
        data.tick = tick(&data.rows);
        data.fast = super::shown::fast_bytes(&data);
        let declared = |r: &Report| r.host.queue.as_ref().is_some_and(|q| q.write_cache.as_deref() == Some("write back"));
        data.flushes = reports.iter().all(|(_, r)| r.setting().contains_key("flushes") || declared(r));
        let runs: Vec<_> = reports.iter().flat_map(|(_, r)| r.runs.clone()).collect();
        data.findings = Report::infer(&runs);
        data.name = reports.first().map_or_else(String::new, |(_, r)| r.target.path.clone());
        Ok(data)
    }

    fn part(&mut self, name: &str) -> u16 {
        let at = self.parts.iter().position(|p| p == name).unwrap_or_else(|| {
            self.parts.push(name.into());
            self.parts.len() - 1
        });
        at as u16
    }

    /// The accesses as they were made, one after the other, with their rests.
    pub fn ios(&self) -> Vec<Io> {
        let mut now = 0;
        let one = |r: &Row| {
            let time = now + r.gap;
            now = time + r.took;
            Io { time, op: r.op, at: r.at, len: r.len, took: r.took }
        };
        self.rows.iter().map(one).collect()
    }

    /// ns: the width of the narrowest core that is believed. Times that are rounded up to a multiple of a tick have that of a uniform distribution.
    pub fn grain(&self) -> f64 {
        super::costs::GRAIN.max(self.tick as f64 / 12f64.sqrt())
    }

    /// Whether anything was written.
    pub fn writes(&self) -> bool {
        self.rows.iter().any(|r| r.op == Op::Write)
    }

    /// Values that the detectors named of a quantity, the likeliest first.
    pub fn named(&self, q: Quantity) -> Vec<u64> {
        let Some(f) = self.findings.get(q) else { return vec![] };
        let mut all: Vec<(f64, f64)> = f.number().map(|v| (v, f.confidence)).into_iter().collect();
        all.extend(f.rivals.iter().map(|r| (r.value.0, r.probability)));
        all.extend(f.at_least.map(|a| (a.0, 0.0)));
        all.extend(f.interval.filter(|_| f.number().is_none()).map(|i| (i[1], 0.0)));
        all.into_iter().map(|x| x.0.max(0.0) as u64).collect()
    }
}

/// ns of the frames and microframes of USB 2.0 (8.4.3): a host that asks once in each gives its answers at their ends.
const TICKS: [u64; 2] = [1_000_000, 125_000];

/// The tick at which most accesses end, so that from the end of one to that of the next it is a multiple of it; by chance 4 in 100 lie within a fiftieth of one. Times that hardly vary say nothing: several
/// multiples must have come often.
fn tick(rows: &[Row]) -> u64 {
    let of = |tick: u64| {
        let mut at: BTreeMap<u64, usize> = BTreeMap::new();
        let near = rows.iter().map(|r| r.gap + r.took + tick / 50).map(|t| (t / tick, t % tick)).filter(|x| x.1 <= tick / 25);
        near.for_each(|x| *at.entry(x.0).or_default() += 1);
        let all: usize = at.values().sum();
        all * 2 > rows.len() && at.values().filter(|n| **n * 100 > rows.len()).count() > 3
    };
    TICKS.into_iter().find(|t| of(*t)).unwrap_or(0)
}
