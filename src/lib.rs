//! nandscope: times a flash card and says what is inside it.

pub mod device;
pub mod experiment;
pub mod finding;
pub mod flashbench;
pub mod infer;
pub mod samples;
pub mod units;
