//! A progress bar in bytes for what takes longer than two seconds, on a terminal only.

use super::colour;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::Instant;

/// Shows itself two seconds after it was made.
pub struct Progress {
    bar: Option<ProgressBar>,
    began: Instant,
    shown: bool,
}

impl Progress {
    /// A bar for this many bytes.
    pub fn new(what: &'static str, total: u64, quiet: bool) -> Progress {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let look = if colour(&std::io::stderr()) { "{bar:30.cyan}" } else { "{bar:30}" };
            let b = ProgressBar::hidden();
            let template = format!("{{msg}} {look} {{bytes}} of {{total_bytes}}, {{eta}} left");
            b.set_style(ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar()));
            b.set_length(total);
            b.set_message(what);
            b
        });
        Progress { bar, began: Instant::now(), shown: false }
    }

    /// Bytes done so far.
    pub fn at(&mut self, done: u64) {
        let Some(bar) = &self.bar else { return };
        if !self.shown && self.began.elapsed().as_secs() >= 2 {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            self.shown = true;
        }
        if self.shown {
            bar.set_position(done);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
