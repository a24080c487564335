//! How the parts of a plan are made: the commands of each filesystem, in order.

use super::super::grid::lcm;
use super::super::zone::Made;
use super::{Fs, Known, Mount, Plan, Planned, Step};
use crate::units::{Bytes, GIB, KIB, MIB, SECTOR, option, three};
use nandscope_fat::{Convention, FatType, Options, sd_units};

pub(super) fn table(p: &mut Plan, unit: u64, size: u64, path: &str) {
    let gpt = size > 2048 * GIB;
    let mut script = format!("label: {}\\n", if gpt { "gpt" } else { "dos" });
    let mut parted = format!("parted -s -a none {path} mklabel {}", if gpt { "gpt" } else { "msdos" });
    for part in &p.parts {
        let (start, len) = (part.start / SECTOR, part.size / SECTOR);
        let fat32 = part.size >= 2 * GIB || (part.fs == Fs::Fat && part.size >= 512 * MIB);
        let (kind, guid, name) = match part.fs {
            Fs::Fat if fat32 => ("c", "EBD0A0A2-B9E5-4433-87C0-68B6B72699C7", "fat32 "),
            Fs::Fat => ("6", "EBD0A0A2-B9E5-4433-87C0-68B6B72699C7", "fat16 "),
            Fs::Exfat => ("7", "EBD0A0A2-B9E5-4433-87C0-68B6B72699C7", "ntfs "),
            Fs::Swap => ("82", "0657FD6D-A4AB-43C4-84E5-0933C84B4F4F", "linux-swap "),
            Fs::Ext4 => ("83", "0FC63DAF-8483-4772-8E79-3D69D8477DE4", "ext4 "),
            // Of the same type; parted has no name for them everywhere, and needs none.
            Fs::F2fs | Fs::Btrfs => ("83", "0FC63DAF-8483-4772-8E79-3D69D8477DE4", ""),
        };
        script.push_str(&format!("start={start}, size={len}, type={}\\n", if gpt { guid } else { kind }));
        parted.push_str(&format!(" mkpart {} {name}{start}s {}s", if gpt { "nand" } else { "primary" }, start + len - 1));
    }
    let first = p.parts.first().map_or(0, |x| x.start);
    let why = format!("each partition begins on a boundary of {}, the first at {}", Bytes(unit), Bytes(first));
    p.steps.push(Step { command: format!("printf '{script}' | sfdisk {path}"), why });
    p.instead.push(Step { command: parted, why: "the same table by parted; -a none, so that it moves nothing".into() });
}

/// The device of a partition; for an image a word to replace.
pub(in crate::layout) fn part_name(path: &str, n: usize) -> String {
    match path {
        p if !p.starts_with("/dev/") => format!("PART{n}"),
        p if p.ends_with(|c: char| c.is_ascii_digit()) => format!("{p}p{n}"),
        p => format!("{p}{n}"),
    }
}

pub(super) fn make(p: &mut Plan, k: &Known, part: &Planned, name: &str, logger: bool) -> Result<(), String> {
    match part.fs {
        Fs::Fat => {
            // The reserved sectors push the data area to the boundary.
            let convention = Convention::Grid { unit: k.unit, first: k.first };
            let cluster = logger.then_some(64 * KIB).filter(|c| part.size / c >= 65536 && k.unit.is_multiple_of(*c));
            let kind = (part.size >= 512 * MIB).then_some(FatType::Fat32);
            let o = Options { convention, offset: part.start, table: false, cluster, kind, ..Options::card(part.size) };
            fat(p, &o, k.unit, name, None)?;
        }
        Fs::Exfat => {
            let cluster = sd_units(part.size).0.max(128 * KIB).max(k.write_unit.unwrap_or(0)).min(k.unit & k.unit.wrapping_neg());
            if k.unit.is_power_of_two() && k.first == 0 {
                let command = format!("mkfs.exfat -b {} -c {} {name}", k.unit / 2, cluster);
                let why = format!("FAT half a boundary in, data on the next boundary of {}; clusters of {}", Bytes(k.unit), Bytes(cluster));
                p.steps.push(Step { command, why });
            } else {
                let command =
                    format!("nandscope format {name} --fs exfat --align {} --cluster {} --consent ID", option(k.unit), option(cluster));
                let why = format!("mkfs.exfat knows powers of two only, and the boundary is {}", Bytes(k.unit));
                p.steps.push(Step { command, why });
            }
            p.mount.push(Mount::new(name, "noatime", "reading a file should not write to it".into()));
        }
        Fs::Ext4 => ext4(p, k, name),
        Fs::F2fs => f2fs(p, k, part, name),
        Fs::Btrfs => btrfs(p, k, part, name),
        Fs::Swap => {
            let why = "swap writes pages of 4 KiB at random: of all uses the one a card bears worst".into();
            p.steps.push(Step { command: format!("mkswap {name}"), why });
            p.notes.push("zram or no swap at all spares the card".into());
        }
    }
    Ok(())
}

