//! `nandscope twin REPORT...`: a card model fitted to reports; `nandscope twin check`: a card model held against what was measured.

use super::args::{Other, Output};
use super::progress::Progress;
use super::sim::Precondition;
use super::{UNDECIDED, form, stop, trace_file, twin_text, width, write_json, write_text};
use crate::device::{SimCard, Target};
use crate::report::Report;
use crate::report::any::Saved;
use crate::twin::check::check;
use crate::twin::{Asked, Data, Twin, TwinError, fit};
use crate::units::{Nanos, parse_duration};
use anyhow::bail;
use clap::{Args, Subcommand};
use nandscope_sim::model::State;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Version of the JSON that a fit writes, and of that of a check.
const SCHEMA: &str = "nandscope-twin/1";
const CHECKED: &str = "nandscope-twin-check/1";

/// Longest time of a search where nothing else is said.
const TIME: &str = "30s";

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_help = AFTER)]
pub struct TwinArgs {
    #[command(subcommand)]
    check: Option<Sub>,
    /// Reports that --json of `nandscope probe` wrote; several of one card are fitted together
    #[arg(required = true, value_name = "REPORT")]
    reports: Vec<PathBuf>,
    /// Write the card model to this file, or to standard output with '-'
    #[arg(long, short, value_name = "TWIN.toml")]
    output: Option<PathBuf>,
    /// Write everything that was fitted to a file, or to standard output with '-'
    #[arg(long, value_name = "F", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
    #[command(flatten)]
    other: Other,
    /// Seed of the structures that are drawn
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Most time for the search; Ctrl-C ends it earlier with the best so far
    #[arg(long, value_parser = parse_duration, default_value = TIME)]
    time: Nanos,
    /// No progress and no plot
    #[arg(long, short)]
    quiet: bool,
}

const AFTER: &str = "\
The twin is a card model: `nandscope sim TWIN.toml`, `bench`, `frag`, `serve` and every other command take it as a target.
Exit code 3, and no twin, where what was measured behaves like no card known here; the reason is printed.";

#[derive(Subcommand)]
enum Sub {
    /// Compare a twin with what was measured, access by access
    Check(CheckArgs),
}

#[derive(Args)]
pub struct CheckArgs {
    /// The twin, or any other card model
    #[arg(value_name = "TWIN.toml")]
    twin: String,
    /// What `nandscope replay --out` measured, or another trace with the time of each request
    #[arg(value_name = "MEASURED.tsv")]
    measured: PathBuf,
    /// What the card held before: as the model says, or this
    #[arg(long, value_name = "STATE", conflicts_with = "after")]
    precondition: Option<Precondition>,
    /// Begin where these reports end: the twin does all their accesses first
    #[arg(long, value_name = "REPORT", num_args = 1..)]
    after: Vec<PathBuf>,
    /// Seed of what the model leaves to chance [default: that of the card's name, else 1]
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    out: Output,
}

pub fn run(a: TwinArgs) -> anyhow::Result<ExitCode> {
    if let Some(Sub::Check(c)) = a.check {
        return checked(&c);
    }
    let to_stdout = |p: &Option<PathBuf>| p.as_ref().is_some_and(|p| p.as_os_str() == "-");
    let asked = [to_stdout(&a.json), to_stdout(&a.output), a.other.format.is_some()];
    if asked.into_iter().filter(|x| *x).count() > 1 {
        return Err(super::misuse("standard output takes one of --json, --output and --format; give the others a file"));
    }
    let stop = stop::on_signals(stop::Second::Ends)?;
    let reports = load(&a.reports)?;
    let data = match Data::of(&reports) {
        Err(e @ TwinError::NoCard(_)) => return Ok(no_card(&e)),
        other => other?,
    };
    drop(reports);
    let twin = fitted(&data, a.seed, a.time, &stop, a.quiet)?;
    let value = save(&twin, a.output.as_deref(), a.json.as_deref())?;
    if let Some(other) = a.other.format {
        super::as_it_is(&other.write(&value).map_err(anyhow::Error::msg)?);
    } else if !to_stdout(&a.json) && !to_stdout(&a.output) {
        put!("{}", twin_text::text(&twin, width(), !a.quiet));
    }
    told(&twin, a.output.as_deref(), stop.load(Ordering::Relaxed));
    Ok(code(&twin))
}

/// The twin of a report that was just made.
///
/// # Errors
/// The report holds too little, or the file cannot be written.
pub fn of_probe(report: &Report, to: &Path, seed: u64, stop: &AtomicBool, shown: (bool, bool)) -> anyhow::Result<ExitCode> {
    let (print, quiet) = shown;
    let data = match Data::of(&[(report.target.path.clone(), report.clone())]) {
        Err(e @ TwinError::NoCard(_)) => return Ok(no_card(&e)),
        other => other?,
    };
    let time = parse_duration(TIME).map_err(anyhow::Error::msg)?;
    let twin = fitted(&data, seed, time, stop, quiet)?;
    save(&twin, Some(to), None)?;
    if print {
        put!("\n{}", twin_text::text(&twin, width(), !quiet));
    }
    told(&twin, Some(to), stop.load(Ordering::Relaxed));
    Ok(code(&twin))
}

