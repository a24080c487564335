//! What the visits of AUs say: a limit, none, a cache that was full, or nothing.

use super::*;
use crate::finding::SAID;

/// Share of the cards without a limit that are mapped by page; the others hide it behind a cache, or keep more AUs open than
/// were tried. Both orders say so together: two thirds in all.
const NO_LIMIT_BY_PAGE: f64 = 0.6;
/// What is left of the chance that a cache hides the limit, once half a gigabyte was written and none showed.
const NO_CACHE_FOUND: f64 = 0.7;

/// µs: no card takes longer to move a piece of its map, or to write a unit again.
const PIECE_US: f64 = 12_000.0;

const BARELY: &str = "slow writes come with many AUs, but cost little more than others";

/// Neither the count nor the mapping is told.
fn neither(q: Quantity, why: String) -> Vec<Finding> {
    vec![Finding::undecided(q, why.clone()), Finding::undecided(Quantity::Mapping, why)]
}

/// No AU stays open at all. Both orders see the same: the first one says what it means.
fn rewritten(run: &Run, q: Quantity, why: String) -> Vec<Finding> {
    let known = run.setting(Quantity::Mapping.key()) == Some(3) && q == Quantity::OpenAusRandom;
    let mapping = Finding::decided(Quantity::Mapping, 3.0, 0.85).evidence(why.clone());
    [Finding::decided(q, 0.0, 0.85).evidence(why)].into_iter().chain((!known).then_some(mapping)).collect()
}

