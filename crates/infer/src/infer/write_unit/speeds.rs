//! Pages of several bits a cell, which are programmed at different speeds: a lower page in 0.3 ms, the upper page of the same cells in 1.2 ms
//! and more (data sheets of MLC). Writes of one size then take one of two or three times, in the order in which pages come.
//!
//! How long a size takes is left open. What is explained is by how much writes of one size differ, which is the same for all sizes that
//! touch one page, and nothing where as many pages of each speed are touched.

use super::model::{Write, fit};
use crate::infer::stats::{mad, median, quantile};
use crate::units::KIB;
use std::collections::BTreeMap;

/// The order in which pages of different speeds come.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cycle {
    /// How many speeds there are, 2 or 3.
    speeds: usize,
    /// How many pages of one speed follow each other.
    run: usize,
    /// Which page a write begins in follows from its address; or a log takes pages in the order of writes.
    by_address: bool,
}

impl Cycle {
    /// By turns, two and two, and three speeds.
    fn all() -> impl Iterator<Item = Cycle> {
        let orders = [(2, 1), (2, 2), (3, 1)];
        orders.into_iter().flat_map(|(speeds, run)| [true, false].map(|by_address| Cycle { speeds, run, by_address }))
    }

    /// Pages until the order begins anew.
    fn period(self) -> usize {
        self.speeds * self.run
    }

    /// What `n` pages from a place of the cycle on take beyond as many of the fastest, in microseconds.
    fn extra(self, from: usize, n: u64, slower: [f64; 3]) -> f64 {
        let period = self.period();
        let of = |pages: usize| (from..from + pages).map(|page| slower[page % period / self.run]).sum::<f64>();
        (n / period as u64) as f64 * of(period) + of((n % period as u64) as usize)
    }
}

/// Pages until any of these orders begins anew.
const LONGEST: usize = 4;

/// Fast and slow writes of one size lie so many times as far apart as they scatter, at least, and differ by this factor.
const APART: f64 = 6.0;
const DIFFER: f64 = 1.1;

/// Chi squared of a write at most, and of one that does not begin where the one before says.
const STALL: f64 = 16.0;
const ASTRAY: f64 = 8.0;

/// So many times better than writes that differ by chance, where nearly all sizes up to a page are of several speeds, and where not.
const BETTER: f64 = 2.0;
const MUCH_BETTER: f64 = 4.0;
const NEARLY_ALL: f64 = 0.8;

/// A fast page takes this part of what a slow one takes beyond it, at least: a tenth of its time.
const SLOWEST: f64 = 0.11;

/// The least noise of one write, as a part of it.
const NOISE: f64 = 0.015;

/// How often places in the cycle are told from times, and times from places.
const ROUNDS: usize = 4;

