//! What a card went through before a measurement: never written flash reads and writes differently (F10).

use serde::{Deserialize, Serialize};
use std::fmt;

/// State of the flash in the region, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CardState {
    /// Never written: a simulated card whose model says so, or one the user says is new.
    Fresh,
    /// Discarded as a whole just before.
    Erased,
    /// Written as a whole just before; a simulated card whose model says nothing else.
    Filled,
    /// Long in use, as the user says.
    Aged,
    /// Nobody said.
    #[default]
    Unknown,
}

impl fmt::Display for CardState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            CardState::Fresh => "fresh",
            CardState::Erased => "erased",
            CardState::Filled => "filled",
            CardState::Aged => "aged",
            CardState::Unknown => "unknown",
        })
    }
}

impl std::str::FromStr for CardState {
    type Err = String;

    fn from_str(s: &str) -> Result<CardState, String> {
        let all = [CardState::Fresh, CardState::Erased, CardState::Filled, CardState::Aged, CardState::Unknown];
        all.into_iter()
            .find(|c| c.to_string() == s)
            .ok_or_else(|| format!("'{s}' is no state; there are fresh, erased, filled, aged, unknown"))
    }
}
