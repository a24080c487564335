//! `nandscope survey`: results of many cards, kept, searched, compared and shared.

use super::UNDECIDED;
use super::compare::{finish, label};
use super::progress::Progress;
use crate::advise::price;
use crate::saved::privacy;
use crate::survey::db::DbError;
use crate::survey::published::published;
use crate::survey::record::{Record, Told};
use crate::survey::{Added, Place, Row, Survey, SurveyError, chart, export, site};
use crate::units::{Bytes, date_text, three};
use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

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
    /// Add results: reports, bench results, busy traces, logs of flashbench, SdFat bench, fio, f3, iozone, wiki tables
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
    #[arg(long, value_name = "WHAT", value_parser = ["lot"], conflicts_with_all = ["against", "json"])]
    by: Option<String>,
    /// Write the comparison as JSON to a file, or to standard output with '-'
    #[arg(long, value_name = "F")]
    json: Option<PathBuf>,
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
    let begins = matches!(a.command, Command::Add(_));
    let mut s = if begins { Survey::begin(&place) } else { Survey::open(&place) }.map_err(|e| match (&place, e) {
        (Place::Server(_), SurveyError::Db(DbError::Postgres(why))) => {
            anyhow::anyhow!("cannot use the server: {why}. Is it running, and does the database exist?")
        }
        (_, e) => e.into(),
    })?;
    if let (true, Place::Dir(d)) = (s.absent, &place) {
        eprintln!(
            "nandscope: there is no survey in {}; `survey add` begins one. These are the published cards of the program",
            d.display()
        );
    }
    for (path, why) in &s.skipped {
        eprintln!("nandscope: {}", super::harmless(&format!("skipped {path}: {why}")));
    }
    match a.command {
        Command::Add(a) => add(&mut s, a),
        Command::List(a) => list(&mut s, &[], &a.part),
        Command::Search(a) => list(&mut s, &a.conditions, &a.part),
        Command::Show(a) => show(&s.get(&a.id)?, a.json),
        Command::Compare(a) if a.by.is_some() => by_lot(&mut s, &a.ids),
        Command::Compare(a) => {
            let mut n = 0;
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
                        out.push(s.get(&id)?.subject(&label(n)));
                        n += 1;
                    }
                }
                Ok(out)
            };
            let (first, second) = (read(&a.ids)?, read(&a.against)?);
            if first.len() + second.len() < 2 {
                bail!("give at least two cards");
            }
            finish(&first, &second, &published(), a.pairs, a.json.as_deref())
        }
        Command::Chart(a) => draw(&mut s, &a),
        Command::Export(a) => {
            let (mut rows, _) = s.list(&a.conditions, None, false)?;
            if !a.with_serial {
                // An entry without a name is called after its path.
                rows.iter_mut().for_each(|r| r.name = privacy::mask(&r.name, &[]));
            }
            let text = match a.format {
                Format::Csv => export::csv(&mut s, &rows, a.with_serial)?,
                Format::Jsonl => export::json_lines(&mut s, &rows, a.with_serial)?,
                Format::Wiki => export::wiki(&mut s, &rows)?,
            };
            super::write_text(a.out.as_deref().unwrap_or(Path::new("-")), &text)?;
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
    if let Some(p) = &a.price {
        price::parse(p).map_err(anyhow::Error::msg)?;
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
    let mut out = std::io::stdout();
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
                    let _ = writeln!(out, "{id}  {} is there already", path.display());
                }
            }
            Added::Refused(why) => {
                bad += 1;
                eprintln!("nandscope: {}", super::harmless(&format!("skipped {}: {why}", path.display())));
            }
        }
    })?;
    bar.end();
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
                "lot": r.lot, "host": r.host, "erase_block": r.erase_block, "open_aus_linear": r.open_linear, "open_aus_random": r.open_random, "summary": r.summary, "flags": r.flags,
                "counterfeit": r.counterfeit, "real_capacity": r.real });
            writeln!(out, "{v}")?;
        }
    } else {
        writeln!(
            out,
            "{:<29}{:<34}{:<10}{:<10}{:<12}{:<13}{:<13}FROM",
            "ID", "NAME", "SIZE", "REAL", "ERASE BLOCK", "OPEN LINEAR", "OPEN RANDOM"
        )?;
        for r in &rows {
            line(&mut out, r)?;
        }
        let cards = if count == 1 { "card" } else { "cards" };
        match count.saturating_sub(rows.len()) {
            0 => writeln!(out, "{count} {cards}")?,
            more => writeln!(out, "{} of {count} {cards}; {more} more with --all, or with --limit N", rows.len())?,
        }
        if conditions.iter().any(|c| crate::survey::of_benchmark(c)) {
            hosts_of(&mut out, &rows)?;
        }
    }
    out.flush()?;
    Ok(if count == 0 { ExitCode::from(UNDECIDED) } else { ExitCode::SUCCESS })
}

