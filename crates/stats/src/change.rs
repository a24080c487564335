//! Where a series of times changes, and whether it repeats: what is otherwise read off a plot by eye.
//!
//! Sources: Pettitt, A non-parametric approach to the change-point problem (1979), for series of one level; Hinkley and Hinkley, Inference
//! about the change-point in a sequence of binomial variables (1970), for series of cheap and expensive values.

use crate::{correlation_with_next, deviation, mean, median};

/// A phase at the start that differs from what follows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StartUp {
    /// Values that belong to it.
    pub len: usize,
    /// Mean of the values in it over the mean of those after it.
    pub ratio: f64,
}

/// Shorter ones are chance.
const LEAST: usize = 4;
/// A start-up whose mean differs by less from that afterwards is none.
const MATTERS: f64 = 0.03;
/// Two levels are apart by this factor at least.
const APART: f64 = 1.5;

/// Which values are expensive: those above the cut of the logarithms that leaves the least variance within the two sides (Otsu, 1979). None
/// where the two sides are not clearly apart.
pub fn two_levels(x: &[f64]) -> Option<Vec<bool>> {
    let mut v: Vec<f64> = x.iter().map(|a| a.max(1e-12).ln()).collect();
    let logs = v.clone();
    v.sort_by(f64::total_cmp);
    let n = v.len();
    if n < 8 {
        return None;
    }
    let total: f64 = v.iter().sum();
    let (mut sum, mut best, mut at) = (0.0, 0.0, 0);
    for k in 1..n {
        sum += v[k - 1];
        let (a, b) = (sum / k as f64, (total - sum) / (n - k) as f64);
        let between = k as f64 * (n - k) as f64 * (a - b).powi(2);
        if between > best {
            (best, at) = (between, k);
        }
    }
    if at == 0 {
        return None;
    }
    let (low, high) = v.split_at(at);
    let gap = median(high) - median(low);
    // The gap between the two sides must be visible, not only their means apart.
    let clear = high[0] - low[low.len() - 1] > 0.1 * gap || gap > 4.0 * (deviation(low) + deviation(high));
    let cut = (high[0] + low[low.len() - 1]) / 2.0;
    (gap > APART.ln() && gap > 2.0 * deviation(low).max(deviation(high)) && clear).then(|| logs.iter().map(|&a| a > cut).collect())
}

/// The phase at the start of a series of times; none where the series is alike throughout, or too short to say so.
pub fn start_up(x: &[f64]) -> Option<StartUp> {
    if x.len() < 4 * LEAST {
        return None;
    }
    let found = match two_levels(x) {
        Some(expensive) => of_gaps(&expensive).or_else(|| of_levels(&expensive)),
        None => of_ranks(x),
    }?;
    let ratio = mean(&x[..found]) / mean(&x[found..]);
    // What is shown and does not matter is none.
    ((ratio - 1.0).abs() > MATTERS).then_some(StartUp { len: found, ratio })
}

/// The first stretch without a change of level, where it is longer than all later ones of its kind by more than chance would have it: where
/// changes come at random, one stretch in a thousand exceeds the mean by seven of its standard deviations.
fn of_gaps(b: &[bool]) -> Option<usize> {
    let runs: Vec<usize> = b.chunk_by(|x, y| x == y).map(<[bool]>::len).collect();
    let first = *runs.first().filter(|f| **f >= LEAST)? as f64;
    // The last one is cut off.
    let later: Vec<f64> = runs[..runs.len() - 1].iter().step_by(2).skip(1).map(|&l| l as f64).collect();
    let longest = later.iter().copied().fold(0.0, f64::max);
    (later.len() >= 5 && first > 1.5 * longest && first > mean(&later) + 8.0 * deviation(&later)).then_some(first as usize)
}

