//! The loop device over the card's file: attached so that a request arrives as it was sent, detached without leftovers.

use super::{Result, ServeError};
use crate::host::loop_ioctl;
use crate::host::safety::{device_number, numbers};
use crate::host::served::{self, Served};
use crate::host::sysfs::{Sys, children, number, text};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const CONTROL: &str = "/dev/loop-control";

/// A loop device with a card's file attached.
pub struct LoopDevice {
    path: PathBuf,
    index: u32,
    served: Served,
    /// Made by us, so that it is ours to remove.
    made: bool,
    /// What could not be set as it should be.
    pub warnings: Vec<String>,
    detached: bool,
}

impl LoopDevice {
    /// Attaches `file`, labelled with the name of its `card`. `sector` in bytes becomes the logical block; `partitions` shows what partitions the card holds;
    /// `write_cache` lets flushes reach the card.
    ///
    /// # Errors
    /// `System`: no loop devices in this kernel, no privileges, no device node, or the file cannot be attached.
    pub fn attach(file: BorrowedFd<'_>, card: &str, sector: u32, partitions: bool, write_cache: bool) -> Result<LoopDevice> {
        let served = Served::here(card);
        let label = served.label();
        let flags = loop_ioctl::DIRECT_IO | if partitions { loop_ioctl::PARTSCAN } else { 0 };
        let mut last = None;
        // Another program may take or remove the device between finding it and attaching to it.
        for _ in 0..8 {
            let (index, made) = unused()?;
            let path = PathBuf::from(format!("/dev/loop{index}"));
            let device = OpenOptions::new().read(true).write(true).open(&path);
            match device.and_then(|d| loop_ioctl::configure(d.as_fd(), file, sector, flags, &label).map(|()| d)) {
                Ok(device) => {
                    let mut this = LoopDevice { path, index, served, made, warnings: vec![], detached: false };
                    let direct = loop_ioctl::status(device.as_fd()).is_ok_and(|s| s.flags & loop_ioctl::DIRECT_IO != 0);
                    if !direct {
                        this.warnings
                            .push("the kernel attached the file without direct I/O: request sizes and times are not the host's".into());
                    }
                    drop(device);
                    this.tune(write_cache);
                    return Ok(this);
                }
                Err(e) => {
                    if made {
                        give_back(index);
                    }
                    let taken = [Errno::BUSY, Errno::NOENT, Errno::NXIO, Errno::NODEV].map(|e| Some(e.raw_os_error()));
                    let taken = taken.contains(&e.raw_os_error());
                    last = Some(ServeError::system(format!("cannot attach the card to {}", path.display()), e));
                    if !taken {
                        break;
                    }
                }
            }
        }
        Err(last.unwrap_or_else(|| ServeError::system("cannot attach a loop device", Errno::BUSY)))
    }

    /// /dev/loopN.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn queue(&self, file: &str) -> PathBuf {
        PathBuf::from(format!("/sys/block/loop{}/queue/{file}", self.index))
    }

    /// No read-ahead, no merging, no reordering, and the largest requests the device can take.
    fn tune(&mut self, write_cache: bool) {
        // What FUSE takes in one piece (in pages); a larger request would be cut there, into unequal parts.
        let fuse = number(Path::new("/proc/sys/fs/fuse/max_pages_limit")).unwrap_or(256) * 4;
        let largest = number(&self.queue("max_hw_sectors_kb")).map_or(fuse, |device| device.min(fuse)).to_string();
        let cache = if write_cache { "write back" } else { "write through" };
        for (file, value) in [
            ("nomerges", "2"),
            ("scheduler", "none"),
            ("max_sectors_kb", largest.as_str()),
            ("write_cache", cache),
            ("rotational", "0"),
            ("add_random", "0"),
            // Last, because the others set it anew.
            ("read_ahead_kb", "0"),
        ] {
            let path = self.queue(file);
            // Not every kernel has every setting.
            if path.exists()
                && let Err(e) = fs::write(&path, value)
            {
                self.warnings.push(format!("cannot set {} to {value}: {e}", path.display()));
            }
        }
    }

    /// True while the card's file is attached to the device.
    pub fn attached(&self) -> bool {
        !self.detached && served::by_name(&format!("loop{}", self.index)).is_some_and(|s| self.is_ours(&s))
    }

    /// The name of the card may be cut in the label.
    fn is_ours(&self, label: &Served) -> bool {
        (label.pid, label.started) == (self.served.pid, self.served.started)
    }

    /// Detaches the file: now where nobody uses the device, else when the last user closes it. Says who uses it still.
    pub fn detach(&mut self) -> Vec<String> {
        if !self.attached() {
            self.release();
            return vec![];
        }
        // What is attached to an open device stays; before, it may have become another server's.
        if let Ok(device) = OpenOptions::new().read(true).write(true).open(&self.path)
            && served::behind(&device).is_some_and(|s| self.is_ours(&s))
        {
            let _ = loop_ioctl::clear(device.as_fd());
        }
        if !self.attached() {
            self.release();
            return vec![];
        }
        self.users()
    }

    /// Removes the device itself where it was made for the card.
    fn release(&mut self) {
        if !self.detached {
            self.detached = true;
            if self.made {
                give_back(self.index);
            }
        }
    }

    /// Who uses the device, each with what to do about it.
    pub fn users(&self) -> Vec<String> {
        let sys = Sys::default();
        let mut found: Vec<String> = device_number(&self.path)
            .and_then(|dev| sys.node(dev).ok())
            .map(|node| sys.uses(&node).iter().map(ToString::to_string).collect())
            .unwrap_or_default();
        if found.is_empty() {
            found.extend(openers(&self.path).into_iter().map(|who| format!("{} is open in {who}; end that program", self.path.display())));
        }
        found
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        if !self.detached {
            self.detach();
        }
    }
}

