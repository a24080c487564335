//! Journals that wait: old content that must be back before anything else is written there, and those under which nothing was written.

use super::*;
use crate::device::open::{block_id, image_id};
use crate::host::sysfs::{BlockNode, Sys};
use std::ops::Range;

/// The first journal in a directory that holds old content of one of these parts of targets. Only headers of others are read.
pub fn waiting(dir: &Path, parts: &[(TargetId, Range<u64>)]) -> Option<PathBuf> {
    pending(dir).into_iter().find(|path| {
        let Ok(id) = saved::header(path).map(|h| h.id) else { return false };
        let mut parts = parts.iter().filter(|p| p.0.same_target(&id)).peekable();
        if parts.peek().is_none() {
            return false;
        }
        // What cannot be read any more may have held anything.
        let Ok(saved) = Saved::open(path) else { return true };
        if saved.unused() && locked_unused(path).is_some() {
            return false;
        }
        parts.any(|(of, part)| {
            let whole = *part == (0..of.size);
            whole || saved.state.lacks() || saved.ranges().iter().any(|&(at, len)| at < part.end && part.start < at + len)
        })
    })
}

/// # Errors
/// `Refused` where old content of one of these waits in one of the directories.
pub(in super::super) fn none_waits(mut dirs: impl Iterator<Item = PathBuf>, parts: &[(TargetId, Range<u64>)]) -> Result<()> {
    let path = dirs.find_map(|dir| waiting(&dir, parts));
    path.map_or(Ok(()), |path| {
        let id = saved::header(&path)?.id;
        let (whose, with) = match id.is_known_by_place() {
            true => (" (of this card or of another one of its size: it has no serial number)", "with the card of that run in place, "),
            false => ("", ""),
        };
        Err(DeviceError::Refused(format!(
            "the undo journal of an earlier run on {} is still there{whose}; {with}put the old content back first: {}",
            id.path,
            either(&path, &id)
        )))
    })
}

/// A block device, its disk as far as that holds it, its partitions, the image behind a loop device and other loop devices over it: journals name
/// the target that was written.
pub(in super::super) fn parts(sys: &Sys, node: &BlockNode, id: &TargetId) -> Vec<(TargetId, Range<u64>)> {
    let named = |n: &BlockNode| block_id(n, &sys.dev.join(n.name.replace('!', "/")).display().to_string());
    let mut all = vec![(id.clone(), 0..id.size)];
    let disk = (node.partition.is_some()).then(|| sys.disks().into_iter().find(|d| d.dir == node.disk_dir)).flatten();
    all.extend(disk.map(|d| (named(&d), node.offset..node.offset + node.size)));
    if node.partition.is_none() {
        all.extend(sys.partitions(node).iter().map(|p| (named(p), 0..p.size)));
    }
    if let Some(image) = node.backing_file()
        && let Ok(of) = image.metadata()
        && of.is_file()
    {
        let from = node.backing_offset() + node.offset;
        all.push((image_id(&image, of.len()), from..from + node.size));
        for other in sys.beside(node) {
            let start = other.backing_offset();
            all.push((named(&other), from.saturating_sub(start)..(from + node.size).saturating_sub(start).min(other.size)));
        }
    }
    all
}

/// The journal that holds old content of a block device, by its number; none where there is no such device.
pub fn waiting_on(sys: &Sys, dev: (u32, u32)) -> Option<PathBuf> {
    let node = sys.node(dev).ok()?;
    let id = block_id(&node, &sys.dev.join(node.name.replace('!', "/")).display().to_string());
    waiting(&default_dir(), &parts(sys, &node, &id))
}

/// The lock of a journal without a run, under which nothing can have been written: a record is on disk before its write goes out.
fn locked_unused(path: &Path) -> Option<File> {
    let lock = locked(path)?;
    // Looked at under the lock: a run that just ended may have written records.
    Saved::open(path).is_ok_and(|s| s.unused()).then_some(lock)
}

fn locked(path: &Path) -> Option<File> {
    let file = File::open(path).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok().map(|()| file)
}

/// Deletes a journal under which nothing was written; true where it is gone.
///
/// # Errors
/// It cannot be deleted.
pub fn clear(path: &Path) -> Result<bool> {
    let Some(_lock) = locked_unused(path) else { return Ok(false) };
    delete(path).map(|()| true)
}

/// Deletes a journal without a single byte, which names no card and holds nothing: a disk may lose what was in a file. True where it is gone.
///
/// # Errors
/// It cannot be deleted.
pub fn clear_empty(path: &Path) -> Result<bool> {
    let Some(_lock) = locked(path).filter(|f| f.metadata().is_ok_and(|m| m.is_file() && m.len() == 0)) else { return Ok(false) };
    delete(path).map(|()| true)
}
