//! `nandscope sim CARD --trace FILE | --pattern P`: requests through a simulated card in virtual time: latencies, rates,
//! write amplification, merges, wear, a time line.

use super::probe::parse_region;
use super::progress::Progress;
use super::sim_text;
use super::stop;
use super::trace_file::{self, TraceArgs};
use crate::device::{SimCard, Target};
use crate::units::Bytes;
use anyhow::Context;
use clap::{Args, ValueEnum};
use nandscope_sim::model::State;
use nandscope_sim::run::{How, Outcome, Pace, Pattern, run_told};
use nandscope_sim::trace::{Bad, Io, Trace};
use nandscope_sim::{Card, Histogram, Latencies, Lost, Model, Request, Rng};
use serde::Serialize;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// Version of the JSON that `--json` writes.
const SCHEMA: &str = "nandscope-sim/1";
/// Requests of a pattern where nothing else is said.
const REQUESTS: u64 = 10_000;

#[derive(Args)]
#[command(after_help = AFTER, group(clap::ArgGroup::new("input").required(true).args(["pattern", "trace"])))]
pub struct SimArgs {
    /// A simulated card: NAME or sim:NAME (`nandscope cards` lists them), or the model file PATH.toml, with settings as NAME?seed=7
    card: String,
    /// Made-up requests: random, sequential or mixed, with read, write and a size, as in random-4k or sequential-read-1m
    #[arg(long, value_name = "PATTERN")]
    pattern: Option<String>,
    /// Requests of a trace; '-' reads standard input. Byte 0 of the trace is the first byte of the region
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    reading: TraceArgs,
    /// Send each request at its time in the trace, not when the one before is done; latencies then include waiting
    #[arg(long, requires = "trace")]
    as_recorded: bool,
    /// How many requests [default: 10000 of a pattern, all of a trace]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Size of a pattern's requests
    #[arg(long, value_name = "SIZE", requires = "pattern")]
    size: Option<Bytes>,
    /// Share of reads in a pattern, percent
    #[arg(long, value_name = "PERCENT", requires = "pattern", value_parser = clap::value_parser!(u64).range(0..=100))]
    reads: Option<u64>,
    /// What the card holds before: as its model says, or this
    #[arg(long, value_name = "STATE")]
    precondition: Option<Precondition>,
    /// Requests under way at the same time, 1 to 32, as far as the card has a queue
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=32))]
    queue: u64,
    /// Part of the card to use, as START..END
    #[arg(long, value_name = "RANGE", value_parser = parse_region)]
    region: Option<(Option<Bytes>, Option<Bytes>)>,
    /// Cut the power at the end and print which acknowledged writes are lost
    #[arg(long)]
    power_cut: bool,
    /// Seed of everything that is left to chance [default: that of the card's name, else 1]
    #[arg(long)]
    seed: Option<u64>,
    /// Write one line for each request to this file: start and duration in ns, op, first byte, length in bytes
    #[arg(long, value_name = "F")]
    latencies: Option<PathBuf>,
    /// Write JSON to file F, or to standard output where F is missing or '-'
    #[arg(long, value_name = "F", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

const AFTER: &str = "\
Traces: fio iolog 2 and 3 (fio2, fio3), blkparse text (blkparse), blktrace binary (blktrace), ftrace or trace-cmd block
events (ftrace), MSR Cambridge CSV (msr), MQSim and DiskSim ASCII (mqsim), what --latencies and `nandscope replay` write
(columns). The format is found out.";

/// What a card holds before the first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Precondition {
    /// Every byte was written once, in order
    Full,
    /// Never written
    None,
    /// Full, and then as many random writes as it has write units
    Steady,
}

/// Everything a run said.
#[derive(Serialize)]
pub struct Report {
    schema: &'static str,
    version: &'static str,
    pub card: String,
    pub about: String,
    pub capacity: u64,
    pub input: String,
    pub region: [u64; 2],
    pub seed: u64,
    pub queue: u64,
    precondition: Option<Precondition>,
    pub requests_per_second: f64,
    pub bytes_per_second: f64,
    pub outcome: Outcome,
    pub wear: Option<Worn>,
    /// Latencies where the trace was made; None where it does not say.
    pub recorded: Option<Latencies>,
    pub malformed: u64,
    pub malformed_lines: Vec<Bad>,
    /// What a power cut at the end took away; None where none was asked for.
    pub lost: Option<Vec<Lost>>,
    pub notes: Vec<String>,
}

