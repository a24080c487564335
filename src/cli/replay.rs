//! `nandscope replay TRACE TARGET`: the requests of a trace on a real or simulated target, each timed.

use super::args::{Part, Undoing, Writing};
use super::back::Back;
use super::progress::Progress;
use super::stop;
use super::trace_file::{self, TraceArgs};
use super::{form, write_json, write_text};
use crate::device::{self, Access, Device, DeviceError, Fill, Guard, Limits, OpenOptions, Timed, undo};
use crate::units::{Bytes, GIB, Nanos, about, rate, three};
use anyhow::{Context, bail};
use clap::Args;
use nandscope_sim::Op;
use nandscope_sim::run::place;
use nandscope_sim::trace::Io;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// Version of the JSON that `--json` writes.
const SCHEMA: &str = "nandscope-replay/1";

/// Accesses sent at once where several are under way: few enough that Ctrl-C is soon heard.
const AT_ONCE: usize = 1024;

#[derive(Args)]
pub struct ReplayArgs {
    /// A trace of requests, in any format that `nandscope sim` reads; '-' reads standard input. Byte 0 of the trace is the first
    /// byte of the region
    trace: PathBuf,
    /// /dev/..., an image file, sim:NAME, a card model PATH.toml, "exec:COMMAND ARGS" or serial:PORT
    #[arg(value_parser = super::target)]
    target: String,
    /// Write one line for each request to this file: start and duration in ns, op, first byte, length in bytes; '-': standard output
    #[arg(long, value_name = "MEASURED.tsv")]
    out: Option<PathBuf>,
    #[command(flatten)]
    reading: TraceArgs,
    #[command(flatten)]
    writing: Writing,
    #[command(flatten)]
    part: Part,
    /// Send each request at its time in the trace, not when the one before is done
    #[arg(long, conflicts_with = "queue")]
    as_recorded: bool,
    /// Requests under way at the same time, 1 to 32
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=32))]
    queue: u32,
    /// How many requests [default: all of the trace]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Most bytes to write [default: 1GiB on a device, 8GiB on a simulated card]
    #[arg(long, value_name = "SIZE")]
    writes: Option<Bytes>,
    #[command(flatten)]
    undoing: Undoing,
    /// Seed of the bytes that are written
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write a summary as JSON to file F, or to standard output where F is missing or '-'
    #[arg(long, value_name = "F", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// No progress and no plan
    #[arg(long, short)]
    quiet: bool,
}

/// What was measured.
#[derive(Serialize)]
struct Summary {
    version: &'static str,
    target: String,
    trace: String,
    requests: usize,
    /// Requests of the trace.
    of: usize,
    queue: u32,
    bytes_read: u64,
    bytes_written: u64,
    /// From the first request to the end of the last one.
    seconds: f64,
    bytes_per_second: f64,
    interrupted: bool,
    /// Why it ended before its time.
    failed: Option<String>,
}

