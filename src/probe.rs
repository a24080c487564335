//! The main job: experiments in order, each with what the earlier ones found, under one budget of time and writes.

use crate::device::{Device, Op};
use crate::experiment::run::{Limits, Progress};
use crate::experiment::{self, Experiment, Setup};
use crate::finding::{Finding, Findings, Quantity};
use crate::report::Inference;
use crate::samples::{Ended, Run};
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

fn writes_left(plan: &Plan, runs: &[Run]) -> u64 {
    let written = runs.iter().flat_map(|r| &r.samples).filter(|s| matches!(s.op, Op::Write(_))).map(|s| s.len).sum();
    plan.writes.saturating_sub(written)
}

/// Times that experiments may be asked whether they want to run again: what the first time told may make others ask. Full caches show
/// costs, costs show erase blocks, and these show where AUs lie.
const PASSES: u32 = 3;

/// Bytes of flash that are surely there, where a border was found.
fn real_capacity(f: &Finding) -> Option<u64> {
    let least = f.at_least.as_ref().filter(|_| f.interval.is_some()).map(|a| a.0);
    f.number().or(least).filter(|_| f.confidence >= 0.9).map(|c| c as u64)
}

/// Runs the experiments. Never fails: what went wrong is in the runs.
pub fn probe(device: &mut dyn Device, plan: &Plan, tell: &mut dyn FnMut(Event)) -> (Vec<Run>, Findings) {
    let mut runs: Vec<Run> = vec![];
    let (mut known, mut inference) = (Findings::default(), Inference::default());
    let geometry = device.geometry().clone();
    let mut region = plan.region.clone();
    let end = device.now() + plan.time;
    let mut todo: VecDeque<&'static dyn Experiment> = plan.experiments.iter().copied().collect();
    let mut passes = 0;
    let (mut index, mut count) = (0, todo.len());
    let over = |run: &Run| matches!(run.ended, Ended::Interrupted | Ended::Failed(_));
    'all: while let Some(exp) = todo.pop_front() {
        let about = exp.about();
        let setup = Setup { geometry: &geometry, region: region.clone(), known: &known, runs: &runs, writes: writes_left(plan, &runs) };
        index += 1;
        if exp.cells(&setup).is_empty() {
            // It has nothing to ask; its inference says why.
            let mut run = Run::new(about.name);
            run.setting = setup.setting();
            runs.push(run);
        } else {
            tell(Event::Begin { index: index - 1, of: count, name: about.name, question: about.question });
            let left = end - device.now();
            let share = if todo.is_empty() { 1.0 } else { exp.share() };
            let limits = Limits { deadline: device.now() + Nanos::from_secs_f64(left.secs() * share), stop: plan.stop, seed: plan.seed };
            let run = experiment::run::run(exp, &setup, device, &limits, &mut |p| tell(Event::Progress(p)));
            runs.push(run);
            known = inference.of(&runs);
            // Behind a counterfeit's flash there is nothing to measure.
            if let Some(real) = known.get(Quantity::Capacity).and_then(real_capacity).map(|c| c.saturating_sub(geometry.offset)) {
                region.end = region.end.min(real / geometry.sector * geometry.sector).max(region.start);
            }
            tell(Event::Done(&runs, &known));
            if runs.last().is_some_and(over) || region.is_empty() {
                break;
            }
        }
        if todo.is_empty() && passes < PASSES {
            passes += 1;
            // What its share of the time cut goes on with what is left, once; the last first, which had the least.
            for i in (0..if passes == 1 { runs.len() } else { 0 }).rev() {
                let Some(exp) = plan.experiments.iter().find(|e| e.about().name == runs[i].experiment) else { continue };
                let left = end - device.now();
                let cut = exp.goes_on() && runs[i].ended == Ended::Budget("time".into());
                if !cut || left.secs() < 0.1 * plan.time.secs() {
                    continue;
                }
                let about = exp.about();
                index += 1;
                count += 1;
                tell(Event::Begin { index: index - 1, of: count, name: about.name, question: about.question });
                let run = std::mem::replace(&mut runs[i], Run::new(about.name));
                let setup =
                    Setup { geometry: &geometry, region: region.clone(), known: &known, runs: &runs, writes: writes_left(plan, &runs) };
                let limits =
                    Limits { deadline: device.now() + Nanos::from_secs_f64(left.secs() * exp.share()), stop: plan.stop, seed: plan.seed };
                runs[i] = experiment::run::go_on(*exp, run, &setup, device, &limits, &mut |p| tell(Event::Progress(p)));
                known = inference.of(&runs);
                tell(Event::Done(&runs, &known));
                if over(&runs[i]) {
                    break 'all;
                }
            }
            let last = |e: &dyn Experiment| runs.iter().rev().find(|r| r.experiment == e.about().name);
            let wanting = |e: &&&'static dyn Experiment| last(**e).is_some_and(|r| e.again(r, &known));
            todo.extend(plan.experiments.iter().filter(wanting));
            count += todo.len();
        }
    }
    known = inference.of(&runs);
    (runs, known)
}
