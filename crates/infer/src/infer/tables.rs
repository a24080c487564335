//! From tables that other programs printed to findings: the same quantities, with the same honesty, as from live samples.
//!
//! A printed table holds means without their scatter, and one row of a table repeats in every run what is peculiar to
//! its place on the card. So noise is judged from rows that must be alike, never from repeats alone.

pub mod apart;
pub mod bench;
pub mod sides;

use super::combine::combine;
use super::confidence::{Maps, Source};
use super::{access_kinds, fat_zone, interval, open_au, read_boundary, scatter, write_unit};
use crate::finding::{Finding, Findings, Quantity};
use crate::samples::import::Tables;

/// Findings from the tables of one card, runs and files pooled, with what their scores come to.
pub fn infer(tables: &Tables) -> Findings {
    Maps::shipped().told(Source::Table, combine(&apart(tables)))
}

/// What each kind of table says, by itself.
pub fn apart(tables: &Tables) -> Vec<Finding> {
    let mut all = vec![];
    all.extend(read_boundary::tables::infer(tables));
    all.extend(open_au::tables::infer(&with_programs(tables, true)));
    all.extend(write_unit::tables::infer(&with_programs(tables, false)));
    all.extend(fat_zone::tables::infer(tables));
    all.extend(interval::tables::infer(tables));
    all.extend(scatter::tables::infer(tables));
    all.extend(access_kinds::tables::infer(tables));
    all.extend(bench::infer(tables));
    let mut sizes: Vec<u64> = tables.device_sizes.iter().map(|s| s.1).collect();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() > 1 {
        let note = format!("the logs name devices of different size ({} and {} bytes): two cards?", sizes[0], sizes[1]);
        all.iter_mut().for_each(|f| f.caveats.push(note.clone()));
    }
    if all.is_empty() {
        let why = "the log holds no table that could decide";
        all.extend([Quantity::EraseBlock, Quantity::OpenAusLinear].map(|q| Finding::undecided(q, why)));
    }
    all
}

/// Access-kind tables hold writes of one AU in both orders; they count where no open-AU table of that order does.
fn with_programs(tables: &Tables, random: bool) -> Tables {
    let mut out = tables.clone();
    if !tables.open.iter().any(|t| t.random == Some(random)) {
        out.open.extend(access_kinds::tables::one_au(tables).into_iter().filter(|t| t.random == Some(random)));
    }
    out
}

/// Smallest and largest as text: "294 to 324".
pub(super) fn span(x: impl IntoIterator<Item = f64>) -> String {
    let (lo, hi) = x.into_iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
    let show = |v: f64| crate::units::three(v).replace('-', "\u{2212}");
    if lo.is_finite() { crate::units::between(&show(lo), &show(hi)) } else { show(lo) }
}
