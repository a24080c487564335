//! What is said about a card: a value with its confidence, its rivals and its evidence, or "undecided, because ...".

use crate::units::{Bytes, GIB, KIB, MIB, about, between, ends, polls, rate, three};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

mod quantity;

pub use quantity::{Quantity, Row};

/// What a value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Bytes,
    BytesPerSecond,
    /// Millions of bytes a second.
    MegabytesPerSecond,
    /// Reads or writes a second.
    PerSecond,
    Seconds,
    Milliseconds,
    Microseconds,
    /// Looks of a host at a busy card.
    Polls,
    Count,
    /// So many times as fast.
    Times,
    /// Of a hundred.
    Percent,
    /// A choice, told in words.
    Code,
}

impl Unit {
    /// As a table for other programs names it.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Bytes => "B",
            Unit::BytesPerSecond => "B/s",
            Unit::MegabytesPerSecond => "MB/s",
            Unit::PerSecond => "IOPS",
            Unit::Seconds => "s",
            Unit::Milliseconds => "ms",
            Unit::Microseconds => "us",
            Unit::Polls => "polls",
            Unit::Count => "count",
            Unit::Times => "times",
            Unit::Percent => "%",
            Unit::Code => "code",
        }
    }
}

/// For which values a sentence is true.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    Always,
    Is(f64),
    Above(f64),
}

impl When {
    fn holds(self, v: f64) -> bool {
        match self {
            When::Always => true,
            When::Is(x) => v == x,
            When::Above(x) => v > x,
        }
    }
}

impl Quantity {
    /// The name in JSON.
    pub fn key(self) -> &'static str {
        self.row().key
    }

    /// The name for people.
    pub fn title(self) -> &'static str {
        self.row().title
    }

    /// In bytes a second.
    pub fn is_rate(self) -> bool {
        self.row().unit == Unit::BytesPerSecond
    }

    /// One of a few words.
    pub fn is_choice(self) -> bool {
        self.row().unit == Unit::Code
    }

    /// A value of this quantity as people write it.
    pub fn show(self, v: f64) -> String {
        let row = self.row();
        if row.none == Some(v) {
            return "none".into();
        }
        match row.unit {
            // A capacity is never in thousands of MiB.
            Unit::Bytes if self == Quantity::Capacity && v >= GIB as f64 => format!("{:.1} GiB", v / GIB as f64),
            // Nor one that ends anywhere in KiB.
            Unit::Bytes if self == Quantity::Capacity && v >= MIB as f64 => about(v as u64),
            Unit::Bytes => Bytes(v as u64).to_string(),
            Unit::BytesPerSecond => rate(v),
            Unit::MegabytesPerSecond => rate(v * 1e6),
            Unit::PerSecond => format!("{v:.0} IOPS"),
            Unit::Seconds => format!("{} s", three(v)),
            Unit::Milliseconds => format!("{} ms", three(v)),
            Unit::Microseconds => format!("{} µs", three(v)),
            Unit::Polls => polls(v),
            Unit::Count => format!("{v:.0}"),
            Unit::Times => format!("{}x", three(v)),
            Unit::Percent => format!("{} %", three(v)),
            Unit::Code => row.codes.iter().find(|c| c.0 == v).or(row.codes.last()).map_or_else(String::new, |c| c.1.into()),
        }
    }

    /// An interval, its unit once; one figure where both ends read alike.
    pub fn range(self, lo: f64, hi: f64) -> String {
        let one = |unit: f64, name: &str| {
            let [lo, hi] = ends(lo / unit, hi / unit);
            between(&lo, &hi) + name
        };
        match self.row().unit {
            // In GiB as the value is, unless that would hide how far the ends are apart.
            Unit::Bytes if lo >= GIB as f64 && three(lo / GIB as f64) != three(hi / GIB as f64) => one(GIB as f64, " GiB"),
            Unit::Bytes if hi >= 4.0 * MIB as f64 => one(MIB as f64, " MiB"),
            Unit::Bytes if hi >= 4.0 * KIB as f64 => one(KIB as f64, " KiB"),
            Unit::Bytes => one(1.0, " B"),
            Unit::MegabytesPerSecond if lo >= 1.0 => one(1.0, " MB/s"),
            Unit::BytesPerSecond | Unit::MegabytesPerSecond | Unit::Polls | Unit::Code => between(&self.show(lo), &self.show(hi)),
            Unit::PerSecond => between(&format!("{lo:.0}"), &format!("{hi:.0}")) + " IOPS",
            Unit::Seconds => one(1.0, " s"),
            Unit::Milliseconds => one(1.0, " ms"),
            Unit::Microseconds => one(1.0, " µs"),
            Unit::Times => one(1.0, "x"),
            Unit::Percent => one(1.0, " %"),
            Unit::Count => one(1.0, ""),
        }
    }

    /// What a value means for whoever uses the card, where there is something to say.
    pub fn means(self, v: f64) -> Option<String> {
        self.row().means.iter().find(|m| m.0.holds(v)).map(|m| m.1.replace("{}", &self.show(v)))
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.title())
    }
}

