//! Writes down every access that passes, for fio (`--read_iolog`) or in columns of our own.

use super::{Access, Device, Fill, Geometry, Op, Result, Timed};
use crate::units::Nanos;
use std::io::{self, Write};

/// How the trace is written; the formats are in FORMATS.md, "Traces".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// fio's iolog, version 3: time in µs, file, action, offset, length. What the accesses took is not in it.
    Fio,
    /// `start_ns took_ns op at len`, tab-separated.
    Columns,
}

/// A device that traces another one. Lines are written after the timed window; an access that failed leaves none.
pub struct Trace<D: Device, W: Write> {
    inner: D,
    out: W,
    format: Format,
    /// Name of the target in the fio format.
    name: String,
    origin: Nanos,
    /// The first write error; tracing stops there.
    failed: Option<io::Error>,
}

impl<D: Device, W: Write> Trace<D, W> {
    /// Begins a trace with its header. `name` is the target as fio is to open it.
    ///
    /// # Errors
    /// The header cannot be written.
    pub fn begin(inner: D, mut out: W, format: Format, name: &str) -> io::Result<Trace<D, W>> {
        match format {
            Format::Fio => {
                // Blanks separate the fields and fio knows no quoting.
                if name.is_empty() || name.contains(char::is_whitespace) {
                    return Err(io::Error::other(format!("fio cannot name the file '{name}' in an iolog")));
                }
                writeln!(out, "fio version 3 iolog\n0 {name} add\n0 {name} open")?;
            }
            Format::Columns => writeln!(out, "# nandscope trace 1\nstart_ns\ttook_ns\top\tat\tlen")?,
        }
        Ok(Trace { origin: inner.now(), inner, out, format, name: name.into(), failed: None })
    }

    /// Ends the trace and gives the device back.
    ///
    /// # Errors
    /// The first error in writing the trace.
    pub fn finish(mut self) -> io::Result<D> {
        if let Some(e) = self.failed.take() {
            return Err(e);
        }
        if self.format == Format::Fio {
            let at = (self.inner.now() - self.origin).0 / 1000;
            writeln!(self.out, "{at} {} close", self.name)?;
        }
        self.out.flush()?;
        Ok(self.inner)
    }

    fn note(&mut self, a: Access, t: Timed) {
        if self.failed.is_some() {
            return;
        }
        let start = t.start - self.origin;
        let done = match self.format {
            Format::Columns => writeln!(self.out, "{}\t{}\t{}\t{}\t{}", start.0, t.took.0, word(a.op), a.at, a.len),
            Format::Fio => {
                let (us, name) = (start.0 / 1000, &self.name);
                match a.op {
                    Op::Read => writeln!(self.out, "{us} {name} read {} {}", a.at, a.len),
                    Op::Write(_) => writeln!(self.out, "{us} {name} write {} {}", a.at, a.len),
                    Op::Discard => writeln!(self.out, "{us} {name} trim {} {}", a.at, a.len),
                    Op::Flush => writeln!(self.out, "{us} {name} datasync 0 0"),
                }
            }
        };
        self.failed = done.err();
    }
}

/// An operation in one word: "read", "write:zeros", "write:random:7", "discard", "flush".
pub fn word(op: Op) -> String {
    match op {
        Op::Write(Fill::Zeros) => "write:zeros".into(),
        Op::Write(Fill::Ones) => "write:ones".into(),
        Op::Write(Fill::Byte(b)) => format!("write:byte:{b}"),
        Op::Write(Fill::Random(seed)) => format!("write:random:{seed}"),
        Op::Write(Fill::Stamp(seed)) => format!("write:stamp:{seed}"),
        other => other.name().into(),
    }
}

/// The reverse of [`word`]; none for anything else.
pub fn parse_word(text: &str) -> Option<Op> {
    let seed = |s: &str| s.parse().ok();
    match text.split_once(':') {
        None if text == "read" => Some(Op::Read),
        None if text == "discard" => Some(Op::Discard),
        None if text == "flush" => Some(Op::Flush),
        Some(("write", "zeros")) => Some(Op::Write(Fill::Zeros)),
        Some(("write", "ones")) => Some(Op::Write(Fill::Ones)),
        Some(("write", fill)) => match fill.split_once(':')? {
            ("byte", s) => Some(Op::Write(Fill::Byte(s.parse().ok()?))),
            ("random", s) => Some(Op::Write(Fill::Random(seed(s)?))),
            ("stamp", s) => Some(Op::Write(Fill::Stamp(seed(s)?))),
            _ => None,
        },
        _ => None,
    }
}

