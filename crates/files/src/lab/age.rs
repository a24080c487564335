//! Ages a volume: passes of creating and removing files of random size, so that files and free space fall into pieces (P2).
//!
//! What happens is a pure function of the plan and the room ([`History`]), so the same plan makes the same files. Files are
//! written in turn, a piece at a time, as by programs that run at the same time: next-fit allocators lay those pieces side by
//! side, and a file removed later leaves holes of that size. Progress is kept in two small files on the volume itself, so a
//! run that was stopped, or killed, goes on where it was: every step can be done twice.

use crate::chance;
use crate::device::Fill;
use crate::units::{Bytes, KIB, MIB};
use crate::volume::{FileId, Result, Volume, VolumeError};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};

/// Directory that holds everything this makes.
pub const DIRECTORY: &str = "NSAGE";
/// Written in turn, so that one of them is always whole.
const STATE: [&str; 2] = ["NSAGE/STATE0", "NSAGE/STATE1"];
/// Length of the block that contents are cut from.
const BLOCK: usize = MIB as usize;

/// How sizes of files are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sizes {
    /// Each doubling of the size is as likely as the next: many small files, and few large ones that hold most of the data.
    LogUniform,
    Uniform,
}

/// What is done. The same plan on the same volume makes the same files in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub passes: u32,
    /// Smallest and largest file, in bytes.
    pub smallest: u64,
    pub largest: u64,
    pub sizes: Sizes,
    /// Share of the volume in use at the end of each pass.
    pub fill: f64,
    /// Share of the files that each pass removes before it makes new ones.
    pub churn: f64,
    /// Files that are written in turn.
    pub together: u32,
    /// Mean bytes a file grows by in its turn; 0 = one cluster of the volume.
    pub piece: u64,
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            passes: 50,
            smallest: KIB,
            largest: 25_000_000,
            sizes: Sizes::LogUniform,
            fill: 0.9,
            churn: 0.2,
            together: 16,
            piece: 0,
            seed: 1,
        }
    }
}

impl Plan {
    /// Does this one differ from another by the number of passes at most?
    pub fn alike(&self, other: &Plan) -> bool {
        Plan { passes: other.passes, ..*self } == *other
    }

    /// # Errors
    /// The first number that makes no sense, and what would.
    pub fn check(&self) -> std::result::Result<(), String> {
        let share = |name: &str, x: f64, least: f64, most: f64| {
            if (least..=most).contains(&x) { Ok(()) } else { Err(format!("{name} is {x}; it must lie between {least} and {most}")) }
        };
        share("the fill level", self.fill, 0.01, 0.99)?;
        share("the share of files removed", self.churn, 0.0, 1.0)?;
        if self.smallest == 0 || self.smallest > self.largest || self.largest > u64::from(u32::MAX) {
            return Err(format!("file sizes from {} to {}; they must be 1 B to 4 GiB, the smaller first", self.smallest, self.largest));
        }
        if self.passes == 0 || self.passes > 100_000 || self.together == 0 || self.together > 64 {
            return Err("--passes takes 1 to 100000, --together 1 to 64 files".into());
        }
        if self.piece > BLOCK as u64 / 2 {
            return Err(format!("pieces of {}; they can be at most 512 KiB", Bytes(self.piece)));
        }
        Ok(())
    }

    /// Bytes that it writes to an empty volume of this size, about: the first pass fills it, each further one replaces what it removed.
    pub fn writes(&self, size: u64) -> u64 {
        // Removing a share of the files frees about that share of their bytes.
        (size as f64 * self.fill * (1.0 + self.churn * f64::from(self.passes.saturating_sub(1)))) as u64
    }
}

/// A file to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct New {
    pub id: u32,
    pub len: u64,
}

impl New {
    /// Its name on the volume.
    pub fn path(&self) -> String {
        path(self.id)
    }
}

fn path(id: u32) -> String {
    format!("{DIRECTORY}/F{id:07}.BIN")
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Files made, as many in turn as the plan says.
    Make(Vec<New>),
    Remove(u32),
    /// A pass is over; the number of passes done.
    Pass(u32),
}

