//! What the recorded times say. Pure: from a [`Lab`] alone.

use super::bench::{Kind, Sample};
use super::class::{Class, Written};
use super::experiment::{Condition, Lab, State};
use super::fragment::Map;
use nandscope_stats::{mean, quantile};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use serde::Serialize;

/// Smaller differences than this are none, whatever their interval.
pub const MATTERS: f64 = 0.1;
const DRAWS: usize = 500;

/// What is plotted: writing, reading, or one of each (P6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    Write,
    Read,
    Combined,
    Folder,
}

impl What {
    pub const FILES: [What; 3] = [What::Write, What::Read, What::Combined];

    pub fn name(self) -> &'static str {
        match self {
            What::Write => "write",
            What::Read => "read",
            What::Combined => "combined",
            What::Folder => "folder of small files",
        }
    }
}

/// Operations a minute.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rate {
    pub what: What,
    pub size: u64,
    pub state: State,
    pub per_minute: f64,
    /// 95 %.
    pub interval: [f64; 2],
    pub rounds: usize,
}

/// One or two rounds have no spread to speak of.
pub const ROUNDS: usize = 3;

/// How two states differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The whole interval lies within a tenth of 1.
    NoEffect,
    Slower,
    Faster,
    Undecided,
}

/// One comparison: `ratio` is the rate in `state` over that in `against`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Effect {
    pub what: What,
    pub size: u64,
    pub state: State,
    pub against: State,
    pub ratio: f64,
    pub interval: [f64; 2],
    pub verdict: Verdict,
}

/// Seconds of each round.
pub(super) fn seconds(c: &Condition, what: What, size: u64) -> Vec<f64> {
    let of = |kind: Kind| c.measured.samples.iter().filter(move |s: &&Sample| s.kind == kind && (kind == Kind::Folder || s.size == size));
    match what {
        What::Write => of(Kind::Write).map(|s| s.took.secs()).collect(),
        What::Read => of(Kind::Read).map(|s| s.took.secs()).collect(),
        What::Folder => of(Kind::Folder).map(|s| s.took.secs()).collect(),
        // Half of the operations of a minute are writes, half are reads of the same file.
        What::Combined => {
            of(Kind::Write).filter_map(|w| Some((w.took.secs() + of(Kind::Read).find(|r| r.round == w.round)?.took.secs()) / 2.0)).collect()
        }
    }
}

fn draw(x: &[f64], rng: &mut Pcg64Mcg) -> f64 {
    let one = |rng: &mut Pcg64Mcg| x[(rng.next_u64() % x.len() as u64) as usize];
    (0..x.len()).map(|_| one(rng)).sum::<f64>() / x.len() as f64
}

