//! Reads right after writes: what they take longer than others, and until when.

use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::pipeline::{Analysis, Fit};
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{bootstrap_median, median, two_kinds};
use crate::samples::{Cell, Run};
use crate::units::{Bytes, KIB, between};

/// Judges runs of `mixed-reads`.
pub struct MixedReads;

pub(super) const ANALYSES: &[&dyn Analysis] = &[&MixedReads];

/// Roles: writes of the burst; reads that bring the map to memory; reads after a rest; reads after the burst.
pub const WRITE: u8 = 0;
pub const LOAD: u8 = 1;
pub const RESTED: u8 = 2;
pub const AFTER: u8 = 3;

/// Bursts, and as many rests.
pub const TRIALS: usize = 12;
/// Fewer say nothing.
const FEWEST: usize = 6;
/// What a read takes longer counts from this share of its usual time, and from so many µs.
const SHARE: f64 = 0.1;
const LEAST: f64 = 20.0;
/// The first reads after a rest may wake a card.
const WAKES: usize = 4;
/// Reads are usual again where so many of the next ones are.
const NEXT: usize = 8;
const USUAL: usize = 7;

/// A read after a burst: ms since its end, and µs.
type Read = (f64, f64);

/// The reads after each burst.
fn after(run: &Run, cell: &Cell) -> Vec<Vec<Read>> {
    let one = |t: &Vec<&crate::samples::Sample>| {
        let end = t.iter().filter(|s| s.role == WRITE).map(|s| s.start.0 + s.took.0).max()?;
        let reads: Vec<Read> =
            t.iter().filter(|s| s.role == AFTER).map(|s| (s.start.0.saturating_sub(end) as f64 / 1e6, s.took.micros())).collect();
        (reads.len() > NEXT).then_some(reads)
    };
    run.trials(cell.id).iter().filter_map(one).collect()
}

/// µs of the reads after rests, without the first ones of each.
fn usual(run: &Run, cell: &Cell) -> Vec<f64> {
    let one =
        |t: &Vec<&crate::samples::Sample>| t.iter().filter(|s| s.role == RESTED).skip(WAKES).map(|s| s.took.micros()).collect::<Vec<_>>();
    run.trials(cell.id).iter().flat_map(one).collect()
}

/// ms from the end of a burst to the first read that is usual, as those after it are.
fn settled(reads: &[Read], line: f64) -> Option<f64> {
    let at = (1..reads.len().saturating_sub(NEXT))
        .find(|&i| reads[i].1 <= line && reads[i..i + NEXT].iter().filter(|r| r.1 <= line).count() >= USUAL)?;
    Some(reads[at].0)
}

/// Whether the first reads that took longer by more than `line`, or those that did not, are too many for the others to be the rule: a card that
/// keeps few translation pages misses the page that is read after some bursts only. A host is late now and then, but never early.
fn of_both_kinds(first: &[f64], line: f64, waits: bool) -> Option<String> {
    let (waited, n) = (first.iter().filter(|&&t| t > line).count(), first.len());
    let both = if waits { (n - waited) * 6 >= n } else { waited * 4 >= n };
    both.then(|| format!("after {waited} of {n} bursts the first read took longer, after the others not"))
}

