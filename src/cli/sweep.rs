//! `nandscope sweep`: simulated work in shards, on any number of machines.

use super::args::Other;
use super::progress::Progress;
use super::stop;
use crate::sweep::{Merged, Plan, Shard, merge, run as work, shard_file};
use anyhow::Context;
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_help = AFTER)]
pub struct SweepArgs {
    #[command(subcommand)]
    merge: Option<Sub>,
    /// What to do; see below
    #[arg(required = true, value_name = "PLAN.toml")]
    plan: Option<PathBuf>,
    /// Directory of the results; the same command goes on where it stopped
    #[arg(long, short, required = true, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Do only this share of the jobs, as 2/5 for the second of five
    #[arg(long, value_name = "I/N", value_parser = Shard::parse)]
    shard: Option<Shard>,
    /// Jobs at the same time [default: one a processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

const AFTER: &str = "\
A plan that probes two cards with 100 seeds each and four settings (800 jobs):

  cards = [\"random\", \"sim:toshiba-emmc\"]   # random, unusual, a built-in card, a model file
  seeds = 100
  write = true                             # the default
  time = \"30m\"                             # of virtual time, the default
  [set]                                    # keys of a card model, each with its values
  \"host.jitter\" = [\"0 us\", \"40 us\"]
  \"host.command\" = [\"150 us\", \"1 ms\"]

`reports = [...]` instead of `cards` fits a twin to each report. The result of a job depends on the plan alone: any number of shards, threads and machines \
gives the same merged file.";

#[derive(Subcommand)]
enum Sub {
    /// Put the shards of a directory together, and count what was right
    Merge(MergeArgs),
}

#[derive(Args)]
struct MergeArgs {
    /// Directory of the shards
    dir: PathBuf,
    /// File to write [default: merged.jsonl in the directory]
    #[arg(long, short, value_name = "F")]
    output: Option<PathBuf>,
    /// Write the counts as JSON to file F, or to standard output where F is missing or '-'
    #[arg(long, value_name = "F", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// Print nothing
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    other: Other,
}

pub fn run(a: SweepArgs) -> anyhow::Result<ExitCode> {
    match a {
        SweepArgs { merge: Some(Sub::Merge(m)), .. } => merged(&m),
        SweepArgs { plan: Some(plan), output: Some(dir), shard, threads, quiet, .. } => swept(&plan, &dir, shard, threads, quiet),
        _ => unreachable!("clap asks for both"),
    }
}

fn swept(path: &Path, dir: &Path, shard: Option<Shard>, threads: Option<u16>, quiet: bool) -> anyhow::Result<ExitCode> {
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    let plan = Plan::parse(&text).and_then(|p| p.ready().map(|()| p)).map_err(|e| super::misuse(format!("{name}: {e}")))?;
    let shard = shard.unwrap_or(Shard::WHOLE);
    let stop = stop::on_signals(stop::Second::Ends)?;
    let threads = threads.map_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get), usize::from);
    let mut bar = Progress::steps("sweep", plan.jobs().div_ceil(shard.of), quiet);
    let (now, all) = work(&plan, shard, dir, threads, &stop, &mut |done, _| bar.at(done))?;
    bar.end();
    let file = shard_file(dir, shard);
    if stop.load(Ordering::Relaxed) {
        tell!("nandscope: interrupted; the same command goes on where it stopped");
        return Ok(ExitCode::FAILURE);
    }
    say!("{all} jobs in {}, {now} of them done now", file.display());
    Ok(ExitCode::SUCCESS)
}

fn merged(a: &MergeArgs) -> anyhow::Result<ExitCode> {
    let to = a.output.clone().unwrap_or_else(|| a.dir.join("merged.jsonl"));
    let m = merge(&a.dir, &to)?;
    let value = super::form("nandscope-sweep-merged/1", &m);
    let json = super::write_json(a.json.as_deref(), &value)?;
    if let Some(form) = a.other.format {
        if json {
            return Err(super::misuse("standard output takes one of --json and --format; give --json a file"));
        }
        super::as_it_is(&form.write(&value).map_err(anyhow::Error::msg)?);
        return Ok(ExitCode::SUCCESS);
    }
    if !json && !a.quiet {
        put!("{}", text(&m, &to));
    }
    Ok(ExitCode::SUCCESS)
}

fn text(m: &Merged, to: &Path) -> String {
    let files = if m.files == 1 { "1 file".to_string() } else { format!("{} files", m.files) };
    let mut out = format!("{} jobs of {files} in {}\n", m.jobs, to.display());
    if !m.quantities.is_empty() {
        out += &format!("\n{:<22}{:>8}{:>9}{:>8}{:>8}\n", "quantity", "jobs", "decided", "right", "wrong");
    }
    for (name, t) in &m.quantities {
        out += &format!("{name:<22}{:>8}{:>9}{:>8}{:>8}\n", t.jobs, t.decided, t.right, t.judged - t.right);
    }
    out
}
