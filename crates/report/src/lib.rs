//! What is told: reports, pages, plots, comparisons.
#![deny(unsafe_code)]

use nandscope_advise::advise;
use nandscope_data::{finding, samples};
use nandscope_device::{device, host, units};
use nandscope_files::lab;
use nandscope_infer::{infer, saved};
use nandscope_measure::experiment;

pub mod compare;
pub mod report;
