//! nandscope: times a flash card and says what is inside it.
//!
//! The crates below `crates/` under one name. What is `not(fuzzing)` reads nothing from outside by itself; without it the fuzz targets
//! build in half the time.
#![deny(unsafe_code)]

pub use nandscope_advise::{advise, life};
pub use nandscope_data::{finding, flashbench, samples};
pub use nandscope_device::{chance, device, host, shell, units};
pub use nandscope_files::{lab, layout, volume, workload};
pub use nandscope_infer::{infer, saved};
pub use nandscope_measure::{experiment, probe};
pub use nandscope_report::{compare, report};
#[cfg(not(fuzzing))]
pub use nandscope_serve::serve;
#[cfg(not(fuzzing))]
pub use nandscope_survey::survey;
pub use nandscope_twin::twin;

#[cfg(not(fuzzing))]
pub mod ab;
#[cfg(not(fuzzing))]
pub mod campaign;
#[cfg(not(fuzzing))]
pub mod check;
#[cfg(not(fuzzing))]
pub mod cli;
#[cfg(not(fuzzing))]
pub mod rate;
#[cfg(not(fuzzing))]
pub mod sweep;
#[cfg(not(fuzzing))]
pub mod uflip;
