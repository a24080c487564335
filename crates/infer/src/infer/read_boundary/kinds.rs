//! Pages of several bits a cell are read in as many times: a lower page of a TLC chip in 50 us, the upper one of the same cells in 90 (data
//! sheets). Which kind a page is of follows from its number, and rows of other multiples meet other kinds.

use super::*;

/// Sizes of what has one kind: a page, or those that are programmed together.
const RUNS: [u64; 7] = [4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, 128 * KIB, 256 * KIB];

/// By how many microseconds reads that cross nothing differ by the kind of page they fall into, with two kinds or three; 0 where they are
/// alike. `block`: the length of the reads, in bytes.
pub(super) fn differ(run: &Run, block: u64) -> f64 {
    // Of a page that is at hand the later reads of a trial say nothing.
    let only_first = keeps_last(run, block);
    let told = |t: &[&Sample]| if only_first && !apart(t) { 1 } else { t.len() };
    let rows = run.cells.iter().filter(|c| matches!(kind(c), Kind::Row | Kind::Fine));
    let plain: Vec<&Sample> = rows
        .flat_map(|c| run.trials(c.id))
        .flat_map(|t| {
            let n = told(&t);
            t.into_iter().take(n)
        })
        .filter(|s| s.len == block && (s.role == PRE || s.role == POST))
        .collect();
    let times: Vec<f64> = plain.iter().map(|s| s.took.micros()).collect();
    if times.len() < 100 {
        return 0.0;
    }
    let of = |size: u64, kinds: u64| -> f64 {
        let mut by_kind: Vec<Vec<f64>> = vec![vec![]; kinds as usize];
        plain.iter().zip(&times).for_each(|(s, t)| by_kind[(s.at / size % kinds) as usize].push(*t));
        let each: Vec<Estimate> = by_kind.iter().map(|t| location(t)).collect();
        let (low, high) = each
            .iter()
            .fold((&each[0], &each[0]), |(l, h), e| (if e.value < l.value { e } else { l }, if e.value > h.value { e } else { h }));
        let by = high.value - low.value;
        if each.iter().all(|e| e.n >= 20) && by > CLEAR * low.error.hypot(high.error) { by } else { 0.0 }
    };
    RUNS.iter().flat_map(|&size| [2, 3].map(|kinds| of(size, kinds))).fold(0.0, f64::max)
}
