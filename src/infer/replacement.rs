//! What a table of open AUs throws out when it is full: the AU used longest ago, the one opened longest ago, or any. Each policy
//! says of every visit of a run how likely it is to be slow, given how many AUs stay open; so a run says how many, and which.
//!
//! Random replacement is followed exactly: AUs that are visited in an order drawn anew each round are alike, so how many of them
//! are closed, and how many of those have their visit still to come, is all there is to know.

use super::stats::ln_gamma;
use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

/// One visit: a write to the AU in which one of the streams of the test is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Visit {
    pub stream: u64,
    /// Where the AU is full, the stream goes on in another.
    pub au: u64,
    pub slow: bool,
    /// Opens or reopens AUs for a trial: what it costs is not looked at.
    pub opening: bool,
    /// The last write that the AU has room for: it may pay for more than being opened.
    pub fills: bool,
    /// The streams of its test are in linear order.
    pub in_order: bool,
    /// The AU of the stream's visit before is full, this is another. Where it costs nothing, the full one left the table.
    pub goes_on: bool,
}

impl Visit {
    /// Does its time tell whether the AU was open?
    pub fn tells(&self) -> bool {
        !self.opening && !self.fills && !self.goes_on
    }
}

/// The visits of one trial, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The streams in turn, those too that were not reached because it ended early.
    pub set: Vec<u64>,
    pub visits: Vec<Visit>,
}

/// Chances that a visit's time belies what happened: a stall is taken for closing, or closing cost nothing or later.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    pub stalls: f64,
    pub missed: f64,
}

impl Noise {
    /// P(what was seen) of a visit to a closed AU, or an open one.
    fn of(self, closed: bool, slow: bool) -> f64 {
        match (closed, slow) {
            (true, true) => 1.0 - self.missed,
            (true, false) => self.missed,
            (false, true) => self.stalls,
            (false, false) => 1.0 - self.stalls,
        }
    }
}

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
    /// What was seen is believed: where a visit was not as foretold, the table was not as supposed.
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
type Step = (Visit, usize, Option<usize>);

