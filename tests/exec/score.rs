//! Cards of the second family, probed and scored: share right, wrong and undecided, log score, and confidence against truth from both sides.
//! NANDSCOPE_CARDS sets the number of cards, NANDSCOPE_SEED the first seed, NANDSCOPE_SHOW prints what was wrong at 80 % or more.

use crate::bench_card::bench_card;
use nandscope::device::{Consent, Device, Limits, OpenOptions, open};
use nandscope::experiment;
use nandscope::finding::{Finding, Findings, Quantity};
use nandscope::probe::{Plan, probe};
use nandscope::units::Nanos;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const KINDS: [&str; 9] = ["block", "switch", "pool", "page", "gradual", "single", "bend", "fresh", "fake"];
const JUDGED: [Quantity; 10] = [
    Quantity::EraseBlock,
    Quantity::EraseBlockOffset,
    Quantity::Page,
    Quantity::AccessUnit,
    Quantity::WriteUnit,
    Quantity::OpenAusLinear,
    Quantity::OpenAusRandom,
    Quantity::CloseCostMs,
    Quantity::Mapping,
    Quantity::Capacity,
];
/// The worst that one answer can cost.
const FLOOR: f64 = 1e-4;
const BINS: [f64; 6] = [0.99, 0.95, 0.9, 0.8, 0.7, 0.6];

struct Card {
    kind: &'static str,
    seed: u64,
    truth: Value,
    findings: Findings,
}

