//! Counterfeit cards (U33, U39): found to the byte where they wrap round, to 1 MiB where writes are lost or fail; and cards that are
//! what they say.

mod common;

use nandscope::device::fill::read_stamp;
use nandscope::device::{Access, Device, DeviceError, Fill, Geometry, Op, SimDevice, Timed};
use nandscope::experiment;
use nandscope::experiment::run::{self, Limits};
use nandscope::experiment::{Setup, by_name};
use nandscope::finding::{Finding, Findings, Quantity, STOPPED};
use nandscope::infer::beliefs::Beliefs;
use nandscope::infer::capacity::stretch;
use nandscope::infer::pipeline;
use nandscope::probe::{Plan, probe};
use nandscope::units::Nanos;
use nandscope_sim::model::{Beyond, Keeps};
use nandscope_sim::{Model, cards, unusual};
use std::ops::Range;
use std::sync::atomic::AtomicBool;

const MIB: u64 = 1 << 20;

fn found(mut device: SimDevice, region: Option<Range<u64>>, time: f64) -> Finding {
    let stop = AtomicBool::new(false);
    let region = region.unwrap_or(0..nandscope::device::Device::geometry(&device).size);
    let experiments = vec![by_name("capacity").unwrap()];
    let plan = Plan { experiments, region, time: Nanos::from_secs_f64(time), writes: 1 << 30, seed: 1, stop: &stop };
    let (_, findings) = probe(&mut device, &plan, &mut |_| {});
    findings.get(Quantity::Capacity).unwrap().clone()
}

fn card(name: &str, real: u64, beyond: Beyond) -> Model {
    let mut m = Model::parse(cards::text(name).unwrap(), name).unwrap();
    m.card.real_capacity = if real > 0 { real } else { m.card.capacity };
    m.card.beyond = beyond;
    m
}

#[test]
fn the_flash_of_a_counterfeit_is_measured() {
    // No power of two, no multiple of anything that is written.
    for real in [700 * MIB + 12 * 512, 1024 * MIB, 5000 * MIB + 512] {
        let wraps = found(SimDevice::new(&card("modern-a1-32gb", real, Beyond::Wrap), 1).with_stamps(), None, 60.0);
        assert_eq!(wraps.number(), Some(real as f64), "{wraps:?}");
        for beyond in [Beyond::Drop, Beyond::Error] {
            let f = found(SimDevice::new(&card("modern-a1-32gb", real, beyond), 1).with_stamps(), None, 60.0);
            let [low, high] = f.interval.unwrap();
            assert!(low <= real as f64 + 4096.0 && real as f64 <= high && high - low <= MIB as f64, "{beyond:?} {real}: {f:?}");
            assert!((f.number().unwrap() - real as f64).abs() <= MIB as f64, "{f:?}");
        }
    }
}

#[test]
fn a_card_is_what_it_says_as_far_as_it_was_tried() {
    let model = card("modern-a1-32gb", 0, Beyond::Wrap);
    let size = model.card.capacity as f64;
    let whole = found(SimDevice::new(&model, 1).with_stamps(), None, 60.0);
    assert_eq!(whole.number(), Some(size), "{whole:?}");
    let part = found(SimDevice::new(&model, 1).with_stamps(), Some(64 * MIB..1024 * MIB), 60.0);
    assert!(part.value.is_none() && part.at_least.is_some_and(|a| a.0 > 1e9 && a.0 <= (1024 * MIB) as f64), "{part:?}");
    let cut = found(SimDevice::new(&model, 1).with_stamps(), None, 0.8);
    assert!(cut.value.is_none(), "{cut:?}");
    let forgets = found(SimDevice::new(&model, 1), None, 60.0);
    assert!(forgets.value.is_none() && forgets.reason.as_ref().is_some_and(|r| r.contains("keeps no content")), "{forgets:?}");
}

/// What other experiments write over between the time's end and the going on is not lost: the search that was cut anywhere ends as one that
/// was not, on a card that is what it says; and a counterfeit is never taken for one. What it wrote then is on the card, byte for byte.
/// A region past the flash of a card that wraps round keeps what is written to it, and says nothing of what lies in front of it.
#[test]
fn a_region_shows_no_more_than_its_own_length() {
    let model = Model::parse(cards::text("fake-wrap-32gb").unwrap(), "x").unwrap();
    let far = found(SimDevice::new(&model, 1).with_stamps(), Some(20480 * MIB..21504 * MIB), 60.0);
    assert!(far.value.is_none() && far.at_least.is_none_or(|a| a.0 <= (1024 * MIB) as f64), "{far:?}");
}

