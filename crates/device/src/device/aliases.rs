//! Two addresses, one place: a counterfeit card that wraps round (U33). What was put back under the second address has changed what
//! is read at the first, and no order of writing can make both read as before, because they never held two things.

use crate::units::gcd;
use std::collections::{HashMap, HashSet};
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

    /// Learns from a stretch that does not hold what was saved how far apart two addresses of one place are: its different bytes are those
    /// that another one was saved with.
    pub fn learn(&mut self, at: u64, saved: &[u8], now: &[u8], sector: u64) {
        for (i, (old, new)) in saved.chunks(sector as usize).zip(now.chunks(sector as usize)).enumerate() {
            // Content that many sectors share says nothing.
            if old != new
                && !new.iter().all(|b| *b == new[0])
                && let Some([there]) = self.places.get(&hash(new)).map(Vec::as_slice)
            {
                self.period = gcd(self.period, (at + i as u64 * sector).abs_diff(*there));
            }
        }
    }

    /// Has a distance been seen?
    pub fn known(&self) -> bool {
        self.period > 0
    }

    /// The same of what a stretch holds in the end, which is to be explained.
    pub fn found(&mut self, at: u64, saved: &[u8], now: &[u8], sector: u64) {
        self.learn(at, saved, now, sector);
        for (i, (old, new)) in saved.chunks(sector as usize).zip(now.chunks(sector as usize)).enumerate() {
            if old != new {
                self.odd.push((at + i as u64 * sector, hash(new)));
            }
        }
    }

    /// Bytes to a period, if every sector found otherwise holds what another one, whole periods away, was saved with.
    pub fn period(&self) -> Option<u64> {
        if self.period == 0 {
            return None;
        }
        // A sector found otherwise was not saved with what it holds, so it never explains itself.
        let held: HashSet<(u64, u64)> = self.places.iter().flat_map(|(h, all)| all.iter().map(|a| (*h, a % self.period))).collect();
        self.odd.iter().all(|(at, h)| held.contains(&(*h, at % self.period))).then_some(self.period)
    }
}
