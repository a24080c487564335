//! What the kernel says about block devices, read from sysfs. The root is a parameter, so that tests can bring their own tree.

use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The kernel's settings of the request queue; a field is missing where the kernel does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueFacts {
    /// Largest request in KiB the kernel sends in one piece.
    pub max_sectors_kb: Option<u64>,
    /// Largest request in KiB the host adapter takes.
    pub max_hw_sectors_kb: Option<u64>,
    /// Most pieces of memory one request may consist of.
    pub max_segments: Option<u64>,
    /// Largest such piece in bytes.
    pub max_segment_size: Option<u64>,
    /// Grain of every access in bytes.
    pub logical_block_size: Option<u64>,
    /// What the device calls its own grain, in bytes.
    pub physical_block_size: Option<u64>,
    /// Preferred smallest access in bytes.
    pub minimum_io_size: Option<u64>,
    /// Preferred access for throughput in bytes; 0 where none is named.
    pub optimal_io_size: Option<u64>,
    pub rotational: Option<bool>,
    /// The scheduler in use.
    pub scheduler: Option<String>,
    /// "write back" where completed writes may sit in a volatile cache, else "write through".
    pub write_cache: Option<String>,
    /// True where a single write can be forced to the medium.
    pub fua: Option<bool>,
    /// Grain of discards in bytes; 0 where there are none.
    pub discard_granularity: Option<u64>,
    /// Largest discard in bytes; 0 where there are none.
    pub discard_max_bytes: Option<u64>,
    pub read_ahead_kb: Option<u64>,
    /// Requests the queue holds.
    pub nr_requests: Option<u64>,
    /// "none", "host-aware" or "host-managed".
    pub zoned: Option<String>,
}

/// One block device, whole disk or partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockNode {
    /// Kernel name, such as "mmcblk0p1".
    pub name: String,
    /// Major and minor number.
    pub dev: (u32, u32),
    /// Its directory with all links resolved.
    pub dir: PathBuf,
    /// The directory of the whole disk; the same as `dir` for a whole disk.
    pub disk_dir: PathBuf,
    /// Number of the partition; none for a whole disk.
    pub partition: Option<u32>,
    /// First byte on the whole disk; 0 for a whole disk.
    pub offset: u64,
    /// Size in bytes; 0 without a medium.
    pub size: u64,
}

/// The kernel's views: sysfs, procfs and /dev.
#[derive(Clone, Debug)]
pub struct Sys {
    pub sys: PathBuf,
    pub proc: PathBuf,
    pub dev: PathBuf,
}

impl Default for Sys {
    fn default() -> Sys {
        Sys { sys: "/sys".into(), proc: "/proc".into(), dev: "/dev".into() }
    }
}

/// The trimmed text of a sysfs file; none where it is missing, unreadable or empty.
pub fn text(path: &Path) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    let t = String::from_utf8_lossy(&bytes).trim_matches(|c: char| c.is_whitespace() || c == '\0').to_string();
    (!t.is_empty()).then_some(t)
}

/// The number in a sysfs file, decimal or 0x hexadecimal.
pub fn number(path: &Path) -> Option<u64> {
    let t = text(path)?;
    match t.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => t.parse().ok(),
    }
}

impl Sys {
    /// The block device with this number.
    ///
    /// # Errors
    /// Not found where the kernel has no such block device.
    pub fn node(&self, dev: (u32, u32)) -> io::Result<BlockNode> {
        let dir = fs::canonicalize(self.sys.join(format!("dev/block/{}:{}", dev.0, dev.1)))?;
        BlockNode::read(dir).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// All whole disks, by name.
    pub fn disks(&self) -> Vec<BlockNode> {
        let mut all: Vec<BlockNode> =
            children(&self.sys.join("block")).filter_map(|p| BlockNode::read(fs::canonicalize(p).ok()?)).collect();
        all.sort_by_key(|d| natural(&d.name));
        all
    }

    /// The partitions of a whole disk, by number.
    pub fn partitions(&self, disk: &BlockNode) -> Vec<BlockNode> {
        let mut all: Vec<BlockNode> =
            children(&disk.disk_dir).filter(|p| p.join("partition").is_file()).filter_map(BlockNode::read).collect();
        all.sort_by_key(|n| n.partition);
        all
    }
}

/// The entries of a directory; none where it cannot be read.
pub fn children(dir: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path())
}

