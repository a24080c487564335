//! What a report keeps about the host and the way to the target.

use super::sysfs::QueueFacts;
use serde::{Deserialize, Serialize};

/// What a target is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    #[default]
    Disk,
    Partition,
    Image,
    Simulated,
}

/// Everything about host and connection that may explain a measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFacts {
    /// Release of the running kernel; empty for a simulated card, to which it does not matter.
    pub kernel: String,
    /// Machine type, such as "aarch64".
    pub machine: String,
    pub kind: TargetKind,
    /// "mmc", "usb", "sata", "nvme", "virtio", "scsi", "loop", ...; none for images and simulated cards.
    pub bus: Option<String>,
    pub vendor: Option<String>,
    pub model: Option<String>,
    pub removable: Option<bool>,
    /// The kernel refuses writes (a locked card, a write-protected adapter).
    pub read_only: bool,
    /// Kernel name of the whole disk.
    pub disk: Option<String>,
    /// Number of the partition where the target is one.
    pub partition: Option<u32>,
    pub queue: Option<QueueFacts>,
    /// Accesses bypass the page cache.
    pub direct: bool,
    /// What makes the timing of this target less believable.
    pub caveats: Vec<String>,
}

impl HostFacts {
    /// The facts of the running system, with nothing about a target yet.
    pub fn of_host(kind: TargetKind) -> HostFacts {
        let u = rustix::system::uname();
        let text = |s: &std::ffi::CStr| s.to_string_lossy().into_owned();
        HostFacts { kernel: text(u.release()), machine: text(u.machine()), kind, ..HostFacts::default() }
    }
}
