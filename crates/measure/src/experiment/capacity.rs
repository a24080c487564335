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

use super::{About, Bench, Experiment, Figure, Setup};
use crate::device::fill::read_stamp;
use crate::device::{Access, Device, DeviceError, Fill, Op, Timed};
use crate::finding::{Finding, NO_SIGN, NOT_TESTED, Quantity, TARGET};
use crate::samples::{Cell, Ended, Run, Sample};
use crate::units::{Bytes, GIB, KIB, MIB, Nanos, gcd, three};

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

const STAMP: u8 = 0;
const KEPT: u8 = 1;
const LOST: u8 = 2;
const FAILS: u8 = 3;
const ANOTHER: u8 = 4;
const SHOWN: u8 = 5;
const NOTHING: u8 = 6;
const UNREAD: u8 = 7;
const READS: u8 = 8;

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

    fn wants(&self, cell: &Cell, run: &Run) -> bool {
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

    fn more(&self, run: &Run) -> Vec<Cell> {
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

    fn infer(&self, run: &Run) -> Vec<Finding> {
        vec![judge(run)]
    }

    fn figures(&self, _run: &Run) -> Vec<Figure> {
        vec![]
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
fn looked(run: &Run, places: &[u64]) -> bool {
    let read = |at: &u64| run.samples.iter().any(|s| s.at == *at && s.len == PLACE && s.role != STAMP);
    keeps_nothing(run) || border(run).is_some() || !aliases(run).is_empty() || places.iter().all(read)
}

/// A target that keeps no content, marked by a sample at the start of the region, where nothing is looked at.
fn keeps_nothing(run: &Run) -> bool {
    run.samples.iter().any(|s| s.role == NOTHING && Some(s.at) == run.setting("start"))
}

/// All places of a run beyond its stretch, as planned.
fn all_places(run: &Run) -> Vec<u64> {
    let number = |key: &str| run.setting(key).unwrap_or(0);
    run.cells.first().map_or(vec![], |c| places(number("start")..number("end"), c.bytes("from") + c.bytes("stretch")))
}

/// What is written first: the last place, beyond the flash of every counterfeit, and the one in the middle.
fn far(run: &Run) -> Vec<u64> {
    let all = all_places(run);
    [all.last(), all.get(all.len() / 2)].into_iter().flatten().copied().collect()
}

/// The other places.
fn rest(run: &Run) -> Vec<u64> {
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

/// The last place that can be read and the first that cannot; none where places beyond one that cannot be read can be.
fn read_border(run: &Run) -> Option<(u64, u64)> {
    let of = |role: u8| run.samples.iter().filter(move |s| s.role == role).map(|s| s.at);
    let (good, bad) = (of(READS).max()?, of(UNREAD).min()?);
    (good < bad).then_some((good, bad))
}

/// What reads alone say of the size.
fn judge_reads(run: &Run) -> Finding {
    const Q: Quantity = Quantity::Capacity;
    let number = |key: &str| run.setting(key).unwrap_or(0);
    let (offset, reports) = (number("offset"), number("offset") + number("size"));
    let bad = run.samples.iter().filter(|s| s.role == UNREAD).count();
    let Some((good, first)) = read_border(run) else {
        let why = if bad > 0 {
            "some places cannot be read, and others beyond them can: bad flash"
        } else {
            "only writes show what a card keeps"
        };
        return Finding::undecided(Q, why);
    };
    let real = offset + (first / MIB * MIB).max(good + PLACE);
    let gib = |b: u64| three(b as f64 / GIB as f64);
    let text = format!("the card cannot be read beyond about {} GiB of {} GiB: counterfeit or failing", gib(real), gib(reports));
    let mut f = Finding::decided(Q, real as f64, if bad > 2 { 0.95 } else { 0.7 }).evidence(text);
    f.interval = Some([(offset + good) as f64, (offset + first) as f64]);
    f
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

/// Places beyond the stretch, evenly over the region, the last one near its end.
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

impl Border {
    /// The next place that would say more: between the two, or, once they are close, beyond the border where only one or two places
    /// speak for it. One bad place is no border.
    fn next(&self, run: &Run) -> Option<u64> {
        if self.lost - self.kept > CLOSE {
            return Some((self.kept / 2 + self.lost / 2) / PLACE * PLACE);
        }
        let last = all_places(run).last().copied()?;
        let room = last.checked_sub(self.lost)?;
        let tried = |at: &u64| run.samples.iter().any(|s| s.len == PLACE && s.at == *at);
        let more = [room / 2, room / 4, room * 3 / 4].map(|d| (self.lost + d) / PLACE * PLACE);
        more.into_iter().find(|at| self.places[1] <= 2 && !tried(at))
    }
}

/// None where nothing is lost, or where places beyond a lost one are kept.
fn border(run: &Run) -> Option<Border> {
    let at =
        |wanted: fn(&Sample) -> bool| -> Vec<u64> { run.samples.iter().filter(|s| s.len == PLACE && wanted(s)).map(|s| s.at).collect() };
    let (kept, lost) = (at(|s| s.role == KEPT), at(|s| matches!(s.role, LOST | FAILS | UNREAD)));
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
    if run.cells[0].set.contains_key("reads") {
        return judge_reads(run);
    }
    let kept = run.samples.iter().filter(|s| s.role == KEPT && s.len == PLACE).count();
    let failing = count(FAILS) + count(UNREAD);
    if kept + count(LOST) + count(ANOTHER) + failing == 0 {
        let why = if keeps_nothing(run) { "this target keeps no content".to_string() } else { not_tested(run) };
        return Finding::undecided(Q, why);
    }
    let number = |key: &str| run.setting(key).unwrap_or(0);
    let (offset, size, end) = (number("offset"), number("size"), number("end"));
    let reports = format!("{} GiB", three((offset + size) as f64 / GIB as f64));
    let says = format!("the card reports {reports}: it is a counterfeit");
    let aliases = aliases(run);
    if let [(shows, place), ..] = aliases[..] {
        let real = aliases.iter().map(|(a, b)| a.abs_diff(*b)).fold(0, gcd);
        let text = format!("what was written at byte {place} is read at byte {shows}, too");
        // Places far apart may lie whole periods apart; the stretch shows at the first one.
        if !met(run) {
            let why = format!("a counterfeit, of {} or a part of it: the search for where it wraps round was cut short", Bytes(real));
            // No nearer place showed the stretch, as far as the search came.
            let least = searched(run).unwrap_or(PLACE).min(real);
            let mut f = Finding::at_least(Q, least as f64, 0.95, why).evidence(text).evidence(says);
            f.interval = Some([least as f64, real as f64]);
            return f;
        }
        let trust = if aliases.len() > 1 { 0.98 } else { 0.95 };
        return Finding::decided(Q, real as f64, trust).evidence(text).evidence(says);
    }
    if let Some(Border { kept, lost, places }) = border(run) {
        let real = offset + (lost / MIB * MIB).max(kept + PLACE);
        let text = match (count(UNREAD), failing > count(LOST)) {
            (unread, true) if 2 * unread > failing => {
                let about = three(real as f64 / GIB as f64);
                format!("the card cannot be read beyond about {about} GiB of {reports}: counterfeit or failing")
            }
            (_, fails) => {
                let failing = if fails { "fails" } else { "is lost" };
                let more = places[1] - 1;
                format!("what was written at byte {lost} {failing}, and at {more} places beyond it; at byte {kept} it is kept")
            }
        };
        let trust = if places[1] > 2 { 0.95 } else { 0.7 };
        let mut f = match lost - kept <= CLOSE {
            true => Finding::decided(Q, real as f64, trust),
            false => Finding::at_least(Q, (offset + kept + PLACE) as f64, trust, "the search for the border was cut short"),
        };
        let says = if failing > count(LOST) { format!("{says} or failing") } else { says };
        f = f.evidence(text).evidence(says);
        f.interval = Some([(offset + kept + PLACE) as f64, (offset + lost) as f64]);
        return f;
    }
    if count(LOST) + failing > 0 {
        return Finding::undecided(Q, "some places were lost, and others beyond them were not: bad flash rather than a counterfeit");
    }
    let written: u64 = run.samples.iter().filter(|s| s.role == STAMP).map(|s| s.len).sum();
    let looks = count(NOTHING);
    let text = format!("{} places were kept, and {looks} sectors elsewhere show none of them", kept);
    // The search that was cut short left part of the region out.
    let tried = number("start") == 0 && end + number("sector") >= size;
    let f = match tried && run.ended == Ended::Complete {
        true => Finding::decided(Q, (offset + size) as f64, 0.95),
        false => {
            let end = if tried { "the time allowed ended there" } else { "the region ends there" };
            let why = format!("{NO_SIGN} of less than the {reports} it reports; {} places checked; {end}", kept + looks);
            Finding::at_least(Q, (offset + last_kept(run)) as f64, 0.9, why)
        }
    };
    f.evidence(text).caveat(format!("a cache of more than {} would hide lost writes", Bytes(written)))
}

/// Nothing was read back: says so, and about how long it would take.
fn not_tested(run: &Run) -> String {
    let mean = |role: u8, len: u64| {
        let took: Vec<f64> = run.samples.iter().filter(|s| s.role == role && s.len == len).map(|s| s.took.secs()).collect();
        (!took.is_empty()).then(|| took.iter().sum::<f64>() / took.len() as f64)
    };
    let Some(cell) = run.cells.first() else { return "not tested: the region is too small".into() };
    let chunks = (cell.bytes("stretch") / CHUNK).max(1) as f64;
    // Written, and put back; a look costs about as much as the shortest write of the run.
    let wrote = mean(STAMP, PLACE).or(mean(STAMP, CHUNK)).map(|place| {
        let chunk = mean(STAMP, CHUNK).unwrap_or(place);
        2.0 * (PLACES as f64 * place + chunks * chunk) + LOOKS as f64 * place.min(0.005)
    });
    let about = wrote.map_or(String::new(), |s| format!(" (about {:.0} s)", (s / 10.0).ceil() * 10.0));
    let why = match &run.ended {
        Ended::Complete => "nothing was read back",
        Ended::Budget(what) if what == "time" => "time ran out",
        Ended::Budget(_) => "the writes allowed were used up",
        Ended::Interrupted => "the run was interrupted",
        Ended::Failed(_) => "the run failed",
    };
    format!("{NOT_TESTED}, {why}; run: nandscope run capacity {TARGET}{about}")
}

/// Where the search for the stretch has come to, counted from it; none where it has not begun.
fn searched(run: &Run) -> Option<u64> {
    let (from, _) = stretch(run)?;
    run.samples.iter().filter(|s| s.role == NOTHING && looking(run, s)).map(|s| s.at - from).max()
}

/// End of the last place that was kept and is not shown elsewhere.
fn last_kept(run: &Run) -> u64 {
    let kept = run.samples.iter().filter(|s| s.role == KEPT).map(|s| s.at + s.len).max().unwrap_or(0);
    let looked = run.samples.iter().filter(|s| s.role == NOTHING && looking(run, s)).map(|s| s.at + s.len).max().unwrap_or(0);
    if run.ended == Ended::Complete { kept } else { kept.min(looked) }
}
