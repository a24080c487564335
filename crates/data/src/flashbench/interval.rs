//! `flashbench -i`: reads of doubling size, and the straight line through their times: a rate and an access time.
//!
//! Reads of a size lie nine sizes apart, one at each of `passes` places; all are made in random order.

use super::{Failure, Watch, attempt, format, generator, shuffle};
use crate::device::{Access, Device, DeviceError, Geometry, Op};
use crate::units::{Bytes, SECTOR};
use std::io::Write;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Number of sizes: 512 << i.
    pub order: u32,
    /// Places of a size.
    pub passes: u32,
    pub seed: u64,
}

/// Sizes that the regression leaves out: the smallest ones cost as much as each other.
const LEFT_OUT: u32 = 3;
/// Reads of a size lie this many sizes apart.
const APART: u64 = 9;

/// One size, times in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    pub size: u64,
    pub min: f64,
    pub avg: f64,
    pub max: f64,
}

impl Interval {
    fn sizes(&self, g: &Geometry) -> Vec<u64> {
        (0..self.order).map(|i| SECTOR << i).filter(|s| s.is_multiple_of(g.sector)).collect()
    }

    /// Reads a run makes.
    ///
    /// # Errors
    /// `Usage` where the order leaves no line to draw; `Refused` where the largest size does not fit.
    pub fn cost(&self, g: &Geometry) -> Result<super::pattern::Cost, Failure> {
        let most = 18;
        if !(LEFT_OUT + 2..=most).contains(&self.order) {
            return Err(Failure::Usage(format!(
                "--interval-order={}: it must be {} to {most}; the line is drawn through all sizes but the first {LEFT_OUT}",
                self.order,
                LEFT_OUT + 2
            )));
        }
        let end = |order: u32| (SECTOR << (order - 1)) * ((u64::from(self.passes) - 1) * APART + 1);
        if end(self.order) > g.size {
            let fits = (LEFT_OUT + 2..self.order).rev().find(|&o| end(o) <= g.size);
            let hint = fits.map_or("take a smaller --count".to_string(), |o| format!("--interval-order={o} fits"));
            return Err(DeviceError::Refused(format!(
                "{} reads of {}, {APART} sizes apart, reach to {}, and the target has {}; flashbench would wrap. {hint}",
                self.passes,
                Bytes(SECTOR << (self.order - 1)),
                Bytes(end(self.order)),
                Bytes(g.size)
            ))
            .into());
        }
        let sizes = self.sizes(g);
        let reads = sizes.len() as u64 * u64::from(self.passes);
        let bytes_read = sizes.iter().sum::<u64>() * u64::from(self.passes);
        Ok(super::pattern::Cost { reads, bytes_read, ..Default::default() })
    }

    /// Measures.
    ///
    /// # Errors
    /// As `cost`; the device's where it fails again and again; `Interrupted`.
    pub fn run(&self, device: &mut dyn Device, watch: &mut Watch) -> Result<(Vec<Row>, Vec<String>), Failure> {
        self.cost(device.geometry())?;
        let sizes = self.sizes(device.geometry());
        let mut order: Vec<(usize, u64)> = (0..sizes.len()).flat_map(|s| (0..u64::from(self.passes)).map(move |p| (s, p))).collect();
        shuffle(&mut generator(self.seed), &mut order);
        let mut times = vec![vec![]; sizes.len()];
        let mut faults = vec![];
        for (s, p) in order {
            let a = Access { op: Op::Read, at: p * APART * sizes[s], len: sizes[s] };
            if let Some(t) = attempt(device, a, watch, &mut faults)? {
                times[s].push(t.0 as f64);
            }
        }
        let rows = sizes.iter().zip(&times).filter(|(_, t)| !t.is_empty()).map(|(&size, t)| Row {
            size,
            min: t.iter().copied().fold(f64::INFINITY, f64::min),
            avg: t.iter().sum::<f64>() / t.len() as f64,
            max: t.iter().copied().fold(0.0, f64::max),
        });
        Ok((rows.collect(), faults))
    }
}

/// The line through the least times: ns at size 0, ns a byte. `None` with fewer than two sizes.
fn line(rows: &[Row]) -> Option<(f64, f64)> {
    nandscope_stats::line(rows.iter().filter(|r| r.size >= SECTOR << LEFT_OUT).map(|r| (r.size as f64, r.min, 1.0)))
}

/// flashbench's lines, and notes on what they cannot say.
///
/// # Errors
/// `Output`.
pub fn print(rows: &[Row], out: &mut dyn Write) -> Result<Vec<String>, Failure> {
    let mut text = String::new();
    for r in rows {
        let [min, avg, max] = [r.min, r.avg, r.max].map(|t| format::neat_time(t.round() as i64));
        let rate = format::general(r.size as f64 / r.min.max(1.0) * 1e3);
        text += &format!("{} bytes: min {min} avg {avg} max {max}: {rate} MB/s\n", r.size);
    }
    let mut notes = vec![];
    match line(rows).filter(|l| l.1 > 0.0) {
        Some((fixed, each)) => {
            text += &format!("{} MB/s, {} access time\n", format::general(1e3 / each), format::neat_time(fixed.round() as i64));
            for r in rows {
                // What is left below a thousandth of a ns is rounding.
                let over = Some(r.min - fixed - each * r.size as f64).filter(|o| o.abs() >= 1e-3).unwrap_or(0.0);
                text += &format!("bytes {}, time {:.0} overhead {}\n", r.size, r.min, format::general(over));
            }
        }
        None => notes.push("larger reads take no longer: no rate can be given".into()),
    }
    out.write_all(text.as_bytes()).map_err(Failure::Output)?;
    Ok(notes)
}
