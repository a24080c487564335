//! What was concluded of logs that other programs printed: the findings of each card in them. The logs themselves are not in it.

use super::{SCHEMA as REPORT, scrub};
use crate::finding::Findings;
use crate::host::declared::Declared;
use crate::infer::tables::bench::Figure;
use crate::infer::tables::sides::Sides;
use crate::samples::import;
use crate::samples::metric::Metric;
use crate::saved::Tool;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Name and version of the format.
pub const SCHEMA: &str = "nandscope-infer/1";

/// One card of the logs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Card {
    pub name: Option<String>,
    /// The tests that were read, for one line of text.
    pub tests: String,
    /// The files that they stand in.
    pub files: Vec<String>,
    /// What its registers declare.
    pub declared: Option<Declared>,
    /// Lines that hold registers, as found.
    pub registers: Vec<import::Declared>,
    pub findings: Findings,
    /// Record benchmarks, by host and record size.
    pub records: Vec<Figure>,
    /// The same test before and after something was changed.
    pub before_and_after: Vec<Sides>,
    /// Figures of fio, f3 or iozone as printed.
    pub figures: Vec<Metric>,
    /// What contradicts itself, or says that the card is counterfeit.
    pub flags: Vec<String>,
    pub advice: Vec<String>,
    pub warnings: Vec<String>,
}

/// All cards of the logs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inferred {
    /// Names of the files.
    pub logs: Vec<String>,
    pub cards: Vec<Card>,
}

impl Inferred {
    /// For programs: one entry a card; with one card its findings stand at the top, too.
    pub fn value(&self) -> Value {
        let cards: Vec<Value> = self.cards.iter().map(|c| serde_json::to_value(c).unwrap_or_default()).collect();
        let mut out = serde_json::json!({
            "schema": SCHEMA,
            "state": crate::device::CardState::Unknown,
            "tool": Tool::this(),
            "target": { "logs": self.logs },
            "cost": { "reads": 0, "writes": 0, "bytes_written": 0, "seconds": 0.0 },
        });
        for key in ["declared", "findings", "records", "before_and_after", "figures", "flags", "advice", "warnings"] {
            out[key] = if let [only] = &cards[..] { only[key].clone() } else { serde_json::json!([]) };
        }
        out["cards"] = cards.into();
        out
    }

    /// Whether a value is such a result; those of older versions had the schema of a report.
    pub fn is(value: &Value) -> bool {
        value["schema"] == SCHEMA || (value["schema"] == REPORT && value.get("runs").is_none() && value["target"]["logs"].is_array())
    }

    /// Reads it back.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_value(mut value: Value) -> Result<Inferred, String> {
        if !Inferred::is(&value) {
            return Err("it is not what `infer --json` writes of logs".into());
        }
        scrub(&mut value);
        let logs = serde_json::from_value(value["target"]["logs"].take()).map_err(|e| e.to_string())?;
        // The findings of one card stand at the top as well.
        let all = if value["cards"].is_array() { value["cards"].take() } else { serde_json::json!([value]) };
        let cards: Vec<Card> = serde_json::from_value(all).map_err(|e| e.to_string())?;
        cards.iter().try_for_each(|c| c.findings.check())?;
        Ok(Inferred { logs, cards })
    }

    /// What a card is called: as the text names it, with its files where that does not tell it from the others.
    pub fn name(&self, card: &Card) -> String {
        let files = || card.files.join(", ");
        match &card.name {
            None if self.logs.len() > 1 => files(),
            None => "no name".into(),
            Some(n) if self.cards.iter().filter(|c| c.name.as_ref() == Some(n)).count() > 1 => format!("{n}, {}", files()),
            Some(n) => n.clone(),
        }
    }

    /// A figure says that the card holds less than it reports.
    pub fn is_counterfeit(&self) -> bool {
        self.cards.iter().flat_map(|c| &c.flags).any(|f| f.starts_with("counterfeit"))
    }

    /// A figure says that the card lost what was written to it.
    pub fn is_failing(&self) -> bool {
        let says = |f: &String| f.contains("did not come back") || f.contains("sectors failed");
        self.cards.iter().flat_map(|c| &c.flags).any(says)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Finding, Quantity};

    #[test]
    fn what_was_written_reads_back() {
        let figure = Figure {
            host: None,
            record: Some(512),
            write: true,
            passes: 2,
            speed: 251.5,
            max: f64::INFINITY,
            min: 12.0,
            avg: 3.0,
            place: "a:1".into(),
        };
        let card = |name: &str| Card {
            name: Some(name.into()),
            files: vec!["a".into()],
            findings: Findings(vec![Finding::decided(Quantity::Page, 4096.0, 0.9)]),
            records: vec![figure.clone()],
            figures: vec![Metric::new("random read", "4 KiB", "kB/s", &[7.5])],
            flags: vec!["counterfeit of type limbo".into()],
            ..Card::default()
        };
        for n in 1..4 {
            let all = Inferred { logs: vec!["a".into(), "b".into()], cards: (0..n).map(|i| card(&format!("c{}", i % 2))).collect() };
            let text = all.value().to_string();
            let again = Inferred::from_value(serde_json::from_str(&text).unwrap()).unwrap();
            assert!(again.cards.iter().all(|c| c.records[0].max.is_nan()) && again.is_counterfeit());
            assert_eq!(again.value().to_string(), text);
            assert_eq!((again.cards.len(), again.name(&again.cards[0])), (n, if n > 2 { "c0, a" } else { "c0" }.into()));
        }
        assert!(Inferred::from_value(serde_json::json!({ "schema": "nandscope-report/1", "runs": [] })).is_err());
        let mut bad = Inferred { logs: vec![], cards: vec![card("x")] }.value();
        bad["cards"][0]["findings"][0]["confidence"] = 7.into();
        assert!(Inferred::from_value(bad).is_err());
    }
}
