//! What the bytes of a card are, for those who ask: sparse, in pieces of 4 KiB.

use crate::model::Beyond;
use std::collections::HashMap;

const PIECE: u64 = 4096;

/// The bytes that were stored; everything else reads as zeros.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    pieces: HashMap<u64, Box<[u8]>>,
}

impl Content {
    pub fn load(&self, at: u64, into: &mut [u8]) {
        walk(at, into.len(), |piece, inside, range| {
            let to = &mut into[range];
            match self.pieces.get(&piece) {
                Some(p) => to.copy_from_slice(&p[inside..inside + to.len()]),
                None => to.fill(0),
            }
        });
    }

    pub fn store(&mut self, at: u64, from: &[u8]) {
        walk(at, from.len(), |piece, inside, range| {
            let from = &from[range];
            let p = self.pieces.entry(piece).or_insert_with(|| vec![0; PIECE as usize].into_boxed_slice());
            p[inside..inside + from.len()].copy_from_slice(from);
        });
    }

    /// The range reads as zeros again.
    pub fn clear(&mut self, at: u64, len: u64) {
        let end = at + len;
        let whole = at.div_ceil(PIECE)..end / PIECE;
        if whole.is_empty() {
            return self.zero(at, end);
        }
        self.zero(at, whole.start * PIECE);
        self.zero(whole.end * PIECE, end);
        if whole.end - whole.start > self.pieces.len() as u64 {
            self.pieces.retain(|p, _| !whole.contains(p));
        } else {
            whole.for_each(|p| drop(self.pieces.remove(&p)));
        }
    }

    fn zero(&mut self, from: u64, to: u64) {
        if to > from && self.pieces.contains_key(&(from / PIECE)) {
            walk(from, (to - from) as usize, |piece, inside, range| {
                if let Some(p) = self.pieces.get_mut(&piece) {
                    p[inside..inside + range.len()].fill(0);
                }
            });
        }
    }
}

fn walk(at: u64, len: usize, mut each: impl FnMut(u64, usize, std::ops::Range<usize>)) {
    let mut done = 0;
    while done < len {
        let here = at + done as u64;
        let inside = (here % PIECE) as usize;
        let n = (PIECE as usize - inside).min(len - done);
        each(here / PIECE, inside, done..done + n);
        done += n;
    }
}

/// Where a byte of a counterfeit card really goes: runs of (position, length), None where nothing is kept.
pub(crate) fn real(at: u64, len: u64, real: u64, beyond: Beyond) -> Vec<(Option<u64>, u64)> {
    let mut runs = Vec::new();
    let (mut here, end) = (at, at + len);
    while here < end {
        let (place, n) = if here < real {
            (Some(here), (real - here).min(end - here))
        } else if beyond == Beyond::Wrap {
            let inside = here % real;
            (Some(inside), (real - inside).min(end - here))
        } else {
            (None, end - here)
        };
        runs.push((place, n));
        here += n;
    }
    runs
}
