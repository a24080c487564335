//! nandscope: times a flash card and says what is inside it.

pub mod device;
pub mod host;
pub mod units;
