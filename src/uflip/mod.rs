//! uFLIP (Bouganim, Jónsson, Bonnet, CIDR 2009): nine micro-benchmarks in 34 experiments, each of which changes one parameter of a
//! pattern of accesses, with what the method leaves to the eye done by the program.

mod areas;
pub mod measured;
pub mod plan;
pub mod res;
pub mod run;
pub mod say;

/// Of the JSON that the benchmark writes.
pub const SCHEMA: &str = "nandscope-uflip/1";
