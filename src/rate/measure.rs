//! What `rate` does to a card: the steps of the procedures, timed.
//!
//! Sources: SD Physical Layer Simplified Specification 9.10, 4.13.1 (Speed Class), 4.13 (UHS, Video), 4.16 (application classes).

pub use super::measured::{Contiguous, Cut, FatCycles, Measured, Part, Random, Stretch, Unit};
use super::record::record;
use super::task::{CYCLES, shapes};
pub use super::task::{Tables, Task, least_unit, most_written};
use crate::device::{Access, Device, DeviceError, Fill, Op, Result};
use crate::host::class::{FAT_PIECE, Family};
use crate::units::{GIB, KIB, MIB, Nanos};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Bytes of a random access.
pub const SMALL: u64 = 4 * KIB;
/// The window of the random test (4.16).
pub const WINDOW: u64 = 256 * MIB;
/// Bytes of the sequential test of the application classes.
pub const SEQUENTIAL: u64 = GIB;
/// Seconds of random writes, and of random reads.
pub const RANDOM_S: f64 = 600.0;
/// Bytes of a read that shows what the reader carries, and how many there are.
pub const LONG: u64 = 512 * KIB;
const LONG_READS: u64 = 8;
/// Random reads of one recording unit (Pr).
const READS: usize = 256;
/// AUs in which moving is measured.
const MOVED: usize = 8;
/// The slowest units are measured again: one slow time may be the host's.
const AGAIN: usize = 3;
/// A random test is cut into so many parts, by which its interval is judged.
const PARTS: f64 = 40.0;

/// Runs the steps. What fails ends it early, with what was measured.
pub fn measure(device: &mut dyn Device, task: &Task, tell: &mut dyn FnMut(&str, f64)) -> Measured {
    let rng = Pcg64Mcg::new(u128::from(task.seed) << 1 | 1);
    let now = device.now();
    let mut m =
        Rating { device, task, rng, out: Measured::default(), until: task.deadline, seed: task.seed, tell, under: ("", 0.0, 0.0, now) };
    match m.all() {
        Ok(()) | Err(DeviceError::Late) if task.stop.load(Ordering::Relaxed) => m.ends(Cut::Interrupted, "interrupted".into()),
        Ok(()) | Err(DeviceError::Late) => {}
        Err(e) => m.ends(Cut::Failed, e.to_string()),
    }
    m.out
}

struct Rating<'a> {
    device: &'a mut dyn Device,
    task: &'a Task<'a>,
    rng: Pcg64Mcg,
    out: Measured,
    /// The end of the step under way.
    until: Nanos,
    seed: u64,
    tell: &'a mut dyn FnMut(&str, f64),
    /// The step under way: its name, the share of all that was done before, its own share, and when it began.
    under: (&'static str, f64, f64, Nanos),
}

enum Step {
    Units(u64, u64),
    Fat,
    Random(u32),
    Contiguous,
    Recording,
}

