//! Was a card taken out? Its device is opened again and again: without a medium that fails, and another medium has another number in the
//! kernel's count of them.

use crate::host::served;
use crate::host::sysfs::Sys;
use std::fs::File;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Between two looks: shorter than anybody takes a card out.
const EVERY: Duration = Duration::from_millis(200);

/// A device that is looked at until [`Watch::left`] is asked.
pub struct Watch {
    end: Arc<AtomicBool>,
    seen: JoinHandle<bool>,
}

impl Watch {
    pub fn of(path: &str) -> Watch {
        let (path, end) = (PathBuf::from(path), Arc::new(AtomicBool::new(false)));
        let ended = end.clone();
        let number = medium(&path);
        // A card that `serve` shows is taken out by a signal, which its loop device does not tell.
        let served = path.file_name().and_then(|n| n.to_str()).is_some_and(|n| served::by_name(n).is_some());
        let seen = std::thread::spawn(move || {
            let mut left = served;
            loop {
                let last = ended.load(Ordering::Relaxed);
                left |= gone(&path) || medium(&path) != number;
                if left || last {
                    return left;
                }
                std::thread::sleep(EVERY);
            }
        });
        Watch { end, seen }
    }

    /// Was it away, or is another medium there?
    pub fn left(self) -> bool {
        self.end.store(true, Ordering::Relaxed);
        self.seen.join().unwrap_or(false)
    }
}

/// Is there no medium? An open tells the kernel to look.
fn gone(path: &Path) -> bool {
    File::open(path).is_err()
}

/// The kernel's count of media, of the device that has this name now.
fn medium(path: &Path) -> Option<u64> {
    let of = std::fs::metadata(path).ok().filter(|m| m.file_type().is_block_device())?;
    Sys::default().node(crate::host::safety::numbers(of.rdev())).ok()?.sequence()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_away_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let card = dir.path().join("card");
        std::fs::write(&card, "").unwrap();
        let path = card.to_str().unwrap();
        assert!(!Watch::of(path).left());
        let watch = Watch::of(path);
        std::fs::remove_file(&card).unwrap();
        assert!(watch.left());
    }
}