/// The most likely change of the share of expensive values, where no later stretch of that length looks like the start.
fn of_levels(b: &[bool]) -> Option<usize> {
    let n = b.len();
    let before: Vec<usize> = std::iter::once(0)
        .chain(b.iter().scan(0, |s, &e| {
            *s += usize::from(e);
            Some(*s)
        }))
        .collect();
    let likely = |ones: usize, of: usize| -> f64 {
        let (k, m) = (ones as f64, of as f64);
        let term = |k: f64| if k > 0.0 { k * (k / m).ln() } else { 0.0 };
        term(k) + term(m - k)
    };
    let all = before[n];
    let (mut best, mut at) = (f64::NEG_INFINITY, 0);
    for (k, &ones) in before.iter().enumerate().take(n - LEAST + 1).skip(LEAST) {
        let l = likely(ones, k) + likely(all - ones, n - k);
        if l > best {
            (best, at) = (l, k);
        }
    }
    let gain = 2.0 * (best - likely(all, n));
    if at == 0 || gain < 12.0 + 2.0 * (n as f64).ln() {
        return None;
    }
    let first = before[at];
    let rising = first as f64 / (at as f64) < (all - first) as f64 / (n - at) as f64;
    let windows: Vec<usize> = (at..=n.saturating_sub(at)).step_by((at / 4).max(1)).map(|i| before[i + at] - before[i]).collect();
    let differs = match (rising, windows.iter().min(), windows.iter().max()) {
        // Too little follows to compare with; the gain alone must be beyond doubt.
        (_, None, _) | (_, _, None) => gain > 40.0 + 2.0 * (n as f64).ln(),
        (true, Some(&least), _) => least > 2 * first,
        (false, _, Some(&most)) => first > 2 * most,
    };
    differs.then_some(at)
}

/// The same of a series of one level, by ranks; values that resemble their neighbours count for fewer.
fn of_ranks(x: &[f64]) -> Option<usize> {
    let n = x.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| x[i].total_cmp(&x[j]));
    let mut ranks = vec![0.0; n];
    let mut i = 0;
    while i < n {
        let j = i + order[i..].iter().take_while(|&&k| x[k] == x[order[i]]).count();
        order[i..j].iter().for_each(|&k| ranks[k] = (i + j + 1) as f64 / 2.0);
        i = j;
    }
    let (mut sum, mut best, mut at) = (0.0, 0.0f64, 0);
    for k in 1..n {
        sum += ranks[k - 1];
        let u = (2.0 * sum - k as f64 * (n as f64 + 1.0)).abs();
        if u > best {
            (best, at) = (u, k);
        }
    }
    if !(LEAST..=n - LEAST).contains(&at) {
        return None;
    }
    let centred = |s: &[f64]| s.iter().map(|a| a - mean(s)).collect::<Vec<f64>>();
    let rest = [centred(&ranks[..at]), centred(&ranks[at..])].concat();
    let r = correlation_with_next(&rest).clamp(0.0, 0.98);
    let m = n as f64;
    let p = 2.0 * (-6.0 * best * best / (m.powi(3) + m.powi(2)) * (1.0 - r) / (1.0 + r)).exp();
    let apart = (median(&x[..at]) / median(&x[at..]) - 1.0).abs();
    (p < 1e-4 && apart > 0.03).then_some(at)
}

