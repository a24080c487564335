//! Where do AUs begin, and how large are they, when reads do not say? (Q1, Q5-Q7)
//!
//! *Walk*: writes forwards, with gaps where an AU takes random writes, without where it does not, jumping ahead after every
//! slow one: entering an AU closes an older one. Either way no AU is ever full, for a full one is cheap to close. *Look*: each
//! boundary of the walk is known to one step only, so a boundary far away is predicted and written across in small steps: seen
//! there, it names the size a hundred times better, and speaks against pauses that come with the bytes written. Smaller
//! and smaller writes across one boundary then tell where it lies.
//!
//! What fools it: a card that thrashes (most writes of the walk are slow: undecided), small writes that the card puts aside or
//! combines (the search for the exact place ends there), AUs so large that the walk meets too few.

mod walk;

use super::{About, Bench, Experiment, Setup};
use crate::device::DeviceError;
use crate::finding::Quantity;
use crate::infer::au_grid::{FILL, LOOK, Line, PARTS, State, WALK, edges_of, replay, slow_and_all, steady, unit, walk_start, walked};
use crate::infer::beliefs::{Beliefs, Case};
use crate::samples::Cell;
use crate::units::{Bytes, KIB, MIB};
use walk::*;

pub struct AuGrid;

pub(super) const EXPERIMENTS: &[&dyn Experiment] = &[&AuGrid];

static ABOUT: About = About {
    name: "au-grid",
    turn: 60,
    question: "Where do AUs begin, and how large are they, when reads do not say?",
    method: "a walk of small writes is slow at every erase block it enters; then small steps across boundaries predicted further and further away",
    writes: true,
    answers: &[Quantity::EraseBlock, Quantity::EraseBlockOffset],
    roles: &["walk", "look", "fill"],
    covers: "Q1, Q5-Q7",
};

/// Boundaries that a walk meets before the looks begin.
const MET: usize = 4;

/// Looks that found nothing, at which the search ends.
const MISSED: usize = 4;

/// The most looks: some fall on AUs that are open already and say nothing.
const LOOKS: usize = 32;

/// Steps of a walk to an AU, at least, where steps grow.
const FINE: u64 = 32;

/// Nobody has reported more open AUs (U9).
const MOST_OPEN: u64 = 64;

/// Writes of one look, about.
const STEPS: f64 = 16.0;

/// Steps of a look from the middle of one AU to the middle of the next, about.
const LONG_STEPS: u32 = 24;

/// How well the place of a boundary is known before such a look, as a share of the distance.
const WIDEST: f64 = 0.4;

/// Confidence at which nothing is left to ask.
const KNOWN: f64 = 0.9;

