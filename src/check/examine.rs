//! The tests of a check, in their order: the capacity, then what [`super::measure`] does on what is there.

use super::measure::{self, Measured, Placed, Task};
use crate::device::{Access, Device, DeviceError, Op, Result};
use crate::experiment;
use crate::experiment::run::Progress;
use crate::finding::{Findings, Quantity};
use crate::infer::capacity;
use crate::probe::{Event, Plan, first_writes, is_cut, probe, resume};
use crate::units::{GIB, KIB, MIB, Nanos};
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// What is to be done.
pub struct Order<'a> {
    /// Bytes of the target in which writes may lie.
    pub region: Range<u64>,
    pub write: bool,
    /// On the device's clock, from now on.
    pub time: Nanos,
    /// What is written will be put back, and the time is for that, too.
    pub put_back: bool,
    pub seed: u64,
    pub stop: &'a AtomicBool,
    /// Bytes written in one stretch; [`measure::WINDOW`] unless a larger cache is to be displaced.
    pub window: u64,
    /// Has the card taken out and put in again, and waits for it.
    pub reinsert: Option<&'a dyn Fn() -> Result<bool>>,
}

/// What was found.
pub struct Examined {
    pub findings: Findings,
    /// Places that did not keep what they were given, in no way that gives a size.
    pub broken: Option<String>,
    pub measured: Measured,
}

/// What goes on, for people.
pub enum Step<'a> {
    /// A step begins, and this share of the whole is done.
    Begin(&'static str, f64),
    Progress(Progress<'a>),
}

/// Bytes of the read that shows how fast the old content can be saved, and the share of the time left for that.
const TRIED: u64 = 512 * KIB;
const SAVING: f64 = 0.25;
/// The window is no smaller for want of time.
const LEAST: u64 = 8 * MIB;
/// Share of the time for the capacity; what it does not use goes to the rest. A search that was cut goes on with half of what is left:
/// on a card that is slow to write, its places tell as much of what the card keeps as any other writes.
const CAPACITY: f64 = 0.4;
const LONGER: f64 = 0.5;
/// These shares, where what is written is put back within the same time.
const WITH_BACK: f64 = 0.7;

/// Bytes that can be saved in a part of the time left, judged by one read: what is overwritten is read first.
fn affordable(device: &mut dyn Device, window: &Range<u64>, deadline: Nanos) -> u64 {
    let len = TRIED.min(window.end - window.start);
    let timed = device.access(Access { op: Op::Read, at: window.start, len });
    let Some(took) = timed.ok().filter(|t| t.took > Nanos(0) && len > 0).map(|t| t.took) else { return measure::WINDOW };
    let left = (deadline - device.now()).secs() * SAVING;
    (len as f64 * left / took.secs()).max(LEAST as f64) as u64
}

/// Checks a card. What fails is part of what was found.
///
/// # Errors
/// What is overwritten cannot be kept for putting it back: nothing was written there.
pub fn examine(device: &mut dyn Device, order: &Order, tell: &mut dyn FnMut(Step)) -> Result<Examined> {
    let (deadline, offset) = (device.now() + order.time, device.geometry().offset);
    let (mut findings, mut broken, mut placed) = (Findings::default(), None, Placed::default());
    let less = if order.put_back { WITH_BACK } else { 1.0 };
    let mut put_back = order.put_back.then_some(Nanos(0));
    if order.write {
        let experiments = experiment::by_name("capacity").into_iter().collect();
        let time = Nanos((order.time.0 as f64 * CAPACITY * less) as u64);
        let plan = Plan { experiments, region: order.region.clone(), time, writes: GIB / 4, seed: order.seed, stop: order.stop };
        let mut told = |e: Event| match e {
            Event::Begin { .. } => tell(Step::Begin("capacity", 0.0)),
            Event::Progress(p) => tell(Step::Progress(p)),
            Event::Done(..) => {}
        };
        let (mut runs, mut found) = probe(device, &plan, &mut told);
        if runs.first().is_some_and(is_cut) {
            let back = if order.put_back { measure::putting_back(first_writes(&runs)) } else { Nanos(0) };
            let time = Nanos::from_secs_f64((deadline - back - device.now()).secs() * LONGER * less);
            (runs, found) = resume(device, &Plan { time, ..plan }, runs, &mut told);
        }
        put_back = put_back.map(|_| measure::putting_back(first_writes(&runs)));
        if let Some(run) = runs.first() {
            broken = capacity::broken(run);
            placed = Placed { places: capacity::places_kept(run), stretch: capacity::stretch(run), longest: capacity::longest_place(run) };
        }
        findings = found;
    }
    let real = findings.get(Quantity::Capacity).and_then(|f| f.number()).map_or(order.region.end, |c| (c as u64).saturating_sub(offset));
    let region = order.region.start..order.region.end.min(real).max(order.region.start);
    if region.end < order.region.end {
        placed.stretch = None;
    }
    let Order { write, seed, stop, mut window, reinsert, .. } = *order;
    if write && !region.is_empty() && window <= measure::WINDOW {
        window = window.min(affordable(device, &measure::window(&region, window), deadline - put_back.unwrap_or_default()));
    }
    if write && !region.is_empty() {
        let w = measure::window(&region, window);
        match device.keep_old(&[(w.start, w.end - w.start)]) {
            // The check says where it cannot be read.
            Err(DeviceError::Io { op: "read", .. }) => {}
            other => other?,
        }
    }
    let task = Task { region, write, deadline, put_back, seed, stop, window, placed: &placed, reinsert };
    let measured = measure::measure(device, &task, &mut |step, share| tell(Step::Begin(step, share)));
    Ok(Examined { findings, broken, measured })
}
