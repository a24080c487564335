//! A twin fitted to the report of a default probe: what it predicts of workloads that no experiment resembles, what is no card, and
//! reports that cannot be used.

#[path = "../examples/twin_bars/workloads.rs"]
mod workloads;

use nandscope::device::{Access, Device, Fill, Op, SimDevice};
use nandscope::experiment::{self, Experiment};
use nandscope::probe::{Plan, probe};
use nandscope::saved::{Report, bare};
use nandscope::twin::check::{Checked, check};
use nandscope::twin::{Asked, Data, Twin, TwinError, fit};
use nandscope::units::Nanos;
use nandscope_sim::trace::Io;
use nandscope_sim::{Model, Rng, cards};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

fn report(m: &Model, seed: u64) -> Report {
    report_of(m, seed, experiment::probing())
}

fn report_of(m: &Model, seed: u64, experiments: Vec<&'static dyn Experiment>) -> Report {
    let mut device = SimDevice::new(m, seed).with_stamps();
    let (size, stop) = (m.card.capacity, AtomicBool::new(false));
    let plan = Plan { experiments, region: 0..size, time: Nanos::from_secs_f64(1800.0), writes: 8 << 30, seed, stop: &stop };
    let (runs, findings) = probe(&mut device, &plan, &mut |_| {});
    let mut r = bare(vec![]);
    (r.target.size, r.runs, r.findings) = (size, runs, findings);
    r.target.path = m.name.clone();
    r
}

fn twin(reports: &[Report]) -> Result<Twin, TwinError> {
    let named: Vec<(String, Report)> = reports.iter().enumerate().map(|(i, r)| (format!("{i}.json"), r.clone())).collect();
    let stop = AtomicBool::new(false);
    fit(&Data::of(&named)?, Asked { seed: 1, time: Duration::from_secs(600), stop: &stop, tell: &mut |_, _| {} })
}

fn built_in(name: &str) -> Model {
    Model::parse(cards::text(name).unwrap(), name).unwrap()
}

fn measured(m: &Model, ios: &[Io]) -> Vec<Io> {
    let mut device = SimDevice::new(m, 1).with_stamps();
    let op = |o: nandscope_sim::Op| if o == nandscope_sim::Op::Read { Op::Read } else { Op::Write(Fill::Random(1)) };
    let one = |io: &Io| {
        let t = device.access(Access { op: op(io.op), at: io.at, len: io.len }).unwrap();
        Io { time: t.start.0, took: t.took.0.max(1), ..*io }
    };
    ios.iter().map(one).collect()
}

/// All workloads of a card, held against its twin.
fn held(m: &Model, t: &Twin) -> Vec<(&'static str, Checked)> {
    let all = workloads::all(m.card.capacity, m.card.sector, 7).into_iter();
    all.map(|(name, ios)| (name, check(&t.model, &[], &measured(m, &ios), 1).unwrap())).collect()
}

/// Eight workloads on built-in cards of several mappings.
#[test]
fn a_twin_predicts_what_was_not_measured() {
    for name in ["flashbench-readme", "tlc-12mib", "usb-stick"] {
        let m = built_in(name);
        let t = twin(&[report(&m, 1)]).unwrap();
        assert!(t.no_card.is_none() && t.explained > 0.98, "{name}: {:?} {}", t.no_card, t.explained);
        // What is written as a file is the model that was checked.
        let again = Model::parse(&t.toml(), "twin").unwrap();
        assert_eq!(again.to_toml(), t.model.to_toml(), "{name}");
        for (what, c) in held(&m, &t) {
            assert!(c.throughput_error.abs() < 0.05 && c.within_tenth > 0.85, "{name}, {what}: {c:?}");
        }
    }
}

/// A microcontroller that asks for each sector by itself, and a card whose every rewrite erases: what always comes together counts once.
#[test]
fn rewrites_of_a_buffer_behind_a_microcontroller_are_found() {
    let m = built_in("sandisk-c2-2gb");
    let t = twin(&[report(&m, 1)]).unwrap();
    for (what, c) in held(&m, &t) {
        assert!(c.throughput_error.abs() < 0.02 && c.within_tenth > 0.95, "{what}: {c:?}");
    }
}

/// A default probe writes no AU from its start again; `access-kinds` does.
#[test]
fn a_log_begun_anew_is_found_where_an_experiment_shows_it() {
    let mut m = built_in("flashbench-readme");
    m.ftl.block.restarts = true;
    let kinds = experiment::by_name("access-kinds").unwrap();
    let all = experiment::probing().into_iter().chain([kinds]).collect();
    let with = twin(&[report_of(&m, 1, all)]).unwrap();
    assert!(with.model.ftl.block.restarts, "{:?}", with.structure);
    for (name, c) in held(&m, &with) {
        assert!(c.throughput_error.abs() < 0.04, "{name}: {c:?}");
    }
}

/// A page-mapped card whose map does not fit in memory: what was changed is saved before it gives way, and a unit is collected from its start on.
#[test]
fn small_writes_of_a_page_mapped_card_are_found() {
    let text = "name = \"pages\"\n[host]\ncommand = \"200 us\"\nrate = \"20 MB/s\"\n[card]\ncapacity = \"2 GiB\"\ncombine = true\ncombine_starts = true\n\
                [nand]\npage = \"16 KiB\"\nerase_block = \"4 MiB\"\nsense = \"60 us\"\nprogram = \"1300 us\"\nrest_rate = \"40 MB/s\"\ncopy = \"1500 us\"\n\
                erase = \"4 ms\"\n[ftl]\nkind = \"page-map\"\nover_provisioning = 0.1\nmap_span = \"4 MiB\"\nmap_cache = \"16 MiB\"\n\
                map_miss = \"150 us\"\nmap_save = \"1400 us\"\n";
    let m = Model::parse(text, "pages").unwrap();
    let t = twin(&[report(&m, 1)]).unwrap();
    let (card, page) = (&t.model.card, &t.model.ftl.page);
    assert!(card.combine_starts && page.map_save > 5 * page.map_miss, "{:?}\n{:?}", t.structure, t.costs);
    for (what, c) in held(&m, &t) {
        assert!(c.throughput_error.abs() < 0.05 && c.within_tenth > 0.85, "{what}: {c:?}");
    }
}

