//! What a survey shows on a terminal: lists, lots, charts, one record.

use super::super::UNDECIDED;
use super::super::args::Written;
use super::{ChartArgs, Part};
use crate::samples::metric::Metric;
use crate::survey::record::Record;
use crate::survey::{Row, Survey, chart};
use crate::units::{as_sold, date_text, three};
use anyhow::bail;
use std::io::Write;
use std::process::ExitCode;

/// Cards that a list prints unless more are asked for.
const PAGE: usize = 50;

pub(super) fn list(s: &mut Survey, conditions: &[String], part: &Part) -> anyhow::Result<ExitCode> {
    let most = part.limit.or((!part.all && !part.json.asked()).then_some(PAGE));
    let conditions = part.whose.with(conditions)?;
    // One's own cards, then those that come with the program.
    let mut of = |whose: &str, most: Option<usize>| s.list(&[&conditions[..], &[whose.to_string()]].concat(), most, part.json.asked());
    let (own, own_count) = of("published=no", most)?;
    let (published, published_count) = of("published=yes", most.map(|m| m.saturating_sub(own.len())))?;
    let count = own_count + published_count;
    if part.json.asked() {
        let blocks = s.values("erase_block")?;
        let line = |r: &Row| format!("{}\n", as_json(r, blocks.get(&r.id).map(|b| *b as u64)));
        let lines: String = own.iter().chain(&published).map(line).collect();
        if part.json.put_text(&lines)? {
            return Ok(if count == 0 { ExitCode::from(UNDECIDED) } else { ExitCode::SUCCESS });
        }
    }
    let mut out = std::io::BufWriter::new(super::super::stdout());
    write!(out, "{}", rows(&own, super::super::width()))?;
    if !published.is_empty() {
        writeln!(out, "{}Published, as the program knows them", if own.is_empty() { "" } else { "\n" })?;
        write!(out, "{}", rows(&published, super::super::width()))?;
    }
    let cards = if count == 1 { "card" } else { "cards" };
    let shown = own.len() + published.len();
    match count.saturating_sub(shown) {
        0 => writeln!(out, "{count} {cards}")?,
        more => writeln!(out, "{shown} of {count} {cards}; {more} more with --all, or with --limit N")?,
    }
    if conditions.iter().any(|c| crate::survey::of_benchmark(c)) {
        hosts_of(&mut out, &[own, published].concat())?;
    }
    out.flush()?;
    Ok(if count == 0 { ExitCode::from(UNDECIDED) } else { ExitCode::SUCCESS })
}

/// `block`: bytes of its erase block.
fn as_json(r: &Row, block: Option<u64>) -> serde_json::Value {
    serde_json::json!({ "schema": "nandscope-survey-row/1", "id": r.id, "name": r.name, "maker": r.maker, "kind": r.kind,
        "capacity": r.capacity, "format": r.format, "lot": r.lot, "price": r.price, "host": r.host, "erase_block": r.erase_block,
        "erase_block_bytes": block,
        "open_aus_linear": r.open_linear, "open_aus_random": r.open_random, "summary": r.summary, "flags": r.flags,
        "counterfeit": r.counterfeit, "failing": r.failing, "real_capacity": r.real })
}

/// Columns of a list; the second, the name, takes the room that the others leave.
const COLUMNS: [&str; 8] = ["ID", "NAME", "LOT", "PRICE", "SIZE", "ERASE", "OPEN", "NOTE"];

/// Characters of a name at least.
const NAME: usize = 14;

/// Rows as a table of this width: columns that none of the cards fills are left out, and a long name is cut.
fn rows(all: &[Row], width: usize) -> String {
    if all.is_empty() {
        return String::new();
    }
    let cells: Vec<[String; 8]> = all.iter().map(line).collect();
    let mut widths = [0; 8];
    for (c, w) in widths.iter_mut().enumerate() {
        *w = cells.iter().map(|r| r[c].chars().count()).max().unwrap_or(0);
        *w = if *w == 0 { 0 } else { (*w).max(COLUMNS[c].len()) };
    }
    let others: usize = widths.iter().enumerate().filter(|(c, w)| *c != 1 && **w > 0).map(|(_, w)| w + 1).sum();
    widths[1] = widths[1].min(width.saturating_sub(others).max(NAME));
    let heads = COLUMNS.map(str::to_string);
    let mut out = String::new();
    for r in std::iter::once(&heads).chain(&cells) {
        let text: Vec<String> = r.iter().zip(widths).filter(|(_, w)| *w > 0).map(|(t, w)| format!("{:<w$}", cut(t, w))).collect();
        out += text.join(" ").trim_end();
        out.push('\n');
    }
    out
}

/// A size as on the box: `32.0 GB`.
fn sold(bytes: u64) -> String {
    as_sold(bytes).split(" (").next().unwrap_or_default().to_string()
}

