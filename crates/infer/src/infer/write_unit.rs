//! The size below which a write costs as much as one of that size: the candidate that explains the times best.

mod begins;
mod bus;
mod coalesced;
mod explain;
mod fills;
mod model;
mod speeds;
pub(super) mod tables;

use self::coalesced::{COMBINED, TIGHT, combined, gap};
use self::explain::{EXPLAINED, Explained, Way, least};
use self::model::*;
use super::beliefs::{Beliefs, Case};
use super::figure::{Figure, Series};
use super::pipeline::Analysis;
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{bootstrap_median, mad, median};
use crate::infer::ticks::{framed, tick};
use crate::samples::{Run, Sample};
use crate::units::{Bytes, KIB, three};
use std::collections::BTreeMap;

/// Judges runs of `write-unit`.
pub struct WriteUnit;

pub(super) const ANALYSES: &[&dyn Analysis] = &[&WriteUnit];

impl Analysis for WriteUnit {
    fn name(&self) -> &'static str {
        "write-unit"
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        let known = Known::of(run.believed, run.setting("size"));
        let phase = known.placed.unwrap_or(0);
        let writes: Vec<Write> =
            rows(run).iter().map(|s| Write { at: s.at.wrapping_sub(phase), len: s.len, us: s.took.micros() }).collect();
        let mut f = judge(&writes, &known);
        let of_unit = f.number().and_then(|unit| by_size(run).get(&(unit as u64)).map(|t| median(t)));
        f.or_block = of_unit.is_some_and(merges);
        vec![f]
    }

    fn alike(&self, a: &Beliefs, b: &Beliefs) -> bool {
        Known::of(a, None) == Known::of(b, None)
    }

    fn figures(&self, run: &Case) -> Vec<Figure> {
        let points: Vec<(f64, f64, f64, f64)> = by_size(run)
            .iter()
            .map(|(&s, t)| {
                let [low, high] = bootstrap_median(t).unwrap_or([f64::NAN; 2]);
                (s as f64, median(t) / 1e3, low / 1e3, high / 1e3)
            })
            .collect();
        vec![Figure {
            title: "time of one sequential write".into(),
            x: "size of the write".into(),
            y: "ms".into(),
            log_x: true,
            log_y: true,
            series: Series::with_bounds("median", &points),
        }]
    }
}

/// Role of the write that goes before.
pub const SCOUT: u8 = 1;

/// Writes a pass makes of a size. Threes of 2^k and an even number of 3*2^k keep every write aligned to its own size, and six of another
/// those that follow.
pub fn writes_of(size: u64) -> u64 {
    match (size.is_power_of_two(), size > 64 * KIB) {
        _ if !size.is_power_of_two() && !size.is_multiple_of(3) => 6,
        (true, true) => 3,
        (false, true) => 2,
        (true, false) => 6,
        (false, false) => 4,
    }
}

/// Writes that go on where the one before ended: the others open an AU or break the order in it.
fn rows(run: &Run) -> Vec<&Sample> {
    let passes = run.cells.iter().flat_map(|c| run.trials(c.id));
    passes.flat_map(|t| t.windows(2).filter(|w| w[1].at == w[0].at + w[0].len).map(|w| w[1]).collect::<Vec<_>>()).collect()
}

/// Times in microseconds by size.
pub fn by_size(run: &Run) -> BTreeMap<u64, Vec<f64>> {
    let mut out: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for s in rows(run) {
        out.entry(s.len).or_default().push(s.took.micros());
    }
    out
}

/// Bytes of the unit that the passes so far show, however sure.
pub fn shown(run: &Case) -> Option<u64> {
    WriteUnit.infer(run).iter().find_map(Finding::number).map(|bytes| bytes as u64)
}

/// What reads have shown: all that is asked for of what is believed.
#[derive(Default, PartialEq)]
struct Known {
    /// The card is as small as those with the smallest erase blocks.
    small: bool,
    /// Where erase blocks begin: positions count from there.
    placed: Option<u64>,
    erase_block: Option<u64>,
    page: Option<u64>,
    access_unit: Option<u64>,
}

impl Known {
    fn of(believed: &Beliefs, size: Option<u64>) -> Known {
        let small = size.is_some_and(|size| size <= LARGEST_SMALL);
        let whole = |q: Quantity| believed.whole(q);
        let (placed, erase_block) = (whole(Quantity::EraseBlockOffset), believed.erase_block());
        Known { small, placed, erase_block, page: whole(Quantity::Page), access_unit: whole(Quantity::AccessUnit) }
    }

