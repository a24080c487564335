//! How many AUs can be written in turn without paying for closing one each time? (F14-F19, Q8-Q13)
//!
//! A card keeps a few AUs open and must copy the rest of one to close it. N AUs are written in turn, one small write each,
//! in an order that changes every round. N grows from one, keeping the AUs that are open already, until rounds stay slow;
//! then it is bisected among the AUs written last, and both sides of the cut are tried again. Whatever the
//! card throws out when its table is full, rounds over more AUs than fit go on finding closed ones.
//!
//! What fools it: stalls (they do not come in every round), writes larger than a quarter AU, which hide the cost (Q12: small
//! ones are used), a replacement that is not LRU (Q11: no monotony assumed, the order is random), AUs that share an erase
//! block (spacing of several), a start that is a FAT zone (left out), AUs left over from earlier that are thrown out only
//! by and by (later rounds count).

mod closing;
mod control;
mod neighbours;

use self::closing::*;
use self::control::*;
use self::neighbours::*;
use super::{About, Bench, Experiment, Setup};
use crate::device::DeviceError;
use crate::finding::Quantity;
use crate::infer::beliefs::{Beliefs, Case};
use crate::infer::open::{Visits, unsettled};
use crate::infer::open_au::{
    AS_MANY, AT_REST, BESIDE, Belief, CLOSING, COMPARED, CONTROL, ELSEWHERE, FEWEST, FILLING, HELD, NEIGHBOURS, ONE_MORE, REWRITE_MS,
    SETTLED, WRITTEN, at_random, became_slow, fast, left_open, logs_fill, open_in_linear, rewrites, slot_of, slow_line, writes,
};
use crate::infer::slots::{MOST, Slots};
use crate::infer::stats::median;
use crate::samples::Cell;
use std::collections::HashMap;

/// The search in linear order, or in random order inside each AU.
pub struct OpenAu<const RANDOM: bool>;

pub(super) const EXPERIMENTS: &[&dyn Experiment] = &[&OpenAu::<false>, &OpenAu::<true>];

static LINEAR_ABOUT: About = About {
    name: "open-au-linear",
    turn: 40,
    question: "How many AUs can be written interleaved, each sequentially?",
    method: "N AUs interleaved, one small write each, order changed every round; N grows until rounds stay slow, then is bisected",
    writes: true,
    answers: &[Quantity::OpenAusLinear, Quantity::CloseCostMs, Quantity::Mapping, Quantity::WriteCache],
    roles: &["open", "round 1", "round 2", "round 3", "round 4"],
    covers: "F14-F19, Q2, Q4, Q8-Q13",
};

static RANDOM_ABOUT: About = About {
    name: "open-au-random",
    turn: 50,
    question: "How many AUs can be written interleaved, each in random order?",
    method: "as open-au-linear, at random places inside each AU",
    writes: true,
    answers: &[Quantity::OpenAusRandom, Quantity::CloseCostMs, Quantity::Mapping, Quantity::WriteCache],
    roles: &["open", "round 1", "round 2", "round 3", "round 4"],
    covers: "F14-F19, Q2, Q4, Q8-Q13, Q16",
};

const ROUNDS: u8 = 4;

impl<const RANDOM: bool> Experiment for OpenAu<RANDOM> {
    fn about(&self) -> &'static About {
        if RANDOM { &RANDOM_ABOUT } else { &LINEAR_ABOUT }
    }

    /// Where closing takes long, the walk that looks for erase blocks needs as much as the searches do.
    fn share(&self) -> f64 {
        0.35
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        first_cells(setup)
    }

    fn places(&self, setup: &Setup) -> Option<Slots> {
        setup.slots()
    }
    fn trial(&self, cell: &Cell, n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        visit(cell, n, b)
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        wants(cell, run)
    }

    fn more(&self, run: &Case) -> Vec<Cell> {
        more(run, RANDOM)
    }

    fn again(&self, run: &Case, known: &Beliefs) -> bool {
        // AUs were guessed, and one may have counted for two.
        let guessed = run.grid().unit.is_none()
            && known.erase_block().is_some()
            && known.get(Quantity::EraseBlockOffset).is_some_and(|b| b.decided || b.interval.is_some());
        // Or erase blocks turned out to be others than those it went by.
        let others = known.erase_block().zip(run.grid().unit).is_some_and(|(now, then)| now != then);
        // A cache that may have hidden the limit is full now.
        let hidden = run.believed.filled().is_none() && known.filled().is_some();
        guessed || others || hidden
    }
}

