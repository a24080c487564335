use super::*;
use crate::samples::import::read;

/// Rows from 1 GiB down, 700 µs a read; `extra` in µs of an alignment.
fn log(extra: impl Fn(u64) -> f64) -> Vec<Finding> {
    sided(extra, |_| [0.0; 2])
}

/// The same with what reads before and behind the boundary take longer.
fn sided(extra: impl Fn(u64) -> f64, beside: impl Fn(u64) -> [f64; 2]) -> Vec<Finding> {
    let row = |k: u32| {
        let wander = [1.0, -2.0, 3.0, -1.0, 2.0][k as usize % 5];
        let [pre, post] = beside(1 << k).map(|t| (700.0 + t).round());
        let on = (700.0 + extra(1 << k) + wander).round();
        format!("align {} pre {pre}µs on {on}µs post {post}µs diff {:.3}µs\n", 1u64 << k, on - (pre + post) / 2.0)
    };
    infer(&read(&[("t", (11..=30).rev().map(row).collect::<String>())]).unwrap())
}

fn values(f: &[Finding]) -> Vec<Option<f64>> {
    f.iter().map(|f| f.number()).collect()
}

/// Two cards in one log: whether their rows are the same or one has more of them, neither is the answer.
#[test]
fn runs_of_two_cards_are_none_of_one() {
    let run = |step: u64, more: bool| -> String {
        let row = |a: u64| {
            let more = if a.is_multiple_of(step) { 300 } else { 0 };
            format!("align {a} pre 700µs on {}µs post 700µs diff {more}µs\n", 700 + more)
        };
        (11..=30).rev().flat_map(|k| [Some(1u64 << k), more.then_some(3 << (k - 2))]).flatten().map(row).collect()
    };
    for (a, b) in [(run(4 * MIB, false), run(12 * MIB, true)), (run(4 * MIB, false), run(8 * MIB, false))] {
        let f = infer(&read(&[("t", format!("{a}{b}"))]).unwrap());
        assert!(f.iter().all(|f| f.value.is_none() && f.at_least.is_none()), "{f:?}");
        let why = f[0].reason.as_ref().unwrap();
        assert!(why.contains("t:1 shows steps of 4 MiB, t:21 steps of ") && why.contains("two cards"), "{why}");
    }
    let one = infer(&read(&[("t", run(4 * MIB, false).repeat(2))]).unwrap());
    assert_eq!(one[0].number(), Some((4 * MIB) as f64), "{one:?}");
    // Four runs of one card, none of them a copy, and an odd one.
    let of_one: String = (0..4).map(|n| run(4 * MIB, false).replace("700µs", &format!("{}µs", 690 + n))).collect();
    let odd = infer(&read(&[("t", of_one + &run(8 * MIB, false))]).unwrap());
    assert_eq!(odd[0].number(), Some((4 * MIB) as f64), "{odd:?}");
}

/// Rows of 3 * 2^n in a run of their own, whichever comes first: with the ordinary run beside them they are one table; alone they
/// do not tell a step from a third of it.
#[test]
fn rows_of_three_beside_an_ordinary_run() {
    for step in [4 * MIB, 12 * MIB] {
        let row = |a: u64| {
            let more = if a.is_multiple_of(step) { 300 } else { 0 };
            format!("align {a} pre 700µs on {}µs post 700µs diff {more}µs\n", 700 + more)
        };
        let twos: String = (11..=30).rev().map(|k| row(1 << k)).collect();
        let threes: String = (10..=28).rev().map(|k| row(3 << k)).collect();
        for text in [format!("{twos}{threes}"), format!("{threes}$ flashbench -a /dev/x\n{twos}")] {
            let f = infer(&read(&[("t", text)]).unwrap());
            assert_eq!(values(&f)[0], Some(step as f64), "{f:?}");
        }
        let alone = infer(&read(&[("t", threes)]).unwrap());
        assert!(alone[0].value.is_none() || alone[0].confidence < 0.8, "{alone:?}");
    }
}

#[test]
fn two_steps_and_their_absence() {
    let f = log(|a| {
        if a >= 4 * MIB {
            300.0
        } else if a >= 16 * KIB {
            150.0
        } else {
            0.0
        }
    });
    assert_eq!(values(&f), [Some((4 * MIB) as f64), Some((16 * KIB) as f64), Some((16 * KIB) as f64)], "{f:?}");
    assert!(f.iter().all(|f| f.confidence > 0.9), "{f:?}");
    let f = log(|_| 2.0);
    assert_eq!(values(&f), [None, None, None], "{f:?}");
    let f = log(|a| if a >= 16 * KIB { 130.0 } else { 0.0 });
    assert!(f[0].value.is_none() && f[0].reason.as_ref().unwrap().contains("hides"), "{f:?}");
}

