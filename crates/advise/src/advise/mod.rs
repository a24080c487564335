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

use crate::finding::Quantity;
use crate::host::class::{BUSY, busy_ms};
use crate::host::declared::Kind;
use crate::host::facts::TargetKind;
use crate::saved::Report;
use crate::saved::counterfeit::genuine;
use crate::units::three;
use serde_json::json;

/// What to do about the findings of a report, on a card of its size.
pub fn advise(r: &Report) -> Vec<String> {
    let first = distrust(&r.findings, r.reports());
    // No more time and no write makes a card of an image.
    let more = match r.target.kind {
        TargetKind::Image => vec!["probe the card itself: nandscope list shows its name".into()],
        _ => ways::ways(r),
    };
    first.into_iter().chain(advice(&r.findings)).chain(waits(r)).chain(more).collect()
}

/// Of a card on which a small write takes longer than the SD standard allows, and much longer than the merges that were found.
fn waits(r: &Report) -> Option<String> {
    let ms = r.accesses()?.longest_small_write_ns?.millis();
    let merge = r.findings.value(Quantity::CloseCostMs, 0.75).unwrap_or(0.0);
    // An eMMC gives a limit of its own, and an image is no card.
    let other = r.target.kind == TargetKind::Image || r.declared["kind"] == json!(Kind::Mmc);
    (!other && ms > busy_ms(r.reports()).max(1.5 * merge)).then(|| {
        format!("give what must not wait a buffer: a write of 64 KiB or less took {} ms, and the SD standard allows {BUSY}", three(ms))
    })
}

/// Advice and the fields that follow from the findings; to be called where those have changed.
pub fn conclude(r: &mut Report) {
    r.advice = advise(r);
    r.counterfeit = genuine(&r.findings, r.reports()).map(|g| !g);
    r.reported_bytes = Some(r.reports());
    r.real_bytes = r.is_counterfeit().map(|c| c.holds).or(r.counterfeit.map(|_| r.reports()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Finding;
    use crate::saved::accesses::Accesses;
    use crate::saved::bare;
    use crate::units::Nanos;

    #[test]
    fn a_long_wait_is_told_where_no_merge_says_it() {
        let of = |ms: u64, size: u64, merge: Option<f64>| {
            let mut r = bare(merge.map(|ms| Finding::decided(Quantity::CloseCostMs, ms, 0.95)).into_iter().collect());
            (r.target.size, r.target.offset) = (size, 0);
            r.accesses = Some(Accesses { longest_small_write_ns: Some(Nanos(ms * 1_000_000)), ..Accesses::default() });
            r
        };
        let told = |r: &Report| waits(r).is_some();
        assert!(told(&of(400, 16 << 30, None)) && !told(&of(200, 16 << 30, None)));
        assert!(told(&of(700, 64 << 30, None)) && !told(&of(400, 64 << 30, None)), "SDXC cards may take 500 ms");
        assert!(told(&of(700, 16 << 30, Some(300.0))) && !told(&of(400, 16 << 30, Some(300.0))));
        let mut emmc = of(700, 16 << 30, None);
        emmc.declared = json!({ "kind": "mmc" });
        assert!(!told(&emmc));
    }
}
