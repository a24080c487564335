//! `nandscope survey`: results of many cards, kept, searched, compared and shared.

mod by_lot;
mod shown;

use super::args::{Json, Output, Samples, Written};
use super::compare::{finish, label};
use super::progress::Progress;
use crate::advise::price;
use crate::saved::privacy;
use crate::survey::db::DbError;
use crate::survey::published::published;
use crate::survey::record::Told;
use crate::survey::{Added, Place, Survey, SurveyError, export, site};
use crate::units::Bytes;
use anyhow::{Context, bail};
use by_lot::by_lot;
use clap::{Args, Subcommand, ValueEnum};
use shown::{draw, list, show};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

#[derive(Args)]
pub struct SurveyArgs {
    /// Directory of the survey [default: $XDG_DATA_HOME/nandscope/survey, else ~/.local/share/nandscope/survey]
    #[arg(long, value_name = "DIR", global = true, conflicts_with = "db")]
    dir: Option<PathBuf>,
    /// PostgreSQL server of a shared survey: postgres://user@host/database
    #[arg(long, value_name = "URL", global = true)]
    db: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Add results: reports, bench results, busy traces, logs that `infer` reads (flashbench, SdFat bench, fio, f3 ...), wiki tables
    Add(AddArgs),
    /// List all cards
    List(ListArgs),
    /// Cards that meet all conditions: words, or erase_block=4MiB, open_aus_linear>=5, maker=sandisk, capacity>8GB; `lot=A or lot=B`: one of these
    Search(SearchArgs),
    /// Everything about one card
    Show(ShowArgs),
    /// Compare cards of the survey
    Compare(CompareArgs),
    /// Speed against the size of the card, over all cards and by maker
    Chart(ChartArgs),
    /// Write a table: CSV, JSON lines, or a wiki table as for the Linaro survey
    Export(ExportArgs),
    /// Write a static, searchable web site
    Site(SiteArgs),
    /// Take a card out
    Remove(RemoveArgs),
}

#[derive(Args)]
struct AddArgs {
    /// What --json wrote, or logs of other tools
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Name of the card, where the file does not hold it
    #[arg(long)]
    name: Option<String>,
    /// Maker of the card
    #[arg(long)]
    maker: Option<String>,
    /// Part number
    #[arg(long)]
    part: Option<String>,
    /// Price with its currency, for example '5.75 USD'
    #[arg(long)]
    price: Option<String>,
    /// Size of the card, where the file does not hold it, for example 4GB
    #[arg(long, value_name = "SIZE")]
    size: Option<Bytes>,
    /// What measured it, where the file does not hold it, for example 'Arduino Uno'
    #[arg(long)]
    host: Option<String>,
    /// Lot or batch
    #[arg(long)]
    lot: Option<String>,
    /// Where it was published
    #[arg(long)]
    url: Option<String>,
    /// A note to keep with the card
    #[arg(long)]
    note: Option<String>,
    /// Keep serial numbers; they are left out otherwise
    #[arg(long)]
    with_serial: bool,
}

/// Whose cards.
#[derive(Args)]
struct Whose {
    /// Leave the published cards of the program out
    #[arg(long)]
    no_published: bool,
}

impl Whose {
    /// The conditions with that of the option.
    ///
    /// # Errors
    /// An `or` that would join one of ours.
    fn with(&self, conditions: &[String]) -> anyhow::Result<Vec<String>> {
        crate::survey::alternatives(conditions).map_err(super::misuse)?;
        let own = self.no_published.then(|| "published=no".to_string());
        Ok(conditions.iter().cloned().chain(own).collect())
    }
}

/// How much of a list is printed.
#[derive(Args)]
struct Part {
    #[command(flatten)]
    whose: Whose,
    /// Print this many cards, and say how many more there are [default: 50; with --json all]
    #[arg(long, value_name = "N", conflicts_with = "all")]
    limit: Option<usize>,
    /// Print all cards
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    json: Json,
}

#[derive(Args)]
struct ListArgs {
    #[command(flatten)]
    part: Part,
}

#[derive(Args)]
struct SearchArgs {
    /// Words, or a quantity with =, <, <=, > or >= and a value
    #[arg(required = true, value_name = "CONDITION")]
    conditions: Vec<String>,
    #[command(flatten)]
    part: Part,
}

#[derive(Args)]
struct ShowArgs {
    /// Id, or the beginning of one
    id: String,
    #[command(flatten)]
    out: Written,
}

#[derive(Args)]
struct CompareArgs {
    /// Id, or the beginning of one; or a condition as for `search`, such as lot=A
    #[arg(required_unless_present = "by", value_name = "ID")]
    ids: Vec<String>,
    /// The cards named so far are one class or lot, those after this another
    #[arg(long, value_name = "ID", num_args = 1..)]
    against: Vec<String>,
    /// With --against: compare the first card with each other one, too
    #[arg(long, requires = "against")]
    pairs: bool,
    /// One table over all lots; of the cards that meet the conditions, where there are any
    #[arg(long, value_name = "WHAT", value_parser = ["lot"], conflicts_with_all = ["against", "json", "format"])]
    by: Option<String>,
    #[command(flatten)]
    out: Output,
    /// Write a page, with the figures of the cards in common pictures, or with --by the table on one sheet, to a file, or to standard output with '-'
    #[arg(long, value_name = "F")]
    html: Option<PathBuf>,
}

