//! Stalls of a record benchmark: how long, how often, how regular, and what buffer rides over them (G9, G10).

mod period;

use crate::samples::records::Pass;
use crate::units::GIB;
pub use period::{Period, period};
use serde::Serialize;

/// Calls of about the same length: a cache hit, a sector write (G3).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Population {
    /// Share of all calls.
    pub share: f64,
    /// µs.
    pub shortest: f64,
    pub median: f64,
    pub longest: f64,
}

/// Bins an octave of the histogram that populations are looked for in.
const BINS: f64 = 4.0;

fn bin(ns: f64) -> usize {
    (ns.max(1.0).log2() * BINS) as usize
}

/// Cuts between groups of times (ns, how often; ascending): the lowest bin between two peaks of `least` or more, where it is below
/// a fifth of the lower peak.
fn valleys(values: &[(f64, u64)], least: u64) -> Vec<usize> {
    let mut counts = vec![0u64; values.last().map_or(0, |v| bin(v.0) + 1)];
    for (ns, n) in values {
        counts[bin(*ns)] += n;
    }
    let mut cuts = vec![];
    let (mut peak, mut low, mut low_at) = (0u64, u64::MAX, 0);
    for (i, &c) in counts.iter().enumerate() {
        if c < low {
            (low, low_at) = (c, i);
        }
        if c >= least && peak > 0 && low < peak.min(c) / 5 {
            cuts.push(low_at);
            (peak, low) = (c, u64::MAX);
        } else if c > peak {
            // Still going up: the valley is yet to come.
            (peak, low) = (c, u64::MAX);
        }
    }
    cuts
}

/// Share of the calls that reach the card: of records smaller than a sector, those that fill one.
fn reaching(pass: &Pass) -> f64 {
    (pass.record as f64 / 512.0).min(1.0)
}

/// The populations of a pass, shortest first; each holds at least 1 % of the calls that reach the card. What lies above the last
/// is its tail.
pub fn populations(pass: &Pass) -> Vec<Population> {
    let values: Vec<(f64, u64)> = pass.histogram.iter_recorded().map(|v| (v.value_iterated_to() as f64, v.count_at_value())).collect();
    let cuts = valleys(&values, ((pass.records as f64 * reaching(pass) / 100.0) as u64).max(3));
    let total = pass.records.max(1) as f64;
    let mut out = vec![];
    for (i, from) in std::iter::once(0).chain(cuts.iter().copied()).enumerate() {
        let to = cuts.get(i).copied().unwrap_or(usize::MAX);
        let inside: Vec<&(f64, u64)> = values.iter().filter(|v| (from..to).contains(&bin(v.0))).collect();
        let n: u64 = inside.iter().map(|v| v.1).sum();
        let mut below = 0;
        let median = inside.iter().find(|v| {
            below += v.1;
            2 * below >= n
        });
        let (Some(first), Some(median)) = (inside.first(), median) else { continue };
        // The last population ends where a thousandth of it is left: the rest is its tail.
        let mut seen = 0;
        let last = inside.iter().find(|v| {
            seen += v.1;
            seen as f64 >= 0.999 * n as f64
        });
        out.push(Population {
            share: n as f64 / total,
            shortest: first.0 / 1e3,
            median: median.0 / 1e3,
            longest: last.map_or(median.0, |v| v.0) / 1e3,
        });
    }
    out
}

/// Whether the shortest population holds the records that stay in a buffer: as many calls as do not fill a sector, and much
/// shorter ones than the next (G3).
pub fn buffered(pass: &Pass, all: &[Population]) -> bool {
    let [hit, next, ..] = all else { return false };
    // Beside chance, a few calls more reach the card: a new cluster, the first of the file.
    let expected = 1.0 - reaching(pass);
    pass.record < 512 && (hit.share - expected).abs() < 0.05 && next.median > 3.0 * hit.median
}

/// The usual times of a pass, where they lie so far apart that the longer ones would be stalls beside the shorter: both are what the card
/// does, and neither is a stall.
pub fn far_apart(pass: &Pass) -> Vec<Population> {
    let all = populations(pass);
    let held = usize::from(buffered(pass, &all));
    let often: Vec<Population> = all.into_iter().skip(held).filter(|p| p.share >= 0.05 * reaching(pass)).collect();
    let far = often.first().zip(often.last()).is_some_and(|(a, b)| b.median > 5.0 * a.median && b.median > 1000.0);
    if far { often } else { vec![] }
}

