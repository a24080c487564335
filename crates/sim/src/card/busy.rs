//! How long the card was busy after each block of a write, as a host sees it that polls (C10 to C12).

use super::Card;
use crate::ftl::Ftl;
use crate::model::Transfer;
use crate::nand::SHIFT;

/// One command of the last write, as far as its busy times follow from it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub at: u64,
    pub len: u64,
    /// ns the flash worked for it, all in all.
    pub flash: u64,
}

/// How long a card was busy in one write command of the bus, in ns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Busy {
    /// First byte that the command wrote.
    pub at: u64,
    /// After each data block of one sector.
    pub data: Vec<u64>,
    /// After the stop command, where the host sends one.
    pub stop: Option<u64>,
}

impl Card {
    /// Busy times of the last write, one entry a command: a host that splits a request, or sends single blocks, polls after each.
    /// Empty before the first write.
    ///
    /// A card that rewrites at the end of a transaction is busy then; one with a buffer is busy after the block that fills it;
    /// any other after the block that completes a write unit, or at the end where none is completed.
    pub fn busy(&self) -> Vec<Busy> {
        self.last.iter().map(|w| self.busy_of(w)).collect()
    }

    fn busy_of(&self, w: &Written) -> Busy {
        let n = (w.len / self.sector) as usize;
        let open = self.model.host.transfer == Transfer::OpenEnded && n > 1;
        let mut out = vec![self.model.card.accept; n];
        if open {
            out.push(self.model.card.stop);
        }
        let Some(last) = out.len().checked_sub(1) else { return Busy { at: w.at, data: out, stop: None } };
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
        let stop = if open { out.pop() } else { None };
        Busy { at: w.at, data: out, stop }
    }
}
