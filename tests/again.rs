//! A saved report can be judged again without the card: every run by what the runs before it say now, not by what was believed when it
//! was made.

mod common;

use common::probe_within;
use nandscope::finding::{Finding, Findings, Quantity};
use nandscope::infer;
use nandscope::infer::beliefs::{Beliefs, Case, SURE};
use nandscope::infer::pipeline::{self, Analysis, Inference};
use nandscope::samples::Run;
use nandscope_sim::{Model, cards};
use serde_json::Value;

/// A detector that says the same of every run.
struct Says {
    name: &'static str,
    says: Vec<Finding>,
}

impl Analysis for Says {
    fn name(&self) -> &'static str {
        self.name
    }
    fn infer(&self, _run: &Case) -> Vec<Finding> {
        self.says.clone()
    }
}

/// The findings by all analyses, but one.
fn with(name: &'static str, says: Vec<Finding>, runs: &[Run]) -> Findings {
    let other: &'static dyn Analysis = Box::leak(Box::new(Says { name, says }));
    let all = infer::all().map(|a| if a.name() == name { other } else { a });
    Inference::with(all.collect()).of(runs)
}

fn model(name: &str) -> Model {
    Model::parse(cards::text(name).unwrap(), name).unwrap()
}

/// Written to JSON and read back.
fn saved(runs: &[Run]) -> Vec<Run> {
    let mut runs: Vec<Run> = serde_json::from_str(&serde_json::to_string(runs).unwrap()).unwrap();
    runs.iter_mut().for_each(Run::index);
    runs
}

const CARDS: [&str; 8] =
    ["toshiba-emmc", "sandisk-emmc", "flashbench-readme", "noisy", "patriot-16gb", "tlc-12mib", "modern-a1-32gb", "page-mapped"];

fn some_cards() -> Vec<Model> {
    CARDS.map(model).to_vec()
}

/// Another erase block from the reads: what was counted in erase blocks later says something else, and nothing was measured again.
#[test]
fn later_runs_are_judged_by_what_earlier_ones_say_now() {
    let (mut small, mut unknown) = (0, 0);
    for card in some_cards() {
        let probed = probe_within(&card, 3, true, 2 << 30, 900.0);
        let runs = saved(&probed.runs);
        let get = |all: &Findings, q| all.get(q).cloned();
        let before = get(&probed.findings, Quantity::OpenAusLinear).filter(|f| f.number().is_some_and(|n| n > 0.0));
        let first = runs.iter().position(|r| r.experiment == "open-au-linear").unwrap();
        let mut inference = Inference::default();
        inference.of(&runs);
        let unit = inference.believed(&runs, first).value(Quantity::WriteUnit, SURE).filter(|_| runs[first].grid().unit.is_some());
        let (Some(before), Some(unit)) = (before, unit) else { continue };
        // An erase block no larger than one write: every write rewrites it.
        let block = Finding::decided(Quantity::EraseBlock, unit, 0.99);
        let tiny = with("read-boundary", vec![block], &runs);
        let said = get(&tiny, Quantity::OpenAusLinear).unwrap();
        assert!(said.number() != before.number(), "{}: {said:?}", card.name);
        let unsure = with("read-boundary", vec![Finding::decided(Quantity::EraseBlock, unit, 0.6)], &runs);
        assert_ne!(get(&unsure, Quantity::OpenAusLinear).unwrap().number(), Some(0.0), "{}: that was not sure", card.name);
        small += 1;
        // None at all: the same count, but its places are no longer known to be of different erase blocks.
        let none = with("read-boundary", vec![Finding::undecided(Quantity::EraseBlock, "another detector")], &runs);
        let said = get(&none, Quantity::OpenAusLinear).unwrap();
        assert!(said.confidence <= before.confidence, "{}: {said:?}", card.name);
        unknown += u32::from(said.confidence < before.confidence);
    }
    assert!(small >= 2 && unknown >= 1, "{small} cards with a small erase block, {unknown} with none");
}

