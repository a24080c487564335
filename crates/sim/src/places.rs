//! Where the bytes of a card really go, and what hides that: a cache in front of the flash.

use crate::model::{Area, Beyond, Model};
use std::collections::{HashMap, VecDeque};

/// Where a run of bytes goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goes {
    /// Flash, from this byte on.
    To(u64),
    /// Taken and forgotten; reads as zeros.
    Nowhere,
    /// An error.
    Fails,
}

/// The runs (where to, bytes) of a range of addresses.
pub(crate) fn runs(at: u64, len: u64, m: &Model) -> Vec<(Goes, u64)> {
    let (mut out, mut here, end) = (Vec::new(), at, at + len);
    while here < end {
        let inside = m.area.iter().find(|a| (a.at..a.at + a.len).contains(&here));
        let next = m.area.iter().map(|a| a.at).filter(|&a| a > here).min().unwrap_or(end);
        let stop = inside.map_or(next, |a| a.at + a.len).min(end);
        match inside {
            Some(&Area { at, does: Beyond::Wrap, shows, .. }) => chain(shows + (here - at), stop - here, m, &mut out),
            Some(a) => out.push((lost(a.does), stop - here)),
            None => chain(here, stop - here, m, &mut out),
        }
        here = stop;
    }
    out
}

fn lost(rule: Beyond) -> Goes {
    if rule == Beyond::Error { Goes::Fails } else { Goes::Nowhere }
}

/// The same without bad areas: stretches of `repeats`, each with `real_capacity` of flash.
fn chain(at: u64, len: u64, m: &Model, out: &mut Vec<(Goes, u64)>) {
    let (real, rule) = (m.card.real_capacity, m.card.beyond);
    let (mut here, end) = (at, at + len);
    let whole = match (m.card.repeats, rule) {
        (0, Beyond::Wrap) => real,
        (0, _) => u64::MAX,
        (n, _) => n,
    };
    while here < end {
        let inside = here % whole;
        let (goes, n) = if inside < real { (Goes::To(inside), real - inside) } else { (lost(rule), whole - inside) };
        let n = n.min(end - here);
        out.push((goes, n));
        here += n;
    }
}

/// What was written last, by the address the host gave.
#[derive(Clone, Debug)]
pub(crate) struct Front {
    most: usize,
    pieces: HashMap<u64, Box<[u8]>>,
    /// In the order they came.
    order: VecDeque<u64>,
}

impl Front {
    /// None for a card without one. Pieces have `piece` bytes.
    pub fn new(m: &Model, piece: u64) -> Option<Front> {
        let most = (m.card.front / piece) as usize;
        (most > 0).then(|| Front { most, pieces: HashMap::new(), order: VecDeque::new() })
    }

    pub fn get(&self, piece: u64) -> Option<&[u8]> {
        self.pieces.get(&piece).map(|p| &p[..])
    }

    /// Takes a piece; the one that came first goes where there is no room.
    pub fn put(&mut self, piece: u64, bytes: &[u8]) {
        if self.pieces.insert(piece, bytes.into()).is_none() {
            self.order.push_back(piece);
        }
        while self.order.len() > self.most {
            let Some(first) = self.order.pop_front() else { return };
            self.pieces.remove(&first);
        }
    }

    pub fn remove(&mut self, piece: u64) {
        if self.pieces.remove(&piece).is_some() {
            self.order.retain(|&p| p != piece);
        }
    }

    pub fn clear(&mut self) {
        self.pieces.clear();
        self.order.clear();
    }
}
