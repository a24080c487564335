//! `nandscope infer FILE...`: findings without the card, from a saved report or from pasted logs of other tools.

use super::args::{Output, Samples};
use super::{COUNTERFEIT, FAILING, UNDECIDED, colour, inferred, width};
use crate::advise::{advice, conclude};
use crate::finding::{Findings, Quantity};
use crate::host::declared::{self, Declared};
use crate::infer::pipeline::by_name;
use crate::infer::tables;
use crate::infer::tables::bench::figures;
use crate::infer::tables::sides::sides;
use crate::report::Report;
use crate::report::any::Saved;
use crate::report::inferred::{Card as Found, Inferred};
use crate::report::terminal::{Dress, table_text, text};
use crate::samples::firmware::Log;
use crate::samples::import::foreign::PROGRAMS;
use crate::samples::import::{self, Card, File, ImportError, Text, foreign::Benchmark, given};
use crate::saved::counterfeit::loses;
use crate::units::{Bytes, about, parse_rate};
use anyhow::{Context, bail};
use clap::Args;
use serde_json::Value;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
pub struct InferArgs {
    #[arg(required = true, value_name = "FILE", help = format!(
        "A report that --json wrote, or pasted logs: flashbench, SdFat bench, busy traces, lines of firmware/, sysfs or register dumps; {PROGRAMS}; \
         '-' reads standard input"
    ))]
    files: Vec<PathBuf>,
    #[command(flatten)]
    out: Output,
    /// For lines of firmware/: size the buffer of a logger for this rate, such as 20kB/s; may be given more than once [default: half
    /// of the rate of the log's writes]
    #[arg(long, value_name = "RATE", value_delimiter = ',', value_parser = parse_rate)]
    log: Vec<Bytes>,
    /// Of a report: evidence, reasons and plots, too
    #[arg(long)]
    details: bool,
}

pub fn run(a: InferArgs) -> anyhow::Result<ExitCode> {
    let given = Given::read(&a.files)?;
    let micro = given.micro.len();
    if micro > 0 && given.own.is_empty() && given.logs.is_empty() {
        return super::infer_micro::run(given.micro, &a.log, &a.out);
    }
    if let Some((name, _)) = given.micro.first() {
        bail!("'{name}' is a busy trace or a log of a microcontroller, and not all the files are; give those alone: each is a card");
    }
    if !a.log.is_empty() {
        return Err(super::misuse("--log needs the calls of a logger, as one log of firmware/ or `nandscope bench` has them"));
    }
    let Given { mut own, logs, texts, .. } = given;
    match (own.len(), logs.len()) {
        (0, _) => self::logs(&logs, texts, &a.out),
        (1, 0) => {
            let (name, value) = own.remove(0);
            let mut report = match Saved::from_value(value, &name)? {
                Saved::Logs(all) => {
                    tell!("nandscope: {name} was made of logs that are not in it; it is shown as it was found");
                    return shown(&all, &a.out);
                }
                other => other.report(&name)?,
            };
            if report.runs.is_empty() && !report.findings.0.is_empty() {
                bail!(
                    "{name} was saved without its samples, so that nothing can be inferred again; `nandscope report` prints what was found"
                );
            }
            report.findings = Report::infer(&report.runs);
            conclude(&mut report);
            let mut unknown: Vec<&str> = report.runs.iter().map(|r| r.experiment.as_str()).filter(|e| by_name(e).is_none()).collect();
            unknown.sort_unstable();
            unknown.dedup();
            if !unknown.is_empty() {
                let which = super::harmless(&unknown.join(", "));
                tell!("nandscope: {name} has runs of experiments that this version does not know ({which}); nothing is inferred from them");
            }
            report.name_target("");
            output(&report, &a.out, Samples::All, if a.details { Print::Details } else { Print::Answer })?;
            Ok(judged(&report))
        }
        _ => Err(super::misuse("give one report, or any number of logs of one card, not both")),
    }
}

/// What the files hold, by kind.
#[derive(Default)]
struct Given {
    own: Vec<(String, Value)>,
    micro: Vec<(String, Log)>,
    /// Names and contents of the logs.
    logs: Vec<(String, Vec<u8>)>,
    texts: Vec<Text>,
}

impl Given {
    /// A file among several that holds nothing is a warning; where none holds anything, it is an error.
    fn read(files: &[PathBuf]) -> anyhow::Result<Given> {
        let mut out = Given::default();
        let mut nothing = vec![];
        for path in files {
            let name = given::name(path);
            let bytes = given::bytes(path).with_context(|| format!("cannot read {name}"))?;
            match import::open(out.logs.len(), &name, &bytes) {
                Ok(File::Own { value, .. }) => out.own.push((name, value)),
                Ok(File::Micro { log, .. }) => out.micro.push((name, log)),
                Ok(File::Text(t)) if t.cards.is_empty() && t.figures.is_none() => nothing.push(ImportError::Wiki(name)),
                Ok(File::Text(t)) => {
                    out.logs.push((name, bytes));
                    out.texts.push(t);
                }
                Err(why) if why.is_nothing() => nothing.push(why),
                Err(damaged) => return Err(damaged.into()),
            }
        }
        let any = out.own.len() + out.micro.len() + out.logs.len() > 0;
        for why in nothing {
            if !any {
                return Err(why.into());
            }
            tell!("nandscope: left out: {}", super::harmless(&why.to_string()));
        }
        Ok(out)
    }
}

