//! The real clock: CLOCK_MONOTONIC in ns, and waiting for a point on it.

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// The last stretch before a deadline is spent spinning, in ns: a sleep may end this much late.
pub const SPIN: u64 = 80_000;

/// ns of CLOCK_MONOTONIC.
pub fn now() -> u64 {
    let t = clock_gettime(ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Returns at `due` (ns), or at once where that has passed: sleeps, then spins.
pub fn wait_until(due: u64) {
    loop {
        let now = now();
        if now >= due {
            return;
        }
        if due - now > SPIN {
            let wake = due - SPIN;
            let at = Timespec { tv_sec: (wake / 1_000_000_000) as i64, tv_nsec: (wake % 1_000_000_000) as _ };
            // A signal may end the sleep early; then the loop comes round again.
            let _ = clock_nanosleep_absolute(ClockId::Monotonic, &at);
        } else {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn never_returns_early() {
        for ahead in [0, 1, 50_000, 300_000, 2_000_000] {
            let due = super::now() + ahead;
            super::wait_until(due);
            assert!(super::now() >= due);
        }
        super::wait_until(0);
    }
}
