//! Image files: opened past the page cache where their filesystem allows that, and locked against other runs.

use super::block::{FileDevice, Kind};
use super::open::{SMALLEST_IMAGE, cannot, patiently};
use super::{DeviceError, Geometry, Result};
use crate::host::facts::{HostFacts, TargetKind};
use crate::units::SECTOR;
use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, open as open_file};
use rustix::io::{Errno, pread};
use std::path::Path;

pub(super) fn open_image(path: &Path, write: bool) -> Result<(FileDevice, HostFacts)> {
    let name = path.display().to_string();
    let access = if write { OFlags::RDWR } else { OFlags::RDONLY };
    let plain = access | OFlags::CLOEXEC;
    let mut direct = true;
    let file = match open_file(path, plain | OFlags::DIRECT, Mode::empty()) {
        // Filesystems without direct I/O say so at once.
        Err(Errno::INVAL) => {
            direct = false;
            open_file(path, plain, Mode::empty())
        }
        other => other,
    }
    .map_err(|e| cannot(&name, &e.into()))?;
    claim(&file, &name, write)?;
    let bytes = fstat(&file).map_err(|e| cannot(&name, &e.into()))?.st_size as u64;
    let sector = if direct { grid(&file, bytes)? } else { SECTOR };
    let size = bytes / sector * sector;
    if size < SMALLEST_IMAGE {
        let why = if name.ends_with(".json") {
            "it is no card; a report goes to --report, or to the commands that take one (report, infer, compare)".to_string()
        } else {
            format!(
                "the file has {bytes} bytes, and an image of a card has 1 MiB or more (an empty one: truncate -s 1G card.img); a card model is named PATH.toml"
            )
        };
        return Err(DeviceError::Open { target: name, why });
    }
    let mut facts = HostFacts { direct, ..HostFacts::of_host(TargetKind::Image) };
    facts.caveats.push("an image file: what is timed is the filesystem and the disk it lies on, not a card".into());
    if !direct {
        facts.caveats.push("its filesystem has no direct I/O, so accesses go through the page cache".into());
    }
    let geometry = Geometry { size, sector, max_request: None, offset: 0, write_cache: true };
    Ok((FileDevice::new(file, name, Kind::Image, write, geometry)?, facts))
}

/// Locks an image file against other runs of this program: alone where it is written.
pub(super) fn claim(file: &OwnedFd, name: &str, write: bool) -> Result<()> {
    let how = if write { FlockOperation::NonBlockingLockExclusive } else { FlockOperation::NonBlockingLockShared };
    match patiently(Errno::WOULDBLOCK, || flock(file, how)) {
        Err(Errno::WOULDBLOCK) => Err(DeviceError::Refused(format!("{name} is in use by another nandscope; wait for its end"))),
        _ => Ok(()),
    }
}

/// The grain of direct I/O on this file, found by trying: 512 bytes, else 4096.
fn grid(file: &OwnedFd, bytes: u64) -> Result<u64> {
    if bytes < 2 * SECTOR {
        return Ok(SECTOR);
    }
    let no_memory = |e: std::io::Error| DeviceError::Io { op: "read", at: SECTOR, len: SECTOR, source: e };
    let mut buffer = super::buffer::Buffer::new(4096).map_err(no_memory)?;
    match pread(file, &mut buffer[..SECTOR as usize], SECTOR) {
        Err(Errno::INVAL) => Ok(4096),
        // Another error belongs to the accesses that will meet it.
        _ => Ok(SECTOR),
    }
}
