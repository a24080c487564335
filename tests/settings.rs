//! What a host had better do, on simulated cards with the property, without it, and noisy ones: `small-writes` (Q14, Q16) and the
//! comparison of two settings (Q15).

use nandscope::ab::{self, Load, Plan};
use nandscope::device::{Device, SimDevice};
use nandscope::experiment::run::{Limits, run};
use nandscope::experiment::{self, Setup};
use nandscope::finding::{Finding, Findings, Quantity};
use nandscope::infer::ab::{Effect, Verdict, compare};
use nandscope::samples::{Ended, Run};
use nandscope::units::Nanos;
use nandscope_sim::{Model, cards};
use std::sync::atomic::AtomicBool;

fn model(name: &str) -> Model {
    Model::parse(cards::text(name).unwrap(), name).unwrap()
}

fn small_writes(m: &Model, seed: u64) -> Vec<Finding> {
    let exp = experiment::by_name("small-writes").unwrap();
    let mut device = SimDevice::new(m, seed);
    let geometry = device.geometry().clone();
    let known = Findings::default();
    let setup =
        Setup { geometry: &geometry, region: 0..m.truth().real_capacity.min(geometry.size), known: &known, runs: &[], writes: u64::MAX };
    let stop = AtomicBool::new(false);
    let run = run(exp, &setup, &mut device, &Limits { deadline: Nanos(7_200_000_000_000), stop: &stop, seed }, &mut |_| {});
    exp.infer(&run)
}

fn of(f: &[Finding], q: Quantity) -> &Finding {
    f.iter().find(|f| f.quantity == q).unwrap()
}

#[test]
fn small_writes_on_cards_that_combine_them_and_cards_that_do_not() {
    for seed in 1..=3 {
        // Q14: below 32 KiB a constant time a write.
        let f = small_writes(&model("toshiba-emmc"), seed);
        assert_eq!(of(&f, Quantity::EfficientWrite).number(), Some(32768.0), "{f:?}");
        assert_eq!(of(&f, Quantity::CombinesBelow).number(), Some(0.0), "{f:?}");
        // Q16: a buffer of one write unit for linear writes.
        let f = small_writes(&model("sandisk-emmc"), seed);
        let c = of(&f, Quantity::CombinesBelow);
        assert!(c.number() == Some(16384.0) && c.confidence >= 0.8, "{c:?}");
        // Random order that always pays says nothing of combining.
        let f = small_writes(&model("usb-stick"), seed);
        assert!(of(&f, Quantity::CombinesBelow).number().is_none_or(|v| v == 0.0), "{f:?}");
    }
}

/// Nothing that a card is not: every built-in card, and what its model says of combining.
#[test]
fn no_card_is_said_to_combine_what_it_does_not() {
    for (name, text) in cards::ALL.iter().filter(|c| !c.0.starts_with("fake") && !c.0.contains("1tb")) {
        let m = Model::parse(text, name).unwrap();
        let f = small_writes(&m, 5);
        let c = of(&f, Quantity::CombinesBelow);
        println!("{name}: {:?} {:.2} {:?}", c.value, c.confidence, c.reason);
        // A card that rewrites at the end of a buffer (C14) combines what the buffer holds.
        let may = m.card.combine || m.card.cache > 0 || m.slc.size > 0 || m.truth().mapping == nandscope_sim::Mapping::WriteThrough;
        assert!(may || c.confidence < 0.8 || c.number() == Some(0.0), "{name}: {c:?}");
    }
}

fn compared(m: &Model, a: &str, b: &str, load: Load, size: u64, pairs: u32, seed: u64) -> (Run, Option<Effect>) {
    let stop = AtomicBool::new(false);
    let mut device = SimDevice::new(m, seed);
    let plan = Plan {
        settings: [a.parse().unwrap(), b.parse().unwrap()],
        load,
        size,
        count: 8,
        pairs,
        region: 0..device.geometry().size,
        seed,
        deadline: Nanos(u64::MAX),
        stop: &stop,
    };
    let (run, _) = ab::run(&plan, &mut device, &mut |_| Ok(()), &mut |_| {}).unwrap();
    let effect = compare(&ab::pairs(&run), 0.05, 0.03);
    (run, effect)
}

