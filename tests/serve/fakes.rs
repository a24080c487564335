//! Counterfeits as block devices, with the defaults of the command line: found, named, put back; and cards that go away.

use crate::bed::*;
use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// A card of 2 GB that holds `real` MiB of it, fast enough for a test.
fn card(dir: &Path, real: u64, beyond: &str) -> String {
    let text = include_str!("../../cards/fake-wrap-32gb.toml");
    let mut text = text.replace("capacity = \"32 GB\"", "capacity = \"2 GB\"").replace("\"30 ms\"", "\"3 ms\"");
    text =
        text.replace("real_capacity = \"4 GiB\"", &format!("real_capacity = \"{real} MiB\"")).replace("\"wrap\"", &format!("\"{beyond}\""));
    text = text.replace("command = \"250 us\"", "command = \"60 us\"").replace("tail = \"300 us\"", "tail = \"20 us\"");
    let body = text.split_once("[host]").unwrap().1;
    model(dir, &format!("{beyond}-{real}"), &format!("[host]{body}"))
}

fn size(device: &str) -> String {
    run("blockdev", &["--getsize64", device]).trim().to_string()
}

fn with(state: &Path, args: &[&str]) -> Output {
    nandscope().args(args).env("XDG_STATE_HOME", state).output().unwrap()
}

fn texts(o: &Output) -> (Option<i32>, String, String) {
    (o.status.code(), String::from_utf8_lossy(&o.stdout).into_owned(), String::from_utf8_lossy(&o.stderr).into_owned())
}

/// Some of what the card holds: its beginning, where the test writes its stretch, and some of the middle.
fn content(device: &str) -> Vec<u8> {
    run("blockdev", &["--flushbufs", device]);
    let mut f = fs::File::open(device).unwrap();
    let mut all = vec![];
    for at in [0, 30 * MIB, 120 * MIB] {
        let mut part = vec![0; 1 << 19];
        f.seek(SeekFrom::Start(at)).unwrap();
        f.read_exact(&mut part).unwrap();
        all.extend(part);
    }
    all
}

fn fill(device: &str) {
    let mut f = fs::File::options().write(true).open(device).unwrap();
    for (seed, at) in [(1, 0), (2, 30 * MIB), (3, 120 * MIB)] {
        f.seek(SeekFrom::Start(at)).unwrap();
        f.write_all(&noise(seed, 1 << 19)).unwrap();
    }
    f.sync_all().unwrap();
}

fn no_journal(state: &Path) -> bool {
    fs::read_dir(state.join("nandscope")).map_or(true, |mut d| d.next().is_none())
}

#[test]
fn counterfeits_are_found_named_and_put_back() {
    let _alone = alone();
    if !can("counterfeits", true, &["blockdev"]) {
        return;
    }
    for (beyond, real, blank) in [("wrap", 256, true), ("wrap", 200, false), ("drop", 256, false), ("error", 300, true)] {
        let dir = tempfile::tempdir().unwrap();
        let server = Server::start(&[&card(dir.path(), real, beyond), "--quiet"]);
        let device = server.place.as_str();
        if !blank {
            fill(device);
        }
        let before = content(device);
        let (id, json) = (size(device), dir.path().join("report.json"));
        // A border takes more steps than a busy machine has time for in a short probe; alone it has a minute and ends when it is done.
        let how = if beyond == "wrap" { &["probe", "--time", "8s"][..] } else { &["run", "capacity"] };
        let rest = [device, "--write", "--consent", &id, "-q", "--json", json.to_str().unwrap()];
        let (code, out, err) = texts(&with(dir.path(), &[how, &rest].concat()));
        assert_eq!(code, Some(6), "{beyond} {real}: {out}{err}");
        let first = out.lines().next().unwrap();
        let word = if beyond == "error" { "COUNTERFEIT OR FAILING" } else { "COUNTERFEIT" };
        let near = [real - 1, real, real + 1].map(|r| format!("{word}: reports 1.86 GiB, holds {r} MiB"));
        assert!(near.iter().any(|line| first == line), "{first}");
        assert!(!out.contains('\x1b'), "colour only on a terminal");
        assert!(beyond != "error" || out.contains("cannot be read beyond about 0.29"), "{out}");
        let value: serde_json::Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
        assert_eq!((&value["counterfeit"], &value["reported_bytes"]), (&true.into(), &2_000_000_000u64.into()));
        let found = value["real_bytes"].as_u64().unwrap();
        assert!(found.abs_diff(real * MIB) <= MIB, "{found}");
        // All is as before, and the card is free for the next run.
        assert!(no_journal(dir.path()) && content(device) == before, "{beyond} {real}: {err}");
        // What is made from the report keeps to what is there.
        let report = json.to_str().unwrap();
        for profile in ["logger", "raspberry-pi", "root-ext4"] {
            let (code, out, err) = texts(&with(dir.path(), &["layout", "plan", device, "--for", profile, "--report", report, "--json"]));
            let Ok(plan) = serde_json::from_str::<serde_json::Value>(&out) else {
                assert!(code == Some(1) && err.contains("do not fit"), "{out}{err}");
                continue;
            };
            let ends = plan["parts"].as_array().unwrap().iter().map(|p| p["start"].as_u64().unwrap() + p["size"].as_u64().unwrap());
            assert!(ends.max().unwrap() <= found, "{out}");
            assert!(plan["counterfeit"].as_str().unwrap().starts_with(word), "{out}");
        }
        let (code, _, err) = texts(&with(dir.path(), &["layout", "plan", device, "--for", "camera", "--report", report]));
        assert!(code == Some(1) && err.contains("a camera would format it so again"), "{err}");
        let (_, out, err) = texts(&with(dir.path(), &["format", device, "--measured", report, "--dry-run", "--json"]));
        let layout: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
        assert!(layout.to_string().contains("the volume uses only what is there"), "{layout}");
        server.stop();
    }
}

