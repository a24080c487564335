//! Simulated cards among the block devices: `nandscope serve` labels its loop devices, so that they are told from files.

use super::loop_ioctl::{self, LABEL as MOST};
use super::sysfs::text;
use rustix::fd::AsFd;
use std::fs::File;
use std::path::Path;

/// How the label of a served card begins; the server's process id, its start time and the card's name follow.
const LABEL: &str = "nandscope:";

/// What a label says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// Process id of the server.
    pub pid: u32,
    /// When it was started, in clock ticks since boot: tells it from a later process with the same id.
    pub started: u64,
    /// Name of the card's model; empty where it did not fit.
    pub card: String,
}

impl Served {
    /// A card of this name, served by this process.
    pub fn here(card: &str) -> Served {
        Served { pid: std::process::id(), started: started("self").unwrap_or(0), card: card.to_string() }
    }

    /// The text for the loop device, which has room for 63 bytes.
    pub fn label(&self) -> String {
        let mut all = format!("{LABEL}{}:{}:{}", self.pid, self.started, self.card);
        while all.len() >= MOST {
            all.pop();
        }
        all
    }

    /// None where the text is not one of ours.
    pub fn parse(label: &str) -> Option<Served> {
        let (pid, rest) = label.strip_prefix(LABEL)?.split_once(':')?;
        let (started, card) = rest.split_once(':').unwrap_or((rest, ""));
        Some(Served { pid: pid.parse().ok()?, started: started.parse().ok()?, card: card.to_string() })
    }

    /// True while the server runs.
    pub fn alive(&self) -> bool {
        started(&self.pid.to_string()) == Some(self.started)
    }
}

/// What serves the loop device that is open here; None for any other device.
pub fn behind(device: impl AsFd) -> Option<Served> {
    Served::parse(&loop_ioctl::status(device.as_fd()).ok()?.label)
}

/// As [`behind`], for a loop device by its kernel name. Needs the right to read it.
pub fn by_name(name: &str) -> Option<Served> {
    // A device without a file is not worth opening.
    backing_file(name)?;
    behind(File::open(format!("/dev/{name}")).ok()?)
}

/// The file on a disk that this whole disk, by its kernel name, is a loop device over, where no card is served through it. Then its speed is
/// that of the disk. A file that another program answers for (FUSE) may be anything.
pub fn image(name: &str) -> Option<String> {
    const FUSE: u64 = 0x6573_5546;
    let on_disk = |f: &String| rustix::fs::statfs(f.as_str()).is_ok_and(|s| s.f_type as u64 != FUSE);
    backing_file(name).filter(on_disk).filter(|_| by_name(name).is_none())
}

/// Is there such a file?
pub fn is_image(name: &str) -> bool {
    image(name).is_some()
}

/// The file behind a loop device, by its kernel name; `None` where it has none, or is no loop device.
fn backing_file(name: &str) -> Option<String> {
    text(Path::new(&format!("/sys/block/{name}/loop/backing_file")))
}

/// Start time of a process in clock ticks since boot.
fn started(pid: &str) -> Option<u64> {
    let stat = text(Path::new(&format!("/proc/{pid}/stat")))?;
    // The name in parentheses may hold anything.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_names_a_living_server_and_its_card() {
        let me = Served::here("flashbench-readme");
        assert_eq!(Served::parse(&me.label()), Some(me.clone()));
        assert!(me.alive());
        assert!(!Served { started: me.started + 1, ..me.clone() }.alive(), "the same id, another start: a later process");
        assert!(!Served { pid: u32::MAX, ..me.clone() }.alive());
        let long = Served { card: "é".repeat(60), ..me.clone() };
        assert!(long.label().len() < MOST && Served::parse(&long.label()).is_some_and(|s| s.pid == me.pid));
        assert_eq!(
            Served::parse("nandscope:12:34"),
            Some(Served { pid: 12, started: 34, card: String::new() }),
            "as older versions wrote it"
        );
        for foreign in ["", "nandscope:", "nandscope:x:1", "other:1:2", "/tmp/file"] {
            assert_eq!(Served::parse(foreign), None, "{foreign}");
        }
        assert_eq!(behind(File::open("/dev/null").unwrap()), None);
    }
}
