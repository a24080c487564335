//! One test of flashbench, ready to be run: what it will do, and its lines.

use super::align::{self, Align};
use super::interval::{self, Interval};
use super::pattern::{Cost, Pattern, Room, Running, Set};
use super::scatter::{self, Scatter};
use super::{Failure, Watch};
use crate::device::{Device, DeviceError, Geometry, Op};
use crate::units::Bytes;
use std::collections::BTreeMap;
use std::io::Write;

/// The tests that write, as patterns.
const OPEN_AU: &str = include_str!("../../patterns/open-au.pattern");
const FIND_FAT: &str = include_str!("../../patterns/find-fat.pattern");
const KINDS: &str = include_str!("../../patterns/access-kinds.pattern");

/// A test with its parameters.
#[derive(Clone, Debug)]
pub enum Job {
    Scatter(Scatter),
    Align(Align),
    Interval(Interval),
    Pattern { pattern: Pattern, set: Vec<Set>, seed: u64 },
}

/// Where the AUs of a write test lie, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Aus {
    pub erase: u64,
    pub block: u64,
    pub count: u64,
    pub start: u64,
    /// Erase blocks from the beginning of one AU to that of the next.
    pub spacing: u64,
    pub random: bool,
    pub passes: u32,
}

impl Aus {
    /// The start that flashbench takes: 16 MiB rounded up to the erase size, on the grid of the whole disk.
    pub fn default_start(erase: u64, g: &Geometry) -> u64 {
        let on_disk = (g.offset.saturating_add(16 << 20)).checked_next_multiple_of(erase.max(1)).unwrap_or(u64::MAX);
        on_disk - g.offset
    }

    fn end(&self, spacing: u64) -> Option<u64> {
        let last = self.count.checked_sub(1)?.checked_mul(spacing)?.checked_mul(self.erase)?;
        self.start.checked_add(last)?.checked_add(self.erase)
    }

    /// Checks sizes and room before anything is sent.
    fn check(&self, name: &str, g: &Geometry) -> Result<(), Failure> {
        let sector = g.sector;
        for (option, v) in [("blocksize", self.block), ("erasesize", self.erase), ("offset", self.start)] {
            if !v.is_multiple_of(sector) || (v == 0 && option != "offset") {
                return Err(Failure::Usage(format!("--{option}={v} must be a multiple of the {sector} byte sector")));
            }
        }
        if self.block > self.erase {
            return Err(Failure::Usage(format!("--blocksize={} is larger than --erasesize={}", self.block, self.erase)));
        }
        if self.count == 0 || self.spacing == 0 {
            return Err(Failure::Usage("the number of AUs and their spacing begin at 1".into()));
        }
        let end = self.end(self.spacing);
        if end.is_some_and(|e| e <= g.size) {
            return Ok(());
        }
        let need = end.map_or("more than there can be".into(), |e| Bytes(e).to_string());
        let mut hints = vec![];
        if let Some(s) = (1..self.spacing).rev().find(|&s| self.end(s).is_some_and(|e| e <= g.size)) {
            hints.push(format!("--spacing={s} fits"));
        }
        let fits = |n: u64| Aus { count: n, ..*self }.end(self.spacing).is_some_and(|e| e <= g.size);
        if let Some(n) = (1..self.count.min(100_000)).rev().find(|&n| fits(n)) {
            hints.push(if n == 1 { "1 AU fits".into() } else { format!("{n} AUs fit") });
        }
        if hints.is_empty() {
            hints.push("take a smaller --erasesize or --offset".into());
        }
        Err(DeviceError::Refused(format!(
            "{name} with {} AUs of {} from {} on needs {need}, and the target has {}; flashbench would wrap and overwrite its start. {}",
            self.count,
            Bytes(self.erase),
            Bytes(self.start),
            Bytes(g.size),
            hints.join(", ")
        ))
        .into())
    }
}

impl Job {
    /// `--open-au`.
    ///
    /// # Errors
    /// `Usage` for sizes that cannot be; `Refused` where the AUs have no room.
    pub fn open_au(a: &Aus, g: &Geometry, seed: u64) -> Result<Job, Failure> {
        a.check("--open-au", g)?;
        let mut set = a.set();
        set.push(("apart".into(), i128::from(a.spacing) * i128::from(a.erase)));
        Ok(Job::Pattern { pattern: Pattern::parse("open-au.pattern", OPEN_AU)?, set, seed })
    }

    /// `--find-fat`; the AUs lie one beside the other.
    ///
    /// # Errors
    /// As `open_au`.
    pub fn find_fat(a: &Aus, g: &Geometry, seed: u64) -> Result<Job, Failure> {
        let a = &Aus { spacing: 1, ..*a };
        a.check("--find-fat", g)?;
        Ok(Job::Pattern { pattern: Pattern::parse("find-fat.pattern", FIND_FAT)?, set: a.set(), seed })
    }

