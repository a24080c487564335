//! The buffer a logger needs so that it loses nothing while a card stalls (G9), and the check of it by replaying the calls.
//!
//! Samples of one size arrive at a steady rate; a record is written as soon as its last byte is there, and keeps its place in the
//! buffer until the call is done. What arrives during the call needs room beside it.

use crate::samples::records::{Call, Pass};
use crate::units::Nanos;
use serde::Serialize;

/// What became of the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The buffer is large enough.
    Enough,
    /// The calls take less than comes in: no buffer is.
    TooSlow,
    Undecided,
}

/// "To log at `rate` with less than one loss in `gb` GB you need `bytes` of buffer."
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Bytes a second that are logged.
    pub rate: f64,
    /// Bytes that arrive at once.
    pub sample: u64,
    /// GB (10^9) with less than one loss, at 95 %.
    pub gb: f64,
    pub verdict: Verdict,
    /// Bytes; none where the calls cannot carry the rate, or are too few for the question.
    pub bytes: Option<u64>,
    /// Why there is none, or what the answer rests on.
    pub because: String,
    /// Losses in a replay with that buffer, and with a sample less.
    pub replayed: Option<[u64; 2]>,
    /// The same question put to the first half of the calls, and the losses of that answer in the second half.
    pub halves: Option<(u64, u64)>,
    /// Seconds of writing that would decide it, where too little was written.
    pub wants: Option<f64>,
}

impl Answer {
    /// Seconds of logging with less than one loss.
    pub fn seconds(&self) -> f64 {
        self.gb * 1e9 / self.rate
    }

    /// No answer, and why.
    pub fn undecided(rate: f64, sample: u64, gb: f64, because: String) -> Answer {
        Answer { rate, sample, gb, verdict: Verdict::Undecided, bytes: None, because, replayed: None, halves: None, wants: None }
    }
}

/// 95 % upper bounds of a mean of which 0, 1, 2, ... events were seen (Poisson, one-sided).
const UPPER: [f64; 8] = [3.00, 4.74, 6.30, 7.75, 9.15, 10.51, 11.84, 13.15];

/// The most that `bytes` written without a loss can say, in GB: less than one loss in so many, at 95 %.
pub fn claim(bytes: u64) -> f64 {
    bytes as f64 / 1e9 / UPPER[0]
}

/// What arrives: `sample` bytes at 0, `interval`, 2 `interval`, ... ns.
#[derive(Clone, Copy)]
struct Stream {
    sample: u64,
    interval: f64,
}

impl Stream {
    fn new(rate: f64, sample: u64) -> Stream {
        Stream { sample, interval: sample as f64 * 1e9 / rate }
    }

    /// Samples due before `now`, and those due by then.
    fn before(self, now: f64) -> u64 {
        (now / self.interval).ceil() as u64
    }

    fn by(self, now: f64) -> u64 {
        (now / self.interval).floor() as u64 + 1
    }

    /// When so many samples are there.
    fn when(self, samples: u64) -> f64 {
        samples.saturating_sub(1) as f64 * self.interval
    }
}

/// Every call in its order; those that are summed up are alike.
fn each(calls: &[Call], after: (u64, u64)) -> impl Iterator<Item = f64> + '_ {
    let alike = |n: u64, ns: u64| std::iter::repeat_n(ns as f64 / n.max(1) as f64, n as usize);
    calls.iter().flat_map(move |c| alike(c.before, c.before_ns).chain([c.took_ns as f64])).chain(alike(after.0, after.1))
}

/// Bytes in the buffer at most, in each stretch of time in which the writer never waits for a record.
fn peaks(calls: impl Iterator<Item = f64>, record: u64, stream: Stream) -> Vec<u64> {
    let mut out = vec![];
    let (mut now, mut taken, mut peak) = (0.0f64, 0u64, 0u64);
    for took in calls {
        let there = stream.when((taken + record).div_ceil(stream.sample));
        if there > now {
            // It waits: the backlog is gone.
            if peak > 0 {
                out.push(std::mem::take(&mut peak));
            }
            now = there;
        }
        now += took;
        let arrived = stream.before(now).max((taken + record).div_ceil(stream.sample)) * stream.sample;
        peak = peak.max(arrived - taken);
        taken += record;
    }
    out.extend((peak > 0).then_some(peak));
    out
}

/// A buffer of fixed size in front of the calls.
struct Queue {
    stream: Stream,
    /// Bytes it holds.
    room: u64,
    now: f64,
    /// Samples that came, lost or not.
    came: u64,
    waiting: u64,
    losses: u64,
    over: bool,
}

impl Queue {
    /// Lets the samples up to number `due` come. One that finds no room is lost; losses that follow each other before the buffer
    /// is half empty again count as one.
    fn fill(&mut self, due: u64) {
        let n = due.saturating_sub(self.came);
        self.came += n;
        let fit = n.min((self.room - self.waiting) / self.stream.sample);
        self.waiting += fit * self.stream.sample;
        if fit < n {
            self.losses += u64::from(!self.over);
            self.over = true;
        }
    }

