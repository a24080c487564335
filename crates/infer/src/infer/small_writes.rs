//! Which writes are worth their time, and whether small linear ones are combined.

use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::pipeline::Analysis;
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{mad, median, quantile};
use crate::samples::{Cell, Run};
use crate::units::{Bytes, between, rate, three};
use std::collections::BTreeMap;

/// Judges runs of `small-writes`.
pub struct SmallWrites;

pub(super) const ANALYSES: &[&dyn Analysis] = &[&SmallWrites];

/// Orders of the writes of a cell.
pub const LINEAR: i64 = 0;
pub const RANDOM: i64 = 1;
pub const TURNS: i64 = 2;
pub const ORDERS: [&str; 3] = ["sequential", "random", "sequential, two erase blocks interleaved"];

/// Share of the best rate that makes a write worth its time (Q14: 32 KiB reaches 83 %, 16 KiB 36 %).
const ENOUGH: f64 = 0.75;

impl Analysis for SmallWrites {
    fn name(&self) -> &'static str {
        "small-writes"
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        // An AU that is closed in the middle of a trial is one long write: for the comparison of orders the longest is left out.
        let [linear, random, turns] = [LINEAR, RANDOM, TURNS].map(|o| times(run, o, 1));
        vec![efficient(&times(run, LINEAR, 0)), combines(&linear, &random, &turns)]
    }

    fn figures(&self, run: &Case) -> Vec<Figure> {
        let series = ORDERS.iter().enumerate().map(|(o, name)| Series {
            name: name.to_string(),
            points: times(run, o as i64, 0).iter().map(|(&s, t)| (s as f64, t.ms)).collect(),
        });
        vec![Figure {
            title: "mean time of a write".into(),
            x: "size of the write".into(),
            y: "ms".into(),
            log_x: true,
            log_y: true,
            series: series.filter(|s| !s.points.is_empty()).collect(),
        }]
    }
}

/// Mean time of the writes of each trial, in ms, the opening ones and the `longest` longest left out.
pub fn trials(run: &Run, cell: &Cell, longest: usize) -> Vec<f64> {
    let one = |t: &Vec<&crate::samples::Sample>| {
        let mut w: Vec<f64> = t.iter().filter(|s| s.role == 1).map(|s| s.took.millis()).collect();
        w.sort_by(f64::total_cmp);
        w.truncate(w.len().saturating_sub(longest));
        (!w.is_empty()).then(|| w.iter().sum::<f64>() / w.len() as f64)
    };
    run.trials(cell.id).iter().filter_map(one).collect()
}

/// What a size costs.
#[derive(Clone, Copy, Debug)]
struct Time {
    ms: f64,
    /// Relative scatter of the trials.
    scatter: f64,
}

fn times(run: &Run, order: i64, longest: usize) -> BTreeMap<u64, Time> {
    let cells = run.cells.iter().filter(|c| c.get("order") == order);
    cells
        .filter_map(|c| {
            let t = trials(run, c, longest);
            (t.len() >= 2).then(|| (c.bytes("size"), Time { ms: median(&t), scatter: mad(&t) / median(&t).max(1e-9) }))
        })
        .filter(|t| t.1.ms > 0.0)
        .collect()
}

fn efficient(linear: &BTreeMap<u64, Time>) -> Finding {
    let q = Quantity::EfficientWrite;
    if linear.len() < 5 {
        return Finding::undecided(q, "too few sizes were written");
    }
    let per_second = |s: u64, t: &Time| s as f64 / t.ms * 1e3;
    let rates: Vec<(u64, f64)> = linear.iter().map(|(&s, t)| (s, per_second(s, t))).collect();
    let best = rates.iter().map(|r| r.1).fold(0.0, f64::max);
    // From here on every size is good: a lone good one below is luck.
    let from = rates.iter().rposition(|r| r.1 < ENOUGH * best).map_or(0, |i| i + 1);
    let scatter = median(&linear.values().map(|t| t.scatter).collect::<Vec<_>>());
    let Some(&(size, reached)) = rates.get(from) else {
        return Finding::undecided(q, "no size reaches the best rate steadily");
    };
    let mut text =
        format!("sequential writes of {} reach {} of {} ({:.0} %)", Bytes(size), rate(reached), rate(best), 100.0 * reached / best);
    if let Some(&(s, r)) = from.checked_sub(1).and_then(|i| rates.get(i)) {
        text += &format!(", of {} {} ({:.0} %)", Bytes(s), rate(r), 100.0 * r / best);
    }
    let (last, before) = (rates[rates.len() - 1], rates[rates.len() - 2]);
    if last.1 > 1.25 * before.1 {
        return Finding::at_least(q, last.0 as f64, 0.85, format!("the rate still rises at {}, the largest size written", Bytes(last.0)))
            .evidence(text);
    }
    // How far the two sizes at the edge stand from the line between them.
    let below = from.checked_sub(1).map_or(0.0, |i| rates[i].1 / best);
    let margin = (reached / best / ENOUGH).ln().min(if below > 0.0 { (ENOUGH / below).ln() } else { f64::INFINITY });
    let error = (scatter / 2.0).max(0.015);
    let trust = 0.5 + 0.46 * (margin / (3.0 * error)).clamp(0.0, 1.0);
    if trust < 0.6 {
        return Finding::undecided(q, format!("{} lies on the edge of three quarters of the best rate", Bytes(size))).evidence(text);
    }
    let other = if (reached / best / ENOUGH).ln() < margin * 1.01 { 2 * size } else { size / 2 };
    let mut f = Finding::decided(q, size as f64, trust).rivals([(other as f64, 1.0 - trust)]).evidence(text);
    let small: Vec<f64> = linear.range(..size).map(|t| t.1.ms).collect();
    if small.len() >= 2 && quantile(&small, 1.0) < 1.35 * quantile(&small, 0.0) {
        f = f.evidence(format!(
            "below {} a write takes {} ms whatever its size",
            Bytes(size),
            between(&three(quantile(&small, 0.0)), &three(quantile(&small, 1.0)))
        ));
    }
    f
}

