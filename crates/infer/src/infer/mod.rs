//! From samples to findings: pure functions. A file for each quantity or experiment, for samples of our own and for tables of other
//! programs; `pipeline` runs them all.

pub mod ab;
pub mod beliefs;
pub mod buffer;
pub mod combine;
pub mod confidence;
pub mod edges;
pub mod figure;
pub mod lattice;
pub mod linear;
pub mod micro;
pub mod open;
pub mod pipeline;
pub mod replacement;
pub mod rewrite;
pub mod slots;
pub mod stalls;
pub mod stats;
pub mod steps;
pub mod tables;
pub mod ticks;
pub mod trace;

use pipeline::Analysis;

include!(concat!(env!("OUT_DIR"), "/experiments.rs"));

macro_rules! analyses {
    ($($file:ident)+) => {
        $(pub mod $file;)+

        const FOUND: &[&[&dyn Analysis]] = &[$($file::ANALYSES),+];
    };
}

every_experiment!(analyses);

/// One for each experiment.
pub fn all() -> impl Iterator<Item = &'static dyn Analysis> {
    FOUND.iter().flat_map(|f| f.iter().copied())
}
