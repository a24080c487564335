//! The program with the second family of cards, built when a test or the tool that fits confidence needs it.
#![allow(dead_code)]

use nandscope::device::{Consent, Device, Limits, OpenOptions, open};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

pub fn bench_card() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        // Tests run from target/PROFILE/deps, examples from target/PROFILE/examples.
        let place = std::env::current_exe().unwrap().parent().and_then(Path::parent).unwrap().to_path_buf();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--offline", "-p", "nandscope-bench-card", "--target-dir"]).arg(place.parent().unwrap());
        if place.ends_with("release") {
            cargo.arg("--release");
        }
        let done = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        place.join("bench-card")
    })
}

/// What a card of the second generator says is inside it; `more` are parameters that are set.
pub fn told(kind: &str, seed: u64, more: &str) -> Value {
    said(kind, seed, more, "--truth")
}

/// Units that it writes for each that a host writes at random, in the long run.
pub fn amplification(kind: &str, seed: u64, more: &str) -> f64 {
    said(kind, seed, more, "--amplification").as_f64().unwrap()
}

fn said(kind: &str, seed: u64, more: &str, what: &str) -> Value {
    let seed = seed.to_string();
    let args = [kind, &seed].into_iter().chain(more.split_whitespace()).chain([what]);
    serde_json::from_slice(&Command::new(bench_card()).args(args).output().unwrap().stdout).unwrap()
}

/// Such a card, that so many bytes may be written to.
pub fn on_bench(kind: &str, seed: u64, more: &str, writes: u64) -> impl Device + use<> {
    let target = format!("exec:{} {kind} {seed} {more}", bench_card().display());
    let opened = open(target.trim_end(), &OpenOptions::default()).unwrap();
    let consent = Consent::check(opened.id(), None).unwrap();
    opened.writable(&consent, &Limits { budget: writes, ..Limits::default() }).unwrap()
}