/// "sdb10" sorts behind "sdb9".
fn natural(name: &str) -> (String, u64) {
    let head = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (head.to_string(), name[head.len()..].parse().unwrap_or(0))
}

impl BlockNode {
    fn read(dir: PathBuf) -> Option<BlockNode> {
        let (major, minor) = text(&dir.join("dev"))?.split_once(':').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)))?;
        let partition = number(&dir.join("partition")).map(|n| n as u32);
        let disk_dir = if partition.is_some() { dir.parent()?.to_path_buf() } else { dir.clone() };
        // sysfs counts 512-byte units whatever the logical sector is.
        let sectors = |file| number(&dir.join(file)).and_then(|n: u64| n.checked_mul(512));
        let offset = if partition.is_some() { sectors("start")? } else { 0 };
        let size = sectors("size")?;
        Some(BlockNode { name: dir.file_name()?.to_str()?.to_string(), dev: (major, minor), disk_dir, partition, offset, size, dir })
    }

    /// Kernel name of the whole disk.
    pub fn disk(&self) -> &str {
        self.disk_dir.file_name().and_then(|n| n.to_str()).unwrap_or(&self.name)
    }

    /// True where the kernel refuses writes.
    pub fn read_only(&self) -> bool {
        number(&self.dir.join("ro")) == Some(1) || number(&self.disk_dir.join("ro")) == Some(1)
    }

    pub fn removable(&self) -> Option<bool> {
        number(&self.disk_dir.join("removable")).map(|n| n != 0)
    }

    /// The kernel's counter of media in this drive: another number means another card.
    pub fn sequence(&self) -> Option<u64> {
        number(&self.disk_dir.join("diskseq"))
    }

    pub fn queue(&self) -> QueueFacts {
        let q = self.disk_dir.join("queue");
        let n = |file| number(&q.join(file));
        let flag = |file| n(file).map(|x| x != 0);
        QueueFacts {
            max_sectors_kb: n("max_sectors_kb"),
            max_hw_sectors_kb: n("max_hw_sectors_kb"),
            max_segments: n("max_segments"),
            max_segment_size: n("max_segment_size"),
            logical_block_size: n("logical_block_size"),
            physical_block_size: n("physical_block_size"),
            minimum_io_size: n("minimum_io_size"),
            optimal_io_size: n("optimal_io_size"),
            rotational: flag("rotational"),
            scheduler: text(&q.join("scheduler")).map(|t| chosen(&t)),
            write_cache: text(&q.join("write_cache")),
            fua: flag("fua"),
            discard_granularity: n("discard_granularity"),
            discard_max_bytes: n("discard_max_bytes"),
            read_ahead_kb: n("read_ahead_kb"),
            nr_requests: n("nr_requests"),
            zoned: text(&q.join("zoned")),
        }
    }

    /// How the device is connected: "mmc", "usb", "nvme", "virtio", "sata", "scsi", "loop", "zram", "md", "dm", or "virtual".
    pub fn bus(&self) -> String {
        let path = self.disk_dir.to_string_lossy();
        let name = self.disk();
        let by_name = [("loop", "loop"), ("zram", "zram"), ("dm-", "dm"), ("md", "md"), ("nbd", "nbd"), ("ram", "ram")];
        if let Some((_, bus)) = by_name.iter().find(|(n, _)| name.starts_with(n)) {
            return bus.to_string();
        }
        // A card reader sits on USB and shows SCSI below it: the outermost bus decides.
        let by_path =
            [("/usb", "usb"), ("/mmc_host/", "mmc"), ("/nvme", "nvme"), ("/virtio", "virtio"), ("/ata", "sata"), ("/host", "scsi")];
        by_path.iter().find(|(p, _)| path.contains(p)).map_or("virtual", |(_, bus)| bus).to_string()
    }

    /// What the device shares its bus with: the hubs from the root of a USB bus to the one it hangs on ("usb1", "1-4"), or the host of an MMC card.
    pub fn hubs(&self) -> Vec<String> {
        let path = self.disk_dir.to_string_lossy();
        let parts: Vec<&str> = path.split('/').collect();
        let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        // "usb1", then "1-4", "1-4.2" and so on; an interface of a device has a colon.
        let root = |p: &&str| p.strip_prefix("usb").is_some_and(digits);
        let port = |p: &&str| p.split_once('-').is_some_and(|(bus, ports)| digits(bus) && ports.split('.').all(digits));
        if let Some(at) = parts.iter().position(root) {
            let mut all: Vec<String> = parts[at..].iter().take_while(|p| root(p) || port(p)).map(ToString::to_string).collect();
            // The last is the reader itself.
            if all.len() > 1 {
                all.pop();
            }
            return all;
        }
        parts.windows(2).find(|w| w[0] == "mmc_host").map(|w| vec![w[1].to_string()]).unwrap_or_default()
    }

    pub fn vendor(&self) -> Option<String> {
        // Below virtio this is a bus number, not a name.
        text(&self.disk_dir.join("device/vendor")).filter(|v| !v.starts_with("0x"))
    }

    pub fn model(&self) -> Option<String> {
        text(&self.disk_dir.join("device/model")).or_else(|| text(&self.disk_dir.join("device/name")))
    }

    /// The file or device behind a loop device.
    pub fn backing_file(&self) -> Option<PathBuf> {
        text(&self.disk_dir.join("loop/backing_file")).map(PathBuf::from)
    }

    /// Byte of the file at which a loop device begins.
    pub fn backing_offset(&self) -> u64 {
        text(&self.disk_dir.join("loop/offset")).and_then(|t| t.parse().ok()).unwrap_or(0)
    }

    /// The serial number. A number of zeros only is none: it names no card.
    pub fn serial(&self) -> Option<String> {
        let d = &self.disk_dir;
        let direct = [d.join("device/serial"), d.join("serial")];
        direct
            .iter()
            .find_map(|p| text(p))
            .or_else(|| self.usb().and_then(|u| text(&u.join("serial"))))
            .or_else(|| {
                // Page 0x80 of SCSI's vital product data: four bytes of header, then text.
                let page = fs::read(d.join("device/vpd_pg80")).ok()?;
                Some(String::from_utf8_lossy(page.get(4..)?).into_owned())
            })
            .map(|s| s.split_whitespace().collect::<Vec<_>>().join("_"))
            .filter(|s| s.chars().any(|c| c.is_alphanumeric() && !matches!(c, '0' | 'x' | 'X')))
    }

    /// The directory of the USB device this disk hangs on.
    pub fn usb(&self) -> Option<PathBuf> {
        let real = fs::canonicalize(self.disk_dir.join("device")).ok()?;
        real.ancestors().find(|a| a.join("idVendor").is_file()).map(Path::to_path_buf)
    }
}