#[test]
fn what_others_wrote_over_is_not_lost() {
    let (mut cut, mut compared, mut whole) = (0, 0, 0);
    for (name, real, beyond) in [
        ("toshiba-emmc", 0, Beyond::Wrap),
        ("toshiba-emmc", 3000 * MIB, Beyond::Wrap),
        ("toshiba-emmc", 3000 * MIB, Beyond::Drop),
        ("olpc-c-8gb", 0, Beyond::Wrap),
        ("olpc-c-8gb", 2900 * MIB + 512, Beyond::Wrap),
    ] {
        let model = card(name, real, beyond);
        // From before the first mark is read to beyond the end of the search.
        for k in 0..29u32 {
            let time = 0.06 * 1.19f64.powi(k as i32);
            let over = [Fill::Zeros, Fill::Random(u64::from(k)), Fill::Stamp(u64::from(k))][k as usize % 3];
            let mut device = SimDevice::new(&model, 3 + u64::from(k)).with_stamps();
            let (exp, stop, believed) = (by_name("capacity").unwrap(), AtomicBool::new(false), Beliefs::default());
            let geometry = device.geometry().clone();
            let setup = Setup { geometry: &geometry, region: 0..geometry.size, believed: &believed, writes: 1 << 30 };
            let limits = |d: &SimDevice, secs: f64| Limits { deadline: d.now() + Nanos::from_secs_f64(secs), stop: &stop, seed: 1 };
            let first = limits(&device, time);
            let run = run::run(exp, &setup, &mut device, &first, &mut |_| {});
            for s in run.samples.iter().filter(|s| matches!(s.op, Op::Write(_)) && s.len > 0) {
                device.access(Access { op: Op::Write(over), at: s.at, len: s.len }).unwrap();
            }
            let before = run.samples.len();
            let second = limits(&device, 120.0);
            let run = run::go_on(exp, run, &setup, &mut device, &second, &mut |_| {});
            cut += u32::from(run.samples.len() > before);
            let said = pipeline::of_run(&run);
            let f = said.iter().find(|f| f.quantity == Quantity::Capacity).unwrap();
            let size = geometry.size as f64;
            // Cut at once, the stretch that was written is so short that looking for it everywhere takes longer than this: a bound is said.
            let planned = run.cells[0].set["stretch"] as u64;
            let ends = stretch(&run).is_some_and(|(_, len)| len * 2 >= planned) || f.at_least.is_none();
            whole += u32::from(real == 0 && ends);
            match real {
                0 if ends => assert_eq!(f.number(), Some(size), "{name} cut after {time} s, {over:?}: {f:?}"),
                0 => assert!(f.at_least.is_some_and(|b| b.0 <= size), "{name} cut after {time} s, {over:?}: {f:?}"),
                _ => assert!(
                    f.number().is_none_or(|n| (n - real as f64).abs() <= MIB as f64),
                    "{name} {beyond:?} cut after {time} s, {over:?}: {f:?}"
                ),
            }
            let there = |s: &&nandscope::samples::Sample| matches!(s.op, Op::Write(_)) && (real == 0 || s.at + s.len <= real);
            for s in run.samples[before..].iter().filter(there) {
                let mut is = vec![0; s.len as usize];
                device.load(s.at, &mut is).unwrap();
                for (at, sector) in (s.at..).step_by(512).zip(is.chunks(512)) {
                    let mut should = [0; 512];
                    let stamp = read_stamp(sector);
                    if let Some((_, seed)) = stamp.filter(|s| s.0 == at) {
                        Fill::Stamp(seed).render(at, &mut should);
                    }
                    // Where addresses repeat, what was written to their end may lie here.
                    let repeats = real > 0 && beyond == Beyond::Wrap && stamp.is_some_and(|s| s.0 % real == at);
                    assert!(repeats || sector == should, "{name} {real} {beyond:?} cut after {time} s, {over:?}: other bytes at {at}");
                }
                compared += 1;
            }
        }
    }
    assert!(cut > 60 && compared > 500 && whole > 25, "{cut} were cut, {compared} writes compared, {whole} ended");
}

