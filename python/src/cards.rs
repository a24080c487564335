//! Simulated cards, traces, and twins.

use crate::reports::Report;
use crate::{os, value};
use nandscope_device::device::{SimCard, Target};
use nandscope_sim::run::{How, run_told};
use nandscope_sim::trace::{self, Io};
use nandscope_sim::{Data, Model, Op, Request};
use nandscope_twin::twin::{Asked, Data as Fitting, fit};
use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyDict;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Numbers of operations in a column `op`.
const OPS: [(Op, &str); 4] = [(Op::Read, "read"), (Op::Write, "write"), (Op::Discard, "discard"), (Op::Flush, "flush")];

fn op_named(word: &str) -> PyResult<Op> {
    OPS.iter().find(|o| o.1 == word).map(|o| o.0).ok_or_else(|| value(format!("'{word}' is neither read, write, discard nor flush")))
}

fn op_of(number: u8) -> PyResult<Op> {
    OPS.get(usize::from(number)).map(|o| o.0).ok_or_else(|| value(format!("op {number}: 0 read, 1 write, 2 discard, 3 flush")))
}

fn number_of(op: Op) -> u8 {
    OPS.iter().position(|o| o.0 == op).unwrap_or(0) as u8
}

/// A simulated card with a clock of its own.
#[pyclass(module = "nandscope")]
pub struct Card {
    card: nandscope_sim::Card,
    name: String,
    now: u64,
}

fn model(name: &str, seed: Option<u64>) -> PyResult<SimCard> {
    let name = if name.starts_with("sim:") || name.ends_with(".toml") { name.to_string() } else { format!("sim:{name}") };
    Target::card(&name, seed).map_err(value)
}

#[pymethods]
impl Card {
    /// A card by its name ("sim:toshiba-emmc", "toshiba-emmc", "random"), or by the path of its model.
    #[new]
    #[pyo3(signature = (name, seed=None))]
    fn new(name: &str, seed: Option<u64>) -> PyResult<Card> {
        let SimCard { model, seed, .. } = model(name, seed)?;
        Ok(Card::of(&model, seed))
    }

    /// A card by the text of its model.
    #[staticmethod]
    #[pyo3(signature = (text, seed=1))]
    fn from_toml(text: &str, seed: u64) -> PyResult<Card> {
        Ok(Card::of(&Model::parse(text, "the model").map_err(value)?, seed))
    }

    /// Name of the card.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Bytes.
    #[getter]
    fn capacity(&self) -> u64 {
        self.card.capacity()
    }

    /// Its clock, in ns.
    #[getter]
    fn now(&self) -> u64 {
        self.now
    }

    /// What is true of it, as a dict: the structure that a probe looks for.
    fn truth(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        crate::reports::object(py, &self.card.model().truth())
    }

    /// Counters of the card so far, as a dict.
    fn counters(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let k = self.card.counters();
        let d = PyDict::new(py);
        for (name, n) in [
            ("bytes_read", k.bytes_read),
            ("bytes_written", k.bytes_written),
            ("erases", k.erases),
            ("units_programmed", k.units_programmed),
            ("units_copied", k.units_copied),
            ("merges_full", k.merges_full),
            ("collections", k.collections),
        ] {
            d.set_item(name, n)?;
        }
        Ok(d.into_any().unbind())
    }

