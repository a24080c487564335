//! Numbers of an internal list say nothing to a reader: they are in no text that users see.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// "(G7)", "C17": a letter of the list and one or two digits, alone.
fn identifiers(text: &str) -> Vec<String> {
    let mut out = vec![];
    let bytes = text.as_bytes();
    for (i, c) in text.char_indices().filter(|(_, c)| "CFGPQ".contains(*c)) {
        let digits = bytes[i + 1..].iter().take_while(|b| b.is_ascii_digit()).count();
        let part = |b: &u8| b.is_ascii_alphanumeric() || b"_/.#=".contains(b);
        let (before, after) = (i.checked_sub(1).map(|j| bytes[j]), bytes.get(i + 1 + digits));
        // Speed classes of SD cards.
        let class = ["C2", "C4", "C6", "C10"].contains(&&text[i..i + 1 + digits]) && before.is_none_or(|b| b != b'(');
        let word = class || before.is_some_and(|b| part(&b) || b == b'-') || after.is_some_and(|b| part(b) && *b != b'.');
        if (1..=2).contains(&digits) && !word {
            out.push(text[i..=i + digits].to_string());
            let _ = c;
        }
    }
    out
}

fn files(dir: &Path, ends: &[&str]) -> Vec<PathBuf> {
    let mut out = vec![];
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            out.extend(files(&path, ends));
        } else if path.extension().and_then(|e| e.to_str()).is_some_and(|e| ends.contains(&e)) {
            out.push(path);
        }
    }
    out
}

/// String literals of a source, without comments, tests and the list of what an experiment covers.
fn literals(source: &str) -> String {
    let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or("");
    let mut out = String::new();
    for line in code.lines().filter(|l| !l.trim_start().starts_with("//") && !l.trim_start().starts_with("covers:")) {
        let pieces: Vec<&str> = line.split('"').collect();
        // A help text is a doc comment of an argument; those are seen by running --help.
        for piece in pieces.iter().skip(1).step_by(2) {
            out.push_str(piece);
            out.push('\n');
        }
    }
    out
}

/// Words that the field does not use, or that say less than another one. Each is followed by the one to take.
const BANNED: [(&str, &str); 22] = [
    ("surely", "with high confidence"),
    ("foretell", "predict"),
    ("foretold", "predicted"),
    ("foretells", "predicts"),
    ("in turn", "interleaved, round robin"),
    ("closing an AU", "a merge"),
    ("closes an AU", "incurs a merge"),
    ("linear order", "sequential order"),
    ("linear writes", "sequential writes"),
    ("linear write", "sequential write"),
    ("throws out", "evicts"),
    ("stays open", "is kept open"),
    ("stay open", "are kept open"),
    ("piece of the map", "translation page"),
    ("pieces of the map", "translation pages"),
    ("access unit", "multi-plane page"),
    ("access units", "multi-plane pages"),
    ("wraps round", "wraparound"),
    ("gathers", "coalesces, collects"),
    ("dear", "expensive, slow"),
    ("pays for", "is slow, incurs a merge"),
    ("cannot be told", "cannot be distinguished, is not known"),
];

/// Banned words of a text, as words of their own.
fn banned(text: &str) -> Vec<String> {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let alone = |at: usize, word: &str| {
        !text[..at].chars().next_back().is_some_and(part) && !text[at + word.len()..].chars().next().is_some_and(part)
    };
    let all = BANNED.iter().flat_map(|(word, better)| text.match_indices(word).map(move |(at, _)| (at, *word, *better)));
    all.filter(|(at, word, _)| alone(*at, word)).map(|(_, word, better)| format!("\"{word}\": {better}")).collect()
}