/// Within a probe the search has time of its own: it is not cut by what others need, and needs few merges, each of which may take long.
#[test]
fn a_counterfeit_is_found_in_a_probe_of_a_minute() {
    let others = ["capacity", "read-boundary"].map(|n| by_name(n).unwrap());
    let mut longest: f64 = 0.0;
    for (name, size, share, beyond) in [
        ("olpc-c-8gb", 8 << 30, 8, Beyond::Wrap),
        ("olpc-c-8gb", 8 << 30, 3, Beyond::Wrap),
        ("olpc-c-8gb", 8 << 30, 8, Beyond::Drop),
        ("olpc-c-8gb", 8 << 30, 5, Beyond::Error),
        ("fake-drop-64gb", 0, 16, Beyond::Wrap),
        ("fake-drop-64gb", 0, 7, Beyond::Drop),
        ("toshiba-emmc", 0, 2, Beyond::Wrap),
        ("flashbench-readme", 0, 4, Beyond::Wrap),
        ("flashbench-readme", 0, 4, Beyond::Drop),
    ] {
        for merge in if share == 8 { vec![30, 500] } else { vec![220] } {
            let mut model = card(name, 0, beyond);
            model.card.capacity = if size > 0 { size } else { model.card.capacity };
            model.card.real_capacity = model.card.capacity / share / 512 * 512;
            model.ftl.block.close = model.ftl.block.close.max(merge * 1_000_000);
            let real = model.card.real_capacity as f64;
            let mut device = SimDevice::new(&model, merge).with_stamps();
            let stop = AtomicBool::new(false);
            let region = 0..model.card.capacity / 512 * 512;
            let plan =
                Plan { experiments: others.to_vec(), region, time: Nanos::from_secs_f64(45.0), writes: 1 << 30, seed: merge, stop: &stop };
            let (runs, findings) = probe(&mut device, &plan, &mut |_| {});
            let f = findings.get(Quantity::Capacity).unwrap();
            let off = if beyond == Beyond::Wrap { 0.0 } else { MIB as f64 };
            assert!(f.number().is_some_and(|c| (c - real).abs() <= off), "{name} {share} {beyond:?} {merge} ms: {f:?}, really {real}");
            let first = &runs[0];
            assert_eq!(first.experiment, "capacity");
            let took = first.samples.iter().map(|s| s.took.secs()).sum::<f64>();
            let scattered = first.samples.iter().filter(|s| s.role == 0 && s.len == 4096).count();
            assert!(took <= 30.0, "{name} {share} {beyond:?} {merge} ms: {took} s");
            assert!(beyond != Beyond::Wrap || scattered <= 2, "{name} {share}: {scattered} scattered writes");
            longest = longest.max(took);
        }
    }
    assert!(longest > 1.0, "{longest}");
}

/// An honest card is tried to the end in a probe of a minute, also where merges take long.
#[test]
fn an_honest_card_is_tried_to_the_end_within_a_probe() {
    let others = ["capacity", "read-boundary"].map(|n| by_name(n).unwrap());
    for (name, merge) in [
        ("olpc-c-8gb", 220),
        ("olpc-a-4gb", 220),
        ("sdxc-64gb", 0),
        ("fake-drop-64gb", 300),
        ("flashbench-readme", 500),
        ("toshiba-emmc", 100),
    ] {
        let mut model = card(name, 0, Beyond::Wrap);
        model.ftl.block.close = model.ftl.block.close.max(merge * 1_000_000);
        let stop = AtomicBool::new(false);
        let region = 0..model.card.capacity / 512 * 512;
        let plan = Plan { experiments: others.to_vec(), region, time: Nanos::from_secs_f64(45.0), writes: 1 << 30, seed: 3, stop: &stop };
        let (_, findings) = probe(&mut SimDevice::new(&model, 5).with_stamps(), &plan, &mut |_| {});
        let f = findings.get(Quantity::Capacity).unwrap();
        assert_eq!(f.number(), Some(model.card.capacity as f64), "{name}: {f:?}");
    }
}

