//! The experiment: the same volume fragmented, defragmented and blank, and the same benchmark on each (P1, P5). Every figure
//! that follows is made from what is recorded here (`answer.rs`).

use super::age::{self, Plan};
use super::bench::{self, Measured, Workload};
use super::class::Class;
use super::defragment::{Defragmented, defragment};
use super::fragment::{self, Fragmentation, Map};
use crate::device::{Access, CardState, Device, DeviceError, Op};
use crate::units::{MIB, about};
use crate::volume::{Cache, FatVolume, Format, Host, Label, Result, Shared, Space, Volume};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Version of the saved form.
pub const SCHEMA: &str = "nandscope-frag/1";

/// States a volume is brought into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// As it was found; nothing is formatted or removed.
    AsIs,
    /// Formatted and aged.
    Fragmented,
    /// The same files, each in one piece.
    Defragmented,
    /// Formatted, and erased before where the medium takes discards.
    Blank,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            State::AsIs => "as it is",
            State::Fragmented => "fragmented",
            State::Defragmented => "defragmented",
            State::Blank => "blank",
        }
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    pub plan: Plan,
    pub workload: Workload,
    /// In this order.
    pub states: Vec<State>,
    /// Erase the medium before a blank volume is made.
    pub erase: bool,
    /// Bytes of a cluster; by the SD convention for the capacity of the target where not given.
    pub cluster: Option<u32>,
    /// The host while the benchmark runs.
    pub host: Host,
    /// Grid of the map, in bytes.
    pub au: u64,
}

/// One state, and what was measured in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    pub state: State,
    pub fragmentation: Fragmentation,
    pub map: Map,
    pub space: Space,
    /// What the defragmenter did.
    pub defragmented: Option<Defragmented>,
    pub measured: Measured,
    /// Seconds of the target's clock it took to bring about this state.
    pub prepared: f64,
}

/// What stands around the volume (P4): results are compared only where this is alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Setup {
    /// The machine, and what it keeps in memory.
    pub host: String,
    /// How the card is connected: "usb", "mmc"; none where there is no bus.
    pub slot: Option<String>,
    /// Maker and model, or the simulated card.
    pub card: String,
}

/// A whole experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lab {
    pub schema: String,
    pub version: String,
    pub target: String,
    pub label: Label,
    pub filesystem: String,
    #[serde(default)]
    pub setup: Setup,
    /// What the flash went through before.
    #[serde(default)]
    pub state: CardState,
    pub settings: Settings,
    pub conditions: Vec<Condition>,
    /// The specification's own figures of the same card.
    pub class: Option<Class>,
    pub notes: Vec<String>,
}

impl Lab {
    pub fn new(target: &str, label: Label, settings: &Settings) -> Lab {
        Lab {
            schema: SCHEMA.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            target: target.into(),
            label,
            filesystem: String::new(),
            setup: Setup::default(),
            state: CardState::default(),
            settings: settings.clone(),
            conditions: vec![],
            class: None,
            notes: vec![],
        }
    }
}

/// Told what is going on, and the share of it that is done.
pub type Tell<'a> = &'a mut dyn FnMut(&str, f64);

/// Runs the experiment on the bytes `range` of a device, in-process. What was there is lost, unless only `AsIs` is asked for.
///
/// # Errors
/// The device failed or the volume is damaged; what was measured before is in `lab` all the same.
pub fn run<D: Device + 'static>(device: &Shared<D>, range: Range<u64>, lab: &mut Lab, stop: &AtomicBool, tell: Tell) -> Result<()> {
    let settings = lab.settings.clone();
    let mut work = Work { device, range, settings: &settings, stop, aged: false };
    let mut volume: Option<FatVolume> = None;
    let mut workload = settings.workload.clone();
    for &state in &settings.states {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let began = device.now();
        let mut made = None;
        let mut v = match state {
            State::AsIs => match volume.take() {
                Some(v) => v,
                None => work.mount()?,
            },
            State::Blank => {
                drop(volume.take());
                lab.notes.extend(work.erase()?);
                work.aged = false;
                work.format()?
            }
            State::Fragmented => work.age(volume.take(), tell)?,
            State::Defragmented => {
                let v = match volume.take() {
                    Some(v) if work.aged => v,
                    v => work.age(v, tell)?,
                };
                v.finish()?;
                let mut d = device.clone();
                made = Some(defragment(&mut d, work.range.start, stop, &mut |x| tell("defragmenting", x))?);
                work.mount()?
            }
        };
        lab.filesystem = v.filesystem();
        let prepared = (device.now() - began).secs();
        let tree = v.tree()?;
        let mut condition = Condition {
            state,
            fragmentation: fragment::of_tree(&tree),
            map: Map::of_tree(&tree, work.range.start % settings.au, settings.au),
            space: v.space()?,
            defragmented: made,
            measured: Measured::default(),
            prepared,
        };
        v.set_host(settings.host)?;
        let measured = bench::measure(&mut v, &workload, stop, &mut |x| tell(&format!("measuring, {state}"), x));
        let back = v.set_host(Host::with(Cache::TABLES));
        condition.measured = measured?;
        // A state with more room copies no more files than the one before it.
        workload.folder = condition.measured.folder;
        if !condition.measured.samples.is_empty() || !stop.load(Ordering::Relaxed) {
            lab.conditions.push(condition);
        }
        back?;
        volume = Some(v);
    }
    match volume {
        Some(v) => v.finish(),
        None => Ok(()),
    }
}

