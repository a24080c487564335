//! `nandscope check`: one screen that says whether a card is genuine, stores what it is told, is healthy, and is fast enough.

use super::args::{self, Allowed, Measuring};
use super::back::Back;
use super::colour;
use super::progress::Progress;
use super::{stop, undo};
use crate::check::examine::{Examined, Order, Step, examine};
use crate::check::history::{self, Record};
use crate::check::judge::{self, Class, Seen, Wait};
use crate::check::measure::{self, Measured};
use crate::check::watch::Watch;
use crate::check::{Answer, Outcome, Question, SCHEMA, Verdict};
use crate::device::{self, Device, DeviceError, Limits, OpenOptions, undo::default_dir};
use crate::finding::Findings;
use crate::host::declared::Declared;
use crate::host::facts::TargetKind;
use crate::host::faults::{self, Noticed};
use crate::host::live;
use crate::host::served;
use crate::host::wear::{Reading, Wear, Written};
use crate::layout::disk;
use crate::report;
use crate::report::terminal::{NARROW, lines};
use crate::saved::Tool;
use crate::saved::counterfeit::name_target;
use crate::shell::word;
use crate::units::{Bytes, GIB, MIB, Nanos, about, three};
use crate::workload::purpose::Purpose;
use anyhow::Context;
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

#[derive(Args)]
#[command(mut_arg("time", |a| a.help("Time for the check and for putting back [default: 90s, with --quick 30s]")))]
#[command(mut_arg("write", |a| a.help("Allow writing; a device also needs --consent. What is overwritten is put back at the end")))]
pub struct CheckArgs {
    /// /dev/..., an image file, sim:NAME, a card model PATH.toml, "exec:COMMAND ARGS" or serial:PORT
    #[arg(value_parser = super::target)]
    target: String,
    #[command(flatten)]
    allowed: Allowed,
    #[command(flatten)]
    measuring: Measuring,
    /// At most 30 s
    #[arg(long, conflicts_with = "time")]
    quick: bool,
    /// Ask for the card to be taken out and put in again, and look what it still holds
    #[arg(long)]
    reinsert: bool,
    /// Write so much in one stretch [default: 64MiB]: a cache in front of missing flash can hide it until as much was written
    #[arg(long, value_name = "SIZE", value_parser = cache_size)]
    cache: Option<Bytes>,
    /// Classes to check against instead of those the card declares, with commas: C10, U1, U3, V30, A1, A2 ...
    #[arg(long, value_name = "CLASS", value_delimiter = ',', value_parser = Class::by_name)]
    class: Vec<Class>,
    /// What the card is wanted for: boot, camera, video-4k, action-camera, dashcam, ip-camera, 3d-printer, logger, logger:200kB/s, dashcam:4x20Mbit/s ...
    #[arg(long = "for", value_name = "PURPOSE")]
    purpose: Option<Purpose>,
    /// Ask the card for its maker's health block (SD cards in a slot of their own; two commands at the most)
    #[arg(long)]
    health: bool,
    #[command(flatten)]
    out: args::Output,
    /// Keep a record a card in this directory, and say what changed since the last one
    #[arg(long, value_name = "DIR")]
    history: Option<PathBuf>,
    /// Print nothing where nothing failed and, with --history, nothing changed
    #[arg(long, short)]
    quiet: bool,
}

/// What a check writes as JSON.
#[derive(Serialize)]
struct Output<'a> {
    schema: &'static str,
    tool: Tool,
    target: &'a str,
    model: Option<&'a str>,
    size: u64,
    outcome: Outcome,
    exit_code: u8,
    /// Bytes that are really there, on a counterfeit.
    real_size: Option<u64>,
    /// The same in words.
    #[serde(skip)]
    holds: Option<String>,
    #[serde(skip)]
    word: &'static str,
    /// The class and the use that were asked for, by their questions.
    #[serde(skip)]
    asked: &'a [(Question, String)],
    answers: &'a [Answer],
    /// The longest write, where the SD standard allows less.
    #[serde(skip_serializing_if = "Option::is_none")]
    long_write: Option<Wait>,
    changes: &'a [String],
    measured: &'a Measured,
    findings: &'a Findings,
    /// What the running system has noticed of this disk.
    noticed: &'a Noticed,
    /// What the last two readings of the health block say.
    #[serde(skip_serializing_if = "Option::is_none")]
    wear: Option<Wear>,
    reads: u64,
    written: u64,
    seconds: f64,
}

