//! What follows from findings for whoever uses the card: advice, uses, commands, quirks, prices, life. Values and sentences; nothing is
//! printed here.
#![deny(unsafe_code)]

use nandscope_data::{finding, samples};
use nandscope_device::{chance, device, host, shell, units};
use nandscope_files::{lab, layout, workload};
use nandscope_infer::{infer, saved};

pub mod advise;
pub mod life;