struct Work<'a, D> {
    device: &'a Shared<D>,
    range: Range<u64>,
    settings: &'a Settings,
    stop: &'a AtomicBool,
    /// The volume holds the files of the plan.
    aged: bool,
}

impl<D: Device + 'static> Work<'_, D> {
    fn mount(&self) -> Result<FatVolume> {
        FatVolume::mount(Box::new(self.device.clone()), self.range.clone(), Host::with(Cache::TABLES))
    }

    fn format(&self) -> Result<FatVolume> {
        let how = Format { cluster: self.settings.cluster, kind: None };
        FatVolume::format(Box::new(self.device.clone()), self.range.clone(), &how, Host::with(Cache::TABLES))
    }

    /// Erases the medium; a note where it cannot be.
    fn erase(&self) -> Result<Option<String>> {
        if !self.settings.erase {
            return Ok(Some("the blank volume was formatted without erasing the medium".into()));
        }
        let mut device = self.device.clone();
        // Cards take a discard of any length; kernels split it themselves.
        let step = 64 * MIB;
        let mut at = self.range.start;
        while at < self.range.end {
            let len = step.min(self.range.end - at);
            match device.access(Access { op: Op::Discard, at, len }) {
                Ok(_) => {}
                Err(DeviceError::Unsupported(why)) => {
                    return Ok(Some(format!("the blank volume was formatted without erasing the medium: {why}")));
                }
                Err(e) => return Err(e.into()),
            }
            at += len;
        }
        Ok(None)
    }

    fn age(&mut self, volume: Option<FatVolume>, tell: Tell) -> Result<FatVolume> {
        drop(volume);
        let mut v = self.format()?;
        let plan = &self.settings.plan;
        let aged = age::age(&mut v, plan, self.stop, &mut |p| {
            tell(&format!("ageing, pass {} of {}", p.passes + 1, p.of), f64::from(p.passes) / f64::from(p.of.max(1)));
        })?;
        if aged.stopped {
            return Err(DeviceError::Late.into());
        }
        // A change in what is read back would make every figure worthless.
        let compared = age::verify(&mut v, &aged.state)?;
        debug_assert!(compared > 0);
        self.aged = true;
        Ok(v)
    }
}

/// A size that divides the volume into a map worth looking at: the AU where it is known, else by the size of the volume as the
/// SD specification bounds the AU (Physical Layer 4.10, 4.13.1).
pub fn map_grid(known: Option<u64>, size: u64) -> u64 {
    known.unwrap_or(match size {
        0..=0x400_0000 => MIB / 2,
        n if n <= 256 * MIB => MIB,
        n if n <= 512 * MIB => 2 * MIB,
        _ => 4 * MIB,
    })
}

/// One line about what will be done.
pub fn plan_text(s: &Settings, size: u64) -> String {
    let names: Vec<&str> = s.states.iter().map(|x| x.name()).collect();
    let mut text = format!("states: {}; {} rounds of {} file sizes", names.join(", "), s.workload.repeats, s.workload.sizes.len());
    if s.states.iter().any(|x| matches!(x, State::Fragmented | State::Defragmented)) {
        text += &format!("; ageing writes about {}", about(s.plan.writes(size)));
    }
    text
}

#[cfg(test)]
#[path = "experiment_tests.rs"]
mod tests;
