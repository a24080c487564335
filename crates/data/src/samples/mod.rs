//! What was measured: one row an access. A saved run can be inferred again without the card.

pub mod busy;
pub mod firmware;
pub mod import;
pub mod metric;
pub mod records;

pub use crate::device::mmc::{Multi, SINGLE_ONLY};
use crate::device::{Fill, Op};
use crate::units::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One condition to compare.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    pub id: u32,
    pub label: String,
    /// What the experiment set: sizes in bytes, counts.
    pub set: BTreeMap<String, i64>,
}

impl Cell {
    pub fn new(label: impl Into<String>, set: &[(&str, i64)]) -> Cell {
        Cell { id: 0, label: label.into(), set: set.iter().map(|(k, v)| (k.to_string(), *v)).collect() }
    }

    /// A setting; 0 when it was not set (a run read from a file may lack it).
    pub fn get(&self, key: &str) -> i64 {
        self.set.get(key).copied().unwrap_or(0)
    }

    pub fn bytes(&self, key: &str) -> u64 {
        self.get(key).max(0) as u64
    }
}

/// One access, timed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    pub cell: u32,
    /// Number of the trial within the cell.
    pub trial: u32,
    /// What the access was for; the experiment names its roles.
    pub role: u8,
    pub op: Op,
    pub at: u64,
    pub len: u64,
    pub start: Nanos,
    pub took: Nanos,
}

impl Sample {
    pub fn is_write(&self) -> bool {
        matches!(self.op, Op::Write(_))
    }

    /// The bytes it went to.
    pub fn range(&self) -> std::ops::Range<u64> {
        self.at..self.at + self.len
    }

    /// Is this of the same trial of the same cell?
    pub fn same_trial(&self, other: &Sample) -> bool {
        (self.cell, self.trial) == (other.cell, other.trial)
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    Complete,
    /// Time or write budget used up.
    Budget(String),
    Interrupted,
    Failed(String),
}

/// The form of `setting` that is written now.
pub const FORM: u32 = 2;

/// Erase blocks as a run went by them, in bytes; `None` where it had to do without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    pub unit: Option<u64>,
    /// Where they begin, from the start of the target.
    pub phase: Option<u64>,
    /// The same to some KiB only, and how far from it they may begin.
    pub about: Option<u64>,
    pub slack: Option<u64>,
}

/// The samples of one experiment on one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub experiment: String,
    pub cells: Vec<Cell>,
    #[serde(with = "columns")]
    pub samples: Vec<Sample>,
    pub ended: Ended,
    /// Accesses that failed and were left out.
    pub faults: Vec<String>,
    /// What was done: `size`, `sector`, `offset` of the target and `start`, `end` of the region in bytes, `time_ms` allowed, and where the
    /// AUs lie that were written. Runs of earlier versions hold what was believed then as well.
    pub setting: BTreeMap<String, i64>,
    /// The form of `setting`: 2 where it holds only what was done.
    #[serde(default)]
    pub form: u32,
    /// Places of a cell's samples; a run of fifty thousand is asked for them after every trial.
    #[serde(skip)]
    by_cell: Vec<Vec<u32>>,
    #[serde(skip)]
    indexed: usize,
}

/// The setting of a run in one partition of several.
const PART: &str = "part";

impl Run {
    pub fn new(experiment: &str) -> Run {
        Run {
            experiment: experiment.into(),
            cells: vec![],
            samples: vec![],
            ended: Ended::Complete,
            faults: vec![],
            setting: BTreeMap::new(),
            form: FORM,
            by_cell: vec![],
            indexed: 0,
        }
    }

    /// The same with these samples instead, whole trials of its own in their order.
    pub fn with_samples(&self, samples: Vec<Sample>) -> Run {
        let mut run = Run {
            experiment: self.experiment.clone(),
            cells: self.cells.clone(),
            samples,
            ended: self.ended.clone(),
            faults: self.faults.clone(),
            setting: self.setting.clone(),
            form: self.form,
            by_cell: vec![],
            indexed: 0,
        };
        run.index();
        run
    }

    /// Notes that the region is a partition, which no option makes larger; what is concluded then says so.
    pub fn of_part(&mut self) {
        self.setting.insert(PART.into(), 1);
    }

    pub fn is_part(&self) -> bool {
        self.setting.contains_key(PART)
    }

