use super::*;
use crate::units::Nanos;

fn pass(record: u64, ns: impl IntoIterator<Item = u64>) -> Pass {
    let mut p = Pass::new(true, record, false);
    let mut at = 0;
    for t in ns {
        at += t;
        p.add(Nanos(t), at);
    }
    p.elapsed = Nanos(at);
    p
}

#[test]
fn hits_and_sector_writes_are_two_populations() {
    let p = pass(100, (0..50_000u64).map(|i| if i % 5 == 4 { 1_300_000 + i % 900 * 100 } else { 84_000 + i % 7 * 1000 }));
    let g = populations(&p);
    assert_eq!(g.len(), 2, "{g:?}");
    assert!((g[0].share - 0.8).abs() < 0.01 && g[0].median < 95.0 && g[1].shortest > 1200.0, "{g:?}");
    assert_eq!(populations(&pass(512, (0..9000u64).map(|i| 1_000_000 + i * 20))).len(), 1);
    assert!(buffered(&p, &g));
    // Of 511 bytes nearly every record reaches the card: the fast ones are no buffer.
    let p = pass(511, (0..9000u64).map(|i| if i % 30 == 0 { 9_000_000 } else { 1_200_000 }));
    assert!(populations(&p).len() == 2 && !buffered(&p, &populations(&p)));
}

/// A sector is written once in 512 / record calls, however seldom that is: no stall.
#[test]
fn sector_writes_of_small_records_are_no_stalls() {
    for record in [1u64, 4, 10, 20, 25, 26, 50, 100, 200] {
        let mut bytes = 0;
        let calls = (0..5_000_000 / record).map(|i| {
            let full = (bytes + record) / 512 != bytes / 512;
            bytes += record;
            let stall = full && (bytes / 512) % 1024 == 100;
            if stall {
                85_000_000
            } else if full {
                1_200_000 + i % 77 * 100
            } else {
                82_000 + i % 7 * 100
            }
        });
        let s = stalls(&pass(record, calls));
        assert!((9..=10).contains(&s.count), "{record}: {s:?}");
        assert!((s.usual / 1200.0 - 1.0).abs() < 0.02, "{record}: {s:?}");
    }
}

/// The file begun again and again: the grid is on the card, or goes on through what is written.
#[test]
fn a_period_is_found_through_rounds() {
    for (every, drift) in [
        (256u64 << 10, 0u64),
        (512 << 10, 0),
        (24 << 10, 0),
        (256 << 10, 100 << 10),
        (256 << 10, 128 << 10),
        (400_000, 12_345),
        (128 << 10, 5 << 10),
    ] {
        for record in [100u64, 512, 2048] {
            // One call in twelve is a usual one.
            if record * 20 >= every {
                continue;
            }
            let file = 5_000_000 / record;
            let mut p = Pass::new(true, record, false);
            let (mut at, mut counted) = (0, 0);
            for round in 0..9 {
                p.rounds.push(crate::samples::records::Round { first: p.records, position: Some(3 << 20) });
                if drift == 0 {
                    counted = 0;
                } else {
                    // The FAT and the directory, which nobody sees here.
                    counted += drift + 512 * (round % 3);
                }
                for _ in 0..file {
                    let before = counted / every;
                    counted += record;
                    let ns = if counted / every != before { 84_000_000 } else { 1_150_000 };
                    at += ns;
                    p.add(Nanos(ns), at);
                }
            }
            let s = stalls(&p);
            let found = s.in_bytes.unwrap_or_else(|| panic!("{every} drift {drift} records of {record}: {s:?}"));
            assert!((found.length / every as f64 - 1.0).abs() < 0.01 && found.on > 0.9, "{every} {drift} {record}: {found:?}");
            assert!(s.origin == Origin::Card && found.fixed == (drift == 0), "{every} {drift} {record}: {s:?}");
            if found.fixed {
                let want = ((3u64 << 20) + every - record) as f64 % every as f64;
                let off = (found.phase - want).rem_euclid(every as f64);
                assert!(off.min(every as f64 - off) <= 2.0 * record as f64, "{every} {record}: {found:?}, {want}");
            }
        }
    }
}

