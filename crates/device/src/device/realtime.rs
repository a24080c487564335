//! Keeps the host out of the measurement: real-time priority and locked memory, as far as the system allows.

use super::ioctl;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Resource, getrlimit};
use serde::{Deserialize, Serialize};

/// SCHED_FIFO priority: above all ordinary work, below the kernel's own real-time threads.
const PRIORITY: i32 = 10;

/// What was granted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Realtime {
    /// SCHED_FIFO priority of the calling thread; none where it was denied.
    pub priority: Option<u32>,
    /// True where the program's memory is locked, so that it cannot be paged out.
    pub locked: bool,
    /// Why something was not granted.
    pub denied: Vec<String>,
}

/// Asks for SCHED_FIFO for the calling thread and for locked memory. Never fails: what is denied is in the answer.
pub fn realtime() -> Realtime {
    let mut got = Realtime::default();
    match ioctl::fifo(PRIORITY) {
        Ok(()) => got.priority = Some(PRIORITY as u32),
        Err(e) => got.denied.push(format!("real-time priority: {e}")),
    }
    // Locking future memory under a limit would make later allocations fail, so then only what is there is locked.
    let unlimited = rustix::process::geteuid().is_root() || getrlimit(Resource::Memlock).current.is_none();
    let flags = if unlimited { MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT } else { MlockAllFlags::CURRENT };
    match mlockall(flags) {
        Ok(()) => got.locked = true,
        Err(e) => got.denied.push(format!("locked memory: {e}")),
    }
    got
}

#[cfg(test)]
mod tests {
    #[test]
    fn either_granted_or_explained() {
        // On a thread of its own, because the priority belongs to the thread.
        let got = std::thread::spawn(super::realtime).join().unwrap();
        assert_eq!(got.denied.len(), usize::from(got.priority.is_none()) + usize::from(!got.locked));
    }
}
