//! Writes of one size that take two times, and a unit that does not say which: the larger one that they cross does. A card that answers before it has
//! programmed hides a unit behind what the bus takes, and only a second one shows.

use super::model::{Count, Write};
use std::collections::BTreeMap;

/// Times fall apart where they differ by this part, by so many times the noise, and by so many times what either group is wide.
const APART: f64 = 0.2;
const NOISES: f64 = 6.0;
const WIDTHS: f64 = 3.0;

/// Writes of a size, and of either time, at least; and sizes: so many for a larger unit, so many against the one at hand, as something else (pieces of a
/// map, a host that cuts) may take time now and then.
const OF_SIZE: usize = 6;
const OF_TIME: usize = 2;
const SIZES: usize = 2;
const AGAINST: usize = 4;

/// Writes of sizes that fall apart though they touch as many units of `unit` bytes.
pub(super) struct Crossing {
    /// Bytes of those sizes.
    pub sizes: Vec<u64>,
    /// Bytes of the smallest unit that says of each write whether it is slow.
    pub unit: Option<u64>,
}

/// `noise` is a part of a time.
pub(super) fn crossing(writes: &[Write], unit: u64, noise: f64) -> Option<Crossing> {
    let mut by_size: BTreeMap<u64, Vec<Write>> = BTreeMap::new();
    writes.iter().for_each(|w| by_size.entry(w.len).or_default().push(*w));
    let larger: Vec<u64> = by_size.keys().copied().filter(|u| *u > unit).collect();
    let split: Vec<(u64, Vec<Write>, Vec<Write>)> =
        by_size.into_iter().filter_map(|(size, all)| apart(all, noise).map(|(fast, slow)| (size, fast, slow))).collect();
    // What the unit itself tells apart, in whatever way it is paid for, needs no other one.
    let begins = |w: &Write| w.at.is_multiple_of(unit) as u64;
    let by_count = Count::ALL.iter().map(|&c| split.iter().filter(|(_, f, s)| differ(f, s, &|w| w.units(unit, c))).count());
    let told = by_count.chain([split.iter().filter(|(_, f, s)| differ(s, f, &begins)).count()]).max().unwrap_or(0);
    if split.len() < SIZES || 2 * told >= split.len() {
        return None;
    }
    let says = |u: &u64| split.iter().all(|(_, fast, slow)| differ(fast, slow, &|w| w.units(*u, Count::Touched)));
    let unit = larger.into_iter().find(says);
    (unit.is_some() || split.len() >= AGAINST).then(|| Crossing { sizes: split.into_iter().map(|s| s.0).collect(), unit })
}

/// Has each of the second more than any of the first?
fn differ(less: &[Write], more: &[Write], of: &dyn Fn(&Write) -> u64) -> bool {
    less.iter().map(of).max() < more.iter().map(of).min()
}

/// Fast and slow ones. A stall is longer than both.
fn apart(mut all: Vec<Write>, noise: f64) -> Option<(Vec<Write>, Vec<Write>)> {
    nandscope_stats::ascending(&mut all, |w| w.us);
    let i = (1..all.len()).max_by(|a, b| (all[*a].us / all[a - 1].us).total_cmp(&(all[*b].us / all[b - 1].us)))?;
    let slow = all.split_off(i);
    let width = |t: &[Write]| t.last().map_or(0.0, |l| l.us - t[0].us);
    let between = slow[0].us - all.last()?.us;
    let wide = between > (APART.max(NOISES * noise) * all[0].us).max(WIDTHS * width(&all).max(width(&slow)));
    (wide && all.len() >= OF_TIME && slow.len() >= OF_TIME).then_some((all, slow))
}
