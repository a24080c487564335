//! From samples to findings: pure functions. A file for each quantity or experiment, for samples of our own and for tables of other
//! programs; `pipeline` runs them all.

pub mod ab;
pub mod access_kinds;
pub mod au_grid;
pub mod beliefs;
pub mod buffer;
pub mod capacity;
pub mod combine;
pub mod edges;
pub mod fat_zone;
pub mod figure;
pub mod interval;
pub mod lattice;
pub mod linear;
pub mod micro;
pub mod multi_block;
pub mod open;
pub mod open_au;
pub mod pipeline;
pub mod read_boundary;
pub mod replacement;
pub mod rewrite;
pub mod scatter;
pub mod slots;
pub mod small_writes;
pub mod stalls;
pub mod stats;
pub mod steps;
pub mod tables;
pub mod trace;
pub mod write_boundary;
pub mod write_cache;
pub mod write_trace;
pub mod write_unit;
