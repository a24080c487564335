//! Two or many cards beside each other: what differs, how surely, and by how much.
//!
//! Sizes and counts are compared by the probabilities their findings give to each value; costs and rates by their intervals;
//! runs of one experiment by the samples of their common conditions (Mann-Whitney, Holm's correction, bootstrap of the ratio).

use crate::finding::{Finding, Findings, Quantity};
use crate::infer::stats::{median, quantile};
use crate::samples::metric::Metric;
use crate::samples::{Run, Sample};
use crate::units::three;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use serde::Serialize;

/// What is compared: a report, a survey entry, or a published card.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// A, B, ... in the output.
    pub label: String,
    pub name: String,
    /// Part number and identity numbers; equal for cards that are sold as the same.
    pub identity: Option<String>,
    pub findings: Findings,
    pub metrics: Vec<Metric>,
    pub runs: Vec<Run>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Same,
    Differs,
    /// The data do not carry either.
    Unclear,
}

/// One quantity of two subjects.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    pub what: String,
    pub a: String,
    pub b: String,
    pub outcome: Outcome,
    /// Of the outcome; for `Unclear` that of "differs" as far as it is known.
    pub probability: f64,
    /// Ratio b / a with its 95 % interval, for costs and rates.
    pub ratio: Option<[f64; 3]>,
}

/// Probability of a difference from which on it is called one, and below which it is called none.
const DIFFERS: f64 = 0.9;
/// Ratios closer to 1 than this make no difference to anybody.
const NEGLIGIBLE: f64 = 0.05;

/// What a finding says of a value, and what it leaves open.
fn probability(f: &Finding, v: f64) -> f64 {
    if f.number() == Some(v) { f.confidence } else { f.rivals.iter().find(|r| r.value.0 == v).map_or(0.0, |r| r.probability) }
}

fn shown(f: Option<&Finding>) -> String {
    match f {
        Some(f) => match (f.number(), f.at_least) {
            (Some(v), _) => format!("{} ({:.0} %)", f.quantity.show(v), (f.confidence * 100.0).floor()),
            (None, Some(b)) => format!("at least {} ({:.0} %)", f.quantity.show(b.0), (f.confidence * 100.0).floor()),
            (None, None) => "undecided".into(),
        },
        None => "not measured".into(),
    }
}

/// All quantities that either of the two has something to say about.
pub fn findings(a: &Subject, b: &Subject) -> Vec<Difference> {
    let pairs = Quantity::ALL.iter().map(|&q| (q, a.findings.get(q), b.findings.get(q)));
    pairs
        .filter(|(_, x, y)| [x, y].iter().any(|f| f.is_some_and(|f| f.value.is_some() || f.at_least.is_some())))
        .map(|(q, x, y)| finding(q, x, y))
        .collect()
}

fn finding(q: Quantity, a: Option<&Finding>, b: Option<&Finding>) -> Difference {
    let make = |outcome, probability, ratio| Difference { what: q.title().into(), a: shown(a), b: shown(b), outcome, probability, ratio };
    let (Some(x), Some(y)) = (a, b) else { return make(Outcome::Unclear, 0.0, None) };
    if let (Some(i), Some(j), Some(v), Some(w)) = (x.interval, y.interval, x.number(), y.number()) {
        let ratio = ratio_of([v, i[0], i[1]], [w, j[0], j[1]]);
        let sure = x.confidence.min(y.confidence);
        return match ratio {
            Some(r) => make(outcome(r), sure, Some(r)),
            None => make(Outcome::Unclear, 0.0, None),
        };
    }
    let bound = |f: &Finding| f.at_least.map(|n| n.0);
    match (x.number(), y.number(), bound(x), bound(y)) {
        (Some(v), Some(w), _, _) => {
            let mut values: Vec<f64> = [v, w].into_iter().chain(x.rivals.iter().chain(&y.rivals).map(|r| r.value.0)).collect();
            values.sort_by(f64::total_cmp);
            values.dedup();
            let same: f64 = values.iter().map(|&v| probability(x, v) * probability(y, v)).sum();
            let open = |f: &Finding| (1.0 - values.iter().map(|&v| probability(f, v)).sum::<f64>()).max(0.0);
            // What neither names might agree, too: the smaller remainder bounds it.
            let at_most = same + open(x).min(open(y));
            if 1.0 - at_most >= DIFFERS && v != w {
                make(Outcome::Differs, 1.0 - at_most, None)
            } else if v == w && same >= 0.6 {
                make(Outcome::Same, same, None)
            } else {
                make(Outcome::Unclear, 1.0 - at_most, None)
            }
        }
        (Some(v), None, _, Some(n)) | (None, Some(v), Some(n), _) if v < n => {
            let p = x.confidence * y.confidence;
            make(if p >= DIFFERS * DIFFERS { Outcome::Differs } else { Outcome::Unclear }, p, None)
        }
        _ => make(Outcome::Unclear, 0.0, None),
    }
}

