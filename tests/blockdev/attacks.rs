//! What goes wrong around a run: each ends in one clear message, the right exit code, and no byte lost.

use super::Test;
use super::bed::*;
use super::undone::kill_after;
use nandscope::device::undo::{Saved, pending};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub const LOOPS: &[Test] = &[
    ("a_journal_without_room", a_journal_without_room),
    ("a_journal_nobody_may_write", a_journal_nobody_may_write),
    ("damaged_journals", damaged_journals),
    ("two_runs_share_no_card", two_runs_share_no_card),
    ("ranges_that_are_lost_and_given_up", ranges_that_are_lost_and_given_up),
    ("an_undo_that_is_killed_twice", an_undo_that_is_killed_twice),
    ("a_card_that_takes_no_more_writes", a_card_that_takes_no_more_writes),
    ("a_backing_store_that_is_full", a_backing_store_that_is_full),
    ("odd_sizes_and_sectors", odd_sizes_and_sectors),
    ("killed_formats_are_known_and_repeated", killed_formats_are_known_and_repeated),
];

const SIZE: u64 = 48 * MIB;

struct Ran {
    code: i32,
    out: String,
    err: String,
}

fn ran(o: Output) -> Ran {
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    Ran { code: o.status.code().unwrap_or(-1), out: text(&o.stdout), err: text(&o.stderr) }
}

fn command(state: &Path, args: &[&str]) -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_nandscope"));
    c.args(args).env("XDG_STATE_HOME", state).stdin(Stdio::null());
    c
}

fn nandscope(state: &Path, args: &[&str]) -> Ran {
    ran(command(state, args).output().unwrap())
}

/// A run with writes, with the consent the device asks for.
fn capacity(state: &Path, device: &str, size: u64) -> Ran {
    nandscope(state, &["run", "capacity", device, "--write", "--consent", &size.to_string(), "-q"])
}

/// A directory with a card of noise: the file, its bytes, and where journals go.
fn bed(size: u64) -> (tempfile::TempDir, PathBuf, Vec<u8>, PathBuf) {
    let d = dir(false);
    let file = image(d.path(), size);
    let before = fs::read(&file).unwrap();
    let state = d.path().join("state");
    (d, file, before, state)
}

fn journals(state: &Path) -> Vec<PathBuf> {
    pending(&state.join("nandscope"))
}

/// A small filesystem in memory.
fn memory(at: &Path, options: &str) -> Mount {
    Mount::on("none", at, &["-t", "tmpfs", "-o", options])
}

fn a_journal_without_room() {
    let (d, file, before, _) = bed(SIZE);
    let l = Loop::over(&file, &[]);
    for (room, experiment) in [(64, "capacity"), (300, "capacity"), (900, "write-unit"), (2000, "open-au-linear")] {
        let m = memory(&d.path().join("room"), &format!("size={room}k"));
        let r = nandscope(&m.0, &["run", experiment, &l.0, "--write", "--consent", &SIZE.to_string(), "-q", "--time", "3s"]);
        assert_eq!(r.code, 1, "{room}: {}{}", r.out, r.err);
        assert!(r.err.contains("No space left") && r.err.contains("XDG_STATE_HOME") && !r.err.contains("the card failed"), "{}", r.err);
        assert_eq!(r.err.lines().count(), 1, "{}", r.err);
        assert!(fs::read(&file).unwrap() == before, "{room} KiB: not as before");
        assert!(journals(&m.0).is_empty());
    }
}

fn a_journal_nobody_may_write() {
    let (d, file, before, _) = bed(SIZE);
    let l = Loop::over(&file, &[]);
    let m = memory(&d.path().join("room"), "ro");
    let occupied = d.path().join("file");
    fs::write(&occupied, "x").unwrap();
    for (state, why) in [(m.0.as_path(), "Read-only file system"), (&occupied, "Not a directory")] {
        let r = capacity(state, &l.0, SIZE);
        assert_eq!((r.code, r.err.lines().count()), (1, 1), "{}", r.err);
        assert!(r.err.contains("undo journal") && r.err.contains(why), "{}", r.err);
    }
    assert!(fs::read(&file).unwrap() == before);
}

