//! What a comparison wrote where, and whether it is still there.

use super::Kept;
use crate::device::{Device, DeviceError, Fill};
use crate::units::{KIB, MIB, SECTOR};
use std::collections::BTreeMap;

/// Bytes of a small discard, and how many of them there are at the most.
pub(super) const AMID: u64 = 4 * KIB;
const MOST_AMID: usize = 16;

/// Who wrote each sector last: the pair, which is the seed of its content, and the side.
#[derive(Default)]
pub(super) struct Written(BTreeMap<u64, (u32, u32)>);

impl Written {
    pub fn note(&mut self, at: u64, len: u64, pair: u32, side: u32) {
        self.0.extend((at / SECTOR..(at + len) / SECTOR).map(|n| (n, (pair, side))));
    }

    pub fn forget(&mut self, at: u64, len: u64) {
        let (from, to) = (at / SECTOR, (at + len) / SECTOR);
        let gone: Vec<u64> = self.0.range(from..to).map(|e| *e.0).collect();
        for n in gone {
            self.0.remove(&n);
        }
    }

    /// Places of [`AMID`] bytes, each in the middle of one of the longest stretches that a side wrote last.
    pub fn amid(&self, side: u32) -> Vec<u64> {
        let mut stretches: Vec<(u64, u64)> = vec![];
        for (&n, _) in self.0.iter().filter(|e| e.1.1 == side) {
            match stretches.last_mut() {
                Some((from, len)) if *from + *len == n => *len += 1,
                _ => stretches.push((n, 1)),
            }
        }
        nandscope_stats::sort_by_key(&mut stretches, |s| std::cmp::Reverse(s.1));
        let middle = stretches.iter().map(|(from, len)| (from + len / 2) * SECTOR / AMID * AMID);
        let whole = |at: &u64| (*at / SECTOR..(at + AMID) / SECTOR).all(|n| self.0.get(&n).is_some_and(|o| o.1 == side));
        middle.filter(whole).take(MOST_AMID).collect()
    }

    /// Reads everything back, in pieces of one owner.
    pub fn check(&self, device: &mut dyn Device) -> Result<Kept, DeviceError> {
        let mut kept = Kept::default();
        let mut sectors = self.0.iter().peekable();
        while let Some((&from, &(pair, side))) = sectors.next() {
            let mut end = from + 1;
            while end - from < MIB / SECTOR && sectors.next_if(|e| *e.0 == end && *e.1 == (pair, side)).is_some() {
                end += 1;
            }
            let (at, len) = (from * SECTOR, ((end - from) * SECTOR) as usize);
            let (mut is, mut should) = (vec![0; len], vec![0; len]);
            match device.load(at, &mut is) {
                Err(DeviceError::Unsupported(why)) => return Ok(Kept { unchecked: Some(why), ..Kept::default() }),
                Err(DeviceError::Io { .. }) => {
                    kept.unread += len as u64;
                    continue;
                }
                other => other?,
            }
            Fill::Random(u64::from(pair)).render(at, &mut should);
            let side = side as usize;
            kept.checked[side] += len as u64;
            for (i, (a, b)) in is.chunks(SECTOR as usize).zip(should.chunks(SECTOR as usize)).enumerate() {
                if a != b {
                    kept.wrong[side] += SECTOR;
                    kept.first[side].get_or_insert(at + i as u64 * SECTOR);
                }
            }
        }
        Ok(kept)
    }
}
