//! Targets with files on them, for `age`, `frag`, `map` and `defrag`: a directory, or a FAT volume on a device, an image or a
//! simulated card.

use super::args::Named;
use crate::device::{self, CardState, Device, DeviceError, Guard, Limits, OpenOptions, TargetId};
use crate::host::facts::HostFacts;
use crate::host::partitions;
use crate::host::safety::system_mount;
use crate::host::sysfs::Sys;
use crate::lab::age::{Plan, Sizes};
use crate::lab::offload::Card;
use crate::units::Bytes;
use crate::volume::{Cache, Directory, FatVolume, Host, Shared, VolumeError};
use anyhow::bail;
use clap::Args;
use rustix::io::Errno;
use std::ops::Range;
use std::path::Path;

/// What names the target and allows writing to it.
#[derive(Args)]
pub struct Target {
    /// A directory, /dev/..., an image file, sim:NAME, a card model PATH.toml, "exec:COMMAND ARGS" or serial:PORT
    #[arg(value_parser = super::target)]
    pub target: String,
    #[command(flatten)]
    pub named: Named,
    /// Allow a directory on the disk of the running system
    #[arg(long)]
    pub system_disk: bool,
    /// No progress and no plan
    #[arg(long, short)]
    pub quiet: bool,
}

/// How a volume is aged.
#[derive(Args)]
pub struct PlanArgs {
    /// Passes of removing and making files
    #[arg(long, default_value_t = 50)]
    passes: u32,
    /// Smallest file
    #[arg(long, value_name = "SIZE", default_value = "1KiB")]
    smallest: Bytes,
    /// Largest file
    #[arg(long, value_name = "SIZE", default_value = "25MB")]
    largest: Bytes,
    /// How sizes are drawn
    #[arg(long, value_enum, default_value = "log-uniform")]
    distribution: Distribution,
    /// Share of the volume in use after each pass, 0.01 to 0.99
    #[arg(long, value_name = "SHARE", default_value_t = 0.9, value_parser = share)]
    fill: f64,
    /// Share of the files each pass removes
    #[arg(long, value_name = "SHARE", default_value_t = 0.2, value_parser = share)]
    churn: f64,
    /// Files written interleaved
    #[arg(long, value_name = "N", default_value_t = 16)]
    together: u32,
    /// Mean size of the pieces they are written in [default: one cluster]
    #[arg(long, value_name = "SIZE")]
    piece: Option<Bytes>,
    /// Seed of sizes and order
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Distribution {
    LogUniform,
    Uniform,
}

/// 0.9, or 90%.
fn share(s: &str) -> Result<f64, String> {
    let x: Option<f64> = match s.strip_suffix('%') {
        Some(p) => p.trim().parse().ok().map(|x: f64| x / 100.0),
        None => s.parse().ok(),
    };
    x.ok_or_else(|| format!("'{s}' is no share: write 0.9 or 90%"))
}

impl PlanArgs {
    pub fn plan(&self) -> anyhow::Result<Plan> {
        if self.piece == Some(Bytes(0)) {
            return Err(super::misuse("--piece 0: a piece has 1 byte or more; without --piece it is one cluster"));
        }
        let plan = Plan {
            passes: self.passes,
            smallest: self.smallest.0,
            largest: self.largest.0,
            sizes: match self.distribution {
                Distribution::LogUniform => Sizes::LogUniform,
                Distribution::Uniform => Sizes::Uniform,
            },
            fill: self.fill,
            churn: self.churn,
            together: self.together,
            piece: self.piece.map_or(0, |b| b.0),
            seed: self.seed,
        };
        plan.check().map_err(super::misuse)?;
        Ok(plan)
    }
}

/// A volume in this process: the device, and the bytes of it that are the volume.
pub struct Medium {
    pub device: Shared<Guard>,
    pub range: Range<u64>,
    /// A FAT volume is there.
    pub formatted: bool,
    pub simulated: bool,
    pub id: TargetId,
    /// What its flash went through before.
    pub state: CardState,
    /// What is known of the machine and the way to the target.
    pub facts: Box<HostFacts>,
}

pub enum Place {
    Directory(Directory),
    Medium(Medium),
}

impl Target {
    pub fn simulated(&self) -> bool {
        // Where a program cannot be started, opening it says why.
        device::is_simulated(&self.target).unwrap_or(false)
    }

    /// A directory that is filled lies on a medium, and on the card that a consent names.
    fn of_a_card(&self, d: &Directory) -> anyhow::Result<()> {
        if let Some(memory) = d.mount().filter(|m| ["tmpfs", "ramfs", "devtmpfs"].contains(&m.kind.as_str())) {
            let why = format!("{} is in memory ({}), which this would fill; name a directory of a mounted card", self.target, memory.kind);
            return Err(DeviceError::Refused(why).into());
        }
        if self.named.consent.is_some() {
            Card::new(d, self.named.consent.as_deref()).map_err(volume_error)?;
        }
        Ok(())
    }

    /// A directory that may be written, as far as that is known before it is opened; anything else asks when it is.
    pub fn writable(&self) -> anyhow::Result<()> {
        if self.simulated() || !Path::new(&self.target).is_dir() {
            return Ok(());
        }
        writable(&self.target, self.system_disk, "fill")
    }

