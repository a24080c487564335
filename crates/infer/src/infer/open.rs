//! How many AUs stay open: a posterior over the limit from rounds of visits.
//!
//! Whatever the card throws out when its table is full, a full round over N > K AUs must find at least N - K of them
//! closed (pigeonhole), so slow visits keep coming; with N <= K there are none, but for the odd stall.

use super::replacement::{ByCount, Noise, Trial, ln_by_no_rule, ln_queues, ln_random, quiet_ends, without};
use super::stats::{ln_any_order, ln_beta_binomial, ln_sum_exp, median};
use std::ops::Range;

/// One trial: N AUs visited in turn; the opening round is left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Visits {
    pub n: u32,
    /// Visits and slow visits of each round; the last may be cut short.
    pub rounds: Vec<(u32, u32)>,
    /// Other AUs that may still have been open when it began.
    pub left: u32,
    /// Rounds after which every AU is full and its stream goes on in another one.
    pub lasts: u32,
    /// Visits and slow visits of this trial that came before those rounds and say nothing.
    pub before: (u32, u32),
}

/// ln of the chance that a count which settled was too many after all: two AUs of the test are one, or a cache hid it.
const PROVED: f64 = -7.0;

/// ln of the share of cards of which AUs of a search lie in a part without merges. Assumed.
const FREE: f64 = -6.0;

/// A policy this many nats better than none needs no other beside it.
const UNRIVALLED: f64 = 10.0;

impl Visits {
    /// Rounds without a slow visit that prove that all AUs are open, by the pigeonhole. Not two: in random order every second round may be
    /// clean though one is missing, for a closed AU may open as a linear one without cost; and what was never written is closed once at
    /// no cost, for there is nothing to copy.
    pub const CLEAN_ROUNDS: usize = 3;

    /// Do all AUs stay open, whatever the card throws out?
    pub fn settled(&self) -> bool {
        let clean = self.rounds.iter().rev().take_while(|r| r.1 == 0).filter(|r| r.0 == self.n).count();
        clean >= Visits::CLEAN_ROUNDS && clean * self.n as usize >= 6
    }

    pub(super) fn sum(&self) -> (u32, u32) {
        self.rounds.iter().fold((0, 0), |a, r| (a.0 + r.0, a.1 + r.1))
    }
}

/// Slow visits, and visits of that kind, where none should be slow.
pub type Stalls = (u32, u32);

/// How often visits are slow though nothing is closed.
#[derive(Clone, Copy)]
pub enum Slow {
    /// So often where one AU alone was written; in the trials that fit, as often.
    Here(Stalls),
    /// So often, and trials that fit show less of it: logs still had room.
    Always(Stalls),
}

impl Slow {
    fn stalls(self) -> Stalls {
        let (Slow::Here(s) | Slow::Always(s)) = self;
        s
    }
}

/// How many of the `left` AUs from before are still open after `slow` visits that each threw out one of `n` at random: (1 - 1/n)^slow
/// of them.
pub fn unsettled(n: f64, left: f64, slow: f64) -> f64 {
    left * (-slow / n).exp()
}

/// ln P(slow visits in all trials of one count) when its AUs all stay open: only stalls are slow.
///
/// Or the table was not settled yet: LRU and FIFO settle in a round or two, random replacement by and by. Where streams go on in
/// other AUs it begins anew.
fn ln_fits(trials: &[&Visits], stalls: Stalls) -> f64 {
    let (a, b) = (0.3 + stalls.0 as f64, 12.0 + (stalls.1 - stalls.0.min(stalls.1)) as f64);
    let n = trials.first().map_or(1, |v| v.n.max(1)) as f64;
    let (visits, slow) = trials.iter().map(|v| v.sum()).fold((0, 0), |a, s| (a.0 + s.0, a.1 + s.1));
    let rounds: u32 = trials.iter().map(|v| v.rounds.len() as u32).sum();
    let lasts = trials.first().map_or(u32::MAX, |v| v.lasts.max(1));
    let left = if rounds > lasts { n } else { trials.first().map_or(1, |v| v.left.max(1)) as f64 };
    let counts = slow as f64 * (lasts as f64 / rounds.max(1) as f64).min(1.0);
    // Random replacement is slow now and then.
    let unsettled = if slow * 2 > visits { 0.02 } else { unsettled(n, left, counts).clamp(0.004, 0.4) };
    let (mut usual, mut fooled) = (f64::ln(1.0 - unsettled), unsettled.ln());
    for v in trials {
        let (n, slow) = v.sum();
        let stalled = ln_beta_binomial(slow as f64, n as f64, a, b);
        usual += stalled;
        fooled += stalled.max(-((n + 1) as f64).ln());
    }
    ln_sum_exp(&[usual, fooled])
}

