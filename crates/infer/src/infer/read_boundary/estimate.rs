//! How much a crossing costs, and whether a predicted boundary is one, on quiet hosts and on busy ones.
//!
//! On a quiet host the difference of reads made together is best: drift cancels, and its median forgives stalls. On a busy one every
//! read is late by chance, never early: the fast reads of each kind say more than the middle ones.

use super::*;
use crate::infer::stats::{low_difference, quantile, t3_kernel};
use std::cell::{OnceCell, RefCell, RefMut};

/// What a longer read adds, in ns a KiB, from the shortest and the longest ones of the rows.
pub fn ns_per_kib(run: &Run) -> Option<f64> {
    let lengths = || run.cells.iter().filter(|c| kind(c) == Kind::Row && run.of(c.id).next().is_some()).map(|c| c.bytes("block"));
    let (short, long) = (lengths().min()?, lengths().max()?);
    let ways = Ways::of(run);
    (short < long).then(|| (ways.base_time(long) - ways.base_time(short)).max(0.0) * 1e3 * KIB as f64 / (long - short) as f64)
}

/// Microseconds of the reads of one trial, by role.
pub(super) fn of_trial(trial: &[&Sample], role: u8) -> Option<f64> {
    trial.iter().find(|s| s.role == role).map(|s| s.took.micros())
}

/// The more precise of two estimates; the paired one where they are alike.
fn better(paired: Estimate, low: Estimate) -> Estimate {
    if low.error < 0.7 * paired.error || paired.n == 0 { low } else { paired }
}

/// What the reads of a run have in common, whichever row they are of; each is asked once, by the first row that needs it.
pub struct Ways<'a> {
    run: &'a Run,
    ahead: OnceCell<bool>,
    later: OnceCell<bool>,
    of_length: RefCell<BTreeMap<u64, OfLength>>,
}

/// What reads of one length have in common.
#[derive(Default)]
struct OfLength {
    usual: OnceCell<Usual>,
    kept: OnceCell<bool>,
    base: OnceCell<f64>,
}

impl<'a> Ways<'a> {
    pub fn of(run: &'a Run) -> Ways<'a> {
        Ways { run, ahead: OnceCell::new(), later: OnceCell::new(), of_length: RefCell::default() }
    }

    /// Does a card or host that reads ahead answer the later reads of a trial out of a buffer? Then only the first ones tell.
    pub fn reads_ahead(&self) -> bool {
        *self.ahead.get_or_init(|| {
            let rows = |s: &&Sample| [PRE, ON, POST].contains(&s.role);
            // The shortest reads, of which a fixed saving is the largest part.
            let shortest = self.run.samples.iter().filter(rows).take(2000).map(|s| s.len).min().unwrap_or(0);
            let reads: Vec<&Sample> = self.run.samples.iter().filter(rows).filter(|s| s.len == shortest).take(600).collect();
            let of = |place: usize| {
                let trials = reads.chunk_by(|a, b| a.same_trial(b)).filter(|t| t.len() == 3);
                trials.map(|t| t[place].took.micros()).collect::<Vec<f64>>()
            };
            median(&of(2)) < 0.8 * median(&of(0))
        })
    }

    /// Median time of a read of so many bytes that crosses nothing, in microseconds.
    pub fn base_time(&self, block: u64) -> f64 {
        *self.of_length(block).base.get_or_init(|| {
            // Two thousand of them say it as well as fifty thousand.
            let of_rows = self.run.samples.iter().filter(|s| s.len == block && (s.role == PRE || s.role == POST));
            let t: Vec<f64> = of_rows.take(2000).map(|s| s.took.micros()).collect();
            median(&t)
        })
    }

    fn of_length(&self, block: u64) -> RefMut<'_, OfLength> {
        RefMut::map(self.of_length.borrow_mut(), |all| all.entry(block).or_default())
    }

