//! The experiment on a mounted filesystem: as it is, aged, and defragmented. It cannot be formatted from here, so there is no
//! blank state; only the files of the ageing and of the benchmark are touched.
//!
//! Defragmented by `e4defrag` on ext4 where that is installed; else by copying the aged files off, comparing the copies,
//! removing the files, copying them back one after the other, and comparing again.

use super::age::{self, DIRECTORY};
use super::bench::{self, Measured};
use super::experiment::{Condition, Lab, State, Tell};
use super::fragment;
use crate::units::MIB;
use crate::volume::{Directory, Result, Volume, VolumeError};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs the experiment in a directory. The files of the ageing are removed at the end.
///
/// # Errors
/// The filesystem failed; what was measured before is in `lab` all the same.
pub fn run(volume: &mut Directory, lab: &mut Lab, stop: &AtomicBool, tell: Tell) -> Result<()> {
    lab.filesystem = volume.filesystem();
    let settings = lab.settings.clone();
    let mut aged = false;
    let mut all = || -> Result<()> {
        for &state in &settings.states {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let began = volume.now();
            if !aged && matches!(state, State::Fragmented | State::Defragmented) {
                let done = age::age(volume, &settings.plan, stop, &mut |p| {
                    tell(&format!("ageing, pass {} of {}", p.passes + 1, p.of), f64::from(p.passes) / f64::from(p.of.max(1)));
                })?;
                if done.stopped {
                    return Ok(());
                }
                aged = true;
            }
            match state {
                State::Defragmented => lab.notes.push(defragment(volume)?),
                State::Blank => return Err(VolumeError::Unsupported("a blank state of a mounted filesystem".into())),
                _ => {}
            }
            let prepared = (volume.now() - began).secs();
            let (fragmentation, map) = match fragment::of_files(volume, settings.au) {
                Ok(both) => both,
                Err(VolumeError::Unsupported(why)) => {
                    lab.notes.push(why);
                    Default::default()
                }
                Err(e) => return Err(e),
            };
            let mut condition = Condition {
                state,
                fragmentation,
                map,
                space: volume.space()?,
                defragmented: None,
                measured: Measured::default(),
                prepared,
            };
            condition.measured = bench::measure(volume, &settings.workload, stop, &mut |x| tell(&format!("measuring, {state}"), x))?;
            lab.conditions.push(condition);
        }
        Ok(())
    };
    let done = all();
    // Cleaning up goes on after an error, which is the one to report.
    let cleared = bench::clear(volume).and_then(|_| age::remove(volume));
    done?;
    cleared.map(drop)
}

fn failed(op: &'static str, path: &Path, e: io::Error) -> VolumeError {
    VolumeError::Io { op, path: path.display().to_string(), source: e }
}

/// Puts the files of the ageing in one piece each, as far as the filesystem allows. Says how.
fn defragment(volume: &mut Directory) -> Result<String> {
    let dir = volume.root().join(DIRECTORY);
    if volume.filesystem() == "ext4" {
        let run = Command::new("e4defrag").arg(&dir).output();
        if run.as_ref().is_ok_and(|o| o.status.success()) {
            return Ok("defragmented by e4defrag".into());
        }
    }
    let spare = tempdir()?;
    let done = off_and_back(&dir, &spare);
    // The copies go only where the files are back.
    if done.is_ok() {
        fs::remove_dir_all(&spare).map_err(|e| failed("remove", &spare, e))?;
    }
    done.map_err(|e| VolumeError::Unsupported(format!("{e}; the copies of the files are in {}", spare.display())))?;
    volume.flush()?;
    Ok("defragmented by copying the files off and back".into())
}

fn tempdir() -> Result<PathBuf> {
    let path = std::env::temp_dir().join(format!("nandscope-{}", std::process::id()));
    fs::create_dir(&path).map_err(|e| failed("make directory", &path, e))?;
    Ok(path)
}

/// Copies all files of `dir` to `spare`, compares, removes them, copies them back, compares.
///
/// # Errors
/// At the first difference or failure; nothing is removed before all copies were compared.
fn off_and_back(dir: &Path, spare: &Path) -> Result<()> {
    let mut names = vec![];
    for e in fs::read_dir(dir).map_err(|e| failed("list", dir, e))? {
        let e = e.map_err(|e| failed("list", dir, e))?;
        if e.file_type().is_ok_and(|t| t.is_file()) {
            names.push(e.file_name());
        }
    }
    names.sort();
    for n in &names {
        copy(&dir.join(n), &spare.join(n))?;
    }
    for n in &names {
        same(&dir.join(n), &spare.join(n))?;
    }
    for n in &names {
        let path = dir.join(n);
        fs::remove_file(&path).map_err(|e| failed("remove", &path, e))?;
    }
    for n in &names {
        copy(&spare.join(n), &dir.join(n))?;
        same(&spare.join(n), &dir.join(n))?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).map_err(|e| failed("copy", to, e))?;
    File::open(to).and_then(|f| f.sync_all()).map_err(|e| failed("sync", to, e))
}

fn same(a: &Path, b: &Path) -> Result<()> {
    let open = |p: &Path| File::open(p).map_err(|e| failed("read", p, e));
    let (mut x, mut y) = (open(a)?, open(b)?);
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

    #[test]
    fn files_go_off_and_come_back() {
        let (dir, spare) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for i in 0..5u8 {
            fs::write(dir.path().join(format!("f{i}")), vec![i; 3000 * usize::from(i)]).unwrap();
        }
        off_and_back(dir.path(), spare.path()).unwrap();
        for i in 0..5u8 {
            assert_eq!(fs::read(dir.path().join(format!("f{i}"))).unwrap(), vec![i; 3000 * usize::from(i)]);
        }
    }

    #[test]
    fn nothing_is_removed_when_the_copies_cannot_be_made() {
        let (dir, spare) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(dir.path().join("a"), b"a").unwrap();
        fs::write(dir.path().join("b"), b"b").unwrap();
        // A directory of that name is in the way.
        fs::create_dir(spare.path().join("b")).unwrap();
        assert!(off_and_back(dir.path(), spare.path()).is_err());
        assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"a");
        assert_eq!(fs::read(dir.path().join("b")).unwrap(), b"b");
    }
}
