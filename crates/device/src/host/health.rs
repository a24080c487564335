//! The health block that some SD cards return to CMD56 (GEN_CMD): 512 bytes in a layout of the maker's own.
//!
//! No standard describes these blocks. Offsets, widths and byte orders are facts read from programs and threads of owners
//! (sdmon, readers of Swissbit, Longsys and Silicon Motion blocks); `layouts` says which of them rest on one source only.
//! A block may be anything: zeros, ones, the card's own sector 0, rubbish that changes with every reading. So nothing is shown that
//! was not found plausible, and a block without a known signature is refused unless its layout was asked for by argument and every
//! relation between its numbers holds.

mod layouts;

pub use layouts::{Layout, Query, query_for};

use super::registers::hex;
use layouts::Form;
use serde::{Deserialize, Serialize};

/// Bytes of a health block.
pub const BLOCK: usize = 512;

/// What one field of a block says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A count, in the unit of its field.
    Number(u64),
    /// Text, or bytes as hex digits.
    Text(String),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Number(n) => write!(f, "{n}"),
            Value::Text(t) => f.write_str(t),
        }
    }
}

/// One field of a block with its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Name for programs; the unit is part of it where it is no plain count.
    pub key: String,
    /// Name for people.
    pub title: String,
    /// As found.
    pub value: Value,
    /// Only one program reads it so, or its meaning is inferred.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncertain: bool,
}

/// A decoded health block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HealthBlock {
    /// Name of the layout.
    pub layout: String,
    /// Every field, in the order of the block.
    pub entries: Vec<Entry>,
    /// Life left in percent, where the block gives a value that can be one.
    pub life_left_percent: Option<f64>,
    /// Blocks that went bad since the factory.
    pub grown_bad_blocks: Option<u64>,
    /// Spare blocks left.
    pub spare_blocks: Option<u64>,
    /// Erases of all erase blocks together, of the user's area where areas are counted apart.
    pub total_erases: Option<u64>,
    /// Mean erases of an erase block.
    pub mean_erases: Option<f64>,
    /// Bytes the host has written.
    pub host_bytes: Option<u64>,
    /// Bytes written to the flash.
    pub flash_bytes: Option<u64>,
    /// What is implausible, each with its reason: the values concerned are not used.
    pub doubts: Vec<String>,
}

/// Why a block tells nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Too short or too long.
    #[error("health block: expected {BLOCK} bytes, found {0}")]
    Length(usize),
    /// Every byte alike.
    #[error("health block: every byte is {0:02x}: the card does not support this command, though it answered")]
    Alike(u8),
    /// The card returned its own data.
    #[error("health block: this is the beginning of a disk (a boot record), not a health block: the card ignored the argument")]
    BootRecord,
    /// No layout has this signature.
    #[error("health block: begins with {0:02x} {1:02x}, which is the signature of no known layout")]
    Unknown(u8, u8),
    /// The right place, but numbers that cannot be.
    #[error("health block: read as {layout}, {why}: not a block of this layout")]
    Implausible {
        /// The layout tried.
        layout: &'static str,
        /// What cannot be.
        why: String,
    },
    /// Two readings that agree in nothing.
    #[error("health block: two readings disagree in {0}, which cannot change: the card returns something else")]
    Changing(String),
}

impl HealthBlock {
    /// The value of a field.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.entries.iter().find(|e| e.key == key).map(|e| &e.value)
    }

    /// The value of a field that is a number.
    pub fn number(&self, key: &str) -> Option<u64> {
        match self.get(key) {
            Some(Value::Number(n)) => Some(*n),
            _ => None,
        }
    }
}

/// Decodes a block whose layout its signature names.
///
/// Blocks without a signature (Phison's) are tried where no signature fits; they must pass every test of plausibility.
///
/// # Errors
/// The reason why this is no health block, or none that can be read.
pub fn decode(block: &[u8]) -> Result<HealthBlock, Refused> {
    sane(block)?;
    let by_signature = layouts::ALL.iter().find(|l| l.signatures.iter().any(|s| block.starts_with(s)));
    match by_signature {
        Some(layout) => decode_as(block, layout),
        None => decode_as(block, &layouts::PHISON).map_err(|_| Refused::Unknown(block[0], block[1])),
    }
}

