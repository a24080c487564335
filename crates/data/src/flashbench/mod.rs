//! flashbench: its command line, its tests, what it prints, and how to read that again.
//!
//! The lines are flashbench's own; how they are measured is not (docs/flashbench.md lists what was wrong, and what is done
//! instead). The tests that write are patterns (`pattern`), the ones that only read are here, one file each.

pub mod align;
pub mod format;
pub mod interval;
pub mod job;
pub mod pattern;
pub mod scatter;

use crate::chance::generator;
use crate::device::{Access, Device, DeviceError};
use crate::units::Nanos;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;

/// What ends a test early.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// What was asked for cannot be done; the text says what can. Nothing was sent.
    #[error("{0}")]
    Usage(String),
    /// A pattern is wrong, or asks for what must not be done. Nothing was sent.
    #[error("{name}:{line}:{column}: {what}")]
    Wrong { name: String, line: u32, column: u32, what: String },
    /// It would leave the target, or write where nobody allowed it. Nothing was sent.
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error("cannot write the result")]
    Output(#[source] std::io::Error),
    #[error("interrupted")]
    Interrupted,
}

/// Who looks on: may stop a test, and is told of every access.
pub struct Watch<'a> {
    pub stop: &'a mut dyn FnMut() -> bool,
    pub done: &'a mut dyn FnMut(Access, Nanos),
}

/// So many failed accesses end a test: one bad spot is tolerated, a card that has gone is not.
const FAULTS: usize = 6;

/// An access whose failure is a fact about one place, until there are too many of them.
fn attempt(device: &mut dyn Device, a: Access, watch: &mut Watch, faults: &mut Vec<String>) -> Result<Option<Nanos>, Failure> {
    if (watch.stop)() {
        return Err(Failure::Interrupted);
    }
    match device.access(a) {
        Ok(t) => {
            (watch.done)(a, t.took);
            Ok(Some(t.took))
        }
        Err(e @ DeviceError::Io { .. }) => {
            faults.push(e.to_string());
            if faults.len() >= FAULTS { Err(e.into()) } else { Ok(None) }
        }
        Err(e) => Err(e.into()),
    }
}

/// Fisher-Yates.
fn shuffle<T>(rng: &mut Pcg64Mcg, all: &mut [T]) {
    for i in (1..all.len()).rev() {
        all.swap(i, ((u128::from(rng.next_u64()) * (i as u128 + 1)) >> 64) as usize);
    }
}
