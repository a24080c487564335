//! Today's cards of both generators: what is true of them, and what is told of them.
#![allow(dead_code)]

use crate::bench_card::{on_bench, told};
use crate::todays_truth::{empties, still};
use crate::{in_turn, todays_alone};
use nandscope::device::{Access, Device, Fill, Op, SimDevice};
use nandscope::experiment::{self, Experiment};
use nandscope::finding::{Findings, Quantity};
use nandscope::probe::{Plan, probe};
use nandscope::samples::Run;
use nandscope::units::{KIB, MIB, Nanos};
use nandscope_sim::model::{FtlKind, SlcFull};
use nandscope_sim::{Model, random, today};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

pub const SECONDS: f64 = 600.0;
pub const WRITES: u64 = 8 << 30;

/// The experiments for today's cards that a probe asks one after the other.
pub const ASKED: [&str; 4] = ["slc-cache", "page-mapping", "map-window", "map-window-write"];

/// What is asked of a card at once.
#[derive(Debug, PartialEq, Eq)]
pub struct Asked {
    pub name: &'static str,
    /// None: all that a probe of ten minutes asks.
    pub experiments: &'static [&'static str],
    pub seconds: u64,
    pub writes: u64,
}

const fn asked(name: &'static str, experiments: &'static [&'static str]) -> Asked {
    Asked { name, experiments, seconds: SECONDS as u64, writes: WRITES }
}

/// All of a probe, of it only what is for today's cards, and what is asked on request.
pub static ALL_ASKED: [Asked; 10] = [
    asked("all", &[]),
    asked("only", &ASKED),
    asked("queue", &["queue-depth", "queue-depth-write"]),
    asked("flush", &["flush"]),
    asked("mixed-reads", &["mixed-reads"]),
    asked("discard", &["discard"]),
    asked("pauses", &["pauses"]),
    Asked { seconds: 900, ..asked("throttling", &["throttling"]) },
    Asked { seconds: 3600, writes: 64 << 30, ..asked("slc-fill", &["slc-cache", "slc-fill"]) },
    Asked { seconds: 40_000, writes: 1 << 40, ..asked("steady-state", &["steady-state"]) },
];

pub fn by_name(name: &str) -> &'static Asked {
    ALL_ASKED.iter().find(|a| a.name == name).expect("what can be asked")
}

/// What is true of a card: of what is judged, the value and the factor within which it counts as right. NaN where it has none, and whatever
/// is said is wrong.
pub type Truth = BTreeMap<Quantity, (f64, f64)>;

/// A window of a map that is in memory as a whole: every bound is right, and no value.
pub const NO_LIMIT: f64 = 1e300;

/// Is a value (or a bound) right?
pub fn right((truth, within): (f64, f64), v: f64, bound: bool) -> bool {
    v <= truth * within && (bound || v >= truth / within)
}

/// Without what the card has none of.
pub fn has(truth: Truth) -> Truth {
    truth.into_iter().filter(|t| t.1.0 < NO_LIMIT).collect()
}

const OF_THE_CACHE: [Quantity; 6] = [
    Quantity::SlcCache,
    Quantity::SlcWhenFull,
    Quantity::RateCachedMbS,
    Quantity::RateSustainedMbS,
    Quantity::IdleTriggerMs,
    Quantity::IdleEmptyMbS,
];
const OF_THE_MAP: [Quantity; 3] = [Quantity::MapPiece, Quantity::MapMissUs, Quantity::MapMissWriteUs];
const WINDOWS: [Quantity; 2] = [Quantity::MapWindowRead, Quantity::MapWindowWrite];

/// Kinds of the second generator that are probed in turn: half map by page, half by erase block.
pub const KINDS: [&str; 8] = ["page", "block", "gradual", "switch", "single", "pool", "bend", "fresh"];

/// A card that the maps of today's cards are fitted to or judged on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Card {
    /// `today` (of the simulator), `old` (its first generator), or a kind of the second family.
    pub kind: &'static str,
    pub seed: u64,
}

