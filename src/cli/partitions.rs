//! `nandscope partitions`: the partitions of one device probed one after the other and set side by side. (Q3, Q4)
//!
//! All accesses go through the whole disk, so that a partition's offset counts. Partitions that are shorter than what a test
//! needs say so instead of an answer that belongs to their neighbours.

use super::args::{Measuring, Output, Undoing, Writing};
use super::back::Back;
use super::infer::verdict;
use super::probe::parse_region;
use super::progress::Progress;
use super::{FAILING, stop};
use crate::device::{self, CardState, Device, DeviceError, Guard, Limits, OpenOptions, undo};
use crate::experiment;
use crate::finding::{Finding, Findings, Quantity, percent};
use crate::host::facts::TargetKind;
use crate::host::partitions::table;
use crate::probe::{Event, Plan, probe};
use crate::report::terminal::ending;
use crate::report::{Cost, Report};
use crate::samples::{Ended, Run};
use crate::saved::Tool;
use crate::units::{Bytes, about, three};
use anyhow::bail;
use clap::Args;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

#[derive(Args)]
#[command(mut_arg("time", |a| a.help("Time for each partition [default: 60s on a device, 30m of virtual time on a simulated card]")))]
pub struct PartitionsArgs {
    /// A whole disk, an image with a partition table, sim:NAME, a card model PATH.toml, "exec:COMMAND ARGS" or serial:PORT
    #[arg(value_parser = super::target)]
    target: String,
    /// A stretch to treat as a partition, instead of the table; may be given several times
    #[arg(long = "part", value_name = "RANGE", value_parser = parse_region)]
    parts: Vec<(Option<Bytes>, Option<Bytes>)>,
    #[command(flatten)]
    writing: Writing,
    #[command(flatten)]
    measuring: Measuring,
    /// Most bytes to write to each partition
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    writes: Bytes,
    /// What the card went through before; only noted in the result: fresh, erased, filled, aged [default: unknown; of a simulated card its model's]
    #[arg(long, value_name = "STATE")]
    state: Option<CardState>,
    #[command(flatten)]
    undoing: Undoing,
    #[command(flatten)]
    out: Output,
    /// No progress and no plan
    #[arg(long, short)]
    quiet: bool,
}

/// One partition and what was found in it.
struct Part {
    name: String,
    range: Range<u64>,
    findings: Findings,
    notes: Vec<String>,
    runs: Vec<Run>,
}

/// Shorter ones hold nothing that a boundary test could compare.
const SHORTEST: u64 = 8 << 20;

