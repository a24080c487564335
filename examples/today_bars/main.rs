//! What is said of today's cards against the bars set for it, over random page-mapped cards of both generators:
//! `today_bars today|bench|old|small|policies|bench-steady|cache|pauses|flush|fill FIRST CARDS [EXPERIMENT]...`
//!
//! Each card is probed for ten minutes of its clock with 8 GiB of writes, all the experiments for today's cards one after the other, or those
//! that are named. `small` are cards of today of half a GiB in their steady state, `cache` some with a write cache that reads wait for, `pauses`
//! bursts of writes after rests, `policies` the small ones with each way of choosing what is collected, `bench-steady` small cards of the second generator, `flush` some with a write cache that a flush empties or not, `fill` those that take more while they are empty. `old` are cards of the first generator that map by block: nothing of this may be said of them. Prints a table, and of
//! cards below the seeds that are kept for judging what was wrong or undecided, with NANDSCOPE_SHOW.

#[path = "../../tests/common/bench_card.rs"]
mod bench_card;
#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "../../tests/common/families.rs"]
mod families;
#[path = "../../tests/common/in_turn.rs"]
mod in_turn;
#[path = "../../tests/common/todays.rs"]
mod todays;
#[path = "../../tests/common/todays_alone.rs"]
mod todays_alone;
#[path = "../../tests/common/todays_truth.rs"]
mod todays_truth;

use bench_card::on_bench;
use families::RESERVED;
use nandscope::device::{Access, Device, Fill, Op, SimDevice};
use nandscope::experiment::{self, Experiment};
use nandscope::finding::{Findings, Quantity};
use nandscope::infer::stats::median;
use nandscope::units::{KIB, Nanos};
use nandscope_sim::model::{FtlKind, Gc};
use nandscope_sim::{random, today};
use std::collections::BTreeMap;
use std::sync::Mutex;
use todays::{Asked, Card, SECONDS, Truth, WRITES, by_name, has, truth_of_bench, truth_of_today, within};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [family, first, cards, only @ ..] = args.as_slice() else { panic!("today|bench|old|... FIRST CARDS [EXPERIMENT]...") };
    let (first, cards): (u64, u64) = (first.parse().expect("FIRST"), cards.parse().expect("CARDS"));
    let asked = match family.as_str() {
        "policies" => by_name("steady-state"),
        family => alone(family).map_or(by_name("only"), |a| a.1),
    };
    let names: Vec<&str> = if only.is_empty() { asked.experiments.to_vec() } else { only.iter().map(String::as_str).collect() };
    let experiments: Vec<&'static dyn Experiment> = names.iter().map(|n| experiment::by_name(n).expect("an experiment")).collect();
    let table = Mutex::new(BTreeMap::<(Quantity, &str), Row>::new());
    let seeds: Vec<u64> = (first..first + cards).collect();
    in_turn::all(&seeds, |&seed| {
        for (truth, found, which) in all(family, seed, &experiments) {
            let mut table = table.lock().unwrap();
            for (q, (value, within)) in truth {
                let row = table.entry((q, which)).or_default();
                row.add(&found, q, value, within, &format!("{family} {seed} {which}"), seed < RESERVED);
            }
        }
    });
    for ((q, which), row) in table.into_inner().unwrap() {
        let share = |n: usize| 100.0 * n as f64 / row.cards.max(1) as f64;
        println!(
            "{:<26}{:<13}{:>5} cards, decided {:>5.1} %, right of all {:>5.1} %, wrong {}, claimed {:.1} of {} decided; bounds {} ({} wrong); truth in {} of {} intervals, \
             the middle one {:.2} wide",
            q.key(),
            which,
            row.cards,
            share(row.right + row.wrong),
            share(row.right),
            row.wrong,
            row.claimed,
            row.right + row.wrong,
            row.bounds,
            row.wrong_bounds,
            row.inside,
            row.widths.len(),
            if row.widths.is_empty() { f64::NAN } else { median(&row.widths) }
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
    /// Intervals that hold the truth, and upper over lower end of all.
    inside: usize,
    widths: Vec<f64>,
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
                if let Some([low, high]) = f.and_then(|f| f.interval) {
                    let inside = (low..=high).contains(&value);
                    self.inside += usize::from(inside);
                    if show && !inside {
                        println!("outside {who}: {} {v} {low} to {high}, truth {value}", q.key());
                    }
                    self.widths.push(high / low.max(1e-9));
                }
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
                    let wrong = value.is_nan() || b.0 > value * within;
                    self.wrong_bounds += usize::from(wrong);
                    if show && wrong {
                        println!("WRONG BOUND {who}: truth {value}: {f:?}");
                    }
                }
                if show {
                    println!("undecided {who}: truth {value}: {:?} {:?}", f.and_then(|f| f.reason.clone()), f.map(|f| &f.evidence));
                }
            }
        }
    }
}

