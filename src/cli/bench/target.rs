//! One run of the benchmark: one target, one size of a record, one cluster, one way to sync.

use super::BenchArgs;
use crate::cli::progress::Progress;
use crate::device::{self, DeviceError, Limits, Machine, OpenOptions, Opened, Target};
use crate::host::facts::HostFacts;
use crate::host::ticks::Queue;
use crate::infer::buffer::{Answer, answer_for, usual_sample};
use crate::layout::disk;
use crate::report::bench::Bench;
use crate::samples::busy::Trace;
use crate::shell::word;
use crate::units::{Bytes, Nanos, SECTOR};
use crate::volume::{Cache, Directory, FatVolume, Format, Host, Shared, Volume};
use crate::workload::library::{Layout, Library};
use crate::workload::records::{Plan, Sync, run};
use crate::workload::traced::Traced;
use crate::workload::volume_file::{NAME, VolumeFile};
use crate::workload::{BenchFile, WorkloadError};
use anyhow::{Context, bail};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// What is varied from run to run.
#[derive(Clone, Copy)]
pub struct Case {
    pub record: u64,
    pub cluster: Option<u64>,
    /// None: what is usual for the target.
    pub sync: Option<Sync>,
}

fn sync_text(s: Sync) -> String {
    match s {
        Sync::Never => "never synced".into(),
        Sync::End => "synced at the end".into(),
        Sync::Every(1) => "synced after each".into(),
        Sync::Every(n) => format!("synced after every {n}"),
    }
}

fn mb(bytes: u64) -> String {
    format!("{:.2} MB", bytes as f64 / 1e6)
}

/// The command that measured it, without what it logs and for how long, as a shell takes it.
fn again(a: &BenchArgs, target: &str, case: Case) -> String {
    let mut out = format!("nandscope bench {}", word(target));
    if a.writing.write {
        out += " --write";
    }
    if let Some(id) = &a.writing.named.consent {
        out += &format!(" --consent {}", word(id));
    }
    if a.system_disk {
        out += " --system-disk";
    }
    out += &format!(" --record {}", case.record);
    if let Some(c) = case.cluster {
        out += &format!(" --cluster {c}");
    }
    match case.sync {
        Some(Sync::Never) => out += " --sync never",
        Some(Sync::Every(n)) => out += &format!(" --sync {n}"),
        Some(Sync::End) | None => {}
    }
    out
}

/// In a directory anything else times the memory of the kernel.
fn synced(case: Case, directory: bool) -> Sync {
    case.sync.unwrap_or(if directory { Sync::Every(1) } else { Sync::End })
}

/// Bytes of the test file.
fn file_size(a: &BenchArgs, case: Case, directory: bool) -> u64 {
    let usual = if directory && synced(case, directory) == Sync::Every(1) { 1_000_000 } else { 5_000_000 };
    a.file.map_or(usual, |f| f.0).max(case.record)
}

/// # Errors
/// The card is smaller than the file.
fn fits(file: u64, size: u64, what: &str) -> anyhow::Result<()> {
    if file < size {
        return Ok(());
    }
    Err(crate::cli::misuse(format!("a file of {} does not fit on {what}, which has {}; give a smaller --file", mb(file), mb(size))))
}

/// What a run would write, and the consent it needs.
///
/// # Errors
/// There is no such target.
pub fn would(a: &BenchArgs, target: &str, case: Case) -> anyhow::Result<()> {
    let directory = !device::is_simulated(target)? && Path::new(target).is_dir();
    let (passes, file) = (a.passes.unwrap_or(1), mb(file_size(a, case, directory)));
    let needs = if directory {
        crate::cli::files::writable(target, a.system_disk, "write to")?;
        "; needs --write".to_string()
    } else {
        let opened = device::open(target, &OpenOptions::default())?;
        fits(file_size(a, case, directory), opened.geometry().size, target)?;
        let simulated = opened.id().kind == crate::host::facts::TargetKind::Simulated;
        if simulated { String::new() } else { format!("; needs --write {}", opened.id().consent_option()) }
    };
    let often = if a.until.is_some() { "over and over".to_string() } else { format!("{passes} times") };
    say!("would write {NAME} of {file} to {target} in records of {} B, {often}, and delete it{needs}", case.record);
    Ok(())
}

