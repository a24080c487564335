//! The progress bar: one line that moves on a terminal, once anything takes longer than two seconds.

use super::colour;
use crate::units::Nanos;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::Instant;

/// Shows itself two seconds after it was made.
pub struct Progress {
    bar: Option<ProgressBar>,
    began: Instant,
    shown: bool,
    done: u64,
    /// What is under way, and since when.
    phase: (String, Instant),
    most: Option<Nanos>,
    /// Experiments that are done, of how many, and the largest share that was shown.
    place: (usize, usize, f64),
}

/// A share is shown in steps of a thousandth.
const WHOLE: u64 = 1000;

impl Progress {
    /// A bar of `total` steps; `look` as indicatif takes it, with `{bar:30}`.
    fn of(quiet: bool, look: &str, total: u64) -> Progress {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let look = if colour(&std::io::stderr()) { look.replace("{bar:30}", "{bar:30.cyan}") } else { look.to_string() };
            let b = ProgressBar::hidden();
            b.set_style(ProgressStyle::with_template(&look).unwrap_or_else(|_| ProgressStyle::default_bar()));
            b.set_length(total);
            b
        });
        let now = Instant::now();
        Progress { bar, began: now, shown: false, done: 0, phase: (String::new(), now), most: None, place: (0, 1, 0.0) }
    }

    /// So many bytes.
    pub fn bytes(what: &str, total: u64, quiet: bool) -> Progress {
        Progress::of(quiet, "{msg} {bar:30} {bytes} of {total_bytes}, {eta} left", total).named(what)
    }

    /// So many things, which are not said.
    pub fn steps(what: &str, total: u64, quiet: bool) -> Progress {
        Progress::of(quiet, "{msg:16} {bar:30} {eta} left", total).named(what)
    }

    /// So many files.
    pub fn files(total: u64, quiet: bool) -> Progress {
        Progress::of(quiet, "{bar:30} {pos}/{len}, {eta} left", total)
    }

    /// A share of a whole.
    pub fn share(what: &str, quiet: bool) -> Progress {
        Progress::of(quiet, "{msg} {bar:30} {eta} left", WHOLE).named(what)
    }

    /// Several experiments: one bar for all of them, no wider than 80 columns. `most` is the time that all may take, where they run in
    /// real time.
    pub fn experiments(quiet: bool, most: Option<Nanos>) -> Progress {
        let mut bar = Progress::of(quiet, "{msg:28} {bar:24} {prefix}", WHOLE);
        bar.most = most;
        bar
    }

    /// A share of each of several phases.
    pub fn phases(quiet: bool) -> Progress {
        Progress::of(quiet, "{msg:32} {bar:30} {prefix}", WHOLE)
    }

    fn named(self, what: &str) -> Progress {
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_string());
        }
        self
    }

    /// The bar, once it is to be seen.
    fn seen(&mut self) -> Option<&ProgressBar> {
        let bar = self.bar.as_ref()?;
        if !self.shown && self.began.elapsed().as_secs() >= 2 {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            self.shown = true;
        }
        self.shown.then_some(bar)
    }

    /// Steps done so far.
    pub fn at(&mut self, done: u64) {
        if let Some(bar) = self.seen() {
            bar.set_position(done);
        }
    }

    /// One step more, of very many: the line moves with each 65536th.
    #[inline]
    pub fn step(&mut self) {
        self.done += 1;
        if self.done & 0xffff == 0 {
            self.at(self.done);
        }
    }

    /// The share that is done.
    pub fn part(&mut self, share: f64) {
        self.at((share * WHOLE as f64).min(WHOLE as f64) as u64);
    }

    /// The experiment that begins, of several.
    pub fn begin(&mut self, index: usize, of: usize, name: &str) {
        self.phase.0 = format!("{}/{of} {name}", index + 1);
        (self.place.0, self.place.1) = (index, of.max(1));
    }

    /// What is under way, where nobody counts the steps.
    pub fn under(&mut self, name: &str) {
        if self.phase.0 != name {
            self.phase.0 = name.into();
        }
    }

    /// The share of its time that an experiment used up. The time left is that of all of them: at most what is allowed, else as fast as so
    /// far.
    pub fn tick(&mut self, spent: f64) {
        let (index, of, _) = self.place;
        self.so_far((index as f64 + spent) / of as f64);
    }

    /// The share of everything that is done; where it runs against a time, the share of that is shown.
    pub fn so_far(&mut self, share: f64) {
        if self.bar.is_none() {
            return;
        }
        let (name, elapsed) = (self.phase.0.clone(), self.began.elapsed().as_secs_f64());
        let share = self.most.map_or(share, |most| elapsed / most.secs().max(1e-9)).clamp(self.place.2, 1.0);
        self.place.2 = share;
        let left = match self.most {
            Some(most) => format!("at most {:.0} s left", (most.secs() - elapsed).max(0.0)),
            None if share > 0.01 => format!("about {:.0} s left", elapsed / share * (1.0 - share)),
            None => String::new(),
        };
        if let Some(bar) = self.seen() {
            bar.set_message(name);
            bar.set_prefix(left);
            bar.set_position((share * WHOLE as f64) as u64);
        }
    }

    /// The share of a phase that is done; a phase is what stands before the first comma, as the passes of an ageing are one.
    pub fn phase(&mut self, what: &str, done: f64) {
        let name = what.split(',').next().unwrap_or(what);
        if self.phase.0 != name {
            self.phase = (name.to_string(), Instant::now());
        }
        let spent = self.phase.1.elapsed().as_secs_f64();
        if let Some(bar) = self.seen() {
            if done > 0.01 {
                bar.set_prefix(format!("{:.0} s left", spent / done * (1.0 - done)));
            }
            bar.set_message(what.to_string());
            bar.set_position((done * WHOLE as f64) as u64);
        }
    }

    /// Takes the line away; so does dropping it.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}
