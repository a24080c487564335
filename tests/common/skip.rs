//! What a test leaves out and why, in one line. `./test.sh` counts the lines at its end.
#![allow(dead_code)]

use std::io::Write;

/// Left out because of what this machine is: its kernel, its rights, its architecture, files that are not part of the project.
pub fn skipped(what: &str, why: &str) {
    let line = format!("skipped: {what}: {why}");
    eprintln!("{line}");
    let Some(path) = std::env::var_os("NANDSCOPE_SKIPPED") else { return };
    // One write call a line: tests of several processes append at the same time.
    let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
    file.and_then(|mut f| f.write_all(format!("{line}\n").as_bytes())).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

/// Left out because a program is not installed: a failure where NANDSCOPE_TOOLS=needed, as in continuous integration.
pub fn no_tool(what: &str, tool: &str) {
    let needed = std::env::var("NANDSCOPE_TOOLS").is_ok_and(|v| v == "needed");
    assert!(!needed, "{what}: {tool} is missing, and NANDSCOPE_TOOLS=needed");
    skipped(what, &format!("{tool} is missing"));
}

/// Whether long statistics and tests in real time are to be left out, as in `./test.sh` without `--all` (NANDSCOPE_SHORT=1); says so.
pub fn short(what: &str) -> bool {
    let short = std::env::var("NANDSCOPE_SHORT").is_ok_and(|v| v == "1");
    if short {
        skipped(what, "a long test; ./test.sh --all runs it");
    }
    short
}
