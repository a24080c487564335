//! Who else uses a block device or an image file: the checks that stand before every open.

use super::mounts::{Mount, mounts, swaps};
use super::sysfs::{BlockNode, Sys, children};
use rustix::fs::{major, makedev, minor};
use serde::Serialize;
use std::fmt;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// One way in which a device is in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "use", rename_all = "snake_case")]
pub enum InUse {
    /// `device` (the target, a partition of it, or its disk) is mounted at `at`.
    Mounted { device: String, at: PathBuf },
    /// `device` is swap.
    Swap { device: String },
    /// `device` belongs to the RAID, LVM or device mapper volume `holder`.
    Holder { device: String, holder: String },
    /// The running system's files in `at` lie on `disk`.
    System { disk: String, at: PathBuf },
    /// The loop device `by` shows `device` or the image file as a disk.
    Loop { device: String, by: String },
}

impl fmt::Display for InUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InUse::Mounted { device, at } => write!(f, "{device} is mounted at {}; unmount it first: umount {0}", at.display()),
            InUse::Swap { device } => write!(f, "{device} is in use as swap; switch it off first: swapoff {device}"),
            InUse::Holder { device, holder } => {
                write!(f, "{device} is part of the volume {holder} (RAID, LVM or device mapper); stop that first")
            }
            InUse::System { disk, at } => {
                write!(f, "{disk} carries the running system ({}); nandscope never touches that disk", at.display())
            }
            InUse::Loop { device, by } => write!(f, "{device} is attached to {by}; detach it first: losetup -d /dev/{by}"),
        }
    }
}

/// The directories whose disk is the disk of the running system.
const SYSTEM: [&str; 6] = ["/", "/usr", "/boot", "/boot/efi", "/boot/firmware", "/var"];

/// A device number split as sysfs writes it.
pub fn numbers(dev: u64) -> (u32, u32) {
    (major(dev), minor(dev))
}

impl Sys {
    /// All uses that forbid opening this device: its own, those of its partitions, those of the disk it is a part of, and those of other loop
    /// devices over the same bytes. For a partition the uses of its sister partitions do not count, except that of the running system.
    pub fn uses(&self, node: &BlockNode) -> Vec<InUse> {
        let beside = self.beside(node);
        let mut found: Vec<InUse> = std::iter::once(node).chain(&beside).flat_map(|n| self.own_uses(n)).collect();
        if let Some(below) = node.backing_file().and_then(|f| self.node(device_number(&f)?).ok()) {
            let by_itself = |u: &InUse| matches!(u, InUse::Loop { by, .. } if by == node.disk() || beside.iter().any(|b| b.name == *by));
            found.extend(self.uses(&below).into_iter().filter(|u| !by_itself(u)));
        }
        found
    }

    /// Other loop devices over the same file or device, where they show the same bytes.
    pub fn beside(&self, node: &BlockNode) -> Vec<BlockNode> {
        let behind = |n: &BlockNode| n.backing_file().and_then(|f| identity(&f));
        let bytes = |n: &BlockNode| {
            let from = n.backing_offset() + n.offset;
            from..from + n.size
        };
        let (Some(file), here) = (behind(node), bytes(node)) else { return Vec::new() };
        let overlaps = |r: std::ops::Range<u64>| r.start < here.end && here.start < r.end;
        self.disks().into_iter().filter(|d| d.dir != node.disk_dir && behind(d) == Some(file) && overlaps(bytes(d))).collect()
    }