    /// One request at the card's own time: ("read", 0, 4096) gives its start and how long it took, in ns. With an array of places the requests
    /// follow each other, and the two are arrays; op is one for all or an array of numbers (0 read, 1 write, 2 discard, 3 flush), len one or an array. The
    /// lock is released then, and where one fails the clock stands where it stood.
    fn submit<'py>(
        &mut self,
        py: Python<'py>,
        op: &Bound<'py, PyAny>,
        at: &Bound<'py, PyAny>,
        len: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Ok(places) = at.cast::<PyArray1<u64>>() else {
            let request =
                Request { op: op_named(&op.extract::<PyBackedStr>()?)?, at: at.extract()?, len: len.extract()?, data: Data::Other };
            let start = self.now;
            self.now = self.card.submit(start, request).map_err(os)?.done;
            return (start, self.now - start).into_bound_py_any(py);
        };
        let before = self.now;
        let (ops, next_op) = match op.extract::<PyBackedStr>() {
            Ok(word) => one(py, number_of(op_named(&word)?)),
            Err(_) => (op.extract()?, 1),
        };
        let (lens, next_len) = len.extract().map_or_else(|_| Ok::<_, PyErr>((len.extract()?, 1)), |n: u64| Ok(one(py, n)))?;
        let places = places.readonly();
        let (at, ops, lens) = (places.as_slice()?, ops.as_slice()?, lens.as_slice()?);
        if next_op > 0 && ops.len() != at.len() || next_len > 0 && lens.len() != at.len() {
            return Err(value("the columns have different lengths"));
        }
        ops.iter().try_for_each(|n| op_of(*n).map(|_| ()))?;
        let request =
            |(i, &at): (usize, &u64)| Io { time: 0, op: OPS[usize::from(ops[i * next_op])].0, at, len: lens[i * next_len], took: 0 };
        let (mut starts, took) = (Vec::with_capacity(at.len()), self.all(py, at.iter().enumerate().map(request), 1)?);
        let mut start = before;
        for t in &took {
            starts.push(start);
            start += t;
        }
        (starts.into_pyarray(py), took.into_pyarray(py)).into_bound_py_any(py)
    }

    /// Lets time pass, in ns.
    fn idle(&mut self, ns: u64) {
        self.now += ns;
    }

    /// All requests of a trace, one after the other; how long each took, in ns, as an array. The lock is released.
    #[pyo3(signature = (trace, depth=1))]
    fn run<'py>(&mut self, py: Python<'py>, trace: &Trace, depth: u64) -> PyResult<Bound<'py, PyArray1<u64>>> {
        Ok(self.all(py, trace.ios.iter().copied(), depth)?.into_pyarray(py))
    }

    fn __repr__(&self) -> String {
        format!("<nandscope.Card {}: {} bytes>", self.name, self.card.capacity())
    }
}

impl Card {
    /// ns of each request, one after the other.
    fn all(&mut self, py: Python<'_>, ios: impl ExactSizeIterator<Item = Io> + Send, depth: u64) -> PyResult<Vec<u64>> {
        let mut took = Vec::with_capacity(ios.len());
        let how = How { depth: depth.max(1), ..How::default() };
        let (card, now) = (&mut self.card, self.now);
        let done = py.detach(|| run_told(card, now, ios, &how, |io| took.push(io.took)));
        self.now += done.map_err(os)?.took;
        Ok(took)
    }

    fn of(model: &Model, seed: u64) -> Card {
        Card { card: nandscope_sim::Card::new(model, seed), name: model.name.clone(), now: 0 }
    }
}

/// One value for all requests, or one for each: the values, and how far it is from one to the next.
type Column<'py, T> = (PyReadonlyArray1<'py, T>, usize);

fn one<'py, T: numpy::Element>(py: Python<'py>, value: T) -> Column<'py, T> {
    (PyArray1::from_vec(py, vec![value]).readonly(), 0)
}

/// Requests with times, in columns.
#[pyclass(module = "nandscope", frozen)]
pub struct Trace {
    ios: Vec<Io>,
    format: &'static str,
    bad: u64,
}

#[pymethods]
impl Trace {
    /// From columns: op (0 read, 1 write, 2 discard, 3 flush), at and len in bytes, and time in ns where there is one.
    #[new]
    #[pyo3(signature = (op, at, len, time=None))]
    fn new(
        op: PyReadonlyArray1<'_, u8>,
        at: PyReadonlyArray1<'_, u64>,
        len: PyReadonlyArray1<'_, u64>,
        time: Option<PyReadonlyArray1<'_, u64>>,
    ) -> PyResult<Trace> {
        let (op, at, len) = (op.as_slice()?, at.as_slice()?, len.as_slice()?);
        let time = time.as_ref().map(|t| t.as_slice()).transpose()?;
        if at.len() != op.len() || len.len() != op.len() || time.is_some_and(|t| t.len() != op.len()) {
            return Err(value("the columns have different lengths"));
        }
        let one = |i: usize| Ok(Io { time: time.map_or(0, |t| t[i]), op: op_of(op[i])?, at: at[i], len: len[i], took: 0 });
        Ok(Trace { ios: (0..op.len()).map(one).collect::<PyResult<_>>()?, format: "columns", bad: 0 })
    }

