//! The directory of a campaign: a directory a step of a card, which gets its final name in one step once the step is done, and a list of what happened.

use super::{Step, place};
use crate::device::TargetId;
use crate::report::put;
use rustix::fs::{FlockOperation, flock, syncfs};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    #[error("cannot use {0}: {1}")]
    Io(String, std::io::Error),
    #[error("another process works on the campaign in {0}")]
    Locked(String),
    #[error("{0}")]
    Other(String),
}

type Result<T> = std::result::Result<T, CampaignError>;

fn io<T>(path: &Path, r: std::io::Result<T>) -> Result<T> {
    r.map_err(|e| CampaignError::Io(path.display().to_string(), e))
}

/// How a step ended, as it is kept beside its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// Exit code of its command.
    pub code: u8,
    /// Time it took, in seconds.
    pub seconds: f64,
    /// Host that did it, where several share the campaign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// Codes of commands that came to a verdict: such a step is done and is not done again.
const VERDICTS: [u8; 6] = [0, 3, 5, 6, 7, 8];

impl End {
    pub fn is_verdict(&self) -> bool {
        VERDICTS.contains(&self.code)
    }
}

/// Where a step stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Stands {
    New,
    Done(End),
    /// Its command ended with an error.
    Failed(End),
    /// Its process runs, though the one that started it may be gone.
    Running,
    /// It had begun, and nobody works on it.
    Interrupted,
}

/// Files of a step.
pub const RESULT: &str = "result.json";
pub const TWIN: &str = "twin.toml";
pub const LOG: &str = "log.txt";
const END: &str = "end.json";
/// What the step was asked, by the plan it belonged to.
const ASKED: &str = "asked.json";
const LOCK: &str = "lock";

/// What of a plan decides what a step does. A result of another card or of other words is not what the plan asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Target or serial number.
    pub card: String,
    /// "yes" with consent in the plan, "no" where it is forbidden, "simulated" where neither is said.
    pub write: String,
    /// Further words of the command.
    pub options: Vec<String>,
}

impl Asked {
    /// In what the two differ, in words; none where they ask for the same.
    pub fn unlike(&self, now: &Asked) -> Option<String> {
        let words = |o: &[String]| if o.is_empty() { "no options".into() } else { o.join(" ") };
        if self.card != now.card {
            Some(format!("was done with {}, and the plan says {}", self.card, now.card))
        } else if self.options != now.options {
            Some(format!("was done with {}, and the plan says {}", words(&self.options), words(&now.options)))
        } else if self.write != now.write {
            Some(format!("was done with write: {}, and by the plan it is {}", self.write, now.write))
        } else {
            None
        }
    }
}

fn beside(dir: &Path, key: &str, step: Step, end: &str) -> PathBuf {
    dir.join("cards").join(place(key)).join(format!("{}{end}", step.name()))
}

/// Where a step stands in the state directory `dir`, which may not exist.
pub fn stands(dir: &Path, key: &str, step: Step) -> Stands {
    let end = |dir: &Path| serde_json::from_str::<End>(&fs::read_to_string(dir.join(END)).ok()?).ok();
    if let Some(e) = end(&beside(dir, key, step, "")) {
        return Stands::Done(e);
    }
    let part = beside(dir, key, step, ".part");
    if part.join(LOCK).exists() {
        return match lock_of(&part.join(LOCK)) {
            Ok(None) => Stands::Running,
            _ => Stands::Interrupted,
        };
    }
    end(&beside(dir, key, step, ".failed")).map_or(Stands::New, Stands::Failed)
}

/// The state of a campaign, locked.
pub struct Dir {
    path: PathBuf,
    events: Mutex<File>,
    _lock: File,
}

fn lock_of(path: &Path) -> Result<Option<File>> {
    let file = io(path, OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path))?;
    Ok(flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok().then_some(file))
}

