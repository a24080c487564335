//! The fragmentation lab by the command line: what is said of the set-up, why there is no effect, uses, claims, comparisons; and
//! ageing that is killed.
//! covers: P2, P4, P9, P11, P12, P13, P14, P15

#[path = "common/program.rs"]
mod program;
#[path = "common/skip.rs"]
mod skip;

use program::program;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn nandscope(args: &[&str]) -> Output {
    program().args(args).output().unwrap()
}

fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
}

/// A run of a few seconds.
fn frag(more: &[&str]) -> String {
    let small = ["frag", "--quiet", "--size", "16MiB", "--passes", "4", "--largest", "300KB", "--repeats", "4", "--folder", "20"];
    let sizes = ["--sizes", "512,32KiB,256KiB"];
    let out = nandscope(&[&small[..], &sizes, more].concat());
    assert!(out.status.success(), "{more:?}: {}", said(&out));
    said(&out)
}

#[test]
fn the_set_up_is_said_and_large_clusters_are_named_as_the_reason() {
    let large = frag(&["sim:cf-256mb", "--cluster", "16KiB", "--no-class"]);
    assert!(large.contains("why no effect: ") && large.contains("a cluster of 16 KiB, and a call moves 8 KiB"), "{large}");
    assert!(large.contains("--cluster 1KiB") && large.contains("--host pda"), "the way to the page's own figures: {large}");
    assert!(large.contains("set-up: card simulated cf-256mb; host simulated, --host plain"), "{large}");
    let small = frag(&["sim:cf-256mb", "--cluster", "1KiB", "--host", "pda", "--claim", "30"]);
    assert!(!small.contains("why no effect"), "{small}");
    assert!(small.contains("\nfragmented against blank (less than 10 % is no effect):\n"), "{small}");
    assert!(small.contains("host simulated, --host pda (12 KiB of tables") && small.contains("clusters of 1 KiB"), "{small}");
    assert!(small.contains("check, write: no effect expected up to one cluster (1 KiB, measured at 512 B): none found"), "{small}");
    assert!(small.contains("check, write: the effect begins between 512 B and 32 KiB"), "{small}");
    assert!(small.contains("claim, 30.0 times slower fragmented than defragmented: does not hold on this card"), "{small}");
    assert!(small.contains("T = R + E + W") && small.contains("holds, R + E is 12."), "31 pages copied and one block erased: {small}");
    // A card that does not care gets no reason that is none.
    let null = frag(&["sim:null", "--cluster", "1KiB", "--no-class", "--host", "pda"]);
    assert!(!null.contains("why no effect") && !null.contains("anomaly"), "{null}");
}

#[test]
fn the_use_is_the_one_that_was_named() {
    let out = frag(&["sim:cf-256mb", "--cluster", "1KiB", "--no-class", "--profile", "logger", "--profile", "photos"]);
    assert!(out.contains("\n  logger ") && out.contains("\n  photos ") && !out.contains("browser cache"), "{out}");
    let out = nandscope(&["frag", "sim:cf-256mb", "--profile", "fotos"]);
    assert!(!out.status.success() && said(&out).contains("the profiles are browser-cache, photos, music, logger"), "{}", said(&out));
    for claim in ["1", "0", "nan", "-3"] {
        let out = nandscope(&["frag", "sim:cf-256mb", &format!("--claim={claim}")]);
        assert!(!out.status.success() && said(&out).lines().count() == 1, "{claim}: {}", said(&out));
    }
}

/// P13: what was measured too seldom, or not at all, is not advised.
#[test]
fn too_few_rounds_and_other_sizes_advise_nothing() {
    let small =
        ["frag", "sim:cf-256mb", "--quiet", "--size", "16MiB", "--passes", "3", "--largest", "300KB", "--folder", "5", "--cluster", "1KiB"];
    for (rounds, words) in [("1", "1 round is too few (--repeats 3)"), ("2", "2 rounds are too few (--repeats 3)")] {
        let text = said(&nandscope(&[&small[..], &["--no-class", "--sizes", "512,32KiB", "--repeats", rounds]].concat()));
        assert!(text.contains(&format!("32 KiB undecided, {words}")) && text.contains(&format!("undecided: {words}")), "{text}");
        assert!(
            !text.contains("times the rate") && !text.contains("do not defragment") && !text.contains("faster defragmented:"),
            "{text}"
        );
    }
    let text =
        said(&nandscope(&[&small[..], &["--no-class", "--sizes", "64KiB,256KiB", "--repeats", "4", "--profile", "logger"]].concat()));
    assert!(text.contains("undecided: most of its sizes were not measured (--sizes)") && !text.contains("do not defragment"), "{text}");
}