    /// Crossing time less that of reads before and after, in microseconds, of all looks at this row.
    pub fn row(&self, cell: &Cell) -> Estimate {
        let run = self.run;
        if kind(cell) == Kind::Verify {
            return of_all(&run.trials(cell.id), [0.0; 3]);
        }
        let (align, block) = (cell.bytes("align"), cell.bytes("block"));
        let again = |c: &&Cell| {
            let same = (c.bytes("align"), c.bytes("block"), c.set.get(BEGINS)) == (align, block, cell.set.get(BEGINS));
            c.id != cell.id && matches!(kind(c), Kind::Row | Kind::Fine) && same
        };
        let more = run.cells.iter().filter(again).map(|c| c.id);
        let trials: Vec<Vec<&Sample>> = std::iter::once(cell.id).chain(more).flat_map(|id| run.trials(id)).collect();
        let small = align <= LEAST_PLAIN;
        let alike = self.of_length(block);
        let usual = || alike.usual.get_or_init(|| Usual::of(run, block));
        if small && *alike.kept.get_or_init(|| keeps_last(run, block)) {
            return of_small(&trials, usual());
        }
        if !self.reads_ahead() {
            return of_all(&trials, [0.0; 3]);
        }
        // Of boundaries that later reads feel as well, all reads tell, once what the first one looked up is taken off.
        if small && *self.later.get_or_init(|| later_feel(run)) {
            return of_all(&trials, usual().by_place);
        }
        let mut first = Place::default();
        trials.iter().filter_map(|t| t.first()).for_each(|s| first.add(s));
        first.estimate()
    }
}

/// Of all reads of these trials, less what is usual at their place of a trial.
fn of_all(trials: &[Vec<&Sample>], usual: [f64; 3]) -> Estimate {
    let (mut on, mut off, mut paired) = (vec![], vec![], vec![]);
    for t in trials {
        let of = |role: u8| {
            let place = t.iter().position(|s| s.role == role)?;
            Some(t[place].took.micros() - usual[place.min(2)])
        };
        if let (Some(pre), Some(x), Some(post)) = (of(PRE), of(ON), of(POST)) {
            on.push(x);
            off.extend([pre, post]);
            paired.push(x - (pre + post) / 2.0);
        }
    }
    better(location(&paired), low_difference(&on, &off))
}

/// Of a card that has the page at hand that it read last: reads that come later cross nothing inside it. Where they feel this row as much as the
/// first ones do, all tell.
fn of_small(trials: &[Vec<&Sample>], usual: &Usual) -> Estimate {
    let [mut first, mut later] = [Place::default(), Place::default()];
    let beside: Vec<Vec<&Sample>> = trials.iter().filter(|t| t.len() == 3 && !apart(t)).cloned().collect();
    for t in &beside {
        t.iter()
            .zip(usual.by_place)
            .enumerate()
            .for_each(|(i, (s, usual))| if i == 0 { first.less(s, usual) } else { later.less(s, usual) });
    }
    // Reads at places of their own are first ones, each of them.
    trials.iter().filter(|t| apart(t)).flatten().for_each(|s| first.less(s, usual.by_place[0]));
    let (of_first, of_later) = (low_difference(&first.on, &usual.first), later.estimate());
    if of_later.value > CLEAR * of_later.error && of_later.value > ALIKE_LATER * of_first.value {
        let all = of_all(&beside, usual.by_place);
        return better(all, of_first);
    }
    better(location(&first.on), of_first)
}

/// Were these reads not side by side?
pub(super) fn apart(trial: &[&Sample]) -> bool {
    trial.windows(2).any(|w| w[0].at.abs_diff(w[1].at) > w[0].len.max(w[1].len))
}

/// Later reads that cost this part of what the first ones do feel the same boundary.
const ALIKE_LATER: f64 = 0.7;

/// Reads that cross nothing.
struct Usual {
    /// Medians by their place in a trial, in microseconds.
    by_place: [f64; 3],
    /// By how much each first one differs from the median of them.
    first: Vec<f64>,
}

impl Usual {
    fn of(run: &Run, block: u64) -> Usual {
        let places = by_place(run, |c| c.bytes("block") == block);
        let by_place = [0, 1, 2].map(|i| median(&places[i].off));
        Usual { first: places[0].off.iter().map(|us| us - by_place[0]).collect(), by_place }
    }
}

/// A read of a page at hand is faster by this part of one that is not, at least.
const AT_HAND: f64 = 0.03;