/// `zone`: bytes from the start of the card in which the tables are to lie.
pub(super) fn fat(p: &mut Plan, o: &Options, unit: u64, name: &str, zone: Option<u64>) -> Result<(), String> {
    let m = Made::of(o, unit)?;
    let v = &m.layout.volume;
    let align = format!("nandscope format {name} --align {} --consent ID", option(unit));
    if m.reserved <= 0xffff {
        let (bits, per, reserved) = (m.bits, m.per_cluster, m.reserved);
        let command = format!("mkfs.fat -F {bits} -s {per} -R {reserved} -h {} {name}", o.offset / v.sector);
        let why =
            format!("{reserved} reserved sectors put the data area on a boundary of {}; clusters of {}", Bytes(unit), Bytes(v.cluster));
        p.steps.push(Step { command, why });
        // This program chooses type and cluster itself: only where its tables lie in the zone, too.
        let own = nandscope_fat::plan(&Options { kind: None, cluster: None, ..o.clone() });
        let inside = |z: u64| own.as_ref().is_ok_and(|l| o.offset + l.volume.data_start + l.volume.cluster <= z);
        if zone.is_none_or(inside) {
            let why = "the same by this program, which also reads it back".into();
            p.instead.push(Step { command: align, why });
        }
    } else {
        p.steps.push(Step { command: align, why: "mkfs.fat has too few reserved sectors for this boundary".into() });
    }
    let why = "reading a file should not write to it; changes reach the card soon after they are made";
    p.mount.push(Mount::new(name, "noatime,flush", why.into()));
    Ok(())
}

pub(super) fn ext4(p: &mut Plan, k: &Known, name: &str) {
    let mut extended = vec![];
    let mut why = vec!["blocks of 4 KiB".to_string()];
    if let Some(w) = k.write_unit.filter(|&w| w > 4 * KIB) {
        extended.push(format!("stride={}", w / (4 * KIB)));
        why.push(format!("stride is the write unit of {}", Bytes(w)));
    }
    if let Some(e) = k.block.filter(|e| e.is_multiple_of(4 * KIB)) {
        extended.push(format!("stripe-width={}", e / (4 * KIB)));
        why.push(format!("stripe width is the erase block of {}, so that large files begin on it", Bytes(e)));
    }
    let few = k.open.is_some_and(|n| n < 4);
    if few {
        extended.push("packed_meta_blocks=1".into());
        why.push("journal and tables lie together in front, because few erase blocks can be open".into());
    }
    let extended = if extended.is_empty() { String::new() } else { format!(" -E {}", extended.join(",")) };
    p.steps.push(Step { command: format!("mkfs.ext4 -b 4096{extended} {name}"), why: why.join("; ") });
    let (options, why) = match (k.open, few) {
        (Some(n), true) => {
            ("noatime,commit=60", format!("the journal is written once a minute instead of every 5 s: this card {}", k.keeps(n)))
        }
        _ => ("noatime", "reading a file should not write to it".to_string()),
    };
    p.mount.push(Mount::new(name, options, why));
    if few {
        p.notes.push("commit=60 means that up to a minute of work is lost when the power goes".into());
    }
}

pub(super) fn f2fs(p: &mut Plan, k: &Known, part: &Planned, name: &str) {
    const SEGMENT: u64 = 2 * MIB;
    // Without a sure erase block one section is one segment: the default.
    let section = k.block.map(|e| lcm(e, SEGMENT)).filter(|s| *s <= 64 * MIB && part.size / s >= 64);
    match section {
        Some(s) => {
            let why = format!(
                "a section of {} is what is cleaned at once: whole erase blocks of {}; one section a zone",
                Bytes(s),
                Bytes(k.block.unwrap_or(s))
            );
            p.steps.push(Step { command: format!("mkfs.f2fs -s {} -z 1 {name}", s / SEGMENT), why });
        }
        None => p.steps.push(Step {
            command: format!("mkfs.f2fs {name}"),
            why: "the erase block is not sure enough, or too large for this card, to set the section".into(),
        }),
    }
    // Each log is written from front to back.
    let (option, why) = match k.open_in_order.or(k.open) {
        Some(n) if n < 4 => ("noatime,active_logs=2", format!("F2FS interleaves writes to 6 logs, and this card {}", k.keeps(n))),
        Some(n) if n < 6 => ("noatime,active_logs=4", format!("F2FS interleaves writes to 6 logs, and this card {}", k.keeps(n))),
        Some(n) => ("noatime", format!("writes to 6 logs are interleaved, and this card {}", k.keeps(n))),
        None => ("noatime", "reading a file should not write to it".into()),
    };
    p.mount.push(Mount::new(name, option, why));
}