/// That a figure was measured on several hosts: it is of the host as well as of the card.
fn hosts_of(out: &mut impl Write, rows: &[Row]) -> std::io::Result<()> {
    let mut hosts: Vec<(&str, usize)> = vec![];
    for r in rows {
        match hosts.iter_mut().find(|h| h.0 == r.host) {
            Some(h) => h.1 += 1,
            None => hosts.push((&r.host, 1)),
        }
    }
    if hosts.len() < 2 {
        return Ok(());
    }
    let all: Vec<String> = hosts.iter().map(|(h, n)| format!("{} ({n})", chart::host_name(h))).collect();
    writeln!(out, "measured on {} hosts, which are not comparable: {}; choose one with host=...", hosts.len(), all.join(", "))
}

/// A value of a card: which lot it is of, the value, and how it is shown.
type OfLot = (usize, f64, String);

/// One table a figure: a line a lot.
fn by_lot(s: &mut Survey, conditions: &[String]) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout();
    let (rows, _) = s.list(conditions, None, false)?;
    let facts = s.facts()?;
    let mut lots: Vec<&str> = rows.iter().map(|r| r.lot.as_str()).filter(|l| !l.is_empty()).collect();
    lots.sort_unstable();
    lots.dedup();
    if lots.is_empty() {
        bail!("no card has a lot; `survey add --lot NAME` gives it one");
    }
    // Key and host of a figure; a finding is of no host.
    let mut figures: std::collections::BTreeMap<(bool, String, String), Vec<OfLot>> = Default::default();
    let mut cards = vec![0; lots.len()];
    for r in &rows {
        let Some(lot) = lots.iter().position(|l| *l == r.lot) else { continue };
        cards[lot] += 1;
        for f in facts.get(&r.id).into_iter().flatten().filter(|f| !f.flagged && !f.bound && (f.confidence >= 0.75)) {
            let found = !f.key.contains('-');
            let host = if found { String::new() } else { chart::host_name(&r.host).to_string() };
            figures.entry((found, f.key.clone(), host)).or_default().push((lot, f.value, f.shown.clone()));
        }
    }
    for (lot, n) in lots.iter().zip(&cards) {
        writeln!(out, "lot {lot}: {n} {}", if *n == 1 { "card" } else { "cards" })?;
    }
    let both = |all: &[OfLot]| all.iter().any(|a| a.0 != all[0].0);
    for ((_, key, host), all) in figures.iter().filter(|(_, all)| both(all)) {
        let on = if host.is_empty() { String::new() } else { format!(", on {host}") };
        writeln!(
            out,
            "\n{key}{on}\n  {:<16}{:>6}  {:>14}  {:>14}  {:>14}  {:>10}",
            "LOT", "CARDS", "MEDIAN", "LOWEST", "HIGHEST", "x FIRST"
        )?;
        let mut base = None;
        for (i, lot) in lots.iter().enumerate() {
            let mut of: Vec<&OfLot> = all.iter().filter(|a| a.0 == i).collect();
            if of.is_empty() {
                continue;
            }
            of.sort_by(|a, b| a.1.total_cmp(&b.1));
            // Of an even number the lower of the two in the middle: a value that some card has.
            let (mid, low, high) = (of[(of.len() - 1) / 2], of[0], of[of.len() - 1]);
            let ratio = mid.1 / *base.get_or_insert(mid.1);
            let ratio = if ratio.is_finite() { three(ratio) } else { "-".into() };
            writeln!(out, "  {lot:<16}{:>6}  {:>14}  {:>14}  {:>14}  {ratio:>10}", of.len(), mid.2, low.2, high.2)?;
        }
    }
    if !figures.values().any(|all| both(all)) {
        writeln!(out, "\nno figure that two lots have")?;
        return Ok(ExitCode::from(UNDECIDED));
    }
    writeln!(out, "\nWhether two lots differ by more than chance: `nandscope survey compare lot={} --against lot=...`", lots[0])?;
    Ok(ExitCode::SUCCESS)
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
    let charts = chart::charts(s, &key, &a.conditions, a.host.as_deref())?;
    let drawn = charts.iter().filter(|c| !c.points.is_empty()).count();
    if let (Some(to), Some(c)) = (&a.svg, charts.first().filter(|c| !c.points.is_empty())) {
        let text = crate::report::svg::file(&c.figure());
        out.flush()?;
        super::write_text(to, &text)?;
        if drawn > 1 {
            eprintln!("nandscope: the picture is of {}; choose another of {drawn} hosts with --host", chart::host_name(&c.host));
        }
        if to.as_os_str() == "-" {
            return Ok(ExitCode::SUCCESS);
        }
    }
    for (i, c) in charts.iter().enumerate() {
        if i > 0 {
            writeln!(out)?;
        }
        one_host(&mut out, c)?;
    }
    if charts.is_empty() {
        writeln!(out, "0 cards")?;
    }
    if charts.len() > 1 {
        writeln!(out, "\n{} hosts: each by itself, as a rate is of the host as well as of the card", charts.len())?;
    }
    let shown = charts.iter().any(|c| c.trend().is_some_and(|t| t.p <= 0.05));
    Ok(if shown { ExitCode::SUCCESS } else { ExitCode::from(UNDECIDED) })
}

