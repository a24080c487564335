//! What does a write gain when several blocks go in one transaction, and does announcing their number help? (C22 to C24)
//!
//! A card that gets single blocks (CMD24) pays for each what it pays for a transaction: command, busy time, and often the
//! rewriting of a page. A transaction of many blocks pays once. It can be open (CMD25 ... CMD12), its length announced (CMD23),
//! or, on SD, the blocks announced for erasing ahead (ACMD23). The same data are written in each of these forms, and by way of
//! the kernel, in linear order over equal stretches of an AU; the first write of a trial opens the AU and is left out. A rate is all
//! the bytes of the stretches by all their time: a card that rewrites now and then has writes of two kinds, whose median means nothing.
//!
//! The largest request that reaches the medium (C23) is looked for with paired writes: one of some length against its two
//! halves. While the request goes in one piece the halves cost one command more; once it is cut, they cost the same.
//!
//! What fools it: kernels that cannot send a form (said, with the reason), cards that combine small linear writes (then the
//! gain is smaller, and true), a split in a USB reader, which looks the same as one in the kernel.
//!
//! Sources: the page on write performance by ChaN (figure f6), SD Physical Layer 4.3.4 and 4.13.

use super::{About, Bench, Experiment, Figure, Series, Setup};
use crate::device::DeviceError;
use crate::device::mmc::{Multi, SINGLE_ONLY};
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{location, mean, median};
use crate::samples::{Cell, Run, Sample};
use crate::units::{Bytes, KIB, MIB, SECTOR, rate, three};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use std::collections::BTreeMap;

pub struct MultiBlock;

static ABOUT: About = About {
    name: "multi-block",
    question: "What does a write gain when several blocks go in one transaction?",
    method: "the same linear data as single blocks, open-ended, pre-defined, pre-erased, and by way of the kernel; whole writes against their halves",
    writes: true,
    answers: &[
        Quantity::MultiBlockGain,
        Quantity::MultiBlockKnee,
        Quantity::PreDefinedGain,
        Quantity::PreEraseGain,
        Quantity::LargestRequest,
    ],
    roles: &["opening", "write", "whole", "half"],
    covers: "C22, C23, C24",
};

const OPENING: u8 = 0;
const WRITE: u8 = 1;
const WHOLE: u8 = 2;
const HALF: u8 = 3;

/// Most blocks written one by one: their cost does not depend on how many follow.
const MOST_SINGLE: u64 = 64;
/// Most blocks of a transaction.
const MOST: u64 = 1024;
/// Every length is written over a stretch of so many bytes, so that what a card does now and then is in all of them alike: the
/// longest transaction, or less where writes are slow.
const STRETCH: [u64; 2] = [32 * KIB, MOST * SECTOR];
/// Seconds that one stretch of the slowest writes may take.
const SECONDS: f64 = 8.0;
/// Rounds of all lengths that the time of a run must do for: less than these give no interval worth reading.
const ROUNDS: f64 = 3.0;
/// Share of the time that the stretches may plan with; the rest is for writes in halves and for opening AUs.
const PLANNED: f64 = 0.7;
/// Trials of a stretch.
const TRIALS: u32 = 6;
/// Blocks of the transactions that are named in the evidence, beside the longest.
const SHOWN: u64 = 8;
/// Share of the best rate that is enough.
const ENOUGH: f64 = 0.9;
/// ln of a Bayes factor below which evidence is barely worth mentioning: the square root of ten (Jeffreys).
const BARELY: f64 = std::f64::consts::LN_10 / 2.0;
/// A gain closer to 1 than this is none to anybody.
const NEGLIGIBLE: f64 = 0.01;
/// The setting `how` of writes by way of the kernel; others are the place in `Multi::ALL`.
const KERNEL: i64 = Multi::ALL.len() as i64;

fn form(cell: &Cell) -> Option<Multi> {
    Multi::ALL.get(usize::try_from(cell.get("how")).ok()?).copied()
}

fn name(how: i64) -> &'static str {
    usize::try_from(how).ok().and_then(|i| Multi::ALL.get(i)).map_or("by way of the kernel", |m| m.name())
}

