//! The old content put back at the end of a run that wrote, and what is said where not all of it comes back.

use crate::device::undo::{PutBack, give_up};
use crate::device::{DeviceError, Guard, TargetId};
use anyhow::{Context, bail};
use std::io::IsTerminal;
use std::path::PathBuf;

/// Ranges printed that the undo could not put back.
const LOST: usize = 10;

/// What came of putting the old content back; [`Back::tell`] says it once the results are out.
#[must_use]
pub struct Back {
    journal: Option<PathBuf>,
    id: TargetId,
    done: Result<Option<PutBack>, DeviceError>,
    /// Why the target is of no use any more, if so.
    gone: Option<String>,
    garbled: bool,
    unreadable: Vec<[u64; 2]>,
    /// What could not be kept was not overwritten, and the run is cut there.
    unkept: Option<DeviceError>,
}

impl Back {
    /// Says that the old content is put back, which may take a while: to somebody who watches, or who ended the run.
    pub fn begins(undo: bool, interrupted: bool, quiet: bool) {
        if undo && (interrupted || !quiet && std::io::stderr().is_terminal()) {
            tell!("{}putting the old content back ...", if interrupted { "interrupted; " } else { "" });
        }
    }

    /// Puts back what the journal of this guard holds; a guard without one has nothing to put back.
    pub fn of(guard: &mut Guard) -> Back {
        let (journal, id, unkept) = (guard.journal(), guard.id().clone(), guard.unkept());
        let done = guard.try_restore();
        let failures = guard.failures();
        let (gone, garbled) = (failures.gone().map(Into::into), failures.garbled());
        let unreadable = failures.unreadable().iter().map(|r| [r.start, r.end]).collect();
        Back { journal, id, done, unkept, gone, garbled, unreadable }
    }

    /// The journal could not be written: what was measured until then says nothing of the card.
    pub fn unkept(&self) -> bool {
        self.unkept.is_some()
    }

    fn put_back(&self) -> Option<&PutBack> {
        self.done.as_ref().ok()?.as_ref()
    }

    fn loss(&self) -> Vec<String> {
        self.put_back().map(|p| p.loss(LOST)).unwrap_or_default()
    }

    /// All is as it was before, and the target is still there.
    pub fn whole(&self) -> bool {
        self.done.is_ok() && self.loss().is_empty() && self.gone.is_none()
    }

    /// Why the target is of no use any more, if so.
    pub fn gone(&self) -> Option<&str> {
        self.gone.as_deref()
    }

    /// Whether it is of no use because what it said is no answer.
    pub fn garbled(&self) -> bool {
        self.garbled
    }

    /// First and last byte (exclusive) of each place that could not be read while the target was there.
    pub fn unreadable(&self) -> &[[u64; 2]] {
        &self.unreadable
    }

    /// The same in words; none where all was read.
    pub fn reads_failed(&self) -> Option<String> {
        let [first, _] = self.unreadable.first()?;
        let n = self.unreadable.len();
        let places = if n == 1 { "1 place".into() } else { format!("{n} places") };
        Some(format!(
            "reads failed at {places}, the first at byte {first}, and what needs them was left out; try another reader, and if it stays so copy off what can be read and replace the card"
        ))
    }

    /// For the report: that the card is a counterfeit, that content is lost.
    pub fn warnings(&self) -> Vec<String> {
        let lost = self.loss().first().map(|l| l.trim_end_matches(':').to_string());
        self.put_back().and_then(|p| p.restored.counterfeit()).into_iter().chain(lost).collect()
    }

    /// Says on standard error which ranges are lost and what can be done; true where all is back.
    ///
    /// # Errors
    /// Nothing could be put back, and the journal is kept; or it could not be written; or the target went away, which ends every command so.
    pub fn tell(self) -> anyhow::Result<bool> {
        let loss = self.loss();
        loss.iter().for_each(|l| tell!("nandscope: {l}"));
        if let (false, Some(journal)) = (loss.is_empty(), &self.journal) {
            tell!("nandscope: {}", give_up(journal, &self.id));
        }
        if let (Some(e), true) = (&self.unkept, self.done.is_err()) {
            tell!("nandscope: {e}");
        }
        self.done.context("the old content was not put back; run `nandscope undo`")?;
        if let Some(why) = self.gone {
            bail!("{why}; the findings so far stand");
        }
        if let Some(e) = self.unkept {
            bail!("{e}. Nothing was written without its old content being kept; make room there, or set XDG_STATE_HOME to another disk");
        }
        Ok(loss.is_empty())
    }
}
