//! How many AUs stay open: a posterior over the limit from rounds of visits.
//!
//! Whatever the card throws out when its table is full, a full round over N > K AUs must find at least N - K of them
//! closed (pigeonhole), so slow visits keep coming; with N <= K there are none, but for the odd stall.

use super::stats::{ln_beta_binomial, ln_sum_exp, median};

/// One trial: N AUs visited in turn; the opening round is left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Visits {
    pub n: u32,
    /// Visits and slow visits of each round; the last may be cut short.
    pub rounds: Vec<(u32, u32)>,
}

/// ln odds that N AUs fit against that they exceed the limit. `stalls`: slow visits and visits where none should be slow.
pub fn log_odds(v: &Visits, stalls: (u32, u32)) -> f64 {
    let (a, b) = (0.3 + stalls.0 as f64, 12.0 + (stalls.1 - stalls.0) as f64);
    let n: u32 = v.rounds.iter().map(|r| r.0).sum();
    let slow: u32 = v.rounds.iter().map(|r| r.1).sum();
    let fit = ln_beta_binomial(slow as f64, n as f64, a, b);
    // Rounds are pooled: a card may put a cost off until the next write to the same AU.
    let exceed: Vec<f64> = RATES.iter().map(|&(rate, weight)| f64::ln(weight) + ln_binomial(slow, n, rate)).collect();
    fit - ln_sum_exp(&exceed)
}

/// Share of slow visits above the limit, and its prior weight: LRU and FIFO make nearly all slow, random replacement some.
const RATES: &[(f64, f64)] = &[(0.97, 0.5), (0.8, 0.12), (0.5, 0.13), (0.25, 0.12), (0.1, 0.08), (0.05, 0.05)];

fn ln_binomial(k: u32, n: u32, p: f64) -> f64 {
    use super::stats::ln_gamma;
    let (k, n) = (k as f64, n as f64);
    ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0) + k * p.ln() + (n - k) * (1.0 - p).ln()
}

/// Posterior over the limit K in 0..=most, where `most` stands for "that many or more"; flat prior.
pub fn posterior(trials: &[Visits], stalls: (u32, u32), most: u32) -> Vec<(u32, f64)> {
    // No single trial may count for more than e^8: repeats share what fooled the first.
    let odds: Vec<(u32, f64)> = trials.iter().map(|v| (v.n, log_odds(v, stalls).clamp(-8.0, 8.0))).collect();
    let ln: Vec<f64> = (0..=most)
        .map(|k| odds.iter().map(|&(n, o)| if n <= k { -(1.0 + (-o).exp()).ln() } else { -(1.0 + o.exp()).ln() }).sum())
        .collect();
    let all = ln_sum_exp(&ln);
    (0..=most).zip(ln.iter().map(|l| (l - all).exp())).collect()
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
        Visits { n, rounds: rounds.to_vec() }
    }

    #[test]
    fn lru_cliff_between_five_and_six() {
        let t = [v(4, &[(4, 0); 4]), v(8, &[(6, 6)]), v(5, &[(5, 0); 4]), v(6, &[(6, 6)])];
        let p = posterior(&t, (0, 6), 16);
        assert!(p[5].1 > 0.95, "{p:?}");
    }

    #[test]
    fn one_slow_visit_a_round_is_enough_to_exceed_and_a_lone_stall_is_not() {
        let exceeds = v(21, &[(21, 2), (21, 1), (21, 3), (21, 2)]);
        assert!(log_odds(&exceeds, (0, 20)) < -1.0, "{}", log_odds(&exceeds, (0, 20)));
        let stall = v(20, &[(20, 1), (20, 0), (20, 0)]);
        assert!(log_odds(&stall, (0, 20)) > 2.0, "{}", log_odds(&stall, (0, 20)));
    }

    #[test]
    fn untested_counts_share_the_doubt() {
        let p = posterior(&[v(4, &[(4, 0); 4]), v(8, &[(6, 6)])], (0, 8), 16);
        let top: f64 = p[4..8].iter().map(|x| x.1).sum();
        assert!(top > 0.95 && p[4].1 < 0.4, "{p:?}");
    }
}
