//! What was told of today's cards against what is true of them, in bins of claims.
#![allow(dead_code)]

use crate::todays::{Card, Truth, right};
use nandscope::finding::{Findings, Quantity};
use nandscope::infer::confidence::Source;
use std::collections::BTreeMap;

/// Lower ends of the bins, and above which there is none.
pub const BINS: [f64; 6] = [0.6, 0.7, 0.8, 0.9, 0.95, 1.01];
/// A bin holds where the share right lies this near to what was claimed, or within so many of its standard errors.
pub const NEAR: f64 = 0.03;
pub const ERRORS: f64 = 2.6;

#[derive(Clone, Debug)]
pub struct Answer {
    pub card: Card,
    pub quantity: Quantity,
    pub bound: bool,
    pub confidence: f64,
    pub right: bool,
}

/// Of what the experiments for today's cards spoke to, where the truth is known.
pub fn answers(card: Card, truth: &Truth, told: &Findings) -> Vec<Answer> {
    let one = |f: &nandscope::finding::Finding| {
        let truth = *truth.get(&f.quantity)?;
        let (v, bound) = f.number().map(|v| (v, false)).or(f.at_least.map(|b| (b.0, true)))?;
        let (quantity, confidence) = (f.quantity, f.confidence);
        (Source::Probe.of(f) == Source::Today).then(|| Answer { card, quantity, bound, confidence, right: right(truth, v, bound) })
    };
    told.0.iter().filter_map(one).collect()
}

/// Claims of one bin against what was right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    pub low: f64,
    pub high: f64,
    pub given: usize,
    pub right: usize,
    pub claimed: f64,
    /// Standard error of the share right, if all is as claimed and answers are independent.
    pub error: f64,
}

impl Bin {
    pub fn share(&self) -> f64 {
        self.right as f64 / self.given as f64
    }

    pub fn holds(&self) -> bool {
        (self.share() - self.claimed).abs() <= NEAR.max(ERRORS * self.error)
    }
}

pub fn bins(all: &[Answer]) -> Vec<Bin> {
    let one = |w: &[f64]| {
        let here: Vec<&Answer> = all.iter().filter(|a| (w[0]..w[1]).contains(&a.confidence)).collect();
        let n = here.len() as f64;
        let right = here.iter().filter(|a| a.right).count();
        let claimed = here.iter().map(|a| a.confidence).sum::<f64>() / n;
        let error = here.iter().map(|a| a.confidence * (1.0 - a.confidence)).sum::<f64>().sqrt() / n;
        (!here.is_empty()).then_some(Bin { low: w[0], high: w[1], given: here.len(), right, claimed, error })
    };
    BINS.windows(2).filter_map(one).collect()
}

/// A line a quantity, and a line a bin.
pub fn table(all: &[Answer]) -> String {
    let mut of: BTreeMap<(Quantity, bool), Vec<&Answer>> = BTreeMap::new();
    all.iter().for_each(|a| of.entry((a.quantity, a.bound)).or_default().push(a));
    let mut out = String::new();
    for ((q, bound), a) in of {
        let name = format!("{}{}", q.key(), if bound { " at least" } else { "" });
        let claimed: f64 = a.iter().map(|a| a.confidence).sum();
        let right = a.iter().filter(|a| a.right).count();
        out += &format!("  {name:<30}{right:>5} of {:>4} right, {claimed:>6.1} claimed\n", a.len());
    }
    for b in bins(all) {
        out += &format!(
            "  {:>3.0} to {:>3.0} %: {:>5} of {:>4} right, {:.3} of {:.3} claimed, standard error {:.3}{}\n",
            100.0 * b.low,
            100.0 * b.high.min(1.0),
            b.right,
            b.given,
            b.share(),
            b.claimed,
            b.error,
            if b.holds() { "" } else { ", OFF" }
        );
    }
    out
}