/// What was not tried to the end says so, and what to do; a bound that reads as half a card is not printed.
#[test]
fn a_search_that_is_cut_says_what_to_run() {
    let model = card("modern-a1-32gb", 0, Beyond::Wrap);
    let (mut not_tested, mut no_sign) = (0, 0);
    for time in [0.01, 0.05, 0.1, 0.2, 0.4, 0.8, 1.2] {
        let f = found(SimDevice::new(&model, 1).with_stamps(), None, time);
        let Some(said) = f.instead() else {
            assert!(f.number().is_some(), "{time}: {f:?}");
            continue;
        };
        match said.strip_prefix("not tested, time ran out; run: nandscope run capacity TARGET") {
            Some(about) => {
                not_tested += 1;
                assert!(about.is_empty() || about.starts_with(" (about ") && about.ends_with("0 s)"), "{time}: {said}");
            }
            None => {
                no_sign += 1;
                assert!(said.starts_with("no sign of less than the 29.7 GiB it reports; ") && said.contains(" places checked"), "{said}");
            }
        }
    }
    assert!(not_tested > 0 && no_sign > 0, "{not_tested} {no_sign}");
}

/// The search is cut by its share of the time and goes on: less is told then, and what is told is true.
#[test]
fn a_search_that_is_cut_tells_bounds() {
    let (mut least, mut whole) = (0, 0);
    for beyond in [Beyond::Wrap, Beyond::Drop, Beyond::Error] {
        let real = 5000 * MIB + 512;
        let model = card("olpc-c-8gb", real, beyond);
        for time in [0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0, 40.0] {
            let f = found(SimDevice::new(&model, 1).with_stamps(), None, time);
            if let Some(bound) = &f.at_least {
                assert!(bound.0 <= real as f64, "{beyond:?} after {time} s: {f:?}");
                least += 1;
            }
            if let Some(c) = f.number() {
                let off = if beyond == Beyond::Wrap { 0.0 } else { MIB as f64 };
                assert!((c - real as f64).abs() <= off, "{beyond:?} after {time} s: {f:?}");
                whole += 1;
            }
        }
    }
    assert!(least > 2 && whole > 2, "{least} bounds, {whole} sizes");
}

/// Without the right to write, reads that fail beyond one place still say what is there.
#[test]
fn reads_alone_find_where_a_card_ends_in_errors() {
    use nandscope::device::Device;
    use nandscope::experiment::{Setup, readable};
    use nandscope::infer::beliefs::Beliefs;
    for (name, real) in [("modern-a1-32gb", 700 * MIB), ("olpc-c-8gb", 3 * 1024 * MIB + 4096), ("fake-error-16gb", 2048 * MIB)] {
        for beyond in [Beyond::Error, Beyond::Wrap] {
            let mut device = SimDevice::new(&card(name, real, beyond), 1);
            let geometry = device.geometry().clone();
            let setup = Setup { geometry: &geometry, region: 0..geometry.size, believed: &Beliefs::default(), writes: 0 };
            let run = readable(&mut device, &setup);
            let f = pipeline::of_run(&run).remove(0);
            match beyond {
                Beyond::Error => {
                    assert!((f.number().unwrap() - real as f64).abs() <= MIB as f64, "{name}: {f:?}");
                    assert!(f.evidence[0].starts_with("the card cannot be read beyond about"), "{f:?}");
                }
                _ => assert!(f.value.is_none(), "{f:?}"),
            }
            assert!(run.samples.len() < 60 && run.samples.iter().all(|s| s.op == nandscope::device::Op::Read));
        }
    }
}

/// A probe looks at 24 places, and at fewer, from eight on, where each of them takes a merge.
#[test]
fn places_that_take_merges_are_few() {
    // The Toshiba eMMC opens seven AUs before it merges.
    for (name, places) in [("page-mapped", 24), ("flashbench-readme", 8), ("toshiba-emmc", 9)] {
        let model = card(name, 0, Beyond::Wrap);
        let mut device = SimDevice::new(&model, 1).with_stamps();
        let stop = AtomicBool::new(false);
        let region = 0..model.card.capacity;
        let plan = Plan {
            experiments: experiment::probing().into_iter().filter(|e| e.about().name == "capacity").collect(),
            region: region.clone(),
            time: Nanos::from_secs_f64(60.0),
            writes: 1 << 30,
            seed: 1,
            stop: &stop,
        };
        let (runs, findings) = probe(&mut device, &plan, &mut |_| {});
        assert_eq!(findings.get(Quantity::Capacity).unwrap().number(), Some(region.end as f64));
        let mut kept: Vec<u64> = runs[0].samples.iter().filter(|s| s.role == 1 && s.len == 4096).map(|s| s.at).collect();
        kept.sort();
        kept.dedup();
        // And the one at the far end.
        assert_eq!(kept.len(), places + 1, "{name}");
        let widest = kept.windows(2).map(|w| w[1] - w[0]).max().unwrap();
        assert!(widest < region.end / places as u64 * 2, "{name}: {widest} bytes between two places");
    }
}

