//! When does a card rewrite its erase block, and how long does that take? From small writes one behind the other (C12 to C18).
//!
//! A card without a log rewrites an erase block at the end of each transaction (A), or whenever a small buffer is full (B). In a
//! row of small writes A shows as the same high cost for every write, whatever its size, B as a high cost at regular places.
//! Pages that are collected and programmed look like B, but no page takes five milliseconds to program.

use super::stats::{bootstrap_median, ln_any_order, mad, median, quantile};
use crate::finding::{Finding, Quantity};
use crate::units::{Bytes, KIB, MIB, SECTOR, rate, three};

/// One look at the card: it took in the bytes `from..to` and was busy for `ms` then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    pub from: u64,
    pub to: u64,
    pub ms: f64,
    /// What follows is the end of a transaction, and nothing was taken in since the look before.
    pub stop: bool,
}

/// The longest rewrite of a chip of small pages, in ms.
const SMALL_MS: f64 = 24.0;

/// Below this, in ms, nothing is rewritten: it is the time of programming pages.
pub(super) const PROGRAM_MS: f64 = 3.0;

/// The least time in ms that must be a rewrite, and how sure that is. Cards of 512 MiB and less have chips of single pages, which
/// are programmed in 3 ms; larger ones program many pages of many planes as one, and take up to 20 ms for it (Q14, OLPC's cards).
fn least_rewrite(capacity: Option<u64>) -> (f64, f64) {
    match capacity {
        Some(c) if c <= 512 * MIB => (5.0, 1.0),
        Some(_) => (30.0, 1.0),
        None => (15.0, 0.75),
    }
}

/// Splits times in a fast and a slow group where the largest relative gap lies; none where they are of one kind.
pub(super) fn split(ms: &[f64]) -> Option<(f64, f64, f64)> {
    let mut v: Vec<f64> = ms.to_vec();
    v.sort_by(f64::total_cmp);
    let n = v.len();
    // One or two outliers are stalls, not a group.
    let least = (n / 128).max(3);
    if n < 4 * least {
        return None;
    }
    // Half a millisecond is lost in the noise of most hosts.
    let gap = |i: usize| (v[i] + 0.5) / (v[i - 1] + 0.5);
    let at = (least..=n - least).max_by(|&a, &b| gap(a).total_cmp(&gap(b)))?;
    let (fast, slow) = (median(&v[..at]), median(&v[at..]));
    let apart = slow - fast > 4.0 * (mad(&v[..at]) + mad(&v[at..])).max(0.02 * fast);
    (gap(at) > 1.3 && apart).then(|| ((v[at - 1] + v[at]) / 2.0, fast, slow))
}

/// Where slow looks lie: at multiples of a size, from a phase on.
#[derive(Clone, Debug, PartialEq)]
struct Lattice {
    size: u64,
    phase: u64,
    probability: f64,
    /// Looks that contradict it, of how many.
    off: usize,
    of: usize,
    rivals: Vec<(u64, f64)>,
}