    /// `-p`: one AU, down to `smallest` bytes.
    ///
    /// # Errors
    /// As `open_au`.
    pub fn kinds(erase: u64, smallest: u64, start: u64, g: &Geometry, seed: u64) -> Result<Job, Failure> {
        let a = Aus { erase, block: smallest, count: 1, start, spacing: 1, random: false, passes: 1 };
        a.check("-p", g)?;
        let set = [("erase", erase), ("smallest", smallest.max(g.sector)), ("start", start)].map(|(k, v)| (k.to_string(), i128::from(v)));
        Ok(Job::Pattern { pattern: Pattern::parse("access-kinds.pattern", KINDS)?, set: set.to_vec(), seed })
    }

    /// A word for the progress line.
    pub fn name(&self) -> &str {
        match self {
            Job::Scatter(_) => "scatter",
            Job::Align(a) => {
                if a.write {
                    "align, writing"
                } else {
                    "align"
                }
            }
            Job::Interval(_) => "interval",
            Job::Pattern { pattern, .. } => pattern.name(),
        }
    }

    /// What it will do.
    ///
    /// # Errors
    /// Whatever would be wrong with it; nothing is sent.
    pub fn cost(&self, g: &Geometry) -> Result<Cost, Failure> {
        match self {
            Job::Scatter(s) => s.cost(g),
            Job::Align(a) => a.cost(g),
            Job::Interval(i) => i.cost(g),
            Job::Pattern { pattern, set, .. } => pattern.cost(set, &room(g)),
        }
    }

    /// Runs it and writes its lines. Gives remarks on them.
    ///
    /// # Errors
    /// The device's, the output's, `Interrupted`.
    pub fn run(&self, device: &mut dyn Device, out: &mut dyn Write, watch: &mut Watch) -> Result<Vec<String>, Failure> {
        match self {
            Job::Scatter(s) => {
                let (rows, notes) = s.run(device, watch)?;
                scatter::print(&rows, out)?;
                Ok(notes)
            }
            Job::Align(a) => {
                let table = a.run(device, watch)?;
                align::print(&table.rows, out)?;
                Ok(table.notes)
            }
            Job::Interval(i) => {
                let (rows, mut notes) = i.run(device, watch)?;
                notes.extend(interval::print(&rows, out)?);
                Ok(notes)
            }
            Job::Pattern { pattern, set, seed } => {
                let room = room(device.geometry());
                let mut times: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
                let mut done = |a: crate::device::Access, t: crate::units::Nanos, measured: bool| {
                    (watch.done)(a, t);
                    if let (Op::Write(_), true) = (a.op, measured) {
                        times.entry(a.len).or_default().push(t.0 as f64);
                    }
                };
                let how = Running { seed: *seed, stop: watch.stop, done: &mut done };
                let mut lines = Lines { out, open: false };
                let done = pattern.run(set, &room, device, &mut lines, how);
                // A row that was cut ends all the same: what is said next stands in a line of its own.
                if done.is_err() && lines.open {
                    let _ = lines.out.write_all(b"\n").and_then(|()| lines.out.flush());
                }
                done?;
                Ok(spread(&times).into_iter().collect())
            }
        }
    }
}

/// Knows whether the last line was ended.
struct Lines<'a> {
    out: &'a mut dyn Write,
    open: bool,
}

impl Write for Lines<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let n = self.out.write(bytes)?;
        if let Some(last) = bytes[..n].last() {
            self.open = *last != b'\n';
        }
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

impl Aus {
    fn set(&self) -> Vec<Set> {
        let all = [
            ("erase", self.erase),
            ("block", self.block),
            ("aus", self.count),
            ("start", self.start),
            ("random", u64::from(self.random)),
            ("passes", u64::from(self.passes)),
        ];
        all.map(|(k, v)| (k.to_string(), i128::from(v))).to_vec()
    }
}

fn room(g: &Geometry) -> Room {
    Room { region: 0..g.size, sector: g.sector }
}

/// The slowest write of each size against the median: what a mean hides.
fn spread(times: &BTreeMap<u64, Vec<f64>>) -> Option<String> {
    let each = times.iter().rev().filter(|t| t.1.len() >= 2).map(|(len, t)| {
        let worst = t.iter().copied().fold(0.0, f64::max).max(1.0) / nandscope_stats::median(t).max(1.0);
        let worst = if worst < 9.95 { format!("{worst:.1}") } else { format!("{worst:.0}") };
        format!("{} {worst}", super::format::neat_size(*len))
    });
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| format!("slowest write / median: {}", each.join(", ")))
}
