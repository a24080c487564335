//! Shares right by score, as steps that rise: what the tools that fit confidence have in common.
#![allow(dead_code)]

use std::collections::BTreeMap;

/// Scores are sorted by hundredths.
pub fn hundredth(score: f64) -> u32 {
    (score * 100.0 + 1e-6).floor() as u32
}

/// Findings of scores from one on: weights right and given, and how many they are.
#[derive(Clone, Copy, Default)]
pub struct Block {
    pub from: u32,
    pub right: f64,
    pub given: f64,
    pub count: u32,
}

impl Block {
    pub fn with(self, o: Block) -> Block {
        Block { from: self.from.min(o.from), right: self.right + o.right, given: self.given + o.given, count: self.count + o.count }
    }

    pub fn share(&self) -> f64 {
        self.right / self.given
    }

    /// The mean of a flat prior with these: of n of n it is (n + 1) / (n + 2).
    pub fn expected(&self) -> f64 {
        (self.right + 1.0) / (self.given + 2.0)
    }
}

/// Fewer findings than these are no block of their own, ...
pub const FEW: u32 = 20;

/// ... and fewer than these no map.
pub const LEAST: u32 = 5;

/// The monotone steps nearest to the shares right (pooled adjacent violators), each with its expected share.
pub fn steps(groups: &BTreeMap<u32, Block>) -> Vec<Block> {
    let mut out: Vec<Block> = vec![];
    for g in groups.values() {
        out.push(*g);
        while let [.., a, b] = out[..]
            && (a.share() >= b.share() || a.count < FEW)
        {
            out.truncate(out.len() - 2);
            out.push(a.with(b));
        }
    }
    // The last may be small, and what was added to the shares may have turned an order round.
    while let Some(i) = (1..out.len()).find(|&i| out[i].count < FEW || out[i - 1].expected() > out[i].expected()) {
        let b = out.remove(i);
        out[i - 1] = out[i - 1].with(b);
    }
    out
}