    /// Erase blocks are not known, or are no larger, and may be as small as that.
    fn may_be_block(&self, unit: u64) -> bool {
        let smallest = if self.small { SMALLEST_OF_SMALL } else { SMALLEST_BLOCK };
        unit >= smallest && self.erase_block.is_none_or(|e| e <= unit)
    }

    /// Is that more than is programmed at the same time?
    fn several(&self, unit: u64) -> bool {
        self.page.max(self.access_unit).is_some_and(|page| unit > TOGETHER * page)
    }
}

/// Bytes of the smallest erase blocks in use (data sheets of SLC: 64 pages of 2 KiB).
pub(super) const SMALLEST_BLOCK: u64 = 128 * KIB;

/// Bytes of the largest cards with blocks as small as that: SD cards of the standard capacity, 2 GB.
pub(super) const LARGEST_SMALL: u64 = 2 << 30;

/// Bytes of the erase blocks of NAND with pages of 512 B (C2), which cards of the standard capacity may have.
pub(super) const SMALLEST_OF_SMALL: u64 = 16 * KIB;

/// µs that erasing takes at least (data sheets of SLC: 1.5 ms typically).
pub(super) const ERASES: f64 = 1000.0;

/// Bytes a µs at which such blocks are programmed at best: two planes of pages of 2 KiB in 0.25 ms (data sheets of SLC).
const PROGRAMS: f64 = 16.0;

/// Does a write of so many µs take as long as merging the smallest of them?
pub(super) fn merges(us: f64) -> bool {
    us > ERASES + SMALLEST_BLOCK as f64 / PROGRAMS
}

/// Pages programmed at the same time at most: four planes of each of two dies, in data sheets.
pub(super) const TOGETHER: u64 = 8;

/// Why it is no unit, where it may end an erase block.
fn end_of_block(unit: u64) -> String {
    format!("what comes at multiples of {} may be the end of an erase block; writes inside it rise with their size", Bytes(unit))
}

/// Why so much is no unit.
fn several(unit: u64) -> String {
    format!(
        "what shows at {} is more than is programmed at the same time on pages as reads see them: a buffer that is written back, or an erase \
         block that is rewritten; single writes at random places would decide it",
        Bytes(unit)
    )
}