/// The weights of 0 to `n` slow visits of `n` where AUs are too many, each added to those of fewer: LRU makes nearly all slow, random
/// replacement little more than must be.
fn weights(n: u32) -> Vec<f64> {
    let of = |s: u32| {
        let share = s as f64 / n.max(1) as f64;
        0.4 + share + 4.0 * share.powi(8)
    };
    let add = |sum: &mut f64, s: u32| {
        *sum += of(s);
        Some(*sum)
    };
    std::iter::once(0.0).chain((0..=n).scan(0.0, add)).collect()
}

/// ln P(slow visits) when `over` more AUs were visited than stay open. Whatever is thrown out, a round must find that many
/// closed; in random order every second round, for a closed AU may open as a linear one without cost. A card may put a
/// cost off until the next write, so one slow visit may be missing. `sums` are the [`weights`] of its visits.
fn ln_exceeds(v: &Visits, sums: &[f64], over: u32, random: bool) -> f64 {
    let (n, slow) = v.sum();
    let whole: u32 = v.rounds.iter().filter(|r| r.0 == v.n).count() as u32;
    let least = (whole * over / (1 + random as u32)).min(n) as usize;
    // Little more than must be, of so many from the first of these on.
    let few = if least > 0 { 3 * least + 1 } else { 0 };
    let weight = |from: usize, to: usize| sums[to] - sums[from] + 2.0 * (to.min(few) - from.min(few)) as f64;
    let missing = |s: usize| 0.04f64.powi(least.saturating_sub(s).min(3) as i32);
    let edges = [0, least.saturating_sub(2), least.saturating_sub(1), least, n as usize + 1];
    let all: f64 = edges.windows(2).map(|w| weight(w[0], w[1]) * missing(w[0])).sum();
    (weight(slow as usize, slow as usize + 1) * missing(slow as usize) / all).ln()
}

/// What the visits of a run say of the limit K, by counts of slow ones and by policies of replacement.
#[derive(Clone, Debug, PartialEq)]
pub struct ByPolicy {
    /// P(K) from none to the most that were tried, which stands for "that many or more"; flat prior.
    pub p: Vec<(u32, f64)>,
    /// The chance that a known policy rules, and of these one that foretells each visit.
    pub rules: f64,
    pub foretells: f64,
    /// Streams at one end that need no room in the table, where that is likelier than that all do.
    pub free: Option<Range<u64>>,
}

