//! What was measured or pasted, and what is said of it: samples, readers of logs, flashbench's formats, quantities. Nothing is judged here.
#![deny(unsafe_code)]

use nandscope_device::{chance, device, shell, units};

pub mod finding;
pub mod flashbench;
pub mod samples;
