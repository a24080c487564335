//! `nandscope report REPORT`: prints a saved report, or writes it as a page or as pictures.

use super::args::{Output, Samples};
use super::infer::judged;
use super::{colour, inferred, misuse, width, write_text};
use crate::lab::answer;
use crate::lab::experiment::Lab;
use crate::report::any::Saved;
use crate::report::figures::{plots, slug};
use crate::report::forms::Form;
use crate::report::inferred::Inferred;
use crate::report::terminal::{Dress, text};
use crate::report::{Report, SCHEMA, frag, html, maps, scrub, svg};
use crate::saved::privacy;
use anyhow::{Context, bail};
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Args)]
pub struct ReportArgs {
    /// What --json of `probe`, `run`, `frag`, `bench` or `infer` wrote; for --format any result with findings, metrics or verdicts that --json wrote
    report: PathBuf,
    /// Put the fragmentation that `frag --json` measured on this card into the page, too
    #[arg(long, value_name = "F", requires = "html")]
    frag: Option<PathBuf>,
    #[command(flatten)]
    out: Output,
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
    /// No explanation of terms, no uses; of a page the answer alone, which prints on two sheets
    #[arg(long, short)]
    brief: bool,
    /// Which samples go into what is written; a page without them has no plots
    #[arg(long, value_name = "WHICH", value_enum, default_value = "all")]
    samples: Samples,
}

