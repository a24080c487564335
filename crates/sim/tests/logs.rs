//! How a block-mapped card treats what a log leaves out: times by hand.

use nandscope_sim::{Card, Model, Op, Request};

const UNIT: u64 = 16 << 10;
const AU: u64 = 16 * UNIT;

/// Two open AUs of 16 units; programming costs 1 ms, copying 2 ms, a merge 10 ms, erasing 100 ms, a change of AU as much as `more` says.
fn card(state: &str, more: &str) -> Card {
    let text = format!(
        "name = \"logs\"\n[card]\ncapacity = \"64 MiB\"\nstate = \"{state}\"\n[nand]\npage = \"16 KiB\"\nerase_block = \"256 KiB\"\n\
         program = \"1 ms\"\ncopy = \"2 ms\"\nerase = \"100 ms\"\n{more}"
    );
    Card::new(&Model::parse(&text, "logs").unwrap(), 1)
}

const FTL: &str = "[ftl]\nkind = \"block-map\"\nopen_linear = 2\nopen_random = 0\nclose = \"10 ms\"\n";

/// ms that a write of one unit takes, at this unit of this AU.
fn write(card: &mut Card, au: u64, unit: u64) -> u64 {
    let at = au * AU + unit * UNIT;
    let done = card.submit(0, Request { op: Op::Write, at, len: UNIT, data: nandscope_sim::Data::Other }).unwrap();
    (done.done - done.start) / 1_000_000
}

#[test]
fn a_change_of_erase_block_costs_something_each_time() {
    let mut c = card("written", &format!("change = \"5 ms\"\n{FTL}"));
    // The first write of all is in the AU that the card begins in.
    assert_eq!([write(&mut c, 0, 0), write(&mut c, 0, 1), write(&mut c, 1, 0), write(&mut c, 0, 2)], [1, 1, 6, 6]);
    // Beside a merge: the AU used longest ago has 15 units to copy.
    assert_eq!(write(&mut c, 2, 0), 1 + 5 + 15 * 2 + 10 + 100);
}

#[test]
fn a_card_that_was_never_written_has_nothing_to_copy() {
    let mut c = card("empty", &format!("{FTL}copies = \"held\"\n"));
    assert_eq!([write(&mut c, 0, 0), write(&mut c, 0, 1), write(&mut c, 1, 0)], [1, 1, 1]);
    // AU 0 held nothing: its log takes its place, and no block is erased.
    assert_eq!(write(&mut c, 2, 0), 1 + 10);
    assert_eq!(write(&mut c, 3, 0), 1 + 10);
    // AU 0 now holds units 0 and 1. Its log has unit 1: one to copy, one block to erase.
    assert_eq!([write(&mut c, 0, 1), write(&mut c, 2, 5), write(&mut c, 3, 9)], [1 + 10, 1 + 10, 1 + 2 + 10 + 100]);
    // The same where everything is copied.
    let mut all = card("empty", FTL);
    assert_eq!([write(&mut all, 0, 0), write(&mut all, 1, 0), write(&mut all, 2, 0)], [1, 1, 1 + 30 + 10 + 100]);
    // What was discarded is not held.
    let mut c = card("written", &format!("{FTL}copies = \"held\"\n"));
    c.submit(0, Request { op: Op::Discard, at: 0, len: AU, data: nandscope_sim::Data::Other }).unwrap();
    assert_eq!([write(&mut c, 0, 0), write(&mut c, 1, 0), write(&mut c, 2, 0)], [1, 1, 1 + 10]);
    assert_eq!(write(&mut c, 3, 0), 1 + 30 + 10 + 100, "AU 1 held all");
}

#[test]
fn a_write_further_on_stays_in_order_where_a_card_skips() {
    let mut c = card("written", &format!("{FTL}skips = true\n"));
    assert_eq!([write(&mut c, 0, 0), write(&mut c, 0, 5), write(&mut c, 0, 9)], [1, 1, 1]);
    // A step back is out of order: 13 units are missing.
    assert_eq!(write(&mut c, 0, 3), 1 + 26 + 10 + 100);
    // All units in order, none left out: the log takes the place of the AU.
    let whole: Vec<u64> = (0..16).map(|u| write(&mut c, 1, u)).collect();
    assert_eq!((whole[..15].iter().sum::<u64>(), whole[15]), (15, 101));
    // The last unit after a gap: nothing to switch to, the rest is copied when the AU is closed.
    let mut c = card("written", &format!("{FTL}skips = true\n"));
    assert_eq!([write(&mut c, 0, 0), write(&mut c, 0, 15), write(&mut c, 1, 0), write(&mut c, 2, 0)], [1, 1, 1, 1 + 28 + 10 + 100]);
    // Without it each write elsewhere closes the log.
    let mut c = card("written", FTL);
    assert_eq!([write(&mut c, 0, 0), write(&mut c, 0, 5)], [1, 1 + 30 + 10 + 100]);
}