impl<D: Device, W: Write> Device for Trace<D, W> {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }

    fn access(&mut self, a: Access) -> Result<Timed> {
        let t = self.inner.access(a)?;
        self.note(a, t);
        Ok(t)
    }

    fn batch(&mut self, all: &[Access], depth: u32) -> Result<Vec<Timed>> {
        let times = self.inner.batch(all, depth)?;
        for (&a, &t) in all.iter().zip(&times) {
            self.note(a, t);
        }
        Ok(times)
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn idle(&mut self, d: Nanos) {
        self.inner.idle(d);
    }

    fn load(&mut self, at: u64, into: &mut [u8]) -> Result<()> {
        self.inner.load(at, into)
    }

    fn store(&mut self, at: u64, from: &[u8]) -> Result<()> {
        self.inner.store(at, from)
    }

    fn get(&mut self, at: u64, into: &mut [u8]) -> Result<Timed> {
        let t = self.inner.get(at, into)?;
        self.note(Access { op: Op::Read, at, len: into.len() as u64 }, t);
        Ok(t)
    }

    /// The bytes themselves are not traced: a trace made of puts has their places, lengths and times right, and seed 0.
    fn put(&mut self, at: u64, from: &[u8]) -> Result<Timed> {
        let t = self.inner.put(at, from)?;
        self.note(Access { op: Op::Write(Fill::Random(0)), at, len: from.len() as u64 }, t);
        Ok(t)
    }

    fn puts_back(&self) -> bool {
        self.inner.puts_back()
    }

    /// Traced as asked for: places, lengths and times are right, the bytes may be those that were there.
    fn rewrite(&mut self, a: Access) -> Result<Timed> {
        let t = self.inner.rewrite(a)?;
        self.note(a, t);
        Ok(t)
    }

    fn write_same(&mut self, byte: u8) {
        self.inner.write_same(byte);
    }

    fn write_as(&mut self, how: Option<super::mmc::Multi>) -> Result<()> {
        self.inner.write_as(how)
    }

    fn switch_cache(&mut self, on: bool) -> Result<bool> {
        self.inner.switch_cache(on)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::Fake;
    use super::*;
    use proptest::prelude::*;

    fn run(format: Format) -> String {
        let mut out = Vec::new();
        let mut t = Trace::begin(Fake::new(1 << 20), &mut out, format, "/dev/sdx").unwrap();
        t.access(Access { op: Op::Read, at: 4096, len: 512 }).unwrap();
        t.access(Access { op: Op::Write(Fill::Random(7)), at: 0, len: 1024 }).unwrap();
        assert!(t.access(Access { op: Op::Read, at: 1 << 20, len: 512 }).is_err());
        t.batch(&[Access { op: Op::Discard, at: 8192, len: 8192 }, Access { op: Op::Flush, at: 0, len: 0 }], 2).unwrap();
        t.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn both_formats_to_the_letter() {
        assert_eq!(
            run(Format::Fio),
            "fio version 3 iolog\n0 /dev/sdx add\n0 /dev/sdx open\n0 /dev/sdx read 4096 512\n100 /dev/sdx write 0 1024\n\
             200 /dev/sdx trim 8192 8192\n300 /dev/sdx datasync 0 0\n400 /dev/sdx close\n"
        );
        assert_eq!(
            run(Format::Columns),
            "# nandscope trace 1\nstart_ns\ttook_ns\top\tat\tlen\n0\t100000\tread\t4096\t512\n100000\t100000\twrite:random:7\t0\t1024\n\
             200000\t100000\tdiscard\t8192\t8192\n300000\t100000\tflush\t0\t0\n"
        );
    }

    #[test]
    fn a_full_disk_ends_the_trace_but_not_the_run() {
        let mut small = [0u8; 60];
        let mut t = Trace::begin(Fake::new(1 << 20), &mut small[..], Format::Columns, "x").unwrap();
        for _ in 0..9 {
            t.access(Access { op: Op::Read, at: 0, len: 512 }).unwrap();
        }
        assert!(t.finish().is_err());
    }

    proptest! {
        #[test]
        fn words_read_back(kind in 0..8, seed: u64) {
            let op = [Op::Read, Op::Discard, Op::Flush, Op::Write(Fill::Zeros), Op::Write(Fill::Ones), Op::Write(Fill::Random(seed)),
                Op::Write(Fill::Stamp(seed)), Op::Write(Fill::Byte(seed as u8))][kind as usize];
            prop_assert_eq!(parse_word(&word(op)), Some(op));
        }

        #[test]
        fn any_text_is_a_word_or_none(text in "(write|read|flush)?:?(random|stamp|zeros)?:?[0-9a-z]{0,24}") {
            if let Some(op) = parse_word(&text) {
                prop_assert_eq!(parse_word(&word(op)), Some(op));
            }
        }
    }
}
