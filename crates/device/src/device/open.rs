//! The door to every target: finds out what it is, refuses what must not be touched, opens it for reading only. Writing goes
//! through [`Opened::writable`], which wants a consent and gives a Guard.

use super::block::{FileDevice, Kind};
use super::image::{claim, open_image};
use super::program::{self, Program};
use super::sim::SimDevice;
use super::target::{self, Target};
use super::{CardState, Consent, Device, DeviceError, Geometry, Guard, Limits, Result, TargetId, undo};
use crate::host::facts::{HostFacts, TargetKind};
use crate::host::safety::{InUse, numbers};
use crate::host::served::{self, Served};
use crate::host::signatures::{Signature, signatures};
use crate::host::sysfs::{BlockNode, Sys};
use crate::units::{KIB, MIB, SECTOR};
use nandscope_sim::Model;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, fstat, open as open_file};
use rustix::io::{Errno, pread};
use std::fs;
use std::ops::Range;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a target that something else has is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// How to open.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Whether a timed write includes the flush that brings it to the medium; where not given, as the target needs it.
    pub flush_writes: Option<bool>,
    /// Where the kernel's views are mounted.
    pub sys: Sys,
}

enum Place {
    Block(BlockNode),
    Image(PathBuf),
    Sim { model: Box<Model>, seed: u64, content: bool },
    Program(Program),
}

/// A target opened for reading, with what is known of it.
pub struct Opened {
    guard: Guard,
    facts: HostFacts,
    place: Place,
    options: OpenOptions,
}

/// A program that was started to see whether it is a simulated card, until it is opened.
static STARTED: Mutex<Option<(String, Program)>> = Mutex::new(None);

fn start(target: &str) -> Result<Program> {
    let waiting = STARTED.lock().unwrap_or_else(PoisonError::into_inner).take_if(|w| w.0 == target);
    waiting.map_or_else(|| Program::open(target), |w| Ok(w.1))
}

/// Is this a simulated card, which may be written without being asked? A program is started to say it; `open` goes on with the same one.
///
/// # Errors
/// The program cannot be started, or is no device.
pub fn is_simulated(target: &str) -> Result<bool> {
    if !program::is_name(target) {
        return Ok(target::is_card(target));
    }
    let program = start(target)?;
    let real = program.is_real();
    *STARTED.lock().unwrap_or_else(PoisonError::into_inner) = Some((target.to_string(), program));
    Ok(!real)
}

/// No card is smaller, and nothing can be measured on less.
pub(super) const SMALLEST_IMAGE: u64 = MIB;

/// Opens a target for reading; the forms of its name are those of [`Target`].
///
/// # Errors
/// `Refused` where the target is in use, `Open` where it cannot be opened; both say what to do.
pub fn open(target: &str, options: &OpenOptions) -> Result<Opened> {
    let path = match Target::of(target)? {
        Target::Card(c) => return Ok(Opened::sim(c.name, &c.model, c.seed, c.content, options)),
        Target::Program(name) => return Ok(Opened::program(&name, start(&name)?, options)),
        Target::Place(path) => fs::canonicalize(path).map_err(|e| cannot(target, &e))?,
    };
    let kind = fs::metadata(&path).map_err(|e| cannot(target, &e))?.file_type();
    if kind.is_block_device() {
        let dev = crate::host::safety::device_number(&path).ok_or_else(|| cannot(target, &Errno::NODEV.into()))?;
        let node = options.sys.node(dev).map_err(|e| cannot(target, &e))?;
        Opened::block(node, path, options)
    } else if kind.is_file() {
        Opened::image(path, options)
    } else {
        let why = "neither a block device nor an image file; 'nandscope list' shows the devices".into();
        Err(DeviceError::Open { target: target.into(), why })
    }
}

/// Opens a new simulated card of a model that need not come from a file.
pub fn open_model(model: &Model, seed: u64) -> Opened {
    Opened::sim(format!("sim:{}?seed={seed}", model.name), model, seed, false, &OpenOptions::default())
}

