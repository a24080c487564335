//! Rows that a mail wrapped at a blank, or a terminal anywhere, within a number too: they are put together where that can be done in
//! one way only. What stays broken is left out and counted.

use super::super::clean::Line;
use super::super::command::is_option;
use super::super::{Place, align, other};
use super::Reader;
use crate::flashbench::format::parse_size;

impl Reader {
    /// Goes on with the beginning of a row; false where this line is none of it.
    pub(super) fn rejoined(&mut self, head: Line, line: &Line) -> bool {
        if let Some(text) = rejoin(&head.text, &line.text) {
            self.line(&Line { number: head.number, depth: head.depth, text }, None);
            if let Some(row) = self.row.as_mut().filter(|r| r.number == head.number) {
                row.number = line.number;
            }
            return true;
        }
        let columns = ["on ", "on\t", "post", "pre"].iter().any(|w| line.text.starts_with(w));
        let text = format!("{} {}", head.text, line.text);
        // Into three lines.
        if columns && text.len() < 200 {
            self.wrapped = Some(Line { number: head.number, depth: head.depth, text });
            return true;
        }
        self.alone(&head);
        false
    }

    /// The beginning of a row that nothing goes on with.
    pub(super) fn alone(&mut self, head: &Line) {
        match align::row(head.number, &head.text).filter(|_| !align::is_broken(&head.text)) {
            Some(row) => self.align(Place { file: self.file, line: head.number }, row),
            None => self.damaged += 1,
        }
    }

    /// Whether this line is the end of the row of several columns above it; takes it where it is.
    pub(super) fn goes_on(&mut self, line: &Line) -> bool {
        let fresh = self.fresh;
        let above = self.row.take().filter(|r| r.number + 1 == line.number && !fresh);
        let Some((row, above)) = self.last_columns().zip(above) else { return false };
        let Some(text) = rejoin(&above.text, &line.text) else { return false };
        let Some(joined) = other::only_rates(row.line, &text) else { return false };
        row.rates = joined.rates;
        self.row = Some(Line { number: line.number, depth: line.depth, text });
        true
    }
}

/// A command and a line below it whose first word goes on with its last one: "--ra" above "ndom /dev/sdb".
pub(super) fn broken_word(head: &Line, line: &Line) -> Option<Line> {
    let last = head.text.rsplit(' ').next()?;
    let first = line.text.split([' ', '=']).next()?;
    is_option(&format!("{last}{first}")).then(|| Line {
        number: head.number,
        depth: head.depth,
        text: format!("{}{}", head.text, line.text),
    })
}

/// Two lines as one row, perhaps still the beginning of one; none where they are none, or would be two different ones.
fn rejoin(head: &str, text: &str) -> Option<String> {
    if text.starts_with("align") || parse_size(text).is_some() {
        return None;
    }
    let both = [format!("{head}{text}"), format!("{head} {text}")];
    let whole = |t: &str| align::row(0, t).filter(|_| !align::goes_on(t));
    // A row that is one by itself takes nothing but the end of its last number.
    let begun = |t: &str| align::row(0, t).filter(|_| align::row(0, head).is_none());
    let one = one(&both, whole).or_else(|| one(&both, begun)).or_else(|| one(&both, |t| other::only_rates(0, t)));
    let one = one.or_else(|| self::one(&both, |t| other::interval(0, t)));
    // The next break may be within a number as well.
    one.or_else(|| other::is_broken(&both[0]).then_some(&both[0])).cloned()
}