/// The size at whose multiples the slow looks lie, with its probability against other sizes and against chance.
fn lattice(looks: &[Look], border: f64) -> Option<Lattice> {
    let n = looks.len();
    let slow = looks.iter().filter(|l| l.ms > border).count();
    let least = looks.iter().map(|l| l.to - l.from).filter(|l| *l > 0).min()?;
    if n < 16 || slow < 3 {
        return None;
    }
    // A lattice is wrong in less than half of the places, else its opposite would be the better one.
    let ln_lattice = |off: usize| if 2 * off > n { f64::NEG_INFINITY } else { ln_any_order(n, off) };
    // Half the belief is in the sizes chips come in, 2^k and 3*2^k; the rest in any whole number of sectors.
    let usual = |s: u64| (s / 512).is_power_of_two() || (s.is_multiple_of(1536) && (s / 1536).is_power_of_two());
    let any = (1..=256).map(|k| 512 * k).filter(|s| !usual(*s));
    let mut sizes: Vec<u64> = (0..24).flat_map(|k| [512u64 << k, 1536 << k]).chain(any).filter(|s| *s > least && *s <= MIB).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let few = sizes.iter().filter(|s| usual(**s)).count() as f64;
    let ln_size = |s: u64| -(2.0 * if usual(s) { few } else { sizes.len() as f64 - few }).ln();
    let mut all: Vec<(u64, u64, usize, f64)> = vec![];
    for &size in &sizes {
        let step = least.max(size / 64);
        for phase in (0..size).step_by(step as usize) {
            let due = |l: &Look| (l.to + size - phase) / size > (l.from + size - phase) / size;
            let off = looks.iter().filter(|l| due(l) != (l.ms > border)).count();
            let places = size / step;
            // Half the belief is in grids that begin at the start of the card.
            let prior = if phase == 0 { 0.5f64.ln() } else { (0.5 / (places as f64 - 1.0).max(1.0)).ln() };
            all.push((size, phase, off, ln_lattice(off) + prior + ln_size(size)));
        }
    }
    let chance = ln_any_order(n, slow);
    let top = all.iter().map(|a| a.3).fold(chance, f64::max);
    let total: f64 = all.iter().map(|a| (a.3 - top).exp()).sum::<f64>() + (chance - top).exp();
    let mut by_size: Vec<(u64, f64)> =
        sizes.iter().map(|&s| (s, all.iter().filter(|a| a.0 == s).map(|a| (a.3 - top).exp()).sum::<f64>() / total)).collect();
    nandscope_stats::descending(&mut by_size, |a| a.1);
    let (size, probability) = *by_size.first()?;
    let best = all.iter().filter(|a| a.0 == size).max_by(|a, b| a.3.total_cmp(&b.3))?;
    Some(Lattice {
        size,
        phase: best.1,
        probability,
        off: best.2,
        of: n,
        rivals: by_size.into_iter().skip(1).take(3).filter(|r| r.1 > 0.005).collect(),
    })
}

/// Whether the slow ones of these looks are those that reach a multiple of `size`, whatever the fast ones cost.
pub fn shows(looks: &[Look], size: u64) -> bool {
    let times: Vec<f64> = looks.iter().map(|l| l.ms).collect();
    let Some((border, ..)) = split(&times) else { return false };
    lattice(looks, border).is_some_and(|l| l.size == size && l.probability >= 0.8 && l.off * 50 <= l.of)
}

