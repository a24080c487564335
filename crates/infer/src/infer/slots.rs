//! Where the AUs lie that are written in turn, and how much of each at a time: for the search for open AUs, and for the walk that looks
//! for where they begin.

use super::beliefs::{Beliefs, Case};
use crate::finding::Quantity;
use crate::samples::{FORM, Grid, Run};
use crate::units::{KIB, MIB};

/// AUs to try at most. Nobody has reported more open ones than 64 (U9: "64+"): a card that keeps just as many open shows it.
pub const MOST: i64 = 96;

/// Slots are used in steps of 2^LEVELS of them first.
const LEVELS: u32 = 4;

/// Names in the setting of a run.
const KEYS: [&str; 5] = ["slot_first", "slot_spacing", "slot_count", "slot_span", "slot_chunk"];

/// Bytes of a write that is a whole unit, where the unit is not known: 64 KiB, and no more than a 32nd of the erase block. Data sheets of
/// NAND have 64 pages a block and more, 32 in the oldest.
fn longest_unit(erase_block: Option<u64>) -> u64 {
    erase_block.map_or(64 * KIB, |e| (64 * KIB).min(1 << (e / 32).max(1).ilog2()))
}

/// Where a run may write, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Ground {
    pub start: u64,
    pub end: u64,
    pub sector: u64,
    /// Of the target on the disk.
    pub offset: u64,
}

impl Ground {
    fn of(run: &Run) -> Option<Ground> {
        let get = |key: &str| run.setting(key);
        Some(Ground { start: get("start")?, end: get("end")?, sector: get("sector")?, offset: get("offset").unwrap_or(0) })
    }
}

/// Where the AUs of the test lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slots {
    pub first: u64,
    pub spacing: u64,
    pub count: u64,
    /// Bytes of an AU that may be written: the erase block, or a guess well inside one.
    pub span: u64,
    /// Bytes of one write.
    pub chunk: u64,
}

impl Slots {
    /// Spreads AUs over the region, several erase blocks apart, so that a wrong erase block still gives different ones.
    pub fn plan(ground: &Ground, grid: &Grid, believed: &Beliefs) -> Option<Slots> {
        let Ground { start, end, offset, .. } = *ground;
        let sector = ground.sector.max(512);
        let known = grid.unit.filter(|&e| e >= 16 * sector);
        // Where erase blocks begin may be known to some KiB only: those are left out.
        let about = grid.about.filter(|_| grid.phase.is_none());
        let slack = about.and(grid.slack).unwrap_or(0);
        // Less than one unit would be combined with the next write to the same AU, and cost more with several AUs in turn.
        let unit = believed.write_unit().unwrap_or_else(|| longest_unit(known)).max(believed.whole(Quantity::AccessUnit).unwrap_or(0));
        let room = end.checked_sub(start)?;
        let filled = believed.filled().is_some();
        // A FAT zone, if any, lies in the first AUs of the disk: with one of them in the search, one more would seem to stay open.
        let skip = (16 * MIB).max(known.unwrap_or(0) * 8).saturating_sub(offset + start).min(room / 8);
        let (au, phase) = match known {
            Some(e) => (e, grid.phase.or(about.map(|a| a + slack)).unwrap_or(0)),
            // 192 MiB is a multiple of nearly all sizes in use, and more than any; less where there is no room for a few dozen:
            // two places in one AU would count as two.
            None => {
                let grids = [192, 96, 48, 24, 12, 6, 3].map(|m| m * MIB);
                let roomy = grids.into_iter().find(|g| filled && room / g >= MOST as u64);
                let grid = roomy.or(grids.into_iter().find(|g| room / g >= 32)).unwrap_or(MIB);
                (grid, (grid - offset % grid) % grid)
            }
        };
        let base = (start + skip).saturating_sub(phase).next_multiple_of(au) + phase;
        let fits = end.checked_sub(base)? / au;
        // Well apart, but as many as are needed: all there may be, where dozens stayed open before.
        let dozens = [believed.linear_least(), believed.whole(Quantity::OpenAusLinear)].into_iter().flatten().any(|n| n >= 24);
        let some = |n: u64| [16, 12, 7, 5, 3, 2, 1].into_iter().find(|s| fits / s >= n);
        let apart = known.and(some(MOST as u64 + 1).filter(|_| dozens).or(some(40))).unwrap_or(1);
        let span = match known {
            Some(e) if e > 4 * slack => e - 2 * slack,
            _ => (au / 4).clamp(128 * KIB, 512 * KIB),
        };
        // Small against the AU, so that the cost of closing stands out and many rounds fit; not below what one write costs, nor,
        // when no limit showed, what a log for small writes would take.
        let small = if filled { (64 * KIB).min(span / 8) } else { (32 * KIB).min(span / 32) };
        let most = span / if known.is_some() { 8 } else { 4 };
        let chunk = small.max(unit.min(most));
        // Behind a slow bus such a write would take longer than closing an AU, and hide it: as much as goes in 30 ms.
        let slow = believed.write_ns_per_kib.filter(|ns| chunk / KIB * ns > 40_000_000);
        let least = believed.write_unit().unwrap_or(0).max(4 * KIB);
        let chunk = slow.map_or(chunk, |ns| chunk.min(least.max(1 << (30_000_000 / ns * KIB).max(1).ilog2())));
        // Whole units: what begins in the middle of one is no longer in order where other AUs were written in between.
        let whole = believed.write_unit().map(|u| chunk.next_multiple_of(u.max(1))).filter(|&c| c <= most);
        let chunk = whole.unwrap_or(chunk).max(sector) / sector * sector;
        let slots = Slots { first: base, spacing: au * apart, count: fits / apart, span: span / chunk * chunk, chunk };
        (slots.count >= 2).then_some(slots)
    }

