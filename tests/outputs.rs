//! A path that cannot be written is told before anything is measured, and nothing is left where a result does not come to be.

use std::fs;
use std::process::Command;

#[test]
fn paths_are_tried_first() {
    let dir = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| {
        let out = Command::new(env!("CARGO_BIN_EXE_nandscope")).args(words).current_dir(dir.path()).output().unwrap();
        let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
        (out.status.code().unwrap(), text(out.stdout), text(out.stderr))
    };
    fs::write(dir.path().join("file"), "kept").unwrap();
    let card = "sim:toshiba-emmc";
    for words in [
        &["rate", card, "--json", "nodir/x"][..],
        &["check", card, "--json", "nodir/x"],
        &["check", card, "--format", "csv", "-o", "nodir/x"],
        &["check", card, "--history", "file"],
        &["probe", card, "--json", "nodir/x"],
        &["probe", card, "--twin", "nodir/x"],
        &["run", "scatter", card, "--json", "nodir/x"],
        &["ab", card, "--b", "split=8KiB", "--json", "nodir/x"],
        &["partitions", card, "--json", "nodir/x"],
        &["bench", card, "--html", "nodir/x"],
        &["bench", card, "--svg", "file/x"],
        &["frag", card, "--html", "nodir/x"],
        &["frag", card, "--svg", "nodir/x"],
        &["frag", card, "--gnuplot", "nodir/x"],
        &["uflip", card, "--out", "file/x"],
        &["erase", card, "--json=nodir/x"],
        &["layout", "prove", card, "--json", "nodir/x"],
    ] {
        let (code, out, err) = run(words);
        assert_eq!(code, 1, "{words:?}: {out}{err}");
        assert!(out.is_empty() && err.lines().last().is_some_and(|l| l.starts_with("nandscope: cannot ")), "{words:?}: {out}{err}");
    }
    let (code, out, err) = run(&["check", card, "--json", "-", "--format", "csv"]);
    assert!(code == 2 && out.is_empty() && err.lines().count() == 1, "{code} {out}{err}");
    let (code, ..) = run(&["ab", card, "--b", "default", "--json", "x.json", "--pairs", "1"]);
    assert_eq!(code, 2);
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["file"]);
    assert_eq!(fs::read_to_string(dir.path().join("file")).unwrap(), "kept");
}

#[test]
fn an_access_of_nothing_is_refused() {
    for load in ["read", "linear", "random", "unaligned"] {
        let words = ["ab", "sim:null", "--b", "split=8KiB", "--load", load, "--size", "0"];
        let out = Command::new(env!("CARGO_BIN_EXE_nandscope")).args(words).output().unwrap();
        let err = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.code() == Some(2) && err.contains("a sector or more"), "{load}: {:?} {err}", out.status);
    }
}
