//! Volumes on a card: their layout on flash, files in pieces, workloads of programs.
#![deny(unsafe_code)]

use nandscope_data::{finding, samples};
use nandscope_device::{chance, device, host, shell, units};

pub mod lab;
pub mod layout;
pub mod volume;
pub mod workload;