/// Findings from looks in linear order, with the largest transaction they were part of. `what` names them in the evidence.
///
/// `fixed` is the time in ms that each transaction takes whatever its size, where transactions of several sizes were timed;
/// `capacity` is that of the card in bytes; `longest` is that of the longest writes that were timed, stalls left out, where longer ones than these were.
pub fn infer(looks: &[Look], fixed: Option<f64>, longest: Option<f64>, capacity: Option<u64>, what: &str) -> Vec<Finding> {
    let (least, sure) = least_rewrite(capacity);
    const Q: [Quantity; 4] = [Quantity::RewritePolicy, Quantity::WriteBuffer, Quantity::RewriteMs, Quantity::ChipClass];
    if looks.len() < 16 {
        let why = format!("only {} writes were timed", looks.len());
        return Q.map(|q| Finding::undecided(q, why.clone())).to_vec();
    }
    let data: Vec<Look> = looks.iter().copied().filter(|l| !l.stop).collect();
    let stops: Vec<f64> = looks.iter().filter(|l| l.stop).map(|l| l.ms).collect();
    let times: Vec<f64> = data.iter().map(|l| l.ms).collect();
    // Busy after Stop Tran and not after the data: the transaction is what counts.
    if stops.len() >= 8 {
        // Single blocks have no stop and are a transaction each.
        let (s, d) = (median(&stops), quantile(&times, 0.9));
        if s > least && s > 4.0 * d {
            let text = format!("{what}: busy for {} ms after Stop Tran, for {} ms after most data blocks", three(s), three(d));
            return at_the_end_of_what(&stops, 4 * SECTOR, 0.97 * sure, text);
        }
    }
    let Some((border, fast, slow)) = split(&times) else {
        let usual = fixed.unwrap_or_else(|| median(&times));
        if usual > least && fixed.is_some() {
            let text = format!("{what}: {} ms for every write, whatever its size", three(usual));
            return at_the_end_of_what(&[usual], 4 * SECTOR, 0.9 * sure, text);
        }
        if let Some(long) = longest.filter(|l| *l > usual + PROGRAM_MS) {
            let why = format!(
                "writes of this size take {} ms, and longer ones up to {} ms: the rows are too short to decide",
                three(usual),
                three(long)
            );
            return Q.map(|q| Finding::undecided(q, why.clone())).to_vec();
        }
        if usual < PROGRAM_MS {
            let text = format!("{what}: {} ms for each write", three(usual));
            let policy = Finding::decided(Quantity::RewritePolicy, 0.0, 0.9).evidence(text);
            let none = "nothing is rewritten in a row of small writes";
            return vec![
                policy,
                Finding::undecided(Quantity::WriteBuffer, "no write of a row costs more than its neighbours"),
                Finding::undecided(Quantity::RewriteMs, none),
                Finding::undecided(Quantity::ChipClass, none),
            ];
        }
        let why = format!("every write takes about {} ms: a slow page, a slow host or a rewrite", three(usual));
        return Q.map(|q| Finding::undecided(q, why.clone())).to_vec();
    };
    let Some(l) = lattice(&data, border).filter(|l| l.probability >= 0.8 && l.off * 50 <= l.of) else {
        let why = format!("some writes take {} ms and others {} ms, at no regular places", three(slow), three(fast));
        return Q.map(|q| Finding::undecided(q, why.clone())).to_vec();
    };
    // A buffer takes a write at no cost; where each write costs something, the regular ones are those that open an erase block.
    if fast > (0.04 * slow).max(0.06) {
        let why = format!(
            "every write costs {} ms, and those that reach a multiple of {} {} ms: no buffer does that",
            three(fast),
            Bytes(l.size),
            three(slow)
        );
        return Q.map(|q| Finding::undecided(q, why.clone())).to_vec();
    }
    let p = l.probability.min(0.97);
    let text = format!(
        "{what}: {} ms after every multiple of {}{}, {} ms elsewhere; {} of {} writes contradict that",
        three(slow),
        Bytes(l.size),
        if l.phase > 0 { format!(" plus {}", Bytes(l.phase)) } else { String::new() },
        three(fast),
        l.off,
        l.of
    );
    let buffer =
        Finding::decided(Quantity::WriteBuffer, l.size as f64, p).rivals(l.rivals.iter().map(|r| (r.0 as f64, r.1))).evidence(text.clone());
    let extra: Vec<f64> = times.iter().filter(|t| **t > border).map(|t| t - fast).collect();
    let cost = median(&extra);
    if cost < PROGRAM_MS {
        let none = format!("what the buffer costs, {} ms, is the time of programming pages", three(cost));
        return vec![
            Finding::decided(Quantity::RewritePolicy, 0.0, 0.9 * p).evidence(text),
            buffer,
            Finding::undecided(Quantity::RewriteMs, none.clone()),
            Finding::undecided(Quantity::ChipClass, none),
        ];
    }
    if cost < least {
        let none = format!("{} ms may be the programming of several pages or the rewriting of a block", three(cost));
        let open = |q| Finding::undecided(q, none.clone());
        return vec![open(Quantity::RewritePolicy), buffer, open(Quantity::RewriteMs), open(Quantity::ChipClass)];
    }
    let policy = Finding::decided(Quantity::RewritePolicy, 2.0, p * sure).evidence(text.clone());
    let small = expected(cost, Some(l.size), 4 * SECTOR);
    let mut time = Finding::decided(Quantity::RewriteMs, cost, 0.95 * p * sure).evidence(text).evidence(small);
    time.interval = bootstrap_median(&extra);
    vec![policy, buffer, time, class(cost, p * sure)]
}

