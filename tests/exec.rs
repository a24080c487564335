//! Devices behind programs and boards (docs/exec.md).

#[path = "common/bench_card.rs"]
mod bench_card;
#[path = "exec/boards.rs"]
mod boards;
#[path = "exec/merges.rs"]
mod merges;
#[path = "common/program.rs"]
mod program;
#[path = "common/skip.rs"]
mod skip;
#[path = "exec/speeds.rs"]
mod speeds;
#[path = "exec/today.rs"]
mod today;

use bench_card::bench_card;
use nandscope::device::{Access, Consent, Device, Fill, Limits, Op, OpenOptions, open};
use std::path::Path;
use std::process::{Command, Output};

pub fn nandscope() -> &'static str {
    env!("CARGO_BIN_EXE_nandscope")
}

fn probe(target: &str, more: &[&str]) -> Output {
    let mut c = Command::new(nandscope());
    c.args(["probe", target, "--quiet", "--json", "-"]).args(more);
    c.output().unwrap()
}

pub fn json(o: &Output) -> serde_json::Value {
    serde_json::from_slice(&o.stdout).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&o.stderr)))
}

pub fn finding<'a>(report: &'a serde_json::Value, quantity: &str) -> &'a serde_json::Value {
    report["findings"].as_array().unwrap().iter().find(|f| f["quantity"] == quantity).unwrap_or(&serde_json::Value::Null)
}

#[test]
fn the_card_of_the_documentation_runs() {
    if Command::new("python3").arg("--version").output().is_err() {
        skip::no_tool("the program of the documentation", "python3");
        return;
    }
    let doc = std::fs::read_to_string("docs/exec.md").unwrap();
    let source = doc.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    let dir = tempfile::tempdir().unwrap();
    for (aus, mib) in [(3, 4), (5, 2)] {
        let path = dir.path().join("my card.py");
        let text = source.replace("4 << 20", &format!("{mib} << 20")).replace("== 3", &format!("== {aus}"));
        std::fs::write(&path, text).unwrap();
        let out = probe(&format!("exec:python3 '{}'", path.display()), &["--time", "5m"]);
        let report = json(&out);
        assert_eq!(finding(&report, "erase_block")["value"], f64::from(mib << 20), "{report}");
        assert_eq!(finding(&report, "open_aus_linear")["value"], f64::from(aus));
        assert_eq!(finding(&report, "capacity")["value"], serde_json::Value::Null, "it keeps no content");
        assert_eq!((&report["counterfeit"], &report["target"]["kind"]), (&serde_json::Value::Null, &"simulated".into()));
    }
}

/// A device in the shell. What it does at the request after so many good ones is the second argument.
fn shell(hello: &str, good: u32, then: &str, pid: &Path) -> String {
    let script = format!(
        "echo $$ > {}; echo nandscope-device 1 size=67108864 {hello}; n=0; while read x; do n=$((n+1)); \
         if [ $n -gt {good} ]; then {then}; fi; echo $((n*1000000)) 200000; done",
        pid.display()
    );
    format!("exec:sh -c \"{script}\"")
}

#[test]
fn a_program_that_fails_is_one_clear_error_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    for (i, (good, then, says)) in [
        (5, "exit 3", "it ended with exit status: 3"),
        (5, "kill -9 $$", "it ended with signal: 9"),
        (5, "exit", "it ended"),
        (5, "sleep 100", "it did not answer within 1 s"),
        (5, "echo hello world", "it answers"),
        (5, "echo 5 -7", "it answers"),
        (5, "echo 18446744073709551615 99", "it answers"),
        (5, "echo 1000 1000", "its clock goes back"),
        (5, "echo 99000000 17 foo", "goes on with"),
        (0, "exit 1", "it ended with exit status: 1"),
        (0, "echo", "it answers"),
    ]
    .into_iter()
    .enumerate()
    {
        let pid = dir.path().join(format!("pid{i}"));
        let out = probe(&shell("timeout=1", good, then, &pid), &[]);
        let err = String::from_utf8_lossy(&out.stderr);
        assert!(!out.status.success(), "{then}: {err}");
        assert!(err.lines().filter(|l| l.starts_with("nandscope: ")).count() == 1 && err.contains(says), "{then}: {err}");
        assert!(!err.contains("panicked"), "{err}");
        if i > 0 && good > 0 {
            // What is still there and says nonsense did not go away.
            let out = Command::new(nandscope()).args(["check", &shell("timeout=1", good, then, &pid)]).output().unwrap();
            let text = String::from_utf8_lossy(&out.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
            let garbled = ["it answers", "its clock goes back", "goes on with"].contains(&says);
            assert_eq!(
                (out.status.code(), text.contains("NOT OF THE PROTOCOL"), text.contains("WENT AWAY")),
                (Some(1), garbled, !garbled),
                "{then}: {text}"
            );
        }
        let id = std::fs::read_to_string(&pid).unwrap();
        assert!(!Path::new("/proc").join(id.trim()).exists(), "{then}: the program is still there");
    }
}

