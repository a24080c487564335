//! The experiment `multi-block` on the built-in cards, through the command interface of the simulated ones.

mod common;

use nandscope::device::{Access, Device, Fill, Machine, Op, SimDevice};
use nandscope::finding::{Finding, Quantity};
use nandscope::infer::pipeline;
use nandscope::samples::{Ended, Run, SINGLE_ONLY};
use nandscope::units::Bytes;
use nandscope::workload::library::Library;
use nandscope::workload::records::{Plan, run as bench};
use nandscope_sim::model::{Host, Profile};
use nandscope_sim::{Model, cards};
use std::sync::atomic::AtomicBool;

#[test]
fn it_runs_on_every_simulated_card() {
    let mut decided = 0;
    for (name, text) in cards::ALL {
        let model = Model::parse(text, name).unwrap();
        let run = common::run_alone("multi-block", &model, 5, 1800);
        assert!(!matches!(run.ended, Ended::Failed(_)), "{name}: {:?}", run.faults);
        for f in pipeline::of_run(&run) {
            decided += u32::from(f.value.is_some());
            assert!(f.value.is_some() || f.reason.is_some(), "{name}: {f:?}");
            // What the model limits must not be exceeded, and where it limits nothing no cut is found.
            if f.quantity == Quantity::LargestRequest {
                let limit = if run.faults.iter().any(|f| f.contains(SINGLE_ONLY)) { 512 } else { model.host.max_request };
                let said = f.number().or(f.at_least.map(|n| n.0)).unwrap_or(0.0);
                assert!(limit == 0 || said <= limit as f64, "{name}: {f:?}");
                assert!(limit != 0 || f.number().is_none(), "{name} cuts nothing: {f:?}");
            }
        }
    }
    assert!(decided > cards::ALL.len() as u32, "{decided}");
}

fn measured(model: &Model, seed: u64) -> Vec<Finding> {
    pipeline::of_run(&run_of(model, seed))
}

fn run_of(model: &Model, seed: u64) -> Run {
    common::run_alone("multi-block", model, seed, 7200)
}

fn found(all: &[Finding], q: Quantity) -> &Finding {
    all.iter().find(|f| f.quantity == q).unwrap()
}

fn card(name: &str) -> Model {
    Model::parse(cards::text(name).unwrap(), name).unwrap()
}

/// The longest transaction that the experiment wrote, from its own evidence.
fn longest(f: &Finding) -> u64 {
    let text = f.evidence[0].split(" with ").nth(1).unwrap().split(" in one").next().unwrap();
    text.parse::<Bytes>().unwrap().0
}

/// C22: a gain is what a file written in calls of these sizes gains, on every card with the machine of a published benchmark. The
/// calls of the file library cost 38 to 70 µs each, of writes of 1.2 ms and more: 4 % at most.
#[test]
fn a_gain_is_what_a_file_gains() {
    let mut n = 0;
    for (name, _) in cards::ALL {
        let model = card(name);
        let Some(machine) = Machine::of(&model) else { continue };
        n += 1;
        let run = run_of(&model, 3);
        let all = pipeline::of_run(&run);
        let f = found(&all, Quantity::MultiBlockGain);
        let (gain, [low, high]) = (f.number().expect(name), f.interval.unwrap());
        // No call of a file reaches the card in more than a cluster: of the rates of longer writes that one is taken.
        let length = longest(f).min(Library::new(&mut SimDevice::new(&model, 1), machine).layout().cluster);
        let rates = pipeline::figures(&run).remove(1).series.into_iter().find(|s| s.name == "by way of the kernel").unwrap().points;
        let rate = |len: u64| rates.iter().find(|p| p.0 == (len / 512) as f64).unwrap().1;
        let shorter = rate(length) / rate(longest(f));
        let speed = |record: u64| {
            let mut device = SimDevice::new(&model, 4);
            let mut file = Library::new(&mut device, machine);
            let plan = Plan { file: 2_000_000, read: false, ..Plan::new(record) };
            bench(&mut file, &plan, &AtomicBool::new(false), &mut |_, _, _| {}).unwrap()[0].speed()
        };
        let file = speed(length) / speed(512);
        println!("{name}: {gain:.3} ({low:.3} to {high:.3}), file {file:.3}; {:?}", found(&all, Quantity::MultiBlockKnee).evidence);
        assert!(low * shorter * 0.96 <= file && file <= high * shorter * 1.04, "{name}: {f:?}, a file gains {file}, {shorter} of it");
        assert!(f.evidence[0].contains("equal stretches"), "{f:?}");
    }
    assert!(n >= 9, "{n}");
}

