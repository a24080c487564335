//! The experiments: what each asks a card, in which order, and when it has enough.
#![deny(unsafe_code)]

use nandscope_data::{finding, samples};
use nandscope_device::{chance, device, units};
use nandscope_infer::{every_experiment, infer};

pub mod experiment;
pub mod probe;
