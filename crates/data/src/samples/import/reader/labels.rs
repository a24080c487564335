//! Words that say how many AUs a table is of, where they do not stand above it: below it, or at the head of one column for each number.

use super::super::command::Kind;
use super::super::{OpenTest, Place, Rate, RatesRow, card};
use super::rows::last_two;
use super::{Current, Reader};

/// Nobody prints more columns.
const MOST: usize = 64;

impl Reader {
    /// Where the first table has no word and one like all others follows the last table, each stands below its table.
    pub(super) fn labels_below(&mut self) {
        let labels = std::mem::take(&mut self.labels);
        let open = &mut self.tables.open;
        let [.., before, last] = &labels[..] else { return };
        let c = &self.context;
        let alike = self.current == Current::Open && self.fresh && c.kind == Some(Kind::Open) && before == last;
        if !alike || open.len() != labels.len() || open[0].n.is_some() || open[1..].iter().any(|t| t.n.is_none()) {
            return;
        }
        let shifted: Vec<_> = open[1..].iter().map(|t| (t.n, t.random)).chain([(c.n, c.random)]).collect();
        for (t, (n, random)) in open.iter_mut().zip(shifted) {
            (t.n, t.random) = (n, random);
        }
        self.nameless = self.nameless.saturating_sub(1);
        self.tables.notes.push(format!("the words on how many AUs were written stand below the tables: {} tables", labels.len()));
    }

    /// Takes "open-au-nr 1 2 3 4" or "AUs: 1  2  3" as the head of a table with one column for each number.
    pub(super) fn heads_columns(&mut self, text: &str, random: Option<bool>) -> bool {
        let low = text.to_ascii_lowercase();
        let words = card::first_words(&low, 2 * MOST);
        let mut counts: Vec<u32> = vec![];
        for w in words {
            let digits = w.trim_start_matches(|c: char| c.is_ascii_alphabetic());
            match digits.parse() {
                Ok(n) if w.len() == digits.len() || matches!(&w[..w.len() - digits.len()], "nr" | "n" | "au") => counts.push(n),
                _ if matches!(w, "au" | "aus" | "nr" | "n" | "open" | "segments" | "size" | "random" | "linear" | "sequential") => {}
                _ => return false,
            }
        }
        let ascending = counts.windows(2).all(|w| w[0] < w[1]);
        if counts.len() < 3 || counts.len() > MOST || !ascending || counts[0] == 0 {
            return false;
        }
        self.close_loop();
        self.context.random = random.or(self.context.random);
        self.context.kind = Some(Kind::Open);
        self.columns = (counts, vec![]);
        self.fresh = true;
        true
    }

    /// A row of such a table; one with fewer figures was cut short.
    pub(super) fn row_of_columns(&mut self, place: Place, row: &RatesRow) {
        let last = last_two(self.columns.1.first().map(|&i| &self.tables.open[i].rows[..]), |r| r.size);
        if row.rates.len() != self.columns.0.len() {
            self.damaged += 1;
            return;
        }
        if self.begins(Current::Open, last, row.size) {
            let c = &self.context;
            let test = |&n: &u32| OpenTest {
                place,
                n: Some(n),
                random: c.random,
                erase_size: c.erase_size,
                setting: self.setting.clone(),
                rows: vec![],
            };
            let tests: Vec<OpenTest> = self.columns.0.iter().map(test).collect();
            self.columns.1 = (self.tables.open.len()..).take(tests.len()).collect();
            self.tables.open.extend(tests);
        }
        for (&i, &rate) in self.columns.1.iter().zip(&row.rates) {
            self.tables.open[i].rows.push(Rate { line: row.line, size: row.size, rate });
        }
    }
}
