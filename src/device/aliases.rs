//! Two addresses, one place: a counterfeit card that wraps round (U33). What was put back under the second address has changed what
//! is read at the first, and no order of writing can make both read as before, because they never held two things.

use crate::units::gcd;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Sectors of old content, in the order they were saved.
#[derive(Default)]
pub struct Aliases {
    /// Which sectors had this content.
    places: HashMap<u64, Vec<u64>>,
    /// Distances between sectors that read as one: multiples of what the medium holds.
    period: u64,
    /// Sectors that do not read as they were saved: address and what they hold.
    odd: Vec<(u64, u64)>,
}

fn hash(sector: &[u8]) -> u64 {
    let mut h = DefaultHasher::new();
    sector.hash(&mut h);
    h.finish()
}

impl Aliases {
    /// Old content of a stretch, in sectors of `sector` bytes.
    pub fn saved(&mut self, at: u64, bytes: &[u8], sector: u64) {
        for (i, s) in bytes.chunks(sector as usize).enumerate() {
            self.places.entry(hash(s)).or_default().push(at + i as u64 * sector);
        }
    }

    /// What a stretch holds in the end, where that is not what was saved. A place of different bytes that another one was saved with
    /// says how far apart the two are.
    pub fn found(&mut self, at: u64, saved: &[u8], now: &[u8], sector: u64) {
        for (i, (old, new)) in saved.chunks(sector as usize).zip(now.chunks(sector as usize)).enumerate() {
            if old == new {
                continue;
            }
            let (here, h) = (at + i as u64 * sector, hash(new));
            // Content that many sectors share says nothing.
            if let Some([there]) = self.places.get(&h).map(Vec::as_slice)
                && !new.iter().all(|b| *b == new[0])
            {
                self.period = gcd(self.period, here.abs_diff(*there));
            }
            self.odd.push((here, h));
        }
    }

    /// Bytes to a period, if every sector found otherwise holds what another one, whole periods away, was saved with.
    pub fn period(&self) -> Option<u64> {
        let apart = |a: u64, b: u64| a != b && a.abs_diff(b).is_multiple_of(self.period);
        let explained = |o: &(u64, u64)| self.places.get(&o.1).is_some_and(|all| all.iter().any(|p| apart(*p, o.0)));
        (self.period > 0 && self.odd.iter().all(explained)).then_some(self.period)
    }
}