/// What a card does now and then is no stall that comes with the bytes: wear levelling moves a block after so many erasures, and the answers of a USB reader wait for
/// its next microframe. One default probe has too few merges to show it: two do.
#[test]
fn wear_levelling_and_the_tick_of_a_reader_are_found() {
    let mut m = built_in("flashbench-readme");
    (m.wear.static_every, m.host.tick) = (23, 125_000);
    let t = twin(&[report(&m, 1), report(&m, 2)]).unwrap();
    assert_eq!((t.model.wear.static_every, t.model.host.tick), (23, 125_000), "{:?}", t.structure);
    assert!(t.no_card.is_none() && t.model.stall.is_empty(), "{:?} {:?}", t.no_card, t.model.stall);
}

/// The same seed gives the same twin; several reports of one card are fitted together, those of two cards are refused.
#[test]
fn reports_together_and_again() {
    let m = built_in("flashbench-readme");
    let (a, b) = (report(&m, 1), report(&m, 2));
    let (one, again, both) =
        (twin(std::slice::from_ref(&a)).unwrap(), twin(std::slice::from_ref(&a)).unwrap(), twin(&[a.clone(), b]).unwrap());
    assert_eq!(one.toml(), again.toml());
    assert!(both.accesses > one.accesses + 1000 && both.no_card.is_none());
    assert_eq!(both.model.nand.erase_block, one.model.nand.erase_block);
    let other = twin(&[a, report(&built_in("usb-stick"), 1)]).unwrap_err().to_string();
    assert!(other.contains("give reports of one card"), "{other}");
}

/// Runs that were copied into a report again were measured once: the twin is the same, and no surer.
#[test]
fn copied_runs_count_once() {
    let mut r = report(&built_in("flashbench-readme"), 3);
    let once = twin(std::slice::from_ref(&r)).unwrap();
    let runs = r.runs.clone();
    (0..6).for_each(|_| r.runs.extend(runs.iter().cloned()));
    let copied = twin(&[r]).unwrap();
    assert_eq!((copied.accesses, copied.toml()), (once.accesses, once.toml()));
    assert_eq!(copied.none_of_these, once.none_of_these);
}

/// Requests that overlap in a queue are no access after the other, and say nothing of what one costs.
#[test]
fn a_longer_probe_has_the_same_twin() {
    for (name, seed) in [("toshiba-emmc", 1), ("flashbench-readme", 2)] {
        let m = built_in(name);
        let longer = report_of(&m, seed, experiment::probing_within(Some(Nanos::from_secs_f64(1200.0))));
        assert!(longer.runs.iter().any(|r| r.experiment == "queue-depth"), "{name}");
        let t = twin(&[longer]).unwrap();
        assert!(t.no_card.is_none(), "{name}: {:?}", t.no_card);
        assert_eq!(t.model.nand.erase_block, m.nand.erase_block, "{name}");
    }
}

/// Times as a loop device over a file, a RAM disk or an SSD have them: by size alone, with a long tail and what caches do. No twin.
#[test]
fn what_is_no_card_gets_none() {
    let m = built_in("flashbench-readme");
    for (kind, base, byte, tail) in [("RAM disk", 900.0, 0.05, 40), ("loop device", 9_000.0, 0.3, 12), ("SSD", 60_000.0, 0.5, 25)] {
        let mut r = report(&m, 1);
        let mut rng = Rng::new(5, 1);
        for s in r.runs.iter_mut().flat_map(|run| &mut run.samples) {
            let jitter = 1.0 + 0.1 * (rng.below(1000) as f64 / 1000.0).powi(2);
            let late = if rng.below(tail) == 0 { 1.0 + rng.below(20) as f64 } else { 1.0 };
            s.took = Nanos(((base + byte * s.len as f64) * jitter * late) as u64);
        }
        match twin(&[r]) {
            Ok(t) => {
                let why = t.no_card.as_deref().unwrap_or_else(|| panic!("{kind}: {:?}", t.structure));
                assert!(why.contains("no flash card"), "{kind}: {why}");
            }
            Err(TwinError::NoCard(_)) => {}
            Err(e) => panic!("{kind}: {e}"),
        }
    }
}

/// Reports that hold too little or what cannot be are errors that say so.
#[test]
fn reports_that_cannot_be_used() {
    let whole = report(&built_in("flashbench-readme"), 1);
    let of = |change: &dyn Fn(&mut Report)| {
        let mut r = whole.clone();
        change(&mut r);
        match twin(&[r]) {
            Err(e) => e.to_string(),
            Ok(t) => format!("a twin: {:?}", t.no_card),
        }
    };
    assert!(of(&|r| r.runs.clear()).contains("no accesses were saved"));
    assert!(of(&|r| r.runs.iter_mut().for_each(|x| x.samples.truncate(3))).contains("at least 60"));
    assert!(of(&|r| r.runs[0].samples[0].at = u64::MAX - 511).contains("not part of a card"));
    assert!(of(&|r| r.runs[0].samples[0].took = Nanos(u64::MAX)).contains("cannot have"));
    assert!(of(&|r| r.runs.iter_mut().flat_map(|x| &mut x.samples).for_each(|s| s.took = Nanos(0))).contains("answers at once"));
}