/// What a detector says is all that counts: the findings before and after saving are the same, wherever the probe ended.
#[test]
fn a_saved_report_says_what_the_probe_said() {
    for card in some_cards() {
        for seconds in [4.0, 20.0, 60.0, 600.0] {
            let probed = probe_within(&card, 5, true, 1 << 30, seconds);
            assert_eq!(pipeline::infer(&saved(&probed.runs)), probed.findings, "{} after {seconds} s", card.name);
        }
    }
}

/// Names in a setting that are of what was done.
const DONE: [&str; 16] = [
    "size",
    "sector",
    "offset",
    "start",
    "end",
    "time_ms",
    "written_since",
    "unit",
    "phase",
    "phase_about",
    "phase_slack",
    "slot_first",
    "slot_spacing",
    "slot_count",
    "slot_span",
    "slot_chunk",
];

#[test]
fn a_run_keeps_what_was_done_and_not_what_was_believed() {
    for card in some_cards() {
        let probed = probe_within(&card, 2, true, 1 << 30, 120.0);
        for run in &probed.runs {
            let other: Vec<&String> = run.setting.keys().filter(|k| !DONE.contains(&k.as_str())).collect();
            assert!(other.is_empty(), "{}, {}: {other:?}", card.name, run.experiment);
            assert_eq!(serde_json::to_value(run).unwrap()["form"], 2);
        }
    }
}

/// The setting as earlier versions saved it: the likeliest values of then as whole numbers, an erase block or write unit only where sure.
fn frozen(run: &Run, b: &Beliefs) -> Value {
    let mut v = serde_json::to_value(run).unwrap();
    v.as_object_mut().unwrap().remove("form");
    let setting = v["setting"].as_object_mut().unwrap();
    setting.retain(|k, _| DONE[..7].contains(&k.as_str()));
    for q in Quantity::ALL {
        let least = if matches!(q, Quantity::EraseBlock | Quantity::WriteUnit) { SURE } else { 0.0 };
        if let Some(n) = b.value(q, least) {
            let (key, n) = if q == Quantity::CloseCostMs { ("close_cost_us", n * 1e3) } else { (q.key(), n) };
            setting.insert(key.into(), (n as i64).into());
        }
    }
    let mut put = |key: &str, n: Option<u64>| n.map(|n| setting.insert(key.into(), n.into()));
    put("erase_block_about", b.about().map(|a| a.0));
    put("erase_block_slack", b.about().map(|a| a.1));
    put("filled", b.filled().map(|f| f.0));
    put("cache_from", b.filled().map(|f| f.1));
    put("open_aus_linear_least", b.linear_least());
    put("open_aus_linear_rested", b.rested);
    put("write_ns_per_kib", b.write_ns_per_kib);
    v
}

/// A report of a version that kept what was believed is judged by that, and says what it said.
#[test]
fn a_report_of_an_earlier_version_says_what_it_said() {
    for card in some_cards() {
        let probed = probe_within(&card, 4, true, 2 << 30, 900.0);
        let mut inference = Inference::default();
        inference.of(&probed.runs);
        let old = probed.runs.iter().enumerate().map(|(i, r)| frozen(r, &inference.believed(&probed.runs, i)));
        let mut old: Vec<Run> = serde_json::from_value(old.collect()).unwrap();
        old.iter_mut().for_each(Run::index);
        // Where AUs lie is planned anew from what was believed.
        assert!(old.iter().all(|r| r.form < 2 && !r.setting.contains_key("slot_first")));
        assert_eq!(pipeline::infer(&old), probed.findings, "{}", card.name);
        // What another detector says now does not change what was believed then.
        let open = |all: &Findings| all.0.iter().find(|f| f.quantity == Quantity::OpenAusRandom).map(|f| (f.value, f.confidence));
        let other = with("read-boundary", vec![Finding::undecided(Quantity::EraseBlock, "another detector")], &old);
        assert_eq!(open(&other), open(&probed.findings), "{}", card.name);
    }
}
