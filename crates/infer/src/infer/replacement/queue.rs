//! The AU used longest ago is thrown out, or the one opened longest ago.

use super::{Noise, Trial, Visit};
use std::collections::HashMap;

/// A table whose head goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queue {
    /// How many AUs it holds.
    pub k: usize,
    /// A visit brings the AU back to the end (LRU), or does not (FIFO).
    pub to_back: bool,
    /// An AU that is opened is taken for one in linear order, which costs nothing and counts for nothing before its second visit;
    /// its place it has from the first.
    pub halves: bool,
    /// What was seen is believed, with `halves`: where a visit was slow and not foretold so, the table was not as supposed.
    pub believes: bool,
}

/// What a queue knows of an AU.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    open: bool,
    /// It takes part in the count; only those are thrown out.
    counts: bool,
    /// The visits that opened it and that came last.
    opened: usize,
    last: usize,
}

/// A visit to an AU by number, and the full AU that its stream left without a cost.
pub type Step = (Visit, usize, Option<usize>);

/// All visits, their AUs numbered from 0, and how many AUs there are.
pub fn numbered(trials: &[Trial]) -> (Vec<Step>, usize) {
    let mut numbers: HashMap<u64, usize> = HashMap::new();
    let mut of_stream: HashMap<u64, usize> = HashMap::new();
    let mut step = |v: &Visit| {
        let next = numbers.len();
        let au = *numbers.entry(v.au).or_insert(next);
        let left = of_stream.insert(v.stream, au).filter(|_| v.goes_on && !v.slow);
        (*v, au, left)
    };
    let all = trials.iter().flat_map(|t| &t.visits).map(&mut step).collect();
    (all, numbers.len())
}

impl Queue {
    /// ln P(slow and fast visits, in their order); `None` when more than `most` of them were not as foretold. Whatever the table held
    /// before the run goes first.
    pub fn foretells(self, (steps, aus): &(Vec<Step>, usize), noise: Noise, most: f64) -> Option<f64> {
        let mut aus = vec![Place::default(); *aus];
        let (mut counted, mut ln, mut belied) = (0, 0.0, 0.0);
        for (now, (v, au, left)) in steps.iter().enumerate() {
            if let Some(p) = left.map(|left| &mut aus[left]) {
                counted -= p.counts as usize;
                (p.open, p.counts) = (false, false);
            }
            let p = &mut aus[*au];
            let comes_in = !p.counts && !(self.halves && (!p.open || v.in_order));
            let mut counts = p.counts || comes_in;
            if !p.open || self.to_back {
                p.opened = now;
            }
            if v.tells() {
                ln += noise.of(comes_in, v.slow).ln();
                if comes_in != v.slow {
                    belied += 1.0;
                    if belied > most {
                        return None;
                    }
                    if self.believes && v.slow {
                        // It had been closed, and the visit before opened it unnoticed.
                        p.opened = if self.to_back { now } else { p.last };
                        counts = true;
                    }
                }
            }
            counted += (counts && !p.counts) as usize;
            *p = Place { open: true, counts, last: now, ..*p };
            if counted > self.k {
                let others = (0..aus.len()).filter(|a| aus[*a].counts && a != au);
                let thrown = others.min_by_key(|a| aus[*a].opened).unwrap_or(*au);
                (aus[thrown].open, aus[thrown].counts) = (false, false);
                counted -= 1;
            }
        }
        Some(ln)
    }
}
