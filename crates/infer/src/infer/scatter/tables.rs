//! Odd regions from `flashbench -s`: stretches of the device whose reads take clearly longer, or shorter, than the rest.
//!
//! Single slow reads are no region, and a card whose reads fall into two kinds everywhere (a plane, a page that needs a
//! second sensing) has no odd region either: only what lasts over neighbouring positions counts.

use crate::finding::{Finding, Quantity};
use crate::infer::stats::{mad, median, quantile};
use crate::samples::import::{ScatterTest, Tables};
use crate::units::{between, three};

/// Positions a region must hold at least.
const LEAST: usize = 4;
/// Windows of this many positions are compared with the whole.
const WINDOW: usize = 5;
/// The least difference worth a word.
const SMALLEST: f64 = 0.08;

pub fn infer(tables: &Tables) -> Vec<Finding> {
    let Some(first) = tables.scatter.first() else { return vec![] };
    let runs: Vec<Vec<(f64, f64)>> = tables.scatter.iter().map(sorted).collect();
    let end = |r: &Vec<(f64, f64)>| r.last().map_or(0.0, |p| p.0);
    // Runs over other stretches are not the same question.
    let same: Vec<&Vec<(f64, f64)>> = runs.iter().filter(|r| (end(r) / end(&runs[0]) - 1.0).abs() < 0.02).collect();
    let mut f = judge(&same);
    let n = same.len();
    f.from = vec![format!("scatter table ({}, {n} {})", tables.at(first.place), if n == 1 { "run" } else { "runs" })];
    vec![f]
}

fn sorted(t: &ScatterTest) -> Vec<(f64, f64)> {
    let mut p: Vec<(f64, f64)> = t.points.iter().copied().filter(|p| p.1 > 0.0).collect();
    nandscope_stats::ascending(&mut p, |a| a.0);
    p
}

/// A stretch in MiB with its median time in ms.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    pub from: f64,
    pub to: f64,
    pub ms: f64,
    /// Positions in it.
    pub n: usize,
}

/// The regions of one run: stretches where windows of neighbours differ from the usual time, one way or the other.
pub fn regions(points: &[(f64, f64)]) -> (Vec<Region>, f64, f64) {
    let all: Vec<f64> = points.iter().map(|p| p.1).collect();
    let usual = median(&all);
    let smooth: Vec<f64> = (0..points.len())
        .map(|i| {
            let a = i.saturating_sub(WINDOW / 2).min(points.len().saturating_sub(WINDOW));
            median(&all[a..(a + WINDOW).min(all.len())])
        })
        .collect();
    // Scatter of neighbours, not of the whole: a region must not widen its own yardstick.
    let near: Vec<f64> = points.iter().zip(&smooth).map(|(p, s)| p.1 - s).collect();
    let noise = (1.4 * mad(&near)).max(0.15 * mad(&all));
    let line = (5.0 * noise / (WINDOW as f64).sqrt() * 1.25).max(SMALLEST * usual);
    let mut out: Vec<Region> = vec![];
    let mut i = 0;
    while i < points.len() {
        let side = |j: usize| match smooth[j] - usual {
            d if d > line => 1,
            d if d < -line => -1,
            _ => 0,
        };
        let s = side(i);
        let mut j = i + 1;
        while j < points.len() && side(j) == s {
            j += 1;
        }
        // Of a region's own positions nearly all must lie on its side: a mixture of two kinds is none.
        let inside: Vec<f64> = all[i..j].to_vec();
        let agree = inside.iter().filter(|&&t| (t - usual) * s as f64 > 0.5 * line).count();
        if s != 0 && j - i >= LEAST && agree * 10 >= inside.len() * 8 {
            out.push(Region { from: points[i].0, to: points[j - 1].0, ms: median(&inside), n: j - i });
        }
        i = j;
    }
    (out, usual, noise)
}

/// The region as a whole: neighbours of one kind with at most a position between them are one.
fn joined(mut all: Vec<Region>, step: f64, usual: f64) -> Vec<Region> {
    let mut out: Vec<Region> = vec![];
    for r in all.drain(..) {
        match out.last_mut() {
            Some(l) if r.from - l.to < 3.5 * step && (r.ms > usual) == (l.ms > usual) => {
                l.ms = (l.ms * l.n as f64 + r.ms * r.n as f64) / (l.n + r.n) as f64;
                (l.to, l.n) = (r.to, l.n + r.n);
            }
            _ => out.push(r),
        }
    }
    out
}

