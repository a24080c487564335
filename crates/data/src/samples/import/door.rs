//! The one door for files that somebody gives: bytes become what they hold. Every command that reads results comes through here, so
//! that what one of them understands all of them do.
//!
//! A new format of another program is a file in `foreign/` that fills a [`Benchmark`], two lines and a name in `foreign/mod.rs`, and a row
//! in FORMATS.md.

use super::foreign::{self, Benchmark};
use super::{Card, ImportError, clean, given, reader};
use crate::samples::busy::Trace;
use crate::samples::firmware::{self, Log};
use serde_json::Value;

/// What a file holds.
#[derive(Debug)]
pub enum File {
    /// A result that this program or one like it wrote: its schema, and all of it.
    Own { schema: String, value: Value },
    /// What a microcontroller printed; `format` is "firmware log" or "busy trace".
    Micro { log: Log, format: &'static str },
    /// Text that other programs printed.
    Text(Text),
}

/// What a text holds; never nothing.
#[derive(Debug, Default)]
pub struct Text {
    /// Tables and registers, by card; for [`super::pool`].
    pub cards: Vec<Card>,
    /// The figures of fio, f3, iozone and the other benchmarks.
    pub figures: Option<Benchmark>,
    /// Rows of a wiki table of cards.
    pub wiki: bool,
}

/// Reads a file. `file` is its number among those that are read together.
///
/// # Errors
/// It holds nothing that is understood, or is damaged; names it.
pub fn open(file: usize, name: &str, bytes: &[u8]) -> Result<File, ImportError> {
    if let Some((kind, with)) = given::packed(bytes) {
        return Err(ImportError::Packed(name.into(), kind, with));
    }
    let bytes = &*given::plain(bytes);
    if bytes.trim_ascii_start().starts_with(b"{\\rtf") {
        return Err(ImportError::Rtf(name.into()));
    }
    let text = String::from_utf8_lossy(bytes);
    if text.trim().is_empty() {
        return Err(ImportError::Empty(name.into()));
    }
    let mut figures = foreign::read(name, &text);
    // A number may have lost its last digits.
    if let Some(Ok(b)) = figures.as_mut().filter(|_| text.ends_with(|c: char| c.is_ascii_digit())) {
        b.notes.push("the file ends in a number and without the end of a line: if it was cut off, its last figure is too small".into());
    }
    if figures.is_none() && text.trim_start().starts_with('{') {
        return own(name, &text);
    }
    if figures.is_none() && firmware::is_log(bytes) {
        let log = firmware::parse(&text);
        return match firmware::refused(&text) {
            Some(why) if log.passes.is_empty() && log.busy.is_empty() => Err(ImportError::Board(name.into(), why)),
            _ => Ok(File::Micro { log, format: "firmware log" }),
        };
    }
    if figures.is_none()
        && let Some(trace) = Trace::parse(&text)
    {
        let notes = if trace.damaged > 0 { vec![format!("{} lines are damaged and were left out", trace.damaged)] } else { vec![] };
        return Ok(File::Micro { log: Log { busy: vec![("none".into(), trace)], notes, ..Log::default() }, format: "busy trace" });
    }
    let (cards, spoken) = reader::read(file, name, &clean::lines(bytes));
    match (figures, is_wiki(&text)) {
        (Some(Err(why)), _) if cards.is_empty() => Err(ImportError::Damaged(name.into(), why)),
        (None, false) if cards.is_empty() => Err(match spoken.name() {
            Some(card) => ImportError::Prose(name.into(), card),
            None => match firmware::refused(&text) {
                Some(why) => ImportError::Board(name.into(), why),
                None => ImportError::Nothing(name.into()),
            },
        }),
        (figures, wiki) => Ok(File::Text(Text { cards, figures: figures.and_then(Result::ok), wiki })),
    }
}

fn own(name: &str, text: &str) -> Result<File, ImportError> {
    let value: Value = serde_json::from_str(text).map_err(|e| {
        let why = if e.is_eof() { format!("it ends too early ({e}), as if cut off") } else { e.to_string() };
        ImportError::Json(name.into(), why)
    })?;
    match value["schema"].as_str() {
        Some(schema) => Ok(File::Own { schema: schema.into(), value }),
        None => Err(ImportError::Json(name.into(), "it has no schema: it is neither of nandscope nor of fio, mfst or uSD-FS".into())),
    }
}

/// Whether a line is a row of a MoinMoin table of four cells at least.
fn is_wiki(text: &str) -> bool {
    let row = |l: &str| l.trim().strip_prefix("||").and_then(|l| l.strip_suffix("||")).is_some_and(|l| l.split("||").count() >= 4);
    text.lines().any(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALIGN: &str =
        "align 4194304\tpre 741µs\ton 1.08ms\tpost 742µs\tdiff 342µs\nalign 2097152\tpre 741µs\ton 1.09ms\tpost 742µs\tdiff 349µs\n";
    const F3: &str = "Average writing speed: 4.90 MB/s\nData OK: 29.71 GB (62301184 sectors)\nData LOST: 0.00 Byte (0 sectors)\nAverage reading speed: 9.42 MB/s\n";

    fn kind(text: &str) -> String {
        match open(0, "f", text.as_bytes()) {
            Ok(File::Own { schema, .. }) => schema,
            Ok(File::Micro { format, .. }) => format.into(),
            Ok(File::Text(t)) => format!("{} {} {}", t.cards.len(), t.figures.map_or("-", |b| b.tool), t.wiki),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn each_file_is_what_it_holds() {
        let busy: String = (0..20).map(|i| format!("3 3 {} 3810\n", 3 + i % 2)).collect();
        let fio = r#"{"fio version":"fio-3.33","jobs":[{"jobname":"w","job options":{"rw":"write","bs":"4k"},"write":{"iops":500.0,"bw_bytes":2048000}}]}"#;
        for (text, is) in [
            (ALIGN, "1 - false"),
            (F3, "0 f3 false"),
            (&format!("{ALIGN}{F3}"), "1 f3 false"),
            (&format!("{ALIGN}|| a || b || c || d ||\n"), "1 - true"),
            ("|| a || b || c || d ||\n", "0 - true"),
            (fio, "0 fio false"),
            (&busy, "busy trace"),
            ("boot\nns:1 host x*00\n", "firmware log"),
            (" \n{\"schema\": \"nandscope-report/1\", \"runs\": []}", "nandscope-report/1"),
            ("{\"schema\": \"nandscope-rep", "ends too early"),
            ("{\"x\": 1}", "has no schema"),
            (&fio[..120], "ends too early"),
            ("{\\rtf1\\ansi\nalign 4194304\\par\n}", "it is RTF, as word processors save it; save it as plain text"),
            ("", "nothing to read in 'f': it is empty"),
            (" \n", "it is empty"),
            ("hello\n", "nothing to read in 'f'"),
        ] {
            assert!(kind(text).contains(is), "{text}: {}", kind(text));
        }
        for (bytes, with) in [
            (&[0x1f, 0x8b, 8, 0][..], "(gzip); unpack it first, with gunzip"),
            (&[0xfd, 0x37, 0x7a, 0x58, 0x5a, 0], "(xz); unpack it first, with unxz"),
            (&[0x28, 0xb5, 0x2f, 0xfd, 4], "(zstd); unpack it first, with unzstd"),
            (b"PK\x03\x04", "(zip); unpack it first, with unzip"),
        ] {
            let why = open(0, "f", bytes).unwrap_err();
            assert!(why.is_nothing() && why.to_string().contains(with), "{why}");
        }
    }
}
