//! The experiments `scatter`, `interval`, `access-kinds` and `same-content`: on a card that has what they look for, one that has not, and a
//! noisy one.

mod common;

use nandscope::device::plain::Plain;
use nandscope::device::{Access, Consent, Device, Fill, Guard, Limits, Op, OpenOptions, SimDevice, open};
use nandscope::experiment::{self, Setup, run};
use nandscope::finding::{Finding, Quantity};
use nandscope::infer::beliefs::Beliefs;
use nandscope::infer::pipeline;
use nandscope::samples::Run;
use nandscope::units::{GIB, MIB, Nanos};
use nandscope_sim::{Model, cards};
use std::sync::atomic::AtomicBool;

/// 200 µs and 50 ns a byte; what `extra` adds depends on the access and its number, from 1.
fn plain(extra: impl Fn(u64, Access) -> u64) -> Plain<impl Fn(usize, Access) -> u64> {
    Plain { call: 200_000, kib: 50 * 1024, ..Plain::new(2 * GIB) }.with(move |n, a| extra(n as u64 + 1, a))
}

/// Noise: up to 20 µs, and one access in fifty stalls for 30 ms.
fn noise(n: u64) -> u64 {
    let x = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    x % 20_000 + if x.is_multiple_of(50) { 30_000_000 } else { 0 }
}

fn measure(name: &str, device: &mut dyn Device) -> (Run, Vec<Finding>) {
    let size = device.geometry().size;
    measure_in(name, device, 0..size)
}

fn measure_in(name: &str, device: &mut dyn Device, region: std::ops::Range<u64>) -> (Run, Vec<Finding>) {
    let exp = experiment::by_name(name).unwrap();
    let (stop, geometry) = (AtomicBool::new(false), device.geometry().clone());
    let setup = Setup { geometry: &geometry, region, believed: &Beliefs::default(), writes: u64::MAX };
    let limits = run::Limits { deadline: device.now() + Nanos::from_secs_f64(3600.0), stop: &stop, seed: 1 };
    let run = run::run(exp, &setup, device, &limits, &mut |_| {});
    let findings = pipeline::of_run(&run);
    for f in &findings {
        assert!((0.0..1.0).contains(&f.confidence) && (f.value.is_some() || f.reason.is_some()), "{f:?}");
    }
    assert!(pipeline::figures(&run).iter().all(|f| f.series.iter().any(|s| s.points.len() >= 2)), "{name}: an empty figure");
    (run, findings)
}

fn sim(name: &str) -> SimDevice {
    SimDevice::new(&Model::parse(cards::text(name).unwrap(), name).unwrap(), 1)
}

/// Two stretches, one slower, one quicker.
fn two_stretches(a: Access) -> u64 {
    match a.at / MIB {
        300..400 => 600_000,
        1500..1530 => 0,
        _ => 300_000,
    }
}

#[test]
fn scatter_finds_odd_stretches_and_where_they_lie() {
    for noisy in [false, true] {
        let mut d = plain(|n, a| if noisy { noise(n) } else { 0 } + two_stretches(a));
        let (_, f) = measure("scatter", &mut d);
        assert_eq!(f[0].number(), Some(2.0), "{noisy}: {f:?}");
        assert!(f[0].confidence > 0.7 && f[0].evidence.iter().any(|e| e.starts_with("300 MiB to 400 MiB")), "{f:?}");
    }
}

#[test]
fn scatter_finds_nothing_where_nothing_is() {
    for noisy in [false, true] {
        let (_, f) = measure("scatter", &mut plain(|n, _| if noisy { noise(n) } else { 0 }));
        assert_eq!(f[0].number(), Some(0.0), "{f:?}");
    }
    // Two kinds of place everywhere are no region, nor is a card that slows down for a while.
    let (_, f) = measure("scatter", &mut plain(|_, a| if (a.at / MIB / 4).is_multiple_of(2) { 0 } else { 400_000 }));
    assert!(f[0].number().is_none_or(|n| n == 0.0), "{f:?}");
    let (_, f) = measure("scatter", &mut plain(|n, _| if n < 500 { 900_000 } else { 0 }));
    assert_eq!(f[0].number(), Some(0.0), "{f:?}");
    for card in ["flashbench-readme", "noisy", "modern-a1-32gb"] {
        let (_, f) = measure("scatter", &mut sim(card));
        assert!(f[0].number().is_none_or(|n| n == 0.0), "{card}: {f:?}");
    }
}

