//! The table of confidence from scores and what was right: shares right by score, as steps that rise.

use nandscope::infer::confidence::Key;
use std::collections::BTreeMap;

/// Scores are sorted by hundredths.
pub fn hundredth(score: f64) -> u32 {
    (score * 100.0 + 1e-6).floor() as u32
}

/// Findings of scores from one on: weights right and given, and how many they are.
#[derive(Clone, Copy, Default)]
struct Block {
    from: u32,
    right: f64,
    given: f64,
    count: u32,
}

impl Block {
    fn with(self, o: Block) -> Block {
        Block { from: self.from.min(o.from), right: self.right + o.right, given: self.given + o.given, count: self.count + o.count }
    }

    fn share(&self) -> f64 {
        self.right / self.given
    }

    /// The mean of a flat prior with these: of n of n it is (n + 1) / (n + 2).
    fn expected(&self) -> f64 {
        (self.right + 1.0) / (self.given + 2.0)
    }
}

/// Fewer findings than these are no block of their own, ...
const FEW: u32 = 20;

/// ... and fewer than these no map.
const LEAST: u32 = 5;

/// The monotone steps nearest to the shares right (pooled adjacent violators), each with its expected share.
fn steps(groups: &BTreeMap<u32, Block>) -> Vec<Block> {
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

/// What an answer counts: for each map each family is one witness, however many answers it has, of how such scores fare on cards that
/// nobody has modelled. A few answers are no witness of their own.
fn witnesses<F: Ord + Copy>(answers: &[(Key, F, u32, bool)]) -> BTreeMap<(Key, F), f64> {
    let mut counts: BTreeMap<(Key, F), f64> = BTreeMap::new();
    answers.iter().for_each(|a| *counts.entry((a.0, a.1)).or_default() += 1.0);
    let one = |(&(key, family), &n): (&(Key, F), &f64)| {
        let others: Vec<f64> = counts.iter().filter(|c| c.0.0 == key).map(|c| *c.1).collect();
        let mean = others.iter().sum::<f64>() / others.len() as f64;
        ((key, family), mean / n.max(f64::from(FEW)))
    };
    counts.iter().map(one).collect()
}

/// The lines of the table, from answers with their map, their family, their score in hundredths, and whether they are right.
pub fn lines<F: Ord + Copy>(answers: &[(Key, F, u32, bool)]) -> String {
    let weight = witnesses(answers);
    let mut groups: BTreeMap<Key, BTreeMap<u32, Block>> = BTreeMap::new();
    for &(key, family, from, right) in answers {
        let given = weight[&(key, family)];
        let new = Block { from, right: if right { given } else { 0.0 }, given, count: 1 };
        groups.entry(key).or_default().entry(from).and_modify(|b| *b = b.with(new)).or_insert(new);
    }
    let mut out = String::new();
    for ((source, q, says), g) in groups {
        if g.values().map(|b| b.count).sum::<u32>() < LEAST {
            continue;
        }
        for b in steps(&g) {
            let (from, sure) = (f64::from(b.from) / 100.0, (b.expected() * 1e3).floor() / 1e3);
            out += &format!("{}\t{}\t{}\t{from}\t{sure}\t{:.1}\t{:.1}\t{}\n", source.key(), q.key(), says.key(), b.right, b.given, b.count);
        }
    }
    out
}
