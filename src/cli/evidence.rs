//! What a saved report says of the card at hand, for commands that build on it.

use crate::finding::Findings;
use crate::report::any::Saved;
use crate::samples::Run;
use anyhow::bail;
use std::path::Path;

/// Findings of a report, and what they are about.
pub struct Evidence {
    pub name: String,
    pub findings: Findings,
    /// Samples; none in a report made from pasted logs.
    pub runs: Vec<Run>,
    /// Bytes of the target it is about, and where that begins on its disk.
    pub target: Option<(u64, u64)>,
}

/// Reads a report of `probe`, or what `infer` made of pasted logs.
///
/// # Errors
/// It cannot be read, is cut off, or is no report.
pub fn load(path: &Path) -> anyhow::Result<Evidence> {
    let name = path.display().to_string();
    match Saved::load(path)? {
        // Pasted logs know no target.
        Saved::Logs(all) => {
            let findings = if let [only] = &all.cards[..] { only.findings.clone() } else { Findings::default() };
            Ok(Evidence { name, findings, runs: vec![], target: None })
        }
        other => {
            let r = other.report(&name)?;
            Ok(Evidence { name, findings: r.findings, runs: r.runs, target: Some((r.target.size, r.target.offset)) })
        }
    }
}

impl Evidence {
    /// Refuses a report of another card: its size must be that of the target, or of the disk the target is part of.
    ///
    /// # Errors
    /// The sizes differ.
    pub fn must_fit(&self, size: u64, offset: u64) -> anyhow::Result<()> {
        if let Some((s, o)) = self.target
            && s != size
            && offset == 0
            && o == 0
        {
            bail!("{} is about a card of {s} bytes, and this one has {size}; probe this one first", self.name);
        }
        Ok(())
    }
}
