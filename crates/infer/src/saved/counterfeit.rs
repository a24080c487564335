//! A card that holds less than it reports, or loses what it is given: what is said above everything else.

use super::Report;
use crate::finding::{Finding, Findings, LOSES, Quantity, SURE_OF_SIZE as SURE};
use crate::shell::word;
use crate::units::{GIB, MIB, three};

/// Of a card that holds this share of what it reports and no more, a lie is no likelier than flash that died at its end.
const NEARLY: f64 = 0.95;
/// What the evidence ends in where the flash cannot be read or written beyond the border: it may be a genuine card that died.
pub const OR_FAILING: &str = "counterfeit or failing";

/// What a card reports and what it holds, in bytes from the beginning of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counterfeit {
    pub reports: u64,
    /// What is certainly there.
    pub holds: u64,
    /// The same where it is known, the most there may be where the search was cut short.
    pub at_most: u64,
    /// Accesses beyond it fail: the card may be broken rather than false.
    pub failing: bool,
}

impl Counterfeit {
    /// `reports`: what the card says it holds. None where no smaller size was found with some confidence.
    pub fn of(f: &Findings, reports: u64) -> Option<Counterfeit> {
        let found = f.get(Quantity::Capacity).filter(|f| f.confidence >= SURE)?;
        let most = found.number().or(found.interval.map(|i| i[1])).filter(|&c| c < reports as f64)? as u64;
        let holds = found.at_least.map_or(most, |a| a.0 as u64);
        let failing = found.evidence.iter().any(|e| e.ends_with(OR_FAILING)) || most as f64 >= NEARLY * reports as f64;
        Some(Counterfeit { reports, holds, at_most: most, failing })
    }

    /// Both sizes, for a sentence.
    pub fn sizes(&self) -> String {
        let gib = |b: u64| match three(b as f64 / GIB as f64) {
            _ if b < GIB => format!("{} MiB", b / MIB),
            t if t.contains('.') => format!("{} GiB", t.trim_end_matches('0').trim_end_matches('.')),
            t => format!("{t} GiB"),
        };
        let holds = if self.holds == self.at_most { gib(self.holds) } else { format!("{} or less", gib(self.at_most)) };
        format!("reports {}, holds {holds}", gib(self.reports))
    }

    pub fn word(&self) -> &'static str {
        if self.failing { OR_FAILING } else { "counterfeit" }
    }
}

/// Is the card of these findings genuine: false for a counterfeit, none where that was not tested or not decided.
pub fn genuine(f: &Findings, reports: u64) -> Option<bool> {
    let whole = |f: &&Finding| f.confidence >= SURE && f.number().is_some_and(|c| c >= reports as f64);
    match Counterfeit::of(f, reports) {
        Some(_) => Some(false),
        None => f.get(Quantity::Capacity).filter(whole).map(|_| true),
    }
}

/// Why the card is not to be trusted with data, where places of it were lost and no smaller size explains that.
pub fn loses(f: &Findings) -> Option<&str> {
    let found = f.get(Quantity::Capacity)?;
    found.reason.as_deref().filter(|why| found.value.is_none() && found.at_least.is_none() && why.starts_with(LOSES))
}

impl Report {
    /// Bytes of the disk as far as the target reaches.
    pub fn reports(&self) -> u64 {
        self.target.offset + self.target.size
    }

    /// Set where the card holds less than it reports.
    pub fn is_counterfeit(&self) -> Option<Counterfeit> {
        Counterfeit::of(&self.findings, self.reports())
    }

    /// The line above everything.
    pub fn banner(&self) -> Option<String> {
        let lost = || loses(&self.findings).map(|why| format!("FAILING: {why}"));
        self.is_counterfeit().map(|c| format!("{}: {}", c.word().to_uppercase(), c.sizes())).or_else(lost)
    }

    /// Puts the target into reasons that name a command. `options` follow it, such as the consent.
    pub fn name_target(&mut self, options: &str) {
        name_target(&mut self.findings, &format!("{}{options}", word(&self.settings.asked)));
    }
}

/// Puts a target, with the options that it needs, into reasons that name a command.
pub fn name_target(findings: &mut Findings, target: &str) {
    for f in &mut findings.0 {
        if f.instead().is_some() {
            f.reason = f.reason.take().map(|r| r.replacen(crate::finding::TARGET, target, 1));
        }
    }
}
