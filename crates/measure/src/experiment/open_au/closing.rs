//! What closing an AU costs of which one unit was written. The visits of the search close AUs with more in them, of which the card has
//! less to copy: how much less is known of no single one.

use super::*;
use crate::infer::stats::mad;

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

/// Opens AUs, those used longest ago last; then writes on in the last one. Nothing where half of the time left is too short.
pub(super) fn close_after_one_write(slots: &Slots, first: usize, latest: &[u64], b: &mut Bench) -> Result<(), DeviceError> {
    let len = length(b.run, slots);
    let per_slot = slots.span / slots.chunk;
    let until = b.halfway();
    let line = slow_line(b.run).unwrap_or(f64::INFINITY);
    let slow: Vec<f64> = writes(b.run).map(|s| s.took.micros()).filter(|&t| t > line).collect();
    let needs = median(&slow) * 1e3 * (first + FEWEST) as f64;
    if per_slot * slots.chunk < (ENOUGH as u64 + 2) * 2 * len || needs > until.0.saturating_sub(b.now().0) as f64 {
        return Ok(());
    }
    let mut last: HashMap<u64, u64> = HashMap::new();
    for s in writes(b.run) {
        last.insert(slot_of(slots, s), s.at + s.len);
    }
    // Where the stream of a slot goes on, away from the ends of its AU.
    let place = |slot: u64| {
        let from = slots.at(slot);
        let done = last.get(&slot).map_or(0, |e| e.saturating_sub(from) / slots.chunk);
        let (au, within) = (done / per_slot, done % per_slot);
        let next = if within == 0 || within > per_slot / 2 { (au + (within > 0) as u64) * per_slot + 1 } else { done };
        let room = (next + per_slot) * slots.chunk <= slots.spacing;
        from + (if room { next } else { 1 }) * slots.chunk
    };
    let spread = slots.spread();
    let unused = spread.iter().filter(|s| !latest.contains(s));
    let order: Vec<u64> = unused.chain(latest.iter().rev()).copied().collect();
    let mut at = 0;
    let mut closed: Vec<f64> = vec![];
    for (i, slot) in order.iter().cycle().take(first + ENOUGH).enumerate() {
        if b.now() >= until {
            return Ok(());
        }
        // Each time round further on, where it was closed since.
        at = place(*slot) + (i / order.len()) as u64 * slots.chunk;
        let took = b.write((i >= first) as u8, at, len)?.micros();
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
    Ok(())
}