/// The steps of a plan, one after the other, without a volume.
pub struct History {
    plan: Plan,
    /// Bytes that files may take, in whole clusters.
    room: u64,
    cluster: u64,
    rng: Pcg64Mcg,
    live: Vec<New>,
    used: u64,
    next: u32,
    pass: u32,
    queue: Vec<Step>,
}

impl History {
    /// `room`: bytes that the files of a pass may take up; `cluster`: the unit in which they get room.
    pub fn new(plan: Plan, room: u64, cluster: u64) -> History {
        let rng = chance::generator(plan.seed);
        History { plan, room, cluster, rng, live: vec![], used: 0, next: 0, pass: 0, queue: vec![] }
    }

    /// The files there are after the steps taken so far.
    pub fn live(&self) -> &[New] {
        &self.live
    }

    fn unit(&mut self) -> f64 {
        (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn takes(&self, len: u64) -> u64 {
        len.next_multiple_of(self.cluster)
    }

    fn size(&mut self) -> u64 {
        let (a, b) = (self.plan.smallest as f64, self.plan.largest as f64);
        let u = self.unit();
        let x = match self.plan.sizes {
            Sizes::LogUniform => a * (b / a).powf(u),
            Sizes::Uniform => a + (b - a) * u,
        };
        (x.round() as u64).clamp(self.plan.smallest, self.plan.largest)
    }

    fn plan_pass(&mut self) {
        if self.pass > 0 {
            let n = (self.live.len() as f64 * self.plan.churn).round() as usize;
            for _ in 0..n {
                let i = (self.unit() * self.live.len() as f64) as usize;
                let gone = self.live.swap_remove(i);
                self.used -= self.takes(gone.len);
                self.queue.push(Step::Remove(gone.id));
            }
        }
        let mut made = vec![];
        loop {
            let left = self.room.saturating_sub(self.used);
            // The last file of a pass is cut to what is left.
            let len = self.size().min(left / self.cluster * self.cluster);
            if len < self.plan.smallest {
                break;
            }
            let new = New { id: self.next, len };
            self.next += 1;
            self.used += self.takes(len);
            made.push(new);
            self.live.push(new);
        }
        // The largest first: begun last, it would be written alone in the end, and so in one piece.
        nandscope_stats::sort_by_key(&mut made, |n| (std::cmp::Reverse(n.len), n.id));
        if !made.is_empty() {
            self.queue.push(Step::Make(made));
        }
        self.pass += 1;
        self.queue.push(Step::Pass(self.pass));
        self.queue.reverse();
    }
}

impl Iterator for History {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        if self.queue.is_empty() && self.pass < self.plan.passes {
            self.plan_pass();
        }
        self.queue.pop()
    }
}

/// Contents of files, known from seed, file and place alone, so that a file can be checked.
pub struct Content {
    block: Vec<u8>,
}

impl Content {
    pub fn new(seed: u64) -> Content {
        let mut block = vec![0; 2 * BLOCK];
        Fill::Random(seed).render(0, &mut block[..BLOCK]);
        block.copy_within(..BLOCK, BLOCK);
        Content { block }
    }

    /// Bytes `at..at + len` of file `id`; `len` at most 1 MiB.
    pub fn of(&self, id: u32, at: u64, len: usize) -> &[u8] {
        let from = ((u64::from(id).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20).wrapping_add(at) % BLOCK as u64) as usize;
        &self.block[from..from + len]
    }
}

/// What is kept on the volume.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub plan: Plan,
    pub room: u64,
    pub cluster: u64,
    /// Passes that are done.
    pub passes: u32,
}

/// Told after every step.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    pub passes: u32,
    pub of: u32,
    pub bytes_written: u64,
}

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aged {
    pub state: State,
    pub files_made: u64,
    pub files_removed: u64,
    pub bytes_written: u64,
    /// It was stopped before the end; the same call goes on.
    pub stopped: bool,
}