pub fn run(a: ReplayArgs) -> anyhow::Result<ExitCode> {
    let stdout = |p: &Option<PathBuf>| p.as_ref().is_some_and(|p| p.as_os_str() == "-");
    if stdout(&a.out) && stdout(&a.json) {
        return Err(super::misuse("standard output takes one of --out and --json; give the other a file"));
    }
    let name = a.trace.display().to_string();
    let mut trace = a.reading.load(&a.trace)?;
    trace.ios.truncate(a.requests.unwrap_or(u64::MAX).try_into().unwrap_or(usize::MAX));
    if a.as_recorded && !trace.timed {
        tell!("nandscope: {name} has no times but its waits");
    }
    if trace.bad > 0 {
        let bad = trace.shown.first().map_or(String::new(), |b| format!(", the first is line {}: {}", b.line, b.reason));
        tell!("nandscope: {} lines of {name} cannot be read and are left out{bad}; --strict stops there", trace.bad);
    }
    let simulated = device::is_simulated(&a.target)?;
    let writing = trace.ios.iter().any(|io| matches!(io.op, Op::Write | Op::Discard));
    let dry = a.writing.dry.dry_run;
    if writing && !simulated && !a.writing.write && !dry {
        return Err(DeviceError::Refused(format!("{name} holds writes; allow them with --write")).into());
    }
    let mut opened = device::open(&a.target, &OpenOptions::default())?;
    let geometry = opened.geometry().clone();
    let region = a.part.of(&geometry)?;
    let fit = a.reading.fit(&trace, &region)?;
    let all: Vec<(Access, u64)> = trace
        .ios
        .iter()
        .map(|io| {
            let (at, len, _) = place(io, &region, fit, geometry.sector);
            let op = match io.op {
                Op::Read => device::Op::Read,
                Op::Write => device::Op::Write(Fill::Random(a.seed)),
                Op::Discard => device::Op::Discard,
                Op::Flush => device::Op::Flush,
            };
            let (at, len) = if io.op == Op::Flush { (0, 0) } else { (at, len) };
            (Access { op, at, len }, io.time)
        })
        .collect();
    let inside = |x: &Access| x.at >= region.start && x.at.checked_add(x.len).is_some_and(|e| e <= region.end);
    if let Some(i) = all.iter().position(|x| x.0.op != device::Op::Flush && !inside(&x.0)) {
        let x = all[i].0;
        bail!(
            "request {} of {name} ({} of {} bytes at {}) leaves the region {} to {}",
            i + 1,
            x.op.name(),
            x.len,
            x.at,
            region.start,
            region.end
        );
    }
    let bytes = |write: bool| all.iter().filter(|x| matches!(x.0.op, device::Op::Write(_)) == write).map(|x| x.0.len).sum::<u64>();
    let (writes, budget) = (bytes(true), a.writes.map_or(if simulated { 8 * GIB } else { GIB }, |w| w.0));
    if writes > budget {
        let why = format!(
            "{name} writes {}, {} are allowed; allow more with --writes, or take fewer with --requests",
            about(writes),
            Bytes(budget)
        );
        return Err(DeviceError::Refused(why).into());
    }
    let undo = a.undoing.kept(writing, simulated);
    let signatures = if writing && !simulated { opened.signatures()? } else { vec![] };
    let stop = stop::on_signals(stop::Second::Ends)?;
    let mut guard = if writing && !dry {
        let consent = a.writing.named.check(opened.id())?;
        opened.writable(&consent, &Limits { region: Some(region.clone()), budget, undo: undo.then(undo::default_dir) })?
    } else {
        opened.read_only()
    };
    stop::keeps(&guard);
    if !a.quiet || dry {
        let what = if writing { format!("will write {}, only in", about(writes)) } else { "will write nothing; reads".into() };
        tell!("{}: {} requests of {name}; {what} bytes {} to {}", a.target, all.len(), region.start, region.end);
        if undo {
            tell!("the old content is kept in a journal and put back at the end");
        } else if writing && !simulated {
            tell!("the old content is NOT put back");
        }
        signatures.iter().for_each(|s| tell!("the target holds: {s}"));
    }
    if dry {
        return Ok(a.writing.dry.done(guard.id()));
    }
    if undo {
        // No work of the journal may fall between two requests.
        guard.keep_old(&changed(&all)).context("the old content cannot be kept; nothing was written")?;
    }
    let mut bar = Progress::steps("replaying", all.len() as u64, a.quiet);
    let (times, failed) = replay(&mut guard, &all, &a, &stop, &mut bar);
    bar.end();
    let back = Back::of(&mut guard);
    let origin = times.first().map_or(0, |t| t.start.0);
    let mut lines = trace_file::HEAD.to_string();
    for ((x, _), t) in all.iter().zip(&times) {
        let io = Io { time: t.start.0.saturating_sub(origin), op: Op::Flush, at: x.at, len: x.len, took: t.took.0 };
        trace_file::line(&mut lines, &device::trace::word(x.op), &io);
    }
    let mut printed = match &a.out {
        Some(path) => write_text(path, &lines)?,
        None => false,
    };
    let done = |write: bool| -> u64 {
        let all = all.iter().take(times.len());
        all.filter(|x| if write { matches!(x.0.op, device::Op::Write(_)) } else { x.0.op == device::Op::Read }).map(|x| x.0.len).sum()
    };
    let end = times.iter().map(|t| t.start.0 + t.took.0).max().unwrap_or(origin);
    let (seconds, interrupted) = ((end - origin) as f64 / 1e9, stop.load(Ordering::Relaxed));
    let s = Summary {
        version: env!("CARGO_PKG_VERSION"),
        target: a.target.clone(),
        trace: name.clone(),
        requests: times.len(),
        of: all.len(),
        queue: a.queue,
        bytes_read: done(false),
        bytes_written: done(true),
        seconds,
        bytes_per_second: (done(false) + done(true)) as f64 / seconds.max(1e-9),
        interrupted,
        failed: failed.as_ref().map(ToString::to_string),
    };
    printed |= write_json(a.json.as_deref(), &form(SCHEMA, &s))?;
    if !printed {
        let fast = if s.seconds > 0.0 { rate(s.bytes_per_second) } else { "no rate: the target took no time".into() };
        say!(
            "{}: {} requests in {} s of the target's time: {} read, {} written, {fast}",
            s.target,
            s.requests,
            three(s.seconds),
            about(s.bytes_read),
            about(s.bytes_written),
        );
    }
    let whole = back.tell()?;
    if let Some(e) = failed {
        return Err(anyhow::Error::from(e).context(format!(
            "request {} of {name} failed, {} were measured before",
            times.len() + 1,
            times.len()
        )));
    }
    if interrupted {
        tell!("nandscope: interrupted after {} of {} requests", times.len(), all.len());
    }
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What the requests write or discard, in order and without overlaps.
fn changed(all: &[(Access, u64)]) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> =
        all.iter().filter(|x| matches!(x.0.op, device::Op::Write(_) | device::Op::Discard)).map(|x| (x.0.at, x.0.len)).collect();
    ranges.sort_unstable();
    let mut out: Vec<(u64, u64)> = vec![];
    for (at, len) in ranges {
        match out.last_mut() {
            Some((a, l)) if at <= *a + *l => *l = (*l).max(at + len - *a),
            _ => out.push((at, len)),
        }
    }
    out
}

/// Sends the requests; the times of those that were served, and what ended it.
fn replay(
    guard: &mut Guard,
    all: &[(Access, u64)],
    a: &ReplayArgs,
    stop: &AtomicBool,
    bar: &mut Progress,
) -> (Vec<Timed>, Option<DeviceError>) {
    let mut times: Vec<Timed> = Vec::with_capacity(all.len());
    let origin = guard.now();
    for part in all.chunks(if a.queue > 1 { AT_ONCE } else { 1 }) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        if a.as_recorded {
            let due = Nanos(origin.0.saturating_add(part[0].1));
            let now = guard.now();
            if due > now {
                guard.idle(due - now);
            }
        }
        let done = match part {
            [one] => guard.access(one.0).map(|t| vec![t]),
            _ => guard.batch(&part.iter().map(|x| x.0).collect::<Vec<_>>(), a.queue),
        };
        match done {
            Ok(t) => times.extend(t),
            Err(e) => return (times, Some(e)),
        }
        bar.at(times.len() as u64);
    }
    (times, None)
}
