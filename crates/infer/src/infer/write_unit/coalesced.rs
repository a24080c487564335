//! Small writes in order that are combined: most are fast, and one takes the time of all.

use super::FLASH;
use super::model::{Write, is_unit};
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{mad, median};
use crate::units::Bytes;
use std::collections::BTreeMap;

/// By how much cheap and dear writes differ, and by how much where neither scatters.
pub(super) const COMBINED: f64 = 3.0;

pub(super) const TIGHT: f64 = 1.7;

/// Times that fall apart into cheap and dear ones, by at least this factor and two of each: the line between them.
pub(super) fn gap(times: &[f64], least: f64) -> Option<f64> {
    let mut t = times.to_vec();
    t.sort_by(f64::total_cmp);
    let (i, wide) = (1..t.len()).map(|i| (i, t[i] / t[i - 1].max(1.0))).max_by(|a, b| a.1.total_cmp(&b.1))?;
    let (cheap, dear) = t.split_at(i);
    let tight = |t: &[f64]| mad(t) < 0.05 * median(t);
    let apart = wide > COMBINED || (wide > least && tight(cheap) && tight(dear));
    // A stall is one in many, and each is another: what pays for a unit costs about the same each time.
    (apart && i >= 2 && dear.len() >= 2 && dear.len() * 12 >= t.len() && median(dear) >= FLASH && mad(dear) < 0.3 * median(dear))
        .then(|| (t[i] * t[i - 1]).sqrt())
}

/// Where small linear writes are combined, one a unit pays: the first to touch it, or the one that fills it. The unit is the
/// size at whose multiples all dear writes lie, and no cheap one.
pub(super) fn combined(writes: &[Write], sizes: &BTreeMap<u64, Vec<f64>>, least: f64) -> Finding {
    const Q: Quantity = Quantity::WriteUnit;
    let lines: BTreeMap<u64, f64> = sizes.iter().filter_map(|(&s, t)| Some((s, gap(t, least)?))).collect();
    let largest = *sizes.keys().last().unwrap_or(&512);
    let small = lines.keys().next().copied().unwrap_or(512);
    // Of each size with cheap and dear writes: those told wrongly by a unit.
    let wrong = |u: u64, fills: bool| -> (usize, usize) {
        let mut sum = (0, 0);
        for w in writes {
            let Some(line) = lines.get(&w.len) else { continue };
            let dear = if fills { (w.at + w.len) / u != w.at / u } else { w.at.is_multiple_of(u) || (w.at + w.len - 1) / u != w.at / u };
            sum = (sum.0 + (dear != (w.us > *line)) as usize, sum.1 + 1);
        }
        sum
    };
    let units = sizes.keys().copied().filter(|&u| u > small && u <= largest && is_unit(u));
    let mut tried: Vec<(usize, u64, usize)> =
        units.map(|u| [false, true].map(|f| wrong(u, f)).into_iter().min().map_or((0, u, 0), |(bad, all)| (bad, u, all))).collect();
    tried.sort_unstable();
    match tried[..] {
        // Twice the unit tells some dear writes wrongly, half of it some cheap ones: the next best must do clearly worse.
        [(bad, unit, all), (next, rival, _), ..] if bad * 25 <= all && next >= bad + 4 && next * 10 >= all => {
            let trust = if bad == 0 { 0.93 } else { 0.85 };
            let text = format!("sequential writes of {} are coalesced: most are fast and a few take the time of all", Bytes(small));
            Finding::decided(Q, unit as f64, trust).rivals([(rival as f64, (1.0 - trust) / 2.0)]).evidence(text)
        }
        _ => Finding::undecided(
            Q,
            format!(
                "most sequential writes of {} are fast and a few slow, and no unit tells which: a buffer, or a card that combines them",
                Bytes(small)
            ),
        ),
    }
}
