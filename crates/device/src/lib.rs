//! The card at hand: raw timed accesses with guards, what the host and the card declare, times in nanoseconds.
#![deny(unsafe_code)]

pub mod chance;
pub mod device;
pub mod host;
pub mod shell;
pub mod units;
