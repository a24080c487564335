//! `nandscope bench TARGET...`: the record benchmark of SdFat on a file, and what follows from its stalls.

mod output;
mod target;

use super::args::{Output, Writing};
use super::{stop, width};
use crate::advise::price::Price;
use crate::device::{CardState, DeviceError};
use crate::infer::buffer::Verdict;
use crate::report::bench::{self as form, Bench, Style};
use crate::units::{Bytes, Nanos, parse_duration, parse_rate};
use crate::workload::records::Sync;
use anyhow::Context;
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use target::{Case, one};

#[derive(Args)]
#[command(after_help = AFTER)]
#[command(mut_arg("write", |a| a.help("Allow writing the file on anything that is not simulated")))]
pub struct BenchArgs {
    /// A directory of a mounted card, an image file or device with a FAT volume, sim:NAME, sim:NAME?host=HOST, "exec:COMMAND ARGS" or serial:PORT
    #[arg(required = true, value_name = "TARGET", value_parser = super::target)]
    targets: Vec<String>,
    /// Time these targets, too, and print how many times faster the first ones are than these
    #[arg(long, value_name = "TARGET", num_args = 1.., value_parser = super::target)]
    against: Vec<String>,
    /// Bytes that one write takes; several sizes are run one after the other
    #[arg(long, value_name = "SIZE", value_delimiter = ',', default_value = "100,512")]
    record: Vec<Bytes>,
    /// Bytes that a logger gets at once and collects to records [default: the record up to 512 B; byte by byte for larger records]
    #[arg(long, value_name = "SIZE")]
    sample: Option<Bytes>,
    /// Size of the file [default: 5MB; 1MB in a directory where each record is synced]
    #[arg(long, value_name = "SIZE")]
    file: Option<Bytes>,
    /// Passes of writing, then as many of reading [default: 1]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    passes: Option<u32>,
    /// Set room for the whole file aside before writing
    #[arg(long)]
    preallocate: bool,
    /// Count the first call of a pass in longest and shortest, too, as the tables of 2012 do
    #[arg(long)]
    count_first: bool,
    /// When to bring data to the medium: never, end, or after every so many records (1 = each); several are run one after the
    /// other [default: end; in a directory 1]
    #[arg(long, value_delimiter = ',', value_parser = parse_sync)]
    sync: Vec<Sync>,
    /// Write only
    #[arg(long)]
    no_read: bool,
    /// Write over and over for this long, on the target's own clock [default with --log on a simulated card: 10m]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    until: Option<Nanos>,
    /// Rate of a logger to size a buffer for, such as 20kB/s; may be given more than once [default: a quarter and three quarters
    /// of what was measured]
    #[arg(long, value_name = "RATE", value_delimiter = ',', value_parser = parse_rate)]
    log: Vec<Bytes>,
    /// Time of logging in which that logger may lose data less than once, such as 24h or 7d [default: what the run carries]
    #[arg(long, value_name = "TIME", value_parser = parse_long, conflicts_with = "loss_gb")]
    loss_time: Option<Nanos>,
    /// The same in GB that are logged: one loss in so many GB
    #[arg(long, value_name = "GB")]
    loss_gb: Option<f64>,
    /// Time writes of these sizes instead of records, for the best size of a call: a list, or 'sweep'
    #[arg(long, value_name = "SIZES")]
    chunks: Option<String>,
    /// Format a simulated card with clusters of this size; several are run one after the other
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = super::args::cluster)]
    cluster: Vec<u32>,
    /// Write the busy times after each block to this file, in ChaN's form ('-': standard output); a simulated card on a
    /// microcontroller has them
    #[arg(long, value_name = "F")]
    busy: Option<PathBuf>,
    /// Write the plots to this directory as SVG
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// Write one self-contained web page to a file, or to standard output with '-'
    #[arg(long, value_name = "F")]
    html: Option<PathBuf>,
    /// What the card went through before; only noted in the result: fresh, erased, filled, aged [default: unknown; of a simulated card its model's]
    #[arg(long, value_name = "STATE")]
    state: Option<CardState>,
    /// Price of the card with its currency ("5.75 USD"), in the order of the targets, for speed per price
    #[arg(long, value_name = "PRICE")]
    price: Vec<Price>,
    #[command(flatten)]
    writing: Writing,
    /// Allow a directory on the disk of the running system
    #[arg(long)]
    system_disk: bool,
    #[command(flatten)]
    out: Output,
    /// Print the figures in SdFat's form of 2012, too
    #[arg(long)]
    sdfat: bool,
    /// No progress and no plots
    #[arg(long, short)]
    quiet: bool,
}

const AFTER: &str = "\
A record that does not fill a sector waits in a buffer; one in every few then writes a sector and is slower, and some wait for \
work that the card put off: pages much larger than a sector, of which the rest is dead until erased; blocks that are collected and rewritten (an \
erase block of 256 KiB takes up to 0.2 s); data that never change, moved so that all blocks wear alike (static wear levelling). \
Cards of three bits a cell (TLC) are made for long writes in one piece: a cell holds one of eight levels of charge, which lie \
fewer than 100 electrons apart, takes long to write, and wears out after few erasures.

A simulated card on a microcontroller (?host=avr-16mhz-spi, atmega64-9mhz-spi, rp2040-spi, esp32-spi) is used through a file \
library with one sector of memory, as SdFat and FatFs have; any other through a FAT volume made for the occasion.
In a directory of a mounted card each record is synced (--sync 1), since otherwise the kernel's page cache would be timed.
The file is NSBENCH.DAT; it is deleted at the end.