    /// Those of a run, as it wrote them. Earlier versions planned them anew from what they saved.
    pub fn of(case: &Case) -> Option<Slots> {
        if case.form < FORM {
            return Slots::plan(&Ground::of(case)?, &case.grid(), case.believed);
        }
        let get = |key: &str| case.setting(key);
        let [first, spacing, count, span, chunk] = KEYS.map(get);
        let slots = Slots { first: first?, spacing: spacing?, count: count?, span: span?, chunk: chunk? };
        // What was read from a file may hold any numbers.
        let room = slots.count.checked_mul(slots.spacing).and_then(|all| all.checked_add(slots.first));
        let sound = slots.chunk > 0 && slots.span >= slots.chunk && slots.spacing > 0 && slots.count >= 2;
        Some(slots).filter(|_| sound && room.is_some_and(|r| Some(r) <= get("end")))
    }

    /// For the setting of a run.
    pub fn done(&self) -> [(&'static str, i64); 5] {
        let values = [self.first, self.spacing, self.count, self.span, self.chunk];
        std::array::from_fn(|i| (KEYS[i], values[i] as i64))
    }

    /// Slots in the order of use: those far apart first. Where AUs are guessed, two places are then the less likely to lie in one. The one at
    /// the front last: it may still lie in a FAT zone (exFAT on cards of 64 GB and more has its tables up to 32 MiB).
    pub fn spread(&self) -> Vec<u64> {
        let mut all: Vec<u64> = (1..self.count).collect();
        nandscope_stats::sort_by_key(&mut all, |s| std::cmp::Reverse(s.trailing_zeros().min(LEVELS)));
        all.push(0);
        all
    }

    /// Bytes between the first `n` slots in the order of use, at least.
    pub fn apart(&self, n: usize) -> u64 {
        let coarse = (0..=LEVELS).rev().find(|l| (self.count - 1) >> l >= n as u64);
        self.spacing << coarse.unwrap_or(0)
    }

    /// First byte of a slot.
    pub fn at(&self, slot: u64) -> u64 {
        self.first + slot % self.count * self.spacing
    }
}
