//! How many AUs can be written in turn without paying for closing one each time? (F14-F19, Q8-Q13)
//!
//! A card keeps a few AUs open and must copy the rest of one to close it. N AUs are written in turn, one small write each,
//! in an order that changes every round. N grows from one, keeping the AUs that are open already, until rounds stay slow;
//! then it is bisected among the AUs written last, and both sides of the cut are tried again in other AUs. Whatever the
//! card throws out when its table is full, rounds over more AUs than fit go on finding closed ones.
//!
//! What fools it: stalls (they do not come in every round), writes larger than a quarter AU, which hide the cost (Q12: small
//! ones are used), a replacement that is not LRU (Q11: no monotony assumed, the order is random), AUs that share an erase
//! block (spacing of several), a start that is a FAT zone (left out), AUs left over from earlier that are thrown out only
//! by and by (later rounds count).

use super::slots::{Slots, most_tried};
use super::{About, Bench, Experiment, Figure, Series, Setup};
use crate::device::DeviceError;
use crate::finding::{Finding, Findings, Quantity};
use crate::infer::open::{Visits, line, log_odds, posterior};
use crate::infer::stats::{bootstrap_median, median};
use crate::samples::{Cell, Run, Sample};
use crate::units::{Bytes, KIB, MIB, three};

/// The search in linear order, or in random order inside each AU.
pub struct OpenAu<const RANDOM: bool>;

static LINEAR_ABOUT: About = About {
    name: "open-au-linear",
    question: "How many AUs can be written in turn, each in linear order?",
    method: "N AUs in turn, one small write each, order changed every round; N grows until rounds stay slow, then is bisected",
    writes: true,
    answers: &[Quantity::OpenAusLinear, Quantity::CloseCostMs, Quantity::Mapping, Quantity::WriteCache],
    roles: &["open", "round 1", "round 2", "round 3", "round 4"],
    covers: "F14-F19, Q2, Q4, Q8-Q13",
};

static RANDOM_ABOUT: About = About {
    name: "open-au-random",
    question: "How many AUs can be written in turn, each in random order?",
    method: "as open-au-linear, with random positions inside each AU",
    answers: &[Quantity::OpenAusRandom, Quantity::CloseCostMs, Quantity::Mapping, Quantity::WriteCache],
    ..LINEAR_COPY
};
const LINEAR_COPY: About = About {
    name: "",
    question: "",
    method: "",
    writes: true,
    answers: &[],
    roles: &["open", "round 1", "round 2", "round 3", "round 4"],
    covers: "F14-F19, Q2, Q4, Q8-Q13, Q16",
};

const ROUNDS: u8 = 4;
/// Share of the cards without a limit that are mapped by page; the others hide it behind a cache, or keep more AUs open than
/// were tried. Both orders say so together: two thirds in all.
const NO_LIMIT_BY_PAGE: f64 = 0.6;
/// What is left of the chance that a cache hides the limit, once half a gigabyte was written and none showed.
const NO_CACHE_FOUND: f64 = 0.7;
/// Below this, a cut is not told: of a hundred random cards, half of such answers were wrong.
const SAID: f64 = 0.6;
/// Log odds at which a count is settled.
const SETTLED: f64 = 3.5;

impl<const RANDOM: bool> Experiment for OpenAu<RANDOM> {
    fn about(&self) -> &'static About {
        if RANDOM { &RANDOM_ABOUT } else { &LINEAR_ABOUT }
    }
    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        first_cells(setup)
    }
    fn trial(&self, cell: &Cell, n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        visit(cell, n, b)
    }
    fn wants(&self, cell: &Cell, run: &Run) -> bool {
        wants(cell, run)
    }
    fn more(&self, run: &Run) -> Vec<Cell> {
        more(run, RANDOM)
    }
    fn again(&self, run: &Run, known: &Findings) -> bool {
        // AUs were guessed, and one may have counted for two.
        let guessed = run.setting("erase_block").is_none()
            && known.value(Quantity::EraseBlock, super::SURE).is_some()
            && known.get(Quantity::EraseBlockOffset).is_some_and(|f| f.value.is_some() || f.interval.is_some());
        // A cache that may have hidden the limit is full now.
        guessed || known.get(Quantity::WriteCache).is_some_and(|f| f.interval.is_some())
    }
    fn infer(&self, run: &Run) -> Vec<Finding> {
        judge(run, RANDOM)
    }
    fn figures(&self, run: &Run) -> Vec<Figure> {
        figures(run, RANDOM)
    }
}