fn line(r: &Row) -> [String; 8] {
    let fake = r.counterfeit == Some(true);
    let note = match (fake, r.flags > 0, r.bare) {
        (true, _, _) => r.real.map_or("COUNTERFEIT".into(), |real| format!("COUNTERFEIT: {}", sold(real))),
        _ if r.failing == Some(true) => "FAILING".into(),
        (_, true, _) => "flagged".into(),
        (_, _, true) => "no figures".into(),
        _ => String::new(),
    };
    let open = [&r.open_linear, &r.open_random].map(|t| if t.is_empty() { "-" } else { t.as_str() }).join("/");
    [
        r.id.clone(),
        crate::shell::one_line(&r.name),
        r.lot.clone(),
        r.price.clone(),
        r.capacity.map_or(String::new(), sold),
        r.erase_block.clone(),
        if open == "-/-" { String::new() } else { open },
        note,
    ]
}

/// That a figure was measured on several hosts: it is of the host as well as of the card.
fn hosts_of(out: &mut impl Write, rows: &[Row]) -> std::io::Result<()> {
    let mut hosts: Vec<(&str, usize)> = vec![];
    for r in rows {
        match hosts.iter_mut().find(|h| h.0 == r.host) {
            Some(h) => h.1 += 1,
            None => hosts.push((&r.host, 1)),
        }
    }
    if hosts.len() < 2 {
        return Ok(());
    }
    let all: Vec<String> = hosts.iter().map(|(h, n)| format!("{} ({n})", chart::host_name(h))).collect();
    writeln!(out, "measured on {} hosts, which are not comparable: {}; choose one with host=...", hosts.len(), all.join(", "))
}

