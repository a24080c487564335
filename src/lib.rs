//! nandscope: times a flash card and says what is inside it.
#![deny(unsafe_code)]

pub mod ab;
pub mod cli;
pub mod compare;
pub mod device;
pub mod experiment;
pub mod finding;
pub mod flashbench;
pub mod host;
pub mod infer;
pub mod lab;
pub mod layout;
pub mod probe;
pub mod report;
pub mod samples;
pub mod serve;
pub mod survey;
pub mod units;
pub mod volume;
pub mod workload;
