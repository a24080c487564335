//! From samples to findings: pure functions.

pub mod ab;
pub mod buffer;
pub mod combine;
pub mod edges;
pub mod lattice;
pub mod linear;
pub mod micro;
pub mod open;
pub mod replacement;
pub mod rewrite;
pub mod stalls;
pub mod stats;
pub mod steps;
pub mod tables;
pub mod trace;
