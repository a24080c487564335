//! What a search leaves to believe: the twin, how likely each part of it is, what it explains and what not.

use super::costs::{P, median, place, residual};
use super::data::Data;
use super::noise::{self, Noise};
use super::replay::{FITTED, Groups, groups};
use super::search::{Scored, evidence, priced};
use super::told::parts;
use crate::units::Bytes;
use nandscope_sim::model::FtlKind;
use nandscope_sim::{Event, Model, Op};
use serde::Serialize;
use std::time::Duration;

/// A part of the structure and how likely it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Weight {
    pub name: &'static str,
    pub value: String,
    pub probability: f64,
    /// Other values with their probabilities, the likeliest first.
    pub rivals: Vec<(String, f64)>,
}

/// What an event costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    pub event: Event,
    pub name: &'static str,
    pub ns: f64,
    /// 95 %; none where it is assumed.
    pub interval_ns: Option<[f64; 2]>,
}

/// How much of an experiment is explained.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    pub experiment: String,
    pub accesses: usize,
    /// Share of the variance of its times; none where they hardly vary.
    pub explained: Option<f64>,
    /// Share of its accesses within 10 % of the predicted time.
    pub within_tenth: f64,
}

/// A condition that is explained badly.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Quality {
    pub experiment: String,
    pub condition: String,
    pub accesses: usize,
    /// Means, ns.
    pub measured_ns: f64,
    pub predicted_ns: f64,
}

/// A card model fitted to reports, with what is known of it.
#[derive(Clone, Debug, Serialize)]
pub struct Twin {
    /// The card model.
    #[serde(skip)]
    pub model: Model,
    /// What was measured.
    pub of: String,
    pub accesses: usize,
    /// Share of the accesses that say something of their own.
    pub independent: f64,
    pub structure: Vec<Weight>,
    pub costs: Vec<Cost>,
    pub noise: Noise,
    /// Share of the variance of all times that is explained, and of accesses within 10 %.
    pub explained: f64,
    pub within_tenth: f64,
    pub experiments: Vec<Part>,
    /// The conditions that lie furthest from what is predicted.
    pub worst: Vec<Quality>,
    /// Of each condition the measured and predicted median, ms.
    pub points: Vec<[f64; 2]>,
    /// What differs in the best rival, and its probability.
    pub rival: Option<(String, f64)>,
    /// Probability that none of the structures is right: a mean for each condition explains more.
    pub none_of_these: f64,
    /// Why this is no card of a known kind.
    pub no_card: Option<String>,
    /// What the reports say nothing of.
    pub assumed: Vec<String>,
    /// Structures compared.
    pub structures: usize,
    /// Whether the search was ended before it was done.
    pub cut: bool,
    pub seconds: f64,
    pub seed: u64,
}

/// Standard errors of a one-sided test at 5 %.
const SURE: f64 = 1.645;