pub fn run(a: PartitionsArgs) -> anyhow::Result<ExitCode> {
    let simulated = device::is_simulated(&a.target)?;
    let stop = stop::on_signals(stop::Second::Ends)?;
    let mut opened = device::open(&a.target, &OpenOptions::default())?;
    let id = opened.id().clone();
    if id.kind == TargetKind::Partition {
        let disk = opened.facts().disk.clone().unwrap_or_default();
        bail!("{} is a partition; name the whole disk: nandscope partitions /dev/{disk}", a.target);
    }
    let mut ranges = ranges(&a, opened.look())?;
    if ranges.is_empty() {
        bail!("{} has no partition table; name the stretches to compare with --part START..END", a.target);
    }
    nandscope_stats::sort_by_key(&mut ranges, |r| (r.1.start, r.1.end));
    let write = a.writing.write || simulated;
    let dry = a.writing.dry.dry_run;
    let consent = if write && !dry { Some(a.writing.named.check(&id)?) } else { None };
    let undo = a.undoing.kept(write, simulated);
    if !a.quiet || dry {
        tell!("{}: {} partition{}", a.target, ranges.len(), if ranges.len() == 1 { "" } else { "s" });
        match write {
            true => tell!("will write at most {} to each{}", a.writes, if undo { "; the old content is put back" } else { "" }),
            false => tell!("will write nothing"),
        }
    }
    if dry {
        return Ok(a.writing.dry.done(&id));
    }
    let state = a.state.unwrap_or(opened.state());
    drop(opened);
    let mut parts: Vec<Part> = vec![];
    let mut cost = (0, 0, 0.0);
    let mut bar = Progress::experiments(a.quiet, None);
    let all = ranges.len();
    let (mut lost, mut failing): (Option<Back>, bool) = (None, false);
    for (i, (name, range)) in ranges.into_iter().enumerate() {
        // A card that does not keep what is written is not written any more.
        if lost.is_some() || stop.load(Ordering::Relaxed) {
            break;
        }
        let mut part = Part { name, range: range.clone(), findings: Findings::default(), notes: vec![], runs: vec![] };
        if range.end - range.start < SHORTEST {
            part.notes.push(format!("shorter than {}: too short to be tested", Bytes(SHORTEST)));
            parts.push(part);
            continue;
        }
        // Each partition has its own right to be written, and nothing but itself.
        let opened = device::open(&a.target, &OpenOptions::default())?;
        let mut guard = match &consent {
            Some(c) => {
                opened.writable(c, &Limits { region: Some(range.clone()), budget: a.writes.0, undo: undo.then(undo::default_dir) })?
            }
            None => opened.read_only(),
        };
        stop::keeps(&guard);
        let time = a.measuring.time_or(if simulated { 1800.0 } else { 60.0 });
        let mut experiments = experiment::probing();
        experiments.retain(|e| write || !e.about().writes);
        let plan = Plan {
            experiments,
            region: range,
            time,
            writes: a.writes.0,
            seed: a.measuring.chance.seed.wrapping_add(i as u64),
            stop: &stop,
        };
        let began = guard.now();
        let label = part.name.clone();
        let (mut runs, _) = probe(&mut guard, &plan, &mut |e| match e {
            Event::Begin { name, .. } => bar.begin(i, all, &format!("{label} {name}")),
            Event::Progress(p) => bar.tick(p.spent),
            Event::Done(..) => {}
        });
        runs.iter_mut().for_each(Run::of_part);
        let findings = Report::infer(&runs);
        let back = Back::of(&mut guard);
        part.notes.extend(back.warnings());
        part.notes.extend(back.reads_failed());
        failing |= !back.unreadable().is_empty();
        lost = (!back.whole()).then_some(back);
        let c = Cost::of(guard.counters(), (guard.now() - began).secs());
        cost = (cost.0 + c.bytes_read, cost.1 + c.bytes_written, cost.2 + c.seconds);
        part.notes.extend(runs.iter().filter_map(|r| ending(&r.experiment, &r.ended)));
        part.findings = findings;
        part.runs = runs;
        parts.push(part);
    }
    bar.end();
    let notes = compare(&mut parts);
    let value = serde_json::json!({
        "schema": "nandscope-partitions/1",
        "tool": Tool::this(),
        "target": id,
        "state": state,
        "partitions": parts.iter().map(|p| serde_json::json!({
            "name": p.name, "start": p.range.start, "end": p.range.end, "findings": p.findings, "notes": p.notes, "runs": p.runs,
        })).collect::<Vec<_>>(),
        "notes": notes,
    });
    if !a.out.write(&value)? {
        put!("{}", text(&a.target, &parts, &notes));
        say!("\n{} written, {} read; {} s of the device's time", about(cost.1), about(cost.0), three(cost.2));
    }
    let whole = lost.map_or(Ok(true), Back::tell)?;
    if let Some(why) = parts.iter().flat_map(|p| &p.runs).find_map(|r| if let Ended::Failed(w) = &r.ended { Some(w.clone()) } else { None })
    {
        return Ok(super::card_failed(&why));
    }
    let every = Findings(parts.iter().flat_map(|p| p.findings.0.iter().cloned()).collect());
    Ok(match whole {
        true if failing => ExitCode::from(FAILING),
        true => verdict(&every),
        false => ExitCode::FAILURE,
    })
}

/// Names and ranges, from the options or from the partition table.
fn ranges(a: &PartitionsArgs, guard: &mut Guard) -> anyhow::Result<Vec<(String, Range<u64>)>> {
    let g = guard.geometry().clone();
    let inside = |name: String, start: u64, end: u64| -> Result<(String, Range<u64>), DeviceError> {
        if start >= end || end > g.size || !start.is_multiple_of(g.sector) || !end.is_multiple_of(g.sector) {
            return Err(DeviceError::OutOfBounds(format!("{name} ({start}..{end}) is not part of the target (0..{})", g.size)));
        }
        Ok((name, start..end))
    };
    if !a.parts.is_empty() {
        let one = |(i, p): (usize, &(Option<Bytes>, Option<Bytes>))| {
            inside(format!("part {}", i + 1), p.0.map_or(0, |b| b.0), p.1.map_or(g.size, |b| b.0))
        };
        return Ok(a.parts.iter().enumerate().map(one).collect::<Result<_, _>>()?);
    }
    let mut read = |at: u64, len: usize| {
        let mut b = vec![0; len];
        (at + len as u64 <= g.size && guard.load(at, &mut b).is_ok()).then_some(b)
    };
    let Some((_, all)) = table(&mut read, g.sector) else { return Ok(vec![]) };
    // An extended partition only holds others.
    let real = all.iter().filter(|p| !matches!(p.kind, 0x05 | 0x0f | 0x85));
    Ok(real.map(|p| inside(format!("partition {}", p.number), p.start, p.start + p.size)).collect::<Result<_, _>>()?)
}

