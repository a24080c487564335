//! `nandscope survey`: results of many cards, kept, searched, compared and shared.

use super::UNDECIDED;
use super::compare::finish;
use crate::report::privacy;
use crate::survey::db::DbError;
use crate::survey::published::published;
use crate::survey::record::{Record, Told};
use crate::survey::{Added, Place, Row, Survey, SurveyError, chart, export, site};
use crate::units::{date_text, three};
use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Instant, SystemTime};

#[derive(Args)]
pub struct SurveyArgs {
    /// Directory of the survey [default: $XDG_DATA_HOME/nandscope/survey]
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
    /// Add results: reports, logs of flashbench and SdFat bench, fio JSON, f3 output, iozone logs
    Add(AddArgs),
    /// List all cards
    List(ListArgs),
    /// Cards that meet all conditions: words, or erase_block=4MiB, open_aus_linear>=5, maker=sandisk, capacity>8GB
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
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Name of the card, where the file does not hold it
    #[arg(long)]
    name: Option<String>,
    #[arg(long)]
    maker: Option<String>,
    /// Part number
    #[arg(long)]
    part: Option<String>,
    /// Price with its currency
    #[arg(long)]
    price: Option<String>,
    /// Lot or batch
    #[arg(long)]
    lot: Option<String>,
    /// Where it was published
    #[arg(long)]
    url: Option<String>,
    #[arg(long)]
    note: Option<String>,
    /// Keep serial numbers; they are left out otherwise
    #[arg(long)]
    with_serial: bool,
}

