//! `nandscope bench TARGET...`: the record benchmark of SdFat on a file, and what follows from its stalls.

use super::{colour, width};
use crate::device::{self, CardState, Consent, DeviceError, Limits, Machine, OpenOptions};
use crate::experiment::Figure;
use crate::host::ticks::Queue;
use crate::infer::buffer::answer;
use crate::report::bench::{Bench, SCHEMA, busy, histogram, summary, timeline};
use crate::report::svg;
use crate::units::{Bytes, Nanos, parse_duration, rate};
use crate::volume::{Cache, Directory, FatVolume, Format, Host, Shared, Volume};
use crate::workload::library::Library;
use crate::workload::records::{Plan, Sync, run};
use crate::workload::traced::Traced;
use crate::workload::volume_file::{NAME, VolumeFile};
use crate::workload::{BenchFile, WorkloadError};
use anyhow::{Context, bail};
use clap::Args;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

#[derive(Args)]
#[command(after_help = AFTER)]
pub struct BenchArgs {
    /// A directory of a mounted card, an image file or device with a FAT volume, sim:NAME or sim:NAME?host=HOST
    #[arg(required = true, value_name = "TARGET")]
    targets: Vec<String>,
    /// Bytes of a record; several sizes are run one after the other
    #[arg(long, value_name = "SIZE", value_delimiter = ',', default_value = "100,512")]
    record: Vec<Bytes>,
    /// Size of the file
    #[arg(long, value_name = "SIZE", default_value = "5MB")]
    file: Bytes,
    /// Passes of writing, then as many of reading
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    passes: u32,
    /// Set room for the whole file aside before writing
    #[arg(long)]
    preallocate: bool,
    /// Count the first call of a pass in longest and shortest, too
    #[arg(long)]
    count_first: bool,
    /// When to bring data to the medium: never, end, or after every so many records (1 = each)
    #[arg(long, default_value = "end", value_parser = parse_sync)]
    sync: Sync,
    /// Write only
    #[arg(long)]
    no_read: bool,
    /// Write over and over for this long, on the target's own clock
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    until: Option<Nanos>,
    /// Rate of a logger, a second, to size a buffer for; may be repeated [default: a quarter and three quarters of what was measured]
    #[arg(long, value_name = "SIZE")]
    log: Vec<Bytes>,
    /// GB in which that logger may lose less than once [default: what the data can carry]
    #[arg(long, value_name = "GB")]
    loss_gb: Option<f64>,
    /// Times writes of these sizes instead of records, for the best size of a call (C22): a list, or 'sweep'
    #[arg(long, value_name = "SIZES")]
    chunks: Option<String>,
    /// Formats a simulated card with clusters of this size; several are run one after the other
    #[arg(long, value_name = "SIZE", value_delimiter = ',')]
    cluster: Vec<Bytes>,
    /// Writes the busy times after each block to this file, in ChaN's form ('-': standard output); a simulated card can tell
    #[arg(long, value_name = "F")]
    busy: Option<PathBuf>,
    /// Writes the plots to this directory as SVG
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// What the card went through before, for the report: fresh, erased, filled, aged
    #[arg(long, value_name = "STATE")]
    state: Option<CardState>,
    /// Price of the card, in the order of the targets, for speed per price
    #[arg(long, value_name = "PRICE")]
    price: Vec<f64>,
    /// Allow writing the file on anything that is not simulated
    #[arg(long)]
    write: bool,
    /// Names the device to be written, where the target is one; `nandscope list` prints it
    #[arg(long, value_name = "ID")]
    consent: Option<String>,
    /// Write everything measured to a file, or to standard output with '-'
    #[arg(long, value_name = "F")]
    json: Option<PathBuf>,
    /// No progress and no plots
    #[arg(long, short)]
    quiet: bool,
}

const AFTER: &str = "\
A record that does not fill a sector waits in a buffer; one in every few then pays for a sector, and some pay for work the card
puts off: pages much larger than a sector, of which the rest is dead until erased; blocks that are collected and rewritten (an
erase block of 256 KiB takes up to 0.2 s); data that never change, moved so that all blocks wear alike. Cards of three bits a
cell are made for long writes in one piece.

