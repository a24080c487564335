//! The experiment `write-trace` and busy traces on simulated cards, against what the models say (C10 to C18).

use nandscope::device::{Device, SimDevice};
use nandscope::experiment::run::{Limits, run};
use nandscope::experiment::{self, Setup};
use nandscope::finding::{Finding, Findings, Quantity};
use nandscope::infer::rewrite::infer_trace;
use nandscope::samples::{Ended, firmware};
use nandscope::units::Nanos;
use nandscope_sim::{Model, cards};
use std::sync::atomic::AtomicBool;

fn findings(model: &Model, seed: u64) -> Vec<Finding> {
    let exp = experiment::by_name("write-trace").unwrap();
    let mut device = SimDevice::new(model, seed);
    let geometry = device.geometry().clone();
    let known = Findings::default();
    let region = 0..model.truth().real_capacity.min(geometry.size);
    let setup = Setup { geometry: &geometry, region, known: &known };
    let stop = AtomicBool::new(false);
    let limits = Limits { deadline: Nanos(1_800_000_000_000), stop: &stop, seed };
    let run = run(exp, &setup, &mut device, &limits, &mut |_| {});
    assert!(!matches!(run.ended, Ended::Failed(_)), "{}: {:?}", model.name, run.faults);
    exp.infer(&run)
}

fn value(all: &[Finding], q: Quantity) -> Option<f64> {
    all.iter().find(|f| f.quantity == q).and_then(Finding::number)
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
