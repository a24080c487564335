//! Two settings on one target, in turn: pairs of trials that differ in nothing else, in random order. (Q15)
//!
//! Both trials of a pair do the same accesses at the same offsets in two stretches of the same size; which stretch, and which
//! setting goes first, is drawn anew for each pair. The first access of a trial opens its AU and is not counted.

mod written;

use crate::device::mmc::Multi;
use crate::device::{Access, Device, DeviceError, Fill, Op};
use crate::samples::{Cell, Ended, Run, Sample};
use crate::units::{Bytes, KIB, MIB, Nanos};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use serde::Serialize;
use std::ops::Range;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use written::Written;

/// What the trials do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Writes of 1 to 24 sectors that begin on any sector, upwards: what the split of the MMC quirks thread is for (Q18).
    Unaligned,
    /// Linear writes, aligned to their size.
    Linear,
    /// The same in random order.
    Random,
    /// Reads in random order.
    Read,
}

impl Load {
    pub const ALL: [Load; 4] = [Load::Unaligned, Load::Linear, Load::Random, Load::Read];

    pub fn name(self) -> &'static str {
        match self {
            Load::Unaligned => "unaligned",
            Load::Linear => "linear",
            Load::Random => "random",
            Load::Read => "read",
        }
    }

    /// One access in words.
    pub fn access(self) -> &'static str {
        match self {
            Load::Unaligned => "an unaligned write",
            Load::Linear => "a sequential write",
            Load::Random => "a random write",
            Load::Read => "a random read",
        }
    }

    pub fn writes(self) -> bool {
        self != Load::Read
    }
}

impl FromStr for Load {
    type Err = String;

    fn from_str(s: &str) -> Result<Load, String> {
        let names = Load::ALL.map(Load::name).join(", ");
        Load::ALL.into_iter().find(|l| l.name() == s).ok_or_else(|| format!("'{s}' is no load; there are: {names}"))
    }
}

/// One side of the comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// As it was given.
    pub text: String,
    /// Writes are cut at multiples of this many bytes of the whole disk.
    pub split: Option<u64>,
    /// The stretch is discarded before each trial.
    pub discard: bool,
    /// Settings of the kernel's queue.
    pub queue: Vec<(String, String)>,
    /// Accesses in flight at a time; none: one.
    pub depth: Option<u32>,
    /// The card's volatile write cache is on.
    pub cache: Option<bool>,
    /// Writes announce their length (CMD23), or are ended by CMD12.
    pub announced: Option<bool>,
}

/// Accesses in flight where the queue is on: as many as a card's queue can hold (SD Physical Layer 4.19, JESD84-B51 6.6.39).
pub const QUEUE: u32 = 32;

impl FromStr for Setting {
    type Err = String;

    /// "queue=on", "cache=off", "cmd23=on", "discard=on", "split=8KiB", "scheduler=none,max_sectors_kb=64", "default".
    fn from_str(s: &str) -> Result<Setting, String> {
        let mut out = Setting { text: s.into(), ..Setting::default() };
        let mut seen = vec![];
        for part in s.split(',').map(str::trim).filter(|p| !p.is_empty() && *p != "default") {
            let (key, value) = part.split_once('=').ok_or_else(|| format!("'{part}' is no setting; write for example split=8KiB"))?;
            if seen.contains(&key) {
                return Err(format!("{key} is given twice; one value of it can act"));
            }
            seen.push(key);
            match (key, value) {
                ("split", "off") => out.split = None,
                ("split", v) => {
                    let b = v.parse::<Bytes>()?.0;
                    if !b.is_power_of_two() || !(512..=64 * MIB).contains(&b) {
                        return Err(format!("split={v}: a split is a power of two from 512 to 64MiB, or off"));
                    }
                    out.split = Some(b);
                }
                ("queue", "on") => out.depth = Some(QUEUE),
                ("queue", "off") => out.depth = Some(1),
                ("queue", v) => {
                    let most = v.parse().ok().filter(|n| (1..=256).contains(n));
                    out.depth = Some(most.ok_or_else(|| format!("queue={v}: write on, off, or accesses in flight from 1 to 256"))?);
                }
                ("cache", v @ ("on" | "off")) => out.cache = Some(v == "on"),
                ("cache", v) => return Err(format!("cache={v}: write on or off")),
                ("cmd23", v @ ("on" | "off")) => out.announced = Some(v == "on"),
                ("cmd23", v) => return Err(format!("cmd23={v}: write on or off")),
                ("discard", "before" | "on") => out.discard = true,
                ("discard", "off") => out.discard = false,
                ("discard", v) => return Err(format!("discard={v}: write discard=on or discard=off")),
                (k, v) if crate::host::queue::KNOBS.contains(&k) && !v.is_empty() => out.queue.push((k.into(), v.into())),
                (k, _) => {
                    let knobs = crate::host::queue::KNOBS.join(", ");
                    let own = ["split", "queue", "cache", "cmd23", "discard"];
                    let near = crate::device::nearest(k, own.into_iter().chain(crate::host::queue::KNOBS));
                    let meant = near.map_or(String::new(), |n| format!(" did you mean {n}?"));
                    return Err(format!("there is no setting '{k}';{meant} there are: {}, {knobs}", own.join(", ")));
                }
            }
        }
        Ok(out)
    }
}

