//! Real block devices: loop devices over files on disk and in memory, partitions, mounts, swap, and a run that is killed.
//!
//! Needs root and loop devices; where they are missing, one line says what is skipped and why. It brings its own main because
//! the killed run is this program started again.

#[path = "blockdev/attacks.rs"]
mod attacks;
#[path = "blockdev/bed.rs"]
mod bed;
#[path = "blockdev/kills.rs"]
mod kills;
#[path = "blockdev/region.rs"]
mod region;
#[path = "blockdev/safety.rs"]
mod safety;
#[path = "common/skip.rs"]
mod skip;
#[path = "blockdev/transfer.rs"]
mod transfer;
#[path = "blockdev/undone.rs"]
mod undone;

use std::panic::catch_unwind;
use std::process::ExitCode;

type Test = (&'static str, fn());

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|a| a == "write-until-killed") {
        undone::write_until_killed(&args[1], &args[2], &args[3]);
        return ExitCode::SUCCESS;
    }
    if args.iter().any(|a| a == "--list") {
        return ExitCode::SUCCESS;
    }
    let filter = args.iter().find(|a| !a.starts_with('-'));
    let (mut passed, mut failed) = (0, Vec::new());
    let all: Vec<Test> = [transfer::IMAGES, region::IMAGES, undone::IMAGES, kills::IMAGES, &loops()].concat();
    for (name, test) in all.into_iter().filter(|(n, _)| filter.is_none_or(|f| n.contains(f.as_str()))) {
        match catch_unwind(test) {
            Ok(()) => passed += 1,
            Err(_) => failed.push(name),
        }
        println!("test {name} ... {}", if failed.last() == Some(&name) { "FAILED" } else { "ok" });
    }
    println!("\ntest result: {passed} passed; {} failed {failed:?}", failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The tests that need loop devices; none where there are none.
fn loops() -> Vec<Test> {
    if let Some(why) = bed::no_loops() {
        skip::skipped("all tests on loop devices, mounts and swap", &why);
        return Vec::new();
    }
    [transfer::LOOPS, safety::LOOPS, region::LOOPS, undone::LOOPS, attacks::LOOPS, kills::LOOPS].concat()
}