/// What was measured once counts once, however often it is given.
fn load(paths: &[PathBuf]) -> anyhow::Result<Vec<(String, Report)>> {
    let mut out: Vec<(String, Report)> = vec![];
    for path in paths {
        let name = path.display().to_string();
        let report = Saved::load(path)?.report(&name)?;
        match out.iter().find(|(_, r)| !r.runs.is_empty() && r.runs == report.runs).map(|x| &x.0) {
            Some(first) if *first == name => tell!("nandscope: {name} is given twice: it counts once"),
            Some(first) => tell!("nandscope: {name} holds what {first} holds: it counts once"),
            None => out.push((name, report)),
        }
    }
    Ok(out)
}

fn fitted(data: &Data, seed: u64, time: Nanos, stop: &AtomicBool, quiet: bool) -> Result<Twin, TwinError> {
    let mut bar = Progress::phases(quiet);
    let mut tell = |what: &str, share: f64| {
        bar.begin(0, 1, what);
        bar.so_far(share);
    };
    let twin = fit(data, Asked { seed, time: Duration::from_nanos(time.0), stop, tell: &mut tell });
    bar.end();
    twin
}

/// Writes the model and the JSON. Where there is no card, no model is written.
fn save(twin: &Twin, model: Option<&Path>, json: Option<&Path>) -> anyhow::Result<serde_json::Value> {
    if let (Some(path), None) = (model, &twin.no_card) {
        write_text(path, &twin.toml())?;
    }
    let mut value = form(SCHEMA, twin);
    value["version"] = env!("CARGO_PKG_VERSION").into();
    value["model"] = if twin.no_card.is_none() { twin.toml().into() } else { serde_json::Value::Null };
    write_json(json, &value)?;
    Ok(value)
}

fn told(twin: &Twin, to: Option<&Path>, interrupted: bool) {
    if twin.cut {
        let why = if interrupted { "interrupted" } else { "the time is over" };
        tell!("nandscope: {why}; this is the best of {} structures, --time allows more", twin.structures);
    }
    match (&twin.no_card, to) {
        (Some(why), _) => tell!("nandscope: no twin: {why}"),
        (None, Some(path)) if path.as_os_str() != "-" => tell!("nandscope: the twin is in {}", path.display()),
        _ => {}
    }
}

/// What was measured is no card: the reason, and the exit code that says so.
fn no_card(why: &TwinError) -> ExitCode {
    tell!("nandscope: {why}");
    ExitCode::from(UNDECIDED)
}

fn code(twin: &Twin) -> ExitCode {
    if twin.no_card.is_some() { ExitCode::from(UNDECIDED) } else { ExitCode::SUCCESS }
}

fn checked(a: &CheckArgs) -> anyhow::Result<ExitCode> {
    let SimCard { mut model, seed, .. } = Target::card(&a.twin, a.seed)?;
    let trace = trace_file::load(&a.measured, None, true)?;
    let last = trace.ios.iter().map(|io| io.at.saturating_add(io.len)).max().unwrap_or(0);
    if last > model.card.capacity {
        bail!(
            "{} reaches up to byte {last}, {} has {}: it was measured on another card",
            a.measured.display(),
            a.twin,
            model.card.capacity
        );
    }
    match a.precondition {
        None => {}
        Some(Precondition::None) => model.card.state = State::Empty,
        Some(Precondition::Full | Precondition::Steady) => model.card.state = State::Written,
    }
    let mut before = match a.after.is_empty() {
        true => vec![],
        false => Data::of(&load(&a.after)?)?.ios(),
    };
    if a.precondition == Some(Precondition::Steady) {
        before = super::sim::steady_ios(&model, &(0..model.card.capacity), seed).collect();
    }
    let c = check(&model, &before, &trace.ios, seed)?;
    let mut value = form(CHECKED, &c);
    value["version"] = env!("CARGO_PKG_VERSION").into();
    value["twin"] = model.name.clone().into();
    value["measured"] = a.measured.display().to_string().into();
    value["begins"] = begins(a, &model).into();
    if !a.out.write(&value)? {
        put!("{}", twin_text::checked(&c, &a.twin, &a.measured.display().to_string(), &begins(a, &model)));
    }
    Ok(ExitCode::SUCCESS)
}

/// What the twin holds when the first access comes.
fn begins(a: &CheckArgs, model: &nandscope_sim::Model) -> String {
    if !a.after.is_empty() {
        return "after the reports given".into();
    }
    match (a.precondition, model.card.state) {
        (Some(Precondition::Steady), _) => "full, and then overwritten at random once".into(),
        (_, State::Empty) => "empty, never written".into(),
        _ => "full, every byte written once in order".into(),
    }
}
