//! Pages of several bits a cell, which are programmed and read at different speeds, on block-mapped cards of the second family.

use super::{bench_card, finding, json, probe};

const HALF: f64 = 0.5;

#[test]
fn pages_of_several_speeds_are_not_taken_for_units_of_two_or_three() {
    let mut told = [0, 0];
    for seed in 701..=716 {
        let (speeds, page) = (2 + seed % 2, 4096 << (seed % 3));
        let set = format!("speeds={speeds} page={page} unit={page} erase_block=4194304 offset=0 fat=0 buffer_ms=0 read_ahead=0 host=quiet");
        let target = format!("exec:{} block {seed} {set}", bench_card().display());
        let report = json(&probe(&target, &["--time", "10m"]));
        for (n, quantity) in ["write_unit", "access_unit"].into_iter().enumerate() {
            let f = finding(&report, quantity);
            if f["confidence"].as_f64().is_some_and(|c| c >= HALF) {
                assert_eq!(f["value"], page, "seed {seed}, {speeds} speeds, {quantity}: {:#}", report["findings"]);
                told[n] += 1;
            }
        }
    }
    assert!(told[0] >= 5 && told[1] >= 10, "{told:?} of 16 each");
}

/// A reader hears of what is done at the next microframe, and begins there: what costs less shows in reads that begin anywhere between two.
#[test]
fn pages_show_behind_a_reader_that_answers_at_frames() {
    let mut told = 0;
    for seed in 801..=812 {
        let page = 8192 << (seed % 2);
        let set = format!("speeds=1 page={page} unit={page} erase_block=4194304 offset=0 fat=0 buffer_ms=0 read_ahead=0 host=frames");
        let target = format!("exec:{} block {seed} {set}", bench_card().display());
        let report = json(&probe(&target, &["--time", "10m"]));
        let f = finding(&report, "access_unit");
        if f["confidence"].as_f64().is_some_and(|c| c >= HALF) {
            assert_eq!(f["value"], page, "seed {seed}: {:#}", report["findings"]);
            told += 1;
        }
    }
    assert!(told >= 6, "{told} of 12");
}
