use super::*;
use crate::device::plain::Plain;
use crate::device::{DeviceError, Fill, Op};
use std::collections::BTreeMap;

fn room(size: u64) -> Room {
    Room { region: 0..size, sector: 512 }
}

fn run(text: &str, set: &[Set], device: &mut Plain) -> Result<String, Failure> {
    let mut out = vec![];
    let how = Running { seed: 1, stop: &mut || false, done: &mut |_, _, _| {} };
    let room = room(device.geometry.size);
    Pattern::parse("p", text)?.run(set, &room, device, &mut out, how)?;
    Ok(String::from_utf8(out).unwrap())
}

fn wrong(text: &str) -> String {
    run(text, &[], &mut Plain::new(1 << 20)).unwrap_err().to_string()
}

#[test]
fn loops_expressions_and_columns() {
    let mut d = Plain::new(64 << 20);
    let text = "param top = 2*(1 MiB + 1 MiB)/2  # a comment\n\
                for s in halves top .. 512 KiB { print size s, \" \", rate mean { for p in 0 .. top step s backwards { write ones s at p } }\n newline }\n\
                print time max { read 1.5 KiB at 1<<20 read 512 at 0 }";
    let out = run(text, &[], &mut d).unwrap();
    // 2 MiB in 2148 µs, 1 MiB in 1124 µs, 512 KiB in 612 µs.
    assert_eq!(out, "2MiB    976M/s \n1MiB    933M/s \n512KiB  857M/s \n102µs  ");
    let places: Vec<u64> = d.seen.iter().filter(|a| a.len == 1 << 20).map(|a| a.at).collect();
    assert_eq!(places, [1 << 20, 0]);
    assert!(matches!(d.seen[0].op, Op::Write(Fill::Ones)));
    assert_eq!(run("param n = 3 repeat n { read 512 at 0 } print number n", &[("n".into(), 5)], &mut d).unwrap(), "5");
}

#[test]
fn what_is_prepared_is_not_measured() {
    let mut d = Plain::new(64 << 20);
    let out =
        run("print time total { prepare { read 16 MiB at 0 mean { read 16 MiB at 0 } } read 512 at 0 wait 5 ms }", &[], &mut d).unwrap();
    assert_eq!(out.trim(), "100µs");
    assert_eq!(d.seen.len(), 3);
    // Nested reducers give one value each.
    let out =
        run("print time min { mean { read 512 at 0 read 1 MiB at 0 } mean { read 1 MiB at 0 read 1 MiB at 0 } }", &[], &mut d).unwrap();
    assert_eq!(out.trim(), "612µs");
}

#[test]
fn a_shuffled_loop_visits_every_value_once_and_anew_each_time() {
    let mut d = Plain::new(1 << 20);
    run("repeat 2 { for p in 0 .. 64 KiB step 512 shuffled { read 512 at p } }", &[], &mut d).unwrap();
    let (a, b) = d.seen.split_at(128);
    let at = |x: &[Access]| x.iter().map(|a| a.at).collect::<Vec<_>>();
    assert_ne!(at(a), at(b));
    for x in [a, b] {
        let mut all = at(x);
        all.sort_unstable();
        assert_eq!(all, (0..128).map(|i| i * 512).collect::<Vec<_>>());
    }
    let mut d = Plain::new(1 << 20);
    run("for p in 0 .. 4096 step 512 shuffled when 0 { read 512 at p }", &[], &mut d).unwrap();
    assert!(d.seen.is_sorted_by_key(|a| a.at));
}

#[test]
fn errors_name_line_and_column() {
    for (text, place, what) in [
        ("read 512", "1:9", "expected 'at'"),
        ("\n  reed 512 at 0", "2:3", "'reed' is no statement"),
        ("read 512 at where", "1:13", "'where' is not known"),
        ("for i in 0 .. 4 { read 512 at 0", "1:17", "never closed"),
        ("read 4 parsecs at 0", "1:8", "expected 'at'"),
        ("read 4parsecs at 0", "1:6", "unknown unit"),
        ("let mean = 4", "1:5", "word of the language"),
        ("read 512 at 0\nparam a = 1", "2:7", "stand before"),
        ("print mean { read 512 at 0 }", "1:7", "expected a text"),
        ("print \"x", "1:7", "ends with"),
        ("read 1.0001 KiB at 0", "1:6", "not a whole number"),
        ("let a = 5 / (3 - 3)", "1:11", "division by zero"),
        ("read 512 at 9223372036854775807 * 4", "1:33", "outside"),
        ("for i in 0 .. 10 step 0 { }", "1:1", "never arrives"),
        ("print rate mean { }", "1:12", "nothing is measured"),
        ("read 512 at 0 ;", "1:15", "means nothing"),
        ("wait 5 days", "1:8", "unit of time"),
        ("write green 512 at 0", "1:7", "zeros, ones, constant or random"),
    ] {
        let e = wrong(text);
        assert!(e.starts_with(&format!("p:{place}: ")) && e.contains(what), "{text}: {e}");
    }
}

