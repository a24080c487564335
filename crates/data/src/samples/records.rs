//! What a record benchmark measured: a histogram, a time line, and the calls in order, in bounded memory.

use crate::units::Nanos;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Calls kept one by one at most. Beyond that the faster half is only summed up.
const MOST: usize = 1 << 16;
/// Stretches of the time line at most.
const STRETCHES: usize = 128;

/// One call, with the faster ones before it that are only summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Calls since the last one that is kept, and how long they took together.
    pub before: u64,
    pub before_ns: u64,
    pub took_ns: u64,
}

/// A part of the time line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    pub records: u64,
    /// Longest call, ns.
    pub worst_ns: u64,
}

/// One time that the file was written or read from its start; a run of fixed time has many in one pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    /// Number of its first record in the pass.
    pub first: u64,
    /// Where the file began on the target then, in bytes, where it is known to lie in one piece.
    pub position: Option<u64>,
}

/// One pass over the file.
#[derive(Clone, Debug)]
pub struct Pass {
    pub write: bool,
    /// Bytes of a record.
    pub record: u64,
    pub records: u64,
    /// From before the first call to behind the last sync.
    pub elapsed: Nanos,
    /// Sum of all calls.
    pub total: Nanos,
    pub longest: Nanos,
    pub shortest: Nanos,
    pub opened: Nanos,
    pub closed: Nanos,
    /// ns of the calls, of three significant digits.
    pub histogram: Histogram<u64>,
    /// The calls that are kept; calls behind the last of them are in `after`.
    pub calls: Vec<Call>,
    pub after: (u64, u64),
    /// ns of a stretch.
    pub stretch: u64,
    pub timeline: Vec<Stretch>,
    /// Where the file began on the target.
    pub position: Option<u64>,
    /// The calls were only counted, by how long they took: `calls` and `timeline` are empty, since nobody knows their order.
    pub unordered: bool,
    /// The times the file was begun; empty: once, with the first record.
    pub rounds: Vec<Round>,
    /// The first call, which longest and shortest may leave out.
    pub first: Nanos,
    /// The longest call, ns, with the first.
    top: u64,
    /// Calls up to this long are only summed up.
    floor: u64,
    skip: bool,
}

