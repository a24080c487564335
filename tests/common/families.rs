//! The families of simulated cards that confidence is fitted to and judged on, probed and held against their truth.
#![allow(dead_code)]

use crate::bench_card::{on_bench, told};
use crate::common::{self, probe_within};
use crate::in_turn;
use nandscope::device::Device;
use nandscope::experiment;
use nandscope::finding::{Finding, Findings, Quantity};
use nandscope::probe::{Plan, probe};
use nandscope::report::Cost;
use nandscope::samples::Run;
use nandscope::units::Nanos;
use nandscope_sim::{Mapping, random, unusual};
use serde_json::Value;
use std::sync::atomic::AtomicBool;

/// Seeds from here on are kept for judging: nothing is fitted to them, and what a card of them says is never printed.
pub const RESERVED: u64 = 1_000_000;
/// Where the seeds begin that maps are fitted to. Those below were used in development.
pub const FITTING: u64 = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// `sim::random`.
    Random,
    /// `sim::unusual`.
    Unusual,
    /// `crates/bench-card`, behind a program.
    Bench,
}

impl Family {
    pub const ALL: [Family; 3] = [Family::Random, Family::Unusual, Family::Bench];

    pub fn name(self) -> &'static str {
        match self {
            Family::Random => "random",
            Family::Unusual => "unusual",
            Family::Bench => "bench-card",
        }
    }

    pub fn by_name(name: &str) -> Option<Family> {
        Family::ALL.into_iter().find(|f| f.name() == name)
    }
}

/// The kinds of the second generator.
pub const KINDS: [&str; 10] = ["block", "switch", "pool", "page", "gradual", "single", "bend", "fresh", "fake", "cached"];

#[derive(Clone, Debug)]
pub struct Card {
    pub family: Family,
    /// One of `KINDS`, or empty.
    pub kind: &'static str,
    pub seed: u64,
}

/// So many cards of a family. The second generator's kinds take turns, with one seed for all.
pub fn cards(family: Family, first: u64, n: u64) -> Vec<Card> {
    let one = |i: u64| match family {
        Family::Bench => {
            let kinds = KINDS.len() as u64;
            Card { family, kind: KINDS[(i % kinds) as usize], seed: first + i / kinds }
        }
        _ => Card { family, kind: "", seed: first + i },
    };
    (0..n).map(one).collect()
}

pub enum Truth {
    Sim(Box<nandscope_sim::Truth>),
    Bench(Value),
}

/// What is judged: of all else the models state no truth.
pub const JUDGED: [Quantity; 12] = [
    Quantity::EraseBlock,
    Quantity::EraseBlockOffset,
    Quantity::Page,
    Quantity::AccessUnit,
    Quantity::WriteUnit,
    Quantity::OpenAusLinear,
    Quantity::OpenAusRandom,
    Quantity::CloseCostMs,
    Quantity::FatZone,
    Quantity::Mapping,
    Quantity::Capacity,
    Quantity::WriteCache,
];

impl Truth {
    pub fn of_card(card: &Card) -> Truth {
        match card.family {
            Family::Random => Truth::Sim(Box::new(random::card(card.seed).truth())),
            Family::Unusual => Truth::Sim(Box::new(unusual::card(card.seed).truth())),
            Family::Bench => Truth::Bench(told(card.kind, card.seed, "")),
        }
    }

    /// What is true; NaN where the card has none of it (no limit, no zone). `None` where the quantity means nothing on it, or the model
    /// does not say.
    pub fn of(&self, q: Quantity) -> Option<f64> {
        match self {
            // A card that rewrites an erase block for every write has no unit below that; a medium without structure is mapped in no way.
            Truth::Sim(t) if q == Quantity::WriteUnit && t.mapping == Mapping::WriteThrough => None,
            Truth::Sim(t) if q == Quantity::Mapping && t.mapping == Mapping::None => None,
            Truth::Sim(t) => JUDGED.contains(&q).then(|| common::truth_of(q, t).unwrap_or(f64::NAN)),
            Truth::Bench(t) => of_bench(q, t),
        }
    }

    /// Is a value (or a bound) right? Only where `of` is something.
    pub fn right(&self, q: Quantity, v: f64, bound: bool) -> bool {
        match self {
            Truth::Sim(t) => {
                let f = if bound { Finding::at_least(q, v, 0.9, "") } else { Finding::decided(q, v, 0.9) };
                common::right(&f, t).unwrap_or(false)
            }
            Truth::Bench(t) => right_of_bench(q, v, bound, self.of(q).unwrap_or(f64::NAN), t),
        }
    }
}