/// The order of the last cell of a run: one AU in linear order once more.
const CONTROL: i64 = 2;

/// `fresh`: in AUs not used before.
fn cell(n: i64, random: bool, fresh: bool) -> Cell {
    let order = if random { "random" } else { "linear" };
    let other = if fresh { ", other AUs" } else { "" };
    Cell::new(format!("{n} AUs, {order}{other}"), &[("n", n), ("random", random as i64), ("fresh", fresh as i64)])
}

fn first_cells(setup: &Setup) -> Vec<Cell> {
    let settings = setup.setting();
    if Slots::plan(&|k| settings.get(k).map(|&v| v as u64)).is_none() {
        return vec![];
    }
    // One AU in linear order cannot close anything after it is open: the measure of a fast visit.
    vec![cell(1, false, true)]
}

/// The slot an access lies in.
fn slot_of(slots: &Slots, s: &Sample) -> u64 {
    s.at.saturating_sub(slots.first) / slots.spacing
}

/// Slots in the order of their last visit, latest first.
fn recent(run: &Run, slots: &Slots) -> Vec<u64> {
    let mut seen = std::collections::HashSet::new();
    run.samples.iter().rev().map(|s| slot_of(slots, s)).filter(|s| seen.insert(*s)).collect()
}

fn visit(cell: &Cell, trial: u32, b: &mut Bench) -> Result<(), DeviceError> {
    let Some(slots) = Slots::of(b.run) else { return Ok(()) };
    let n = cell.get("n") as usize;
    let random = cell.get("random") == 1;
    let latest = recent(b.run, &slots);
    let unused = (0..slots.count).filter(|s| !latest.contains(s));
    // AUs that are open already stay in the set; new ones come from those never used, then from those used longest ago.
    let again = if cell.get("fresh") == 1 && trial == 0 { 0 } else { n.min(latest.len()) };
    let new: Vec<u64> = unused.chain(latest.iter().skip(again).rev().copied()).take(n - again).collect();
    let mut places: std::collections::HashMap<u64, u64> = std::collections::HashMap::new();
    for s in b.run.samples.iter() {
        *places.entry(slot_of(&slots, s)).or_default() += 1;
    }
    let per_slot = slots.span / slots.chunk;
    let stretch = if slots.spacing >= 2 * slots.span { (slots.spacing - slots.span) / slots.chunk } else { per_slot };
    let mut write = |b: &mut Bench, role: u8, slot: u64| -> Result<f64, DeviceError> {
        let done = places.entry(slot).or_default();
        // A linear stream goes on into the next AU rather than start again: rewriting is random order.
        let place = if random { b.below(per_slot) } else { *done % stretch };
        *done += 1;
        Ok(b.write(role, slots.at(slot) + place * slots.chunk, slots.chunk)?.micros())
    };
    // In random order an AU is taken for a linear one until its second write.
    for _ in 0..1 + random as u8 {
        for &slot in &new {
            write(b, 0, slot)?;
        }
    }
    let mut order: Vec<u64> = latest.iter().take(again).copied().chain(new.iter().copied()).collect();
    let line = slow_line(b.run);
    // After a count that did not fit, what is open is not what was written last, unless the card's table is LRU.
    let spoilt = b.run.cells.iter().rev().find(|c| c.id != b.cell).is_some_and(|c| c.get("n") > n as i64);
    if spoilt && new.is_empty() {
        b.shuffle(&mut order);
        for slot in order.clone() {
            write(b, 0, slot)?;
        }
    }
    let edge = cell.get("again") == 1;
    let (mut clean, mut all) = (0, 0);
    for round in 1.. {
        b.shuffle(&mut order);
        let mut slow = 0;
        for (i, slot) in order.clone().into_iter().enumerate() {
            let t = write(b, round.min(ROUNDS as usize) as u8, slot)?;
            slow += line.is_some_and(|l| t > l) as usize;
            // Six visits, nearly all slow: more of them cost time and wear and say nothing new.
            if i + 1 >= 6 && i < slow + 1 {
                return Ok(());
            }
        }
        clean = if slow == 0 { clean + 1 } else { 0 };
        all += slow;
        let done = match n {
            // One AU alone is visited more often: it is the reference of all the others.
            1 => round >= 6,
            _ if clean >= Visits::clean_rounds(random) => round * n >= 8,
            _ if !edge || slow * 10 > n * 6 => round >= ROUNDS as usize,
            // Random replacement throws out what was open before only by and by.
            _ => round >= ROUNDS as usize && (all > 4 * n || round >= 4 + n),
        };
        if done {
            return Ok(());
        }
    }
    Ok(())
}

