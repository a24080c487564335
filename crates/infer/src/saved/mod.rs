//! A report as it is saved: what was asked, what was measured, and what followed from it, with no word for people.

pub mod accesses;
pub mod counterfeit;
pub mod privacy;

use crate::device::{CardState, Counters, Op, TargetId};
use crate::finding::{Finding, Findings, Quantity};
use crate::host::facts::HostFacts;
use crate::infer::pipeline;
use crate::samples::Run;
use crate::samples::import::given;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Name and version of the report format; a reader refuses what it does not know.
pub const SCHEMA: &str = "nandscope-report/1";

/// The program that made a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    pub name: String,
    pub version: String,
}

impl Tool {
    /// This program: all its crates have one version.
    pub fn this() -> Tool {
        Tool { name: "nandscope".into(), version: env!("CARGO_PKG_VERSION").into() }
    }
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
    /// What the accesses of these runs took, as far as a run that was not ended knows it.
    pub fn of_runs(runs: &[Run]) -> Cost {
        let mut c = Cost::default();
        let all = || runs.iter().flat_map(|r| &r.samples);
        for s in all() {
            let (count, bytes) = match s.op {
                Op::Read => (&mut c.reads, Some(&mut c.bytes_read)),
                Op::Write(_) => (&mut c.writes, Some(&mut c.bytes_written)),
                Op::Discard => (&mut c.discards, None),
                Op::Flush => continue,
            };
            *count += 1;
            if let Some(bytes) = bytes {
                *bytes += s.len;
            }
        }
        let (from, to) = (all().map(|s| s.start).min(), all().map(|s| s.start + s.took).max());
        c.seconds = to.zip(from).map_or(0.0, |(to, from)| ((to - from).secs() * 1e3).round() / 1e3);
        c
    }

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
    /// What the flash went through before.
    #[serde(default)]
    pub state: CardState,
    /// What the card says of itself; null where it says nothing.
    pub declared: serde_json::Value,
    pub settings: Settings,
    /// True where the card holds less than it reports, false where it holds all of it, null where that was not decided.
    #[serde(default)]
    pub counterfeit: Option<bool>,
    /// Bytes that the card reports, from the beginning of the disk to the end of the target.
    #[serde(default)]
    pub reported_bytes: Option<u64>,
    /// Bytes that are certainly there; null where that was not decided.
    #[serde(default)]
    pub real_bytes: Option<u64>,
    pub findings: Findings,
    pub advice: Vec<String>,
    pub warnings: Vec<String>,
    /// First and last byte (exclusive) of each place of the target where reads failed while the card was there, in ascending order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<[u64; 2]>,
    pub cost: Cost,
    /// What the accesses come to, where the samples were left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accesses: Option<accesses::Accesses>,
    pub runs: Vec<Run>,
}

/// Holds that reports, given with the names of their files, are of one card.
///
/// # Errors
/// Two are of cards of other sizes or sectors; names them.
pub fn one_card<'a>(reports: impl IntoIterator<Item = (&'a str, &'a Report)>) -> Result<(), String> {
    let mut all = reports.into_iter();
    let Some((first, report)) = all.next() else { return Ok(()) };
    let (size, sector) = report.geometry();
    match all.map(|(name, r)| (name, r.geometry())).find(|r| r.1 != (size, sector)) {
        Some((name, (other, _))) if other != size => {
            Err(format!("{name}: its card has {other} bytes, that of {first} has {size}: give reports of one card"))
        }
        Some((name, (_, other))) => {
            Err(format!("{name}: its card has sectors of {other} bytes, that of {first} has such of {sector}: give reports of one card"))
        }
        None => Ok(()),
    }
}

/// Writes a file so that nobody sees half of it. What is no file (`/dev/null`, a pipe) is written to and stays what it is; a disk never
/// is written to this way, which asks for no consent.
///
/// # Errors
/// It cannot be written; an older file of that name is then untouched.
pub fn put(path: &Path, content: &str) -> std::io::Result<()> {
    if let Some(m) = std::fs::metadata(path).ok().filter(|m| !m.is_file()) {
        if m.file_type().is_block_device() {
            return Err(std::io::Error::other("this is a disk, and a result goes into a file"));
        }
        return std::fs::write(path, content);
    }
    // What a link leads to is replaced, not the link.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let mut part = path.clone().into_os_string();
    part.push(".part");
    // Half a file would keep a full disk full.
    std::fs::write(&part, content).and_then(|()| std::fs::rename(&part, path)).inspect_err(|_| drop(std::fs::remove_file(&part)))
}