fn transactions(how: i64, blocks: u64) -> Cell {
    Cell::new(format!("{}, {}", name(how), Bytes(blocks * SECTOR)), &[("how", how), ("blocks", blocks as i64)])
}

impl Experiment for MultiBlock {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        // The slowest writes there are find out what can be sent at all, and how long it takes.
        let least = (setup.geometry.sector / SECTOR).max(1);
        (0..=KERNEL)
            .map(|how| {
                let mut cell = transactions(how, least);
                cell.set.insert("ask".into(), 1);
                cell.set.insert("max_request".into(), setup.geometry.max_request.unwrap_or(0) as i64);
                cell
            })
            .collect()
    }

    fn more(&self, run: &Run) -> Vec<Cell> {
        // One further round, for the forms that could be sent.
        if run.cells.len() > ABOUT_CELLS {
            return vec![];
        }
        let (sector, start, end) = (run.setting("sector").unwrap_or(SECTOR), run.setting("start"), run.setting("end"));
        let room = end.unwrap_or(0).saturating_sub(start.unwrap_or(0)) / 4;
        let declared = run.cells.first().map_or(0, |c| c.bytes("max_request"));
        let stretch = stretch(run, room);
        let mut out = vec![];
        for cell in run.cells.iter().filter(|c| run.of(c.id).next().is_some()) {
            let how = cell.get("how");
            let most = if form(cell) == Some(Multi::SingleBlocks) { MOST_SINGLE } else { MOST };
            for blocks in (0..=10).map(|k| 1 << k).filter(|&n| n <= most && n * SECTOR <= stretch) {
                if (blocks * SECTOR).is_multiple_of(sector) {
                    let mut cell = transactions(how, blocks);
                    cell.set.insert("stretch".into(), stretch as i64);
                    out.push(cell);
                }
            }
        }
        let top = if declared == 0 { MIB } else { (2 * declared.next_power_of_two()).min(2 * MIB) };
        let mut size = 64 * KIB.max(sector / 32);
        while size <= top.min(room / 3) {
            out.push(Cell::new(format!("{} whole and in halves", Bytes(size)), &[("how", KERNEL), ("size", size as i64)]));
            size *= 2;
        }
        out
    }

    fn wants(&self, cell: &Cell, run: &Run) -> bool {
        let refused = form(cell).is_some_and(|m| reason(run, m).is_some());
        let trials = match () {
            _ if cell.get("size") > 0 => 8,
            _ if cell.get("ask") > 0 => 1,
            _ => TRIALS,
        };
        !refused && run.of(cell.id).map(|s| s.trial).max().is_none_or(|t| t + 1 < trials)
    }

    fn trial(&self, cell: &Cell, _n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let size = cell.bytes("size");
        if size > 0 {
            return halves(size, b);
        }
        let len = cell.bytes("blocks") * SECTOR;
        let ask = cell.get("ask") > 0;
        let stretch = if ask { STRETCH[0] } else { cell.bytes("stretch") };
        // All begin at the same place of an AU, which the first write opens.
        let opening = (stretch / 8).next_multiple_of(b.geometry().sector);
        let at = place(b, opening + stretch);
        b.write(OPENING, at, opening)?;
        b.write_as(form(cell))?;
        let (mut next, end) = (at + opening, at + opening + stretch);
        let done = loop {
            if next >= end {
                break Ok(());
            }
            let n = len.min(end - next);
            if let Err(e) = b.write(WRITE, next, n) {
                break Err(e);
            }
            next += n;
        };
        // Whatever happened, the next trial writes its own way.
        b.write_as(None)?;
        done
    }

    fn infer(&self, run: &Run) -> Vec<Finding> {
        let t = times(run);
        vec![gain(&t), knee(&t), compare(run, &t, Multi::PreDefined), compare(run, &t, Multi::Acmd23), largest(run)]
    }

    fn figures(&self, run: &Run) -> Vec<Figure> {
        let t = times(run);
        if !took_time(&t) {
            return vec![];
        }
        let series = |y: &dyn Fn(u64, f64) -> f64| {
            (0..=KERNEL)
                .map(|how| Series {
                    name: name(how).into(),
                    points: t.iter().filter(|x| x.0.0 == how).map(|(&(_, n), us)| (n as f64, y(n, mean(us)))).collect(),
                })
                .filter(|s| !s.points.is_empty())
                .collect()
        };
        let figure = |title: &str, y: &str, series| Figure {
            title: title.into(),
            x: "blocks of 512 B".into(),
            y: y.into(),
            log_x: true,
            log_y: true,
            series,
        };
        let fastest = t.values().map(|us| per_second(mean(us))).fold(0.0, f64::max);
        let (unit, by) = if fastest >= 1e6 { ("MB/s", 1e6) } else { ("kB/s", 1e3) };
        vec![
            figure("time of one write transaction", "ms", series(&|n, us| n as f64 * us / 1e3)),
            figure("write rate against blocks per transaction", unit, series(&|_, us| per_second(us) / by)),
        ]
    }
}

