//! Runs of one experiment on two cards, condition by condition: Mann-Whitney, Holm's correction, bootstrap of the ratio.

use super::{Outcome, Subject, outcome, policies_differ};
use crate::infer::stats::{bootstrap_ratio, correlation_with_next, mann_whitney_z, mean, median, quantile, two_sided};
use crate::samples::{Run, Sample};
use serde::Serialize;

/// A condition that both measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Condition {
    pub label: String,
    /// Median times in µs.
    pub a: f64,
    pub b: f64,
    /// b / a of the medians, with its 95 % bootstrap interval.
    pub ratio: [f64; 3],
    /// Mann-Whitney, two-sided, for samples that resemble their neighbours, before correction.
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
    // Writes of cards that rewrite at different times are not alike: what one pays for, the other puts off.
    let alike = |r: &&Run| r.experiment != "write-trace" || !policies_differ(a, b);
    a.runs.iter().filter(alike).filter_map(|x| experiment(x, b.runs.iter().find(|y| y.experiment == x.experiment)?)).collect()
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
                p: mann_whitney_of_series(t, u),
                differs: false,
            });
        }
    }
    if conditions.is_empty() {
        return None;
    }
    // Holm: the smallest p against 5 % / m, the next against 5 % / (m - 1), ...
    nandscope_stats::ascending(&mut conditions, |c| c.p);
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
        Outcome::Same | Outcome::Unclear if differing => Outcome::Differs,
        o if conditions.len() >= 6 || o == Outcome::Unclear => o,
        _ if differing => Outcome::Differs,
        _ => Outcome::Unclear,
    };
    nandscope_stats::sort_by(&mut conditions, |c, d| {
        d.differs.cmp(&c.differs).then(d.ratio[0].ln().abs().total_cmp(&c.ratio[0].ln().abs()))
    });
    Some(Experiment { name: a.experiment.clone(), conditions, ratio, outcome })
}

/// The same for samples in the order they were taken, whose neighbours may be alike: one visit that finds its AU closed makes the next
/// ones slow, too. They count for n (1 - r) / (1 + r) samples, r their correlation with the sample before.
fn mann_whitney_of_series(a: &[f64], b: &[f64]) -> f64 {
    let both: Vec<f64> = a.iter().chain(b).copied().collect();
    let middle = mean(&[quantile(&both, 0.05), quantile(&both, 0.95)]);
    let inflation = |x: &[f64]| {
        let r = correlation_with_next(&x.iter().map(|&t| (t > middle) as u8 as f64).collect::<Vec<f64>>()).clamp(0.0, 0.9);
        (1.0 + r) / (1.0 - r)
    };
    let shrink = mean(&[inflation(a), inflation(b)]).sqrt();
    two_sided(mann_whitney_z(a, b) / shrink)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::stats::{erfc, mann_whitney};

    #[test]
    fn textbook_tests() {
        // Complete separation of 10 and 10: p about 1.6e-4 with the continuity correction.
        let (x, y): (Vec<f64>, Vec<f64>) = ((0..10).map(f64::from).collect(), (10..20).map(f64::from).collect());
        let p = mann_whitney(&x, &y);
        assert!((1.5e-4..2.0e-4).contains(&p), "{p}");
        assert_eq!(mann_whitney(&[3.0; 8], &[3.0; 8]), 1.0);
        assert!((erfc(1.0) - 0.157_299_2).abs() < 2e-7);
    }

    #[test]
    fn runs_of_slow_samples_count_for_fewer() {
        // Half slow in one run of eight, against two slow ones apart; the same numbers well mixed say more.
        let in_runs: Vec<f64> = (0..16).map(|i| if i < 8 { 150.0 } else { 4.0 }).collect();
        let mixed: Vec<f64> = (0..16).map(|i| if i % 2 == 0 { 150.0 } else { 4.0 }).collect();
        let few: Vec<f64> = (0..16).map(|i| if i == 4 || i == 12 { 150.0 } else { 4.0 }).collect();
        assert!(mann_whitney_of_series(&in_runs, &few) > 2.0 * mann_whitney_of_series(&mixed, &few));
        assert_eq!(mann_whitney_of_series(&mixed, &few), mann_whitney(&mixed, &few));
    }
}
