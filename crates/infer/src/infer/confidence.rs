//! From scores to confidence: one monotone map a quantity, fitted to simulated cards and kept as data beside this file.
//!
//! Inside, experiments and what they go by keep the scores. What is told at the end is the share of findings with such a score that were
//! right on the cards of the fit; `examples/fit_confidence.rs` makes the table. What it has no map for is told with its score.

use super::pipeline::{Fit, by_name};
use super::slots::MOST;
use crate::finding::{BY_PAGE, CONTRADICTED, Finding, Findings, Quantity, SAID};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// What a finding rests on: runs of our own that went to their end, or of which one was cut short; tables that a program printed; or runs of
/// which one is for today's cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    Probe,
    Cut,
    Table,
    Today,
}

impl Source {
    pub const ALL: [Source; 4] = [Source::Probe, Source::Cut, Source::Table, Source::Today];

    pub fn key(self) -> &'static str {
        match self {
            Source::Probe => "probe",
            Source::Cut => "cut",
            Source::Table => "table",
            Source::Today => "today",
        }
    }

    /// Of what is told from runs or from tables, which maps a finding goes by.
    pub fn of(self, f: &Finding) -> Source {
        let today = || f.from.iter().filter_map(|e| by_name(e)).any(|a| a.fit() == Fit::Today);
        match self {
            Source::Probe if today() => Source::Today,
            Source::Probe if f.cut => Source::Cut,
            _ => self,
        }
    }
}

/// What a finding says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Says {
    Value,
    AtLeast,
    /// A bound on open AUs of a card on which no write was slow however many AUs were interleaved: right unless a cache
    /// took them all. Other bounds come of what was slow with more AUs, or in the other order, and no cache hides that.
    NeverSlow,
    /// The same of as many AUs as are tried at most, and of a mapping by page, which rests on that: large cards have room for so many, and large
    /// caches more often.
    AllTried,
}

impl Says {
    const ALL: [Says; 4] = [Says::Value, Says::AtLeast, Says::NeverSlow, Says::AllTried];

    /// A bound, or a value.
    pub fn of(bound: bool) -> Says {
        if bound { Says::AtLeast } else { Says::Value }
    }

    pub fn key(self) -> &'static str {
        match self {
            Says::Value => "value",
            Says::AtLeast => "at least",
            Says::NeverSlow => "never slow",
            Says::AllTried => "all tried",
        }
    }
}

/// Which findings share a map.
pub type Key = (Source, Quantity, Says);

/// The map of a finding.
pub fn key(told_from: Source, f: &Finding) -> Key {
    let source = told_from.of(f);
    let by_page = f.quantity == Quantity::Mapping && f.number() == Some(BY_PAGE) && matches!(source, Source::Probe | Source::Cut);
    let bound = f.at_least.filter(|_| f.value.is_none() && f.never_slow);
    let says = match f.value {
        _ if by_page || bound.is_some_and(|n| n.0 >= MOST as f64) => Says::AllTried,
        _ if bound.is_some() => Says::NeverSlow,
        Some(_) => Says::Value,
        None => Says::AtLeast,
    };
    (source, f.quantity, says)
}

/// From this score on, this confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    pub from: f64,
    pub confidence: f64,
}

/// The maps, by what they are for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Maps(pub BTreeMap<Key, Vec<Step>>);

/// Scores are compared as the table writes them.
const ROUNDED: f64 = 1e-9;

static SHIPPED: LazyLock<Maps> = LazyLock::new(|| Maps::parse(TABLE).expect("the table of confidence is part of the program"));

/// The table, with its origin in the lines that begin with `#`.
pub const TABLE: &str = include_str!("confidence.tsv");

