//! Is the flash as large as the card says? (U33, U39)
//!
//! Counterfeit cards answer for flash they have not: what is written beyond it is lost, fails, or lands in front again; a chain does both.
//! Sectors that carry their own address are written near the front and at the far end, which is read back at once: where it is lost
//! then, nothing hides the border, and it is bisected with a few KiB. Otherwise a stretch near the front follows, which
//! drives the far place out of a cache before it is read again. Addresses that repeat show the front at powers of two, and
//! wherever else they repeat, the stretch: single sectors, as far apart as the stretch is long, cannot miss it, and the address they
//! carry gives the distance to the byte. That search only reads: a scattered write may cost a card a merge of hundreds of ms, and the
//! other places over the region are written only when it found nothing (in a probe fewer, where each takes a merge); then single
//! sectors powers of two away look whether parts of the card show others. Where addresses repeat, the end of the first round is tried: a chain has no flash there.
//!
//! When all experiments had their turn, the places are read once more: a cache that their writes went through keeps them no longer.
//!
//! What fools it: a cache larger than what is written (said); a card that lost a place for another reason (undecided where places
//! behind it are kept); parts that show other parts at distances without any rule.

mod looks;

pub use looks::readable;

use super::{About, Bench, Experiment, Setup};
use crate::device::fill::read_stamp;
use crate::device::ranges::RangeSet;
use crate::device::{Access, Device, DeviceError, Fill, Op, Timed};
use crate::finding::{BY_PAGE, Findings, Quantity};
use crate::infer::beliefs::Case;
use crate::infer::capacity::*;
use crate::samples::{Cell, Ended, Run, Sample};
use crate::units::{Bytes, MIB, Nanos};
use looks::{look, look_at_multiples, look_at_pairs, look_elsewhere, look_for, once_more, written_anew};
use std::ops::Range;

pub struct Capacity {
    /// Fewer places where each of them takes a merge.
    sparing: bool,
}

pub(super) const EXPERIMENTS: &[&dyn Experiment] = &[&Capacity { sparing: false }];
static SPARING: Capacity = Capacity { sparing: true };

static ABOUT: About = About {
    name: "capacity",
    // First: what fails or lies past a counterfeit's flash would spoil the others.
    turn: 10,
    question: "Is the flash as large as the card says?",
    method: "sectors that carry their address, written all over the region and as one stretch, then read back here and elsewhere",
    writes: true,
    answers: &[Quantity::Capacity],
    roles: &[
        "stamp",
        "kept",
        "lost",
        "fails",
        "shows another place",
        "place shown",
        "nothing of ours",
        "cannot be read",
        "can be read",
        "kept at once",
        "does not show its pair",
    ],
    covers: "U33, U39",
};

/// The stretch is no longer.
const LONGEST: u64 = 32 * MIB;
/// Up to here from the start of a region the tables of a filesystem may lie.
const TABLES: u64 = 32 * MIB;
/// Places that show the stretch: more of them tell nothing new.
const SHOWN_ENOUGH: usize = 3;
/// Single sectors looked at in one trial, at least.
const TRIAL: usize = 64;

