//! Traces of real requests, read from text or bytes: fio iolog, blkparse, blktrace, ftrace block events, MSR Cambridge CSV,
//! MQSim and DiskSim ASCII, and our own columns. A malformed line is counted and kept with its number; it is never guessed at.

mod events;
mod plain;

use crate::request::Op;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// One request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// ns since the first request of the trace.
    pub time: u64,
    /// What was asked.
    pub op: Op,
    /// First byte.
    pub at: u64,
    /// Bytes; 0 for a flush.
    pub len: u64,
    /// ns it took where it was recorded; 0 = unknown.
    pub took: u64,
}

/// What a trace can look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `fio version 2 iolog`: order without times.
    FioV2,
    /// `fio version 3 iolog`: with times, in microseconds.
    FioV3,
    /// Text of `blkparse`; requests are taken where they are issued (D), or queued (Q) where nothing is issued.
    Blkparse,
    /// Records of `blktrace`, either byte order.
    Blktrace,
    /// `block_rq_issue` and `block_rq_complete` of ftrace or trace-cmd.
    Ftrace,
    /// Timestamp,Hostname,Disk,Type,Offset,Size,ResponseTime in units of 100 ns.
    Msr,
    /// `ns device lba sectors 0|1` (1 = read), 0 = write; a time with a point is DiskSim's, in ms.
    Mqsim,
    /// `start_ns took_ns op at len` parted by tabs, below a line with these names.
    Columns,
}

impl Format {
    /// Every format with the word that names it.
    pub const ALL: [(Format, &str); 8] = [
        (Format::FioV2, "fio2"),
        (Format::FioV3, "fio3"),
        (Format::Blkparse, "blkparse"),
        (Format::Blktrace, "blktrace"),
        (Format::Ftrace, "ftrace"),
        (Format::Msr, "msr"),
        (Format::Mqsim, "mqsim"),
        (Format::Columns, "columns"),
    ];

    /// The word that names it.
    pub fn name(self) -> &'static str {
        Format::ALL.iter().find(|f| f.0 == self).map_or("", |f| f.1)
    }

    /// The format a word names.
    pub fn named(word: &str) -> Option<Format> {
        Format::ALL.iter().find(|f| f.1 == word).map(|f| f.0)
    }
}

/// A line that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Bad {
    /// Number of the line (or record), from 1.
    pub line: u64,
    /// The line, shortened to 120 characters.
    pub text: String,
    /// What is wrong.
    pub reason: &'static str,
}

/// A trace that has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// How it was written.
    pub format: Format,
    /// The requests in order of time.
    pub ios: Vec<Io>,
    /// Whether the trace says when each request came.
    pub timed: bool,
    /// Lines that could not be read, in all.
    pub bad: u64,
    /// The first hundred of them.
    pub shown: Vec<Bad>,
    /// Requests of other devices in the same trace, which were left out.
    pub others: u64,
}

/// Why there is no trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// Nothing in it looks like a known format.
    #[error("not a known trace format (fio iolog 2 or 3, blkparse, blktrace, ftrace, MSR CSV, MQSim ASCII, columns of nandscope)")]
    Unknown,
    /// It was read and held no request.
    #[error("no request in it; {bad} lines could not be read{}", first.as_ref().map_or(String::new(), |b| format!(", the first is line {}: {}: '{}'", b.line, b.reason, b.text.escape_debug())))]
    Empty {
        /// Lines that could not be read.
        bad: u64,
        /// The first of them.
        first: Option<Bad>,
    },
}