/// Values after which a series repeats; none where it does not. By its autocorrelation, over lags of up to a
/// quarter of it, 2048 at the most.
pub fn period(x: &[f64]) -> Option<usize> {
    let logs: Vec<f64> = x.iter().take(8192).map(|a| a.max(1e-12).ln()).collect();
    let n = logs.len();
    let m = mean(&logs);
    let centred: Vec<f64> = logs.iter().map(|a| a - m).collect();
    let power: f64 = centred.iter().map(|a| a * a).sum();
    let most = (n / 4).min(2048);
    if most < 2 || power <= 1e-12 * n as f64 {
        return None;
    }
    let of = |lag: usize| centred[lag..].iter().zip(&centred).map(|(a, b)| a * b).sum::<f64>() / power * n as f64 / (n - lag) as f64;
    let all: Vec<f64> = (0..=most).map(|l| if l == 0 { 1.0 } else { of(l) }).collect();
    // Slow changes resemble themselves at every short lag: only what rises again after it fell repeats.
    let fell = (1..=most).find(|&l| all[l] < 0.1)?;
    let top = all[fell..].iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if top < (5.0 / (n as f64).sqrt()).max(0.3) {
        return None;
    }
    let lag = (fell..=most).find(|&l| all[l] >= 0.9 * top)?;
    // The summit of that hill.
    let summit = (lag..=(lag + 3).min(most)).max_by(|&a, &b| all[a].total_cmp(&all[b]))?;
    Some(summit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_pcg::Pcg64Mcg;
    use rand_pcg::rand_core::Rng;

    struct Chance(Pcg64Mcg);

    impl Chance {
        fn unit(&mut self) -> f64 {
            (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
        }
        fn below(&mut self, n: usize) -> usize {
            (self.0.next_u64() % n as u64) as usize
        }
    }

    #[test]
    fn planted_starts_and_periods_are_found_within_one() {
        let (mut starts, mut periods, seeds) = (0, 0, 200);
        for seed in 0..seeds {
            let mut c = Chance(Pcg64Mcg::new(seed << 1 | 1));
            let (start, every) = (20 + c.below(300), 8 + c.below(120));
            let n = start + every * (20 + c.below(10));
            let (cheap, factor) = (0.3 + c.unit(), 3.0 + 60.0 * c.unit());
            let x: Vec<f64> = (0..n)
                .map(|i| {
                    let expensive = i >= start && (i - start) % every == 0;
                    cheap * (1.0 + 0.1 * c.unit()) * if expensive { factor } else { 1.0 }
                })
                .collect();
            // A start shorter than the period is no start-up: the first expensive one is merely not there yet.
            let found = start_up(&x).map_or(0, |s| s.len);
            let planted = if start > 2 * every { start } else { 0 };
            let either = start > every / 2 && start <= 3 * every;
            starts += usize::from(found.abs_diff(planted) <= 1 || either && (found == 0 || found.abs_diff(start) <= 1));
            periods += usize::from(period(&x[found..]).is_some_and(|p| p.abs_diff(every) <= 1));
        }
        assert!(starts >= 190 && periods >= 190, "of {seeds}: {starts} starts, {periods} periods");
    }

    #[test]
    fn a_level_that_rises_is_found_and_noise_is_not() {
        let (mut found, mut wrong, mut repeats) = (0, 0, 0);
        for seed in 0..200u128 {
            let mut c = Chance(Pcg64Mcg::new(seed << 1 | 1));
            let start = 40 + c.below(200);
            let after = 1.2 + 3.0 * c.unit();
            let x: Vec<f64> = (0..600).map(|i| (1.0 + 0.2 * c.unit()) * if i < start { 1.0 } else { after }).collect();
            found += usize::from(start_up(&x).is_some_and(|s| s.len.abs_diff(start) <= 3 && s.ratio < 1.0));
            // Alike throughout, with rare delays of the host.
            let y: Vec<f64> = (0..600).map(|_| 1.0 + 0.2 * c.unit() + if c.below(50) == 0 { 4.0 * c.unit() } else { 0.0 }).collect();
            wrong += usize::from(start_up(&y).is_some());
            repeats += usize::from(period(&y).is_some());
        }
        assert!(found >= 190 && wrong <= 2 && repeats <= 2, "{found} found, {wrong} wrong, {repeats} periods of noise");
    }

    #[test]
    fn short_and_constant_series_say_nothing() {
        assert_eq!((start_up(&[1.0; 5]), start_up(&[1.0; 100]), period(&[2.0; 100]), period(&[])), (None, None, None, None));
    }
}