/// Torn, flipped, of another card, no journal at all.
fn damaged_journals() {
    let (d, file, before, state) = bed(8 * MIB);
    let l = Loop::over(&file, &[]);
    let at = state.join("nandscope");
    kill_after(40, &l.0, &at);
    let journal = pending(&at).remove(0);
    let (whole, dirty) = (fs::read(&journal).unwrap(), fs::read(&file).unwrap());
    let undo = || nandscope(&state, &["undo"]);
    for (place, why) in [(3, "this is no undo journal"), (9, "newer version"), (40, "the header is damaged")] {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x40;
        fs::write(&journal, &bytes).unwrap();
        let r = undo();
        assert!(r.code == 1 && r.err.contains(why) && r.err.lines().count() == 1, "{place}: {}", r.err);
        assert!(fs::read(&file).unwrap() == dirty && journal.exists(), "{place}: nothing is touched");
    }
    // Bits that flip in the middle cost their records, which is said; the rest comes back.
    let mut flipped = whole.clone();
    let middle = whole.len() / 2;
    flipped[middle] ^= 1;
    flipped[middle + 1] ^= 0x80;
    fs::write(&journal, &flipped).unwrap();
    let r = undo();
    assert!(r.code == 1 && r.err.contains("is damaged from byte") && journal.exists(), "{}{}", r.out, r.err);
    let now = fs::read(&file).unwrap();
    let wrong = (0..now.len()).filter(|&i| now[i] != before[i]).count();
    let was = (0..now.len()).filter(|&i| dirty[i] != before[i]).count();
    assert!(wrong < was, "{wrong} of {was} bytes");
    // A journal that ends with a whole record says that its end is gone, and is kept.
    let (short, there, of) = without_last_records(&whole, 3);
    fs::write(&journal, &short).unwrap();
    let r = undo();
    let why = format!("has lost its end: {there} of {of} records are there");
    assert!(r.code == 1 && r.err.contains(&why) && journal.exists() && r.err.lines().count() == 1, "{}{}", r.out, r.err);
    assert!(nandscope(&state, &["undo", "--list"]).out.contains("its end is missing"));
    // The next run is held off until that is settled, and the way out is named and works.
    let r = capacity(&state, &l.0, 8 * MIB);
    assert!(r.code == 4 && r.err.contains("--discard") && !r.err.contains("interrupted"), "{}", r.err);
    // With the journal as it was all is back.
    fs::write(&journal, &whole).unwrap();
    let r = undo();
    assert!(r.code == 0 && fs::read(&file).unwrap() == before, "{}{}", r.out, r.err);
    for (name, bytes) in [("noise.undo", &b"\x00\xff\x13 rubbish"[..]), ("empty.undo", b"")] {
        let path = d.path().join(name);
        fs::write(&path, bytes).unwrap();
        for args in [&["undo"][..], &["undo", "--discard", "--consent", "1"]] {
            let r = nandscope(&state, &[args, &[path.to_str().unwrap()]].concat());
            assert!(r.code == 1 && r.err.contains("no undo journal") && path.exists(), "{name}: {}", r.err);
        }
    }
}

/// A journal without its last `gone` records, cut where the one before them ends; how many are there, and were.
fn without_last_records(journal: &[u8], gone: usize) -> (Vec<u8>, usize, usize) {
    let number = |at: usize, len: usize| journal[at..at + len].iter().rev().fold(0, |n, &b| n << 8 | usize::from(b));
    let mut ends = vec![24 + number(12, 4)];
    while let Some(&at) = ends.last().filter(|&&at| at + 40 <= journal.len()) {
        ends.push(at + 40 + if journal[at + 4] == 1 { number(at + 24, 8) } else { 0 });
    }
    ends.retain(|&e| e <= journal.len());
    let of = number(20, 4) - 1;
    let there = ends.len() - 1 - gone;
    assert!(there > 0 && of > there);
    (journal[..ends[there]].to_vec(), there, of)
}

