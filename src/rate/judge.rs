//! From times to verdicts. Pure.

use super::measure::{Cut, LONG, Measured, Part, Random, SMALL, Stretch};
use super::record::{Drops, Recording};
use super::{Limit, Rating, Verdict};
use crate::host::class::{self, Class, FASTER, FAT_CYCLE_LONGEST_MS, FAT_CYCLE_MEAN_MS, FAT_CYCLES, Family, fat_read_ms};
use crate::units::{Bytes, MIB, rate, three};
use crate::workload::purpose::Purpose;
use nandscope_stats::mean_within;
use serde::Serialize;

/// A value with its bounds at 95 %, where there is one.
type Found = Option<(f64, [f64; 2])>;

/// A load that slows a card down only where it has gone on for a while passes after so many seconds of it, or so many bytes: each
/// second has its updates of the tables, and what lies in a cache or an open erase block has not been paid for.
const LEAST_S: f64 = 30.0;
const LEAST_BYTES: u64 = 256 * MIB;

/// What else decides.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Bytes of the card.
    pub capacity: u64,
    /// The AU that the card declares.
    pub au: Option<u64>,
    /// An image file: nothing of a card is known.
    pub image: bool,
    /// Through a USB reader, which adds time to every command.
    pub usb: bool,
    /// The whole procedure was done.
    pub whole: bool,
}

/// A mean of groups of times with its bounds at 95 %, as bytes or requests a second: `amount` of them in each time.
fn interval(times: &[f64], amount: f64) -> Found {
    let size = (times.len() / 20).max(1);
    let groups: Vec<f64> = times.chunks_exact(size).map(|g| g.iter().sum::<f64>() / size as f64).collect();
    let (mean, half) = mean_within(&groups);
    if groups.len() < 4 || mean <= 0.0 {
        return None;
    }
    let fastest = groups.iter().copied().fold(f64::INFINITY, f64::min);
    Some((amount / mean, [amount / (mean + half), amount / (mean - half).max(fastest)]))
}

fn limit(what: &'static str, unit: &'static str, asks: f64, at_most: bool, found: Found) -> Limit {
    let good = |x: f64| if at_most { x <= asks } else { x >= asks };
    let verdict = match found {
        Some((_, [lo, hi])) if good(lo) && good(hi) => Verdict::Passes,
        Some((_, [lo, hi])) if !good(lo) && !good(hi) => Verdict::Fails,
        _ => Verdict::NotDecided,
    };
    let margin = found.map(|(v, _)| if at_most { 1.0 - v / asks } else { v / asks - 1.0 });
    let because = match found {
        None => Some("not measured".to_string()),
        Some(_) if verdict == Verdict::NotDecided => Some("the interval holds the limit".to_string()),
        Some(_) => None,
    };
    Limit { what, unit, asks, at_most, measured: found.map(|f| f.0), interval: found.map(|f| f.1), margin, verdict, because }
}

/// A failure becomes undecided where something else than the card explains it.
fn unless(mut l: Limit, excused: bool, why: &str) -> Limit {
    if l.verdict == Verdict::Fails && excused {
        (l.verdict, l.because) = (Verdict::NotDecided, Some(why.to_string()));
    }
    l
}

const READER: &str = "reads are no faster than the limit, so the reader may be the limit";
const USB: &str = "through a USB reader, which adds its own time to every command";

/// The way to the card, as far as it explains a failure.
struct Way {
    /// Rate of long reads, bytes a second.
    reads: Option<[f64; 2]>,
    /// A USB reader adds its time to every command.
    usb: bool,
    /// So few reads a second that a USB reader may hold up writes, too.
    few: bool,
}

impl Way {
    fn of(m: &Measured, seen: &Seen, few: bool) -> Way {
        Way { reads: interval(&m.long_reads, LONG as f64).map(|f| f.1), usb: seen.usb, few }
    }

    /// Can it not carry this rate, and may the card be fast enough behind another?
    fn slow(&self, found: Option<[f64; 2]>, least: f64, rate: f64) -> bool {
        self.reads.is_some() && class::slow_reader(None, self.reads, rate) && !class::card_is_slow(found, self.reads, least)
    }

    /// A limit of long requests, whose rate in bytes a second is known.
    fn long(&self, l: Limit) -> Limit {
        let slow = self.slow(l.interval, l.asks, l.asks);
        unless(l, slow, READER)
    }

    /// A limit of random accesses on a card that is to carry `rate` in long ones.
    fn random(&self, l: Limit, writes: bool, rate: f64) -> Limit {
        let bytes = l.interval.map(|i| i.map(|n| n * SMALL as f64));
        let slow = self.slow(bytes, l.asks * SMALL as f64, rate);
        unless(unless(l, slow, READER), if writes { self.few } else { self.usb }, USB)
    }
}