/// Each command ends with the one error and code 1, whatever it had found by then; none has a verdict on a card that is not there.
#[test]
fn a_program_that_dies_ends_every_command_with_its_error() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("t.trace");
    std::fs::write(&trace, "fio version 2 iolog\n/dev/x add\n/dev/x open\n".to_string() + &"/dev/x read 4096 4096\n".repeat(400)).unwrap();
    let replay = format!("replay {}", trace.display());
    for (good, commands) in [
        (3, vec!["check", "check --read-only", "run write-unit", "rate", "uflip", "ab --b split=8KiB", "flashbench -a", &replay]),
        (
            100,
            vec![
                "check",
                "check --read-only --class A1",
                "run write-unit",
                "rate --class V30",
                "uflip --time 1m",
                "probe --quiet",
                &replay,
            ],
        ),
    ] {
        for command in commands {
            let target = shell("timeout=1", good, "exit 9", &dir.path().join("pid"));
            let out = Command::new(nandscope()).args(command.split(' ')).arg(&target).output().unwrap();
            let [text, err] = [&out.stdout, &out.stderr].map(|t| String::from_utf8_lossy(t).into_owned());
            assert_eq!(out.status.code(), Some(1), "{command} {good}: {text}{err}");
            let said: Vec<&str> = err.lines().filter(|l| l.starts_with("nandscope: ")).collect();
            assert!(said.len() == 1 && said[0].contains("it ended with exit status: 9"), "{command} {good}: {err}");
            if command.starts_with("check") {
                let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(words.contains("This card WENT AWAY during the check.") && !words.contains("errors pass"), "{command}: {text}");
            }
        }
    }
}

/// A volume on a card that does not say what was read could not be used: the program is not asked to write.
#[test]
fn a_card_that_keeps_no_content_is_not_formatted() {
    let dir = tempfile::tempdir().unwrap();
    let target = shell("real=no", 0, &format!("echo $x >> {}", dir.path().join("asked").display()), &dir.path().join("pid"));
    for more in [&[][..], &["--dry-run"], &["--erase", "zeroes"]] {
        let out = Command::new(nandscope()).args(["format", &target, "-q"]).args(more).output().unwrap();
        let err = String::from_utf8_lossy(&out.stderr);
        assert!(err.contains("keeps no content, so no file system can be made on it") && !err.contains("run it again"), "{err}");
        assert_eq!(out.status.code(), Some(1), "{err}");
        let asked = std::fs::read_to_string(dir.path().join("asked")).unwrap_or_default();
        assert!(!asked.lines().any(|l| l.starts_with(['w', 'd'])), "{asked}");
    }
}

#[test]
fn what_is_no_device_is_refused_at_once() {
    for (target, says) in [
        ("exec:", "no command"),
        ("exec:/no/such/program", "No such file"),
        ("exec:true", "it ended"),
        ("exec:echo hello", "its first line is \"hello\""),
        ("exec:echo nandscope-device 9 size=1048576", "version"),
        ("exec:echo nandscope-device 1 size=12", "size=12"),
        ("exec:sh -c 'echo", "no end"),
        ("serial:/dev/null", "cannot open serial:/dev/null"),
        ("serial:/dev/null@fast", "no speed"),
    ] {
        for command in ["probe", "check", "flashbench", "erase"] {
            let args: &[&str] = if command == "flashbench" { &["-a"] } else { &[] };
            let out = Command::new(nandscope()).arg(command).arg(target).args(args).output().unwrap();
            let err = String::from_utf8_lossy(&out.stderr);
            assert!(!out.status.success() && err.contains(says) && !err.contains("panicked"), "{command} {target}: {err}");
        }
    }
}

