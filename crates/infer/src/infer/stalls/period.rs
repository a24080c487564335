//! The regular distance that places or times keep to, if they keep to one.

use serde::Serialize;

/// A regular distance between stalls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Period {
    /// Bytes, or ns.
    pub length: f64,
    /// Where in the period the stalls lie, on the card or in the file; of a run in which it moved: at first.
    pub phase: f64,
    /// It was the same each time the file was written.
    pub fixed: bool,
    /// Share of the stalls that lie on it, and share of its places that have one.
    pub on: f64,
    pub filled: f64,
    /// Probability that it is no accident.
    pub confidence: f64,
}

/// The period that the places keep to best, if they do; `rounds`: places of each time that the file was written. `grain` is how
/// exactly a place is known.
pub fn period(rounds: &[Vec<f64>], grain: f64) -> Option<Period> {
    let n: usize = rounds.iter().map(Vec::len).sum();
    if n < 4 {
        return None;
    }
    let pairs = |r: &Vec<f64>| r.windows(2).map(|w| w[1] - w[0]).collect::<Vec<_>>();
    let mut gaps: Vec<f64> = rounds.iter().flat_map(pairs).filter(|g| *g > 4.0 * grain).collect();
    gaps.sort_by(f64::total_cmp);
    let span: f64 = rounds.iter().filter_map(|r| Some(r.last()? - r.first()?)).sum();
    let mut candidates: Vec<f64> = (0..40)
        .filter_map(|i| gaps.get(i * gaps.len() / 40).copied())
        .flat_map(|g| [g, g / 2.0, g / 3.0])
        .filter_map(|p| refine(rounds, p, grain))
        .collect();
    candidates.retain(|p| *p > 4.0 * grain && *p <= span / 2.5);
    candidates.sort_by(f64::total_cmp);
    candidates.dedup_by(|a, b| (*a / *b - 1.0).abs() < 1e-6);
    let tried = candidates.len() as f64;
    let good = |(p, _): &(Period, f64)| p.on >= 0.6 && p.filled >= 0.4;
    let judged = candidates.into_iter().filter_map(|p| {
        let fixed = keep(rounds, p, grain, false).filter(good);
        // Where the offset moves from one time to the next, each has its own.
        fixed.or_else(|| if rounds.len() > 1 { keep(rounds, p, grain, true).filter(good) } else { None })
    });
    let judged: Vec<(Period, f64)> = judged.collect();
    // A half of the period explains the same places; the longer one says more.
    let first = judged.iter().min_by(|a, b| a.1.round().total_cmp(&b.1.round()).then(b.0.length.total_cmp(&a.0.length)))?;
    // So does it where the offset moves by a half: then it leaves every other place empty.
    let longer = |(p, _): &&(Period, f64)| {
        let times = p.length / first.0.length;
        (times - times.round()).abs() < 0.02
            && (2.0..3.1).contains(&times.round())
            && p.on >= first.0.on - 0.02
            && p.filled >= 1.5 * first.0.filled
    };
    let (best, ln_p) = judged.iter().filter(longer).max_by(|a, b| a.0.filled.total_cmp(&b.0.filled)).unwrap_or(first);
    // Each candidate was a chance to be fooled.
    let confidence = 1.0 - (ln_p + tried.ln()).exp().min(1.0);
    (confidence >= 0.95).then_some(Period { confidence: confidence.min(0.99), ..*best })
}

/// A period near `p`, exact enough for a long run: counted from one place to the next, so that no error adds up.
fn refine(rounds: &[Vec<f64>], p: f64, grain: f64) -> Option<f64> {
    let mut p = p;
    for _ in 0..2 {
        let (mut way, mut count) = (0.0, 0.0);
        for r in rounds {
            let (mut from, mut missed) = (*r.first()?, 0);
            for &x in &r[1..] {
                let k = ((x - from) / p).round();
                if k >= 1.0 && (x - from - k * p).abs() <= (0.1 * p).max(grain).min(p / 4.0) {
                    (way, count, from, missed) = (way + x - from, count + k, x, 0);
                } else {
                    missed += 1;
                    // The place to count from was itself off the grid.
                    if missed > 2 {
                        (from, missed) = (x, 0);
                    }
                }
            }
        }
        if count < 2.0 {
            return None;
        }
        p = way / count;
    }
    Some(p)
}