/// Ratio b / a of two values with 95 % intervals, errors added in the logarithm.
fn ratio_of(a: [f64; 3], b: [f64; 3]) -> Option<[f64; 3]> {
    if a.iter().chain(&b).any(|&v| !(v.is_finite() && v > 0.0)) {
        return None;
    }
    let half = |x: [f64; 3]| (x[2] / x[1]).ln() / 2.0;
    let (mid, width) = ((b[0] / a[0]).ln(), half(a).hypot(half(b)));
    Some([mid.exp(), (mid - width).exp(), (mid + width).exp()])
}

fn outcome([_, low, high]: [f64; 3]) -> Outcome {
    let near = |v: f64| (1.0 - NEGLIGIBLE..=1.0 / (1.0 - NEGLIGIBLE)).contains(&v);
    match () {
        _ if near(low) && near(high) => Outcome::Same,
        _ if high < 1.0 || low > 1.0 => Outcome::Differs,
        _ => Outcome::Unclear,
    }
}

/// A condition that both measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Condition {
    pub label: String,
    /// Median times in µs.
    pub a: f64,
    pub b: f64,
    /// b / a of the medians, with its 95 % bootstrap interval.
    pub ratio: [f64; 3],
    /// Mann-Whitney, two-sided, before correction.
    pub p: f64,
    /// Still a difference after Holm's correction over all conditions of the experiment.
    pub differs: bool,
}

/// One experiment that both ran.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Experiment {
    pub name: String,
    /// Conditions with at least five samples on either side, the largest difference first.
    pub conditions: Vec<Condition>,
    /// Median of the ratios with its 95 % bootstrap interval over the conditions: what holds for all of them together.
    pub ratio: [f64; 3],
    pub outcome: Outcome,
}

impl Experiment {
    pub fn differing(&self) -> usize {
        self.conditions.iter().filter(|c| c.differs).count()
    }
}

/// Samples of two reports, condition by condition.
pub fn samples(a: &Subject, b: &Subject) -> Vec<Experiment> {
    a.runs.iter().filter_map(|x| experiment(x, b.runs.iter().find(|y| y.experiment == x.experiment)?)).collect()
}

