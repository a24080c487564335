//! Erase block, page and access unit from `flashbench -a`: a sum of steps, each felt by the rows whose places are
//! multiples of its size.
//!
//! What fools it: the largest rows (some of their reads wrap over the end of the device: left out), a device whose size is
//! no multiple of the step (then one row below may cross by accident), a first erase block that is treated differently,
//! read-ahead.

mod contradict;
mod groups;
mod pieces;

use crate::finding::{Finding, Quantity};
use crate::infer::stats::{mad, median, quantile};
use crate::samples::import::Tables;
use crate::units::{Bytes, KIB, MIB, three};

use super::levels::{Design, Fit, height, posterior, residual};
use crate::infer::tables::span;
use groups::{Group, Row, groups};

/// The SD specification knows no larger allocation unit; a step above it is the end of the device, not a block.
const LARGEST: u64 = 64 * MIB;
/// Below this a step may be planes that are read together (as in the live test).
pub(super) const SMALL: u64 = 128 * KIB;
/// A largest row from here on is of a device beyond 7 GiB: blocks of 1 or 2 MiB are old by then, three times as much is not.
const LARGE_CARD: u64 = 2048 * MIB;
/// flashbench reads at this many places a row, as far apart as the largest alignment.
const PLACES: u64 = 7;
/// A second access costs at least a page read, some tens of µs in a few hundred: what is less than this share of a read is
/// a difference between places, not a boundary. Full trust begins at two and a half times as much.
const TINY: f64 = 0.01;

