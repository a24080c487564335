//! Hosts that answer at ticks only, as readers do at frames of USB: what costs less than a tick may not show in any time.

use super::stats::median;
use std::collections::BTreeMap;

/// Frames of USB, in microseconds: 125 of high speed. A host may add its own time to each answer.
const FRAME: f64 = 125.0;

/// Those of full speed, and of high speed; some hosts look at every second or fourth.
const FRAMES: [f64; 4] = [1000.0, 500.0, 250.0, FRAME];

/// Microseconds by which a host is early or late.
const NOISE: f64 = 20.0;

/// How near to whole frames times lie, in microseconds.
const IN_FRAME: f64 = 8.0;

/// Times that lie nearer to one another than this, in microseconds, are one level.
const ONE: f64 = 8.0;

/// A level is not wider than this part of a tick, and lies as near to a multiple of it.
const NEAR: f64 = 0.04;

/// Of a hundred times so many lie in levels, and one in a level at least.
const IN_LEVELS: usize = 90;

/// The distance of levels in which all of these times lie (microseconds), where they are whole multiples of it, or whole frames apart. Two
/// levels could be a card's own, and so could a distance that divides no other.
pub fn tick(times: &[f64]) -> Option<f64> {
    let mut t: Vec<f64> = times.iter().copied().filter(|t| t.is_finite()).collect();
    t.sort_by(f64::total_cmp);
    let levels: Vec<&[f64]> = t.chunk_by(|a, b| b - a <= ONE).filter(|l| l.len() >= 2 && l.len() * 100 >= t.len()).collect();
    let held: usize = levels.iter().map(|l| l.len()).sum();
    if levels.len() < 3 || held * 100 < IN_LEVELS * t.len() {
        return None;
    }
    let at: Vec<f64> = levels.iter().map(|l| median(l)).collect();
    let apart = at.windows(2).map(|w| w[1] - w[0]).fold(f64::INFINITY, f64::min);
    let off = |x: f64, tick: f64| (x / tick - (x / tick).round()).abs() * tick;
    let near = NEAR * apart;
    if levels.iter().all(|l| l[l.len() - 1] - l[0] <= near) && at.iter().all(|&x| off(x, apart) <= near) {
        return Some(apart);
    }
    let narrow = levels.iter().all(|l| l[l.len() - 1] - l[0] <= 2.0 * IN_FRAME);
    let frames = at.iter().all(|x| off(x - at[0], FRAME) <= IN_FRAME);
    (narrow && frames).then_some((apart / FRAME).round() * FRAME)
}

/// The frames in which nearly all of these times (microseconds) end, where a host adds its own time and a little noise to each, and three of them
/// hold several times. The longest that fit. For writes: of reads so noisy a host gives the mean, in which less than a frame shows.
pub fn framed(t: &[f64]) -> Option<f64> {
    FRAMES.into_iter().find(|frame| {
        // Where in a frame they lie, on a circle.
        let angle = |t: &f64| std::f64::consts::TAU * t / frame;
        let (x, y) = t.iter().fold((0.0, 0.0), |(x, y), t| (x + angle(t).cos(), y + angle(t).sin()));
        let begin = f64::atan2(y, x) / std::f64::consts::TAU * frame;
        let mut of: BTreeMap<i64, usize> = BTreeMap::new();
        for t in t.iter().map(|t| (t - begin) / frame).filter(|t| (t - t.round()).abs() * frame <= NOISE) {
            *of.entry(t.round() as i64).or_default() += 1;
        }
        let held: usize = of.values().sum();
        held * 100 >= IN_LEVELS * t.len() && of.values().filter(|n| *n * 33 >= t.len()).count() >= 3
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many of each.
    fn times(levels: &[f64], wide: f64) -> Vec<f64> {
        levels.iter().flat_map(|l| (0..20).map(move |i| l + wide * f64::from(i) / 20.0)).collect()
    }

    #[test]
    fn whole_multiples_are_ticks_and_steps_of_a_card_are_none() {
        assert_eq!(tick(&times(&[500.0, 625.0, 1250.0, 1375.0], 0.0)), Some(125.0));
        assert_eq!(tick(&times(&[450.0, 500.0, 1200.0], 1.0)), Some(50.0));
        // A page of 54 us, planes of 57 more, an erase block of 140.
        assert_eq!(tick(&times(&[310.0, 364.0, 421.0, 561.0], 0.0)), None);
        assert_eq!(tick(&times(&[500.0, 625.0], 0.0)), None, "two levels may be a card's own");
        assert_eq!(tick(&times(&[500.0, 625.0, 1250.0], 40.0)), None, "times lie anywhere");
    }

    #[test]
    fn frames_are_ticks_wherever_they_begin() {
        assert_eq!(tick(&times(&[537.0, 662.0, 1287.0], 5.0)), Some(125.0));
        assert_eq!(tick(&times(&[537.0, 638.0, 1287.0], 5.0)), None);
        let late: Vec<f64> =
            times(&[3000.0, 4000.0, 6000.0, 10000.0], 0.0).iter().enumerate().map(|(i, t)| t + [-11.0, 0.0, 9.0, 0.0][i % 4]).collect();
        assert_eq!(framed(&late), Some(1000.0), "a host that is early and late by some microseconds");
    }
}
