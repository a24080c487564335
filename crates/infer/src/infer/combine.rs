//! Several experiments may speak to one quantity: their findings become one, and disagreement is told.

use super::confidence::said;
use super::pipeline::by_name;
use super::steps::alignments;
use super::write_unit::TOGETHER;
use crate::finding::{BY_PAGE, CONTRADICTED, Finding, Findings, Quantity, SAID, STOPPED, Unit};
use crate::units::{Bytes, MIB};

/// One finding a quantity, in the order of `Quantity::ALL`.
pub fn combine(all: &[Finding]) -> Findings {
    let (mut out, all) = (vec![], &doubted(all));
    for q in Quantity::ALL {
        let here: Vec<&Finding> = all.iter().filter(|f| f.quantity == q).collect();
        let exact = if q == Quantity::EraseBlockOffset { exact_places(all, &here) } else { vec![] };
        let here: Vec<&Finding> = if exact.is_empty() { here } else { exact.iter().collect() };
        if !here.is_empty() {
            out.push(said(one(q, &here)));
        }
    }
    hidden_by_cache(&mut out);
    more_than_linear(&mut out);
    other_order_goes_by_history(&mut out);
    row_before_takes_room(&mut out);
    two_in_one_place(&mut out);
    one_order_bounds_the_other(&mut out);
    off_units(&mut out);
    off_grid(&mut out);
    planes_beyond_units(&mut out);
    planes_or_block(&mut out);
    no_more_writes(&mut out);
    Findings(out)
}

/// Times of writes that a card answers and does not store say nothing of it, and since when it does so is not known.
fn no_more_writes(all: &mut [Finding]) {
    let stopped = |f: &Finding| f.quantity == Quantity::Capacity && f.reason.as_ref().is_some_and(|why| why.contains(STOPPED));
    if !all.iter().any(stopped) {
        return;
    }
    let by_writes = |f: &&mut Finding| f.from.iter().any(|from| from != READS) && f.quantity != Quantity::Capacity;
    for f in all.iter_mut().filter(by_writes).filter(|f| f.value.is_some() || f.at_least.is_some()) {
        *f = f.clone().withdrawn("the card takes no more writes, and since when is not known");
    }
}

/// The experiments whose erase block streams of writes may contradict.
const READS: &str = "read-boundary";
const WALKS: &str = "au-grid";

/// Steps of reads may be a map's, or those of dies; merges lie where erase blocks end. What writes speak against is no surer than they leave it,
/// with the place where it begins. A walk may have met every fifth boundary only, which stalls between them show; that streams meet none
/// where it met them says less, for it leaves holes before them.
fn doubted(all: &[Finding]) -> Vec<Finding> {
    let mut out = all.to_vec();
    for (by, (value, most)) in all.iter().filter_map(|f| Some((f, f.doubts?))) {
        let too_large = by.rivals.iter().any(|r| r.value.0 < value);
        let finds = |f: &Finding| f.from.iter().any(|from| from == READS || too_large && from == WALKS);
        let named = |f: &Finding| f.quantity == by.quantity && f.number() == Some(value) && finds(f);
        let by_whom: Vec<&String> = all.iter().filter(|f| named(f)).flat_map(|f| &f.from).collect();
        if by_whom.is_empty() {
            continue;
        }
        let alike = |f: &Finding| f.from.iter().any(|from| by_whom.contains(&from));
        let place = |f: &Finding| f.quantity == Quantity::EraseBlockOffset && by.quantity == Quantity::EraseBlock && alike(f);
        for f in out.iter_mut().filter(|f| f.value.is_some() && (named(f) || place(f))) {
            f.confidence = f.confidence.min(most);
            f.evidence.extend(by.evidence.iter().filter(|_| named(f)).cloned().collect::<Vec<_>>());
        }
    }
    out
}

