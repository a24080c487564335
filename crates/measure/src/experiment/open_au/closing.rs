//! What closing an AU costs of which one unit was written. The visits of the search close AUs with more in them, of which the card has
//! less to copy: how much less is known of no single one.

use super::*;
use crate::infer::stats::mad;
use crate::units::KIB;

/// Closings looked at, where they vary.
const ENOUGH: usize = 12;

/// Those that vary by less, relative, are known well enough from half as many.
const ALIKE: f64 = 0.01;

/// Once the limit `fits` is known: as many AUs as turn the table over, then those that tell.
pub(super) fn closing(run: &Case, slots: &Slots, random: bool, fits: i64) -> Option<Cell> {
    let tried = run.cells.iter().any(|c| c.get("random") == CLOSING);
    if random || fits == 0 || tried || slots.count as i64 <= fits + 1 {
        return None;
    }
    // Where what is thrown out is not foretold, twice as many leave an eighth of what was open before.
    let foretold = Belief::of(run, random)?.foretold();
    let first = if foretold { fits } else { 2 * fits };
    let set = [("n", 1), ("random", CLOSING), ("first", first)];
    Some(Cell::new("AUs opened one after the other, one write each".to_string(), &set))
}

/// One unit where it is known, for the cost is that of an AU of which one unit was written.
fn length(run: &Case, slots: &Slots) -> u64 {
    run.believed.write_unit().filter(|u| slots.chunk.is_multiple_of(*u)).unwrap_or(slots.chunk)
}

/// Opens AUs, those used longest ago last; then writes on in the last one, and looks whether the flash held data. Of the writes none where half of the
/// time left is too short.
pub(super) fn close_after_one_write(slots: &Slots, first: usize, latest: &[u64], b: &mut Bench) -> Result<(), DeviceError> {
    let len = length(b.run, slots);
    let per_slot = slots.span / slots.chunk;
    // Where each AU was written last.
    let mut last: HashMap<u64, (u64, u64)> = HashMap::new();
    for s in writes(b.run) {
        last.insert(slot_of(slots, s), (s.at, s.at + s.len));
    }
    let until = b.halfway();
    let line = slow_line(b.run).unwrap_or(f64::INFINITY);
    let needs = slow_writes_take(first + FEWEST, line, b.run);
    if per_slot * slots.chunk < (ENOUGH as u64 + 2) * 2 * len || needs > until.0.saturating_sub(b.now().0) as f64 {
        let written: Vec<u64> = latest.iter().filter_map(|s| last.get(s).map(|w| w.0)).collect();
        return read_beside(slots, &written, len, b);
    }
    // Where the stream of a slot goes on, away from the ends of its AU.
    let place = |slot: u64| {
        let from = slots.at(slot);
        let done = last.get(&slot).map_or(0, |w| w.1.saturating_sub(from) / slots.chunk);
        let (au, within) = (done / per_slot, done % per_slot);
        let next = if within == 0 || within > per_slot / 2 { (au + (within > 0) as u64) * per_slot + 1 } else { done };
        let room = (next + per_slot) * slots.chunk <= slots.spacing;
        from + (if room { next } else { 1 }) * slots.chunk
    };
    let spread = slots.spread();
    let unused = spread.iter().filter(|s| !latest.contains(s));
    let order: Vec<u64> = unused.chain(latest.iter().rev()).copied().collect();
    let (mut at, mut opened) = (0, vec![]);
    let mut closed: Vec<f64> = vec![];
    for (i, slot) in order.iter().cycle().take(first + ENOUGH).enumerate() {
        if b.now() >= until {
            return read_beside(slots, &opened, len, b);
        }
        // Each time round further on, where it was closed since.
        at = place(*slot) + (i / order.len()) as u64 * slots.chunk;
        let took = b.write((i >= first) as u8, at, len)?.micros();
        opened.push(at);
        if i >= first && took > line {
            closed.push(took);
        }
        if closed.len() >= FEWEST && mad(&closed) < ALIKE * median(&closed) {
            break;
        }
    }
    for _ in 0..=FEWEST {
        at += len;
        b.write(2, at, len)?;
    }
    read_beside(slots, &opened, len, b)
}

/// Pairs of reads that show whether the flash held data, where they vary little.
const PAIRS: usize = 16;

/// Reads what was written into AUs, and as much at the same place of others that were not written: flash without data reads faster, and a merge there
/// copies none. A read elsewhere in the AU goes before each, and the two change places from one pair to the next.
fn read_beside(slots: &Slots, opened: &[u64], len: u64, b: &mut Bench) -> Result<(), DeviceError> {
    let (until, len) = (b.halfway(), len.min(4 * KIB));
    let au = b.run.believed.erase_block().unwrap_or(slots.spacing / 2).max(4 * len);
    let mut touched: Vec<u64> =
        writes(b.run).map(|s| s.at).chain(opened.iter().copied()).map(|at| at.saturating_sub(slots.first) / au).collect();
    let end = b.run.setting("end").unwrap_or(u64::MAX);
    for (i, &at) in opened.iter().cycle().take(PAIRS).enumerate() {
        let number = at.saturating_sub(slots.first) / au;
        let beside = (1..PAIRS as u64 * 4).find(|n| at + (n + 1) * au <= end && !touched.contains(&(number + n)));
        let Some(beside) = beside.map(|n| at + n * au) else { continue };
        touched.push((beside - slots.first) / au);
        let mut two = [(WRITTEN, at), (BESIDE, beside)];
        two.rotate_left(i % 2);
        for (role, at) in two {
            let begins = at - at.saturating_sub(slots.first) % au;
            let elsewhere = begins + (at - begins + au / 2) % au / len * len;
            for (role, at) in [(0, elsewhere), (role, at)] {
                if b.now() >= until {
                    return Ok(());
                }
                b.read(role, at, len)?;
            }
        }
    }
    Ok(())
}
