//! The SD specification's own fragmentation test on the raw card (Physical Layer Simplified Specification 4.10, 4.13): the
//! speed of writing recording units (RU) into allocation units (AU) that are partly in use. The card must move the used RUs, at
//! a speed Pm; with Pw for an empty AU, the speed in an AU of N RUs of which Nu are in use is
//!
//! `P(Nu) = (N - Nu) Pm Pw / ((N - Nu) Pm + Nu Pw)`.
//!
//! Pm is fitted to AUs a half of which is in use; that the formula then also gives the speeds at a quarter and at three quarters
//! is the test of it. All rates are in MB/s (10^6 bytes).

use crate::chance;
use crate::device::{Access, Device, DeviceError, Fill, Op};
use crate::units::{KIB, MIB, Nanos};
use rand_pcg::rand_core::Rng;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The figures of the specification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Class {
    /// Bytes of an AU and of an RU.
    pub au: u64,
    pub ru: u64,
    /// Writing: the slowest of the AUs, each written whole in RUs.
    pub pw: f64,
    /// Moving, fitted; none where a half-used AU is written as fast as an empty one.
    pub pm: Option<f64>,
    /// Reading: mean of single RUs at random places.
    pub pr: f64,
    /// Longest read of 4 KiB, in ms.
    pub tfr: f64,
    /// FAT update cycle (both tables and the directory): largest mean of eight in a row, and longest, in ms.
    pub tfw_mean: f64,
    pub tfw_max: f64,
    /// Share of the RUs in use, measured MB/s, MB/s by the formula.
    pub used: Vec<(f64, f64, f64)>,
    /// What the formula leaves out: single writes shorter than an RU.
    #[serde(default)]
    pub pieces: Vec<Piece>,
}

/// How long one write of `len` bytes takes, mean in ms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Piece {
    pub len: u64,
    /// In AUs that are in use, each write three times its length behind the last.
    pub apart: f64,
    /// In AUs that are in use, each write behind the last.
    pub in_order: f64,
    /// The same in AUs that were erased; none where the device takes no discards.
    pub erased: Option<f64>,
}

/// A file as it was written, for a prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Written {
    /// Bytes of the file, of a cluster, and of one write call.
    pub size: u64,
    pub cluster: u64,
    pub chunk: u64,
    /// Pieces the file lay in, mean of the rounds.
    pub extents: f64,
    /// Its clusters were erased before.
    pub erased: bool,
    /// Seconds of everything but data: names, directory, tables. Measured with the smallest file.
    pub fixed: f64,
    /// Single sectors of tables written besides, because the host cannot keep all that the file needs.
    pub tables: f64,
}

/// AU and RU for a card of this size: the largest AU the specification allows (4.13.1), and the RU of the slow classes.
pub fn units(size: u64) -> (u64, u64) {
    let au = super::experiment::map_grid(None, size);
    (au, if size <= 1024 * MIB { 16 * KIB } else { 64 * KIB })
}

/// P(Nu) by the formula, with `n` RUs of which `used` are in use.
pub fn by_formula(n: f64, used: f64, pw: f64, pm: f64) -> f64 {
    (n - used) * pm * pw / ((n - used) * pm + used * pw)
}

const AUS: u64 = 4;
const READS: u32 = 256;
/// Writes of each kind and length.
const WRITES: u64 = 64;

struct Bench<'a> {
    device: &'a mut dyn Device,
    region: Range<u64>,
    seed: u64,
}

impl Bench<'_> {
    fn write(&mut self, at: u64, len: u64) -> Result<Nanos, DeviceError> {
        self.seed += 1;
        Ok(self.device.access(Access { op: Op::Write(Fill::Random(self.seed)), at, len })?.took)
    }

    fn read(&mut self, at: u64, len: u64) -> Result<Nanos, DeviceError> {
        Ok(self.device.access(Access { op: Op::Read, at, len })?.took)
    }
}