/// Runs the subcommand.
pub fn run(a: CheckArgs) -> anyhow::Result<ExitCode> {
    let simulated = device::is_simulated(&a.target)?;
    let write = a.allowed.write(simulated);
    if !write && (a.reinsert || a.cache.is_some()) {
        return Err(super::misuse("--reinsert and --cache look at what was written: add --write"));
    }
    if a.reinsert && !can_go(&a.target) {
        return Err(super::misuse(format!("{} cannot be taken out; leave --reinsert away", a.target)));
    }
    let target = if simulated { device::with_content(&a.target) } else { a.target.clone() };
    let classes = Class::once(&a.class);
    let stop = stop::on_signals(stop::Second::Ends)?;
    let mut opened = device::open(&target, &OpenOptions::default())?;
    let dry = a.allowed.writing.dry.dry_run;
    let (facts, size) = (opened.facts().clone(), opened.geometry().size);
    let waiting = if write && !dry { None } else { opened.waiting() };
    let disk = disk::read(opened.look()).ok();
    let whole = 0..size / opened.geometry().sector * opened.geometry().sector;
    let time = a.measuring.time_or(if a.quick { 30.0 } else { 90.0 });
    let undo = write && !simulated;
    let window = a.cache.map_or(measure::WINDOW, |c| measure::displacing(c.0));
    let region = if write && !simulated { after_tables(disk.as_ref(), &whole) } else { whole.clone() };
    let mut guard = if write && !dry {
        let consent = a.allowed.writing.named.check(opened.id())?;
        let limits = Limits { region: Some(region.clone()), budget: GIB + window, undo: undo.then(default_dir) };
        opened.writable(&consent, &limits)?
    } else {
        opened.read_only()
    };
    stop::keeps(&guard);
    let id = guard.id().clone();
    if !a.quiet || dry {
        let stretch = measure::window(&region, window);
        say_plan(&a.target, write, undo, time, stretch.end - stretch.start);
        if dry {
            would(write, undo, &region, &stretch);
        }
    }
    undo::remind(&id.path, waiting);
    if dry {
        return Ok(a.allowed.writing.dry.done(&id));
    }
    let declared = facts.disk.as_deref().filter(|_| facts.kind != TargetKind::Partition);
    let mut declared: Option<Declared> = declared.and_then(|d| live::declared(Path::new("/sys"), d).ok());
    let no_health = ask_health(a.health, declared.as_mut());
    // A directory that cannot be used is no reason to measure in vain.
    let history = a.history.as_deref().map(|dir| remembered(dir, &key(&id, declared.as_ref()))).transpose()?;
    // Before this check's own accesses, which may fail.
    let noticed = facts.disk.as_deref().filter(|_| !simulated).map(faults::noticed).unwrap_or_default();
    let (_realtime, began) = ((!simulated).then(device::realtime), guard.now());
    let mut bar = Progress::experiments(a.quiet, (!simulated).then_some(time));
    let ask = || take_out(&id.path, simulated);
    let reinsert: Option<&dyn Fn() -> device::Result<bool>> = if a.reinsert { Some(&ask) } else { None };
    let order = Order { region, write, time, put_back: undo, seed: a.measuring.chance.seed, stop: &stop, window, reinsert };
    let examined = examine(&mut guard, &order, &mut |step| match step {
        Step::Begin(name, share) => {
            bar.begin((share * 6.0) as usize + usize::from(share > 0.0), 7, name);
            bar.so_far(share);
        }
        Step::Progress(p) => bar.tick(p.spent),
    });
    bar.end();
    let interrupted = stop.load(Ordering::Relaxed);
    Back::begins(undo, interrupted, a.quiet);
    let (reads, written) = (guard.counters().reads, guard.counters().bytes_written);
    let back = Back::of(&mut guard);
    let Examined { mut findings, broken, measured } = match examined {
        Ok(done) if !back.unkept() => done,
        // No verdict on a card whose old content could not be kept.
        cut => {
            back.tell()?;
            return Err(cut.err().map_or_else(|| anyhow::anyhow!("nothing was decided"), Into::into));
        }
    };
    let allowed = if simulated { String::new() } else { format!(" --write {}", id.consent_option()) };
    let with_writes = format!("{}{allowed}", word(&a.target));
    name_target(&mut findings, &with_writes);
    let seen = Seen {
        size,
        findings: &findings,
        broken: broken.as_deref(),
        measured: &measured,
        write,
        declared: declared.as_ref(),
        no_health: no_health.as_deref(),
        disk: disk.as_ref(),
        classes: &classes,
        purpose: a.purpose.as_ref(),
        noticed: &noticed,
        with_writes: &with_writes,
    };
    let answers = judge::answers(&seen);
    let wait = judge::long_wait(&seen);
    let (answers, long_write) = match facts.kind {
        TargetKind::Image => (judge::of_image(answers), None),
        _ => match facts.disk.as_deref().and_then(served::image) {
            Some(file) => (judge::of_loop(answers, &file), None),
            None => (answers, wait),
        },
    };
    let answers = if interrupted { judge::of_interrupted(answers, &measured) } else { answers };
    let (real_size, holds, word) = (judge::real_size(&seen), judge::holds(&seen), judge::word(&seen));
    let findings = judge::agreed(findings, size, &answers);
    let gone = back.gone();
    let class = classes.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(" and ");
    let class = Some((Question::Speed, class)).filter(|c| !c.1.is_empty());
    let asked: Vec<(Question, String)> = class.into_iter().chain(a.purpose.iter().map(|p| (Question::Purpose, p.title.into()))).collect();
    let answers = gone.map(|why| judge::of_gone(answers.clone(), why, back.garbled())).unwrap_or(answers);
    let outcome = match gone {
        Some(_) if back.garbled() => Outcome::Garbled,
        Some(_) => Outcome::Gone,
        None => Outcome::of(&answers).asked(&answers, &asked.iter().map(|a| a.0).collect::<Vec<_>>()),
    };
    let (changes, wear) = match history {
        // What a card that went away did not answer is no change of it.
        Some((path, before)) if gone.is_none() => {
            let reading = declared.as_ref().and_then(|d| d.health_block.as_ref()).map(Reading::from);
            let written = facts.disk.as_deref().filter(|_| !simulated).and_then(Written::now);
            let classes: Vec<String> = classes.iter().map(|c| c.name.clone()).collect();
            let now = Record::of(history::now(), outcome, &answers, &measured).with(reading, written, &noticed);
            let purpose = a.purpose.as_ref().map(|p| format!("{}, {}", p.name, p.needs()));
            remember(&path, before.as_ref(), now.against(purpose.as_deref(), &classes), size)?
        }
        _ => (vec![], None),
    };
    // A counterfeit or failing card has its own code already.
    let whole = back.whole() || matches!(outcome, Outcome::Counterfeit | Outcome::Failing);
    let exit_code = super::stop::number(if whole { outcome.exit_code() } else { 1 });
    let model = declared.as_ref().and_then(|d| d.name.as_deref()).or(id.model.as_deref());
    let output = Output {
        schema: SCHEMA,
        tool: Tool::this(),
        target: &a.target,
        model,
        size,
        outcome,
        exit_code,
        real_size,
        holds,
        word,
        asked: &asked,
        answers: &answers,
        long_write,
        changes: &changes,
        measured: &measured,
        findings: &findings,
        noticed: &noticed,
        wear,
        reads,
        written,
        seconds: (guard.now() - began).secs(),
    };
    print(&a, &output)?;
    back.tell()?;
    Ok(ExitCode::from(exit_code))
}

