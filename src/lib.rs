//! nandscope: times a flash card and says what is inside it.
//!
//! What is `not(fuzzing)` reads nothing from outside by itself; without it the fuzz targets build in half the time.
#![deny(unsafe_code)]

#[cfg(not(fuzzing))]
pub mod ab;
pub mod chance;
#[cfg(not(fuzzing))]
pub mod check;
#[cfg(not(fuzzing))]
pub mod cli;
#[cfg(not(fuzzing))]
pub mod compare;
pub mod device;
pub mod experiment;
pub mod finding;
pub mod flashbench;
pub mod host;
pub mod infer;
pub mod lab;
pub mod layout;
#[cfg(not(fuzzing))]
pub mod life;
#[cfg(not(fuzzing))]
pub mod probe;
pub mod report;
pub mod samples;
#[cfg(not(fuzzing))]
pub mod serve;
#[cfg(not(fuzzing))]
pub mod survey;
pub mod units;
pub mod volume;
pub mod workload;