/// The state of an ageing on this volume, if there is one.
///
/// # Errors
/// Reading failed, or the files of an ageing are there without a state that can be read.
pub fn state(volume: &mut dyn Volume) -> Result<Option<State>> {
    let names = match volume.list(DIRECTORY) {
        Err(VolumeError::NotFound(_)) => return Ok(None),
        other => other?,
    };
    let mut best: Option<State> = None;
    for path in STATE {
        let Some(entry) = names.iter().find(|e| path.ends_with(&format!("/{}", e.name))) else { continue };
        let mut text = vec![0; entry.len.min(4096) as usize];
        let (f, _) = volume.open(path)?;
        let read = volume.read(f, 0, &mut text).and(Ok(()));
        volume.close(f)?;
        read?;
        // A torn one is not the only one.
        if let Ok(s) = serde_json::from_slice::<State>(&text) {
            best = best.filter(|b| b.passes >= s.passes).or(Some(s));
        }
    }
    if best.is_none() && !names.is_empty() {
        let why = format!("{DIRECTORY} is there, but says nothing of what was done; remove it first (--remove)");
        return Err(VolumeError::Unsupported(why));
    }
    Ok(best)
}

fn save(volume: &mut dyn Volume, state: &State) -> Result<()> {
    let text = serde_json::to_vec(state).unwrap_or_default();
    let (f, _) = volume.create(STATE[(state.passes % 2) as usize])?;
    let written = volume.write(f, 0, &text).and_then(|_| volume.sync(f));
    volume.close(f)?;
    written.and(Ok(()))
}

/// Ages a volume, or goes on with an ageing of the same plan. More passes than before are added to it.
///
/// # Errors
/// The volume failed or is full; an ageing by another plan is there.
pub fn age(volume: &mut dyn Volume, plan: &Plan, stop: &AtomicBool, progress: &mut dyn FnMut(Progress)) -> Result<Aged> {
    plan.check().map_err(VolumeError::Unsupported)?;
    let state = match state(volume)? {
        Some(s) if s.plan.alike(plan) => State { plan: *plan, ..s },
        Some(_) => {
            let why = format!("{DIRECTORY} holds an ageing by another plan; remove that first (--remove)");
            return Err(VolumeError::Unsupported(why));
        }
        None => {
            let space = volume.space()?;
            let others = space.size.saturating_sub(space.free);
            let room = ((space.size as f64 * plan.fill) as u64).saturating_sub(others).min(space.free);
            // The directory, the state and the journal of a kernel filesystem need some, too.
            let room = room.saturating_sub(32 * space.cluster);
            if room < plan.smallest.max(space.cluster) {
                let why = format!("{} of {} are in use, which is the fill level asked for", Bytes(others), Bytes(space.size));
                return Err(VolumeError::Full(why));
            }
            volume.make_dir(DIRECTORY)?;
            let state = State { plan: *plan, room, cluster: space.cluster, passes: 0 };
            save(volume, &state)?;
            state
        }
    };
    run(volume, state, stop, progress)
}

fn run(volume: &mut dyn Volume, mut state: State, stop: &AtomicBool, progress: &mut dyn FnMut(Progress)) -> Result<Aged> {
    let plan = state.plan;
    let content = Content::new(plan.seed);
    let history = History::new(plan, state.room, state.cluster);
    let mut aged = Aged { state, files_made: 0, files_removed: 0, bytes_written: 0, stopped: false };
    let mut done = 0;
    for step in history {
        // What was done before is only counted.
        let again = done < state.passes;
        match step {
            Step::Pass(n) => {
                done = n;
                if !again {
                    state.passes = n;
                    save(volume, &state)?;
                    aged.state = state;
                }
            }
            _ if again => {}
            Step::Remove(id) => {
                match volume.delete(&path(id)) {
                    // Removed before the run was killed.
                    Err(VolumeError::NotFound(_)) => {}
                    other => drop(other?),
                }
                aged.files_removed += 1;
            }
            Step::Make(files) => {
                let mut tell = |bytes| progress(Progress { passes: done, of: plan.passes, bytes_written: aged.bytes_written + bytes });
                let (bytes, whole) = make(volume, &plan, state.cluster, &content, &files, stop, &mut tell)?;
                aged.bytes_written += bytes;
                aged.files_made += whole;
            }
        }
        if !again {
            progress(Progress { passes: done, of: plan.passes, bytes_written: aged.bytes_written });
            if stop.load(Ordering::Relaxed) {
                aged.stopped = true;
                break;
            }
        }
    }
    volume.flush()?;
    Ok(aged)
}

