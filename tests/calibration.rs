//! Is what is told at 85 % right 85 times of 100, no less and no more? Cards of three families (`common/families.rs`), with seeds that
//! are kept for this: nothing was fitted to them, and what a single card of them says is never printed.
//!
//! NANDSCOPE_CARDS sets the number of cards of each family, NANDSCOPE_SEED the first seed (NANDSCOPE_SHOW then prints what was wrong).

#[path = "common/bench_card.rs"]
mod bench_card;
mod common;
#[path = "common/families.rs"]
mod families;
#[path = "common/in_turn.rs"]
mod in_turn;
#[path = "common/score.rs"]
mod score;
#[path = "common/skip.rs"]
mod skip;

use common::{probe_within, right};
use families::{Card, FITTING, Family, RESERVED, Within, cards, probe_all, probed};
use nandscope::finding::Quantity;
use nandscope_sim::random;
use score::{Scores, bins, score, table};

fn number(from: &str) -> Option<u64> {
    std::env::var(from).ok().map(|n| n.parse().unwrap_or_else(|_| panic!("{from} is a number")))
}

/// Probes cards of a family, prints the table, and holds each bin of claims to its word, from both sides.
fn calibrated(family: Family, n: u64, within: Within) {
    let first = number("NANDSCOPE_SEED").unwrap_or(RESERVED + 1);
    let all = probe_all(&cards(family, first, number("NANDSCOPE_CARDS").unwrap_or(n)), within, |_, _| {});
    let s: Scores = score(&all);
    println!("{} cards, {}, seeds from {first}\n{}", all.len(), family.name(), table(&s));
    if first < FITTING && std::env::var_os("NANDSCOPE_SHOW").is_some() {
        s.answers.iter().filter(|a| !a.right).for_each(|a| println!("wrong: {}", a.line));
    }
    assert!(s.answers.len() as u64 >= all.len() as u64, "hardly anything was decided");
    for b in bins(s.answers.iter()) {
        assert!(b.holds(), "{}, from {:.2} on: {} of {} right, {:.3} claimed", family.name(), b.low, b.right, b.given, b.claimed);
    }
}

#[test]
fn a_few_cards_of_each_family() {
    for (family, n) in [(Family::Random, 12), (Family::Unusual, 12), (Family::Bench, 10)] {
        calibrated(family, n, Within::AMinute);
    }
}

#[test]
fn random_cards() {
    if !skip::short("calibration on random cards") {
        calibrated(Family::Random, 100, Within::Usual);
    }
}

/// Cards twisted at two places or more, which no method here was made with.
#[test]
fn unusual_cards() {
    if !skip::short("calibration on unusual cards") {
        calibrated(Family::Unusual, 100, Within::Usual);
    }
}

/// A family that shares no code with the simulator.
#[test]
fn cards_of_the_second_generator() {
    if !skip::short("calibration on cards of the second generator") {
        calibrated(Family::Bench, 100, Within::Usual);
    }
}

/// What a device is given unless asked; most runs are cut: less is told, and it is as sure.
#[test]
fn random_cards_in_a_minute() {
    if !skip::short("calibration within a minute") {
        calibrated(Family::Random, 100, Within::AMinute);
    }
}

#[test]
fn unusual_cards_in_a_minute() {
    if !skip::short("calibration of unusual cards within a minute") {
        calibrated(Family::Unusual, 100, Within::AMinute);
    }
}

#[test]
fn cards_of_the_second_generator_in_a_minute() {
    if !skip::short("calibration of the second generator within a minute") {
        calibrated(Family::Bench, 100, Within::AMinute);
    }
}

/// What was never written is closed once for nothing, and a FAT zone of several erase blocks needs no room in the table: neither makes one
/// more seem to stay open.
#[test]
fn no_more_are_counted_than_stay_open() {
    for (kind, seed) in [("fresh", 30_001), ("fresh", 30_058), ("block", 30_050), ("block", 30_067)] {
        let p = probed(&Card { family: Family::Bench, kind, seed }, Within::Usual);
        let linear = p.told.get(Quantity::OpenAusLinear).and_then(|f| f.number());
        assert_eq!(linear, p.truth.of(Quantity::OpenAusLinear), "{kind} {seed}");
    }
}

/// An AU that holds little costs little to close where the card was never written, and one that was opened near its end may be full before
/// the boundary: looks from the middle of one to the middle of the next find them.
#[test]
fn erase_blocks_of_empty_cards_are_found() {
    for (kind, seed) in [("block", 3_002), ("fresh", 3_013), ("fresh", 3_034), ("fresh", 3_038), ("switch", 3_034), ("switch", 3_008)] {
        let p = probed(&Card { family: Family::Bench, kind, seed }, Within::Usual);
        let block = p.told.get(Quantity::EraseBlock).and_then(|f| f.number());
        assert_eq!(block, p.truth.of(Quantity::EraseBlock), "{kind} {seed}");
    }
}

/// The log of a small AU that is full now and then is no table that is: one AU alone shows how often, and no fewer are counted than stay open.
#[test]
fn full_logs_are_no_limit() {
    for (kind, seed) in [("block", 3_010), ("fresh", 3_010), ("block", 3_015), ("fresh", 3_015)] {
        let p = probed(&Card { family: Family::Bench, kind, seed }, Within::Usual);
        let random = p.told.get(Quantity::OpenAusRandom).and_then(|f| f.number());
        assert!(random.is_none() || random == p.truth.of(Quantity::OpenAusRandom), "{kind} {seed}: {random:?}");
    }
}

