//! What was concluded of logs, as text: for `infer` of the logs, and for `report` of what `infer --json` wrote.

use super::identify::headline;
use super::{COUNTERFEIT, FAILING, UNDECIDED, colour, width};
use crate::infer::tables::bench::Figure;
use crate::report::inferred::Inferred;
use crate::report::terminal::{Dress, findings_text};
use crate::samples::metric::Metric;
use crate::units::{Bytes, three};
use std::io::Write;
use std::process::ExitCode;

/// Prints all cards.
pub fn print(all: &Inferred) -> std::io::Result<()> {
    let mut out = super::page();
    let dress = Dress { colour: colour(&std::io::stdout()), width: width(), ..Dress::default() };
    writeln!(out, "{}", all.logs.join(", "))?;
    for (i, c) in all.cards.iter().enumerate() {
        if all.cards.len() > 1 {
            writeln!(out, "\ncard {} of {}: {} ({})", i + 1, all.cards.len(), all.name(c), c.tests)?;
        }
        if let Some(d) = &c.declared {
            let au = d.declared_au.as_ref().map(|a| format!("; AU {} ({})", Bytes(a.bytes), a.source)).unwrap_or_default();
            writeln!(out, "declares: {}{au}", headline(d))?;
        }
        let found = findings_text(&c.findings, &c.advice, &c.warnings, dress);
        writeln!(out, "{}{found}", if found.trim().is_empty() { "" } else { "\n" })?;
        if !c.records.is_empty() {
            writeln!(out, "Record benchmarks as printed\n{}", figure_table(&c.records))?;
        }
        if !c.figures.is_empty() || !c.flags.is_empty() {
            writeln!(out, "Figures as printed")?;
            c.flags.iter().try_for_each(|f| writeln!(out, "  {f}"))?;
            let wide = c.figures.iter().map(|m| m.name.chars().count()).max().unwrap_or(0);
            let shown: Vec<String> = c.figures.iter().map(shown).collect();
            let digits = shown.iter().map(String::len).max().unwrap_or(0);
            let unit = c.figures.iter().map(|m| m.unit.chars().count()).max().unwrap_or(0);
            for (m, value) in c.figures.iter().zip(&shown) {
                writeln!(out, "  {:<wide$}  {value:>digits$} {:<unit$}  {}", m.name, m.unit, m.conditions)?;
            }
            writeln!(out)?;
        }
        if !c.before_and_after.is_empty() {
            writeln!(out, "The same test before and after a change")?;
            c.before_and_after.iter().try_for_each(|s| writeln!(out, "{}", s.text()))?;
        }
    }
    Ok(())
}

/// Counts are whole numbers, and small rates keep two digits.
fn shown(m: &Metric) -> String {
    let counted = !m.more_is_better() && !["%", "ms", "µs"].contains(&m.unit.as_str());
    match m.value {
        v if counted && v.fract() == 0.0 => format!("{v:.0}"),
        v if v > 0.0 && v < 0.1 => format!("{v:.*}", (1.0 - v.log10().floor()).min(9.0) as usize),
        v => three(v),
    }
}

/// 6 where a figure says that the card is counterfeit, 7 where one says that it lost data, 0 where anything was decided, 3 where nothing was.
pub fn verdict(all: &Inferred) -> ExitCode {
    let any = all.cards.iter().flat_map(|c| &c.findings.0).any(|f| f.value.is_some() || f.at_least.is_some());
    match () {
        () if all.is_counterfeit() => ExitCode::from(COUNTERFEIT),
        () if all.is_failing() => ExitCode::from(FAILING),
        () if any => ExitCode::SUCCESS,
        () => ExitCode::from(UNDECIDED),
    }
}

/// One row a host, record size and direction: as they were printed, nothing pooled but passes of the same kind.
fn figure_table(all: &[Figure]) -> String {
    let us = |x: f64| if x.is_finite() { format!("{x:.0} µs") } else { "-".into() };
    let mut rows = vec![["record", "host", "", "kB/s", "longest", "shortest", "average", "passes"].map(String::from)];
    for f in all {
        rows.push([
            f.record.map_or("?".into(), |r| format!("{r} B")),
            f.host.clone().unwrap_or_else(|| "-".into()),
            if f.write { "write" } else { "read" }.into(),
            format!("{:.2}", f.speed),
            us(f.max),
            us(f.min),
            us(f.avg),
            f.passes.to_string(),
        ]);
    }
    let wide: Vec<usize> = (0..8).map(|i| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0)).collect();
    let line = |r: &[String; 8]| {
        // Words to the left, numbers to the right.
        let cells = r.iter().zip(&wide).enumerate().map(|(i, (c, w))| {
            let pad = " ".repeat(w - c.chars().count());
            if matches!(i, 1 | 2) { format!("{c}{pad}") } else { format!("{pad}{c}") }
        });
        format!("  {}\n", cells.collect::<Vec<_>>().join("  ")).replace(" \n", "\n")
    };
    rows.iter().map(line).collect()
}
