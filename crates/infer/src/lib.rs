//! What was measured or pasted, and what follows from it: samples, readers of logs, statistics, findings.
#![deny(unsafe_code)]

use nandscope_device::{chance, device, host, units};

pub mod finding;
pub mod flashbench;
pub mod infer;
pub mod samples;
pub mod saved;
