//! AUs that a card keeps open because they are opened again and again.

use crate::model::BlockMap;

/// AUs found to be in use again and again, which are kept open.
#[derive(Clone, Debug)]
pub(super) struct Protect {
    every: u64,
    again: u64,
    /// One bit an AU: kept open; closed to make room and not opened since.
    kept: Vec<u64>,
    closed: Vec<u64>,
    /// AUs kept open, and how many may be.
    count: u64,
    room: u64,
    last: u32,
}

impl Protect {
    /// None where the card protects nothing.
    pub fn new(b: &BlockMap, aus: u64) -> Option<Protect> {
        let blank = vec![0; (aus as usize).div_ceil(64)];
        (b.protect > 0).then(|| Protect {
            every: b.protect,
            again: 0,
            kept: blank.clone(),
            closed: blank,
            count: 0,
            room: if b.protected == 0 { b.open_linear - 1 } else { b.protected.min(b.open_linear - 1) },
            last: u32::MAX,
        })
    }

    /// An AU is opened.
    pub fn opened(&mut self, au: u32) {
        let (word, bit) = (au as usize / 64, 1 << (au % 64));
        if self.closed[word] & bit == 0 {
            return;
        }
        self.closed[word] &= !bit;
        // The one closed last is taken for a straggler.
        if au == self.last {
            return;
        }
        self.again += 1;
        if self.again.is_multiple_of(self.every) && self.kept[word] & bit == 0 && self.count < self.room {
            self.kept[word] |= bit;
            self.count += 1;
        }
    }

    /// An AU is closed to make room.
    pub fn closed(&mut self, au: u32) {
        self.closed[au as usize / 64] |= 1 << (au % 64);
        self.last = au;
    }

    pub fn keeps(&self, au: u32) -> bool {
        self.kept[au as usize / 64] >> (au % 64) & 1 != 0
    }
}
