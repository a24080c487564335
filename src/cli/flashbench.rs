//! `nandscope flashbench`: flashbench's command line and lines, measured anew.

use super::args::{Chance, Dry, Named, Undoing};
use super::back::Back;
use super::progress::Progress;
use super::stop;
use super::told;
use crate::device::{self, Access, DeviceError, Geometry, Guard, Limits, OpenOptions, Opened, undo};
use crate::flashbench::align::{Align, Threes};
use crate::flashbench::interval::Interval;
use crate::flashbench::job::{Aus, Job};
use crate::flashbench::pattern::{Cost, Pattern, Set, expression, merged};
use crate::flashbench::scatter::Scatter;
use crate::flashbench::{Failure, Watch};
use crate::host::declared;
use crate::host::facts::TargetKind;
use crate::host::registers::Date;
use crate::units::{Bytes, Nanos};
use anyhow::Context;
use clap::{ArgAction, Args, ValueEnum};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

#[derive(Args)]
#[command(after_help = AFTER, infer_long_args = true)]
pub struct FlashbenchArgs {
    /// Block device, image file, sim:NAME, a card model PATH.toml, "exec:COMMAND ARGS" or serial:PORT
    #[arg(value_name = "DEVICE", value_parser = super::target)]
    target: String,
    /// Reads before, across and after boundaries of falling alignment
    #[arg(short, long)]
    align: bool,
    /// The same with writes; unreliable once the card merges
    #[arg(short = 'A', long)]
    align_write: bool,
    /// Time of a read at each of many places
    #[arg(short, long)]
    scatter: bool,
    /// 2^N places for --scatter, at most 16
    #[arg(long, value_name = "N", default_value = "9", value_parser = number)]
    scatter_order: u64,
    /// Blocks of one read of --scatter
    #[arg(long, value_name = "N", default_value = "1", value_parser = number)]
    scatter_span: u64,
    /// Writes in each of the first AUs (from byte 0, where the partition table lies)
    #[arg(short, long)]
    find_fat: bool,
    /// AUs that --find-fat looks at
    #[arg(short = 'F', long, value_name = "N", default_value = "6", value_parser = number)]
    fat_nr: u64,
    /// Writes interleaved in several AUs
    #[arg(short = 'O', long)]
    open_au: bool,
    /// AUs that --open-au writes interleaved: N, or several tables as 1-6 or 2,4,8
    #[arg(short = '0', long, value_name = "N", default_value = "2", value_parser = counts)]
    open_au_nr: Counts,
    /// Reads of doubling size: a rate and an access time
    #[arg(short, long)]
    interval: bool,
    /// Number of sizes for --interval, 512 << i
    #[arg(long, value_name = "N", default_value = "12", value_parser = number)]
    interval_order: u64,
    /// Sequential and random writes of zeros, ones and random data, and reads, inside one AU
    #[arg(short = 'p', long)]
    access_kinds: bool,
    /// Write the result to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// First byte of the write tests [default: 16 MiB rounded up to the erase size; 0 for --find-fat]
    #[arg(long, value_name = "N", value_parser = number)]
    offset: Option<u64>,
    /// Places inside an AU in random order (--open-au, --find-fat)
    #[arg(short, long)]
    random: bool,
    /// Passes [default: 8 for tests that read, 1 for tests that write]
    #[arg(short, long, value_name = "N", value_parser = number)]
    count: Option<u64>,
    /// Block size in bytes; for -p the smallest block [default: 16384, for -p 512]
    #[arg(short, long, value_name = "N", value_parser = number)]
    blocksize: Option<u64>,
    /// Erase size in bytes
    #[arg(short, long, value_name = "N", default_value = "4194304", value_parser = number)]
    erasesize: u64,
    /// Print every access to standard error; twice: name and size of the device, too
    #[arg(short, long, action = ArgAction::Count)]
    verbose: u8,