fn two_runs_share_no_card() {
    let (_d, file, before, state) = bed(SIZE);
    let l = Loop::over(&file, &[]);
    let id = SIZE.to_string();
    let mut first = Going(command(&state, &["probe", &l.0, "--write", "--consent", &id, "-q", "--time", "60s"]).spawn_quiet());
    until(|| !journals(&state).is_empty());
    // Stopped, it goes on having the card for as long as all this takes.
    rustix::process::kill_process(rustix::process::Pid::from_child(&first.0), rustix::process::Signal::STOP).unwrap();
    let r = capacity(&state, &l.0, SIZE);
    assert!(r.code == 4 && r.err.lines().count() == 1 && r.err.contains("in use by another program"), "{}", r.err);
    let r = nandscope(&state, &["undo"]);
    assert!(r.code == 4 && r.err.contains("still going"), "{}", r.err);
    let journal = journals(&state).remove(0);
    let r = nandscope(&state, &["undo", "--discard", journal.to_str().unwrap(), "--consent", &id]);
    assert!(r.code == 4 && r.err.contains("still going") && journal.exists(), "{}", r.err);
    first.0.kill().unwrap();
    first.0.wait().unwrap();
    assert_eq!(nandscope(&state, &["undo"]).code, 0);
    assert!(fs::read(&file).unwrap() == before);
}

/// Half of the card fails when it comes to the undo: the other half comes back, what is lost is listed, and there is a way on.
fn ranges_that_are_lost_and_given_up() {
    let (d, _, before, state) = bed(8 * MIB);
    let m = memory(&d.path().join("small"), "size=20m");
    let file = m.0.join("card.img");
    fs::write(&file, &before).unwrap();
    let room = |size: &str| sh("mount", &["-o", &format!("remount,size={size}"), m.0.to_str().unwrap()]);
    let l = Loop::over(&file, &[]);
    let at = state.join("nandscope");
    kill_after(60, &l.0, &at);
    let journal = pending(&at).remove(0);
    let saved = Saved::open(&journal).unwrap().ranges();
    assert!(saved.iter().any(|r| r.0 < 4 * MIB) && saved.iter().any(|r| r.0 >= 4 * MIB), "{saved:?}");
    // A result does not go to a disk.
    let r = nandscope(&state, &["probe", "sim:null", "--read-only", "--quiet", "--json", &l.0]);
    assert!(r.code == 1 && r.err.contains("this is a disk"), "{}{}", r.out, r.err);
    // The file shrinks under the device and cannot grow again: beyond its end reads and writes fail.
    let now = fs::read(&file).unwrap();
    let r = nandscope(&state, &["undo", "--dry-run"]);
    assert!(r.code == 0 && r.out.contains("would write, and read back:") && r.out.contains("  bytes "), "{}{}", r.out, r.err);
    assert!(journal.exists() && fs::read(&file).unwrap() == now, "a dry run writes nothing");
    let lost = now.split_at(4 * MIB as usize).1.to_vec();
    fs::File::options().write(true).open(&file).unwrap().set_len(4 * MIB).unwrap();
    room("4m");
    let r = nandscope(&state, &["undo"]);
    assert_eq!(r.code, 1, "{}{}", r.out, r.err);
    assert!(r.err.contains("this card does not keep what is written to it: counterfeit or failing"), "{}", r.err);
    assert!(r.err.contains(&format!("nandscope undo --discard {} --consent 8388608", journal.display())), "{}", r.err);
    assert!(r.err.matches("does not keep").count() == 1 && r.err.contains("  bytes "), "{}", r.err);
    assert!(journal.exists() && fs::read(&file).unwrap()[..4 * MIB as usize] == before[..4 * MIB as usize], "the good half is back");
    // Another reader: the rest comes back.
    room("20m");
    let f = fs::File::options().write(true).open(&file).unwrap();
    f.write_all_at(&lost, 4 * MIB).unwrap();
    let r = nandscope(&state, &["undo"]);
    assert!(r.code == 0 && fs::read(&file).unwrap() == before, "{}{}", r.out, r.err);
    // And the way out where there is none.
    kill_after(30, &l.0, &at);
    let journal = pending(&at).remove(0);
    let path = journal.to_str().unwrap();
    for wrong in [&[][..], &["--consent", "8388607"], &["--consent", ""]] {
        let r = nandscope(&state, &[&["undo", "--discard", path][..], wrong].concat());
        assert!(r.code == 4 && r.err.contains("--consent 8388608") && journal.exists(), "{}", r.err);
    }
    let changed = fs::read(&file).unwrap();
    let r = nandscope(&state, &["undo", "--discard", path, "--consent", "8388608"]);
    assert!(r.code == 0 && r.out.contains("what these ranges held is lost") && r.out.contains("  bytes "), "{}{}", r.out, r.err);
    assert!(!journal.exists() && fs::read(&file).unwrap() == changed, "nothing is written");
    let r = capacity(&state, &l.0, 8 * MIB);
    assert!([0, 3].contains(&r.code), "the card may be used again: {}{}", r.out, r.err);
    drop(l);
}

