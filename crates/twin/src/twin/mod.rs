//! The twin of a card: fitted to what was measured, and held against it.

pub mod check;
mod costs;
mod data;
mod levelling;
mod noise;
mod reads;
mod replay;
mod result;
mod search;
mod shown;
mod structures;
pub mod text;
mod told;
pub mod wear;
mod writes;

pub use data::{Data, Row, TwinError};
pub use result::{Cost, Part, Quality, Twin, Weight};
pub use search::{Asked, fit};
