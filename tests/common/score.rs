//! Scores of what was told of cards whose truth is known: right, wrong and undecided, the log score, and confidence against truth from
//! both sides.
#![allow(dead_code)]

use crate::families::{JUDGED, Probed};
use nandscope::finding::{Finding, Quantity};
use nandscope::infer::stats::quantile;
use std::collections::BTreeMap;

/// The worst that one answer can cost.
pub const FLOOR: f64 = 1e-4;
/// Lower ends of the bins of claims. Below 60 % nothing is told.
pub const BINS: [f64; 6] = [0.99, 0.95, 0.9, 0.8, 0.7, 0.6];
/// A bin holds where the share right lies this near to what was claimed, ...
pub const NEAR: f64 = 0.03;
/// ... or within so many of its standard errors.
pub const ERRORS: f64 = 2.6;
/// The chance of more than that on one side (normal distribution).
const BEYOND: f64 = 0.0047;

#[derive(Default, Clone, Copy)]
pub struct Tally {
    pub right: u32,
    pub wrong: u32,
    pub undecided: u32,
    /// Sum of logarithms.
    pub log: f64,
}

impl Tally {
    pub fn all(&self) -> u32 {
        self.right + self.wrong + self.undecided
    }

    pub fn mean_log(&self) -> f64 {
        self.log / f64::from(self.all().max(1))
    }
}

pub struct Answer {
    /// Kind and seed.
    pub card: (&'static str, u64),
    pub quantity: Quantity,
    pub bound: bool,
    pub confidence: f64,
    pub right: bool,
    pub line: String,
}

#[derive(Default)]
pub struct Scores {
    pub by_quantity: BTreeMap<Quantity, Tally>,
    pub answers: Vec<Answer>,
    /// MiB written to a card and seconds of its time: of half of the cards and of nine of ten at the most.
    pub cost: [[f64; 2]; 2],
}

/// The value that is told, or the bound.
pub fn answer(f: &Finding) -> Option<(f64, bool)> {
    f.number().map(|v| (v, false)).or(f.at_least.map(|b| (b.0, true)))
}

/// What was told of the cards of one family. Undecided is scored with the share that the truth has among them.
pub fn score(cards: &[Probed]) -> Scores {
    let written: Vec<f64> = cards.iter().map(|c| c.cost.bytes_written as f64 / 1_048_576.0).collect();
    let seconds: Vec<f64> = cards.iter().map(|c| c.cost.seconds).collect();
    let cost = [written, seconds].map(|all| [0.5, 0.9].map(|q| quantile(&all, q)));
    let mut s = Scores { cost, ..Scores::default() };
    for q in JUDGED {
        let truths: Vec<f64> = cards.iter().filter_map(|c| c.truth.of(q)).collect();
        // Costs are alike within 30 %, as they are judged.
        let class = |v: f64| if q == Quantity::CloseCostMs { (v.ln() / 1.3f64.ln()).round().to_bits() } else { v.to_bits() };
        let prior = |v: f64| truths.iter().filter(|t| class(**t) == class(v)).count() as f64 / truths.len().max(1) as f64;
        for c in cards {
            let Some(truth) = c.truth.of(q) else { continue };
            let Some(f) = c.told.get(q) else {
                // Asked nothing: on cards without limit there is no cost to be told.
                if !truth.is_nan() {
                    let tally = s.by_quantity.entry(q).or_default();
                    tally.undecided += 1;
                    tally.log += prior(truth).max(FLOOR).ln();
                }
                continue;
            };
            let tally = s.by_quantity.entry(q).or_default();
            let Some((v, bound)) = answer(f) else {
                tally.undecided += 1;
                tally.log += prior(truth).max(FLOOR).ln();
                continue;
            };
            let right = c.truth.right(q, v, bound);
            let rival = f.rivals.iter().find(|r| c.truth.right(q, r.value.0, false));
            let p = if right { f.confidence } else { rival.map_or((1.0 - f.confidence) * prior(truth), |r| r.probability) };
            tally.log += p.clamp(FLOOR, 1.0).ln();
            *if right { &mut tally.right } else { &mut tally.wrong } += 1;
            let sign = if bound { ">= " } else { "" };
            let line = format!("{} {}: {} {sign}{v} at {:.3}, truth {truth}", c.card.kind, c.card.seed, q.key(), f.confidence);
            s.answers.push(Answer { card: (c.card.kind, c.card.seed), quantity: q, bound, confidence: f.confidence, right, line });
        }
    }
    s
}

/// Claims of one bin against what was right.
pub struct Bin {
    pub low: f64,
    pub given: usize,
    pub right: usize,
    pub claimed: f64,
    /// Share right less claimed, in standard errors of the claim.
    pub off: f64,
}

impl Bin {
    pub fn share(&self) -> f64 {
        self.right as f64 / self.given as f64
    }