/// Cells of the first round: one for each form and one for the kernel.
const ABOUT_CELLS: usize = Multi::ALL.len() + 1;

/// Bytes a second where a block takes `us` microseconds.
fn per_second(us: f64) -> f64 {
    SECTOR as f64 * 1e6 / us
}

/// Bytes that every length is written over: what the slowest form writes in [`SECONDS`] and all forms and lengths together in the time
/// of the run, in whole erase blocks where they are small enough.
fn stretch(run: &Run, room: u64) -> u64 {
    // µs a byte of the shortest writes of each form that could be sent.
    let shortest = |c: &Cell| {
        let (mut len, mut us) = (0, 0.0);
        run.of(c.id).filter(|s| s.role == WRITE).for_each(|s| (len, us) = (len + s.len, us + s.took.micros()));
        (len > 0).then(|| (form(c), us / len as f64))
    };
    let all: Vec<_> = run.cells.iter().filter_map(shortest).collect();
    let slowest = all.iter().map(|f| f.1).fold(0.0, f64::max);
    let fits = if slowest > 0.0 { (SECONDS * 1e6 / slowest) as u64 } else { u64::MAX };
    // Single blocks cost the same in each of their lengths; of transactions each length takes about half the time of the one before.
    let lengths = f64::from(MOST_SINGLE.ilog2() + 1);
    let round: f64 = all.iter().map(|(how, us)| us * if *how == Some(Multi::SingleBlocks) { lengths } else { 2.0 }).sum();
    let spent: f64 = run.samples.iter().map(|s| s.took.micros()).sum();
    let left = run.setting("time_ms").map_or(f64::INFINITY, |ms| ms as f64 * 1e3 - spent).max(0.0);
    let fits = if round > 0.0 { fits.min((PLANNED * left / (ROUNDS * round)) as u64) } else { fits };
    let most = fits.clamp(STRETCH[0], STRETCH[1]).min(room / 2).max(SECTOR);
    let most = 1 << most.ilog2();
    match run.setting("erase_block") {
        Some(e) if e > 0 && e <= most => most / e * e,
        _ => most,
    }
}

/// A place for `need` bytes at the start of an AU in the upper three quarters of the region: the start may be a FAT zone.
fn place(b: &mut Bench, need: u64) -> u64 {
    let unit = b.run.setting("erase_block").filter(|&e| e >= 64 * KIB).unwrap_or(4 * MIB);
    let phase = b.run.setting("erase_block_offset").unwrap_or(0) % unit;
    let (start, end) = (b.region.start, b.region.end);
    let first = start.saturating_sub(phase).next_multiple_of(unit) + phase;
    let room = end.saturating_sub(first).saturating_sub(need) / unit;
    let at = first + (room / 4 + b.below(room - room / 4)) * unit;
    if at + need <= end { at } else { start }
}