/// Finds out how a trace is written from its first lines.
pub fn detect(bytes: &[u8]) -> Option<Format> {
    if bytes.starts_with(&[0x07, 0x74, 0x61, 0x65]) || bytes.starts_with(&[0x65, 0x61, 0x74, 0x07]) {
        return Some(Format::Blktrace);
    }
    for line in bytes.split(|&b| b == b'\n').map(|l| l.trim_ascii()).filter(|l| !l.is_empty()).take(200) {
        if line.starts_with(b"fio version 2 iolog") {
            return Some(Format::FioV2);
        }
        if line.starts_with(b"fio version 3 iolog") {
            return Some(Format::FioV3);
        }
        if line.starts_with(b"# nandscope trace") || line.starts_with(b"start_ns\t") {
            return Some(Format::Columns);
        }
        let has = |what: &[u8]| line.windows(what.len()).any(|w| w == what);
        if has(b"block_rq_issue:") || has(b"block_rq_complete:") || line.starts_with(b"# tracer:") {
            return Some(Format::Ftrace);
        }
        if line.split(|&b| b == b',').count() == 7 && (has(b",Read,") || has(b",Write,")) {
            return Some(Format::Msr);
        }
        let mut words = line.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
        let first = words.next().unwrap_or_default();
        if first.split(|&b| b == b',').count() == 2 && first.iter().all(|b| b.is_ascii_digit() || *b == b',') && words.clone().count() >= 5
        {
            return Some(Format::Blkparse);
        }
        let number = |w: &[u8]| w.iter().all(|b| b.is_ascii_digit() || *b == b'.');
        if number(first) && words.clone().count() == 4 && words.clone().all(number) {
            return Some(Format::Mqsim);
        }
    }
    None
}

/// Reads a trace; `format` None finds it out.
pub fn parse(bytes: &[u8], format: Option<Format>) -> Result<Trace, TraceError> {
    let format = format.or_else(|| detect(bytes)).ok_or(TraceError::Unknown)?;
    let mut sink = Sink::default();
    match format {
        Format::Blktrace => events::blktrace(bytes, &mut sink),
        _ => {
            let mut from = 0;
            for (number, end) in memchr::memchr_iter(b'\n', bytes).chain([bytes.len()]).enumerate() {
                let line = bytes[from..end].trim_ascii();
                from = end + 1;
                if line.is_empty() {
                    continue;
                }
                let read = match format {
                    Format::FioV2 | Format::FioV3 => plain::fio(line, format == Format::FioV3, &mut sink),
                    Format::Blkparse => events::blkparse(line, &mut sink),
                    Format::Ftrace => events::ftrace(line, &mut sink),
                    Format::Msr => plain::msr(line, number == 0, &mut sink),
                    Format::Columns => plain::columns(line, &mut sink),
                    _ => plain::mqsim(line, &mut sink),
                };
                if let Err(reason) = read {
                    sink.bad(number as u64 + 1, line, reason);
                }
            }
        }
    }
    sink.finish(format)
}

/// A hash for places and device numbers, which nobody chooses to annoy us.
#[derive(Default)]
struct Quick(u64);

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u64(u64::from(b)));
    }
    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }
    fn write_isize(&mut self, n: isize) {
        self.write_u64(n as u64);
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 32;
    }
}

/// Collects what the parsers find.
#[derive(Default)]
pub(crate) struct Sink {
    /// Requests with the number of their device.
    ios: Vec<(Io, u32)>,
    /// The same, from events before the issue, taken where nothing was issued.
    queued: Vec<(Io, u32)>,
    devices: HashMap<Vec<u8>, u32>,
    /// The device of the line before: most often it is the same again.
    last: (Vec<u8>, u32),
    /// Completions: device, place, kind, time, and how many requests had been issued before.
    done: Vec<(u32, u64, Op, u64, usize)>,
    /// Time given by waits (fio v2).
    clock: u64,
    bad: u64,
    shown: Vec<Bad>,
}

impl Sink {
    fn bad(&mut self, line: u64, text: &[u8], reason: &'static str) {
        self.bad += 1;
        if self.shown.len() < 100 {
            let text = String::from_utf8_lossy(text).chars().take(120).collect();
            self.shown.push(Bad { line, text, reason });
        }
    }

    fn device(&mut self, name: &[u8]) -> u32 {
        if self.last.0 == name && !self.devices.is_empty() {
            return self.last.1;
        }
        let next = self.devices.len() as u32;
        let n = *self.devices.entry(name.to_vec()).or_insert(next);
        self.last = (name.to_vec(), n);
        n
    }

    fn push(&mut self, io: Io, device: u32) {
        self.ios.push((io, device));
    }

