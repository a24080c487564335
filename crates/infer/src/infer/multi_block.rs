//! What a write gains when several blocks go in one transaction, and where requests are cut.

use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::pipeline::Analysis;
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{bootstrap_medians, location, mean, mean_within, median, shift, student_975};
use crate::samples::{Multi, SINGLE_ONLY};
use crate::samples::{Run, Sample};
use crate::units::{Bytes, SECTOR, rate, three};
use std::collections::BTreeMap;

/// Judges runs of `multi-block`.
pub struct MultiBlock;

pub(super) const ANALYSES: &[&dyn Analysis] = &[&MultiBlock];

/// Roles of the samples.
pub const OPENING: u8 = 0;
pub const WRITE: u8 = 1;
pub const WHOLE: u8 = 2;
pub const HALF: u8 = 3;

/// Blocks of the transactions that are named in the evidence, beside the longest.
const SHOWN: u64 = 8;

/// Share of the best rate that is enough.
const ENOUGH: f64 = 0.9;

/// Stretches of one run are a little more alike than those of two: the places and what the card had open are the same. Without this, 191 of 208
/// intervals of random cards held what many runs come to.
const BETWEEN_RUNS: f64 = 1.15;

/// ln of a Bayes factor below which evidence is barely worth mentioning: the square root of ten (Jeffreys).
const BARELY: f64 = std::f64::consts::LN_10 / 2.0;

/// A gain closer to 1 than this is none to anybody.
const NEGLIGIBLE: f64 = 0.01;

/// The setting `how` of writes by way of the kernel; others are the place in `Multi::ALL`.
pub const KERNEL: i64 = Multi::ALL.len() as i64;

/// A form of transactions by its number in a cell.
pub fn name(how: i64) -> &'static str {
    usize::try_from(how).ok().and_then(|i| Multi::ALL.get(i)).map_or("by way of the kernel", |m| m.name())
}

