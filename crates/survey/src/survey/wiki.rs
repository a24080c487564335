//! Rows of a wiki table of cards, as the Linaro flash-card survey has one and `survey export --format wiki` writes it (F20).
//!
//! What a column holds is read from the heading above the row, whatever the order; a row without a heading has the columns that
//! this program writes.

use super::record::{Card, Record, Source};
use crate::finding::{Finding, Findings, Quantity, Unit};
use crate::units::Bytes;
use serde_json::Value;

/// What a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Maker,
    Kind,
    Name,
    Size,
    Part,
    Found(Quantity),
    Notes,
}

use Column::{Found, Kind, Maker, Name, Notes, Part, Size};

/// The columns of `survey export --format wiki`; the last is the id of an entry in the survey it came from.
const OURS: [Option<Column>; 11] = [
    Some(Maker),
    Some(Kind),
    Some(Name),
    Some(Size),
    Some(Found(Quantity::EraseBlock)),
    Some(Found(Quantity::WriteUnit)),
    Some(Found(Quantity::Page)),
    Some(Found(Quantity::FatZone)),
    Some(Found(Quantity::OpenAusLinear)),
    Some(Found(Quantity::OpenAusRandom)),
    None,
];

/// The cells of a line of a MoinMoin table.
fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix("||")?.strip_suffix("||")?;
    // "<...>" before the text is how a cell looks, quotes make it bold or italic.
    let plain = |c: &str| {
        let c = c.trim();
        let c = if c.starts_with('<') { c.split_once('>').map_or(c, |x| x.1) } else { c };
        c.replace("'''", "").replace("''", "").trim().to_string()
    };
    Some(inner.split("||").map(plain).collect())
}

fn column(heading: &str) -> Option<Column> {
    let h = heading.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|w| h.contains(w));
    Some(match () {
        _ if has(&["manufacturer", "maker", "vendor", "brand"]) => Maker,
        _ if has(&["open"]) && has(&["linear", "seq"]) => Found(Quantity::OpenAusLinear),
        _ if has(&["open"]) && has(&["random"]) => Found(Quantity::OpenAusRandom),
        _ if has(&["allocation unit", "erase block", "erase size", "segment"]) || h == "au" => Found(Quantity::EraseBlock),
        _ if has(&["write size", "write unit"]) => Found(Quantity::WriteUnit),
        _ if has(&["page"]) => Found(Quantity::Page),
        _ if has(&["fat"]) => Found(Quantity::FatZone),
        _ if has(&["part number", "part no"]) => Part,
        _ if has(&["type", "kind"]) => Kind,
        _ if has(&["name", "card", "model", "device", "product"]) => Name,
        _ if has(&["capacity", "size"]) => Size,
        _ if has(&["note", "comment", "remark", "algorithm"]) => Notes,
        _ => return None,
    })
}

/// A size of flash: "4 MB" on such a page is 2^22 bytes, as erase blocks and pages are.
fn flash_size(text: &str) -> Option<f64> {
    let low = text.trim().to_lowercase();
    let binary = low.strip_suffix('b').filter(|t| t.ends_with(['k', 'm', 'g'])).unwrap_or(&low);
    binary.parse::<Bytes>().ok().map(|b| b.0 as f64).filter(|b| *b > 0.0)
}

/// A size of a card, in bytes; "3.73 GiB" is rounded.
fn card_size(text: &str) -> Option<u64> {
    let t = text.trim();
    let (number, unit) = t.split_at(t.find(|c: char| !c.is_ascii_digit() && c != '.')?);
    let unit = format!("1{}", unit.trim()).parse::<Bytes>().ok()?;
    let bytes = number.parse::<f64>().ok()? * unit.0 as f64;
    (1.0..1e18).contains(&bytes).then(|| bytes.round() as u64)
}

/// A cell as a finding; nothing where it says nothing. An error where it cannot be read.
fn finding(q: Quantity, cell: &str) -> Result<Option<Finding>, ()> {
    let low = cell.trim().to_lowercase();
    if low.is_empty() || low.chars().all(|c| "?-".contains(c)) || ["unknown", "n/a", "undecided"].contains(&low.as_str()) {
        return Ok(None);
    }
    let number = |t: &str| match q.row().unit {
        Unit::Count => t.trim().parse::<u32>().ok().map(f64::from).filter(|n| *n > 0.0),
        _ => flash_size(t),
    };
    let at_least = low.strip_prefix("at least").or(low.strip_prefix(">=")).or(low.strip_suffix('+'));
    if let Some(v) = at_least.and_then(number) {
        return Ok(Some(Finding::at_least(q, v, 0.9, "a lower bound, as printed")));
    }
    let text = match q {
        Quantity::FatZone if ["none", "no"].contains(&low.as_str()) => return Ok(Some(Finding::decided(q, 0.0, 0.9))),
        Quantity::FatZone => low.strip_prefix("first").unwrap_or(&low).to_string(),
        _ => low,
    };
    // Printed values are taken as they are: 90 %, as for all published cards.
    number(&text).map(|v| Some(Finding::decided(q, v, 0.9))).ok_or(())
}

