//! The programs for boards in `firmware/`, compiled against small stand-ins of their libraries, run with a pretended card, and
//! read by `nandscope infer`.
//! covers: C6, G1, G2, G9

use super::program::program;
use nandscope::samples::firmware::{Log, parse};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const BOARDS: [&str; 3] = ["arduino", "esp-idf", "pico"];

/// Runs a compiler; panics with what it says where it is there and fails.
fn compile(compiler: &str, args: &[String]) {
    let out = Command::new(compiler).args(["-Wall", "-Wextra", "-Werror"]).args(args).output().unwrap();
    assert!(out.status.success(), "{compiler} {args:?}\n{}", String::from_utf8_lossy(&out.stderr));
}

/// What a board prints; `defines` change what its user may change.
fn printed(board: &str, defines: &[&str], dir: &Path) -> String {
    let place = |name: &str| dir.join(name).display().to_string();
    let stubs = format!("-Itests/boards/{board}");
    let args = |more: &[&str]| -> Vec<String> {
        let own = ["-Ifirmware", stubs.as_str()];
        own.iter().chain(defines).chain(more).map(ToString::to_string).collect()
    };
    let program = place("board");
    if board == "arduino" {
        // The sketch is C++, the library C.
        let (sketch, library) = (place("sketch.o"), place("nandscope.o"));
        compile("g++", &args(&["-include", "Arduino.h", "-x", "c++", "-c", "firmware/arduino/card_bench/card_bench.ino", "-o", &sketch]));
        compile("gcc", &args(&["-std=c99", "-pedantic", "-c", "firmware/nandscope.c", "-o", &library]));
        compile("g++", &args(&["tests/boards/arduino/main.cpp", &sketch, &library, "-o", &program]));
    } else {
        let source: &[&str] = match board {
            "pico" => &["firmware/pico/main.c"],
            _ => &["firmware/esp-idf/main/main.c", "tests/boards/esp-idf/start.c"],
        };
        compile("gcc", &args(&[source, &["-std=gnu99", "firmware/nandscope.c", "-o", &program]].concat()));
    }
    let out = Command::new(program).output().unwrap();
    assert!(out.status.success());
    String::from_utf8(out.stdout).unwrap()
}

fn infer(log: &str, more: &[&str]) -> Output {
    let mut child =
        program().args(["infer", "-"]).args(more).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It may refuse before it has read everything.
    child.stdin.take().unwrap().write_all(log.as_bytes()).ok();
    child.wait_with_output().unwrap()
}

fn text(out: &Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
}

fn compilers() -> bool {
    let there = ["gcc", "g++"].iter().all(|c| Command::new(c).arg("--version").output().is_ok());
    if !there {
        crate::skip::no_tool("the programs for boards", "gcc or g++");
    }
    there
}

fn whole(log: &Log) {
    let wrong = ["damaged", "missing", "cut off", "left out"];
    assert!(log.notes.iter().all(|n| !wrong.iter().any(|w| n.contains(w))), "{:?}", log.notes);
}

/// Every call in its order, or the histogram alone: the same run, and what can be said of it.
#[test]
fn each_board_compiles_runs_and_is_understood() {
    if !compilers() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for board in BOARDS {
        let log = printed(board, &[], dir.path());
        let each = parse(&log);
        whole(&each);
        assert!(!each.host.is_empty() && each.passes.len() == 2, "{board}: {:?}", each.passes);
        let (write, read) = (&each.passes[0], &each.passes[1]);
        assert!(write.write && !read.write && !write.unordered && write.records >= 2048, "{board}");
        assert_eq!((write.max_min(), read.max_min()), ((150_000.0, 1200.0), (200.0, 200.0)), "{board}: the clock wrapped round");
        assert_eq!(
            (write.opened.millis(), write.timed().filter(|c| c.2 > 100_000_000).count() as u64),
            (21.0, write.records / 64),
            "{board}"
        );
        assert_eq!((write.closed.millis(), read.closed.micros()), (9.0, 300.0), "{board}: the sync is the writer's, the close the last");
        let out = infer(&log, &["--log", "20kB"]);
        let said = text(&out);
        assert!(out.status.success(), "{board}: {said}");
        assert!(said.contains("every 32 KiB") && said.contains("to log 20.0 kB/s with") && said.contains("you need"), "{board}: {said}");

        // The histogram of the same run, coarse and fine.
        for bits in ["-DNS_BITS=2", "-DNS_BITS=4"] {
            let log = printed(board, &["-DCALLS_KEPT=0", bits], dir.path());
            assert!(log.lines().count() < 20, "{board}: {log}");
            let counted = parse(&log);
            whole(&counted);
            for (a, b) in each.passes.iter().zip(&counted.passes) {
                assert!(b.unordered);
                assert_eq!((a.records, a.total, a.max_min()), (b.records, b.total, b.max_min()), "{board} {bits}");
                for q in [10.0, 50.0, 90.0, 98.0, 99.0, 100.0] {
                    let (exact, bin) = (a.percentile(q), b.percentile(q));
                    let wide = if bits.ends_with('2') { 1.25 } else { 1.0625 };
                    assert!(bin >= 0.998 * exact && bin <= 1.002 * wide * exact, "{board} {bits}, {q} %: {bin} for {exact}");
                }
            }
            let out = infer(&log, &["--log", "20kB", "--log", "5kB/s"]);
            let said = text(&out);
            assert!(out.status.success(), "{board}: {said}");
            assert!(said.contains("above 100 ms") && !said.contains("every 32 KiB") && !said.contains("you need"), "{board}: {said}");
            // 20 kB/s for 150 ms is 3000 B: six records of 512 B.
            assert!(said.contains("3072 B ride over the longest call (150 ms)"), "{board}: {said}");
            assert!(said.contains("1024 B ride over the longest call (150 ms)"), "{board}: {said}");
            let json: serde_json::Value = serde_json::from_slice(&infer(&log, &["--json", "-"]).stdout).unwrap();
            let pass = &json["benches"][0]["passes"][0];
            assert!(pass["unordered"] == true && pass["stalls"].is_null() && pass["percentiles_us"].is_array(), "{pass}");
        }
    }
}