    #[command(flatten, next_help_heading = "Beyond flashbench")]
    named: Named,
    /// Let --find-fat begin where a partition table or a filesystem lies
    #[arg(long, help_heading = "Beyond flashbench")]
    overwrite_start: bool,
    /// Erase blocks from one AU of --open-au to the next
    #[arg(long, value_name = "N", default_value = "12", value_parser = number, help_heading = "Beyond flashbench")]
    spacing: u64,
    /// Rows 3*2^n in --align; auto: where they show a boundary that powers of two do not
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = "Beyond flashbench")]
    threes: When,
    /// Run an access pattern (FORMATS.md, patterns/)
    #[arg(long, value_name = "FILE", help_heading = "Beyond flashbench")]
    program: Option<PathBuf>,
    /// Set a parameter of the pattern
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting, help_heading = "Beyond flashbench")]
    set: Vec<Set>,
    #[command(flatten, next_help_heading = "Beyond flashbench")]
    chance: Chance,
    /// flashbench's lines only: none that begin with '#'
    #[arg(long, help_heading = "Beyond flashbench")]
    plain: bool,
    #[command(flatten, next_help_heading = "Beyond flashbench")]
    undoing: Undoing,
    #[command(flatten, next_help_heading = "Beyond flashbench")]
    dry: Dry,
    /// No plan and no progress
    #[arg(short, long, help_heading = "Beyond flashbench")]
    quiet: bool,
}

const AFTER: &str = "\
Numbers may be written 4194304, 4MiB, 4M, 4*1024*1024 or '$[4 * 1024 * 1024]'. Several tests run in flashbench's order: scatter, \
find-fat, align, open-au, interval, kinds. Lines beginning with '#' say what was run and how far it may be trusted; `nandscope \
infer` reads the result. -O, -f, -p and -A write: a device needs --consent ID, and its old content is put back at the end. \
Nothing wraps over the end of the device. docs/flashbench.md says what is measured otherwise than by flashbench, and why.

To read on: https://lwn.net/Articles/428584/ (Optimizing Linux with cheap flash drives);
https://wiki.linaro.org/WorkingGroups/KernelArchived/Projects/FlashCardSurvey (the flash card survey);
https://lists.linaro.org/archives/list/flashbench-results@lists.linaro.org/ (results that others sent).";

#[derive(Clone, Copy, ValueEnum)]
enum When {
    Auto,
    Always,
    Never,
}

#[derive(Clone, Debug)]
struct Counts(Vec<u64>);

fn number(s: &str) -> Result<u64, String> {
    expression(s)
}

/// "3", "1-6", "2,4,8".
fn counts(s: &str) -> Result<Counts, String> {
    let count = |n: &str| expression(n).map_err(|_| format!("'{n}' is no number of AUs; write for example 3, 1-6 or 2,4,8"));
    let mut all = vec![];
    for part in s.split(',') {
        match part.split_once('-') {
            Some((a, b)) => {
                let (a, b) = (count(a)?, count(b)?);
                if a > b || b - a > 1000 {
                    return Err(format!("'{part}' is not a range; write for example 1-6"));
                }
                all.extend(a..=b);
            }
            None => all.push(count(part)?),
        }
    }
    if all.contains(&0) { Err("at least one AU is written".into()) } else { Ok(Counts(all)) }
}

fn setting(s: &str) -> Result<Set, String> {
    let (name, value) = s.split_once('=').ok_or_else(|| format!("'{s}' is not NAME=VALUE"))?;
    Ok((name.trim().to_string(), i128::from(expression(value)?)))
}

/// The longest pattern that is read, in bytes: a loop says in a line what takes millions of lines without one.
const LONGEST: u64 = 16 << 20;

/// A test, and the command line that stands above its lines.
struct Task {
    head: String,
    job: Job,
}

pub fn run(a: FlashbenchArgs) -> anyhow::Result<ExitCode> {
    match go(&a) {
        Ok(whole) => Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE }),
        Err(e) => match e.downcast::<Failure>() {
            Ok(Failure::Usage(text)) => {
                tell!("nandscope: {text}");
                Ok(ExitCode::from(2))
            }
            // So that a refusal is known as one.
            Ok(Failure::Device(e)) => Err(e.into()),
            Ok(other) => Err(other.into()),
            Err(e) => Err(e),
        },
    }
}