impl Experiment for AuGrid {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn needs(&self) -> &'static [&'static str] {
        super::MERGES
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let known = |q: Quantity, least: f64| setup.believed.value(q, least);
        let read = known(Quantity::EraseBlock, KNOWN).and(known(Quantity::EraseBlockOffset, KNOWN));
        let Some(cost) = known(Quantity::CloseCostMs, 0.5).filter(|_| read.is_none()) else { return vec![] };
        let Some(slots) = setup.slots() else { return vec![] };
        // Writes as long as those that showed the cost: smaller ones may go to a log of their own.
        let chunk = slots.chunk;
        let window = (384 * MIB).min((setup.region.end - setup.region.start) / 4);
        let stride = if setup.believed.takes_random() { (4 * chunk).max(64 * KIB) } else { chunk };
        let mut walk = walk(window, chunk, stride, (cost * 1e3) as u64);
        // Where the search for open AUs may have left some.
        walk.set.extend([("left", slots.spacing), ("left_from", slots.first)].map(|(k, v)| (k.to_string(), v as i64)));
        // A walk in order pays when as many AUs are open as may be; where nobody knows how many those are, they may be few now.
        let unknown = stride <= chunk && setup.believed.number(Quantity::OpenAusLinear).is_none();
        vec![if unknown { fill(&setup.region, setup.believed, &walk).unwrap_or(walk) } else { walk }]
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        if cell.get("look") == 1 || cell.get("fill") > 0 {
            return run.of(cell.id).next().is_none();
        }
        let (slow, all) = slow_and_all(run, cell);
        let thrash = all > 24 && slow * 2 > all;
        !thrash
            && finer(run, cell).is_none()
            && steady(run, cell).is_none()
            && walked(run, cell) < cell.bytes("walk")
            && edges_of(run, cell)
                .is_none_or(|e| e.walk.on < MET || e.walk.score() < 0.85 || (e.period[1] - e.period[0]) * narrow(&e, cell) > e.period[0])
    }

    fn trial(&self, cell: &Cell, _n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let (chunk, line) = (cell.bytes("chunk"), Line::new(b.run, cell));
        if cell.get("fill") > 0 {
            // Until one has to be closed for it.
            for i in 0..cell.bytes("fill") {
                let took = b.write(FILL, cell.bytes("from") + i * cell.bytes("apart"), chunk)?;
                if line.slow(chunk, took) {
                    break;
                }
            }
            return Ok(());
        }
        if cell.get("look") == 1 && cell.bytes("stride") > chunk {
            let (from, to) = (cell.bytes("from"), cell.bytes("to").min(b.region.end));
            for at in (from..to.saturating_sub(chunk)).step_by(cell.bytes("stride") as usize) {
                b.write(LOOK, at, chunk)?;
            }
            return Ok(());
        }
        if cell.get("look") == 1 {
            let (from, to, gap) = (cell.bytes("from"), cell.bytes("to"), cell.bytes("gap"));
            for i in 0.. {
                let at = from + (i + if i > 0 { gap } else { 0 }) * chunk;
                // The first write opens the AU, and the one behind a gap makes it one in random order; one that is slow later has crossed.
                if at >= to || at + chunk > b.region.end || (line.slow(chunk, b.write(LOOK, at, chunk)?) && i > gap) {
                    break;
                }
            }
            return Ok(());
        }
        let stride = cell.bytes("stride");
        let last = b.run.of(cell.id).map(|s| s.at + s.len).max();
        let slow: Vec<u64> = b.run.of(cell.id).filter(|s| line.slow(s.len, s.took)).map(|s| s.at).collect();
        let between = slow.windows(2).last().map_or(0, |w| w[1].saturating_sub(w[0]));
        // Jump into the AU just entered, so that it is left with a hole at its front: the larger, the more closing it costs.
        // Not by the same length each time: all boundaries might lie in what is jumped over.
        let part = between / 8 / chunk * (50 + b.below(100)) / 100;
        let jump = if stride > chunk { stride - chunk } else { (2 + b.below(14)).max(part) * chunk };
        let mut at = last.map_or(walk_start(b.run, cell), |l| l + jump);
        // A large AU need not be met as exactly as a small one.
        let entered = slow.last().copied().unwrap_or(walk_start(b.run, cell));
        let most = if stride > chunk { 1 } else { line.longer() };
        for i in 0..64 {
            let times = 1 << (at.saturating_sub(entered) / (FINE * stride)).clamp(1, most).ilog2();
            let len = chunk * times;
            if at + len > b.region.end || (line.slow(len, b.write(WALK, at, len)?) && i > 0) {
                break;
            }
            at += stride * times;
        }
        Ok(())
    }

    fn more(&self, run: &Case) -> Vec<Cell> {
        let Some(first) = run.cells.iter().find(|c| c.bytes("walk") > 0) else {
            let filled = run.cells.first().filter(|c| c.get("fill") > 0);
            return filled.map(|c| walk(c.bytes("then"), c.bytes("chunk"), c.bytes("stride"), c.bytes("cost"))).into_iter().collect();
        };
        let walks = run.cells.iter().filter(|c| c.bytes("walk") > 0).count();
        // The same with smaller steps, once.
        if let Some((stride, chunk)) = finer(run, first) {
            return vec![beyond(run, first, first.bytes("walk").min(24 * MIB), chunk, stride)];
        }
        if walks == 1
            && let Some(cost) = steady(run, first)
        {
            let mut again = beyond(run, first, first.bytes("walk"), first.bytes("chunk"), first.bytes("stride"));
            again.set.extend([("cost".into(), cost as i64), ("again".into(), 1)]);
            return vec![again];
        }
        let Some(state) = replay(run) else { return vec![] };
        let never = run.cells.iter().all(|c| c.get("fill") == 0);
        let fill = if never && state.right == 0 && state.quiet > 0 { fill(&region(run), run.believed, first) } else { None };
        fill.or_else(|| next(state, run)).into_iter().collect()
    }

    /// The cost of closing became known since.
    fn again(&self, run: &Case, known: &Beliefs) -> bool {
        let unread = known.value(Quantity::EraseBlock, KNOWN).is_none() || known.value(Quantity::EraseBlockOffset, KNOWN).is_none();
        run.samples.is_empty() && unread && known.value(Quantity::CloseCostMs, 0.5).is_some()
    }
}

/// A second walk behind the first one, for a card may keep AUs open that are written again.
fn beyond(run: &Case, first: &Cell, window: u64, chunk: u64, stride: u64) -> Cell {
    let from = run.of(first.id).map(|s| s.at + s.len).max().unwrap_or(0).next_multiple_of(MIB) + MIB;
    let mut again = walk(window, chunk, stride, first.bytes("cost"));
    again.set.insert("from".into(), from as i64);
    again
}

