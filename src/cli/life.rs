//! `nandscope life REPORT`: how long the card of a report will last, with an interval and every assumption.

use super::args::Output;
use crate::check::history;
use crate::device::{SimCard, Target};
use crate::life::survey::Flash;
use crate::life::{Amplification, Card, Life, When, Workload, life};
use crate::report::any::Saved;
use crate::report::terminal::lines as wrap;
use crate::twin::wear;
use crate::units::{Bytes, KIB, about, three};
use crate::workload::purpose::{Purpose, Writes, understood};
use anyhow::{Context, bail};
use clap::Args;
use nandscope_sim::Op;
use nandscope_sim::trace::{self, Io};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const AFTER: &str = "\
Examples:
  nandscope life card.json --workload dashcam
  nandscope life card.json --workload week.blktrace --erased 120
  nandscope life card.json --workload week.blktrace --twin TWIN.toml
  nandscope life card.json --per-day 5GB --flash mlc

The report is what `nandscope probe --json` wrote. Where the card has a health block, `check --health --history DIR` keeps its counters;
--record then makes the cycles it has had, and what it makes of writes, counted ones.";

#[derive(Args)]
#[command(after_help = AFTER)]
pub struct LifeArgs {
    /// A report that `probe --json` wrote
    report: PathBuf,
    /// What writes to the card: a use (boot, camera, video-4k, action-camera, dashcam, ip-camera, 3d-printer, logger, with streams and a rate as
    /// dashcam:4x20Mbit/s, or logger:200kB/s), or a trace of its requests with times
    #[arg(long, value_name = "TRACE|PURPOSE")]
    workload: Option<String>,
    /// Bytes written a day, or least and most as 1GB-5GB, instead of what the workload says
    #[arg(long, value_name = "SIZE", value_parser = per_day)]
    per_day: Option<[f64; 2]>,
    /// How often the whole card was written so far
    #[arg(long, value_name = "N", value_parser = cycles)]
    erased: Option<f64>,
    /// Kind of flash: slc, pslc, mlc, tlc, qlc [default: what the health block says, else tlc]
    #[arg(long, value_name = "KIND", value_parser = flash)]
    flash: Option<Flash>,
    /// Write amplification, or least and most as 2-6, where it is known
    #[arg(long, value_name = "X", value_parser = factor)]
    amplification: Option<[f64; 2]>,
    /// The model that `nandscope twin` made of this card: the requests of the trace run on it, and what it programs is counted
    #[arg(long, value_name = "MODEL", requires = "workload", conflicts_with = "amplification")]
    twin: Option<String>,
    /// The record that `check --health --history DIR` keeps of this card: erases so far and write amplification as the card counts them
    #[arg(long, value_name = "F")]
    record: Option<PathBuf>,
    #[command(flatten)]
    out: Output,
}

fn range<T>(s: &str, one: impl Fn(&str) -> Option<T>) -> Option<[T; 2]>
where
    T: PartialOrd + Copy,
{
    let (low, high) = s.split_once('-').unwrap_or((s, s));
    let out = [one(low)?, one(high)?];
    (out[0] <= out[1]).then_some(out)
}

fn per_day(s: &str) -> Result<[f64; 2], String> {
    let size = |t: &str| t.parse::<Bytes>().ok().map(|b| b.0 as f64).filter(|b| *b > 0.0);
    range(s, size).ok_or_else(|| format!("'{s}' is no amount a day; write 5GB, or 1GB-5GB"))
}

fn factor(s: &str) -> Result<[f64; 2], String> {
    let number = |t: &str| t.trim().parse::<f64>().ok().filter(|x| (1.0..=1e6).contains(x));
    range(s, number).ok_or_else(|| format!("'{s}' is no write amplification; it is 1 or more, as 3 or 2-6"))
}

fn cycles(s: &str) -> Result<f64, String> {
    s.parse().ok().filter(|x| (0.0..=1e7).contains(x)).ok_or_else(|| format!("'{s}' is no number of cycles from 0 to 10000000"))
}

fn flash(s: &str) -> Result<Flash, String> {
    let found = Flash::ALL.iter().find(|f| f.1.eq_ignore_ascii_case(s)).map(|f| f.0);
    found.ok_or_else(|| format!("'{s}' is no kind of flash; there are slc, pslc, mlc, tlc, qlc"))
}

