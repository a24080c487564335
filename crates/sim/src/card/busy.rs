//! How long the card was busy after each block of a write, as a host sees it that polls (C10 to C12).

use super::Card;
use crate::ftl::Ftl;
use crate::model::Transfer;
use crate::nand::SHIFT;

/// The last write, as far as its busy times follow from it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastWrite {
    pub at: u64,
    pub len: u64,
    /// ns the flash worked for it, all in all.
    pub flash: u64,
}

impl Card {
    /// Busy times in ns after the last write: one a block, and one more after the stop command where the host sends one.
    ///
    /// A card that rewrites at the end of a transaction is busy then; one with a buffer is busy behind the block that fills it;
    /// any other behind the block that completes a write unit, or at the end where none is completed.
    pub fn busy(&self) -> Vec<u64> {
        let w = self.last;
        let n = (w.len / self.sector) as usize;
        let open = self.model.host.transfer == Transfer::OpenEnded && n > 1;
        let mut out = vec![self.model.card.accept; n];
        if open {
            out.push(self.model.card.stop);
        }
        let Some(last) = out.len().checked_sub(1) else { return out };
        let step = self.sector >> SHIFT;
        let a = self.grid.place(w.at >> SHIFT);
        let at_the_end = matches!(&self.ftl, Ftl::Through(t, _) if t.boundary().is_none());
        let full = match &self.ftl {
            Ftl::Through(t, _) => t.boundary().unwrap_or(&self.grid.unit),
            _ => &self.grid.unit,
        };
        let mut places: Vec<usize> = (0..n).filter(|&k| full.of(a + (k as u64 + 1) * step) > full.of(a + k as u64 * step)).collect();
        if places.is_empty() || at_the_end {
            places = vec![last];
        }
        let share = w.flash / places.len() as u64;
        places.iter().for_each(|&k| out[k] += share);
        out
    }
}