#[test]
fn results_are_compared_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).display().to_string();
    let (a, b, other) = (file("a.json"), file("b.json"), file("other.json"));
    frag(&["sim:cf-256mb", "--cluster", "1KiB", "--no-class", "--json", &a]);
    frag(&["sim:modern-a1-32gb", "--cluster", "1KiB", "--no-class", "--json", &b]);
    frag(&["sim:cf-256mb", "--cluster", "16KiB", "--no-class", "--json", &other]);
    let out = nandscope(&["compare", &a, &b]);
    let text = said(&out);
    assert!(out.status.success() && text.contains("file write") && text.contains("32 KiB, fragmented"), "{text}");
    // What all figures were measured with is said once, and nothing is called as fast that cannot be said.
    for host in ["plain", "pda", "microcontroller"] {
        let (one, two) = (file(&format!("{host}-1.json")), file(&format!("{host}-2.json")));
        for (to, seed) in [(&one, "4"), (&two, "5")] {
            frag(&["sim:cf-256mb", "--cluster", "2KiB", "--no-class", "--host", host, "--seed", seed, "--json", to]);
        }
        let text = said(&nandscope(&["compare", &one, &two]));
        let figures: Vec<&str> = text.lines().filter(|l| l.starts_with("  file ") || l.starts_with("  copy ")).collect();
        assert!(figures.len() >= 18 && text.matches("clusters of 2 KiB").count() == 1, "{text}");
        assert!(text.matches(&format!("--host {host}")).count() == 1 && text.contains("\n  each with "), "{text}");
        let columns = |l: &str| l.trim().split("  ").filter(|c| !c.trim().is_empty()).count();
        assert!(figures.iter().all(|l| columns(l) == 4 && l.chars().count() < 150), "{text}");
        assert!(!text.contains("cannot be said, B is"), "{text}");
    }
    // Other clusters are another set-up: no figure stands beside another.
    let text = said(&nandscope(&["compare", &a, &other]));
    assert!(!text.contains("times") || !text.contains("file write, 32 KiB, fragmented"), "{text}");
    let survey = file("survey");
    let add = nandscope(&["survey", "--dir", &survey, "add", &a, &b]);
    assert!(add.status.success(), "{}", said(&add));
    let list = said(&nandscope(&["survey", "--dir", &survey, "list"]));
    assert!(list.contains("cf-256mb") && list.contains("modern-a1-32gb"), "{list}");
}

/// Whether a program is there; says what is skipped where it is not.
fn there(program: &str) -> bool {
    let found = Command::new(program).arg("--help").output().is_ok();
    if !found {
        skip::no_tool("ageing killed and resumed", program);
    }
    found
}

fn image(dir: &Path, mib: u64, kind: &str, cluster: &str) -> (PathBuf, String) {
    let path = dir.join(format!("{mib}-{kind}.img"));
    std::fs::File::create(&path).unwrap().set_len(mib << 20).unwrap();
    let made = Command::new("mkfs.vfat").args(["-F", kind, "-s", cluster]).arg(&path).output().unwrap();
    assert!(made.status.success(), "{}", said(&made));
    (path, (mib << 20).to_string())
}

/// P2: an ageing that is killed at any moment goes on, and ends with the files of one that was not; the volume passes fsck.
#[test]
fn an_ageing_that_is_killed_goes_on() {
    if !there("mkfs.vfat") || !there("fsck.fat") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (mib, kind, cluster) in [(8, "12", "8"), (24, "16", "4"), (40, "32", "1")] {
        let (path, id) = image(dir.path(), mib, kind, cluster);
        let name = path.display().to_string();
        let age = ["age", &name, "--quiet", "--consent", &id, "--passes", "6", "--largest", "200KB", "--fill", "0.7", "--seed", "3"];
        let mut killed = 0;
        for ms in [15, 40, 90, 25, 60] {
            let mut child =
                Command::new(env!("CARGO_BIN_EXE_nandscope")).args(age).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(ms));
            child.kill().ok();
            killed += usize::from(!child.wait().unwrap().success());
            // What a crash leaves is what fsck is for; it must not lose the ageing.
            let fsck = Command::new("fsck.fat").args(["-a"]).arg(&path).output().unwrap();
            assert!(fsck.status.code().is_some_and(|c| c <= 1), "{name} after {ms} ms: {}", said(&fsck));
        }
        let done = nandscope(&age);
        assert!(done.status.success() && said(&done).starts_with("6 of 6 passes"), "{name}, killed {killed} times: {}", said(&done));
        let verified = nandscope(&["age", &name, "--verify"]);
        assert!(verified.status.success() && said(&verified).contains("are as they were written"), "{name}: {}", said(&verified));
        let fsck = Command::new("fsck.fat").args(["-n"]).arg(&path).output().unwrap();
        assert!(fsck.status.success(), "{name}: {}", said(&fsck));
    }
}

/// P9: a volume as it is, with room for some files, and with room for none.
#[test]
fn a_nearly_full_card_is_measured_with_what_fits_and_left_as_it_was() {
    if !there("mkfs.vfat") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (mib, kind, cluster) in [(16, "16", "4"), (8, "12", "8"), (40, "32", "1")] {
        let (path, id) = image(dir.path(), mib, kind, cluster);
        let name = path.display().to_string();
        let full = nandscope(&["age", &name, "--quiet", "--consent", &id, "--passes", "1", "--largest", "100KB", "--fill", "0.985"]);
        assert!(full.status.success(), "{}", said(&full));
        let look = |what: &str| said(&nandscope(&["map", what])).lines().nth(1).unwrap_or_default().to_string();
        let before = look(&name);
        let out = nandscope(&["frag", &name, "--states", "as-is", "--consent", &id, "--quiet", "--no-class", "--repeats", "3"]);
        let text = said(&out);
        assert!(out.status.success() && text.contains("note: files of 2 MiB were left out: "), "{name}: {text}");
        assert!(text.contains("KiB are free") && text.contains("512 B  as it is"), "{name}: {text}");
        let out = nandscope(&["frag", &name, "--states", "as-is", "--consent", &id, "--quiet", "--sizes", "9MiB", "--folder", "0"]);
        assert!(
            out.status.code() == Some(3) && said(&out).contains("nothing could be measured: no test file has room"),
            "{name}: {}",
            said(&out)
        );
        assert_eq!(look(&name), before, "the test files are gone");
        assert!(nandscope(&["age", &name, "--verify"]).status.success(), "{name}");
    }
}
