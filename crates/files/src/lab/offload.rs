//! Copy off, format, copy back: how a mounted card becomes blank, or defragmented whatever its filesystem is.
//!
//! Nothing is removed before the copies were compared, and the copies go only after what came back was compared with them.
//! What could not come back as it was (hard links, extended attributes, device files) is refused before anything is done.

use crate::device::{self, Access, Consent, Device, DeviceError, Guard, Limits, Op, OpenOptions, consent_id};
use crate::host::list::list;
use crate::host::sysfs::Sys;
use crate::shell::word;
use crate::units::{Bytes, MIB};
use crate::volume::{Directory, Result, Volume, VolumeError};
use nandscope_fat::{Convention, FatType, Options, plan, recognise};
use std::fs::{self, File, FileTimes, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted filesystem that may be formatted.
pub struct Card {
    /// Where it is mounted, and with which options.
    at: PathBuf,
    options: String,
    /// The filesystem, and the device it is on.
    kind: String,
    source: String,
    consent: String,
}

/// Files that were copied off.
pub struct Away {
    spare: PathBuf,
    names: Vec<PathBuf>,
}

fn failed(op: &'static str, path: &Path, e: io::Error) -> VolumeError {
    VolumeError::Io { op, path: path.display().to_string(), source: e }
}

fn refused<T>(why: String) -> Result<T> {
    Err(VolumeError::Refused(why))
}

impl Card {
    /// The filesystem of `volume`, if all of it may be formatted.
    ///
    /// # Errors
    /// It is not the whole filesystem, not one we can make, or `consent` does not name its device.
    pub fn new(volume: &Directory, consent: Option<&str>) -> Result<Card> {
        let at = volume.root().to_path_buf();
        let Some(mount) = volume.mount().filter(|m| m.at == at) else {
            return refused(format!("{} is a directory of a filesystem; name the directory where the card is mounted", at.display()));
        };
        if !matches!(mount.kind.as_str(), "vfat" | "msdos" | "exfat" | "ext2" | "ext3" | "ext4") {
            return refused(format!(
                "{} holds {}; only FAT, exFAT and ext2 to ext4 can be formatted and filled again",
                at.display(),
                mount.kind
            ));
        }
        let source = fs::canonicalize(&mount.source).map_err(|e| failed("open", Path::new(&mount.source), e))?;
        let source = source.display().to_string();
        let known = list(&Sys::default()).into_iter().find(|d| d.path == source);
        let want = match known {
            Some(d) => consent_id(d.serial.as_deref(), d.size),
            None => return refused(format!("{source}, on which {} lies, is not a disk", at.display())),
        };
        if consent != Some(want.as_str()) {
            return refused(format!(
                "this copies all files off {source}, formats it, and copies them back; if that is the right one, name it: --consent {}",
                word(&want)
            ));
        }
        let text = fs::read_to_string("/proc/self/mounts").map_err(|e| failed("read", Path::new("/proc/self/mounts"), e))?;
        let line = text.lines().rev().find(|l| l.split(' ').nth(1).is_some_and(|p| p.replace("\\040", " ") == at.display().to_string()));
        let options = line.and_then(|l| l.split(' ').nth(3)).unwrap_or("rw").to_string();
        Ok(Card { at, options, kind: mount.kind.clone(), source, consent: want })
    }

    /// Copies everything on the card to a new directory in `spare` and compares. Without a file on the card `spare` is not needed.
    ///
    /// # Errors
    /// Something on it would not come back as it was, there is no room, or a copy differs; the card is as before.
    pub fn copy_off(&self, spare: Option<&Path>) -> Result<Away> {
        let names = walk(&self.at)?;
        if names.is_empty() {
            return Ok(Away { spare: PathBuf::new(), names });
        }
        let Some(parent) = spare else {
            return refused(format!("{} holds files: name a directory on another disk for them with --spare", self.at.display()));
        };
        let here = fs::metadata(parent).map_err(|e| failed("open", parent, e))?;
        if here.dev() == fs::metadata(&self.at).map_err(|e| failed("open", &self.at, e))?.dev() {
            return refused(format!("{} lies on the card itself; --spare must be on another disk", parent.display()));
        }
        let need: u64 =
            names.iter().filter_map(|n| fs::symlink_metadata(self.at.join(n)).ok()).map(|m| m.len().next_multiple_of(4096)).sum();
        let room = Directory::open(parent)?.space()?.free;
        if room < need + need / 50 {
            return Err(VolumeError::Full(format!("{} has {} free, the files need {}", parent.display(), Bytes(room), Bytes(need))));
        }
        let spare = parent.join(format!("nandscope-spare-{}", std::process::id()));
        fs::create_dir(&spare).map_err(|e| failed("make directory", &spare, e))?;
        let done = copy_all(&self.at, &spare, &names).and_then(|()| same_all(&self.at, &spare, &names));
        if let Err(e) = done {
            // Nothing was touched on the card: the copies are of no use.
            let _ = fs::remove_dir_all(&spare);
            return Err(e);
        }
        Ok(Away { spare, names })
    }

    /// Formats as `Card::format` does, once everything was copied off.
    ///
    /// # Errors
    /// As there. The copies are removed where the files are still on the card; else the text says where they are.
    pub fn empty(&self, away: &Away, discard: bool) -> Result<Option<String>> {
        self.format(discard).map_err(|e| {
            if away.names.iter().all(|n| fs::symlink_metadata(self.at.join(n)).is_ok()) {
                away.forget();
                return e;
            }
            away.lost_nothing(e)
        })
    }

    /// Unmounts the card, formats it with the filesystem it had, erased before where `discard` says so, and mounts it again.
    /// A note where it could not be erased.
    ///
    /// # Errors
    /// It is in use (then nothing was changed), or formatting or mounting failed.
    fn format(&self, discard: bool) -> Result<Option<String>> {
        let label = match self.kind.starts_with("ext") {
            true => run("e2label", &[&self.source]).unwrap_or_default().trim().to_string(),
            false => String::new(),
        };
        run("umount", &[&self.at.display().to_string()])?;
        let done = match self.kind.starts_with("ext") {
            true => self.make_ext(discard, &label),
            false => self.make_fat(discard),
        };
        // Mounted again in any case: as it was, or new.
        let mounted = self.mount();
        let note = done?;
        mounted?;
        Ok(note)
    }

    fn mount(&self) -> Result<()> {
        run("mount", &["-t", &self.kind, "-o", &self.options, &self.source, &self.at.display().to_string()]).map(drop)
    }

    fn make_ext(&self, discard: bool, label: &str) -> Result<Option<String>> {
        let discard = if discard { "discard" } else { "nodiscard" };
        run(&format!("mkfs.{}", self.kind), &["-q", "-F", "-E", discard, "-L", label, &self.source])?;
        Ok(None)
    }

    /// The same type, clusters and label; the rest by the SD convention.
    fn make_fat(&self, discard: bool) -> Result<Option<String>> {
        let opened = device::open(&self.source, &OpenOptions::default())?;
        let consent = Consent::check(opened.id(), Some(&self.consent))?;
        let limits = Limits { region: None, budget: u64::MAX, undo: None };
        let mut guard: Guard = opened.writable(&consent, &limits)?;
        let mut boot = [0; 512];
        guard.load(0, &mut boot)?;
        let old = recognise(&boot).map_err(|e| VolumeError::Foreign(format!("{}: {e}", self.source)))?;
        let g = guard.geometry().clone();
        let options = Options {
            capacity: g.size,
            sector: old.sector.max(g.sector),
            offset: g.offset,
            convention: Convention::Sd,
            kind: Some(old.kind),
            cluster: Some(old.cluster),
            table: false,
            label: old.label.clone(),
            serial: old.serial,
        };
        // A small volume has no room for the boundaries of the convention.
        let layout = plan(&options).or_else(|_| {
            let first = Convention::Grid { unit: old.cluster.max(if old.kind == FatType::ExFat { MIB } else { 0 }), first: 0 };
            plan(&Options { convention: first, ..options })
        });
        let layout = layout.map_err(|e| VolumeError::Unsupported(e.to_string()))?;
        let mut note = None;
        if discard {
            let step = 64 * MIB;
            for at in (0..g.size).step_by(step as usize) {
                match guard.access(Access { op: Op::Discard, at, len: step.min(g.size - at) }) {
                    Ok(_) => {}
                    Err(DeviceError::Unsupported(why)) => {
                        note = Some(format!("formatted without erasing the medium: {why}"));
                        break;
                    }
                    Err(e) => return Err(e.into()),
                }
            }
        }
        crate::layout::format::apply(&mut guard, &layout, &mut |_| {})?;
        Ok(note)
    }

    /// Copies everything back, compares, and removes the copies.
    ///
    /// # Errors
    /// A file could not be written or differs; all copies stay, and the text says where.
    pub fn copy_back(&self, away: &Away) -> Result<()> {
        if away.names.is_empty() {
            return Ok(());
        }
        let done = copy_all(&away.spare, &self.at, &away.names).and_then(|()| same_all(&away.spare, &self.at, &away.names));
        done.map_err(|e| away.lost_nothing(e))?;
        fs::remove_dir_all(&away.spare).map_err(|e| failed("remove", &away.spare, e))
    }
}

impl Away {
    /// The same error, with the place of the copies.
    fn lost_nothing(&self, e: VolumeError) -> VolumeError {
        if self.names.is_empty() { e } else { VolumeError::Unsupported(format!("{e}; all files are in {}", self.spare.display())) }
    }

    /// The card was not formatted: the copies go.
    fn forget(&self) {
        if !self.names.is_empty() {
            let _ = fs::remove_dir_all(&self.spare);
        }
    }
}

/// Runs a program of the system; its standard output.
fn run(program: &str, args: &[&str]) -> Result<String> {
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let out = Command::new(program).args(args).env("PATH", path).output().map_err(|e| failed("run", Path::new(program), e))?;
    if out.status.success() {
        return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&out.stderr);
    refused(format!("{program} {}: {}", args.join(" "), said.trim().lines().next().unwrap_or("it failed without a word")))
}

/// Everything below `root`, directories before what is in them.
fn walk(root: &Path) -> Result<Vec<PathBuf>> {
    let dev = fs::metadata(root).map_err(|e| failed("open", root, e))?.dev();
    let mut out = vec![];
    let mut next = vec![PathBuf::new()];
    while let Some(dir) = next.pop() {
        let here = root.join(&dir);
        let mut all: Vec<PathBuf> = vec![];
        for e in fs::read_dir(&here).map_err(|e| failed("list", &here, e))? {
            all.push(dir.join(e.map_err(|e| failed("list", &here, e))?.file_name()));
        }
        all.sort();
        for name in all {
            let path = root.join(&name);
            let meta = fs::symlink_metadata(&path).map_err(|e| failed("look at", &path, e))?;
            let t = meta.file_type();
            let empty = || fs::read_dir(&path).is_ok_and(|mut d| d.next().is_none());
            // mkfs makes it anew.
            if name == Path::new("lost+found") && t.is_dir() && empty() {
                continue;
            }
            let odd = match () {
                _ if meta.dev() != dev => Some("another filesystem is mounted there"),
                _ if t.is_fifo() || t.is_socket() || t.is_block_device() || t.is_char_device() => Some("it is no plain file"),
                _ if t.is_file() && meta.nlink() > 1 => Some("it has more than one name (hard links)"),
                _ if rustix::fs::llistxattr(&path, &mut [0u8; 0][..]).is_ok_and(|n| n > 0) => Some("it has extended attributes"),
                () => None,
            };
            if let Some(why) = odd {
                return refused(format!("{} would not come back as it was: {why}; move it away first", path.display()));
            }
            if t.is_dir() {
                next.push(name.clone());
            }
            out.push(name);
        }
    }
    out.sort();
    Ok(out)
}

fn copy_all(from: &Path, to: &Path, names: &[PathBuf]) -> Result<()> {
    let meta = |p: &Path| fs::symlink_metadata(p).map_err(|e| failed("look at", p, e));
    for n in names {
        let (a, b) = (from.join(n), to.join(n));
        let t = meta(&a)?.file_type();
        let done = match () {
            _ if t.is_dir() => fs::create_dir(&b),
            _ if t.is_symlink() => fs::read_link(&a).and_then(|l| std::os::unix::fs::symlink(l, &b)),
            () => fs::copy(&a, &b).and_then(|_| File::open(&b)?.sync_all()),
        };
        done.map_err(|e| failed("copy", &b, e))?;
    }
    // From the inside out: a file made in a directory changes its time.
    for n in names.iter().rev() {
        let (a, b) = (from.join(n), to.join(n));
        let m = meta(&a)?;
        // FAT knows no owners; the comparison tells whether it mattered.
        let _ = std::os::unix::fs::lchown(&b, Some(m.uid()), Some(m.gid()));
        if !m.file_type().is_symlink() {
            let _ = fs::set_permissions(&b, m.permissions());
            let times = FileTimes::new().set_modified(m.modified().map_err(|e| failed("look at", &a, e))?);
            File::open(&b).and_then(|f| f.set_times(times)).map_err(|e| failed("set the time of", &b, e))?;
        }
    }
    let root = File::open(to).map_err(|e| failed("sync", to, e))?;
    rustix::fs::syncfs(&root).map_err(|e| failed("sync", to, e.into()))
}

fn same_all(one: &Path, other: &Path, names: &[PathBuf]) -> Result<()> {
    let meta = |p: &Path| fs::symlink_metadata(p).map_err(|e| failed("look at", p, e));
    let facts = |m: &Metadata| (m.file_type(), m.uid(), m.gid(), m.permissions().mode());
    for n in names {
        let (a, b) = (one.join(n), other.join(n));
        let (x, y) = (meta(&a)?, meta(&b)?);
        let differ = |what: &str| Err(VolumeError::Damaged(format!("{} and {} differ in {what}", a.display(), b.display())));
        let link = x.file_type().is_symlink();
        if facts(&x) != facts(&y) {
            return differ("type, owner or mode");
        }
        // Two seconds are what FAT knows.
        if !link && (x.mtime() - y.mtime()).abs() > 2 {
            return differ("time");
        }
        if link && fs::read_link(&a).ok() != fs::read_link(&b).ok() {
            return differ("where they lead");
        }
        if x.is_file() {
            same(&a, &b)?;
        }
    }
    Ok(())
}

/// Compares two files byte by byte.
///
/// # Errors
/// They differ, or one cannot be read.
pub fn same(a: &Path, b: &Path) -> Result<()> {
    let open = |p: &Path| File::open(p).map_err(|e| failed("read", p, e));
    let (mut x, mut y) = (open(a)?, open(b)?);
    // From the medium, not from what was just written to memory.
    for f in [&x, &y] {
        let _ = rustix::fs::fadvise(f, 0, None, rustix::fs::Advice::DontNeed);
    }
    let (mut p, mut q) = (vec![0; MIB as usize], vec![0; MIB as usize]);
    loop {
        let n = fill(&mut x, &mut p).map_err(|e| failed("read", a, e))?;
        let m = fill(&mut y, &mut q).map_err(|e| failed("read", b, e))?;
        if p[..n] != q[..m] {
            return Err(VolumeError::Damaged(format!("{} and {} differ", a.display(), b.display())));
        }
        if n == 0 {
            return Ok(());
        }
    }
}

fn fill(f: &mut File, into: &mut [u8]) -> io::Result<usize> {
    let mut n = 0;
    while n < into.len() {
        match f.read(&mut into[n..])? {
            0 => break,
            k => n += k,
        }
    }
    Ok(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/b/c"), vec![7; 3_000_000]).unwrap();
        fs::write(dir.path().join("d"), b"").unwrap();
        fs::set_permissions(dir.path().join("d"), fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("a/b", dir.path().join("e")).unwrap();
        dir
    }

    #[test]
    fn what_is_copied_is_the_same_and_a_change_is_seen() {
        let (from, to) = (tree(), tempfile::tempdir().unwrap());
        let names = walk(from.path()).unwrap();
        assert_eq!(names.len(), 5);
        copy_all(from.path(), to.path(), &names).unwrap();
        same_all(from.path(), to.path(), &names).unwrap();
        assert_eq!(walk(to.path()).unwrap(), names);
        let mut bytes = fs::read(to.path().join("a/b/c")).unwrap();
        bytes[2_999_999] = 8;
        fs::write(to.path().join("a/b/c"), bytes).unwrap();
        assert!(same_all(from.path(), to.path(), &names).is_err());
        fs::remove_file(to.path().join("d")).unwrap();
        assert!(same_all(from.path(), to.path(), &names).is_err());
    }

    #[test]
    fn what_would_not_come_back_is_refused() {
        let from = tree();
        fs::hard_link(from.path().join("d"), from.path().join("f")).unwrap();
        let why = walk(from.path()).unwrap_err().to_string();
        assert!(why.contains("hard links"), "{why}");
        fs::remove_file(from.path().join("f")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(from.path().join("s")).unwrap();
        assert!(walk(from.path()).unwrap_err().to_string().contains("no plain file"));
    }
}
