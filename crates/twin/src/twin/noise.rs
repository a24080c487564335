//! What no structure explains of the times: the host's core, its tail, and stalls.

use super::costs::{Fitted, median, residual};
use super::data::Row;
use super::replay::Groups;
use nandscope_sim::model::{On, Stall};
use nandscope_sim::{Model, Op};
use nandscope_stats::{deviation, mean};
use serde::Serialize;

/// Noise and stalls as a card model has them. Times in ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Noise {
    /// Width of the core of a command.
    pub jitter_ns: u64,
    /// Smallest and largest delay of the tail; one command in so many has one, 0 = none.
    pub tail_ns: u64,
    pub tail_cap_ns: u64,
    pub tail_every: u64,
    /// How long stalls last, bytes written from one to the next, and whether they come at random.
    pub stalls: Vec<(u64, u64, bool)>,
}

/// A delay this many times the width of the core is no part of it.
const FAR: f64 = 6.0;

/// Stalls of the cards whose sources name any last 20 ms and more (cards/*.toml); what hosts do lasts less.
const STALL: f64 = 1e7;

/// Fewer delays alike are chance.
const ALIKE: usize = 3;

/// A write or read that came late.
struct Late {
    /// ns.
    by: f64,
    write: bool,
    /// Bytes written up to then.
    written: u64,
    condition: usize,
}

/// Critical value of the statistic of Kolmogorov and Smirnov at 1 %, and the normal quantile of 99 %.
const UNEVEN: f64 = 1.63;
const RARE: f64 = 2.326;

/// Fewer expected, and a share of chi-squared is not distributed like it (Cochran 1954).
const EXPECTED: f64 = 5.0;

/// Whether these came as stalls do that come with the bytes or by chance: evenly over all that was written, and as often in each condition as bytes were written
/// in it. Those that did not are something that the card does there, and that the structure does not know.
fn by_bytes(alike: &[&Late], written: u64, bytes: &[f64]) -> bool {
    let n = alike.len() as f64;
    let share = |l: &Late| l.written as f64 / written.max(1) as f64;
    let far = |(i, l): (usize, &&Late)| (share(l) - i as f64 / n).abs().max((share(l) - (i + 1) as f64 / n).abs());
    if alike.iter().enumerate().map(far).fold(0.0, f64::max) * n.sqrt() > UNEVEN {
        return false;
    }
    let mut came = vec![0.0; bytes.len()];
    alike.iter().for_each(|l| came[l.condition] += 1.0);
    let expected = |b: f64| b / written.max(1) as f64 * n;
    // Conditions of which too few are expected count together.
    let (mut rest, mut few, mut sum, mut cells) = (0.0, 0.0, 0.0, 0);
    for (c, b) in came.iter().zip(bytes) {
        let e = expected(*b);
        if e >= EXPECTED {
            (sum, cells) = (sum + (c - e).powi(2) / e, cells + 1);
        } else {
            (rest, few) = (rest + c, few + e);
        }
    }
    if few >= EXPECTED {
        (sum, cells) = (sum + (rest - few).powi(2) / few, cells + 1);
    }
    let freedom = f64::from(cells - 1).max(0.0);
    // The quantile of chi-squared by Wilson and Hilferty (1931).
    let part = 2.0 / (9.0 * freedom);
    freedom == 0.0 || sum <= freedom * (1.0 - part + RARE * part.sqrt()).powi(3)
}

/// Looks at what is left.
pub fn of(rows: &[Row], m: &Model, g: &Groups, f: &Fitted) -> Noise {
    let mut late: Vec<Late> = vec![];
    let mut written = 0;
    // Of each condition the bytes written.
    let mut bytes: Vec<f64> = vec![];
    for (i, r) in rows.iter().enumerate() {
        let condition = r.condition as usize;
        if r.op == Op::Write {
            written += r.len;
            bytes.resize(bytes.len().max(condition + 1), 0.0);
            bytes[condition] += r.len as f64;
        }
        if let Some((p, e)) = residual(r, i, g, f)
            && e > FAR * f.width(r.op == Op::Read, p)
        {
            late.push(Late { by: e, write: r.op == Op::Write, written, condition });
        }
    }
    let mut noise = Noise { jitter_ns: f.width[0].min(f.width[1]).round() as u64, ..Noise::default() };
    let stalls: Vec<&Late> = late.iter().filter(|l| l.write && l.by > STALL).collect();
    if stalls.len() >= ALIKE {
        let middle = median(&mut stalls.iter().map(|s| s.by).collect::<Vec<_>>());
        // Alike: within a tenth of the middle.
        let near = |l: &Late| l.write && (l.by - middle).abs() < 0.1 * middle;
        let alike: Vec<&Late> = stalls.iter().copied().filter(|s| near(s)).collect();
        // What lasts as long as a merge is one that the structure did not foresee.
        let merge = super::levelling::as_long(middle, m, g, f);
        if alike.len() >= ALIKE && alike.len() * 2 > stalls.len() && !merge && by_bytes(&alike, written, &bytes) {
            let gaps: Vec<f64> = alike.windows(2).map(|w| (w[1].written - w[0].written) as f64).collect();
            // Of uniform gaps from 0 to twice the mean the deviation is 0.58 of the mean; half of that parts regular from random.
            let every = written / alike.len() as u64;
            noise.stalls.push((middle as u64, every.max(512), deviation(&gaps) > 0.29 * mean(&gaps)));
        }
        late.retain(|l| !near(l));
    }
    // The host delays reads as well: writes that are later than it ever makes one are what the structure does not know.
    let longest = late.iter().filter(|l| !l.write).map(|l| l.by).fold(STALL, f64::max);
    late.retain(|l| l.by <= longest);
    if late.len() >= ALIKE {
        let all: Vec<f64> = late.iter().map(|l| l.by).collect();
        noise.tail_ns = all.iter().fold(f64::INFINITY, |a, &b| a.min(b)) as u64;
        noise.tail_cap_ns = all.iter().fold(0.0f64, |a, &b| a.max(b)) as u64 + 1;
        noise.tail_every = (rows.len() / late.len()).max(1) as u64;
    }
    noise
}

/// By how much earlier than fitted a command is done before its answer waits for the next tick: what explains most times exactly. `of`: each access, what it
/// took, and what is predicted.
pub fn before(of: &[(usize, f64, f64)], tick: f64) -> f64 {
    if tick <= 0.0 {
        return 0.0;
    }
    // Up to one tick; 32 steps are finer than a host is steady.
    let met = |early: f64| of.iter().filter(|(_, took, p)| (((p - early) / tick).ceil() * tick - took).abs() < tick / 2.0).count();
    let all = (0..32).map(|k| f64::from(k) / 32.0 * tick);
    let found: Vec<(usize, f64)> = all.map(|early| (met(early), early)).collect();
    let most = found.iter().map(|x| x.0).max().unwrap_or(0);
    let best: Vec<f64> = found.iter().filter(|x| x.0 == most).map(|x| x.1).collect();
    // The middle, where several explain as many.
    best.get(best.len() / 2).copied().unwrap_or(0.0)
}

impl Noise {
    /// The stalls as a card model has them.
    pub fn stalls(&self) -> Vec<Stall> {
        let one = |&(time, every_bytes, random): &(u64, u64, bool)| Stall { on: On::Write, time, every_bytes, every_commands: 0, random };
        self.stalls.iter().map(one).collect()
    }
}