impl Analysis for MixedReads {
    fn name(&self) -> &'static str {
        "mixed-reads"
    }

    fn fit(&self) -> Fit {
        Fit::Today
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        let (q, until) = (Quantity::ReadAfterWriteUs, Quantity::ReadSettlesMs);
        let [rested, burst] = &run.cells[..] else {
            return vec![Finding::undecided(q, format!("{} or --writes is too small for bursts and reads", run.stretch()))];
        };
        let (base, all) = (usual(run, rested), after(run, burst));
        if base.len() < 64 || all.len() < FEWEST {
            return vec![Finding::undecided(q, "too few reads were made after writes (more --time would decide)")];
        }
        let middle = median(&base);
        let scatter = 1.4826 * median(&base.iter().map(|t| (t - middle).abs()).collect::<Vec<_>>());
        let error = 1.2533 * scatter / (all.len() as f64).sqrt();
        let line = (SHARE * middle).max(LEAST).max(4.0 * error);
        let first: Vec<f64> = all.iter().map(|r| r[0].1 - middle).collect();
        let longer = median(&first);
        let Some(interval) = bootstrap_median(&first) else { return vec![] };
        let text = format!(
            "a read of {} takes {:.0} µs after a rest, the first one after {} of writes {:.0} µs",
            Bytes(rested.bytes("size")),
            middle,
            Bytes(burst.bytes("burst")),
            middle + longer
        );
        if let Some(why) = of_both_kinds(&first, line, interval[1] >= line) {
            return vec![Finding::undecided(q, why).evidence(text)];
        }
        if interval[1] < line {
            let f =
                Finding::decided(q, 0.0, SCORE).evidence(text).caveat("one read at a time: reads and writes in flight together may differ");
            return vec![Finding { interval: Some([0.0, interval[1].max(0.0)]), ..f }];
        }
        if let Some([low, high]) = two_kinds(&first, line) {
            let why = format!("after some bursts the first read took {low:.0} µs longer, after others {high:.0} µs");
            return vec![Finding::undecided(q, why).evidence(text)];
        }
        let f = Finding::decided(q, longer, SCORE).evidence(text.clone());
        let f = Finding { interval: Some(interval), ..f };
        let ends: Vec<Option<f64>> = all.iter().map(|r| settled(r, middle + (longer / 3.0).max(line))).collect();
        let ended: Vec<f64> = ends.iter().flatten().copied().collect();
        let lasts = median(&all.iter().filter_map(|r| r.last()).map(|r| r.0).collect::<Vec<_>>());
        if ended.len() * 4 < ends.len() * 3 {
            let why = format!("reads still took longer {lasts:.0} ms after the writes");
            let bound = if ended.is_empty() { Finding::at_least(until, lasts, SCORE, why) } else { Finding::undecided(until, why) };
            return vec![f, bound.evidence(text)];
        }
        let value = median(&ended);
        let Some([low, high]) = bootstrap_median(&ended) else { return vec![f] };
        if high - low > value {
            return vec![f, Finding::undecided(until, "after some bursts it takes much longer than after others").evidence(text)];
        }
        // It ended between this read and the one before.
        let step = (middle + longer) / 1e3;
        let settles = Finding::decided(until, value, SCORE).evidence(text);
        let settles =
            settles.evidence(format!("reads were as after a rest after {} ms", between(&format!("{low:.1}"), &format!("{high:.1}"))));
        vec![f, Finding { interval: Some([(low - step).max(0.0), high + step]), ..settles }]
    }

    fn figures(&self, run: &Case) -> Vec<Figure> {
        let Some(burst) = run.cells.get(1) else { return vec![] };
        let all = after(run, burst);
        let n = all.iter().map(Vec::len).min().unwrap_or(0);
        let at = |i: usize| {
            let of = |get: fn(&Read) -> f64| median(&all.iter().map(|r| get(&r[i])).collect::<Vec<_>>());
            (of(|r| r.0), of(|r| r.1))
        };
        let points: Vec<(f64, f64)> = (0..n).map(at).collect();
        if points.len() < 2 {
            return vec![];
        }
        vec![Figure {
            title: "reads after a burst of writes".into(),
            x: "ms since the last write".into(),
            y: "µs".into(),
            log_x: false,
            log_y: false,
            series: vec![Series { name: format!("reads of {} KiB", burst.bytes("size") / KIB), points }],
        }]
    }
}

/// docs/todays-cards.md says on what it was measured.
const SCORE: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_that_wait_now_and_then_are_of_both_kinds() {
        let of = |waited: usize| -> Vec<f64> { (0..12).map(|i| if i < waited { 300.0 } else { 1.0 }).collect() };
        let both = |waited: usize, waits: bool| of_both_kinds(&of(waited), 40.0, waits).is_some();
        assert_eq!([12, 11, 10, 7].map(|n| both(n, true)), [false, false, true, true]);
        assert_eq!([0, 2, 3, 5].map(|n| both(n, false)), [false, false, true, true], "a late host is no card that waits");
    }

    #[test]
    fn a_burst_is_over_where_reads_are_usual_and_stay_so() {
        let reads: Vec<Read> = (0..40).map(|i| (f64::from(i), if i < 12 || i == 20 { 900.0 } else { 300.0 })).collect();
        assert_eq!(settled(&reads, 400.0), Some(12.0), "one late read is a stall");
        assert_eq!(settled(&reads[..12], 400.0), None);
        let dip: Vec<Read> = (0..40).map(|i| (f64::from(i), if i < 12 && i != 5 { 900.0 } else { 300.0 })).collect();
        assert_eq!(settled(&dip, 400.0), Some(12.0), "one fast read is no end");
    }
}
