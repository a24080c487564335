//! What the running system has noticed of a disk's faults: error counters of ext4, and lines of the kernel's log.
//!
//! Lines that are older than the last card in the slot are of another card and left out.

use super::sysfs::{children, number, text};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read};
use serde::Serialize;
use std::path::Path;

/// What ext4 keeps in its superblock about one file system; the counters outlive a reboot and are reset by e2fsck only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ext4 {
    /// Kernel name of the partition or disk.
    pub device: String,
    pub errors: u64,
    /// Seconds since 1970 of the first and the last error.
    pub first: Option<u64>,
    pub last: Option<u64>,
    /// Function of the kernel that noticed the last one.
    pub noticed_by: Option<String>,
}

/// What a line of the log is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// A read or write of the medium failed.
    Io,
    /// A file system found its own data wrong.
    FileSystem,
    /// The card did not answer, or the bus spoilt a transfer; the cable, reader or clock may be at fault.
    Bus,
}

/// Lines of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lines {
    pub trouble: Trouble,
    pub count: u64,
    /// The last of them, without its time stamp.
    pub last: String,
}

/// All that was noticed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Noticed {
    pub ext4: Vec<Ext4>,
    pub log: Vec<Lines>,
    /// Why the log could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_log: Option<String>,
}

impl Noticed {
    /// Lines of one kind.
    pub fn lines(&self, trouble: Trouble) -> Option<&Lines> {
        self.log.iter().find(|l| l.trouble == trouble)
    }

    /// Errors that all file systems of the disk count.
    pub fn file_system_errors(&self) -> u64 {
        self.ext4.iter().map(|e| e.errors).sum()
    }

    /// In words; none where nothing was noticed.
    pub fn text(&self) -> Option<String> {
        let mut parts: Vec<String> =
            self.ext4.iter().filter(|e| e.errors > 0).map(|e| format!("ext4 on {} counts {} errors", e.device, e.errors)).collect();
        parts.extend(self.log.iter().map(|l| {
            let kind = match l.trouble {
                Trouble::Io => "failed reads or writes",
                Trouble::FileSystem => "errors of a file system",
                Trouble::Bus => "trouble on the bus",
            };
            format!(
                "{} in the kernel's log: {kind}, the last \"{}\"",
                if l.count == 1 { "1 line".into() } else { format!("{} lines", l.count) },
                l.last
            )
        }));
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// What this machine has noticed of a whole disk by its kernel name.
pub fn noticed(disk: &str) -> Noticed {
    let sys = Path::new("/sys");
    let mut out = Noticed { ext4: ext4(sys, disk), ..Noticed::default() };
    match log() {
        Ok(text) => out.log = lines(&text, disk, host(sys, disk).as_deref()),
        Err(why) => out.no_log = Some(why),
    }
    out
}

/// The error counters of every mounted ext4 of this disk.
pub fn ext4(sys: &Path, disk: &str) -> Vec<Ext4> {
    let mut all: Vec<Ext4> = children(&sys.join("fs/ext4"))
        .filter_map(|dir| {
            let device = dir.file_name()?.to_str()?.to_string();
            let errors = of_disk(&device, disk).then(|| number(&dir.join("errors_count")))??;
            let time = |file| number(&dir.join(file)).filter(|&t| t > 0);
            let noticed_by = text(&dir.join("last_error_func"));
            Some(Ext4 { device, errors, first: time("first_error_time"), last: time("last_error_time"), noticed_by })
        })
        .collect();
    all.sort_by(|a, b| a.device.cmp(&b.device));
    all
}

/// `mmc0` for a card in the slot of that host.
fn host(sys: &Path, disk: &str) -> Option<String> {
    let path = std::fs::canonicalize(sys.join("block").join(disk)).ok()?;
    let mut parts = path.iter().filter_map(|p| p.to_str()).skip_while(|p| *p != "mmc_host");
    parts.nth(1).map(str::to_string)
}

/// The disk itself or one of its partitions: `mmcblk0p2`, `sda1`.
fn of_disk(name: &str, disk: &str) -> bool {
    name.strip_prefix(disk).is_some_and(|rest| {
        // Where the disk's own name ends in a digit, a p stands between.
        let number = if disk.ends_with(|c: char| c.is_ascii_digit()) { rest.strip_prefix('p') } else { Some(rest) };
        rest.is_empty() || number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    })
}

/// The log as the kernel gives it now, without waiting for more.
fn log() -> Result<String, String> {
    let failed = |e: Errno| match e {
        Errno::PERM | Errno::ACCESS => "the kernel's log is for root only".to_string(),
        e => format!("the kernel's log cannot be read: {e}"),
    };
    let file = open("/dev/kmsg", OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).map_err(failed)?;
    let (mut out, mut record) = (String::new(), vec![0; 8192]);
    loop {
        match read(&file, &mut record) {
            Ok(0) | Err(Errno::AGAIN) => return Ok(out),
            Ok(n) => {
                out.push_str(&String::from_utf8_lossy(&record[..n]));
                out.push('\n');
            }
            // Older records were overwritten while this was reading, or are longer than any that is looked for.
            Err(Errno::PIPE | Errno::INVAL | Errno::INTR) => {}
            Err(e) => return Err(failed(e)),
        }
    }
}

/// The text of a line of `/dev/kmsg` (`3,412,98765432,-;text`) or of dmesg (`<3>[   98.765432] text`).
fn message(line: &str) -> Option<&str> {
    if let Some((head, text)) = line.split_once(';')
        && head.split(',').count() >= 3
        && head.split(',').take(3).all(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    {
        return Some(text);
    }
    // Lines of a record that begin with a blank hold its tags.
    let line = line.strip_prefix('<').and_then(|l| l.split_once('>')).map_or(line, |l| l.1);
    let (time, text) = line.strip_prefix('[')?.split_once("] ")?;
    let time = time.trim().trim_start_matches(|c: char| c.is_ascii_alphabetic());
    time.bytes().all(|b| b.is_ascii_digit() || b == b'.' || b == b' ' || b == b':').then_some(text)
}

/// Whether a word stands in a text by itself.
fn names(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let around = |c: Option<char>| c.is_none_or(|c| !c.is_ascii_alphanumeric());
        around(text[..at].chars().next_back()) && around(text[at + word.len()..].chars().next())
    })
}

/// Lines about a disk, or about the host of its slot, by kind; nothing of a card that was there before.
pub fn lines(log: &str, disk: &str, host: Option<&str>) -> Vec<Lines> {
    let mut out: Vec<Lines> = vec![];
    for text in log.lines().filter_map(message) {
        let words = || text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty());
        let of_this = words().any(|w| of_disk(w, disk));
        let of_host = host.is_some_and(|h| names(text, h));
        if !of_this && !of_host {
            continue;
        }
        let low = text.to_ascii_lowercase();
        // Another medium in this slot or reader: what came before is not of this one.
        let attached = (of_host && (low.contains(": new ") || low.contains(" removed")))
            || (of_this && ["attached scsi", "logical blocks:", "capacity change from 0 to"].iter().any(|new| low.contains(new)));
        if attached {
            out.clear();
            continue;
        }
        let Some(trouble) = trouble(&low, of_this) else { continue };
        match out.iter_mut().find(|l| l.trouble == trouble) {
            Some(l) => (l.count, l.last) = (l.count + 1, text.trim().to_string()),
            None => out.push(Lines { trouble, count: 1, last: text.trim().to_string() }),
        }
    }
    out.sort_by_key(|l| l.trouble);
    out
}

