//! One result in the forms of other programs: each form is read back by a parser, and all of them say the same.

#[path = "forms/parsers.rs"]
mod parsers;
#[path = "common/skip.rs"]
mod skip;

use nandscope::report::forms::{Form, Verdict};
use parsers::{attribute, csv, junit, prometheus, same};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

fn nandscope(dir: &Path, words: &[&str]) -> (String, String, i32) {
    let out = Command::new(env!("CARGO_BIN_EXE_nandscope")).args(words).current_dir(dir).output().unwrap();
    let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
    (text(out.stdout), text(out.stderr), out.status.code().unwrap())
}

/// Runs a checker of others on a text, where it is installed; false where it is not.
fn checked_by(command: &[&str], text: &str) -> bool {
    let child = Command::new(command[0]).args(&command[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut child) = child else { return false };
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{command:?}: {said}\n{text}");
    true
}

/// What every form of a result says, held against the others. Returns its number of facts.
fn agree(value: &Value, what: &str) -> usize {
    let form = |f: Form| f.write(value).unwrap_or_else(|e| panic!("{what}: {e}"));
    let lines: Vec<Value> = form(Form::Jsonl).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let rows = csv(&form(Form::Csv));
    assert_eq!(rows.len(), lines.len() + 1, "{what}");
    assert!(rows.iter().all(|r| r.len() == rows[0].len()), "{what}");
    let column = |name: &str| rows[0].iter().position(|c| c == name).unwrap();
    for (row, line) in rows[1..].iter().zip(&lines) {
        for key in ["card", "target", "name", "conditions", "unit", "text", "verdict"] {
            assert_eq!(row[column(key)], line[key].as_str().unwrap(), "{what}");
        }
        assert!(same(&row[column("value")], &line["value"].as_f64().map_or(String::new(), |v| v.to_string())), "{what}");
    }
    let xml = form(Form::Junit);
    let elements = junit(&xml);
    let cases: Vec<_> = elements.iter().filter(|e| e.0 == "testcase").collect();
    assert_eq!(cases.len(), lines.len(), "{what}");
    let count = |v: Verdict| lines.iter().filter(|l| l["verdict"] == v.word()).count();
    for (tag, attr, verdict) in [("failure", "failures", Verdict::Fail), ("skipped", "skipped", Verdict::Skip)] {
        let sum: usize = elements.iter().filter(|e| e.0 == "testsuite").map(|e| attribute(e, attr).parse::<usize>().unwrap()).sum();
        assert_eq!((elements.iter().filter(|e| e.0 == tag).count(), sum), (count(verdict), count(verdict)), "{what}");
    }
    let tap = form(Form::Tap);
    assert!(tap.starts_with(&format!("TAP version 13\n1..{}\n", lines.len())), "{what}: {tap}");
    let points: Vec<&str> = tap.lines().filter(|l| l.starts_with("ok ") || l.starts_with("not ok ")).collect();
    assert_eq!(points.len(), lines.len(), "{what}");
    let names: HashSet<&str> =
        points.iter().map(|p| p.split_once(" - ").map_or("", |n| n.1.split(" # SKIP").next().unwrap_or(""))).collect();
    assert_eq!(names.len(), lines.len(), "{what}: {tap}");
    for (i, p) in points.iter().enumerate() {
        assert!(p.contains(&format!("ok {} - ", i + 1)) && p.starts_with("not") == (lines[i]["verdict"] == "fail"), "{what}: {p}");
        assert_eq!(p.contains("# SKIP"), lines[i]["verdict"] == "skip", "{what}: {p}");
    }
    let signals = form(Form::Lava);
    let cases: Vec<&str> =
        signals.lines().filter_map(|l| l.strip_prefix("<LAVA_SIGNAL_TESTCASE TEST_CASE_ID=")?.strip_suffix('>')).collect();
    assert_eq!(cases.len(), lines.len(), "{what}");
    let result = form(Form::LavaResults);
    let results: Vec<&str> = result.lines().filter(|l| !l.starts_with("lava-test-set")).collect();
    for ((case, result), line) in cases.iter().zip(&results).zip(&lines) {
        let words: Vec<&str> = case.split(' ').collect();
        assert!(words[0].chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)), "{what}: {case}");
        assert_eq!(words[1], format!("RESULT={}", line["verdict"].as_str().unwrap()), "{what}");
        assert_eq!(words.len(), if line["value"].is_null() { 2 } else { 4 }, "{what}: {case}");
        assert_eq!(words.iter().map(|w| w.split_once('=').map_or(*w, |x| x.1)).collect::<Vec<_>>().join(" "), *result, "{what}");
    }
    let prom = form(Form::Prom);
    let samples = prometheus(&prom);
    let values = lines.iter().filter(|l| !l["value"].is_null()).count();
    let derived = ["_confidence_ratio", "_check_decided", "_check_passed", "_card_info", "_timestamp_seconds"];
    let of_values = samples.iter().filter(|s| {
        let bound = s.0.contains("_at_least") || s.0.contains("_low") || s.0.contains("_high");
        !bound && !derived.iter().any(|d| s.0.ends_with(d))
    });
    assert_eq!(of_values.count(), values, "{what}: {prom}");
    static SAID: std::sync::Once = std::sync::Once::new();
    let unpacked = concat!(env!("CARGO_MANIFEST_DIR"), "/target/promtool");
    let promtool = if Path::new(unpacked).exists() { unpacked } else { "promtool" };
    let theirs = [checked_by(&[promtool, "check", "metrics"], &prom), checked_by(&["xmllint", "--noout", "-"], &xml)];
    for (tool, _) in ["promtool", "xmllint"].into_iter().zip(theirs).filter(|t| !t.1) {
        SAID.call_once(|| skip::skipped("forms of other programs", &format!("{tool} is missing; this test's own parsers read them")));
    }
    lines.len()
}