impl Dir {
    /// Opens or begins it.
    ///
    /// # Errors
    /// It cannot be written, or another process works on it.
    pub fn open(path: &Path) -> Result<Dir> {
        io(path, fs::create_dir_all(path.join("cards")))?;
        let path = io(path, fs::canonicalize(path))?;
        let lock = lock_of(&path.join(LOCK))?.ok_or_else(|| CampaignError::Locked(path.display().to_string()))?;
        let events = path.join("events.jsonl");
        let mut file = io(&events, OpenOptions::new().read(true).append(true).create(true).open(&events))?;
        // A line that a crash cut ends here.
        if io(&events, fs::read(&events))?.last().is_some_and(|b| *b != b'\n') {
            io(&events, file.write_all(b"\n"))?;
        }
        Ok(Dir { path, events: Mutex::new(file), _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory of a card.
    pub fn card(&self, key: &str) -> PathBuf {
        self.path.join("cards").join(place(key))
    }

    /// Where the result of a step is once it is done.
    pub fn step(&self, key: &str, step: Step) -> PathBuf {
        beside(&self.path, key, step, "")
    }

    /// Where a step stands.
    pub fn stands(&self, key: &str, step: Step) -> Stands {
        stands(&self.path, key, step)
    }

    /// What a step that is done was asked; none where its result came from another host or from an older version.
    pub fn asked(&self, key: &str, step: Step) -> Option<Asked> {
        serde_json::from_str(&fs::read_to_string(self.step(key, step).join(ASKED)).ok()?).ok()
    }

    /// Cards that have results here, by the names of their directories.
    pub fn cards(&self) -> Vec<String> {
        let all = fs::read_dir(self.path.join("cards")).into_iter().flatten().filter_map(|e| e.ok()?.file_name().into_string().ok());
        let mut all: Vec<String> = all.collect();
        all.sort_unstable();
        all
    }

    /// A fresh directory for a step that begins, and the lock that its process inherits and thereby holds for as long as it lives.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(&self, key: &str, step: Step, asked: Option<&Asked>) -> Result<(PathBuf, File)> {
        let part = beside(&self.path, key, step, ".part");
        if part.exists() {
            io(&part, fs::remove_dir_all(&part))?;
        }
        io(&part, fs::create_dir_all(&part))?;
        if let Some(asked) = asked {
            io(&part, put(&part.join(ASKED), &serde_json::json!(asked).to_string()))?;
        }
        let lock = lock_of(&part.join(LOCK))?.ok_or_else(|| CampaignError::Locked(part.display().to_string()))?;
        Ok((part, lock))
    }

    /// A result that another host has.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn take_over(&self, key: &str, step: Step, end: &End, result: &str, twin: Option<&str>) -> Result<()> {
        let (part, _lock) = self.begin(key, step, None)?;
        io(&part, put(&part.join(RESULT), result))?;
        if let Some(text) = twin {
            io(&part, put(&part.join(TWIN), text))?;
        }
        finish(&part, end)
    }

    /// The identity a card had when it was first seen: another card in its reader is refused.
    ///
    /// # Errors
    /// It is another one, or it cannot be written down.
    pub fn same_card(&self, key: &str, id: &TargetId) -> Result<()> {
        let path = self.card(key).join("card.json");
        match fs::read_to_string(&path).ok().and_then(|t| serde_json::from_str::<TargetId>(&t).ok()) {
            Some(was) if was.size == id.size && was.offset == id.offset && was.serial == id.serial && was.kind == id.kind => Ok(()),
            Some(was) => Err(CampaignError::Other(format!(
                "{} is not the card this campaign began with: that is {} bytes, serial number {}",
                id.path,
                was.size,
                was.serial.as_deref().unwrap_or("none")
            ))),
            None => {
                io(&path, fs::create_dir_all(self.card(key)))?;
                io(&path, put(&path, &serde_json::json!(id).to_string()))
            }
        }
    }

    /// The identity of a card that was seen.
    pub fn identity(&self, key: &str) -> Option<TargetId> {
        serde_json::from_str(&fs::read_to_string(self.card(key).join("card.json")).ok()?).ok()
    }

    /// One more line of what happened, on disk when this returns.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn note(&self, mut what: Value) -> Result<()> {
        let when = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64);
        what["ms"] = when.into();
        let mut file = self.events.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let path = self.path.join("events.jsonl");
        io(&path, file.write_all(format!("{what}\n").as_bytes()).and_then(|()| file.sync_data()))
    }
}

/// Ends the directory of a step: what is in it is on disk, then it gets its name, `STEP` or, after an error, `STEP.failed`.
///
/// # Errors
/// It cannot be written.
pub fn finish(part: &Path, end: &End) -> Result<()> {
    io(part, put(&part.join(END), &serde_json::json!(end).to_string()))?;
    let sync = || fs::File::open(part.parent().unwrap_or(part)).is_ok_and(|f| syncfs(&f).is_ok());
    sync();
    let to = part.with_extension(if end.is_verdict() { "" } else { "failed" });
    // The name of a step that is done is never there before; that of a failed one may be.
    if to.exists() && !end.is_verdict() {
        io(&to, fs::remove_dir_all(&to))?;
    }
    io(&to, fs::rename(part, &to))?;
    let _ = fs::remove_file(to.join(LOCK));
    if end.is_verdict() {
        let _ = fs::remove_dir_all(part.with_extension("failed"));
    }
    sync();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_done_once_it_has_its_name() {
        let t = tempfile::tempdir().unwrap();
        let d = Dir::open(t.path()).unwrap();
        assert!(matches!(Dir::open(t.path()), Err(CampaignError::Locked(_))));
        assert_eq!(d.stands("a b", Step::Probe), Stands::New);
        let (part, lock) = d.begin("a b", Step::Probe, None).unwrap();
        assert_eq!(d.stands("a b", Step::Probe), Stands::Running);
        drop(lock);
        assert_eq!(d.stands("a b", Step::Probe), Stands::Interrupted);
        let failed = End { code: 1, seconds: 1.0, host: None };
        finish(&part, &failed).unwrap();
        assert_eq!(d.stands("a b", Step::Probe), Stands::Failed(failed));
        let (part, _lock) = d.begin("a b", Step::Probe, None).unwrap();
        let done = End { code: 3, seconds: 2.0, host: None };
        finish(&part, &done).unwrap();
        assert_eq!(d.stands("a b", Step::Probe), Stands::Done(done));
    }
}
