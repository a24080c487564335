//! What was written, kept as extents of patterns, so that a 64 GB card needs as much memory as was written to it in pieces.

use std::collections::BTreeMap;

/// A pattern as it stands in a request, and the place it was written for: patterns depend on their place.
#[derive(Clone, PartialEq)]
pub struct Piece {
    /// Bytes.
    pub len: u64,
    /// Its name (`zeros`, `stamp:7`).
    pub fill: String,
    /// Place it was made for minus place where it stands, in bytes.
    pub moved: i64,
}

/// Content by position.
#[derive(Default)]
pub struct Store(BTreeMap<u64, Piece>);

impl Store {
    fn cut(&mut self, at: u64) {
        let Some((&start, piece)) = self.0.range_mut(..at).next_back() else {
            return;
        };
        if start + piece.len > at {
            let mut rest = piece.clone();
            piece.len = at - start;
            rest.len -= at - start;
            self.0.insert(at, rest);
        }
    }

    /// Puts a pattern down.
    pub fn put(&mut self, at: u64, len: u64, fill: &str, moved: i64) {
        self.clear(at, len);
        if let Some((&start, before)) = self.0.range_mut(..at).next_back()
            && start + before.len == at
            && before.fill == fill
            && before.moved == moved
        {
            before.len += len;
            return;
        }
        self.0.insert(at, Piece { len, fill: fill.into(), moved });
    }

    /// Forgets what is there; it reads as zeros.
    pub fn clear(&mut self, at: u64, len: u64) {
        self.cut(at);
        self.cut(at + len);
        let gone: Vec<u64> = self.0.range(at..at + len).map(|(&p, _)| p).collect();
        for p in gone {
            self.0.remove(&p);
        }
    }

    /// What is there, in order and without gaps.
    pub fn get(&self, at: u64, len: u64) -> Vec<Piece> {
        let end = at + len;
        let from = self.0.range(..=at).next_back().map_or(at, |(&p, _)| p);
        let mut out = Vec::new();
        let mut now = at;
        for (&start, piece) in self.0.range(from..end) {
            let stop = (start + piece.len).min(end);
            if stop <= now {
                continue;
            }
            if start > now {
                out.push(Piece { len: start - now, fill: "zeros".into(), moved: 0 });
                now = start;
            }
            out.push(Piece { len: stop - now, ..piece.clone() });
            now = stop;
        }
        if now < end {
            out.push(Piece { len: end - now, fill: "zeros".into(), moved: 0 });
        }
        out
    }
}
