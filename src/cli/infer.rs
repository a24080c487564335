//! `nandscope infer FILE...`: findings without the card, from a saved report or from pasted logs of other tools.

use super::{COUNTERFEIT, UNDECIDED, colour, width};
use crate::advise::{advice, conclude};
use crate::finding::{Findings, Quantity};
use crate::host::declared::{self, Declared};
use crate::infer::tables;
use crate::infer::tables::bench::{Figure, figures};
use crate::infer::tables::sides::{Sides, sides};
use crate::report::terminal::{Dress, findings_text, text};
use crate::report::{Report, SCHEMA};
use crate::samples::import::{self, Card};
use crate::units::Bytes;
use anyhow::{Context, bail};
use clap::Args;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
pub struct InferArgs {
    /// A report that --json wrote, or pasted logs: flashbench, SdFat bench, busy traces, lines of firmware/, sysfs or register dumps;
    /// '-' reads standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write the report with the new findings to a file, or to standard output with '-'
    #[arg(long, value_name = "F")]
    json: Option<PathBuf>,
    /// For lines of firmware/: size the buffer of a logger for this rate, such as 20kB (a second); may be given more than once
    /// [default: half of what the card takes]
    #[arg(long, value_name = "RATE", value_delimiter = ',', value_parser = rate)]
    log: Vec<Bytes>,
}

/// Bytes a second, with their unit: "20kB", "20kB/s". A bare number is no rate anybody means.
fn rate(s: &str) -> Result<Bytes, String> {
    let size = s.trim().strip_suffix("/s").unwrap_or(s);
    if size.ends_with(|c: char| c.is_ascii_digit()) {
        return Err(format!("'{s}' has no unit; write for example {}kB for {0} kB a second, or {0}B", size.trim()));
    }
    size.parse().and_then(|b: Bytes| if b.0 > 0 { Ok(b) } else { Err("a rate above 0 is needed".into()) })
}

pub fn run(a: InferArgs) -> anyhow::Result<ExitCode> {
    let mut files: Vec<(String, Vec<u8>)> = vec![];
    for path in &a.files {
        let name = path.display().to_string();
        let mut bytes = vec![];
        if path.as_os_str() == "-" {
            std::io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?;
        } else {
            bytes = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
        }
        files.push((name, bytes));
    }
    let micro: Vec<_> = files.iter().filter_map(|(name, bytes)| Some((name.clone(), crate::infer::micro::read(bytes)?))).collect();
    if micro.len() == files.len() {
        return super::infer_micro::run(micro, &a.log, a.json.as_ref());
    }
    if let Some((name, _)) = micro.first() {
        bail!("'{name}' is a busy trace or a log of a microcontroller, and not all the files are; give those alone: each is a card");
    }
    if !a.log.is_empty() {
        bail!("--log needs the calls of a logger, as one log of firmware/ or `nandscope bench` has them");
    }
    let is_report = |b: &[u8]| b.iter().find(|c| !c.is_ascii_whitespace()) == Some(&b'{');
    match files.iter().filter(|f| is_report(&f.1)).count() {
        0 => logs(&files, a.json.as_ref()),
        1 if files.len() == 1 => {
            let (name, bytes) = &files[0];
            let mut report = Report::parse(&String::from_utf8_lossy(bytes), name)?;
            report.findings = Report::infer(&report.runs);
            conclude(&mut report);
            report.name_target("");
            output(&report, a.json.as_ref())?;
            Ok(judged(&report))
        }
        _ => bail!("give one report, or any number of logs of one card, not both"),
    }
}

/// One card of the logs, read and judged.
struct Judged {
    card: Card,
    findings: Findings,
    advice: Vec<String>,
    notes: Vec<String>,
    declared: Option<Declared>,
    /// Record benchmarks, by host and record size.
    figures: Vec<Figure>,
    /// The same test before and after something was changed.
    sides: Vec<Sides>,
}