/// Chi squared by size of a page, smallest first, where pages of several speeds explain how writes of one size differ; `None` where nothing
/// says so. Sizes in bytes; `writes` in the order they were made.
pub(super) fn by_speed(writes: &[Write], sizes: &BTreeMap<u64, Vec<f64>>) -> Option<Vec<(u64, f64)>> {
    let largest = *sizes.keys().last()?;
    // By size, of each stretch that was written without a gap.
    let mut stretches: BTreeMap<u64, Vec<Vec<f64>>> = BTreeMap::new();
    for stretch in writes.chunk_by(|a, b| a.at + a.len == b.at) {
        for of_size in stretch.chunk_by(|a, b| a.len == b.len) {
            stretches.entry(of_size[0].len).or_default().push(of_size.iter().map(|w| w.us).collect());
        }
    }
    let split: BTreeMap<u64, Speeds> = stretches.iter().filter_map(|(size, t)| Some((*size, Speeds::of(t)?))).collect();
    if split.len() < 4 {
        return None;
    }
    let of = |f: fn(&Speeds) -> f64| split.values().map(f).collect::<Vec<f64>>();
    let noise = median(&of(|s| s.scatter)).max(NOISE);
    let most = median(&of(|s| s.slowest));
    let middle: Vec<f64> = split.values().filter_map(|s| s.middle).collect();
    let middle = if middle.is_empty() { most / 2.0 } else { median(&middle) };
    let usual: BTreeMap<u64, f64> = sizes.iter().map(|(size, t)| (*size, median(t))).collect();
    let chance: f64 = writes.iter().map(|w| ((w.us - usual[&w.len]) / (noise * w.us)).powi(2).min(STALL)).sum();
    // Sizes that show all three speeds say by how much they differ; others show two of them, whichever.
    let of_three: Vec<f64> = split.values().filter(|s| s.middle.is_some()).map(|s| s.slowest).collect();
    let three = if of_three.is_empty() { most } else { median(&of_three) };
    let slower = |c: Cycle| if c.speeds == 2 { [0.0, most, 0.0] } else { [0.0, middle, three] };
    let fit = |page: u64| Cycle::all().map(|c| explained(writes, page, c, slower(c), noise)).fold(f64::INFINITY, f64::min);
    let all: Vec<(u64, f64)> = sizes.keys().filter(|s| 2 * **s <= largest).map(|&s| (s, fit(s))).collect();
    let &(page, best) = all.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    // Two pages take what each takes. Of a unit that is paid for when it is full, the half that is not takes nothing but the time to move it, which is
    // what fast writes of twice the size take more.
    let fast = |size: u64| sizes.get(&size).map(|t| quantile(t, 0.1));
    let moved = fast(page).zip(fast(page / 2)).map_or(0.0, |(whole, half)| 2.0 * (whole - half).max(0.0));
    let slow = quantile(&sizes[&page], 0.9);
    let adds = sizes.get(&(2 * page)).is_none_or(|two| quantile(two, 0.75) >= slow + moved + SLOWEST * most);
    let (of_page, of_those) = (sizes.range(..=page).count(), split.range(..=page).count());
    let all_differ = of_those as f64 >= NEARLY_ALL * of_page as f64;
    let better = if all_differ { BETTER } else { MUCH_BETTER };
    (adds && best * better < chance).then_some(all)
}

/// Chi squared that pages of several speeds have to be worth: their order, and a price for each.
const PRICE: f64 = 20.0;

/// Chi squared of a page of each of these sizes, where its place in the erase block (of `block` bytes, if that is known) says how fast it is and
/// what a write takes is told for all sizes at once: sizes of which no two writes differ say something, too.
pub(super) fn by_place(writes: &[Write], noise: f64, pages: &[u64], block: Option<u64>) -> Vec<(u64, f64)> {
    let row = |w: &Write, page: u64, cycle: Cycle| {
        let at = block.map_or(w.at, |b| w.at % b);
        let (first, last) = ((at / page) as usize, ((at + w.len - 1) / page) as usize);
        let mut of = [0.0; 3];
        (first..=last).for_each(|n| of[n % cycle.period() / cycle.run] += 1.0);
        let lacks = (last - first + 1) as f64 - w.len as f64 / page as f64;
        ([1.0, w.len as f64 / KIB as f64, lacks, of[0], of[1], of[2]], w.us, noise * w.us)
    };
    let of = |page: u64, cycle: Cycle| fit(&writes.iter().map(|w| row(w, page, cycle)).collect::<Vec<_>>());
    let best = |page: u64| Cycle::all().filter(|c| c.by_address).map(|c| of(page, c)).fold(f64::INFINITY, f64::min);
    pages.iter().map(|&page| (page, best(page) + PRICE)).collect()
}

/// Times of one size that fall apart into two or three.
struct Speeds {
    /// Microseconds beyond the fastest.
    slowest: f64,
    middle: Option<f64>,
    /// How much writes of one speed differ, as a part of their time.
    scatter: f64,
}

