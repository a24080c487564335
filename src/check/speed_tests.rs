//! What is said of a card's speed: of a use, of a class, of a long wait.

use super::check_tests::{check, check_for, examined, model, verdict};
use super::judge::{Class, Seen, answers, long_wait};
use super::{Outcome, Question, Verdict};
use crate::device::SimDevice;
use crate::host::faults::Noticed;
use crate::workload::purpose::Purpose;
use nandscope_sim::model::{On, Stall};

/// Both sides of what a use asks for, on cards whose rates are known.
#[test]
fn a_use_is_judged_by_what_it_needs() {
    let of = |card: &str, purpose: &str, write: bool| {
        let p: Purpose = purpose.parse().unwrap();
        let c = check_for(&model(card), 1, write, &[], Some(&p));
        let a = c.answers.iter().find(|a| a.question == Question::Purpose).unwrap().clone();
        assert!(a.because.contains(p.source), "the need is named: {a:?}");
        (a.verdict, c.outcome, a)
    };
    for purpose in ["boot", "camera", "dashcam", "ip-camera", "logger:1MB/s"] {
        let (v, outcome, a) = of("modern-a1-32gb", purpose, true);
        assert_eq!((v, outcome), (Verdict::Pass, Outcome::Fine), "{purpose}: {a:?}");
    }
    // It writes 17.9 MB/s, and 30 are asked for; an old card writes at random at a few IOPS.
    for (card, purpose) in [("modern-a1-32gb", "video-4k"), ("toshiba-emmc", "boot")] {
        let (v, outcome, a) = of(card, purpose, true);
        assert_eq!((v, outcome.exit_code()), (Verdict::Fail, 8), "{card}, {purpose}: {a:?}");
        assert!(a.todo.is_some());
    }
    assert_eq!(of("toshiba-emmc", "dashcam", true).0, Verdict::Pass);
    // Without writes nothing is known of writes, and a card behind a slow reader is not accused.
    let (v, outcome, a) = of("modern-a1-32gb", "camera", false);
    assert_eq!((v, outcome), (Verdict::NotKnown, Outcome::NotKnown), "{a:?}");
    let mut m = model("modern-a1-32gb");
    m.host.rate = 1 << 20;
    let p: Purpose = "camera".parse().unwrap();
    assert_eq!(verdict(&check_for(&m, 1, true, &[], Some(&p)), Question::Purpose), Verdict::NotKnown);
    // One whose reads show that the reader is faster is too slow, though they do not reach the limit.
    let c = check(&model("olpc-a-4gb"), 1, true, &[Class::by_name("V30").unwrap()]);
    assert_eq!((verdict(&c, Question::Speed), c.outcome), (Verdict::Fail, Outcome::BelowClass), "{:?}", c.answers);
    // Nor is one fast enough for a higher class that is too slow for a lower one.
    for class in ["C10", "V30", "V60", "V90"] {
        let c = check(&model("flashbench-readme"), 1, true, &[Class::by_name(class).unwrap()]);
        assert_eq!(verdict(&c, Question::Speed), Verdict::Fail, "{class}: {:?}", c.answers);
    }
    // What was asked for and is not known is not fine; what decides it is another command than this one.
    for (classes, purpose) in [("A2", None), ("V30", None), ("C10", Some("dashcam:4x20Mbit/s"))] {
        let (class, p) = (Class::by_name(classes).unwrap(), purpose.map(|p| p.parse::<Purpose>().unwrap()));
        let c = check_for(&model("wintec-1gb"), 1, true, &[class], p.as_ref());
        let q = if p.is_some() { Question::Purpose } else { Question::Speed };
        assert_eq!((verdict(&c, q), c.outcome), (Verdict::NotKnown, Outcome::Fine), "{:?}", c.answers);
        assert_eq!(c.outcome.asked(&c.answers, &[q]), Outcome::NotKnown);
        let todo = c.answers.iter().find(|a| a.question == q).and_then(|a| a.todo.clone()).unwrap_or_default();
        assert!(todo.contains("--time 15m") || todo.contains("nandscope rate") || todo.contains("faster reader"), "{todo}");
    }
    // Where no use is named none is judged.
    assert!(check(&model("modern-a1-32gb"), 1, false, &[]).answers.iter().all(|a| a.question != Question::Purpose));
}

/// A recorder loses what comes in meanwhile, though the rates reach every class.
#[test]
fn a_write_longer_than_the_standard_allows_is_told() {
    let told = |ms: u64, size: u64, classes: &[Class]| {
        let mut m = model("modern-a1-32gb");
        m.card.capacity = size;
        m.stall.push(Stall { on: On::Write, time: ms * 1_000_000, every_bytes: 8 << 20, every_commands: 0, random: false });
        let examined = examined(&mut SimDevice::new(&m, 1).with_content(), 1, 90.0, true, false);
        let noticed = Noticed::default();
        let seen = Seen { classes, ..Seen::of(size, &examined, &noticed) };
        let (wait, all) = (long_wait(&seen), answers(&seen));
        let speed = all.iter().find(|a| a.question == Question::Speed).unwrap();
        assert_eq!(speed.because.contains("the SD standard allows"), wait.is_some(), "{speed:?}");
        wait.map(|w| (w.ms, w.allowed_ms))
    };
    let v10 = [Class::by_name("V10").unwrap()];
    for classes in [&[][..], &v10] {
        assert!(told(400, 16 << 30, classes).is_some_and(|w| (400.0..450.0).contains(&w.0) && w.1 == 250.0));
        assert_eq!(told(400, 60 << 30, classes), None, "SDXC cards may take 500 ms");
        assert!(told(700, 60 << 30, classes).is_some_and(|w| w.1 == 500.0));
        assert_eq!(told(150, 16 << 30, classes), None);
    }
}