fn judge(card: Card, text: &str) -> Judged {
    let findings = tables::infer(&card.tables);
    let mut notes = card.tables.notes.clone();
    let declared = declared(text);
    if let (Some(d), Some(e)) = (&declared, findings.value(Quantity::EraseBlock, 0.5)) {
        notes.push(d.beside_found(e as u64));
    }
    if let Some(d) = &declared {
        notes.extend(d.warnings.iter().chain(&d.notes).cloned());
    }
    let (figures, sides) = (figures(&card.tables), sides(&card.tables));
    Judged { advice: advice(&findings), findings, notes, declared, figures, sides, card }
}

/// Files that name no card are taken for one card's, unless what they say cannot be of one.
fn apart(card: Card) -> Vec<Card> {
    if card.identity.is_certain() {
        return vec![card];
    }
    let Some(parts) = tables::apart::apart(&card.tables) else { return vec![card] };
    let note = "the files do not name their cards, and what they show cannot be of one card: each was judged by itself";
    let one = |mut tables: import::Tables| {
        tables.notes = vec![note.into()];
        Card { identity: card.identity.clone(), tables }
    };
    parts.into_iter().map(one).collect()
}

/// One row a host, record size and direction: as they were printed, nothing pooled but passes of the same kind.
fn figure_table(all: &[Figure]) -> String {
    let us = |x: f64| if x.is_finite() { format!("{x:.0} µs") } else { "-".into() };
    let mut rows = vec![["record", "host", "", "kB/s", "longest", "shortest", "average", "passes"].map(String::from)];
    for f in all {
        rows.push([
            f.record.map_or("?".into(), |r| format!("{r} B")),
            f.host.clone().unwrap_or_else(|| "-".into()),
            if f.write { "write" } else { "read" }.into(),
            format!("{:.2}", f.speed),
            us(f.max),
            us(f.min),
            us(f.avg),
            f.passes.to_string(),
        ]);
    }
    let wide: Vec<usize> = (0..8).map(|i| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0)).collect();
    let line = |r: &[String; 8]| {
        // Words to the left, numbers to the right.
        let cells = r.iter().zip(&wide).enumerate().map(|(i, (c, w))| {
            let pad = " ".repeat(w - c.chars().count());
            if matches!(i, 1 | 2) { format!("{c}{pad}") } else { format!("{pad}{c}") }
        });
        format!("  {}\n", cells.collect::<Vec<_>>().join("  ")).replace(" \n", "\n")
    };
    rows.iter().map(line).collect()
}

/// What the log says the card declares, where it holds registers or their attributes.
fn declared(text: &str) -> Option<Declared> {
    let d = declared::from_dump(text).ok()?.without_serial();
    let registers = d.cid.is_some() || d.csd.is_some() || d.scr.is_some() || d.ssr.is_some() || d.ext_csd.is_some();
    (registers || d.preferred_erase_size.is_some()).then_some(d)
}

fn logs(files: &[(String, Vec<u8>)], json: Option<&PathBuf>) -> anyhow::Result<ExitCode> {
    let cards: Vec<Card> = import::cards(files)?.into_iter().flat_map(apart).collect();
    let names: Vec<&str> = files.iter().map(|f| f.0.as_str()).collect();
    // Registers cannot be given to one of several cards by where they stand; those that name their card are in its tables.
    let whole: String = files.iter().map(|f| String::from_utf8_lossy(&f.1) + "\n").collect();
    let own = |c: &Card| c.tables.declared.iter().map(|d| format!("{}: {}\n", d.key, d.value)).collect::<String>();
    let several = cards.len() > 1;
    let judged: Vec<Judged> = cards
        .into_iter()
        .map(|c| {
            let text = if several { own(&c) } else { whole.clone() };
            judge(c, &text)
        })
        .collect();
    let mut out = std::io::stdout();
    let to_stdout = json.is_some_and(|p| p.as_os_str() == "-");
    if json.is_some() {
        let value = value(&names, &judged);
        match json.filter(|_| !to_stdout) {
            Some(p) => std::fs::write(p, format!("{value}\n")).with_context(|| format!("cannot write {}", p.display()))?,
            None => writeln!(out, "{value}")?,
        }
    }
    if !to_stdout {
        let dress = Dress { colour: colour(&out), width: width(), ..Dress::default() };
        writeln!(out, "{}", names.join(", "))?;
        for (i, j) in judged.iter().enumerate() {
            if several {
                let name = name(&judged, i);
                writeln!(out, "\ncard {} of {}: {name} ({})", i + 1, judged.len(), j.card.tables.summary())?;
            }
            if let Some(d) = &j.declared {
                let au = d.declared_au.as_ref().map(|a| format!("; AU {} ({})", Bytes(a.bytes), a.source)).unwrap_or_default();
                writeln!(out, "declares: {}{au}", super::identify::headline(d))?;
            }
            writeln!(out, "\n{}", findings_text(&j.findings, &j.advice, &j.notes, dress))?;
            if !j.figures.is_empty() {
                writeln!(out, "Record benchmarks as printed\n{}", figure_table(&j.figures))?;
            }
            if !j.sides.is_empty() {
                writeln!(out, "The same test before and after a change")?;
                j.sides.iter().try_for_each(|s| writeln!(out, "{}", s.text()))?;
            }
        }
    }
    let any = judged.iter().flat_map(|j| &j.findings.0).any(|f| f.value.is_some() || f.at_least.is_some());
    Ok(if any { ExitCode::SUCCESS } else { ExitCode::from(UNDECIDED) })
}

