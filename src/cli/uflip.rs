//! `nandscope uflip`: the 34 experiments of uFLIP.

use super::args::{Allowed, Chance, Output, Part, Undoing};
use super::back::Back;
use super::progress::Progress;
use super::{UNDECIDED, form, stop};
use crate::device::{self, Device, Limits, OpenOptions, undo};
use crate::report::html::figures_page;
use crate::report::plot::braille;
use crate::report::terminal::lines;
use crate::report::{Cost, put};
use crate::saved::Tool;
use crate::uflip::measured::{Format, Measured};
use crate::uflip::plan::LEAST;
use crate::uflip::run::{Task, chosen, cost};
use crate::uflip::{SCHEMA, plan, res, run as bench, say};
use crate::units::{Bytes, GIB, Nanos, about, parse_duration, three};
use anyhow::{Context, anyhow, bail};
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const AFTER: &str = "\
With --out DIR: RES.csv (columns of FlashIO 2.3), uflip.json, uflip.html with all plots (one page, no network).

Examples:
  nandscope uflip sim:modern-a1-32gb --only granularity,ORD.W
  nandscope uflip /dev/sdb --out results --time 20m
  nandscope uflip /dev/sdb --write --consent ID --state random --writes 40GiB --out results";

#[derive(Args)]
#[command(after_help = AFTER)]
pub struct UflipArgs {
    /// /dev/..., an image file, sim:NAME, a card model PATH.toml, "exec:COMMAND ARGS" or serial:PORT
    #[arg(value_parser = super::target)]
    target: String,
    /// Micro-benchmarks (granularity, alignment, locality, partitioning, order, parallelism, mix, pause, bursts) or experiments (GRA.SR,
    /// LOC.RW ...) to run [default: all that fit into time and bytes]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = known)]
    only: Vec<String>,
    /// Directory for RES.csv, uflip.json and uflip.html; made where it is not there
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// State of the flash before: as it is, or the region written once, which takes as many bytes
    #[arg(long, value_enum, default_value = "as-is")]
    state: Format,
    /// Most time for the measurement; the longest experiments are left out [default: 30m on a device, 24h of virtual time on a simulated card]
    #[arg(long, value_parser = parse_duration)]
    time: Option<Nanos>,
    /// Most bytes to write; experiments that write more are left out [default: 1GiB on a device, 256GiB on a simulated card]
    #[arg(long, value_name = "SIZE")]
    writes: Option<Bytes>,
    /// Half of the interval, in per cent of the mean, at which a value is not repeated any more
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = percent)]
    within: f64,
    /// Most runs of a value
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(3..=100))]
    runs: u32,
    #[command(flatten)]
    chance: Chance,
    #[command(flatten)]
    allowed: Allowed,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    undoing: Undoing,
    /// Draw each experiment in the terminal
    #[arg(long)]
    details: bool,
    #[command(flatten)]
    result: Output,
    /// No progress and no plan
    #[arg(long, short)]
    quiet: bool,
}

fn percent(s: &str) -> Result<f64, String> {
    let number = s.trim_end_matches('%').parse().ok().filter(|x| (0.1..=50.0).contains(x));
    number.ok_or_else(|| format!("'{s}' is no percentage from 0.1 to 50"))
}

fn known(name: &str) -> Result<String, String> {
    chosen(&[name.to_string()]).map(|_| name.to_string())
}