/// Where one experiment names a place exactly and another a stretch that holds it, both say the exact one.
fn exact_places(all: &[Finding], here: &[&Finding]) -> Vec<Finding> {
    let period = all.iter().filter(|f| f.quantity == Quantity::EraseBlock).filter_map(Finding::number).next().unwrap_or(0.0);
    let exact = here.iter().filter(|f| f.interval.is_none()).filter_map(|f| f.number()).next();
    let Some(exact) = exact else { return vec![] };
    let holds = |[lo, hi]: [f64; 2]| [exact - period, exact, exact + period].iter().any(|v| (lo..=hi).contains(v));
    let narrowed = |f: &Finding| Finding { value: Some(crate::finding::Number(exact)), interval: None, rivals: vec![], ..f.clone() };
    here.iter().map(|f| if f.value.is_some() && f.interval.is_some_and(holds) { narrowed(f) } else { (*f).clone() }).collect()
}

/// Random order cannot keep more AUs open than linear order does: where no limit was met, something else took those writes; of two counts
/// the less sure one is wrong.
fn more_than_linear(all: &mut [Finding]) {
    let place = |q: Quantity| all.iter().position(|f| f.quantity == q && f.number().is_some());
    let Some(l) = place(Quantity::OpenAusLinear) else { return };
    let linear = all[l].number().unwrap_or(0.0);
    if let Some(r) = place(Quantity::OpenAusRandom).filter(|&r| all[r].number().unwrap_or(0.0) > linear) {
        let counts = format!(
            "{} were counted in random order and {linear} in sequential order, which keeps at least as many open",
            all[r].number().unwrap_or(0.0)
        );
        let wrong = if all[r].confidence > all[l].confidence { l } else { r };
        all[wrong] = all[wrong].clone().withdrawn(counts);
        return;
    }
    for f in all.iter_mut().filter(|f| f.quantity == Quantity::OpenAusRandom && f.value.is_none()) {
        if let Some(bound) = f.at_least.filter(|b| b.0 > linear) {
            let why =
                format!("no cost up to {} AUs, though {linear} is the limit in sequential order: something else took the writes", bound.0);
            *f = f.clone().withdrawn(why);
        }
    }
}

/// Where random order showed that earlier writes take room in the card's table, the search in linear order may have met one that was taken
/// up in part as well: AUs of its own that came back, and were left out of the count that decided. What settled is a bound; nothing says
/// that no more fit. Or that many fitted only as long as merges cost nothing: of AUs that were never written each is merged once or twice for
/// nothing, and one more than stays open seems to settle.
fn other_order_goes_by_history(all: &mut [Finding]) {
    let once = all.iter().find(|f| f.quantity == Quantity::OpenAusRandom).and_then(|f| f.settled_once);
    let Some(once) = once else { return };
    for f in all.iter_mut().filter(|f| f.quantity == Quantity::OpenAusLinear) {
        let Some(n) = f.number().filter(|&n| n > 0.0) else { continue };
        // Random order keeps no more open than sequential order: what settled there fits, unless a cache took those writes, which many more
        // than were counted would be a sign of.
        let most = if once.0 <= 2.0 * n { n.max(once.0) } else { n };
        let beside = if once.0 > n {
            format!("{n} were counted in sequential order, and {} settled once in random order", once.0)
        } else {
            format!("{n} were counted")
        };
        let why = format!(
            "{beside}, and later not as many: AUs written before may take room beside them, or one fewer is kept open, and merges of AUs that were never written cost nothing"
        );
        f.becomes(Finding::at_least(f.quantity, (most - 1.0).max(1.0), f.confidence.min(CONTRADICTED), why));
    }
}

/// Was this count in random order searched for, and not read off a table?
fn searched(random: &Finding) -> bool {
    random.from.iter().any(|from| from == "open-au-random")
}

/// A count that is also the bound of sequential order: both met something there that may be no limit.
const SAME: f64 = 0.65;

/// In a log each row takes AUs of its own, and those of the row before are still open when it begins. Written in random order they are merged,
/// however full, so that a row of N is slow as soon as N and N - 1 are more than stay open: the count then is half of what it should be.
/// Where sequential order, whose full AUs are merged for nothing, kept about twice as many, or a number that is not known, the count in random
/// order is a bound.
fn row_before_takes_room(all: &mut [Finding]) {
    let place = |q: Quantity| all.iter().position(|f| f.quantity == q);
    let Some((l, r)) = place(Quantity::OpenAusLinear).zip(place(Quantity::OpenAusRandom)) else { return };
    let Some(n) = all[r].number().filter(|&n| n > 0.0 && !searched(&all[r])) else { return };
    let about_twice = |linear: f64| linear > n && (2.0 * n - 1.0..=2.0 * n + 1.0).contains(&linear);
    let (counted, least) = (all[l].number(), all[l].at_least.map(|b| b.0));
    let twice = counted.map_or_else(|| least.is_some_and(|b| (n..=2.0 * n + 1.0).contains(&b)), about_twice);
    if twice {
        let f = &mut all[r];
        let sure = if least == Some(n) { f.confidence.min(SAME) } else { f.confidence };
        let why = format!("{n} were counted, and AUs that the row before left open may have taken as many more");
        f.becomes(Finding::at_least(f.quantity, n, sure, why));
    }
}