impl Speeds {
    /// `stretches`: what was written at one time. A host or a card that is slower at one time than at another is no page of another kind.
    fn of(stretches: &[Vec<f64>]) -> Option<Speeds> {
        let mut t = stretches.concat();
        t.sort_by(f64::total_cmp);
        // A stall is no speed: what is slow is slow a sixth of the time.
        let least = (t.len() / 6).max(2);
        let two = (least..(t.len() + 1).saturating_sub(least)).map(|i| vec![i]);
        let three = (least..t.len()).flat_map(|i| (i + least..(t.len() + 1).saturating_sub(least)).map(move |k| vec![i, k]));
        // The cut whose narrowest gap is widest.
        let gap = |cut: &[usize]| cut.iter().map(|&i| t[i] - t[i - 1]).fold(f64::INFINITY, f64::min);
        let widest = |cuts: &mut dyn Iterator<Item = Vec<usize>>| cuts.max_by(|a, b| gap(a).total_cmp(&gap(b)));
        let mut cuts = [widest(&mut { three }), widest(&mut { two })].into_iter().flatten();
        let found = cuts.find_map(|cut| Speeds::apart(&t, &cut).map(|s| (s, (t[cut[0] - 1] + t[cut[0]]) / 2.0)));
        let both = |line: f64| stretches.iter().filter(|s| s.iter().any(|x| *x > line) && s.iter().any(|x| *x < line)).count();
        found.filter(|f| 2 * both(f.1) >= stretches.len()).map(|f| f.0)
    }

    /// Where each part is much narrower than what lies between them.
    fn apart(t: &[f64], cut: &[usize]) -> Option<Speeds> {
        let ends: Vec<usize> = [&[0], cut, &[t.len()]].concat();
        let parts: Vec<&[f64]> = ends.windows(2).map(|w| &t[w[0]..w[1]]).collect();
        let scatter = parts.iter().map(|p| mad(p) / median(p)).fold(NOISE / 3.0, f64::max);
        let levels: Vec<f64> = parts.iter().map(|p| median(p)).collect();
        let apart = |w: &[f64]| w[1] - w[0] > APART * scatter * w[1] && w[1] > DIFFER * w[0];
        let beyond = |l: &f64| l - levels[0];
        let middle = levels.get(1).filter(|_| levels.len() == 3).map(beyond);
        let slowest = levels.last().map_or(0.0, beyond);
        (levels.windows(2).all(apart) && levels[0] >= SLOWEST * slowest).then_some(Speeds { slowest, middle, scatter })
    }
}

/// Chi squared of pages of this size in this order.
fn explained(writes: &[Write], page: u64, cycle: Cycle, mut slower: [f64; 3], noise: f64) -> f64 {
    let touched: Vec<u64> = writes.iter().map(|w| (w.at + w.len - 1) / page - w.at / page + 1).collect();
    let mut groups: BTreeMap<(u64, u64), Vec<usize>> = BTreeMap::new();
    (0..writes.len()).for_each(|i| groups.entry((writes[i].len, touched[i])).or_default().push(i));
    let mut plain = fastest(writes, &touched, page, cycle, slower, noise);
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let (chi2, places) = places(writes, &touched, &plain, page, cycle, slower, noise);
        best = best.min(chi2);
        for group in groups.values() {
            let left: Vec<f64> = group.iter().map(|&i| writes[i].us - cycle.extra(places[i], touched[i], slower)).collect();
            let level = median(&left);
            group.iter().for_each(|&i| plain[i] = level);
        }
        // The pages of single ones tell how much slower each speed is.
        let one: Vec<usize> = (0..writes.len()).filter(|&i| touched[i] == 1).collect();
        let of = |class: usize| -> f64 {
            let left = one.iter().filter(|&&i| places[i] / cycle.run == class).map(|&i| writes[i].us - plain[i]).collect::<Vec<f64>>();
            if left.len() < 3 { f64::NAN } else { median(&left) }
        };
        let found: Vec<f64> = (1..cycle.speeds).map(|class| of(class) - of(0)).collect();
        if found.iter().all(|f| f.is_finite()) && found[0] > 0.0 && found.windows(2).all(|w| w[1] > w[0]) {
            slower[1..cycle.speeds].copy_from_slice(&found);
        }
    }
    best
}

