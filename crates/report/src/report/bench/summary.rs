//! Several benchmarks beside each other.

use super::Bench;
use crate::advise::price::Price;
use crate::samples::records::Pass;
use crate::units::Bytes;
use std::fmt::Write;

/// Several targets beside each other, with ratios to the first (G4, G6), writes and reads apart; and speed per price where prices are given (G13).
pub fn summary(all: &[Bench]) -> String {
    let mut out = String::new();
    for (write, word) in [(true, "write"), (false, "read")] {
        let of = |b: &Bench| b.passes.iter().find(|p| p.write == write).map(|p| (p.speed(), p.max_min(), p.mean()));
        if !all.iter().any(|b| of(b).is_some()) {
            continue;
        }
        let mut rows =
            vec![["target", "record", "cluster", "sync", &format!("{word} KB/s"), "x", "max us", "min us", "avg us"].map(str::to_string)];
        for b in all {
            let first = all.iter().find(|f| f.record == b.record).and_then(of);
            let (Some((speed, (max, min), mean)), Some(first)) = (of(b), first) else { continue };
            let figures = [format!("{:.2}", speed / first.0), format!("{max:.0}"), format!("{min:.0}"), format!("{mean:.0}")];
            let [x, max, min, mean] = figures;
            let cluster = b.cluster.map_or("-".into(), |c| Bytes(c).to_string());
            rows.push([
                b.target.clone(),
                b.record.to_string(),
                cluster,
                b.sync.trim_start_matches("synced ").to_string(),
                format!("{speed:.2}"),
                x,
                max,
                min,
                mean,
            ]);
        }
        if !out.is_empty() {
            out.push('\n');
        }
        // Where all are of one target, it is named above; clusters and syncs stand here where one target has several.
        let varies = |of: &dyn Fn(&Bench) -> String| all.iter().any(|b| all.iter().any(|o| o.target == b.target && of(o) != of(b)));
        let shown = [
            all.iter().any(|b| b.target != all[0].target),
            true,
            varies(&|b| format!("{:?}", b.cluster)),
            varies(&|b| b.sync.clone()),
            true,
            true,
            true,
            true,
            true,
        ];
        let kept: Vec<Vec<String>> =
            rows.iter().map(|r| r.iter().zip(shown).filter(|(_, s)| *s).map(|(c, _)| c.clone()).collect()).collect();
        out += &aligned(&kept, usize::from(shown[0]));
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
pub fn aligned<R: AsRef<[String]>>(rows: &[R], left: usize) -> String {
    let columns = rows.iter().map(|r| r.as_ref().len()).max().unwrap_or(0);
    let width = |i: usize| rows.iter().filter_map(|r| r.as_ref().get(i)).map(|c| c.chars().count()).max().unwrap_or(0);
    let wide: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let row = row.as_ref();
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
