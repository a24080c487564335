//! Results of other benchmarks, a file for each program or for those that print alike. Each becomes figures under stated conditions; what
//! contradicts itself is noted, never repaired.

mod cards;
mod crystal;
mod f3;
mod fio;
mod fio_text;
mod h2testw;
mod iozone;
mod lines;
mod sdmon;
mod shell;
mod titles;
mod uflip;

use super::{clean, command};
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
    /// What is of which thing: from which figure and which flag on.
    origins: Vec<([usize; 2], Origin)>,
}

/// What figures are of, where a file has them of several things: what a heading names; the device, drive or file that the program was
/// pointed at; its job.
type Origin = [Option<String>; 3];

impl Benchmark {
    /// What is added from here on is of this.
    fn of(&mut self, origin: Origin) {
        self.origins.push(([self.metrics.len(), self.flags.len()], origin));
    }

    /// Takes over what another reading found.
    fn take(&mut self, o: Benchmark) {
        let (metrics, flags) = (self.metrics.len(), self.flags.len());
        self.origins.extend(o.origins.into_iter().map(|([m, f], origin)| ([m + metrics, f + flags], origin)));
        self.metrics.extend(o.metrics);
        self.flags.extend(o.flags);
    }
}

/// `None` where the text is none of these; an error where it is, and cannot be used. `name` is that of the file.
pub fn read(name: &str, text: &str) -> Option<Result<Benchmark, String>> {
    let (mut good, mut bad) = (vec![], vec![]);
    for found in all_of(name, text) {
        match found {
            Ok(mut b) => {
                tell_apart(&mut b);
                passes(&mut b.metrics);
                good.push(b);
            }
            Err(why) => bad.push(why),
        }
    }
    if good.is_empty() {
        return bad.into_iter().next().map(Err);
    }
    let mut all = together(good);
    all.notes.extend(bad.into_iter().map(|why| format!("left out: {why}")));
    Some(Ok(all))
}

/// What several programs printed into one file; figures of two are never passes of one.
fn together(mut found: Vec<Benchmark>) -> Benchmark {
    if found.len() == 1 {
        return found.remove(0);
    }
    let version = |b: &Benchmark| b.version.clone().unwrap_or_else(|| b.tool.into());
    let versions = found.iter().map(version).collect::<Vec<_>>().join(", ");
    let mut all = Benchmark { tool: "several programs", version: Some(versions), ..Benchmark::default() };
    for mut b in found {
        all.name = all.name.or(b.name.take());
        all.capacity = all.capacity.or(b.capacity);
        all.registers.append(&mut b.registers);
        all.notes.append(&mut b.notes);
        all.take(b);
    }
    all
}

/// Where the same was measured on several things, each figure says on which: these are no passes of one.
fn tell_apart(b: &mut Benchmark) {
    let marks = std::mem::take(&mut b.origins);
    let none = Origin::default();
    let of = |i: usize, kind: usize| marks[..marks.partition_point(|m| m.0[kind] <= i)].last().map_or(&none, |m| &m.1);
    let mut first: HashMap<[&str; 3], &Origin> = HashMap::new();
    let mut differs = [false; 3];
    for (i, m) in b.metrics.iter().enumerate() {
        let known = first.entry([&m.name, &m.conditions, &m.unit]).or_insert(of(i, 0));
        (0..3).for_each(|part| differs[part] |= known[part] != of(i, 0)[part]);
    }
    let label = |o: &Origin| o.iter().zip(differs).filter(|x| x.1).filter_map(|x| x.0.clone()).collect::<Vec<_>>().join(", ");
    let mut all: Vec<String> = vec![];
    for (i, m) in b.metrics.iter_mut().enumerate() {
        let of = label(of(i, 0));
        if !of.is_empty() {
            m.conditions = [&m.conditions, &of].into_iter().filter(|c| !c.is_empty()).cloned().collect::<Vec<_>>().join(", ");
            all.push(of);
        }
    }
    for (i, flag) in b.flags.iter_mut().enumerate() {
        let of = label(of(i, 1));
        *flag = if of.is_empty() { std::mem::take(flag) } else { format!("{flag} ({of})") };
    }
    all.sort_unstable();
    all.dedup();
    if all.len() > 1 {
        let more = if all.len() > SHOWN { format!(" and {} more", all.len() - SHOWN) } else { String::new() };
        b.notes.push(format!(
            "the figures are of {} different things, and each is kept apart: {}{more}",
            all.len(),
            all[..all.len().min(SHOWN)].join("; ")
        ));
    }
}