fn experiment(a: &Run, b: &Run) -> Option<Experiment> {
    use std::collections::BTreeMap;
    let gather = |run: &Run| {
        let mut of: BTreeMap<(String, u8, u64), Vec<f64>> = BTreeMap::new();
        for c in &run.cells {
            run.of(c.id).for_each(|s: &Sample| of.entry((c.label.clone(), s.role, s.len)).or_default().push(s.took.micros()));
        }
        of
    };
    let (x, y) = (gather(a), gather(b));
    let roles: &[&str] = crate::experiment::by_name(&a.experiment).map_or(&[], |e| e.about().roles);
    let mut conditions: Vec<Condition> = vec![];
    for (key, t) in &x {
        let Some(u) = y.get(key).filter(|u| u.len() >= 5 && t.len() >= 5) else { continue };
        let role = roles.get(key.1 as usize).map_or(String::new(), |r| format!(", {r}"));
        let size = if key.0.contains("iB") { String::new() } else { format!(", {}", crate::units::Bytes(key.2)) };
        let (m, n) = (median(t), median(u));
        if m > 0.0 && n > 0.0 {
            let ratio = bootstrap_ratio(t, u);
            conditions.push(Condition {
                label: format!("{}{role}{size}", key.0),
                a: m,
                b: n,
                ratio,
                p: mann_whitney(t, u),
                differs: false,
            });
        }
    }
    if conditions.is_empty() {
        return None;
    }
    // Holm: the smallest p against 5 % / m, the next against 5 % / (m - 1), ...
    conditions.sort_by(|c, d| c.p.total_cmp(&d.p));
    let count = conditions.len();
    for (i, c) in conditions.iter_mut().enumerate() {
        if c.p > 0.05 / (count - i) as f64 {
            break;
        }
        c.differs = outcome(c.ratio) == Outcome::Differs;
    }
    let ratios: Vec<f64> = conditions.iter().map(|c| c.ratio[0]).collect();
    let ratio = bootstrap_ratio(&[1.0], &ratios);
    let differing = conditions.iter().any(|c| c.differs);
    // Single conditions have few samples and share one error rate; a shift of all of them shows only together.
    let outcome = match outcome(ratio) {
        Outcome::Same if differing => Outcome::Differs,
        o if conditions.len() >= 6 || o == Outcome::Unclear => o,
        _ if differing => Outcome::Differs,
        _ => Outcome::Unclear,
    };
    conditions.sort_by(|c, d| d.differs.cmp(&c.differs).then(d.ratio[0].ln().abs().total_cmp(&c.ratio[0].ln().abs())));
    Some(Experiment { name: a.experiment.clone(), conditions, ratio, outcome })
}

/// Ratio of the medians with its 95 % percentile interval; the same samples give the same interval.
fn bootstrap_ratio(a: &[f64], b: &[f64]) -> [f64; 3] {
    let mut rng = Pcg64Mcg::new(0x6e61_6e64_7363_6f70);
    // Two thousand samples say as much about a median as fifty thousand.
    let cut = |x: &[f64]| -> Vec<f64> { x.iter().step_by(x.len().div_ceil(2000)).copied().collect() };
    let (a, b) = (cut(a), cut(b));
    let draws = if a.len().max(b.len()) > 300 { 100 } else { 300 };
    let mut draw = |x: &[f64]| median(&(0..x.len()).map(|_| x[(rng.next_u64() % x.len() as u64) as usize]).collect::<Vec<f64>>());
    let ratios: Vec<f64> = (0..draws).map(|_| draw(&b) / draw(&a)).collect();
    [median(&b) / median(&a), quantile(&ratios, 0.025), quantile(&ratios, 0.975)]
}

