//! FAT zone from `flashbench --find-fat`: are the first AUs treated differently from the rest?
//!
//! The later columns are the rule; a column that differs from them at some sizes, in every run, is special. A lone slow
//! cell is a stall, and the first row pays for what was there before. Special may be faster, or faster for small writes
//! only, or slower: the zone's end is told either way, and how it differs.

use crate::finding::{Finding, Quantity};
use crate::infer::stats::{mad, median};
use crate::samples::import::{FatTest, Tables};
use crate::units::{Bytes, KIB};

/// Ratio from which a column is called special: AUs of one card differ by up to a quarter for no reason of layout
/// (an author who saw 0.75 in the first AU found "no special FAT area").
const SPECIAL: f64 = 0.34;

/// ln ratio of a column to the rule, in three bands of sizes.
struct Column {
    bands: Vec<f64>,
}

impl Column {
    fn strongest(&self) -> f64 {
        self.bands.iter().copied().fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a })
    }
    fn best(&self) -> f64 {
        self.bands.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }
}

pub fn infer(tables: &Tables) -> Vec<Finding> {
    let q = Quantity::FatZone;
    let tests: Vec<&FatTest> = tables.fat.iter().filter(|t| t.rows.iter().filter(|r| r.rates.len() >= 4).count() >= 3).collect();
    let Some(&first) = tests.first() else {
        let some = tables.fat.iter().any(|t| !t.rows.is_empty());
        return if some {
            vec![Finding::undecided(q, "the find-FAT table is too small: it needs four AUs and three sizes")]
        } else {
            vec![]
        };
    };
    let erase = |t: &FatTest| t.erase_size.or(t.rows.first().map(|r| r.size)).unwrap_or(0);
    let au = erase(first);
    let tests: Vec<&FatTest> = tests.into_iter().filter(|t| erase(t) == au).collect();
    let width = tests.iter().flat_map(|t| t.rows.iter().map(|r| r.rates.len())).max().unwrap_or(0);
    let (columns, noise) = columns(&tests, width);
    let mut f = judge(q, &columns, noise, au, tests.len());
    f.from =
        vec![format!("find-FAT table ({}, {} {})", tables.at(first.place), tests.len(), if tests.len() == 1 { "run" } else { "runs" })];
    vec![f]
}

/// Columns in bands: above 64 KiB, 16 to 64 KiB, below; and the scatter of the later columns.
fn columns(tests: &[&FatTest], width: usize) -> (Vec<Column>, f64) {
    let band = |size: u64| match size {
        s if s > 64 * KIB => 0,
        s if s >= 16 * KIB => 1,
        _ => 2,
    };
    let mut cells: Vec<[Vec<f64>; 3]> = (0..width).map(|_| Default::default()).collect();
    let mut rest = vec![];
    for t in tests {
        // The first row pays for what was there before.
        for r in t.rows.iter().skip(1).filter(|r| r.rates.len() == width) {
            let rule = median(&r.rates[width / 2..]);
            for (i, x) in r.rates.iter().enumerate() {
                let ln = (x / rule).ln();
                cells[i][band(r.size)].push(ln);
                if i >= width / 2 {
                    rest.push(ln);
                }
            }
        }
    }
    let columns = cells.iter().map(|c| Column { bands: c.iter().filter(|b| !b.is_empty()).map(|b| median(b)).collect() }).collect();
    (columns, mad(&rest))
}

