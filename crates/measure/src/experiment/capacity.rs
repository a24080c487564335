//! Is the flash as large as the card says? (U33, U39)
//!
//! Counterfeit cards answer for flash they have not: what is written beyond it is lost, fails, or lands in front again. Sectors that
//! carry their own address are written near the end, in the middle, and as one stretch near the front, and read back. Where places
//! are lost the border is bisected. Wherever a card wraps round, the stretch shows a second time: single sectors, as far apart as the
//! stretch is long, cannot miss it, and the address they carry gives the distance to the byte. That search only reads: a scattered
//! write may cost a card a merge of hundreds of ms, and the other places over the region are written only when it found nothing.
//!
//! What fools it: a cache larger than what is written (said); a card that lost a place for another reason (undecided where places
//! behind it are kept).

use super::{About, Bench, Experiment, Setup};
use crate::device::fill::read_stamp;
use crate::device::{Access, Device, DeviceError, Fill, Op, Timed};
use crate::finding::Quantity;
use crate::infer::beliefs::Case;
use crate::infer::capacity::{
    ANOTHER, CHUNK, CLOSE, FAILS, KEPT, LOOKS, LOST, NOTHING, PLACE, PLACES, READS, SHOWN, STAMP, UNREAD, aliases, all_places, border,
    keeps_nothing, looking, met, read_border, stretch,
};
use crate::samples::{Cell, Run, Sample};
use crate::units::{Bytes, MIB, Nanos};
use std::ops::Range;

pub struct Capacity;

static ABOUT: About = About {
    name: "capacity",
    question: "Is the flash as large as the card says?",
    method: "sectors that carry their address, written all over the region and as one stretch, then read back here and elsewhere",
    writes: true,
    answers: &[Quantity::Capacity],
    roles: &["stamp", "kept", "lost", "fails", "shows another place", "place shown", "nothing of ours", "cannot be read", "can be read"],
    covers: "U33, U39",
};

const LONGEST: u64 = 32 * MIB;

/// Places that show the stretch: more of them tell nothing new.
const ENOUGH: usize = 3;

/// Single sectors looked at in one trial.
const AT_ONCE: usize = 64;

impl Experiment for Capacity {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn share(&self) -> f64 {
        0.1
    }

    /// What the others would measure beyond the flash of a counterfeit means nothing, so this is not to be cut. Slow readers and cards
    /// with merges of 500 ms need 30 s for the two dozen places and the 4096 looks.
    fn own_time(&self) -> Nanos {
        Nanos::from_secs_f64(60.0)
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let room = setup.region.end - setup.region.start;
        let stretch = (room / LOOKS).next_multiple_of(CHUNK).min(LONGEST);
        let from = (setup.region.start + room / 64).next_multiple_of(CHUNK);
        if stretch * 16 > room || setup.geometry.sector > PLACE {
            return vec![];
        }
        vec![Cell::new("all over", &[("from", from as i64), ("stretch", stretch as i64)])]
    }

    fn wants(&self, cell: &Cell, run: &Case) -> bool {
        match cell.set.get("look") {
            Some(_) => elsewhere(run).is_some(),
            None if cell.set.contains_key("at") => run.of(cell.id).next().is_none(),
            None if cell.set.contains_key("rest") => !looked(run, &rest(run)),
            None => !looked(run, &far(run)),
        }
    }

