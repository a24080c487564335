//! One value, several writers: JSON for programs, text for people. It renders and decides nothing. Only this module and `cli` print.

pub mod any;
pub mod bench;
pub mod beside;
pub mod figures;
pub mod fold;
pub mod forms;
pub mod frag;
pub mod html;
pub mod inferred;
pub mod maps;
pub mod plot;
pub mod svg;
pub mod terminal;
pub mod words;

pub use crate::saved::{Cost, Report, ReportError, SCHEMA, Settings, Tool, put, scrub};

use crate::finding::Finding;

/// A report with these findings and no runs, of a card of 4 GiB that nothing else is known of.
pub fn bare(findings: Vec<Finding>) -> Report {
    let mut r = crate::saved::bare(findings);
    r.advice = crate::advise::advice(&r.findings);
    r
}

#[cfg(test)]
mod tests {
    use super::bare as report;
    use crate::advise::conclude;
    use crate::advise::uses::{Verdict, uses};
    use crate::finding::{Finding, Quantity};
    use crate::report::html;
    use crate::report::terminal::{Dress, text};

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
            conclude(&mut r);
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
    fn a_card_that_loses_data_is_not_recommended() {
        for why in ["some places were lost, and others beyond them were not", "what was written near its front was lost"] {
            let said = format!("the card does not keep what is written: {why}");
            let mut r =
                report(vec![Finding::undecided(Quantity::Capacity, said.clone()), Finding::decided(Quantity::OpenAusRandom, 9.0, 0.99)]);
            conclude(&mut r);
            let plain = text(&r, Dress { width: 1000, ..Dress::default() });
            assert_eq!(plain.lines().next(), Some(format!("FAILING: {said}").as_str()));
            assert!(r.counterfeit.is_none() && r.advice[0].contains("keep nothing on it"), "{:?}", r.advice);
            assert!(uses(&r).iter().all(|u| u.verdict == Verdict::Poor && u.why == said), "{:?}", uses(&r));
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
            conclude(&mut r);
            assert!(r.banner().is_none() && r.counterfeit == says, "{:?}", r.findings);
            let plain = text(&r, Dress::default());
            assert!(!plain.contains("at least"), "{plain}");
            assert!(!plain.contains("because not tested") && !plain.contains("COUNTERFEIT"), "{plain}");
        }
    }
}