fn halves(size: u64, b: &mut Bench) -> Result<(), DeviceError> {
    let at = place(b, 3 * size);
    b.write(OPENING, at, size)?;
    // One after the other in linear order; which goes first is drawn.
    let whole_first = b.below(2) == 0;
    let (whole, half) = if whole_first { (at + size, at + 2 * size) } else { (at + 2 * size, at + size) };
    for whole_now in [whole_first, !whole_first] {
        if whole_now {
            b.write(WHOLE, whole, size)?;
        } else {
            b.write(HALF, half, size / 2)?;
            b.write(HALF, half + size / 2, size / 2)?;
        }
    }
    Ok(())
}

/// Why a form could not be sent, where it was tried.
fn reason(run: &Run, how: Multi) -> Option<String> {
    run.faults.iter().find_map(|f| f.split_once(how.name()).map(|(_, why)| why.trim_start_matches(": ").to_string()))
}

type Times = BTreeMap<(i64, u64), Vec<f64>>;

/// Microseconds a block by form and blocks of a transaction, one value a stretch: all its time by all its bytes, because of
/// writes that are collected one pays for all. The writes that open an AU are left out.
fn times(run: &Run) -> Times {
    let mut out = Times::new();
    for cell in run.cells.iter().filter(|c| c.get("blocks") > 0 && c.get("ask") == 0) {
        let of = |t: &[&Sample]| -> Option<f64> {
            let writes = t.iter().filter(|s| s.role == WRITE);
            let (len, us) = writes.fold((0, 0.0), |(len, us), s| (len + s.len, us + s.took.micros()));
            // A stretch that was cut lacks what comes at its end.
            (len > 0 && (len == cell.bytes("stretch"))).then(|| us * SECTOR as f64 / len as f64)
        };
        let all: Vec<f64> = run.trials(cell.id).iter().filter_map(|t| of(t)).collect();
        if all.len() >= 2 {
            out.insert((cell.get("how"), cell.bytes("blocks")), all);
        }
    }
    out
}

fn longest(t: &Times, how: i64) -> Option<(u64, &Vec<f64>)> {
    t.range((how, 0)..(how + 1, 0)).next_back().map(|((_, n), us)| (*n, us))
}

/// The form that stands for long transactions: the first raw one that could be sent, pre-defined before open-ended, else the
/// kernel's. Not the fastest: the best of several noisy rates is too good.
fn long_form(t: &Times) -> Option<i64> {
    let could = |how: &i64| longest(t, *how).is_some();
    [code(Multi::PreDefined), code(Multi::OpenEnded), code(Multi::Acmd23), KERNEL].into_iter().find(could)
}

fn code(how: Multi) -> i64 {
    Multi::ALL.iter().position(|&m| m == how).unwrap_or(0) as i64
}

/// The standard error of ln of a mean, from how stretches differ.
fn ln_error(x: &[f64]) -> f64 {
    let (m, n) = (mean(x), x.len() as f64);
    let variance = x.iter().map(|v| (v - m).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    if m > 0.0 { (variance / n).sqrt() / m } else { f64::INFINITY }
}

/// Student's t at 97.5 % for a mean of so many stretches.
fn student(n: usize) -> f64 {
    const T: [f64; 9] = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26];
    T.get(n.saturating_sub(2)).copied().unwrap_or(2.2)
}

/// The geometric mean of ratios of means with its 95 % interval.
fn mean_ratio(pairs: &[(&[f64], &[f64])]) -> (f64, [f64; 2]) {
    let k = pairs.len() as f64;
    let ln = pairs.iter().map(|(a, b)| (mean(a) / mean(b)).ln()).sum::<f64>() / k;
    let error = pairs.iter().map(|(a, b)| ln_error(a).hypot(ln_error(b)).powi(2)).sum::<f64>().sqrt() / k;
    let t = pairs.iter().map(|(a, b)| student(a.len().min(b.len()))).fold(0.0, f64::max);
    (ln.exp(), [(ln - t * error).exp(), (ln + t * error).exp()])
}

