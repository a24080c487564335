//! What the accesses of a report come to: a report that is shared without its samples keeps this, so that it says the same of the card.

use super::Report;
use crate::device::Op;
use crate::infer::stats::median;
use crate::samples::{Run, Sample};
use crate::units::{KIB, MIB, Nanos};
use serde::{Deserialize, Serialize};

/// The longest sequential writes of one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Written {
    pub bytes: u64,
    /// By the median of the times.
    pub bytes_per_second: f64,
    pub count: usize,
    pub longest_ns: Nanos,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Accesses {
    /// The longest write of 64 KiB or less, a size that loggers use.
    #[serde(default)]
    pub longest_small_write_ns: Option<Nanos>,
    #[serde(default)]
    pub sequential: Option<Written>,
    /// Reads of less than 1 MiB.
    #[serde(default)]
    pub small_reads: usize,
    #[serde(default)]
    pub small_read_us: f64,
    /// Accesses of any kind that failed.
    #[serde(default)]
    pub failed: usize,
}

impl Accesses {
    pub fn of(runs: &[Run]) -> Accesses {
        let all = || runs.iter().flat_map(|run| &run.samples);
        let writes = |s: &&Sample| matches!(s.op, Op::Write(_));
        let reads: Vec<f64> = all().filter(|s| s.op == Op::Read && s.len < MIB).map(|s| s.took.micros()).collect();
        Accesses {
            longest_small_write_ns: all().filter(writes).filter(|s| s.len <= 64 * KIB).map(|s| s.took).max(),
            sequential: runs.iter().find(|run| run.experiment == "write-unit").and_then(sequential),
            small_reads: reads.len(),
            small_read_us: if reads.is_empty() { 0.0 } else { median(&reads) },
            failed: runs.iter().map(|run| run.faults.len()).sum(),
        }
    }
}

fn sequential(run: &Run) -> Option<Written> {
    let writes = || run.samples.iter().filter(|s| matches!(s.op, Op::Write(_)));
    let bytes = writes().map(|s| s.len).max()?;
    let times: Vec<f64> = writes().filter(|s| s.len == bytes).map(|s| s.took.secs()).collect();
    let longest_ns = writes().filter(|s| s.len == bytes).map(|s| s.took).max()?;
    (times.len() >= 3).then(|| Written { bytes, bytes_per_second: bytes as f64 / median(&times), count: times.len(), longest_ns })
}

impl Report {
    /// None where the samples were left out and nothing was kept of them.
    pub fn accesses(&self) -> Option<Accesses> {
        let whole = !self.runs.is_empty() || self.cost.reads + self.cost.writes == 0;
        self.accesses.or_else(|| whole.then(|| Accesses::of(&self.runs)))
    }
}
