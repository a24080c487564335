//! Lots beside each other: a column a lot, a line a figure.

use super::super::{UNDECIDED, width};
use crate::compare::permutation;
use crate::finding::Quantity;
use crate::survey::{Row, Survey, chart, site};
use crate::units::three;
use anyhow::bail;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// A value of a card and how it is shown.
type Value = (f64, String);

/// Where a figure stands: findings first, in their order; then what was paid, then rates, those of one kind by their size. Its name and host.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Order {
    place: usize,
    kind: String,
    size: u64,
    name: String,
    host: String,
}

/// Differences of rates below this are not worth a figure.
const ALIKE: f64 = 0.005;

/// A lot differs from the first one where chance alone would do as much less often than this.
const DIFFERS: f64 = 0.05;

/// Prints the table.
///
/// # Errors
/// No card of these has a lot.
pub(super) fn by_lot(s: &mut Survey, conditions: &[String], html: Option<&Path>, more: Vec<String>) -> anyhow::Result<ExitCode> {
    let (rows, _) = s.list(conditions, None, false)?;
    let facts = s.facts()?;
    let mut lots: Vec<&str> = rows.iter().map(|r| r.lot.as_str()).filter(|l| !l.is_empty()).collect();
    lots.sort_unstable();
    lots.dedup();
    if lots.is_empty() {
        bail!("no card has a lot; `survey add --lot NAME` gives it one");
    }
    let of = |lot: &str| rows.iter().filter(move |r| r.lot == lot).collect::<Vec<&Row>>();
    let mut table: Vec<(String, Vec<String>)> = vec![
        ("lot".into(), lots.iter().map(|l| l.to_string()).collect()),
        ("cards".into(), lots.iter().map(|l| of(l).len().to_string()).collect()),
    ];
    let counted = |lot: &&str, is: &dyn Fn(&Row) -> Option<bool>| {
        let known: Vec<bool> = of(lot).into_iter().filter_map(is).collect();
        match known.len() {
            0 => "not tested".to_string(),
            n => format!("{} of {n}", known.iter().filter(|yes| **yes).count()),
        }
    };
    table.push(("counterfeit".into(), lots.iter().map(|l| counted(l, &|r| r.counterfeit)).collect()));
    if rows.iter().any(|r| r.failing.is_some() && !r.lot.is_empty()) {
        table.push(("failing".into(), lots.iter().map(|l| counted(l, &|r| r.failing)).collect()));
    }

    let mut figures: BTreeMap<Order, Vec<Vec<Value>>> = BTreeMap::new();
    for r in &rows {
        let Some(lot) = lots.iter().position(|l| *l == r.lot) else { continue };
        for f in facts.get(&r.id).into_iter().flatten().filter(|f| !f.flagged && !f.bound && f.confidence >= 0.75) {
            let here = figures.entry(order(&f.key, r)).or_insert_with(|| vec![vec![]; lots.len()]);
            here[lot].push((f.value, f.shown.clone()));
        }
    }
    figures.retain(|_, of| of.iter().filter(|v| !v.is_empty()).count() > 1);
    let mut differ = false;
    let mut hosts: Vec<&str> = figures.keys().map(|o| o.host.as_str()).filter(|h| !h.is_empty()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    for (o, of) in &figures {
        let on = if o.host.is_empty() || hosts.len() == 1 { String::new() } else { format!(", {}", o.host) };
        let rate = o.place >= Quantity::ALL.len();
        let first = of.iter().find(|v| !v.is_empty());
        let cell = |values: &Vec<Value>| {
            let base = first.filter(|f| !std::ptr::eq(*f, values));
            let star = base.is_some_and(|b| apart(b, values));
            (self::cell(values, base.filter(|_| rate)) + if star { " *" } else { "" }, star)
        };
        let cells: Vec<(String, bool)> = of.iter().map(cell).collect();
        differ |= cells.iter().any(|c| c.1);
        table.push((format!("{}{on}", o.name), cells.into_iter().map(|c| c.0).collect()));
    }
    let mut notes = vec![];
    if figures.is_empty() {
        notes.push("no figure that two lots have".to_string());
    } else {
        notes.extend(hosts.first().filter(|_| hosts.len() == 1).map(|host| format!("rates: {host}")));
        notes.push("medians (lowest to highest of the lot), and how many times that of the first lot".into());
        if differ {
            notes.push(format!("* differs from the first lot: p below {DIFFERS} (permutation test, each figure by itself)"));
        }
    }
    if let Some(to) = html {
        let all = table.len();
        let rates = all - sheet(&mut table);
        if rates > 0 {
            notes.push(format!("{rates} more rates: nandscope survey compare --by lot"));
        }
        notes.extend(more);
        if super::super::write_text(to, &site::lots(&table, &notes))? {
            return Ok(ExitCode::SUCCESS);
        }
    } else {
        let mut out = super::super::stdout();
        writeln!(out, "{}", columns(&table, width()))?;
        notes.iter().try_for_each(|n| writeln!(out, "{n}"))?;
        if !figures.is_empty() {
            writeln!(out, "two lots in full: nandscope survey compare lot={} --against lot=...", lots[0])?;
        }
    }
    Ok(if figures.is_empty() { ExitCode::from(UNDECIDED) } else { ExitCode::SUCCESS })
}

/// Lines of a page of one sheet.
const SHEET: usize = 40;

/// Cuts the table to one sheet: of the lines past it those stay in which lots differ, as long as there is room. Returns its length.
fn sheet(table: &mut Vec<(String, Vec<String>)>) -> usize {
    let differs = |r: &(String, Vec<String>)| r.1.iter().any(|c| c.ends_with('*'));
    while table.len() > SHEET {
        let last = table.iter().rposition(|r| !differs(r)).unwrap_or(table.len() - 1);
        table.remove(last);
    }
    table.len()
}

fn words(parts: &[&str]) -> String {
    parts.join(" ").replace(" one au", ", one AU").replace(" two aus", ", two AUs")
}

/// A rate is of its host as well as of the card.
fn order(key: &str, r: &Row) -> Order {
    let of_card = |place: usize, name: String| Order { place, kind: name.clone(), size: 0, name, host: String::new() };
    if let Some(i) = Quantity::ALL.iter().position(|q| q.row().key == key) {
        return of_card(i, Quantity::ALL[i].row().title.to_string());
    }
    let n = Quantity::ALL.len();
    if let Some(currency) = key.strip_prefix("price-") {
        return of_card(n, format!("price, {}", currency.to_uppercase()));
    }
    let parts: Vec<&str> = key.split('-').collect();
    let size = |w: &[&str]| {
        let unit = [("b", 1), ("kib", 1 << 10), ("mib", 1 << 20)].into_iter().find(|u| u.0 == w[1])?.1;
        w[0].parse::<u64>().ok().map(|k| k * unit)
    };
    let at = parts.windows(2).position(|w| size(w).is_some());
    let kind = at.map_or(key.to_string(), |i| [&parts[..i], &parts[i + 2..]].concat().join("-"));
    let size = at.and_then(|i| size(&parts[i..i + 2])).unwrap_or(0);
    let name = match at {
        Some(i) => {
            let unit = match parts[i + 1] {
                "b" => "B",
                "kib" => "KiB",
                _ => "MiB",
            };
            format!("{}, {} {unit} {}", words(&parts[..i]), parts[i], words(&parts[i + 2..])).trim_end().to_string()
        }
        None => words(&parts),
    };
    Order { place: n + 1, kind, size, name, host: chart::host_name(&r.host).to_string() }
}

/// Median, range where there is one, and the ratio to the first lot's median.
fn cell(values: &[Value], base: Option<&Vec<Value>>) -> String {
    let mut v: Vec<&Value> = values.iter().collect();
    nandscope_stats::ascending(&mut v, |a| a.0);
    let [low, .., high] = v[..] else { return v.first().map_or("-".into(), |one| with_ratio(one, base)) };
    let text = with_ratio(middle(values), base);
    let split = |shown: &str| shown.split_once(' ').map_or((shown.to_string(), String::new()), |(n, u)| (n.to_string(), u.to_string()));
    let (low, high) = (split(&low.1), split(&high.1));
    match (low == high, low.1 == high.1) {
        (true, _) => text,
        (_, true) => format!("{text} ({} to {})", low.0, high.0),
        _ => format!("{text} ({} {} to {} {})", low.0, low.1, high.0, high.1),
    }
}

/// Of an even number the lower of the two in the middle: a value that some card has.
fn middle(values: &[Value]) -> &Value {
    let mut v: Vec<&Value> = values.iter().collect();
    nandscope_stats::ascending(&mut v, |a| a.0);
    v[(v.len() - 1) / 2]
}

fn with_ratio(one: &Value, base: Option<&Vec<Value>>) -> String {
    let ratio = base.map_or(1.0, |b| one.0 / middle(b).0);
    if ratio.is_finite() && (ratio - 1.0).abs() > ALIKE { format!("{} x{}", one.1, three(ratio)) } else { one.1.clone() }
}

fn apart(a: &[Value], b: &[Value]) -> bool {
    let numbers = |v: &[Value]| v.iter().map(|x| x.0).collect::<Vec<f64>>();
    a.len() > 1 && b.len() > 1 && permutation(&numbers(a), &numbers(b)).0 < DIFFERS
}

/// The table in as many parts, one below the other, as the width asks for.
fn columns(table: &[(String, Vec<String>)], width: usize) -> String {
    let names = table.iter().map(|r| r.0.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..table[0].1.len()).map(|i| table.iter().map(|r| r.1[i].chars().count()).max().unwrap_or(0)).collect();
    let (mut out, mut from) = (String::new(), 0);
    while from < widths.len() {
        let (mut to, mut used) = (from, names);
        while to < widths.len() && (to == from || used + 2 + widths[to] <= width) {
            used += 2 + widths[to];
            to += 1;
        }
        if from > 0 {
            out.push('\n');
        }
        for (name, cells) in table {
            let mut line = format!("{name:<names$}");
            (from..to).for_each(|i| line += &format!("  {:<w$}", cells[i], w = widths[i]));
            out += line.trim_end();
            out.push('\n');
        }
        from = to;
    }
    out
}