fn judge(writes: &[Write], known: &Known) -> Finding {
    const Q: Quantity = Quantity::WriteUnit;
    let mut sizes: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for w in writes {
        sizes.entry(w.len).or_default().push(w.us);
    }
    if sizes.len() < 6 || sizes.values().any(|t| median(t) <= 0.0) {
        return Finding::undecided(Q, if sizes.len() < 6 { "too few sizes were written" } else { "writes take no time" });
    }
    if let Some((from, times)) = falls(&sizes) {
        let longer: Vec<Write> = writes.iter().filter(|w| w.len >= from).copied().collect();
        let text = format!("writes of less than {} take {} times as long: they incur what longer ones do not", Bytes(from), three(times));
        let mut f = judge(&longer, known);
        f.reason = f.reason.map(|why| format!("{text}; of those {why}"));
        return if f.value.is_some() { f.evidence(text) } else { f };
    }
    let smallest = *sizes.keys().next().unwrap_or(&512);
    let largest = *sizes.keys().last().unwrap_or(&512);
    // Noise of one write, relative: what sizes scatter by, at least 1.5 %.
    let scatter: Vec<f64> = sizes.values().map(|t| mad(t) / median(t)).collect();
    let noise = median(&scatter).max(0.015);
    let explained = Explained::of(writes, &sizes, noise, known.placed.is_some(), known.erase_block);
    let Explained { candidates, plainly, way, .. } = &explained;
    let best = least(candidates);
    // The model is crude and writes are alike: temper the likelihood by how badly the best one fits.
    let temper = (best / writes.len() as f64).max(1.0) * 2.0 * (writes.len() as f64 / 40.0).max(1.0);
    let mut weights: Vec<(u64, f64)> = candidates.iter().map(|&(s, c)| (s, (-(c - best) / temper).exp())).collect();
    let sum: f64 = weights.iter().map(|w| w.1).sum();
    weights.iter_mut().for_each(|w| w.1 /= sum);
    nandscope_stats::descending(&mut weights, |a| a.1);
    let (unit, p) = weights[0];
    let at = |s: u64| sizes.get(&s).map_or(f64::NAN, |t| median(t) / 1e3);
    let mut shown = vec![smallest, unit, unit * 2];
    shown.dedup();
    let times: Vec<String> =
        shown.iter().filter(|s| sizes.contains_key(s)).map(|&s| format!("{} ms at {}", three(at(s)), Bytes(s))).collect();
    let text = format!("one write takes {}", times.join(", "));
    // Small linear writes that are combined: one of them pays for the unit, the others cost little. Where the factor is small, units
    // touched twice look alike; then only a clear answer counts.
    let split = |least: f64| {
        let n = sizes.values().filter(|t| gap(t, least).is_some()).count();
        n >= 2 || (n == 1 && sizes.iter().any(|(s, t)| *s <= 16 * KIB && gap(t, least).is_some()))
    };
    let gathered = [COMBINED, TIGHT].into_iter().find(|&least| *way == Way::Units && split(least));
    // One way to count the units that are paid for explains slow and fast ones of all sizes, and nothing plainer does.
    let counted = p > COUNTED && best * PLAINER < *plainly && best < EXPLAINED * writes.len() as f64 && unit < largest;
    // An erase block that ends costs an erase, and no more than its bytes do.
    let ends_block = |u: u64| known.may_be_block(u) && at(smallest) < LEAST_SHARE * at(u);
    let no_unit = |u: u64| known.several(u).then(|| several(u)).or_else(|| ends_block(u).then(|| end_of_block(u)));
    if let Some(f) = fills::unit(writes, &sizes, known.placed.is_some()).filter(|_| *way != Way::Places) {
        if let Some(why) = no_unit(f.unit) {
            return Finding::undecided(Q, why).evidence(text);
        }
        let who = format!(
            "one of the sequential writes in each {} takes longer than the others ({} of {} writes): it incurs the program of the unit",
            Bytes(f.unit),
            f.paying,
            f.all
        );
        // What pays may be a small erase block that a log is merged into.
        let small = known.erase_block.is_none_or(|e| e < 16 * f.unit);
        return Finding { off_grid: f.phase != 0, ..Finding::decided(Q, f.unit as f64, if small { 0.88 } else { 0.93 }).evidence(who) };
    }
    if let Some(least) = gathered {
        let mut found = combined(writes, &sizes, least);
        if let Some(why) = found.number().and_then(|u| no_unit(u as u64)) {
            return Finding::undecided(Q, why).evidence(text);
        }
        // What pays may be a small erase block that a log is merged into.
        if known.erase_block.zip(found.number()).is_none_or(|(e, unit)| (e as f64) < 16.0 * unit) {
            found.confidence = found.confidence.min(0.88);
        }
        // Who pays and how much say different things.
        if let Some(by_who) = found.number().map(|u| u as u64).filter(|&u| counted && u != unit) {
            let (by_who, by_much) = (Bytes(by_who), Bytes(unit));
            let why = format!("which writes are slow points to {by_who}, and how slow they are to {by_much}");
            return Finding::undecided(Q, why).evidence(text);
        }
        let explained = if least == COMBINED { 1.0 } else { 2.0 };
        if found.value.is_some() || best > explained * writes.len() as f64 && !counted {
            return found.evidence(text);
        }
    }
    if explained.hidden {
        let why = "long writes take what the bus takes, and no short one takes longer where it touches a unit more: the card may be faster than the bus";
        return Finding::undecided(Q, why).evidence(text);
    }
    // What is faster is memory, whose pages and pieces are those of the host.
    if at(unit) * 1e3 < FLASH {
        let why = format!(
            "a write of {} takes {} ms, less than flash needs: a cache or the host shows its own units",
            Bytes(unit),
            three(at(unit))
        );
        return Finding::undecided(Q, why).evidence(text);
    }
    if known.several(unit) {
        return Finding::undecided(Q, several(unit)).evidence(text);
    }
    // Where the smallest write takes next to nothing of the time of a unit, no smaller write costs as much as one: what shows is something small
    // that comes once in so many bytes, as the end of an erase block.
    if at(smallest) < LEAST_SHARE * at(unit) && !counted {
        let why = format!("the time of a write rises with its size; what comes at multiples of {} adds little to it", Bytes(unit));
        return Finding::undecided(Q, why).evidence(text);
    }
    if ends_block(unit) {
        return Finding::undecided(Q, end_of_block(unit)).evidence(text);
    }
    if unit == smallest || best > 12.0 * writes.len() as f64 {
        let why = if unit == smallest {
            "the time of a write rises evenly with its size: no unit shows"
        } else {
            "the times of writes follow no unit"
        };
        return Finding::undecided(Q, why).evidence(text);
    }
    if unit >= largest || weights.iter().filter(|w| w.0 >= largest).map(|w| w.1).sum::<f64>() > 0.1 {
        return Finding::undecided(Q, format!("the unit may be {} or more, which was not written", Bytes(largest))).evidence(text);
    }
    let all: Vec<f64> = writes.iter().map(|w| w.us).collect();
    let tick = tick(&all).or_else(|| framed(&all));
    if let Some(tick) = tick.filter(|t| *t > COARSE * at(unit) * 1e3) {
        let why = format!("this host answers every {} ms, and a smaller unit may cost less than that", three(tick / 1e3));
        return Finding::undecided(Q, why).evidence(text);
    }
    let one_answer = |tick: f64| at(unit * 2) * 1e3 - at(unit) * 1e3 < STEP * tick || rises_evenly(&sizes, unit, tick);
    if let Some(tick) = tick.filter(|t| one_answer(*t)) {
        let why = format!("what shows at {} is one answer of a host that answers every {} ms", Bytes(unit), three(tick / 1e3));
        return Finding::undecided(Q, why).evidence(text);
    }
    if p < 0.5 {
        return Finding::undecided(Q, format!("the knee may lie at {} or {}", Bytes(unit), Bytes(weights[1].0))).evidence(text);
    }
    // Half a unit that begins at an odd place looks like a whole one at another; what is gathered follows rules of its own.
    // Nor is a unit sure that explains the times badly.
    let badly = best > 1.5 * writes.len() as f64;
    // A host that cuts requests to that length would look the same, unless reads know the unit.
    let cuts = explained.cuts(unit) && ![known.page, known.access_unit].contains(&Some(unit));
    let most_sure = if badly || cuts || known.placed.is_none() && best < *plainly || gathered == Some(COMBINED) { 0.88 } else { 0.97 };
    // Flash is programmed in whole pages.
    let most_sure = if known.page.is_some_and(|page| !unit.is_multiple_of(page)) { 0.75 } else { most_sure };
    let found = Finding::decided(Q, unit as f64, p.min(most_sure))
        .rivals(weights.iter().skip(1).take(3).map(|&(s, p)| (s as f64, p)).filter(|r| r.1 > 0.005))
        .evidence(text);
    Finding { off_grid: explained.off_grid(unit), ..found }
}

