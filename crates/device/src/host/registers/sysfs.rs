//! Reads what Linux says about a block device in sysfs (and the EXT_CSD from debugfs, where that may be read).
//!
//! `<root>/class/block/<disk>/device` is the card of an MMC host, with its registers as files; for anything else the folders above
//! it are searched for a USB device. The root is a parameter so that a copied tree can be read.

use super::attributes::Attributes;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Largest file that is read, in bytes; sysfs attributes end at a page.
const LIMIT: usize = 8192;

const MMC: &[&str] = &[
    "cid",
    "cmdq_en",
    "csd",
    "date",
    "erase_size",
    "fwrev",
    "hwrev",
    "life_time",
    "manfid",
    "name",
    "oemid",
    "pre_eol_info",
    "preferred_erase_size",
    "rev",
    "scr",
    "serial",
    "ssr",
    "type",
];
const SCSI: &[&str] = &["vendor", "model"];
const USB: &[&str] = &["idVendor", "idProduct", "bcdDevice", "manufacturer", "product", "serial", "speed"];

fn read(folder: &Path, name: &str) -> Option<String> {
    let mut bytes = fs::read(folder.join(name)).ok()?;
    bytes.truncate(LIMIT);
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn take(from: &Path, names: &[&str], into: &mut Attributes) {
    for name in names {
        if let Some(value) = read(from, name) {
            into.add(name, &value);
        }
    }
}

/// The folder of the whole disk that `name` (a disk or a partition) belongs to.
fn disk_folder(root: &Path, name: &str) -> io::Result<PathBuf> {
    if name.is_empty() || name.contains('/') || name.contains("..") {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name:?} is not the name of a block device")));
    }
    let places = [root.join("class/block").join(name), root.join("block").join(name)];
    let missing = || io::Error::new(io::ErrorKind::NotFound, format!("no block device {name} under {}", root.display()));
    let folder = places.iter().find(|p| p.exists()).ok_or_else(missing)?.canonicalize()?;
    match folder.parent() {
        Some(disk) if folder.join("partition").exists() => Ok(disk.to_path_buf()),
        _ => Ok(folder),
    }
}

/// Everything known about the disk that `name` is or belongs to. An error only where there is no such block device.
pub fn attributes(root: &Path, name: &str) -> io::Result<Attributes> {
    let disk = disk_folder(root, name)?;
    let mut found = Attributes::of(disk.file_name().map(|n| n.to_string_lossy().into_owned()));
    take(&disk, &["removable"], &mut found);
    let Ok(device) = disk.join("device").canonicalize() else {
        take(&disk, &["size"], &mut found);
        return Ok(found);
    };
    // The boot partitions of an eMMC are disks of their own, whose device is the main disk.
    let hardware_partition = device.join("device/cid").exists();
    let card = if hardware_partition { device.join("device").canonicalize()? } else { device };
    if hardware_partition {
        found.remarks.push("a hardware partition of an eMMC: the registers are those of the whole device".into());
    } else {
        take(&disk, &["size"], &mut found);
    }
    if card.join("cid").exists() {
        take(&card, MMC, &mut found);
        found.commands = whole_disk(&card);
        if let Some(text) = debugfs_ext_csd(root, &card) {
            found.add("ext_csd", &text);
        }
        return Ok(found);
    }
    let top = root.canonicalize()?;
    let parents = card.ancestors().take_while(|p| p.starts_with(&top) && *p != top);
    if let Some(usb) = parents.into_iter().find(|p| p.join("idVendor").exists()) {
        take(usb, USB, &mut found);
    }
    take(&card, SCSI, &mut found);
    Ok(found)
}

/// The disk of a card; the boot partitions of an eMMC are further ones, with longer names.
fn whole_disk(card: &Path) -> Option<String> {
    let names = fs::read_dir(card.join("block")).ok()?.flatten().filter_map(|e| e.file_name().into_string().ok());
    names.min_by_key(String::len)
}

/// `<root>/kernel/debug/mmc0/mmc0:0001/ext_csd`: one line of 1024 hex digits, readable by root only.
fn debugfs_ext_csd(root: &Path, card: &Path) -> Option<String> {
    let id = card.file_name()?.to_str()?;
    let host = id.split(':').next()?;
    read(&root.join("kernel/debug").join(host).join(id), "ext_csd")
}
