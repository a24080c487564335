//! What a run has seen: which places were kept, which were lost, which show one another, and where to look next.

use super::*;
use crate::samples::Sample;
use std::collections::{BTreeMap, BTreeSet};

/// Were these places read back, or enough to decide?
pub fn looked(run: &Run, places: &[u64]) -> bool {
    let decided = border(run).is_some() || !aliases(run).is_empty() || front_lost(run);
    keeps_nothing(run) || decided || places.iter().all(|at| read(run, *at))
}

/// Was this place read back, after others had gone through the card or at once without success?
pub fn read(run: &Run, at: u64) -> bool {
    run.samples.iter().any(|s| s.at == at && s.len == PLACE && matches!(s.role, KEPT | LOST | FAILS | UNREAD | ANOTHER))
}

/// Each place that was kept, lost or failed, as it was seen last: what a cache kept for a while is lost later, and where one did, a place
/// that was not read again since may be lost as well.
pub fn last_seen(run: &Run) -> BTreeMap<u64, u8> {
    let seen = run.samples.iter().filter(|s| s.len == PLACE && matches!(s.role, KEPT | LOST | FAILS | UNREAD));
    let mut all: BTreeMap<u64, u8> = seen.map(|s| (s.at, s.role)).collect();
    let later: BTreeMap<u64, u8> = looks(run, LATER).map(|s| (s.at, s.role)).collect();
    if later.values().any(|role| *role == LOST) {
        all.retain(|at, role| *role != KEPT || later.contains_key(at));
    }
    all
}

/// Bytes before the last place that are written to drive it out of a cache for the far part alone, as (first byte, length).
pub fn upper(run: &Run) -> Option<(u64, u64)> {
    let (_, len) = stretch(run)?;
    let (last, len) = (far(run)?, len.min(4 * CHUNK));
    Some((last.checked_sub(len)? / CHUNK * CHUNK, len))
}

/// Was the last place kept until what lies before it had been written?
pub fn ring(run: &Run) -> bool {
    let Some(last) = far(run) else { return false };
    let seen = |role: u8| run.samples.iter().any(|s| s.at == last && s.len == PLACE && s.role == role);
    seen(KEPT) && last_seen(run).get(&last) == Some(&LOST)
}

/// Does a card return what it was given a moment ago, so that only what was read later counts? None before that was tried.
pub fn may_cache(samples: &[Sample], last: u64) -> Option<bool> {
    let of = |s: &&Sample| s.at == last && s.len == PLACE && s.role != STAMP;
    samples.iter().find(of).map(|s| s.role == AT_ONCE)
}

/// What was written first was not kept, and no other place shows what took its place.
pub fn front_lost(run: &Run) -> bool {
    let Some(from) = run.cells.first().and_then(|c| c.set.get("from")) else { return false };
    run.samples.iter().any(|s| s.at == *from as u64 && s.role == LOST)
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

/// What is written first: the last place, beyond the flash of every counterfeit.
pub fn far(run: &Run) -> Option<u64> {
    all_places(run).last().copied()
}

/// The other places, every third one first.
pub fn rest(run: &Run) -> Vec<u64> {
    let far = far(run);
    let all: Vec<u64> = all_places(run).into_iter().filter(|at| Some(*at) != far).collect();
    let mut places: Vec<u64> = (0..3).flat_map(|i| all.iter().copied().skip(i).step_by(3)).collect();
    let written = enough(run, run.samples.iter(), &places);
    places.truncate(written.unwrap_or(places.len()));
    places
}

/// How many of these places, in this order, are enough for a run that spares: [`FEW`], and more while all together took no longer than
/// [`ENOUGH`]; none where none is left out so far. `samples`: what the run wrote.
pub fn enough<'a>(run: &Run, samples: impl Iterator<Item = &'a Sample>, places: &[u64]) -> Option<usize> {
    if run.cells.first()?.set.get(SPARES) != Some(&1) {
        return None;
    }
    let mut took: BTreeMap<u64, Nanos> = BTreeMap::new();
    for s in samples.filter(|s| s.len == PLACE && s.role == STAMP) {
        took.entry(s.at).or_insert(s.took);
    }
    let sums = places.iter().scan(Nanos(0), |sum, at| {
        *sum = Nanos(sum.0 + took.get(at).map_or(0, |t| t.0));
        Some(*sum)
    });
    sums.enumerate().skip(FEW - 1).find(|(_, sum)| *sum > ENOUGH).map(|(i, _)| i + 1)
}

