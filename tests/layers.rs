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
const APART: [&str; 4] = ["crates/sim/", "crates/fat/", "crates/stats/", "crates/bench-card/"];

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

/// Unit tests in a file of their own, beside the file they test or below it: `x_tests.rs` or `x/tests.rs`, compiled for tests only.
fn is_tests(path: &Path) -> bool {
    let Some(name) = path.file_stem().and_then(|n| n.to_str()).filter(|n| *n == "tests" || n.ends_with("_tests")) else { return false };
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
    ("infer", &["crate::device", "crate::experiment", "crate::report", "crate::cli", "crate::host", "crate::saved", "nandscope_sim"]),
    ("saved", &["crate::experiment", "crate::advise", "crate::report", "crate::cli", "nandscope_sim", "device::open"]),
    ("experiment", &["crate::advise", "crate::report", "crate::saved", "crate::cli", "crate::host", "nandscope_sim"]),
    ("advise", &["crate::experiment", "crate::report", "crate::cli", "nandscope_sim", "device::open"]),
    ("device", &["crate::infer", "crate::experiment", "crate::report", "crate::cli", "crate::finding"]),
    ("host", &["crate::infer", "crate::experiment", "crate::report", "crate::cli", "crate::finding"]),
    ("layout", &["crate::report", "crate::cli", "crate::experiment", "nandscope_sim", "device::open"]),
    ("report", &["crate::cli", "nandscope_sim", "device::open"]),
    ("ab.rs", &["crate::cli", "crate::report", "crate::infer", "nandscope_sim"]),
    ("flashbench", &["crate::infer", "crate::experiment", "crate::report", "crate::cli", "crate::host", "crate::finding", "nandscope_sim"]),
    ("lab", &["crate::report", "crate::cli", "nandscope_sim"]),
    ("volume", &["crate::infer", "crate::experiment", "crate::report", "crate::cli", "crate::finding", "nandscope_sim"]),
    ("workload", &["crate::report", "crate::cli", "nandscope_sim"]),
    ("probe.rs", &["crate::cli", "crate::report", "crate::advise", "nandscope_sim"]),
    ("compare", &["crate::cli", "crate::report", "crate::survey", "crate::device", "nandscope_sim"]),
    ("survey", &["crate::cli", "nandscope_sim", "device::open"]),
    ("twin", &["crate::experiment", "crate::advise", "crate::report", "crate::cli", "device::open"]),
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
    let allowed =
        ["device/sim.rs", "device/sim/", "device/mmc_sim.rs", "device/open.rs", "device/target.rs", "serve/", "cli/", "twin/", "sweep/"];
    let wrong: Vec<String> = all()
        .into_iter()
        .filter(|(f, _)| code(f).iter().any(|l| l.1.contains("nandscope_sim")))
        .map(|(_, name)| name)
        .filter(|f| !allowed.iter().any(|a| f.starts_with(a)))
        .collect();
    assert!(wrong.is_empty(), "these know the simulator: {wrong:?}");
}

/// Everything outside a crate reaches a room by one name, which its `lib.rs` gives: else the rules above would not see it.
#[test]
fn rooms_have_one_name_in_each_crate() {
    let other = |text: &str| {
        let names = text.match_indices("nandscope_").map(|(at, _)| &text[at + "nandscope_".len()..]);
        names.filter(|n| !n.starts_with(char::is_uppercase)).any(|n| ROOMS.iter().any(|r| n.starts_with(&format!("{r}::"))))
    };
    let wrong: Vec<String> =
        all().into_iter().filter(|(f, name)| name != "lib.rs" && code(f).iter().any(|l| other(&l.1))).map(|f| f.1).collect();
    assert!(wrong.is_empty(), "these go round their lib.rs: {wrong:?}");
    assert!(other("use nandscope_infer::infer;") && other("nandscope_device::device::open()") && !other("use nandscope_sim::Model;"));
}

/// Crates of rooms, without their prefix.
const ROOMS: [&str; 10] = ["device", "data", "infer", "measure", "files", "advise", "report", "survey", "serve", "twin"];

