//! Simulated work in shards: probes of cards with many seeds and settings, or twins of many reports. Jobs are numbered by the plan alone, so any number of
//! machines can share them, a shard goes on where it stopped, and the merged result is that of one process.

mod store;
pub mod truth;

pub use store::{Merged, SweepError, merge, shard_file};

use crate::device::{Access, Device, Geometry, Op, Result as DeviceResult, SimDevice, Target, Timed};
use crate::experiment;
use crate::finding::Finding;
use crate::probe::probe;
use crate::saved::Report;
use crate::twin::{Asked, Data, fit};
use crate::units::{Bytes, Nanos, parse_duration};
use nandscope_sim::Model;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// Name and version of the form of what is written.
pub const SCHEMA: &str = "nandscope-sweep/1";

/// No plan has more jobs.
const MOST_JOBS: u64 = 1_000_000_000;

/// So many jobs are looked at before the first one begins.
const LOOKED_AT: usize = 1000;

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Plan {
    /// "random", "unusual", a built-in card, or a model file.
    pub cards: Vec<String>,
    /// Reports to fit twins to.
    pub reports: Vec<String>,
    /// Seeds of each card or report, counted from `first_seed`.
    pub seeds: u64,
    #[serde(default = "one")]
    pub first_seed: u64,
    /// Whether experiments that write are run.
    pub write: Option<bool>,
    /// Most virtual time of a probe, as "30m".
    pub time: Option<String>,
    /// Most bytes that a probe writes, as "8GiB".
    pub writes: Option<String>,
    /// Keys of the card model, each with the values it takes: every combination is a card of its own.
    pub set: BTreeMap<String, Vec<Value>>,
}

fn one() -> u64 {
    1
}

/// One job, by its number.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    pub number: u64,
    /// A card or a report.
    pub subject: String,
    pub seed: u64,
    pub set: BTreeMap<String, Value>,
}

impl Plan {
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(text: &str) -> Result<Plan, String> {
        let plan: Plan = toml::from_str(text).map_err(|e| e.to_string())?;
        if plan.cards.is_empty() == plan.reports.is_empty() {
            return Err("a plan has either `cards` to probe or `reports` to fit twins to".into());
        }
        if !plan.reports.is_empty() && (!plan.set.is_empty() || plan.write.is_some() || plan.time.is_some() || plan.writes.is_some()) {
            return Err("`set`, `write`, `time` and `writes` are of cards, not of reports".into());
        }
        if plan.seeds == 0 {
            return Err("`seeds` says how many runs each card has: 1 or more".into());
        }
        if let Some(key) = plan.set.iter().find(|s| s.1.is_empty()).map(|s| s.0) {
            return Err(format!("set.{key} has no values"));
        }
        plan.time()?;
        plan.writes()?;
        if plan.count().is_none_or(|n| n > MOST_JOBS) {
            return Err(format!("the plan has more than {MOST_JOBS} jobs"));
        }
        Ok(plan)
    }

    /// Whether its jobs can be done, each card or report with each setting at its first seed: an error that only the last job would meet is
    /// told before the first.
    ///
    /// # Errors
    /// What is wrong, of which card, report or setting.
    pub fn ready(&self) -> Result<(), String> {
        let seeds = usize::try_from(self.seeds).unwrap_or(usize::MAX);
        (0..self.jobs()).step_by(seeds).take(LOOKED_AT).map(|n| self.job(n)).try_for_each(|job| match self.cards.is_empty() {
            true => measured(&job).map(|_| ()),
            false => model(&job).map(|_| ()),
        })
    }

    fn time(&self) -> Result<Nanos, String> {
        self.time.as_deref().map_or(Ok(Nanos::from_secs_f64(1800.0)), parse_duration)
    }

    fn writes(&self) -> Result<u64, String> {
        self.writes.as_deref().map_or(Ok(8 << 30), |w| w.parse::<Bytes>().map(|b| b.0))
    }

    fn subjects(&self) -> &[String] {
        if self.cards.is_empty() { &self.reports } else { &self.cards }
    }

    fn count(&self) -> Option<u64> {
        let settings = self.set.values().try_fold(1u64, |n, v| n.checked_mul(v.len() as u64))?;
        (self.subjects().len() as u64).checked_mul(settings)?.checked_mul(self.seeds)
    }

    /// How many jobs it has.
    pub fn jobs(&self) -> u64 {
        self.count().unwrap_or(0)
    }

    /// A job by its number: seeds go fastest, then settings, then cards.
    pub fn job(&self, number: u64) -> Job {
        let mut rest = number;
        let mut digit = |of: u64| {
            let d = rest % of;
            rest /= of;
            d
        };
        let seed = self.first_seed + digit(self.seeds);
        let set = self.set.iter().map(|(key, values)| (key.clone(), values[digit(values.len() as u64) as usize].clone())).collect();
        Job { number, subject: self.subjects()[digit(self.subjects().len() as u64) as usize].clone(), seed, set }
    }
}

