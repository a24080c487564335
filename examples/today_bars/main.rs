//! What is said of today's cards against the bars set for it, over random page-mapped cards of both generators:
//! `today_bars today|bench|old|small|cache|pauses|flush|fill FIRST CARDS [EXPERIMENT]...`
//!
//! Each card is probed for ten minutes of its clock with 8 GiB of writes, all the experiments for today's cards one after the other, or those
//! that are named. `small` are cards of today of half a GiB in their steady state, `cache` some with a write cache that reads wait for, `pauses`
//! bursts of writes after rests, `flush` some with a write cache that a flush empties or not, `fill` those that take more while they are empty. `old` are cards of the first generator that map by block: nothing of this may be said of them. Prints a table, and of
//! cards below the seeds that are kept for judging what was wrong or undecided, with NANDSCOPE_SHOW.

#[path = "../../tests/common/bench_card.rs"]
mod bench_card;
#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "../../tests/common/families.rs"]
mod families;
#[path = "../../tests/common/todays_truth.rs"]
mod todays_truth;

use bench_card::bench_card;
use families::RESERVED;
use nandscope::device::{Access, Consent, Device, Fill, Limits, Op, OpenOptions, SimDevice, open};
use nandscope::experiment::{self, Experiment};
use nandscope::finding::{Findings, Quantity};
use nandscope::probe::{Plan, probe};
use nandscope::units::{KIB, MIB, Nanos};
use nandscope_sim::model::{FtlKind, SlcFull};
use nandscope_sim::{Model, random, today};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const SECONDS: f64 = 600.0;
const WRITES: u64 = 8 << 30;

/// What is asked unless named.
const ASKED: [&str; 4] = ["slc-cache", "page-mapping", "map-window", "map-window-write"];

/// What is true of a card: of what is judged, the value and the factor within which it counts as right.
type Truth = BTreeMap<Quantity, (f64, f64)>;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [family, first, cards, only @ ..] = args.as_slice() else { panic!("today|bench|old FIRST CARDS [EXPERIMENT]...") };
    let (first, cards): (u64, u64) = (first.parse().expect("FIRST"), cards.parse().expect("CARDS"));
    let asked: &[&str] = match family.as_str() {
        "small" => &["steady-state"],
        "cache" => &["mixed-reads"],
        "pauses" => &["pauses"],
        "flush" => &["flush"],
        "fill" => &["slc-cache", "slc-fill"],
        _ => &ASKED,
    };
    let names: Vec<&str> = if only.is_empty() { asked.to_vec() } else { only.iter().map(String::as_str).collect() };
    let experiments: Vec<&'static dyn Experiment> = names.iter().map(|n| experiment::by_name(n).expect("an experiment")).collect();
    let (next, table) = (AtomicU64::new(first), Mutex::new(BTreeMap::<Quantity, Row>::new()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + cards {
                break;
            }
            let Some((truth, found)) = one(family, seed, &experiments) else { continue };
            let mut table = table.lock().unwrap();
            for (q, (value, within)) in truth {
                let row = table.entry(q).or_default();
                row.add(&found, q, value, within, &format!("{family} {seed}"), seed < RESERVED);
            }
        }
    };
    std::thread::scope(|s| {
        s.spawn(work);
        work();
    });
    for (q, row) in table.into_inner().unwrap() {
        let share = |n: usize| 100.0 * n as f64 / row.cards.max(1) as f64;
        println!(
            "{:<26}{:>5} cards, decided {:>5.1} %, right of all {:>5.1} %, wrong {}, claimed {:.1} of {} decided; bounds {} ({} wrong)",
            q.key(),
            row.cards,
            share(row.right + row.wrong),
            share(row.right),
            row.wrong,
            row.claimed,
            row.right + row.wrong,
            row.bounds,
            row.wrong_bounds
        );
    }
}

#[derive(Default)]
struct Row {
    cards: usize,
    right: usize,
    wrong: usize,
    bounds: usize,
    wrong_bounds: usize,
    claimed: f64,
}