fn judge(card: Card, text: &str) -> Found {
    let findings = tables::infer(&card.tables);
    let mut warnings = card.tables.notes.clone();
    let declared = declared(text);
    if let (Some(d), Some(e)) = (&declared, findings.value(Quantity::EraseBlock, 0.5)) {
        warnings.push(d.beside_found(e as u64));
    }
    if let Some(d) = &declared {
        warnings.extend(d.warnings.iter().chain(&d.notes).cloned());
    }
    Found {
        name: card.identity.name(),
        tests: card.tables.summary(),
        files: card.tables.sources().into_iter().map(str::to_string).collect(),
        records: figures(&card.tables),
        before_and_after: sides(&card.tables),
        advice: advice(&findings),
        registers: card.tables.declared,
        declared,
        findings,
        warnings,
        ..Found::default()
    }
}

/// What another benchmark printed, which is of no card that the other files name.
fn printed(name: &str, b: &Benchmark) -> Found {
    let size = b.capacity.map(|c| format!("the card reports {}", about(c)));
    let registers: String = b.registers.iter().map(|(key, hex)| format!("{key}: {hex}\n")).collect();
    Found {
        name: b.name.clone(),
        declared: declared(&registers),
        tests: b.version.clone().unwrap_or_else(|| b.tool.into()),
        files: vec![name.to_string()],
        figures: b.metrics.clone(),
        flags: b.flags.clone(),
        warnings: size.into_iter().chain(b.notes.clone()).collect(),
        ..Found::default()
    }
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

/// What the log says the card declares, where it holds registers or their attributes.
fn declared(text: &str) -> Option<Declared> {
    let d = declared::from_dump(text).ok()?.without_serial();
    let registers = d.cid.is_some() || d.csd.is_some() || d.scr.is_some() || d.ssr.is_some() || d.ext_csd.is_some();
    (registers || d.preferred_erase_size.is_some()).then_some(d)
}

fn logs(files: &[(String, Vec<u8>)], texts: Vec<Text>, out: &Output) -> anyhow::Result<ExitCode> {
    let names: Vec<String> = files.iter().map(|f| f.0.clone()).collect();
    let (parts, others): (Vec<_>, Vec<_>) = texts.into_iter().map(|t| (t.cards, t.figures)).unzip();
    let cards: Vec<Card> = import::pool(&names, parts).into_iter().flat_map(apart).collect();
    // Registers cannot be given to one of several cards by where they stand; those that name their card are in its tables.
    let whole: String = files.iter().map(|f| String::from_utf8_lossy(&f.1) + "\n").collect();
    let own = |c: &Card| c.tables.declared.iter().map(|d| format!("{}: {}\n", d.key, d.value)).collect::<String>();
    let several = cards.len() > 1;
    let of = |c: Card| {
        let text = if several { own(&c) } else { whole.clone() };
        judge(c, &text)
    };
    let mut cards: Vec<Found> = cards.into_iter().map(of).collect();
    cards.extend(names.iter().zip(&others).filter_map(|(name, b)| Some(printed(name, b.as_ref()?))));
    shown(&Inferred { logs: names, cards }, out)
}

/// The form that was asked for, and text unless that goes to standard output.
fn shown(all: &Inferred, out: &Output) -> anyhow::Result<ExitCode> {
    let to_stdout = out.write(&all.value())?;
    if !to_stdout {
        inferred::print(all)?;
    }
    Ok(inferred::verdict(all))
}

/// JSON where it was asked for, text otherwise (and beside it, unless both would go to standard output).
/// What is printed of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Print {
    Table,
    Answer,
    Details,
    /// The value of one quantity.
    Only(Quantity),
    /// Standard output is another result's.
    Nothing,
}

pub fn output(report: &Report, out: &Output, samples: Samples, print: Print) -> anyhow::Result<()> {
    // No other form than JSON holds samples.
    let bare = || serde_json::to_value(report.without_samples());
    let whole = || if samples == Samples::None { report.without_samples().json() } else { report.json() };
    let to_stdout = out.put(|| Ok(whole()), || Ok(bare()?))?;
    if !to_stdout {
        let dress = Dress { colour: colour(&std::io::stdout()), width: width(), details: print == Print::Details, ..Dress::default() };
        let all = match print {
            Print::Only(q) => only(report, q),
            Print::Table => table_text(report, dress),
            Print::Answer | Print::Details => text(report, dress),
            Print::Nothing => String::new(),
        };
        // A reader that went away takes nothing else with it: warnings, a twin, the exit code.
        put!("{all}");
    }
    Ok(())
}

/// A value as scripts want it, in the unit of JSON; why there is none goes to standard error.
fn only(report: &Report, q: Quantity) -> String {
    match report.findings.get(q) {
        Some(f) if f.number().is_some() => {
            let value = f.number().unwrap_or_default();
            return if q.is_choice() { format!("{}\n", q.show(value)) } else { format!("{value}\n") };
        }
        Some(f) if f.at_least.is_some() => {
            tell!("nandscope: {}: at least {}", q.title(), q.show(f.at_least.map_or(0.0, |b| b.0)));
        }
        Some(f) => tell!("nandscope: {}: undecided, because {}", q.title(), f.reason.as_deref().unwrap_or("no reason given")),
        None => tell!("nandscope: {}: not measured", q.title()),
    }
    String::new()
}

/// 6 for a counterfeit, 7 for a card that loses what is written, else as [`verdict`].
pub fn judged(report: &Report) -> ExitCode {
    match report.is_counterfeit() {
        Some(_) => ExitCode::from(COUNTERFEIT),
        None if loses(&report.findings).is_some() => ExitCode::from(FAILING),
        None => verdict(&report.findings),
    }
}

/// 0 where anything was decided, 3 where nothing was.
pub fn verdict(findings: &Findings) -> ExitCode {
    let any = findings.0.iter().any(|f| f.value.is_some() || f.at_least.is_some());
    if any { ExitCode::SUCCESS } else { ExitCode::from(UNDECIDED) }
}
