//! The one reader of this program's own results: a file becomes what the command that wrote it put there.

use super::bench::SCHEMA as BENCH;
use super::inferred::{Inferred, SCHEMA as LOGS};
use crate::advise::quirk::{Compared, SCHEMA as COMPARED};
use crate::lab::experiment::{Lab, SCHEMA as LAB};
use crate::samples::import::given;
use crate::saved::{Report, ReportError, SCHEMA as REPORT};
use serde_json::Value;
use std::path::Path;

/// What a file holds.
pub enum Saved {
    /// Of `probe` and the experiments.
    Report(Box<Report>),
    /// Of `infer`, made of logs.
    Logs(Inferred),
    /// Of `frag`.
    Lab(Box<Lab>),
    /// Of `bench`.
    Bench(Value),
    /// Of `ab`.
    Compared(Compared),
}

impl Saved {
    /// # Errors
    /// The file cannot be read, is not JSON (a truncated one is named as such), has another schema, or is damaged.
    pub fn load(path: &Path) -> Result<Saved, ReportError> {
        let name = given::name(path);
        let text = Report::text(path, &name)?;
        let value = Report::value(&text, &name)?;
        // The samples of a long probe need not be in memory twice.
        drop(text);
        Saved::from_value(value, &name)
    }

    /// # Errors
    /// As `load`.
    pub fn from_value(value: Value, name: &str) -> Result<Saved, ReportError> {
        let damaged = |why: String| ReportError::Damaged { path: name.into(), why };
        match value["schema"].as_str() {
            Some(BENCH) => Ok(Saved::Bench(value)),
            Some(LAB) => Ok(Saved::Lab(serde_json::from_value(value).map_err(|e| damaged(format!("is damaged: {e}")))?)),
            Some(other) if other.starts_with("nandscope-frag/") => {
                Err(damaged(format!("is of another version: its schema is {other}, this program reads {LAB}")))
            }
            Some(COMPARED) => Ok(Saved::Compared(Compared::from_value(&value).map_err(|e| damaged(format!("is damaged: {e}")))?)),
            _ if Inferred::is(&value) => Ok(Saved::Logs(Inferred::from_value(value).map_err(|e| damaged(format!("is damaged: {e}")))?)),
            Some(other) if written_by(other).is_some() => Err(no_report(other, name)),
            _ => Ok(Saved::Report(Box::new(Report::from_value(value, name)?))),
        }
    }

    /// The report of a probe.
    ///
    /// # Errors
    /// It is another command's result, which it names.
    pub fn report(self, name: &str) -> Result<Report, ReportError> {
        let schema = match self {
            Saved::Report(r) => return Ok(*r),
            Saved::Logs(_) => LOGS,
            Saved::Lab(_) => LAB,
            Saved::Bench(_) => BENCH,
            Saved::Compared(_) => COMPARED,
        };
        Err(no_report(schema, name))
    }
}

/// A result of this schema where a report is needed.
fn no_report(schema: &str, name: &str) -> ReportError {
    let what = written_by(schema).map_or(String::new(), |w| format!("; {w}"));
    ReportError::Format { path: name.into(), why: format!("its schema is {schema}, this needs {REPORT}{what}") }
}

/// Which command wrote a result of this schema, and which read it.
fn written_by(schema: &str) -> Option<String> {
    let command = schema.strip_prefix("nandscope-")?.strip_suffix("/1")?;
    let readers = match command {
        "check" => "`nandscope report FILE --format tap`, `compare` and `survey add` read it",
        "check-history" => return Some("`nandscope check --history` wrote it, and `life REPORT --record FILE` reads it".into()),
        "infer" => "`nandscope report FILE` prints it",
        "bench" => "`nandscope report FILE --html PAGE`, `compare` and `survey add` read it",
        "frag" => "`nandscope report FILE` prints it",
        "ab" => "`nandscope quirk FILE` and `report FILE --format csv` read it",
        "compare" | "life" | "partitions" | "replay" | "campaign" | "rate" | "uflip" | "twin" | "map" | "quirk" | "identify" | "erase"
        | "format" | "undo" | "defrag" | "age" | "sim" | "survey" => "`nandscope report FILE --format csv` reads it",
        "layout-audit" | "layout-check" | "layout-prove" => "`nandscope report FILE --format csv` reads it",
        _ => return None,
    };
    Some(format!("`nandscope {}` wrote it, and {readers}", command.replace('-', " ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Each schema is told apart, and what is none of them says why.
    #[test]
    fn every_result_is_known_by_its_schema() {
        let of = |v: Value| match Saved::from_value(v, "f") {
            Ok(s @ (Saved::Report(_) | Saved::Logs(_))) => s.report("f").map_or_else(|e| e.to_string(), |_| "report".into()),
            Ok(s) => s.report("f").unwrap_err().to_string(),
            Err(e) => e.to_string(),
        };
        let logs = json!({ "schema": "nandscope-infer/1", "target": { "logs": ["a"] }, "cards": [] });
        for (value, said) in [
            (json!({ "schema": BENCH, "benches": [] }), "its schema is nandscope-bench/1, this needs nandscope-report/1"),
            (json!({ "schema": "nandscope-frag/0" }), "f is of another version: its schema is nandscope-frag/0, this program reads"),
            (json!({ "schema": LAB }), "f is damaged: missing field"),
            (json!({ "schema": "nandscope-ab/1" }), "f is damaged: a comparison without its two settings"),
            (logs, "its schema is nandscope-infer/1, this needs"),
            (json!({ "schema": "nandscope-rate/1" }), "`nandscope rate` wrote it, and `nandscope report FILE --format csv` reads it"),
            (json!({ "schema": "nandscope-check/1" }), "`compare` and `survey add` read it"),
            (json!({ "schema": "other/1" }), "f is not a nandscope report: its schema is other/1"),
            (json!({ "schema": REPORT }), "f is not a nandscope report: missing field"),
            (json!({ "x": 1 }), "it has no schema"),
        ] {
            assert!(of(value).contains(said), "{said}");
        }
    }
}
