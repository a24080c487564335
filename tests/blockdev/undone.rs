//! A run that is killed is undone to the last byte.

use super::Test;
use super::bed::*;
use nandscope::device::undo::{Saved, State, pending};
use nandscope::device::{Access, Device, Fill, Limits, Op, RecoverOptions, recover};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

pub const IMAGES: &[Test] = &[("killed_on_an_image", killed_on_an_image), ("restored_in_the_run", restored_in_the_run)];

pub const LOOPS: &[Test] = &[
    ("killed_on_a_loop_device", killed_on_a_loop_device),
    ("another_card_is_refused", another_card_is_refused),
    ("the_undo_and_list_commands", the_undo_and_list_commands),
    ("a_loop_device_waits_for_the_image_behind_it", a_loop_device_waits_for_the_image_behind_it),
    ("a_disk_and_its_partitions_wait_for_each_other", a_disk_and_its_partitions_wait_for_each_other),
];

/// The child: writes all over the target with an undo journal, says so after each write, and never stops.
pub fn write_until_killed(target: &str, journals: &str, seed: &str) {
    let limits = Limits { region: Some(MIB..7 * MIB), budget: u64::MAX, undo: Some(journals.into()) };
    let mut g = writable(target, &limits).unwrap();
    let mut x: u64 = seed.parse().unwrap();
    let mut out = std::io::stdout();
    loop {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let len = 4096 << (x >> 60 & 3);
        let at = MIB + (x >> 20) % (6 * MIB - len) / 4096 * 4096;
        let op = if x >> 57 & 7 == 0 { Op::Discard } else { Op::Write(Fill::Random(x)) };
        g.access(Access { op, at, len }).unwrap();
        writeln!(out, "{at}").unwrap();
    }
}

