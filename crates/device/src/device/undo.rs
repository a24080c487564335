//! The undo journal: what short write tests overwrite is kept on the host's disk, so that even a killed run can be undone.
//!
//! Before a write goes out, the ranges it changes for the first time are read and appended to the journal, and the journal is
//! on disk (fsync) before the write is sent. So a record that is torn at the end of the journal belongs to a write that never
//! happened. The header counts the records that are on disk, so that a journal that lost its end is known by it, wherever it was cut. The
//! bits are in FORMATS.md, "Undo journal".

mod back;
mod saved;
mod waiting;

use super::consent::TargetId;
use super::ranges::RangeSet;
use super::{Access, Device, DeviceError, Op, Result};
use crate::shell::word;
use crate::units::MIB;
use back::put_back;
use rustix::fs::{FlockOperation, flock};
pub use saved::{Saved, State};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
pub use waiting::{clear, clear_empty, waiting, waiting_on};
pub(super) use waiting::{none_waits, parts};

const MAGIC: &[u8; 8] = b"NANDUNDO";
const VERSION: u32 = 1;
const HEAD: usize = 24;
/// Where the header counts the records that are on disk, plus one; 0 in journals that do not count.
const COUNT: u64 = 20;
const RECORD_MAGIC: &[u8; 4] = b"UREC";
const RECORD_HEAD: usize = 40;
/// Largest record, and largest piece put back at once.
const PIECE: u64 = MIB;
/// Samples in the fingerprint, and the length of one in bytes.
const SAMPLES: u64 = 16;
const SAMPLE: u64 = 4096;
/// File name extension of a journal.
const EXTENSION: &str = "undo";

/// First part of a journal: whose content it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the program that wrote it.
    pub tool: String,
    /// The target.
    pub id: TargetId,
    /// Seconds since 1970.
    pub created: u64,
    /// Position, length and CRC-32 of samples spread over the target: tells two cards without serial number apart.
    pub fingerprint: Vec<(u64, u64, u32)>,
    /// Position and length of samples that could not be read. Nothing is written where the old content cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<(u64, u64)>,
}

/// Old content of one range: `from` is its place in the journal, or the one byte it repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    at: u64,
    len: u64,
    from: Source,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    File(u64),
    Byte(u8),
}

/// What was put back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Restored {
    /// Bytes that read as before the run: verified, and written where they did not.
    pub bytes: u64,
    /// Contiguous ranges they form.
    pub ranges: u64,
    /// Addresses so many bytes apart turned out to be one place: the medium is smaller than it says, and of such places the oldest
    /// content is back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wraps_at: Option<u64>,
}

/// A range whose old content is not back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// First byte, and bytes.
    pub at: u64,
    pub len: u64,
    pub why: String,
}

/// What came of putting everything back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PutBack {
    pub restored: Restored,
    /// In ascending order; nothing where all is back.
    pub lost: Vec<Lost>,
}

impl PutBack {
    /// # Errors
    /// The first range that is lost.
    fn whole(self) -> Result<Restored> {
        match self.lost.first() {
            None => Ok(self.restored),
            Some(l) => {
                let source = io::Error::other(format!("the medium {}", l.why));
                Err(DeviceError::Io { op: "verification", at: l.at, len: l.len, source })
            }
        }
    }

    /// What lost ranges mean and which they are, for people; the first `most` of them.
    pub fn loss(&self, most: usize) -> Vec<String> {
        use crate::units::Bytes;
        if self.lost.is_empty() {
            return vec![];
        }
        let bytes = self.lost.iter().map(|l| l.len).sum();
        let ranges = if self.lost.len() == 1 { "range".to_string() } else { format!("{} ranges", self.lost.len()) };
        let mut out = vec![format!(
            "this card does not keep what is written to it: counterfeit or failing. {} are not back, in {ranges}:",
            Bytes(bytes)
        )];
        out.extend(self.lost.iter().take(most).map(|l| format!("  bytes {} to {}: {}", l.at, l.at + l.len - 1, l.why)));
        if self.lost.len() > most {
            out.push(format!("  and {} more", self.lost.len() - most));
        }
        out
    }
}

/// What to do about a journal that cannot be put back.
pub fn give_up(journal: &Path, id: &TargetId) -> String {
    format!("the journal is kept; try another reader or port: {}", either(journal, id))
}

/// The two commands that end a journal, to be pasted.
fn either(journal: &Path, id: &TargetId) -> String {
    format!("nandscope undo {}; or give that content up: {}", word(&journal.display().to_string()), discarding(journal, id))
}

/// The command that deletes a journal and gives up what it holds, to be pasted.
pub(super) fn discarding(journal: &Path, id: &TargetId) -> String {
    format!("nandscope undo --discard {} {}", word(&journal.display().to_string()), id.consent_option())
}

