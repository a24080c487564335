//! `nandscope format`: a FAT or exFAT volume by the SD convention or on the grid of this card.

use super::args::{Named, Written};
use super::erase::{HowArg, erase_all};
use super::evidence;
use super::progress::Progress;
use crate::device::{self, Device, DeviceError, Limits, OpenOptions, Opened};
use crate::finding::Quantity;
use crate::host::facts::TargetKind;
use crate::layout::{Grid, format};
use crate::saved::counterfeit::Counterfeit;
use crate::units::{Bytes, about};
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use nandscope_fat::{Convention, FatType, Layout, Options, plan};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    Fat12,
    Fat16,
    Fat32,
    Exfat,
}

#[derive(Args)]
pub struct FormatArgs {
    /// /dev/..., an image file, sim:NAME, a card model PATH.toml, "exec:COMMAND ARGS" or serial:PORT
    #[arg(value_parser = super::target)]
    target: String,
    #[command(flatten)]
    named: Named,
    /// Align to the erase block this report found, instead of the SD convention
    #[arg(long, value_name = "REPORT", conflicts_with = "align")]
    measured: Option<PathBuf>,
    /// Align to this erase block, instead of the SD convention
    #[arg(long, value_name = "SIZE")]
    align: Option<Bytes>,
    /// Type of the volume [default: by capacity, as the SD convention has it]
    #[arg(long, value_enum)]
    fs: Option<Kind>,
    /// Bytes of a cluster [default: by capacity]
    #[arg(long, value_name = "SIZE")]
    cluster: Option<Bytes>,
    /// Label, at most 11 characters
    #[arg(long)]
    label: Option<String>,
    /// Volume serial number, eight hexadecimal digits [default: from the clock]
    #[arg(long, value_name = "HEX", value_parser = serial)]
    volume_id: Option<u32>,
    /// No partition table: the volume fills the target (always so for a partition)
    #[arg(long)]
    no_table: bool,
    /// Erase everything first
    #[arg(long, value_enum)]
    erase: Option<HowArg>,
    /// Print what would be written and where, and end; needs no --consent
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    out: Written,
    /// No progress and no layout; warnings go to standard error
    #[arg(long, short)]
    quiet: bool,
}

pub fn run(a: FormatArgs) -> anyhow::Result<ExitCode> {
    let mut opened = device::open(&device::with_content(&a.target), &OpenOptions::default())?;
    let g = opened.geometry().clone();
    keeps(&mut opened, g.sector)?;
    let kind = opened.facts().kind;
    let (convention, notes, size) = convention(&a, g.size, g.offset)?;
    let table = !a.no_table && g.offset == 0 && kind != TargetKind::Partition;
    // Only where the cluster is not given may the write unit raise it.
    let options = Options {
        capacity: size,
        sector: format::sector_of(opened.look(), kind == TargetKind::Image),
        offset: g.offset,
        convention,
        kind: a.fs.map(|k| match k {
            Kind::Fat12 => FatType::Fat12,
            Kind::Fat16 => FatType::Fat16,
            Kind::Fat32 => FatType::Fat32,
            Kind::Exfat => FatType::ExFat,
        }),
        cluster: a.cluster.map(|c| c.0),
        table,
        label: a.label.clone(),
        serial: a.volume_id.unwrap_or_else(clock_serial),
    };
    let layout = plan(&options)?;
    let changed = layout.label().filter(|l| a.label.as_deref().is_some_and(|asked| asked != l));
    let label = changed.map(|l| format!("the label becomes {l}: FAT has capitals, digits and some signs only"));
    let warning = format::warning(&layout).map(|w| format!("warning: {w}"));
    let notes: Vec<String> = warning.into_iter().chain(label).chain(notes).collect();
    let lost = opened.signatures()?;
    if !a.out.alone() && (!a.quiet || a.dry_run) {
        format::describe(&layout).iter().chain(&notes).for_each(|l| say!("{l}"));
    }
    if a.quiet && !a.out.alone() && !a.dry_run {
        notes.iter().filter(|n| n.starts_with("warning")).for_each(|n| tell!("nandscope: {n}"));
    }
    if a.dry_run {
        if !a.out.put(&json(&a.target, &layout, &notes, false))? {
            say!("nothing written; {} would be", about(layout.bytes_written()));
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !a.quiet {
        lost.iter().for_each(|s| tell!("will be lost: {s}"));
    }
    let consent = a.named.check(opened.id())?;
    let erase = a.erase.map(|how| how.order(0..g.size, g.sector, opened.facts()));
    let budget = format::budget(&layout, g.sector) + erase.as_ref().map_or(0, |o| o.writes(g.offset));
    let mut guard = opened.writable(&consent, &Limits { region: None, budget, undo: None })?;
    if let Some(order) = &erase {
        let done = erase_all(&mut guard, order, a.quiet)?;
        if done.stopped {
            bail!("interrupted while erasing; what was there is lost in part, and nothing is formatted");
        }
    }
    let mut bar = Progress::bytes("formatting", layout.bytes_written(), a.quiet);
    format::apply(&mut guard, &layout, &mut |done| bar.at(done))
        .context("the format is not complete; run it again, or take another card")?;
    drop(bar);
    let (written, path) = (guard.counters().bytes_written, guard.id().path.clone());
    drop(guard);
    if !a.out.put(&json(&a.target, &layout, &notes, true))? && !a.quiet {
        say!("written and read back: {}", about(written));
    }
    if kind == TargetKind::Disk
        && let Err(e) = device::read_table_again(&path)
    {
        tell!("nandscope: the kernel still knows the old partitions ({e}); take the card out and put it in again");
    }
    Ok(ExitCode::SUCCESS)
}

/// A volume serial number as it is shown: eight digits, a dash between them or not.
fn serial(text: &str) -> Result<u32, &'static str> {
    u32::from_str_radix(&text.replace('-', ""), 16).map_err(|_| "eight hexadecimal digits are needed, such as 1234-ABCD")
}

/// Refuses a program or a board that does not say what was read: a volume on it could neither be checked nor used.
fn keeps(opened: &mut Opened, sector: u64) -> anyhow::Result<()> {
    let first = opened.look().load(0, &mut vec![0; sector as usize]);
    if let Err(DeviceError::Unsupported(_)) = first {
        bail!("{} keeps no content, so no file system can be made on it; nothing was written", opened.id().path);
    }
    // Other errors have their place where what will be lost is looked for.
    Ok(())
}

/// A volume serial number from the clock, as formatters have made it since DOS.
fn clock_serial() -> u32 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |d| (d.as_secs() as u32).rotate_left(8) ^ d.subsec_nanos())
}