/// True where all that was overwritten is back.
fn go(a: &FlashbenchArgs) -> anyhow::Result<bool> {
    if !(a.align || a.align_write || a.scatter || a.find_fat || a.open_au || a.interval || a.access_kinds || a.program.is_some()) {
        return Err(Failure::Usage("name a test: -a, -A, -s, -f, -O, -i, -p or --program FILE".into()).into());
    }
    if a.count == Some(0) {
        return Err(Failure::Usage("--count=0 measures nothing".into()).into());
    }
    let mut opened = device::open(&a.target, &OpenOptions::default())?;
    let geometry = opened.geometry().clone();
    let tasks = tasks(a, &geometry)?;
    let mut costs = vec![];
    for t in &tasks {
        costs.push(t.job.cost(&geometry)?);
    }
    let head = headline(a, &opened);
    let simulated = opened.facts().kind == TargetKind::Simulated;
    let changed = merged(costs.iter().flat_map(|c| c.changed.iter().copied()).collect());
    let undo = a.undoing.kept(!changed.is_empty(), simulated);
    if a.dry.dry_run {
        if let Some(first) = changed.first() {
            start_is_free(a, &mut opened, first.0)?;
        }
        plan(&a.target, &costs, &changed, undo, simulated);
        a.dry.done(opened.id());
        return Ok(true);
    }
    let mut guard = if let (Some(first), Some(last)) = (changed.first(), changed.last()) {
        start_is_free(a, &mut opened, first.0)?;
        let consent = a.named.check(opened.id())?;
        // No more than the plan says, and nowhere else.
        let budget = costs.iter().map(|c| c.bytes_written).sum();
        let limits = Limits { region: Some(first.0..last.0 + last.1), budget, undo: undo.then(undo::default_dir) };
        opened.writable(&consent, &limits)?
    } else {
        opened.read_only()
    };
    stop::keeps(&guard);
    if a.verbose > 1 {
        tell!("filename: \"{}\"\nfilesize: {:#x}", a.target, geometry.size);
    }
    if !a.quiet {
        plan(&a.target, &costs, &changed, undo, simulated);
    }
    let mut out = output(a)?;
    if !a.plain {
        writeln!(out, "# {head}").map_err(Failure::Output)?;
    }
    if !simulated {
        for what in device::realtime().denied {
            tell!("nandscope: timing is noisier than need be: no {what}");
        }
    }
    let result = measure(a, &tasks, &costs, &mut guard, &mut *out);
    // What was overwritten is put back whatever happened.
    let back = Back::of(&mut guard);
    let over = back.unkept() || back.gone().is_some();
    let whole = back.tell();
    match (&result, &whole) {
        // The one error of a target that went away, or of a journal that could not be written.
        (_, Err(_)) if over => return whole,
        (Err(_), Err(lost)) => tell!("nandscope: {}", told(lost)),
        _ => {}
    }
    result.and(whole)
}

fn measure(a: &FlashbenchArgs, tasks: &[Task], costs: &[Cost], guard: &mut Guard, out: &mut dyn Write) -> anyhow::Result<()> {
    let stop = stop::on_signals(stop::Second::Ends)?;
    let mut bar = Progress::experiments(a.quiet || a.verbose > 0, None);
    let accesses: u64 = costs.iter().map(Cost::accesses).sum();
    let bytes: u64 = costs.iter().map(|c| c.bytes_read + c.bytes_written).sum();
    let (mut n, mut b) = (0u64, 0u64);
    for (i, (task, cost)) in tasks.iter().zip(costs).enumerate() {
        bar.begin(i, tasks.len(), task.job.name());
        if !a.plain {
            writeln!(out, "# {}", task.head).map_err(Failure::Output)?;
        }
        // All at once, so that no journal work falls between two timed writes.
        guard.protect(&cost.changed)?;
        let mut done = |x: Access, took: Nanos| {
            (n, b) = (n + 1, b + x.len);
            if a.verbose > 0 {
                tell!("{} {} at {}: {took}", x.op.name(), x.len, x.at);
            }
            let part = 0.5 * (n as f64 / accesses.max(1) as f64 + b as f64 / bytes.max(1) as f64);
            bar.so_far(part);
        };
        let mut asked = || stop.load(Ordering::Relaxed);
        let notes = task.job.run(guard, out, &mut Watch { stop: &mut asked, done: &mut done })?;
        for note in notes.iter().filter(|_| !a.plain) {
            writeln!(out, "# {note}").map_err(Failure::Output)?;
        }
        out.flush().map_err(Failure::Output)?;
    }
    bar.end();
    Ok(())
}

