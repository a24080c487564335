//! Loop devices, mounts and swap that go away with their value.

use nandscope::device::{Consent, Guard, Limits, OpenOptions, Opened, Result, open};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

pub const MIB: u64 = 1 << 20;

/// Runs a program; its standard output, trimmed. Panics with its messages when it fails.
pub fn sh(program: &str, args: &[&str]) -> String {
    let out = Command::new(program).args(args).env("PATH", path()).output().unwrap_or_else(|e| panic!("{program}: {e}"));
    assert!(out.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).trim().to_string()
}

fn path() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

/// True where a program can be found; else says what is left out.
pub fn have(program: &str, for_what: &str) -> bool {
    let found = path().split(':').any(|d| Path::new(d).join(program).is_file());
    if !found {
        crate::skip::no_tool(for_what, program);
    }
    found
}

/// Why there can be no loop devices here.
pub fn no_loops() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("not root".into());
    }
    if !Path::new("/dev/loop-control").exists() {
        return Some("the kernel has no loop devices".into());
    }
    (!have("losetup", "loop devices")).then(|| "losetup is not installed".into())
}

/// A directory on disk (`false`) or in memory (`true`).
pub fn dir(memory: bool) -> tempfile::TempDir {
    if memory && Path::new("/dev/shm").is_dir() {
        return tempfile::tempdir_in("/dev/shm").unwrap();
    }
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A file full of bytes that tell their place.
pub fn image(dir: &Path, size: u64) -> PathBuf {
    let path = dir.join("card.img");
    let mut bytes = vec![0; size as usize];
    nandscope::device::Fill::Stamp(1).render(0, &mut bytes);
    fs::write(&path, bytes).unwrap();
    path
}

/// A loop device; detached when dropped.
pub struct Loop(pub String);

impl Loop {
    pub fn over(file: &Path, options: &[&str]) -> Loop {
        let file = file.to_str().unwrap();
        Loop(sh("losetup", &[&["--find", "--show"], options, &[file]].concat()))
    }

    /// A loop device over a file with a partition table; where the kernel reads no such table, it is told of the partitions.
    pub fn partitioned(file: &Path, parts: &[(u32, u32)]) -> Loop {
        partition(file, parts);
        let l = Loop::over(file, &["--partscan"]);
        for (i, (start, count)) in parts.iter().enumerate() {
            let number = (i + 1).to_string();
            if !Path::new(&format!("{}p{number}", l.0)).exists() {
                sh("addpart", &[&l.0, &number, &start.to_string(), &count.to_string()]);
            }
        }
        l
    }

    pub fn name(&self) -> &str {
        self.0.trim_start_matches("/dev/")
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").env("PATH", path()).args(["-d", &self.0]).status();
    }
}

/// A mount; unmounted when dropped.
pub struct Mount(pub PathBuf);

impl Mount {
    pub fn on(what: &str, at: &Path, options: &[&str]) -> Mount {
        fs::create_dir_all(at).unwrap();
        sh("mount", &[options, &[what, at.to_str().unwrap()]].concat());
        Mount(at.to_path_buf())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").env("PATH", path()).arg(&self.0).status();
    }
}

/// Swap; switched off when dropped.
pub struct Swap(String);

impl Swap {
    pub fn on(device: &str) -> Swap {
        sh("mkswap", &[device]);
        sh("swapon", &[device]);
        Swap(device.into())
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        let _ = Command::new("swapoff").env("PATH", path()).arg(&self.0).status();
    }
}

pub fn opened(target: &str) -> Result<Opened> {
    open(target, &OpenOptions::default())
}

/// Opens for writing, with the consent the target asks for.
pub fn writable(target: &str, limits: &Limits) -> Result<Guard> {
    let o = opened(target)?;
    let consent = Consent::check(o.id(), Some(&o.id().consent_id()))?;
    o.writable(&consent, limits)
}

/// What went wrong, as a text; panics where nothing did.
pub fn refusal<T>(r: Result<T>) -> String {
    match r {
        Err(nandscope::device::DeviceError::Refused(text)) => text,
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("not refused"),
    }
}

/// Writes an MBR with these partitions (first sector, number of sectors), type 0c.
fn partition(file: &Path, parts: &[(u32, u32)]) {
    use std::os::unix::fs::FileExt;
    let mut mbr = [0; 512];
    for (i, (start, count)) in parts.iter().enumerate() {
        let e = &mut mbr[446 + 16 * i..462 + 16 * i];
        e[4] = 0x0c;
        e[8..12].copy_from_slice(&start.to_le_bytes());
        e[12..16].copy_from_slice(&count.to_le_bytes());
    }
    mbr[510..].copy_from_slice(&[0x55, 0xaa]);
    File::options().write(true).open(file).unwrap().write_all_at(&mbr, 0).unwrap();
}
