//! What a write costs only because it goes to another AU than the one before it: a card may load a piece of its map, or put away the page
//! that it was filling. Not a closing, and paid however many AUs stay open.

use super::*;

/// Milliseconds that such a change may take where the erase block is not known. Assumed: copying one takes longer on all but the smallest.
const CHANGE_MS: f64 = 20.0;

/// So many AUs in turn show a closing beside the change, if one is ever seen.
const TURNED: i64 = 16;

/// Bytes a µs at which no card closes an AU: it copies most of it.
const COPIES: f64 = 100.0;

/// A closing is so many times dearer than the change beside it, and was seen so often.
const DEARER: f64 = 2.5;
const SEEN: usize = 3;

/// µs of the writes that went to another AU than the last, with two in turn, where nearly all of them cost more than going on in the same
/// one, each about as much, and that is not what closing costs. `None` where there is no such change.
pub(super) fn moves(run: &Case) -> Option<Vec<f64>> {
    let slots = Slots::of(run)?;
    let random = run.cells.iter().any(|c| c.get("random") == 1) as i64;
    let cells = |n: i64| run.cells.iter().filter(|c| c.get("n") == n && c.get("random") == random).map(|c| c.id).collect::<Vec<_>>();
    let (alone, two) = (cells(1), cells(2));
    let took = |s: &Sample| s.took.micros();
    let pairs = run.samples.windows(2).filter(|w| w[0].is_write() && w[1].is_write() && w[1].role > 0 && two.contains(&w[1].cell));
    let moved: Vec<f64> = pairs.filter(|w| slot_of(&slots, &w[0]) != slot_of(&slots, &w[1])).map(|w| took(&w[1])).collect();
    let stayed: Vec<f64> = run.samples.iter().filter(|s| s.role > 0 && alone.contains(&s.cell)).map(took).collect();
    if moved.len() < 4 || stayed.len() < 3 {
        return None;
    }
    let (base, level) = (median(&stayed).max(median(&fast(run))), median(&moved));
    let alike = quantile(&moved, 0.8) <= 1.6 * quantile(&moved, 0.2);
    let dearer = moved.iter().filter(|&&t| t > 2.0 * base).count() * 5 >= moved.len() * 4;
    let copies = run.believed.erase_block().map_or(0.0, |e| e as f64 / COPIES);
    if !alike || !dearer || level - base > copies.max(CHANGE_MS * 1e3) || grow(run, &slots, random) {
        return None;
    }
    let closings = writes(run).filter(|s| took(s) > DEARER * level).count() >= SEEN;
    (closings || level - base < 0.5 * copies || !turned(run, &slots, random)).then_some(moved)
}

/// AUs in turn whose visits are held against each other, pairs of visits that are needed, and the part of them that costs more each time.
const FEW: std::ops::RangeInclusive<i64> = 2..=4;
const PAIRS: usize = 10;
const RISING: f64 = 0.9;

/// Does a write to another AU cost more each time, the more was written there? Flash that held nothing is merged for the little that it was
/// written since; what is loaded or put away at a change of place is always as large.
fn grow(run: &Case, slots: &Slots, random: i64) -> bool {
    let (mut pairs, mut rising) = (0, 0);
    for c in run.cells.iter().filter(|c| c.get("random") == random && FEW.contains(&c.get("n"))) {
        let mut last: HashMap<u64, f64> = HashMap::new();
        for s in run.of(c.id).filter(|s| s.is_write() && s.role > 0) {
            if let Some(before) = last.insert(slot_of(slots, s), s.took.micros()) {
                pairs += 1;
                rising += (s.took.micros() > before) as usize;
            }
        }
    }
    pairs >= PAIRS && rising as f64 >= RISING * pairs as f64
}

/// Were as many AUs in turn as show a closing, if one is ever seen?
fn turned(run: &Case, slots: &Slots, random: i64) -> bool {
    let most = TURNED.min(slots.count as i64);
    let whole = |c: &Cell| run.of(c.id).filter(|s| s.role > 0).count() as i64 >= c.get("n");
    run.cells.iter().any(|c| c.get("random") == random && c.get("n") >= most && whole(c))
}
