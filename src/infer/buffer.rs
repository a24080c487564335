//! The buffer a logger needs so that it loses nothing while a card stalls (G9), and the check of it by replaying the calls.

use crate::samples::records::{Call, Pass};
use serde::Serialize;

/// "To log at `rate` with less than one loss in `gb` GB you need `bytes` of buffer."
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Bytes a second that are logged.
    pub rate: f64,
    /// GB (10^9) with less than one loss, at 95 %.
    pub gb: f64,
    /// Bytes; none where the calls cannot carry the rate, or are too few for the question.
    pub bytes: Option<u64>,
    /// Why there is none, or what the answer rests on.
    pub because: String,
    /// Losses in a replay with that buffer, and with a record less.
    pub replayed: Option<[u64; 2]>,
    /// The same question put to the first half of the calls, and the losses of that answer in the second half.
    pub halves: Option<(u64, u64)>,
}

/// 95 % upper bounds of a mean of which 0, 1, 2, ... events were seen (Poisson, one-sided).
const UPPER: [f64; 8] = [3.00, 4.74, 6.30, 7.75, 9.15, 10.51, 11.84, 13.15];

/// The most that `bytes` written without a loss can say, in GB: less than one loss in so many, at 95 %.
pub fn claim(bytes: u64) -> f64 {
    bytes as f64 / 1e9 / UPPER[0]
}

/// Records that wait at most, in each stretch of time in which the writer is never idle for want of a backlog.
/// `interval` is the time between records in ns.
fn peaks(calls: &[Call], after: (u64, u64), interval: f64) -> Vec<u64> {
    let mut out = vec![];
    // How far behind the arrival of its record the writer is when it is done with it, ns; the worst of the episode.
    let (mut behind, mut worst) = (0.0f64, 0.0f64);
    let mut step = |took: f64, times: u64| {
        if times == 0 {
            return;
        }
        let idle = behind <= interval;
        if idle && worst > 0.0 {
            out.push((worst / interval) as u64 + 1);
            worst = 0.0;
        }
        behind = (behind - interval).max(0.0) + took;
        worst = worst.max(behind);
        // The others of a group that is summed up are alike.
        let more = (times - 1) as f64;
        behind = (behind + more * (took - interval)).max(took);
        worst = worst.max(behind);
    };
    for c in calls {
        step(c.before_ns as f64 / c.before.max(1) as f64, c.before);
        step(c.took_ns as f64, 1);
    }
    step(after.1 as f64 / after.0.max(1) as f64, after.0);
    out.push((worst / interval) as u64 + 1);
    out
}

/// A buffer that fills at a steady rate while one call after another empties it, a record each.
struct Queue {
    /// ns between two records.
    interval: f64,
    /// Records it holds.
    room: u64,
    now: f64,
    arrived: u64,
    waiting: u64,
    losses: u64,
    over: bool,
}

impl Queue {
    /// Lets records arrive that are due before `now`, or at it. One that finds no room is lost; losses that follow each other
    /// before the buffer is half empty again count as one.
    fn fill(&mut self, at_now: bool) {
        while (self.arrived as f64 * self.interval) < self.now || (at_now && self.arrived as f64 * self.interval <= self.now) {
            self.arrived += 1;
            if self.waiting < self.room {
                self.waiting += 1;
            } else {
                self.losses += u64::from(!self.over);
                self.over = true;
            }
        }
    }

    /// One call: it takes the oldest record, which keeps its place until the call is done.
    fn serve(&mut self, took: f64) {
        self.fill(true);
        if self.waiting == 0 {
            self.now = self.arrived as f64 * self.interval;
            self.fill(true);
        }
        if self.waiting == 0 {
            return;
        }
        self.now += took;
        self.fill(false);
        self.waiting -= 1;
        self.over &= self.waiting * 2 >= self.room;
    }
}

/// Replays the calls against a buffer of `bytes` that fills at `rate` bytes a second: how many times it ran over.
pub fn replay(calls: &[Call], after: (u64, u64), record: u64, rate: f64, bytes: u64) -> u64 {
    let interval = record as f64 * 1e9 / rate;
    let mut q = Queue { interval, room: bytes / record, now: 0.0, arrived: 0, waiting: 0, losses: 0, over: false };
    for c in calls {
        let mean = c.before_ns as f64 / c.before.max(1) as f64;
        (0..c.before).for_each(|_| q.serve(mean));
        q.serve(c.took_ns as f64);
    }
    (0..after.0).for_each(|_| q.serve(after.1 as f64 / after.0 as f64));
    q.losses
}

/// "3.2 GB", "1.7 MB".
pub fn gigabytes(gb: f64) -> String {
    match gb {
        g if g >= 1.0 => format!("{} GB", crate::units::three(g)),
        g if g >= 1e-3 => format!("{} MB", crate::units::three(g * 1e3)),
        g => format!("{} kB", crate::units::three(g * 1e6)),
    }
}

