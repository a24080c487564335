//! `nandscope ab`: one thing changed, everything else alike; says whether it makes a difference, and how large a one.

use super::args::{Measuring, Output, Part, Undoing, Writing};
use super::back::Back;
use super::progress::Progress;
use super::stop;
use super::{FAILING, UNDECIDED};
use crate::ab::{self, Kept, Load, Plan, Setting};
use crate::device::{self, CardState, Device, DeviceError, Limits, OpenOptions, undo};
use crate::host::facts::TargetKind;
use crate::host::queue::Queue;
use crate::infer::ab::{Effect, LEAST_PAIRS, Verdict, compare};
use crate::report::Cost;
use crate::report::terminal::size;
use crate::samples::{Ended, Run};
use crate::saved::Tool;
use crate::units::{Bytes, Nanos, about, three};
use anyhow::{Context, bail};
use clap::Args;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

const AFTER: &str = "\
A setting is 'default', or one or several of these with commas between:
  split=8KiB          writes are cut at multiples of 8 KiB before they are sent
  queue=on|off|N      accesses in flight: 32, 1, or N. Where the kernel drives the card's own queue it is used by them
  cache=on|off        the volatile write cache of an eMMC, or of a simulated card
  cmd23=on|off        writes announce their length (CMD23 and CMD25), or are ended by CMD12: raw MMC commands
  discard=on|off      the place is discarded before each trial, and at the end 4 KiB amid what was written
  scheduler=NAME, max_sectors_kb=N, nr_requests=N, read_ahead_kb=N
                      settings of the kernel's queue, put back at the end (root, block devices)

Examples:
  nandscope ab sim:toshiba-emmc --a default --b split=8KiB --load unaligned
  nandscope ab sim:modern-a2-128gb --a queue=off --b queue=on --load random --size 4KiB
  nandscope ab /dev/sdb --a max_sectors_kb=64 --b max_sectors_kb=512 --load read --size 512KiB";

#[derive(Args)]
#[command(after_help = AFTER)]
#[command(mut_arg("time", |a| a.help("Most time for the measurement [default: 5m on a device, 2h of virtual time on a simulated card]")))]
pub struct AbArgs {
    /// /dev/..., an image file, sim:NAME, a card model PATH.toml, "exec:COMMAND ARGS" or serial:PORT
    #[arg(value_parser = super::target)]
    target: String,
    /// The first setting
    #[arg(long, value_name = "SETTING", default_value = "default")]
    a: Setting,
    /// The other one
    #[arg(long, value_name = "SETTING")]
    b: Setting,
    /// What the trials do: unaligned, linear (sequential), random (writes) or read
    #[arg(long, default_value = "unaligned")]
    load: Load,
    /// Size of one access (not of unaligned ones: those have 1 to 24 sectors)
    #[arg(long, default_value = "64KiB", value_parser = access_size)]
    size: Bytes,
    /// Accesses of a trial
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=4096))]
    count: u64,
    /// Pairs of trials
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(LEAST_PAIRS as i64..=1000))]
    pairs: u32,
    /// Share of comparisons of equal settings that may be called different
    #[arg(long, default_value_t = 0.05, value_parser = share)]
    alpha: f64,
    /// A difference, in per cent, that does not matter
    #[arg(long, value_name = "PERCENT", default_value_t = 3.0, value_parser = percent)]
    margin: f64,
    #[command(flatten)]
    writing: Writing,
    #[command(flatten)]
    measuring: Measuring,
    #[command(flatten)]
    part: Part,
    /// What the card went through before; only noted in the result: fresh, erased, filled, aged [default: unknown; of a simulated card its model's]
    #[arg(long, value_name = "STATE")]
    state: Option<CardState>,
    #[command(flatten)]
    undoing: Undoing,
    #[command(flatten)]
    out: Output,
    /// No progress and no plan
    #[arg(long, short)]
    quiet: bool,
}

fn access_size(s: &str) -> Result<Bytes, String> {
    let size: Bytes = s.parse()?;
    if size.0 == 0 { Err("an access of nothing takes no time: give a sector or more".into()) } else { Ok(size) }
}

fn share(s: &str) -> Result<f64, String> {
    s.parse().ok().filter(|x| (0.001..=0.5).contains(x)).ok_or_else(|| format!("'{s}' is no share from 0.001 to 0.5"))
}

fn percent(s: &str) -> Result<f64, String> {
    s.trim_end_matches('%')
        .parse()
        .ok()
        .filter(|x| (0.01..=100.0).contains(x))
        .ok_or_else(|| format!("'{s}' is no percentage from 0.01 to 100"))
}

