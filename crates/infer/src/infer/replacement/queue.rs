//! The AU used longest ago is thrown out, or the one opened longest ago.

use super::{Noise, Trial, Visit};
use foldhash::{HashMap, HashMapExt};
use std::ops::Range;

/// A table whose head goes, as far as it was followed.
#[derive(Clone, Debug, Default)]
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
    /// Streams whose AUs need no room in the table, and are never slow.
    pub free: Range<u64>,
    aus: Vec<Place>,
    counted: usize,
    /// Visits that tell: fast and slow ones to AUs that were open, and to others.
    seen: [[usize; 2]; 2],
    steps: usize,
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
    /// before the run goes first. `steps` are those followed before, and more.
    pub fn foretells(&mut self, (steps, aus): &(Vec<Step>, usize), noise: Noise, most: f64) -> Option<f64> {
        self.aus.resize(*aus, Place::default());
        let belied = |seen: &[[usize; 2]; 2]| (seen[0][1] + seen[1][0]) as f64;
        while self.steps < steps.len() && belied(&self.seen) <= most {
            self.follow(&steps[self.steps]);
        }
        let ln = |closed: bool, slow: bool| self.seen[closed as usize][slow as usize] as f64 * noise.of(closed, slow).ln();
        (belied(&self.seen) <= most).then(|| ln(false, false) + ln(false, true) + ln(true, false) + ln(true, true))
    }

    fn follow(&mut self, (v, au, left): &Step) {
        let now = self.steps;
        self.steps += 1;
        if self.free.contains(&v.stream) {
            self.seen[0][v.slow as usize] += v.tells() as usize;
            return;
        }
        if let Some(p) = left.map(|left| &mut self.aus[left]) {
            self.counted -= p.counts as usize;
            (p.open, p.counts) = (false, false);
        }
        let p = &mut self.aus[*au];
        let comes_in = !p.counts && !(self.halves && (!p.open || v.in_order));
        let mut counts = p.counts || comes_in;
        if !p.open || self.to_back {
            p.opened = now;
        }
        if v.tells() {
            self.seen[comes_in as usize][v.slow as usize] += 1;
            if self.believes && v.slow && !comes_in {
                // It had been closed, and the visit before opened it unnoticed.
                p.opened = if self.to_back { now } else { p.last };
                counts = true;
            }
        }
        self.counted += (counts && !p.counts) as usize;
        *p = Place { open: true, counts, last: now, ..*p };
        if self.counted > self.k {
            let others = (0..self.aus.len()).filter(|a| self.aus[*a].counts && a != au);
            let thrown = others.min_by_key(|a| self.aus[*a].opened).unwrap_or(*au);
            (self.aus[thrown].open, self.aus[thrown].counts) = (false, false);
            self.counted -= 1;
        }
    }
}

/// Queues of all sizes and rules that were asked for, and the visits they were followed through. A search asks again after every few
/// visits: what it asked before is followed on from where it ended, as if from the start.
#[derive(Default)]
pub struct Queues {
    steps: (Vec<Step>, usize),
    by_rule: HashMap<(usize, usize, Range<u64>), Queue>,
}

impl Queues {
    /// Goes by these visits from now on, which are those of before and more, or others.
    pub fn go_by(&mut self, steps: (Vec<Step>, usize)) {
        if !steps.0.starts_with(&self.steps.0) {
            self.by_rule.clear();
        }
        self.steps = steps;
    }

    /// By a queue of `k` AUs that goes by the `rule` of this number: LRU where it is even, FIFO where odd; from 2 on it takes an AU that
    /// is opened for one in linear order, and from 4 on it believes what was seen. Streams in `free` need no room. As [`Queue::foretells`].
    pub fn ln(&mut self, rule: usize, k: usize, free: &Range<u64>, noise: Noise, most: f64) -> Option<f64> {
        let queue = || Queue { k, to_back: rule & 1 == 0, halves: rule >= 2, believes: rule >= 4, free: free.clone(), ..Queue::default() };
        self.by_rule.entry((rule, k, free.clone())).or_insert_with(queue).foretells(&self.steps, noise, most)
    }
}