fn micros<'a>(samples: impl IntoIterator<Item = &'a &'a Sample>) -> Vec<f64> {
    samples.into_iter().map(|s| s.took.micros()).collect()
}

/// Visits that cannot have closed anything: one AU in linear order, after it was opened.
fn fast(run: &Run) -> Vec<f64> {
    later(run, |c| c.get("n") == 1 && c.get("random") == 0)
}

/// Microseconds of the visits after the opening round, of the cells wanted.
fn later(run: &Run, wanted: impl Fn(&Cell) -> bool) -> Vec<f64> {
    let cells = run.cells.iter().filter(|c| wanted(c));
    cells.flat_map(|c| run.of(c.id)).filter(|s| s.role > 0).map(|s| s.took.micros()).collect()
}

fn slow_line(run: &Run) -> Option<f64> {
    let fast = fast(run);
    if fast.len() < 3 {
        return None;
    }
    let all: Vec<f64> = run.samples.iter().map(|s| s.took.micros()).collect();
    line(&fast, &all, run.setting("close_cost_us").map(|us| us as f64))
}

/// The trials of one kind, opening rounds left out.
fn trials(run: &Run, random: bool, line: f64) -> Vec<Visits> {
    let mut out = vec![];
    for c in run.cells.iter().filter(|c| c.get("random") == random as i64) {
        for t in run.trials(c.id) {
            let n = c.get("n") as u32;
            let later: Vec<&&Sample> = t.iter().filter(|s| s.role > 0).collect();
            let mut rounds: Vec<(u32, u32)> = later
                .chunks(n.max(1) as usize)
                .map(|r| (r.len() as u32, micros(r.iter().copied()).iter().filter(|&&t| t > line).count() as u32))
                .collect();
            // Once settled, how it came there does not matter.
            let clean = rounds.iter().rev().take_while(|r| r.1 == 0).count();
            if n > 1 && clean >= Visits::clean_rounds(random) {
                rounds.drain(..rounds.len() - clean);
            }
            if !rounds.is_empty() {
                out.push(Visits { n, rounds });
            }
        }
    }
    out
}

/// The last three trials of each count: what was left open from before no longer matters.
fn last_trials(run: &Run, random: bool, line: f64) -> Vec<Visits> {
    let all = trials(run, random, line);
    let later = |i: usize| all[i + 1..].iter().filter(|v| v.n == all[i].n).count();
    (0..all.len()).filter(|&i| later(i) < 3 || all[i].settled(random)).map(|i| all[i].clone()).collect()
}

fn stalls(run: &Run, line: f64) -> (u32, u32) {
    let f = fast(run);
    (f.iter().filter(|&&t| t > line).count() as u32, f.len() as u32)
}

