//! The signals that end a program: Ctrl-C, a request to end, and where it matters the end of the terminal.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::{flag, low_level};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What a second signal does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Second {
    /// Ends the program at once.
    Ends,
    /// Nothing: what is under way is short, and something must be put back behind it. The end of the terminal counts as a signal, too.
    Waits,
}

/// A flag that a signal sets.
///
/// # Errors
/// The system refuses.
pub fn on_signals(second: Second) -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let all: &[i32] = if second == Second::Waits { &[SIGINT, SIGTERM, SIGHUP] } else { &[SIGINT, SIGTERM] };
    for &signal in all {
        if second == Second::Ends {
            flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))?;
        }
        flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
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

/// While it lives, Ctrl-C only sets a flag.
pub struct Interrupt {
    stop: Arc<AtomicBool>,
    id: signal_hook::SigId,
}

impl Interrupt {
    /// # Errors
    /// The system refuses.
    pub fn new() -> std::io::Result<Interrupt> {
        let stop = Arc::new(AtomicBool::new(false));
        Ok(Interrupt { id: flag::register(SIGINT, Arc::clone(&stop))?, stop })
    }

    pub fn came(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        low_level::unregister(self.id);
    }
}

/// Counts the signals.
///
/// # Errors
/// The system refuses.
pub fn counted() -> std::io::Result<Arc<AtomicUsize>> {
    let count = Arc::new(AtomicUsize::new(0));
    let mut all = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    let theirs = Arc::clone(&count);
    std::thread::spawn(move || {
        for _ in all.forever() {
            theirs.fetch_add(1, Ordering::Relaxed);
        }
    });
    Ok(count)
}