#[test]
fn words_of_the_field_are_used() {
    assert_eq!(banned("two AUs in turn; it return turns, a dear-bought linear write").len(), 2);
    let mut wrong = vec![];
    let sources = files(Path::new("src"), &["rs"]).into_iter().chain(files(Path::new("crates"), &["rs"]));
    let shipped = |p: &PathBuf| p.components().any(|c| c.as_os_str() == "src") && !p.to_string_lossy().contains("_tests");
    for path in sources.filter(shipped) {
        wrong.extend(banned(&literals(&fs::read_to_string(&path).unwrap())).iter().map(|w| format!("{}: {w}", path.display())));
    }
    let pages = ["README.md", "FORMATS.md", "CONTRIBUTING.md", "SECURITY.md"].map(PathBuf::from);
    for path in files(Path::new("docs"), &["md"]).into_iter().chain(pages) {
        wrong.extend(banned(&fs::read_to_string(&path).unwrap()).iter().map(|w| format!("{}: {w}", path.display())));
    }
    // What stands between fences was printed, or is a form of its own.
    for path in ["METHODS.md", "DESIGN.md"] {
        let text = fs::read_to_string(path).unwrap();
        let prose: Vec<&str> = text.split("```").step_by(2).collect();
        wrong.extend(banned(&prose.join("\n")).iter().map(|w| format!("{path}: {w}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn identifiers_are_recognised() {
    assert_eq!(identifiers("once a card thrashes (Q1), as G14 says; (C17)."), ["Q1", "G14", "C17"]);
    assert!(identifiers("PC 16 GB, C0FFEE, CMD23, F2FS, P100, UHS-C10, /dev/P1, \"F32\": FAT32, C99x").iter().all(|i| i == "F32"));
}

#[test]
fn no_source_prints_one() {
    let mut wrong = vec![];
    // A crate's tests and benches may name what they cover.
    let shipped = |p: &PathBuf| p.components().any(|c| c.as_os_str() == "src");
    let all = |ends: &[&str]| files(Path::new("src"), ends).into_iter().chain(files(Path::new("crates"), ends)).filter(shipped);
    for path in all(&["rs"]) {
        if path.to_string_lossy().contains("_tests") {
            continue;
        }
        for id in identifiers(&literals(&fs::read_to_string(&path).unwrap())) {
            wrong.push(format!("{}: {id}", path.display()));
        }
    }
    for path in all(&["js", "css"]).filter(|p| !p.to_string_lossy().contains("uplot")) {
        wrong.extend(identifiers(&fs::read_to_string(&path).unwrap()).iter().map(|id| format!("{}: {id}", path.display())));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn no_page_and_no_output_has_one() {
    let mut wrong = vec![];
    let snapshots = files(Path::new("tests/cli"), &["md", "stdout"]);
    for path in
        snapshots.into_iter().chain(files(Path::new("docs"), &["md", "svg"])).chain([PathBuf::from("README.md"), "FORMATS.md".into()])
    {
        wrong.extend(identifiers(&fs::read_to_string(&path).unwrap()).iter().map(|id| format!("{}: {id}", path.display())));
    }
    // C99 and C11 are languages.
    wrong.retain(|w| !w.ends_with(": C99") && !w.ends_with(": C11"));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn no_help_has_one() {
    let run = |args: &[&str]| String::from_utf8(Command::new(env!("CARGO_BIN_EXE_nandscope")).args(args).output().unwrap().stdout).unwrap();
    let manual = run(&["man"]);
    assert!(manual.len() > 1000);
    assert_eq!(identifiers(&manual), Vec::<String>::new());
    let help = run(&["--help"]);
    let commands: Vec<&str> = help.lines().take_while(|l| *l != "Options:").filter_map(|l| l.strip_prefix("  ")).collect();
    assert!(commands.len() >= 25, "{help}");
    for command in commands {
        let name = command.split_whitespace().next().unwrap();
        let text = run(&[name, "--help"]) + &run(&["man", name]);
        assert_eq!(identifiers(&text), Vec::<String>::new(), "{name}");
    }
}

/// Those who want to read on find the article, the survey and the list, in the program and in its pages.
#[test]
fn the_program_says_where_to_read_on() {
    let help = Command::new(env!("CARGO_BIN_EXE_nandscope")).args(["flashbench", "--help"]).output().unwrap().stdout;
    let page = fs::read_to_string("docs/flashbench.md").unwrap();
    let html = nandscope::report::words::READING.iter().map(|r| r.1).collect::<Vec<_>>().join(" ");
    for text in [String::from_utf8(help).unwrap(), page, html] {
        for address in ["https://lwn.net/Articles/428584/", "FlashCardSurvey", "flashbench-results@lists.linaro.org"] {
            assert!(text.contains(address), "{address}");
        }
    }
}
