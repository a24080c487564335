//! The fragmentation of a volume in the page: maps over the AUs of the card, charts, the answer.

use super::data;
use super::sections::scroll;
use crate::lab::answer::Profile;
use crate::lab::experiment::Lab;
use crate::lab::fragment::{Cell, Map};
use crate::report::figures::{Plot, slug};
use crate::report::frag as report;
use crate::units::Bytes;
use maud::{Markup, PreEscaped, html};
use serde_json::{Value, json};
use std::fmt::Write;

/// Cells of a row.
const COLUMNS: usize = 64;
/// Rows at most: neighbours are joined beyond that.
const ROWS: usize = 24;
/// Pieces from which on a cell is of the next colour: one file or free space alone, 2, 4, 16, 64.
const PIECES: [u32; 4] = [2, 4, 16, 64];

/// The charts, for the script and as drawings.
pub fn plots(lab: &Lab) -> Vec<Plot> {
    let figures = report::figures(lab).into_iter().filter(|f| f.series.iter().any(|s| !s.points.is_empty()));
    figures.map(|f| Plot { name: slug(&format!("frag {}", f.title)), experiment: "frag".into(), raw: false, figure: f }).collect()
}

fn shown(m: &Map) -> Map {
    m.joined(COLUMNS * ROWS)
}

/// The maps as JSON that may stand inside a script element: bytes of a cell, share in use in percent, pieces.
pub fn maps(lab: &Lab) -> String {
    let all: Vec<Value> = lab
        .conditions
        .iter()
        .map(|c| {
            let m = shown(&c.map);
            json!({
                "au": m.au,
                "used": m.cells.iter().map(|c| (c.used * 100.0).round() as i64).collect::<Vec<_>>(),
                "pieces": m.cells.iter().map(|c| c.pieces).collect::<Vec<_>>(),
            })
        })
        .collect();
    data::script(&Value::Array(all))
}

fn level(c: &Cell) -> usize {
    PIECES.iter().filter(|p| c.pieces >= **p).count()
}

/// The volume as squares, a row of 64 after another: the fuller the square, the more is in use; the colour tells the pieces.
fn grid(m: &Map, id: &str, what: &str) -> String {
    const SIDE: f64 = 12.0;
    let rows = m.cells.len().div_ceil(COLUMNS).max(1);
    let mut o = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" aria-labelledby=\"{id}-t\"><title id=\"{id}-t\">{}</title>",
        COLUMNS as f64 * SIDE,
        rows as f64 * SIDE,
        crate::report::svg::escape(what)
    );
    for (i, c) in m.cells.iter().enumerate() {
        let (x, y) = ((i % COLUMNS) as f64 * SIDE, (i / COLUMNS) as f64 * SIDE);
        let _ = write!(o, "<path class=\"empty\" d=\"M{x} {y}h11v11h-11z\"/>");
        // The part in use rises from the bottom of the square; the least of it is seen.
        let high = if c.used <= 0.005 { 0.0 } else { (c.used * 11.0).clamp(1.0, 11.0) };
        if high > 0.0 {
            let _ = write!(o, "<path class=\"m{}\" d=\"M{x} {:.1}h11v{high:.1}h-11z\"/>", level(c), y + 11.0 - high);
        }
    }
    o + "</svg>"
}

fn legend() -> Markup {
    let names = ["1 piece", "2 or 3", "4 to 15", "16 to 63", "64 or more"];
    html! {
        p.legend { "Pieces in a square: " @for (i, n) in names.iter().enumerate() {
            svg.key viewBox="0 0 12 12" aria-hidden="true" { path class=(format!("m{i}")) d="M0 0h12v12h-12z" {} } (n) " "
        } }
    }
}

/// What a map shows, in words.
fn summary(m: &Map) -> String {
    let n = m.cells.len();
    let used = m.cells.iter().filter(|c| c.used > 0.005).count();
    let worst = m.cells.iter().enumerate().max_by_key(|(_, c)| c.pieces);
    let worst = worst.map_or(String::new(), |(i, c)| format!("; most pieces: {} in the one at {}", c.pieces, Bytes(i as u64 * m.au)));
    format!("{n} squares of {}, {used} of them in use{worst}", Bytes(m.au))
}

fn numbers(m: &Map, label: &str) -> Markup {
    const MOST: usize = 200;
    let mut worst: Vec<(usize, &Cell)> = m.cells.iter().enumerate().filter(|(_, c)| c.used > 0.005).collect();
    worst.sort_by(|a, b| b.1.pieces.cmp(&a.1.pieces).then(a.0.cmp(&b.0)));
    let all = worst.len();
    worst.truncate(MOST);
    html! {
        details {
            summary { "Numbers of this map" }
            (scroll(label, &html! {
                table.numbers {
                    caption { "Squares in use, the most pieces first" @if all > MOST { ", the first " (MOST) " of " (all) } }
                    thead { tr { th scope="col" { "From" } th scope="col" { "In use" } th scope="col" { "Pieces" } } }
                    tbody { @for (i, c) in &worst { tr {
                        th scope="row" { (Bytes(*i as u64 * m.au)) } td { (format!("{:.0} %", c.used * 100.0)) } td { (c.pieces) }
                    } } }
                }
            }))
        }
    }
}

