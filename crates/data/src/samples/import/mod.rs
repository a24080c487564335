//! Tables that other programs printed, read from text that people pasted: flashbench, SdFat bench, register dumps.
//!
//! Reading is tolerant of everything around the rows and strict about the rows themselves: a row counts only when its
//! numbers carry their units. What a row belongs to (how many AUs, which order) comes from the command line or heading
//! above it, and stays unknown where neither says. Lines that begin with '#' are comments unless they start flashbench.

mod align;
mod card;
mod clean;
mod command;
mod door;
pub mod foreign;
pub mod given;
mod html;
mod named;
mod other;
mod prefix;
mod quotes;
mod reader;
mod sdfat;

pub use card::{Card, Identity, KEPT_APART};
pub use door::{File, Text, open};
pub use named::Named;
use serde::{Deserialize, Serialize};

/// Where a table begins: index of the file, line from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    pub file: usize,
    pub line: usize,
}

/// One row of `flashbench -a`, times in µs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AlignRow {
    pub line: usize,
    /// Bytes.
    pub align: u64,
    pub pre: f64,
    pub on: f64,
    pub post: f64,
    /// on - (pre + post) / 2: as printed, or computed again where the print lost its unit.
    pub diff: f64,
    /// Half a step of the printed digits of `diff`, in µs.
    pub half_step: f64,
}

/// One pass of `flashbench -a`, largest alignment first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AlignTest {
    pub place: Place,
    /// The rows are writes (`-A` of the quirks thread, never merged).
    pub write: bool,
    /// Printed by this program, whose places never wrap over the end of the device.
    pub own: bool,
    /// Bytes of the device, where the file tells.
    pub device_size: Option<u64>,
    /// What was changed last before it: "page_size = 0".
    pub setting: Option<String>,
    pub rows: Vec<AlignRow>,
}

/// A rate at one block size: bytes, bytes a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rate {
    pub line: usize,
    pub size: u64,
    pub rate: f64,
}

impl Rate {
    /// Milliseconds a block.
    pub fn ms(&self) -> f64 {
        self.size as f64 / self.rate * 1e3
    }
}

/// One run of `flashbench --open-au`, largest block first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OpenTest {
    pub place: Place,
    /// AUs written in turn; unknown when neither a command nor a heading tells.
    pub n: Option<u32>,
    pub random: Option<bool>,
    /// Bytes of an AU as given to the command.
    pub erase_size: Option<u64>,
    /// What was changed last before it: "page_size = 0".
    pub setting: Option<String>,
    pub rows: Vec<Rate>,
}

/// One row of a table with a rate for each AU, or for each access kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RatesRow {
    pub line: usize,
    pub size: u64,
    pub rates: Vec<f64>,
}

/// One run of `flashbench --find-fat`: a column for each AU from the start of the device.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FatTest {
    pub place: Place,
    pub random: bool,
    pub erase_size: Option<u64>,
    pub rows: Vec<RatesRow>,
}

/// One run of `flashbench -p`: linear write of zeros, ones, 0x5a, linear read, then the same in random order.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProgramTest {
    pub place: Place,
    pub rows: Vec<RatesRow>,
}

/// One size of `flashbench -i`: bytes, µs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct IntervalRow {
    pub line: usize,
    pub size: u64,
    pub min: f64,
    pub avg: f64,
    pub max: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct IntervalTest {
    pub place: Place,
    pub rows: Vec<IntervalRow>,
}

/// `flashbench -s`: position in MiB, time in ms.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ScatterTest {
    pub place: Place,
    pub points: Vec<(f64, f64)>,
}

/// One pass of SdFat bench.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BenchPass {
    pub line: usize,
    pub write: bool,
    /// kB/s (1000).
    pub speed: f64,
    /// µs; not a number where only the speed was published.
    pub max: f64,
    pub min: f64,
    pub avg: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BenchTest {
    pub place: Place,
    /// What made the calls, where the text names it: "Arduino", "avr-16mhz-spi".
    pub host: Option<String>,
    /// Bytes of one write.
    pub buffer: Option<u32>,
    pub file_mb: Option<f64>,
    pub card_gb: Option<f64>,
    pub passes: Vec<BenchPass>,
}