/// Draws of the means of several groups, with a fixed generator.
fn draws(groups: &[&[f64]]) -> Vec<Vec<f64>> {
    let mut rng = Pcg64Mcg::new(0x6d75_6c74_695f_626c);
    let mut normal = || (0..12).map(|_| rng.next_u64() as f64 / u64::MAX as f64).sum::<f64>() - 6.0;
    (0..400).map(|_| groups.iter().map(|g| mean(g) * (normal() * ln_error(g) * student(g.len()) / 1.96).exp()).collect()).collect()
}

/// Whether the writes took any time at all: a target that answers at once has no rates.
fn took_time(t: &Times) -> bool {
    t.values().flatten().all(|us| *us > 0.0)
}

const AT_ONCE: &str = "writes take no time on this target";

fn ratio(quantity: Quantity, value: f64, interval: [f64; 2]) -> Finding {
    Finding { interval: Some(interval), ..Finding::decided(quantity, value, 0.95) }
}

fn gain(t: &Times) -> Finding {
    const Q: Quantity = Quantity::MultiBlockGain;
    let Some(mut form) = long_form(t) else { return Finding::undecided(Q, "no write transaction could be timed") };
    if !took_time(t) {
        return Finding::undecided(Q, AT_ONCE);
    }
    let first = |how: i64| t.range((how, 0)..(how + 1, 0)).next().map(|((_, n), us)| (*n, us));
    // The same way on both sides: raw against raw, kernel against kernel.
    let mut single = longest(t, code(Multi::SingleBlocks));
    if form == KERNEL || single.is_none() {
        (form, single) = (KERNEL, first(KERNEL));
    }
    let (Some((a, one)), Some((n, many))) = (single, longest(t, form)) else {
        return Finding::undecided(Q, "single blocks could not be timed");
    };
    if form == KERNEL && (a > 1 || n == a) {
        return Finding::undecided(Q, "this target has no writes of one block to compare with");
    }
    let (value, interval) = mean_ratio(&[(one, many)]);
    let f = ratio(Q, value, interval).evidence(format!(
        "{} as {}, {} {} with {} in one transaction: all the bytes of {} equal stretches by all their time",
        rate(per_second(mean(one))),
        Multi::SingleBlocks.name(),
        rate(per_second(mean(many))),
        name(form),
        Bytes(n * SECTOR),
        one.len()
    ));
    let f = if interval[0] <= 1.0 + NEGLIGIBLE && interval[1] >= 1.0 - NEGLIGIBLE { f.evidence("no difference shows") } else { f };
    if form == KERNEL { f.caveat("by way of the kernel, whose own time for a request is part of it") } else { f }
}

fn knee(t: &Times) -> Finding {
    const Q: Quantity = Quantity::MultiBlockKnee;
    let Some(form) = long_form(t) else { return Finding::undecided(Q, "no write transaction could be timed") };
    let points: Vec<(u64, &Vec<f64>)> = t.range((form, 0)..(form + 1, 0)).map(|((_, n), us)| (*n, us)).collect();
    if points.len() < 4 {
        return Finding::undecided(Q, "too few lengths were written");
    }
    if !took_time(t) {
        return Finding::undecided(Q, AT_ONCE);
    }
    let groups: Vec<&[f64]> = points.iter().map(|p| p.1.as_slice()).collect();
    let at = |m: &[f64]| {
        let best = m.iter().copied().fold(f64::INFINITY, f64::min);
        let i = m.iter().position(|&us| us * ENOUGH <= best).unwrap_or(m.len() - 1);
        (points[i].0 * SECTOR) as f64
    };
    let draws: Vec<f64> = draws(&groups).iter().map(|m| at(m)).collect();
    let mut share: BTreeMap<u64, f64> = BTreeMap::new();
    draws.iter().for_each(|&d| *share.entry(d as u64).or_default() += 1.0 / draws.len() as f64);
    let mut all: Vec<(f64, f64)> = share.into_iter().map(|(k, p)| (k as f64, p)).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (value, p) = all[0];
    let last = points[points.len() - 1];
    let mut shown = vec![points[0], last];
    shown.extend(points.iter().copied().find(|p| (p.0 * SECTOR) as f64 == value));
    shown.sort_by_key(|p| p.0);
    shown.dedup_by_key(|p| p.0);
    let list: Vec<String> = shown.iter().map(|p| format!("{} with {}", rate(per_second(mean(p.1))), Bytes(p.0 * SECTOR))).collect();
    let text = format!("{}: {}", name(form), list.join(", "));
    if value as u64 == last.0 * SECTOR {
        return Finding::at_least(Q, value, p.min(0.95), "the rate still rises at the longest transaction").evidence(text);
    }
    if p < 0.5 {
        return Finding::undecided(Q, format!("it may lie at {} or {}", Bytes(value as u64), Bytes(all[1].0 as u64))).evidence(text);
    }
    Finding::decided(Q, value, p.min(0.95)).rivals(all.into_iter().skip(1).take(3)).evidence(text)
}

