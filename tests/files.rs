//! What one command reads of results, all of them read: the formats and the commands, each with each.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn run(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nandscope")).args(args).current_dir(dir).output().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).to_string()
}

const FIO: &str = r#"{"fio version":"fio-3.33","global options":{"bs":"4k","iodepth":"1","direct":"1"},"jobs":[{"jobname":"w","error":0,"job options":{"rw":"randwrite"},"read":{"iops":0,"bw_bytes":0},"write":{"iops":500.0,"bw_bytes":2048000,"lat_ns":{"mean":2000000.0,"max":90000000},"clat_ns":{"max":90000000}}}]}"#;
const F3: &str = "Average writing speed: 4.90 MB/s\nData OK: 29.71 GB (62301184 sectors)\nData LOST: 0.00 Byte (0 sectors)\nAverage reading speed: 9.42 MB/s\n";
const FAKE: &str = "Bad news: The device `/dev/sdb' is a counterfeit of type limbo\n\n\t         *Usable* size: 7.86 GB (16477879 blocks)\n\t        Announced size: 15.33 GB (32155648 blocks)\n";
const IOZONE: &str = "\tO_DIRECT feature enabled\n                                                              random    random     bkwd    record    stride\n              kB  reclen    write  rewrite    read    reread    read     write     read   rewrite      read   fwrite frewrite    fread  freread\n          102400    1024   314600   325053   374715   375000   374000   325762\n";
const OPEN: &str = "$ flashbench --open-au --open-au-nr=2 --erasesize=4194304 /dev/mmcblk0\n4MiB    8.79M/s\n2MiB    8.51M/s\n1MiB    8.7M/s\n512KiB  8.6M/s\n256KiB  8.65M/s\n128KiB  8.5M/s\n64KiB   8.6M/s\n$ flashbench --open-au --open-au-nr=3 --erasesize=4194304 /dev/mmcblk0\n4MiB    8.9M/s\n2MiB    3.5M/s\n1MiB    2.1M/s\n512KiB  1.1M/s\n256KiB  565K/s\n128KiB  285K/s\n64KiB   143K/s\n";
const BUSY: &str = include_str!("data/micro/chan-sdc-512mb.busy");

/// Every format in a directory.
fn files(dir: &Path) -> Vec<&'static str> {
    let all = [("fio.json", FIO), ("f3.txt", F3), ("fake.txt", FAKE), ("iozone.txt", IOZONE), ("open.txt", OPEN), ("trace.busy", BUSY)];
    all.iter().for_each(|(name, text)| std::fs::write(dir.join(name), text).unwrap());
    std::fs::write(dir.join("words.txt"), "hello\n").unwrap();
    let probed = run(dir, &["run", "interval", "sim:usb-stick", "-q", "--json", "report.json"]);
    assert!(probed.status.success(), "{}", text(&probed.stderr));
    let logs = run(dir, &["infer", "open.txt", "fio.json", "--json", "inferred.json"]);
    assert!(logs.status.success(), "{}", text(&logs.stderr));
    ["fio.json", "f3.txt", "fake.txt", "iozone.txt", "open.txt", "trace.busy", "report.json", "inferred.json"].to_vec()
}

#[test]
fn every_command_that_reads_results_reads_every_format() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for f in files(dir) {
        let one = run(dir, &["infer", f]);
        assert!(matches!(one.status.code(), Some(0 | 3 | 6)), "infer {f}: {}", text(&one.stderr));
        let other = if f == "open.txt" { "fio.json" } else { "open.txt" };
        let two = run(dir, &["compare", f, other]);
        assert!(matches!(two.status.code(), Some(0 | 3)), "compare {f}: {}", text(&two.stderr));
        let kept = run(dir, &["survey", "--dir", "s", "add", f]);
        assert!(
            kept.status.success() && !text(&kept.stdout).contains("\n0 added"),
            "survey add {f}: {} {}",
            text(&kept.stdout),
            text(&kept.stderr)
        );
        let shown = run(dir, &["report", f]);
        let own = ["report.json", "inferred.json"].contains(&f);
        assert_eq!(matches!(shown.status.code(), Some(0 | 3)), own, "report {f}: {}", text(&shown.stderr));
    }
    // The figures of other benchmarks are printed with their conditions, and a false card is one for every command.
    let fio = text(&run(dir, &["infer", "fio.json"]).stdout);
    assert!(fio.contains("random write") && fio.contains("4 KiB, depth 1, direct") && fio.contains("IOPS"), "{fio}");
    let fake = run(dir, &["infer", "fake.txt"]);
    assert!(fake.status.code() == Some(6) && text(&fake.stdout).contains("counterfeit"), "{}", text(&fake.stdout));
}

