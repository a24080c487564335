//! The block devices of this machine, with what stands in the way of probing each.

use super::safety::InUse;
use super::served;
use super::sysfs::{BlockNode, Sys};
use crate::device::consent_id;
use serde::Serialize;

/// One line of `nandscope list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Path to give as target.
    pub path: String,
    /// Path of the whole disk for a partition.
    pub disk: Option<String>,
    /// Bytes.
    pub size: u64,
    /// First byte on the whole disk.
    pub offset: u64,
    pub bus: String,
    pub vendor: Option<String>,
    pub model: Option<String>,
    pub serial: Option<String>,
    pub removable: Option<bool>,
    pub read_only: bool,
    /// True where nothing uses it.
    pub free: bool,
    /// Who uses it.
    pub uses: Vec<InUse>,
    /// What `--consent` must say for writing to it.
    pub consent: String,
}

/// All disks that have a medium, each followed by its partitions. Memory disks are left out.
pub fn list(sys: &Sys) -> Vec<Listed> {
    let mut all = Vec::new();
    for disk in sys.disks().into_iter().filter(|d| d.size > 0 && !matches!(d.bus().as_str(), "ram" | "zram")) {
        all.push(listed(sys, &disk));
        all.extend(sys.partitions(&disk).iter().map(|p| listed(sys, p)));
    }
    all
}

fn listed(sys: &Sys, n: &BlockNode) -> Listed {
    let uses = sys.uses(n);
    let serial = n.serial();
    // Nested names such as cciss/c0d0 stand with an exclamation mark in sysfs.
    let path = |name: &str| sys.dev.join(name.replace('!', "/")).display().to_string();
    Listed {
        path: path(&n.name),
        disk: n.partition.map(|_| path(n.disk())),
        size: n.size,
        offset: n.offset,
        bus: n.bus(),
        vendor: n.vendor(),
        model: n.model().or_else(|| simulated(n)).or_else(|| n.backing_file().map(|f| f.display().to_string())),
        removable: n.removable(),
        read_only: n.read_only(),
        free: uses.is_empty(),
        uses,
        consent: consent_id(serial.as_deref(), n.size),
        serial,
    }
}

/// What a loop device of `nandscope serve` shows.
fn simulated(n: &BlockNode) -> Option<String> {
    let server = served::by_name(n.disk())?;
    Some(format!("simulated card {}{}", server.card, if server.alive() { "" } else { " (server gone)" }))
}