/// An Arduino Uno has memory for a coarse histogram only, and a clock of 4 µs; what it prints is what firmware/README.md shows.
#[test]
fn the_readme_shows_what_an_uno_prints() {
    if !compilers() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let log = printed("arduino", &["-D__AVR__", "-DF_CPU=16000000UL"], dir.path());
    assert_eq!(parse(&log).clock_us, 4);
    let page = include_str!("../../firmware/README.md");
    assert!(page.contains(&log), "firmware/README.md does not show this:\n{log}");
    // And what becomes of it where each call is kept.
    let out = text(&infer(&printed("arduino", &[], dir.path()), &["--log", "20kB"]));
    let shown = page.lines().skip_while(|l| !l.starts_with("  stalls: ")).take_while(|l| !l.starts_with("```"));
    for line in shown.filter(|l| !l.is_empty()) {
        assert!(out.contains(line), "firmware/README.md shows '{line}', and this is printed:\n{out}");
    }
}

/// What the board says is what the user is told, with a serial monitor's time before it or not.
fn reason_is_given(board: &str, log: &str) {
    let why = log.lines().last().unwrap().strip_prefix("no result: ").unwrap();
    for log in [log.to_string(), log.replace("no result", "12:00:01.250 -> no result")] {
        let out = infer(&log, &[]);
        let said = text(&out);
        assert!(!out.status.success() && said.lines().count() == 1 && said.contains(&format!("the board says: {why}")), "{board}: {said}");
    }
}

#[test]
fn a_board_without_a_card_says_so_and_is_no_result() {
    if !compilers() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for board in BOARDS {
        let log = printed(board, &["-DNO_CARD"], dir.path());
        assert!(log.starts_with("no result: ") && log.lines().count() == 1, "{board}: {log}");
        reason_is_given(board, &log);
    }
}

/// A card that fills up in the middle is no result either, and nothing is left on it.
#[test]
fn a_board_whose_card_is_full_leaves_no_file() {
    if !compilers() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for board in BOARDS {
        let log = printed(board, &["-DNO_ROOM"], dir.path());
        assert!(log.contains("no result: ") && !log.contains("left on the card"), "{board}: {log}");
        reason_is_given(board, &log);
    }
}

/// The rate of a logger is a rate, and is the user's.
#[test]
fn the_rate_of_a_logger_is_what_was_asked_for() {
    let sum = |body: &str| format!("ns:{body}*{:02x}\n", body.bytes().fold(0, |x, b| x ^ b));
    let mut log = sum("1 host=mine poll_ns=0 clock_us=1");
    for i in 0..2000 {
        log += &sum(&format!("w 512 {}", if i % 100 == 50 { 80_000 } else { 1000 }));
    }
    log += &sum("end 2002");
    for (rate, said) in
        [("20kB", "to log 20.0 kB/s"), ("20kB/s", "to log 20.0 kB/s"), ("64KiB", "to log 65.5 kB/s"), ("150kB/s,10kB", "to log 150 kB/s")]
    {
        let out = infer(&log, &["--log", rate]);
        assert!(out.status.success() && text(&out).contains(said), "{rate}: {}", text(&out));
        assert!(text(&out).contains("you need"), "what was written without a loss can be claimed: {}", text(&out));
        assert!(!text(&out).contains("half of what the card takes"), "{rate}");
    }
    assert!(text(&infer(&log, &[])).contains("half of what the card takes; --log RATE asks for yours"));
    for (rate, why) in [("20", "has no unit"), ("20/s", "has no unit"), ("0kB", "above 0"), ("20kB/h", "unknown unit"), ("-5kB", "")] {
        let out = infer(&log, &["--log", rate]);
        assert!(!out.status.success() && text(&out).contains(why), "{rate}: {}", text(&out));
    }
    // What a log without writes, or no log of calls, cannot answer.
    let reads = sum("1 host=mine") + &sum("r 512 900") + &sum("end 3");
    let out = infer(&reads, &["--log", "20kB"]);
    assert!(!out.status.success() && text(&out).contains("no calls that write"), "{}", text(&out));
}
