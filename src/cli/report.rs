//! `nandscope report REPORT`: prints a saved report, or writes it as a page or as pictures.

use super::infer::verdict;
use super::{colour, width};
use crate::report::figures::plots;
use crate::report::terminal::{Dress, text};
use crate::report::{Report, html, svg};
use anyhow::{Context, bail};
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Args)]
pub struct ReportArgs {
    /// A report that --json wrote
    report: PathBuf,
    /// Write JSON to a file, or to standard output with '-'
    #[arg(long, value_name = "F")]
    json: Option<PathBuf>,
    /// Write one self-contained web page to a file, or to standard output with '-'
    #[arg(long, value_name = "F")]
    html: Option<PathBuf>,
    /// Write the figures as SVG into a directory; with --figure one of them to a file, or to standard output with '-'
    #[arg(long, value_name = "PATH")]
    svg: Option<PathBuf>,
    /// Name of a figure; 'list' prints the names
    #[arg(long, value_name = "NAME")]
    figure: Option<String>,
    /// Keep serial numbers in what is written; they are left out otherwise
    #[arg(long)]
    with_serial: bool,
    /// No explanation of terms, no uses
    #[arg(long, short)]
    brief: bool,
}

pub fn run(a: ReportArgs) -> anyhow::Result<ExitCode> {
    let report = Report::load(&a.report)?;
    let shared = if a.with_serial { report.clone() } else { report.without_serial() };
    let mut quiet = false;
    if let Some(to) = &a.html {
        put(to, &html::page(&shared))?;
        quiet = true;
    }
    match (&a.svg, a.figure.as_deref()) {
        (None, Some("list")) => {
            let mut out = std::io::stdout();
            for p in plots(&report) {
                writeln!(out, "{:<48} {}", p.name, p.figure.title)?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        (None, Some(_)) => bail!("--figure needs --svg PATH to say where the figure goes"),
        (Some(to), name) => {
            figures(&report, to, name)?;
            quiet = true;
        }
        (None, None) => {}
    }
    if let Some(to) = &a.json {
        quiet |= put(to, &shared.json())?;
    }
    if !quiet {
        let mut out = std::io::stdout();
        let dress = Dress { colour: colour(&out), width: width(), explain: !a.brief, ..Dress::default() };
        out.write_all(text(&report, dress).as_bytes())?;
    }
    Ok(verdict(&report.findings))
}

/// True where it went to standard output, so that nothing else may.
fn put(to: &Path, content: &str) -> anyhow::Result<bool> {
    if to.as_os_str() == "-" {
        std::io::stdout().write_all(content.as_bytes())?;
        return Ok(true);
    }
    let mut part = to.as_os_str().to_owned();
    part.push(".part");
    std::fs::write(&part, content).and_then(|()| std::fs::rename(&part, to)).with_context(|| format!("cannot write {}", to.display()))?;
    Ok(false)
}

fn figures(report: &Report, to: &Path, name: Option<&str>) -> anyhow::Result<()> {
    let all = plots(report);
    if let Some(name) = name {
        let Some(p) = all.iter().find(|p| p.name == name) else {
            let names: Vec<&str> = all.iter().map(|p| p.name.as_str()).collect();
            bail!("there is no figure '{name}' in this report; there are: {}", names.join(", "));
        };
        put(to, &svg::file(&p.figure))?;
        return Ok(());
    }
    if to.as_os_str() == "-" {
        bail!("name one figure with --figure to write it to standard output; --figure list prints the names");
    }
    std::fs::create_dir_all(to).with_context(|| format!("cannot make the directory {}", to.display()))?;
    for p in &all {
        put(&to.join(format!("{}.svg", p.name)), &svg::file(&p.figure))?;
    }
    Ok(())
}
