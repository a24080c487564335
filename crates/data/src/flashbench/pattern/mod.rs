//! A plain-text language for access patterns: what flashbench keeps as trees in C arrays, loadable at run time.
//!
//! A pattern has no unbounded loop and no condition, so walking it without a device tells every access it will make. That
//! walk comes first: it counts what the pattern costs and refuses a pattern that would leave the region, wrap, or not end.
//! FORMATS.md holds the grammar, `patterns/` examples; flashbench's own write tests are patterns, too.

mod lex;
mod parse;
mod walk;

pub use parse::expression;
pub use walk::{Cost, merged};

use super::Failure;
use crate::device::{Access, Device};
use crate::units::Nanos;
use std::io::Write;
use std::ops::Range;

/// A place in the text of a pattern, both from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct At {
    pub line: u32,
    pub column: u32,
}

/// A pattern that has been read.
#[derive(Clone, Debug)]
pub struct Pattern {
    name: String,
    params: Vec<Param>,
    body: Vec<Statement>,
}

#[derive(Clone, Debug)]
struct Param {
    name: String,
    value: Expr,
    at: At,
}

/// Where a pattern may go.
#[derive(Clone, Debug)]
pub struct Room {
    /// Bytes of the target.
    pub region: Range<u64>,
    /// Logical sector in bytes.
    pub sector: u64,
}

/// A parameter set from outside: name and value.
pub type Set = (String, i128);

/// How a pattern is run.
pub struct Running<'a> {
    pub seed: u64,
    /// Asked before every access; true ends the run.
    pub stop: &'a mut dyn FnMut() -> bool,
    /// Told after every access: its time, and whether the pattern measures it.
    pub done: &'a mut dyn FnMut(Access, Nanos, bool),
}

impl Pattern {
    /// Reads a pattern. `name` is for messages.
    ///
    /// # Errors
    /// `Wrong`, with line and column.
    pub fn parse(name: &str, text: &str) -> Result<Pattern, Failure> {
        parse::pattern(name, text)
    }

    /// The name it was read under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Parameters that can be set, in the order of the text.
    pub fn parameters(&self) -> Vec<&str> {
        self.params.iter().map(|p| p.name.as_str()).collect()
    }

    /// What a run will do, every access checked against the room. Sends nothing.
    ///
    /// # Errors
    /// `Wrong` where a parameter is unknown, an access leaves the room or its grid, or the pattern is too long.
    pub fn cost(&self, set: &[Set], room: &Room) -> Result<Cost, Failure> {
        walk::cost(self, set, room)
    }

    /// Runs the pattern after checking it whole.
    ///
    /// # Errors
    /// Those of `cost`; the device's; `Interrupted`.
    pub fn run(&self, set: &[Set], room: &Room, device: &mut dyn Device, out: &mut dyn Write, how: Running<'_>) -> Result<(), Failure> {
        self.cost(set, room)?;
        walk::run(self, set, room, device, out, how)
    }

    fn wrong(&self, at: At, what: impl Into<String>) -> Failure {
        Failure::Wrong { name: self.name.clone(), line: at.line, column: at.column, what: what.into() }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Expr {
    Number(i128),
    Name(String, At),
    Binary(char, Box<Expr>, Box<Expr>, At),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Data {
    Zeros,
    Ones,
    Constant,
    Random,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Read,
    Write(Data),
    Discard,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Mean,
    Min,
    Max,
    Median,
    Total,
}

#[derive(Clone, Debug)]
struct Reduce {
    how: How,
    body: Vec<Statement>,
    at: At,
}

#[derive(Clone, Debug)]
enum Steps {
    /// from, from + step, ... below to
    Count { from: Expr, to: Expr, step: Expr },
    /// from, from / 2, ... not below to
    Halves { from: Expr, to: Expr },
    /// from, from x 2, ... not above to
    Doubles { from: Expr, to: Expr },
}

#[derive(Clone, Debug)]
enum Order {
    Forwards,
    Backwards,
    /// Anew each time, where the expression is not 0.
    Shuffled(Option<Expr>),
}

#[derive(Clone, Debug)]
enum Item {
    Text(String),
    Size(Expr),
    Number(Expr),
    Rate(Reduce),
    Time(Reduce),
}

#[derive(Clone, Debug)]
enum Statement {
    Let {
        name: String,
        value: Expr,
    },
    For {
        name: String,
        steps: Steps,
        order: Order,
        body: Vec<Statement>,
        at: At,
    },
    Repeat {
        times: Expr,
        body: Vec<Statement>,
        at: At,
    },
    Access {
        verb: Verb,
        len: Expr,
        place: Expr,
        at: At,
    },
    Flush,
    /// Nanoseconds.
    Wait {
        time: Expr,
        at: At,
    },
    /// Carried out, and not measured.
    Prepare(Vec<Statement>),
    Reduce(Reduce),
    Print {
        items: Vec<Item>,
        at: At,
    },
    Newline,
}

#[cfg(test)]
mod tests;