/// The tests asked for, in flashbench's order.
fn tasks(a: &FlashbenchArgs, g: &Geometry) -> Result<Vec<Task>, Failure> {
    let block = a.blocksize.unwrap_or(16 << 10);
    let reads = u32::try_from(a.count.unwrap_or(8)).map_err(|_| Failure::Usage("--count is too large".into()))?;
    let writes = if a.count.is_some() { reads } else { 1 };
    let small = |v: u64, option: &str| u32::try_from(v).map_err(|_| Failure::Usage(format!("--{option}={v} is too large")));
    let quote = if a.target.contains('\'') { '"' } else { '\'' };
    let target = if device::is_program(&a.target) && a.target.contains(char::is_whitespace) {
        format!("{quote}{}{quote}", a.target)
    } else if a.target.starts_with("sim:") || device::is_program(&a.target) {
        a.target.clone()
    } else {
        std::fs::canonicalize(&a.target).map_or(a.target.clone(), |p| p.display().to_string())
    };
    let random = if a.random { " --random" } else { "" };
    let mut out = vec![];
    let mut add = |options: String, job: Job| out.push(Task { head: format!("flashbench {options} {target}"), job });
    if a.scatter {
        let order = small(a.scatter_order, "scatter-order")?;
        let job = Scatter { order, span: a.scatter_span, block, passes: reads, seed: a.chance.seed };
        add(format!("-s --scatter-order={order} --scatter-span={} --blocksize={block} --count={reads}", a.scatter_span), Job::Scatter(job));
    }
    let aus = |count, start, spacing| Aus { erase: a.erasesize, block, count, start, spacing, random: a.random, passes: writes };
    let sizes = format!("--erasesize={} --blocksize={block}{random}", a.erasesize);
    if a.find_fat {
        let start = a.offset.unwrap_or(0);
        let job = Job::find_fat(&aus(a.fat_nr, start, 1), g, a.chance.seed)?;
        add(format!("-f --fat-nr={} {sizes} --offset={start}", a.fat_nr), job);
    }
    for (wanted, write, option) in [(a.align, false, "-a"), (a.align_write, true, "-A")] {
        if wanted {
            let threes = match a.threes {
                When::Auto => Threes::Auto,
                When::Always => Threes::Always,
                When::Never => Threes::Never,
            };
            let passes = reads;
            let job = Job::Align(Align { block, passes, write, threes, seed: a.chance.seed });
            add(format!("{option} --blocksize={block} --count={passes}"), job);
        }
    }
    let start = a.offset.unwrap_or_else(|| Aus::default_start(a.erasesize, g));
    for &n in a.open_au_nr.0.iter().filter(|_| a.open_au) {
        add(format!("-O --open-au-nr={n} {sizes} --offset={start}"), Job::open_au(&aus(n, start, a.spacing), g, a.chance.seed)?);
    }
    if a.interval {
        let order = small(a.interval_order, "interval-order")?;
        add(format!("-i --interval-order={order} --count={reads}"), Job::Interval(Interval { order, passes: reads, seed: a.chance.seed }));
    }
    if a.access_kinds {
        let smallest = a.blocksize.unwrap_or(512).max(g.sector);
        let job = Job::kinds(a.erasesize, smallest, start, g, a.chance.seed)?;
        add(format!("-p --erasesize={} --blocksize={smallest} --offset={start}", a.erasesize), job);
    }
    if let Some(path) = &a.program {
        let name = path.display().to_string();
        if std::fs::metadata(path).is_ok_and(|m| m.len() > LONGEST) {
            return Err(Failure::Usage(format!("{name} is larger than {}; write what repeats as 'repeat'", Bytes(LONGEST))));
        }
        let text = std::fs::read_to_string(path).map_err(|e| Failure::Usage(format!("cannot read {name}: {e}")))?;
        let set: String = a.set.iter().map(|(k, v)| format!(" --set {k}={v}")).collect();
        let job = Job::Pattern { pattern: Pattern::parse(&name, &text)?, set: a.set.clone(), seed: a.chance.seed };
        add(format!("--program {name}{set}"), job);
    } else if !a.set.is_empty() {
        return Err(Failure::Usage("--set belongs to --program".into()));
    }
    Ok(out)
}

