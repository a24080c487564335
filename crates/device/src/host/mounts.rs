//! What is mounted and what is swapped to.

use super::sysfs::Sys;
use std::path::PathBuf;

/// One line of mountinfo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Device number the files report; an anonymous one for filesystems such as btrfs, whose `source` then names the device.
    pub dev: (u32, u32),
    /// Where it is mounted.
    pub at: PathBuf,
    /// Filesystem type.
    pub kind: String,
    /// What was mounted.
    pub source: String,
}

/// All mounts of this program's namespace and, where it may be read, of the first process.
pub fn mounts(sys: &Sys) -> Vec<Mount> {
    let mut all: Vec<Mount> = Vec::new();
    for file in ["self/mountinfo", "1/mountinfo"] {
        let Ok(text) = std::fs::read(sys.proc.join(file)) else { continue };
        for m in String::from_utf8_lossy(&text).lines().filter_map(parse) {
            if !all.contains(&m) {
                all.push(m);
            }
        }
    }
    all
}

/// `36 35 98:0 /root /mnt rw,noatime master:1 - ext3 /dev/root rw`
fn parse(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ');
    let (major, minor) = left.nth(2)?.split_once(':')?;
    let at = PathBuf::from(unescape(left.nth(1)?));
    let mut right = right.split(' ');
    let (kind, source) = (right.next()?.to_string(), unescape(right.next().unwrap_or("")));
    Some(Mount { dev: (major.parse().ok()?, minor.parse().ok()?), at, kind, source })
}

/// Files and devices in use as swap.
pub fn swaps(sys: &Sys) -> Vec<PathBuf> {
    let text = std::fs::read(sys.proc.join("swaps")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines().skip(1).filter_map(|l| l.split_whitespace().next()).map(|p| PathBuf::from(unescape(p))).collect()
}

/// The kernel writes blank, tab, newline and backslash as `\040` and so on.
fn unescape(s: &str) -> String {
    let bytes = s.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let octal = bytes.get(i + 1..i + 4).filter(|d| bytes[i] == b'\\' && d.iter().all(|c| (b'0'..b'8').contains(c)));
        match octal {
            Some(d) => {
                out.push(d.iter().fold(0u32, |n, c| n * 8 + u32::from(c - b'0')) as u8);
                i += 4;
            }
            None => {
                out.push(bytes[i]);
                i += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mountinfo_lines_with_and_without_optional_fields() {
        let m = parse(r"36 35 98:0 /a /mnt/my\040card rw,noatime master:1 shared:2 - ext3 /dev/sd\134b1 rw").unwrap();
        assert_eq!((m.dev, m.kind.as_str(), m.source.as_str()), ((98, 0), "ext3", r"/dev/sd\b1"));
        assert_eq!(m.at, PathBuf::from("/mnt/my card"));
        assert_eq!(parse("24 27 0:6 / /dev rw - devtmpfs devtmpfs rw").unwrap().at, PathBuf::from("/dev"));
        for bad in ["", " - ", "1 2 3 4 - x y", "1 2 a:b / / rw - x y"] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn escapes_cut_short_stay_as_they_are() {
        assert_eq!(unescape(r"a\04"), r"a\04");
        assert_eq!(unescape(r"\0409\\"), r" 9\\");
        assert_eq!(unescape(r"\777"), "\u{fffd}");
    }
}