/// Log odds that a count fits; `None` when it was not tried.
fn odds(run: &Run, n: i64, random: bool) -> Option<f64> {
    let Some(line) = slow_line(run) else {
        // Nothing slow was seen at all: everything tried so far fits.
        return run.cells.iter().any(|c| c.get("n") == n && c.get("random") == random as i64).then_some(SETTLED + 1.0);
    };
    let all = trials(run, random, line);
    if all.iter().any(|v| v.n as i64 >= n && v.settled(random)) {
        return Some(2.0 * SETTLED);
    }
    let here: Vec<&Visits> = all.iter().filter(|v| v.n as i64 == n).collect();
    // What fits below n tells how often this card stalls.
    let below = all.iter().filter(|v| (v.n as i64) < n).flat_map(|v| &v.rounds);
    let seen = below.filter(|r| r.1 * 4 <= r.0).fold(stalls(run, line), |a, r| (a.0 + r.1, a.1 + r.0));
    // What was left open from before is thrown out by and by: the last trials count.
    (!here.is_empty()).then(|| log_odds(&here[here.len().saturating_sub(3)..], seen, random))
}

fn wants(cell: &Cell, run: &Run) -> bool {
    let done = run.trials(cell.id).len();
    if done == 0 || cell.get("random") == CONTROL {
        return done == 0;
    }
    let sure = odds(run, cell.get("n"), cell.get("random") == 1).is_some_and(|o| o.abs() >= SETTLED);
    !sure && done < 5
}

/// The largest count that fits and the smallest that does not.
fn bracket(run: &Run, random: bool) -> (i64, Option<i64>) {
    let mut tried: Vec<i64> = run.cells.iter().filter(|c| c.get("random") == random as i64).map(|c| c.get("n")).collect();
    tried.sort_unstable();
    tried.dedup();
    let over = tried.iter().copied().find(|&n| odds(run, n, random).is_some_and(|o| o < 0.0));
    let fits =
        tried.iter().copied().filter(|&n| over.is_none_or(|o| n < o)).filter(|&n| odds(run, n, random).is_some_and(|o| o >= 0.0)).max();
    (fits.unwrap_or(0), over)
}

fn more(run: &Run, random: bool) -> Vec<Cell> {
    let Some(slots) = Slots::of(run) else { return vec![] };
    let most = most_tried(run.setting("filled").is_some()).min(slots.count as i64);
    match bracket(run, random) {
        (fits, None) if fits < most => {
            // One by one at first, then by thirds: the AUs that are open stay, so only the new ones cost.
            let next = if fits < 4 { fits + 1 } else { fits * 4 / 3 };
            // Random order rarely fits more AUs than linear order: that number and the next are the ones to try.
            let hint = run.setting("open_aus_linear").map_or(0, |k| k as i64);
            let next = match () {
                _ if random && fits == hint => fits + 1,
                _ if random && fits < hint && next > hint => hint,
                _ => next,
            };
            vec![cell(next.min(most), random, fits == 0)]
        }
        (_, None) => vec![],
        (fits, Some(over)) if over - fits > 1 => vec![cell((fits + over) / 2, random, false)],
        (fits, Some(over)) => {
            // Both sides of the cut once more, in other AUs: first what fits, then one more.
            let again: Vec<i64> =
                run.cells.iter().filter(|c| c.get("random") == random as i64 && c.get("again") == 1).map(|c| c.get("n")).collect();
            let next = [fits, over].into_iter().find(|n| *n > 0 && !again.contains(n)).filter(|_| again.len() < 8);
            let next = next.map(|n| {
                let mut c = cell(n, random, true);
                c.set.insert("again".into(), 1);
                c
            });
            // In the end, one AU once more: slow now, what was slow before was so for another reason.
            let control = || {
                let set = [("n", 1), ("random", CONTROL), ("fresh", 1)];
                (!run.cells.iter().any(|c| c.get("random") == CONTROL)).then(|| Cell::new("1 AU, linear, once more", &set))
            };
            next.or_else(control).into_iter().collect()
        }
    }
}

