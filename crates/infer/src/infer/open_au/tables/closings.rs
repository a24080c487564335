//! What closing an AU costs: what writes take longer above the limit.

use super::limit::Series;
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{median, quantile};
use crate::units::{Bytes, three};

/// What closing an AU costs: the extra time above the limit, where it does not depend on the size.
#[derive(Default)]
pub(super) struct Closings {
    /// Milliseconds, one for each N above the limit.
    each: Vec<f64>,
    /// Bytes and AUs of the writes that were looked at: smallest, largest.
    sizes: Vec<(u64, u64)>,
    /// N whose extra time grows with the size.
    uneven: usize,
    trust: f64,
    places: Vec<String>,
}

impl Closings {
    pub(super) fn add(&mut self, all: &[Series], k: u32, trust: f64) {
        self.trust = self.trust.max(trust);
        for s in all {
            let counts = s.counts();
            let fit: Vec<u32> = counts.iter().copied().filter(|&n| n <= k).collect();
            let fast = s.reference(&fit);
            for n in counts.iter().filter(|&&n| n > k) {
                // The smaller half of the sizes: there the write itself is short.
                let at = s.at(*n);
                let e: Vec<f64> = at[at.len() / 2..].iter().filter_map(|(z, y)| Some(y.exp() - fast.get(z)?.exp())).collect();
                let (lo, hi) = (quantile(&e, 0.0), quantile(&e, 1.0));
                if e.len() >= 2 && lo > 0.0 && hi <= 1.6 * lo {
                    self.each.push(median(&e));
                    self.sizes.extend(at[at.len() / 2..].iter().map(|x| (x.0, s.au)));
                } else {
                    self.uneven += 1
                }
            }
            self.places.push(s.place.clone());
        }
    }

    /// "256 KiB to 512 KiB (1/16 to 1/8 AU)".
    fn used(&self) -> String {
        let (Some(a), Some(b)) = (self.sizes.iter().min(), self.sizes.iter().max()) else { return String::new() };
        let part =
            |x: &(u64, u64)| if x.1.is_multiple_of(x.0) { format!("1/{}", x.1 / x.0) } else { format!("{:.3}", x.0 as f64 / x.1 as f64) };
        match (a.0 == b.0, a.1 == b.1) {
            (true, _) => Bytes(a.0).to_string(),
            (_, true) => format!("{} to {} ({} to {} AU)", Bytes(a.0), Bytes(b.0), part(a), part(b)),
            _ => format!("{} to {}", Bytes(a.0), Bytes(b.0)),
        }
    }

    pub(super) fn judge(&self) -> Option<Finding> {
        let q = Quantity::CloseCostMs;
        if self.each.len() + self.uneven == 0 {
            return None;
        }
        let from = |mut f: Finding| {
            f.from = vec![format!("open-AU tables ({})", self.places.join(", "))];
            f
        };
        if self.each.len() < self.uneven {
            let why = "above the limit the extra time of a write grows with its size: no single cost";
            return Some(from(Finding::undecided(q, why)));
        }
        let (lo, hi) = (quantile(&self.each, 0.0), quantile(&self.each, 1.0));
        let text = format!(
            "extra time of writes of {} above the limit: {} ms",
            self.used(),
            crate::infer::tables::span(self.each.iter().copied())
        );
        // With one AU more than fit, some cards close one only now and then: half the cost is common.
        if hi > 2.5 * lo {
            return Some(from(
                Finding::undecided(q, format!("the extra time above the limit ranges from {} to {} ms", three(lo), three(hi)))
                    .evidence(text),
            ));
        }
        let steady = hi <= 1.35 * lo;
        let round = |x: f64| (x * 100.0).round() / 100.0;
        if !steady {
            // A mean over writes that merge and writes that do not is no more than what a merge costs.
            let why = "the extra time depends on the number of AUs: not every write incurs a merge";
            return Some(from(Finding::at_least(q, round(hi), self.trust * 0.9, why).evidence(text)));
        }
        // One number of AUs does not show how many of its writes merge.
        let mut f = Finding::decided(q, round(median(&self.each)), self.trust * if self.each.len() > 1 { 0.9 } else { 0.7 });
        f.interval = Some(if self.each.len() > 1 { [lo, hi] } else { [0.8 * lo, 1.2 * hi] }.map(round));
        Some(from(f.evidence(text)))
    }
}
