//! The experiments: what each asks a card, and what its times say.
#![deny(unsafe_code)]

use nandscope_device::{chance, device, units};
use nandscope_infer::{finding, infer, samples};

pub mod experiment;
pub mod probe;
