//! What FORMATS.md promises: results of every earlier version of a form are read, what this version does not know is passed over, and a version that it does
//! not know is refused by name.

use nandscope::finding::Quantity;
use nandscope::report::any::Saved;
use nandscope::saved::Report;
use serde_json::{Value, json};
use std::process::Command;

fn nandscope(dir: &std::path::Path, words: &[&str]) -> (String, String, i32) {
    let out = Command::new(env!("CARGO_BIN_EXE_nandscope")).args(words).current_dir(dir).output().unwrap();
    let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
    (text(out.stdout), text(out.stderr), out.status.code().unwrap())
}

/// A report as this version writes it.
fn now(dir: &std::path::Path) -> Value {
    nandscope(dir, &["run", "read-boundary", "sim:flashbench-readme", "-q", "--json", "now.json"]);
    serde_json::from_str(&std::fs::read_to_string(dir.join("now.json")).unwrap()).unwrap()
}

/// Keys that came later, oldest form last: without them a report is as that version wrote it.
fn earlier(now: &Value) -> Vec<(&'static str, Value)> {
    // Before the capacity was a verdict of its own.
    let mut verdict = now.clone();
    for key in ["counterfeit", "reported_bytes", "real_bytes"] {
        verdict.as_object_mut().unwrap().remove(key);
    }
    // Before the state of the flash was kept, and findings named their experiments.
    let mut state = verdict.clone();
    state.as_object_mut().unwrap().remove("state");
    for f in state["findings"].as_array_mut().unwrap() {
        f.as_object_mut().unwrap().remove("from");
    }
    // Before runs kept what was done: form 1 kept what was believed.
    let mut believed = state.clone();
    for r in believed["runs"].as_array_mut().unwrap() {
        r.as_object_mut().unwrap().remove("form");
    }
    vec![("with everything", now.clone()), ("without verdict", verdict), ("without state", state), ("form 1", believed)]
}

#[test]
fn reports_of_earlier_versions_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let now = now(dir.path());
    let want = Report::from_value(now.clone(), "now").unwrap();
    assert!(want.runs.iter().any(|r| !r.samples.is_empty()));
    for (name, value) in earlier(&now) {
        let r = Report::from_value(value.clone(), name).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(r.findings.value(Quantity::EraseBlock, 0.5), want.findings.value(Quantity::EraseBlock, 0.5), "{name}");
        assert_eq!(r.runs.iter().map(|x| x.samples.len()).sum::<usize>(), want.runs.iter().map(|x| x.samples.len()).sum::<usize>());
        let file = format!("{}.json", name.replace(' ', "-"));
        std::fs::write(dir.path().join(&file), value.to_string()).unwrap();
        for words in [
            &["report", &file][..],
            &["infer", &file],
            &["report", &file, "--format", "csv"],
            &["compare", &file, "now.json"],
            &["layout", "check", &file, "--start", "4MiB"],
        ] {
            let (out, why, code) = nandscope(dir.path(), words);
            assert!(code == 0 && !out.is_empty(), "{name}, {words:?}: {why}");
        }
        let (again, _, _) = nandscope(dir.path(), &["infer", &file, "--json"]);
        let again = Report::parse(&again, name).unwrap();
        assert_eq!(again.findings.value(Quantity::EraseBlock, 0.5), want.findings.value(Quantity::EraseBlock, 0.5), "{name}");
    }
}

/// What `infer` made of logs had the schema of a report in its first versions.
#[test]
fn results_of_logs_of_earlier_versions_are_read() {
    let finding =
        json!({ "quantity": "page", "value": 4096, "confidence": 0.9, "interval": null, "rivals": [], "evidence": [], "caveats": [] });
    for schema in ["nandscope-report/1", "nandscope-infer/1"] {
        for value in [
            json!({ "schema": schema, "target": { "logs": ["a"] }, "findings": [finding], "advice": [], "warnings": [] }),
            json!({ "schema": schema, "target": { "logs": ["a"] }, "cards": [{ "name": "x", "files": ["a"], "findings": [finding] }] }),
        ] {
            match Saved::from_value(value, "f") {
                Ok(Saved::Logs(all)) => assert_eq!(all.cards[0].findings.value(Quantity::Page, 0.5), Some(4096.0)),
                _ => panic!("{schema}"),
            }
        }
    }
}

/// A key that a later version adds is passed over, wherever it stands.
#[test]
fn keys_of_later_versions_are_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let mut value = now(dir.path());
    let later = json!({ "later": [1, { "x": null }] });
    value["later"] = later.clone();
    for place in ["tool", "target", "host", "settings", "cost"] {
        value[place]["later"] = later.clone();
    }
    value["findings"][0]["later"] = later.clone();
    value["runs"][0]["later"] = later.clone();
    value["runs"][0]["cells"][0]["later"] = later;
    let r = Report::from_value(value, "later").unwrap();
    assert_eq!(r.findings, Report::load(&dir.path().join("now.json")).unwrap().findings);
}

/// A later version of a form is refused, and named; nothing is made of it.
#[test]
fn later_versions_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    for schema in ["nandscope-report/2", "nandscope-frag/99", "nandscope-infer/2", "nandscope-bench/2", "nandscope-ab/2"] {
        std::fs::write(dir.path().join("f.json"), json!({ "schema": schema, "findings": [], "cards": [], "benches": [] }).to_string())
            .unwrap();
        let (out, why, code) = nandscope(dir.path(), &["report", "f.json"]);
        assert!(code == 1 && why.contains(schema) && out.is_empty(), "{schema}: {code} {out} {why}");
    }
}

/// Every form that the program writes is in FORMATS.md by its name and version.
#[test]
fn every_form_is_written_down() {
    let page = std::fs::read_to_string("FORMATS.md").unwrap();
    let mut forms = std::collections::BTreeSet::new();
    let mut dirs: Vec<std::path::PathBuf> = vec!["src".into(), "crates".into()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("mod tests {").next().unwrap();
                for part in code.split("\"nandscope-").skip(1) {
                    let name = part.split('"').next().unwrap();
                    if name.split_once('/').is_some_and(|(_, v)| !v.is_empty() && v.bytes().all(|b| b.is_ascii_digit())) {
                        forms.insert(format!("nandscope-{name}"));
                    }
                }
            }
        }
    }
    assert!(forms.len() > 15, "{forms:?}");
    let missing: Vec<&String> = forms.iter().filter(|f| !page.contains(f.as_str())).collect();
    assert!(missing.is_empty(), "FORMATS.md says nothing of {missing:?}");
}

/// What the numbers of a choice mean stands there, too.
#[test]
fn every_choice_is_written_down() {
    let page = include_str!("../FORMATS.md");
    for row in Quantity::ALL.map(Quantity::row).iter().filter(|r| !r.codes.is_empty()) {
        let codes: Vec<String> = row.codes.iter().map(|(n, word)| format!("{n} {word}")).collect();
        let line = format!("| `{}` | {} |\n", row.key, codes.join(", "));
        assert!(page.contains(&line), "FORMATS.md lacks {line}");
    }
}
