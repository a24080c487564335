//! Where the accesses of a pattern go, and the state of the flash before them.

use super::measured::Format;
use super::plan::{ALIGN, Base, Pattern};
use super::run::Bench;
use crate::device::{Device, Result};
use crate::units::KIB;
use std::ops::Range;

/// Sizes of the phases that bring a device into a random state: each writes a ninth of it.
const PHASES: [u64; 9] = [128 * KIB, 64 * KIB, 32 * KIB, 16 * KIB, 8 * KIB, 4 * KIB, 2 * KIB, KIB, 512];

impl Bench<'_> {
    pub(super) fn format(&mut self) -> Result<()> {
        let Range { start, end } = self.task.region;
        if !self.task.write || self.task.format == Format::AsIs {
            self.out.format = Format::AsIs;
            return Ok(());
        }
        let sector = self.device.geometry().sector;
        let units = (end - start) / ALIGN;
        let phases = if self.task.format == Format::Random { &PHASES[..] } else { &PHASES[..1] };
        // Each unit of 128 KiB belongs to one phase; within a phase all its pieces are written in random order, each once.
        let mut order: Vec<u64> = (0..units).collect();
        if self.task.format == Format::Random {
            for i in (1..order.len()).rev() {
                order.swap(i, self.below(i as u64 + 1) as usize);
            }
        }
        for part in order.chunks((units as usize).div_ceil(phases.len())).zip(phases) {
            let (mine, size) = (part.0, (*part.1).max(sector));
            let pieces = ALIGN / size;
            let n = mine.len() as u64 * pieces;
            // A step that has no divisor in common with their number visits each once, far apart.
            let mut step = if self.task.format == Format::Random { (n as f64 * 0.618) as u64 | 1 } else { 1 };
            while crate::units::gcd(step, n) > 1 {
                step += 2;
            }
            for i in 0..n {
                let k = (i * step) % n;
                let at = start + mine[(k / pieces) as usize] * ALIGN + k % pieces * size;
                self.access(Base::Sw, at, size)?;
                if i % 64 == 0 {
                    self.late()?;
                }
            }
        }
        self.out.formatted = self.written;
        Ok(())
    }

    /// Areas of a pattern: each sequential one is fresh, until the region is used up; random ones are the whole region.
    pub(super) fn area(&mut self, p: &Pattern, base: Base) -> (Range<u64>, bool) {
        let Range { start, end } = self.task.region;
        let room = end - start;
        let wanted = match (p.target, base.random()) {
            (Some(t), _) => t,
            (None, true) => room,
            (None, false) => p.count * p.size,
        };
        let len = (wanted + p.shift).max(p.size).next_multiple_of(ALIGN);
        if len >= room {
            return (start..end, len > room && !base.random());
        }
        let mut crowded = false;
        if self.fresh + len > end {
            (self.fresh, crowded) = (start, true);
        }
        let at = self.fresh;
        if base.random() && p.target.is_none() {
            return (start..end, false);
        }
        self.fresh += len;
        (at..at + len, crowded)
    }

    /// Where access `k` of a run goes; `n` counts those of its base.
    pub(super) fn place(&mut self, p: &Pattern, base: Base, area: &(Range<u64>, bool), n: u64) -> u64 {
        let Range { start, end } = area.0;
        let slots = ((end - start - p.shift) / p.size).max(1);
        // The size of the target, in accesses, where it is a part of the area.
        let slots = p.target.map_or(slots, |t| slots.min((t / p.size).max(1)));
        let slot = match () {
            () if base.random() => self.below(slots),
            () if p.partitions > 1 => {
                let each = (slots / p.partitions).max(1);
                (n % p.partitions * each + n / p.partitions % each) % slots
            }
            () if p.increment < 0 => slots - 1 - n % slots,
            () if p.increment == 0 => 0,
            // With one slot fewer, steps of a power of two visit all others.
            () if p.increment > 1 => n * p.increment as u64 % slots.saturating_sub(1).max(1),
            () => n % slots,
        };
        start + p.shift + slot * p.size
    }
}
