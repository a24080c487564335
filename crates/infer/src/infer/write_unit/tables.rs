//! Write unit from tables of one AU: the size below which a write costs as much as one of that size.
//!
//! Above the unit the time doubles with the size, below it stays. The knee is where these two meet; a table whose times
//! bend slowly has none to show.

use crate::finding::{Finding, Quantity};
use crate::infer::stats::median;
use crate::samples::import::{Place, Tables};
use crate::units::{Bytes, KIB, three};

/// Larger writes are many units long.
const LARGEST: u64 = 256 * KIB;

pub fn infer(tables: &Tables) -> Vec<Finding> {
    let mut out = vec![];
    let open = tables.open.iter().filter(|t| t.n == Some(1) && t.random == Some(false));
    let one: Vec<(u64, f64)> = open.flat_map(|t| t.rows.iter().map(|r| (r.size, r.ms()))).collect();
    // The later AUs of a find-FAT table: the first ones may be a zone of their own.
    let fat: Vec<(u64, f64)> = tables
        .fat
        .iter()
        .filter(|t| !t.random)
        .flat_map(|t| t.rows.iter().skip(1).filter(|r| r.rates.len() >= 4))
        .map(|r| (r.size, r.size as f64 / median(&r.rates[r.rates.len() / 2..]) * 1e3))
        .collect();
    for (points, name) in [(one, "open-AU tables of one AU"), (fat, "find-FAT tables")] {
        let times = pooled(&points);
        if times.iter().filter(|t| t.0 <= LARGEST).count() >= 5 {
            let mut f = judge(&times);
            // Tables of more AUs have a say: what one AU gathers in order they show write by write.
            if let Some(why) = f.number().and_then(|unit| against(tables, unit as u64)) {
                let said = f.quantity.show(f.number().unwrap_or(0.0));
                let why = format!("the knee lies at {said}, but {why}");
                f = Finding { evidence: f.evidence, ..Finding::undecided(f.quantity, why) };
            }
            f.from = vec![name.into()];
            out.push(f);
        }
    }
    out
}

/// A table in which a write of more than a unit costs as much as one of twice its size: below that size something else is at work.
/// Tables above the limit of open AUs, where no size tells, say nothing.
fn against(tables: &Tables, unit: u64) -> Option<String> {
    tables.open.iter().filter(|t| t.random == Some(false)).find_map(|t| {
        let n = t.n?;
        let at = |s: u64| t.rows.iter().find(|r| r.size == s);
        let pairs: Vec<_> = (0..).map(|k| unit << k).take_while(|&s| s < LARGEST).filter_map(|s| Some((at(s)?, at(2 * s)?))).collect();
        let growth: Vec<f64> = pairs.iter().filter(|p| p.0.size >= 64 * KIB).map(|p| (p.1.ms() / p.0.ms()).log2()).collect();
        if growth.is_empty() || median(&growth) < 0.5 {
            return None;
        }
        // Twice the bytes in no more than the same time, and a tenth for noise.
        let (a, b) = pairs.iter().find(|p| p.1.ms() < 1.1 * p.0.ms())?;
        let aus = if n == 1 { "one AU".to_string() } else { format!("{n} AUs interleaved") };
        Some(format!(
            "with {aus} a write takes {} ms at {} and {} ms at {} ({}, {})",
            three(a.ms()),
            Bytes(a.size),
            three(b.ms()),
            Bytes(b.size),
            tables.at(Place { line: a.line, ..t.place }),
            b.line
        ))
    })
}

/// Median by size, ascending.
fn pooled(points: &[(u64, f64)]) -> Vec<(u64, f64)> {
    let mut sizes: Vec<u64> = points.iter().map(|p| p.0).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes.iter().map(|&s| (s, median(&points.iter().filter(|p| p.0 == s).map(|p| p.1).collect::<Vec<_>>()))).collect()
}

fn judge(times: &[(u64, f64)]) -> Finding {
    let q = Quantity::WriteUnit;
    // Growth for each doubling, as a power: 1 above the unit, 0 below it.
    let growth: Vec<(u64, f64)> =
        times.windows(2).filter(|w| w[1].0 == 2 * w[0].0 && w[1].0 <= LARGEST).map(|w| (w[0].0, (w[1].1 / w[0].1).log2())).collect();
    // How far the pairs above a size stand over the pairs below it; at least two of each side.
    let gap = |u: u64| {
        let above: Vec<f64> = growth.iter().filter(|g| g.0 >= u && g.0 < 4 * u).map(|g| g.1).collect();
        let below: Vec<f64> = growth.iter().filter(|g| g.0 < u && 8 * g.0 >= u).map(|g| g.1).collect();
        let (lo, hi) = (above.iter().copied().fold(f64::INFINITY, f64::min), below.iter().copied().fold(f64::NEG_INFINITY, f64::max));
        (above.len() >= 2 && below.len() >= 2 && lo > 0.4 && hi < 0.5).then_some(lo - hi)
    };
    let mut all: Vec<(u64, f64)> = growth.iter().filter_map(|g| Some((g.0, gap(g.0)?))).collect();
    nandscope_stats::descending(&mut all, |a| a.1);
    let Some(&(unit, by)) = all.first() else {
        return Finding::undecided(q, "the time of a write shows no knee: it rises evenly with the size, or small writes are coalesced");
    };
    let at = |s: u64| times.iter().find(|t| t.0 == s).map_or("?".into(), |t| three(t.1));
    let text = format!(
        "one write takes {} ms at {}, {} ms at {}, {} ms at {}",
        at(unit / 2),
        Bytes(unit / 2),
        at(unit),
        Bytes(unit),
        at(unit * 2),
        Bytes(unit * 2)
    );
    let trust = 0.5 + 0.4 * ((by - 0.25) / 0.5).clamp(0.0, 1.0);
    if trust < 0.55 {
        return Finding::undecided(q, format!("the time of a write bends slowly near {}", Bytes(unit))).evidence(text);
    }
    Finding::decided(q, unit as f64, trust)
        .rivals([(2.0 * unit as f64, 0.6 * (1.0 - trust)), (unit as f64 / 2.0, 0.3 * (1.0 - trust))])
        .evidence(text)
}