/// The stretch as (from, length), as far as it was written.
pub fn stretch(run: &Run) -> Option<(u64, u64)> {
    let first = run.cells.first()?;
    let (from, planned) = (first.bytes("from"), first.bytes("stretch"));
    let ends = run.of(first.id).filter(|s| s.role == STAMP && (from..from + planned).contains(&s.at)).map(|s| s.at + s.len - from);
    Some((from, ends.max().unwrap_or(FRONT)))
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
    pairs_of(run.samples.iter()).collect()
}

/// Did the search meet the stretch a second time, and how far away? It goes upwards, so it meets the nearest one first.
pub fn met(run: &Run) -> Option<u64> {
    let (from, stretch) = stretch(run)?;
    pairs_of(looks(run, "look")).find(|(_, place)| (from..from + stretch).contains(place)).map(|(at, place)| at.abs_diff(place))
}

/// What the cell with this key looked at.
pub fn looks<'a>(run: &'a Run, key: &'a str) -> impl Iterator<Item = &'a Sample> {
    run.cells.iter().filter(move |c| c.set.contains_key(key)).flat_map(|c| run.of(c.id))
}

/// Where one place was shown at another, and which; a look and what it showed follow each other.
fn pairs_of<'a>(samples: impl Iterator<Item = &'a Sample>) -> impl Iterator<Item = (u64, u64)> {
    let mut before: Option<&Sample> = None;
    samples.filter_map(move |s| {
        let looked = before.replace(s).filter(|b| b.role == ANOTHER && s.role == SHOWN)?;
        Some((looked.at, s.at))
    })
}

/// A power of two after which the front of the stretch shows again, and at all larger ones, but not at half of it: a distance that
/// divides a power of two is one itself.
fn power(run: &Run) -> Option<u64> {
    let (from, stretch) = stretch(run)?;
    let (sector, first) = (run.setting("sector")?, run.cells.first()?.id);
    // By the power: what was seen there, and whether that is the front.
    let mut seen: BTreeMap<u32, (u8, bool)> = BTreeMap::new();
    let next = run.of(first).skip(1).map(Some).chain([None]);
    for (s, next) in run.of(first).zip(next).filter(|(s, _)| s.len == sector && s.at > from) {
        let away = s.at - from;
        if away.is_power_of_two() && matches!(s.role, ANOTHER | NOTHING | UNREAD) {
            let front = next.is_some_and(|n| n.role == SHOWN && n.at == from);
            seen.entry(away.trailing_zeros()).or_insert((s.role, front));
        }
    }
    let smallest = *seen.iter().find(|(k, s)| **k >= 20 && **s == (ANOTHER, true))?.0;
    // One that fails says nothing of where it would lie.
    let all = seen.range(smallest..).all(|(_, &(role, front))| front || role == UNREAD);
    let half = 1 << (smallest - 1);
    (all && (half < stretch || seen.get(&(smallest - 1)).is_some_and(|(_, front)| !front))).then_some(1 << smallest)
}

/// The distance after which addresses repeat, to the byte.
pub fn period(run: &Run) -> Option<u64> {
    met(run).or_else(|| power(run))
}

/// The first address of the target that shows an earlier one, where the card's addresses repeat.
fn limit(run: &Run, period: u64) -> u64 {
    period.saturating_sub(run.setting("offset").unwrap_or(0))
}

/// Two addresses that show one place, and another pair as far apart that does not; or that were found without any rule.
pub fn irregular(run: &Run) -> Option<(u64, u64)> {
    if run.samples.iter().any(|s| s.role == MISSED) {
        return aliases(run).first().copied();
    }
    // Where addresses repeat after a power of two, the front has shown it before.
    let away = |(at, place): &(u64, u64)| at.abs_diff(*place).is_power_of_two();
    pairs_of(looks(run, "pairs")).next().or_else(|| pairs_of(looks(run, "rest")).find(away))
}

/// Is the stretch so short that looking for it all over the region would take longer than all else?
pub fn short(run: &Run) -> bool {
    let number = |key: &str| run.setting(key).unwrap_or(0);
    stretch(run).is_some_and(|(_, len)| (number("end") - number("start")) / len > 8 * LOOKS)
}