/// A number that is written without a fraction where it has none.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Number(pub f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if self.0.fract() == 0.0 && self.0.abs() < 9e15 { s.serialize_i64(self.0 as i64) } else { s.serialize_f64(self.0) }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        f64::deserialize(d).map(Number)
    }
}

/// Another value the data allow, with its probability.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rival {
    pub value: Number,
    pub probability: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    pub quantity: Quantity,
    /// Bytes, count or ms; `None` when undecided.
    pub value: Option<Number>,
    /// A lower bound, where only that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<Number>,
    /// Probability that the value (or the bound) is right, calibrated over random simulated cards; 0 when undecided.
    pub confidence: f64,
    /// Interval of a continuous quantity, 95 %; `None` for sizes and counts, whose doubt is in the rivals.
    pub interval: Option<[f64; 2]>,
    pub rivals: Vec<Rival>,
    pub evidence: Vec<String>,
    pub caveats: Vec<String>,
    /// Why it is undecided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The experiments it rests on.
    #[serde(default)]
    pub from: Vec<String>,
    /// A run that it rests on was cut short: by time, by bytes to write, or by hand. At the same score it is right less often.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// No write was slow, however many AUs were interleaved: a cache that took them all would hide a limit. A bound or a mapping rests on that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub never_slow: bool,
    /// Of open AUs: so many settled once, and later they did not. What was written before takes room in the card's table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_once: Option<Number>,
    /// A small erase block would look the same: told only where a larger one is known.
    #[serde(skip)]
    pub or_block: bool,
    /// Of a write unit: units do not begin where erase blocks were supposed to, at the start of the disk.
    #[serde(skip)]
    pub off_grid: bool,
    /// Of a multi-plane page: reads crossed multiples that count from here, in bytes from the start of the target.
    #[serde(skip)]
    pub counted_from: Option<u64>,
    /// Another experiment decided on another value: never surer than [`CONTRADICTED`].
    #[serde(skip)]
    pub disputed: bool,
    /// Another value that this experiment speaks against, and the probability that it leaves it at most.
    #[serde(skip)]
    pub doubts: Option<(f64, f64)>,
}

/// The number that stands for a card that maps pages, of [`Quantity::Mapping`].
pub const BY_PAGE: f64 = 2.0;

/// Where another run or experiment contradicts, this one may be the one that is fooled.
pub const CONTRADICTED: f64 = 0.85;

/// No quantity is larger: more than 2^64 bytes are no address.
const MOST: f64 = 18_446_744_073_709_551_616.0;

/// Below this nothing is told: about half of what random cards were said to be with less was wrong.
pub const SAID: f64 = 0.6;

/// Below this a card's size counts as not found: nobody is told to give a card back, and nothing is clipped to it. Border searches with
/// one or two lost places have 0.7, those with three and all that show two addresses of one place 0.95 and more.
pub const SURE_OF_SIZE: f64 = 0.75;

/// A confidence in whole per cent as it is shown: rounded down, as nothing is certain.
pub fn percent(confidence: f64) -> f64 {
    (confidence * 100.0 + 1e-9).floor()
}

/// What the reason of a capacity begins with that was not tried at all, and of one that was tried in part and had nothing wrong.
pub const NOT_TESTED: &str = "not tested";
pub const NO_SIGN: &str = "no sign";
/// And of one where places were lost, in no way that says where the flash ends.
pub const LOSES: &str = "the card does not keep what is written";
/// What follows it where the card kept all that was written first, and nothing of what was written last.
pub const STOPPED: &str = "it takes no more writes";
/// Stands in a reason for the target and its options, which whoever prints it knows.
pub const TARGET: &str = "TARGET";

impl Finding {
    /// The reason, where it is said instead of "undecided" or of a bound: a bound on the capacity that is only how far the test came reads
    /// as a fault of the card.
    pub fn instead(&self) -> Option<&str> {
        let reason = self.reason.as_deref()?;
        let alone = self.value.is_none() && self.interval.is_none() && [NOT_TESTED, NO_SIGN].iter().any(|w| reason.starts_with(w));
        (self.quantity == Quantity::Capacity && alone).then_some(reason)
    }

