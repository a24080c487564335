//! Discard, secure discard, or fill of a target or a part of it (F10, Q6).
//!
//! A card may erase more than it was asked to where the ends of a discard do not lie on its erase groups (U16: the neighbour
//! partition went, too). So a discard covers only the whole units inside the region; the pieces at its ends can be filled
//! instead, which touches nothing else.

use crate::device::{Access, Device, DeviceError, Fill, Op, Result};
use crate::units::MIB;
use serde::Serialize;
use std::ops::Range;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The card may forget the data.
    Discard,
    /// The card must make the data unreadable.
    SecureDiscard,
    /// The data are overwritten.
    Fill(Fill),
}

/// What of a region is discarded, and what lies beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Whole units; may be empty.
    pub whole: Range<u64>,
    /// The pieces before and after them; may be empty.
    pub ends: [Range<u64>; 2],
}

/// Divides a region (bytes of the target) into the whole units of the disk it holds and the pieces at its ends. `offset` is where
/// the target begins on the disk.
pub fn parts(region: &Range<u64>, unit: u64, first: u64, offset: u64) -> Parts {
    let unit = unit.max(1);
    let phase = first % unit;
    let up = |disk: u64| phase + disk.saturating_sub(phase).next_multiple_of(unit);
    let start = up(offset + region.start) - offset;
    let last = offset + region.end;
    let end = if last < phase { 0 } else { (phase + (last - phase) / unit * unit).saturating_sub(offset) };
    if start >= end {
        return Parts { whole: region.start..region.start, ends: [region.clone(), region.end..region.end] };
    }
    Parts { whole: start..end, ends: [region.start..start, end..region.end] }
}

/// Bytes of one request. Small enough for a progress bar and for Ctrl-C, large enough to be no unit of its own.
const PIECE: u64 = 16 * MIB;

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Done {
    pub discarded: u64,
    pub filled: u64,
    /// Bytes at the ends that were left as they were.
    pub left: u64,
    /// It was stopped before the end.
    pub stopped: bool,
}

/// How a region is treated; see [`run`].
#[derive(Clone, Debug)]
pub struct Order {
    /// Bytes of the target.
    pub region: Range<u64>,
    pub how: How,
    /// Units of the disk a discard keeps to.
    pub unit: u64,
    /// Where the first of them begins on the disk.
    pub first: u64,
    /// What the ends of a discard are filled with, if anything.
    pub ends: Option<Fill>,
}

impl Order {
    /// Bytes that will be written.
    pub fn writes(&self, offset: u64) -> u64 {
        let len = |r: &Range<u64>| r.end - r.start;
        match (self.how, self.ends) {
            (How::Fill(_), _) => len(&self.region),
            (_, None) => 0,
            (_, Some(_)) => parts(&self.region, self.unit, self.first, offset).ends.iter().map(len).sum(),
        }
    }
}

/// Erases. `tick` is told the bytes done; it says whether to go on.
///
/// # Errors
/// The target failed or cannot do it; what was done until then stays done.
pub fn run(device: &mut dyn Device, order: &Order, tick: &mut dyn FnMut(u64) -> bool) -> Result<Done> {
    let offset = device.geometry().offset;
    let mut done = Done { discarded: 0, filled: 0, left: 0, stopped: false };
    let mut over = |device: &mut dyn Device, range: &Range<u64>, how: How, done: &mut Done| -> Result<()> {
        let mut at = range.start;
        while at < range.end && !done.stopped {
            // Pieces end on the same grid, so that no unit is met twice.
            let len = PIECE.next_multiple_of(order.unit.max(1)).min(range.end - at);
            match how {
                How::Discard => device.access(Access { op: Op::Discard, at, len }).map(|_| ())?,
                How::SecureDiscard => device.discard_securely(at, len)?,
                How::Fill(fill) => {
                    for from in (at..at + len).step_by(4 * MIB as usize) {
                        device.access(Access { op: Op::Write(fill), at: from, len: (4 * MIB).min(at + len - from) })?;
                    }
                }
            }
            *(if matches!(how, How::Fill(_)) { &mut done.filled } else { &mut done.discarded }) += len;
            at += len;
            done.stopped = !tick(done.discarded + done.filled);
        }
        Ok(())
    };
    match order.how {
        How::Fill(_) => over(device, &order.region, order.how, &mut done)?,
        _ => {
            let p = parts(&order.region, order.unit, order.first, offset);
            over(device, &p.whole, order.how, &mut done)?;
            for end in &p.ends {
                match order.ends {
                    Some(fill) => over(device, end, How::Fill(fill), &mut done)?,
                    None => done.left += end.end - end.start,
                }
            }
        }
    }
    device.access(Access { op: Op::Flush, at: 0, len: 0 })?;
    Ok(done)
}

/// Reads a filled region back and compares.
///
/// # Errors
/// The target failed, or holds something else: the text names the first sector.
pub fn verify(device: &mut dyn Device, region: &Range<u64>, fill: Fill, tick: &mut dyn FnMut(u64) -> bool) -> Result<()> {
    let (mut got, mut want) = (vec![0; MIB as usize], vec![0; MIB as usize]);
    for at in (region.start..region.end).step_by(MIB as usize) {
        let n = MIB.min(region.end - at) as usize;
        device.load(at, &mut got[..n])?;
        fill.render(at, &mut want[..n]);
        if got[..n] != want[..n] {
            let bad = at + (0..n).find(|&i| got[i] != want[i]).unwrap_or(0) as u64;
            let source = std::io::Error::other("what reads back is not what was written; the card loses data, or is smaller than it says");
            return Err(DeviceError::Io { op: "write", at: bad / 512 * 512, len: 512, source });
        }
        if !tick(at + n as u64 - region.start) {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_discard_keeps_to_whole_units_of_the_disk() {
        let m = MIB;
        assert_eq!(parts(&(0..16 * m), 4 * m, 0, 0), Parts { whole: 0..16 * m, ends: [0..0, 16 * m..16 * m] });
        assert_eq!(parts(&(m..15 * m), 4 * m, 0, 0), Parts { whole: 4 * m..12 * m, ends: [m..4 * m, 12 * m..15 * m] });
        // A partition that begins in the middle of a unit.
        assert_eq!(parts(&(0..16 * m), 4 * m, 0, m), Parts { whole: 3 * m..15 * m, ends: [0..3 * m, 15 * m..16 * m] });
        assert_eq!(parts(&(m..3 * m), 4 * m, 0, 0).whole, m..m);
        assert_eq!(parts(&(m..3 * m), 4 * m, 0, 0).ends, [m..3 * m, 3 * m..3 * m]);
    }

    proptest! {
        #[test]
        fn parts_cover_the_region_once(start in 0u64..1000, len in 0u64..1000, unit in 0u64..70, first in 0u64..70, offset in 0u64..200) {
            let p = parts(&(start..start + len), unit, first, offset);
            prop_assert_eq!(p.ends[0].start, start);
            prop_assert_eq!(p.ends[0].end, if p.whole.is_empty() { start + len } else { p.whole.start });
            prop_assert_eq!(p.ends[1].end, start + len);
            if !p.whole.is_empty() {
                prop_assert_eq!(p.ends[1].start, p.whole.end);
                let unit = unit.max(1);
                prop_assert_eq!((offset + p.whole.start) % unit, first % unit);
                prop_assert_eq!((offset + p.whole.end) % unit, first % unit);
                prop_assert!(p.ends.iter().all(|e| e.end - e.start < unit));
            }
        }
    }
}