/// The buffer for a rate and a loss in less than `gb` GB, from a pass of writes.
pub fn answer(pass: &Pass, rate: f64, gb: f64) -> Answer {
    let (calls, after, record) = (&pass.calls[..], pass.after, pass.record);
    let none = |because: String| Answer { rate, gb, bytes: None, because, replayed: None, halves: None };
    let most = pass.bytes() as f64 * 1e9 / pass.total.0.max(1) as f64;
    if rate >= 0.98 * most {
        return none(format!("the card takes no more than {:.0} kB/s in records of {record} B, stalls included", most / 1e3));
    }
    let interval = record as f64 * 1e9 / rate;
    if pass.unordered {
        // While the longest call runs, so much arrives; calls that follow each other are not known to.
        let least = ((rate * pass.longest.secs() / record as f64) as u64 + 1) * record;
        return none(format!(
            "the calls came as a histogram, without their order: {least} B ride over the longest call ({}) alone, and slow calls \
             that follow each other need more; a log of each call decides it",
            pass.longest
        ));
    }
    let mut all = peaks(calls, after, interval);
    all.sort_unstable_by(|a, b| b.cmp(a));
    let seen = pass.bytes() as f64 / 1e9;
    // The last digit of a quotient does not decide.
    let allowed = UPPER.iter().rposition(|u| u * gb <= seen * (1.0 + 1e-9));
    let Some(allowed) = allowed else {
        let least = all.first().copied().unwrap_or(1) * record;
        let need = UPPER[0] * gb;
        return none(format!(
            "{} were written, and one loss in {} takes {} to say; with {least} B nothing would have been lost in what was written",
            gigabytes(seen),
            gigabytes(gb),
            gigabytes(need)
        ));
    };
    let bytes = all.get(allowed).copied().unwrap_or(1) * record;
    let because = match allowed {
        0 => format!("no loss in the {} written, so less than one in {} at 95 %", gigabytes(seen), gigabytes(seen / UPPER[0])),
        k => format!("at most {k} in the {} written, so less than one in {} at 95 %", gigabytes(seen), gigabytes(seen / UPPER[k])),
    };
    let replayed = Some([replay(calls, after, record, rate, bytes), replay(calls, after, record, rate, bytes - record)]);
    let middle = calls.len() / 2;
    let halves = (middle >= 8).then(|| {
        let first = peaks(&calls[..middle], (0, 0), interval).into_iter().max().unwrap_or(1) * record;
        (first, replay(&calls[middle..], after, record, rate, first))
    });
    Answer { rate, gb, bytes: Some(bytes), because, replayed, halves }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Nanos;

    fn pass(ns: impl IntoIterator<Item = u64>) -> Pass {
        let mut p = Pass::new(true, 512, false);
        let mut at = 0;
        for t in ns {
            at += t;
            p.add(Nanos(t), at);
        }
        p.elapsed = Nanos(at);
        p
    }

    /// G9: 100 kB/s through a stall of 191.6 ms is 19 kB, and what arrives while the backlog goes down.
    #[test]
    fn one_stall_needs_rate_times_length() {
        let p = pass((0..200_000u64).map(|i| if i % 1000 == 999 { 191_600_000 } else { 2_132_000 }));
        let a = answer(&p, 100e3, 0.01);
        let bytes = a.bytes.unwrap() as f64;
        assert!((19_160.0..19_160.0 + 2.0 * 512.0).contains(&bytes), "{a:?}");
        assert_eq!(a.replayed.unwrap()[0], 0, "{a:?}");
        assert!(a.replayed.unwrap()[1] > 0, "{a:?}");
        assert_eq!(a.halves.unwrap(), (a.bytes.unwrap(), 0));
    }

    #[test]
    fn stalls_that_follow_each_other_add_up() {
        // Three stalls with four writes between them, far apart from the next three.
        let p = pass((0..100_000u64).map(|i| if matches!(i % 5000, 100 | 105 | 110) { 100_000_000 } else { 1_000_000 }));
        let a = answer(&p, 200e3, 0.01);
        let alone = answer(&pass((0..100_000u64).map(|i| if i % 5000 == 100 { 100_000_000 } else { 1_000_000 })), 200e3, 0.01);
        assert!(a.bytes.unwrap() > 5 * alone.bytes.unwrap() / 2, "{a:?} {alone:?}");
        let [with, less] = a.replayed.unwrap();
        assert!(with == 0 && less > 0, "{a:?}");
    }

    #[test]
    fn what_was_not_measured_is_not_claimed() {
        let p = pass((0..20_000u64).map(|i| if i % 1000 == 999 { 100_000_000 } else { 1_000_000 }));
        let a = answer(&p, 100e3, 10.0);
        assert!(a.bytes.is_none() && a.because.contains("30.0 GB"), "{a:?}");
        let a = answer(&p, 600e3, 0.001);
        assert!(a.bytes.is_none() && a.because.contains("no more than"), "{a:?}");
    }
}