pub fn run(a: AbArgs) -> anyhow::Result<ExitCode> {
    let simulated = device::is_simulated(&a.target)?;
    let settings = [a.a.clone(), a.b.clone()];
    let [(first, idle), (second, more)] = settings.each_ref().map(|s| s.acting(a.load, a.size.0));
    idle.iter().chain(&more).for_each(|i| tell!("nandscope: {i}"));
    if first == second {
        tell!("nandscope: both settings do the same: a difference would be chance");
    }
    let writes = a.load.writes() || settings.iter().any(|s| s.discard);
    if writes && !simulated && !a.writing.write {
        return Err(DeviceError::Refused(format!("--load {} writes; allow it with --write, or take --load read", a.load.name())).into());
    }
    // No way out that skips putting the settings back: a trial is short.
    let stop = stop::on_signals(stop::Second::Waits)?;
    // What is written is read back at the end.
    let mut opened = device::open(&device::with_content(&a.target), &OpenOptions::default())?;
    let geometry = opened.geometry().clone();
    let region = a.part.of(&geometry)?;
    if opened.facts().kind == TargetKind::Image {
        opened.facts().caveats.iter().for_each(|c| tell!("nandscope: {c}"));
    }
    let disk = opened.facts().disk.clone();
    let knobs: Vec<String> = settings.iter().flat_map(|s| s.queue.iter().map(|q| q.0.clone())).collect();
    let mut queue = match (&disk, knobs.first()) {
        (_, None) => None,
        (Some(d), _) => Some(Queue::of(Path::new("/sys"), d)),
        (None, Some(k)) => bail!("{k} is a setting of the kernel's queue: it needs a block device, and {} is none", a.target),
    };
    let undo = a.undoing.kept(writes, simulated);
    let stop_flag: &AtomicBool = &stop;
    let mut plan = Plan {
        settings,
        load: a.load,
        size: a.size.0,
        count: a.count,
        pairs: a.pairs,
        region: region.clone(),
        seed: a.measuring.chance.seed,
        deadline: Nanos(u64::MAX),
        stop: stop_flag,
    };
    let budget = plan.writes() + plan.writes() / u64::from(a.pairs) + (1 << 20);
    let signatures = if writes && !simulated { opened.signatures()? } else { vec![] };
    let (id, state) = (opened.id().clone(), a.state.unwrap_or(opened.state()));
    let dry = a.writing.dry.dry_run;
    let mut guard = if writes && !dry {
        let consent = a.writing.named.check(opened.id())?;
        opened.writable(&consent, &Limits { region: Some(region.clone()), budget, undo: undo.then(undo::default_dir) })?
    } else {
        opened.read_only()
    };
    if !a.quiet || dry {
        let (n, w) = (a.pairs, plan.load.access());
        tell!("{}: {n} pairs of trials, {} times {w} each", a.target, a.count);
        if writes {
            let back = match undo {
                true => format!("; what is overwritten or discarded, up to {}, is kept in a journal and put back", size(plan.changes())),
                false => String::new(),
            };
            tell!("will write at most {}, only in bytes {} to {}{back}", size(budget), region.start, region.end);
        } else {
            tell!("will write nothing; reads bytes {} to {}", region.start, region.end);
        }
        for s in &signatures {
            tell!("the target holds: {s}");
        }
        if let Some(q) = &queue {
            for k in &knobs {
                tell!("{k} is {} and will be so again at the end", q.get(k)?);
            }
        }
    }
    if dry {
        return Ok(a.writing.dry.done(&id));
    }
    let began = guard.now();
    plan.deadline = began + a.measuring.time_or(if simulated { 7200.0 } else { 300.0 });
    let mut bar = Progress::experiments(a.quiet, None);
    bar.begin(0, 1, "ab");
    let settings = plan.settings.clone();
    let mut turn = |side: usize| -> Result<(), DeviceError> {
        let Some(q) = &mut queue else { return Ok(()) };
        let failed = |e: crate::host::queue::QueueError| DeviceError::Unsupported(e.to_string());
        for k in &knobs {
            let own = settings[side].queue.iter().rev().find(|s| s.0 == *k).map(|s| s.1.clone());
            let value = own.map_or_else(|| q.first(k), Ok).map_err(failed)?;
            q.set(k, &value).map_err(failed)?;
        }
        Ok(())
    };
    let pairs = a.pairs;
    let done = ab::run(&plan, &mut guard, &mut turn, &mut |n| {
        bar.so_far(f64::from(n) / f64::from(pairs));
    });
    bar.end();
    let queue_back = queue.as_mut().map_or(Ok(()), Queue::restore);
    // Putting back is not counted: it is no part of the comparison.
    let cost = Cost::of(guard.counters(), (guard.now() - began).secs());
    let back = Back::of(&mut guard);
    let (run, kept) = match (queue_back.context("the settings of the queue were not all put back"), done) {
        (Ok(()), Ok(done)) => done,
        (queue, done) => {
            back.tell()?;
            queue?;
            return Err(done.err().map_or_else(|| anyhow::anyhow!("nothing was measured"), Into::into));
        }
    };
    let times = ab::pairs(&run);
    let effect = compare(&times, a.alpha, a.margin / 100.0);
    let text = text(&a, &run, &times, effect.as_ref());
    let value = serde_json::json!({
        "schema": crate::advise::quirk::SCHEMA,
        "tool": Tool::this(),
        "target": id,
        "state": state,
        "load": a.load.name(),
        "settings": [a.a.text, a.b.text],
        "effect": effect,
        "kept": kept,
        "cost": cost,
        "run": run,
    });
    if !a.out.write(&value)? {
        put!("{text}{}", data(&kept));
        let (written, read) = (about(cost.bytes_written), about(cost.bytes_read));
        say!("{written} written, {read} read; {} s of the device's time", three(cost.seconds));
    }
    let whole = back.tell()?;
    match &run.ended {
        Ended::Failed(why) => bail!("the target failed: {why}. {}", super::way_out(why)),
        Ended::Interrupted if stop.load(Ordering::Relaxed) => tell!("nandscope: interrupted after {} pairs", times.len()),
        Ended::Budget(what) => {
            tell!("nandscope: out of {} after {} of {} pairs", crate::report::terminal::out_of(what), times.len(), a.pairs);
        }
        _ => {}
    }
    Ok(match effect {
        _ if kept.wrong != [0, 0] || kept.unread > 0 => ExitCode::from(FAILING),
        _ if !whole => ExitCode::FAILURE,
        Some(e) if e.verdict != Verdict::Undecided => ExitCode::SUCCESS,
        _ => ExitCode::from(UNDECIDED),
    })
}

