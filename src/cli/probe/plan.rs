//! What a probe says before it touches anything.

use crate::units::{Bytes, Nanos, about};
use std::ops::Range;

/// What probes took of simulated cards: MiB written and seconds of their time, of half of the cards and of nine of ten at the most.
pub(super) struct Needs {
    half: (u64, f64),
    nine: (u64, f64),
}

impl Needs {
    /// Of 348 cards, 120 random, 120 unusual and 108 of the second family, seeds from 5601 on (`fit_confidence probe`, `score`).
    pub(super) const HALF_AN_HOUR: Needs = Needs { half: (162, 186.0), nine: (3672, 848.0) };
    /// Of 174 of them, within a minute and one GiB, and the time that the capacity test may take beside it.
    pub(super) const A_MINUTE: Needs = Needs { half: (74, 62.0), nine: (472, 94.0) };

    pub(super) fn say(&self) {
        let [(bytes, spent), (more, longer)] = [self.half, self.nine].map(|(mib, s)| (about(mib << 20), Nanos::from_secs_f64(s)));
        tell!("half of the simulated cards needed {bytes} and {spent} or less, nine of ten {more} and {longer}");
    }
}

/// The first lines: what will be touched (U46).
#[allow(clippy::too_many_arguments)]
pub(super) fn plan(
    target: &str,
    writes: Option<Bytes>,
    region: &Range<u64>,
    signatures: &[String],
    (time, own): (Nanos, Option<Nanos>),
    (undo, simulated): (bool, bool),
    count: usize,
) {
    let what = if count == 1 { "1 experiment".to_string() } else { format!("{count} experiments") };
    let place = format!("bytes {} to {}", region.start, region.end);
    let own = own.map_or(String::new(), |t| format!(", + up to {:.0} s for the capacity test", t.secs()));
    tell!("{target}: {what}, at most {time}{own}");
    if let Some(writes) = writes {
        let drive = writes.0 as f64 / (region.end - region.start).max(1) as f64;
        tell!("will write at most {} ({drive:.3} times the region), only in {place}", writes);
        if undo {
            tell!("the old content is kept in a journal and put back at the end, within that time");
        } else if !simulated {
            tell!("the old content is NOT put back");
        }
        for s in signatures {
            tell!("the target holds: {s}");
        }
    } else {
        tell!("will write nothing; reads {place}");
    }
}
