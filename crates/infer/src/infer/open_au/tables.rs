//! Open AUs and the cost of closing one, from `flashbench --open-au` tables with different N.
//!
//! Below the limit a write takes as long with N AUs as with one; above it every round closes some, and the time of a
//! write stops depending on its size. Each N is weighed against the smaller ones, over the middle sizes: up to a quarter
//! of an AU (larger writes hide the cost, Q12) and from 32 KiB on (smaller ones may go to a log of their own). Under
//! "fits" the times of all sizes are alike but for one common drift (slow decline with N is not a cliff), noise and single
//! stalls; under "exceeds" they are longer by a factor that is free, but common in kind. No monotony above the limit is
//! assumed (Q11). All runs add up to one posterior over the limit.

mod closings;
mod cut;
mod limit;
mod repeats;

use crate::finding::{CONTRADICTED, Finding, Quantity};
use crate::infer::stats::{ln_sum_exp, median, quantile};
use crate::samples::import::KEPT_APART;
use crate::samples::import::Tables;
use crate::units::{Bytes, three};
use std::f64::consts::LN_2;

use closings::Closings;
use cut::Cut;
use limit::{DRIFT, MOST, SMALLEST, Series, Weighed, in_order, ln_pays, series, slope};

/// Both orders, and the cost of closing an AU from whatever exceeds the limits.
pub fn infer(tables: &Tables) -> Vec<Finding> {
    let mut closings = Closings::default();
    let mut out = order(tables, false, &mut closings);
    out.extend(order(tables, true, &mut closings));
    out.extend(closings.judge());
    out
}

fn order(tables: &Tables, random: bool, closings: &mut Closings) -> Vec<Finding> {
    let q = if random { Quantity::OpenAusRandom } else { Quantity::OpenAusLinear };
    let order = if random { "random" } else { "sequential" };
    if let Some(why) = impossible(tables, random).or_else(|| repeats::differ(tables, random)) {
        return vec![Finding::undecided(q, why)];
    }
    let all = series(tables, random);
    let most = all.iter().flat_map(|s| s.counts()).max().unwrap_or(0);
    if most == 0 {
        let here = tables.open.iter().filter(|t| t.random.unwrap_or(false) == random).count();
        let nameless = tables.open.iter().filter(|t| t.n.is_none()).count();
        let why = match () {
            _ if here > nameless => format!(
                "no {order} table has two rows of a quarter AU or less, where a merge shows; flashbench -O with a smaller --blocksize prints them"
            ),
            _ if nameless > 0 && !random => "the tables do not say how many AUs were written".into(),
            _ => return vec![],
        };
        return vec![Finding::undecided(q, why)];
    }
    // No series may rule a limit out for good.
    let mut ln = vec![0.0; most as usize + 1];
    let weighed: Vec<Weighed> = all.iter().map(Weighed::of).collect();
    for w in &weighed {
        let one: Vec<f64> = (0..=most).map(|k| w.ln_limit(k)).collect();
        let top = one.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        ln.iter_mut().zip(&one).for_each(|(l, o)| *l += (o - top).max(-2.0 * MOST));
    }
    ln[0] += if all.iter().any(|s| s.counts()[0] == 1) { -2.0 * MOST } else { 0.0 };
    // "That many or more" stands for several limits.
    ln[most as usize] += f64::ln(4.0);
    let sum = ln_sum_exp(&ln);
    let p: Vec<f64> = ln.iter().map(|l| (l - sum).exp()).collect();
    let merges = alone(&all, random);
    let too_fast = || all.iter().filter(|s| s.counts()[0] == 1).all(|s| copied(s) < MERGED);
    let free = random && merges > 0.5 && (too_fast() || order_is_free(&all, &series(tables, false)));
    let mut f = decide(q, order, &all, &p, if free { 0.0 } else { merges });
    if free {
        f.confidence = f.confidence.min(CONTRADICTED);
    }
    let said = f.number().or(f.at_least.map(|b| b.0)).filter(|&k| k > 0.0);
    let against = said.and_then(|k| Some((k, weighed.iter().find_map(|w| w.against(k as u32))?)));
    // Not two cards, but a fall that is no merge.
    let before = |n: u32| all.iter().flat_map(|s| s.counts()).filter(|&c| c < n).max();
    let shallow = against.and_then(|(k, n)| if f64::from(n) <= k { before(n) } else { Some(k as u32) });
    let shallow = shallow.filter(|&b| shallow_cut(&all, b).is_some());
    if let Some(b) = shallow {
        f = bound_below(q, &all, b, p[b as usize..].iter().sum::<f64>().min(CONTRADICTED));
    } else if let Some((k, n)) = against {
        let side = if n as f64 > k { "fast" } else { "slow" };
        let why = format!(
            "the tables contradict each other: {n} AUs are {side}, the others say {k}; two cards, or a card that was busy. {KEPT_APART}"
        );
        f = Finding { evidence: f.evidence, ..Finding::undecided(q, why) };
    }
    if let Some(k) = f.number().filter(|&k| k > 0.0) {
        closings.add(&all, k as u32, f.confidence);
    }
    let place: Vec<String> = all.iter().map(|s| s.place.clone()).collect();
    f.from = vec![format!("open-AU tables, {order} ({})", place.join(", "))];
    vec![f]
}