/// The findings of one order.
pub fn judge(run: &Run, random: bool) -> Vec<Finding> {
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
    let seen = line.map_or((0, 0), |l| stalls(run, l));
    let most = run.cells.iter().map(|c| c.get("n")).max().unwrap_or(1).max(largest) as u32;
    let none_slow =
        || Belief { by: ByPolicy { p: vec![(most, 0.97)], rules: 0.0, foretells: 0.0 }, proved: 0, last: vec![], taken_back: false };
    let belief = Belief::of(run, random).unwrap_or_else(none_slow);
    let p = &belief.by.p;
    let (k, top) = p.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0));
    let order = if random { "random" } else { "linear" };
    // Writes that cost the same whatever the order and the number either keep no AU open or need none.
    let whole = run.setting("write_unit").zip(run.setting("erase_block")).is_some_and(|(w, e)| w >= e);
    if whole {
        return rewritten(run, q, "a write costs as much as one of a whole erase block, so every write pays".into());
    }
    if let Some((write, read)) = rewrites(run).filter(|_| k == most && largest >= 4) {
        let why = format!(
            "each write of {} takes {} ms, reading it {} ms: more is rewritten than was sent",
            Bytes(slots.chunk),
            three(write),
            three(read)
        );
        return rewritten(run, q, why);
    }
    // Pauses that take less time than the writes are those of any map of pages that collects garbage, where no limit was seen.
    let paused = line.and_then(|l| regular(run, l)).filter(|(every, pause)| k < most || *pause > *every as f64 * base);
    if let Some((every, _)) = paused {
        let why = format!("one write of every {every} is slow, however many AUs are in turn: a log or a buffer is emptied");
        return neither(q, why);
    }
    // Closing copies most of an AU, at 100 MB/s at best: would that have stood out of a write through this host?
    let closing = run.setting("erase_block").unwrap_or(4 * MIB) as f64 / 100.0;
    if k == most && base > 0.7 * closing {
        let why = format!(
            "a write of {} takes {} ms through this host; closing an AU would hardly stand out",
            Bytes(slots.chunk),
            three(base / 1e3)
        );
        return neither(q, why);
    }
    if k == most && largest == 1 {
        return vec![Finding::undecided(q, "the run ended before two AUs were tried")];
    }
    if k == most && top < 0.5 {
        return vec![Finding::undecided(q, "slow writes came and went: the times do not agree")];
    }
    if k == most {
        return unlimited(run, q, k, top, largest);
    }
    let line = line.unwrap_or(f64::INFINITY);
    let once_more = once_more(run);
    if let Some(slow) = became_slow(run, line) {
        return filled_up(run, q, line, slow);
    }
    if belief.taken_back {
        let why = format!(
            "{} AUs came to rest at first, and did not later: a cache was full, or this card goes by what was written before",
            belief.proved
        );
        return neither(q, why);
    }
    if let Some(at) = silent_above(run, &slots, random, line, k as i64).filter(|_| belief.by.foretells < 0.95) {
        let why = format!("writes behind {} never pay, while those before do: another kind of memory, or none (capacity tells)", Bytes(at));
        return vec![Finding::undecided(q, why)];
    }
    let mut over = later(run, |c| c.get("random") == random as i64 && c.get("n") > k as i64);
    over.retain(|&t| t > line);
    let slow = median(&over);
    if let Some(buffer) = pays_every(run, line, slow).filter(|_| k == 1) {
        let why = format!("one AU alone pays after every {}: it is rewritten when a buffer is full", Bytes(buffer));
        return rewritten(run, q, why);
    }
    // A cut that costs little more than the writes themselves may be something else: heat, or an erase block rewritten twice. Less likely
    // so where it costs more than moving a piece of a map or writing a unit anew.
    let dear = if rewrites(run).is_none() { ((slow - base - PIECE_US) / PIECE_US).clamp(0.0, 0.5) } else { 0.0 };
    let contrast = ((slow / base - 1.5) / 4.5).clamp(dear, 1.0);
    // Where AUs end is not known: one that lies across a boundary counts for two.
    let placed = run.setting("erase_block_offset").or(run.setting("erase_block_about"));
    // Or two places lie in one AU, where they had to be close.
    // Or neighbours share what is kept open for them, on a card too small to spread the AUs.
    let apart = slots.apart(k as usize + 1);
    let close = |e: u64| apart < 12 * e && k > 8;
    let known = match run.setting("erase_block").zip(placed) {
        Some((e, _)) if close(e) => 0.89,
        Some(_) => 1.0,
        None if apart >= 64 * MIB => 0.89,
        None => 0.8,
    };
    // Rounds that came to rest prove that so many fit; without them the number rests on how often visits were slow.
    // A table that throws out at random is slow only now and then, and comes to rest late: one more may have fitted.
    let next = belief.last.iter().map(|v| v.n).filter(|&n| n > k).min();
    let beyond = belief.last.iter().filter(|v| Some(v.n) == next).flat_map(|v| &v.rounds).fold((0, 0), |a, r| (a.0 + r.1, a.1 + r.0));
    let scattered = beyond.0 * 4 < beyond.1 && k > 8;
    // Random replacement is followed only about: it tells one of a few, not of dozens.
    // Or it came to rest once, and not when it was opened anew.
    let restless = k > 8 && belief.last.iter().rev().find(|v| v.n == k).is_some_and(|v| !v.settled(random));
    let surely = belief.by.foretells > 0.95 || k <= belief.proved.max(1) && !scattered && !restless;
    let rest = if surely { 1.0 } else { 0.87 };
    let limited = (1.0 - p.last().map_or(0.0, |l| l.1)) * (0.4 + 0.6 * contrast);
    // Of so many, one or two more or less.
    if !surely && k > if belief.ruled() { 20 } else { 16 } {
        if belief.proved <= 4 {
            return vec![Finding::undecided(q, format!("the cut lies near {k}, but the times do not agree"))];
        }
        let why = "with more, slow visits came and went: how many more stay open the times do not tell";
        let text =
            format!("{} AUs in turn, {order}, came to rest: {} ms a write of {}", belief.proved, three(base / 1e3), Bytes(slots.chunk));
        let fits = p.iter().filter(|p| p.0 >= belief.proved).map(|p| p.1).sum::<f64>().min(known).min(0.87);
        let least = Finding::at_least(q, belief.proved as f64, fits, why).evidence(text.clone());
        let mapping = match limited < 0.8 {
            true => Finding::undecided(Quantity::Mapping, BARELY),
            false => Finding::decided(Quantity::Mapping, 1.0, 0.65).evidence(text),
        };
        // What a closing costs is known all the same.
        let cost = (over.len() >= 3 && limited >= 0.8).then(|| close_cost(&over, base, order, fits.min(0.8)));
        return [least, mapping].into_iter().chain(cost).collect();
    }
    // A cache that was filled before may have had room again, and was full in the middle of the search.
    // Nor is it known that the run ended before a cache was full, where one AU was not tried once more.
    // Writes kept short for a slow bus may be shorter than a unit, and then be gathered as long as they go to one AU only.
    let short = slots.chunk < run.setting("write_unit").unwrap_or(16 * KIB);
    if short && k == 1 && !random {
        let why = format!("writes of {} may be gathered into one unit as long as they go to one AU", Bytes(slots.chunk));
        return neither(q, why);
    }
    // A card that writes a unit once only takes a write that begins in the middle of one for random order.
    let on_units = |unit: u64| slots.chunk.is_multiple_of(unit) && run.setting("erase_block_slack").is_none();
    let in_order = random || k > 1 || run.setting("write_unit").is_some_and(on_units) && run.setting("erase_block_offset").is_some();
    let guessed = run.setting("filled").is_some() || once_more.is_none() || short || !in_order;
    let most_sure = if guessed { 0.88 } else { 0.98 };
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
    let wide = guess.zip(run.setting("erase_block")).is_some_and(|(g, e)| g.spacing >= e);
    if let Some(before) = run.setting(q.key()).filter(|&b| b > k as u64 && wide) {
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
    // Not even one AU in linear order stays open: every write pays. In random order that may be so with either kind.
    let always = k == 0 && (!random || run.setting(Quantity::OpenAusLinear.key()) == Some(0));
    let class = if always { 3.0 } else { 1.0 };
    let linear = run.setting(Quantity::OpenAusLinear.key()).or(run.setting(LINEAR_LEAST).filter(|&n| n >= 4));
    let either = k == 0 && random && linear.is_none();
    let mapping = if either {
        Finding::undecided(Quantity::Mapping, "every write in random order pays; what linear order pays is not known")
    } else if limited < 0.5 {
        Finding::undecided(Quantity::Mapping, BARELY)
    } else {
        // Both orders together would make more of it than either knows. Random order alone may pay for another reason.
        let alone = if random && k == 0 && run.setting(Quantity::OpenAusLinear.key()).is_none() { 0.88 } else { 0.97 };
        let most = if trust < 0.75 || once_more.is_none() || short { 0.65 } else { alone };
        Finding::decided(Quantity::Mapping, class, limited.min(most)).evidence(text)
    };
    let mut out = vec![f, mapping];
    if over.len() >= 3 && trust >= SAID && !either && !always {
        out.push(close_cost(&over, base, order, trust.min(sure)));
    }
    out
}