/// Where a check may write on a device: behind the partition table, which is never touched, even though it would be put back.
fn after_tables(disk: Option<&disk::Disk>, whole: &std::ops::Range<u64>) -> std::ops::Range<u64> {
    let table = disk.is_some_and(|d| d.table.is_some());
    let first = if table { MIB } else { 0 };
    first.min(whole.end)..whole.end
}

fn ask_health(wanted: bool, declared: Option<&mut Declared>) -> Option<String> {
    let declared = declared.filter(|_| wanted)?;
    match live::health_block(declared) {
        Ok(block) => {
            declared.health_block = Some(block);
            None
        }
        Err(why) => Some(format!("no health block: {why}")),
    }
}

/// Has the user take the card out and put it in again, and waits for that: was it out? A simulated card has no slot to look at.
fn take_out(path: &str, simulated: bool) -> device::Result<bool> {
    if simulated {
        return Ok(true);
    }
    let watch = Watch::of(path);
    tell!("{path}: take the card out, wait 5 s, put it in again, and press Enter");
    let mut line = String::new();
    let failed = |e: std::io::Error| DeviceError::Refused(format!("cannot wait for Enter: {e}"));
    if std::io::stdin().read_line(&mut line).map_err(failed)? == 0 {
        return Err(DeviceError::Refused("standard input has ended; --reinsert waits for Enter".into()));
    }
    Ok(watch.left())
}