/// Are random reads so slow that a reader may hold up writes, too?
fn few(reads: Found, rate: f64) -> bool {
    reads.is_some_and(|x| x.1[1] * SMALL as f64 <= rate / 4.0)
}

/// The rate of the slowest unit (Pw), with the noise of its writes.
fn slowest(s: &Stretch) -> Found {
    // A target that says of every request that it took no time says nothing.
    let u = s.units.iter().max_by(|a, b| a.seconds.total_cmp(&b.seconds)).filter(|u| u.seconds > 0.0)?;
    let value = s.unit as f64 / u.seconds;
    let by = (2.0 * u.spread / u.seconds).max(0.001);
    Some((value, [value / (1.0 + by), value / (1.0 - by).max(0.5)]))
}

fn sequential(s: &Stretch, asks: f64) -> Limit {
    let l = limit("slowest unit, sequential writes (Pw)", "B/s", asks, false, slowest(s));
    let low = |seconds: f64| (s.unit as f64 / seconds) < asks;
    let below: Vec<_> = s.units.iter().filter(|u| low(u.seconds)).collect();
    // A host delays one unit now and then, never the same one three times, nor a quarter of them.
    let again = below.len() >= (s.units.len() / 4).max(2) || s.units.len() == 1 || below.iter().any(|u| u.again.is_some_and(low));
    let text = format!("{} of {} units were below the limit, none of them again: it may have been the host", below.len(), s.units.len());
    unless(l, !again, &text)
}

fn reading(s: &Stretch) -> Found {
    interval(&s.reads, s.ru as f64)
}

/// Moving used recording units (Pm), from AUs half of which was in use: P = (1 - r) Pw Pm / (r Pw + (1 - r) Pm) with r = 1/2.
fn moving(s: &Stretch, asks: f64) -> Limit {
    let of = |p: f64, pw: f64| if p >= 0.98 * pw { f64::INFINITY } else { p * pw / (pw - p) };
    let found = slowest(s).zip(s.half_used.iter().copied().min_by(f64::total_cmp)).map(|((pw, [lo, hi]), p)| {
        let all = [of(p, pw), of(p, hi), of(p, lo)].map(|x| x.min(1e12));
        (all[0], [all[1].min(all[2]), all[1].max(all[2])])
    });
    limit("moving used recording units (Pm)", "B/s", asks, false, found)
}

/// Limits of FAT cycles and of reads of the FAT: one long one may be the host's.
fn tables(m: &Measured, capacity: u64) -> Vec<Limit> {
    let exact = |v: Option<f64>| v.map(|v| (v, [v, v]));
    let most = |x: &[f64]| x.iter().copied().max_by(f64::total_cmp);
    let means: Vec<f64> = m.fat.cycles_ms.windows(FAT_CYCLES).map(|w| w.iter().sum::<f64>() / FAT_CYCLES as f64).collect();
    let once = |x: &[f64], asks: f64| x.iter().filter(|v| **v > asks).count() == 1;
    let tfr = fat_read_ms(capacity);
    let why = "one was longer, once: it may have been the host";
    vec![
        limit("FAT cycle, mean of 8 (TFW)", "ms", FAT_CYCLE_MEAN_MS, true, exact(most(&means))),
        unless(
            limit("longest FAT cycle (TFW)", "ms", FAT_CYCLE_LONGEST_MS, true, exact(most(&m.fat.cycles_ms))),
            once(&m.fat.cycles_ms, FAT_CYCLE_LONGEST_MS),
            why,
        ),
        unless(
            limit("longest read of 4 KiB of the FAT (TFR)", "ms", tfr, true, exact(most(&m.fat.reads_ms))),
            once(&m.fat.reads_ms, tfr),
            why,
        ),
    ]
}

/// Requests a second of a random test. A short test of writes counts its second half only: what comes first may fall into a cache.
fn iops(parts: &[Part], last_half: bool) -> Found {
    let from = if last_half { parts.len() / 2 } else { 0 };
    let times: Vec<f64> = parts[from..].iter().filter(|p| p.requests > 0).map(|p| p.seconds / p.requests as f64).collect();
    interval(&times, 1.0)
}