/// What closing an AU costs, from the visits in µs that paid for one; `trust` in their number.
fn close_cost(over: &[f64], base: f64, order: &str, trust: f64) -> Finding {
    let cost: Vec<f64> = over.iter().map(|t| (t - base) / 1e3).collect();
    // What is copied depends on how full the AU is: costs that differ are not yet that of a whole one.
    let spread = (quantile(&cost, 0.75) - quantile(&cost, 0.25)) / median(&cost);
    let most = if spread < 0.08 { 0.95 } else { 0.85 };
    let hundredth = |ms: f64| (ms * 100.0).round() / 100.0;
    let mut c = Finding::decided(Quantity::CloseCostMs, hundredth(median(&cost)), trust.min(most));
    c.interval = bootstrap_median(&cost).map(|i| i.map(hundredth));
    c.evidence(format!("{} writes that closed an AU, {order} order", over.len()))
}

/// Where the AUs begin that are never slow, though with more than `fits` of them those before are: it cannot be chance. A counterfeit
/// card throws away what is written behind its flash.
fn silent_above(run: &Run, slots: &Slots, random: bool, line: f64, fits: i64) -> Option<u64> {
    let cells = run.cells.iter().filter(|c| c.get("random") == random as i64 && c.get("n") > fits);
    let visits = cells.flat_map(|c| run.of(c.id)).filter(|s| s.role > 0);
    let visits: Vec<(u64, bool)> = visits.map(|s| (slot_of(slots, s), s.took.micros() > line)).collect();
    let edge = visits.iter().filter(|v| v.1).map(|v| v.0).max()?;
    let before = visits.iter().filter(|v| v.0 <= edge).count();
    let slow = visits.iter().filter(|v| v.1).count() as f64 / before as f64;
    // e^-12 is the chance that none of those behind was slow.
    ((visits.len() - before) as f64 * -(1.0 - slow).max(0.05).ln() > 12.0).then(|| slots.at(edge + 1))
}

