//! Undoes an interrupted run from its journal.

use super::open::block_id;
use super::undo::{Restored, Saved, State};
use super::{Consent, DeviceError, Limits, OpenOptions, Result, open};
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
    pub state: State,
    /// False where a damaged journal was kept.
    pub deleted: bool,
}

/// Puts back what a journal holds, verifies it by reading, and deletes the journal (unless it is damaged). The target must be
/// the one the journal names: same serial number, size and place on the disk; without a serial number also the same path (or
/// `target`). What the run did not overwrite must still be the same as when it began.
///
/// # Errors
/// `Refused` where the target is another one, is in use, or the run is still going; `Journal` where the journal is unreadable.
pub fn recover(journal: &Path, options: &RecoverOptions) -> Result<Recovered> {
    let saved = Saved::open(journal)?;
    if !saved.lock() {
        return Err(DeviceError::Refused(format!("{} belongs to a run that is still going; wait for its end", journal.display())));
    }
    let want = &saved.header.id;
    let target = options.target.clone().unwrap_or_else(|| whereabouts(&saved, &options.open));
    let mut opened = open(&target, &options.open)?;
    let mut named = opened.id().clone();
    if options.target.is_some() && named.serial.is_none() {
        named.path.clone_from(&want.path);
    }
    if !named.same_target(want) {
        let serial = want.serial.as_deref().unwrap_or("none");
        return Err(DeviceError::Refused(format!(
            "the journal is of {} ({} bytes, serial number {serial}) and {target} is another one; say where it is now with --target",
            want.path, want.size
        )));
    }
    if !options.force && !saved.matches(opened.look())? {
        return Err(DeviceError::Refused(format!(
            "{target} has been changed since the interrupted run, or is another card of the same size; if neither matters: --force"
        )));
    }
    let consent = Consent::renewed(opened.id());
    let restored = opened.writable(&consent, &Limits::default())?.undo(&saved)?;
    let state = saved.state;
    let deleted = !matches!(state, State::Damaged(_));
    if deleted {
        saved.delete()?;
    }
    Ok(Recovered { target, restored, state, deleted })
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
