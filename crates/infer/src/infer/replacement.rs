//! What a table of open AUs throws out when it is full: the AU used longest ago, the one opened longest ago, or any. Each policy
//! says of every visit of a run how likely it is to be slow, given how many AUs stay open; so a run says how many, and which.

mod queue;
mod random;

use super::stats::ln_any_order;
use queue::{Queues, numbered};
use random::{Steps, Tables};
use std::cell::Cell;
use std::collections::HashSet;
use std::ops::{Range, RangeInclusive};

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
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Noise {
    pub stalls: f64,
    pub missed: f64,
}

impl Noise {
    /// ln P of so many visits to AUs that are open, and so many slow ones of them.
    pub fn ln_open(self, (visits, slow): (usize, usize)) -> f64 {
        let ln = |slow: bool| self.of(false, slow).ln();
        (visits - slow) as f64 * ln(false) + slow as f64 * ln(true)
    }

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

/// Below this many nats from the best, counts further on are not tried.
const HOPELESS: f64 = 40.0;

/// So many of the slow visits may not be as foretold, stalls apart, or the table works in another way.
const BELIED: f64 = 0.1;

/// A run follows random replacement only about: what it says counts a third.
const ABOUT: f64 = 3.0;

/// ln P(visits) by count of AUs that stay open.
pub type ByCount = Vec<(usize, f64)>;

/// By all queues that foretell nearly every visit. `random_order`: visits lie in random order inside each AU. Streams in `free` need no room in
/// the table.
pub fn ln_queues(trials: &[Trial], counts: RangeInclusive<usize>, free: &Range<u64>, random_order: bool, noise: Noise) -> ByCount {
    let tell: Vec<bool> = trials.iter().flat_map(|t| &t.visits).filter(|v| v.tells()).map(|v| v.slow).collect();
    let slow = tell.iter().filter(|&&slow| slow).count();
    let most_belied = 2.0 + (BELIED * slow as f64 + noise.stalls * tell.len() as f64).min(0.5 * slow as f64);
    let mut queues = QUEUES.take();
    queues.go_by(numbered(trials));
    let mut all = vec![];
    // Only in random order does the card know of AUs that count for nothing, and throw them out unseen.
    for rule in 0..if random_order { 6 } else { 2 } {
        let of = |k| Some((k, queues.ln(rule, k, free, noise, most_belied)? - (rule as f64 + 1.0).ln()));
        all.extend(counts.clone().filter_map(of));
    }
    QUEUES.set(queues);
    all
}

thread_local! {
    /// Of the search that is going on.
    static QUEUES: Cell<Queues> = Cell::default();
    static TABLES: Cell<Tables> = Cell::default();
}

/// Streams before the first that ever was slow, and behind the last, where that is hardly chance: they may need no room in the table, as in a FAT zone,
/// or in a part that is mapped by page. Opening one of them was never slow, and most others were: AUs that a card holds on to, because they were written
/// again and again, had to be opened.
pub fn quiet_ends(trials: &[Trial]) -> Vec<Range<u64>> {
    let told = |t: &Trial| t.visits.iter().filter(|v| v.tells()).copied().collect::<Vec<Visit>>();
    let with_slow: Vec<Vec<Visit>> = trials.iter().map(told).filter(|t| t.iter().any(|v| v.slow)).collect();
    let slow = || with_slow.iter().flatten().filter(|v| v.slow).map(|v| v.stream);
    let (Some(first), Some(last)) = (slow().min(), slow().max()) else { return vec![] };
    // -ln of the chance that none of its visits was slow, if they are so as often as the others of a trial.
    let chance = |ends: &Range<u64>, t: &Vec<Visit>| {
        let quiet = t.iter().filter(|v| ends.contains(&v.stream)).count() as f64;
        let slow = t.iter().filter(|v| v.slow).count() as f64;
        -quiet * (1.0 - slow / (t.len() as f64 - quiet)).max(0.05).ln()
    };
    let told = |ends: &Range<u64>| with_slow.iter().map(|t| chance(ends, t)).sum::<f64>() > QUIET;
    let mut known = HashSet::new();
    let opened: Vec<Visit> = trials.iter().flat_map(|t| &t.visits).copied().filter(|v| known.insert(v.stream)).collect();
    let for_nothing = |ends: &Range<u64>| {
        let (theirs, others): (Vec<&Visit>, Vec<&Visit>) = opened.iter().partition(|v| ends.contains(&v.stream));
        theirs.iter().all(|v| !v.slow) && 2 * others.iter().filter(|v| v.slow).count() >= others.len()
    };
    [0..first, last + 1..u64::MAX].into_iter().filter(|ends| told(ends) && for_nothing(ends)).collect()
}

/// -ln of the chance from which on AUs that were not slow are looked at.
const QUIET: f64 = 1.0;

/// The trials without streams in `free`; of these, the visits that tell, and slow ones.
pub fn without(trials: &[Trial], free: &Range<u64>) -> (Vec<Trial>, (usize, usize)) {
    let gone = trials.iter().flat_map(|t| &t.visits).filter(|v| free.contains(&v.stream) && v.tells());
    let seen = gone.fold((0, 0), |a, v| (a.0 + 1, a.1 + v.slow as usize));
    let rest = |t: &Trial| Trial {
        set: t.set.iter().copied().filter(|s| !free.contains(s)).collect(),
        visits: t.visits.iter().copied().filter(|v| !free.contains(&v.stream)).collect(),
    };
    (trials.iter().map(rest).collect(), seen)
}

/// By random replacement. In random order an AU may be taken for a linear one after it was closed: that is not followed here.
pub fn ln_random(trials: &[Trial], counts: RangeInclusive<usize>, noise: Noise) -> ByCount {
    let mut all: ByCount = vec![];
    let mut top = f64::NEG_INFINITY;
    let mut tables = TABLES.take();
    tables.go_by(Steps::of(trials), noise);
    for k in counts {
        all.push((k, tables.ln(k)));
        top = all.iter().map(|a| a.1).fold(top, f64::max);
        if all.iter().rev().take(2).all(|a| a.1 < top - HOPELESS) {
            break;
        }
    }
    TABLES.set(tables);
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

#[cfg(test)]
mod tests {
    use super::*;
    use rand_pcg::Pcg64Mcg;
    use rand_pcg::rand_core::Rng;
    use std::collections::HashMap;

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
            let mut ln = ln_queues(&t, 10..=23, &(0..0), false, NOISE);
            ln.extend(ln_random(&t, 10..=23, NOISE));
            let best = ln.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
            assert!(best.0 == 16 || policy == Policy::Random && best.0.abs_diff(16) <= 1, "{policy:?}: {ln:?}");
            assert!(best.1 > ln_by_no_rule(&t), "{policy:?}");
        }
    }