/// Maps, charts and the answer: a part of a report's page, or the whole of its own.
pub fn section(lab: &Lab, profiles: &[Profile], plots: &[Plot]) -> Markup {
    html! {
        section aria-labelledby="fragmentation" {
            h2 id="fragmentation" { "Fragmentation" }
            p { (lab.target) ", " (lab.filesystem) ", clusters of " (Bytes(lab.conditions.first().map_or(0, |c| c.space.cluster)))
                ". The volume over the erase blocks of the card, in each state that was measured; a file in many pieces makes the card open many of them." }
            @let uses = report::uses(lab, profiles);
            @if !uses.is_empty() {
                p { "Is it worth the trouble to defragment?" }
                ul { @for (name, verdict) in &uses { li { strong { (name) ": " } (verdict) } } }
            }
            @if lab.conditions.is_empty() { p { "No state was measured." } } @else { (legend()) }
            @for (i, c) in lab.conditions.iter().enumerate() {
                @let m = shown(&c.map);
                @let title = format!("The volume {}", c.state.name());
                figure.map data-map=(i) {
                    figcaption { (title) ": " (report::fragmentation(&c.fragmentation)) }
                    div.squares { (PreEscaped(grid(&m, &format!("map-{i}"), &format!("{title}: {}", summary(&m))))) }
                    p.muted { (summary(&m)) "." }
                    (numbers(&m, &title))
                }
            }
            @for p in plots { (super::sections::figure(p)) }
            @let answers = report::answers(lab);
            @if !answers.is_empty() { (scroll("Effects", &html! {
                table {
                    caption { "How much slower or faster one state is than another, by the size of the file, at 95 %" }
                    thead { tr { th scope="col" { "State" } th scope="col" { "Against" } th scope="col" { "What" } th scope="col" { "Effect" } } }
                    tbody { @for a in &answers { tr {
                        th scope="row" { (a.states[0].name()) } td { (a.states[1].name()) } td { (a.what.name()) } td { (a.sizes) }
                    } } }
                }
            })) }
            details {
                summary { "The whole report as text" }
                pre tabindex="0" { (report::text(lab, profiles, 100)) }
            }
        }
    }
}

/// The experiment alone as one page.
pub fn page(lab: &Lab, profiles: &[Profile]) -> String {
    let title = format!("Fragmentation: {}", lab.target);
    let plots = plots(lab);
    let body = html! {
        a.skip href="#main" { "Skip to the maps" }
        header {
            p.tool { "nandscope " (lab.version) ": does fragmentation matter on this card?" }
            h1 { (title) }
        }
        main id="main" tabindex="-1" { (section(lab, profiles, &plots)) (super::sections::glossary()) }
        footer {
            @let text = serde_json::to_string(lab).unwrap_or_default();
            p { a href=(data::address("application/json", &text)) download="frag.json" { "Download the data" } " (JSON with every measurement)" }
            p.muted { "Plots: uPlot 1.6.32, MIT licence, (c) 2022 Leon Sorokin. This page needs no network." }
        }
        (super::scripts(&plots, Some(lab)))
    };
    super::shell(&title, &super::style(), &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_tell_use_and_pieces() {
        let cell = |used, pieces| Cell { used, pieces };
        let m = Map { au: 4 << 20, cells: vec![cell(0.0, 1), cell(1.0, 1), cell(0.5, 5), cell(0.001, 90), cell(0.02, 64)] };
        let g = grid(&m, "x", "a < b");
        assert_eq!(g.matches("class=\"empty\"").count(), 5);
        assert!(
            g.contains("a &lt; b") && g.contains("class=\"m0\" d=\"M12 0.0h11v11.0") && g.contains("class=\"m2\" d=\"M24 5.5h11v5.5"),
            "{g}"
        );
        assert!(g.contains("class=\"m4\" d=\"M48 10.0h11v1.0") && g.matches("class=\"m").count() == 3, "next to nothing is nothing: {g}");
        assert_eq!(summary(&m), "5 squares of 4 MiB, 3 of them in use; most pieces: 90 in the one at 12 MiB");
        let large = Map { au: 1 << 20, cells: vec![cell(1.0, 1); 100_000] };
        assert!(shown(&large).cells.len() <= COLUMNS * ROWS);
    }
}
