//! `nandscope infer` of what a microcontroller printed: the line protocol of `firmware/`, or a busy trace in ChaN's form.

use super::{colour, width};
use crate::finding::{Finding, Findings, Quantity};
use crate::infer::buffer::{answer, claim};
use crate::infer::combine::combine;
use crate::infer::rewrite::infer_trace;
use crate::infer::stats::median;
use crate::report::advice::advice;
use crate::report::bench::{Bench, SCHEMA, Style, busy};
use crate::report::plot::braille;
use crate::report::terminal::{Dress, findings_text};
use crate::samples::busy::Trace;
use crate::samples::firmware::{Log, is_log, parse};
use crate::units::Bytes;
use anyhow::{Context, bail};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// A log of a microcontroller, if the bytes are one.
pub fn read(bytes: &[u8]) -> Option<Log> {
    let text = String::from_utf8_lossy(bytes);
    if is_log(bytes) {
        return Some(parse(&text));
    }
    let trace = Trace::parse(&text)?;
    let notes = if trace.damaged > 0 { vec![format!("{} lines are damaged and were left out", trace.damaged)] } else { vec![] };
    Some(Log { busy: vec![("none".into(), trace)], notes, ..Log::default() })
}

/// What the busy polls say: rewrites, and what announcing the blocks gains (C24).
fn findings(log: &Log) -> Findings {
    let mut all: Vec<Finding> = vec![];
    for (mode, trace) in &log.busy {
        let mut part = infer_trace(trace);
        part.iter_mut().for_each(|f| f.from.push(if mode == "none" { "busy trace".into() } else { format!("busy trace with {mode}") }));
        all.extend(part);
    }
    for (mode, q) in [("cmd23", Quantity::PreDefinedGain), ("acmd23", Quantity::PreEraseGain)] {
        all.extend(gain(log, mode, q));
    }
    combine(&all)
}

/// Busy polls a transaction of the same size with and without an announcement.
fn gain(log: &Log, mode: &str, q: Quantity) -> Option<Finding> {
    let with = log.busy.iter().find(|b| b.0 == mode)?;
    let blocks = with.1.transactions.first()?.data.len();
    let sums = |t: &Trace| -> Vec<f64> {
        let all = t.transactions.iter().filter(|t| t.data.len() == blocks);
        all.map(|t| t.data.iter().chain(&t.stop).sum::<u64>() as f64).collect()
    };
    let none = log.busy.iter().find(|b| b.0 == "none").map(|b| sums(&b.1)).unwrap_or_default();
    let with = sums(&with.1);
    if none.len() < 16 || with.len() < 16 {
        return Some(Finding::undecided(
            q,
            format!("{} transactions of {blocks} blocks with {mode} and {} without; 16 of each are needed", with.len(), none.len()),
        ));
    }
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    let error = |x: &[f64]| {
        (x.iter().map(|v| (v - mean(x)).powi(2)).sum::<f64>() / x.len() as f64 / (x.len() - 1) as f64).sqrt() / mean(x).max(1e-9)
    };
    let (ratio, off) = (mean(&none) / mean(&with).max(1.0), (error(&none).powi(2) + error(&with).powi(2)).sqrt());
    let text = format!(
        "{blocks} blocks: {:.0} polls a transaction without {mode} (median {:.0}), {:.0} with it (median {:.0})",
        mean(&none),
        median(&none),
        mean(&with),
        median(&with)
    );
    if off > 0.3 {
        return Some(Finding::undecided(q, "the busy times of alike transactions differ too much").evidence(text));
    }
    let mut f = Finding::decided(q, ratio, 0.85).evidence(text).caveat("busy time alone; the wire takes the same both times");
    f.interval = Some([ratio * (1.0 - 1.96 * off), ratio * (1.0 + 1.96 * off)]);
    f.from.push("busy trace".into());
    Some(f)
}

/// Prints what follows from a log. `rates`: bytes a second that are to be logged. 3 where it decides nothing and holds no calls.
pub fn run(name: &str, mut log: Log, rates: &[Bytes], json: Option<&PathBuf>) -> anyhow::Result<ExitCode> {
    let findings = findings(&log);
    let host = if log.host.is_empty() { "a microcontroller".to_string() } else { log.host.clone() };
    let mut benches: Vec<Bench> = vec![];
    for p in std::mem::take(&mut log.passes) {
        let b = benches.iter_mut().find(|b| b.record == p.record);
        match b {
            Some(b) => b.passes.push(p),
            None => benches.push(Bench {
                target: name.into(),
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
    if benches.iter().all(|b| b.answers.is_empty()) && !rates.is_empty() {
        bail!("{name} holds no calls that write: a buffer for --log cannot be sized");
    }
    let calls = !benches.is_empty();
    let value = serde_json::json!({
        "schema": SCHEMA,
        "state": crate::device::CardState::Unknown,
        "benches": benches.iter().map(Bench::json).collect::<Vec<_>>(),
        "findings": findings,
        "advice": advice(&findings),
        "warnings": log.notes,
    });
    let mut out = std::io::stdout();
    match json {
        Some(p) if p.as_os_str() == "-" => writeln!(out, "{value}")?,
        other => {
            if let Some(p) = other {
                std::fs::write(p, format!("{value}\n")).with_context(|| format!("cannot write {}", p.display()))?;
            }
            let dress = Dress { colour: colour(&out), width: width(), ..Dress::default() };
            writeln!(out, "{name}\n")?;
            for b in &benches {
                writeln!(out, "{}", b.text(Style { width: width(), plots: true, sdfat: false }))?;
            }
            for (_, t) in &log.busy {
                let lines = braille(&busy(t), width().min(100), 8);
                writeln!(out, "{}\n", lines.join("\n"))?;
            }
            if log.busy.is_empty() {
                log.notes.iter().try_for_each(|n| writeln!(out, "note: {n}"))?;
            } else {
                write!(out, "{}", findings_text(&findings, &advice(&findings), &log.notes, dress))?;
            }
        }
    }
    Ok(if calls { ExitCode::SUCCESS } else { super::infer::verdict(&findings) })
}