pub fn run(a: UflipArgs) -> anyhow::Result<ExitCode> {
    let experiments = chosen(&a.only).map_err(super::misuse)?;
    let simulated = device::is_simulated(&a.target)?;
    let write = a.allowed.write(simulated);
    let mut opened = device::open(&a.target, &OpenOptions::default())?;
    let (facts, geometry) = (opened.facts().clone(), opened.geometry().clone());
    let region = a.part.of(&geometry)?;
    let room = region.end - region.start;
    if room < LEAST {
        bail!("the region has {}; uFLIP needs at least {}", Bytes(room), Bytes(LEAST));
    }
    if !write && a.state != Format::AsIs {
        return Err(super::misuse("--state writes the whole region: add --write"));
    }
    let undo = a.undoing.kept(write, simulated);
    let writes = if write { a.writes.map_or(if simulated { 256 * GIB } else { GIB }, |w| w.0) } else { 0 };
    let time = a.time.unwrap_or(Nanos::from_secs_f64(if simulated { 86_400.0 } else { 1800.0 }));
    if a.state != Format::AsIs && writes <= room {
        let why = format!("--state writes the region once, {}; allow that and the experiments with --writes", Bytes(room));
        return Err(super::misuse(why));
    }
    let stop = stop::on_signals(stop::Second::Ends)?;
    let signatures = if write && !simulated { opened.signatures()? } else { vec![] };
    let id = opened.id().clone();
    let dry = a.allowed.writing.dry.dry_run;
    let mut guard = if write && !dry {
        let consent = a.allowed.writing.named.check(&id)?;
        opened.writable(&consent, &Limits { region: Some(region.clone()), budget: writes, undo: undo.then(undo::default_dir) })?
    } else {
        opened.read_only()
    };
    stop::keeps(&guard);
    // What writes is left out where nothing may be written.
    let run: Vec<_> = experiments.iter().filter(|e| write || cost(e, plan::RUNS).1 == 0).collect();
    let count = match experiments.len() {
        n if n > run.len() => format!("{} of {n} experiments (the others write: --write)", run.len()),
        n => format!("{n} experiments"),
    };
    if !a.quiet || dry {
        let all = run.iter().map(|e| cost(e, plan::RUNS)).fold((0, 0), |s, c| (s.0 + c.0, s.1 + c.1));
        let can = if write { format!("writes {} of {}", about(writes.min(all.1)), about(all.1)) } else { "writes nothing".into() };
        tell!(
            "{}: {count}, {} accesses; at most {time} of the device's time; {can}, only in bytes {} to {}",
            a.target,
            all.0,
            region.start,
            region.end
        );
        match (write, undo) {
            (true, true) => tell!("the old content is kept in a journal and put back at the end"),
            (true, false) if !simulated => tell!("the old content is NOT put back"),
            _ => {}
        }
        signatures.iter().for_each(|s| tell!("the target holds: {s}"));
    }
    if dry {
        for e in run {
            let (n, bytes) = cost(e, plan::RUNS);
            say!("{:<8} {:<13} {:>2} values, {n} accesses, writes {}", e.code, e.vary.name(), e.values.len(), about(bytes));
        }
        return Ok(a.allowed.writing.dry.done(&id));
    }
    if let Some(dir) = &a.out {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    }
    let task = Task {
        region,
        format: a.state,
        only: &a.only,
        time,
        writes,
        write,
        within: a.within / 100.0,
        most_runs: a.runs,
        seed: a.chance.seed,
        stop: &stop,
    };
    let (_realtime, began) = ((!simulated).then(device::realtime), guard.now());
    let mut bar = Progress::experiments(a.quiet, None);
    let m = bench::run(&mut guard, &task, &mut |name, share| {
        bar.begin((share * 34.0) as usize, 34, name);
        bar.so_far(share);
    });
    bar.end();
    let back = Back::of(&mut guard);
    let m = m.map_err(|e| anyhow!(e))?;
    let cost = Cost::of(guard.counters(), (guard.now() - began).secs());
    let warnings = facts.caveats.clone();
    let value = form(
        SCHEMA,
        &serde_json::json!({
            "tool": Tool::this(),
            "target": id,
            "warnings": warnings,
            "measured": &m,
            "drifts": m.drifts(),
            "said": m.done.iter().map(|d| serde_json::json!({ "code": d.experiment.code, "text": say::sentence(d, &m) })).collect::<Vec<_>>(),
            "cost": cost,
        }),
    );
    if let Some(dir) = &a.out {
        files(dir, &a, &m, &warnings, geometry.size, facts.direct, &value)?;
    }
    if !a.result.write(&value)? {
        put!("{}", text(&a, experiments.len(), &m, &warnings, &cost));
    }
    let whole = back.tell()?;
    Ok(match m.done.is_empty() {
        _ if !whole => ExitCode::FAILURE,
        true => ExitCode::from(UNDECIDED),
        false => ExitCode::SUCCESS,
    })
}

