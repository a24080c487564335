//! What the events of a structure cost: robust least squares with no negative cost, and how likely the times then are.

use super::data::Row;
use super::replay::{FITTED, Groups};
use nandscope_sim::{Event, Op};
use std::collections::HashMap;

/// Kinds of events fitted.
pub const P: usize = FITTED.len();

/// Writes that differ by less count as alike: no structure known here is right to a hundredth, and a likelihood that knew thousands of small
/// writes to a microsecond would choose what explains these and take merges of a second for chance.
const LIKE: f64 = 0.03;

/// Costs in ns an event, and how well they explain the times.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// In ns, in the order of `FITTED`.
    pub costs: [f64; P],
    /// Standard errors in ns; infinite where nothing says.
    pub errors: [f64; P],
    /// Kinds that are told apart by the times; the others were not seen, or always came with one of these.
    pub known: [bool; P],
    /// Logarithm of the likelihood of all times.
    pub likelihood: f64,
    /// Costs above 0.
    pub parameters: usize,
    /// Width of the core for reads and for all else, ns.
    pub width: [f64; 2],
    /// The same as a share of the time, for each order of magnitude of it: a structure that is wrong about merges of a second may be right
    /// about writes of a millisecond.
    pub share: [[f64; ORDERS]; 2],
    /// Share of accesses that are late by chance.
    pub late: f64,
    /// The narrowest core, ns.
    pub grain: f64,
}

/// Orders of magnitude from 1 ns to an hour.
const ORDERS: usize = 13;

fn order(ns: f64) -> usize {
    (ns.max(1.0).log10() as usize).min(ORDERS - 1)
}

impl Fitted {
    /// Width of the core of an access that takes about so long.
    pub fn width(&self, read: bool, ns: f64) -> f64 {
        let share = self.share[usize::from(!read)][order(ns)];
        self.grain.hypot(if read { share } else { share.max(LIKE) } * ns)
    }

    /// ns that an access of a group takes.
    pub fn predict(&self, counts: &[f64; P]) -> f64 {
        counts.iter().zip(&self.costs).map(|(n, c)| n * c).sum()
    }
}

pub fn median(x: &mut [f64]) -> f64 {
    if x.is_empty() {
        return f64::NAN;
    }
    let n = x.len() / 2;
    *x.select_nth_unstable_by(n, f64::total_cmp).1
}

/// Rounds of reweighting: the weights change little after the third.
const ROUNDS: usize = 5;

/// Degrees of freedom of the core: times of hosts have shoulders that a normal core has not, and with 4 the weights of Student's t are those
/// usually taken for robust regression (Lange, Little and Taylor 1989).
const FREEDOM: f64 = 4.0;

/// The times of accesses lie between 1 us and 10 s: lateness by chance is spread evenly over these orders of magnitude.
const SPREAD: f64 = 16.1;

/// The share where too few say.
const FEW_SHARE: f64 = 0.03;

/// The narrowest core that is believed, ns: clocks of hosts have no finer grain.
pub const GRAIN: f64 = 100.0;

/// Fits the costs. Where a structure is right in part, a few merges that it expects and that did not come would hold the cost of all at 0 if
/// each time counted by its own length, and a few that it misses would spoil the cost of a read if all counted alike: it is begun both ways,
/// and the likelier costs count.
pub fn fit(rows: &[Row], g: &Groups, grain: f64) -> Fitted {
    let measured = Measured::of(rows, g);
    let a = descend(rows, g, &measured, grain, false);
    if a.late < FEW {
        return a;
    }
    let b = descend(rows, g, &measured, grain, true);
    if b.likelihood > a.likelihood { b } else { a }
}

/// What was measured of each group of accesses, and the kinds that it can tell apart.
struct Measured {
    /// Accesses, and their median in ns.
    n: Vec<f64>,
    y: Vec<f64>,
    reads: Vec<bool>,
    known: [bool; P],
}

impl Measured {
    fn of(rows: &[Row], g: &Groups) -> Measured {
        let groups = g.counts.len();
        let mut times: Vec<Vec<f64>> = vec![vec![]; groups];
        let mut reads = vec![false; groups];
        for (i, r) in rows.iter().enumerate() {
            if let Some(t) = times.get_mut(g.of[i] as usize) {
                t.push((r.took as f64 - g.late[i]).max(0.0));
                reads[g.of[i] as usize] = r.op == Op::Read;
            }
        }
        let n = times.iter().map(|t| t.len() as f64).collect();
        let y = times.iter_mut().map(|t| median(t)).collect();
        Measured { n, y, reads, known: told_apart(&g.counts) }
    }
}

/// Where fewer are late nothing is left that another beginning could explain.
const FEW: f64 = 0.001;

