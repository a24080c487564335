//! What is slow without being a merge for want of a place, on cards of the second family: a change of AU, and a small AU whose log is full.

use super::{bench_card, finding, json, probe};
use serde_json::Value;

fn told(kind: &str, seed: u64, set: &str) -> Value {
    json(&probe(&format!("exec:{} {kind} {seed} {set} offset=0 fat=0 buffer_ms=0 host=quiet", bench_card().display()), &["--time", "10m"]))
}

/// The value, or null; both orders must be right where they are told.
fn counts(report: &Value) -> [Option<f64>; 2] {
    ["open_aus_linear", "open_aus_random"].map(|q| finding(report, q)["value"].as_f64())
}

#[test]
fn what_a_change_of_au_costs_is_no_merge() {
    let mut decided = 0;
    for (seed, ms, open) in [(601, 4, 2), (602, 6, 5), (603, 8, 9), (604, 9, 3), (605, 12, 13), (606, 3, 7), (607, 12, 1), (608, 5, 16)] {
        let report = told("switch", seed, &format!("switch_ms={ms} open={open} random={open} erase_block=4194304"));
        for n in counts(&report).into_iter().flatten() {
            assert_eq!(n, f64::from(open), "seed {seed}, {ms} ms: {:#}", report["findings"]);
            decided += 1;
        }
    }
    assert!(decided >= 14, "{decided} of 16");
}

#[test]
fn a_full_log_of_a_small_au_is_no_limit() {
    let mut decided = [0, 0];
    for (seed, kib, open) in [(611, 512, 6), (612, 512, 15), (613, 768, 4), (614, 1024, 8), (615, 512, 2)] {
        let set = format!("page=4096 unit=4096 erase_block={} open={open} random={open}", kib << 10);
        let report = told("block", seed, &set);
        for n in counts(&report).into_iter().flatten() {
            assert_eq!(n, f64::from(open), "seed {seed}, {kib} KiB: {:#}", report["findings"]);
            decided[0] += 1;
        }
        if let Some(size) = finding(&report, "erase_block")["value"].as_f64() {
            assert_eq!(size, f64::from(kib << 10), "seed {seed}: {:#}", report["findings"]);
            decided[1] += 1;
        }
    }
    assert!(decided[0] >= 8 && decided[1] >= 4, "{decided:?} of 10 and 5");
}