impl Experiment for Capacity {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn among_others(&self) -> Option<&'static dyn Experiment> {
        Some(&SPARING)
    }

    fn share(&self) -> f64 {
        0.1
    }

    /// What the others would measure beyond the flash of a counterfeit means nothing, so this is not to be cut. Slow readers and cards
    /// with merges of 500 ms need 30 s for the places and the 4096 looks.
    fn own_time(&self) -> Nanos {
        Nanos::from_secs_f64(60.0)
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let room = setup.region.end - setup.region.start;
        let stretch = (room / LOOKS).next_multiple_of(CHUNK).min(LONGEST);
        // Behind the tables of a filesystem, and on the flash of every counterfeit that was seen so far.
        let from = (setup.region.start + (room / 512).max(TABLES).min(room / 64)).next_multiple_of(CHUNK);
        if stretch * 16 > room || setup.geometry.sector > PLACE {
            return vec![];
        }
        let set = [("from", from as i64), ("stretch", stretch as i64), (SPARES, self.sparing as i64)];
        vec![Cell::new("all over", &set)]
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        let has = |key: &str| cell.set.contains_key(key);
        if has("look") {
            let most = cell.set.get("most").map_or(usize::MAX, |n| *n as usize);
            elsewhere(run).is_some() && run.of(cell.id).count() < most
        } else if has("pairs") {
            irregular(run).is_none() && !pairs(run).is_empty()
        } else if has("at") || has("multiples") || has(LATER) || has(ANEW) {
            run.of(cell.id).next().is_none()
        } else if has("rest") {
            !looked(run, &rest(run))
        } else {
            !looked(run, &far(run).into_iter().collect::<Vec<_>>())
        }
    }

    fn trial(&self, cell: &Cell, _n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        // Other stamps in each run on a device: what an earlier one left on a card that keeps nothing now is not taken for this one's.
        let seed = b.below(u64::MAX) ^ b.now().0;
        let has = |key: &str| cell.set.contains_key(key);
        let done = if has(ANEW) {
            written_anew(b, seed)
        } else if has(LATER) {
            once_more(b, cell.bytes(LATER))
        } else if has("at") {
            let step = cell.set.get("step").copied().unwrap_or(0) as u64;
            let n = cell.set.get("n").copied().unwrap_or(1) as u64;
            nearer(b, seed, &(0..n).map(|i| cell.bytes("at") + i * step).collect::<Vec<_>>())
        } else if has("look") {
            look_elsewhere(b, seed)
        } else if has("multiples") {
            look_at_multiples(b, seed)
        } else if has("pairs") {
            look_at_pairs(b, seed)
        } else if has("rest") {
            other_places(b, seed)
        } else {
            ends(b, seed, cell.bytes("from"), cell.bytes("stretch"))
        };
        match done {
            // A target that keeps no content.
            Err(DeviceError::Unsupported(_)) => {
                b.failed(NOTHING, b.region.start, PLACE);
                Ok(())
            }
            done => done,
        }
    }

    fn more(&self, run: &Case) -> Vec<Cell> {
        let begun = |key: &str| run.cells.iter().any(|c| c.set.contains_key(key));
        let once = |key: &'static str, name: &str| if begun(key) { vec![] } else { vec![Cell::new(name, &[(key, 1)])] };
        // A border that a large cache hid cannot be bisected with a few KiB.
        if run.cells.len() > 40 || begun(LATER) || irregular(run).is_some() || front_lost(run) {
            return vec![];
        }
        let period = period(run);
        if period.is_some_and(|w| !multiples(run, w).is_empty()) && !begun("multiples") {
            return once("multiples", "where it must show again");
        }
        if let Some(at) = period.and_then(|w| inside(run, w)) {
            return vec![Cell::new("end of the first round", &[("at", at as i64)])];
        }
        if let Some(border) = border(run) {
            let places = border.next(run, hides(run));
            let Some(&at) = places.first() else { return vec![] };
            let step = places.get(1).map_or(0, |b| b - at);
            let mut set = vec![("at", at as i64)];
            if places.len() > 1 {
                set.extend([("step", step as i64), ("n", places.len() as i64)]);
            }
            return vec![Cell::new(format!("at {}", Bytes(at)), &set)];
        }
        if period.is_some() {
            return vec![];
        }
        if short(run) && aliases(run).is_empty() {
            // The nearest first: a card that holds little of what it reports shows the stretch there.
            return match (begun("look"), begun("rest")) {
                (false, _) => vec![Cell::new("elsewhere, nearest", &[("look", 1), ("most", LOOKS as i64)])],
                (_, false) => once("rest", "other places"),
                _ if elsewhere(run).is_some() && !begun("further") => vec![Cell::new("elsewhere", &[("look", 1), ("further", 1)])],
                _ => vec![],
            };
        }
        if elsewhere(run).is_some() && !begun("look") {
            return once("look", "elsewhere");
        }
        // Where one address shows another, and where that ends was not found, the other places would tell no more.
        if !aliases(run).is_empty() || !begun("look") || elsewhere(run).is_some() {
            return vec![];
        }
        match begun("rest") {
            false => once("rest", "other places"),
            true if looked(run, &rest(run)) && !pairs(run).is_empty() => once("pairs", "powers of two away"),
            true => vec![],
        }
    }

    /// The places that were kept and that no other run wrote over.
    /// Where no write was slow, nothing else shows that the card still takes them: a card at its end may answer and store nothing.
    fn later(&self, run: &Run, others: &[Run], known: &Findings) -> Vec<Cell> {
        // What a trial wrote before it failed is not known.
        if run.ended != Ended::Complete || others.iter().any(|r| !r.faults.is_empty()) {
            return vec![];
        }
        let changed = others.iter().flat_map(|r| &r.samples).filter(|s| matches!(s.op, Op::Write(_) | Op::Discard));
        let over: RangeSet = changed.map(Sample::range).collect();
        let ours = |at: &u64| over.missing(*at..at + PLACE).first() == Some(&(*at..at + PLACE));
        let kept: Vec<u64> = places_kept(run).into_iter().filter(ours).collect();
        let by_page = known.get(Quantity::Mapping).is_some_and(|f| f.number() == Some(BY_PAGE));
        let anew = over.iter().next().is_some() && !kept.is_empty() && (by_page || known.0.iter().any(|f| f.never_slow));
        let once_more = kept.iter().map(|&at| Cell::new(format!("once more at {}", Bytes(at)), &[(LATER, at as i64)]));
        once_more.chain(anew.then(|| Cell::new("written anew", &[(ANEW, 1)]))).collect()
    }
}