/// The way of putting them together that reads as a row; that with a blank where both are the same one.
fn one<R: PartialEq>(both: &[String; 2], read: impl Fn(&str) -> Option<R>) -> Option<&String> {
    match (read(&both[0]), read(&both[1])) {
        (Some(a), Some(b)) => (a == b).then_some(&both[1]),
        (Some(_), None) => Some(&both[0]),
        (None, Some(_)) => Some(&both[1]),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::read;

    const LOG: &str = "$ flashbench -a /dev/x\nalign 8388608\tpre 1.35ms\ton 1.58ms\tpost 1.34ms\tdiff 231µs\n\
        align 4194304\tpre 1.35ms\ton 1.44ms\tpost 1.35ms\tdiff 90.9µs\nalign 2097152\tpre 1.35ms\ton 1.35ms\tpost 1.35ms\tdiff -49389n\n\
        $ flashbench -f /dev/x\n4MiB    865K/s   3.56M/s  3.01M/s  2.584G/  14M/s  865K/s\n2MiB    4.3M/s   4.88M/s  5.11M/s  906M/s   13M/s  4.3M/s\n\
        $ flashbench -O -0 3 /dev/x\n4MiB    14.2M/s\n2MiB    13.1M/s\n\
        $ flashbench -i /dev/x\n16384 bytes: min 32.5µs avg 38.1µs max 47.1µs: 512.176 MB/s\n";

    /// As `fold -w` does it, which counts tabs.
    fn fold(text: &str, width: usize) -> String {
        let (mut out, mut at) = (String::new(), 0);
        let after = |c: char, at: usize| if c == '\t' { at / 8 * 8 + 8 } else { at + 1 };
        for c in text.chars() {
            if c != '\n' && after(c, at) > width {
                out.push('\n');
                at = 0;
            }
            out.push(c);
            at = if c == '\n' { 0 } else { after(c, at) };
        }
        out
    }

    /// At whatever column a terminal breaks the lines, no number is another one: a row is as it was, or is left out and counted.
    #[test]
    fn rows_broken_within_a_number() {
        let of = |text: &str| read(&[("paste", text)]).unwrap();
        let whole = of(LOG);
        assert_eq!((whole.align[0].rows.len(), whole.fat[0].rows.len(), whole.open[0].rows.len(), whole.interval.len()), (3, 2, 2, 1));
        for width in 44..90 {
            let t = of(&fold(LOG, width));
            let rows = |t: &super::super::super::Tables| {
                let align = t.align.iter().flat_map(|t| &t.rows).map(|r| format!("{} {} {} {} {}", r.align, r.pre, r.on, r.post, r.diff));
                let fat = t.fat.iter().flat_map(|t| &t.rows).map(|r| format!("{} {:?}", r.size, r.rates));
                let open = t.open.iter().flat_map(|t| &t.rows).map(|r| format!("{} {}", r.size, r.rate));
                let interval = t.interval.iter().flat_map(|t| &t.rows).map(|r| format!("{} {} {} {}", r.size, r.min, r.avg, r.max));
                align.chain(fat).chain(open).chain(interval).collect::<Vec<_>>()
            };
            assert_eq!(rows(&t), rows(&whole), "{width}: {}", fold(LOG, width));
            assert!(t.notes.is_empty(), "{width}: {:?}", t.notes);
        }
        // Narrower still, rows may be lost; that is said.
        for width in 12..44 {
            let t = of(&fold(LOG, width));
            let know =
                |r: &&super::super::super::AlignRow| whole.align[0].rows.iter().any(|w| (w.align, w.on, w.diff) == (r.align, r.on, r.diff));
            let align: Vec<_> = t.align.iter().flat_map(|t| &t.rows).collect();
            assert!(align.iter().all(know) && (align.len() == 3 || t.notes[0].contains("cut short")), "{width}: {align:?} {:?}", t.notes);
        }
    }

    #[test]
    fn what_cannot_be_put_together_is_left_out() {
        let head = "align 8388608 pre 1.35ms on 1.58ms post 1.34ms diff 231µs\nalign 4194304 pre 1.35ms on 1.44ms post 1.35ms diff 90.";
        let t = read(&[("paste", format!("{head}\nso much for this card\n4MiB 865K/s 3.5\n^C\n"))]).unwrap();
        assert_eq!((t.align[0].rows.len(), t.fat.len()), (1, 0));
        assert!(t.notes[0].contains("2 rows are cut short"), "{:?}", t.notes);
    }
}
