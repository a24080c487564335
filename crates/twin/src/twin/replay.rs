//! A structure replayed over the accesses that were measured: what events each would have caused.

use super::data::Row;
use nandscope_sim::account::KINDS;
use nandscope_sim::model::{Evict, FtlKind};
use nandscope_sim::{Card, Costs, Event, Events, Model, Op, Request, Told};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Kinds of events whose cost is fitted.
pub const FITTED: [Event; 24] = [
    Event::Command,
    Event::Wire,
    Event::Split,
    Event::Commit,
    Event::After,
    Event::Program,
    Event::Load,
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
    Event::Stream,
    Event::StreamByte,
    Event::MapMiss,
    Event::MapSave,
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
    /// Logarithm of how unlikely the lots were that the structure had to draw to explain what was slow.
    pub lots: f64,
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
    let late = m.nand.pipelined
        || m.card.overlap
        || m.card.behind > 0
        || m.slc.size > 0
        || m.card.cache > 0
        || m.ftl.page.when != nandscope_sim::model::GcWhen::Foreground;
    late || draws(m)
}

/// Whether the structure draws lots: what was measured then says how they fell.
fn draws(m: &Model) -> bool {
    m.ftl.kind == FtlKind::BlockMap && m.ftl.block.evict == Evict::Random
}

/// Does the accesses on a structure, one after the other, and tells the events of each; nothing where the structure refuses it.
/// `begun` makes the card for those from a row on. What is left of the card in the end, report by report, is summed up by `over`.
fn each(rows: &[Row], begun: impl Fn(usize) -> Card, mut tell: impl FnMut(Option<&Events>), mut over: impl FnMut(&Card)) {
    let (mut card, mut now) = (begun(0), 0);
    for (i, r) in rows.iter().enumerate() {
        if r.first && i > 0 {
            over(&card);
            (card, now) = (begun(i), 0);
        }
        match card.submit(now + r.gap, Request { op: r.op, at: r.at, len: r.len, data: nandscope_sim::Data::Other }) {
            Err(_) => tell(None),
            Ok(done) => {
                // The clock of the structure would run by costs that are not known yet: only rests count.
                now = done.done;
                tell(card.last_events());
            }
        }
    }
    over(&card);
}

/// Replays the accesses.
pub fn groups(m: &Model, rows: &[Row], seed: u64) -> Groups {
    let mut known: HashMap<[i64; KINDS], u32, BuildHasherDefault<Mix>> = HashMap::default();
    let mut g = Groups { of: Vec::with_capacity(rows.len()), late: Vec::with_capacity(rows.len()), ..Groups::default() };
    let slow = if draws(m) { slow(m, rows, seed) } else { None };
    let begun = |from: usize| {
        let card = Card::new(m, seed).account();
        if let Some(slow) = &slow { told(card, rows, from, slow) } else { card }
    };
    let mut lots = 0.0;
    each(
        rows,
        begun,
        |events| {
            let Some(e) = events else {
                g.of.push(u32::MAX);
                g.late.push(0.0);
                return;
            };
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
        },
        |card| lots += card.lots(),
    );
    g.lots = lots;
    g
}

/// A card that knows which of the writes from `from` on, up to the next report, found their erase block closed.
fn told(card: Card, rows: &[Row], from: usize, slow: &[bool]) -> Card {
    let mut lots = Told::default();
    let own = rows.iter().zip(slow).skip(from).enumerate().take_while(|(k, (r, _))| *k == 0 || !r.first);
    for (write, (r, slow)) in own.map(|x| x.1).filter(|x| x.0.op == Op::Write).enumerate() {
        (card.block_of(r.at)..=card.block_of(r.at + r.len - 1)).for_each(|b| lots.visit(b, write as u64, *slow));
    }
    card.told(lots)
}

/// Which accesses took longer than all but their merges, by half of what a merge takes at these costs; None where none is known to take any time.
fn slow(m: &Model, rows: &[Row], seed: u64) -> Option<Vec<bool>> {
    let costs = Costs::of(m);
    let (mut without, mut merges) = (Vec::with_capacity(rows.len()), vec![]);
    each(
        rows,
        |_| Card::new(m, seed).account(),
        |events| {
            let mut e = events.copied().unwrap_or_default();
            let all = e.ps(&costs);
            [Event::Close, Event::CloseRandom, Event::Copy, Event::Erase].iter().for_each(|k| e.0[*k as usize] = 0);
            let rest = e.ps(&costs);
            without.push(rest as f64 / 1000.0);
            merges.extend((all > rest).then(|| (all - rest) as f64 / 1000.0));
        },
        |_| (),
    );
    let merge = super::costs::median(&mut merges);
    (merge > 0.0).then(|| rows.iter().zip(&without).map(|(r, w)| r.op == Op::Write && r.took as f64 - w > 0.5 * merge).collect())
}

/// Reads of a stretch without writes between that are looked at while the mapping is searched.
pub const READS: usize = 600;

/// Accesses of an experiment whose reads are looked at while the mapping is searched: those that come later repeat conditions that were met before.
const ACCESSES: usize = 3000;

/// The accesses without most of the reads where many came in a row, for they say little of the mapping, and without the last reads of long experiments. What was left
/// out counts as rest; writes stay, for each changes what the next ones meet. The cells of an experiment are mixed, so that its first reads are of all of them.
pub fn thinned(rows: &[Row], most: usize) -> Vec<Row> {
    let (mut out, mut reads, mut all, mut left) = (Vec::with_capacity(rows.len()), 0, 0, 0);
    for (i, r) in rows.iter().enumerate() {
        let same = !r.first && i > 0 && rows[i - 1].part == r.part;
        all = if same { all + 1 } else { 0 };
        reads = if same && r.op == Op::Read { reads + 1 } else { 0 };
        if r.op == Op::Read && (reads > most || all > ACCESSES) {
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
