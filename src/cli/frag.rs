//! `nandscope frag`: does fragmentation matter on this card? Brings a volume into its states, measures each, answers.

use super::args::{Dry, Output};
use super::files::{Medium, Place, PlanArgs, Target, cut_off, volume_error};
use super::progress::Progress;
use super::stop;
use crate::device::{Device, DeviceError};
use crate::host::facts::{HostFacts, TargetKind};
use crate::host::sysfs::Sys;
use crate::lab::answer::{self, Profile};
use crate::lab::bench::{self, Workload};
use crate::lab::experiment::{self, Lab, Settings, Setup, State, map_grid};
use crate::lab::mounted::{self as lab_mounted, Blank};
use crate::lab::offload::Card;
use crate::lab::{age, class};
use crate::report::{frag as report, html, maps};
use crate::units::{Bytes, MIB, Nanos};
use crate::volume::{Cache, Directory, Host, Label, Shared, Volume, VolumeError};
use anyhow::{Context, bail};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Args)]
pub struct FragArgs {
    #[command(flatten)]
    target: Target,
    /// States to bring about and measure, in this order [default: fragmented,defragmented,blank; in a directory
    /// as-is,fragmented,defragmented, and blank with --consent]
    #[arg(long, value_delimiter = ',', value_enum)]
    states: Vec<StateArg>,
    /// File sizes to measure
    #[arg(long, value_delimiter = ',', default_value = "512,32KiB,256KiB,2MiB")]
    sizes: Vec<Bytes>,
    /// Rounds that count, of all sizes in random order
    #[arg(long, default_value_t = 6)]
    repeats: u32,
    /// Bytes of one read or write call
    #[arg(long, value_name = "SIZE", default_value = "8KiB")]
    chunk: Bytes,
    /// Small files in the folder that is copied; 0 = none
    #[arg(long, value_name = "N", default_value_t = 300)]
    folder: u32,
    /// Bytes of a cluster [default: what the SD convention has for a card of this capacity, at most 32 KiB]
    #[arg(long, value_name = "SIZE", value_parser = super::args::cluster)]
    cluster: Option<u32>,
    /// Use the first SIZE of the target for the volume only
    #[arg(long, value_name = "SIZE")]
    size: Option<Bytes>,
    /// The host the in-process FAT layer stands for
    #[arg(long, value_enum, default_value = "plain")]
    host: HostArg,
    /// Directory on another disk for the files on a mounted card while it is blank
    #[arg(long, value_name = "DIR")]
    spare: Option<PathBuf>,
    /// Format the blank volume without erasing the medium before
    #[arg(long)]
    no_erase: bool,
    /// Bytes of an AU, for the map and the specification's test [default: by capacity]
    #[arg(long, value_name = "SIZE")]
    au: Option<Bytes>,
    /// Skip the specification's own test (Pw, Pm, Pr)
    #[arg(long)]
    no_class: bool,
    /// What the card is used for: browser-cache, photos, music, logger, camera, root-filesystem, or a file with lines
    /// 'write SIZE [WEIGHT]' and 'read SIZE [WEIGHT]'; may be given more than once [default: all of these]
    #[arg(long, value_name = "NAME|FILE")]
    profile: Vec<PathBuf>,
    /// Test a claim: is anything so many times slower fragmented than defragmented?
    #[arg(long, value_name = "TIMES")]
    claim: Option<f64>,
    #[command(flatten)]
    out: Output,
    /// Write the report as one HTML page
    #[arg(long, value_name = "F")]
    html: Option<PathBuf>,
    /// Write the charts and maps as SVG files whose names begin with PREFIX
    #[arg(long, value_name = "PREFIX")]
    svg: Option<String>,
    /// Write the charts as columns for gnuplot
    #[arg(long, value_name = "F")]
    gnuplot: Option<PathBuf>,
    #[command(flatten)]
    plan: PlanArgs,
    #[command(flatten)]
    dry: Dry,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum StateArg {
    /// Nothing is formatted: the volume as it is, however full
    AsIs,
    Fragmented,
    Defragmented,
    Blank,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum HostArg {
    /// Keeps all tables in memory, no data; costs no time of its own
    Plain,
    /// A PDA of 2002: 12 KiB for tables, 512 KiB of what was read or written last, slow with names (assumed)
    Pda,
    /// One sector for tables, one for data, as SdFat and FatFs
    Microcontroller,
    /// No memory at all
    None,
}

impl HostArg {
    /// What it keeps in memory.
    fn words(self) -> &'static str {
        match self {
            HostArg::Plain => "--host plain (all tables in memory, no data)",
            HostArg::Pda => "--host pda (12 KiB of tables, 512 KiB of data, 20 ms a name; assumed)",
            HostArg::Microcontroller => "--host microcontroller (a sector of tables, one of data)",
            HostArg::None => "--host none (no memory)",
        }
    }

    fn host(self, simulated: bool) -> Host {
        match self {
            HostArg::Plain => Host::with(Cache::TABLES),
            HostArg::Microcontroller => Host::with(Cache::ONE_SECTOR),
            HostArg::None => Host::with(Cache::NONE),
            HostArg::Pda => {
                let cache = Cache { meta: 24, data: 1024, direct: false, write_back: true };
                // A real device meets a real processor.
                let ms = |us: u64| Nanos(if simulated { us * 1000 } else { 0 });
                Host { call: ms(500), name: ms(20_000), copy: if simulated { 20_000_000 } else { 0 }, ..Host::with(cache) }
            }
        }
    }
}

pub fn run(a: FragArgs) -> anyhow::Result<ExitCode> {
    let plan = a.plan.plan()?;
    if a.sizes.is_empty() || a.repeats == 0 || a.chunk.0 == 0 || a.sizes.iter().any(|s| s.0 == 0 || s.0 >= 1 << 32) {
        return Err(super::misuse("--sizes takes file sizes of 1 B to 4 GiB, --repeats and --chunk 1 or more"));
    }
    if a.claim.is_some_and(|c| !(c > 1.0 && c <= 1e6)) {
        return Err(super::misuse("--claim takes a number of times above 1, such as 30"));
    }
    if a.au == Some(Bytes(0)) {
        return Err(super::misuse("--au 0: an AU has 1 byte or more; without --au it goes by the capacity"));
    }
    let known = answer::profiles();
    let mut profiles = if a.profile.is_empty() { known.clone() } else { vec![] };
    for f in &a.profile {
        let word = |n: &str| n.replace(' ', "-");
        if let Some(p) = known.iter().find(|p| f.as_os_str() == word(&p.name).as_str()) {
            profiles.push(p.clone());
            continue;
        }
        if !f.exists() {
            let names: Vec<String> = known.iter().map(|p| word(&p.name)).collect();
            let why = format!("there is no profile and no file '{}'; the profiles are {}", f.display(), names.join(", "));
            return Err(super::misuse(why));
        }
        let text = std::fs::read_to_string(f).with_context(|| format!("cannot read {}", f.display()))?;
        let name = f.file_stem().map_or_else(|| f.display().to_string(), |n| n.to_string_lossy().into_owned());
        profiles.push(answer::parse_profile(&name, &text).map_err(anyhow::Error::msg)?);
    }
    let mut seen = vec![];
    for s in &a.states {
        let s = match s {
            StateArg::AsIs => State::AsIs,
            StateArg::Fragmented => State::Fragmented,
            StateArg::Defragmented => State::Defragmented,
            StateArg::Blank => State::Blank,
        };
        if seen.contains(&s) {
            return Err(super::misuse(format!("the state '{s}' is named twice")));
        }
        seen.push(s);
    }
    let settings = Settings {
        workload: Workload {
            sizes: a.sizes.iter().map(|s| s.0).collect(),
            chunk: a.chunk.0,
            repeats: a.repeats,
            folder: a.folder,
            seed: a.plan.seed,
            ..Workload::default()
        },
        states: seen,
        erase: !a.no_erase,
        cluster: a.cluster,
        host: a.host.host(a.target.simulated()),
        au: MIB,
        plan,
    };
    a.target.writable()?;
    match a.target.open(Some(u64::MAX).filter(|_| !a.dry.dry_run))? {
        Place::Directory(d) => mounted(&a, settings, d, &profiles),
        Place::Medium(m) => in_process(&a, settings, m, &profiles),
    }
}

/// What an interrupted run does before it ends.
const CLEARING: &str = "removing the test files";

fn in_process(a: &FragArgs, mut settings: Settings, mut m: Medium, profiles: &[Profile]) -> anyhow::Result<ExitCode> {
    if a.spare.is_some() {
        let why = format!("--spare keeps the files of a mounted card, and {} is no directory: leave it out", a.target.target);
        return Err(super::misuse(why));
    }
    if settings.states.is_empty() {
        settings.states = vec![State::Fragmented, State::Defragmented, State::Blank];
    }
    let keeps = settings.states == [State::AsIs];
    if keeps && !m.formatted {
        bail!("{} holds no FAT volume to be measured as it is", a.target.target);
    }
    if let (Some(size), false) = (a.size, keeps) {
        let whole = m.range.end - m.range.start;
        if size.0 < MIB || size.0 > whole || !size.0.is_multiple_of(m.device.geometry().sector) {
            let why = format!("--size {size}: between 1 MiB and the {} of the target, in whole sectors", Bytes(whole));
            return Err(super::misuse(why));
        }
        m.range.end = m.range.start + size.0;
    }
    let size = m.range.end - m.range.start;
    settings.au = map_grid(a.au.map(|b| b.0).filter(|&b| b > 0), m.device.geometry().size);
    if !a.target.quiet || a.dry.dry_run {
        tell!("{}: {}", a.target.target, experiment::plan_text(&settings, size));
        if !m.simulated {
            let place = format!("bytes {} to {}", m.range.start, m.range.end);
            tell!("{} in {place}", if keeps { "will write test files and remove them, only" } else { "will DESTROY what is on it" });
        }
    }
    if a.dry.dry_run {
        return Ok(a.dry.done(&m.id));
    }
    let stop = stop::on_signals(stop::Second::Ends)?;
    let mut line = Progress::phases(a.target.quiet);
    let mut lab = Lab::new(&a.target.target, Label::InProcess, &settings);
    lab.state = m.state;
    lab.setup = setup(a, &m.facts);
    // What it overwrites is lost anyway; files of the user are not.
    if keeps {
        stop::says(CLEARING);
    } else {
        m.device = m.device.until(&stop);
    }
    let done = experiment::run(&m.device, m.range.clone(), &mut lab, &stop, &mut |what, x| line.phase(what, x));
    line.end();
    if done.is_ok() && !a.no_class && !keeps && !stop.load(Ordering::Relaxed) {
        lab.class = specification(a, &settings, &m, &stop, &mut lab.notes)?;
    }
    let counters = m.device.with(|g| g.counters());
    finish(a, &lab, profiles, counters.bytes_written, m.device.geometry().size)?;
    let stopped = stop.load(Ordering::Relaxed);
    if stopped && !keeps && !m.simulated {
        tell!("nandscope: the volume on {} is not whole: format the card before use", a.target.target);
    }
    if done.is_err() && stopped && lab.conditions.is_empty() {
        tell!("nandscope: interrupted before a state was measured");
        return Ok(ExitCode::FAILURE);
    }
    match done {
        Err(VolumeError::Device(DeviceError::Late)) if stopped => {}
        other => other.map_err(volume_error)?,
    }
    Ok(verdict(&lab, stopped))
}

/// The specification's test: on a simulated card on a second card of the same model, else on the same card at the end, whose
/// volume it overwrites; so there it is left out while files of the user may be left.
fn specification(
    a: &FragArgs,
    s: &Settings,
    m: &Medium,
    stop: &Arc<AtomicBool>,
    notes: &mut Vec<String>,
) -> anyhow::Result<Option<class::Class>> {
    let (au, ru) = (s.au, class::units(m.device.geometry().size).1);
    let result = if m.simulated {
        let opened = crate::device::open(&a.target.target, &crate::device::OpenOptions::default())?;
        let consent = crate::device::Consent::check(opened.id(), None)?;
        let fresh = opened.writable(&consent, &crate::device::Limits { budget: u64::MAX, ..Default::default() })?;
        let mut fresh = Shared::new(fresh).until(stop);
        class::measure(&mut fresh, 0..m.range.end, au, ru, s.workload.chunk, s.plan.seed)
    } else {
        notes.push("the specification's test overwrote the volume; format the card before use".into());
        class::measure(&mut m.device.clone(), m.range.clone(), au, ru, s.workload.chunk, s.plan.seed)
    };
    match result {
        Ok(c) => Ok(Some(c)),
        Err(DeviceError::OutOfBounds(why)) => {
            notes.push(why);
            Ok(None)
        }
        Err(DeviceError::Late) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

fn mounted(a: &FragArgs, mut settings: Settings, mut d: Directory, profiles: &[Profile]) -> anyhow::Result<ExitCode> {
    if settings.states.is_empty() {
        settings.states = vec![State::AsIs, State::Fragmented, State::Defragmented];
        settings.states.extend(a.target.named.consent.is_some().then_some(State::Blank));
    }
    let format = settings.states.contains(&State::Blank);
    if a.spare.is_some() && !format {
        return Err(super::misuse(
            "--spare keeps the files while the card is blank, a state that is not asked for: add --consent ID, or --states blank",
        ));
    }
    let blank = match format && !a.dry.dry_run {
        true => Some(allowed(&d, &a.target, a.spare.as_ref())?),
        false => None,
    };
    let space = d.space().map_err(volume_error)?;
    settings.au = map_grid(a.au.map(|b| b.0).filter(|&b| b > 0), space.size);
    if !a.target.quiet || a.dry.dry_run {
        tell!("{}: {}", a.target.target, experiment::plan_text(&settings, space.size));
        tell!("will write files below {} and {} in it, and remove them", age::DIRECTORY, bench::DIRECTORY);
        if format {
            tell!("will copy its files off, FORMAT it, and copy them back");
        }
    }
    if a.dry.dry_run {
        return Ok(Dry::nothing());
    }
    let stop = stop::on_signals(stop::Second::Ends)?;
    let mut line = Progress::phases(a.target.quiet);
    let mut lab = Lab::new(&a.target.target, Label::Kernel, &settings);
    lab.setup = mounted_setup(&d);
    stop::says(CLEARING);
    let done = lab_mounted::run(&mut d, blank.as_ref(), &mut lab, &stop, &mut |what, x| line.phase(what, x));
    line.end();
    finish(a, &lab, profiles, 0, 0)?;
    done.map_err(|e| cut_off(e, "run fsck on the volume; `nandscope age DIR --remove` removes what is left of the ageing"))?;
    Ok(verdict(&lab, stop.load(Ordering::Relaxed)))
}

/// Whether a mounted card may be formatted.
pub fn allowed(d: &Directory, target: &Target, spare: Option<&PathBuf>) -> anyhow::Result<Blank> {
    let card = Card::new(d, target.named.consent.as_deref()).map_err(volume_error)?;
    Ok(Blank { card, spare: spare.cloned() })
}

/// The machine, its memory and the way to the card.
fn setup(a: &FragArgs, facts: &HostFacts) -> Setup {
    let memory = a.host.words();
    let host = match facts.kernel.is_empty() {
        true => format!("simulated, {memory}"),
        false => format!("{}, Linux {}, {memory}", facts.machine, facts.kernel),
    };
    let card: Vec<&str> = [&facts.vendor, &facts.model].into_iter().flatten().map(String::as_str).collect();
    let card = match a.target.target.strip_prefix("sim:").or(a
        .target
        .target
        .strip_prefix("exec:")
        .filter(|_| facts.kind == TargetKind::Simulated))
    {
        Some(name) => format!("simulated {name}"),
        None if card.is_empty() => a.target.target.clone(),
        None => card.join(" "),
    };
    Setup { host, slot: facts.bus.clone(), card }
}

/// The same of a mounted card, through the device it is mounted from.
fn mounted_setup(d: &Directory) -> Setup {
    let here = HostFacts::of_host(TargetKind::Disk);
    let node = d.mount().and_then(|m| Sys::default().node(m.dev).ok());
    let (vendor, model) = node.as_ref().map_or((None, None), |n| (n.vendor(), n.model()));
    let card: Vec<String> = [vendor, model].into_iter().flatten().collect();
    let card = match (card.is_empty(), d.mount()) {
        (false, _) => card.join(" "),
        (true, m) => m.map_or("not known".into(), |m| m.source.clone()),
    };
    Setup { host: format!("{}, Linux {}", here.machine, here.kernel), slot: node.map(|n| n.bus()), card }
}

fn verdict(lab: &Lab, stopped: bool) -> ExitCode {
    if stopped {
        tell!("nandscope: interrupted; what was measured until then is above");
    }
    let decided = answer::effects(lab).iter().any(|e| e.verdict != answer::Verdict::Undecided);
    // One state alone answers what it measures, where anything had room.
    let alone = matches!(&lab.conditions[..], [only] if !only.measured.samples.is_empty());
    if decided || alone { ExitCode::SUCCESS } else { ExitCode::from(super::UNDECIDED) }
}

fn finish(a: &FragArgs, lab: &Lab, profiles: &[Profile], written: u64, size: u64) -> anyhow::Result<()> {
    let to_stdout = a.out.write(lab)?;
    let save = |path: &std::path::Path, text: String| super::write_text(path, &text);
    if let Some(path) = &a.gnuplot {
        save(path, report::columns(lab))?;
    }
    if let Some(path) = &a.html {
        save(path, html::lab_page(lab, profiles))?;
    }
    if let Some(prefix) = &a.svg {
        for (f, what) in report::figures(lab).iter().zip(answer::What::FILES) {
            save(format!("{prefix}{}.svg", what.name()).as_ref(), crate::report::svg::file(f))?;
        }
        for c in &lab.conditions {
            save(format!("{prefix}map-{}.svg", c.state.name().replace(' ', "-")).as_ref(), maps::svg(&c.map))?;
        }
    }
    if !to_stdout && !lab.conditions.is_empty() {
        put!("{}", report::text(lab, profiles, super::width()));
        if let Some(times) = a.claim {
            say!("{}", crate::advise::frag::claim(lab, times));
        }
        if written > 0 {
            let whole = if written < MIB { written } else { written / MIB * MIB };
            say!("{} written, {:.1} drive writes", crate::units::about(whole), written as f64 / size.max(1) as f64);
        }
    }
    Ok(())
}
