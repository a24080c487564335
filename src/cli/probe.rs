//! `nandscope probe` and `nandscope run`: says what will be touched, measures, says what was found and what was written.

mod plan;

use super::args::{Allowed, Measuring, Output, Part, Samples, Undoing};
use super::back::Back;
use super::erase::{HowArg, erase_all};
use super::infer::{Print, judged, output};
use super::progress::Progress;
use super::stop;
use super::{FAILING, UNDECIDED};
use crate::device::{self, CardState, Device, DeviceError, Limits, OpenOptions, undo};
use crate::experiment::{self, Experiment};
use crate::finding::{Findings, Quantity};
use crate::host::declared::{Declared, Kind};
use crate::host::facts::TargetKind;
use crate::host::live;
use crate::infer::beliefs::Beliefs;
use crate::probe::{Event, Plan, about_as_long, is_cut, own_time, resume};
use crate::report::terminal::{ending, lines};
use crate::report::{Cost, Report, SCHEMA, Settings, Tool};
use crate::samples::{Ended, Run};
use crate::saved::counterfeit::Counterfeit;
use crate::units::{Bytes, GIB, Nanos, about};
use anyhow::bail;
use clap::Args;
use plan::{Needs, plan};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

const PROBE_TIME: &str = "Time for the measurement and for putting back; the capacity test may take 60 s more. Where 5m or more is given, a card \
    not found to be block-mapped is measured further [default: 60s on a device, 30m of virtual time on a simulated card]";

#[derive(Args)]
#[command(mut_arg("target", |a| a.required(true)))]
#[command(mut_arg("time", |a| a.help(PROBE_TIME)))]
pub struct ProbeArgs {
    #[command(flatten)]
    common: Common,
    /// Fit a card model to what was measured and write it to this file; see `nandscope twin`
    #[arg(long, value_name = "TWIN.toml")]
    twin: Option<PathBuf>,
}

#[derive(Args)]
pub struct RunArgs {
    /// Name of the experiment; `nandscope run list` prints them
    #[arg(value_parser = ExperimentName)]
    experiment: String,
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
#[command(mut_arg("time", |a| a.help("Time for the measurement and for putting back [default: 60s on a device, 30m of virtual time on a simulated card]")))]
struct Common {
    /// /dev/..., an image file, sim:NAME, a card model PATH.toml, "exec:COMMAND ARGS" or serial:PORT
    #[arg(value_parser = super::target)]
    target: Option<String>,
    #[command(flatten)]
    allowed: Allowed,
    #[command(flatten)]
    measuring: Measuring,
    /// Most bytes to write [default: 1GiB on a device, 8GiB on a simulated card]
    #[arg(long, value_name = "SIZE")]
    writes: Option<Bytes>,
    #[command(flatten)]
    part: Part,
    /// Erase or fill the whole region first: reads of flash that was never written say little
    #[arg(long, value_enum, value_name = "HOW")]
    prepare: Option<HowArg>,
    /// What the card went through before, for the report and its warnings: fresh, erased, filled, aged [default: unknown; of a simulated card its model's]
    #[arg(long, value_name = "STATE", conflicts_with = "prepare")]
    state: Option<CardState>,
    #[command(flatten)]
    undoing: Undoing,
    #[command(flatten)]
    out: Output,
    /// Which samples the report holds
    #[arg(long, value_name = "WHICH", value_enum, default_value = "all")]
    samples: Samples,
    /// Print evidence, full reasons and plots, too
    #[arg(long)]
    details: bool,
    /// Print the value of one quantity alone, such as erase_block: in bytes or bytes a second, in the unit that ends its key (ms, us, s, mb_s,
    /// iops), as a ratio or a count, a choice in its words; exit code 3 where it is undecided
    #[arg(long, value_name = "QUANTITY", value_parser = quantity, conflicts_with = "details")]
    only: Option<Quantity>,
    /// No progress, no plan; print the table of findings alone
    #[arg(long, short)]
    quiet: bool,
}

/// The name of an experiment, or "list"; shells complete it.
#[derive(Clone)]
struct ExperimentName;

impl clap::builder::TypedValueParser for ExperimentName {
    type Value = String;