/// Stalls of about the same length, where those of a pass are of several.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Kind {
    pub count: u64,
    /// µs: median and longest.
    pub median: f64,
    pub longest: f64,
    pub in_bytes: Option<Period>,
    pub in_time: Option<Period>,
}

/// What the places of stalls are counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The first byte of the target.
    Card,
    /// The first byte of the file.
    File,
    /// The first byte that was written, through all passes.
    Written,
}

/// What is known of the stalls of a pass.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stalls {
    /// A call longer than this counts as a stall, in µs: five times the median of the slowest population of 5 % or more of the
    /// calls that reach the card, and a millisecond at least.
    pub threshold: f64,
    /// That median, µs.
    pub usual: f64,
    pub count: u64,
    /// A GB (10^9 B), with the interval of 95 % that counting gives.
    pub per_gb: f64,
    pub interval: [f64; 2],
    /// µs: median and longest.
    pub median: f64,
    pub longest: f64,
    /// What the longest call took beyond the shortest of those that reach the card, µs: busy, without the wire.
    pub beyond: f64,
    /// Share of the time of all calls above the median call of that population.
    pub cost: f64,
    pub origin: Origin,
    pub in_bytes: Option<Period>,
    pub in_time: Option<Period>,
    /// Where stalls of different lengths keep to different distances: each kind, that which takes most of the time first.
    pub kinds: Vec<Kind>,
    /// Longer than so many ms: how many calls.
    pub tail: Vec<(f64, u64)>,
}

/// A call that is a stall.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slow {
    /// Which time the file was written, and the byte of it where the call began.
    pub round: usize,
    pub offset: u64,
    /// ns of calls made so far, and of this one.
    pub at: u64,
    pub took: u64,
}

/// The calls of a pass above `threshold` µs, in their order.
pub fn slow(pass: &Pass, threshold: f64) -> Vec<Slow> {
    let all = pass.timed().filter(|c| c.2 as f64 / 1e3 > threshold);
    all.map(|(record, at, took)| {
        let (round, offset) = pass.round_of(record);
        Slow { round, offset, at, took }
    })
    .collect()
}

/// Longest time in ms that the standard lets a card stay busy with one write (4.6.2.2): SDSC and SDHC, and SDXC.
pub const BUSY_MS: [f64; 2] = [250.0, 500.0];

/// The same for a card of so many bytes.
pub fn busy_ms(size: u64) -> f64 {
    BUSY_MS[usize::from(size > 32 * GIB)]
}

/// Both in words.
pub const BUSY: &str = "250 ms, above 32 GiB 500 ms";

/// Limits of the SD specification, in ms: busy of SDSC and SDHC, busy of SDXC, an update of the FAT (speed class).
pub const LIMITS: [(f64, &str); 3] = [
    (BUSY_MS[0], "busy time of a write, SD and SDHC"),
    (BUSY_MS[1], "busy time of a write, SDXC"),
    (750.0, "update of the FAT, speed class cards"),
];

/// 95 % interval of a count (Wilson and Hilferty's approximation of the exact one).
pub fn poisson(n: u64) -> [f64; 2] {
    let cube = |n: f64, z: f64| n * (1.0 - 1.0 / (9.0 * n) + z / (3.0 * n.sqrt())).powi(3);
    [if n == 0 { 0.0 } else { cube(n as f64, -1.96) }, cube(n as f64 + 1.0, 1.96)]
}

/// The stalls of a pass.
pub fn stalls(pass: &Pass) -> Stalls {
    let groups = populations(pass);
    let group = groups.iter().rfind(|p| p.share >= 0.05 * reaching(pass));
    let usual = group.map_or(pass.percentile(50.0), |p| p.median);
    // Of the shortest calls the pass knows more than the bins of its histogram.
    let least = if buffered(pass, &groups) { groups[1].shortest } else { pass.max_min().1 };
    // What is over in a millisecond stalls nobody.
    let threshold = (5.0 * usual).max(1000.0);
    let slow = slow(pass, threshold);
    let count = slow.len() as u64;
    let gb = pass.bytes() as f64 / 1e9;
    let lengths = lengths(&slow);
    let lost: f64 = lengths.iter().map(|l| l - usual).sum();
    let over =
        |ms: f64| pass.histogram.iter_recorded().filter(|v| v.value_iterated_to() as f64 > ms * 1e6).map(|v| v.count_at_value()).sum();
    let (origin, mut whole) = kind(pass, &slow, usual);
    let mut kinds = kinds(pass, &slow, usual);
    // They say more where one keeps to a distance that the whole does not show.
    let length = |k: &Kind| k.in_bytes.map(|p| p.length);
    let own = |k: &Kind| match (length(k), length(&whole)) {
        (Some(a), Some(b)) => (a / b - 1.0).abs() > 0.05,
        (a, _) => a.is_some(),
    };
    if kinds.iter().any(own) {
        whole = kinds.first().map_or(whole, |h| Kind { in_bytes: h.in_bytes, in_time: h.in_time, ..whole });
    } else {
        kinds.clear();
    }
    Stalls {
        threshold,
        usual,
        count,
        per_gb: count as f64 / gb,
        interval: poisson(count).map(|x| x / gb),
        median: whole.median,
        longest: whole.longest,
        beyond: (pass.max_min().0 - least).max(0.0),
        cost: lost * 1e3 / pass.total.0.max(1) as f64,
        origin,
        in_bytes: whole.in_bytes,
        in_time: whole.in_time,
        kinds,
        tail: [1.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 750.0].map(|ms| (ms, over(ms))).to_vec(),
    }
}

