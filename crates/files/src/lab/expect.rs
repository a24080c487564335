//! What is to be expected of an experiment, beside what it found: where an effect begins and why there may be none, what runs
//! against the expectation and whether that is noise, and two claims of others. Pure: from a [`Lab`] alone.

use super::answer::{Effect, MATTERS, Verdict, What, effect, seconds, sizes};
use super::class::Class;
use super::experiment::{Condition, Lab, State};
use crate::volume::Label;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use serde::Serialize;

/// Error probability of all sentences about anomalies together, as everywhere in the lab (95 %).
const WRONG: f64 = 0.05;
/// Up to so many rounds of both states every permutation is tried.
const EXACT: usize = 16;
/// Permutations drawn where there are more.
const DRAWN: u32 = 5000;

/// Where fragmentation begins to matter, in bytes of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Onset {
    pub what: What,
    /// Largest size below `from` without an effect.
    pub none: Option<u64>,
    /// Smallest size that is slower.
    pub from: Option<u64>,
    /// Smallest size from which on no larger one can be told from the largest.
    pub saturated: Option<u64>,
    /// Sizes of at most a cluster: such a file cannot be in pieces. True where they show no effect, none where that is undecided
    /// or no such size was measured.
    pub small: Option<bool>,
}

/// The state that has the files in pieces, and the same files in one piece each.
pub fn pair(lab: &Lab) -> Option<(&Condition, &Condition)> {
    let find = |s: State| lab.conditions.iter().find(|c| c.state == s);
    Some((find(State::Fragmented).or_else(|| find(State::AsIs))?, find(State::Defragmented)?))
}

/// Where the effect begins in writing and reading (P12); none where the states were not both measured.
pub fn onset(lab: &Lab, what: What) -> Option<Onset> {
    let (a, b) = pair(lab)?;
    let all: Vec<Effect> = sizes(lab).into_iter().filter_map(|s| effect(a, b, what, s)).collect();
    let last = all.last()?;
    let at = all.iter().position(|e| e.verdict == Verdict::Slower);
    let none = all[..at.unwrap_or(all.len())].iter().rfind(|e| e.verdict == Verdict::NoEffect).map(|e| e.size);
    let like = |e: &Effect| e.interval[0] <= last.interval[1] && e.interval[1] >= last.interval[0];
    let saturated = at.filter(|_| last.verdict == Verdict::Slower).map(|i| {
        let first = all[i..].iter().rposition(|e| !like(e)).map_or(i, |k| i + k + 1);
        all[first].size
    });
    let small: Vec<&Effect> = all.iter().filter(|e| e.size <= a.space.cluster).collect();
    let sure = !small.is_empty() && small.iter().all(|e| e.verdict != Verdict::Undecided);
    let small = sure.then(|| small.iter().all(|e| e.verdict == Verdict::NoEffect));
    Some(Onset { what, none, from: at.map(|i| all[i].size), saturated, small })
}

/// Why files in pieces are as fast as whole ones: no piece is shorter than what one call moves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Hidden {
    /// Share of the files that are in pieces.
    pub share: f64,
    pub cluster: u64,
    pub chunk: u64,
}

/// Whether large clusters hide the effect: files in pieces, no effect at any size, and clusters no shorter than a call (P4).
pub fn hidden(lab: &Lab) -> Option<Hidden> {
    let (a, b) = pair(lab)?;
    let all: Vec<Effect> = What::FILES.into_iter().flat_map(|w| sizes(lab).into_iter().filter_map(move |s| effect(a, b, w, s))).collect();
    let (share, cluster, chunk) = (a.fragmentation.fragmented_share(), a.space.cluster, lab.settings.workload.chunk);
    let none = !all.is_empty() && all.iter().all(|e| e.verdict == Verdict::NoEffect);
    (lab.label == Label::InProcess && none && share >= MATTERS && cluster >= chunk).then_some(Hidden { share, cluster, chunk })
}

/// A comparison that came out against the expectation (P11).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Anomaly {
    pub effect: Effect,
    /// Probability of a difference like this by chance alone, of one comparison (permutation test).
    pub chance: f64,
    /// Questions that could have shown one: a direction of a comparison each.
    pub of: usize,
    /// Rare enough for all of them together: 5 %.
    pub sure: bool,
}

/// How whole the files and how fresh the flash are.
fn rank(s: State) -> u8 {
    match s {
        State::AsIs | State::Fragmented => 0,
        State::Defragmented => 1,
        State::Blank => 2,
    }
}

/// What runs against the expectation that no state is faster than a less fragmented one, and that a file of at most a cluster
/// is as fast in pieces as not.
pub fn anomalies(lab: &Lab) -> Vec<Anomaly> {
    let (mut found, mut of) = (vec![], 0);
    for a in &lab.conditions {
        for b in lab.conditions.iter().filter(|b| rank(a.state) < rank(b.state)) {
            let files = [What::Write, What::Read].into_iter().flat_map(|w| sizes(lab).into_iter().map(move |s| (w, s)));
            for (what, size) in files.chain([(What::Folder, 0)]) {
                let Some(e) = effect(a, b, what, size) else { continue };
                let small = what != What::Folder && size <= a.space.cluster && b.state == State::Defragmented;
                // Each direction that would be an anomaly is a question of its own.
                of += if small { 2 } else { 1 };
                let (x, y) = (seconds(a, what, size), seconds(b, what, size));
                match e.verdict {
                    Verdict::Faster => found.push((e, chance(&x, &y))),
                    Verdict::Slower if small => found.push((e, chance(&y, &x))),
                    _ => {}
                }
            }
        }
    }
    let judged = found.into_iter().map(|(effect, chance)| Anomaly { effect, chance, of, sure: chance * of as f64 <= WRONG });
    judged.collect()
}