/// From costs that explain relative or absolute times to those that explain most times within the width of the core.
fn descend(rows: &[Row], g: &Groups, measured: &Measured, grain: f64, absolute: bool) -> Fitted {
    let groups = g.counts.len();
    let Measured { n, y, reads, known } = measured;
    let known = *known;
    let columns: Vec<usize> = (0..P).filter(|&k| known[k]).collect();
    let mut out = Fitted {
        costs: [0.0; P],
        errors: [f64::INFINITY; P],
        known,
        likelihood: f64::NEG_INFINITY,
        parameters: 0,
        width: [grain; 2],
        share: [[FEW_SHARE; ORDERS]; 2],
        late: 0.01,
        grain,
    };
    let longest = y.iter().fold(0.0f64, |a, &b| a.max(b));
    let mut width: Vec<f64> = y.iter().map(|y| 0.03 * if absolute { longest } else { *y } + 2000.0).collect();
    for round in 0..ROUNDS {
        let mut gram = vec![vec![0.0; columns.len() + 1]; columns.len()];
        for i in 0..groups {
            let z = if round == 0 { 0.0 } else { (y[i] - out.predict(&g.counts[i])) / width[i] };
            let w = n[i] * (FREEDOM + 1.0) / (FREEDOM + z * z) / (width[i] * width[i]);
            for (a, &ka) in columns.iter().enumerate() {
                let x = g.counts[i][ka] * w;
                if x != 0.0 {
                    for (b, &kb) in columns.iter().enumerate().skip(a) {
                        gram[a][b] += x * g.counts[i][kb];
                    }
                    gram[a][columns.len()] += x * y[i];
                }
            }
        }
        let (solution, errors) = non_negative(&gram);
        (out.costs, out.errors) = ([0.0; P], [f64::INFINITY; P]);
        for (a, &k) in columns.iter().enumerate() {
            (out.costs[k], out.errors[k]) = (solution[a], errors[a]);
        }
        widths(rows, g, &mut out);
        // What a group takes and what it should take: a merge that did not come is no reason to trust its time to a microsecond.
        width = (0..groups).map(|i| out.width(reads[i], if absolute { y[i].max(out.predict(&g.counts[i])) } else { y[i] })).collect();
    }
    out.parameters = out.costs.iter().filter(|c| **c > 0.0).count();
    likelihood(rows, g, &mut out);
    out
}

/// Kinds that occur, without those that are always the same share of another one before them.
fn told_apart(counts: &[[f64; P]]) -> [bool; P] {
    let mut known = [false; P];
    for k in 0..P {
        let occurs = counts.iter().any(|c| c[k] != 0.0);
        let same = |j: usize| {
            let mut ratio = None;
            counts.iter().all(|c| match (c[j] != 0.0, c[k] != 0.0) {
                (false, false) => true,
                (true, true) => (*ratio.get_or_insert(c[k] / c[j]) - c[k] / c[j]).abs() < 1e-9,
                _ => false,
            })
        };
        known[k] = occurs && !(0..k).any(|j| known[j] && same(j));
    }
    known
}

/// Least squares with no negative solution (Lawson and Hanson 1974, chapter 23) from the upper half of the normal equations with the right
/// side as the last column; with standard errors of those above 0.
fn non_negative(gram: &[Vec<f64>]) -> (Vec<f64>, Vec<f64>) {
    let n = gram.len();
    let scale: Vec<f64> = (0..n).map(|i| gram[i][i].max(1e-300).sqrt()).collect();
    let a = |i: usize, j: usize| gram[i.min(j)][i.max(j)] / scale[i] / scale[j];
    let b: Vec<f64> = (0..n).map(|i| gram[i][n] / scale[i]).collect();
    let largest = b.iter().fold(0.0f64, |m, x| m.max(x.abs())).max(1e-300);
    let (mut inside, mut x) = (vec![false; n], vec![0.0; n]);
    for _ in 0..3 * n + 3 {
        let w: Vec<f64> = (0..n).map(|i| b[i] - (0..n).map(|j| a(i, j) * x[j]).sum::<f64>()).collect();
        let Some(best) = (0..n).filter(|&i| !inside[i] && w[i] > 1e-9 * largest).max_by(|&i, &j| w[i].total_cmp(&w[j])) else { break };
        inside[best] = true;
        for _ in 0..n + 1 {
            let set: Vec<usize> = (0..n).filter(|&i| inside[i]).collect();
            let Some(s) = solve(&set, &a, &b) else {
                inside[best] = false;
                break;
            };
            if s.iter().all(|&v| v > 0.0) {
                x = vec![0.0; n];
                set.iter().zip(&s).for_each(|(&i, &v)| x[i] = v);
                break;
            }
            let step = set.iter().zip(&s).filter(|(_, v)| **v <= 0.0).map(|(&i, &v)| x[i] / (x[i] - v).max(1e-300)).fold(1.0, f64::min);
            for (&i, &v) in set.iter().zip(&s) {
                x[i] += step * (v - x[i]);
                if x[i] <= 1e-12 * largest || v <= 0.0 && x[i] <= 1e-9 {
                    (x[i], inside[i]) = (0.0, false);
                }
            }
        }
    }
    let set: Vec<usize> = (0..n).filter(|&i| inside[i]).collect();
    let mut errors = vec![f64::INFINITY; n];
    for (at, &i) in set.iter().enumerate() {
        let unit: Vec<f64> = (0..n).map(|k| f64::from(k == i)).collect();
        if let Some(s) = solve(&set, &a, &unit) {
            errors[i] = s[at].max(0.0).sqrt() / scale[i];
        }
    }
    ((0..n).map(|i| x[i] / scale[i]).collect(), errors)
}