impl Pass {
    /// An empty pass; with `skip_first` the first call is left out of longest and shortest, as SdFat has it.
    pub fn new(write: bool, record: u64, skip_first: bool) -> Pass {
        // A call longer than an hour counts as an hour.
        let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).unwrap_or_else(|_| unreachable!("constant bounds"));
        histogram.auto(false);
        Pass {
            write,
            record,
            records: 0,
            elapsed: Nanos(0),
            total: Nanos(0),
            longest: Nanos(0),
            shortest: Nanos(u64::MAX),
            opened: Nanos(0),
            closed: Nanos(0),
            histogram,
            calls: vec![],
            after: (0, 0),
            stretch: 1_000_000,
            timeline: vec![],
            position: None,
            unordered: false,
            rounds: vec![],
            first: Nanos(0),
            top: 0,
            floor: 0,
            skip: skip_first,
        }
    }

    /// A pass of which the number of calls, their sum and extremes (ns) are known; [`Pass::count`] adds how long they took.
    pub fn unordered(write: bool, record: u64, calls: u64, total: u64, [shortest, longest]: [u64; 2]) -> Pass {
        Pass {
            records: calls,
            elapsed: Nanos(total),
            total: Nanos(total),
            longest: Nanos(longest),
            shortest: Nanos(shortest),
            unordered: true,
            top: longest,
            ..Pass::new(write, record, false)
        }
    }

    /// Counts calls of an unordered pass that took `most` ns or little less; their number and sum are known already.
    pub fn count(&mut self, most: u64, calls: u64) {
        let ns = most.clamp(self.shortest.0.max(1), self.top.max(1));
        self.histogram.saturating_record_n(ns, calls);
    }

    /// Calls of an unordered pass that its histogram lacks: lines of it were lost. No percentile can be known without them.
    pub fn missing(&self) -> u64 {
        if self.unordered { self.records.saturating_sub(self.histogram.len()) } else { 0 }
    }

    /// Counts one call that ended `at` ns after the pass began.
    #[inline]
    pub fn add(&mut self, took: Nanos, at: u64) {
        let ns = took.0;
        self.histogram.saturating_record(ns.max(1));
        if self.records == 0 {
            self.first = took;
        }
        self.records += 1;
        self.total.0 += ns;
        self.top = self.top.max(ns);
        if self.records > 1 || !self.skip {
            self.longest = self.longest.max(took);
            self.shortest = self.shortest.min(took);
        }
        if ns > self.floor || self.floor == 0 {
            let (before, before_ns) = std::mem::take(&mut self.after);
            self.calls.push(Call { before, before_ns, took_ns: ns });
            if self.calls.len() >= MOST {
                self.thin();
            }
        } else {
            self.after = (self.after.0 + 1, self.after.1 + ns);
        }
        let mut i = at / self.stretch;
        while i >= STRETCHES as u64 {
            let joined = self.timeline.chunks(2).map(|c| {
                let b = c.get(1).copied().unwrap_or_default();
                Stretch { records: c[0].records + b.records, worst_ns: c[0].worst_ns.max(b.worst_ns) }
            });
            self.timeline = joined.collect();
            self.stretch *= 2;
            i = at / self.stretch;
        }
        let i = i as usize;
        if self.timeline.len() <= i {
            self.timeline.resize(i + 1, Stretch::default());
        }
        let s = &mut self.timeline[i];
        (s.records, s.worst_ns) = (s.records + 1, s.worst_ns.max(ns));
    }

    /// Keeps the slower half one by one.
    fn thin(&mut self) {
        let mut all: Vec<u64> = self.calls.iter().map(|c| c.took_ns).collect();
        let middle = all.len() / 2;
        self.floor = (*all.select_nth_unstable(middle).1).max(1);
        // Where all calls are alike, only longer ones are kept from now on.
        let mut sum = (0, 0);
        let mut kept = Vec::with_capacity(MOST);
        for c in &self.calls {
            sum = (sum.0 + c.before, sum.1 + c.before_ns);
            if c.took_ns > self.floor {
                kept.push(Call { before: sum.0, before_ns: sum.1, took_ns: c.took_ns });
                sum = (0, 0);
            } else {
                sum = (sum.0 + 1, sum.1 + c.took_ns);
            }
        }
        self.after = (self.after.0 + sum.0, self.after.1 + sum.1);
        self.calls = kept;
    }

    pub fn bytes(&self) -> u64 {
        self.records * self.record
    }

    /// kB/s (1000), syncs included, as SdFat has it.
    pub fn speed(&self) -> f64 {
        self.bytes() as f64 * 1e6 / (self.elapsed.0.max(1)) as f64
    }

    /// Mean of all calls in µs.
    pub fn mean(&self) -> f64 {
        self.total.micros() / self.records.max(1) as f64
    }

    /// Longest and shortest call in µs. The only call of a pass is both.
    pub fn max_min(&self) -> (f64, f64) {
        if self.shortest.0 == u64::MAX {
            (self.first.micros(), self.first.micros())
        } else {
            (self.longest.micros(), self.shortest.micros())
        }
    }

    /// A percentile (0 to 100) in µs; never above the longest call (U27).
    pub fn percentile(&self, p: f64) -> f64 {
        // A bin's upper end may lie above anything measured.
        self.histogram.value_at_quantile((p / 100.0).clamp(0.0, 1.0)).min(self.top) as f64 / 1e3
    }

    /// Whether the first call is left out of longest and shortest, and is longer or shorter than both.
    pub fn left_out(&self) -> bool {
        self.skip && self.records > 1 && (self.first > self.longest || self.first < self.shortest)
    }

    /// The time that calls took beyond the shortest one: (mean - shortest) times the number of records.
    pub fn lost(&self) -> Nanos {
        Nanos(((self.mean() - self.max_min().1).max(0.0) * 1e3 * self.records as f64) as u64)
    }

    /// The round of a record, and the place in the file where the record begins.
    pub fn round_of(&self, record: u64) -> (usize, u64) {
        let i = self.rounds.partition_point(|r| r.first <= record).saturating_sub(1);
        (i, (record - self.rounds.get(i).map_or(0, |r| r.first)) * self.record)
    }

    /// Where a round began on the target, where that is known.
    pub fn began(&self, round: usize) -> Option<u64> {
        self.rounds.get(round).map_or(self.position, |r| r.position)
    }

    /// Kept calls with the number of their record and when they began, in ns of calls made so far.
    pub fn timed(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.calls.iter().scan((0u64, 0u64), |(record, time), c| {
            *record += c.before;
            *time += c.before_ns;
            let here = (*record, *time, c.took_ns);
            *record += 1;
            *time += c.took_ns;
            Some(here)
        })
    }
}

