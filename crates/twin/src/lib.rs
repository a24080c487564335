//! One model of a card: a structure that turns a history of accesses into events, and what each event costs.
//!
//! From the samples of one report or several: candidates for the structure, costs by least squares, how well each explains what was
//! measured, and what none does. The best is a card model that every command takes.
#![deny(unsafe_code)]

use nandscope_data::{finding, samples};
use nandscope_device::{device, shell, units};
use nandscope_infer::saved;

pub mod twin;
