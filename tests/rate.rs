//! Ratings of cards whose rates are known.

#[path = "common/skip.rs"]
mod skip;

use nandscope::device::{Device, open_model};
use nandscope::host::class::Class;
use nandscope::rate::Verdict;
use nandscope::rate::judge::{self, ForPurpose, Seen};
use nandscope::rate::measure::{Measured, Tables, Task, measure};
use nandscope::rate::record::Plan;
use nandscope::units::{GIB, KIB, MIB, Nanos};
use nandscope::workload::purpose::Purpose;
use nandscope_sim::Model;
use std::sync::atomic::AtomicBool;

/// A card that takes this long to program 16 KiB, behind a host with noise or without.
fn card(program_us: f64, noise: bool) -> Model {
    let host = if noise { "jitter = \"40 us\"\ntail = \"2 ms\"\ntail_every = 300" } else { "" };
    let text = format!(
        r#"
name = "x"
about = "x"
[host]
command = "90 us"
rate = "200 MB/s"
{host}
[card]
capacity = "8 GiB"
command = "60 us"
[nand]
page = "16 KiB"
write_unit = "16 KiB"
erase_block = "4 MiB"
sense = "60 us"
program = "{program_us} us"
[ftl]
kind = "none"
"#
    );
    Model::parse(&text, "x").unwrap()
}

fn run(model: &Model, seed: u64, classes: &[Class], seconds: f64) -> Measured {
    run_for(model, seed, classes, seconds, None, &mut |_, _| ())
}

fn run_for(
    model: &Model,
    seed: u64,
    classes: &[Class],
    seconds: f64,
    purpose: Option<&Purpose>,
    tell: &mut dyn FnMut(&str, f64),
) -> Measured {
    let opened = open_model(model, seed);
    let size = opened.geometry().size;
    let id = opened.id().clone();
    let consent = nandscope::device::Consent::check(&id, None).unwrap();
    let limits = nandscope::device::Limits { region: None, budget: 1 << 44, undo: None };
    let mut guard = opened.writable(&consent, &limits).unwrap();
    let stop = AtomicBool::new(false);
    let task = Task {
        region: 0..size,
        whole: false,
        deadline: guard.now() + Nanos::from_secs_f64(seconds),
        seed,
        stop: &stop,
        capacity: size,
        au: None,
        depth: 1,
        classes,
        tables: Tables { fat: 4 * MIB - 64 * KIB, copy: 4 * MIB - 32 * KIB, directory: 4 * MIB, data: 8 * MIB },
        recording: purpose.and_then(|p| Plan::of(p, 3600.0)),
        random: purpose.is_some_and(|p| p.random.is_some()),
        write: true,
    };
    measure(&mut guard, &task, tell)
}

/// Behind a reader of a microcontroller: what it cannot carry is no failure of the card, but a card that is slower still fails.
#[test]
fn a_slow_reader_is_not_the_cards_fault() {
    let behind = |program_us: f64| {
        let mut m = card(program_us, false);
        m.host = Model::parse(nandscope_sim::cards::text("wintec-1gb").unwrap(), "x").unwrap().host;
        m
    };
    let a1 = [Class::by_name("A1").unwrap(), Class::by_name("C10").unwrap()];
    let [boot, camera]: [Purpose; 2] = ["boot", "dashcam"].map(|p| p.parse().unwrap());
    let m = run(&behind(500.0), 1, &a1, 60.0);
    assert_eq!([verdict(&a1[0], &m), verdict(&a1[1], &m)], [Verdict::NotDecided; 2]);
    for purpose in [&boot, &camera] {
        let found = answer(purpose, &run_for(&behind(500.0), 1, &[], 60.0, Some(purpose), &mut |_, _| ()));
        assert_eq!(found.verdict, Verdict::NotDecided, "{found:?}");
        assert!(found.limits.iter().any(|l| l.because.as_ref().is_some_and(|b| b.contains("the reader may be"))), "{found:?}");
    }
    let m = run(&behind(4000.0), 1, &a1[..1], 600.0);
    assert_eq!(verdict(&a1[0], &m), Verdict::Fails);
    // Behind a fast reader a card that is too slow is so.
    let m = run(&card(5000.0, false), 1, &a1[..1], 60.0);
    assert_eq!(verdict(&a1[0], &m), Verdict::Fails);
}

