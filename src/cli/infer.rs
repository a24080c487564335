//! `nandscope infer REPORT`: the findings again, from the samples, without the card.

use super::{UNDECIDED, colour, width};
use crate::report::terminal::{Dress, text};
use crate::report::{Report, advice::advice};
use clap::Args;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
pub struct InferArgs {
    /// A report that --json wrote
    report: PathBuf,
    /// Write the report with the new findings to a file, or to standard output with '-'
    #[arg(long, value_name = "F")]
    json: Option<PathBuf>,
}

pub fn run(a: InferArgs) -> anyhow::Result<ExitCode> {
    let mut report = Report::load(&a.report)?;
    report.findings = Report::infer(&report.runs);
    report.advice = advice(&report.findings);
    output(&report, a.json.as_ref())?;
    Ok(verdict(&report))
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
pub fn verdict(report: &Report) -> ExitCode {
    let any = report.findings.0.iter().any(|f| f.value.is_some() || f.at_least.is_some());
    if any { ExitCode::SUCCESS } else { ExitCode::from(UNDECIDED) }
}
