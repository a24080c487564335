//! Several benchmarks beside each other.

use super::Bench;
use crate::advise::price::Price;
use crate::samples::records::Pass;
use std::fmt::Write;

/// Several targets beside each other, with ratios to the first (G4, G6), and speed per price where prices are given (G13).
pub fn summary(all: &[Bench]) -> String {
    let head = ["target", "record", "write KB/s", "x", "max us", "min us", "avg us", "read KB/s", "x", "max us", "min us", "avg us"];
    let mut rows: Vec<Vec<String>> = vec![head.map(str::to_string).to_vec()];
    for b in all {
        let first = all.iter().find(|f| f.record == b.record);
        let of = |b: &Bench, write: bool| b.passes.iter().find(|p| p.write == write).map(|p| (p.speed(), p.max_min(), p.mean()));
        let mut row = vec![b.target.clone(), b.record.to_string()];
        for write in [true, false] {
            row.extend(match (of(b, write), first.and_then(|f| of(f, write))) {
                (Some((speed, (max, min), mean)), Some(f)) => {
                    vec![
                        format!("{speed:.2}"),
                        format!("{:.2}", speed / f.0),
                        format!("{max:.0}"),
                        format!("{min:.0}"),
                        format!("{mean:.0}"),
                    ]
                }
                _ => vec!["-".into(); 5],
            });
        }
        rows.push(row);
    }
    let widths: Vec<usize> = (0..head.len()).map(|i| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0)).collect();
    let mut out = String::new();
    for (i, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths).enumerate().map(|(k, (c, w))| if k == 0 { format!("{c:<w$}") } else { format!("{c:>w$}") });
        let _ = writeln!(out, "| {} |", cells.collect::<Vec<_>>().join(" | "));
        if i == 0 {
            let _ = writeln!(out, "|{}|", widths.iter().map(|w| "-".repeat(w + 2)).collect::<Vec<_>>().join("|"));
        }
    }
    if all.iter().flat_map(|b| &b.passes).any(Pass::left_out) {
        let _ = writeln!(
            out,
            "max and min leave out the first call of each pass, as SdFat's bench does; tables of 2012 count it: --count-first"
        );
    }
    out + &prices(all)
}

/// Speed per price, in the currency that was given.
pub fn prices(all: &[Bench]) -> String {
    let mut out = String::new();
    let mut currencies: Vec<&str> = vec![];
    for b in all {
        if let (Some(Price { amount, currency }), Some(p)) =
            (b.price.as_ref().filter(|p| p.amount > 0.0), b.passes.iter().find(|p| p.write))
        {
            let each = p.speed() / amount;
            let _ = writeln!(
                out,
                "{} writes records of {} B at {:.0} kB/s and costs {amount} {currency}: {each:.1} kB/s for each {currency}",
                b.target,
                b.record,
                p.speed()
            );
            if !currencies.contains(&currency.as_str()) {
                currencies.push(currency);
            }
        }
    }
    if currencies.len() > 1 {
        let _ = writeln!(out, "the prices are in {}; speeds for each of them cannot be compared", currencies.join(" and "));
    }
    out
}
