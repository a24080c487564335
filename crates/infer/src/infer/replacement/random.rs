//! Any open AU is thrown out. This is followed exactly: AUs that are visited in an order drawn anew each round are alike, so how many of
//! them are closed, and how many of those have their visit still to come, is all there is to know.

use super::{Noise, Trial};
use crate::infer::stats::ln_choose;
use foldhash::{HashMap, HashMapExt};
use std::collections::BTreeSet;

/// P(`closed` AUs are closed, `due` of them not yet visited in this round).
#[derive(Clone, Copy)]
struct State {
    closed: usize,
    due: usize,
    p: f64,
}

/// States with less than this share are forgotten.
const FORGOTTEN: f64 = 1e-7;

/// All that random replacement leaves to know of a test.
struct Table {
    k: usize,
    /// AUs of the test, and those of them whose visit in this round is to come.
    n: usize,
    due: usize,
    states: Vec<State>,
    /// Room to add states up in, by closed and due, and for those to come.
    sums: Vec<f64>,
    next: Vec<State>,
}

impl Table {
    /// Adds up equal states and forgets hopeless ones; the probabilities sum to one again. What they summed to before.
    fn gather(&mut self, next: &[State]) -> f64 {
        let side = self.n + 2;
        if self.sums.len() < side * side {
            self.sums.resize(side * side, 0.0);
        }
        let mut total = 0.0;
        for s in next {
            self.sums[s.closed * side + s.due] += s.p;
            total += s.p;
        }
        self.states.clear();
        for s in next {
            let p = std::mem::take(&mut self.sums[s.closed * side + s.due]) / total;
            if p > FORGOTTEN {
                self.states.push(State { p, ..*s });
            }
        }
        total
    }

    /// One more round, in a new order.
    fn round(&mut self) {
        self.due = self.n;
        let next: Vec<State> = self.states.iter().map(|s| State { due: s.closed, ..*s }).collect();
        self.gather(&next);
    }

    /// AUs open that are not of the test.
    fn others(&self, s: &State) -> f64 {
        (self.k + s.closed).saturating_sub(self.n) as f64
    }

    /// The chance of an AU of the test to be open.
    fn chance_open(&self) -> f64 {
        1.0 - self.states.iter().map(|s| s.p * s.closed as f64).sum::<f64>() / self.n.max(1) as f64
    }

    /// Only `kept` AUs stay in the test, whichever.
    fn keep(&mut self, kept: usize) {
        if kept < self.n {
            let choose = |n: usize, k: usize| ln_choose(n as f64, k as f64);
            let all = choose(self.n, kept);
            let mut next = vec![];
            for s in &self.states {
                for closed in (s.closed + kept).saturating_sub(self.n)..=s.closed.min(kept) {
                    let ln = choose(s.closed, closed) + choose(self.n - s.closed, kept - closed) - all;
                    next.push(State { closed, due: closed, p: s.p * ln.exp() });
                }
            }
            self.n = kept;
            self.gather(&next);
        }
        self.round();
    }

    /// A new AU comes in and is opened, from `states`: another is thrown out.
    fn open(&self, states: &[State], next: &mut Vec<State>) {
        let (n, due, k) = (self.n as f64, self.due as f64, self.k as f64);
        for s in states {
            let (closed, closed_due) = (s.closed as f64, s.due as f64);
            let thrown = s.p / k;
            next.push(State { p: thrown * self.others(s), ..*s });
            next.push(State { closed: s.closed + 1, due: s.due + 1, p: thrown * (due - closed_due).max(0.0) });
            next.push(State { closed: s.closed + 1, due: s.due, p: thrown * (n - due - closed + closed_due).max(0.0) });
        }
    }