/// Does the card return for a while what it does not keep? Where the far end was lost at once it does not.
fn hides(run: &Run) -> bool {
    far(run).is_some_and(|last| may_cache(&run.samples, last) == Some(true))
}

/// The front of the stretch and the place at the far end, read at once. Where that is kept, the rest of the stretch, and what the far
/// place holds then: two places cost few merges, and the stretch drives the last one out of a cache. What was
/// done before the time was over is not done again.
fn ends(b: &mut Bench, seed: u64, from: u64, stretch: u64) -> Result<(), DeviceError> {
    let before: Vec<(u64, bool)> = b.run.of(b.cell).map(|s| (s.at, s.role == STAMP)).collect();
    let stamped = |at: u64| before.contains(&(at, true));
    // The front comes first: a card that fails here has failed for another reason.
    let seed = if stamped(from) {
        front(b, from, seed)?
    } else {
        b.write_of(STAMP, Fill::Stamp(seed), from, FRONT)?;
        seed
    };
    let (Some(last), mut written) = (far(b.run), FRONT) else { return Ok(()) };
    let known = |b: &Bench| may_cache(&b.run.samples, last).or_else(|| may_cache(&b.taken, last));
    // Other experiments may have written there since the time was over.
    if known(b).is_none() && stamp(b, seed, last, PLACE)? {
        look(b, seed, last, PLACE, [AT_ONCE, LOST])?;
    }
    if known(b) == Some(true) {
        let again = !before.is_empty() && !read(b.run, last) && stamp(b, seed, last, PLACE)?;
        write_stretch(b, seed, from, stretch)?;
        if again {
            push(b, seed, from, stretch.min(4 * CHUNK))?;
        }
        written = stretch;
        read_back(b, seed, &[last])?;
    }
    let (sector, end) = (b.geometry().sector, b.region.end);
    look(b, seed, from, sector, [KEPT, LOST])?;
    // Most counterfeits hold a power of two: where this one is shown is a multiple of what it holds.
    for at in (20..63).rev().map(|k| from + (1u64 << k)).filter(|at| *at >= from + written && at + sector < end) {
        if !before.contains(&(at, false)) {
            look(b, seed, at, sector, [NOTHING, NOTHING])?;
        }
    }
    Ok(())
}

/// The stretch from where it was left. Half of the time is for what reads it back: where writes take long it is shorter.
fn write_stretch(b: &mut Bench, seed: u64, from: u64, whole: u64) -> Result<(), DeviceError> {
    let until = b.halfway();
    let mut at = from + stretch(b.run).map_or(0, |s| s.1).max(FRONT);
    // Cards without a map for small units may take seconds for 4 KiB: pieces grow as long as the next one fits.
    let mut ends = [4 * FRONT, 16 * FRONT].into_iter().chain((CHUNK..=whole).step_by(CHUNK as usize)).map(|n| from + n).peekable();
    let last = |b: &Bench| {
        let all = b.taken.iter().rev().chain(b.run.samples.iter().rev());
        all.filter(|s| s.role == STAMP).map(|s| (s.len, s.took)).next().unwrap_or((PLACE, Nanos(0)))
    };
    while let Some(&end) = ends.peek() {
        if at >= end {
            ends.next();
            continue;
        }
        let (len, took) = last(b);
        let left = if b.now() < until { (until - b.now()).secs() } else { 0.0 };
        let grown = ((end - at) as f64 / len as f64).max(1.0);
        // What goes on where the last write ended may need no merge where that one did: a small piece shows it.
        let next = if grown * took.secs() < left { end - at } else { PLACE };
        if took.secs() >= left || !stamp(b, seed, at, next)? {
            break;
        }
        at += next;
    }
    Ok(())
}