/// The consistency rule (G7): record / speed is the mean and what the loop adds, a few µs. Returns that addition in µs.
/// `record` in bytes, `speed` in kB/s, `mean` in µs.
pub fn loop_time(record: u64, speed: f64, mean: f64) -> f64 {
    record as f64 * 1e3 / speed - mean
}

/// Whether speed (kB/s) and mean (µs) of a published or measured row can be of one pass: the loop takes no negative time, but
/// for what the print allows.
pub fn consistent(record: u64, speed: f64, mean: f64) -> bool {
    loop_time(record, speed, mean) >= -print_error(record, speed)
}

/// By how many µs speed and mean may contradict each other through the way they are printed: the mean in whole µs, the speed with
/// the digits it has (a zero at the end is not seen, which allows more), the whole pass timed in steps of 1 ms, as SdFat does;
/// spread over 1 MB, the smallest file that is usual.
fn print_error(record: u64, speed: f64) -> f64 {
    let decimals = speed.to_string().split_once('.').map_or(0, |d| d.1.len().min(9)) as i32;
    let each = record as f64 * 1e3 / speed;
    1.0 + each * 0.5 * 10f64.powi(-decimals) / speed + 1e3 * record as f64 / 1e6
}

/// The longest that the first call of a pass takes beyond all others, in µs: a card may be busy for so long.
const FIRST_US: f64 = 250e3;

