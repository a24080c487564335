//! `flashbench -s`: the time of a read at each of 2^order places, one block after the other from the start (F13).
//!
//! Every pass reads all places in a new random order; the least time of a place counts.

use super::{Failure, Watch, attempt, generator, shuffle};
use crate::device::{Access, Device, DeviceError, Geometry, Op};
use crate::units::Bytes;
use std::io::Write;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Scatter {
    /// 2^order places.
    pub order: u32,
    /// Blocks of one read.
    pub span: u64,
    pub block: u64,
    pub passes: u32,
    pub seed: u64,
}

/// Position in bytes and least time in ns, ascending.
pub type Points = Vec<(u64, u64)>;

/// Largest order.
pub const MOST: u32 = 16;

impl Scatter {
    /// Reads a run makes.
    ///
    /// # Errors
    /// `Usage` for an order or block that cannot be; `Refused` where the places do not fit on the target.
    pub fn cost(&self, g: &Geometry) -> Result<super::pattern::Cost, Failure> {
        if self.order > MOST {
            return Err(Failure::Usage(format!(
                "--scatter-order={}: it must be at most {MOST}, which is {} places",
                self.order,
                1 << MOST
            )));
        }
        if self.span == 0 {
            return Err(Failure::Usage("--scatter-span=0 reads nothing: it is 1 block or more".into()));
        }
        if self.block == 0 || !self.block.is_multiple_of(g.sector) {
            return Err(Failure::Usage(format!("--blocksize={} must be a multiple of the {} byte sector", self.block, g.sector)));
        }
        let len = self.block.saturating_mul(self.span);
        let end = ((1u64 << self.order) - 1).saturating_mul(self.block).saturating_add(len);
        if end > g.size {
            let fits = (0..self.order).rev().find(|o| ((1u64 << o) - 1).saturating_mul(self.block).saturating_add(len) <= g.size);
            let hint = fits.map_or("take a smaller -b".to_string(), |o| format!("--scatter-order={o} fits"));
            return Err(DeviceError::Refused(format!(
                "2^{} places of {} reach to {}, and the target has {}; flashbench would wrap and read the start twice. {hint}",
                self.order,
                Bytes(self.block),
                Bytes(end),
                Bytes(g.size)
            ))
            .into());
        }
        if len > crate::device::MAX_ACCESS {
            return Err(Failure::Usage(format!("one read of {} is too long; take a smaller --scatter-span", Bytes(len))));
        }
        let reads = u64::from(self.passes) << self.order;
        Ok(super::pattern::Cost { reads, bytes_read: reads * len, ..Default::default() })
    }

    /// Measures. Places that failed are left out and named in the notes.
    ///
    /// # Errors
    /// As `cost`; the device's where it fails again and again; `Interrupted`.
    pub fn run(&self, device: &mut dyn Device, watch: &mut Watch) -> Result<(Points, Vec<String>), Failure> {
        self.cost(device.geometry())?;
        let mut best = vec![u64::MAX; 1 << self.order];
        let mut bad = vec![false; best.len()];
        let mut order: Vec<usize> = (0..best.len()).collect();
        let mut rng = generator(self.seed);
        let mut faults = vec![];
        for _ in 0..self.passes {
            shuffle(&mut rng, &mut order);
            for &i in &order {
                if !bad[i] {
                    let a = Access { op: Op::Read, at: i as u64 * self.block, len: self.block * self.span };
                    match attempt(device, a, watch, &mut faults)? {
                        Some(t) => best[i] = best[i].min(t.0),
                        None => bad[i] = true,
                    }
                }
            }
        }
        let rows = best.iter().enumerate().filter(|(i, _)| !bad[*i]).map(|(i, t)| (i as u64 * self.block, *t)).collect();
        Ok((rows, faults))
    }
}

/// flashbench's lines: MiB and ms, six decimals, as gnuplot takes them.
///
/// # Errors
/// `Output`.
pub fn print(rows: &[(u64, u64)], out: &mut dyn Write) -> Result<(), Failure> {
    for (at, ns) in rows {
        writeln!(out, "{:.6}\t{:.6}", *at as f64 / 1_048_576.0, *ns as f64 / 1e6).map_err(Failure::Output)?;
    }
    Ok(())
}
