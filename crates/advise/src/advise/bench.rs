//! What to do: the size of a record, the cluster and the sync, from what was measured; where it was not, the command that does.

use super::price::Price;
use crate::device::CardState;
use crate::host::requests::Layer;
use crate::infer::buffer::Answer;
use crate::infer::stalls::stalls;
use crate::samples::records::Pass;
use crate::units::{Bytes, option, rate};

/// One target's passes at one record size.
#[derive(Debug)]
pub struct Bench {
    /// The target, and what stands between it and the files.
    pub target: String,
    /// Bytes of the card, where they are known.
    pub capacity: Option<u64>,
    pub host: String,
    /// What the flash went through before.
    pub state: CardState,
    pub record: u64,
    pub file: u64,
    /// "synced at the end" and the like.
    pub sync: String,
    pub passes: Vec<Pass>,
    pub answers: Vec<Answer>,
    pub notes: Vec<String>,
    /// What the card cost, for comparisons (G13).
    pub price: Option<Price>,
    /// Bytes of a cluster, where they are known.
    pub cluster: Option<u64>,
    /// The files pass through the kernel, which reads ahead.
    pub kernel: bool,
    /// The kernel's page cache took the records: no figure is of the card.
    pub cached: bool,
    /// What each layer between the calls and the medium sent of what was written, in order; empty where nothing was counted.
    pub layers: Vec<Layer>,
    /// The command that measured it, without what it logs and for how long; empty where there was none.
    pub again: String,
}

/// A difference in speed that is worth a change.
const WORTH: f64 = 1.1;
/// Share of the best speed that is enough.
const ENOUGH: f64 = 0.9;

fn speed(b: &Bench) -> Option<f64> {
    b.passes.iter().find(|p| p.write).map(|p| p.speed() * 1e3)
}

fn size(bytes: u64) -> String {
    // What firmware is written with: bytes, up to a few KiB.
    if bytes < 4096 { format!("{bytes} B") } else { Bytes(bytes).to_string() }
}

/// Advice for each target of a run, in the order they were measured.
pub fn advice(all: &[Bench]) -> Vec<(String, Vec<String>)> {
    let mut targets: Vec<&str> = vec![];
    all.iter().for_each(|b| {
        if !targets.contains(&b.target.as_str()) {
            targets.push(&b.target);
        }
    });
    let of = |t: &str| all.iter().filter(|b| b.target == t && speed(b).is_some()).collect::<Vec<&Bench>>();
    targets.into_iter().map(|t| (t.to_string(), one(&of(t)))).filter(|a| !a.1.is_empty()).collect()
}

fn one(of: &[&Bench]) -> Vec<String> {
    let Some(first) = of.first() else { return vec![] };
    if of.iter().any(|b| b.cached) {
        let time = if first.again.is_empty() { String::new() } else { format!(": {} --sync 1", first.again) };
        return vec![format!("Time the card first; here the kernel's page cache took the records{time}")];
    }
    // All that is alike but for one setting.
    let alike = |b: &&&Bench, record: bool, cluster: bool, sync: bool| {
        (!record || b.record == first.record) && (!cluster || b.host == first.host) && (!sync || b.sync == first.sync)
    };
    let records: Vec<&Bench> = of.iter().filter(|b| alike(b, false, true, true)).copied().collect();
    let clusters: Vec<&Bench> = of.iter().filter(|b| alike(b, true, false, true)).copied().collect();
    let syncs: Vec<&Bench> = of.iter().filter(|b| alike(b, true, true, false)).copied().collect();
    let mut out = vec![];
    out.extend(record(&records));
    out.extend(cluster(&clusters));
    out.extend(sync(&syncs));
    out.extend(stalling(of));
    out
}

/// The smallest record that is nearly as fast as the fastest.
fn record(all: &[&Bench]) -> Option<String> {
    let first = all.first()?;
    let command = |what: &str| (!first.again.is_empty()).then(|| format!(": {} {what}", first.bare()));
    let mut known: Vec<(u64, f64)> = all.iter().filter_map(|b| Some((b.record, speed(b)?))).collect();
    nandscope_stats::sort_by_key(&mut known, |k| k.0);
    let best = known.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let worst = known.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1))?;
    if known.len() < 2 {
        if !first.record.is_multiple_of(512) {
            let full = first.record.next_multiple_of(512);
            let sizes = command(&format!("--record {},{full}", first.record))?;
            return Some(format!("Records of {} do not fill sectors of 512 B. Compare with those that do{sizes}", size(first.record)));
        }
        return Some(format!("Which size of a record is fast was not measured; this does{}", command("--chunks sweep")?));
    }
    if best.1 < WORTH * worst.1 {
        return Some(format!(
            "The size of a record makes no difference between {} and {}: {}",
            size(known[0].0),
            size(known[known.len() - 1].0),
            rate(best.1)
        ));
    }
    let enough = known.iter().find(|k| k.1 >= ENOUGH * best.1).unwrap_or(&best);
    let mut text = format!(
        "Write {} at a time: {} against {} with {} ({:.1} times)",
        size(enough.0),
        rate(enough.1),
        rate(worst.1),
        size(worst.0),
        enough.1 / worst.1
    );
    if known.last().map(|k| k.0) == Some(enough.0) {
        text += "; larger records were not measured";
        text += &command("--chunks sweep").unwrap_or_default();
    }
    Some(text)
}