impl Maps {
    /// Those that the program goes by.
    pub fn shipped() -> &'static Maps {
        &SHIPPED
    }

    /// Reads lines of source, quantity, `value`, `at least`, `never slow` or `all tried`, score, confidence, and what else there is, separated by tabs.
    ///
    /// # Errors
    /// The first line that is no such line, or does not rise with the ones before it.
    pub fn parse(text: &str) -> Result<Maps, String> {
        let mut maps = Maps::default();
        for (i, line) in text.lines().enumerate().filter(|l| !l.1.starts_with('#') && !l.1.is_empty()) {
            let wrong = |what: &str| format!("line {}: {what}: {line}", i + 1);
            let mut f = line.split('\t');
            let mut next = || f.next().ok_or_else(|| wrong("too few columns"));
            let (source, quantity, kind) = (next()?, next()?, next()?);
            let source = Source::ALL.into_iter().find(|s| s.key() == source).ok_or_else(|| wrong("no such source"))?;
            let quantity = Quantity::ALL.into_iter().find(|q| q.key() == quantity).ok_or_else(|| wrong("no such quantity"))?;
            let says = Says::ALL.into_iter().find(|s| s.key() == kind).ok_or_else(|| wrong("neither a value nor a bound"))?;
            let mut share = || next()?.parse().ok().filter(|p| (0.0..1.0).contains(p)).ok_or_else(|| wrong("no share between 0 and 1"));
            let step = Step { from: share()?, confidence: share()? };
            let steps = maps.0.entry((source, quantity, says)).or_default();
            if steps.last().is_some_and(|s| s.from >= step.from || s.confidence > step.confidence) {
                return Err(wrong("it does not rise"));
            }
            steps.push(step);
        }
        Ok(maps)
    }

    /// What a score comes to; of a run that was cut short as of others, where too few were seen for a map of their own. Below all that were seen nothing is known but that it is no better than they are.
    pub fn confidence(&self, key: Key, score: f64) -> f64 {
        let whole = (Source::Probe, key.1, key.2);
        let Some(steps) = self.0.get(&key).or_else(|| self.0.get(&whole).filter(|_| key.0 == Source::Cut)) else { return score };
        match steps.iter().rev().find(|s| score + ROUNDED >= s.from) {
            Some(s) => s.confidence,
            None => steps.first().map_or(score, |s| s.confidence.min(score)),
        }
    }

    /// Findings with what their scores come to; those that come to too little are undecided.
    pub fn told(&self, source: Source, all: Findings) -> Findings {
        Findings(all.0.into_iter().map(|f| self.one(source, f)).collect())
    }

    fn one(&self, source: Source, mut f: Finding) -> Finding {
        if f.value.is_none() && f.at_least.is_none() {
            return f;
        }
        let (score, named) = (f.confidence, f.value.is_some());
        f.confidence = self.confidence(key(source, &f), score);
        if f.disputed {
            f.confidence = f.confidence.min(CONTRADICTED);
        }
        // What is left over is shared as it was.
        let left = (1.0 - f.confidence) / (1.0 - score).max(1e-3);
        if named && score != f.confidence {
            for r in &mut f.rivals {
                r.probability = ((r.probability * left).min(1.0 - f.confidence) * 1e4).round() / 1e4;
            }
        }
        said(f)
    }
}

