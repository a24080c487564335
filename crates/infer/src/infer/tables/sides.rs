//! The same test before and after something was changed: a patch, a setting of the kernel (Q14). The two tables side by side.

use crate::infer::stats::{mad, median};
use crate::samples::import::{OpenTest, Tables};
use crate::units::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Rows of one table differ from run to run by this much without any cause; stalls by more, but in single rows.
const ROW: f64 = 0.1;
/// A change of all rows together that is worth a word.
const ALL: f64 = 0.02;

/// Two tables of the same test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sides {
    /// "one AU, sequential".
    pub test: String,
    /// What was changed before each; `None` where nothing is said.
    pub settings: [Option<String>; 2],
    pub places: [String; 2],
    /// Block in bytes, both rates in bytes a second.
    pub rows: Vec<(u64, f64, f64)>,
    /// One sentence.
    pub verdict: String,
}

/// Every pair of tables that differ in nothing but a setting named between them.
pub fn sides(tables: &Tables) -> Vec<Sides> {
    let mut out = vec![];
    // Of each test the last table, and the nearest one before it under another setting.
    let mut before: HashMap<_, (&OpenTest, Option<&OpenTest>)> = HashMap::new();
    for b in tables.open.iter().filter(|b| b.n.is_some()) {
        let test = (b.n, b.random, b.erase_size, b.place.file);
        let twin = match before.get(&test) {
            Some((last, _)) if last.setting != b.setting => Some(*last),
            Some((_, other)) => *other,
            None => None,
        };
        out.extend(twin.and_then(|a| compare(tables, a, b)));
        before.insert(test, (b, twin));
    }
    out
}

fn compare(tables: &Tables, a: &OpenTest, b: &OpenTest) -> Option<Sides> {
    let rows: Vec<(u64, f64, f64)> =
        a.rows.iter().filter_map(|r| Some((r.size, r.rate, b.rows.iter().find(|o| o.size == r.size)?.rate))).collect();
    if rows.len() < 3 {
        return None;
    }
    let ln: Vec<f64> = rows.iter().map(|r| (r.2 / r.1).ln()).collect();
    let (middle, noise) = (median(&ln), mad(&ln));
    let percent = |x: f64| change(x.exp());
    let odd: Vec<usize> = (0..ln.len()).filter(|&i| (ln[i] - middle).abs() > (5.0 * noise).max(ROW)).collect();
    let shifted = middle.abs() > (3.0 * noise / (ln.len() as f64).sqrt()).max(ALL);
    let (lo, hi) = ln.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &x| (l.min(x), h.max(x)));
    let mut verdict = match shifted {
        true => format!("the second is {} at most sizes", crate::units::slower((-middle).exp())),
        false => format!("no difference: {} sizes, {} to {}", ln.len(), percent(lo), percent(hi)),
    };
    if !odd.is_empty() {
        let each: Vec<String> = odd.iter().map(|&i| format!("{} {}", Bytes(rows[i].0), percent(ln[i]))).collect();
        verdict = if shifted {
            format!("{verdict}, but {}", each.join(", "))
        } else {
            format!("a difference at {}; none at the other sizes", each.join(", "))
        };
    }
    let order = if b.random == Some(true) { "random" } else { "sequential" };
    let aus = b.n.map_or(String::new(), |n| if n == 1 { "one AU".into() } else { format!("{n} AUs") });
    Some(Sides {
        test: format!("{aus}, {order}"),
        settings: [a.setting.clone(), b.setting.clone()],
        places: [tables.at(a.place), tables.at(b.place)],
        rows,
        verdict,
    })
}

/// A ratio as a change in per cent, with its sign where it is not 0 as shown.
fn change(ratio: f64) -> String {
    let text = format!("{:+.1} %", 100.0 * (ratio - 1.0));
    match &text[1..] {
        zero @ "0.0 %" => zero.into(),
        _ => text.replace('-', "\u{2212}"),
    }
}

impl Sides {
    /// A table of both, and what it says.
    pub fn text(&self) -> String {
        let rate = crate::flashbench::format::neat_rate;
        let said = |s: &Option<String>| s.clone().unwrap_or_else(|| "as it was".into());
        let [a, b] = &self.settings;
        let mut out =
            format!("{} twice: {} ({}) and {} ({}): {}\n", self.test, said(a), self.places[0], said(b), self.places[1], self.verdict);
        for (size, x, y) in &self.rows {
            let change = change(y / x);
            out += &format!("  {:>8}  {:>9}  {:>9}  {change:>8}\n", Bytes(*size).to_string(), rate(*x), rate(*y));
        }
        out
    }
}
