//! Would the model of a card give better verdicts than the experiments do, each by itself? The same reports are judged by both: the value of the
//! best structure with the weight of all structures that have it, against the findings, by the scores of `tests/common/score.rs`.
//!
//! `cargo run --release --example twin_verdicts -- FAMILY FIRST CARDS` (random, unusual or bench-card; TWIN_SECONDS for each fit, 60 without)

#[path = "../tests/common/bench_card.rs"]
mod bench_card;
#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/common/families.rs"]
mod families;
#[path = "../tests/common/in_turn.rs"]
mod in_turn;
#[path = "../tests/common/score.rs"]
mod score;

use families::{Card, Family, Probed, Truth, Within, cards, runs_of};
use nandscope::finding::{Finding, Findings, Quantity};
use nandscope::report::Cost;
use nandscope::saved::bare;
use nandscope::twin::{Asked, Data, Twin, TwinError, fit};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What both judge, and the part of a structure that says it.
const BOTH: [(Quantity, &str); 8] = [
    (Quantity::EraseBlock, "erase block"),
    (Quantity::EraseBlockOffset, "alignment offset"),
    (Quantity::Page, "page"),
    (Quantity::AccessUnit, "multi-plane page"),
    (Quantity::WriteUnit, "write unit"),
    (Quantity::OpenAusLinear, "open AUs, sequential"),
    (Quantity::OpenAusRandom, "open AUs, random"),
    (Quantity::Mapping, "mapping"),
];

/// What a structure that keeps no count of open AUs says of them: any number.
const MANY: f64 = 512.0;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [family, first, n] = &args[..] else { panic!("FAMILY FIRST CARDS") };
    let family = Family::by_name(family).expect("random, unusual or bench-card");
    let number = |s: &String| s.parse().expect("a number");
    let (mut theirs, mut own, mut none) = (vec![], vec![], 0);
    for card in cards(family, number(first), number(n)) {
        let (runs, told) = runs_of(&card, Within::Usual);
        let mut report = bare(vec![]);
        (report.target.size, report.runs, report.findings) = (size(&runs), runs, told.clone());
        let twin = Data::of(&[("card".to_string(), report)]).and_then(|data| fitted(&data));
        let by_model = match &twin {
            Ok(t) if t.no_card.is_none() => says(t),
            _ => vec![],
        };
        none += usize::from(by_model.is_empty());
        theirs.push(judged(&card, told.0.iter().filter(|f| BOTH.iter().any(|b| b.0 == f.quantity)).cloned().collect()));
        own.push(judged(&card, by_model));
    }
    println!(
        "{} cards of {}, no twin of {none}\n\nthe experiments\n{}",
        own.len(),
        family.name(),
        score::table(&only(score::score(&theirs)))
    );
    println!("the model\n{}", score::table(&only(score::score(&own))));
}

fn only(mut s: score::Scores) -> score::Scores {
    s.by_quantity.retain(|q, _| BOTH.iter().any(|b| b.0 == *q));
    s
}

fn size(runs: &[nandscope::samples::Run]) -> u64 {
    runs.iter().find_map(|r| r.setting.get("size")).map_or(0, |s| *s as u64)
}

fn fitted(data: &Data) -> Result<Twin, TwinError> {
    let seconds = std::env::var("TWIN_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(60.0);
    fit(data, Asked { seed: 1, time: Duration::from_secs_f64(seconds), stop: &AtomicBool::new(false), tell: &mut |_, _| {} })
}

fn judged(card: &Card, findings: Vec<Finding>) -> Probed {
    let told = Findings(findings);
    Probed { card: card.clone(), truth: Truth::of_card(card), apart: vec![], told, cost: Cost::default() }
}

/// What a twin says, as findings.
fn says(twin: &Twin) -> Vec<Finding> {
    let truth = Truth::Sim(Box::new(twin.model.truth()));
    let mut out = vec![];
    for (q, name) in BOTH {
        let Some(value) = truth.of(q) else { continue };
        let part = twin.structure.iter().find(|w| w.name == name).or_else(|| twin.structure.iter().find(|w| w.name == "mapping"));
        let Some(part) = part else { continue };
        // "block-mapped with 4 log blocks" and with 5 are mapped alike.
        let kind = |text: &str| text.split([' ', ':']).next().map(str::to_string);
        let alike = part.rivals.iter().filter(|r| q == Quantity::Mapping && kind(&r.0) == kind(&part.value));
        let p = (part.probability + alike.map(|r| r.1).sum::<f64>()).min(0.999) * (1.0 - twin.none_of_these);
        if p < nandscope::finding::SAID {
            continue;
        }
        let count = matches!(q, Quantity::OpenAusLinear | Quantity::OpenAusRandom);
        match value.is_nan() {
            false => out.push(Finding::decided(q, value, p)),
            true if count => out.push(Finding::at_least(q, MANY, p, "")),
            true => {}
        }
    }
    out
}
