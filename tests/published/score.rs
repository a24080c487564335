//! Counts right and wrong answers.

use nandscope::finding::Finding;
use std::fmt::Write;

/// From here on an answer counts as given.
pub const SURE: f64 = 0.8;

pub fn answer(f: &Finding) -> String {
    let p = format!("{:.0} %", f.confidence * 100.0);
    match (f.number(), f.at_least) {
        (Some(v), _) => format!("{} ({p})", f.quantity.show(v)),
        (None, Some(b)) => format!("at least {} ({p})", f.quantity.show(b.0)),
        _ => "undecided".into(),
    }
}

#[derive(Clone, Copy, Default)]
pub struct Count {
    pub sure: u32,
    pub wrong: u32,
    pub shown: u32,
    pub found: u32,
    /// Sums over answers of any confidence: given, right, confidence.
    given: f64,
    right: f64,
    claimed: f64,
}

#[derive(Default)]
pub struct Score(Vec<(&'static str, Count)>);

impl Score {
    fn entry(&mut self, name: &'static str) -> &mut Count {
        if !self.0.iter().any(|s| s.0 == name) {
            self.0.push((name, Count::default()));
        }
        self.0.iter_mut().find(|s| s.0 == name).map(|s| &mut s.1).unwrap()
    }

    pub fn add(&mut self, name: &'static str, seed: u64, f: &Finding, truth: Option<f64>, shows: bool) {
        let right = match f.at_least {
            Some(b) => truth.is_some_and(|t| b.0 <= t),
            None => f.number() == truth,
        };
        let c = self.entry(name);
        if f.value.is_some() || f.at_least.is_some() {
            c.given += 1.0;
            c.right += right as u8 as f64;
            c.claimed += f.confidence;
            if f.confidence >= SURE {
                c.sure += 1;
                c.wrong += !right as u32;
                if !right {
                    println!("seed {seed}: {name} is {truth:?}, said {}", answer(f));
                }
            }
        }
        if shows {
            c.shown += 1;
            c.found += (f.value.is_some() && right) as u32;
            if !(f.value.is_some() && right) && std::env::var_os("NANDSCOPE_MISSED").is_some() {
                println!("seed {seed}: {name} {truth:?} shows, said {} {:?}", answer(f), f.reason);
            }
        }
    }

    /// The limit lies above all that was tried, or between two numbers.
    pub fn bound(&mut self, name: &'static str, seed: u64, f: &Finding, limit: u32, k: u32) {
        let right = match (f.at_least, f.number()) {
            (Some(b), _) => b.0 <= limit as f64,
            (None, v) => v == Some(limit as f64),
        };
        let c = self.entry(name);
        if f.value.is_some() || f.at_least.is_some() {
            c.given += 1.0;
            c.right += right as u8 as f64;
            c.claimed += f.confidence;
            c.sure += (f.confidence >= SURE) as u32;
            if f.confidence >= SURE && !right {
                c.wrong += 1;
                println!("seed {seed}: {name} is at least {k} ({limit}), said {}", answer(f));
            }
        }
        c.shown += 1;
        c.found += f.at_least.is_some_and(|b| b.0 as u32 + 1 >= k && right) as u32;
    }

    pub fn all(&self) -> Count {
        self.0.iter().fold(Count::default(), |a, (_, b)| Count {
            sure: a.sure + b.sure,
            wrong: a.wrong + b.wrong,
            shown: a.shown + b.shown,
            found: a.found + b.found,
            given: a.given + b.given,
            right: a.right + b.right,
            claimed: a.claimed + b.claimed,
        })
    }

    pub fn table(&self) -> String {
        let mut out = String::from("what               sure  wrong   shows  decided   claimed   right\n");
        for (name, c) in self.0.iter().copied().chain([("all", self.all())]) {
            let _ = writeln!(
                out,
                "{name:<17} {:>5} {:>6} {:>7} {:>8} {:>8.3} {:>7.3}",
                c.sure,
                c.wrong,
                c.shown,
                c.found,
                c.claimed / c.given,
                c.right / c.given
            );
        }
        out
    }
}