/// The other places, once nothing showed the stretch: all written before the first is read, unless that would take too long; then
/// each is looked for powers of two away once it is written.
fn other_places(b: &mut Bench, seed: u64) -> Result<(), DeviceError> {
    let Some((from, _)) = stretch(b.run) else { return Ok(()) };
    let seed = front(b, from, seed)?;
    let mut places = rest(b.run);
    let far = far(b.run);
    let took = |b: &Bench, at: u64| {
        let mut all = b.run.samples.iter().chain(&b.taken).filter(|s| s.len == PLACE && s.role == STAMP);
        all.find(|s| s.at == at).map(|s| s.took.secs())
    };
    let (mut slow, mut begun) = (false, vec![]);
    let all = places.clone();
    for (i, &at) in far.iter().chain(&all).enumerate() {
        if let Some(n) = enough(b.run, b.run.samples.iter().chain(&b.taken), &places) {
            places.truncate(n);
        }
        // The one at the far end counts before them.
        if i > places.len() {
            break;
        }
        // What an earlier trial wrote and did not read, other experiments may have written over since.
        let here = b.taken.iter().any(|s| s.at == at && s.len == PLACE && s.role == STAMP);
        if !here && !read(b.run, at) && !refused(b, at) {
            stamp(b, seed, at, PLACE)?;
        }
        begun.push(at);
        let mean = begun.iter().filter_map(|at| took(b, *at)).sum::<f64>() / begun.len() as f64;
        slow = slow || mean * (places.len() - i) as f64 > (b.halfway() - b.now()).secs();
        if slow {
            for at in std::mem::take(&mut begun) {
                // What is lost at once is lost; what is kept counts once a cache has had other things to keep.
                if !read(b.run, at) && !refused(b, at) {
                    look(b, seed, at, PLACE, [AT_ONCE, LOST])?;
                }
                if look_for(b, seed, at)? {
                    return Ok(());
                }
            }
        }
    }
    // In front of the last place: some counterfeits keep the last writes past their flash in what they have of it.
    if let Some((at, len)) = upper(b.run) {
        push(b, seed, at, len)?;
    }
    read_back(b, seed, &places)?;
    if let Some(last) = far.filter(|last| !refused(b, *last)) {
        look(b, seed, last, PLACE, [KEPT, LOST])?;
    }
    Ok(())
}

/// Writes part of the stretch again: a cache that keeps only the last writes has forgotten what came before.
fn push(b: &mut Bench, seed: u64, from: u64, len: u64) -> Result<(), DeviceError> {
    for at in (from..from + len).step_by(CHUNK as usize) {
        stamp(b, seed, at, CHUNK.min(from + len - at))?;
    }
    Ok(())
}

/// Reads places that were written and not yet read.
fn read_back(b: &mut Bench, seed: u64, places: &[u64]) -> Result<(), DeviceError> {
    for &at in places {
        if !read(b.run, at) && !refused(b, at) {
            look(b, seed, at, PLACE, [KEPT, LOST])?;
        }
    }
    Ok(())
}

/// Did the card refuse this place, in this trial or an earlier one?
fn refused(b: &Bench, at: u64) -> bool {
    b.run.samples.iter().chain(&b.taken).any(|s| s.at == at && s.len == PLACE && matches!(s.role, FAILS | UNREAD))
}

/// The number that the stamps of this run carry, read from the front. Where other experiments wrote over it, since the time of this one
/// was over, the stretch is written again with another: what is gone for that reason is not lost.
fn front(b: &mut Bench, from: u64, other: u64) -> Result<u64, DeviceError> {
    let mut seed = None;
    b.read_back(from, b.geometry().sector, |bytes| {
        seed = read_stamp(bytes).filter(|s| s.0 == from).map(|s| s.1);
        KEPT
    })?;
    if let Some(seed) = seed {
        return Ok(seed);
    }
    let whole = stretch(b.run).map_or(FRONT, |s| s.1);
    push(b, other, from, whole)?;
    Ok(other)
}

/// More places between those kept and those lost. Where addresses repeat, what is kept shows one round further on, too.
fn nearer(b: &mut Bench, seed: u64, places: &[u64]) -> Result<(), DeviceError> {
    let Some((from, stretch)) = stretch(b.run) else { return Ok(()) };
    let (seed, sector) = (front(b, from, seed)?, b.geometry().sector);
    let mut written = vec![];
    for &at in places {
        if stamp(b, seed, at, PLACE)? {
            written.push(at);
        }
    }
    if hides(b.run) {
        let (at, len) = upper(b.run).filter(|_| ring(b.run)).unwrap_or((from, stretch));
        push(b, seed, at, len)?;
    }
    for at in written {
        look(b, seed, at, PLACE, [KEPT, LOST])?;
        let kept = b.taken.last().is_some_and(|s| s.role == KEPT);
        if let Some(again) = period(b.run).map(|w| at + w).filter(|again| kept && again + sector <= b.region.end) {
            look(b, seed, again, sector, [MISSED, MISSED])?;
        }
    }
    Ok(())
}

/// Writes stamps; false where the card refuses them.
fn stamp(b: &mut Bench, seed: u64, at: u64, len: u64) -> Result<bool, DeviceError> {
    match b.write_of(STAMP, Fill::Stamp(seed), at, len) {
        // Nothing was sent: what was there could not be kept for the undo.
        Err(DeviceError::Io { op: "read", .. }) => b.failed(UNREAD, at, len),
        Err(DeviceError::Io { .. }) => b.failed(FAILS, at, len),
        done => return done.map(|_| true),
    }
    Ok(false)
}