/// What is judged of a seed, each with what kind of card it is.
fn all(family: &str, seed: u64, experiments: &[&'static dyn Experiment]) -> Vec<(Truth, Findings, &'static str)> {
    if family == "policies" {
        let policies = [("greedy", Gc::Greedy), ("fifo", Gc::Fifo), ("d-choice", Gc::DChoice), ("cost-benefit", Gc::CostBenefit)];
        let Some(m) = todays_truth::small(seed) else { return vec![] };
        let of = |(name, gc)| {
            let mut m = m.clone();
            m.ftl.page.gc = gc;
            let truth = [
                (Quantity::WriteAmplification, (todays_truth::amplification(&m).0, 1.2)),
                (Quantity::OverProvisioning, (todays_truth::spare(&m), 1.5)),
            ];
            (truth.into(), within(&mut SimDevice::new(&m, seed), experiments, seed, 40_000.0, 1 << 40), name)
        };
        return policies.map(of).into();
    }
    let Some((truth, found)) = one(family, seed, experiments) else { return vec![] };
    let Some(&slc) = truth.get(&Quantity::SlcCache) else { return vec![(truth, found, "")] };
    let fits = match family {
        "bench" => fits(&mut on_bench("page", seed, "", 1 << 40), slc.0 as u64),
        "today" => fits(&mut SimDevice::new(&today::card(seed), seed), slc.0 as u64),
        _ => return vec![(truth, found, "")],
    };
    let of_cache = [(Quantity::SlcCache, slc)].into();
    vec![(of_cache, found.clone(), if fits { "in time" } else { "too slow" }), (truth, found, "")]
}

/// What is asked on request, of which cards.
fn alone(family: &str) -> Option<(&'static str, &'static Asked)> {
    Some(match family {
        "small" => ("today", by_name("steady-state")),
        "bench-steady" => ("page", by_name("steady-state")),
        "cache" => ("today", by_name("mixed-reads")),
        "fill" => ("today", by_name("slc-fill")),
        "pauses" | "flush" => ("today", by_name(family)),
        _ => return None,
    })
}

fn one(family: &str, seed: u64, experiments: &[&'static dyn Experiment]) -> Option<(Truth, Findings)> {
    if let Some((kind, asked)) = alone(family) {
        let (truth, mut device) = todays_alone::card(Card { kind, seed }, asked)?;
        return Some((has(truth), within(&mut *device, experiments, seed, asked.seconds as f64, asked.writes)));
    }
    match family {
        "today" => {
            let m = today::card(seed);
            Some((has(truth_of_today(&m)), probed(&mut SimDevice::new(&m, seed), experiments, seed)))
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
            let truth = has(truth_of_bench(kind, seed));
            Some((truth, probed(&mut on_bench(kind, seed, "", WRITES), experiments, seed)))
        }
    }
}

fn probed(device: &mut dyn Device, experiments: &[&'static dyn Experiment], seed: u64) -> Findings {
    within(device, experiments, seed, SECONDS, WRITES)
}

/// Can a cache of so many bytes be filled, emptied at rest and filled again within the share of the time and of the bytes that the
/// experiment for it has? Emptying is looked at as it is, over 20 s.
fn fits(d: &mut dyn Device, slc: u64) -> bool {
    let chunk = 256 * KIB;
    let mut at = 0;
    let mut write = |d: &mut dyn Device, bytes: u64| {
        let begun = d.now();
        for _ in 0..bytes / chunk {
            d.access(Access { op: Op::Write(Fill::Random(1)), at: (64 << 20) + at % 128 * chunk, len: chunk }).unwrap();
            at += 1;
        }
        (d.now() - begun).secs()
    };
    let filling = write(d, slc);
    let slow = write(d, 64 * chunk) / 64.0;
    d.idle(Nanos(20_000_000_000));
    let mut room = 0;
    while room < slc && write(d, chunk) < 0.8 * slow {
        room += chunk;
    }
    let emptying = slc as f64 / room.max(1) as f64 * 20.0;
    3 * slc < WRITES && 2.0 * filling + 1.15 * emptying < 0.6 * SECONDS
}
