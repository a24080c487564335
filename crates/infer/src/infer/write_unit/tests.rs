use super::*;
use crate::infer::steps::alignments;

const PLACED: Known = Known { small: false, placed: Some(0), erase_block: None, page: None, access_unit: None };

/// Two passes of the ladder over a card whose write takes `f(position, length)` microseconds.
fn ladder(mut f: impl FnMut(u64, u64) -> f64) -> Vec<Write> {
    let mut out = vec![];
    for pass in 0..2u64 {
        let mut at = pass * (48 << 20);
        for s in alignments(512, 256 * KIB).into_iter().rev().filter(|s| s.is_multiple_of(512)) {
            for i in 0..writes_of(s) {
                assert!(at.is_multiple_of(s), "{s} at {at}");
                out.push(Write { at, len: s, us: f(at, s) * (1.0 + 0.003 * (i % 3) as f64) });
                at += s;
            }
        }
    }
    out
}

/// Q14: the Toshiba eMMC, milliseconds per write.
#[test]
fn toshiba_writes_32_kib_as_one() {
    let ms = [(18, 25.5), (17, 12.9), (16, 6.7), (15, 3.85), (14, 4.45), (13, 4.76), (12, 4.89), (11, 4.91), (10, 4.92), (9, 4.93)];
    let at = |s: u64| 1e3 * ms.iter().find(|m| m.0 == s.next_power_of_two().ilog2()).unwrap().1 * s as f64 / s.next_power_of_two() as f64;
    let all: Vec<Write> = ladder(|_, s| at(s)).into_iter().filter(|w| w.len.is_power_of_two()).collect();
    let f = judge(&all, &PLACED);
    assert_eq!(f.number(), Some(32768.0), "{f:?}");
}

#[test]
fn a_staircase_shows_its_unit_and_a_line_does_not() {
    for unit in [4 * KIB, 16 * KIB, 24 * KIB, 48 * KIB, 64 * KIB] {
        let f = judge(&ladder(|at, s| 300.0 + ((at + s - 1) / unit - at / unit + 1) as f64 * 900.0 + s as f64 / 20.0), &PLACED);
        assert_eq!(f.number(), Some(unit as f64), "{f:?}");
    }
    let f = judge(&ladder(|_, s| 1500.0 + s as f64 / 20.0), &PLACED);
    assert!(f.value.is_none(), "{f:?}");
}

/// Erase blocks that begin at any sector, unknown to the reads: what is aligned to its own size touches one unit more, or cuts it in two.
#[test]
fn units_begin_anywhere_behind_a_reader() {
    for (unit, begin) in [(32 * KIB, 18 * KIB), (32 * KIB, 11 * KIB), (16 * KIB, 1536), (64 * KIB, 37 * KIB)] {
        let touched = |at: u64, s: u64| (at + unit - begin + s - 1) / unit - (at + unit - begin) / unit + 1;
        let time = |at: u64, s: u64| 8000.0 + touched(at, s) as f64 * 3500.0 + s as f64 / 1000.0;
        let f = judge(&ladder(time), &Known::default());
        assert!(f.number() == Some(unit as f64) && f.off_grid, "{f:?}");
    }
    let f = judge(&ladder(|at, s| 8000.0 + ((at + s - 1) / 32768 - at / 32768 + 1) as f64 * 3500.0), &Known::default());
    assert!(f.number() == Some(32768.0) && !f.off_grid, "{f:?}");
}

#[test]
fn stalls_do_not_move_the_unit() {
    let mut w = ladder(|at, s| 300.0 + ((at + s - 1) / 16384 - at / 16384 + 1) as f64 * 900.0 + s as f64 / 20.0);
    for i in (7..w.len()).step_by(29) {
        w[i].us += 190_000.0;
    }
    assert_eq!(judge(&w, &PLACED).number(), Some(16384.0));
}

/// The first write to touch a unit pays, or the one that fills it; the others are gathered.
#[test]
fn combined_small_writes_show_their_unit_by_who_pays() {
    for unit in [16 * KIB, 24 * KIB, 64 * KIB] {
        let touches = |at: u64, s: u64| at.is_multiple_of(unit) || (at + s - 1) / unit != at / unit;
        let fills = |at: u64, s: u64| (at + s) / unit != at / unit;
        for pays in [&touches as &dyn Fn(u64, u64) -> bool, &fills] {
            let f = judge(&ladder(|at, s| if pays(at, s) { 2500.0 + s as f64 / 10.0 } else { 60.0 + s as f64 / 100.0 }), &PLACED);
            assert_eq!(f.number(), Some(unit as f64), "{f:?}");
        }
    }
}