#[allow(clippy::too_many_arguments)]
pub fn build(
    data: &Data,
    mut all: Vec<Scored>,
    tried: usize,
    steady: f64,
    none: (f64, usize),
    share: f64,
    cut: bool,
    took: Duration,
    seed: u64,
) -> Twin {
    let n = data.rows.len();
    let of = |s: &Scored| s.evidence(n, share);
    nandscope_stats::sort_by(&mut all, |a, b| of(b).total_cmp(&of(a)).then_with(|| a.model.to_toml().cmp(&b.model.to_toml())));
    let best = all[0].clone();
    let top = of(&best);
    let weights: Vec<f64> = all.iter().map(|s| (of(s) - top).exp()).collect();
    let sum: f64 = weights.iter().sum();
    let structure = structure(&best.model, &all, &weights, sum);
    // Of many structures tried one must win: each has its share of the prior, and the rivals without structure have one each.
    let chances = (tried as f64).ln();
    let nothing = evidence(none.0, none.1, n, share);
    let some = top + sum.ln() - chances;
    let none_of_these = 1.0 / (1.0 + (some - nothing).exp());
    let g = groups(&priced(&best.model, &best.fitted.costs), &data.rows, seed);
    let noise = noise::of(&data.rows, &best.model, &g, &best.fitted);
    let pairs: Vec<(usize, f64, f64)> =
        data.rows.iter().enumerate().filter_map(|(i, r)| Some((i, r.took as f64, residual(r, i, &g, &best.fitted)?.0))).collect();
    let (mut model, costs, assumed) = finish(data, &best, &g, share);
    (model.host.jitter, model.host.tail, model.host.tail_every) = (noise.jitter_ns, noise.tail_ns, noise.tail_every);
    model.host.tick = data.tick;
    model.host.command = (model.host.command as f64 - noise::before(&pairs, data.tick as f64)).max(0.0) as u64;
    model.host.tail_cap = noise.tail_cap_ns.max(noise.tail_ns);
    model.stall = noise.stalls();
    let part = |rows: &[&(usize, f64, f64)]| {
        let mean = rows.iter().map(|p| p.1).sum::<f64>() / rows.len().max(1) as f64;
        let total: f64 = rows.iter().map(|p| (p.1 - mean).powi(2)).sum();
        let left: f64 = rows.iter().map(|p| (p.1 - p.2).powi(2)).sum();
        let near = rows.iter().filter(|p| (p.1 - p.2).abs() <= 0.1 * p.1).count() as f64 / rows.len().max(1) as f64;
        // Where times vary by less than 3 %, it is noise that varies.
        let varies = (total / rows.len().max(1) as f64).sqrt() > 0.03 * mean;
        (varies.then(|| 1.0 - left / total), near)
    };
    let mut experiments = vec![];
    for (i, name) in data.parts.iter().enumerate() {
        let own: Vec<&(usize, f64, f64)> = pairs.iter().filter(|p| data.rows[p.0].part as usize == i).collect();
        if !own.is_empty() {
            let (explained, within_tenth) = part(&own);
            experiments.push(Part { experiment: name.clone(), accesses: own.len(), explained, within_tenth });
        }
    }
    let (explained, within_tenth) = part(&pairs.iter().collect::<Vec<_>>());
    let (worst, points) = conditions(data, &pairs);
    let no_card = no_card(data, steady, chances, none_of_these, &experiments, cut.then_some(tried));
    Twin {
        model,
        of: data.name.clone(),
        accesses: n,
        independent: share,
        structure,
        costs,
        noise,
        explained: explained.unwrap_or(1.0),
        within_tenth,
        experiments,
        worst,
        points,
        rival: all.get(1).map(|r| (differs(&best.model, &r.model), weights[1] / sum)),
        none_of_these,
        no_card,
        assumed,
        structures: tried,
        cut,
        seconds: took.as_secs_f64(),
        seed,
    }
}

/// `steady`: how many standard errors the best structure is better by than one where sizes alone count; `chances`: logarithm of the structures
/// it is the best of; `cut`: the structures that were compared, where the time was over before the others were.
fn no_card(data: &Data, steady: f64, chances: f64, none: f64, experiments: &[Part], cut: Option<usize>) -> Option<String> {
    // The largest of n normal variates lies near the square root of 2 ln n.
    let alike = steady < SURE + (2.0 * chances).sqrt();
    if let (Some(few), true) = (cut, alike || none > 0.5) {
        return Some(format!("none of the {few} structures that there was time for explains the times: --time allows more"));
    }
    if alike {
        let more = if data.writes() { "" } else { ". Nothing was written: `nandscope probe TARGET --write` says more" };
        return Some(format!(
            "the times follow from the size of each access alone, no page, erase block or mapping shows: this is no flash card of a known kind (a RAM disk, a file, a disk with a large cache){more}"
        ));
    }
    if none > 0.5 {
        let worst = experiments.iter().min_by(|a, b| a.explained.unwrap_or(1.0).total_cmp(&b.explained.unwrap_or(1.0)));
        let which = worst.map_or(String::new(), |w| format!("; it fits {} worst", w.experiment));
        return Some(format!(
            "this card does not behave like any model known here: a mean for each condition explains its times better{which}"
        ));
    }
    None
}

