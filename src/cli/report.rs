//! `nandscope report REPORT`: prints a saved report as it is.

use super::infer::{output, verdict};
use crate::report::Report;
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
pub struct ReportArgs {
    /// A report that --json wrote
    report: PathBuf,
    /// Write JSON to a file, or to standard output with '-'
    #[arg(long, value_name = "F")]
    json: Option<PathBuf>,
}

pub fn run(a: ReportArgs) -> anyhow::Result<ExitCode> {
    let report = Report::load(&a.report)?;
    output(&report, a.json.as_ref())?;
    Ok(verdict(&report.findings))
}