pub(super) fn btrfs(p: &mut Plan, k: &Known, part: &Planned, name: &str) {
    let mixed = part.size < GIB;
    let few = k.open.is_some_and(|n| n < 4);
    let mut command = String::from("mkfs.btrfs");
    let mut why = vec![];
    if mixed {
        command.push_str(" --mixed");
        why.push("below 1 GiB data and metadata share their chunks".to_string());
    } else if few {
        command.push_str(" -m single");
        why.push("a second copy of the metadata would lie in another erase block, and few can be open".to_string());
    }
    if let Some(w) = k.write_unit.filter(|&w| !mixed && (16 * KIB..=64 * KIB).contains(&w)) {
        command.push_str(&format!(" -n {w}"));
        why.push(format!("a tree node fills the write unit of {}", Bytes(w)));
    }
    if why.is_empty() {
        why.push("its defaults; btrfs has no parameter for the erase block".into());
    }
    p.steps.push(Step { command: format!("{command} {name}"), why: why.join("; ") });
    let why = "new data goes to free stretches instead of the gaps between old data; fewer commits, fewer trees written";
    p.mount.push(Mount::new(name, "noatime,ssd_spread,commit=120", why.into()));
    p.notes.push("commit=120 means that up to two minutes of work are lost when the power goes".into());
    p.notes.push(
        "btrfs places its chunks itself, at multiples of 1 MiB from the start of the partition: their alignment cannot be chosen".into(),
    );
}

/// Whether to mount with `discard`. What a discard costs on a card was not measured, so it is not made a part of each removal.
pub(super) fn discards(p: &Plan, takes: Option<bool>) -> Option<String> {
    if p.parts.iter().all(|x| x.fs == Fs::Swap) {
        return None;
    }
    let only_f2fs = p.parts.iter().all(|x| matches!(x.fs, Fs::F2fs | Fs::Swap));
    let only_btrfs = p.parts.iter().all(|x| matches!(x.fs, Fs::Btrfs | Fs::Swap));
    Some(match takes {
        Some(false) => "no discard: this reader or card takes none, so neither the mount option nor fstrim does anything".into(),
        _ if only_btrfs => "btrfs collects discards and sends them by and by (discard=async, its default since Linux 6.2)".into(),
        _ if only_f2fs => "discard is the default of F2FS, which collects discards and sends them when the card is idle".into(),
        _ => {
            let when = if takes.is_none() { "where the card takes discards (lsblk --discard), run " } else { "run " };
            format!("no discard among the options: it adds a delay of unknown length to each deletion; {when}fstrim once a week instead")
        }
    })
}

/// Places written in turn against the open AUs.
pub(super) fn writers(p: &mut Plan, k: &Known, logger: bool) {
    let Some(open) = k.open else { return };
    let cost = k.close_ms.map(|c| format!(", {} ms each", three(c))).unwrap_or_default();
    for part in &p.parts {
        let (what, need) = match part.fs {
            Fs::Ext4 => ("the journal, the tables and two writers", 4),
            Fs::Fat | Fs::Exfat => ("the FAT, the directory and one writer", 3),
            Fs::F2fs if k.open_in_order.unwrap_or(open) < 6 => continue,
            Fs::F2fs => ("the logs of F2FS", 6),
            // A small one shares its chunks and has one copy as well.
            Fs::Btrfs if open < 4 => ("the metadata and one writer", 2),
            Fs::Btrfs => ("two copies of the metadata and one writer", 3),
            Fs::Swap => continue,
        };
        let open = if part.fs == Fs::F2fs { k.open_in_order.unwrap_or(open) } else { open };
        let verdict = if open == 0 {
            format!("; this card {}, so only large writes help", k.keeps(0))
        } else if need <= open {
            format!("; this card has {open}: enough")
        } else {
            format!("; this card has {open}: the others incur a merge at each switch{cost}")
        };
        p.notes.push(format!("{what} need {need} open erase blocks{verdict}"));
    }
    if logger {
        p.notes.push(
            "give the log its room when it is made (fallocate, preallocation in SdFat and FatFs): then the FAT is written once".into(),
        );
    }
}