impl Setting {
    /// The same without its text and without parts that change nothing of a load; and those parts, each with the reason.
    pub fn acting(&self, load: Load, size: u64) -> (Setting, Vec<String>) {
        let (mut out, mut idle) = (Setting { text: String::new(), ..self.clone() }, vec![]);
        // Linear and random accesses begin at multiples of their size, on a grid of 4 MiB.
        let cuts = |split: u64| load == Load::Unaligned || size > split || !split.is_multiple_of(size);
        if let Some(split) = self.split.filter(|s| !load.writes() || !cuts(*s)) {
            let why = if load.writes() {
                format!("no write of {} lies over a multiple of it", Bytes(size))
            } else {
                "it cuts writes, and this load reads".into()
            };
            idle.push(format!("split={} changes nothing here: {why}", Bytes(split)));
            out.split = None;
        }
        if let Some(on) = self.announced.filter(|_| !load.writes()) {
            idle.push(format!("cmd23={} changes nothing here: it is of writes, and this load reads", if on { "on" } else { "off" }));
            out.announced = None;
        }
        (out, idle)
    }
}

/// What is to be done.
pub struct Plan<'a> {
    pub settings: [Setting; 2],
    pub load: Load,
    /// Bytes of one access; the largest one for `Unaligned` is 24 sectors whatever this says.
    pub size: u64,
    /// Accesses of a trial.
    pub count: u64,
    pub pairs: u32,
    pub region: Range<u64>,
    pub seed: u64,
    /// On the device's clock; pairs that are complete by then count.
    pub deadline: Nanos,
    pub stop: &'a AtomicBool,
}

/// What became of what was written under each setting.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Kept {
    /// Bytes that were read back, under A and under B.
    pub checked: [u64; 2],
    /// Bytes that do not show what was written there last.
    pub wrong: [u64; 2],
    /// The first such place.
    pub first: [Option<u64>; 2],
    /// Bytes that could not be read, under either.
    pub unread: u64,
    /// Why nothing could be read back.
    pub unchecked: Option<String>,
}

const OPENING: u8 = 0;
const COUNTED: u8 = 1;
const DISCARD: u8 = 2;
/// Bringing to the medium what a trial wrote.
const FLUSH: u8 = 3;

/// Room that one unaligned write has for itself.
const SLOT: u64 = 32 * KIB;

