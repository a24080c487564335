//! Small writes in order may wait in the registers of the flash until a unit is full, and the one that fills it pays for programming it; or the first
//! of a unit pays, and what follows is merged with it. What that takes longer may be little beside a command, so that who pays says more than
//! how much: the unit is the size at whose multiples the slow writes end, or begin, in all sizes below it.

use super::model::{SECTOR, Write, is_unit};
use crate::infer::stats::{mad, median};
use std::collections::BTreeMap;

/// A write that pays takes so many times as long as one that waits, at least, and lies so many times as far from those as they scatter.
const DEARER: f64 = 1.08;
const APART: f64 = 4.0;

/// Of three quarters of a unit one write in four waits, and of shorter ones more do.
const FEWEST_WAIT: usize = 4;

/// Of so many writes one may be told wrongly: a stall, or another that the card does meanwhile.
const ONE_IN: usize = 12;

/// Any other size tells so many more wrongly, and one in so many of all.
const CLEARLY: usize = 3;
const OF_ALL: usize = 10;

/// Sizes below a unit in which some pay and others wait, and writes that pay, at least.
const SIZES: usize = 3;
const PAYING: usize = 6;

/// A unit, where it begins, and how many times it was told by.
pub(super) struct Filled {
    pub unit: u64,
    /// Bytes from the start of the disk.
    pub phase: u64,
    /// Writes that pay, of all that are told apart.
    pub paying: usize,
    pub all: usize,
}

/// The line between those that wait and those that pay, in microseconds: across the first gap above those that wait. Those that pay may take one of
/// several times, and stall.
fn line(times: &[f64]) -> Option<f64> {
    let mut t = times.to_vec();
    t.sort_by(f64::total_cmp);
    let fewest = (t.len() / FEWEST_WAIT).max(2);
    let gap = |i: &usize| t[*i] > DEARER * t[i - 1].max(1.0) && t[*i] - median(&t[..*i]) > APART * mad(&t[..*i]);
    (fewest..t.len().saturating_sub(1)).find(gap).map(|i| (t[i] * t[i - 1]).sqrt())
}

/// `None` where no size explains which writes are slow, or several do. Where erase blocks are not `placed`, units may begin at any sector.
pub(super) fn unit(writes: &[Write], sizes: &BTreeMap<u64, Vec<f64>>, placed: bool) -> Option<Filled> {
    let lines: BTreeMap<u64, f64> = sizes.iter().filter_map(|(&s, t)| Some((s, line(t)?))).collect();
    let largest = *sizes.keys().last()?;
    if lines.len() < SIZES {
        return None;
    }
    let mut of_size: BTreeMap<u64, Vec<Write>> = BTreeMap::new();
    writes.iter().for_each(|w| of_size.entry(w.len).or_default().push(*w));
    let told = |unit: u64| {
        let phases = (0..if placed { 1 } else { unit / SECTOR }).map(|i| i * SECTOR);
        let ways = phases.flat_map(|phase| [Pays::Last, Pays::First].map(|who| (phase, who)));
        ways.map(|(phase, who)| told(unit, phase, who, &of_size, &lines)).min_by_key(|t| t.wrong + t.several)
    };
    let units = sizes.keys().copied().filter(|&u| 2 * u <= largest && is_unit(u));
    let mut tried: Vec<Told> = units.filter_map(told).collect();
    tried.sort_by_key(|t| (t.wrong + t.several, t.unit));
    let [best, next, ..] = &tried[..] else { return None };
    let beyond = (next.wrong + next.several).saturating_sub(best.wrong + best.several);
    let clear = best.wrong * ONE_IN <= best.all && beyond >= CLEARLY && beyond * OF_ALL >= best.all;
    let enough = best.split >= SIZES && best.short >= 1 && best.paying >= PAYING;
    (clear && enough).then_some(Filled { unit: best.unit, phase: best.phase, paying: best.paying, all: best.all })
}

/// Which write of a unit pays for it.
#[derive(Clone, Copy)]
enum Pays {
    First,
    Last,
}

/// How a size explains which writes are slow.
#[derive(Default)]
struct Told {
    unit: u64,
    phase: u64,
    /// Writes below it that are told wrongly, and all that are told.
    wrong: usize,
    all: usize,
    /// Writes of whole units of which some take longer than others: of pages of several speeds, or of a larger unit.
    several: usize,
    /// Sizes below it in which some pay and others wait, those below a quarter of it, and writes that pay.
    split: usize,
    short: usize,
    paying: usize,
}

fn told(unit: u64, phase: u64, who: Pays, of_size: &BTreeMap<u64, Vec<Write>>, lines: &BTreeMap<u64, f64>) -> Told {
    let mut t = Told { unit, phase, ..Told::default() };
    for (&len, of) in of_size {
        let units = |w: &Write| {
            let Write { at, len, .. } = w.behind(unit, phase);
            match who {
                Pays::Last => (at + len) / unit - at / unit,
                Pays::First => (at + len).div_ceil(unit) - at.div_ceil(unit),
            }
        };
        let fewest = of.iter().map(units).min().unwrap_or(0);
        let pays = of.iter().filter(|w| units(w) > fewest).count();
        let both = pays > 0 && pays < of.len();
        let Some(line) = lines.get(&len) else {
            // Some should take longer, and none does; beside whole units one more may not show.
            t.wrong += if len < unit { pays.min(of.len() - pays) } else { 0 };
            continue;
        };
        if len >= unit && !both {
            let slow = of.iter().filter(|w| w.us > *line).count();
            t.several += slow.min(of.len() - slow);
            continue;
        }
        t.wrong += of.iter().filter(|w| (units(w) > fewest) != (w.us > *line)).count();
        t.all += of.len();
        if len < unit && both {
            (t.paying, t.split, t.short) = (t.paying + pays, t.split + 1, t.short + usize::from(4 * len <= unit));
        }
    }
    t
}
