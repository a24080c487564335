//! A simulated card as a block device: a FUSE file with direct I/O, and a loop device over it.
//!
//! The filesystem need not be mounted anywhere: the loop device alone keeps it alive, and with the loop device it goes. A
//! program that is killed therefore leaves a loop device that answers every request with an error, and nothing else; the
//! next server removes it.

use super::bus::Shared;
use super::engine::{Engine, Stats};
use super::file::{CardFile, NAME};
use super::loop_device::{self, LoopDevice};
use super::recorder::{Recorder, TraceFile};
use super::{Result, ServeError};
use crate::device::Realtime;
use crate::host::mounts::mounts;
use crate::host::sysfs::Sys;
use fuser::{BackgroundSession, Config, Session, SessionACL};
use nandscope_sim::Model;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, open, openat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
    move_mount, unmount,
};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How to serve a card as a block device.
#[derive(Clone, Debug)]
pub struct Options {
    /// An empty directory in which the card's file is to appear; nowhere where none is given.
    pub mount: Option<PathBuf>,
    /// Writes down every request the card sees.
    pub trace: Option<TraceFile>,
    /// Declare a write cache, so that flushes reach the card; as a rule they do where the model has a cost for them. Without
    /// it a completed write counts as durable, as with the SD cards and sticks the kernel knows.
    pub write_cache: Option<bool>,
    /// A bus that the card shares with others.
    pub bus: Option<Shared>,
    /// Show the partitions on the card as devices of their own.
    pub partitions: bool,
    /// Ask for real-time priority and locked memory, for the whole program.
    pub realtime: bool,
    /// How long `stop` serves on for those who use the device still.
    pub grace: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            mount: None,
            trace: None,
            write_cache: None,
            bus: None,
            partitions: false,
            realtime: true,
            grace: Duration::from_millis(500),
        }
    }
}

/// A card being served. Dropping it ends that, too, but tells nobody about what is left.
pub struct Served {
    // The order of the fields is the order in which they go.
    device: LoopDevice,
    mount: Option<MountPoint>,
    session: Option<BackgroundSession>,
    engine: Arc<Engine>,
    trace: Option<Recorder>,
    granted: Arc<OnceLock<Realtime>>,
    grace: Duration,
    stopped: bool,
    removed: Vec<String>,
}

/// How the end went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stopped {
    /// Who uses the device still, with what to do about it. It answers with errors by now, and goes with its last user.
    pub left: Vec<String>,
    pub stats: Stats,
}

impl Served {
    /// Makes a card of this model and shows it as a block device. First removes what killed servers left.
    ///
    /// # Errors
    /// `InTheWay` for a mount point that cannot be used, `System` where FUSE or loop devices are missing or forbidden. Then
    /// nothing is left behind.
    pub fn start(model: &Model, seed: u64, options: &Options) -> Result<Served> {
        let removed = clean_up();
        if let Some(dir) = &options.mount {
            check_mount_point(dir)?;
        }
        let bus = options.bus.as_ref().map(Shared::begin).transpose()?;
        let mut trace = options.trace.as_ref().map(Recorder::create).transpose()?;
        let engine = Arc::new(Engine::new(model, seed, trace.as_ref()).on(bus));
        let granted = Arc::new(OnceLock::new());
        let files = CardFile::new(Arc::clone(&engine), options.realtime, Arc::clone(&granted));
        let (session, tree) = mount(files)?;
        let flags = OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC;
        let file = openat(&tree, NAME, flags, Mode::empty()).map_err(|e| ServeError::system("cannot open the card's own file", e))?;
        let mount = options.mount.as_ref().map(|dir| MountPoint::new(&tree, dir)).transpose()?;
        let write_cache = options.write_cache.unwrap_or(model.card.flush > 0);
        let device = LoopDevice::attach(file.as_fd(), &model.name, engine.sector() as u32, options.partitions, write_cache)?;
        if let Some(t) = &mut trace {
            t.begin(&device.path().display().to_string());
        }
        Ok(Served { device, mount, session: Some(session), engine, trace, granted, grace: options.grace, stopped: false, removed })
    }

    /// The block device, /dev/loopN.
    pub fn device(&self) -> &Path {
        self.device.path()
    }

    /// The card's file, where it is mounted.
    pub fn file(&self) -> Option<PathBuf> {
        self.mount.as_ref().map(|m| m.0.join(NAME))
    }

    /// What killed servers had left and is removed now.
    pub fn removed(&self) -> &[String] {
        &self.removed
    }

    /// What was served so far.
    pub fn stats(&self) -> Stats {
        self.engine.stats()
    }

    /// The card is taken out and put in again, between two requests: what only its electronics held is gone.
    pub fn reinsert(&self) {
        self.engine.reinsert();
    }

    /// What is not as it should be: denied real-time rights, settings the kernel did not take. Complete after the first
    /// request.
    pub fn warnings(&self) -> Vec<String> {
        let denied = self.granted.get().map(|g| g.denied.clone()).unwrap_or_default();
        self.device.warnings.iter().cloned().chain(denied.into_iter().map(|d| format!("note: not granted: {d}"))).collect()
    }

    /// Asks the kernel to detach the device and says who uses it still; it is served until they are gone.
    pub fn detach(&mut self) -> Vec<String> {
        self.device.detach()
    }

    /// Ends it: detaches the device, waits for its users as long as the grace period lasts, then answers with errors.
    ///
    /// # Errors
    /// The trace could not be written to its end. Everything else is cleaned up all the same.
    pub fn stop(mut self) -> Result<Stopped> {
        let left = self.end();
        let stats = self.engine.stats();
        self.trace.as_mut().map_or(Ok(()), Recorder::finish)?;
        Ok(Stopped { left, stats })
    }