/// How much of a list is printed.
#[derive(Args)]
struct Part {
    /// Print this many cards, and say how many more there are [default: 50; with --json all]
    #[arg(long, value_name = "N", conflicts_with = "all")]
    limit: Option<usize>,
    /// Print all cards
    #[arg(long)]
    all: bool,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct ListArgs {
    #[command(flatten)]
    part: Part,
}

#[derive(Args)]
struct SearchArgs {
    #[arg(required = true, value_name = "CONDITION")]
    conditions: Vec<String>,
    #[command(flatten)]
    part: Part,
}

#[derive(Args)]
struct ShowArgs {
    /// Id, or the beginning of one
    id: String,
    /// The whole entry as JSON, with the original
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct CompareArgs {
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// The cards named so far are one lot, those after this another
    #[arg(long, value_name = "ID", num_args = 1..)]
    against: Vec<String>,
    /// Write the comparison as JSON to a file, or to standard output with '-'
    #[arg(long, value_name = "F")]
    json: Option<PathBuf>,
}

#[derive(Args)]
struct ChartArgs {
    /// A rate as `search` names it, such as record-write-512-b-records; 'list' prints those that several cards have
    #[arg(long, value_name = "NAME")]
    figure: Option<String>,
    /// Write the chart as SVG to a file, or to standard output with '-'
    #[arg(long, value_name = "F")]
    svg: Option<PathBuf>,
    /// Only cards that meet these conditions
    #[arg(value_name = "CONDITION")]
    conditions: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Csv,
    Jsonl,
    Wiki,
}

#[derive(Args)]
struct ExportArgs {
    #[arg(long, value_enum, default_value = "csv")]
    format: Format,
    /// File to write instead of standard output
    #[arg(long, short, value_name = "F")]
    out: Option<PathBuf>,
    /// Keep the serial numbers of entries that were added with them
    #[arg(long)]
    with_serial: bool,
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
}

#[derive(Args)]
struct RemoveArgs {
    /// Full id
    id: String,
}

pub fn run(a: SurveyArgs) -> anyhow::Result<ExitCode> {
    let place = place(a.dir, a.db)?;
    let mut s = Survey::open(&place).map_err(|e| match (&place, e) {
        (Place::Server(_), SurveyError::Db(DbError::Postgres(why))) => {
            anyhow::anyhow!("cannot use the server: {why}. Is it running, and does the database exist?")
        }
        (_, e) => e.into(),
    })?;
    for (path, why) in &s.skipped {
        eprintln!("nandscope: skipped {path}: {why}");
    }
    match a.command {
        Command::Add(a) => add(&mut s, a),
        Command::List(a) => list(&mut s, &[], &a.part),
        Command::Search(a) => list(&mut s, &a.conditions, &a.part),
        Command::Show(a) => show(&s.get(&a.id)?, a.json),
        Command::Compare(a) => {
            let mut n = 0;
            let mut read = |ids: &[String]| -> anyhow::Result<Vec<_>> {
                ids.iter()
                    .map(|id| {
                        n += 1;
                        Ok(s.get(id)?.subject(&char::from(b'A' + ((n - 1) % 26) as u8).to_string()))
                    })
                    .collect()
            };
            let (first, second) = (read(&a.ids)?, read(&a.against)?);
            finish(&first, &second, &published(), a.json.as_deref())
        }
        Command::Chart(a) => draw(&mut s, &a),
        Command::Export(a) => {
            let (mut rows, _) = s.list(&a.conditions, None, false)?;
            if !a.with_serial {
                // An entry without a name is called after its path.
                rows.iter_mut().for_each(|r| r.name = privacy::mask(&r.name, &[]));
            }
            let text = match a.format {
                Format::Csv => export::csv(&mut s, &rows)?,
                Format::Jsonl => export::json_lines(&mut s, &rows, a.with_serial)?,
                Format::Wiki => export::wiki(&mut s, &rows)?,
            };
            match a.out {
                Some(p) => std::fs::write(&p, text).with_context(|| format!("cannot write {}", p.display()))?,
                None => std::io::stdout().write_all(text.as_bytes())?,
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Site(a) => {
            let n = site::write(&mut s, &a.out, a.with_serial, &mut |id, e| eprintln!("nandscope: skipped {id}: {e}"))?;
            say!("{n} cards in {}", a.out.join("index.html").display());
            Ok(ExitCode::SUCCESS)
        }
        Command::Remove(a) => {
            say!("removed {}", s.remove(&a.id)?);
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn place(dir: Option<PathBuf>, db: Option<String>) -> anyhow::Result<Place> {
    if let Some(url) = db {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            bail!("--db takes postgres://user@host/database, not '{url}'; a directory goes to --dir");
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
        bail!("--name and --part are of one card; add the files one by one");
    }
    let told = Told {
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
    let bar = std::io::stderr().is_terminal().then(|| indicatif::ProgressBar::new(a.files.len() as u64));
    let began = Instant::now();
    if let Some(b) = &bar {
        b.set_draw_target(indicatif::ProgressDrawTarget::hidden());
        b.set_style(
            indicatif::ProgressStyle::with_template("{bar:30} {pos}/{len}, {eta} left")
                .unwrap_or_else(|_| indicatif::ProgressStyle::default_bar()),
        );
    }
    let many = a.files.len() > 20;
    let mut out = std::io::stdout();
    s.add(&a.files, &told, now, &mut |path, what| {
        if let Some(b) = bar.as_ref().filter(|_| began.elapsed().as_secs() >= 2) {
            b.set_draw_target(indicatif::ProgressDrawTarget::stderr());
        }
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
                    let _ = writeln!(out, "{id}  {} is there already", path.display());
                }
            }
            Added::Refused(why) => {
                bad += 1;
                eprintln!("nandscope: skipped {}: {why}", path.display());
            }
        }
        if let Some(b) = &bar {
            b.inc(1);
        }
    })?;
    if let Some(b) = bar {
        b.finish_and_clear();
    }
    writeln!(out, "{new} added, {old} already there, {bad} skipped")?;
    Ok(if bad > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Cards that a list prints unless more are asked for.
const PAGE: usize = 50;

fn list(s: &mut Survey, conditions: &[String], part: &Part) -> anyhow::Result<ExitCode> {
    let most = part.limit.or((!part.all && !part.json).then_some(PAGE));
    let (rows, count) = s.list(conditions, most, part.json)?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if part.json {
        for r in &rows {
            let v = serde_json::json!({ "id": r.id, "name": r.name, "maker": r.maker, "kind": r.kind, "capacity": r.capacity, "format": r.format,
                "erase_block": r.erase_block, "open_aus_linear": r.open_linear, "open_aus_random": r.open_random, "summary": r.summary, "flags": r.flags });
            writeln!(out, "{v}")?;
        }
    } else {
        writeln!(out, "{:<29}{:<34}{:<10}{:<12}{:<13}{:<13}FROM", "ID", "NAME", "SIZE", "ERASE BLOCK", "OPEN LINEAR", "OPEN RANDOM")?;
        for r in &rows {
            line(&mut out, r)?;
        }
        let cards = if count == 1 { "card" } else { "cards" };
        match count.saturating_sub(rows.len()) {
            0 => writeln!(out, "{count} {cards}")?,
            more => writeln!(out, "{} of {count} {cards}; {more} more with --all, or with --limit N", rows.len())?,
        }
    }
    out.flush()?;
    Ok(if count == 0 { ExitCode::from(UNDECIDED) } else { ExitCode::SUCCESS })
}

fn draw(s: &mut Survey, a: &ChartArgs) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout();
    let keys = chart::keys(s)?;
    if a.figure.as_deref() == Some("list") {
        for (key, n) in &keys {
            writeln!(out, "{key:<48} {n} cards")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let first = || keys.iter().find(|k| k.0.contains("write")).or(keys.first()).map(|k| k.0.clone());
    let Some(key) = a.figure.clone().or_else(first) else { bail!("no rate is known of three cards or more") };
    let c = chart::chart(s, &key, &a.conditions)?;
    if c.points.is_empty() {
        if keys.iter().any(|k| k.0 == key) {
            writeln!(out, "0 cards")?;
            return Ok(ExitCode::from(UNDECIDED));
        }
        bail!("no card of known size has a '{key}'; `nandscope survey chart --figure list` prints the rates there are");
    }
    let f = c.figure();
    if let Some(to) = &a.svg {
        let text = crate::report::svg::file(&f);
        if to.as_os_str() == "-" {
            out.write_all(text.as_bytes())?;
            return Ok(ExitCode::SUCCESS);
        }
        std::fs::write(to, text).with_context(|| format!("cannot write {}", to.display()))?;
    }
    for l in crate::report::plot::braille(&f, super::width().min(100), 10) {
        writeln!(out, "{l}")?;
    }
    writeln!(out, "\n{:<24}{:>6}  {:>12}  {:>12}  {:>12}", "MAKER", "CARDS", "MEDIAN", "LOWEST", "HIGHEST")?;
    for m in c.makers() {
        let v = m.values.map(|v| format!("{} {}", three(v), c.unit));
        let name = if m.name.is_empty() { "not known" } else { m.name.as_str() };
        writeln!(out, "{name:<24}{:>6}  {:>12}  {:>12}  {:>12}", m.cards, v[0], v[1], v[2])?;
    }
    for p in c.points.iter().filter(|p| p.flagged) {
        writeln!(out, "left out: {} ({} {}), its entry is flagged", p.name, three(p.value), c.unit)?;
    }
    writeln!(out, "\n{}", c.says())?;
    Ok(if c.trend().is_some_and(|t| t.p <= 0.05) { ExitCode::SUCCESS } else { ExitCode::from(UNDECIDED) })
}

fn line(out: &mut impl Write, r: &Row) -> std::io::Result<()> {
    let cut =
        |t: &str, n: usize| if t.chars().count() > n { format!("{}…", t.chars().take(n - 1).collect::<String>()) } else { t.to_string() };
    let dash = |t: &str| if t.is_empty() { "-".to_string() } else { t.to_string() };
    let size = r.capacity.map_or("-".into(), crate::report::terminal::size);
    let flag = if r.flags > 0 { " (flagged)" } else { "" };
    writeln!(
        out,
        "{:<29}{:<34}{size:<10}{:<12}{:<13}{:<13}{}{flag}",
        r.id,
        cut(&r.name, 32),
        dash(&r.erase_block),
        dash(&r.open_linear),
        dash(&r.open_random),
        r.format
    )
}

fn show(r: &Record, json: bool) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout();
    if json {
        writeln!(out, "{}", serde_json::to_string(r)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (c, s) = (&r.card, &r.source);
    writeln!(out, "{}  {}", r.id, c.name)?;
    let pairs = [
        ("maker", c.maker.clone()),
        ("part number", c.part.clone()),
        ("identity", c.ids.clone()),
        ("kind", c.kind.clone()),
        ("size", c.capacity.map(crate::report::terminal::size)),
        ("made", c.made.clone()),
        ("price", c.price.clone()),
        ("lot", c.lot.clone()),
        ("from", Some(format!("{}, {}", s.format, s.file))),
        ("measured with", s.tool.clone()),
        ("measured", s.measured.map(date_text)),
        ("host", s.host.clone()),
        ("published", s.citation.clone()),
        ("address", s.url.clone()),
        ("added", (r.added > 0).then(|| date_text(r.added))),
        ("sha256", (!s.sha256.is_empty()).then(|| s.sha256.clone())),
    ];
    for (k, v) in pairs.iter().filter_map(|(k, v)| Some((k, v.as_ref()?))) {
        writeln!(out, "  {k:<15}{v}")?;
    }
    if !r.findings.0.is_empty() {
        use crate::report::terminal::{Dress, findings_text};
        writeln!(out, "\n{}", findings_text(&r.findings, &[], &[], Dress { details: false, ..Dress::default() }).trim_end())?;
    }
    if !r.metrics.is_empty() {
        writeln!(out)?;
    }
    for m in &r.metrics {
        let passes = if m.passes.is_empty() { String::new() } else { format!(" (median of {} passes)", m.passes.len()) };
        writeln!(out, "{:<30}{:<24}{} {}{passes}", m.name, m.conditions, three(m.value), m.unit)?;
    }
    for (title, lines) in [("Flags", &r.flags), ("Notes", &r.notes)] {
        if !lines.is_empty() {
            writeln!(out, "\n{title}")?;
        }
        for l in lines {
            writeln!(out, "  - {l}")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
