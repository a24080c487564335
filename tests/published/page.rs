//! `docs/published.md`: the answers to all published logs.

use super::*;
use std::fmt::Write;
use std::path::PathBuf;

/// The source of a log, short: of a repository its address and licence.
fn place(source: &str) -> String {
    let plain = source.split(" (repository").next().unwrap_or(source).split("; text id").next().unwrap_or(source);
    let whole = if plain.matches('(').count() > plain.matches(')').count() { format!("{plain})") } else { plain.to_string() };
    let Some(rest) = source.strip_prefix("https://github.com/") else { return whole };
    let repository: Vec<&str> = rest.split(['/', ' ']).take(2).collect();
    let licence = ["MIT", "BSD"].iter().find_map(|l| source.find(&format!("({l}"))).map_or("", |i| &source[i..]);
    format!("https://github.com/{} {licence}", repository.join("/")).trim_end().to_string()
}

/// The table of all answers, in the docs.
#[test]
fn the_table_in_the_docs_is_current() {
    let Some(logs) = logs("the table in the docs is current") else { return };
    let page = docs_page(logs);
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/published.md");
    if std::env::var_os("NANDSCOPE_WRITE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    // A last digit of a confidence may differ between machines.
    let answers = |s: &str| s.split('(').map(|p| p.split_once(" %)").map_or(p, |x| x.1).to_string()).collect::<Vec<_>>();
    assert!(answers(&stored) == answers(&page), "docs/published.md is out of date: NANDSCOPE_WRITE=1 cargo test --test published");
}

fn docs_page(logs: Vec<(String, Vec<u8>)>) -> String {
    let shown = [
        (Quantity::EraseBlock, "erase block"),
        (Quantity::Page, "page"),
        (Quantity::AccessUnit, "multi-plane page"),
        (Quantity::OpenAusLinear, "open AUs, sequential"),
        (Quantity::OpenAusRandom, "open AUs, random"),
        (Quantity::CloseCostMs, "merge cost"),
        (Quantity::WriteUnit, "write unit"),
        (Quantity::FatZone, "FAT zone"),
        (Quantity::FileWriteRate, "file write"),
        (Quantity::FileReadRate, "file read"),
        (Quantity::WorstWriteMs, "longest write"),
    ];
    let mut out = String::from(
        "# What is read from published logs\n\n\
         Each row is one log of another tool on a real card. The logs are their authors' and not part of this project; where each \
         was published stands below the table. An answer \
         carries its confidence; a dash means that the log has no table that could tell, \"undecided\" that it has one and does \
         not. Nothing but the rows of the log is used: not the name of the card, not what its author concluded.\n\n\
         `NANDSCOPE_WRITE=1 cargo test --test published` writes this page; the same test fails when it is out of date.\n\n",
    );
    let _ = writeln!(out, "| log | {} |", shown.map(|s| s.1).join(" | "));
    let _ = writeln!(out, "|---|{}", "---|".repeat(shown.len()));
    let mut sources: Vec<(String, Vec<String>)> = vec![];
    for (name, bytes) in logs {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let source = place(text.lines().find_map(|l| l.strip_prefix("# source: ")).unwrap_or("not known"));
        match sources.iter_mut().find(|s| s.0 == source) {
            Some(s) => s.1.push(name.clone()),
            None => sources.push((source, vec![name.clone()])),
        }
        let f = infer(&read(&[(&name, &bytes)]).unwrap());
        let cell = |q| f.get(q).map_or("-".into(), answer);
        let _ = writeln!(out, "| {name} | {} |", shown.map(|s| cell(s.0)).join(" | "));
    }
    out.push_str("\nWhere they were published:\n\n");
    for (source, names) in sources {
        let _ = writeln!(out, "- {}: {source}", names.join(", "));
    }
    out.push_str("\nWhat an expert reads from the same rows is in `tests/published.rs`.\n");
    out
}
