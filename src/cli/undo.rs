//! `nandscope undo`: puts back what a run overwrote and did not put back itself.

use super::args::Written;
use super::told;
use crate::device::undo::{Saved, State, clear, clear_empty, default_dir, give_up, pending, waiting_on};
use crate::device::{DeviceError, Discarded, RecoverOptions, Recovered, discard, recover, would_recover};
use crate::host::safety::numbers;
use crate::host::sysfs::Sys;
use crate::shell::word;
use crate::units::Bytes;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Put back what an interrupted run has overwritten
///
/// Exit codes: 0 all is back or nothing to do, 1 something is not back, 4 the target was refused.
#[derive(clap::Args, Debug)]
pub struct UndoArgs {
    /// The undo journal; without it, all that are found
    pub journal: Option<PathBuf>,
    /// Only list the journals
    #[arg(long)]
    pub list: bool,
    /// Print what would be put back, or given up, and end
    #[arg(long, conflicts_with = "list")]
    pub dry_run: bool,
    /// Where the target is now, if it has another name than before
    #[arg(long, value_name = "TARGET", requires = "journal")]
    pub target: Option<String>,
    /// Put back although other parts of the target have changed since
    #[arg(long, requires = "journal")]
    pub force: bool,
    /// Delete the journal and give its content up, as for a card that does not keep what is written to it
    #[arg(long, requires = "journal", conflicts_with_all = ["list", "target", "force"])]
    pub discard: bool,
    /// Names the card whose content is given up: its serial number, or its size in bytes where it has none
    #[arg(long, value_name = "ID", requires = "discard")]
    pub consent: Option<String>,
    /// Directory of the journals [default: $XDG_STATE_HOME/nandscope, else ~/.local/state/nandscope]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    #[command(flatten)]
    pub out: Written,
}

/// What became of one journal: for programs, and the code to end with.
struct Outcome {
    value: serde_json::Value,
    code: u8,
}

impl Outcome {
    /// `state`: "kept" (only listed), "put_back", "given_up", "not_back".
    fn of(path: &Path, target: &str, state: &str, bytes: u64, ranges: usize) -> Outcome {
        let value = serde_json::json!({ "journal": path.display().to_string(), "target": target, "state": state, "bytes": bytes, "ranges": ranges });
        Outcome { value, code: u8::from(state == "not_back") }
    }
}

/// Lists or undoes. Exit code 0: all done or nothing to do; 1: a journal failed or was damaged; 4: a target was refused.
///
/// # Errors
/// Never for a single journal among several: those are told and the rest is still done.
pub fn run(args: UndoArgs) -> anyhow::Result<ExitCode> {
    let dir = args.dir.clone().unwrap_or_else(default_dir);
    let journals = args.journal.clone().map_or_else(|| pending(&dir), |j| vec![j]);
    // What is said goes where no form for programs is.
    let alone = args.out.alone();
    if journals.is_empty() && !alone {
        say!("nothing to undo: no journal in {}", dir.display());
    }
    let options = RecoverOptions { target: args.target.clone(), force: args.force, ..RecoverOptions::default() };
    let mut worst = 0;
    let mut all = vec![];
    for path in &journals {
        let mut say = |line: String| {
            if !alone {
                say!("{line}");
            }
        };
        let done = match (args.list, args.discard) {
            (true, _) => show(path, &mut say),
            _ if args.dry_run => would(path, (!args.discard).then_some(&options), &mut say),
            // Any other empty file is no journal.
            _ if args.journal.is_none() && clear_empty(path).unwrap_or(false) => Ok(cleared(path, &mut say)),
            (_, true) => give(path, args.consent.as_deref(), &mut say),
            _ => undo(path, &options, &mut say),
        };
        let done = done.unwrap_or_else(|e| {
            tell!("nandscope: {}", told(&e));
            let code = match e.downcast_ref() {
                Some(DeviceError::Refused(_)) => 4,
                _ => 1,
            };
            let mut failed = Outcome::of(path, "", "not_back", 0, 0);
            (failed.value["why"], failed.code) = (told(&e).into(), code);
            failed
        });
        worst = worst.max(done.code);
        all.push(done.value);
    }
    args.out.put(&serde_json::json!({ "schema": "nandscope-undo/1", "journals": all }))?;
    Ok(ExitCode::from(worst))
}

/// Says on standard error that old content waits, to somebody who only reads.
pub fn remind(target: &str, journal: Option<PathBuf>) {
    if let Some(path) = journal {
        tell!("{target}: old content waits to be put back: nandscope undo {}", word(&path.display().to_string()));
    }
}

