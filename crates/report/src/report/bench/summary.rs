//! Several benchmarks beside each other.

use super::Bench;
use crate::advise::price::Price;
use crate::samples::records::Pass;
use std::fmt::Write;

/// Several targets beside each other, with ratios to the first (G4, G6), writes and reads apart; and speed per price where prices are given (G13).
pub fn summary(all: &[Bench]) -> String {
    let mut out = String::new();
    for (write, word) in [(true, "write"), (false, "read")] {
        let of = |b: &Bench| b.passes.iter().find(|p| p.write == write).map(|p| (p.speed(), p.max_min(), p.mean()));
        if !all.iter().any(|b| of(b).is_some()) {
            continue;
        }
        let mut rows = vec![["target", "record", &format!("{word} KB/s"), "x", "max us", "min us", "avg us"].map(str::to_string)];
        for b in all {
            let first = all.iter().find(|f| f.record == b.record).and_then(of);
            let (Some((speed, (max, min), mean)), Some(first)) = (of(b), first) else { continue };
            let figures = [format!("{:.2}", speed / first.0), format!("{max:.0}"), format!("{min:.0}"), format!("{mean:.0}")];
            let [x, max, min, mean] = figures;
            rows.push([b.target.clone(), b.record.to_string(), format!("{speed:.2}"), x, max, min, mean]);
        }
        if !out.is_empty() {
            out.push('\n');
        }
        // Where all are of one target, it is named above.
        let alone = all.iter().all(|b| b.target == all[0].target);
        let figures: Vec<[String; 6]> = rows.iter().map(|[_, rest @ ..]| rest.clone()).collect();
        out += &if alone { aligned(&figures, 0) } else { aligned(&rows, 1) };
    }
    if all.iter().flat_map(|b| &b.passes).any(Pass::left_out) {
        let _ = writeln!(
            out,
            "max and min leave out the first call of each pass, as SdFat's bench does; tables of 2012 count it: --count-first"
        );
    }
    out + &prices(all)
}

/// Rows as columns, the first `left` of them by their left edge, two blanks between.
pub fn aligned<const N: usize>(rows: &[[String; N]], left: usize) -> String {
    let wide: Vec<usize> = (0..N).map(|i| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0)).collect();
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(&wide).enumerate().map(|(i, (c, w))| if i < left { format!("{c:<w$}") } else { format!("{c:>w$}") });
        let _ = writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    out
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
