//! `nandscope rate`: does a card keep what its class promises, is it enough for a purpose.

use super::args::{Allowed, Chance, Output, Part, Undoing};
use super::back::Back;
use super::progress::Progress;
use super::{BELOW_CLASS, UNDECIDED, rate_text, stop};
use crate::device::{self, Device, Limits, OpenOptions, undo};
use crate::host::class::Class;
use crate::host::declared::Declared;
use crate::host::facts::TargetKind;
use crate::host::live;
use crate::host::served;
use crate::rate::conditions::{self, Way};
use crate::rate::judge::{self, ForPurpose, Seen};
use crate::rate::measure::{self, Tables, Task};
use crate::rate::record::Plan;
use crate::rate::{Condition, Rating, SCHEMA, Verdict};
use crate::report::Cost;
use crate::report::terminal::size;
use crate::saved::Tool;
use crate::units::{Bytes, GIB, Nanos, parse_duration};
use crate::workload::purpose::Purpose;
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;

/// Classes that are tried where none is named and none is declared.
const USUAL: [&str; 5] = ["C10", "U3", "V30", "A1", "A2"];
/// Device time of a quick run, in seconds.
const QUICK_S: f64 = 120.0;
/// Share of it for measuring where the old content must be put back afterwards, and where not.
const MEASURING: [f64; 2] = [0.45, 0.95];
/// Most bytes that a quick run writes to a device.
const QUICK_WRITES: u64 = 4 * GIB;
/// Seconds of recording for a purpose, in the whole procedure.
const HOUR_S: f64 = 3600.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Conditions {
    /// The whole procedure
    Spec,
    /// At most 2 minutes of the device's time
    Quick,
}

const AFTER: &str = "\
Exit codes: 0 all that was asked passes (or, where nothing was asked, something was decided), 8 a class or the purpose fails, 3 not decided, 130 interrupted (Ctrl-C) before any failed.

Examples:
  nandscope rate sim:modern-a1-32gb --class A1,C10
  nandscope rate /dev/mmcblk0 --write --consent 0x12345678 --conditions quick
  nandscope rate /dev/sdb --for dashcam:4x20Mbit/s --write --consent ID";

#[derive(Args)]
#[command(after_help = AFTER)]
pub struct RateArgs {
    /// /dev/..., an image file, sim:NAME, a card model PATH.toml, "exec:COMMAND ARGS" or serial:PORT
    #[arg(value_parser = super::target)]
    target: String,
    /// Classes to rate against: C2 to C10, U1, U3, V6 to V90, A1, A2 [default: those the card declares, else C10,U3,V30,A1,A2]
    #[arg(long, value_name = "CLASS", value_delimiter = ',', value_parser = Class::by_name)]
    class: Vec<Class>,
    /// How much of the procedure
    #[arg(long, value_enum, default_value = "quick")]
    conditions: Conditions,
    /// What the card is wanted for: boot, camera, video-4k, action-camera, dashcam, ip-camera, 3d-printer, logger, with streams and a rate
    /// as dashcam:4x20Mbit/s
    #[arg(long = "for", value_name = "PURPOSE")]
    purpose: Option<Purpose>,
    /// With --for: bytes that the device holds back while the card is busy
    #[arg(long, value_name = "SIZE", requires = "purpose")]
    buffer: Option<Bytes>,
    /// Most time for the measurement [default: 2m; with --conditions spec no limit]
    #[arg(long, value_parser = parse_duration)]
    time: Option<Nanos>,
    #[command(flatten)]
    chance: Chance,
    #[command(flatten)]
    allowed: Allowed,
    #[command(flatten)]
    part: Part,
    /// Most bytes to write [default: 4GiB on a device, 32GiB on a simulated card; with --conditions spec what the procedure needs]
    #[arg(long, value_name = "SIZE")]
    writes: Option<Bytes>,
    #[command(flatten)]
    undoing: Undoing,
    #[command(flatten)]
    out: Output,
    /// No progress and no plan
    #[arg(long, short)]
    quiet: bool,
}

/// What a rating writes as JSON, and prints.
#[derive(Serialize)]
pub(super) struct Rated<'a> {
    pub schema: &'static str,
    pub tool: Tool,
    pub target: &'a str,
    pub model: Option<&'a str>,
    pub size: u64,
    pub conditions: &'static str,
    /// Classes that the card declares; none where its registers are not shown here.
    pub declared: Option<String>,
    pub ratings: &'a [Rating],
    #[serde(rename = "for")]
    pub purpose: Option<ForPurpose>,
    pub conditions_of: &'a [Condition],
    /// What the run cannot promise.
    pub not_promised: Vec<String>,
    pub warnings: Vec<String>,
    pub exit_code: u8,
    pub measured: &'a measure::Measured,
    pub cost: Cost,
}

