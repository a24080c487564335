//! A static web site of all cards: one page to search, one page a card. Opens from disk, needs no server.

use super::chart::{self, Chart};
use super::record::Record;
use super::{Result, Row, Survey, SurveyError, io};
use crate::infer::figure::Figure;
use crate::report::beside::{self, CARDS};
use crate::report::html::{self, STYLE, compared};
use crate::report::svg;
use crate::report::words::{GLOSSARY, grade};
use crate::units::{as_sold, date_text, three};
use maud::{Markup, PreEscaped, html as markup};
use std::path::Path;

/// The list of cards: names have room, and figures stay whole.
const LIST: &str = "@media (min-width:30.01rem){#cards tbody th{min-width:14rem}#cards td{white-space:nowrap}#cards td.size{white-space:normal;min-width:10.5rem}#cards td:last-child{min-width:0;white-space:normal}}.file{font-weight:400;font-size:.85rem;overflow-wrap:anywhere}#cards tr[hidden]{display:none}@media (max-width:30rem){#cards .none{display:none}}";
const SEARCH: &str = include_str!("site.js");
/// Charts on the first page.
const CHARTS: usize = 3;

/// What goes into a site.
#[derive(Default)]
pub struct What<'a> {
    /// Only cards that meet these.
    pub conditions: &'a [String],
    pub with_serial: bool,
    /// Each page holds all accesses and their plots: half a megabyte a card instead of some ten kilobytes.
    pub samples: bool,
}

/// Writes the site; returns how many cards have a page. Pages that are there already are overwritten, other files are left alone.
///
/// # Errors
/// A page cannot be written, or the database fails. A damaged entry is skipped and told to `skipped`.
pub fn write(s: &mut Survey, out: &Path, what: &What, skipped: &mut dyn FnMut(&str, &SurveyError)) -> Result<usize> {
    let cards = out.join("cards");
    io(&cards, std::fs::create_dir_all(&cards))?;
    // Cards of one's own stand before those that come with the program.
    let (mut rows, _) = s.list(what.conditions, None, true)?;
    nandscope_stats::sort_by_key(&mut rows, |r| r.format == "published");
    let mut kept = vec![];
    let mut drawn = vec![];
    for mut row in rows {
        match s.get(&row.id) {
            Ok(r) => {
                let r = if what.with_serial { r } else { r.shared() };
                row.name.clone_from(&r.card.name);
                // As many as a picture has room for, of each set of figures.
                if let Some(report) = r.report().filter(|_| drawn.len() < 2 * CARDS) {
                    let figures = beside::drawn_today(&report.runs);
                    if !figures.is_empty() {
                        drawn.push((r.card.name.clone(), figures));
                    }
                }
                let path = cards.join(format!("{}.html", r.id));
                io(&path, crate::saved::put(&path, &page(&r, what.samples)))?;
                // Cards of a model have one name; the file tells them apart.
                let file = if r.source.format == "published" { String::new() } else { r.source.file.clone() };
                kept.push((row, file));
            }
            Err(e) => skipped(&row.id, &e),
        }
    }
    let mut charts = vec![];
    for (key, _) in chart::keys(s)?.into_iter().filter(|k| k.0.contains("write")).take(CHARTS) {
        charts.extend(chart::charts(s, &key, what.conditions, None)?.into_iter().filter(|c| c.points.len() >= 3).take(CHARTS));
    }
    let path = out.join("index.html");
    io(&path, crate::saved::put(&path, &index(&kept, &charts, &beside::beside(&drawn))))?;
    Ok(kept.len())
}

