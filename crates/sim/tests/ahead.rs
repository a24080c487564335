//! What a card does beside or after what it says: data that come in meanwhile, work left undone, streams, units collected side by side. Times by hand.

use nandscope_sim::{Card, Model, Op, Request};

const UNIT: u64 = 16 << 10;

/// Programming a unit costs 4 ms, a unit on the bus 1 ms.
fn card(more: &str) -> Card {
    Card::new(&model(more), 1)
}

fn model(more: &str) -> Model {
    let text = format!(
        "name = \"ahead\"\n[host]\nrate = {}\n[card]\ncapacity = \"64 MiB\"\n{more}\n[nand]\npage = \"16 KiB\"\nerase_block = \"256 KiB\"\n\
         program = \"4 ms\"\n[ftl]\nkind = \"none\"\n",
        UNIT * 1000
    );
    Model::parse(&text, "ahead").unwrap()
}

/// us of an access that comes at `now` (us).
fn at(card: &mut Card, now: u64, op: Op, place: u64, len: u64) -> u64 {
    let done = card.submit(now * 1000, Request { op, at: place, len, data: nandscope_sim::Data::Other }).unwrap();
    assert_eq!(done.start, now * 1000);
    (done.done - done.start).div_ceil(1000)
}

#[test]
fn data_come_in_while_the_units_before_are_programmed() {
    let (mut plain, mut over) = (card(""), card("overlap = true"));
    // Three units: all of the data and then all of the programming, or the first unit of data and then programming.
    assert_eq!((at(&mut plain, 0, Op::Write, 0, 3 * UNIT), at(&mut over, 0, Op::Write, 0, 3 * UNIT)), (15_000, 13_000));
    // One unit has nothing to overlap with, nor has a part of one.
    assert_eq!((at(&mut plain, 50_000, Op::Write, 0, UNIT), at(&mut over, 50_000, Op::Write, 0, UNIT)), (5000, 5000));
    assert_eq!((at(&mut plain, 90_000, Op::Read, 0, UNIT), at(&mut over, 90_000, Op::Read, 0, UNIT)), (1000, 1000));
}

#[test]
fn work_is_left_undone_up_to_a_limit_and_reads_wait_for_it() {
    let mut c = card("behind = \"10 ms\"");
    // 4 ms of work each, one a ms: 4 and 7 are left; then 11, one of which the host waits for.
    assert_eq!([at(&mut c, 0, Op::Write, 0, UNIT), at(&mut c, 1000, Op::Write, UNIT, UNIT)], [1000, 1000]);
    assert_eq!([at(&mut c, 2000, Op::Write, 0, UNIT), at(&mut c, 3000, Op::Write, UNIT, UNIT)], [1000, 1000 + 3000]);
    // 10 ms were left at 3 ms, 3 at 10 ms.
    assert_eq!(at(&mut c, 10_000, Op::Read, 0, UNIT), 3000 + 1000);
    assert_eq!(at(&mut c, 20_000, Op::Read, 0, UNIT), 1000);
    assert_eq!([at(&mut c, 30_000, Op::Write, 0, UNIT), at(&mut c, 32_000, Op::Flush, 0, 0)], [1000, 2000]);
}

#[test]
fn each_stream_beyond_those_at_the_full_rate_costs_the_same() {
    let mut c = card("streams = 2\nstream_cost = \"300 us\"\nstream_memory = 4");
    let mut next = [0, 10 * UNIT, 20 * UNIT, 30 * UNIT];
    let mut now = 0;
    let mut write = |s: usize| {
        now += 100_000;
        let t = at(&mut c, now, Op::Write, next[s], UNIT);
        next[s] += UNIT;
        t
    };
    assert_eq!([write(0), write(1), write(0), write(1)], [5000; 4]);
    assert_eq!([write(2), write(0), write(1), write(2)], [5300; 4]);
    assert_eq!([write(3), write(3)], [5600, 5300]);
    // Streams that do not go on for four writes are forgotten.
    assert_eq!([write(3), write(3)], [5000, 5000]);
}

