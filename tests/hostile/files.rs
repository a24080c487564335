//! Files that hold something else than they should, for each command that reads one.

use super::{civil, report, run};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Commands that read a file; FILE is it, GOOD a sound report, OUT a path to write to, PAGE one for a single file. All fail with exit code 1.
const COMMANDS: &[&str] = &[
    "infer FILE",
    "infer FILE FILE",
    "report FILE",
    "report FILE --html PAGE",
    "report FILE --svg OUT",
    "report GOOD --frag FILE --html PAGE",
    "compare FILE GOOD",
    "compare GOOD FILE",
    "survey --dir OUT add FILE",
    "layout audit sim:null --report FILE",
    "layout plan sim:null --for logger --report FILE",
    "layout prove sim:null --report FILE --rounds 3 --file 32KiB",
    "layout check FILE --start 4MiB",
    "format sim:null --measured FILE --dry-run",
    "identify --dump FILE",
    "identify --ext-csd FILE",
    "identify --health-block FILE",
    "cards check FILE",
    "probe FILE.toml -q",
    "serve FILE.toml",
    "sim FILE.toml --pattern SR",
    "sim sim:null --trace FILE -q",
    "flashbench --program FILE sim:null -q",
    "frag sim:null --profile FILE -q",
    "undo FILE",
    "undo FILE --discard --consent 1",
];

/// Nothing any reader can use.
fn rubbish() -> Vec<(&'static str, Vec<u8>)> {
    let mut x = 0x9e37_79b9_7f4a_7c15u64;
    let mut noise = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x as u8
    };
    let deep = |open: &str, inside: &str, close: &str| format!("{}{inside}{}", open.repeat(1000), close.repeat(1000)).into_bytes();
    vec![
        ("zeros", vec![0; 5000]),
        ("noise", (0..20_000).map(|_| noise()).collect()),
        ("utf16", "\u{feff}hello world\n".encode_utf16().flat_map(u16::to_le_bytes).collect()),
        ("escapes", b"\x1b]0;owned\x07\x1b[2J \x9b31m\n".repeat(20)),
        ("nul-lines", b"a\0b\n\0\0\n".repeat(1000)),
        ("deep-array", deep("[", "", "]")),
        ("deep-object", deep("{\"a\":", "1", "}")),
        ("deep-report", [b"{\"schema\":\"nandscope-report/1\",\"runs\":".to_vec(), deep("[", "", "]"), b"}".to_vec()].concat()),
        ("deep-toml", [b"a = ".to_vec(), deep("[", "", "]"), b"\n".to_vec()].concat()),
        ("deep-parens", deep("(", "1", ")")),
        ("deep-braces", deep("{", "", "}")),
        ("schema-99", b"{\"schema\":\"nandscope-report/99\"}".to_vec()),
        ("schema-only", b"{\"schema\":\"nandscope-report/1\"}".to_vec()),
        ("schema-number", b"{\"schema\":1}".to_vec()),
        ("frag-only", b"{\"schema\":\"nandscope-frag/1\"}".to_vec()),
        ("null", b"null".to_vec()),
        ("nan", b"{\"schema\":\"nandscope-report/1\",\"findings\":NaN}".to_vec()),
        ("infinite", b"1e999".to_vec()),
        ("numbers", "99999999999999999999999999999 -1 NaN inf 1e999\n".repeat(30).into_bytes()),
        ("requests", b"18446744073709551615 18446744073709551615 18446744073709551615 18446744073709551615 1\n".to_vec()),
        ("long-line", vec![b'x'; 3_000_000]),
        ("long-number", vec![b'1'; 3_000_000]),
    ]
}

