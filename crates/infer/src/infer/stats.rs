//! Statistics, from the crate that has one of each.

pub use nandscope_stats::*;