/// `fresh`: in AUs not used before.
fn cell(n: i64, random: bool, fresh: bool) -> Cell {
    let order = if random { "random" } else { "linear" };
    let other = if fresh { ", other AUs" } else { "" };
    Cell::new(format!("{n} AUs, {order}{other}"), &[("n", n), ("random", random as i64), ("fresh", fresh as i64)])
}

fn first_cells(setup: &Setup) -> Vec<Cell> {
    if setup.slots().is_none() {
        return vec![];
    }
    // One AU in linear order cannot close anything after it is open: the measure of a fast visit.
    vec![cell(1, false, true)]
}

/// Slots in the order of their last visit, latest first.
fn recent(run: &Case, slots: &Slots) -> Vec<u64> {
    let mut seen = std::collections::HashSet::new();
    run.samples.iter().rev().filter(|s| s.is_write()).map(|s| slot_of(slots, s)).filter(|s| seen.insert(*s)).collect()
}

/// ns that `n` writes take that are as slow as those above `line` were so far; NaN where none was.
fn slow_writes_take(n: usize, line: f64, run: &Case) -> f64 {
    let slow: Vec<f64> = writes(run).map(|s| s.took.micros()).filter(|&t| t > line).collect();
    median(&slow) * 1e3 * n as f64
}

fn visit(cell: &Cell, trial: u32, b: &mut Bench) -> Result<(), DeviceError> {
    let Some(slots) = Slots::of(b.run) else { return Ok(()) };
    let n = cell.get("n") as usize;
    let random = [1, FILLING].contains(&cell.get("random"));
    let latest = recent(b.run, &slots);
    let unused = slots.spread().into_iter().filter(|s| !latest.contains(s));
    // AUs that are open already stay in the set; new ones come from those never used, then from those used longest ago.
    let again = if cell.get("fresh") == 1 && trial == 0 { 0 } else { n.min(latest.len()) };
    let new: Vec<u64> = unused.chain(latest.iter().skip(again).rev().copied()).take(n - again).collect();
    if cell.get("random") == COMPARED {
        return written_and_read(&slots, new[0], b);
    }
    if cell.get("random") == CLOSING {
        return close_after_one_write(&slots, cell.get("first") as usize, &latest, b);
    }
    if cell.get("random") == NEIGHBOURS {
        return visit_neighbours(&slots, n, b);
    }
    let held = cell.get("random") == HELD;
    let per_slot = slots.span / slots.chunk;
    // Of each slot the writes so far, and the place that would go on where the last of them ended.
    let mut places: HashMap<u64, (u64, u64)> = HashMap::new();
    for s in writes(b.run) {
        let p = places.entry(slot_of(&slots, s)).or_default();
        *p = (p.0 + 1, (s.at + s.len - slots.first) % slots.spacing / slots.chunk);
    }
    let stretch = if slots.spacing >= 2 * slots.span { (slots.spacing - slots.span) / slots.chunk } else { per_slot };
    // The time of a write, and whether it is the first or last in its AU, and then may cost more than opening it.
    let mut write = |b: &mut Bench, role: u8, slot: u64| -> Result<(f64, bool), DeviceError> {
        let (done, next) = places.entry(slot).or_default();
        // A linear stream goes on into the next AU rather than start again: rewriting is random order. Random order goes back, by
        // steps drawn anew, and only from the first places up again: a card may take a write further on for linear.
        let back = 1 + b.below((per_slot / 4).max(1));
        let place = match (random, next.checked_sub(1 + back)) {
            (false, _) => *done % stretch,
            (true, Some(place)) if *done > 0 => place,
            (true, _) if *done > 0 => per_slot - 1 - b.below((per_slot / 4).max(1)),
            (true, _) => b.below(per_slot),
        };
        let at_end = !random && *done > 0 && (place % per_slot == 0 || (place + 1) % per_slot == 0);
        (*done, *next) = (*done + 1, place + 1);
        Ok((b.write(role, slots.at(slot) + place * slots.chunk, slots.chunk)?.micros(), at_end))
    };
    // In random order an AU is taken for a linear one until its second write.
    for _ in 0..1 + random as u8 {
        for &slot in &new {
            write(b, 0, slot)?;
        }
    }
    let mut order: Vec<u64> = latest.iter().take(again).copied().chain(new.iter().copied()).collect();
    let line = slow_line(b.run);
    // After a count that did not fit, what is open is not what was written last, unless the card's table is LRU.
    let before = b.run.cells.iter().rev().find(|c| c.id != b.cell && c.get("random") != CONTROL);
    let spoilt = before.is_some_and(|c| c.get("n") > n as i64);
    if spoilt && new.is_empty() {
        b.shuffle(&mut order);
        for slot in order.clone() {
            write(b, 0, slot)?;
        }
    }
    // Where no known policy rules, only rest tells.
    let edge = cell.get("again") == 1 && Belief::of(b.run, random).is_none_or(|b| !b.ruled());
    let left = left_open(cell, trial) as f64;
    // Trials of one cell get longer, for what they say has to be weighed anew after each.
    let mut rounds = ROUNDS as usize + b.run.of(cell.id).count() / n.max(1) / 3;
    // What fitted once is taken back by more than a round: a table that throws out at random may be slow as often by chance, and a log may
    // take the second write of each AU elsewhere than the first.
    let opened_anew = (cell.get("again") == 1 || held) && !new.is_empty();
    let at_rest = rounds_at_rest(cell, random, line, b.run);
    let (mut clean, mut all, mut telling) = (0, 0, TELLING);
    for round in 1.. {
        b.shuffle(&mut order);
        let (mut slow, mut ends) = (0, false);
        for (i, slot) in order.clone().into_iter().enumerate() {
            let (t, at_end) = write(b, round.min(ROUNDS as usize) as u8, slot)?;
            slow += (!at_end && line.is_some_and(|l| t > l)) as usize;
            ends |= at_end;
            // Six visits, nearly all slow: more of them cost time and wear and say nothing new.
            if (round > 1 || !opened_anew) && i + 1 >= 6 && i < slow + 1 {
                return Ok(());
            }
            if all + slow >= telling && [0, 1].contains(&cell.get("random")) {
                if too_many(n as i64, random, b) {
                    return Ok(());
                }
                telling = telling * 3 / 2;
            }
        }
        clean = if slow == 0 { clean + !ends as usize } else { 0 };
        all += slow;
        if clean == Visits::CLEAN_ROUNDS {
            rounds = rounds.max(round + at_rest - clean);
        }
        let done = match n {
            1 if cell.get("long") == 1 => round >= 6 && (round * slots.chunk as usize >= LONG || round + 2 >= per_slot as usize),
            // One AU alone is visited more often: it is the reference of all the others. Where slow ones are hardly slower, how often
            // this host is late has to be known better.
            1 if cell.get("random") == CONTROL && line.is_some_and(|l| l < NEAR * median(&fast(b.run))) => round >= 30,
            1 if cell.get("random") == FILLING => round >= FILLED_ROUNDS || all >= FILLED,
            1 => round >= 6,
            _ if clean >= at_rest => round * n >= 8,
            _ if held => round >= HELD_ROUNDS,
            _ if !edge || slow * 10 > n * 6 => round >= rounds,
            _ => round >= rounds && (unsettled(n as f64, left, all as f64) <= SURELY || round * n >= LONGEST),
        };
        if done {
            return Ok(());
        }
    }
    Ok(())
}