/// Writes files, `together` of them in turn, a piece at a time: when one is complete the next begins. Returns the bytes
/// written and the files that are whole; fewer than there are to be where it was stopped.
fn make(
    volume: &mut dyn Volume,
    plan: &Plan,
    cluster: u64,
    content: &Content,
    files: &[New],
    stop: &AtomicBool,
    tell: &mut dyn FnMut(u64),
) -> Result<(u64, u64)> {
    let first = files.first().map_or(0, |n| n.id);
    let mean = if plan.piece == 0 { cluster.min(BLOCK as u64 / 2) } else { plan.piece };
    let mut rng = chance::stream(plan.seed, first.into());
    let mut open: Vec<(FileId, New, u64)> = vec![];
    let mut waiting = files.iter();
    let mut work = |open: &mut Vec<(FileId, New, u64)>| -> Result<(u64, u64)> {
        let (mut written, mut whole, mut turns) = (0, 0, 0u64);
        loop {
            while open.len() < plan.together as usize
                && !stop.load(Ordering::Relaxed)
                && let Some(&new) = waiting.next()
            {
                open.push((volume.create(&new.path())?.0, new, 0));
            }
            if open.is_empty() {
                return Ok((written, whole));
            }
            let mut i = 0;
            while i < open.len() {
                let (file, new, at) = open[i];
                let piece = 1 + rng.next_u64() % (2 * mean - 1);
                let n = piece.min(new.len - at);
                // A slow card takes minutes for the turns between two reports.
                if stop.load(Ordering::Relaxed) {
                    tell(written);
                    return Ok((written, whole));
                }
                volume.settle(file, at, n)?;
                volume.write(file, at, content.of(new.id, at, n as usize))?;
                written += n;
                open[i].2 += n;
                if open[i].2 == new.len {
                    open.remove(i);
                    volume.close(file)?;
                    whole += 1;
                } else {
                    i += 1;
                }
            }
            turns += 1;
            if turns.is_multiple_of(64) {
                tell(written);
            }
        }
    };
    let done = work(&mut open);
    // Where it failed or was stopped, what was written stays; going on writes these files again.
    for (file, ..) in open {
        let closed = volume.close(file);
        if done.is_ok() {
            closed?;
        }
    }
    done
}

/// Reads every file that should be there and compares it with what was written. Returns the number of files compared.
///
/// # Errors
/// A file is missing, short or different; the text names it.
pub fn verify(volume: &mut dyn Volume, state: &State) -> Result<u64> {
    let content = Content::new(state.plan.seed);
    let mut history = History::new(state.plan, state.room, state.cluster);
    while state.passes > 0 && history.next().is_some_and(|s| s != Step::Pass(state.passes)) {}
    let mut buffer = vec![0; BLOCK];
    for new in history.live() {
        let (f, _) = volume.open(&new.path())?;
        let mut compare = || -> Result<()> {
            let mut at = 0;
            while at < new.len {
                let n = (new.len - at).min(BLOCK as u64) as usize;
                volume.read(f, at, &mut buffer[..n])?;
                if buffer[..n] != *content.of(new.id, at, n) {
                    return Err(VolumeError::Damaged(format!("{} differs from what was written, within {n} bytes from {at}", new.path())));
                }
                at += n as u64;
            }
            Ok(())
        };
        let done = compare();
        volume.close(f)?;
        done?;
    }
    Ok(history.live().len() as u64)
}

/// Removes everything an ageing made. Returns the number of files.
///
/// # Errors
/// The volume failed.
pub fn remove(volume: &mut dyn Volume) -> Result<u64> {
    let names = match volume.list(DIRECTORY) {
        Err(VolumeError::NotFound(_)) => return Ok(0),
        other => other?,
    };
    let ours = |n: &str| n.starts_with("STATE") || (n.starts_with('F') && n.ends_with(".BIN"));
    for e in names.iter().filter(|e| !e.directory && ours(&e.name)) {
        volume.delete(&format!("{DIRECTORY}/{}", e.name))?;
    }
    // Somebody else's file keeps the directory.
    volume.delete(DIRECTORY)?;
    volume.flush()?;
    Ok(names.len() as u64)
}

#[cfg(test)]
#[path = "age_tests.rs"]
mod tests;
