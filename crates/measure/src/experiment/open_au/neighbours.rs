//! As many AUs as stay open all over the card, side by side, and one more.

use super::*;

/// Rounds at the most: a table that throws out at random has let go of others by then.
const ROUNDS: usize = 12;

/// Slow visits beside the opening of each, usually; this part of half of the time left is worth it.
const FEW_SLOW: usize = 4;
const LITTLE: f64 = 4.0;

/// Rounds in which half of the visits are slow, after which more of them say nothing new.
const HALF_SLOW: usize = 3;

/// Once the limit `fits` is known in linear order, and where erase blocks lie.
pub(super) fn side_by_side(run: &Case, random: bool, fits: i64) -> Option<Cell> {
    let placed = run.grid().unit.is_some() && run.grid().unit == run.believed.erase_block();
    let tried = run.cells.iter().any(|c| c.get("random") == NEIGHBOURS);
    if random || fits == 0 || tried || !placed {
        return None;
    }
    Some(Cell::new(format!("{fits} AUs side by side, then one more"), &[("n", fits), ("random", NEIGHBOURS)]))
}

/// Opens AUs that lie side by side, as far as they were not written, and visits them in turn.
pub(super) fn visit_neighbours(slots: &Slots, n: usize, b: &mut Bench) -> Result<(), DeviceError> {
    let Some(au) = b.run.grid().unit else { return Ok(()) };
    let line = slow_line(b.run).unwrap_or(f64::INFINITY);
    let slow: Vec<f64> = writes(b.run).map(|s| s.took.micros()).filter(|&t| t > line).collect();
    let (until, per_slot) = (b.halfway(), slots.span / slots.chunk);
    let needs = median(&slow) * 1e3 * (n + FEW_SLOW) as f64;
    if !needs.is_finite() || LITTLE * needs > until.0.saturating_sub(b.now().0) as f64 {
        return Ok(());
    }
    let touched: std::collections::HashSet<u64> = writes(b.run).map(|s| s.at.saturating_sub(slots.first) / au).collect();
    // From the middle on: the front may be a FAT zone.
    let from = slots.count / 2 * (slots.spacing / au);
    let end = b.region.end.saturating_sub(slots.first) / au;
    let aus: Vec<u64> = (from..end).filter(|i| !touched.contains(i)).take(n + 1).collect();
    if aus.len() <= n {
        return Ok(());
    }
    let mut done: HashMap<u64, u64> = HashMap::new();
    let mut write = |b: &mut Bench, role: u8, au_number: u64| -> Result<bool, DeviceError> {
        let place = done.entry(au_number).or_default();
        let at = slots.first + au_number * au + *place * slots.chunk;
        *place += 1;
        Ok(b.write(role, at, slots.chunk)?.micros() > line)
    };
    for (role, count) in [(AS_MANY, n), (ONE_MORE, n + 1)] {
        let mut order = aus[..count].to_vec();
        for &new in if role == AS_MANY { &aus[..n] } else { &aus[n..] } {
            write(b, 0, new)?;
        }
        let (mut clean, mut half) = (0, 0);
        // What they have room for, and the time.
        for round in 1..=ROUNDS.min(per_slot.saturating_sub(2) as usize / 2) {
            b.shuffle(&mut order);
            let mut late = 0;
            for &i in &order {
                if b.now() >= until {
                    return Ok(());
                }
                late += usize::from(write(b, role, i)?);
            }
            clean = if late == 0 { clean + 1 } else { 0 };
            half += usize::from(2 * late >= count);
            // A round has to have gone before: what was open is thrown out by then.
            let rests = clean >= AT_REST && round > AT_REST;
            if rests || half >= HALF_SLOW || role == ONE_MORE && round >= AT_REST && late > 0 {
                break;
            }
        }
        if clean < AT_REST {
            break;
        }
    }
    Ok(())
}
