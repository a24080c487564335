//! A comparison as a page: what differs, and the figures that the cards share.

use super::{STYLE, shell};
use crate::infer::figure::Figure;
use crate::report::figures::summary;
use crate::report::svg;
use maud::{Markup, PreEscaped, html};

/// Two cards side by side.
pub struct Pair {
    pub title: String,
    /// The names of the columns of the two.
    pub cards: [String; 2],
    /// What is read first.
    pub lines: Vec<String>,
    /// What, of the one, of the other, and what that means.
    pub rows: Vec<[String; 4]>,
}

/// The page: the cards, their pictures, then each pair. `classes` is a table of two lots as text, where there is one.
pub fn page(title: &str, cards: &[String], classes: &str, pairs: &[Pair], figures: &[Figure], notes: &[String]) -> String {
    let body = html! {
        header {
            p.tool { "nandscope compare" }
            h1 { (title) }
            ul { @for c in cards { li { (c) } } }
        }
        main id="main" {
            @if !classes.is_empty() { section aria-labelledby="classes" {
                h2 id="classes" { "Two classes" }
                pre tabindex="0" { (classes) }
            } }
            (drawn(figures, "pictures", "Drawn together"))
            @for (i, p) in pairs.iter().enumerate() { section aria-labelledby=(format!("pair-{i}")) {
                h2 id=(format!("pair-{i}")) { (p.title) }
                @if !p.lines.is_empty() { ul { @for l in &p.lines { li { (l) } } } }
                @if p.rows.is_empty() { p { "Nothing that both measured." } } @else {
                    div.scroll role="region" tabindex="0" aria-label=(p.title) { table {
                        caption { "Confidence in brackets; a ratio has its interval of 95 %" }
                        thead { tr { th scope="col" { "What" } th scope="col" { (p.cards[0]) } th scope="col" { (p.cards[1]) } th scope="col" { "Difference" } } }
                        tbody { @for [what, a, b, verdict] in &p.rows { tr { th scope="row" { (what) } td { (a) } td { (b) } td { (verdict) } } } }
                    } }
                }
            } }
            @if !notes.is_empty() { section aria-labelledby="notes" { h2 id="notes" { "Notes" } ul { @for n in notes { li { (n) } } } } }
        }
    };
    shell(title, STYLE, &body)
}

/// Figures below each other, each with what it says; nothing where there are none.
pub fn drawn(figures: &[Figure], id: &str, heading: &str) -> Markup {
    html! {
        @if !figures.is_empty() { section aria-labelledby=(id) {
            h2 id=(id) { (heading) }
            @for (i, f) in figures.iter().enumerate() {
                figure {
                    figcaption { (f.title) }
                    (PreEscaped(svg::inline(f, &format!("{id}-{i}"), svg::MOST)))
                    details { summary { "In words" } p { (summary(f)) } }
                }
            }
        } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::figure::Series;

    #[test]
    fn names_of_cards_stay_text_and_figures_are_drawn() {
        let hostile = "<script>alert(1)</script>";
        let series = ["A", hostile].map(|n| Series { name: n.into(), points: vec![(1.0, 2.0), (2.0, 1.0)] });
        let f = Figure { title: "rate".into(), x: "MiB".into(), y: "MB/s".into(), log_x: false, log_y: false, series: series.into() };
        let row = ["rate", "1 MB/s", "2 MB/s", "differs"].map(String::from);
        let pair = Pair { title: "A and B".into(), cards: ["A".into(), "B".into()], lines: vec![], rows: vec![row] };
        let p = page("A and B", &[hostile.into()], "", &[pair], &[f], &[]);
        assert!(!p.contains("<script>") && p.contains("&lt;script&gt;"), "{p}");
        assert_eq!((p.matches("<svg").count(), p.matches("<polyline").count()), (1, 2));
        assert!(p.contains("<td>differs</td>"));
    }
}