/// Erasures of the physical erase blocks in this run.
#[derive(Serialize)]
pub struct Worn {
    pub blocks: u64,
    pub mean: f64,
    pub least: u64,
    pub most: u64,
    pub standard_deviation: f64,
    /// Blocks bad from the start or given out since, in all.
    pub dead: u64,
}

pub fn run(a: SimArgs) -> anyhow::Result<ExitCode> {
    let SimCard { mut model, seed, .. } = Target::card(&a.card, a.seed)?;
    // Erasures are counted block by block, which changes no time.
    model.wear.count = model.ftl.kind != nandscope_sim::model::FtlKind::None;
    match a.precondition {
        None => {}
        Some(Precondition::None) => model.card.state = State::Empty,
        Some(Precondition::Full | Precondition::Steady) => model.card.state = State::Written,
    }
    let region = region(&a, &model)?;
    let mut notes = vec![];
    if a.queue > model.card.queue.max(1) {
        let has = if model.card.queue == 0 { "has no queue".to_string() } else { format!("holds {} commands", model.card.queue) };
        notes.push(format!("the card {has}: --queue {} counts as {}", a.queue, model.card.queue.max(1)));
    }
    let mut how = How { region: Some(region.clone()), depth: a.queue, ..How::default() };
    let (input, ios, trace): (String, Box<dyn Iterator<Item = Io>>, Option<Trace>) = match (&a.pattern, &a.trace) {
        (Some(text), _) => {
            let pattern = pattern(&a, text, &model, &region)?;
            let n = a.requests.unwrap_or(REQUESTS);
            (format!("{pattern}, {n} requests"), Box::new(pattern.ios(region.end - region.start, n, seed)), None)
        }
        (_, Some(path)) => {
            let mut trace = a.reading.load(path)?;
            how.fit = a.reading.fit(&trace, &region)?;
            how.pace = if a.as_recorded { Pace::AsRecorded } else { Pace::Closed };
            trace.ios.truncate(a.requests.unwrap_or(u64::MAX).try_into().unwrap_or(usize::MAX));
            if a.as_recorded && !trace.timed {
                notes.push("the trace has no times but its waits".into());
            }
            if trace.others > 0 {
                notes.push(format!("{} requests to other devices in the trace were left out", trace.others));
            }
            let name = if path.as_os_str() == "-" { "standard input".to_string() } else { path.display().to_string() };
            let ios = std::mem::take(&mut trace.ios);
            (format!("{name} ({}), {} requests", trace.format.name(), ios.len()), Box::new(ios.into_iter()), Some(trace))
        }
        _ => return Err(super::misuse("give --pattern or --trace")),
    };
    let stop = stop::on_signals(stop::Second::Ends)?;
    let mut card = Card::new(&model, seed);
    let mut now = 0;
    if a.precondition == Some(Precondition::Steady) {
        now = steady(&mut card, &model, &region, seed, &stop, a.quiet)?;
    }
    let before: Vec<u32> = card.erasures().map(<[u32]>::to_vec).unwrap_or_default();
    let mut recorded = Histogram::default();
    let all = ios.size_hint().0 as u64;
    let mut bar = Progress::steps("simulating", all, a.quiet);
    let ios = ios.take_while(|_| !stop.load(Ordering::Relaxed)).inspect(|io| {
        bar.step();
        if io.took > 0 {
            recorded.add(io.took);
        }
    });
    let mut lines = a.latencies.as_ref().map(|_| trace_file::HEAD.to_string());
    let outcome = run_told(&mut card, now, ios, &how, |io| {
        if let Some(all) = &mut lines {
            trace_file::line(all, trace_file::word(io.op), &io);
        }
    });
    bar.end();
    if let (Some(path), Some(all)) = (&a.latencies, &lines) {
        super::write_text(path, all)?;
    }
    let outcome = outcome.with_context(|| format!("{} stopped; nothing after that request was simulated", model.name))?;
    if stop.load(Ordering::Relaxed) {
        notes.push(format!("interrupted: the figures are those of the first {} of {all} requests", outcome.served));
    }
    let lost = a.power_cut.then(|| card.power_cut());
    let result = Report {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        card: model.name.clone(),
        about: model.about.clone(),
        capacity: model.card.capacity,
        input,
        region: [region.start, region.end],
        seed,
        queue: a.queue.min(model.card.queue.max(1)),
        precondition: a.precondition,
        requests_per_second: outcome.iops(),
        bytes_per_second: outcome.rate(),
        outcome,
        wear: worn(&card, &before),
        recorded: (recorded.count() > 0).then(|| recorded.latencies()),
        malformed: trace.as_ref().map_or(0, |t| t.bad),
        malformed_lines: trace.map_or(vec![], |t| t.shown),
        lost,
        notes,
    };
    print(&result, a.json.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

/// The part of the card to use.
fn region(a: &SimArgs, model: &Model) -> anyhow::Result<Range<u64>> {
    let capacity = model.card.capacity;
    let (start, end) = a.region.map_or((0, capacity), |(s, e)| (s.map_or(0, |b| b.0), e.map_or(capacity, |b| b.0)));
    let sector = model.card.sector;
    if start >= end || end > capacity || !start.is_multiple_of(sector) || !end.is_multiple_of(sector) {
        return Err(super::misuse(format!("the region {start}..{end} is not part of the card (0..{capacity}) on its {sector} byte grid")));
    }
    Ok(start..end)
}

fn pattern(a: &SimArgs, text: &str, model: &Model, region: &Range<u64>) -> anyhow::Result<Pattern> {
    let mut p = Pattern::parse(text).map_err(|why| super::misuse(format!("--pattern: {why}")))?;
    p.reads = a.reads.unwrap_or(p.reads);
    p.size = a.size.map_or(p.size, |b| b.0);
    let sector = model.card.sector;
    if p.size == 0 || !p.size.is_multiple_of(sector) {
        return Err(super::misuse(format!("requests of {} are not whole sectors of {sector} bytes; give another --size", Bytes(p.size))));
    }
    if p.size > region.end - region.start {
        return Err(super::misuse(format!(
            "requests of {} are larger than the region of {}",
            Bytes(p.size),
            Bytes(region.end - region.start)
        )));
    }
    Ok(p)
}

/// As many random writes of a write unit as the region has, so that what follows is in steady state; the time after them.
fn steady(card: &mut Card, model: &Model, region: &Range<u64>, seed: u64, stop: &AtomicBool, quiet: bool) -> anyhow::Result<u64> {
    let ios = steady_ios(model, region, seed);
    let mut bar = Progress::steps("preconditioning", ios.size_hint().0 as u64, quiet);
    let mut now = 0;
    for io in ios {
        if stop.load(Ordering::Relaxed) {
            anyhow::bail!("interrupted while the card was brought into steady state; nothing was measured");
        }
        bar.step();
        now = card.submit(now, Request::write(io.at, io.len)).context("the card failed while it was preconditioned")?.done;
    }
    bar.end();
    Ok(now)
}

/// The writes that bring a full card into steady state.
pub fn steady_ios(model: &Model, region: &Range<u64>, seed: u64) -> impl Iterator<Item = Io> + use<> {
    let unit = model.nand.write_unit.min(region.end - region.start);
    let (n, mut rng, start) = ((region.end - region.start) / unit, Rng::new(seed, 9), region.start);
    (0..n).map(move |_| Io { time: 0, op: nandscope_sim::Op::Write, at: start + rng.below(n) * unit, len: unit, took: 0 })
}

fn worn(card: &Card, before: &[u32]) -> Option<Worn> {
    let erased: Vec<u64> = card.erasures()?.iter().zip(before).map(|(now, then)| u64::from(now - then)).collect();
    let n = erased.len().max(1) as f64;
    let mean = erased.iter().sum::<u64>() as f64 / n;
    Some(Worn {
        blocks: erased.len() as u64,
        mean,
        least: erased.iter().copied().min().unwrap_or(0),
        most: erased.iter().copied().max().unwrap_or(0),
        standard_deviation: (erased.iter().map(|&e| (e as f64 - mean).powi(2)).sum::<f64>() / n).sqrt(),
        dead: card.dead_blocks(),
    })
}

fn print(result: &Report, json: Option<&Path>) -> anyhow::Result<()> {
    if !super::write_json(json, result)? {
        put!("{}", sim_text::text(result, super::width()));
    }
    Ok(())
}