/// Every command that ends in findings, metrics or verdicts.
#[test]
fn every_result_in_every_form() {
    let dir = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| {
        let (text, errors, code) = nandscope(dir.path(), words);
        assert!(code != 1 && code != 2, "{words:?}: {errors}");
        text
    };
    run(&["probe", "sim:toshiba-emmc", "-q", "--json", "r.json"]);
    run(&["probe", "sim:flashbench-readme", "-q", "--json", "s.json"]);
    std::fs::copy(dir.path().join("s.json"), dir.path().join("again.json")).unwrap();
    std::fs::write(dir.path().join("f3.txt"), "Average writing speed: 4.90 MB/s\nData OK: 29.71 GB (62301184 sectors)\nData LOST: 1.00 GB (2097152 sectors)\nAverage reading speed: 9.42 MB/s\n").unwrap();
    std::fs::write(dir.path().join("t.csv"), "fio version 2 iolog\nx add\nx open\nx write 0 4096\nx read 8192 4096\nx close\n").unwrap();
    std::fs::write(
        dir.path().join("plan.toml"),
        "[[card]]\ntarget = 'sim:toshiba-emmc'\nlot = 'A'\nsteps = ['check', 'layout', 'probe']\n",
    )
    .unwrap();
    std::fs::write(dir.path().join("sweep.toml"), "cards = ['flashbench-readme']\nseeds = 2\ntime = '2s'\n").unwrap();
    run(&["sweep", "sweep.toml", "-o", "sw", "-q"]);
    run(&["replay", "t.csv", "sim:toshiba-emmc", "-q", "--write", "--out", "timed.tsv"]);
    let cid = "035344535532353680e2d0a5a2010900";
    std::fs::File::create(dir.path().join("card.img")).unwrap().set_len(64 << 20).unwrap();
    let entry = |file: &str| run(&["survey", "--dir", "sv", "add", file]).split(' ').next().unwrap().to_string();
    let entries = [("REPORT", entry("r.json")), ("F3", entry("f3.txt"))];
    for (words, least) in [
        (&["rate", "sim:modern-a1-32gb", "--class", "A1,C10", "-q"][..], 12),
        (&["uflip", "sim:toshiba-emmc", "--only", "GRA.SR", "-q"], 10),
        (&["quirk", "r.json", "--cid", cid], 1),
        (&["identify", "--cid", cid, "--csd", "400e00325b590000ebf77f800a4000c3", "--bus", "sd"], 1),
        (&["campaign", "plan.toml", "-q"], 6),
        (&["probe", "sim:usb-stick", "-q"], 12),
        (&["check", "sim:toshiba-emmc", "-q"], 15),
        (&["check", "sim:fake-wrap-32gb", "-q"], 15),
        (&["run", "capacity", "sim:toshiba-emmc", "-q"], 2),
        (&["infer", "r.json"], 12),
        (&["infer", "f3.txt"], 3),
        (&["bench", "sim:chan-sdc-128mb", "-q", "--file", "200kB", "--passes", "2"], 20),
        (&["ab", "sim:toshiba-emmc", "--a", "split=8KiB", "--b", "default", "--pairs", "8", "-q"], 2),
        (&["compare", "r.json", "s.json"], 10),
        (&["compare", "r.json", "--against", "s.json", "again.json"], 10),
        (&["layout", "audit", "sim:toshiba-emmc"], 1),
        (&["twin", "check", "sim:toshiba-emmc", "timed.tsv"], 6),
        (&["layout", "check", "r.json", "--start", "1MiB", "--start", "4MiB"], 2),
        (&["life", "r.json", "--workload", "dashcam"], 6),
        (&["survey", "--dir", "sv", "show", "REPORT"], 10),
        (&["survey", "--dir", "sv", "show", "F3"], 3),
        (&["erase", "sim:toshiba-emmc", "--region", "4MiB..5MiB", "--how", "zeroes", "--verify", "-q"], 5),
        (&["format", "card.img", "--dry-run"], 6),
        (&["sim", "sim:toshiba-emmc", "--pattern", "random-4k", "--requests", "200"], 10),
        (&["partitions", "sim:flashbench-readme", "-q", "--part", "0..128MiB", "--part", "256MiB..384MiB", "--time", "30s"], 4),
    ] {
        let words: Vec<&str> = words.iter().map(|w| entries.iter().find(|e| e.0 == *w).map_or(*w, |e| e.1.as_str())).collect();
        let what = words.join(" ");
        let value: Value = serde_json::from_str(&run(&[&words[..], &["--json"]].concat())).unwrap_or_else(|e| panic!("{what}: {e}"));
        let n = agree(&value, &what);
        assert!(n >= least, "{what}: {n} facts");
        // The command writes what the saved result becomes; the --format of `sim` is that of the trace.
        std::fs::write(dir.path().join("saved.json"), value.to_string()).unwrap();
        if words[0] == "sim" {
            assert_eq!(csv(&run(&["report", "saved.json", "--format", "csv"])).len(), n + 1);
            continue;
        }
        let out = nandscope(dir.path(), &[&words[..], &["--format", "csv", "-o", "out.csv"]].concat());
        let direct = std::fs::read_to_string(dir.path().join("out.csv")).unwrap_or_else(|e| panic!("{what}: {e} {out:?}"));
        let later = run(&["report", "saved.json", "--format", "csv"]);
        let (direct, later) = (csv(&direct), csv(&later));
        assert_eq!(direct.len(), later.len(), "{what}");
        direct.iter().flatten().zip(later.iter().flatten()).for_each(|(a, b)| assert!(same(a, b), "{what}: {a}, {b}"));
        assert!(!out.0.starts_with("from,"), "{what}: the file is not standard output");
    }
    // Its -o is the model.
    let tap = run(&["twin", "r.json", "--time", "300ms", "-q", "--format", "tap"]);
    assert!(tap.starts_with("TAP version 13") && tap.contains("ok 1 - twin_found") && tap.contains("twin_erase_block"), "{tap}");
    // Its -o is the merged file.
    let sweep: Value = serde_json::from_str(&run(&["sweep", "merge", "sw", "--json"])).unwrap();
    assert!(agree(&sweep, "sweep merge") > 10);
    assert!(
        run(&["sweep", "merge", "sw", "--format", "prom"])
            .contains("nandscope_sweep_quantity_jobs{card=\"sweep\",conditions=\"erase_block\"} 2\n")
    );
    let (_, why, code) = nandscope(dir.path(), &["sweep", "merge", "sw", "--json", "--format", "csv"]);
    assert!(code == 2 && why.contains("one of --json and --format"), "{why}");
}