fn judge(q: Quantity, columns: &[Column], noise: f64, au: u64, runs: usize) -> Finding {
    let line = SPECIAL.max(4.0 * noise);
    let special: Vec<usize> = (0..columns.len()).filter(|&i| columns[i].strongest().abs() > line).collect();
    let percent = |x: f64| format!("{:.0} %", 100.0 * x.exp());
    let Some((&first, &last)) = special.first().zip(special.last()) else {
        let most = columns.iter().map(|c| c.strongest().abs()).fold(0.0, f64::max);
        let far = columns.iter().map(|c| c.strongest()).fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a });
        let text = format!("of {} AUs the one that differs most writes at {} of the usual rate", columns.len(), percent(far));
        // Near the line the call is not sure.
        return Finding::decided(q, 0.0, if most < 0.6 * line { 0.88 } else { 0.72 }).evidence(text);
    };
    if special.len() * 2 >= columns.len() {
        return Finding::undecided(q, "the AUs differ from each other throughout: no rule to compare the first ones with");
    }
    if first > 1 || last + 1 - first != special.len() {
        let which: Vec<String> = special.iter().map(|i| i.to_string()).collect();
        return Finding::undecided(q, format!("AUs {} differ from the rest, but not the first ones", which.join(", ")));
    }
    let of = |i: usize| columns[i].bands.iter().map(|&b| percent(b)).collect::<Vec<_>>().join(", ");
    let text = format!("AU {first} writes at {} of the usual rate (large, middle, small blocks)", of(first));
    let end = (last as u64 + 1) * au;
    let best = special.iter().map(|&i| columns[i].best()).fold(f64::INFINITY, f64::min);
    // Twice the line and more, and the next AU as far below it: no accident of a place.
    let next = columns.get(last + 1).map_or(0.0, |c| c.strongest().abs());
    let clear = best > 2.0 * line && next < 0.6 * line;
    if runs == 1 && (!clear || first > 0) {
        return Finding::undecided(q, "AUs differ for other reasons as well, and this is one run: two more runs would decide it")
            .evidence(text);
    }
    let trust = if clear { if runs > 1 { 0.88 } else { 0.83 } } else { 0.75 };
    let mut f = Finding::decided(q, end as f64, trust).rivals([(0.0, 0.6 * (1.0 - trust))]).evidence(text);
    if best < line {
        f.confidence = 0.6;
        f = f.caveat("the first AUs are treated differently, but not faster");
    }
    if first > 0 {
        f.confidence = f.confidence.min(0.7);
        f = f.caveat(format!("only AU {first} is special: the zone lies from {} to {}", Bytes(first as u64 * au), Bytes(end)));
    }
    f
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::import::read;

    /// A find-FAT table of eight AUs; `rate` in K/s of column and size.
    fn log(rate: impl Fn(usize, u64) -> f64) -> Finding {
        run(1, rate)
    }

    fn run(runs: usize, rate: impl Fn(usize, u64) -> f64) -> Finding {
        let mut text = String::from("find FAT: 1\n");
        for size in (11..=22).rev().map(|k| 1u64 << k) {
            let cells = (0..8).map(|i| crate::flashbench::format::rate(rate(i, size) * 1e3)).collect::<Vec<_>>().join("  ");
            text += &format!("{} {cells}\n", crate::flashbench::format::size(size));
        }
        infer(&read(&[("t", text.repeat(runs))]).unwrap()).remove(0)
    }

    #[test]
    fn zones() {
        let none = log(|i, _| if i == 0 { 4000.0 } else { 5000.0 });
        assert_eq!(none.number(), Some(0.0), "{none:?}");
        // Slower for large writes, much faster for small ones.
        let two = log(|i, s| {
            if i > 1 {
                if s < 8192 { 180.0 } else { 4400.0 }
            } else if s < 8192 {
                850.0
            } else {
                2700.0
            }
        });
        assert_eq!(two.number(), Some((8 << 20) as f64), "{two:?}");
        let only = |i: usize, _| if i == 1 { 9000.0 } else { 4400.0 };
        let once = log(only);
        assert!(once.value.is_none() && once.reason.as_ref().unwrap().contains("two more runs"), "{once:?}");
        let second = run(3, only);
        assert!(second.number() == Some((8 << 20) as f64) && second.caveats[0].contains("only AU 1"), "{second:?}");
    }

    #[test]
    fn stalls_and_odd_aus_are_no_zone() {
        let stalls = log(|i, s| if s.trailing_zeros() as usize % 4 == i { 2000.0 } else { 5000.0 });
        assert_eq!(stalls.number(), Some(0.0), "{stalls:?}");
        let third = log(|i, _| if i == 3 { 9000.0 } else { 4400.0 });
        assert!(third.value.is_none(), "{third:?}");
    }
}
