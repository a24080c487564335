//! What today's cards are asked beyond a probe, of cards of the second family and of an image, and what can go wrong with them.

use crate::bench_card::bench_card;
use crate::program::program;
use crate::{finding, json};
use std::path::Path;
use std::process::Output;

fn run(args: &[&str]) -> Output {
    program().args(args).output().unwrap()
}

/// All that was printed, without the breaks of its lines.
fn texts(o: &Output) -> String {
    let all = format!("{} {}", String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr));
    all.split_whitespace().collect::<Vec<_>>().join(" ")
}

const ASKED: [(&str, &str); 6] = [
    ("mixed-reads", "read_after_write_us"),
    ("pauses", "pause_gain"),
    ("throttling", "throttled_after_s"),
    ("queue-depth", "queue_gain"),
    ("queue-depth-write", "queue_gain_write"),
    ("discard", "discard_ms"),
];

/// Each says something, or why it does not; and cards that serve one request at a time gain nothing from several.
#[test]
fn each_experiment_answers_on_the_second_family() {
    for seed in [71, 72, 73] {
        for (experiment, quantity) in ASKED {
            let target = format!("exec:{} page {seed} size=2147483648", bench_card().display());
            let out = run(&["run", experiment, &target, "--time", "10m", "--quiet", "--json", "-"]);
            assert!(matches!(out.status.code(), Some(0 | 3)), "{experiment} {seed}: {}", texts(&out));
            let report = json(&out);
            let f = finding(&report, quantity);
            assert!(f["value"].is_number() || f["at_least"].is_number() || f["reason"].is_string(), "{experiment} {seed}: {f}");
            if quantity.starts_with("queue_gain") && f["value"].is_number() {
                assert_eq!(f["value"], 1.0, "seed {seed}: {f}");
            }
            // Nothing gets hot in this family.
            assert!(quantity != "throttled_after_s" || !f["value"].is_number(), "seed {seed}: {f}");
        }
    }
}

/// An image that its disk cannot hold is no broken card, and what was put there is put back.
#[test]
fn each_experiment_answers_on_an_image() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let image = dir.path().join("card.img");
    // An odd number of sectors.
    let size = (64u64 << 20) + 512;
    let mut bytes = vec![0; size as usize];
    nandscope::device::Fill::Stamp(3).render(0, &mut bytes);
    std::fs::write(&image, &bytes).unwrap();
    let target = image.to_str().unwrap();
    for (experiment, quantity) in ASKED {
        let out = run(&["run", experiment, target, "--write", "--consent", &size.to_string(), "--time", "3s", "--quiet", "--json", "-"]);
        assert!(matches!(out.status.code(), Some(0 | 3)), "{experiment}: {}", texts(&out));
        let report = json(&out);
        let f = finding(&report, quantity);
        assert!(f["value"].is_number() || f["at_least"].is_number() || f["reason"].is_string(), "{experiment}: {f}");
        let back = std::fs::read(&image).unwrap();
        assert!(back == bytes, "{experiment} leaves the image as it was");
    }
}

/// A device that answers so many requests and then does something else.
fn failing(good: u32, then: &str) -> String {
    let script = format!(
        "echo nandscope-device 1 size=268435456 timeout=1; n=0; while read x; do n=$((n+1)); if [ $n -gt {good} ]; then {then}; fi; \
         echo $((n*1000000)) 200000; done"
    );
    format!("exec:sh -c \"{script}\"")
}