fn number(from: &str, default: u64) -> u64 {
    std::env::var(from).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// Ten minutes of the card's time, 8 GiB: what a user would give.
fn probed(kind: &'static str, seed: u64) -> Card {
    let program = bench_card();
    let out = Command::new(program).args([kind, &seed.to_string(), "--truth"]).output().unwrap();
    let truth: Value = serde_json::from_slice(&out.stdout).unwrap();
    let opened = open(&format!("exec:{} {kind} {seed}", program.display()), &OpenOptions::default()).unwrap();
    let consent = Consent::check(opened.id(), None).unwrap();
    let writes = 8 << 30;
    let mut device = opened.writable(&consent, &Limits { budget: writes, ..Limits::default() }).unwrap();
    let stop = AtomicBool::new(false);
    let region = 0..device.geometry().size;
    let plan = Plan { experiments: experiment::probing(), region, time: Nanos::from_secs_f64(600.0), writes, seed, stop: &stop };
    let (_, findings) = probe(&mut device, &plan, &mut |_| {});
    Card { kind, seed, truth, findings }
}

/// What is true of a card, as a number; NaN where it has no limit. None where the quantity means nothing on it.
fn truth_of(q: Quantity, t: &Value) -> Option<f64> {
    let n = |key: &str| t[key].as_f64();
    let by_block = t["mapping"] == "block";
    let fake = n("real") < n("size");
    if fake && q != Quantity::Capacity {
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

/// Is a value (or a bound) right?
fn right(q: Quantity, v: f64, bound: bool, truth: f64, t: &Value) -> bool {
    match q {
        _ if bound => truth.is_nan() || truth >= v,
        Quantity::CloseCostMs => (v / truth - 1.0).abs() < 0.3,
        Quantity::Capacity => (v - truth).abs() <= 1_048_576.0,
        Quantity::Page => v == truth || Some(v) == t["page"].as_f64(),
        Quantity::EraseBlockOffset => v == truth || v == truth % t["erase_block"].as_f64().unwrap_or(1.0),
        _ => v == truth,
    }
}

#[derive(Default)]
struct Tally {
    right: u32,
    wrong: u32,
    undecided: u32,
    log: f64,
}

struct Answer {
    quantity: Quantity,
    confidence: f64,
    right: bool,
    line: String,
}

struct Scores {
    by_quantity: BTreeMap<Quantity, Tally>,
    answers: Vec<Answer>,
}

fn score(cards: &[Card]) -> Scores {
    let mut by_quantity: BTreeMap<Quantity, Tally> = BTreeMap::new();
    let mut answers = vec![];
    for q in JUDGED {
        let truths: Vec<f64> = cards.iter().filter_map(|c| truth_of(q, &c.truth)).collect();
        // Costs are alike within 30 %, as they are judged.
        let class = |v: f64| if q == Quantity::CloseCostMs { (v.ln() / 1.3f64.ln()).round().to_bits() } else { v.to_bits() };
        let prior = |v: f64| truths.iter().filter(|t| class(**t) == class(v)).count() as f64 / truths.len().max(1) as f64;
        for c in cards {
            let Some(truth) = truth_of(q, &c.truth) else { continue };
            let tally = by_quantity.entry(q).or_default();
            let found: Option<(&Finding, f64, bool)> =
                c.findings.get(q).and_then(|f| f.number().map(|v| (f, v, false)).or(f.at_least.map(|b| (f, b.0, true))));
            let Some((f, v, bound)) = found else {
                tally.undecided += 1;
                tally.log += prior(truth).max(FLOOR).ln();
                continue;
            };
            let ok = right(q, v, bound, truth, &c.truth);
            let rival = f.rivals.iter().find(|r| right(q, r.value.0, false, truth, &c.truth));
            let p = if ok { f.confidence } else { rival.map_or((1.0 - f.confidence) * prior(truth), |r| r.probability) };
            tally.log += p.clamp(FLOOR, 1.0).ln();
            *if ok { &mut tally.right } else { &mut tally.wrong } += 1;
            let sign = if bound { ">= " } else { "" };
            let line = format!("{} {}: {} {sign}{v} at {:.2}, truth {truth}", c.kind, c.seed, q.key(), f.confidence);
            answers.push(Answer { quantity: q, confidence: f.confidence, right: ok, line });
        }
    }
    Scores { by_quantity, answers }
}

fn table(s: &Scores) -> String {
    let mut out =
        format!("{:<22}{:>7}{:>7}{:>11}{:>11}   right/given at 60, 70, 80, 90, 95, 99 %\n", "", "right", "wrong", "undecided", "log score");
    for (q, t) in &s.by_quantity {
        let n = f64::from(t.right + t.wrong + t.undecided);
        out += &format!("{:<22}{:>7}{:>7}{:>11}{:>11.3}  ", q.title(), t.right, t.wrong, t.undecided, t.log / n);
        for (i, low) in BINS.iter().enumerate().rev() {
            let high = if i == 0 { 1.01 } else { BINS[i - 1] };
            let those: Vec<&Answer> = s.answers.iter().filter(|a| a.quantity == *q && (*low..high).contains(&a.confidence)).collect();
            let right = those.iter().filter(|a| a.right).count();
            out += &format!("{:>9}", if those.is_empty() { String::new() } else { format!("{right}/{}", those.len()) });
        }
        out.push('\n');
    }
    out += "\nclaimed          given   right  claimed   share   off by (standard errors; both sides)\n";
    for (i, low) in BINS.iter().enumerate() {
        let high = if i == 0 { 1.01 } else { BINS[i - 1] };
        let those: Vec<&Answer> = s.answers.iter().filter(|a| (*low..high).contains(&a.confidence)).collect();
        let n = those.len() as f64;
        if those.is_empty() {
            continue;
        }
        let right = those.iter().filter(|a| a.right).count() as f64;
        let claimed = those.iter().map(|a| a.confidence).sum::<f64>() / n;
        let error = (those.iter().map(|a| a.confidence * (1.0 - a.confidence)).sum::<f64>()).sqrt() / n;
        let off = (right / n - claimed) / error.max(1e-9);
        let within = (right / n - claimed).abs() <= 0.03 || off.abs() <= 2.6;
        out += &format!(
            "{:>3.0} to {:>3.0} % {:>10}{:>8}{:>9.3}{:>8.3}{:>8.1}  {}\n",
            low * 100.0,
            high.min(1.0) * 100.0,
            n,
            right,
            claimed,
            right / n,
            off,
            if within {
                "holds"
            } else if off > 0.0 {
                "too low a claim"
            } else {
                "too high a claim"
            }
        );
    }
    out
}

/// Confidence on a family of cards that nobody tuned to.
#[test]
fn the_second_family_is_scored() {
    let (n, first) = (number("NANDSCOPE_CARDS", 18), number("NANDSCOPE_SEED", 1));
    let all: Vec<(&'static str, u64)> = (0..n).map(|i| (KINDS[i as usize % KINDS.len()], first + i / KINDS.len() as u64)).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut out = vec![];
        while let Some(&(kind, seed)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            out.push(probed(kind, seed));
        }
        out
    };
    let mut cards = std::thread::scope(|s| {
        let other = s.spawn(work);
        let mut mine = work();
        mine.extend(other.join().unwrap());
        mine
    });
    cards.sort_by_key(|c| (c.seed, KINDS.iter().position(|k| *k == c.kind)));
    let s = score(&cards);
    println!("{n} cards of the second family, seeds from {first}\n{}", table(&s));
    // What is claimed at 90 % or more is no more often wrong than that says.
    let high: Vec<&Answer> = s.answers.iter().filter(|a| a.confidence >= 0.9).collect();
    let wrong = high.iter().filter(|a| !a.right).count() as f64;
    let expected: f64 = high.iter().map(|a| 1.0 - a.confidence).sum();
    let error = high.iter().map(|a| a.confidence * (1.0 - a.confidence)).sum::<f64>().sqrt();
    assert!(wrong <= expected + (2.6 * error).max(0.03 * high.len() as f64), "{wrong} of {} wrong, {expected:.1} expected", high.len());
    if std::env::var_os("NANDSCOPE_SHOW").is_some() {
        s.answers.iter().filter(|a| !a.right && a.confidence >= 0.8).for_each(|a| println!("wrong: {}", a.line));
    }
}