/// Cards that show their boundaries to reads of one length only: it is found by itself, and named.
#[test]
fn boundaries_that_one_length_of_read_shows_are_found_by_it() {
    for (length, name) in [(1024, "1 KiB"), (4096, "4 KiB"), (16_384, "16 KiB"), (65_536, "64 KiB")] {
        for noisy in [false, true] {
            let crosses = move |a: Access, unit: u64| a.at / unit != (a.at + a.len - 1) / unit;
            let mut d = plain(move |n, a| {
                let busy = if noisy { n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40 } else { 0 } % 20_000;
                busy + if a.len == length && crosses(a, 4 * MIB) { 300_000 } else { 0 }
            });
            let (_, f) = measure("read-boundary", &mut d);
            let block = f.iter().find(|f| f.quantity == Quantity::EraseBlock).unwrap();
            assert_eq!(block.number(), Some((4 * MIB) as f64), "{name} {noisy}: {block:?}");
            assert!(block.evidence.iter().any(|e| e.starts_with(&format!("a read of {name} across"))), "{block:?}");
        }
    }
    // Where no length shows any, all are named.
    let (_, f) = measure("read-boundary", &mut plain(|_, _| 0));
    let why = f.iter().find(|f| f.quantity == Quantity::EraseBlock).unwrap().reason.clone().unwrap();
    assert!(why.contains("reads of 1 KiB, 4 KiB, 16 KiB, 64 KiB"), "{why}");
}

/// The last part of a card of an odd size is read like the first, and so is a region.
#[test]
fn scatter_reads_the_whole_region_whatever_its_size() {
    let sizes = [100, 101, 333, 511, 513, 768, 999, 1000, 1023, 1900, 3721, 7580, 30_436, 62_521, 65_535].map(|m| m * MIB);
    let odd = [100 * MIB + 512, 768 * MIB - 4096, GIB + 7 * 512, 64 * GIB - MIB / 2];
    for size in sizes.into_iter().chain(odd) {
        for (start, end) in [(0, size), (size / 3 / 512 * 512, size / 512 * 512 / 2)] {
            let mut d = plain(|_, a| if a.at >= start + (end - start) / 5 * 3 { 500_000 } else { 0 });
            d.geometry.size = size / 512 * 512;
            let (run, f) = measure_in("scatter", &mut d, start..end);
            let apart = (end - start) / 512;
            let (first, last) = (run.samples.iter().map(|s| s.at).min().unwrap(), run.samples.iter().map(|s| s.at + s.len).max().unwrap());
            assert!(first == start && last <= end && end - last <= apart + MIB, "{start}..{end}: {first}..{last}, steps of {apart}");
            // Half a millisecond on top of one: the last two fifths.
            assert_eq!(f[0].number(), Some(1.0), "{start}..{end}: {f:?}");
            let place = f[0].evidence.iter().find(|e| e.contains(" to ")).unwrap();
            assert!(place.contains(&format!("to {}:", nandscope::units::Bytes(end))), "{start}..{end}: {place}");
        }
    }
}

#[test]
fn interval_gives_access_time_and_rate() {
    for noisy in [false, true] {
        let (_, f) = measure("interval", &mut plain(|n, _| if noisy { noise(n) } else { 0 }));
        let get = |q| f.iter().find(|f| f.quantity == q).unwrap();
        let (access, rate) = (get(Quantity::AccessTimeUs), get(Quantity::ReadRate));
        // 50 ns a byte are 20 MB/s.
        assert!((access.number().unwrap() / 200.0 - 1.0).abs() < 0.1, "{access:?}");
        assert!((rate.number().unwrap() / 20e6 - 1.0).abs() < 0.05, "{rate:?}");
        let [lo, hi] = rate.interval.unwrap();
        assert!(lo <= 20.1e6 && hi >= 19.9e6 && lo <= hi && rate.confidence > 0.8, "{rate:?}");
    }
    // A wall at 64 KiB is no line; a device without any time has none.
    let (_, f) = measure("interval", &mut plain(|_, a| if a.len > 65536 { 90_000_000 } else { 0 }));
    assert!(f.iter().all(|f| f.value.is_none()), "{f:?}");
    assert!(pipeline::of_run(&Run::new("interval")).iter().all(|f| f.value.is_none()));
    let (_, f) = measure("interval", &mut sim("flashbench-readme"));
    // The README card: 16 MB/s bus, about 0.7 ms for the smallest read.
    assert!(f[0].number().is_some_and(|us| (400.0..800.0).contains(&us)), "{f:?}");
    assert!(f[1].number().is_some_and(|r| (14e6..18e6).contains(&r)), "{f:?}");
}

