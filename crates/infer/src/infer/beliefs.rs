//! What is believed of a card when a run is judged, and the numbers of earlier runs that go into it.

use crate::samples::Run;
use std::collections::BTreeMap;

/// Confidence at which an erase block is taken for known.
pub const SURE: f64 = 0.7;

/// What a longer write adds, in ns a KiB, through this host: from the fastest writes of the smallest and the largest size of which
/// there are four and more.
pub fn write_ns_per_kib(runs: &[Run]) -> Option<u64> {
    let mut fastest: BTreeMap<u64, (u32, u64)> = BTreeMap::new();
    for s in runs.iter().flat_map(|r| &r.samples).filter(|s| s.is_write()) {
        let f = fastest.entry(s.len).or_insert((0, u64::MAX));
        *f = (f.0 + 1, f.1.min(s.took.0));
    }
    let mut known = fastest.into_iter().filter(|f| f.1.0 >= 4);
    let (small, large) = (known.next()?, known.next_back()?);
    Some(large.1.1.saturating_sub(small.1.1) * 1024 / (large.0 - small.0))
}

/// Why boundaries between AUs cannot be seen in the times of writes.
pub(super) fn unmerged(run: &Run) -> &'static str {
    let limit = ["open_aus_linear", "open_aus_random", LINEAR_LEAST].iter().any(|k| run.setting(k).is_some());
    match limit {
        true => "writes to many erase blocks showed no merge cost, so boundaries between those cannot be seen",
        false => "the merge cost is not known, and without it boundaries between erase blocks cannot be seen",
    }
}

/// The setting of AUs in linear order that stayed open, where more may.
pub const LINEAR_LEAST: &str = "open_aus_linear_least";

/// The setting of AUs in linear order whose rounds came to rest in an earlier run, whatever it said in the end.
pub const LINEAR_RESTED: &str = "open_aus_linear_rested";
