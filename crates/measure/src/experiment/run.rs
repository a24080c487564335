//! The runner: the order of trials, the stop rule, the budgets. Experiments know nothing of it.

use super::{Bench, Experiment, Setup};
use crate::chance;
use crate::device::{Access, Device, DeviceError, Op};
use crate::infer::beliefs::Case;
use crate::infer::slots::Slots;
use crate::samples::{Cell, Ended, Run};
use crate::units::Nanos;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bounds of one run.
pub struct Limits<'a> {
    /// On the device's own clock.
    pub deadline: Nanos,
    pub stop: &'a AtomicBool,
    pub seed: u64,
}

/// Told after every trial: how far the run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    pub experiment: &'a str,
    /// Fraction of the time allowed that is gone.
    pub spent: f64,
}

/// This many faults end a run of a card that can hardly be read; places that cannot be read are left out.
const FAULTS: usize = 6;

/// A cell whose trials fail so many times in turn wants no more of them: it reads where nothing can be read.
const FAILS: u32 = 6;

/// Faults that a run names; what more there are say nothing new.
const NAMED: usize = 1000;

/// A cell whose trials found nothing to access so many times in turn, as where the region has no room, wants no more of them.
const EMPTY: u32 = 16;

/// Places that say whether most of a card can be read.
const PLACES: u64 = 16;

/// Can most of the region be read? Asked where reads fail: all trials of an experiment may begin at one bad place.
fn readable(device: &mut dyn Device, region: &Range<u64>) -> bool {
    let len = device.geometry().small();
    let step = (region.end - region.start) / PLACES / len * len;
    let mut read = |i: u64| device.access(Access { op: Op::Read, at: region.start + i * step, len }).is_ok();
    step > 0 && (0..PLACES).filter(|i| read(*i)).count() as u64 > PLACES / 2
}

/// Runs one experiment: rounds of cells in random order, so that drift hits all cells alike.
pub fn run(exp: &dyn Experiment, setup: &Setup, device: &mut dyn Device, limits: &Limits, progress: &mut dyn FnMut(Progress)) -> Run {
    let mut run = Run::new(exp.about().name);
    run.setting = setup.setting();
    run.setting.extend(exp.places(setup).iter().flat_map(Slots::done).map(|(k, v)| (k.to_string(), v)));
    // What an experiment may plan with: how long it was given.
    let allowed = (limits.deadline - device.now()).0 / 1_000_000;
    run.setting.insert("time_ms".into(), i64::try_from(allowed).unwrap_or(i64::MAX));
    go_on(exp, run, setup, device, limits, progress)
}

/// Goes on with a run whose time was over, where it stopped; a new run begins.
pub fn go_on(
    exp: &dyn Experiment,
    mut run: Run,
    setup: &Setup,
    device: &mut dyn Device,
    limits: &Limits,
    progress: &mut dyn FnMut(Progress),
) -> Run {
    let name_hash = exp.about().name.bytes().fold(0u64, |h, b| h.wrapping_mul(31).wrapping_add(b as u64));
    let before = run.samples.len() as u64;
    let mut rng = chance::stream(limits.seed, name_hash ^ before);
    let (began, believed) = (device.now(), setup.believed);
    let allowed = (limits.deadline - began).secs().max(1e-9);
    let mut trials: Vec<u32> = run.cells.iter().map(|c| run.of(c.id).map(|s| s.trial + 1).max().unwrap_or(0)).collect();
    let (mut empty, mut bad) = (vec![0; trials.len()], vec![0; trials.len()]);
    let mut good = run.samples.len();
    let mut next = if run.cells.is_empty() { exp.cells(setup) } else { vec![] };
    let mut begun = !run.cells.is_empty();
    run.ended = Ended::Complete;
    while begun || !next.is_empty() {
        // Those of a run that goes on may all want more.
        let first = if std::mem::take(&mut begun) { 0 } else { run.cells.len() as u32 };
        let new = run.cells.len() as u32;
        for (i, mut cell) in next.drain(..).enumerate() {
            cell.id = new + i as u32;
            run.cells.push(cell);
            trials.push(0);
            empty.push(0);
            bad.push(0);
        }
        loop {
            let open = |c: usize| empty[c] < EMPTY && bad[c] < FAILS;
            let asked: Vec<&Cell> = (first as usize..run.cells.len()).filter(|&c| open(c)).map(|c| &run.cells[c]).collect();
            let mut pending = exp.wanting(&asked, &Case { run: &run, believed });
            if pending.is_empty() {
                break;
            }
            for i in (1..pending.len()).rev() {
                pending.swap(i, (rng.next_u64() % (i as u64 + 1)) as usize);
            }
            for id in pending {
                if limits.stop.load(Ordering::Relaxed) {
                    run.ended = Ended::Interrupted;
                    return run;
                }
                if device.now() >= limits.deadline {
                    run.ended = Ended::Budget("time".into());
                    return run;
                }
                let n = trials[id as usize];
                trials[id as usize] += 1;
                let cell = run.cells[id as usize].clone();
                let seed = (rng.next_u64() as u128) << 64 | rng.next_u64() as u128 | 1;
                let mut bench = Bench {
                    device: &mut *device,
                    region: setup.region.clone(),
                    run: &Case { run: &run, believed },
                    cell: id,
                    trial: n,
                    rng: Pcg64Mcg::new(seed),
                    taken: vec![],
                    deadline: limits.deadline,
                    stop: limits.stop,
                };
                let result = exp.trial(&cell, n, &mut bench);
                let taken = bench.taken;
                good += taken.len();
                match result {
                    Ok(()) => {
                        bad[id as usize] = 0;
                        empty[id as usize] = if taken.is_empty() { empty[id as usize] + 1 } else { 0 };
                        run.extend(taken)
                    }
                    Err(DeviceError::Budget(what)) => {
                        // What a cut trial measured before the cut is still true.
                        run.extend(taken);
                        run.ended = Ended::Budget(what);
                        return run;
                    }
                    Err(DeviceError::Late) => {
                        run.extend(taken);
                        let stopped = limits.stop.load(Ordering::Relaxed);
                        run.ended = if stopped { Ended::Interrupted } else { Ended::Budget("time".into()) };
                        return run;
                    }
                    // Not the card's fault, and no other trial would do better.
                    Err(e @ (DeviceError::Journal { .. } | DeviceError::Gone { .. })) => {
                        run.extend(taken);
                        run.ended = Ended::Failed(e.to_string());
                        return run;
                    }
                    Err(e) => {
                        bad[id as usize] += 1;
                        if run.faults.len() < NAMED {
                            run.faults.push(e.to_string());
                        }
                        let mut goes_on = || {
                            matches!(e, DeviceError::Io { op: "read", .. }) && (good > run.faults.len() || readable(device, &setup.region))
                        };
                        if run.faults.len() >= FAULTS && !goes_on() {
                            run.ended = Ended::Failed(e.to_string());
                            return run;
                        }
                    }
                }
                let spent = (device.now() - began).secs() / allowed;
                progress(Progress { experiment: exp.about().name, spent: spent.min(1.0) });
            }
        }
        next = exp.more(&Case { run: &run, believed });
    }
    run
}
