//! Does what was written in the window show at other addresses?
//!
//! The test of the capacity looks for its stretch near the front. A counterfeit that keeps its front, where the tables of a filesystem lie,
//! and repeats only the addresses behind it shows that stretch nowhere.

use super::{Check, MIB, SMALL};
use crate::device::Result;
use crate::device::fill::read_stamp;

/// Share of the time left.
const SHARE: f64 = 0.1;
/// Less than this in one piece would have to be looked for at too many addresses.
const LEAST: u64 = MIB;
/// Places that show it: more tell nothing new.
const ENOUGH: usize = 8;

impl Check<'_> {
    /// Reads one place in as many bytes as were written in one piece, so that no image of it lies between two.
    pub(super) fn repeats(&mut self) -> Result<()> {
        let (start, region) = (self.window.start, self.task.region.clone());
        let end = (start..self.window.end).step_by(SMALL as usize).find(|at| !self.last.contains_key(at)).unwrap_or(self.window.end);
        let (len, until) = (end - start, self.until(SHARE));
        if len < LEAST || self.out.no_content {
            return Ok(());
        }
        let n = (region.end - region.start) / len;
        let mut bytes = vec![0; SMALL as usize];
        for i in super::spread(n) {
            let at = region.start + i * len;
            if (start..end).contains(&at) {
                continue;
            }
            if self.device.now() >= until || self.out.repeats.len() == ENOUGH {
                break;
            }
            self.look_at(at, &mut bytes, &mut |check, bytes| {
                let Some((place, number)) = read_stamp(bytes) else { return };
                if check.wrote_it(number) && place != at && (start..end).contains(&place) {
                    check.out.repeats.push((at, place));
                }
            })?;
            // Most of a counterfeit may be unreadable.
            self.failures = 0;
        }
        Ok(())
    }
}