impl Plan<'_> {
    /// Bytes of the stretch a trial works in.
    pub fn stretch(&self) -> u64 {
        let slot = if self.load == Load::Unaligned { SLOT } else { self.size };
        ((self.count + 1) * slot).next_multiple_of(4 * MIB)
    }

    /// Most bytes the whole comparison writes.
    pub fn writes(&self) -> u64 {
        let each = if self.load == Load::Unaligned { 24 * 512 } else { self.size };
        if self.load.writes() { u64::from(self.pairs) * 2 * (self.count + 1) * each } else { 0 }
    }

    /// Most bytes that are overwritten or discarded, which is what an undo puts back.
    pub fn changes(&self) -> u64 {
        let discards = self.settings.iter().filter(|s| s.discard).count() as u64;
        (self.writes() + discards * (u64::from(self.pairs) + 1) * self.stretch()).min(self.region.end - self.region.start)
    }

    /// The accesses of a trial, as offset in its stretch and length; the first opens.
    fn accesses(&self, sector: u64, rng: &mut Pcg64Mcg) -> Vec<(u64, u64)> {
        let below = |rng: &mut Pcg64Mcg, n: u64| rng.next_u64() % n.max(1);
        if self.load == Load::Unaligned {
            let most = 24 * 512 / sector.min(24 * 512);
            let one = |rng: &mut Pcg64Mcg, i: u64| {
                let len = (1 + below(rng, most)) * sector;
                (i * SLOT + below(rng, (SLOT - len) / sector + 1) * sector, len)
            };
            return (0..=self.count).map(|i| one(rng, i)).collect();
        }
        let slots = self.stretch() / self.size;
        let mut all: Vec<u64> = (0..slots).collect();
        if self.load != Load::Linear {
            for i in (1..all.len()).rev() {
                all.swap(i, below(rng, i as u64 + 1) as usize);
            }
        }
        all.into_iter().take(self.count as usize + 1).map(|s| (s * self.size, self.size)).collect()
    }
}

/// Runs the pairs. `turn` puts the settings of one side (0 or 1) into the host before each trial, `progress` hears how many
/// pairs are done. A device that fails ends the run, with what was measured.
///
/// # Errors
/// `OutOfBounds` where the region has no room for two stretches; whatever `turn` says.
pub fn run(
    plan: &Plan,
    device: &mut dyn Device,
    turn: &mut dyn FnMut(usize) -> Result<(), DeviceError>,
    progress: &mut dyn FnMut(u32),
) -> Result<(Run, Kept), DeviceError> {
    let mut written = Written::default();
    // What the first setting of all was, where one side leaves it alone.
    let cache = plan.settings.iter().find_map(|s| s.cache);
    let cache = cache.map(|on| device.switch_cache(on)).transpose()?;
    if let Some(how) = plan.settings.iter().find_map(announced) {
        device.write_as(Some(how))?;
        device.write_as(None)?;
    }
    let done = pairs_of_trials(plan, device, cache, &mut written, turn, progress);
    let back = cache.map_or(Ok(true), |on| device.switch_cache(on)).and(device.write_as(None));
    let mut run = done?;
    back?;
    if run.ended == Ended::Complete {
        discard_amid(plan, device, &mut written, &mut run)?;
    }
    let kept = written.check(device)?;
    Ok((run, kept))
}

/// Small discards in the middle of what was written by a side that discards. A discard of a whole stretch may be right where one of a few KiB
/// takes what lies beside it along. They come last, so that no trial is timed after one.
fn discard_amid(plan: &Plan, device: &mut dyn Device, written: &mut Written, run: &mut Run) -> Result<(), DeviceError> {
    for (side, _) in plan.settings.iter().enumerate().filter(|(_, s)| s.discard) {
        for at in written.amid(side as u32) {
            let a = Access { op: Op::Discard, at, len: written::AMID };
            let t = device.access(a)?;
            let (cell, trial) = (side as u32, plan.pairs + 1);
            run.extend(vec![Sample { cell, trial, role: DISCARD, op: a.op, at, len: a.len, start: t.start, took: t.took }]);
            written.forget(at, written::AMID);
        }
    }
    if plan.load.writes() && plan.settings.iter().any(|s| s.discard) {
        device.access(Access { op: Op::Flush, at: 0, len: 0 })?;
    }
    Ok(())
}

/// The form of writes that a setting asks for.
fn announced(s: &Setting) -> Option<Multi> {
    s.announced.map(|on| if on { Multi::PreDefined } else { Multi::OpenEnded })
}