pub fn infer(tables: &Tables) -> Vec<Finding> {
    let mut out = vec![];
    let all = groups(tables);
    let most = all.iter().map(|g| g.rows.len()).max().unwrap_or(0);
    let against = contradict::found(tables);
    for g in all.iter().filter(|g| g.rows.len() * 3 >= most * 2) {
        let mut found = judge(g);
        if let Some(why) = against.as_ref().filter(|_| !g.write) {
            found
                .iter_mut()
                .for_each(|f| *f = Finding { from: std::mem::take(&mut f.from), ..Finding::undecided(f.quantity, why.clone()) });
        }
        out.extend(found);
    }
    out
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// The rows that do not wrap.
fn design(g: &Group) -> Design {
    // The two largest rows wrap over the end on nearly every device; there are enough others.
    let rows: Vec<&Row> = g.rows.iter().filter(|r| !g.wraps(r)).collect();
    let mut sizes: Vec<u64> = rows.iter().map(|r| r.align).filter(|&a| a <= LARGEST).collect();
    // What all rows feel lies at or below their common divisor, which with rows of 3 * 2^n is no row itself.
    let all = rows.iter().fold(0, |d, r| common_divisor(d, r.align));
    if all <= LARGEST && !sizes.contains(&all) && !sizes.is_empty() {
        sizes.push(all);
    }
    // Among rows of 3 * 2^n alone a step and a third of it look the same.
    if groups::only_threes(rows.iter().map(|r| &r.align)) {
        sizes.extend(sizes.clone().iter().filter(|&&s| s != all && s.is_multiple_of(3)).map(|s| s / 3).filter(|&s| s != all));
    }
    let feels = rows.iter().map(|r| sizes.iter().map(|&s| r.align.is_multiple_of(s) as u8 as f64).collect()).collect();
    let base: Vec<f64> = rows.iter().map(|r| r.on - r.diff).collect();
    let threes = rows.iter().map(|r| !r.align.is_power_of_two()).collect();
    Design { feels, threes, y: rows.iter().map(|r| r.diff).collect(), sizes, base: median(&base).max(1e-3) }
}

/// Probability of each value of one level, best first; the rest is "no such level".
fn marginal(fits: &[Fit], pick: impl Fn(&Fit) -> Vec<(u64, f64)>) -> Vec<(u64, f64)> {
    let mut out: Vec<(u64, f64)> = vec![];
    for f in fits {
        for (v, share) in pick(f) {
            match out.iter_mut().find(|o| o.0 == v) {
                Some(o) => o.1 += f.ln * share,
                None => out.push((v, f.ln * share)),
            }
        }
    }
    nandscope_stats::descending(&mut out, |a| a.1);
    out
}

/// What the steps of writes are: a card rewrites what it programs at one go, which may be one page or those of several planes.
fn programmed(page: Finding, unit: Finding) -> Vec<Finding> {
    let (first, all) = (page.number(), unit.number());
    let mut unit = Finding { quantity: Quantity::WriteUnit, ..unit };
    let Some(all) = all else { return vec![page, unit] };
    if let Some(first) = first.filter(|&f| f < all) {
        unit.caveats.push(format!("a smaller step at {} may be its page", Bytes(first as u64)));
    }
    let why = format!(
        "writes show what is programmed together, {}: one page, or pages of several planes; flashbench -a may show single ones",
        Bytes(all as u64)
    );
    let page = Finding { from: page.from, ..Finding::undecided(Quantity::Page, why) };
    vec![page, unit]
}

fn judge(g: &Group) -> Vec<Finding> {
    let quantities = [Quantity::EraseBlock, Quantity::Page, if g.write { Quantity::WriteUnit } else { Quantity::AccessUnit }];
    let from = |mut f: Finding| {
        f.from = vec![format!(
            "{}alignment rows ({}, {} {})",
            if g.write { "write " } else { "" },
            g.place,
            g.runs,
            if g.runs == 1 { "run" } else { "runs" }
        )];
        f
    };
    if g.rows.len() < 6 {
        let why = format!("only {} alignment rows at {}", g.rows.len(), g.place);
        return quantities.into_iter().map(|q| from(Finding::undecided(q, why.clone()))).collect();
    }
    let d = design(g);
    let fits = posterior(&d);
    let smallest = d.sizes.iter().copied().min().unwrap_or(0);
    let sorted = |f: &Fit| {
        let mut s: Vec<u64> = f.set.iter().map(|&i| d.sizes[i]).collect();
        s.sort_unstable();
        s
    };
    let of = |f: &Fit, s: u64| f.set.iter().zip(&f.heights).find(|x| d.sizes[*x.0] == s).map_or(0.0, |x| *x.1);
    // Below an erase block of a MiB and more, a step of 128 or 256 KiB is planes.
    let planes = |f: &Fit, s: u64| (SMALL..512 * KIB).contains(&s) && sorted(f).last().is_some_and(|&l| l >= MIB && l > s);
    // Of two large steps either may be the block, the higher one rather: the other is drift, or a row that lies halfway.
    // A step that even the smallest row has lies anywhere below it.
    let block = |f: &Fit| {
        let large: Vec<u64> = sorted(f).into_iter().filter(|&s| s >= SMALL && s > smallest && !planes(f, s)).collect();
        let all: f64 = large.iter().map(|&s| of(f, s)).sum();
        large.into_iter().map(|s| (s, of(f, s) / all)).collect()
    };
    // What every row shows is a matter of reading two sectors or of order, unless it is large: then a boundary lies at or
    // below the smallest row.
    let everywhere = |f: &Fit| {
        let next = sorted(f).into_iter().find(|&s| s > smallest).map_or(0.0, |s| of(f, s));
        of(f, smallest) < (TINY * 2.0 * d.base).max(0.2 * next)
    };
    let below = |f: &Fit| sorted(f).into_iter().filter(|&s| if s == smallest { !everywhere(f) } else { s < SMALL }).collect::<Vec<u64>>();
    // A ripple on a much higher step is no unit of its own.
    let unit = |f: &Fit| {
        let highest = below(f).iter().map(|&s| of(f, s)).fold(0.0, f64::max);
        let wide = sorted(f).into_iter().filter(|&s| planes(f, s));
        below(f).into_iter().chain(wide).rfind(|&s| of(f, s) > 0.1 * highest)
    };
    let one = |s: Option<u64>| s.map(|s| (s, 1.0)).into_iter().collect();
    let page = small(Quantity::Page, g, &d, &fits, &marginal(&fits, |f| one(below(f).first().copied())), smallest);
    let unit = small(Quantity::AccessUnit, g, &d, &fits, &marginal(&fits, |f| one(unit(f))), smallest);
    let mut out = vec![erase_block(g, &d, &fits, &marginal(&fits, block))];
    out.extend(if g.write { programmed(page, unit) } else { vec![page, unit] });
    let caveats = caveats(g, &d);
    for f in &mut out {
        f.caveats.extend(caveats.iter().cloned());
        if g.write {
            // A card that thrashes makes nonsense of the rest.
            f.confidence *= 0.8;
            f.caveats.push(
                "from writes across boundaries: unreliable as soon as the card has to finish one erase block before it opens the next"
                    .into(),
            );
        }
    }
    out.into_iter().map(from).collect()
}

/// How likely a regular boundary of this size is an erase block and not planes or a stripe: as in the live test. Beyond 7 GiB no card has
/// had erase blocks below 1 MiB; there the end of the device raises such rows.
fn is_erase_block(size: u64, top: u64) -> f64 {
    match size {
        s if s < MIB && top >= LARGE_CARD => 0.6,
        s if s >= MIB => 0.98,
        s if s >= 512 * KIB => 0.93,
        s if s >= 256 * KIB => 0.8,
        _ => 0.7,
    }
}

/// Probability that the step is twice `size`. On a device whose size is an odd multiple of `size`, the reads of that row
/// that wrapped over the end fall on multiples of twice `size`, and those of the larger rows do not: with `c` of the places
/// before the end, the row shows (7 - c) / c of the step. A first block that is treated differently lowers the row as well.
///
/// `part`: how much of the step the row of `size` shows.
fn twice_as_large(part: f64, size: u64, top: u64, device: Option<u64>) -> f64 {
    let normal = |x: f64, m: f64, s: f64| (-0.5 * ((x - m) / s).powi(2)).exp() / s / 2.507;
    let ratio = |c: u64| (PLACES - c) as f64 / c as f64;
    let (prior, ratios) = match device {
        Some(d) if d % (2 * size) == size => (0.25, vec![ratio(d.div_ceil(top).clamp(1, PLACES - 1))]),
        Some(_) => return 0.0,
        // The end is unknown: an odd multiple about one time in three, on a card that may be of the larger kind.
        None => (0.08, vec![ratio(4), ratio(5), ratio(6)]),
    };
    let same = 0.8 * normal(part, 1.0, 0.12) + 0.1 * normal(part, 0.78, 0.08) + 0.1;
    let other = prior * ratios.iter().map(|&r| normal(part, r, 0.08)).sum::<f64>() / ratios.len() as f64;
    other / (same + other)
}

fn erase_block(g: &Group, d: &Design, fits: &[Fit], p: &[(u64, f64)]) -> Finding {
    let q = Quantity::EraseBlock;
    let top = g.rows[0].align;
    let used: Vec<&Row> = g.rows.iter().filter(|r| !g.wraps(r)).collect();
    let Some(&(size, ahead)) = p.first() else { return Finding::undecided(q, flat(g, d, fits)) };
    let above: Vec<&Row> = used.iter().copied().filter(|r| r.align.is_multiple_of(size)).collect();
    let high: Vec<f64> = above.iter().map(|r| r.diff).collect();
    let low_from = fits
        .iter()
        .find(|f| f.set.iter().any(|&i| d.sizes[i] == size))
        .and_then(|f| f.set.iter().map(|&i| d.sizes[i]).filter(|&s| s < size).max());
    let low: Vec<f64> = used
        .iter()
        .filter(|r| !r.align.is_multiple_of(size) && low_from.is_none_or(|l| r.align.is_multiple_of(l)))
        .map(|r| r.diff)
        .collect();
    let text = format!(
        "{}s across multiples of {} take {} µs more, across smaller ones down to {} {} µs",
        g.access(),
        Bytes(size),
        span(high.iter().copied()),
        Bytes(low_from.unwrap_or_else(|| g.rows.iter().map(|r| r.align).min().unwrap_or(0))),
        span(low.iter().copied())
    );
    let (h, l) = (median(&high), median(&low));
    let lower: Vec<&Row> = g.rows.iter().filter(|r| r.align < size).collect();
    if !g.write && pieces::loaded(&above, &lower, h) {
        let why = format!(
            "reads on one side of a multiple of {} take as much longer at times as those across it: its map may be in pieces of that size \
             (writes would decide)",
            Bytes(size)
        );
        return Finding::undecided(q, why).evidence(text);
    }
    // What was not measured may have the step as well.
    let below = lower.iter().map(|r| r.align).max().unwrap_or(size);
    if below * 2 < size {
        let (from, to) = (Bytes(below * 2), Bytes(size));
        let why = format!("the log has no rows between {} and {to}: the erase block may be any size from {from} to {to}", Bytes(below));
        return Finding::undecided(q, why).evidence(text);
    }
    let mut trust = ahead * is_erase_block(size, top) * strength(height(d, fits, size), d);
    let mut caveats = vec![];
    // Powers of two only: a third of the places of a row are multiples of 3 x 2^n.
    let only_two = g.rows.iter().all(|r| r.align.is_power_of_two());
    let three_times = if !only_two || size > 16 * MIB {
        0.0
    } else if (MIB..4 * MIB).contains(&size) && top >= LARGE_CARD {
        0.25
    } else if (MIB..4 * MIB).contains(&size) {
        0.06
    } else {
        0.02
    };
    let own = used.iter().find(|r| r.align == size).map_or(f64::NAN, |r| r.diff);
    // Levels drift over the rows: the nearest ones and all of them are both fair to compare with.
    // Rows of 3 * 2^n have neighbours 2^n that do not feel the step.
    let near: Vec<f64> =
        used.iter().filter(|r| r.align > size && r.align <= 8 * size && r.align.is_multiple_of(size)).map(|r| r.diff).collect();
    let full = h.min(median(&near)) - l;
    let part = if low.is_empty() || near.is_empty() || full <= 0.0 { 1.0 } else { (own - l) / full };
    let twice = if g.own { 0.0 } else { twice_as_large(part, size, top, g.size) };
    trust *= 1.0 - twice;
    if twice > 0.1 {
        caveats.push(format!("the row of {} itself is lower ({} µs): the block may be twice as large", Bytes(size), three(own)));
    }
    if part > 1.5 {
        trust *= 0.6;
        caveats.push(format!(
            "the row of {} stands far above the larger ones: if it is an outlier, the block is {}",
            Bytes(size),
            Bytes(2 * size)
        ));
    }
    // Few rows above the step: what raises them may be the end of the device.
    if high.len() < 3 {
        trust *= 0.6;
        caveats.push(format!("only {} rows lie above the step", high.len()));
    }
    trust *= 1.0 - three_times;
    if trust.is_nan() || trust < 0.55 {
        let why = match p.get(1) {
            Some(&(other, second)) if ahead + second > 0.7 && second > 0.2 => {
                let (a, b) = (size.min(other), size.max(other));
                format!("the step lies at {} or at {}: the rows between do not decide", Bytes(a), Bytes(b))
            }
            _ if ahead * is_erase_block(size, 0) >= 0.5 => {
                "the largest regular boundary may be planes, a stripe or the end of the device".into()
            }
            _ => flat(g, d, fits),
        };
        let mut f = Finding::undecided(q, why);
        f.rivals = Finding::decided(q, 0.0, 0.0).rivals(p.iter().take(3).filter(|x| x.1 > 0.1).map(|&(v, p)| (v as f64, p))).rivals;
        return if f.rivals.is_empty() { f } else { f.evidence(text) };
    }
    if three_times > 0.1 {
        caveats.push(format!("with rows of powers of two {} cannot be distinguished from {}", Bytes(size), Bytes(3 * size)));
    }
    let mut rivals: Vec<(f64, f64)> = p.iter().skip(1).take(3).map(|&(v, p)| (v as f64, p)).filter(|r| r.1 > 0.005).collect();
    if twice > 0.01 {
        rivals.retain(|r| r.0 != 2.0 * size as f64);
        rivals.push((2.0 * size as f64, twice));
    }
    if three_times > 0.0 {
        rivals.push((3.0 * size as f64, three_times));
    }
    let mut f = Finding::decided(q, size as f64, trust.min(0.97)).rivals(rivals).evidence(text);
    f.caveats = caveats;
    f
}

/// Rows up to here would show the erase block of most cards that anybody has published.
const LARGE_ROW: u64 = 4 * MIB;

/// Why no erase block shows.
fn flat(g: &Group, d: &Design, fits: &[Fit]) -> String {
    let noise = residual(d, fits);
    let signal = fits.first().map_or(0.0, |f| f.heights.iter().copied().fold(0.0, f64::max));
    let largest = fits.first().and_then(|f| f.set.iter().map(|&i| d.sizes[i]).max());
    let most = g.rows.iter().map(|r| r.align).max().unwrap_or(0);
    match largest {
        _ if noise > 0.06 * d.base && noise * 3.0 > signal => {
            format!(
                "noise hides any boundary: rows that must be alike differ by ± {} µs where a {} takes {} µs",
                three(noise),
                g.access(),
                three(d.base)
            )
        }
        // What was not measured cannot be absent.
        found if most < LARGE_ROW && found.is_none_or(|s| s < SMALL) => {
            format!("the log has no rows above {}, and erase blocks are larger: flashbench -a without a limit prints them", Bytes(most))
        }
        Some(s) if s < SMALL && g.write => format!("no boundary above {} costs time in these writes", Bytes(s)),
        Some(s) if s < SMALL => format!("no boundary above {} costs time: this card hides its erase block from reads", Bytes(s)),
        Some(s) if d.sizes.iter().all(|&o| o >= s) => {
            format!("even the smallest row, {}, costs as much as the larger ones: the block has this size or a smaller one", Bytes(s))
        }
        Some(s) => format!("rows above {} do not agree on any larger boundary", Bytes(s)),
        None if g.write => format!("all {} rows are alike: no boundary costs time in these writes", g.rows.len()),
        None => format!("all {} rows are alike: this card hides its boundaries from reads, or was never written", g.rows.len()),
    }
}

fn small(q: Quantity, g: &Group, d: &Design, fits: &[Fit], p: &[(u64, f64)], smallest: u64) -> Finding {
    let none = 1.0 - p.iter().map(|x| x.1).sum::<f64>();
    let best = p.first().copied().unwrap_or((0, 0.0));
    if best.1 < 0.5 {
        let why = match () {
            // What was not measured cannot be absent.
            _ if smallest >= SMALL => {
                let least = g.rows.iter().map(|r| r.align).min().unwrap_or(smallest);
                format!("the log has no rows below {}: flashbench -a with a smaller --blocksize prints them", Bytes(least))
            }
            _ if none > 0.5 => format!("no boundary below {} costs time", Bytes(SMALL)),
            _ => format!("the smallest boundaries do not stand out: {} is only the likeliest", Bytes(best.0)),
        };
        return Finding::undecided(q, why);
    }
    let at = |a: u64| g.rows.iter().find(|r| r.align == a);
    let own = at(best.0).map_or(f64::NAN, |r| r.diff);
    let least = g.rows.iter().min_by_key(|r| r.align);
    if let Some(least) = least.filter(|_| best.0 == smallest) {
        return Finding::undecided(
            q,
            format!(
                "even the smallest row, {}, costs {} µs more: the boundary lies at or below {}",
                Bytes(least.align),
                three(least.diff),
                if least.align == smallest { "it".into() } else { Bytes(smallest).to_string() }
            ),
        );
    }
    // Half of a size is ruled out by a row that would feel it and does not feel the size.
    if !g.rows.iter().any(|r| r.align.is_multiple_of((best.0 / 2).max(1)) && !r.align.is_multiple_of(best.0)) {
        return Finding::undecided(
            q,
            format!(
                "{} costs {} µs more, and no row distinguishes it from {}: the boundary is at or below it",
                Bytes(best.0),
                three(own),
                Bytes(best.0 / 2)
            ),
        );
    }
    let below = g.rows.iter().filter(|r| !r.align.is_multiple_of(best.0) && r.align < 2 * best.0).map(|r| r.diff);
    let text = format!(
        "a {} across a multiple of {} takes {} µs more; across smaller ones {} µs",
        g.access(),
        Bytes(best.0),
        three(own),
        span(below)
    );
    // Multiples of a boundary cost at least as much as itself. Where the next row does not, something else is at work.
    let next = at(best.0 * 2).map_or(f64::NAN, |r| r.diff);
    let height = height(d, fits, best.0);
    if best.1 * strength(height, d) < 0.5 {
        let why =
            format!("the rows from {} on differ from the smaller ones by only {} µs in {} µs", Bytes(best.0), three(height), three(d.base));
        return Finding::undecided(q, why).evidence(text);
    }
    let mut trust = (best.1 * strength(height, d)).min(0.97);
    let mut caveats = vec![];
    // With long reads the rows end where smaller boundaries begin.
    let under = g.rows.iter().filter(|r| r.align < best.0).count();
    if q == Quantity::Page && under < 2 && smallest > 2 * KIB {
        trust = trust.min(0.75);
        caveats.push(format!("only the row of {} lies below: a smaller boundary would not show", Bytes(smallest)));
    }
    // What is no clearer than the rows below differ among themselves is no step to swear by.
    let lower: Vec<f64> = g.rows.iter().filter(|r| r.align < best.0).map(|r| r.diff).collect();
    let (lowest, highest) = (quantile(&lower, 0.0), quantile(&lower, 1.0));
    if own - highest < 1.2 * (highest - lowest).max(residual(d, fits)) && under < 4 {
        trust = trust.min(0.75);
    }
    if next < 0.75 * own && own - next > 1.5 * residual(d, fits) {
        trust = trust.min(0.75);
        caveats.push(format!(
            "the row of {} ({} µs) is lower than that of {} ({} µs){}",
            Bytes(best.0 * 2),
            three(next),
            Bytes(best.0),
            three(own),
            if g.write { "" } else { ": read-ahead inside the unit" }
        ));
    }
    let mut f =
        Finding::decided(q, best.0 as f64, trust).rivals(p.iter().skip(1).take(3).map(|&(v, p)| (v as f64, p)).filter(|r| r.1 > 0.005));
    f.caveats = caveats;
    f.evidence(text)
}

/// What a step is worth for its height alone.
fn strength(height: f64, d: &Design) -> f64 {
    ((height / d.base - TINY) / (1.5 * TINY)).clamp(0.0, 1.0)
}

fn caveats(g: &Group, d: &Design) -> Vec<String> {
    let mut out = vec![];
    let lean: Vec<f64> = g.rows.iter().map(|r| (r.post - r.pre) / d.base).collect();
    // Pre is read first and post last, at the same place every time.
    if median(&lean).abs() > 0.04 {
        let (a, b) = if median(&lean) > 0.0 { ("after", "before") } else { ("before", "after") };
        let why = if g.write { "the card may have been finishing other writes" } else { "read-ahead or a cache is at work" };
        out.push(format!("{}s {a} a boundary take {:.0} % longer than those {b} it: {why}", g.access(), 100.0 * median(&lean).abs()));
    }
    let top = g.rows[0].align;
    let rest: Vec<f64> = g.rows.iter().filter(|r| r.align * 4 <= top && r.align * 64 > top).map(|r| r.diff).collect();
    let away: Vec<&Row> = g
        .rows
        .iter()
        .filter(|r| r.align * 2 >= top)
        .filter(|r| (r.diff - median(&rest)).abs() > (4.0 * mad(&rest)).max(0.15 * median(&rest).abs()))
        .collect();
    if !away.is_empty() && g.rows.len() >= 10 && !g.own {
        let what = g.access();
        out.push(format!(
            "the largest rows differ from the next: some of their {what}s wrap over the end of the device; they were left out"
        ));
    }
    if g.repeat.is_finite() && g.repeat > 0.05 * d.base {
        out.push(format!("runs differ by ± {} µs in the same row", three(g.repeat)));
    }
    out
}

#[cfg(test)]
#[path = "tables_tests.rs"]
mod tables_tests;
