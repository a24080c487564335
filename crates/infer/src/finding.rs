//! What is said about a card: a value with its confidence, its rivals and its evidence, or "undecided, because ...".

use crate::units::{Bytes, polls, rate, three};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// What a finding is about. Sizes are in bytes, rates in bytes a second, costs in milliseconds, the rest are counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// The period of the costliest regular boundary: what is erased, or closed, as one.
    EraseBlock,
    /// Where the first erase block of this target begins, modulo the erase block.
    EraseBlockOffset,
    /// The smallest unit at which a boundary shows.
    Page,
    /// The largest unit below the erase block: planes read or programmed together.
    AccessUnit,
    /// The size below which a write costs as much as one of that size.
    WriteUnit,
    /// AUs that can be written in turn, each in linear order, without paying for closing one each time.
    OpenAusLinear,
    /// The same with random order inside each AU; 0 when even one AU pays every time.
    OpenAusRandom,
    /// Time to close one AU, in ms.
    CloseCostMs,
    /// Bytes at the start of the card that take random writes better than the rest; 0 when there are none.
    FatZone,
    /// How the card finds its data: 1 by erase block, with a limited number open; 2 by page; 3 every write rewrites its erase block.
    Mapping,
    /// Bytes of flash behind the card's addresses: less than it says on a counterfeit.
    Capacity,
    /// How many times faster one long write transaction is than the same blocks one by one.
    MultiBlockGain,
    /// The smallest transaction, in bytes, that reaches nine tenths of the best rate.
    MultiBlockKnee,
    /// How many times faster writes are with their length announced (CMD23) than ended by CMD12.
    PreDefinedGain,
    /// How many times faster writes are after announcing the blocks to erase ahead (ACMD23) than without.
    PreEraseGain,
    /// The largest request that reaches the medium in one piece on this host.
    LargestRequest,
    /// Time of a read that does not depend on its size, in µs.
    AccessTimeUs,
    /// Bytes a second that a longer read adds.
    ReadRate,
    /// Stretches of the device whose reads take clearly longer or shorter than those elsewhere.
    OddRegions,
    /// How many times faster the best-liked content is written than the worst; 1 where content does not matter.
    ContentGain,
    /// Linear writes below this size are combined into one; 0 when none are.
    CombinesBelow,
    /// The smallest write that reaches three quarters of the best rate.
    EfficientWrite,
    /// Bytes a second of a file written with small records.
    FileWriteRate,
    /// Bytes a second of a file read with small records.
    FileReadRate,
    /// The longest time one record of a file took to write, in ms.
    WorstWriteMs,
    /// When the card rewrites an erase block: 0 never in a row of small writes, 1 at the end of each transaction, 2 whenever a
    /// buffer is full.
    RewritePolicy,
    /// Bytes of small writes that are collected before they are written to the flash.
    WriteBuffer,
    /// Bytes that the card takes at once and writes to their place later, faster than the flash alone could.
    WriteCache,
    /// Time to rewrite an erase block for a small write, in ms.
    RewriteMs,
    /// The same in polls of a host that looks at the busy card again and again.
    RewritePolls,
    /// 1: a chip of small pages (512 B in 16 KiB), 2: of large pages, or of several bits a cell.
    ChipClass,
}

impl Quantity {
    pub const ALL: [Quantity; 31] = [
        Quantity::EraseBlock,
        Quantity::EraseBlockOffset,
        Quantity::Page,
        Quantity::AccessUnit,
        Quantity::WriteUnit,
        Quantity::OpenAusLinear,
        Quantity::OpenAusRandom,
        Quantity::CloseCostMs,
        Quantity::FatZone,
        Quantity::Mapping,
        Quantity::Capacity,
        Quantity::WriteCache,
        Quantity::MultiBlockGain,
        Quantity::MultiBlockKnee,
        Quantity::PreDefinedGain,
        Quantity::PreEraseGain,
        Quantity::LargestRequest,
        Quantity::AccessTimeUs,
        Quantity::ReadRate,
        Quantity::OddRegions,
        Quantity::ContentGain,
        Quantity::CombinesBelow,
        Quantity::EfficientWrite,
        Quantity::FileWriteRate,
        Quantity::FileReadRate,
        Quantity::WorstWriteMs,
        Quantity::RewritePolicy,
        Quantity::WriteBuffer,
        Quantity::RewriteMs,
        Quantity::RewritePolls,
        Quantity::ChipClass,
    ];