#[test]
fn an_honest_card_is_none_and_an_unfinished_test_says_what_to_run() {
    let _alone = alone();
    if !can("an honest card", true, &["blockdev"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&[&card(dir.path(), 1907, "wrap"), "--quiet"]);
    let device = server.place.as_str();
    let id = size(device);
    let (code, out, err) = texts(&with(dir.path(), &["run", "capacity", device, "--write", "--consent", &id, "-q", "--time", "20s"]));
    assert!(code == Some(0) && !out.contains("COUNTERFEIT"), "{out}{err}");
    let (_, out, err) = texts(&with(dir.path(), &["run", "capacity", device, "--write", "--consent", &id, "-q", "--time", "100ms"]));
    let joined = out.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = joined.contains(&format!("run: nandscope run capacity {device} --write --consent {id}")) && joined.contains("not tested, ");
    assert!(told || joined.contains("no sign of less than the 1.86 GiB it reports"), "{out}{err}");
    assert!(no_journal(dir.path()));
    server.stop();
}

#[test]
fn without_writes_a_card_that_ends_in_read_errors_is_found() {
    let _alone = alone();
    if !can("read errors", true, &[]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&["fake-error-16gb", "--quiet"]);
    let (code, out, err) = texts(&with(dir.path(), &["probe", &server.place, "--details", "--time", "4s"]));
    assert_eq!(code, Some(6), "{out}{err}");
    assert!(out.starts_with("COUNTERFEIT OR FAILING: reports 14.9 GiB, holds 2 GiB\n"), "{out}{err}");
    assert!(out.split_whitespace().collect::<Vec<_>>().join(" ").contains("cannot be read beyond about 2.00 GiB of 14.9 GiB"), "{out}");
    server.stop();
}

/// The server stops for a while and goes on; it is killed; each time the run ends with an answer or with one message.
#[test]
fn a_card_that_stops_or_goes_in_the_middle() {
    let _alone = alone();
    if !can("a card that goes away", true, &["blockdev"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start(&[&card(dir.path(), 256, "wrap"), "--quiet"]);
    let device = server.place.clone();
    let id = size(&device);
    let args = ["run", "capacity", device.as_str(), "--write", "--consent", &id, "-q"];
    let start = || {
        let child = nandscope().args(args).env("XDG_STATE_HOME", dir.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        assert!(until(20, || !no_journal(dir.path())), "the run does not begin");
        child
    };
    let child = start();
    // As long as a card may hang in a bad reader; the everyday run waits a tenth of that.
    let short = std::env::var_os("NANDSCOPE_SHORT").is_some();
    server.signal("STOP");
    std::thread::sleep(Duration::from_secs(if short { 2 } else { 20 }));
    server.signal("CONT");
    let (code, out, err) = texts(&child.wait_with_output().unwrap());
    assert!(code == Some(6) && no_journal(dir.path()), "{out}{err}");
    let child = start();
    std::thread::sleep(Duration::from_millis(150));
    server.signal("KILL");
    server.end();
    let (code, out, err) = texts(&child.wait_with_output().unwrap());
    assert!(code == Some(1) || code == Some(6) && no_journal(dir.path()), "{code:?} {out}{err}");
    assert!(err.lines().count() <= 16 && !err.contains("panicked"), "{err}");
    run("losetup", &["-d", &device]);
    let (code, _, err) = texts(&with(dir.path(), &["undo"]));
    assert!(no_journal(dir.path()) || code == Some(1) && err.lines().count() == 1, "{err}");
}

/// Killed in the middle of a probe, and the undo killed twice: all comes back, on a card slow enough for that.
#[test]
fn a_killed_undo_is_finished_by_the_next() {
    let _alone = alone();
    if !can("an undo that is killed", true, &["blockdev"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&[&card(dir.path(), 1907, "wrap"), "--quiet"]);
    let device = server.place.as_str();
    fill(device);
    let before = content(device);
    let id = size(device);
    let mut probe: Command = nandscope();
    probe.args(["probe", device, "--write", "--consent", &id, "-q"]).env("XDG_STATE_HOME", dir.path());
    let mut child = probe.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    assert!(until(20, || !no_journal(dir.path())));
    std::thread::sleep(Duration::from_millis(1200));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(content(device) != before, "it had written something");
    for ms in [30, 120] {
        let mut undo =
            nandscope().arg("undo").env("XDG_STATE_HOME", dir.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(ms));
        let _ = undo.kill();
        let _ = undo.wait();
    }
    let (code, out, err) = texts(&with(dir.path(), &["undo"]));
    assert!(code == Some(0) && no_journal(dir.path()), "{out}{err}");
    assert!(content(device) == before, "not as before");
    server.stop();
}
