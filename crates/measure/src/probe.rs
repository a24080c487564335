//! The main job: experiments in order, each with what the earlier ones found, under one budget of time and writes.

use crate::device::ranges::RangeSet;
use crate::device::{Device, Geometry, Op};
use crate::experiment::run::{Limits, Progress};
use crate::experiment::{self, Experiment, Setup};
use crate::finding::{Findings, Quantity, SURE_OF_SIZE};
use crate::infer::beliefs::{Belief, Beliefs, Case};
use crate::infer::capacity::SINCE;
use crate::infer::pipeline::Inference;
use crate::samples::{Cell, Ended, Run, Sample};
use crate::units::Nanos;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// What a probe may do.
pub struct Plan<'a> {
    pub experiments: Vec<&'static dyn Experiment>,
    pub region: Range<u64>,
    /// Time for all experiments, on the device's own clock.
    pub time: Nanos,
    /// Bytes that may be written.
    pub writes: u64,
    pub seed: u64,
    pub stop: &'a AtomicBool,
}

/// Told as the probe goes on.
pub enum Event<'a> {
    Begin {
        index: usize,
        of: usize,
        name: &'static str,
        question: &'static str,
    },
    Progress(Progress<'a>),
    /// A run is complete: everything so far can be saved.
    Done(&'a [Run], &'a Findings),
}

/// What these runs wrote.
fn writes(runs: &[Run]) -> impl Iterator<Item = &Sample> {
    runs.iter().flat_map(|r| &r.samples).filter(|s| matches!(s.op, Op::Write(_)))
}

/// Bytes at different addresses that these runs wrote: a cache that goes by addresses counts what is written twice once.
fn distinct(runs: &[Run]) -> u64 {
    let seen: RangeSet = writes(runs).map(Sample::range).collect();
    seen.iter().map(|r| r.end - r.start).sum()
}

fn writes_left(plan: &Plan, runs: &[Run]) -> u64 {
    plan.writes.saturating_sub(writes(runs).map(|s| s.len).sum())
}

/// Times that experiments may be asked whether they want to run again: what the first time told may make others ask. Full caches show
/// costs, costs show erase blocks, and these show where AUs lie.
const PASSES: u32 = 3;

/// Time for a last look at what was written first: a few reads.
const LOOK: Nanos = Nanos(2_000_000_000);

/// Of the time allowed, a rest smaller than this is not worth going on for.
const REST: f64 = 0.1;

/// Bytes of flash that are there with some confidence, where a border was found.
fn real_capacity(b: &Belief) -> Option<u64> {
    let least = b.at_least.filter(|_| b.interval.is_some());
    b.number().or(least).filter(|_| b.confidence >= SURE_OF_SIZE).map(|c| c as u64)
}

/// Runs the experiments. Never fails: what went wrong is in the runs.
pub fn probe(device: &mut dyn Device, plan: &Plan, tell: &mut dyn FnMut(Event)) -> (Vec<Run>, Findings) {
    let end = device.now() + plan.time;
    let mut p = Going::new(plan, device, vec![], end);
    let mut todo: VecDeque<&'static dyn Experiment> = plan.experiments.iter().copied().collect();
    p.count = todo.len();
    let mut passes = 0;
    while let Some(exp) = todo.pop_front() {
        if !p.one(exp, todo.is_empty(), tell) {
            break;
        }
        if todo.is_empty() && passes < PASSES {
            passes += 1;
            // What its share of the time cut goes on with what is left.
            if passes == 1 && !p.cut_ones(false, tell) {
                break;
            }
            todo.extend(p.wanting());
            if todo.is_empty() {
                if !p.cut_ones(true, tell) {
                    break;
                }
                todo.extend(p.wanting());
            }
            p.count += todo.len();
        }
    }
    p.once_more(tell);
    p.known = p.inference.of(&p.runs);
    (p.runs, p.known)
}

/// Goes on with the runs of a probe that ran out of time, where the plan allows more of it: time that was kept back and not needed.
pub fn resume(device: &mut dyn Device, plan: &Plan, runs: Vec<Run>, tell: &mut dyn FnMut(Event)) -> (Vec<Run>, Findings) {
    let end = device.now() + plan.time;
    let mut p = Going::new(plan, device, runs, end);
    p.count = p.runs.len();
    p.index = p.runs.len();
    p.cut_ones(true, tell);
    p.once_more(tell);
    p.known = p.inference.of(&p.runs);
    (p.runs, p.known)
}

/// Time that an experiment gets beside the `time` for all of them: no more than the whole of it, with what a quarter is kept back for the
/// undo.
pub fn own_time(exp: &dyn Experiment, time: Nanos) -> Nanos {
    exp.own_time().min(Nanos(time.0.saturating_mul(4) / 3))
}

/// Was this run cut by its share of the time, and is it worth going on with?
pub fn is_cut(run: &Run) -> bool {
    run.ended == Ended::Budget("time".into()) && experiment::by_name(&run.experiment).is_some_and(|e| e.goes_on())
}

