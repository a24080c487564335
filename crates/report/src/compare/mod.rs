//! Two or many cards beside each other: what differs, how surely, and by how much.
//!
//! Sizes and counts are compared by the probabilities their findings give to each value; costs and rates by their intervals;
//! runs of one experiment by the samples of their common conditions (Mann-Whitney, Holm's correction, bootstrap of the ratio).

pub mod bench;
mod lots;
mod rewrites;
mod samples;
mod trend;

pub use crate::infer::stats::mann_whitney;
pub use lots::{Centres, Lots, centres, hosts_apart, lots, permutation, spread};
pub use rewrites::{policies_differ, rewrites};
pub use samples::{Condition, Experiment, samples};
pub use trend::{Trend, trend};

use crate::finding::{Finding, Findings, Quantity, percent};
use crate::infer::stats::bootstrap_ratio;
use crate::samples::Run;
use crate::samples::metric::{Metric, Over};
use crate::units::three;
use serde::Serialize;

/// What is compared: a report, a survey entry, or a published card.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// A, B, ... in the output.
    pub label: String,
    pub name: String,
    /// Where it holds less than it reports: that, in words.
    pub counterfeit: Option<String>,
    /// Where it fails, or loses what is written: that, in words.
    pub failing: Option<String>,
    /// Part number and identity numbers; equal for cards that are sold as the same.
    pub identity: Option<String>,
    pub findings: Findings,
    /// Figures that do not contradict each other.
    pub metrics: Vec<Metric>,
    /// One name for the host, where it is known: figures are of the host as well as of the card.
    pub host: Option<String>,
    /// The card is a model.
    pub simulated: bool,
    /// Why figures were left out.
    pub left_out: Vec<String>,
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
    /// Ratio b / a with its 95 % interval, for costs and rates; the interval is not a number where there is none.
    pub ratio: Option<[f64; 3]>,
    /// Why there is no interval, or no ratio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The ratio in words: "2.8x slower".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
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
            (Some(v), _) => format!("{} ({:.0} %)", f.quantity.show(v), percent(f.confidence)),
            (None, Some(b)) => format!("at least {} ({:.0} %)", f.quantity.show(b.0), percent(f.confidence)),
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
    let make = |outcome, probability, ratio| Difference {
        what: q.title().into(),
        a: shown(a),
        b: shown(b),
        outcome,
        probability,
        ratio,
        why: None,
        words: None,
    };
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

/// Figures of benchmarks with equal conditions. Passes give an interval; single figures only a ratio, and figures of two hosts none.
pub fn metrics(a: &Subject, b: &Subject) -> Vec<Difference> {
    let mut out = vec![];
    for x in &a.metrics {
        let Some(y) = b.metrics.iter().find(|y| y.name == x.name && y.conditions == x.conditions && y.unit == x.unit) else { continue };
        if !(x.value > 0.0 && y.value > 0.0) {
            continue;
        }
        let shown = |m: &Metric| format!("{} {}", three(m.value), m.unit);
        let plain = [y.value / x.value, f64::NAN, f64::NAN];
        let (outcome, ratio, why) = match (&a.host, &b.host) {
            (Some(h), Some(i)) if h != i => (Outcome::Unclear, None, Some(format!("not compared: measured on {h} and on {i}"))),
            _ if x.name.starts_with("busy ") && rewrites::policies_differ(a, b) => {
                (Outcome::Unclear, None, Some("not compared: the cards rewrite at other moments".into()))
            }
            // The longest of some passes is no sample of anything that could be drawn again.
            _ if x.over != Over::Median => {
                (Outcome::Unclear, Some(plain), Some(format!("the {} of all calls: no interval", x.over.word())))
            }
            _ if x.passes.len() >= 3 && y.passes.len() >= 3 => {
                let r = bootstrap_ratio(&x.passes, &y.passes);
                (outcome(r), Some(r), None)
            }
            _ if x.passes.is_empty() && y.passes.is_empty() => (Outcome::Unclear, Some(plain), Some("one figure each: no interval".into())),
            _ => (Outcome::Unclear, Some(plain), Some("an interval needs three passes each".into())),
        };
        let words = ratio.map(|r| {
            let r = if x.more_is_better() { r[0] } else { 1.0 / r[0] };
            // A difference that is shown is none that "as fast" would describe, however small.
            if outcome == Outcome::Differs { slightly(r) } else { faster(r) }
        });
        out.push(Difference {
            what: format!("{}, {}", x.name, x.conditions),
            a: shown(x),
            b: shown(y),
            outcome,
            probability: 0.95,
            ratio,
            why,
            words,
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
                let order = if q == Quantity::OpenAusLinear { "sequential" } else { "random" };
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

/// The same where a difference is certain: "2.3 % faster" rather than "as fast".
fn slightly(ratio: f64) -> String {
    match (faster(ratio).as_str(), ratio) {
        ("as fast", r) if r >= 1.0 => format!("{:.1} % faster", 100.0 * (r - 1.0)),
        ("as fast", r) => format!("{:.1} % slower", 100.0 * (1.0 / r - 1.0)),
        (words, _) => words.to_string(),
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
        // A rate is of the host, too: on another one it says nothing of the cards.
        let elsewhere = |p: &&Subject| matches!((&s.host, &p.host), (Some(h), Some(i)) if h != i);
        for p in published.iter().filter(|p| p.name != s.name && !elsewhere(p)) {
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
        assert_eq!(headline(&a, &b), ["same part number (0x03 SD32G), different inside: B has 1 open AU (sequential) instead of 5"]);
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
    fn words() {
        assert_eq!((faster(1.6).as_str(), faster(0.5).as_str(), faster(1.01).as_str()), ("1.6x faster", "2.0x slower", "as fast"));
        let small = [1.023, 0.98, 1.6].map(slightly);
        assert_eq!(small, ["2.3 % faster", "2.0 % slower", "1.6x faster"]);
    }
}
