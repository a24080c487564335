//! What is printed: folded to the width of the screen, or as it is; a reader that went away is no error.

use super::width;
use crate::report::fold::folded;
use std::io::Write;

/// See [`say!`].
pub(super) fn put(text: std::fmt::Arguments<'_>) {
    as_it_is(&folded(&text.to_string(), width()));
}

/// See [`tell!`].
pub(super) fn to_stderr(text: &str) {
    let terminal = rustix::termios::tcgetwinsize(std::io::stderr()).map(|w| w.ws_col as usize);
    // Where nobody reads any more (a pipe, a terminal that is gone), there still is something to put back.
    let _ = match terminal {
        Ok(width) if width >= 40 => writeln!(std::io::stderr(), "{}", folded(text, width)),
        _ => writeln!(std::io::stderr(), "{text}"),
    };
}

/// Standard output for text that stays as it is; an error names it.
pub(super) fn stdout() -> impl Write {
    Named(std::io::stdout())
}

/// See [`stdout`].
struct Named(std::io::Stdout);

impl Write for Named {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes).map_err(of_stdout)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush().map_err(of_stdout)
    }
}

/// An error of standard output, with its name.
fn of_stdout(e: std::io::Error) -> std::io::Error {
    std::io::Error::new(e.kind(), format!("cannot write to standard output: {e}"))
}

/// Standard output for text that is written piece by piece: the same as [`put!`].
pub(super) fn page() -> impl Write {
    std::io::LineWriter::with_capacity(1 << 16, Folding)
}

/// See [`page`]; gets whole lines.
struct Folding;

impl Write for Folding {
    fn write(&mut self, lines: &[u8]) -> std::io::Result<usize> {
        gone(stdout().write_all(folded(&String::from_utf8_lossy(lines), width()).as_bytes()))?;
        Ok(lines.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        gone(stdout().flush())
    }
}

/// A reader that went away ends no command: what it found is in its exit code all the same.
pub(super) fn gone(written: std::io::Result<()>) -> std::io::Result<()> {
    written.or_else(|e| if e.kind() == std::io::ErrorKind::BrokenPipe { Ok(()) } else { Err(e) })
}

/// What programs read (scripts, tables of other programs, card models), to standard output. What else may be wrong with that than a reader that went
/// away (a full disk) ends the program with an error.
pub(super) fn as_it_is(text: &str) {
    if let Err(e) = gone(std::io::stdout().write_all(text.as_bytes())) {
        tell!("nandscope: cannot write to standard output: {e}");
        std::process::exit(1);
    }
}