/// Decodes the answer to `query`: a signature decides first, since cards of one maker answer in the layouts of several.
///
/// # Errors
/// As for [`decode`]; a block without a signature is accepted only where the query asks for such a layout.
pub fn decode_answer(block: &[u8], query: &Query) -> Result<HealthBlock, Refused> {
    sane(block)?;
    match layouts::ALL.iter().find(|l| l.signatures.iter().any(|s| block.starts_with(s))) {
        Some(layout) => decode_as(block, layout),
        None if query.layout.signatures.is_empty() => decode_as(block, query.layout),
        None => Err(Refused::Unknown(block[0], block[1])),
    }
}

/// Holds two readings of one card against each other: what a card cannot change must be alike, what it counts must not fall.
///
/// # Errors
/// [`Refused::Changing`] with the field.
pub fn agree(before: &HealthBlock, after: &HealthBlock) -> Result<(), Refused> {
    let changing = |what: &str| Err(Refused::Changing(what.to_string()));
    if before.layout != after.layout {
        return changing("the layout");
    }
    for old in &before.entries {
        let Some(new) = after.get(&old.key) else { return changing(&old.title) };
        let Some(field) = layouts::field(&before.layout, &old.key) else { continue };
        let fell = matches!((&old.value, new), (Value::Number(a), Value::Number(b)) if b < a);
        if (field.constant && old.value != *new) || (field.counter && fell) {
            return changing(&old.title);
        }
    }
    Ok(())
}

/// Refuses what no card's health block is, whatever its layout.
fn sane(block: &[u8]) -> Result<(), Refused> {
    if block.len() != BLOCK {
        return Err(Refused::Length(block.len()));
    }
    if block.iter().all(|&b| b == block[0]) {
        return Err(Refused::Alike(block[0]));
    }
    // A boot record ends with 55 aa and begins with a jump or with code that sets up the stack.
    if block[510..] == [0x55, 0xaa] {
        return Err(Refused::BootRecord);
    }
    Ok(())
}

/// Decodes a block in a given layout.
fn decode_as(block: &[u8], layout: &'static Layout) -> Result<HealthBlock, Refused> {
    let entries: Vec<Entry> = layout
        .fields
        .iter()
        .map(|f| Entry { key: f.key.to_string(), title: f.title.to_string(), value: read(block, f.at, f.form), uncertain: f.uncertain })
        .collect();
    let mut out = HealthBlock {
        layout: layout.name.to_string(),
        entries,
        life_left_percent: None,
        grown_bad_blocks: None,
        spare_blocks: None,
        total_erases: None,
        mean_erases: None,
        host_bytes: None,
        flash_bytes: None,
        doubts: vec![],
    };
    (layout.check)(block, &out).map_err(|why| Refused::Implausible { layout: layout.name, why })?;
    (layout.summary)(&mut out);
    if let Some(life) = out.life_left_percent
        && !(0.0..=100.0).contains(&life)
    {
        out.life_left_percent = None;
        out.doubts.push(format!("the life field says {life:.2} %: above 100 % it cannot be life left, so it is not shown as such"));
    }
    Ok(out)
}

/// A field's value.
fn read(block: &[u8], at: usize, form: Form) -> Value {
    let be = |at: usize, n: usize| block[at..at + n].iter().fold(0u64, |v, &b| v << 8 | u64::from(b));
    let le = |at: usize, n: usize| block[at..at + n].iter().rev().fold(0u64, |v, &b| v << 8 | u64::from(b));
    match form {
        Form::Be(n) => Value::Number(be(at, n)),
        Form::Le(n) => Value::Number(le(at, n)),
        Form::Halves(high) => Value::Number(be(high, 2) << 16 | be(at, 2)),
        Form::Sum(n) => Value::Number(block[at..at + n].iter().map(|&b| u64::from(b)).sum()),
        Form::Hex(n) => Value::Text(hex(&block[at..at + n])),
        Form::Text(n) => Value::Text(text(&block[at..at + n])),
        Form::Coded(codes) => {
            let code = block[at];
            codes.iter().find(|(c, _)| *c == code).map_or(Value::Text(format!("code {code:#04x}")), |(_, meaning)| match meaning.parse() {
                Ok(n) => Value::Number(n),
                Err(_) => Value::Text((*meaning).to_string()),
            })
        }
    }
}

/// Printable characters up to the first NUL, without the padding.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    bytes[..end].iter().map(|&b| if (0x20..0x7f).contains(&b) { b as char } else { '?' }).collect::<String>().trim().to_string()
}

#[cfg(test)]
#[path = "health_tests.rs"]
mod health_tests;