#[test]
fn contents_are_compared_and_none_is_an_answer() {
    // Zeros and ones take half the time that others take.
    let easy = |a: Access| if matches!(a.op, Op::Write(Fill::Zeros | Fill::Ones)) { 0 } else { 200_000 + a.len * 50 };
    for noisy in [false, true] {
        let quiet = |n| if noisy { noise(n) % 30_000_000 } else { 0 };
        let (run, f) = measure("access-kinds", &mut plain(|n, a| quiet(n) + easy(a)));
        assert!(f[0].number().is_some_and(|g| (g / 2.0 - 1.0).abs() < 0.1), "{f:?}");
        assert!(f[0].evidence[0].contains("zeros") || f[0].evidence[0].contains("ones"), "{f:?}");
        // Linear, random; both sizes; the five kinds: all in one AU each round.
        assert_eq!(run.cells.len(), 20);
        let (_, f) = measure("access-kinds", &mut plain(|n, _| quiet(n)));
        assert_eq!(f[0].number(), Some(1.0), "{f:?}");
    }
    // Writes that differ wildly among themselves compare nothing.
    let (_, f) = measure("access-kinds", &mut plain(|n, _| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 36) % 200_000_000));
    assert!(f[0].number().is_none_or(|g| g == 1.0), "{f:?}");
    for card in ["flashbench-readme", "modern-a1-32gb"] {
        let (_, f) = measure("access-kinds", &mut sim(card));
        assert!(f[0].number().is_none_or(|g| g == 1.0), "{card}: {f:?}");
    }
}

#[test]
fn a_card_with_a_short_cut_for_zeros_shows_it() {
    let text = cards::text("flashbench-readme").unwrap().replace("[card]", "[card]\nshortcut = \"zeros\"");
    let (_, f) = measure("access-kinds", &mut SimDevice::new(&Model::parse(&text, "short-cut").unwrap(), 1));
    assert!(f[0].number().is_some_and(|g| g > 1.2) && f[0].evidence[0].starts_with("zeros"), "{f:?}");
}

/// What is written for its time is what is there: on a card that was never used once that was seen to take as long, on one that holds data
/// without a further look.
#[test]
fn a_write_repeats_what_is_there_where_it_is_put_back() {
    let dir = tempfile::tempdir().unwrap();
    let undone = |target: &str| -> Guard {
        let opened = open(target, &OpenOptions::default()).unwrap();
        let consent = Consent::check(opened.id(), Some(&opened.id().consent_id())).unwrap();
        opened.writable(&consent, &Limits { budget: u64::MAX, undo: Some(dir.path().into()), ..Limits::default() }).unwrap()
    };
    let bytes = |g: &Guard| g.changed().iter().map(|r| r.end - r.start).sum::<u64>();
    let mut blank = undone("sim:flashbench-readme?content");
    measure("write-unit", &mut blank);
    let unknown = bytes(&blank);
    assert!(unknown > MIB, "nothing is known of a byte repeated: {unknown}");
    let (run, _) = measure("same-content", &mut blank);
    let compared = bytes(&blank) - unknown;
    assert!(run.samples.len() == 13 && compared < MIB, "{compared}");
    measure("open-au-linear", &mut blank);
    assert_eq!(bytes(&blank), unknown + compared);
    assert_eq!(blank.restore().unwrap().unwrap().wraps_at, None);

    let image = dir.path().join("data.img");
    let mut data = vec![0; 64 << 20];
    Fill::Random(7).render(0, &mut data);
    std::fs::write(&image, &data).unwrap();
    let mut held = undone(image.to_str().unwrap());
    let before = held.counters().bytes_read;
    assert!(measure("same-content", &mut held).0.samples.is_empty());
    let looked = held.counters().bytes_read - before;
    assert!(looked < 2 * MIB, "{looked} bytes were read to see that there are data");
    measure("write-unit", &mut held);
    assert!(held.counters().bytes_written > MIB && bytes(&held) == 0);
    held.restore().unwrap();
    assert!(std::fs::read(&image).unwrap() == data);
}