A simulated card on a microcontroller (?host=avr-16mhz-spi, atmega64-9mhz-spi, rp2040-spi, esp32-spi) is used through a file
library with one sector of memory, as SdFat and FatFs have; any other through a FAT volume made for the occasion.
The file is NSBENCH.DAT; it is deleted at the end.";

fn parse_sync(s: &str) -> Result<Sync, String> {
    match s {
        "never" => Ok(Sync::Never),
        "end" => Ok(Sync::End),
        n => {
            n.parse().ok().filter(|n| *n > 0).map(Sync::Every).ok_or_else(|| format!("'{n}' is neither never, end nor a number of records"))
        }
    }
}

fn sync_text(s: Sync) -> String {
    match s {
        Sync::Never => "never synced".into(),
        Sync::End => "synced at the end".into(),
        Sync::Every(1) => "synced after each".into(),
        Sync::Every(n) => format!("synced after every {n}"),
    }
}

pub fn run_bench(a: BenchArgs) -> anyhow::Result<ExitCode> {
    check(&a)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let sizes = match &a.chunks {
        None => a.record.iter().map(|b| b.0).collect(),
        Some(list) => chunks(list)?,
    };
    let clusters: Vec<Option<u64>> = if a.cluster.is_empty() { vec![None] } else { a.cluster.iter().map(|c| Some(c.0)).collect() };
    let mut all: Vec<Bench> = vec![];
    let mut trace = crate::samples::busy::Trace::default();
    for (i, target) in a.targets.iter().enumerate() {
        for &cluster in &clusters {
            for &record in &sizes {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let mut b = one(&a, target, record, cluster, &stop, &mut trace).with_context(|| format!("bench of {target}"))?;
                b.price = a.price.get(i).copied();
                if a.chunks.is_none() && a.json.as_deref() != Some(Path::new("-")) && a.busy.as_deref() != Some(Path::new("-")) {
                    if !all.is_empty() {
                        say!();
                    }
                    put!("{}", b.text(width(), !a.quiet));
                }
                all.push(b);
            }
        }
    }
    save(&a, &all, &trace)?;
    if stop.load(Ordering::Relaxed) {
        eprintln!("nandscope: interrupted; what is printed was measured until then");
    }
    Ok(ExitCode::SUCCESS)
}

fn check(a: &BenchArgs) -> anyhow::Result<()> {
    let bad = |what: &str| Err(DeviceError::OutOfBounds(what.into()).into());
    if a.record.iter().any(|r| r.0 == 0 || r.0 > 64 << 20) {
        return bad("a record has 1 byte to 64 MiB");
    }
    if a.record.iter().any(|r| r.0 > a.file.0) || a.file.0 > 4_000_000_000 {
        return bad("the file must hold a record, and 4 GB at most (FAT); --for writes it over and over");
    }
    if a.log.iter().any(|r| r.0 == 0) || a.loss_gb.is_some_and(|g| !(g > 0.0 && g <= 1e6)) {
        return bad("--log and --loss-gb take numbers above 0");
    }
    if a.price.iter().any(|p| !(p.is_finite() && *p > 0.0)) {
        return bad("a price is a number above 0");
    }
    Ok(())
}

/// Sizes of calls to compare.
fn chunks(list: &str) -> anyhow::Result<Vec<u64>> {
    if list == "sweep" {
        return Ok((9..=17).map(|k| 1 << k).collect());
    }
    let mut out = vec![];
    for part in list.split(',') {
        let size = part.parse::<Bytes>().map_err(anyhow::Error::msg)?.0;
        if size == 0 || size > 64 << 20 {
            bail!("'{part}': a chunk has 1 byte to 64 MiB");
        }
        out.push(size);
    }
    Ok(out)
}