    fn trial(&self, cell: &Cell, _n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let seed = b.below(u64::MAX);
        let done = match (cell.set.get("at"), cell.set.get("look")) {
            (Some(&at), _) => nearer(b, seed, at as u64),
            (None, Some(_)) => look_elsewhere(b),
            (None, None) if cell.set.contains_key("rest") => other_places(b),
            (None, None) => ends(b, seed, cell.bytes("from"), cell.bytes("stretch")),
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
        let Some(border) = border(run).filter(|_| aliases(run).is_empty()) else {
            let next = match elsewhere(run) {
                Some(_) if !begun("look") => Some(Cell::new("elsewhere", &[("look", 1)])),
                None if begun("look") && !begun("rest") && !met(run) => Some(Cell::new("other places", &[("rest", 1)])),
                _ => None,
            };
            return next.into_iter().collect();
        };
        if run.cells.len() > 40 {
            return vec![];
        }
        let Some(at) = border.next(run) else { return vec![] };
        vec![Cell::new(format!("at {}", Bytes(at)), &[("at", at as i64)])]
    }
}

/// The front of the stretch, the places at the far end, the rest of the stretch, and what the far places hold then: three places cost
/// few merges, and the stretch drives them out of a cache. What was done before the time was over is not done again.
fn ends(b: &mut Bench, seed: u64, from: u64, stretch: u64) -> Result<(), DeviceError> {
    let before: Vec<(u64, bool)> = b.run.of(b.cell).map(|s| (s.at, s.role == STAMP)).collect();
    let stamped = |at: u64| before.contains(&(at, true));
    // The front comes first: a card that fails here has failed for another reason.
    let seed = if stamped(from) {
        front(b, from)?
    } else {
        b.write_of(STAMP, Fill::Stamp(seed), from, CHUNK.min(stretch))?;
        seed
    };
    let far = far(b.run);
    for &at in &far {
        if !stamped(at) && !refused(b, at) {
            stamp(b, seed, at, PLACE)?;
        }
    }
    // Half of the time is for what reads it back: where writes take long the stretch is shorter.
    let until = b.halfway();
    for at in (from..from + stretch).step_by(CHUNK as usize).skip(1).filter(|at| !stamped(*at)) {
        if b.now() >= until || !stamp(b, seed, at, CHUNK)? {
            break;
        }
    }
    read_back(b, seed, &far)?;
    // Most counterfeits hold a power of two: where this one is shown is a multiple of what it holds.
    let (sector, end) = (b.geometry().sector, b.region.end);
    for at in (20..63).rev().map(|k| from + (1u64 << k)).filter(|at| *at >= from + stretch && at + sector < end) {
        if !before.contains(&(at, false)) {
            look(b, seed, at, sector, [NOTHING, NOTHING])?;
        }
    }
    Ok(())
}

/// The other places, once nothing showed the stretch: all written before the first is read.
fn other_places(b: &mut Bench) -> Result<(), DeviceError> {
    let Some((from, stretch)) = stretch(b.run) else { return Ok(()) };
    let seed = front(b, from)?;
    let places = rest(b.run);
    for &at in &places {
        if !b.run.samples.iter().any(|s| s.at == at && s.role == STAMP) && !refused(b, at) {
            stamp(b, seed, at, PLACE)?;
        }
    }
    for i in 0..4 {
        stamp(b, seed, from + i * CHUNK % stretch, CHUNK)?;
    }
    read_back(b, seed, &places)
}

/// Reads places that were written and not yet read.
fn read_back(b: &mut Bench, seed: u64, places: &[u64]) -> Result<(), DeviceError> {
    for &at in places {
        if !b.run.samples.iter().any(|s| s.at == at && s.len == PLACE && s.role != STAMP) && !refused(b, at) {
            look(b, seed, at, PLACE, [KEPT, LOST])?;
        }
    }
    Ok(())
}

/// Did the card refuse this place, in this trial or an earlier one?
fn refused(b: &Bench, at: u64) -> bool {
    b.run.samples.iter().chain(&b.taken).any(|s| s.at == at && s.len == PLACE && matches!(s.role, FAILS | UNREAD))
}

/// Were these places read back, or enough to decide?
fn looked(run: &Case, places: &[u64]) -> bool {
    let read = |at: &u64| run.samples.iter().any(|s| s.at == *at && s.len == PLACE && s.role != STAMP);
    keeps_nothing(run) || border(run).is_some() || !aliases(run).is_empty() || places.iter().all(read)
}

/// What is written first: the last place, beyond the flash of every counterfeit, and the one in the middle.
fn far(run: &Case) -> Vec<u64> {
    let all = all_places(run);
    [all.last(), all.get(all.len() / 2)].into_iter().flatten().copied().collect()
}

/// The other places.
fn rest(run: &Case) -> Vec<u64> {
    let far = far(run);
    all_places(run).into_iter().filter(|at| !far.contains(at)).collect()
}

/// A card whose reads fail: places over the whole region are read, and the border beyond which none can be is bisected. Writes nothing.
/// The run is one of this experiment.
pub fn readable(device: &mut dyn Device, setup: &Setup) -> Run {
    let mut run = Run::new(ABOUT.name);
    run.setting = setup.setting();
    run.cells = vec![Cell::new("reads only", &[("reads", 1)])];
    let Range { start, end } = setup.region;
    let len = PLACE.max(setup.geometry.sector);
    let look = |run: &mut Run, device: &mut dyn Device, at: u64| {
        let at = at / len * len;
        let a = Access { op: Op::Read, at, len };
        let (role, timed) = match device.access(a) {
            Ok(timed) => (READS, timed),
            Err(_) => (UNREAD, Timed { start: device.now(), took: Nanos(0) }),
        };
        run.extend(vec![Sample { cell: 0, trial: 0, role, op: Op::Read, at, len, start: timed.start, took: timed.took }]);
    };
    if end - start < 64 * len {
        return run;
    }
    for i in 0..=PLACES {
        look(&mut run, device, start + ((end - len - start) as u128 * i as u128 / PLACES as u128) as u64);
    }
    while let Some((good, bad)) = read_border(&run).filter(|(good, bad)| bad - good > CLOSE) {
        look(&mut run, device, good / 2 + bad / 2);
    }
    run
}

/// The number that the stamps of this run carry, read from the front.
fn front(b: &mut Bench, from: u64) -> Result<u64, DeviceError> {
    let mut seed = 0;
    b.read_back(from, b.geometry().sector, |bytes| {
        seed = read_stamp(bytes).map_or(0, |s| s.1);
        KEPT
    })?;
    Ok(seed)
}

/// Where the next sector lies that may show the stretch; `None` when all were looked at, or one shows it, or places were lost.
fn elsewhere(run: &Case) -> Option<u64> {
    let (from, stretch) = stretch(run)?;
    let sector = run.setting("sector")?;
    let read_back = run.samples.iter().any(|s| matches!(s.role, KEPT | ANOTHER));
    let looks = run.samples.iter().filter(|s| matches!(s.role, NOTHING | ANOTHER | FAILS | UNREAD) && looking(run, s));
    let next = looks.map(|s| s.at + stretch).max().unwrap_or(from + stretch);
    let open = read_back && !met(run) && border(run).is_none();
    (open && next < run.setting("end")? - sector).then_some(next)
}

/// Some of the single sectors that may show the stretch.
fn look_elsewhere(b: &mut Bench) -> Result<(), DeviceError> {
    let sector = b.geometry().sector;
    let (Some(next), Some((from, stretch))) = (elsewhere(b.run), stretch(b.run)) else { return Ok(()) };
    let seed = front(b, from)?;
    let mut shown = 0;
    for at in (next..b.region.end - sector).step_by(stretch as usize).take(AT_ONCE) {
        let place = look(b, seed, at, sector, [NOTHING, NOTHING])?;
        // The other places repeat at some periods only, the stretch at each.
        shown += place.is_some_and(|p| (from..from + stretch).contains(&p)) as usize;
        if shown == ENOUGH {
            break;
        }
    }
    Ok(())
}

/// One more place between those kept and those lost.
fn nearer(b: &mut Bench, seed: u64, at: u64) -> Result<(), DeviceError> {
    let written = stamp(b, seed, at, PLACE)?;
    // A cache that keeps only the last writes has forgotten it after these.
    let Some((from, stretch)) = stretch(b.run) else { return Ok(()) };
    for i in 0..4 {
        stamp(b, seed, from + i * CHUNK % stretch, CHUNK)?;
    }
    if written {
        look(b, seed, at, PLACE, [KEPT, LOST])?;
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

/// Reads a place: the roles are of one that shows its own stamp, and of one that shows none of this run. Where it shows that of
/// another place, that is read, too, and returned.
fn look(b: &mut Bench, seed: u64, at: u64, len: u64, [own, none]: [u8; 2]) -> Result<Option<u64>, DeviceError> {
    let mut other = None;
    let role = |bytes: &[u8]| match read_stamp(bytes).filter(|s| s.1 == seed) {
        Some((place, _)) if place == at => own,
        Some((place, _)) => {
            other = Some(place);
            ANOTHER
        }
        None => none,
    };
    match b.read_back(at, len, role) {
        Err(DeviceError::Io { .. }) => b.failed(UNREAD, at, len),
        done => done?,
    }
    let other = other.filter(|p| b.region.contains(p));
    if let Some(place) = other {
        b.read(SHOWN, place, len)?;
    }
    Ok(other)
}