/// The answer for people, quotable in a mail.
fn text(a: &AbArgs, run: &Run, times: &[(f64, f64)], effect: Option<&Effect>) -> String {
    let mut out = format!("{}: {}, {} pairs\n\n", a.target, a.load.access(), times.len());
    let each = |x: f64| x / a.count as f64;
    for (i, c) in run.cells.iter().enumerate() {
        let t: Vec<f64> = times.iter().map(|p| each(if i == 0 { p.0 } else { p.1 })).collect();
        let middle = if t.is_empty() { "-".to_string() } else { Nanos((crate::infer::stats::median(&t) * 1e6) as u64).to_string() };
        let pieces = run.of(c.id).filter(|s| s.role == 1).count() as f64 / (times.len().max(1) as f64 * a.count as f64);
        let cut = if pieces > 1.01 { format!(", in {} pieces", three(pieces)) } else { String::new() };
        let noise = effect.map_or(String::new(), |e| format!(" (one trial ± {:.1} %)", 100.0 * e.noise[i]));
        out += &format!("  {:<30} {middle}{cut}{noise}\n", c.label);
    }
    let Some(e) = effect else {
        let why = match times.len() {
            n if n < LEAST_PAIRS => format!("{n} complete pairs are too few: {LEAST_PAIRS} are needed"),
            _ => "the accesses take no time".into(),
        };
        return out + &format!("\nundecided, because {why}\n");
    };
    let [lo, hi] = e.interval;
    let level = 100.0 * (1.0 - e.alpha);
    let range = format!("B takes {:.3} of the time of A, {:.3} to {:.3} at {level:.0} %", e.ratio, lo, hi);
    let far = 100.0 * (1.0 - lo.min(1.0 / hi)).abs().max((hi - 1.0).abs());
    out += &match e.verdict {
        Verdict::Faster | Verdict::Slower => {
            format!("\nB is {}: {range} (p = {})\nfaster, slower: in percent of the time of A\n", crate::units::slower(e.ratio), p(e.p))
        }
        Verdict::NoDifference => format!("\nno difference that matters: {range}, all within ± {} %\n", a.margin),
        Verdict::Undecided => format!(
            "\nundecided: {range} (p = {}); a difference of up to {far:.1} % cannot be ruled out, and none is shown. More pairs narrow it\n",
            p(e.p)
        ),
    };
    out
}

/// What the check of the data found.
fn data(k: &Kept) -> String {
    if let Some(why) = &k.unchecked {
        return format!("data: not checked, because {why}\n");
    }
    let side = |i: usize| {
        let (name, of) = (["A", "B"][i], about(k.checked[i]));
        match (k.wrong[i], k.first[i]) {
            (0, _) => format!("all {of} written with {name} read back as written"),
            (wrong, first) => {
                let at = first.map_or(String::new(), |f| format!(", first at byte {f}"));
                format!("WRONG DATA: {} of {of} written with {name} do not read back as written{at}", about(wrong))
            }
        }
    };
    match k.checked {
        [0, 0] if k.unread == 0 => String::new(),
        _ => {
            let unread = if k.unread > 0 { format!("; {} could not be read", about(k.unread)) } else { String::new() };
            format!("data: {}; {}{unread}\n", side(0), side(1))
        }
    }
}

fn p(x: f64) -> String {
    if x < 0.001 { "below 0.001".into() } else { format!("{x:.3}") }
}