/// What goes wrong is said once, with what it was, and never as a verdict.
#[test]
fn ratings_and_uflip_of_what_fails() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let sized = |name: &str, size: u64| {
        let path = dir.path().join(name);
        std::fs::File::create(&path).unwrap().set_len(size).unwrap();
        path.to_str().unwrap().to_string()
    };
    let (empty, odd) = (sized("empty.img", 0), sized("odd.img", 1_000_001));
    let missing = dir.path().join("none.img").to_str().unwrap().to_string();
    let small = format!("exec:{} page 71 size=1049088", bench_card().display());
    for command in ["rate", "uflip"] {
        for (target, says) in [
            (missing.as_str(), "No such file"),
            (&empty, "1 MiB or more"),
            (&odd, "1 MiB or more"),
            ("exec:/no/such/program", "No such file"),
        ] {
            let out = run(&[command, target, "--quiet"]);
            let err = String::from_utf8_lossy(&out.stderr).into_owned();
            assert_eq!(out.status.code(), Some(1), "{command} {target}: {err}");
            assert!(err.lines().filter(|l| l.starts_with("nandscope: ")).count() == 1 && err.contains(says), "{command} {target}: {err}");
        }
        for (then, says) in [
            ("exit 7", "it ended with exit status: 7"),
            ("echo ! broken", "failed: broken"),
            ("sleep 100", "it did not answer within 1 s"),
            ("echo what", "it answers"),
        ] {
            let out = run(&[command, &failing(300, then), "--time", "20s", "--quiet"]);
            let all = texts(&out);
            // A place that fails is one, a program that ended is the end.
            let code = if then.contains("broken") { 3 } else { 1 };
            assert_eq!(out.status.code(), Some(code), "{command}, {then}: {all}");
            assert!(all.matches("ended early").count() == 1 && all.contains(says) && !all.contains("panicked"), "{command}, {then}: {all}");
        }
        // A card that reads and takes no writes.
        let deaf = failing(0, "case $x in w*) echo ! read-only; continue;; esac");
        let all = texts(&run(&[command, &deaf, "--time", "20s", "--quiet"]));
        assert!(all.contains("read-only") && !all.contains("passes"), "{command}: {all}");
    }
    // Fast until it failed everywhere, as a card that has gone does, is not enough for anything.
    let out = run(&["rate", &failing(300, "echo ! EIO; continue"), "--for", "logger:100kB/s", "--json", "-", "--quiet"]);
    let all = texts(&out);
    assert_eq!(out.status.code(), Some(1), "{all}");
    let saved: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(saved["for"]["verdict"], "not_decided", "{all}");
    let because = saved["for"]["because"].as_str().unwrap();
    assert!(because.contains("ended early: ") && because.contains("does not answer, here or elsewhere: write of"), "{all}");
    let out = run(&["uflip", &small, "--time", "10s", "--quiet"]);
    assert!(out.status.code() == Some(1) && texts(&out).contains("needs at least 8 MiB"), "{}", texts(&out));
    let out = run(&["rate", &small, "--time", "10s", "--quiet", "--class", "V30"]);
    assert!(out.status.code() == Some(3) && !texts(&out).contains("V30 passes"), "{}", texts(&out));
}

/// What is saved of an interrupted run says so, and has the exit code of the process.
#[test]
fn an_interrupted_run_passes_nothing() {
    let interrupts = failing(300, "[ $n = 301 ] && kill -INT $PPID");
    for words in [&["rate", "--for", "logger:100kB/s"][..], &["rate", "--class", "C2"], &["check"]] {
        let out = run(&[&words[..1], &[&interrupts], &words[1..], &["--json", "-", "--quiet"]].concat());
        let all = texts(&out);
        let saved: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{words:?}: {e}: {all}"));
        assert_eq!(out.status.code(), Some(130), "{words:?}: {all}");
        assert_eq!(saved["exit_code"], 130, "{words:?}: {all}");
        if words.contains(&"--for") {
            assert_eq!(saved["for"]["verdict"], "not_decided", "{all}");
            assert!(saved["warnings"].to_string().contains("ended early: interrupted"), "{all}");
        }
    }
}

/// Little time is used for what was asked for, not for resting before it.
#[test]
fn uflip_in_little_time_measures_something() {
    let target = format!("exec:{} page 71 size=1073741824", bench_card().display());
    let out = run(&["uflip", &target, "--only", "ORD.R", "--time", "40s", "--quiet"]);
    assert!(out.status.success() && texts(&out).contains("ORD.R against"), "{}", texts(&out));
    assert!(!Path::new("uflip.json").exists());
}
