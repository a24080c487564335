//! `nandscope serve`: a simulated card as a block device, or over NBD, until Ctrl-C.

use crate::device::{SimCard, Target};
use crate::serve::fuse::{Options, Served};
use crate::serve::nbd::{self, NbdServer};
use crate::serve::{Shared, Stats, TraceFile};
use crate::units::{Bytes, as_sold};
use anyhow::Context;
use clap::Args;
use nandscope_sim::Model;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

#[derive(Args)]
pub struct ServeArgs {
    /// A simulated card: NAME or sim:NAME (`nandscope cards` lists them), or the model file PATH.toml, with settings as NAME?seed=7
    card: String,
    /// Serve over the network block device protocol instead: unix:PATH or tcp:HOST:PORT; needs no privileges
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["mount", "write_cache", "partitions", "bus"])]
    nbd: Option<nbd::Address>,
    /// Let other machines connect; NBD has no password and no encryption
    #[arg(long, requires = "nbd")]
    allow_remote: bool,
    /// Let the card's file appear in this empty directory as well
    #[arg(long, value_name = "DIR")]
    mount: Option<PathBuf>,
    /// Write down every request: our columns for a name in .csv, .tsv or .trace, else fio's iolog version 3
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Seed of everything that is left to chance [default: that of the card's name, else 1]
    #[arg(long)]
    seed: Option<u64>,
    /// Declare a write cache, so that the host's flushes reach the card
    #[arg(long)]
    write_cache: bool,
    /// Share a bus with all cards that are served with the same file, as readers on one hub do
    #[arg(long, value_name = "FILE")]
    bus: Option<PathBuf>,
    /// What that bus moves for all cards together
    #[arg(long, value_name = "RATE", requires = "bus", default_value = "35MB/s", value_parser = crate::units::parse_rate)]
    bus_rate: Bytes,
    /// Show the partitions on the card as devices of their own
    #[arg(long)]
    partitions: bool,
    /// No live line
    #[arg(long, short)]
    quiet: bool,
}

/// How long a mounted card is served on after the first signal.
const UNMOUNT_TIME: Duration = Duration::from_secs(10);

