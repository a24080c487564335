//! Simulated cards as block devices and over NBD, in real time.
#![deny(unsafe_code)]

use nandscope_device::{device, host, units};

pub mod serve;