/// The same on cards drawn at random behind such machines, against the plain time of a megabyte in one erase block.
#[test]
fn a_gain_is_right_on_random_cards() {
    let (mut n, mut wrong) = (0, vec![]);
    for seed in 0..24 {
        let drawn = nandscope_sim::random::quiet(nandscope_sim::random::card(seed));
        let profile = if seed % 2 == 0 { Profile::Avr16 } else { Profile::Atmega64 };
        let model = Model { host: Host::of(profile), ..drawn };
        let all = measured(&model, seed);
        let f = found(&all, Quantity::MultiBlockGain);
        let Some(gain) = f.number() else { continue };
        let time = |len: u64| {
            let mut device = SimDevice::new(&model, seed);
            let unit = model.nand.erase_block.max(4 << 20);
            let at = (device.geometry().size / 2).next_multiple_of(unit) + model.nand.erase_block_offset;
            let all = (at..at + (1 << 20)).step_by(len as usize);
            all.map(|at| device.access(Access { op: Op::Write(Fill::Random(1)), at, len }).unwrap().took.0).sum::<u64>() as f64
        };
        let (plain, [low, high]) = (time(512) / time(longest(f)), f.interval.unwrap());
        n += 1;
        if !(low * 0.9 <= plain && plain <= high * 1.1) {
            wrong.push(format!("{}: {gain:.3} ({low:.3} to {high:.3}), plain {plain:.3}", model.name));
        }
    }
    println!("{} of {n} wrong: {wrong:?}", wrong.len());
    assert!(n >= 20 && wrong.len() * 20 <= n, "{} of {n}: {}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_card_that_answers_at_once_gains_nothing_that_could_be_said() {
    for f in measured(&card("null"), 1) {
        assert!(f.value.is_none() && f.reason.is_some(), "{f:?}");
        let shown = format!("{f:?}");
        assert!(!shown.contains("NaN") && !shown.contains("inf"), "{shown}");
    }
}

/// Halves below what a card programs at once cost more than a further command does: that is no cut, with any unit, size of a further
/// command and seed.
#[test]
fn halves_of_a_unit_are_no_cut() {
    for (i, unit) in ["64 KiB", "128 KiB", "256 KiB"].into_iter().enumerate() {
        for command in ["80 us", "300 us"] {
            let text = cards::text("sdxc-1tb").unwrap();
            let text = text.replace("access_unit = \"64 KiB\"", &format!("access_unit = \"{unit}\"\nwrite_unit = \"{unit}\""));
            let model = Model::parse(&text.replace("command = \"80 us\"", &format!("command = \"{command}\"")), "units").unwrap();
            let all = measured(&model, 11 + i as u64);
            let f = found(&all, Quantity::LargestRequest);
            assert!(f.number().is_none(), "{unit}, {command}: {f:?}");
        }
    }
}

/// A gain that grows with the length is that of a length, and says so.
#[test]
fn a_gain_that_depends_on_the_length_says_so() {
    let all = measured(&card("chan-sdc-512mb"), 4);
    let f = found(&all, Quantity::PreEraseGain);
    assert!(f.number().is_some_and(|g| g > 5.0) && f.evidence.iter().any(|e| e.contains("the figure is that of 128 KiB")), "{f:?}");
    let all = measured(&card("sandisk-emmc"), 4);
    let f = found(&all, Quantity::PreDefinedGain);
    assert!(f.evidence.iter().any(|e| e.contains("the mean of")), "{f:?}");
}

/// C24: what the models say comes out, and nothing where they say nothing.
#[test]
fn announcing_gains_where_the_card_makes_something_of_it() {
    for (name, q, most) in [
        ("toshiba-emmc", Quantity::PreDefinedGain, 1.3),
        ("sandisk-emmc", Quantity::PreDefinedGain, 1.3),
        ("chan-sdc-128mb", Quantity::PreEraseGain, 1.3),
        ("chan-sdc-512mb", Quantity::PreEraseGain, 30.0),
    ] {
        let model = card(name);
        let with = measured(&model, 2);
        let f = found(&with, q);
        let [low, _] = f.interval.unwrap_or([0.0; 2]);
        println!("{name}: {} {:?}", q.title(), f.interval);
        assert!(low > 1.01 && f.number().is_some_and(|g| g < most), "{name}: {f:?}");
        let mut without = model;
        (without.card.stop, without.card.pre_erase) = (0, false);
        let all = measured(&without, 2);
        let g = found(&all, q).clone();
        assert!(
            g.number().is_some_and(|v| v < 1.01) && g.evidence.iter().any(|e| e == "no difference shows") == (g.number() > Some(0.99)),
            "{name}: {g:?}"
        );
    }
}