    fn end(&mut self) -> Vec<String> {
        if std::mem::replace(&mut self.stopped, true) {
            return vec![];
        }
        let mut left = self.device.detach();
        // Whoever writes through the page cache, or unmounts right now, gets done.
        wait(self.grace, || {
            left = self.device.detach();
            left.is_empty() && !self.device.attached()
        });
        self.engine.cut();
        // Programs end at the first error as a rule.
        wait(Duration::from_secs(2), || {
            left = self.device.detach();
            left.is_empty() && !self.device.attached()
        });
        self.mount = None;
        if let Some(session) = self.session.take() {
            // While the loop device is in use, its filesystem lives; it then ends with this program.
            if wait(Duration::from_secs(2), || session.guard.is_finished()) {
                let _ = session.join();
            }
        }
        self.engine.end_trace();
        left
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.end();
    }
}

/// Polls until `done` or the time is over; says whether it is done.
fn wait(most: Duration, mut done: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        if done() {
            return true;
        }
        if begun.elapsed() >= most {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Makes the filesystem and gives its tree, which is mounted nowhere yet.
fn mount(files: CardFile) -> Result<(BackgroundSession, OwnedFd)> {
    let fuse = open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(|e| match e {
        Errno::NOENT | Errno::NODEV | Errno::NXIO => ServeError::System {
            what: "cannot open /dev/fuse".into(),
            cause: e.into(),
            hint: "; this kernel has no FUSE: modprobe fuse, or serve over NBD: --nbd unix:PATH",
        },
        e => ServeError::system("cannot open /dev/fuse", e),
    })?;
    let failed = |e: Errno| ServeError::system("cannot make the card's filesystem", e);
    let tree = (|| {
        let fs = fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC)?;
        for (key, value) in [
            ("source", "nandscope".to_string()),
            ("subtype", "nandscope".to_string()),
            ("fd", fuse.as_raw_fd().to_string()),
            ("rootmode", "40000".to_string()),
            ("user_id", rustix::process::geteuid().as_raw().to_string()),
            ("group_id", rustix::process::getegid().as_raw().to_string()),
        ] {
            fsconfig_set_string(&fs, key, value)?;
        }
        fsconfig_create(&fs)?;
        fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV)
    })()
    .map_err(|e| if e == Errno::PERM { ServeError::system("cannot make the card's filesystem", Errno::ACCESS) } else { failed(e) })?;
    let session = Session::from_fd(files, fuse, SessionACL::Owner, Config::default())
        .and_then(Session::spawn)
        .map_err(|e| ServeError::system("the kernel's FUSE and this program do not agree", e))?;
    Ok((session, tree))
}

/// True for a FUSE filesystem whose server is gone.
fn dead(dir: &Path) -> bool {
    std::fs::metadata(dir).is_err_and(|e| e.raw_os_error() == Some(Errno::NOTCONN.raw_os_error()))
}

/// Removes what killed servers left: their mounts and loop devices. Says what was removed.
fn clean_up() -> Vec<String> {
    let ours = mounts(&Sys::default()).into_iter().filter(|m| m.kind == "fuse.nandscope" && dead(&m.at));
    // Lazily: somebody may have a file open there, which can only fail.
    let freed = ours.filter(|m| unmount(&m.at, UnmountFlags::DETACH).is_ok()).map(|m| m.at.display().to_string());
    freed.chain(loop_device::clean_up()).collect()
}

/// Refuses what is no directory, is not empty, or has something mounted on it.
fn check_mount_point(dir: &Path) -> Result<()> {
    let wrong = |why: &str| Err(ServeError::InTheWay(format!("{} {why}", dir.display())));
    match std::fs::metadata(dir) {
        Err(_) if dead(dir) => {
            return wrong(&format!("is the mount point of another program that is gone; free it: umount -l {}", dir.display()));
        }
        Err(e) => return Err(ServeError::system(format!("cannot mount at {}", dir.display()), e)),
        Ok(m) if !m.is_dir() => return wrong("is not a directory"),
        Ok(_) => {}
    }
    let real = std::fs::canonicalize(dir).map_err(|e| ServeError::system(format!("cannot mount at {}", dir.display()), e))?;
    if let Some(m) = mounts(&Sys::default()).iter().find(|m| m.at == real) {
        return wrong(&format!("is in use: {} is mounted there; take another directory, or: umount {}", m.source, real.display()));
    }
    match std::fs::read_dir(&real).map(|mut d| d.next().is_some()) {
        Ok(false) => Ok(()),
        Ok(true) => wrong("is not empty; take an empty directory"),
        Err(e) => Err(ServeError::system(format!("cannot mount at {}", dir.display()), e)),
    }
}

/// Where the filesystem is mounted; unmounts it.
struct MountPoint(PathBuf);

impl MountPoint {
    fn new(tree: &OwnedFd, dir: &Path) -> Result<MountPoint> {
        let failed = |e: std::io::Error| ServeError::system(format!("cannot mount at {}", dir.display()), e);
        let dir = std::fs::canonicalize(dir).map_err(failed)?;
        move_mount(tree, "", CWD, &dir, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
            .map_err(|e| ServeError::system(format!("cannot mount at {}", dir.display()), e))?;
        Ok(MountPoint(dir))
    }
}

impl Drop for MountPoint {
    fn drop(&mut self) {
        // Lazily: somebody may look into the directory just now.
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}
