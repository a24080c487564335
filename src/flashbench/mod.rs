//! What flashbench prints, and how to read and write it.

pub mod format;
