//! Rows go into the tests of a card: which of them a row belongs to, and where a new one begins.

use super::super::card::{self, Identity};
use super::super::command::Kind;
use super::super::{AlignRow, AlignTest, BenchPass, BenchTest, FatTest, OpenTest, Place, ProgramTest, Rate, RatesRow, sdfat};
use super::{Current, Reader};

impl Reader {
    pub(super) fn align(&mut self, place: Place, row: AlignRow) {
        let last = last_two(self.tables.align.last().map(|t| &t.rows[..]), |r| r.align);
        if self.begins(Current::Align, last, row.align) {
            let (write, own, setting) = (self.context.write, self.own, self.setting.clone());
            self.tables.align.push(AlignTest { place, write, own, setting, ..AlignTest::default() });
        }
        if let Some(t) = self.tables.align.last_mut() {
            t.rows.push(row);
        }
    }

    /// The last row of the current table, where it has several columns.
    pub(super) fn last_columns(&mut self) -> Option<&mut RatesRow> {
        match self.current {
            Current::Columns(Kind::Program) => self.tables.program.last_mut().and_then(|t| t.rows.last_mut()),
            Current::Columns(_) => self.tables.fat.last_mut().and_then(|t| t.rows.last_mut()),
            _ => None,
        }
    }

    /// Whether a row begins a new test: another kind, a new announcement, or sizes that start again. `last`: the sizes of the last
    /// two rows, 0 where there are none; a table that was sorted the other way grows.
    pub(super) fn begins(&mut self, kind: Current, last: [u64; 2], now: u64) -> bool {
        let again = match last {
            [_, 0] => false,
            [0, only] => now == only,
            [a, b] if b > a => now <= b,
            [_, b] => now >= b,
        };
        let new = self.current != kind || self.fresh || (now > 0 && again);
        self.current = kind;
        self.fresh = false;
        self.stopped = false;
        self.unread.row();
        new
    }

    pub(super) fn rates(&mut self, place: Place, row: RatesRow) {
        if !self.columns.0.is_empty() {
            return self.row_of_columns(place, &row);
        }
        let kind = match self.context.kind {
            _ if row.rates.len() == 1 => Kind::Open,
            Some(k @ (Kind::Fat | Kind::Program)) => k,
            // flashbench -p has eight columns and goes down from 2 MiB, where -f goes down from the erase size.
            _ if row.rates.len() == 8 && self.current == Current::Columns(Kind::Program) => Kind::Program,
            _ => Kind::Fat,
        };
        if kind != Kind::Open {
            let rows = match kind {
                Kind::Program => self.tables.program.last().map(|t| &t.rows[..]),
                _ => self.tables.fat.last().map(|t| &t.rows[..]),
            };
            let last = last_two(rows, |r| r.size);
            if self.begins(Current::Columns(kind), last, row.size) {
                let c = &self.context;
                match kind {
                    Kind::Program => self.tables.program.push(ProgramTest { place, rows: vec![] }),
                    _ => self.tables.fat.push(FatTest { place, random: c.random == Some(true), erase_size: c.erase_size, rows: vec![] }),
                }
            }
            match kind {
                Kind::Program => self.tables.program.last_mut().map(|t| t.rows.push(row)),
                _ => self.tables.fat.last_mut().map(|t| t.rows.push(row)),
            };
            return;
        }
        // A lone rate in a find-FAT table is a row that was interrupted.
        if self.context.kind == Some(Kind::Fat) && matches!(self.current, Current::Columns(_)) && !self.fresh {
            self.damaged += 1;
            return;
        }
        let last = last_two(self.tables.open.last().map(|t| &t.rows[..]), |r| r.size);
        let fresh = self.fresh;
        if self.begins(Current::Open, last, row.size) {
            let c = &self.context;
            // Rows that start again without a word in between belong to a run that nobody named.
            let named = fresh && c.kind == Some(Kind::Open);
            if !named && c.queue.is_empty() {
                self.nameless += 1;
            }
            if !c.queue.is_empty() {
                self.looped.push(self.tables.open.len());
            }
            self.tables.open.push(OpenTest {
                place,
                n: if named && c.queue.is_empty() { c.n } else { None },
                random: c.random,
                erase_size: c.erase_size,
                setting: self.setting.clone(),
                rows: vec![],
            });
        }
        if let Some(t) = self.tables.open.last_mut() {
            t.rows.push(Rate { line: row.line, size: row.size, rate: row.rates[0] });
        }
    }

    /// Names the blocks of a shell loop: if there are as many as the loop had values, or fewer where it was ended by hand.
    pub(super) fn close_loop(&mut self) {
        let fewer = self.stopped && self.looped.len() < self.context.queue.len();
        if fewer || self.looped.len() == self.context.queue.len() {
            for (&i, &n) in self.looped.iter().zip(&self.context.queue) {
                self.tables.open[i].n = Some(n);
            }
        } else {
            self.nameless += self.looped.len();
        }
        self.looped.clear();
        self.stopped = false;
    }

