//! The program as tests call it.
#![allow(dead_code)]

use std::process::Command;

/// Columns of a terminal on which no line is broken: tests look for phrases on one line.
pub const WIDE: &str = "1000";

/// The program, on such a terminal.
pub fn program() -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_nandscope"));
    c.env("COLUMNS", WIDE);
    c
}
