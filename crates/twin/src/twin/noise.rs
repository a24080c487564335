//! What no structure explains of the times: the host's core, its tail, and stalls.

use super::costs::{Fitted, median, residual};
use super::data::Row;
use super::replay::Groups;
use nandscope_sim::Op;
use nandscope_sim::model::{On, Stall};
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

/// Looks at what is left.
pub fn of(rows: &[Row], g: &Groups, f: &Fitted) -> Noise {
    let mut late: Vec<(f64, bool, u64)> = vec![];
    let mut written = 0;
    for (i, r) in rows.iter().enumerate() {
        written += if r.op == Op::Write { r.len } else { 0 };
        if let Some((p, e)) = residual(r, i, g, f)
            && e > FAR * f.width(r.op == Op::Read, p)
        {
            late.push((e, r.op == Op::Write, written));
        }
    }
    let mut noise = Noise { jitter_ns: f.width[0].min(f.width[1]).round() as u64, ..Noise::default() };
    let stalls: Vec<(f64, u64)> = late.iter().filter(|l| l.1 && l.0 > STALL).map(|l| (l.0, l.2)).collect();
    if stalls.len() >= ALIKE {
        let mut times: Vec<f64> = stalls.iter().map(|s| s.0).collect();
        let middle = median(&mut times);
        // Alike: within a tenth of the middle.
        let alike: Vec<u64> = stalls.iter().filter(|s| (s.0 - middle).abs() < 0.1 * middle).map(|s| s.1).collect();
        if alike.len() >= ALIKE && alike.len() * 2 > stalls.len() {
            // Stalls that come with the bytes or at random come as long as anything is written; what came in a quarter of it is something that the
            // card did there, and that the structure does not know.
            let span = alike[alike.len() - 1] - alike[0];
            if span > written / 4 {
                let gaps: Vec<f64> = alike.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
                let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
                let spread = (gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
                // Of uniform gaps from 0 to twice the mean the deviation is 0.58 of the mean; half of that parts regular from random.
                let every = written / alike.len() as u64;
                noise.stalls.push((middle as u64, every.max(512), spread > 0.29 * mean));
            }
            late.retain(|l| !(l.1 && (l.0 - middle).abs() < 0.1 * middle));
        }
    }
    if late.len() >= ALIKE {
        let all: Vec<f64> = late.iter().map(|l| l.0).collect();
        noise.tail_ns = all.iter().fold(f64::INFINITY, |a, &b| a.min(b)) as u64;
        noise.tail_cap_ns = all.iter().fold(0.0f64, |a, &b| a.max(b)) as u64 + 1;
        noise.tail_every = (rows.len() / late.len()).max(1) as u64;
    }
    noise
}

impl Noise {
    /// The stalls as a card model has them.
    pub fn stalls(&self) -> Vec<Stall> {
        let one = |&(time, every_bytes, random): &(u64, u64, bool)| Stall { on: On::Write, time, every_bytes, every_commands: 0, random };
        self.stalls.iter().map(one).collect()
    }
}