/// Where the run may write.
fn region(run: &Case) -> std::ops::Range<u64> {
    run.setting("start").unwrap_or(0)..run.setting("end").unwrap_or(0)
}

/// The next look, if there is something left to know.
fn next(mut state: State, run: &Case) -> Option<Cell> {
    if state.lost() {
        state.begin_long();
    }
    if state.edges.missed.len() >= MISSED || state.blind || state.looks >= LOOKS {
        return None;
    }
    // Inside the region with all its steps, half a distance further too, and not at its start, where a FAT zone may be.
    let (start, end) = (run.setting("start")?, run.setting("end")?);
    let ahead = state.edges.period[1] as u64 + 8 * state.lengths[0];
    let far = state.edges.window.end + (128.0 * state.edges.period[1]) as u64;
    let last = (start + (end - start) / 4).max(far).min(end.saturating_sub(ahead));
    let room = (start + (end - start) / 16 + 4 * state.lengths[0])..last;
    if state.long {
        let k = (!state.enough(unit(run))).then(|| state.edges.farthest(WIDEST * state.edges.period[0], &room))?;
        return Some(long_look(&state, k?));
    }
    // Between two boundaries there should be none: one look at each place, and another if there is.
    let part = state.between.iter().position(|b| b.0 == 0 || *b == (1, 1)).filter(|_| state.right >= 3);
    if let Some((part, k)) = part.zip(state.edges.farthest(STEPS * state.lengths[0] as f64, &room)) {
        return Some(look(&state, k, state.lengths[0], PARTS[part], unit(run)));
    }
    while let Some(&len) = state.lengths.get(state.level) {
        let enough = match state.level {
            0 => state.enough(unit(run)),
            _ => state.here >= 2,
        };
        // What a longer step left open may need more than the usual number of steps.
        let k = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0].iter().find_map(|x| state.edges.farthest(x * STEPS * len as f64, &room));
        if let Some(k) = k.filter(|_| !enough) {
            return Some(look(&state, k, len, 1, unit(run)));
        }
        (state.level, state.here) = (state.level + 1, 0);
    }
    None
}

/// From the middle of the AU before boundary `k` to the middle of the next, and a little on, so that a boundary in the middle shows.
fn long_look(state: &State, k: i64) -> Cell {
    let [lo, hi] = state.edges.expect(k);
    let (middle, period, chunk) = ((lo + hi) / 2.0, state.edges.period[1], state.lengths[0]);
    let stride = (state.cell.bytes("stride")).max((period / f64::from(LONG_STEPS)) as u64 / chunk * chunk).max(2 * chunk);
    let from = (middle - 0.55 * period).max(0.0) as u64 / chunk * chunk;
    let to = ((middle + 0.55 * period) as u64).next_multiple_of(chunk);
    let set = [
        ("look", 1),
        ("k", k),
        ("part", 1),
        ("from", from as i64),
        ("to", to as i64),
        ("stride", stride as i64),
        ("chunk", chunk as i64),
        ("cost", state.cell.get("cost")),
    ];
    Cell::new(format!("boundary {k}, steps of {}", Bytes(stride)), &set)
}

/// `part`: 1 at the boundary, 2 or 3 that part of the way to the next.
fn look(state: &State, k: i64, len: u64, part: i64, unit: u64) -> Cell {
    let [lo, hi] = state.edges.expect(k);
    let aside = if part > 1 { state.edges.period[0] / part as f64 } else { 0.0 };
    // Writes below a unit show whether they are gathered, and another number of them goes before the look that is to confirm the first.
    let ahead = match (len < unit, state.half_seen()) {
        (false, _) => 2,
        (true, false) => 4,
        (true, true) => 7,
    };
    let from = ((lo + aside).max(0.0) as u64).saturating_sub(ahead * len) / len * len;
    let to = ((hi + aside) as u64 + 2 * len).next_multiple_of(len);
    // Writes shorter than a unit are gathered, and what they cost comes with a later one.
    let gap = (state.hole && state.cell.get("stride") > state.cell.get("chunk") && len >= unit) as i64;
    let set = [
        ("look", 1),
        ("gap", gap),
        ("k", k),
        ("part", part),
        ("from", from as i64),
        ("to", to as i64),
        ("chunk", len as i64),
        ("cost", state.cell.get("cost")),
    ];
    let label = if part > 1 { format!("beside boundary {k}, {}", Bytes(len)) } else { format!("boundary {k}, {}", Bytes(len)) };
    Cell::new(label, &set)
}
