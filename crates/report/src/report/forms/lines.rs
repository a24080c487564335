//! Forms of one line a fact: JSON lines, CSV, LAVA, TAP.

use super::{Fact, Facts, Verdict, words};
use serde_json::json;
use std::collections::HashSet;
use std::fmt::Write;

/// One object a fact.
pub fn jsonl(f: &Facts) -> String {
    let line = |x: &Fact| {
        let c = f.card(x);
        json!({
            "schema": "nandscope-fact/1",
            "from": f.schema,
            "version": f.version,
            "when": f.when,
            "card": c.id,
            "model": c.model,
            "target": c.target,
            "group": x.group,
            "name": x.name,
            "conditions": x.conditions,
            "value": x.value,
            "at_least": x.at_least,
            "unit": x.unit,
            "interval": x.interval,
            "confidence": x.confidence,
            "verdict": x.verdict.word(),
            "text": x.text,
        })
    };
    f.all.iter().map(|x| format!("{}\n", line(x))).collect()
}

/// A cell of a table: quoted where it must be.
fn cell(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into() }
}

/// One row a fact, with a heading.
pub fn csv(f: &Facts) -> String {
    let mut out = String::from("from,when,card,target,group,name,conditions,value,at_least,unit,low,high,confidence,verdict,text\r\n");
    for x in &f.all {
        let c = f.card(x);
        let number = |v: Option<f64>| v.map(|v| v.to_string()).unwrap_or_default();
        let cells = [
            f.schema.clone(),
            f.when.map(|w| w.to_string()).unwrap_or_default(),
            c.id.clone(),
            c.target.clone(),
            x.group.into(),
            x.name.clone(),
            x.conditions.clone(),
            number(x.value),
            number(x.at_least),
            x.unit.clone(),
            number(x.interval.map(|i| i[0])),
            number(x.interval.map(|i| i[1])),
            number(x.confidence),
            x.verdict.word().into(),
            x.text.clone(),
        ];
        out += &(cells.iter().map(|c| cell(c)).collect::<Vec<_>>().join(",") + "\r\n");
    }
    out
}

/// Names that no other fact of its card has: LAVA and Prometheus overwrite or refuse what comes twice.
fn ids(f: &Facts, card: usize) -> Vec<(String, &Fact)> {
    let mut out: Vec<(String, &Fact)> = vec![];
    for x in f.all.iter().filter(|x| x.card == card) {
        let id = x.id();
        let again = out.iter().filter(|o| o.0 == id || o.0.strip_prefix(&id).is_some_and(|r| r.starts_with("-again-"))).count();
        out.push((if again == 0 { id } else { format!("{id}-again-{}", again + 1) }, x));
    }
    out
}

/// A measurement and its unit, as LAVA takes them.
fn measured(x: &Fact) -> Option<(f64, &str)> {
    let unit = if x.unit.is_empty() { "count" } else { &x.unit };
    x.value.filter(|v| v.is_finite()).map(|v| (v, unit))
}

/// The set of a card, where there are several.
fn set(f: &Facts, card: usize) -> Option<String> {
    (f.cards.len() > 1).then(|| format!("{}-{}", card + 1, words(&f.cards[card].id, '-')))
}

/// Signals in the output of a test.
pub fn lava(f: &Facts) -> String {
    let mut out = String::new();
    for card in 0..f.cards.len() {
        let set = set(f, card);
        if let Some(s) = &set {
            let _ = writeln!(out, "<LAVA_SIGNAL_TESTSET START {s}>");
        }
        for (id, x) in ids(f, card) {
            let value = measured(x).map_or(String::new(), |(v, u)| format!(" MEASUREMENT={v} UNITS={u}"));
            let _ = writeln!(out, "<LAVA_SIGNAL_TESTCASE TEST_CASE_ID={id} RESULT={}{value}>", x.verdict.word());
        }
        if set.is_some() {
            out += "<LAVA_SIGNAL_TESTSET STOP>\n";
        }
    }
    out
}

/// A file of results, one a line.
pub fn lava_results(f: &Facts) -> String {
    let mut out = String::new();
    for card in 0..f.cards.len() {
        let set = set(f, card);
        if let Some(s) = &set {
            let _ = writeln!(out, "lava-test-set start {s}");
        }
        for (id, x) in ids(f, card) {
            let value = measured(x).map_or(String::new(), |(v, u)| format!(" {v} {u}"));
            let _ = writeln!(out, "{id} {}{value}", x.verdict.word());
        }
        if let Some(s) = &set {
            let _ = writeln!(out, "lava-test-set stop {s}");
        }
    }
    out
}

/// The name of each test, which no other has: a check and a finding may be called the same.
fn titles(f: &Facts) -> Vec<String> {
    let mut taken = HashSet::new();
    let one = |x: &Fact| {
        let of = if f.cards.len() > 1 { format!("{}: ", f.card(x).id) } else { String::new() };
        let plain = format!("{of}{}", x.title());
        let grouped = format!("{plain}, {}", x.group);
        let again = (2..).map(|n| format!("{grouped}, again {n}"));
        let mut names = [plain, grouped.clone()].into_iter().chain(again);
        names.find(|n| taken.insert(n.clone())).unwrap_or(grouped)
    };
    f.all.iter().map(one).collect()
}

/// One test a fact; a value stands in the block below its line.
pub fn tap(f: &Facts) -> String {
    let mut out = format!("TAP version 13\n1..{}\n", f.all.len());
    for (i, (x, title)) in f.all.iter().zip(titles(f)).enumerate() {
        // Both begin something of their own in a line.
        let name = title.replace('\\', "\\\\").replace('#', "\\#").replace(['\n', '\r'], " ");
        let word = if x.verdict == Verdict::Fail { "not ok" } else { "ok" };
        let why = x.text.replace(['\n', '\r'], " ");
        let skip = if x.verdict == Verdict::Skip { format!(" # SKIP {why}") } else { String::new() };
        let _ = writeln!(out, "{word} {} - {name}{skip}", i + 1);
        if x.verdict != Verdict::Skip {
            // A string of JSON is one of YAML.
            let _ = write!(out, "  ---\n  text: {}\n", json!(x.text));
            if let Some((v, u)) = measured(x) {
                let _ = write!(out, "  value: {v}\n  unit: {u}\n");
            }
            if let Some(c) = x.confidence {
                let _ = writeln!(out, "  confidence: {c}");
            }
            out += "  ...\n";
        }
    }
    out
}