/// Rounds without a slow visit that a trial ends with. AUs that were never written are merged for nothing once: what comes to rest when both sides of
/// the cut are tried again has to stay at rest until some of them have been merged so; what was slow before, until each has.
fn rounds_at_rest(cell: &Cell, random: bool, line: Option<f64>, run: &Case) -> usize {
    if cell.get("again") != 1 {
        return Visits::CLEAN_ROUNDS;
    }
    let n = cell.get("n") as usize;
    let mut before = run.cells.iter().filter(|c| c.id != cell.id && c.get("random") == random as i64 && c.get("n") == n as i64);
    let slow = |c: &Cell| run.of(c.id).any(|s| s.role > 0 && line.is_some_and(|l| s.took.micros() > l));
    let most = if before.any(slow) { LONGEST / n } else { MERGED_FREE };
    (n + 1).min(most).max(Visits::CLEAN_ROUNDS)
}

/// Slow visits of a trial, at least, that say that its AUs are too many; asked again after half as many more, for each answer goes
/// through all visits of the run.
const TELLING: usize = 3;

/// Are so many AUs too many, by a table that foretells each visit? Each further slow one costs a merge and says nothing new.
fn too_many(n: i64, random: bool, b: &Bench) -> bool {
    let mut run = b.run.run.clone();
    run.extend(b.taken.clone());
    let belief = Belief::of(&Case { run: &run, believed: b.run.believed }, random);
    belief.is_some_and(|b| b.foretold() && b.odds(n) <= -2.0 * SETTLED)
}

/// A line this many times the fast writes is one that a late host may cross.
const NEAR: f64 = 3.0;

