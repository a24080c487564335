//! A journal read back: whole, torn or damaged.

use super::*;
use crate::device::open::patiently;
use rustix::io::Errno;

/// A journal read from disk.
pub struct Saved {
    file: File,
    path: PathBuf,
    pub header: Header,
    pub(super) records: Vec<Record>,
    /// What is wrong with it: a torn end is normal after a crash, damage is not.
    pub state: State,
    /// The header says that no record was on disk.
    counts_none: bool,
}

/// How a journal ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Whole,
    /// The last records are incomplete: their writes never went out.
    Torn,
    /// Records from this byte of the journal on are unreadable, although they were on disk.
    Damaged(u64),
    /// It ends after a whole record, but so many records of those that were on disk are there: its end is gone.
    Cut {
        there: u64,
        of: u64,
    },
    /// Whole as far as it goes, but written by a version that did not count its records: a lost end would not show.
    Uncounted,
}

impl State {
    /// Writes may have gone out whose old content cannot be read.
    pub fn lacks(self) -> bool {
        matches!(self, State::Damaged(_) | State::Cut { .. })
    }

    /// What is wrong with a journal, for people; nothing where all that was overwritten is in it.
    pub fn trouble(self) -> Option<String> {
        match self {
            State::Whole | State::Torn => None,
            State::Damaged(at) => {
                Some(format!("is damaged from byte {at} on; what could be read of it is back, the rest is lost. The journal is kept"))
            }
            State::Cut { there, of } => Some(format!(
                "has lost its end: {there} of {of} records are there. What they hold is back; what the run overwrote later is not. The journal is kept"
            )),
            State::Uncounted => {
                Some("was written by a version that did not count its records: if its end was lost, later writes are not undone".into())
            }
        }
    }
}

impl Saved {
    /// Reads and checks a journal.
    ///
    /// # Errors
    /// No journal, or one of a newer format.
    pub fn open(path: &Path) -> Result<Saved> {
        let Head { file, header, start, counted } = head(path)?;
        let (records, state) = scan(&file, start, header.id.size, counted).map_err(failed(path))?;
        let counts_none = counted == Some(0);
        Ok(Saved { file, path: path.to_path_buf(), header, records, state, counts_none })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of old content it holds.
    pub fn bytes(&self) -> u64 {
        self.records.iter().map(|r| r.len).sum()
    }

    /// Nothing can have been written under it: no record was ever on disk. A journal that does not count may have lost all of its records.
    pub fn unused(&self) -> bool {
        self.records.is_empty() && self.counts_none && matches!(self.state, State::Whole | State::Torn)
    }

    /// Takes the lock of the journal; false where the run that writes it, or another undo, holds it.
    pub fn lock(&self) -> bool {
        patiently(Errno::WOULDBLOCK, || flock(&self.file, FlockOperation::NonBlockingLockExclusive)).is_ok()
    }

    /// Compares the fingerprint with a target, leaving out what the journal holds: that may have been overwritten. True
    /// where all the rest is the same.
    ///
    /// # Errors
    /// The target cannot be read.
    pub fn matches(&self, dev: &mut dyn Device) -> Result<bool> {
        let mut changed = RangeSet::default();
        self.records.iter().for_each(|r| changed.insert(r.at..r.at + r.len));
        let (mut same, mut failed) = (false, None);
        for &(at, len, sum) in &self.header.fingerprint {
            let whole = len <= PIECE && at.checked_add(len).is_some_and(|e| e <= dev.geometry().size);
            let untouched = changed.missing(at..at + len).first() == Some(&(at..at + len));
            if !whole || !untouched {
                continue;
            }
            let mut data = vec![0; len as usize];
            // A failing card may have lost a sample since.
            match dev.load(at, &mut data) {
                Err(e) => failed = Some(e),
                Ok(()) if crc32fast::hash(&data) != sum => return Ok(false),
                Ok(()) => same = true,
            }
        }
        failed.filter(|_| !same).map_or(Ok(true), Err)
    }

    /// As [`Journal::put_back`], of all that is readable.
    ///
    /// # Errors
    /// The medium failed, or reads back something else.
    pub fn put_back(&self, dev: &mut dyn Device) -> Result<Restored> {
        self.try_back(dev)?.whole()
    }

    /// As [`Journal::try_back`].
    ///
    /// # Errors
    /// The journal cannot be read, or the medium refuses everything.
    pub fn try_back(&self, dev: &mut dyn Device) -> Result<PutBack> {
        put_back(&self.file, &self.path, &self.records, None, dev)
    }

    /// The ranges (first byte, length) whose old content it holds, in ascending order.
    pub fn ranges(&self) -> Vec<(u64, u64)> {
        let mut all = RangeSet::default();
        self.records.iter().for_each(|r| all.insert(r.at..r.at + r.len));
        all.iter().map(|r| (r.start, r.end - r.start)).collect()
    }

    /// Deletes the journal, after the old content is back.
    pub fn delete(self) -> Result<()> {
        delete(&self.path)
    }
}

/// The beginning of a journal.
struct Head {
    file: File,
    header: Header,
    /// Where its records begin.
    start: u64,
    /// Records that were on disk, where it counts them.
    counted: Option<u32>,
}

/// Whose content a journal holds.
///
/// # Errors
/// As [`Saved::open`].
pub(super) fn header(path: &Path) -> Result<Header> {
    head(path).map(|h| h.header)
}

fn head(path: &Path) -> Result<Head> {
    let bad = failed(path);
    let wrong = |why: &str| DeviceError::Journal { path: path.display().to_string(), why: why.into() };
    let file = File::open(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => wrong("there is no such file; 'nandscope undo --list' shows the journals"),
        _ => bad(e),
    })?;
    let mut head = [0; HEAD];
    if !read_whole(&file, &mut head, 0).map_err(&bad)? || &head[..8] != MAGIC {
        return Err(wrong("this is no undo journal"));
    }
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    if word(8) != VERSION {
        return Err(wrong("written by a newer version of nandscope; use that one"));
    }
    let mut json = vec![0; (word(12) as usize).min(PIECE as usize)];
    if !read_whole(&file, &mut json, HEAD as u64).map_err(&bad)? || crc32fast::hash(&json) != word(16) {
        return Err(wrong("the header is damaged: it does not say which card this is of; if nobody knows it, delete the file"));
    }
    let header: Header = serde_json::from_slice(&json).map_err(|e| wrong(&format!("the header is damaged: {e}")))?;
    let counted = word(COUNT as usize).checked_sub(1);
    Ok(Head { file, header, start: (HEAD + json.len()) as u64, counted })
}

