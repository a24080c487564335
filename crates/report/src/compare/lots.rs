//! Groups of cards: what can be said of the lots or classes they come from.

use super::Subject;
use crate::finding::{Quantity, Unit};
use crate::infer::stats::mean_ranks;
use crate::infer::stats::median;
use crate::units::three;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use serde::Serialize;

/// One figure of two groups of cards.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lots {
    pub what: String,
    /// The host it was measured on, where it is of the host as well as of the card.
    pub host: Option<String>,
    /// Empty for findings, which are shown as their quantity is.
    pub unit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantity: Option<Quantity>,
    /// A value a card.
    pub a: Vec<f64>,
    pub b: Vec<f64>,
    /// Median of the first group over that of the second, for rates, times and costs.
    pub ratio: Option<f64>,
    /// Exact permutation test of the difference of the mean ranks, two-sided; of groups of two cards and more.
    pub p: Option<f64>,
    /// The smallest p that groups of these sizes could give.
    pub least: f64,
}

impl Lots {
    fn new(what: String, host: Option<String>, unit: &str, quantity: Option<Quantity>, a: Vec<f64>, b: Vec<f64>) -> Lots {
        let tested = (a.len() >= 2 && b.len() >= 2).then(|| permutation(&a, &b));
        let time = |q: Quantity| matches!(q.row().unit, Unit::Milliseconds | Unit::Microseconds);
        let ratio = centres(&a, &b).filter(|_| quantity.is_none_or(|q| q.is_rate() || time(q))).map(|c| c.ratio);
        let least = tested.map_or(1.0, |t| t.1);
        Lots { what, host, unit: unit.into(), quantity, a, b, ratio, p: tested.map(|t| t.0), least }
    }

    /// A value with its unit.
    pub fn show(&self, v: f64) -> String {
        self.quantity.map_or_else(|| format!("{} {}", three(v), self.unit), |q| q.show(v))
    }

    /// What the test says of the two lots.
    pub fn verdict(&self) -> String {
        match self.p {
            None => "one card is no lot".into(),
            Some(_) if self.least > 0.05 => format!("too few cards for the lots (p cannot be below {:.2})", self.least),
            Some(p) if p < 0.001 => "the lots differ (p < 0.001)".into(),
            Some(p) if p <= 0.05 => format!("the lots differ (p = {p:.3})"),
            Some(p) => format!("no difference shown (p = {p:.2})"),
        }
    }
}

/// Two classes by one figure: the centre of a class is its median, so that one odd card does not carry it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Centres {
    pub medians: [f64; 2],
    /// The first median over the second.
    pub ratio: f64,
    /// The lowest of the first over the highest of the second, and the highest over the lowest.
    pub range: [f64; 2],
}

/// The centres of two classes of cards; `None` where one is empty or has figures that are not above 0.
pub fn centres(a: &[f64], b: &[f64]) -> Option<Centres> {
    let ([x, x0, x1], [y, y0, y1]) = (spread(a), spread(b));
    let sound = !a.is_empty() && !b.is_empty() && x0 > 0.0 && y0 > 0.0;
    sound.then(|| Centres { medians: [x, y], ratio: x / y, range: [x0 / y1, x1 / y0] })
}

/// Median, lowest and highest.
pub fn spread(v: &[f64]) -> [f64; 3] {
    let (low, high) = v.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &x| (l.min(x), h.max(x)));
    [median(v), low, high]
}

