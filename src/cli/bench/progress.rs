//! The progress of a benchmark.

use std::io::IsTerminal;
use std::time::Instant;

/// One line that moves on a terminal, once anything takes longer than two seconds.
pub struct Progress {
    bar: Option<indicatif::ProgressBar>,
    begun: Instant,
    name: String,
    shown: bool,
}

impl Progress {
    pub fn new(quiet: bool, name: String) -> Progress {
        let on = !quiet && std::io::stderr().is_terminal();
        let bar = on.then(|| {
            let b = indicatif::ProgressBar::hidden();
            b.set_length(1000);
            b.set_style(
                indicatif::ProgressStyle::with_template("{msg} {bar:30} {eta} left")
                    .unwrap_or_else(|_| indicatif::ProgressStyle::default_bar()),
            );
            b
        });
        Progress { bar, begun: Instant::now(), name, shown: false }
    }

    pub fn tick(&mut self, pass: u32, of: u32, share: f64) {
        let Some(bar) = &self.bar else { return };
        if !self.shown && self.begun.elapsed().as_secs() >= 2 {
            bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
            bar.set_message(self.name.clone());
            self.shown = true;
        }
        if self.shown {
            bar.set_position(((f64::from(pass) + share) / f64::from(of.max(1)) * 1000.0).min(1000.0) as u64);
        }
    }

    pub fn end(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
