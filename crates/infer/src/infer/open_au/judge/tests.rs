use super::*;
use crate::device::{Fill, Op};
use crate::finding::Findings;
use crate::infer::beliefs::Beliefs;
use crate::units::Nanos;

const CHUNK: u64 = 64 * KIB;

/// A search in sequential order up to 96 AUs, twelve rounds of each number; `us` says what a write takes, by its number in the run.
fn search(us: impl Fn(usize) -> f64) -> Run {
    let mut run = Run::new("open-au-linear");
    let apart = 64 * MIB;
    let slots = Slots { first: 16 * MIB, spacing: apart, count: 100, span: 4 * MIB, chunk: CHUNK };
    run.setting.extend(slots.done().map(|(k, v)| (k.to_string(), v)));
    run.setting.insert("end".into(), 8 << 30);
    let mut written = 0;
    for (id, n) in [1i64, 2, 4, 8, 16, 32, 64, 96].into_iter().enumerate() {
        run.cells.push(Cell { id: id as u32, ..Cell::new("AUs", &[("n", n), ("random", 0)]) });
        for i in 0..12 * n as u64 {
            let (round, slot) = (i / n as u64, i % n as u64);
            let at = slots.at(slot) + (id as u64 * 12 + round) * CHUNK % slots.span;
            run.samples.push(sample(id as u32, u8::from(round > 0), Op::Write(Fill::Zeros), at, us(written)));
            written += 1;
        }
    }
    run.index();
    run
}

fn sample(cell: u32, role: u8, op: Op, at: u64, us: f64) -> Sample {
    Sample { cell, trial: 0, role, op, at, len: CHUNK, start: Nanos(0), took: Nanos((us * 1e3) as u64) }
}

fn believed(values: &[(Quantity, f64)]) -> Beliefs {
    Beliefs::of(&Findings(values.iter().map(|&(q, v)| Finding::decided(q, v, 0.95)).collect()))
}

/// The count or bound in sequential order, and the mapping.
fn said(run: &Run, believed: &Beliefs) -> [Option<f64>; 2] {
    let found = judge(&Case { run, believed }, false);
    let of = |q: Quantity| found.iter().find(|f| f.quantity == q).and_then(|f| f.number().or(f.at_least.map(|b| b.0)));
    [of(Quantity::OpenAusLinear), of(Quantity::Mapping)]
}

/// Three pauses in which a buffer is written out hold the merges of all writes before, or none: nobody can say.
#[test]
fn pauses_longer_than_the_writes_hide_a_limit() {
    let even = |i: usize| 1000.0 + (i % 7) as f64;
    assert_eq!(said(&search(even), &Beliefs::default())[0], Some(96.0));
    let emptied = |i: usize| if i % 700 == 650 { 9e6 } else { even(i) };
    assert_eq!(said(&search(emptied), &Beliefs::default()), [None; 2]);
    // Seldom, and no longer than a stall of any card.
    let stalls = |i: usize| if i % 700 == 650 { 4e4 } else { even(i) };
    assert_eq!(said(&search(stalls), &Beliefs::default())[0], Some(96.0));
}

/// Slow writes at no distance of their own are pauses where they come with any number of AUs, and merges where they come with many only.
#[test]
fn what_comes_with_many_aus_is_no_pause() {
    let run = |from: usize| search(move |i| if i > from && i * i % 53 < 2 { 3e5 } else { 1000.0 + (i % 7) as f64 });
    let why = |from: usize| format!("{:?}", judge(&Case { run: &run(from), believed: &Beliefs::default() }, false));
    assert!(why(0).contains("is emptied"), "{}", why(0));
    let up_to_32 = 12 * (1 + 2 + 4 + 8 + 16 + 32);
    assert!(!why(up_to_32).contains("is emptied"), "{}", why(up_to_32));
}

/// What is as long as an erase block and is written in less than it takes to copy one is a buffer.
#[test]
fn who_rewrites_a_block_takes_as_long_as_copying_it() {
    let unit = believed(&[(Quantity::WriteUnit, 524_288.0), (Quantity::EraseBlock, 524_288.0)]);
    assert_eq!(said(&search(|i| 24e3 + i as f64 % 5.0), &unit), [Some(0.0), Some(3.0)]);
    assert_ne!(said(&search(|i| 3.9e3 + i as f64 % 5.0), &unit)[1], Some(3.0));
}

/// Longer than a page takes, whatever the size of the write: an erase block, or a large unit. With a known unit it is the unit.
#[test]
fn slow_writes_of_an_unknown_unit_may_each_rewrite_a_block() {
    let mut run = search(|i| 28e3 + i as f64 % 5.0);
    let id = run.cells.len() as u32;
    run.cells.push(Cell { id, ..Cell::new("one AU, written and read", &[("n", 1), ("random", COMPARED)]) });
    for i in 0..6u64 {
        let at = 16 * MIB + i * CHUNK;
        run.extend([sample(id, 1, Op::Write(Fill::Zeros), at, 28e3), sample(id, 1, Op::Read, at, 2e3)]);
    }
    assert_eq!(said(&run, &Beliefs::default()), [None; 2]);
    assert_eq!(said(&run, &believed(&[(Quantity::WriteUnit, CHUNK as f64)]))[0], Some(96.0));
}