/// `len` is what a write is long, in bytes.
pub(super) fn at_the_end_of_what(times: &[f64], len: u64, confidence: f64, text: String) -> Vec<Finding> {
    let cost = median(times);
    let small = expected(cost, None, len);
    let mut time = Finding::decided(Quantity::RewriteMs, cost, 0.95 * confidence).evidence(text.clone()).evidence(small);
    time.interval = bootstrap_median(times);
    vec![
        Finding::decided(Quantity::RewritePolicy, 1.0, confidence).evidence(text),
        Finding::undecided(Quantity::WriteBuffer, "the end of the transaction decides, not the filling of a buffer"),
        time,
        class(cost, confidence),
    ]
}

/// Small block chips have 32 pages of 512 B in an erase block, large ones 64 or 128 of 2 KiB or more (C2, C16). At 0.25 to 0.6 ms
/// to copy 512 B, the first take 10 to 21 ms, the second from 34 ms on.
pub(super) fn class(ms: f64, confidence: f64) -> Finding {
    let q = Quantity::ChipClass;
    let text = format!("rewriting an erase block takes {} ms; 32 pages of 512 B take 10 to 21 ms, 64 of 2 KiB 34 ms or more", three(ms));
    match ms {
        m if m <= SMALL_MS => Finding::decided(q, 1.0, 0.9 * confidence).evidence(text),
        m if m >= 40.0 => Finding::decided(q, 2.0, 0.9 * confidence).evidence(text),
        _ => Finding::undecided(q, format!("{} ms is between what chips of 512 B and of 2 KiB pages take", three(ms))),
    }
    .caveat("times of two cards compare only where both rewrite by the same policy")
}

/// Erase blocks of the two kinds of chips, in bytes: 32 pages of 512 B, 64 of 2 KiB (C2).
pub const CHIP_BLOCKS: [u64; 2] = [16 * KIB, 128 * KIB];

/// How many times longer a write of less than an erase block takes where the erase block has `larger` bytes instead of `smaller`:
/// all but the part that is written is copied, page by page, so that the time grows with the size (C20).
pub fn slow_down(smaller: u64, larger: u64) -> f64 {
    larger as f64 / smaller.max(1) as f64
}

/// Mean time in ms that writes of `len` bytes one behind the other spend on rewriting, where one rewrite takes `cost` ms: once a
/// write, or once whenever a buffer of `buffer` bytes is full.
pub fn per_write(cost: f64, buffer: Option<u64>, len: u64) -> f64 {
    buffer.map_or(cost, |b| cost * len as f64 / b as f64)
}

/// What follows from a rewrite for small writes, and what a larger erase block would cost.
pub(super) fn expected(cost: f64, buffer: Option<u64>, len: u64) -> String {
    let each = per_write(cost, buffer, len);
    let mut text = format!(
        "writes of {} one after the other spend {} ms each on rewriting: {} at most",
        Bytes(len),
        three(each),
        rate(len as f64 * 1e3 / each)
    );
    if cost <= SMALL_MS {
        let [small, large] = CHIP_BLOCKS;
        text += &format!(
            "; with erase blocks of {} instead of {}, as chips of large pages have, expect {} times as long",
            Bytes(large),
            Bytes(small),
            slow_down(small, large)
        );
    }
    text
}

