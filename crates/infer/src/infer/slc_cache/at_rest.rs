//! What comes back in short rests: when emptying begins, how fast it is, and what the card does when it is full.

use super::*;
use crate::infer::stats::{line, mean, normal};

/// A rest that brought back nothing contradicts the beginning of the line where that has room for so many writes by then: one may pass for none. Where it
/// has room for a part of one, either may be.
const WHOLE: f64 = 1.25;
const PART: f64 = 0.5;

/// Bounds of the trigger further apart than this factor are no value.
const ROUGH: f64 = 2.0;

/// Writes by which room may lie off the line, and the part of it that it may beside those.
const OFF: f64 = 1.5;
const OFF_PART: f64 = 0.1;

/// What a line through the short rests says: ms after which room comes back, writes a ms, and the relative error of that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Emptying {
    pub begins: f64,
    pub rate: f64,
    error: f64,
    points: usize,
}

/// Fewer than three writes may be the edge of one; a cache that is nearly all empty says no more.
pub(super) fn emptying(short: &[Fill], whole: f64) -> Option<Emptying> {
    let some: Vec<Fill> = short.iter().copied().filter(|f| f.room >= 3.0 && f.room < 0.9 * whole).collect();
    let (a, b) = line(some.iter().map(|f| (f.rest, f.room, 1.0))).filter(|_| some.len() >= 2)?;
    let left: f64 = some.iter().map(|f| (f.room - a - b * f.rest).powi(2)).sum();
    let middle = mean(&some.iter().map(|f| f.rest).collect::<Vec<_>>());
    let wide: f64 = some.iter().map(|f| (f.rest - middle).powi(2)).sum();
    // A room is known to half a write at best.
    let scatter = (left / (some.len() as f64 - 2.0).max(1.0)).max(0.25);
    (b > 0.0).then(|| Emptying { begins: (-a / b).max(0.0), rate: b, error: (scatter / wide).sqrt() / b, points: some.len() })
}

/// ms of the longest rest that brought back nothing, and the writes that the line has for it.
fn nothing_after(seen: &[Fill], e: Emptying) -> (f64, f64) {
    let nothing = seen.iter().filter(|f| f.room < 0.5).map(|f| f.rest).fold(0.0, f64::max);
    (nothing, e.rate * (nothing - e.begins))
}

/// Does what came back lie on no line? Memory in front of the flash has room again before the cache is emptied.
fn off_the_line(seen: &[Fill], whole: f64, e: Emptying) -> bool {
    let off = |f: &Fill| f.room - (e.rate * (f.rest - e.begins)).max(0.0);
    seen.iter().filter(|f| f.room >= 0.5 && f.room < 0.9 * whole).any(|f| off(f).abs() > OFF + OFF_PART * f.room)
}

/// After how long a rest something comes back, how fast, and what the card does when it is full.
pub(super) fn at_rest(run: &Run, cell: &Cell, l: Levels, chunk: f64) -> Vec<Finding> {
    let (long, seen) = fills(run, cell, l);
    brought_back(&seen, long.first().map_or(0.0, |f| f.room), l, chunk)
}