/// Where the erase block is not known, AUs were guessed: random order may have written two in each place, and sequential order one after the
/// other. What was counted is a bound then.
fn two_in_one_place(all: &mut [Finding]) {
    let number = |q: Quantity| all.iter().find(|f| f.quantity == q).and_then(|f| f.number().or(f.at_least.map(|b| b.0)));
    let linear = number(Quantity::OpenAusLinear).unwrap_or(0.0);
    if number(Quantity::EraseBlock).is_some() {
        return;
    }
    for f in all.iter_mut().filter(|f| f.quantity == Quantity::OpenAusRandom && searched(f)) {
        let Some(n) = f.number().filter(|&n| n >= 2.0 && n < linear) else { continue };
        let why = format!(
            "{n} places were counted, and {linear} in sequential order: where erase blocks are smaller than was guessed, each place has several"
        );
        f.becomes(Finding::at_least(f.quantity, n, f.confidence, why));
    }
}

/// Linear order keeps at least as many AUs open as random order: a bound that meets the number of the other is the number, and where
/// linear order was not told, random order is a bound for it.
fn one_order_bounds_the_other(all: &mut [Finding]) {
    let place = |q: Quantity| all.iter().position(|f| f.quantity == q);
    let Some((l, r)) = place(Quantity::OpenAusLinear).zip(place(Quantity::OpenAusRandom)) else { return };
    let (linear, random) = (all[l].clone(), all[r].clone());
    let bound = |f: &Finding| f.at_least.map(|b| b.0);
    // Tables of a log were made with the numbers somebody chose; only a search asked for more.
    let searched = searched(&random);
    if searched && linear.number().is_some() && linear.number() == bound(&random) {
        let n = linear.number().unwrap_or(0.0);
        let sure = linear.confidence.min(random.confidence);
        let text = format!("{n} stayed open, and no more do in sequential order, which keeps at least as many open as random order");
        all[r].becomes(Finding::decided(random.quantity, n, sure));
        all[r].evidence.push(text);
    } else if let Some(n) =
        random.number().or(bound(&random)).filter(|&n| n >= 2.0 && linear.number().is_none() && bound(&linear).is_none_or(|b| b < n))
    {
        let why = format!("random order kept {n} open, and sequential order keeps at least as many; how many more is not known");
        // In tables of sequential order something was slow below that.
        let disputed = !searched && bound(&linear).is_some();
        let sure = random.confidence.min(if disputed { CONTRADICTED } else { 1.0 });
        all[r].confidence = sure;
        let never_slow = random.never_slow;
        all[l].becomes(Finding { never_slow, ..Finding::at_least(linear.quantity, n, sure, why) });
    }
}

/// Two AUs in turn that pay at every visit are more than stay open, or their writes begin inside a unit and are taken for random order, as
/// the one that went before filled it in part. Random order that pays at once, and units or places that are not known, leave that open.
fn off_units(all: &mut [Finding]) {
    let number = |q: Quantity| all.iter().find(|f| f.quantity == q).and_then(Finding::number);
    let random_pays = number(Quantity::OpenAusRandom) == Some(0.0) && number(Quantity::WriteUnit).is_none();
    let unplaced = number(Quantity::EraseBlock).is_some() && number(Quantity::EraseBlockOffset).is_none();
    if !random_pays && !unplaced {
        return;
    }
    let what = if random_pays { "the write unit" } else { "where erase blocks begin" };
    let costs = all.iter().find(|f| f.quantity == Quantity::CloseCostMs).and_then(|f| f.number().or(f.at_least.map(|b| b.0)));
    let Some(f) = all.iter_mut().find(|f| f.quantity == Quantity::OpenAusLinear && f.number() == Some(1.0)) else { return };
    let why = format!("two interleaved incur merges, but {what} is not known, and writes that begin inside a unit would do so as well");
    *f = f.clone().withdrawn(why);
    if random_pays && costs.is_none_or(|ms| ms < UNIT_ANEW_MS) {
        let why = "each write is slow as soon as it is not in order, but the write unit is not known, and each may write a large unit anew";
        let of_merges = [Quantity::OpenAusRandom, Quantity::CloseCostMs, Quantity::Mapping];
        let told = all.iter_mut().filter(|f| of_merges.contains(&f.quantity) && (f.value.is_some() || f.at_least.is_some()));
        told.for_each(|f| *f = f.clone().withdrawn(why));
    }
}