/// More than eight AUs cost 40 ms a visit: a merge of 16 MiB cannot be had for that beside writes of 64 KiB in 1 ms, and reads say that the map is in pieces of
/// that size. Where they do not, or where copying takes as long, it is a limit.
#[test]
fn pieces_of_the_map_that_reads_show_are_no_erase_blocks() {
    let nine_and_more = 12 * (1 + 2 + 4 + 8);
    let run = |extra: f64| search(move |i| if i < nine_and_more { 1000.0 } else { 1000.0 + extra } + (i % 7) as f64);
    let mapping = |extra: f64, pieces: Option<u64>| {
        let mut known = Beliefs::of(&Findings(vec![]));
        known.pieces = pieces;
        said(&run(extra), &known)[1]
    };
    assert_eq!(mapping(40e3, None), Some(1.0));
    assert_eq!(mapping(40e3, Some(16 * MIB)), None);
    assert_eq!(mapping(40e3, Some(MIB)), Some(1.0));
    assert_eq!(mapping(300e3, Some(16 * MIB)), Some(1.0));
}

/// Writes of half an erase block: each change of AU merges a half, which takes less than the write.
#[test]
fn merges_of_small_erase_blocks_hide_beside_long_writes() {
    let halves = search(|i| if i < 12 { [4000.0, 6400.0][i % 2] } else { 9000.0 + (i % 7) as f64 });
    assert_eq!(said(&halves, &Beliefs::default()), [None; 2]);
    assert_eq!(said(&halves, &believed(&[(Quantity::EraseBlock, (4 * MIB) as f64)]))[0], Some(96.0));
    // A change of AU that takes less than an erase does.
    let changes = search(|i| if i < 12 { 2000.0 } else { 2600.0 + (i % 7) as f64 });
    assert_eq!(said(&changes, &Beliefs::default())[0], Some(96.0));
}

/// A device on whose clock nothing takes any time shows no limit, and not that there is none.
#[test]
fn writes_without_time_say_nothing() {
    assert_eq!(said(&search(|_| 0.0), &Beliefs::default()), [None; 2]);
}

/// Three steps of 50 ms and what is left, whatever AU the writes go to: one merge. Writes that each open an AU incur one each.
#[test]
fn a_merge_in_steps_counts_whole() {
    let of = |times: [&[f64]; 3], opening: usize| {
        let mut run = Run::new("open-au-linear");
        for (n, t) in times.into_iter().enumerate() {
            run.cells.push(Cell { id: n as u32, ..Cell::new("AUs", &[("n", n as i64 + 1), ("random", 0)]) });
            for (i, ms) in t.iter().enumerate() {
                run.samples.push(sample(n as u32, u8::from(i >= opening), Op::Write(Fill::Zeros), i as u64 * CHUNK, ms * 1e3));
            }
        }
        run.index();
        limit::in_steps(&Case { run: &run, believed: &Beliefs::default() }, 3)
    };
    let steps: &[f64] = &[53.0, 51.2, 51.2, 18.9, 2.6, 2.6, 2.7];
    let (ms, writes, seen) = of([steps; 3], 1).unwrap();
    assert!((ms - 163.9).abs() < 0.1 && writes == 4 && seen == 3, "{ms} {writes} {seen}");
    assert_eq!(of([steps; 3], 4), None, "each opens an AU");
    assert_eq!(of([&[53.0, 2.6, 2.6, 51.2, 2.6, 2.7]; 3], 1), None, "one write each");
    assert_eq!(of([steps, &[2.6; 7], &[2.6; 7]], 1), None, "once");
}

/// Older cards have erase blocks of 16 KiB: each write of one incurs a merge, and a limit cannot show.
#[test]
fn units_that_take_as_long_as_merges_say_nothing_of_a_limit() {
    let of = |ms: f64, size: i64| {
        let mut run = search(|i| 1e3 * ms + (i % 7) as f64);
        run.setting.extend([("chunk".to_string(), 16 * KIB as i64), ("size".to_string(), size)]);
        run.samples.iter_mut().for_each(|s| s.len = 16 * KIB);
        run.index();
        said(&run, &believed(&[(Quantity::WriteUnit, 16_384.0)]))[0]
    };
    assert_eq!((of(21.0, 1 << 30), of(5.0, 1 << 30), of(21.0, 32 << 30)), (None, Some(96.0), Some(96.0)));
}

/// A card that gets hot takes longer for everything. One AU alone, written at the beginning and at the end of a run, shows it, or what earlier runs took.
#[test]
fn a_card_that_became_slower_is_seen() {
    let of = |first: f64, last: f64, before: Option<f64>| {
        let mut run = Run::new("open-au-linear");
        for (id, (us, random)) in [(first, 0), (90e3, 0), (last, 2)].into_iter().enumerate() {
            let n = if id == 1 { 4 } else { 1 };
            run.cells.push(Cell { id: id as u32, ..Cell::new("AUs", &[("n", n), ("random", random)]) });
            for i in 0..6 {
                // One in a row incurs a merge.
                let took = if i == 5 { 500e3 } else { us };
                run.samples.push(sample(id as u32, u8::from(i > 0), Op::Write(Fill::Zeros), i * CHUNK, took));
            }
        }
        run.index();
        let mut believed = Beliefs::default();
        believed.fastest.extend(before.map(|us| (CHUNK, (8, (us * 1e3) as u64))));
        limit::slowed(&Case { run: &run, believed: &believed }, CHUNK)
    };
    assert_eq!(of(3000.0, 3300.0, Some(2700.0)), None);
    assert_eq!(of(3000.0, 4500.0, None), Some(1.5));
    assert_eq!(of(6000.0, 6000.0, Some(2000.0)), Some(3.0), "hot before the run began");
}
