//! One list of a model's keys serves three ends: reading a file, writing one, and the table in the documentation.

use crate::units::{parse_rate, parse_size, parse_time, show_rate, show_size, show_time};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// A model file that cannot be used: which file, which key, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {key}: {reason}")]
pub struct ModelError {
    /// The file, as given by the caller.
    pub file: String,
    /// The key with its table, as in `nand.page`; `TOML` where the file cannot be read at all.
    pub key: String,
    /// What is wrong and what is allowed.
    pub reason: String,
}

/// An enumeration written as a word.
pub trait Choice: Copy + PartialEq + 'static {
    /// Every value with its word.
    const ALL: &'static [(Self, &'static str)];

    /// The word of a value.
    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(v, _)| *v == self).map_or("?", |(_, w)| w)
    }
}

/// Whether a key may be left out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The file must have it.
    Must,
    /// The default of the structure holds.
    May,
}

pub(crate) enum Mode {
    Read(toml::Table),
    Write(String),
    Doc(String),
}

/// How a value of a kind is written.
fn written_as(kind: &str) -> &'static str {
    match kind {
        "size" => "; write for example \"64 KiB\"",
        "time" => "; write for example \"1.2 ms\"",
        "number" => "; whole numbers from 0 on are",
        _ => "",
    }
}

const MISSING: &str = "is missing";

/// Walks over the keys of a model.
pub struct Form {
    pub(crate) mode: Mode,
    file: String,
    path: String,
    seen: BTreeSet<String>,
    pub(crate) error: Option<ModelError>,
}

impl Form {
    pub(crate) fn new(mode: Mode, file: &str) -> Form {
        Form { mode, file: file.to_string(), path: String::new(), seen: BTreeSet::new(), error: None }
    }

    pub(crate) fn fail(&mut self, key: &str, reason: String) {
        let key = if self.path.is_empty() { key.to_string() } else { format!("{}.{key}", self.path) };
        let file = self.file.clone();
        self.error.get_or_insert(ModelError { file, key, reason });
    }

    fn take(&mut self, key: &str, need: Need) -> Option<toml::Value> {
        self.seen.insert(key.to_string());
        let found = match &self.mode {
            Mode::Read(table) => table.get(key).cloned(),
            _ => return None,
        };
        if found.is_none() && need == Need::Must {
            self.fail(key, MISSING.into());
        }
        found
    }

    fn put(&mut self, key: &str, kind: &str, value: String, need: Need, skip: bool, about: &str) {
        let skip = skip && need == Need::May;
        match &mut self.mode {
            Mode::Write(out) if !skip => out.push_str(&format!("{key} = {value}\n")),
            Mode::Doc(out) => {
                let default = if need == Need::May { value.trim_matches('"') } else { "required" };
                out.push_str(&format!("| `{}{key}` | {kind} | {default} | {about} |\n", prefix(&self.path)));
            }
            _ => {}
        }
    }

    /// A whole number with a unit. `parse` reads text; a bare integer is taken in the base unit.
    #[allow(clippy::too_many_arguments)]
    fn number(
        &mut self,
        key: &str,
        need: Need,
        v: &mut u64,
        range: RangeInclusive<u64>,
        about: &str,
        kind: &str,
        parse: Option<fn(&str) -> Option<u64>>,
        show: fn(u64) -> String,
    ) {
        if let Some(value) = self.take(key, need) {
            let read = match (&value, parse) {
                (toml::Value::Integer(i), _) => u64::try_from(*i).ok(),
                (toml::Value::String(s), Some(parse)) => parse(s),
                _ => None,
            };
            match read {
                None => self.fail(key, format!("{value} is not a {kind}{}", written_as(kind))),
                Some(x) if !range.contains(&x) => {
                    self.fail(key, format!("{} lies outside {} to {}", show(x), show(*range.start()), show(*range.end())));
                }
                Some(x) => *v = x,
            }
        }
        let text = show(*v);
        let text = if parse.is_some() { format!("\"{text}\"") } else { text };
        self.put(key, kind, text, need, *v == 0, about);
    }

    /// Bytes.
    pub fn size(&mut self, key: &str, need: Need, v: &mut u64, range: RangeInclusive<u64>, about: &str) {
        self.number(key, need, v, range, about, "size", Some(parse_size), show_size);
    }

    /// Nanoseconds.
    pub fn time(&mut self, key: &str, need: Need, v: &mut u64, range: RangeInclusive<u64>, about: &str) {
        self.number(key, need, v, range, about, "time", Some(parse_time), show_time);
    }

    /// Bytes a second; 0 = no limit.
    pub fn rate(&mut self, key: &str, need: Need, v: &mut u64, range: RangeInclusive<u64>, about: &str) {
        self.number(key, need, v, range, about, "rate", Some(parse_rate), show_rate);
    }

    /// A bare number.
    pub fn count(&mut self, key: &str, need: Need, v: &mut u64, range: RangeInclusive<u64>, about: &str) {
        self.number(key, need, v, range, about, "number", None, |x| x.to_string());
    }

    /// A number with a fraction.
    pub fn ratio(&mut self, key: &str, need: Need, v: &mut f64, range: RangeInclusive<f64>, about: &str) {
        if let Some(value) = self.take(key, need) {
            match value.as_float().or_else(|| value.as_integer().map(|i| i as f64)) {
                None => self.fail(key, format!("{value} is not a number")),
                Some(x) if !range.contains(&x) => self.fail(key, format!("{x} lies outside {} to {}", range.start(), range.end())),
                Some(x) => *v = x,
            }
        }
        let text = format!("{v:?}");
        self.put(key, "ratio", text, need, *v == 0.0, about);
    }