/// Measures on the bytes `region` of a card, which are overwritten: at least twelve AUs. Single writes are timed up to `chunk`
/// bytes.
///
/// # Errors
/// The region is too small, or the device failed.
pub fn measure(device: &mut dyn Device, region: Range<u64>, au: u64, ru: u64, chunk: u64, seed: u64) -> Result<Class, DeviceError> {
    let first = region.start.next_multiple_of(au);
    let count = region.end.saturating_sub(first) / au;
    if count < 3 * AUS || ru == 0 || !au.is_multiple_of(ru) || au / ru < 4 {
        return Err(DeviceError::OutOfBounds(format!(
            "the test of the specification needs {} AUs of {au} bytes with at least four RUs of {ru} bytes each; the region has {count} AUs",
            3 * AUS
        )));
    }
    let mut rng = chance::generator(seed);
    let mut below = |n: u64| rng.next_u64() % n;
    let n = au / ru;
    let mut b = Bench { device, region: first..first + count * au, seed };
    // AUs spread over the region; the one in front is written to close what is open.
    let spread = |k: u64, of: u64| first + (k * count / of) * au;
    let mut whole = vec![];
    for k in 0..AUS {
        let mut took = Nanos(0);
        for r in 0..n {
            took = took + b.write(spread(k, AUS) + r * ru, ru)?;
        }
        whole.push(took.secs());
    }
    let rate = |bytes: u64, secs: f64| bytes as f64 / 1e6 / secs.max(1e-12);
    let slowest = whole.iter().copied().fold(0.0, f64::max);
    let pw = rate(au, slowest);
    // Partly used AUs: written whole before, then only the RUs that are not in use, which are spread evenly.
    let mut measured = vec![];
    for quarter in 1..=3u64 {
        let used = n * quarter / 4;
        let free: Vec<u64> = (0..n).filter(|r| (r + 1) * (n - used) / n > r * (n - used) / n).collect();
        let mut secs = 0.0;
        for k in 0..AUS {
            let at = spread(k, AUS) + au;
            for r in 0..n {
                b.write(at + r * ru, ru)?;
            }
        }
        for k in 0..AUS {
            let at = spread(k, AUS) + au;
            for &r in &free {
                secs += b.write(at + r * ru, ru)?.secs();
            }
        }
        // What is still open belongs to the price: the next AU pays it.
        secs += (b.write(spread(0, AUS) + 2 * au, ru)?.secs() - whole[0] / n as f64).max(0.0);
        measured.push((used, rate(AUS * free.len() as u64 * ru, secs)));
    }
    let (half, at_half) = measured[1];
    let (n_f, used_f) = (n as f64, half as f64);
    // The formula solved for Pm.
    let rest = (n_f - used_f) * (pw - at_half);
    let pm = (rest > 0.02 * n_f * pw).then(|| used_f * pw * at_half / rest);
    let pr = {
        let mut secs = 0.0;
        for _ in 0..READS {
            let at = b.region.start + below((b.region.end - b.region.start) / ru) * ru;
            secs += b.read(at, ru)?.secs();
        }
        rate(u64::from(READS) * ru, secs)
    };
    let mut tfr = 0.0f64;
    for _ in 0..READS / 4 {
        let at = b.region.start + below((b.region.end - b.region.start) / (4 * KIB)) * 4 * KIB;
        tfr = tfr.max(b.read(at, 4 * KIB)?.millis());
    }
    // A FAT update cycle falls between runs of data: both tables 16 KiB, the directory one sector (4.13.2.7).
    let sector = b.device.geometry().sector;
    let data = spread(1, 2) + au;
    let mut cycles = vec![];
    for k in 0..32 {
        b.write(data + (k % n) * ru, ru)?;
        let mut ms = 0.0;
        for (at, len) in [(first, 16 * KIB), (first + (512 * KIB).min(au / 2), 16 * KIB), (first + au, sector)] {
            ms += b.write(at, len)?.millis();
        }
        cycles.push(ms);
    }
    let tfw_mean = cycles.windows(8).map(|w| w.iter().sum::<f64>() / 8.0).fold(0.0, f64::max);
    let tfw_max = cycles.iter().copied().fold(0.0, f64::max);
    let used = measured.iter().map(|&(u, p)| (u as f64 / n_f, p, pm.map_or(pw, |pm| by_formula(n_f, u as f64, pw, pm)))).collect();
    let mut pieces = vec![];
    let mut len = sector;
    // The AUs that were partly written above are in use.
    while len <= chunk.min(au / 4) {
        pieces.push(b.piece(len, au, spread(1, AUS) + au, spread(2, AUS) + au)?);
        len *= 2;
    }
    Ok(Class { au, ru, pw, pm, pr, tfr, tfw_mean, tfw_max, used, pieces })
}