    /// One call: it takes the oldest record, which keeps its place until the call is done.
    fn serve(&mut self, took: f64, record: u64) {
        self.fill(self.stream.by(self.now));
        if self.waiting < record {
            let missing = (record - self.waiting).div_ceil(self.stream.sample);
            self.now = self.now.max(self.stream.when(self.came + missing));
            self.fill(self.came + missing);
        }
        if self.waiting < record {
            return;
        }
        self.now += took;
        self.fill(self.stream.before(self.now));
        self.waiting -= record;
        self.over &= self.waiting * 2 >= self.room;
    }
}

/// Replays the calls of a pass against a buffer of `bytes` that fills at `rate` bytes a second, `sample` bytes at once: how many
/// times it ran over. A buffer that does not hold a record loses with every call.
pub fn replay(calls: impl Iterator<Item = f64>, record: u64, rate: f64, sample: u64, bytes: u64) -> u64 {
    let stream = Stream::new(rate, sample);
    let mut q = Queue { stream, room: bytes, now: 0.0, came: 0, waiting: 0, losses: 0, over: false };
    let mut n = 0;
    for took in calls {
        q.serve(took, record);
        n += 1;
    }
    if bytes < record.next_multiple_of(sample) { n } else { q.losses }
}

/// "3.2 GB", "1.7 MB".
pub fn gigabytes(gb: f64) -> String {
    match gb {
        g if g >= 1.0 => format!("{} GB", crate::units::three(g)),
        g if g >= 1e-3 => format!("{} MB", crate::units::three(g * 1e3)),
        g => format!("{} kB", crate::units::three(g * 1e6)),
    }
}

/// "83 s", "14 min", "2.5 h", "3.0 days".
pub fn long(seconds: f64) -> String {
    let short = |x: f64| if x >= 10.0 { format!("{x:.0}") } else { format!("{x:.1}") };
    match seconds {
        s if s < 1.0 => Nanos::from_secs_f64(s).to_string(),
        s if s < 120.0 => format!("{} s", short(s)),
        s if s < 7200.0 => format!("{} min", short(s / 60.0)),
        s if s < 48.0 * 3600.0 => format!("{} h", short(s / 3600.0)),
        s => format!("{} days", short(s / 86_400.0)),
    }
}

/// Bytes that arrive at once where nobody says: the record, where a logger may write each sample as it comes; single bytes, where
/// it gathers them to more than a sector.
pub fn usual_sample(record: u64) -> u64 {
    if record <= 512 { record } else { 1 }
}

/// The buffer for a rate and a loss in less than `gb` GB, from a pass of writes, with the usual samples.
pub fn answer(pass: &Pass, rate: f64, gb: f64) -> Answer {
    answer_for(pass, rate, gb, usual_sample(pass.record))
}