/// The same, of the rooms after short rests, and of the whole.
fn brought_back(seen: &[Fill], whole: f64, l: Levels, chunk: f64) -> Vec<Finding> {
    let (trigger, rate, when_full) = (Quantity::IdleTriggerMs, Quantity::IdleEmptyMbS, Quantity::SlcWhenFull);
    if seen.len() < 4 {
        return vec![];
    }
    let text = seen.iter().map(|f| format!("{} ms {}", f.rest, Bytes((f.room * chunk) as u64))).collect::<Vec<_>>().join(", ");
    let text = format!("room after a rest of {text}");
    if seen.iter().all(|f| f.room < 3.0) {
        let last = seen.last().map_or(0.0, |f| f.rest);
        let why = format!("rests up to {last} ms brought back nothing");
        let mut out = vec![Finding::at_least(trigger, last, 0.85, why.clone()).evidence(text)];
        out.extend([rate, when_full].map(|q| Finding::undecided(q, why.clone())));
        return out;
    }
    let none = |why: String| [trigger, rate, when_full].map(|q| Finding::undecided(q, why.clone()).evidence(text.clone())).into();
    let Some(e) = emptying(seen, whole) else {
        let why = "too few rests of those tried brought back a part of the cache, or longer ones no more than shorter ones";
        return none(why.into());
    };
    if off_the_line(seen, whole, e) {
        return none(
            "room does not come back along a line: memory in front of the flash may have room again before the cache is emptied".into(),
        );
    }
    let at_rate = |text: String| {
        let per_second = e.rate * chunk / 1e3;
        let f = Finding::decided(rate, per_second, if e.points >= 3 { 0.85 } else { 0.75 }).evidence(text);
        Finding { interval: Some([per_second * 0.9, per_second * 1.1]), ..f }
    };
    // A card may look at rests of a certain length only, and have emptied all the while.
    let (nothing, unseen) = nothing_after(seen, e);
    if unseen > PART {
        let as_if = format!("longer ones brought back as much as if emptying began after {:.0} ms", e.begins);
        let why = format!("a rest of {nothing} ms brought back nothing, and {as_if}");
        let f = match unseen > WHOLE {
            true => Finding::at_least(trigger, nothing, 0.85, why),
            false => Finding::undecided(trigger, format!("{why}; in the time between room for a write comes back at most")),
        };
        return vec![f.evidence(text.clone()), at_rate(text), on_full(l, e)];
    }
    let shortest = seen.iter().map(|f| f.rest).fold(f64::INFINITY, f64::min);
    if e.begins < shortest {
        return none(format!(
            "room comes back sooner than after the shortest rest, {shortest} ms: a cache that is emptied soon, or memory in front of the flash"
        ));
    }
    let off = 1.5 / e.rate;
    let first = seen.iter().find(|f| f.room >= 3.0).map_or(e.begins, |f| f.rest);
    let score = if e.points >= 3 && off < 0.3 * e.begins.max(20.0) { 0.88 } else { 0.75 };
    let bounds @ [from, to] =
        [(nothing - WHOLE / e.rate).min(e.begins).max(e.begins - off).max(0.0), first.max(e.begins).min(e.begins + off)];
    let begins = if to > ROUGH * from {
        let why =
            format!("it begins {from:.0} to {to:.0} ms after the last write: so slowly does room come back that it is not known better");
        Finding::undecided(trigger, why)
    } else {
        Finding::decided(trigger, e.begins, score)
    };
    let begins = Finding { interval: Some(bounds), ..begins.evidence(text.clone()) };
    vec![begins, at_rate(text), on_full(l, e)]
}

/// Of what was decided on the cards of docs/todays-cards.md all was right; as these are of one family, no more than this.
const SCORE: f64 = 0.95;