/// From one size to the next smaller one no card gets so many times faster; a wrong unit makes it a thousand times.
const JUMP: f64 = 100.0;

/// Rates that no card has: the first such pair of rows.
fn impossible(tables: &Tables, random: bool) -> Option<String> {
    let (t, a, b) = in_order(tables, random)
        .flat_map(|t| t.rows.windows(2).map(move |w| (t, w[0], w[1])))
        .find(|(_, a, b)| b.size < a.size && b.rate > JUMP * a.rate)?;
    let rate = crate::flashbench::format::rate;
    Some(format!(
        "the rates jump from {} at {} to {} at {} ({}, line {}), which no card's do: is a unit wrong (K/s, M/s)?",
        rate(a.rate),
        Bytes(a.size),
        rate(b.rate),
        Bytes(b.size),
        tables.at(t.place),
        b.line
    ))
}

/// Random writes in one AU take less than twice as long as sequential ones, which have no merges there: random order costs less than the writes
/// themselves, and a merge more.
fn order_is_free(random: &[Series], sequential: &[Series]) -> bool {
    let beside = |s: &Series| {
        let other = sequential.iter().find(|o| o.au == s.au && o.file_index == s.file_index)?;
        Some(s.ratios(1, &other.reference(&[1])))
    };
    let ratios: Vec<f64> = random.iter().filter_map(beside).flatten().collect();
    !ratios.is_empty() && median(&ratios) < LN_2 && alone(sequential, false) < 0.5
}

/// Share of an AU that a merge copies at least: what takes less is a unit that is programmed at one go, as large as it may be.
const MERGED: f64 = 0.25;

/// Share of an AU that could be written at the best rate of any table in the time of one small write with one AU.
fn copied(s: &Series) -> f64 {
    let times: Vec<f64> = s.at(1).iter().map(|x| x.1.exp()).collect();
    median(&times) / 1e3 * fastest(s) / s.au as f64
}

/// Probability that even one AU pays for every write, from the tables of one AU.
fn alone(all: &[Series], random: bool) -> f64 {
    let ones: Vec<f64> = all.iter().filter(|s| s.counts()[0] == 1).map(|s| ln_pays(slope(&s.at(1)))).collect();
    if ones.is_empty() {
        return 0.0;
    }
    // Linear order in one AU is what every card is made for.
    let prior: f64 = if random { 0.25 } else { 0.03 };
    let ln = (prior / (1.0 - prior)).ln() + ones.iter().sum::<f64>().clamp(-MOST, MOST);
    1.0 / (1.0 + (-ln).exp())
}