#[test]
fn what_lies_before_a_write_is_copied_at_once_where_a_card_fills() {
    let mut c = card("written", &format!("{FTL}fills = true\n"));
    assert_eq!([write(&mut c, 0, 4), write(&mut c, 0, 5), write(&mut c, 0, 8)], [1 + 8, 1, 1 + 4]);
    // 7 units are left behind unit 8.
    assert_eq!([write(&mut c, 1, 0), write(&mut c, 2, 1)], [1, 1 + 2 + 14 + 10 + 100]);
    // The last unit completes the log, whatever was copied.
    assert_eq!(write(&mut c, 1, 15), 1 + 28 + 100);
    // A card that holds nothing has nothing to fill with.
    let mut c = card("empty", &format!("{FTL}fills = true\ncopies = \"held\"\n"));
    assert_eq!([write(&mut c, 0, 4), write(&mut c, 0, 8)], [1, 1]);
    // Both: what was filled counts as written.
    let mut c = card("written", &format!("{FTL}fills = true\nskips = true\n"));
    assert_eq!([write(&mut c, 0, 4), write(&mut c, 0, 8), write(&mut c, 0, 15)], [1 + 8, 1 + 6, 1 + 12 + 100]);
}

#[test]
fn a_log_may_begin_with_what_lies_before_and_close_when_it_is_used_up() {
    let random = FTL.replace("open_random = 0", "open_random = 2");
    // Five units are copied to a new log; from then on it may be written in any order.
    let mut c = card("written", &format!("{random}begins_full = true\n"));
    assert_eq!([write(&mut c, 0, 5), write(&mut c, 0, 9), write(&mut c, 0, 7)], [11, 1, 1]);
    // Its log holds units 0 to 5, 9 and 7: eight are left for others; the next one finds it used up and merges it first.
    let used: Vec<u64> = (0..8).map(|_| write(&mut c, 0, 9)).collect();
    assert_eq!((used, write(&mut c, 0, 9)), (vec![1; 8], 1 + 8 * 2 + 10 + 100));
    // Where a log that is used up closes its AU, the write that uses it up does so, and the next one opens the AU again.
    let mut c = card("written", &format!("{random}begins_full = true\nfull_closes = true\n"));
    assert_eq!([write(&mut c, 0, 5), write(&mut c, 0, 9), write(&mut c, 0, 7)], [11, 1, 1]);
    let used: Vec<u64> = (0..8).map(|_| write(&mut c, 0, 9)).collect();
    assert_eq!((&used[..7], used[7]), (&[1; 7][..], 1 + 8 * 2 + 10 + 100));
    assert_eq!(write(&mut c, 0, 9), 1 + 9 * 2, "opened again");
}

#[test]
fn a_write_at_the_start_may_begin_a_log_anew() {
    let random = FTL.replace("open_random = 0", "open_random = 2");
    // Without it the log goes on in random order.
    let mut c = card("written", &random);
    assert_eq!([write(&mut c, 0, 0), write(&mut c, 0, 1), write(&mut c, 0, 0), write(&mut c, 0, 0)], [1; 4]);
    let mut c = card("written", &format!("{random}restarts = true\n"));
    assert_eq!([write(&mut c, 0, 0), write(&mut c, 0, 1)], [1, 1]);
    // Fourteen units are copied, then fifteen; the new log is in order.
    assert_eq!([write(&mut c, 0, 0), write(&mut c, 0, 0), write(&mut c, 0, 1)], [1 + 28 + 10 + 100, 1 + 30 + 10 + 100, 1]);
    // One that is in random order already takes it like any other write.
    assert_eq!([write(&mut c, 0, 9), write(&mut c, 0, 0), write(&mut c, 0, 0)], [1; 3]);
}

#[test]
fn lots_fall_as_they_are_told() {
    let ftl = FTL.replace("[ftl]", "[ftl]\nevict = \"random\"").replace("open_linear = 2", "open_linear = 3");
    // Each visit writes the next unit of its AU. Of three open AUs one has to be closed when 3 comes: as is told, 1 or 0.
    let visits: [(u64, u64); 8] = [(0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (2, 1), (3, 1), (1, 1)];
    for closed in [[0, 1, 2, 3, 7].as_slice(), &[0, 1, 2, 3, 4, 7]] {
        let mut lots = nandscope_sim::Told::default();
        visits.iter().enumerate().for_each(|(k, v)| lots.visit(v.0, k as u64, closed.contains(&k)));
        let mut c = card("written", &ftl).told(lots);
        let slow: Vec<usize> = (0..8).filter(|&k| write(&mut c, visits[k].0, visits[k].1) > 100).collect();
        assert_eq!(slow, closed[3..], "the first three find room");
        assert!((c.lots() - slow.len() as f64 * 3f64.ln()).abs() < 1e-9, "each lot was drawn among three");
    }
}
