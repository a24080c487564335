//! A card that holds less than it reports: what is said above everything else.

use super::Report;
use crate::finding::{Finding, Findings, Quantity};
use crate::units::{GIB, MIB, three};

/// Below this nobody is told to give a card back.
const SURE: f64 = 0.75;
/// Reports of a size are rounded; a card of this share of it is what it says.
const WHOLE: f64 = 0.99;
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
        let most = found.number().or(found.interval.map(|i| i[1])).filter(|&c| c < WHOLE * reports as f64)? as u64;
        let holds = found.at_least.map_or(most, |a| a.0 as u64);
        let failing = found.evidence.iter().any(|e| e.ends_with(OR_FAILING));
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
    let whole = |f: &&Finding| f.confidence >= SURE && f.number().is_some_and(|c| c >= WHOLE * reports as f64);
    match Counterfeit::of(f, reports) {
        Some(_) => Some(false),
        None => f.get(Quantity::Capacity).filter(whole).map(|_| true),
    }
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
        self.is_counterfeit().map(|c| format!("{}: {}", c.word().to_uppercase(), c.sizes()))
    }

    /// Advice and the fields that follow from the findings; to be called where those have changed.
    pub fn conclude(&mut self) {
        self.advice = self.advise();
        self.counterfeit = genuine(&self.findings, self.reports()).map(|g| !g);
        self.reported_bytes = Some(self.reports());
        self.real_bytes = self.is_counterfeit().map(|c| c.holds).or(self.counterfeit.map(|_| self.reports()));
    }

    /// Puts the target into reasons that name a command. `options` follow it, such as the consent.
    pub fn name_target(&mut self, options: &str) {
        let target = format!("{}{options}", self.settings.asked);
        for f in &mut self.findings.0 {
            if f.instead().is_some() {
                f.reason = f.reason.take().map(|r| r.replacen(crate::finding::TARGET, &target, 1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::bare as report;
    use crate::report::html;
    use crate::report::terminal::{Dress, text};
    use crate::report::uses::{Verdict, uses};

    fn cut(low: u64, high: u64) -> Finding {
        let mut f = Finding::at_least(Quantity::Capacity, low as f64, 0.95, "cut");
        f.interval = Some([low as f64, high as f64]);
        f
    }

    #[test]
    fn a_counterfeit_is_said_above_everything() {
        for (found, line) in [
            (Finding::decided(Quantity::Capacity, (1u64 << 30) as f64, 0.98), "COUNTERFEIT: reports 4 GiB, holds 1 GiB"),
            (cut(1 << 28, 1 << 30), "COUNTERFEIT: reports 4 GiB, holds 1 GiB or less"),
            (
                Finding::decided(Quantity::Capacity, (3u64 << 29) as f64, 0.95).evidence("it is a counterfeit or failing"),
                "COUNTERFEIT OR FAILING: reports 4 GiB, holds 1.5 GiB",
            ),
        ] {
            let mut r = report(vec![found]);
            r.conclude();
            let plain = text(&r, Dress::default());
            assert_eq!(plain.lines().next(), Some(line));
            assert!(text(&r, Dress { colour: true, ..Dress::default() }).starts_with(&format!("\x1b[1;31m{line}\x1b[0m\n")));
            let page = html::page(&r);
            let at = |what: &str| page.find(what).unwrap_or(usize::MAX);
            assert!(at(line) < at("<h1>") && at("class=\"counterfeit\"") < at("<h1>"));
            let json: serde_json::Value = serde_json::from_str(&r.json()).unwrap();
            assert_eq!((&json["counterfeit"], &json["reported_bytes"]), (&true.into(), &(1u64 << 32).into()));
            assert!(json["real_bytes"].as_u64().unwrap() <= 3 << 29);
            assert!(uses(&r).iter().all(|u| u.verdict == Verdict::Poor && u.why.contains("reports 4 GiB")), "{:?}", uses(&r));
        }
    }

    #[test]
    fn what_was_not_tested_is_no_counterfeit_and_not_genuine() {
        for (found, says) in [
            (Some(Finding::undecided(Quantity::Capacity, "not tested, time ran out; run: nandscope run capacity TARGET")), None),
            (Some(Finding::at_least(Quantity::Capacity, 1e9, 0.9, "no sign of less than the 4 GiB it reports; 9 places checked")), None),
            (Some(Finding::decided(Quantity::Capacity, (1u64 << 30) as f64, 0.7)), None),
            (Some(Finding::decided(Quantity::Capacity, (1u64 << 32) as f64, 0.95)), Some(false)),
            (None, None),
        ] {
            let mut r = report(found.into_iter().collect());
            r.conclude();
            assert!(r.banner().is_none() && r.counterfeit == says, "{:?}", r.findings);
            let plain = text(&r, Dress::default());
            assert!(!plain.contains("at least"), "{plain}");
            assert!(!plain.contains("because not tested") && !plain.contains("COUNTERFEIT"), "{plain}");
        }
    }
}