#[test]
fn nothing_leaves_the_region_wraps_or_runs_without_end() {
    for (text, what) in [
        ("write zeros 4096 at 1048576 - 2048", "leaves the region"),
        ("read 512 at 0 - 512", "leaves the region"),
        ("read 512 at 1 << 40", "leaves the region"),
        ("read 100 at 0", "multiples of the 512"),
        ("read 512 at 3", "multiples of the 512"),
        ("read 0 at 0", "no length"),
        ("read 512 MiB at 0", "leaves the region"),
        ("repeat 1 << 40 { }", "steps"),
        ("repeat 100000000 { read 512 at 0 }", "accesses"),
        ("for i in 0 .. 1 << 50 { }", "values"),
        ("repeat 10 { wait 10000 s }", "more than a day"),
        ("repeat 0 - 1 { }", "repeated -1 times"),
        ("for s in halves 0 .. 0 { }", "above 0"),
    ] {
        let mut d = Plain::new(1 << 20);
        let e = run(&format!("read 512 at 0 {text}"), &[], &mut d).unwrap_err().to_string();
        assert!(e.contains(what), "{text}: {e}");
        assert!(d.seen.is_empty(), "{text}: something was sent before all was checked");
    }
    let deep = "repeat 1 { ".repeat(40) + &"}".repeat(40);
    assert!(wrong(&deep).contains("blocks inside each other"));
    assert!(wrong(&format!("let a = {}1{}", "(".repeat(99), ")".repeat(99))).contains("brackets"));
}

#[test]
fn the_cost_is_what_a_run_does() {
    let text = "for p in 0 .. 1 MiB step 64 KiB shuffled { write random 64 KiB at p } read 4096 at 0 discard 8192 at 2 MiB wait 2 s";
    let p = Pattern::parse("p", text).unwrap();
    let c = p.cost(&[], &room(4 << 20)).unwrap();
    assert_eq!((c.writes, c.bytes_written, c.reads, c.discards), (16, 1 << 20, 1, 1));
    assert_eq!((c.pause, c.changed), (Nanos(2_000_000_000), vec![(0, 1 << 20), (2 << 20, 8192)]));
    assert!(p.cost(&[("nosuch".into(), 1)], &room(4 << 20)).unwrap_err().to_string().contains("no parameter 'nosuch'"));
}

#[test]
fn a_failing_device_ends_it() {
    let mut d = Plain { fail_from: 3, ..Plain::new(1 << 20) };
    let e = run("repeat 9 { write zeros 512 at 0 }", &[], &mut d).unwrap_err();
    assert!(matches!(e, Failure::Device(DeviceError::Io { .. })), "{e}");
}

#[test]
fn numbers_as_shells_leave_them() {
    for (text, v) in [
        ("4194304", 4 << 20),
        ("4MiB", 4 << 20),
        ("4M", 4 << 20),
        ("$[4 * 1024 * 1024]", 4 << 20),
        ("$((1<<22))", 4 << 20),
        ("4*1024*1024", 4 << 20),
        (" 512 ", 512),
    ] {
        assert_eq!(expression(text), Ok(v), "{text}");
    }
    for bad in ["", "x", "-1", "4 parsecs", "4 4", "1/0", "99999999999999999999", "$[", "1e9"] {
        assert!(expression(bad).is_err(), "{bad}");
    }
}

/// Every example in `patterns/` parses, and fits on a card of 256 MiB.
#[test]
fn examples_run() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../patterns");
    let mut seen = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let cost = Pattern::parse(&name, &text).unwrap().cost(&[], &room(256 << 20)).unwrap();
        assert!(cost.accesses() > 0, "{name}");
        seen.insert(name, cost.bytes_written >> 20);
    }
    // Nine sizes, each with two AUs written twice.
    assert_eq!(seen.get("open-au.pattern"), Some(&(9 * 2 * 2 * 4)), "{seen:?}");
}