/// Mean time in µs of a write with few AUs in turn and with many, where rare slow ones make many dear and few not. Emptying a log that
/// all AUs share costs the more, the more of them lie in it; collecting garbage in a map of pages costs the same.
fn shared(run: &Run, random: bool) -> Option<(f64, f64)> {
    let visits = |of: std::ops::RangeInclusive<i64>| later(run, |c| c.get("random") == random as i64 && of.contains(&c.get("n")));
    let (few, many, base) = (visits(1..=8), visits(24..=MOST), median(&fast(run)));
    let mean = |t: &[f64]| t.iter().sum::<f64>() / t.len() as f64;
    let (less, more) = (mean(&few), mean(&many));
    // Four of the slow ones, at least, would have been met among the few.
    let slow = many.iter().filter(|&&t| t > 3.0 * base).count();
    let met = slow * few.len() >= 4 * many.len().max(1);
    (met && more > 3.0 * base && more - base > 3.0 * (less - base)).then_some((less, more))
}

/// No number of AUs was slow: `k` of them at the most, with probability `top`.
fn unlimited(run: &Run, q: Quantity, k: u32, top: f64, largest: i64) -> Vec<Finding> {
    let Some(slots) = Slots::of(run) else { return vec![] };
    let base = median(&fast(run));
    let order = if q == Quantity::OpenAusRandom { "random" } else { "linear" };
    if let Some((few, many)) = shared(run, q == Quantity::OpenAusRandom) {
        let why = format!(
            "no AU is paid for by itself, but with many in turn a write takes {} ms on average, with few {} ms: they share a log",
            three(many / 1e3),
            three(few / 1e3)
        );
        return vec![Finding::undecided(q, why.clone()), Finding::decided(Quantity::Mapping, 1.0, 0.7).evidence(why)];
    }
    // A fast cache in front (SLC, or a small-write log) takes all that such a test writes and hides what lies behind it.
    let filled = run.setting("filled").unwrap_or(0);
    if let Some(cache) = run.setting("cache_from").filter(|&c| c > 0) {
        let why = format!("a write cache took {} and hides what lies behind it even when it is full", Bytes(cache));
        return neither(q, why);
    }
    let no_cache = if filled > 0 { NO_CACHE_FOUND } else { 1.0 };
    // Where reads show erase blocks the card has AUs to close: the more likely, then, that a cache hides it.
    let in_aus = run.setting("erase_block").is_some();
    let trust = top * if in_aus { 0.65 } else { 1.0 - 0.22 * no_cache };
    let why = if slots.count as i64 <= largest {
        format!("no cost up to {k} AUs; the region has room for no more")
    } else if largest < MOST {
        format!("no cost up to {k} AUs; the run ended there")
    } else {
        format!("no cost up to {k} AUs: more than anybody needs, or the card has no such limit")
    };
    let text = format!("{k} AUs in turn, {order}: {} ms a write of {}, as with one AU", three(base / 1e3), Bytes(slots.chunk));
    let written = writes(run).map(|s| s.len).sum::<u64>() + filled;
    let caveat = format!("a write cache of more than {} MiB would hide a limit behind it", written / MIB);
    let mapping = if in_aus {
        Finding::undecided(
            Quantity::Mapping,
            format!("the card has erase blocks, yet no cost up to {k} AUs: a cache hides it, or it maps pages"),
        )
    } else if k as i64 >= MOST {
        // Places close together may lie in few AUs.
        let other = ((1.0 - NO_LIMIT_BY_PAGE) * no_cache).max(if slots.spacing < 48 * MIB { 0.2 } else { 0.0 });
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