impl Row {
    /// `value` NaN: the card has none of it, and whatever is said is wrong.
    fn add(&mut self, found: &Findings, q: Quantity, value: f64, within: f64, who: &str, show: bool) {
        self.cards += 1;
        let f = found.get(q);
        let show = show && std::env::var_os("NANDSCOPE_SHOW").is_some();
        match f.and_then(|f| Some((f.number()?, f.confidence))) {
            Some((v, c)) => {
                self.claimed += c;
                if v <= value * within && v >= value / within {
                    self.right += 1;
                } else {
                    self.wrong += 1;
                    if show {
                        println!("WRONG {who}: truth {value}: {f:?}");
                    }
                }
            }
            None => {
                if let Some(b) = f.and_then(|f| f.at_least) {
                    self.bounds += 1;
                    self.wrong_bounds += usize::from(value.is_nan() || b.0 > value * within);
                }
                if show {
                    println!("undecided {who}: truth {value}: {:?} {:?}", f.and_then(|f| f.reason.clone()), f.map(|f| &f.evidence));
                }
            }
        }
    }
}

fn one(family: &str, seed: u64, experiments: &[&'static dyn Experiment]) -> Option<(Truth, Findings)> {
    match family {
        "today" => {
            let m = today::card(seed);
            Some((truth_of_today(&m), probed(&mut SimDevice::new(&m, seed), experiments, seed)))
        }
        "small" => {
            let m = todays_truth::small(seed)?;
            let (amplification, spare) = todays_truth::amplification(&m);
            let truth = [(Quantity::WriteAmplification, (amplification, 1.2)), (Quantity::OverProvisioning, (spare, 1.25))];
            Some((truth.into(), within(&mut SimDevice::new(&m, seed), experiments, seed, 40_000.0, 1 << 40)))
        }
        "cache" => {
            let m = todays_truth::with_cache(seed);
            let (longer, until) = todays_truth::read_after_writes(&m);
            let mut truth = Truth::from([(Quantity::ReadAfterWriteUs, (longer, 1.15))]);
            if longer > 0.0 {
                truth.insert(Quantity::ReadSettlesMs, (until, 1.25));
            }
            Some((truth, probed(&mut SimDevice::new(&m, seed), experiments, seed)))
        }
        "pauses" => {
            let m = today::card(seed);
            let (gain, pause) = todays_truth::pauses(&m);
            let mut truth = Truth::from([(Quantity::PauseGain, (gain, 1.1))]);
            if gain > 1.1 {
                truth.insert(Quantity::PauseMs, (pause, 1.5));
            }
            Some((truth, probed(&mut SimDevice::new(&m, seed), experiments, seed)))
        }
        "flush" => {
            let m = todays_truth::with_flush(seed);
            let waits = if m.card.cache == 0 {
                f64::NAN
            } else if m.card.flush_defers {
                2.0
            } else {
                1.0
            };
            let size = if m.card.cache == 0 { f64::NAN } else { m.card.cache as f64 };
            let truth = [
                (Quantity::VolatileCache, (size, 1.15)),
                (Quantity::FlushWaits, (waits, 1.0)),
                (Quantity::FlushMs, (todays_truth::flush_ms(&m), 1.1)),
            ];
            Some((truth.into(), probed(&mut SimDevice::new(&m, seed), experiments, seed)))
        }
        "fill" => {
            let m = today::card(seed);
            let (fast, slow) = rates(&m);
            if m.slc.size == 0 || fast < 1.4 * slow {
                return None;
            }
            let truth = [(Quantity::SlcCacheEmpty, (m.truth().slc_cache as f64, 1.1))];
            Some((truth.into(), within(&mut SimDevice::new(&m, seed), experiments, seed, 3600.0, 64 << 30)))
        }
        "old" => {
            let m = random::card(seed);
            let by_block = !matches!(m.ftl.kind, FtlKind::PageMap | FtlKind::None) && m.card.real_capacity == m.card.capacity;
            let none = [(Quantity::Mapping, (f64::NAN, 1.0))];
            by_block.then(|| (none.into(), probed(&mut SimDevice::new(&m, seed), experiments, seed)))
        }
        // A kind of the second generator that maps by block, as `bench:block`.
        _ => {
            let kind = family.strip_prefix("bench:").unwrap_or("page");
            let run = |more: &str| Command::new(bench_card()).args([kind, &seed.to_string(), more]).output().unwrap();
            let t: Value = serde_json::from_slice(&run("--truth").stdout).unwrap();
            let target = format!("exec:{} {kind} {seed}", bench_card().display());
            let opened = open(&target, &OpenOptions::default()).unwrap();
            let consent = Consent::check(opened.id(), None).unwrap();
            let mut device = opened.writable(&consent, &Limits { budget: WRITES, ..Limits::default() }).unwrap();
            Some((truth_of_bench(&t), probed(&mut device, experiments, seed)))
        }
    }
}

fn probed(device: &mut dyn Device, experiments: &[&'static dyn Experiment], seed: u64) -> Findings {
    within(device, experiments, seed, SECONDS, WRITES)
}

fn within(device: &mut dyn Device, experiments: &[&'static dyn Experiment], seed: u64, seconds: f64, writes: u64) -> Findings {
    let stop = AtomicBool::new(false);
    let region = 0..device.geometry().size;
    let plan = Plan { experiments: experiments.to_vec(), region, time: Nanos::from_secs_f64(seconds), writes, seed, stop: &stop };
    probe(device, &plan, &mut |_| {}).1
}

/// MB/s of sequential writes of 256 KiB while there is room and long after, with the stalls of the card and the noise of its host.
fn rates(m: &Model) -> (f64, f64) {
    let chunk = 256 * KIB;
    let mut d = SimDevice::new(m, m.card.capacity);
    let mut write = |n: u64| {
        let begun = d.now();
        for i in 0..n {
            d.access(Access { op: Op::Write(Fill::Random(1)), at: (64 << 20) + i % 128 * chunk, len: chunk }).unwrap();
        }
        n as f64 * chunk as f64 * 1e3 / (d.now() - begun).0 as f64
    };
    let full = m.truth().slc_cache_full / chunk;
    let fast = write((full / 10 * 9).clamp(1, 4096));
    write(full + 64);
    (fast, write(1000))
}

fn truth_of_today(m: &Model) -> Truth {
    let mut t = Truth::from([(Quantity::Mapping, (2.0, 1.0))]);
    let (fast, slow) = rates(m);
    if m.slc.size > 0 && fast > 1.4 * slow {
        t.insert(Quantity::SlcCache, (m.truth().slc_cache_full as f64, 1.1));
        t.insert(Quantity::SlcWhenFull, (if m.slc.full == SlcFull::Fold { 1.0 } else { 2.0 }, 1.0));
        t.insert(Quantity::RateCachedMbS, (fast, 1.05));
        t.insert(Quantity::RateSustainedMbS, (slow, 1.05));
    }
    let p = &m.ftl.page;
    if p.map_cache > 0 && p.map_miss > 0 && p.map_cache * 2 <= m.card.capacity {
        t.insert(Quantity::MapWindowRead, (p.map_cache as f64, 1.5));
        t.insert(Quantity::MapWindowWrite, (p.map_cache as f64, 1.5));
    }
    t
}

fn truth_of_bench(t: &Value) -> Truth {
    let n = |key: &str| t[key].as_f64().unwrap_or(0.0);
    if t["mapping"] != "page" {
        return Truth::from([(Quantity::Mapping, (f64::NAN, 1.0))]);
    }
    let mut out = Truth::from([(Quantity::Mapping, (2.0, 1.0))]);
    if n("slc") > 0.0 {
        out.insert(Quantity::SlcCache, (n("slc"), 1.1));
    }
    if n("map_reach") >= MIB as f64 && n("map_reach") * 2.0 <= n("size") {
        out.insert(Quantity::MapWindowRead, (n("map_reach"), 1.5));
        out.insert(Quantity::MapWindowWrite, (n("map_reach"), 1.5));
    }
    out
}
