//! The file of a shard: a line that says of what, then one line a job as they are done; and many such files as one.

use super::{Plan, SCHEMA, Shard};
use crate::report::put;
use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    #[error("cannot use {0}: {1}")]
    Io(String, std::io::Error),
    #[error("{0} is of another plan, or of another version of nandscope; give another directory, or remove it")]
    Another(String),
    #[error("another process works on {0}")]
    Locked(String),
    #[error("{0}")]
    Job(String),
    #[error("{0}")]
    Merge(String),
}

/// The file of a shard.
pub fn shard_file(dir: &Path, shard: Shard) -> PathBuf {
    dir.join(format!("shard-{:04}-of-{:04}.jsonl", shard.index + 1, shard.of))
}

/// What all files of a sweep begin with: the whole plan, with the text of each model file.
fn head(plan: &Plan) -> Value {
    let files = plan.cards.iter().filter(|c| c.ends_with(".toml"));
    let texts: BTreeMap<&str, String> = files.map(|c| (c.as_str(), std::fs::read_to_string(c).unwrap_or_default())).collect();
    json!({ "schema": SCHEMA, "version": env!("CARGO_PKG_VERSION"), "plan": plan, "models": texts })
}

/// The number of the job of a whole line.
fn number(line: &str) -> Option<u64> {
    let value: Value = serde_json::from_str(line).ok()?;
    value["result"].is_object().then(|| value["job"].as_u64())?
}

/// An open file, locked.
pub struct File {
    name: String,
    file: std::fs::File,
    /// Jobs that are done already.
    pub had: BTreeSet<u64>,
}

impl File {
    /// Opens or begins it. A line that a crash cut is taken away.
    pub fn open(plan: &Plan, shard: Shard, dir: &Path) -> Result<File, SweepError> {
        let path = shard_file(dir, shard);
        let name = path.display().to_string();
        let failed = |e: std::io::Error| SweepError::Io(name.clone(), e);
        std::fs::create_dir_all(dir).map_err(|e| SweepError::Io(dir.display().to_string(), e))?;
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| SweepError::Locked(name.clone()))?;
        let mut bytes = vec![];
        file.read_to_end(&mut bytes).map_err(failed)?;
        let mut first = head(plan);
        first["shard"] = json!(shard);
        let (mut had, mut good) = (BTreeSet::new(), 0);
        for (i, raw) in bytes.split_inclusive(|b| *b == b'\n').enumerate() {
            let line = std::str::from_utf8(raw).ok().filter(|l| l.ends_with('\n'));
            let is_first = line.is_some_and(|l| i == 0 && serde_json::from_str::<Value>(l).is_ok_and(|v| v == first));
            match (i, line) {
                (0, Some(_)) if !is_first => return Err(SweepError::Another(name)),
                (0, Some(_)) => {}
                (_, Some(l)) if number(l).is_some_and(|n| had.insert(n)) => {}
                _ => break,
            }
            good += raw.len() as u64;
        }
        file.set_len(good).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        let mut out = File { name, file, had };
        if good == 0 {
            out.add(&first.to_string())?;
        }
        Ok(out)
    }

    /// One more line, in one write.
    pub fn add(&mut self, line: &str) -> Result<(), SweepError> {
        self.file.write_all(format!("{line}\n").as_bytes()).map_err(|e| SweepError::Io(self.name.clone(), e))
    }
}

/// How often a quantity was decided, and how often rightly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Tally {
    pub jobs: u64,
    pub decided: u64,
    /// Of those with a truth.
    pub judged: u64,
    pub right: u64,
}

/// What a merge gives.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Merged {
    pub jobs: u64,
    pub files: usize,
    pub quantities: BTreeMap<String, Tally>,
}

/// Puts the files of a directory together, in the order of the jobs, into one file.
///
/// # Errors
/// Files are of different plans, a job is missing or was done twice with different results.
pub fn merge(dir: &Path, to: &Path) -> Result<Merged, SweepError> {
    let failed = |e| SweepError::Io(dir.display().to_string(), e);
    let entries = std::fs::read_dir(dir).map_err(failed)?;
    let mut files: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    files.retain(|p| p.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with("shard-") && n.ends_with(".jsonl")));
    files.sort();
    let mut plan: Option<(Value, Plan)> = None;
    let mut all: BTreeMap<u64, String> = BTreeMap::new();
    for path in &files {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|e| SweepError::Io(name.clone(), e))?;
        let mut lines = text.split_inclusive('\n').filter(|l| l.ends_with('\n'));
        let mut first: Value = lines.next().and_then(|l| serde_json::from_str(l).ok()).unwrap_or_default();
        first.as_object_mut().map(|o| o.remove("shard"));
        let own: Plan =
            serde_json::from_value(first["plan"].clone()).map_err(|_| SweepError::Merge(format!("{name} is no part of a sweep")))?;
        match &plan {
            None => plan = Some((first, own)),
            Some((before, _)) if *before == first => {}
            Some(_) => return Err(SweepError::Merge(format!("{name} is of another plan or version than {}", files[0].display()))),
        }
        for line in lines {
            let Some(n) = number(line) else { continue };
            match all.get(&n) {
                Some(before) if before != line => {
                    return Err(SweepError::Merge(format!("job {n} has two results that differ, one in {name}")));
                }
                Some(_) => {}
                None => {
                    all.insert(n, line.into());
                }
            }
        }
    }
    let Some((first, plan)) = plan else { return Err(SweepError::Merge(format!("there is no shard in {}", dir.display()))) };
    if let Some(missing) = (0..plan.jobs()).find(|n| !all.contains_key(n)) {
        let left = plan.jobs() - all.len() as u64;
        return Err(SweepError::Merge(format!(
            "{left} of {} jobs are not done, the first is job {missing}; run their shards again",
            plan.jobs()
        )));
    }
    let mut text = format!("{first}\n");
    let mut quantities: BTreeMap<String, Tally> = BTreeMap::new();
    for line in all.values() {
        text += line;
        let value: Value = serde_json::from_str(line).unwrap_or_default();
        for f in value["result"]["findings"].as_array().into_iter().flatten() {
            let tally = quantities.entry(f["quantity"].as_str().unwrap_or("?").into()).or_default();
            tally.jobs += 1;
            tally.decided += u64::from(!f["value"].is_null());
            tally.judged += u64::from(!f["value"].is_null() && f["right"].is_boolean());
            tally.right += u64::from(!f["value"].is_null() && f["right"] == true);
        }
    }
    put(to, &text).map_err(|e| SweepError::Io(to.display().to_string(), e))?;
    Ok(Merged { jobs: plan.jobs(), files: files.len(), quantities })
}