/// A simulated card whose accesses go through something first.
struct Through<F> {
    card: SimDevice,
    access: F,
}

impl<F: FnMut(&mut SimDevice, Access) -> Result<Timed, DeviceError> + Send> Device for Through<F> {
    fn geometry(&self) -> &Geometry {
        self.card.geometry()
    }

    fn access(&mut self, a: Access) -> Result<Timed, DeviceError> {
        (self.access)(&mut self.card, a)
    }

    fn now(&self) -> Nanos {
        self.card.now()
    }

    fn idle(&mut self, d: Nanos) {
        self.card.idle(d)
    }

    fn load(&mut self, at: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        self.card.load(at, into)
    }

    fn store(&mut self, at: u64, from: &[u8]) -> Result<(), DeviceError> {
        self.card.store(at, from)
    }
}

/// Some counterfeits keep the last writes past their flash in a part of what they have: the stretch near the front never displaces those.
fn ring(card: SimDevice, flash: u64, holds: u64) -> impl Device {
    let mut kept = std::collections::VecDeque::<(u64, u64)>::new();
    let access = move |card: &mut SimDevice, a: Access| {
        if matches!(a.op, Op::Write(_)) && a.at >= flash {
            kept.retain(|k| k.0 != a.at);
            kept.push_back((a.at, a.len));
            while kept.iter().map(|k| k.1).sum::<u64>() > holds {
                let (at, len) = kept.pop_front().unwrap();
                card.store(at, &vec![0xff; len as usize])?;
            }
        }
        card.access(a)
    };
    Through { card, access }
}

/// At its end a card may answer every write and store none.
fn stops(card: SimDevice, mut takes: u64) -> impl Device {
    const QUICK: Nanos = Nanos(300_000);
    let access = move |card: &mut SimDevice, a: Access| {
        if matches!(a.op, Op::Write(_)) {
            if takes < a.len {
                let start = card.now();
                card.idle(QUICK);
                return Ok(Timed { start, took: QUICK });
            }
            takes -= a.len;
        }
        card.access(a)
    };
    Through { card, access }
}

#[test]
fn a_ring_for_what_lies_past_the_flash_hides_nothing() {
    for (name, part, holds) in [("olpc-c-8gb", 0.3, 1 << 20), ("fake-drop-64gb", 0.12, 1 << 20), ("toshiba-emmc", 0.7, 256 << 10)] {
        let model = card(name, 0, Beyond::Wrap);
        let size = model.card.capacity;
        let flash = (size as f64 * part) as u64 / MIB * MIB;
        let mut device = ring(SimDevice::new(&model, 2).with_stamps(), flash, holds);
        let stop = AtomicBool::new(false);
        let experiments = vec![by_name("capacity").unwrap()];
        let plan = Plan { experiments, region: 0..size, time: Nanos::from_secs_f64(300.0), writes: 1 << 30, seed: 1, stop: &stop };
        let (_, findings) = probe(&mut device, &plan, &mut |_| {});
        let f = findings.get(Quantity::Capacity).unwrap();
        let off = f.number().map(|c| (c - flash as f64).abs());
        assert!(off.is_some_and(|off| off <= MIB as f64) && f.confidence >= 0.75, "{name}: {f:?}, really {flash}");
    }
}

