//! A structure replayed over the accesses that were measured: what events each would have caused.

use super::data::Row;
use nandscope_sim::account::KINDS;
use nandscope_sim::{Card, Event, Model, Op, Request};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Kinds of events whose cost is fitted.
pub const FITTED: [Event; 20] = [
    Event::Command,
    Event::Wire,
    Event::Split,
    Event::Commit,
    Event::After,
    Event::Program,
    Event::Rest,
    Event::Sense,
    Event::NextPage,
    Event::Lookup,
    Event::Flat,
    Event::Close,
    Event::CloseRandom,
    Event::Copy,
    Event::Erase,
    Event::Change,
    Event::MapMiss,
    Event::SlcProgram,
    Event::Discard,
    Event::Flush,
];

/// Accesses with the same events.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    /// Of each group how many events of each fitted kind.
    pub counts: Vec<[f64; FITTED.len()]>,
    /// Of each access its group; `u32::MAX` where the structure refuses it.
    pub of: Vec<u32>,
    /// Of each access the ns that are no event: work put off.
    pub late: Vec<f64>,
}

#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }
    fn write(&mut self, bytes: &[u8]) {
        for c in bytes.chunks(8) {
            let mut b = [0; 8];
            b[..c.len()].copy_from_slice(c);
            self.0 = (self.0.rotate_left(5) ^ u64::from_le_bytes(b)).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
    }
}

/// Whether the events depend on what they cost.
pub fn needs_costs(m: &Model) -> bool {
    m.nand.pipelined || m.slc.size > 0 || m.card.cache > 0 || m.ftl.page.when != nandscope_sim::model::GcWhen::Foreground
}

/// Replays the accesses.
pub fn groups(m: &Model, rows: &[Row], seed: u64) -> Groups {
    let mut known: HashMap<[i64; KINDS], u32, BuildHasherDefault<Mix>> = HashMap::default();
    let mut g = Groups { counts: vec![], of: Vec::with_capacity(rows.len()), late: Vec::with_capacity(rows.len()) };
    let (mut card, mut now) = (Card::new(m, seed).account(), 0);
    for r in rows {
        if r.first {
            (card, now) = (Card::new(m, seed).account(), 0);
        }
        let Ok(done) = card.submit(now + r.gap, Request { op: r.op, at: r.at, len: r.len, data: nandscope_sim::Data::Other }) else {
            g.of.push(u32::MAX);
            g.late.push(0.0);
            continue;
        };
        // The clock of the structure would run by costs that are not known yet: only rests count.
        now = done.done;
        let Some(e) = card.last_events() else { continue };
        let mut key = e.0;
        let late = key[Event::Late as usize] + key[Event::Heat as usize];
        for k in [Event::Late, Event::Heat, Event::Stall, Event::Noise, Event::Rounding] {
            key[k as usize] = 0;
        }
        let next = g.counts.len() as u32;
        let n = *known.entry(key).or_insert(next);
        if n == next {
            g.counts.push(FITTED.map(|e| key[e as usize] as f64));
        }
        g.of.push(n);
        g.late.push(late as f64);
    }
    g
}

/// Reads of a stretch without writes between that are looked at while the mapping is searched.
const READS: usize = 2000;

/// The accesses without most of the reads where many came in a row: they say little of the mapping. What was left out counts as rest. The cells of an
/// experiment are mixed, so that its first reads are of all of them.
pub fn thinned(rows: &[Row]) -> Vec<Row> {
    let (mut out, mut reads, mut left) = (Vec::with_capacity(rows.len()), 0, 0);
    for (i, r) in rows.iter().enumerate() {
        let on = r.op == Op::Read && !r.first && i > 0 && rows[i - 1].part == r.part;
        reads = if on { reads + 1 } else { 0 };
        if reads > READS {
            left += r.gap + r.took;
        } else {
            out.push(Row { gap: r.gap + left, ..*r });
            left = 0;
        }
    }
    out
}

/// Reads only, which need no history of writes.
pub fn reads(rows: &[Row]) -> Vec<Row> {
    rows.iter().filter(|r| r.op == Op::Read).copied().collect()
}