/// What a line in lower case is about.
fn trouble(low: &str, of_disk: bool) -> Option<Trouble> {
    let any = |parts: &[&str]| parts.iter().any(|p| low.contains(p));
    match () {
        _ if of_disk && any(&["i/o error", "medium error", "unrecovered read error", "critical target error"]) => Some(Trouble::Io),
        _ if of_disk
            && any(&[
                "ext4-fs error",
                "fat-fs error",
                "exfat-fs error",
                "f2fs-fs error",
                "btrfs error",
                "btrfs critical",
                "aborted journal",
            ]) =>
        {
            Some(Trouble::FileSystem)
        }
        _ if any(&[
            "error -",
            "timeout waiting",
            "timed out",
            "recovery failed",
            "running cqe recovery",
            "stuck in",
            "tuning execution failed",
        ]) =>
        {
            Some(Trouble::Bus)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn counters_of_ext4_are_those_of_the_disk() {
        let root = tempfile::tempdir().unwrap();
        for (name, errors) in [("mmcblk0p2", "7"), ("mmcblk0p10", "0"), ("mmcblk1p1", "3"), ("sda1", "9"), ("features", "")] {
            let dir = root.path().join("fs/ext4").join(name);
            fs::create_dir_all(&dir).unwrap();
            if !errors.is_empty() {
                fs::write(dir.join("errors_count"), format!("{errors}\n")).unwrap();
                fs::write(dir.join("last_error_time"), "1719410000\n").unwrap();
                fs::write(dir.join("last_error_func"), "ext4_lookup\n").unwrap();
            }
        }
        let all = ext4(root.path(), "mmcblk0");
        let brief: Vec<(&str, u64)> = all.iter().map(|e| (e.device.as_str(), e.errors)).collect();
        assert_eq!(brief, [("mmcblk0p10", 0), ("mmcblk0p2", 7)]);
        assert_eq!((all[1].last, all[1].noticed_by.as_deref()), (Some(1_719_410_000), Some("ext4_lookup")));
        assert_eq!(ext4(root.path(), "sda").len(), 1);
        assert!(ext4(root.path(), "sd").is_empty() && ext4(&root.path().join("none"), "sda").is_empty());
    }

    const DMESG: &str = "\
[    1.912345] mmc0: new ultra high speed SDR104 SDXC card at address aaaa
[    2.012345] mmcblk0: mmc0:aaaa SN128 119 GiB
[  812.000001] I/O error, dev mmcblk0, sector 11 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0
[  813.100000] mmc0: card aaaa removed
[  820.000000] mmc0: new high speed SDHC card at address 1234
[  820.100000] mmcblk0: mmc0:1234 SA16G 14.8 GiB
[  901.000000] blk_update_request: I/O error, dev mmcblk0, sector 30000000 op 0x1:(WRITE) flags 0x800 phys_seg 4 prio class 0
[  901.000100] Buffer I/O error on dev mmcblk0p2, logical block 3670017, lost async page write
[  902.500000] EXT4-fs error (device mmcblk0p2): ext4_find_entry:1455: inode #2: comm ls: reading directory lblock 0
[  903.000000] mmc0: cache flush error -110
[  904.000000] I/O error, dev mmcblk01, sector 5 op 0x0:(READ) flags 0x0
[  905.000000] I/O error, dev sda, sector 5 op 0x0:(READ) flags 0x0
[  906.000000] systemd[1]: Mounted /boot on mmcblk0p1.
[  907.000000] mmc1: error -84 whilst initialising SD card
";

    #[test]
    fn lines_of_the_card_that_is_there_are_counted_by_kind() {
        let found = lines(DMESG, "mmcblk0", Some("mmc0"));
        let brief: Vec<(Trouble, u64)> = found.iter().map(|l| (l.trouble, l.count)).collect();
        assert_eq!(brief, [(Trouble::Io, 2), (Trouble::FileSystem, 1), (Trouble::Bus, 1)]);
        assert!(found[0].last.starts_with("Buffer I/O error on dev mmcblk0p2"), "{found:?}");
        // The same records as /dev/kmsg gives them.
        let kmsg: String = DMESG
            .lines()
            .enumerate()
            .map(|(i, l)| format!("{},{i},{},-;{}\n SUBSYSTEM=block\n DEVICE=b179:0\n", i % 7, 1000 * i, l.split_once("] ").unwrap().1))
            .collect();
        assert_eq!(lines(&kmsg, "mmcblk0", Some("mmc0")), found);
        // Another disk, and one of which nothing is said.
        assert_eq!(lines(DMESG, "sda", None).iter().map(|l| l.count).sum::<u64>(), 1);
        assert!(lines(DMESG, "sdb", None).is_empty() && lines("", "sda", None).is_empty());
        assert_eq!(lines(DMESG, "mmcblk1", Some("mmc1"))[0].trouble, Trouble::Bus);
    }

    #[test]
    fn a_reader_with_another_medium_starts_anew() {
        let log = "[ 5.0] sd 2:0:0:0: [sdb] 31116288 512-byte logical blocks: (15.9 GB/14.8 GiB)\n\
                   [ 9.0] critical medium error, dev sdb, sector 100 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2\n";
        assert_eq!(lines(log, "sdb", None)[0].trouble, Trouble::Io);
        let again = format!("{log}[ 90.0] sd 2:0:0:0: [sdb] 62333952 512-byte logical blocks: (31.9 GB/29.7 GiB)\n");
        assert!(lines(&again, "sdb", None).is_empty());
        // A loop or network device gets its name from one that went.
        for disk in ["loop8", "nbd0", "sdb"] {
            let log = format!("[ 5.0] I/O error, dev {disk}, sector 38912 op 0x0:(READ) flags 0x800 phys_seg 1 prio class 2\n");
            assert_eq!(lines(&log, disk, None)[0].count, 1);
            let again = format!("{log}[ 6.0] {disk}: detected capacity change from 0 to 196608\n");
            assert!(lines(&again, disk, None).is_empty());
            let failed = format!("{again}{log}");
            assert_eq!(lines(&failed, disk, None)[0].count, 1);
            // One that shrinks, as a failing card may, is the same one.
            let shrunk = format!("{log}[ 6.0] {disk}: detected capacity change from 196608 to 0\n");
            assert_eq!(lines(&shrunk, disk, None)[0].count, 1);
        }
    }

    #[test]
    fn what_was_noticed_is_said_in_words() {
        assert_eq!(Noticed::default().text(), None);
        let noticed = Noticed { log: lines(DMESG, "mmcblk0", Some("mmc0")), ..Noticed::default() };
        let text = noticed.text().unwrap();
        assert!(text.contains("2 lines in the kernel's log: failed reads or writes") && text.contains("cache flush error -110"), "{text}");
    }
}
