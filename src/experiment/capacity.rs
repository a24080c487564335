//! Is the flash as large as the card says? (U33, U39)
//!
//! Counterfeit cards answer for flash they have not: what is written behind it is lost, fails, or lands in front again. Sectors that
//! carry their own address are written at places all over the region and as one stretch near its front, and read back. Where places
//! are lost the border is bisected. Wherever a card wraps round, the stretch shows a second time: single sectors, as far apart as the
//! stretch is long, cannot miss it, and the address they carry tells the distance to the byte.
//!
//! What fools it: a cache larger than what is written (said); a card that lost a place for another reason (undecided where places
//! behind it are kept).

use super::{About, Bench, Experiment, Figure, Setup};
use crate::device::fill::read_stamp;
use crate::device::{DeviceError, Fill};
use crate::finding::{Finding, Quantity};
use crate::samples::{Cell, Ended, Run, Sample};
use crate::units::{Bytes, GIB, KIB, MIB, gcd, three};

pub struct Capacity;

static ABOUT: About = About {
    name: "capacity",
    question: "Is the flash as large as the card says?",
    method: "sectors that carry their address, written all over the region and as one stretch, then read back here and elsewhere",
    writes: true,
    answers: &[Quantity::Capacity],
    roles: &["stamp", "kept", "lost", "fails", "shows another place", "place shown", "nothing of ours"],
    covers: "U33, U39",
};

const STAMP: u8 = 0;
const KEPT: u8 = 1;
const LOST: u8 = 2;
const FAILS: u8 = 3;
const ANOTHER: u8 = 4;
const SHOWN: u8 = 5;
const NOTHING: u8 = 6;

/// Places over the region, and bytes of each.
const PLACES: u64 = 24;
const PLACE: u64 = 4 * KIB;
/// Single sectors that look for the stretch elsewhere; more where it would become longer than `LONGEST`.
const LOOKS: u64 = 4096;
const LONGEST: u64 = 32 * MIB;
const CHUNK: u64 = 256 * KIB;
/// How closely the border is bisected.
const CLOSE: u64 = MIB;
/// Places that show the stretch: more of them tell nothing new.
const ENOUGH: usize = 3;
/// Single sectors looked at in one trial.
const AT_ONCE: usize = 64;