    /// The name in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Quantity::EraseBlock => "erase_block",
            Quantity::EraseBlockOffset => "erase_block_offset",
            Quantity::Capacity => "capacity",
            Quantity::Page => "page",
            Quantity::AccessUnit => "access_unit",
            Quantity::WriteUnit => "write_unit",
            Quantity::OpenAusLinear => "open_aus_linear",
            Quantity::OpenAusRandom => "open_aus_random",
            Quantity::CloseCostMs => "close_cost_ms",
            Quantity::FatZone => "fat_zone",
            Quantity::Mapping => "mapping",
            Quantity::MultiBlockGain => "multi_block_gain",
            Quantity::MultiBlockKnee => "multi_block_knee",
            Quantity::PreDefinedGain => "pre_defined_gain",
            Quantity::PreEraseGain => "pre_erase_gain",
            Quantity::LargestRequest => "largest_request",
            Quantity::AccessTimeUs => "access_time_us",
            Quantity::ReadRate => "read_rate",
            Quantity::OddRegions => "odd_regions",
            Quantity::ContentGain => "content_gain",
            Quantity::CombinesBelow => "combines_below",
            Quantity::EfficientWrite => "efficient_write",
            Quantity::FileWriteRate => "file_write_rate",
            Quantity::FileReadRate => "file_read_rate",
            Quantity::WorstWriteMs => "worst_write_ms",
            Quantity::RewritePolicy => "rewrite_policy",
            Quantity::WriteBuffer => "write_buffer",
            Quantity::WriteCache => "write_cache",
            Quantity::RewriteMs => "rewrite_ms",
            Quantity::RewritePolls => "rewrite_polls",
            Quantity::ChipClass => "chip_class",
        }
    }

    /// The name for people.
    pub fn title(self) -> &'static str {
        match self {
            Quantity::EraseBlock => "erase block",
            Quantity::EraseBlockOffset => "first erase block at",
            Quantity::Capacity => "real capacity",
            Quantity::Page => "page",
            Quantity::AccessUnit => "access unit",
            Quantity::WriteUnit => "write unit",
            Quantity::OpenAusLinear => "open AUs, linear",
            Quantity::OpenAusRandom => "open AUs, random",
            Quantity::CloseCostMs => "closing one AU",
            Quantity::FatZone => "FAT zone",
            Quantity::Mapping => "mapping",
            Quantity::MultiBlockGain => "multi-block gain",
            Quantity::MultiBlockKnee => "enough in one write",
            Quantity::PreDefinedGain => "CMD23 gain",
            Quantity::PreEraseGain => "ACMD23 gain",
            Quantity::LargestRequest => "largest request",
            Quantity::AccessTimeUs => "access time",
            Quantity::ReadRate => "read rate",
            Quantity::OddRegions => "odd regions",
            Quantity::ContentGain => "content gain",
            Quantity::CombinesBelow => "combines writes <",
            Quantity::EfficientWrite => "efficient write",
            Quantity::FileWriteRate => "file write",
            Quantity::FileReadRate => "file read",
            Quantity::WorstWriteMs => "longest write",
            Quantity::RewritePolicy => "rewrites",
            Quantity::WriteBuffer => "write buffer",
            Quantity::WriteCache => "write cache",
            Quantity::RewriteMs => "rewriting a block",
            Quantity::RewritePolls => "the same in polls",
            Quantity::ChipClass => "chip",
        }
    }

    /// In bytes a second.
    pub fn is_rate(self) -> bool {
        matches!(self, Quantity::ReadRate | Quantity::FileWriteRate | Quantity::FileReadRate)
    }

    /// A value of this quantity as people write it.
    pub fn show(self, v: f64) -> String {
        match self {
            Quantity::OpenAusLinear | Quantity::OpenAusRandom => format!("{v:.0}"),
            Quantity::CloseCostMs | Quantity::WorstWriteMs | Quantity::RewriteMs => format!("{} ms", three(v)),
            Quantity::AccessTimeUs => format!("{} µs", three(v)),
            Quantity::ReadRate | Quantity::FileWriteRate | Quantity::FileReadRate => rate(v),
            Quantity::RewritePolls => polls(v),
            Quantity::MultiBlockGain | Quantity::PreDefinedGain | Quantity::PreEraseGain => format!("{}x", three(v)),
            Quantity::RewritePolicy if v == 0.0 => "none".into(),
            Quantity::RewritePolicy => if v == 1.0 { "at the end" } else { "full buffer" }.into(),
            Quantity::Mapping => match v as u64 {
                1 => "by erase block",
                2 => "by page",
                _ => "rewrites blocks",
            }
            .into(),
            Quantity::ChipClass => if v == 1.0 { "small pages" } else { "large or MLC" }.into(),
            Quantity::ContentGain if v == 1.0 => "none".into(),
            Quantity::ContentGain => format!("{}x", three(v)),
            Quantity::OddRegions if v > 0.0 => format!("{v:.0}"),
            Quantity::FatZone | Quantity::OddRegions | Quantity::CombinesBelow if v == 0.0 => "none".into(),
            _ => Bytes(v as u64).to_string(),
        }
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
    /// Of open AUs: so many settled once, and later they did not. What was written before takes room in the card's table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_once: Option<Number>,
}

/// Where another run or experiment contradicts, this one may be the one that is fooled.
pub const CONTRADICTED: f64 = 0.85;

/// No quantity is larger: more than 2^64 bytes are no address.
const MOST: f64 = 18_446_744_073_709_551_616.0;

/// Below this nothing is told: about half of what random cards were said to be with less was wrong.
pub const SAID: f64 = 0.6;

/// What the reason of a capacity begins with that was not tried at all, and of one that was tried in part and had nothing wrong.
pub const NOT_TESTED: &str = "not tested";
pub const NO_SIGN: &str = "no sign";
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
            settled_once: None,
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
            self.caveats.push("a second run found fewer: what stays open on this card depends on what was written before".into());
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