/// Runs it.
pub fn one(a: &BenchArgs, target: &str, case: Case, stop: &AtomicBool, trace: &mut Trace) -> anyhow::Result<Bench> {
    let Case { record, cluster, .. } = case;
    let simulated = device::is_simulated(target)?;
    let directory = !simulated && Path::new(target).is_dir();
    if !simulated && !device::is_program(target) && !Path::new(target).exists() {
        return Err(device::missing(target).into());
    }
    let sync = synced(case, directory);
    // A logger's question wants a longer run than SdFat's table, unless the run is said.
    let own = a.until.is_some() || a.file.is_some() || a.passes.is_some() || a.loss_gb.is_some() || a.loss_time.is_some();
    let until = a.until.or((simulated && !a.log.is_empty() && !own && a.chunks.is_none()).then_some(TEN_MINUTES));
    let plan = Plan {
        record,
        file: file_size(a, case, directory),
        passes: a.passes.unwrap_or(1),
        reserve: a.preallocate,
        skip_first: !a.count_first,
        sync,
        read: !a.no_read,
        // A span of time here, and its end once the clock of the target runs.
        until,
    };
    if !simulated && !a.writing.write {
        return Err(DeviceError::Refused(format!("bench writes a file of {} to {target}; allow it with --write", mb(plan.file))).into());
    }
    let mut b = Bench {
        target: target.into(),
        capacity: None,
        host: String::new(),
        state: a.state.unwrap_or_default(),
        record,
        file: plan.file,
        sync: sync_text(sync),
        passes: vec![],
        answers: vec![],
        notes: vec![],
        price: None,
        cluster: None,
        kernel: false,
        cached: false,
        layers: vec![],
        again: again(a, target, case),
    };
    let mut bar = Progress::share(&format!("{target}, {record} B"), a.quiet);
    let mut job = Job { a, plan: &plan, stop, bar: &mut bar, b: &mut b };
    match directory {
        true => job.in_directory(target, cluster)?,
        false => job.on_device(target, simulated, cluster, trace)?,
    }
    bar.end();
    if a.chunks.is_none() {
        logger(a, &mut b);
    }
    Ok(b)
}

/// As long as a logger is simulated where nobody says how long.
const TEN_MINUTES: Nanos = Nanos(600_000_000_000);

struct Job<'a> {
    a: &'a BenchArgs,
    plan: &'a Plan,
    stop: &'a AtomicBool,
    bar: &'a mut Progress,
    b: &'a mut Bench,
}