/// Do the times (microseconds) of writes around this size lie within a tick of a straight line?
fn rises_evenly(sizes: &BTreeMap<u64, Vec<f64>>, unit: u64, tick: f64) -> bool {
    let rows: Vec<(f64, f64)> = sizes.range(..=8 * unit).map(|(s, t)| (*s as f64, median(t))).collect();
    let n = rows.len() as f64;
    let (x, y) = rows.iter().fold((0.0, 0.0), |m, r| (m.0 + r.0 / n, m.1 + r.1 / n));
    let (sxx, sxy) = rows.iter().fold((0.0, 0.0), |s, r| (s.0 + (r.0 - x).powi(2), s.1 + (r.0 - x) * (r.1 - y)));
    rows.len() >= 5 && sxx > 0.0 && rows.iter().all(|r| (r.1 - y - sxy / sxx * (r.0 - x)).abs() <= tick)
}

/// From a size on writes take this part of the time of shorter ones, or less: those do something else than fill a unit in part, as rewriting
/// what they fall into. A unit in part costs no more than a whole one.
const FALL: f64 = 3.0;

/// The size from which on writes take so much less than each shorter one does, and how many times as long those take.
fn falls(sizes: &BTreeMap<u64, Vec<f64>>) -> Option<(u64, f64)> {
    let times: Vec<(u64, f64)> = sizes.iter().map(|(s, t)| (*s, median(t))).collect();
    let fall = |i: &usize| {
        let short = times[..*i].iter().map(|t| t.1).fold(f64::INFINITY, f64::min);
        (times[*i].0, short / times[*i].1)
    };
    (1..times.len()).map(|i| fall(&i)).rfind(|(_, times)| *times >= FALL)
}

/// How sure the fit is of a unit, how many times as badly a plainer one fits, and the largest mean square of what it leaves, in deviations of
/// a write, where the fit is taken for small writes that are gathered.
const COUNTED: f64 = 0.95;
const PLAINER: f64 = 1.5;

/// Ticks of a host that are this part of the time of a unit may be all that shows of it.
const COARSE: f64 = 0.2;

/// A step of fewer ticks may be that of a time that rises evenly.
const STEP: f64 = 1.5;

/// Microseconds below which no write of a unit is believed: flash takes 200 and more to program a page.
const FLASH: f64 = 150.0;

/// The smallest write takes this part of the time of a unit, at least: it costs as much, but for the bytes that are moved.
const LEAST_SHARE: f64 = 0.1;

#[cfg(test)]
mod tests;