/// The buffer for a rate in bytes a second, of which `sample` bytes arrive at once, and a loss in less than `gb` GB, from a pass
/// of writes.
pub fn answer_for(pass: &Pass, rate: f64, gb: f64, sample: u64) -> Answer {
    let (calls, after, record) = (&pass.calls[..], pass.after, pass.record);
    let none = |because: String| Answer::undecided(rate, sample, gb, because);
    let most = pass.bytes() as f64 * 1e9 / pass.total.0.max(1) as f64;
    if rate >= 0.98 * most {
        let why = format!("the card takes no more than {} kB/s in records of {record} B, stalls included", crate::units::three(most / 1e3));
        return match rate < most {
            true => {
                none(format!("{why}: what a stall leaves waiting goes down too slowly to be measured; log less, or write larger records"))
            }
            false => Answer { verdict: Verdict::TooSlow, ..none(format!("{why}; log less, or write larger records")) },
        };
    }
    if pass.unordered {
        // While the longest call runs, so much arrives; calls that follow each other are not known to.
        let least = record + (rate * pass.longest.secs() / sample as f64) as u64 * sample;
        return none(format!(
            "the calls came as a histogram, without their order: {least} B ride over the longest call ({}) alone, and slow calls \
             that follow each other need more; a log of each call decides it",
            pass.longest
        ));
    }
    let stream = Stream::new(rate, sample);
    let mut all = peaks(each(calls, after), record, stream);
    all.sort_unstable_by(|a, b| b.cmp(a));
    let seen = pass.bytes() as f64 / 1e9;
    // A question that was made from what was written must not fail by the last bit.
    let allowed = UPPER.iter().rposition(|u| *u * gb <= seen * (1.0 + 1e-9));
    let least = all.first().copied().unwrap_or(record);
    let Some(allowed) = allowed else {
        let need = UPPER[0] * gb;
        let why = format!(
            "{} were written, and one loss in {} takes {} to say; with {least} B nothing would have been lost in what was written",
            gigabytes(seen),
            gigabytes(gb),
            gigabytes(need)
        );
        return Answer { wants: Some(need * 1e9 / most), ..none(why) };
    };
    let bytes = all.get(allowed).copied().unwrap_or(least);
    let because = match allowed {
        0 => format!("no loss in the {} written, so less than one in {} at 95 %", gigabytes(seen), gigabytes(seen / UPPER[0])),
        k => format!("at most {k} in the {} written, so less than one in {} at 95 %", gigabytes(seen), gigabytes(seen / UPPER[k])),
    };
    let lost = |bytes: u64| replay(each(calls, after), record, rate, sample, bytes);
    let replayed = Some([lost(bytes), lost(bytes - sample.min(bytes))]);
    let middle = calls.len() / 2;
    let halves = (middle >= 8).then(|| {
        let first = peaks(each(&calls[..middle], (0, 0)), record, stream).into_iter().max().unwrap_or(record);
        (first, replay(each(&calls[middle..], (0, 0)), record, rate, sample, first))
    });
    Answer { rate, sample, gb, verdict: Verdict::Enough, bytes: Some(bytes), because, replayed, halves, wants: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Nanos;

    fn pass_of(record: u64, ns: impl IntoIterator<Item = u64>) -> Pass {
        let mut p = Pass::new(true, record, false);
        let mut at = 0;
        for t in ns {
            at += t;
            p.add(Nanos(t), at);
        }
        p.elapsed = Nanos(at);
        p
    }

    fn pass(ns: impl IntoIterator<Item = u64>) -> Pass {
        pass_of(512, ns)
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
        assert!(a.wants.unwrap() > 30e9 / 512e3, "{a:?}");
        let a = answer(&p, 600e3, 0.001);
        assert!(a.bytes.is_none() && a.because.contains("no more than"), "{a:?}");
    }

    /// The question of 95 % that a run carries by its own length is answered, whatever the length.
    #[test]
    fn a_question_made_from_the_run_never_fails_by_rounding() {
        for mb in [5u64, 9, 20, 150, 300, 700] {
            // As long as it, in few calls.
            let p = pass_of(mb * 1_000_000 / 250, (0..250).map(|i| if i % 50 == 9 { 900_000_000 } else { 600_000_000 }));
            let a = answer(&p, 100.0, p.bytes() as f64 / 3e9);
            assert!(a.bytes.is_some(), "{mb} MB: {a:?}");
        }
    }

    /// The queue byte by byte, one event after the other: how many bytes it held at most.
    fn simulated(calls: &[u64], record: u64, rate: f64, sample: u64) -> u64 {
        let interval = sample as f64 * 1e9 / rate;
        let (mut held, mut most, mut next, mut busy_until) = (0u64, 0u64, 0u64, None::<f64>);
        let mut calls = calls.iter().peekable();
        while busy_until.is_some() || calls.peek().is_some() {
            let arrival = next as f64 * interval;
            let now = match busy_until {
                Some(end) if end <= arrival => {
                    held -= record;
                    busy_until = None;
                    end
                }
                _ => {
                    held += sample;
                    most = most.max(held);
                    next += 1;
                    arrival
                }
            };
            if busy_until.is_none() && held >= record {
                busy_until = calls.next().map(|t| now + *t as f64);
            }
        }
        most
    }

    /// Against an independent simulation of the queue, over rates, records and samples; records larger than what arrives while a
    /// call runs among them.
    #[test]
    fn the_size_is_that_of_a_simulated_queue() {
        let mut x = 7u64;
        let mut draw = |n: u64| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) % n
        };
        for (record, sample) in [
            (512u64, 512u64),
            (512, 1),
            (512, 64),
            (100, 100),
            (8192, 1),
            (8192, 100),
            (65_536, 1),
            (65_536, 512),
            (20, 20),
            (512, 2000),
            (4096, 6),
        ] {
            for share in [0.05, 0.3, 0.6, 0.9] {
                let calls: Vec<u64> =
                    (0..400).map(|_| if draw(37) == 0 { 80_000_000 + draw(150_000_000) } else { 1_000_000 + draw(90_000) }).collect();
                let p = pass_of(record, calls.iter().copied());
                let most = p.bytes() as f64 * 1e9 / p.total.0 as f64;
                let rate = share * most;
                let a = answer_for(&p, rate, p.bytes() as f64 / 3e9, sample);
                let (bytes, want) = (a.bytes.unwrap(), simulated(&calls, record, rate, sample));
                assert!(bytes.abs_diff(want) <= sample, "{record} B in samples of {sample} B at {share}: {bytes}, simulated {want}");
                let [with, less] = a.replayed.unwrap();
                assert!(with == 0 && less > 0, "{record}/{sample}/{share}: {a:?}");
                let arriving = p.longest.0 as f64 * rate / 1e9;
                assert!(bytes as f64 >= record as f64 + arriving - sample as f64, "bytes of the longest call: {a:?}");
            }
        }
    }
}