/// A device nothing is attached to, and whether it was made just now.
fn unused() -> Result<(u32, bool)> {
    let control = control().map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => ServeError::System {
            what: format!("cannot open {CONTROL}"),
            cause: e,
            hint: "; this kernel has no loop devices: modprobe loop, or serve over NBD: --nbd unix:PATH",
        },
        _ => ServeError::system(format!("cannot open {CONTROL}"), e),
    })?;
    if let Ok(index) = loop_ioctl::add(control.as_fd()) {
        // Where /dev is not made by the kernel, a new device may have no node.
        for _ in 0..20 {
            if Path::new(&format!("/dev/loop{index}")).exists() {
                return Ok((index, true));
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        give_back(index);
    }
    loop_ioctl::free(control.as_fd()).map(|i| (i, false)).map_err(|e| ServeError::system("there is no free loop device", e))
}

fn control() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(CONTROL)
}

/// Removes a loop device; it may be looked at by udev for a moment.
fn give_back(index: u32) {
    let Ok(control) = control() else { return };
    for _ in 0..40 {
        match loop_ioctl::remove(control.as_fd(), index) {
            Err(e) if e.raw_os_error() == Some(Errno::BUSY.raw_os_error()) => std::thread::sleep(Duration::from_millis(25)),
            _ => return,
        }
    }
}

/// Detaches the loop devices of servers that were killed, and removes those whose last user has gone since. A device still in
/// use goes when its last user does. Says which were there.
pub fn clean_up() -> Vec<String> {
    let mut removed = vec![];
    let fixed = number(Path::new("/sys/module/loop/parameters/max_loop")).unwrap_or(0).max(8);
    for dir in children(Path::new("/sys/block")) {
        let Some(index) = dir.file_name().and_then(|n| n.to_str()?.strip_prefix("loop")?.parse::<u32>().ok()) else { continue };
        let file = dir.join("loop/backing_file");
        // Asked and cleared through the same open device, which cannot become another server's meanwhile.
        if file.exists()
            && let Ok(device) = File::open(format!("/dev/loop{index}"))
            && served::behind(&device).is_some_and(|s| !s.alive())
        {
            let _ = loop_ioctl::clear(device.as_fd());
            removed.push(format!("/dev/loop{index}"));
        }
        // A device without a file that never merges is one of ours; the kernel keeps it if it is in use after all.
        let free = !file.exists();
        if free && u64::from(index) >= fixed && number(&dir.join("queue/nomerges")) == Some(2) {
            give_back(index);
        }
    }
    removed
}

/// "fio (1234)" for every program that has the device open, as far as this user may see.
fn openers(device: &Path) -> Vec<String> {
    let Ok(wanted) = fs::metadata(device).map(|m| m.rdev()) else { return vec![] };
    let mut found = vec![];
    for process in children(Path::new("/proc")) {
        let Some(pid) = process.file_name().and_then(|n| n.to_str()?.parse::<u32>().ok()) else { continue };
        if pid == std::process::id() {
            continue;
        }
        let open = children(&process.join("fd")).any(|fd| {
            fs::read_link(&fd).is_ok_and(|to| to.starts_with("/dev"))
                && fs::metadata(&fd).is_ok_and(|m| numbers(m.rdev()) == numbers(wanted))
        });
        if open {
            let name = text(&process.join("comm")).unwrap_or_default();
            found.push(format!("{} ({pid})", name.trim()));
        }
    }
    found
}
