//! Traces as files: reading those of requests, fitting them into a region, and writing accesses in columns.

use crate::units::about;
use anyhow::{Context, bail};
use clap::Args;
use nandscope_sim::run::Fit;
use nandscope_sim::trace::{self, Format, Io, Trace};
use std::fmt::Write as _;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// How a trace is read.
#[derive(Args)]
pub struct TraceArgs {
    /// Format of the trace, where it is not to be found out
    #[arg(long, value_parser = parse_format, value_name = "FORMAT", requires = "trace")]
    pub format: Option<Format>,
    /// Stop at the first line of the trace that cannot be read
    #[arg(long, requires = "trace")]
    pub strict: bool,
    /// Fold places of the trace that leave the region back into it
    #[arg(long, requires = "trace", conflicts_with = "scale")]
    pub wrap: bool,
    /// Shrink or stretch the places of the trace so that they fill the region
    #[arg(long, requires = "trace")]
    pub scale: bool,
}

fn parse_format(word: &str) -> Result<Format, String> {
    let all = || Format::ALL.map(|f| f.1).join(", ");
    Format::named(word).ok_or_else(|| format!("'{word}' is no format of traces; there are: {}", all()))
}

impl TraceArgs {
    /// Reads a trace; what is wrong in it is an error with `--strict`.
    ///
    /// # Errors
    /// It cannot be read, is empty, compressed, a device, or no trace.
    pub fn load(&self, path: &Path) -> anyhow::Result<Trace> {
        load(path, self.format, self.strict)
    }

    /// How a trace fits into the region.
    ///
    /// # Errors
    /// It reaches beyond the region, and nobody said what to do about it.
    pub fn fit(&self, trace: &Trace, region: &Range<u64>) -> anyhow::Result<Fit> {
        let (span, size) = (trace.ios.iter().map(|io| io.at.saturating_add(io.len)).max().unwrap_or(0), region.end - region.start);
        if self.scale {
            return Ok(Fit::Scale(span));
        }
        if self.wrap {
            return Ok(Fit::Fold);
        }
        if span > size {
            bail!(
                "the trace reaches up to {}, the region holds {}: --wrap folds what lies outside back into it, --scale shrinks all places",
                about(span),
                about(size)
            );
        }
        Ok(Fit::Reject)
    }
}

/// Reads a trace.
///
/// # Errors
/// It cannot be read, is empty, compressed, a device, or no trace; with `strict` also where one line cannot be read.
pub fn load(path: &Path, format: Option<Format>, strict: bool) -> anyhow::Result<Trace> {
    let name = path.display();
    let mut bytes = vec![];
    if path.as_os_str() == "-" {
        std::io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?;
    } else {
        let kind = std::fs::metadata(path).with_context(|| format!("cannot read {name}"))?.file_type();
        if kind.is_char_device() || kind.is_block_device() {
            bail!("{name} is a device, not a trace");
        }
        bytes = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
    }
    if bytes.is_empty() {
        bail!("{name} is empty");
    }
    if bytes.starts_with(&[0x1f, 0x8b]) {
        bail!("{name} is compressed; unpack it first, for example with `gunzip -c {name} | nandscope sim CARD --trace -`");
    }
    let trace = trace::parse(&bytes, format).map_err(|e| match e {
        trace::TraceError::Unknown => anyhow::anyhow!("{name}: {e}; --format names one"),
        e => anyhow::anyhow!("{name}: {e}"),
    })?;
    if let (true, Some(bad)) = (strict, trace.shown.first()) {
        bail!("{name}, line {}: {}: '{}' (of {} lines that cannot be read)", bad.line, bad.reason, bad.text.escape_debug(), trace.bad);
    }
    Ok(trace)
}

/// The head of a file in columns.
pub const HEAD: &str = "# nandscope trace 1\nstart_ns\ttook_ns\top\tat\tlen\n";

/// One access as a line in columns. `op`: its word.
pub fn line(out: &mut String, op: &str, io: &Io) {
    let _ = writeln!(out, "{}\t{}\t{op}\t{}\t{}", io.time, io.took, io.at, io.len);
}

/// What kinds of requests are called.
pub fn word(op: nandscope_sim::Op) -> &'static str {
    use nandscope_sim::Op::{Discard, Flush, Read, Write};
    match op {
        Read => "read",
        Write => "write",
        Discard => "discard",
        Flush => "flush",
    }
}