    fn complete(&mut self, device: u32, op: Op, at: u64, time: u64) {
        self.done.push((device, at, op, time, self.ios.len()));
    }

    /// Gives each completion to the request it belongs to.
    fn pair(&mut self) {
        let mut open: HashMap<(u32, u64, Op), usize, BuildHasherDefault<Quick>> = HashMap::default();
        let mut next = 0;
        for (device, at, op, time, issued) in std::mem::take(&mut self.done) {
            for (i, (io, d)) in self.ios.iter().enumerate().take(issued).skip(next) {
                open.insert((*d, io.at, io.op), i);
            }
            next = issued;
            if let Some(i) = open.remove(&(device, at, op)) {
                let io = &mut self.ios[i].0;
                io.took = time.saturating_sub(io.time);
            }
        }
    }

    fn finish(mut self, format: Format) -> Result<Trace, TraceError> {
        self.pair();
        if self.ios.is_empty() {
            self.ios = std::mem::take(&mut self.queued);
        }
        let mut per_device = vec![0u64; self.devices.len().max(1)];
        self.ios.iter().for_each(|(_, d)| per_device[*d as usize] += 1);
        let most = (0..per_device.len()).max_by_key(|&d| (per_device[d], std::cmp::Reverse(d))).unwrap_or(0) as u32;
        let all = self.ios.len();
        let mut ios: Vec<Io> = self.ios.into_iter().filter(|(_, d)| *d == most).map(|(io, _)| io).collect();
        if ios.is_empty() {
            return Err(TraceError::Empty { bad: self.bad, first: self.shown.into_iter().next() });
        }
        // Stamps of several processors may run backwards.
        ios.sort_by_key(|io| io.time);
        let first = ios[0].time;
        ios.iter_mut().for_each(|io| io.time -= first);
        let others = (all - ios.len()) as u64;
        Ok(Trace { format, ios, timed: format != Format::FioV2, bad: self.bad, shown: self.shown, others })
    }
}

/// A whole number, all of the word.
pub(crate) fn number(word: &[u8]) -> Option<u64> {
    // 19 digits always fit.
    let (fits, rest) = word.split_at(word.len().min(19));
    let mut wrong = word.is_empty();
    let sum = fits.iter().fold(0u64, |n, &b| {
        wrong |= !b.is_ascii_digit();
        n.wrapping_mul(10).wrapping_add(u64::from(b.wrapping_sub(b'0')))
    });
    if wrong {
        return None;
    }
    rest.iter().try_fold(sum, |n, &b| if b.is_ascii_digit() { n.checked_mul(10)?.checked_add(u64::from(b - b'0')) } else { None })
}

/// Seconds with up to nine digits behind the point, in ns.
pub(crate) fn seconds(word: &[u8]) -> Option<u64> {
    scaled(word, 9)
}

/// A number with a fraction, times 10^`digits`; further digits are cut.
pub(crate) fn scaled(word: &[u8], digits: usize) -> Option<u64> {
    let tens = |n: usize| 10u64.pow(n as u32);
    let Some(point) = word.iter().position(|&b| b == b'.') else {
        return number(word)?.checked_mul(tens(digits));
    };
    let (whole, fraction) = (number(&word[..point])?, &word[point + 1..]);
    let kept = fraction.len().min(digits);
    if !fraction[kept..].iter().all(u8::is_ascii_digit) {
        return None;
    }
    let part = number(&fraction[..kept])? * tens(digits - kept);
    whole.checked_mul(tens(digits))?.checked_add(part)
}

/// The words of a line.
pub(crate) fn words(line: &[u8]) -> Words<'_> {
    Words(line)
}

/// Iterates over the words of a line.
pub(crate) struct Words<'a>(&'a [u8]);

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let blank = |b: &u8| *b == b' ' || *b == b'\t';
        let start = self.0.iter().position(|b| !blank(b))?;
        let rest = &self.0[start..];
        let (word, rest) = rest.split_at(rest.iter().position(blank).unwrap_or(rest.len()));
        self.0 = rest;
        Some(word)
    }
}