impl Card {
    /// Which of the two families that count alike.
    pub fn family(&self) -> &'static str {
        if ["today", "old"].contains(&self.kind) { "simulator" } else { "second family" }
    }
}

/// So many cards of kinds that take turns, one seed for all of a turn.
pub fn cards(kinds: &[&'static str], first: u64, n: u64) -> Vec<Card> {
    let k = kinds.len() as u64;
    (0..n).map(|i| Card { kind: kinds[(i % k) as usize], seed: first + i / k }).collect()
}

/// A card that was probed.
pub struct Probed {
    pub card: Card,
    pub truth: Truth,
    pub told: Findings,
}

/// Probes a card; `None` where nothing is to be learnt of it (a counterfeit).
pub fn probed(card: Card, asked: &Asked) -> Option<(Probed, Vec<Run>)> {
    let time = Nanos::from_secs_f64(asked.seconds as f64);
    let experiments: Vec<&'static dyn Experiment> = match asked.experiments {
        [] => experiment::probing_within(Some(time)),
        some => some.iter().map(|n| experiment::by_name(n).expect("an experiment")).collect(),
    };
    let (truth, mut device): (Truth, Box<dyn Device>) = match (card.kind, asked.name) {
        ("today", "all" | "only") => {
            let m = today::card(card.seed);
            (truth_of_today(&m), Box::new(SimDevice::new(&m, card.seed)))
        }
        ("old", _) => {
            let m = random::card(card.seed);
            (truth_of_old(&m)?, Box::new(SimDevice::new(&m, card.seed)))
        }
        (kind, "all" | "only") => (truth_of_bench(kind, card.seed), Box::new(on_bench(kind, card.seed, "", asked.writes))),
        _ => todays_alone::card(card, asked)?,
    };
    let (runs, told) = runs(&mut *device, &experiments, card.seed, asked.seconds as f64, asked.writes);
    Some((Probed { card, truth, told }, runs))
}

/// Probes them; `done` sees each as it comes.
pub fn probe_all(cards: &[Card], asked: &Asked, done: impl Fn(&Probed, &[Run]) + Sync) -> Vec<Probed> {
    let one = |&card: &Card| {
        let (p, runs) = probed(card, asked)?;
        done(&p, &runs);
        Some(p)
    };
    in_turn::all(cards, one).into_iter().flatten().collect()
}