/// What `infer --json` writes has a schema of its own and prints again what it printed.
#[test]
fn what_infer_writes_of_logs_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    files(dir);
    for given in [&["open.txt"][..], &["open.txt", "fio.json", "iozone.txt"], &["f3.txt", "open.txt"]] {
        let said = run(dir, &[&["infer", "--json", "i.json"], given].concat());
        let value: Value = serde_json::from_str(&std::fs::read_to_string(dir.join("i.json")).unwrap()).unwrap();
        assert_eq!((value["schema"].as_str(), value["cards"].as_array().unwrap().len()), (Some("nandscope-infer/1"), given.len()));
        let shown = run(dir, &["report", "i.json"]);
        assert_eq!((text(&shown.stdout), shown.status.code()), (text(&said.stdout), said.status.code()), "{given:?}");
        let again = run(dir, &["infer", "i.json", "--json", "-"]);
        assert_eq!(serde_json::from_str::<Value>(&text(&again.stdout)).unwrap(), value, "{given:?}");
        // An older version wrote the schema of a report.
        let mut old = value.clone();
        old["schema"] = "nandscope-report/1".into();
        std::fs::write(dir.join("old.json"), old.to_string()).unwrap();
        assert_eq!(run(dir, &["report", "old.json"]).stdout, shown.stdout);
        let kept = run(dir, &["survey", "--dir", &format!("s{}", given.join("")), "add", "i.json"]);
        assert!(text(&kept.stdout).contains(&format!("{} added", given.len())), "{} {}", text(&kept.stdout), text(&kept.stderr));
    }
    // It is no report of samples, and says so where those are needed.
    let life = run(dir, &["life", "i.json"]);
    assert!(life.status.code() == Some(1) && text(&life.stderr).contains("nandscope-infer/1"), "{}", text(&life.stderr));
    let page = run(dir, &["report", "i.json", "--html", "p.html"]);
    assert!(page.status.code() == Some(1) && text(&page.stderr).contains("made of logs"), "{}", text(&page.stderr));
}

/// A file among several with nothing to read is named and left out; alone it is an error.
#[test]
fn a_file_with_nothing_to_read_does_not_end_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    files(dir);
    std::fs::write(dir.join("cut.json"), "{\"schema\": \"nandscope-rep").unwrap();
    // What is damaged holds something: it is not passed over.
    for args in [["infer", "open.txt", "cut.json"], ["compare", "open.txt", "cut.json"]] {
        let out = run(dir, &args);
        assert!(out.status.code() == Some(1) && text(&out.stderr).contains("cut off"), "{args:?} {}", text(&out.stderr));
    }
    std::fs::write(dir.join("empty"), "").unwrap();
    for bad in ["words.txt", "empty"] {
        let alone = run(dir, &["infer", "open.txt"]);
        for order in [["open.txt", bad], [bad, "open.txt"]] {
            let with = run(dir, &["infer", order[0], order[1]]);
            assert_eq!((&with.stdout, with.status.code()), (&alone.stdout, Some(0)), "{bad}");
            assert!(text(&with.stderr).contains("left out") && text(&with.stderr).contains(bad), "{}", text(&with.stderr));
            let with = run(dir, &["compare", order[0], order[1], "fio.json"]);
            assert!(matches!(with.status.code(), Some(0 | 3)) && text(&with.stderr).contains(bad), "{}", text(&with.stderr));
        }
        std::fs::write(dir.join("more.txt"), "hello\n").unwrap();
        for args in [&["infer", bad, "more.txt"][..], &["compare", bad, "more.txt"]] {
            let none = run(dir, args);
            assert!(none.status.code() == Some(1) && text(&none.stderr).contains(bad) && none.stdout.is_empty(), "{args:?}");
        }
    }
}
