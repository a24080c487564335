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

    /// Reader, kernel and processor in one line, for results that only hold with them.
    pub fn line(&self) -> String {
        let named = [self.vendor.as_deref(), self.model.as_deref()].into_iter().flatten().map(str::trim).collect::<Vec<_>>().join(" ");
        let bus = self.bus.as_ref().map(|b| if named.is_empty() { b.clone() } else { format!("{b} ({named})") });
        let kernel = (!self.kernel.is_empty()).then(|| format!("Linux {}", self.kernel));
        let all: Vec<String> =
            [bus, kernel, cpu().or_else(|| (!self.machine.is_empty()).then(|| self.machine.clone()))].into_iter().flatten().collect();
        all.join(", ")
    }

    /// The same for a block device of this number, as far as the kernel shows it.
    pub fn of_device(dev: Option<(u32, u32)>) -> HostFacts {
        let mut facts = HostFacts::of_host(TargetKind::Disk);
        if let Some(node) = dev.and_then(|d| super::sysfs::Sys::default().node(d).ok()) {
            (facts.bus, facts.vendor, facts.model) = (Some(node.bus()), node.vendor(), node.model());
        }
        facts
    }
}

/// What the processor calls itself, without colons, which separate other things in a line.
fn cpu() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let value = |key: &str| text.lines().find_map(|l| l.strip_prefix(key)?.trim_start().strip_prefix(':')).map(str::trim);
    let name = value("model name").or_else(|| value("Model")).or_else(|| value("Hardware"))?;
    Some(name.replace(':', " ").split_whitespace().collect::<Vec<_>>().join(" "))
}
