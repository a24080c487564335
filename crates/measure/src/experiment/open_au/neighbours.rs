//! As many AUs as stay open all over the card, side by side, and one more; or, where these do not come to rest, as many elsewhere.

use super::*;
use crate::units::Nanos;
use std::collections::{BTreeSet, HashSet};

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
    let (until, per_slot) = (b.halfway(), slots.span / slots.chunk);
    let needs = slow_writes_take(n + FEW_SLOW, line, b.run);
    if !needs.is_finite() || LITTLE * needs > until.0.saturating_sub(b.now().0) as f64 {
        return Ok(());
    }
    let touched: HashSet<u64> = writes(b.run).map(|s| s.at.saturating_sub(slots.first) / au).collect();
    let begins = |number: u64| slots.first + number * au;
    // Not far from those that came to rest: in the same part of the card each, and behind where these were gone on with.
    let (apart, end) = (slots.spacing / au, b.region.end.saturating_sub(slots.first) / au);
    let beside = at_rest(b.run, slots, n, line).into_iter().map(|slot| slot * apart + (apart / 2).max(1));
    let others: Vec<u64> = beside.filter(|i| !touched.contains(i) && *i < end).collect();
    // From the middle on: the front may be a FAT zone.
    let from = slots.count / 2 * apart;
    let aus: Vec<u64> = (from..end).filter(|i| !touched.contains(i) && !others.contains(i)).take(n + 1).map(begins).collect();
    let others: Vec<u64> = others.into_iter().map(begins).collect();
    if aus.len() <= n || others.len() < n {
        return Ok(());
    }
    let most = ROUNDS.min(per_slot.saturating_sub(2) as usize / 2);
    let mut turns = Turns { line, until, chunk: slots.chunk, most, done: HashMap::new() };
    if turns.rest(AS_MANY, &aus[..n], n, b)? {
        turns.rest(ONE_MORE, &aus, 1, b)?;
    } else {
        turns.rest(ELSEWHERE, &others, n, b)?;
    }
    Ok(())
}

/// The slots of the last trial of `n` AUs that came to rest.
fn at_rest(run: &Case, slots: &Slots, n: usize, line: f64) -> BTreeSet<u64> {
    let visits = |c: &Cell| run.of(c.id).filter(|s| s.role > 0).collect::<Vec<_>>();
    let counts = run.cells.iter().rev().filter(|c| c.get("random") == 0 && c.get("n") == n as i64);
    let mut last_rounds = counts.map(visits).filter(|v| v.len() >= n).map(|v| v[v.len() - n..].to_vec());
    let settled = last_rounds.find(|v| v.iter().all(|s| s.took.micros() <= line));
    settled.map_or(BTreeSet::new(), |v| v.into_iter().map(|s| slot_of(slots, s)).collect())
}

/// AUs that are written in turn.
struct Turns {
    /// µs above which a write is slow.
    line: f64,
    until: Nanos,
    /// Bytes of a write.
    chunk: u64,
    /// Rounds at most: what they have room for.
    most: usize,
    /// Writes of each, by where it begins.
    done: HashMap<u64, u64>,
}

impl Turns {
    fn write(&mut self, role: u8, au: u64, b: &mut Bench) -> Result<bool, DeviceError> {
        let place = self.done.entry(au).or_default();
        let at = au + *place * self.chunk;
        *place += 1;
        Ok(b.write(role, at, self.chunk)?.micros() > self.line)
    }

    /// Opens the last `new` of them and visits all in rounds: did they come to rest?
    fn rest(&mut self, role: u8, aus: &[u64], new: usize, b: &mut Bench) -> Result<bool, DeviceError> {
        for &au in &aus[aus.len() - new..] {
            self.write(0, au, b)?;
        }
        let mut order = aus.to_vec();
        let (mut clean, mut half) = (0, 0);
        for round in 1..=self.most {
            b.shuffle(&mut order);
            let mut late = 0;
            for &au in &order {
                if b.now() >= self.until {
                    return Ok(false);
                }
                late += usize::from(self.write(role, au, b)?);
            }
            clean = if late == 0 { clean + 1 } else { 0 };
            half += usize::from(2 * late >= aus.len());
            // A round has to have gone before: what was open is thrown out by then.
            let rests = clean >= AT_REST && round > AT_REST;
            if rests || half >= HALF_SLOW || role == ONE_MORE && round >= AT_REST && late > 0 {
                break;
            }
        }
        Ok(clean >= AT_REST)
    }
}