fn pairs_of_trials(
    plan: &Plan,
    device: &mut dyn Device,
    cache: Option<bool>,
    written: &mut Written,
    turn: &mut dyn FnMut(usize) -> Result<(), DeviceError>,
    progress: &mut dyn FnMut(u32),
) -> Result<Run, DeviceError> {
    let g = device.geometry().clone();
    if plan.load != Load::Unaligned && (plan.size == 0 || !plan.size.is_multiple_of(g.sector)) {
        return Err(DeviceError::OutOfBounds(format!("--size {} is no multiple of the {} byte sector", plan.size, g.sector)));
    }
    let stretch = plan.stretch();
    // Stretches lie on the grid of the whole disk.
    let first = (plan.region.start + g.offset).next_multiple_of(4 * MIB) - g.offset;
    let room = plan.region.end.saturating_sub(first) / stretch;
    if room < 2 {
        return Err(DeviceError::OutOfBounds(format!(
            "two stretches of {} do not fit into the region; take fewer or smaller accesses (--count, --size) or a larger region",
            Bytes(stretch)
        )));
    }
    let mut run = Run::new("ab");
    for (i, s) in plan.settings.iter().enumerate() {
        let mut c = Cell::new(format!("{}: {}", ["A", "B"][i], s.text), &[("size", plan.size as i64), ("count", plan.count as i64)]);
        c.id = i as u32;
        run.cells.push(c);
    }
    let mut rng = Pcg64Mcg::new((plan.seed as u128) << 64 | 0x61_625f_7061_6972);
    (0..8).for_each(|_| _ = rng.next_u64());
    // One trial of each side that does not count: the first of all meets a card at rest.
    for pair in 0..=plan.pairs {
        let accesses = plan.accesses(g.sector, &mut rng);
        let one = rng.next_u64() % room;
        let two = (one + 1 + rng.next_u64() % (room - 1)) % room;
        let (flip, swap) = (rng.next_u64() >> 63 == 1, rng.next_u64() >> 63 == 1);
        let mut taken: Vec<Sample> = vec![];
        for turn_no in 0..2 {
            if plan.stop.load(Ordering::Relaxed) {
                run.ended = Ended::Interrupted;
                return Ok(run);
            }
            if device.now() >= plan.deadline {
                run.ended = Ended::Budget("time".into());
                return Ok(run);
            }
            let side = turn_no ^ flip as usize;
            let base = first + if (side == 0) == swap { one } else { two } * stretch;
            turn(side)?;
            let setting = &plan.settings[side];
            if let Some(on) = setting.cache.or(cache) {
                device.switch_cache(on)?;
            }
            device.write_as(announced(setting))?;
            let deferred = plan.settings.iter().any(|s| s.depth.is_some() || s.cache.is_some());
            let mut bench = Trial { device, setting, deferred, cell: side as u32, pair, taken: &mut taken, written };
            match bench.go(plan.load, base, stretch, &accesses) {
                Ok(()) => {}
                Err(DeviceError::Budget(what)) => {
                    run.ended = Ended::Budget(what);
                    return Ok(run);
                }
                Err(e @ (DeviceError::Io { .. } | DeviceError::Journal { .. } | DeviceError::Gone { .. })) => {
                    run.ended = Ended::Failed(e.to_string());
                    return Ok(run);
                }
                Err(e) => return Err(e),
            }
        }
        if pair > 0 {
            run.extend(taken);
            progress(pair);
        }
    }
    Ok(run)
}

struct Trial<'a> {
    device: &'a mut dyn Device,
    setting: &'a Setting,
    /// Writes are brought to the medium at the end of the trial, not one by one.
    deferred: bool,
    cell: u32,
    pair: u32,
    taken: &'a mut Vec<Sample>,
    written: &'a mut Written,
}

