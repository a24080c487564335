//! Whether the flash is as large as the card says: which places were kept, lost or shown elsewhere.

use super::beliefs::Case;
use super::figure::Figure;
use super::pipeline::Analysis;
use crate::finding::{Finding, NO_SIGN, NOT_TESTED, Quantity, TARGET};
use crate::samples::{Ended, Run, Sample};
use crate::units::{Bytes, GIB, KIB, MIB, gcd, three};

/// Judges runs of `capacity`.
pub struct Capacity;

/// Roles of the samples.
pub const STAMP: u8 = 0;
pub const KEPT: u8 = 1;
pub const LOST: u8 = 2;
pub const FAILS: u8 = 3;
pub const ANOTHER: u8 = 4;
pub const SHOWN: u8 = 5;
pub const NOTHING: u8 = 6;
pub const UNREAD: u8 = 7;
pub const READS: u8 = 8;

/// Places over the region, and bytes of each.
pub const PLACES: u64 = 24;

pub const PLACE: u64 = 4 * KIB;

/// Single sectors that look for the stretch elsewhere; more where it would become longer than `LONGEST`.
pub const LOOKS: u64 = 4096;

pub const CHUNK: u64 = 256 * KIB;

/// How closely the border is bisected.
pub const CLOSE: u64 = MIB;

impl Analysis for Capacity {
    fn name(&self) -> &'static str {
        "capacity"
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        vec![judge(run)]
    }

    fn figures(&self, _run: &Case) -> Vec<Figure> {
        vec![]
    }
}

/// A target that keeps no content, marked by a sample at the start of the region, where nothing is looked at.
pub fn keeps_nothing(run: &Run) -> bool {
    run.samples.iter().any(|s| s.role == NOTHING && Some(s.at) == run.setting("start"))
}

/// All places of a run beyond its stretch, as planned.
pub fn all_places(run: &Run) -> Vec<u64> {
    let number = |key: &str| run.setting(key).unwrap_or(0);
    run.cells.first().map_or(vec![], |c| places(number("start")..number("end"), c.bytes("from") + c.bytes("stretch")))
}

/// The last place that can be read and the first that cannot; none where places beyond one that cannot be read can be.
pub fn read_border(run: &Run) -> Option<(u64, u64)> {
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

/// The stretch as (from, length), as far as it was written.
pub fn stretch(run: &Run) -> Option<(u64, u64)> {
    let first = run.cells.first()?;
    let chunks = run.of(first.id).filter(|s| s.role == STAMP && s.len == CHUNK).count() as u64;
    Some((first.bytes("from"), chunks.max(1) * CHUNK))
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
pub fn aliases(run: &Run) -> Vec<(u64, u64)> {
    let pairs = run.samples.windows(2).filter(|w| w[0].role == ANOTHER && w[1].role == SHOWN);
    pairs.map(|w| (w[0].at, w[1].at)).collect()
}

/// Did the search meet the stretch a second time? It goes upwards, so it meets the nearest one first.
pub fn met(run: &Run) -> bool {
    let Some((from, stretch)) = stretch(run) else { return false };
    run.samples.windows(2).any(|w| w[0].role == ANOTHER && looking(run, &w[0]) && (from..from + stretch).contains(&w[1].at))
}

/// Was this one of the single sectors that may show the stretch?
pub fn looking(run: &Run, s: &Sample) -> bool {
    run.cell(s.cell).is_some_and(|c| c.set.contains_key("look"))
}

/// Where what was written begins to be lost.
pub struct Border {
    /// The last place kept and the first one lost.
    pub kept: u64,
    pub lost: u64,
    /// Places of either kind.
    pub places: [usize; 2],
}

impl Border {
    /// The next place that would say more: between the two, or, once they are close, beyond the border where only one or two places
    /// speak for it. One bad place is no border.
    pub fn next(&self, run: &Run) -> Option<u64> {
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
pub fn border(run: &Run) -> Option<Border> {
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