/// Has the card the page at hand that it read last? A read takes less behind one in the same page than behind one across a boundary: it is the one before in the
/// order of addresses, which no read-ahead has, and what was looked up for the first read of a trial helps both. It takes less than the first read of a trial in
/// such rows, too: there pages of several speeds are alike, while next to a large boundary all are of one.
pub fn keeps_last(run: &Run, block: u64) -> bool {
    // Times of reads behind one in the same row, and of the first ones of trials; most cards are told by the few of small rows.
    let of_rows = |aligns: std::ops::Range<u64>| {
        let [mut back, mut first] = [const { vec![] }; 2];
        for c in run.cells.iter().filter(|c| kind(c) == Kind::Row && c.bytes("block") == block && aligns.contains(&c.bytes("align"))) {
            let reads: Vec<&Sample> = run.of(c.id).collect();
            for t in reads.chunk_by(|a, b| a.trial == b.trial).filter(|t| t.len() == 3 && !apart(t)) {
                back.extend(t.windows(2).find(|w| w[0].role == POST && w[1].role == PRE).map(|w| w[1].took.micros()));
                first.extend((t[0].role != ON).then_some(t[0].took.micros()));
            }
        }
        (back, first)
    };
    let (within, first) = of_rows(INSIDE);
    let faster = |than: &[f64]| {
        let by = low_difference(than, &within);
        by.value > CLEAR * by.error && by.value > AT_HAND * median(than)
    };
    faster(&first) && faster(&of_rows(BETWEEN).0)
}

/// Rows whose places lie inside pages, most of them.
const INSIDE: std::ops::Range<u64> = 1..8 * KIB + 1;

/// Rows above planes and below pieces of a map.
const BETWEEN: std::ops::Range<u64> = 64 * KIB..MIB;

/// Rows beyond this may be boundaries of pieces of a map, which only the first read of a trial feels.
pub const LEAST_PLAIN: u64 = 128 * KIB;

/// Reads that came at one place of their trials, in microseconds.
#[derive(Default)]
struct Place {
    on: Vec<f64>,
    off: Vec<f64>,
}

impl Place {
    fn add(&mut self, s: &Sample) {
        self.less(s, 0.0);
    }

    /// By how many microseconds it took longer than is usual.
    fn less(&mut self, s: &Sample, usual: f64) {
        if s.role == ON { &mut self.on } else { &mut self.off }.push(s.took.micros() - usual);
    }

    fn estimate(&self) -> Estimate {
        low_difference(&self.on, &self.off)
    }
}

/// The first six thousand reads of these rows, by their place in a trial.
fn by_place(run: &Run, which: impl Fn(&Cell) -> bool) -> [Place; 3] {
    let rows: Vec<u32> = run.cells.iter().filter(|c| kind(c) == Kind::Row && which(c)).map(|c| c.id).collect();
    let mut places = [Place::default(), Place::default(), Place::default()];
    let reads: Vec<&Sample> = run.samples.iter().filter(|s| rows.contains(&s.cell)).take(6000).collect();
    for t in reads.chunk_by(|a, b| a.same_trial(b)).filter(|t| t.len() == 3 && !apart(t)) {
        t.iter().zip(&mut places).for_each(|(s, place)| place.add(s));
    }
    places
}

/// Do the later reads of a trial feel a small boundary as the first one does? A map that was looked up for the first read leaves them
/// their boundaries, a buffer that was filled ahead does not.
fn later_feel(run: &Run) -> bool {
    let shortest = run.cells.iter().filter(|c| kind(c) == Kind::Row).map(|c| c.bytes("block")).min().unwrap_or(0);
    let [first, second, third] =
        by_place(run, |c| BETWEEN.contains(&c.bytes("align")) && c.bytes("block") == shortest).map(|p| p.estimate());
    first.value > CLEAR * first.error && [second, third].iter().all(|e| e.value > ALIKE_LATER * first.value)
}

/// Parts of a distance at which controls are read on purpose.
const PARTS: [u64; 4] = [2, 3, 4, 5];

/// Predicted places and their controls, in microseconds, pair by pair.
struct Pairs {
    predicted: Vec<f64>,
    control: Vec<f64>,
    /// The part of the distance, one half to one fifth, at which each control lies; 0 for another place.
    part: Vec<u64>,
}

/// Controls that lie at one part of the distance, from which on they say something.
const THERE: usize = 3;

