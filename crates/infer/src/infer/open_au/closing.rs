//! What closing an AU costs of which one unit was written. The visits of the search close AUs with more in them, of which the card has
//! less to copy: how much less is known of no single one.

use super::*;
use crate::finding::Number;
use crate::infer::page_mapping::SHOWS;
use crate::infer::stats::{larger, mad, quantile, shift};

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

/// Microseconds of reads of what was written and of as much beside it; `None` where they are too few to say how they vary.
fn reads_of_both(run: &Case) -> Option<[Vec<f64>; 2]> {
    let cell = run.cells.iter().find(|c| c.get("random") == CLOSING)?;
    Some([WRITTEN, BESIDE].map(|role| run.micros(cell, role))).filter(|both| both.iter().all(|us| us.len() >= FEWEST))
}

/// Microseconds by which flash beside what was written reads faster, where that is no chance: it holds no data, and a merge copies little. 2 % of a read at
/// least, and five standard errors.
pub fn empty_beside(run: &Case) -> Option<f64> {
    let [written, beside] = reads_of_both(run)?;
    let faster = median(&written) - median(&beside);
    let error = mad(&written).hypot(mad(&beside)) * 1.25 / (beside.len() as f64).sqrt();
    (faster > (SHOWS * median(&beside)).max(5.0 * error) && larger(&written, &beside) >= SOONER).then_some(faster)
}

/// Of two reads, one of each kind, the one of flash that holds nothing is the faster so often, at least: of 16 and 16 that is three standard errors. On a host
/// that answers at frames, or whose clock changes, times are of two kinds, and their medians differ by chance.
const SOONER: f64 = 0.8;

/// One in so many reads beside what was written is faster, on a card that was written in part.
const PARTLY: usize = 5;

/// Microseconds by which some of the flash beside what was written reads faster than nearly all that was: it holds no data there, and data elsewhere.
pub fn partly_empty(run: &Case) -> Option<f64> {
    let [written, beside] = reads_of_both(run)?;
    let line = quantile(&written, 0.1) - (SHOWS * median(&beside)).max(5.0 * mad(&written));
    let fast: Vec<f64> = beside.iter().copied().filter(|us| *us < line).collect();
    (fast.len() * PARTLY >= beside.len() && fast.len() * 2 <= beside.len()).then(|| median(&written) - median(&fast))
}

/// Milliseconds by which the writes that incurred a merge took longer than those that did not, of a search.
pub fn merges(run: &Case) -> Vec<f64> {
    let base = median(&fast(run));
    let Some(line) = slow_line(run) else { return vec![] };
    writes(run).map(|s| s.took.micros()).filter(|us| *us > line).map(|us| (us - base) / 1e3).collect()
}

/// Merges that cost the same to this part, so many of them and one in so many of all, are those that copy a whole erase block, if no such number cost
/// more.
const SAME: f64 = 0.08;
const WHOLE: usize = 6;
const WHOLE_IN: usize = 5;

/// What a merge of a whole erase block costs in ms, where some find little to copy.
fn whole(merges: &[f64]) -> Option<f64> {
    let mut all = merges.to_vec();
    all.sort_unstable_by(f64::total_cmp);
    let least = WHOLE.max(all.len().div_ceil(WHOLE_IN));
    let window = |from: usize| all[from..].iter().take_while(|ms| **ms <= all[from] * (1.0 + SAME)).count();
    let from = (0..all.len()).rev().find(|&i| window(i) >= least)?;
    // As many as there are from a little further down.
    let from = (0..=from).max_by_key(|&i| if all[i] * (1.0 + SAME) >= all[from] { window(i) } else { 0 })?;
    Some(median(&all[from..from + window(from)]))
}

/// What is told otherwise where flash that holds data in part was merged: a merge may find all of an erase block to copy, or none of it.
pub fn of_part(f: &mut Finding, faster: f64, merges: &[f64]) {
    let seen = format!("some AUs that were not written read {faster:.0} µs faster than those that were");
    match (f.quantity, f.number(), whole(merges)) {
        (Quantity::CloseCostMs, Some(_), Some(ms)) => {
            f.value = Some(Number((ms * 100.0).round() / 100.0));
            f.interval = None;
            f.confidence = f.confidence.min(IN_PART);
            f.evidence
                .push(format!("{seen}: the flash held data in part, and this is what the longest merges took that came again and again"));
        }
        _ => of_empty(f, faster),
    }
}

/// The confidence in a merge cost of a card that was written in part, at most.
const IN_PART: f64 = 0.9;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_times_of_two_kinds_differ_by_chance() {
        // A full card behind a reader that answers at frames of 125 us, and one that held nothing (eleventh program).
        let written = [619.0, 621.0, 621.0, 621.0, 621.0, 743.0, 743.0, 744.0, 744.0, 744.0, 744.0, 745.0, 745.0, 746.0, 746.0, 747.0];
        let beside = [619.0, 619.0, 619.0, 620.0, 620.0, 621.0, 622.0, 622.0, 622.0, 743.0, 744.0, 744.0, 746.0, 746.0, 746.0, 747.0];
        assert!(larger(&written, &beside) < SOONER);
        assert!(larger(&[344.0, 345.0, 347.0, 350.0, 721.0], &[262.0, 263.0, 265.0, 266.0, 266.0]) >= SOONER);
    }

    #[test]
    fn merges_that_come_again_and_again_are_whole_ones() {
        // A card of 1.2 GiB of which 769 MiB held data (tenth program of docs/confidence-programs.md), both orders.
        let linear =
            [29.2, 36.5, 57.5, 102.6, 404.6, 827.4, 842.0, 877.3, 884.7, 891.2, 894.5, 897.4, 903.1, 904.5, 914.9, 918.9, 922.3, 923.3];
        let random = [
            34.2, 40.6, 40.9, 60.1, 61.7, 66.7, 83.2, 120.6, 130.5, 136.2, 145.2, 839.0, 895.0, 913.4, 915.6, 920.5, 921.2, 921.8, 924.2,
            925.2,
        ];
        let all: Vec<f64> = linear.into_iter().chain(random).collect();
        let ms = whole(&all).unwrap();
        assert!((890.0..930.0).contains(&ms), "{ms}");
        // Four stalls are none of them, and costs that all differ name no whole one.
        let stalls: Vec<f64> = all.iter().copied().chain([1800.0, 1810.0, 1820.0, 1830.0]).collect();
        assert_eq!(whole(&stalls), Some(ms));
        assert_eq!(whole(&(1..40).map(|i| 1.1f64.powi(i)).collect::<Vec<f64>>()), None);
        assert_eq!(whole(&[900.0; 5]), None, "five are too few");
    }
}
