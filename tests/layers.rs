//! The one rule, checked in the sources: a measurement passes once, forwards (DESIGN.md).

use std::fs;
use std::path::{Path, PathBuf};

/// The `src` directories of the program and of its crates.
fn homes() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = fs::read_dir(root.join("crates")).unwrap().map(|e| e.unwrap().path().join("src"));
    std::iter::once(root.join("src")).chain(crates.filter(|p| p.is_dir())).collect()
}

/// A room, a file or a directory, wherever it lives.
fn room(name: &str) -> PathBuf {
    let found: Vec<PathBuf> = homes().iter().filter(|h| !apart(h)).map(|h| h.join(name)).filter(|p| p.exists()).collect();
    assert_eq!(found.len(), 1, "{name} is at {found:?}; adapt this test");
    found[0].clone()
}

/// Crates with rules of their own: they know nothing of the rest.
const APART: [&str; 3] = ["crates/sim/", "crates/fat/", "crates/bench-card/"];

fn apart(path: &Path) -> bool {
    let below = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap();
    APART.iter().any(|a| below.starts_with(a))
}

/// Every source file of the rooms, with its path below the `src` it lies in.
fn all() -> Vec<(PathBuf, String)> {
    let of = |home: PathBuf| {
        let files = sources(&home).into_iter();
        files.map(move |f| (f.clone(), f.strip_prefix(&home).unwrap().display().to_string())).collect::<Vec<_>>()
    };
    homes().into_iter().filter(|h| !apart(h)).flat_map(of).collect()
}

fn sources(dir: &Path) -> Vec<PathBuf> {
    let mut out = vec![];
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            out.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") && !is_tests(&path) {
            out.push(path);
        }
    }
    out
}

/// Unit tests in a file of their own, beside the file they test: `x_tests.rs`, compiled for tests only.
fn is_tests(path: &Path) -> bool {
    let Some(name) = path.file_stem().and_then(|n| n.to_str()).filter(|n| n.ends_with("_tests")) else { return false };
    let file = format!("{name}.rs");
    let dir = path.parent().unwrap();
    let all = fs::read_dir(dir).unwrap().chain(fs::read_dir(dir.parent().unwrap()).unwrap());
    all.filter_map(|e| fs::read_to_string(e.unwrap().path()).ok()).any(|text| {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let at = lines.iter().position(|l| *l == format!("mod {name};") || l.contains(&format!("\"{file}\"")));
        at.is_some_and(|i| lines[i.saturating_sub(2)..i].contains(&"#[cfg(test)]"))
    })
}

/// Code lines without comments and without the unit tests at the end of a file.
fn code(path: &Path) -> Vec<(usize, String)> {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .take_while(|l| l.trim() != "mod tests {")
        .enumerate()
        .map(|(i, l)| (i + 1, l.split("//").next().unwrap_or("").to_string()))
        .collect()
}

/// Rooms (paths below src/) and what their code must not mention.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("units.rs", &["crate::device", "crate::infer", "crate::experiment", "crate::report", "crate::cli"]),
    ("finding.rs", &["crate::device", "crate::infer", "crate::experiment", "crate::report", "crate::cli", "nandscope_sim"]),
    ("samples", &["crate::infer", "crate::experiment", "crate::report", "crate::cli", "nandscope_sim"]),
    ("infer", &["crate::device", "crate::experiment", "crate::report", "crate::cli", "crate::host", "nandscope_sim"]),
    ("experiment", &["crate::report", "crate::cli", "crate::host", "nandscope_sim"]),
    ("device", &["crate::infer", "crate::experiment", "crate::report", "crate::cli", "crate::finding"]),
    ("host", &["crate::infer", "crate::experiment", "crate::report", "crate::cli", "crate::finding"]),
    ("layout", &["crate::report", "crate::cli", "crate::experiment", "nandscope_sim", "device::open"]),
    ("report", &["crate::cli", "nandscope_sim", "device::open"]),
    ("ab.rs", &["crate::cli", "crate::report", "crate::infer", "nandscope_sim"]),
    ("flashbench", &["crate::infer", "crate::experiment", "crate::report", "crate::cli", "crate::host", "crate::finding", "nandscope_sim"]),
    ("lab", &["crate::report", "crate::cli", "nandscope_sim"]),
    ("volume", &["crate::infer", "crate::experiment", "crate::report", "crate::cli", "crate::finding", "nandscope_sim"]),
    ("workload", &["crate::report", "crate::cli", "nandscope_sim"]),
    ("probe.rs", &["crate::cli", "nandscope_sim"]),
    ("compare", &["crate::cli", "crate::report", "crate::survey", "crate::device", "nandscope_sim"]),
    ("survey", &["crate::cli", "nandscope_sim", "device::open"]),
    ("life", &["crate::cli", "crate::device::open", "nandscope_sim"]),
];

#[test]
fn no_use_against_the_arrow() {
    let mut wrong = vec![];
    for (name, words) in FORBIDDEN {
        let at = room(name);
        let files = if at.is_dir() { sources(&at) } else { vec![at] };
        assert!(!files.is_empty(), "{name} is empty; adapt this test");
        for file in files {
            for (line, text) in code(&file) {
                wrong.extend(words.iter().filter(|w| text.contains(**w)).map(|w| format!("{}:{line}: {w}", file.display())));
            }
        }
    }
    assert!(wrong.is_empty(), "against the arrow:\n{}", wrong.join("\n"));
}

/// Detectors never see a model: only the device that carries a card, the server and the commands about cards do.
#[test]
fn only_carriers_know_the_simulator() {
    let allowed = ["device/sim.rs", "device/mmc_sim.rs", "device/open.rs", "device/target.rs", "serve/", "cli/"];
    let wrong: Vec<String> = all()
        .into_iter()
        .filter(|(f, _)| code(f).iter().any(|l| l.1.contains("nandscope_sim")))
        .map(|(_, name)| name)
        .filter(|f| !allowed.iter().any(|a| f.starts_with(a)))
        .collect();
    assert!(wrong.is_empty(), "these know the simulator: {wrong:?}");
}

#[test]
fn only_cli_and_report_print() {
    let mut wrong = vec![];
    for (file, name) in all() {
        if name.starts_with("cli/") || name.starts_with("report/") {
            continue;
        }
        for (line, text) in code(&file) {
            if ["println!", "print!", "eprint!", "dbg!"].iter().any(|m| text.contains(m)) {
                wrong.push(format!("{name}:{line}"));
            }
        }
    }
    assert!(wrong.is_empty(), "these print: {wrong:?}");
}

#[test]
fn unsafe_code_lives_in_the_ioctl_and_buffer_files() {
    for home in homes() {
        for file in sources(&home) {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            if name == "buffer.rs" || name.ends_with("ioctl.rs") {
                continue;
            }
            assert!(
                !code(&file).iter().any(|l| l.1.contains("unsafe {") || l.1.contains("unsafe fn")),
                "{} has unsafe code",
                file.display()
            );
        }
    }
}