impl Pairs {
    fn of(run: &Run, cell: &Cell) -> Pairs {
        let (period, phase, step) = (cell.bytes("period").max(1), cell.bytes("phase"), cell.bytes("step").max(1));
        let part = |t: &[&Sample]| {
            let control = t.iter().find(|s| s.role == CONTROL)?;
            let off = (control.at + control.len / 2 + period - phase % period) % period;
            PARTS.into_iter().find(|n| (period / step).is_multiple_of(*n) && period / n == off)
        };
        let trials = run.trials(cell.id);
        let all = trials.iter().filter_map(|t| Some(((of_trial(t, PREDICTED)?, of_trial(t, CONTROL)?), part(t).unwrap_or(0))));
        let ((predicted, control), part) = all.unzip();
        Pairs { predicted, control, part }
    }

    /// ln of the odds that the distance is a part of this one: the controls that lie there cost as much as what was predicted, `value` more
    /// than the others. Four parts are asked; the likeliest.
    fn at_a_part(&self, value: f64, paired: bool) -> (u64, f64) {
        let scale = self.scale();
        let odds = |n: u64| {
            let split = |here: bool, of: &[f64]| -> Vec<f64> {
                of.iter().zip(&self.part).filter(|(_, part)| (**part == n) == here).map(|(x, _)| *x).collect()
            };
            let (there, others) = (split(true, &self.control), split(false, &self.control));
            if there.len() < THERE || others.len() < THERE {
                return f64::NEG_INFINITY;
            }
            if paired {
                let nothing = |d: &f64| (t3_kernel(d / scale) / t3_kernel((d - value) / scale)).ln();
                return split(true, &self.differences()).iter().map(nothing).sum();
            }
            let density = density_of(&others);
            there.iter().map(|&x| (density(x - value) / density(x)).ln()).sum()
        };
        let all = PARTS.map(|n| (n, odds(n) - (PARTS.len() as f64).ln()));
        all.into_iter().fold((1, f64::NEG_INFINITY), |best, part| if part.1 > best.1 { part } else { best })
    }

    /// The noise of a difference in microseconds, by the tighter places: where some differ, places of two kinds are mixed.
    fn scale(&self) -> f64 {
        (mad(&self.control).min(mad(&self.predicted)) * 1.3).max(0.004 * median(&self.control)).max(1e-3)
    }

    fn differences(&self) -> Vec<f64> {
        self.predicted.iter().zip(&self.control).map(|(p, c)| p - c).collect()
    }

    fn paired(&self) -> Estimate {
        location(&self.differences())
    }

    /// ln of the odds that a half or a quarter of the differences is nothing, rather than all of them one shift.
    fn mixed(&self) -> f64 {
        let d = self.differences();
        let scale = self.scale();
        let ln = |none| mixed(&d, none, scale);
        ln(0.5).max(ln(0.25)) - ln(0.0)
    }

    /// The more precise of both ways to compare them.
    fn estimate(&self) -> Estimate {
        better(self.paired(), low_difference(&self.predicted, &self.control))
    }
}

/// By how much predicted places cost more than controls, in microseconds.
pub fn confirm_estimate(run: &Run, cell: &Cell) -> Estimate {
    Pairs::of(run, cell).estimate()
}

/// Probability that predicted places cost more and the others do not.
pub fn confirmed(run: &Run, cell: &Cell) -> f64 {
    let p = Pairs::of(run, cell);
    let e = p.estimate();
    if e.n < 6 || e.value <= 0.0 {
        return 0.0;
    }
    let z = e.value / e.error.max(0.01 * median(&p.control));
    // Every predicted place must be high and every other one low, not only the medians: against the rival that a share of
    // the places differs by nothing, because only every other one is a boundary or because there are more of them.
    let paired = e == p.paired();
    let rival = if paired { p.mixed() } else { like(&p.predicted, &p.control, e.value).max(like(&p.control, &p.predicted, -e.value)) };
    let rival = rival.max(p.at_a_part(e.value, paired).1);
    strength(z) / (1.0 + rival.exp())
}