/// ms: what costs less may be a large unit that is read and programmed anew (units of 192 KiB of simulated cards take 20 to 56).
const UNIT_ANEW_MS: f64 = 60.0;

/// Reads cross multiples that count from 0, or from where reads show erase blocks to begin. Where these begin elsewhere, larger pages than the one
/// that shows begin there, too, and nobody read across those.
fn off_grid(all: &mut [Finding]) {
    let get = |q: Quantity| all.iter().find(|f| f.quantity == q && f.number().is_some());
    let Some((block, begin)) = get(Quantity::EraseBlock).zip(get(Quantity::EraseBlockOffset)) else { return };
    let whole = |f: &Finding| f.number().unwrap_or(0.0) as u64;
    let [lo, hi] = begin.interval.map_or([whole(begin); 2], |ends| ends.map(|e| e.max(0.0) as u64));
    let (block, begins) = (whole(block), Bytes(whole(begin)));
    let Some(f) = all.iter_mut().find(|f| f.quantity == Quantity::AccessUnit && f.number().is_some()) else { return };
    if f.counted_from.is_some_and(|at| at.abs_diff(begins.0).is_multiple_of(block)) {
        return;
    }
    let unit = whole(f);
    let missed = |s: u64| block.is_multiple_of(s) && lo.div_ceil(s) * s > hi;
    if alignments(unit + 1, MIB - 1).into_iter().any(|s| s.is_multiple_of(unit) && missed(s)) {
        let why = format!(
            "{} or more: erase blocks begin at {begins}, and larger boundaries off the grid on which reads crossed them",
            Bytes(unit)
        );
        *f = f.clone().withdrawn(why);
    }
}

/// Pages that are read together are programmed together, and no so many are: a boundary far above the write unit, where no page shows below it,
/// may be that of a small erase block. Where a page shows, eight of them and more are none that are read together: on the cards of the fit
/// within a minute all six were wrong, most of them an erase block of 128 KiB or a piece of a map; of four pages and 128 KiB and more all 14 were right.
fn planes_beyond_units(all: &mut [Finding]) {
    let whole = |q: Quantity| all.iter().find(|f| f.quantity == q).and_then(Finding::number).map(|v| v as u64);
    let (page, unit) = (whole(Quantity::Page), whole(Quantity::WriteUnit));
    let (of, least, name) = match (page, unit) {
        (Some(page), _) => (page, TOGETHER * page, "page"),
        (None, Some(unit)) if whole(Quantity::EraseBlock).is_none() => (unit, TOGETHER * unit + 1, "write unit"),
        _ => return,
    };
    for f in all.iter_mut().filter(|f| f.quantity == Quantity::AccessUnit) {
        if let Some(planes) = f.number().filter(|p| *p >= least as f64) {
            let why = format!(
                "what shows at {} is far more than the {name} of {}: pages that are read together, or an erase block",
                Bytes(planes as u64),
                Bytes(of)
            );
            *f = f.clone().withdrawn(why);
        }
    }
}

/// What only a larger erase block tells from a small one, or a unit of writes that takes less than merging one does.
fn planes_or_block(all: &mut [Finding]) {
    let known =
        |f: &Finding| f.number().is_some() && (f.quantity == Quantity::EraseBlock || f.quantity == Quantity::WriteUnit && !f.or_block);
    if all.iter().any(known) {
        return;
    }
    for f in all.iter_mut().filter(|f| f.or_block && f.quantity != Quantity::WriteUnit) {
        if let Some(size) = f.number() {
            *f = f
                .clone()
                .withdrawn(format!("a step at {} may be that of a small erase block, as long as none is known", Bytes(size as u64)));
        }
    }
}

