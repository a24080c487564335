//! Every built-in card, probed with several seeds, against the truth that follows from its model.
//!
//! No expected value is written here: the model states the truth, so a new card in `cards/` is tested at once.

mod common;

use common::{probe_model, right};
use nandscope::finding::Quantity;
use nandscope_sim::{Model, cards};

#[test]
fn nothing_said_with_confidence_is_wrong() {
    let mut wrong = vec![];
    let mut decided = 0;
    for (name, text) in cards::ALL {
        let model = Model::parse(text, name).unwrap();
        for seed in 1..=2 {
            let p = probe_model(&model, seed, true);
            for f in &p.findings.0 {
                match right(f, &model.truth()) {
                    Some(true) => decided += 1,
                    Some(false) if f.confidence < 0.9 => {}
                    Some(false) => wrong.push(format!(
                        "{name} seed {seed}: {} = {:?}, at least {:?}, {:.2}",
                        f.quantity, f.value, f.at_least, f.confidence
                    )),
                    None => {}
                }
            }
            if std::env::var_os("NANDSCOPE_SHOW").is_some() {
                println!("{name} {seed}: {}", common::line(&p, &model));
            }
        }
    }
    assert!(decided > 50, "only {decided} findings were decided");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a card shows must be found, not only not be wrong.
#[test]
fn what_a_card_shows_is_decided() {
    let mut missing = vec![];
    for (name, text) in cards::ALL {
        let model = Model::parse(text, name).unwrap();
        let p = probe_model(&model, 1, true);
        for q in common::visible(&model) {
            let f = p.findings.get(q);
            if f.is_none_or(|f| f.value.is_none() && f.at_least.is_none()) {
                missing.push(format!("{name}: {q}: {}", f.and_then(|f| f.reason.clone()).unwrap_or_default()));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn a_read_only_probe_writes_nothing_and_knows_nothing_of_writes() {
    let model = Model::parse(cards::text("flashbench-readme").unwrap(), "flashbench-readme").unwrap();
    let p = probe_model(&model, 1, false);
    assert_eq!(p.bytes_written, 0);
    assert!(p.findings.get(Quantity::OpenAusLinear).is_none());
    assert_eq!(p.findings.value(Quantity::EraseBlock, 0.8), Some(4194304.0));
}