/// Gauss with pivots over the rows and columns of `set`; None where it is singular.
fn solve(set: &[usize], a: &impl Fn(usize, usize) -> f64, b: &[f64]) -> Option<Vec<f64>> {
    let n = set.len();
    let mut m: Vec<Vec<f64>> = set.iter().map(|&i| set.iter().map(|&j| a(i, j)).chain([b[i]]).collect()).collect();
    for c in 0..n {
        let p = (c..n).max_by(|&i, &j| m[i][c].abs().total_cmp(&m[j][c].abs()))?;
        m.swap(c, p);
        if m[c][c].abs() < 1e-11 {
            return None;
        }
        for r in c + 1..n {
            let f = m[r][c] / m[c][c];
            if f != 0.0 {
                let (upper, lower) = m.split_at_mut(r);
                lower[0].iter_mut().zip(&upper[c]).skip(c).for_each(|(x, y)| *x -= f * y);
            }
        }
    }
    let mut x = vec![0.0; n];
    for c in (0..n).rev() {
        let rest: f64 = (c + 1..n).map(|j| m[c][j] * x[j]).sum();
        x[c] = (m[c][n] - rest) / m[c][c];
    }
    Some(x)
}

/// How much longer than predicted an access took; None where the structure refuses it.
pub fn residual(r: &Row, i: usize, g: &Groups, f: &Fitted) -> Option<(f64, f64)> {
    let p = f.predict(g.counts.get(g.of[i] as usize)?) + g.late[i];
    Some((p, r.took as f64 - p))
}

/// What is predicted of each access, and how much longer it took; None where the structure refuses it.
fn residuals<'a>(rows: &'a [Row], g: &'a Groups, f: &Fitted) -> impl Iterator<Item = Option<(f64, f64)>> + 'a {
    let of: Vec<f64> = g.counts.iter().map(|c| f.predict(c)).collect();
    rows.iter().enumerate().map(move |(i, r)| {
        let p = of.get(g.of[i] as usize)? + g.late[i];
        Some((p, r.took as f64 - p))
    })
}

/// Widths of the core from the residuals.
fn widths(rows: &[Row], g: &Groups, f: &mut Fitted) {
    let mut of: [Vec<f64>; 2] = [vec![], vec![]];
    let mut by: [[Vec<f64>; ORDERS]; 2] = Default::default();
    for (r, x) in rows.iter().zip(residuals(rows, g, f)) {
        if let Some((p, e)) = x {
            let kind = usize::from(r.op != Op::Read);
            of[kind].push(e.abs());
            by[kind][order(p)].push((e / p.max(1.0)).abs());
        }
    }
    for (w, e) in f.width.iter_mut().zip(&mut of) {
        *w = if e.is_empty() { f.grain } else { (1.4826 * median(e)).max(f.grain) };
    }
    // A quarter of a normal core lies within 0.319 of its width: a structure that is right for every fourth of them shows the width for all.
    f.share = [[FEW_SHARE; ORDERS]; 2];
    for (shares, of) in f.share.iter_mut().zip(&mut by) {
        for (share, of) in shares.iter_mut().zip(of).filter(|(_, of)| of.len() >= 8) {
            let quarter = of.len() / 4;
            *share = (*of.select_nth_unstable_by(quarter, f64::total_cmp).1 / 0.319).clamp(0.0005, 0.5);
        }
    }
}

/// Logarithm of Student's density with 4 degrees of freedom.
fn core(z: f64) -> f64 {
    let q = 1.0 + z * z / FREEDOM;
    0.375 / (q * q * q.sqrt())
}

/// The likelihood of one time: a core, or lateness by chance.
fn ln_density(took: f64, residual: f64, width: f64, late: f64) -> f64 {
    ((1.0 - late) * core(residual / width) / width + late / (SPREAD * took.max(1000.0))).ln()
}