impl Trial<'_> {
    fn go(&mut self, load: Load, base: u64, stretch: u64, accesses: &[(u64, u64)]) -> Result<(), DeviceError> {
        if self.setting.discard {
            self.one(DISCARD, Op::Discard, base, stretch)?;
            self.written.forget(base, stretch);
        }
        // A setting of the queue may need a moment.
        self.device.idle(Nanos(2_000_000));
        if self.deferred {
            return self.together(load, base, accesses);
        }
        for (i, &(at, len)) in accesses.iter().enumerate() {
            let role = if i == 0 { OPENING } else { COUNTED };
            if load.writes() {
                let op = Op::Write(Fill::Random(u64::from(self.pair)));
                self.cut(role, op, base + at, len)?;
            } else {
                self.one(role, Op::Read, base + at, len)?;
            }
        }
        Ok(())
    }

    /// The first access alone, the others with as many in flight as the setting says, and what was written brought to the medium.
    fn together(&mut self, load: Load, base: u64, accesses: &[(u64, u64)]) -> Result<(), DeviceError> {
        let op = if load.writes() { Op::Write(Fill::Random(u64::from(self.pair))) } else { Op::Read };
        let all: Vec<Access> = accesses.iter().map(|&(at, len)| Access { op, at: base + at, len }).collect();
        let (Some(first), rest) = (all.first(), all.get(1..).unwrap_or(&[])) else { return Ok(()) };
        if load.writes() {
            all.iter().for_each(|a| self.written.note(a.at, a.len, self.pair, self.cell));
        }
        self.single(OPENING, *first)?;
        let depth = self.setting.depth.unwrap_or(1);
        if depth <= 1 {
            rest.iter().try_for_each(|a| self.single(COUNTED, *a))?;
        } else {
            let times = self.device.batch(rest, depth)?;
            // What overlaps is counted once: each access takes the time by which it made the whole longer.
            let mut ends: Vec<(usize, u64)> = times.iter().enumerate().map(|(i, t)| (i, (t.start + t.took).0)).collect();
            nandscope_stats::sort_by_key(&mut ends, |e| e.1);
            let mut before = times.iter().map(|t| t.start.0).min().unwrap_or(0);
            for (i, end) in ends {
                let took = Nanos(end.saturating_sub(before));
                before = before.max(end);
                self.sample(COUNTED, rest[i], times[i].start, took);
            }
        }
        if load.writes() {
            let flush = Access { op: Op::Flush, at: 0, len: 0 };
            let t = self.device.access(flush)?;
            self.sample(FLUSH, flush, t.start, t.took);
        }
        Ok(())
    }

    /// One access without a flush of its own.
    fn single(&mut self, role: u8, a: Access) -> Result<(), DeviceError> {
        let t = match a.op {
            Op::Write(fill) if self.setting.announced.is_none() => {
                let mut bytes = vec![0; a.len as usize];
                fill.render(a.at, &mut bytes);
                self.device.put(a.at, &bytes)?
            }
            _ => self.device.access(a)?,
        };
        self.sample(role, a, t.start, t.took);
        Ok(())
    }

    fn sample(&mut self, role: u8, a: Access, start: Nanos, took: Nanos) {
        self.taken.push(Sample { cell: self.cell, trial: self.pair, role, op: a.op, at: a.at, len: a.len, start, took });
    }

    /// One write, in as many pieces as the setting makes of it.
    fn cut(&mut self, role: u8, op: Op, mut at: u64, len: u64) -> Result<(), DeviceError> {
        let (end, offset) = (at + len, self.device.geometry().offset);
        while at < end {
            let next = self.setting.split.map_or(end, |s| ((at + offset) / s + 1) * s - offset).min(end);
            self.one(role, op, at, next - at)?;
            at = next;
        }
        Ok(())
    }

    fn one(&mut self, role: u8, op: Op, at: u64, len: u64) -> Result<(), DeviceError> {
        if matches!(op, Op::Write(_)) {
            self.written.note(at, len, self.pair, self.cell);
        }
        let a = Access { op, at, len };
        let t = self.device.access(a)?;
        self.sample(role, a, t.start, t.took);
        Ok(())
    }
}

/// Time of both trials of each complete pair, in ms.
pub fn pairs(run: &Run) -> Vec<(f64, f64)> {
    let of = |cell: u32| -> Vec<(u32, f64)> {
        let sum = |t: &Vec<&Sample>| t.iter().filter(|s| [COUNTED, FLUSH].contains(&s.role)).map(|s| s.took.millis()).sum();
        let timed = |t: &&Vec<&Sample>| t.iter().any(|s| s.role == COUNTED);
        run.trials(cell).iter().filter(timed).filter_map(|t| Some((t.first()?.trial, sum(t)))).collect()
    };
    let b = of(1);
    of(0).into_iter().filter_map(|(n, x)| Some((x, b.iter().find(|y| y.0 == n)?.1))).collect()
}