    /// A stream comes in whose AU is this `share` of the others that may be open, and is opened.
    fn join(&mut self, share: f64) {
        let mut next = vec![];
        let mut shut = self.states.clone();
        for s in shut.iter_mut().filter(|_| share > 0.0) {
            let was_open = (self.others(s) * share).min(1.0);
            next.push(State { p: s.p * was_open, ..*s });
            s.p *= 1.0 - was_open;
        }
        self.open(&shut, &mut next);
        self.n += 1;
        self.gather(&next);
    }

    /// One of those due in this round has filled its AU and goes on in a new one: in its place when that was fast.
    fn go_on(&mut self, slow: bool, noise: Noise) {
        let due = self.due as f64;
        let (mut next, mut left) = (vec![], vec![]);
        for s in &self.states {
            let shut = s.due as f64 / due;
            if s.due > 0 {
                left.push(State { closed: s.closed - 1, due: s.due - 1, p: s.p * shut * noise.of(true, slow) });
            }
            match slow {
                false => next.push(State { p: s.p * (1.0 - shut), ..*s }),
                true => left.push(State { p: s.p * (1.0 - shut), ..*s }),
            }
        }
        (self.n, self.due) = (self.n - 1, self.due - 1);
        self.open(&left, &mut next);
        self.n += 1;
        self.gather(&next);
    }

    /// One of those due in this round is visited; ln P(seen).
    fn visit(&mut self, seen: Option<(bool, Noise)>) -> f64 {
        let (n, due, k) = (self.n as f64, self.due as f64, self.k as f64);
        let of = |closed: bool| seen.map_or(1.0, |(slow, noise)| noise.of(closed, slow));
        let mut next = std::mem::take(&mut self.next);
        next.clear();
        for s in &self.states {
            let (closed, closed_due) = (s.closed as f64, s.due as f64);
            next.push(State { p: s.p * (1.0 - closed_due / due) * of(false), ..*s });
            if s.due > 0 {
                let p = s.p * closed_due / due * of(true) / k;
                next.push(State { closed: s.closed - 1, due: s.due - 1, p: p * self.others(s) });
                next.push(State { closed: s.closed, due: s.due - 1, p: p * (n - due - closed + closed_due).max(0.0) });
                next.push(State { p: p * (due - closed_due), ..*s });
            }
        }
        self.due -= 1;
        let seen = self.gather(&next).ln();
        self.next = next;
        seen
    }
}

/// AUs that left the test, each with the chance that it is still open.
struct Gone {
    /// Chance when it left, and how many were thrown out until then.
    streams: HashMap<u64, (f64, f64)>,
    /// How many are open by all these chances, what was open before the run included.
    open: f64,
    thrown: f64,
    k: f64,
}

impl Gone {
    fn leaves(&mut self, stream: Option<u64>, chance: f64) {
        self.open += chance;
        if let Some(s) = stream {
            self.streams.insert(s, (chance, self.thrown));
        }
    }

    /// One open AU was thrown out, whichever: with so much chance.
    fn throw(&mut self, chance: f64) {
        self.thrown += chance;
        self.open *= (-chance / self.k).exp();
    }

    /// The share of a stream that returns of all that may be open.
    fn returns(&mut self, stream: u64) -> f64 {
        let Some((chance, then)) = self.streams.remove(&stream) else { return 0.0 };
        let now = chance * ((then - self.thrown) / self.k).exp();
        let share = now / self.open.max(now).max(1e-9);
        self.open -= now;
        share
    }
}

/// What happens to a table, whatever it holds.
#[derive(PartialEq)]
enum Step {
    /// A test of so many streams of the one before begins; the others leave.
    Test {
        left: Vec<u64>,
        kept: usize,
    },
    /// One more round, in a new order.
    Round,
    /// A stream comes in, in an AU that may be open from before unless it goes on from a full one.
    Join {
        stream: u64,
        goes_on: bool,
        slow: bool,
    },
    GoOn {
        slow: bool,
    },
    Visit {
        slow: bool,
        tells: bool,
    },
}

/// The visits of all trials, as a table of any size goes through them.
#[derive(Default)]
pub struct Steps(Vec<Step>);

