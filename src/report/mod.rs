//! One value, several writers: JSON for programs, text for people. Only this module and `cli` print.

pub mod advice;
pub mod frag;
pub mod plot;
pub mod terminal;

use crate::device::{Counters, TargetId};
use crate::experiment;
use crate::finding::{Finding, Findings};
use crate::host::facts::HostFacts;
use crate::infer::combine::combine;
use crate::samples::Run;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Name and version of the report format; a reader refuses what it does not know.
pub const SCHEMA: &str = "nandscope-report/1";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    pub name: String,
    pub version: String,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The target as given on the command line.
    pub asked: String,
    pub write: bool,
    pub time: Nanos,
    /// Write budget in bytes.
    pub budget: u64,
    /// First and last byte (exclusive) of the region.
    pub region: [u64; 2],
    pub seed: u64,
    /// Old content is put back at the end.
    pub undo: bool,
}

/// What it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    pub reads: u64,
    pub writes: u64,
    pub discards: u64,
    pub bytes_read: u64,
    /// Including what was put back.
    pub bytes_written: u64,
    /// On the device's own clock.
    pub seconds: f64,
}

impl Cost {
    pub fn of(c: Counters, seconds: f64) -> Cost {
        Cost {
            reads: c.reads,
            writes: c.writes,
            discards: c.discards,
            bytes_read: c.bytes_read,
            bytes_written: c.bytes_written,
            seconds: (seconds * 1e3).round() / 1e3,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub schema: String,
    pub tool: Tool,
    /// Seconds since 1970 when the report was begun; 0 for a simulated card, whose clock is its own.
    pub when: u64,
    pub target: TargetId,
    pub host: HostFacts,
    /// What the card says of itself; null where it says nothing.
    pub declared: serde_json::Value,
    pub settings: Settings,
    pub findings: Findings,
    pub advice: Vec<String>,
    pub warnings: Vec<String>,
    pub cost: Cost,
    pub runs: Vec<Run>,
}

#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error("cannot read {path}: {source}")]
    Read { path: String, source: std::io::Error },
    #[error("cannot write {path}: {source}")]
    Write { path: String, source: std::io::Error },
    #[error("{path} is not a nandscope report: {why}. A report is what --json writes")]
    Format { path: String, why: String },
}

impl Report {
    /// Findings of all runs, combined. What `infer` recomputes from a saved report.
    pub fn infer(runs: &[Run]) -> Findings {
        let mut all: Vec<Finding> = vec![];
        for run in runs {
            if let Some(e) = experiment::by_name(&run.experiment) {
                for mut f in e.infer(run) {
                    f.from.push(run.experiment.clone());
                    all.push(f);
                }
            }
        }
        combine(&all)
    }

    /// # Errors
    /// The file cannot be read, is not JSON (a truncated one is named as such), or has another schema.
    pub fn load(path: &Path) -> Result<Report, ReportError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| ReportError::Read { path: name.clone(), source })?;
        Report::parse(&text, &name)
    }

    /// # Errors
    /// As `load`.
    pub fn parse(text: &str, name: &str) -> Result<Report, ReportError> {
        let wrong = |why: String| ReportError::Format { path: name.into(), why };
        let value: serde_json::Value = serde_json::from_str(text).map_err(|e| {
            let why = if e.is_eof() { format!("it ends too early ({e}), as if cut off") } else { e.to_string() };
            wrong(why)
        })?;
        match value.get("schema").and_then(|s| s.as_str()) {
            Some(SCHEMA) => {}
            Some(other) => return Err(wrong(format!("its schema is {other}, this program reads {SCHEMA}"))),
            None => return Err(wrong("it has no schema".into())),
        }
        let mut report: Report = serde_json::from_value(value).map_err(|e| wrong(e.to_string()))?;
        if let Some(s) = report.runs.iter().flat_map(|r| r.samples.iter().map(|s| (s.cell, r.cells.len()))).find(|s| s.0 as usize >= s.1) {
            return Err(wrong(format!("a sample belongs to cell {}, and there are only {}", s.0, s.1)));
        }
        report.runs.iter_mut().for_each(Run::index);
        Ok(report)
    }

    /// # Errors
    /// The file cannot be written; an older one of that name is then untouched.
    pub fn save(&self, path: &Path) -> Result<(), ReportError> {
        let name = path.display().to_string();
        let failed = |source| ReportError::Write { path: name.clone(), source };
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        std::fs::write(&part, self.json()).map_err(failed)?;
        std::fs::rename(&part, path).map_err(failed)
    }

    pub fn json(&self) -> String {
        let mut text = serde_json::to_string(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Settings of the first run, for writers that need the size of the target.
    pub fn setting(&self) -> BTreeMap<String, i64> {
        self.runs.first().map(|r| r.setting.clone()).unwrap_or_default()
    }
}