/// What was done to a volume, and what was put back.
#[test]
fn what_was_done_in_every_form() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("card.img");
    std::fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let id = (64 << 20).to_string();
    let facts = |words: &[&str], least: usize| {
        let (text, why, code) = nandscope(dir.path(), &[words, &["-q", "--consent", &id, "--json"]].concat());
        assert_eq!(code, 0, "{words:?}: {why}");
        let value: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{words:?}: {e}: {text}"));
        assert!(agree(&value, &words.join(" ")) >= least, "{value}");
        value
    };
    let formatted = facts(&["format", "card.img", "--fs", "fat16"], 7);
    assert!(formatted["written"] == true && formatted["target"] == "card.img");
    let aged = facts(&["age", "card.img", "--passes", "3", "--largest", "200KB", "--fill", "0.5", "--seed", "3"], 5);
    assert!(aged["passes"] == 3 && aged["bytes_written"].as_u64().unwrap() > 0, "{aged}");
    let d = facts(&["defrag", "card.img"], 5);
    assert!(d["fragmented_before"].as_u64().unwrap() > 0 && d["fragmented_after"] == 0, "{d}");
    let (tap, _, code) = nandscope(dir.path(), &["age", "card.img", "--verify", "--format", "tap"]);
    assert!(code == 0 && tap.starts_with("TAP version 13\n1..1\nok 1 - files_kept"), "{tap}");
    assert!(facts(&["age", "card.img", "--remove"], 1)["files_removed"].as_u64().unwrap() > 0);
    // No journal is nothing to put back; one that cannot be read is not back, and the exit code stays what it is.
    let (tap, _, code) = nandscope(dir.path(), &["undo", "--dir", "none", "--format", "tap"]);
    assert!(code == 0 && tap.starts_with("TAP version 13\n1..1\nok 1 - put_back"), "{tap}");
    std::fs::write(dir.path().join("torn.undo"), "no journal").unwrap();
    let (json, _, code) = nandscope(dir.path(), &["undo", "torn.undo", "--json=-"]);
    let value: Value = serde_json::from_str(&json).unwrap();
    assert!(code == 1 && value["journals"][0]["state"] == "not_back" && agree(&value, "undo") == 2, "{json}");
}

