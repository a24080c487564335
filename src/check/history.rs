//! One small record a card, to see what changed since it was checked last.

use super::measure::{Measured, Rate};
use super::{Answer, Outcome, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Of the records.
pub const SCHEMA: &str = "nandscope-check-history/1";

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
        }
    }

    /// What is different now, one line each. Rates differ where their intervals lie apart.
    pub fn changes(&self, now: &Record) -> Vec<String> {
        let mut out = vec![];
        for (question, verdict) in &now.verdicts {
            let before = self.verdicts.get(question).map_or("not known", String::as_str);
            // A test that was left out says nothing of the card.
            if before != verdict && before != Verdict::NotKnown.word() && verdict != Verdict::NotKnown.word() {
                out.push(format!("{question}: was {before}, is {verdict}"));
            }
        }
        for (name, [value, low, high]) in &now.rates {
            let Some([old, old_low, old_high]) = self.rates.get(name) else { continue };
            if high < old_low || low > old_high {
                let (word, factor) = if value < old { ("slower", old / value) } else { ("faster", value / old) };
                out.push(format!("{name}: {factor:.2} times {word} than before"));
            }
        }
        out
    }
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