    #[test]
    fn aus_at_one_end_that_need_no_room_are_not_counted() {
        for (policy, seed) in [Policy::Lru, Policy::Fifo].into_iter().zip(7..) {
            // Streams 0 and 1 are never slow, and leave a table of five to the others.
            let mut trials = played(policy, 5, &[1, 2, 3, 4, 5, 8, 6, 5, 6], 6, 1000, seed);
            for t in &mut trials {
                t.set = [0, 1].into_iter().chain(t.set.iter().map(|s| s + 2)).collect();
                t.visits.iter_mut().for_each(|v| (v.stream, v.au) = (v.stream + 2, v.au + 2000));
                let [one, other] = [0, 1].map(|stream| Visit { stream, au: stream * 1000, slow: false, ..t.visits[t.visits.len() - 1] });
                t.visits.extend([one, other, other, one]);
            }
            let ends = quiet_ends(&trials);
            assert!(ends.len() == 1 && ends[0] == (0..2), "{policy:?}: {ends:?}");
            let best = |free: &Range<u64>| ln_queues(&trials, 1..=9, free, false, NOISE).into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
            let (k, ln) = best(&ends[0]).unwrap();
            assert!(k == 5 && best(&(0..0)).is_none_or(|b| b.1 < ln - 10.0), "{policy:?}: {k} {ln} {:?}", best(&(0..0)));
            let (others, seen) = without(&trials, &ends[0]);
            assert!(seen.0 > 20 && seen.1 == 0 && quiet_ends(&others).is_empty());
        }
    }

    /// A queue by the order of opening, in which an AU just opened counts for nothing before its second visit.
    fn played_in_halves(k: usize, counts: &[usize], seed: u128) -> Vec<Trial> {
        let mut rng = Pcg64Mcg::new(seed);
        let mut below = |n: usize| (rng.next_u64() % n as u64) as usize;
        let mut table: Vec<(u64, bool)> = vec![];
        let mut trial = |&n: &usize| {
            let mut visits = vec![];
            for round in 0..20 {
                let mut order: Vec<u64> = (0..n as u64).collect();
                (1..n).rev().for_each(|i| order.swap(i, below(i + 1)));
                for au in order {
                    let at = table.iter().position(|a| a.0 == au);
                    let slow = at.is_some_and(|i| !table[i].1);
                    match at {
                        None => table.push((au, false)),
                        Some(i) => table[i].1 = true,
                    }
                    if table.iter().filter(|a| a.1).count() > k {
                        let oldest = table.iter().position(|a| a.1 && a.0 != au).unwrap();
                        table.remove(oldest);
                    }
                    visits.push(Visit { stream: au, au, slow, opening: round < 2, fills: false, in_order: false, goes_on: false });
                }
            }
            Trial { set: (0..n as u64).collect(), visits }
        };
        counts.iter().map(&mut trial).collect()
    }

    #[test]
    fn a_queue_by_the_order_of_opening_is_followed() {
        for k in [5, 9, 20] {
            let counts: Vec<usize> = (1..=k).chain([k + 1, k + 2, k, k + 1]).collect();
            let t = played_in_halves(k, &counts, k as u128);
            let ln = ln_queues(&t, 1..=k + 4, &(0..0), true, NOISE);
            let best = ln.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_else(|| panic!("{k}: none fits"));
            assert_eq!(best.0, k, "{ln:?}");
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
            let mut tables = Tables::default();
            tables.go_by(Steps::of(&t), NOISE);
            let ln: Vec<(usize, f64)> = (20..44).map(|k| (k, tables.ln(k))).collect();
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