/// Every command has the forms, or is known to end in no finding, metric or verdict of its own.
#[test]
fn no_command_is_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let help = |words: &[&str]| nandscope(dir.path(), &[words, &["--help"]].concat()).0;
    // What each gives in place of them.
    let without = [
        ("flashbench", "prints flashbench's own lines, which `infer -` takes"),
        ("replay", "its --format is that of the trace; `report` takes its --json"),
        ("sim", "as replay"),
        ("list", "devices, no findings"),
        ("cards", "models"),
        ("serve", "serves"),
        ("completions", "text for a shell"),
        ("man", "pages"),
        ("help", "help"),
        ("layout plan", "commands to give"),
        ("survey add", "files to keep"),
        ("survey list", "a list; `survey export` has its figures"),
        ("survey search", "as list"),
        ("survey chart", "a picture"),
        ("survey export", "tables of its own: CSV, JSON lines, wiki"),
        ("survey site", "pages"),
        ("survey remove", "nothing is left"),
        ("sweep", "jobs; `sweep merge` has the figures"),
    ];
    let commands = |text: &str| -> Vec<String> {
        let lines = text.lines().take_while(|l| !["Options:", "Arguments:"].contains(l));
        lines
            .filter_map(|l| l.strip_prefix("  ")?.split_once("  ").map(|x| x.0.to_string()))
            .filter(|w| !w.is_empty() && w.chars().all(|c| c.is_ascii_lowercase()))
            .collect()
    };
    let mut seen = 0;
    for first in commands(&help(&[])) {
        let text = help(&[&first]);
        let inner = if text.contains("\nCommands:\n") { commands(&text) } else { vec![] };
        let all = inner.iter().filter(|c| *c != "help").map(|c| format!("{first} {c}"));
        for command in all.chain((inner.is_empty() || text.contains("[OPTIONS] <") && first != "survey").then(|| first.clone())) {
            let words: Vec<&str> = command.split(' ').collect();
            let forms = help(&words).contains("lava-results");
            let known = without.iter().any(|w| w.0 == command || w.0 == "cards" && words[0] == "cards");
            assert!(forms != known, "{command}: forms {forms}");
            seen += 1;
        }
    }
    assert!(seen > 35, "{seen} commands");
}

/// Values in base units are those of the JSON.
#[test]
fn values_are_in_base_units() {
    let dir = tempfile::tempdir().unwrap();
    let (json, _, _) = nandscope(dir.path(), &["probe", "sim:toshiba-emmc", "-q", "--json"]);
    let value: Value = serde_json::from_str(&json).unwrap();
    let samples = prometheus(&Form::Prom.write(&value).unwrap());
    let of = |name: &str| samples.iter().find(|s| s.0 == name).unwrap_or_else(|| panic!("{name}")).2;
    let finding = |key: &str| value["findings"].as_array().unwrap().iter().find(|f| f["quantity"] == key).unwrap().clone();
    assert_eq!(of("nandscope_erase_block_bytes"), finding("erase_block")["value"].as_f64().unwrap());
    assert_eq!(of("nandscope_erase_block_confidence_ratio"), finding("erase_block")["confidence"].as_f64().unwrap());
    assert_eq!(of("nandscope_open_aus_linear"), 7.0);
    let ms = finding("close_cost_ms");
    assert!((of("nandscope_close_cost_seconds") - ms["value"].as_f64().unwrap() / 1e3).abs() < 1e-12);
    assert!(of("nandscope_close_cost_low_seconds") <= of("nandscope_close_cost_seconds"));
    assert_eq!(of("nandscope_check_passed"), 1.0);
    // Undecided: a confidence of nothing, and no value.
    assert_eq!(of("nandscope_fat_zone_confidence_ratio"), 0.0);
    assert!(!samples.iter().any(|s| s.0 == "nandscope_fat_zone_bytes"));
}

