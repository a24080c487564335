//! What a host had better do, on simulated cards with the property, without it, and noisy ones: `small-writes` (Q14, Q16) and the
//! comparison of two settings (Q15).

#[path = "common/skip.rs"]
mod skip;

mod common;

use nandscope::ab::{self, Load, Plan};
use nandscope::device::{Device, SimDevice};
use nandscope::finding::{Finding, Quantity};
use nandscope::infer::ab::{Effect, Verdict, compare};
use nandscope::infer::pipeline;
use nandscope::samples::{Ended, Run};
use nandscope::units::Nanos;
use nandscope_sim::{Model, cards};
use std::sync::atomic::AtomicBool;

fn model(name: &str) -> Model {
    Model::parse(cards::text(name).unwrap(), name).unwrap()
}

fn small_writes(m: &Model, seed: u64) -> Vec<Finding> {
    pipeline::of_run(&common::run_alone("small-writes", m, seed, 7200))
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

/// The switches on simulated cards that have what they switch, and on cards that do not.
#[test]
fn switches_matter_on_cards_that_have_them() {
    let effect = |card: &str, a: &str, b: &str, load, size| compared(&model(card), a, b, load, size, 12, 5).1.unwrap();
    // A queue of 32 places: small random reads gain several times; a card without a queue gains nothing.
    let e = effect("modern-a2-128gb", "queue=off", "queue=on", Load::Read, 4096);
    assert!(e.verdict == Verdict::Faster && e.ratio < 0.7, "{e:?}");
    let e = effect("modern-a2-128gb", "queue=on", "queue=off", Load::Read, 4096);
    assert!(e.verdict == Verdict::Slower && e.ratio > 1.4, "the other way round: {e:?}");
    let e = effect("toshiba-emmc", "queue=off", "queue=on", Load::Read, 4096);
    assert!(!matches!(e.verdict, Verdict::Faster | Verdict::Slower), "no queue, no difference: {e:?}");
    // Two that are the same.
    let e = effect("modern-a2-128gb", "queue=32", "queue=on", Load::Read, 4096);
    assert_eq!(e.verdict, Verdict::NoDifference, "{e:?}");
    // CMD23 where a stop costs time, and where it costs none.
    let stop = |ns: u64, announce: u64| {
        let mut m = model("flashbench-readme");
        (m.card.stop, m.card.announce) = (ns, announce);
        compared(&m, "cmd23=off", "cmd23=on", Load::Linear, 16384, 12, 5).1.unwrap()
    };
    assert_eq!(stop(3_000_000, 0).verdict, Verdict::Faster);
    assert_eq!(stop(0, 3_000_000).verdict, Verdict::Slower);
    assert_eq!(stop(0, 0).verdict, Verdict::NoDifference);
}

/// What a card lacks cannot be switched: said, and nothing is compared.
#[test]
fn a_switch_that_is_not_there_is_named() {
    let stop = AtomicBool::new(false);
    let mut device = SimDevice::new(&model("toshiba-emmc"), 1);
    let plan = Plan {
        settings: ["cache=off".parse().unwrap(), "cache=on".parse().unwrap()],
        load: Load::Random,
        size: 4096,
        count: 8,
        pairs: 8,
        region: 0..device.geometry().size,
        seed: 1,
        deadline: Nanos(u64::MAX),
        stop: &stop,
    };
    let wrong = ab::run(&plan, &mut device, &mut |_| Ok(()), &mut |_| {}).unwrap_err().to_string();
    assert!(wrong.contains("no write cache"), "{wrong}");
    // A card that has one is switched, and left as it was.
    let mut device = SimDevice::new(&model("modern-a2-128gb"), 1).with_content();
    let (run, kept) = ab::run(&plan, &mut device, &mut |_| Ok(()), &mut |_| {}).unwrap();
    assert!(device.switch_cache(true).unwrap(), "it is on again");
    assert_eq!(run.ended, Ended::Complete);
    assert!(kept.checked[0] > 0 && kept.checked[1] > 0 && kept.wrong == [0, 0], "{kept:?}");
}

/// The check of the data: right on cards that keep what is written, whatever is switched; wrong on cards that do not.
#[test]
fn data_written_under_both_settings_are_read_back() {
    let go = |m: &Model, a: &str, b: &str, load| {
        let stop = AtomicBool::new(false);
        let mut device = SimDevice::new(m, 3).with_content();
        let plan = Plan {
            settings: [a.parse().unwrap(), b.parse().unwrap()],
            load,
            size: 16384,
            count: 8,
            pairs: 8,
            region: 0..device.geometry().size,
            seed: 3,
            deadline: Nanos(u64::MAX),
            stop: &stop,
        };
        ab::run(&plan, &mut device, &mut |_| Ok(()), &mut |_| {}).unwrap().1
    };
    for (a, b) in [("queue=off", "queue=on"), ("cache=off", "cache=on"), ("default", "discard=on"), ("cmd23=off", "cmd23=on")] {
        for load in [Load::Linear, Load::Random] {
            let card = if a.starts_with("cmd23") { "flashbench-readme" } else { "modern-a2-128gb" };
            let kept = go(&model(card), a, b, load);
            assert!(kept.wrong == [0, 0] && kept.checked.iter().all(|&n| n > 0), "{a} {b} on {card}: {kept:?}");
            let mut broken = model(card);
            (broken.card.keeps, broken.card.fails_every) = (nandscope_sim::model::Keeps::Zeros, 8);
            let kept = go(&broken, a, b, load);
            assert!(kept.wrong.iter().all(|&n| n > 0) && kept.first[0].is_some(), "{a} {b}: {kept:?}");
        }
    }
}

/// A discard of a few KiB that takes what lies beside it along shows in the data, on the side that discards; a healthy card shows nothing.
#[test]
fn a_discard_that_harms_its_neighbours_is_found() {
    for (name, size) in [("flashbench-readme", 64 << 10), ("usb-stick", 32 << 10)] {
        for (a, b, side) in [("discard=off", "discard=on", 1), ("discard=on", "discard=off", 0)] {
            let stop = AtomicBool::new(false);
            let go = |harm: u64| {
                let mut m = model(name);
                m.card.discard_harms = harm;
                let mut device = SimDevice::new(&m, 5).with_content();
                let plan = Plan {
                    settings: [a.parse().unwrap(), b.parse().unwrap()],
                    load: Load::Linear,
                    size,
                    count: 8,
                    pairs: 8,
                    region: 0..device.geometry().size,
                    seed: 5,
                    deadline: Nanos(u64::MAX),
                    stop: &stop,
                };
                let (run, kept) = ab::run(&plan, &mut device, &mut |_| Ok(()), &mut |_| {}).unwrap();
                assert_eq!(ab::pairs(&run).len(), 8, "what is tried at the end is timed with nothing");
                kept
            };
            let (healthy, harmed) = (go(0), go(16 << 10));
            assert!(healthy.wrong == [0, 0] && healthy.checked.iter().all(|&n| n > 0), "{name}: {healthy:?}");
            assert!(harmed.wrong[side] > 0 && harmed.wrong[1 - side] == 0, "{name}, {a} against {b}: {harmed:?}");
        }
    }
}

/// Published figures of cards with the command queue on and off (bretmlw/sbc-benchmarks): 4 and 8 KiB random accesses by fio, and three
/// runs of Raspberry Pi's card test. "2.7 times faster" and "no difference" are told apart, at 95 %.
#[test]
fn a_queue_that_helps_and_one_that_does_not_are_told_apart() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/published/queue-on-off");
    let table = |name: &str| -> Option<Vec<Vec<String>>> {
        let text = std::fs::read_to_string(dir.join(name)).ok()?;
        Some(text.lines().filter(|l| !l.starts_with('#')).skip(1).map(|l| l.split('\t').map(str::to_string).collect()).collect())
    };
    let (Some(fio), Some(runs)) = (table("fio.tsv"), table("agnostics.tsv")) else {
        skip::skipped("published figures of a queue on and off", "they are not beside the repository");
        return;
    };
    let pairs = |card: &str| -> Vec<(f64, f64)> {
        // Figure by key, for each state of the queue.
        let mut all: std::collections::BTreeMap<String, [Option<f64>; 2]> = Default::default();
        let mut put = |key: String, queue: &str, iops: &str| {
            all.entry(key).or_default()[usize::from(queue == "on")] = iops.parse().ok().filter(|v| *v > 0.0);
        };
        for r in fio.iter().filter(|r| r[0] == card && r[2].starts_with("rand") && ["4096", "8192"].contains(&r[3].as_str())) {
            put(format!("{} {}", r[2], r[3]), &r[1], &r[5]);
        }
        for r in runs.iter().filter(|r| r[0] == card && r[3].starts_with("rand")) {
            put(format!("{} run {}", r[3], r[2]), &r[1], if r[3].ends_with("write") { &r[7] } else { &r[5] });
        }
        // Seconds an access takes, off and on.
        all.values().filter_map(|v| Some((1.0 / v[0]?, 1.0 / v[1]?))).collect()
    };
    for (card, times) in [("Sandisk Extreme 64GB", 2.46), ("Sandisk Extreme PRO 128GB", 2.47), ("Raspberry Pi 32GB", 1.33)] {
        let e = compare(&pairs(card), 0.05, 0.03).unwrap();
        assert!(e.pairs >= 9 && e.verdict == Verdict::Faster, "{card}: {e:?}");
        assert!((1.0 / e.ratio - times).abs() < 0.1, "{card}: {:.2} times faster: {e:?}", 1.0 / e.ratio);
    }
    for card in ["Amazon Basics 64GB", "Amazon Basics 128GB", "Raspberry Pi 64GB"] {
        let e = compare(&pairs(card), 0.05, 0.03).unwrap();
        assert!(!matches!(e.verdict, Verdict::Faster | Verdict::Slower), "{card}: {e:?}");
        // Ten figures that vary by up to 10 % from run to run decide within that.
        assert_eq!(compare(&pairs(card), 0.05, 0.1).unwrap().verdict, Verdict::NoDifference, "{card}: {e:?}");
    }
}
