//! Whether the flash is as large as the card says: which places were kept, lost or shown elsewhere.

mod judge;
mod traces;

pub use traces::*;

use super::beliefs::Case;
use super::figure::Figure;
use super::pipeline::Analysis;
use crate::finding::Finding;
use crate::samples::Run;
use crate::units::{KIB, MIB, Nanos};

/// Judges runs of `capacity`.
pub struct Capacity;

pub(super) const ANALYSES: &[&dyn Analysis] = &[&Capacity];

/// Roles of the samples.
pub const STAMP: u8 = 0;
pub const KEPT: u8 = 1;
pub const LOST: u8 = 2;
pub const FAILS: u8 = 3;
pub const ANOTHER: u8 = 4;
pub const SHOWN: u8 = 5;
pub const NOTHING: u8 = 6;
pub const UNREAD: u8 = 7;
pub const READS: u8 = 8;
pub const AT_ONCE: u8 = 9;
pub const MISSED: u8 = 10;
pub const STALE: u8 = 11;

/// Places over the region, and bytes of each.
pub const PLACES: u64 = 24;
pub const PLACE: u64 = 4 * KIB;
/// Key of the first cell: 1 where [`FEW`] places do once they took [`ENOUGH`], for where each takes a merge it takes another when it is put
/// back.
pub const SPARES: &str = "sparing";
pub const FEW: usize = PLACES as usize / 3;
pub const ENOUGH: Nanos = Nanos(400_000_000);
/// Key of cells that read a place once more, when other experiments wrote elsewhere.
pub const LATER: &str = "later";
/// Key of the cell that writes places anew when all is done, and reads them.
pub const ANEW: &str = "anew";
/// Setting of a run: bytes at different addresses that they wrote.
pub const SINCE: &str = "written_since";
/// Single sectors that look for the stretch elsewhere; more where it would become longer than is written.
pub const LOOKS: u64 = 4096;
pub const CHUNK: u64 = 256 * KIB;
/// Bytes that are written first.
pub const FRONT: u64 = CHUNK / 32;
/// How closely the border is bisected.
pub const CLOSE: u64 = MIB;

impl Analysis for Capacity {
    fn name(&self) -> &'static str {
        "capacity"
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        vec![judge::judge(run)]
    }

    fn figures(&self, _run: &Case) -> Vec<Figure> {
        vec![]
    }
}

/// Places all over the card that a run wrote and found kept.
pub fn places_kept(run: &Run) -> Vec<u64> {
    last_seen(run).into_iter().filter(|(_, role)| *role == KEPT).map(|(at, _)| at).collect()
}

/// The longest write of one of the places.
pub fn longest_place(run: &Run) -> Nanos {
    let places = run.samples.iter().filter(|s| s.role == STAMP && s.len == PLACE);
    places.map(|s| s.took).max().unwrap_or_default()
}

/// Did places not keep what they were given, in no way that says where the flash ends?
pub fn broken(run: &Run) -> Option<String> {
    let f = judge::judge(run);
    let found = f.value.is_some() || f.at_least.is_some() || f.evidence.is_empty();
    (!found).then(|| format!("{}: {}", f.reason.unwrap_or_default(), f.evidence.join("; ")))
}
