//! Does an interval of 95 % hold the true value in 95 of 100 cards? Random cards are measured: the cost of a merge is held against their
//! models, times and ratios of rates against what many repetitions of the same experiment on the same card come to. Too few that hold it are as
//! wrong as too many, and the misses must lie on both sides.
//!
//! NANDSCOPE_CARDS sets the number of cards (default 16 that have an interval of the merge cost; 24 of reads, 16 of writes), NANDSCOPE_SEED the
//! first of them, NANDSCOPE_SHOW prints the misses.

mod common;
#[path = "common/skip.rs"]
mod skip;

use nandscope::device::{Device, SimDevice};
use nandscope::experiment;
use nandscope::finding::{Finding, Quantity};
use nandscope::infer::pipeline;
use nandscope::probe::{Plan, probe};
use nandscope::samples::Run;
use nandscope::units::Nanos;
use nandscope_sim::{Model, random};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

fn number<T: std::str::FromStr>(key: &str, or: T) -> T {
    std::env::var(key).ok().map_or(or, |n| n.parse().unwrap_or_else(|_| panic!("{key} is a number")))
}

/// Where the true value lies.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Side {
    Within,
    Below,
    Above,
}

fn side(truth: f64, [lo, hi]: [f64; 2]) -> Side {
    match () {
        () if truth < lo => Side::Below,
        () if truth > hi => Side::Above,
        () => Side::Within,
    }
}

/// One interval: of what, where the truth lies, and a line for people.
type Seen = (Quantity, Side, String);

/// Runs `work` on as many threads as there are processors.
fn together(work: impl Fn() -> Vec<Seen> + Sync) -> Vec<Seen> {
    std::thread::scope(|s| {
        let threads: Vec<_> = (0..std::thread::available_parallelism().map_or(2, |n| n.get())).map(|_| s.spawn(&work)).collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    })
}

/// Of many cards 93 to 97 %, of few as many as chance leaves of 95 % (2.33 standard deviations: one in fifty falls out); and a bias would put all
/// misses on one side.
fn judged(quantity: Quantity, seen: &[Seen], fewest: usize) {
    let of = |side: Side| seen.iter().filter(|s| s.0 == quantity && s.1 == side).count();
    let (within, below, above) = (of(Side::Within), of(Side::Below), of(Side::Above));
    let n = (within + below + above) as f64;
    println!("{quantity}: {within} of {n} hold the truth, {below} lie above it, {above} below it");
    let missed: Vec<&str> = seen.iter().filter(|s| s.0 == quantity && s.1 != Side::Within).map(|s| &s.2[..]).collect();
    if std::env::var_os("NANDSCOPE_SHOW").is_some() {
        println!("{}", missed.join("\n"));
    }
    assert!(n as usize >= fewest, "{quantity}: only {n} intervals");
    let slack = (2.33 * (n * 0.95 * 0.05).sqrt()).max(0.02 * n);
    assert!((within as f64 - 0.95 * n).abs() <= slack.max(1.0), "{quantity}: {within} of {n} hold the truth\n{}", missed.join("\n"));
    assert!(below.max(above) as f64 <= 0.025 * n + 3.0 * (n * 0.025).sqrt(), "{quantity}: {below} above the truth, {above} below it");
}

/// Where the truth lies against the interval of a merge's cost that a probe gives, if it gives one.
fn merge_cost(model: &Model, seed: u64) -> Option<Seen> {
    let truth = model.truth().close_cost_ns? as f64 / 1e6;
    let mut device = SimDevice::new(model, seed).with_stamps();
    let experiments = ["read-boundary", "write-unit", "open-au-linear"].map(|n| experiment::by_name(n).unwrap()).to_vec();
    let (region, stop) = (0..device.geometry().size, AtomicBool::new(false));
    let plan = Plan { experiments, region, time: Nanos::from_secs_f64(1800.0), writes: 8 << 30, seed, stop: &stop };
    let (_, findings) = probe(&mut device, &plan, &mut |_| {});
    let f = findings.get(Quantity::CloseCostMs)?;
    let [lo, hi] = f.interval?;
    let text = format!("card {seed}: {truth} against {lo} to {hi}, {:.2}: {:?}", f.confidence, f.evidence);
    Some((f.quantity, side(truth, [lo, hi]), text))
}

#[test]
fn an_interval_of_95_percent_holds_the_truth_in_95_of_100_cards() {
    let cards: usize = number("NANDSCOPE_CARDS", 16);
    let (next, have) = (AtomicU64::new(number("NANDSCOPE_SEED", 1)), AtomicUsize::new(0));
    let seen = together(|| {
        let mut out = vec![];
        while have.load(Ordering::Relaxed) < cards {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if let Some(seen) = merge_cost(&random::card(seed), seed) {
                have.fetch_add(1, Ordering::Relaxed);
                out.push(seen);
            }
        }
        out
    });
    judged(Quantity::CloseCostMs, &seen, cards);
}

/// Many runs of one experiment as one.
fn pooled(name: &str, model: &Model, seeds: impl Iterator<Item = u64>) -> Run {
    let runs = seeds.enumerate().map(|(k, seed)| {
        let mut run = common::run_alone(name, model, seed, 1800);
        run.samples.iter_mut().for_each(|s| s.trial += 1000 * k as u32);
        run
    });
    let add = |mut all: Run, run: Run| {
        all.extend(run.samples);
        all
    };
    runs.reduce(add).unwrap()
}

/// The intervals that one run gives, against the values of so many others taken together.
fn against_many(name: &str, quantities: &[Quantity], cards: u64, many: u64) -> Vec<Seen> {
    let first: u64 = number("NANDSCOPE_SEED", 1);
    let end = first + number("NANDSCOPE_CARDS", cards);
    let next = AtomicU64::new(first);
    together(|| {
        let mut out = vec![];
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                return out;
            }
            let model = random::card(seed);
            let one = pipeline::of_run(&common::run_alone(name, &model, seed, 1800));
            let given = |q: &Quantity| one.iter().find(|f| f.quantity == *q).and_then(|f| Some((*q, f.number()?, f.interval?)));
            let given: Vec<_> = quantities.iter().filter_map(given).collect();
            if given.is_empty() {
                continue;
            }
            let all = pipeline::of_run(&pooled(name, &model, (1..=many).map(|k| seed + k * 1_000_003)));
            let truth = |q: Quantity| all.iter().find(|f| f.quantity == q).and_then(Finding::number);
            for (q, value, interval) in given {
                let Some(truth) = truth(q) else { continue };
                out.push((q, side(truth, interval), format!("card {seed}, {q}: {truth} against {value}, {interval:?}")));
            }
        }
    })
}

#[test]
fn intervals_of_reads_hold_what_many_reads_come_to() {
    let quantities = [Quantity::AccessTimeUs, Quantity::ReadRate];
    let seen = against_many("interval", &quantities, 24, 30);
    quantities.iter().for_each(|q| judged(*q, &seen, 20));
}

#[test]
fn intervals_of_gains_hold_what_many_writes_come_to() {
    let quantities = [Quantity::MultiBlockGain, Quantity::PreDefinedGain];
    let seen = against_many("multi-block", &quantities, 16, 24);
    quantities.iter().for_each(|q| judged(*q, &seen, 8));
}