#[test]
fn the_end_of_the_device_is_no_erase_block() {
    let f = log(|a| {
        if a >= 512 * MIB {
            260.0
        } else if a >= 16 * KIB {
            130.0
        } else {
            0.0
        }
    });
    assert!(f[0].value.is_none(), "{f:?}");
    assert!(f[0].caveats.iter().any(|c| c.contains("wrap")), "{f:?}");
    // A level that only some middle rows show contradicts every block size.
    let f = log(|a| {
        if (4 * MIB..=8 * MIB).contains(&a) {
            155.0
        } else if a >= 16 * KIB {
            130.0
        } else {
            0.0
        }
    });
    assert!(f[0].value.is_none() || f[0].confidence < 0.8, "{f:?}");
}

#[test]
fn a_row_halfway_leaves_two_sizes() {
    let f = log(|a| {
        if a >= 8 * MIB {
            165.0
        } else if a >= 4 * MIB {
            75.0
        } else {
            5.0
        }
    });
    assert!(f[0].confidence < 0.8, "{f:?}");
    let known = twice_as_large(0.75, 4 * MIB, 1 << 30, Some(3_965_190_144));
    assert!(known == 0.0 && twice_as_large(0.75, 4 * MIB, 1 << 30, Some(3_980_394_496)) > 0.1);
}

#[test]
fn rows_cut_above_the_page_leave_it_open() {
    let rows =
        (17..=30).rev().map(|k| format!("align {} pre 700µs on {}µs post 700µs diff 0ns\n", 1u64 << k, if k >= 23 { 900 } else { 830 }));
    let f = infer(&read(&[("t", rows.collect::<String>())]).unwrap());
    assert_eq!(f[0].number(), Some((8 * MIB) as f64), "{f:?}");
    assert!(f[1].value.is_none() && f[1].reason.as_ref().unwrap().contains("at or below"), "{f:?}");
}

#[test]
fn single_reads_that_take_as_long_belong_to_a_map_in_pieces() {
    let large = |a: u64, t: f64| if a >= 4 * MIB { t } else { 0.0 };
    let block = |a: u64| sided(|a| large(a, 200.0), move |b| if b == a { [large(b, 210.0), 0.0] } else { [0.0; 2] });
    // One late read before one of the boundaries, or a read-ahead before all of them, is no piece of a map.
    assert_eq!(block(64 * MIB)[0].number(), Some((4 * MIB) as f64));
    let ahead = sided(|a| large(a, 400.0), |b| [large(b, 250.0), 0.0]);
    assert_eq!(ahead[0].number(), Some((4 * MIB) as f64), "{ahead:?}");
    // Each read loads one, those across load two; or some find theirs loaded, and those across find one.
    for (one_of, across) in [(1, 200.0), (3, 100.0)] {
        let loads = |b: u64, side: u32| if (b.ilog2() + side).is_multiple_of(one_of) { large(b, 100.0) } else { 0.0 };
        let pieces = sided(|a| large(a, across), |b| [loads(b, 0), loads(b, 1)]);
        assert!(pieces[0].value.is_none() && pieces[0].reason.as_ref().unwrap().contains("pieces"), "{one_of}: {pieces:?}");
    }
}

/// What was not printed may have the step: the size is named where the rows beside it are there.
#[test]
fn rows_left_out_leave_the_block_open() {
    let all = (11..=30).rev().map(|k| 1u64 << k);
    let row = |a: u64| {
        let extra = if a >= 4 * MIB { 300 } else { 0 } + if a >= 16 * KIB { 150 } else { 0 } + [1, -2, 3, -1, 2][a.ilog2() as usize % 5];
        format!("align {a} pre 700µs on {}µs post 700µs diff {extra}.000µs\n", 700 + extra)
    };
    let told = |left_out: &[u64]| {
        let text: String = all.clone().filter(|a| !left_out.contains(a)).map(row).collect();
        infer(&read(&[("t", text)]).unwrap()).remove(0)
    };
    assert_eq!(told(&[]).number(), Some((4 * MIB) as f64));
    assert_eq!(told(&[16 * MIB, 512 * KIB]).number(), Some((4 * MIB) as f64), "others");
    for left_out in [&[2 * MIB][..], &[8 * MIB, 4 * MIB, 2 * MIB, MIB], &[4 * MIB, 2 * MIB]] {
        let f = told(left_out);
        assert!(f.value.is_none() && f.reason.as_ref().is_some_and(|why| why.contains("no rows between")), "{left_out:?}: {f:?}");
    }
}