    /// What reasons call the bytes that a run was given.
    pub fn stretch(&self) -> &'static str {
        if self.is_part() { "this partition" } else { "the region" }
    }

    pub fn extend(&mut self, samples: impl IntoIterator<Item = Sample>) {
        self.samples.extend(samples);
        self.index();
    }

    /// Brings the places of the samples up to date; needed once after reading a run from a file.
    pub fn index(&mut self) {
        for (i, s) in self.samples.iter().enumerate().skip(self.indexed) {
            let c = s.cell as usize;
            if self.by_cell.len() <= c {
                self.by_cell.resize(c + 1, vec![]);
            }
            self.by_cell[c].push(i as u32);
        }
        self.indexed = self.samples.len();
    }

    pub fn of(&self, cell: u32) -> impl Iterator<Item = &Sample> {
        debug_assert_eq!(self.indexed, self.samples.len(), "call index() first");
        self.by_cell.get(cell as usize).into_iter().flatten().map(|&i| &self.samples[i as usize])
    }

    pub fn cell(&self, id: u32) -> Option<&Cell> {
        self.cells.get(id as usize).filter(|c| c.id == id).or_else(|| self.cells.iter().find(|c| c.id == id))
    }

    /// µs of the accesses of a cell that have this role, in their order.
    pub fn micros(&self, cell: &Cell, role: u8) -> Vec<f64> {
        self.of(cell.id).filter(|s| s.role == role).map(|s| s.took.micros()).collect()
    }

    /// Samples by trial, in the order they were taken.
    pub fn trials(&self, cell: u32) -> Vec<Vec<&Sample>> {
        let mut out: BTreeMap<u32, Vec<&Sample>> = BTreeMap::new();
        for s in self.of(cell) {
            out.entry(s.trial).or_default().push(s);
        }
        out.into_values().collect()
    }

    /// A number of the setting; 0 where it was negative.
    pub fn setting(&self, key: &str) -> Option<u64> {
        self.setting.get(key).map(|&v| v.max(0) as u64)
    }

    /// The erase blocks that its places were counted in.
    pub fn grid(&self) -> Grid {
        // Earlier versions went by what they believed, and saved that.
        let either = |now: &str, then: &str| self.setting(now).or(self.setting(then));
        Grid {
            unit: either("unit", "erase_block"),
            phase: either("phase", "erase_block_offset"),
            about: either("phase_about", "erase_block_about"),
            slack: either("phase_slack", "erase_block_slack"),
        }
    }
}

/// Samples as columns in JSON: a third of the size, and what other programs want.
mod columns {
    use super::*;
    use serde::{Deserializer, Serializer};

    #[derive(Serialize, Deserialize, Default)]
    struct Columns {
        cell: Vec<u32>,
        trial: Vec<u32>,
        role: Vec<u8>,
        /// r, w, d, f
        op: String,
        at: Vec<u64>,
        len: Vec<u64>,
        start_ns: Vec<u64>,
        took_ns: Vec<u64>,
    }

    pub fn serialize<S: Serializer>(all: &[Sample], s: S) -> Result<S::Ok, S::Error> {
        let mut c = Columns::default();
        for x in all {
            c.cell.push(x.cell);
            c.trial.push(x.trial);
            c.role.push(x.role);
            c.op.push(match x.op {
                Op::Read => 'r',
                Op::Write(_) => 'w',
                Op::Discard => 'd',
                Op::Flush => 'f',
            });
            c.at.push(x.at);
            c.len.push(x.len);
            c.start_ns.push(x.start.0);
            c.took_ns.push(x.took.0);
        }
        c.serialize(s)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<Sample>, D::Error> {
        use serde::de::Error;
        let c = Columns::deserialize(d)?;
        let n = c.cell.len();
        let ops: Vec<char> = c.op.chars().collect();
        let lens = [c.trial.len(), c.role.len(), ops.len(), c.at.len(), c.len.len(), c.start_ns.len(), c.took_ns.len()];
        if lens.iter().any(|&l| l != n) {
            return Err(D::Error::custom("the sample columns have different lengths; the report is damaged"));
        }
        (0..n)
            .map(|i| {
                let op = match ops[i] {
                    'r' => Op::Read,
                    'w' => Op::Write(Fill::Random(0)),
                    'd' => Op::Discard,
                    'f' => Op::Flush,
                    o => return Err(D::Error::custom(format!("unknown operation '{o}' in the samples"))),
                };
                Ok(Sample {
                    cell: c.cell[i],
                    trial: c.trial[i],
                    role: c.role[i],
                    op,
                    at: c.at[i],
                    len: c.len[i],
                    start: Nanos(c.start_ns[i]),
                    took: Nanos(c.took_ns[i]),
                })
            })
            .collect()
    }
}
