//! One AU alone, beside the counts: once more when others were slow, long enough to fill a buffer, and written and read in turn.

use super::*;

/// One AU once more: slow now, what was slow before was so for another reason. `long`: as much as fills a buffer a few times.
pub(super) fn control(late: bool, long: bool) -> Cell {
    let set = [("n", 1), ("random", CONTROL), ("fresh", 1), ("late", late as i64), ("long", long as i64)];
    Cell::new(format!("1 AU, sequential, once more{}", if late { " in the end" } else { "" }), &set)
}

/// Rounds in which a table that holds none of them must come to rest.
pub(super) const HELD_ROUNDS: usize = 12;

/// Fewer AUs stay open in random order than did in linear order: does the card keep fewer, or does it hold on to those written before?
/// Linear order once more tells. A table that throws out at random holds on to none, and takes long to come to rest.
pub(super) fn held(run: &Case, slots: &Slots, random: bool, fits: i64) -> Option<Cell> {
    let n = open_in_linear(run).min(slots.count as i64);
    let tried = run.cells.iter().any(|c| c.get("random") == HELD);
    if !random || fits == 0 || n <= fits || tried || at_random(&Belief::of(run, true)?) {
        return None;
    }
    let set = [("n", n), ("random", HELD), ("fresh", 1)];
    Some(Cell::new(format!("{n} AUs, sequential, once more"), &set))
}

/// Writes to one AU alone in random order, at most, and slow ones among them that are enough: their share is known to a sixth.
pub(super) const FILLED_ROUNDS: usize = 400;
pub(super) const FILLED: usize = 36;

/// AUs that all stay open were slow now and then: is it their logs, that fill?
pub(super) fn fill_alone() -> Cell {
    Cell::new("1 AU, random, until its log is full again and again".to_string(), &[("n", 1), ("random", FILLING), ("fresh", 1)])
}

/// Every write so far took long: is it the card, or the host?
pub(super) fn compare() -> Cell {
    Cell::new("1 AU, sequential, read back".to_string(), &[("n", 1), ("random", COMPARED), ("fresh", 1)])
}

/// Bytes that fill a buffer for rewriting three times: 64 KiB at most where one was seen.
pub(super) const LONG: usize = 288 << 10;

/// Places of one AU, in linear order, each written and then read.
pub(super) fn written_and_read(slots: &Slots, slot: u64, b: &mut Bench) -> Result<(), DeviceError> {
    for i in 0..6 {
        let at = slots.at(slot) + i * slots.chunk;
        // What opens the AU does not count.
        let role = (i >= 2) as u8;
        b.write(role, at, slots.chunk)?;
        b.read(role, at, slots.chunk)?;
    }
    Ok(())
}