fn decide(q: Quantity, order: &str, all: &[Series], p: &[f64], alone: f64) -> Finding {
    let most = p.len() - 1;
    let (k, top) = p.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0));
    let rivals = |skip: usize| {
        let mut r: Vec<(f64, f64)> = p.iter().enumerate().filter(|x| x.0 != skip && *x.1 > 0.01).map(|(k, &p)| (k as f64, p)).collect();
        nandscope_stats::descending(&mut r, |a| a.1);
        r.truncate(3);
        r
    };
    let quoted = all.iter().filter_map(|s| quote(s, k as u32)).take(3);
    let tell = |mut f: Finding| {
        f.evidence.extend(quoted.clone());
        f.evidence.extend(all.iter().flat_map(|s| [faster(s, |n| n <= k as u32), faster(s, |n| n > k as u32)]).flatten().take(3));
        f.caveats.extend(remarks(all, k as u32, most as u32));
        f
    };
    if alone > 0.5 {
        let each = all.iter().filter(|s| s.counts()[0] == 1).map(|s| median(&s.at(1).iter().map(|x| x.1.exp()).collect::<Vec<_>>()));
        let text =
            format!("with one AU already a {order} write takes about {} ms, whatever its size", three(median(&each.collect::<Vec<_>>())));
        let cliff = k < most && k > 1 && top > 0.8;
        if !cliff {
            return tell(Finding::decided(q, 0.0, (0.92 * alone).min(0.9)).rivals([(1.0, 1.0 - alone)]).evidence(text));
        }
        // Both are true: every write pays something, and from one N on much more. Where each write is a merge the AUs of the row before are
        // merged as well, which makes a cut: of 19 such cuts in logs of simulated cards whose truth is either, none was open in 17.
        let text = format!("{text}; above {k} AUs more");
        return tell(Finding::decided(q, 0.0, 0.75 * alone).rivals([(k as f64, 0.15 * top)]).evidence(text));
    }
    // Untried N between two that were: the limit is any of them.
    let tested: Vec<u32> = all.iter().flat_map(|s| s.counts()).collect();
    let cut = Cut::of(all, k as u32);
    if k < most && k > 0 && top >= 0.65 && shallow_cut(all, k as u32).is_some() {
        return tell(bound_below(q, all, k as u32, top.min(CONTRADICTED)));
    }
    if k < most && top >= 0.65 {
        let over = all.iter().map(|s| s.counts().iter().filter(|&&n| n > k as u32).count()).sum::<usize>();
        let trust = top * if over > 1 { 0.97 } else { 0.93 };
        let mut f = Finding::decided(q, k as f64, trust.min(0.96)).rivals(rivals(k));
        if let Some(c) = cut.filter(|c| !c.flat()) {
            if q == Quantity::OpenAusRandom {
                return tell(Finding::undecided(q, format!("with more than {k} AUs {}", c.no_merge())));
            }
            if c.slows_whole_aus() {
                return tell(bound_below(q, all, k as u32, top.min(CONTRADICTED)));
            }
            f.confidence = f.confidence.min(GROWS);
            f = f.caveat(c.no_merge());
        }
        return tell(f);
    }
    // The largest bound that is nearly sure.
    let tail = |j: usize| p[j..].iter().sum::<f64>();
    // Two or three sizes are little to see a partial slowdown in.
    let sizes = |n: u32| all.iter().map(|s| s.at(n).len()).max().unwrap_or(0);
    // Writes that a cache gathers look even above the limit too: without a slow N or a table of one AU that is not known.
    let alone = |j: usize| j == most && all.iter().all(|s| s.counts()[0] > 1);
    let trust = |j: usize| ((if sizes(j as u32) < 4 { 0.9 } else { 0.97 }) * tail(j).min(0.98)).min(if alone(j) { 0.75 } else { 1.0 });
    let bound = (1..=most).rev().filter(|&j| tested.contains(&(j as u32))).find(|&j| tail(j) >= 0.7);
    let next = tested.iter().copied().filter(|&n| bound.is_some_and(|b| n as usize > b)).min();
    match bound {
        Some(b) if b == most && all.iter().all(|s| fastest(s) < PROGRAMS) => {
            let rate = crate::flashbench::format::rate(all.iter().map(fastest).fold(0.0, f64::max));
            let why = format!(
                "at {rate} writes of every size are slower than flash is programmed: each may be a merge, however many AUs are open, or the bus is slow"
            );
            tell(Finding::undecided(q, why))
        }
        Some(b) if b == most => {
            let why = format!("no cliff up to {b} AUs, and more were not tried");
            // A rate that falls by more than drift may be one that has begun to fall.
            let falls = all.iter().any(|s| s.counts().split_first().is_some_and(|(first, _)| fall(s, *first, most as u32) > DRIFT));
            tell(Finding::at_least(q, b as f64, trust(b).min(if falls { CONTRADICTED } else { 1.0 }), why))
        }
        Some(b) if b > 1 || next.is_some_and(|n| n > 2) => {
            let why = match next {
                Some(n) if tail(n as usize) < 0.15 => format!("{n} AUs are slow; between {b} and {n} nothing was tried"),
                Some(n) => format!("{b} AUs are fast; at {n} some sizes are slower and others are not"),
                None => format!("{b} AUs are fast"),
            };
            let mut f = Finding::at_least(q, b as f64, trust(b), why);
            f.rivals = Finding::decided(q, -1.0, 0.0).rivals(rivals(usize::MAX)).rivals;
            tell(f)
        }
        _ => {
            let first = tested.iter().min().copied().unwrap_or(0);
            let why = if first > 1 && p[first as usize..].iter().sum::<f64>() < 0.5 {
                format!("the smallest number tried, {first}, is slow already")
            } else {
                "the tables contradict each other: fast and slow counts are mixed".into()
            };
            tell(Finding::undecided(q, why))
        }
    }
}