    /// The uses of a device, its partitions, and the disk it is a part of.
    fn own_uses(&self, node: &BlockNode) -> Vec<InUse> {
        let mut found = Vec::new();
        let mounts = mounts(self);
        let swaps: Vec<Vec<(u32, u32)>> = swaps(self).iter().map(|p| self.behind(p)).collect();
        let mut family = vec![node.clone()];
        if node.partition.is_none() {
            family.extend(self.partitions(node));
        } else if let Some(disk) = self.disks().into_iter().find(|d| d.dir == node.disk_dir) {
            family.push(disk);
        }
        for (at, dev) in self.system_disks(&mounts) {
            if self.node(dev).is_ok_and(|n| n.disk_dir == node.disk_dir) {
                found.push(InUse::System { disk: format!("/dev/{}", node.disk()), at });
                break;
            }
        }
        for member in &family {
            let device = format!("/dev/{}", member.name);
            for m in mounts.iter().filter(|m| self.mounted_from(m) == Some(member.dev)) {
                found.push(InUse::Mounted { device: device.clone(), at: m.at.clone() });
            }
            if swaps.iter().any(|s| s.contains(&member.dev)) {
                found.push(InUse::Swap { device: device.clone() });
            }
            for holder in children(&member.dir.join("holders")).filter_map(|p| Some(p.file_name()?.to_str()?.to_string())) {
                found.push(InUse::Holder { device: device.clone(), holder });
            }
            for (by, file) in self.loops() {
                if device_number(&file) == Some(member.dev) {
                    found.push(InUse::Loop { device: device.clone(), by });
                }
            }
        }
        found
    }

    /// The loop devices that show this image file, or a swap entry for it.
    pub fn image_uses(&self, image: &Path) -> Vec<InUse> {
        let Some(this) = identity(image) else { return Vec::new() };
        let same = |p: &Path| identity(p) == Some(this);
        let device = image.display().to_string();
        let mut found = Vec::new();
        for (by, _) in self.loops().into_iter().filter(|(_, f)| same(f)) {
            let node = self.disks().into_iter().find(|d| d.name == by);
            found.extend(node.map(|n| self.uses(&n)).unwrap_or_default());
            found.push(InUse::Loop { device: device.clone(), by });
        }
        found.extend(swaps(self).iter().filter(|p| same(p)).map(|_| InUse::Swap { device: device.clone() }));
        found
    }

    /// Every loop device in use with what is behind it.
    fn loops(&self) -> Vec<(String, PathBuf)> {
        self.disks().into_iter().filter(|d| d.name.starts_with("loop")).filter_map(|d| Some((d.name.clone(), d.backing_file()?))).collect()
    }

    /// The block device a mount lies on: its number, or for an anonymous number the device named as source.
    fn mounted_from(&self, m: &Mount) -> Option<(u32, u32)> {
        if self.node(m.dev).is_ok() { Some(m.dev) } else { device_number(Path::new(&m.source)) }
    }

    /// The block devices below a swap device or swap file, through device mapper and RAID down to the disks.
    fn behind(&self, path: &Path) -> Vec<(u32, u32)> {
        device_number(path).map(|d| self.below(d)).unwrap_or_default()
    }

    /// The disks and partitions under the running system's directories, with the directory.
    fn system_disks(&self, mounts: &[Mount]) -> Vec<(PathBuf, (u32, u32))> {
        let mut all = Vec::new();
        for m in mounts.iter().filter(|m| SYSTEM.iter().any(|s| m.at == Path::new(s))) {
            let Some(top) = self.mounted_from(m) else { continue };
            all.extend(self.below(top).into_iter().map(|d| (m.at.clone(), d)));
        }
        all
    }

    /// This device and all it is made of: `slaves` of device mapper and RAID, the device or file behind a loop device.
    fn below(&self, dev: (u32, u32)) -> Vec<(u32, u32)> {
        let (mut all, mut next) = (Vec::new(), vec![dev]);
        while let Some(dev) = next.pop() {
            if all.contains(&dev) {
                continue;
            }
            all.push(dev);
            let Ok(node) = self.node(dev) else { continue };
            next.extend(children(&node.disk_dir.join("slaves")).filter_map(|p| {
                let text = fs::read_to_string(p.join("dev")).ok()?;
                let (a, b) = text.trim().split_once(':')?;
                Some((a.parse().ok()?, b.parse().ok()?))
            }));
            if let Some(meta) = node.backing_file().and_then(|f| fs::metadata(f).ok()) {
                next.push(if meta.file_type().is_block_device() { numbers(meta.rdev()) } else { numbers(meta.dev()) });
            }
        }
        all
    }
}