/// Rounds in which a table that is one AU too small has merged most AUs once: one a round at least, several where it is LRU.
const MERGED_FREE: usize = 8;

/// Fewer AUs from before than this (e^-5) are none.
const SURELY: f64 = 0.0067;

/// Visits of one trial at the most.
const LONGEST: usize = 6000;

fn wants(cell: &Cell, run: &Case) -> bool {
    let trials = run.trials(cell.id);
    if trials.is_empty() || ![0, 1].contains(&cell.get("random")) {
        return trials.is_empty();
    }
    let random = cell.get("random") == 1;
    let Some(belief) = Belief::of(run, random) else { return false };
    if belief.odds(cell.get("n")).abs() >= SETTLED {
        return false;
    }
    // By a known policy every visit counts.
    let visits: usize = trials.iter().map(Vec::len).sum();
    trials.len() < 5 || belief.ruled() && cell.get("again") == 1 && visits < LONGEST / 2
}

/// The largest count that fits and the smallest that does not.
fn bracket(run: &Case, random: bool) -> (i64, Option<i64>) {
    let mut tried: Vec<i64> = run.cells.iter().filter(|c| c.get("random") == random as i64).map(|c| c.get("n")).collect();
    tried.sort_unstable();
    tried.dedup();
    // Nothing slow was seen at all: everything tried so far fits.
    let belief = Belief::of(run, random);
    let odds = |n: i64| belief.as_ref().map_or(SETTLED, |b| b.odds(n));
    let over = tried.iter().copied().find(|&n| odds(n) < 0.0);
    let fits = tried.iter().copied().filter(|&n| over.is_none_or(|o| n < o)).max();
    (fits.unwrap_or(0), over)
}

fn more(run: &Case, random: bool) -> Vec<Cell> {
    let Some(slots) = Slots::of(run) else { return vec![] };
    let most = MOST.min(slots.count as i64);
    let tried = |late: i64| run.cells.iter().any(|c| c.get("random") == CONTROL && c.get("late") == late);
    if median(&fast(run)) > REWRITE_MS * 1e3 && !run.cells.iter().any(|c| c.get("random") == COMPARED) {
        return vec![compare()];
    }
    let bracket = bracket(run, random);
    // Each write rewrites its erase block: a few AUs in turn have shown it.
    if bracket.1.is_none() && bracket.0 >= 4 && rewrites(run).is_some() {
        return vec![];
    }
    // How often is a visit slow because the log of its AU is full? Known before the cut is looked for.
    if random && bracket.1.is_some() && logs_fill(run) && !run.cells.iter().any(|c| c.get("random") == FILLING) {
        return vec![fill_alone()];
    }
    if bracket.1.is_some() && !tried(0) {
        return vec![control(false, false)];
    }
    // A cache is full: nothing more can be learned.
    if slow_line(run).is_some_and(|line| became_slow(run, line).is_some()) {
        return vec![];
    }
    match bracket {
        (fits, None) if fits < most => {
            // One by one at first, then by thirds: the AUs that are open stay, so only the new ones cost.
            let next = if fits < 4 { fits + 1 } else { fits * 4 / 3 };
            // Random order rarely fits more AUs than linear order: that number and the next are the ones to try.
            let hint = run.believed.whole(Quantity::OpenAusLinear).map_or(0, |k| k as i64);
            let next = match () {
                _ if random && fits == hint => fits + 1,
                _ if random && fits < hint && next > hint => hint,
                _ => next,
            };
            vec![cell(next.min(most), random, fits == 0)]
        }
        (_, None) => vec![],
        (fits, Some(over)) if over - fits > 1 => vec![cell((fits + over) / 2, random, false)],
        (fits, Some(over)) => {
            // Both sides of the cut once more: what fits in other AUs, then these and one more.
            let again: Vec<i64> =
                run.cells.iter().filter(|c| c.get("random") == random as i64 && c.get("again") == 1).map(|c| c.get("n")).collect();
            let next = [fits, over].into_iter().find(|n| *n > 0 && !again.contains(n)).filter(|_| again.len() < 8);
            let next = next.map(|n| {
                let mut c = cell(n, random, n == fits);
                c.set.insert("again".into(), 1);
                c
            });
            let next = next.or_else(|| held(run, &slots, random, fits)).or_else(|| closing(run, &slots, random, fits));
            let next = next.or_else(|| side_by_side(run, random, fits));
            next.or_else(|| (!tried(1)).then(|| control(true, !random && fits == 1))).into_iter().collect()
        }
    }
}