/// Posterior over the limit K in 0..=most. `trials` are the last of each count, `history` are all of a run, in their order. What is
/// seen in trials that fit under a K says how often this card stalls.
pub fn by_policy(trials: &[Visits], history: &[Trial], often: Slow, most: u32, random: bool) -> ByPolicy {
    let trials = telling(trials);
    let by_counts = ln_counts(&trials, often, most, random);
    let stalls = often.stalls();
    // Counts of slow visits against the visits themselves, in their order: of so many slow ones, any order is as likely.
    let seen = |(n, slow): (u32, u32)| (n as usize, slow as usize);
    let order = |v: &Visits| {
        let (n, before) = (seen(v.sum()), seen(v.before));
        let whole = (n.0 + before.0, n.1 + before.1);
        ln_any_order(n.0, n.1) + (n.0 as f64 + 1.0).ln() + ln_any_order(before.0, before.1) - ln_any_order(whole.0, whole.1)
    };
    let in_order = ln_by_no_rule(history) + trials.iter().map(order).sum::<f64>();
    let mut ln: Vec<f64> = by_counts.iter().map(|l| l + in_order).collect();
    let noise = Noise { stalls: (0.3 + stalls.0 as f64) / (12.0 + stalls.1 as f64), missed: 0.03 };
    let counts = proved(&trials).max(1 - random as u32) as usize..=most as usize;
    let queues = ln_queues(history, counts.clone(), &(0..0), random, noise);
    let sum = |by: &[(usize, f64)]| ln_sum_exp(&by.iter().map(|a| a.1).collect::<Vec<_>>());
    let no_policy = ln_sum_exp(&ln);
    let unrivalled = sum(&queues) > no_policy + UNRIVALLED;
    let by_chance = if random || unrivalled { vec![] } else { ln_random(history, counts, noise) };
    let free = free_ends(history, most as usize, random, noise, !unrivalled);
    let foretold = ln_sum_exp(&std::iter::once(&queues).chain(free.iter().map(|f| &f.queues)).map(|by| sum(by)).collect::<Vec<_>>());
    let by_free = free.iter().flat_map(|f| f.queues.iter().chain(&f.by_chance));
    for (k, policy) in queues.iter().chain(&by_chance).chain(by_free) {
        ln[*k] = ln_sum_exp(&[ln[*k], *policy]);
    }
    let all = ln_sum_exp(&ln);
    let likeliest = free.into_iter().map(|f| (ln_sum_exp(&[sum(&f.queues), sum(&f.by_chance)]), f.ends)).max_by(|a, b| a.0.total_cmp(&b.0));
    let free = likeliest.filter(|(ln, _)| (ln - all).exp() > 0.5).map(|f| f.1);
    ByPolicy { p: normal(&ln), rules: 1.0 - (no_policy - all).exp(), foretells: (foretold - all).exp(), free }
}

/// ln P(visits) by policies, if the streams at one end need no room in the table.
struct Free {
    ends: Range<u64>,
    queues: ByCount,
    by_chance: ByCount,
}

/// By each end that was never slow; `chance`: by random replacement, too.
fn free_ends(history: &[Trial], most: usize, random: bool, noise: Noise, chance: bool) -> Vec<Free> {
    let of = |ends: Range<u64>| {
        let (others, seen) = without(history, &ends);
        let counts = others.iter().map(settles).max().unwrap_or(0).max(1)..=most;
        let weighed = |by: ByCount, more: f64| by.into_iter().map(|(k, ln)| (k, ln + FREE + more)).collect();
        let queues = weighed(ln_queues(history, counts.clone(), &ends, random, noise), 0.0);
        let by_chance = if random || !chance { vec![] } else { weighed(ln_random(&others, counts, noise), noise.ln_open(seen)) };
        Free { ends, queues, by_chance }
    };
    quiet_ends(history).into_iter().map(of).collect()
}

/// The AUs of a trial, where its last rounds prove that all are open; else 0.
fn settles(t: &Trial) -> usize {
    let n = t.set.len();
    let fast = t.visits.iter().rev().filter(|v| v.tells()).take_while(|v| !v.slow).count();
    if fast >= (Visits::CLEAN_ROUNDS * n).max(6) { n } else { 0 }
}

fn normal(ln: &[f64]) -> Vec<(u32, f64)> {
    let all = ln_sum_exp(ln);
    (0..).zip(ln.iter().map(|l| (l - all).exp())).collect()
}

/// The largest count that settled.
pub fn proved(trials: &[Visits]) -> u32 {
    trials.iter().filter(|v| v.settled()).map(|v| v.n).max().unwrap_or(0)
}

/// What was slow below a count that settled was so for what went before, not for the limit.
fn telling(trials: &[Visits]) -> Vec<Visits> {
    let proved = proved(trials);
    trials.iter().filter(|v| v.n > proved || v.sum().1 == 0).cloned().collect()
}