/// One target at one record size.
fn one(
    a: &BenchArgs,
    target: &str,
    record: u64,
    cluster: Option<u64>,
    stop: &AtomicBool,
    trace: &mut crate::samples::busy::Trace,
) -> anyhow::Result<Bench> {
    let plan = Plan {
        record,
        file: a.file.0.max(record),
        passes: a.passes,
        reserve: a.preallocate,
        skip_first: !a.count_first,
        sync: a.sync,
        read: !a.no_read,
        until: None,
    };
    let simulated = target.starts_with("sim:");
    if !simulated && !a.write {
        return Err(DeviceError::Refused(format!("bench writes a file of {} to {target}; allow it with --write", Bytes(plan.file))).into());
    }
    let mut b = Bench {
        target: target.into(),
        host: String::new(),
        state: a.state.unwrap_or_default(),
        record,
        file: plan.file,
        sync: sync_text(a.sync),
        passes: vec![],
        answers: vec![],
        notes: vec![],
        price: None,
    };
    let mut bar = Progress::new(a.quiet, format!("{target}, {record} B"));
    if !simulated && Path::new(target).is_dir() {
        if cluster.is_some() {
            bail!("--cluster formats, which is done to simulated cards only");
        }
        let mut volume = Directory::open(Path::new(target)).map_err(WorkloadError::from)?;
        let device = volume.mount().map(|m| m.dev);
        b.host = format!("by the kernel's {}", volume.filesystem());
        eprintln_plan(a, &format!("writes {} {} to {target}, and deletes it", Bytes(plan.file), NAME));
        let queue = device.and_then(Queue::of);
        let (before, begun) = (queue.as_ref().and_then(Queue::read), Instant::now());
        on_volume(&mut volume, &plan, a, stop, &mut bar, &mut b)?;
        if let (Some(q), Some(before)) = (&queue, before) {
            b.notes.extend(q.since(before, begun.elapsed().as_nanos() as u64));
        }
        if a.sync != Sync::Every(1) {
            b.notes.push("the kernel's page cache takes records; --sync 1 times each one to the medium".into());
        }
    } else {
        // The in-process volume reads back what it wrote.
        let content =
            if simulated { format!("{target}{}content", if target.contains('?') { '&' } else { '?' }) } else { target.to_string() };
        let machine = if simulated { device::open(target, &OpenOptions::default())?.machine() } else { None };
        let opened = device::open(if machine.is_some() { target } else { &content }, &OpenOptions::default())?;
        b.state = a.state.unwrap_or(opened.state());
        let size = opened.geometry().size;
        let consent = Consent::check(opened.id(), a.consent.as_deref())?;
        // Records that share a sector write it more than once, and each cluster costs a little of the FAT.
        let once = plan.file.saturating_mul(u64::from(plan.passes)).saturating_mul(match (a.sync, plan.record) {
            (Sync::Every(_), _) => 64,
            (_, ..512) => 8,
            _ => 2,
        });
        let budget = if a.until.is_some() || simulated { u64::MAX } else { once.saturating_add(256 << 20) };
        let mut guard = opened.writable(&consent, &Limits { region: None, budget, undo: None })?;
        match machine {
            Some(m) => on_library(&mut guard, m, &plan, a, stop, &mut bar, &mut b, trace)?,
            None => {
                let host = Host::with(Cache { meta: usize::MAX, data: 1, direct: true, write_back: true });
                let device = Shared::new(guard);
                let boxed = Box::new(device.clone());
                let mut volume = if simulated {
                    let cluster = cluster.map(u32::try_from).transpose().context("a cluster that large")?;
                    FatVolume::format(boxed, 0..size.min(1 << 40), &Format { cluster, kind: None }, host)
                } else {
                    if cluster.is_some() {
                        bail!("--cluster formats, which is done to simulated cards only");
                    }
                    FatVolume::mount(boxed, 0..size, host)
                }
                .map_err(WorkloadError::from)?;
                let space = volume.space().map_err(WorkloadError::from)?;
                b.host = format!("{} in-process, clusters of {}", volume.filesystem(), Bytes(space.cluster));
                eprintln_plan(a, &format!("writes {} {} to {target}, and deletes it", Bytes(plan.file), NAME));
                on_volume(&mut volume, &plan, a, stop, &mut bar, &mut b)?;
                volume.finish().map_err(WorkloadError::from)?;
            }
        }
    }
    bar.end();
    if a.chunks.is_none() {
        logger(a, &mut b);
    }
    Ok(b)
}