#[test]
fn units_are_collected_side_by_side() {
    let (quarter, far) = (UNIT / 4, 40 * UNIT);
    let turns =
        |c: &mut Card| -> Vec<u64> { (0..8).map(|k| at(c, k * 100_000, Op::Write, (k % 2) * far + k / 2 * quarter, quarter)).collect() };
    // One at a time: each change of stream brings the other unit to the flash, filled up.
    assert_eq!(turns(&mut card("combine = true")), [250, 4250, 4250, 4250, 4250, 4250, 8250, 4250]);
    // Side by side each is programmed once, by the write that completes it.
    assert_eq!(turns(&mut card("combine = true\ncombine_streams = 2")), [250, 250, 250, 250, 250, 250, 4250, 4250]);
    // A third stream needs the place of the one that was not written to for longest.
    let mut c = card("combine = true\ncombine_streams = 2");
    turns(&mut c);
    let t: Vec<u64> = [10, 20, 30].map(|k| at(&mut c, k * 1_000_000, Op::Write, k * UNIT, quarter)).to_vec();
    assert_eq!(t, [250, 250, 4250]);
    // A read brings all of them to the flash.
    assert_eq!(at(&mut c, 90_000_000, Op::Read, 0, UNIT), 2 * 4000 + 1000);
}

#[test]
fn units_are_collected_from_their_start_and_left_by_reads() {
    let (quarter, mut m) = (UNIT / 4, model("combine = true\ncombine_starts = true"));
    m.nand.rest_rate = UNIT * 1000;
    let (mut c, mut now) = (Card::new(&m, 1), 0);
    let mut go = |op: Op, place: u64, len: u64| {
        now += 100_000;
        at(&mut c, now, op, place, len)
    };
    // The old unit is read when the first quarter comes: 1 ms.
    assert_eq!([go(Op::Write, 0, quarter), go(Op::Write, quarter, quarter)], [1250, 250]);
    assert_eq!(go(Op::Read, 50 * UNIT, UNIT), 1000);
    assert_eq!([go(Op::Write, 2 * quarter, quarter), go(Op::Write, 3 * quarter, quarter)], [250, 4250]);
    // A part from the middle is filled up and programmed by itself.
    assert_eq!([go(Op::Write, 10 * UNIT + quarter, quarter), go(Op::Write, 20 * UNIT, quarter)], [5250, 1250]);
    // What was collected goes to the flash before something else does, and at a flush.
    assert_eq!([go(Op::Write, 30 * UNIT, UNIT), go(Op::Write, 40 * UNIT, quarter), go(Op::Flush, 0, 0)], [9000, 1250, 4000]);
    // From the middle of one unit into the next: the first is filled up now, the second later.
    assert_eq!(go(Op::Write, 60 * UNIT + 2 * quarter, UNIT), 1000 + 4000 + 1000 + 1000);
}

#[test]
fn only_units_that_are_programmed_take_longer_with_each_stream() {
    let (quarter, far) = (UNIT / 4, 40 * UNIT);
    let mut c = card("combine = true\ncombine_streams = 2\nstreams = 1\nstream_cost = \"300 us\"");
    let t: Vec<u64> = (0..8).map(|k| at(&mut c, k * 100_000, Op::Write, (k % 2) * far + k / 2 * quarter, quarter)).collect();
    assert_eq!(t, [250, 250, 250, 250, 250, 250, 4550, 4550]);
}

#[test]
fn a_table_of_streams_forgets_the_oldest() {
    let mut c = card("streams = 1\nstream_cost = \"300 us\"\nstream_table = 2");
    let t: Vec<u64> = (0..4).map(|k| at(&mut c, k * 100_000, Op::Write, k * 10 * UNIT, UNIT)).collect();
    assert_eq!(t, [5000, 5300, 5300, 5300]);
    // The first one is no longer known: it takes the place of another.
    assert_eq!(at(&mut c, 900_000, Op::Write, UNIT, UNIT), 5300);
}