fn of_bench(q: Quantity, t: &Value) -> Option<f64> {
    let n = |key: &str| t[key].as_f64();
    let by_block = t["mapping"] == "block";
    if n("real") < n("size") && q != Quantity::Capacity {
        return None;
    }
    let count = |key: &str| match t["mapping"].as_str() {
        Some("block") => n(key),
        Some("pool") => None,
        _ => Some(f64::NAN),
    };
    match q {
        Quantity::EraseBlock => n("erase_block"),
        Quantity::EraseBlockOffset => n("offset"),
        // All planes are sensed and programmed at once, so that the page of one plane cannot be seen.
        Quantity::Page | Quantity::AccessUnit | Quantity::WriteUnit => n("unit"),
        Quantity::OpenAusLinear => count("open_sequential"),
        Quantity::OpenAusRandom => count("open_random"),
        Quantity::CloseCostMs => n("merge_ms").filter(|_| by_block),
        Quantity::Mapping => Some(if t["mapping"] == "page" { 2.0 } else { 1.0 }),
        Quantity::Capacity => n("real"),
        _ => None,
    }
}

fn right_of_bench(q: Quantity, v: f64, bound: bool, truth: f64, t: &Value) -> bool {
    match q {
        _ if bound => truth.is_nan() || truth >= v,
        Quantity::CloseCostMs => (v / truth - 1.0).abs() < 0.3,
        Quantity::Capacity => (v - truth).abs() <= 1_048_576.0,
        Quantity::Page => v == truth || Some(v) == t["page"].as_f64(),
        Quantity::EraseBlockOffset => v == truth || v == truth % t["erase_block"].as_f64().unwrap_or(1.0),
        _ => v == truth,
    }
}

/// A card that was probed, and what is told.
pub struct Probed {
    pub card: Card,
    pub truth: Truth,
    /// What each experiment said by itself, where a fit keeps that.
    pub apart: Vec<Finding>,
    pub told: Findings,
    pub cost: Cost,
}

/// What the experiments of a probe wrote and took; what was put back is not counted.
fn cost(runs: &[Run]) -> Cost {
    let all = || runs.iter().flat_map(|r| &r.samples);
    let bytes_written = all().filter(|s| s.is_write()).map(|s| s.len).sum();
    Cost { bytes_written, seconds: all().map(|s| s.took.secs()).sum(), ..Cost::default() }
}

/// What a probe may use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Within {
    /// What simulated cards are given unless asked: half an hour and 8 GiB; ten minutes where a program is the card.
    Usual,
    /// And one GiB written.
    AMinute,
}

/// The runs of a probe of this card, and what is told of them.
pub fn runs_of(card: &Card, within: Within) -> (Vec<Run>, Findings) {
    let (writes, seconds) = match (within, card.family) {
        (Within::AMinute, _) => (1 << 30, 60.0),
        (Within::Usual, Family::Bench) => (8 << 30, 600.0),
        (Within::Usual, _) => (8 << 30, 1800.0),
    };
    let sim = |model| {
        let p = probe_within(&model, card.seed, true, writes, seconds);
        (p.runs, p.findings)
    };
    match card.family {
        Family::Random => sim(random::card(card.seed)),
        Family::Unusual => sim(unusual::card(card.seed)),
        Family::Bench => behind_program(card, writes, seconds),
    }
}

pub fn probed(card: &Card, within: Within) -> Probed {
    with_runs(card, within).0
}

fn with_runs(card: &Card, within: Within) -> (Probed, Vec<Run>) {
    let (runs, told) = runs_of(card, within);
    (Probed { truth: Truth::of_card(card), apart: vec![], told, cost: cost(&runs), card: card.clone() }, runs)
}

fn behind_program(card: &Card, writes: u64, seconds: f64) -> (Vec<Run>, Findings) {
    let mut device = on_bench(card.kind, card.seed, "", writes);
    let stop = AtomicBool::new(false);
    let region = 0..device.geometry().size;
    let time = Nanos::from_secs_f64(seconds);
    let plan = Plan { experiments: experiment::probing(), region, time, writes, seed: card.seed, stop: &stop };
    probe(&mut device, &plan, &mut |_| {})
}

/// Probes them; `done` sees each as it comes.
pub fn probe_all(cards: &[Card], within: Within, done: impl Fn(&Probed, &[Run]) + Sync) -> Vec<Probed> {
    in_turn::all(cards, |card| {
        let (p, runs) = with_runs(card, within);
        done(&p, &runs);
        p
    })
}