/// An image file stays where it is, behind a loop device as well.
fn can_go(target: &str) -> bool {
    let name = target.strip_prefix("/dev/");
    target.starts_with("sim:") || name.is_some_and(|name| !served::is_image(name))
}

/// A window of this size displaces a cache of this size.
fn cache_size(s: &str) -> Result<Bytes, String> {
    let size: Bytes = s.parse()?;
    if (measure::WINDOW..=64 * GIB).contains(&size.0) { Ok(size) } else { Err("write from 64MiB to 64GiB".into()) }
}

/// About so many MiB beside the stretch whose rate is measured, at most: written; read where nothing is written; and read.
const WRITTEN: u64 = 136;
const SMALL_READS: u64 = 16;
const READ: u64 = 160;

fn say_plan(target: &str, write: bool, undo: bool, time: Nanos, window: u64) {
    match (write, undo) {
        (true, true) => tell!(
            "{target}: at most {time}, putting back included as far as it is foreseen; writes up to about {} MiB, which are kept in a journal and put back",
            WRITTEN + window / MIB
        ),
        (true, false) => tell!("{target}: at most {time} of the card's time"),
        _ => tell!("{target}: at most {time}; writes nothing"),
    }
}

/// What would be read and written, and where.
fn would(write: bool, undo: bool, region: &std::ops::Range<u64>, w: &std::ops::Range<u64>) {
    let stretch = format!("a stretch of {} from byte {} on", Bytes(w.end - w.start), w.start);
    let mib = |n: u64| Bytes((n << 20) + w.end - w.start);
    if !write {
        tell!("would write nothing, and read up to about {}: {stretch}, and small pieces all over the target", mib(SMALL_READS));
        return;
    }
    let kept = if undo { ", and what is there already, which is put back" } else { "" };
    tell!(
        "would write up to about {} in bytes {} to {}: places all over it for the real capacity, and {stretch}",
        mib(WRITTEN),
        region.start,
        region.end
    );
    tell!("would read up to about {}: what was written, small pieces all over the target{kept}", mib(READ));
}

/// What names a card in a history: its CID, else serial number or model with the size.
fn key(id: &device::TargetId, declared: Option<&Declared>) -> String {
    let cid = declared.and_then(|d| d.cid.as_ref()).map(|c| format!("cid-{}", c.raw));
    // The serial number of a reader is the same for all cards in it.
    let serial = || id.serial.as_ref().map(|s| format!("serial-{s}-{}", id.size));
    cid.or_else(serial).unwrap_or_else(|| format!("{}-{}", id.model.as_deref().unwrap_or(&id.path), id.size))
}

/// The file of a card in a history, and what it holds of the check before.
fn remembered(dir: &Path, key: &str) -> anyhow::Result<(PathBuf, Option<Record>)> {
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make the directory {}", dir.display()))?;
    let path = history::file(dir, key);
    super::outputs::file(&path)?;
    let before = history::load(&path).with_context(|| format!("{}: remove it to begin anew", path.display()))?;
    Ok((path, before))
}

/// What changed since the last check of this card; the new record takes the place of the old one.
fn remember(path: &Path, before: Option<&Record>, mut now: Record, size: u64) -> anyhow::Result<(Vec<String>, Option<Wear>)> {
    if let Some(before) = before {
        now.weigh(before, size);
    }
    report::put(path, &serde_json::to_string_pretty(&now)?).with_context(|| format!("cannot write {}", path.display()))?;
    let changes = before.map_or_else(|| vec!["first check of this card in this history".into()], |b| b.changes(&now));
    Ok((changes, now.wear))
}

fn print(a: &CheckArgs, o: &Output) -> anyhow::Result<()> {
    let to_stdout = a.out.put(|| Ok(serde_json::to_string_pretty(o)? + "\n"), || Ok(serde_json::to_value(o)?))?;
    let silent = a.quiet && o.changes.is_empty() && matches!(o.outcome, Outcome::Fine | Outcome::NotKnown);
    if !silent && !to_stdout {
        put!("{}", text(o, colour(&std::io::stdout()), super::width().min(100)));
    }
    Ok(())
}

