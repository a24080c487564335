//! `check` on served cards, loop devices and image files: read-only, with writes, after the card was taken out; and f3probe beside it.

use crate::bed::*;
use crate::skip;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// A card of 2 GB, fast enough for a test, with more lines for its table `[card]`.
fn card(dir: &Path, name: &str, capacity: &str, close: &str, more: &str) -> String {
    let text = include_str!("../../cards/fake-wrap-32gb.toml").split_once("[host]").unwrap().1;
    let text =
        text.replace("capacity = \"32 GB\"", &format!("capacity = \"{capacity}\"\n{more}")).replace("\"30 ms\"", &format!("\"{close}\""));
    let text = text.replace("real_capacity = \"4 GiB\"\nbeyond = \"wrap\"\n", "");
    let mut text = text.replace("command = \"250 us\"", "command = \"30 us\"").replace("tail = \"300 us\"", "tail = \"20 us\"");
    for (key, slow, fast) in
        [("rate", "18 MB/s", "300 MB/s"), ("command", "200 us", "20 us"), ("sense", "150 us", "40 us"), ("lookup", "120 us", "10 us")]
    {
        text = text.replace(&format!("{key} = \"{slow}\""), &format!("{key} = \"{fast}\""));
    }
    for (key, slow, fast) in
        [("program", "1.5 ms", "150 us"), ("commit", "1 ms", "50 us"), ("copy", "1.2 ms", "5 us"), ("erase", "4 ms", "100 us")]
    {
        text = text.replace(&format!("{key} = \"{slow}\""), &format!("{key} = \"{fast}\""));
    }
    model(dir, name, &format!("[host]{text}"))
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

/// Text without its line breaks.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn no_journal(state: &Path) -> bool {
    fs::read_dir(state.join("nandscope")).map_or(true, |mut d| d.next().is_none())
}

