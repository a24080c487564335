//! Names with markup, slashes, NUL, terminal control and SQL, wherever a name comes out again: pages, the site of a survey, its
//! database, the history of checks, messages.

use super::{civil, report, run};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// What would run, break out of an attribute, an element or a script, leave a directory, or change a database.
const NAMES: &[&str] = &[
    "<img src=x onerror=alert(1)>",
    "\"><script>alert(2)</script>",
    "</script></style></title><script>alert(3)</script>",
    "<!--",
    "' onmouseover='alert(4)",
    "javascript:alert(5)",
    "../../../../etc/passwd",
    "/etc/passwd",
    "a/../../b",
    "x'); DROP TABLE cards; --",
    "\"; DELETE FROM cards WHERE \"1\"=\"1",
    "%s%n{}{0}$1",
    "=HYPERLINK(\"http://x\")",
    "\u{1b}]0;owned\u{7}\u{1b}[2J",
    "nul\u{0}byte",
    "\u{202e}gnp.exe",
];

/// A page in which none of the names is anything but text.
fn harmless(page: &str, what: &str) {
    for tag in ["<img", "<script>alert", "<!--"] {
        assert!(!page.contains(tag), "{what}: {tag}");
    }
    for attribute in page.split("href=\"").skip(1).chain(page.split("src=\"").skip(1)) {
        let to = attribute.split('"').next().unwrap();
        assert!(!to.to_lowercase().starts_with("javascript:"), "{what}: {to}");
    }
    // Nothing ends the two elements of data early.
    assert_eq!(page.matches("<script").count(), page.matches("</script>").count(), "{what}");
    assert!(!page.contains('\u{1b}') && !page.contains('\0'), "{what}");
}

/// All files below a directory.
fn tree(dir: &Path) -> Vec<PathBuf> {
    let mut out = vec![];
    for e in fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()) {
        if e.is_dir() { out.extend(tree(&e)) } else { out.push(e) }
    }
    out.sort();
    out
}

fn page(args: &[&str], to: &Path) -> String {
    let r = run(args);
    civil(&r, &format!("{args:?}"));
    assert!(matches!(r.code, Some(0 | 3 | 6)), "{args:?}: {}", r.err);
    fs::read_to_string(to).unwrap()
}

/// Every text of a report that a page or a terminal shows.
fn named(value: &Value, name: &str) -> Value {
    let mut v = value.clone();
    v["target"]["model"] = json!(name);
    v["target"]["path"] = json!(name);
    v["settings"]["asked"] = json!(name);
    v["tool"]["version"] = json!(name);
    v["warnings"] = json!([name]);
    v["advice"] = json!([name]);
    v["declared"] = json!({ "kind": "mmc", "name": name, "maker": name, "notes": [name], "warnings": [name] });
    v["host"]["machine"] = json!(name);
    v["host"]["kernel"] = json!(name);
    for f in v["findings"].as_array_mut().unwrap() {
        (f["evidence"], f["caveats"], f["reason"]) = (json!([name]), json!([name]), json!(name));
        f["from"].as_array_mut().unwrap().push(json!(name));
    }
    for r in v["runs"].as_array_mut().unwrap() {
        r["faults"] = json!([name]);
        r["cells"].as_array_mut().unwrap().iter_mut().for_each(|c| c["label"] = json!(name));
    }
    v["runs"][0]["experiment"] = json!(name);
    v
}

#[test]
fn the_page_and_the_text_of_a_report() {
    let dir = tempfile::tempdir().unwrap();
    let (_, value) = report(dir.path());
    let (json, html) = (dir.path().join("r.json"), dir.path().join("r.html"));
    let file = json.to_str().unwrap();
    for name in NAMES {
        fs::write(&json, named(&value, name).to_string()).unwrap();
        harmless(&page(&["report", file, "--html", html.to_str().unwrap()], &html), name);
        let again = format!("{file}.again");
        std::fs::copy(file, &again).unwrap();
        for args in [&["report", file][..], &["infer", file], &["compare", file, &again]] {
            civil(&run(args), &format!("{args:?} {name:?}"));
        }
    }
}

/// A file of this name, where a file can have it.
fn file_named(dir: &Path, name: &str) -> Option<PathBuf> {
    (!name.contains(['/', '\0'])).then(|| dir.join(name))
}

#[test]
fn pages_of_images_with_odd_names() {
    let dir = tempfile::tempdir().unwrap();
    let html = dir.path().join("p.html");
    let to = html.to_str().unwrap();
    for name in NAMES.iter().filter(|n| n.contains('<')) {
        let Some(image) = file_named(dir.path(), name) else { continue };
        fs::File::create(&image).unwrap().set_len(24 << 20).unwrap();
        let (target, consent) = (image.to_str().unwrap(), (24 << 20).to_string());
        let r = run(&["format", target, "--consent", &consent, "-q"]);
        assert_eq!((r.code, r.out.as_str()), (Some(0), ""), "{}", r.err);
        harmless(&page(&["map", target, "--html", to], &html), name);
        harmless(
            &page(&["bench", target, "--write", "--file", "100kB", "--record", "512", "--consent", &consent, "-q", "--html", to], &html),
            name,
        );
        let frag = [
            "frag",
            target,
            "--consent",
            &consent,
            "--sizes",
            "512",
            "--repeats",
            "1",
            "--passes",
            "1",
            "--folder",
            "0",
            "--largest",
            "100kB",
            "-q",
        ];
        harmless(&page(&[&frag[..], &["--html", to]].concat(), &html), name);
        fs::remove_file(image).unwrap();
    }
}