/// What the card does with a write when there is no room. Where it folds first, the write waits for as much room as it takes, which at rest
/// takes equally long; where it writes to the final place at once, it saves both programming with one bit and reading that again. With a
/// third to an eighth of the time for one bit a cell, and up to half of it for the copy, that is 0.44 to 0.88 of the time at rest.
fn on_full(l: Levels, e: Emptying) -> Finding {
    const DIRECT: [f64; 2] = [0.44, 0.88];
    let q = Quantity::SlcWhenFull;
    let (longer, at_rest) = (l.slow - l.fast, 1e3 / e.rate);
    let ratio = longer / at_rest;
    // Medians of writes, and a line through few points: no better than to two of a hundred.
    let error = e.error.hypot(0.02) * ratio.max(1.0);
    let text = format!(
        "a write of the full cache takes {:.2} ms longer; as much room comes back at rest in {:.2} ms: {ratio:.2} of it (1 where it waits for \
         folding, less where it goes to its place at once)",
        longer / 1e3,
        at_rest / 1e3
    );
    let z = (ratio - 1.0) / error;
    let folds = (-z * z / 2.0).exp() / (error * std::f64::consts::TAU.sqrt());
    let inside = normal((DIRECT[1] - ratio) / error) - normal((DIRECT[0] - ratio) / error);
    let direct = inside / (DIRECT[1] - DIRECT[0]);
    let (code, share) = if folds > direct { (1.0, folds / (folds + direct)) } else { (2.0, direct / (folds + direct)) };
    // Neither explains what lies far from both.
    if z > 3.0 || folds + direct < 0.05 {
        return Finding::undecided(q, "full or at rest, it makes room at rates that fit neither folding nor direct writes").evidence(text);
    }
    if share < 0.8 || error > 0.12 {
        return Finding::undecided(q, "what rest brings back is known too roughly to say whether writes wait for it").evidence(text);
    }
    Finding::decided(q, code, share.min(SCORE)).evidence(text).rivals([(3.0 - code, 1.0 - share.min(SCORE))])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing after 100 ms and, after 200 ms, as much as if emptying had begun at once: the card does not look at shorter rests.
    #[test]
    fn a_card_that_looks_at_long_rests_only_does_not_begin_at_once() {
        let of = |room: fn(f64) -> f64| {
            let seen: Vec<Fill> = RESTS_MS.iter().map(|&ms| Fill { rest: ms as f64, room: room(ms as f64) }).collect();
            nothing_after(&seen, emptying(&seen, 1e4).unwrap())
        };
        let (nothing, unseen) = of(|ms| if ms > 100.0 { 0.05 * ms } else { 0.0 });
        assert!(nothing == 100.0 && unseen > WHOLE, "{unseen}");
        assert!(of(|ms| (0.05 * (ms - 80.0)).max(0.0)).1 < PART);
        // Less than a write may have come back, and none was seen.
        let (_, unseen) = of(|ms| if ms > 100.0 { 0.01 * ms } else { 0.0 });
        assert!((PART..WHOLE).contains(&unseen), "{unseen}");
    }

    /// Memory in front has room again from the first ms on, and a cache after its trigger: no trigger is told of the two together, nor of memory alone.
    #[test]
    fn memory_that_drains_has_no_trigger() {
        let l = Levels { fast: 14_000.0, slow: 33_000.0 };
        let told = |memory: f64, drains: f64, begins: f64, rate: f64| {
            let room = |ms: f64| (drains * ms).min(memory) + (rate * (ms - begins)).max(0.0);
            let seen: Vec<Fill> = RESTS_MS.iter().map(|&ms| Fill { rest: ms as f64, room: room(ms as f64).floor() }).collect();
            brought_back(&seen, 1200.0, l, 262_144.0).into_iter().find(|f| f.quantity == Quantity::IdleTriggerMs).and_then(|f| f.number())
        };
        for (i, memory) in [6.0, 9.0, 17.0, 34.0, 66.0, 300.0].into_iter().enumerate() {
            let (drains, rate) = (0.03 + 0.01 * i as f64, 0.09 - 0.01 * i as f64);
            for begins in [450.0, 760.0, 1100.0] {
                let t = told(memory, drains, begins, rate);
                assert_eq!(t, None, "{memory} writes of memory, {begins} ms");
                let alone = told(0.0, drains, begins, rate).unwrap();
                assert!((alone / begins - 1.0).abs() < 0.1, "{alone} ms of {begins}");
            }
            assert_eq!(told(1e9, drains, 0.0, 0.0), None, "memory alone");
        }
    }

    #[test]
    fn a_full_cache_waits_or_is_passed_by() {
        let l = Levels { fast: 2000.0, slow: 6000.0 };
        let at_rest = |us: f64, error: f64| Emptying { begins: 50.0, rate: 1e3 / us, error, points: 4 };
        assert_eq!(on_full(l, at_rest(4000.0, 0.01)).number(), Some(1.0));
        assert_eq!(on_full(l, at_rest(6000.0, 0.01)).number(), Some(2.0));
        assert_eq!(on_full(l, at_rest(4400.0, 0.2)).number(), None, "too rough");
        assert_eq!(on_full(l, at_rest(1500.0, 0.01)).number(), None, "neither");
    }
}
