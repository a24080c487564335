//! Works through the cards: finds each, puts back what an interrupted step left, runs its steps as processes of their own, each in its turn.

use super::contention::Lanes;
use super::shared::Shared;
use super::state::{Asked, CampaignError, Dir, End, LOG, RESULT, Stands, TWIN, finish};
use super::turns::{Lane, Turn, Turns};
use super::{Card, Plan, Step};
use crate::device::undo::{Saved, default_dir, pending};
use crate::device::{OpenOptions, RecoverOptions, is_program, open, recover};
use crate::host::list::list;
use crate::host::sysfs::Sys;
use crate::shell::word;
use serde_json::json;
use std::collections::HashMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lane of what computes instead of waiting for a card.
const PROCESSORS: &str = "processors";
/// Most cards at the same time where the plan does not say.
const WORKERS: usize = 64;
/// How often a process is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// What happens, by the number of the card.
#[derive(Clone, Debug)]
pub enum Event {
    /// A step waits until others are done with what they share.
    Waits(usize, Step),
    Begins(usize, Step),
    /// It runs already: of a campaign that was killed.
    GoesOn(usize, Step),
    Ends(usize, Step, End),
    Stopped(usize, String),
    Whole(usize),
}

/// What became of a card.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// All its steps are done, here or on another host.
    Whole,
    /// Some steps are left out, and why.
    Cut(String),
    /// It is in no reader of this host.
    Absent,
    /// An error, or the campaign was interrupted.
    Stopped(String),
    /// Another host has it, or has done it.
    Elsewhere { host: String, done: bool },
}

/// What works through a plan.
pub struct Host<'a> {
    pub plan: &'a Plan,
    pub dir: &'a Dir,
    /// This program.
    pub program: PathBuf,
    pub sys: Sys,
    pub lanes: Lanes,
    pub shared: Option<&'a Shared>,
    pub stop: &'a AtomicBool,
    pub tell: &'a (dyn Fn(Event) + Sync),
    /// Puts the results of a card into the survey.
    pub keep: &'a (dyn Fn(usize) -> Result<(), String> + Sync),
}

/// The target of a card on this host, and its serial number.
pub fn find(card: &Card, sys: &Sys) -> Option<(String, Option<String>)> {
    match (&card.place, &card.serial) {
        (Some(t), _) => {
            let serial =
                std::fs::canonicalize(t).ok().and_then(|p| crate::host::safety::device_number(&p)).and_then(|d| sys.node(d).ok()?.serial());
            // What is no path is a simulated card or a program.
            (!t.starts_with('/') || Path::new(t.split('?').next().unwrap_or(t)).exists()).then(|| (t.clone(), serial))
        }
        (None, Some(s)) => {
            let found = list(sys).into_iter().find(|l| l.disk.is_none() && l.serial.as_ref() == Some(s));
            found.map(|l| (l.path, l.serial))
        }
        (None, None) => None,
    }
}

/// The words of a step's command.
pub fn words(plan: &Plan, card: &Card, target: &str, serial: Option<&str>, step: Step, part: &Path, probe: &Path) -> Vec<String> {
    let path = |p: PathBuf| p.display().to_string();
    let json = format!("--json={}", path(part.join(RESULT)));
    let mut all: Vec<String> = match step {
        Step::Check | Step::Probe | Step::Rate => vec![step.name().into(), target.into(), "-q".into(), json],
        Step::Twin => vec!["twin".into(), path(probe.join(RESULT)), "-q".into(), "-o".into(), path(part.join(TWIN)), json],
        Step::Layout => vec!["layout".into(), "audit".into(), target.into(), "--report".into(), path(probe.join(RESULT)), json],
    };
    if step.times() {
        match (card.write, plan.consent_of(card, serial)) {
            (Some(false), _) => all.push("--read-only".into()),
            (_, Some(id)) => all.extend(["--write".into(), "--consent".into(), id]),
            _ => {}
        }
    }
    all.extend(plan.options.get(&step).into_iter().flatten().cloned());
    all
}

type Running<'t> = Mutex<HashMap<(usize, Step), Turn<'t>>>;