    fn parse_ref(&self, cmd: &clap::Command, _: Option<&clap::Arg>, value: &std::ffi::OsStr) -> Result<String, clap::Error> {
        let name = value.to_string_lossy().into_owned();
        if name == "list" || experiment::by_name(&name).is_some() {
            return Ok(name);
        }
        Err(clap::Error::raw(clap::error::ErrorKind::InvalidValue, no_experiment(&name) + "\n").with_cmd(cmd))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = clap::builder::PossibleValue> + '_>> {
        Some(Box::new(experiment::all().iter().map(|e| e.about().name).chain(["list"]).map(Into::into)))
    }
}

/// Says what comes near: experiments of a similar name, those that answer for a quantity of this name, or all.
fn no_experiment(name: &str) -> String {
    let all = || experiment::all().iter().map(|e| e.about());
    let begin: Vec<&str> = all().map(|e| e.name).filter(|n| n.starts_with(name) && name.len() >= 3).collect();
    let near = device::nearest(name, all().map(|e| e.name));
    if let Some(q) = Quantity::ALL.into_iter().find(|q| q.key() == name.replace('-', "_") || q.title() == name) {
        let by: Vec<&str> = all().filter(|e| e.answers.contains(&q)).map(|e| e.name).collect();
        return format!("'{name}' is a finding, not an experiment; it comes from {}", by.join(", "));
    }
    match (begin.as_slice(), near) {
        ([], None) => format!("there is no experiment '{name}'; there are: {}", all().map(|e| e.name).collect::<Vec<_>>().join(", ")),
        ([], Some(one)) => format!("there is no experiment '{name}'; did you mean {one}?"),
        (some, _) => format!("there is no experiment '{name}'; did you mean {}?", some.join(" or ")),
    }
}

/// A quantity by its key in JSON, or by the words for it in a report: `merge_cost`, "multi-plane page".
fn quantity(s: &str) -> Result<Quantity, String> {
    let words = |text: &str| text.replace(['_', '-', ','], " ").split_whitespace().collect::<Vec<_>>().join(" ");
    let found = Quantity::ALL.into_iter().find(|q| q.key() == s || words(q.title()) == words(s));
    found.ok_or_else(|| match device::nearest(s, Quantity::ALL.into_iter().map(Quantity::key)) {
        Some(near) => format!("there is no quantity '{s}'; did you mean {near}?"),
        None => format!("there is no quantity '{s}'; there are: {}", Quantity::ALL.map(Quantity::key).join(", ")),
    })
}

pub(super) fn parse_region(s: &str) -> Result<(Option<Bytes>, Option<Bytes>), String> {
    let (a, b) = s.split_once("..").ok_or_else(|| format!("'{s}' is not a range; write for example 64MiB..1GiB"))?;
    let part = |t: &str| if t.trim().is_empty() { Ok(None) } else { t.parse::<Bytes>().map(Some) };
    Ok((part(a)?, part(b)?))
}

pub fn probe(a: ProbeArgs) -> anyhow::Result<ExitCode> {
    let experiments = experiment::probing_within(a.common.measuring.time);
    measure(a.common, experiments, None, a.twin.as_deref())
}

pub fn run(a: RunArgs) -> anyhow::Result<ExitCode> {
    if a.experiment == "list" && a.common.target.is_none() {
        let each =
            |e: &&dyn Experiment| serde_json::json!({ "name": e.about().name, "question": e.about().question, "writes": e.about().writes });
        let all: Vec<serde_json::Value> = experiment::all().iter().map(each).collect();
        if a.common.out.write(&super::form("nandscope-experiment/1", &all))? {
            return Ok(ExitCode::SUCCESS);
        }
        for e in experiment::all() {
            let about = e.about();
            let question = format!("{}{}", about.question, if about.writes { " (writes)" } else { "" });
            let mut rest = lines(&question, super::width().saturating_sub(18)).into_iter();
            say!("{:<18}{}", about.name, rest.next().unwrap_or_default());
            rest.for_each(|l| say!("{:18}{l}", ""));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let Some(wanted) = experiment::by_name(&a.experiment) else {
        return Err(super::misuse("`nandscope run list` takes no target"));
    };
    if a.common.target.is_none() {
        tell!("nandscope: name a TARGET: nandscope run {} TARGET; 'nandscope list' shows the devices", a.experiment);
        return Ok(ExitCode::from(super::USAGE));
    }
    measure(a.common, experiment::with_needs(wanted), Some(wanted), None)
}

/// No experiment that writes gets anywhere with less: one piece of each erase block that may be open.
const LEAST: u64 = 1 << 20;

/// `asked`: the one experiment that was named; those before it are what it needs.
fn measure(
    a: Common,
    mut experiments: Vec<&'static dyn Experiment>,
    asked: Option<&'static dyn Experiment>,
    twin: Option<&Path>,
) -> anyhow::Result<ExitCode> {
    let target = a.target.clone().unwrap_or_default();
    let simulated = device::is_simulated(&target)?;
    let write = a.allowed.write(simulated);
    if !write {
        if let Some(only) = asked.filter(|e| e.about().writes) {
            return Err(DeviceError::Refused(format!("{} writes; allow it with --write", only.about().name)).into());
        }
        experiments.retain(|e| !e.about().writes);
    }
    let stop = stop::on_signals(stop::Second::Ends)?;
    let writes = a.writes.unwrap_or(Bytes(if simulated { 8 * GIB } else { GIB }));
    let region_asked = a.part.asked();
    let undo = a.undoing.kept(write, simulated);
    experiments.retain(|e| undo || asked.is_some() || !e.to_put_back());
    let mut opened = device::open(&target, &OpenOptions::default())?;
    let facts = opened.facts().clone();
    let (geometry, state) = (opened.geometry().clone(), opened.state());
    let region = region_of(region_asked, &geometry)?;
    let signatures = if write && !simulated { opened.signatures()? } else { vec![] };
    let prepare = a.prepare.map(|how| how.order(region.clone(), geometry.sector, &facts));
    if prepare.is_some() && !write {
        return Err(DeviceError::Refused("--prepare writes the whole region; allow it with --write".into()).into());
    }
    if prepare.is_some() && undo {
        return Err(
            DeviceError::Refused("--prepare overwrites the whole region, which cannot be put back; give --no-undo, too".into()).into()
        );
    }
    if write && writes.0 < LEAST {
        let why = format!("--writes {writes} is too little for any experiment; allow {} or more, or give --read-only", Bytes(LEAST));
        return Err(DeviceError::OutOfBounds(why).into());
    }
    let dry = a.allowed.writing.dry.dry_run;
    let waiting = if write && !dry { None } else { opened.waiting() };
    let mut guard = if write && !dry {
        let consent = a.allowed.writing.named.check(opened.id())?;
        let limits = Limits {
            region: Some(region.clone()),
            budget: writes.0 + prepare.as_ref().map_or(0, |o| o.writes(geometry.offset)),
            undo: undo.then(undo::default_dir),
        };
        opened.writable(&consent, &limits)?
    } else {
        opened.read_only()
    };
    stop::keeps(&guard);
    let id = guard.id().clone();
    // The first bytes find everything else on a card: they are tried only where --region names them.
    let mut left_out = None;
    if !simulated && region_asked.is_none() && signatures.iter().any(|s| s.partition.is_none()) {
        let why = "fat-zone would begin on the partition table or filesystem of the target; allow that with --region 0..";
        if asked.is_some_and(|e| e.about().name == "fat-zone") {
            return Err(DeviceError::Refused(why.into()).into());
        }
        let before = experiments.len();
        experiments.retain(|e| e.about().name != "fat-zone");
        left_out = (experiments.len() < before).then(|| format!("left out: {why}"));
    }
    let first = asked.filter(|_| experiments.len() > 1).map(|e| {
        let names: Vec<&str> = experiments.iter().map(|e| e.about().name).filter(|n| *n != e.about().name).collect();
        format!("{} needs what other experiments find, so these ran first: {}", e.about().name, names.join(", "))
    });
    let time = a.measuring.time_or(if simulated { 1800.0 } else { 60.0 });
    // Putting the old content back takes about as long as writing did.
    let measuring = if undo { Nanos((time.0 as f64 * 0.75) as u64) } else { time };
    let quiet = a.quiet || a.only.is_some();
    let own = experiments.iter().map(|e| own_time(*e, measuring)).filter(|t| *t > Nanos(0) && experiments.len() > 1).max();
    if !quiet || dry {
        plan(
            &target,
            write.then_some(writes),
            &region,
            &signatures.iter().map(ToString::to_string).collect::<Vec<_>>(),
            (time, own),
            (undo, simulated),
            experiments.len(),
        );
        if facts.kind == TargetKind::Image {
            tell!("nandscope: an image file is as fast as the disk it lies on: what is found here is of that disk, not of a card");
        }
        // Measured with what is allowed unless more or less is asked for.
        if write && asked.is_none() && a.measuring.time.is_none() && a.writes.is_none() {
            (if simulated { Needs::HALF_AN_HOUR } else { Needs::A_MINUTE }).say();
        }
    }
    super::undo::remind(&id.path, waiting);
    if dry {
        return Ok(a.allowed.writing.dry.done(&id));
    }
    // A serial number is not for sharing; the target keeps it for its own undo.
    let declared = facts.disk.as_deref().and_then(|d| live::declared(Path::new("/sys"), d).ok()).map(Declared::without_serial);
    let realtime = if simulated { None } else { Some(device::realtime()) };
    let mut report = Report {
        schema: SCHEMA.into(),
        tool: Tool::this(),
        when: if simulated { 0 } else { SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs()) },
        target: id,
        host: facts,
        state: match (a.prepare, a.state) {
            (Some(how), _) => how.state(),
            (None, Some(said)) => said,
            (None, None) => state,
        },
        declared: declared.as_ref().map_or(serde_json::Value::Null, |d| serde_json::json!(d)),
        settings: Settings {
            asked: target.clone(),
            write,
            time,
            budget: if write { writes.0 } else { 0 },
            region: [region.start, region.end],
            seed: a.measuring.chance.seed,
            undo,
        },
        counterfeit: None,
        reported_bytes: None,
        real_bytes: None,
        findings: Findings::default(),
        advice: vec![],
        warnings: vec![],
        unreadable: vec![],
        cost: Cost::default(),
        accesses: None,
        runs: vec![],
    };
    if let Some(r) = &realtime {
        report.warnings.extend(r.denied.iter().map(|d| format!("timing is noisier than need be: no {d}")));
    }
    report.warnings.extend(report.host.caveats.iter().cloned());
    report.warnings.extend(left_out);
    report.warnings.extend(first);
    if let Some(order) = &prepare {
        let done = erase_all(&mut guard, order, quiet)?;
        if done.stopped {
            bail!("interrupted while preparing the card; nothing was measured");
        }
        if done.left > 0 {
            report.state = CardState::Unknown;
            report.warnings.push(format!("{} at the ends of the region were not erased", Bytes(done.left)));
        }
    }
    let began = guard.now();
    let mut plan = Plan { experiments, region, time: measuring, writes: writes.0, seed: a.measuring.chance.seed, stop: &stop };
    let mut bar = Progress::experiments(quiet, (!simulated).then(|| Nanos(time.0 + own.map_or(0, |t| t.0))));
    let save = a.out.json.clone().filter(|p| p.as_os_str() != "-");
    let mut tell = |e: Event| match e {
        Event::Begin { index, of, name, .. } => bar.begin(index, of, name),
        Event::Progress(p) => bar.tick(p.spent),
        Event::Done(runs, findings) => {
            // A killed program leaves the runs it had finished.
            if let Some(path) = &save {
                let kept = if a.samples == Samples::All { runs.to_vec() } else { vec![] };
                let mut part = Report { runs: kept, findings: findings.clone(), cost: Cost::of_runs(runs), ..report.clone() };
                part.warnings.insert(0, "unfinished: the program ended before the probe did; this is what was measured until then".into());
                let _ = part.save(path);
            }
        }
    };
    let (mut runs, mut findings) = crate::probe::probe(&mut guard, &plan, &mut tell);
    // Time that was kept back for the undo and that it will not need goes to what was cut.
    let failed = |runs: &[Run]| runs.iter().any(|r| matches!(r.ended, Ended::Failed(_) | Ended::Interrupted));
    if undo && runs.iter().any(is_cut) && !failed(&runs) {
        let (spent, back) = (guard.now() - began, about_as_long(&runs, &guard.changed()));
        let left = time - spent - back;
        // What is written in it has to be put back, too.
        let share = spent.secs() / (spent + back).secs().max(1e-9);
        plan.time = Nanos::from_secs_f64(left.secs() * share);
        if plan.time.secs() >= 0.05 * time.secs() {
            (runs, findings) = resume(&mut guard, &plan, runs, &mut tell);
        }
    }
    // Where nothing may be written, reads that fail all beyond one place still say what is there.
    if !write && guard.failures().gone().is_none() && guard.failures().unreadable().iter().next().is_some() {
        let geometry = guard.geometry().clone();
        let setup = experiment::Setup { geometry: &geometry, region: plan.region.clone(), believed: &Beliefs::default(), writes: 0 };
        let run = experiment::readable(&mut guard, &setup);
        let found = Report::infer(std::slice::from_ref(&run));
        if let Some(c) = Counterfeit::of(&found, geometry.offset + geometry.size) {
            plan.region.end = (c.holds - geometry.offset) / geometry.sector * geometry.sector;
            plan.time = time - (guard.now() - began);
            // What was measured on the part that is there stands, where there is no time for it once more.
            if plan.time.secs() >= 0.1 * time.secs() {
                (runs, _) = crate::probe::probe(&mut guard, &plan, &mut tell);
            }
            runs.insert(0, run);
            findings = Report::infer(&runs);
        }
    }
    bar.end();
    let interrupted = stop.load(Ordering::Relaxed);
    Back::begins(undo, interrupted, quiet);
    let back = Back::of(&mut guard);
    for end in runs.iter().filter_map(|r| ending(&r.experiment, &r.ended)) {
        // One that ran twice ends twice.
        if !report.warnings.contains(&end) {
            report.warnings.push(end);
        }
    }
    report.warnings.extend(back.warnings());
    report.findings = findings;
    report.runs = runs;
    crate::advise::conclude(&mut report);
    report.unreadable = back.unreadable().to_vec();
    // Past the end of the flash of a counterfeit nothing can be read; its banner says so.
    let reads_failed = back.reads_failed().filter(|_| report.is_counterfeit().is_none());
    report.warnings.extend(reads_failed.clone());
    if write && !simulated {
        report.name_target(&format!(" --write {}", report.target.consent_option()));
    } else {
        report.name_target("");
    }
    let declaring = declared.as_ref().filter(|d| d.kind != Kind::Other);
    if let (Some(d), Some(e)) = (declaring, report.findings.value(Quantity::EraseBlock, 0.5)) {
        report.warnings.push(d.beside_found(e as u64));
    }
    report.cost = Cost::of(guard.counters(), (guard.now() - began).secs());
    let failed = report.runs.iter().find_map(|r: &Run| match &r.ended {
        Ended::Failed(why) => Some(why.clone()),
        _ => None,
    });
    let twin_printed = twin.is_some_and(|p| p.as_os_str() == "-");
    let print = match (a.only, a.details || asked.is_some(), quiet) {
        _ if twin_printed => Print::Nothing,
        (Some(q), _, _) => Print::Only(q),
        (None, true, _) => Print::Details,
        (None, false, true) => Print::Table,
        (None, false, false) => Print::Answer,
    };
    output(&report, &a.out, a.samples, print)?;
    let whole = back.tell()?;
    if let Some(why) = failed {
        return Ok(super::card_failed(&why));
    }
    if interrupted {
        tell!("nandscope: interrupted; the report holds what was measured until then");
    }
    let fitted = match twin {
        Some(_) if interrupted => {
            tell!("nandscope: no twin was fitted; `nandscope twin REPORT.json` fits one to what was measured");
            None
        }
        Some(path) => {
            let shown = a.only.is_none() && !a.out.is_stdout() && !twin_printed;
            Some(super::twin::of_probe(&report, path, a.measuring.chance.seed, &stop, (shown, quiet))?)
        }
        None => None,
    };
    if let Some(why) = reads_failed {
        // The table alone holds no warnings.
        if quiet {
            tell!("nandscope: {why}");
        }
        return Ok(ExitCode::from(FAILING));
    }
    let decided = |q: Quantity| report.findings.get(q).is_some_and(|f| f.number().is_some());
    if a.only.is_some_and(|q| !decided(q)) {
        return Ok(ExitCode::from(UNDECIDED));
    }
    match judged(&report) {
        code if code == ExitCode::SUCCESS && whole && fitted.is_some() => Ok(fitted.unwrap_or(code)),
        code if whole || report.banner().is_some() => Ok(code),
        _ => Ok(ExitCode::FAILURE),
    }
}

pub(super) fn region_of(asked: Option<(u64, Option<u64>)>, g: &device::Geometry) -> Result<Range<u64>, DeviceError> {
    let (start, end) = asked.map_or((0, g.size), |(s, e)| (s, e.unwrap_or(g.size)));
    let wrong = if end > g.size {
        // In bytes where three digits show no difference.
        let [ends, size] = match [end, g.size].map(about) {
            [a, b] if a == b => [end, g.size].map(|n| format!("{n} B")),
            both => both,
        };
        format!("the region ends at {ends}, beyond the target ({size})")
    } else if start >= end {
        format!("the region ends ({}) before it begins ({})", Bytes(end), Bytes(start))
    } else if let Some(at) = [start, end].into_iter().find(|at| !at.is_multiple_of(g.sector)) {
        format!("the region has an end at byte {at}, which is no multiple of the sector ({} B)", g.sector)
    } else {
        return Ok(start..end);
    };
    Err(DeviceError::OutOfBounds(wrong))
}
