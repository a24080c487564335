//! Where things lie on a card, against the erase blocks: reading what is there, and laying it out better.

pub mod check;
pub mod erase;
pub mod format;
pub mod grid;

pub use grid::{Grid, Source};
