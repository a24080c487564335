//! Arguments that many commands have: each is defined once, so that it has one name, one form and one meaning.

use super::probe::{parse_region, region_of};
use crate::device::{Consent, DeviceError, Geometry, TargetId};
use crate::host::facts::TargetKind;
use crate::report::forms::Form;
use crate::units::{Bytes, Nanos, parse_duration};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The name of the device that may be written.
#[derive(Args, Debug)]
pub struct Named {
    /// Names the device or image to be written: its serial number, or its size in bytes where it has none
    #[arg(long, value_name = "ID")]
    pub consent: Option<String>,
}

impl Named {
    /// Consent to write this target.
    ///
    /// # Errors
    /// `Refused` where it is missing or names another one.
    pub fn check(&self, id: &TargetId) -> Result<Consent, DeviceError> {
        Consent::check(id, self.consent.as_deref())
    }
}

/// Permission to write.
#[derive(Args, Debug)]
pub struct Writing {
    /// Allow writing; a device also needs --consent
    #[arg(long)]
    pub write: bool,
    #[command(flatten)]
    pub named: Named,
    #[command(flatten)]
    pub dry: Dry,
}

/// Permission to write, for commands that write a simulated card unasked.
#[derive(Args, Debug)]
pub struct Allowed {
    #[command(flatten)]
    pub writing: Writing,
    /// Never write (the default on a device; a simulated card is written unless this is given)
    #[arg(long, conflicts_with = "write")]
    pub read_only: bool,
}

impl Allowed {
    /// May this kind of target be written?
    pub fn write(&self, simulated: bool) -> bool {
        self.writing.write || (simulated && !self.read_only)
    }
}

/// What becomes of what was overwritten.
#[derive(Args, Debug)]
pub struct Undoing {
    /// Leave what was written instead of putting the old content back
    #[arg(long)]
    pub no_undo: bool,
}

impl Undoing {
    /// Is it kept, to be put back? Nothing is lost on a simulated card.
    pub fn kept(&self, write: bool, simulated: bool) -> bool {
        write && !simulated && !self.no_undo
    }
}

/// Bytes of a cluster of a FAT volume.
pub fn cluster(s: &str) -> Result<u32, String> {
    let size: Bytes = s.parse()?;
    let fits = |n: &u32| n.is_power_of_two() && (512..=64 << 10).contains(n);
    u32::try_from(size.0).ok().filter(fits).ok_or_else(|| format!("a cluster of {size}; it takes a power of two from 512 B to 64 KiB"))
}

/// Only the plan.
#[derive(Args, Debug)]
pub struct Dry {
    /// Print what would be written and where, and end; needs no --consent
    #[arg(long)]
    pub dry_run: bool,
}

impl Dry {
    /// What was not done, and the consent that doing it needs.
    pub fn done(&self, id: &TargetId) -> std::process::ExitCode {
        match id.kind {
            TargetKind::Simulated => say!("nothing was read or written; without --dry-run it is"),
            _ => say!("nothing was measured or written; writing needs {}", id.consent_option()),
        }
        std::process::ExitCode::SUCCESS
    }

    /// The same where a filesystem of the system is named, and no device.
    pub fn nothing() -> std::process::ExitCode {
        say!("nothing was written; without --dry-run it is");
        std::process::ExitCode::SUCCESS
    }
}

/// A result as JSON, for commands that print something else without it.
#[derive(Args, Debug)]
pub struct Json {
    /// Write JSON to file F (--json=F), or to standard output where F is missing or '-'
    #[arg(long = "json", value_name = "F", num_args = 0..=1, default_missing_value = "-", require_equals = true)]
    to: Option<PathBuf>,
}

impl Json {
    /// Writes it where it is asked for. True where it went to standard output.
    pub fn put(&self, value: &impl serde::Serialize) -> anyhow::Result<bool> {
        super::write_json(self.to.as_deref(), value)
    }

    /// The same with a text: JSON lines, or JSON for people.
    pub fn put_text(&self, text: &str) -> anyhow::Result<bool> {
        self.to.as_deref().map_or(Ok(false), |path| super::write_text(path, text))
    }

    pub fn asked(&self) -> bool {
        self.to.is_some()
    }
}

/// Which samples go into what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Samples {
    /// All: findings can be inferred again
    All,
    /// None: for sharing, in a report of a few kB
    None,
}

/// How long, and with what chance.
#[derive(Args, Debug)]
pub struct Measuring {
    /// Most time for the measurement
    #[arg(long, value_parser = parse_duration)]
    pub time: Option<Nanos>,
    #[command(flatten)]
    pub chance: Chance,
}

impl Measuring {
    /// The time that is allowed, or this many seconds.
    pub fn time_or(&self, seconds: f64) -> Nanos {
        self.time.unwrap_or(Nanos::from_secs_f64(seconds))
    }
}