/// ln P(slow visits) for each limit K in 0..=most, whatever is thrown out.
fn ln_counts(trials: &[Visits], often: Slow, most: u32, random: bool) -> Vec<f64> {
    let proved = proved(trials);
    let trials: Vec<&Visits> = trials.iter().collect();
    let mut counts: Vec<u32> = trials.iter().map(|v| v.n).collect();
    counts.sort_unstable();
    counts.dedup();
    let groups: Vec<Vec<&Visits>> = counts.iter().map(|&n| trials.iter().copied().filter(|v| v.n == n).collect()).collect();
    // The calmest trial of a count says how often this card stalls; the others may not have been settled.
    let share = |c: &Stalls| c.0 as f64 / c.1.max(1) as f64;
    let calmest = |g: &Vec<&Visits>| g.iter().map(|v| (v.sum().1, v.sum().0)).min_by(|a, b| share(a).total_cmp(&share(b)));
    let as_often = |c: &Stalls| matches!(often, Slow::Here(_)) && c.0 * 4 <= c.1;
    let sums: Vec<Vec<Vec<f64>>> = groups.iter().map(|g| g.iter().map(|v| weights(v.sum().0)).collect()).collect();
    let calm: Vec<Stalls> = groups.iter().map(|g| calmest(g).filter(as_often).unwrap_or_default()).collect();
    (0..=most)
        .map(|k| {
            let fit = |i: &usize| counts[*i] <= k;
            let all = (0..counts.len()).filter(fit).fold(often.stalls(), |a, i| (a.0 + calm[i].0, a.1 + calm[i].1));
            let one = |i: usize| match fit(&i) {
                true => ln_fits(&groups[i], (all.0 - calm[i].0, all.1 - calm[i].1)),
                false => groups[i].iter().zip(&sums[i]).map(|(v, sums)| ln_exceeds(v, sums, counts[i] - k, random)).sum(),
            };
            let contradicts = if k < proved { PROVED } else { 0.0 };
            (0..counts.len()).map(one).sum::<f64>() + contradicts
        })
        .collect()
}

/// Slow visits stand apart from fast ones; where is the line between them? Times in any unit.
///
/// `fast` are visits that cannot have closed anything. `close` is the cost of closing where it is known. `None` when no
/// visit is slower than twice the fast ones.
pub fn line(fast: &[f64], all: &[f64], close: Option<f64>) -> Option<f64> {
    let base = median(fast);
    let slow: Vec<f64> = all.iter().copied().filter(|&t| t > 2.0 * base).collect();
    let high = match close {
        Some(c) => base + c,
        None if slow.is_empty() => return None,
        None => median(&slow),
    };
    // Closer to the slow side: copying part of an AU is cheaper than all of it, but never this cheap.
    Some((base * high).sqrt().max(1.8 * base).min(0.6 * high).max(1.3 * base))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v(n: u32, rounds: &[(u32, u32)]) -> Visits {
        Visits { n, rounds: rounds.to_vec(), left: 1, lasts: u32::MAX, before: (0, 0) }
    }

    /// P(K), whatever is thrown out.
    fn posterior(trials: &[Visits], stalls: Stalls, most: u32) -> Vec<f64> {
        normal(&ln_counts(&telling(trials), Slow::Here(stalls), most, false)).into_iter().map(|p| p.1).collect()
    }

    #[test]
    fn lru_cliff_between_five_and_six() {
        let t = [v(4, &[(4, 0); 4]), v(8, &[(6, 6)]), v(5, &[(5, 0); 4]), v(6, &[(6, 6)])];
        let p = posterior(&t, (0, 6), 16);
        assert!(p[5] > 0.95, "{p:?}");
    }

    #[test]
    fn a_table_that_never_settles_is_too_small_and_a_lone_stall_is_not() {
        // Four rounds may still be the way there, forty are not.
        let exceeds = v(21, &[(21, 2), (21, 1), (21, 3), (21, 2)].repeat(10));
        let p = posterior(&[exceeds], (0, 20), 21);
        assert!(p[21] < 0.25, "{p:?}");
        let stall = v(20, &[(20, 0), (20, 1), (20, 0)]);
        let p = posterior(&[stall], (0, 20), 20);
        assert!(p[20] > 0.9, "{p:?}");
    }

    #[test]
    fn untested_counts_share_the_doubt() {
        let p = posterior(&[v(4, &[(4, 0); 4]), v(8, &[(6, 6)])], (0, 8), 16);
        assert!(p[4..8].iter().sum::<f64>() > 0.95 && p[4] < 0.4, "{p:?}");
    }
}