/// Two-sided p of the Mann-Whitney U test: normal approximation with correction for ties and continuity.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> f64 {
    let (m, n) = (a.len() as f64, b.len() as f64);
    let mut all: Vec<(f64, bool)> = a.iter().map(|&v| (v, true)).chain(b.iter().map(|&v| (v, false))).collect();
    all.sort_by(|x, y| x.0.total_cmp(&y.0));
    let (mut ranks, mut ties, mut i) = (0.0, 0.0, 0);
    while i < all.len() {
        let j = i + all[i..].iter().take_while(|x| x.0 == all[i].0).count();
        let t = (j - i) as f64;
        ranks += (i + j + 1) as f64 / 2.0 * all[i..j].iter().filter(|x| x.1).count() as f64;
        ties += t * t * t - t;
        i = j;
    }
    let u = ranks - m * (m + 1.0) / 2.0;
    let total = m + n;
    let variance = m * n / 12.0 * (total + 1.0 - ties / (total * (total - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let z = ((u - m * n / 2.0).abs() - 0.5).max(0.0) / variance.sqrt();
    erfc(z / std::f64::consts::SQRT_2)
}

/// Complementary error function, to 1.2e-7 (Numerical Recipes' rational Chebyshev fit).
fn erfc(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.5 * x.abs());
    const C: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let poly = C.iter().rev().fold(0.0, |s, c| s * t + c);
    let v = t * (-x * x + poly).exp();
    if x >= 0.0 { v } else { 2.0 - v }
}

/// Figures of benchmarks with equal conditions. Passes give an interval; single figures only a ratio.
pub fn metrics(a: &Subject, b: &Subject) -> Vec<Difference> {
    let mut out = vec![];
    for x in &a.metrics {
        let Some(y) = b.metrics.iter().find(|y| y.name == x.name && y.conditions == x.conditions && y.unit == x.unit) else { continue };
        if !(x.value > 0.0 && y.value > 0.0) {
            continue;
        }
        let shown = |m: &Metric| format!("{} {}", three(m.value), m.unit);
        let (outcome, ratio) = if x.passes.len() >= 3 && y.passes.len() >= 3 {
            let r = bootstrap_ratio(&x.passes, &y.passes);
            (outcome(r), r)
        } else {
            (Outcome::Unclear, [y.value / x.value, f64::NAN, f64::NAN])
        };
        out.push(Difference {
            what: format!("{}, {}", x.name, x.conditions),
            a: shown(x),
            b: shown(y),
            outcome,
            probability: 0.95,
            ratio: Some(ratio),
        });
    }
    out
}

/// What should be read first: cards sold as the same that are not.
pub fn headline(a: &Subject, b: &Subject) -> Vec<String> {
    let same_part = a.identity.is_some() && a.identity == b.identity;
    let inside = [Quantity::OpenAusLinear, Quantity::OpenAusRandom, Quantity::EraseBlock, Quantity::Page, Quantity::WriteUnit];
    let mut parts = vec![];
    for q in inside {
        let (Some(x), Some(y)) = (a.findings.get(q), b.findings.get(q)) else { continue };
        let d = finding(q, Some(x), Some(y));
        if d.outcome != Outcome::Differs {
            continue;
        }
        let text =
            |f: &Finding| f.number().map(|v| q.show(v)).or(f.at_least.map(|v| format!("at least {}", q.show(v.0)))).unwrap_or_default();
        parts.push(match q {
            Quantity::OpenAusLinear | Quantity::OpenAusRandom => {
                let order = if q == Quantity::OpenAusLinear { "linear" } else { "random" };
                let noun = if y.number() == Some(1.0) { "open AU" } else { "open AUs" };
                format!("{} has {} {noun} ({order}) instead of {}", b.label, text(y), text(x))
            }
            _ => format!("{} has {} of {} instead of {}", b.label, with_article(q.title()), text(y), text(x)),
        });
    }
    match (parts.is_empty(), same_part) {
        (true, true) => vec![format!(
            "same part number ({}), and nothing inside that differs as far as was measured",
            a.identity.clone().unwrap_or_default()
        )],
        (true, false) => vec![],
        (false, true) => {
            vec![format!("same part number ({}), different inside: {}", a.identity.clone().unwrap_or_default(), parts.join("; "))]
        }
        (false, false) => parts,
    }
}

fn with_article(word: &str) -> String {
    format!("{} {word}", if word.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" })
}

/// "1.6x faster", "1.6x slower", "as fast".
pub fn faster(ratio: f64) -> String {
    match ratio {
        r if (0.97..=1.03).contains(&r) => "as fast".into(),
        r if r > 1.0 => format!("{}x faster", short(r)),
        r => format!("{}x slower", short(1.0 / r)),
    }
}

fn short(r: f64) -> String {
    if r >= 9.95 { format!("{r:.0}") } else { format!("{r:.1}") }
}

/// One line for each figure that published cards have, too: "writes ... 1.6x faster than ...".
pub fn references(s: &Subject, published: &[Subject]) -> Vec<String> {
    let mut out = vec![];
    // Of many sizes the first and the last say enough.
    let of = |name: &str| s.metrics.iter().filter(|m| m.name == name).collect::<Vec<_>>();
    let ends = |m: &&Metric| {
        let all = of(&m.name);
        let shared: Vec<&&Metric> = all.iter().filter(|x| published.iter().any(|p| p.metrics.iter().any(|n| n.key() == x.key()))).collect();
        shared.first().is_some_and(|f| f.key() == m.key()) || shared.last().is_some_and(|l| l.key() == m.key())
    };
    for m in s.metrics.iter().filter(ends) {
        for p in published.iter().filter(|p| p.name != s.name) {
            let Some(n) = p.metrics.iter().find(|n| n.name == m.name && n.conditions == m.conditions && n.unit == m.unit) else { continue };
            if !(m.value > 0.0 && n.value > 0.0) {
                continue;
            }
            let ratio = if m.more_is_better() { m.value / n.value } else { n.value / m.value };
            let than = if faster(ratio) == "as fast" { "as" } else { "than" };
            out.push(format!(
                "{}, {}: {} {than} {} ({} against {} {})",
                m.name,
                m.conditions,
                faster(ratio),
                p.name,
                three(m.value),
                three(n.value),
                m.unit
            ));
        }
    }
    for q in [Quantity::OpenAusLinear, Quantity::OpenAusRandom, Quantity::EraseBlock, Quantity::CloseCostMs] {
        let Some(f) = s.findings.get(q).filter(|f| f.value.is_some() || f.at_least.is_some()) else { continue };
        let others: Vec<String> = published
            .iter()
            .filter(|p| p.name != s.name)
            .filter_map(|p| Some(format!("{} {}", p.name, q.show(p.findings.get(q)?.number()?))))
            .collect();
        if !others.is_empty() {
            out.push(format!("{}: {}; published: {}", q.title(), shown(Some(f)), others.join(", ")));
        }
    }
    out
}

/// Two groups of cards: what can be said of the lots they come from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lots {
    pub what: String,
    pub a: Vec<f64>,
    pub b: Vec<f64>,
    /// Exact permutation test of the difference of the mean ranks, two-sided.
    pub p: f64,
    /// The smallest p that groups of these sizes could give.
    pub least: f64,
}

pub fn lots(a: &[Subject], b: &[Subject]) -> Vec<Lots> {
    let mut out = vec![];
    for q in Quantity::ALL {
        let of = |all: &[Subject]| -> Vec<f64> { all.iter().filter_map(|s| s.findings.value(q, 0.75)).collect() };
        let (x, y) = (of(a), of(b));
        if x.len() >= 2 && y.len() >= 2 {
            let (p, least) = permutation(&x, &y);
            out.push(Lots { what: q.title().into(), a: x, b: y, p, least });
        }
    }
    out
}

/// Two-sided p of the difference of mean ranks over all (or, of very many, 20 000 drawn) ways to part the values; and the smallest
/// p possible.
pub fn permutation(a: &[f64], b: &[f64]) -> (f64, f64) {
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    let rank = |v: f64| all.iter().filter(|x| **x < v).count() as f64 + all.iter().filter(|x| **x == v).count() as f64 / 2.0;
    let ranks: Vec<f64> = all.iter().map(|&v| rank(v)).collect();
    let (m, total) = (a.len(), all.len());
    let expected = ranks.iter().sum::<f64>() * m as f64 / total as f64;
    let seen = (ranks[..m].iter().sum::<f64>() - expected).abs() - 1e-9;
    let ways: f64 = (0..m).map(|i| (total - i) as f64 / (i + 1) as f64).product();
    let least = if a.len() == b.len() { 2.0 / ways } else { 1.0 / ways };
    if total <= 18 {
        let mut hits = 0.0;
        let mut count = 0.0;
        for mask in 0u32..1 << total {
            if mask.count_ones() as usize == m {
                count += 1.0;
                let sum: f64 = (0..total).filter(|i| mask >> i & 1 == 1).map(|i| ranks[i]).sum();
                hits += f64::from((sum - expected).abs() >= seen);
            }
        }
        return (hits / count, least);
    }
    let mut rng = Pcg64Mcg::new(7);
    let mut order: Vec<f64> = ranks.clone();
    let rounds = 20_000;
    let hits = (0..rounds)
        .filter(|_| {
            for i in 0..m {
                order.swap(i, i + (rng.next_u64() % (total - i) as u64) as usize);
            }
            (order[..m].iter().sum::<f64>() - expected).abs() >= seen
        })
        .count();
    ((hits + 1) as f64 / (rounds + 1) as f64, least)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(label: &str, findings: Vec<Finding>) -> Subject {
        Subject {
            label: label.into(),
            name: label.into(),
            identity: Some("0x03 SD32G".into()),
            findings: Findings(findings),
            ..Subject::default()
        }
    }

    #[test]
    fn same_part_number_different_controller() {
        let a = card("A", vec![Finding::decided(Quantity::OpenAusLinear, 5.0, 0.97)]);
        let b = card("B", vec![Finding::decided(Quantity::OpenAusLinear, 1.0, 0.96)]);
        assert_eq!(headline(&a, &b), ["same part number (0x03 SD32G), different inside: B has 1 open AU (linear) instead of 5"]);
        let d = &findings(&a, &b)[0];
        assert!(d.outcome == Outcome::Differs && d.probability > 0.9, "{d:?}");
        // The same values are no difference, doubtful ones no verdict.
        assert_eq!(findings(&a, &a)[0].outcome, Outcome::Same);
        let doubt = card("C", vec![Finding::decided(Quantity::OpenAusLinear, 1.0, 0.6).rivals([(5.0, 0.3)])]);
        assert_eq!(findings(&a, &doubt)[0].outcome, Outcome::Unclear);
        assert!(headline(&a, &doubt)[0].contains("nothing inside that differs"));
    }

    #[test]
    fn bounds_are_compared_as_bounds() {
        let many = card("A", vec![Finding::at_least(Quantity::OpenAusLinear, 64.0, 0.95, "x")]);
        let few = card("B", vec![Finding::decided(Quantity::OpenAusLinear, 2.0, 0.97)]);
        assert_eq!(findings(&many, &few)[0].outcome, Outcome::Differs);
        assert_eq!(findings(&many, &many)[0].outcome, Outcome::Unclear, "at least 64 may be 65 or 6500");
    }

    #[test]
    fn costs_are_compared_by_their_intervals() {
        let of = |v: f64, half: f64| {
            let mut f = Finding::decided(Quantity::CloseCostMs, v, 0.95);
            f.interval = Some([v - half, v + half]);
            card("A", vec![f])
        };
        assert_eq!(findings(&of(100.0, 2.0), &of(200.0, 4.0))[0].outcome, Outcome::Differs);
        assert_eq!(findings(&of(100.0, 30.0), &of(120.0, 30.0))[0].outcome, Outcome::Unclear);
        assert_eq!(findings(&of(100.0, 1.0), &of(100.5, 1.0))[0].outcome, Outcome::Same);
    }

    #[test]
    fn textbook_tests() {
        // Complete separation of 10 and 10: p about 1.6e-4 with the continuity correction.
        let (x, y): (Vec<f64>, Vec<f64>) = ((0..10).map(f64::from).collect(), (10..20).map(f64::from).collect());
        let p = mann_whitney(&x, &y);
        assert!((1.5e-4..2.0e-4).contains(&p), "{p}");
        assert_eq!(mann_whitney(&[3.0; 8], &[3.0; 8]), 1.0);
        assert!((erfc(1.0) - 0.157_299_2).abs() < 2e-7);
        // Four against four, completely apart: 2 of 70 ways.
        assert_eq!(permutation(&[5.0, 5.0, 5.0, 5.0], &[1.0, 1.0, 1.0, 1.0]), (2.0 / 70.0, 2.0 / 70.0));
        assert!(permutation(&[5.0, 4.0, 6.0], &[5.0, 4.0, 6.0]).0 > 0.9);
    }

    #[test]
    fn words() {
        assert_eq!((faster(1.6).as_str(), faster(0.5).as_str(), faster(1.01).as_str()), ("1.6x faster", "2.0x slower", "as fast"));
    }
}
