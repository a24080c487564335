//! What a write may pay for, and how well a unit explains the times of many.

use crate::infer::linear::nonnegative;
use crate::units::KIB;

#[derive(Clone, Copy, Debug)]
pub(super) struct Write {
    /// Position from the first erase block.
    pub at: u64,
    pub len: u64,
    pub us: f64,
}

/// How a card counts the units that a write pays for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Count {
    /// All that it touches.
    Touched,
    /// The unit left half full by the write before is still at hand and costs nothing more.
    New,
    /// The same, and a write inside that unit pays for none.
    NewOrNone,
    /// Those whose end it reaches: what comes before is gathered.
    Filled,
    /// As many as its length fills, wherever it begins: data go to a log.
    Length,
}

impl Count {
    pub(super) const ALL: [Count; 4] = [Count::Touched, Count::New, Count::NewOrNone, Count::Filled];
    pub(super) const PLAIN: [Count; 2] = [Count::Touched, Count::Length];
}

/// What is read from the flash before a write.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fill {
    Nothing,
    /// What the units that it pays for lack (Q14: 4.89 falls to 4.45 ms).
    Rest,
    /// Piece by piece the flash is mapped in, of so many bytes: those that it covers in part only.
    Pieces(u64),
    /// What was written into the same unit before, on flash that held nothing else.
    Begun,
}

impl Fill {
    pub(super) const PLAIN: [Fill; 2] = [Fill::Nothing, Fill::Rest];
    /// eMMC and SD of A1 and A2 are mapped by 4 KiB (e.MMC 5.1: data sectors of 4 KiB), larger ones by more.
    pub(super) const MAPPED: [Fill; 3] = [Fill::Pieces(4 * KIB), Fill::Pieces(8 * KIB), Fill::Pieces(16 * KIB)];
    pub(super) const FRESH: [Fill; 1] = [Fill::Begun];

    /// What it costs to suppose so: more than what plainer ones leave by chance.
    pub(super) fn price(self) -> f64 {
        match self {
            Fill::Nothing => 0.0,
            Fill::Rest => 4.0,
            Fill::Pieces(_) | Fill::Begun => 16.0,
        }
    }

    /// Smaller than the unit: a unit of that size reads what it lacks.
    pub(super) fn below(self, unit: u64) -> bool {
        !matches!(self, Fill::Pieces(size) if size >= unit)
    }
}

impl Write {
    pub(super) fn units(&self, u: u64, count: Count) -> u64 {
        let touched = (self.at + self.len - 1) / u - self.at / u + 1;
        let new = touched - !self.at.is_multiple_of(u) as u64;
        match count {
            Count::Touched => touched,
            Count::New => new.max(1),
            Count::NewOrNone => new,
            Count::Filled => (self.at + self.len) / u - self.at / u,
            Count::Length => self.len.div_ceil(u),
        }
    }

    /// Per request, per further piece that the host sends, per unit paid for, per KiB moved, per unit's worth of old data read back or
    /// per write that reads some, per write that pays for a unit where not all do.
    pub(super) fn features(&self, u: u64, piece: u64, count: Count, fill: Fill) -> [f64; PRICES] {
        let sent = (0..self.len.div_ceil(piece)).map(|i| Write { at: self.at + i * piece, len: piece.min(self.len - i * piece), ..*self });
        let n: u64 = sent.map(|w| w.units(u, count)).sum();
        let n = n as f64;
        [
            1.0,
            (self.len.div_ceil(piece) - 1) as f64,
            n,
            self.len as f64 / KIB as f64,
            match fill {
                Fill::Nothing => 0.0,
                Fill::Rest => (n - self.len as f64 / u as f64).max(0.0),
                Fill::Pieces(size) => !(self.at.is_multiple_of(size) && self.len.is_multiple_of(size)) as u32 as f64,
                Fill::Begun => !self.at.is_multiple_of(u) as u32 as f64,
            },
            (count == Count::Filled && n > 0.0) as u32 as f64,
        ]
    }