/// µs, ascending.
fn lengths(slow: &[Slow]) -> Vec<f64> {
    let mut all: Vec<f64> = slow.iter().map(|c| c.took as f64 / 1e3).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// Stalls by their length, those that take most of the time first; none where they are all of one.
fn kinds(pass: &Pass, slow: &[Slow], usual: f64) -> Vec<Kind> {
    let mut ns: Vec<(f64, u64)> = slow.iter().map(|c| (c.took as f64, 1)).collect();
    nandscope_stats::ascending(&mut ns, |a| a.0);
    let cuts = valleys(&ns, (slow.len() as u64 / 20).max(4));
    if cuts.is_empty() {
        return vec![];
    }
    let groups = std::iter::once(0).chain(cuts.iter().copied()).zip(cuts.iter().copied().chain([usize::MAX]));
    let of =
        |(from, to): (usize, usize)| -> Vec<Slow> { slow.iter().filter(|c| (from..to).contains(&bin(c.took as f64))).copied().collect() };
    let mut all: Vec<Kind> = groups.map(of).filter(|g| !g.is_empty()).map(|g| kind(pass, &g, usual).1).collect();
    nandscope_stats::descending(&mut all, total);
    all
}

/// µs that stalls of a kind take together.
fn total(k: &Kind) -> f64 {
    k.median * k.count as f64
}

/// Stalls whose places are looked at: the first ones of a run that has more.
const LOOKED_AT: usize = 4096;

/// What these stalls have in common, and what their places are counted from.
fn kind(pass: &Pass, slow: &[Slow], usual: f64) -> (Origin, Kind) {
    let few = &slow[..slow.len().min(LOOKED_AT)];
    let known = few.iter().all(|c| pass.began(c.round).is_some());
    let base = |c: &Slow| pass.began(c.round).filter(|_| known).unwrap_or(0);
    // By place: a card that counts what it erases is at another count each time the file is begun.
    let mut rounds: Vec<Vec<f64>> = vec![];
    let mut last = None;
    for c in few {
        if last.replace(c.round) != Some(c.round) {
            rounds.push(vec![]);
        }
        if let Some(r) = rounds.last_mut() {
            r.push((base(c) + c.offset) as f64);
        }
    }
    let grain = 1.5 * pass.record as f64;
    let by_place = period(&rounds, grain).map(|p| (if known { Origin::Card } else { Origin::File }, p));
    let written = |c: &Slow| (pass.rounds.get(c.round).map_or(0, |r| r.first * pass.record) + c.offset) as f64;
    let by_amount = || period(&[few.iter().map(written).collect()], grain).map(|p| (Origin::Written, p));
    let in_bytes = by_place.or_else(|| if rounds.len() > 1 { by_amount() } else { None });
    let lengths = lengths(slow);
    // Long stalls keep a distance that is mostly their own length, however they come.
    let between = few.iter().scan(0, |own, c| {
        let at = c.at - *own;
        *own += c.took;
        Some(at as f64)
    });
    let found = Kind {
        count: slow.len() as u64,
        median: lengths.get(lengths.len() / 2).copied().unwrap_or(0.0),
        longest: lengths.last().copied().unwrap_or(0.0),
        in_bytes: in_bytes.map(|p| p.1),
        in_time: period(&[few.iter().map(|c| c.at as f64).collect()], 1e3 * usual)
            .filter(|_| period(&[between.collect()], 1e3 * usual).is_some()),
    };
    (in_bytes.map_or(if known { Origin::Card } else { Origin::File }, |p| p.0), found)
}

#[cfg(test)]
mod tests;