/// Runs the subcommand.
pub fn run(a: LifeArgs) -> anyhow::Result<ExitCode> {
    let report = Saved::load(&a.report)?.report(&a.report.display().to_string())?;
    let (mut workload, requests) = a.workload.as_deref().map(named).transpose()?.unzip();
    let requests = requests.flatten();
    if let Some(per_day) = a.per_day {
        let source = "as given with --per-day".to_string();
        let base =
            workload.take().unwrap_or(Workload { name: "as given".into(), per_day, source: source.clone(), writes: Writes::Scattered });
        workload = Some(Workload { per_day, source, ..base });
    }
    let mut amplification = Amplification::of(&report, workload.as_ref().map_or(Writes::InOrder, |w| w.writes));
    if let Some([low, high]) = a.amplification {
        amplification = Amplification { low, high, counted: false, source: "as given with --amplification".into() };
    }
    if let Some(twin) = &a.twin {
        let requests = requests.context("--twin runs the requests of a trace: name one with --workload instead of a use")?;
        amplification = by_twin(twin, &requests)?;
    }
    let mut card = Card::of(&report, a.flash, a.erased);
    let mut beside = None;
    if let Some(path) = &a.record {
        let record =
            history::load(path).map_err(anyhow::Error::from).and_then(|r| r.with_context(|| format!("there is no {}", path.display())))?;
        if let Some(n) = record.reading.and_then(|r| r.mean_erases).filter(|_| a.erased.is_none()) {
            (card.done, card.done_source) = (n, "mean erase count of its health block, from the record".into());
        }
        if let Some([low, high]) = record.wear.and_then(|w| w.amplification).filter(|_| a.amplification.is_none()) {
            let source = "counted by the card between two checks with --health; the same writes are assumed to go on".into();
            amplification = Amplification { low: low.max(1.0), high: high.max(1.0), counted: true, source };
        }
        beside = record.wear.and_then(|w| w.superblock);
    }
    if let Some(why) = card.beyond() {
        bail!("{why}; --flash names another kind, and `nandscope check --history DIR` watches what it makes of its data");
    }
    let mut out = life(card, workload, amplification);
    out.warning = report.banner();
    if let Some(text) = beside.and_then(|s| crate::life::beside(&report, s)) {
        out.assumptions.push(text);
    }
    let to_stdout = a.out.put(|| Ok(serde_json::to_string_pretty(&out)? + "\n"), || Ok(serde_json::to_value(&out)?))?;
    if !to_stdout {
        put!("{}", text(&out, super::width().min(100)));
    }
    Ok(ExitCode::SUCCESS)
}

/// What a twin makes of these requests.
fn by_twin(twin: &str, requests: &[Io]) -> anyhow::Result<Amplification> {
    let SimCard { model, seed, .. } = Target::card(twin, None)?;
    let [low, high] = wear::amplification(&model, requests, seed).map_err(|e| anyhow::anyhow!("{twin}: {e}"))?;
    let source = format!(
        "the requests of the trace, run on {twin}, a blank card and a full one; a twin is fitted to times, so its copies are inferred and not counted"
    );
    Ok(Amplification { low, high, counted: false, source })
}

/// A use by its name, or the requests in a file with what they are.
fn named(word: &str) -> anyhow::Result<(Workload, Option<Vec<Io>>)> {
    match word.parse::<Purpose>() {
        Ok(p) => Ok((Workload::from(&p), None)),
        Err(_) if Path::new(word).is_file() => traced(Path::new(word)).map(|(w, ios)| (w, Some(ios))),
        Err(_) => Err(super::misuse(format!("'{word}' is no file and no use that is known; there are {}", understood()))),
    }
}