/// Says what is wrong in one line that is not the file, and names the file.
fn one_clear_error(command: &str, name: &str, path: &Path, out: &Path, good: &str) {
    let [out, page] = ["out", "page.html"].map(|n| out.join(n).to_str().unwrap().to_string());
    let file = path.to_str().unwrap();
    let filled = |a: &str| a.replace("FILE", file).replace("GOOD", good).replace("OUT", &out).replace("PAGE", &page);
    let args: Vec<String> = command.split(' ').map(filled).collect();
    let what = format!("{command}, {name}");
    let r = run(&args.iter().map(String::as_str).collect::<Vec<_>>());
    civil(&r, &what);
    // 2: an option or a plan that cannot be used, what is neither a name that is known nor a file, a text in the place of a card, files that
    // do not go together.
    let usage = ["flashbench", "campaign", "sweep", "frag", "life", "identify", "infer FILE FILE"].iter().any(|c| command.starts_with(c));
    assert!(r.code == Some(1) || r.code == Some(2) && usage, "{what}: {:?} {}{}", r.code, r.out, r.err);
    assert_eq!(r.err.trim_end().lines().count(), 1, "{what}: {}", r.err);
    assert!(r.err.len() < 1600, "{what}: {}", r.err);
    let file = path.file_name().unwrap().to_str().unwrap();
    // What is wrong with two files at once names neither.
    let named = r.err.contains(file.trim_end_matches(".toml")) || command == "infer FILE FILE";
    assert!(named, "{what} names no file: {}", r.err);
}

#[test]
fn rubbish_is_one_clear_error_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    let (good, _) = report(dir.path());
    for (name, bytes) in rubbish() {
        let path = dir.path().join(name);
        fs::write(&path, &bytes).unwrap();
        fs::write(dir.path().join(format!("{name}.toml")), &bytes).unwrap();
        for command in COMMANDS {
            one_clear_error(command, name, &path, dir.path(), &good);
        }
    }
    // What is not there, a directory, nothing at all.
    fs::write(dir.path().join("empty"), "").unwrap();
    fs::write(dir.path().join("empty.toml"), "").unwrap();
    fs::create_dir(dir.path().join("directory")).unwrap();
    fs::create_dir(dir.path().join("directory.toml")).unwrap();
    for name in ["empty", "missing", "directory"] {
        // A pattern without a word is one that does nothing.
        for command in COMMANDS.iter().filter(|c| name != "empty" || !c.starts_with("flashbench")) {
            one_clear_error(command, name, &dir.path().join(name), dir.path(), &good);
        }
    }
}

/// Places in a report, and what is put there: a number that cannot be, a form that is none.
fn wrong() -> Vec<(&'static str, Value)> {
    let huge = json!(1e300);
    vec![
        ("/target/size", json!(-1)),
        ("/target/size", huge.clone()),
        ("/target/size", json!(0)),
        ("/findings/0/value", json!(4_194_305)),
        ("/findings/0/confidence", json!(7)),
        ("/findings/0/confidence", json!(-0.5)),
        ("/findings/0/value", huge.clone()),
        ("/findings/0/value", json!(-4096)),
        ("/findings/0/at_least", json!(-1)),
        ("/findings/0/rivals", json!([{ "value": 1, "probability": 1e9 }])),
        ("/findings", json!({})),
        ("/settings/region", json!([9_223_372_036_854_775_808u64, 0])),
        ("/settings/region", json!([0])),
        ("/runs/0/samples", Value::Null),
        ("/runs/0/samples/took", json!([1])),
        ("/runs/0/cells", json!([])),
        ("/schema", json!("nandscope-report/2")),
        ("/schema", json!("nandscope-survey/1")),
        ("/schema", Value::Null),
    ]
}