fn files(
    dir: &Path,
    a: &UflipArgs,
    m: &Measured,
    warnings: &[String],
    size: u64,
    direct: bool,
    value: &serde_json::Value,
) -> anyhow::Result<()> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let mut notes: Vec<String> = warnings.iter().map(|w| format!("Warning: {w}")).collect();
    notes.extend(conditions(m));
    notes.extend(m.left_out.iter().map(|l| format!("left out: {}: {}", l.code, l.because)));
    let phases = m.phases.iter().filter(|p| p.times_us.len() > 1).map(|p| (say::phase(p), say::phase_figure(p)));
    let all: Vec<_> = phases.chain(m.done.iter().map(|d| (say::sentence(d, m), say::figure(d)))).collect();
    let page = figures_page(&format!("uFLIP: {}", a.target), &notes, &all);
    for (name, text) in [("RES.csv", res::file(m, size, &host, direct)), ("uflip.json", format!("{value}\n")), ("uflip.html", page)] {
        let path = dir.join(name);
        put(&path, &text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// What the results hold under.
fn conditions(m: &Measured) -> Vec<String> {
    let pause = match m.pause.slow_for_ms {
        None => format!("pause between runs {} ms; how long reads stay slow after writes was not measured", three(m.pause.ms)),
        Some(_) if m.pause.still_slow => {
            format!("pause between runs {} ms; reads were still slow then after random writes", three(m.pause.ms))
        }
        Some(s) => format!("pause between runs {} ms: reads were slow for {} ms after random writes", three(m.pause.ms), three(s)),
    };
    let depth = if m.one_at_a_time {
        "the target serves one request at a time: parallelism measures interleaved streams"
    } else {
        "the target serves several requests at a time: parallelism keeps one in flight for each stream"
    };
    let crowded = m.rows.iter().any(|r| r.crowded);
    let mut all = vec![res::state(m), pause, depth.to_string()];
    if let Some(s) = m.rest_s {
        all.push(format!("the time was short: rests before a baseline of {} s instead of 10 s", three(s)));
    }
    all.extend(m.drifts().iter().map(say::drift));
    if crowded {
        all.push("the region has too little room for fresh areas: some were used again".into());
    }
    all
}

fn text(a: &UflipArgs, planned: usize, m: &Measured, warnings: &[String], cost: &Cost) -> String {
    let width = super::width().min(100);
    let mut out = String::new();
    let mut add = |text: &str, indent: usize| {
        let mut rest = lines(text, width.saturating_sub(indent)).into_iter();
        out += &format!("{}\n", rest.next().unwrap_or_default());
        rest.for_each(|l| out += &format!("{:indent$}{l}\n", ""));
    };
    add(&format!("{}: {} of {planned} experiments", a.target, m.done.len()), 2);
    warnings.iter().for_each(|w| add(&format!("Warning: {w}"), 2));
    conditions(m).iter().for_each(|c| add(&format!("- {c}"), 2));
    m.phases.iter().for_each(|p| add(&format!("- {}", say::phase(p)), 2));
    out.push('\n');
    for d in &m.done {
        let mut rest = lines(&say::sentence(d, m), width.saturating_sub(10)).into_iter();
        out += &format!("{:<9} {}\n", d.experiment.code, rest.next().unwrap_or_default());
        rest.for_each(|l| out += &format!("{:10}{l}\n", ""));
        let mut left: Vec<&str> = d.left_out.iter().map(|l| l.1.as_str()).collect();
        left.dedup();
        for why in left {
            let n = d.left_out.iter().filter(|l| l.1 == why).count();
            out += &format!("{:10}values left out: {n}, {why}\n", "");
        }
        if a.details {
            braille(&say::figure(d), width, 8).iter().for_each(|l| out += &format!("{l}\n"));
            out.push('\n');
        }
    }
    if !m.left_out.is_empty() {
        out += "\nLeft out\n";
    }
    for l in &m.left_out {
        let why = format!("{} (about {} s, writes {})", l.because, three(l.seconds), about(l.bytes));
        let mut rest = lines(&why, width.saturating_sub(10)).into_iter();
        out += &format!("{:<9} {}\n", l.code, rest.next().unwrap_or_default());
        rest.for_each(|l| out += &format!("{:10}{l}\n", ""));
    }
    if let Some(e) = &m.ended {
        out += &format!("\nended early: {e}\n");
    }
    if let Some(dir) = &a.out {
        out += &format!("\n{}: RES.csv ({} rows), uflip.json, uflip.html\n", dir.display(), m.rows.len());
    }
    let (read, written) = (about(cost.bytes_read), about(cost.bytes_written));
    out + &format!("\n{read} read, {written} written; {:.0} s of the device's time\n", cost.seconds)
}
