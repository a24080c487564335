//! What to do about what was found.

mod advice;
pub mod bench;
pub mod commands;
pub mod driver;
pub mod frag;
pub mod price;
pub mod quirk;
pub mod uses;
pub mod ways;

pub use advice::{advice, distrust};

use crate::host::facts::TargetKind;
use crate::saved::Report;
use crate::saved::counterfeit::genuine;

/// What to do about the findings of a report, on a card of its size.
pub fn advise(r: &Report) -> Vec<String> {
    let first = distrust(&r.findings, r.reports());
    // No more time and no write makes a card of an image.
    let more = match r.target.kind {
        TargetKind::Image => vec!["probe the card itself: nandscope list shows its name".into()],
        _ => ways::ways(r),
    };
    first.into_iter().chain(advice(&r.findings)).chain(advice::waits(r)).chain(more).collect()
}

/// Advice and the fields that follow from the findings; to be called where those have changed.
pub fn conclude(r: &mut Report) {
    r.advice = advise(r);
    r.counterfeit = genuine(&r.findings, r.reports()).map(|g| !g);
    r.reported_bytes = Some(r.reports());
    r.real_bytes = r.is_counterfeit().map(|c| c.holds).or(r.counterfeit.map(|_| r.reports()));
}
