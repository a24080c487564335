//! FAT12/16/32 and exFAT volumes as they lie on flash.
#![warn(missing_docs)]

mod recognise;

pub use recognise::{FatType, NotFat, Volume, recognise};