fn cluster(all: &[&Bench]) -> Option<String> {
    let first = all.first()?;
    let mut known: Vec<(u64, f64)> = all.iter().filter_map(|b| Some((b.cluster?, speed(b)?))).collect();
    nandscope_stats::sort_by_key(&mut known, |k| k.0);
    known.dedup_by_key(|k| k.0);
    if known.len() < 2 {
        let here = first.cluster?;
        if first.again.is_empty() || !first.target.starts_with("sim:") {
            return None;
        }
        let other = if here >= 32 << 10 { here / 8 } else { 32 << 10 };
        return Some(format!(
            "What the clusters of {} cost was not measured; this does: {} --cluster {},{}",
            Bytes(here),
            first.again,
            option(here),
            option(other)
        ));
    }
    let by = |a: &&(u64, f64), b: &&(u64, f64)| a.1.total_cmp(&b.1);
    let (best, worst) = (known.iter().max_by(by)?, known.iter().min_by(by)?);
    Some(match best.1 < WORTH * worst.1 {
        true => format!("The size of a cluster makes no difference between {} and {}", Bytes(known[0].0), Bytes(known[known.len() - 1].0)),
        false => format!(
            "Format with clusters of {}: {} against {} with {}: nandscope format TARGET --cluster {}",
            Bytes(best.0),
            rate(best.1),
            rate(worst.1),
            Bytes(worst.0),
            option(best.0)
        ),
    })
}

fn sync(all: &[&Bench]) -> Option<String> {
    let first = all.first()?;
    let mut known: Vec<(&str, f64)> = all.iter().filter_map(|b| Some((b.sync.as_str(), speed(b)?))).collect();
    known.dedup_by_key(|k| k.0);
    if known.len() < 2 {
        // In a directory any other sync times the memory of the kernel.
        if first.again.is_empty() || first.kernel {
            return None;
        }
        return Some(format!("What a sync after each record costs was not measured; this does: {} --sync end,1", first.bare_sync()));
    }
    let by = |a: &&(&str, f64), b: &&(&str, f64)| a.1.total_cmp(&b.1);
    let (best, worst) = (known.iter().max_by(by)?, known.iter().min_by(by)?);
    let lost = 100.0 * (1.0 - worst.1 / best.1);
    Some(match best.1 < WORTH * worst.1 {
        true => format!("Sync as often as you like: {} and {} are equally fast", best.0, worst.0),
        false => format!(
            "Sync no more often than you can afford to lose data: {} the card takes {}, {} only {}, {lost:.0} % less",
            best.0,
            rate(best.1),
            worst.0,
            rate(worst.1)
        ),
    })
}

/// What the longest calls ask for.
fn stalling(all: &[&Bench]) -> Option<String> {
    let (b, p) = all.iter().flat_map(|b| b.passes.iter().filter(|p| p.write).map(move |p| (b, p))).max_by_key(|(_, p)| p.longest)?;
    let s = stalls(p);
    if s.count == 0 {
        return None;
    }
    let change = |length: f64| b.cluster.is_some_and(|c| (length / c as f64 - 1.0).abs() < 0.02);
    let periods = s.in_bytes.iter().chain(s.kinds.iter().filter_map(|k| k.in_bytes.as_ref()));
    let clusters = periods.filter(|p| p.fixed).any(|p| change(p.length));
    let why = if clusters { "; some stalls come with each new cluster, of which larger clusters have fewer" } else { "" };
    Some(format!("Collect samples in a buffer while a write runs: the longest took {}{why}", p.longest))
}

impl Bench {
    /// The command with more options.
    pub fn again(&self, options: &str) -> Option<String> {
        (!self.again.is_empty()).then(|| format!("{} {options}", self.again))
    }

    /// The command without its size of a record, and that without its sync.
    fn bare(&self) -> String {
        without(&self.again, "--record")
    }

    fn bare_sync(&self) -> String {
        without(&self.again, "--sync")
    }
}

fn without(command: &str, option: &str) -> String {
    let mut out: Vec<&str> = vec![];
    let mut words = command.split(' ');
    while let Some(w) = words.next() {
        if w == option {
            words.next();
        } else {
            out.push(w);
        }
    }
    out.join(" ")
}