/// A share of the jobs: those whose number leaves `index` when divided by `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// From 0.
    pub index: u64,
    pub of: u64,
}

impl Shard {
    /// All jobs.
    pub const WHOLE: Shard = Shard { index: 0, of: 1 };

    /// "2/5" is the second of five.
    ///
    /// # Errors
    /// It is no such share.
    pub fn parse(text: &str) -> Result<Shard, String> {
        let parts = text.split_once('/').and_then(|(i, n)| Some((i.trim().parse::<u64>().ok()?, n.trim().parse::<u64>().ok()?)));
        match parts {
            Some((i, of)) if (1..=of).contains(&i) && of <= 1_000_000 => Ok(Shard { index: i - 1, of }),
            _ => Err(format!("'{text}' is no shard; the second of five is 2/5")),
        }
    }

    fn has(self, job: u64) -> bool {
        job % self.of == self.index
    }
}

/// A simulated card that counts its accesses.
struct Count {
    inner: SimDevice,
    accesses: u64,
    written: u64,
}

impl Device for Count {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }
    fn access(&mut self, a: Access) -> DeviceResult<Timed> {
        self.accesses += 1;
        if matches!(a.op, Op::Write(_)) {
            self.written += a.len;
        }
        self.inner.access(a)
    }
    fn now(&self) -> Nanos {
        self.inner.now()
    }
    fn idle(&mut self, d: Nanos) {
        self.inner.idle(d);
    }
    fn load(&mut self, at: u64, into: &mut [u8]) -> DeviceResult<()> {
        self.inner.load(at, into)
    }
    fn store(&mut self, at: u64, bytes: &[u8]) -> DeviceResult<()> {
        self.inner.store(at, bytes)
    }
}

/// The model with these keys at these values.
fn with(model: &Model, set: &BTreeMap<String, Value>) -> Result<Model, String> {
    if set.is_empty() {
        return Ok(model.clone());
    }
    let mut text: toml::Table = model.to_toml().parse().map_err(|e: toml::de::Error| e.to_string())?;
    for (key, value) in set {
        let (table, name) = key.split_once('.').ok_or_else(|| format!("set.{key}: keys of a model are named TABLE.KEY, as host.jitter"))?;
        let value = toml::Value::try_from(value).map_err(|e| format!("set.{key}: {e}"))?;
        let table = text.entry(table).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        table.as_table_mut().ok_or_else(|| format!("set.{key}: {table} is no table", table = key))?.insert(name.into(), value);
    }
    Model::parse(&text.to_string(), "the card with its settings").map_err(|e| e.to_string())
}

/// The card of a job.
fn model(job: &Job) -> Result<Model, String> {
    let name = job.subject.strip_prefix("sim:").unwrap_or(&job.subject);
    let card = Target::card(&format!("sim:{name}"), Some(job.seed)).map_err(|e| e.to_string())?;
    with(&card.model, &job.set)
}

fn probed(plan: &Plan, job: &Job, stop: &AtomicBool) -> Result<Value, String> {
    let model = model(job)?;
    let mut device = Count { inner: SimDevice::new(&model, job.seed).with_stamps(), accesses: 0, written: 0 };
    let mut experiments = experiment::probing();
    experiments.retain(|e| plan.write != Some(false) || !e.about().writes);
    let region = 0..device.geometry().size;
    let (time, writes) = (plan.time()?, plan.writes()?);
    let work = crate::probe::Plan { experiments, region, time, writes, seed: job.seed, stop };
    let began = device.now();
    let (_, findings) = probe(&mut device, &work, &mut |_| {});
    let truth = model.truth();
    let found = |f: &Finding| {
        json!({
            "quantity": f.quantity, "value": f.value, "at_least": f.at_least, "confidence": f.confidence,
            "truth": truth::truth_of(f.quantity, &truth), "right": truth::right(f, &truth),
        })
    };
    Ok(json!({
        "findings": findings.0.iter().map(found).collect::<Vec<_>>(),
        "accesses": device.accesses, "bytes_written": device.written, "seconds": (device.now() - began).secs(),
    }))
}

/// The measurements of a job.
fn measured(job: &Job) -> Result<Data, String> {
    let report = Report::load(Path::new(&job.subject)).map_err(|e| e.to_string())?;
    Data::of(&[(job.subject.clone(), report)]).map_err(|e| e.to_string())
}