/// What the partitions say together: where they disagree, and whether each begins where it should.
fn compare(parts: &mut [Part]) -> Vec<String> {
    let mut notes = vec![];
    for q in Quantity::ALL {
        let said: Vec<(&str, f64)> = parts.iter().filter_map(|p| Some((p.name.as_str(), p.findings.value(q, 0.75)?))).collect();
        let costs = matches!(q, Quantity::CloseCostMs);
        let differs = |a: f64, b: f64| if costs { (a / b - 1.0).abs() > 0.3 } else { a != b };
        // Where a block begins, the zone at the start, and what is measured in ms belong to the place.
        if matches!(q, Quantity::EraseBlockOffset | Quantity::FatZone) || said.len() < 2 {
            continue;
        }
        if said.iter().any(|s| differs(s.1, said[0].1)) {
            let list: Vec<String> = said.iter().map(|s| format!("{} {}", s.0, q.show(s.1))).collect();
            notes.push(format!("{} differs: {}", q.title(), list.join(", ")));
        }
    }
    // The erase block is one for the device: the surest finding speaks for all.
    let best = parts.iter().filter_map(|p| p.findings.get(Quantity::EraseBlock)).filter(|f| f.value.is_some());
    let best = best.max_by(|a, b| a.confidence.total_cmp(&b.confidence)).and_then(|f| Some((f.number()? as u64, f.confidence)));
    if let Some((e, c)) = best.filter(|b| b.1 >= 0.75 && b.0 > 0) {
        for p in parts.iter_mut() {
            let off = p.range.start % e;
            p.notes.push(match off {
                0 => format!("begins on a multiple of the erase block of {}", Bytes(e)),
                _ => format!("begins {} past a multiple of the erase block of {} ({:.0} %)", Bytes(off), Bytes(e), percent(c)),
            });
            if p.range.end - p.range.start < 16 * e {
                p.notes.push(format!("holds only {} erase blocks: too few to spread writes over", (p.range.end - p.range.start) / e));
            }
        }
    }
    notes
}

/// A row for each quantity and a column for each partition.
fn columns(parts: &[Part]) -> Vec<(String, Vec<String>)> {
    let mut rows = vec![];
    let mut row = |title: &str, cell: &dyn Fn(&Part) -> String| rows.push((title.to_string(), parts.iter().map(cell).collect()));
    row("", &|p| p.name.clone());
    row("begins at", &|p| Bytes(p.range.start).to_string());
    row("size", &|p| Bytes(p.range.end - p.range.start).to_string());
    let percent = |f: &Finding| percent(f.confidence);
    for q in Quantity::ALL.into_iter().filter(|q| parts.iter().any(|p| p.findings.get(*q).is_some())) {
        let cell = |p: &Part| match p.findings.get(q) {
            None => "-".into(),
            Some(f) => match (f.number(), f.at_least) {
                (Some(v), _) => format!("{} ({:.0} %)", q.show(v), percent(f)),
                (_, Some(b)) => format!("at least {} ({:.0} %)", q.show(b.0), percent(f)),
                _ => "undecided".into(),
            },
        };
        if q != Quantity::EraseBlockOffset {
            row(q.title(), &cell);
            continue;
        }
        row(&format!("{}, disk", q.title()), &cell);
        row("  in the partition", &|p| {
            let block = p.findings.get(Quantity::EraseBlock).and_then(Finding::number).filter(|e| *e >= 1.0);
            match (p.findings.get(q).and_then(|f| Some((f.number()?, f))), block) {
                (Some((v, f)), Some(e)) => {
                    let at = (v as i128 - i128::from(p.range.start)).rem_euclid(e as i128);
                    format!("{} ({:.0} %)", Bytes(at as u64), percent(f))
                }
                _ => "undecided".into(),
            }
        });
    }
    rows
}

fn text(target: &str, parts: &[Part], notes: &[String]) -> String {
    let mut out = format!("{target}: {} partition{}\n\n", parts.len(), if parts.len() == 1 { "" } else { "s" });
    let rows = columns(parts);
    let long = |all: &mut dyn Iterator<Item = &String>| all.map(|t| t.chars().count()).max().unwrap_or(0) + 2;
    let lead = long(&mut rows.iter().map(|r| &r.0)).max(22);
    let widths: Vec<usize> = (0..parts.len()).map(|i| long(&mut rows.iter().map(|r| &r.1[i]))).collect();
    for (title, cells) in &rows {
        let line = cells.iter().zip(&widths).fold(format!("{title:<lead$}"), |line, (c, w)| format!("{line}{c:<w$}"));
        out += line.trim_end();
        out.push('\n');
    }
    out = out.trim_end().to_string() + "\n\n";
    for p in parts {
        p.notes.iter().for_each(|n| out += &format!("{}: {n}\n", p.name));
        for f in p.findings.0.iter().filter(|f| f.value.is_none()) {
            let verdict = if f.at_least.is_some() { "is a lower bound only," } else { "undecided," };
            let why = f.reason.as_deref().unwrap_or("no reason given");
            out += &format!("{}: {} {verdict} because {why}\n", p.name, f.quantity.title());
        }
    }
    if parts.len() > 1 && notes.is_empty() {
        out += "nothing that is sure differs between the partitions\n";
    }
    notes.iter().for_each(|n| out += &format!("{n}\n"));
    out
}