fn combines(linear: &BTreeMap<u64, Time>, random: &BTreeMap<u64, Time>, turns: &BTreeMap<u64, Time>) -> Finding {
    let q = Quantity::CombinesBelow;
    let both: Vec<(u64, f64, f64)> = linear.iter().filter_map(|(s, l)| Some((*s, l.ms / random.get(s)?.ms, random.get(s)?.ms))).collect();
    if both.len() < 4 {
        return Finding::undecided(q, "too few sizes were written in both orders");
    }
    let (largest, at_largest, _) = both[both.len() - 1];
    let ratios = both.iter().map(|b| format!("{} {:.2}", Bytes(b.0), b.1)).collect::<Vec<_>>().join(", ");
    let text = format!("time of a sequential write over that of a random one: {ratios}");
    if at_largest < 0.7 {
        let why =
            format!("random writes of {} cost {:.1} times sequential ones: the order itself costs time", Bytes(largest), 1.0 / at_largest);
        return Finding::undecided(q, why).evidence(text);
    }
    let scatter = |m: &BTreeMap<u64, Time>| median(&m.values().map(|t| t.scatter).collect::<Vec<_>>());
    let noise = (scatter(linear).powi(2) + scatter(random).powi(2)).sqrt() / 1.5;
    if noise > 0.25 {
        return Finding::undecided(q, format!("trials differ by ± {:.0} %", 100.0 * noise)).evidence(text);
    }
    let cheap = |b: &(u64, f64, f64)| b.1 < 0.75;
    let first = both.iter().position(|b| !cheap(b)).unwrap_or(both.len());
    if both[first.min(both.len() - 1)..].iter().any(cheap) {
        return Finding::undecided(q, "some sizes are cheaper in sequential order, and smaller ones are not").evidence(text);
    }
    // How clear the nearest sizes on both sides are.
    let gap = both.iter().map(|b| (b.1 / 0.75).ln().abs()).fold(f64::INFINITY, f64::min);
    let trust = (0.6 + 0.32 * (gap / (2.5 * noise.max(0.05))).clamp(0.0, 1.0)).min(0.92);
    if first == 0 {
        return Finding::decided(q, 0.0, trust).evidence(text);
    }
    if first == 1 {
        return Finding::undecided(q, format!("only the smallest size, {}, is cheaper in sequential order", Bytes(both[0].0)))
            .evidence(text);
    }
    let size = both[first].0;
    let mut f = Finding::decided(q, size as f64, trust)
        .rivals([(2.0 * size as f64, 0.6 * (1.0 - trust)), (size as f64 / 2.0, 0.3 * (1.0 - trust))])
        .evidence(text);
    let two: Vec<f64> = both[..first].iter().filter_map(|b| Some(turns.get(&b.0)?.ms / b.2)).collect();
    if !two.is_empty() {
        let text = match median(&two) {
            r if r > 0.8 => "with two AUs interleaved nothing is gained: one buffer, for one AU at a time".into(),
            r if r < 0.65 => {
                f.confidence = f.confidence.min(0.75);
                f = f.caveat("two AUs interleaved are as cheap: several buffers, or random order is slow inside small erase blocks");
                "two AUs interleaved are cheaper than random order as well".to_string()
            }
            r => format!("with two AUs interleaved a write takes {:.0} % of a random one", 100.0 * r),
        };
        f = f.evidence(text);
    }
    f
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(ms: impl Fn(u64) -> f64) -> BTreeMap<u64, Time> {
        (9..=18).map(|k| (1 << k, Time { ms: ms(1 << k), scatter: 0.02 })).collect()
    }

    /// Q14: the Toshiba eMMC, milliseconds a write.
    #[test]
    fn toshiba_is_worth_it_from_32_kib() {
        let ms = [25.5, 12.9, 6.7, 3.85, 4.45, 4.76, 4.89, 4.91, 4.92, 4.93];
        let f = efficient(&table(|s| ms[18 - s.ilog2() as usize]));
        assert!(f.number() == Some(32768.0) && f.confidence > 0.9, "{f:?}");
        assert!(f.evidence.iter().any(|e| e.contains("whatever its size")), "{f:?}");
        let rising = efficient(&table(|s| 50.0 + s as f64 / 90e3));
        assert!(rising.value.is_none() && rising.at_least.is_some(), "{rising:?}");
    }

    /// Q16: a buffer of 16 KiB for one stream.
    #[test]
    fn a_buffer_shows_below_its_size() {
        let unit = |s: u64| 4.5 + s as f64 / 12e3;
        let linear = table(|s| if s < 16384 { unit(16384) * s as f64 / 16384.0 + 0.1 } else { unit(s) });
        let f = combines(&linear, &table(unit), &table(unit));
        assert!(f.number() == Some(16384.0) && f.confidence >= 0.8, "{f:?}");
        assert!(f.evidence[1].contains("one AU at a time"), "{f:?}");
        let none = combines(&table(unit), &table(unit), &table(unit));
        assert_eq!(none.number(), Some(0.0), "{none:?}");
        let pays = combines(&table(unit), &table(|s| 200.0 + unit(s)), &table(unit));
        assert!(pays.value.is_none(), "{pays:?}");
    }
}
