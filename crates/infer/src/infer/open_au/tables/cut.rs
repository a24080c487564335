//! Does a cut look like merges? Above the limit every write waits for a merge, whose cost does not depend on the size of the write: the
//! time of a write becomes flat (F16). A cut without that is a fall of another kind.

use std::f64::consts::LN_2;

use super::limit::{DRIFT, Series, slope};
use crate::infer::stats::median;
use crate::units::{Bytes, three};

/// Rows of the same size differ by so much between two tables of one card (ln): what is called the calmest noise there.
const NOISE: f64 = 0.05;

/// What becomes slower above a number of AUs.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    /// ln of how many times longer a write takes, over the middle sizes.
    factor: f64,
    /// How the extra time grows with the size: 0 for a merge, 1 for a fall of the rate alike at all sizes.
    slope: f64,
    /// Bytes: smallest and largest of the sizes.
    sizes: (u64, u64),
    /// ln of how many times longer a write of a whole AU takes; NaN without one on both sides.
    whole: f64,
}

impl Cut {
    /// The cut between `k` AUs and more; `None` without tables on both sides, or with fewer than two sizes that became slower.
    pub fn of(all: &[Series], k: u32) -> Option<Cut> {
        let (mut factors, mut slopes, mut sizes, mut wholes) = (vec![], vec![], vec![], vec![]);
        for s in all {
            let (fit, over): (Vec<u32>, Vec<u32>) = s.counts().into_iter().partition(|&n| n <= k);
            let fast = s.reference(&fit);
            let whole = |n: &u32| s.ms.get(n)?.get(&s.au).copied();
            // The first row of a table pays for what the one before left: only what is slower than with each number that fits is of this cut.
            let fast_whole = fit.iter().filter_map(whole).fold(f64::NEG_INFINITY, f64::max);
            for n in over {
                wholes.extend(whole(&n).map(|y| y - fast_whole).filter(|r| r.is_finite()));
                factors.extend(s.ratios(n, &fast));
                let extra = s.at(n).into_iter().filter_map(|(z, y)| Some((z, y.exp() - fast.get(&z)?.exp())));
                let extra: Vec<(u64, f64)> = extra.filter(|x| x.1 > 0.0).map(|(z, ms)| (z, ms.ln())).collect();
                if extra.len() >= 2 {
                    slopes.push(slope(&extra));
                }
                sizes.extend(extra.iter().map(|x| x.0));
            }
        }
        let sizes = (sizes.iter().copied().min()?, sizes.iter().copied().max()?);
        (!slopes.is_empty()).then(|| Cut { factor: median(&factors), slope: median(&slopes), sizes, whole: median(&wholes) })
    }

    /// Nearer to a cost of its own than to one in proportion to the size.
    pub fn flat(&self) -> bool {
        self.slope < 0.5
    }

    /// Costs less than the write itself. A merge copies most of an AU, and the writes looked at are a quarter of one at most.
    pub fn shallow(&self) -> bool {
        self.factor < LN_2 - NOISE
    }

    /// A write of a whole AU leaves nothing to copy, so that no merge makes it slower.
    pub fn slows_whole_aus(&self) -> bool {
        self.whole > DRIFT
    }

    /// Bytes of the smallest writes that became slower.
    pub fn least(&self) -> u64 {
        self.sizes.0
    }

    /// What is missing, in words.
    pub fn no_merge(&self) -> String {
        let (times, from, to) = (three(self.factor.exp()), Bytes(self.sizes.0), Bytes(self.sizes.1));
        if self.flat() {
            return format!(
                "writes of {from} to {to} take {times} times as long: a merge copies most of an AU, and takes longer than they do"
            );
        }
        format!(
            "writes take {times} times as long, and the extra time grows with the size ({from} to {to}): a merge costs the same for each size"
        )
    }
}