/// What a trace writes a day, and how.
fn traced(path: &Path) -> anyhow::Result<(Workload, Vec<Io>)> {
    let name = path.display();
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
    let trace = trace::parse(&bytes, None).map_err(|e| anyhow::anyhow!("{name}: {e}"))?;
    let writes: Vec<_> = trace.ios.iter().filter(|io| io.op == Op::Write).collect();
    let seconds = trace.ios.iter().map(|io| io.time).max().unwrap_or(0) as f64 / 1e9;
    if writes.is_empty() {
        bail!("{name} writes nothing: nothing wears the card");
    }
    if !trace.timed || seconds < 1.0 {
        bail!("{name} has no times, or lasts less than a second: it does not say how much is written a day; give --per-day");
    }
    let written: u64 = writes.iter().map(|io| io.len).sum();
    // A write goes on where one of the last eight ended: as many files may grow side by side.
    let goes_on = writes.iter().enumerate().filter(|(i, io)| writes[i.saturating_sub(8)..*i].iter().any(|w| w.at + w.len == io.at)).count();
    let (mean, share) = (written as f64 / writes.len() as f64, goes_on as f64 / writes.len() as f64);
    let how = match share > 0.5 {
        true if mean >= (64 * KIB) as f64 => Writes::InOrder,
        true => Writes::Appended,
        false => Writes::Scattered,
    };
    let per_day = written as f64 / seconds * 86_400.0;
    let source = format!(
        "{} in {} s of the trace, as if it went on so all day; {:.0} % of its writes go on where another ended, {} each on average",
        about(written),
        three(seconds),
        100.0 * share,
        about(mean as u64)
    );
    Ok((Workload { name: name.to_string(), per_day: [per_day; 2], source, writes: how }, trace.ios))
}

/// Years beyond which nobody has seen what flash does.
const LONGEST: f64 = 100.0;

/// `3.1 years (0.9 to 12); 2.9 TB written (0.8 TB to 9.1 TB)`; `only` says what holds for that.
fn years(w: &When, only: &str) -> String {
    let size = |b: f64| match b {
        b if b >= 1e12 => format!("{} TB", three(b / 1e12)),
        b if b >= 1e9 => format!("{} GB", three(b / 1e9)),
        b => format!("{} MB", three(b / 1e6)),
    };
    let [low, middle, high] = w.bytes.map(size);
    let written = format!("{middle} written ({low} to {high}){only}");
    match w.years {
        Some(years) => {
            let (unit, times) = if years[1] < 0.5 { ("days", 365.25) } else { ("years", 1.0) };
            let shown = |y: f64| match y * times {
                _ if y > LONGEST => format!("more than {LONGEST:.0}"),
                t if t < 0.005 => "less than 0.01".into(),
                t => three(t),
            };
            if years[0] > LONGEST {
                return format!("more than {LONGEST:.0} years; {written}");
            }
            let [low, middle, high] = years.map(shown);
            format!("{middle} {unit} ({low} to {high}); {written}")
        }
        None => written,
    }
}

fn text(l: &Life, width: usize) -> String {
    let mut out =
        l.warning.as_ref().map_or(String::new(), |w| format!("{w}; the years below are of the flash it has, and no reason to use it\n\n"));
    out += &format!("{}, {}\n", l.card.name, crate::units::as_sold(l.card.size));
    if let Some(w) = &l.workload {
        out += &format!("written by: {}\n", w.name);
    }
    out += "\nhalf of such cards last longer than the first figure; in brackets the interval that holds 80 % of them\n\n";
    // Nobody said how the card is written: the figure is the best case.
    let best = l.workload.is_none() && l.amplification.is_in_order();
    for w in [&l.first_error, &l.death] {
        let mut lines = wrap(&years(w, if best { ", if all writes are sequential" } else { "" }), width.saturating_sub(16)).into_iter();
        out += &format!("  {:<14}{}\n", w.event, lines.next().unwrap_or_default());
        lines.for_each(|line| out += &format!("{:16}{line}\n", ""));
    }
    if best {
        out += "\nsmall writes here and there wear a card sooner: with --workload or --per-day they are counted in\n";
    }
    if l.workload.is_none() {
        out += "\nyears need what writes to it: --workload boot, camera, dashcam ..., a trace, or --per-day 5GB\n";
    }
    out += "\n";
    wrap(&l.announcement, width).iter().for_each(|line| out += &format!("{line}\n"));
    out += "\nAssumptions\n";
    for a in &l.assumptions {
        let mut lines = wrap(a, width.saturating_sub(4)).into_iter();
        out += &format!("  - {}\n", lines.next().unwrap_or_default());
        lines.for_each(|line| out += &format!("    {line}\n"));
    }
    out
}
