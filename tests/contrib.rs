//! What lies in contrib/ is run as far as that goes without the other program: its commands on simulated cards, its parser rules on their output.

#[path = "common/skip.rs"]
mod skip;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const NANDSCOPE: &str = env!("CARGO_BIN_EXE_nandscope");

fn contrib(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(contrib(name)).unwrap()
}

fn written(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn stdout(o: &Output) -> String {
    String::from_utf8(o.stdout.clone()).unwrap()
}

/// What stands between these words, each time.
fn between<'a>(text: &'a str, a: &str, b: &str) -> Vec<&'a str> {
    text.split(a).skip(1).filter_map(|p| Some(p.split_once(b)?.0)).collect()
}

/// The profile is installed, and its rule finds the figure of each of its options in what the wrapper logs.
#[test]
fn the_phoronix_profile_finds_its_figures() {
    let dir = tempfile::tempdir().unwrap();
    let home = "phoronix/nandscope-1.0.0";
    let done = Command::new("sh").arg(contrib(&format!("{home}/install.sh"))).current_dir(dir.path()).status().unwrap();
    assert!(done.success());
    let definition = text(&format!("{home}/test-definition.xml"));
    let rules = text(&format!("{home}/results-definition.xml"));
    let template = between(&rules, "<OutputTemplate>", "</OutputTemplate>")[0];
    let hint = between(&rules, "<LineHint>", "</LineHint>")[0];
    let at = template.split(' ').position(|w| w == "#_RESULT_#").unwrap();
    let options = between(&definition, "<Value>", "</Value>");
    assert_eq!(options.len(), 2);
    let facts = Command::new(NANDSCOPE).args(["check", "sim:toshiba-emmc", "--read-only", "-q", "--format", "jsonl"]).output().unwrap();
    let facts: Vec<serde_json::Value> = stdout(&facts).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    for option in options {
        let run = Command::new(dir.path().join(between(&definition, "<Executable>", "</Executable>")[0]))
            .arg(option)
            .current_dir(dir.path())
            .envs([("CARD", "sim:toshiba-emmc"), ("NANDSCOPE", NANDSCOPE), ("LOG_FILE", "log.txt")])
            .status()
            .unwrap();
        assert!(run.success(), "{option}");
        let log = std::fs::read_to_string(dir.path().join("log.txt")).unwrap();
        let lines: Vec<&str> = log.lines().filter(|l| l.contains(hint)).collect();
        assert_eq!(lines.len(), 1, "{option}: {log}");
        let found: f64 = lines[0].split(' ').nth(at).unwrap().parse().unwrap();
        let fact = facts.iter().find(|f| f["name"] == option).unwrap();
        assert!((found / fact["value"].as_f64().unwrap() - 1.0).abs() < 1e-9, "{option}: {found}");
    }
    // A card that is not there is no result.
    let run = Command::new(dir.path().join("nandscope-card"))
        .arg("random_read")
        .current_dir(dir.path())
        .envs([("CARD", "/dev/nosuch"), ("NANDSCOPE", NANDSCOPE)])
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(run.code(), Some(1));
}