impl Restored {
    /// What two addresses in one place mean, for people.
    pub fn counterfeit(&self) -> Option<String> {
        let apart = crate::units::Bytes(self.wraps_at?);
        Some(format!(
            "addresses {apart} apart are one place: this card is a counterfeit and holds that or less; the oldest content is back"
        ))
    }
}

/// The journal of a run that is going, locked against a second one.
pub struct Journal {
    file: File,
    path: PathBuf,
    end: u64,
    /// Records that are on disk.
    synced: u32,
    saved: RangeSet,
    records: Vec<Record>,
    /// Where something else was written.
    changed: RangeSet,
}

/// `$XDG_STATE_HOME/nandscope`, or `~/.local/state/nandscope`.
pub fn default_dir() -> PathBuf {
    let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|p: &PathBuf| p.is_absolute());
    let state = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|h| h.join(".local/state")));
    state.unwrap_or_else(|| PathBuf::from("/var/tmp")).join("nandscope")
}

/// How the header counts so many records.
fn counted(records: u32) -> [u8; 4] {
    records.saturating_add(1).to_le_bytes()
}

fn failed(path: &Path) -> impl Fn(io::Error) -> DeviceError + '_ {
    move |e| DeviceError::Journal { path: path.display().to_string(), why: e.to_string() }
}