/// What A2 asks holds with the card's queue, and whether that was in use no host knows.
#[test]
fn a2_fails_by_what_a_queue_does_not_change() {
    let a2 = [Class::by_name("A2").unwrap()];
    let mut m = run(&card(500.0, false), 1, &a2, 60.0);
    let plain = m.random[0].clone();
    m.random.push(nandscope::rate::measure::Random { depth: 32, ..plain });
    let found = judge::class(&a2[0], &m, &Seen { capacity: 8 * GIB, ..Seen::default() });
    assert_eq!(found.verdict, Verdict::NotDecided, "{found:?}");
    m.random[0].reads.iter_mut().for_each(|p| p.seconds *= 100.0);
    assert_eq!(verdict(&a2[0], &m), Verdict::Fails);
}

fn pw(m: &Measured) -> f64 {
    let s = &m.stretches[0];
    s.units.iter().map(|u| s.unit as f64 / u.seconds).fold(f64::INFINITY, f64::min)
}

/// Times to program for which a card without noise writes at this many bytes a second: the time of a unit is linear in it.
fn program_for(class: &[Class], rate: f64) -> f64 {
    let time = |us: f64| 1.0 / pw(&run(&card(us, false), 1, class, 20.0));
    let (a, b) = (time(100.0), time(1100.0));
    let us = 100.0 + (1.0 / rate - a) / (b - a) * 1000.0;
    // The engine counts whole nanoseconds.
    (us * 1000.0).round() / 1000.0
}

fn verdict(class: &Class, m: &Measured) -> Verdict {
    judge::class(class, m, &Seen { capacity: 8 * GIB, ..Seen::default() }).verdict
}

/// Five per cent below a limit never passes, five above never fails, with the noise of a host.
#[test]
fn five_per_cent_decide() {
    let seeds = if skip::short("1000 seeds of each side") { 12 } else { 1000 };
    for name in ["C10", "V30"] {
        let class = [Class::by_name(name).unwrap()];
        let asks = class[0].sequential_write;
        let (slow, fast) = (card(program_for(&class, 0.95 * asks), true), card(program_for(&class, 1.05 * asks), true));
        let (mut below, mut above) = ([0, 0, 0], [0, 0, 0]);
        for seed in 1..=seeds {
            below[verdict(&class[0], &run(&slow, seed, &class, 12.0)) as usize] += 1;
            above[verdict(&class[0], &run(&fast, seed, &class, 12.0)) as usize] += 1;
        }
        println!("{name}: passes, fails, not decided: 5 % below {below:?}, 5 % above {above:?}");
        assert_eq!((below[0], above[1]), (0, 0), "{name}: {below:?} {above:?}");
        // And it decides.
        assert!(below[1] * 10 >= seeds * 9 && above[0] * 10 >= seeds * 9, "{name}: {below:?} {above:?}");
    }
}

/// The rate that is reported is that of the closed form.
#[test]
fn the_rate_is_that_of_the_model() {
    let class = [Class::by_name("C10").unwrap()];
    for us in [200.0, 500.0, 900.0] {
        let m = run(&card(us, false), 1, &class, 20.0);
        // 512 KiB: both commands, the bus, 32 pages.
        let each = 90e-6 + 60e-6 + 524_288.0 / 200e6 + 32.0 * us * 1e-6;
        let expected = 524_288.0 / each;
        assert!((pw(&m) / expected - 1.0).abs() < 0.02, "{us}: {} {expected}", pw(&m));
    }
}