/// Things that a note names at most.
const SHOWN: usize = 6;

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
                // Of what a card holds, or gave back, the least counts.
                if old.unit == "MiB" {
                    old.value = old.value.min(m.value);
                    continue;
                }
                let both = [values(old), values(&m)].concat();
                *old = Metric::new(&m.name, m.conditions, &m.unit, &both).over(old.over);
            }
        }
    }
    *all = out;
}

fn values(m: &Metric) -> Vec<f64> {
    if m.passes.is_empty() { vec![m.value] } else { m.passes.clone() }
}

/// What each program printed.
fn all_of(name: &str, text: &str) -> Vec<Result<Benchmark, String>> {
    if let Some(found) = whole_file(name, text) {
        return vec![found];
    }
    let (start, end) = (text.trim_start(), text.trim_end());
    let fio = text.contains("\"fio version\"");
    if start.starts_with('{') && !fio {
        return vec![];
    }
    let lines = clean::lines_and_header(text.as_bytes());
    let lines: Vec<&str> = lines.iter().map(|l| l.text.as_str()).collect();
    let plain = lines.join("\n");
    if let Some(found) = whole_file(name, &plain) {
        return vec![found];
    }
    let mut all = vec![];
    if fio {
        // A console colours and time stamps between the lines.
        all.push(fio::read(text).or_else(|why| fio::read(&plain).map_err(|_| why)));
        if start.starts_with('{') && end.ends_with('}') {
            return all;
        }
    }
    let overwritten = shell::overwritten(text);
    let dd = |lines: &[&str]| shell::dd(lines, overwritten);
    let readers: [&Reader; 8] =
        [&f3::read, &iozone::read, &fio_text::read, &h2testw::read, &crystal::read, &lines::read, &dd, &shell::hdparm];
    all.extend(readers.into_iter().filter_map(|one| under_titles(&lines, one)));
    all.extend(lines::table(text));
    all
}

/// What fills a file alone.
fn whole_file(name: &str, text: &str) -> Option<Result<Benchmark, String>> {
    if let Some(found) = cards::read(text) {
        return Some(found);
    }
    if uflip::is_result(text) {
        return Some(uflip::read(text));
    }
    fio_text::is_log(text).then(|| fio_text::log(name, text))
}

/// Reads what one program printed, where the lines hold some of it.
type Reader<'a> = dyn Fn(&[&str]) -> Option<Result<Benchmark, String>> + 'a;

/// A reading of all lines, in which headings say what the figures are of. Headings within what a program printed part nothing: where
/// the parts do not hold what the whole does, it counts.
fn under_titles(lines: &[&str], one: &Reader) -> Option<Result<Benchmark, String>> {
    let whole = match one(lines)? {
        Ok(b) => b,
        why => return Some(why),
    };
    let mut apart = Benchmark { metrics: vec![], flags: vec![], origins: vec![], ..whole.clone() };
    for (title, lines) in titles::parts(lines) {
        let Some(Ok(mut part)) = one(lines) else { continue };
        part.origins.insert(0, Default::default());
        part.origins.iter_mut().for_each(|o| o.1[0].clone_from(&title));
        apart.take(part);
    }
    Some(Ok(if said(&whole) == said(&apart) { apart } else { whole }))
}

/// All figures and flags in one order, whatever order they were read in.
fn said(b: &Benchmark) -> Vec<(&str, &str, u64)> {
    let figures = b.metrics.iter().flat_map(|m| values(m).into_iter().map(|v| (m.name.as_str(), m.conditions.as_str(), v.to_bits())));
    let mut all: Vec<_> = figures.chain(b.flags.iter().map(|f| (f.as_str(), "", 0))).collect();
    all.sort_unstable();
    all
}

/// Lines by run: one that begins another ends the run before it, once that has a result.
fn runs<'a, 'b>(lines: &'b [&'a str], begins: impl Fn(&str) -> bool, result: impl Fn(&str) -> bool) -> Vec<&'b [&'a str]> {
    let (mut out, mut from, mut done) = (vec![], 0, false);
    for (i, line) in lines.iter().enumerate() {
        if done && begins(line) {
            out.push(&lines[from..i]);
            (from, done) = (i, false);
        }
        done = done || result(line);
    }
    out.push(&lines[from..]);
    out
}

/// The words of a command, from the name of its program to where another command begins.
fn words_of(line: &str, program: &str) -> Option<Vec<String>> {
    // Most lines hold none, and this is asked of each.
    if !line.contains(program) {
        return None;
    }
    let words = command::split(line);
    let at = words.iter().position(|w| w.rsplit(['/', '#', '$', ':', '(']).next() == Some(program))?;
    let ends = |w: &String| [";", "&&", "||", "|", "&"].contains(&w.as_str()) || w.contains('>');
    Some(words.into_iter().skip(at).take_while(|w| !ends(w)).collect())
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
