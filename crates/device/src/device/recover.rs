//! Undoes an interrupted run from its journal.

use super::open::block_id;
use super::undo::{PutBack, Restored, Saved, State, discarding};
use super::{Consent, DeviceError, Limits, OpenOptions, Opened, Result, open};
use crate::host::facts::TargetKind;
use std::path::Path;

/// How to undo.
#[derive(Clone, Debug, Default)]
pub struct RecoverOptions {
    /// Where the target is now, when it has another name than before.
    pub target: Option<String>,
    /// Puts the old content back although the rest of the target has changed since.
    pub force: bool,
    pub open: OpenOptions,
}

/// What [`recover`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Where the content was put back.
    pub target: String,
    pub restored: Restored,
    /// All of it, with what is not back.
    pub put_back: PutBack,
    pub state: State,
    /// False where a journal was kept: a damaged or cut one, or one whose content is not all back.
    pub deleted: bool,
}

/// What [`discard`] gave up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discarded {
    /// The target that the journal was of.
    pub target: String,
    /// First byte and length of the ranges whose old content was in it.
    pub ranges: Vec<(u64, u64)>,
}

/// Deletes a journal without putting anything back: for a card that does not keep what is written to it, or that is gone. The target
/// need not be there.
///
/// # Errors
/// `Refused` where `consent` does not name the target of the journal, or its run is still going; `Journal` where it is unreadable.
pub fn discard(journal: &Path, consent: Option<&str>) -> Result<Discarded> {
    let saved = Saved::open(journal)?;
    let id = saved.header.id.clone();
    if !saved.lock() {
        return Err(DeviceError::Refused(format!("{} belongs to a run that is still going; wait for its end", journal.display())));
    }
    if consent.map(str::trim) != Some(id.consent_id().as_str()) {
        return Err(DeviceError::Refused(format!(
            "the journal holds {} of what was on {}, and that will be lost; to give it up name the card by its {}: {}",
            crate::units::Bytes(saved.bytes()),
            id.path,
            id.named_by(),
            id.consent_option()
        )));
    }
    let ranges = saved.ranges();
    saved.delete()?;
    Ok(Discarded { target: id.path, ranges })
}

/// Puts back what a journal holds, verifies it by reading, and deletes the journal (unless some of it is gone). The target must be
/// the one the journal names: same serial number, size and place on the disk; without a serial number also the same path (or
/// `target`). What the run did not overwrite must still be the same as when it began.
///
/// # Errors
/// `Refused` where the target is another one, is in use, or the run is still going; `Journal` where the journal is unreadable.
pub fn recover(journal: &Path, options: &RecoverOptions) -> Result<Recovered> {
    let saved = Saved::open(journal)?;
    let (target, opened) = target_of(journal, &saved, options)?;
    let consent = Consent::renewed(opened.id());
    let put_back = opened.writing(&consent, &Limits::default())?.undo(&saved)?;
    let state = saved.state;
    let deleted = !state.lacks() && put_back.lost.is_empty();
    if deleted {
        saved.delete()?;
    }
    Ok(Recovered { target, restored: put_back.restored, put_back, state, deleted })
}

/// Where [`recover`] would write; nothing is written.
///
/// # Errors
/// Those of `recover` before it writes.
pub fn would_recover(journal: &Path, options: &RecoverOptions) -> Result<String> {
    Ok(target_of(journal, &Saved::open(journal)?, options)?.0)
}

/// The target of a journal, opened and held against it.
fn target_of(journal: &Path, saved: &Saved, options: &RecoverOptions) -> Result<(String, Opened)> {
    if !saved.lock() {
        return Err(DeviceError::Refused(format!("{} belongs to a run that is still going; wait for its end", journal.display())));
    }
    let want = &saved.header.id;
    let target = options.target.clone().unwrap_or_else(|| whereabouts(saved, &options.open));
    let mut opened = open(&target, &options.open)?;
    let mut named = opened.id().clone();
    if options.target.is_some() && named.serial.is_none() {
        named.path.clone_from(&want.path);
    }
    if !named.same_target(want) {
        let serial = want.serial.as_deref().unwrap_or("none");
        let attach = options.target.is_some() && named.kind == TargetKind::Image && want.kind != TargetKind::Image;
        let todo = match options.target {
            None => "say where it is now with --target".to_string(),
            Some(_) if attach => {
                format!(
                    "a device over this file is made by: losetup --find --show {}; name that with --target",
                    crate::shell::word(&target)
                )
            }
            Some(_) => "name the target that it is of".to_string(),
        };
        return Err(DeviceError::Refused(format!(
            "the journal is of {} ({} bytes, serial number {serial}) and {target} is another one; {todo}",
            want.path, want.size
        )));
    }
    if !options.force && !saved.matches(opened.look())? {
        return Err(DeviceError::Refused(format!(
            "{target} has been changed since that run, or is another card of the same size; if it is another one, connect that of the run, or give \
             its content up: {}; if it is the same one and what changed may be overwritten: --force",
            discarding(journal, want)
        )));
    }
    Ok((target, opened))
}