#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error("cannot read {path}: {source}")]
    Read { path: String, source: std::io::Error },
    #[error("cannot write {path}: {source}")]
    Write { path: String, source: std::io::Error },
    #[error("{path} is not a nandscope report: {why}. A report is what `nandscope probe TARGET --json FILE` writes")]
    Format { path: String, why: String },
    /// A result of another command.
    #[error("{path} {why}")]
    Damaged { path: String, why: String },
}

/// What would steer a terminal; lines and columns do not.
fn steers(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
}

/// Takes out of every text what would steer a terminal.
pub fn scrub(v: &mut serde_json::Value) {
    match v {
        serde_json::Value::String(s) if s.contains(steers) => s.retain(|c| !steers(c)),
        serde_json::Value::Array(all) => all.iter_mut().for_each(scrub),
        serde_json::Value::Object(all) => all.iter_mut().for_each(|x| scrub(x.1)),
        _ => {}
    }
}

impl Report {
    /// Findings of all runs, combined. What `infer` recomputes from a saved report.
    pub fn infer(runs: &[Run]) -> Findings {
        pipeline::infer(runs)
    }

    /// # Errors
    /// The file cannot be read, is not JSON (a truncated one is named as such), or has another schema.
    pub fn load(path: &Path) -> Result<Report, ReportError> {
        let name = path.display().to_string();
        Report::parse(&Report::text(path, &name)?, &name)
    }