/// The boundaries, what is to be said of them, and the bytes that the volume may use: of a counterfeit what it holds.
fn convention(a: &FormatArgs, mut size: u64, offset: u64) -> anyhow::Result<(Convention, Vec<String>, u64)> {
    if let Some(unit) = a.align {
        return Ok((Convention::Grid { unit: unit.0, first: 0 }, vec![], size));
    }
    let Some(path) = &a.measured else { return Ok((Convention::Sd, vec![], size)) };
    let e = evidence::load(path)?;
    e.must_fit(size, offset)?;
    let mut fake = vec![];
    if let Some(c) = Counterfeit::of(&e.findings, offset + size) {
        size = c.holds.saturating_sub(offset) / 512 * 512;
        fake.push(format!("{}: {}; the volume uses only what is there", c.word().to_uppercase(), c.sizes()));
        if size == 0 {
            bail!("{}: the partition lies beyond what the card holds: it {}", e.name, c.sizes());
        }
    }
    match Grid::found(&e.findings) {
        Ok(grid) => {
            let mut notes = [fake, vec![grid.to_string()]].concat();
            if let Some(w) = e.findings.value(Quantity::WriteUnit, crate::layout::grid::SURE).map(|w| w as u64)
                && a.cluster.is_some_and(|c| c.0 < w)
            {
                notes.push(format!("clusters below the write unit of {}: each small write costs a whole unit", Bytes(w)));
            }
            Ok((Convention::Grid { unit: grid.unit, first: grid.first }, notes, size))
        }
        // What the card holds is known, and that is worth more than its boundaries.
        Err(why) if !fake.is_empty() => Ok((Convention::Sd, [fake, vec![format!("{why}; the SD convention instead")]].concat(), size)),
        Err(why) => bail!("{}: {why}. Leave out --measured for the SD convention, or probe again with --write", e.name),
    }
}

fn json(target: &str, l: &Layout, notes: &[String], written: bool) -> serde_json::Value {
    let v = &l.volume;
    let base = l.options.offset + l.start();
    serde_json::json!({
        "schema": "nandscope-format/1",
        "target": target,
        "written": written,
        "filesystem": v.kind.to_string(),
        "partition": l.partition.map(|p| serde_json::json!({ "start": p.start, "size": p.size, "type": p.kind })),
        "sector": v.sector,
        "cluster": v.cluster,
        "clusters": v.clusters,
        "fat": { "at": base + v.fat_start, "length": v.fat_length, "copies": v.fats },
        "data": base + v.data_start,
        "boundary": l.boundary,
        "bytes": l.bytes_written(),
        "notes": notes,
    })
}