fn aus(n: u32) -> String {
    if n == 1 { "one AU".into() } else { format!("{n} AUs") }
}

/// ln of how much longer a write takes with `last` AUs than with `first`, over the middle sizes; NaN where one was not tried.
fn fall(s: &Series, first: u32, last: u32) -> f64 {
    median(&s.ratios(last, &s.reference(&[first])))
}

/// Bytes a second below which a write is no programming of flash: a sector in 3 ms, the longest that data sheets name for a page.
const PROGRAMS: f64 = 512.0 / 3e-3;

/// The best rate of any size and count, bytes a second.
fn fastest(s: &Series) -> f64 {
    let rates = s.ms.values().flatten().map(|(z, ln)| *z as f64 / ln.exp() * 1e3);
    rates.fold(0.0, f64::max)
}

/// A count above which the extra time grows with the size of the write, as that of a merge does not. On published logs such counts are what an
/// expert reads; of 13 in logs of simulated cards one was right.
const GROWS: f64 = 0.65;

/// The cut above `k` AUs, where it costs less than the write itself: a merge costs more.
fn shallow_cut(all: &[Series], k: u32) -> Option<Cut> {
    Cut::of(all, k).filter(Cut::shallow)
}

/// So many are fast, and what comes above is no merge.
fn bound_below(q: Quantity, all: &[Series], k: u32, trust: f64) -> Finding {
    let (what, least) = Cut::of(all, k).map_or_else(Default::default, |c| (c.no_merge(), c.least()));
    let next = if least > SMALLEST {
        "smaller writes would decide it (flashbench -O -b 32K)"
    } else if q == Quantity::OpenAusLinear {
        "random order may show it more clearly (flashbench -O -r)"
    } else {
        "more AUs would decide it (flashbench -O -r -0)"
    };
    Finding::at_least(q, f64::from(k), trust, format!("with more than {k} AUs {what}; {next}"))
}

/// The two rows that show the limit best, in the log's own figures.
fn quote(s: &Series, k: u32) -> Option<String> {
    let counts = s.counts();
    let fits = counts.iter().rev().find(|&&n| n <= k)?;
    match counts.iter().find(|&&n| n > k) {
        Some(over) => {
            let worst = s.at(*over).iter().filter_map(|(z, y)| Some((*z, y - s.ms[fits].get(z)?))).max_by(|a, b| a.1.total_cmp(&b.1))?;
            beside(s, worst.0, *fits, *over)
        }
        None => {
            let z = s.at(*fits).get(s.at(*fits).len() / 2)?.0;
            if counts[0] == *fits {
                return Some(format!("{}: {} ({})", Bytes(z), cell(s, *fits, z)?, s.rows(&[(*fits, z)])));
            }
            beside(s, z, counts[0], *fits)
        }
    }
}