pub fn run(a: ServeArgs) -> anyhow::Result<ExitCode> {
    let SimCard { model, seed, .. } = Target::card(&a.card, a.seed)?;
    let signals = super::stop::counted()?;
    if let Some(address) = &a.nbd {
        let trace = a.trace.clone().map(TraceFile::named);
        let options = nbd::Options { allow_remote: a.allow_remote, trace, ..nbd::Options::at(address.clone()) };
        return over_nbd(NbdServer::start(&model, seed, &options)?, &a, &model, &signals);
    }
    let options = Options {
        mount: a.mount.clone(),
        trace: a.trace.clone().map(TraceFile::named),
        write_cache: a.write_cache.then_some(true),
        bus: a.bus.clone().map(|path| Shared { path, rate: a.bus_rate.0 }),
        partitions: a.partitions,
        ..Options::default()
    };
    let mut served = Served::start(&model, seed, &options)?;
    let device = served.device().display().to_string();
    let mut out = std::io::stdout();
    writeln!(out, "{device}").and_then(|()| out.flush()).context("cannot write to standard output")?;
    if !a.quiet {
        tell!("{}: {} as {device}; Ctrl-C ends it", model.name, as_sold(model.card.capacity));
        if !served.removed().is_empty() {
            tell!("removed what a killed server had left: {}", served.removed().join(", "));
        }
        if let Some(file) = served.file() {
            tell!("the card's file is {}", file.display());
        }
    }
    let mut line = LiveLine::new(a.quiet);
    let mut warned = 0;
    let out = super::stop::taken_out()?;
    while signals.load(Ordering::Relaxed) == 0 {
        std::thread::sleep(Duration::from_millis(50));
        line.show(&served.stats());
        if out.swap(false, Ordering::Relaxed) {
            served.reinsert();
        }
        // What the kernel did not grant is of interest, but nothing to act on.
        for w in served.warnings().iter().skip(warned) {
            warned += 1;
            if !(a.quiet && w.starts_with("note: ")) {
                line.end();
                tell!("nandscope: {w}");
            }
        }
    }
    line.end();
    // A mounted filesystem can be unmounted in peace; a program that has the device open meets errors.
    let begun = Instant::now();
    let mut users = served.detach();
    if users.iter().any(|u| u.contains("mounted") || u.contains("swap") || u.contains("volume")) {
        for u in &users {
            tell!("nandscope: {u}");
        }
        tell!("nandscope: waiting {} s for that; a second Ctrl-C ends at once", UNMOUNT_TIME.as_secs());
        while !users.is_empty() && begun.elapsed() < UNMOUNT_TIME && signals.load(Ordering::Relaxed) < 2 {
            std::thread::sleep(Duration::from_millis(50));
            users = served.detach();
        }
    }
    let stopped = served.stop()?;
    if !a.quiet {
        tell!("{}", summary(&stopped.stats));
    }
    for u in &stopped.left {
        tell!("nandscope: {device} remains and answers with errors: {u}; it goes with its last user");
    }
    Ok(if stopped.left.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn over_nbd(server: NbdServer, a: &ServeArgs, model: &Model, signals: &AtomicUsize) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout();
    writeln!(out, "{}", server.uri()).and_then(|()| out.flush()).context("cannot write to standard output")?;
    if !a.quiet {
        tell!("{}: {} at {}; Ctrl-C ends it", model.name, as_sold(model.card.capacity), server.uri());
    }
    let mut line = LiveLine::new(a.quiet);
    let out = super::stop::taken_out()?;
    while signals.load(Ordering::Relaxed) == 0 {
        std::thread::sleep(Duration::from_millis(50));
        line.show(&server.stats());
        if out.swap(false, Ordering::Relaxed) {
            server.reinsert();
        }
    }
    line.end();
    let stats = server.stop()?;
    if !a.quiet {
        tell!("{}", summary(&stats));
    }
    Ok(ExitCode::SUCCESS)
}

fn summary(s: &Stats) -> String {
    let amplification = if s.done.bytes_written == 0 { "-".into() } else { format!("{:.2}", s.write_amplification) };
    let errors = if s.done.failures == 0 { String::new() } else { format!(", {} errors", s.done.failures) };
    format!(
        "{} requests, {:.1} MB read, {:.1} MB written, {} erases, write amplification {amplification}{errors}; \
         late by {} us (median), {} us (99 %)",
        s.done.accesses(),
        s.done.bytes_read as f64 / 1e6,
        s.done.bytes_written as f64 / 1e6,
        s.erases,
        s.late_p50,
        s.late_p99
    )
}

/// One line that is written over, twice a second, on a terminal only.
struct LiveLine {
    on: bool,
    shown: bool,
    last: Instant,
    before: Stats,
}

impl LiveLine {
    fn new(quiet: bool) -> LiveLine {
        LiveLine { on: !quiet && std::io::stderr().is_terminal(), shown: false, last: Instant::now(), before: Stats::default() }
    }

    fn show(&mut self, now: &Stats) {
        let passed = self.last.elapsed();
        if !self.on || passed < Duration::from_millis(500) {
            return;
        }
        let b = &self.before.done;
        let rate = |bytes: u64| bytes as f64 / 1e6 / passed.as_secs_f64();
        let text = format!(
            "{} requests, reads {:.2} MB/s, writes {:.2} MB/s, {} erases, write amplification {:.2}",
            now.done.accesses(),
            rate(now.done.bytes_read - b.bytes_read),
            rate(now.done.bytes_written - b.bytes_written),
            now.erases,
            now.write_amplification
        );
        let width = super::width().saturating_sub(1);
        eprint!("\r\x1b[K{}", text.chars().take(width).collect::<String>());
        (self.shown, self.last, self.before) = (true, Instant::now(), *now);
    }

    fn end(&mut self) {
        if std::mem::take(&mut self.shown) {
            eprint!("\r\x1b[K");
        }
    }
}
