//! Probes, inference, and what they find, as objects.

use crate::{os, value};
use nandscope_data::finding::{Finding as Found, Findings, Quantity};
use nandscope_data::samples::import;
use nandscope_device::device::{self, Consent, Device, Limits, Op, OpenOptions};
use nandscope_device::units::{Bytes, parse_duration};
use nandscope_infer::infer::tables;
use nandscope_infer::saved::{self, Cost, SCHEMA, Settings, Tool};
use nandscope_measure::experiment;
use nandscope_measure::probe::{Plan, probe as measured};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// A value as Python has it: dicts, lists, numbers.
pub fn object(py: Python<'_>, v: &impl serde::Serialize) -> PyResult<Py<PyAny>> {
    let text = serde_json::to_string(v).map_err(value)?;
    Ok(py.import("json")?.call_method1("loads", (text,))?.unbind())
}

/// One quantity, decided or not.
#[pyclass(module = "nandscope", frozen)]
#[derive(Clone)]
pub struct Finding {
    inner: Found,
}

#[pymethods]
impl Finding {
    /// Its name, as in JSON: "erase_block".
    #[getter]
    fn quantity(&self) -> &'static str {
        self.inner.quantity.key()
    }

    /// In the unit of the JSON; None where it is undecided.
    #[getter]
    fn value(&self) -> Option<f64> {
        self.inner.number()
    }

    /// A lower bound, where only that is known.
    #[getter]
    fn at_least(&self) -> Option<f64> {
        self.inner.at_least.map(|n| n.0)
    }

    /// Share of answers with such a score that were right on simulated cards, 0 to 1.
    #[getter]
    fn confidence(&self) -> f64 {
        self.inner.confidence
    }

    /// Its ends, where the value has an interval.
    #[getter]
    fn interval(&self) -> Option<(f64, f64)> {
        self.inner.interval.map(|i| (i[0], i[1]))
    }

    /// Why it is undecided, or what the value rests on.
    #[getter]
    fn reason(&self) -> Option<String> {
        self.inner.reason.clone()
    }

    /// For people: "4 MiB".
    #[getter]
    fn shown(&self) -> Option<String> {
        self.inner.number().map(|v| self.inner.quantity.show(v))
    }

    fn __repr__(&self) -> String {
        match self.shown() {
            Some(v) => format!("<nandscope.Finding {}: {v}, {:.0} %>", self.quantity(), 100.0 * self.inner.confidence),
            None => format!("<nandscope.Finding {}: undecided>", self.quantity()),
        }
    }
}

/// What a probe found, with all that it measured.
#[pyclass(module = "nandscope", frozen)]
pub struct Report {
    pub inner: saved::Report,
}

#[pymethods]
impl Report {
    /// From a file that --json of `nandscope probe` wrote.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Report> {
        py.detach(|| saved::Report::load(&path)).map(|inner| Report { inner }).map_err(os)
    }

    /// From its text.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Report> {
        saved::Report::parse(text, "the report").map(|inner| Report { inner }).map_err(value)
    }

    /// Its text, as --json writes it.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.inner).map_err(value)
    }

    /// Writes it to a file, whole or not at all.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        saved::put(&path, &(self.to_json()? + "\n")).map_err(|e| os(format!("{}: {e}", path.display())))
    }

    /// Path or name of the target.
    #[getter]
    fn target(&self) -> &str {
        &self.inner.target.path
    }

    /// Everything that was looked for.
    #[getter]
    fn findings(&self) -> Vec<Finding> {
        self.inner.findings.0.iter().map(|f| Finding { inner: f.clone() }).collect()
    }

    /// One quantity by its name; None where it was not looked for.
    fn finding(&self, quantity: &str) -> PyResult<Option<Finding>> {
        named(&self.inner.findings, quantity)
    }

    /// Whether the card holds less than it reports; None where that was not decided.
    #[getter]
    fn counterfeit(&self) -> Option<bool> {
        self.inner.counterfeit
    }

    /// Accesses, bytes and seconds that it took, as a dict.
    #[getter]
    fn cost(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(py, &self.inner.cost)
    }

    /// Names of the experiments, in their order.
    #[getter]
    fn experiments(&self) -> Vec<String> {
        self.inner.runs.iter().map(|r| r.experiment.clone()).collect()
    }

    /// All accesses in columns, as NumPy arrays: run (an index of `experiments`), cell, trial, role, op (0 read, 1 write, 2 discard, 3 flush), at, len in
    /// bytes, start, took in ns.
    fn samples<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = || self.inner.runs.iter().enumerate().flat_map(|(i, r)| r.samples.iter().map(move |s| (i, s)));
        let op = |o: Op| match o {
            Op::Read => 0u8,
            Op::Write(_) => 1,
            Op::Discard => 2,
            Op::Flush => 3,
        };
        let d = PyDict::new(py);
        d.set_item("run", all().map(|(i, _)| i as u32).collect::<Vec<u32>>().into_pyarray(py))?;
        d.set_item("cell", all().map(|(_, s)| s.cell).collect::<Vec<u32>>().into_pyarray(py))?;
        d.set_item("trial", all().map(|(_, s)| s.trial).collect::<Vec<u32>>().into_pyarray(py))?;
        d.set_item("role", all().map(|(_, s)| s.role).collect::<Vec<u8>>().into_pyarray(py))?;
        d.set_item("op", all().map(|(_, s)| op(s.op)).collect::<Vec<u8>>().into_pyarray(py))?;
        d.set_item("at", all().map(|(_, s)| s.at).collect::<Vec<u64>>().into_pyarray(py))?;
        d.set_item("len", all().map(|(_, s)| s.len).collect::<Vec<u64>>().into_pyarray(py))?;
        d.set_item("start", all().map(|(_, s)| s.start.0).collect::<Vec<u64>>().into_pyarray(py))?;
        d.set_item("took", all().map(|(_, s)| s.took.0).collect::<Vec<u64>>().into_pyarray(py))?;
        Ok(d)
    }

    /// The same findings from the samples again, by the rules of this version.
    fn inferred(&self, py: Python<'_>) -> Report {
        let findings: Findings = py.detach(|| saved::Report::infer(&self.inner.runs));
        Report { inner: saved::Report { findings, ..self.inner.clone() } }
    }

    fn __repr__(&self) -> String {
        format!("<nandscope.Report of {}: {} findings>", self.inner.target.path, self.inner.findings.0.len())
    }
}

