//! The experiments: what each asks a card, and what its times say.
#![deny(unsafe_code)]

use nandscope_data::{finding, samples};
use nandscope_device::{chance, device, units};
use nandscope_infer::infer;

pub mod experiment;
pub mod probe;