/// A class against what was measured.
pub fn class(c: &Class, m: &Measured, seen: &Seen) -> Rating {
    let limits = match c.family() {
        Family::Application => application(c, m, seen),
        _ => {
            let (ru, unit) = (c.recording_unit(seen.capacity), c.measured_unit(seen.capacity, seen.au));
            match m.stretches.iter().find(|s| s.ru == ru && s.unit == unit) {
                None => vec![limit("slowest unit, sequential writes (Pw)", "B/s", c.sequential_write, false, None)],
                Some(s) => {
                    let read = reading(s);
                    // A reader that reads that much faster than the card writes is not what holds it up, whatever the limit.
                    let card = slowest(s).zip(read).is_some_and(|(w, r)| FASTER * w.1[1] < r.1[1]);
                    let reach = read.is_some_and(|r| r.1[1] >= FASTER * c.sequential_write);
                    let slow = !reach && !card;
                    let mut all = vec![unless(sequential(s, c.sequential_write), slow, READER)];
                    if c.moving > 0.0 {
                        all.push(unless(moving(s, c.moving), slow, READER));
                    }
                    all.push(unless(limit("random reads of recording units (Pr)", "B/s", c.sequential_write, false, read), !reach, READER));
                    all.extend(
                        tables(m, seen.capacity).into_iter().map(|l| unless(l, seen.usb, "through a USB reader, which adds its own time")),
                    );
                    all
                }
            }
        }
    };
    together(c.name.clone(), limits, failed(m), seen)
}

fn application(c: &Class, m: &Measured, seen: &Seen) -> Vec<Limit> {
    let [reads, writes] = c.random.unwrap_or_default();
    let plain = m.random.iter().find(|r| r.depth <= 1);
    let queued = m.random.iter().find(|r| r.depth > 1).filter(|_| c.queued);
    let r: Option<&Random> = queued.or(plain);
    let of = |f: &dyn Fn(&Random) -> Found| r.and_then(f);
    let contiguous = interval(&m.contiguous.seconds, m.contiguous.len as f64);
    let depth = "A2 is measured with the card's command queue, which was not in use here";
    let maybe = "A2 is measured with the card's command queue; whether it was in use here is not known";
    let read = limit("random reads of 4 KiB", "IOPS", reads, false, of(&|r| iops(&r.reads, false)));
    let write = limit("random writes of 4 KiB", "IOPS", writes, false, of(&|r| iops(&r.writes, !seen.whole)));
    let rate = c.sequential_write;
    let way = Way::of(m, seen, contiguous.is_none() && few(of(&|r| iops(&r.reads, false)), rate));
    let excused = c.queued && queued.is_none();
    let queue = |l: Limit| unless(l, c.queued, if excused { depth } else { maybe });
    let long = limit("1 GiB written sequentially", "B/s", rate, false, contiguous);
    let mut all = vec![
        way.random(queue(write), true, rate),
        way.random(queue(read), false, rate),
        way.long(unless(long, excused && contiguous.is_none(), depth)),
    ];
    // A card of class A2 must also pass A1 with queue and cache off.
    if let (true, Ok(Class { random: Some([reads, writes]), .. })) = (queued.is_some(), Class::by_name("A1")) {
        let of = |f: &dyn Fn(&Random) -> Found| plain.and_then(f);
        let write = limit("random writes without a queue (A1)", "IOPS", writes, false, of(&|r| iops(&r.writes, !seen.whole)));
        let read = limit("random reads without a queue (A1)", "IOPS", reads, false, of(&|r| iops(&r.reads, false)));
        all.extend([way.random(write, true, rate), way.random(read, false, rate)]);
    }
    all
}

/// What a card kept to until its requests failed is nothing that it passes.
fn failed(m: &Measured) -> Option<String> {
    m.ended.as_ref().filter(|_| m.cut == Some(Cut::Failed)).map(|why| format!("it ended early: {why}"))
}

/// `cut`: why what was measured is too little for a pass, and for one of its limits.
fn together(class: String, mut limits: Vec<Limit>, cut: Option<String>, seen: &Seen) -> Rating {
    let names = |v: Verdict| limits.iter().filter(|l| l.verdict == v).map(|l| l.what).collect::<Vec<_>>().join(", ");
    let is = |v: Verdict| limits.iter().any(|l| l.verdict == v);
    let (verdict, because) = match () {
        () if seen.image => {
            (Verdict::NotDecided, "an image file is as fast as the disk it lies on; only the card itself can be rated".to_string())
        }
        () if is(Verdict::Fails) => (Verdict::Fails, names(Verdict::Fails)),
        () if is(Verdict::NotDecided) || limits.is_empty() => (Verdict::NotDecided, names(Verdict::NotDecided)),
        () => match &cut {
            Some(why) => (Verdict::NotDecided, why.clone()),
            None => (Verdict::Passes, "all limits are kept".to_string()),
        },
    };
    if cut.is_some() {
        limits.iter_mut().filter(|l| l.verdict == Verdict::Passes).for_each(|l| l.verdict = Verdict::NotDecided);
    }
    Rating { class, verdict, because, limits }
}