/// What the logs of other tools say of one card.
#[pyclass(module = "nandscope", frozen)]
pub struct Logs {
    name: Option<String>,
    tests: String,
    findings: Findings,
}

#[pymethods]
impl Logs {
    /// Name of the card, where the logs say it.
    #[getter]
    fn name(&self) -> Option<String> {
        self.name.clone()
    }

    /// The tests that were read, in words.
    #[getter]
    fn tests(&self) -> &str {
        &self.tests
    }

    /// Everything that they let conclude.
    #[getter]
    fn findings(&self) -> Vec<Finding> {
        self.findings.0.iter().map(|f| Finding { inner: f.clone() }).collect()
    }

    /// One quantity by its name; None where the logs say nothing of it.
    fn finding(&self, quantity: &str) -> PyResult<Option<Finding>> {
        named(&self.findings, quantity)
    }
}

fn named(all: &Findings, quantity: &str) -> PyResult<Option<Finding>> {
    let q = Quantity::ALL.into_iter().find(|q| q.key() == quantity).ok_or_else(|| value(format!("there is no quantity '{quantity}'")))?;
    Ok(all.0.iter().find(|f| f.quantity == q).map(|f| Finding { inner: f.clone() }))
}

/// Findings from the logs of other tools, one `Logs` a card. `Report.inferred` does it from samples.
#[pyfunction]
pub fn infer(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Vec<Logs>> {
    py.detach(|| {
        let read = |p: &PathBuf| {
            let bytes = std::fs::read(p).map_err(|e| os(format!("{}: {e}", p.display())))?;
            Ok((p.display().to_string(), bytes))
        };
        let files = paths.iter().map(read).collect::<PyResult<Vec<_>>>()?;
        let cards = import::cards(&files).map_err(value)?;
        let one = |c: import::Card| Logs { name: c.identity.name(), tests: c.tables.summary(), findings: tables::infer(&c.tables) };
        Ok(cards.into_iter().map(one).collect())
    })
}

/// Probes a simulated card ("sim:toshiba-emmc") or a program that behaves like one ("exec:python3 card.py"). A device needs the command line, which
/// asks for consent. The lock is released.
#[pyfunction]
#[pyo3(signature = (target, *, write=true, time="30m", writes="8GiB", seed=1, experiments=None))]
pub fn probe(
    py: Python<'_>,
    target: &str,
    write: bool,
    time: &str,
    writes: &str,
    seed: u64,
    experiments: Option<Vec<String>>,
) -> PyResult<Report> {
    let target = device::target_name(target);
    let time = parse_duration(time).map_err(value)?;
    let writes = writes.parse::<Bytes>().map_err(value)?.0;
    let mut all = match experiments {
        None => experiment::probing(),
        Some(names) => {
            let one = |n: &String| experiment::by_name(n).ok_or_else(|| value(format!("there is no experiment '{n}'")));
            names.iter().map(one).collect::<PyResult<Vec<_>>>()?
        }
    };
    all.retain(|e| write || !e.about().writes);
    py.detach(|| {
        if !device::is_simulated(&target).map_err(|e| e.to_string())? {
            return Err(format!("{target} is a real card: `nandscope probe` asks for consent, and Report.load reads what it wrote"));
        }
        let opened = device::open(&target, &OpenOptions::default()).map_err(|e| e.to_string())?;
        let (host, state, geometry) = (opened.facts().clone(), opened.state(), opened.geometry().clone());
        let region = 0..geometry.size / geometry.sector * geometry.sector;
        let mut guard = if write {
            let consent = Consent::check(opened.id(), None).map_err(|e| e.to_string())?;
            let limits = Limits { region: Some(region.clone()), budget: writes, undo: None };
            opened.writable(&consent, &limits).map_err(|e| e.to_string())?
        } else {
            opened.read_only()
        };
        let stop = AtomicBool::new(false);
        let began = guard.now();
        let plan = Plan { experiments: all, region: region.clone(), time, writes, seed, stop: &stop };
        let (runs, findings) = measured(&mut guard, &plan, &mut |_| {});
        let cost = Cost::of(guard.counters(), (guard.now() - began).secs());
        let unreadable = guard.failures().unreadable().iter().map(|r| [r.start, r.end]).collect();
        Ok(saved::Report {
            schema: SCHEMA.into(),
            tool: Tool { name: "nandscope".into(), version: env!("CARGO_PKG_VERSION").into() },
            when: 0,
            target: guard.id().clone(),
            host,
            state,
            declared: serde_json::Value::Null,
            settings: Settings {
                asked: target.clone(),
                write,
                time,
                budget: if write { writes } else { 0 },
                region: [region.start, region.end],
                seed,
                undo: false,
            },
            counterfeit: None,
            reported_bytes: None,
            real_bytes: None,
            accesses: None,
            findings,
            advice: vec![],
            warnings: vec![],
            unreadable,
            cost,
            runs,
        })
    })
    .map(|inner| Report { inner })
    .map_err(|e: String| os(e))
}