    /// The text of a file that should be a result.
    ///
    /// # Errors
    /// It cannot be read, or is not text.
    pub fn text(path: &Path, name: &str) -> Result<String, ReportError> {
        given::text(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::InvalidData => ReportError::Format { path: name.into(), why: source.to_string() },
            _ => ReportError::Read { path: name.into(), source },
        })
    }

    /// Bytes and sector of the target, by the runs; as the head of the report says where they do not.
    pub fn geometry(&self) -> (u64, u64) {
        let setting = self.setting();
        let number = |key: &str, or: u64| setting.get(key).map_or(or, |&v| v.max(0) as u64);
        (number("size", self.target.size), number("sector", 512))
    }

    /// # Errors
    /// As `load`.
    pub fn parse(text: &str, name: &str) -> Result<Report, ReportError> {
        Report::from_value(Report::value(text, name)?, name)
    }

    /// The JSON of a result, whichever it is.
    ///
    /// # Errors
    /// It is not JSON; a truncated one is named as such.
    pub fn value(text: &str, name: &str) -> Result<serde_json::Value, ReportError> {
        serde_json::from_str(text).map_err(|e| {
            let begins = text.trim_start().is_empty() || text.trim_start().starts_with(['{', '[']);
            let why = match (e.is_eof(), begins) {
                (true, true) => format!("it ends too early ({e}), as if cut off"),
                (_, true) => e.to_string(),
                (_, false) => "it is no JSON".into(),
            };
            ReportError::Format { path: name.into(), why }
        })
    }

    /// From JSON that is parsed already.
    ///
    /// # Errors
    /// As `load`.
    pub fn from_value(mut value: serde_json::Value, name: &str) -> Result<Report, ReportError> {
        let wrong = |why: String| ReportError::Format { path: name.into(), why };
        match value.get("schema").and_then(|s| s.as_str()) {
            Some(SCHEMA) => {}
            Some(other) => return Err(wrong(format!("its schema is {other}, this program reads {SCHEMA}"))),
            None => return Err(wrong("it has no schema".into())),
        }
        scrub(&mut value);
        let mut report: Report = serde_json::from_value(value).map_err(|e| wrong(e.to_string()))?;
        report.findings.check().map_err(wrong)?;
        let [start, end] = report.settings.region;
        if start > end {
            return Err(wrong(format!("its region ends at {end}, before it begins at {start}")));
        }
        let size = report.target.size;
        if let Some(block) = report.findings.get(Quantity::EraseBlock).and_then(Finding::number).filter(|b| *b > size as f64) {
            return Err(wrong(format!("its erase block of {block} bytes is larger than its card of {size}")));
        }
        if size < end.max(512) {
            return Err(wrong(format!("its card has {size} bytes, and what was measured ends at {end}")));
        }
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
        put(path, &self.json()).map_err(failed)
    }

    pub fn json(&self) -> String {
        let mut text = serde_json::to_string(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The same without the samples: what was found and concluded, in a fiftieth of the size. Nothing can be inferred again from it.
    pub fn without_samples(&self) -> Report {
        Report { accesses: self.accesses(), runs: vec![], ..self.clone() }
    }

    /// The same without serial numbers, wherever they stand: for what is shared.
    ///
    /// The text of the serial number is taken out of every other text, too (paths of /dev/disk/by-id hold it).
    pub fn without_serial(&self) -> Report {
        let mut r = self.clone();
        let serials = self.serials();
        r.target.serial = None;
        // The samples hold numbers only; all that is text goes through the same sieve.
        let mut runs = std::mem::take(&mut r.runs);
        runs.iter_mut().flat_map(|run| &mut run.faults).for_each(|f| *f = privacy::mask(f, &serials));
        let mut value = serde_json::to_value(&r).unwrap_or_default();
        privacy::hide(&mut value, &serials);
        let mut clean = serde_json::from_value(value).unwrap_or(r);
        clean.runs = runs;
        clean
    }

    /// Serial numbers that it names.
    pub fn serials(&self) -> Vec<String> {
        self.target.serial.clone().into_iter().chain(privacy::in_json(&self.declared)).collect()
    }

    /// Settings of the first run, for writers that need the size of the target.
    pub fn setting(&self) -> BTreeMap<String, i64> {
        self.runs.first().map(|r| r.setting.clone()).unwrap_or_default()
    }
}

/// A report with these findings and no runs, of a card of 4 GiB that nothing else is known of.
pub fn bare(findings: Vec<Finding>) -> Report {
    Report {
        schema: SCHEMA.into(),
        tool: Tool { name: "nandscope".into(), version: "0".into() },
        when: 1_700_000_000,
        target: TargetId {
            path: "/dev/sdz".into(),
            kind: crate::host::facts::TargetKind::Disk,
            serial: None,
            model: Some("CARD".into()),
            size: 1 << 32,
            offset: 0,
        },
        host: HostFacts::default(),
        state: CardState::Unknown,
        declared: serde_json::Value::Null,
        settings: Settings {
            asked: "/dev/sdz".into(),
            write: false,
            time: Nanos(0),
            budget: 0,
            region: [0, 1 << 32],
            seed: 1,
            undo: false,
        },
        advice: vec![],
        counterfeit: None,
        reported_bytes: None,
        real_bytes: None,
        findings: Findings(findings),
        warnings: vec![],
        unreadable: vec![],
        cost: Cost::default(),
        accesses: None,
        runs: vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_serial_number_is_left_anywhere() {
        let mut r = bare(vec![]);
        r.target.serial = Some("0xcf05a100".into());
        r.settings.asked = "/dev/disk/by-id/mmc-SA04G_0xcf05a100".into();
        r.declared = serde_json::json!({ "name": "SA04G", "serial": "0xdeadbeef", "cid": { "serial": 3735928559u32, "raw": "0353445355303847800DEADBEEF00c71" }, "notes": ["0xdeadbeef is odd"] });
        r.warnings.push("card 0xcf05a100 is slow".into());
        let mut run = Run::new("scatter");
        run.faults.push("/dev/disk/by-id/mmc-SA04G_0xcf05a100 failed".into());
        r.runs.push(run);
        let text = r.without_serial().json().to_lowercase();
        assert!(!text.contains("cf05a100") && !text.contains("deadbeef") && !text.contains("3735928559"), "{text}");
        assert!(text.contains("sa04g"));
    }
}