fn judge(run: &Run, random: bool) -> Vec<Finding> {
    let q = if random { Quantity::OpenAusRandom } else { Quantity::OpenAusLinear };
    let Some(slots) = Slots::of(run) else {
        return vec![Finding::undecided(q, "the region has no room for two AUs")];
    };
    let fast = fast(run);
    if fast.len() < 3 {
        return vec![Finding::undecided(q, "the run ended before one AU was measured")];
    }
    let base = median(&fast);
    let largest = run.cells.iter().filter(|c| c.get("random") == random as i64 && run.of(c.id).next().is_some()).map(|c| c.get("n")).max();
    let Some(largest) = largest else { return vec![Finding::undecided(q, "the run ended before this order was tried")] };
    let line = slow_line(run);
    let all = line.map(|l| last_trials(run, random, l)).unwrap_or_default();
    let seen = line.map_or((0, 0), |l| stalls(run, l));
    let most = run.cells.iter().map(|c| c.get("n")).max().unwrap_or(1).max(largest) as u32;
    let p = match line {
        Some(_) => posterior(&all, seen, most, random),
        None => vec![(most, 0.97)],
    };
    let (k, top) = p.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0));
    let order = if random { "random" } else { "linear" };
    // Writes that cost the same whatever the order and the number either keep no AU open or need none.
    let whole = run.setting("write_unit").zip(run.setting("erase_block")).is_some_and(|(w, e)| w >= e);
    if whole {
        let why = "a write costs as much as one of a whole erase block, so every write pays";
        return vec![Finding::decided(q, 0.0, 0.8).evidence(why), Finding::decided(Quantity::Mapping, 3.0, 0.8).evidence(why)];
    }
    // Closing copies most of an AU, at 100 MB/s at best: would that have stood out of a write through this host?
    let closing = run.setting("erase_block").unwrap_or(4 * MIB) as f64 / 100.0;
    if k == most && base > 0.5 * closing {
        let why = format!(
            "a write of {} takes {} ms through this host; closing an AU would hardly stand out",
            Bytes(slots.chunk),
            three(base / 1e3)
        );
        return vec![Finding::undecided(q, why.clone()), Finding::undecided(Quantity::Mapping, why)];
    }
    if k == most && top < 0.5 {
        return vec![Finding::undecided(q, "slow writes came and went: the times do not agree")];
    }
    if k == most {
        return unlimited(run, q, k, top, largest);
    }
    let line = line.unwrap_or(f64::INFINITY);
    let once_more = later(run, |c| c.get("random") == CONTROL);
    if once_more.len() >= 3 && median(&once_more) > line {
        return filled_up(run, q, line, median(&once_more));
    }
    let mut over = later(run, |c| c.get("random") == random as i64 && c.get("n") > k as i64);
    over.retain(|&t| t > line);
    let slow = median(&over);
    // A cut that costs little more than the writes themselves may be something else.
    let contrast = ((slow / base - 1.5) / 4.5).clamp(0.0, 1.0);
    // Where AUs end is not known: one that lies across a boundary counts for two.
    let placed = run.setting("erase_block_offset").or(run.setting("erase_block_about"));
    let known = if run.setting("erase_block").and(placed).is_some() { 1.0 } else { 0.89 };
    // Rounds that came to rest prove that so many fit; without them the number rests on how often visits were slow.
    let proved = all.iter().filter(|v| v.settled(random)).map(|v| v.n).max().unwrap_or(0);
    // A table that throws out at random is slow only now and then, and comes to rest late: one more may have fitted.
    let next = all.iter().map(|v| v.n).filter(|&n| n > k).min();
    let beyond = all.iter().filter(|v| Some(v.n) == next).flat_map(|v| &v.rounds).fold((0, 0), |a, r| (a.0 + r.1, a.1 + r.0));
    let scattered = beyond.0 * 4 < beyond.1 && k > 8;
    let rest = if k > proved.max(1) || scattered { 0.87 } else { 1.0 };
    // A cache that was filled before may have had room again, and was full in the middle of the search.
    // Nor is it known that the run ended before a cache was full, where one AU was not tried once more.
    // Writes kept short for a slow bus may be shorter than a unit, and then be gathered as long as they go to one AU only.
    let short = slots.chunk < 16 * KIB && run.setting("write_unit").is_none();
    let most_sure = if run.setting("filled").is_some() || once_more.len() < 3 || short { 0.88 } else { 0.98 };
    let trust = (top * known * rest * (0.4 + 0.6 * contrast)).min(most_sure);
    let text = format!(
        "{} AUs in turn, {order}, {}: {} ms a write; {} AUs: {} ms",
        k.max(1),
        Bytes(slots.chunk),
        three(if k == 0 { slow / 1e3 } else { base / 1e3 }),
        k + 1,
        three(slow / 1e3)
    );
    let mut f = if trust < SAID {
        Finding::undecided(q, format!("the cut lies near {k}, but the times do not agree"))
    } else {
        let mut rivals: Vec<(f64, f64)> = p.iter().filter(|x| x.0 != k && x.1 > 0.005).map(|&(n, p)| (n as f64, p)).collect();
        rivals.sort_by(|a, b| b.1.total_cmp(&a.1));
        rivals.truncate(3);
        Finding::decided(q, k as f64, trust).rivals(rivals)
    };
    // A run before this one kept more AUs open; the clean rounds it saw are proof, the slow ones of this run are not. Where it
    // had to guess AUs, several may have been one.
    let guess = Slots::plan(&|key| run.setting(key).filter(|_| !key.starts_with("erase_block")));
    let apart = guess.zip(run.setting("erase_block")).is_some_and(|(g, e)| g.spacing >= e);
    if let Some(before) = run.setting(q.key()).filter(|&b| b > k as u64 && apart) {
        let why =
            format!("{before} AUs stayed open in an earlier run, {k} in this one: what stays open depends on what was written before");
        f = Finding::at_least(q, before as f64, 0.7, why);
    }
    let sure = f.confidence;
    f = f.evidence(text.clone());
    if run.setting("erase_block").is_none() {
        f = f.caveat(format!("erase block not known: AUs were taken {} apart", Bytes(slots.spacing)));
    }
    if seen.0 > 0 {
        f = f.caveat(format!("{} of {} reference writes stalled", seen.0, seen.1));
    }
    let limited = (1.0 - p.last().map_or(0.0, |l| l.1)) * (0.4 + 0.6 * contrast);
    // Not even one AU in linear order stays open: every write pays.
    let class = if k == 0 && !random { 3.0 } else { 1.0 };
    let mapping = if limited < 0.5 {
        Finding::undecided(Quantity::Mapping, "slow writes come with many AUs, but cost little more than others")
    } else {
        let most = if trust < SAID || once_more.len() < 3 || short { 0.85 } else { 0.97 };
        Finding::decided(Quantity::Mapping, class, limited.min(most)).evidence(text)
    };
    let mut out = vec![f, mapping];
    if over.len() >= 3 && trust >= SAID {
        let cost: Vec<f64> = over.iter().map(|t| (t - base) / 1e3).collect();
        let mut c = Finding::decided(Quantity::CloseCostMs, (median(&cost) * 100.0).round() / 100.0, trust.min(sure).min(0.95));
        c.interval = bootstrap_median(&cost).map(|i| i.map(|x| (x * 100.0).round() / 100.0));
        out.push(c.evidence(format!("{} writes that closed an AU, {order} order", over.len())));
    }
    out
}