#[derive(Args)]
struct ChartArgs {
    /// A rate as `search` names it, such as record-write-512-b-records; 'list' prints those that several cards have
    #[arg(long, value_name = "NAME")]
    figure: Option<String>,
    /// Only this host, by any of its names: avr-16mhz-spi, 'Arduino Uno', rp2040
    #[arg(long)]
    host: Option<String>,
    /// Write the chart as SVG to a file, or to standard output with '-'
    #[arg(long, value_name = "F")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    whose: Whose,
    /// Only cards that meet these conditions
    #[arg(value_name = "CONDITION")]
    conditions: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// A line a card, a column a quantity
    Csv,
    /// A line a value, with its unit: for statistics
    Long,
    /// One JSON object a card
    Jsonl,
    /// The wiki table of the Linaro survey
    Wiki,
}

#[derive(Args)]
struct ExportArgs {
    /// Form of the table
    #[arg(long, value_enum, default_value = "csv")]
    format: Format,
    /// File to write instead of standard output
    #[arg(long, short, value_name = "F")]
    out: Option<PathBuf>,
    /// Write values.parquet and samples.parquet to this directory instead (in builds with the feature `parquet`)
    #[arg(long, value_name = "DIR", conflicts_with_all = ["format", "out"])]
    parquet: Option<PathBuf>,
    /// Keep the serial numbers of entries that were added with them
    #[arg(long)]
    with_serial: bool,
    #[command(flatten)]
    whose: Whose,
    /// Only cards that meet these conditions
    #[arg(value_name = "CONDITION")]
    conditions: Vec<String>,
}

#[derive(Args)]
struct SiteArgs {
    /// Directory to write to
    out: PathBuf,
    /// Keep the serial numbers of entries that were added with them
    #[arg(long)]
    with_serial: bool,
    /// Which samples the pages hold; with all of them a page has its plots, and some 0.6 MB
    #[arg(long, value_name = "WHICH", value_enum, default_value = "none")]
    samples: Samples,
    #[command(flatten)]
    whose: Whose,
    /// Only cards that meet these conditions
    #[arg(value_name = "CONDITION")]
    conditions: Vec<String>,
}

#[derive(Args)]
struct RemoveArgs {
    /// Full id
    id: String,
}