/// Every figure that both groups have: rates first, then what was found inside, then times. Figures of a benchmark are compared
/// within one host only.
pub fn lots(a: &[Subject], b: &[Subject]) -> Vec<Lots> {
    let mut kinds: Vec<(&str, &str, &str, Option<&str>)> = vec![];
    for s in a {
        for m in &s.metrics {
            let kind = (m.name.as_str(), m.conditions.as_str(), m.unit.as_str(), s.host.as_deref());
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
    }
    let of = |all: &[Subject], (name, conditions, unit, host): (&str, &str, &str, Option<&str>)| -> Vec<f64> {
        let alike = |m: &&crate::samples::metric::Metric| m.name == name && m.conditions == conditions && m.unit == unit;
        let on_host = all.iter().filter(|s| s.host.as_deref() == host);
        on_host.filter_map(|s| s.metrics.iter().find(alike)).map(|m| m.value).filter(|v| v.is_finite()).collect()
    };
    let (mut rates, mut times) = (vec![], vec![]);
    for kind in kinds {
        let (x, y) = (of(a, kind), of(b, kind));
        if x.is_empty() || y.is_empty() {
            continue;
        }
        let what = format!("{}, {}", kind.0, kind.1);
        let row = Lots::new(what, Some(kind.3.unwrap_or("host not stated").to_string()), kind.2, None, x, y);
        if kind.2.contains("B/s") || kind.2 == "IOPS" { rates.push(row) } else { times.push(row) }
    }
    let found = Quantity::ALL.iter().filter_map(|&q| {
        let of = |all: &[Subject]| -> Vec<f64> { all.iter().filter_map(|s| s.findings.value(q, 0.75)).collect() };
        let (x, y) = (of(a), of(b));
        (!x.is_empty() && !y.is_empty()).then(|| Lots::new(q.title().into(), None, "", Some(q), x, y))
    });
    rates.into_iter().chain(found).chain(times).collect()
}

/// Why a figure that both groups have is not compared: it was measured on other hosts.
pub fn hosts_apart(a: &[Subject], b: &[Subject]) -> Vec<String> {
    let hosts = |all: &[Subject], what: &str| -> Vec<String> {
        let with = all.iter().filter(|s| s.metrics.iter().any(|m| m.key() == what));
        let mut v: Vec<String> = with.map(|s| s.host.clone().unwrap_or_else(|| "a host that is not stated".into())).collect();
        v.sort();
        v.dedup();
        v
    };
    let mut out: Vec<String> = vec![];
    for m in a.iter().flat_map(|s| &s.metrics) {
        let (x, y) = (hosts(a, &m.key()), hosts(b, &m.key()));
        if y.is_empty() || x.iter().any(|h| y.contains(h)) {
            continue;
        }
        let name = m.name.split_once(", ").map_or(m.name.as_str(), |n| n.0);
        let line = format!("{name}: the first were measured on {}, the others on {}: not compared", x.join(", "), y.join(", "));
        if !out.contains(&line) {
            out.push(line);
        }
    }
    out
}

/// Two-sided p of the difference of mean ranks over all (or, of very many, 20 000 drawn) ways to part the values; and the smallest
/// p possible.
pub fn permutation(a: &[f64], b: &[f64]) -> (f64, f64) {
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    let ranks = mean_ranks(all.iter().copied());
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
    use crate::samples::metric::Metric;

    fn card(host: &str, rate: f64) -> Subject {
        Subject {
            host: (!host.is_empty()).then(|| host.to_string()),
            metrics: vec![Metric::new("record write", "512 B records", "kB/s", &[rate])],
            ..Subject::default()
        }
    }

    /// G6, C6: the ratio of the medians, of cards on one host only.
    #[test]
    fn classes_are_compared_on_one_host() {
        let (a, b) = (vec![card("x", 407.57), card("x", 384.92)], vec![card("x", 152.31), card("x", 200.62), card("y", 9000.0)]);
        let rows = lots(&a, &b);
        assert!(rows.len() == 1 && rows[0].b.len() == 2 && (rows[0].ratio.unwrap() - 2.245).abs() < 0.001, "{rows:?}");
        assert!(rows[0].verdict().contains("too few cards"));
        assert!(lots(&[card("x", 1.0)], &[card("y", 2.0)]).is_empty());
        assert!(hosts_apart(&[card("x", 1.0)], &[card("y", 2.0)])[0].contains("measured on x, the others on y"));
        assert!(hosts_apart(&a, &b).is_empty());
        let one = &lots(&[card("", 3.0)], &[card("", 2.0)])[0];
        assert_eq!((one.p, one.ratio, one.host.as_deref()), (None, Some(1.5), Some("host not stated")));
    }

    #[test]
    fn exact_permutations() {
        // Four against four, completely apart: 2 of 70 ways.
        assert_eq!(permutation(&[5.0, 5.0, 5.0, 5.0], &[1.0, 1.0, 1.0, 1.0]), (2.0 / 70.0, 2.0 / 70.0));
        assert!(permutation(&[5.0, 4.0, 6.0], &[5.0, 4.0, 6.0]).0 > 0.9);
    }
}