/// The part of a distance that was not confirmed at which controls cost as much as what was predicted: the boundaries may be that far apart.
pub fn part_instead(run: &Run, cell: &Cell) -> Option<u64> {
    let p = Pairs::of(run, cell);
    let e = p.estimate();
    let (part, odds) = p.at_a_part(e.value, e == p.paired());
    // Where the part is no whole number of steps, no control lay at it.
    let whole = (cell.bytes("period") / cell.bytes("step").max(1)).is_multiple_of(part);
    (e.value > 0.0 && odds > 0.0 && whole).then(|| cell.bytes("period") / part)
}

/// ln likelihood that a share `none` of the differences is nothing and the rest is one shift.
fn mixed(d: &[f64], none: f64, scale: f64) -> f64 {
    let shift = quantile(d, 0.5 + none / 2.0);
    d.iter().map(|x| ((1.0 - none) * t3_kernel((x - shift) / scale) + none * t3_kernel(x / scale)).ln()).sum()
}

/// ln of the odds that a half or a quarter of `x` is distributed as `other` is, rather than all of it shifted by about `shift`.
/// The distribution of `other` is taken as it is, each read widened by the spread of the fast ones.
fn like(x: &[f64], other: &[f64], shift: f64) -> f64 {
    let density = density_of(other);
    let alike: Vec<f64> = x.iter().map(|&x| density(x)).collect();
    let best = |none: f64| {
        let shifts = [0.6, 0.8, 1.0, 1.25, 1.6, 2.2].map(|f| f * shift);
        let ln = shifts.map(|s| x.iter().zip(&alike).map(|(x, a)| ((1.0 - none) * density(x - s) + none * a).ln()).sum::<f64>());
        ln.into_iter().fold(f64::NEG_INFINITY, f64::max)
    };
    best(0.5).max(best(0.25)) - best(0.0)
}

