//! The experiment on a mounted filesystem: as it is, aged, defragmented, and blank where the card may be formatted. Only the
//! files of the ageing and of the benchmark are touched; to be formatted, the card is emptied first and filled again in the
//! end (`offload.rs`).
//!
//! Defragmented by `e4defrag` on ext4 where that is installed; else by copying the aged files off, comparing the copies,
//! removing the files, copying them back one after the other, and comparing again.

use super::age::{self, DIRECTORY};
use super::bench::{self, Measured};
use super::experiment::{Condition, Lab, State, Tell};
use super::fragment;
use super::offload::{Away, Card, same};
use crate::volume::{Directory, Result, Volume, VolumeError};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// Where the files of the user go while the card is blank, and what allows it.
pub struct Blank {
    pub card: Card,
    pub spare: Option<PathBuf>,
}

/// Runs the experiment in a directory. The files of the ageing are removed at the end.
///
/// # Errors
/// The filesystem failed; what was measured before is in `lab` all the same.
pub fn run(volume: &mut Directory, blank: Option<&Blank>, lab: &mut Lab, stop: &AtomicBool, tell: Tell) -> Result<()> {
    lab.filesystem = volume.filesystem();
    let settings = lab.settings.clone();
    let mut aged = false;
    let mut away: Option<Away> = None;
    let mut workload = settings.workload.clone();
    // An ageing of hours that was there before is not this run's to remove.
    let before = age::state(volume)?;
    let asked = |wanted: &[State]| settings.states.iter().any(|s| wanted.contains(s));
    if let Some(there) = &before {
        let another = !there.plan.alike(&settings.plan) && asked(&[State::Fragmented, State::Defragmented]);
        if another || asked(&[State::Blank]) {
            let why = format!(
                "{DIRECTORY} holds an ageing{}; remove that first (nandscope age DIR --remove)",
                if another { " by another plan" } else { "" }
            );
            return Err(VolumeError::Unsupported(why));
        }
        lab.notes.push(format!("{DIRECTORY} was there before, and is left there"));
    }
    let mut all = || -> Result<()> {
        for &state in &settings.states {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let began = volume.now();
            if matches!(state, State::Blank) {
                let Some(b) = blank else { return Err(VolumeError::Unsupported("a blank state without consent to format".into())) };
                tell("copying off", 0.0);
                age::remove(volume)?;
                aged = false;
                let off = match away.take() {
                    Some(off) => off,
                    None => b.card.copy_off(b.spare.as_deref())?,
                };
                tell("formatting", 0.5);
                lab.notes.extend(b.card.empty(&off, settings.erase)?);
                away = Some(off);
            }
            if !aged && matches!(state, State::Fragmented | State::Defragmented) {
                let done = age::age(volume, &settings.plan, stop, &mut |p| {
                    tell(&format!("ageing, pass {} of {}", p.passes + 1, p.of), f64::from(p.passes) / f64::from(p.of.max(1)));
                })?;
                if done.stopped {
                    return Ok(());
                }
                aged = true;
            }
            if state == State::Defragmented {
                lab.notes.push(defragment_aged(volume)?);
            }
            let prepared = (volume.now() - began).secs();
            let (fragmentation, map) = match fragment::of_files(volume, settings.au, tell) {
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
            condition.measured = bench::measure(volume, &workload, stop, &mut |x| tell(&format!("measuring, {state}"), x))?;
            workload.folder = condition.measured.folder;
            if !condition.measured.samples.is_empty() || !stop.load(Ordering::Relaxed) {
                lab.conditions.push(condition);
            }
        }
        Ok(())
    };
    let done = all();
    // Cleaning up goes on after an error, which is the one to report.
    let mut cleared = bench::clear(volume).and_then(|_| if before.is_some() { Ok(0) } else { age::remove(volume) }).map(drop);
    if let (Some(away), Some(b)) = (&away, blank) {
        tell("copying back", 0.9);
        let back = b.card.copy_back(away);
        // Files that are not back are the worse news.
        if back.is_err() || cleared.is_ok() {
            cleared = back;
        }
        cleared?;
        return done;
    }
    done?;
    cleared
}

/// Defragments all files of a mounted filesystem: by `e4defrag` on ext4, else the card is emptied, formatted and filled again,
/// which `blank` must allow. Says how.
///
/// # Errors
/// Nothing was changed, or the text says where the files are.
pub fn defragment(volume: &mut Directory, blank: Option<&Blank>, tell: Tell) -> Result<String> {
    if let Some(done) = e4defrag(volume, volume.root(), tell) {
        return done;
    }
    let Some(b) = blank else {
        return Err(VolumeError::Unsupported(format!("{} has no defragmenter here", volume.filesystem())));
    };
    tell("copying off", 0.0);
    let away = b.card.copy_off(b.spare.as_deref())?;
    tell("formatting", 0.5);
    b.card.empty(&away, false)?;
    tell("copying back", 0.5);
    b.card.copy_back(&away)?;
    volume.flush()?;
    Ok("copied off, formatted, copied back and compared".into())
}

/// Runs `e4defrag` on ext4; none where it is another filesystem or the program is not there.
fn e4defrag(volume: &Directory, what: &Path, tell: Tell) -> Option<Result<String>> {
    if volume.filesystem() != "ext4" {
        return None;
    }
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("e4defrag");
    let mut child = command.arg(what).env("PATH", path).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().ok()?;
    let (out, mut err) = (child.stdout.take()?, child.stderr.take()?);
    let said = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = err.read_to_string(&mut text);
        text
    });
    let (send, lines) = mpsc::channel();
    std::thread::spawn(move || {
        BufReader::new(out).split(b'\n').map_while(io::Result::ok).all(|l| send.send(String::from_utf8_lossy(&l).into_owned()).is_ok())
    });
    // It fails where one of many files fails, such as one without extents; those stay as they are.
    let (mut failed, mut share) = (0, 0.0);
    loop {
        tell("defragmenting", share);
        match lines.recv_timeout(Duration::from_millis(500)) {
            Ok(line) => {
                failed += usize::from(line.contains("[ NG ]"));
                share = file_of(&line).unwrap_or(share);
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    let (status, said) = (child.wait().ok()?, said.join().unwrap_or_default());
    Some(match (status.success(), failed) {
        (true, 0) => Ok("defragmented by e4defrag".into()),
        (_, 0) => Err(VolumeError::Unsupported(format!("e4defrag: {}", said.trim()))),
        (_, n) => Ok(format!("defragmented by e4defrag, which left {n} files as they were")),
    })
}

/// The share that is done where it says "[3/40]/mnt/file: 100%".
fn file_of(line: &str) -> Option<f64> {
    let (_, rest) = line.rsplit_once("\u{1b}[K").unwrap_or(("", line));
    let (n, of) = rest.trim_start().strip_prefix('[')?.split_once(']')?.0.split_once('/')?;
    let (n, of) = (n.trim().parse::<f64>().ok()?, of.trim().parse::<f64>().ok()?);
    (n <= of).then_some(n / of)
}

fn failed(op: &'static str, path: &Path, e: io::Error) -> VolumeError {
    VolumeError::Io { op, path: path.display().to_string(), source: e }
}

/// Puts the files of the ageing in one piece each, as far as the filesystem allows. Says how.
fn defragment_aged(volume: &mut Directory) -> Result<String> {
    let dir = volume.root().join(DIRECTORY);
    if let Some(Ok(done)) = e4defrag(volume, &dir, &mut |_, _| {}) {
        return Ok(done);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_e4defrag_says_is_a_share() {
        assert_eq!(file_of("\u{1b}[79;0H\u{1b}[K[3/40]/mnt/a b:\t100%\t[ OK ]"), Some(0.075));
        assert_eq!(file_of("[1/2]\"/mnt/x\""), Some(0.5));
        assert_eq!(file_of("\tSuccess:\t\t\t[ 1/2 ]"), None);
    }

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