/// A card model names itself; its texts are kept as they are and come out as text.
#[test]
fn card_models_with_odd_names() {
    let dir = tempfile::tempdir().unwrap();
    let (model, json, html) = (dir.path().join("m.toml"), dir.path().join("r.json"), dir.path().join("r.html"));
    for name in NAMES.iter().filter(|n| n.contains(['<', '\u{1b}', '/'])) {
        let text = |s: &str| Value::from(s).to_string().replace("\\u0000", "");
        let card = "[card]\ncapacity = \"64 MiB\"\n[nand]\npage = \"512 B\"\nerase_block = \"4 MiB\"\n[ftl]\nkind = \"none\"\n";
        fs::write(&model, format!("name = {0}\nabout = {0}\n{card}", text(name))).unwrap();
        let file = model.to_str().unwrap();
        civil(&run(&["cards", "check", file]), name);
        let r = run(&["probe", file, "-q", "--read-only", "--time", "1s", "--json", json.to_str().unwrap()]);
        civil(&r, name);
        if matches!(r.code, Some(0 | 3)) {
            harmless(&page(&["report", json.to_str().unwrap(), "--html", html.to_str().unwrap()], &html), name);
        }
    }
}

#[test]
fn a_survey_and_its_site() {
    let dir = tempfile::tempdir().unwrap();
    let (_, value) = report(dir.path());
    let log = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/figures/record-bench.txt");
    let text = fs::read_to_string(log).unwrap();
    let (store, site) = (dir.path().join("survey"), dir.path().join("site"));
    let survey = |args: &[&str]| {
        let r = run(&[&["survey", "--dir", store.to_str().unwrap()], args].concat());
        civil(&r, &format!("{args:?}"));
        r
    };
    let before = tree(dir.path()).len();
    let mut added = 0;
    for (i, name) in NAMES.iter().enumerate() {
        let json = dir.path().join("r.json");
        fs::write(&json, named(&value, name).to_string()).unwrap();
        assert_eq!(survey(&["add", json.to_str().unwrap()]).code, Some(0), "{name:?}");
        added += 1;
        if name.contains('\0') {
            continue;
        }
        let own = dir.path().join("log.txt");
        fs::write(&own, text.replace("26.0", &format!("26.{i}")) + &format!("\nnumber {i}\n")).unwrap();
        let words = ["--name", "--maker", "--part", "--host", "--lot", "--url", "--note"].iter().flat_map(|w| [*w, name]);
        let args: Vec<&str> = ["add", own.to_str().unwrap()].into_iter().chain(words).collect();
        assert_eq!(survey(&args).code, Some(0), "{name:?}");
        added += 1;
        // As a condition it is a word to look for, or a condition that is none; the cards are there still.
        let _ = survey(&["search", "--", name]);
        let _ = survey(&["show", "--", name]);
        let _ = survey(&["remove", "--", &format!("{name}x")]);
    }
    let listed = survey(&["list", "--all", "--json"]).out;
    let own = listed.lines().filter(|l| !l.contains("\"ref-")).count();
    assert_eq!(own, added, "{listed}");
    assert_eq!(survey(&["site", site.to_str().unwrap()]).code, Some(0));
    for f in tree(&site) {
        if f.extension().is_some_and(|e| e == "html") {
            harmless(&fs::read_to_string(&f).unwrap(), f.to_str().unwrap());
        }
    }
    for format in ["csv", "wiki", "jsonl"] {
        let r = run(&["survey", "--dir", store.to_str().unwrap(), "export", "--format", format]);
        // Lines of CSV end in CR LF.
        civil(&super::Ran { out: r.out.replace("\r\n", "\n"), ..r }, format);
    }
    // Nothing was written but the survey, the site and the two inputs.
    let outside = tree(dir.path()).into_iter().filter(|p| !p.starts_with(&store) && !p.starts_with(&site)).count();
    assert_eq!(outside, before + 2);
}

#[test]
fn a_history_of_checks_stays_in_its_directory() {
    let dir = tempfile::tempdir().unwrap();
    let history = dir.path().join("a/history");
    let image = dir.path().join("<img src=x>..%2f..");
    fs::File::create(&image).unwrap().set_len(16 << 20).unwrap();
    for name in [image.to_str().unwrap(), "sim:null?seed=2"] {
        let r = run(&["check", name, "--quick", "--read-only", "-q", "--history", history.to_str().unwrap()]);
        civil(&r, name);
    }
    let files = tree(&dir.path().join("a"));
    assert!(!files.is_empty() && files.iter().all(|f| f.parent() == Some(&history)), "{files:?}");
    for f in &files {
        fs::write(f, "{\"schema\":1}").unwrap();
    }
    let r = run(&["check", "sim:null?seed=2", "--quick", "--read-only", "-q", "--history", history.to_str().unwrap()]);
    assert!(r.code == Some(1) && r.err.lines().count() == 1 && r.err.contains("remove it to begin anew"), "{}", r.err);
}
