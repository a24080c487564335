//! Does a card keep what its class promises? The SD Association's procedures as far as a host can run them, each condition said; and
//! whether a card is enough for a purpose, with the buffer that it needs.

pub mod conditions;
pub mod judge;
pub mod measure;
pub mod measured;
pub mod record;
mod task;

use serde::Serialize;

/// Of the JSON that a rating writes.
pub const SCHEMA: &str = "nandscope-rate/1";

/// How a condition of a procedure stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Met,
    NotMet,
    NotKnowable,
}

impl State {
    /// For people.
    pub fn word(self) -> &'static str {
        match self {
            State::Met => "met",
            State::NotMet => "not met",
            State::NotKnowable => "not knowable",
        }
    }
}

/// One condition of the procedures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Condition {
    /// What the specification asks for.
    pub what: String,
    pub state: State,
    /// What was done, or why it is not known.
    pub because: String,
    /// Names of the classes that ask for it.
    pub of: Vec<String>,
}

/// The answer for one class or purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Passes,
    Fails,
    NotDecided,
}

impl Verdict {
    /// For people.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Passes => "passes",
            Verdict::Fails => "FAILS",
            Verdict::NotDecided => "not decided",
        }
    }
}

/// A measured value against one limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// What is limited.
    pub what: &'static str,
    /// Bytes a second, requests a second, or ms.
    pub unit: &'static str,
    /// The limit.
    pub asks: f64,
    /// The value must lie below it.
    pub at_most: bool,
    /// None where it was not measured.
    pub measured: Option<f64>,
    /// Bounds at 95 %.
    pub interval: Option<[f64; 2]>,
    /// How far the value is on the good side, as a share of the limit; negative on the other.
    pub margin: Option<f64>,
    pub verdict: Verdict,
    /// Why it is not decided, or what decided it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// One class with all its limits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rating {
    pub class: String,
    pub verdict: Verdict,
    pub because: String,
    pub limits: Vec<Limit>,
}