    pub(super) fn bench(&mut self, place: Place, said: sdfat::Said) {
        use sdfat::Said;
        let fresh = match said {
            Said::Pass(p) | Said::Again(p) => {
                let last = self.tables.bench.last();
                // A heading with nothing under it leaves its empty test to the passes that follow.
                if last.is_none() || self.bench_fresh {
                    self.tables.bench.push(BenchTest { place, ..self.bench.clone() });
                }
                self.bench_fresh = false;
                if matches!(said, Said::Again(_)) && self.repeats(&p) {
                    return;
                }
                if let Some(t) = self.tables.bench.last_mut() {
                    t.passes.push(p);
                }
                return;
            }
            Said::Heading => return,
            Said::Card(card) => {
                let maker = card.words.iter().find_map(|w| card::maker(w));
                self.speaks_of(Identity { maker, named: Some(card), ..Identity::default() });
                return;
            }
            Said::Target(target, host) => {
                self.bench = BenchTest { host: host.or(self.bench.host.take()), ..BenchTest::default() };
                let named = Identity { label: Some(target), ..Identity::default() };
                if self.identity.label != named.label {
                    self.speaks_of(named);
                }
                true
            }
            Said::Size(n) => {
                self.records.extend(n);
                self.bench.buffer = n;
                true
            }
            Said::Host(h) => self.bench.host.replace(h.clone()) != Some(h),
            Said::FileMb(m) => self.bench.file_mb.replace(m) != Some(m),
            Said::CardGb(gb) => {
                // The bench names the card by its size, to 10 MB.
                let size = Some(((gb * 100.0).round() * 1e7) as u64).filter(|&s| s > 0);
                // Where the exact size is known, one that is far from it is of another card.
                let another = |s: u64| size.is_some_and(|size| s.abs_diff(size) > s / 50);
                if self.identity.size.is_none_or(|s| s % 10_000_000 == 0 || another(s)) {
                    self.speaks_of(Identity { size, ..Identity::default() });
                }
                self.bench.card_gb.replace(gb) != Some(gb)
            }
        };
        self.bench_fresh |= fresh;
    }

    /// Whether a pass in another form stands already among those of this card and record size, or of a part before it.
    fn repeats(&self, p: &BenchPass) -> bool {
        let near = |a: f64, b: f64| a.is_nan() || b.is_nan() || (a - b).abs() <= 0.01 + 1e-4 * b.abs();
        let like = |o: &BenchPass| o.write == p.write && near(p.speed, o.speed) && near(p.max, o.max) && near(p.avg, o.avg);
        let of = |t: &BenchTest| t.buffer == self.bench.buffer && t.passes.iter().any(like);
        let parts = self.parts.iter().rev().take(256).filter(|c| c.identity.same(&self.identity)).flat_map(|c| &c.tables.bench);
        self.tables.bench.iter().rev().take(64).chain(parts).any(of)
    }
}

/// Sizes of the last two rows of a table, 0 where there are none.
pub(super) fn last_two<T>(rows: Option<&[T]>, size: impl Fn(&T) -> u64) -> [u64; 2] {
    let rows = rows.unwrap_or(&[]);
    let at = |k: usize| rows.len().checked_sub(k).map_or(0, |i| size(&rows[i]));
    [at(2), at(1)]
}

/// Speed times average is the size of a record but for the loop around it, a few µs. Where the heading above is of other records,
/// or none is there, the size that the figures fit is taken: of those that the text names, or 100 and 512 B, which the bench has.
pub(super) fn records_by_figures(t: &mut BenchTest, named: &[u32]) -> Option<String> {
    let all: Vec<f64> = t.passes.iter().map(|p| p.speed * p.avg / 1e3).filter(|b| b.is_finite() && *b > 0.0).collect();
    let fits = |size: u32| !all.is_empty() && all.iter().all(|b| (0.92..1.03).contains(&(b / size as f64)));
    // No loop takes as long as the call, and none takes less than no time.
    let impossible = |size: u32| all.iter().any(|b| *b > 1.2 * size as f64 || *b < 0.5 * size as f64);
    if t.buffer.is_some_and(|b| !impossible(b)) {
        return None;
    }
    let mut sizes: Vec<u32> = named.iter().copied().chain([100, 512]).filter(|&s| fits(s)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let [size] = sizes[..] else { return None };
    let was = t.buffer.replace(size);
    was.map(|b| {
        format!(
            "the figures of line {} are of records of {size} B (speed times average), not of the {b} B named above them",
            t.passes[0].line
        )
    })
}
