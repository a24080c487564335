//! Many cards: a survey in a directory or on a server, its pages and figures.
#![deny(unsafe_code)]

use nandscope_advise::advise;
use nandscope_data::{finding, samples};
use nandscope_device::{device, host, units};
use nandscope_files::lab;
use nandscope_infer::{infer, saved};
use nandscope_report::{compare, report};

pub mod survey;