impl Rating<'_> {
    fn all(&mut self) -> Result<()> {
        let mut steps: Vec<(Step, f64, &'static str)> = vec![];
        if self.task.write {
            steps.extend(shapes(self.task).into_iter().map(|(ru, unit)| (Step::Units(ru, unit), 2.0, "sequential writes")));
            if !steps.is_empty() {
                steps.push((Step::Fat, 1.0, "FAT cycles"));
            }
        }
        let application = |queued: bool| self.task.classes.iter().any(|c| c.family() == Family::Application && (!queued || c.queued));
        if application(false) || self.task.random {
            steps.push((Step::Random(1), 3.0, "random accesses"));
            if application(true) && self.task.depth > 1 {
                steps.push((Step::Random(self.task.depth), 2.0, "random accesses, queued"));
            }
            if self.task.write {
                steps.push((Step::Contiguous, 2.0, "1 GiB sequentially"));
            }
        }
        if let Some(p) = self.task.recording.as_ref().filter(|p| self.task.write || p.reads) {
            steps.push((Step::Recording, 4.0, if p.reads { "reading" } else { "recording" }));
        }
        if application(false) || self.task.random || self.task.recording.is_some() {
            self.long_reads()?;
        }
        let mut left: f64 = steps.iter().map(|s| s.1).sum();
        let whole = left;
        for (step, weight, name) in steps {
            let now = self.device.now();
            self.under = (name, 1.0 - left / whole, weight / whole, now);
            self.tick(0.0);
            self.until = if self.task.whole { self.task.deadline } else { now + share(self.task.deadline, now, weight / left) };
            left -= weight;
            // A step that ran out of its time gives way to the next one.
            match self.step(&step) {
                Err(DeviceError::Late) if !self.task.stop.load(Ordering::Relaxed) && self.device.now() < self.task.deadline => {}
                // What is left may be reads.
                Err(DeviceError::Budget(what)) => self.ends(Cut::Budget, format!("the budget of writes is used up: {what}")),
                done => done?,
            }
        }
        Ok(())
    }

    /// Reads at places that are spread evenly, so that no random number is drawn for them.
    fn long_reads(&mut self) -> Result<()> {
        let (area, until) = (self.data(), self.part(0.1));
        let step = (area.end - area.start) / LONG_READS / LONG * LONG;
        for i in 0..if step > 0 { LONG_READS } else { 0 } {
            // Fewer than four give no interval.
            if i >= 4 && self.device.now() >= until {
                break;
            }
            let took = self.read(area.start + i * step, LONG)?;
            self.out.long_reads.push(took);
            if self.task.stop.load(Ordering::Relaxed) || self.device.now() >= self.until {
                return Err(DeviceError::Late);
            }
        }
        Ok(())
    }

    fn ends(&mut self, cut: Cut, why: String) {
        (self.out.cut, self.out.ended) = (Some(cut), Some(why));
    }

    fn step(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Units(ru, unit) => self.units(*ru, *unit),
            Step::Fat => self.fat(),
            Step::Random(depth) => self.random(*depth),
            Step::Contiguous => self.contiguous(),
            Step::Recording => {
                let Some(plan) = &self.task.recording else { return Ok(()) };
                let area = self.data();
                let (stop, until, (name, from, of, began), tell) = (self.task.stop, self.until, self.under, &mut *self.tell);
                let mut late = |now: Nanos, share: f64| {
                    tell(name, from + of * share.max(part_of(began, now, until)));
                    stop.load(Ordering::Relaxed) || now >= until
                };
                let done = record(self.device, plan, &area, self.task.tables, !self.task.whole, self.seed, &mut late);
                let (recording, ended) = done;
                self.out.recording = Some(recording);
                ended
            }
        }
    }

    /// Where files may lie: behind the tables.
    fn data(&self) -> Range<u64> {
        let Range { start, end } = self.task.region;
        let from = self.task.tables.data.max(start).next_multiple_of(4 * MIB);
        if from + 16 * MIB < end { from..end } else { start..end }
    }

    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.rng.next_u64()) * u128::from(n.max(1))) >> 64) as u64
    }

    /// Says how far it is.
    fn tick(&mut self, share: f64) {
        let (name, from, of, began) = self.under;
        (self.tell)(name, from + of * share.max(part_of(began, self.device.now(), self.until)));
    }

    fn late(&mut self) -> Result<()> {
        self.tick(0.0);
        let over = self.task.stop.load(Ordering::Relaxed) || self.device.now() >= self.until;
        if over { Err(DeviceError::Late) } else { Ok(()) }
    }

    /// A share of the time of this step.
    fn part(&self, share_of: f64) -> Nanos {
        let now = self.device.now();
        now + share(self.until, now, share_of)
    }

    fn write(&mut self, at: u64, len: u64) -> Result<f64> {
        self.seed = self.seed.wrapping_add(1);
        Ok(self.device.access(Access { op: Op::Write(Fill::Random(self.seed)), at, len })?.took.secs())
    }

    fn read(&mut self, at: u64, len: u64) -> Result<f64> {
        Ok(self.device.access(Access { op: Op::Read, at, len })?.took.secs())
    }

    /// True where the card took the discard.
    fn discard(&mut self, at: u64, len: u64) -> Result<bool> {
        match self.device.access(Access { op: Op::Discard, at, len }) {
            Ok(_) => Ok(true),
            Err(DeviceError::Unsupported(_) | DeviceError::Io { .. }) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Whole units, everywhere or spread evenly; then reads of recording units, and AUs half of which is in use.
    fn units(&mut self, ru: u64, unit: u64) -> Result<()> {
        let area = self.data();
        let first = area.start.next_multiple_of(unit);
        let of = area.end.saturating_sub(first) / unit;
        let mut s = Stretch { ru, unit, units: vec![], of, erased: true, reads: vec![], half_used: vec![] };
        let moving = self.task.classes.iter().any(|c| c.moving > 0.0 && c.recording_unit(self.task.capacity) == ru);
        let (end, writing) = (self.until, self.part(if moving { 0.4 } else { 0.6 }));
        if !self.task.whole {
            self.until = writing;
        }
        let mut done = self.spread(&mut s, first);
        if matches!(done, Err(DeviceError::Late)) && !self.task.whole {
            done = Ok(());
        }
        self.until = end;
        let then = done.and_then(|()| self.the_rest(&mut s, first, moving));
        self.out.stretches.push(s);
        then
    }

    fn the_rest(&mut self, s: &mut Stretch, first: u64, moving: bool) -> Result<()> {
        self.unit_reads(s)?;
        if moving {
            self.moving(s, first)?;
        }
        if s.units.iter().all(|u| u.cut.is_none()) { self.slowest(s) } else { Ok(()) }
    }

    fn spread(&mut self, s: &mut Stretch, first: u64) -> Result<()> {
        let mut seen = BTreeSet::new();
        let origin = self.below(s.of);
        for i in 0..s.of {
            // Steps of the golden ratio: any number of them is spread evenly.
            let n = if self.task.whole { i } else { (origin + ((i as f64 * 0.618_033_988_75).fract() * s.of as f64) as u64) % s.of };
            if seen.insert(n) {
                let u = self.unit(s, first + n * s.unit)?;
                // One that was cut says something where nothing else does.
                if u.cut.is_none() || s.units.is_empty() {
                    s.units.push(u);
                }
                self.late()?;
            }
        }
        Ok(())
    }

    fn unit(&mut self, s: &mut Stretch, at: u64) -> Result<Unit> {
        self.device.keep_old(&[(at, s.unit)])?;
        s.erased &= self.discard(at, s.unit)?;
        let mut took = vec![];
        for at in (at..at + s.unit).step_by(s.ru as usize) {
            if self.device.now() >= self.until {
                break;
            }
            took.push(self.write(at, s.ru)?);
        }
        // Two writes say little of a whole unit.
        if took.len() < 3.min((s.unit / s.ru) as usize) {
            return Err(DeviceError::Late);
        }
        let written = took.len() as u64 * s.ru;
        let scale = s.unit as f64 / written as f64;
        let spread = nandscope_stats::mad(&took) * (took.len() as f64).sqrt() * scale;
        let longest_ms = took.iter().copied().fold(0.0, f64::max) * 1e3;
        let cut = (written < s.unit).then_some(written);
        Ok(Unit { at, seconds: took.iter().sum::<f64>() * scale, again: None, spread, longest_ms, cut })
    }

    fn slowest(&mut self, s: &mut Stretch) -> Result<()> {
        let mut order: Vec<usize> = (0..s.units.len()).collect();
        nandscope_stats::sort_by(&mut order, |&i, &j| s.units[j].seconds.total_cmp(&s.units[i].seconds));
        for i in order.into_iter().take(AGAIN) {
            let (one, two) = (self.unit(s, s.units[i].at)?, self.unit(s, s.units[i].at)?);
            if one.cut.is_none() && two.cut.is_none() {
                s.units[i].again = Some(one.seconds.min(two.seconds));
            }
            self.late()?;
        }
        Ok(())
    }

    fn unit_reads(&mut self, s: &mut Stretch) -> Result<()> {
        let until = self.part(0.5);
        while !s.units.is_empty() && s.reads.len() < READS && (self.task.whole || self.device.now() < until) {
            let u = self.below(s.units.len() as u64) as usize;
            let at = s.units[u].at + self.below(s.unit / s.ru) * s.ru;
            s.reads.push(self.read(at, s.ru)?);
            self.late()?;
        }
        Ok(())
    }

    /// AUs of which every other recording unit is in use: what is written between them makes the card move those.
    fn moving(&mut self, s: &mut Stretch, first: u64) -> Result<()> {
        for _ in 0..MOVED {
            let at = first + self.below(s.of) * s.unit;
            if self.unit(s, at)?.cut.is_some() {
                return Err(DeviceError::Late);
            }
            let (mut seconds, mut bytes) = (0.0, 0);
            for at in (at..at + s.unit).step_by(2 * s.ru as usize) {
                self.late()?;
                seconds += self.write(at, s.ru)?;
                bytes += s.ru;
            }
            s.half_used.push(bytes as f64 / seconds);
            self.late()?;
        }
        Ok(())
    }

    fn fat(&mut self) -> Result<()> {
        let (t, area) = (self.task.tables, self.data());
        let Some(ru) = self.out.stretches.iter().map(|s| s.ru).max() else { return Ok(()) };
        let sector = self.device.geometry().sector.max(512);
        self.device.keep_old(&[(t.fat, FAT_PIECE), (t.copy, FAT_PIECE), (t.directory, sector)])?;
        let mut at = area.start + self.below((area.end - area.start) / (64 * MIB)) * 64 * MIB;
        for i in 0..CYCLES[usize::from(!self.task.whole)] {
            for _ in 0..2 {
                if at + ru > area.end {
                    at = area.start;
                }
                self.late()?;
                self.device.keep_old(&[(at, ru)])?;
                self.write(at, ru)?;
                at += ru;
            }
            let cycle = self.write(t.fat, FAT_PIECE)? + self.write(t.copy, FAT_PIECE)? + self.write(t.directory, sector)?;
            self.out.fat.cycles_ms.push(cycle * 1e3);
            if i % 2 == 0 {
                let ms = self.read(t.fat, SMALL)? * 1e3;
                self.out.fat.reads_ms.push(ms);
            }
            self.late()?;
        }
        Ok(())
    }

    /// Fill, window, random writes, random reads over the same window (4.16).
    fn random(&mut self, depth: u32) -> Result<()> {
        let area = self.data();
        let room = area.end - area.start;
        let mut r = Random { depth, ..Random::default() };
        let done = self.random_test(&mut r, &area, room);
        self.out.random.push(r);
        done
    }

    fn random_test(&mut self, r: &mut Random, area: &Range<u64>, room: u64) -> Result<()> {
        let len = 4 * MIB;
        if self.task.whole && self.task.write {
            self.discard(area.start, room)?;
            let until = area.start + room / 4 * 3 / len * len;
            for at in (area.start..until).step_by(len as usize) {
                self.device.keep_old(&[(at, len)])?;
                self.write(at, len)?;
                r.filled += len;
                self.late()?;
            }
        }
        let reach = if r.filled > 0 { r.filled } else { room };
        let most = WINDOW.min(reach / 2).max(MIB.min(reach)) / SMALL * SMALL;
        let start = area.start + self.below((reach - most) / SMALL) * SMALL;
        let (end, filling) = (self.until, self.part(0.3));
        if self.task.write {
            while r.window + MIB <= most && (self.task.whole || self.device.now() < filling) {
                let at = start + r.window;
                self.device.keep_old(&[(at, MIB)])?;
                self.write(at, MIB)?;
                r.window += MIB;
                if self.task.stop.load(Ordering::Relaxed) {
                    return Err(DeviceError::Late);
                }
            }
        }
        let slots = if self.task.write { r.window } else { most } / SMALL;
        r.window = slots * SMALL;
        let ten = Nanos::from_secs_f64(RANDOM_S);
        for writing in [true, false] {
            if writing && !self.task.write || slots == 0 {
                continue;
            }
            let now = self.device.now();
            let time = if self.task.whole { ten } else { share(end, now, if writing { 0.6 } else { 0.95 }) };
            let parts = self.accesses(writing, start, slots, r.depth, time)?;
            if writing { &mut r.writes } else { &mut r.reads }.extend(parts);
        }
        Ok(())
    }

    fn accesses(&mut self, writing: bool, start: u64, slots: u64, depth: u32, time: Nanos) -> Result<Vec<Part>> {
        let (began, each) = (self.device.now(), time.secs() / PARTS);
        let mut parts: Vec<Part> = vec![];
        let mut now = Part { requests: 0, seconds: 0.0 };
        while self.device.now() < began + time {
            self.tick(0.0);
            if self.task.stop.load(Ordering::Relaxed) {
                return Err(DeviceError::Late);
            }
            if depth > 1 {
                let mut all = Vec::with_capacity(8 * depth as usize);
                for _ in 0..8 * depth {
                    let op = if writing { Op::Write(Fill::Random(self.rng.next_u64())) } else { Op::Read };
                    all.push(Access { op, at: start + self.below(slots) * SMALL, len: SMALL });
                }
                let from = self.device.now();
                let times = self.device.batch(&all, depth)?;
                let last = times.iter().map(|t| t.start + t.took).max().unwrap_or(from);
                let first = times.iter().map(|t| t.start).min().unwrap_or(from);
                now.requests += all.len() as u64;
                now.seconds += (last - first).secs();
            } else {
                let at = start + self.below(slots) * SMALL;
                now.seconds += if writing { self.write(at, SMALL)? } else { self.read(at, SMALL)? };
                now.requests += 1;
            }
            if now.seconds >= each {
                parts.push(now);
                now = Part { requests: 0, seconds: 0.0 };
            }
        }
        if now.seconds >= each / 2.0 {
            parts.push(now);
        }
        Ok(parts)
    }

    fn contiguous(&mut self) -> Result<()> {
        let (area, len) = (self.data(), 4 * MIB);
        let room = (area.end - area.start) / len;
        let mut c = Contiguous { len, ..Contiguous::default() };
        let done = self.contiguous_test(&mut c, &area, room);
        self.out.contiguous = c;
        done
    }

    fn contiguous_test(&mut self, c: &mut Contiguous, area: &Range<u64>, room: u64) -> Result<()> {
        if self.task.whole {
            self.discard(area.start, room * c.len)?;
            for at in (area.start..area.start + room * c.len).step_by(c.len as usize) {
                self.device.keep_old(&[(at, c.len)])?;
                self.write(at, c.len)?;
                c.filled += c.len;
                self.late()?;
            }
        }
        let wanted = (SEQUENTIAL / c.len).min(room);
        let first = area.start + self.below(room - wanted + 1) * c.len;
        for i in 0..wanted {
            let at = first + i * c.len;
            self.device.keep_old(&[(at, c.len)])?;
            let took = self.write(at, c.len)?;
            c.seconds.push(took);
            self.late()?;
        }
        Ok(())
    }
}

/// How much of the time from one point to another is over.
fn part_of(from: Nanos, now: Nanos, to: Nanos) -> f64 {
    if to > from && now > from { ((now - from).secs() / (to - from).secs()).min(1.0) } else { 0.0 }
}

/// A share of the time from now to then.
fn share(then: Nanos, now: Nanos, of: f64) -> Nanos {
    Nanos::from_secs_f64(if then > now { (then - now).secs() } else { 0.0 } * of)
}