fn runs(device: &mut dyn Device, experiments: &[&'static dyn Experiment], seed: u64, seconds: f64, writes: u64) -> (Vec<Run>, Findings) {
    let stop = AtomicBool::new(false);
    let region = 0..device.geometry().size;
    let plan = Plan { experiments: experiments.to_vec(), region, time: Nanos::from_secs_f64(seconds), writes, seed, stop: &stop };
    probe(device, &plan, &mut |_| {})
}

/// What is told of a device in so much time and with so many bytes written.
pub fn within(device: &mut dyn Device, experiments: &[&'static dyn Experiment], seed: u64, seconds: f64, writes: u64) -> Findings {
    runs(device, experiments, seed, seconds, writes).1
}

/// MB/s of sequential writes of 256 KiB while there is room and long after, with the stalls of the card and the noise of its host.
pub fn rates(m: &Model) -> (f64, f64) {
    rates_of(&mut SimDevice::new(m, m.card.capacity), m.truth().slc_cache_full)
}

pub fn rates_of(d: &mut dyn Device, cache: u64) -> (f64, f64) {
    let chunk = 256 * KIB;
    let mut write = |n: u64| {
        let begun = d.now();
        for i in 0..n {
            d.access(Access { op: Op::Write(Fill::Random(1)), at: (64 << 20) + i % 128 * chunk, len: chunk }).unwrap();
        }
        n as f64 * chunk as f64 * 1e3 / (d.now() - begun).0 as f64
    };
    let full = cache / chunk;
    let fast = write((full / 10 * 9).clamp(1, 4096));
    write(full + 64);
    (fast, write(1000))
}

/// None of the cache, and windows without limit: what is not there.
fn nothing() -> Truth {
    let none = OF_THE_CACHE.into_iter().chain(OF_THE_MAP).map(|q| (q, (f64::NAN, 1.0)));
    none.chain(WINDOWS.map(|q| (q, (NO_LIMIT, 1.0)))).chain([(Quantity::Mapping, (2.0, 1.0))]).collect()
}

/// Of a cache that hardly changes the rate nothing is judged, nor of windows nearly as large as the card.
pub fn truth_of_today(m: &Model) -> Truth {
    let mut t = nothing();
    let (fast, slow) = rates(m);
    if m.slc.size > 0 {
        t.retain(|q, _| !OF_THE_CACHE.contains(q));
    }
    if m.slc.size > 0 && fast > 1.4 * slow {
        t.insert(Quantity::SlcCache, (m.truth().slc_cache_full as f64, 1.1));
        t.insert(Quantity::SlcWhenFull, (if m.slc.full == SlcFull::Fold { 1.0 } else { 2.0 }, 1.0));
        t.insert(Quantity::RateCachedMbS, (fast, 1.05));
        t.insert(Quantity::RateSustainedMbS, (slow, 1.05));
        t.insert(Quantity::IdleTriggerMs, (m.slc.idle as f64 / 1e6, 1.3));
        t.insert(Quantity::IdleEmptyMbS, (empties(&mut still(m), m.truth().slc_cache_full, Nanos(m.slc.idle)), 1.1));
    }
    let p = &m.ftl.page;
    if p.map_cache > 0 && p.map_miss > 0 {
        t.retain(|q, _| !WINDOWS.contains(q));
        t.insert(Quantity::MapPiece, (p.map_span as f64, 1.0));
        t.extend([Quantity::MapMissUs, Quantity::MapMissWriteUs].map(|q| (q, (p.map_miss as f64 / 1e3, 1.3))));
        if p.map_cache * 2 <= m.card.capacity {
            t.extend(WINDOWS.map(|q| (q, (p.map_cache as f64, 1.5))));
        }
    }
    t
}

/// Of a card of the first generator only the mapping.
fn truth_of_old(m: &Model) -> Option<Truth> {
    let by_block = !matches!(m.ftl.kind, FtlKind::PageMap | FtlKind::None) && m.card.real_capacity == m.card.capacity;
    by_block.then(|| [(Quantity::Mapping, (1.0, 1.0))].into())
}

pub fn truth_of_bench(kind: &str, seed: u64) -> Truth {
    let t = told(kind, seed, "");
    let n = |key: &str| t[key].as_f64().unwrap_or(0.0);
    if t["mapping"] != "page" {
        return Truth::from([(Quantity::Mapping, (1.0, 1.0))]);
    }
    let mut out = nothing();
    // What it does when it is full fits neither of the two that are told apart.
    out.remove(&Quantity::SlcWhenFull);
    if n("slc") > 0.0 {
        out.retain(|q, _| !OF_THE_CACHE.contains(q));
        out.insert(Quantity::SlcCache, (n("slc"), 1.1));
        let (fast, slow) = rates_of(&mut on_bench(kind, seed, "", 1 << 40), n("slc") as u64);
        if fast >= 1.4 * slow {
            out.insert(Quantity::RateCachedMbS, (fast, 1.05));
            out.insert(Quantity::RateSustainedMbS, (slow, 1.05));
            // It does not look at rests of a tenth of a second.
            out.insert(Quantity::IdleTriggerMs, (100.0, 1.3));
            out.insert(Quantity::IdleEmptyMbS, (n("empties_mb_s"), 1.1));
        }
    }
    if n("map_reach") > 0.0 {
        out.retain(|q, _| !WINDOWS.contains(q));
        out.insert(Quantity::MapPiece, (n("map_piece"), 1.0));
        out.insert(Quantity::MapMissUs, (n("map_miss_us"), 1.3));
        // Work left for later may hide a part of it: then what is said is too little.
        out.insert(Quantity::MapMissWriteUs, (n("map_miss_write_us"), 1.3));
        if n("map_reach") >= MIB as f64 && n("map_reach") * 2.0 <= n("size") {
            out.extend(WINDOWS.map(|q| (q, (n("map_reach"), 1.5))));
        }
    }
    out
}
