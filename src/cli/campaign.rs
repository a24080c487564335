//! `nandscope campaign`: many cards, as many at a time as there are readers; goes on where it was killed.

use super::args::Output;
use super::campaign_table::{Live, Row, table};
use super::stop;
use crate::campaign::contention::{self, Lanes};
use crate::campaign::state::{Dir, End, RESULT, Stands, finish, stands};
use crate::campaign::{Bus, Card, Event, Host, Outcome, Plan, SCHEMA, Shared, Step, find, says, words, work};
use crate::device::{self, Target};
use crate::host::sysfs::Sys;
use crate::saved::Tool;
use crate::survey::record::Told;
use crate::survey::{Added, Place, Survey};
use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Instant, SystemTime};

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_help = AFTER)]
pub struct CampaignArgs {
    #[command(subcommand)]
    sub: Option<Sub>,
    /// Cards, steps and consent; see below
    #[arg(required = true, value_name = "PLAN.toml")]
    plan: Option<PathBuf>,
    /// Directory that keeps what is done [default: the plan's name with .campaign]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Print which cards are here, what would be done and written, and end
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    out: Output,
    /// No table while it runs
    #[arg(long, short)]
    quiet: bool,
}

const AFTER: &str = "\
A plan:

  steps = [\"check\", \"probe\", \"rate\", \"twin\", \"layout\"]   # check and probe if not given
  bus = \"measure\"              # which readers slow each other; or \"shared\", \"apart\"
  [consent]
  serials = [\"0x1a2b3c4d\"]     # these may be written; or file = \"serials.txt\"
  [options]
  probe = [\"--time\", \"5m\"]     # further words of a step's command
  [[card]]
  serial = \"0x1a2b3c4d\"        # in whichever reader it is; or target = \"/dev/sdb\"
  lot = \"A\"
  [[card]]
  target = \"sim:toshiba-emmc\"
  lot = \"B\"

The same command goes on where it stopped: what is done is not done again, and what an interrupted step overwrote is put back first. With \
survey = \"postgres://...\" and a name, any number of hosts work through the same cards.

Exit codes: 130 interrupted, 1 a card is not done, else 6, 7 or 8 where a card is counterfeit, failing or below its class, else 0.";

#[derive(Subcommand)]
enum Sub {
    /// Runs one step and keeps how it ended
    #[command(hide = true)]
    Step(StepArgs),
}

#[derive(Args)]
struct StepArgs {
    part: PathBuf,
    #[arg(long)]
    host: Option<String>,
    #[arg(last = true)]
    words: Vec<std::ffi::OsString>,
}

pub fn run(a: CampaignArgs) -> anyhow::Result<ExitCode> {
    match a {
        CampaignArgs { sub: Some(Sub::Step(s)), .. } => step(s),
        CampaignArgs { plan: Some(plan), state, dry_run, out, quiet, .. } => campaign(&plan, state, dry_run, &out, quiet),
        _ => unreachable!("clap asks for a plan"),
    }
}

/// A step in this process: the directory gets its name with the last thing that the process does.
fn step(a: StepArgs) -> anyhow::Result<ExitCode> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in stop::ending() {
        signal_hook::flag::register(signal, Arc::clone(&asked))?;
    }
    let began = Instant::now();
    let code = super::answer(std::iter::once("nandscope".into()).chain(a.words).collect());
    // What a signal cut is not done.
    if !asked.load(Ordering::Relaxed) {
        let code = (0..=u8::MAX).find(|c| ExitCode::from(*c) == code).unwrap_or(1);
        finish(&a.part, &End { code, seconds: began.elapsed().as_secs_f64(), host: a.host })?;
    }
    Ok(code)
}

fn campaign(path: &Path, state: Option<PathBuf>, dry: bool, out: &Output, quiet: bool) -> anyhow::Result<ExitCode> {
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    let base = path.parent().unwrap_or(Path::new("."));
    let plan = Plan::parse(&text, base).and_then(|p| words_of_steps(&p).map(|()| p)).map_err(|e| super::misuse(format!("{name}: {e}")))?;
    let sys = Sys::default();
    let state = state.unwrap_or_else(|| path.with_extension("campaign"));
    if dry {
        return Ok(planned(&plan, &sys, &state));
    }
    // Before the first of a hundred cards is begun. Nothing is opened: a step that a killed campaign left may still use an image.
    if let Some(why) = plan.card.iter().filter_map(|c| c.place.as_deref()).find_map(|t| Target::of(t).err()) {
        return Err(super::misuse(format!("{name}: {why}")));
    }
    let dir = Dir::open(&state)?;
    let planned: Vec<String> = plan.card.iter().map(|c| crate::campaign::place(c.key())).collect();
    for gone in dir.cards().into_iter().filter(|c| !planned.contains(c)) {
        tell!("nandscope: {gone} is no longer in the plan; its results stay in {} and in the survey", dir.path().display());
    }
    let stop = stop::on_signals(stop::Second::Ends)?;
    let place = place(&plan, &dir);
    let shared = match plan.server() {
        Some(url) => {
            let keys: Vec<&str> = plan.card.iter().map(Card::key).collect();
            let lease = plan.lease().map_err(anyhow::Error::msg)?.secs();
            let shared = Shared::begin(url, plan.name.as_deref().unwrap_or_default(), &host_name(&dir)?, lease, &keys);
            Some(shared.map_err(|e| anyhow::anyhow!("cannot use the server: {e}. Is it running, and does the database exist?"))?)
        }
        None => None,
    };
    let lanes = lanes(&plan, &dir, &sys, quiet)?;
    let busy = Mutex::new(());
    let keep = |i: usize| {
        // One at a time: they share one index.
        let _one = busy.lock().unwrap_or_else(PoisonError::into_inner);
        kept(&plan.card[i], &plan, &dir, &place)
    };
    let (send, events) = mpsc::channel();
    let tell = |e: Event| {
        let _ = send.send(e);
    };
    let program = std::env::current_exe().context("where is this program?")?;
    let host =
        Host { plan: &plan, dir: &dir, program, sys, lanes: lanes.clone(), shared: shared.as_ref(), stop: &stop, tell: &tell, keep: &keep };
    let mut live = Live::new(&plan, &dir, lanes.lines(), quiet);
    let done = std::thread::scope(|scope| {
        let worker = scope.spawn(|| work(&host));
        while !worker.is_finished() {
            live.show(events.recv_timeout(std::time::Duration::from_millis(100)).ok());
        }
        worker.join()
    });
    let Ok(done) = done else { bail!("a worker ended in a panic; the same command goes on") };
    while let Ok(e) = events.try_recv() {
        live.show(Some(e));
    }
    live.end();
    let page = page(&plan, &dir, &place, &lanes)?;
    let rows: Vec<Row> = plan.card.iter().zip(&done).map(|(c, o)| Row::of(c, &plan.steps_of(c), &dir, o)).collect();
    let code = super::stop::number(code(&rows));
    let value = json!({
        "schema": SCHEMA, "tool": Tool::this(), "name": plan.name, "state": dir.path(), "exit_code": code,
        "page": page, "bus": lanes, "cards": rows.iter().map(|r| r.json(&dir)).collect::<Vec<_>>(),
    });
    if !out.write(&value)? {
        put!("{}", table(&rows, super::width()));
        lanes.lines().iter().for_each(|l| say!("{l}"));
        let whole = rows.iter().filter(|r| r.whole()).count();
        say!();
        say!("{whole} of {} cards are done; results are in {}", rows.len(), dir.path().display());
        if let Some(page) = page {
            say!("lots beside each other: {}", page.display());
        }
        if stop.load(Ordering::Relaxed) {
            say!("interrupted; the same command goes on where it stopped");
        } else if whole < rows.len() {
            say!("the same command tries again what is not done");
        }
    }
    Ok(ExitCode::from(code))
}

/// Not done, else the worst that was found.
fn code(rows: &[Row]) -> u8 {
    if rows.iter().any(|r| !r.whole()) {
        return 1;
    }
    [6, 7, 8].into_iter().find(|c| rows.iter().any(|r| r.codes().any(|x| x == *c))).unwrap_or(0)
}

/// What would be done.
fn planned(plan: &Plan, sys: &Sys, state: &Path) -> ExitCode {
    let mut absent = false;
    for c in &plan.card {
        let is_done = |s: &Step| matches!(stands(state, c.key(), *s), Stands::Done(_));
        let (done, open): (Vec<Step>, Vec<Step>) = plan.steps_of(c).into_iter().partition(is_done);
        let names = |all: &[Step]| all.iter().map(|s| s.name()).collect::<Vec<_>>().join(", ");
        let steps = match (&done[..], &open[..]) {
            ([], _) => names(&open),
            (_, []) => format!("{} done", names(&done)),
            _ => format!("{} ({} done)", names(&open), names(&done)),
        };
        let found = find(c, sys);
        absent |= found.is_none();
        let what = match &found {
            None => "in no reader of this host".to_string(),
            Some((target, serial)) => 'what: {
                if let Some(why) = unknown(target) {
                    absent = true;
                    break 'what why;
                }
                let written = match plan.consent_of(c, serial.as_deref()) {
                    _ if c.write == Some(false) => "read only".into(),
                    _ if device::is_simulated(target).unwrap_or(false) => "simulated, written".into(),
                    None => "read only: the plan names no consent".into(),
                    Some(id) => format!("written with consent {id}; put back at the end of each step"),
                };
                format!("{target}: {steps}; {written}")
            }
        };
        say!("{:<20} {what}", c.key());
    }
    say!("nothing was read or written");
    ExitCode::from(u8::from(absent))
}

/// Whether each step's command takes the words that the plan gives it.
fn words_of_steps(plan: &Plan) -> Result<(), String> {
    let (here, card) = (Path::new(""), &plan.card[0]);
    for step in plan.options.keys() {
        let command = words(plan, card, "sim:null", None, *step, here, here);
        let all: Vec<std::ffi::OsString> = std::iter::once("nandscope".into()).chain(command.into_iter().map(Into::into)).collect();
        if let Err(e) = super::command_line().try_get_matches_from(&all) {
            if !e.use_stderr() {
                return Err(format!("options.{}: no step has --help or --version", step.name()));
            }
            let said = super::usage::usage(&e, &all);
            let why = said.split("\n\n").next().unwrap_or(&said);
            return Err(format!("options.{}: {}", step.name(), why.strip_prefix("nandscope: ").unwrap_or(why)));
        }
    }
    Ok(())
}

/// Why a simulated card cannot be a target, if it cannot; devices are looked for elsewhere, and programs are not started for this.
fn unknown(target: &str) -> Option<String> {
    if ["/", "exec:", "serial:"].iter().any(|other| target.starts_with(other)) {
        return None;
    }
    crate::device::open(target, &crate::device::OpenOptions::default()).err().map(|e| e.to_string())
}

fn place(plan: &Plan, dir: &Dir) -> Place {
    match (plan.server(), &plan.survey) {
        (Some(url), _) => Place::Server(url.into()),
        (None, Some(d)) => Place::Dir(d.into()),
        (None, None) => Place::Dir(dir.path().join("survey")),
    }
}

/// A name that no other state directory has.
fn host_name(dir: &Dir) -> anyhow::Result<String> {
    let path = dir.path().join("host.txt");
    if let Ok(name) = std::fs::read_to_string(&path) {
        return Ok(name.trim().into());
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_nanos());
    let name = format!("{}-{:x}-{:x}", rustix::system::uname().nodename().to_string_lossy(), now as u64 >> 10, std::process::id());
    crate::report::put(&path, &name)?;
    Ok(name)
}

/// Who takes turns: as the plan says, as it was measured before, or measured now.
fn lanes(plan: &Plan, dir: &Dir, sys: &Sys, quiet: bool) -> anyhow::Result<Lanes> {
    let targets = plan.card.iter().filter_map(|c| find(c, sys)).map(|f| f.0);
    let mut readers: Vec<contention::Reader> = targets.filter_map(|t| contention::reader(&t, sys)).collect();
    nandscope_stats::sort_by(&mut readers, |a, b| a.target.cmp(&b.target));
    readers.dedup();
    let running = plan.card.iter().any(|c| plan.steps_of(c).iter().any(|s| dir.stands(c.key(), *s) == Stands::Running));
    let path = dir.path().join("bus.json");
    match plan.bus {
        Bus::Apart => return Ok(Lanes::default()),
        Bus::Shared => return Ok(Lanes::one(&readers)),
        Bus::Measure if readers.len() < 2 => return Ok(Lanes::default()),
        Bus::Measure => {}
    }
    let before: Option<Value> = std::fs::read_to_string(&path).ok().and_then(|t| serde_json::from_str(&t).ok());
    if let Some(before) = before.filter(|b| b["readers"] == json!(readers)) {
        return Ok(serde_json::from_value(before["bus"].clone())?);
    }
    // Beside a step that still runs nothing can be measured.
    if running {
        return Ok(Lanes::one(&readers));
    }
    if !quiet {
        tell!("reading from {} readers alone and at the same time, to see which slow each other", readers.len());
    }
    let found = contention::lanes(&readers, &mut |who| {
        let targets: Vec<&str> = who.iter().map(|&i| readers[i].target.as_str()).collect();
        contention::read(&targets)
    });
    crate::report::put(&path, &json!({ "readers": readers, "bus": found }).to_string())?;
    Ok(found)
}

/// What says most of a card: its probe, or the check that says why there is none.
fn told_by(c: &Card, plan: &Plan, dir: &Dir) -> Option<Step> {
    let done = |s: &Step| matches!(dir.stands(c.key(), *s), Stands::Done(_));
    let failed = |s: &Step| matches!(dir.stands(c.key(), *s), Stands::Done(End { code: 6 | 7, .. }));
    let steps = plan.steps_of(c);
    if steps.contains(&Step::Probe) && done(&Step::Probe) {
        return Some(Step::Probe);
    }
    steps.contains(&Step::Check).then_some(Step::Check).filter(failed)
}

/// The probe of a card goes into the survey, or the check of one that is counterfeit or failing; once, however often it is added.
fn kept(c: &Card, plan: &Plan, dir: &Dir, place: &Place) -> Result<(), String> {
    let Some(step) = told_by(c, plan, dir) else { return Ok(()) };
    let file = dir.step(c.key(), step).join(RESULT);
    let told = Told {
        name: c.name.clone(),
        maker: c.maker.clone(),
        part: c.part.clone(),
        price: c.price.clone(),
        lot: c.lot.clone(),
        note: plan.name.as_ref().map(|n| format!("campaign {n}")),
        ..Told::default()
    };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let mut refused = None;
    let mut s = Survey::begin(place).map_err(|e| e.to_string())?;
    let mut seen = |_: &Path, what: Added| {
        if let Added::Refused(why) = what {
            refused = Some(why);
        }
    };
    s.add(&[file], &told, now, &mut seen).map_err(|e| e.to_string())?;
    refused.map_or(Ok(()), Err)
}

/// Lots beside each other, where cards have lots and something is in the survey.
fn page(plan: &Plan, dir: &Dir, place: &Place, lanes: &Lanes) -> anyhow::Result<Option<PathBuf>> {
    let any = plan.card.iter().any(|c| c.lot.is_some() && told_by(c, plan, dir).is_some());
    if !any {
        return Ok(None);
    }
    let page = dir.path().join("lots.html");
    super::survey::lots_page(place, &page, lanes.lines())?;
    Ok(Some(page))
}

/// What became of a step, in a word.
pub(super) fn word(step: Step, stands: &Stands, result: &Path) -> &'static str {
    match stands {
        Stands::Done(e) if (step, e.code) == (Step::Layout, 0) && no_table(result) => "nothing to check",
        Stands::Done(e) | Stands::Failed(e) => says(step, e.code),
        Stands::New => "-",
        Stands::Running => "running",
        Stands::Interrupted => "interrupted",
    }
}

/// The audit found no partition and no file system.
fn no_table(result: &Path) -> bool {
    let read = std::fs::read_to_string(result).ok().and_then(|t| serde_json::from_str::<Value>(&t).ok());
    read.is_some_and(|v| {
        v["disk"]["table"].is_null()
            && v["disk"]["parts"].as_array().is_none_or(|p| p.iter().all(|p| p["number"].is_null() && p["volume"].is_null()))
    })
}

/// What is to be said of a card as a whole.
pub(super) fn note(o: &Outcome) -> String {
    match o {
        Outcome::Whole => String::new(),
        Outcome::Cut(why) | Outcome::Stopped(why) => why.clone(),
        Outcome::Absent => "in no reader of this host".into(),
        Outcome::Elsewhere { host, done: true } => format!("done on {host}"),
        Outcome::Elsewhere { host, done: false } => format!("on {host}"),
    }
}
