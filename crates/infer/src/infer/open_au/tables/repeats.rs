//! Two tables of one number of AUs that cannot be of one card in one state: a median of them would stand for neither.

use std::f64::consts::LN_2;

use super::limit::in_order;
use crate::infer::stats::median;
use crate::samples::import::KEPT_APART;
use crate::samples::import::{OpenTest, Rate, Tables};
use crate::units::three;

/// Nobody repeats a table more often.
const MOST: usize = 32;

/// What the first number says whose tables have no majority within a factor of two of one another.
pub(super) fn differ(tables: &Tables, random: bool) -> Option<String> {
    let all: Vec<&OpenTest> = in_order(tables, random).collect();
    all.iter().enumerate().find_map(|(i, first)| {
        let like =
            |t: &&&OpenTest| (t.n, t.place.file, t.erase_size, &t.setting) == (first.n, first.place.file, first.erase_size, &first.setting);
        if all[..i].iter().any(|t| like(&t)) {
            return None;
        }
        let runs: Vec<&OpenTest> = all[i..].iter().filter(like).take(MOST).copied().collect();
        let alike = |t: &OpenTest| runs.iter().filter(|o| apart(t, o) <= LN_2).count();
        if runs.len() < 2 || runs.iter().any(|t| 2 * alike(t) > runs.len()) {
            return None;
        }
        let other = runs.iter().max_by(|a, b| apart(first, a).total_cmp(&apart(first, b)))?;
        Some(format!(
            "the tables contradict each other: those of {} at {} and line {} differ {} times; two cards, or a card that was busy. {KEPT_APART}",
            super::aus(first.n?),
            tables.at(first.place),
            other.place.line,
            three(apart(first, other).exp())
        ))
    })
}

/// ln of how many times the rows of two tables differ, at most sizes; 0 without sizes in common.
fn apart(a: &OpenTest, b: &OpenTest) -> f64 {
    let of = |r: &Rate| b.rows.iter().find(|o| o.size == r.size).map(|o| (o.rate / r.rate).ln().abs()).filter(|x| x.is_finite());
    let all: Vec<f64> = a.rows.iter().filter_map(of).collect();
    if all.is_empty() { 0.0 } else { median(&all) }
}
