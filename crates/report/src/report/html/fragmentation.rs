//! The fragmentation of a volume in the page: maps over the AUs of the card, charts, the answer.

use super::sections::scroll;
use super::{bound, data};
use crate::advise::frag::{answers, uses};
use crate::lab::answer::Profile;
use crate::lab::experiment::Lab;
use crate::lab::fragment::{Cell, Fragmentation, Map};
use crate::report::figures::{Detail, Plot, slug};
use crate::report::frag as report;
use crate::report::maps;
use crate::units::Bytes;
use maud::{Markup, PreEscaped, html};
use serde_json::{Value, json};

/// The charts, for the script and as drawings.
pub fn plots(lab: &Lab) -> Vec<Plot> {
    let figures = report::figures(lab).into_iter().filter(|f| f.series.iter().any(|s| !s.points.is_empty()));
    figures
        .map(|f| Plot {
            name: slug(&format!("frag {}", f.title)),
            experiment: "frag".into(),
            raw: false,
            figure: f,
            detail: Detail::default(),
        })
        .collect()
}

/// The maps as JSON that may stand inside a script element: bytes of a cell, share in use in percent, pieces.
pub fn maps(lab: &Lab) -> String {
    let all: Vec<Value> = lab
        .conditions
        .iter()
        .map(|c| {
            let m = maps::shown(&c.map);
            json!({
                "au": m.au,
                "used": m.cells.iter().map(|c| (c.used * 100.0).round() as i64).collect::<Vec<_>>(),
                "pieces": m.cells.iter().map(|c| c.pieces).collect::<Vec<_>>(),
            })
        })
        .collect();
    data::script(&Value::Array(all))
}

fn legend() -> Markup {
    let names = ["1 piece", "2 or 3", "4 to 15", "16 to 63", "64 or more"];
    html! {
        p.legend { "Pieces in a square: " @for (i, n) in names.iter().enumerate() {
            svg.key viewBox="0 0 12 12" aria-hidden="true" { path class=(format!("m{i}")) d="M0 0h12v12h-12z" {} } (n) " "
        } }
    }
}

fn numbers(m: &Map, label: &str) -> Markup {
    const MOST: usize = 200;
    let mut worst: Vec<(usize, &Cell)> = m.cells.iter().enumerate().filter(|(_, c)| c.used > 0.005).collect();
    nandscope_stats::sort_by(&mut worst, |a, b| b.1.pieces.cmp(&a.1.pieces).then(a.0.cmp(&b.0)));
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

/// One map with its caption and its numbers; `index`: its place in the data of the script.
fn map(m: &Map, index: Option<usize>, title: &str, state: &Fragmentation) -> Markup {
    let m = maps::shown(m);
    let words = maps::summary(&m);
    html! {
        figure.map data-map=[index] {
            figcaption { (title) ": " (report::fragmentation(state)) }
            div.squares { (PreEscaped(maps::squares(&m, &format!("map-{}", index.unwrap_or(0)), &format!("{title}: {words}")))) }
            p.muted { (words) "." }
            (numbers(&m, title))
        }
    }
}

/// A map alone as one page that opens from disk.
pub fn map_page(target: &str, what: &str, state: &Fragmentation, m: &Map) -> String {
    let title = format!("Map: {target}");
    let body = html! {
        main id="main" {
            h1 { (title) }
            p { (what) }
            (legend())
            (map(m, None, "The volume", state))
        }
    };
    super::shell(&title, &super::style(), &body)
}

/// Maps, charts and the answer: a part of a report's page, or the whole of its own.
pub fn section(lab: &Lab, profiles: &[Profile], plots: &[Plot]) -> Markup {
    html! {
        section aria-labelledby="fragmentation" {
            h2 id="fragmentation" { "Fragmentation" }
            p { (lab.target) ", " (lab.filesystem) ", clusters of " (Bytes(lab.conditions.first().map_or(0, |c| c.space.cluster)))
                ". The volume over the erase blocks of the card, in each state that was measured; a file in many pieces makes the card open many of them." }
            @let uses = uses(lab, profiles);
            @if !uses.is_empty() {
                p { "Is it worth the trouble to defragment?" }
                ul { @for (name, verdict) in &uses { li { strong { (name) ": " } (verdict) } } }
            }
            @if lab.conditions.is_empty() { p { "No state was measured." } } @else { (legend()) }
            @for (i, c) in lab.conditions.iter().enumerate() {
                (map(&c.map, Some(i), &format!("The volume {}", c.state.name()), &c.fragmentation))
            }
            @for p in plots { (super::sections::figure(p)) }
            @let answers = answers(lab);
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
    let lab = &bound::lab(lab);
    let title = format!("Fragmentation: {}", lab.target);
    let mut charts = plots(lab);
    bound::fitted(&mut charts, |plots, _| whole(lab, profiles, &title, plots))
}

fn whole(lab: &Lab, profiles: &[Profile], title: &str, plots: &[Plot]) -> String {
    let body = html! {
        a.skip href="#main" { "Skip to the maps" }
        header {
            p.tool { "nandscope " (lab.version) ": does fragmentation matter on this card?" }
            h1 { (title) }
        }
        main id="main" tabindex="-1" { (section(lab, profiles, plots)) (super::sections::glossary()) }
        footer {
            @if let Some(text) = bound::download(serde_json::to_string(lab).unwrap_or_default()) {
                p { a href=(data::address("application/json", &text)) download="frag.json" { "Download the data" } " (JSON with every measurement)" }
            } @else { p { "The data are in the file this page was made from; they are too large for a page." } }
            p.muted { "Plots: uPlot 1.6.32, MIT licence, (c) 2022 Leon Sorokin. This page needs no network." }
        }
        (super::scripts(plots, Some(lab)))
    };
    super::shell(title, &super::style(), &body)
}