/// The time of a write of so many of the fastest pages, by size, as far as writes of that size say: the fastest of those that touch as many pages
/// may be of any speed.
fn fastest(writes: &[Write], touched: &[u64], page: u64, cycle: Cycle, slower: [f64; 3], noise: f64) -> Vec<f64> {
    let mut of_size: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    (0..writes.len()).for_each(|i| of_size.entry(writes[i].len).or_default().push(i));
    let mut all = vec![0.0; writes.len()];
    for of in of_size.values() {
        let some: Vec<Write> = of.iter().map(|&i| writes[i]).collect();
        let pages: Vec<u64> = of.iter().map(|&i| touched[i]).collect();
        let mut counts = pages.clone();
        counts.sort_unstable();
        counts.dedup();
        let least: Vec<f64> = counts
            .iter()
            .map(|n| quantile(&some.iter().zip(&pages).filter(|w| w.1 == n).map(|w| w.0.us).collect::<Vec<f64>>(), 0.1))
            .collect();
        // A write touches one of two numbers of pages, whatever its size.
        let from = |k: usize| (0..if k < counts.len() { cycle.period() } else { 1 }).map(move |from| (k, from));
        let times = |(k, from): (usize, usize)| least.get(k).map_or(0.0, |t| t - cycle.extra(from, counts[k], slower));
        let tried = from(0).flat_map(|a| from(1).map(move |b| [a, b])).map(|both| {
            let [first, second] = both.map(times);
            let plain: Vec<f64> = pages.iter().map(|n| if *n == counts[0] { first } else { second }).collect();
            (places(&some, &pages, &plain, page, cycle, slower, noise).0, plain)
        });
        if let Some((_, plain)) = tried.min_by(|a, b| a.0.total_cmp(&b.0)) {
            of.iter().zip(plain).for_each(|(&i, t)| all[i] = t);
        }
    }
    all
}

/// Where in the cycle each write most likely begins, and chi squared of that: each goes on where the one before ended, or is astray.
fn places(writes: &[Write], touched: &[u64], plain: &[f64], page: u64, cycle: Cycle, slower: [f64; 3], noise: f64) -> (f64, Vec<usize>) {
    let period = cycle.period();
    let mut cost = [0.0f64; LONGEST];
    let mut from: Vec<[usize; LONGEST]> = Vec::with_capacity(writes.len());
    for (i, w) in writes.iter().enumerate() {
        // How far the place moves from the write before.
        let next = i.checked_sub(1).map(|b| (b, writes[b])).filter(|(_, b)| b.at + b.len == w.at);
        let moved = next.map(|(b, before)| if cycle.by_address { w.at / page - before.at / page } else { touched[b] });
        let anywhere = cost[..period].iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1)).map_or((0, 0.0), |(k, c)| (k, *c));
        let step = |place: usize| -> (usize, f64) {
            let astray = if i == 0 { 0.0 } else { ASTRAY };
            match moved.map(|m| (place + period - (m % period as u64) as usize) % period) {
                Some(k) if cost[k] <= anywhere.1 + astray => (k, cost[k]),
                _ => (anywhere.0, anywhere.1 + astray),
            }
        };
        let (mut begins, mut costs) = ([0; LONGEST], [0.0; LONGEST]);
        let off = |place: usize| ((w.us - plain[i] - cycle.extra(place, touched[i], slower)) / (noise * w.us)).powi(2).min(STALL);
        for place in 0..period {
            let (begin, before) = step(place);
            (begins[place], costs[place]) = (begin, before + off(place));
        }
        cost = costs;
        from.push(begins);
    }
    let mut place = (0..period).min_by(|&a, &b| cost[a].total_cmp(&cost[b])).unwrap_or(0);
    let chi2 = cost[place];
    let mut places = vec![0; writes.len()];
    for i in (0..writes.len()).rev() {
        places[i] = place;
        place = from[i][place];
    }
    (chi2, places)
}
