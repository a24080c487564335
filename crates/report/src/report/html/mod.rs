//! The report as one page: opens from disk, asks nothing of the network, sensible without a script, printable.
//!
//! Everything comes from the findings and figures of the report; an experiment that is added shows up without a change here.

mod bench;
mod bound;
pub mod compared;
mod data;
mod figures;
mod fragmentation;
mod sections;

pub use bench::page as bench_page;
pub use figures::page as figures_page;
pub use fragmentation::{map_page, page as lab_page};

use super::Report;
use super::figures::{Plot, plots};
use crate::lab::answer::Profile;
use crate::lab::experiment::Lab;
use maud::{DOCTYPE, Markup, PreEscaped, html};

pub const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// uPlot 1.6.32 by Leon Sorokin, MIT; its licence goes into the page.
const UPLOT: &str = include_str!("uplot.min.js");
const UPLOT_STYLE: &str = include_str!("uplot.min.css");
const UPLOT_LICENCE: &str = include_str!("uplot-LICENSE.txt");

/// Nothing may be fetched, whatever a report holds.
pub const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// The page of a report. The report goes into it as it is given: call [`Report::without_serial`] first for what is shared.
pub fn page(r: &Report) -> String {
    page_with(r, None, &[])
}

/// The same with the fragmentation of a volume on the card, where that was measured; `profiles` are the uses it is judged for.
pub fn page_with(r: &Report, lab: Option<&Lab>, profiles: &[Profile]) -> String {
    let whole = bound::download(r.json()).map(|t| data::address("application/json", &t));
    let (r, runs) = &bound::report(r);
    let findings = whole.is_none().then(|| r.without_samples().json());
    let findings = findings.and_then(bound::download).map(|t| data::address("application/json", &t));
    let lab = lab.map(bound::lab);
    let lab = lab.as_ref();
    let title = sections::name(r);
    let conditions = bound::tables(&r.runs, sections::conditions);
    let mut figures = [plots(r), lab.map(fragmentation::plots).unwrap_or_default()].concat();
    bound::fitted(&mut figures, |figures, left| {
        let (charts, plots): (Vec<Plot>, Vec<Plot>) = figures.iter().cloned().partition(|p| p.experiment == "frag");
        let body = html! {
            a.skip href="#main" { "Skip to the answer" }
            (sections::head(r, &title))
            nav aria-label="On this page" {
                ul {
                    @for (id, text) in sections::CONTENTS.into_iter().filter(|c| !r.runs.is_empty() || !["stalls", "numbers"].contains(&c.0)) {
                        @if id == "commands" && lab.is_some() { li { a href="#fragmentation" { "Fragmentation" } } }
                        li { a href=(format!("#{id}")) { (text) } }
                    }
                }
            }
            main id="main" tabindex="-1" {
                (sections::uses(r))
                (sections::advice(r))
                (sections::verdicts(r, &plots))
                (sections::declared(r))
                @if !r.runs.is_empty() { (sections::stalls(r, &plots)) }
                @if let Some(lab) = lab { (fragmentation::section(lab, profiles, &charts)) }
                (sections::commands(r))
                @if !r.runs.is_empty() { (sections::raw(r, &plots, &conditions, [left, *runs])) }
                (sections::glossary())
            }
            (sections::foot(r, whole.as_deref(), findings.as_deref()))
            // A page without plots needs no script.
            @if !plots.is_empty() || lab.is_some() { (scripts(&[plots, charts].concat(), lab)) }
        };
        let style = if figures.is_empty() { STYLE.to_string() } else { style() };
        shell(&title, &style, &body)
    })
}

/// The answer alone, for two printed sheets: no plots, no samples, no glossary.
pub fn brief(r: &Report) -> String {
    let (r, _) = &bound::report(&r.without_samples());
    let title = sections::name(r);
    let body = html! {
        (sections::head(r, &title))
        main id="main" {
            (sections::advice(r))
            (sections::uses(r))
            (sections::table(r, false))
            @if !r.declared.is_null() { (sections::declared(r)) }
        }
        (sections::foot(r, None, None))
    };
    shell(&title, &format!("{STYLE}{BRIEF}"), &body)
}

/// Denser, where it is printed.
const BRIEF: &str =
    "@media print{body{font-size:9.5pt;line-height:1.3}table{break-inside:auto}tr{break-inside:avoid}th,td{padding:.15em .5em}}";

fn style() -> String {
    format!("{STYLE}{UPLOT_STYLE}")
}

/// What makes the plots and maps answer to pointer and keys, with its data.
fn scripts(plots: &[Plot], lab: Option<&Lab>) -> Markup {
    html! {
        script type="application/json" id="figures" { (PreEscaped(data::figures(plots))) }
        script type="application/json" id="maps" { (PreEscaped(lab.map_or("[]".into(), fragmentation::maps))) }
        script { (PreEscaped(format!("/*!\n{}*/", UPLOT_LICENCE.replace("*/", "* /")))) (PreEscaped(UPLOT)) }
        script { (PreEscaped(SCRIPT)) }
    }
}

/// A page without the rest of the world.
pub fn shell(title: &str, style: &str, body: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " - nandscope" }
                style { (PreEscaped(style)) }
            }
            body { (body) }
        }
    }
    .into_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Finding, Quantity};
    use crate::report::bare as report;

    #[test]
    fn hostile_text_stays_text() {
        let mut r = report(vec![Finding::decided(Quantity::EraseBlock, 4194304.0, 0.99).evidence("</script><img src=x onerror=alert(1)>")]);
        r.target.model = Some("<b>\"&".into());
        r.warnings.push("</style><script>alert(2)</script>".into());
        let p = page(&r);
        assert!(!p.contains("<img") && !p.contains("<script>alert") && !p.contains("<b>\""));
        assert!(p.contains("&lt;b&gt;"));
    }

    #[test]
    fn nothing_is_fetched() {
        let without = page(&report(vec![Finding::decided(Quantity::Page, 8192.0, 0.9)]));
        assert!(!without.contains(UPLOT), "a page without plots needs no script");
        let p = without + &scripts(&[], None).into_string();
        let own = p.replace(UPLOT, "").replace(UPLOT_LICENCE, "").replace("http://www.w3.org/2000/svg", "");
        for word in ["src=\"http", "href=\"http", "url(http", "@import", "<link", "<iframe"] {
            assert!(!own.contains(word), "{word}");
        }
        assert!(p.contains("The MIT License (MIT)"), "uPlot's licence stays with it");
    }

    #[test]
    fn an_undecided_card_has_a_page_too() {
        let p = page(&report(vec![Finding::undecided(Quantity::EraseBlock, "the reads are flat")]));
        assert!(p.contains("undecided") && p.contains("the reads are flat") && p.contains("not measured"));
    }
}