pub(super) fn draw(s: &mut Survey, a: &ChartArgs) -> anyhow::Result<ExitCode> {
    let mut out = super::super::page();
    let keys = chart::keys(s)?;
    if a.figure.as_deref() == Some("list") {
        for (key, n) in &keys {
            writeln!(out, "{key:<48} {n} cards")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let first = || keys.iter().find(|k| k.0.contains("write")).or(keys.first()).map(|k| k.0.clone());
    let Some(key) = a.figure.clone().or_else(first) else { bail!("no rate is known of three cards or more") };
    let charts = chart::charts(s, &key, &a.whose.with(&a.conditions)?, a.host.as_deref())?;
    let drawn = charts.iter().filter(|c| !c.points.is_empty()).count();
    if let (Some(to), Some(c)) = (&a.svg, charts.first().filter(|c| !c.points.is_empty())) {
        let text = crate::report::svg::file(&c.figure());
        out.flush()?;
        super::super::write_text(to, &text)?;
        if drawn > 1 {
            tell!("nandscope: the picture is of {}; choose another of {drawn} hosts with --host", chart::host_name(&c.host));
        }
        if to.as_os_str() == "-" {
            return Ok(ExitCode::SUCCESS);
        }
    }
    for (i, c) in charts.iter().enumerate() {
        if i > 0 {
            writeln!(out)?;
        }
        one_host(&mut out, c)?;
    }
    if charts.is_empty() {
        writeln!(out, "0 cards")?;
    }
    if charts.len() > 1 {
        writeln!(out, "\n{} hosts: each by itself, as a rate is of the host as well as of the card", charts.len())?;
    }
    let shown = charts.iter().any(|c| c.trend().is_some_and(|t| t.p <= 0.05));
    Ok(if shown { ExitCode::SUCCESS } else { ExitCode::from(UNDECIDED) })
}

/// Cards that a chart lists one by one at most.
const LISTED: usize = 24;

/// What a chart of one host shows, says, and leaves out.
fn one_host(out: &mut impl Write, c: &chart::Chart) -> std::io::Result<()> {
    let f = c.figure();
    if c.points.is_empty() {
        writeln!(out, "{}", f.title)?;
    } else {
        for l in crate::report::plot::braille(&f, super::super::width().min(100), 10) {
            writeln!(out, "{l}")?;
        }
    }
    let all: Vec<&chart::Point> = c.points.iter().chain(&c.unsized_cards).filter(|p| !p.flagged).collect();
    if (1..=LISTED).contains(&all.len()) {
        let named = |p: &chart::Point| {
            let model = if p.simulated && !p.name.starts_with("sim:") { " (simulated)" } else { "" };
            let several = if p.entries > 1 { format!(" (median of {})", p.entries) } else { String::new() };
            format!("{}{model}{several}", cut(&p.name, 52usize.saturating_sub(model.len() + several.len())))
        };
        writeln!(out, "\n{:<54}{:>10}  {:>12}", "CARD", "SIZE", "RATE")?;
        for p in &all {
            let size = if p.capacity > 0 { sold(p.capacity) } else { "-".into() };
            writeln!(out, "{:<54}{size:>10}  {:>12}", named(p), format!("{} {}", three(p.value), c.unit))?;
        }
        let priced: Vec<_> = all.iter().filter_map(|p| Some((p, p.price.as_ref()?, chart::Chart::per_price(p)?))).collect();
        if !priced.is_empty() {
            writeln!(out, "\n{:<48}{:>12}  {:>16}", "CARD", "PRICE", "RATE PER PRICE")?;
        }
        for (p, (price, currency), (rate, code)) in priced {
            let rate = format!("{} {}/{code}", three(rate), c.unit);
            writeln!(out, "{:<48}{:>12}  {rate:>16}", cut(&p.name, 46), format!("{price} {currency}"))?;
        }
    }
    if !c.makers().is_empty() {
        writeln!(out, "\n{:<24}{:>6}  {:>12}  {:>12}  {:>12}", "MAKER", "CARDS", "MEDIAN", "LOWEST", "HIGHEST")?;
    }
    for m in c.makers() {
        let v = m.values.map(|v| format!("{} {}", three(v), c.unit));
        let name = if m.name.is_empty() { "not known" } else { m.name.as_str() };
        writeln!(out, "{name:<24}{:>6}  {:>12}  {:>12}  {:>12}", m.cards, v[0], v[1], v[2])?;
    }
    for p in c.points.iter().chain(&c.unsized_cards).filter(|p| p.flagged) {
        writeln!(out, "left out: {} ({} {}), which contradicts another figure of its entry", p.name, three(p.value), c.unit)?;
    }
    for p in c.unsized_cards.iter().filter(|p| !p.flagged) {
        writeln!(out, "without a size: {} ({} {}), not in the chart; add it with --size", p.name, three(p.value), c.unit)?;
    }
    writeln!(out, "\n{}: {}", chart::host_name(&c.host), c.says())
}

fn cut(t: &str, n: usize) -> String {
    if t.chars().count() > n { format!("{}…", t.chars().take(n.max(1) - 1).collect::<String>()) } else { t.to_string() }
}

pub(super) fn show(r: &Record, to: &Written) -> anyhow::Result<ExitCode> {
    if to.put(r)? {
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = super::super::page();
    let (c, s) = (&r.card, &r.source);
    if let Some(c) = r.counterfeit() {
        writeln!(out, "{}: {}\n", c.word().to_uppercase(), c.sizes())?;
    } else if r.failing() == Some(true) {
        writeln!(out, "FAILING\n")?;
    }
    writeln!(out, "{}  {}", r.id, c.name)?;
    let pairs = [
        ("maker", c.maker.clone()),
        ("part number", c.part.clone()),
        ("identity", c.ids.clone()),
        ("kind", c.kind.clone()),
        ("size", c.capacity.map(as_sold)),
        ("made", c.made.clone()),
        ("price", c.price.clone()),
        ("lot", c.lot.clone()),
        ("from", Some(format!("{}, {}", s.format, s.file))),
        ("measured with", s.tool.clone()),
        ("measured", s.measured.map(date_text)),
        ("host", s.host.clone()),
        ("seed", s.seed.map(|n| n.to_string())),
        ("card is", s.simulated.then(|| "simulated".to_string())),
        ("published", s.citation.clone()),
        ("address", s.url.clone()),
        ("added", (r.added > 0).then(|| date_text(r.added))),
        ("sha256", (!s.sha256.is_empty()).then(|| s.sha256.clone())),
    ];
    for (k, v) in pairs.iter().filter_map(|(k, v)| Some((k, v.as_ref()?))) {
        writeln!(out, "  {k:<15}{v}")?;
    }
    if !r.findings.0.is_empty() {
        use crate::report::terminal::{Dress, findings_text};
        writeln!(out, "\n{}", findings_text(&r.findings, &[], &[], Dress { details: false, ..Dress::default() }).trim_end())?;
    }
    if !r.metrics.is_empty() {
        writeln!(out)?;
    }
    metrics(&mut out, &r.metrics, super::super::width())?;
    for (title, lines) in [("Flags", &r.flags), ("Notes", &r.notes)] {
        if !lines.is_empty() {
            writeln!(out, "\n{title}")?;
        }
        for l in lines {
            writeln!(out, "  - {l}")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Figures, a line each: in columns, or, where one is wider than `width`, below what they are of.
fn metrics(out: &mut impl Write, all: &[Metric], width: usize) -> std::io::Result<()> {
    let figure = |m: &Metric| {
        let passes = if m.passes.is_empty() { String::new() } else { format!(" ({} of {} passes)", m.over.word(), m.passes.len()) };
        format!("{} {}{passes}", three(m.value), m.unit)
    };
    let widest = |of: fn(&Metric) -> &str| all.iter().map(|m| of(m).chars().count()).max().unwrap_or(0);
    let (name, conditions) = (widest(|m| &m.name), widest(|m| &m.conditions));
    if all.iter().all(|m| name + conditions + 4 + figure(m).chars().count() <= width) {
        return all.iter().try_for_each(|m| writeln!(out, "{:<name$}  {:<conditions$}  {}", m.name, m.conditions, figure(m)));
    }
    for of in all.chunk_by(|a, b| a.name == b.name) {
        writeln!(out, "{}", of[0].name)?;
        for m in of {
            writeln!(out, "  {}{}{}", m.conditions, if m.conditions.is_empty() { "" } else { ": " }, figure(m))?;
        }
    }
    Ok(())
}