impl Journal {
    /// Begins a journal for a target, reading its fingerprint through `dev`.
    ///
    /// # Errors
    /// `Refused` where an unfinished journal of this target lies in `dir`; else the directory cannot be written.
    pub fn begin(dir: &Path, id: &TargetId, dev: &mut dyn Device) -> Result<Journal> {
        let bad = failed(dir);
        fs::create_dir_all(dir).map_err(&bad)?;
        none_waits(std::iter::once(dir.to_path_buf()), &[(id.clone(), 0..id.size)])?;
        // What a run left that ended before its first write.
        for path in pending(dir).iter().filter(|p| saved::header(p).is_ok_and(|h| h.id.same_target(id))) {
            clear(path)?;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos());
        let created = (now / 1_000_000_000) as u64;
        let name = format!("{now:024}-{}.{EXTENSION}", std::process::id());
        let (fingerprint, unreadable) = fingerprint(dev)?;
        let header = Header { tool: env!("CARGO_PKG_VERSION").into(), id: id.clone(), created, fingerprint, unreadable };
        let json = serde_json::to_vec(&header).map_err(|e| bad(e.into()))?;
        let mut head = Vec::with_capacity(HEAD + json.len());
        head.extend_from_slice(MAGIC);
        head.extend_from_slice(&VERSION.to_le_bytes());
        head.extend_from_slice(&(json.len() as u32).to_le_bytes());
        head.extend_from_slice(&crc32fast::hash(&json).to_le_bytes());
        head.extend_from_slice(&counted(0));
        head.extend_from_slice(&json);
        // Written under another name first: a journal that can be found is always whole up to here.
        let (path, draft) = (dir.join(&name), dir.join(format!("{name}.new")));
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&draft).map_err(&bad)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|e| bad(e.into()))?;
        file.write_all(&head).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&draft, &path)).map_err(&bad)?;
        File::open(dir).and_then(|d| d.sync_all()).map_err(&bad)?;
        Ok(Journal {
            file,
            path,
            end: head.len() as u64,
            synced: 0,
            saved: RangeSet::default(),
            records: Vec::new(),
            changed: RangeSet::default(),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Saves what is not yet saved of these ranges (start, length), and returns when it is on disk.
    ///
    /// # Errors
    /// The old content cannot be read, or the journal cannot be written; then the write must not go out.
    pub fn save(&mut self, ranges: &[(u64, u64)], dev: &mut dyn Device) -> Result<()> {
        let mut wanted = RangeSet::default();
        ranges.iter().for_each(|&(at, len)| wanted.insert(at..at + len));
        let missing: Vec<_> = wanted.iter().flat_map(|r| self.saved.missing(r)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let mut data = vec![0; PIECE as usize];
        let (mut end, mut fresh) = (self.end, Vec::new());
        for range in &missing {
            let mut at = range.start;
            while at < range.end {
                let old = &mut data[..(range.end - at).min(PIECE) as usize];
                dev.load(at, old)?;
                let record = self.append(end, at, old).map_err(failed(&self.path))?;
                end += RECORD_HEAD as u64 + if let Source::File(_) = record.from { record.len } else { 0 };
                at += record.len;
                fresh.push(record);
            }
        }
        self.file.sync_data().map_err(failed(&self.path))?;
        // Only now the ranges count as saved: after a failure above they are saved anew, over what was appended.
        self.end = end;
        self.synced += fresh.len() as u32;
        self.records.append(&mut fresh);
        missing.into_iter().for_each(|r| self.saved.insert(r));
        // After they are on disk: the count never promises more than there is. It need not be on disk itself: a count that a power cut
        // sets back by a batch promises less, and the records are read all the same.
        self.file.write_all_at(&counted(self.synced), COUNT).map_err(failed(&self.path))
    }

    /// Something else is written to a range.
    pub fn changes(&mut self, range: std::ops::Range<u64>) {
        self.changed.insert(range);
    }

    pub fn changed(&self) -> &RangeSet {
        &self.changed
    }

    /// What a range held before it was written; none where it was not saved whole.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn old(&self, at: u64, len: u64) -> Result<Option<Vec<u8>>> {
        let (mut old, mut missing) = (vec![0; len as usize], len);
        // What is asked for was mostly saved last.
        for r in self.records.iter().rev() {
            let (from, to) = (r.at.max(at), (r.at + r.len).min(at + len));
            if from >= to {
                continue;
            }
            let here = &mut old[(from - at) as usize..(to - at) as usize];
            match r.from {
                Source::Byte(b) => here.fill(b),
                Source::File(p) => self.file.read_exact_at(here, p + from - r.at).map_err(failed(&self.path))?,
            }
            missing -= to - from;
            if missing == 0 {
                return Ok(Some(old));
            }
        }
        Ok(None)
    }

    fn append(&self, end: u64, at: u64, old: &[u8]) -> io::Result<Record> {
        let len = old.len() as u64;
        let same = old.iter().all(|&b| b == old[0]);
        let payload: &[u8] = if same { &[] } else { old };
        let mut head = [0; RECORD_HEAD];
        head[..4].copy_from_slice(RECORD_MAGIC);
        head[4] = if same { 2 } else { 1 };
        head[5] = if same { old[0] } else { 0 };
        head[8..12].copy_from_slice(&self.synced.to_le_bytes());
        head[12..16].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
        head[16..24].copy_from_slice(&at.to_le_bytes());
        head[24..32].copy_from_slice(&len.to_le_bytes());
        let sum = crc32fast::hash(&head[..32]);
        head[32..36].copy_from_slice(&sum.to_le_bytes());
        self.file.write_all_at(&head, end)?;
        self.file.write_all_at(payload, end + RECORD_HEAD as u64)?;
        Ok(Record { at, len, from: if same { Source::Byte(old[0]) } else { Source::File(end + RECORD_HEAD as u64) } })
    }

    /// Puts back everything in ascending order, flushes, and verifies; latest first where two addresses turn out to be one place.
    ///
    /// # Errors
    /// The medium failed, or reads back something else.
    pub fn put_back(&mut self, dev: &mut dyn Device) -> Result<Restored> {
        self.try_back(dev)?.whole()
    }

    /// The same; goes on where a range fails, and says which did.
    ///
    /// # Errors
    /// The journal cannot be read, or the medium refuses everything.
    pub fn try_back(&mut self, dev: &mut dyn Device) -> Result<PutBack> {
        put_back(&self.file, &self.path, &self.records, Some(&self.changed), dev)
    }

    /// Deletes the journal, after the old content is back.
    pub fn delete(self) -> Result<()> {
        delete(&self.path)
    }
}

impl Drop for Journal {
    /// A journal that holds nothing is not left behind.
    fn drop(&mut self) {
        if self.records.is_empty() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn delete(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(failed(path)(e)),
        _ => path.parent().map_or(Ok(()), |d| File::open(d).and_then(|d| d.sync_all()).map_err(failed(path))),
    }
}

/// Position, length and CRC-32 of the samples that can be read.
type Samples = Vec<(u64, u64, u32)>;

/// Samples spread evenly from the first to the last sector, and those (position, length) that cannot be read, as on a card that answers
/// for flash it has not.
fn fingerprint(dev: &mut dyn Device) -> Result<(Samples, Vec<(u64, u64)>)> {
    let (size, sector) = (dev.geometry().size, dev.geometry().sector);
    let len = SAMPLE.max(sector).min(size);
    let mut data = vec![0; len as usize];
    let (mut out, mut unreadable) = (Vec::new(), Vec::new());
    for i in 0..SAMPLES {
        let at = ((size - len) as u128 * i as u128 / (SAMPLES - 1) as u128) as u64 / sector * sector;
        match dev.load(at, &mut data) {
            Ok(()) => out.push((at, len, crc32fast::hash(&data))),
            // A card that does not even read at its beginning has failed.
            Err(e) if i == 0 => return Err(e),
            Err(_) => unreadable.push((at, len)),
        }
    }
    Ok((out, unreadable))
}

/// The journals in a directory, oldest first.
pub fn pending(dir: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|x| x == EXTENSION))
        .collect();
    all.sort();
    all
}

#[cfg(test)]
#[path = "undo_tests.rs"]
mod tests;
