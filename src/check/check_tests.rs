//! Cards whose faults are known, in virtual time.

use super::judge::{Class, Seen, answers};
use super::measure::{Measured, Task, measure};
use super::{Answer, Outcome, Question, Verdict};
use crate::device::{Device, SimDevice};
use crate::experiment::by_name;
use crate::finding::Findings;
use crate::probe::{Plan, probe};
use crate::units::{MIB, Nanos};
use nandscope_sim::model::{Beyond, Keeps};
use nandscope_sim::{Model, cards, random};
use std::sync::atomic::AtomicBool;

fn model(name: &str) -> Model {
    Model::parse(cards::text(name).unwrap(), name).unwrap()
}

struct Checked {
    answers: Vec<Answer>,
    outcome: Outcome,
    measured: Measured,
}

fn check(m: &Model, seed: u64, write: bool, classes: &[Class]) -> Checked {
    let mut device = SimDevice::new(m, seed).with_content();
    let (stop, size) = (AtomicBool::new(false), device.geometry().size);
    let mut findings = Findings::default();
    if write {
        let experiments = vec![by_name("capacity").unwrap()];
        let plan = Plan { experiments, region: 0..size, time: Nanos::from_secs_f64(36.0), writes: 1 << 28, seed, stop: &stop };
        findings = probe(&mut device, &plan, &mut |_| {}).1;
    }
    let real = findings.get(crate::finding::Quantity::Capacity).and_then(|f| f.number()).map_or(size, |c| c as u64);
    let deadline = device.now() + Nanos::from_secs_f64(54.0);
    let task = Task { region: 0..size.min(real), write, deadline, seed, stop: &stop };
    let measured = measure(&mut device, &task, &mut |_, _| {});
    let (declared, no_health, disk) = (None, None, None);
    let seen = Seen { size, findings: &findings, measured: &measured, write, declared, no_health, disk, classes, with_writes: "" };
    let answers = answers(&seen);
    Checked { outcome: Outcome::of(&answers), answers, measured }
}

fn verdict(c: &Checked, q: Question) -> Verdict {
    c.answers.iter().find(|a| a.question == q).unwrap().verdict
}

#[test]
fn healthy_cards_pass_and_none_is_accused() {
    for name in ["flashbench-readme", "modern-a1-32gb", "toshiba-emmc", "usb-stick"] {
        let c = check(&model(name), 1, true, &[]);
        assert_eq!(c.outcome, Outcome::Fine, "{name}: {:?}", c.answers);
        let c = check(&model(name), 2, false, &[]);
        assert_eq!(c.outcome, Outcome::NotKnown, "{name}: {:?}", c.answers);
        assert_eq!(c.measured.writes, 0);
    }
    for seed in 100..112 {
        let m = random::card(seed);
        let fake = m.truth().real_capacity < m.card.capacity;
        let c = check(&m, seed, true, &[]);
        let accused = matches!(c.outcome, Outcome::Counterfeit | Outcome::Failing);
        assert!(fake || !accused, "random card {seed}: {:?}", c.answers);
    }
}

#[test]
fn counterfeits_are_named() {
    for (name, real) in [("fake-wrap-32gb", 4096), ("fake-drop-64gb", 8192), ("fake-error-16gb", 2048)] {
        let c = check(&model(name), 1, true, &[]);
        assert_eq!((c.outcome, c.outcome.exit_code()), (Outcome::Counterfeit, 6), "{name}: {:?}", c.answers);
        assert_eq!(verdict(&c, Question::Stores), Verdict::Pass, "{name}: what it has it keeps: {real} MiB");
    }
    // Errors behind the flash show without writing; whether a border or a bad place is said by what lies behind.
    let mut m = model("modern-a1-32gb");
    (m.card.real_capacity, m.card.beyond) = (3000 * MIB, Beyond::Error);
    let c = check(&m, 1, false, &[]);
    assert_eq!(c.outcome, Outcome::Counterfeit, "{:?}", c.answers);
}

/// Every way to fail in silence, in all of the flash and in one piece of 16 and of 200.
#[test]
fn cards_that_do_not_store_what_they_are_told() {
    for keeps in [Keeps::Old, Keeps::Zeros, Keeps::Shifted, Keeps::Changing] {
        for (every, name) in [(1, "modern-a1-32gb"), (16, "flashbench-readme"), (200, "modern-a1-32gb")] {
            let mut m = model(name);
            (m.card.keeps, m.card.fails_every) = (keeps, every);
            let c = check(&m, every, true, &[]);
            // A card that keeps nothing at all may look like one without flash.
            let expected: &[Outcome] = if every == 1 { &[Outcome::Failing, Outcome::Counterfeit] } else { &[Outcome::Failing] };
            assert!(expected.contains(&c.outcome), "{keeps:?} 1/{every}: {:?}", c.answers);
            let f = &c.measured.fates;
            let shown = match keeps {
                Keeps::Old => f.old + f.zeros,
                Keeps::Zeros => f.zeros,
                Keeps::Shifted => f.another.len() as u64 + f.zeros + f.old,
                _ => f.changing + f.garbage,
            };
            assert!(every == 1 || shown > 0, "{keeps:?} 1/{every}: {f:?}");
        }
    }
    // Without a write, what changes from reading to reading shows all the same.
    let mut m = model("modern-a1-32gb");
    (m.card.keeps, m.card.fails_every) = (Keeps::Changing, 3);
    assert_eq!(check(&m, 1, false, &[]).outcome, Outcome::Failing);
}

#[test]
fn classes_are_judged_by_the_interval() {
    let a1 = [Class::by_name("a1").unwrap()];
    let c = check(&model("modern-a1-32gb"), 1, true, &a1);
    assert_eq!(verdict(&c, Question::Speed), Verdict::Pass, "{:?}", c.answers);
    // An old card writes 4 KiB at random at a few IOPS, and reads sequentially much faster than the limit.
    let c = check(&model("toshiba-emmc"), 1, true, &a1);
    assert_eq!((verdict(&c, Question::Speed), c.outcome.exit_code()), (Verdict::Fail, 8), "{:?}", c.answers);
    // Without writes no class that asks for writes is passed.
    assert_eq!(verdict(&check(&model("modern-a1-32gb"), 1, false, &a1), Question::Speed), Verdict::NotKnown);
    // A2 is measured with a queue.
    let a2 = [Class::by_name("A2").unwrap()];
    assert_eq!(verdict(&check(&model("modern-a1-32gb"), 1, true, &a2), Question::Speed), Verdict::NotKnown);
    assert!(Class::by_name("A3").is_err() && Class::by_name("").is_err());
}

#[test]
fn a_history_names_what_changed() {
    use super::history::Record;
    let a = check(&model("modern-a1-32gb"), 1, true, &[]);
    let before = Record::of(1, a.outcome, &a.answers, &a.measured);
    assert_eq!(before.changes(&before), Vec::<String>::new());
    let mut slow = before.clone();
    for r in slow.rates.values_mut() {
        *r = r.map(|x| x / 2.0);
    }
    slow.verdicts.insert("errors".into(), "FAIL".into());
    let changes = before.changes(&slow);
    assert_eq!(changes.len(), 5, "{changes:?}");
    assert!(changes[0].contains("was pass, is FAIL") && changes[1].contains("2.00 times slower"), "{changes:?}");
    // A test that was left out says nothing of the card.
    slow.verdicts.insert("errors".into(), "not known".into());
    assert_eq!(before.changes(&slow).len(), 4);
}
