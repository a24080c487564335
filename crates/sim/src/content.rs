//! What the bytes of a card are, for those who ask: sparse, in pieces of 4 KiB.

use crate::buffer::Lost;
use crate::model::{CardPart, Keeps, Model};
use crate::places::{Goes, runs};
use std::collections::{HashMap, VecDeque};

pub(crate) const PIECE: u64 = 4096;

/// The bytes that were stored; everything else reads as zeros.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    pieces: HashMap<u64, Box<[u8]>>,
    /// Bytes as they were before a write that a power cut could undo: number of the write, place, bytes. Oldest first.
    old: VecDeque<(u64, u64, Vec<u8>)>,
    /// Writes from this one on can be undone.
    from: u64,
    /// Reads so far: data that change from read to read follow it.
    looks: u64,
    /// What pieces held when the card was put in, of a card that forgets when it is taken out.
    inserted: HashMap<u64, Option<Box<[u8]>>>,
}

/// Bytes by which a card that shifts reads too far: two sectors, as Cole saw it on dying cards (Great microSD Card Survey).
const SHIFT: u64 = 1024;

/// Pieces by which a card that shows another place misses: 256 KiB.
const ANOTHER: u64 = 64;

/// Does this piece of flash fail, where one in `every` does?
fn fails(piece: u64, every: u64) -> bool {
    every <= 1 || (piece.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20).is_multiple_of(every)
}

impl Default for Content {
    fn default() -> Content {
        Content { pieces: HashMap::new(), old: VecDeque::new(), from: u64::MAX, looks: 0, inserted: HashMap::new() }
    }
}

impl Content {
    /// Writes from number `from` on may be undone; what was kept for older ones goes.
    pub fn keep_from(&mut self, from: u64) {
        self.from = from;
        while self.old.front().is_some_and(|o| o.0 < from) {
            self.old.pop_front();
        }
    }

    /// Undoes what lost writes put down, newest first.
    pub fn revert(&mut self, lost: &[Lost], m: &Model) {
        let old: Vec<_> = self.old.drain(..).collect();
        self.from = u64::MAX;
        for (write, at, bytes) in old.into_iter().rev() {
            for l in lost.iter().filter(|l| write >= l.write) {
                for (place, n) in runs(l.at, l.len, m) {
                    let Goes::To(place) = place else { continue };
                    let (from, to) = (at.max(place), (at + bytes.len() as u64).min(place + n));
                    if from < to {
                        self.put(from, &bytes[(from - at) as usize..(to - at) as usize]);
                    }
                }
            }
        }
    }

    pub fn load(&self, at: u64, into: &mut [u8]) {
        walk(at, into.len(), |piece, inside, range| {
            let to = &mut into[range];
            match self.pieces.get(&piece) {
                Some(p) => to.copy_from_slice(&p[inside..inside + to.len()]),
                None => to.fill(0),
            }
        });
    }

    /// As [`Content::load`] of a card that fails in silence.
    pub fn load_from(&mut self, at: u64, into: &mut [u8], card: &CardPart) {
        self.load(at, into);
        if matches!(card.keeps, Keeps::All | Keeps::Old | Keeps::Session) {
            return;
        }
        self.looks += 1;
        let noise = (self.looks.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8 | 1;
        walk(at, into.len(), |piece, inside, range| {
            if !fails(piece, card.fails_every) {
                return;
            }
            let part = &mut into[range];
            match card.keeps {
                Keeps::Zeros => part.fill(0),
                Keeps::Shifted => self.load(piece * PIECE + inside as u64 + SHIFT, part),
                Keeps::Another => self.load((piece ^ ANOTHER) * PIECE + inside as u64, part),
                Keeps::Changing => part.iter_mut().for_each(|b| *b ^= noise),
                Keeps::All | Keeps::Old | Keeps::Session => {}
            }
        });
    }

    /// As [`Content::store`] of a card that fails in silence.
    pub fn store_to(&mut self, write: u64, at: u64, from: &[u8], card: &CardPart) {
        if card.keeps == Keeps::Session {
            walk(at, from.len(), |piece, _, _| {
                if fails(piece, card.fails_every) && !self.inserted.contains_key(&piece) {
                    self.inserted.insert(piece, self.pieces.get(&piece).cloned());
                }
            });
        }
        if card.keeps != Keeps::Old {
            return self.store(write, at, from);
        }
        walk(at, from.len(), |piece, inside, range| {
            if !fails(piece, card.fails_every) {
                self.store(write, piece * PIECE + inside as u64, &from[range]);
            }
        });
    }

    /// The card is put in anew: what it kept for as long as it was in is gone.
    pub fn reinsert(&mut self) {
        for (piece, old) in self.inserted.drain() {
            match old {
                Some(bytes) => self.pieces.insert(piece, bytes),
                None => self.pieces.remove(&piece),
            };
        }
    }

    /// Cells that lose their charge: the first byte of every sector of the range becomes another, and what was harmed twice is not whole again.
    pub fn decay(&mut self, at: u64, len: u64) {
        for sector in (at / 512 * 512..at + len).step_by(512) {
            let mut byte = [0];
            self.load(sector, &mut byte);
            self.put(sector, &[byte[0].wrapping_add(1)]);
        }
    }

    /// Stores the bytes of write number `write`.
    pub fn store(&mut self, write: u64, at: u64, from: &[u8]) {
        if write >= self.from {
            let mut before = vec![0; from.len()];
            self.load(at, &mut before);
            self.old.push_back((write, at, before));
        }
        self.put(at, from);
    }

    fn put(&mut self, at: u64, from: &[u8]) {
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

pub(crate) fn walk(at: u64, len: usize, mut each: impl FnMut(u64, usize, std::ops::Range<usize>)) {
    let mut done = 0;
    while done < len {
        let here = at + done as u64;
        let inside = (here % PIECE) as usize;
        let n = (PIECE as usize - inside).min(len - done);
        each(here / PIECE, inside, done..done + n);
        done += n;
    }
}