/// Why the printed figures of a pass cannot be of one pass; `None` where they can. Speed in kB/s, times in µs. Every reader of
/// such rows asks this one function, so that a row is flagged everywhere or nowhere (G7).
pub fn contradiction(record: Option<u64>, speed: f64, [max, min, mean]: [f64; 3]) -> Option<String> {
    if speed.is_nan() || speed <= 0.0 {
        return Some("a speed of zero".into());
    }
    // The first call counts in the mean only: one of as many as a file of 1 MB has records, and no card may be busy for more than 250 ms.
    let first = FIRST_US * record.unwrap_or(512) as f64 / 1e6;
    let text = |us: f64| format!("{:.2}", us).trim_end_matches('0').trim_end_matches('.').to_string();
    if min > max * 1.0001 || mean - 1.0 > max * 1.005 + first {
        return Some(format!("the average of {} or the shortest of {} µs is above the longest of {} µs", text(mean), text(min), text(max)));
    }
    if mean.is_finite() && mean + 1.0 < min * 0.995 {
        return Some(format!("the average of {} µs is below the shortest of {} µs: the two are not of one pass", text(mean), text(min)));
    }
    let record = record.filter(|&r| mean.is_finite() && !consistent(r, speed, mean))?;
    let each = record as f64 * 1e3 / speed;
    Some(format!(
        "inconsistent: {speed} kB/s is {each:.0} µs a record of {record} B, less than the average of {mean} µs: the two are not of one pass"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_sdfat() {
        let mut p = Pass::new(true, 100, true);
        let mut at = 0;
        for us in [900u64, 80, 90, 80, 1000] {
            at += us * 1000;
            p.add(Nanos(us * 1000), at);
        }
        p.elapsed = Nanos(2_500_000);
        assert_eq!(p.max_min(), (1000.0, 80.0), "the first call is left out");
        assert_eq!((p.mean(), p.speed()), (430.0, 200.0), "and counts in the mean");
        assert!((p.percentile(50.0) - 90.0).abs() < 0.1 && p.percentile(100.0) <= 1000.0);
        assert_eq!(p.timed().last(), Some((4, 1_150_000, 1_000_000)));
        let mut one = Pass::new(true, 100, true);
        assert_eq!(one.max_min(), (0.0, 0.0));
        one.add(Nanos(900_000), 900_000);
        assert_eq!((one.max_min(), one.mean()), ((900.0, 900.0), 900.0), "the only call is no call left out");
    }

    #[test]
    fn memory_is_bounded_and_nothing_is_lost() {
        let mut p = Pass::new(true, 512, false);
        let (mut at, mut sum) = (0, 0);
        for i in 0..400_000u64 {
            let ns = if i % 1000 == 7 { 50_000_000 } else { 1_000_000 + i % 97 };
            at += ns;
            sum += ns;
            p.add(Nanos(ns), at);
        }
        assert!(p.calls.len() < MOST && p.timeline.len() <= STRETCHES);
        let slow: Vec<_> = p.timed().filter(|c| c.2 == 50_000_000).collect();
        assert_eq!((slow.len(), slow[1].0 - slow[0].0), (400, 1000));
        let kept: u64 = p.calls.iter().map(|c| c.before_ns + c.took_ns).sum::<u64>() + p.after.1;
        let count: u64 = p.calls.iter().map(|c| c.before + 1).sum::<u64>() + p.after.0;
        assert_eq!((kept, count), (sum, 400_000));
        assert_eq!(p.timeline.iter().map(|s| s.records).sum::<u64>(), 400_000);
        let q: Vec<f64> = [1.0, 50.0, 90.0, 99.0, 99.9, 100.0].iter().map(|&x| p.percentile(x)).collect();
        assert!(q.windows(2).all(|w| w[0] <= w[1]) && q[5] <= p.max_min().0, "{q:?}");
    }

    /// G5, G7: all rows pass but the one whose figures are of two passes.
    #[test]
    fn the_inconsistent_row_is_found() {
        for (record, speed, mean) in [(512, 407.57, 1250.0), (100, 278.40, 354.0), (512, 152.31, 3355.0), (512, 488.39, 1043.0)] {
            assert!(consistent(record, speed, mean) && (5.0..7.2).contains(&loop_time(record, speed, mean)));
        }
        assert!(!consistent(512, 392.32, 1339.0) && loop_time(512, 392.32, 1339.0) < -33.0);
        let why = |speed: f64, times: [f64; 3]| contradiction(Some(512), speed, times);
        assert_eq!(why(392.32, [62500.0, 1184.0, 1299.0]), None);
        assert!(why(392.32, [62500.0, 1184.0, 1339.0]).unwrap().contains("not of one pass"));
        assert!(why(392.32, [1000.0, 1184.0, 1299.0]).unwrap().contains("above the longest"));
        assert!(why(0.0, [1.0, 1.0, 1.0]).unwrap().contains("zero") && why(f64::NAN, [1.0; 3]).is_some());
        // An average below the shortest, a loop that takes less than no time; and what rounding alone does.
        assert!(contradiction(Some(512), 400.0, [85756.0, 1300.0, 1250.0]).unwrap().contains("below the shortest"));
        assert!(contradiction(None, 600.0, [85756.0, 1152.0, 800.0]).unwrap().contains("below the shortest"));
        for (record, speed, mean) in [(512, 406.55, 1266.14), (512, 392.32, 1311.8), (100, 278.41, 365.95), (4096, 1500.25, 2736.9)] {
            let loss = loop_time(record, speed, mean);
            assert!((-8.0..-6.5).contains(&loss), "{loss}");
            assert!(contradiction(Some(record), speed, [85756.0, 84.0, mean]).is_some(), "{record} {speed} {mean}");
            assert_eq!(contradiction(Some(record), speed, [85756.0, 84.0, mean + loss - 1.0]), None);
        }
        assert_eq!(contradiction(Some(512), 200.0, [85756.0, 84.0, 2565.0]), None, "200 kB/s may be 199.5");
        assert_eq!(contradiction(Some(512), 493.67, [1042.0, 1037.0, 1037.0]), None, "all records alike");
        assert_eq!(contradiction(Some(512), 464.0, [1099.616, 1099.616, 1100.163]), None, "the first counts in the mean only");
        assert_eq!(contradiction(Some(4096), 441.9, [9119.0, 9119.0, 9166.0]), None, "and may be longer than all others");
        assert!(contradiction(Some(4096), 441.9, [9119.0, 9119.0, 11_166.0]).unwrap().contains("above the longest"));
        assert_eq!(contradiction(None, 392.32, [62500.0, 1184.0, 1339.0]), None, "without the size of a record nothing can be said");
    }
}
