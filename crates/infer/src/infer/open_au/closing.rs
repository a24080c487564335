//! What closing an AU costs of which one unit was written. The visits of the search close AUs with more in them, of which the card has
//! less to copy: how much less is known of no single one.

use super::*;
use crate::infer::page_mapping::SHOWS;
use crate::infer::stats::{mad, shift};

/// The order of a cell that opens one AU after another, each with one write.
pub const CLOSING: i64 = 4;

/// Roles of reads in such a cell: of what was written, and of as much at the same place of an AU that was not.
pub const WRITTEN: u8 = 3;
pub const BESIDE: u8 = 4;

/// Fewer say nothing of how they vary.
pub const FEWEST: usize = 5;

/// Milliseconds by which a write that closes an AU of one write is slower than one that closes none, with its interval, and from how
/// many closings.
pub(super) fn after_one_write(run: &Case, slots: &Slots, line: f64) -> Option<(f64, [f64; 2], usize)> {
    let cell = run.cells.iter().find(|c| c.get("random") == CLOSING)?;
    let of = |role: u8, slow: bool| {
        let role = run.of(cell.id).filter(move |s| s.is_write() && s.role == role);
        role.map(|s| s.took.micros()).filter(move |&t| (t > line) == slow).map(|t| t / 1e3).collect::<Vec<f64>>()
    };
    let (slow, fast) = (of(1, true), of(2, false));
    if slow.len() < FEWEST || fast.len() < FEWEST {
        return None;
    }
    // Each of them goes to another AU, too.
    let change = moves(run).map_or(0.0, |m| median(&m) / 1e3 - median(&fast)).max(0.0);
    let (cost, interval) = shift(&slow, &fast)?;
    let (cost, mut interval) = (cost - change, interval.map(|ms| ms - change));
    if run.believed.write_unit().is_none() {
        // Of the unit only that it is no longer than the write is known.
        let au = run.believed.erase_block().filter(|e| *e > slots.chunk)?;
        interval[1] *= au as f64 / (au - slots.chunk) as f64;
    }
    Some((cost, interval, slow.len()))
}

/// An AU of which as much was written as of any in this run costs so much less to close: the factor at the most.
pub(super) fn filled(run: &Case, slots: &Slots) -> Option<f64> {
    let au = run.believed.erase_block()?;
    let mut of: HashMap<u64, u64> = HashMap::new();
    for s in writes(run) {
        *of.entry(au_of(run, slots, s)).or_default() += s.len;
    }
    let most = of.into_values().max().filter(|m| *m < au)?;
    Some(au as f64 / (au - most) as f64)
}

/// Microseconds by which flash beside what was written reads faster, where that is no chance: it holds no data, and a merge copies little. 2 % of a read at
/// least, and five standard errors.
pub fn empty_beside(run: &Case) -> Option<f64> {
    let cell = run.cells.iter().find(|c| c.get("random") == CLOSING)?;
    let of = |role: u8| run.of(cell.id).filter(|s| !s.is_write() && s.role == role).map(|s| s.took.micros()).collect::<Vec<f64>>();
    let (written, beside) = (of(WRITTEN), of(BESIDE));
    if written.len() < FEWEST || beside.len() < FEWEST {
        return None;
    }
    let faster = median(&written) - median(&beside);
    let error = mad(&written).hypot(mad(&beside)) * 1.25 / (beside.len() as f64).sqrt();
    (faster > (SHOWS * median(&beside)).max(5.0 * error)).then_some(faster)
}

/// What is told otherwise where flash without data was merged: the merge cost is a bound, and what is merged there costs the more, the further into an erase
/// block, which is no FAT zone.
pub fn of_empty(f: &mut Finding, faster: f64) {
    let seen = format!("AUs that were not written read {faster:.0} µs faster");
    match (f.quantity, f.number()) {
        (Quantity::CloseCostMs, Some(cost)) => {
            let why = "the flash there held no data, so a merge copied little; where it does, one takes longer (--prepare random writes the whole region first)";
            let least = f.interval.map_or(cost, |i| i[0].min(cost));
            f.becomes(Finding::at_least(f.quantity, least, f.confidence, why));
            f.evidence.push(format!("{seen} than those that were"));
        }
        (Quantity::FatZone, _) => {
            let why = "the flash held no data, and what a merge costs there depends on how much of the erase block was written";
            *f = f.clone().withdrawn(format!("{seen}: {why}"));
        }
        _ => {}
    }
}

/// More than the few units that a search wrote to an AU can add to a merge that copies all of it.
pub const MORE: f64 = 1.5;

/// Copying is so many times as fast as writes through the host at most: no command for each, more planes at once.
pub const FASTER: f64 = 4.0;

/// A merge that took `random` ms in random order and `sequential` ms in sequential order, less than programming an erase block can take: it copied
/// what the search had written, so the flash held little else, or it never copies more.
pub fn of_little(f: &mut Finding, sequential: f64, random: f64) {
    if let (Quantity::CloseCostMs, Some(cost)) = (f.quantity, f.number()) {
        let why = format!(
            "merges took {} ms in sequential order and {} ms in random order, which copies the whole erase block: the flash held little data, or no more is copied in order; \
             where it holds more, one takes longer (--prepare random writes the whole region first)",
            three(sequential),
            three(random)
        );
        let least = f.interval.map_or(cost, |i| i[0].min(cost));
        f.becomes(Finding::at_least(f.quantity, least, f.confidence, why));
    }
}
