//! Commands that write, killed at any moment: what they promise of that moment holds, and the same command again ends well.

use super::Test;
use super::bed::*;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

pub const IMAGES: &[Test] = &[("killed_commands_on_an_image", on_an_image)];
pub const LOOPS: &[Test] = &[
    ("killed_commands_on_a_partition", on_a_partition),
    ("killed_commands_on_sectors_of_4096", on_large_sectors),
    ("an_ageing_of_ext4_that_is_killed_goes_on", ext4_ages_on),
    ("what_is_lost_is_listed_by_every_command", what_is_lost_is_listed_by_every_command),
];

/// A target, the file it lies in, and the bytes of the file that it is.
struct Bed {
    target: String,
    file: PathBuf,
    inside: Range<usize>,
    before: Vec<u8>,
    state: PathBuf,
}

impl Bed {
    fn command(&self, line: &str) -> Command {
        let consent = self.inside.len().to_string();
        let mut c = Command::new(env!("CARGO_BIN_EXE_nandscope"));
        c.args(line.split(' ').map(|a| if a == "TARGET" { &self.target } else { a })).args(["--consent", &consent, "-q"]);
        c.env("XDG_STATE_HOME", &self.state).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        c
    }

    fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    fn ok(&self, line: &str) {
        let out = self.run(line);
        // 3: layouts that differ in nothing.
        let fine = out.status.success() || out.status.code() == Some(3) && line.starts_with("layout");
        assert!(fine, "{line}: {} {}", out.status, String::from_utf8_lossy(&out.stderr));
    }

    /// How long it takes when nobody ends it.
    fn took(&self, line: &str) -> Duration {
        let begun = Instant::now();
        self.ok(line);
        begun.elapsed()
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(&self.file).unwrap()
    }

    /// Starts it, kills it after this time, and compares what it had no business with; true where it was not done yet.
    fn killed(&self, line: &str, after: Duration) -> bool {
        let mut child = self.command(line).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(after);
        let _ = child.kill();
        let going = child.wait().unwrap().code().is_none();
        self.neighbours(line);
        going
    }

    fn neighbours(&self, line: &str) {
        let (now, Range { start, end }) = (self.bytes(), self.inside.clone());
        assert!(now[..start] == self.before[..start] && now[end..] == self.before[end..], "{line}: bytes outside the target");
    }

    /// fsck mends nothing but what a cut may leave, and then there is nothing to mend.
    fn mended(&self) {
        let run = |option: &str| {
            let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
            let out = Command::new("fsck.fat").args([option, &self.target]).env("PATH", path).output().unwrap();
            (out.status.code().unwrap_or(99), String::from_utf8_lossy(&out.stdout).into_owned())
        };
        let (code, said) = run("-a");
        assert!(code <= 1, "{said}");
        let (code, said) = run("-n");
        assert_eq!(code, 0, "{said}");
    }
}

/// Eight moments of a command that takes so long, from its start to just beyond its end, spread evenly and moved by a seed.
fn moments(whole: Duration, seed: u32) -> impl Iterator<Item = Duration> {
    (0..8u32).map(move |i| whole * (i * 100 + seed * 37 % 100) / 750)
}

fn formats(bed: &Bed) {
    for (i, (form, fsck)) in [
        ("--fs fat16", "fsck.fat"),
        ("--fs fat32 --cluster 512", "fsck.fat"),
        ("--fs exfat", "fsck.exfat"),
        ("--fs fat16 --erase zeroes", "fsck.fat"),
    ]
    .into_iter()
    .enumerate()
    {
        let line = format!("format TARGET --no-table {form}");
        let whole = bed.took(&line);
        // Where something else held it up when its time was taken, all those moments lie behind its end.
        let wholes = [whole, whole / 8, whole / 64];
        let some = wholes.iter().map(|w| moments(*w, i as u32).filter(|after| bed.killed(&line, *after)).count()).find(|n| *n > 0);
        assert!(some.is_some(), "{line}: never killed within {wholes:?}");
        bed.ok(&line);
        bed.neighbours(&line);
        if have(fsck, "the volume after formats that were killed") {
            sh(fsck, &["-n", &bed.target]);
        }
    }
}

fn erases(bed: &Bed) {
    let at = |file: &[u8]| file[bed.inside.clone()].to_vec();
    let region = MIB as usize..(bed.inside.len() - 4096) / 4096 * 4096;
    for (how, new) in [("zeroes", 0u8), ("ones", 0xff)] {
        let line = format!("erase TARGET --how {how} --region {}..{}", region.start, region.end);
        let whole = bed.took(&line);
        // What was there is noise again.
        bed.ok("erase TARGET --how stamp");
        let noise = at(&bed.bytes());
        for after in moments(whole, 5) {
            bed.killed(&line, after);
            let now = at(&bed.bytes());
            let old_or_new = |i: usize| now[i] == noise[i] || now[i] == new && region.contains(&i);
            assert!((0..now.len()).all(old_or_new), "{line} after {after:?}");
        }
        bed.ok(&format!("{line} --verify"));
        let now = at(&bed.bytes());
        assert!(now[region.clone()].iter().all(|b| *b == new) && now[..region.start] == noise[..region.start]);
    }
}