/// What a card is called: as the text names it, with its files where that does not tell it from the others.
fn name(all: &[Judged], i: usize) -> String {
    let of = |j: &Judged| j.card.identity.name();
    let files = || all[i].card.tables.sources().join(", ");
    match of(&all[i]) {
        None if all[i].card.tables.files.len() > 1 => files(),
        None => "no name".into(),
        Some(n) if all.iter().enumerate().any(|(k, j)| k != i && of(j).as_ref() == Some(&n)) => format!("{n}, {}", files()),
        Some(n) => n,
    }
}

/// For programs: one entry a card; with one card its findings stand at the top, too.
fn value(names: &[&str], judged: &[Judged]) -> serde_json::Value {
    let one = |j: &Judged| {
        serde_json::json!({
            "name": j.card.identity.name(),
            "declared": j.declared,
            "registers": j.card.tables.declared,
            "findings": j.findings,
            "records": j.figures,
            "before_and_after": j.sides,
            "advice": j.advice,
            "warnings": j.notes,
        })
    };
    let cards: Vec<serde_json::Value> = judged.iter().map(one).collect();
    let top = |key: &str| if let [only] = &cards[..] { only[key].clone() } else { serde_json::json!([]) };
    serde_json::json!({
        "schema": SCHEMA,
        "state": crate::device::CardState::Unknown,
        "tool": { "name": "nandscope", "version": env!("CARGO_PKG_VERSION") },
        "target": { "logs": names },
        "declared": top("declared"),
        "findings": top("findings"),
        "records": top("records"),
        "before_and_after": top("before_and_after"),
        "advice": top("advice"),
        "warnings": top("warnings"),
        "cost": { "reads": 0, "writes": 0, "bytes_written": 0, "seconds": 0.0 },
        "cards": cards,
    })
}

/// JSON where it was asked for, text otherwise (and beside it, unless both would go to standard output).
pub fn output(report: &Report, json: Option<&PathBuf>) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    match json {
        Some(p) if p.as_os_str() == "-" => out.write_all(report.json().as_bytes())?,
        other => {
            if let Some(p) = other {
                report.save(p)?;
            }
            let dress = Dress { colour: colour(&out), width: width(), ..Dress::default() };
            out.write_all(text(report, dress).as_bytes())?;
        }
    }
    Ok(())
}

/// 6 for a counterfeit, else as [`verdict`].
pub fn judged(report: &Report) -> ExitCode {
    if report.is_counterfeit().is_some() { ExitCode::from(COUNTERFEIT) } else { verdict(&report.findings) }
}

/// 0 where anything was decided, 3 where nothing was.
pub fn verdict(findings: &Findings) -> ExitCode {
    let any = findings.0.iter().any(|f| f.value.is_some() || f.at_least.is_some());
    if any { ExitCode::SUCCESS } else { ExitCode::from(UNDECIDED) }
}