/// A search that met no limit and one that met a full cache: the first was taken by the cache, too.
fn hidden_by_cache(all: &mut [Finding]) {
    const CACHE: Quantity = Quantity::WriteCache;
    let Some(cache) = all.iter().find(|f| f.quantity == CACHE).and_then(|f| f.at_least) else { return };
    let why = format!("a write cache of {} or more takes such writes and hides what lies beyond it", CACHE.show(cache.0));
    // What made linear order slow, so that it could not be told, may have made random order slow.
    let untold = all.iter().any(|f| f.quantity == Quantity::OpenAusLinear && f.value.is_none() && f.at_least.is_none());
    for f in all.iter_mut() {
        let unlimited = match f.quantity {
            Quantity::OpenAusRandom if untold => f.value.is_some() || f.at_least.is_some(),
            Quantity::OpenAusLinear | Quantity::OpenAusRandom => f.value.is_none() && f.at_least.is_some(),
            // Judged past a full cache, it hid nothing.
            Quantity::Mapping => f.number() == Some(BY_PAGE) && !f.from.iter().filter_map(|n| by_name(n)).any(|a| a.past_cache()),
            _ => false,
        };
        if unlimited {
            *f = f.clone().withdrawn(why.clone());
        }
    }
}

/// How far experiments that speak to one quantity count as evidence of their own: 0, a second one adds nothing; 1, they err by chances of
/// their own. They share the card, the host and our code. The likeliest on the cards of the fit (`examples/fit_confidence.rs`).
pub const APART: f64 = 1.0;

/// Values that a quantity may have, about: what no experiment names is spread over as many.
fn values(q: Quantity) -> f64 {
    match q.row().unit {
        // A place inside an erase block, in sectors of 512 bytes (4 MiB).
        Unit::Bytes if q == Quantity::EraseBlockOffset => 8192.0,
        Unit::Bytes => alignments(512, 64 * MIB).len() as f64,
        Unit::Code => q.row().codes.len() as f64,
        // As many open AUs as anybody has reported.
        _ => 64.0,
    }
}

/// The posterior of what several findings of one quantity name, the likeliest first. What is missing of 1 is something else.
///
/// A finding gives its confidence to its value, and to each rival what it says; what is left over belongs to all other values alike. With
/// `apart` at 0 the weights of `n` findings are averaged (of logarithms), at 1 multiplied.
pub fn posterior(q: Quantity, findings: &[&Finding], apart: f64) -> Vec<(f64, f64)> {
    let named = |f: &Finding| -> Vec<(f64, f64)> {
        let rivals = f.rivals.iter().filter(|r| Some(r.value) != f.value).map(|r| (r.value.0, r.probability));
        f.number().map(|v| (v, f.confidence)).into_iter().chain(rivals).collect()
    };
    let mut all: Vec<f64> = findings.iter().flat_map(|f| named(f)).map(|n| n.0).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    let prior = 1.0 / values(q).max(all.len() as f64 + 1.0);
    let n = findings.len() as f64;
    let power = (1.0 + (n - 1.0) * apart) / n;
    // By how much each finding makes a value likelier than it was; for what it does not name, all of it alike.
    let ratios: Vec<(Vec<(f64, f64)>, f64)> = findings
        .iter()
        .map(|f| {
            let said = named(f);
            let left = (1.0 - said.iter().map(|s| s.1).sum::<f64>()).max(LEAST);
            let other = left / (1.0 - prior * said.len() as f64);
            (said.into_iter().map(|(v, p)| (v, p.max(LEAST) / prior)).collect(), other)
        })
        .collect();
    let weight = |v: Option<f64>| -> f64 {
        let ratio = |r: &(Vec<(f64, f64)>, f64)| r.0.iter().find(|s| Some(s.0) == v).map_or(r.1, |s| s.1);
        ratios.iter().map(|r| power * ratio(r).ln()).sum::<f64>().exp()
    };
    let mut out: Vec<(f64, f64)> = all.iter().map(|&v| (v, prior * weight(Some(v)))).collect();
    let sum = out.iter().map(|p| p.1).sum::<f64>() + (1.0 - prior * all.len() as f64) * weight(None);
    out.iter_mut().for_each(|p| p.1 /= sum);
    nandscope_stats::descending(&mut out, |a| a.1);
    out
}