/// Cards that read, change and write an erase block for what is less than a block of 4 KiB (512e): those writes say nothing of the unit.
#[test]
fn writes_that_incur_what_longer_ones_do_not_are_left_out() {
    let time = |at: u64, s: u64| ((at + s - 1) / 16384 - at / 16384 + 1) as f64 * 900.0 + s as f64 / 20.0;
    let f = judge(&ladder(|at, s| if s < 4 * KIB { 300_000.0 - s as f64 } else { time(at, s) }), &PLACED);
    assert_eq!(f.number(), Some(16384.0), "{f:?}");
    assert!(f.evidence.iter().any(|e| e.contains("less than 4 KiB")), "{f:?}");
    let f = judge(&ladder(|_, s| if s < 4 * KIB { 300_000.0 } else { 1500.0 + s as f64 / 20.0 }), &PLACED);
    assert!(f.value.is_none() && f.reason.as_ref().is_some_and(|why| why.contains("less than 4 KiB")), "{f:?}");
}

/// Lower pages take a third of what upper ones do, by turns, two and two, or in threes: the unit is one page.
#[test]
fn pages_of_several_speeds_are_units_of_their_own() {
    for page in [8 * KIB, 16 * KIB, 32 * KIB] {
        for speeds in [&[300.0, 1000.0][..], &[250.0, 250.0, 1500.0, 1500.0], &[500.0, 1200.0, 2400.0]] {
            let of = |n: u64| speeds[(n % speeds.len() as u64) as usize];
            // By addresses, and in a log, where each write that fills a page in part takes the next one.
            let f = judge(&ladder(|at, s| 100.0 + (at / page..=(at + s - 1) / page).map(of).sum::<f64>() + s as f64 / 90.0), &PLACED);
            assert_eq!(f.number(), Some(page as f64), "{speeds:?} {f:?}");
            let mut next = 0;
            let mut log = |at: u64, s: u64| {
                let from = next;
                next += (at + s - 1) / page - at / page + 1;
                100.0 + (from..next).map(of).sum::<f64>() + s as f64 / 90.0
            };
            let f = judge(&ladder(&mut log), &PLACED);
            assert_eq!(f.number(), Some(page as f64), "{speeds:?} {f:?}");
        }
    }
}

/// The first write of a unit pays for it, and what follows is merged with it: who pays says the unit, however little that is beside the bytes.
#[test]
fn the_first_of_a_unit_pays_for_it() {
    for (unit, program) in [(4, 450.0), (16, 400.0), (32, 630.0)] {
        let unit = unit * KIB;
        let begins = |at: u64, s: u64| ((at + s).div_ceil(unit) - at.div_ceil(unit)) as f64;
        let f = judge(&ladder(|at, s| 100.0 + begins(at, s) * program + s as f64 / 52.0), &PLACED);
        assert_eq!(f.number(), Some(unit as f64), "{f:?}");
    }
}

/// Three speeds, what is written in part is read first, and every four sizes are written at a place of their own, where most meet two of the three.
#[test]
fn three_speeds_are_told_from_a_unit_of_three_pages() {
    for page in [16 * KIB, 32 * KIB] {
        let of = |n: u64| [520.0, 850.0, 1460.0][(n % 3) as usize];
        let reads = |at: u64, s: u64| if at.is_multiple_of(page) && s.is_multiple_of(page) { 0.0 } else { 120.0 };
        let cost = |at: u64, s: u64| 300.0 + reads(at, s) + (at / page..=(at + s - 1) / page).map(of).sum::<f64>() + s as f64 / 90.0;
        let (mut sizes, mut last) = (0, 0);
        let mut place = |w: &Write| {
            sizes += u64::from(w.len != last);
            last = w.len;
            w.at + sizes / 4 * 4096 * KIB
        };
        let all: Vec<Write> = ladder(|_, _| 0.0).into_iter().map(|w| Write { at: place(&w), ..w }).collect();
        let all: Vec<Write> = all.into_iter().map(|w| Write { us: cost(w.at, w.len), ..w }).collect();
        let f = judge(&all, &PLACED);
        assert_eq!(f.number(), Some(page as f64), "{f:?}");
    }
}