/// All visits, their AUs numbered from 0, and how many AUs there are.
fn numbered(trials: &[Trial]) -> (Vec<Step>, usize) {
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
    fn foretells(self, (steps, aus): &(Vec<Step>, usize), noise: Noise, most: f64) -> Option<f64> {
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
                        // It had been closed, and was opened by this visit or, unnoticed, by the one before.
                        p.opened = if self.halves && !self.to_back { p.last } else { now };
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

/// P(`closed` AUs are closed, `due` of them not yet visited in this round).
#[derive(Clone, Copy)]
struct State {
    closed: usize,
    due: usize,
    p: f64,
}

/// States with less than this share are forgotten.
const FORGOTTEN: f64 = 1e-7;

/// All that random replacement leaves to know of a test.
struct Table {
    k: usize,
    /// AUs of the test, and those of them whose visit in this round is to come.
    n: usize,
    due: usize,
    states: Vec<State>,
    /// Room to add states up in, by closed and due.
    sums: Vec<f64>,
}

impl Table {
    /// Adds up equal states and forgets hopeless ones; the probabilities sum to one again. What they summed to before.
    fn gather(&mut self, next: &[State]) -> f64 {
        let side = self.n + 2;
        if self.sums.len() < side * side {
            self.sums.resize(side * side, 0.0);
        }
        let mut total = 0.0;
        for s in next {
            self.sums[s.closed * side + s.due] += s.p;
            total += s.p;
        }
        self.states.clear();
        for s in next {
            let p = std::mem::take(&mut self.sums[s.closed * side + s.due]) / total;
            if p > FORGOTTEN {
                self.states.push(State { p, ..*s });
            }
        }
        total
    }

    /// One more round, in a new order.
    fn round(&mut self) {
        self.due = self.n;
        let next: Vec<State> = self.states.iter().map(|s| State { due: s.closed, ..*s }).collect();
        self.gather(&next);
    }

    /// AUs open that are not of the test.
    fn others(&self, s: &State) -> f64 {
        (self.k + s.closed).saturating_sub(self.n) as f64
    }

    /// The chance of an AU of the test to be open.
    fn chance_open(&self) -> f64 {
        1.0 - self.states.iter().map(|s| s.p * s.closed as f64).sum::<f64>() / self.n.max(1) as f64
    }

    /// Only `kept` AUs stay in the test, whichever.
    fn keep(&mut self, kept: usize) {
        if kept < self.n {
            let all = ln_choose(self.n, kept);
            let mut next = vec![];
            for s in &self.states {
                for closed in (s.closed + kept).saturating_sub(self.n)..=s.closed.min(kept) {
                    let ln = ln_choose(s.closed, closed) + ln_choose(self.n - s.closed, kept - closed) - all;
                    next.push(State { closed, due: closed, p: s.p * ln.exp() });
                }
            }
            self.n = kept;
            self.gather(&next);
        }
        self.round();
    }

    /// A new AU comes in and is opened, from `states`: another is thrown out.
    fn open(&self, states: &[State], next: &mut Vec<State>) {
        let (n, due, k) = (self.n as f64, self.due as f64, self.k as f64);
        for s in states {
            let (closed, closed_due) = (s.closed as f64, s.due as f64);
            let thrown = s.p / k;
            next.push(State { p: thrown * self.others(s), ..*s });
            next.push(State { closed: s.closed + 1, due: s.due + 1, p: thrown * (due - closed_due).max(0.0) });
            next.push(State { closed: s.closed + 1, due: s.due, p: thrown * (n - due - closed + closed_due).max(0.0) });
        }
    }

    /// A stream comes in whose AU is this `share` of the others that may be open, and is opened.
    fn join(&mut self, share: f64) {
        let mut next = vec![];
        let mut shut = self.states.clone();
        for s in shut.iter_mut().filter(|_| share > 0.0) {
            let was_open = (self.others(s) * share).min(1.0);
            next.push(State { p: s.p * was_open, ..*s });
            s.p *= 1.0 - was_open;
        }
        self.open(&shut, &mut next);
        self.n += 1;
        self.gather(&next);
    }

    /// One of those due in this round has filled its AU and goes on in a new one: in its place when that was fast.
    fn go_on(&mut self, slow: bool, noise: Noise) {
        let due = self.due as f64;
        let (mut next, mut left) = (vec![], vec![]);
        for s in &self.states {
            let shut = s.due as f64 / due;
            if s.due > 0 {
                left.push(State { closed: s.closed - 1, due: s.due - 1, p: s.p * shut * noise.of(true, slow) });
            }
            match slow {
                false => next.push(State { p: s.p * (1.0 - shut), ..*s }),
                true => left.push(State { p: s.p * (1.0 - shut), ..*s }),
            }
        }
        (self.n, self.due) = (self.n - 1, self.due - 1);
        self.open(&left, &mut next);
        self.n += 1;
        self.gather(&next);
    }

    /// One of those due in this round is visited; ln P(seen).
    fn visit(&mut self, seen: Option<(bool, Noise)>) -> f64 {
        let (n, due, k) = (self.n as f64, self.due as f64, self.k as f64);
        let of = |closed: bool| seen.map_or(1.0, |(slow, noise)| noise.of(closed, slow));
        let mut next = vec![];
        for s in &self.states {
            let (closed, closed_due) = (s.closed as f64, s.due as f64);
            next.push(State { p: s.p * (1.0 - closed_due / due) * of(false), ..*s });
            if s.due > 0 {
                let p = s.p * closed_due / due * of(true) / k;
                next.push(State { closed: s.closed - 1, due: s.due - 1, p: p * self.others(s) });
                next.push(State { closed: s.closed, due: s.due - 1, p: p * (n - due - closed + closed_due).max(0.0) });
                next.push(State { p: p * (due - closed_due), ..*s });
            }
        }
        self.due -= 1;
        self.gather(&next).ln()
    }
}

fn ln_choose(n: usize, k: usize) -> f64 {
    ln_gamma(n as f64 + 1.0) - ln_gamma(k as f64 + 1.0) - ln_gamma((n - k) as f64 + 1.0)
}

/// AUs that left the test, each with the chance that it is still open.
struct Gone {
    /// Chance when it left, and how many were thrown out until then.
    streams: HashMap<u64, (f64, f64)>,
    /// How many are open by all these chances, what was open before the run included.
    open: f64,
    thrown: f64,
    k: f64,
}

impl Gone {
    fn leaves(&mut self, stream: Option<u64>, chance: f64) {
        self.open += chance;
        if let Some(s) = stream {
            self.streams.insert(s, (chance, self.thrown));
        }
    }

    /// One open AU was thrown out, whichever: with so much chance.
    fn throw(&mut self, chance: f64) {
        self.thrown += chance;
        self.open *= (-chance / self.k).exp();
    }

    /// The share of a stream that returns of all that may be open.
    fn returns(&mut self, stream: u64) -> f64 {
        let Some((chance, then)) = self.streams.remove(&stream) else { return 0.0 };
        let now = chance * ((then - self.thrown) / self.k).exp();
        let share = now / self.open.max(now).max(1e-9);
        self.open -= now;
        share
    }
}

/// Any open AU goes, with the same chance. ln P(slow and fast visits, in their order) when `k` AUs stay open, one at least.
pub fn random(trials: &[Trial], k: usize, noise: Noise) -> f64 {
    let k = k.max(1);
    let mut table = Table { k, n: 0, due: 0, states: vec![State { closed: 0, due: 0, p: 1.0 }], sums: vec![] };
    let mut gone = Gone { streams: HashMap::new(), open: k as f64, thrown: 0.0, k: k as f64 };
    let mut of_test: HashSet<u64> = HashSet::new();
    let mut ln = 0.0;
    for t in trials {
        let left: Vec<u64> = of_test.iter().copied().filter(|s| !t.set.contains(s)).collect();
        for stream in left {
            of_test.remove(&stream);
            gone.leaves(Some(stream), table.chance_open());
        }
        table.keep(of_test.len());
        let mut visited: HashSet<u64> = HashSet::new();
        let mut opening = true;
        for v in &t.visits {
            if visited.contains(&v.stream) || opening && !v.opening {
                table.round();
                visited.clear();
                opening = v.opening;
            }
            let seen = v.tells().then_some((v.slow, noise));
            if of_test.insert(v.stream) {
                let share = if v.goes_on { 0.0 } else { gone.returns(v.stream) };
                table.join(share);
                gone.throw(if share > 0.0 { v.slow as u8 as f64 } else { 1.0 });
            } else if v.goes_on {
                if v.slow {
                    gone.leaves(None, table.chance_open());
                }
                table.go_on(v.slow, noise);
                gone.throw(v.slow as u8 as f64);
            } else {
                ln += table.visit(seen);
                gone.throw(v.slow as u8 as f64);
            }
            visited.insert(v.stream);
        }
    }
    ln
}

/// Below this many nats from the best, counts further on are not tried.
const HOPELESS: f64 = 40.0;

/// So many of the slow visits may not be as foretold, stalls apart, or the table works in another way.
const BELIED: f64 = 0.1;

/// A run follows random replacement only about: what it says counts a third.
const ABOUT: f64 = 3.0;

/// ln P(visits) by count of AUs that stay open.
pub type ByCount = Vec<(usize, f64)>;

/// By all queues that foretell nearly every visit. `random_order`: visits lie in random order inside each AU.
pub fn ln_queues(trials: &[Trial], counts: RangeInclusive<usize>, random_order: bool, noise: Noise) -> ByCount {
    let tell: Vec<bool> = trials.iter().flat_map(|t| &t.visits).filter(|v| v.tells()).map(|v| v.slow).collect();
    let slow = tell.iter().filter(|&&slow| slow).count();
    let most_belied = 2.0 + (BELIED * slow as f64 + noise.stalls * tell.len() as f64).min(0.5 * slow as f64);
    let steps = numbered(trials);
    let mut all = vec![];
    // Only in random order does the card know of AUs that count for nothing, and throw them out unseen.
    for rule in 0..if random_order { 6 } else { 2 } {
        let queue = |k| Queue { k, to_back: rule & 1 == 0, halves: rule >= 2, believes: rule >= 4 };
        let of = |k| Some((k, queue(k).foretells(&steps, noise, most_belied)? - (rule as f64 + 1.0).ln()));
        all.extend(counts.clone().filter_map(of));
    }
    all
}

/// By random replacement. In random order an AU may be taken for a linear one after it was closed: that is not followed here.
pub fn ln_random(trials: &[Trial], counts: RangeInclusive<usize>, noise: Noise) -> ByCount {
    let mut all: ByCount = vec![];
    let mut top = f64::NEG_INFINITY;
    for k in counts {
        all.push((k, random(trials, k, noise)));
        top = all.iter().map(|a| a.1).fold(top, f64::max);
        if all.iter().rev().take(2).all(|a| a.1 < top - HOPELESS) {
            break;
        }
    }
    all.retain(|a| a.1.is_finite());
    all.into_iter().map(|(k, ln)| (k, top + (ln - top) / ABOUT - 3.0)).collect()
}

/// ln P(visits) by no rule: in each trial any number of slow ones, in any order.
pub fn ln_by_no_rule(trials: &[Trial]) -> f64 {
    let of = |t: &Trial| {
        let seen: Vec<bool> = t.visits.iter().filter(|v| v.tells()).map(|v| v.slow).collect();
        ln_any_order(seen.len(), seen.iter().filter(|&&slow| slow).count())
    };
    trials.iter().map(of).sum()
}

/// ln P(this order) of `slow` of `n` visits where any number is as likely, and any order.
pub fn ln_any_order(n: usize, slow: usize) -> f64 {
    -(n as f64 + 1.0).ln() - ln_choose(n, slow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_pcg::Pcg64Mcg;
    use rand_pcg::rand_core::Rng;

    const NOISE: Noise = Noise { stalls: 0.01, missed: 0.01 };

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Policy {
        Lru,
        Fifo,
        Random,
    }

    /// A table of `k` AUs and a search that visits `counts` AUs in turn; an AU is full after `lasts` visits.
    fn played(policy: Policy, k: usize, counts: &[usize], rounds: usize, lasts: u64, seed: u128) -> Vec<Trial> {
        let mut rng = Pcg64Mcg::new(seed);
        let mut table: Vec<u64> = (0..k as u64).map(|i| u64::MAX - i).collect();
        let mut done: HashMap<u64, u64> = HashMap::new();
        let mut out = vec![];
        for &n in counts {
            let mut order: Vec<u64> = (0..n as u64).collect();
            let mut visits = vec![];
            for round in 0..=rounds {
                for i in (1..n).rev() {
                    order.swap(i, (rng.next_u64() % (i as u64 + 1)) as usize);
                }
                for &stream in &order {
                    if round == 0 && done.contains_key(&stream) {
                        continue;
                    }
                    let d = done.entry(stream).or_default();
                    let au = stream * 1000 + *d / lasts;
                    *d += 1;
                    let at = table.iter().position(|&a| a == au);
                    let victim = if policy == Policy::Random { (rng.next_u64() % k as u64) as usize } else { 0 };
                    match at {
                        None => {
                            table.remove(victim);
                            table.push(au);
                        }
                        Some(i) if policy == Policy::Lru => {
                            table.remove(i);
                            table.push(au);
                        }
                        _ => {}
                    }
                    let goes_on = *d > 1 && (*d - 1).is_multiple_of(lasts);
                    visits.push(Visit { stream, au, slow: at.is_none(), opening: round == 0, fills: false, in_order: true, goes_on });
                }
            }
            out.push(Trial { set: (0..n as u64).collect(), visits });
        }
        out
    }

    #[test]
    fn each_policy_is_known_by_its_visits() {
        let counts: Vec<usize> = (1..=16).chain([18, 22, 17, 16]).collect();
        for (policy, seed) in [Policy::Lru, Policy::Fifo, Policy::Random].into_iter().zip(1..) {
            let t = played(policy, 16, &counts, 6, 40, seed);
            let mut ln = ln_queues(&t, 10..=23, false, NOISE);
            ln.extend(ln_random(&t, 10..=23, NOISE));
            let best = ln.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
            assert!(best.0 == 16 || policy == Policy::Random && best.0.abs_diff(16) <= 1, "{policy:?}: {ln:?}");
            assert!(best.1 > ln_by_no_rule(&t), "{policy:?}");
        }
    }

    #[test]
    fn random_replacement_is_told_as_surely_as_it_is_right() {
        let (mut right, mut told) = (0.0, 0.0);
        const PLAYS: usize = 52;
        for seed in 0..PLAYS {
            let k = 24 + seed % 13;
            let counts: Vec<usize> = (1..=12).chain([16, 21, 28, 37, 33, 31, 30]).collect();
            let t = played(Policy::Random, k, &counts, 12, 100000, seed as u128);
            let ln: Vec<(usize, f64)> = (20..44).map(|k| (k, random(&t, k, NOISE))).collect();
            let top = ln.iter().map(|l| l.1).fold(f64::NEG_INFINITY, f64::max);
            let all: f64 = ln.iter().map(|l| (l.1 - top).exp()).sum();
            for (j, l) in ln {
                let p = (l - top).exp() / all;
                told += p * p;
                right += if j == k { p } else { 0.0 };
            }
        }
        assert!((right - told).abs() < 0.1 * told, "right {right:.1} of {PLAYS}, told {told:.1}");
    }
}
