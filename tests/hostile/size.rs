//! Large inputs: memory and time grow no faster than the input.
//!
//! Memory is bounded by the kernel; time is the processor time of the program, compared between two sizes.

use super::{Ran, run, within};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const MB: usize = 1_000_000;

fn repeated(text: &str, size: usize) -> Vec<u8> {
    text.bytes().cycle().take(size).collect()
}

/// Inputs by name, how they are read, and how many bytes of memory one byte may take.
type Input = (&'static str, fn(usize) -> Vec<u8>, &'static str, u64);

const INPUTS: &[Input] = &[
    ("rows", |n| repeated("align 4194304\tpre 741us\ton 1080us\tpost 701us\tdiff 379us\n", n), "infer FILE", 20),
    ("open AUs", |n| repeated("4MiB 14M/s\n2MiB 12M/s\n1MiB 9M/s\n", n), "infer FILE", 32),
    (
        "records",
        |n| repeated("write speed and latency\nspeed,max,min,avg\nKB/Sec,usec,usec,usec\n1812.1,22308,1024,5000\n", n),
        "infer FILE",
        24,
    ),
    ("prose", |n| repeated("I have tested this SanDisk card 2 at /dev/sdb for a long while, and it is slow.\n", n), "infer FILE", 24),
    ("cards", |n| repeated("Card 1:\nalign 4096\tpre 700us\ton 1ms\tpost 701us\tdiff 379us\nCard 2:\n4MiB 14M/s\n", n), "infer FILE", 32),
    ("empty lines", |n| vec![b'\n'; n], "infer FILE", 16),
    ("one line", |n| vec![b'x'; n], "infer FILE", 16),
    ("one line of digits", |n| vec![b'7'; n], "infer FILE", 16),
    ("one line of paths", |n| repeated("/sys/block/", n), "infer FILE", 16),
    ("one line of tags", |n| repeated("<b>[code]&amp;", n), "infer FILE", 24),
    ("quotes", |n| repeated("> ", n), "infer FILE", 16),
    ("an open string", |n| [&b"{\"schema\":\""[..], &vec![b'y'; n]].concat(), "report FILE", 16),
    ("arrays", |n| [&b"{\"x\":["[..], &repeated("[],", n), b"0]}"].concat(), "infer FILE", 64),
    ("registers", |n| repeated("cid:824a544e43617264204000081100e200\n", n), "identify --dump FILE", 16),
    (
        "fio's log",
        |n| [&b"fio version 3 iolog\n1 /dev/x add\n2 /dev/x open\n"[..], &repeated("9 /dev/x write 4096 8192\n", n)].concat(),
        "sim sim:null --trace FILE -q",
        16,
    ),
    ("MSR's trace", |n| repeated("128166372003061629,hm,1,Read,3832832,32768,113736\n", n), "sim sim:null --trace FILE -q", 16),
    ("a pattern", |n| repeated("read 4096 at 0\n", n), "flashbench --program FILE sim:null -q", 96),
    ("an open pattern", |n| repeated("repeat 2 {\n", n), "flashbench --program FILE sim:null -q", 96),
    ("a survey", |n| repeated("4MiB 14M/s\n2MiB 12M/s\n1MiB 9M/s\n", n), "survey --dir OUT add FILE", 64),
];

fn arguments(command: &str, dir: &Path, n: usize) -> Vec<String> {
    let at = |name: &str| dir.join(name).to_str().unwrap().to_string();
    command.split(' ').map(|a| a.replace("FILE", &at("file")).replace("OUT", &at(&format!("survey{n}")))).collect()
}

#[test]
fn memory_is_a_small_multiple_of_the_input() {
    let dir = tempfile::tempdir().unwrap();
    for (name, make, command, factor) in INPUTS {
        for size in [MB, 8 * MB] {
            fs::write(dir.path().join("file"), make(size)).unwrap();
            let args = arguments(command, dir.path(), size);
            // What the program takes for itself: its code, and a stack for each thread.
            let own = 400;
            let r: Ran = within(own + factor * (size / MB) as u64, &args.iter().map(String::as_str).collect::<Vec<_>>());
            let fine = r.code.is_some_and(|c| c < 100) && !r.err.contains("memory allocation") && !r.err.contains("panicked");
            assert!(fine, "{name}, {size} bytes: {:?} {:.600}", r.code, r.err);
        }
    }
}

/// Processor seconds of the program, as the shell counts them.
fn seconds(args: &[String]) -> f64 {
    let script = "\"$0\" \"$@\" >/dev/null 2>&1; times";
    let out = Command::new("sh").args(["-c", script, env!("CARGO_BIN_EXE_nandscope")]).args(args).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let second = text.lines().nth(1).unwrap_or_else(|| panic!("{text}"));
    let one = |t: &str| {
        let (m, s) = t.trim_end_matches('s').split_once('m').unwrap();
        m.parse::<f64>().unwrap() * 60.0 + s.parse::<f64>().unwrap()
    };
    second.split_whitespace().map(one).sum()
}

#[test]
fn time_is_linear_in_the_input() {
    let dir = tempfile::tempdir().unwrap();
    for (name, make, command, _) in INPUTS {
        let [small, large] = [MB / 2, 4 * MB].map(|size| {
            fs::write(dir.path().join("file"), make(size)).unwrap();
            seconds(&arguments(command, dir.path(), size + 1))
        });
        // Eight times the input; a quadratic reader would take 64 times as long. A start takes its time, too.
        assert!(large <= 24.0 * small.max(0.03), "{name}: {small} s, then {large} s for eight times as much");
    }
}

/// What is too much is said instead of being tried.
#[test]
fn models_and_dumps_have_a_largest_size() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("large.toml");
    fs::write(&path, vec![b'#'; 3 * MB]).unwrap();
    for args in [&["cards", "check"][..], &["probe"], &["serve"], &["sim", "--pattern", "SR"]] {
        let r = run(&[args, &[path.to_str().unwrap()]].concat());
        assert!(r.code == Some(1) && r.err.contains("1 MiB") && r.err.lines().count() == 1, "{args:?}: {:?} {:.400}", r.code, r.err);
    }
}
