//! The signals that end a program: Ctrl-C, Ctrl-\, a request to end, and the end of the terminal, as of an ssh session that breaks off.

use crate::device::Guard;
use crate::shell::word;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1};
use signal_hook::{flag, low_level};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, Once};

/// The exit code of a command that a signal ended early.
const INTERRUPTED: u8 = 130;

/// A signal ended what was under way.
static ENDED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// The code to end with: that of an interruption where one came, unless what was found until then has a code of its own.
pub fn code(of_command: ExitCode) -> ExitCode {
    let says_more = ![0, 1, super::UNDECIDED].map(ExitCode::from).contains(&of_command);
    if says_more || !ENDED.load(Ordering::Relaxed) { of_command } else { ExitCode::from(INTERRUPTED) }
}

/// The same as a number, for what is written of a run.
pub fn number(of_command: u8) -> u8 {
    if code(ExitCode::from(of_command)) == ExitCode::from(of_command) { of_command } else { INTERRUPTED }
}

/// What a second signal does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Second {
    /// Ends the program at once.
    Ends,
    /// Nothing: what is under way is short, and something must be put back behind it.
    Waits,
}

/// The journals of old content that is to be put back at the end.
static KEPT: Mutex<Vec<PathBuf>> = Mutex::new(vec![]);

/// Where a second signal ends the program at once, says which old content of this target is not back then.
pub fn keeps(guard: &Guard) {
    if let (Some(journal), Ok(mut kept)) = (guard.journal(), KEPT.lock()) {
        kept.push(journal);
    }
}

/// What is said at the first signal.
static FIRST: Mutex<Option<&'static str>> = Mutex::new(None);

/// Says at the first signal what takes a while before the end, where a second one ends the program at once.
pub fn says(what: &'static str) {
    if let Ok(mut first) = FIRST.lock() {
        *first = Some(what);
    }
}

/// A flag that a signal sets.
///
/// # Errors
/// The system refuses.
pub fn on_signals(second: Second) -> std::io::Result<Arc<AtomicBool>> {
    static WATCHED: Once = Once::new();
    let stop = Arc::new(AtomicBool::new(false));
    for signal in ending() {
        flag::register(signal, Arc::clone(&stop))?;
        flag::register(signal, Arc::clone(&ENDED))?;
    }
    if second == Second::Ends && !WATCHED.is_completed() {
        let mut all = signal_hook::iterator::Signals::new(ending())?;
        WATCHED.call_once(|| {
            std::thread::spawn(move || all.forever().enumerate().for_each(|(i, signal)| at_once(i, signal)));
        });
    }
    Ok(stop)
}

/// What a signal does at once, after so many others. Of the end of a terminal both the shell and the kernel tell.
fn at_once(others: usize, signal: i32) {
    if others == 0 || signal == SIGHUP {
        if let (0, Some(what)) = (others, FIRST.lock().ok().and_then(|f| *f)) {
            tell!("interrupted; {what} ...");
        }
        return;
    }
    for journal in KEPT.lock().iter().flat_map(|k| k.iter()).filter(|j| j.exists()) {
        tell!("nandscope: ended at once; the old content is NOT put back: nandscope undo {}", word(&journal.display().to_string()));
    }
    std::process::exit(INTERRUPTED.into());
}

/// The signals that end this program; not the end of the terminal where that was ignored when it began, as by nohup.
pub fn ending() -> impl Iterator<Item = i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|l| l.strip_prefix("SigIgn:")).and_then(|m| u64::from_str_radix(m.trim(), 16).ok()).unwrap_or(0);
    [SIGINT, SIGTERM, SIGHUP, SIGQUIT].into_iter().filter(move |s| *s != SIGHUP || ignored >> (SIGHUP - 1) & 1 == 0)
}

/// A flag that SIGUSR1 sets: the card is taken out and put in again.
///
/// # Errors
/// The system refuses.
pub fn taken_out() -> std::io::Result<Arc<AtomicBool>> {
    let out = Arc::new(AtomicBool::new(false));
    flag::register(SIGUSR1, Arc::clone(&out))?;
    Ok(out)
}

/// While it lives, what ends a program only sets a flag.
pub struct Interrupt {
    stop: Arc<AtomicBool>,
    ids: Vec<signal_hook::SigId>,
}

impl Interrupt {
    /// # Errors
    /// The system refuses.
    pub fn new() -> std::io::Result<Interrupt> {
        let stop = Arc::new(AtomicBool::new(false));
        let ids = ending().map(|s| flag::register(s, Arc::clone(&stop))).collect::<std::io::Result<_>>()?;
        Ok(Interrupt { ids, stop })
    }

    pub fn came(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        ENDED.fetch_or(self.came(), Ordering::Relaxed);
        for id in self.ids.drain(..) {
            low_level::unregister(id);
        }
    }
}

/// Counts the signals.
///
/// # Errors
/// The system refuses.
pub fn counted() -> std::io::Result<Arc<AtomicUsize>> {
    let count = Arc::new(AtomicUsize::new(0));
    let mut all = signal_hook::iterator::Signals::new(ending())?;
    let theirs = Arc::clone(&count);
    std::thread::spawn(move || {
        for _ in all.forever() {
            theirs.fetch_add(1, Ordering::Relaxed);
        }
    });
    Ok(count)
}