/// A region at the start whose small writes are faster than those elsewhere (C18): `steps` are (end of a stretch, ms a write).
pub fn fast_start(steps: &[(u64, f64)], elsewhere: &[f64], what: &str) -> Option<Finding> {
    let usual = median(elsewhere);
    let spread = mad(elsewhere).max(0.05 * usual);
    let slow = |t: f64| t > usual - 3.0 * spread || t > 0.6 * usual;
    let first = steps.iter().position(|s| slow(s.1))?;
    let (fast, rest) = steps.split_at(first);
    let stays = rest.iter().filter(|s| slow(s.1)).count();
    if fast.len() < 2 || rest.len() < 2 || stays * 10 < rest.len() * 9 {
        return None;
    }
    let end = fast.last()?.0;
    let ms = median(&fast.iter().map(|s| s.1).collect::<Vec<_>>());
    (ms * 1.6 < usual).then(|| {
        Finding::decided(Quantity::FatZone, end as f64, 0.85).evidence(format!(
            "{what}: {} ms a write in the first {}, {} ms elsewhere",
            three(ms),
            Bytes(end),
            three(usual)
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::KIB;

    fn row(len: u64, n: u64, ms: impl Fn(u64) -> f64) -> Vec<Look> {
        (0..n)
            .map(|k| Look {
                from: MIB + k * len,
                to: MIB + (k + 1) * len,
                ms: ms(MIB + (k + 1) * len) * (1.0 + 0.01 * (k % 5) as f64),
                stop: false,
            })
            .collect()
    }

    fn get(all: &[Finding], q: Quantity) -> Option<f64> {
        all.iter().find(|f| f.quantity == q).and_then(Finding::number)
    }

    #[test]
    fn a_buffer_is_found_with_its_size() {
        for (size, cost, class) in [(4 * KIB, 140.0, 2.0), (24 * KIB, 57.0, 2.0), (16 * KIB, 20.0, 1.0)] {
            let looks = row(512, 192, |end| if end % size == 0 { cost } else { 0.02 });
            let f = infer(&looks, None, None, Some(256 * MIB), "test");
            assert_eq!(get(&f, Quantity::WriteBuffer), Some(size as f64), "{f:?}");
            assert_eq!((get(&f, Quantity::RewritePolicy), get(&f, Quantity::ChipClass)), (Some(2.0), Some(class)));
            assert!((get(&f, Quantity::RewriteMs).unwrap() / cost - 1.0).abs() < 0.05);
        }
    }

    #[test]
    fn pages_are_no_rewrites_and_noise_is_no_lattice() {
        let f = infer(&row(512, 192, |end| if end % 16384 == 0 { 1.8 } else { 0.02 }), None, None, Some(256 * MIB), "test");
        assert_eq!((get(&f, Quantity::RewritePolicy), get(&f, Quantity::WriteBuffer)), (Some(0.0), Some(16384.0)), "{f:?}");
        let mut x = 5u64;
        let mut noise = row(512, 192, |_| 0.3);
        for l in &mut noise {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            if x >> 61 == 0 {
                l.ms = 60.0;
            }
        }
        let f = infer(&noise, None, None, Some(256 * MIB), "test");
        assert!(f.iter().all(|f| f.value.is_none()), "{f:?}");
        let f = infer(&row(512, 192, |_| 0.8), None, None, Some(256 * MIB), "test");
        assert_eq!(get(&f, Quantity::RewritePolicy), Some(0.0));
    }

    #[test]
    fn the_end_of_a_transaction_is_told_from_a_buffer() {
        let mut looks = vec![];
        for t in 0..32u64 {
            for k in 0..4 {
                looks.push(Look { from: t * 2048 + k * 512, to: t * 2048 + (k + 1) * 512, ms: 0.02, stop: false });
            }
            looks.push(Look { from: (t + 1) * 2048, to: (t + 1) * 2048, ms: 18.6, stop: true });
        }
        let f = infer(&looks, None, None, Some(256 * MIB), "test");
        assert_eq!((get(&f, Quantity::RewritePolicy), get(&f, Quantity::ChipClass)), (Some(1.0), Some(1.0)), "{f:?}");
        assert!(get(&f, Quantity::WriteBuffer).is_none());
    }

    #[test]
    fn a_fast_start_ends_where_it_ends() {
        let steps: Vec<(u64, f64)> = (1..=16).map(|k| (k * 65536, if k <= 8 { 9.0 } else { 73.0 })).collect();
        let f = fast_start(&steps, &[73.0, 72.0, 74.0, 73.5], "test").unwrap();
        assert_eq!(f.number(), Some(524_288.0));
        let flat: Vec<(u64, f64)> = (1..=16).map(|k| (k * 65536, 70.0 + k as f64)).collect();
        assert!(fast_start(&flat, &[73.0, 72.0, 74.0], "test").is_none());
    }
}