/// Every readable record. The first of two records of one place wins; putting back one whose write never happened does no
/// harm, because it holds what is there.
fn scan(file: &File, start: u64, size: u64, counted: Option<u32>) -> io::Result<(Vec<Record>, State)> {
    let end = file.metadata()?.len();
    let (mut records, mut seen, mut synced) = (Vec::new(), RangeSet::default(), Vec::new());
    let (mut at, mut bad) = (start, None);
    while at < end {
        let Some((r, before, next)) = record(file, at, size)? else {
            bad = bad.or(Some(at));
            at = next_magic(file, at + 1, end)?;
            continue;
        };
        synced.push(before);
        for m in seen.missing(r.at..r.at + r.len) {
            let from = match r.from {
                Source::File(p) => Source::File(p + (m.start - r.at)),
                byte => byte,
            };
            records.push(Record { at: m.start, len: m.end - m.start, from });
            seen.insert(m);
        }
        at = next;
    }
    // The header says how many were on disk, and each record how many before its batch began. Fewer readable ones mean that some are
    // gone, not a torn end.
    let (there, of) = (synced.len() as u64, u64::from(counted.unwrap_or(0)));
    let promised = synced.iter().copied().max().unwrap_or(0);
    let before = synced.iter().filter(|&&s| s < promised).count() as u64;
    let state = match bad {
        Some(at) if before < u64::from(promised) || there < of => State::Damaged(at),
        Some(_) => State::Torn,
        None if there < of => State::Cut { there, of },
        None if counted.is_none() && there > 0 => State::Uncounted,
        None => State::Whole,
    };
    Ok((records, state))
}

/// Where the next record may begin; the end where there is none.
fn next_magic(file: &File, from: u64, end: u64) -> io::Result<u64> {
    let mut data = vec![0; PIECE as usize];
    let mut at = from;
    while at + 4 <= end {
        let part = &mut data[..(end - at).min(PIECE) as usize];
        file.read_exact_at(part, at)?;
        if let Some(p) = part.windows(4).position(|w| w == RECORD_MAGIC) {
            return Ok(at + p as u64);
        }
        at += part.len() as u64 - 3;
    }
    Ok(end)
}

/// The record at a position of the journal, how many were on disk before its batch, and where the next one begins; none
/// where it is not whole.
fn record(file: &File, at: u64, size: u64) -> io::Result<Option<(Record, u32, u64)>> {
    let mut head = [0; RECORD_HEAD];
    if !read_whole(file, &mut head, at)? {
        return Ok(None);
    }
    let word = |i: usize| u32::from_le_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
    let long = |i: usize| u64::from(word(i)) | u64::from(word(i + 4)) << 32;
    let (start, len) = (long(16), long(24));
    let fits = (1..=PIECE).contains(&len) && start.checked_add(len).is_some_and(|e| e <= size);
    if &head[..4] != RECORD_MAGIC || crc32fast::hash(&head[..32]) != word(32) || !fits {
        return Ok(None);
    }
    let body = at + RECORD_HEAD as u64;
    let (from, mut payload) = match head[4] {
        1 => (Source::File(body), vec![0; len as usize]),
        2 => (Source::Byte(head[5]), Vec::new()),
        _ => return Ok(None),
    };
    if !read_whole(file, &mut payload, body)? || crc32fast::hash(&payload) != word(12) {
        return Ok(None);
    }
    Ok(Some((Record { at: start, len, from }, word(8), body + payload.len() as u64)))
}

/// False where the file ends too early.
fn read_whole(file: &File, into: &mut [u8], at: u64) -> io::Result<bool> {
    match file.read_exact_at(into, at) {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        other => other.map(|()| true),
    }
}
