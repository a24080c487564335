//! A probe of a simulated card in this process, and the comparison with its truth.
#![allow(dead_code)]

use nandscope::device::{Access, Device, Op, Result, Timed};
use nandscope::experiment;
use nandscope::finding::{Findings, Quantity};
use nandscope::infer::beliefs::Beliefs;
use nandscope::infer::combine::combine;
use nandscope::infer::pipeline;
use nandscope::probe::{Plan, probe};
use nandscope::samples::Run;
use nandscope::units::Nanos;
use nandscope_sim::{Mapping, Model};
use std::sync::atomic::AtomicBool;

pub struct Probed {
    pub findings: Findings,
    pub runs: Vec<Run>,
    pub accesses: u64,
    pub bytes_written: u64,
    /// Virtual seconds.
    pub seconds: f64,
}

impl Probed {
    /// The findings as the detectors score them, before scores become shares of what was right. Nobody is told these.
    pub fn scores(&self) -> Findings {
        combine(&pipeline::apart(&self.runs))
    }
}

/// Counts what passes.
struct Count<D> {
    inner: D,
    accesses: u64,
    bytes_written: u64,
    /// Reads across a multiple of so many bytes take so many ns longer.
    step: (u64, u64),
}

impl<D: Device> Device for Count<D> {
    fn geometry(&self) -> &nandscope::device::Geometry {
        self.inner.geometry()
    }
    fn access(&mut self, a: Access) -> Result<Timed> {
        self.accesses += 1;
        if matches!(a.op, Op::Write(_)) {
            self.bytes_written += a.len;
        }
        let mut t = self.inner.access(a)?;
        let (period, ns) = self.step;
        if matches!(a.op, Op::Read) && a.at / period != (a.at + a.len - 1) / period {
            self.inner.idle(Nanos(ns));
            t.took = t.took + Nanos(ns);
        }
        Ok(t)
    }
    fn now(&self) -> Nanos {
        self.inner.now()
    }
    fn idle(&mut self, d: Nanos) {
        self.inner.idle(d)
    }
    fn load(&mut self, at: u64, into: &mut [u8]) -> Result<()> {
        self.inner.load(at, into)
    }
    fn store(&mut self, at: u64, from: &[u8]) -> Result<()> {
        self.inner.store(at, from)
    }
}

/// One experiment on a simulated card, alone, for so many seconds of its clock at most.
pub fn run_alone(experiment: &str, model: &Model, seed: u64, seconds: u64) -> Run {
    run_on(experiment, &mut nandscope::device::SimDevice::new(model, seed), model, seed, seconds)
}

/// Several experiments one after the other, within so many seconds of the card's clock and 8 GiB of writes.
pub fn probed(experiments: &[&str], model: &Model, seed: u64, seconds: u64) -> Findings {
    let mut device = nandscope::device::SimDevice::new(model, seed);
    let experiments = experiments.iter().map(|e| experiment::by_name(e).unwrap()).collect();
    let (stop, region) = (AtomicBool::new(false), 0..device.geometry().size);
    let plan = Plan { experiments, region, time: Nanos(seconds * 1_000_000_000), writes: 8 << 30, seed, stop: &stop };
    probe(&mut device, &plan, &mut |_| {}).1
}

/// The same on a card that keeps what is marked.
pub fn run_with_stamps(experiment: &str, model: &Model, seed: u64, seconds: u64) -> Run {
    run_on(experiment, &mut nandscope::device::SimDevice::new(model, seed).with_stamps(), model, seed, seconds)
}

/// The same on any device with such a card in it.
pub fn run_on(experiment: &str, device: &mut dyn Device, model: &Model, seed: u64, seconds: u64) -> Run {
    let exp = experiment::by_name(experiment).unwrap();
    let geometry = device.geometry().clone();
    let known = Beliefs::default();
    let region = 0..model.truth().real_capacity.min(geometry.size);
    let setup = experiment::Setup { geometry: &geometry, region, believed: &known, writes: u64::MAX };
    let stop = AtomicBool::new(false);
    let limits = experiment::run::Limits { deadline: Nanos(seconds * 1_000_000_000), stop: &stop, seed };
    experiment::run::run(exp, &setup, device, &limits, &mut |_| {})
}

/// With the command's own limits for simulated cards.
pub fn probe_model(model: &Model, seed: u64, write: bool) -> Probed {
    probe_within(model, seed, write, 8 << 30, 1800.0)
}

/// With other bounds on the bytes written and on the time in seconds.
pub fn probe_within(model: &Model, seed: u64, write: bool, writes: u64, seconds: f64) -> Probed {
    probe_with_step(model, seed, write, writes, seconds, (u64::MAX, 0))
}

/// The same where reads across multiples of `step.0` bytes take `step.1` ns longer, as at the end of a piece of the map.
pub fn probe_with_step(model: &Model, seed: u64, write: bool, writes: u64, seconds: f64, step: (u64, u64)) -> Probed {
    let inner = nandscope::device::SimDevice::new(model, seed).with_stamps();
    let mut device = Count { inner, accesses: 0, bytes_written: 0, step };
    let stop = AtomicBool::new(false);
    let mut experiments = experiment::probing();
    experiments.retain(|e| write || !e.about().writes);
    let region = 0..device.geometry().size;
    let plan = Plan { experiments, region, time: Nanos::from_secs_f64(seconds), writes, seed, stop: &stop };
    let began = device.now();
    let (runs, findings) = probe(&mut device, &plan, &mut |_| {});
    let seconds = (device.now() - began).secs();
    Probed { findings, runs, accesses: device.accesses, bytes_written: device.bytes_written, seconds }
}

#[allow(unused_imports)]
pub use nandscope::sweep::truth::{right, truth_of};

/// Quantities that this card's timing shows plainly.
pub fn visible(m: &Model) -> Vec<Quantity> {
    let t = m.truth();
    let mut out = vec![];
    // A fake answers for flash it has not.
    if t.real_capacity < m.capacity() {
        return vec![Quantity::Capacity];
    }
    // A microcontroller's bus hides what costs less than itself.
    if m.host.rate < 5_000_000 {
        return out;
    }
    if t.read_steps.erase_block_ns > t.read_steps.access_unit_ns.max(t.read_steps.page_ns) + 20_000 {
        out.push(Quantity::EraseBlock);
    }
    if t.mapping == Mapping::Block {
        out.extend([Quantity::OpenAusLinear, Quantity::OpenAusRandom, Quantity::CloseCostMs]);
    }
    out
}

/// One line for people.
pub fn line(p: &Probed, m: &Model) -> String {
    let t = m.truth();
    let mut s = format!("{} accesses, {:.1} MiB, {:.1} s:", p.accesses, p.bytes_written as f64 / 1048576.0, p.seconds);
    for f in &p.findings.0 {
        let mark = match right(f, &t) {
            Some(true) => "",
            Some(false) => " WRONG",
            None => "",
        };
        let value = f.number().map(|v| f.quantity.show(v)).or(f.at_least.map(|a| format!(">={}", a.0))).unwrap_or("?".into());
        let truth = truth_of(f.quantity, &t).map_or("-".into(), |v| f.quantity.show(v));
        s += &format!(" [{} {value}/{truth} {:.2}{mark}]", f.quantity.key(), f.confidence);
        if f.value.is_none() && f.at_least.is_none() {
            s += &format!("({})", f.reason.as_deref().unwrap_or(""));
        }
    }
    s
}
