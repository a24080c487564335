//! Where things lie on a card, against the erase blocks: reading what is there, and laying it out better.

pub mod audit;
pub mod check;
pub mod disk;
pub mod draw;
pub mod erase;
pub mod format;
pub mod grid;
mod linux;
pub mod penalty;
pub mod plan;
pub mod prove;
pub mod script;
pub mod zone;

pub use grid::{Grid, Source};