/// The steps of LAVA's definition give signals; where nothing could be measured they say so by LAVA's own command.
#[test]
fn the_steps_of_lava_give_signals() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path(), "lava-test-case", "#!/bin/sh\necho \"case $*\"\n");
    std::os::unix::fs::symlink(NANDSCOPE, dir.path().join("nandscope")).unwrap();
    let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap());
    let definition = text("lava/nandscope.yaml");
    let steps: Vec<&str> = definition.split("steps:").nth(1).unwrap().lines().filter_map(|l| l.trim().strip_prefix("- ")).collect();
    assert_eq!(steps.len(), 2);
    let run = |step: &str, card: &str| {
        let done = Command::new("sh")
            .args(["-c", step])
            .current_dir(dir.path())
            .envs([("PATH", &*path), ("CARD", card), ("OPTIONS", "")])
            .output()
            .unwrap();
        assert!(done.status.success(), "{step}: {done:?}");
        stdout(&done)
    };
    for (card, says) in
        [("sim:toshiba-emmc", "TEST_CASE_ID=stores RESULT=pass>"), ("sim:fake-wrap-32gb", "TEST_CASE_ID=capacity RESULT=fail>")]
    {
        let out = run(steps[0], card);
        assert!(out.contains(says) && !out.contains("case check"), "{card}: {out}");
    }
    assert!(
        run(steps[1], "sim:toshiba-emmc")
            .contains("<LAVA_SIGNAL_TESTCASE TEST_CASE_ID=erase_block RESULT=pass MEASUREMENT=4194304 UNITS=bytes>")
    );
    for (step, name) in [(steps[0], "check"), (steps[1], "probe")] {
        assert_eq!(run(step, "/dev/nosuch").trim(), format!("case {name} --result fail"));
    }
}

/// The command of the timer writes a file that the collector takes.
#[test]
fn the_timer_writes_a_file_for_prometheus() {
    let dir = tempfile::tempdir().unwrap();
    let unit = text("prometheus/nandscope@.service");
    let command = unit.lines().find_map(|l| l.strip_prefix("ExecStart=")).unwrap();
    let words: Vec<String> = command
        .split(' ')
        .skip(1)
        .map(|w| w.replace("/dev/%i", "sim:toshiba-emmc").replace("/var/lib/prometheus/node-exporter/", "").replace("%i", "x"))
        .collect();
    let done = Command::new(NANDSCOPE).args(&words).current_dir(dir.path()).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let text = std::fs::read_to_string(dir.path().join("nandscope-x.prom")).unwrap();
    assert!(text.starts_with("# HELP nandscope_") && text.ends_with('\n') && text.contains("\nnandscope_check_passed{card="), "{text}");
}

/// labgrid's test with a stand-in for its multiplexer: the card is given back, whatever was found.
#[test]
fn the_labgrid_test_checks_and_gives_back() {
    let what = "the labgrid test with a stand-in for the multiplexer";
    let python = ["python3", "/usr/bin/python3"]
        .into_iter()
        .find(|p| Command::new(p).args(["-c", "import pytest"]).stderr(Stdio::null()).status().is_ok_and(|s| s.success()));
    let Some(python) = python else { return skip::skipped(what, "pytest is not installed") };
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(contrib("labgrid/test_card.py"), dir.path().join("test_card.py")).unwrap();
    std::fs::write(
        dir.path().join("conftest.py"),
        "import os, types, pytest\nclass Mux:\n    def set_mode(self, mode):\n        open('modes', 'a').write(mode + '\\n')\n\
         class Storage:\n    storage = types.SimpleNamespace(path=os.environ['CARD'])\n\
         @pytest.fixture\ndef target():\n    drivers = {'USBSDMuxDriver': Mux(), 'USBStorageDriver': Storage()}\n    return types.SimpleNamespace(get_driver=drivers.get)\n",
    )
    .unwrap();
    for (card, says) in [("sim:toshiba-emmc", "1 passed"), ("sim:fake-wrap-32gb", "counterfeit"), ("sim:null", "1 ")] {
        let done = Command::new(python)
            .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "test_card.py"])
            .current_dir(dir.path())
            .envs([("CARD", card), ("NANDSCOPE", NANDSCOPE)])
            .output()
            .unwrap();
        assert!(stdout(&done).contains(says), "{card}: {}", stdout(&done));
        assert_eq!(std::fs::read_to_string(dir.path().join("modes")).unwrap(), "host\ndut\n");
        std::fs::remove_file(dir.path().join("modes")).unwrap();
        assert!(
            std::fs::read_to_string(dir.path().join("nandscope.xml"))
                .unwrap()
                .contains("<testcase classname=\"nandscope.check.check\" name=\"stores\"")
        );
    }
}
