//! `nandscope infer` of what a microcontroller printed: the line protocol of `firmware/`, or a busy trace in ChaN's form.

use super::args::Output;
use super::{UNDECIDED, colour, width};
use crate::advise::advice;
use crate::compare::{self, Subject};
use crate::finding::Findings;
use crate::infer::buffer::{answer, claim};
use crate::infer::micro::findings;
use crate::report::bench::{self as form, Bench, SCHEMA, Style, busy};
use crate::report::plot::braille;
use crate::report::terminal::{Dress, findings_text};
use crate::samples::firmware::Log;
use crate::units::Bytes;
use anyhow::bail;
use std::io::Write;
use std::process::ExitCode;

/// Prints what follows from logs, each of a card of its own, and how the cards compare. `rates`: bytes a second that are to be
/// logged. 3 where they decide nothing and hold no calls.
pub fn run(logs: Vec<(String, Log)>, rates: &[Bytes], to: &Output) -> anyhow::Result<ExitCode> {
    let cards: Vec<Judged> = logs.into_iter().map(|(name, log)| judge(name, log, rates)).collect();
    if let (Some(c), false) = (cards.iter().find(|c| c.benches.iter().all(|b| b.answers.is_empty())), rates.is_empty()) {
        bail!("{} holds no calls that write: a buffer for --log cannot be sized", c.name);
    }
    let label = |i: usize| format!("{} ({})", super::compare::label(i), cards[i].name);
    let subject = |i: usize| Subject { label: label(i), findings: cards[i].findings.clone(), ..Subject::default() };
    let pairs: Vec<Vec<String>> = (1..cards.len()).map(|i| compare::rewrites(&subject(0), &subject(i))).collect();
    let value = match &cards[..] {
        [only] => only.value(),
        all => serde_json::json!({
            "schema": SCHEMA,
            "cards": all.iter().map(Judged::value).collect::<Vec<_>>(),
            "comparison": pairs.concat(),
        }),
    };
    let mut out = super::page();
    if !to.write(&value)? {
        for (i, c) in cards.iter().enumerate() {
            if cards.len() > 1 {
                writeln!(out, "{}card {} of {}:", if i > 0 { "\n" } else { "" }, super::compare::label(i), cards.len())?;
            }
            c.print(&mut out)?;
        }
        for (i, lines) in pairs.iter().enumerate() {
            writeln!(out, "\n{} and {}", label(0), label(i + 1))?;
            let none = ["nothing that both traces say".to_string()];
            let lines = if lines.is_empty() { &none[..] } else { &lines[..] };
            lines.iter().try_for_each(|l| writeln!(out, "  {l}"))?;
        }
    }
    let calls = cards.iter().any(|c| !c.benches.is_empty());
    let decided = cards.iter().flat_map(|c| &c.findings.0).any(|f| f.value.is_some() || f.at_least.is_some());
    Ok(if calls || decided { ExitCode::SUCCESS } else { ExitCode::from(UNDECIDED) })
}

/// One log, judged.
struct Judged {
    name: String,
    log: Log,
    findings: Findings,
    benches: Vec<Bench>,
}

fn judge(name: String, mut log: Log, rates: &[Bytes]) -> Judged {
    let findings = findings(&log);
    let host = if log.host.is_empty() { "a microcontroller".to_string() } else { log.host.clone() };
    let mut benches: Vec<Bench> = vec![];
    for p in std::mem::take(&mut log.passes) {
        let b = benches.iter_mut().find(|b| b.record == p.record);
        match b {
            Some(b) => b.passes.push(p),
            None => benches.push(Bench {
                target: name.clone(),
                host: host.clone(),
                state: crate::device::CardState::Unknown,
                record: p.record,
                file: p.bytes(),
                sync: format!("timed in steps of {} µs", log.clock_us),
                passes: vec![p],
                answers: vec![],
                notes: vec![],
                price: None,
                capacity: None,
                cluster: None,
                kernel: false,
                cached: false,
                layers: vec![],
                again: String::new(),
            }),
        }
    }
    for b in &mut benches {
        if let Some(p) = b.passes.iter().find(|p| p.write) {
            let most = p.bytes() as f64 * 1e9 / p.total.0.max(1) as f64;
            let gb = claim(p.bytes());
            b.answers = match rates {
                [] => vec![answer(p, most / 2.0, gb)],
                all => all.iter().map(|r| answer(p, r.0 as f64, gb)).collect(),
            };
            if rates.is_empty() {
                b.notes.push("the rate is half of what the card takes; --log RATE asks for yours".into());
            }
        }
    }
    Judged { name, log, findings, benches }
}

impl Judged {
    fn value(&self) -> serde_json::Value {
        serde_json::json!({
            "schema": SCHEMA,
            "name": self.name,
            "state": crate::device::CardState::Unknown,
            "benches": self.benches.iter().map(form::json).collect::<Vec<_>>(),
            "findings": self.findings,
            "advice": advice(&self.findings),
            "warnings": self.log.notes,
        })
    }

    fn print(&self, out: &mut impl Write) -> std::io::Result<()> {
        let dress = Dress { colour: colour(&std::io::stdout()), width: width(), ..Dress::default() };
        writeln!(out, "{}\n", self.name)?;
        for b in &self.benches {
            writeln!(out, "{}", form::text(b, Style { width: width(), plots: true, sdfat: false }))?;
        }
        for (_, t) in &self.log.busy {
            let lines = braille(&busy(t), width().min(100), 8);
            writeln!(out, "{}\n", lines.join("\n"))?;
        }
        if self.log.busy.is_empty() {
            return self.log.notes.iter().try_for_each(|n| writeln!(out, "note: {n}"));
        }
        write!(out, "{}", findings_text(&self.findings, &advice(&self.findings), &self.log.notes, dress))
    }
}
