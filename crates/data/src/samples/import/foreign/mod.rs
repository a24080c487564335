//! Results of other benchmarks: fio, f3 (f3probe, f3write, f3read), iozone; and, in files of their own, uFLIP, mfst, sdmon, uSD-FS,
//! agnostics, h2testw, CrystalDiskMark, PiBenchmarks, dd, hdparm. Each becomes figures under stated conditions; what contradicts itself is noted,
//! never repaired.

mod cards;
mod f3;
mod fio;
mod fio_text;
mod iozone;
mod lines;
mod sdmon;
mod shell;
mod uflip;

use crate::samples::metric::Metric;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The programs whose output is read here, for people.
pub const PROGRAMS: &str =
    "fio (JSON, text, latency logs), f3, iozone, dd, hdparm, uFLIP, h2testw, CrystalDiskMark, agnostics, PiBenchmarks, mfst, sdmon, uSD-FS";

/// What one file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Benchmark {
    /// "fio", "f3", "iozone", ...
    pub tool: &'static str,
    /// What the card is called, where the file says.
    pub name: Option<String>,
    /// Registers in hex, by name.
    pub registers: Vec<(String, String)>,
    /// Name and version as printed.
    pub version: Option<String>,
    /// Bytes of the device, where the file tells.
    pub capacity: Option<u64>,
    pub metrics: Vec<Metric>,
    /// What a reader must know.
    pub notes: Vec<String>,
    /// What does not fit together.
    pub flags: Vec<String>,
}

/// `None` where the text is none of these; an error where it is, and cannot be used. `name` is that of the file.
pub fn read(name: &str, text: &str) -> Option<Result<Benchmark, String>> {
    let mut found = one_of(name, text)?;
    if let Ok(b) = &mut found {
        passes(&mut b.metrics);
    }
    Some(found)
}

/// What was measured several times under the same conditions are passes of one figure.
fn passes(all: &mut Vec<Metric>) {
    let mut out: Vec<Metric> = vec![];
    let mut places = HashMap::new();
    for m in all.drain(..) {
        match places.entry((m.name.clone(), m.conditions.clone(), m.unit.clone())) {
            Entry::Vacant(v) => {
                v.insert(out.len());
                out.push(m);
            }
            Entry::Occupied(o) => {
                let old = &mut out[*o.get()];
                let values = |m: &Metric| if m.passes.is_empty() { vec![m.value] } else { m.passes.clone() };
                let both = [values(old), values(&m)].concat();
                *old = Metric::new(&m.name, m.conditions, &m.unit, &both).over(old.over);
            }
        }
    }
    *all = out;
}

fn one_of(name: &str, text: &str) -> Option<Result<Benchmark, String>> {
    if let Some(found) = cards::read(text) {
        return Some(found);
    }
    if text.trim_start().starts_with('{') || text.contains("\"fio version\"") {
        if !text.contains("\"fio version\"") {
            return None;
        }
        // fio may print warnings before its JSON, and a console colours and time stamps between the lines.
        let json = |text: &str| Some(fio::read(&text[text.find('{')?..]));
        let plain = || super::clean::lines(text.as_bytes()).into_iter().map(|l| l.text + "\n").collect::<String>();
        return json(text).map(|found| found.or_else(|why| json(&plain()).and_then(Result::ok).ok_or(why)));
    }
    if text.contains("Announced size:")
        || text.contains("Validating file")
        || text.contains("verage writing speed:")
        || text.contains("verage Writing speed:")
        || text.contains("Data OK:") && text.contains("Data LOST:")
    {
        return Some(f3::read(text));
    }
    if text.lines().any(|l| l.contains("reclen") && l.contains("rewrite")) {
        return Some(iozone::read(text));
    }
    if uflip::is_result(text) {
        return Some(uflip::read(text));
    }
    if fio_text::is_text(text) {
        return Some(fio_text::text(text));
    }
    if fio_text::is_log(text) {
        return Some(fio_text::log(name, text));
    }
    lines::read(text).or_else(|| shell::read(text))
}

/// Whether fio reads and writes at the same time by this word of `rw=`.
fn is_mixed(pattern: &str) -> bool {
    ["rw", "readwrite", "randrw"].contains(&pattern.split(':').next().unwrap_or(""))
}

/// "random reads a second (mixed)" of "random read (mixed)".
fn a_second(what: &str) -> String {
    match what.strip_suffix(" (mixed)") {
        Some(plain) => format!("{plain}s a second (mixed)"),
        None => format!("{what}s a second"),
    }
}

/// Several jobs of fio load a card as one of a greater depth does, so that they are a condition.
fn jobs_text(jobs: Option<u32>, together: bool) -> String {
    match jobs {
        Some(n) if n > 1 && together => format!(", {n} jobs"),
        Some(n) if n > 1 => format!(", one of {n} jobs"),
        _ => String::new(),
    }
}

/// What came back wrong. Sectors with the data of other sectors are the sign of a card that begins anew where its flash ends.
fn lost(all: &str, others: Option<String>) -> String {
    match others {
        Some(o) => format!(
            "counterfeit or damaged: {o} of the data that were written came back as other data, the sign of a wraparound, {all} are lost"
        ),
        None => format!("{all} of the data that were written did not come back"),
    }
}

/// The figure of this name whose conditions begin so.
#[cfg(test)]
fn value(b: &Benchmark, name: &str, conditions: &str) -> f64 {
    b.metrics.iter().find(|m| m.name == name && m.conditions.starts_with(conditions)).unwrap_or_else(|| panic!("{b:#?}")).value
}