/// File sizes that were measured, ascending.
pub fn sizes(lab: &Lab) -> Vec<u64> {
    let all = lab.conditions.iter().flat_map(|c| &c.measured.samples);
    let mut sizes: Vec<u64> = all.filter(|s| s.kind != Kind::Folder).map(|s| s.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The rate of one operation in one state; none where it was not measured. A bootstrap of the mean (percentile interval).
pub fn rate(c: &Condition, what: What, size: u64) -> Option<Rate> {
    let x = seconds(c, what, size);
    // What takes no time at all has no rate.
    if x.is_empty() || x.iter().any(|&t| t <= 0.0) {
        return None;
    }
    let mut rng = Pcg64Mcg::new(0x6672_6167);
    let means: Vec<f64> = (0..DRAWS).map(|_| draw(&x, &mut rng)).collect();
    let interval = [60.0 / quantile(&means, 0.975), 60.0 / quantile(&means, 0.025)];
    Some(Rate { what, size, state: c.state, per_minute: 60.0 / mean(&x), interval, rounds: x.len() })
}

/// Compares two states; none where one was not measured.
pub fn effect(a: &Condition, b: &Condition, what: What, size: u64) -> Option<Effect> {
    let (x, y) = (seconds(a, what, size), seconds(b, what, size));
    // Folders of different files are different work.
    let folder = |c: &Condition| c.measured.samples.iter().find(|s| s.kind == Kind::Folder).map(|s| s.size);
    if what == What::Folder && folder(a) != folder(b) {
        return None;
    }
    if x.is_empty() || y.is_empty() || x.iter().chain(&y).any(|&t| t <= 0.0) {
        return None;
    }
    let mut rng = Pcg64Mcg::new(0x6672_6168);
    let ratios: Vec<f64> = (0..DRAWS).map(|_| draw(&y, &mut rng) / draw(&x, &mut rng)).collect();
    let interval = [quantile(&ratios, 0.025), quantile(&ratios, 0.975)];
    let [lo, hi] = interval;
    let verdict = match () {
        _ if x.len() < ROUNDS || y.len() < ROUNDS => Verdict::Undecided,
        _ if lo >= 1.0 - MATTERS && hi <= 1.0 + MATTERS => Verdict::NoEffect,
        _ if hi < 1.0 => Verdict::Slower,
        _ if lo > 1.0 => Verdict::Faster,
        _ => Verdict::Undecided,
    };
    Some(Effect { what, size, state: a.state, against: b.state, ratio: mean(&y) / mean(&x), interval, verdict })
}

/// Every comparison of a state with a later one of the experiment: fragmented with defragmented and blank, and so on.
pub fn effects(lab: &Lab) -> Vec<Effect> {
    let mut out = vec![];
    let sizes = sizes(lab);
    for (i, a) in lab.conditions.iter().enumerate() {
        for b in &lab.conditions[i + 1..] {
            for what in What::FILES {
                out.extend(sizes.iter().filter_map(|&s| effect(a, b, what, s)));
            }
            out.extend(effect(a, b, What::Folder, 0));
        }
    }
    out
}

/// What the raw card says of a file, beside what was measured, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Prediction {
    pub state: State,
    pub size: u64,
    pub measured: f64,
    /// By the specification's formula: [`Class::predict`].
    pub formula: f64,
    /// By single writes: [`Class::predict_pieces`].
    pub pieces: Option<f64>,
}

/// Predictions for every size but the smallest, which is what they take the time of everything but data from.
pub fn predictions(lab: &Lab, class: &Class) -> Vec<Prediction> {
    let mut out = vec![];
    let sizes = sizes(lab);
    let sector = class.pieces.first().map_or(512.0, |p| p.len as f64);
    // Bytes of an entry of the table.
    let entry = match lab.filesystem.as_str() {
        "FAT12" => 1.5,
        "FAT16" => 2.0,
        _ => 4.0,
    };
    for c in &lab.conditions {
        // Free space in one piece: the AUs that are written are empty.
        let whole = matches!(c.state, State::Defragmented | State::Blank);
        let used = if whole { 0.0 } else { 1.0 - c.space.free as f64 / c.space.size.max(1) as f64 };
        let erased = c.state == State::Blank && lab.settings.erase;
        let smallest = sizes.first().copied().filter(|&s| s <= c.space.cluster);
        let fixed = smallest.and_then(|s| {
            let own = class.one(s as f64, &|p| if erased { p.erased.unwrap_or(p.apart) } else { p.apart })?;
            Some((mean(&seconds(c, What::Write, s)) - own / 1e3).max(0.0))
        });
        for &size in sizes.iter().skip(1) {
            let all = seconds(c, What::Write, size);
            if all.is_empty() {
                continue;
            }
            let of = c.measured.samples.iter().filter(|s| s.kind == Kind::Write && s.size == size && s.extents > 0);
            let extents: Vec<f64> = of.map(|s| f64::from(s.extents)).collect();
            let pieces = fixed.filter(|_| !extents.is_empty()).and_then(|fixed| {
                let (cluster, chunk) = (c.space.cluster, lab.settings.workload.chunk);
                // Clusters of a file in pieces lie as far apart as the free space does.
                let density = if whole { 1.0 } else { free_density(&c.map) };
                let sectors = (size as f64 / cluster as f64 / density * entry / sector).ceil();
                // Both tables; all of them when it is made and when it is removed.
                let room = lab.settings.host.cache.meta as f64;
                let tables = if 2.0 * sectors > room { 4.0 * sectors } else { 0.0 };
                class.predict_pieces(&Written { size, cluster, chunk, extents: mean(&extents), erased, fixed, tables })
            });
            out.push(Prediction { state: c.state, size, measured: mean(&all), formula: class.predict(size, used), pieces });
        }
    }
    out
}

/// Share that is free where there is free space: the mean over the free bytes of how much of their AU is free.
fn free_density(map: &Map) -> f64 {
    let free = || map.cells.iter().map(|c| (1.0 - c.used).max(0.0));
    let all: f64 = free().sum();
    if all > 0.0 { free().map(|f| f * f).sum::<f64>() / all } else { 1.0 }
}

/// A use of a card: how often which operation, in shares that need not add up to anything.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    pub name: String,
    /// Write or read, bytes, weight.
    pub operations: Vec<(What, u64, f64)>,
}

