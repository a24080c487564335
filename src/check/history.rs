//! One small record a card, to see what changed since it was checked last.

use super::measure::{Measured, Rate};
use super::{Answer, Outcome, Question, Verdict};
use crate::host::faults::Noticed;
use crate::host::wear::{Reading, Wear, Written};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fs, io};

/// Of the records.
pub const SCHEMA: &str = "nandscope-check-history/1";

/// A rate that differs by less is no news: what else a host does changes it by as much, from one check to the next.
const DIFFERENT: f64 = 1.25;

/// Neither number is more than twice the other.
fn close(a: u64, b: u64) -> bool {
    a <= 2 * b && b <= 2 * a
}

/// What is kept of a check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub schema: String,
    /// Seconds since 1970.
    pub when: u64,
    pub outcome: String,
    /// Verdicts by question.
    pub verdicts: BTreeMap<String, String>,
    /// Rates in bytes a second with their bounds at 95 %.
    pub rates: BTreeMap<String, [f64; 3]>,
    /// Bytes of a request and number of requests of each rate.
    #[serde(default)]
    pub requests: BTreeMap<String, [u64; 2]>,
    /// What verdicts were held against, by question: the use, the classes.
    #[serde(default)]
    pub against: BTreeMap<String, String>,
    /// Counters of the card's health block, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading: Option<Reading>,
    /// What this host wrote to it since it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Written>,
    /// Errors that file systems count, by partition.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub file_system_errors: BTreeMap<String, u64>,
    /// What the last two readings with enough writes between them say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wear: Option<Wear>,
}

impl Record {
    /// What a check leaves behind.
    pub fn of(when: u64, outcome: Outcome, answers: &[Answer], m: &Measured) -> Record {
        let rates = [
            ("sequential write", m.sequential_write),
            ("sequential read", m.sequential_read),
            ("random write", m.random_write),
            ("random read", m.random_read),
        ];
        let bounds = |r: Rate| [r.bytes_per_second, r.low, r.high];
        Record {
            schema: SCHEMA.into(),
            when,
            outcome: format!("{outcome:?}"),
            verdicts: answers.iter().map(|a| (a.question.title().to_string(), a.verdict.word().to_string())).collect(),
            rates: rates.into_iter().filter_map(|(name, r)| Some((name.to_string(), bounds(r?)))).collect(),
            requests: rates.into_iter().filter_map(|(name, r)| Some((name.to_string(), [r?.len, r?.requests as u64]))).collect(),
            against: BTreeMap::new(),
            reading: None,
            written: None,
            file_system_errors: BTreeMap::new(),
            wear: None,
        }
    }

    /// With what the card was held against: a use, classes.
    #[must_use]
    pub fn against(mut self, purpose: Option<&str>, classes: &[String]) -> Record {
        let mut put = |q: Question, what: String| self.against.insert(q.title().into(), what);
        if let Some(p) = purpose {
            put(Question::Purpose, p.into());
        }
        put(Question::Speed, classes.join(","));
        self
    }

    /// With the counters of the card and of the host.
    #[must_use]
    pub fn with(self, reading: Option<Reading>, written: Option<Written>, noticed: &Noticed) -> Record {
        let file_system_errors = noticed.ext4.iter().map(|e| (e.device.clone(), e.errors)).collect();
        Record { reading, written, file_system_errors, ..self }
    }

    /// Holds this check's counters against those of the check before: what follows, of a card of so many bytes. Where too little was
    /// written between them, what was found before stays.
    pub fn weigh(&mut self, before: &Record, size: u64) {
        let between = self.written.as_ref().zip(before.written.as_ref()).and_then(|(now, was)| now.from(was));
        let fresh = before.reading.zip(self.reading).map(|(was, now)| was.until(&now, between, size));
        self.wear = match (fresh, before.wear) {
            (Some(w), _) if w.amplification.is_some() || w.superblock.is_some() => {
                Some(Wear { amplification: w.amplification.or(before.wear.and_then(|b| b.amplification)), ..w })
            }
            (_, old) => old,
        };
    }

    /// What is different now, one line each. Rates of like requests differ where their intervals lie apart, and by more than hosts do.
    pub fn changes(&self, now: &Record) -> Vec<String> {
        let mut out = vec![];
        for (question, verdict) in &now.verdicts {
            let before = self.verdicts.get(question).map_or("not known", String::as_str);
            // Another use or class is another question.
            if self.against.get(question) != now.against.get(question) {
                continue;
            }
            // A test that was left out says nothing of the card.
            if before != verdict && before != Verdict::NotKnown.word() && verdict != Verdict::NotKnown.word() {
                out.push(format!("{question}: was {before}, is {verdict}"));
            }
        }
        for (name, [value, low, high]) in &now.rates {
            let Some([old, old_low, old_high]) = self.rates.get(name) else { continue };
            let alike = self.requests.get(name).zip(now.requests.get(name)).is_some_and(|(a, b)| a[0] == b[0] && close(a[1], b[1]));
            let apart = high < old_low || low > old_high;
            if alike && apart && (value / old).max(old / value) >= DIFFERENT {
                let (word, factor) = if value < old { ("slower", old / value) } else { ("faster", value / old) };
                out.push(format!("{name}: {factor:.2} times {word} than before"));
            }
        }
        let counted = |label: &str, was: Option<u64>, is: Option<u64>| {
            let (was, is) = (was?, is?);
            (was != is).then(|| format!("{label}: was {was}, is {is}"))
        };
        if let (Some(was), Some(is)) = (&self.reading, &now.reading) {
            if let (Some(a), Some(b)) = (was.life_left_percent, is.life_left_percent)
                && a != b
            {
                out.push(format!("life left by its own count: was {a} %, is {b} %"));
            }
            out.extend(counted("bad blocks since the factory", was.grown_bad_blocks, is.grown_bad_blocks));
            out.extend(counted("spare blocks", was.spare_blocks, is.spare_blocks));
        }
        for (device, errors) in &now.file_system_errors {
            out.extend(counted(
                &format!("errors that ext4 counts on {device}"),
                self.file_system_errors.get(device).copied(),
                Some(*errors),
            ));
        }
        if let Some(w) = now.wear.filter(|w| Some(*w) != self.wear) {
            out.extend(w.lines());
        }
        out
    }
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// The file of a card: by its serial number or CID, else by model and size.
pub fn file(dir: &Path, key: &str) -> PathBuf {
    let name: String = key.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).take(120).collect();
    dir.join(format!("{name}.json"))
}

/// The record of the check before; none where the card is new here.
///
/// # Errors
/// The file cannot be read, or is no such record.
pub fn load(path: &Path) -> io::Result<Option<Record>> {
    let text = match fs::read_to_string(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    let bad = |why: String| io::Error::new(io::ErrorKind::InvalidData, format!("{} is no record of a check: {why}", path.display()));
    let record: Record = serde_json::from_str(&text).map_err(|e| bad(e.to_string()))?;
    if record.schema == SCHEMA { Ok(Some(record)) } else { Err(bad(format!("its schema is {}", record.schema))) }
}