/// What is programmed when a unit is full takes little beside the command and the bytes, or one of two times: who pays says the unit.
#[test]
fn units_that_are_filled_show_where_programming_takes_little() {
    for (unit, speeds) in [(4, [250.0; 2]), (16, [250.0; 2]), (24, [250.0; 2]), (16, [400.0, 900.0]), (32, [500.0, 800.0])] {
        let unit = unit * KIB;
        let pays = |at: u64, s: u64| (at / unit..(at + s) / unit).map(|n| speeds[(n % 2) as usize]).sum::<f64>();
        let f = judge(&ladder(|at, s| 900.0 + pays(at, s) + s as f64 / 60.0), &PLACED);
        // Of pages of two speeds it may be too little to go by, and never two of them.
        let told = f.number().or((speeds[0] != speeds[1]).then_some(unit as f64));
        assert_eq!(told, Some(unit as f64), "{speeds:?} {f:?}");
    }
}

/// Some pay at random: no unit explains them.
#[test]
fn writes_that_pay_by_chance_leave_it_open() {
    let mut n = 0u64;
    let w = ladder(|_, s| {
        n = n.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        if n >> 61 != 0 { 60.0 } else { 2500.0 + s as f64 / 10.0 }
    });
    assert!(judge(&w, &PLACED).value.is_none(), "{:?}", judge(&w, &PLACED));
}

/// A stream that is gathered in 512 KiB and written back by halves pays every 256 KiB, and programs pages of 16 KiB.
#[test]
fn what_pages_cannot_be_programmed_at_the_same_time_is_no_unit() {
    let told = |page: Option<u64>, erase_block: Option<u64>| {
        let known = Known { page, erase_block, ..PLACED };
        judge(&ladder(|at, len| 200.0 + 14_000.0 * ((at + len) / (256 * KIB) - at / (256 * KIB)) as f64 + len as f64 / 100.0), &known)
            .number()
    };
    let large = Some(4096 * KIB);
    assert_eq!(told(Some(32 * KIB), large), told(None, large));
    assert_eq!(told(None, large), Some(256.0 * KIB as f64));
    assert_eq!(told(Some(16 * KIB), large), None);
    // An erase block as small as that would end there, too.
    assert_eq!(told(None, None), None);
    assert_eq!(told(None, Some(256 * KIB)), None);
}

/// A map of 4 KiB reads what a shorter write leaves of a piece; what is programmed at once are 16 or 32 KiB.
#[test]
fn what_is_read_first_is_no_unit() {
    for (unit, reads) in [(16, 60.0), (32, 60.0), (32, 120.0)] {
        let unit = unit * KIB;
        let filled = |at: u64, s: u64| if at.is_multiple_of(4 * KIB) && s.is_multiple_of(4 * KIB) { 0.0 } else { reads };
        let f = judge(&ladder(|at, s| 250.0 + s.div_ceil(unit) as f64 * 550.0 + s as f64 / 45.0 + filled(at, s)), &PLACED);
        assert_eq!(f.number(), Some(unit as f64), "{f:?}");
        // Where nothing but what is read first shows, none is told.
        let f = judge(&ladder(|at, s| 800.0 + s as f64 / 25.0 + filled(at, s)), &PLACED);
        assert!(f.value.is_none(), "{f:?}");
    }
}

/// A host cuts at 12 KiB, and units of 64 KiB begin where nothing else does: the cut is no unit.
#[test]
fn a_host_that_cuts_at_an_odd_size_is_no_unit() {
    let (unit, begins, piece) = (64 * KIB, 40 * KIB, 12 * KIB);
    let touched = |at: u64, s: u64| (at + unit - begins + s - 1) / unit - (at + unit - begins) / unit + 1;
    let cost =
        |at: u64, s: u64| (0..s.div_ceil(piece)).map(|i| 400.0 + 10_000.0 * touched(at + i * piece, piece.min(s - i * piece)) as f64).sum();
    let f = judge(&ladder(cost), &Known { placed: None, ..PLACED });
    assert_eq!(f.number(), Some(unit as f64), "{f:?}");
}