impl Analysis for MultiBlock {
    fn name(&self) -> &'static str {
        "multi-block"
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        let t = times(run);
        vec![gain(&t), knee(&t), compare(run, &t, Multi::PreDefined), compare(run, &t, Multi::Acmd23), largest(run)]
    }

    fn figures(&self, run: &Case) -> Vec<Figure> {
        let t = times(run);
        if !took_time(&t) {
            return vec![];
        }
        let series = |y: &dyn Fn(u64, f64) -> f64| {
            (0..=KERNEL)
                .map(|how| Series {
                    name: name(how).into(),
                    points: t.iter().filter(|x| x.0.0 == how).map(|(&(_, n), us)| (n as f64, y(n, median(us)))).collect(),
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
        let fastest = t.values().map(|us| per_second(median(us))).fold(0.0, f64::max);
        let (unit, by) = if fastest >= 1e6 { ("MB/s", 1e6) } else { ("kB/s", 1e3) };
        vec![
            figure("time of one write transaction", "ms", series(&|n, us| n as f64 * us / 1e3)),
            figure("write rate against blocks per transaction", unit, series(&|_, us| per_second(us) / by)),
        ]
    }
}

/// Bytes a second where a block takes `us` microseconds.
fn per_second(us: f64) -> f64 {
    SECTOR as f64 * 1e6 / us
}

/// Why a form could not be sent, where it was tried.
pub fn reason(run: &Run, how: Multi) -> Option<String> {
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

/// The ratio of the times of stretches with its 95 % interval. By ranks: a merge of what was written before, or a collection, makes one
/// stretch in some take many times as long, and six say nothing of how often that comes.
fn of_stretches(a: &[f64], b: &[f64]) -> (f64, [f64; 2]) {
    let ln = |x: &[f64]| x.iter().map(|v| v.ln()).collect::<Vec<_>>();
    match shift(&ln(a), &ln(b)) {
        Some((v, i)) => (v.exp(), i.map(|x| (v + BETWEEN_RUNS * (x - v)).exp())),
        // Two or three stretches, where the time was short.
        None => {
            let error = |x: &[f64]| mean_within(x).1 / mean(x);
            let (v, e) = ((mean(a) / mean(b)).ln(), error(a).hypot(error(b)));
            (v.exp(), [v - e, v + e].map(f64::exp))
        }
    }
}

/// The geometric mean of such ratios with its 95 % interval.
fn mean_ratio(pairs: &[(&[f64], &[f64])]) -> (f64, [f64; 2]) {
    let k = pairs.len() as f64;
    let all: Vec<(f64, [f64; 2])> = pairs.iter().map(|(a, b)| of_stretches(a, b)).collect();
    let v = all.iter().map(|r| r.0.ln()).sum::<f64>() / k;
    // Of one ratio few stretches reach as far as Student's t; the sum of many is normal.
    let less = |p: &(&[f64], &[f64])| if pairs.len() > 1 { 1.96 / student_975(p.0.len() + p.1.len() - 1) } else { 1.0 };
    let off = |side: usize| all.iter().zip(pairs).map(|(r, p)| ((r.1[side] / r.0).ln() * less(p)).powi(2)).sum::<f64>().sqrt() / k;
    (v.exp(), [(v - off(0)).exp(), (v + off(1)).exp()])
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
        "{} as {}, {} {} with {} in one transaction: the middle one of {} equal stretches each",
        rate(per_second(median(one))),
        Multi::SingleBlocks.name(),
        rate(per_second(median(many))),
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
    let groups: Vec<Vec<f64>> = points.iter().map(|p| p.1.clone()).collect();
    let at = |m: &[f64]| {
        let best = m.iter().copied().fold(f64::INFINITY, f64::min);
        let i = m.iter().position(|&us| us * ENOUGH <= best).unwrap_or(m.len() - 1);
        (points[i].0 * SECTOR) as f64
    };
    let draws: Vec<f64> = bootstrap_medians(&groups).iter().map(|m| at(m)).collect();
    let mut share: BTreeMap<u64, f64> = BTreeMap::new();
    draws.iter().for_each(|&d| *share.entry(d as u64).or_default() += 1.0 / draws.len() as f64);
    let mut all: Vec<(f64, f64)> = share.into_iter().map(|(k, p)| (k as f64, p)).collect();
    nandscope_stats::descending(&mut all, |a| a.1);
    let (value, p) = all[0];
    let last = points[points.len() - 1];
    let mut shown = vec![points[0], last];
    shown.extend(points.iter().copied().find(|p| (p.0 * SECTOR) as f64 == value));
    nandscope_stats::sort_by_key(&mut shown, |p| p.0);
    shown.dedup_by_key(|p| p.0);
    let list: Vec<String> = shown.iter().map(|p| format!("{} with {}", rate(per_second(median(p.1))), Bytes(p.0 * SECTOR))).collect();
    let text = format!("{}: {}", name(form), list.join(", "));
    if value as u64 == last.0 * SECTOR {
        return Finding::at_least(Q, value, p.min(0.95), "the rate still rises at the longest transaction").evidence(text);
    }
    if p < 0.5 {
        return Finding::undecided(Q, format!("it may lie at {} or {}", Bytes(value as u64), Bytes(all[1].0 as u64))).evidence(text);
    }
    Finding::decided(Q, value, p.min(0.95)).rivals(all.into_iter().skip(1).take(3)).evidence(text)
}

/// A form with something announced against the open-ended one: the geometric mean over the lengths both were written with. Where
/// the card erases ahead the gain grows with the length, and a mean says nothing of any: then it is that of the longest.
fn compare<'a>(run: &Run, t: &'a Times, how: Multi) -> Finding {
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
    let of = |p: &(u64, &'a Vec<f64>, &'a Vec<f64>)| (p.1.as_slice(), p.2.as_slice());
    let each: Vec<(u64, f64, [f64; 2])> = pairs.iter().map(|p| (p.0, mean_ratio(&[of(p)]))).map(|(n, (r, i))| (n, r, i)).collect();
    let (least, most) = (each.iter().min_by(|a, b| a.1.total_cmp(&b.1)), each.iter().max_by(|a, b| a.1.total_cmp(&b.1)));
    let differ = least.zip(most).filter(|(a, b)| b.1 > 1.2 * a.1 && a.2[1] < b.2[0]);
    let last = pairs[pairs.len() - 1];
    let grows = differ.is_some_and(|d| d.1.0 == last.0);
    let (value, interval) = mean_ratio(&pairs.iter().filter(|p| !grows || p.0 == last.0).map(of).collect::<Vec<_>>());
    let mut f = ratio(quantity, value, interval);
    if let Some((a, b)) = differ {
        let said = |x: &(u64, f64, [f64; 2])| format!("{}x with {}", three(x.1), Bytes(x.0 * SECTOR));
        let which = if grows { format!("that of {}", Bytes(last.0 * SECTOR)) } else { format!("the mean of {} lengths", pairs.len()) };
        f = f.evidence(format!("it depends on the length: {} and {}; the figure is {which}", said(a), said(b)));
    }
    for (n, open, announced) in pairs.iter().filter(|p| p.0 == SHOWN || p.0 == pairs[pairs.len() - 1].0) {
        let ms = |us: &[f64]| median(us) * *n as f64 / 1e3;
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
    let mut data = data;
    // Halves below what the card programs at once cost more than a command: then the first lengths save more than the others, which
    // are not cut all the same. What each of the others saves is a command, or the time of the host: the times do not say, and nothing does where no limit is declared.
    let two_levels = |j: usize| {
        let (one, more) = points.split_at(j);
        let (saved, rest) = (mean(one), mean(more));
        if saved > 0.0 { ln_t(one, saved) + ln_t(more, rest.clamp(0.05 * saved, saved)) - 1.0 } else { f64::NEG_INFINITY }
    };
    let uncut = (1..points.len()).map(two_levels).fold(f64::NEG_INFINITY, f64::max);
    if let Some(last) = data.last_mut().filter(|_| declared == 0) {
        *last = last.max(uncut);
    }
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
