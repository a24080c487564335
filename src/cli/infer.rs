//! `nandscope infer FILE...`: findings without the card, from a saved report or from pasted logs of other tools.

use super::{UNDECIDED, colour, width};
use crate::finding::Findings;
use crate::infer::tables;
use crate::report::terminal::{Dress, findings_text, text};
use crate::report::{Report, SCHEMA, advice::advice};
use crate::samples::import;
use anyhow::{Context, bail};
use clap::Args;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
pub struct InferArgs {
    /// A report that --json wrote, or logs of one card: flashbench, SdFat bench, busy traces, lines of firmware/, sysfs or register dumps; '-' reads standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write the report with the new findings to a file, or to standard output with '-'
    #[arg(long, value_name = "F")]
    json: Option<PathBuf>,
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
    if let [(name, bytes)] = &files[..]
        && let Some(log) = super::infer_micro::read(bytes)
    {
        return super::infer_micro::run(name, log, a.json.as_ref());
    }
    let is_report = |b: &[u8]| b.iter().find(|c| !c.is_ascii_whitespace()) == Some(&b'{');
    match files.iter().filter(|f| is_report(&f.1)).count() {
        0 => logs(&files, a.json.as_ref()),
        1 if files.len() == 1 => {
            let (name, bytes) = &files[0];
            let mut report = Report::parse(&String::from_utf8_lossy(bytes), name)?;
            report.findings = Report::infer(&report.runs);
            report.advice = advice(&report.findings);
            output(&report, a.json.as_ref())?;
            Ok(verdict(&report.findings))
        }
        _ => bail!("give one report, or any number of logs of one card, not both"),
    }
}

fn logs(files: &[(String, Vec<u8>)], json: Option<&PathBuf>) -> anyhow::Result<ExitCode> {
    let tables = import::read(files)?;
    let findings = tables::infer(&tables);
    let names: Vec<&str> = files.iter().map(|f| f.0.as_str()).collect();
    let value = serde_json::json!({
        "schema": SCHEMA,
        "tool": { "name": "nandscope", "version": env!("CARGO_PKG_VERSION") },
        "target": { "logs": names },
        "declared": tables.declared,
        "findings": findings,
        "advice": advice(&findings),
        "warnings": tables.notes,
        "cost": { "reads": 0, "writes": 0, "bytes_written": 0, "seconds": 0.0 },
    });
    let mut out = std::io::stdout();
    match json {
        Some(p) if p.as_os_str() == "-" => writeln!(out, "{value}")?,
        other => {
            if let Some(p) = other {
                std::fs::write(p, format!("{value}\n")).with_context(|| format!("cannot write {}", p.display()))?;
            }
            let dress = Dress { colour: colour(&out), width: width(), ..Dress::default() };
            writeln!(out, "{}\n\n{}", names.join(", "), findings_text(&findings, &advice(&findings), &tables.notes, dress))?;
        }
    }
    Ok(verdict(&findings))
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

/// 0 where anything was decided, 3 where nothing was.
pub fn verdict(findings: &Findings) -> ExitCode {
    let any = findings.0.iter().any(|f| f.value.is_some() || f.at_least.is_some());
    if any { ExitCode::SUCCESS } else { ExitCode::from(UNDECIDED) }
}