/// A form with something announced against the open-ended one: the geometric mean over the lengths both were written with.
fn compare(run: &Run, t: &Times, how: Multi) -> Finding {
    let quantity = if how == Multi::PreDefined { Quantity::PreDefinedGain } else { Quantity::PreEraseGain };
    for needed in [how, Multi::OpenEnded] {
        if let Some(why) = reason(run, needed) {
            return Finding::undecided(quantity, format!("{}: {why}", needed.name()));
        }
    }
    let pairs: Vec<(u64, &Vec<f64>, &Vec<f64>)> = t
        .range((code(how), 0)..(code(how) + 1, 0))
        .filter_map(|(&(_, n), announced)| Some((n, t.get(&(code(Multi::OpenEnded), n))?, announced)))
        .collect();
    if pairs.is_empty() {
        return Finding::undecided(quantity, "the forms were not both written");
    }
    if !took_time(t) {
        return Finding::undecided(quantity, AT_ONCE);
    }
    let (value, interval) = mean_ratio(&pairs.iter().map(|p| (p.1.as_slice(), p.2.as_slice())).collect::<Vec<_>>());
    let mut f = ratio(quantity, value, interval);
    for (n, open, announced) in pairs.iter().filter(|p| p.0 == SHOWN || p.0 == pairs[pairs.len() - 1].0) {
        let ms = |us: &[f64]| mean(us) * *n as f64 / 1e3;
        let (a, b) = (ms(open), ms(announced));
        f = f.evidence(format!("{}: {} ms {}, {} ms {}", Bytes(n * SECTOR), three(a), Multi::OpenEnded.name(), three(b), how.name()));
    }
    if interval[0] <= 1.0 + NEGLIGIBLE && interval[1] >= 1.0 - NEGLIGIBLE { f.evidence("no difference shows") } else { f }
}