    /// Why it is undecided, without the names of the experiments that say it, and without what a second one repeats.
    pub fn reason_in_words(&self) -> Option<String> {
        let named = |n: &str| self.from.iter().any(|f| f == n) || n.contains('-') && n.chars().all(|c| c == '-' || c.is_ascii_lowercase());
        let mut out: Vec<&str> = vec![];
        for clause in self.reason.as_deref()?.split("; ") {
            let clause = clause.split_once(": ").filter(|(n, _)| named(n)).map_or(clause, |(_, why)| why);
            if !out.contains(&clause) {
                out.push(clause);
            }
        }
        Some(out.join("; "))
    }

    pub fn decided(quantity: Quantity, value: f64, confidence: f64) -> Finding {
        Finding {
            quantity,
            value: Some(Number(value)),
            at_least: None,
            confidence: confidence.clamp(0.0, 0.999),
            interval: None,
            rivals: vec![],
            evidence: vec![],
            caveats: vec![],
            reason: None,
            from: vec![],
            cut: false,
            never_slow: false,
            settled_once: None,
            or_block: false,
            off_grid: false,
            counted_from: None,
            disputed: false,
            doubts: None,
        }
    }

    pub fn undecided(quantity: Quantity, reason: impl Into<String>) -> Finding {
        Finding { value: None, reason: Some(reason.into()), ..Finding::decided(quantity, 0.0, 0.0) }
    }

    /// Undecided after all; what it rested on stays.
    pub fn withdrawn(self, reason: impl Into<String>) -> Finding {
        Finding { value: None, at_least: None, confidence: 0.0, rivals: vec![], reason: Some(reason.into()), ..self }
    }

    /// Undecided, but known to be at least `bound`.
    pub fn at_least(quantity: Quantity, bound: f64, confidence: f64, reason: impl Into<String>) -> Finding {
        Finding { at_least: Some(Number(bound)), confidence, ..Finding::undecided(quantity, reason) }
    }

    /// Says this instead; what was seen, what makes it less certain and who saw it stay.
    pub fn becomes(&mut self, now: Finding) {
        let before = std::mem::replace(self, now);
        (self.evidence, self.caveats, self.from, self.cut) = (before.evidence, before.caveats, before.from, before.cut);
    }

    pub fn evidence(mut self, e: impl Into<String>) -> Finding {
        self.evidence.push(e.into());
        self
    }

    pub fn caveat(mut self, c: impl Into<String>) -> Finding {
        self.caveats.push(c.into());
        self
    }

    /// A later run of the same experiment found less, for what was written in between took up the card.
    pub fn contradicted(mut self) -> Finding {
        self.confidence = self.confidence.min(CONTRADICTED);
        if self.value.is_some() || self.at_least.is_some() {
            self.caveats.push("a second run found fewer: how many are kept open on this card depends on what was written before".into());
        }
        self
    }

    pub fn rivals(mut self, rivals: impl IntoIterator<Item = (f64, f64)>) -> Finding {
        self.rivals = rivals.into_iter().map(|(v, p)| Rival { value: Number(v), probability: (p * 1e4).round() / 1e4 }).collect();
        self
    }

    pub fn number(&self) -> Option<f64> {
        self.value.map(|n| n.0)
    }
}

/// Findings known so far, at most one a quantity.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Findings(pub Vec<Finding>);

impl Findings {
    /// Whether the numbers can be: what was read from a file may hold any.
    ///
    /// # Errors
    /// The first number that cannot be, in words.
    pub fn check(&self) -> Result<(), String> {
        for f in &self.0 {
            let title = f.quantity.title();
            // Sums of probabilities are rounded.
            let share = |p: f64| (0.0..=1.0 + 1e-6).contains(&p);
            if !share(f.confidence) || f.rivals.iter().any(|r| !share(r.probability)) {
                return Err(format!("a probability of {title} is not between 0 and 1"));
            }
            let least = [f.value, f.at_least].into_iter().flatten().map(|n| n.0);
            if let Some(n) =
                least.chain(f.settled_once.map(|n| n.0)).chain(f.rivals.iter().map(|r| r.value.0)).find(|n| !(0.0..=MOST).contains(n))
            {
                return Err(format!("{title} is {n:e}, which it cannot be"));
            }
            let whole = [Quantity::EraseBlock, Quantity::Page, Quantity::AccessUnit, Quantity::WriteUnit].contains(&f.quantity);
            if let Some(n) = f.number().filter(|n| whole && (*n < 512.0 || n % 512.0 != 0.0)) {
                return Err(format!("{title} is {n} bytes, which is no number of sectors"));
            }
        }
        Ok(())
    }

    pub fn get(&self, q: Quantity) -> Option<&Finding> {
        self.0.iter().find(|f| f.quantity == q)
    }

    /// The value, where it is decided with at least this confidence.
    pub fn value(&self, q: Quantity, confidence: f64) -> Option<f64> {
        self.get(q).filter(|f| f.confidence >= confidence).and_then(|f| f.number())
    }
}
