//! What a queue of writes gains over one write at a time.

use super::beliefs::Case;
use super::figure::Figure;
use super::pipeline::{Analysis, Fit};
use super::queue_depth::{drawn, gained, of_rounds};
use crate::finding::{Finding, Quantity};

/// Judges runs of `queue-depth-write`.
pub struct QueueDepthWrite;

pub(super) const ANALYSES: &[&dyn Analysis] = &[&QueueDepthWrite];

/// Roles: writes, and the flush that ends a round and counts with it.
pub const WRITE: u8 = 0;
pub const FLUSH: u8 = 1;

/// Rounds of writes at each depth: more than of reads, since a card collects garbage in some of them.
pub const ROUNDS: usize = 9;

impl Analysis for QueueDepthWrite {
    fn name(&self) -> &'static str {
        "queue-depth-write"
    }

    fn fit(&self) -> Fit {
        Fit::Today
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        vec![gained(Quantity::QueueGainWrite, &of_rounds(run, |s| s.role == WRITE), "writes")]
    }

    fn figures(&self, run: &Case) -> Vec<Figure> {
        drawn(&of_rounds(run, |s| s.role == WRITE), "writes")
    }
}