/// Where whole writes stop saving a command against their halves.
fn largest(run: &Run) -> Finding {
    const Q: Quantity = Quantity::LargestRequest;
    let declared = run.cells.first().map_or(0, |c| c.bytes("max_request"));
    if run.faults.iter().any(|f| f.contains(SINGLE_ONLY)) {
        let text = "the host sends single blocks only, whatever is handed to it";
        return Finding::decided(Q, SECTOR as f64, 0.97).evidence(text);
    }
    // Bytes, what the halves cost more in µs, its error.
    let (mut points, mut wholes): (Vec<(u64, f64, f64)>, Vec<f64>) = (vec![], vec![]);
    for cell in run.cells.iter().filter(|c| c.get("size") > 0) {
        let sum = |t: &[&crate::samples::Sample], role| t.iter().filter(|s| s.role == role).map(|s| s.took.micros()).sum::<f64>();
        let trials = run.trials(cell.id);
        let full: Vec<&Vec<_>> = trials.iter().filter(|t| t.len() == 4).collect();
        let whole: Vec<f64> = full.iter().map(|t| sum(t, WHOLE)).collect();
        let more: Vec<f64> = full.iter().map(|t| sum(t, HALF) - sum(t, WHOLE)).collect();
        if more.len() >= 4 {
            let e = location(&more);
            points.push((cell.bytes("size"), e.value, e.error));
            wholes.push(median(&whole));
        }
    }
    // The scatter of eight differences is itself uncertain: none may be better than the usual one, relative to the time taken.
    if wholes.iter().any(|w| *w <= 0.0) {
        return Finding::undecided(Q, AT_ONCE);
    }
    let usual = median(&points.iter().zip(&wholes).map(|(p, w)| p.2 / w).collect::<Vec<_>>()).max(0.003);
    points.iter_mut().zip(&wholes).for_each(|(p, w)| p.2 = p.2.max(usual * w));
    points.sort_unstable_by_key(|p| p.0);
    if points.len() < 3 {
        return Finding::undecided(Q, "too few lengths were written whole and in halves");
    }
    let mean = |p: &[(u64, f64, f64)]| {
        let w: f64 = p.iter().map(|x| x.2.powi(-2)).sum();
        p.iter().map(|x| x.1 * x.2.powi(-2)).sum::<f64>() / w
    };
    // Student's distribution with the seven degrees of freedom of eight trials.
    let ln_t = |p: &[(u64, f64, f64)], level: f64| p.iter().map(|x| -4.0 * (((x.1 - level) / x.2).powi(2) / 7.0).ln_1p()).sum::<f64>();
    // The first k lengths go in one piece and save a command, the others next to nothing; k = 0: no command shows at all.
    let data: Vec<f64> = (0..=points.len())
        .map(|k| {
            let (one, cut) = points.split_at(k);
            let saved = if one.is_empty() { 0.0 } else { mean(one) };
            let rest = if cut.is_empty() { 0.0 } else { mean(cut).clamp(-0.1 * saved.max(0.0), 0.4 * saved.max(0.0)) };
            let possible = one.is_empty() || saved > 0.0;
            if possible { ln_t(one, saved) + ln_t(cut, rest) - if one.is_empty() { 0.0 } else { 1.0 } } else { f64::NEG_INFINITY }
        })
        .collect();
    // The kernel cuts at what it declares, and never sends more; only a reader may cut earlier.
    let prior = |k: usize| match declared {
        0 => 0.0,
        d if k > 0 && points[k - 1].0 > d => -6.0,
        d if k < points.len() && points[k].0 > d => 1.5,
        _ => 0.0,
    };
    let ln: Vec<f64> = data.iter().enumerate().map(|(k, l)| l + prior(k)).collect();
    let top = ln.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = ln.iter().map(|l| (l - top).exp()).sum();
    let (k, p) = ln.iter().enumerate().map(|(k, l)| (k, (l - top).exp() / sum)).max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0));
    let said =
        if declared > 0 { format!("the kernel sends up to {} in one request", Bytes(declared)) } else { "no limit is declared".into() };
    let list: Vec<String> = points.iter().map(|x| format!("{} {} µs", Bytes(x.0), three(x.1))).collect();
    let text = format!("two halves cost more than the whole by: {}", list.join(", "));
    if k == 0 || p < 0.6 {
        let why = if k == 0 { "a further command costs too little to be seen" } else { "the lengths do not agree on where writes are cut" };
        return Finding::undecided(Q, why).evidence(text).evidence(said);
    }
    let whole = points[k - 1].0;
    if k == points.len() {
        return Finding::at_least(Q, whole as f64, p.min(0.95), "no write was cut").evidence(text).evidence(said);
    }
    let agrees = declared >= whole && declared < points[k].0;
    let value = if agrees { declared } else { whole };
    let mut f = Finding::decided(Q, value as f64, p.min(0.97)).evidence(text).evidence(said);
    if data[k] < data[points.len()] + BARELY {
        f = f.caveat("the times alone show no cut: it is what the kernel declares");
    }
    match (agrees, declared) {
        (true, _) => f,
        (false, 0) => f.caveat(format!("writes of {} are cut; lengths between were not tried", Bytes(points[k].0))),
        (false, _) => {
            f.caveat(format!("what is declared was not found: writes of {} are already cut on the way to the card", Bytes(points[k].0)))
        }
    }
}

#[cfg(test)]
#[path = "multi_block_tests.rs"]
mod tests;
