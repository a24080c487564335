//! The fragmentation lab by the kernel: ext4 mounted on a served card (P2, P3, P5, P6, P14).

use super::bed::{Mounted, Server, alone, can, kernel_has, nandscope, noise, run};
use std::path::Path;
use std::process::Output;

const PLAN: [&str; 6] = ["--passes", "4", "--largest", "400KB", "--fill", "0.8"];

fn said(out: &Output) -> (String, String) {
    (String::from_utf8_lossy(&out.stdout).into_owned(), String::from_utf8_lossy(&out.stderr).into_owned())
}

/// Runs nandscope; standard output of what succeeded.
fn ok(args: &[&str]) -> String {
    let out = nandscope().args(args).output().unwrap();
    let (text, errors) = said(&out);
    assert!(out.status.success(), "{args:?}: {}\n{text}\n{errors}", out.status);
    text
}

fn ext4(what: &str) -> Option<(Server, Mounted)> {
    if !can(what, true, &["mkfs.ext4", "mount", "umount", "e4defrag"]) {
        return None;
    }
    if !kernel_has("ext4") {
        crate::skip::skipped(what, "a kernel without ext4");
        return None;
    }
    let server = Server::start(&["null"]);
    run("mkfs.ext4", &["-q", "-F", "-L", "LAB", &server.place, "64M"]);
    let mounted = Mounted::new(&server.place, "ext4");
    Some((server, mounted))
}

fn names(at: &Path) -> Vec<String> {
    let mut all: Vec<String> = std::fs::read_dir(at).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    all.sort();
    all
}

