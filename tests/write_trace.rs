//! The experiment `write-trace` and busy traces on simulated cards, against what the models say (C10 to C18).

#[path = "boards/run.rs"]
mod boards;

use nandscope::device::{Device, Machine, SimDevice};
use nandscope::experiment::run::{Limits, run};
use nandscope::experiment::{self, Setup};
use nandscope::finding::{Finding, Findings, Quantity};
use nandscope::infer::rewrite::infer_trace;
use nandscope::samples::busy::Trace;
use nandscope::samples::{Ended, firmware};
use nandscope::units::Nanos;
use nandscope::workload::library::Library;
use nandscope::workload::records::{Plan, run as bench};
use nandscope::workload::traced::Traced;
use nandscope_sim::model::FtlKind;
use nandscope_sim::{Model, cards};
use std::sync::atomic::AtomicBool;

fn findings(model: &Model, seed: u64) -> Vec<Finding> {
    let exp = experiment::by_name("write-trace").unwrap();
    let mut device = SimDevice::new(model, seed);
    let geometry = device.geometry().clone();
    let known = Findings::default();
    let region = 0..model.truth().real_capacity.min(geometry.size);
    let setup = Setup { geometry: &geometry, region, known: &known, runs: &[], writes: u64::MAX };
    let stop = AtomicBool::new(false);
    let limits = Limits { deadline: Nanos(1_800_000_000_000), stop: &stop, seed };
    let run = run(exp, &setup, &mut device, &limits, &mut |_| {});
    assert!(!matches!(run.ended, Ended::Failed(_)), "{}: {:?}", model.name, run.faults);
    exp.infer(&run)
}

fn value(all: &[Finding], q: Quantity) -> Option<f64> {
    all.iter().find(|f| f.quantity == q).and_then(Finding::number)
}

/// What is decided must be what the model does: a rewrite policy only where there is none of the translation layers with a log,
/// the buffer's size, a fast start.
fn judge(model: &Model, all: &[Finding], wrong: &mut Vec<String>) {
    let through = model.ftl.kind == FtlKind::WriteThrough;
    let policy = if !through {
        0.0
    } else if model.ftl.through.buffer == 0 {
        1.0
    } else {
        2.0
    };
    for f in all.iter().filter(|f| f.value.is_some()) {
        let v = f.number().unwrap_or(0.0);
        let right = match f.quantity {
            Quantity::RewritePolicy => v == policy,
            Quantity::WriteBuffer => {
                v == model.ftl.through.buffer as f64 || v == model.nand.write_unit as f64 || v == model.ftl.page.unit as f64
            }
            Quantity::RewriteMs | Quantity::ChipClass => through,
            Quantity::FatZone => v == model.truth().fat_zone as f64,
            _ => false,
        };
        if !right {
            wrong.push(format!("{}: {:?} {v} at {:.2}: {:?}", model.name, f.quantity, f.confidence, f.evidence));
        }
    }
}

#[test]
fn chans_cards_are_told_apart() {
    let of = |name: &str| findings(&Model::parse(cards::text(name).unwrap(), name).unwrap(), 3);
    let small = of("chan-sdc-128mb");
    assert_eq!((value(&small, Quantity::RewritePolicy), value(&small, Quantity::ChipClass)), (Some(1.0), Some(1.0)), "{small:#?}");
    let large = of("chan-sdc-512mb");
    assert_eq!((value(&large, Quantity::RewritePolicy), value(&large, Quantity::WriteBuffer)), (Some(2.0), Some(4096.0)), "{large:#?}");
    assert_eq!((value(&large, Quantity::ChipClass), value(&large, Quantity::FatZone)), (Some(2.0), Some(524_288.0)), "{large:#?}");
    let ratio = value(&large, Quantity::RewriteMs).unwrap() / value(&small, Quantity::RewriteMs).unwrap();
    assert!((7.0..9.0).contains(&ratio), "C15: 8 times longer, not {ratio}");
}

#[test]
fn no_card_is_told_what_it_is_not() {
    let mut wrong = vec![];
    for (name, text) in cards::ALL {
        let model = Model::parse(text, name).unwrap();
        judge(&model, &findings(&model, 5), &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn random_cards_are_not_told_what_they_are_not() {
    let (mut wrong, mut n) = (vec![], 0);
    for seed in 0..40 {
        let model = nandscope_sim::random::card(seed);
        let all = findings(&model, seed);
        n += all.iter().filter(|f| f.value.is_some()).count();
        judge(&model, &all, &mut wrong);
    }
    assert!(wrong.len() * 20 <= n, "{} of {n} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// C10 to C14: the trace of a simulated card, printed, read again, and judged.
#[test]
fn a_printed_busy_trace_tells_the_same() {
    for (name, policy, buffer) in [("chan-sdc-128mb", 1.0, None), ("chan-sdc-512mb", 2.0, Some(4096.0))] {
        let model = Model::parse(cards::text(name).unwrap(), name).unwrap();
        let mut device = SimDevice::new(&model, 1);
        let machine = Machine::of(&model).unwrap();
        let mut traced = Traced::new(&mut device, machine.poll);
        let mut file = Library::new(&mut traced, machine);
        let plan = Plan { file: 200 * 2048, read: false, ..Plan::new(2048) };
        bench(&mut file, &plan, &AtomicBool::new(false), &mut |_, _, _| {}).unwrap();
        let trace = Trace { poll_ns: Some(machine.poll.0), transactions: traced.transactions, damaged: 0 };
        let read = Trace::parse(&trace.print()).unwrap();
        assert_eq!(read, trace);
        let all = infer_trace(&read);
        assert_eq!((value(&all, Quantity::RewritePolicy), value(&all, Quantity::WriteBuffer)), (Some(policy), buffer), "{all:#?}");
    }
}

/// The C example of the line protocol, compiled and read.
#[test]
fn the_firmware_example_is_understood() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("example");
    let cc = std::process::Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-o"])
        .arg(&program)
        .args(["firmware/example.c", "firmware/nandscope.c"])
        .status();
    if cc.is_err() {
        println!("skipped: the C example: there is no C compiler");
        return;
    }
    assert!(cc.is_ok_and(|s| s.success()), "the example compiles without a warning");
    let out = std::process::Command::new(&program).output().unwrap().stdout;
    assert!(firmware::is_log(&out));
    let log = firmware::parse(&String::from_utf8(out).unwrap());
    assert_eq!((log.host.as_str(), log.poll_ns, log.passes[0].records), ("atmega64-9mhz-spi", Some(4900), 64));
    assert!(log.notes.iter().all(|n| !n.contains("damaged") && !n.contains("missing") && !n.contains("cut off")), "{:?}", log.notes);
    let all = infer_trace(&log.busy[0].1);
    assert_eq!((value(&all, Quantity::WriteBuffer), value(&all, Quantity::ChipClass)), (Some(4096.0), Some(2.0)), "{all:#?}");
}
