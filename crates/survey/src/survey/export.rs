//! The survey as a table for other programs: CSV, JSON lines, and a wiki table for a page such as the Linaro flash-card survey.

use super::db::Val;
use super::{Fact, Result, Row, Survey};
use crate::advise::price;
use crate::finding::Quantity;
use crate::units::Bytes;
use std::collections::HashMap;
use std::fmt::Write;

/// RFC 4180; a text that a spreadsheet would run as a formula gets an apostrophe.
fn csv_cell(text: &str) -> String {
    let text = if text.starts_with(['=', '+', '@']) || (text.starts_with('-') && text.parse::<f64>().is_err()) {
        format!("'{text}")
    } else {
        text.to_string()
    };
    if text.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// One line a card; for every quantity its value, how sure that is, and what kind of value it is: "decided", "at least" (a lower
/// bound), "undecided" (tried, without an answer), or nothing (not tried). Prices come as amount and currency.
///
/// # Errors
/// The database.
pub fn csv(s: &mut Survey, rows: &[Row], with_serial: bool) -> Result<String> {
    let facts = s.facts()?;
    let file = if with_serial { "file" } else { "file_shared" };
    let more: HashMap<String, Vec<Val>> = s
        .query(&format!("SELECT id, part, price, host, {file}, tool, seed, measured, simulated, undecided FROM cards"), &[])?
        .into_iter()
        .map(|r| (r[0].text(), r))
        .collect();
    let mut out = String::from(
        "id,name,maker,kind,part,lot,price,currency,host,file,tool,seed,measured,simulated,capacity_declared,capacity_real,counterfeit,format,flags",
    );
    for q in Quantity::ALL {
        let _ = write!(out, ",{0},{0}_confidence,{0}_state", column(q));
    }
    out.push_str(",figures\r\n");
    for r in rows {
        let own = more.get(&r.id).map_or(&[][..], Vec::as_slice);
        let text = |i: usize| own.get(i).map(Val::text).unwrap_or_default();
        let (amount, code) = price::parse(&text(2)).map_or((text(2), String::new()), |(v, c)| (v.to_string(), c));
        let capacity = r.capacity.map_or(String::new(), |c| c.to_string());
        let simulated = if own.get(8).and_then(Val::int) == Some(1) { "1" } else { "0" }.to_string();
        let cells = [
            r.id.clone(),
            r.name.clone(),
            r.maker.clone(),
            r.kind.clone(),
            text(1),
            r.lot.clone(),
            amount,
            code,
            text(3),
            text(4),
            text(5),
            text(6),
            text(7),
            simulated,
            capacity,
            r.real.map_or(String::new(), |c| c.to_string()),
            r.counterfeit.map_or("", |c| if c { "yes" } else { "no" }).to_string(),
            r.format.clone(),
            r.flags.to_string(),
        ]
        .map(|c| csv_cell(&c));
        out.push_str(&cells.join(","));
        let undecided = text(9);
        let own = facts.get(&r.id).map_or(&[][..], Vec::as_slice);
        for q in Quantity::ALL {
            match own.iter().find(|f| f.key == q.key()) {
                Some(f) => {
                    let _ = write!(out, ",{},{},{}", f.value, f.confidence, if f.bound { "at least" } else { "decided" });
                }
                None if undecided.split(' ').any(|k| k == q.key()) => out.push_str(",,,undecided"),
                None => out.push_str(",,,"),
            }
        }
        let benchmark = |f: &&Fact| Quantity::ALL.iter().all(|q| q.key() != f.key) && !f.key.starts_with("price-");
        let figures: Vec<String> =
            own.iter().filter(benchmark).map(|f| format!("{}={}{}", f.key, f.shown, if f.flagged { " (flagged)" } else { "" })).collect();
        let _ = write!(out, ",{}\r\n", csv_cell(&figures.join("; ")));
    }
    Ok(out)
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    Text,
    Whole,
    Real,
}

/// A table whose columns hold one kind of thing each; an empty cell is one without a value.
pub struct Table {
    pub columns: Vec<(&'static str, Holds)>,
    pub rows: Vec<Vec<String>>,
}

impl Table {
    fn csv(&self) -> String {
        let mut out = self.columns.iter().map(|c| c.0).collect::<Vec<_>>().join(",") + "\r\n";
        for r in &self.rows {
            let _ = write!(out, "{}\r\n", r.iter().map(|c| csv_cell(c)).collect::<Vec<_>>().join(","));
        }
        out
    }
}

/// One line a value: what it is of, its number, the ends of its interval, its unit. A column holds one kind of thing, as tables for statistics
/// want it. Rates of benchmarks have their conditions; a choice has its word in `shown`.
///
/// # Errors
/// The database, or a file that was damaged in the meantime.
pub fn long(s: &mut Survey, rows: &[Row], with_serial: bool) -> Result<String> {
    Ok(values(s, rows, with_serial)?.csv())
}

/// The same as a table.
///
/// # Errors
/// As `long`.
pub fn values(s: &mut Survey, rows: &[Row], with_serial: bool) -> Result<Table> {
    use Holds::{Real, Text, Whole};
    let columns = vec![
        ("id", Text),
        ("name", Text),
        ("maker", Text),
        ("kind", Text),
        ("lot", Text),
        ("price", Real),
        ("currency", Text),
        ("host", Text),
        ("simulated", Whole),
        ("seed", Whole),
        ("capacity_declared", Whole),
        ("counterfeit", Text),
        ("quantity", Text),
        ("conditions", Text),
        ("value", Real),
        ("low", Real),
        ("high", Real),
        ("unit", Text),
        ("shown", Text),
        ("confidence", Real),
        ("state", Text),
        ("reason", Text),
    ];
    let mut out = Table { columns, rows: vec![] };
    for r in rows {
        let kept = s.get(&r.id)?;
        let e = if with_serial { kept } else { kept.shared() };
        let text = |t: &Option<String>| t.clone().unwrap_or_default();
        let (amount, code) = price::parse(&r.price).map_or((r.price.clone(), String::new()), |(v, c)| (v.to_string(), c));
        let card: Vec<String> = [
            r.id.clone(),
            r.name.clone(),
            r.maker.clone(),
            r.kind.clone(),
            r.lot.clone(),
            amount,
            code,
            text(&e.source.host),
            u8::from(e.source.simulated).to_string(),
            e.source.seed.map_or(String::new(), |n| n.to_string()),
            r.capacity.map_or(String::new(), |c| c.to_string()),
            r.counterfeit.map_or("", |c| if c { "yes" } else { "no" }).to_string(),
        ]
        .into();
        let mut put = |cells: [String; 10]| out.rows.push(card.iter().cloned().chain(cells).collect());
        for f in &e.findings.0 {
            let (value, state) = match (f.number(), f.at_least) {
                (Some(v), _) => (Some(v), "decided"),
                (None, Some(b)) => (Some(b.0), "at least"),
                (None, None) => (None, "undecided"),
            };
            let number = |v: Option<f64>| v.map_or(String::new(), |v| v.to_string());
            put([
                column(f.quantity).into(),
                String::new(),
                number(value),
                number(f.interval.map(|i| i[0])),
                number(f.interval.map(|i| i[1])),
                f.quantity.row().unit.symbol().into(),
                value.map_or(String::new(), |v| f.quantity.show(v)),
                if value.is_some() { f.confidence.to_string() } else { String::new() },
                state.into(),
                if value.is_some() { String::new() } else { f.reason.clone().unwrap_or_default() },
            ]);
        }
        for m in &e.metrics {
            let (low, high) = m.passes.iter().fold((m.value, m.value), |(l, h), p| (l.min(*p), h.max(*p)));
            let state = if e.flagged(m) && !e.flags.is_empty() { "flagged" } else { "measured" };
            let none = String::new;
            put([
                m.name.clone(),
                m.conditions.clone(),
                m.value.to_string(),
                low.to_string(),
                high.to_string(),
                m.unit.clone(),
                none(),
                none(),
                state.into(),
                none(),
            ]);
        }
    }
    Ok(out)
}

/// The name of a quantity's column: the size that was found stands beside the one that is declared.
fn column(q: Quantity) -> &'static str {
    if q == Quantity::Capacity { "capacity_found" } else { q.key() }
}

/// One entry a line, without the originals.
///
/// # Errors
/// The database, or a file that was damaged in the meantime.
pub fn json_lines(s: &mut Survey, rows: &[Row], with_serial: bool) -> Result<String> {
    let mut out = String::new();
    for r in rows {
        let kept = s.get(&r.id)?;
        let mut record = if with_serial { kept } else { kept.shared() };
        record.original = serde_json::Value::Null;
        out.push_str(&serde_json::to_string(&record).unwrap_or_default());
        out.push('\n');
    }
    Ok(out)
}

/// A MoinMoin table (the wiki of the Linaro flash-card survey is one), a line a card.
///
/// The columns are what flashbench's README tells a reader to find (F3-F19). That page,
/// <https://wiki.linaro.org/WorkingGroups/KernelArchived/Projects/FlashCardSurvey>, could be read up to its text about cards only, not
/// to its table; so its headings may differ.
pub fn wiki(s: &mut Survey, rows: &[Row]) -> Result<String> {
    let facts = s.facts()?;
    let cell = |t: &str| if t.is_empty() { " ".to_string() } else { t.replace("||", "| |").replace(['\n', '\r'], " ") };
    let mut out = String::from(
        "|| '''Manufacturer''' || '''Type''' || '''Name''' || '''Size''' || '''Allocation unit''' || '''Write size''' || '''Page size''' || '''FAT location''' || '''open AUs linear''' || '''open AUs random''' || '''Entry''' ||\n",
    );
    for r in rows {
        let own = facts.get(&r.id).map_or(&[][..], Vec::as_slice);
        let shown = |key: &str| own.iter().find(|f| f.key == key).map_or("?".to_string(), |f| f.shown.clone());
        let fat = match own.iter().find(|f| f.key == "fat_zone") {
            Some(f) if f.value > 0.0 => format!("first {}", Bytes(f.value as u64)),
            Some(_) => "none".into(),
            None => "?".into(),
        };
        let mut size = r.capacity.map_or("?".into(), |c| Bytes(c).to_string());
        if let Some(real) = r.real.filter(|_| r.counterfeit == Some(true)) {
            size = format!("{size}, counterfeit: {}", Bytes(real));
        }
        let cells = [
            r.maker.clone(),
            r.kind.clone(),
            r.name.clone(),
            size,
            shown("erase_block"),
            shown("write_unit"),
            shown("page"),
            fat,
            shown("open_aus_linear"),
            shown("open_aus_random"),
            r.id.clone(),
        ];
        let _ = writeln!(out, "|| {} ||", cells.map(|c| cell(&c)).join(" || "));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::csv_cell;

    #[test]
    fn cells_are_quoted_and_harmless() {
        assert_eq!(csv_cell("a, \"b\""), "\"a, \"\"b\"\"\"");
        assert_eq!(csv_cell("=cmd()"), "'=cmd()");
        assert_eq!((csv_cell("-5").as_str(), csv_cell("-x").as_str()), ("-5", "'-x"));
    }
}
