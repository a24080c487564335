//! Volumes on a card: their layout on flash, files in pieces, workloads of programs.
#![deny(unsafe_code)]

use nandscope_device::{chance, device, host, units};
use nandscope_infer::{finding, infer, samples};

pub mod lab;
pub mod layout;
pub mod volume;
pub mod workload;