/// A line that looks like a register or sysfs attribute; what it declares is decoded elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Declared {
    pub place: Place,
    /// "cid", "csd", "scr", "ssr", "preferred_erase_size", ...
    pub key: String,
    pub value: String,
}

/// All that was recognised.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tables {
    /// Names of the files, by index.
    pub files: Vec<String>,
    pub align: Vec<AlignTest>,
    pub open: Vec<OpenTest>,
    pub fat: Vec<FatTest>,
    pub program: Vec<ProgramTest>,
    pub interval: Vec<IntervalTest>,
    pub scatter: Vec<ScatterTest>,
    pub bench: Vec<BenchTest>,
    pub declared: Vec<Declared>,
    /// Sizes of whole devices that the files name.
    pub device_sizes: Vec<(Place, u64)>,
    /// What a reader should know: damaged rows, rows without a heading.
    pub notes: Vec<String>,
    /// Lines with text that no format claimed.
    pub ignored_lines: usize,
}

impl Tables {
    /// "name:line", for messages.
    pub fn at(&self, p: Place) -> String {
        format!("{}:{}", self.files.get(p.file).map_or("?", String::as_str), p.line)
    }

    /// Names of the files that its tables stand in.
    pub fn sources(&self) -> Vec<&str> {
        let places = self.align.iter().map(|t| t.place).chain(self.open.iter().map(|t| t.place)).chain(self.fat.iter().map(|t| t.place));
        let places = places.chain(self.program.iter().map(|t| t.place)).chain(self.interval.iter().map(|t| t.place));
        let places = places.chain(self.scatter.iter().map(|t| t.place)).chain(self.bench.iter().map(|t| t.place));
        let mut files: Vec<usize> = places.chain(self.declared.iter().map(|t| t.place)).map(|p| p.file).collect();
        files.sort_unstable();
        files.dedup();
        files.into_iter().filter_map(|f| self.files.get(f).map(String::as_str)).collect()
    }

    pub fn is_empty(&self) -> bool {
        let tests = [self.align.len(), self.open.len(), self.fat.len(), self.program.len(), self.interval.len()];
        tests.iter().all(|&n| n == 0) && self.scatter.is_empty() && self.bench.is_empty() && self.declared.is_empty()
    }

    /// How many tests of each kind, for one line of output.
    pub fn summary(&self) -> String {
        let rows = |n: usize, what: &str| (n > 0).then(|| format!("{n} {what}"));
        let parts = [
            rows(self.align.len(), "alignment"),
            rows(self.open.len(), "open-AU"),
            rows(self.fat.len(), "find-FAT"),
            rows(self.program.len(), "access-kind"),
            rows(self.interval.len(), "interval"),
            rows(self.scatter.len(), "scatter"),
            rows(self.bench.len(), "record benchmark"),
            rows(self.declared.len(), "register"),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum ImportError {
    #[error(
        "nothing to read in '{0}': it holds no rows of flashbench (\"align 4194304 pre 741µs on 1.08ms ...\", \"256KiB 912K/s\"), \
         SdFat bench, {programs}, no busy trace (whole numbers, at least twelve lines), no lines of firmware/ and no register dump; \
         paste the output as text, with its units",
        programs = foreign::PROGRAMS
    )]
    Nothing(String),
    #[error("nothing to read in '{0}': it is empty")]
    Empty(String),
    #[error(
        "nothing to read in '{0}': it speaks of a card ({1}), but holds no figures of it that can be read; \
         results in words, or in graphs that were pictures, are no table"
    )]
    Prose(String, String),
    /// Its kind, and what unpacks it.
    #[error("nothing to read in '{0}': it is compressed ({1}); unpack it first, with {2}")]
    Packed(String, &'static str, &'static str),
    #[error("nothing to read in '{0}': it is RTF, as word processors save it; save it as plain text")]
    Rtf(String),
    /// Rows of a wiki, whose figures somebody else concluded.
    #[error("{0} is a wiki table of cards, which somebody else concluded; compare it, or add it to a survey")]
    Wiki(String),
    /// A board that measured nothing, and its reason.
    #[error("{0} holds no times; the board says: {1}")]
    Board(String, String),
    /// A result of another benchmark that cannot be used.
    #[error("{0}: {1}")]
    Damaged(String, String),
    #[error("{0} is not a nandscope report: {1}. A report is what --json writes")]
    Json(String, String),
    #[error("no file was given")]
    NoFile,
}

