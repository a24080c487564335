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

#[cfg(test)]
mod tests {
    use super::super::super::{Tables, read};

    fn of(text: &str) -> Tables {
        read(&[("paste", text)]).unwrap()
    }

    fn counts(t: &Tables) -> Vec<(Option<u32>, usize)> {
        t.open.iter().map(|o| (o.n, o.rows.len())).collect()
    }

    #[test]
    fn words_below_their_tables() {
        let table = "4MiB 9M/s\n2MiB 9M/s\n";
        let t = of(&(1..=3).map(|n| format!("{table}^^^ that was {n} AUs\n")).collect::<String>());
        assert_eq!(counts(&t), [(Some(1), 2), (Some(2), 2), (Some(3), 2)]);
        assert!(t.notes.iter().any(|n| n.contains("stand below")), "{:?}", t.notes);
        // A conclusion in other words is no such label, nor is one that follows labels that stand above.
        let t = of(&format!("{table}that was 1 AU\n{table}so 3 AUs are kept open\n"));
        assert_eq!(counts(&t)[0].0, None);
        let t = of(&format!("that was 1 AUs\n{table}that was 2 AUs\n{table}that was 3 AUs\n"));
        assert_eq!(counts(&t), [(Some(1), 2), (Some(2), 2)]);
    }

    #[test]
    fn a_column_for_each_number() {
        for head in ["open-au-nr 1 2 4", "AUs:   1    2    4", "nr=1 nr=2 nr=4"] {
            let t = of(&format!("{head}\n4MiB 9M/s 8M/s 7M/s\n2MiB 6M/s 5M/s 4M/s\n1MiB 3M/s 2M/s\n"));
            assert_eq!(counts(&t), [(Some(1), 2), (Some(2), 2), (Some(4), 2)], "{head}");
            assert!(t.fat.is_empty() && t.notes.iter().any(|n| n.contains("cut short")), "{head}: {:?}", t.notes);
        }
        // Without such a head columns are those of find-FAT.
        assert_eq!(of("4MiB 9M/s 8M/s 7M/s\n2MiB 6M/s 5M/s 4M/s\n").fat.len(), 1);
    }

    #[test]
    fn rows_in_another_form_are_named() {
        let run =
            |n: u32| format!("$ flashbench -O --open-au-nr={n} /dev/sdb\n4MB 10.5 MB/s\n2MB 10.1 MB/s\n1MB 9.8 MB/s\n512kB 9.1 MB/s\n");
        let t = of(&format!("align 4194304 pre 1ms on 2ms post 1ms diff 1ms\n{}{}", run(1), run(2)));
        let notes: Vec<_> = t.notes.iter().filter(|n| n.contains("no row below")).collect();
        assert!(notes.len() == 2 && notes[0].contains("paste:2") && notes[0].contains("\"4MB 10.5 MB/s\""), "{:?}", t.notes);
        let t = of("$ flashbench -O --open-au-nr=2 /dev/sdb\n4MiB 10.5M/s\n2MiB 10.1M/s\n");
        assert!(t.notes.is_empty(), "{:?}", t.notes);
    }

    #[test]
    fn commands_that_a_mail_broke() {
        let rows = "4MiB 9M/s\n2MiB 9M/s\n";
        for command in [
            "flashbench --open-au /dev/sdb --open-au-nr=3\n--random --blocksize=16384",
            "flashbench /dev/sdb --open-au --open-au-nr=3 --ra\nndom",
            "flashbench /dev/sdb --open-au --random --open-au-nr=\n3",
            "flashbench --open-au --erasesize=$[4 *\n1024 * 1024] /dev/sdb --random --open-au-nr=3",
        ] {
            let t = of(&format!("$ {command}\n{rows}"));
            assert_eq!((t.open.len(), t.open[0].n, t.open[0].random), (1, Some(3), Some(true)), "{command}");
        }
    }
}
