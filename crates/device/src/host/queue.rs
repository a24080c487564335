//! Settings of the kernel's request queue, changed for a while: what was there before is put back, whatever happens.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The settings that may be changed.
pub const KNOBS: [&str; 4] = ["scheduler", "max_sectors_kb", "nr_requests", "read_ahead_kb"];

/// Files with the first values of all that is changed just now, in the order in which it was: for an end of the program that drops nothing.
static CHANGED: Mutex<Vec<(PathBuf, String)>> = Mutex::new(Vec::new());

/// Puts back what every queue of this program has changed. For a program that ends where it stands; it waits for nobody.
pub fn restore_all() {
    let Ok(mut all) = CHANGED.try_lock() else { return };
    for (path, first) in all.drain(..).rev() {
        let _ = fs::write(path, first);
    }
}

fn note(path: PathBuf, first: &str) {
    CHANGED.lock().unwrap_or_else(|e| e.into_inner()).push((path, first.into()));
}

fn forget(path: &Path) {
    CHANGED.lock().unwrap_or_else(|e| e.into_inner()).retain(|c| c.0 != path);
}

/// The queue of one disk. Dropping it puts the first values back.
#[derive(Debug)]
pub struct Queue {
    dir: PathBuf,
    /// Name, value before the first change, value now.
    changed: Vec<(String, String, String)>,
}

#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    #[error("there is no setting '{0}'; there are: {list}", list = KNOBS.join(", "))]
    Unknown(String),
    #[error("cannot read {path}: {source}; this disk has no such setting")]
    Read { path: String, source: io::Error },
    #[error("the kernel does not take {value} for {path}: {source}{hint}")]
    Write { path: String, value: String, source: io::Error, hint: String },
    #[error("{path} is {now} after {wanted} was written to it")]
    Ignored { path: String, wanted: String, now: String },
}

/// "none [mq-deadline] kyber": the one in brackets; the whole text where there are none.
fn chosen(text: &str) -> String {
    let text = text.trim();
    text.split_once('[').and_then(|(_, r)| r.split_once(']')).map_or(text, |(c, _)| c).to_string()
}

impl Queue {
    /// The queue of a disk by its kernel name; `sys` is where sysfs is mounted.
    pub fn of(sys: &Path, disk: &str) -> Queue {
        Queue { dir: sys.join("block").join(disk).join("queue"), changed: vec![] }
    }

    /// The value in use.
    ///
    /// # Errors
    /// `Unknown` for a name that is none, `Read` where the disk lacks it.
    pub fn get(&self, name: &str) -> Result<String, QueueError> {
        if !KNOBS.contains(&name) {
            return Err(QueueError::Unknown(name.into()));
        }
        let path = self.dir.join(name);
        fs::read_to_string(&path).map(|t| chosen(&t)).map_err(|source| QueueError::Read { path: path.display().to_string(), source })
    }

    /// Changes a setting, and remembers what it was.
    ///
    /// # Errors
    /// The kernel refuses the value, or keeps another one.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), QueueError> {
        let now = self.get(name)?;
        if now == value {
            return Ok(());
        }
        let known = self.changed.iter().position(|c| c.0 == name);
        let at = known.unwrap_or_else(|| {
            note(self.dir.join(name), &now);
            self.changed.push((name.into(), now.clone(), now));
            self.changed.len() - 1
        });
        // Even a failed write may have changed something: it counts as changed.
        self.changed[at].2 = value.into();
        write(&self.dir.join(name), value)?;
        let now = self.get(name)?;
        if now != value {
            return Err(QueueError::Ignored { path: self.dir.join(name).display().to_string(), wanted: value.into(), now });
        }
        Ok(())
    }

    /// The value a setting had before the first change.
    ///
    /// # Errors
    /// As `get`.
    pub fn first(&self, name: &str) -> Result<String, QueueError> {
        self.changed.iter().find(|c| c.0 == name).map_or_else(|| self.get(name), |c| Ok(c.1.clone()))
    }

    /// Puts back all that was changed. What cannot be put back is named; the rest is.
    ///
    /// # Errors
    /// The first failure.
    pub fn restore(&mut self) -> Result<(), QueueError> {
        let mut failed = None;
        for (name, first, _) in std::mem::take(&mut self.changed).into_iter().rev() {
            let path = self.dir.join(&name);
            if self.get(&name).is_ok_and(|now| now == first) {
                forget(&path);
                continue;
            }
            match write(&path, &first) {
                Ok(()) => forget(&path),
                Err(e) => {
                    failed = failed.or(Some(e));
                    self.changed.push((name, first.clone(), first));
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

fn write(path: &Path, value: &str) -> Result<(), QueueError> {
    fs::write(path, value).map_err(|source| {
        let hint = match source.kind() {
            io::ErrorKind::PermissionDenied => "; run it as root".into(),
            io::ErrorKind::InvalidInput => fs::read_to_string(path).map(|t| format!("; it offers: {}", t.trim())).unwrap_or_default(),
            _ => String::new(),
        };
        QueueError::Write { path: path.display().to_string(), value: value.into(), source, hint }
    })
}

impl Drop for Queue {
    fn drop(&mut self) {
        // Whoever wants to know has called `restore`.
        let _ = self.restore();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("block/mmcblk7/queue");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("scheduler"), "[mq-deadline] kyber none\n").unwrap();
        fs::write(dir.join("max_sectors_kb"), "512\n").unwrap();
        (root, dir)
    }

    #[test]
    fn what_was_changed_comes_back() {
        let (root, dir) = disk();
        let text = |n: &str| fs::read_to_string(dir.join(n)).unwrap();
        let mut q = Queue::of(root.path(), "mmcblk7");
        assert_eq!(q.get("scheduler").unwrap(), "mq-deadline");
        q.set("scheduler", "none").unwrap();
        q.set("max_sectors_kb", "64").unwrap();
        q.set("max_sectors_kb", "128").unwrap();
        assert_eq!((text("scheduler").as_str(), text("max_sectors_kb").as_str()), ("none", "128"));
        assert_eq!(q.first("max_sectors_kb").unwrap(), "512");
        q.restore().unwrap();
        assert_eq!((text("scheduler").as_str(), text("max_sectors_kb").as_str()), ("mq-deadline", "512"));
    }

    #[test]
    fn an_error_or_a_panic_in_between_puts_it_back_too() {
        let (root, dir) = disk();
        let failed = std::panic::catch_unwind(|| {
            let mut q = Queue::of(root.path(), "mmcblk7");
            q.set("max_sectors_kb", "64").unwrap();
            assert!(matches!(q.set("nr_requests", "1"), Err(QueueError::Read { .. })));
            assert!(matches!(q.set("rotational", "1"), Err(QueueError::Unknown(_))));
            panic!("the card is gone");
        });
        assert!(failed.is_err());
        assert_eq!(fs::read_to_string(dir.join("max_sectors_kb")).unwrap(), "512");
    }
}