    /// Opens the target; for writing where `budget` bytes may be written.
    pub fn open(&self, budget: Option<u64>) -> anyhow::Result<Place> {
        let path = Path::new(&self.target);
        if !self.simulated() && path.is_dir() {
            if budget.is_some() {
                self.writable()?;
            }
            let d = Directory::open(path)?;
            if budget.is_some() {
                self.of_a_card(&d)?;
            }
            return Ok(Place::Directory(d));
        }
        if self.system_disk {
            return Err(super::misuse(format!("--system-disk allows a directory, and {} is none: leave it out", self.target)));
        }
        // A volume needs its bytes back, which a simulated card keeps on request only.
        let (name, simulated) = (device::with_content(&self.target), self.simulated());
        // When data must be on the medium is for the filesystem to say.
        let opened = device::open(&name, &OpenOptions { flush_writes: Some(false), ..OpenOptions::default() })?;
        let (size, state, facts) = (opened.geometry().size, opened.state(), Box::new(opened.facts().clone()));
        let id = opened.id().clone();
        let mut guard = match budget {
            None => opened.read_only(),
            Some(budget) => {
                let consent = self.named.check(opened.id())?;
                opened.writable(&consent, &Limits { region: None, budget, undo: None })?
            }
        };
        let found = find(&mut guard);
        Ok(Place::Medium(Medium {
            device: Shared::new(guard),
            range: found.clone().unwrap_or(0..size),
            formatted: found.is_some(),
            simulated,
            id,
            state,
            facts,
        }))
    }

    /// The target as a directory or a mounted FAT volume.
    pub fn volume(&self, place: Place) -> anyhow::Result<Box<dyn crate::volume::Volume>> {
        Ok(match place {
            Place::Directory(d) => Box::new(d),
            Place::Medium(m) => Box::new(m.mount(&self.target)?),
        })
    }
}

/// # Errors
/// `Refused` where the directory lies on the disk of the running system and nobody allowed that, or old content waits to be put back.
pub fn writable(directory: &str, system_disk: bool, would: &str) -> anyhow::Result<()> {
    let path = Path::new(directory);
    if let Some(at) = system_mount(&Sys::default(), path).filter(|_| !system_disk) {
        let why = format!(
            "{directory} lies on the disk of the running system ({}), which this would {would}; mount the card and name its directory, \
             or say --system-disk",
            at.display()
        );
        return Err(DeviceError::Refused(why).into());
    }
    super::undo::none_waits_below(path)
}

impl Medium {
    /// # Errors
    /// There is no FAT volume, with what to do.
    pub fn must_be_formatted(&self, name: &str) -> anyhow::Result<()> {
        if !self.formatted {
            let other = crate::layout::disk::read(&mut self.device.clone()).map_or(vec![], |d| d.parts);
            let other: Vec<&str> = other.iter().filter_map(|p| Some(p.volume.as_ref()?.what.as_str())).collect();
            if !other.is_empty() {
                bail!("{name} holds no FAT volume, but {}; mount that and name its directory", other.join(", "));
            }
            let kind = match self.simulated {
                true if name.starts_with("exec:") => {
                    "format it first; the program must keep its content (content=yes) from one start to the next"
                }
                true => "a simulated card is blank each time; use `nandscope frag`",
                false => "format it first",
            };
            bail!("{name} holds no FAT volume; {kind}");
        }
        Ok(())
    }

    /// All that lies on the volume, exFAT included.
    pub fn tree(&self, name: &str) -> anyhow::Result<nandscope_fat::Tree> {
        self.must_be_formatted(name)?;
        let mut device = self.device.clone();
        let mut boot = [0; 512];
        device.load(self.range.start, &mut boot)?;
        let volume = nandscope_fat::recognise(&boot)?;
        crate::volume::tree(&mut device, self.range.start, &volume).map_err(volume_error)
    }

    pub fn mount(&self, name: &str) -> anyhow::Result<FatVolume> {
        self.must_be_formatted(name)?;
        Ok(FatVolume::mount(Box::new(self.device.clone()), self.range.clone(), Host::with(Cache::TABLES))?)
    }
}

/// The FAT volume on a device: at its start, or in the first partition that holds one.
fn find(guard: &mut Guard) -> Option<Range<u64>> {
    let size = guard.geometry().size;
    let sector = guard.geometry().sector;
    let mut boot = [0; 512];
    let is_fat = |guard: &mut Guard, at: u64| {
        let mut boot = [0; 512];
        guard.load(at, &mut boot).is_ok() && nandscope_fat::recognise(&boot).is_ok()
    };
    guard.load(0, &mut boot).ok()?;
    if is_fat(guard, 0) {
        return Some(0..size);
    }
    let mut read = |at: u64, len: usize| {
        let mut bytes = vec![0; len];
        (at + len as u64 <= size).then(|| guard.load(at, &mut bytes).ok()).flatten()?;
        Some(bytes)
    };
    let (_, all) = partitions::table(&mut read, sector)?;
    let part = all.into_iter().find(|p| p.start < size && is_fat(guard, p.start))?;
    Some(part.start..part.start.saturating_add(part.size).min(size))
}

/// The same where the medium failed in the middle, with what to do about it; and where something is not allowed.
pub fn cut_off(e: VolumeError, hint: &str) -> anyhow::Error {
    let source = match &e {
        VolumeError::Device(DeviceError::Io { source, .. }) | VolumeError::Io { source, .. } => source.raw_os_error(),
        _ => None,
    };
    match source.map(Errno::from_raw_os_error) {
        Some(Errno::IO | Errno::NODEV | Errno::NXIO | Errno::ROFS | Errno::NOMEDIUM | Errno::UCLEAN) => anyhow::anyhow!("{e}; {hint}"),
        Some(Errno::ACCESS | Errno::PERM) => anyhow::anyhow!("{e}; name a directory you may write to, or run this as root"),
        _ => volume_error(e),
    }
}

/// An error of a volume; a refusal keeps its exit code.
pub fn volume_error(e: VolumeError) -> anyhow::Error {
    match e {
        VolumeError::Device(d) => d.into(),
        VolumeError::Refused(why) => DeviceError::Refused(why).into(),
        other => other.into(),
    }
}
