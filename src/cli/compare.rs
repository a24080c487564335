//! `nandscope compare A B [...]`: what differs, how surely, by how much; and how that compares with published cards.

use super::UNDECIDED;
use crate::compare::{self, Difference, Experiment, Outcome, Subject};
use crate::report::words::grade;
use crate::survey::published::published;
use crate::survey::record::{Record, Told};
use crate::units::three;
use anyhow::{Context, bail};
use clap::Args;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Args)]
pub struct CompareArgs {
    /// Reports, or logs of flashbench, SdFat bench, fio, f3, iozone; ref:NAME is a published card, 'ref:' lists them
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// The cards named so far are one lot, those after this another
    #[arg(long, value_name = "FILE", num_args = 1..)]
    against: Vec<String>,
    /// Write the comparison as JSON to a file, or to standard output with '-'
    #[arg(long, value_name = "F")]
    json: Option<PathBuf>,
}

pub fn run(a: CompareArgs) -> anyhow::Result<ExitCode> {
    let references = published();
    if a.files == ["ref:"] {
        let mut out = std::io::stdout();
        for r in &references {
            writeln!(out, "ref:{:<28} {} ({})", r.id.trim_start_matches("ref-"), r.card.name, r.source.citation.as_deref().unwrap_or(""))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut number = 0;
    let mut read = |files: &[String]| -> anyhow::Result<Vec<Subject>> {
        files
            .iter()
            .map(|f| {
                number += 1;
                Ok(load(f, &references)?.subject(&label(number - 1)))
            })
            .collect()
    };
    let first = read(&a.files)?;
    let second = read(&a.against)?;
    if first.len() + second.len() < 2 {
        // One card still has the published ones to stand beside.
        if compare::references(&first[0], &subjects(&references)).is_empty() {
            bail!("give at least two cards: there is no published figure to compare this one with");
        }
    }
    finish(&first, &second, &references, a.json.as_deref())
}

/// A, B, ..., Z, A1, B1, ...
fn label(i: usize) -> String {
    let letter = char::from(b'A' + (i % 26) as u8);
    if i < 26 { letter.to_string() } else { format!("{letter}{}", i / 26) }
}

fn load(name: &str, references: &[Record]) -> anyhow::Result<Record> {
    if let Some(id) = name.strip_prefix("ref:") {
        return match references.iter().find(|r| r.id.strip_prefix("ref-") == Some(id)) {
            Some(r) => Ok(r.clone()),
            None => bail!("there is no published card '{id}'; `nandscope compare ref:` lists them"),
        };
    }
    let bytes = std::fs::read(name).with_context(|| format!("cannot read {name}"))?;
    Record::from_file(name, &bytes, &Told::default(), 0).map_err(|why| anyhow::anyhow!("{name}: {why}"))
}

fn subjects(references: &[Record]) -> Vec<Subject> {
    references.iter().map(|r| r.subject("")).collect()
}

/// Prints the comparison; also for `survey compare`.
pub fn finish(first: &[Subject], second: &[Subject], references: &[Record], json: Option<&Path>) -> anyhow::Result<ExitCode> {
    let all: Vec<&Subject> = first.iter().chain(second).collect();
    let base = all[0];
    let published = subjects(references);
    let pairs: Vec<Pair> = all[1..].iter().map(|b| Pair::of(base, b)).collect();
    let lots = if second.is_empty() { vec![] } else { compare::lots(first, second) };
    let lines: Vec<String> =
        all.iter().flat_map(|s| compare::references(s, &published).into_iter().map(|l| format!("{}: {l}", s.label))).collect();
    if let Some(to) = json {
        let value = serde_json::json!({
            "schema": "nandscope-compare/1",
            "cards": all.iter().map(|s| serde_json::json!({ "label": s.label, "name": s.name, "identity": s.identity })).collect::<Vec<_>>(),
            "pairs": pairs.iter().map(|p| serde_json::json!({ "a": base.label, "b": p.label, "headline": p.headline, "findings": p.findings, "figures": p.metrics, "samples": p.samples })).collect::<Vec<_>>(),
            "lots": lots,
            "references": lines,
        });
        if to.as_os_str() == "-" {
            writeln!(std::io::stdout(), "{value}")?;
        } else {
            std::fs::write(to, format!("{value}\n")).with_context(|| format!("cannot write {}", to.display()))?;
        }
    }
    if json.is_none_or(|to| to.as_os_str() != "-") {
        std::io::stdout().write_all(text(&all, &pairs, &lots, &lines, first.len()).as_bytes())?;
    }
    let decided = pairs.iter().any(|p| {
        p.findings.iter().chain(&p.metrics).any(|d| d.outcome != Outcome::Unclear) || p.samples.iter().any(|e| !e.conditions.is_empty())
    });
    Ok(if decided || !lines.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(UNDECIDED) })
}

struct Pair {
    label: String,
    headline: Vec<String>,
    findings: Vec<Difference>,
    metrics: Vec<Difference>,
    samples: Vec<Experiment>,
}

impl Pair {
    fn of(a: &Subject, b: &Subject) -> Pair {
        Pair {
            label: b.label.clone(),
            headline: compare::headline(a, b),
            findings: compare::findings(a, b),
            metrics: compare::metrics(a, b),
            samples: compare::samples(a, b),
        }
    }
}

fn text(all: &[&Subject], pairs: &[Pair], lots: &[compare::Lots], references: &[String], first: usize) -> String {
    let mut o = String::new();
    for s in all {
        let _ = writeln!(
            o,
            "{}  {}{}",
            s.label,
            s.name,
            s.identity.as_ref().filter(|i| !i.contains(&s.name)).map(|i| format!(" ({i})")).unwrap_or_default()
        );
    }
    let a = &all[0].label;
    for p in pairs {
        let _ = writeln!(o, "\n{a} and {}", p.label);
        p.headline.iter().for_each(|h| {
            let _ = writeln!(o, "  {h}");
        });
        for d in p.findings.iter().chain(&p.metrics) {
            let _ = writeln!(o, "  {:<32}{:<20}{:<20}{}", d.what, d.a, d.b, verdict(d));
        }
        for e in &p.samples {
            experiment(&mut o, e, a, &p.label);
        }
        if p.findings.is_empty() && p.metrics.is_empty() && p.samples.is_empty() {
            let _ = writeln!(o, "  nothing that both measured");
        }
    }
    if !pairs.is_empty() && pairs.iter().any(|p| !p.samples.is_empty()) {
        let _ = writeln!(
            o,
            "\nOne measurement a card: a difference may be of the day or the reader as well as of the card; repeat each to know."
        );
    }
    if !lots.is_empty() {
        let _ = writeln!(o, "\nLots: {} cards against {}", first, all.len() - first);
        for l in lots {
            let list = |v: &[f64]| v.iter().map(|x| three(*x).trim_end_matches(".00").to_string()).collect::<Vec<_>>().join(", ");
            let verdict = match () {
                _ if l.least > 0.05 => format!("too few cards for a statement about the lots (p cannot be below {:.2})", l.least),
                _ if l.p <= 0.05 => format!("the lots differ (p = {:.3})", l.p),
                _ => format!("no difference shown (p = {:.2})", l.p),
            };
            let _ = writeln!(o, "  {:<32}{} against {}: {verdict}", l.what, list(&l.a), list(&l.b));
        }
    }
    if !references.is_empty() {
        let _ = writeln!(o, "\nBeside published cards (other hosts: the host is part of the measurement)");
        references.iter().for_each(|r| {
            let _ = writeln!(o, "  {r}");
        });
    }
    o
}

fn verdict(d: &Difference) -> String {
    let ratio = d.ratio.map(|[r, low, high]| {
        if low.is_finite() {
            format!(", x{} ({} to {})", three(r), three(low), three(high))
        } else {
            format!(", x{}, one figure each: no interval", three(r))
        }
    });
    let ratio = ratio.unwrap_or_default();
    match d.outcome {
        Outcome::Same => format!("same ({:.0} %, {}){ratio}", d.probability * 100.0, grade(d.probability)),
        Outcome::Differs => format!("differs ({:.0} %, {}){ratio}", d.probability * 100.0, grade(d.probability)),
        Outcome::Unclear if ratio.is_empty() => "cannot be said".into(),
        Outcome::Unclear => format!("cannot be said{ratio}"),
    }
}

fn experiment(o: &mut String, e: &Experiment, a: &str, b: &str) {
    let (n, differing) = (e.conditions.len(), e.differing());
    let [mid, low, high] = e.ratio;
    let times =
        format!("times of {b} are x{} those of {a} (median of {n} common conditions, {} to {})", three(mid), three(low), three(high));
    let _ = match e.outcome {
        Outcome::Same => writeln!(o, "  {}: no difference; {times}", e.name),
        Outcome::Unclear => writeln!(o, "  {}: no difference shown, and none excluded; {times}", e.name),
        Outcome::Differs if differing == 0 => writeln!(o, "  {}: differs; {times}", e.name),
        Outcome::Differs => writeln!(o, "  {}: differs, {differing} of them beyond doubt by themselves; {times}", e.name),
    };
    for c in e.conditions.iter().filter(|c| c.differs).take(3) {
        let [r, lo, hi] = c.ratio;
        let _ = writeln!(
            o,
            "    {}: {} µs against {} µs, {b} is {} (x{} to x{} of the time, p {:.0e})",
            c.label,
            three(c.a),
            three(c.b),
            compare::faster(1.0 / r),
            three(lo),
            three(hi),
            c.p.max(1e-99)
        );
    }
}
