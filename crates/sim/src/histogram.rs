//! Latencies, counted: 32 classes in each doubling, so that every percentile is good to 3 %; the ends are exact.

use serde::Serialize;

const SUB: u32 = 5;

/// A histogram of nanoseconds. Memory does not grow with the number of values.
#[derive(Clone, Debug)]
pub struct Histogram {
    classes: Vec<u64>,
    count: u64,
    sum: u128,
    least: u64,
    most: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { classes: vec![0; ((64 - SUB) << SUB) as usize + (1 << SUB)], count: 0, sum: 0, least: u64::MAX, most: 0 }
    }
}

/// What a histogram says, in ns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latencies {
    /// Values counted.
    pub count: u64,
    /// Smallest.
    pub least: u64,
    /// Half are at most this.
    pub p50: u64,
    /// Nine in ten are at most this.
    pub p90: u64,
    /// 99 in a hundred are at most this.
    pub p99: u64,
    /// 999 in a thousand are at most this.
    pub p999: u64,
    /// Largest.
    pub most: u64,
    /// Mean.
    pub mean: f64,
}

impl Histogram {
    #[inline]
    fn class(x: u64) -> usize {
        if x < 1 << SUB {
            return x as usize;
        }
        let octave = x.ilog2() - SUB;
        (((octave + 1) << SUB) as u64 + ((x >> octave) & ((1 << SUB) - 1))) as usize
    }

    /// The largest value of a class.
    fn top(class: usize) -> u64 {
        let (octave, low) = (class as u64 >> SUB, class as u64 & ((1 << SUB) - 1));
        if octave == 0 {
            return low;
        }
        ((((1 << SUB) + low) as u128 + 1) << (octave - 1)).min(1 << 64).wrapping_sub(1) as u64
    }

    /// Counts one value.
    #[inline]
    pub fn add(&mut self, x: u64) {
        self.classes[Self::class(x)] += 1;
        self.count += 1;
        self.sum += u128::from(x);
        self.least = self.least.min(x);
        self.most = self.most.max(x);
    }

    /// Values counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The value that a share `q` (0 to 1) does not exceed; never above the largest value, 0 when there is none.
    pub fn quantile(&self, q: f64) -> u64 {
        let rank = ((q * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (class, n) in self.classes.iter().enumerate() {
            seen += n;
            if seen >= rank {
                return Self::top(class).clamp(self.least, self.most);
            }
        }
        0
    }

    /// The usual figures.
    pub fn latencies(&self) -> Latencies {
        let q = |q| self.quantile(q);
        let none = self.count == 0;
        Latencies {
            count: self.count,
            least: if none { 0 } else { self.least },
            p50: q(0.5),
            p90: q(0.9),
            p99: q(0.99),
            p999: q(0.999),
            most: self.most,
            mean: if none { 0.0 } else { self.sum as f64 / self.count as f64 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn percentiles_are_good_to_three_percent() {
        let mut rng = Rng::new(4, 4);
        let mut all: Vec<u64> = (0..50_000).map(|_| rng.next() >> (rng.below(60) + 1)).collect();
        let mut h = Histogram::default();
        all.iter().for_each(|&x| h.add(x));
        all.sort_unstable();
        for q in [0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let exact = all[((q * all.len() as f64).ceil() as usize).clamp(1, all.len()) - 1];
            let found = h.quantile(q);
            assert!(found >= exact && found as f64 <= exact as f64 * 1.032 + 1.0, "{q}: {found} against {exact}");
        }
        assert_eq!((h.latencies().least, h.latencies().most), (all[0], all[all.len() - 1]));
        let mut edge = Histogram::default();
        [0, 31, 32, u64::MAX].into_iter().for_each(|x| edge.add(x));
        assert_eq!((edge.quantile(0.25), edge.quantile(0.5), edge.quantile(0.75), edge.quantile(1.0)), (0, 31, 32, u64::MAX));
        assert_eq!(Histogram::default().latencies().p99, 0);
    }
}
