//! The bytes of a card: no time passes here.

use super::Card;
use crate::buffer::Lost;
use crate::content::{PIECE, walk};
use crate::model::Discarded;
use crate::nand::SHIFT;
use crate::places::{Goes, runs};
use crate::request::{Fault, Op};

impl Card {
    /// Old bytes are kept only as long as a power cut could bring them back.
    pub(super) fn keep(&mut self) {
        let Some(content) = &mut self.content else { return };
        let cached = self.extras.as_ref().and_then(|e| e.cache.as_ref()).and_then(|c| c.oldest());
        content.keep_from(cached.unwrap_or(u64::MAX).min(self.write.oldest().unwrap_or(u64::MAX)));
    }

    /// The power goes, or the card is taken out: what was acknowledged and is not on the flash is lost. It is as if switched on again.
    pub fn power_cut(&mut self) -> Vec<Lost> {
        let mut lost = self.extras.as_mut().and_then(|e| e.cache.as_mut()).map_or(Vec::new(), |c| c.lose());
        lost.extend(self.write.lose().into_iter().map(|(write, a, b)| {
            let at = (self.grid.sector(a)) << SHIFT;
            Lost { write, at, len: (b - a) << SHIFT }
        }));
        if let Some(content) = &mut self.content {
            content.revert(&lost, &self.model);
            content.reinsert();
        }
        if let Some(front) = &mut self.front {
            front.clear();
        }
        if let Some(cache) = &mut self.cache {
            cache.forget(0, u64::MAX);
        }
        lost
    }

    pub(super) fn forget(&mut self, at: u64, len: u64) {
        let harm = if len < self.model.nand.erase_block { self.model.card.discard_harms } else { 0 };
        let Some(content) = &mut self.content else { return };
        for (place, n) in runs(at, len, &self.model) {
            let Goes::To(place) = place else { continue };
            if self.model.card.discarded == Discarded::Zeros {
                content.clear(place, n);
            }
            if harm > 0 {
                let before = place.saturating_sub(harm);
                content.decay(before, place - before);
                content.decay(place + n, harm.min(self.model.card.real_capacity.saturating_sub(place + n)));
            }
        }
        if let Some(front) = &mut self.front {
            (at / PIECE..(at + len).div_ceil(PIECE)).for_each(|p| front.remove(p));
        }
    }

    /// The bytes at `at`, without any time passing. What a counterfeit card does not have reads as zeros.
    pub fn load(&mut self, at: u64, into: &mut [u8]) -> Result<(), Fault> {
        self.range(at, into.len() as u64)?;
        let content = self.content.as_mut().ok_or(Fault::NoContent)?;
        let mut done = 0;
        for (place, n) in runs(at, into.len() as u64, &self.model) {
            let part = &mut into[done..done + n as usize];
            match place {
                Goes::To(place) => content.load_from(place, part, &self.model.card),
                Goes::Fails => return Err(Fault::Io { op: Op::Read, at: at + done as u64, len: n, done: 0 }),
                Goes::Nowhere => part.fill(0),
            }
            done += n as usize;
        }
        if let Some(front) = &self.front {
            walk(at, into.len(), |piece, inside, range| {
                if let Some(p) = front.get(piece) {
                    let n = range.len();
                    into[range].copy_from_slice(&p[inside..inside + n]);
                }
            });
        }
        Ok(())
    }

    /// Puts bytes at `at`, without any time passing and without changing what later requests cost. A power cut undoes them
    /// where the write submitted last is one of those lost.
    pub fn store(&mut self, at: u64, from: &[u8]) -> Result<(), Fault> {
        self.range(at, from.len() as u64)?;
        let ahead = self.fronted(at, from);
        let content = self.content.as_mut().ok_or(Fault::NoContent)?;
        let mut done = 0;
        for (place, n) in runs(at, from.len() as u64, &self.model) {
            match place {
                Goes::To(place) => content.store_to(self.counters.writes, place, &from[done..done + n as usize], &self.model.card),
                Goes::Fails => return Err(Fault::Io { op: Op::Write, at: at + done as u64, len: n, done: 0 }),
                Goes::Nowhere => {}
            }
            done += n as usize;
        }
        if let Some(front) = &mut self.front {
            ahead.iter().for_each(|(piece, bytes)| front.put(*piece, bytes));
        }
        Ok(())
    }

    /// The pieces that a cache in front will hold once `from` is written at `at`.
    fn fronted(&mut self, at: u64, from: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut all = vec![];
        if self.front.is_none() {
            return all;
        }
        walk(at, from.len(), |piece, inside, range| {
            let mut whole = vec![0; PIECE as usize];
            let n = (self.capacity - piece * PIECE).min(PIECE) as usize;
            if range.len() < n {
                // What cannot be read there cannot be kept, either.
                let _ = self.load(piece * PIECE, &mut whole[..n]);
            }
            whole[inside..inside + range.len()].copy_from_slice(&from[range]);
            all.push((piece, whole));
        });
        all
    }

    fn range(&self, at: u64, len: u64) -> Result<(), Fault> {
        if at > self.capacity || len > self.capacity - at {
            return Err(Fault::OutOfRange { at, len, capacity: self.capacity });
        }
        Ok(())
    }
}