/// A report of a card with these names and findings.
/// What a card says of its wear is a metric and a verdict in every form; codes that are reserved are neither.
#[test]
fn wear_is_in_every_form() {
    let of = |life_a: Value, pre_eol: Value| {
        let health = serde_json::json!({ "life_a": life_a, "life_b": { "used": { "from": 10, "to": 20 } }, "pre_eol": pre_eol });
        let value = serde_json::json!({ "schema": "nandscope-identify/1", "name": "8GTF4R", "capacity": 1 << 30, "health": health });
        assert_eq!(agree(&value, "wear") % 2, 1, "capacity, three of wear and the verdict; or capacity, one of wear and the verdict");
        (Form::Prom.write(&value).unwrap(), Form::Junit.write(&value).unwrap())
    };
    let (prom, junit) = of("exceeded".into(), "normal".into());
    assert!(prom.contains("nandscope_life_used_ratio{card=\"8GTF4R\",conditions=\"A\"} 1\n"), "{prom}");
    assert!(prom.contains("conditions=\"B\"} 0.2\n") && prom.contains("nandscope_pre_eol{card=\"8GTF4R\"} 1\n"), "{prom}");
    assert!(prom.contains("nandscope_check_passed{card=\"8GTF4R\",check=\"life_left\"} 0\n"), "{prom}");
    assert!(junit.contains("failures=\"1\"") && junit.contains("A: estimated life exceeded"), "{junit}");
    let (prom, junit) = of(serde_json::json!({ "reserved": { "code": 255 } }), "not_defined".into());
    assert!(!prom.contains("\"A\"") && !prom.contains("pre_eol") && junit.contains("failures=\"0\""), "{prom}\n{junit}");
}

fn report(model: &str, findings: &Value) -> Value {
    json!({ "schema": "nandscope-report/1", "tool": { "name": "nandscope", "version": "0.1.0" }, "when": 1_700_000_000,
        "target": { "path": "/dev/sdz", "kind": "disk", "serial": null, "model": model, "size": 1, "offset": 0 },
        "declared": null, "counterfeit": null, "findings": findings })
}

/// Earlier results of some commands have name and version of the program in one text.
#[test]
fn the_program_is_an_object_or_a_text() {
    let with = |tool: Value| {
        let mut value = report("x", &json!([]));
        value["tool"] = tool;
        Form::Prom.write(&value).unwrap()
    };
    assert_eq!(with(json!({ "name": "nandscope", "version": "7.8.9" })), with(json!("nandscope 7.8.9")));
    assert_ne!(with(json!("nandscope 7.8.9")), with(json!("nandscope 7.8.8")), "no form has the version");
}

/// Whatever a card is called and a reason says, no form breaks.
#[test]
fn names_that_could_break_a_form() {
    for name in
        ["a\"b", "a\\", "\\\"", "<&>'\"", "a,b", "line\nbreak\r\n", "# SKIP \\# x", "ünï µ", "{card=\"x\"} 1", "\u{1}\u{7f}", "]]>", " "]
    {
        let f = json!([{ "quantity": "page", "value": null, "confidence": 0.0, "interval": null, "rivals": [], "evidence": [], "caveats": [], "reason": name },
            { "quantity": "erase_block", "value": 3072, "confidence": 0.5, "interval": [1024.0, 2048.0], "rivals": [], "evidence": [], "caveats": [] }]);
        let value = report(name, &f);
        assert_eq!(agree(&value, name), 3);
        let samples = prometheus(&Form::Prom.write(&value).unwrap());
        assert_eq!(samples[0].1[0], ("card".into(), name.to_string()), "{samples:?}");
        let rows = csv(&Form::Csv.write(&value).unwrap());
        assert!(rows[2].contains(&name.to_string()), "{rows:?}");
    }
    // A probability that cannot be, and results without facts, are said.
    let bad = json!([{ "quantity": "page", "value": 1, "confidence": 7.0, "interval": null, "rivals": [], "evidence": [], "caveats": [] }]);
    assert!(Form::Csv.write(&report("x", &bad)).unwrap_err().contains("not between 0 and 1"));
    for (value, says) in [
        (json!({ "schema": "nandscope-device/1" }), "nandscope-device/1 holds no"),
        (json!({}), "no schema"),
        (json!([]), "no schema"),
        (json!(3), "no schema"),
    ] {
        assert!(Form::Prom.write(&value).unwrap_err().contains(says), "{value}");
    }
}