impl ImportError {
    /// The file holds nothing, rather than something that is damaged: among several it can be left out.
    pub fn is_nothing(&self) -> bool {
        matches!(
            self,
            ImportError::Nothing(_)
                | ImportError::Empty(_)
                | ImportError::Packed(..)
                | ImportError::Rtf(_)
                | ImportError::Board(..)
                | ImportError::Prose(..)
                | ImportError::Wiki(_)
        )
    }
}

/// Reads pasted logs of one card. Each file must hold something.
pub fn read<N: AsRef<str>, B: AsRef<[u8]>>(files: &[(N, B)]) -> Result<Tables, ImportError> {
    let mut tables = Tables { files: names(files), ..Tables::default() };
    for card in parts(files)?.into_iter().flatten() {
        tables.join(card.tables);
    }
    quotes::drop_repeats(std::iter::once(&mut tables));
    Ok(tables)
}

/// Reads pasted logs of any number of cards: parts that are of one card are pooled, whichever file they are in. Each file must
/// hold something.
pub fn cards<N: AsRef<str>, B: AsRef<[u8]>>(files: &[(N, B)]) -> Result<Vec<Card>, ImportError> {
    Ok(pool(&names(files), parts(files)?))
}

/// The cards of all files, from those of each: parts that are of one card are pooled, whichever file they are in.
pub fn pool(names: &[String], files: Vec<Vec<Card>>) -> Vec<Card> {
    let mut cards = card::join_files(files);
    // A mail and its answer, or the same file twice: what is quoted was measured once.
    quotes::drop_repeats(cards.iter_mut().map(|c| &mut c.tables));
    cards.iter_mut().for_each(|c| c.tables.files = names.to_vec());
    cards
}

fn names<N: AsRef<str>, B>(files: &[(N, B)]) -> Vec<String> {
    files.iter().map(|f| f.0.as_ref().to_string()).collect()
}

/// The cards of each file.
fn parts<N: AsRef<str>, B: AsRef<[u8]>>(files: &[(N, B)]) -> Result<Vec<Vec<Card>>, ImportError> {
    if files.is_empty() {
        return Err(ImportError::NoFile);
    }
    let one = |(i, (name, bytes)): (usize, &(N, B))| {
        let (cards, spoken) = reader::read(i, name.as_ref(), &clean::lines(bytes.as_ref()));
        match (cards.is_empty(), spoken.name()) {
            (false, _) => Ok(cards),
            (true, Some(card)) => Err(ImportError::Prose(name.as_ref().to_string(), card)),
            (true, None) => Err(ImportError::Nothing(name.as_ref().to_string())),
        }
    };
    files.iter().enumerate().map(one).collect()
}

impl Tables {
    fn join(&mut self, mut o: Tables) {
        self.align.append(&mut o.align);
        self.open.append(&mut o.open);
        self.fat.append(&mut o.fat);
        self.program.append(&mut o.program);
        self.interval.append(&mut o.interval);
        self.scatter.append(&mut o.scatter);
        self.bench.append(&mut o.bench);
        self.declared.append(&mut o.declared);
        self.device_sizes.append(&mut o.device_sizes);
        self.notes.append(&mut o.notes);
        self.ignored_lines += o.ignored_lines;
    }
}