/// "256 KiB: 13M/s with 7 AUs, 1.53M/s with 8 AUs (log:62, 69)".
fn beside(s: &Series, size: u64, a: u32, b: u32) -> Option<String> {
    Some(format!("{}: {}, {} ({})", Bytes(size), cell(s, a, size)?, cell(s, b, size)?, s.rows(&[(a, size), (b, size)])))
}

/// "13M/s with 7 AUs".
fn cell(s: &Series, n: u32, size: u64) -> Option<String> {
    let ms = s.ms.get(&n)?.get(&size)?;
    Some(format!("{} with {}", crate::flashbench::format::rate(size as f64 / ms.exp() * 1e3), aus(n)))
}

/// A gain that two sizes show, and half of all, is no accident of a row: rows of one N differ by a few per cent from run to run.
const GAIN: f64 = 0.1;

/// More AUs that are faster than fewer, of those that `of` names: some cards write them to more chips at once, or get better at
/// keeping open what comes back (Q8).
fn faster(s: &Series, of: impl Fn(u32) -> bool) -> Option<String> {
    let counts: Vec<u32> = s.ms.keys().copied().filter(|&n| of(n)).collect();
    let gains = |few: u32, more: u32| -> Vec<(u64, f64)> {
        s.ms[&few].iter().filter(|x| *x.0 < s.au).filter_map(|(z, y)| Some((*z, y - s.ms[&more].get(z)?))).collect()
    };
    let (few, more, all) = counts
        .iter()
        .enumerate()
        .flat_map(|(i, &few)| counts[i + 1..].iter().map(move |&more| (few, more)))
        .map(|(few, more)| (few, more, gains(few, more)))
        .filter(|(_, _, all)| {
            all.iter().filter(|g| g.1 > GAIN).count() >= 2 && median(&all.iter().map(|g| g.1).collect::<Vec<_>>()) > GAIN / 2.0
        })
        .max_by(|a, b| {
            let sum = |g: &[(u64, f64)]| median(&g.iter().map(|x| x.1).collect::<Vec<_>>());
            sum(&a.2).total_cmp(&sum(&b.2))
        })?;
    let best = all.iter().max_by(|a, b| a.1.total_cmp(&b.1))?.0;
    let what = if few == 1 { "one AU".to_string() } else { few.to_string() };
    Some(format!("{} interleaved are faster than {what}: {}", aus(more), beside(s, best, few, more)?))
}

/// Things about the tables that a reader would remark on.
fn remarks(all: &[Series], k: u32, most: u32) -> Vec<String> {
    let mut out: Vec<String> = vec![];
    for s in all {
        let counts = s.counts();
        let fit: Vec<u32> = counts.iter().copied().filter(|&n| n <= k).collect();
        let over: Vec<u32> = counts.iter().copied().filter(|&n| n > k).collect();
        if let ([first, .., last], true) = (&fit[..], k >= most) {
            let falls = s.ratios(*last, &s.reference(&[*first]));
            let fall = fall(s, *first, *last);
            if fall > 0.1 {
                let percent = |x: f64| format!("{:.0}", 100.0 * (-x).exp());
                let (least, most) = (percent(quantile(&falls, 1.0)), percent(quantile(&falls, 0.0)));
                let sizes = if least == most { String::new() } else { format!(" ({least} to {most} % by size)") };
                out.push(format!(
                    "slow decline without a cliff: with {} {} % of the rate of {} is left{sizes}",
                    aus(*last),
                    percent(fall),
                    aus(*first)
                ));
            }
        }
        if let (Some(a), Some(b)) = (fit.last(), over.first()) {
            let small: Vec<f64> = s.ms[b].iter().filter(|x| *x.0 < SMALLEST).filter_map(|(z, y)| Some(y - s.ms[a].get(z)?)).collect();
            let jump = s.ratios(*b, &s.reference(&fit));
            if !small.is_empty() && median(&small) < 0.3 * median(&jump) {
                out.push(format!("writes below {} are fast: they go to a log or a cache", Bytes(SMALLEST)));
            }
            if median(&jump) < 1.1 {
                out.push(format!("the cut is a factor of {:.1} only", median(&jump).exp()));
            }
        }
    }
    out.sort();
    out.dedup();
    out
}

#[cfg(test)]
mod tests;