/// Two cards of one model in one file, and one condition twice, are told apart: the collector refuses a repeated sample.
#[test]
fn nothing_comes_twice() {
    let figure = json!({ "name": "random read", "conditions": "4 KiB", "value": 7.5, "unit": "kB/s" });
    let card = json!({ "name": "SU08G", "files": ["a"], "findings": [], "figures": [figure, figure], "records": [], "flags": [] });
    let value = json!({ "schema": "nandscope-infer/1", "tool": { "version": "0.1.0" }, "cards": [card, card] });
    assert_eq!(agree(&value, "twice"), 4);
    let signals = Form::Lava.write(&value).unwrap();
    assert!(signals.contains("random_read-4-kib-again-2 ") && signals.contains("<LAVA_SIGNAL_TESTSET START 2-su08g>"), "{signals}");
    let samples = prometheus(&Form::Prom.write(&value).unwrap());
    assert!(samples.iter().filter(|s| s.0 == "nandscope_random_read_bytes_per_second").all(|s| s.2 == 7500.0));
}

/// A file is written beside and renamed, and nothing of a refused one is left.
#[test]
fn a_file_is_whole_or_not_there() {
    let dir = tempfile::tempdir().unwrap();
    let (_, _, code) = nandscope(dir.path(), &["check", "sim:toshiba-emmc", "-q", "--format", "prom", "-o", "card.prom"]);
    assert_eq!(code, 0);
    prometheus(&std::fs::read_to_string(dir.path().join("card.prom")).unwrap());
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["card.prom"]);
    std::fs::write(dir.path().join("list.json"), "{\"schema\": \"nandscope-device/1\"}").unwrap();
    let (out, why, code) = nandscope(dir.path(), &["report", "list.json", "--format", "tap", "-o", "list.tap"]);
    assert!(out.is_empty() && code == 1 && why.contains("list.json: nandscope-device/1 holds no findings"), "{why}");
    assert!(!dir.path().join("list.tap").exists());
    let (_, why, code) = nandscope(dir.path(), &["check", "sim:toshiba-emmc", "-q", "--json", "--format", "csv"]);
    assert!(code == 2 && why.contains("standard output takes one of"), "{why}");
    let (_, why, code) = nandscope(dir.path(), &["check", "sim:toshiba-emmc", "--format", "yaml"]);
    assert!(code == 2 && why.contains("jsonl") && why.contains("lava-results"), "{why}");
}

/// The example reads the lines of several cards with pandas and with DuckDB, and both say what the reports do.
#[test]
fn tables_are_read_by_pandas_and_duckdb() {
    let dir = tempfile::tempdir().unwrap();
    let (mut lines, mut want) = (String::new(), vec![]);
    for card in ["sim:flashbench-readme", "sim:toshiba-emmc"] {
        let (text, _, _) = nandscope(dir.path(), &["run", "read-boundary", card, "-q", "--format", "jsonl"]);
        let facts = text.lines().map(|l| serde_json::from_str::<Value>(l).unwrap());
        for f in facts.filter(|f| f["name"] == "erase_block") {
            let (value, confidence) = (f["value"].as_f64().unwrap(), f["confidence"].as_f64().unwrap());
            want.push(format!("{}  {value} bytes  {confidence:.2}", f["card"].as_str().unwrap()));
        }
        lines += &text;
    }
    assert_eq!(want.len(), 2);
    std::fs::write(dir.path().join("facts.jsonl"), lines).unwrap();
    for tool in ["pandas", "duckdb"] {
        let there = Command::new("python3").args(["-c", &format!("import {tool}")]).stderr(Stdio::null()).status();
        if !there.is_ok_and(|s| s.success()) {
            skip::skipped("facts as a table", &format!("{tool} is not installed"));
            continue;
        }
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/facts.py");
        let done = Command::new("python3").args([script, tool, "facts.jsonl"]).current_dir(dir.path()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&done.stdout).lines().collect::<Vec<_>>(), want, "{tool}: {done:?}");
    }
}
