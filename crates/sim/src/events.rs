//! Things that happen to a card by the way: stalls and faults.

use crate::model::{FaultKind, FaultRule, Model, On, Stall};
use crate::request::{Fault, Op};
use crate::rng::Rng;

impl On {
    fn hits(self, op: Op) -> bool {
        match self {
            On::Any => true,
            On::Read => op == Op::Read,
            On::Write => op == Op::Write,
        }
    }
}

/// The stalls and faults of a model, with what has been counted towards them.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    stalls: Vec<(Stall, u64)>,
    /// With whether they have happened, for those that happen once.
    faults: Vec<(FaultRule, bool)>,
    rng: Rng,
    commands: u64,
    written: u64,
}

impl Events {
    /// None for the usual card, where nothing happens by the way.
    pub fn new(m: &Model, seed: u64) -> Option<Box<Events>> {
        if m.stall.is_empty() && m.fault.is_empty() {
            return None;
        }
        let mut rng = Rng::new(seed, 2);
        let stalls = m.stall.iter().map(|s| (s.clone(), next_gap(s, &mut rng))).collect();
        Some(Box::new(Events { stalls, faults: m.fault.iter().map(|f| (f.clone(), false)).collect(), rng, commands: 0, written: 0 }))
    }

    /// Whether requests may fail.
    pub fn faults(&self) -> bool {
        !self.faults.is_empty()
    }

    /// The fault that meets this request, if any.
    pub fn fault(&mut self, op: Op, at: u64, len: u64, done: u64) -> Result<(), Fault> {
        self.commands += 1;
        for (f, happened) in &mut self.faults {
            if self.commands <= f.after_commands || self.written < f.after_bytes {
                continue;
            }
            match f.kind {
                FaultKind::Gone => return Err(Fault::Gone),
                FaultKind::ReadOnly if matches!(op, Op::Write | Op::Discard) => return Err(Fault::ReadOnlyMedium),
                FaultKind::ReadOnly => {}
                FaultKind::PowerCut if *happened => {}
                FaultKind::PowerCut => {
                    *happened = true;
                    return Err(Fault::PowerCut);
                }
                FaultKind::Io => {
                    let end = if f.len == 0 { u64::MAX } else { f.at.saturating_add(f.len) };
                    if f.on.hits(op) && len > 0 && at < end && at + len > f.at {
                        let bad = at.max(f.at);
                        return Err(Fault::Io { op, at: bad, len: (at + len).min(end) - bad, done });
                    }
                }
            }
        }
        Ok(())
    }

    /// ns of the stalls this request runs into, and how many they are.
    pub fn stall(&mut self, op: Op, len: u64) -> (u64, u64) {
        if op == Op::Write {
            self.written += len;
        }
        let (mut ns, mut n) = (0, 0);
        for (s, left) in &mut self.stalls {
            if !s.on.hits(op) {
                continue;
            }
            let mut step = if s.every_bytes > 0 { len } else { 1 };
            if !s.random && step >= *left {
                // Regular ones are counted at once: a long request may meet millions.
                let more = 1 + (step - *left) / next_gap(s, &mut self.rng);
                step -= *left + (more - 1) * next_gap(s, &mut self.rng);
                *left = next_gap(s, &mut self.rng);
                ns += more.saturating_mul(s.time).min(1 << 56);
                n += more;
            }
            while step >= *left {
                step -= *left;
                *left = next_gap(s, &mut self.rng);
                ns += s.time;
                n += 1;
            }
            *left -= step;
        }
        (ns, n)
    }
}

/// Bytes or commands to the next stall: fixed, or uniform in 1 to twice the mean.
fn next_gap(s: &Stall, rng: &mut Rng) -> u64 {
    let mean = s.every_bytes.max(s.every_commands);
    if s.random { 1 + rng.below(2 * mean) } else { mean }
}
