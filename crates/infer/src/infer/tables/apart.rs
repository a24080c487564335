//! Files that name no card and contradict each other: each is judged alone, and nothing is made up of both.

use crate::finding::{Findings, Quantity};
use crate::infer::combine::combine;
use crate::samples::import::{Place, Tables};

/// Score from which on a file's answer rules out another.
const SURE: f64 = 0.8;

/// Quantities that a card has once.
const ONCE: [Quantity; 4] = [Quantity::EraseBlock, Quantity::Page, Quantity::OpenAusLinear, Quantity::OpenAusRandom];

/// The tables of each file by themselves, where together they cannot be of one card: one file decides a value that another rules out.
/// `None` where they agree, or where there is one file only.
pub fn apart(tables: &Tables) -> Option<Vec<Tables>> {
    let parts: Vec<Tables> = (0..tables.files.len()).map(|f| of_file(tables, f)).filter(|t| !t.is_empty()).collect();
    if parts.len() < 2 {
        return None;
    }
    let said: Vec<Findings> = parts.iter().map(|p| combine(&super::apart(p))).collect();
    let differ = said.iter().enumerate().any(|(i, a)| said[i + 1..].iter().any(|b| ONCE.into_iter().any(|q| contradict(a, b, q))));
    differ.then_some(parts)
}

fn contradict(a: &Findings, b: &Findings, q: Quantity) -> bool {
    let sure = |f: &Findings| f.get(q).filter(|f| f.confidence >= SURE).cloned();
    let (Some(a), Some(b)) = (sure(a), sure(b)) else { return false };
    match (a.number(), b.number()) {
        (Some(x), Some(y)) => x != y,
        (Some(x), None) => b.at_least.is_some_and(|l| l.0 > x),
        (None, Some(y)) => a.at_least.is_some_and(|l| l.0 > y),
        _ => false,
    }
}

fn of_file(tables: &Tables, file: usize) -> Tables {
    let mut t = tables.clone();
    let here = |p: &Place| p.file == file;
    t.align.retain(|x| here(&x.place));
    t.open.retain(|x| here(&x.place));
    t.fat.retain(|x| here(&x.place));
    t.program.retain(|x| here(&x.place));
    t.interval.retain(|x| here(&x.place));
    t.scatter.retain(|x| here(&x.place));
    t.bench.retain(|x| here(&x.place));
    t.declared.retain(|x| here(&x.place));
    t.device_sizes.retain(|x| here(&x.0));
    t
}