impl Bench<'_> {
    /// Times writes of `len` bytes in the AU at `used`; erased, in the one at `spare`.
    fn piece(&mut self, len: u64, au: u64, used: u64, spare: u64) -> Result<Piece, DeviceError> {
        let sector = self.device.geometry().sector;
        // Files begin at any cluster: eight beginnings, each off by another number of sectors.
        let mean = |b: &mut Self, at: u64, step: u64| -> Result<f64, DeviceError> {
            let each = (au / 8 / step).clamp(1, WRITES / 8);
            let (mut ms, mut n) = (0.0, 0);
            for run in 0..8 {
                let at = at + run * (au / 8) / sector * sector;
                let off = (2 * run + 1) * sector % len.max(sector);
                for k in (0..each).filter(|k| (run * (au / 8)) + off + k * step + len <= au) {
                    ms += b.write(at + off + k * step, len)?.millis();
                    n += 1;
                }
            }
            Ok(ms / f64::from(n.max(1)))
        };
        let (apart, in_order) = (mean(self, used, 4 * len + sector)?, mean(self, used, len)?);
        let erased = match self.device.access(Access { op: Op::Discard, at: spare, len: au }) {
            Ok(_) => Some(mean(self, spare, len)?),
            Err(DeviceError::Unsupported(_)) => None,
            Err(e) => return Err(e),
        };
        Ok(Piece { len, apart, in_order, erased })
    }
}

impl Class {
    /// Seconds the figures give for a file of `size` bytes on a volume whose AUs are in use by the share `used`: its data at
    /// P(Nu), and one FAT update cycle to make it and one to remove it.
    pub fn predict(&self, size: u64, used: f64) -> f64 {
        let n = self.au as f64 / self.ru as f64;
        // A full AU has no room to write to.
        let in_use = (used * n).clamp(0.0, n - 1.0);
        let p = self.pm.map_or(self.pw, |pm| by_formula(n, in_use, self.pw, pm));
        size as f64 / 1e6 / p + 2.0 * self.tfw_mean / 1e3
    }

    /// Seconds for a file from single writes: as many as its pieces and the write calls make, each as long as a write of that
    /// length took on the raw card; the sectors of tables the host has no room for; and what the smallest file took besides its data. None where nothing was measured.
    pub fn predict_pieces(&self, w: &Written) -> Option<f64> {
        let calls = w.size.div_ceil(w.chunk) as f64;
        let jumps = w.extents.max(1.0);
        // A call ends inside a piece, unless a piece ends there.
        let meet = (jumps * w.cluster as f64 / w.size as f64).min(1.0);
        let writes = jumps + (calls - 1.0) * (1.0 - meet);
        let len = w.size as f64 / writes;
        let in_order = |p: &Piece| if w.erased { p.erased.unwrap_or(p.in_order) } else { p.in_order };
        let apart = |p: &Piece| if w.erased { p.erased.unwrap_or(p.apart) } else { p.apart };
        let data = jumps * self.one(len, &apart)? + (writes - jumps) * self.one(len, &in_order)?;
        let ms = data + w.tables * self.pieces.first()?.apart;
        Some(w.fixed + ms / 1e3)
    }

    /// ms of one write of `len` bytes: between two measured lengths by the straight line.
    pub fn one(&self, len: f64, of: &dyn Fn(&Piece) -> f64) -> Option<f64> {
        let (first, last) = (self.pieces.first()?, self.pieces.last()?);
        let Some(i) = self.pieces.iter().position(|p| p.len as f64 >= len) else {
            return Some(of(last) * len / last.len as f64);
        };
        let (a, b) = (&self.pieces[i.saturating_sub(1)], &self.pieces[i]);
        if a.len == b.len {
            return Some(of(first));
        }
        Some(of(a) + (of(b) - of(a)) * (len - a.len as f64) / (b.len - a.len) as f64)
    }
}

#[cfg(test)]
#[path = "class_tests.rs"]
mod tests;