/// The simulator is arithmetic: the same numbers everywhere, at any speed.
#[test]
fn the_simulator_has_no_io_and_no_clock() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("DESIGN.md")).unwrap();
    assert!(text.contains("no I/O, no clock, no unsafe code"));
    for name in ["sim", "fat", "stats"] {
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates").join(name);
        let words = ["std::fs", "std::io", "std::net", "std::process", "std::thread", "std::time", "std::env", "Instant::now"];
        for file in sources(&home.join("src")) {
            let wrong: Vec<usize> = code(&file).iter().filter(|l| words.iter().any(|w| l.1.contains(w))).map(|l| l.0).collect();
            assert!(wrong.is_empty(), "{}: {wrong:?}", file.display());
        }
        assert!(fs::read_to_string(home.join("Cargo.toml")).unwrap().contains("unsafe_code = \"forbid\""), "{name}");
    }
}

/// The files of a room, without those of its own machinery.
fn names(room_name: &str, without: &[&str]) -> Vec<String> {
    let files = fs::read_dir(room(room_name)).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_file() && !is_tests(p));
    let mut names: Vec<String> = files.map(|p| p.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    names.retain(|n| n != "mod" && !without.contains(&n.as_str()));
    names
}

#[test]
fn an_experiment_is_two_files_of_one_name() {
    let measured = names("experiment", &["run"]);
    assert!(measured.len() > 15, "{measured:?}");
    // What `crates/infer/build.rs` looks for, and what `experiment` asks each of them for.
    let has = |room_name: &str, name: &str, line: &str| {
        let text = fs::read_to_string(room(room_name).join(format!("{name}.rs"))).unwrap_or_default();
        text.lines().any(|l| l.starts_with(line))
    };
    let concluded: Vec<String> = names("infer", &[]).into_iter().filter(|n| has("infer", n, "pub(super) const ANALYSES:")).collect();
    for name in &measured {
        assert!(has("experiment", name, "pub(super) const EXPERIMENTS:"), "experiment/{name}.rs has no EXPERIMENTS");
        assert!(concluded.contains(name), "infer/{name}.rs is missing, or has no ANALYSES");
    }
    assert_eq!(concluded.len(), measured.len(), "{concluded:?}");
}

/// Files that a page names in backticks, below any directory of sources.
fn named_files(page: &str) -> Vec<String> {
    let quoted = page.split('`').skip(1).step_by(2);
    let path = |w: &&str| w.contains('/') && w.chars().all(|c| c.is_ascii_alphanumeric() || "/_.-".contains(c));
    let file = |w: &&str| (w.ends_with(".rs") || w.ends_with(".tsv")) && !w.contains("NAME");
    quoted.filter(path).filter(file).map(|w| w.trim_start_matches("./").to_string()).collect()
}

#[test]
fn files_that_pages_name_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages: Vec<PathBuf> = ["DESIGN.md", "METHODS.md", "FORMATS.md", "CONTRIBUTING.md"].map(|n| root.join(n)).to_vec();
    pages.extend(fs::read_dir(root.join("docs")).unwrap().map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "md")));
    let mut places = homes();
    places.push(root.to_path_buf());
    // DESIGN.md shortens `samples/import/foreign` to `import/foreign`, and so on.
    places.extend(homes().iter().map(|h| h.join("samples")));
    let mut seen = 0;
    for page in pages {
        for name in named_files(&fs::read_to_string(&page).unwrap()) {
            seen += 1;
            assert!(places.iter().any(|p| p.join(&name).exists()), "{}: {name} is not there", page.display());
        }
    }
    assert!(seen >= 20, "{seen}");
    assert_eq!(named_files("`a/b.rs`, `c.rs`, `x/NAME.rs`, `./d/e.tsv`, `f/g.md`"), ["a/b.rs", "d/e.tsv"]);
}

#[test]
fn only_cli_and_report_print() {
    let design = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("DESIGN.md")).unwrap();
    assert!(design.contains("Only `report/` and `cli/` print."));
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

/// Rooms that only measure.
const MEASURING: [&str; 2] = ["experiment", "probe.rs"];