/// The answer for a purpose.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ForPurpose {
    pub title: &'static str,
    pub needs: String,
    /// Where the needs are published.
    pub source: &'static str,
    /// Bytes of one request of the recording, on which the rate depends.
    pub request: Option<u64>,
    pub verdict: Verdict,
    pub because: String,
    pub limits: Vec<Limit>,
    /// Bytes of buffer without which something would have been lost, in whole sectors; none where the card does not keep up.
    pub buffer: Option<u64>,
    /// Losses with this buffer.
    pub drops: Option<Drops>,
}

/// Is the card enough? `buffer` is what the device has, where that is known.
pub fn purpose(p: &Purpose, m: &Measured, seen: &Seen, buffer: Option<u64>) -> ForPurpose {
    let mut limits = vec![];
    let recorded: Option<&Recording> = m.recording.as_ref().filter(|r| r.bytes > 0);
    let asked = if p.sequential_write > 0.0 { p.sequential_write } else { p.sequential_read };
    let scattered = p.random.is_some();
    if let Some([reads, writes]) = p.random {
        let plain = m.random.iter().find(|r| r.depth <= 1);
        let read = plain.and_then(|r| iops(&r.reads, false));
        let contiguous = interval(&m.contiguous.seconds, m.contiguous.len as f64);
        let way = Way::of(m, seen, contiguous.is_none() && few(read, asked));
        let write = limit("random writes of 4 KiB", "IOPS", writes, false, plain.and_then(|r| iops(&r.writes, !seen.whole)));
        limits.push(way.random(write, true, asked));
        limits.push(way.random(limit("random reads of 4 KiB", "IOPS", reads, false, read), false, asked));
        limits.push(way.long(limit("1 GiB written sequentially", "B/s", asked, false, contiguous)));
    } else {
        let what = if p.sequential_write > 0.0 { "all streams and their tables" } else { "sequential reads" };
        let times: Vec<f64> = recorded.filter(|r| r.busy > 0.0).map_or(vec![], |r| r.rates.iter().map(|x| 1.0 / x).collect());
        limits.push(Way::of(m, seen, false).long(limit(what, "B/s", asked, false, interval(&times, 1.0))));
    }
    // No buffer is large enough for a card that is too slow.
    let buffered = recorded.filter(|_| limits.iter().all(|l| l.verdict == Verdict::Passes));
    let needed = buffered.map(|r| r.buffer.next_multiple_of(512));
    let has = buffer.or(p.buffer).or(needed.map(u64::next_power_of_two));
    let drops = buffered.zip(has).map(|(r, b)| r.drops(b));
    let mut r = together(p.name.clone(), limits, failed(m).or_else(|| too_short(m, recorded)), seen);
    if let (Verdict::Passes, Some(d)) = (r.verdict, drops) {
        if d.seen > 0 {
            (r.verdict, r.because) = (Verdict::Fails, format!("a buffer of {} overflowed {} times", Bytes(d.buffer), d.seen));
        } else {
            r.because = "it keeps up".into();
        }
    } else if r.verdict == Verdict::Passes && scattered {
        r.because = "it keeps up".into();
    }
    ForPurpose {
        title: p.title,
        needs: p.needs(),
        source: p.source,
        request: recorded.map(|r| r.piece),
        verdict: r.verdict,
        because: r.because,
        limits: r.limits,
        buffer: needed,
        drops,
    }
}

/// Why what was measured of a purpose is too little for a pass.
fn too_short(m: &Measured, recorded: Option<&Recording>) -> Option<String> {
    match (m.cut, recorded) {
        (Some(Cut::Interrupted), _) => Some("interrupted before its end".into()),
        (_, Some(r)) if r.seconds < LEAST_S && r.bytes < LEAST_BYTES => Some(format!(
            "only {} s of it were measured, {}; to pass takes {LEAST_S} s or {} (more --time, more --writes)",
            three(r.seconds),
            Bytes(r.bytes),
            Bytes(LEAST_BYTES)
        )),
        (Some(Cut::Budget), None) => Some("the bytes that may be written were used up before its end (more --writes)".into()),
        _ => None,
    }
}

/// A value of a limit for people.
pub fn shown(l: &Limit, v: f64) -> String {
    match l.unit {
        "B/s" if v >= 1e12 => "no slower than without".into(),
        "B/s" => rate(v),
        "IOPS" => format!("{v:.0} IOPS"),
        unit => format!("{} {unit}", three(v)),
    }
}