/// The promise of alpha on whole comparisons: cards with noise and stalls, settings that are the same.
#[test]
fn equal_settings_on_a_card_are_rarely_called_different() {
    for (name, load) in
        [("noisy", Load::Linear), ("noisy", Load::Read), ("flashbench-readme", Load::Unaligned), ("modern-a1-32gb", Load::Random)]
    {
        let m = model(name);
        let all = 150;
        let wrong = (0..all)
            .filter(|&seed| {
                let e = compared(&m, "default", "default", load, 16384, 10, 1000 + seed).1.unwrap();
                matches!(e.verdict, Verdict::Faster | Verdict::Slower) || e.p <= 0.05
            })
            .count();
        println!("{name}, {}: {wrong} of {all} equal settings called different", load.name());
        // 5 %: more than 17 of 150 has a probability of 1 in 1000.
        assert!(wrong <= 17, "{name}: {wrong} of {all}");
    }
}

#[test]
fn the_split_matters_for_unaligned_writes_only() {
    let m = model("toshiba-emmc");
    let (run, e) = compared(&m, "default", "split=8KiB", Load::Unaligned, 0, 16, 3);
    let pieces = |cell: u32| run.of(cell).filter(|s| s.role == 1).count();
    assert!(pieces(1) > pieces(0), "{} {}", pieces(0), pieces(1));
    assert!(run.of(1).all(|s| s.at / 8192 == (s.at + s.len - 1) / 8192), "a piece crosses a multiple of 8 KiB");
    assert_eq!(run.of(0).map(|s| s.len).sum::<u64>(), run.of(1).map(|s| s.len).sum::<u64>());
    let e = e.unwrap();
    assert!(e.verdict == Verdict::Slower && e.interval[0] > 1.0, "{e:?}");
    // Q14: the patch changes nothing for aligned writes.
    let e = compared(&m, "default", "split=8KiB", Load::Linear, 8192, 24, 3).1.unwrap();
    assert_eq!(e.verdict, Verdict::NoDifference, "{e:?}");
}

#[test]
fn a_card_that_fails_or_a_region_too_small_ends_it() {
    let m = model("fake-error-16gb");
    let (run, e) = compared(&m, "default", "split=4KiB", Load::Linear, 65536, 24, 1);
    assert!(matches!(run.ended, Ended::Failed(_)), "{:?}", run.ended);
    assert!(e.is_none_or(|e| e.pairs < 24));
    let stop = AtomicBool::new(false);
    let mut device = SimDevice::new(&model("null"), 1);
    let plan = Plan {
        settings: ["default".parse().unwrap(), "discard=before".parse().unwrap()],
        load: Load::Random,
        size: 65536,
        count: 8,
        pairs: 8,
        region: 0..6 << 20,
        seed: 1,
        deadline: Nanos(u64::MAX),
        stop: &stop,
    };
    let wrong = ab::run(&plan, &mut device, &mut |_| Ok(()), &mut |_| {});
    assert!(wrong.unwrap_err().to_string().contains("do not fit"));
    // The settings that fail end it, too: nothing is compared that was not set.
    let plan = Plan { region: 0..64 << 20, ..plan };
    let mut turn = |_| Err(nandscope::device::DeviceError::Unsupported("no such scheduler".into()));
    assert!(ab::run(&plan, &mut device, &mut turn, &mut |_| {}).is_err());
}

#[test]
fn settings_say_what_is_wrong_with_them() {
    let bad = |s: &str| s.parse::<ab::Setting>().unwrap_err();
    assert!(
        bad("split=3KiB").contains("power of two") && bad("speed=9").contains("there are: split") && bad("fast").contains("split=8KiB")
    );
    let s: ab::Setting = "split=8KiB,scheduler=none,discard=before".parse().unwrap();
    assert!(s.split == Some(8192) && s.discard && s.queue == [("scheduler".to_string(), "none".to_string())]);
}