impl Experiment for Capacity {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    /// Looking elsewhere goes on when all had their turn.
    fn share(&self) -> f64 {
        0.1
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

    fn wants(&self, cell: &Cell, run: &Run) -> bool {
        match cell.set.get("look") {
            Some(_) => elsewhere(run).is_some(),
            None if cell.set.contains_key("at") => run.of(cell.id).next().is_none(),
            None => !looked(cell, run),
        }
    }

    fn trial(&self, cell: &Cell, _n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let seed = b.below(u64::MAX);
        let done = match (cell.set.get("at"), cell.set.get("look")) {
            (Some(&at), _) => nearer(b, seed, at as u64),
            (None, Some(_)) => look_elsewhere(b),
            (None, None) => all_over(b, seed, cell.bytes("from"), cell.bytes("stretch")),
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

    fn more(&self, run: &Run) -> Vec<Cell> {
        let Some(Border { kept, lost, .. }) = border(run).filter(|_| aliases(run).is_empty()) else {
            let begun = run.cells.iter().any(|c| c.set.contains_key("look"));
            let look = (!begun && elsewhere(run).is_some()).then(|| Cell::new("elsewhere", &[("look", 1)]));
            return look.into_iter().collect();
        };
        if lost - kept <= CLOSE || run.cells.len() > 40 {
            return vec![];
        }
        let at = (kept / 2 + lost / 2) / PLACE * PLACE;
        vec![Cell::new(format!("at {}", Bytes(at)), &[("at", at as i64)])]
    }

    fn infer(&self, run: &Run) -> Vec<Finding> {
        vec![judge(run)]
    }

    fn figures(&self, _run: &Run) -> Vec<Figure> {
        vec![]
    }
}

/// Places over the region, then the stretch; the places again. What was done before the time was over is not done again.
fn all_over(b: &mut Bench, seed: u64, from: u64, stretch: u64) -> Result<(), DeviceError> {
    let before: Vec<(u64, u8)> = b.run.of(b.cell).map(|s| (s.at, s.role)).collect();
    let done = |at: u64, stamped: bool| before.iter().any(|d| d.0 == at && (d.1 == FAILS || (d.1 == STAMP) == stamped));
    // The front comes first: a card that fails here has failed for another reason.
    let seed = if done(from, true) {
        front(b, from)?
    } else {
        b.write_of(STAMP, Fill::Stamp(seed), from, CHUNK.min(stretch))?;
        seed
    };
    let places = places(b.region.start..b.region.end, from + stretch);
    for &at in places.iter().filter(|at| !done(**at, true)) {
        stamp(b, seed, at, PLACE)?;
    }
    // Half of the time is for what reads it back: where writes take long the stretch is shorter.
    let until = b.halfway();
    for at in (from..from + stretch).step_by(CHUNK as usize).skip(1).filter(|at| !done(*at, true)) {
        if b.now() >= until || !stamp(b, seed, at, CHUNK)? {
            break;
        }
    }
    let refused = |b: &Bench, at: u64| b.taken.iter().any(|s| s.at == at && s.role == FAILS);
    for at in places {
        if !done(at, false) && !refused(b, at) {
            look(b, seed, at, PLACE, [KEPT, LOST])?;
        }
    }
    Ok(())
}

/// Were all places read back, or enough to tell?
fn looked(cell: &Cell, run: &Run) -> bool {
    let number = |key: &str| run.setting(key).unwrap_or(0);
    let all = places(number("start")..number("end"), cell.bytes("from") + cell.bytes("stretch"));
    let read = |at: &u64| run.of(cell.id).any(|s| s.at == *at && s.role != STAMP);
    run.of(cell.id).any(|s| s.role == NOTHING) || border(run).is_some() || !aliases(run).is_empty() || all.iter().all(read)
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

/// The stretch as (from, length), as far as it was written.
fn stretch(run: &Run) -> Option<(u64, u64)> {
    let first = run.cells.first()?;
    let chunks = run.of(first.id).filter(|s| s.role == STAMP && s.len == CHUNK).count() as u64;
    Some((first.bytes("from"), chunks.max(1) * CHUNK))
}

/// Where the next sector lies that may show the stretch; `None` when all were looked at, or one shows it, or places were lost.
fn elsewhere(run: &Run) -> Option<u64> {
    let (from, stretch) = stretch(run)?;
    let sector = run.setting("sector")?;
    let read_back = run.samples.iter().any(|s| matches!(s.role, KEPT | ANOTHER));
    let looks = run.samples.iter().filter(|s| matches!(s.role, NOTHING | ANOTHER | FAILS) && looking(run, s));
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
        Err(DeviceError::Io { .. }) => b.failed(FAILS, at, len),
        done => done?,
    }
    let other = other.filter(|p| b.region.contains(p));
    if let Some(place) = other {
        b.read(SHOWN, place, len)?;
    }
    Ok(other)
}

/// Places behind the stretch, evenly over the region, the last one near its end.
fn places(region: std::ops::Range<u64>, behind: u64) -> Vec<u64> {
    // Not the very end, where a partition table keeps its copy: an interrupted run must not hide what is on a card.
    let last = (region.end - MIB) / PLACE * PLACE;
    let room = last - behind;
    let all = (0..PLACES).map(|i| behind + room / PLACES * i / PLACE * PLACE);
    all.chain([last]).collect()
}

/// Where something is shown that was written elsewhere, and where that is.
fn aliases(run: &Run) -> Vec<(u64, u64)> {
    let pairs = run.samples.windows(2).filter(|w| w[0].role == ANOTHER && w[1].role == SHOWN);
    pairs.map(|w| (w[0].at, w[1].at)).collect()
}

/// Did the search meet the stretch a second time? It goes upwards, so it meets the nearest one first.
fn met(run: &Run) -> bool {
    let Some((from, stretch)) = stretch(run) else { return false };
    run.samples.windows(2).any(|w| w[0].role == ANOTHER && looking(run, &w[0]) && (from..from + stretch).contains(&w[1].at))
}

fn looking(run: &Run, s: &Sample) -> bool {
    run.cell(s.cell).is_some_and(|c| c.set.contains_key("look"))
}

/// Where what was written begins to be lost.
struct Border {
    /// The last place kept and the first one lost.
    kept: u64,
    lost: u64,
    /// Places of either kind.
    places: [usize; 2],
}

/// None where nothing is lost, or where places behind a lost one are kept.
fn border(run: &Run) -> Option<Border> {
    let at =
        |wanted: fn(&Sample) -> bool| -> Vec<u64> { run.samples.iter().filter(|s| s.len == PLACE && wanted(s)).map(|s| s.at).collect() };
    let (kept, lost) = (at(|s| s.role == KEPT), at(|s| matches!(s.role, LOST | FAILS)));
    let first = *lost.iter().min()?;
    // The stretch was taken, and what a card without flash would answer for it was not.
    let last = kept.iter().copied().max().unwrap_or_else(|| run.cells.first().map_or(0, |c| c.bytes("from")));
    (last < first).then_some(Border { kept: last, lost: first, places: [kept.len(), lost.len()] })
}

fn judge(run: &Run) -> Finding {
    const Q: Quantity = Quantity::Capacity;
    let count = |role: u8| run.samples.iter().filter(|s| s.role == role).count();
    if run.cells.is_empty() {
        return Finding::undecided(Q, "the region is too small for the search");
    }
    let kept = run.samples.iter().filter(|s| s.role == KEPT && s.len == PLACE).count();
    if kept + count(LOST) + count(ANOTHER) == 0 {
        return Finding::undecided(Q, "nothing was read back: the run ended before, or this target keeps no content");
    }
    let number = |key: &str| run.setting(key).unwrap_or(0);
    let (offset, size, end) = (number("offset"), number("size"), number("end"));
    let says = format!("the card says {} GiB: it is a counterfeit", three((offset + size) as f64 / GIB as f64));
    let aliases = aliases(run);
    if let [(shows, place), ..] = aliases[..] {
        let real = aliases.iter().map(|(a, b)| a.abs_diff(*b)).fold(0, gcd);
        let text = format!("what was written at byte {place} is read at byte {shows}, too");
        // Places far apart may lie whole periods apart; the stretch shows at the first one.
        if !met(run) {
            let why = format!("a counterfeit, of {} or a part of it: the search for where it wraps round was cut short", Bytes(real));
            return Finding::undecided(Q, why).evidence(text).evidence(says);
        }
        let trust = if aliases.len() > 1 { 0.98 } else { 0.95 };
        return Finding::decided(Q, real as f64, trust).evidence(text).evidence(says);
    }
    let failing = if count(FAILS) > count(LOST) { "fails" } else { "is lost" };
    if let Some(Border { kept, lost, places }) = border(run) {
        let real = offset + (lost / MIB * MIB).max(kept + PLACE);
        let text =
            format!("what was written at byte {lost} {failing}, and at {} places behind it; at byte {kept} it is kept", places[1] - 1);
        let trust = if places[1] > 2 { 0.95 } else { 0.7 };
        let mut f = match lost - kept <= CLOSE {
            true => Finding::decided(Q, real as f64, trust),
            false => Finding::at_least(Q, (offset + kept + PLACE) as f64, trust, "the search for the border was cut short"),
        };
        f = f.evidence(text).evidence(says);
        f.interval = Some([(offset + kept + PLACE) as f64, (offset + lost) as f64]);
        return f;
    }
    if count(LOST) + count(FAILS) > 0 {
        return Finding::undecided(Q, "some places were lost, and others behind them were not: bad flash rather than a counterfeit");
    }
    let written: u64 = run.samples.iter().filter(|s| s.role == STAMP).map(|s| s.len).sum();
    let looks = count(NOTHING);
    let text = format!("{} places were kept, and {looks} sectors elsewhere show none of them", kept);
    // The search that was cut short left part of the region out.
    let whole = run.ended == Ended::Complete && end + number("sector") >= size && number("start") == 0;
    let f = match whole {
        true => Finding::decided(Q, (offset + size) as f64, 0.95),
        false => Finding::at_least(Q, (offset + last_kept(run)) as f64, 0.9, "the region, or the time allowed, ends there"),
    };
    f.evidence(text).caveat(format!("a cache of more than {} would hide lost writes", Bytes(written)))
}

/// End of the last place that was kept and is not shown elsewhere.
fn last_kept(run: &Run) -> u64 {
    let kept = run.samples.iter().filter(|s| s.role == KEPT).map(|s| s.at + s.len).max().unwrap_or(0);
    let looked = run.samples.iter().filter(|s| s.role == NOTHING).map(|s| s.at + s.len).max().unwrap_or(0);
    if run.ended == Ended::Complete { kept } else { kept.min(looked) }
}
