//! Hostile input for every command that reads a file: one clear error and a code of its own, no panic, no hang, bounded memory, nothing
//! that steers the terminal; and names with markup, slashes, NUL and SQL wherever a name comes out again.

#[path = "hostile/files.rs"]
mod files;
#[path = "hostile/names.rs"]
mod names;
#[path = "hostile/size.rs"]
mod size;

use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Runs the program with at most so many MiB of memory.
pub fn within(mib: u64, args: &[&str]) -> Ran {
    let mut c = Command::new(env!("CARGO_BIN_EXE_nandscope"));
    let home = std::env::temp_dir();
    // A command that may not have more memory than that is told so by the kernel.
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -v $0 && exec \"$@\"", &(mib * 1024).to_string()]).arg(c.get_program());
    limited.args(args).env("XDG_STATE_HOME", &home).env("NO_COLOR", "1").stdin(Stdio::null()).process_group(0);
    c = limited;
    let out = c.output().unwrap();
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    Ran { code: out.status.code(), out: text(&out.stdout), err: text(&out.stderr) }
}

pub fn run(args: &[&str]) -> Ran {
    within(4096, args)
}

/// A report of a small probe, and the same as JSON.
pub fn report(dir: &Path) -> (String, Value) {
    let path = dir.join("good.json").to_str().unwrap().to_string();
    let r = run(&["probe", "sim:flashbench-readme", "--read-only", "-q", "--time", "20s", "--json", &path]);
    assert!(matches!(r.code, Some(0 | 3)), "{}", r.err);
    let value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    (path, value)
}

/// No panic, no signal, no character that a terminal would obey.
pub fn civil(r: &Ran, what: &str) {
    assert!(r.code.is_some_and(|c| c < 100), "{what}: {:?} {}", r.code, r.err);
    assert!(!r.err.contains("panicked"), "{what}: {}", r.err);
    let steers = |c: char| c.is_control() && c != '\n' && c != '\t';
    assert!(!r.err.contains(steers) && !r.out.contains(steers), "{what}: {:?} {:?}", r.err, r.out);
}