/// Cards that a chart lists one by one at most.
const LISTED: usize = 24;

/// What a chart of one host shows, says, and leaves out.
fn one_host(out: &mut impl Write, c: &chart::Chart) -> std::io::Result<()> {
    let f = c.figure();
    if c.points.is_empty() {
        writeln!(out, "{}", f.title)?;
    } else {
        for l in crate::report::plot::braille(&f, super::width().min(100), 10) {
            writeln!(out, "{l}")?;
        }
    }
    let all: Vec<&chart::Point> = c.points.iter().chain(&c.unsized_cards).filter(|p| !p.flagged).collect();
    if (1..=LISTED).contains(&all.len()) {
        let priced = all.iter().any(|p| p.price.is_some());
        let per = if priced { format!("  {:>12}  {:>20}", "PRICE", "RATE PER PRICE") } else { String::new() };
        writeln!(out, "\n{:<42}{:>12}  {:>12}{per}", "CARD", "SIZE", "RATE")?;
        for p in &all {
            let size = if p.capacity > 0 { crate::report::terminal::size(p.capacity) } else { "-".into() };
            let model = if p.simulated && !p.name.starts_with("sim:") { " (simulated)" } else { "" };
            let several = if p.entries > 1 { format!(" (median of {})", p.entries) } else { String::new() };
            let cost = p.price.as_ref().map_or("-".to_string(), |(v, code)| format!("{v} {code}"));
            let rate = chart::Chart::per_price(p).map_or("-".to_string(), |(r, code)| format!("{} {}/{code}", three(r), c.unit));
            let per = if priced { format!("  {cost:>12}  {rate:>20}") } else { String::new() };
            let name = cut(&p.name, 40usize.saturating_sub(model.len() + several.len()));
            writeln!(out, "{:<42}{size:>12}  {:>12}{per}", format!("{name}{model}{several}"), format!("{} {}", three(p.value), c.unit))?;
        }
    }
    if !c.makers().is_empty() {
        writeln!(out, "\n{:<24}{:>6}  {:>12}  {:>12}  {:>12}", "MAKER", "CARDS", "MEDIAN", "LOWEST", "HIGHEST")?;
    }
    for m in c.makers() {
        let v = m.values.map(|v| format!("{} {}", three(v), c.unit));
        let name = if m.name.is_empty() { "not known" } else { m.name.as_str() };
        writeln!(out, "{name:<24}{:>6}  {:>12}  {:>12}  {:>12}", m.cards, v[0], v[1], v[2])?;
    }
    for p in c.points.iter().chain(&c.unsized_cards).filter(|p| p.flagged) {
        writeln!(out, "left out: {} ({} {}), which contradicts another figure of its entry", p.name, three(p.value), c.unit)?;
    }
    for p in c.unsized_cards.iter().filter(|p| !p.flagged) {
        writeln!(out, "without a size: {} ({} {}), not in the chart; add it with --size", p.name, three(p.value), c.unit)?;
    }
    writeln!(out, "\n{}: {}", chart::host_name(&c.host), c.says())
}

fn cut(t: &str, n: usize) -> String {
    if t.chars().count() > n { format!("{}…", t.chars().take(n.max(1) - 1).collect::<String>()) } else { t.to_string() }
}

fn line(out: &mut impl Write, r: &Row) -> std::io::Result<()> {
    let dash = |t: &str| if t.is_empty() { "-".to_string() } else { t.to_string() };
    let size = r.capacity.map_or("-".into(), crate::report::terminal::size);
    let real = r.real.map_or("-".into(), crate::report::terminal::size);
    let flag = match (r.flags > 0, r.bare) {
        _ if r.counterfeit == Some(true) => " (COUNTERFEIT)",
        (true, _) => " (flagged)",
        (false, true) => " (without figures)",
        _ => "",
    };
    writeln!(
        out,
        "{:<29}{:<34}{size:<9} {real:<9} {:<12}{:<13}{:<13}{}{flag}",
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
    if let Some(c) = r.counterfeit() {
        writeln!(out, "{}: {}\n", c.word().to_uppercase(), c.sizes())?;
    }
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
        ("seed", s.seed.map(|n| n.to_string())),
        ("card is", s.simulated.then(|| "simulated".to_string())),
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
        let passes = if m.passes.is_empty() { String::new() } else { format!(" ({} of {} passes)", m.over.word(), m.passes.len()) };
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
