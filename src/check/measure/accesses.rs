//! Single accesses of a check: what they do to its time, and what became of what was written.

use super::{Check, Fates, LARGE, LESS, SMALL, putting_back};
use crate::device::fill::read_stamp;
use crate::device::{Access, Device, DeviceError, Fill, Op, Result, Timed};
use crate::units::{MIB, Nanos, SECTOR};
use std::sync::atomic::Ordering;

/// So many failed accesses in a row are a card that has gone.
const GONE: u32 = 24;
/// A write this close to the one before is in the same erase block, or in the next one at the most.
const CLOSE: u64 = MIB;

impl Check<'_> {
    pub(super) fn flush(&mut self) {
        self.device.access(Access { op: Op::Flush, at: 0, len: 0 }).ok();
    }

    /// Go on? An error of a card that has gone ends the check.
    pub(super) fn carry_on(&mut self, failed: Option<DeviceError>) -> Result<()> {
        if self.task.stop.load(Ordering::Relaxed) || self.device.now() >= self.deadline {
            return Err(DeviceError::Late);
        }
        match failed {
            Some(e) if self.failures + 1 >= GONE => Err(e),
            Some(_) => {
                self.failures += 1;
                Ok(())
            }
            None => {
                self.failures = 0;
                Ok(())
            }
        }
    }

    /// About how long a write there will take: as long as the last one beside it, else as the longest that lay apart.
    pub(super) fn about(&self, at: u64) -> Nanos {
        self.wrote.filter(|(place, _)| at.abs_diff(*place) <= CLOSE).map_or(self.apart, |w| w.1)
    }

    pub(super) fn write(&mut self, len: u64, places: Vec<u64>, pass: u64, share: f64) -> Result<Vec<Nanos>> {
        let share = if self.task.put_back.is_some() { share / LESS } else { share };
        let (until, mut took) = (self.until(share), vec![]);
        for at in places {
            let (now, about) = (self.device.now(), self.about(at));
            if now >= until || now + about > self.deadline {
                break;
            }
            let number = self.stamp(pass);
            self.out.writes += 1;
            let failed = match self.device.access(Access { op: Op::Write(Fill::Stamp(number)), at, len }) {
                Ok(t) => {
                    self.out.refused = 0;
                    took.push(t.took);
                    if self.wrote.is_none_or(|(place, _)| at.abs_diff(place) > CLOSE) {
                        self.apart = self.apart.max(t.took);
                    }
                    self.wrote = Some((at, t.took));
                    self.reserve(at, len, t.took);
                    self.out.written += len;
                    for piece in (at..at + len).step_by(SMALL as usize) {
                        self.last.insert(piece, number);
                        self.kept.remove(&piece);
                    }
                    None
                }
                Err(e @ DeviceError::Io { .. }) => {
                    self.out.unwritable.push(at);
                    self.out.refused += 1;
                    Some(e)
                }
                Err(DeviceError::Budget(_)) => break,
                Err(e) => return Err(e),
            };
            self.carry_on(failed)?;
        }
        Ok(took)
    }

    /// Time for putting back what was just written for the first time.
    fn reserve(&mut self, at: u64, len: u64, took: Nanos) {
        if self.task.put_back.is_none() {
            return;
        }
        let fresh: u64 = self.saved.missing(at..at + len).iter().map(|m| m.end - m.start).sum();
        self.saved.insert(at..at + len);
        self.deadline = self.deadline - putting_back(Nanos((took.0 as f64 * fresh as f64 / len as f64) as u64));
    }

    pub(super) fn read(&mut self, len: u64, places: Vec<u64>, share: f64) -> Result<Vec<Nanos>> {
        let (until, mut took, mut bytes) = (self.until(share), vec![], vec![0; len as usize]);
        for at in places {
            if self.device.now() >= until {
                break;
            }
            if let Some(t) = self.one(at, &mut bytes)? {
                took.push(t);
            }
        }
        Ok(took)
    }

    /// One read, and what became of what was written there; none where it failed.
    pub(super) fn one(&mut self, at: u64, bytes: &mut [u8]) -> Result<Option<Nanos>> {
        let timed = self.look_at(at, bytes, &mut |check, bytes| {
            let mut fates = std::mem::take(&mut check.out.fates);
            check.judge_all(at, bytes, &mut fates);
            check.out.fates = fates;
        })?;
        Ok(timed.map(|t| t.took))
    }

    /// One read, and what is made of its bytes; none where it failed, which is noted. A target that keeps no content is read without.
    pub(super) fn look_at(&mut self, at: u64, bytes: &mut [u8], seen: &mut dyn FnMut(&mut Self, &[u8])) -> Result<Option<Timed>> {
        self.out.reads += 1;
        let done = match self.device.get(at, bytes) {
            Err(DeviceError::Unsupported(_)) => {
                self.out.no_content = true;
                self.device.access(Access { op: Op::Read, at, len: bytes.len() as u64 })
            }
            Ok(t) => {
                seen(self, bytes);
                Ok(t)
            }
            failed => failed,
        };
        let (timed, failed) = match done {
            Ok(t) => {
                self.out.highest_read = self.out.highest_read.max(at);
                (Some(t), None)
            }
            Err(e @ DeviceError::Io { .. }) => {
                self.out.unreadable.push(at);
                (None, Some(e))
            }
            Err(e) => return Err(e),
        };
        self.carry_on(failed)?;
        Ok(timed)
    }

    /// What became of everything written in a range that was not read since, added to what is known of others.
    pub(super) fn fates(&mut self, at: u64, len: u64, all: &mut Fates) -> Result<()> {
        let mut bytes = vec![0; LARGE.min(len) as usize];
        for at in (at..at + len).step_by(bytes.len().max(1)) {
            self.look_at(at, &mut bytes, &mut |check, bytes| check.judge_all(at, bytes, all))?;
        }
        Ok(())
    }

    /// The same for the pieces of some bytes.
    pub(super) fn judge_all(&mut self, at: u64, bytes: &[u8], f: &mut Fates) {
        for (i, piece) in bytes.chunks_exact(SMALL as usize).enumerate() {
            self.judge(at + i as u64 * SMALL, piece, f);
        }
    }

    /// What a piece shows, where it was written. Each piece is judged once.
    fn judge(&mut self, at: u64, piece: &[u8], f: &mut Fates) {
        let Some(number) = self.last.remove(&at) else { return };
        let ours = |s: u64| s == number || self.wrote_it(s);
        f.read += 1;
        let stamps: Vec<Option<(u64, u64)>> = piece.chunks_exact(SECTOR as usize).map(read_stamp).collect();
        let own = |n: usize| stamps[n] == Some((at + n as u64 * SECTOR, number));
        let Some(n) = (0..stamps.len()).find(|&n| !own(n)) else {
            self.kept.insert(at, number);
            return f.kept += 1;
        };
        let sector = &piece[n * SECTOR as usize..(n + 1) * SECTOR as usize];
        match stamps[n] {
            Some((place, s)) if place != at + n as u64 * SECTOR && ours(s) => {
                f.another.push((at + n as u64 * SECTOR, place));
            }
            Some(_) => f.old += 1,
            None if sector.iter().all(|&b| b == 0) => f.zeros += 1,
            None if sector.iter().all(|&b| b == 0xff) => f.ones += 1,
            None => {
                self.strange.push(at);
                f.garbage += 1;
            }
        }
    }

    /// Pieces that read back as written and may be looked at once more, together so many bytes: those next to the middle of the window.
    pub(super) fn known(&self, len: u64) -> Option<u64> {
        let middle = self.window.start / 2 + self.window.end / 2;
        let whole = |at: &u64| self.kept.range(*at..at + len).count() as u64 == len / SMALL;
        let starts = self.kept.keys().copied().filter(|at| at % len == 0);
        starts.filter(whole).min_by_key(|at| at.abs_diff(middle))
    }

    /// Lets pieces that read back as written be judged again.
    pub(super) fn once_more(&mut self, at: u64, len: u64) {
        let pieces: Vec<(u64, u64)> = self.kept.range(at..at + len).map(|p| (*p.0, *p.1)).collect();
        self.last.extend(pieces);
    }
}