/// Where the target of a journal is now: a disk with a serial number may have come back under another name.
fn whereabouts(saved: &Saved, options: &OpenOptions) -> String {
    let want = &saved.header.id;
    if want.serial.is_none() || !matches!(want.kind, TargetKind::Disk | TargetKind::Partition) {
        return want.path.clone();
    }
    let sys = &options.sys;
    sys.disks()
        .into_iter()
        .flat_map(|d| [sys.partitions(&d), vec![d]].concat())
        .map(|n| (sys.dev.join(n.name.replace('!', "/")).display().to_string(), n))
        .find(|(path, n)| block_id(n, path).same_target(want))
        .map_or_else(|| want.path.clone(), |(path, _)| path)
}

#[cfg(test)]
mod tests {
    use super::super::fake::Fake;
    use super::super::undo::Journal;
    use super::super::{TargetId, undo};
    use super::*;
    use crate::host::sysfs::Sys;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    fn id(serial: Option<&str>) -> TargetId {
        TargetId { path: "/dev/sdx".into(), kind: TargetKind::Disk, serial: serial.map(Into::into), model: None, size: 1 << 20, offset: 0 }
    }

    /// A journal with one record, closed or still open.
    fn journal(dir: &Path, id: &TargetId) -> (PathBuf, Journal) {
        let mut dev = Fake::new(id.size);
        let mut j = Journal::begin(dir, id, &mut dev).unwrap();
        j.save(&[(4096, 4096)], &mut dev).unwrap();
        (j.path().to_path_buf(), j)
    }

    #[test]
    fn a_disk_with_a_serial_number_is_found_under_its_new_name() {
        let t = tempfile::tempdir().unwrap();
        let sys = Sys { sys: t.path().join("sys"), proc: t.path().join("proc"), dev: t.path().join("dev") };
        fs::create_dir_all(sys.sys.join("block")).unwrap();
        for (name, serial, sectors) in [("sda", "S1", 2048), ("sdb", "S2", 4096), ("sdc", "S2", 2048)] {
            let dir = sys.sys.join("devices").join(name);
            fs::create_dir_all(dir.join("device")).unwrap();
            fs::write(dir.join("dev"), format!("8:{sectors}\n")).unwrap();
            fs::write(dir.join("size"), format!("{sectors}\n")).unwrap();
            fs::write(dir.join("device/serial"), format!("{serial}\n")).unwrap();
            symlink(&dir, sys.sys.join("block").join(name)).unwrap();
        }
        let options = OpenOptions { sys: sys.clone(), ..OpenOptions::default() };
        let place = |serial| {
            let dir = tempfile::tempdir_in(t.path()).unwrap();
            let (path, j) = journal(dir.path(), &id(serial));
            drop(j);
            whereabouts(&Saved::open(&path).unwrap(), &options)
        };
        assert_eq!(place(Some("S2")), sys.dev.join("sdc").display().to_string(), "serial number and size must fit");
        assert_eq!(place(Some("S3")), "/dev/sdx");
        assert_eq!(place(None), "/dev/sdx", "without a serial number only the path names it");
    }

    #[test]
    fn a_journal_is_given_up_by_name_only() {
        for serial in [None, Some("S9")] {
            let dir = tempfile::tempdir().unwrap();
            let (path, j) = journal(dir.path(), &id(serial));
            let refused = |given| match discard(&path, given).unwrap_err() {
                DeviceError::Refused(why) => why,
                other => panic!("{other}"),
            };
            let name = id(serial).consent_id();
            assert!(refused(Some(&name)).contains("still going"));
            drop(j);
            for wrong in [None, Some(""), Some("1048577"), Some("yes"), Some("S1")] {
                let why = refused(wrong);
                assert!(why.contains("4 KiB of what was on /dev/sdx") && why.ends_with(&format!("--consent {name}")), "{why}");
            }
            assert!(undo::pending(dir.path()) == std::slice::from_ref(&path));
            assert_eq!(discard(&path, Some(&name)).unwrap(), Discarded { target: "/dev/sdx".into(), ranges: vec![(4096, 4096)] });
            assert_eq!(undo::pending(dir.path()).len(), 0);
            assert!(matches!(discard(&path, Some(&name)), Err(DeviceError::Journal { .. })));
        }
    }

    #[test]
    fn a_run_that_is_going_is_not_undone_behind_its_back() {
        let dir = tempfile::tempdir().unwrap();
        let (path, j) = journal(dir.path(), &id(None));
        let e = recover(&path, &RecoverOptions::default()).unwrap_err();
        assert!(matches!(&e, DeviceError::Refused(t) if t.contains("still going")), "{e}");
        drop(j);
        let e = recover(&path, &RecoverOptions::default()).unwrap_err();
        assert!(matches!(e, DeviceError::Open { .. }), "{e}");
        assert_eq!(undo::pending(dir.path()), [path], "a journal that could not be undone stays");
    }
}