fn proofs(bed: &Bed) {
    bed.ok("format TARGET --no-table --fs fat16");
    let before = bed.bytes();
    let line = "layout prove TARGET --rounds 3 --file 64KiB";
    let whole = bed.took(line);
    assert!(bed.bytes() == before, "a proof that ends puts all back");
    for after in moments(whole, 3) {
        bed.killed(line, after);
        let out = Command::new(env!("CARGO_BIN_EXE_nandscope")).arg("undo").env("XDG_STATE_HOME", &bed.state).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        assert!(bed.bytes() == before, "killed after {after:?} and undone: not as before");
    }
}

fn defragments(bed: &Bed, form: &str, seed: u32) {
    if !have("fsck.fat", "defragmenting that is killed") {
        return;
    }
    bed.ok(&format!("format TARGET --no-table {form}"));
    let age = format!("age TARGET --passes 3 --fill 0.5 --largest 300kB --seed {}", seed + 1);
    // Ageing is killed, too, and goes on behind fsck.
    for ms in [40, 160, 400] {
        bed.killed(&age, Duration::from_millis(ms));
        bed.mended();
    }
    bed.ok(&age);
    bed.ok("age TARGET --verify");
    // Each run goes on where the one before was cut, so that the moments lie all over it.
    for i in 0..8u64 {
        bed.killed("defrag TARGET", Duration::from_millis(15 + (i * 29 + u64::from(seed) * 11) % 120));
        bed.mended();
        bed.ok("age TARGET --verify");
    }
    bed.ok("defrag TARGET");
    bed.ok("age TARGET --verify");
    bed.neighbours("defrag TARGET");
    sh("fsck.fat", &["-n", &bed.target]);
}

/// What cannot be defragmented in this process is left as it is.
fn exfat_is_left_alone(bed: &Bed) {
    bed.ok("format TARGET --no-table --fs exfat");
    let before = bed.bytes();
    for line in ["defrag TARGET", "age TARGET --passes 1"] {
        let out = bed.run(line);
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(!out.status.success() && said.lines().count() == 1 && said.contains("exFAT"), "{line}: {said}");
        assert!(bed.bytes() == before, "{line} wrote");
    }
}

fn all(bed: &Bed) {
    formats(bed);
    erases(bed);
    proofs(bed);
    defragments(bed, "--fs fat16", 1);
    exfat_is_left_alone(bed);
}

fn bed(dir: &Path, target: String, file: PathBuf, inside: Range<usize>) -> Bed {
    Bed { target, before: fs::read(&file).unwrap(), file, inside, state: dir.join("state") }
}

fn on_an_image() {
    let d = dir(true);
    let size = 36 * MIB;
    let file = image(d.path(), size);
    let b = bed(d.path(), file.to_str().unwrap().into(), file, 0..size as usize);
    all(&b);
    defragments(&b, "--fs fat32 --cluster 512", 2);
}

fn on_a_partition() {
    let d = dir(true);
    let file = image(d.path(), 44 * MIB);
    // An odd beginning, and neighbours on both sides.
    let (start, count) = (8255u32, 73_728u32);
    let l = Loop::partitioned(&file, &[(63, 8192), (start, count), (start + count, 2048)]);
    let begin = start as usize * 512;
    all(&bed(d.path(), format!("{}p2", l.0), file, begin..begin + count as usize * 512));
}

/// Formats, erases and proofs where no half sector can be written.
fn on_large_sectors() {
    let d = dir(true);
    let file = image(d.path(), 44 * MIB);
    let (at, len) = (3 * MIB as usize, 36 * MIB as usize);
    let l = Loop::over(&file, &["-b", "4096", "--offset", &at.to_string(), "--sizelimit", &len.to_string()]);
    let b = bed(d.path(), l.0.clone(), file, at..at + len);
    erases(&b);
    let line = "format TARGET --no-table --fs fat16";
    for after in moments(b.took(line), 4) {
        b.killed(line, after);
    }
    b.ok(line);
    proofs(&b);
}