/// One entry a row.
///
/// # Errors
/// Rows whose columns nobody names, or a table without a row.
pub fn read(text: &str) -> Result<Vec<Record>, String> {
    let mut columns: Option<(Vec<Option<Column>>, String)> = None;
    let mut out = vec![];
    for (n, line) in text.lines().enumerate() {
        let Some(cells) = cells(line) else { continue };
        let named: Vec<Option<Column>> = cells.iter().map(|c| column(c)).collect();
        // A heading names columns and holds no figure.
        let figures = cells.iter().any(|c| c.chars().any(|c| c.is_ascii_digit()));
        if !figures && named.iter().flatten().count() >= 3 {
            columns = Some((named, line.to_string()));
            continue;
        }
        let (layout, heading) = match &columns {
            Some((c, h)) => (&c[..], h.as_str()),
            None if cells.len() == OURS.len() || cells.len() == OURS.len() - 1 => (&OURS[..], ""),
            None => {
                return Err(format!(
                    "line {}: a row of {} columns without a heading; paste the heading of the table, too",
                    n + 1,
                    cells.len()
                ));
            }
        };
        out.push(row(layout, &cells, n + 1, heading, line));
    }
    if out.is_empty() { Err("the wiki table has no row".into()) } else { Ok(out) }
}

fn row(layout: &[Option<Column>], cells: &[String], line: usize, heading: &str, text: &str) -> Record {
    let mut r = Record {
        card: Card::default(),
        source: Source { format: "wiki".into(), ..Source::default() },
        original: Value::String([heading, text].join("\n").trim_start().to_string()),
        ..Record::default()
    };
    let mut found = vec![];
    for (c, cell) in layout.iter().zip(cells) {
        let text = (!cell.is_empty() && cell != "?").then(|| cell.clone());
        match (c, text) {
            (Some(Maker), t) => r.card.maker = t,
            (Some(Kind), t) => r.card.kind = t,
            (Some(Part), t) => r.card.part = t,
            (Some(Name), t) => r.card.name = t.unwrap_or_default(),
            (Some(Notes), t) => r.notes.extend(t),
            (Some(Size), Some(t)) => match card_size(&t) {
                Some(b) => r.card.capacity = Some(b),
                None => r.notes.push(format!("line {line}: size '{t}' cannot be read and was left out")),
            },
            (Some(Found(q)), Some(t)) => match finding(*q, &t) {
                Ok(f) => found.extend(f),
                Err(()) => r.notes.push(format!("line {line}: {} '{t}' cannot be read and was left out", q.title())),
            },
            _ => {}
        }
    }
    if r.card.name.is_empty() {
        let words = [r.card.maker.clone(), r.card.part.clone(), r.card.kind.clone(), r.card.capacity.map(|c| Bytes(c).to_string())];
        r.card.name = words.into_iter().flatten().collect::<Vec<_>>().join(" ");
    }
    r.findings = Findings(found);
    r
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_in_any_order_of_columns() {
        let text = "|| Manufacturer || Card || Size || Allocation Unit || Write Size || Page Size || FAT Location || open AUs linear || open AUs random || Algorithm ||\n\
                    ||<style=\"x\"> SanDisk || Extreme III || 16GB || 4 MB || 32 KB || 16 KB || first 4 MB || 9 || 5+ || linear ||\n\
                    || Panasonic || RP-SDP04 || 4GB || 1.5 MB || ? || 8KB || none || 1 || at least 1 || ||\n";
        let all = read(text).unwrap();
        let v = |r: &Record, q| r.findings.get(q).and_then(|f| f.number().or(f.at_least.map(|n| n.0)));
        assert_eq!((all[0].card.maker.as_deref(), all[0].card.capacity), (Some("SanDisk"), Some(16_000_000_000)));
        use Quantity::*;
        let of = |r: &Record| [EraseBlock, WriteUnit, Page, FatZone, OpenAusLinear, OpenAusRandom].map(|q| v(r, q));
        assert_eq!(of(&all[0]), [Some(4_194_304.0), Some(32_768.0), Some(16_384.0), Some(4_194_304.0), Some(9.0), Some(5.0)]);
        assert_eq!(of(&all[1]), [Some(1_572_864.0), None, Some(8192.0), Some(0.0), Some(1.0), Some(1.0)]);
        assert!(all[1].findings.get(OpenAusRandom).unwrap().value.is_none() && all[0].notes == ["linear"]);
        let moved = "||'''Size'''||'''Name'''||'''Erase block'''||'''Maker'''||\n||8GB||Ultra||many||SanDisk||\n";
        let r = &read(moved).unwrap()[0];
        assert_eq!((r.card.name.as_str(), r.card.capacity, r.findings.0.len()), ("Ultra", Some(8_000_000_000), 0));
        assert!(r.notes[0].contains("'many' cannot be read"), "{:?}", r.notes);
        assert!(read("|| a || b || c || 5 ||\n").unwrap_err().contains("heading"));
    }
}