/// About how long putting back will take what these runs wrote, where only what is `changed` is written: each of these places as long as its
/// first write took, and each place read once.
pub fn about_as_long(runs: &[Run], changed: &RangeSet) -> Nanos {
    let unchanged = |r: Range<u64>| changed.missing(r).iter().map(|m| m.end - m.start).sum::<u64>();
    // Flash reads at least as fast as it is written.
    first_writes(runs) + first_writes_of(runs, &|r: Range<u64>| r.end - r.start - unchanged(r))
}

/// How long it took to write for the first time what these runs wrote.
pub fn first_writes(runs: &[Run]) -> Nanos {
    first_writes_of(runs, &|r: Range<u64>| r.end - r.start)
}

/// The same of those bytes of each range that count.
fn first_writes_of(runs: &[Run], counts: &dyn Fn(Range<u64>) -> u64) -> Nanos {
    let mut seen = RangeSet::default();
    let mut all: Vec<_> = writes(runs).filter(|s| s.len > 0).collect();
    all.sort_by_key(|s| s.start);
    let mut ns = 0.0;
    for s in all {
        let fresh: u64 = seen.missing(s.at..s.at + s.len).into_iter().map(counts).sum();
        seen.insert(s.at..s.at + s.len);
        ns += s.took.0 as f64 * fresh as f64 / s.len as f64;
    }
    Nanos(ns as u64)
}

/// A probe that is going.
struct Going<'a> {
    plan: &'a Plan<'a>,
    device: &'a mut dyn Device,
    geometry: Geometry,
    region: Range<u64>,
    runs: Vec<Run>,
    known: Findings,
    inference: Inference,
    end: Nanos,
    index: usize,
    count: usize,
}

