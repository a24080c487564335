//! nandscope: times a flash card and says what is inside it.
#![deny(unsafe_code)]

pub mod device;
pub mod host;
pub mod units;