/// An SLC cache takes the writes to dozens of AUs, and is full when more are tried: what settled before is told on a few such cards at most, unless fewer
/// AUs came to rest again, and so is what a merge costs. (Of 120 cards of this kind 60 were told a wrong bound in sequential order before that was looked at.)
#[test]
fn a_cache_that_fills_up_is_no_limit() {
    let (mut wrong, mut costs) = (vec![], vec![]);
    const CARDS: u64 = 40;
    for seed in 52_001..52_001 + CARDS {
        let p = probed(&Card { family: Family::Bench, kind: "cached", seed }, Within::AMinute);
        let limit = p.truth.of(Quantity::OpenAusLinear).expect("mapped by erase block");
        let told = p.told.get(Quantity::OpenAusLinear).expect("asked");
        let least = told.at_least.map(|b| b.0).or(told.number());
        if least.is_some_and(|n| n > limit) {
            assert!(told.confidence < 0.95, "{seed}: {told:?}");
            wrong.push(seed);
        }
        let cost = p.told.get(Quantity::CloseCostMs).and_then(|f| f.number());
        costs.extend(
            cost.zip(p.truth.of(Quantity::CloseCostMs)).filter(|(told, truth)| !(0.7..=1.3).contains(&(told / truth))).map(|_| seed),
        );
    }
    assert!(wrong.len() as u64 <= CARDS / 3 && costs.len() as u64 <= CARDS / 6, "bounds {wrong:?}, costs {costs:?} of {CARDS}");
}

/// Heat slows a card as a full cache does, and its reads as well: no cache is told.
#[test]
fn a_hot_card_is_told_no_cache() {
    for seed in [3_044, 3_054, 3_069, 3_138] {
        let p = probed(&Card { family: Family::Unusual, kind: "", seed }, Within::Usual);
        let cache = p.told.get(Quantity::WriteCache).and_then(|f| f.at_least);
        assert!(p.truth.of(Quantity::WriteCache).is_some_and(f64::is_nan) && cache.is_none(), "{seed}: {cache:?}");
    }
}

/// Cut anywhere, a probe tells what it has, and no more is wrong than was said. The two cards saw a limit before any write was slow with
/// more AUs in turn.
#[test]
fn a_probe_may_end_at_any_time() {
    let (mut wrong, mut expected, mut variance) = (vec![], 0.0, 0.0);
    for (seed, model) in [346, 503].map(|s| (s, random::card(s))) {
        for seconds in [0.01, 0.1, 0.5, 1.0, 3.0, 6.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0] {
            let p = probe_within(&model, seed, true, 1 << 30, seconds);
            for f in p.findings.0.iter().filter(|f| f.confidence >= 0.9) {
                expected += 1.0 - f.confidence;
                variance += f.confidence * (1.0 - f.confidence);
                if right(f, &model.truth()) == Some(false) {
                    wrong.push(format!("card {seed} after {seconds} s: {f:?}"));
                }
            }
        }
    }
    assert!(expected > 1.0 && (wrong.len() as f64) < expected + score::ERRORS * variance.sqrt(), "{expected:.1} claimed: {wrong:#?}");
}

/// Two bounds of one card count once: 60 of 60 right at 85 % are 30 cards, and hold; 60 answers that stand alone do not, nor do the bounds of 50 cards.
#[test]
fn bounds_of_one_card_are_one_witness() {
    let holds = |bound: bool, n: u64| {
        let answer = |i: u64| {
            let quantity = if i.is_multiple_of(2) { Quantity::OpenAusLinear } else { Quantity::OpenAusRandom };
            score::Answer { card: ("", i / 2), quantity, bound, confidence: 0.85, right: true, line: String::new() }
        };
        let all: Vec<score::Answer> = (0..n).map(answer).collect();
        bins(all.iter())[0].holds()
    };
    assert!(holds(true, 60) && !holds(false, 60), "30 cards");
    assert!(!holds(true, 100), "50 cards");
}

/// A bin is held to its word from both sides: too low a claim is as wrong as too high a one.
#[test]
fn a_bin_that_is_off_is_seen() {
    let bin = |right: usize, given: usize, claimed: f64| {
        let answer = |i: usize| score::Answer {
            card: ("", i as u64),
            quantity: Quantity::Page,
            bound: false,
            confidence: claimed,
            right: i < right,
            line: String::new(),
        };
        let all: Vec<score::Answer> = (0..given).map(answer).collect();
        bins(all.iter())[0].holds()
    };
    for (right, given, claimed, holds) in [
        (850, 1000, 0.85, true),
        (879, 1000, 0.85, true),
        (890, 1000, 0.85, false),
        (800, 1000, 0.85, false),
        (8, 10, 0.85, true),
        (5, 10, 0.85, true),
        (4, 10, 0.85, false),
        (1000, 1000, 0.96, false),
        (11, 13, 0.973, true),
        (9, 13, 0.973, false),
        (100, 100, 0.98, true),
    ] {
        assert_eq!(bin(right, given, claimed), holds, "{right} of {given} at {claimed}");
    }
}