fn fitted(job: &Job, stop: &AtomicBool) -> Result<Value, String> {
    let data = measured(job)?;
    // Long enough that the search ends by itself: one that is cut depends on the machine.
    let asked = Asked { seed: job.seed, time: Duration::from_secs(3600), stop, tell: &mut |_, _| {} };
    let twin = match fit(&data, asked) {
        Ok(twin) => twin,
        Err(why) => return Ok(json!({ "no_card": why.to_string() })),
    };
    let mut value = json!(twin);
    value["model"] = if twin.no_card.is_none() { twin.toml().into() } else { Value::Null };
    // How long it took is of the machine.
    value.as_object_mut().map(|v| v.remove("seconds"));
    Ok(value)
}

/// The result of a job as one line, without its end.
fn done(plan: &Plan, job: &Job, stop: &AtomicBool) -> Result<String, String> {
    let result = if plan.cards.is_empty() { fitted(job, stop) } else { probed(plan, job, stop) };
    let mut line = json!({ "job": job.number, "of": job.subject, "seed": job.seed });
    if !job.set.is_empty() {
        line["set"] = json!(job.set);
    }
    line["result"] = result.map_err(|e| format!("job {} ({}, seed {}): {e}", job.number, job.subject, job.seed))?;
    Ok(line.to_string())
}

/// Does the jobs of a shard that its file does not hold yet, on so many threads; gives how many were done now, and how many the shard has.
///
/// # Errors
/// The file belongs to another plan or another process, cannot be written, or a job cannot be done.
pub fn run(
    plan: &Plan,
    shard: Shard,
    dir: &Path,
    threads: usize,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<(u64, u64), SweepError> {
    let mut file = store::File::open(plan, shard, dir)?;
    let all = (0..plan.jobs()).filter(|j| shard.has(*j)).count() as u64;
    let next = AtomicU64::new(shard.index);
    let (had, failed) = (file.had.clone(), AtomicBool::new(false));
    let halt = || stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
    let (send, lines) = mpsc::channel();
    let mut now = 0;
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            let send = send.clone();
            let (next, had) = (&next, &had);
            scope.spawn(move || {
                while !halt() {
                    let number = next.fetch_add(shard.of, Ordering::Relaxed);
                    if number >= plan.jobs() {
                        break;
                    }
                    if had.contains(&number) {
                        continue;
                    }
                    let line = done(plan, &plan.job(number), stop);
                    // What a signal cut short is no result.
                    if stop.load(Ordering::Relaxed) || send.send(line).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        for line in lines {
            if let Err(why) = line.map_err(SweepError::Job).and_then(|l| file.add(&l)) {
                failed.store(true, Ordering::Relaxed);
                return Err(why);
            }
            now += 1;
            tell(had.len() as u64 + now, all);
        }
        Ok(())
    })?;
    Ok((now, all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_is_in_one_shard() {
        let plan = Plan::parse(
            "cards = ['random', 'null']\nseeds = 5\nfirst_seed = 3\n[set]\n'host.jitter' = [0, '40 us']\n'host.rate' = [0, 1, 2]",
        )
        .unwrap();
        assert_eq!(plan.jobs(), 60);
        let jobs: Vec<Job> = (0..60).map(|n| plan.job(n)).collect();
        for (i, a) in jobs.iter().enumerate() {
            assert!(jobs[..i].iter().all(|b| (&a.subject, a.seed, &a.set) != (&b.subject, b.seed, &b.set)), "{a:?}");
            for of in 1..8 {
                assert_eq!((0..of).filter(|&index| Shard { index, of }.has(i as u64)).count(), 1);
            }
        }
        assert_eq!((jobs[0].seed, jobs[4].seed, jobs[5].seed), (3, 7, 3));
    }

    #[test]
    fn plans_that_cannot_be() {
        for (text, says) in [
            ("cards = ['null']", "`seeds`"),
            ("seeds = 1", "either `cards`"),
            ("cards = ['null']\nreports = ['a']\nseeds = 1", "either `cards`"),
            ("reports = ['a']\nseeds = 1\ntime = '5m'", "are of cards"),
            ("cards = ['null']\nseeds = 1\n[set]\n'host.jitter' = []", "has no values"),
            ("cards = ['null']\nseeds = 9000000000", "more than"),
            ("cards = ['null']\nseeds = 1\ntime = 'soon'", "soon"),
            ("cards = ['null']\nsedes = 1", "unknown field"),
        ] {
            let why = Plan::parse(text).unwrap_err();
            assert!(why.contains(says), "{text}: {why}");
        }
        for bad in ["0/3", "4/3", "1", "a/b", "1/0", "1/2/3"] {
            assert!(Shard::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(Shard::parse("2/5").unwrap(), Shard { index: 1, of: 5 });
    }
}