/// No number of AUs was slow: `k` of them at the most, with probability `top`.
fn unlimited(run: &Run, q: Quantity, k: u32, top: f64, largest: i64) -> Vec<Finding> {
    let Some(slots) = Slots::of(run) else { return vec![] };
    let base = median(&fast(run));
    let order = if q == Quantity::OpenAusRandom { "random" } else { "linear" };
    // A fast cache in front (SLC, or a small-write log) takes all that such a test writes and hides what lies behind it.
    let filled = run.setting("filled").unwrap_or(0);
    let limit = most_tried(filled > 0);
    if let Some(cache) = run.setting("cache_from").filter(|&c| c > 0) {
        let why = format!("a write cache took {} and hides what lies behind it even when it is full", Bytes(cache));
        return vec![Finding::undecided(q, why.clone()), Finding::undecided(Quantity::Mapping, why)];
    }
    let no_cache = if filled > 0 { NO_CACHE_FOUND } else { 1.0 };
    let trust = top * (1.0 - 0.22 * no_cache);
    let why = if slots.count as i64 <= largest {
        format!("no cost up to {k} AUs; the region has room for no more")
    } else if largest < limit {
        format!("no cost up to {k} AUs; the run ended there")
    } else {
        format!("no cost up to {k} AUs: more than anybody needs, or the card has no such limit")
    };
    let text = format!("{k} AUs in turn, {order}: {} ms a write of {}, as with one AU", three(base / 1e3), Bytes(slots.chunk));
    let written = run.samples.iter().map(|s| s.len).sum::<u64>() + filled;
    let caveat = format!("a write cache of more than {} MiB would hide a limit behind it", written / MIB);
    let mapping = if k as i64 >= limit {
        let other = (1.0 - NO_LIMIT_BY_PAGE) * no_cache;
        Finding::decided(Quantity::Mapping, 2.0, top * (1.0 - other)).rivals([(1.0, other)]).evidence(text.clone())
    } else {
        Finding::undecided(Quantity::Mapping, why.clone())
    };
    vec![Finding::at_least(q, k as f64, trust, why).evidence(text).caveat(caveat.clone()), mapping.caveat(caveat)]
}