/// The whole in one line, which answers what was asked for, and its colour.
fn headline(o: &Output) -> (String, &'static str) {
    let names = |of: &dyn Fn(Question) -> bool| o.asked.iter().filter(|a| of(a.0)).map(|a| a.1.as_str()).collect::<Vec<_>>().join(" and ");
    let is = |q: Question, v: Verdict| o.answers.iter().any(|a| a.question == q && a.verdict == v);
    match o.outcome {
        Outcome::Fine => {
            let also = if o.asked.is_empty() { String::new() } else { format!(", also for {}", names(&|_| true)) };
            // A recorder without a buffer for that long loses data on a card that otherwise passes.
            let but = o.long_write.map_or(String::new(), |w| format!("; a write can take {} ms", three(w.ms)));
            (format!("This card is fine{also}{but}."), "32")
        }
        Outcome::Counterfeit => {
            let real = o.holds.as_ref().map_or(String::new(), |r| format!(", holds {r}"));
            (format!("{}: this card reports {}{real}.", o.word.to_uppercase(), crate::units::as_sold(o.size)), "31;1")
        }
        Outcome::Failing => ("This card is FAILING.".to_string(), "31;1"),
        Outcome::BelowClass => {
            let what = if is(Question::Speed, Verdict::Fail) { "its class" } else { "this use needs" };
            (format!("This card is slower than {what}."), "31")
        }
        Outcome::NotKnown => {
            let open = names(&|q| is(q, Verdict::NotKnown));
            let whole = if open.is_empty() {
                "not everything was tested".into()
            } else {
                format!("whether it is fast enough for {open} is not known")
            };
            (format!("Nothing failed; {whole}."), "33")
        }
        Outcome::Gone => ("This card WENT AWAY during the check.".to_string(), "31;1"),
        Outcome::Garbled => ("This card gave an answer that is NOT OF THE PROTOCOL (docs/exec.md).".to_string(), "31;1"),
    }
}

/// One screen: the whole in one line, an answer a line, what to do.
fn text(o: &Output, colour: bool, width: usize) -> String {
    let paint = |code: &str, text: &str| if colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() };
    let (headline, code) = headline(o);
    let name = o.model.map_or(String::new(), |m| format!(" {m}"));
    let mut out = format!("{}{name}, {}\n{}\n\n", o.target, crate::units::as_sold(o.size), paint(code, &headline));
    const INDENT: usize = 30;
    // On a narrow screen what was asked has a line of its own.
    let narrow = width < NARROW;
    for answer in o.answers {
        let word = format!("{:<1$}", answer.verdict.word(), if narrow { 0 } else { 11 });
        let word = match answer.verdict {
            Verdict::Pass => paint("32", &word),
            Verdict::Fail => paint("31;1", &word),
            Verdict::NotKnown => paint("33", &word),
        };
        let because = if answer.verdict == Verdict::NotKnown { format!("because {}", answer.because) } else { answer.because.clone() };
        if narrow {
            out += &format!("{}: {word}\n", answer.question.title());
            lines(&because, width.saturating_sub(2)).iter().for_each(|l| out += &format!("  {l}\n"));
            continue;
        }
        let mut rest = lines(&because, width.saturating_sub(INDENT)).into_iter();
        out += &format!("{:<19}{word}{}\n", answer.question.title(), rest.next().unwrap_or_default());
        rest.for_each(|l| out += &format!("{:INDENT$}{l}\n", ""));
    }
    let todo: Vec<&str> = o.answers.iter().filter_map(|a| a.todo.as_deref()).collect();
    for (title, all) in [("What to do", todo), ("Since the last check", o.changes.iter().map(String::as_str).collect())] {
        let mut said: Vec<&str> = vec![];
        for what in all {
            if said.is_empty() {
                out += &format!("\n{title}\n");
            }
            if !said.contains(&what) {
                said.push(what);
                let mut rest = lines(what, width.saturating_sub(4)).into_iter();
                out += &format!("  - {}\n", rest.next().unwrap_or_default());
                rest.for_each(|l| out += &format!("    {l}\n"));
            }
        }
    }
    out + &format!("\n{} reads, {} written; {:.1} s of the device's time\n", o.reads, about(o.written), o.seconds)
}