fn structure(best: &Model, all: &[Scored], weights: &[f64], sum: f64) -> Vec<Weight> {
    let named: Vec<Vec<(&'static str, String)>> = all.iter().map(|s| parts(&s.model)).collect();
    let mut out = vec![];
    for (name, value) in parts(best) {
        let mut by: Vec<(String, f64)> = vec![];
        for (p, w) in named.iter().zip(weights) {
            let v = p.iter().find(|x| x.0 == name).map_or_else(|| "none".to_string(), |x| x.1.clone());
            match by.iter_mut().find(|b| b.0 == v) {
                Some(b) => b.1 += w / sum,
                None => by.push((v, w / sum)),
            }
        }
        nandscope_stats::descending(&mut by, |a| a.1);
        let probability = by.iter().find(|b| b.0 == value).map_or(0.0, |b| b.1).min(0.999);
        let rivals = by.into_iter().filter(|b| b.0 != value && b.1 >= 0.001).take(3).collect();
        out.push(Weight { name, value, probability, rivals });
    }
    out
}

/// What differs from one structure to another, in words.
fn differs(a: &Model, b: &Model) -> String {
    let (a, b) = (parts(a), parts(b));
    let other = |name: &str| a.iter().find(|x| x.0 == name).map(|x| &x.1);
    let mut out: Vec<String> = b.iter().filter(|x| other(x.0) != Some(&x.1)).map(|x| format!("{} {}", x.0, x.1)).collect();
    out.extend(a.iter().filter(|x| !b.iter().any(|y| y.0 == x.0)).map(|x| format!("no {}", x.0)));
    if out.is_empty() { "the same but for a setting of its policy".into() } else { out.join(", ") }
}

fn conditions(data: &Data, pairs: &[(usize, f64, f64)]) -> (Vec<Quality>, Vec<[f64; 2]>) {
    let mut of: Vec<(Vec<f64>, Vec<f64>)> = vec![(vec![], vec![]); data.conditions.len()];
    for (i, took, predicted) in pairs {
        let c = &mut of[data.rows[*i].condition as usize];
        c.0.push(*took);
        c.1.push(*predicted);
    }
    let mut worst = vec![];
    let mut points = vec![];
    for ((t, p), (part, label)) in of.iter_mut().zip(&data.conditions) {
        if t.is_empty() {
            continue;
        }
        let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
        let q = Quality {
            experiment: data.parts[*part as usize].clone(),
            condition: label.clone(),
            accesses: t.len(),
            measured_ns: mean(t),
            predicted_ns: mean(p),
        };
        if t.len() >= 3 {
            worst.push(q);
        }
        points.push([median(t) / 1e6, median(p) / 1e6]);
    }
    // By the time that is missing or too much.
    let missing = |q: &Quality| (q.measured_ns - q.predicted_ns).abs() * q.accesses as f64;
    worst.retain(|q| (q.measured_ns - q.predicted_ns).abs() > 0.1 * q.measured_ns);
    nandscope_stats::descending(&mut worst, missing);
    worst.truncate(5);
    (worst, points)
}

/// An erase of flash takes 1.5 to 10 ms in data sheets; the geometric mean.
const ERASE: f64 = 3.9e6;

/// The model with its costs; what nothing was measured of is assumed, and said. What always came with something else has its cost there.
fn finish(data: &Data, best: &Scored, g: &Groups, share: f64) -> (Model, Vec<Cost>, Vec<String>) {
    let f = &best.fitted;
    let mut costs: [f64; P] = f.costs;
    let mut assumed: Vec<(Event, String)> = vec![];
    let kind = best.model.ftl.kind;
    let mut base = best.model.clone();
    let known = |e: Event| f.known[place(e)];
    let came = |e: Event| g.counts.iter().any(|c| c[place(e)] > 0.0);
    let mut set = |costs: &mut [f64; P], e: Event, ns: f64, why: String| {
        costs[place(e)] = ns;
        assumed.push((e, why));
    };
    if !data.writes() {
        // 10 MB/s and a few open erase blocks, as most cards have them.
        base.ftl.kind = FtlKind::BlockMap;
        (base.ftl.block.open_linear, base.ftl.block.open_random) = (5, 5);
        let program = base.nand.write_unit as f64 * 100.0;
        set(
            &mut costs,
            Event::Program,
            program,
            format!("nothing was written: {} are assumed to take {:.2} ms", Bytes(base.nand.write_unit), program / 1e6),
        );
        set(&mut costs, Event::Copy, program, "nothing was written: copying is assumed to take as long as programming".into());
        set(&mut costs, Event::Close, 2e7, "nothing was written: block-mapped with 5 open AUs, 20 ms a merge, are assumed".into());
        set(&mut costs, Event::Erase, ERASE, "nothing was written: an erase is assumed to take 3.9 ms".into());
    } else if kind != FtlKind::None {
        if !known(Event::Copy) && !came(Event::Copy) {
            let copy = costs[place(Event::Program)] + costs[place(Event::Sense)];
            set(&mut costs, Event::Copy, copy, "no copying was told apart: as long as reading and programming".into());
        }
        let (close, in_merge) = (costs[place(Event::Close)], known(Event::Close));
        if !known(Event::Erase) && (in_merge || known(Event::CloseRandom) || !came(Event::Erase)) {
            let erase = if in_merge { ERASE.min(close) } else { ERASE };
            if in_merge {
                costs[place(Event::Close)] = close - erase;
            }
            set(&mut costs, Event::Erase, erase, "no erase came without a merge: 3.9 ms, or what a merge takes, are assumed of it".into());
        }
        if kind == FtlKind::BlockMap && !known(Event::Close) && !known(Event::CloseRandom) {
            assumed.push((Event::Close, "no merge was seen: it is assumed to cost no more than copying and erasing".into()));
        }
    }
    if !known(Event::CloseRandom) || costs[place(Event::CloseRandom)] == 0.0 {
        costs[place(Event::CloseRandom)] = 0.0;
    } else if !known(Event::Close) {
        costs[place(Event::Close)] = costs[place(Event::CloseRandom)];
    }
    // The merges all came with an erase: what is assumed of one is no part of the other.
    if assumed.iter().any(|a| a.0 == Event::Erase) && known(Event::CloseRandom) && kind == FtlKind::BlockMap {
        let at = place(Event::CloseRandom);
        costs[at] = (costs[at] - costs[place(Event::Erase)]).max(0.0);
    }
    let list = FITTED
        .into_iter()
        .filter(|e| costs[place(*e)] > 0.0 || f.known[place(*e)])
        .map(|e| {
            let i = place(e);
            let changed = assumed.iter().any(|a| a.0 == e) || costs[i] != f.costs[i];
            let error = 1.96 * f.errors[i] / share.sqrt();
            let interval = (f.known[i] && !changed && error.is_finite()).then(|| [(costs[i] - error).max(0.0), costs[i] + error]);
            Cost { event: e, name: e.name(), ns: costs[i], interval_ns: interval }
        })
        .collect();
    let mut model = priced(&base, &costs);
    model.about = format!("fitted to {} accesses of {}", data.rows.len(), data.name.replace(['"', '\\'], "'"));
    if !data.rows.iter().any(|r| r.op == Op::Flush) {
        assumed.push((Event::Flush, "no flush was measured: it costs a command".into()));
    }
    (model, list, assumed.into_iter().map(|a| a.1).collect())
}