/// `-f` looks at the start of the device, where the partition table lies: that takes a word of its own.
fn start_is_free(a: &FlashbenchArgs, opened: &mut Opened, first: u64) -> anyhow::Result<()> {
    if !a.find_fat || a.overwrite_start || opened.facts().kind == TargetKind::Simulated {
        return Ok(());
    }
    let found = opened.signatures()?;
    let here: Vec<String> = found.iter().filter(|s| s.partition.is_none() && first <= s.at).map(ToString::to_string).collect();
    if here.is_empty() {
        return Ok(());
    }
    let text = format!(
        "--find-fat begins at {}, where {} holds: {}; allow that with --overwrite-start, or begin elsewhere with --offset",
        Bytes(first),
        a.target,
        here.join("; ")
    );
    Err(DeviceError::Refused(text).into())
}

/// Which target, what it declares, when: what flashbench's logs lack.
fn headline(a: &FlashbenchArgs, opened: &Opened) -> String {
    let (id, facts) = (opened.id(), opened.facts());
    let mut parts = vec![format!("nandscope {}", env!("CARGO_PKG_VERSION"))];
    parts.push(id.model.clone().unwrap_or_else(|| a.target.clone()));
    parts.push(format!("{} bytes", id.size));
    if id.offset > 0 {
        parts.push(format!("partition at {}", Bytes(id.offset)));
    }
    if let Some(bus) = &facts.bus {
        parts.push(format!("bus {bus}"));
    }
    if let Some(d) = facts.disk.as_deref().and_then(|d| declared::from_sysfs(Path::new("/sys"), d).ok()) {
        parts.extend(d.declared_au.map(|au| format!("declares AU {}", Bytes(au.bytes))));
        parts.extend(d.date.map(|m| format!("made {:04}-{:02}", m.year, m.month)));
    }
    if facts.kind != TargetKind::Simulated {
        let today = Date::today();
        parts.push(format!("Linux {}", facts.kernel));
        parts.push(format!("{:04}-{:02}", today.year, today.month));
    }
    parts.join(", ")
}

/// The first lines, on standard error: what will be touched (U46).
fn plan(target: &str, costs: &[Cost], changed: &[(u64, u64)], undo: bool, simulated: bool) {
    let sum = |f: fn(&Cost) -> u64| costs.iter().map(f).sum::<u64>();
    let (reads, writes, discards) = (sum(|c| c.reads), sum(|c| c.writes), sum(|c| c.discards));
    let mut text = format!("{target}: {reads} reads ({})", size(sum(|c| c.bytes_read)));
    if writes + discards > 0 {
        text += &format!(", {writes} writes ({})", size(sum(|c| c.bytes_written)));
    }
    if discards > 0 {
        text += &format!(", {discards} discards ({})", size(sum(|c| c.bytes_discarded)));
    }
    let pause = costs.iter().fold(Nanos(0), |p, c| p + c.pause);
    if pause.0 > 0 {
        text += &format!(", pauses of {pause}");
    }
    tell!("{text}");
    if let (Some(first), Some(last)) = (changed.first(), changed.last()) {
        let all: u64 = changed.iter().map(|c| c.1).sum();
        let end = last.0 + last.1;
        let undone = match (undo, simulated) {
            (true, _) => "; the old content is put back at the end",
            (_, true) => "",
            _ => "; the old content is NOT put back",
        };
        tell!("overwrites {} in {} places between bytes {} and {end}{undone}", size(all), changed.len(), first.0);
    } else {
        tell!("writes nothing");
    }
}

fn size(b: u64) -> String {
    if b < 10 << 20 { format!("{} KiB", b.div_ceil(1024)) } else { format!("{} MiB", b.div_ceil(1 << 20)) }
}

fn output(a: &FlashbenchArgs) -> anyhow::Result<Box<dyn Write>> {
    let Some(path) = a.out.as_ref().filter(|p| p.as_os_str() != "-") else { return Ok(Box::new(std::io::stdout())) };
    let same = super::outputs::reads(a.target.as_ref(), path);
    let device = std::fs::metadata(path).is_ok_and(|m| m.file_type().is_block_device());
    if same || device {
        return Err(
            Failure::Usage(format!("--out={}: that is a device or the target itself; the result goes to a file", path.display())).into()
        );
    }
    Ok(Box::new(File::create(path).with_context(|| format!("cannot write {}", path.display()))?))
}
