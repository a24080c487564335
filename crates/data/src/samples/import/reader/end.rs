//! What the lines come to at the end of a file: its cards, with what a reader should know of their tables.

use super::super::card::{self, Card, Identity, KEPT_APART};
use super::super::clean::Line;
use super::super::{Place, Tables, align};
use super::Reader;
use super::rows::records_by_figures;

impl Reader {
    pub(super) fn end(mut self, name: &str, lines: &[Line]) -> (Vec<Card>, Identity) {
        if let Some(head) = self.wrapped.take() {
            self.alone(&head);
        }
        self.close_loop();
        self.labels_below();
        self.unread.command(0, false);
        self.parts.push(Card { identity: self.identity, tables: self.tables });
        for t in self.parts.iter_mut().map(|p| &mut p.tables) {
            t.bench.retain(|t| !t.passes.is_empty());
            // A scatter plot has at least 2^8 points; fewer such lines are something else.
            t.scatter.retain(|t| t.points.len() >= 64);
            // Sorted the other way, it is the same table.
            t.align.iter_mut().for_each(|t| nandscope_stats::descending(&mut t.rows, |r| r.align as f64));
            t.open.iter_mut().for_each(|t| nandscope_stats::descending(&mut t.rows, |r| r.size as f64));
            t.fat.iter_mut().for_each(|t| nandscope_stats::descending(&mut t.rows, |r| r.size as f64));
            t.program.iter_mut().for_each(|t| nandscope_stats::descending(&mut t.rows, |r| r.size as f64));
            for a in &mut t.align {
                if let Some(row) = align::outlier(&a.rows).map(|i| a.rows.remove(i)) {
                    t.notes.push(format!(
                        "{name}:{}: the row of {} takes {} ms, more than a hundred times the others, and was left out: a stall, or a wrong unit?",
                        row.line,
                        crate::units::Bytes(row.align),
                        crate::units::three(row.pre.max(row.on).max(row.post) / 1e3)
                    ));
                }
            }
            for b in &mut t.bench {
                t.notes.extend(records_by_figures(b, &self.records).map(|note| format!("{name}: {note}")));
            }
        }
        // Before parts are joined: a quotation under another card's name is of neither.
        super::super::quotes::drop_repeats(self.parts.iter_mut().map(|p| &mut p.tables));
        // What prose at the end names has no tables.
        self.parts.retain(|p| !p.tables.is_empty());
        let mut cards = card::join_parts(self.parts);
        cards.retain(|c| !c.tables.is_empty());
        for c in &mut cards {
            c.tables.notes.extend(quoted_apart(name, &c.tables, lines));
            // Of all the disks a log lists only the one that was tested counts, where that is known.
            if let Some(size) = c.identity.size.filter(|s| c.tables.device_sizes.iter().any(|d| d.1 == *s)) {
                c.tables.device_sizes.retain(|d| d.1 == size);
            }
            let mut sizes: Vec<u64> = c.tables.device_sizes.iter().map(|s| s.1).collect();
            sizes.sort_unstable();
            sizes.dedup();
            if let [only] = sizes[..] {
                c.tables.align.iter_mut().for_each(|t| t.device_size = Some(only));
            }
        }
        if let Some(t) = cards.first_mut().map(|c| &mut c.tables) {
            if self.damaged > 0 {
                t.notes.push(format!("{name}: {} rows are cut short and were left out", self.damaged));
            }
            t.notes.extend(self.unread.notes(name));
            if self.nameless > 0 {
                t.notes.push(format!("{name}: {} open-AU tables without a word on how many AUs were written", self.nameless));
            }
        }
        (cards, self.spoken)
    }
}

/// Tables of one kind of which a mail quotes some and not the others, or some deeper: whoever answers may have measured a card of his own.
fn quoted_apart(name: &str, t: &Tables, lines: &[Line]) -> Option<String> {
    fn at<T>(tests: &[T], place: impl Fn(&T) -> Place) -> Vec<usize> {
        tests.iter().map(|t| place(t).line).collect()
    }
    let kinds = [
        at(&t.align, |t| t.place),
        at(&t.open, |t| t.place),
        at(&t.fat, |t| t.place),
        at(&t.program, |t| t.place),
        at(&t.interval, |t| t.place),
        at(&t.scatter, |t| t.place),
        at(&t.bench, |t| t.place),
    ];
    let depth = |line: usize| lines.get(lines.partition_point(|l| l.number < line)).map_or(0, |l| l.depth);
    let differs = |kind: &Vec<usize>| Some((*kind.first()?, kind.iter().copied().find(|&l| depth(l) != depth(kind[0]))?));
    let (one, other) = kinds.iter().find_map(differs)?;
    Some(format!("{name}: a mail quotes the tables of line {one} and of line {other} differently; two cards? {KEPT_APART}"))
}