#[test]
fn ext4_ages_is_mapped_mended_and_measured() {
    let _alone = alone();
    let Some((server, mounted)) = ext4("the fragmentation lab on ext4") else { return };
    let at = mounted.at.to_str().unwrap();
    // Stopped by Ctrl-C, and going on.
    let long = ["--passes", "100000", "--largest", "400KB", "--fill", "0.8", "--piece", "4KiB"];
    let child = nandscope().args([&["age", at, "--quiet"], &long[..]].concat()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    assert!(super::bed::until(60, || mounted.at.join("NSAGE/F0000400.BIN").exists()), "it ages");
    run("kill", &["-s", "INT", &child.id().to_string()]);
    let out = child.wait_with_output().unwrap();
    let stopped = said(&out).0;
    assert!(out.status.code() == Some(130) && stopped.contains("stopped; the same command goes on"), "{stopped}");
    let passes = (stopped.split(' ').next().unwrap().parse::<u32>().unwrap() + 2).to_string();
    let on = ok(&["age", at, "--quiet", "--passes", &passes, "--largest", "400KB", "--fill", "0.8", "--piece", "4KiB"]);
    assert!(on.starts_with(&format!("{passes} of {passes} passes")), "{on}");
    assert!(ok(&["age", at, "--verify"]).contains("are as they were written"));
    ok(&["age", at, "--remove"]);
    let age = ok(&[&["age", at, "--quiet", "--piece", "4KiB"], &PLAN[..]].concat());
    assert!(age.starts_with("4 of 4 passes; "), "{age}");
    assert!(ok(&["age", at, "--verify"]).contains("are as they were written"));
    let share = |text: &str| -> u32 {
        let line = text.lines().find(|l| l.contains("of them fragmented")).unwrap_or_else(|| panic!("{text}"));
        line.split(" files, ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap()
    };
    let page = tempfile::NamedTempFile::new().unwrap();
    let map = ok(&["map", at, "--html", page.path().to_str().unwrap()]);
    let page = std::fs::read_to_string(page.path()).unwrap();
    assert!(page.contains("<svg") && page.matches("<path class=\"empty\"").count() == 128, "one square for each 512 KiB of 64 MiB");
    assert!(map.contains("ext4 (kernel)") && map.contains(" free in ") && map.contains("each character is"), "{map}");
    let before = share(&map);
    assert!(before > 10, "ext4 resists, but not wholly: {map}");
    // e4defrag, by the command and in the experiment.
    let mended = ok(&["defrag", at, "--quiet"]);
    assert!(mended.contains("e4defrag") && share(mended.lines().last().unwrap()) < before, "{mended}");
    assert!(ok(&["age", at, "--verify"]).contains("are as they were written"));
    assert!(ok(&["age", at, "--remove"]).contains("files removed"));
    let small = ["--quiet", "--repeats", "3", "--folder", "20", "--piece", "4KiB", "--json", "-"];
    let text = ok(&[&["frag", at], &small[..], &PLAN[..]].concat());
    let lab: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&lab["label"], &lab["filesystem"]), (&"kernel".into(), &"ext4".into()));
    let states: Vec<&str> = lab["conditions"].as_array().unwrap().iter().map(|c| c["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["as-is", "fragmented", "defragmented"]);
    for c in lab["conditions"].as_array().unwrap() {
        assert!(c["fragmentation"]["free"]["bytes"].as_u64().unwrap() > 1 << 20, "{c}");
        assert_eq!(c["measured"]["samples"].as_array().unwrap().len(), 3 * 9, "three rounds of four sizes, both ways, and a folder");
    }
    assert!(lab["notes"].to_string().contains("e4defrag"), "{}", lab["notes"]);
    assert_eq!(names(&mounted.at), ["lost+found"], "all that was made is gone");
    mounted.unmount();
    server.stop();
}

#[test]
fn a_mounted_card_is_emptied_formatted_and_filled_again() {
    let _alone = alone();
    let Some((server, mounted)) = ext4("a blank state of a mounted card") else { return };
    let at = mounted.at.to_str().unwrap();
    let (deep, data) = (mounted.at.join("a/b"), noise(5, 3_000_000));
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(deep.join("picture"), &data).unwrap();
    std::os::unix::fs::symlink("b/picture", mounted.at.join("a/link")).unwrap();
    let spare = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let size = run("blockdev", &["--getsize64", &server.place]).trim().to_string();
    let call = |more: &[&str]| {
        let small = ["frag", at, "--quiet", "--states", "blank", "--repeats", "1", "--folder", "5", "--sizes", "512,32KiB", "--json", "-"];
        nandscope().args([&small[..], more].concat()).output().unwrap()
    };
    let there = || assert!(std::fs::read(mounted.at.join("a/link")).unwrap() == data && names(&mounted.at) == ["a", "lost+found"]);
    // Without consent, with a wrong one, without a place for the files, with one on the card itself.
    for (more, word) in [
        (&[][..], "--consent"),
        (&["--consent", "4711"], "--consent"),
        (&["--consent", &size], "--spare"),
        (&["--consent", &size, "--spare", deep.to_str().unwrap()], "--spare must be on another disk"),
    ] {
        let out = call(more);
        let (_, errors) = said(&out);
        assert!(!out.status.success() && errors.contains(word), "{more:?}: {errors}");
        there();
    }
    let with = ["--consent", &size, "--spare", spare.path().to_str().unwrap()];
    // In use: nothing is done, and the copies go.
    let open = std::fs::File::open(deep.join("picture")).unwrap();
    let (_, errors) = said(&call(&with));
    assert!(errors.contains("umount"), "{errors}");
    drop(open);
    there();
    assert_eq!(names(spare.path()), [""; 0]);
    // Hard links would be two files.
    std::fs::hard_link(deep.join("picture"), deep.join("again")).unwrap();
    let (_, errors) = said(&call(&with));
    assert!(errors.contains("hard links"), "{errors}");
    std::fs::remove_file(deep.join("again")).unwrap();
    let uuid = || run("blkid", &["-p", "-s", "UUID", "-o", "value", &server.place]);
    let before = uuid();
    let out = call(&with);
    assert!(out.status.success(), "{}", said(&out).1);
    there();
    assert_ne!(uuid(), before, "it was formatted");
    assert_eq!(names(spare.path()), [""; 0]);
    mounted.unmount();
    server.stop();
}

#[test]
fn a_served_card_that_is_stopped_under_a_mount_is_one_error() {
    let _alone = alone();
    let Some((server, mounted)) = ext4("a card pulled under the lab") else { return };
    let at = mounted.at.to_str().unwrap();
    let mut child = nandscope()
        .args([&["age", at, "--quiet"], &["--passes", "50000", "--largest", "400KB", "--fill", "0.5"][..]].concat())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    assert!(super::bed::until(20, || mounted.at.join("NSAGE").exists()), "it begins");
    // Twice: at once, mounted or not.
    server.signal("TERM");
    server.signal("TERM");
    if !super::bed::until(60, || child.try_wait().unwrap().is_some()) {
        child.kill().unwrap();
        panic!("it goes on without a card");
    }
    let (text, errors) = said(&child.wait_with_output().unwrap());
    let lines: Vec<&str> = errors.lines().filter(|l| l.contains("nandscope")).collect();
    assert!(lines.len() == 1 && lines[0].contains("run fsck on the volume, then this command again"), "{text}\n{errors}");
    drop(mounted);
}

/// On a slow card Ctrl-C ends what is under way within seconds, and says at once what it does until then.
#[test]
fn a_slow_card_is_left_soon() {
    let _alone = alone();
    if !can("Ctrl-C on a slow card", true, &[]) {
        return;
    }
    let server = Server::start(&["chan-sdc-512mb"]);
    let consent = ["--consent", "511705088", "--quiet"];
    ok(&[&["format", &server.place, "--no-table"], &consent[..]].concat());
    for (command, says) in [
        (&["age"][..], "interrupted; closing the files that are open ...\n"),
        (&["frag"], "is not whole: format the card before use\n"),
        (&["layout", "prove"], "interrupted; putting the old content back ...\n"),
    ] {
        let words = [command, &[server.place.as_str()], &consent[..]].concat();
        let state = tempfile::tempdir().unwrap();
        let errors = state.path().join("errors");
        let mut child = nandscope()
            .args(&words)
            .env("XDG_STATE_HOME", state.path())
            .stdout(std::process::Stdio::null())
            .stderr(std::fs::File::create(&errors).unwrap())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_secs(3));
        run("kill", &["-s", "INT", &child.id().to_string()]);
        let said = || std::fs::read_to_string(&errors).unwrap();
        assert!(super::bed::until(8, || said().contains(says)), "{words:?}: {}", said());
        // What is put back was written in seconds, and takes as long.
        assert!(
            super::bed::until(if command == ["layout", "prove"] { 180 } else { 8 }, || child.try_wait().unwrap().is_some()),
            "{words:?}"
        );
        assert_eq!(child.wait().unwrap().code(), Some(130), "{words:?}: {}", said());
    }
    server.stop();
}