/// Lines of code that make a finding, or combine some: the word itself, or its fields.
fn findings_made(code: &[(usize, String)]) -> Vec<usize> {
    let makes = |text: &str| {
        let made = |word: &str| {
            let begins = |at: usize| !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            text.match_indices(word).any(|(at, _)| begins(at) && !text[..at].trim_end().ends_with("->"))
        };
        ["Finding::", "Finding {", "combine("].iter().any(|w| made(w))
    };
    code.iter().filter(|l| makes(&l.1)).map(|l| l.0).collect()
}

#[test]
fn no_finding_is_made_while_measuring() {
    let mut wrong = vec![];
    for name in MEASURING {
        let at = room(name);
        for file in if at.is_dir() { sources(&at) } else { vec![at] } {
            wrong.extend(findings_made(&code(&file)).iter().map(|line| format!("{}:{line}", file.display())));
        }
    }
    assert!(wrong.is_empty(), "findings are made in infer: {wrong:?}");
    // What the rule must see, and what it must not.
    let lines = |text: &str| text.lines().enumerate().map(|(i, l)| (i + 1, l.to_string())).collect::<Vec<_>>();
    let against = "fn infer(run: &Run) -> Vec<Finding> {\n    vec![Finding::decided(q, 1.0, 0.9)]\n}\nlet f = Finding { value: None, ..f };\n\
                   let g = crate::finding::Finding::undecided(q, why);\nlet all = combine(&both);";
    assert_eq!(findings_made(&lines(against)), [2, 4, 5, 6]);
    let within = "use crate::finding::{Finding, Findings};\nfn real(f: &Finding) -> Option<u64> {\nfn found(q: Quantity) -> Finding {\n\
                  let known = Findings::default();\nlet n = known.value(q, 0.5);";
    assert_eq!(findings_made(&lines(within)), []);
}

/// The table of rooms in DESIGN.md: each crate in order, with its rooms.
fn rooms_as_designed(text: &str) -> Vec<(String, Vec<String>)> {
    let quoted = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_string).collect::<Vec<String>>();
    let table = text.lines().skip_while(|l| !l.starts_with("| crate | room |")).skip(2).take_while(|l| l.starts_with('|'));
    let mut out: Vec<(String, Vec<String>)> = vec![];
    for line in table {
        let cells: Vec<&str> = line.split('|').collect();
        match quoted(cells[1]).pop() {
            Some(name) => out.push((name, quoted(cells[2]))),
            None => out.last_mut().unwrap().1.extend(quoted(cells[2])),
        }
    }
    out
}

/// Rooms that a `lib.rs` declares.
fn rooms_declared(lib: &str) -> Vec<String> {
    lib.lines().filter_map(|l| l.strip_prefix("pub mod ")?.strip_suffix(';')).map(str::to_string).collect()
}

/// What differs between the table and the sources, both ways.
fn table_against(designed: &[(String, Vec<String>)], built: &[(String, Vec<String>)]) -> Vec<String> {
    let mut wrong = vec![];
    for (name, rooms) in built {
        match designed.iter().find(|d| d.0 == *name) {
            None => wrong.push(format!("{name} is not in the table")),
            Some(d) => {
                wrong.extend(rooms.iter().filter(|r| !d.1.contains(r)).map(|r| format!("{name}: {r} is not in the table")));
                wrong.extend(d.1.iter().filter(|r| !rooms.contains(r)).map(|r| format!("{name}: there is no {r}")));
            }
        }
    }
    let there = |d: &&(String, Vec<String>)| !built.iter().any(|b| b.0 == d.0);
    wrong.extend(designed.iter().filter(there).map(|d| format!("there is no {}", d.0)));
    wrong
}