/// An access that the structure refuses is as if it were late by chance.
fn likelihood(rows: &[Row], g: &Groups, f: &mut Fitted) {
    let far = |(r, x): &(&Row, Option<(f64, f64)>)| x.is_none_or(|(p, e)| e.abs() > 6.0 * f.width(r.op == Op::Read, p));
    let late = rows.iter().zip(residuals(rows, g, f)).filter(far).count();
    f.late = ((late as f64 + 1.0) / (rows.len() as f64 + 2.0)).clamp(1e-4, 0.5);
    f.likelihood = densities(rows, g, f).iter().sum::<f64>() - g.lots;
}

/// The logarithm of the likelihood of each time.
pub fn densities(rows: &[Row], g: &Groups, f: &Fitted) -> Vec<f64> {
    let one = |(r, x): (&Row, Option<(f64, f64)>)| match x {
        Some((p, e)) => ln_density(r.took as f64, e, f.width(r.op == Op::Read, p), f.late),
        None => (f.late / (SPREAD * (r.took as f64).max(1000.0))).ln(),
    };
    rows.iter().zip(residuals(rows, g, f)).map(one).collect()
}

/// The rival without structure: a median for each condition. The logarithm of the likelihood, and how many conditions.
pub fn no_structure(rows: &[Row], grain: f64) -> (f64, usize) {
    let of: Vec<usize> = rows.iter().map(|r| r.condition as usize).collect();
    let (all, used) = medians(rows, &of, grain);
    (all.iter().sum(), used)
}

/// The rival that knows sizes alone: a median for each kind and length. The logarithm of the likelihood of each time, and how many there are.
pub fn by_size(rows: &[Row], grain: f64) -> (Vec<f64>, usize) {
    let mut known: HashMap<(Op, u64), usize> = HashMap::new();
    let mut of = vec![];
    for r in rows {
        let next = known.len();
        of.push(*known.entry((r.op, r.len)).or_insert(next));
    }
    medians(rows, &of, grain)
}

/// A median for each class of accesses.
fn medians(rows: &[Row], of: &[usize], grain: f64) -> (Vec<f64>, usize) {
    let mut times: Vec<Vec<f64>> = vec![vec![]; of.iter().map(|c| c + 1).max().unwrap_or(0)];
    rows.iter().zip(of).for_each(|(r, &c)| times[c].push(r.took as f64));
    let used = times.iter().filter(|t| !t.is_empty()).count();
    let middle: Vec<f64> = times.iter_mut().map(|t| median(t)).collect();
    // Each class is a kind of event of its own that costs its median: the same noise, the same likelihood.
    let mut f = Fitted {
        costs: [0.0; P],
        errors: [0.0; P],
        known: [false; P],
        likelihood: 0.0,
        parameters: used,
        width: [grain; 2],
        share: [[FEW_SHARE; ORDERS]; 2],
        late: 0.01,
        grain,
    };
    let g = Groups { counts: vec![[0.0; P]], of: vec![0; rows.len()], late: of.iter().map(|&c| middle[c]).collect(), lots: 0.0 };
    widths(rows, &g, &mut f);
    likelihood(rows, &g, &mut f);
    (densities(rows, &g, &f), used)
}

/// The place of a kind in `FITTED`.
pub fn place(e: Event) -> usize {
    FITTED.iter().position(|f| *f == e).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_squares_without_negative_costs() {
        // x = (2, 0, 3) with a column that would be negative, and one that is twice another.
        let rows = [[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [1.0, 2.0, 1.0], [1.0, 1.0, 4.0], [1.0, 3.0, 0.0]];
        let y: Vec<f64> = rows.iter().map(|r| 2.0 * r[0] - 0.1 * r[1] + 3.0 * r[2]).collect();
        let gram: Vec<Vec<f64>> = (0..3)
            .map(|i| {
                (0..3).map(|j| rows.iter().map(|r| r[i] * r[j]).sum()).chain([rows.iter().zip(&y).map(|(r, y)| r[i] * y).sum()]).collect()
            })
            .collect();
        let (x, e) = non_negative(&gram);
        assert!(x[1] == 0.0 && (x[0] - 1.85).abs() < 0.1 && (x[2] - 3.0).abs() < 0.1, "{x:?}");
        assert!(e[0].is_finite() && e[1].is_infinite());
        let mut counts = vec![[0.0; P]; 4];
        for (i, c) in counts.iter_mut().enumerate() {
            (c[0], c[1], c[2], c[3]) = (1.0, i as f64, 2.0 * i as f64, 2.0 - i as f64);
        }
        assert_eq!(told_apart(&counts)[..5], [true, true, false, true, false]);
    }
}
