//! The bytes of a card: no time passes here.

use super::Card;
use crate::buffer::Lost;
use crate::content::runs;
use crate::model::Beyond;
use crate::nand::SHIFT;
use crate::request::{Fault, Op};

impl Card {
    /// Old bytes are kept only as long as a power cut could bring them back.
    pub(super) fn keep(&mut self) {
        let Some(content) = &mut self.content else { return };
        let cached = self.extras.as_ref().and_then(|e| e.cache.as_ref()).and_then(|c| c.oldest());
        content.keep_from(cached.unwrap_or(u64::MAX).min(self.write.oldest().unwrap_or(u64::MAX)));
    }

    /// The power goes: what was acknowledged and is not on the flash is lost. The card is as if switched on again.
    pub fn power_cut(&mut self) -> Vec<Lost> {
        let mut lost = self.extras.as_mut().and_then(|e| e.cache.as_mut()).map_or(Vec::new(), |c| c.lose());
        lost.extend(self.write.lose().map(|(write, a, b)| {
            let at = (self.grid.sector(a)) << SHIFT;
            Lost { write, at, len: (b - a) << SHIFT }
        }));
        if let Some(content) = &mut self.content {
            content.revert(&lost, &self.model.card);
        }
        if let Some(cache) = &mut self.cache {
            cache.forget(0, u64::MAX);
        }
        lost
    }

    pub(super) fn forget(&mut self, at: u64, len: u64) {
        let (real_capacity, beyond) = (self.model.card.real_capacity, self.model.card.beyond);
        if let Some(content) = &mut self.content {
            for (place, n) in runs(at, len, real_capacity, beyond) {
                if let Some(place) = place {
                    content.clear(place, n);
                }
            }
        }
    }

    /// The bytes at `at`, without any time passing. What a counterfeit card does not have reads as zeros.
    pub fn load(&mut self, at: u64, into: &mut [u8]) -> Result<(), Fault> {
        self.range(at, into.len() as u64)?;
        let (real_capacity, beyond) = (self.model.card.real_capacity, self.model.card.beyond);
        let content = self.content.as_mut().ok_or(Fault::NoContent)?;
        let mut done = 0;
        for (place, n) in runs(at, into.len() as u64, real_capacity, beyond) {
            let part = &mut into[done..done + n as usize];
            match place {
                Some(place) => content.load_from(place, part, &self.model.card),
                None if beyond == Beyond::Error => return Err(Fault::Io { op: Op::Read, at: at + done as u64, len: n, done: 0 }),
                None => part.fill(0),
            }
            done += n as usize;
        }
        Ok(())
    }

    /// Puts bytes at `at`, without any time passing and without changing what later requests cost. A power cut undoes them
    /// where the write submitted last is one of those lost.
    pub fn store(&mut self, at: u64, from: &[u8]) -> Result<(), Fault> {
        self.range(at, from.len() as u64)?;
        let (real_capacity, beyond) = (self.model.card.real_capacity, self.model.card.beyond);
        let content = self.content.as_mut().ok_or(Fault::NoContent)?;
        let mut done = 0;
        for (place, n) in runs(at, from.len() as u64, real_capacity, beyond) {
            match place {
                Some(place) => content.store_to(self.counters.writes, place, &from[done..done + n as usize], &self.model.card),
                None if beyond == Beyond::Error => return Err(Fault::Io { op: Op::Write, at: at + done as u64, len: n, done: 0 }),
                None => {}
            }
            done += n as usize;
        }
        Ok(())
    }

    fn range(&self, at: u64, len: u64) -> Result<(), Fault> {
        if at > self.capacity || len > self.capacity - at {
            return Err(Fault::OutOfRange { at, len, capacity: self.capacity });
        }
        Ok(())
    }
}