/// A single slow unit that is fast the second time is no failure.
#[test]
fn one_slow_time_decides_nothing() {
    let class = [Class::by_name("C10").unwrap()];
    let mut m = run(&card(500.0, false), 1, &class, 20.0);
    assert_eq!(verdict(&class[0], &m), Verdict::Passes);
    let s = &mut m.stretches[0];
    let usual = s.units[1].seconds;
    s.units[0].seconds *= 9.0;
    s.units[0].again = Some(usual);
    assert_eq!(verdict(&class[0], &m), Verdict::NotDecided);
    m.stretches[0].units[0].again = Some(usual * 9.0);
    assert_eq!(verdict(&class[0], &m), Verdict::Fails);
    // The same of FAT cycles and of reads of the FAT.
    let mut m = run(&card(500.0, false), 1, &class, 20.0);
    m.fat.reads_ms[0] = 13.0;
    assert_eq!(verdict(&class[0], &m), Verdict::NotDecided);
    m.fat.reads_ms[1] = 13.0;
    assert_eq!(verdict(&class[0], &m), Verdict::Fails);
}

/// A purpose is one step; how far it is is said all the while.
#[test]
fn a_recording_says_how_far_it_is() {
    let purpose: Purpose = "logger:100kB/s".parse().unwrap();
    let mut shares = vec![];
    let mut tell = |what: &str, share: f64| {
        assert_eq!(what, "recording");
        shares.push(share);
    };
    run_for(&card(500.0, false), 1, &[], 5.0, Some(&purpose), &mut tell);
    assert!(shares.is_sorted() && shares.last().is_some_and(|s| (0.9..=1.0).contains(s)), "{shares:?}");
    assert!((1..10).all(|i| shares.iter().any(|s| (*s * 10.0) as u32 == i)), "{shares:?}");
}

fn answer(purpose: &Purpose, m: &Measured) -> ForPurpose {
    judge::purpose(purpose, m, &Seen { capacity: 8 * GIB, ..Seen::default() }, None)
}

/// Less than half a minute of a load passes nothing: the first writes of a card are its fast ones.
#[test]
fn little_of_a_load_is_not_enough_of_it() {
    let purpose: Purpose = "logger:100kB/s".parse().unwrap();
    let m = run_for(&card(500.0, false), 1, &[], 5.0, Some(&purpose), &mut |_, _| ());
    assert_eq!(answer(&purpose, &m).verdict, Verdict::Passes);
    let m = run_for(&card(500.0, false), 1, &[], 0.2, Some(&purpose), &mut |_, _| ());
    let short = answer(&purpose, &m);
    assert!(short.verdict == Verdict::NotDecided && short.because.contains("to pass takes 30 s"), "{short:?}");
    assert!(short.limits.iter().all(|l| l.verdict == Verdict::NotDecided), "{short:?}");
}

/// A card that is too slow is so with any buffer; what a card needs is in whole sectors, and the size of the requests is said.
#[test]
fn a_buffer_is_for_cards_that_keep_up() {
    let (slow, fast): (Purpose, Purpose) = ("logger:900MB/s".parse().unwrap(), "logger:100kB/s".parse().unwrap());
    let run = |p: &Purpose| answer(p, &run_for(&card(500.0, false), 1, &[], 5.0, Some(p), &mut |_, _| ()));
    let (no, yes) = (run(&slow), run(&fast));
    assert!(no.verdict == Verdict::Fails && no.buffer.is_none() && no.drops.is_none(), "{no:?}");
    assert!(yes.buffer.is_some_and(|b| b > 0 && b % 512 == 0) && yes.drops.is_some(), "{yes:?}");
    assert_eq!(yes.request, Some(8 * KIB));
}

/// Of a target that says of all its requests that they took no time, no rate is known.
#[test]
fn no_time_is_no_rate() {
    let (class, purpose) = ([Class::by_name("C4").unwrap()], "logger:100kB/s".parse::<Purpose>().unwrap());
    let mut m = run_for(&card(500.0, false), 1, &class, 20.0, Some(&purpose), &mut |_, _| ());
    m.stretches.iter_mut().flat_map(|s| &mut s.units).for_each(|u| (u.seconds, u.spread, u.again) = (0.0, 0.0, None));
    let r = m.recording.as_mut().unwrap();
    (r.busy, r.rates) = (0.0, vec![1e18; 10]);
    assert_eq!((verdict(&class[0], &m), answer(&purpose, &m).verdict), (Verdict::NotDecided, Verdict::NotDecided));
}
