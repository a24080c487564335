//! nandscope for Python: probes of simulated cards and of programs that behave like one, inference, reports, the simulator, twins.
//!
//! Whatever computes releases the interpreter's lock. Columns of samples and traces are handed over as the memory that they are in.

mod cards;
mod reports;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

/// What goes wrong with a value that was given.
fn value(e: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(e.to_string())
}

/// What goes wrong with a file or a card.
fn os(e: impl std::fmt::Display) -> PyErr {
    PyOSError::new_err(e.to_string())
}

/// Compiled part of the package; `nandscope` has all of it.
#[pymodule]
fn _nandscope(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_function(wrap_pyfunction!(reports::probe, m)?)?;
    m.add_function(wrap_pyfunction!(reports::infer, m)?)?;
    m.add_class::<reports::Report>()?;
    m.add_class::<reports::Finding>()?;
    m.add_class::<reports::Logs>()?;
    m.add_class::<cards::Card>()?;
    m.add_class::<cards::Trace>()?;
    m.add_class::<cards::Twin>()?;
    Ok(())
}