#[test]
fn the_table_of_rooms_is_true() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("DESIGN.md")).unwrap();
    let mut designed = rooms_as_designed(&text);
    assert!(designed.len() > 8, "the table has gone: {designed:?}");
    // Not a crate.
    designed.retain(|d| d.0 != "cards/" || !root.join("cards").is_dir());
    let rooms_of = |dir: &Path| {
        let lib = dir.join("src/lib.rs");
        // Crates that know nothing of the rest are one room.
        if apart(&dir.join("src")) || !lib.exists() { vec![] } else { rooms_declared(&fs::read_to_string(lib).unwrap()) }
    };
    let mut built: Vec<(String, Vec<String>)> = vec![("nandscope".into(), rooms_of(root))];
    for e in fs::read_dir(root.join("crates")).unwrap().map(|e| e.unwrap()) {
        built.push((format!("crates/{}", e.file_name().to_string_lossy()), rooms_of(&e.path())));
    }
    let wrong = table_against(&designed, &built);
    assert!(wrong.is_empty(), "DESIGN.md, Rooms: {wrong:?}");
    // Both kinds of difference are seen.
    let mut fewer = designed.clone();
    let gone = fewer.iter_mut().find(|d| !d.1.is_empty()).unwrap().1.pop().unwrap();
    assert!(table_against(&fewer, &built).iter().any(|w| w.contains(&gone)));
    designed[0].1.push("attic".into());
    designed.push(("crates/shed".into(), vec![]));
    assert_eq!(table_against(&designed, &built).len(), 2);
}

/// Names of the dependencies of a manifest that the program is built with.
fn needs(manifest: &str) -> Vec<String> {
    let table = manifest.lines().skip_while(|l| *l != "[dependencies]").skip(1).take_while(|l| !l.starts_with('['));
    table.filter_map(|l| l.split_once(" = ")).map(|l| l.0.to_string()).collect()
}

/// What a crate of the workspace needs, and what that needs.
fn all_needs(name: &str, manifests: &[(String, String)]) -> Vec<String> {
    let Some((_, text)) = manifests.iter().find(|m| m.0 == name) else { return vec![] };
    let own = needs(text);
    let further: Vec<String> = own.iter().filter_map(|n| n.strip_prefix("nandscope-")).flat_map(|n| all_needs(n, manifests)).collect();
    own.into_iter().chain(further).collect()
}

#[test]
fn crates_use_those_above_them_and_stay_light() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("DESIGN.md")).unwrap();
    let dirs = fs::read_dir(root.join("crates")).unwrap().map(|e| e.unwrap());
    let manifest = |dir: PathBuf| fs::read_to_string(dir.join("Cargo.toml")).unwrap();
    let manifests: Vec<(String, String)> = dirs.map(|e| (e.file_name().to_string_lossy().into_owned(), manifest(e.path()))).collect();
    let order: Vec<String> = rooms_as_designed(&text).into_iter().map(|r| r.0.replace("crates/", "")).collect();
    let place = |name: &str| order.iter().position(|o| o == name);
    for (name, text) in &manifests {
        for other in needs(text).iter().filter_map(|n| n.strip_prefix("nandscope-")) {
            assert!(place(other) < place(name), "{name} uses {other}, which the table has below it");
        }
    }
    let own = |name: &str| all_needs(name, &manifests).iter().filter(|n| n.starts_with("nandscope-")).count();
    assert!(
        text.contains("`crates/sim`, `crates/fat`, `crates/stats` and `crates/bench-card` use none")
            && ["sim", "fat", "stats", "bench-card"].iter().all(|n| own(n) == 0)
    );
    assert!(text.contains("build without clap, SQLite, PostgreSQL and FUSE"));
    for name in ["sim", "stats", "infer", "measure", "advise"] {
        let heavy: Vec<String> =
            all_needs(name, &manifests).into_iter().filter(|n| ["clap", "rusqlite", "postgres", "fuser"].contains(&n.as_str())).collect();
        assert!(heavy.is_empty(), "{name} needs {heavy:?}");
    }
    // Every crate from outside is named.
    let top = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let shared = top.lines().skip_while(|l| *l != "[workspace.dependencies]").skip(1).take_while(|l| !l.is_empty());
    let section = text.split("## Crates").nth(1).unwrap();
    for name in shared.filter_map(|l| l.split_once(" = ")).map(|l| l.0) {
        assert!(section.contains(name), "DESIGN.md, Crates: {name} is not named");
    }
}

#[test]
fn unsafe_code_lives_in_the_ioctl_and_buffer_files() {
    for home in homes() {
        for file in sources(&home) {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            if file.ends_with("device/buffer.rs") || name.ends_with("ioctl.rs") {
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