/// What is more a guess than an answer stays undecided.
pub(super) fn said(f: Finding) -> Finding {
    let Some(best) = f.number().or(f.at_least.map(|b| b.0)).filter(|_| f.confidence < SAID) else { return f };
    let bound = if f.value.is_none() { "at least " } else { "" };
    let why = format!("the times point to {bound}{}, not clearly enough", f.quantity.show(best));
    f.withdrawn(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: Key = (Source::Probe, Quantity::EraseBlock, Says::Value);

    fn maps() -> Maps {
        let line = |from: &str, to: &str| format!("probe\terase_block\tvalue\t{from}\t{to}\t9\t10\n");
        Maps::parse(&format!("# origin\n{}{}{}", line("0.6", "0.5"), line("0.8", "0.9"), line("0.96", "0.98"))).unwrap()
    }

    #[test]
    fn scores_become_shares() {
        let m = maps();
        for (score, confidence) in [(0.3, 0.3), (0.55, 0.5), (0.6, 0.5), (0.79, 0.5), (0.8, 0.9), (0.95, 0.9), (0.96, 0.98), (0.999, 0.98)]
        {
            assert_eq!(m.confidence(BLOCK, score), confidence, "{score}");
        }
        assert_eq!(m.confidence((Source::Table, Quantity::EraseBlock, Says::Value), 0.7), 0.7, "no map");
        assert_eq!(m.confidence((Source::Probe, Quantity::EraseBlock, Says::AtLeast), 0.7), 0.7, "bounds have their own");
    }

    #[test]
    fn what_is_told_follows_and_little_is_undecided() {
        let f = |p: f64| Finding::decided(Quantity::EraseBlock, 4096.0, p).rivals([(8192.0, 0.5 * (1.0 - p)), (2048.0, 0.25 * (1.0 - p))]);
        let told = maps().told(Source::Probe, Findings(vec![f(0.8)])).0.remove(0);
        assert_eq!((told.confidence, told.rivals[0].probability, told.rivals[1].probability), (0.9, 0.05, 0.025));
        let little = maps().told(Source::Probe, Findings(vec![f(0.7)])).0.remove(0);
        assert!(little.value.is_none() && little.reason.as_ref().unwrap().contains("4 KiB, not clearly enough"), "{little:?}");
    }

    #[test]
    fn what_another_experiment_contradicts_is_never_sure() {
        for (from, alone) in [("au-grid", 0.98), ("page-mapping", 0.97)] {
            let f = |disputed| Finding { disputed, from: vec![from.into()], ..Finding::decided(Quantity::EraseBlock, 4096.0, 0.97) };
            let told = |disputed| maps().told(Source::Probe, Findings(vec![f(disputed)])).0[0].confidence;
            assert_eq!((told(false), told(true)), (alone, CONTRADICTED), "{from}");
        }
    }

    #[test]
    fn what_a_run_says_that_was_cut_short_has_maps_of_its_own() {
        let line = |source: &str, of: &str, to: &str| format!("{source}\t{of}\tvalue\t0.6\t{to}\n");
        let table = line("probe", "erase_block", "0.98") + &line("probe", "page", "0.97") + &line("cut", "erase_block", "0.9");
        let maps = Maps::parse(&table).unwrap();
        let told = |q, cut| {
            let f = Finding { cut, from: vec!["au-grid".into()], ..Finding::decided(q, 4096.0, 0.8) };
            maps.told(Source::Probe, Findings(vec![f])).0[0].confidence
        };
        assert_eq!((told(Quantity::EraseBlock, false), told(Quantity::EraseBlock, true)), (0.98, 0.9));
        assert_eq!((told(Quantity::Page, false), told(Quantity::Page, true)), (0.97, 0.97), "too few were cut short for a map");
    }

    #[test]
    fn a_mapping_by_page_goes_by_the_map_of_what_was_never_slow() {
        let maps = Maps::parse("probe\tmapping\tvalue\t0.6\t0.99\nprobe\tmapping\tall tried\t0.6\t0.7\n").unwrap();
        let told = |value| maps.told(Source::Probe, Findings(vec![Finding::decided(Quantity::Mapping, value, 0.8)])).0[0].confidence;
        assert_eq!((told(1.0), told(BY_PAGE)), (0.99, 0.7));
    }

    #[test]
    fn bounds_of_what_was_never_slow_have_a_map_of_their_own() {
        let line = |says: &str, to: &str| format!("probe\topen_aus_linear\t{says}\t0.6\t{to}\n");
        let maps =
            Maps::parse(&(line("value", "0.95") + &line("at least", "0.97") + &line("never slow", "0.8") + &line("all tried", "0.7")))
                .unwrap();
        let bound = Finding::at_least(Quantity::OpenAusLinear, 5.0, 0.8, "x");
        let told = |f: Finding| maps.told(Source::Probe, Findings(vec![f])).0[0].confidence;
        assert_eq!(told(Finding { never_slow: true, ..bound.clone() }), 0.8);
        let all = Finding::at_least(Quantity::OpenAusLinear, 96.0, 0.8, "x");
        assert_eq!(told(Finding { never_slow: true, ..all }), 0.7);
        assert_eq!(told(bound), 0.97);
        let counted = Finding { never_slow: true, ..Finding::decided(Quantity::OpenAusLinear, 5.0, 0.8) };
        assert_eq!(told(counted), 0.95, "the other order counted");
    }

    #[test]
    fn what_the_fit_did_not_see_keeps_its_score() {
        for (from, told) in [("au-grid", 0.98), ("slc-cache", 0.97), ("discard", 0.97)] {
            let f = Finding { from: vec![from.into()], ..Finding::decided(Quantity::EraseBlock, 4096.0, 0.97) };
            assert_eq!(maps().told(Source::Probe, Findings(vec![f])).0[0].confidence, told, "{from}");
        }
    }

    /// What an experiment for today's cards spoke to has maps of its own, the mapping among them.
    #[test]
    fn todays_cards_have_maps_of_their_own() {
        let of = |source: &str| format!("{source}\tmapping\tvalue\t0.6\t{}\n", if source == "today" { "0.99" } else { "0.7" });
        let maps = Maps::parse(&(of("probe") + &of("today"))).unwrap();
        for (from, told) in [(&["au-grid"][..], 0.7), (&["page-mapping"], 0.99), (&["au-grid", "page-mapping"], 0.99)] {
            let from = from.iter().map(ToString::to_string).collect();
            let f = Finding { from, ..Finding::decided(Quantity::Mapping, 1.0, 0.8) };
            assert_eq!(maps.told(Source::Probe, Findings(vec![f.clone()])).0[0].confidence, told, "{:?}", f.from);
        }
    }

    #[test]
    fn a_table_that_falls_or_is_none_is_refused() {
        for (text, says) in [
            ("probe\terase_block\tvalue\t0.9\t0.8\nprobe\terase_block\tvalue\t0.95\t0.7\n", "rise"),
            ("probe\terase_block\tvalue\t0.9\t0.8\nprobe\terase_block\tvalue\t0.9\t0.9\n", "rise"),
            ("log\terase_block\tvalue\t0.9\t0.8\n", "source"),
            ("probe\tcolour\tvalue\t0.9\t0.8\n", "quantity"),
            ("probe\terase_block\tmaybe\t0.9\t0.8\n", "bound"),
            ("probe\terase_block\tvalue\t0.9\t1.0\n", "share"),
            ("probe\terase_block\tvalue\t0.9\n", "columns"),
        ] {
            let e = Maps::parse(text).unwrap_err();
            assert!(e.contains(says), "{e}");
        }
    }

    #[test]
    fn the_table_of_the_program_rises_and_nothing_is_certain() {
        let maps = Maps::parse(TABLE).unwrap();
        assert!(TABLE.starts_with('#') && TABLE.contains("fit_confidence"), "it says where it comes from");
        for (key, steps) in &maps.0 {
            assert!(steps.iter().all(|s| s.confidence < 1.0), "{key:?}");
            assert!(steps.windows(2).all(|w| w[0].from < w[1].from && w[0].confidence <= w[1].confidence), "{key:?}");
        }
    }
}
