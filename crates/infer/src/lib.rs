//! What follows from what was measured or pasted: statistics, findings, and a report as it is saved.
#![deny(unsafe_code)]

use nandscope_data::{finding, flashbench, samples};
use nandscope_device::{device, host, shell, units};

pub mod infer;
pub mod saved;