/// # Errors
/// `Refused` where old content of the disk below a directory waits to be put back, which would undo what is written there now.
pub fn none_waits_below(directory: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let dev = std::fs::metadata(directory)?.dev();
    match waiting_on(&Sys::default(), numbers(dev)) {
        None => Ok(()),
        Some(path) => Err(DeviceError::Refused(format!(
            "old content of the disk below {} waits to be put back; unmount it, and do that first: nandscope undo {}",
            directory.display(),
            word(&path.display().to_string())
        ))
        .into()),
    }
}

/// Says a line to people.
type Say<'a> = &'a mut dyn FnMut(String);

fn show(path: &Path, say: Say) -> anyhow::Result<Outcome> {
    let saved = Saved::open(path)?;
    let id = &saved.header.id;
    let note = match saved.state {
        _ if !saved.lock() => ", its run is still going",
        State::Damaged(_) => ", damaged",
        State::Cut { .. } => ", its end is missing",
        State::Whole | State::Torn | State::Uncounted => "",
    };
    say(format!("{}: {} of {} ({} bytes){note}", path.display(), Bytes(saved.bytes()), id.path, id.size));
    Ok(Outcome::of(path, &id.path, "kept", saved.bytes(), saved.ranges().len()))
}

/// What would be done with a journal.
fn would(path: &Path, put_back: Option<&RecoverOptions>, say: Say) -> anyhow::Result<Outcome> {
    let kept = show(path, say)?;
    let ranges = Saved::open(path)?.ranges();
    // A journal that holds nothing is deleted, wherever its target is.
    let what = match put_back {
        Some(options) => {
            if !ranges.is_empty() {
                would_recover(path, options).with_context(|| "it would not be undone".to_string())?;
            }
            "would write, and read back"
        }
        None => "would give up what these held",
    };
    say(format!("{what}:"));
    listed(&ranges, say);
    say("nothing was written; without --dry-run it is".into());
    Ok(kept)
}

fn listed(ranges: &[(u64, u64)], say: Say) {
    for (at, len) in ranges.iter().take(MOST) {
        say(format!("  bytes {at} to {} ({})", at + len - 1, Bytes(*len)));
    }
    if ranges.len() > MOST {
        say(format!("  and {} more", ranges.len() - MOST));
    }
}

/// Ranges printed of what is not back.
const MOST: usize = 20;

/// A journal under which nothing was written is gone, wherever its target is.
fn cleared(path: &Path, say: Say) -> Outcome {
    say(format!("{}: nothing was written under this journal; it is deleted", path.display()));
    Outcome::of(path, "", "put_back", 0, 0)
}

fn undo(path: &Path, options: &RecoverOptions, say: Say) -> anyhow::Result<Outcome> {
    if clear(path)? {
        return Ok(cleared(path, say));
    }
    let id = Saved::open(path).map(|s| s.header.id.clone());
    let recovered = match (recover(path, options), &id) {
        // A card that is gone for good must not stand in the way of the next one in its place.
        (Err(e @ (DeviceError::Open { .. } | DeviceError::Gone { .. })), Ok(id)) => bail!("not undone: {e}; {}", give_up(path, id)),
        (recovered, _) => recovered.context("not undone")?,
    };
    let Recovered { target, restored, put_back, state, deleted } = recovered;
    let outcome = |state: &str| Outcome::of(path, &target, state, restored.bytes, restored.ranges as usize);
    say(format!("{target}: {} in {} ranges put back and verified", Bytes(restored.bytes), restored.ranges));
    if let Some(why) = restored.counterfeit() {
        say(why);
    }
    for (i, line) in put_back.loss(MOST).iter().enumerate() {
        tell!("{}{line}", if i == 0 { "nandscope: " } else { "" });
    }
    if let (false, Ok(id)) = (put_back.lost.is_empty(), id) {
        tell!("{}", give_up(path, &id));
        return Ok(outcome("not_back"));
    }
    let Some(why) = state.trouble() else { return Ok(outcome("put_back")) };
    tell!("nandscope: {} {why}", path.display());
    let mut done = outcome(if deleted { "put_back" } else { "not_back" });
    done.value["why"] = format!("the journal {why}").into();
    Ok(done)
}

fn give(path: &Path, consent: Option<&str>, say: Say) -> anyhow::Result<Outcome> {
    if clear(path)? {
        return Ok(cleared(path, say));
    }
    let Discarded { target, ranges } = discard(path, consent).with_context(|| "not discarded".to_string())?;
    say(format!("{target}: the journal is deleted; what these ranges held is lost:"));
    listed(&ranges, say);
    Ok(Outcome::of(path, &target, "given_up", ranges.iter().map(|r| r.1).sum(), ranges.len()))
}