/// Probability that times `x` are shorter than `y` by as much as this where they differ by nothing but chance: by permutations,
/// without a model of the noise. On logarithms, so that one stall does not decide.
fn chance(x: &[f64], y: &[f64]) -> f64 {
    let mut all: Vec<f64> = x.iter().chain(y).map(|t| t.ln()).collect();
    let (n, k) = (x.len(), all.len());
    // Equal sums differ by rounding.
    let seen = all[..n].iter().sum::<f64>() + 1e-9;
    let (mut as_far, mut tried) = (0u32, 0u32);
    if k <= EXACT {
        for mask in (0u32..1 << k).filter(|m| m.count_ones() as usize == n) {
            tried += 1;
            as_far += u32::from((0..k).filter(|i| mask >> i & 1 == 1).map(|i| all[i]).sum::<f64>() <= seen);
        }
        return f64::from(as_far) / f64::from(tried.max(1));
    }
    let mut rng = Pcg64Mcg::new(0x6672_6170);
    for _ in 0..DRAWN {
        for i in 0..n {
            all.swap(i, i + (rng.next_u64() % (k - i) as u64) as usize);
        }
        tried += 1;
        as_far += u32::from(all[..n].iter().sum::<f64>() <= seen);
    }
    f64::from(as_far + 1) / f64::from(tried + 1)
}

/// T = R + E + W: a write into used flash takes the time to read and erase what is there, and the time of the write itself
/// on erased flash (P15). From the single writes of the raw card; all in ms.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReadEraseWrite {
    /// Bytes of the write, T on used flash, W on erased flash.
    pub writes: Vec<(u64, f64, f64)>,
    /// Smallest and largest T - W, which is R + E: the two cannot be had apart from outside.
    pub rest: [f64; 2],
    pub verdict: Claim,
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    Holds,
    /// Not on this card with this set-up.
    Fails,
    Undecided,
}

/// Tests T = R + E + W on the single writes; none where the device takes no discards, so that W alone was not measured.
pub fn read_erase_write(class: &Class) -> Option<ReadEraseWrite> {
    let writes: Vec<(u64, f64, f64)> = class.pieces.iter().filter_map(|p| Some((p.len, p.in_order, p.erased?))).collect();
    if writes.len() < 2 {
        return None;
    }
    let rest = |w: &(u64, f64, f64)| w.1 - w.2;
    let low = writes.iter().map(rest).fold(f64::INFINITY, f64::min);
    let high = writes.iter().map(rest).fold(f64::NEG_INFINITY, f64::max);
    let sum = |f: &dyn Fn(&(u64, f64, f64)) -> f64| writes.iter().map(f).sum::<f64>();
    let (extra, alone) = (sum(&rest), sum(&|w| w.2));
    // The formula says that the same is added to a short write and to one many times as long; the other way to be slower on used
    // flash is in proportion to W. The rest is judged by which of the two it is nearer to, on logarithms; where W is alike at
    // all lengths the two cannot be told apart.
    let (shortest, longest) = (&writes[0], &writes[writes.len() - 1]);
    let grows = (longest.2 / shortest.2.max(1e-9)).ln();
    let verdict = match () {
        _ if extra <= MATTERS * alone => Claim::Fails,
        _ if grows < (1.0 + MATTERS).ln() => Claim::Undecided,
        _ if low > 0.0 && (high / low).ln() < grows / 2.0 => Claim::Holds,
        _ => Claim::Fails,
    };
    Some(ReadEraseWrite { writes, rest: [low, high], verdict })
}

/// The largest slow-down that files in pieces show against the same files whole.
pub fn worst(lab: &Lab) -> Option<Effect> {
    let (a, b) = pair(lab)?;
    let all = [What::Write, What::Read].into_iter().flat_map(|w| sizes(lab).into_iter().filter_map(move |s| effect(a, b, w, s)));
    let all = all.chain(effect(a, b, What::Folder, 0)).filter(|e| e.verdict != Verdict::Undecided);
    all.min_by(|x, y| x.ratio.total_cmp(&y.ratio))
}

/// Whether anything is as many times slower as somebody claims.
pub fn claimed(lab: &Lab, times: f64) -> Claim {
    let Some((a, b)) = pair(lab) else { return Claim::Undecided };
    let files = [What::Write, What::Read].into_iter().flat_map(|w| sizes(lab).into_iter().filter_map(move |s| effect(a, b, w, s)));
    let all: Vec<Effect> = files.chain(effect(a, b, What::Folder, 0)).collect();
    // Two rounds have an interval that says nothing.
    let told = |e: &Effect| seconds(a, e.what, e.size).len() >= 3 && seconds(b, e.what, e.size).len() >= 3;
    match () {
        _ if all.is_empty() || !all.iter().all(told) => Claim::Undecided,
        _ if all.iter().any(|e| e.interval[1] <= 1.0 / times) => Claim::Holds,
        _ if all.iter().all(|e| e.interval[0] > 1.0 / times) => Claim::Fails,
        _ => Claim::Undecided,
    }
}

#[cfg(test)]
#[path = "expect_tests.rs"]
mod tests;
