//! The signals that end a program: Ctrl-C, Ctrl-\, a request to end, and the end of the terminal, as of an ssh session that breaks off.

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1};
use signal_hook::{flag, low_level};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What a second signal does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Second {
    /// Ends the program at once.
    Ends,
    /// Nothing: what is under way is short, and something must be put back behind it.
    Waits,
}

/// A flag that a signal sets.
///
/// # Errors
/// The system refuses.
pub fn on_signals(second: Second) -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in ending() {
        // Of the end of a terminal both the shell and the kernel tell.
        if second == Second::Ends && signal != SIGHUP {
            flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))?;
        }
        flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
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