impl Steps {
    pub fn of(trials: &[Trial]) -> Steps {
        let mut all = vec![];
        let mut of_test: BTreeSet<u64> = BTreeSet::new();
        // Of each stream the round of its last visit.
        let mut visited: HashMap<u64, usize> = HashMap::new();
        let mut round = 0;
        for t in trials {
            let left: Vec<u64> = of_test.iter().copied().filter(|s| !t.set.contains(s)).collect();
            left.iter().for_each(|s| {
                of_test.remove(s);
            });
            all.push(Step::Test { left, kept: of_test.len() });
            round += 1;
            let mut opening = true;
            for v in &t.visits {
                if visited.get(&v.stream) == Some(&round) || opening && !v.opening {
                    all.push(Step::Round);
                    round += 1;
                    opening = v.opening;
                }
                let slow = v.slow;
                all.push(if of_test.insert(v.stream) {
                    Step::Join { stream: v.stream, goes_on: v.goes_on, slow }
                } else if v.goes_on {
                    Step::GoOn { slow }
                } else {
                    Step::Visit { slow, tells: v.tells() }
                });
                visited.insert(v.stream, round);
            }
        }
        Steps(all)
    }
}

/// One table of `k` AUs, as far as it was followed.
struct Followed {
    table: Table,
    gone: Gone,
    /// ln P(slow and fast visits, in their order).
    ln: f64,
    steps: usize,
}

impl Followed {
    /// `k` AUs stay open, one at least.
    fn new(k: usize) -> Followed {
        let k = k.max(1);
        let table = Table { k, n: 0, due: 0, states: vec![State { closed: 0, due: 0, p: 1.0 }], sums: vec![], next: vec![] };
        let gone = Gone { streams: HashMap::new(), open: k as f64, thrown: 0.0, k: k as f64 };
        Followed { table, gone, ln: 0.0, steps: 0 }
    }

    fn follow(&mut self, step: &Step, noise: Noise) {
        let Followed { table, gone, .. } = self;
        match step {
            Step::Test { left, kept } => {
                left.iter().for_each(|s| gone.leaves(Some(*s), table.chance_open()));
                table.keep(*kept);
            }
            Step::Round => table.round(),
            Step::Join { stream, goes_on, slow } => {
                let share = if *goes_on { 0.0 } else { gone.returns(*stream) };
                table.join(share);
                gone.throw(if share > 0.0 { *slow as u8 as f64 } else { 1.0 });
            }
            Step::GoOn { slow } => {
                if *slow {
                    gone.leaves(None, table.chance_open());
                }
                table.go_on(*slow, noise);
                gone.throw(*slow as u8 as f64);
            }
            Step::Visit { slow, tells } => {
                self.ln += table.visit(tells.then_some((*slow, noise)));
                gone.throw(*slow as u8 as f64);
            }
        }
        self.steps += 1;
    }
}

/// Tables of all sizes that were asked for, and the steps they were followed through. A search asks again after every few visits: what it
/// asked before is followed on from where it ended, as if from the start.
#[derive(Default)]
pub struct Tables {
    steps: Steps,
    noise: Noise,
    by_count: HashMap<usize, Followed>,
}

impl Tables {
    /// Goes by these visits from now on, which are those of before and more, or others.
    pub fn go_by(&mut self, steps: Steps, noise: Noise) {
        if self.noise != noise || !steps.0.starts_with(&self.steps.0) {
            self.by_count.clear();
        }
        (self.steps, self.noise) = (steps, noise);
    }

    /// Any open AU goes, with the same chance. ln P(slow and fast visits, in their order) when `k` AUs stay open, one at least.
    pub fn ln(&mut self, k: usize) -> f64 {
        let followed = self.by_count.entry(k).or_insert_with(|| Followed::new(k));
        for step in &self.steps.0[followed.steps..] {
            followed.follow(step, self.noise);
        }
        followed.ln
    }
}