impl Job<'_> {
    /// What will be written, where that is not to a simulated card.
    fn announce(&self, target: &str, simulated: bool) {
        if !self.a.quiet && !simulated {
            let over = if self.plan.until.is_some() { ", over and over" } else { "" };
            tell!("writes {} {NAME} to {target}{over}, and deletes it", mb(self.plan.file));
        }
    }

    fn timed(&self, now: Nanos) -> Plan {
        Plan { until: self.plan.until.map(|d| now + d), ..self.plan.clone() }
    }

    fn in_directory(&mut self, target: &str, cluster: Option<u64>) -> anyhow::Result<()> {
        if cluster.is_some() {
            return Err(crate::cli::misuse("--cluster formats, which is done to simulated cards only"));
        }
        crate::cli::files::writable(target, self.a.system_disk, "write to")?;
        let mut volume = Directory::open(Path::new(target)).map_err(WorkloadError::from)?;
        let device = volume.mount().map(|m| m.dev);
        self.b.host = format!("by the kernel's {}, {}", volume.filesystem(), HostFacts::of_device(device).line());
        self.b.kernel = true;
        self.b.cached = matches!(self.plan.sync, Sync::Never | Sync::End);
        self.announce(target, false);
        let queue = device.and_then(Queue::of);
        let (before, begun) = (queue.as_ref().and_then(Queue::read), Instant::now());
        self.on_volume(&mut volume)?;
        if let (Some(q), Some(before)) = (&queue, before) {
            self.b.notes.extend(q.since(before, begun.elapsed().as_nanos() as u64));
            self.b.layers.extend(q.layer(before));
        }
        match self.plan.sync {
            Sync::Every(1) => {}
            Sync::Every(n) => {
                self.b.notes.push(format!("the kernel's page cache takes records; every {n} of them one call brings them to the medium"))
            }
            _ => self.b.notes.push("the kernel's page cache takes records; --sync 1 times each one to the medium".into()),
        }
        Ok(())
    }

    fn on_device(&mut self, target: &str, simulated: bool, cluster: Option<u64>, trace: &mut Trace) -> anyhow::Result<()> {
        let (a, plan) = (self.a, self.plan);
        // The in-process volume reads back what it wrote.
        let content = device::with_content(target);
        let machine = match Target::of(target)? {
            Target::Card(card) => Machine::of(&card.model),
            _ => None,
        };
        let mut opened = device::open(if machine.is_some() { target } else { &content }, &OpenOptions::default())?;
        self.b.state = a.state.unwrap_or(opened.state());
        let size = opened.geometry().size;
        self.b.capacity = Some(size);
        fits(plan.file, size, target)?;
        let consent = a.writing.named.check(opened.id())?;
        let (range, found) = if simulated { (0..size.min(1 << 40), None) } else { volume_on(&mut opened, target)? };
        self.b.notes.extend(found);
        let way = if simulated { String::new() } else { format!(", {}", opened.facts().line()) };
        // Records that share a sector write it more than once, and each cluster costs a little of the FAT.
        let once = plan.file.saturating_mul(u64::from(plan.passes)).saturating_mul(match (plan.sync, plan.record) {
            (Sync::Every(_), _) => 64,
            (_, ..512) => 8,
            _ => 2,
        });
        let budget = if a.until.is_some() || simulated { u64::MAX } else { once.saturating_add(256 << 20) };
        let mut guard = opened.writable(&consent, &Limits { region: None, budget, undo: None })?;
        if let Some(m) = machine {
            return self.on_library(&mut guard, m, cluster, trace);
        }
        let host = Host::with(Cache { meta: usize::MAX, data: 1, direct: true, write_back: true });
        let counted = Shared::new(Traced::new(guard, Nanos(0)).of_calls(plan.record));
        let boxed = Box::new(counted.clone());
        let mut volume = if simulated {
            let cluster = cluster.map(u32::try_from).transpose().context("a cluster that large")?;
            FatVolume::format(boxed, range, &Format { cluster, kind: None }, host)
        } else {
            if cluster.is_some() {
                return Err(crate::cli::misuse("--cluster formats, which is done to simulated cards only"));
            }
            FatVolume::mount(boxed, range, host)
        }
        .map_err(WorkloadError::from)?;
        let space = volume.space().map_err(WorkloadError::from)?;
        self.b.host = format!("{} in-process{way}, clusters of {}", volume.filesystem(), Bytes(space.cluster));
        self.b.cluster = Some(space.cluster);
        self.announce(target, simulated);
        // Formatting is not the file's.
        counted.with(Traced::forget);
        self.on_volume(&mut volume)?;
        self.b.layers = counted.with(|t| t.layers(&format!("{} volume", volume.filesystem())));
        volume.finish().map_err(WorkloadError::from)?;
        Ok(())
    }

    fn on_volume(&mut self, volume: &mut dyn Volume) -> anyhow::Result<()> {
        let free = volume.space().map_err(WorkloadError::from)?.free;
        if free < self.plan.file + (1 << 20) {
            bail!("only {} are free; give a smaller --file", mb(free));
        }
        let mut file = VolumeFile::new(volume, self.plan.record)?;
        let plan = self.timed(file.now());
        let done = run(&mut file, &plan, self.stop, &mut |n, of, x| self.bar.part((f64::from(n) + x) / f64::from(of.max(1))));
        let gone = file.delete();
        self.b.passes = done?;
        gone?;
        Ok(())
    }

    fn on_library(&mut self, guard: &mut device::Guard, machine: Machine, cluster: Option<u64>, trace: &mut Trace) -> anyhow::Result<()> {
        let (capacity, sector) = (device::Device::geometry(guard).size, device::Device::geometry(guard).sector);
        if sector != SECTOR {
            bail!(
                "the file library of a host such as {} reads sectors of 512 B, and this card has {sector} B; leave ?host= out",
                machine.name
            );
        }
        let layout = cluster.map_or_else(|| Ok(Layout::of(capacity)), |c| Layout::with_clusters(capacity, c))?;
        fits(self.plan.file, capacity.saturating_sub(layout.data), "the card behind its file tables")?;
        let poll = if self.a.busy.is_some() { machine.poll } else { Nanos(0) };
        let mut traced = Traced::new(guard, poll).of_calls(self.plan.record);
        let mut file = Library::on(&mut traced, machine, layout);
        self.b.host = format!("{}, clusters of {}", machine.name, Bytes(layout.cluster));
        self.b.cluster = Some(layout.cluster);
        let plan = self.timed(file.now());
        self.b.passes = run(&mut file, &plan, self.stop, &mut |n, of, x| self.bar.part((f64::from(n) + x) / f64::from(of.max(1))))?;
        self.b.layers = traced.layers("file library");
        if self.a.busy.is_some() {
            trace.poll_ns = Some(machine.poll.0);
            trace.transactions.append(&mut traced.transactions);
        }
        Ok(())
    }
}

