//! Does an interval of 95 % hold the true value in 95 of 100 cards? Random cards are probed, and the cost of closing an AU is held against
//! their models: too few that hold it are as wrong as too many, and the misses must lie on both sides.
//!
//! NANDSCOPE_CARDS sets the number of cards that have an interval (default 16), NANDSCOPE_SHOW prints the misses.

#[path = "common/skip.rs"]
mod skip;

use nandscope::device::{Device, SimDevice};
use nandscope::experiment;
use nandscope::finding::Quantity;
use nandscope::probe::{Plan, probe};
use nandscope::units::Nanos;
use nandscope_sim::{Model, random};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Where the true cost lies.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Side {
    Within,
    Below,
    Above,
}

/// Where the truth lies against the interval a probe gives, if it gives one.
fn side(model: &Model, seed: u64) -> Option<(Side, String)> {
    let truth = model.truth().close_cost_ns? as f64 / 1e6;
    let mut device = SimDevice::new(model, seed).with_stamps();
    let experiments = ["read-boundary", "write-unit", "open-au-linear"].map(|n| experiment::by_name(n).unwrap()).to_vec();
    let (region, stop) = (0..device.geometry().size, AtomicBool::new(false));
    let plan = Plan { experiments, region, time: Nanos::from_secs_f64(1800.0), writes: 8 << 30, seed, stop: &stop };
    let (_, findings) = probe(&mut device, &plan, &mut |_| {});
    let f = findings.get(Quantity::CloseCostMs)?;
    let [lo, hi] = f.interval?;
    let side = if truth < lo {
        Side::Below
    } else if truth > hi {
        Side::Above
    } else {
        Side::Within
    };
    Some((side, format!("card {seed}: {truth} against {lo} to {hi}, {:.2}: {:?}", f.confidence, f.evidence)))
}

#[test]
fn an_interval_of_95_percent_holds_the_truth_in_95_of_100_cards() {
    let cards: usize = std::env::var("NANDSCOPE_CARDS").ok().map_or(16, |n| n.parse().expect("NANDSCOPE_CARDS is a number"));
    let (next, have) = (AtomicU64::new(1), AtomicUsize::new(0));
    let work = || {
        let mut out = vec![];
        while have.load(Ordering::Relaxed) < cards {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if let Some(seen) = side(&random::card(seed), seed) {
                have.fetch_add(1, Ordering::Relaxed);
                out.push(seen);
            }
        }
        out
    };
    let seen: Vec<(Side, String)> = std::thread::scope(|s| {
        let threads: Vec<_> = (0..std::thread::available_parallelism().map_or(2, |n| n.get())).map(|_| s.spawn(work)).collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    let n = seen.len() as f64;
    let of = |side: Side| seen.iter().filter(|s| s.0 == side).count();
    let (within, below, above) = (of(Side::Within), of(Side::Below), of(Side::Above));
    println!("{within} of {n} hold the truth, {below} lie above it, {above} below it");
    let missed: Vec<&str> = seen.iter().filter(|s| s.0 != Side::Within).map(|s| &s.1[..]).collect();
    if std::env::var_os("NANDSCOPE_SHOW").is_some() {
        println!("{}", missed.join("\n"));
    }
    // Of n cards, 95 % within three standard deviations of chance; of many, 93 to 97 %.
    let slack = 3.0 * (n * 0.95 * 0.05).sqrt();
    let slack = if n >= 200.0 { 0.02 * n } else { slack };
    assert!((within as f64 - 0.95 * n).abs() <= slack, "{within} of {n} hold the truth\n{}", missed.join("\n"));
    // A bias would put all misses on one side.
    assert!(below.max(above) as f64 <= 0.025 * n + 3.0 * (n * 0.025).sqrt(), "{below} above the truth, {above} below it");
}