/// The distribution of these reads, each widened by the spread of the fast ones.
fn density_of(of: &[f64]) -> impl Fn(f64) -> f64 {
    let width = (quantile(of, 0.4) - quantile(of, 0.1)).max(0.004 * median(of)).max(1e-3);
    move |x: f64| of.iter().map(|o| t3_kernel((x - o) / width)).sum::<f64>() / of.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Op;
    use crate::units::Nanos;

    /// A busy host: 400 us and an exponential delay of 150 us in the mean.
    fn busy(n: usize, seed: u64) -> Vec<f64> {
        use rand_pcg::rand_core::Rng;
        let mut rng = rand_pcg::Pcg64Mcg::new((seed as u128 * 7919) | 1);
        (0..n).map(|_| 400.0 - 150.0 * (((rng.next_u64() >> 11) as f64 + 1.0) / (1u64 << 53) as f64).ln()).collect()
    }

    /// Predicted at six times the true distance: half of the controls are boundaries as well.
    #[test]
    fn controls_that_cost_as_much_speak_against_the_distance() {
        let places = |seed: u64, high: &dyn Fn(usize) -> bool| -> Vec<f64> {
            busy(60, seed).iter().enumerate().map(|(i, x)| 200.0 + (x - 400.0) / 5.0 + if high(i) { 80.0 } else { 0.0 }).collect()
        };
        let odds =
            |high: &dyn Fn(usize) -> bool| Pairs { predicted: places(4, &|_| true), control: places(5, high), part: vec![0; 60] }.mixed();
        assert!(odds(&|i| i % 2 == 0) > 3.0 && odds(&|i| i % 4 == 0) > 3.0, "{}", odds(&|i| i % 2 == 0));
        assert!(odds(&|_| false) < -3.0, "{}", odds(&|_| false));
    }

    /// Twenty pairs on a busy host, predicted at twice the distance: a third of the controls lie at the half.
    #[test]
    fn controls_at_the_half_speak_against_the_distance() {
        let odds = |high: f64, paired: bool| {
            let part: Vec<u64> = (0..20).map(|i| [2, 3, 4, 5, 2, 0][i % 6]).collect();
            let places = |seed: u64| busy(20, seed).into_iter().map(|x| 400.0 + (x - 400.0) / 4.0).collect::<Vec<f64>>();
            let predicted = places(7).iter().map(|x| x + 60.0).collect();
            let control = places(8).iter().zip(&part).map(|(x, part)| if *part == 2 { x + high } else { *x }).collect();
            Pairs { predicted, control, part }.at_a_part(60.0, paired).1
        };
        for paired in [false, true] {
            assert!(odds(60.0, paired) > 2.0 && odds(0.0, paired) < -1.0, "{paired}: {} {}", odds(60.0, paired), odds(0.0, paired));
        }
    }

    #[test]
    fn a_half_that_costs_nothing_is_told_from_all_that_cost_more() {
        let control = busy(64, 1);
        let all: Vec<f64> = busy(64, 2).iter().map(|x| x + 150.0).collect();
        let half: Vec<f64> = busy(64, 3).iter().enumerate().map(|(i, x)| x + 300.0 * (i % 2) as f64).collect();
        assert!(like(&all, &control, 150.0) < -1.0, "{}", like(&all, &control, 150.0));
        assert!(like(&half, &control, 150.0) > 1.0, "{}", like(&half, &control, 150.0));
    }

    /// Rows of a card that senses pages of 8 KiB together as 32 KiB. `kept`: it has what it sensed last at hand, else it looks up a map for the first read of a
    /// trial; `beside`: the three reads of a trial lie side by side.
    fn sensed(kept: bool, beside: bool) -> Run {
        const UNIT: u64 = 32 * KIB;
        let mut run = Run::new("read-boundary");
        let (mut last, mut n) = (u64::MAX, 0u64);
        for (id, align) in [2, 4, 8, 16, 32, 64, 128, 256].map(|k| k * KIB).into_iter().enumerate() {
            run.cells.push(Cell { id: id as u32, ..Cell::new(format!("{align}"), &[("align", align as i64), ("block", 1024)]) });
            for trial in 0..24u64 {
                let multiple = |k: u64| (1000 * 5 + 30 * (trial * 3 + k) + 1) * align;
                let mut three = [(PRE, 0, 1024), (ON, 1, 512), (POST, 2, 0)].map(|(role, k, before)| {
                    let p = multiple(if beside { 0 } else { k });
                    (role, p - before)
                });
                three.rotate_left(trial as usize % 3);
                for (place, (role, at)) in three.into_iter().enumerate() {
                    n += 1;
                    let ends = at + 1024 - 1;
                    let sense = if kept && at / UNIT == last && ends / UNIT == last { 0.0 } else { 60.0 };
                    let looks_up = if !kept && place == 0 { 150.0 } else { 0.0 };
                    let crosses = |size: u64| at / size != ends / size;
                    let more = if sense == 0.0 { 0.0 } else { 24.0 * f64::from(crosses(8 * KIB)) + 40.0 * f64::from(crosses(UNIT)) };
                    last = ends / UNIT;
                    let us = 250.0 + sense + more + looks_up + (n * 7919 % 13) as f64 / 4.0;
                    let took = Nanos((us * 1e3) as u64);
                    run.samples.push(Sample {
                        cell: id as u32,
                        trial: trial as u32,
                        role,
                        op: Op::Read,
                        at,
                        len: 1024,
                        start: Nanos(n * 1_000_000),
                        took,
                    });
                }
            }
        }
        run.index();
        run
    }

    /// Later reads of a trial find the page at hand, so that two of three orders show no boundary inside it.
    #[test]
    fn a_page_that_is_at_hand_hides_no_boundary() {
        for beside in [true, false] {
            let run = sensed(true, beside);
            let of = |kib: i64| Ways::of(&run).row(run.cells.iter().find(|c| c.get("align") == kib * 1024).unwrap());
            for (kib, us) in [(2, 0.0), (4, 0.0), (8, 24.0), (16, 24.0)] {
                let e = of(kib);
                assert!((e.value - us).abs() < 3.0 && e.error < 3.0, "{kib} KiB, beside {beside}: {e:?}");
            }
            assert!(of(32).value > 50.0, "{:?}", of(32));
        }
    }

    /// A map that is looked up for the first read of a trial makes the later ones faster as well, and they feel what it does.
    #[test]
    fn what_was_looked_up_is_no_page_at_hand() {
        assert!(keeps_last(&sensed(true, true), 1024));
        let run = sensed(false, true);
        assert!(!keeps_last(&run, 1024) && Ways::of(&run).reads_ahead());
        let page = run.cells.iter().find(|c| c.get("align") == 8 * 1024).unwrap();
        assert!((Ways::of(&run).row(page).value - 24.0).abs() < 3.0, "{:?}", Ways::of(&run).row(page));
    }
}