fn judge(runs: &[&Vec<(f64, f64)>]) -> Finding {
    let q = Quantity::OddRegions;
    let points = runs[0];
    let (first, usual, noise) = regions(points);
    let step = (points[points.len() - 1].0 - points[0].0) / (points.len() - 1) as f64;
    let all: Vec<f64> = points.iter().map(|p| p.1).collect();
    let spread = quantile(&all, 0.9) / quantile(&all, 0.1).max(1e-9);
    let text = format!(
        "{} reads over {} MiB: half of them within {} ms, the longest {} ms",
        points.len(),
        three(points[points.len() - 1].0),
        between(&three(quantile(&all, 0.25)), &three(quantile(&all, 0.75))),
        three(quantile(&all, 1.0))
    );
    let seen_again = |r: &Region| {
        runs[1..].iter().all(|other| {
            let here: Vec<f64> = other.iter().filter(|p| p.0 >= r.from && p.0 <= r.to).map(|p| p.1).collect();
            let rest = median(&other.iter().map(|p| p.1).collect::<Vec<_>>());
            here.is_empty() || (median(&here) - rest) * (r.ms - usual) > 0.0 && (median(&here) / rest - 1.0).abs() > SMALLEST / 2.0
        })
    };
    let odd: Vec<Region> = joined(first, step, usual).into_iter().filter(seen_again).collect();
    let share = odd.iter().map(|r| r.n).sum::<usize>() as f64 / points.len() as f64;
    if share > 0.6 || odd.len() > 12 {
        let why = format!("the times change from place to place all over ({} stretches): no rule to call a region odd by", odd.len());
        return Finding::undecided(q, why).evidence(text);
    }
    if noise > 0.35 * usual && odd.is_empty() {
        let why = format!("neighbouring reads differ by ± {:.0} %: a region could hide in that", 100.0 * noise / usual);
        return Finding::undecided(q, why).evidence(text);
    }
    if odd.is_empty() {
        let trust = if spread < 1.3 { 0.9 } else { 0.82 };
        return Finding::decided(q, 0.0, trust).evidence(text);
    }
    let clear = odd.iter().map(|r| (r.ms - usual).abs() / noise.max(0.01 * usual)).fold(f64::INFINITY, f64::min);
    let longest = odd.iter().map(|r| r.n).min().unwrap_or(0);
    let trust = 0.6 + 0.15 * (clear / 8.0).min(1.0) + 0.1 * (longest as f64 / 12.0).min(1.0) + if runs.len() > 1 { 0.08 } else { 0.0 };
    let mut f = Finding::decided(q, odd.len() as f64, trust.min(0.93));
    for r in &odd {
        f.evidence.push(format!(
            "reads from {} to {} MiB take {} ms, elsewhere {} ms ({} positions)",
            three(r.from),
            three(r.to + step),
            three(r.ms),
            three(usual),
            r.n
        ));
    }
    f.evidence(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::import::read;

    /// 512 positions, 7.5 MiB apart; `ms` of a position number.
    fn log(ms: impl Fn(usize) -> f64) -> Finding {
        let wander = [0.003, -0.004, 0.001, 0.006, -0.002, 0.0, 0.005];
        let row = |i: usize| format!("{:.6}\t{:.6}\n", i as f64 * 7.5, ms(i) + wander[i % 7]);
        infer(&read(&[("t", (0..512).map(row).collect::<String>())]).unwrap()).remove(0)
    }

    #[test]
    fn regions_and_their_absence() {
        let flat = log(|i| if i % 53 == 0 { 2.5 } else { 0.8 });
        assert!(flat.number() == Some(0.0) && flat.confidence > 0.8, "{flat:?}");
        let one = log(|i| if i < 20 { 0.55 } else { 0.8 });
        assert!(one.number() == Some(1.0) && one.evidence[0].contains("from 0.00 to 150 MiB"), "{one:?}");
        let two = log(|i| if i < 20 || (300..340).contains(&i) { 1.1 } else { 0.8 });
        assert!(two.number() == Some(2.0) && two.confidence >= 0.8, "{two:?}");
    }

    #[test]
    fn two_kinds_everywhere_are_no_region_and_chaos_is_undecided() {
        let mixed = log(|i| if (i * 7919) % 3 == 0 { 1.0 } else { 0.8 });
        assert!(mixed.number() == Some(0.0), "{mixed:?}");
        let chaos = log(|i| 0.5 + ((i * 2_654_435_761) % 1000) as f64 / 400.0);
        assert!(chaos.value.is_none(), "{chaos:?}");
    }
}