#[test]
fn a_real_card_is_written_with_consent_only() {
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    for (hello, id, typed) in [("real=yes name=my rig", "my rig", "'my rig'"), ("real=yes", "67108864", "67108864")] {
        let target = shell(hello, 1_000_000, "exit", &pid);
        let read = json(&probe(&target, &["--time", "2s"]));
        assert_eq!((&read["target"]["kind"], &read["settings"]["write"]), (&"disk".into(), &false.into()));
        for (more, says) in [
            (vec!["--write"], format!("--consent {typed}")),
            (vec!["--write", "--consent", "other"], format!("--consent {typed}")),
            (vec!["--write", "--consent", id], "--no-undo".to_string()),
        ] {
            let out = probe(&target, &[&["--time", "2s"], &more[..]].concat());
            let err = String::from_utf8_lossy(&out.stderr);
            assert!(!out.status.success() && err.contains(&says), "{more:?}: {err}");
        }
        let written = probe(&target, &["--write", "--consent", id, "--no-undo", "--time", "2s"]);
        let report = json(&written);
        assert!(report["cost"]["writes"].as_u64().unwrap() > 0);
        assert_eq!(report["counterfeit"], serde_json::Value::Null, "without content nothing is a counterfeit");
    }
}

#[test]
fn bytes_that_are_no_pattern_come_back_and_a_wrapping_card_is_seen() {
    let card = bench_card();
    for (kind, wraps) in [("block", false), ("fake", true)] {
        let target = format!("exec:{} {kind} 5 wraps=1", card.display());
        let opened = open(&target, &OpenOptions::default()).unwrap();
        let size = opened.geometry().size;
        let consent = Consent::check(opened.id(), None).unwrap();
        let mut device = opened.writable(&consent, &Limits { budget: 1 << 30, ..Limits::default() }).unwrap();
        let bytes: Vec<u8> = (0..8192u32).map(|i| (i * 7 % 251) as u8).collect();
        device.store(4096, &bytes).unwrap();
        device.store(8192, &[7; 512]).unwrap();
        let mut back = vec![1; 12288];
        device.load(0, &mut back).unwrap();
        assert!(back[..4096].iter().all(|&b| b == 0) && back[4096..8192] == bytes[..4096] && back[8192..8704] == [7; 512]);
        assert_eq!(back[8704..], bytes[4608..]);
        device.access(Access { op: Op::Write(Fill::Stamp(9)), at: 1 << 20, len: 8192 }).unwrap();
        let last = size - 4096;
        device.access(Access { op: Op::Write(Fill::Stamp(9)), at: last, len: 4096 }).unwrap();
        let (mut want, mut is) = (vec![0; 4096], vec![0; 4096]);
        Fill::Stamp(9).render(last, &mut want);
        device.load(last, &mut is).unwrap();
        assert_eq!(want, is, "what was written last is there");
        let report = json(&probe(&target, &["--time", "2m"]));
        assert_eq!(report["counterfeit"], wraps, "{kind}: {}", finding(&report, "capacity"));
    }
}

#[test]
fn sending_ahead_changes_no_answer() {
    let card = bench_card();
    let one = |at: u64| Access { op: Op::Write(Fill::Random(at)), at: at * 4096 % (1 << 30), len: 4096 };
    let all: Vec<Access> = (0..500).map(|i| one(i * i)).collect();
    // 11 has a write cache: each of its writes includes a flush.
    for seed in [4, 11] {
        let device = || {
            let opened = open(&format!("exec:{} block {seed}", card.display()), &OpenOptions::default()).unwrap();
            let consent = Consent::check(opened.id(), None).unwrap();
            opened.writable(&consent, &Limits { budget: 1 << 30, ..Limits::default() }).unwrap()
        };
        let (mut single, mut many) = (device(), device());
        let slow: Vec<_> = all.iter().map(|&a| single.access(a).unwrap()).collect();
        assert_eq!(many.batch(&all, 1).unwrap(), slow);
        assert_eq!((single.now(), single.counters()), (many.now(), many.counters()));
    }
}