/// Where the FAT volume of a device or image lies: the whole of it, or the first partition that holds one, and a word on that.
fn volume_on(opened: &mut Opened, target: &str) -> anyhow::Result<(Range<u64>, Option<String>)> {
    let (size, offset) = (opened.geometry().size, opened.geometry().offset);
    let found = disk::read(opened.look())?;
    let fat = |p: &&disk::Part| p.volume.as_ref().is_some_and(|v| matches!(v.what.as_str(), "FAT12" | "FAT16" | "FAT32"));
    let Some(part) = found.parts.iter().find(fat) else {
        let what: Vec<String> = found.parts.iter().filter_map(|p| p.volume.as_ref()).map(|v| v.what.clone()).collect();
        let there = match (what.is_empty(), found.table) {
            (false, _) => format!("it holds {}", what.join(", ")),
            (true, Some(t)) => format!("its {t} partition table names none"),
            (true, None) => "it has neither a boot sector of one nor a partition table".into(),
        };
        bail!(
            "there is no FAT volume on {target}: {there}. Make one (`nandscope format {target} --consent ID`; all data on it are lost), or mount what is there and name the directory"
        );
    };
    let from = part.start.saturating_sub(offset);
    let len = part.size.min(size.saturating_sub(from));
    let others = found.parts.iter().filter(fat).count() - 1;
    let note = part.number.map(|n| {
        let more = if others > 0 { format!("; {others} more are left alone") } else { String::new() };
        format!("the file was in the FAT volume of partition {n}, which begins at {}{more}", Bytes(from))
    });
    Ok((from..from + len, note))
}

/// "To log R kB/s with less than one loss in X you need B of buffer."
fn logger(a: &BenchArgs, b: &mut Bench) {
    let Some(p) = b.passes.iter().find(|p| p.write) else { return };
    let most = p.bytes() as f64 * 1e9 / p.total.0.max(1) as f64;
    let asked = || a.log.iter().map(|r| r.0 as f64);
    let sample = a.sample.map_or(usual_sample(p.record), |s| s.0);
    // Three GB carry a statement on one.
    let carried = p.bytes() as f64 / 3.0e9;
    let gb = |rate: f64| a.loss_gb.or(a.loss_time.map(|t| t.secs() * rate / 1e9)).unwrap_or(carried);
    if b.cached {
        let why = "the kernel's page cache took the records, so that no wait of the card was timed; --sync 1 times the card";
        b.answers = asked().map(|r| Answer::undecided(r, sample, gb(r), why.into())).collect();
        return;
    }
    let rates: Vec<f64> = if a.log.is_empty() { vec![most / 4.0, most * 0.75] } else { asked().collect() };
    b.answers = rates.iter().map(|&r| answer_for(p, r, gb(r), sample)).collect();
}