    /// true or false; false when left out.
    pub fn flag(&mut self, key: &str, v: &mut bool, about: &str) {
        if let Some(value) = self.take(key, Need::May) {
            match value.as_bool() {
                None => self.fail(key, format!("{value} is not true or false")),
                Some(x) => *v = x,
            }
        }
        let text = v.to_string();
        self.put(key, "flag", text, Need::May, !*v, about);
    }

    /// Free text.
    pub fn text(&mut self, key: &str, need: Need, v: &mut String, about: &str) {
        if let Some(value) = self.take(key, need) {
            match value.as_str() {
                None => self.fail(key, format!("{value} is not a text")),
                Some(x) => *v = x.to_string(),
            }
        }
        let text = toml::Value::String(v.clone()).to_string();
        self.put(key, "text", text, need, v.is_empty(), about);
    }

    /// One word of several. Left out, the first word holds.
    pub fn choice<C: Choice>(&mut self, key: &str, need: Need, v: &mut C, about: &str) {
        if let Some(value) = self.take(key, need) {
            match value.as_str().and_then(|s| C::ALL.iter().find(|(_, w)| *w == s)) {
                Some((c, _)) => *v = *c,
                None => {
                    let words: Vec<&str> = C::ALL.iter().map(|(_, w)| *w).collect();
                    self.fail(key, format!("{value} is none of {}", words.join(", ")));
                }
            }
        }
        let kind = C::ALL.iter().map(|(_, w)| format!("`{w}`")).collect::<Vec<_>>().join(" ");
        self.put(key, &kind, format!("\"{}\"", v.word()), need, *v == C::ALL[0].0, about);
    }

    /// A table of further keys.
    pub fn table(&mut self, key: &str, need: Need, keys: impl FnOnce(&mut Form)) {
        let value = self.take(key, need);
        let mut inner = match &mut self.mode {
            Mode::Read(_) => match value {
                None if need == Need::Must => return,
                None => Form::new(Mode::Read(toml::Table::new()), &self.file),
                Some(toml::Value::Table(t)) => Form::new(Mode::Read(t), &self.file),
                Some(_) => return self.fail(key, "is not a table".into()),
            },
            Mode::Write(_) => Form::new(Mode::Write(String::new()), &self.file),
            Mode::Doc(_) => Form::new(Mode::Doc(String::new()), &self.file),
        };
        inner.path = format!("{}{key}", prefix(&self.path));
        keys(&mut inner);
        let path = inner.path.clone();
        self.absorb(inner, &format!("\n[{path}]\n"));
    }

    /// An array of tables.
    pub fn list<T: Default>(&mut self, key: &str, v: &mut Vec<T>, keys: impl Fn(&mut T, &mut Form)) {
        let value = self.take(key, Need::May);
        let items = match (&self.mode, value) {
            (Mode::Read(_), None) => return,
            (Mode::Read(_), Some(toml::Value::Array(a))) => a,
            (Mode::Read(_), Some(_)) => return self.fail(key, format!("is not a list; write [[{key}]]")),
            (Mode::Doc(_), _) => {
                let mut inner = Form::new(Mode::Doc(String::new()), &self.file);
                inner.path = format!("{}{key}[]", prefix(&self.path));
                keys(&mut T::default(), &mut inner);
                return self.absorb(inner, "");
            }
            (Mode::Write(_), _) => {
                for item in v {
                    let mut inner = Form::new(Mode::Write(String::new()), &self.file);
                    keys(item, &mut inner);
                    self.absorb(inner, &format!("\n[[{}{key}]]\n", prefix(&self.path)));
                }
                return;
            }
        };
        for (i, item) in items.into_iter().enumerate() {
            let toml::Value::Table(t) = item else { return self.fail(key, "is not a list of tables".into()) };
            let mut inner = Form::new(Mode::Read(t), &self.file);
            inner.path = format!("{}{key}[{i}]", prefix(&self.path));
            let mut one = T::default();
            keys(&mut one, &mut inner);
            v.push(one);
            self.absorb(inner, "");
        }
    }

    fn absorb(&mut self, mut inner: Form, header: &str) {
        inner.finish();
        if let Some(e) = inner.error {
            self.error.get_or_insert(e);
        }
        match (&mut self.mode, inner.mode) {
            (Mode::Write(out), Mode::Write(text)) if !text.is_empty() => {
                out.push_str(header);
                out.push_str(&text);
            }
            (Mode::Doc(out), Mode::Doc(text)) => out.push_str(&text),
            _ => {}
        }
    }

    /// Complains about keys nobody asked for: a misspelt key must not pass for a default.
    pub(crate) fn finish(&mut self) {
        if let Mode::Read(table) = &self.mode
            && let Some(key) = table.keys().find(|k| !self.seen.contains(*k)).cloned()
        {
            let known = self.seen.iter().cloned().collect::<Vec<_>>().join(", ");
            // What is missing is often there under another name.
            match self.error.as_mut().filter(|e| e.reason == MISSING) {
                Some(e) => e.reason = format!("{MISSING}; `{}{key}` is there, which is not a key", prefix(&self.path)),
                None => self.fail(&key, format!("is not a key here; known are {known}")),
            }
        }
    }
}

fn prefix(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{path}.") }
}