/// What comes with the beginning and the end of the file keeps to the file, not to a distance on the card.
#[test]
fn the_file_that_begins_anew_is_no_period() {
    for record in [100u64, 512, 4096] {
        let file = 5_000_000 / record;
        let mut p = Pass::new(true, record, false);
        let mut at = 0;
        for _ in 0..20 {
            p.rounds.push(crate::samples::records::Round { first: p.records, position: Some(3 << 20) });
            for i in 0..file {
                let ns = if i == 5 || i == file - 3 { 147_000_000 } else { 1_150_000 };
                at += ns;
                p.add(Nanos(ns), at);
            }
        }
        let s = stalls(&p);
        assert!(s.count == 40 && s.in_bytes.is_none_or(|b| s.origin == Origin::Written && b.length > 4e6), "{record}: {s:?}");
    }
}

/// Two causes, each with its own distance and length.
#[test]
fn two_periods_are_two() {
    for (a, b, long, short) in [(24u64 << 10, 32u64 << 10, 59u64, 14u64), (512 << 10, 64 << 10, 85, 12), (128 << 10, 80 << 10, 190, 30)] {
        for record in [100u64, 512] {
            let mut bytes = 0u64;
            let calls = (0..20_000_000 / record).map(|_| {
                let before = bytes;
                bytes += record;
                let crossed = |every: u64| u64::from(bytes / every != before / every);
                1_150_000 + crossed(a) * long * 1_000_000 + crossed(b) * short * 1_000_000
            });
            let s = stalls(&pass(record, calls));
            let mut kinds = s.kinds.clone();
            nandscope_stats::descending(&mut kinds, |a| a.median);
            let found: Vec<f64> = kinds.iter().filter_map(|k| k.in_bytes).map(|p| p.length).collect();
            assert_eq!(found.len(), 2, "{a} {b} {record}: {s:?}");
            for (f, want) in found.iter().zip([a, b]) {
                assert!((f / want as f64 - 1.0).abs() < 0.01, "{a} {b} {record}: {s:?}");
            }
        }
    }
}

/// A long call is long by its wire: what the card is busy is what it takes beyond the others.
#[test]
fn the_wire_is_not_busy_time() {
    for (wire, busy) in [(500u64, 85u64), (1000, 10), (260, 200), (1, 600)] {
        let p = pass(262_144, (0..400).map(|i| if i % 50 == 20 { (wire + busy) * 1_000_000 } else { wire * 1_000_000 }));
        let s = stalls(&p);
        assert!((s.beyond / 1e3 / busy as f64 - 1.0).abs() < 0.02, "{wire} {busy}: {s:?}");
    }
}

#[test]
fn a_period_in_bytes_is_found_and_none_in_noise() {
    let every = |n: u64| pass(512, (0..20_000u64).map(|i| if i % n == n - 1 { 84_000_000 } else { 1_150_000 }));
    let s = stalls(&every(1024));
    let p = s.in_bytes.unwrap();
    assert!((p.length / 524_288.0 - 1.0).abs() < 0.01 && p.on > 0.9 && p.filled > 0.9, "{p:?}");
    assert_eq!(s.count, 19);
    // Drawn by chance.
    let mut x = 1u64;
    let p = pass(
        512,
        (0..20_000).map(|_| {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            if x >> 33 < (1 << 31) / 700 { 84_000_000 } else { 1_150_000 }
        }),
    );
    let s = stalls(&p);
    assert!(s.count > 10 && s.in_bytes.is_none() && s.in_time.is_none(), "{s:?}");
    // So are long ones, though nearly all the time between them is their own.
    let long = |ns: u64| {
        let mut x = 1u64;
        (0..4000).map(move |_| {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            if x >> 33 < (1 << 31) / 200 { ns } else { 400_000 }
        })
    };
    let s = stalls(&pass(4096, long(3_000_000_000)));
    assert!(s.count > 5 && s.in_time.is_none(), "{s:?}");
}

#[test]
fn intervals_of_counts_are_those_of_the_tables() {
    for (n, lo, hi) in [(0, 0.0, 3.69), (1, 0.03, 5.57), (10, 4.80, 18.39), (100, 81.36, 121.63)] {
        let [a, b] = poisson(n);
        assert!((a - lo).abs() < 0.03 && (b - hi).abs() < 0.15, "{n}: {a} {b}");
    }
}