pub fn run(a: SurveyArgs) -> anyhow::Result<ExitCode> {
    let place = place(a.dir, a.db)?;
    let begins = matches!(a.command, Command::Add(_));
    let mut s = if begins { Survey::begin(&place) } else { Survey::open(&place) }.map_err(|e| match (&place, e) {
        (Place::Server(_), SurveyError::Db(DbError::Postgres(why))) => {
            anyhow::anyhow!("cannot use the server: {why}. Is it running, and does the database exist?")
        }
        (_, e) => e.into(),
    })?;
    if let (true, Place::Dir(d)) = (s.absent, &place) {
        tell!("nandscope: there is no survey in {}; `survey add` begins one. These are the published cards of the program", d.display());
    }
    for (path, why) in &s.skipped {
        tell!("nandscope: {}", super::harmless(&format!("skipped {path}: {why}")));
    }
    match a.command {
        Command::Add(a) => add(&mut s, a),
        Command::List(a) => list(&mut s, &[], &a.part),
        Command::Search(a) => list(&mut s, &a.conditions, &a.part),
        Command::Show(a) => show(&s.get(&a.id)?, &a.out),
        Command::Compare(a) if a.by.is_some() => by_lot(&mut s, &a.ids, a.html.as_deref(), vec![]),
        Command::Compare(a) => {
            let (mut n, mut named) = (0, BTreeSet::new());
            let mut read = |words: &[String]| -> anyhow::Result<Vec<_>> {
                let mut out = vec![];
                for word in words {
                    let ids: Vec<String> = match word.find(['=', '<', '>']) {
                        None => vec![word.clone()],
                        Some(_) => s.list(std::slice::from_ref(word), None, false)?.0.into_iter().map(|r| r.id).collect(),
                    };
                    if ids.is_empty() {
                        bail!("no card meets '{word}'");
                    }
                    for id in ids {
                        let card = s.get(&id)?;
                        if !named.insert(card.id.clone()) {
                            return Err(super::misuse(format!(
                                "'{word}' is the card {} once more: a card is compared with others",
                                card.id
                            )));
                        }
                        out.push(card.subject(&label(n)));
                        n += 1;
                    }
                }
                Ok(out)
            };
            let (first, second) = (read(&a.ids)?, read(&a.against)?);
            if first.len() + second.len() < 2 {
                return Err(super::misuse("give at least two cards"));
            }
            finish(&first, &second, &published(), a.pairs, a.html.as_deref(), &a.out)
        }
        Command::Chart(a) => draw(&mut s, &a),
        Command::Export(a) => {
            let (mut rows, _) = s.list(&a.whose.with(&a.conditions)?, None, false)?;
            if !a.with_serial {
                // An entry without a name is called after its path.
                rows.iter_mut().for_each(|r| r.name = privacy::mask(&r.name, &[]));
            }
            if let Some(dir) = &a.parquet {
                return tables(&mut s, &rows, a.with_serial, dir);
            }
            let text = match a.format {
                Format::Csv => export::csv(&mut s, &rows, a.with_serial)?,
                Format::Long => export::long(&mut s, &rows, a.with_serial)?,
                Format::Jsonl => export::json_lines(&mut s, &rows, a.with_serial)?,
                Format::Wiki => export::wiki(&mut s, &rows)?,
            };
            super::write_text(a.out.as_deref().unwrap_or(Path::new("-")), &text)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Site(a) => {
            let conditions = a.whose.with(&a.conditions)?;
            let what = site::What { conditions: &conditions, with_serial: a.with_serial, samples: a.samples == Samples::All };
            let n = site::write(&mut s, &a.out, &what, &mut |id, e| tell!("nandscope: skipped {id}: {e}"))?;
            say!("{n} cards in {}", a.out.join("index.html").display());
            Ok(ExitCode::SUCCESS)
        }
        Command::Remove(a) => {
            say!("removed {}", s.remove(&a.id)?);
            Ok(ExitCode::SUCCESS)
        }
    }
}

#[cfg(feature = "parquet")]
fn tables(s: &mut Survey, rows: &[crate::survey::Row], with_serial: bool, dir: &Path) -> anyhow::Result<ExitCode> {
    let [values, samples] = crate::survey::parquet::write(s, rows, with_serial, dir)?;
    say!("{values} values and {samples} accesses of {} cards in {}", rows.len(), dir.display());
    Ok(ExitCode::SUCCESS)
}

#[cfg(not(feature = "parquet"))]
fn tables(_: &mut Survey, _: &[crate::survey::Row], _: bool, _: &Path) -> anyhow::Result<ExitCode> {
    bail!("this build writes no Parquet: cargo build --features parquet does; DuckDB and pandas read --format long and jsonl as well")
}

/// The page of `compare --by lot` of all cards that have a lot.
pub(super) fn lots_page(place: &Place, page: &Path, notes: Vec<String>) -> anyhow::Result<()> {
    by_lot(&mut Survey::open(place)?, &[], Some(page), notes).map(|_| ())
}

fn place(dir: Option<PathBuf>, db: Option<String>) -> anyhow::Result<Place> {
    if let Some(url) = db {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(super::misuse(format!("--db takes postgres://user@host/database, not '{url}'; a directory goes to --dir")));
        }
        return Ok(Place::Server(url));
    }
    let dir = match dir {
        Some(d) => d,
        None => {
            let home = || std::env::var_os("HOME").map(|h| Path::new(&h).join(".local/share"));
            let base = std::env::var_os("XDG_DATA_HOME").filter(|d| !d.is_empty()).map(PathBuf::from).or_else(home);
            base.context("neither XDG_DATA_HOME nor HOME is set; name the directory with --dir")?.join("nandscope/survey")
        }
    };
    Ok(Place::Dir(dir))
}

fn add(s: &mut Survey, a: AddArgs) -> anyhow::Result<ExitCode> {
    if a.files.len() > 1 && (a.name.is_some() || a.part.is_some()) {
        return Err(super::misuse("--name and --part are of one card; add the files one by one"));
    }
    if let Some(p) = &a.price {
        price::parse(p).map_err(super::misuse)?;
    }
    let told = Told {
        size: a.size.map(|b| b.0),
        host: a.host,
        name: a.name,
        maker: a.maker,
        part: a.part,
        price: a.price,
        lot: a.lot,
        url: a.url,
        note: a.note,
        with_serial: a.with_serial,
    };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let (mut new, mut old, mut bad) = (0, 0, 0);
    let mut bar = Progress::files(a.files.len() as u64, false);
    let many = a.files.len() > 20;
    let mut out = super::stdout();
    s.add(&a.files, &told, now, &mut |path, what| {
        bar.at(new + old + bad + 1);
        match &what {
            Added::New { id, flags } => {
                new += 1;
                if !many || !flags.is_empty() {
                    let _ = writeln!(out, "{id}  {}", path.display());
                }
                flags.iter().for_each(|f| {
                    let _ = writeln!(out, "  flag: {f}");
                });
            }
            Added::Already { id } => {
                old += 1;
                if !many {
                    let _ = writeln!(out, "{id}  {} is there already, with the lot, name and price it was added with", path.display());
                }
            }
            Added::Refused(why) => {
                bad += 1;
                tell!("nandscope: {}", super::harmless(&format!("skipped {}: {why}", path.display())));
            }
        }
    })?;
    bar.end();
    writeln!(out, "{new} added, {old} already there, {bad} skipped")?;
    Ok(if bad > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