/// A slow bus and a host that answers once a millisecond, some microseconds early or late: no unit shows.
#[test]
fn a_line_in_frames_shows_no_unit() {
    let mut i = 0;
    let mut cost = |slope: f64, s: u64| {
        i += 1;
        ((2200.0 + slope * s as f64) / 1000.0).ceil() * 1000.0 + [-9.0, 0.0, 11.0, 4.0][i % 4]
    };
    for slope in [0.7, 1.0, 1.3] {
        let all: Vec<Write> = ladder(|_, _| 0.0).into_iter().map(|w| Write { us: cost(slope, w.len), ..w }).collect();
        let f = judge(&all, &PLACED);
        assert!(f.value.is_none(), "{slope}: {f:?}");
    }
}

fn touched(unit: u64, at: u64, s: u64) -> f64 {
    ((at + s - 1) / unit - at / unit + 1) as f64
}

/// A bus of 22 MB/s before flash that programs 16 KiB in 0.3 ms: from 12 KiB on the bus tells, below it writes that touch two units do.
#[test]
fn a_bus_that_holds_up_long_writes_does_not_hide_the_unit() {
    for (unit, program) in [(16 * KIB, 300.0), (32 * KIB, 1200.0)] {
        let f = judge(&ladder(|at, s| 85.0 + (s as f64 / 22.0).max(80.0 + touched(unit, at, s) * program + s as f64 / 100.0)), &PLACED);
        assert_eq!(f.number(), Some(unit as f64), "{f:?}");
    }
    // A card that counts what a write fills, wherever it begins, is as fast as its bus from 6 KiB on: any unit would show the same.
    let f = judge(&ladder(|_, s| 85.0 + (s as f64 / 22.0).max(240.0 + s as f64 / 100.0)), &PLACED);
    assert!(f.value.is_none() && f.reason.as_deref().is_some_and(|why| why.contains("faster than the bus")), "{f:?}");
}

/// Lower and upper pages (and three of TLC) by turns: which one a write falls into says more than its size.
#[test]
fn pages_of_several_speeds_are_known_by_their_places() {
    for (page, speeds) in [(8 * KIB, &[400.0, 1500.0][..]), (32 * KIB, &[400.0, 2000.0]), (16 * KIB, &[300.0, 1300.0, 2500.0])] {
        let all = |at: u64, s: u64| (at / page..=(at + s - 1) / page).map(|n| speeds[n as usize % speeds.len()]).sum::<f64>();
        let f = judge(&ladder(|at, s| 500.0 + all(at, s) + s as f64 / 14.0), &PLACED);
        assert_eq!(f.number(), Some(page as f64), "{f:?}");
    }
}

/// Flash that holds nothing: the first write into a unit costs less than those that find it begun, which are read first.
#[test]
fn units_of_flash_that_was_never_written() {
    let unit = 16 * KIB;
    let read = |at: u64| if at.is_multiple_of(unit) { 0.0 } else { 190.0 };
    let f = judge(&ladder(|at, s| 60.0 + touched(unit, at, s) * 240.0 + s as f64 / 60.0 + read(at)), &PLACED);
    assert_eq!(f.number(), Some(unit as f64), "{f:?}");
}

/// One write in each unit pays, and units begin where a reader puts them.
#[test]
fn who_pays_says_where_units_begin() {
    let (unit, begin) = (32 * KIB, 18 * KIB + 512);
    let filled = |at: u64, s: u64| ((at + unit - begin + s) / unit - (at + unit - begin) / unit) as f64;
    let pays = |n: f64| if n > 0.0 { 480.0 + 1410.0 * n } else { 0.0 };
    let f = judge(&ladder(|at, s| 450.0 + pays(filled(at, s)) + s as f64 / 70.0), &Known::default());
    assert!(f.number() == Some(unit as f64) && f.off_grid, "{f:?}");
}

/// CF of 512 MB (C2: erase blocks of 16 KiB with pages of 512 B): what comes once in each is its erase.
#[test]
fn the_end_of_a_small_erase_block_is_no_unit() {
    let ends = |at: u64, s: u64| ((at + s) / 16384 - at / 16384) as f64;
    let time = |at: u64, s: u64| 500.0 + s as f64 / 512.0 * 360.0 + ends(at, s) * 1350.0;
    let f = judge(&ladder(time), &Known { small: true, ..Known::default() });
    assert!(f.value.is_none(), "{f:?}");
}
