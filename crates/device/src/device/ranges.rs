//! A set of byte ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// Disjoint, non-adjacent ranges; adjacent ones are joined on insertion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    by_start: BTreeMap<u64, u64>,
}

impl RangeSet {
    /// Adds a range; an empty one changes nothing.
    pub fn insert(&mut self, r: Range<u64>) {
        let Range { mut start, mut end } = r;
        if start >= end {
            return;
        }
        while let Some((&s, &e)) = self.by_start.range(..=end).next_back().filter(|&(_, &e)| e >= start) {
            self.by_start.remove(&s);
            start = start.min(s);
            end = end.max(e);
        }
        self.by_start.insert(start, end);
    }

    /// The parts of a range that are not in the set, in ascending order.
    pub fn missing(&self, r: Range<u64>) -> Vec<Range<u64>> {
        let (mut at, mut out) = (r.start, Vec::new());
        let first = self.by_start.range(..=r.start).next_back().map_or(r.start, |(&s, _)| s);
        for (&s, &e) in self.by_start.range(first..r.end.max(first)) {
            if s > at {
                out.push(at..s.min(r.end));
            }
            at = at.max(e);
        }
        if at < r.end {
            out.push(at..r.end);
        }
        out
    }

    /// The ranges in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.by_start.iter().map(|(&s, &e)| s..e)
    }
}

impl FromIterator<Range<u64>> for RangeSet {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(all: I) -> RangeSet {
        let mut set = RangeSet::default();
        all.into_iter().for_each(|r| set.insert(r));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_like_a_set_of_numbers(adds in proptest::collection::vec((0u64..60, 0u64..12), 0..12), ask in (0u64..60, 0u64..20)) {
            let (mut set, mut plain) = (RangeSet::default(), std::collections::BTreeSet::new());
            for (at, len) in adds {
                set.insert(at..at + len);
                plain.extend(at..at + len);
            }
            let seen: Vec<u64> = set.iter().flatten().collect();
            prop_assert_eq!(seen, plain.iter().copied().collect::<Vec<_>>());
            let gaps: Vec<_> = set.iter().collect();
            prop_assert!(gaps.windows(2).all(|w| w[0].end < w[1].start));
            let missing: Vec<u64> = set.missing(ask.0..ask.0 + ask.1).into_iter().flatten().collect();
            prop_assert_eq!(missing, (ask.0..ask.0 + ask.1).filter(|n| !plain.contains(n)).collect::<Vec<_>>());
        }
    }
}
