//! What a saved report says of the card at hand, for commands that build on it.

use crate::finding::Findings;
use crate::host::declared::Declared;
use crate::report::any::Saved;
use crate::samples::Run;
use crate::shell::word;
use anyhow::bail;
use std::path::Path;

/// Findings of a report, and what they are about.
pub struct Evidence {
    pub name: String,
    pub findings: Findings,
    /// Samples; none in a report made from pasted logs.
    pub runs: Vec<Run>,
    /// What the card says of itself.
    pub declared: Option<Declared>,
    /// Bytes of the target it is about, and where that begins on its disk.
    pub target: Option<(u64, u64)>,
}

/// Reads a report of `probe`, or what `infer` made of pasted logs.
///
/// # Errors
/// It cannot be read, is cut off, or is no report.
pub fn load(path: &Path) -> anyhow::Result<Evidence> {
    let name = path.display().to_string();
    // A device is read as a report by nobody.
    let device = path.starts_with("/dev") && !path.is_file() && path != Path::new("/dev/stdin");
    if !path.exists() && crate::device::is_simulated(&name).unwrap_or(false) || device {
        bail!("{name} is a target, and this takes a report of it: nandscope probe {} --json card.json", word(&name));
    }
    match Saved::load(path)? {
        // Pasted logs know no target.
        Saved::Logs(all) => {
            let findings = if let [only] = &all.cards[..] { only.findings.clone() } else { Findings::default() };
            let declared = if let [only] = &all.cards[..] { only.declared.clone() } else { None };
            Ok(Evidence { name, findings, runs: vec![], declared, target: None })
        }
        other => {
            let r = other.report(&name)?;
            let declared = serde_json::from_value(r.declared).ok();
            Ok(Evidence { name, findings: r.findings, runs: r.runs, declared, target: Some((r.target.size, r.target.offset)) })
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