    /// Reads a file: fio iolog, blkparse, blktrace, ftrace, MSR, MQSim, or columns.
    #[staticmethod]
    fn read(py: Python<'_>, path: std::path::PathBuf) -> PyResult<Trace> {
        py.detach(|| {
            let bytes = std::fs::read(&path).map_err(|e| os(format!("{}: {e}", path.display())))?;
            let t = trace::parse(&bytes, None).map_err(|e| value(format!("{}: {e}", path.display())))?;
            Ok(Trace { ios: t.ios, format: t.format.name(), bad: t.bad })
        })
    }

    /// A pattern: "random-4k", "sequential-read-1m", "mixed-4k", on so many bytes.
    #[staticmethod]
    #[pyo3(signature = (pattern, requests, capacity, seed=1))]
    fn made(pattern: &str, requests: u64, capacity: u64, seed: u64) -> PyResult<Trace> {
        let p = nandscope_sim::run::Pattern::parse(pattern).map_err(value)?;
        if p.size > capacity {
            return Err(value(format!("requests of {} bytes are larger than {capacity} bytes", p.size)));
        }
        Ok(Trace { ios: p.ios(capacity, requests, seed).collect(), format: "made", bad: 0 })
    }

    /// How it was written.
    #[getter]
    fn format(&self) -> &str {
        self.format
    }

    /// Lines that could not be read.
    #[getter]
    fn malformed(&self) -> u64 {
        self.bad
    }

    fn __len__(&self) -> usize {
        self.ios.len()
    }

    /// Columns time, op, at, len, took as NumPy arrays; ns and bytes.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let d = PyDict::new(py);
        d.set_item("time", self.ios.iter().map(|i| i.time).collect::<Vec<u64>>().into_pyarray(py))?;
        d.set_item("op", self.ios.iter().map(|i| number_of(i.op)).collect::<Vec<u8>>().into_pyarray(py))?;
        d.set_item("at", self.ios.iter().map(|i| i.at).collect::<Vec<u64>>().into_pyarray(py))?;
        d.set_item("len", self.ios.iter().map(|i| i.len).collect::<Vec<u64>>().into_pyarray(py))?;
        d.set_item("took", self.ios.iter().map(|i| i.took).collect::<Vec<u64>>().into_pyarray(py))?;
        Ok(d)
    }
}

/// A card model fitted to reports.
#[pyclass(module = "nandscope", frozen)]
pub struct Twin {
    twin: nandscope_twin::twin::Twin,
    seed: u64,
}

#[pymethods]
impl Twin {
    /// Fits a model to reports of one card, for at most so many seconds. The lock is released.
    #[staticmethod]
    #[pyo3(signature = (reports, seed=1, seconds=30.0))]
    fn fit(py: Python<'_>, reports: Vec<PyRef<'_, Report>>, seed: u64, seconds: f64) -> PyResult<Twin> {
        if !(seconds.is_finite() && seconds > 0.0) {
            return Err(value("seconds is a number above 0"));
        }
        let all: Vec<_> = reports.iter().map(|r| (r.inner.target.path.clone(), r.inner.clone())).collect();
        drop(reports);
        let twin = py.detach(|| {
            let data = Fitting::of(&all).map_err(|e| e.to_string())?;
            let stop = AtomicBool::new(false);
            fit(&data, Asked { seed, time: Duration::from_secs_f64(seconds), stop: &stop, tell: &mut |_, _| {} }).map_err(|e| e.to_string())
        });
        Ok(Twin { twin: twin.map_err(value)?, seed })
    }

    /// Why what was measured behaves like no card known here; None where it does.
    #[getter]
    fn no_card(&self) -> Option<String> {
        self.twin.no_card.clone()
    }

    /// The model as text; every command of the program takes it as a file.
    #[getter]
    fn model(&self) -> Option<String> {
        self.twin.no_card.is_none().then(|| self.twin.toml())
    }

    /// Everything that was fitted, as a dict.
    fn result(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        crate::reports::object(py, &self.twin)
    }

    /// A card that behaves so.
    fn card(&self) -> PyResult<Card> {
        let text = self.model().ok_or_else(|| value("there is no twin"))?;
        Card::from_toml(&text, self.seed)
    }
}