/// The system directory on whose disk the files of `path` lie, if they do: filling that disk stops the machine.
pub fn system_mount(sys: &Sys, path: &Path) -> Option<PathBuf> {
    let dev = fs::metadata(path).ok()?.dev();
    if let Some(at) = SYSTEM.iter().find(|at| fs::metadata(at).is_ok_and(|m| m.dev() == dev)) {
        return Some(PathBuf::from(at));
    }
    let all = mounts(sys);
    let disk = |dev: (u32, u32)| sys.node(dev).ok().map(|n| n.disk_dir);
    let here = sys.below(numbers(dev)).into_iter().filter_map(disk).collect::<Vec<_>>();
    // A filesystem in a file on the system disk fills only itself.
    let here = &here[..here.len().min(1)];
    sys.system_disks(&all).into_iter().find(|(_, d)| disk(*d).is_some_and(|d| here.contains(&d))).map(|(at, _)| at)
}

/// What tells a file or a block device from every other one, whatever names it has.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let meta = fs::metadata(path).ok()?;
    Some(if meta.file_type().is_block_device() { (u64::MAX, meta.rdev()) } else { (meta.dev(), meta.ino()) })
}

/// The number of a block device node; none for anything else.
pub fn device_number(path: &Path) -> Option<(u32, u32)> {
    let meta = fs::metadata(path).ok()?;
    meta.file_type().is_block_device().then(|| numbers(meta.rdev()))
}