    /// As if units of `u` bytes began `phase` bytes later.
    pub(super) fn behind(&self, u: u64, phase: u64) -> Write {
        Write { at: self.at + u - phase, ..*self }
    }
}

/// What a write may pay for.
pub(super) const PRICES: usize = 6;

/// Pieces that hosts cut long requests into: USB readers 64, 120 or 240 KiB, other hosts 128 KiB and up; first: none. Some cut at 60 or
/// 252 KiB, one segment less than a round number.
pub(super) const PIECES: [u64; 8] = [u64::MAX, 60 * KIB, 64 * KIB, 120 * KIB, 128 * KIB, 240 * KIB, 252 * KIB, 256 * KIB];

/// The price of a host that cuts elsewhere.
pub(super) const UNUSUAL_CUT: f64 = 60.0;

/// May so many bytes be programmed at once? Pages have 2^k bytes, and three planes are those of pages of 1 KiB and more.
pub(super) fn is_unit(bytes: u64) -> bool {
    bytes.is_power_of_two() || bytes >= 3 * KIB
}

/// Bytes.
pub(super) const SECTOR: u64 = 512;

/// Bytes between two places where units of this size are supposed to begin.
pub(super) fn step(u: u64) -> u64 {
    (u / 8).max(4 * KIB)
}

/// Where units of this size may begin: at 0, or where erase blocks begin when that is not known, in steps of the smallest page.
pub(super) fn phases(u: u64, known: bool) -> Vec<u64> {
    let step = step(u);
    let thirds = [u / 3, u / 3 * 2].into_iter().filter(|t| u.is_multiple_of(3) && t.is_multiple_of(4 * KIB) && !t.is_multiple_of(step));
    let all = (0..u.div_ceil(step)).map(|i| i * step).chain(thirds);
    if known { vec![0] } else { all.collect() }
}

/// What each feature costs, by weighted least squares without negative prices; what takes far longer than that is left out. Rows: features,
/// microseconds, and their deviation.
pub(super) fn prices<const N: usize>(rows: &[([f64; N], f64, f64)]) -> [f64; N] {
    let mut keep: Vec<bool> = vec![true; rows.len()];
    let mut x = [0.0; N];
    for _ in 0..3 {
        let (mut aa, mut at) = ([[0.0f64; N]; N], [0.0f64; N]);
        for (r, _) in rows.iter().zip(&keep).filter(|r| *r.1) {
            let weight = 1.0 / (r.2 * r.2);
            for (i, row) in aa.iter_mut().enumerate().filter(|(i, _)| r.0[*i] != 0.0) {
                let x = r.0[i] * weight;
                at[i] += x * r.1;
                row.iter_mut().zip(r.0).for_each(|(a, y)| *a += x * y);
            }
        }
        x = nonnegative(&aa, &at);
        // Outliers above only: nothing makes a write faster than the card is.
        let before = std::mem::replace(&mut keep, rows.iter().map(|r| (r.1 - priced(&r.0, &x)) / r.2 < 6.0).collect());
        if keep == before {
            break;
        }
    }
    x
}

/// Microseconds of what has these features.
pub(super) fn priced<const N: usize>(features: &[f64; N], prices: &[f64; N]) -> f64 {
    features.iter().zip(prices).map(|(f, p)| f * p).sum()
}

/// Chi squared of a write, capped so that a stall or an AU that opens in the middle of a pass weighs no more than that.
pub(super) fn misfit(us: f64, told: f64, deviation: f64) -> f64 {
    ((us - told) / deviation).powi(2).min(16.0)
}

/// Chi squared of these rows by [`prices`].
pub(super) fn fit<const N: usize>(rows: &[([f64; N], f64, f64)]) -> f64 {
    let x = prices(rows);
    rows.iter().map(|(a, t, e)| misfit(*t, priced(a, &x), *e)).sum()
}
