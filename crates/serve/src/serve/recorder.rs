//! The trace of a served card, written by a thread of its own, so that no answer waits for the disk.

use super::{Result, ServeError, clock};
use crate::device::Op;
use crate::device::trace::{Format, word};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Where a trace goes, and in which format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFile {
    pub path: PathBuf,
    pub format: Format,
}

impl TraceFile {
    /// The format follows the name: our own columns for `.csv`, `.tsv` and `.trace`, fio's iolog for everything else.
    pub fn named(path: impl Into<PathBuf>) -> TraceFile {
        let path = path.into();
        let columns = path.extension().is_some_and(|e| e == "csv" || e == "tsv" || e == "trace");
        TraceFile { path, format: if columns { Format::Columns } else { Format::Fio } }
    }
}

/// One request: times in ns of the card's clock, position and length in bytes.
pub struct Line {
    pub start: u64,
    pub took: u64,
    pub op: Op,
    pub at: u64,
    pub len: u64,
}

/// Writes lines as they come.
pub struct Recorder {
    /// ns of CLOCK_MONOTONIC at which the trace's time is 0.
    pub origin: u64,
    lines: Option<Sender<Line>>,
    file: Option<(File, Format)>,
    path: PathBuf,
    thread: Option<JoinHandle<io::Result<()>>>,
    waiting: Option<Receiver<Line>>,
}

impl Recorder {
    /// Creates the file; nothing is written before [`Recorder::begin`].
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(to: &TraceFile) -> Result<Recorder> {
        let file = File::create(&to.path).map_err(|e| ServeError::system(format!("cannot write the trace {}", to.path.display()), e))?;
        let (lines, waiting) = channel();
        Ok(Recorder {
            origin: clock::now(),
            lines: Some(lines),
            file: Some((file, to.format)),
            path: to.path.clone(),
            thread: None,
            waiting: Some(waiting),
        })
    }

    /// Where lines go.
    pub fn sender(&self) -> Sender<Line> {
        self.lines.clone().unwrap_or_else(|| channel().0)
    }

    /// Starts writing. `name` is the target as fio is to open it.
    pub fn begin(&mut self, name: &str) {
        if let (Some((file, format)), Some(waiting)) = (self.file.take(), self.waiting.take()) {
            let (name, origin) = (name.to_string(), self.origin);
            self.thread = Some(std::thread::spawn(move || record(&mut BufWriter::new(file), format, &name, origin, &waiting)));
        }
    }

    /// Waits until everything is written; whoever holds a sender must be gone by now.
    ///
    /// # Errors
    /// The first error in writing the trace.
    pub fn finish(&mut self) -> Result<()> {
        self.lines = None;
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let done = thread.join().unwrap_or_else(|_| Err(io::Error::other("the writing thread failed")));
        done.map_err(|e| ServeError::system(format!("the trace {} is incomplete", self.path.display()), e))
    }

    /// Where the trace goes.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Writes until the last sender is gone.
fn record(out: &mut impl Write, format: Format, name: &str, origin: u64, lines: &Receiver<Line>) -> io::Result<()> {
    header(out, format, name)?;
    // Collects for a while instead of waiting for each line: waking a thread would cost the sender time.
    loop {
        std::thread::sleep(Duration::from_millis(20));
        loop {
            match lines.try_recv() {
                Ok(l) => line(out, format, name, &l)?,
                Err(std::sync::mpsc::TryRecvError::Empty) => break,
                Err(std::sync::mpsc::TryRecvError::Disconnected) => {
                    if format == Format::Fio {
                        writeln!(out, "{} {name} close", (clock::now() - origin) / 1000)?;
                    }
                    return out.flush();
                }
            }
        }
        out.flush()?;
    }
}

fn header(out: &mut impl Write, format: Format, name: &str) -> io::Result<()> {
    match format {
        Format::Fio => writeln!(out, "fio version 3 iolog\n0 {name} add\n0 {name} open"),
        Format::Columns => writeln!(out, "# nandscope trace 1\nstart_ns\ttook_ns\top\tat\tlen"),
    }
}

fn line(out: &mut impl Write, format: Format, name: &str, l: &Line) -> io::Result<()> {
    let Line { start, took, op, at, len } = *l;
    let us = start / 1000;
    match (format, op) {
        (Format::Columns, _) => writeln!(out, "{start}\t{took}\t{}\t{at}\t{len}", word(op)),
        (Format::Fio, Op::Read) => writeln!(out, "{us} {name} read {at} {len}"),
        (Format::Fio, Op::Write(_)) => writeln!(out, "{us} {name} write {at} {len}"),
        (Format::Fio, Op::Discard) => writeln!(out, "{us} {name} trim {at} {len}"),
        (Format::Fio, Op::Flush) => writeln!(out, "{us} {name} datasync 0 0"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::trace::Trace;
    use crate::device::{Access, Device, Fill, SimDevice};

    /// A trace of a served card reads like one of a device.
    #[test]
    fn the_same_format_as_a_traced_device() {
        let model = crate::device::Target::card("flashbench-readme", None).unwrap().model;
        let accesses = [
            Access { op: Op::Read, at: 4096, len: 512 },
            Access { op: Op::Write(Fill::Zeros), at: 0, len: 1024 },
            Access { op: Op::Discard, at: 8192, len: 8192 },
            Access { op: Op::Flush, at: 0, len: 0 },
        ];
        for format in [Format::Fio, Format::Columns] {
            let (mut theirs, mut ours) = (Vec::new(), Vec::new());
            let mut device = Trace::begin(SimDevice::new(&model, 1), &mut theirs, format, "/dev/sdx").unwrap();
            header(&mut ours, format, "/dev/sdx").unwrap();
            for a in accesses {
                let t = device.access(a).unwrap();
                line(&mut ours, format, "/dev/sdx", &Line { start: t.start.0, took: t.took.0, op: a.op, at: a.at, len: a.len }).unwrap();
            }
            drop(device);
            assert_eq!(String::from_utf8(ours).unwrap(), String::from_utf8(theirs).unwrap());
        }
    }

    #[test]
    fn the_name_rules_the_format() {
        assert_eq!(TraceFile::named("a/b.csv").format, Format::Columns);
        assert_eq!(TraceFile::named("a/b.iolog").format, Format::Fio);
        assert_eq!(TraceFile::named("csv").format, Format::Fio);
    }
}