/// The reverse of [`numbers`].
pub fn joined(dev: (u32, u32)) -> u64 {
    makedev(dev.0, dev.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A made-up machine: sda (system on sda2 through dm-0), sdb (RAID member sdb1), sdc free with two partitions.
    fn machine() -> (tempfile::TempDir, Sys) {
        let t = tempfile::tempdir().unwrap();
        let sys = Sys { sys: t.path().join("sys"), proc: t.path().join("proc"), dev: t.path().join("dev") };
        let disks: [(&str, u32, &[&str]); 4] =
            [("sda", 0, &["sda1", "sda2"]), ("sdb", 16, &["sdb1"]), ("sdc", 32, &["sdc1", "sdc2"]), ("dm-0", 0, &[])];
        fs::create_dir_all(sys.sys.join("block")).unwrap();
        fs::create_dir_all(sys.sys.join("dev/block")).unwrap();
        fs::create_dir_all(sys.proc.join("self")).unwrap();
        for (name, base, parts) in disks {
            let major = if name.starts_with("dm") { 253 } else { 8 };
            let dir = sys.sys.join("devices").join(name);
            let node = |dir: &Path, minor: u32, start: Option<u64>| {
                fs::create_dir_all(dir.join("holders")).unwrap();
                fs::write(dir.join("dev"), format!("{major}:{minor}\n")).unwrap();
                fs::write(dir.join("size"), "2048\n").unwrap();
                symlink(dir, sys.sys.join(format!("dev/block/{major}:{minor}"))).unwrap();
                if let Some(s) = start {
                    fs::write(dir.join("partition"), format!("{}\n", minor - base)).unwrap();
                    fs::write(dir.join("start"), format!("{s}\n")).unwrap();
                }
            };
            node(&dir, base, None);
            symlink(&dir, sys.sys.join("block").join(name)).unwrap();
            for (i, p) in parts.iter().enumerate() {
                node(&dir.join(p), base + 1 + i as u32, Some(64 * (i as u64 + 1)));
            }
        }
        let devices = sys.sys.join("devices");
        fs::create_dir_all(devices.join("dm-0/slaves")).unwrap();
        symlink(devices.join("sda/sda2"), devices.join("dm-0/slaves/sda2")).unwrap();
        fs::create_dir_all(devices.join("sda/sda2/holders/dm-0")).unwrap();
        fs::create_dir_all(devices.join("sdb/sdb1/holders/md0")).unwrap();
        fs::write(sys.proc.join("self/mountinfo"), "1 0 253:0 / / rw - ext4 /dev/mapper/root rw\n").unwrap();
        fs::write(sys.proc.join("swaps"), "Filename Type Size Used Priority\n").unwrap();
        (t, sys)
    }

    fn uses(sys: &Sys, dev: (u32, u32)) -> Vec<InUse> {
        sys.uses(&sys.node(dev).unwrap())
    }

    #[test]
    fn the_system_disk_is_found_through_device_mapper() {
        let (_t, sys) = machine();
        for dev in [(8, 0), (8, 1), (8, 2), (253, 0)] {
            assert!(uses(&sys, dev).iter().any(|u| matches!(u, InUse::System { .. })), "{dev:?}");
        }
    }

    #[test]
    fn a_raid_member_forbids_its_disk_and_itself() {
        let (_t, sys) = machine();
        for dev in [(8, 16), (8, 17)] {
            assert_eq!(uses(&sys, dev), [InUse::Holder { device: "/dev/sdb1".into(), holder: "md0".into() }], "{dev:?}");
        }
    }

    #[test]
    fn a_mounted_partition_forbids_its_disk_but_not_its_sister() {
        let (_t, sys) = machine();
        assert_eq!(uses(&sys, (8, 32)), []);
        // Mounted twice, once as a bind mount.
        let text = "1 0 253:0 / / rw - ext4 r rw\n2 1 8:33 / /a rw - vfat /dev/sdc1 rw\n3 1 8:33 /sub /b rw - vfat /dev/sdc1 rw\n";
        fs::write(sys.proc.join("self/mountinfo"), text).unwrap();
        assert_eq!(uses(&sys, (8, 32)).len(), 2);
        assert_eq!(uses(&sys, (8, 33)).len(), 2);
        assert_eq!(uses(&sys, (8, 34)), []);
        // A mounted whole disk forbids its partitions.
        fs::write(sys.proc.join("self/mountinfo"), "1 0 8:32 / /a rw - ext4 /dev/sdc rw\n").unwrap();
        assert_eq!(uses(&sys, (8, 34)), [InUse::Mounted { device: "/dev/sdc".into(), at: "/a".into() }]);
    }

    #[test]
    fn loop_devices_over_the_same_bytes_forbid_one_another() {
        let (t, sys) = machine();
        let image = t.path().join("card.img");
        fs::write(&image, "").unwrap();
        // loop0: all of it; loop1: its second MiB; loop2: what follows.
        for (minor, from, sectors) in [(0, 0, 8192), (1, 1 << 20, 2048), (2, 2 << 20, 2048)] {
            let dir = sys.sys.join(format!("devices/loop{minor}"));
            fs::create_dir_all(dir.join("loop")).unwrap();
            for (name, text) in [("dev", format!("7:{minor}")), ("size", format!("{sectors}")), ("loop/offset", format!("{from}"))] {
                fs::write(dir.join(name), text).unwrap();
            }
            fs::write(dir.join("loop/backing_file"), image.display().to_string()).unwrap();
            symlink(&dir, sys.sys.join(format!("dev/block/7:{minor}"))).unwrap();
            symlink(&dir, sys.sys.join(format!("block/loop{minor}"))).unwrap();
        }
        assert_eq!(uses(&sys, (7, 0)), []);
        fs::write(sys.proc.join("self/mountinfo"), "1 0 7:1 / /a rw - ext4 /dev/loop1 rw\n").unwrap();
        let mounted = [InUse::Mounted { device: "/dev/loop1".into(), at: "/a".into() }];
        assert_eq!((uses(&sys, (7, 0)), uses(&sys, (7, 2))), (mounted.to_vec(), vec![]));
        let named = |d: Vec<BlockNode>| d.into_iter().map(|d| d.name).collect::<Vec<_>>();
        assert_eq!(named(sys.beside(&sys.node((7, 2)).unwrap())), ["loop0"]);
    }

    #[test]
    fn partitions_know_where_they_begin() {
        let (_t, sys) = machine();
        let node = sys.node((8, 34)).unwrap();
        assert_eq!((node.offset, node.size, node.partition, node.disk()), (128 * 512, 2048 * 512, Some(2), "sdc"));
        assert_eq!(sys.partitions(&sys.node((8, 32)).unwrap()).len(), 2);
    }
}