/// The tables of a card formatted by the SD rules, where they lie in the region; else its first bytes stand for them.
fn tables(capacity: u64, sector: u64, region: &Range<u64>) -> (Tables, bool) {
    let o = nandscope_fat::Options { sector, ..nandscope_fat::Options::card(capacity) };
    if let Ok(l) = nandscope_fat::plan(&o) {
        let v = &l.volume;
        let (fat, data) = (l.start() + v.fat_start, l.start() + v.data_start);
        // exFAT has one table, and its bitmap is the first thing in the data.
        let copy = if v.fats > 1 { fat + v.fat_length } else { data };
        let grid = |x: u64| x / 4096 * 4096;
        let t = Tables { fat: grid(fat), copy: grid(copy), directory: grid(data + 2 * v.cluster.max(16 << 10)), data: data + (4 << 20) };
        if t.fat >= region.start && t.data < region.end {
            return (t, true);
        }
    }
    let s = region.start;
    (Tables { fat: s, copy: s + (16 << 10), directory: s + (32 << 10), data: (s + (4 << 20)).min(region.end) }, false)
}

pub fn run(a: RateArgs) -> anyhow::Result<ExitCode> {
    let simulated = device::is_simulated(&a.target)?;
    let write = a.allowed.write(simulated);
    let whole = a.conditions == Conditions::Spec;
    let mut opened = device::open(&a.target, &OpenOptions::default())?;
    let (facts, geometry) = (opened.facts().clone(), opened.geometry().clone());
    let region = a.part.of(&geometry)?;
    let image = facts.kind == TargetKind::Image || facts.disk.as_deref().is_some_and(served::is_image);
    let declared = facts.disk.as_deref().filter(|_| facts.kind != TargetKind::Partition);
    let declared: Option<Declared> = declared.and_then(|d| live::declared(Path::new("/sys"), d).ok());
    let of_card = declared.as_ref().map(Class::declared).unwrap_or_default();
    let usual = || USUAL.iter().filter_map(|n| Class::by_name(n).ok()).collect::<Vec<_>>();
    let asked = !a.class.is_empty() || !of_card.is_empty();
    let classes: Vec<Class> = match () {
        () if !a.class.is_empty() => Class::once(&a.class),
        () if a.purpose.is_some() => vec![],
        () if !of_card.is_empty() => of_card,
        () => usual(),
    };
    let undo = a.undoing.kept(write, simulated);
    let seconds = if whole { f64::MAX / 1e12 } else { QUICK_S };
    let time = a.time.unwrap_or(Nanos::from_secs_f64(seconds.min(1e9)));
    let recording = a.purpose.as_ref().and_then(|p| Plan::of(p, HOUR_S));
    let (places, formatted) = tables(geometry.offset + geometry.size, geometry.sector, &region);
    let ssr = declared.as_ref().and_then(|d| d.ssr.as_ref());
    let au = ssr.and_then(|s| if s.video_au_mib > 0 { Some(u64::from(s.video_au_mib) << 20) } else { s.au.bytes });
    let depth = ssr.and_then(|s| s.queue_depth).map_or(32, u32::from).max(2);
    let stop = stop::on_signals(stop::Second::Ends)?;
    let mut task = Task {
        region: region.clone(),
        whole,
        deadline: Nanos(u64::MAX),
        seed: a.chance.seed,
        stop: &stop,
        capacity: geometry.size,
        au,
        depth,
        classes: &classes,
        tables: places,
        recording,
        random: a.purpose.as_ref().is_some_and(|p| p.random.is_some()),
        write,
    };
    let unit = measure::least_unit(&task);
    let needed = (task.tables.data.next_multiple_of(unit) + unit).saturating_sub(region.start);
    if write && region != (0..geometry.size) && region.end - region.start < needed {
        let why = format!(
            "the region holds {}; it takes {} to write one unit of {} behind a file system's tables",
            Bytes(region.end - region.start),
            Bytes(needed),
            Bytes(unit)
        );
        return Err(super::misuse(why));
    }
    let most = if whole || simulated { measure::most_written(&task) } else { QUICK_WRITES };
    let budget = a.writes.map_or(most, |w| w.0);
    let signatures = if write && !simulated { opened.signatures()? } else { vec![] };
    let dry = a.allowed.writing.dry.dry_run;
    let id = opened.id().clone();
    let mut guard = if write && !dry {
        let consent = a.allowed.writing.named.check(&id)?;
        opened.writable(&consent, &Limits { region: Some(region.clone()), budget, undo: undo.then(undo::default_dir) })?
    } else {
        opened.read_only()
    };
    stop::keeps(&guard);
    if !a.quiet || dry {
        say_plan(&a, write, undo, whole, time, budget, &region);
        if let (Some(p), Some(of)) = (&task.recording, &a.purpose) {
            tell!("{}: {}, in requests of {}", of.title, of.needs(), Bytes(p.piece));
        }
        if image {
            tell!("nandscope: an image file is as fast as the disk it lies on: this measures figures, and decides no class");
        }
        signatures.iter().for_each(|s| tell!("the target holds: {s}"));
    }
    if dry {
        return Ok(a.allowed.writing.dry.done(&id));
    }
    let (_realtime, began) = ((!simulated).then(device::realtime), guard.now());
    let measuring = if whole { 1.0 } else { MEASURING[usize::from(!undo)] };
    task.deadline = began + Nanos::from_secs_f64(time.secs() * measuring);
    let mut bar = Progress::experiments(a.quiet, (!simulated && !whole).then_some(time));
    let measured = measure::measure(&mut guard, &task, &mut |step, share| {
        bar.under(step);
        bar.so_far(share);
    });
    bar.end();
    let back = Back::of(&mut guard);
    let cost = Cost::of(guard.counters(), (guard.now() - began).secs());
    let seen = Seen { capacity: geometry.size, au, image, usb: facts.bus.as_deref() == Some("usb"), whole };
    let ratings: Vec<Rating> = classes.iter().map(|c| judge::class(c, &measured, &seen)).collect();
    let purpose = a.purpose.as_ref().map(|p| judge::purpose(p, &measured, &seen, a.buffer.map(|b| b.0)));
    let way = Way {
        bus: facts.disk.as_deref().and_then(|d| conditions::bus(Path::new("/sys"), d)),
        simulated,
        flushes: geometry.write_cache,
        depth,
        whole,
        formatted,
        capacity: geometry.size,
    };
    let all = conditions::conditions(&classes, &measured, &way);
    let verdicts: Vec<Verdict> = ratings.iter().map(|r| r.verdict).chain(purpose.as_ref().map(|p| p.verdict)).collect();
    let whole_again = back.whole() && !back.unkept();
    let exit_code = stop::number(if whole_again { code(&verdicts, asked || a.purpose.is_some()) } else { 1 });
    let mut warnings = facts.caveats.clone();
    if !write {
        let how = if simulated { "leave --read-only out".into() } else { format!("--write {}", id.consent_option()) };
        warnings.push(format!("nothing was written, so only reads were rated; allow writes: {how}"));
    }
    let failed = guard.counters().failures > 0;
    let next = |e: &str| match failed {
        true if super::disk_is_full(e) => format!("; {}", super::way_out(e).to_lowercase()),
        true => "; `nandscope check` says more about errors".to_string(),
        false => String::new(),
    };
    warnings.extend(measured.ended.iter().map(|e| format!("ended early: {e}{}", next(e))));
    let rated = Rated {
        schema: SCHEMA,
        tool: Tool::this(),
        target: &a.target,
        model: declared.as_ref().and_then(|d| d.name.as_deref()).or(id.model.as_deref()),
        size: geometry.size,
        conditions: if whole { "spec" } else { "quick" },
        declared: ssr.filter(|s| !s.is_blank()).map(|s| s.marks()),
        ratings: &ratings,
        purpose,
        conditions_of: &all,
        not_promised: conditions::not_promised(&measured, whole),
        warnings,
        exit_code,
        measured: &measured,
        cost,
    };
    if !a.out.write(&rated)? {
        put!("{}", rate_text::text(&rated, super::colour(&std::io::stdout()), super::width().min(100)));
    }
    back.tell()?;
    Ok(ExitCode::from(exit_code))
}

/// 8 where something that was asked for fails, 0 where all of it passes; where nothing was asked, 0 once anything is decided.
fn code(all: &[Verdict], asked: bool) -> u8 {
    let any = |v: Verdict| all.contains(&v);
    match () {
        () if asked && any(Verdict::Fails) => BELOW_CLASS,
        () if asked && any(Verdict::NotDecided) || all.is_empty() => UNDECIDED,
        () if any(Verdict::Passes) || any(Verdict::Fails) => 0,
        () => UNDECIDED,
    }
}

fn say_plan(a: &RateArgs, write: bool, undo: bool, whole: bool, time: Nanos, budget: u64, region: &Range<u64>) {
    let long = match (whole, a.time) {
        (true, None) => "the whole procedure, which may take hours".to_string(),
        _ => format!("at most {time} of the device's time"),
    };
    let what = if write {
        format!("writes at most {}, only in bytes {} to {}", size(budget), region.start, region.end)
    } else {
        "writes nothing".into()
    };
    tell!("{}: {long}; {what}", a.target);
    match (write, undo) {
        (true, true) => tell!("the old content is kept in a journal and put back at the end"),
        (true, false) if !a.target.starts_with("sim:") => tell!("the old content is NOT put back"),
        _ => {}
    }
}