/// "none [mq-deadline] bfq" chooses "mq-deadline".
fn chosen(list: &str) -> String {
    list.split_once('[').and_then(|(_, r)| r.split_once(']')).map_or(list, |(name, _)| name).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_in_use_is_the_bracketed_one() {
        assert_eq!(chosen("none [mq-deadline] kyber bfq"), "mq-deadline");
        assert_eq!(chosen("none"), "none");
    }

    #[test]
    fn hubs_are_those_between_a_reader_and_its_root() {
        let of = |path: &str| {
            let dir = PathBuf::from(path);
            BlockNode { name: "x".into(), dev: (8, 0), disk_dir: dir.clone(), partition: None, offset: 0, size: 1, dir }.hubs()
        };
        let usb = "/sys/devices/pci0000:00/0000:00:14.0/usb1/1-4/1-4.2/1-4.2:1.0/host6/target6:0:0/6:0:0:0/block/sdb";
        assert_eq!(of(usb), ["usb1", "1-4"]);
        assert_eq!(of("/sys/devices/platform/scb/fd500000.pcie/usb2/2-1/2-1:1.0/host0/block/sda"), ["usb2"]);
        assert_eq!(of("/sys/devices/platform/soc/mmc_host/mmc0/mmc0:aaaa/block/mmcblk0"), ["mmc0"]);
        assert!(of("/sys/devices/virtual/block/loop0").is_empty());
    }

    #[test]
    fn names_sort_as_people_count() {
        let mut v = ["sdb10", "sdb9", "sda", "loop2", "loop11"];
        v.sort_by_key(|n| natural(n));
        assert_eq!(v, ["loop2", "loop11", "sda", "sdb9", "sdb10"]);
    }
}
