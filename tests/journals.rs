//! Old content that waits to be put back: nothing else is written there until then. What cannot be kept is not overwritten, and whatever
//! ends a run, it puts back first. On image files, without privileges.

#[path = "common/skip.rs"]
mod skip;

use nandscope::device::undo::pending;
use nandscope::device::{Access, Consent, Device, Fill, Limits, Op, OpenOptions, open};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const MIB: u64 = 1 << 20;
const SIZE: u64 = 256 * MIB;

/// A directory with an image of a formatted card in it; journals go below it.
struct Bed {
    dir: tempfile::TempDir,
    image: PathBuf,
}

impl Bed {
    fn new() -> Bed {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let image = dir.path().join("card.img");
        fs::File::create(&image).unwrap().set_len(SIZE).unwrap();
        let bed = Bed { dir, image };
        let (code, _, err) = bed.run(&["format", bed.name(), "--consent", &SIZE.to_string(), "-q"]);
        assert_eq!(code, Some(0), "{err}");
        // Something that a run changes where it writes.
        let mut bytes = vec![0; 32 * MIB as usize];
        Fill::Stamp(3).render(0, &mut bytes);
        fs::File::options().write(true).open(&bed.image).unwrap().write_all_at(&bytes, 64 * MIB).unwrap();
        bed
    }

    fn name(&self) -> &str {
        self.image.to_str().unwrap()
    }

    fn journals(&self) -> PathBuf {
        self.dir.path().join("nandscope")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut c = Command::new(env!("CARGO_BIN_EXE_nandscope"));
        c.args(words).env("XDG_STATE_HOME", self.dir.path()).env("COLUMNS", "1000").current_dir(self.dir.path()).stdin(Stdio::null());
        c
    }

    fn run(&self, words: &[&str]) -> (Option<i32>, String, String) {
        let out = self.command(words).output().unwrap();
        let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
        (out.status.code(), text(out.stdout), text(out.stderr))
    }

    /// What a run that was killed leaves: content overwritten, and its journal.
    fn killed(&self) -> PathBuf {
        let opened = open(self.name(), &OpenOptions::default()).unwrap();
        let consent = Consent::check(opened.id(), Some(&SIZE.to_string())).unwrap();
        let mut g = opened.writable(&consent, &Limits { budget: MIB, undo: Some(self.journals()), ..Limits::default() }).unwrap();
        g.access(Access { op: Op::Write(Fill::Ones), at: 64 * MIB, len: 65536 }).unwrap();
        drop(g);
        pending(&self.journals()).remove(0)
    }

    fn content(&self) -> Vec<u8> {
        fs::read(&self.image).unwrap()
    }
}

