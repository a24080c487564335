//! Positions that repeat: the period and the phase of a set of hits, some missing, some stray.

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lattice {
    pub period: u64,
    /// Position of a lattice point, below the period.
    pub phase: u64,
    /// Hits on the lattice.
    pub on: usize,
    /// Lattice points in the window.
    pub expected: usize,
    /// Hits off the lattice.
    pub stray: usize,
}

impl Lattice {
    /// Harmonic mean of "how many points are hit" and "how many hits are points" (the F1 measure).
    pub fn score(&self) -> f64 {
        2.0 * self.on as f64 / (self.on + self.stray + self.expected) as f64
    }
}

/// The best lattice through `hits` (ascending) inside `window`; hits closer than `slack` to a point count as on it.
/// At least two hits are needed; the caller says whether a lattice of two is enough.
pub fn fit(hits: &[u64], window: std::ops::Range<u64>, slack: u64) -> Option<Lattice> {
    let mut best: Option<Lattice> = None;
    // Pairs from all over the window; a few dozen contain the period if there is one.
    let every = hits.len().div_ceil(32).max(1);
    for (i, &a) in hits.iter().enumerate().step_by(every) {
        for &b in hits.iter().skip(i + 1).take(6) {
            for divide in (1..=3).filter(|d| (b - a).is_multiple_of(*d)) {
                let period = (b - a) / divide;
                let better = followed(&hits[i..], period, slack);
                for p in [Some(period), Some(better).filter(|b| *b != period)].into_iter().flatten().filter(|p| *p > 2 * slack) {
                    let l = through(hits, &window, slack, p, a % p);
                    if best.is_none_or(|b| l.score() > b.score() + 1e-9) {
                        best = Some(l);
                    }
                }
            }
        }
    }
    best
}

/// The period made better by hits further and further from the first: each hit is known to `slack` only, and a small error
/// of the period grows with the distance.
fn followed(hits: &[u64], period: u64, slack: u64) -> u64 {
    hits[1..].iter().fold(period, |p, h| {
        let far = h - hits[0];
        let n = (far + p / 2) / p.max(1);
        if n > 0 && far.abs_diff(n * p) <= slack { far / n } else { p }
    })
}

/// The lattice of this period and phase.
fn through(hits: &[u64], window: &std::ops::Range<u64>, slack: u64, period: u64, phase: u64) -> Lattice {
    let off = |h: u64| {
        let r = (h % period + period - phase) % period;
        r.min(period - r)
    };
    // Several hits beside one point are one hit.
    let mut points: Vec<u64> = hits.iter().filter(|&&h| off(h) <= slack).map(|&h| (h + period - phase + slack) / period).collect();
    points.dedup();
    let stray = hits.iter().filter(|&&h| off(h) > slack).count();
    let first = window.start.saturating_sub(phase).div_ceil(period);
    let last = (window.end.saturating_sub(phase)).div_ceil(period);
    let expected = (last.saturating_sub(first)).max(points.len() as u64) as usize;
    Lattice { period, phase, on: points.len(), expected, stray }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_period_with_a_phase_a_miss_and_a_stray() {
        let (p, o) = (4128u64 << 10, 96u64 << 10);
        let mut hits: Vec<u64> = (0..9).filter(|&k| k != 4).map(|k| o + k * p).collect();
        hits.push(5_000_000 / 512 * 512);
        hits.sort_unstable();
        let l = fit(&hits, 0..9 * p, 0).unwrap();
        assert_eq!((l.period, l.phase, l.on, l.expected, l.stray), (p, o, 8, 9, 1));
    }

    /// Hits seen in steps of nearly a quarter of the period: the first ones alone would make it four steps.
    #[test]
    fn coarse_steps_do_not_drift_away() {
        let (p, step) = (1088u64 << 10, 256u64 << 10);
        let hits: Vec<u64> = (0..300).map(|k| (k * p).div_ceil(step) * step).collect();
        let l = fit(&hits, 0..300 * p, step).unwrap();
        assert!(l.period.abs_diff(p) < p / 300 && (l.on, l.stray) == (300, 0), "{l:?}");
    }

    #[test]
    fn scattered_hits_make_a_poor_lattice() {
        let hits = [1_000u64, 17_000, 18_500, 61_000, 77_700, 93_100];
        assert!(fit(&hits, 0..100_000, 0).unwrap().score() < 0.7);
    }
}
