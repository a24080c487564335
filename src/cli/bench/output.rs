//! What `bench` writes beside its text: tables, files, pages.

use super::BenchArgs;
use crate::compare::bench::{classes, rows, text};
use crate::infer::figure::Figure;
use crate::report::bench::{self as form, Bench, SCHEMA, advice, busy, histogram, prices, summary, timeline};
use crate::report::{html, svg};
use crate::samples::busy::Trace;
use crate::units::{Bytes, rate};
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn dash(p: &Path) -> bool {
    p.as_os_str() == "-"
}

/// Standard output belongs to one of the files.
pub fn taken(a: &BenchArgs) -> bool {
    [&a.busy, &a.html].into_iter().flatten().any(|p| dash(p)) || a.out.is_stdout()
}

fn write_to(to: &Path, content: &str) -> anyhow::Result<()> {
    crate::cli::write_text(to, content).map(drop)
}

/// Everything measured, as `--json` writes it. `first`: how many of the targets are of the first class.
fn value(a: &BenchArgs, all: &[Bench]) -> Value {
    let advice: Vec<Value> = advice(all).into_iter().map(|(target, lines)| json!({ "target": target, "lines": lines })).collect();
    let mut v = json!({ "schema": SCHEMA, "benches": all.iter().map(form::json).collect::<Vec<_>>(), "advice": advice });
    if !a.against.is_empty() {
        let rows = rows(&v).unwrap_or_default();
        let (second, first): (Vec<_>, Vec<_>) = rows.into_iter().partition(|r| a.against.contains(&r.card));
        let ratios = classes(&first, &second);
        v["classes"] = json!({ "against": a.against, "ratios": ratios, "text": text(&ratios).lines().collect::<Vec<_>>() });
    }
    v
}

/// Tables, advice and files behind the texts of the single runs.
pub fn save(a: &BenchArgs, all: &[Bench], trace: &Trace) -> anyhow::Result<()> {
    if let Some(f) = &a.busy {
        if trace.transactions.is_empty() {
            bail!("only a simulated card on a microcontroller shows how long it is busy; use sim:NAME?host=avr-16mhz-spi");
        }
        write_to(f, &trace.print())?;
    }
    if let Some(dir) = &a.svg {
        pictures(dir, all, trace)?;
    }
    let v = value(a, all);
    if !taken(a) {
        if a.chunks.is_some() {
            put!("{}", chunk_table(all));
        } else if all.len() > 1 {
            put!("\n{}", summary(all));
        } else {
            put!("{}", prices(all));
        }
        if let Some(lines) = v["classes"]["text"].as_array() {
            let both = |t: &[String]| t.join(", ");
            say!("\nFirst class: {}; second: {}", both(&a.targets), both(&a.against));
            lines.iter().filter_map(Value::as_str).for_each(|l| say!("{l}"));
        }
        let advice = if a.chunks.is_some() { vec![] } else { advice(all) };
        for (target, lines) in &advice {
            say!("\nWhat to do{}", if advice.len() > 1 { format!(" with {target}") } else { String::new() });
            lines.iter().for_each(|l| say!("  - {l}"));
        }
    }
    if let Some(f) = &a.html {
        write_to(f, &html::bench_page(&v).map_err(anyhow::Error::msg)?)?;
    }
    a.out.write(&v)?;
    Ok(())
}

fn pictures(dir: &PathBuf, all: &[Bench], trace: &Trace) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let put = |name: String, f: &Figure| write_to(&dir.join(name), &svg::file(f));
    for b in all {
        let card: String = b.target.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        for p in &b.passes {
            let head = format!("{card}-{}-{}", b.record, if p.write { "write" } else { "read" });
            put(format!("{head}-histogram.svg"), &histogram(p))?;
            put(format!("{head}-timeline.svg"), &timeline(p))?;
        }
    }
    if !trace.transactions.is_empty() {
        put("busy.svg".into(), &busy(trace))?;
    }
    Ok(())
}

/// Share of the best rate that is enough.
const ENOUGH: f64 = 0.9;

/// Rate against the size of a call for each target, host and way to sync, and the smallest that is enough (C22, C23).
fn chunk_table(all: &[Bench]) -> String {
    let speed = |b: &Bench, write: bool| b.passes.iter().find(|p| p.write == write).map(|p| p.speed());
    let cell = |x: Option<f64>| x.map_or("-".into(), |x| rate(x * 1e3));
    let mut out = String::new();
    let mut seen: Vec<[&str; 3]> = vec![];
    let of = |b: &Bench| [b.target.clone(), b.host.clone(), b.sync.clone()];
    for b in all {
        if seen.contains(&[&b.target, &b.host, &b.sync]) {
            continue;
        }
        seen.push([&b.target, &b.host, &b.sync]);
        let same: Vec<&Bench> = all.iter().filter(|o| of(o) == of(b)).collect();
        let mut rows = vec![["chunk", "write", "read"].map(str::to_string)];
        rows.extend(same.iter().map(|b| [Bytes(b.record).to_string(), cell(speed(b, true)), cell(speed(b, false))]));
        let sync = if all.iter().any(|o| o.sync != b.sync) { format!(", {}", b.sync) } else { String::new() };
        out += &format!("{}, {}{sync}\n", b.target, b.host);
        form::aligned(&rows, 0).lines().for_each(|l| out += &format!("  {l}\n"));
        let best = same.iter().filter_map(|b| speed(b, true)).fold(0.0, f64::max);
        let mut by_size: Vec<&&Bench> = same.iter().filter(|b| speed(b, true).is_some_and(|s| s >= ENOUGH * best)).collect();
        nandscope_stats::sort_by_key(&mut by_size, |b| b.record);
        if let (Some(knee), true) = (by_size.first(), same.len() > 1) {
            let last = same.iter().map(|b| b.record).max() == Some(knee.record);
            out += &format!(
                "  write {} at a time: that gives {:.0} % of the best rate{}\n",
                Bytes(knee.record),
                100.0 * speed(knee, true).unwrap_or(0.0) / best.max(1e-9),
                if last { "; larger calls may give more" } else { "" }
            );
        }
    }
    out
}