#[test]
fn nothing_is_written_where_old_content_waits() {
    let bed = Bed::new();
    let before = bed.content();
    let journal = bed.killed();
    let left = bed.content();
    assert!(left != before);
    fs::write(bed.dir.path().join("w.trace"), "# nandscope trace 1\n").unwrap();
    let (size, card) = (SIZE.to_string(), bed.name());
    let consent = ["--consent", &size];
    for words in [
        vec!["erase", card, "--how", "zeroes"],
        vec!["format", card],
        vec!["age", card, "--passes", "1"],
        vec!["frag", card, "--states", "blank", "--no-class"],
        vec!["frag", card, "--states", "as-is"],
        vec!["defrag", card],
        vec!["bench", card, "--write"],
        vec!["rate", card, "--write"],
        vec!["rate", card, "--write", "--no-undo"],
        vec!["uflip", card, "--write", "--no-undo"],
        vec!["flashbench", card, "-O", "--no-undo"],
        vec!["ab", card, "--write", "--b", "split=8KiB", "--no-undo"],
        vec!["check", card, "--write"],
        vec!["probe", card, "--write", "--no-undo"],
        vec!["run", "capacity", card, "--write", "--no-undo"],
        vec!["layout", "prove", card, "--no-undo"],
    ] {
        let (code, out, err) = bed.run(&[&words[..], &consent].concat());
        assert_eq!(code, Some(4), "{words:?}: {out}{err}");
        assert!(err.contains(&format!("nandscope undo {}", journal.display())), "{words:?}: {err}");
        assert!(bed.content() == left, "{words:?} wrote");
    }
    // Who only reads is told.
    for words in [vec!["check", card, "--time", "1s"], vec!["probe", card, "--time", "1s"]] {
        let (code, _, err) = bed.run(&words);
        assert!(code.is_some_and(|c| c != 4), "{words:?}: {err}");
        let line = format!("{card}: old content waits to be put back: nandscope undo {}", journal.display());
        assert!(err.lines().any(|l| l == line), "{words:?}: {err}");
    }
    let (code, out, err) = bed.run(&["undo"]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(bed.content() == before);
    let (code, _, err) = bed.run(&[&["erase", card, "--how", "zeroes", "-q"][..], &consent].concat());
    assert_eq!(code, Some(0), "{err}");
}

#[test]
fn a_journal_that_holds_nothing_stops_nobody() {
    let bed = Bed::new();
    let journal = bed.killed();
    let size = SIZE.to_string();
    let whole = fs::read(&journal).unwrap();
    let header = 24 + u32::from_le_bytes(whole[12..16].try_into().unwrap()) as usize;
    let mut none = whole.clone();
    none[20..24].copy_from_slice(&1u32.to_le_bytes());
    let erase = |from: &str| bed.run(&["erase", bed.name(), "--how", "zeroes", "--region", from, "-q", "--consent", &size]);
    // Ended before the first record, and within it: that write never went out.
    for (what, bytes) in [("begun", &none[..header]), ("torn", &none[..header + 50]), ("empty", &[][..])] {
        fs::write(&journal, bytes).unwrap();
        let (code, _, err) = erase("0..1MiB");
        assert_eq!(code, Some(0), "{what}: {err}");
        let (code, out, err) = bed.run(&["undo", "--list"]);
        assert_eq!(code, Some(i32::from(what == "empty")), "{what}: {out}{err}");
        let (code, out, err) = bed.run(&["undo"]);
        assert!(code == Some(0) && out.contains("nothing was written under this journal; it is deleted"), "{what}: {out}{err}");
        assert!(pending(&bed.journals()).is_empty(), "{what}");
    }
    // A run takes such a journal away.
    fs::write(&journal, &none[..header]).unwrap();
    let (code, _, err) = bed.run(&["probe", bed.name(), "--write", "--consent", &size, "--time", "1s", "-q"]);
    assert!(!matches!(code, Some(1 | 4)) && pending(&bed.journals()).is_empty(), "{code:?} {err}");
    // One that lost its records is another matter, and so is one whose run is going.
    let mut uncounted = none[..header].to_vec();
    uncounted[20..24].fill(0);
    for (what, bytes) in
        [("cut", &whole[..header]), ("cut within", &whole[..header + 50]), ("uncounted", &uncounted[..]), ("whole", &whole)]
    {
        fs::write(&journal, bytes).unwrap();
        let (code, _, err) = erase("0..1MiB");
        assert!(code == Some(4) && err.contains("nandscope undo"), "{what}: {code:?} {err}");
        assert_eq!(fs::read(&journal).unwrap(), bytes, "{what}");
    }
    fs::write(&journal, &none[..header]).unwrap();
    let held = fs::File::open(&journal).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    assert_eq!(erase("0..1MiB").0, Some(4));
    assert!(journal.exists());
}

/// A dry run refuses what the run would refuse.
#[test]
fn a_dry_run_refuses_what_the_run_refuses() {
    let bed = Bed::new();
    let journal = bed.killed();
    let (path, other) = (journal.to_str().unwrap(), bed.dir.path().join("other.img"));
    fs::write(&other, bed.content()).unwrap();
    fs::File::options().write(true).open(&other).unwrap().write_all_at(&[7; 4096], 0).unwrap();
    for dry in [&["--dry-run"][..], &[]] {
        let (code, out, err) = bed.run(&[&["undo", path, "--target", other.to_str().unwrap()], dry].concat());
        assert!(code == Some(4) && err.contains("has been changed since that run") && !out.contains("would"), "{dry:?}: {out}{err}");
        assert!(err.contains(&format!("nandscope undo --discard {path} --consent {SIZE}; if it is the same one")), "{err}");
    }
    let (code, out, err) = bed.run(&["undo", path, "--dry-run"]);
    assert!(code == Some(0) && out.contains("would write, and read back:") && journal.exists(), "{out}{err}");
    for dry in [&["--dry-run"][..], &[]] {
        let (code, out, err) = bed.run(&[&["age", "/usr"], dry].concat());
        assert!(code == Some(4) && err.contains("--system-disk") && !out.contains("would"), "{dry:?}: {out}{err}");
    }
}

/// A target that is gone for good: what ends its journal is said.
#[test]
fn the_journal_of_a_target_that_is_gone_can_be_given_up() {
    let bed = Bed::new();
    let journal = bed.killed();
    fs::remove_file(&bed.image).unwrap();
    let discard = format!("nandscope undo --discard {} --consent {SIZE}", journal.display());
    let (code, out, err) = bed.run(&["undo"]);
    assert!(code == Some(1) && err.contains(&discard) && journal.exists(), "{out}{err}");
    let (code, out, err) = bed.run(&discard.split(' ').skip(1).collect::<Vec<_>>());
    assert!(code == Some(0) && !journal.exists(), "{out}{err}");
}

/// The disk of the running system is no card.
#[test]
fn a_benchmark_spares_the_disk_of_the_system() {
    let bed = Bed::new();
    for dry in [&["--dry-run"][..], &[]] {
        let (code, out, err) = bed.run(&[&["bench", "/usr", "--write"], dry].concat());
        assert!(code == Some(4) && err.contains("--system-disk") && !out.contains("would"), "{dry:?}: {out}{err}");
    }
}

/// What a killed probe has saved says that it is not finished, and what it had measured.
#[test]
fn the_report_of_a_killed_probe_is_unfinished() {
    let bed = Bed::new();
    let (size, report) = (SIZE.to_string(), bed.dir.path().join("r.json"));
    let words = ["probe", bed.name(), "--write", "--consent", &size, "--time", "10m", "-q", "--json", "r.json"];
    let mut child = bed.command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !report.exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    child.kill().unwrap();
    if child.wait().unwrap().code().is_some() {
        eprintln!("the probe was never killed");
        return;
    }
    let (code, out, err) = bed.run(&["report", "r.json"]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("unfinished") && !out.contains("it needs writes") && !out.contains("0 reads"), "{out}{err}");
}

/// Whatever reads the messages goes away, and the run goes on to its end.
#[test]
fn nobody_who_reads_is_no_end() {
    let bed = Bed::new();
    let before = bed.content();
    let size = SIZE.to_string();
    for words in [vec!["check"], vec!["probe"], vec!["flashbench", "-O"]] {
        let timed: &[&str] = if words[0] == "flashbench" { &[] } else { &["--write", "--time", "2s"] };
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let all = [&words[..1], &[bed.name()], &words[1..], &["--consent", &size], timed].concat();
        let code = bed.command(&all).stderr(writer).stdout(Stdio::null()).status().unwrap().code();
        assert!(code.is_some_and(|c| c != 101), "{words:?}: {code:?}");
        assert!(pending(&bed.journals()).is_empty() && bed.content() == before, "{words:?}");
    }
}

#[test]
fn the_end_of_a_session_puts_back() {
    let bed = Bed::new();
    let before = bed.content();
    let size = SIZE.to_string();
    for (signal, command) in [("HUP", "probe"), ("QUIT", "check"), ("HUP", "check"), ("QUIT", "rate"), ("HUP", "uflip")] {
        let mut child = bed
            .command(&[command, bed.name(), "--write", "--consent", &size, "--time", "60s"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begun = std::time::Instant::now();
        // Once something is overwritten.
        while bed.content() == before && child.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let ends = |s: &str| assert!(Command::new("kill").args([&format!("-{s}"), &child.id().to_string()]).status().unwrap().success());
        ends(signal);
        // The shell and the kernel both tell of the end of a terminal.
        if signal == "HUP" {
            ends(signal);
        }
        let status = child.wait().unwrap();
        assert!(status.code().is_some(), "{command} died of {signal}: {status}");
        assert!(begun.elapsed() < Duration::from_secs(50), "{command} went on after {signal}");
        assert!(pending(&bed.journals()).is_empty() && bed.content() == before, "{command} {signal}");
    }
}

#[test]
fn what_cannot_be_kept_is_not_overwritten() {
    let bed = Bed::new();
    let before = bed.content();
    let (size, exe) = (SIZE.to_string(), env!("CARGO_BIN_EXE_nandscope"));
    let Some(full) = Full::new(&bed) else { return };
    for words in [vec!["check"], vec!["rate"], vec!["uflip"], vec!["probe"], vec!["flashbench", "-O"]] {
        let write: &[&str] = if words[0] == "flashbench" { &[] } else { &["--write", "--time", "20s"] };
        let all = [&words[..1], &[bed.name()], &words[1..], &["--consent", &size], write].concat();
        let out = Command::new(exe).args(&all).env("XDG_STATE_HOME", &full.0).output().unwrap();
        let err = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{words:?}: {}{err}", String::from_utf8_lossy(&out.stdout));
        assert!(err.contains("No space left on device") && err.contains("XDG_STATE_HOME"), "{words:?}: {err}");
        assert!(pending(&full.0.join("nandscope")).is_empty(), "{words:?}: {err}");
        assert!(bed.content() == before, "{words:?}: {err}");
    }
}

/// A disk of 1 MiB for journals, where one can be mounted.
struct Full(PathBuf);

impl Full {
    fn new(bed: &Bed) -> Option<Full> {
        let at = bed.dir.path().join("full");
        fs::create_dir(&at).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&at).stderr(Stdio::null()).status();
        match mounted.is_ok_and(|s| s.success()) {
            true => Some(Full(at)),
            false => {
                skip::skipped("a full disk of journals", "nothing can be mounted");
                None
            }
        }
    }
}

impl Drop for Full {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(Path::new(&self.0)).status();
    }
}