/// In a mounted directory: killed by the signal nobody can catch, then again; every file is as it was written, also after a
/// measurement of the aged state, which removes an ageing of its own alone.
fn ext4_ages_on() {
    if !have("mkfs.ext4", "ageing ext4") {
        return;
    }
    let d = dir(true);
    let file = image(d.path(), 64 * MIB);
    let l = Loop::over(&file, &[]);
    sh("mkfs.ext4", &["-q", "-F", &l.0]);
    let m = Mount::on(&l.0, &d.path().join("mnt"), &[]);
    let at = m.0.to_str().unwrap();
    let run = |args: &[&str]| {
        let mut c = Command::new(env!("CARGO_BIN_EXE_nandscope"));
        c.args(args).env("XDG_STATE_HOME", d.path().join("state")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        c
    };
    let age = ["age", at, "--passes", "6", "--fill", "0.5", "--largest", "400kB", "-q"];
    for ms in [60, 200, 500] {
        let mut child = run(&age).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(ms));
        let _ = child.kill();
        let _ = child.wait();
    }
    let verify = ["age", at, "--verify", "-q"];
    let measure = ["--states", "fragmented", "--sizes", "512,4KiB", "--folder", "2", "--repeats", "3"];
    let frag = [&["frag"], &age[1..], &measure].concat();
    for args in [&age[..], &verify, &frag, &verify, &["age", at, "--remove", "-q"]] {
        let out = run(args).output().unwrap();
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    }
    let left: Vec<_> = fs::read_dir(&m.0).unwrap().map(|e| e.unwrap().file_name()).filter(|n| n != "lost+found").collect();
    assert!(left.is_empty(), "{left:?}");
    drop(m);
    sh("fsck.ext4", &["-f", "-n", &l.0]);
}

/// The medium fails in the middle of a run: whichever command ran, what is not back is listed, the way out is named, and once the medium
/// answers again the undo brings everything back.
fn what_is_lost_is_listed_by_every_command() {
    const SIZE: u64 = 24 * MIB;
    const KEPT: u64 = 12 * MIB;
    // With the bytes that the journal must hold when the medium goes, so that some of them lie on either side; for flashbench all
    // eight erase blocks, which it keeps before its first write.
    for (line, kept) in [
        ("probe TARGET --write --time 60s --region 1MiB..24MiB", 3_000_000),
        ("partitions TARGET --write --time 60s --part 0..24MiB", 3_000_000),
        ("ab TARGET --write --b split=8KiB --load random --pairs 1000 --count 63 --region 1MiB..24MiB", 14_000_000),
        ("flashbench TARGET -O --open-au-nr=8 --spacing=2 --erasesize=1048576 --blocksize=512 --offset=8388608", 8 << 20),
    ] {
        let d = dir(true);
        let m = Mount::on("none", &d.path().join("small"), &["-t", "tmpfs", "-o", "size=60m"]);
        let room = |mib: u64| sh("mount", &["-o", &format!("remount,size={mib}m"), m.0.to_str().unwrap()]);
        let file = image(&m.0, SIZE);
        let l = Loop::over(&file, &[]);
        let b = bed(d.path(), l.0.clone(), file, 0..SIZE as usize);
        let child = b.command(line).spawn().unwrap();
        let pid = child.id().to_string();
        let journals = || nandscope::device::undo::pending(&b.state.join("nandscope"));
        let begun = Instant::now();
        while !journals().first().is_some_and(|j| fs::metadata(j).is_ok_and(|m| m.len() > kept)) {
            assert!(begun.elapsed() < Duration::from_secs(60), "{line}: nothing is kept for the undo");
            std::thread::sleep(Duration::from_millis(1));
        }
        sh("kill", &["-STOP", &pid]);
        // The file ends early, and the disk below has no room to let it grow again.
        std::thread::sleep(Duration::from_millis(20));
        let tail = b.bytes().split_off(KEPT as usize);
        let f = fs::File::options().write(true).open(&b.file).unwrap();
        f.set_len(KEPT).unwrap();
        room(12);
        sh("kill", &["-CONT", &pid]);
        let out = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        // The disk below is full where a write failed first; where a read did, the card is failing.
        let read_first = said.contains("the card failed: read of");
        assert_eq!(out.status.code(), Some(if read_first { 7 } else { 1 }), "{line}: {said}");
        assert!(said.contains("this card does not keep what is written to it: counterfeit or failing"), "{line}: {said}");
        assert!(
            said.contains("  bytes ") && said.contains(&format!("nandscope undo --discard {}", journals()[0].display())),
            "{line}: {said}"
        );
        assert!(!said.contains("panicked") && said.lines().count() < 20, "{line}: {said}");
        room(60);
        std::os::unix::fs::FileExt::write_all_at(&f, &tail, KEPT).unwrap();
        let undo = Command::new(env!("CARGO_BIN_EXE_nandscope")).arg("undo").env("XDG_STATE_HOME", &b.state).output().unwrap();
        assert!(undo.status.success(), "{line}: {}", String::from_utf8_lossy(&undo.stderr));
        assert!(b.bytes() == b.before && journals().is_empty(), "{line}: not as before");
    }
}