fn index(rows: &[(Row, String)], charts: &[Chart], today: &[Figure]) -> String {
    let body = markup! {
        a.skip href="#cards" { "Skip to the cards" }
        header {
            p.tool { "nandscope survey" }
            h1 { "Flash cards, measured" }
            p { (rows.len()) " entries. Erase block, open erase blocks and figures of benchmarks, each with where it comes from." }
        }
        main {
            // Without a script there is the browser's own search.
            p id="search" hidden {
                label for="q" { "Search (all words must occur)" } br;
                input type="search" id="q" autocomplete="off";
                " " span id="count" role="status" { (rows.len()) " cards" }
            }
            div.scroll role="region" tabindex="0" aria-label="Cards" {
                table.stack id="cards" {
                    caption { "All cards by name, published ones last" }
                    thead { tr {
                        @for h in ["Card", "Lot", "Price", "Maker", "Size", "Erase block", "Open, sequential", "Open, random", "From"] { th scope="col" { (h) } }
                    } }
                    tbody { @for (r, file) in rows { tr data-words=(words(r, file)) {
                        th scope="row" { a href=(format!("cards/{}.html", r.id)) { (r.name) } @if !file.is_empty() { br; span.muted.file { (file) } } }
                        (cell("Lot", &r.lot)) (cell("Price", &r.price)) (cell("Maker", &r.maker))
                        td.size { (r.capacity.map_or("-".into(), as_sold)) @if let Some(real) = r.real.filter(|_| r.counterfeit == Some(true)) { br; span.poor { "counterfeit: holds " (as_sold(real)) } } }
                        (cell("Erase block", &r.erase_block)) (cell("Open, sequential", &r.open_linear)) (cell("Open, random", &r.open_random))
                        td data-head="From" { (r.format) @if r.flags > 0 { " " span.care { "flagged" } } @if r.failing == Some(true) { " " span.poor { "failing" } } }
                    } } }
                }
            }
            @if !charts.is_empty() { section aria-labelledby="charts" {
                h2 id="charts" { "Speed and size" }
                p { "One would think that a denser card is a faster one. Each chart is of one host." }
                @for (i, c) in charts.iter().enumerate() { (drawn(c, &format!("chart-{i}"))) }
            } }
            (compared::drawn(today, "today", "Today's cards side by side"))
            section aria-labelledby="glossary" {
                h2 id="glossary" { "Glossary" }
                dl { @for (term, text) in GLOSSARY { dt { (term) } dd { (text) } } }
            }
        }
        script { (PreEscaped(SEARCH)) }
    };
    html::shell("Flash cards, measured", &format!("{STYLE}{LIST}"), &body)
}

/// A chart, what it says, and its numbers.
fn drawn(c: &Chart, id: &str) -> Markup {
    let f = c.figure();
    markup! {
        figure {
            figcaption { (f.title) }
            (PreEscaped(svg::inline(&f, id, svg::MOST)))
            p { (c.says()) "." }
            details {
                summary { "Numbers of this chart" }
                div.scroll role="region" tabindex="0" aria-label=(f.title) { table.numbers {
                    caption { "By maker, the fastest first" }
                    thead { tr { @for h in ["Maker", "Cards", "Median", "Lowest", "Highest"] { th scope="col" { (h) } } } }
                    tbody { @for m in c.makers() { tr {
                        th scope="row" { (if m.name.is_empty() { "not known" } else { &m.name }) } td { (m.cards) }
                        @for v in m.values { td { (three(v)) " " (c.unit) } }
                    } } }
                } }
            }
        }
    }
}

fn words(r: &Row, file: &str) -> String {
    let real = match (r.counterfeit, r.failing) {
        (Some(true), _) => "counterfeit",
        (_, Some(true)) => "failing",
        _ => "",
    };
    format!("{} {} {} {} {} {} {} {} {file} {real}", r.name, r.lot, r.maker, r.kind, r.id, r.format, r.erase_block, r.summary)
        .to_lowercase()
}

/// A cell; where rows stack, one without a value is left out.
fn cell(head: &str, t: &str) -> Markup {
    if t.is_empty() {
        markup! { td.none { "-" } }
    } else {
        markup! { td data-head=(head) { (t) } }
    }
}

/// Characters of an original, and figures of a card, that its page shows.
const ORIGINAL: usize = 100_000;
const FIGURES: usize = 500;

/// The first characters of a text, and how many there are more.
fn first(text: &str) -> (&str, usize) {
    match text.char_indices().nth(ORIGINAL) {
        Some((at, _)) => (&text[..at], text[at..].chars().count()),
        None => (text, 0),
    }
}

/// What is known of a card beside its figures, and where it is from.
fn facts(r: &Record) -> Vec<(&'static str, String)> {
    let (c, s) = (&r.card, &r.source);
    [
        ("maker", c.maker.clone()),
        ("part number", c.part.clone()),
        ("identity numbers", c.ids.clone()),
        ("kind", c.kind.clone()),
        ("size", c.capacity.map(as_sold)),
        ("made", c.made.clone()),
        ("price", c.price.clone()),
        ("lot", c.lot.clone()),
        ("measured with", s.tool.clone()),
        ("host", s.host.clone()),
        ("source", s.citation.clone()),
        ("file", (s.format != "published").then(|| s.file.clone())),
        ("added", (r.added > 0).then(|| date_text(r.added))),
    ]
    .into_iter()
    .filter_map(|(k, v)| Some((k, v?)))
    .collect()
}

fn source(r: &Record, facts: &[(&str, String)]) -> Markup {
    markup! {
        section aria-labelledby="card" {
            h2 id="card" { "Card and source" }
            dl { @for (k, v) in facts { dt { (k) } dd { (v) } } @if let Some(u) = &r.source.url { dt { "address" } dd { (u) } } }
            @if r.report().is_some() && !r.notes.is_empty() { ul { @for n in &r.notes { li { (n) } } } }
        }
    }
}