Exit codes: 0 measured, 8 the card is too slow for a rate named with --log.";

fn parse_sync(s: &str) -> Result<Sync, String> {
    match s {
        "never" => Ok(Sync::Never),
        "end" => Ok(Sync::End),
        n => {
            n.parse().ok().filter(|n| *n > 0).map(Sync::Every).ok_or_else(|| format!("'{n}' is neither never, end nor a number of records"))
        }
    }
}

/// A time that may have days.
fn parse_long(s: &str) -> Result<Nanos, String> {
    let days = s.trim().strip_suffix('d').and_then(|d| d.trim().parse::<f64>().ok()).filter(|d| *d > 0.0 && *d <= 36_500.0);
    match days {
        Some(d) => Ok(Nanos::from_secs_f64(d * 86_400.0)),
        None => parse_duration(s).map_err(|e| e.replace("use ms, s, m or h", "use s, m, h or d")),
    }
}

pub fn run_bench(a: BenchArgs) -> anyhow::Result<ExitCode> {
    check(&a)?;
    let stop = stop::on_signals(stop::Second::Ends)?;
    let sizes = match &a.chunks {
        None => a.record.iter().map(|b| b.0).collect(),
        Some(list) => chunks(list)?,
    };
    let clusters: Vec<Option<u64>> =
        if a.cluster.is_empty() { vec![None] } else { a.cluster.iter().map(|c| Some(u64::from(*c))).collect() };
    let syncs: Vec<Option<Sync>> = if a.sync.is_empty() { vec![None] } else { a.sync.iter().copied().map(Some).collect() };
    let mut all: Vec<Bench> = vec![];
    let mut trace = crate::samples::busy::Trace::default();
    for (i, target) in a.targets.iter().chain(&a.against).enumerate() {
        let cases = clusters.iter().flat_map(|&cluster| {
            let syncs = &syncs;
            sizes.iter().flat_map(move |&record| syncs.iter().map(move |&sync| Case { record, cluster, sync }))
        });
        for case in cases {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            if a.writing.dry.dry_run {
                target::would(&a, target, case)?;
                continue;
            }
            let mut b = one(&a, target, case, &stop, &mut trace).with_context(|| format!("bench of {target}"))?;
            b.price = a.price.get(i).cloned();
            if a.chunks.is_none() && !output::taken(&a) {
                if !all.is_empty() {
                    say!();
                }
                put!("{}", form::text(&b, Style { width: width(), plots: !a.quiet, sdfat: a.sdfat }));
            }
            all.push(b);
        }
    }
    if a.writing.dry.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    output::save(&a, &all, &trace)?;
    if stop.load(Ordering::Relaxed) {
        tell!("nandscope: interrupted; what is printed was measured until then");
    }
    // A rate that nobody named is no question of the user's.
    let slow = !a.log.is_empty() && all.iter().flat_map(|b| &b.answers).any(|x| x.verdict == Verdict::TooSlow);
    Ok(if slow { ExitCode::from(super::BELOW_CLASS) } else { ExitCode::SUCCESS })
}

fn check(a: &BenchArgs) -> anyhow::Result<()> {
    let bad = |what: &str| Err(DeviceError::OutOfBounds(what.into()).into());
    if a.record.iter().chain(&a.sample).any(|r| r.0 == 0 || r.0 > 64 << 20) {
        return bad("--record and --sample take 1 B to 64 MiB");
    }
    if a.file.is_some_and(|f| a.record.iter().any(|r| r.0 > f.0) || f.0 > 4_000_000_000) {
        return bad("--file is too small for a record, or above 4 GB, the most FAT allows; --for writes one file over and over");
    }
    if a.loss_gb.is_some_and(|g| !(g > 0.0 && g <= 1e6)) {
        return bad("--loss-gb takes a number above 0");
    }
    if a.price.len() > a.targets.len() + a.against.len() {
        return bad("there are more prices than targets");
    }
    if [&a.html, &a.busy].into_iter().flatten().filter(|p| p.as_os_str() == "-").count() + usize::from(a.out.is_stdout()) > 1 {
        return bad("standard output takes one of --json, --html and --busy; give the others a file");
    }
    Ok(())
}

/// Sizes of calls to compare.
fn chunks(list: &str) -> anyhow::Result<Vec<u64>> {
    if list == "sweep" {
        return Ok((9..=17).map(|k| 1 << k).collect());
    }
    let mut out = vec![];
    for part in list.split(',') {
        let size = part.parse::<Bytes>().map_err(|why| super::misuse(format!("--chunks: {why}")))?.0;
        if size == 0 || size > 64 << 20 {
            return Err(super::misuse(format!("--chunks: '{part}': a chunk has 1 byte to 64 MiB; write sizes such as 512,4KiB, or sweep")));
        }
        out.push(size);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_long_times() {
        for (text, bytes) in [("20kB", 20_000), ("20kB/s", 20_000), ("1.5 MB/s", 1_500_000), ("512B", 512), ("4KiB/s", 4096)] {
            assert_eq!(parse_rate(text), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["20", "20/s", "0kB", "kB", "fast"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
        assert!(parse_rate("20").unwrap_err().contains("20kB"));
        for (text, secs) in [("24h", 86_400.0), ("7d", 604_800.0), ("90", 90.0), ("0.5d", 43_200.0)] {
            assert_eq!(parse_long(text).map(Nanos::secs), Ok(secs), "{text}");
        }
        assert!(parse_long("soon").is_err() && parse_long("-1d").is_err());
    }
}
