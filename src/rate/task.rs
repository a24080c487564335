//! What `rate` is to measure, and in which bounds.

use super::measure::{SEQUENTIAL, WINDOW};
use super::record::Plan;
use crate::host::class::{Class, FAT_PIECE, Family};
use crate::units::{GIB, KIB, Nanos};
use serde::Serialize;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// FAT cycles of the whole procedure, and of a quick one.
pub(super) const CYCLES: [usize; 2] = [512, 128];

/// Where the tables of a card formatted by the SD rules lie, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Tables {
    pub fat: u64,
    /// The second copy, or the bitmap of exFAT.
    pub copy: u64,
    pub directory: u64,
    /// Where data begin.
    pub data: u64,
}

/// What to do, in which bounds.
pub struct Task<'a> {
    pub region: Range<u64>,
    /// The whole procedure.
    pub whole: bool,
    /// On the device's own clock.
    pub deadline: Nanos,
    pub seed: u64,
    pub stop: &'a AtomicBool,
    pub capacity: u64,
    /// The AU that the card declares.
    pub au: Option<u64>,
    /// Commands in flight for A2.
    pub depth: u32,
    pub classes: &'a [Class],
    pub tables: Tables,
    /// What is recorded for a purpose.
    pub recording: Option<Plan>,
    /// The purpose asks for random accesses, or reads.
    pub random: bool,
    pub write: bool,
}

/// Bytes that the whole procedure writes at the most, and what of it lies outside any window.
pub fn most_written(task: &Task) -> u64 {
    let room = task.region.end - task.region.start;
    let each: u64 = shapes(task).iter().map(|_| room + room / 8).sum();
    let fat = (CYCLES[0] as u64) * (4 * 512 * KIB + 3 * FAT_PIECE);
    let application = applications(task) * (2 * room + WINDOW + SEQUENTIAL + 64 * GIB);
    let quick = 32 * GIB;
    let recording = task.recording.as_ref().map_or(0, |p| (p.bytes_per_second * p.seconds * 1.2) as u64 + GIB);
    if task.whole { each + fat + application + recording } else { quick }
}

fn applications(task: &Task) -> u64 {
    task.classes.iter().filter(|c| c.family() == Family::Application).count() as u64 + u64::from(task.random)
}

/// Recording units and units of the classes, each pair once.
pub(super) fn shapes(task: &Task) -> Vec<(u64, u64)> {
    let sequential = task.classes.iter().filter(|c| c.family() != Family::Application);
    let all: BTreeSet<(u64, u64)> =
        sequential.map(|c| (c.recording_unit(task.capacity), c.measured_unit(task.capacity, task.au))).collect();
    all.into_iter().collect()
}

/// Bytes of the smallest unit that is written as a whole; the region has to hold one behind the file system's tables.
pub fn least_unit(task: &Task) -> u64 {
    shapes(task).iter().map(|s| s.1).min().unwrap_or(FAT_PIECE)
}