/// No experiment rules out a value altogether: findings are never given at more than 99.9 %.
const LEAST: f64 = 1e-3;

fn one(q: Quantity, here: &[&Finding]) -> Finding {
    let decided: Vec<&Finding> = here.iter().copied().filter(|f| f.value.is_some()).collect();
    if decided.len() < 2 {
        let bound = here.iter().copied().find(|f| f.at_least.is_some());
        let mut f = decided.first().copied().or(bound).unwrap_or(here[0]).clone();
        if f.value.is_none() && f.at_least.is_none() && here.len() > 1 {
            // Of an experiment that ran twice, what it said last.
            let mut reasons: Vec<(&str, &str)> = vec![];
            for (from, why) in here.iter().filter_map(|f| Some((f.from.first()?.as_str(), f.reason.as_deref()?))) {
                reasons.retain(|r| r.0 != from);
                reasons.push((from, why));
            }
            f.reason = Some(reasons.iter().map(|(from, why)| format!("{from}: {why}")).collect::<Vec<_>>().join("; "));
        }
        return f;
    }
    if q == Quantity::CloseCostMs {
        return cost(&decided);
    }
    let posterior = posterior(q, &decided, APART);
    let mut f = Finding::decided(q, posterior[0].0, posterior[0].1).rivals(posterior[1..].iter().copied().take(3).filter(|p| p.1 > 0.001));
    for d in &decided {
        f.evidence.extend(d.evidence.iter().cloned());
        let new: Vec<_> = d.caveats.iter().filter(|c| !f.caveats.contains(c)).cloned().collect();
        f.caveats.extend(new);
        f.from.extend(d.from.iter().cloned());
        if d.number() != f.number() {
            let by = d.from.first().map_or("another experiment", String::as_str);
            f.caveats.push(format!("{by} says {} instead", q.show(d.number().unwrap_or(0.0))));
        }
    }
    f.off_grid = decided.iter().any(|d| d.off_grid && d.number() == f.number());
    // Errors are not chances of their own alone: a model that one experiment has wrong misleads it however clear its times are.
    f.disputed = decided.iter().any(|d| d.number() != f.number() && d.confidence >= SAID);
    f.cut = decided.iter().any(|d| d.cut);
    f.or_block = decided.iter().all(|d| d.or_block);
    // What one knows exactly needs no bounds.
    if decided.iter().all(|d| d.interval.is_some()) {
        f.interval = decided[0].interval;
    }
    if f.confidence < SAID && decided.iter().any(|d| d.number() != f.number()) {
        let said: Vec<String> = decided.iter().map(|d| q.show(d.number().unwrap_or(0.0))).collect();
        f.reason = Some(format!("the experiments disagree: {}", said.join(" against ")));
        f.value = None;
    }
    f
}

/// Costs are measured, not named: alike ones (within a fifth) strengthen the first, others are told apart.
fn cost(decided: &[&Finding]) -> Finding {
    // Linear order comes first: what random order costs depends on what was scattered.
    let better = |a: &Finding, b: &Finding| b.confidence > a.confidence + 0.3 || a.interval.is_none() && b.interval.is_some();
    let best = decided.iter().copied().reduce(|a, b| if better(a, b) { b } else { a }).unwrap_or(decided[0]);
    let mut f = best.clone();
    let v = f.number().unwrap_or(0.0);
    for d in decided.iter().filter(|d| !std::ptr::eq(**d, best)) {
        let other = d.number().unwrap_or(0.0);
        f.evidence.extend(d.evidence.iter().cloned());
        f.from.extend(d.from.iter().cloned());
        if (other / v - 1.0).abs() < 0.2 {
            f.confidence = f.confidence.max(d.confidence);
        } else {
            let by = d.from.first().map_or("another experiment", String::as_str);
            f.caveats.push(format!("{by} says {} ms", crate::units::three(other)));
        }
    }
    f
}

#[cfg(test)]
mod tests;