/// Tells the kernel that the partition table of a disk is another one now, as the programs that write tables do. Disks that can have
/// no partitions are left alone.
///
/// # Errors
/// The disk cannot be opened, or one of its partitions is in use.
pub fn read_table_again(path: &str) -> std::io::Result<()> {
    let file = open_file(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    match super::ioctl::read_table_again(std::os::fd::AsFd::as_fd(&file)) {
        Err(e) if Errno::from_io_error(&e) == Some(Errno::INVAL) => Ok(()),
        other => other,
    }
}

pub(super) fn cannot(target: &str, e: &std::io::Error) -> DeviceError {
    let hint = match Errno::from_io_error(e) {
        Some(Errno::NOENT) => return target::missing(target),
        Some(Errno::ACCESS | Errno::PERM) => "; run it as root, or join the group that may read the device (often 'disk')",
        Some(Errno::NOMEDIUM | Errno::NXIO) => "; put a card into the reader",
        Some(Errno::ROFS) => "; it is write-protected: look at the card's lock switch",
        _ => "",
    };
    DeviceError::Open { target: target.into(), why: format!("{e}{hint}") }
}

impl Opened {
    /// What names the target; [`Consent::check`] wants it.
    pub fn id(&self) -> &TargetId {
        self.guard.id()
    }

    pub fn facts(&self) -> &HostFacts {
        &self.facts
    }

    pub fn geometry(&self) -> &Geometry {
        self.guard.geometry()
    }

    /// The microcontroller a simulated card is plugged into; none for anything else.
    pub fn machine(&self) -> Option<super::Machine> {
        match &self.place {
            Place::Sim { model, .. } => super::Machine::of(model),
            _ => None,
        }
    }

    /// The target for a first look; what is read here counts in the guard made later.
    pub fn look(&mut self) -> &mut Guard {
        &mut self.guard
    }

    /// What is known of the flash before anything is done: a simulated card is as its model says, of others nothing is known.
    pub fn state(&self) -> CardState {
        match &self.place {
            Place::Sim { model, .. } if model.card.state == nandscope_sim::model::State::Empty => CardState::Fresh,
            Place::Sim { .. } => CardState::Filled,
            _ => CardState::Unknown,
        }
    }

    /// What lies on the target and would be lost; nothing on a simulated card.
    ///
    /// # Errors
    /// The first sector cannot be read.
    pub fn signatures(&mut self) -> Result<Vec<Signature>> {
        match (&self.place, signatures_of(&self.place, &mut self.guard)) {
            // What keeps no content, or cannot hand it over, has nothing on it that could be named.
            (Place::Program(_), Err(DeviceError::Unsupported(_))) => Ok(Vec::new()),
            (_, found) => found,
        }
    }

    /// The target for reading only.
    pub fn read_only(self) -> Guard {
        self.guard
    }

    /// The target for writing inside the limits. A block device is opened anew, since the first descriptor cannot write; that
    /// it is still the same card is checked.
    ///
    /// # Errors
    /// `Refused` where the consent is for another target, old content waits to be put back, the target is write-protected, zoned, or in use
    /// by now.
    pub fn writable(self, consent: &Consent, limits: &Limits) -> Result<Guard> {
        // What is written over it now would be undone later, or the old content lost.
        let usual = undo::default_dir();
        let other = limits.undo.clone().filter(|dir| *dir != usual);
        undo::none_waits([usual].into_iter().chain(other), &self.parts())?;
        self.writing(consent, limits)
    }

    /// The journal that holds old content of this target.
    pub fn waiting(&self) -> Option<PathBuf> {
        undo::waiting(&undo::default_dir(), &self.parts())
    }

    /// The target, and by which other names a journal may hold its content. Of a simulated card nothing is kept.
    fn parts(&self) -> Vec<(TargetId, Range<u64>)> {
        match &self.place {
            _ if self.id().kind == TargetKind::Simulated => vec![],
            Place::Block(node) => undo::parts(&self.options.sys, node, self.id()),
            _ => vec![(self.id().clone(), 0..self.id().size)],
        }
    }

    /// As `writable`, whatever waits.
    pub(super) fn writing(self, consent: &Consent, limits: &Limits) -> Result<Guard> {
        let Opened { guard, facts, place, options } = self;
        let id = guard.id().clone();
        if !consent.covers(&id) {
            return Err(DeviceError::Refused(format!("the consent was given for another target than {}; give it again", id.path)));
        }
        let refused = |why: &str| Err(DeviceError::Refused(format!("{} {why}", id.path)));
        if facts.read_only {
            return refused("is write-protected; look at the card's lock switch, or at: blockdev --getro");
        }
        if facts.queue.as_ref().and_then(|q| q.zoned.as_deref()).is_some_and(|z| z != "none") {
            return refused("is a zoned device, which can only be written in order; nandscope does not write to those");
        }
        let (geometry, before) = (guard.geometry().clone(), guard.counters());
        // The exclusive claim belongs to the descriptor, so the first one goes before the second comes.
        drop(guard);
        let mut again: Option<super::guard::Again> = None;
        let device: Box<dyn Device + Send> = match &place {
            Place::Sim { model, seed, content } => {
                let card = SimDevice::new(model, *seed);
                // What is to be put back must have been kept.
                Box::new(if *content || limits.undo.is_some() { card.with_content() } else { card.with_stamps() })
            }
            Place::Block(node) => {
                let node_now = options.sys.node(node.dev).map_err(|e| cannot(&id.path, &e))?;
                if node_now != *node || node_now.sequence() != node.sequence() || block_id(&node_now, &id.path) != id {
                    return refused("is not the same card any more; start again");
                }
                let (mut device, _) = open_block(&node_now, Path::new(&id.path), &options, true)?;
                device.flush_writes = options.flush_writes.unwrap_or(device.flush_writes);
                again = Some(put_in(id.clone(), geometry.clone(), options.clone(), device.origin()));
                super::mmc::with_commands(device, &node.dir.join("device"))
            }
            Place::Program(program) => {
                if limits.undo.is_some() {
                    program.must_be_put_back();
                }
                Box::new(program.device())
            }
            Place::Image(path) => {
                if let Some(using) = options.sys.image_uses(path).first() {
                    return Err(DeviceError::Refused(using.to_string()));
                }
                let (mut device, _) = open_image(path, true)?;
                device.flush_writes = options.flush_writes.unwrap_or(device.flush_writes);
                Box::new(device)
            }
        };
        if device.geometry() != &geometry {
            return refused("has changed since it was opened; start again");
        }
        let mut guard = Guard::writing(device, id, consent, limits)?;
        guard.count_before(before);
        if let Some(again) = again {
            guard.opened_by(again);
        }
        Ok(guard)
    }

    fn sim(path: String, model: &Model, seed: u64, content: bool, options: &OpenOptions) -> Opened {
        let card = SimDevice::new(model, seed);
        let card = if content { card.with_content() } else { card };
        let size = card.geometry().size;
        // A text of a file must not steer the terminal.
        let about = model.about.replace(char::is_control, " ");
        let id = TargetId { path, kind: TargetKind::Simulated, serial: None, model: Some(about), size, offset: 0 };
        let facts = HostFacts { kind: TargetKind::Simulated, model: id.model.clone(), direct: true, ..HostFacts::default() };
        let place = Place::Sim { model: Box::new(model.clone()), seed, content };
        Opened { guard: Guard::read_only(Box::new(card), id), facts, place, options: options.clone() }
    }

    fn program(target: &str, program: Program, options: &OpenOptions) -> Opened {
        let (real, name) = (program.is_real(), program.name());
        let device = program.device();
        let size = device.geometry().size;
        let kind = if real { TargetKind::Disk } else { TargetKind::Simulated };
        let serial = name.clone().filter(|_| real);
        let id = TargetId { path: target.into(), kind, serial, model: name.clone(), size, offset: 0 };
        let facts = HostFacts { model: name, direct: true, ..HostFacts::default() };
        let facts = match real {
            false => HostFacts { kind, ..facts },
            true => {
                let (bus, what) = if target.starts_with("serial:") { ("serial", "a board") } else { ("program", "a program") };
                let caveats = vec![format!("behind {what}, whose clock the times are of")];
                HostFacts { bus: Some(bus.into()), caveats, model: facts.model, direct: true, ..HostFacts::of_host(kind) }
            }
        };
        Opened { guard: Guard::read_only(Box::new(device), id), facts, place: Place::Program(program), options: options.clone() }
    }

    fn block(node: BlockNode, path: PathBuf, options: &OpenOptions) -> Result<Opened> {
        let id = block_id(&node, &path.display().to_string());
        let (device, facts) = open_block(&node, &path, options, false)?;
        Ok(Opened { guard: Guard::read_only(Box::new(device), id), facts, place: Place::Block(node), options: options.clone() })
    }

    fn image(path: PathBuf, options: &OpenOptions) -> Result<Opened> {
        let (device, mut facts) = open_image(&path, false)?;
        for using in options.sys.image_uses(&path) {
            facts.caveats.push(format!("{using}; its timing is shared with that"));
        }
        let id = image_id(&path, device.geometry().size);
        Ok(Opened { guard: Guard::read_only(Box::new(device), id), facts, place: Place::Image(path), options: options.clone() })
    }
}

fn signatures_of(place: &Place, guard: &mut Guard) -> Result<Vec<Signature>> {
    let simulated = matches!(place, Place::Sim { .. }) || guard.id().kind == TargetKind::Simulated;
    if simulated { Ok(Vec::new()) } else { signatures(guard) }
}

/// How long a card may take to appear after it was put in.
const FOUND: std::time::Duration = std::time::Duration::from_secs(20);

/// How a device is opened for writing once more after it was taken out and put in: under the same name, and the same card.
fn put_in(id: TargetId, geometry: Geometry, options: OpenOptions, origin: u64) -> super::guard::Again {
    Box::new(move || {
        let path = Path::new(&id.path);
        let there = || {
            let dev = crate::host::safety::device_number(path).ok_or_else(|| cannot(&id.path, &Errno::NOMEDIUM.into()))?;
            let node = options.sys.node(dev).map_err(|e| cannot(&id.path, &e))?;
            if node.size > 0 { Ok(node) } else { Err(cannot(&id.path, &Errno::NOMEDIUM.into())) }
        };
        // The kernel needs a moment to find it.
        let begun = std::time::Instant::now();
        let node = loop {
            match there() {
                Err(_) if begun.elapsed() < FOUND => std::thread::sleep(std::time::Duration::from_millis(100)),
                found => break found?,
            }
        };
        if block_id(&node, &id.path) != id {
            return Err(DeviceError::Refused(format!(
                "{} is another card than before; put the first one in and run: nandscope undo",
                id.path
            )));
        }
        let (mut device, _) = open_block(&node, path, &options, true)?;
        device.flush_writes = options.flush_writes.unwrap_or(device.flush_writes);
        device.since(origin);
        if device.geometry() != &geometry {
            return Err(DeviceError::Refused(format!("{} has changed since it was opened; start again", id.path)));
        }
        Ok(super::mmc::with_commands(device, &node.dir.join("device")))
    })
}

pub(super) fn block_id(node: &BlockNode, path: &str) -> TargetId {
    let kind = if node.partition.is_some() { TargetKind::Partition } else { TargetKind::Disk };
    TargetId { path: path.into(), kind, serial: node.serial(), model: node.model(), size: node.size, offset: node.offset }
}

pub(super) fn image_id(path: &Path, size: u64) -> TargetId {
    TargetId { path: path.display().to_string(), kind: TargetKind::Image, serial: None, model: None, size, offset: 0 }
}

/// Tries again, for a second at most, while something else has the target. Two holders are gone in a moment: a process that was
/// killed closes its files one after another, and a child holds those of its parent until it executes its program.
pub(crate) fn patiently<T>(busy: Errno, mut one: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    let began = Instant::now();
    loop {
        match one() {
            Err(e) if e == busy && began.elapsed() < PATIENCE => std::thread::sleep(PATIENCE / 50),
            other => return other,
        }
    }
}

fn open_block(node: &BlockNode, path: &Path, options: &OpenOptions, write: bool) -> Result<(FileDevice, HostFacts)> {
    let name = path.display().to_string();
    if let Some(first) = options.sys.uses(node).into_iter().min_by_key(|u| !matches!(u, InUse::System { .. })) {
        return Err(DeviceError::Refused(first.to_string()));
    }
    if node.size == 0 {
        return Err(cannot(&name, &Errno::NOMEDIUM.into()));
    }
    let access = if write { OFlags::RDWR } else { OFlags::RDONLY };
    let flags = access | OFlags::DIRECT | OFlags::EXCL | OFlags::CLOEXEC;
    let file = match patiently(Errno::BUSY, || open_file(path, flags, Mode::empty())) {
        Err(Errno::BUSY) => {
            let why = "is in use by another program or by the kernel (a mount in another namespace, a second nandscope); stop that first";
            return Err(DeviceError::Refused(format!("{name} {why}")));
        }
        Err(e) => return Err(cannot(&name, &e.into())),
        Ok(f) => f,
    };
    // The name may have been given to another device in between.
    let stat = fstat(&file).map_err(|e| cannot(&name, &e.into()))?;
    if numbers(stat.st_rdev) != node.dev {
        return Err(DeviceError::Refused(format!("{name} became another device while it was opened; start again")));
    }
    let served = served::behind(&file);
    if served.as_ref().is_some_and(|s| !s.alive()) && unreadable(&file) {
        let why =
            format!("the server of this simulated card is gone; remove the device: losetup -d {name}, or with the next nandscope serve");
        return Err(DeviceError::Open { target: name, why });
    }
    // Another loop device may show the same file, and be open exclusively as well. A card that is served has no file.
    let image = node.backing_file().filter(|f| served.is_none() && f.is_file());
    let mut facts = block_facts(node, served);
    let queue = facts.queue.clone().unwrap_or_default();
    let sector = queue.logical_block_size.filter(|s| s.is_power_of_two() && *s >= SECTOR).unwrap_or(SECTOR);
    if !node.offset.is_multiple_of(sector) {
        return Err(DeviceError::Open { target: name, why: format!("its partition does not begin on the {sector} byte grid of the disk") });
    }
    let geometry = Geometry {
        size: node.size / sector * sector,
        sector,
        max_request: queue.max_sectors_kb.map(|k| k * KIB),
        offset: node.offset,
        write_cache: queue.write_cache.as_deref() == Some("write back"),
    };
    let discard = queue.discard_max_bytes.is_some_and(|d| d > 0);
    facts.direct = true;
    let mut device = FileDevice::new(file, name, Kind::Block { discard }, write, geometry)?;
    if let Some(image) = image
        && let Ok(file) = open_file(&image, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
    {
        claim(&file, &image.display().to_string(), write)?;
        device.keeps(file);
    }
    if let Some(segments) = queue.max_segments {
        device.limit_segments(segments, queue.max_segment_size.unwrap_or(u64::MAX));
    }
    Ok((device, facts))
}

fn block_facts(node: &BlockNode, served: Option<Served>) -> HostFacts {
    let kind = if node.partition.is_some() { TargetKind::Partition } else { TargetKind::Disk };
    let bus = node.bus();
    let mut caveats = Vec::new();
    if let Some(Served { card, .. }) = &served {
        caveats.push(format!("a simulated card ({card}), served in real time: times are its model's and what this host adds"));
    } else if bus == "loop" {
        caveats.push("a loop device: what is timed is the file behind it and the host's page cache, not a card".into());
    }
    if bus == "usb" {
        caveats.push("behind a USB bridge, which may split or join requests".into());
    }
    HostFacts {
        bus: Some(bus),
        vendor: node.vendor(),
        model: served.map(|s| format!("simulated card {}", s.card)).or_else(|| node.model()),
        removable: node.removable(),
        read_only: node.read_only(),
        disk: Some(node.disk().to_string()),
        partition: node.partition,
        queue: Some(node.queue()),
        caveats,
        ..HostFacts::of_host(kind)
    }
}

/// True where not even the first sectors can be read.
fn unreadable(file: &OwnedFd) -> bool {
    super::buffer::Buffer::new(4096).is_ok_and(|mut buffer| pread(file, &mut buffer[..], 0).is_err())
}