/// What such a ring of some MiB hides at first shows once the other experiments have written past the flash, too. Where it ends is not looked for.
/// On small cards they write over many of the places, which then tell nothing.
#[test]
fn a_larger_ring_shows_once_others_wrote() {
    let whole = 0;
    for (name, size, part, holds) in [
        ("olpc-c-8gb", whole, 0.3, 4 * MIB),
        ("fake-drop-64gb", whole, 0.12, 4 * MIB),
        ("toshiba-emmc", whole, 0.7, 6 * MIB),
        ("toshiba-emmc", 512 * MIB, 0.1, 3 * MIB),
        ("flashbench-readme", 488 * MIB, 0.6, 3 * MIB),
        ("modern-a1-32gb", 1024 * MIB, 0.25, 4 * MIB),
    ] {
        let mut model = card(name, 0, Beyond::Wrap);
        if size > 0 {
            model.card.capacity = size;
        }
        let size = model.card.capacity;
        let probed = |device: &mut dyn Device| {
            let stop = AtomicBool::new(false);
            let time = Nanos::from_secs_f64(60.0);
            let plan = Plan { experiments: experiment::probing(), region: 0..size, time, writes: 1 << 30, seed: 1, stop: &stop };
            probe(device, &plan, &mut |_| {}).1.get(Quantity::Capacity).unwrap().clone()
        };
        let honest = probed(&mut SimDevice::new(&model, 2).with_stamps());
        assert_eq!(honest.number(), Some(size as f64), "{name}: {honest:?}");
        let flash = (size as f64 * part) as u64 / MIB * MIB;
        let f = probed(&mut ring(SimDevice::new(&model, 2).with_stamps(), flash, holds));
        let [low, high] = f.interval.unwrap_or_else(|| panic!("{name}: {f:?}"));
        assert!(f.value.is_none() && low <= flash as f64 && flash as f64 <= high && high < size as f64, "{name}: {f:?}, really {flash}");
        assert!(f.confidence >= 0.75, "{name}: {f:?}");
    }
}

/// It is told by writing a place anew at the end of a probe; what its quick writes looked like is not told.
#[test]
fn a_card_that_takes_no_more_writes_is_named() {
    for (name, takes) in [("modern-a1-32gb", 6 * MIB), ("flashbench-readme", 6 * MIB), ("toshiba-emmc", 12 * MIB)] {
        let model = card(name, 0, Beyond::Wrap);
        let stop = AtomicBool::new(false);
        let region = 0..model.card.capacity;
        let time = Nanos::from_secs_f64(60.0);
        let plan = Plan { experiments: experiment::probing(), region, time, writes: 1 << 30, seed: 1, stop: &stop };
        let mut device = stops(SimDevice::new(&model, 2).with_stamps(), takes);
        let findings = probe(&mut device, &plan, &mut |_| {}).1;
        let why = findings.get(Quantity::Capacity).and_then(|f| f.reason.clone()).unwrap_or_default();
        assert!(why.contains(STOPPED), "{name}: {why}");
        for q in [Quantity::OpenAusLinear, Quantity::Mapping, Quantity::WriteUnit] {
            let f = findings.get(q).unwrap();
            assert!(f.value.is_none() && f.at_least.is_none(), "{name}: {f:?}");
        }
    }
}

/// Whatever else a card is, it is not called a counterfeit, nor a counterfeit whole.
#[test]
fn unusual_cards_are_not_mistaken() {
    let mut counterfeits = 0;
    for seed in 1..300 {
        let model = unusual::card(seed);
        let truth = model.truth();
        let f = found(SimDevice::new(&model, seed).with_stamps(), None, 600.0);
        counterfeits += u32::from(truth.real_capacity < model.card.capacity && f.value.is_some());
        assert!(common::right(&f, &truth) != Some(false), "{seed}: {f:?}, really {}", truth.real_capacity);
    }
    assert!(counterfeits > 3, "{counterfeits}");
}

/// What dies at its end and what keeps nothing: data are lost, however little of the card that is, and no size is told that was not seen.
#[test]
fn what_is_lost_is_never_passed() {
    use nandscope::saved::counterfeit::{genuine, loses};
    for missing in [64, 200, 1000] {
        let size = card("modern-a1-32gb", 0, Beyond::Drop).card.capacity;
        let f = found(SimDevice::new(&card("modern-a1-32gb", size - missing * MIB, Beyond::Drop), 1).with_stamps(), None, 60.0);
        assert_eq!(genuine(&Findings(vec![f.clone()]), size), Some(false), "{missing} MiB: {f:?}");
    }
    for name in ["modern-a1-32gb", "flashbench-readme", "olpc-c-8gb"] {
        let mut m = card(name, 0, Beyond::Drop);
        (m.card.keeps, m.card.fails_every) = (Keeps::Zeros, 1);
        let f = found(SimDevice::new(&m, 1).with_stamps(), None, 60.0);
        assert!(f.value.is_none() && f.at_least.is_none(), "{name}: {f:?}");
        assert!(loses(&Findings(vec![f.clone()])).is_some(), "{name}: {f:?}");
    }
}