pub fn run(a: ReportArgs) -> anyhow::Result<ExitCode> {
    let name = a.report.display().to_string();
    if a.out.format.is_some_and(|f| f != Form::Json) {
        return other_form(&a, &name);
    }
    let report = match Saved::load(&a.report)? {
        Saved::Bench(value) => return benched(&a, &value),
        Saved::Lab(lab) => return fragmented(&a, &lab),
        Saved::Logs(all) => return of_logs(&a, &all, &name),
        other => other.report(&name)?,
    };
    let lab = match &a.frag {
        Some(path) => match Saved::load(path)? {
            Saved::Lab(lab) => Some(lab),
            _ => bail!("{} is not what `frag --json` writes", path.display()),
        },
        None => None,
    };
    let mut shared = if a.with_serial { report.clone() } else { report.without_serial() };
    if a.samples == Samples::None {
        shared = shared.without_samples();
    }
    let mut quiet = false;
    if let Some(to) = &a.html {
        if a.brief && lab.is_some() {
            return Err(misuse("--brief leaves fragmentation out; give --frag without it"));
        }
        let page = if a.brief { html::brief(&shared) } else { html::page_with(&shared, lab.as_deref(), &answer::profiles()) };
        write_text(to, &page)?;
        quiet = true;
    }
    match (&a.svg, a.figure.as_deref()) {
        (None, Some("list")) => {
            let mut out = super::stdout();
            for p in plots(&report) {
                writeln!(out, "{:<48} {}", p.name, p.figure.title)?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        (None, Some(_)) => return Err(misuse("--figure needs --svg PATH to say where the figure goes")),
        (Some(to), name) => {
            figures(&report, to, name)?;
            quiet = true;
        }
        (None, None) => {}
    }
    quiet |= a.out.put(|| Ok(shared.json()), || Ok(serde_json::to_value(&shared)?))?;
    if !quiet {
        let dress = Dress { colour: colour(&std::io::stdout()), width: width(), explain: !a.brief, ..Dress::default() };
        super::gone(super::stdout().write_all(text(&report, dress).as_bytes()))?;
    }
    Ok(judged(&report))
}

/// Any result, in the form of another program.
fn other_form(a: &ReportArgs, name: &str) -> anyhow::Result<ExitCode> {
    if a.html.is_some() || a.svg.is_some() || a.figure.is_some() {
        return Err(misuse("--format writes no page and no figures; write those by themselves"));
    }
    let text = Report::text(&a.report, name)?;
    let mut value = Report::value(&text, name)?;
    scrub(&mut value);
    let mut code = ExitCode::SUCCESS;
    if value["schema"] == SCHEMA && !Inferred::is(&value) {
        let report = Report::from_value(value, name)?;
        code = judged(&report);
        let shared = if a.with_serial { report } else { report.without_serial() };
        value = serde_json::to_value(shared.without_samples())?;
    } else if !a.with_serial {
        let own = value["target"]["serial"].as_str().map(str::to_string);
        let serials: Vec<String> = own.into_iter().chain(privacy::in_json(&value)).collect();
        privacy::hide(&mut value, &serials);
    }
    a.out.write(&value).with_context(|| name.to_string())?;
    Ok(code)
}

/// What `infer --json` wrote of logs.
fn of_logs(a: &ReportArgs, all: &Inferred, name: &str) -> anyhow::Result<ExitCode> {
    if a.html.is_some() || a.svg.is_some() || a.figure.is_some() || a.frag.is_some() {
        bail!("{name} was made of logs and holds no samples: there is nothing to draw; it is printed as text and with --json");
    }
    if !a.out.write(&all.value())? {
        inferred::print(all)?;
    }
    Ok(inferred::verdict(all))
}

/// The page of a benchmark.
fn benched(a: &ReportArgs, v: &serde_json::Value) -> anyhow::Result<ExitCode> {
    let Some(to) = &a.html else {
        bail!(
            "{} is a benchmark; --html F writes its page (`nandscope bench` prints it as text and draws it with --svg)",
            a.report.display()
        );
    };
    if a.svg.is_some() || a.figure.is_some() || a.frag.is_some() || a.out.json.is_some() || a.out.format.is_some() {
        return Err(misuse("of a benchmark only --html can be written here; `nandscope bench --svg DIR` draws its figures"));
    }
    write_text(to, &html::bench_page(v).map_err(|e| anyhow::anyhow!("{}: {e}", a.report.display()))?)?;
    Ok(ExitCode::SUCCESS)
}

/// Page, pictures and text of an experiment of `frag`.
fn fragmented(a: &ReportArgs, lab: &Lab) -> anyhow::Result<ExitCode> {
    let profiles = answer::profiles();
    let figures: Vec<_> = frag::figures(lab).into_iter().map(|f| (slug(&f.title), svg::file(&f), f.title)).collect();
    let maps =
        lab.conditions.iter().map(|c| (format!("map-{}", slug(c.state.name())), maps::svg(&c.map), format!("the volume {}", c.state)));
    let all: Vec<(String, String, String)> = figures.into_iter().chain(maps).collect();
    let mut quiet = false;
    if let Some(to) = &a.html {
        write_text(to, &html::lab_page(lab, &profiles))?;
        quiet = true;
    }
    if a.figure.as_deref() == Some("list") {
        let mut out = super::stdout();
        for (name, _, title) in &all {
            writeln!(out, "{name:<48} {title}")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    match (&a.svg, a.figure.as_deref()) {
        (None, Some(_)) => return Err(misuse("--figure needs --svg PATH to say where the figure goes")),
        (Some(to), Some(name)) => {
            let Some(f) = all.iter().find(|f| f.0 == name) else {
                bail!("there is no figure '{name}' in this report; `--figure list` prints the names");
            };
            write_text(to, &f.1)?;
            quiet = true;
        }
        (Some(to), None) => {
            std::fs::create_dir_all(to).with_context(|| format!("cannot make the directory {}", to.display()))?;
            all.iter().try_for_each(|f| write_text(&to.join(format!("{}.svg", f.0)), &f.1).map(|_| ()))?;
            quiet = true;
        }
        (None, None) => {}
    }
    quiet |= a.out.write(lab)?;
    if !quiet {
        put!("{}", frag::text(lab, &profiles, width()));
    }
    Ok(ExitCode::SUCCESS)
}

fn figures(report: &Report, to: &Path, name: Option<&str>) -> anyhow::Result<()> {
    let all = plots(report);
    if let Some(name) = name {
        let Some(p) = all.iter().find(|p| p.name == name) else {
            let names: Vec<&str> = all.iter().map(|p| p.name.as_str()).collect();
            bail!("there is no figure '{name}' in this report; there are: {}", names.join(", "));
        };
        write_text(to, &svg::file(&p.figure))?;
        return Ok(());
    }
    if to.as_os_str() == "-" {
        return Err(misuse("name one figure with --figure to write it to standard output; --figure list prints the names"));
    }
    if all.is_empty() {
        bail!("this report has no samples to draw: it was saved with --samples none");
    }
    std::fs::create_dir_all(to).with_context(|| format!("cannot make the directory {}", to.display()))?;
    for p in &all {
        write_text(&to.join(format!("{}.svg", p.name)), &svg::file(&p.figure))?;
    }
    Ok(())
}