/// One AU alone was slow in the end, `end` microseconds a write: a cache was full.
fn filled_up(run: &Run, q: Quantity, line: f64, end: f64) -> Vec<Finding> {
    let first = run.samples.iter().position(|s| s.role > 0 && s.took.micros() > line).unwrap_or(run.samples.len());
    let taken = run.samples[..first].iter().map(|s| s.len).sum::<u64>();
    let why = "writes to one AU alone became as slow: a cache was full, whatever the number of AUs".to_string();
    let text = format!(
        "one AU, linear: {} ms a write of {} at first, {} ms in the end",
        three(median(&fast(run)) / 1e3),
        Bytes(Slots::of(run).map_or(0, |s| s.chunk)),
        three(end / 1e3)
    );
    let all = run.samples.iter().map(|s| s.len).sum::<u64>() as f64;
    let mut cache = Finding::at_least(Quantity::WriteCache, taken as f64, 0.7, "what was written before took part of it");
    cache.interval = Some([0.0, all]);
    vec![Finding::undecided(q, why.clone()).evidence(text.clone()), Finding::undecided(Quantity::Mapping, why), cache.evidence(text)]
}

fn figures(run: &Run, random: bool) -> Vec<Figure> {
    let mut points: Vec<(f64, f64, f64, f64)> = vec![];
    let mut counts: Vec<i64> = run.cells.iter().filter(|c| c.get("random") == random as i64).map(|c| c.get("n")).collect();
    counts.sort_unstable();
    counts.dedup();
    for n in counts {
        let t = later(run, |c| c.get("n") == n && c.get("random") == random as i64);
        if !t.is_empty() {
            let mean = t.iter().sum::<f64>() / t.len() as f64;
            let spread = (t.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (t.len() as f64 - 1.0).max(1.0)).sqrt();
            let half = 2.0 * spread / (t.len() as f64).sqrt();
            points.push((n as f64, mean / 1e3, (mean - half).max(0.0) / 1e3, (mean + half) / 1e3));
        }
    }
    vec![Figure {
        title: format!("time of a write, N AUs in turn, {} order", if random { "random" } else { "linear" }),
        x: "N".into(),
        y: "ms".into(),
        log_x: true,
        log_y: true,
        series: Series::with_bounds("mean", &points),
    }]
}