#[test]
fn a_report_of_impossible_numbers_is_refused_by_all() {
    let dir = tempfile::tempdir().unwrap();
    let (good, value) = report(dir.path());
    for (i, (place, new)) in wrong().into_iter().enumerate() {
        let mut bad = value.clone();
        match bad.pointer_mut(place) {
            Some(v) => *v = new.clone(),
            None => bad["findings"][0]["at_least"] = new.clone(),
        }
        let path = dir.path().join(format!("bad{i}"));
        fs::write(&path, bad.to_string()).unwrap();
        for command in COMMANDS
            .iter()
            .filter(|c| c.contains("report FILE") || c.contains("measured") || c.starts_with("compare") || c.starts_with("layout"))
        {
            one_clear_error(command, &format!("{place} {new}"), &path, dir.path(), &good);
        }
    }
    // Settings of a run may be any whole number: they make no panic and no page that is not one.
    for n in [i64::MIN, -1, 0, i64::MAX] {
        let mut odd = value.clone();
        odd["runs"]
            .as_array_mut()
            .unwrap()
            .iter_mut()
            .for_each(|r| r["setting"].as_object_mut().unwrap().values_mut().for_each(|v| *v = n.into()));
        let (path, page) = (dir.path().join("odd"), dir.path().join("odd.html"));
        fs::write(&path, odd.to_string()).unwrap();
        for args in [vec!["infer", path.to_str().unwrap()], vec!["report", path.to_str().unwrap(), "--html", page.to_str().unwrap()]] {
            let r = run(&args);
            civil(&r, &format!("{args:?} {n}"));
            assert!(matches!(r.code, Some(0 | 1 | 3 | 6)), "{args:?} {n}: {}", r.err);
        }
        assert!(!fs::read_to_string(&page).unwrap().contains("NaN"), "{n}");
    }
}

/// Editors and shells of other systems put a mark before a text, or save it as UTF-16: what it says stays.
#[test]
fn a_result_is_read_however_it_was_saved() {
    let dir = tempfile::tempdir().unwrap();
    let (good, value) = report(dir.path());
    let text = value.to_string();
    let utf16 = |f: fn(u16) -> [u8; 2], mark: [u8; 2]| mark.into_iter().chain(text.encode_utf16().flat_map(f)).collect::<Vec<u8>>();
    let mut said = vec![];
    for (kind, bytes) in [
        ("plain", text.as_bytes().to_vec()),
        ("marked", [&[0xef, 0xbb, 0xbf], text.as_bytes()].concat()),
        ("little", utf16(u16::to_le_bytes, [0xff, 0xfe])),
        ("big", utf16(u16::to_be_bytes, [0xfe, 0xff])),
    ] {
        // The name of the file is part of what is said.
        let path = dir.path().join("x.json");
        fs::write(&path, bytes).unwrap();
        let (path, survey) = (path.to_str().unwrap(), dir.path().join(kind));
        let add = ["survey", "--dir", survey.to_str().unwrap(), "add", path];
        let all = [&["infer", path][..], &["report", path], &["report", path, "--format", "csv"], &["compare", &good, path], &add];
        let out: Vec<String> = all
            .iter()
            .map(|args| {
                let r = run(args);
                assert!(matches!(r.code, Some(0 | 3)), "{kind} {args:?}: {}", r.err);
                r.out
            })
            .collect();
        said.push(out);
    }
    assert!(said.iter().all(|s| s[..4] == said[0][..4]));
}

/// A report of a later version may hold runs that nothing here can read: that is said, with their names, and the rest is inferred.
#[test]
fn runs_of_unknown_experiments_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let (good, mut value) = report(dir.path());
    assert_eq!(run(&["infer", &good]).err, "");
    for run in value["runs"].as_array_mut().unwrap().iter_mut().take(2) {
        run["experiment"] = json!("of-tomorrow\u{1b}[31m");
    }
    let path = dir.path().join("later.json");
    fs::write(&path, value.to_string()).unwrap();
    let r = run(&["infer", path.to_str().unwrap()]);
    civil(&r, "later.json");
    assert!(matches!(r.code, Some(0 | 3)) && r.err.lines().count() == 1, "{}", r.err);
    assert!(r.err.contains("does not know (of-tomorrow") && r.err.contains("later.json"), "{}", r.err);
}