/// What will be written, where that is not to a simulated card.
fn eprintln_plan(a: &BenchArgs, text: &str) {
    if !a.quiet && !a.targets.iter().all(|t| t.starts_with("sim:")) {
        eprintln!("{text}");
    }
}

fn timed(plan: &Plan, a: &BenchArgs, now: Nanos) -> Plan {
    Plan { until: a.until.map(|d| now + d), ..plan.clone() }
}

fn on_volume(
    volume: &mut dyn Volume,
    plan: &Plan,
    a: &BenchArgs,
    stop: &AtomicBool,
    bar: &mut Progress,
    b: &mut Bench,
) -> anyhow::Result<()> {
    let free = volume.space().map_err(WorkloadError::from)?.free;
    if free < plan.file + (1 << 20) {
        bail!("only {} are free; give a smaller --file", Bytes(free));
    }
    let mut file = VolumeFile::new(volume, plan.record)?;
    let plan = timed(plan, a, file.now());
    let done = run(&mut file, &plan, stop, &mut |n, of, x| bar.tick(n, of, x));
    let gone = file.delete();
    b.passes = done?;
    gone?;
    Ok(())
}

#[allow(clippy::too_many_arguments)]
fn on_library(
    guard: &mut device::Guard,
    machine: Machine,
    plan: &Plan,
    a: &BenchArgs,
    stop: &AtomicBool,
    bar: &mut Progress,
    b: &mut Bench,
    trace: &mut crate::samples::busy::Trace,
) -> anyhow::Result<()> {
    if !a.cluster.is_empty() {
        bail!("--cluster is for cards without a host profile; a microcontroller finds the card as the SD formatter leaves it");
    }
    let mut traced = Traced::new(guard, if a.busy.is_some() { machine.poll } else { Nanos(0) });
    let mut file = Library::new(&mut traced, machine);
    b.host = format!("{}, clusters of {}", machine.name, Bytes(file.layout().cluster));
    let plan = timed(plan, a, file.now());
    b.passes = run(&mut file, &plan, stop, &mut |n, of, x| bar.tick(n, of, x))?;
    if a.busy.is_some() {
        trace.poll_ns = Some(machine.poll.0);
        trace.transactions.append(&mut traced.transactions);
    }
    Ok(())
}

/// "To log R kB/s with less than one loss in X GB you need B of buffer."
fn logger(a: &BenchArgs, b: &mut Bench) {
    let Some(p) = b.passes.iter().find(|p| p.write) else { return };
    let most = p.bytes() as f64 * 1e9 / p.total.0.max(1) as f64;
    let rates: Vec<f64> = if a.log.is_empty() { vec![most / 4.0, most * 0.75] } else { a.log.iter().map(|r| r.0 as f64).collect() };
    // Three GB carry a statement on one.
    let gb = a.loss_gb.unwrap_or(p.bytes() as f64 / 3.0e9);
    b.answers = rates.iter().map(|&r| answer(p, r, gb)).collect();
}