impl<'a> Going<'a> {
    fn new(plan: &'a Plan<'a>, device: &'a mut dyn Device, runs: Vec<Run>, end: Nanos) -> Going<'a> {
        let geometry = device.geometry().clone();
        let region = plan.region.clone();
        let mut p = Going {
            plan,
            device,
            geometry,
            region,
            runs,
            known: Findings::default(),
            inference: Inference::default(),
            end,
            index: 0,
            count: 0,
        };
        p.known = p.inference.of(&p.runs);
        p.clip();
        p
    }

    /// What all runs so far leave to believe.
    fn believed(&self) -> Beliefs {
        self.inference.believed(&self.runs, self.runs.len())
    }

    fn left(&self) -> Nanos {
        self.end - self.device.now()
    }

    /// Beyond a counterfeit's flash there is nothing to measure.
    fn clip(&mut self) {
        if let Some(real) = self.believed().get(Quantity::Capacity).and_then(real_capacity).map(|c| c.saturating_sub(self.geometry.offset))
        {
            self.region.end = self.plan.region.end.min(real / self.geometry.sector * self.geometry.sector).max(self.region.start);
        }
    }

    /// What an experiment may use: all that was asked for where it says what of it is there.
    fn region_for(&self, exp: &dyn Experiment) -> Range<u64> {
        if exp.own_time() > Nanos(0) { self.plan.region.clone() } else { self.region.clone() }
    }

    /// Is the whole probe over after this run?
    fn over(run: &Run) -> bool {
        matches!(run.ended, Ended::Interrupted | Ended::Failed(_))
    }

    fn begin(&mut self, exp: &dyn Experiment, tell: &mut dyn FnMut(Event)) {
        self.index += 1;
        let about = exp.about();
        tell(Event::Begin { index: self.index - 1, of: self.count, name: about.name, question: about.question });
    }

    /// One experiment, `last` of those planned; false where the probe ends with it.
    fn one(&mut self, exp: &'static dyn Experiment, last: bool, tell: &mut dyn FnMut(Event)) -> bool {
        let about = exp.about();
        let writes = writes_left(self.plan, &self.runs);
        let believed = self.believed();
        // One that was asked for alone is asked whatever is believed.
        let idle = exp.to_put_back() && !self.device.puts_back() || !exp.asks(&believed);
        if self.plan.experiments.len() > 1 && idle {
            self.index += 1;
            return true;
        }
        let nothing = {
            let setup = Setup { geometry: &self.geometry, region: self.region_for(exp), believed: &believed, writes };
            exp.cells(&setup).is_empty().then(|| setup.setting())
        };
        if let Some(setting) = nothing {
            // It has nothing to ask; its inference says why.
            self.index += 1;
            let mut run = Run::new(about.name);
            run.setting = setting;
            self.runs.push(run);
            self.known = self.inference.of(&self.runs);
            return true;
        }
        self.begin(exp, tell);
        let began = self.device.now();
        let share = if last { 1.0 } else { exp.share() };
        // An experiment alone has all the time that was asked for.
        let alone = self.plan.experiments.len() == 1;
        let own = if alone { Nanos(0) } else { own_time(exp, self.plan.time) };
        let time = Nanos::from_secs_f64(self.left().secs() * share).max(own);
        let limits = Limits { deadline: began + time, stop: self.plan.stop, seed: self.plan.seed };
        let setup = Setup { geometry: &self.geometry, region: self.region_for(exp), believed: &believed, writes };
        let run = experiment::run::run(exp, &setup, &mut *self.device, &limits, &mut |p| tell(Event::Progress(p)));
        self.end = self.end + (self.device.now() - began).min(own);
        self.runs.push(run);
        self.known = self.inference.of(&self.runs);
        self.clip();
        tell(Event::Done(&self.runs, &self.known));
        !(self.runs.last().is_some_and(Going::over) || self.region.is_empty())
    }

    /// Goes on with what the time cut: the capacity first, for the others rest on it, then the last first, which had the least. The last
    /// of them gets `all` that is left. False where the probe ends with one of them.
    fn cut_ones(&mut self, all: bool, tell: &mut dyn FnMut(Event)) -> bool {
        let mut cut: Vec<usize> = (0..self.runs.len()).rev().filter(|i| is_cut(&self.runs[*i])).collect();
        cut.sort_by_key(|i| experiment::by_name(&self.runs[*i].experiment).is_none_or(|e| e.own_time() == Nanos(0)));
        for (k, &i) in cut.iter().enumerate() {
            let Some(exp) = self.experiment_of(&self.runs[i]) else { continue };
            if self.left().secs() < REST * self.plan.time.secs() {
                continue;
            }
            self.count += 1;
            self.begin(exp, tell);
            let whole = exp.own_time() > Nanos(0) || all && k + 1 == cut.len();
            let share = if whole { 1.0 } else { exp.share() };
            let deadline = self.device.now() + Nanos::from_secs_f64(self.left().secs() * share);
            self.go_on(exp, i, deadline, tell);
            self.known = self.inference.of(&self.runs);
            self.clip();
            tell(Event::Done(&self.runs, &self.known));
            if Going::over(&self.runs[i]) || self.region.is_empty() {
                return false;
            }
        }
        true
    }

    /// What runs have to look at when all had their turn: a few reads. One that the time cut stays cut.
    fn once_more(&mut self, tell: &mut dyn FnMut(Event)) {
        if self.runs.iter().any(Going::over) {
            return;
        }
        for i in 0..self.runs.len() {
            let cut = is_cut(&self.runs[i]).then(|| self.runs[i].ended.clone());
            let asked = cut.is_some() || self.runs[i].ended == Ended::Complete;
            let Some(exp) = self.experiment_of(&self.runs[i]).filter(|_| asked) else { continue };
            let mut run = std::mem::replace(&mut self.runs[i], Run::new(exp.about().name));
            let cells = exp.later(&run, &self.runs, &self.known);
            let since = if cells.is_empty() { 0 } else { distinct(&self.runs) };
            if since > 0 {
                run.setting.insert(SINCE.into(), since as i64);
                run.cells.extend((run.cells.len() as u32..).zip(cells).map(|(id, cell)| Cell { id, ..cell }));
            }
            self.runs[i] = run;
            if since > 0 {
                // A few of them may write, and each may take a merge.
                let merge = writes(&self.runs).map(|s| s.took.0).max().unwrap_or(0);
                self.go_on(exp, i, self.device.now() + LOOK + Nanos(4 * merge), tell);
                if let Some(cut) = cut.filter(|_| self.runs[i].ended == Ended::Complete) {
                    self.runs[i].ended = cut;
                }
            }
        }
    }

    /// Which of the experiments planned a run is of.
    fn experiment_of(&self, run: &Run) -> Option<&'static dyn Experiment> {
        self.plan.experiments.iter().copied().find(|e| e.about().name == run.experiment)
    }

    /// Goes on with a run of this experiment.
    fn go_on(&mut self, exp: &'static dyn Experiment, i: usize, deadline: Nanos, tell: &mut dyn FnMut(Event)) {
        // What is believed now by the runs before it: what came later may rest on what it found.
        let believed = self.inference.believed(&self.runs, i);
        let run = std::mem::replace(&mut self.runs[i], Run::new(exp.about().name));
        let writes = writes_left(self.plan, &self.runs);
        let setup = Setup { geometry: &self.geometry, region: self.region_for(exp), believed: &believed, writes };
        let limits = Limits { deadline, stop: self.plan.stop, seed: self.plan.seed };
        self.runs[i] = experiment::run::go_on(exp, run, &setup, &mut *self.device, &limits, &mut |p| tell(Event::Progress(p)));
    }

    /// Experiments that would say more in another run.
    fn wanting(&self) -> Vec<&'static dyn Experiment> {
        let (last, now) = (|e: &dyn Experiment| self.runs.iter().rposition(|r| r.experiment == e.about().name), self.believed());
        let more = |e: &dyn Experiment, i: usize| {
            let then = self.inference.believed(&self.runs, i);
            e.again(&Case { run: &self.runs[i], believed: &then }, &now)
        };
        self.plan.experiments.iter().copied().filter(|e| last(*e).is_some_and(|i| more(*e, i))).collect()
    }
}
