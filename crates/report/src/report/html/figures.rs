//! A page of figures, each with what it says: opens from disk, asks nothing of the network, no script.

use super::{POLICY, STYLE};
use crate::infer::figure::Figure;
use crate::report::svg;
use maud::{DOCTYPE, PreEscaped, html};

/// The page: notes first, then each figure below its sentence.
pub fn page(title: &str, notes: &[String], figures: &[(String, Figure)]) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header { h1 { (title) } }
                main id="main" {
                    ul { @for n in notes { li { (n) } } }
                    @for (i, (text, f)) in figures.iter().enumerate() {
                        section {
                            h2 { (f.title) }
                            p { (text) }
                            figure { (PreEscaped(svg::inline(f, &format!("f{i}"), svg::MOST))) }
                        }
                    }
                }
            }
        }
    }
    .into_string()
}
