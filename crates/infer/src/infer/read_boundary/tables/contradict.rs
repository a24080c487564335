//! Runs that cannot be of one card: each shows an erase block, and they are of different sizes. Which rows a run has does not matter:
//! pooled with others of the same rows it would be half of a median, beside longer runs it would be left out.

use super::groups::{alone, only_threes};
use super::{LARGEST, judge};
use crate::finding::{Finding, Quantity};
use crate::samples::import::KEPT_APART;
use crate::samples::import::{AlignTest, Tables};
use crate::units::Bytes;

/// Score from which on the answer of one run rules out another (as for files).
const SURE: f64 = 0.8;
/// Few rows show any size.
const LEAST_ROWS: usize = 10;
/// Nobody pastes more runs of one card.
const MOST_RUNS: usize = 32;

/// What the first two such runs say.
pub(super) fn found(tables: &Tables) -> Option<String> {
    // Rows of 3 * 2^n alone do not show a third of a step.
    let alone_shows = |t: &AlignTest| !only_threes(t.rows.iter().map(|r| &r.align));
    let whole = |t: &&AlignTest| !t.write && t.rows.len() >= LEAST_ROWS && t.rows.iter().any(|r| r.align < LARGEST) && alone_shows(t);
    let runs: Vec<&AlignTest> = tables.align.iter().filter(whole).take(MOST_RUNS).collect();
    if runs.len() < 2 {
        return None;
    }
    let said = |t: &&AlignTest| -> Option<(String, f64)> {
        let block: Finding = judge(&alone(tables, t)).into_iter().find(|f| f.quantity == Quantity::EraseBlock)?;
        Some((tables.at(t.place), block.number().filter(|_| block.confidence >= SURE)?))
    };
    let said: Vec<(String, f64)> = runs.iter().filter_map(said).collect();
    // One odd run among several of one card is noise.
    let alike = |size: f64| said.iter().filter(|s| s.1 == size).count();
    if said.len() >= 4 && said.iter().any(|s| 4 * alike(s.1) >= 3 * said.len()) {
        return None;
    }
    let (first, size) = said.first()?;
    let (second, other) = said.iter().find(|s| s.1 != *size)?;
    Some(format!(
        "the tables contradict each other: {first} shows steps of {}, {second} steps of {}; two cards? {KEPT_APART}",
        Bytes(*size as u64),
        Bytes(*other as u64)
    ))
}
