//! What was measured, as it is judged and saved.

use super::{GROUP, SMALL};
use crate::units::{MIB, Nanos, gcd};
use nandscope_stats::mean_within;
use serde::Serialize;

/// A rate with its bounds at 95 %, as bytes a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rate {
    pub requests: usize,
    /// Bytes of one request.
    pub len: u64,
    pub bytes_per_second: f64,
    pub low: f64,
    pub high: f64,
    /// The longest request, in ms.
    pub longest_ms: f64,
}

impl Rate {
    /// From the times of requests of one length; none from fewer than four groups.
    pub(super) fn of(len: u64, took: &[Nanos]) -> Option<Rate> {
        let groups: Vec<f64> = took.chunks_exact(GROUP).map(|g| g.iter().map(|t| t.secs()).sum()).collect();
        let (mean, half) = mean_within(&groups);
        if groups.len() < 4 || mean <= 0.0 {
            return None;
        }
        let rate = |seconds: f64| (len * GROUP as u64) as f64 / seconds;
        let longest_ms = took.iter().map(|t| t.millis()).fold(0.0, f64::max);
        // A card cannot be faster than its fastest group.
        let fastest = groups.iter().copied().fold(f64::INFINITY, f64::min);
        Some(Rate {
            requests: took.len(),
            len,
            bytes_per_second: rate(mean),
            low: rate(mean + half),
            high: rate((mean - half).max(fastest)),
            longest_ms,
        })
    }

    /// Requests a second.
    pub fn iops(&self) -> f64 {
        self.bytes_per_second / self.len as f64
    }
}

/// What became of pieces of 4 KiB that were written.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Fates {
    /// Pieces read back.
    pub read: u64,
    pub kept: u64,
    /// Show what was there before the last write.
    pub old: u64,
    pub zeros: u64,
    pub ones: u64,
    /// Show another place: where, and which.
    pub another: Vec<(u64, u64)>,
    /// Neither of these.
    pub garbage: u64,
    /// Pieces read three times that differed; on a card that was not written, too.
    pub changing: u64,
    /// Pieces read three times.
    pub read_again: u64,
}

impl Fates {
    /// Pieces that do not show what was written last.
    pub fn lost(&self) -> u64 {
        self.old + self.zeros + self.ones + self.another.len() as u64 + self.garbage
    }
}

/// So many writes that fail one after the other, while all reads succeed, are no bad places.
const REFUSED: u64 = 8;

/// Everything measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Measured {
    /// First and last byte of the window.
    pub window: [u64; 2],
    pub sequential_write: Option<Rate>,
    pub random_write: Option<Rate>,
    pub random_read: Option<Rate>,
    pub sequential_read: Option<Rate>,
    pub fates: Fates,
    /// Places that could not be read, ascending.
    pub unreadable: Vec<u64>,
    /// The last place that could be read.
    pub highest_read: u64,
    /// Places that could not be written, ascending.
    pub unwritable: Vec<u64>,
    /// Writes that failed one after the other, up to the last one.
    pub refused: u64,
    pub reads: u64,
    pub writes: u64,
    /// Places all over the card that were read, and where the last one lies.
    pub places: usize,
    /// The target keeps no content that could be read back.
    pub no_content: bool,
    /// Ctrl-C, or the card was gone.
    pub ended: Option<String>,
    /// What lies beside small discards; none where no discard was tried.
    pub beside_discards: Option<Fates>,
    /// What was to be tried, and there was no time for it.
    pub untried: Option<&'static str>,
    /// Addresses that nobody wrote and that show what this check wrote in its window: where, and which.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<(u64, u64)>,
    /// What was written all over the card, as it reads after everything else was written.
    pub later: Later,
    /// What was flushed and what was not, after the card was taken out and put in again.
    pub reinserted: Option<[Fates; 2]>,
    /// Bytes written and acknowledged.
    pub written: u64,
}

/// Places that showed what was written there soon afterwards, and what they show at the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Later {
    pub kept: Vec<u64>,
    pub lost: Vec<u64>,
    /// Kept, beyond the first of the lost ones and written after all of them: where a cache hid the loss, it may hide theirs still.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recent: Vec<u64>,
    /// Of the lost ones those that show another place of this check: where, and which.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<(u64, u64)>,
    /// Bytes written in between.
    pub after: u64,
    /// The card was taken out in between.
    pub reinserted: bool,
}

impl Later {
    /// Places that were read at the end.
    pub fn read(&self) -> usize {
        self.kept.len() + self.recent.len() + self.lost.len()
    }

    /// Where the flash of a card ends that hid it for a while: all places behind some byte are lost, more than one, and none before it; or
    /// the distance after which addresses repeat.
    pub fn end(&self) -> Option<u64> {
        if self.shown.len() > 1 {
            return period(&self.shown);
        }
        self.border().map(|b| b.0)
    }

    /// The end of the last place that is kept and the first that is lost, where all behind some byte are, more than one.
    pub fn border(&self) -> Option<(u64, u64)> {
        let (kept, lost) = (self.kept.iter().max()?, self.lost.iter().min()?);
        (self.shown.len() < 2 && self.lost.len() > 1 && kept < lost).then_some((kept + SMALL, *lost))
    }
}

/// After how many bytes addresses repeat that show others. No flash is smaller than 1 MiB: what is less apart is shown at a wrong place.
fn period(pairs: &[(u64, u64)]) -> Option<u64> {
    Some(pairs.iter().map(|(at, place)| at.abs_diff(*place)).fold(0, gcd)).filter(|apart| *apart >= MIB)
}

impl Measured {
    /// All reads succeed, and from some write on none does.
    pub fn takes_no_writes(&self) -> bool {
        self.refused >= REFUSED && self.refused == self.unwritable.len() as u64 && self.unreadable.is_empty()
    }

    /// The distance after which addresses repeat, where some show what was written elsewhere; none where that shows at one of several
    /// addresses that far apart only: a broken address line.
    pub fn repeats_after(&self) -> Option<u64> {
        let apart = period(&self.repeats)?;
        match self.repeats[..] {
            [(at, place)] if at.max(place) + apart <= self.highest_read || at.min(place) >= apart => None,
            _ => Some(apart),
        }
    }

    /// The least and the most that is there where some addresses show what was written elsewhere: places that were kept to the end in front of
    /// the lowest that shows again, and what that repeats after. A plain wrap would have shown the front of the card.
    pub fn repeating(&self) -> Option<(u64, u64)> {
        let (apart, lowest) = (self.repeats_after()?, self.repeats.iter().map(|(at, place)| *at.min(place)).min()?);
        let kept = self.later.kept.iter().map(|at| at + SMALL).filter(|end| *end <= lowest).max();
        Some((kept.unwrap_or(MIB.min(lowest)), lowest + apart))
    }

    /// Where the flash ends that can be read: several places cannot, nothing behind the first of them can, and all before it can.
    pub fn unreadable_end(&self) -> Option<u64> {
        let first = *self.unreadable.iter().min()?;
        // One bad place at the end is a bad place; a border shows at many.
        (self.unreadable.len() >= 3 && self.highest_read < first && self.highest_read > 0).then_some(self.highest_read + SMALL)
    }
}