/// Starts the child, kills it after some writes, and leaves target and journal as they are then.
pub fn kill_after(writes: usize, target: &str, journals: &Path) {
    let me = std::env::current_exe().unwrap();
    let mut child = Command::new(me)
        .args(["write-until-killed", target, journals.to_str().unwrap(), &writes.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let told = BufReader::new(child.stdout.take().unwrap()).lines().take(writes).filter(Result::is_ok).count();
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert_eq!((told, status.code()), (writes, None), "the child ended by itself");
}

/// Kills runs at several moments; each time the undo makes the file byte-identical.
fn killed_and_undone(target: &str, file: &Path, journals: &Path) {
    let before = fs::read(file).unwrap();
    for writes in [1, 2, 17, 120] {
        kill_after(writes, target, journals);
        assert_ne!(fs::read(file).unwrap(), before, "the run wrote something");
        let found = pending(journals);
        let [journal] = found.as_slice() else { panic!("{found:?}") };
        let text = refusal(writable(target, &Limits { budget: MIB, undo: Some(journals.into()), ..Limits::default() }));
        assert!(text.contains(&format!("nandscope undo {}", journal.display())), "{text}");
        let held = Saved::open(journal).unwrap().bytes();
        let done = recover(journal, &RecoverOptions::default()).unwrap();
        assert_eq!((done.restored.bytes, done.deleted), (held, true));
        assert!(!matches!(done.state, State::Damaged(_)));
        assert!(fs::read(file).unwrap() == before, "undone after {writes} writes, but not byte-identical");
        assert_eq!(pending(journals).len(), 0);
    }
}

fn killed_on_an_image() {
    let d = dir(false);
    let file = image(d.path(), 8 * MIB);
    killed_and_undone(file.to_str().unwrap(), &file, &d.path().join("state"));
}

fn killed_on_a_loop_device() {
    let d = dir(false);
    let file = image(d.path(), 8 * MIB);
    let l = Loop::over(&file, &[]);
    killed_and_undone(&l.0, &file, &d.path().join("state"));
}

fn restored_in_the_run() {
    let d = dir(false);
    let file = image(d.path(), 8 * MIB);
    let before = fs::read(&file).unwrap();
    let state = d.path().join("state");
    let mut g = writable(file.to_str().unwrap(), &Limits { budget: 8 * MIB, undo: Some(state.clone()), ..Limits::default() }).unwrap();
    g.protect(&[(0, MIB)]).unwrap();
    let read_before = g.counters().bytes_read;
    for i in 0..64 {
        g.access(Access { op: Op::Write(Fill::Ones), at: i * 16384, len: 8192 }).unwrap();
    }
    assert_eq!(g.counters().bytes_read, read_before, "what is protected beforehand is not read again");
    assert_ne!(fs::read(&file).unwrap(), before);
    let spent = g.counters().bytes_written;
    let done = g.restore().unwrap().unwrap();
    assert_eq!((done.bytes, g.counters().bytes_written - spent, g.budget_left()), (MIB, MIB, 8 * MIB - 64 * 8192));
    drop(g);
    assert_eq!(fs::read(&file).unwrap(), before);
    assert_eq!(pending(&state).len(), 0);
}

fn another_card_is_refused() {
    let d = dir(false);
    let file = image(d.path(), 8 * MIB);
    let l = Loop::over(&file, &[]);
    let state = d.path().join("state");
    kill_after(20, &l.0, &state);
    let journal = pending(&state).remove(0);
    let device = l.0.clone();
    // Another card of the same size in the same slot.
    let other = d.path().join("other.img");
    let mut bytes = vec![0; 8 * MIB as usize];
    Fill::Random(77).render(0, &mut bytes);
    fs::write(&other, &bytes).unwrap();
    drop(l);
    sh("losetup", &[&device, other.to_str().unwrap()]);
    let l = Loop(device);
    assert!(refusal(recover(&journal, &RecoverOptions::default())).contains("another card of the same size"));
    // A target of another size is refused even by name and force.
    let small = image(d.path().join("state").as_path(), 4 * MIB);
    let named = RecoverOptions { target: small.to_str().map(Into::into), force: true, ..RecoverOptions::default() };
    assert!(refusal(recover(&journal, &named)).contains("another one"));
    assert!(fs::read(&other).unwrap() == bytes, "nothing was written to the other card");
    drop(l);
}

fn the_undo_and_list_commands() {
    let d = dir(false);
    let file = image(d.path(), 8 * MIB);
    let l = Loop::over(&file, &[]);
    let before = fs::read(&file).unwrap();
    let nandscope = |args: &[&str]| {
        let out = Command::new(env!("CARGO_BIN_EXE_nandscope")).args(args).env("XDG_STATE_HOME", d.path()).output().unwrap();
        let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
        (out.status.code().unwrap(), text(&out.stdout), text(&out.stderr))
    };
    let (code, out, _) = nandscope(&["undo"]);
    assert!(code == 0 && out.starts_with("nothing to undo"), "{out}");
    let journals = d.path().join("nandscope");
    kill_after(9, &l.0, &journals);
    let (code, out, _) = nandscope(&["undo", "--list"]);
    assert!(code == 0 && out.contains(&format!(" of {} (8388608 bytes)", l.0)), "{out}");
    // In use by somebody else: refused, and the journal stays.
    let holder = opened(&l.0).unwrap();
    let (code, _, err) = nandscope(&["undo"]);
    assert!(code == 4 && err.contains("in use by another program"), "{code} {err}");
    drop(holder);
    let (code, out, err) = nandscope(&["undo"]);
    assert!(code == 0 && out.contains("put back and verified"), "{out}{err}");
    assert!(fs::read(&file).unwrap() == before && pending(&journals).is_empty());
    let (code, _, err) = nandscope(&["undo", file.to_str().unwrap()]);
    assert!(code == 1 && err.contains("this is no undo journal"), "{code} {err}");
    let (code, out, _) = nandscope(&["list", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let entry = json.as_array().unwrap().iter().find(|e| e["path"] == l.0.as_str()).unwrap();
    assert_eq!(
        (code, &entry["size"], &entry["bus"], &entry["free"], &entry["consent"]),
        (0, &8_388_608.into(), &"loop".into(), &true.into(), &"8388608".into())
    );
    let (code, out, _) = nandscope(&["list"]);
    assert!(
        code == 0 && out.lines().any(|line| line.starts_with(&l.0) && line.split_whitespace().rev().take(2).eq(["free", "8388608"])),
        "{out}"
    );
}

/// The journal names the target that was written; what lies on the same bytes waits as well.
fn a_disk_and_its_partitions_wait_for_each_other() {
    let d = dir(false);
    let file = image(d.path(), 16 * MIB);
    // The child writes from 1 to 7 MiB of its target.
    let l = Loop::partitioned(&file, &[(2048, 12288), (16384, 16384)]);
    let (disk, first, second) = (l.0.clone(), format!("{}p1", l.0), format!("{}p2", l.0));
    let nandscope = |args: &[&str]| {
        let out = Command::new(env!("CARGO_BIN_EXE_nandscope")).args(args).env("XDG_STATE_HOME", d.path()).output().unwrap();
        (out.status.code().unwrap(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let erase = |target: &str| {
        let size = opened(target).unwrap().id().consent_id();
        nandscope(&["erase", target, "--how", "zeroes", "-q", "--consent", &size])
    };
    let journals = d.path().join("nandscope");
    for (written, refused, free) in [(&disk, vec![&disk, &first], vec![&second]), (&second, vec![&disk, &second], vec![&first])] {
        kill_after(9, written, &journals);
        let journal = pending(&journals).remove(0);
        for target in &refused {
            let (code, err) = erase(target);
            assert!(code == 4 && err.contains(&format!("nandscope undo {}", journal.display())), "{written} {target}: {code} {err}");
        }
        let (code, err) = nandscope(&["list"]);
        for target in &refused {
            assert!(code == 0 && err.contains(&format!("{target}: old content waits to be put back")), "{written} {target}: {err}");
        }
        free.iter().for_each(|f| assert!(!err.contains(&format!("{f}: ")), "{err}"));
        // The disk's samples lie all over it: undone before anything else is written.
        let (code, err) = nandscope(&["undo"]);
        assert_eq!(code, 0, "{err}");
        for target in free {
            kill_after(9, written, &journals);
            let (code, err) = erase(target);
            assert_eq!(code, 0, "{written} {target}: {err}");
            let (code, err) = nandscope(&["undo", pending(&journals)[0].to_str().unwrap(), "--force"]);
            assert_eq!(code, 0, "{err}");
        }
    }
    drop(l);
}

/// A run on an image was killed, and then a loop device lies over it, or over a part that the run did not write.
fn a_loop_device_waits_for_the_image_behind_it() {
    let d = dir(false);
    let file = image(d.path(), 16 * MIB);
    let journals = d.path().join("state");
    // The child writes from 1 to 7 MiB.
    kill_after(9, file.to_str().unwrap(), &journals);
    let limits = Limits { budget: MIB, undo: Some(journals.clone()), ..Limits::default() };
    let l = Loop::over(&file, &[]);
    let text = refusal(writable(&l.0, &limits));
    assert!(text.contains(&format!("nandscope undo {}", pending(&journals)[0].display())), "{text}");
    drop(l);
    let l = Loop::over(&file, &["--offset", "8388608"]);
    drop(writable(&l.0, &limits).unwrap());
    drop(l);
    recover(&pending(&journals)[0], &RecoverOptions::default()).unwrap();
}