/// Where the next sector lies that may show the stretch; `None` when all were looked at, or one shows it, or places were lost.
pub fn elsewhere(run: &Run) -> Option<u64> {
    let (from, stretch) = stretch(run)?;
    let sector = run.setting("sector")?;
    let read_back = run.samples.iter().any(|s| matches!(s.role, KEPT | ANOTHER));
    let looked = looks(run, "look").filter(|s| matches!(s.role, NOTHING | ANOTHER | FAILS | UNREAD));
    let next = looked.map(|s| s.at + stretch).max().unwrap_or(from + stretch);
    let open = read_back && period(run).is_none() && border(run).is_none();
    (open && next < run.setting("end")? - sector).then_some(next)
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
    /// The next places that would say more: between the two, or, once they are close, beyond the border where only one or two places
    /// speak for it. One bad place is no border. With a cache in front several at once: it must be displaced before each look.
    pub fn next(&self, run: &Run, several: bool) -> Vec<u64> {
        let apart = self.lost - self.kept;
        if apart > CLOSE {
            let parts = if several { 8.min(apart / CLOSE + 1) } else { 2 };
            return (1..parts).map(|i| (self.kept + apart / parts * i) / PLACE * PLACE).filter(|p| *p > self.kept).collect();
        }
        let last = match period(run) {
            Some(w) => limit(run, w).saturating_sub(PLACE),
            None => all_places(run).last().copied().unwrap_or(0),
        };
        let Some(room) = last.checked_sub(self.lost) else { return vec![] };
        let tried = |at: &u64| run.samples.iter().any(|s| s.len == PLACE && s.at == *at);
        let more = [room / 2, room / 4, room * 3 / 4].map(|d| (self.lost + d) / PLACE * PLACE);
        more.into_iter().filter(|at| self.places[1] <= 2 && !tried(at)).take(1).collect()
    }
}

/// None where nothing is lost, or where places beyond a lost one are kept. Where addresses repeat, what lies beyond is not counted.
pub fn border(run: &Run) -> Option<Border> {
    let limit = period(run).map_or(u64::MAX, |w| limit(run, w));
    let at = |wanted: fn(u8) -> bool| -> Vec<u64> {
        last_seen(run).into_iter().filter(|(at, role)| *at < limit && wanted(*role)).map(|(at, _)| at).collect()
    };
    let (kept, lost) = (at(|role| role == KEPT), at(|role| role != KEPT));
    let first = *lost.iter().min()?;
    // The stretch was taken, and what a card without flash would answer for it was not.
    let last = kept.iter().copied().max().unwrap_or_else(|| run.cells.first().map_or(0, |c| c.bytes("from")));
    (last < first).then_some(Border { kept: last, lost: first, places: [kept.len(), lost.len()] })
}

/// A place near the end of what is there by the distance after which addresses repeat, where it was not tried.
pub fn inside(run: &Run, period: u64) -> Option<u64> {
    let (from, stretch) = stretch(run)?;
    let at = limit(run, period).checked_sub(PLACE)? / PLACE * PLACE;
    (at > from + stretch && !read(run, at) && border(run).is_none()).then_some(at)
}

/// Where the search for the stretch has come to, counted from it; none where it has not begun.
pub fn searched(run: &Run) -> Option<u64> {
    let (from, _) = stretch(run)?;
    looks(run, "look").filter(|s| s.role == NOTHING).map(|s| s.at - from).max()
}

/// Powers of two away from a place, on both sides: where a broken address line would show it. The farthest first.
pub fn powers_away(run: &Run, place: u64) -> Vec<u64> {
    let number = |key: &str| run.setting(key).unwrap_or(0);
    let (start, end) = (number("start"), number("end").saturating_sub(number("sector")));
    let away = |k: u32| [place.checked_add(1 << k), place.checked_sub(1 << k)];
    (20..63).rev().flat_map(away).flatten().filter(|at| (start..end).contains(at)).collect()
}

/// These addresses for all places that were kept, as far as they were not looked at.
pub fn pairs(run: &Run) -> Vec<u64> {
    let kept = run.samples.iter().filter(|s| s.role == KEPT && s.len == PLACE);
    let mut all: Vec<u64> = kept.flat_map(|s| powers_away(run, s.at)).collect();
    let done: BTreeSet<u64> = looks(run, "pairs").map(|s| s.at).collect();
    all.retain(|at| !done.contains(at));
    all
}

/// Addresses that must show a stamp where addresses repeat after `period`: at most six beyond the stretch, which it is shown at.
pub fn multiples(run: &Run, period: u64) -> Vec<u64> {
    let Some((from, _)) = stretch(run) else { return vec![] };
    let end = run.setting("end").unwrap_or(0).saturating_sub(run.setting("sector").unwrap_or(0));
    let n = end.saturating_sub(from + 1) / period;
    let step = n.div_ceil(6).max(1);
    let tried = |at: &u64| run.samples.iter().any(|s| s.at == *at && matches!(s.role, ANOTHER | MISSED | UNREAD));
    (1..=n).step_by(step as usize).map(|m| from + m * period).filter(|at| !tried(at)).collect()
}

/// The last place that can be read and the first that cannot; none where places beyond one that cannot be read can be.
pub fn read_border(run: &Run) -> Option<(u64, u64)> {
    let of = |role: u8| run.samples.iter().filter(move |s| s.role == role).map(|s| s.at);
    let (good, bad) = (of(READS).max()?, of(UNREAD).min()?);
    (good < bad).then_some((good, bad))
}