    pub fn holds(&self) -> bool {
        (self.share() - self.claimed).abs() <= NEAR || self.off.abs() <= ERRORS || self.chance() >= BEYOND
    }

    /// The chance of as many right or more, or as few or fewer, if all is as claimed. Counted out: for a few dozen claims near 1 the
    /// standard error is no measure of it. 0 for many.
    fn chance(&self) -> f64 {
        let (n, p) = (self.given, self.claimed.min(1.0 - 1e-9));
        if n > 100 {
            return 0.0;
        }
        let mut exactly = (1.0 - p).powi(n as i32);
        let (mut below, mut above) = (0.0, 0.0);
        for k in 0..=n {
            if k <= self.right {
                below += exactly;
            }
            if k >= self.right {
                above += exactly;
            }
            exactly *= (n - k) as f64 / (k + 1) as f64 * p / (1.0 - p);
        }
        below.min(above)
    }
}

fn high(i: usize) -> f64 {
    if i == 0 { 1.01 } else { BINS[i - 1] }
}

/// Of the number that is right, if all is as claimed. That no write was slow however many AUs were in turn gives a bound in both orders and
/// the mapping: on one card they are right or wrong together, for what makes them wrong is a cache that hid the limit. Other answers are
/// taken to be independent.
fn variance(answers: &[&Answer]) -> f64 {
    let bound = |a: &Answer| a.bound && [Quantity::OpenAusLinear, Quantity::OpenAusRandom].contains(&a.quantity);
    let mut together: BTreeMap<(&str, u64), f64> = answers.iter().filter(|a| bound(a)).map(|a| (a.card, 0.0)).collect();
    let mut apart = 0.0;
    for a in answers {
        let v = a.confidence * (1.0 - a.confidence);
        match together.get_mut(&a.card).filter(|_| bound(a) || a.quantity == Quantity::Mapping) {
            Some(sd) => *sd += v.sqrt(),
            None => apart += v,
        }
    }
    apart + together.into_values().map(|sd| sd * sd).sum::<f64>()
}

/// The bins that hold something, the highest first.
pub fn bins<'a>(answers: impl Iterator<Item = &'a Answer> + Clone) -> Vec<Bin> {
    let bin = |i: usize| {
        let those: Vec<&Answer> = answers.clone().filter(|a| (BINS[i]..high(i)).contains(&a.confidence)).collect();
        let n = those.len() as f64;
        let right = those.iter().filter(|a| a.right).count();
        let claimed = those.iter().map(|a| a.confidence).sum::<f64>() / n;
        let error = variance(&those).sqrt() / n;
        let off = (right as f64 / n - claimed) / error.max(1e-9);
        (!those.is_empty()).then_some(Bin { low: BINS[i], given: those.len(), right, claimed, off })
    };
    (0..BINS.len()).filter_map(bin).collect()
}

/// A line a quantity, and a line a bin.
pub fn table(s: &Scores) -> String {
    let mut out =
        format!("{:<22}{:>7}{:>7}{:>11}{:>11}   right/given at 60, 70, 80, 90, 95, 99 %\n", "", "right", "wrong", "undecided", "log score");
    for (q, t) in &s.by_quantity {
        out += &format!("{:<22}{:>7}{:>7}{:>11}{:>11.3}  ", q.title(), t.right, t.wrong, t.undecided, t.mean_log());
        let bins = bins(s.answers.iter().filter(|a| a.quantity == *q));
        for low in BINS.iter().rev() {
            let told = bins.iter().find(|b| b.low == *low).map_or(String::new(), |b| format!("{}/{}", b.right, b.given));
            out += &format!("{told:>9}");
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    let [[written, more], [seconds, longer]] = s.cost;
    out += &format!("\nhalf of the cards: {written:.1} MiB written, {seconds:.1} s or less; nine of ten: {more:.1} MiB, {longer:.1} s\n");
    out += "\nclaimed          given   right  claimed   share   off by (standard errors; both sides)\n";
    for b in bins(s.answers.iter()) {
        let i = BINS.iter().position(|l| *l == b.low).unwrap_or(0);
        let holds = match b.off {
            _ if b.holds() => "holds",
            off if off > 0.0 => "too low a claim",
            _ => "too high a claim",
        };
        out += &format!(
            "{:>3.0} to {:>3.0} % {:>10}{:>8}{:>9.3}{:>8.3}{:>8.1}  {holds}\n",
            b.low * 100.0,
            high(i).min(1.0) * 100.0,
            b.given,
            b.right,
            b.claimed,
            b.share(),
            b.off
        );
    }
    out
}