/// How well the places keep to a period near `p`, with one offset for all rounds or one for each (`free`): it, and ln of the
/// probability that places at random do as well.
fn keep(rounds: &[Vec<f64>], p: f64, grain: f64, free: bool) -> Option<(Period, f64)> {
    let groups: Vec<Vec<(usize, f64)>> = match free {
        true => rounds.iter().enumerate().map(|(i, r)| r.iter().map(|x| (i, *x)).collect()).collect(),
        false => vec![rounds.iter().enumerate().flat_map(|(i, r)| r.iter().map(move |x| (i, *x))).collect()],
    };
    let n = rounds.iter().map(Vec::len).sum::<usize>() as f64;
    let mut p = p;
    let mut hits: Vec<(usize, f64)> = vec![];
    let mut phase = 0.0;
    for round in 0..3 {
        // A wide net first, while the period is a rough one.
        let near = grain.max(p * [0.1, 0.05, 0.02][round]).min(p / 4.0);
        hits.clear();
        let (mut skk, mut skx) = (0.0, 0.0);
        for (g, group) in groups.iter().enumerate() {
            let turn = group.iter().map(|x| x.1 / p * std::f64::consts::TAU);
            let (s, c) = turn.fold((0.0, 0.0), |(s, c), a| (s + a.sin(), c + a.cos()));
            let at = (s.atan2(c) / std::f64::consts::TAU * p).rem_euclid(p);
            let on: Vec<(usize, f64, f64)> =
                group.iter().map(|(i, x)| (*i, ((x - at) / p).round(), *x)).filter(|(_, k, x)| (x - at - k * p).abs() <= near).collect();
            if g == 0 {
                phase = at;
            }
            let m = on.len().max(1) as f64;
            let (mk, mx) = (on.iter().map(|h| h.1).sum::<f64>() / m, on.iter().map(|h| h.2).sum::<f64>() / m);
            skk += on.iter().map(|h| (h.1 - mk).powi(2)).sum::<f64>();
            skx += on.iter().map(|h| (h.1 - mk) * (h.2 - mx)).sum::<f64>();
            hits.extend(on.iter().map(|h| (h.0, h.1)));
        }
        if hits.len() < 3 {
            return None;
        }
        // Least squares over the places that keep to it.
        if skk > 0.0 && round < 2 {
            p = skx / skk;
        }
    }
    let near = grain.max(p * 0.02).min(p / 4.0);
    let mut filled: Vec<(usize, i64)> = hits.iter().map(|h| (h.0, h.1 as i64)).collect();
    filled.sort_unstable();
    filled.dedup();
    // Two places may be the ends of the file, however often it is begun: a distance shows in three.
    let places = match free {
        true => filled.chunk_by(|a, b| a.0 == b.0).map(<[_]>::len).max().unwrap_or(0),
        false => filled.iter().map(|h| h.1).collect::<std::collections::BTreeSet<_>>().len(),
    };
    if places < 3 {
        return None;
    }
    let turns: f64 = rounds.iter().filter_map(|r| Some((r.last()? - r.first()?) / p + 1.0)).sum();
    // Two of the places set period and phase, and one more each other phase.
    let set = 1.0 + groups.iter().filter(|g| !g.is_empty()).count() as f64;
    let (k, m) = (hits.len() as f64 - set, n - set);
    let chance = (2.0 * near / p).min(0.999);
    let rate = k / m;
    if m <= 0.0 || rate <= chance {
        return None;
    }
    // Chernoff's bound of the binomial tail.
    let divergence = rate * (rate / chance).ln() + if rate < 1.0 { (1.0 - rate) * ((1.0 - rate) / (1.0 - chance)).ln() } else { 0.0 };
    let found = Period { length: p, phase, fixed: !free, on: hits.len() as f64 / n, filled: filled.len() as f64 / turns, confidence: 0.0 };
    Some((found, -m * divergence))
}