#[derive(Args, Debug)]
pub struct Chance {
    /// Seed of positions and order
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Part of a target.
#[derive(Args, Debug)]
pub struct Part {
    /// Part of the target to use, as START..END, for example 64MiB..1GiB
    #[arg(long, value_name = "RANGE", value_parser = parse_region)]
    region: Option<(Option<Bytes>, Option<Bytes>)>,
}

impl Part {
    /// Its first byte, and its end where one is given; none where the whole target is meant.
    pub fn asked(&self) -> Option<(u64, Option<u64>)> {
        self.region.map(|(s, e)| (s.map_or(0, |b| b.0), e.map(|b| b.0)))
    }

    /// The part of this target.
    ///
    /// # Errors
    /// It is not part of the target, or not on its grid.
    pub fn of(&self, g: &Geometry) -> Result<Range<u64>, DeviceError> {
        region_of(self.asked(), g)
    }
}

/// Where a result goes for programs, and in which form.
#[derive(Args, Debug)]
pub struct Output {
    /// Write JSON to file F, or to standard output where F is missing or '-'
    #[arg(long, value_name = "F", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// Write the result for another program instead of the text
    #[arg(long, value_name = "FORM", value_parser = form())]
    pub format: Option<Form>,
    /// File that --format writes [default: standard output]
    #[arg(long, short, value_name = "F", requires = "format")]
    pub output: Option<PathBuf>,
}

/// The same, where a word may follow that is no file: `survey show --json ID`.
#[derive(Args, Debug)]
pub struct Written {
    #[command(flatten)]
    json: Json,
    /// Write the result for another program instead of the text
    #[arg(long, value_name = "FORM", value_parser = form())]
    format: Option<Form>,
    /// File that --format writes [default: standard output]
    #[arg(long, short, value_name = "F", requires = "format")]
    output: Option<PathBuf>,
}

impl Written {
    fn output(&self) -> Output {
        Output { json: self.json.to.clone(), format: self.format, output: self.output.clone() }
    }

    /// Standard output belongs to JSON or to another form, so that no text may go there.
    pub fn alone(&self) -> bool {
        self.output().is_stdout()
    }

    /// Writes what is asked for. True where it went to standard output.
    ///
    /// # Errors
    /// A file cannot be written, or both were to go to standard output.
    pub fn put(&self, value: &impl serde::Serialize) -> anyhow::Result<bool> {
        self.output().write(value)
    }
}

/// A result in the form of another program instead of the text, where -o is of something else.
#[derive(Args, Debug)]
pub struct Other {
    /// Write the result to standard output for another program instead of the text
    #[arg(long, value_name = "FORM", value_parser = form())]
    pub format: Option<Form>,
}

fn form() -> impl TypedValueParser<Value = Form> {
    let named = |s: String| Form::ALL.iter().find(|f| f.1 == s).map(|f| f.0).ok_or("no such form");
    PossibleValuesParser::new(Form::ALL.map(|f| f.1)).try_map(named)
}

impl Output {
    /// The file of --format, where that is asked for.
    fn file(&self) -> Option<(Form, &Path)> {
        self.format.map(|f| (f, self.output.as_deref().unwrap_or(Path::new("-"))))
    }

    /// Standard output belongs to JSON or to another form, so that no text may go there.
    pub fn is_stdout(&self) -> bool {
        let dash = |p: &Path| p.as_os_str() == "-";
        self.json.as_deref().is_some_and(dash) || self.file().is_some_and(|f| dash(f.1))
    }

    /// Writes what is asked for. True where it went to standard output.
    ///
    /// # Errors
    /// A file cannot be written, or both were to go to standard output.
    pub fn write(&self, value: &impl serde::Serialize) -> anyhow::Result<bool> {
        self.put(|| Ok(serde_json::to_string(value)? + "\n"), || Ok(serde_json::to_value(value)?))
    }

    /// The same, of a result whose JSON has a text of its own: `text` is called for JSON, `value` for other forms.
    ///
    /// # Errors
    /// As `write`.
    pub fn put(
        &self,
        text: impl Fn() -> anyhow::Result<String>,
        value: impl Fn() -> anyhow::Result<serde_json::Value>,
    ) -> anyhow::Result<bool> {
        let mut stdout = false;
        if let Some(path) = &self.json {
            stdout = super::write_text(path, &text()?)?;
        }
        if let Some((form, path)) = self.file() {
            if stdout && path.as_os_str() == "-" {
                return Err(super::misuse("standard output takes one of --json and --format; give the other a file"));
            }
            let all = match form {
                Form::Json => text()?,
                other => other.write(&value()?).map_err(anyhow::Error::msg)?,
            };
            stdout |= super::write_text(path, &all)?;
        }
        Ok(stdout)
    }
}
