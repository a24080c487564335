//! A defect of this program ends it in one line, wherever it shows: unwinding would cost a tenth of the program's size, and what
//! matters does not rest on it. What was overwritten is in a journal on a disk before it is written; settings of the kernel's queue
//! are put back here; what a killed `serve` leaves, the next one removes.

use crate::host::queue;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::Write;
use std::panic::PanicHookInfo;

/// The exit code: that of a Rust program that panicked.
const DEFECT: i32 = 101;

/// From now on a panic of any thread is told, and ends the program.
pub fn ends_the_program() {
    std::panic::set_hook(Box::new(|info| {
        queue::restore_all();
        // A standard error that is gone is no second defect.
        let _ = writeln!(std::io::stderr(), "nandscope: {}", told(info));
        let trace = Backtrace::capture();
        if trace.status() == BacktraceStatus::Captured {
            let _ = writeln!(std::io::stderr(), "{trace}");
        }
        std::process::exit(DEFECT);
    }));
}

fn told(info: &PanicHookInfo) -> String {
    // `payload_as_str` needs a newer Rust than everything else here.
    let payload = info.payload();
    let said = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let why = said.unwrap_or("no reason is known").trim();
    let at = info.location().map_or(String::new(), |l| format!(" ({}:{})", l.file(), l.line()));
    let undo = "if it was writing, 'nandscope undo' lists what can be put back";
    format!("this is a defect of nandscope{at}: {}; {undo}; please report it with the command", super::harmless(why))
}

#[cfg(test)]
mod tests {
    use crate::host::queue::Queue;
    use std::process::Command;

    /// Where the test below, run as a program of its own, finds a queue.
    const DIR: &str = "NANDSCOPE_TEST_QUEUE";

    #[test]
    #[ignore = "run by the test below"]
    fn a_program_with_a_defect() {
        let dir = std::env::var(DIR).unwrap();
        let mut queue = Queue::of(dir.as_ref(), "sdz");
        queue.set("max_sectors_kb", "64").unwrap();
        super::ends_the_program();
        // In a thread of its own, as the workers of a sweep are.
        std::thread::scope(|s| s.spawn(|| panic!("no such \u{1b}[31mpage")).join()).unwrap();
    }

    #[test]
    fn a_defect_is_one_line_and_the_queue_is_put_back() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("block/sdz/queue");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("max_sectors_kb"), "512\n").unwrap();
        let name = format!("{}::a_program_with_a_defect", module_path!().split_once("::").unwrap().1);
        let out = Command::new(std::env::current_exe().unwrap())
            .args([&name, "--exact", "--ignored", "--nocapture"])
            .env(DIR, root.path())
            .env_remove("RUST_BACKTRACE")
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&out.stderr);
        let said: Vec<&str> = err.lines().filter(|l| !l.trim().is_empty()).collect();
        assert_eq!(said.len(), 1, "{err}");
        assert!(said[0].starts_with("nandscope: this is a defect of nandscope (src/cli/defect.rs:"), "{err}");
        assert!(said[0].contains("no such ") && !said[0].contains('\u{1b}'), "{err}");
        assert_eq!(out.status.code(), Some(super::DEFECT));
        assert_eq!(std::fs::read_to_string(dir.join("max_sectors_kb")).unwrap(), "512");
    }
}
