//! One result in the forms of other programs: JSON lines, CSV, Prometheus, JUnit, LAVA, TAP.
//!
//! [`Facts::of`] makes facts of the JSON of any command; each form is one writer of facts. A new result is one more reader in `read.rs`
//! and nothing else, a new form one more writer.

mod differences;
mod lines;
mod prom;
mod read;
mod verdicts;
mod work;
mod xml;

use serde_json::Value;

/// A form in which a result can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The result as it is.
    Json,
    /// One object a fact, one a line.
    Jsonl,
    /// One row a fact (RFC 4180).
    Csv,
    /// Prometheus' text format, for the textfile collector of node_exporter.
    Prom,
    /// JUnit XML: one test case a fact.
    Junit,
    /// Signals that LAVA finds in what a test prints.
    Lava,
    /// Lines `name result [measurement units]`, for send-to-lava.sh of Linaro's test-definitions.
    LavaResults,
    /// Test Anything Protocol, version 13.
    Tap,
}

impl Form {
    /// All, with their names on the command line.
    pub const ALL: [(Form, &'static str); 8] = [
        (Form::Json, "json"),
        (Form::Jsonl, "jsonl"),
        (Form::Csv, "csv"),
        (Form::Prom, "prom"),
        (Form::Junit, "junit"),
        (Form::Lava, "lava"),
        (Form::LavaResults, "lava-results"),
        (Form::Tap, "tap"),
    ];

    /// A result in this form.
    ///
    /// # Errors
    /// The result holds no findings, metrics or verdicts that this program could name; says which it is.
    pub fn write(self, value: &Value) -> Result<String, String> {
        if self == Form::Json {
            return Ok(format!("{value}\n"));
        }
        let facts = Facts::of(value)?;
        Ok(match self {
            Form::Json | Form::Jsonl => lines::jsonl(&facts),
            Form::Csv => lines::csv(&facts),
            Form::Prom => prom::text(&facts),
            Form::Junit => xml::junit(&facts),
            Form::Lava => lines::lava(&facts),
            Form::LavaResults => lines::lava_results(&facts),
            Form::Tap => lines::tap(&facts),
        })
    }
}

/// A card that facts are of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Card {
    /// Its serial number, else its model, else the target: the shortest that stays the same in another reader.
    pub id: String,
    pub model: Option<String>,
    /// What was measured, as it was named.
    pub target: String,
}

/// What a fact says of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    Fail,
    /// Not tested, or not decided.
    Skip,
    /// A value, which is neither good nor bad by itself.
    Measured,
}

impl Verdict {
    /// In JSON, CSV and LAVA's lines; a value that was measured is a test that passed.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Pass | Verdict::Measured => "pass",
            Verdict::Fail => "fail",
            Verdict::Skip => "skip",
        }
    }
}

/// One finding, metric or verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// Index of its card.
    pub card: usize,
    /// "finding", "metric", "check", ...
    pub group: &'static str,
    /// Letters, digits and underscores: "erase_block".
    pub name: String,
    /// "4 KiB, depth 1", or nothing.
    pub conditions: String,
    /// In base units.
    pub value: Option<f64>,
    /// Only a lower bound is known.
    pub at_least: Option<f64>,
    /// bytes, seconds, bytes_per_second, requests_per_second, ratio, ..., or nothing for counts.
    pub unit: String,
    pub interval: Option<[f64; 2]>,
    pub confidence: Option<f64>,
    pub verdict: Verdict,
    /// For people: the value as it is printed, or why there is none.
    pub text: String,
    /// What the quantity is, in a sentence.
    pub help: String,
}

/// Everything that a result says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// "nandscope-report/1".
    pub schema: String,
    /// Version of the program that wrote it.
    pub version: String,
    /// Seconds since 1970, where the result says when it was measured.
    pub when: Option<u64>,
    pub cards: Vec<Card>,
    pub all: Vec<Fact>,
}

impl Facts {
    /// # Errors
    /// The result is of a kind that holds no facts.
    pub fn of(value: &Value) -> Result<Facts, String> {
        read::read(value)
    }

    /// "report" of "nandscope-report/1".
    pub fn command(&self) -> &str {
        let name = self.schema.split('/').next().unwrap_or("");
        name.strip_prefix("nandscope-").unwrap_or(name)
    }

    fn card(&self, f: &Fact) -> &Card {
        &self.cards[f.card]
    }
}

impl Fact {
    /// Name and conditions as one word of letters, digits, '-' and '_'.
    fn id(&self) -> String {
        let conditions = words(&self.conditions, '-');
        if conditions.is_empty() { self.name.clone() } else { format!("{}-{conditions}", self.name) }
    }

    /// Name and conditions for people.
    fn title(&self) -> String {
        if self.conditions.is_empty() { self.name.clone() } else { format!("{} ({})", self.name, self.conditions) }
    }
}

/// The letters and digits of a text in lower case, with this between words.
fn words(text: &str, between: char) -> String {
    let lower = text.to_lowercase();
    lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty()).collect::<Vec<_>>().join(&between.to_string())
}

/// A value in base units, and the name of the unit: "kB/s" becomes bytes a second.
fn base(value: f64, unit: &str) -> (f64, String) {
    let (factor, name): (f64, &str) = match unit {
        "B/s" => (1.0, "bytes_per_second"),
        "kB/s" => (1e3, "bytes_per_second"),
        "MB/s" => (1e6, "bytes_per_second"),
        "KiB/s" => (1024.0, "bytes_per_second"),
        "MiB/s" => (1_048_576.0, "bytes_per_second"),
        "IOPS" => (1.0, "requests_per_second"),
        "s" => (1.0, "seconds"),
        "ms" => (1e-3, "seconds"),
        "µs" | "us" => (1e-6, "seconds"),
        "ns" => (1e-9, "seconds"),
        "B" => (1.0, "bytes"),
        "KiB" => (1024.0, "bytes"),
        "MiB" => (1_048_576.0, "bytes"),
        "GiB" => (1_073_741_824.0, "bytes"),
        "%" => (0.01, "ratio"),
        "" => (1.0, ""),
        other => return (value, words(&other.replace("/s", " per second"), '_')),
    };
    // A power of ten below one is divided by, so that 4.5 ms stay 0.0045 s.
    let base = if factor < 1.0 { value / (1.0 / factor).round() } else { value * factor };
    (base, name.into())
}