#[test]
fn a_counterfeit_with_slow_merges_is_named_within_30_s() {
    let _alone = alone();
    if !can("slow merges", true, &["blockdev"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (name, fake, real) in [
        ("wraps", "real_capacity = \"1 GiB\"\nbeyond = \"wrap\"", 1024),
        ("chain", "real_capacity = \"768 MiB\"\nbeyond = \"drop\"\nrepeats = \"1 GiB\"", 768),
    ] {
        let server = Server::start(&[&card(dir.path(), name, "8 GiB", "220 ms", fake), "--quiet"]);
        let (device, json) = (server.place.as_str(), dir.path().join("report.json"));
        let id = size(device);
        let args = ["run", "capacity", device, "--write", "--consent", &id, "-q", "--time", "30s", "--json", json.to_str().unwrap()];
        let (code, out, err) = texts(&with(dir.path(), &args));
        assert_eq!(code, Some(6), "{name}: {out}{err}");
        let value: serde_json::Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
        assert!(value["real_bytes"].as_u64().unwrap().abs_diff(real * MIB) <= MIB, "{name}: {out}");
        assert!(joined(&out).contains("came back at byte"), "{out}");
        assert!(no_journal(dir.path()));
        println!("{name}: {} s of the device's time", value["cost"]["seconds"]);
        server.stop();
    }
}

/// Bytes and time that f3probe needs for the same card.
#[test]
fn limbo_takes_no_more_than_f3probe_needs() {
    let _alone = alone();
    if !can("f3probe", true, &["blockdev", "f3probe"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let fake = "real_capacity = \"512 MiB\"\nbeyond = \"drop\"";
    let server = Server::start(&[&card(dir.path(), "limbo", "4 GiB", "1 ms", fake), "--quiet"]);
    let (device, json) = (server.place.as_str(), dir.path().join("report.json"));
    let id = size(device);
    let args = ["run", "capacity", device, "--write", "--consent", &id, "-q", "--json", json.to_str().unwrap()];
    let (code, out, err) = texts(&with(dir.path(), &args));
    assert_eq!(code, Some(6), "{out}{err}");
    let ours: serde_json::Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    assert!(ours["real_bytes"].as_u64().unwrap().abs_diff(512 * MIB) <= MIB, "{out}");
    // It ends with an error where it finds a counterfeit.
    let theirs = String::from_utf8_lossy(&output("f3probe", &["--destructive", "--time-ops", device]).stdout).into_owned();
    assert!(theirs.contains("type limbo"), "{theirs}");
    let writes =
        theirs.lines().find_map(|l| l.trim().strip_prefix("Write:")?.split('/').nth(1)?.split('=').next()?.trim().parse::<u64>().ok());
    let (written, most) = (ours["cost"]["bytes_written"].as_u64().unwrap(), writes.unwrap_or_else(|| panic!("{theirs}")) * 512);
    let took = theirs.lines().find(|l| l.starts_with("Probe time")).unwrap_or("").to_string();
    println!("ours: {written} bytes, {} s; f3probe: {most} bytes, {took}", ours["cost"]["seconds"]);
    // What is put back is counted, too.
    assert!(written <= most, "{written} bytes, f3probe {most}");
    server.stop();
}

#[test]
fn check_names_what_a_served_card_does_not_store() {
    let _alone = alone();
    if skip::short("check of cards that do not store") || !can("check", true, &["blockdev"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (name, more, words, codes) in [
        ("honest", "", "read back as written", &[0, 3][..]),
        ("limbo", "real_capacity = \"400 MiB\"\nbeyond = \"drop\"", "COUNTERFEIT", &[6]),
        ("cached", "real_capacity = \"400 MiB\"\nbeyond = \"drop\"\nfront = \"4 MiB\"", "COUNTERFEIT", &[6]),
        ("another", "keeps = \"another\"\nfails_every = 16", "show another place (at byte", &[7]),
        ("changing", "keeps = \"changing\"\nfails_every = 8", "read", &[7]),
        ("old", "keeps = \"old\"\nfails_every = 32", "do not show what was written", &[7]),
        ("harmed", "discard_harms = \"64 KiB\"", "a small discard damages what lies beside it", &[7]),
    ] {
        let server = Server::start(&[&card(dir.path(), name, "2 GB", "1 ms", more), "--quiet"]);
        let (device, state) = (server.place.as_str(), dir.path().join(name));
        let before = noise(7, 1 << 20);
        fs::File::options().write(true).open(device).unwrap().write_all(&before).unwrap();
        run("blockdev", &["--flushbufs", device]);
        let id = size(device);
        // What a cache keeps shows once it is driven out, which takes a busy host longer.
        let time = if name == "cached" { "30s" } else { "6s" };
        let (code, out, err) = texts(&with(&state, &["check", device, "--write", "--consent", &id, "-q", "--time", time, "--json", "-"]));
        assert!(code.is_some_and(|c| codes.contains(&c)), "{name}: {code:?} {out}{err}");
        assert!(out.contains(words) || name.contains("limbo") || name == "cached", "{name}: {out}");
        let value: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(value["exit_code"].as_i64().map(|c| c as i32), code);
        if name == "honest" {
            assert!(no_journal(&state) && err.is_empty(), "{err}");
            let mut now = vec![0; before.len()];
            fs::File::open(device).unwrap().read_exact(&mut now).unwrap();
            assert!(now == before, "{name}: not as before");
            // Without writes nothing of this is known, and nothing is written.
            let (code, out, _) = texts(&with(&state, &["check", device, "-q", "--time", "1s", "--json", "-"]));
            let value: serde_json::Value = serde_json::from_str(&out).unwrap();
            assert!(code == Some(3) && value["written"] == 0, "{out}");
        }
        server.stop();
    }
}

/// One card forgets all that it took since it was put in, the other what its cache held, and the third nothing.
#[test]
fn check_asks_for_the_card_to_be_taken_out() {
    let _alone = alone();
    if skip::short("check of cards that are taken out") || !can("taking out", true, &["blockdev"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (name, more, words, codes) in [
        ("stays", "", "also after it was taken out", &[0, 3][..]),
        ("forgets", "keeps = \"session\"", "it forgot what was written and flushed before it was taken out", &[7]),
        ("loses", "cache = \"8 MiB\"", "taken out", &[7]),
    ] {
        let server = Server::start(&[&card(dir.path(), name, "2 GB", "1 ms", more), "--quiet"]);
        let (device, state) = (server.place.as_str(), dir.path().join(name));
        let id = size(device);
        let args = ["check", device, "--write", "--consent", &id, "-q", "--time", "8s", "--reinsert", "--json", "-"];
        let mut command = nandscope();
        command.args(args).env("XDG_STATE_HOME", &state).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut asked = String::new();
        let mut reader = std::io::BufReader::new(child.stderr.take().unwrap());
        std::io::BufRead::read_line(&mut reader, &mut asked).unwrap();
        assert!(asked.contains("take the card out"), "{asked}");
        server.signal("USR1");
        std::thread::sleep(Duration::from_millis(300));
        writeln!(child.stdin.take().unwrap()).unwrap();
        let (code, out, _) = texts(&child.wait_with_output().unwrap());
        assert!(code.is_some_and(|c| codes.contains(&c)), "{name}: {code:?} {out}");
        assert!(out.contains(words), "{name}: {out}");
        server.stop();
    }
}

/// A loop device, detached with the test.
struct Looped(String);

impl Drop for Looped {
    fn drop(&mut self) {
        output("losetup", &["-d", &self.0]);
    }
}

/// On an image file and a loop device `check` finds nothing wrong, says what it cannot know, and puts everything back.
#[test]
fn check_of_an_image_file_and_a_loop_device() {
    let _alone = alone();
    if !can("a loop device", true, &["losetup"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("card.img");
    let before = noise(11, 96 << 20);
    fs::write(&image, &before).unwrap();
    let path = image.to_str().unwrap();
    let mut looped = Some(Looped(run("losetup", &["--find", "--show", path]).trim().to_string()));
    let device = looped.as_ref().unwrap().0.clone();
    for target in [device.as_str(), path] {
        if target == path {
            looped = None;
        }
        let quick = texts(&with(dir.path(), &["check", target, "--quick", "-q", "--json", "-"]));
        assert_eq!(quick.0, Some(3), "{target}: {}{}", quick.1, quick.2);
        let id = before.len().to_string();
        let (code, out, err) =
            texts(&with(dir.path(), &["check", target, "--write", "--consent", &id, "-q", "--time", "30s", "--json", "-"]));
        assert_eq!(code, Some(3), "{target}: {out}{err}");
        assert!(out.contains("only the card itself can be tested"), "{target}: {out}");
        assert_eq!(out.contains("a loop device over the file"), target != path, "{target}: {out}");
        let value: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{target}: {e} {out}{err}"));
        assert!(value["written"].as_u64().unwrap() > MIB, "{out}");
        let speed = value["answers"].as_array().unwrap().iter().find(|a| a["question"] == "speed").unwrap();
        assert_eq!(speed["verdict"], "not_known", "the disk's, {target}: {out}");
        let health = value["answers"].as_array().unwrap().iter().find(|a| a["question"] == "health").unwrap();
        assert_eq!(health["verdict"], "not_known", "{out}");
        assert!(no_journal(dir.path()) && fs::read(&image).unwrap() == before, "{target}: not as before");
    }
    assert!(looped.is_none());
}
