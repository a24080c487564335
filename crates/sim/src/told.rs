//! Lots that are known to have been drawn: a card that closes an open AU at random cannot be foreseen, but what was measured afterwards
//! says which AUs it had closed by then.

use std::collections::HashMap;

/// Visits of erase blocks by writes, and which of them found theirs closed.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// Of each erase block the numbers of the writes that visit it, in order, and whether it was closed then.
    visits: HashMap<u32, Vec<(u64, bool)>>,
    /// Lots drawn, by how many AUs each was drawn among: the sum of the logarithms.
    pub(crate) nats: f64,
}

impl Told {
    /// Write number `write` (from 0) visits this erase block; `closed`: it took as long as an AU takes that has to be opened.
    pub fn visit(&mut self, block: u64, write: u64, closed: bool) {
        self.visits.entry(block as u32).or_default().push((write, closed));
    }

    /// How late one may be closed: a block that is found closed next must go before, the soonest first; then those that are not visited again; one that
    /// is found open last of all.
    fn until(&self, au: u32, write: u64) -> (u8, u64) {
        let next = self.visits.get(&au).and_then(|v| v.get(v.partition_point(|x| x.0 <= write)));
        match next {
            Some(&(w, true)) => (0, w),
            None => (1, 0),
            Some(&(w, false)) => (2, u64::MAX - w),
        }
    }

    /// Which of these AUs was closed by write number `write`.
    pub(crate) fn draw<S: Copy>(&mut self, among: impl Iterator<Item = (S, u32)>, write: u64) -> Option<S> {
        let all: Vec<(S, u32)> = among.collect();
        self.nats += (all.len().max(1) as f64).ln();
        all.into_iter().min_by_key(|x| self.until(x.1, write)).map(|x| x.0)
    }
}