/// Works until nothing is left that this host can do; what became of each card.
pub fn work(h: &Host) -> Vec<Outcome> {
    let n = h.plan.card.len();
    let (turns, next) = (Turns::default(), AtomicUsize::new(0));
    let running: Running = Mutex::default();
    let _ = h.dir.note(json!({ "event": "starts" }));
    for (i, c) in h.plan.card.iter().enumerate() {
        for s in h.plan.steps_of(c).into_iter().filter(|s| h.dir.stands(c.key(), *s) == Stands::Running) {
            let lanes = h.lanes_of(c, s);
            let _ = h.dir.note(json!({ "card": c.key(), "step": s, "event": "goes_on", "lanes": names(&lanes) }));
            lock(&running).insert((i, s), turns.force(&lanes));
        }
    }
    let out: Mutex<Vec<Outcome>> = Mutex::new(vec![Outcome::Stopped("interrupted".into()); n]);
    std::thread::scope(|scope| {
        for _ in 0..h.plan.workers.unwrap_or(WORKERS).min(n) {
            scope.spawn(|| {
                while let Some(i) = h.next(&next) {
                    let done = h.card(i, &turns, &running);
                    match &done {
                        Outcome::Whole | Outcome::Cut(_) => (h.tell)(Event::Whole(i)),
                        Outcome::Stopped(why) => (h.tell)(Event::Stopped(i, why.clone())),
                        Outcome::Absent => (h.tell)(Event::Stopped(i, "in no reader of this host".into())),
                        Outcome::Elsewhere { .. } => {}
                    }
                    if let Some(shared) = h.shared {
                        let whole = matches!(done, Outcome::Whole | Outcome::Cut(_));
                        shared.give(h.plan.card[i].key(), whole, h.stop.load(Ordering::Relaxed));
                    }
                    lock(&out)[i] = done;
                }
            });
        }
    });
    let mut out = out.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(states) = h.shared.and_then(|s| s.states().ok()) {
        for (c, o) in h.plan.card.iter().zip(&mut out).filter(|x| !matches!(x.1, Outcome::Whole | Outcome::Cut(_))) {
            match states.get(c.key()) {
                Some((state, host)) if state == "done" || state == "taken" => {
                    // Tables and pages show the whole campaign.
                    let _ = h.copy(c.key());
                    *o = Outcome::Elsewhere { host: host.clone(), done: state == "done" };
                }
                _ if find(c, &h.sys).is_none() => *o = Outcome::Absent,
                _ => {}
            }
        }
    }
    out
}