/// Profiles that come with the program (P13). Sizes are typical, not measured.
pub fn profiles() -> Vec<Profile> {
    use What::{Read, Write};
    const K: u64 = 1024;
    let profile = |name: &str, operations: &[(What, u64, f64)]| Profile { name: name.into(), operations: operations.to_vec() };
    vec![
        // Pictures of tens to hundreds of kB, written once and read a few times.
        profile(
            "browser cache",
            &[
                (Write, 16 * K, 3.0),
                (Write, 64 * K, 3.0),
                (Write, 256 * K, 1.0),
                (Read, 16 * K, 3.0),
                (Read, 64 * K, 3.0),
                (Read, 256 * K, 1.0),
            ],
        ),
        profile("photos", &[(Write, 2048 * K, 1.0), (Read, 2048 * K, 2.0), (Write, 16 * K, 1.0), (Read, 16 * K, 4.0)]),
        profile("music", &[(Read, 256 * K, 16.0), (Read, 2048 * K, 2.0)]),
        profile("logger", &[(Write, 512, 9.0), (Write, 4 * K, 1.0)]),
        profile("camera", &[(Write, 2048 * K, 1.0)]),
        profile(
            "root filesystem",
            &[(Write, 4 * K, 4.0), (Write, 32 * K, 1.0), (Read, 4 * K, 4.0), (Read, 32 * K, 4.0), (Read, 256 * K, 1.0)],
        ),
    ]
}

/// Reads a profile: lines `write SIZE [WEIGHT]` or `read SIZE [WEIGHT]`, `#` begins a comment.
///
/// # Errors
/// The line that is none of these.
pub fn parse_profile(name: &str, text: &str) -> Result<Profile, String> {
    let mut operations = vec![];
    for (i, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let wrong = || format!("{name}:{}: '{line}' is not 'write SIZE' or 'read SIZE', with a weight after it or none", i + 1);
        let words: Vec<&str> = line.split_whitespace().collect();
        let what = match words.first() {
            Some(&"write") => What::Write,
            Some(&"read") => What::Read,
            _ => return Err(wrong()),
        };
        let size = words.get(1).and_then(|w| w.parse::<crate::units::Bytes>().ok()).filter(|b| b.0 > 0).ok_or_else(wrong)?;
        let weight = words.get(2).map_or(Ok(1.0), |w| w.parse::<f64>()).ok().filter(|w| w.is_finite() && *w > 0.0).ok_or_else(wrong)?;
        if words.len() > 3 {
            return Err(wrong());
        }
        operations.push((what, size.0, weight));
    }
    if operations.is_empty() {
        return Err(format!("{name}: no operations in it; write lines such as: write 64KiB 3"));
    }
    Ok(Profile { name: name.into(), operations })
}

/// What a profile would gain from another state.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gain {
    pub profile: String,
    /// Time of the profile in the first state over that in the second.
    pub times: f64,
    /// 95 %.
    pub interval: [f64; 2],
    /// Share of the profile's operations whose size lies outside what was measured.
    pub outside: f64,
}

/// Seconds of an operation by size, ascending.
type Points = Vec<(f64, f64)>;

/// Seconds an operation of `size` takes: between two measured sizes by the straight line on log scales, outside them in
/// proportion to the size above, and as the smallest below.
fn expected(points: &Points, size: u64) -> Option<f64> {
    let (first, last) = (points.first()?, points.last()?);
    let x = size as f64;
    if x <= first.0 {
        return Some(first.1);
    }
    if x >= last.0 {
        return Some(last.1 * x / last.0);
    }
    let i = points.iter().position(|p| p.0 >= x)?;
    let (a, b) = (points[i - 1], points[i]);
    let part = (x / a.0).ln() / (b.0 / a.0).ln();
    Some((a.1.ln() + (b.1 / a.1).ln() * part).exp())
}

/// How much longer a profile takes in state `a` than in `b`, with a bootstrap of the rounds.
pub fn gain(lab: &Lab, a: &Condition, b: &Condition, p: &Profile) -> Option<Gain> {
    let sizes = sizes(lab);
    let times = |of: &mut dyn FnMut(&[f64]) -> f64| -> Option<f64> {
        let mut points = |c: &Condition, what: What| -> Points {
            let all = sizes.iter().map(|&s| (s, seconds(c, what, s))).filter(|(_, x)| !x.is_empty());
            all.map(|(s, x)| (s as f64, of(&x))).collect()
        };
        let of_a = [points(a, What::Write), points(a, What::Read)];
        let of_b = [points(b, What::Write), points(b, What::Read)];
        let (mut x, mut y) = (0.0, 0.0);
        for &(what, size, weight) in &p.operations {
            let i = usize::from(what == What::Read);
            x += weight * expected(&of_a[i], size)?;
            y += weight * expected(&of_b[i], size)?;
        }
        Some(x / y)
    };
    let mut rng = Pcg64Mcg::new(0x6672_6169);
    let drawn: Vec<f64> = (0..DRAWS).filter_map(|_| times(&mut |x| draw(x, &mut rng))).collect();
    let all: f64 = p.operations.iter().map(|o| o.2).sum();
    let (least, most) = (*sizes.first()?, *sizes.last()?);
    let outside: f64 = p.operations.iter().filter(|o| o.1 < least || o.1 > most).map(|o| o.2).sum();
    let times = times(&mut |x| mean(x))?;
    let interval = [quantile(&drawn, 0.025), quantile(&drawn, 0.975)];
    Some(Gain { profile: p.name.clone(), times, interval, outside: outside / all })
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