fn an_undo_that_is_killed_twice() {
    let (_d, file, before, state) = bed(8 * MIB);
    let l = Loop::over(&file, &[]);
    let at = state.join("nandscope");
    for (writes, delays) in [(120, [2, 6]), (60, [1, 12]), (150, [9, 3])] {
        kill_after(writes, &l.0, &at);
        for ms in delays {
            let mut undo = Going(command(&state, &["undo"]).spawn_quiet());
            std::thread::sleep(Duration::from_millis(ms));
            let _ = undo.0.kill();
            let _ = undo.0.wait();
        }
        let r = nandscope(&state, &["undo"]);
        assert!(r.code == 0, "{}{}", r.out, r.err);
        assert!(fs::read(&file).unwrap() == before && journals(&state).is_empty(), "{writes} {delays:?}");
    }
}

/// Read-only in the middle: one message, the journal stays, and with the lock gone all comes back.
fn a_card_that_takes_no_more_writes() {
    if !have("blockdev", "a card that becomes read-only") {
        return;
    }
    let (_d, file, before, state) = bed(SIZE);
    let l = Loop::over(&file, &[]);
    let run = command(&state, &["probe", &l.0, "--write", "--consent", &SIZE.to_string(), "-q", "--time", "60s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until(|| journals(&state).first().is_some_and(|j| fs::metadata(j).is_ok_and(|m| m.len() > 2 * MIB)));
    sh("blockdev", &["--setro", &l.0]);
    let r = ran(run.wait_with_output().unwrap());
    assert_eq!(r.code, 1, "{}{}", r.out, r.err);
    assert!(r.err.contains("the old content was not put back; run `nandscope undo`") && r.err.lines().count() == 1, "{}", r.err);
    let r = nandscope(&state, &["undo"]);
    assert!((r.code == 4 || r.code == 1) && journals(&state).len() == 1, "{}{}", r.out, r.err);
    sh("blockdev", &["--setrw", &l.0]);
    let r = nandscope(&state, &["undo"]);
    assert!(r.code == 0 && fs::read(&file).unwrap() == before, "{}{}", r.out, r.err);
}

/// Writes fail with errors of the medium, and what was overwritten before comes back.
fn a_backing_store_that_is_full() {
    let (d, _, _, state) = bed(MIB);
    let m = memory(&d.path().join("full"), "size=12m");
    let file = m.0.join("card.img");
    fs::File::create(&file).unwrap().set_len(SIZE).unwrap();
    let l = Loop::over(&file, &[]);
    let r = nandscope(&state, &["probe", &l.0, "--write", "--consent", &SIZE.to_string(), "-q", "--time", "3s"]);
    assert!([0, 1].contains(&r.code) && r.err.lines().count() <= 16, "{} {}", r.code, r.err);
    sh("losetup", &["-d", &l.0]);
    // Room again: whatever could not be put back can be now, and the card is blank as before.
    sh("mount", &["-o", "remount,size=80m", m.0.to_str().unwrap()]);
    sh("losetup", &[&l.0, file.to_str().unwrap()]);
    let r = nandscope(&state, &["undo"]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    assert!(fs::read(&file).unwrap().iter().all(|b| *b == 0));
    drop(l);
}

fn odd_sizes_and_sectors() {
    for (size, options) in [
        (4096, &[][..]),
        (65536, &[]),
        (499_712, &[]),
        (1_000_448, &[]),
        (MIB, &[]),
        (3 * MIB + 512, &[]),
        (20 * MIB, &["-b", "4096"]),
        (7 * MIB + 4096, &["-b", "4096"]),
    ] {
        let (_d, file, before, state) = bed(size);
        let l = Loop::over(&file, options);
        let mut args = vec!["probe", &l.0, "--write", "-q", "--time", "1s", "--consent"];
        let id = size.to_string();
        args.push(&id);
        let r = nandscope(&state, &args);
        assert!([0, 3].contains(&r.code), "{size} {options:?}: {} {}{}", r.code, r.out, r.err);
        assert!(!r.out.contains("COUNTERFEIT"), "{}", r.out);
        assert!(fs::read(&file).unwrap() == before, "{size} {options:?}: not as before");
        let r = nandscope(&state, &["probe", &l.0, "-q", "--time", "1s"]);
        assert!([0, 3].contains(&r.code), "{size} {options:?}: {}", r.err);
    }
}

/// `format` killed at any moment: the audit knows it, nothing beside the volume's partition is touched, and a second one is sound.
fn killed_formats_are_known_and_repeated() {
    if !have("fsck.fat", "formats that are killed") {
        return;
    }
    let (_d, file, _, state) = bed(SIZE);
    let l = Loop::partitioned(&file, &[(2048, 65536), (69632, 20480)]);
    let before = fs::read(&file).unwrap();
    let part = format!("{}p1", l.0);
    let id = (65536u64 * 512).to_string();
    let inside = 2048 * 512..(2048 + 65536) * 512;
    for ms in [0, 1, 3, 5, 8, 12, 20] {
        let mut format = Going(command(&state, &["format", &part, "--consent", &id, "-q"]).spawn_quiet());
        std::thread::sleep(Duration::from_millis(ms));
        let _ = format.0.kill();
        let _ = format.0.wait();
        let audit = nandscope(&state, &["layout", "audit", &part]);
        assert!([0, 3, 5].contains(&audit.code), "after {ms} ms: {}{}", audit.out, audit.err);
        let now = fs::read(&file).unwrap();
        assert!((0..now.len()).all(|i| inside.contains(&i) || now[i] == before[i]), "after {ms} ms: bytes outside the partition");
    }
    let r = nandscope(&state, &["format", &part, "--consent", &id, "-q"]);
    assert_eq!(r.code, 0, "{}", r.err);
    sh("fsck.fat", &["-n", &part]);
}

/// A child that ends with the test.
struct Going(Child);

impl Drop for Going {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

trait Quiet {
    fn spawn_quiet(&mut self) -> Child;
}

impl Quiet for Command {
    fn spawn_quiet(&mut self) -> Child {
        self.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }
}

fn until(done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not come to that");
        std::thread::sleep(Duration::from_millis(5));
    }
}