fn lock<T>(m: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

fn names(lanes: &[(Lane, usize)]) -> Vec<&str> {
    lanes.iter().map(|l| l.0.as_str()).collect()
}

impl Host<'_> {
    /// The next card: of the plan, or of the server, which gives each to one host.
    fn next(&self, next: &AtomicUsize) -> Option<usize> {
        let Some(shared) = self.shared else {
            let i = next.fetch_add(1, Ordering::Relaxed);
            return (i < self.plan.card.len()).then_some(i);
        };
        while !self.stop.load(Ordering::Relaxed) {
            let here: Vec<&str> = self.plan.card.iter().filter(|c| find(c, &self.sys).is_some()).map(Card::key).collect();
            match shared.take(&here) {
                Ok(Some(key)) => return self.plan.card.iter().position(|c| c.key() == key),
                Ok(None) => return None,
                // Others work on what is left: one of them may die.
                Err(_) => std::thread::sleep(Duration::from_millis(300)),
            }
        }
        None
    }

    fn alive(&self, key: &str) -> bool {
        !self.stop.load(Ordering::Relaxed) && self.shared.is_none_or(|s| s.beat(key))
    }

    /// Most places of each lane that a step needs.
    fn lanes_of(&self, c: &Card, step: Step) -> Vec<(Lane, usize)> {
        let processors = || vec![(PROCESSORS.to_string(), std::thread::available_parallelism().map_or(1, usize::from))];
        let target = find(c, &self.sys).map(|f| f.0).unwrap_or_default();
        match self.lanes.of(&target) {
            _ if step == Step::Twin => processors(),
            Some(lane) => vec![(format!("bus {lane}"), 1)],
            None if !target.starts_with('/') => processors(),
            None => vec![],
        }
    }

    fn card(&self, i: usize, turns: &Turns, running: &Running) -> Outcome {
        let c = &self.plan.card[i];
        let key = c.key();
        let steps = self.plan.steps_of(c);
        // What runs already is waited for first: it has the card open.
        for &s in &steps {
            let place = lock(running).remove(&(i, s));
            if self.dir.stands(key, s) == Stands::Running {
                (self.tell)(Event::GoesOn(i, s));
                while self.dir.stands(key, s) == Stands::Running && self.alive(key) {
                    std::thread::sleep(LOOK);
                }
            }
            if let (true, Stands::Done(end) | Stands::Failed(end)) = (place.is_some(), self.dir.stands(key, s)) {
                let _ = self.dir.note(json!({ "card": key, "step": s, "event": "ends", "code": end.code }));
                (self.tell)(Event::Ends(i, s, end));
            }
            drop(place);
        }
        match self.steps(i, c, &steps, turns) {
            Ok(cut) => match (self.keep)(i) {
                Err(why) => Outcome::Stopped(format!("not in the survey: {why}")),
                Ok(()) => cut.map_or(Outcome::Whole, Outcome::Cut),
            },
            Err(out) => out,
        }
    }

    /// Why some steps are left out, where they are.
    fn steps(&self, i: usize, c: &Card, steps: &[Step], turns: &Turns) -> Result<Option<String>, Outcome> {
        let key = c.key();
        self.copy(key).map_err(Outcome::Stopped)?;
        self.of_this_plan(c, steps).map_err(Outcome::Stopped)?;
        let done = |s: Step| match self.dir.stands(key, s) {
            Stands::Done(end) => Some(end),
            _ => None,
        };
        let mut found = None;
        for &step in steps {
            let end = match done(step) {
                Some(end) => end,
                None => {
                    if found.is_none() {
                        found = Some(self.ready(c, steps)?);
                    }
                    let (target, serial) = found.clone().unwrap_or_default();
                    self.step(i, c, step, &target, serial.as_deref(), turns)?
                }
            };
            if let Some(shared) = self.shared {
                let read = |name: &str| std::fs::read_to_string(self.dir.step(key, step).join(name)).ok();
                let kept = shared.keep(key, step, &end, &read(RESULT).unwrap_or_default(), read(TWIN).as_deref());
                kept.map_err(|e| Outcome::Stopped(e.to_string()))?;
            }
            if step == Step::Check && matches!(end.code, 6 | 7) && steps.len() > 1 {
                return Ok(Some(format!("the rest is left out: check says {}", says(step, end.code))));
            }
        }
        Ok(None)
    }

    /// What is done was asked as the plan asks now: another card, or other words, have other results.
    fn of_this_plan(&self, c: &Card, steps: &[Step]) -> Result<(), String> {
        for &step in steps.iter().filter(|s| matches!(self.dir.stands(c.key(), **s), Stands::Done(_))) {
            let (Some(was), now) = (self.dir.asked(c.key(), step), self.plan.asked(c, step)) else { continue };
            // The same card in another reader.
            let moved = now.card.starts_with('/') && was.card.starts_with('/') && self.identified(c).is_ok();
            let was = if moved { Asked { card: now.card.clone(), ..was } } else { was };
            if let Some(why) = was.unlike(&now) {
                let place = self.dir.step(c.key(), step).display().to_string();
                return Err(format!("{} {why}; remove {} to do it again", step.name(), word(&place)));
            }
        }
        Ok(())
    }

    /// A card at a path is the one of before.
    fn identified(&self, c: &Card) -> Result<(), String> {
        let found = find(c, &self.sys).ok_or("it is in no reader of this host")?;
        if !is_program(&found.0) && Path::new(&found.0).exists() && crate::device::is_simulated(&found.0).is_ok_and(|s| !s) {
            let id = open(&found.0, &OpenOptions::default()).map_err(|e| e.to_string())?.id().clone();
            self.dir.same_card(c.key(), &id).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    /// Copies the steps of a card that other hosts did.
    fn copy(&self, key: &str) -> Result<(), String> {
        let Some(shared) = self.shared else { return Ok(()) };
        let done = shared.done(key).map_err(|e| e.to_string())?;
        for (step, end, result, twin) in done.into_iter().filter(|d| !matches!(self.dir.stands(key, d.0), Stands::Done(_))) {
            self.dir.take_over(key, step, &end, &result, twin.as_deref()).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    /// The card is here, it is the one of before, and nothing of an interrupted step is left on it.
    fn ready(&self, c: &Card, steps: &[Step]) -> Result<(String, Option<String>), Outcome> {
        let key = c.key();
        let failed = |e: String| Outcome::Stopped(e);
        let found = find(c, &self.sys).ok_or(Outcome::Absent)?;
        if steps.iter().any(|s| self.dir.stands(key, *s) == Stands::Interrupted) {
            self.put_back(key).map_err(|e| failed(format!("the old content is not back: {e}")))?;
        }
        self.identified(c).map_err(failed)?;
        Ok(found)
    }

    /// Puts back what an interrupted step overwrote, from its journal.
    fn put_back(&self, key: &str) -> Result<(), String> {
        let Some(id) = self.dir.identity(key) else { return Ok(()) };
        for path in pending(&default_dir()) {
            if Saved::open(&path).is_ok_and(|s| s.header.id.same_target(&id)) {
                let done = recover(&path, &RecoverOptions::default()).map_err(|e| e.to_string())?;
                if !done.deleted {
                    return Err(format!("{} is kept; nandscope undo {} says more", path.display(), word(&path.display().to_string())));
                }
                let _ = self.dir.note(json!({ "card": key, "event": "put_back", "bytes": done.restored.bytes }));
            }
        }
        Ok(())
    }

    fn step(&self, i: usize, c: &Card, step: Step, target: &str, serial: Option<&str>, turns: &Turns) -> Result<End, Outcome> {
        let key = c.key();
        let failed = |e: CampaignError| Outcome::Stopped(e.to_string());
        let interrupted =
            || Outcome::Stopped(if self.stop.load(Ordering::Relaxed) { "interrupted" } else { "given to another host" }.into());
        (self.tell)(Event::Waits(i, step));
        let turn = turns.take(&self.lanes_of(c, step), &mut || self.alive(key)).ok_or_else(interrupted)?;
        let (part, held) = self.dir.begin(key, step, Some(&self.plan.asked(c, step))).map_err(failed)?;
        let words = words(self.plan, c, target, serial, step, &part, &self.dir.step(key, Step::Probe));
        let lanes = self.lanes_of(c, step);
        let lanes = names(&lanes);
        self.dir.note(json!({ "card": key, "step": step, "event": "begins", "lanes": lanes, "command": words })).map_err(failed)?;
        (self.tell)(Event::Begins(i, step));
        let began = Instant::now();
        let mut child = self.start(&part, held, &words).map_err(|e| Outcome::Stopped(format!("cannot start {}: {e}", step.name())))?;
        let alive = self.wait(&mut child, key);
        let end = match self.dir.stands(key, step) {
            Stands::Done(end) | Stands::Failed(end) => end,
            _ if !alive => return Err(interrupted()),
            // Its process ended without a word.
            _ => {
                self.put_back(key).map_err(Outcome::Stopped)?;
                let end = End { code: 1, seconds: began.elapsed().as_secs_f64(), host: None };
                finish(&part, &end).map_err(failed)?;
                end
            }
        };
        self.dir.note(json!({ "card": key, "step": step, "event": "ends", "code": end.code })).map_err(failed)?;
        drop(turn);
        (self.tell)(Event::Ends(i, step, end.clone()));
        if end.is_verdict() {
            return Ok(end);
        }
        let log = self.dir.card(key).join(format!("{}.failed", step.name())).join(LOG);
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        // What went wrong, not the hint below it.
        let own = said.lines().rfind(|l| l.starts_with("nandscope: ") && !l.starts_with("nandscope: warning"));
        let last = own.or_else(|| said.lines().rfind(|l| !l.trim().is_empty())).unwrap_or("its process ended without a word");
        Err(Outcome::Stopped(format!("{}: {} ({})", step.name(), last.trim_start_matches("nandscope: "), log.display())))
    }

    /// The process of a step: in a group of its own, so that Ctrl-C reaches it through this program alone. Its input is the lock.
    fn start(&self, part: &Path, lock: std::fs::File, words: &[String]) -> std::io::Result<Child> {
        let log = std::fs::File::create(part.join(LOG))?;
        let mut c = Command::new(&self.program);
        c.args(["campaign", "step"]).arg(part);
        if let Some(shared) = self.shared {
            c.args(["--host", shared.host()]);
        }
        c.arg("--").args(words).stdin(lock).stdout(log.try_clone()?).stderr(log).process_group(0).spawn()
    }

    /// Waits for a process; asks it to end where this program is asked to, or where the card went to another host. Whether neither was so.
    fn wait(&self, child: &mut Child, key: &str) -> bool {
        let mut asked = false;
        while matches!(child.try_wait(), Ok(None)) {
            if !asked && !self.alive(key) {
                asked = true;
                if let Some(pid) = rustix::process::Pid::from_raw(child.id() as i32) {
                    let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
                }
            }
            std::thread::sleep(LOOK);
        }
        !asked
    }
}

/// What an exit code says of a step.
pub fn says(step: Step, code: u8) -> &'static str {
    match (step, code) {
        (Step::Check, 0) => "passed",
        (Step::Layout, 0) => "costs nothing",
        (_, 0) => "done",
        (_, 3) => "undecided",
        (_, 5) => "costs something",
        (_, 6) => "counterfeit",
        (_, 7) => "failing",
        (_, 8) => "below its class",
        (_, 4) => "refused",
        _ => "error",
    }
}