fn save(a: &BenchArgs, all: &[Bench], trace: &crate::samples::busy::Trace) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    let dash = |p: &PathBuf| p.as_os_str() == "-";
    if let Some(f) = &a.busy {
        if trace.transactions.is_empty() {
            bail!("only a simulated card on a microcontroller tells how long it is busy; use sim:NAME?host=avr-16mhz-spi");
        }
        let text = trace.print();
        if dash(f) {
            out.write_all(text.as_bytes())?
        } else {
            std::fs::write(f, text).with_context(|| format!("cannot write {}", f.display()))?
        }
    }
    if let Some(dir) = &a.svg {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let put = |name: String, f: &Figure| {
            let path = dir.join(name);
            std::fs::write(&path, svg::file(f)).with_context(|| format!("cannot write {}", path.display()))
        };
        for b in all {
            let card: String = b.target.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
            for p in &b.passes {
                let head = format!("{card}-{}-{}", b.record, if p.write { "write" } else { "read" });
                put(format!("{head}-histogram.svg"), &histogram(p))?;
                put(format!("{head}-timeline.svg"), &timeline(p))?;
            }
        }
        if !trace.transactions.is_empty() {
            put("busy.svg".into(), &busy(trace))?;
        }
    }
    let quiet = a.json.as_ref().is_some_and(dash) || a.busy.as_ref().is_some_and(dash);
    if a.chunks.is_some() && !quiet {
        write!(out, "{}", chunk_table(all))?;
    } else if all.len() > 1 && !quiet {
        write!(out, "\n{}", summary(all))?;
    }
    if let Some(f) = &a.json {
        let value = serde_json::json!({ "schema": SCHEMA, "benches": all.iter().map(Bench::json).collect::<Vec<_>>() });
        if dash(f) {
            writeln!(out, "{value}")?;
        } else {
            std::fs::write(f, format!("{value}\n")).with_context(|| format!("cannot write {}", f.display()))?;
        }
    }
    let _ = colour(&out);
    Ok(())
}

/// Share of the best rate that is enough.
const ENOUGH: f64 = 0.9;

/// Rate against the size of a call, and the smallest that is enough (C22, C23).
fn chunk_table(all: &[Bench]) -> String {
    let mut out = String::from("| target | files | chunk | write | read |\n|---|---|---|---|---|\n");
    let speed = |b: &Bench, write: bool| b.passes.iter().find(|p| p.write == write).map(|p| p.speed());
    for b in all {
        let cell = |x: Option<f64>| x.map_or("-".into(), |x| rate(x * 1e3));
        out += &format!("| {} | {} | {} | {} | {} |\n", b.target, b.host, Bytes(b.record), cell(speed(b, true)), cell(speed(b, false)));
    }
    let mut seen: Vec<(&str, &str)> = vec![];
    for b in all {
        if seen.contains(&(&b.target, &b.host)) {
            continue;
        }
        seen.push((&b.target, &b.host));
        let same: Vec<&Bench> = all.iter().filter(|o| o.target == b.target && o.host == b.host).collect();
        let best = same.iter().filter_map(|b| speed(b, true)).fold(0.0, f64::max);
        let mut by_size: Vec<&&Bench> = same.iter().filter(|b| speed(b, true).is_some_and(|s| s >= ENOUGH * best)).collect();
        by_size.sort_by_key(|b| b.record);
        if let (Some(knee), true) = (by_size.first(), same.len() > 1) {
            let last = same.iter().map(|b| b.record).max() == Some(knee.record);
            out += &format!(
                "{}, {}: write {} at a time, that gives {:.0} % of the best rate{}\n",
                b.target,
                b.host,
                Bytes(knee.record),
                100.0 * speed(knee, true).unwrap_or(0.0) / best.max(1e-9),
                if last { "; larger calls may give more" } else { "" }
            );
        }
    }
    out
}

/// One line that moves on a terminal, once anything takes longer than two seconds.
struct Progress {
    bar: Option<indicatif::ProgressBar>,
    begun: Instant,
    name: String,
    shown: bool,
}

impl Progress {
    fn new(quiet: bool, name: String) -> Progress {
        let on = !quiet && std::io::stderr().is_terminal();
        let bar = on.then(|| {
            let b = indicatif::ProgressBar::hidden();
            b.set_length(1000);
            b.set_style(
                indicatif::ProgressStyle::with_template("{msg} {bar:30} {eta} left")
                    .unwrap_or_else(|_| indicatif::ProgressStyle::default_bar()),
            );
            b
        });
        Progress { bar, begun: Instant::now(), name, shown: false }
    }

    fn tick(&mut self, pass: u32, of: u32, share: f64) {
        let Some(bar) = &self.bar else { return };
        if !self.shown && self.begun.elapsed().as_secs() >= 2 {
            bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
            bar.set_message(self.name.clone());
            self.shown = true;
        }
        if self.shown {
            bar.set_position(((f64::from(pass) + share) / f64::from(of.max(1)) * 1000.0).min(1000.0) as u64);
        }
    }

    fn end(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