/// Lots side by side on one sheet: `table` has the names of the lots in its first line.
pub fn lots(table: &[(String, Vec<String>)], notes: &[String]) -> String {
    let Some(((_, names), lines)) = table.split_first().map(|(h, l)| (h.clone(), l)) else { return String::new() };
    let fake = |line: &str, cell: &str| matches!(line, "counterfeit" | "failing") && !cell.starts_with("0 of") && cell != "not tested";
    let body = markup! {
        header { p.tool { "nandscope survey" } h1 { "Lots side by side" } }
        main {
            div.scroll role="region" tabindex="0" aria-label="Lots" { table {
                caption { "Medians, with the lowest and the highest of the lot where they differ" }
                thead { tr { th scope="col" { "What" } @for n in &names { th scope="col" { (n) } } } }
                tbody { @for (name, cells) in lines { tr {
                    th scope="row" { (name) }
                    @for c in cells { td { @if fake(name, c) { span.poor { (c) } } @else if c.ends_with('*') { span.care { (c) } } @else { (c) } } }
                } } }
            } }
            ul { @for n in notes { li { (n) } } }
        }
    };
    let denser = "td:last-child{min-width:0}@media print{body{font-size:9pt;line-height:1.25}table{break-inside:auto}tr{break-inside:avoid}th,td{padding:.1em .4em}}";
    html::shell("Lots side by side", &format!("{STYLE}{denser}"), &body)
}

/// The page of a card: the report where there is one, else its figures.
fn page(r: &Record, samples: bool) -> String {
    let back = "<p><a href=\"../index.html\">All cards</a></p>";
    let facts = facts(r);
    if let Some(report) = r.report() {
        // Without samples a page has no plots: what today's cards draw is kept as pictures.
        let figures: Vec<Figure> = if samples { vec![] } else { beside::drawn_today(&report.runs).into_iter().map(|d| d.1).collect() };
        let report = if samples { report } else { report.without_samples() };
        let pictures = compared::drawn(&figures, "pictures", "Drawn").into_string();
        let card = pictures + &source(r, &facts).into_string();
        return html::page(&report).replacen("<header>", &format!("<header>{back}"), 1).replacen("</main>", &format!("{card}</main>"), 1);
    }
    let c = &r.card;
    let body: Markup = markup! {
        header { (PreEscaped(back)) h1 { (c.name) } p.muted { (r.source.format) } }
        main {
            (source(r, &facts))
            @if !r.findings.0.is_empty() {
                section aria-labelledby="found" {
                    h2 id="found" { "Found" }
                    div.scroll role="region" tabindex="0" aria-label="Found" { table {
                        caption { "What the figures say of the card" }
                        thead { tr { th scope="col" { "What" } th scope="col" { "Found" } th scope="col" { "Confidence" } } }
                        tbody { @for f in &r.findings.0 { tr {
                            th scope="row" { (f.quantity.title()) }
                            td { @match (f.number(), f.at_least) { (Some(v), _) => (f.quantity.show(v)), (None, Some(b)) => { "at least " (f.quantity.show(b.0)) }, _ => { "undecided, because " (f.reason.as_deref().unwrap_or("?")) } } }
                            td { @if f.confidence > 0.0 { (format!("{:.0} % {}", crate::finding::percent(f.confidence), grade(f.confidence))) } @else { "-" } }
                        } } }
                    } }
                }
            }
            @if !r.metrics.is_empty() {
                section aria-labelledby="figures" {
                    h2 id="figures" { "Figures" }
                    div.scroll role="region" tabindex="0" aria-label="Figures" { table {
                        caption { "Only figures under equal conditions can be compared; the host is part of the measurement" }
                        thead { tr { th scope="col" { "What" } th scope="col" { "Conditions" } th scope="col" { "Value" } th scope="col" { "Passes" } } }
                        tbody { @for m in r.metrics.iter().take(FIGURES) { tr {
                            th scope="row" { (m.name) } td { (m.conditions) } td.value { (three(m.value)) " " (m.unit) }
                            td { @if m.passes.is_empty() { "1" } @else { (m.over.word()) " of " (m.passes.iter().map(|p| three(*p)).collect::<Vec<_>>().join(", ")) } }
                        } } }
                    } }
                    @if r.metrics.len() > FIGURES { p.muted { (r.metrics.len() - FIGURES) " more figures are in the survey." } }
                }
            }
            @if !r.flags.is_empty() { section aria-labelledby="flags" { h2 id="flags" { "Flags" } ul { @for f in &r.flags { li { span.care { (f) } } } } } }
            @if !r.notes.is_empty() { section aria-labelledby="notes" { h2 id="notes" { "Notes" } ul { @for n in &r.notes { li { (n) } } } } }
            @if let Some(text) = r.original.as_str() {
                @let (shown, left) = first(text);
                details { summary { "The original" } pre tabindex="0" { (shown) } @if left > 0 { p.muted { (left) " more characters are in the survey." } } }
            }
        }
    };
    html::shell(&c.name, STYLE, &body)
}
